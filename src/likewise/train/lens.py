"""Observers of training steps, which change nothing."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Protocol

import torch
from torch import Tensor

from likewise.distributed import distributed_batch
from likewise.train.checkpoint import load_rng_state, rng_tensors


class Lens(Protocol):
    """What a training asks of an observer of its steps, such as `likewise.analysis.Recorder`.

    Attributes:
        every: steps between two looks.

    Examples:
        >>> class Length:
        ...     every = 2
        ...
        ...     def ready(self) -> None:
        ...         pass
        ...
        ...     def __call__(self, embeddings: Tensor, labels: Tensor) -> Mapping[str, Any]:
        ...         return {"length": float(embeddings.norm(dim=1).mean())}
        >>> Looks(Length(), main=True).after(torch.ones(3, 4), torch.arange(3))["length"]
        2.0
    """

    every: int

    def ready(self) -> None:
        """A step that is due comes next; what it changes is still as it was."""

    def __call__(self, embeddings: Tensor, labels: Tensor) -> Mapping[str, Any]:
        """What there is to say about the embeddings of that step, without gradient, and their labels."""


class Looks:
    """When the observer looks, and what a training does about it.

    Args:
        lens: the observer; ``None`` for none.
        main: whether this is the process that writes; the others send it their share of the batch.

    Examples:
        >>> Looks(None, main=True).before(1)
        False
    """

    def __init__(self, lens: Lens | None, *, main: bool) -> None:
        self.lens = lens
        self.main = main
        self._took = 0.0

    def before(self, step: int) -> bool:
        """Whether a step, counted from 1, is looked at: the first, and then every so many."""
        if self.lens is None or (step > 1 and step % self.lens.every):
            return False
        begin = time.perf_counter()
        if self.main:
            self.lens.ready()
        self._took = time.perf_counter() - begin
        return True

    def after(self, embeddings: Tensor, labels: Tensor) -> dict[str, Any]:
        """What it saw, and the seconds that it took; on other processes nothing.

        Whatever it draws, the training draws what it would have drawn.
        """
        begin = time.perf_counter()
        embeddings = embeddings if embeddings.dtype == torch.float64 else embeddings.float()  # as a loss gets them
        with torch.no_grad(), distributed_batch() as group:
            rows = group.batch_rows(embeddings)
            everyones, their_labels = group.gather(embeddings, rows), group.gather(labels, rows)
        if self.lens is None or not self.main:
            return {}
        rng_state = rng_tensors()
        try:
            seen = self.lens(everyones, their_labels)
        finally:
            load_rng_state(rng_state)
        return {**seen, "seconds": round(self._took + time.perf_counter() - begin, 4)}
