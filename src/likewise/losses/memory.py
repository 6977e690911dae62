"""Cross-batch memory: a queue of the embeddings of earlier batches as references."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from likewise._compat import is_inside_func
from likewise.distributed import current_group
from likewise.formula import (
    Labels,
    PairBatch,
    Relation,
    as_similarity,
    check_classes,
    embeddings_of,
    full_precision,
    labels_of,
    same_device,
    whole_number,
)
from likewise.losses.base import PairLoss, collect_groups
from likewise.losses.proxies import Queue
from likewise.losses.proxy_base import Between, ProxyLoss

ANCHORED_ON_PROXIES = {Between.PROXIES_SAMPLES, Between.PROXIES_PROXIES}


class CrossBatchMemory(nn.Module):
    """A loss whose references are the batch and a queue of earlier embeddings.  Wang et al. 2020 (XBM).

    The batch is compared with itself, with gradients on both sides as without a memory, and with the queue, whose
    embeddings are constants; an empty queue is the plain loss.  No sample is its own positive, by index.  A loss whose
    anchors are proxies (`ProxyAnchorLoss`, and `ProxyRepulsionLoss` as the thesis' outlook proposes) treats batch and
    queue as one large batch.

    In a distributed batch (`likewise.distributed.distributed_batch`) the queue stores the samples of all ranks, in the
    order of ranks: every rank has the same queue.  The queue keeps its address in memory from the first batch on, so that
    a step can be captured as a CUDA graph.

    Args:
        loss: a `PairLoss` that takes references, or a `ProxyLoss` whose anchors are proxies; kept as ``.loss``.
        size: the number of embeddings in the queue; the oldest are replaced first.
        warmup: the number of batches that are stored before the queue is used; features drift fast at first.

    Attributes:
        references: the queue, ``(size, d)``, allocated when the first batch is stored.
        reference_labels: its labels, ``(size,)``.
        pointer: the position of the next embedding.
        filled: the number of stored embeddings.
        batches: the number of stored batches.

    Examples:
        >>> import torch
        >>> from likewise.losses import ContrastiveLoss
        >>> memory = CrossBatchMemory(ContrastiveLoss(), size=100)
        >>> value = memory(torch.randn(8, 4), torch.arange(8) // 2)
        >>> int(memory.filled)
        8
    """

    references: Tensor
    reference_labels: Tensor
    pointer: Tensor
    filled: Tensor
    batches: Tensor

    def __init__(self, loss: PairLoss | ProxyLoss, size: int, *, warmup: int = 0) -> None:
        super().__init__()
        takes = isinstance(loss, PairLoss) and loss.takes_references
        if not takes and not (isinstance(loss, ProxyLoss) and set(loss.declare()) <= ANCHORED_ON_PROXIES):
            raise TypeError(
                "loss must be a pair loss that takes references or a proxy loss whose anchors are proxies, "
                f"but it is a {type(loss).__name__}"
            )
        self.loss = loss
        self.size = whole_number("size", size, 1)
        self.warmup = whole_number("warmup", warmup, 0)
        self.register_buffer("references", torch.empty(0, 0))
        self.register_buffer("reference_labels", torch.empty(0, dtype=torch.int64))
        for name in ("pointer", "filled", "batches"):
            self.register_buffer(name, torch.zeros((), dtype=torch.int64))

    def forward(
        self,
        embeddings: Tensor,
        labels: Tensor | None = None,
        references: Tensor | None = None,
        reference_labels: Tensor | None = None,
        *,
        relation: Relation | None = None,
    ) -> Tensor:
        """The loss of a batch against itself and the queue; in training the batch then joins the queue."""
        if references is not None or reference_labels is not None or relation is not None:
            raise ValueError("CrossBatchMemory compares with its queue and takes no references or relation")
        if labels is None:
            raise TypeError("labels must be given, because the queue stores them")
        with full_precision(embeddings):
            anchors = embeddings_of("embeddings", embeddings)
            labels = labels_of("labels", labels, len(anchors), anchors.device, "embeddings")
            if self.training and is_inside_func():
                raise RuntimeError(
                    "CrossBatchMemory cannot change its queue inside a transform of torch.func; call eval() before, and "
                    "add the batch by a call outside of the transform in training mode"
                )
            value = self._plain(anchors, labels) if not self.references.numel() else self._compare(anchors, labels)
            if self.training:
                group = current_group()
                rows = group.batch_rows(anchors)
                # gathered rows are cached, except in the first batch of a proxy loss
                self._remember(group.gather(anchors, rows).detach(), group.gather(labels, rows))
            return value

    def _plain(self, anchors: Tensor, labels: Tensor) -> Tensor:
        value: Tensor = self.loss(anchors, labels)
        return value

    def _compare(self, anchors: Tensor, labels: Tensor) -> Tensor:
        """Compare with batch and queue; empty entries of the queue, and all of them during warmup, are not valid."""
        if self.references.shape[1] != anchors.shape[1]:
            raise ValueError(
                f"embeddings must have the {self.references.shape[1]} dimensions of the memory, but have {anchors.shape[1]}"
            )
        same_device("embeddings", anchors, self.references.device, "the memory")
        dtype = torch.promote_types(anchors.dtype, self.references.dtype)
        anchors = anchors.to(dtype)
        stored = (torch.arange(self.size, device=labels.device) < self.filled) & (self.batches >= self.warmup)
        queue = Queue(self.references.to(dtype), self.reference_labels, stored)
        if isinstance(self.loss, ProxyLoss):
            check_classes(labels, self.loss.num_classes, "proxy")
            return self.loss.value(anchors, labels, queue)
        group = current_group()
        rows = group.batch_rows(anchors)
        references, reference_labels, valid = queue.after(group.gather(anchors, rows), group.gather(labels, rows))
        own = torch.arange(len(labels), device=labels.device) + rows.offset
        relation = Labels(labels, reference_labels, own=own, valid=valid)
        similarity = as_similarity(self.loss.similarity)
        return self.loss.value(PairBatch(relation, similarity, anchors=anchors, references=references, group=group))

    def _remember(self, anchors: Tensor, labels: Tensor) -> None:
        anchors, labels = anchors[-self.size :], labels[-self.size :]
        if not self.references.numel():
            self.references = anchors.new_zeros(self.size, anchors.shape[1])
            self.reference_labels = torch.zeros(self.size, dtype=torch.int64, device=anchors.device)
            self.pointer, self.filled, self.batches = (
                x.to(anchors.device) for x in (self.pointer, self.filled, self.batches)
            )
        positions = (self.pointer + torch.arange(len(labels), device=labels.device)) % self.size
        # in place, because a captured graph writes to the same address
        self.references.index_copy_(0, positions, anchors.to(self.references.dtype))
        self.reference_labels.index_copy_(0, positions, labels)
        self.pointer.add_(len(labels)).remainder_(self.size)
        self.filled.add_(len(labels)).clamp_max_(self.size)
        self.batches.add_(1)

    def clear(self) -> None:
        """Empty the queue; the next batch may have another dimension."""
        self.references = self.references.new_empty(0, 0)
        self.reference_labels = self.reference_labels.new_empty(0)
        self.pointer, self.filled, self.batches = (
            torch.zeros_like(x) for x in (self.pointer, self.filled, self.batches)
        )

    def parameter_groups(self, lr: float | None = None) -> list[dict[str, Any]]:
        """The parameter groups of the loss."""
        return collect_groups([self.loss], lr)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        # the queue has no shape before its first batch, so it takes the shape of the stored one
        for name in ("references", "reference_labels"):
            stored = state_dict.get(prefix + name)
            if stored is not None:
                if stored.numel() and len(stored) != self.size:
                    raise ValueError(f"size must be that of the stored memory, {len(stored)}, but it is {self.size}")
                own = getattr(self, name)
                if (own.shape, own.dtype) != (stored.shape, stored.dtype):
                    setattr(self, name, own.new_empty(stored.shape, dtype=stored.dtype))
        super()._load_from_state_dict(state_dict, prefix, *args)

    def extra_repr(self) -> str:
        """The arguments."""
        return f"size={self.size}, warmup={self.warmup}"
