"""The tables of a study's page: leaderboards, ranks, differences, searches and failures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from likewise.report.blocks import Cell, Table
from likewise.report.charts import COLORS
from likewise.report.row_charts import Entry
from likewise.report.study_names import (
    RANK_COLUMNS,
    Row,
    cell_text,
    experiment_names,
    filter_of,
    name_of,
    setting_columns,
)
from likewise.report.words import in_words, many, percent, points

FEWEST = 3
"""The minimum number of seeds or pairs for an interval: with two there is one degree of freedom, and the width is arbitrary."""


def too_few(number: Any) -> bool:
    """Whether a number of seeds or pairs is too small for an interval; false if unknown.

    Examples:
        >>> too_few(2), too_few(3), too_few(None)
        (True, False, False)
    """
    return number is not None and number < FEWEST


def interval_of(low: float | None, high: float | None, number: Any, noun: str, digits: int = 2) -> str:
    """Format an interval in percent, or why there is none.

    Examples:
        >>> (
        ...     interval_of(0.41, 0.43, 5, "seed"),
        ...     interval_of(0.41, 0.43, 2, "seed"),
        ...     interval_of(None, None, None, "seed"),
        ... )
        ('41.00–43.00', '2 seeds: no interval', 'no interval')
    """
    if too_few(number):
        return f"{many(int(number), noun)}: no interval"
    if low is None or high is None or not (isfinite(low) and isfinite(high)):
        return "no interval"
    return f"{percent(low, digits)}–{percent(high, digits)}"


# ---- leaderboards


def board_entries(rows: Sequence[Row], colors: Mapping[str, int]) -> list[Entry]:
    """Return the entries of the chart of a leaderboard.

    Examples:
        >>> board_entries([{"rank": 1, "method": "a", "mean": 0.5, "seeds": 2, "low": 0.4, "high": 0.6}], {})[0].note
        'no interval'
    """
    entries = []
    for place, row in enumerate(rows):
        color = colors.get(str(row.get("method")), place) % COLORS
        low, high = (None, None) if too_few(row.get("seeds")) else (row.get("low"), row.get("high"))
        entries.append(Entry(name_of(row), color, row["mean"], low, high, "no interval"))
    return entries


def board_table(rows: Sequence[Row], metric: str, setting: str, runs: str) -> Table:
    """Create the table of a leaderboard.

    Args:
        rows: the rows.
        metric: the name of the metric.
        setting: the name of the setting, if there are several leaderboards.
        runs: the filter of its runs in the complete table.

    Examples:
        >>> table = board_table([{"rank": 1, "method": "a", "mean": 0.5, "marks": "one seed; 1 failed"}], "R@1", "", "")
        >>> table.rows[0][-1].marks
        (('one seed', False), ('1 failed', False))
    """
    fair = all(row.get("fair", True) for row in rows)
    lines: list[list[str | Cell]] = []
    for place, row in enumerate(rows):
        marks = [mark for mark in str(row["marks"] or "").split("; ") if mark]
        seeds = row.get("seeds")
        shown = f"{filter_of({name: row[name] for name in row if name not in RANK_COLUMNS})} {runs}"
        lines.append(
            [
                Cell(name_of(row), rank=f"{row['rank']}{'' if fair else '*'}", filter=shown),
                percent(row["mean"], 2),
                interval_of(row.get("low"), row.get("high"), seeds, "seed"),
                "–" if seeds is None else str(seeds),
                _behind(row, first=place == 0),
                Cell(
                    "", kind="left", marks=tuple((mark, mark.startswith(("unfair", "tuned on test"))) for mark in marks)
                ),
            ]
        )
    sure = f"{100 * rows[0].get('confidence', 0.95):g}% interval"
    head: list[str | Cell] = ["method", metric, sure, "seeds", "behind the first", Cell("marks", kind="left")]
    return Table(f"Leaderboard {setting}", head, lines)


def _behind(row: Row, *, first: bool) -> str | Cell:
    """Format the difference from the first method, and its interval."""
    if first:
        return ""
    if row.get("behind") is None:
        return Cell("not compared", "no pairs")
    low, high, pairs = row.get("behind_low"), row.get("behind_high"), row.get("pairs")
    if too_few(pairs) or low is None or high is None:
        return Cell(points(row["behind"]), f"{many(int(pairs or 1), 'pair')}: no interval", "words")
    ends = f"{points(low)} to {points(high)}"
    if not row.get("distinguishable"):
        return Cell("not distinguishable", f"{points(row['behind'])}, {ends}", "words")
    return Cell(points(row["behind"]), ends)


# ---- the tournament


def tournament_table(tournament: Mapping[str, Any]) -> Table:
    """Create the table of ranks in every experiment; the color shows the rank.

    Examples:
        >>> line = {"method": "a", "place": 1, "total": 1.0, "average": 1.0, "deviation": None, "complete": True}
        >>> line |= {"gold": 1, "silver": 0, "bronze": 0}
        >>> line["experiments"] = [{"experiment": {"dim": 64}, "rank": 1.0, "score": 0.5, "rows": 5}]
        >>> tournament_table({"experiments": [{"dim": 64}], "standings": [line]}).rows[0][1].small
        '50.0'
    """
    experiments = [dict(each) for each in tournament["experiments"]]
    most = max(2, len(tournament["standings"]))
    rows: list[list[str | Cell]] = []
    for each in tournament["standings"]:
        known = {_key(one["experiment"]): one for one in each["experiments"]}
        star = "" if each["complete"] else "*"
        partial = "" if each["complete"] else f"* {len(known)} of {many(len(experiments), 'experiment')}"
        shown = filter_of({"method": each["method"], "stage": "final"})
        rows.append(
            [
                Cell(str(each["method"]), partial, rank=str(each["place"]), filter=shown),
                *(_rank(known.get(_key(experiment)), most) for experiment in experiments),
                f"{each['total']:g}",
                Cell(f"{each['average']:.2f}{star}", kind="sum"),
                "–" if each["deviation"] is None else f"{each['deviation']:.2f}",
                *(str(each[medal]) for medal in ("gold", "silver", "bronze")),
            ]
        )
    names = [Cell(name, kind="experiment") for name in experiment_names(experiments)]
    sd = Cell("sd", title="standard deviation of the ranks")
    return Table(
        "Tournament", ["method", *names, "total", "average", sd, "🥇 gold", "🥈 silver", "🥉 bronze"], rows, "heat"
    )


def _key(experiment: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple((name, str(value)) for name, value in experiment.items())


def _rank(result: Mapping[str, Any] | None, most: int) -> Cell:
    if result is None:
        return Cell("none", kind="none")
    strength = round(100 * max(0.0, 1 - (result["rank"] - 1) / (most - 1)))
    return Cell(f"{result['rank']:g}", percent(result["score"]), "rank", heat=strength)


# ---- pairs, differences, the search


def matrix_table(comparisons: Sequence[Mapping[str, Any]]) -> Table | None:
    """Create the table of paired differences, row minus column; ``None`` if there are none.

    Examples:
        >>> pair = {"a": "x", "b": "y", "mean": 0.02, "low": 0.01, "high": 0.03, "pairs": 5, "verdict": "better"}
        >>> cell = matrix_table([pair]).rows[1][1]
        >>> cell.text, cell.small, cell.kind
        ('−2.00', '−3.00 to −1.00', 'worse')
    """
    cells: dict[tuple[str, str], Cell] = {}
    turned = {"better": "worse", "worse": "better"}
    for each in comparisons:
        if each["mean"] is None:
            continue
        a, b, verdict = str(each["a"]), str(each["b"]), str(each["verdict"])
        low, high, pairs = each["low"], each["high"], each["pairs"]
        cells[a, b] = _difference(each["mean"], low, high, verdict, pairs)
        left, right = (None, None) if low is None or high is None else (-high, -low)
        cells[b, a] = _difference(-each["mean"], left, right, turned.get(verdict, verdict), pairs)
    names = list(dict.fromkeys(str(name) for each in comparisons for name in (each["a"], each["b"])))
    nothing = Cell("no pairs", kind="unclear")
    rows: list[list[str | Cell]] = [
        [a, *(Cell("", kind="self") if a == b else cells.get((a, b), nothing) for b in names)] for a in names
    ]
    head: list[str | Cell] = ["minus", *(Cell(name, kind="experiment") for name in names)]
    return Table("Paired differences", head, rows, "heat matrix") if cells else None


def _difference(mean: float, low: float | None, high: float | None, verdict: str, pairs: int) -> Cell:
    unknown = low is None or high is None or not (isfinite(low) and isfinite(high))
    small = f"{many(pairs, 'pair')}: no interval" if unknown or too_few(pairs) else f"{points(low)} to {points(high)}"
    kind = verdict if verdict in ("better", "worse") and not too_few(pairs) else "unclear"
    text = points(mean, sign=True)
    return Cell(f"({text})" if kind == "unclear" else text, small, kind, f"{verdict}, {many(pairs, 'pair')}")


def search_table(search: Mapping[str, Sequence[Mapping[str, Any]]], colors: Mapping[str, int]) -> Table:
    """Create the table of a search: the number of rounds of each method and the best one, not ranked.

    Examples:
        >>> rounds = [{"point": {"x": n}, "value": n / 10, "status": "done"} for n in (1, 3, 2)]
        >>> search_table({"a": rounds}, {"a": 0}).rows[0][1:]
        ['3 done', '30.00', '2', 'x 3']
    """
    rows: list[list[str | Cell]] = []
    for method, rounds in search.items():
        statuses = ("done", "failed", "pruned", "running")
        counts = {status: sum(one["status"] == status for one in rounds) for status in statuses}
        done = [(number, one) for number, one in enumerate(rounds, 1) if one["status"] == "done"]
        number, best = max(done, key=lambda each: (each[1]["value"], -each[0])) if done else (None, None)
        setting = ", ".join(f"{name} {in_words(value)}" for name, value in best["point"].items()) if best else ""
        shown = filter_of({"method": method, "stage": "search"})
        rows.append(
            [
                Cell(str(method), filter=shown, color=colors.get(str(method), 0) % COLORS),
                ", ".join(f"{count} {status}" for status, count in counts.items() if count) or "none yet",
                "–" if best is None else percent(best["value"], 2),
                "–" if number is None else str(number),
                setting or "–",
            ]
        )
    return Table("Rounds of the search", ["method", "rounds", "best", "at round", "with"], rows, "plain search")


def failure_tables(rows: Sequence[Row], columns: Sequence[str]) -> dict[str, Table]:
    """Create tables of failed and pruned runs, with the reasons.

    Examples:
        >>> rows = [{"method": "a", "dim": d, "seed": 0, "status": s} for d, s in ((64, "done"), (128, "failed"))]
        >>> failure_tables(rows, ["method", "dim", "seed", "status"])["failed"].rows[0][1]
        'dim 128, seed 0'
    """
    # settings that are the same for all runs are not shown
    labels = {name for name in setting_columns(rows) if len({str(row.get(name)) for row in rows}) > 1}
    lines: dict[str, list[list[str | Cell]]] = {"failed": [], "pruned": []}
    for row in rows:
        if row.get("status") in lines:
            names = [name for name in columns if name in labels and row.get(name) is not None]
            setting = [f"{name} {cell_text(name, row[name])}" for name in names]
            setting += [f"{name} {row[name]}" for name in ("seed", "fold") if row.get(name) is not None]
            setting += [str(row["stage"])] if row.get("stage") else []
            run = Cell(str(row.get("run") or "–"), kind="code", fold=str(row.get("command") or ""))
            error = str(row.get("error") or "no error is recorded")
            lines[str(row["status"])].append([str(row["method"]), ", ".join(setting), error, run])
    head = ["method", "setting", "reason", "run"]
    return {status: Table(f"Runs: {status}", head, each, "plain broken") for status, each in lines.items() if each}
