"""The processes of a training run: devices, collectives, random number generators and stop signals."""

from __future__ import annotations

import inspect
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

from likewise.distributed import release_work_at_exit
from likewise.train.settings import TrainConfig


def make_accelerator(settings: TrainConfig, folder: Path, device: str | None) -> Accelerator:
    """Create the `Accelerator` of a training run.

    Args:
        settings: the precision and the trackers.
        folder: the folder of the trackers.
        device: ``"cpu"``, or ``None``: the device that Accelerate chooses.

    Examples:
        >>> make_accelerator(TrainConfig(), Path("runs"), "cpu").device
        device(type='cpu')
    """
    # Accelerate's state is global, but a process can train twice with different precisions
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
        raise ValueError("precision must be 'bf16' or 'no' on a CPU, but it is 'fp16', which needs a GPU")
    if accelerator.num_processes > 1:
        release_work_at_exit()
    return accelerator


def wrap_for_processes(module: Any, accelerator: Accelerator) -> Any:
    """Wrap a module so that its gradients are averaged over all processes.

    A module without trained parameters, and the module of a single process, is returned unchanged.

    Examples:
        >>> model = nn.Linear(1, 1)
        >>> wrap_for_processes(model, make_accelerator(TrainConfig(), Path("runs"), "cpu")) is model
        True
    """
    if accelerator.num_processes == 1 or not isinstance(module, nn.Module):
        return module
    # a sharded parameter, such as proxies, differs between processes
    shards = [name for name, each in module.named_parameters() if getattr(each, "is_shard", False)]
    if not any(each.requires_grad for name, each in module.named_parameters() if name not in shards):
        return module
    DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(module, shards)  # type: ignore[no-untyped-call]
    ids = [accelerator.local_process_index] if accelerator.device.type == "cuda" else None
    # the queue of a cross-batch memory is large and equal on all processes: do not broadcast it at every step
    memory = any(name.endswith("references") for name, _ in module.named_buffers())
    renamed = "forward_sync_buffers" in inspect.signature(DistributedDataParallel).parameters  # torch 2.13
    options: dict[str, Any] = {"forward_sync_buffers" if renamed else "broadcast_buffers": not memory}
    return DistributedDataParallel(module, device_ids=ids, **options)


def gather_numbers(numbers: Sequence[float], accelerator: Accelerator) -> list[list[float]]:
    """All-gather numbers, in the order of ranks, so that all processes can make the same decision.

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
    """Catch SIGINT and SIGTERM; yields a function that returns whether one was received.

    A second signal ends the process as usual.

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
