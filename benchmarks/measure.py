"""How a cell is measured: in a fresh process, both sides in turns, with a limit on its memory and its time."""

from __future__ import annotations

import multiprocessing
import resource
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch
from machine import GIB, MIB, cores, high_water, out_of_memory
from pairings import Call, Pairing, find, floor, make_batch
from torch import Tensor, nn

TINY = 32
ROUNDS = 10
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
    """

    device: str
    dim: int
    seconds: float
    memory_limit: int
    time_limit: float


# ------------------------------------------------------------------------------------------------ processes


def in_child(task: Callable[..., dict[str, Any]], *arguments: Any, settings: Settings) -> dict[str, Any]:
    """Run a task in a fresh process; what it returns, or ``{"skipped": …, "why": …}`` if it did not live to tell.

    Children are forked from a server that has imported everything and computed nothing: they start at once, and none
    inherits threads or memory from an earlier cell.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["torch", "likewise.losses", "pytorch_metric_learning.losses"])
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_child, args=(sender, task, arguments, settings))
    child.start()
    sender.close()
    patience = 8 * settings.time_limit + 20 * settings.seconds
    try:
        if not receiver.poll(patience):
            return {"skipped": "time", "why": f"not done after {patience:.0f} s"}
        answer: dict[str, Any] = receiver.recv()
        return answer
    except EOFError:
        child.join()
        return {"skipped": "crash", "why": f"the process ended with code {child.exitcode}"}
    finally:
        child.kill()
        child.join()


def _child(sender: Connection, task: Callable[..., dict[str, Any]], arguments: Any, settings: Settings) -> None:
    torch.set_num_threads(cores())
    # theirs warns of its own use of torch, once per call
    warnings.simplefilter("ignore")
    _limit_memory(settings)
    try:
        sender.send(task(*arguments, settings))
    except (MemoryError, RuntimeError) as error:
        if not out_of_memory(error):
            raise
        sender.send(_over_the_limit(settings))


def _limit_memory(settings: Settings) -> None:
    if settings.device != "cpu":
        total = torch.cuda.get_device_properties(settings.device).total_memory
        torch.cuda.set_per_process_memory_fraction(min(1.0, settings.memory_limit / total), settings.device)
    elif sys.platform == "linux":
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + settings.memory_limit
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _over_the_limit(settings: Settings) -> dict[str, Any]:
    return {"skipped": "memory", "why": f"needs more than the limit of {settings.memory_limit / GIB:g} GiB"}


# ------------------------------------------------------------------------------------------------ time


class Step:
    """One forward and backward of a loss on one batch; calling it returns the seconds it took."""

    def __init__(self, call: Call, embeddings: Tensor, labels: Tensor, *, backward: bool = True) -> None:
        self.call = call
        self.embeddings = embeddings.detach().clone().requires_grad_(True)
        self.labels = labels
        self.backward = backward
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
        start = time.perf_counter()
        loss = self.call(self.embeddings, self.labels)
        if self.backward:
            loss.backward()
        self._wait()
        took = time.perf_counter() - start
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


def time_floor(size: int, settings: Settings) -> dict[str, Any]:
    """The bare matrix of similarities, forward and backward."""
    step = Step(floor, *make_batch(size, settings.dim, settings.device))
    return take_turns({"floor": step}, settings.seconds)["floor"]


def time_cell(name: str, size: int, with_peer: bool, settings: Settings) -> dict[str, Any]:
    """Both sides of one loss at one size, with proof that they computed what they should."""
    pairing, batch = find(name, settings.dim), make_batch(size, settings.dim, settings.device)
    steps = {"ours": Step(pairing.call("ours", settings.device), *batch)}
    result: dict[str, Any] = {}
    if with_peer:
        theirs = Step(pairing.call("theirs", settings.device), *batch)
        try:
            theirs()
            steps["theirs"] = theirs
        except (MemoryError, RuntimeError) as error:
            if not out_of_memory(error):
                raise
            result["theirs"] = _over_the_limit(settings)
    result.update(take_turns(steps, settings.seconds))
    result["precision"] = precision(pairing, *batch)
    if "theirs" in steps:
        result["agreement"] = agreement(pairing, *batch)
    return result


# ------------------------------------------------------------------------------------------------ correctness


def relative(value: float, truth: float) -> float:
    """The relative difference; the absolute one where the truth is zero."""
    return abs(value - truth) / (abs(truth) or 1.0)


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
