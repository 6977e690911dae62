"""Cross-batch memory: a batch is compared with the embeddings of the batches before it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from likewise.core.checks import embeddings_of, labels_of
from likewise.core.relation import Labels
from likewise.losses.module import PairLoss
from likewise.losses.proxy_module import ProxyLoss


class CrossBatchMemory(nn.Module):
    """A pair loss whose references are the batch and a queue of earlier embeddings.  Wang et al. 2020 (XBM).

    The batch is compared with itself, with gradients on both sides as without a memory, and with the queue, whose
    embeddings are constants.  No sample is its own positive, by index.  A `ProxyLoss` sees batch and queue as one large
    batch, which is what the thesis' own losses ask for in its outlook.

    Args:
        loss: a `PairLoss` that takes references, or a `ProxyLoss`; kept as ``.loss``.
        size: how many embeddings the queue holds; the oldest leave first.
        warmup: how many batches are only remembered, and not yet compared with the queue; features drift fast at first.

    Attributes:
        references: the queue, ``(size, d)``, made when the first batch comes.
        reference_labels: its labels, ``(size,)``.
        pointer: where the next embedding goes.
        filled: how many there are.
        batches: how many batches were seen.

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
        if not isinstance(loss, ProxyLoss) and not (isinstance(loss, PairLoss) and loss.takes_references):
            raise TypeError(
                f"loss must be a pair loss that takes references or a proxy loss, but it is a {type(loss).__name__}"
            )
        for name, value, least in (("size", size, 1), ("warmup", warmup, 0)):
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise ValueError(f"{name} must be a whole number ≥ {least}, but it is {value!r}")
        self.loss = loss
        self.size = size
        self.warmup = warmup
        self.register_buffer("references", torch.empty(0, 0))
        self.register_buffer("reference_labels", torch.empty(0, dtype=torch.int64))
        for name in ("pointer", "filled", "batches"):
            self.register_buffer(name, torch.zeros((), dtype=torch.int64))
        # the fill level again, as a number of the host's: a slice must not wait for the device
        self._known = 0

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """The loss of a batch against itself and the queue; then the batch joins the queue.

        Args:
            embeddings: ``(m, d)``; the dimension stays that of the first batch.
            labels: ``(m,)``, any integer dtype.
        """
        anchors = embeddings_of("embeddings", embeddings)
        labels = labels_of("labels", labels, len(anchors), anchors.device, "embeddings")
        self._make_queue(anchors)
        if self.references.shape[1] != anchors.shape[1]:
            raise ValueError(
                f"embeddings must have the {self.references.shape[1]} dimensions of the memory, "
                f"but have {anchors.shape[1]}"
            )
        value = self._compare(embeddings, labels)
        if self.training:
            self._remember(anchors.detach(), labels)
        return value

    def _compare(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        if self._seen < self.warmup or self._known == 0:
            value: Tensor = self.loss(embeddings, labels)
            return value
        everyone = torch.cat([embeddings, self.references[: self._known].to(embeddings.dtype)])
        their_labels = torch.cat([labels, self.reference_labels[: self._known]])
        if isinstance(self.loss, ProxyLoss):
            large: Tensor = self.loss(everyone, their_labels)
            return large
        own = torch.arange(len(labels), device=labels.device)
        relation = Labels(labels, their_labels, own=own)
        compared: Tensor = self.loss(embeddings, references=everyone, relation=relation)
        return compared

    def _make_queue(self, anchors: Tensor) -> None:
        if self.references.numel() == 0:
            self.references = anchors.new_zeros(self.size, anchors.shape[1])
            self.reference_labels = torch.zeros(self.size, dtype=torch.int64, device=anchors.device)

    def _remember(self, anchors: Tensor, labels: Tensor) -> None:
        anchors, labels = anchors[-self.size :], labels[-self.size :]
        places = (self.pointer + torch.arange(len(labels), device=labels.device)) % self.size
        self.references = self.references.index_copy(0, places, anchors.to(self.references.dtype))
        self.reference_labels = self.reference_labels.index_copy(0, places, labels)
        self.pointer = (self.pointer + len(labels)) % self.size
        self._known = min(self._known + len(labels), self.size)
        self._seen += 1
        self.filled = torch.full_like(self.filled, self._known)
        self.batches = torch.full_like(self.batches, self._seen)

    _seen = 0

    def clear(self) -> None:
        """Forget everything; the next batch may have another dimension."""
        self._known = self._seen = 0
        self.references = self.references.new_empty(0, 0)
        self.reference_labels = self.reference_labels.new_empty(0)
        self.pointer, self.filled, self.batches = (
            torch.zeros_like(x) for x in (self.pointer, self.filled, self.batches)
        )

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        # the queue has a shape only since its first batch: take the stored one's
        stored = state_dict.get(f"{prefix}references")
        if stored is not None:
            if stored.numel() and stored.shape[0] != self.size:
                raise ValueError(f"size must be that of the stored memory, {stored.shape[0]}, but it is {self.size}")
            self.references = self.references.new_empty(stored.shape, dtype=stored.dtype)
            self.reference_labels = self.reference_labels.new_empty(state_dict[f"{prefix}reference_labels"].shape)
        super()._load_from_state_dict(state_dict, prefix, *args)
        self._known, self._seen = int(self.filled), int(self.batches)

    def extra_repr(self) -> str:
        """The arguments."""
        return f"size={self.size}, warmup={self.warmup}"
