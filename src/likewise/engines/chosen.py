"""Chosen pairs and explicit triplets: their similarities and numbers, gathered in chunks, and sums over triplets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from likewise.engines.pair_numbers import PairNumbers
from likewise.engines.recompute import call_recomputed
from likewise.formula import (
    AtPositive,
    Counted,
    Formula,
    PairBatch,
    PerAnchor,
    PerPair,
    PerReference,
    PerTriplet,
    TermValues,
    Triplets,
    TripletTerm,
    evaluate,
    ingredients,
    is_nonzero,
    s,
    s_p,
    take_columns,
    take_rows,
)

GATHER_AT_ONCE = 2**24
"""The number of entries that may be gathered at once."""


# ------------------------------------------------------------------------------------------------ explicit triplets


def sum_triplets(term: TripletTerm, batch: PairBatch, counted: Counted | None = None) -> TermValues:
    """Compute a term over explicit triplets: per anchor the sum of values, their number, and that of nonzero ones.

    Args:
        term: the term.
        batch: the batch; its relation is the triplets.
        counted: how units are averaged, so that only the count that this needs is computed; ``None``: both.

    Examples:
        >>> import torch
        >>> from likewise.formula import per_triplet, relu
        >>> zero, one, two = torch.tensor([0]), torch.tensor([1]), torch.tensor([2])
        >>> batch = PairBatch(Triplets(zero, one, two).with_shape(3, 3), matrix=torch.tensor([[1.0, 0.2, 0.5]] * 3))
        >>> sum_triplets(per_triplet(relu(s - s_p)), batch).total
        tensor([0.3000, 0.0000, 0.0000])
    """
    triplets = _Triplets.of(batch)
    near, far = triplets.similarities()
    known: dict[Formula, Any] = {s_p: near, s: far}
    for node in {node for value in term.values for node in ingredients(value)} - known.keys():
        known |= triplets.numbers(node)
    values = torch.stack([_as_tensor(evaluate(value, known), near).expand_as(near) for value in term.values])
    counts = None if triplets.valid is None else triplets.valid.expand_as(values)
    if term.thresholds is not None:
        inside = [evaluate(term.thresholds.contains(value), known).expand_as(near) for value in term.values]
        counts = torch.stack(inside) if counts is None else counts & torch.stack(inside)
    if counts is None:
        counts = torch.ones_like(values, dtype=torch.bool)
    else:
        values = values.masked_fill(~counts, 0.0)
    return TermValues(
        triplets.add(values),
        triplets.add(counts) if counted in (None, "mean") else None,
        triplets.add(is_nonzero(values)) if counted in (None, "nonzero") else None,
    )


def _as_tensor(value: Any, like: Tensor) -> Tensor:
    return value if isinstance(value, Tensor) else like.new_full((), value)


class _Triplets(NamedTuple):
    """The triplets of a batch: indices of one shape, ``(m, k)`` if every anchor has k of them, otherwise ``(t,)``.

    Args:
        batch: the batch.
        anchors: ``None`` if row k holds the triplets of anchor k.
        positives: indices of references.
        negatives: the same.
        valid: which triplets count; ``None``: all.
    """

    batch: PairBatch
    anchors: Tensor | None
    positives: Tensor
    negatives: Tensor
    valid: Tensor | None

    @classmethod
    def of(cls, batch: PairBatch) -> _Triplets:
        """The triplets of a batch."""
        given = batch.relation
        assert isinstance(given, Triplets)
        if given.per_anchor is None:
            return cls(batch, given.anchors, given.positives, given.negatives, given.valid)
        shape = (batch.shape[0], given.per_anchor)
        valid = None if given.valid is None else given.valid.view(shape)
        return cls(batch, None, given.positives.view(shape), given.negatives.view(shape), valid)

    def similarities(self) -> tuple[Tensor, Tensor]:
        """The similarities of positives and of negatives."""
        if self.anchors is None:
            both = torch.stack([self.positives, self.negatives], dim=1)
            if self.valid is not None and self.batch.matrix is None:
                # unused entries often name the same reference, whose row would receive their gradients one by one
                m, n = self.batch.shape
                own = torch.arange(m, device=both.device).remainder(n)
                both = torch.where(self.valid[:, None], both, own[:, None, None])
            near, far = similarities_at(self.batch, None, both.flatten(1)).view(both.shape).unbind(dim=1)
        else:
            both = torch.stack([self.positives, self.negatives])
            near, far = similarities_at(self.batch, self.anchors.expand(both.shape), both).unbind()
        return near, far

    def numbers(self, node: Formula) -> dict[Formula, Tensor]:
        """The number that a leaf of the value has for each triplet."""
        batch = self.batch
        if isinstance(node, PerAnchor):
            of_anchors = node.compute(batch)
            return {node: of_anchors[:, None] if self.anchors is None else of_anchors[self.anchors]}
        if isinstance(node, PerReference):
            return {node: node.compute(batch)[self.negatives]}
        others = {
            AtPositive: (self.positives,),
            PerPair: (self.negatives,),
            PerTriplet: (self.positives, self.negatives),
        }
        if type(node) not in others:
            return {}
        leaf = node.pair if isinstance(node, AtPositive) else node
        return {node: numbers_at(PairNumbers.of(leaf, batch), batch, self.anchors, *others[type(node)])}  # type: ignore[arg-type]

    def add(self, numbers: Tensor) -> Tensor:
        """The sum over the values, and over each anchor's triplets."""
        if self.anchors is None:
            return numbers.sum(dim=(0, 2))
        of_triplets = numbers.sum(dim=0)
        return of_triplets.new_zeros(self.batch.shape[0]).index_add(0, self.anchors, of_triplets)


# ------------------------------------------------------------------------------------------------ chosen pairs


def numbers_at(numbers: PairNumbers, batch: PairBatch, anchors: Tensor | None, *references: Tensor) -> Tensor:
    """Return numbers per pair, or per triplet, at indices of one shape, differentiable, in recomputed chunks if many.

    Args:
        numbers: the numbers.
        batch: the batch.
        anchors: indices, of the shape of references; ``None``: each row of references belongs to one anchor.
        references: indices of positives, of negatives, or of both.

    Examples:
        >>> import torch
        >>> from likewise.formula import Labels
        >>> batch = PairBatch(Labels(torch.tensor([0, 1])), matrix=torch.eye(2))
        >>> gap = PairNumbers.of(PerPair("gap", lambda _batch, rows, columns: rows - columns), batch)
        >>> numbers_at(gap, batch, torch.tensor([0, 1]), torch.tensor([1, 1]))
        tensor([-1.,  0.])
    """
    # compute may gather an embedding for every index
    width = 1 if batch.anchors is None else batch.anchors.shape[1]
    if anchors is None:
        anchors = torch.arange(len(references[0]), device=references[0].device)[:, None].expand_as(references[0])
    index = [each.reshape(-1) for each in (anchors, *references)]
    return _in_chunks(numbers.at, index, max(GATHER_AT_ONCE // width, 1)).view(anchors.shape)


def _in_chunks(compute: Callable[..., Tensor], inputs: Sequence[Tensor], size: int) -> Tensor:
    """A function of tensors with equally many rows, in chunks that are recomputed in the backward pass if there are many."""
    chunks = list(zip(*(torch.split(each, size) for each in inputs), strict=True))
    roomy = len(chunks) == 1 and len(inputs[0]) <= size // 4
    return torch.cat([compute(*chunk) if roomy else call_recomputed(compute, *chunk) for chunk in chunks])


def similarities_at(batch: PairBatch, anchors: Tensor | None, references: Tensor) -> Tensor:
    """Return the similarities of chosen pairs, differentiable.

    They are entries of the matrix if the batch holds it; otherwise inner products, recomputed in the backward pass.

    Args:
        batch: the batch.
        anchors: indices, of the shape of references; ``None``: each row of references belongs to one anchor.
        references: indices; ``(m, k)`` without anchors.

    Examples:
        >>> import torch
        >>> from likewise.formula import Cosine, Labels, PairBatch
        >>> batch = PairBatch(Labels(torch.tensor([0, 1])), Cosine(), anchors=torch.tensor([[1.0, 0.0], [0.6, 0.8]]))
        >>> similarities_at(batch, torch.tensor([0, 1]), torch.tensor([1, 1]))
        tensor([0.6000, 1.0000])
        >>> similarities_at(batch, None, torch.tensor([[1], [1]]))
        tensor([[0.6000],
                [1.0000]])
    """
    if batch.matrix is not None:
        S = batch.matrix
        if anchors is None:
            return take_columns(S, references)
        return take_rows(S.reshape(-1), (anchors * S.shape[1] + references).reshape(-1)).view(anchors.shape)
    similarity, (left, right) = batch.similarity, batch.both_factors()
    assert similarity is not None

    def of_rows(some: Tensor, others: Tensor) -> Tensor:  # (r, d) and (r, k)
        chosen = take_rows(right, others.reshape(-1))
        products = (some[:, None] * chosen.view(*others.shape, chosen.shape[1])).sum(dim=2)
        squares = [products.new_empty(0)] * 2
        if similarity.uses_squares:
            squares = [similarity.squares(some)[:, None], similarity.squares(chosen).view(others.shape)]
        return similarity.of_products(products, *squares)

    def of_pairs(some: Tensor, others: Tensor) -> Tensor:
        return of_rows(take_rows(left, some), others)

    size = GATHER_AT_ONCE // left.shape[1]
    if anchors is None:
        return _in_chunks(of_rows, (left, references), max(size // max(references.shape[1], 1), 1))
    return _in_chunks(of_pairs, (anchors.reshape(-1), references.reshape(-1, 1)), max(size, 1)).view(anchors.shape)
