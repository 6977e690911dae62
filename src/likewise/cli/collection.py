"""What ``likewise index`` is given: images with everything that is known of them."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from likewise.app import UserError
from likewise.cli.pictures import Pictures, find_pictures, read_cells
from likewise.cli.screen import note

STAMP = "_stamp"
"""The hidden column of an index by which a changed file is told from one that is the same."""

TRUTHS = {"true": True, "false": False, "yes": True, "no": False}


@dataclass(frozen=True)
class Collection:
    """Images and what is known of them.

    Args:
        pictures: files and classes.
        metadata: a table's other columns, typed.

    Examples:
        >>> Collection(Pictures(Path(), ("a.png",), (0,), ("wren",)), {"year": [2021]}).labels
        ['wren']
    """

    pictures: Pictures
    metadata: dict[str, list[Any]]

    def __len__(self) -> int:
        return len(self.pictures)

    @property
    def labels(self) -> list[str | None]:
        """The class of each, by its name."""
        known = self.pictures
        if known.labels is None:
            return [None] * len(known)
        return [None if label < 0 else known.class_names[label] for label in known.labels]

    def take(self, rows: Sequence[int]) -> Collection:
        """Some of them."""
        known = self.pictures
        labels = None if known.labels is None else tuple(known.labels[row] for row in rows)
        pictures = Pictures(known.root, tuple(known.paths[row] for row in rows), labels, known.class_names)
        return Collection(pictures, {name: [cells[row] for row in rows] for name, cells in self.metadata.items()})

    def stored_paths(self, root: Path) -> list[str]:
        """Paths as an index keeps them: relative to where its images begin, or absolute."""
        here = self.pictures.root.resolve()
        if here == root:
            return list(self.pictures.paths)
        full = [Path(os.path.normpath(here / path)) for path in self.pictures.paths]
        return [str(path.relative_to(root)) if path.is_relative_to(root) else str(path) for path in full]

    def stamps(self) -> list[str]:
        """A checksum of each file's size and date, its class and its metadata."""
        found = []
        for row, (path, label) in enumerate(zip(self.pictures.paths, self.labels, strict=True)):
            try:
                about = os.stat(self.pictures.root / path)
                file: tuple[int, int] | None = (about.st_size, about.st_mtime_ns)
            except OSError:
                file = None
            known = [file, label, {name: cells[row] for name, cells in self.metadata.items()}]
            found.append(hashlib.sha256(json.dumps(known, default=str).encode()).hexdigest()[:20])
        return found


def find_collection(place: Path, *, root: Path | None, columns: tuple[str, str]) -> Collection:
    """The images of a folder, or those of a table with all of its columns.

    Args:
        place: a folder or a table.
        root: where a table's paths begin.
        columns: what a table calls paths and classes.

    Examples:
        >>> find_collection(Path("nowhere"), root=None, columns=("path", "label"))
        Traceback (most recent call last):
        likewise.app.errors.UserError: there is no folder or table nowhere
    """
    pictures = find_pictures(place, root=root, columns=columns)
    if place.is_dir():
        return _named_in_utf8(Collection(pictures, {}), place)
    cells = read_cells(place)
    metadata = {name: typed(column) for name, column in cells.items() if name not in columns}
    bad = [name for name in metadata if name in ("id", "path", "label") or not name or name.startswith("_")]
    if bad:
        raise UserError(f"{place} must not have a column {bad[0]!r}: call it something else")
    last = {path: row for row, path in enumerate(pictures.paths)}
    collection = Collection(pictures, metadata)
    if len(last) < len(pictures):
        note(
            f"{len(pictures) - len(last):,} rows of {place} name a file that a later row names, too: the last one counts"
        )
        collection = collection.take(sorted(last.values()))
    return collection


def _named_in_utf8(collection: Collection, place: Path) -> Collection:
    """Without files whose names are bytes of another encoding, which no index can hold; they are named."""
    good: list[int] = []
    bad: list[int] = []
    for row, path in enumerate(collection.pictures.paths):
        (good if path == os.fsencode(path).decode("utf-8", "replace") else bad).append(row)
    if not bad:
        return collection
    shown = os.fsencode(collection.pictures.paths[bad[0]]).decode("utf-8", "replace")
    what = f"{len(bad):,} files in {place} have names that are not UTF-8, such as {shown}"
    if not good:
        raise UserError(f"{what}: rename them")
    note(f"{what}: they are left out until they are renamed")
    return collection.take(good)


def typed(cells: Sequence[Any]) -> list[Any]:
    """A column with whole numbers, numbers or truth values, where all of its texts are such; blanks are nothing.

    Examples:
        >>> typed(["1", "", "3"]), typed(["1.5", "2"]), typed(["yes", "no"]), typed(["1", "two"])
        ([1, None, 3], [1.5, 2.0], [True, False], ['1', 'two'])
    """
    plain = [None if cell is None or cell == "" or cell != cell else cell for cell in cells]
    known = [cell for cell in plain if cell is not None]
    if not all(isinstance(cell, str) for cell in known):
        kinds = {type(cell) for cell in known}
        if kinds <= {int, float} or kinds == {bool}:
            return plain
        return [None if cell is None else str(cell) for cell in plain]
    for kind in (_whole, _number, _truth):
        try:
            return [None if cell is None else kind(cell) for cell in plain]
        except ValueError:
            continue
    return plain


def _whole(cell: str) -> int:
    if cell.lstrip("+-").startswith("0") and cell.lstrip("+-") != "0":
        raise ValueError("a code with zeros in front is no number")
    if not cell.isascii() or "_" in cell:
        raise ValueError("a code, which Python alone takes for a number")
    value = int(cell)
    if not -(2**63) <= value < 2**63:
        raise ValueError("more digits than a number of 64 bits has")
    return value


def _number(cell: str) -> float:
    if cell.lstrip("+-")[:2].isdigit() and cell.lstrip("+-").startswith("0"):
        raise ValueError("a code with zeros in front is no number")
    if not cell.isascii() or "_" in cell:
        raise ValueError("a code, which Python alone takes for a number")
    return float(cell)


def _truth(cell: str) -> bool:
    if cell.lower() not in TRUTHS:
        raise ValueError("neither true nor false")
    return TRUTHS[cell.lower()]
