"""The complete table of a study's page: all runs, with a filter and a download."""

from __future__ import annotations

import base64
import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from likewise.report.axes import is_number
from likewise.report.blocks import Cell, Table
from likewise.report.study_names import Row, cell_text, filter_name
from likewise.report.words import many
from likewise.sanitize import escape_formula


@dataclass(frozen=True)
class CompleteTable:
    """The table of all runs, with a filter and a download.

    Args:
        table: the table.
        count: the number of rows, as text.
        csv: a data URI with all rows and columns, not rounded.

    Examples:
        >>> complete_table([{"method": "a", "test R@1": 0.5}], ["method", "test R@1"], "test R@1").count
        '1 row'
    """

    table: Table
    count: str
    csv: str


def complete_table(rows: Sequence[Row], columns: Sequence[str], metric: str) -> CompleteTable:
    """Create the table of all runs, which can be sorted and filtered.

    Examples:
        >>> made = complete_table([{"method": "a", "test R@1": 0.5}], ["method", "test R@1"], "test R@1")
        >>> made.table.rows[0][1].text, made.table.rows[0][1].number
        ('50.00', '0.5')
    """
    kinds = {}
    for column in columns:
        known = [row.get(column) for row in rows if row.get(column) is not None]
        number = all(isinstance(value, int | float) and not isinstance(value, bool) for value in known)
        named = {"run": "code", "key": "code", "error": "error", "command": "command", "status": "status"}.get(
            column, ""
        )
        kinds[column] = named or (f"number{' lead' if column == metric else ''}" if number else "")
    head = [
        Cell(column, kind=kind.split()[0] if kind else "", filter=filter_name(column)) for column, kind in kinds.items()
    ]
    lines = [[_complete_cell(column, row.get(column), kind) for column, kind in kinds.items()] for row in rows]
    return CompleteTable(Table("All runs", head, lines, "all"), many(len(rows), "row"), csv_link(rows))


def _complete_cell(column: str, value: Any, kind: str) -> Cell:
    text = cell_text(column, value)
    if kind == "command" and text != "–":
        return Cell("", fold=text)
    if kind == "status":
        return Cell(text, kind=text if text in ("failed", "pruned") else "")
    return Cell(text, kind=kind, number=repr(value) if is_number(value) else "")


def csv_link(rows: Sequence[Row]) -> str:
    """Return all rows and columns as a data URI of a CSV file; texts that a spreadsheet would evaluate are escaped.

    Examples:
        >>> link = csv_link([{"method": "=a", "test R@1": -0.5}, {"method": "b, c", "test R@1": None}])
        >>> base64.b64decode(link.partition(",")[2]).decode().splitlines()
        ['method,test R@1', "'=a,-0.5", '"b, c",']
    """
    columns = list(dict.fromkeys(column for row in rows for column in row))
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\r\n")
    writer.writerow(map(escape_formula, columns))
    for row in rows:
        writer.writerow(["" if row.get(column) is None else escape_formula(row[column]) for column in columns])
    return "data:text/csv;charset=utf-8;base64," + base64.b64encode(file.getvalue().encode()).decode()
