"""The positives of each anchor, side by side: few of them, found from labels without looking at all pairs."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from likewise.distributed import SINGLE_PROCESS
from likewise.formula import Labels, PairBatch, can_read_values, has_similarity_hook

FEW = (1, 2, 3, 4, 6, 8, 12, 16)
"""The numbers of slots there can be: more positives than the last are not few, and a kernel is made for each number."""

CHUNK = 2**24
"""How many numbers may be gathered at once."""


@dataclass(frozen=True, eq=False)
class PositiveIndex:
    """For each anchor the indices of its positives, and which of them exist; both ``(m, slots)``.

    Examples:
        >>> import torch
        >>> PositiveIndex(torch.tensor([[1]]), torch.tensor([[True]])).index.shape
        torch.Size([1, 1])
    """

    index: Tensor
    exists: Tensor


def can_synchronize(tensor: Tensor, engine: str) -> bool:
    """Whether a number may be asked of the tensor's device: on the CPU always; elsewhere of a large batch only.

    The dense engine runs small batches, where waiting for the device would take longer than the loss.

    Examples:
        >>> import torch
        >>> can_synchronize(torch.zeros(1), "dense"), can_synchronize(torch.zeros(1, device="meta"), "chunked")
        (True, False)
    """
    if can_read_values(tensor):
        return True
    if engine == "dense" or tensor.is_meta or torch.compiler.is_compiling():
        return False
    return not (tensor.is_cuda and torch.cuda.is_current_stream_capturing())


def find_positive_index(batch: PairBatch, engine: str, *, most: int = FEW[-1]) -> PositiveIndex | None:
    r"""The positives of each anchor, where labels say who they are and no anchor has many; ``None`` elsewhere.

    Labels are sorted, $O(B\log B)$; the largest number of positives is the one number that is asked of the device.

    Examples:
        >>> import torch
        >>> from likewise.formula import Labels, PairBatch
        >>> batch = PairBatch(Labels(torch.tensor([5, 7, 5])), similarities=torch.eye(3))
        >>> find_positive_index(batch, "dense")
        PositiveIndex(index=tensor([[2],
                [0],
                [0]]), exists=tensor([[ True],
                [False],
                [ True]]))
    """
    relation = batch.relation
    if has_similarity_hook() or not isinstance(relation, Labels) or not can_synchronize(relation.labels, engine):
        return None
    order, first, number, place = _runs(relation)
    if place is not None:  # an anchor stands in the run of its own class, and is not its positive
        inside = (place >= 0) & (place < number)
        number = number - inside.long()
    # where anchors are spread over processes, all must decide alike: by the references, which they share
    runs = (
        number
        if batch.group is SINGLE_PROCESS
        else _lengths(relation.labels[order] if relation.reference_labels is None else relation.reference_labels[order])
    )
    needed = int(runs.max()) if len(order) and len(runs) else 0
    if needed > most:
        return None
    width = next((few for few in FEW if few >= needed), needed)
    slot = torch.arange(width, device=first.device)[None, :].expand(len(first), width)
    exists = slot < number[:, None]
    if place is not None:
        slot = slot + (inside[:, None] & (slot >= place[:, None])).long()
    if not len(order):
        return PositiveIndex(torch.zeros_like(slot), exists)
    return PositiveIndex(order[torch.where(exists, first[:, None] + slot, 0)], exists)


def _lengths(ordered: Tensor) -> Tensor:
    """For each of some sorted labels how many there are of it."""
    return torch.searchsorted(ordered, ordered, right=True) - torch.searchsorted(ordered, ordered)


def _runs(relation: Labels) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """The references in the order of their labels; where each anchor's class begins there, and how long it is.

    The last is where the anchor itself stands in that run, or outside of it; ``None`` where nobody is a reference too.
    """
    # torch searches for the column of a table slowly, and warns of it
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


def similarities_at(batch: PairBatch, anchors: Tensor, references: Tensor) -> Tensor:
    """The similarities of chosen pairs, differentiable: ``anchors`` and ``references`` are indices of one shape.

    Where the matrix was made they are read off; elsewhere each is a product of its own, made again in the backward pass.

    Examples:
        >>> import torch
        >>> from likewise.formula import Cosine, Labels, PairBatch
        >>> batch = PairBatch(Labels(torch.tensor([0, 1])), Cosine(), anchors=torch.tensor([[1.0, 0.0], [0.6, 0.8]]))
        >>> similarities_at(batch, torch.tensor([0, 1]), torch.tensor([1, 1]))
        tensor([0.6000, 1.0000])
    """
    if batch.is_matrix:
        S = batch.similarities()
        return S.reshape(-1).index_select(0, (anchors * S.shape[1] + references).reshape(-1)).view(anchors.shape)
    similarity, (left, right) = batch.similarity, batch.factors()
    assert similarity is not None

    squares = similarity._both_squares(left, right) if similarity.uses_squares else None

    def of_some(some: Tensor, others: Tensor) -> Tensor:
        products = (left.index_select(0, some) * right.index_select(0, others)).sum(dim=1)
        if squares is None:
            return similarity.link(products, products.new_empty(0), products.new_empty(0))
        of_left, of_right = squares
        return similarity.link(products, of_left[some, 0], of_right[0, others])

    size = max(CHUNK // left.shape[1], 1)
    chunks = list(zip(*(torch.split(index.reshape(-1), size) for index in (anchors, references)), strict=True))
    if (len(chunks) == 1 and anchors.numel() <= size // 4) or not torch.is_grad_enabled():
        found = [of_some(*chunk) for chunk in chunks]
    else:
        found = [
            checkpoint(of_some, *chunk, use_reentrant=False, preserve_rng_state=False, determinism_check="none")
            for chunk in chunks
        ]
    return torch.cat(found).view(anchors.shape)
