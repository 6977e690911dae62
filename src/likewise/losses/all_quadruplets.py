"""Sums over all quadruplets of a batch: positive pairs are thresholds, and negative pairs find their place among them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from likewise.distributed import SINGLE_PROCESS
from likewise.engines import PositiveIndex, dense_masks, panels, similarities_at
from likewise.formula import SNR, Labels, PairBatch, TermValues, has_similarity_hook


class Thresholds(NamedTuple):
    """The thresholds of a batch in order, and once more in order within each class; a missing one is infinite.

    Args:
        ordered: the thresholds, ``(t,)``, ascending.
        rank: the place of each threshold there.
        keys: ``class · (t + 1) + place`` of each threshold, ascending.
        place: the place of each threshold among the keys.
        first: the number of this process's first threshold.
    """

    ordered: Tensor
    rank: Tensor
    keys: Tensor
    place: Tensor
    first: int


class Tally(NamedTuple):
    """Negative pairs by their place among thresholds: sums and numbers, of all pairs and of those that touch a class."""

    sums: Tensor
    numbers: Tensor
    class_sums: Tensor
    class_numbers: Tensor
    of_class: Tensor


def all_quadruplets(pair_batch: PairBatch, margin: float, slots: PositiveIndex | None, engine: str) -> TermValues:
    r"""Every positive pair's hinges against the negative pairs that do not touch its class.

    A negative pair touches two classes.  So: all negative pairs, less those with their first member in the class, less
    those with their second.  Each negative pair finds its place among the sorted thresholds ``s_ap − margin`` by
    bisection, $O(B^2\log B)$, and is above all thresholds before it.

    Args:
        pair_batch: the batch, with labels.
        margin: the margin.
        slots: the positives of each anchor, where they are few; else every entry of the matrix may be one.
        engine: the name of the engine; with any but the dense one the matrix is made in panels.
    """
    assert pair_batch.labels is not None
    everyones = pair_batch.gather(pair_batch.labels)
    # a number for each class that is below the number of samples, and is known without counting classes
    classes = torch.searchsorted(everyones.sort().values, everyones)
    own = classes if pair_batch.local_rows is None else classes[pair_batch.local_rows.own]
    if slots is None:
        near, exists = pair_batch.similarities(), dense_masks(pair_batch)[0]
    else:
        anchors = torch.arange(pair_batch.shape[0], device=own.device)[:, None].expand_as(slots.index)
        near, exists = similarities_at(pair_batch, anchors, slots.index), slots.exists
    limits = near - margin
    thresholds = _thresholds(limits.detach().masked_fill(~exists, torch.inf), own, pair_batch)
    tally = _tally(pair_batch, thresholds, own, classes, engine)
    here = slice(thresholds.first, thresholds.first + limits.numel())
    rank, place = thresholds.rank[here], thresholds.place[here]
    which = own[:, None].expand_as(limits).reshape(-1)
    end = torch.searchsorted(thresholds.keys, (which + 1) * (len(thresholds.ordered) + 1))

    def above(of_all: Tensor, of_class: Tensor) -> Tensor:
        total, inside = of_all.cumsum(0), of_class.cumsum(0)
        return (total[-1] - total[rank] - inside[end + which] + inside[place + which]).view_as(limits)

    numbers = above(tally.numbers, tally.class_numbers)
    excess = above(tally.sums, tally.class_sums) - numbers * limits.double()
    total = torch.where(exists, excess, 0.0).sum(dim=1).clamp_min(0.0).to(limits.dtype)
    eligible = tally.numbers.sum() - tally.of_class[own]
    return TermValues(total, exists.sum(dim=1) * eligible, torch.where(exists, numbers, 0).sum(dim=1))


def _thresholds(limits: Tensor, own: Tensor, pair_batch: PairBatch) -> Thresholds:
    """Everybody's thresholds in order."""
    flat, which = limits.reshape(-1), own[:, None].expand_as(limits).reshape(-1)
    first = 0
    if pair_batch.group is not SINGLE_PROCESS:
        rows = pair_batch.group.rows(flat)
        first = rows.offset
        flat, which = pair_batch.group.gather(flat, rows), pair_batch.group.gather(which, rows)
    ordered, order = flat.sort()
    rank = _inverse(order)
    keys, by_class = (which * (len(flat) + 1) + rank).sort()
    return Thresholds(ordered, rank, keys, _inverse(by_class), first)


def _inverse(order: Tensor) -> Tensor:
    return torch.empty_like(order).scatter_(0, order, torch.arange(len(order), device=order.device))


def _tally(pair_batch: PairBatch, thresholds: Thresholds, own: Tensor, classes: Tensor, engine: str) -> Tally:
    """Count and add up the negative pairs between any two thresholds, over all processes."""
    size, n = len(thresholds.ordered) + 1, len(classes)
    # a pair stands in the matrix twice where everything is mutual: what touches with its second member did with its first;
    # whoever watches wants every entry to have what is its own
    mutual = (
        isinstance(pair_batch.relation, Labels)
        and not isinstance(pair_batch.similarity, SNR)
        and not has_similarity_hook()
    )

    def of_panel(panel: PairBatch, rows: slice) -> tuple[Tensor, ...]:
        S, (_, negative) = panel.similarities(), dense_masks(panel)
        place = torch.searchsorted(thresholds.ordered, S.detach().contiguous())
        values, counted = torch.where(negative, S, 0.0).double(), negative.long()

        def collect(where: Tensor, length: int) -> tuple[Tensor, Tensor]:
            where = where.reshape(-1)
            sums = values.new_zeros(length).scatter_add(0, where, values.reshape(-1))
            return sums, counted.new_zeros(length).scatter_add(0, where, counted.reshape(-1))

        def touching(member: Tensor) -> tuple[Tensor, Tensor]:
            # one more place for each class before it: the last place of a class is not the first of the next
            return collect(torch.searchsorted(thresholds.keys, member * size + place) + member, size + n)

        sums, numbers = collect(place, size)
        class_sums, class_numbers = touching(own[rows, None])
        of_class = counted.new_zeros(n).index_add(0, own[rows], counted.sum(dim=1))
        if mutual:
            return sums, numbers, 2.0 * class_sums, 2 * class_numbers, 2 * of_class
        more = touching(classes[None, :].expand_as(place))
        of_class = of_class.index_add(0, classes, counted.sum(dim=0))
        return sums, numbers, class_sums + more[0], class_numbers + more[1], of_class

    return Tally(*(pair_batch.group.total(each) for each in _sums(pair_batch, of_panel, engine)))


def _sums(
    pair_batch: PairBatch, compute: Callable[[PairBatch, slice], tuple[Tensor, ...]], engine: str
) -> tuple[Tensor, ...]:
    """Sums over panels, each made again in the backward pass."""
    if engine == "dense":
        return compute(pair_batch, slice(None))
    pair_batch.factors()
    total: tuple[Tensor, ...] = ()
    for rows in panels(pair_batch):

        def of_rows(rows: slice = rows) -> tuple[Tensor, ...]:
            return compute(pair_batch.rows(rows), rows)

        piece = checkpoint(of_rows, use_reentrant=False, preserve_rng_state=False, determinism_check="none")
        total = tuple(a + b for a, b in zip(total, piece, strict=True)) if total else piece
    return total
