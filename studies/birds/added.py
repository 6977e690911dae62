"""What is added to a loss on birds, and nothing else: the loss stays as its search found it, with the addition and without.

Where both have searches of their own, they differ in rates, scales and margins too, and in the luck of ten draws.  Here the
addition's strength alone is chosen, on validation classes, from a few.  `verdict.py plan` plans it.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from likewise.protocols.trial import Result, Stage, Trial
from studies.birds.record import SEARCHED_SEED

PART = "added"
METRIC = "MAP@R"


@dataclass(frozen=True)
class Added:
    """An addition to a method.

    Args:
        question: what is asked about it.
        source: who claims that it helps.
        base: the method without it.
        method: the method with it.
        path: where its strength is.
        values: the strengths that are tried.
        wraps: whether it is a loss around the other one.
    """

    question: str
    source: str
    base: str
    method: str
    path: str
    values: tuple[float, ...]
    wraps: bool = False

    def point(self, found: Mapping[str, Any], value: float) -> dict[str, Any]:
        """The setting of the method without it, and a strength."""
        inside = {
            path.replace("loss.", "loss.loss.", 1) if self.wraps and path.startswith("loss.") else path: each
            for path, each in found.items()
        }
        return {**inside, self.path: value}


GAMMAS, EPSILONS, MARGINS, WEIGHTS = (0.03, 0.1, 0.3), (0.05, 0.1, 0.3), (0.1, 0.3, 0.5), (0.1, 1.0, 10.0)
ADDED = (
    Added(
        "Does mining valid triplets help binomial?",
        "the unified view",
        "Binomial",
        "Binomial + VTHM",
        "loss.miner.margin",
        MARGINS,
    ),
    Added(
        "Does mining help multi-similarity (RAW + VTHM against RAW)?",
        "the unified view",
        "Multi-similarity",
        "Multi-similarity + miner",
        "loss.miner.epsilon",
        EPSILONS,
    ),
    *(
        Added(
            f"Does the direction help {name}?", "the overview", base, f"{base}, direction", "loss.gamma", GAMMAS, True
        )
        for base, name in (("Triplet", "triplets"), ("Multi-similarity", "multi-similarity"), ("ProxyNCA", "ProxyNCA"))
    ),
    Added(
        "Does language help multi-similarity?",
        "the overview",
        "Multi-similarity",
        "Multi-similarity, language",
        "loss.weight",
        WEIGHTS,
        True,
    ),
)


def name_of(one: Added, value: float | None = None) -> str:
    """The names of its runs; those that choose a strength include it."""
    return f"{one.method}, as {one.base} was found" + ("" if value is None else f", {value:g}")


def strength(one: Added, results: Sequence[Result]) -> float | None:
    """The strength that is best on validation classes, once all are known; a training that failed is not."""
    found = {each.trial.method: each for each in results if each.trial.labels.get("part") == PART}
    tried = {value: found.get(name_of(one, value)) for value in one.values}
    if None in tried.values():
        return None
    scores = {value: each.val.get(METRIC, -1.0) for value, each in tried.items() if each is not None}
    return max(scores, key=lambda value: scores[value])


def planned(
    methods: Container[str],
    points: Mapping[str, Mapping[str, Any]],
    results: Sequence[Result],
    make: Callable[[str, str, Mapping[str, Any], int, Stage], Trial],
    seeds: int,
) -> Iterator[Trial]:
    """The trials that follow from what is known.

    Args:
        methods: those that there are.
        points: what the search found for each.
        results: of everything so far.
        make: makes a trial of a name, a method, a point, a seed and a stage.
        seeds: how many the verdict has.
    """
    for one in ADDED:
        if one.base not in points or one.method not in methods:
            continue
        for value in one.values:
            yield make(name_of(one, value), one.method, one.point(points[one.base], value), SEARCHED_SEED, "search")
        chosen = strength(one, results)
        if chosen is not None:
            for seed in range(seeds):
                yield make(name_of(one), one.method, one.point(points[one.base], chosen), seed, "final")
