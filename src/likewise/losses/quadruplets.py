"""Sums over all quadruplets of a batch: negative pairs are located among sorted thresholds from positive pairs."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from likewise.distributed import SINGLE_PROCESS
from likewise.engines import similarities_at
from likewise.formula import (
    SNR,
    Labels,
    MatrixLoss,
    PairBatch,
    RowChunk,
    RowMapper,
    TermValues,
    Triplets,
    has_similarity_hook,
)


class Thresholds(NamedTuple):
    """The thresholds of a batch, sorted, and sorted within each class; a missing one is infinite.

    Args:
        ordered: the thresholds, ``(t,)``, ascending.
        rank: the position of each threshold in ``ordered``.
        keys: ``class · (t + 1) + rank`` of each threshold, ascending.
        place: the position of each threshold among the keys.
        first: the index of this rank's first threshold.
    """

    ordered: Tensor
    rank: Tensor
    keys: Tensor
    place: Tensor
    first: int


class Tally(NamedTuple):
    """Sums and counts of negative pairs between thresholds, for all pairs and for those that contain a class."""

    sums: Tensor
    numbers: Tensor
    class_sums: Tensor
    class_numbers: Tensor
    of_class: Tensor


def sum_all(margin: float, disjoint: bool = True) -> MatrixLoss:
    """Declare the sum over all quadruplets; see `sum_quadruplets`."""
    compute = partial(sum_quadruplets, margin=margin, disjoint=disjoint)
    return MatrixLoss(compute, evaluates_formulas=True, needs_positives=True)


def sum_quadruplets(batch: PairBatch, rows: RowMapper, margin: float, disjoint: bool = True) -> list[TermValues]:
    r"""Sum the hinges of positive pairs against all negative pairs, or against those that do not contain their class.

    A negative pair contains two classes.  The disjoint sum is the sum over all negative pairs, minus those whose first
    member is in the class, minus those whose second member is.  Bisection locates each negative pair among the sorted
    thresholds ``s_ap − margin``, in $O(B^2\log B)$; the pair exceeds all thresholds before its position.

    Args:
        batch: the batch, with labels.
        rows: runs functions of matrix rows.
        margin: the margin.
        disjoint: exclude the negative pairs that contain the class of the positive pair.
    """
    if isinstance(batch.relation, Triplets):
        raise TypeError("a loss on quadruplets is defined on all of a batch and takes no triplets and no triplet miner")
    if batch.labels is None:
        raise TypeError(
            "labels must be given together with a relation, because three classes of a quadruplet differ, but they are None"
        )
    labels = batch.gather(batch.labels)
    # an index for each class, below the number of samples, that does not require counting the classes
    classes = torch.searchsorted(labels.sort().values, labels)
    own = classes if batch.local_rows is None else classes[batch.local_rows.local]
    near, exists = _positives(batch, rows)
    limits = near - margin
    found = rows.excess(limits.masked_fill(~exists, torch.inf), classes, apart=disjoint)
    if found is not None:
        return [_sum_excess(*found, exists, labels, near.dtype, disjoint=disjoint)]
    thresholds = _thresholds(limits.detach().masked_fill(~exists, torch.inf), own, batch)
    tally = _tally(batch, rows, thresholds, own, classes)
    here = slice(thresholds.first, thresholds.first + limits.numel())
    rank, place = thresholds.rank[here], thresholds.place[here]
    which = own[:, None].expand_as(limits).reshape(-1)
    end = torch.searchsorted(thresholds.keys, (which + 1) * (len(thresholds.ordered) + 1))

    def above(of_all: Tensor, of_class: Tensor) -> Tensor:
        total, inside = of_all.cumsum(0), of_class.cumsum(0)
        found = total[-1] - total[rank]
        return (found - inside[end + which] + inside[place + which] if disjoint else found).view_as(limits)

    numbers = above(tally.numbers, tally.class_numbers)
    excess = above(tally.sums, tally.class_sums) - numbers * limits.double()
    total = torch.where(exists, excess, 0.0).sum(dim=1).clamp_min(0.0).to(limits.dtype)
    eligible = tally.numbers.sum() - (tally.of_class[own] if disjoint else 0)
    return [TermValues(total, exists.sum(dim=1) * eligible, torch.where(exists, numbers, 0).sum(dim=1))]


def _sum_excess(
    excess: Tensor, numbers: Tensor, exists: Tensor, labels: Tensor, dtype: torch.dtype, *, disjoint: bool
) -> TermValues:
    """The term from the excess of negative pairs over each threshold, and the number of these pairs."""
    ordered = labels.sort().values
    size = torch.searchsorted(ordered, labels, right=True) - torch.searchsorted(ordered, labels)
    others = len(labels) - size
    eligible = others.sum() - (2 * size * others if disjoint else 0)
    total = torch.where(exists, excess, 0.0).sum(dim=1).clamp_min(0.0).to(dtype)
    return TermValues(total, exists.sum(dim=1) * eligible, torch.where(exists, numbers, 0).sum(dim=1))


def _positives(batch: PairBatch, rows: RowMapper) -> tuple[Tensor, Tensor]:
    """The similarities of each anchor's positives, and which of them exist; all references if there is no index."""
    positives = rows.positive_index(most=batch.shape[1])
    if positives is None:
        near, exists = rows.map(lambda chunk: (chunk.similarities, chunk.masks()[0]))
        return near, exists
    return similarities_at(batch, None, positives.index), positives.mask


def _thresholds(limits: Tensor, own: Tensor, batch: PairBatch) -> Thresholds:
    """The sorted thresholds of all ranks."""
    flat, which = limits.reshape(-1), own[:, None].expand_as(limits).reshape(-1)
    first = 0
    if batch.group is not SINGLE_PROCESS:
        rows = batch.group.rows(flat)
        first = rows.offset
        flat, which = batch.group.gather(flat, rows), batch.group.gather(which, rows)
    ordered, order = flat.sort()
    rank = _inverse(order)
    keys, by_class = (which * (len(flat) + 1) + rank).sort()
    return Thresholds(ordered, rank, keys, _inverse(by_class), first)


def _inverse(order: Tensor) -> Tensor:
    return torch.empty_like(order).scatter(0, order, torch.arange(len(order), device=order.device))


def _tally(batch: PairBatch, rows: RowMapper, thresholds: Thresholds, own: Tensor, classes: Tensor) -> Tally:
    """Count and sum the negative pairs between any two thresholds, over all ranks."""
    size, n = len(thresholds.ordered) + 1, len(classes)
    # a symmetric matrix contains each pair twice, so the first members suffice; a hook needs the gradient of every entry
    symmetric = (
        isinstance(batch.relation, Labels) and not isinstance(batch.similarity, SNR) and not has_similarity_hook()
    )

    def of_rows(chunk: RowChunk) -> tuple[Tensor, ...]:
        S, (_, negative), members = chunk.similarities, chunk.masks(), own[chunk.rows]
        place = torch.searchsorted(thresholds.ordered, S.detach().contiguous())
        values, counted = torch.where(negative, S, 0.0).double(), negative.long()

        def collect(where: Tensor, length: int) -> tuple[Tensor, Tensor]:
            where = where.reshape(-1)
            sums = values.new_zeros(length).scatter_add(0, where, values.reshape(-1))
            return sums, counted.new_zeros(length).scatter_add(0, where, counted.reshape(-1))

        def touching(member: Tensor) -> tuple[Tensor, Tensor]:
            # each class adds one position, so that the last position of a class is not the first of the next
            return collect(torch.searchsorted(thresholds.keys, member * size + place) + member, size + n)

        sums, numbers = collect(place, size)
        class_sums, class_numbers = touching(members[:, None])
        of_class = counted.new_zeros(n).index_add(0, members, counted.sum(dim=1))
        if symmetric:
            return sums, numbers, 2.0 * class_sums, 2 * class_numbers, 2 * of_class
        more = touching(classes[None, :].expand_as(place))
        of_class = of_class.index_add(0, classes, counted.sum(dim=0))
        return sums, numbers, class_sums + more[0], class_numbers + more[1], of_class

    return Tally(*(batch.group.total(each) for each in rows.sum(of_rows)))
