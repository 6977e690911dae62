"""Which engine runs a declaration.  One function decides, and it never falls back silently."""

from __future__ import annotations

import torch

from likewise.backends import passes
from likewise.backends.dense import DenseEngine
from likewise.backends.passes import Engine
from likewise.backends.streamed import StreamedEngine
from likewise.core.checks import one_of
from likewise.core.problem import Problem
from likewise.core.spec import Part, PartValues, Reduction

BACKENDS: tuple[str, ...] = ("auto", "dense", "streamed")

STREAM_FROM = {"cpu": 2**21, "cuda": 2**24}
"""Pairs from which on streaming wins, by kind of device."""


def choose(problem: Problem, backend: str = "auto") -> str:
    """The engine for a problem: ``"auto"`` decides by its size and device.

    Examples:
        >>> import torch
        >>> from likewise.core import Cosine, Labels
        >>> choose(Problem(Labels(torch.tensor([0, 1])), Cosine(), anchors=torch.eye(2)))
        'dense'
    """
    one_of("backend", backend, BACKENDS)
    if backend != "auto":
        return backend
    # who has the matrix needs no engine that avoids it; a compiler makes its own tiles
    if problem.is_matrix or torch.compiler.is_compiling():
        return "dense"
    m, n = problem.shape
    device = problem.relation.device.type
    return "streamed" if m * n >= STREAM_FROM.get(device, STREAM_FROM["cuda"]) else "dense"


def run(parts: list[Part], problem: Problem, reduction: Reduction, backend: str = "auto") -> list[PartValues]:
    """Compute the parts of a declaration on the engine of that name; ``"auto"`` chooses by size and device.

    Examples:
        >>> import torch
        >>> from likewise.core import NEGATIVES, Labels, Problem, per_pair, s
        >>> problem = Problem(Labels(torch.tensor([0, 1])), similarities=torch.full((2, 2), 0.5))
        >>> run([per_pair(NEGATIVES, s)], problem, "mean", backend="dense")[0].units
        tensor([1, 1])
    """
    engine: Engine = {"dense": DenseEngine, "streamed": StreamedEngine}[choose(problem, backend)](problem)
    return passes.run(parts, problem, engine, reduction)
