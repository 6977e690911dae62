"""Hyper-parameter search: the next points are a function of the tried points, which are stored in the study.

A search works in rounds.  When all points of the last round are known, `plan` adds the trials of the next points to the
study, one per fold.  The study is the only state, so that a search can be continued on any machine, and processes that plan
at the same time plan the same trials.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from likewise.formula import whole_number
from likewise.protocols.bayes import Bayesian
from likewise.protocols.space import Point, Space, Tried, at_point, check_space
from likewise.protocols.study import Reports, Study, TrialState
from likewise.protocols.trial import Label, Result, Trial


class Method(Protocol):
    """The interface of search methods: `Bayesian`, `Random`, `CoordinateGrid`, or a custom one.

    Examples:
        >>> method: Method = Bayesian(startup=5)
    """

    def ask(self, space: Space, history: Sequence[Tried], n: int, seed: int) -> list[Point]:
        """Return at most ``n`` new points; none while results of running points are needed, and none at the end."""


def next_points(space: Space, history: Sequence[Tried], n: int, method: Method, seed: int = 0) -> list[Point]:
    """Return the points to try next, which depend on nothing but the arguments.

    Args:
        space: the search space.
        history: the tried points, in order.
        n: the maximum number of points.
        method: the search method.
        seed: the seed of random choices.

    Examples:
        >>> from likewise.protocols.grid import CoordinateGrid
        >>> from likewise.protocols.space import Range
        >>> next_points({"loss.margin": Range(0.0, 1.0, step=0.5)}, [], 2, CoordinateGrid())
        [{'loss.margin': 0.0}, {'loss.margin': 0.5}]
    """
    return method.ask(check_space(space), history, whole_number("n", n, 1), whole_number("seed", seed, 0))


@dataclass(frozen=True)
class Search:
    """The description of a hyper-parameter search: space, search method and number of points.

    Args:
        method: the name of the tuned method.
        config: the complete configuration, as ``likewise train`` resolves it; points replace some of its settings.
        space: the search space.
        how: the search method.
        folds: the ``split`` sections of the folds of the protocol, which update that of the configuration.  A point has one
            trial per fold, and its value is their mean.
        objective: a metric on validation classes; higher is better.
        rounds: the total number of points.
        at_once: the number of points per round.
        seed: the seed of the search and of its runs.
        labels: additional labels of the trials.
        begin: points to try first, such as the defaults of the method.

    Examples:
        >>> from likewise.protocols.space import Range
        >>> config = {"loss": {"class_path": "likewise.losses.TripletLoss"}, "split": {"seed": 0}, "seed": 0}
        >>> folds = ({"folds": 2, "fold": 0}, {"folds": 2, "fold": 1})
        >>> search = Search("triplet", config, {"loss.margin": Range(0.0, 0.5)}, folds=folds)
        >>> [trial.config["split"]["fold"] for trial in search.trials({"loss.margin": 0.1})]
        [0, 1]
    """

    method: str
    config: Mapping[str, Any]
    space: Space
    how: Method = field(default_factory=Bayesian)
    folds: Sequence[Mapping[str, Any]] = ({},)
    objective: str = "MAP@R"
    rounds: int = 50
    at_once: int = 1
    seed: int = 0
    labels: Mapping[str, Label] = field(default_factory=dict)
    begin: Sequence[Point] = ()

    def __post_init__(self) -> None:
        check_space(self.space)
        whole_number("rounds", self.rounds, 1)
        whole_number("at_once", self.at_once, 1)
        whole_number("seed", self.seed, 0)
        if not self.folds:
            raise ValueError("folds must have at least one fold, but it is empty")
        for path in self.space:
            if path in self.labels:
                raise ValueError(f"labels must not contain searched settings, but they contain {path!r}")
        for point in self.begin:
            for path, setting in self.space.items():
                if path not in point or not setting.has(point[path]):
                    raise ValueError(
                        f"begin must contain points of the space, but one has {path} = {point.get(path)!r}"
                    )

    def trials(self, point: Point) -> list[Trial]:
        """Return the trials of a point, one per fold."""
        return [self._trial(point, fold) for fold in range(len(self.folds))]

    def _trial(self, point: Point, fold: int) -> Trial:
        config = at_point(self.config, point)
        split = {**(config.get("split") or {}), **self.folds[fold]}
        config |= {"seed": self.seed, **({"split": split} if split else {})}
        return Trial(self.method, config, self.seed, fold, "search", {**self.labels, **point})

    def point(self, trial: Trial) -> Point | None:
        """Return the point of a trial; ``None`` if the trial does not belong to this search."""
        ours = (trial.method, trial.stage, trial.seed) == (self.method, "search", self.seed)
        if not ours or trial.fold >= len(self.folds):
            return None
        trial = trial.upgrade()  # the study can have an older schema
        if trial.labels.keys() != self.labels.keys() | self.space.keys():
            return None
        point = {path: trial.labels[path] for path in self.space}
        return point if self._trial(point, trial.fold).upgrade().key == trial.key else None


def history(search: Search, study: Study) -> list[Tried]:
    """Return the tried points of a search, in the order in which they were planned.

    A point is done when all its folds are done; its value is their mean.  It has failed or is pruned as soon as one of its
    folds has failed or is pruned.  A value that is not finite counts as a failure.

    Examples:
        >>> import tempfile
        >>> from likewise.protocols.space import Range
        >>> study = Study(tempfile.mkdtemp() + "/study.db")
        >>> search = Search("triplet", {"loss": {}}, {"loss.margin": Range(0.0, 0.5)}, at_once=2)
        >>> for trial in plan(search, study)[:1]:
        ...     _ = study.finish(Result(trial, val={"MAP@R": 0.25}))
        >>> [(one.status, one.value) for one in history(search, study)]
        [('done', 0.25), ('running', None)]
    """
    return [_tried(search, part) for part in _by_point(search, study)]


def plan(search: Search, study: Study) -> list[Trial]:
    """Add the trials of the next round to the study if the last round is complete.

    Missing folds of a point that has failed or is pruned are canceled.

    Returns:
        The new trials; none while trials of the last round are missing, or if the search `is_over`.

    Examples:
        >>> import tempfile
        >>> from likewise.protocols.space import Range
        >>> study = Study(tempfile.mkdtemp() + "/study.db")
        >>> search = Search("triplet", {"loss": {}}, {"loss.margin": Range(0.0, 0.5)}, at_once=4)
        >>> len(plan(search, study)), len(plan(search, study))
        (4, 0)
    """
    parts = _by_point(search, study)
    tried = [_tried(search, part) for part in parts]
    vain = [
        state.trial.key
        for part, one in zip(parts, tried, strict=True)
        if one.status in ("failed", "pruned")
        for state in part.states
        if state.state == "missing"
    ]
    if vain:
        study.cancel(vain)
    return study.add([trial for point in _next(search, tried) for trial in search.trials(point)])


def is_over(search: Search, study: Study) -> bool:
    """Whether all points of a search have been planned and have ended.

    Examples:
        >>> import tempfile
        >>> from likewise.protocols.space import Range
        >>> study = Study(tempfile.mkdtemp() + "/study.db")
        >>> search = Search("triplet", {"loss": {}}, {"loss.margin": Range(0.0, 0.5)}, rounds=1)
        >>> for trial in plan(search, study):
        ...     before = is_over(search, study)
        ...     _ = study.finish(Result(trial, val={"MAP@R": 0.25}))
        >>> before, is_over(search, study)
        (False, True)
    """
    tried = history(search, study)
    return all(one.status != "running" for one in tried) and not _next(search, tried)


def best(tried: Sequence[Tried]) -> Tried | None:
    """Return the best point that is done, the first of equally good ones; ``None`` if no point is done.

    Examples:
        >>> best([Tried({"a": 1}, 0.25), Tried({"a": 2}, 0.5), Tried({"a": 3}, status="failed")]).point
        {'a': 2}
    """
    return max((one for one in tried if one.value is not None), key=lambda one: one.value or 0.0, default=None)


def prune(
    history: Sequence[Reports],
    values: Mapping[int, float],
    step: int,
    *,
    startup: int = 5,
    warmup: int = 0,
    least: int = 1,
) -> bool:
    """Median pruning: whether the best value of a trial is below the median of the other trials at the same step.

    This is the rule of Optuna's ``MedianPruner``, for values of which higher is better.

    - The other trials are those that are done.  Nothing is pruned while there are fewer than ``startup`` of them.
    - Nothing is pruned before the step ``warmup``.
    - The largest value that the trial has reported so far is compared with the median of the values that the others
      reported at this step.  Nothing is pruned if fewer than ``least`` of them reported one.
    - NaN values are ignored; a trial that has reported only NaN is pruned.

    Args:
        history: the reports of the other trials, by step.
        values: the reports of the trial so far, by step.
        step: the last step of the trial.
        startup: the number of other trials that must be done.
        warmup: the first step at which a trial can be pruned.
        least: the number of other trials that must have reported at the step.

    Examples:
        >>> others = [{1: 0.2, 2: 0.4}, {1: 0.3, 2: 0.5}, {1: 0.4, 2: 0.6}]
        >>> prune(others, {1: 0.35, 2: 0.45}, 2, startup=3), prune(others, {1: 0.35}, 1, startup=3)
        (True, False)
    """
    if not history or len(history) < startup or step < warmup or not values:
        return False
    numbers = [value for value in values.values() if not math.isnan(value)]
    if not numbers:
        return True
    there = [other[step] for other in history if step in other]
    theirs = [value for value in there if not math.isnan(value)]
    if len(there) < least or not theirs:
        return False
    return max(numbers) < statistics.median(theirs)


def is_hopeless(study: Study, trial: Trial, *, startup: int = 5, warmup: int = 0, least: int = 1) -> bool:
    """Whether a running trial should be pruned, given the reports of all trials in its study; see `prune`.

    It is compared with finished search trials of the same method, seed, fold and labels.  Labels with a dot are searched
    settings, which can differ.

    Examples:
        >>> import tempfile
        >>> study = Study(tempfile.mkdtemp() + "/study.db")
        >>> good, bad = (Trial("triplet", {}, stage="search", labels={"loss.margin": m}) for m in (0.1, 0.2))
        >>> _ = study.add([good, bad])
        >>> for trial, value in ((good, 0.5), (bad, 0.25)):
        ...     study.report(trial.key, 1, value)
        >>> _ = study.finish(Result(good, val={"MAP@R": 0.75}))
        >>> is_hopeless(study, bad, startup=1)
        True
    """
    done = [one.trial for one in study.results() if one.status == "done"]
    others = [one.key for one in done if _pruning_group(one) == _pruning_group(trial)]
    reports = study.reports([trial.key, *others])
    values = reports.get(trial.key, {})
    theirs = [reports.get(key, {}) for key in others]
    return bool(values) and prune(theirs, values, max(values), startup=startup, warmup=warmup, least=least)


@dataclass(frozen=True)
class _Part:
    """States, results and reports of the trials of one point."""

    point: Point
    states: tuple[TrialState, ...]
    results: Mapping[str, Result]
    reports: Mapping[str, Reports]


def _by_point(search: Search, study: Study) -> list[_Part]:
    grouped: dict[tuple[Label, ...], tuple[Point, list[TrialState]]] = {}
    for state in study.states():
        point = search.point(state.trial)
        if point is not None:
            grouped.setdefault(tuple(point.values()), (point, []))[1].append(state)
    results = {result.key: result for result in study.results()}
    reports = study.reports([each.trial.key for _, some in grouped.values() for each in some])
    return [_Part(point, tuple(some), results, reports) for point, some in grouped.values()]


def _tried(search: Search, part: _Part) -> Tried:
    reports = [part.reports.get(each.trial.key, {}) for each in part.states]
    steps = sorted({step for one in reports for step in one})
    means = {step: statistics.fmean(one[step] for one in reports if step in one) for step in steps}
    states = [each.state for each in part.states]
    if "pruned" in states:
        return Tried(part.point, None, means, "pruned")
    if "failed" in states or "canceled" in states:
        return Tried(part.point, None, means, "failed")
    if len(states) < len(search.folds) or set(states) != {"done"}:
        return Tried(part.point, None, means, "running")
    value = statistics.fmean(_value(search, part.results[each.trial.key]) for each in part.states)
    return Tried(part.point, value, means) if math.isfinite(value) else Tried(part.point, None, means, "failed")


def _value(search: Search, result: Result) -> float:
    if search.objective not in result.val:
        known = ", ".join(result.val) or "nothing"
        raise ValueError(f"objective must be measured on validation classes ({known}), but it is {search.objective!r}")
    return float(result.val[search.objective])


def _next(search: Search, tried: Sequence[Tried]) -> list[Point]:
    """Return the points of the next round; none while a point of the last round is running."""
    room = min(search.at_once, search.rounds - len(tried))
    if room <= 0 or any(one.status == "running" for one in tried):
        return []
    seen = [dict(one.point) for one in tried]
    first = [{path: point[path] for path in search.space} for point in search.begin]
    first = [point for point in first if point not in seen][:room]
    rest = room - len(first)
    return [*first, *(next_points(search.space, tried, rest, search.how, search.seed) if rest else [])]


def _pruning_group(trial: Trial) -> tuple[str, str, int, int, dict[str, Label]]:
    """Return the settings in which two trials must agree to be compared for pruning."""
    named = {name: value for name, value in trial.labels.items() if "." not in name}
    return trial.stage, trial.method, trial.seed, trial.fold, named
