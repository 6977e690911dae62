"""A recorder that needs no GPU: replaying runs the recorded function again, into the memory of its first results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from likewise.engines.recorder import Outputs, Run


def tensors_of(outputs: Outputs) -> list[Tensor]:
    return [each for each in (outputs[0], *outputs[1]) if each is not None]


class FakePool:
    """Recordings that share memory: each recording and each replay destroys all outputs, even of recordings that are gone."""

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
        self.destroy()
        value, gradients = run()
        kept = value.clone(), tuple(None if each is None else each.clone() for each in gradients)
        self.outputs.append(kept)

        def replay() -> None:
            self.recorder.replays += 1
            # a replay runs no Python and saves no tensor
            keep = torch.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x)
            with torch.inference_mode(False), keep, _disable_current_modes():
                self.destroy()
                for own, new in zip(tensors_of(kept), tensors_of(run()), strict=True):
                    own.copy_(new)

        return kept, replay

    def destroy(self) -> None:
        for outputs in self.outputs:
            for each in tensors_of(outputs):
                each.fill_(torch.nan)

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


class Launches(TorchDispatchMode):
    """Counts the operations of torch besides replays; all of them but ``detach`` launch a kernel on a GPU."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.counts[func.overloadpacket.__name__] += 1
        return func(*args, **(kwargs or {}))


class Owner:
    """Whose computation something is."""


def leaf(*shape: int, seed: int = 0, **options: Any) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, **options).requires_grad_()
