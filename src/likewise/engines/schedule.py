"""The passes over the pairs that a declaration needs, in order; the same for every engine.

An engine has one primitive, `Engine.fold`.  The computation from folds to the loss, one number per anchor, is plain
autograd in this module.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import reduce
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor

from likewise.distributed import SINGLE_PROCESS, ProcessGroup, RowPartition
from likewise.engines.pair_numbers import PairNumbers
from likewise.formula import (
    Counted,
    Folded,
    Formula,
    PairBatch,
    PerAnchor,
    PerPair,
    PerReference,
    PerTriplet,
    Rank,
    State,
    Term,
    TermValues,
    Total,
    evaluate,
    walk,
)


class Engine(ABC):
    """The interface of an engine.

    Examples:
        >>> from likewise.engines import DenseEngine
        >>> callable(DenseEngine.fold)
        True
    """

    @abstractmethod
    def fold(self, passes: list[list[Folded]], known: dict[Formula, Any]) -> dict[Formula, Tensor]:
        """The folds of one or several passes, each one number per anchor, differentiable.

        Args:
            passes: the folds of a pass may refer to those of earlier passes, never to one another.
            known: the numbers, per anchor, per reference, per pair and for the batch, that curves refer to.
        """

    def states(self, folds: list[Folded], known: dict[Formula, Any]) -> list[State]:
        """The unfinished folds of one pass, for a shard of the references."""
        raise TypeError(f"{type(self).__name__} cannot run where references are sharded over processes")


OfBatch: TypeAlias = PerAnchor | PerReference | PerPair | PerTriplet
"""Numbers that are computed from the batch."""


class Stage(NamedTuple):
    """Consecutive passes that need no number of the whole batch in between, and the numbers to compute first."""

    numbers: list[OfBatch | Total]
    passes: list[list[Folded]]


def schedule(roots: list[Formula]) -> list[Stage]:
    """The passes that formulas need: a fold may use the results of earlier passes, but not of the same one.

    A number for the whole batch (`Total`) is known after all anchors, so it begins a new stage.  A fold over each positive
    is one step; its inner folds, one number per positive, belong to it.

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
    """Put the operands of a node, then the node, into the stages; return the stage and pass that compute it."""
    if node in ready:
        return ready[node]
    stage, when = 0, 0
    for part in node.parts:
        stage, when = max((stage, when), _place(part, stages, ready))
    if isinstance(node, Folded) and node.rank is Rank.ANCHOR:
        passes = stages[stage].passes
        if when == len(passes):
            passes.append([])
        passes[when].append(node)
        when += 1
    elif isinstance(node, OfBatch | Total):
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
    batch: PairBatch,
    settled: Mapping[Formula, Any] | None = None,
    *,
    only_totals: bool = False,
    stages: list[Stage] | None = None,
) -> dict[Formula, Any]:
    """Compute the folds and totals that formulas need, stage by stage.

    Args:
        roots: the formulas.
        engine: computes the folds.
        batch: the batch, or a chunk of it.
        settled: numbers for the whole batch and per pair, if the batch is a chunk.
        only_totals: compute only numbers for the whole batch and what they depend on.
        stages: the schedule, if it was computed before.
    """
    known: dict[Formula, Any] = {}
    available: dict[Formula, Tensor] = {}
    stages = schedule(roots) if stages is None else stages
    for stage in stages:
        available.update(_settle(stage.numbers, known, batch, settled or {}))
        if stage.passes and not (only_totals and stage is stages[-1]):
            available.update(_fold(stage.passes, available, engine, batch))
            known.update(available)
    return known


def compute_number(number: OfBatch, batch: PairBatch) -> Any:
    """A number per anchor or reference as a tensor, or a number per pair as `PairNumbers`.

    Examples:
        >>> import torch
        >>> from likewise.formula import Labels
        >>> batch = PairBatch(Labels(torch.tensor([0, 1])), matrix=torch.eye(2))
        >>> compute_number(PerAnchor("class", lambda batch: batch.labels), batch)
        tensor([0, 1])
    """
    return PairNumbers.of(number, batch) if isinstance(number, PerPair | PerTriplet) else number.compute(batch)


def _settle(
    numbers: list[OfBatch | Total],
    known: dict[Formula, Any],
    batch: PairBatch,
    settled: Mapping[Formula, Any],
) -> dict[Formula, Any]:
    """The numbers that a stage needs first; totals over ranks use as few collectives as possible."""
    available: dict[Formula, Any] = {}
    pending: dict[Total, Tensor] = {}

    def learn(fresh: dict[Formula, Any]) -> None:
        available.update(fresh)
        known.update(fresh)

    def reduce_pending() -> None:
        learn(dict(zip(pending, batch.group.totals(list(pending.values())), strict=True)))
        pending.clear()

    for number in numbers:
        if number in settled:
            learn({number: settled[number]})
        elif not isinstance(number, Total):
            learn({number: compute_number(number, batch)})
        else:
            if pending and any(node in pending for node in walk(number.of)):
                reduce_pending()
            pending[number] = evaluate(number.of, known).sum()
    reduce_pending()
    return available


def _fold(
    passes: list[list[Folded]], available: dict[Formula, Tensor], engine: Engine, batch: PairBatch
) -> dict[Formula, Tensor]:
    """The folds of a stage; if references are sharded, the states of all shards are merged after every pass."""
    if batch.shards is SINGLE_PROCESS:
        return engine.fold(passes, available)
    results: dict[Formula, Tensor] = {}
    for folds in passes:
        states = merge_states(folds, engine.states(folds, {**available, **results}), batch.shards)
        results.update({each: each.fold.finish(state) for each, state in zip(folds, states, strict=True)})
    return results


def merge_states(folds: list[Folded], states: list[State], shards: ProcessGroup) -> list[State]:
    """Merge the states of one pass over all shards of the references, in the order of ranks, in one collective.

    Examples:
        >>> import torch
        >>> from likewise.formula import POSITIVES, add_up, s
        >>> merge_states([add_up(s, POSITIVES)], [(torch.tensor([1.0, 2.0]),)], SINGLE_PROCESS)
        [(tensor([1., 2.]),)]
    """
    if shards is SINGLE_PROCESS or not states:
        return states
    flat = [vector for state in states for vector in state]
    # float64 represents peaks, sums and counts
    stacked = torch.stack([vector.double() for vector in flat])[None]  # (1, vectors, anchors)
    gathered = shards.gather(stacked, RowPartition((1,) * shards.size, shards.rank))
    joined: list[State] = []
    first = 0
    for each, state in zip(folds, states, strict=True):
        of_ranks = [tuple(shard[first : first + len(state)]) for shard in gathered]
        merged = reduce(each.fold.merge, of_ranks)
        joined.append(tuple(new.to(old.dtype) for new, old in zip(merged, state, strict=True)))
        first += len(state)
    return joined


def run_on(
    terms: list[Term],
    batch: PairBatch,
    engine: Engine,
    reduction: Counted,
    settled: Mapping[Formula, Tensor] | None = None,
) -> list[TermValues]:
    """Compute the terms of a declaration on an engine, with only the count that the reduction needs.

    Args:
        terms: the terms.
        batch: the batch.
        engine: computes the folds.
        reduction: how units are averaged.
        settled: numbers that are known already.

    Examples:
        >>> import torch
        >>> from likewise.engines import DenseEngine
        >>> from likewise.formula import NEGATIVES, Labels, PairBatch, per_pair, s
        >>> batch = PairBatch(Labels(torch.tensor([0, 1])), matrix=torch.full((2, 2), 0.5))
        >>> run_on([per_pair(NEGATIVES, s)], batch, DenseEngine(batch), "sum")[0].total
        tensor([0.5000, 0.5000])
    """
    counts = [{"mean": term.units, "nonzero": term.nonzero}.get(reduction) for term in terms]
    roots = [term.total for term in terms] + [count for count in counts if count is not None]
    known = compute_folds(roots, engine, batch, settled=settled, stages=_stages(terms, roots, reduction))
    values = []
    for term, count in zip(terms, counts, strict=True):
        number = None if count is None else evaluate(count, known)
        units, nonzero = (number, None) if reduction == "mean" else (None, number)
        values.append(TermValues(evaluate(term.total, known), units, nonzero))
    return values


def _stages(terms: list[Term], roots: list[Formula], reduction: Counted) -> list[Stage]:
    """The schedule of a declaration, cached in its first term, because a loss declares once and runs many times."""
    if torch.compiler.is_compiling() or not terms:
        return schedule(roots)
    schedules: dict[Counted, tuple[list[Term], list[Stage]]] = terms[0].cache.setdefault("schedules", {})
    if reduction not in schedules or schedules[reduction][0] != terms[1:]:
        schedules[reduction] = terms[1:], schedule(roots)
    return schedules[reduction][1]
