"""The tables of a study's page: leaderboards, ranks, differences, failures, openings, and all that was trained."""

from __future__ import annotations

import base64
import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any

from likewise.report.charts import COLORS
from likewise.report.study_charts import Dots, interval_dots
from likewise.report.study_words import (
    PLACED,
    Row,
    cell,
    experiment_names,
    filter_name,
    filter_of,
    in_words,
    labels_of,
    name_of,
    points,
)
from likewise.report.words import percent

if TYPE_CHECKING:
    from likewise.report.study import Study


# ---- leaderboards


@dataclass(frozen=True)
class Board:
    """A leaderboard: its chart and its lines.

    Args:
        setting: what it is a leaderboard of; empty for the only one.
        dots: the chart.
        lines: a dict for each place.
        confidence: of the intervals, in percent.
        fair: whether the trainings are equal in all but the method, as far as that was looked at.

    Examples:
        >>> Board("dim 64", interval_dots([("a", 0, 0.5, 0.4, 0.6)]), [], "95%", True).dots.lines[0].text
        '50.0'
    """

    setting: str
    dots: Dots
    lines: list[dict[str, Any]]
    confidence: str
    fair: bool


def boards_of(study: Study, colors: Mapping[str, int], filters: Mapping[str, str]) -> list[Board]:
    """The leaderboards, each with its chart.

    Args:
        study: what the page is about.
        colors: of the methods.
        filters: what shows the trainings of an experiment in the complete table, by its name; a setting that is called
            like an experiment has its trainings.

    Examples:
        >>> from likewise.report.study import Study
        >>> rows = [{"rank": 1, "method": "a", "mean": 0.5, "marks": "one seed; 1 failed"}]
        >>> boards_of(Study("s", leaderboard=rows), {"a": 0}, {})[0].lines[0]["marks"]
        [('one seed', False), ('1 failed', False)]
    """
    everything = filter_of({"stage": "final"})
    return [
        _board(setting, rows, colors, filters.get(setting, everything))
        for setting, rows in study.boards.items()
        if rows
    ]


def _board(setting: str, rows: Sequence[Row], colors: Mapping[str, int], within: str) -> Board:
    lines, drawn = [], []
    for place, row in enumerate(rows):
        color = colors.get(str(row.get("method")), place) % COLORS
        marks = [mark for mark in str(row["marks"] or "").split("; ") if mark]
        low, high = row.get("low"), row.get("high")
        sure = low is not None and high is not None
        lines.append(
            {
                "rank": row["rank"],
                "name": name_of(row),
                "color": color,
                "mean": percent(row["mean"], 2),
                "interval": f"{percent(low, 2)}–{percent(high, 2)}" if sure else "none",
                "seeds": row.get("seeds"),
                "behind": _behind(row, first=place == 0),
                "marks": [(mark, mark.startswith(("unfair", "tuned on test"))) for mark in marks],
                "filter": f"{filter_of({name: row[name] for name in row if name not in PLACED})} {within}",
            }
        )
        drawn.append((name_of(row), color, row["mean"], low if sure else None, high if sure else None))
    confidence = f"{100 * rows[0].get('confidence', 0.95):g}%"
    return Board(setting, interval_dots(drawn), lines, confidence, all(row.get("fair", True) for row in rows))


def _behind(row: Row, *, first: bool) -> tuple[str, str]:
    """How far a place is behind the first, and how sure that is."""
    if first:
        return "", ""
    if row.get("behind") is None:
        return "not compared", "no pairs"
    low, high = row.get("behind_low"), row.get("behind_high")
    ends = f"{points(low)} to {points(high)}" if low is not None and high is not None else "one pair"
    if not row.get("distinguishable"):
        return "not distinguishable", f"{points(row['behind'])}, {ends}"
    return points(row["behind"]), ends


# ---- the tournament


@dataclass(frozen=True)
class Heat:
    """Ranks in every experiment, colored by how good they are.

    Args:
        experiments: their names.
        metric: what was ranked by.
        lines: a dict for each method, with a cell for each experiment.
        notes: sentences below.

    Examples:
        >>> Heat(["dim 64"], "test R@1", [], []).experiments
        ['dim 64']
    """

    experiments: list[str]
    metric: str
    lines: list[dict[str, Any]]
    notes: list[str]


def heat_of(found: Mapping[str, Any] | None) -> Heat | None:
    """The table of a tournament; ``None`` where there is none.

    Examples:
        >>> line = {"method": "a", "place": 1, "total": 1.0, "average": 1.0, "deviation": None, "complete": True}
        >>> line |= {"gold": 1, "silver": 0, "bronze": 0}
        >>> line["experiments"] = [{"experiment": {"dim": 64}, "rank": 1.0, "score": 0.5, "rows": 5}]
        >>> found = heat_of({"metric": "test R@1", "experiments": [{"dim": 64}], "standings": [line]})
        >>> found.experiments, found.lines[0]["cells"][0]["score"]
        (['dim 64'], '50.0')
    """
    if not found or not found["standings"]:
        return None
    held = [dict(each) for each in found["experiments"]]
    most = max(2, len(found["standings"]))
    lines = []
    for each in found["standings"]:
        known = {_key(one["experiment"]): one for one in each["experiments"]}
        cells = [_heat(known.get(_key(experiment)), most) for experiment in held]
        line = {name: each[name] for name in ("method", "place", "gold", "silver", "bronze", "complete")}
        line |= {"total": f"{each['total']:g}", "average": f"{each['average']:.2f}", "cells": cells}
        line["deviation"] = "–" if each["deviation"] is None else f"{each['deviation']:.2f}"
        line |= {"held": len(known), "filter": filter_of({"method": each["method"], "stage": "final"})}
        lines.append(line)
    names = experiment_names(held)
    return Heat(names, str(found["metric"]), lines, [str(note) for note in found.get("notes", ())])


def _key(experiment: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple((name, str(value)) for name, value in experiment.items())


def _heat(cell: Mapping[str, Any] | None, most: int) -> dict[str, Any] | None:
    if cell is None:
        return None
    strength = round(100 * max(0.0, 1 - (cell["rank"] - 1) / (most - 1)))
    return {"rank": f"{cell['rank']:g}", "score": percent(cell["score"]), "strength": strength, "rows": cell["rows"]}


# ---- pairs, what differs, what was tried


@dataclass(frozen=True)
class Matrix:
    """Paired differences, row minus column.

    Args:
        names: of the methods.
        lines: for each method a cell for each method; ``None`` on the diagonal and without pairs.

    Examples:
        >>> Matrix(["a"], [[None]]).names
        ['a']
    """

    names: list[str]
    lines: list[list[dict[str, Any] | None]]


def matrix_of(comparisons: Sequence[Mapping[str, Any]]) -> Matrix | None:
    """The matrix of all comparisons; ``None`` where there are none.

    Examples:
        >>> pair = {"a": "x", "b": "y", "mean": 0.02, "low": 0.01, "high": 0.03, "pairs": 5, "verdict": "better"}
        >>> cell = matrix_of([pair]).lines[1][0]
        >>> cell["text"], cell["interval"], cell["verdict"]
        ('−2.00', '−3.00 to −1.00', 'worse')
    """
    cells: dict[tuple[str, str], dict[str, Any]] = {}
    turned = {"better": "worse", "worse": "better"}
    for each in comparisons:
        if each["mean"] is None:
            continue
        a, b, mean, verdict = str(each["a"]), str(each["b"]), each["mean"], str(each["verdict"])
        known = [end for end in (each["low"], each["high"]) if end is not None and isfinite(end)]
        low, high = known if len(known) == 2 else (None, None)
        cells[a, b] = _pair(mean, low, high, verdict, each["pairs"])
        left, right = (None, None) if low is None or high is None else (-high, -low)
        cells[b, a] = _pair(-mean, left, right, turned.get(verdict, verdict), each["pairs"])
    names = list(dict.fromkeys(str(name) for each in comparisons for name in (each["a"], each["b"])))
    return Matrix(names, [[cells.get((a, b)) for b in names] for a in names]) if cells else None


def _pair(mean: float, low: float | None, high: float | None, verdict: str, pairs: int) -> dict[str, Any]:
    interval = "one pair" if low is None or high is None else f"{points(low)} to {points(high)}"
    return {"text": points(mean, sign=True), "interval": interval, "verdict": verdict, "pairs": pairs}


def differences_of(fairness: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What differs, each value with those that have it; unfair ones first.

    Examples:
        >>> found = {
        ...     "what": "size",
        ...     "values": {"a": 64, "b": 64, "c": 128},
        ...     "why": "More is better.",
        ...     "severity": "note",
        ... }
        >>> differences_of([found])[0]["values"]
        {'64': ['a', 'b'], '128': ['c']}
    """
    found = []
    for each in sorted(fairness, key=lambda one: one["severity"] != "unfair"):
        shared: dict[str, list[str]] = {}
        for name, value in each["values"].items():
            shared.setdefault(in_words(value), []).append(str(name))
        found.append(
            {"what": each["what"], "why": each["why"], "unfair": each["severity"] == "unfair", "values": shared}
        )
    return found


def tried_of(search: Mapping[str, Sequence[Mapping[str, Any]]], colors: Mapping[str, int]) -> list[dict[str, Any]]:
    """For each method how much was tried, and the best of it; in the order given, for a search ranks nothing.

    Examples:
        >>> tried = [{"point": {"x": n}, "value": n / 10, "status": "done"} for n in (1, 3, 2)]
        >>> found = tried_of({"a": tried}, {"a": 0})[0]
        >>> found["best"], found["at"], found["point"]
        ('30.00', 2, {'x': '3'})
    """
    found = []
    for method, tried in search.items():
        counts = {
            status: sum(one["status"] == status for one in tried) for status in ("done", "failed", "pruned", "running")
        }
        done = [(number, one) for number, one in enumerate(tried, 1) if one["status"] == "done"]
        number, best = max(done, key=lambda each: (each[1]["value"], -each[0])) if done else (None, None)
        found.append(
            {
                "method": method,
                "color": colors.get(str(method), 0) % COLORS,
                "rounds": len(tried),
                "counts": ", ".join(f"{count} {status}" for status, count in counts.items() if count),
                "best": None if best is None else percent(best["value"], 2),
                "at": number,
                "point": {} if best is None else {name: in_words(value) for name, value in best["point"].items()},
                "filter": filter_of({"method": method, "stage": "search"}),
            }
        )
    return found


# ---- the complete table


def failures_of(rows: Sequence[Row], columns: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    """Trainings that failed and those that were pruned, with what is known about why.

    Examples:
        >>> rows = [{"method": "a", "dim": d, "seed": 0, "status": s} for d, s in ((64, "done"), (128, "failed"))]
        >>> failures_of(rows, ["method", "dim", "seed", "status"])["failed"][0]["setting"]
        'dim 128, seed 0'
    """
    # what is the same in all trainings tells nothing about one of them
    labels = {name for name in labels_of(rows) if len({str(row.get(name)) for row in rows}) > 1}
    found: dict[str, list[dict[str, Any]]] = {"failed": [], "pruned": []}
    for row in rows:
        if row.get("status") in found:
            setting = [
                f"{name} {cell(name, row[name])}" for name in columns if name in labels and row.get(name) is not None
            ]
            setting += [f"{name} {row[name]}" for name in ("seed", "fold") if row.get(name) is not None]
            about = {"method": row["method"], "setting": ", ".join(setting)}
            about |= {name: row.get(name) or "" for name in ("error", "run", "command", "stage")}
            found[str(row["status"])].append(about)
    return found


def table_of(rows: Sequence[Row], columns: Sequence[str], metric: str) -> dict[str, Any]:
    """Every training: for each column its name and kind, for each cell its text and what it is sorted by.

    Examples:
        >>> table_of([{"method": "a", "test R@1": 0.5}], ["method", "test R@1"], "test R@1")["lines"]
        [[('a', ''), ('50.00', '0.5')]]
    """
    heads = []
    for column in columns:
        known = [row.get(column) for row in rows if row.get(column) is not None]
        number = all(isinstance(value, int | float) and not isinstance(value, bool) for value in known)
        kind = column if column in ("command", "run", "error", "key", "status") else "number" if number else "text"
        heads.append({"name": column, "kind": kind, "filter": filter_name(column), "lead": column == metric})
    lines = [[(cell(column, row.get(column)), _number(row.get(column))) for column in columns] for row in rows]
    return {"heads": heads, "lines": lines}


def _number(value: Any) -> str:
    """What a cell is sorted by, if that is a number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        return ""
    return repr(value)


def csv_link(rows: Sequence[Row]) -> str:
    """All rows and columns as a CSV file inside a link.

    Examples:
        >>> link = csv_link([{"method": "a", "test R@1": 0.5}, {"method": "b, c", "test R@1": None}])
        >>> base64.b64decode(link.partition(",")[2]).decode().splitlines()
        ['method,test R@1', 'a,0.5', '"b, c",']
    """
    columns = list(dict.fromkeys(column for row in rows for column in row))
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\r\n")
    writer.writerow(columns)
    writer.writerows([["" if row.get(column) is None else row[column] for column in columns] for row in rows])
    return "data:text/csv;charset=utf-8;base64," + base64.b64encode(file.getvalue().encode()).decode()


# ---- test sets


def openings_of(rows: Sequence[Row], records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """How often test sets were opened, by run, and when.

    Examples:
        >>> found = openings_of([{"method": "a", "run": "runs/1", "openings": 1}, {"method": "b", "openings": 0}], [])
        >>> found["total"], found["untimed"]
        (1, 1)
    """
    counts: dict[str, int] = {}
    unknown = 0
    for number, row in enumerate(rows):
        name = str(row.get("run") or f"row {number + 1}")
        if row.get("openings") is None:
            unknown += 1
        else:
            counts[name] = max(counts.get(name, 0), int(row["openings"]))
    recorded: dict[str, int] = {}
    for each in records:
        recorded[str(each["run"])] = recorded.get(str(each["run"]), 0) + 1
    for run, times in recorded.items():
        counts[run] = max(counts.get(run, 0), times)
    total, timed = sum(counts.values()), len(records)
    return {
        "total": total,
        "runs": len(counts),
        "once": sum(times == 1 for times in counts.values()),
        "never": sum(times == 0 for times in counts.values()),
        "often": {run: times for run, times in counts.items() if times > 1},
        "unknown": unknown,
        "untimed": total - timed,
        "early": [each for each in records if each.get("finished") is False],
        "records": sorted(records, key=lambda each: (str(each.get("opened") or ""), str(each["run"]))),
        "counts": counts,
    }
