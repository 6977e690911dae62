"""Search methods that draw points: random search and Bayesian search."""

from __future__ import annotations

import hashlib
import random
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from likewise.formula import whole_number
from likewise.protocols.space import Choice, Point, Setting, Space, Tried

_PATIENCE = 50
"""The number of consecutive repeated points after which a space counts as exhausted."""


@dataclass(frozen=True)
class Random:
    """Random search: points are uniform on the scale of each setting, and no point is repeated.

    Examples:
        >>> from likewise.protocols.space import Range
        >>> space = {"a": Range(0.001, 1.0, log=True), "b": Range(1, 4, whole=True)}
        >>> points = Random().ask(space, [], 2, seed=0)
        >>> points == Random().ask(space, [], 2, seed=0), all(space["b"].has(point["b"]) for point in points)
        (True, True)
    """

    def ask(self, space: Space, history: Sequence[Tried], n: int, seed: int) -> list[Point]:
        """Return at most ``n`` new points; fewer if the space is exhausted."""
        drawn = random.Random(_mix_seed(seed, len(history)))
        proposals = _Proposals(space, history)
        while len(proposals.new) < n and proposals.repeats < _PATIENCE:
            proposals.offer({path: setting.at(drawn.random()) for path, setting in space.items()})
        return proposals.new


@dataclass(frozen=True)
class Bayesian:
    """Bayesian search with Optuna's tree-structured Parzen estimator, used only as a sampler.

    The study of Optuna is rebuilt from the history at each call, so that the same history and seed give the same points.
    Points that are requested together, or whose value is not known yet, count as bad (a constant liar), which keeps them
    apart.  A pruned point counts with its intermediate values.

    Args:
        startup: the number of random points before the estimator is used.
        candidates: the number of draws from which the most promising one is chosen.

    Examples:
        >>> from likewise.protocols.space import Range
        >>> space = {"loss.margin": Range(0.0, 1.0)}
        >>> history = [Tried({"loss.margin": x / 20}, -((x / 20 - 0.3) ** 2)) for x in range(20)]
        >>> points = Bayesian().ask(space, history, 8, seed=0)
        >>> len(points), sum(abs(point["loss.margin"] - 0.3) < 0.2 for point in points) >= 6
        (8, True)
    """

    startup: int = 10
    candidates: int = 24

    def __post_init__(self) -> None:
        whole_number("startup", self.startup, 1)
        whole_number("candidates", self.candidates, 1)

    def ask(self, space: Space, history: Sequence[Tried], n: int, seed: int) -> list[Point]:
        """Return at most ``n`` new points; fewer if the space is exhausted."""
        optuna = _optuna()
        with _quiet(optuna):
            sampler = optuna.samplers.TPESampler(
                n_startup_trials=self.startup,
                n_ei_candidates=self.candidates,
                multivariate=True,
                constant_liar=True,
                seed=_mix_seed(seed, len(history)),
            )
            study = optuna.create_study(direction="maximize", sampler=sampler, pruner=optuna.pruners.NopPruner())
            distributions = {path: _distribution(optuna, setting) for path, setting in space.items()}
            for one in history:
                if all(path in one.point and setting.has(one.point[path]) for path, setting in space.items()):
                    study.add_trial(_as_trial(optuna, one, space, distributions))
            proposals = _Proposals(space, history)
            while len(proposals.new) < n and proposals.repeats < _PATIENCE:
                asked = study.ask(distributions)
                proposals.offer({path: _value(space[path], asked.params[path]) for path in space})
        return proposals.new


class _Proposals:
    """New points, and the number of consecutive draws that repeat a known point."""

    def __init__(self, space: Space, history: Sequence[Tried]) -> None:
        self._paths = list(space)
        self._names = {self._name(one.point) for one in history}
        self.new: list[Point] = []
        self.repeats = 0

    def offer(self, point: Point) -> None:
        self.repeats += 1
        if self._name(point) not in self._names:
            self._names.add(self._name(point))
            self.new.append(point)
            self.repeats = 0

    def _name(self, point: Point) -> tuple[object, ...]:
        return tuple(point.get(path) for path in self._paths)


def _mix_seed(seed: int, tried: int) -> int:
    """Derive a seed from the length of the history, so that later calls do not repeat earlier points."""
    return int.from_bytes(hashlib.sha256(f"{seed}/{tried}".encode()).digest()[:4], "big")


def _optuna() -> Any:
    try:
        import optuna
    except ImportError as missing:
        raise ImportError("a Bayesian search needs the extra likewise[study]; install it") from missing
    return optuna


@contextmanager
def _quiet(optuna: Any) -> Iterator[None]:
    """Silence the log of Optuna and its warnings about experimental options."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(max(before, optuna.logging.WARNING))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            yield
    finally:
        optuna.logging.set_verbosity(before)


def _distribution(optuna: Any, setting: Setting) -> Any:
    if isinstance(setting, Choice):
        return optuna.distributions.CategoricalDistribution(range(len(setting.values)))
    if setting.whole:
        return optuna.distributions.IntDistribution(int(setting.low), int(setting.high), log=setting.log)
    return optuna.distributions.FloatDistribution(setting.low, setting.high, log=setting.log)


def _value(setting: Setting, drawn: Any) -> Any:
    return setting.values[drawn] if isinstance(setting, Choice) else setting.rounded(drawn)


def _as_trial(optuna: Any, one: Tried, space: Space, distributions: dict[str, Any]) -> Any:
    states = optuna.trial.TrialState
    state = {"done": states.COMPLETE, "pruned": states.PRUNED, "failed": states.FAIL, "running": states.RUNNING}
    drawn = {}
    for path, setting in space.items():
        value = one.point[path]
        drawn[path] = setting.values.index(value) if isinstance(setting, Choice) else value
    reports = dict(one.reports) if one.status == "pruned" else {}
    return optuna.trial.create_trial(
        state=state[one.status], params=drawn, distributions=distributions, value=one.value, intermediate_values=reports
    )
