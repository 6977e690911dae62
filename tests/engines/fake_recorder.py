"""A recorder that needs no GPU: replaying runs the recorded function again, into the memory of its first results."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import torch
from torch import Tensor

from likewise.engines.recorder import Outputs, Run


def tensors_of(outputs: Outputs) -> list[Tensor]:
    return [each for each in (outputs[0], *outputs[1]) if each is not None]


class FakePool:
    """Recordings that share memory: a replay destroys what the others left, as it may in a pool of CUDA graphs."""

    def __init__(self, recorder: FakeRecorder) -> None:
        self.recorder, self.reserved, self.renewed = recorder, 0, 0
        self.outputs: list[Outputs] = []

    def rehearse(self, run: Run) -> Outputs:
        return run()

    def record(self, run: Run) -> tuple[Outputs, Callable[[], None]]:
        if self.recorder.fails:
            raise RuntimeError("operation not permitted when stream is capturing")
        self.recorder.captures += 1
        self.reserved += self.recorder.bytes_each
        value, gradients = run()
        kept = value.clone(), tuple(None if each is None else each.clone() for each in gradients)
        self.outputs.append(kept)

        def replay() -> None:
            self.recorder.replays += 1
            for other in self.outputs:
                for each in tensors_of(other):
                    each.fill_(torch.nan)
            # a replay runs no Python and saves no tensor
            with torch.inference_mode(False), torch.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x):
                found = run()
            for own, new in zip(tensors_of(kept), tensors_of(found), strict=True):
                own.copy_(new)

        return kept, replay

    def renew(self, *, empty: bool = False) -> None:
        self.renewed += 1
        if empty:
            self.reserved = 0


class FakeRecorder:
    """Records on the CPU, and counts."""

    def __init__(self, bytes_each: int = 0) -> None:
        self.captures = self.replays = 0
        self.bytes_each = bytes_each
        self.current: Hashable = "a stream"
        self.busy = self.fails = False
        self.pools: list[FakePool] = []

    def accepts(self, device: torch.device) -> bool:
        return device.type == "cpu" and not self.busy

    def stream(self, device: torch.device) -> Hashable:
        return self.current

    def open_pool(self, device: torch.device) -> FakePool:
        self.pools.append(FakePool(self))
        return self.pools[-1]


class Owner:
    """Whose computation something is."""


def leaf(*shape: int, seed: int = 0, **options: Any) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, **options).requires_grad_()
