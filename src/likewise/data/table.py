"""Images listed in a table: CSV or Parquet, one row per image."""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from likewise.data.dataset import Transform, renumber
from likewise.data.image_files import ImageFiles, missing_files
from likewise.sanitize import unescape_formula

COLUMNS = ("path", "label", "split", "role", "camera", "category", "x", "y", "width", "height")
TABLES = (".csv", ".tsv", ".parquet")
"""File extensions of tables."""

_NEEDED = ("path", "label")
_BOX = ("x", "y", "width", "height")


class ImageTable(ImageFiles):
    """Images listed in a table: a path and a label per row, and optional columns.

    The columns are ``path`` and ``label``, and optionally ``split``, ``role`` (query or gallery), ``camera``, ``category``,
    and the bounding box ``x``, ``y``, ``width``, ``height`` (empty for the whole image); others are ignored.  Labels are
    strings or integers; classes are in ascending order.  In a split, either all rows have a role or none, and either all
    have a camera or none.

    Args:
        path: a ``.csv``, ``.tsv`` or ``.parquet`` file.
        root: folder of relative paths; by default the folder of the table.
        split: read only the rows of this split; by default all rows.
        columns: titles of columns with other names, such as ``{"path": "file", "label": "species"}``.
        levels: titles of columns with coarser labels, finer first, such as ``["genus", "family"]``; ``levels`` of the data
            set is then ``(n, L)``, the class first.
        tags: title of a column with several labels per image: a list, or a text separated by semicolons; ``tags`` of the
            data set is then ``(n, C)`` booleans, and ``tag_names`` has the names of its columns.
        name: name of the data set; by default the name of the table.
        transform: function applied to an image that ``[index]`` returns.
        crop: crop each image to its bounding box.
        check: check that every image exists.

    Examples:
        >>> import tempfile
        >>> from PIL import Image
        >>> folder = Path(tempfile.mkdtemp())
        >>> for name in ("a.png", "b.png"):
        ...     Image.new("RGB", (2, 2)).save(folder / name)
        >>> _ = (folder / "birds.csv").write_text('''path,label,split
        ... a.png,robin,train
        ... b.png,wren,test''')
        >>> ImageTable(folder / "birds.csv", split="test")
        birds, test: 1 image of 1 class
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        root: str | os.PathLike[str] | None = None,
        split: str | None = None,
        *,
        columns: Mapping[str, str] | None = None,
        levels: Sequence[str] = (),
        tags: str | None = None,
        name: str | None = None,
        transform: Transform | None = None,
        crop: bool = False,
        check: bool = True,
    ):
        if isinstance(levels, str):
            raise TypeError(f"levels must be a list of columns, but it is the text {levels!r}")
        table = read_rows(Path(path), dict(columns or {}), [*levels, *([] if tags is None else [tags])])
        if split is not None:
            table = table.of_split(split)
        folder = Path(path).parent if root is None else Path(root)
        files = table.texts("path")
        labels, names = _classes(table.classes("label"))
        title = Path(path).stem if name is None else name
        missing = missing_files(folder, files) if check else []
        if missing:
            raise table.fault(
                missing[0], "path", f"a file in {folder} (set root= to the folder that paths are relative to)"
            )
        categories = None if "category" not in table.values else _classes(table.classes("category"))
        coarser = [_classes(table.classes(level))[0] for level in levels]
        marked, tag_names = (None, ()) if tags is None else table.tags(tags)
        self.tag_names: tuple[str, ...] = tag_names
        super().__init__(
            title,
            folder,
            files,
            labels,
            names,
            split=split,
            transform=transform,
            crop=crop,
            categories=None if categories is None else categories[0],
            category_names=() if categories is None else categories[1],
            boxes=table.boxes(),
            is_query=table.roles(whole=split is None and "split" in table.values),
            coarser=torch.stack(coarser, dim=1) if coarser else None,
            tags=marked,
            cameras=table.cameras(whole=split is None and "split" in table.values),
        )


@dataclass(frozen=True)
class TableRows:
    """The known columns of a table, and the line of each row, for messages."""

    path: Path
    values: dict[str, list[Any]]
    titles: dict[str, str]
    row: str
    places: list[int]

    def fault(self, index: int, column: str, must: str) -> ValueError:
        """Return the error about a cell, which names the cell's position."""
        value = self.values[column][index]
        where = f"{self.path}, {self.row} {self.places[index]}, column {self.titles[column]!r}"
        return ValueError(f"{where}: it must be {must}, but it is {value!r}")

    def take(self, indices: Sequence[int]) -> TableRows:
        """Return the rows at these indices."""
        values = {column: [cells[index] for index in indices] for column, cells in self.values.items()}
        return TableRows(self.path, values, self.titles, self.row, [self.places[index] for index in indices])

    def of_split(self, split: str) -> TableRows:
        """Return the rows of a split."""
        if "split" not in self.values:
            raise ValueError(f"split must be None, because {self.path} has no column 'split', but it is {split!r}")
        kept = [index for index, value in enumerate(self.values["split"]) if str(value) == split]
        if not kept:
            there = sorted({str(value) for value in self.values["split"]})
            raise ValueError(f"split must be one of {', '.join(map(repr, there))} in {self.path}, but it is {split!r}")
        return self.take(kept)

    def texts(self, column: str) -> list[str]:
        """Return the cells of a column, all of which must be texts."""
        for index, value in enumerate(self.values[column]):
            if not isinstance(value, str) or not value:
                raise self.fault(index, column, "a text")
        return self.values[column]

    def classes(self, column: str) -> list[Any]:
        """Return the labels of a column: integers if all cells are integers, and texts otherwise."""
        cells = self.values[column]
        for index, value in enumerate(cells):
            if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
                raise self.fault(index, column, "a text or a whole number")
        try:
            return [int(value) for value in cells]
        except ValueError:
            return [str(value) for value in cells]

    def tags(self, column: str) -> tuple[Tensor, tuple[str, ...]]:
        """Return the tags of each row, ``(n, C)`` booleans, and the names of the tags in order."""
        lists: list[list[str]] = []
        for index, cell in enumerate(self.values[column]):
            if isinstance(cell, str):
                cell = [each.strip() for each in cell.split(";") if each.strip()]
            elif not isinstance(cell, list) and not _blank(cell):
                raise self.fault(index, column, "a list of labels, or texts with semicolons between them")
            lists.append([str(each) for each in cell or []])
        names = sorted({each for tags in lists for each in tags})
        return torch.tensor([[name in tags for name in names] for tags in lists]).view(len(lists), -1), tuple(names)

    def roles(self, *, whole: bool) -> Tensor | None:
        """Return which rows are queries; ``None`` if no row has a role, or if training rows, which have none, are included."""
        cells = self.values.get("role", [])
        for index, value in enumerate(cells):
            if not _blank(value) and value not in ("query", "gallery"):
                raise self.fault(index, "role", "'query', 'gallery' or empty")
        without = [index for index, value in enumerate(cells) if _blank(value)]
        if len(without) == len(cells) or (without and whole):
            return None
        if without:
            raise self.fault(without[0], "role", "'query' or 'gallery', as other rows have a role")
        return torch.tensor([value == "query" for value in cells])

    def cameras(self, *, whole: bool) -> Tensor | None:
        """Return the camera of each row, counted from 0; ``None`` if no row has one, or if training rows have none."""
        blank = [index for index, value in enumerate(self.values.get("camera", [])) if _blank(value)]
        if "camera" not in self.values or len(blank) == len(self.places) or (blank and whole):
            return None
        if blank:
            raise self.fault(blank[0], "camera", "a text or a whole number, as other rows have a camera")
        return _classes(self.classes("camera"))[0]

    def boxes(self) -> Tensor | None:
        """Return left, top, width and height of each row; NaN where all four cells are empty."""
        if "x" not in self.values:
            return None
        boxes = torch.full((len(self.places), 4), torch.nan)
        for index, cells in enumerate(zip(*(self.values[side] for side in _BOX), strict=True)):
            if all(_blank(cell) for cell in cells):
                continue
            for side, cell in enumerate(cells):
                try:
                    boxes[index, side] = float(cell)
                except (TypeError, ValueError):
                    raise self.fault(index, _BOX[side], "a number, or empty with the other three") from None
        return boxes


def read_rows(
    path: Path,
    renamed: dict[str, str],
    more: Sequence[str] = (),
    *,
    known: Sequence[str] = COLUMNS,
    needed: Sequence[str] = _NEEDED,
) -> TableRows:
    """Read the rows of a table.

    Args:
        path: the table.
        renamed: titles of known columns with other names.
        more: titles of further columns, which are required.
        known: columns that are read if they exist.
        needed: required columns.
    """
    unknown = [column for column in renamed if column not in known]
    if unknown:
        raise ValueError(f"columns must name some of {', '.join(known)}, but it names {unknown[0]!r}")
    cells, places = read_cells(path)
    titles = {**{column: renamed.get(column, column) for column in known}, **{column: column for column in more}}
    for column, title in titles.items():
        if title not in cells and (column in needed or column in renamed or column in more):
            raise ValueError(f"{path} must have a column {title!r}, but it has {', '.join(map(repr, cells)) or 'none'}")
    sides = [side for side in _BOX if titles.get(side) in cells]
    if 0 < len(sides) < len(_BOX):
        raise ValueError(
            f"{path} must have all of the columns {', '.join(_BOX)} or none, but it has {', '.join(sides)}"
        )
    if not places:
        raise ValueError(f"{path} must have at least one row, but it has none")
    row = "row" if path.suffix.lower() == ".parquet" else "line"
    return TableRows(
        path, {column: cells[title] for column, title in titles.items() if title in cells}, titles, row, places
    )


def read_cells(path: Path, columns: Sequence[str] | None = None) -> tuple[dict[str, list[Any]], list[int]]:
    r"""Read the columns of a table: texts from a CSV or TSV file, typed values from a Parquet file.

    Args:
        path: a ``.csv``, ``.tsv`` or ``.parquet`` file.
        columns: read only these, if the table has them; by default all.

    Returns:
        The cells by column, and the position of each row: the line on which it ends, or its number in a Parquet file.

    Examples:
        >>> import tempfile
        >>> table = Path(tempfile.mkdtemp()) / "birds.csv"
        >>> _ = table.write_text("path,year\na.png,2021")
        >>> read_cells(table)
        ({'path': ['a.png'], 'year': ['2021']}, [2])
    """
    if path.suffix.lower() not in TABLES:
        raise ValueError(f"path must end with {', '.join(TABLES)}, but it is {str(path)!r}")
    if not path.is_file():
        raise FileNotFoundError(f"path must be a table, but there is no file {str(path)!r}")
    if path.suffix.lower() == ".parquet":
        return _read_parquet(path, columns)
    cells, places = _read_text(path)
    return {name: each for name, each in cells.items() if columns is None or name in columns}, places


def _read_text(path: Path) -> tuple[dict[str, list[Any]], list[int]]:
    """Read the columns of a CSV file, and the line on which each row ends."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        reader = csv.reader(file, delimiter="\t" if path.suffix.lower() == ".tsv" else ",", strict=True)
        try:
            header = _number_sides([unescape_formula(title.strip()) for title in next(reader, [])])
            twice = {title for title in header if header.count(title) > 1}
            if twice:
                raise ValueError(f"{path} must name each column once, but it names {min(twice)!r} twice")
            columns: list[list[Any]] = [[] for _ in header]
            places = []
            for cells in reader:
                if not cells:
                    continue
                if len(cells) != len(header):
                    raise ValueError(
                        f"{path}, line {reader.line_num} must have {len(header)} cells, but it has {len(cells)}"
                    )
                for column, cell in zip(columns, cells, strict=True):
                    column.append(unescape_formula(cell.strip()))
                places.append(reader.line_num)
        except csv.Error as error:
            raise ValueError(f"{path}, line {reader.line_num} is not valid CSV: {error}") from error
        except UnicodeDecodeError as error:
            raise ValueError(f"{path} must be encoded in UTF-8, but it is not: {error}") from error
    return dict(zip(header, columns, strict=True)), places


def _number_sides(header: list[str]) -> list[str]:
    """Return the titles of a table; in a table of pairs the second ``text`` is ``text_2``, and the second ``image`` ``image_2``."""
    return [
        f"{title}_2" if title in ("image", "text") and header[:place].count(title) == 1 else title
        for place, title in enumerate(header)
    ]


def _read_parquet(path: Path, columns: Sequence[str] | None) -> tuple[dict[str, list[Any]], list[int]]:
    """Read the columns of a Parquet file, and the numbers of its rows, from 1."""
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import read_schema, read_table
    except ImportError as missing:
        raise ImportError("a Parquet table needs pyarrow; install the extra likewise[data]") from missing
    try:
        wanted = None if columns is None else [name for name in read_schema(path).names if name in columns]
        content = read_table(path, columns=wanted)
    except (ArrowException, OSError) as error:
        raise ValueError(f"{path} must be a Parquet file, but it cannot be read: {error}") from error
    return content.to_pydict(), list(range(1, content.num_rows + 1))


def _classes(values: list[Any]) -> tuple[Tensor, list[str]]:
    """Return labels and class names in the order of the values."""
    kept: list[Any] = sorted(set(values))
    place = {value: position for position, value in enumerate(kept)}
    return renumber([place[value] for value in values])[0], [str(value) for value in kept]


def _blank(value: object) -> bool:
    return value is None or value == "" or value != value  # NaN marks a missing value
