"""Pages as files: what they are made of, what may run on them, and how they are written."""

from __future__ import annotations

import base64
import hashlib
import os
from importlib import resources
from pathlib import Path


def write_page(out: Path, page: str) -> Path:
    """Beside its place, and renamed: a reader sees the old page or the new one.

    Examples:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_page(Path(folder) / "a" / "page.html", "<p>A page").read_text()
        '<p>A page'
    """
    out.parent.mkdir(parents=True, exist_ok=True)
    aside = out.with_name(f".{out.name}.{os.getpid()}.part")
    try:
        with aside.open("w", encoding="utf-8", newline="\n") as file:
            file.write(page)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(out)
    finally:
        aside.unlink(missing_ok=True)
    return out


def package_text(name: str) -> str:
    """A template, a style sheet or a script of this room.

    Examples:
        >>> package_text("page.js")[:12]
        '"use strict"'
    """
    return (resources.files("likewise.report") / name).read_text(encoding="utf-8")


def policy_hash(text: str) -> str:
    """What a content security policy calls a script or a style sheet that is inside a page.

    Examples:
        >>> policy_hash("")
        'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='
    """
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
