"""Batches that are spread over processes: everyone has a share, and the loss is that of all shares together.

Inside ``with distributed_batch():`` every process gives a loss its own samples and gets the loss of the concatenated batch, in
the order of ranks; it folds its own anchors against everybody's references and no more.

**The convention.**  Every process differentiates its own copy of the loss.  What it finds is the gradient of the *sum*
over processes of whatever they call ``backward`` on, because every collective here is followed backward by its exact
adjoint: a gathered tensor by the sum over processes of its gradients, a total by the total of its gradients.  With n copies
of one loss that is n times the gradient of the loss; the *mean* over processes, which `DistributedDataParallel` takes of
every parameter's gradient, is then the gradient that one process would find on the whole batch.  What all processes
compute alike, such as a penalty on replicated proxies, needs no care: n equal gradients have that gradient for a mean.

All processes must do the same things in the same order, as with every collective.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor


@dataclass(frozen=True)
class RowPartition:
    """Whose rows are whose in a tensor that is group: each process has some, one after another by rank.

    Args:
        sizes: how many rows each process has.
        rank: which of them is this one.

    Examples:
        >>> rows = RowPartition((3, 2), rank=1)
        >>> rows.offset, rows.count, rows.own
        (3, 5, slice(3, 5, None))
    """

    sizes: tuple[int, ...]
    rank: int

    @property
    def offset(self) -> int:
        """How many rows stand before this process's own."""
        return sum(self.sizes[: self.rank])

    @property
    def count(self) -> int:
        """How many there are in all."""
        return sum(self.sizes)

    @property
    def own(self) -> slice:
        """This process's own."""
        return slice(self.offset, self.offset + self.sizes[self.rank])


class ProcessGroup(ABC):
    """Over whom something is group: this process alone, or several.

    Attributes:
        size: how many processes there are.
        rank: which of them is this one.

    Examples:
        >>> current_group().size
        1
    """

    size: int
    rank: int

    @abstractmethod
    def rows(self, own: Tensor) -> RowPartition:
        """Whose rows are whose, of something of which every process has some: one small collective."""

    @abstractmethod
    def batch_rows(self, own: Tensor) -> RowPartition:
        """The same for the batch; it is asked for once."""

    @abstractmethod
    def gather(self, own: Tensor, rows: RowPartition) -> Tensor:
        """The rows of all processes; their gradient is the sum of all processes' gradients."""

    @abstractmethod
    def scatter(self, everyones: Tensor, rows: RowPartition) -> Tensor:
        """Own rows of the sum over processes of something that each of them has for all rows: the reverse of gathering."""

    @abstractmethod
    def totals(self, own: Sequence[Tensor]) -> list[Tensor]:
        """Numbers, each summed over processes, in one collective; the gradient is the sum of all processes'."""

    def total(self, own: Tensor) -> Tensor:
        """The sum over processes."""
        return self.totals([own])[0]

    def largest(self, own: int) -> int:
        """The largest share of the batch, where ``own`` is this process's: decisions by it are the same everywhere."""
        return own

    def split(self, n: int) -> RowPartition:
        """Shares of ``n`` things that every process has: as equal as can be, without asking anybody.

        Examples:
            >>> SingleProcess().split(5)
            RowPartition(sizes=(5,), rank=0)
        """
        ends = [n * rank // self.size for rank in range(self.size + 1)]
        return RowPartition(tuple(end - first for first, end in pairwise(ends)), self.rank)


class SingleProcess(ProcessGroup):
    """One process: everything is here already.

    Examples:
        >>> SingleProcess().total(torch.tensor(2.0))
        tensor(2.)
    """

    size = 1
    rank = 0

    def rows(self, own: Tensor) -> RowPartition:
        """All of them."""
        return RowPartition((len(own),), 0)

    def batch_rows(self, own: Tensor) -> RowPartition:
        """All of it."""
        return self.rows(own)

    def gather(self, own: Tensor, rows: RowPartition) -> Tensor:
        """The rows themselves."""
        return own

    def scatter(self, everyones: Tensor, rows: RowPartition) -> Tensor:
        """All of them."""
        return everyones

    def totals(self, own: Sequence[Tensor]) -> list[Tensor]:
        """The numbers themselves."""
        return list(own)


SINGLE_PROCESS = SingleProcess()


@dataclass(frozen=True, eq=False)
class _Wire:
    """What the collectives need to know; it keeps no tensor, so that the graph, which keeps it, is no circle."""

    group: Any
    size: int

    def gather(self, own: Tensor, sizes: tuple[int, ...]) -> Tensor:
        """All rows; what is shorter than the longest share is filled up for the journey."""
        longest = max(sizes)
        sent = _filled(own, longest).contiguous()
        received = own.new_empty(self.size * longest, *own.shape[1:])
        # the same collective had another name before torch 2.13
        collect = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
        collect(received, sent, group=self.group)
        if len(set(sizes)) == 1:
            return received
        shares = torch.split(received, longest)
        return torch.cat([share[:size] for share, size in zip(shares, sizes, strict=True)])

    def scatter(self, everyones: Tensor, sizes: tuple[int, ...], rank: int) -> Tensor:
        """Own rows of the sum over processes."""
        longest = max(sizes)
        if len(set(sizes)) > 1:
            everyones = torch.cat([_filled(share, longest) for share in torch.split(everyones, list(sizes))])
        received = everyones.new_empty(longest, *everyones.shape[1:])
        add = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor
        add(received, everyones.contiguous(), group=self.group)
        return received[: sizes[rank]]


def _filled(rows: Tensor, length: int) -> Tensor:
    return rows if len(rows) == length else torch.cat([rows, rows.new_zeros(length - len(rows), *rows.shape[1:])])


class _Gather(torch.autograd.Function):
    """Own rows to all rows; `_Scatter` is its adjoint."""

    @staticmethod
    def forward(ctx: Any, own: Tensor, rows: RowPartition, wire: _Wire) -> Tensor:
        ctx.rows, ctx.wire = rows, wire
        return wire.gather(own, rows.sizes)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return _Scatter.apply(grad, ctx.rows, ctx.wire), None, None  # type: ignore[no-untyped-call]


class _Scatter(torch.autograd.Function):
    """All rows, of every process, to own rows of their sum."""

    @staticmethod
    def forward(ctx: Any, everyones: Tensor, rows: RowPartition, wire: _Wire) -> Tensor:
        ctx.rows, ctx.wire = rows, wire
        return wire.scatter(everyones, rows.sizes, rows.rank)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return _Gather.apply(grad, ctx.rows, ctx.wire), None, None  # type: ignore[no-untyped-call]


class _Total(torch.autograd.Function):
    """The sum over processes, which is its own adjoint.

    Its last argument is a number that wants a gradient and gets none: the others wait for this process in the backward
    pass, also where nothing of its own depends on what is learned.
    """

    @staticmethod
    def forward(ctx: Any, own: Tensor, wire: _Wire, _attends: Tensor) -> Tensor:
        ctx.wire = wire
        total = own.clone()
        dist.all_reduce(total, group=wire.group)
        return total

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return _Total.apply(grad, ctx.wire, grad.new_zeros(())), None, None  # type: ignore[no-untyped-call]


class TorchProcessGroup(ProcessGroup):
    """The processes of a group of torch.distributed, for one batch.

    Args:
        group: the group; ``None``: all processes.
        sizes: how many samples each process has, where that is known; else they ask each other.

    Examples:
        >>> TorchProcessGroup.several()
        False
    """

    def __init__(self, group: Any = None, sizes: Sequence[int] | None = None) -> None:
        self.size = dist.get_world_size(group)
        self.rank = dist.get_rank(group)
        self._wire = _Wire(group, self.size)
        if sizes is not None and len(sizes) != self.size:
            raise ValueError(f"sizes must be one for each of the {self.size} processes, but there are {len(sizes)}")
        self._batch = None if sizes is None else RowPartition(tuple(sizes), self.rank)
        # several losses on one batch gather it once, and their gradients come back together
        self._gathered: dict[tuple[int, bool], tuple[Tensor, Tensor]] = {}

    @staticmethod
    def several(group: Any = None) -> bool:
        """Whether there is more than one process."""
        return dist.is_available() and dist.is_initialized() and dist.get_world_size(group) > 1

    def rows(self, own: Tensor) -> RowPartition:
        """Ask everybody how many rows he has."""
        sizes = self._wire.gather(torch.tensor([len(own)], device=own.device), (1,) * self.size)
        return RowPartition(tuple(sizes.tolist()), self.rank)

    def batch_rows(self, own: Tensor) -> RowPartition:
        """Ask once."""
        if self._batch is None:
            self._batch = self.rows(own)
        if len(own) != self._batch.sizes[self.rank]:
            raise ValueError(
                f"distributed_batch must be opened anew for every batch: this process has {len(own)} samples now and had "
                f"{self._batch.sizes[self.rank]} before, and the others cannot know"
            )
        return self._batch

    def largest(self, own: int) -> int:
        """As was asked for."""
        known = self._batch is not None and own == self._batch.sizes[self.rank]
        return max(self._batch.sizes) if known and self._batch is not None else own

    def gather(self, own: Tensor, rows: RowPartition) -> Tensor:
        """Gather; the batch itself but once."""
        if rows is not self._batch:
            return self._gather(own, rows)
        key = id(own), torch.is_grad_enabled()
        if key not in self._gathered:
            self._gathered[key] = own, self._gather(own, rows)  # the tensor is kept, so that its id is not given away
        return self._gathered[key][1]

    def _gather(self, own: Tensor, rows: RowPartition) -> Tensor:
        gather: Tensor = _Gather.apply(own, rows, self._wire)  # type: ignore[no-untyped-call]
        return gather

    def scatter(self, everyones: Tensor, rows: RowPartition) -> Tensor:
        """Add up, and keep the own rows."""
        own: Tensor = _Scatter.apply(everyones, rows, self._wire)  # type: ignore[no-untyped-call]
        return own

    def totals(self, own: Sequence[Tensor]) -> list[Tensor]:
        """Together, in float64: that holds counts, too."""
        if not own:
            return []
        stacked = torch.stack([number.double() for number in own])
        attends = stacked.new_zeros((), requires_grad=torch.is_grad_enabled())
        together: Tensor = _Total.apply(stacked, self._wire, attends)  # type: ignore[no-untyped-call]
        return [total.to(number.dtype) for total, number in zip(together, own, strict=True)]

    def forget(self) -> None:
        """Let go of what was gathered."""
        self._gathered.clear()


class _Here:
    """What `current` says; a plain attribute, because a compiler can watch that and no context variable."""

    group: ProcessGroup = SINGLE_PROCESS


_here = _Here()


def current_group() -> ProcessGroup:
    """Over whom batches are spread here and now.

    Examples:
        >>> isinstance(current_group(), SingleProcess)
        True
    """
    return _here.group


@contextmanager
def distributed_batch(group: Any = None, *, sizes: Sequence[int] | None = None) -> Iterator[ProcessGroup]:
    """Compute the loss of all processes' samples together inside this block, which is for one batch.

    Where there is one process, or torch.distributed was not set up, the block does nothing.  The convention for gradients
    is that of `DistributedDataParallel`: their mean over processes is the gradient of the loss.

    Args:
        group: a group of torch.distributed; ``None``: all processes.
        sizes: how many samples each process has, where that is known.  Without them the processes ask each other, for
            which the host waits for a GPU.

    Examples:
        >>> import torch
        >>> from likewise.losses import ContrastiveLoss
        >>> with distributed_batch():
        ...     ContrastiveLoss()(torch.eye(2), torch.tensor([0, 0]))
        tensor(1.)
    """
    before = _here.group
    processes = TorchProcessGroup(group, sizes) if TorchProcessGroup.several(group) else None
    _here.group = processes or SINGLE_PROCESS
    try:
        yield _here.group
    finally:
        _here.group = before
        if processes is not None:
            processes.forget()
