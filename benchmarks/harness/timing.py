"""Time of a step: forward and backward of a loss, in turns with other steps."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

Call = Callable[[Tensor, Tensor], Tensor]
ROUNDS = 10
CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}
"""What is measured: wall time where the machine does nothing else, CPU time, with one thread, where it does."""


class Step:
    """One forward and backward of a loss on one batch; calling it returns the seconds it took."""

    def __init__(
        self, call: Call, embeddings: Tensor, labels: Tensor, *, backward: bool = True, clock: str = "wall"
    ) -> None:
        self.call = call
        self.embeddings = embeddings.detach().clone().requires_grad_(True)
        self.labels = labels
        self.backward = backward
        self.now = CLOCKS[clock]
        self.value = float("nan")

    @property
    def leaves(self) -> list[Tensor]:
        """What gets a gradient: the embeddings, and what the loss learns."""
        return [self.embeddings, *(self.call.parameters() if isinstance(self.call, nn.Module) else ())]

    def clear(self) -> None:
        """Forget the gradients, as an optimizer does between steps."""
        for leaf in self.leaves:
            leaf.grad = None

    def __call__(self) -> float:
        self.clear()
        self._wait()
        start = self.now()
        loss = self.call(self.embeddings, self.labels)
        if self.backward:
            loss.backward()
        self._wait()
        took = self.now() - start
        self.value = float(loss.detach())
        return took

    def _wait(self) -> None:
        if self.embeddings.device.type != "cpu":
            torch.cuda.synchronize(self.embeddings.device)


def take_turns(steps: dict[str, Step], seconds: float) -> dict[str, dict[str, Any]]:
    """Time several steps so that whatever else the machine does hits all of them alike.

    Each gets ``seconds``, in ten blocks that alternate; at least three calls, or one where a call takes twice the time.
    """
    calls = {side: _calls_to_make(step, seconds) for side, step in steps.items()}
    samples: dict[str, list[float]] = {side: [] for side in steps}
    for turn in range(ROUNDS):
        for side, step in steps.items():
            block = (turn + 1) * calls[side] // ROUNDS - turn * calls[side] // ROUNDS
            samples[side] += [step() for _ in range(block)]
    return {side: summary(taken) for side, taken in samples.items()}


def _calls_to_make(step: Step, seconds: float) -> int:
    shortest, begin = step(), time.perf_counter()
    for _ in range(4):
        if time.perf_counter() - begin + shortest > seconds / 2:
            break
        shortest = min(shortest, step())
    return 1 if shortest > 2 * seconds else max(3, int(seconds / shortest))


def summary(samples: list[float]) -> dict[str, Any]:
    """Median, quartiles and minimum in milliseconds."""
    lower, median, upper = statistics.quantiles(samples, n=4, method="inclusive") if len(samples) > 1 else samples * 3
    return {
        "median_ms": round(1e3 * median, 4),
        "quartiles_ms": [round(1e3 * lower, 4), round(1e3 * upper, 4)],
        "fastest_ms": round(1e3 * min(samples), 4),
        "calls": len(samples),
    }


def relative(value: float, truth: float) -> float:
    """The relative difference; the absolute one where the truth is zero."""
    return abs(value - truth) / (abs(truth) or 1.0)
