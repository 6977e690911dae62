"""The process that trains: its device, its fellows, its sources of chance, and requests to stop."""

from __future__ import annotations

import random
import signal
import threading
from collections.abc import Callable, Iterator
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

from likewise.train.settings import Plan


def make_accelerator(plan: Plan, folder: Path, device: str | None) -> Accelerator:
    """Accelerate's view of devices and processes, for one training.

    Args:
        plan: says the precision and the trackers.
        folder: where trackers write.
        device: ``"cpu"``, or ``None``: what Accelerate chooses.

    Examples:
        >>> make_accelerator(Plan(), Path("runs"), "cpu").device
        device(type='cpu')
    """
    # Accelerate keeps its state for a whole process, but one process may train twice with different precisions.
    if device not in (None, "cpu"):
        raise ValueError(f"device must be 'cpu' or None, what Accelerate chooses, but it is {device!r}")
    AcceleratorState._reset_state()
    accelerator = Accelerator(
        cpu=device == "cpu",
        mixed_precision=plan.precision,
        log_with=list(plan.trackers) or None,
        project_dir=folder,
        kwargs_handlers=[AutocastKwargs(cache_enabled=False)],  # a recorded step must cast its weights every time
    )
    if plan.precision == "fp16" and accelerator.device.type == "cpu":
        raise ValueError("precision must not be 'fp16' on a CPU, which has no such thing: 'bf16' or 'no'")
    if plan.trackers:
        accelerator.init_trackers("likewise")
    return accelerator


def on_every_process(module: Any, accelerator: Accelerator) -> Any:
    """A module whose gradients are averaged over all processes, if there are several and it learns anything.

    Examples:
        >>> model = nn.Linear(1, 1)
        >>> on_every_process(model, make_accelerator(Plan(), Path("runs"), "cpu")) is model
        True
    """
    learns = isinstance(module, nn.Module) and any(each.requires_grad for each in module.parameters())
    if accelerator.num_processes == 1 or not learns:
        return module
    ids = [accelerator.local_process_index] if accelerator.device.type == "cuda" else None
    return DistributedDataParallel(module, device_ids=ids)


def seed_everything(seed: int) -> None:
    """Begin all sources of chance of this process anew.

    Examples:
        >>> seed_everything(0)
    """
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)


@contextmanager
def stop_requests() -> Iterator[Callable[[], bool]]:
    """Whether SIGINT or SIGTERM has come; a second one ends the process as usual.

    Examples:
        >>> with stop_requests() as requested:
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
