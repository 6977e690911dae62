"""Atomic and durable writes of files, and locks that the system releases when their process ends."""

from __future__ import annotations

import errno
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_SYSTEM_ERROR = re.compile(r"I/O error: .*\(os error (\d+)\)")


@contextmanager
def name_file(path: Path, part: Path | None = None) -> Iterator[None]:
    """Add the name of the file to an error of the file system; a write to a full disk does not report it.

    Args:
        path: the file that the error names.
        part: the temporary file that is written in its place.

    Examples:
        >>> with name_file(Path("a.txt")):
        ...     raise OSError(28, "No space left on device")
        Traceback (most recent call last):
        OSError: [Errno 28] No space left on device: 'a.txt'
    """
    try:
        yield
    except OSError as error:
        if error.errno is None or (error.filename is not None and error.filename not in (part, str(part))):
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error
    except Exception as error:  # safetensors raises its own class, with the number of the system's error in the text
        found = _SYSTEM_ERROR.search(str(error))
        if found is None:
            raise
        raise OSError(int(found[1]), os.strerror(int(found[1])), str(path)) from error


def refuse_link(path: Path) -> Path:
    """Raise an error if a file to append to, truncate or lock is a symbolic link, which could point to any other file.

    Args:
        path: a file that is written in place.

    Examples:
        >>> refuse_link(Path("metrics.jsonl"))
        PosixPath('metrics.jsonl')
    """
    if path.is_symlink():
        raise OSError(errno.EEXIST, "it must not be a link", str(path))
    return path


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Write a file atomically: a temporary file next to it is synced to the disk, then renamed; the name is synced too.

    Args:
        path: the file; an older one stays until the new one is complete.

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
        with name_file(path, part):
            part.touch()
            mode = part.stat().st_mode
            yield part
            part.chmod(mode)  # the mode of any new file; a library may have set another
            with part.open("rb") as file:
                os.fsync(file.fileno())
            part.replace(path)
            sync_folder(path.parent)
    finally:
        part.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Sync the names in a folder to the disk; syncing a file does not sync its renaming.

    Examples:
        >>> sync_folder(Path("."))
    """
    try:
        handle = os.open(folder, os.O_RDONLY)
    except PermissionError:  # Windows cannot open folders, and renames are durable there
        return
    try:
        os.fsync(handle)
    except OSError as error:  # some network file systems do not sync folders
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(handle)


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
        refusal: the error to raise if another process holds it.
        wait: seconds to wait for it.

    Examples:
        >>> import tempfile
        >>> with hold_lock(Path(tempfile.mkdtemp()) / ".lock", RuntimeError("another process writes")):
        ...     pass
    """
    from filelock import FileLock, Timeout

    lock = FileLock(refuse_link(file))
    try:
        lock.acquire(timeout=wait)
    except Timeout:
        raise refusal from None
    try:
        yield
    finally:
        lock.release()
