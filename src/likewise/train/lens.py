"""Observers of training steps, which do not influence the run."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Protocol

import torch
from torch import Tensor

from likewise.distributed import distributed_batch
from likewise.train.checkpoint import load_rng_state, rng_tensors


class Lens(Protocol):
    """The interface of an observer of training steps, such as `likewise.analysis.Recorder`.

    Attributes:
        every: the number of steps between two observations.

    Examples:
        >>> class Length:
        ...     every = 2
        ...
        ...     def ready(self) -> None:
        ...         pass
        ...
        ...     def __call__(self, embeddings: Tensor, labels: Tensor) -> Mapping[str, Any]:
        ...         return {"length": float(embeddings.norm(dim=1).mean())}
        >>> LensHook(Length(), main=True).after(torch.ones(3, 4), torch.arange(3))["length"]
        2.0
    """

    every: int

    def ready(self) -> None:
        """Called before an observed step changes the parameters."""

    def __call__(self, embeddings: Tensor, labels: Tensor) -> Mapping[str, Any]:
        """Return the values to record; called with the embeddings of that step, without gradient, and their labels."""


class LensHook:
    """Calls an observer at the steps that it observes.

    Args:
        lens: the observer, or ``None``.
        main: whether this is the main process, which observes the gathered batch.

    Examples:
        >>> LensHook(None, main=True).before(1)
        False
    """

    def __init__(self, lens: Lens | None, *, main: bool) -> None:
        self.lens = lens
        self.main = main
        self._seconds = 0.0

    def before(self, step: int) -> bool:
        """Prepare the observer, and return whether a step, counted from 1, is observed: the first one and every ``every``-th."""
        if self.lens is None or (step > 1 and step % self.lens.every):
            return False
        begin = time.perf_counter()
        if self.main:
            self.lens.ready()
        self._seconds = time.perf_counter() - begin
        return True

    def after(self, embeddings: Tensor, labels: Tensor) -> dict[str, Any]:
        """Return the record and the seconds that it took; empty on all but the main process.

        The state of the random number generators is restored.
        """
        begin = time.perf_counter()
        embeddings = embeddings if embeddings.dtype == torch.float64 else embeddings.float()  # as a loss gets them
        with torch.no_grad(), distributed_batch() as group:
            rows = group.batch_rows(embeddings)
            gathered, gathered_labels = group.gather(embeddings, rows), group.gather(labels, rows)
        if self.lens is None or not self.main:
            return {}
        rng_state = rng_tensors()
        try:
            record = self.lens(gathered, gathered_labels)
        finally:
            load_rng_state(rng_state)
        return {**record, "seconds": round(self._seconds + time.perf_counter() - begin, 4)}
