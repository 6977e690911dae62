"""The loss of a batch that is spread over processes."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from torch import Tensor, nn

from likewise.distributed import SINGLE_PROCESS, current_group, distributed_batch
from likewise.formula import Relation
from likewise.losses.base import given, groups_of, loss_of


class Gathered(nn.Module):
    """A loss to which every process gives its share of the batch: the loss of all shares together.

    Value and gradients are those of one process with the concatenated batch, in the order of ranks; every process does its
    share of the work.  Gradients follow the convention of `torch.nn.parallel.DistributedDataParallel`: their *mean* over
    processes is the gradient (`likewise.distributed`).  With ``reduction="none"`` a process gets the values of its own
    anchors.  Without torch.distributed, or with one process, it is the loss itself.

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
        self.loss = loss_of(loss)
        self.group = group

    def forward(
        self,
        embeddings: Tensor,
        labels: Tensor | None = None,
        references: Tensor | None = None,
        reference_labels: Tensor | None = None,
        *,
        relation: Relation | None = None,
    ) -> Tensor:
        """The loss of all processes' samples; references are shares, too, and a relation other than labels names all."""
        options = given(references=references, reference_labels=reference_labels, relation=relation)
        with together(self.group):
            value: Tensor = self.loss(embeddings, labels, **options)
        return value

    def parameter_groups(self, lr: float | None = None) -> list[dict[str, Any]]:
        """Those of the loss."""
        return groups_of([self.loss], lr)


def together(group: Any = None) -> AbstractContextManager[object]:
    """`distributed_batch`, unless somebody opened it already."""
    return distributed_batch(group) if current_group() is SINGLE_PROCESS else nullcontext()
