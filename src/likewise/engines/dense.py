"""The dense engine, the reference: plain autograd on the whole matrix.

It is simple rather than fast; every other engine is tested against it.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from likewise.engines.expansions import find_interval
from likewise.engines.hinges import Hinge, count_within, match_hinge, sum_hinges
from likewise.engines.pair_numbers import PairNumbers
from likewise.engines.positives import MaskedMatrix, fold_each_positive
from likewise.engines.schedule import Engine, compute_folds
from likewise.formula import (
    Apply,
    Folded,
    Formula,
    Mined,
    PairBatch,
    PerReference,
    PerTriplet,
    Rank,
    Side,
    State,
    count,
    evaluate,
    s,
)


class DenseEngine(Engine):
    """Folds over the whole similarity matrix.

    Args:
        batch: the batch, or a chunk of it.
        settled: numbers for the whole batch and per pair that the miner refers to, where the batch is a chunk.
        ends: the formulas whose values are dropped after each fold, to save memory; see `last_uses`.

    Examples:
        >>> import torch
        >>> from likewise.formula import POSITIVES, Labels, PairBatch, smallest, s
        >>> S = torch.tensor([[1.0, 0.9, 0.2], [0.9, 1.0, 0.3], [0.2, 0.3, 1.0]])
        >>> engine = DenseEngine(PairBatch(Labels(torch.tensor([0, 0, 1])), matrix=S))
        >>> list(engine.fold([[smallest(s, POSITIVES)]], {}).values())
        [tensor([0.9000, 0.9000,    inf])]
    """

    def __init__(
        self,
        batch: PairBatch,
        settled: dict[Formula, Any] | None = None,
        ends: dict[Formula, list[Formula]] | None = None,
    ) -> None:
        self.similarities = batch.similarities()
        if isinstance(batch.relation, Mined) and batch.matrix is None:  # its conditions read the matrix
            batch = batch.replace(matrix=self.similarities)
        self.positive, self.negative = dense_masks(batch, settled)
        # values per pair, by formula: a sub-formula that several folds share is computed once
        self._pairs: dict[Formula, Any] = {s: self.similarities}
        self._ends = ends or {}
        self._interval = find_interval(batch)
        self._hinges: dict[tuple[float, float | None], tuple[Tensor, Tensor]] = {}

    def fold(self, passes: list[list[Folded]], known: dict[Formula, Any]) -> dict[Formula, Tensor]:
        """One vector per fold."""
        self.learn(known)
        results: dict[Formula, Tensor] = {}
        for folds in passes:
            self.learn(results)
            fresh: dict[Formula, Tensor] = {each: self._fold(each) for each in folds if not needs_steps(each)}
            stepped = [each for each in folds if each not in fresh]
            if stepped:
                found = fold_each_positive(
                    stepped, MaskedMatrix(self._pairs, self.positive, self.negative, self._interval)
                )
                fresh.update(zip(stepped, found, strict=True))
            results.update(fresh)
        return results

    def states(self, folds: list[Folded], known: dict[Formula, Any]) -> list[State]:
        """The unfinished folds of one pass."""
        self.learn(known)
        return [self._start(each) for each in folds]

    def _fold(self, folded: Folded) -> Tensor:
        if not folded.over.binds_positive:
            result = folded.fold.fold_whole(*self._values(folded))
            self._drop(folded)
            return result
        hinge = match_hinge(folded)
        assert hinge is not None
        return self._fold_hinge(hinge)

    def _fold_hinge(self, hinge: Hinge) -> Tensor:
        """Sums and counts of hinges, from sorted rows."""
        if hinge.what == "inside":
            assert hinge.band is not None
            S = self.similarities.detach()
            return count_within(S, self.positive, self.negative, hinge.band, below=hinge.below)[0].sum(dim=1)
        key, more = (hinge.margin, hinge.band), 0.0
        if hinge.band is not None and not hinge.below:
            # a band without an upper end is a hinge of its width, plus the rest of the margin for each active triplet
            width = min(hinge.margin, hinge.band)
            key, more = (width, None), hinge.margin - width
        if key not in self._hinges:
            self._hinges[key] = sum_hinges(self.similarities, self.positive, self.negative, *key)
        total, active = self._hinges[key]
        return active if hinge.what == "active" else total if more == 0.0 else total + more * active.to(total.dtype)

    def _start(self, folded: Folded) -> State:
        state = folded.fold.start(*self._values(folded))
        self._drop(folded)
        return state

    def _values(self, folded: Folded) -> tuple[Tensor, Tensor]:
        """The values of the curve, and the pairs that the fold runs over."""
        keep = self._side(folded.over)
        if folded is count(folded.over):
            return keep, keep  # a count without a condition
        values = evaluate(folded.curve, self._pairs)
        if not isinstance(values, Tensor):
            values = self.similarities.new_full((), values)
        return values if values.shape == keep.shape else values.expand_as(keep), keep

    def _drop(self, folded: Folded) -> None:
        """Forget the values that no later fold uses."""
        for node in self._ends.get(folded, ()):
            self._pairs.pop(node, None)

    def learn(self, known: dict[Formula, Any]) -> None:
        """Store numbers as matrices that broadcast: per anchor ``(m, 1)``, per reference ``(1, n)``, per pair ``(m, n)``.

        The value of a number that is known already stays.
        """
        for node, value in known.items():
            if node in self._pairs:
                continue
            if isinstance(value, PairNumbers):
                m, n = self.similarities.shape
                # a number per triplet has no matrix; a fold over each positive computes it
                self._pairs[node] = value if isinstance(node, PerTriplet) else value.chunk(m, slice(0, n))
            elif isinstance(node, PerReference):
                self._pairs[node] = value[None, :]
            else:
                self._pairs[node] = value[:, None] if node.rank == Rank.ANCHOR else value

    def per_pair(self, formula: Formula) -> Tensor:
        """A formula for every pair."""
        value: Tensor = evaluate(formula, self._pairs)
        return value

    def _side(self, over: Side) -> Tensor:
        if over is Side.POSITIVES:
            return self.positive
        return self.negative if over is Side.NEGATIVES else self.positive | self.negative


def needs_steps(folded: Folded) -> bool:
    """Whether a fold over each positive is computed some positives at a time: it is not a sum of hinges.

    Examples:
        >>> from likewise.formula import per_triplet, relu, s, s_p, softplus
        >>> [needs_steps(per_triplet(curve(s - s_p)).total) for curve in (relu, softplus)]
        [False, True]
    """
    return folded.over.binds_positive and match_hinge(folded) is None


def last_uses(folds: list[Folded]) -> dict[Formula, list[Formula]]:
    """For each fold the formulas that no later fold uses.

    Examples:
        >>> from likewise.formula import NEGATIVES, POSITIVES, add_up, relu, s
        >>> shared = s - 0.5
        >>> pull, push = add_up(relu(-shared), POSITIVES), add_up(relu(shared), NEGATIVES)
        >>> list(last_uses([pull, push]).values())
        [[relu(-(s - 0.5)), -(s - 0.5)], [s - 0.5, relu(s - 0.5)]]
    """
    last: dict[Formula, Folded] = {}
    for each in folds:
        _use(each.curve, each, last)
    ends: dict[Formula, list[Formula]] = {}
    for node, folded in last.items():
        ends.setdefault(folded, []).append(node)
    return ends


def _use(node: Formula, folded: Folded, last: dict[Formula, Folded]) -> None:
    if isinstance(node, Apply) and last.get(node) is not folded:
        last[node] = folded
        for argument in node.arguments:
            _use(argument, folded, last)


def dense_masks(batch: PairBatch, settled: dict[Formula, Any] | None = None) -> tuple[Tensor, Tensor]:
    """The positive and negative pairs of a batch, after mining.

    Args:
        batch: the batch, or a chunk of it.
        settled: numbers for the whole batch and per pair that the miner refers to, where the batch is a chunk.

    Examples:
        >>> import torch
        >>> from likewise.formula import Labels, Mined, PairBatch, s
        >>> relation = Mined(Labels(torch.tensor([0, 1])), keep_positive=s < 1.0, keep_negative=0.5 < s)
        >>> dense_masks(PairBatch(relation, matrix=torch.full((2, 2), 0.2)))[1].any()
        tensor(False)
    """
    relation = batch.relation
    if not isinstance(relation, Mined):
        return relation.masks()
    # mining is not differentiated
    with torch.no_grad():
        base = batch.materialize().under(relation.base)
        engine = DenseEngine(base)
        conditions = [relation.keep_positive, relation.keep_negative]
        known = compute_folds(conditions, engine, base, settled)
        engine.learn(known)
        keep_positive, keep_negative = (engine.per_pair(condition) for condition in conditions)
    return engine.positive & keep_positive, engine.negative & keep_negative
