"""The passes over the pairs that a declaration needs, in order; the same for every engine.

An engine knows one primitive, `Engine.fold`.  What stands between the folds and the loss, one number per anchor, is
plain autograd and happens here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

from torch import Tensor

from likewise.core.formula import Folded, Formula, PerAnchor, PerReference, Total, evaluate
from likewise.core.problem import Problem
from likewise.core.spec import Part, PartValues, Reduction


class Engine(ABC):
    """What an engine must be able to do.

    Examples:
        >>> from likewise.backends import DenseEngine
        >>> callable(DenseEngine.fold)
        True
    """

    @abstractmethod
    def fold(self, terms: list[Folded], known: dict[Formula, Tensor]) -> list[Tensor]:
        """One vector per term, one entry per anchor, differentiable; ``known`` are the numbers that curves refer to."""


class Pass(NamedTuple):
    """One pass over the pairs: the numbers to settle before it, then the folds to make in it."""

    numbers: list[PerAnchor | PerReference | Total]
    folds: list[Folded]


def schedule(roots: list[Formula]) -> list[Pass]:
    """The passes that formulas need: a fold may use the results of earlier passes, never of its own.

    Examples:
        >>> from likewise.core import NEGATIVES, POSITIVES, add_up, logsumexp, s, softplus
        >>> negatives = logsumexp(s, NEGATIVES)
        >>> [len(each.folds) for each in schedule([add_up(softplus(negatives - s), POSITIVES)])]
        [1, 1, 0]
    """
    passes = [Pass([], [])]
    ready: dict[Formula, int] = {}  # by which pass the ingredients of a node are known
    for root in roots:
        _place(root, passes, ready)
    return passes


def _place(node: Formula, passes: list[Pass], ready: dict[Formula, int]) -> int:
    """Put what is below a node, and then the node, into the passes; say by which pass it is known."""
    if node in ready:
        return ready[node]
    when = 0
    for part in node.parts:
        when = max(when, _place(part, passes, ready))
    if isinstance(node, Folded):
        passes[when].folds.append(node)
        when += 1
        if when == len(passes):
            passes.append(Pass([], []))
    elif isinstance(node, PerAnchor | PerReference | Total):
        passes[when].numbers.append(node)
    ready[node] = when
    return when


def compute_folds(roots: list[Formula], engine: Engine, problem: Problem) -> dict[Formula, Any]:
    """Everything that formulas need from the pairs: folds pass by pass, totals and numbers per anchor in between."""
    known: dict[Formula, Any] = {}
    given: dict[Formula, Tensor] = {}
    for each in schedule(roots):
        for number in each.numbers:
            if isinstance(number, PerAnchor | PerReference):
                given[number] = number.compute(problem)
            else:
                given[number] = evaluate(number.of, known).sum()
            known[number] = given[number]
        given.update(zip(each.folds, engine.fold(each.folds, given) if each.folds else (), strict=True))
        known.update(given)
    return known


def run(parts: list[Part], problem: Problem, engine: Engine, reduction: Reduction) -> list[PartValues]:
    """Compute the parts of a declaration on an engine, and of their counts the one that the reduction needs.

    Examples:
        >>> import torch
        >>> from likewise.backends import DenseEngine
        >>> from likewise.core import NEGATIVES, Labels, Problem, per_pair, s
        >>> problem = Problem(Labels(torch.tensor([0, 1])), similarities=torch.full((2, 2), 0.5))
        >>> run([per_pair(NEGATIVES, s)], problem, DenseEngine(problem), "sum")[0].total
        tensor([0.5000, 0.5000])
    """
    counts = [{"mean": part.units, "nonzero": part.nonzero}.get(reduction) for part in parts]
    roots = [part.total for part in parts] + [count for count in counts if count is not None]
    known = compute_folds(roots, engine, problem)
    values = []
    for part, count in zip(parts, counts, strict=True):
        number = None if count is None else evaluate(count, known)
        units, nonzero = (number, None) if reduction == "mean" else (None, number)
        values.append(PartValues(evaluate(part.total, known), units, nonzero))
    return values
