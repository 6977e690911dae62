"""Distributed batches: each rank holds some rows; the loss is computed over all of them.

Inside ``with distributed_batch():`` each rank passes its local samples to a loss and gets the loss of the concatenated
batch, in the order of ranks.  A rank computes only the rows of its local anchors, against the references of all ranks.

**Gradients.**  Each rank calls ``backward`` on its copy of the loss and gets the gradient of the *sum* of the copies,
because the backward pass of every collective is its exact adjoint: a gathered tensor sums its gradients over ranks, and
so does a total.  With n copies of one loss this is n times the gradient of the loss; the *mean* over ranks, which
`DistributedDataParallel` takes of every parameter's gradient, is the gradient that a single process computes on the
whole batch.  A term that all ranks compute equally, such as a regularizer of replicated proxies, is correct too: the
mean of n equal gradients is that gradient.

All ranks must call the same collectives in the same order.
"""

from __future__ import annotations

import atexit
import functools
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from likewise._compat import is_inside_func, is_transformed


@dataclass(frozen=True)
class RowPartition:
    """Partition of the rows of a distributed tensor: consecutive rows per rank, in the order of ranks.

    Args:
        sizes: the number of rows of each rank.
        rank: the rank of this process.

    Examples:
        >>> rows = RowPartition((3, 2), rank=1)
        >>> rows.offset, rows.count, rows.local
        (3, 5, slice(3, 5, None))
    """

    sizes: tuple[int, ...]
    rank: int

    @property
    def offset(self) -> int:
        """The number of rows on the ranks before this one."""
        return sum(self.sizes[: self.rank])

    @property
    def count(self) -> int:
        """The number of rows on all ranks."""
        return sum(self.sizes)

    @property
    def local(self) -> slice:
        """The range of this rank's rows."""
        return slice(self.offset, self.offset + self.sizes[self.rank])


class ProcessGroup(ABC):
    """The processes that share a batch: a single one, or several.

    Attributes:
        size: the number of processes.
        rank: the rank of this process.

    Examples:
        >>> current_group().size
        1
    """

    size: int
    rank: int

    @abstractmethod
    def rows(self, local: Tensor) -> RowPartition:
        """Return the partition of a tensor of which each rank holds some rows; one small collective."""

    @abstractmethod
    def batch_rows(self, local: Tensor) -> RowPartition:
        """Return the partition of the batch; the collective runs once per batch."""

    @abstractmethod
    def gather(self, local: Tensor, rows: RowPartition) -> Tensor:
        """Gather the rows of all ranks; the gradient is the sum of the gradients over ranks."""

    @abstractmethod
    def scatter(self, gathered: Tensor, rows: RowPartition) -> Tensor:
        """Sum a tensor of all rows over ranks and return this rank's rows of the sum: the adjoint of `gather`."""

    @abstractmethod
    def totals(self, local: Sequence[Tensor]) -> list[Tensor]:
        """Sum each number over ranks, in one collective; the gradient is the sum of the gradients over ranks."""

    def total(self, local: Tensor) -> Tensor:
        """Sum a number over ranks."""
        return self.totals([local])[0]

    def largest(self, local: int) -> int:
        """Return the largest number of batch rows on any rank, so that all ranks make the same decisions.

        Args:
            local: the number of rows of this rank.
        """
        return local

    def split(self, n: int) -> RowPartition:
        """Partition ``n`` rows that every rank holds into shards of nearly equal size; no collective.

        Examples:
            >>> SingleProcess().split(5)
            RowPartition(sizes=(5,), rank=0)
        """
        ends = [n * rank // self.size for rank in range(self.size + 1)]
        return RowPartition(tuple(end - first for first, end in pairwise(ends)), self.rank)


class SingleProcess(ProcessGroup):
    """A group of one process, in which every collective returns its input.

    Examples:
        >>> SingleProcess().total(torch.tensor(2.0))
        tensor(2.)
    """

    size = 1
    rank = 0

    def rows(self, local: Tensor) -> RowPartition:
        """Return a partition of one rank."""
        return RowPartition((len(local),), 0)

    def batch_rows(self, local: Tensor) -> RowPartition:
        """Return a partition of one rank."""
        return self.rows(local)

    def gather(self, local: Tensor, rows: RowPartition) -> Tensor:
        """Return the rows."""
        return local

    def scatter(self, gathered: Tensor, rows: RowPartition) -> Tensor:
        """Return the rows."""
        return gathered

    def totals(self, local: Sequence[Tensor]) -> list[Tensor]:
        """Return the numbers."""
        return list(local)


SINGLE_PROCESS = SingleProcess()


@dataclass(frozen=True, eq=False)
class _Wire:
    """The collectives of a group.  It holds no tensor, because autograd graphs refer to it: that would be a cycle."""

    group: Any
    size: int

    def gather(self, local: Tensor, sizes: tuple[int, ...]) -> Tensor:
        """All-gather rows; shards are padded to the largest one for the collective."""
        longest = max(sizes)
        sent = _pad(local, longest).contiguous()
        received = local.new_empty(self.size * longest, *local.shape[1:])
        # torch before 2.13 names this collective all_gather_into_tensor
        collect = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
        collect(received, sent, group=self.group)
        if len(set(sizes)) == 1:
            return received
        shards = torch.split(received, longest)
        return torch.cat([shard[:size] for shard, size in zip(shards, sizes, strict=True)])

    def scatter(self, gathered: Tensor, sizes: tuple[int, ...], rank: int) -> Tensor:
        """Reduce-scatter rows; shards are padded to the largest one for the collective."""
        longest = max(sizes)
        if len(set(sizes)) > 1:
            gathered = torch.cat([_pad(shard, longest) for shard in torch.split(gathered, list(sizes))])
        received = gathered.new_empty(longest, *gathered.shape[1:])
        add = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor
        add(received, gathered.contiguous(), group=self.group)
        return received[: sizes[rank]]


def _pad(rows: Tensor, length: int) -> Tensor:
    return rows if len(rows) == length else torch.cat([rows, rows.new_zeros(length - len(rows), *rows.shape[1:])])


class _Collective(torch.autograd.Function):
    """A linear function of the tensors of all ranks, which each rank calls once: its tangent is the same function."""

    @classmethod
    def jvp(cls, ctx: Any, tangent: Tensor, *_: None) -> Tensor:
        result: Tensor = cls.apply(tangent, *ctx.others)  # type: ignore[no-untyped-call]
        return result

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.others = inputs[1:]

    @staticmethod
    def vmap(*_: Any) -> None:
        raise RuntimeError("vmap cannot map over distributed batches, of which the ranks gather one at a time")


class _Gather(_Collective):
    """Gather local rows into all rows; `_Scatter` is its adjoint."""

    @staticmethod
    def forward(local: Tensor, rows: RowPartition, wire: _Wire) -> Tensor:
        return wire.gather(local, rows.sizes)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return _Scatter.apply(grad, *ctx.others), None, None  # type: ignore[no-untyped-call]


class _Scatter(_Collective):
    """Sum all rows over ranks and return the local rows of the sum; `_Gather` is its adjoint."""

    @staticmethod
    def forward(gathered: Tensor, rows: RowPartition, wire: _Wire) -> Tensor:
        return wire.scatter(gathered, rows.sizes, rows.rank)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return _Gather.apply(grad, *ctx.others), None, None  # type: ignore[no-untyped-call]


class _Total(_Collective):
    """Sum over ranks; the operation is self-adjoint.

    The last argument requires a gradient and gets none.  It makes this rank join the collective of the backward pass
    even if none of its numbers depends on a parameter; otherwise the other ranks block forever.
    """

    @staticmethod
    def forward(local: Tensor, wire: _Wire, _joins: Tensor | None) -> Tensor:
        total = local.clone()
        dist.all_reduce(total, group=wire.group)
        return total

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.others = inputs[1], None

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return _Total.apply(grad, *ctx.others), None, None  # type: ignore[no-untyped-call]


class TorchProcessGroup(ProcessGroup):
    """A process group of torch.distributed, for one batch.

    Args:
        group: the group of torch.distributed; ``None`` for all processes.
        sizes: the number of samples on each rank; without it a collective determines them.

    Examples:
        >>> TorchProcessGroup.several()
        False
    """

    def __init__(self, group: Any = None, sizes: Sequence[int] | None = None) -> None:
        release_work_at_exit()
        self.size = dist.get_world_size(group)
        self.rank = dist.get_rank(group)
        self._wire = _Wire(group, self.size)
        if sizes is not None and len(sizes) != self.size:
            raise ValueError(f"sizes must be one for each of the {self.size} processes, but there are {len(sizes)}")
        self._batch = None if sizes is None else RowPartition(tuple(sizes), self.rank)
        # several losses on one batch share one gather and one scatter of the gradients
        self._gathered: dict[tuple[int, bool], tuple[Tensor, Tensor]] = {}

    @staticmethod
    def several(group: Any = None) -> bool:
        """Whether the group has more than one process."""
        return dist.is_available() and dist.is_initialized() and dist.get_world_size(group) > 1

    def rows(self, local: Tensor) -> RowPartition:
        """All-gather the number of rows per rank."""
        sizes = self._wire.gather(torch.tensor([len(local)], device=local.device), (1,) * self.size)
        return RowPartition(tuple(sizes.tolist()), self.rank)

    def batch_rows(self, local: Tensor) -> RowPartition:
        """All-gather the number of rows per rank once, and check that it stays the same."""
        if self._batch is None:
            self._batch = self.rows(local)
        if len(local) != self._batch.sizes[self.rank]:
            raise ValueError(
                f"distributed_batch must be opened once per batch, but this rank has {len(local)} samples now and had "
                f"{self._batch.sizes[self.rank]} before"
            )
        return self._batch

    def largest(self, local: int) -> int:
        """Return the largest shard of the batch if its partition is known, otherwise ``local``."""
        known = self._batch is not None and local == self._batch.sizes[self.rank]
        return max(self._batch.sizes) if known and self._batch is not None else local

    def gather(self, local: Tensor, rows: RowPartition) -> Tensor:
        """All-gather rows; the rows of the batch are gathered once and cached."""
        # what is gathered inside a transform does not exist outside of it
        if rows is not self._batch or is_transformed():
            return self._gather(local, rows)
        key = id(local), torch.is_grad_enabled()
        if key not in self._gathered:
            # the reference to the tensor keeps its id from being reused
            self._gathered[key] = local, self._gather(local, rows)
        return self._gathered[key][1]

    def _gather(self, local: Tensor, rows: RowPartition) -> Tensor:
        gathered: Tensor = _Gather.apply(local, rows, self._wire)  # type: ignore[no-untyped-call]
        return gathered

    def scatter(self, gathered: Tensor, rows: RowPartition) -> Tensor:
        """Reduce-scatter rows."""
        local: Tensor = _Scatter.apply(gathered, rows, self._wire)  # type: ignore[no-untyped-call]
        return local

    def totals(self, local: Sequence[Tensor]) -> list[Tensor]:
        """All-reduce the numbers in one tensor of float64, which is exact for counts."""
        if not local:
            return []
        stacked = torch.stack([number.double() for number in local])
        # inside a transform no tensor can be made to require a gradient, but there every number depends on its inputs
        joins = None if is_inside_func() else stacked.new_zeros((), requires_grad=torch.is_grad_enabled())
        sums: Tensor = _Total.apply(stacked, self._wire, joins)  # type: ignore[no-untyped-call]
        return [total.to(number.dtype) for total, number in zip(sums, local, strict=True)]

    def for_other_batch(self) -> TorchProcessGroup:
        """The same processes for another batch."""
        return TorchProcessGroup(self._wire.group)

    def forget(self) -> None:
        """Clear the cache of gathered rows."""
        self._gathered.clear()


@functools.cache
def release_work_at_exit() -> None:
    """Let the threads of process groups release the last collectives before this process ends.

    A thread of gloo that releases a collective waits for the interpreter, and an interpreter that shuts down ends waiting
    threads, which aborts the process: "terminate called without an active exception" (torch 2.13).

    Examples:
        >>> release_work_at_exit()
    """
    atexit.register(time.sleep, 0.1)


class _Current:
    """The value of `current_group`, in an attribute: torch.compile guards attributes but not context variables."""

    group: ProcessGroup = SINGLE_PROCESS


_current = _Current()


def current_group() -> ProcessGroup:
    """Return the process group of the current batch.

    Examples:
        >>> isinstance(current_group(), SingleProcess)
        True
    """
    return _current.group


@contextmanager
def distributed_batch(group: Any = None, *, sizes: Sequence[int] | None = None) -> Iterator[ProcessGroup]:
    """Compute losses over the samples of all ranks inside this block, which is for one batch.

    With a single process, or if torch.distributed is not initialized, the block has no effect.  Gradients follow the
    convention of `DistributedDataParallel`: their mean over ranks is the gradient of the loss.

    Args:
        group: a group of torch.distributed; ``None`` for all processes.
        sizes: the number of samples on each rank.  Without it a collective determines them, and the host waits for the
            device.

    Examples:
        >>> import torch
        >>> from likewise.losses import ContrastiveLoss
        >>> with distributed_batch():
        ...     ContrastiveLoss()(torch.eye(2), torch.tensor([0, 0]))
        tensor(1.)
    """
    before = _current.group
    processes = TorchProcessGroup(group, sizes) if TorchProcessGroup.several(group) else None
    _current.group = processes or SINGLE_PROCESS
    try:
        yield _current.group
    finally:
        _current.group = before
        if processes is not None:
            processes.forget()


@contextmanager
def extended_batch() -> Iterator[ProcessGroup]:
    """Compute losses over more samples than the current batch has, on the same processes, inside this block.

    Examples:
        >>> with extended_batch() as group:
        ...     group.size
        1
    """
    before = _current.group
    if isinstance(before, TorchProcessGroup):
        _current.group = before.for_other_batch()
    try:
        yield _current.group
    finally:
        _current.group = before
