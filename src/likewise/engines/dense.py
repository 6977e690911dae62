"""The dense engine, the reference: the matrix exists, and everything is plain autograd on it.

Slow is fine here, obvious is required: every other engine is tested against this one.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from likewise.engines.schedule import Engine, compute_folds
from likewise.formula import (
    Apply,
    Folded,
    Formula,
    Mined,
    PairBatch,
    PerReference,
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
        pair_batch: the batch, or a part of it.
        settled: numbers for the whole batch that the miner refers to, where the pair_batch is a part.
        ends: what to forget after which fold, where room is dear; see `last_uses`.

    Examples:
        >>> import torch
        >>> from likewise.formula import POSITIVES, Labels, PairBatch, smallest, s
        >>> S = torch.tensor([[1.0, 0.9, 0.2], [0.9, 1.0, 0.3], [0.2, 0.3, 1.0]])
        >>> engine = DenseEngine(PairBatch(Labels(torch.tensor([0, 0, 1])), similarities=S))
        >>> list(engine.fold([[smallest(s, POSITIVES)]], {}).values())
        [tensor([0.9000, 0.9000,    inf])]
    """

    def __init__(
        self,
        pair_batch: PairBatch,
        settled: dict[Formula, Tensor] | None = None,
        ends: dict[Formula, list[Formula]] | None = None,
    ) -> None:
        self.similarities = pair_batch.similarities()
        self.positive, self.negative = dense_masks(pair_batch, settled)
        # what was computed per pair, by formula: a sub-formula that several folds share is computed once
        self._pairs: dict[Formula, Any] = {s: self.similarities}
        self._ends = ends or {}

    def fold(self, passes: list[list[Folded]], known: dict[Formula, Tensor]) -> dict[Formula, Tensor]:
        """One vector per fold."""
        self.learn(known)
        results: dict[Formula, Tensor] = {}
        for terms in passes:
            fresh: dict[Formula, Tensor] = {term: self._fold(term) for term in terms}
            self.learn(fresh)
            results.update(fresh)
        return results

    def states(self, terms: list[Folded], known: dict[Formula, Tensor]) -> list[State]:
        """The folds of one pass, not finished."""
        self.learn(known)
        return [self._start(term) for term in terms]

    def _fold(self, term: Folded) -> Tensor:
        return term.fold.finish(self._start(term))

    def _start(self, term: Folded) -> State:
        keep = self._side(term.over)
        if term is count(term.over):
            values = keep  # a count without a condition
        else:
            values = evaluate(term.curve, self._pairs)
            if not isinstance(values, Tensor):
                values = self.similarities.new_full((), values)
            values = values if values.shape == keep.shape else values.expand_as(keep)
        state = term.fold.start(values, keep)
        for node in self._ends.get(term, ()):
            self._pairs.pop(node, None)
        return state

    def learn(self, known: dict[Formula, Any]) -> None:
        """Take numbers as matrices that broadcast: per anchor ``(m, 1)``, per reference ``(1, n)``."""
        for node, value in known.items():
            if isinstance(node, PerReference):
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


def last_uses(terms: list[Folded]) -> dict[Formula, list[Formula]]:
    """For each fold the formulas that nobody computes with after it.

    Examples:
        >>> from likewise.formula import NEGATIVES, POSITIVES, add_up, relu, s
        >>> shared = s - 0.5
        >>> pull, push = add_up(relu(-shared), POSITIVES), add_up(relu(shared), NEGATIVES)
        >>> list(last_uses([pull, push]).values())
        [[relu(-(s - 0.5)), -(s - 0.5)], [s - 0.5, relu(s - 0.5)]]
    """
    last: dict[Formula, Folded] = {}
    for term in terms:
        _use(term.curve, term, last)
    ends: dict[Formula, list[Formula]] = {}
    for node, term in last.items():
        ends.setdefault(term, []).append(node)
    return ends


def _use(node: Formula, term: Folded, last: dict[Formula, Folded]) -> None:
    if isinstance(node, Apply) and last.get(node) is not term:
        last[node] = term
        for argument in node.arguments:
            _use(argument, term, last)


def dense_masks(pair_batch: PairBatch, settled: dict[Formula, Tensor] | None = None) -> tuple[Tensor, Tensor]:
    """The positive and negative pairs of a pair_batch, mining applied.

    Args:
        pair_batch: the batch, or a part of it.
        settled: numbers for the whole batch that the miner refers to, where the pair_batch is a part.

    Examples:
        >>> import torch
        >>> from likewise.formula import Labels, Mined, PairBatch, s
        >>> relation = Mined(Labels(torch.tensor([0, 1])), keep_positive=s < 1.0, keep_negative=0.5 < s)
        >>> dense_masks(PairBatch(relation, similarities=torch.full((2, 2), 0.2)))[1].any()
        tensor(False)
    """
    relation = pair_batch.relation
    if not isinstance(relation, Mined):
        return relation.masks()
    pair_batch.similarities()  # made once, with its graph, before the graph is switched off
    # mining is a choice, not a function to be differentiated
    with torch.no_grad():
        base = pair_batch.under(relation.base)
        engine = DenseEngine(base)
        conditions = [relation.keep_positive, relation.keep_negative]
        known = compute_folds(conditions, engine, base, settled)
        engine.learn(known)
        keep_positive, keep_negative = (engine.per_pair(condition) for condition in conditions)
    return engine.positive & keep_positive, engine.negative & keep_negative
