"""Files that are there whole or not at all, whenever a process dies."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


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
        part.chmod(mode)  # that of any new file; a library may have set another
        with part.open("rb") as file:
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
