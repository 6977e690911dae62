"""Base class of loaders: they count the batches of an epoch, so that an interrupted epoch can be continued."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from itertools import islice
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, runtime_checkable

import torch
from torch import Tensor

Indices = Sequence[int] | Tensor
AnyBatch = TypeVar("AnyBatch")


class Batch(NamedTuple):
    """The batch of a training step.

    Args:
        images: images ``(n, c, h, w)``, as the network expects them.
        labels: classes of the images, ``(n,)``.
        indices: indices of the images in the data set, ``(n,)``.

    Examples:
        >>> import torch
        >>> images, labels, indices = Batch(torch.zeros(1, 3, 4, 4), torch.tensor([7]), torch.tensor([0]))
        >>> labels
        tensor([7])
    """

    images: Tensor
    labels: Tensor
    indices: Tensor


@runtime_checkable
class Resumable(Protocol):
    """Protocol of batch samplers that can resume inside an epoch, such as those of this library.

    Examples:
        >>> from likewise.data.samplers import RandomBatchSampler
        >>> isinstance(RandomBatchSampler([0, 0, 1], batch_size=1), Resumable)
        True
    """

    def __iter__(self) -> Iterator[list[int]]:
        """Yield the remaining batches."""

    def state_dict(self, *, epoch: int | None = None, position: int | None = None) -> dict[str, Any]:
        """Return the state after a number of batches of an epoch."""

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the state."""


class ResumableLoader(ABC, Generic[AnyBatch]):
    """Batches of a sampler, counted as they are returned, so that an interrupted epoch can be continued.

    Args:
        batches: the samples of each batch: a batch sampler, or a list of index lists.
        device: device of the batches.

    Examples:
        >>> class Squares(ResumableLoader):
        ...     def make_batches(self, work):
        ...         return (Batch(indices**2, indices, indices) for _, indices in work)
        >>> [batch.images.tolist() for batch in Squares([[1, 2], [3]])]
        [[1, 4], [9]]
    """

    def __init__(self, batches: Iterable[Indices], *, device: str | torch.device = "cpu") -> None:
        self.batches = batches
        self.device = torch.device(device)
        self.epoch = 0
        self.step = 0

    @abstractmethod
    def make_batches(self, work: Iterator[tuple[int, Tensor]]) -> Iterator[AnyBatch]:
        """Yield the batch of each step, from the indices of its samples."""

    def __len__(self) -> int:
        if not isinstance(self.batches, Sized):
            raise TypeError(f"batches must have a length for len(loader), but it is a {type(self.batches).__name__}")
        return len(self.batches)

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch of the next iteration."""
        self.epoch, self.step = epoch, 0

    def state_dict(self) -> dict[str, Any]:
        """Return the epoch, the number of its batches that were returned, and the state of the sampler."""
        state: dict[str, Any] = {"epoch": self.epoch, "step": self.step}
        if isinstance(self.batches, Resumable):
            state["batches"] = self.batches.state_dict(epoch=self.epoch, position=self.step)
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the state for the next iteration."""
        if isinstance(self.batches, Resumable):
            self.batches.load_state_dict(state["batches"])
        self.epoch, self.step = state["epoch"], state["step"]

    def __iter__(self) -> Iterator[AnyBatch]:
        """Yield the remaining batches of this epoch; after the last one the epoch advances."""
        work = ((step, torch.as_tensor(indices, dtype=torch.int64)) for step, indices in self._steps())
        for batch in self.make_batches(work):
            self.step += 1
            yield batch
        self.epoch, self.step = self.epoch + 1, 0

    def _steps(self) -> Iterator[tuple[int, Indices]]:
        if isinstance(self.batches, Resumable):  # it may be ahead by the batches that were prepared but not returned
            self.batches.load_state_dict(self.batches.state_dict(epoch=self.epoch, position=self.step))
            return enumerate(self.batches, self.step)
        if hasattr(self.batches, "set_epoch"):
            self.batches.set_epoch(self.epoch)
        return islice(enumerate(self.batches), self.step, None)
