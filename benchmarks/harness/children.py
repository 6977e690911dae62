"""Tasks in fresh processes, with a limit on their memory and their time."""

from __future__ import annotations

import multiprocessing
import resource
import sys
import warnings
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch

from benchmarks.harness.environment import GIB, cores, out_of_memory

Answer = dict[str, Any]

GRACE = 10.0
"""Seconds that a process has to end after its answer."""


def run_in_child(
    task: Callable[..., Any],
    *arguments: Any,
    patience: float | None = None,
    memory_limit: int | None = None,
    device: str = "cpu",
    preload: Sequence[str] = (),
) -> Any:
    """Run a task in a fresh process; return its result, or ``{"skipped": …, "why": …}`` if it did not finish.

    With ``preload``, children are forked from a server that has imported these modules and computed nothing: they start
    at once, and none inherits threads or memory from an earlier task.  Otherwise each starts a new Python.

    Args:
        task: a function of a module.
        arguments: its arguments.
        patience: seconds after which the process is killed.
        memory_limit: bytes that the task may take.
        device: where the limit holds.
        preload: modules that the server imports.
    """
    context: Any = multiprocessing.get_context("forkserver" if preload else "spawn")
    if preload:
        context.set_forkserver_preload([*preload])
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_child, args=(sender, task, arguments, memory_limit, device))
    child.start()
    sender.close()
    try:
        if not receiver.poll(patience):
            return {"skipped": "time", "why": f"not done after {patience:.0f} s"}
        answer = receiver.recv()
        child.join(GRACE)
        return answer
    except EOFError:
        child.join()
        return {"skipped": "crash", "why": f"the process ended with code {child.exitcode}"}
    finally:
        child.kill()
        child.join()


def _child(
    sender: Connection, task: Callable[..., Any], arguments: Sequence[Any], memory_limit: int | None, device: str
) -> None:
    torch.set_num_threads(cores())
    # pytorch-metric-learning warns of its use of torch, once per call
    warnings.simplefilter("ignore")
    try:
        if memory_limit is not None:
            limit_memory(memory_limit, device)
        sender.send(task(*arguments))
    except (MemoryError, RuntimeError) as error:
        if not out_of_memory(error) or memory_limit is None:
            raise
        sender.send(over_the_limit(memory_limit))


def limit_memory(limit: int, device: str) -> None:
    """Limit the memory that this process may take from now on, in bytes."""
    if device != "cpu":
        total = torch.cuda.get_device_properties(device).total_memory
        index = torch.device(device).index
        torch.cuda.set_per_process_memory_fraction(min(1.0, limit / total), 0 if index is None else index)
    elif sys.platform == "linux":
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        allowed = pages * resource.getpagesize() + limit
        resource.setrlimit(resource.RLIMIT_AS, (allowed, allowed))


def over_the_limit(limit: int) -> Answer:
    """The result of a task that needs too much memory."""
    return {"skipped": "memory", "why": f"needs more than the limit of {limit / GIB:g} GiB"}
