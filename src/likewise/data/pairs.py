"""Tables of pairs: images and texts, texts and texts, or images and images; one row per pair."""

from __future__ import annotations

import copy
import os
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageDraw
from torch import Tensor

from likewise.data.dataset import ImageDataset, check_indices, renumber
from likewise.data.decode import decode
from likewise.data.image_files import ImageFiles, file_sample, missing_files
from likewise.data.table import TableRows, read_rows

SIDES = ("image", "image_2", "text", "text_2")
"""The columns of a table of pairs, which has two of them; the first one in this order holds the anchors."""


class PairTable(ImageDataset):
    """Pairs in a table, one row per pair: the columns ``image`` and ``text``, or ``text`` twice, or ``image`` twice.

    The second of two columns with the same title is called ``text_2`` or ``image_2``, and the table may use this title.  The
    first of the two columns holds the anchors, the second one the references; images come before texts.  The columns
    ``split`` and ``label`` are optional; others are ignored.

    The samples of the data set are the distinct images and texts: all anchors, then all references.  Rows with the same
    image, the same text or the same ``label`` are in one class, also through a chain of such rows.  Samples of one class
    are positives of each other in losses and metrics.  Subsets of the data are subsets of the classes, so that no text or
    image of the training set is in the test set.

    Args:
        path: a ``.csv``, ``.tsv`` or ``.parquet`` file.
        root: folder of relative image paths; by default the folder of the table.
        split: read only the rows of this split; by default all rows.
        columns: titles of columns with other names, such as ``{"image": "file", "text": "caption"}``.
        name: name of the data set; by default the name of the table.
        check: check that every image exists.

    Attributes:
        sides: the two columns, such as ``("image", "text")``.
        rows: anchor and reference of each row, ``(pairs, 2)``, each counted from 0.
        row_labels: class of each row, ``(pairs,)``.

    Examples:
        >>> import tempfile
        >>> table = Path(tempfile.mkdtemp()) / "questions.csv"
        >>> _ = table.write_text('''text,text
        ... how old is it?,ten years
        ... what age has it?,ten years
        ... where is it?,in the garden''')
        >>> pairs = PairTable(table)
        >>> pairs
        questions: 3 texts and 2 texts of 2 classes
        >>> pairs.rows.tolist(), pairs.row_labels.tolist()
        ([[0, 0], [1, 0], [2, 1]], [0, 0, 1])
    """

    sides: tuple[str, str]

    def __init__(
        self,
        path: str | os.PathLike[str],
        root: str | os.PathLike[str] | None = None,
        split: str | None = None,
        *,
        columns: Mapping[str, str] | None = None,
        name: str | None = None,
        check: bool = True,
    ):
        table = read_rows(Path(path), dict(columns or {}), known=(*SIDES, "label", "split"), needed=())
        self.sides = _find_sides(table)
        if split is not None:
            table = table.of_split(split)
        self.folder = os.fspath(Path(path).parent if root is None else root)
        cells = [table.texts(side) for side in self.sides]
        for side, column in zip(self.sides, cells, strict=True):
            missing = missing_files(self.folder, column) if check and _is_image(side) else []
            if missing:
                raise table.fault(
                    missing[0], side, f"a file in {self.folder} (set root= to the folder that paths are relative to)"
                )
        distinct = [list(dict.fromkeys(column)) for column in cells]
        places = [{cell: place for place, cell in enumerate(some)} for some in distinct]
        self.rows = torch.tensor([[places[0][a], places[1][b]] for a, b in zip(*cells, strict=True)])
        given = table.classes("label") if "label" in table.values else None
        self.row_labels, first = _join_rows(self.rows, given)
        names = cells[1] if given is None else [str(each) for each in given]
        self._cells = (*distinct[0], *distinct[1])
        super().__init__(
            Path(path).stem if name is None else name,
            _labels_of_samples(self.rows, self.row_labels),
            [names[row] for row in first],
            split=split,
            is_query=torch.arange(len(self._cells)) < len(distinct[0]),
        )

    def __repr__(self) -> str:
        part = "" if self.split is None else f", {self.split}"
        counts = [len(self.cells(side)) for side in (0, 1)]
        words = [
            f"{count:,} {side.partition('_')[0]}{'s' * (count != 1)}"
            for count, side in zip(counts, self.sides, strict=True)
        ]
        classes = len(self.class_names)
        return f"{self.name}{part}: {' and '.join(words)} of {classes:,} class{'es' * (classes != 1)}"

    @property
    def kinds(self) -> tuple[str, str]:
        """The kinds of anchors and references: ``"image"`` or ``"text"``."""
        first, second = self.sides
        return first.partition("_")[0], second.partition("_")[0]

    def cells(self, side: int) -> tuple[str, ...]:
        """Return the texts, or the paths of the images, of one side: 0 for anchors, 1 for references."""
        anchors = int(self.rows[:, 0].max()) + 1
        return self._cells[:anchors] if side == 0 else self._cells[anchors:]

    def images(self, side: int) -> ImageFiles:
        """Return the images of one side as a data set with the classes of this one."""
        if not _is_image(self.sides[side]):
            raise ValueError(f"side must be a side with images, but it is {side}, which has texts")
        assert self.is_query is not None
        labels = self.labels[self.is_query if side == 0 else ~self.is_query]
        return ImageFiles(self.name, self.folder, self.cells(side), labels, self.class_names, split=self.split)

    def image(self, index: int) -> Image.Image:
        """Return the image, or a picture of the text."""
        return draw_text(self._cells[index]) if self._is_text(index) else decode(self.source(index))

    def source(self, index: int) -> str:
        """Return the path of the image, or the text."""
        return self._cells[index] if self._is_text(index) else os.path.join(self.folder, self._cells[index])

    def _is_text(self, index: int) -> bool:
        assert self.is_query is not None
        return not _is_image(self.sides[0 if self.is_query[index] else 1])

    def _contents(self) -> Iterable[bytes]:
        yield repr(self.sides).encode() + self.rows.numpy().tobytes()
        for index, cell in enumerate(self._cells):
            yield cell.encode() + (b"" if self._is_text(index) else b":" + file_sample(self.source(index)))

    def subset(self, indices: Sequence[int] | NDArray[Any] | Tensor) -> PairTable:
        """Return the rows whose two samples are both selected; samples without remaining rows are dropped."""
        kept = torch.zeros(len(self), dtype=torch.bool)
        kept[torch.from_numpy(check_indices(indices, len(self)))] = True
        offset = torch.tensor([0, len(self.cells(0))])
        chosen = kept[self.rows + offset].all(dim=1)
        samples = torch.unique((self.rows + offset)[chosen])  # in order: anchors, then references
        other = copy.copy(self)
        vars(other).pop("fingerprint", None)
        place = torch.full((len(self),), -1)
        place[samples] = torch.arange(len(samples))
        other._cells = tuple(self._cells[index] for index in samples.tolist())
        assert self.is_query is not None
        other.is_query = self.is_query[samples]
        other.rows = place[(self.rows + offset)[chosen]] - torch.tensor([0, int(other.is_query.sum())])
        other.row_labels, used = renumber(self.row_labels[chosen].tolist())
        other.class_names = tuple(self.class_names[each] for each in used)
        other.labels = _labels_of_samples(other.rows, other.row_labels)
        return other


def draw_text(text: str, size: int = 160) -> Image.Image:
    """Draw a text as an image, for reports that show images.

    Examples:
        >>> draw_text("a yellow bird").size
        (160, 160)
    """
    picture = Image.new("RGB", (size, size), "white")
    lines = textwrap.wrap(text, width=size // 8)[: size // 14]
    ImageDraw.Draw(picture).multiline_text((6, 6), "\n".join(lines), fill="black")
    return picture


def _is_image(side: str) -> bool:
    return side.startswith("image")


def _find_sides(table: TableRows) -> tuple[str, str]:
    found = tuple(side for side in SIDES if side in table.values)
    if len(found) != 2:
        there = ", ".join(map(repr, found)) or "none of these"
        raise ValueError(f"{table.path} must have two of the columns {', '.join(SIDES)}, but it has {there}")
    return found[0], found[1]


def _join_rows(rows: Tensor, given: Sequence[object] | None) -> tuple[Tensor, list[int]]:
    """Return the class of each row, counted from 0, and the first row of each class; rows that share a sample or a label are joined."""
    keys: list[list[object]] = [[("a", a), ("b", b)] for a, b in rows.tolist()]
    for several, label in zip(keys, given or (), strict=False):
        several.append(("label", label))
    parent = list(range(len(keys)))

    def root(row: int) -> int:
        while parent[row] != row:
            parent[row] = row = parent[parent[row]]
        return row

    owner: dict[object, int] = {}
    for row, several in enumerate(keys):
        for key in several:
            one, other = root(row), root(owner.setdefault(key, row))
            parent[max(one, other)] = min(one, other)
    labels, first = renumber([root(row) for row in range(len(keys))])
    return labels, first


def _labels_of_samples(rows: Tensor, row_labels: Tensor) -> Tensor:
    """Return the classes of all anchors, then of all references."""
    sides = []
    for side in (0, 1):
        labels = np.empty(int(rows[:, side].max()) + 1, np.int64)
        labels[rows[:, side].numpy()] = row_labels.numpy()
        sides.append(torch.from_numpy(labels))
    return torch.cat(sides)
