"""The page that shows what losses do to a batch: points on a circle, weights, forces."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from likewise.report.writing import package_text, policy_hash, write_html

PROGRAM = tuple(
    f"lens{part}.js" for part in ("_batch", "_draw", "_formula", "_controls", "_words", "_hands", "_guide", "")
)
"""The page's scripts in order of dependency; the losses come before them."""

LISTED = re.compile(r'^ {0,4}("(?:[^"\\]|\\.)+"): .*?\bkind: ?("(?:[^"\\]|\\.)+")', re.MULTILINE | re.DOTALL)


def write_lens(path: Path | str, losses: Sequence[str] | None = None, scripts: str | None = None) -> Path:
    """Write one self-contained HTML page to move a batch and change a loss interactively; it fetches nothing.

    Every loss of the library is on it, whatever is shown first.  The same arguments give the same bytes.  The file is
    replaced atomically.

    Args:
        path: the file.
        losses: names of losses: the first is shown, the second is shown next to it, and all come first in the list.
        scripts: the losses as JavaScript, as ``likewise.analysis.script_of`` prints them; those of the library without it.

    Returns:
        Where the page is.

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
            raise ValueError(f"losses must be names of losses on the page, but {name!r} is not one")
    # the only scripts that may run are these
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
    r"""The scripts of the library's losses with more of them at the end.

    Args:
        entries: losses as JavaScript, `likewise.analysis.LossScript.entry`.

    Examples:
        >>> loss_names(add_losses('"Mine": {\nkind: "MyLoss",\n},'))["Mine"]
        'MyLoss'
    """
    before, end, after = package_text("lens_losses.js").rpartition("\n};\n})();")
    return "\n".join([before, *entries]) + end + after


def loss_names(scripts: str | None = None) -> Mapping[str, str]:
    """The losses that a page would have, by name, each with its class.

    Args:
        scripts: the losses as JavaScript; those of the library without it.

    Examples:
        >>> loss_names()["Multi-similarity"]
        'MultiSimilarityLoss'
    """
    text = package_text("lens_losses.js") if scripts is None else scripts
    return {json.loads(name): json.loads(kind) for name, kind in LISTED.findall(text)}
