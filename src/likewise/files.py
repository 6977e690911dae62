"""Files that are there whole or not at all, whenever a process dies, and locks that end with their process."""

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


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically, see `atomic_write`.

    Examples:
        >>> import tempfile
        >>> place = Path(tempfile.mkdtemp()) / "a.txt"
        >>> write_text(place, "whole")
        >>> place.read_text()
        'whole'
    """
    with atomic_write(path) as part:
        part.write_text(text, encoding="utf-8", newline="\n")


@contextmanager
def hold_lock(file: Path, refusal: Exception, *, wait: float = 0.0) -> Iterator[None]:
    """Hold a lock inside the block; the system releases it when the process dies.

    Args:
        file: the file of the lock.
        refusal: what is raised if another process holds it.
        wait: seconds to wait for it.

    Examples:
        >>> import tempfile
        >>> with hold_lock(Path(tempfile.mkdtemp()) / ".lock", RuntimeError("another process writes")):
        ...     pass
    """
    from filelock import FileLock, Timeout

    lock = FileLock(file)
    try:
        lock.acquire(timeout=wait)
    except Timeout:
        raise refusal from None
    try:
        yield
    finally:
        lock.release()
