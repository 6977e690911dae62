"""How a cell is measured: both sides in turns, correctness, and peak memory."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from benchmarks.harness import MIB, Step, high_water, out_of_memory, relative, run_in_child, take_turns
from benchmarks.harness.children import over_the_limit
from benchmarks.harness.pairings import Pairing, find, floor, make_batch

TINY = 32
AGREEMENT = 1e-6
"""Relative difference of two float64 values below which they are the same number."""


@dataclass(frozen=True)
class Settings:
    """What all cells of a run share.

    Args:
        device: where it runs.
        dim: the embeddings' dimension.
        seconds: time for one side of one cell.
        memory_limit: bytes that a call may take.
        time_limit: seconds that a call may take.
        clock: wall or CPU time.
    """

    device: str
    dim: int
    seconds: float
    memory_limit: int
    time_limit: float
    clock: str = "wall"


def in_child(task: Callable[..., dict[str, Any]], *arguments: Any, settings: Settings) -> dict[str, Any]:
    """Run a task in a fresh process, within the limits of the run."""
    answer: dict[str, Any] = run_in_child(
        task,
        *arguments,
        settings,
        patience=8 * settings.time_limit + 20 * settings.seconds,
        memory_limit=settings.memory_limit,
        device=settings.device,
        preload=("torch", "likewise.losses", "pytorch_metric_learning.losses"),
    )
    return answer


def time_floor(size: int, settings: Settings) -> dict[str, Any]:
    """The bare matrix of similarities, forward and backward."""
    step = Step(floor, *make_batch(size, settings.dim, settings.device), clock=settings.clock)
    return take_turns({"floor": step}, settings.seconds)["floor"]


def time_cell(name: str, size: int, with_peer: bool, settings: Settings) -> dict[str, Any]:
    """Both sides of one loss at one size, with proof that they computed what they should."""
    pairing, batch = find(name, settings.dim), make_batch(size, settings.dim, settings.device)
    steps = {"ours": Step(pairing.call("ours", settings.device), *batch, clock=settings.clock)}
    result: dict[str, Any] = {}
    if with_peer:
        theirs = Step(pairing.call("theirs", settings.device), *batch, clock=settings.clock)
        try:
            theirs()
            steps["theirs"] = theirs
        except (MemoryError, RuntimeError) as error:
            if not out_of_memory(error):
                raise
            result["theirs"] = over_the_limit(settings.memory_limit)
    result.update(take_turns(steps, settings.seconds))
    result["precision"] = precision(pairing, *batch)
    if "theirs" in steps:
        result["agreement"] = agreement(pairing, *batch)
    return result


# ------------------------------------------------------------------------------------------------ correctness


def precision(pairing: Pairing, embeddings: Tensor, labels: Tensor) -> dict[str, float]:
    """How far our float32 value and gradient are from our own in float64, relatively."""
    steps = []
    for dtype in (torch.float32, torch.float64):
        torch.manual_seed(0)  # both draw alike
        step = Step(pairing.call("ours", embeddings.device.type), embeddings.to(dtype), labels)
        step()
        steps.append(step)
    single, double = steps
    assert single.embeddings.grad is not None
    assert double.embeddings.grad is not None
    slope = double.embeddings.grad
    gradient_error = float((single.embeddings.grad.double() - slope).norm() / slope.norm().clamp_min(1e-300))
    return {"value": relative(single.value, double.value), "gradient": gradient_error}


def agreement(pairing: Pairing, embeddings: Tensor, labels: Tensor) -> dict[str, Any]:
    """Whether both sides have the same value in float64."""
    if not pairing.same_problem:
        return {"agrees": None, "why": "not the same problem"}
    device, embeddings = embeddings.device.type, embeddings.double()
    theirs = pairing.call_on_our_triplets(device) if pairing.random else pairing.call("theirs", device)
    values = []
    try:
        for call in (pairing.call("ours", device), theirs):
            torch.manual_seed(0)  # both draw alike
            with torch.no_grad():
                values.append(float(call(embeddings, labels)))
    except (MemoryError, RuntimeError) as error:
        if not out_of_memory(error):
            raise
        return {"agrees": None, "why": "float64 does not fit into the limit"}
    difference = relative(values[0], values[1])
    return {"agrees": difference < AGREEMENT, "difference": difference, "ours": values[0], "theirs": values[1]}


# ------------------------------------------------------------------------------------------------ memory


def peak_memory(name: str, side: str, size: int, settings: Settings) -> dict[str, Any]:
    """What one forward and backward takes on top of its inputs at its peak, in bytes; and its shortest time.

    The baseline is what is there after the same call on a tiny batch and after the inputs exist, so that libraries,
    threads and buffers that are there once and for all do not count.
    """
    call = find(name, settings.dim).call(side, settings.device)
    torch.ones(MIB).add_(1.0)  # wakes every thread
    for _ in range(2):
        Step(call, *make_batch(TINY, settings.dim, settings.device))()
    step = Step(call, *make_batch(size, settings.dim, settings.device))
    before = high_water(settings.device, forget=True)
    begin, shortest = time.perf_counter(), step()
    extra = high_water(settings.device) - before
    for _ in range(4):
        if time.perf_counter() - begin + shortest > 2 * settings.seconds:
            break
        shortest = min(shortest, step())
    return {"bytes": extra, "seconds": shortest}
