"""A collection of images with metadata from a table, as an index stores it."""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from likewise.app.embedding_options import ImageOptions
from likewise.app.errors import Note, UserError
from likewise.app.images import ImageList, find_images, list_rows, read_columns

STAMP = "_stamp"
"""The hidden column of an index with the checksum by which a changed file is recognized."""

TRUTHS = {"true": True, "false": False, "yes": True, "no": False}


@dataclass(frozen=True)
class Collection:
    """Images and their metadata.

    Args:
        images: files and classes.
        metadata: a table's other columns, typed.

    Examples:
        >>> Collection(ImageList(Path(), ("a.png",), (0,), ("wren",)), {"year": [2021]}).labels
        ['wren']
    """

    images: ImageList
    metadata: dict[str, list[Any]]

    def __len__(self) -> int:
        return len(self.images)

    @property
    def labels(self) -> list[str | None]:
        """The class of each image, by its name."""
        images = self.images
        if images.labels is None:
            return [None] * len(images)
        return [None if label < 0 else images.class_names[label] for label in images.labels]

    def take(self, rows: Sequence[int]) -> Collection:
        """Select some of the images."""
        images = self.images
        labels = None if images.labels is None else tuple(images.labels[row] for row in rows)
        some = ImageList(images.root, tuple(images.paths[row] for row in rows), labels, images.class_names)
        return Collection(some, {name: [cells[row] for row in rows] for name, cells in self.metadata.items()})

    def paths_from(self, root: Path) -> list[str]:
        """Paths as an index stores them: relative to where its images begin, or absolute."""
        here = self.images.root.resolve()
        if here == root:
            return list(self.images.paths)
        full = [Path(os.path.normpath(here / path)) for path in self.images.paths]
        return [str(path.relative_to(root)) if path.is_relative_to(root) else str(path) for path in full]

    def stamps(self) -> list[str]:
        """A checksum of each file's size and date, its class and its metadata."""
        stamps = []
        for row, (path, label) in enumerate(zip(self.images.paths, self.labels, strict=True)):
            try:
                status = os.stat(self.images.root / path)
                file: tuple[int, int] | None = (status.st_size, status.st_mtime_ns)
            except OSError:
                file = None
            content = [file, label, {name: cells[row] for name, cells in self.metadata.items()}]
            stamps.append(hashlib.sha256(json.dumps(content, default=str).encode()).hexdigest()[:20])
        return stamps


def find_collection(place: str | Path, options: ImageOptions | None = None) -> Collection:
    """List the images of a folder, or those of a table with all of its columns.

    Args:
        place: a folder or a table.
        options: the columns of a table, and whether links are followed.

    Examples:
        >>> find_collection("nowhere")
        Traceback (most recent call last):
        likewise.app.errors.UserError: there is no folder or table nowhere
    """
    place, options = Path(place), options or ImageOptions()
    if place.is_dir():
        return _without_other_encodings(Collection(find_images(place, options), {}), place)
    columns = read_columns(place)
    images = list_rows(place, columns, options)
    own = (options.path_column, options.label_column)
    metadata = {name: infer_types(cells) for name, cells in columns.items() if name not in own}
    bad = [name for name in metadata if name in ("id", "path", "label") or not name or name.startswith("_")]
    if bad:
        raise UserError(f"{place} must not have a column {bad[0]!r}: rename it")
    last = {path: row for row, path in enumerate(images.paths)}
    collection = Collection(images, metadata)
    if len(last) < len(images):
        _warn(f"{len(images) - len(last):,} rows of {place} repeat a file of a later row; only the last row is used")
        collection = collection.take(sorted(last.values()))
    return collection


def _without_other_encodings(collection: Collection, place: Path) -> Collection:
    """Leave out files whose names are not UTF-8, which an index cannot hold; a note names the first."""
    good: list[int] = []
    bad: list[int] = []
    for row, path in enumerate(collection.images.paths):
        (good if path == os.fsencode(path).decode("utf-8", "replace") else bad).append(row)
    if not bad:
        return collection
    shown = os.fsencode(collection.images.paths[bad[0]]).decode("utf-8", "replace")
    what = f"{len(bad):,} files in {place} have names that are not UTF-8, such as {shown}"
    if not good:
        raise UserError(f"{what}: rename them")
    _warn(f"{what}: they are skipped; rename them to include them")
    return collection.take(good)


def _warn(text: str) -> None:
    warnings.warn(text, Note, stacklevel=3)


def infer_types(cells: Sequence[Any]) -> list[Any]:
    """Convert a column of texts to whole numbers, numbers or truth values if all of them can be converted; blanks are ``None``.

    Examples:
        >>> (
        ...     infer_types(["1", "", "3"]),
        ...     infer_types(["1.5", "2"]),
        ...     infer_types(["yes", "no"]),
        ...     infer_types(["1", "two"]),
        ... )
        ([1, None, 3], [1.5, 2.0], [True, False], ['1', 'two'])
    """
    plain = [None if cell is None or cell == "" or cell != cell else cell for cell in cells]
    values = [cell for cell in plain if cell is not None]
    if not all(isinstance(cell, str) for cell in values):
        kinds = {type(cell) for cell in values}
        if kinds <= {int, float} or kinds == {bool}:
            return plain
        return [None if cell is None else str(cell) for cell in plain]
    for kind in (_parse_whole, _parse_number, _parse_truth):
        try:
            return [None if cell is None else kind(cell) for cell in plain]
        except ValueError:
            continue
    return plain


def _parse_whole(cell: str) -> int:
    if cell.lstrip("+-").startswith("0") and cell.lstrip("+-") != "0":
        raise ValueError("a code with leading zeros is not a number")
    if not cell.isascii() or "_" in cell:
        raise ValueError("digits of another script, or underscores, are not a number")
    value = int(cell)
    if not -(2**63) <= value < 2**63:
        raise ValueError("it does not fit into 64 bits")
    return value


def _parse_number(cell: str) -> float:
    if cell.lstrip("+-")[:2].isdigit() and cell.lstrip("+-").startswith("0"):
        raise ValueError("a code with leading zeros is not a number")
    if not cell.isascii() or "_" in cell:
        raise ValueError("digits of another script, or underscores, are not a number")
    return float(cell)


def _parse_truth(cell: str) -> bool:
    if cell.lower() not in TRUTHS:
        raise ValueError("neither true nor false")
    return TRUTHS[cell.lower()]
