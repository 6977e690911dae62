"""The images of a folder, nested or flat, or of a table."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from likewise.app.embedding_options import ImageOptions
from likewise.app.errors import UserError, sentence
from likewise.data import EXTENSIONS, TABLES, read_cells, walk_images


@dataclass(frozen=True)
class ImageList:
    """Image files, with their classes if known.

    Args:
        root: the folder that paths are relative to.
        paths: the files.
        labels: the class of each file, −1 for none; ``None`` if no class is known.
        class_names: the names of the classes.

    Examples:
        >>> len(ImageList(Path("photos"), ("a.png", "b.png")))
        2
    """

    root: Path
    paths: tuple[str, ...]
    labels: tuple[int, ...] | None = None
    class_names: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.paths)

    @property
    def files(self) -> list[Path]:
        """The files with their root."""
        return [self.root / path for path in self.paths]

    def fingerprint(self) -> str:
        """A checksum of paths, sizes and classes, so that chunks of another input are not mixed in."""
        digest = hashlib.sha256()
        for index, path in enumerate(self.paths):
            try:
                size = os.stat(self.root / path).st_size
            except OSError:
                size = -1
            label = -1 if self.labels is None else self.labels[index]
            digest.update(os.fsencode(path) + f"\0{size}\0{label}\0".encode())
        digest.update("\0".join(self.class_names).encode())
        return digest.hexdigest()


def is_image_source(place: Path) -> bool:
    """Whether a place is a folder, or named like a table of images.

    Examples:
        >>> is_image_source(Path("birds.csv")), is_image_source(Path("wren.jpg"))
        (True, False)
    """
    return place.is_dir() or place.suffix.lower() in TABLES


def find_images(place: str | Path, options: ImageOptions | None = None) -> ImageList:
    """List the images of a folder or of a table.

    Args:
        place: a folder, in which folders are classes and images next to them have none; or a CSV, TSV or Parquet file.
        options: the columns of a table, and whether links are followed.

    Examples:
        >>> find_images("nowhere")
        Traceback (most recent call last):
        likewise.app.errors.UserError: there is no folder or table nowhere
    """
    place, options = Path(place), options or ImageOptions()
    if place.is_dir():
        return _list_folder(place, options.follow_links)
    return list_rows(place, read_columns(place), options)


def _list_folder(folder: Path, follow_links: bool) -> ImageList:
    paths = sorted(walk_images(folder, follow_links=follow_links))
    if not paths:
        raise UserError(f"{folder} must contain images ({' '.join(EXTENSIONS)}), but it has none")
    return _with_classes(folder, paths, [Path(path).parts[0] if len(Path(path).parts) > 1 else None for path in paths])


def read_columns(table: Path) -> dict[str, list[Any]]:
    """Read the columns of a table: texts from a CSV or TSV file, typed values from a Parquet file.

    Examples:
        >>> read_columns(Path("pyproject.toml"))
        Traceback (most recent call last):
        likewise.app.errors.UserError: ...
    """
    if not table.exists():
        raise UserError(f"there is no folder or table {table}")
    if table.suffix.lower() not in TABLES:
        raise UserError(f"{table} must be a folder, or a table ({', '.join(TABLES)}), but it is another file")
    try:
        return read_cells(table)[0]
    except (ValueError, ImportError, OSError) as error:
        raise UserError(sentence(error)) from error


def list_rows(table: Path, columns: Mapping[str, Sequence[Any]], options: ImageOptions) -> ImageList:
    """List the images in the rows of a table.

    Args:
        table: its file.
        columns: its cells.
        options: the columns of the table.

    Examples:
        >>> list_rows(Path("birds.csv"), {"path": ["a.png"], "label": ["wren"]}, ImageOptions()).class_names
        ('wren',)
    """
    if options.path_column not in columns:
        listed, name = ", ".join(columns) or "none", options.path_column
        raise UserError(f"{table} must have a column {name}, but it has {listed}; set --path-column")
    paths = ["" if each is None else str(each) for each in columns[options.path_column]]
    if not paths or not all(paths):
        raise UserError(f"{table} must have a path in every row, and at least one row")
    cells = columns.get(options.label_column, [None] * len(paths))
    labels = [None if each in ("", None) else str(each) for each in cells]
    return _with_classes(table.parent if options.root is None else Path(options.root), paths, labels)


def _with_classes(root: Path, paths: Sequence[str], labels: Sequence[str | None]) -> ImageList:
    names = tuple(sorted({each for each in labels if each is not None}))
    code = {name: number for number, name in enumerate(names)}
    codes = tuple(-1 if each is None else code[each] for each in labels) if names else None
    return ImageList(root, tuple(paths), codes, names)
