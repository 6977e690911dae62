"""The passes over the pairs that a declaration needs, in order; the same for every engine.

An engine knows one primitive, `Engine.fold`.  What stands between the folds and the loss, one number per anchor, is
plain autograd and happens here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import reduce
from typing import Any, NamedTuple

import torch
from torch import Tensor

from likewise.distributed import SINGLE_PROCESS, ProcessGroup, RowPartition
from likewise.formula import (
    Folded,
    Formula,
    PairBatch,
    PerAnchor,
    PerReference,
    Reduction,
    State,
    Term,
    TermValues,
    Total,
    evaluate,
    walk,
)


class Engine(ABC):
    """What an engine must be able to do.

    Examples:
        >>> from likewise.engines import DenseEngine
        >>> callable(DenseEngine.fold)
        True
    """

    @abstractmethod
    def fold(self, passes: list[list[Folded]], known: dict[Formula, Tensor]) -> dict[Formula, Tensor]:
        """The folds of one or several passes, each one number per anchor, differentiable.

        Args:
            passes: the folds of a pass may refer to those of the passes before it, never to one another.
            known: the numbers, per anchor, per reference and for the batch, that curves refer to.
        """

    def states(self, terms: list[Folded], known: dict[Formula, Tensor]) -> list[State]:
        """The folds of one pass before they are finished, where the references are one of several shares."""
        raise TypeError(f"{type(self).__name__} cannot run where references are spread over processes")


class Stage(NamedTuple):
    """Passes over the pairs that need nothing of the batch as a whole in between, and the numbers to settle first."""

    numbers: list[PerAnchor | PerReference | Total]
    passes: list[list[Folded]]


def schedule(roots: list[Formula]) -> list[Stage]:
    """The passes that formulas need: a fold may use the results of earlier passes, never of its own.

    A number for the whole batch (`Total`) is known when all anchors are through, so it begins a new stage.

    Examples:
        >>> from likewise.formula import NEGATIVES, POSITIVES, add_up, logsumexp, mean_over_batch, s, softplus
        >>> negatives = logsumexp(s, NEGATIVES)
        >>> [[len(folds) for folds in stage.passes] for stage in schedule([add_up(softplus(negatives - s), POSITIVES)])]
        [[1, 1]]
        >>> above_mean = add_up(s - mean_over_batch(s, POSITIVES), POSITIVES)
        >>> [[len(folds) for folds in stage.passes] for stage in schedule([above_mean])]
        [[2], [1]]
    """
    stages = [Stage([], [])]
    ready: dict[Formula, tuple[int, int]] = {}  # the stage and the pass by which a node is known
    for root in roots:
        _place(root, stages, ready)
    return stages


def _place(node: Formula, stages: list[Stage], ready: dict[Formula, tuple[int, int]]) -> tuple[int, int]:
    """Put what is below a node, and then the node, into the stages; say when it is known."""
    if node in ready:
        return ready[node]
    stage, when = 0, 0
    for part in node.parts:
        stage, when = max((stage, when), _place(part, stages, ready))
    if isinstance(node, Folded):
        passes = stages[stage].passes
        if when == len(passes):
            passes.append([])
        passes[when].append(node)
        when += 1
    elif isinstance(node, PerAnchor | PerReference | Total):
        if when > 0:  # a total of folds: all passes of their stage come first
            stage, when = stage + 1, 0
            if stage == len(stages):
                stages.append(Stage([], []))
        stages[stage].numbers.append(node)
    ready[node] = stage, when
    return stage, when


def compute_folds(
    roots: list[Formula],
    engine: Engine,
    pair_batch: PairBatch,
    settled: dict[Formula, Tensor] | None = None,
    *,
    only_totals: bool = False,
    stages: list[Stage] | None = None,
) -> dict[Formula, Any]:
    """Everything that formulas need from the pairs: folds stage by stage, numbers for the batch in between.

    Args:
        roots: the formulas.
        engine: makes the folds.
        pair_batch: the batch, or a part of it.
        settled: numbers for the whole batch, where the pair_batch is a part.
        only_totals: nothing beyond such numbers.
        stages: the schedule, where it was made before.
    """
    known: dict[Formula, Any] = {}
    given: dict[Formula, Tensor] = {}
    stages = schedule(roots) if stages is None else stages
    for stage in stages:
        given.update(_settle(stage.numbers, known, pair_batch, settled or {}))
        if stage.passes and not (only_totals and stage is stages[-1]):
            given.update(_fold(stage.passes, given, engine, pair_batch))
            known.update(given)
    return known


def _settle(
    numbers: list[PerAnchor | PerReference | Total],
    known: dict[Formula, Any],
    pair_batch: PairBatch,
    settled: dict[Formula, Tensor],
) -> dict[Formula, Tensor]:
    """What a stage must know first; totals over processes in as few collectives as there can be."""
    given: dict[Formula, Tensor] = {}
    waiting: dict[Total, Tensor] = {}

    def learn(fresh: dict[Formula, Tensor]) -> None:
        given.update(fresh)
        known.update(fresh)

    def arrive() -> None:
        learn(dict(zip(waiting, pair_batch.group.totals(list(waiting.values())), strict=True)))
        waiting.clear()

    for number in numbers:
        if number in settled:
            learn({number: settled[number]})
        elif isinstance(number, PerAnchor | PerReference):
            learn({number: number.compute(pair_batch)})
        else:
            if waiting and any(node in waiting for node in walk(number.of)):
                arrive()
            waiting[number] = evaluate(number.of, known).sum()
    arrive()
    return given


def _fold(
    passes: list[list[Folded]], given: dict[Formula, Tensor], engine: Engine, pair_batch: PairBatch
) -> dict[Formula, Tensor]:
    """The folds of a stage; where everybody has a share of the references, states meet after every pass."""
    if pair_batch.shards is SINGLE_PROCESS:
        return engine.fold(passes, given)
    results: dict[Formula, Tensor] = {}
    for terms in passes:
        states = merged(terms, engine.states(terms, {**given, **results}), pair_batch.shards)
        results.update({term: term.fold.finish(state) for term, state in zip(terms, states, strict=True)})
    return results


def merged(terms: list[Folded], states: list[State], shards: ProcessGroup) -> list[State]:
    """The states of one pass, each joined over all shares of the references, in the order of ranks: one collective.

    Examples:
        >>> import torch
        >>> from likewise.formula import POSITIVES, add_up, s
        >>> merged([add_up(s, POSITIVES)], [(torch.tensor([1.0, 2.0]),)], SINGLE_PROCESS)
        [(tensor([1., 2.]),)]
    """
    if shards is SINGLE_PROCESS or not states:
        return states
    flat = [vector for state in states for vector in state]
    # float64 holds peaks, sums and counts alike
    stacked = torch.stack([vector.double() for vector in flat])[None]  # (1, vectors, anchors)
    everyones = shards.gather(stacked, RowPartition((1,) * shards.size, shards.rank))
    joined: list[State] = []
    first = 0
    for term, state in zip(terms, states, strict=True):
        of_ranks = [tuple(share[first : first + len(state)]) for share in everyones]
        together = reduce(term.fold.merge, of_ranks)
        joined.append(tuple(new.to(old.dtype) for new, old in zip(together, state, strict=True)))
        first += len(state)
    return joined


def run_on(parts: list[Term], pair_batch: PairBatch, engine: Engine, reduction: Reduction) -> list[TermValues]:
    """Compute the parts of a declaration on an engine, and of their counts the one that the reduction needs.

    Examples:
        >>> import torch
        >>> from likewise.engines import DenseEngine
        >>> from likewise.formula import NEGATIVES, Labels, PairBatch, per_pair, s
        >>> pair_batch = PairBatch(Labels(torch.tensor([0, 1])), similarities=torch.full((2, 2), 0.5))
        >>> run_on([per_pair(NEGATIVES, s)], pair_batch, DenseEngine(pair_batch), "sum")[0].total
        tensor([0.5000, 0.5000])
    """
    counts = [{"mean": part.units, "nonzero": part.nonzero}.get(reduction) for part in parts]
    roots = [part.total for part in parts] + [count for count in counts if count is not None]
    known = compute_folds(roots, engine, pair_batch, stages=_stages(parts, roots, reduction))
    values = []
    for part, count in zip(parts, counts, strict=True):
        number = None if count is None else evaluate(count, known)
        units, nonzero = (number, None) if reduction == "mean" else (None, number)
        values.append(TermValues(evaluate(part.total, known), units, nonzero))
    return values


def _stages(parts: list[Term], roots: list[Formula], reduction: Reduction) -> list[Stage]:
    """The schedule of a declaration, which is kept beside its first part: losses declare once and run many times."""
    if torch.compiler.is_compiling() or not parts:
        return schedule(roots)
    kept: dict[Reduction, tuple[list[Term], list[Stage]]] = vars(parts[0]).setdefault("_stages", {})
    if reduction not in kept or kept[reduction][0] != parts[1:]:
        kept[reduction] = parts[1:], schedule(roots)
    return kept[reduction][1]
