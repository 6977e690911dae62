"""The positions of each anchor's positives, from labels."""

from __future__ import annotations

import torch
from torch import Tensor

from likewise._compat import is_transformed
from likewise.distributed import SINGLE_PROCESS
from likewise.engines.chosen import GATHER_AT_ONCE
from likewise.engines.installed import has_triton
from likewise.engines.synchronization import can_synchronize
from likewise.formula import (
    Labels,
    Levels,
    PairBatch,
    PositiveIndex,
    has_similarity_hook,
)

FEW = (1, 2, 3, 4, 6, 8, 12, 16)
"""The numbers of positives that `expand` supports; each number has a kernel."""

COMPARE_UP_TO = 2**14
"""Samples up to which comparing all labels with each other takes less time than the launches of a sort."""


def find_positive_index(batch: PairBatch, *, large: bool, most: int = FEW[-1]) -> PositiveIndex | None:
    r"""The positions of each anchor's positives, if labels determine them and no anchor has more than ``most``.

    Labels are sorted, $O(B\log B)$, or compared by a kernel on a GPU; the host waits once, for the largest and the smallest
    number of positives.

    Args:
        batch: the batch.
        large: whether the batch is large enough to synchronize with a device.
        most: the largest number of positives.

    Examples:
        >>> import torch
        >>> from likewise.formula import Labels, PairBatch
        >>> batch = PairBatch(Labels(torch.tensor([5, 7, 5])), matrix=torch.eye(3))
        >>> find_positive_index(batch, large=False)
        PositiveIndex(index=tensor([[2],
                [0],
                [0]]), exists=tensor([[ True],
                [False],
                [ True]]))
    """
    relation = batch.relation
    if has_similarity_hook() or not isinstance(relation, Labels | Levels):
        return None
    known = relation.positives if isinstance(relation, Labels) else None
    if not (can_synchronize(relation.labels, large=large) or (large and known is not None)):
        return None
    if isinstance(relation, Levels):
        return _index_levels(relation, most)
    if known is not None:
        return known if known.index.shape[1] <= most else None
    if batch.group is SINGLE_PROCESS and _pays_comparing(relation):
        needed, found = _compare_labels(relation.labels)
        if needed > most:
            return None
        if needed <= FEW[-1]:
            return found
    order, first, number, place = _find_runs(relation)
    if place is not None:  # an anchor is in the run of its class but does not count as a positive of itself
        inside = (place >= 0) & (place < number)
        number = number - inside.long()
    # in a distributed batch all ranks must make the same decision, from the references, which they share
    runs = (
        number
        if batch.group is SINGLE_PROCESS
        else _lengths(relation.labels[order] if relation.reference_labels is None else relation.reference_labels[order])
    )
    needed, fewest = (
        torch.stack([runs.max(), number.min()]).tolist() if len(order) and len(runs) and len(number) else (0, 0)
    )
    if needed > most:
        return None
    width = next((few for few in FEW if few >= needed), needed)
    position = torch.arange(width, device=first.device)[None, :].expand(len(first), width)
    exists = None if fewest >= width else position < number[:, None]
    if place is not None:
        position = position + (inside[:, None] & (position >= place[:, None])).long()
    if not len(order):
        return PositiveIndex(torch.zeros_like(position), position < 0)
    position = first[:, None] + position
    return PositiveIndex(order[position if exists is None else torch.where(exists, position, 0)], exists)


def _pays_comparing(relation: Labels) -> bool:
    """Return whether comparing all labels takes less time than sorting them: on a GPU, for a batch against itself."""
    labels = relation.labels
    own = relation.reference_labels is None and relation.valid is None
    fits = own and labels.is_cuda and 0 < len(labels) <= COMPARE_UP_TO
    return fits and not is_transformed() and has_triton()  # transforms wrap labels, which kernels cannot read


def _compare_labels(labels: Tensor) -> tuple[int, PositiveIndex]:
    """Return the largest number of positives, and those of each sample if no sample has more than the last of `FEW`."""
    from likewise.engines.triton.positives import find_positives

    index, number, extremes = find_positives(labels, FEW[-1])
    needed, gaps = extremes.tolist()
    width = next((few for few in FEW if few >= needed), FEW[-1])
    index = index[:, :width].contiguous()
    if FEW[-1] - gaps >= width:
        return needed, PositiveIndex(index, None)
    return needed, PositiveIndex(index, torch.arange(width, device=index.device) < number[:, None])


def _index_levels(relation: Levels, most: int) -> PositiveIndex | None:
    """Return the positions of the references that share a level with an anchor, if there cannot be many of them."""
    columns = relation.references.sort(dim=0).values.T.contiguous()
    if not columns.shape[1] or not len(relation.labels):
        return None
    # from the references, which all ranks of a distributed batch share: all must make the same decision
    if sum(int(_lengths(column).max()) for column in columns) > most:
        return None
    m, n = len(relation.labels), len(relation.references)
    chunks = [slice(first, first + max(GATHER_AT_ONCE // n, 1)) for first in range(0, m, max(GATHER_AT_ONCE // n, 1))]
    masks = [relation.masks(rows)[0] for rows in chunks]
    needed = max(int(mask.sum(dim=1).max()) for mask in masks)
    width = min(next((few for few in FEW if few >= needed), needed), n)
    found = [mask.to(torch.uint8).topk(width, dim=1) for mask in masks]
    return PositiveIndex(torch.cat([each.indices for each in found]), torch.cat([each.values for each in found]) > 0)


def _lengths(ordered: Tensor) -> Tensor:
    """The number of occurrences of each sorted label."""
    return torch.searchsorted(ordered, ordered, right=True) - torch.searchsorted(ordered, ordered)


def _find_runs(relation: Labels) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """The references sorted by label, and the start and length of the run of each anchor's class.

    The last result is the anchor's position in that run, or outside of it; ``None`` if no anchor is a reference.
    """
    # torch searches non-contiguous tensors slowly and warns about it
    own, labels = relation.own, relation.labels.contiguous()
    if relation.reference_labels is None:
        references = labels
        own = torch.arange(len(labels), device=labels.device)
    else:
        references = relation.reference_labels.contiguous()
    order = references.argsort(stable=True)
    place = None
    if relation.valid is not None:
        order = order[relation.valid[order]]
    ordered = references[order]
    first = torch.searchsorted(ordered, labels)
    number = torch.searchsorted(ordered, labels, right=True) - first
    if own is not None:
        where = torch.full_like(references, -1).scatter_(0, order, torch.arange(len(order), device=order.device))
        found = torch.where(own >= 0, where[own.clamp_min(0)], -1)
        place = torch.where(found >= 0, found - first, -1)
    return order, first, number, place
