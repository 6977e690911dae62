"""Samples that are collected batch by batch, on one rank or on several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from likewise.distributed import RowPartition, TorchProcessGroup
from likewise.formula import embeddings_as_given
from likewise.metrics.arrays import Array, as_tensor, check_labels

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
GATHER_BYTES = 2**26
"""Bytes of a rank that one collective gathers: samples that are kept in main memory may pass through a GPU."""


@dataclass(frozen=True, eq=False)
class Samples:
    """Samples of one batch, or of all batches and ranks.

    Args:
        embeddings: ``(n, d)``.
        labels: ``(n,)``.
        ids: the sample id of each row, ``(n,)``, or ``None``.
        is_query: which samples are queries, ``(n,)`` booleans, or ``None``.

    Examples:
        >>> import torch
        >>> Samples(torch.eye(2), torch.tensor([0, 1]), is_query=torch.tensor([True, False])).kind
        '2 dimensions, float32, is_query'
    """

    embeddings: Tensor
    labels: Tensor
    ids: Tensor | None = None
    is_query: Tensor | None = None

    @property
    def kind(self) -> str:
        """A phrase for the properties that all batches must have in common."""
        extra = [name for name in ("ids", "is_query") if getattr(self, name) is not None]
        width, dtype = self.embeddings.shape[1], str(self.embeddings.dtype).removeprefix("torch.")
        return ", ".join([f"{width} dimensions", dtype, *extra])

    def map(self, function: Callable[[Tensor], Tensor]) -> Samples:
        """Apply a function to each tensor."""
        ids, is_query = (None if each is None else function(each) for each in (self.ids, self.is_query))
        return Samples(function(self.embeddings), function(self.labels), ids, is_query)

    def split(self) -> tuple[Samples, Samples | None]:
        """Return all samples as queries and ``None``, or the queries and the gallery."""
        if self.is_query is None:
            return self, None
        queries, gallery = self.is_query.nonzero().squeeze(1), (~self.is_query).nonzero().squeeze(1)
        for name, rows in (("query", queries), ("sample of the gallery", gallery)):
            if not len(rows):
                raise ValueError(f"is_query must leave at least one {name}, but of {len(self.labels)} samples none is")
        return self.map(lambda column: column[queries]), self.map(lambda column: column[gallery])


def check_samples(embeddings: Array, labels: Array, ids: Array | None, is_query: Array | bool | None) -> Samples:
    """Check a batch; labels, ids and flags may be on another device than the embeddings.

    Examples:
        >>> import torch
        >>> check_samples(torch.eye(2), [3, 4], None, True).is_query
        tensor([True, True])
    """
    rows = embeddings_as_given("embeddings", as_tensor("embeddings", embeddings)).detach()
    names = check_labels("labels", labels, len(rows), None, "embeddings")
    numbers = None if ids is None else check_labels("ids", ids, len(rows), None, "embeddings")
    flags = None if is_query is None else _check_flags(is_query, len(rows))
    return Samples(rows, names, numbers, flags)


def _check_flags(is_query: object, rows: int) -> Tensor:
    if isinstance(is_query, bool):
        return torch.full((rows,), is_query)
    flags = as_tensor("is_query", is_query)
    if not isinstance(flags, Tensor) or flags.dtype != torch.bool or flags.shape != (rows,):
        what = f"{flags.dtype} of shape {tuple(flags.shape)}" if isinstance(flags, Tensor) else repr(flags)
        raise ValueError(f"is_query must be a boolean or {rows} booleans, but it is {what}")
    return flags


def concatenate_samples(batches: Sequence[Samples]) -> Samples:
    """Concatenate batches of one kind.

    Examples:
        >>> import torch
        >>> concatenate_samples([Samples(torch.eye(2), torch.tensor([0, 1]))] * 2).labels
        tensor([0, 1, 0, 1])
    """
    first = batches[0]
    ids = None if first.ids is None else torch.cat([each.ids for each in batches if each.ids is not None])
    flags = None
    if first.is_query is not None:
        flags = torch.cat([each.is_query for each in batches if each.is_query is not None])
    return Samples(
        torch.cat([each.embeddings for each in batches]), torch.cat([each.labels for each in batches]), ids, flags
    )


def gather_samples(local: Samples | None, group: Any) -> Samples | None:
    """Gather the samples of all ranks, in the order of ranks; ``None`` if no rank has one.

    Args:
        local: the samples of this rank; ``None`` for none.
        group: a group of torch.distributed; ``None`` for all processes.

    Examples:
        >>> import torch
        >>> gather_samples(Samples(torch.eye(2), torch.tensor([0, 1])), None).labels  # a single process
        tensor([0, 1])
    """
    if not TorchProcessGroup.several(group):
        return local
    processes = TorchProcessGroup(group)
    # all ranks must choose the same device, also those without samples
    on_device = torch.cuda.is_available() and dist.get_backend(group) != "gloo"
    device = torch.device("cuda", torch.cuda.current_device()) if on_device else torch.device("cpu")
    ones = RowPartition((1,) * processes.size, processes.rank)
    kinds = processes.gather(torch.tensor([_encode(local)], device=device), ones).tolist()
    present = [each[1:] for each in kinds if each[0]]
    if not present:
        return None
    *kind, on_cpu = present[0]
    if any(each[:-1] != kind for each in present):
        raise ValueError(
            "all ranks must have embeddings of one width and dtype, and all or none ids and is_query, but they differ"
        )
    # devices round differently, so all ranks use the device type of the first rank that has samples
    home = torch.device("cpu") if on_cpu else torch.device("cuda", torch.cuda.current_device())
    rows = RowPartition(tuple(each[0] for each in kinds), processes.rank)
    return (_make_empty(*kind) if local is None else local).map(
        lambda column: _gather_column(column, rows, processes, device, home)
    )


def _gather_column(
    column: Tensor, rows: RowPartition, processes: TorchProcessGroup, device: torch.device, home: torch.device
) -> Tensor:
    """Gather a tensor of all ranks in chunks of rows, over one device and into another."""
    gathered = column.new_empty(rows.count, *column.shape[1:], device=home)
    places = gathered.split_with_sizes(rows.sizes)
    size = max(1, GATHER_BYTES // (column.itemsize * prod(column.shape[1:])))
    for start in range(0, max(rows.sizes), size):
        chunk = RowPartition(tuple(len(place[start : start + size]) for place in places), rows.rank)
        # collectives of booleans do not exist everywhere
        sent = column[start : start + size].to(device, torch.uint8 if column.dtype == torch.bool else column.dtype)
        received = processes.gather(sent, chunk).split_with_sizes(chunk.sizes)
        for place, some in zip(places, received, strict=True):
            place[start : start + size] = some
    return gathered


def _encode(samples: Samples | None) -> list[int]:
    """The number of samples, their kind and whether they are in main memory, as whole numbers; zeros for none."""
    if samples is None:
        return [0] * 6
    embeddings, dtype = samples.embeddings, DTYPES.index(samples.embeddings.dtype)
    return [*embeddings.shape, dtype, samples.ids is not None, samples.is_query is not None, embeddings.is_cpu]


def _make_empty(width: int, dtype: int, has_ids: int, has_flags: int) -> Samples:
    nothing = torch.zeros(0, dtype=torch.int64)
    embeddings = torch.zeros(0, width, dtype=DTYPES[dtype])
    return Samples(embeddings, nothing, nothing if has_ids else None, nothing.bool() if has_flags else None)
