"""Files of pages: the package's templates, the hashes of scripts, and an atomic write."""

from __future__ import annotations

import base64
import hashlib
import os
from functools import cache
from importlib import resources
from pathlib import Path


def write_html(out: Path, text: str) -> Path:
    """Replace a file atomically: a reader sees the old page or the new one.

    Examples:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_html(Path(folder) / "a" / "page.html", "<p>A page").read_text()
        '<p>A page'
    """
    out.parent.mkdir(parents=True, exist_ok=True)
    aside = out.with_name(f".{out.name}.{os.getpid()}.part")
    try:
        with aside.open("w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(out)
    finally:
        aside.unlink(missing_ok=True)
    return out


@cache
def package_text(name: str) -> str:
    """A template, a style sheet or a script of this package.

    Examples:
        >>> package_text("page.js")[:12]
        '"use strict"'
    """
    return (resources.files("likewise.report") / name).read_text(encoding="utf-8")


def policy_hash(text: str) -> str:
    """The name of an inline script or style sheet in a content security policy.

    Examples:
        >>> policy_hash("")
        'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='
    """
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
