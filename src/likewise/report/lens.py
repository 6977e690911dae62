"""The lens: a page that shows what losses do to a batch: points on a circle, weights and forces."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from likewise.report.writing import package_text, policy_hash, write_html

PROGRAM = tuple(
    f"lens{part}.js" for part in ("_batch", "_draw", "_formula", "_controls", "_words", "_hands", "_guide", "")
)
"""The scripts of the page, in order of dependency; the losses precede them."""

LISTED = re.compile(r'^ {0,4}("(?:[^"\\]|\\.)+"): .*?\bkind: ?("(?:[^"\\]|\\.)+")', re.MULTILINE | re.DOTALL)


def write_lens(path: Path | str, losses: Sequence[str] | None = None, scripts: str | None = None) -> Path:
    """Write an interactive HTML page to move the points of a batch and change a loss.

    The page contains all losses of the library and loads no external files.  The same arguments give the same bytes.  The
    file is replaced atomically.

    Args:
        path: the file.
        losses: names of losses: the first one is shown, the second one next to it, and all are at the top of the list.
        scripts: the losses as JavaScript, from ``likewise.analysis.script_of``; ``None``: those of the library.

    Returns:
        The path of the page.

    Examples:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     page = write_lens(folder + "/lens.html", ["Circle"]).read_text()
        >>> "Multi-similarity" in page, "https://" in page
        (True, False)
    """
    scripts = package_text("lens_losses.js") if scripts is None else scripts
    first = list(losses or ())
    known = loss_names(scripts)
    for name in first:
        if name not in known:
            raise ValueError(f"losses must be names of losses on the page, but one of them is {name!r}")
    # the content security policy allows only these scripts
    parts = [scripts, "\n".join(package_text(name) for name in PROGRAM)]
    for text in parts:
        if re.search(r"</script|<!--", text, re.IGNORECASE):
            raise ValueError("scripts must not contain </script or <!--, but they do")
    style = package_text("page.css") + package_text("lens.css")
    return write_html(
        Path(path),
        "lens.html.jinja",
        title=" and ".join(first[:2]) or "What a loss does",
        first=json.dumps(first),
        style=style,
        style_hash=policy_hash(style),
        scripts=[{"text": text, "hash": policy_hash(text)} for text in parts],
    )


def add_losses(*entries: str) -> str:
    r"""Return the scripts of the losses of the library, with more losses at the end.

    Args:
        entries: losses as JavaScript, `likewise.analysis.LossScript.entry`.

    Examples:
        >>> loss_names(add_losses('"Mine": {\nkind: "MyLoss",\n},'))["Mine"]
        'MyLoss'
    """
    before, end, after = package_text("lens_losses.js").rpartition("\n};\n})();")
    return "\n".join([before, *entries]) + end + after


def loss_names(scripts: str | None = None) -> Mapping[str, str]:
    """Return the losses of a page: their classes, by name.

    Args:
        scripts: the losses as JavaScript; ``None``: those of the library.

    Examples:
        >>> loss_names()["Multi-similarity"]
        'MultiSimilarityLoss'
    """
    text = package_text("lens_losses.js") if scripts is None else scripts
    return {json.loads(name): json.loads(kind) for name, kind in LISTED.findall(text)}
