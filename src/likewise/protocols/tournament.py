"""The tournament (the thesis, Section 4.2.4.2): rank methods in every experiment, and sum the ranks.

Ranks ignore the size of differences, so that experiments of different difficulty can be combined.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any, Literal

from likewise.formula import one_of
from likewise.protocols.trial import Label
from likewise.text import align

Experiment = tuple[Label, ...]
Ties = Literal["average", "min"]

SAME = 9
"""Scores that agree to this number of decimals are equal, because means of the same numbers can differ by rounding."""


@dataclass(frozen=True)
class Standing:
    """The result of a method over all experiments.

    Args:
        method: the name of the method.
        place: the place in the tournament; equal averages share a place.
        ranks: the rank in each experiment of the method.
        total: the sum of the ranks.
        average: the mean of the ranks.
        deviation: the sample standard deviation of the ranks (n − 1); ``None`` for a single experiment.
        gold: the number of first places.
        silver: the number of second places.
        bronze: the number of third places.
        complete: whether the method has results in all experiments.

    Examples:
        >>> Standing("a", 1, {("CUB200",): 1.0}, 1.0, 1.0, None, 1, 0, 0, True).gold
        1
    """

    method: str
    place: int
    ranks: Mapping[Experiment, float]
    total: float
    average: float
    deviation: float | None
    gold: int
    silver: int
    bronze: int
    complete: bool


@dataclass(frozen=True)
class Tournament:
    """The standings, and the data from which they are computed.

    Args:
        standings: the methods, best average rank first.
        experiments: the experiments, in the order of the rows.
        names: the columns that define an experiment.
        metric: the column by which methods are ranked.
        ties: the rank of equal scores: ``"average"`` or ``"min"``.
        scores: the mean of the metric and the number of rows, by method and experiment.
        notes: sentences below the table.

    Examples:
        >>> rows = [{"method": "a", "data": "x", "test R@1": 0.5}, {"method": "b", "data": "x", "test R@1": 0.6}]
        >>> result = tournament(rows, experiment=["data"])
        >>> [each.method for each in result.standings]
        ['b', 'a']
    """

    standings: tuple[Standing, ...]
    experiments: tuple[Experiment, ...]
    names: tuple[str, ...]
    metric: str
    ties: Ties
    scores: Mapping[str, Mapping[Experiment, tuple[float, int]]]
    notes: tuple[str, ...] = ()

    def text(self) -> str:
        """Format the table for a terminal, with its notes.

        Examples:
            >>> rows = [{"method": "a", "data": "x", "test R@1": 0.5}, {"method": "b", "data": "x", "test R@1": 0.6}]
            >>> print(tournament(rows, experiment=["data"]).text())
               method  total  average  deviation  gold  silver  bronze  experiments
            1  b           1     1.00          –     1       0       0          1/1
            2  a           2     2.00          –     0       1       0          1/1
            Ranked by test R@1; 1 is best.
        """
        head = ["", "method", "total", "average", "deviation", "gold", "silver", "bronze", "experiments"]
        lines = align([head, *(self._cells(each) for each in self.standings)], left=2)
        return "\n".join([*map(str.rstrip, lines), f"Ranked by {self.metric}; 1 is best.", *self.notes])

    def _cells(self, each: Standing) -> list[str]:
        deviation = "–" if each.deviation is None else f"{each.deviation:.2f}"
        share = f"{len(each.ranks)}/{len(self.experiments)}"
        medals = [str(each.gold), str(each.silver), str(each.bronze)]
        name = each.method if each.complete else f"{each.method} *"
        return [str(each.place), name, f"{each.total:g}", f"{each.average:.2f}", deviation, *medals, share]

    def to_dict(self) -> dict[str, Any]:
        """Convert to types of JSON: the standings, with the rank, score and number of rows in each experiment.

        Examples:
            >>> rows = [{"method": "a", "data": "x", "test R@1": 0.5}, {"method": "a", "data": "x", "test R@1": 0.7}]
            >>> tournament(rows, experiment=["data"]).to_dict()["standings"][0]["experiments"]
            [{'experiment': {'data': 'x'}, 'rank': 1.0, 'score': 0.6, 'rows': 2}]
        """
        standings = []
        for each in self.standings:
            line = {name: getattr(each, name) for name in ("method", "place", "total", "average", "deviation")}
            line |= {name: getattr(each, name) for name in ("gold", "silver", "bronze", "complete")}
            line["experiments"] = [
                {
                    "experiment": dict(zip(self.names, one, strict=True)),
                    "rank": rank,
                    "score": self.scores[each.method][one][0],
                    "rows": self.scores[each.method][one][1],
                }
                for one, rank in each.ranks.items()
            ]
            standings.append(line)
        held = [dict(zip(self.names, one, strict=True)) for one in self.experiments]
        about = {"metric": self.metric, "ties": self.ties, "experiments": held, "notes": list(self.notes)}
        return {**about, "standings": standings}


def tournament(
    rows: Sequence[Mapping[str, Label]],
    metric: str = "test R@1",
    experiment: Sequence[str] = ("data", "trunk", "dim"),
    method: str = "method",
    *,
    higher_is_better: bool = True,
    ties: Ties = "average",
    only_common: bool = False,
    notes: Sequence[str] = (),
) -> Tournament:
    """Rank methods in every experiment, and sum the ranks.

    Rows of a method in an experiment, such as seeds and folds, are averaged first.  A method without results in some
    experiments is ranked in the others and marked; where it is missing, the remaining methods are ranked among themselves.
    Averages over different experiments are hard to compare; ``only_common=True`` uses only the experiments in which all
    methods have results.

    Equal scores share the mean of their ranks (1, 2.5, 2.5, 4) or, with ``"min"``, the best rank (1, 2, 2, 4).  Medals always
    follow the latter: two methods in first place both get gold, and there is no silver.

    Args:
        rows: results; rows that are not done or do not have the metric are excluded and counted.
        metric: the column to rank by.
        experiment: the columns that define an experiment.
        method: the column of the method.
        higher_is_better: whether the largest score has rank 1.
        ties: the rank of equal scores: ``"average"`` or ``"min"``.
        only_common: use only the experiments in which every method has results.
        notes: sentences to print below the table, such as why the comparison is not fair.

    Examples:
        >>> scores = {"Triplet": (0.58, 0.62), "Contrastive": (0.60, 0.61), "ProxyAnchor": (0.63, 0.66)}
        >>> rows = [
        ...     {"method": name, "data": data, "test R@1": score}
        ...     for name, both in scores.items()
        ...     for data, score in zip(("CUB200", "Cars196"), both)
        ... ]
        >>> for each in tournament(rows, experiment=["data"]).standings:
        ...     print(each.place, each.method, each.total, each.average)
        1 ProxyAnchor 2.0 1.0
        2 Contrastive 5.0 2.5
        2 Triplet 5.0 2.5
    """
    one_of("ties", ties, ("average", "min"))
    names = tuple(experiment)
    scores, left_out = _scores(rows, metric, names, method)
    held = tuple(dict.fromkeys(one for by in scores.values() for one in by))
    if only_common:
        common = tuple(one for one in held if all(one in by for by in scores.values()))
        if not common:
            raise ValueError(
                "only_common must be False, because no experiment has results of every method, but it is True"
            )
        held = common
        scores = {name: {one: by[one] for one in held} for name, by in scores.items()}
    by_experiment = [
        _ranks({name: by[one][0] for name, by in scores.items() if one in by}, higher_is_better) for one in held
    ]
    ranks = {
        name: {one: each[name][ties] for one, each in zip(held, by_experiment, strict=True) if name in each}
        for name in scores
    }
    medals = {name: [each[name]["min"] for each in by_experiment if name in each] for name in scores}
    standings = _standings(ranks, medals, len(held))
    remarks = (*notes, *_notes(rows, standings, scores, left_out, metric))
    return Tournament(standings, held, names, metric, ties, scores, remarks)


def _scores(
    rows: Sequence[Mapping[str, Label]], metric: str, names: tuple[str, ...], method: str
) -> tuple[dict[str, dict[Experiment, tuple[float, int]]], int]:
    """Return the mean of the metric and the number of rows, by method and experiment, and the number of excluded rows."""
    if not rows:
        raise ValueError("rows must contain results, but it is empty")
    for name in (metric, method, *names):
        if not any(name in row for row in rows):
            there = ", ".join(map(repr, dict.fromkeys(column for row in rows for column in row)))
            raise ValueError(f"rows must have a column {name!r}, but the columns are {there}")
    values: dict[str, dict[Experiment, list[float]]] = {}
    left_out = 0
    for index, row in enumerate(rows):
        value = row.get(metric)
        if value is None or row.get("status", "done") != "done":
            left_out += 1
            continue
        if isinstance(value, bool | str) or not math.isfinite(value):
            raise ValueError(f"rows[{index}][{metric!r}] must be a finite number, but it is {value!r}")
        one = tuple(row.get(name) for name in names)
        values.setdefault(str(row.get(method)), {}).setdefault(one, []).append(float(value))
    if not values:
        raise ValueError(f"rows must contain finished results with {metric!r}, but none of the {len(rows)} rows does")
    return {name: {one: (fmean(all_), len(all_)) for one, all_ in by.items()} for name, by in values.items()}, left_out


def _ranks(scores: Mapping[str, float], higher_is_better: bool) -> dict[str, dict[str, float]]:
    """Return the rank of each method in one experiment, with both rules for ties."""
    keys = {name: round(-score if higher_is_better else score, SAME) for name, score in scores.items()}
    ranks = {}
    for name, key in keys.items():
        better = sum(other < key for other in keys.values())
        equal = sum(other == key for other in keys.values())
        ranks[name] = {"min": better + 1.0, "average": better + (equal + 1.0) / 2.0}
    return ranks


def _standings(
    ranks: Mapping[str, Mapping[Experiment, float]], medals: Mapping[str, Sequence[float]], experiments: int
) -> tuple[Standing, ...]:
    averages = {name: round(fmean(by.values()), SAME) for name, by in ranks.items()}
    # equal averages share a place; they are sorted by medals, then by name
    order = sorted(ranks, key=lambda name: (averages[name], *(-medals[name].count(place) for place in (1, 2, 3)), name))
    return tuple(
        Standing(
            method=name,
            place=1 + sum(other < averages[name] for other in averages.values()),
            ranks=ranks[name],
            total=math.fsum(ranks[name].values()),
            average=fmean(ranks[name].values()),
            deviation=stdev(ranks[name].values()) if len(ranks[name]) > 1 else None,
            gold=medals[name].count(1),
            silver=medals[name].count(2),
            bronze=medals[name].count(3),
            complete=len(ranks[name]) == experiments,
        )
        for name in order
    )


def _notes(
    rows: Sequence[Mapping[str, Label]],
    standings: Sequence[Standing],
    scores: Mapping[str, Mapping[Experiment, tuple[float, int]]],
    left_out: int,
    metric: str,
) -> list[str]:
    """Notes for readers of the table."""
    notes = []
    if not all(each.complete for each in standings):
        notes.append(
            "* Not in all experiments: its ranks are those of its experiments, and the others were ranked without it elsewhere."
        )
    counts = sorted({count for by in scores.values() for _, count in by.values()})
    if counts[-1] > 1:
        span = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
        notes.append(f"Each score is the mean of {span} results.")
    if left_out:
        notes.append(f"Excluded: {left_out} of {len(rows)} rows, which are not done or have no {metric}.")
    tuned = sum(row.get("tuned_on_test") is True for row in rows)
    if tuned:
        notes.append(
            f"Tuned on test: {tuned} of {len(rows)} rows come from methods that were selected on the test set."
        )
    return notes
