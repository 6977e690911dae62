"""The processes of a training: devices, collectives, random number generators, and requests to stop."""

from __future__ import annotations

import random
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from accelerate.utils import AutocastKwargs
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from likewise.train.settings import TrainConfig


def make_accelerator(settings: TrainConfig, folder: Path, device: str | None) -> Accelerator:
    """Accelerate's view of devices and processes, for one training.

    Args:
        settings: the precision and the trackers.
        folder: where trackers write.
        device: ``"cpu"``, or ``None``: chosen by Accelerate.

    Examples:
        >>> make_accelerator(TrainConfig(), Path("runs"), "cpu").device
        device(type='cpu')
    """
    # Accelerate's state is global, but one process may train twice with different precisions.
    if device not in (None, "cpu"):
        raise ValueError(f"device must be 'cpu' or None (Accelerate chooses), but it is {device!r}")
    AcceleratorState._reset_state()
    accelerator = Accelerator(
        cpu=device == "cpu",
        mixed_precision=settings.precision,
        log_with=list(settings.trackers) or None,
        project_dir=folder,
        kwargs_handlers=[AutocastKwargs(cache_enabled=False)],  # a recorded step must cast its weights every time
    )
    if settings.precision == "fp16" and accelerator.device.type == "cpu":
        raise ValueError("precision must not be 'fp16' on a CPU, which has no such thing: 'bf16' or 'no'")
    return accelerator


def wrap_for_processes(module: Any, accelerator: Accelerator) -> Any:
    """A module whose gradients are averaged over all processes, if there are several and it has trained parameters.

    Examples:
        >>> model = nn.Linear(1, 1)
        >>> wrap_for_processes(model, make_accelerator(TrainConfig(), Path("runs"), "cpu")) is model
        True
    """
    if accelerator.num_processes == 1 or not isinstance(module, nn.Module):
        return module
    # each process synchronizes its shard of the proxies itself
    shares = [name for name, each in module.named_parameters() if getattr(each, "is_shard", False)]
    if not any(each.requires_grad for name, each in module.named_parameters() if name not in shares):
        return module
    DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(module, shares)  # type: ignore[no-untyped-call]
    ids = [accelerator.local_process_index] if accelerator.device.type == "cuda" else None
    # a memory is equal on all processes, and large
    memory = any(name.endswith("references") for name, _ in module.named_buffers())
    return DistributedDataParallel(module, device_ids=ids, broadcast_buffers=not memory)


def gather_numbers(numbers: Sequence[float], accelerator: Accelerator) -> list[list[float]]:
    """All-gather numbers, in the order of ranks, so that all processes make the same decision.

    Examples:
        >>> gather_numbers([3, 4], make_accelerator(TrainConfig(), Path("runs"), "cpu"))
        [[3, 4]]
    """
    if accelerator.num_processes == 1:
        return [list(numbers)]
    mine = torch.tensor([list(numbers)], dtype=torch.float64, device=accelerator.device)
    return [[float(each) for each in row] for row in accelerator.gather(mine).tolist()]


def seed_everything(seed: int) -> None:
    """Seed all random number generators of this process.

    Examples:
        >>> seed_everything(0)
    """
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)


@contextmanager
def catch_stop_signals() -> Iterator[Callable[[], bool]]:
    """Whether SIGINT or SIGTERM was received; a second signal ends the process as usual.

    Examples:
        >>> with catch_stop_signals() as requested:
        ...     requested()
        False
    """
    received: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}

    def remember(number: int, _frame: object) -> None:
        received.append(number)
        signal.signal(number, before[signal.Signals(number)])

    for each in before:
        signal.signal(each, remember)
    try:
        yield lambda: bool(received)
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
