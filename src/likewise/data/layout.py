"""Reading the official layout of a data set: its folder, the lines of its lists, and its counts."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path


def find(root: str | os.PathLike[str], inside: Sequence[str], marker: str) -> Path | None:
    """Return the root, or the first folder inside it, that contains the marker file; ``None`` if there is none.

    Examples:
        >>> find("/nowhere", ["birds"], "images.txt") is None
        True
    """
    return next((Path(root, folder) for folder in ("", *inside) if Path(root, folder, marker).is_file()), None)


def locate(name: str, root: str | os.PathLike[str], inside: Sequence[str], marker: str, how: str) -> Path:
    """Return the folder of a data set as `find` does, or raise an error that names the expected files.

    Args:
        name: name of the data set, for the message.
        root: the folder to search.
        inside: folders inside root that are searched after root.
        marker: the file that identifies the folder of the data set.
        how: how to obtain the data set, for the message.

    Examples:
        >>> locate("Birds", "/nowhere", ["birds"], "images.txt", "draw them")
        Traceback (most recent call last):
        FileNotFoundError: Birds is not at /nowhere, which must contain images.txt or birds/images.txt; draw them
    """
    found = find(root, inside, marker)
    if found is not None:
        return found
    looked = " or ".join("/".join(filter(None, (folder, marker))) for folder in ("", *inside))
    raise FileNotFoundError(f"{name} is not at {os.fspath(root)}, which must contain {looked}; {how}")


def rows(path: Path, fields: Sequence[str], *, skip: int = 0) -> Iterator[tuple[int, list[str]]]:
    r"""Yield the lines of a list, split at spaces, with their numbers; the last field may contain spaces.

    Examples:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp(), "list.txt")
        >>> _ = path.write_text("id name\n1 a bird\n")
        >>> list(rows(path, ["id", "name"], skip=1))
        [(2, ['1', 'a bird'])]
    """
    if not path.is_file():
        raise FileNotFoundError(f"{path} must be a file with lines of {' '.join(fields)!r}, but there is none")
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if number <= skip or not line.strip():
                continue
            found = line.strip().split(maxsplit=len(fields) - 1)
            if len(found) != len(fields):
                raise ValueError(f"{path}, line {number} must be {' '.join(fields)!r}, but it is {line.strip()!r}")
            yield number, found


def parse_integer(path: Path, number: int, field: str, text: str) -> int:
    """Parse an integer of a line, or raise an error that names the line.

    Examples:
        >>> parse_integer(Path("list.txt"), 3, "class_id", "x")
        Traceback (most recent call last):
        ValueError: list.txt, line 3: class_id must be a whole number, but it is 'x'
    """
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{path}, line {number}: {field} must be a whole number, but it is {text!r}") from None


def parse_numbers(path: Path, number: int, fields: Sequence[str], texts: Sequence[str]) -> list[float]:
    """Parse the numbers of a line, or raise an error that names the line.

    Examples:
        >>> parse_numbers(Path("list.txt"), 3, ["x", "y"], ["1.5", "?"])
        Traceback (most recent call last):
        ValueError: list.txt, line 3: 'x y' must be numbers, but they are '1.5 ?'
    """
    try:
        return [float(text) for text in texts]
    except ValueError:
        message = f"{' '.join(fields)!r} must be numbers, but they are {' '.join(texts)!r}"
        raise ValueError(f"{path}, line {number}: {message}") from None


def classes_of_half(split: str, classes: int) -> range:
    """Return the classes of a split: the first half for training, the second half for test.

    Examples:
        >>> classes_of_half("train", 200), classes_of_half("test", 200)
        (range(0, 100), range(100, 200))
    """
    return {"train": range(classes // 2), "test": range(classes // 2, classes), "all": range(classes)}[split]


def one_of(name: str, value: object, choices: Sequence[str]) -> None:
    """Check that a value is one of the choices.

    Examples:
        >>> one_of("split", "dev", ["train", "test"])
        Traceback (most recent call last):
        ValueError: split must be one of 'train', 'test', but it is 'dev'
    """
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, but it is {value!r}")


def compare_counts(name: str, split: str, found: tuple[int, int], official: tuple[int, int]) -> None:
    """Warn if the numbers of images and classes differ from the official ones.

    Examples:
        >>> compare_counts("Birds", "train", (5, 2), (5, 2))
    """
    if found != official:
        warnings.warn(
            f"{name}, split {split!r}, has {found[0]:,} images of {found[1]:,} classes here, but the official one has "
            f"{official[0]:,} images of {official[1]:,} classes (check=False silences this)",
            UserWarning,
            stacklevel=3,
        )
