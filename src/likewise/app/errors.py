"""Errors that users can correct: one sentence with the given value, the valid values, and a suggestion."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from likewise.text import nearest_name


class UserError(Exception):
    """An error that the user can fix; printed without a traceback, with exit code 2.

    Examples:
        >>> print(UserError("there is no folder photos"))
        there is no folder photos
    """


class Note(UserWarning):
    """A warning about a result; the command line prints it as ``note: …``.

    Examples:
        >>> str(Note("batches are of 8 classes"))
        'batches are of 8 classes'
    """


def nearest(name: str, names: Iterable[str]) -> str:
    """A suggestion of the most similar name, or an empty text if none is similar.

    Examples:
        >>> nearest("MultiSimilartyLoss", ["MultiSimilarityLoss", "CircleLoss"])
        '; did you mean MultiSimilarityLoss?'
        >>> nearest("photos", ["MultiSimilarityLoss"])
        ''
    """
    close = nearest_name(name, names)
    return "" if close is None else f"; did you mean {close}?"


EXPECTED = (ValueError, TypeError, OSError, ImportError, MemoryError)
"""Exceptions with which the library rejects an argument, a file, a package or a machine."""


@contextmanager
def making(what: str) -> Iterator[None]:
    """Turn an error of the library into a `UserError` that names the object being built.

    Examples:
        >>> with making("the loss"):
        ...     raise ValueError("alpha must be a number > 0, but it is 0.0")
        Traceback (most recent call last):
        likewise.app.errors.UserError: the loss: alpha must be a number > 0, but it is 0.0
    """
    try:
        yield
    except EXPECTED as refusal:
        raise UserError(f"{what}: {sentence(refusal)}") from refusal


def sentence(error: BaseException) -> str:
    """The message of an error, on one line.

    Examples:
        >>> sentence(FileNotFoundError(2, "No such file or directory", "photos"))
        'photos: No such file or directory'
    """
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return " ".join(str(error).split()) or type(error).__name__


def require_package(module: str, extra: str, what: str) -> None:
    """Raise a `UserError` if a package is not installed.

    Args:
        module: the module to import.
        extra: the extra of likewise that installs it.
        what: the feature that needs it.

    Examples:
        >>> require_package("nowhere", "study", "a comparison")
        Traceback (most recent call last):
        likewise.app.errors.UserError: a comparison needs nowhere: pip install 'likewise[study]'
    """
    if find_spec(module) is None:
        raise UserError(f"{what} needs {module}: pip install 'likewise[{extra}]'")


def ours(error: BaseException) -> bool:
    """Whether an error was raised by this library, whose messages are sentences for users, and not by a dependency.

    Examples:
        >>> ours(ValueError("raised nowhere"))
        False
    """
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    return place is not None and str(place.tb_frame.f_globals.get("__name__", "")).startswith("likewise.")


@contextmanager
def writing(out: str | os.PathLike[str]) -> Iterator[None]:
    """Turn an error of the file system, such as a full disk, into a `UserError` that names what was to be written.

    Examples:
        >>> with writing("a.npz"):
        ...     raise PermissionError(13, "Permission denied", "a.npz.chunks")
        Traceback (most recent call last):
        likewise.app.errors.UserError: a.npz cannot be written: a.npz.chunks: Permission denied
    """
    try:
        yield
    except BrokenPipeError:  # the reader of the output has ended
        raise
    except OSError as refusal:
        reason = refusal.strerror if refusal.filename is None and refusal.strerror else sentence(refusal)
        raise UserError(f"{os.fspath(out)} cannot be written: {reason}") from refusal
