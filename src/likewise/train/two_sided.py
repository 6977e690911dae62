"""Symmetric losses between the two sides of a batch of pairs."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn


class TwoSided(nn.Module):
    """The mean of a loss in both directions: anchors against references, and references against anchors.

    Batches are those of a `likewise.data.PairLoader`: anchors and references in alternating rows.  Anchors are not compared
    with each other.  With `likewise.losses.NTXentLoss` and one row of each class it is the loss of CLIP (Radford et al. 2021),
    with `likewise.losses.SigmoidLoss` that of SigLIP (Zhai et al. 2023).

    Args:
        loss: a loss that accepts references, stored as ``.loss``.

    Examples:
        >>> import torch
        >>> from likewise.losses import NTXentLoss
        >>> embeddings, labels = torch.eye(4), torch.tensor([0, 0, 1, 1])
        >>> loss, (anchors, references) = NTXentLoss(), (embeddings[0::2], embeddings[1::2])
        >>> there = loss(anchors, labels[0::2], references, labels[1::2])
        >>> back = loss(references, labels[1::2], anchors, labels[0::2])
        >>> bool(TwoSided(loss)(embeddings, labels) == (there + back) / 2)
        True
    """

    def __init__(self, loss: nn.Module) -> None:
        super().__init__()
        inner: object = loss
        while inner is not None:
            if not getattr(inner, "takes_references", True):
                raise ValueError(
                    f"loss must take references, for pairs of two sides, but {type(inner).__name__} takes none"
                )
            inner = getattr(inner, "loss", None)
        self.loss = loss

    def parameter_groups(self, lr: float | None = None) -> list[dict[str, Any]]:
        """The parameter groups of the loss."""
        groups = getattr(self.loss, "parameter_groups", None)
        return [] if groups is None else list(groups(lr))

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """Compute the loss of a batch whose rows alternate."""
        if len(embeddings) % 2:
            raise ValueError(f"embeddings must have an even number of rows, but it has {len(embeddings)}")
        anchors, references = embeddings[0::2], embeddings[1::2]
        of_anchors, of_references = labels[0::2], labels[1::2]
        there: Tensor = self.loss(anchors, of_anchors, references, of_references)
        back: Tensor = self.loss(references, of_references, anchors, of_anchors)
        return (there + back) / 2
