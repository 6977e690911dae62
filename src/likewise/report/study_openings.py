"""The openings of the test sets of a study's runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from likewise.report.blocks import Cell, Table, yes_or_no
from likewise.report.study_names import Row
from likewise.text import moment


@dataclass(frozen=True)
class Openings:
    """How often test sets were opened.

    Args:
        times: the number of openings of each run.
        unknown: the number of runs whose openings are not recorded.
        records: recorded openings, sorted by time.

    Examples:
        >>> opened = openings_of([{"method": "a", "run": "runs/1", "openings": 1}, {"method": "b", "openings": 0}], [])
        >>> opened.total, opened.once, opened.never
        (1, 1, 1)
    """

    times: Mapping[str, int]
    unknown: int
    records: Sequence[Mapping[str, Any]]

    @property
    def total(self) -> int:
        """The total number of openings."""
        return sum(self.times.values())

    @property
    def once(self) -> int:
        """The number of runs whose test set was opened once."""
        return sum(each == 1 for each in self.times.values())

    @property
    def never(self) -> int:
        """The number of runs whose test set was not opened."""
        return sum(each == 0 for each in self.times.values())

    @property
    def repeated(self) -> dict[str, int]:
        """The runs whose test set was opened more than once, with the number of openings."""
        return {run: each for run, each in self.times.items() if each > 1}

    @property
    def early(self) -> set[str]:
        """The runs whose test set was opened before training had ended."""
        return {str(each["run"]) for each in self.records if each.get("finished") is False}

    def table(self) -> Table:
        """Create the table of recorded openings."""
        rows: list[list[str | Cell]] = []
        for each in self.records:
            ended = Cell("–") if each.get("finished") is None else yes_or_no(each["finished"])
            time = Cell(moment(each.get("opened") or "–"), kind="time")
            rows.append([time, Cell(str(each["run"]), kind="code"), str(each.get("why") or "–"), ended])
        return Table("Openings of test sets", ["opened", "run", "why", "training had ended"], rows, "plain")


def openings_of(rows: Sequence[Row], records: Sequence[Mapping[str, Any]]) -> Openings:
    """Count the openings of test sets by run.

    Examples:
        >>> openings_of([{"method": "a", "openings": None}], []).unknown
        1
    """
    times: dict[str, int] = {}
    for number, row in enumerate(rows):
        name = str(row.get("run") or f"row {number + 1}")
        if row.get("openings") is not None:
            times[name] = max(times.get(name, 0), int(row["openings"]))
    recorded: dict[str, int] = {}
    for each in records:
        recorded[str(each["run"])] = recorded.get(str(each["run"]), 0) + 1
    for run, number in recorded.items():
        times[run] = max(times.get(run, 0), number)
    unknown = sum(row.get("openings") is None for row in rows)
    return Openings(times, unknown, sorted(records, key=lambda each: (str(each.get("opened") or ""), str(each["run"]))))
