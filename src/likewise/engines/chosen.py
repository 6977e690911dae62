"""Chosen pairs and explicit triplets: their similarities and numbers, gathered in chunks, and sums over triplets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from likewise.engines.pair_numbers import PairNumbers
from likewise.engines.recompute import call_recomputed
from likewise.formula import (
    AtPositive,
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
    take_rows,
)

GATHER_AT_ONCE = 2**24
"""The number of entries that may be gathered at once."""


# ------------------------------------------------------------------------------------------------ explicit triplets


def sum_triplets(term: TripletTerm, batch: PairBatch) -> TermValues:
    """Compute a term over explicit triplets: per anchor the sum of values, their number, and that of nonzero ones.

    Examples:
        >>> import torch
        >>> from likewise.formula import per_triplet, relu
        >>> zero, one, two = torch.tensor([0]), torch.tensor([1]), torch.tensor([2])
        >>> batch = PairBatch(Triplets(zero, one, two).with_shape(3, 3), matrix=torch.tensor([[1.0, 0.2, 0.5]] * 3))
        >>> sum_triplets(per_triplet(relu(s - s_p)), batch).total
        tensor([0.3000, 0.0000, 0.0000])
    """
    triplets = batch.relation
    assert isinstance(triplets, Triplets)
    known: dict[Formula, Any] = {
        s_p: similarities_at(batch, triplets.anchors, triplets.positives),
        s: similarities_at(batch, triplets.anchors, triplets.negatives),
    }
    for node in {node for value in term.values for node in ingredients(value)} - known.keys():
        known |= _numbers_of_triplets(node, batch, triplets)
    valid = torch.ones_like(triplets.anchors) if triplets.valid is None else triplets.valid.long()

    def add(numbers: Tensor) -> Tensor:
        return numbers.new_zeros(batch.shape[0]).index_add(0, triplets.anchors, numbers)

    values = [evaluate(value, known) * valid for value in term.values]
    units = valid * len(values)
    if term.thresholds is not None:
        counted = [evaluate(term.thresholds.contains(value), known) & (valid > 0) for value in term.values]
        values = [torch.where(each, value, 0.0) for each, value in zip(counted, values, strict=True)]
        units = torch.stack(counted).sum(dim=0)
    return TermValues(
        add(sum(values[1:], values[0])),
        add(units),
        add(sum((is_nonzero(value).long() for value in values), torch.zeros_like(valid))),
    )


def _numbers_of_triplets(node: Formula, batch: PairBatch, triplets: Triplets) -> dict[Formula, Tensor]:
    """Return the number that a leaf of the value has for each explicit triplet."""
    anchors, positives, negatives = triplets.anchors, triplets.positives, triplets.negatives
    if isinstance(node, PerAnchor | PerReference):
        return {node: node.compute(batch)[anchors if isinstance(node, PerAnchor) else negatives]}
    if isinstance(node, AtPositive):
        return {node: numbers_at(PairNumbers.of(node.pair, batch), batch, anchors, positives)}
    if isinstance(node, PerPair):
        return {node: numbers_at(PairNumbers.of(node, batch), batch, anchors, negatives)}
    if isinstance(node, PerTriplet):
        return {node: numbers_at(PairNumbers.of(node, batch), batch, anchors, positives, negatives)}
    return {}


# ------------------------------------------------------------------------------------------------ chosen pairs


def numbers_at(numbers: PairNumbers, batch: PairBatch, *index: Tensor) -> Tensor:
    """Return numbers per pair, or per triplet, at indices of one shape, differentiable, in recomputed chunks if many.

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
    return _in_chunks(numbers.at, index, max(GATHER_AT_ONCE // width, 1))


def _in_chunks(compute: Callable[..., Tensor], index: tuple[Tensor, ...], size: int) -> Tensor:
    """A function of indices of one shape, in chunks that are recomputed in the backward pass if there are many."""
    chunks = list(zip(*(torch.split(each.reshape(-1), size) for each in index), strict=True))
    roomy = len(chunks) == 1 and index[0].numel() <= size // 4
    found = [compute(*chunk) if roomy else call_recomputed(compute, *chunk) for chunk in chunks]
    return torch.cat(found).view(index[0].shape)


def similarities_at(batch: PairBatch, anchors: Tensor, references: Tensor) -> Tensor:
    """Return the similarities of chosen pairs, differentiable: ``anchors`` and ``references`` are indices of one shape.

    They are entries of the matrix if the batch holds it; otherwise inner products, recomputed in the backward pass.

    Examples:
        >>> import torch
        >>> from likewise.formula import Cosine, Labels, PairBatch
        >>> batch = PairBatch(Labels(torch.tensor([0, 1])), Cosine(), anchors=torch.tensor([[1.0, 0.0], [0.6, 0.8]]))
        >>> similarities_at(batch, torch.tensor([0, 1]), torch.tensor([1, 1]))
        tensor([0.6000, 1.0000])
    """
    if batch.matrix is not None:
        S = batch.matrix
        return take_rows(S.reshape(-1), (anchors * S.shape[1] + references).reshape(-1)).view(anchors.shape)
    similarity, (left, right) = batch.similarity, batch.both_factors()
    assert similarity is not None

    squares = similarity._both_squares(left, right) if similarity.uses_squares else None

    def of_some(some: Tensor, others: Tensor) -> Tensor:
        products = (take_rows(left, some) * take_rows(right, others)).sum(dim=1)
        if squares is None:
            return similarity.of_products(products, products.new_empty(0), products.new_empty(0))
        of_left, of_right = squares
        return similarity.of_products(products, of_left[some, 0], of_right[0, others])

    return _in_chunks(of_some, (anchors, references), max(GATHER_AT_ONCE // left.shape[1], 1))
