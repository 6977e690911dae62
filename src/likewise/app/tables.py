"""Write rows to tables: CSV, Parquet and JSON lines."""

from __future__ import annotations

import csv
import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from likewise.app.errors import UserError, writing
from likewise.files import atomic_write
from likewise.sanitize import escape_formula

TABLE_FORMATS = (".csv", ".parquet", ".jsonl")


def check_file(option: str, file: Path, formats: Collection[str]) -> None:
    """Refuse a file that cannot be written, before its content is computed.

    Args:
        option: the option, for the error.
        file: the file.
        formats: the allowed extensions.

    Examples:
        >>> check_file("--out", Path("found.xlsx"), TABLE_FORMATS)
        Traceback (most recent call last):
        likewise.app.errors.UserError: --out must be a file that ends in .csv, .parquet, .jsonl, but it is found.xlsx
    """
    if file.suffix.lower() not in formats:
        raise UserError(f"{option} must be a file that ends in {', '.join(formats)}, but it is {file}")
    if file.is_dir():
        raise UserError(f"{option} must be a file, but {file} is a folder")
    if not file.parent.is_dir():
        raise UserError(f"{option} must be a file in an existing folder, but there is no folder {file.parent}")


def write_rows(
    out: str | Path, rows: Sequence[Mapping[str, Any]], columns: Sequence[str], *, raw: bool = False
) -> None:
    """Write rows to a CSV, Parquet or JSON-lines file, which is replaced atomically.

    Args:
        out: the file, which ends in ``.csv``, ``.parquet`` or ``.jsonl``.
        rows: such as those of `answer_rows`.
        columns: the columns and their order; a row may lack some.
        raw: write texts to CSV unchanged; otherwise texts that a spreadsheet would evaluate are escaped.

    Examples:
        >>> import tempfile
        >>> file = Path(tempfile.mkdtemp()) / "found.csv"
        >>> write_rows(file, [{"id": 3, "path": "b.jpg"}], ["id", "path"])
        >>> file.read_text().split()
        ['id,path', '3,b.jpg']
    """
    out = Path(out)
    check_file("--out", out, TABLE_FORMATS)
    with writing(out), atomic_write(out) as part:
        if out.suffix.lower() == ".jsonl":
            lines = (json.dumps({name: row.get(name) for name in columns}, ensure_ascii=False) for row in rows)
            part.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
        elif out.suffix.lower() == ".csv":
            with part.open("w", newline="", encoding="utf-8") as file:
                writer = csv.writer(file, lineterminator="\n")
                for cells in (columns, *([row.get(name) for name in columns] for row in rows)):
                    writer.writerow(cells if raw else map(escape_formula, cells))
        else:
            import pyarrow
            from pyarrow import parquet

            content = {name: _unify([row.get(name) for row in rows]) for name in columns}
            parquet.write_table(pyarrow.table(content), part)


def _unify(values: Sequence[object]) -> list[object]:
    """A column of one type: text if there are text and numbers, as in CSV."""
    types = {type(value) for value in values if value is not None}
    is_mixed = len(types) > 1 and types != {int, float}
    return [str(value) if is_mixed and value is not None else value for value in values]
