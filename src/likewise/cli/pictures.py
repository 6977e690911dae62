"""The images that ``likewise embed`` is given: a folder, nested or flat, or a table."""

from __future__ import annotations

import csv
import hashlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from likewise.app import UserError, sentence
from likewise.cli.arguments import Arguments
from likewise.data import EXTENSIONS, RECIPES

TABLES = (".csv", ".tsv", ".parquet")


@dataclass(frozen=True)
class Pictures:
    """Images in files, with their classes where these are known.

    Args:
        root: where paths begin.
        paths: the files.
        labels: a class for each, −1 for none; ``None`` where no class is known.
        class_names: a name for each class.

    Examples:
        >>> len(Pictures(Path("photos"), ("a.png", "b.png"), None, ()))
        2
    """

    root: Path
    paths: tuple[str, ...]
    labels: tuple[int, ...] | None
    class_names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.paths)

    def fingerprint(self) -> str:
        """A checksum of paths, sizes and classes, so that parts of another input are not mixed in."""
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


def find_pictures(place: Path, *, root: Path | None = None, columns: Sequence[str] = ("path", "label")) -> Pictures:
    """The images of a folder, or of a table.

    Args:
        place: a folder, in which folders are classes and images beside them have none; or a CSV, TSV or Parquet file.
        root: where a table's paths begin; by default its folder.
        columns: what a table calls paths and classes; it need not have classes.

    Examples:
        >>> find_pictures(Path("nowhere"))
        Traceback (most recent call last):
        likewise.app.errors.UserError: there is no folder or table nowhere
    """
    if place.is_dir():
        return _in_folder(place)
    if not place.exists():
        raise UserError(f"there is no folder or table {place}")
    if place.suffix.lower() not in TABLES:
        raise UserError(f"{place} must be a folder, or a table ({', '.join(TABLES)}), but it is another file")
    return _in_table(place, place.parent if root is None else root, *columns)


def _in_folder(folder: Path) -> Pictures:
    paths = sorted(_walk(folder))
    if not paths:
        raise UserError(f"{folder} must have images ({' '.join(EXTENSIONS)}), but it has none")
    owners = [Path(path).parts[0] if len(Path(path).parts) > 1 else None for path in paths]
    return _pictures(folder, paths, owners)


def _walk(folder: Path) -> Iterable[str]:
    """Images below a folder, relative to it; what is hidden is left out, and a link in a circle is entered once."""
    seen = set()
    for parent, folders, files in os.walk(folder, followlinks=True):
        real = os.path.realpath(parent)
        if real in seen:
            folders.clear()
            continue
        seen.add(real)
        folders[:] = [each for each in folders if not each.startswith(".")]
        for file in files:
            if not file.startswith(".") and file.lower().endswith(EXTENSIONS):
                yield os.path.relpath(os.path.join(parent, file), folder)


def _in_table(table: Path, root: Path, path_column: str, label_column: str) -> Pictures:
    cells = read_cells(table)
    if path_column not in cells:
        listed = ", ".join(cells) or "none"
        raise UserError(f"{table} must have a column {path_column}, but it has {listed}; --path-column names another")
    paths = ["" if each is None else str(each) for each in cells[path_column]]
    if not paths or not all(paths):
        raise UserError(f"{table} must have a path in every row, and at least one row")
    blank = ("", None)
    labels = [None if each in blank else str(each) for each in cells.get(label_column, [None] * len(paths))]
    return _pictures(root, paths, labels)


def read_cells(table: Path) -> dict[str, list[Any]]:
    r"""The columns of a table: texts in a CSV or TSV file, whatever it holds in a Parquet file.

    Examples:
        >>> import tempfile
        >>> table = Path(tempfile.mkdtemp()) / "birds.csv"
        >>> _ = table.write_text("path,year\na.png,2021")
        >>> read_cells(table)
        {'path': ['a.png'], 'year': ['2021']}
    """
    return _read_parquet(table) if table.suffix.lower() == ".parquet" else _read_text(table)


def _read_text(table: Path) -> dict[str, list[Any]]:
    try:
        with table.open(newline="", encoding="utf-8-sig") as file:
            rows = list(csv.reader(file, delimiter="\t" if table.suffix.lower() == ".tsv" else ",", strict=True))
    except (csv.Error, UnicodeDecodeError) as error:
        raise UserError(f"{table} cannot be read: {sentence(error)}") from error
    header, body = [title.strip() for title in rows[0]] if rows else [], [row for row in rows[1:] if row]
    twice = [title for place, title in enumerate(header) if title in header[:place]]
    if twice:
        raise UserError(f"{table} must have a name of its own for every column, but two are called {twice[0]!r}")
    odd = [row for row in body if len(row) != len(header)]
    if odd:
        raise UserError(f"{table} must have {len(header)} cells in every row, but one has {len(odd[0])}: {odd[0][0]!r}")
    return {title: [row[place].strip() for row in body] for place, title in enumerate(header)}


def _read_parquet(table: Path) -> dict[str, list[Any]]:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError as missing:
        raise UserError("a Parquet table needs pyarrow: pip install 'likewise[data]'") from missing
    try:
        content: dict[str, list[Any]] = parquet.read_table(table).to_pydict()
    except (ArrowException, OSError) as error:
        raise UserError(f"{table} must be a Parquet file, but it cannot be read: {sentence(error)}") from error
    return content


def _pictures(root: Path, paths: Sequence[str], owners: Sequence[str | None]) -> Pictures:
    names = tuple(sorted({each for each in owners if each is not None}))
    place = {name: number for number, name in enumerate(names)}
    labels = tuple(-1 if each is None else place[each] for each in owners) if names else None
    return Pictures(root, tuple(paths), labels, names)


def add_images_option(options: Arguments) -> None:
    """``--images``, for commands that show images to a model.

    Examples:
        >>> options = Arguments("embed", "")
        >>> add_images_option(options)
        >>> options.parse_args(["--images", "glyphs"]).images
        'glyphs'
    """
    options.add_argument(
        "--images",
        metavar="NAME",
        choices=sorted(RECIPES),
        help=f"how images are shown ({', '.join(sorted(RECIPES))}); by default as in the model's run",
    )


def add_table_options(options: Arguments) -> None:
    """``--root``, ``--path-column`` and ``--label-column``, for commands that read a table of images.

    Examples:
        >>> options = Arguments("embed", "")
        >>> add_table_options(options)
        >>> options.parse_args(["--path-column", "file"]).path_column
        'file'
    """
    options.add_argument(
        "--root", metavar="FOLDER", type=Path, help="where a table's paths begin (default: its folder)"
    )
    options.add_argument("--path-column", metavar="NAME", default="path", help="a table's column of paths (path)")
    options.add_argument(
        "--label-column", metavar="NAME", default="label", help="its column of classes, if any (label)"
    )
