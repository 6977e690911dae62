"""Distributed batches: the loss of the samples of all ranks."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from torch import Tensor, nn

from likewise.distributed import SINGLE_PROCESS, current_group, distributed_batch
from likewise.formula import RelationLike
from likewise.losses.base import check_loss, collect_groups, drop_missing


class Gathered(nn.Module):
    """Computes a loss on the concatenated samples of all ranks.

    Each rank passes its local samples.  Value and gradients are those of a single process with the concatenated batch,
    in the order of ranks; each rank computes the rows of its anchors.  Gradients follow the convention of
    `torch.nn.parallel.DistributedDataParallel`: their *mean* over ranks is the gradient (`likewise.distributed`).  With
    ``reduction="none"`` a rank gets the values of its local anchors. Without torch.distributed, or with one process,
    the result equals that of the wrapped loss.

    Args:
        loss: any loss of this library, wrappers included; kept as ``.loss``.
        group: the processes, a group of torch.distributed; ``None``: all.

    Examples:
        >>> import torch
        >>> from likewise.losses import ContrastiveLoss
        >>> loss = Gathered(ContrastiveLoss())
        >>> loss(torch.eye(2), torch.tensor([0, 0]))
        tensor(1.)
    """

    def __init__(self, loss: nn.Module, *, group: Any = None) -> None:
        super().__init__()
        self.loss = check_loss(loss)
        self.group = group

    def forward(
        self,
        embeddings: Tensor,
        labels: Tensor | None = None,
        references: Tensor | None = None,
        reference_labels: Tensor | None = None,
        *,
        relation: RelationLike | None = None,
    ) -> Tensor:
        """Compute the loss on all ranks' samples; references are local, too, and a relation indexes all ranks' rows."""
        options = drop_missing(references=references, reference_labels=reference_labels, relation=relation)
        with join_batch(self.group):
            value: Tensor = self.loss(embeddings, labels, **options)
        return value

    def parameter_groups(self, lr: float | None = None) -> list[dict[str, Any]]:
        """The parameter groups of the loss."""
        return collect_groups([self.loss], lr)


def join_batch(group: Any = None) -> AbstractContextManager[object]:
    """Open a `distributed_batch` unless one is already open."""
    return distributed_batch(group) if current_group() is SINGLE_PROCESS else nullcontext()
