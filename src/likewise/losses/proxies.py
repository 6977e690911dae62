"""Tables of proxies: all classes, classes sampled for a call (Partial FC), or the shard of one rank."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor, nn

from likewise._compat import is_inside_func
from likewise.distributed import ProcessGroup, RowPartition
from likewise.formula import PositiveIndex
from likewise.losses.sampling import draw


class Queue(NamedTuple):
    """Samples of earlier batches, the same on every rank, and a mask of which entries are filled.

    Examples:
        >>> import torch
        >>> queue = Queue(torch.zeros(1, 2), torch.tensor([5]), torch.tensor([False]))
        >>> queue.after(torch.ones(1, 2), torch.tensor([7]))[1:]
        (tensor([7, 5]), tensor([ True, False]))
    """

    samples: Tensor
    labels: Tensor
    valid: Tensor

    def after(self, samples: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return a batch followed by the queue: samples, labels, and a mask of which entries are filled."""
        there = torch.ones(len(labels), dtype=torch.bool, device=labels.device)
        return (
            torch.cat([samples, self.samples]),
            torch.cat([labels, self.labels]),
            torch.cat([there, self.valid]),
        )


@dataclass(frozen=True, eq=False)
class ProxyTable:
    """The proxies that a batch is compared with, and the positions of its classes among them.

    Args:
        rows: the proxies in the dtype of the parameter, ``(k · centers, d)``.
        classes: the classes they belong to, ``(k,)``.
        positions: the position of each sample's class among them, ``(m,)``; −1 if it is not included.
        complete: whether the class of every sample is included.
        log_weights: the number of classes that each class represents, as a logarithm, ``(k,)``; ``None``: one each.
        shards: the processes that hold a shard of the proxies each.

    Examples:
        >>> import torch
        >>> ProxyTable.whole(torch.zeros(6, 2), 3, torch.tensor([2])).centers
        2
    """

    rows: Tensor
    classes: Tensor
    positions: Tensor
    complete: bool = False
    log_weights: Tensor | None = None
    shards: ProcessGroup | None = None

    @classmethod
    def whole(cls, proxies: Tensor, num_classes: int, labels: Tensor) -> ProxyTable:
        """All classes."""
        return cls(proxies, torch.arange(num_classes, device=labels.device), labels, complete=True)

    @classmethod
    def shard(cls, proxies: Tensor, shard: RowPartition, labels: Tensor, group: ProcessGroup) -> ProxyTable:
        """The classes of one rank."""
        classes = torch.arange(shard.local.start, shard.local.stop, device=labels.device)
        positions = labels - shard.offset
        here = (positions >= 0) & (positions < len(classes))
        return cls(proxies, classes, torch.where(here, positions, -1), shards=group)

    @classmethod
    def sample(
        cls,
        proxies: Tensor,
        num_classes: int,
        labels: Tensor,
        number: int,
        *,
        corrected: bool,
        sparse: bool,
        generator: torch.Generator | None,
    ) -> ProxyTable:
        """The classes of a batch and randomly drawn ones; see `likewise.losses.sampling`."""
        chosen, positions, log_weights = draw(labels, num_classes, number, generator)
        centers = len(proxies) // num_classes
        rows = (
            chosen[:, None] * centers + torch.arange(centers, device=labels.device)
        ).flatten()  # (number · centers,)
        complete = number >= min(len(labels), num_classes)  # no labels are left out
        # transforms of torch.func differentiate and map dense tensors only
        sampled = nn.functional.embedding(rows, proxies, sparse=sparse and not is_inside_func())
        return cls(sampled, chosen, positions, complete, log_weights if corrected else None)

    def cut(self, classes: slice) -> ProxyTable:
        """Some of the classes; all of them are not copied in the backward pass."""
        if len(self.classes[classes]) == len(self.classes):
            return replace(self, complete=False)
        rows = slice(classes.start * self.centers, classes.stop * self.centers)
        return replace(self, rows=self.rows[rows], classes=self.classes[classes], complete=False)

    @property
    def centers(self) -> int:
        """The number of proxies of each class."""
        return len(self.rows) // max(len(self.classes), 1)

    def owners(self) -> Tensor:
        """The class of each row."""
        if self.centers == 1:
            return self.classes
        return self.classes.repeat_interleave(self.centers, output_size=len(self.rows))

    def positives(self, *, pooled: bool) -> PositiveIndex:
        """Return the columns of each sample's class: one if centers are pooled, otherwise one per center."""
        columns = self.positions[:, None]
        if not pooled and self.centers > 1:
            columns = columns * self.centers + torch.arange(self.centers, device=columns.device)
        return PositiveIndex(columns, None if self.complete else columns >= 0)

    def weights(self, *, pooled: bool) -> Tensor | None:
        """The logarithm of the number of classes that each column represents."""
        if self.log_weights is None or pooled:
            return self.log_weights
        return self.log_weights.repeat_interleave(self.centers, output_size=len(self.rows))
