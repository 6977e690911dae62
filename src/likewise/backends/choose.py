"""Which engine runs a declaration.  One function, and it never falls back silently."""

from __future__ import annotations

from likewise.backends import passes
from likewise.backends.dense import DenseEngine
from likewise.core.checks import one_of
from likewise.core.problem import Problem
from likewise.core.spec import Part, PartValues, Reduction

BACKENDS: tuple[str, ...] = ("auto", "dense")


def run(parts: list[Part], problem: Problem, reduction: Reduction, backend: str = "auto") -> list[PartValues]:
    """Compute the parts of a declaration on the engine of that name; ``"auto"`` chooses by size and device.

    There is one engine so far, so ``"auto"`` is ``"dense"``.

    Examples:
        >>> import torch
        >>> from likewise.core import NEGATIVES, Labels, Problem, per_pair, s
        >>> problem = Problem(Labels(torch.tensor([0, 1])), similarities=torch.full((2, 2), 0.5))
        >>> run([per_pair(NEGATIVES, s)], problem, "mean", backend="dense")[0].units
        tensor([1, 1])
    """
    one_of("backend", backend, BACKENDS)
    return passes.run(parts, problem, DenseEngine(problem), reduction)
