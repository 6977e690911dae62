"""Losses that the study on birds makes of others."""

from __future__ import annotations

from torch import Tensor, nn

from likewise.losses import ThresholdConsistentMarginLoss


class ThresholdConsistent(nn.Module):
    """A loss with the threshold-consistent margin added to it.

    Args:
        loss: the loss.
        positive_margin: of the regularizer.
        negative_margin: of the regularizer.
        weight: of the regularizer.
    """

    def __init__(
        self, loss: nn.Module, positive_margin: float = 0.9, negative_margin: float = 0.5, weight: float = 1.0
    ) -> None:
        super().__init__()
        self.loss, self.weight = loss, weight
        self.regularizer = ThresholdConsistentMarginLoss(positive_margin, negative_margin)

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """The loss of a batch."""
        value: Tensor = self.loss(embeddings, labels) + self.weight * self.regularizer(embeddings, labels)
        return value
