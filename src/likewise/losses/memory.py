"""Cross-batch memory: a queue of the embeddings of earlier batches as references."""

from __future__ import annotations

from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from likewise._compat import is_inside_func
from likewise.distributed import current_group
from likewise.formula import (
    PairBatch,
    Relation,
    as_similarity,
    check_classes,
    check_labels,
    embeddings_of,
    full_precision,
    make_labels,
    same_device,
    whole_number,
)
from likewise.losses.base import PairLoss, collect_groups
from likewise.losses.proxies import Queue
from likewise.losses.proxy_base import ProxyLoss
from likewise.losses.proxy_batches import Between
from likewise.miners import Miner

LabeledRows: TypeAlias = tuple[Tensor, Tensor]
"""Embeddings and their labels."""

ANCHORED_ON_PROXIES = {Between.PROXIES_SAMPLES, Between.PROXIES_PROXIES}


class CrossBatchMemory(nn.Module):
    """A loss whose references are the batch and a queue of earlier embeddings.  Wang et al. 2020 (XBM).

    The batch is compared with itself, with gradients on both sides as without a memory, and with the queue, whose
    embeddings are constants; with an empty queue the result is the plain loss. Pairs of a sample with itself are
    excluded by index.  A loss whose anchors are proxies (`ProxyAnchorLoss`, and `ProxyRepulsionLoss` as the thesis'
    outlook proposes) treats batch and queue as one large batch.

    In a distributed batch (`likewise.distributed.distributed_batch`) the queue stores the samples of all ranks, in the
    order of ranks: every rank has the same queue. The memory address of the queue does not change after the first
    batch, so a step can be captured as a CUDA graph.

    Args:
        loss: a `PairLoss` that takes references, or a `ProxyLoss` whose anchors are proxies; kept as ``.loss``.
        size: the number of embeddings in the queue; the oldest are replaced first.
        warmup: the number of batches to store before the queue is used, because features drift fast at first.
        miner: chooses pairs or triplets of the batch's anchors with batch and queue, for a pair loss without a miner.

    Attributes:
        references: the queue, ``(size, d)``, allocated when the first batch is stored.
        reference_labels: its labels, ``(size,)`` or ``(size, L)``.
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

        Momentum contrast (MoCo): the queue stores the key encoder's rows only, and the others are compared with them.

        >>> memory = CrossBatchMemory(ContrastiveLoss(), size=100)
        >>> queries, keys, samples = torch.randn(8, 4), torch.randn(8, 4), torch.arange(8)
        >>> is_key = torch.arange(16) >= 8
        >>> value = memory(torch.cat([queries, keys]), samples.repeat(2), enqueue=is_key)
        >>> torch.equal(memory.references[:8], keys)
        True
    """

    references: Tensor
    reference_labels: Tensor
    pointer: Tensor
    filled: Tensor
    batches: Tensor

    def __init__(self, loss: PairLoss | ProxyLoss, size: int, *, warmup: int = 0, miner: Miner | None = None) -> None:
        super().__init__()
        takes = isinstance(loss, PairLoss) and loss.takes_references
        if not takes and not (isinstance(loss, ProxyLoss) and set(loss.declare()) <= ANCHORED_ON_PROXIES):
            raise TypeError(
                "loss must be a pair loss that takes references or a proxy loss whose anchors are proxies, "
                f"but it is a {type(loss).__name__}"
            )
        self.loss = loss
        self.miner = _check_miner(miner, loss)
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
        enqueue: Tensor | None = None,
    ) -> Tensor:
        """Compute the loss of a batch against itself and the queue; in training, then add the batch to the queue.

        Args:
            embeddings: the batch, ``(m, d)``.
            labels: its labels, ``(m,)``; ``(m, L)`` for a loss of hierarchies.
            references: must be ``None``, as must ``reference_labels`` and ``relation``.
            reference_labels: see ``references``.
            relation: see ``references``.
            enqueue: which rows are keys, ``(m,)`` booleans: keys are added to the queue, and the other rows are the
                anchors, which are compared only with these keys and the queue. By default every row is both. Splitting
                a batch by a mask synchronizes with the device.
        """
        if references is not None or reference_labels is not None or relation is not None:
            raise ValueError("CrossBatchMemory compares with its queue and takes no references or relation")
        if labels is None:
            raise TypeError("labels must be given, because the queue stores them, but they are None")
        with full_precision(embeddings):
            anchors = embeddings_of("embeddings", embeddings)
            levels = self.loss.label_kind == "levels"
            labels = check_labels("labels", labels, len(anchors), anchors.device, "embeddings", levels=levels)
            if self.training and is_inside_func():
                raise RuntimeError(
                    "CrossBatchMemory cannot change its queue inside a transform of torch.func; call eval() before, and "
                    "add the batch by a call outside of the transform in training mode"
                )
            self._check(anchors)
            keys, key_labels = anchors, labels
            if enqueue is None:
                value = self._compare(anchors, labels)
            else:
                (anchors, labels), (keys, key_labels) = self._split(anchors, labels, enqueue)
                value = self._compare(anchors, labels, (keys, key_labels))
            if self.training:
                group = current_group()
                rows = group.batch_rows(keys) if enqueue is None else group.rows(keys)
                # gathered rows are cached, except in the first batch of a proxy loss
                self._remember(group.gather(keys, rows).detach(), group.gather(key_labels, rows))
            return value

    def _check(self, embeddings: Tensor) -> None:
        if not self.references.numel():
            return
        if self.references.shape[1] != embeddings.shape[1]:
            raise ValueError(
                f"embeddings must have the {self.references.shape[1]} dimensions of the memory, but have {embeddings.shape[1]}"
            )
        same_device("embeddings", embeddings, self.references.device, "the memory")

    def _split(self, embeddings: Tensor, labels: Tensor, enqueue: Tensor) -> tuple[LabeledRows, LabeledRows]:
        """The anchors and the keys of a batch, with their labels."""
        if isinstance(self.loss, ProxyLoss):
            raise TypeError("enqueue must be None for a loss whose anchors are proxies, but it is a mask")
        if not isinstance(enqueue, Tensor) or enqueue.dtype != torch.bool or enqueue.shape != labels.shape[:1]:
            what = (
                f"of dtype {enqueue.dtype} and shape {tuple(enqueue.shape)}"
                if isinstance(enqueue, Tensor)
                else f"a {type(enqueue).__name__}"
            )
            raise ValueError(f"enqueue must be one boolean for each of the {len(labels)} embeddings, but it is {what}")
        anchors, keys = (mask.nonzero()[:, 0].to(labels.device) for mask in (~enqueue, enqueue))
        if not len(anchors) or not len(keys):
            raise ValueError(
                f"enqueue must mark some embeddings and not all, but it marks {len(keys)} of {len(labels)}"
            )
        return (embeddings[anchors], labels[anchors]), (embeddings[keys], labels[keys])

    def _compare(self, anchors: Tensor, labels: Tensor, keys: LabeledRows | None = None) -> Tensor:
        """Compute the loss of anchors against the batch, or its keys, and the queue."""
        value: Tensor
        queue = self._queue(anchors.dtype)
        if isinstance(self.loss, ProxyLoss):
            if queue is None:
                value = self.loss(anchors, labels)
            else:
                check_classes(labels, self.loss.num_classes, "proxy")
                value = self.loss.value(anchors.to(queue.samples.dtype), labels, queue)
        elif queue is None and keys is None and self.miner is None:
            value = self.loss(anchors, labels)
        else:
            value = self.loss.value(self._batch(anchors, labels, keys, queue), miner=self.miner)
        return value

    def _queue(self, dtype: torch.dtype) -> Queue | None:
        """The queue; empty entries, and all of them during warmup, are not valid."""
        if not self.references.numel():
            return None
        entries = torch.arange(self.size, device=self.reference_labels.device)
        stored = (entries < self.filled) & (self.batches >= self.warmup)
        dtype = torch.promote_types(dtype, self.references.dtype)
        return Queue(self.references.to(dtype), self.reference_labels, stored)

    def _batch(self, anchors: Tensor, labels: Tensor, keys: LabeledRows | None, queue: Queue | None) -> PairBatch:
        """This rank's anchors against the batch, or the keys, of all ranks and the queue."""
        similarity, group = as_similarity(self.loss.similarity), current_group()
        if queue is None:
            assert isinstance(self.loss, PairLoss)
            others, their_labels = (None, None) if keys is None else keys
            return self.loss.make_batch(anchors, labels, others, their_labels, None)
        anchors = anchors.to(queue.samples.dtype)
        current, current_labels = (anchors, labels) if keys is None else keys
        rows = group.batch_rows(current) if keys is None else group.rows(current)
        references, reference_labels, valid = queue.after(
            group.gather(current.to(anchors.dtype), rows), group.gather(current_labels, rows)
        )
        # exclude pairs of a sample with itself; keys are other views
        own = torch.arange(len(labels), device=labels.device) + rows.offset if keys is None else None
        relation = make_labels(labels, reference_labels, own=own, valid=valid)
        return PairBatch(relation, similarity, anchors=anchors, references=references, group=group)

    def _remember(self, anchors: Tensor, labels: Tensor) -> None:
        anchors, labels = anchors[-self.size :], labels[-self.size :]
        if not self.references.numel():
            self.references = anchors.new_zeros(self.size, anchors.shape[1])
            self.reference_labels = labels.new_zeros(self.size, *labels.shape[1:])
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
        miner = "" if self.miner is None else f", miner={self.miner!r}"
        return f"size={self.size}, warmup={self.warmup}{miner}"


def _check_miner(miner: Miner | None, loss: PairLoss | ProxyLoss) -> Miner | None:
    if miner is None:
        return None
    if not isinstance(miner, Miner):
        raise TypeError(f"miner must be a miner of likewise.miners or None, but it is a {type(miner).__name__}")
    if isinstance(loss, ProxyLoss):
        raise TypeError(f"miner must be None for a loss whose anchors are proxies, but it is {miner!r}")
    if loss.miner is not None:
        raise ValueError(f"miner must be None for a loss with a miner, {loss.miner!r}, but it is {miner!r}")
    return miner
