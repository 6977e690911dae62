"""Files that are there whole or not at all, whenever a process dies."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""How a text begins that a spreadsheet computes."""


def escape_formula(cell: Any) -> Any:
    """A cell of a CSV file that no spreadsheet computes: texts that begin like a formula get an apostrophe.

    Examples:
        >>> escape_formula("=1+1"), escape_formula(-1.5), escape_formula("a.jpg"), escape_formula("-1.5")
        ("'=1+1", -1.5, 'a.jpg', '-1.5')
    """
    if not isinstance(cell, str) or not cell.lstrip("'").startswith(FORMULA):
        return cell
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell


def unescape_formula(cell: str) -> str:
    """The text that `escape_formula` escaped.

    Examples:
        >>> unescape_formula("'=1+1"), unescape_formula("'n"), unescape_formula(escape_formula("'=1"))
        ('=1+1', "'n", "'=1")
    """
    return cell[1:] if cell.startswith("'") and cell.lstrip("'").startswith(FORMULA) else cell


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Write a file atomically: a temporary file next to it is synced to the disk, then renamed.

    Args:
        path: where the file is to be; an older one stays until the new one is whole.

    Examples:
        >>> import tempfile
        >>> place = Path(tempfile.mkdtemp()) / "a.txt"
        >>> with atomic_write(place) as part:
        ...     _ = part.write_text("whole")
        >>> [file.name for file in place.parent.iterdir()]
        ['a.txt']
    """
    part = path.with_name(f"{path.name}.{os.getpid()}-{secrets.token_hex(4)}.part")
    try:
        part.touch()
        mode = part.stat().st_mode
        yield part
        part.chmod(mode)  # that of any new file, whatever a library has made of it
        with part.open("rb") as file:
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
