"""Means and intervals of a method over repeats: seeds and folds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from numbers import Real
from statistics import fmean
from typing import Any, TypeAlias

from likewise.formula import one_of
from likewise.metrics import Interval, t_interval

Row: TypeAlias = Mapping[str, Any]

_RECORDS = {"seed", "fold", "stage", "status", "seconds", "openings", "tuned_on_test"}
_RECORDS |= {"key", "run", "command", "error", "machine"}
_REMARKS = {"table", "year", "reference", "note", "flag", "flags", "origin"}
_OF_THE_METHOD = {"loss", "miner", "memory"}


FEWEST = 3
"""The smallest number of seeds or pairs for which an interval is shown; two determine its width by one difference."""


@dataclass(frozen=True)
class Summary:
    """The mean of the repeats of one setting.

    Args:
        group: the setting, such as ``{"method": "contrastive"}``.
        metric: the summarized column.
        interval: the mean over seeds with its interval, which is infinite for one seed.
        scores: the value of each seed, a mean over folds.
        folds: the folds of each seed.
        failed: the number of runs that failed or were pruned.
        incomplete: the number of seeds that are excluded because a fold is missing.

    Examples:
        >>> [summary] = summarize([{"method": "a", "seed": 0, "test R@1": 0.5}], "test R@1")
        >>> print(summary)
        a: 50.00 (one seed: no interval)
    """

    group: Mapping[str, Any]
    metric: str
    interval: Interval
    scores: Mapping[Any, float]
    folds: tuple[Any, ...]
    failed: int = 0
    incomplete: int = 0

    @property
    def name(self) -> str:
        """The name of the setting."""
        return name_of(self.group, tuple(self.group))

    def __str__(self) -> str:
        return f"{self.name}: {format_percent(self.interval)}"


def format_percent(interval: Interval) -> str:
    """Format a mean and its interval over seeds, in percent.

    Examples:
        >>> format_percent(t_interval([0.2, 0.22, 0.21]))
        '21.00 (95% interval 18.52 to 23.48, 3 seeds)'
    """
    mean = f"{100 * interval.mean:.2f}"
    if interval.count < FEWEST:
        return f"{mean} ({'one seed' if interval.count == 1 else f'{interval.count} seeds'}: no interval)"
    ends = f"{100 * interval.low:.2f} to {100 * interval.high:.2f}"
    return f"{mean} ({100 * interval.confidence:g}% interval {ends}, {interval.count} seeds)"


def name_of(row: Row, by: Sequence[str]) -> str:
    """Return the name of the setting of a row.

    Examples:
        >>> name_of({"method": "triplet", "dim": 64, "seed": 1}, ("method", "dim"))
        'triplet, dim 64'
    """
    return ", ".join(str(row.get(column)) if column == "method" else f"{column} {row.get(column)}" for column in by)


def labels_of_rows(rows: Iterable[Row]) -> list[str]:
    """Return the columns of settings, without metrics, records of the run and notes.

    Examples:
        >>> labels_of_rows([{"method": "a", "dim": 64, "seed": 0, "test R@1": 0.5, "run": "runs/1", "loss.alpha": 2.0}])
        ['method', 'dim', 'loss.alpha']
    """
    names = dict.fromkeys(name for row in rows for name in row)
    return [name for name in names if name not in _RECORDS | _REMARKS and not _is_metric(name)]


def shared_labels(rows: Iterable[Row], but: Sequence[str] = ("method",)) -> list[str]:
    """Return the labels in which runs of different methods can agree: trunk, size, data, but not hyper-parameters of a method.

    Args:
        rows: the tidy table of results.
        but: labels to leave out, because methods differ in them.

    Examples:
        >>> shared_labels([{"method": "a", "dim": 64, "loss": "CircleLoss", "loss.margin": 0.4, "seed": 0}])
        ['dim']
    """
    return [each for each in labels_of_rows(rows) if "." not in each and each not in {*but, *_OF_THE_METHOD}]


def summarize(
    rows: Sequence[Row],
    metric: str = "test MAP@R",
    *,
    by: Sequence[str] = ("method",),
    stage: str = "final",
    confidence: float = 0.95,
) -> list[Summary]:
    """Compute the mean and Student's t interval over seeds, for each setting.

    The folds of a seed are averaged first ("separated" in the reality check): they share most of their training classes, so
    that seeds, not folds, are independent repeats.  Seeds with a missing fold and failed runs are excluded and counted.

    Args:
        rows: the tidy table of results, one dict per run.
        metric: the column to summarize; values are fractions, higher is better.
        by: the columns that identify a setting; rows that agree in them must be repeats.
        stage: ``"final"`` or ``"search"``; rows without a stage are final.
        confidence: the confidence level of the intervals.

    Returns:
        A summary of each setting with at least one complete seed, in the order of the rows.

    Examples:
        >>> scores = {("a", 0): 0.50, ("a", 1): 0.52, ("b", 0): 0.40, ("b", 1): 0.44}
        >>> rows = [{"method": m, "seed": s, "test MAP@R": score} for (m, s), score in scores.items()]
        >>> for summary in summarize(rows):
        ...     print(summary)
        a: 51.00 (2 seeds: no interval)
        b: 42.00 (2 seeds: no interval)
    """
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in select_stage(rows, metric, stage):
        groups.setdefault(tuple(row.get(column) for column in by), []).append(row)
    summaries = [_summary(dict(zip(by, key, strict=True)), each, metric, confidence) for key, each in groups.items()]
    return [each for each in summaries if each is not None]


def _summary(group: dict[str, Any], rows: list[Row], metric: str, confidence: float) -> Summary | None:
    name = name_of(group, tuple(group))
    done = [row for row in rows if is_done(row)]
    _check_alike(name, done)
    by_seed: dict[Any, dict[Any, float]] = {}
    for (seed, fold), row in index_rows(name, done, ("seed", "fold")).items():
        by_seed.setdefault(seed, {})[fold] = read_metric(row, metric, name)
    folds = tuple(dict.fromkeys(fold for each in by_seed.values() for fold in each))
    scores = {seed: fmean(each.values()) for seed, each in by_seed.items() if len(each) == len(folds)}
    if not scores:
        return None
    interval = t_interval(list(scores.values()), confidence)
    return Summary(group, metric, interval, scores, folds, len(rows) - len(done), len(by_seed) - len(scores))


def _check_alike(name: str, rows: list[Row]) -> None:
    for label in labels_of_rows(rows):
        values = list(dict.fromkeys(row.get(label) for row in rows))
        if len(values) > 1:
            listed = ", ".join(map(str, values))
            raise ValueError(
                f"rows of {name!r} must be repeats of one setting, but they differ in {label} ({listed}): "
                "add it to by, or select some of the rows"
            )


def select_stage(rows: Sequence[Row], metric: str, stage: str) -> list[Row]:
    """Select the rows of a stage, and check that some of them have the metric.

    Examples:
        >>> select_stage([{"stage": "final", "test R@1": 0.5}], "test R@2", "final")
        Traceback (most recent call last):
        ValueError: metric must be one of the rows' metrics at the stage 'final' (test R@1), but it is 'test R@2'
    """
    one_of("stage", stage, ("search", "final"))
    chosen = [row for row in rows if (row.get("stage") or "final") == stage]
    there = sorted({name for row in chosen for name in row if _is_metric(name)})
    if metric not in there:
        listed = ", ".join(there) or "none"
        raise ValueError(
            f"metric must be one of the rows' metrics at the stage {stage!r} ({listed}), but it is {metric!r}"
        )
    return chosen


def _is_metric(name: str) -> bool:
    return name.startswith(("val ", "test "))


def is_done(row: Row) -> bool:
    """Whether a run is done; true for rows without a status.

    Examples:
        >>> is_done({"status": "failed"}), is_done({})
        (False, True)
    """
    return (row.get("status") or "done") == "done"


def read_metric(row: Row, metric: str, name: str) -> float:
    """Return the metric of a finished run.

    Examples:
        >>> read_metric({"seed": 3, "test R@1": None}, "test R@1", "triplet")
        Traceback (most recent call last):
        ValueError: finished rows must have a finite 'test R@1', but that of 'triplet' (seed 3) is None
    """
    value = row.get(metric)
    if isinstance(value, bool) or not isinstance(value, Real) or not isfinite(value):
        which = ", ".join(f"{key} {row[key]}" for key in ("seed", "fold") if row.get(key) is not None)
        where = f"{name!r} ({which})" if which else f"{name!r}"
        raise ValueError(f"finished rows must have a finite {metric!r}, but that of {where} is {value!r}")
    return float(value)


def index_rows(name: str, rows: list[Row], columns: Sequence[str]) -> dict[tuple[Any, ...], Row]:
    """Index rows by the values of columns; two rows with the same values raise an error.

    Examples:
        >>> index_rows("triplet", [{"seed": 0}, {"seed": 0}], ("seed",))
        Traceback (most recent call last):
        ValueError: rows must have one run for each seed and fold, but 'triplet' has two of seed 0
    """
    by_key: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        key = tuple(row.get(column) for column in columns)
        if key in by_key:
            which = ", ".join(f"{column} {value}" for column, value in zip(columns, key, strict=True))
            raise ValueError(f"rows must have one run for each seed and fold, but {name!r} has two of {which}")
        by_key[key] = row
    return by_key
