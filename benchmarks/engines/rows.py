"""How one row of `engines.py` is measured: time, memory, CUDA graph, compiled, and whether the value is right."""

from __future__ import annotations

import gc
import time
import unittest.mock
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.engines import truth as truth
from benchmarks.harness import MIB, Step, relative, summary, take_turns
from benchmarks.harness.pairings import HEADS, Call, find, make_batch
from likewise.engines import dispatch, graphs
from likewise.engines.triton.product import ProductSpec

Row = dict[str, Any]

PEER = "pytorch-metric-learning"
FEW = "few positives"  # not an engine that can be asked for: "auto" takes it on a processor
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
HEAD_NAMES = tuple(head.name for head in HEADS)
BY_PROXY = ("Proxy-Anchor",)
"""Heads whose anchors are the proxies."""

SLICE = 64
"""Anchors whose values are compared one by one."""

ROUNDED = "forward + backward, rounded gradients"
"""A variant that the engine does not offer: gradients by similarities in bfloat16, three products instead of four."""

WHOLE = 2048
"""The largest batch whose whole gradient is compared with float64."""


@dataclass
class Bench:
    """What the rows of a run share, and what they remember of each other.

    Args:
        device: where it runs.
        dim: the embeddings' dimension.
        seconds: time for one row.
    """

    device: str
    dim: int
    seconds: float
    _batches: dict[int, tuple[Tensor, Tensor]] = field(default_factory=dict)
    _truth: dict[Any, Any] = field(default_factory=dict)

    @property
    def cuda(self) -> bool:
        return self.device != "cpu"

    def batch(self, size: int) -> tuple[Tensor, Tensor]:
        """The batch of that size, made once."""
        if size not in self._batches:
            self._batches[size] = make_batch(size, self.dim, self.device)
        return self._batches[size]

    def remembered(self, key: Any, make: Callable[[], Any]) -> Any:
        """A truth that several rows need, computed once."""
        if key not in self._truth:
            self._truth[key] = make()
        return self._truth[key]


@contextmanager
def products(setting: str) -> Iterator[None]:
    """How float32 matrices are multiplied: ``"highest"``, ``"high"`` or ``"medium"``."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(setting)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


# ------------------------------------------------------------------------------------------------ calls


def configure(module: nn.Module, **options: str) -> nn.Module:
    """Set ``backend`` or ``reduction`` of a loss, and of the losses inside it."""
    for part in module.modules():
        for name, value in options.items():
            if hasattr(part, name):
                setattr(part, name, value)
    return module


def make_call(bench: Bench, key: Row, **options: str) -> Call:
    """The loss of a row, on its side and engine, where the data is."""
    pairing = find(key["loss"], bench.dim, key.get("classes") or 1)
    with torch.device(bench.device):
        if key["contender"] == PEER:
            return pairing.call("theirs", bench.device)
        loss = configure(
            pairing.ours().to(bench.device), backend="auto" if key["contender"] == FEW else key["contender"], **options
        )
    if key.get("proxies", "float32") != "float32":
        loss = loss.to(DTYPES[key["proxies"]])
    return loss


def make_step(bench: Bench, key: Row, **options: Any) -> Step:
    """The call of a row on its batch."""
    embeddings, labels = bench.batch(key["size"])
    return Step(make_call(bench, key), embeddings.to(DTYPES[key["input"]]), labels, **options)


def warm_up(bench: Bench, key: Row) -> Row:
    """One call, so that what it compiles is on disk for the process that will measure it."""
    hurried = replace(bench, seconds=0.0)
    if key["part"] == "auto":
        return measure_auto(hurried, key)
    with products(key["products"]):
        return {"first_s": make_step(bench, key)()}


# ------------------------------------------------------------------------------------------------ rows


def measure_loss(bench: Bench, key: Row) -> Row:
    """Time and memory of a forward and backward, and how far it is from the truth."""
    with products(key["products"]):
        step = make_step(bench, key)
        row: Row = {"first_s": round(step(), 3)}
        row |= take_turns({"step": step}, bench.seconds)["step"]
        row |= extra_memory(step)
        row |= errors(bench, key, step)
    return row


def extra_memory(step: Step) -> Row:
    """What a call takes on top of its inputs at its peak; and beyond the gradient of what it learns, too."""
    if step.embeddings.device.type == "cpu":
        return {}  # losses.py measures that, in a process for each
    step.clear()
    gc.collect()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    step()
    extra = torch.cuda.max_memory_allocated() - before
    learned = sum(leaf.numel() * leaf.element_size() for leaf in step.leaves[1:])
    row = {"extra_mib": round(extra / MIB, 2)}
    return row | ({"beyond_proxies_mib": round((extra - learned) / MIB, 2)} if learned > MIB else {})


def errors(bench: Bench, key: Row, step: Step) -> Row:
    """Relative errors against float64: of the timed value, of single anchors, of the gradient of a small batch."""
    name, batch = key["loss"], truth_batch(key, step)
    dtypes = [None if x is None else x.dtype for x in (batch.anchors, batch.references)]
    identity = (name, key["size"], key.get("classes"), *dtypes)
    value = bench.remembered(identity, lambda: truth.whole(name, batch))
    row: Row = {"value": step.value, "value_error": relative(step.value, value)}
    rows = torch.linspace(0, len(batch.anchors) - 1, min(SLICE, len(batch.anchors)), device=bench.device).long()
    if key["contender"] != PEER:
        with torch.no_grad():
            single = make_call(bench, key, reduction="none")
            computed = single(step.embeddings, step.labels)[rows].double()
        row["anchors_error"] = distance(computed, truth.some(name, batch, rows))
    if batch.labels.numel() * len(batch.references if batch.references is not None else batch.labels) <= WHOLE**2:
        slopes = bench.remembered(("slopes", *identity), lambda: truth.gradients(name, batch))
        row["gradient_error"] = gradient_error(key, step, slopes)
    elif name in HEAD_NAMES and name not in BY_PROXY and step.embeddings.grad is not None:
        # a sample's gradient comes from its own row alone, so that some can be checked at any size
        slope = truth.gradient_of_some(name, batch, rows)
        row["gradient_error"] = distance(step.embeddings.grad[rows].double(), slope)
    return row


def gradient_error(key: Row, step: Step, slopes: list[Tensor]) -> float:
    """The largest error among the gradients of the embeddings and the proxies."""
    taken = [leaf.grad for leaf in step.leaves[: len(slopes)]]
    if key["loss"] in BY_PROXY:
        taken.reverse()
    pairs = [(g if g.shape == t.shape else g.T, t) for g, t in zip(taken, slopes, strict=True) if g is not None]
    return max(distance(g.double(), t) for g, t in pairs)


def truth_batch(key: Row, step: Step) -> truth.Batch:
    """The batch as the formulas see it, from exactly the numbers that the call was given."""
    embeddings, labels = step.embeddings.detach(), step.labels
    if key["loss"] not in HEAD_NAMES:
        return truth.Batch(embeddings, labels)
    weights = step.leaves[1].detach()
    proxies = weights if weights.shape == (key["classes"], embeddings.shape[1]) else weights.T
    classes = torch.arange(key["classes"], device=labels.device)
    if key["loss"] in BY_PROXY:
        return truth.Batch(proxies, classes, embeddings, labels)
    return truth.Batch(embeddings, labels, proxies, classes)


def distance(found: Tensor, true: Tensor) -> float:
    """The relative distance of two tensors."""
    return float((found - true).norm() / true.norm().clamp_min(1e-300))


# ------------------------------------------------------------------------------------------------ small batches


def measure_small(bench: Bench, key: Row) -> Row:
    """A call, the same without `likewise.engines.graphs`, the device's part of it, and whether anything waits for it."""
    graphs.clear()
    step, seconds = make_step(bench, key), bench.seconds / 3  # short calls, and very many rows
    row: Row = {"first_s": round(step(), 3)}
    for _ in range(graphs.AFTER + 1):  # from now on it is replayed, if it can be
        step()
    row |= take_turns({"step": step}, seconds)["step"]
    row["value"] = step.value
    if key["contender"] != PEER and "distance weighted" not in key["loss"]:
        double = Step(make_call(bench, {**key, "contender": "dense"}), step.embeddings.detach().double(), step.labels)
        double()
        row["value_error"] = relative(step.value, double.value)
    if bench.cuda and key["contender"] != PEER:
        row["waits"] = waits(step)
        row["held_mib"] = round(graphs.held_bytes() / MIB, 2)
        row["plain"] = attempt(lambda: without_graphs(step, seconds))
        row["graph"] = attempt(lambda: graph(step, seconds))
    return row


def without_graphs(step: Step, seconds: float) -> Row:
    """The same call where nothing is replayed: every kernel is launched by itself."""
    with unittest.mock.patch.object(graphs, "accepts", return_value=False):
        replayed = step.value
        step()
        row = take_turns({"step": step}, seconds)["step"]
    return row | {"difference": relative(replayed, step.value)}


def measure_compiled(bench: Bench, key: Row) -> Row:
    """The same, compiled in one graph without breaks, by torch's own compiler."""
    torch._dynamo.reset()
    eager = make_step(bench, key)
    eager()
    step = Step(torch.compile(eager.call, fullgraph=True), eager.embeddings, eager.labels)
    row: Row = {"first_s": round(step(), 3)}
    row |= take_turns({"step": step}, bench.seconds)["step"]
    return row | {"value": step.value, "value_error": relative(step.value, eager.value)}


def waits(step: Step) -> bool:
    """Whether a forward and backward makes the host wait for the device."""
    step.clear()
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        step.call(step.embeddings, step.labels).backward()
    except RuntimeError as refusal:
        if "synchroniz" not in str(refusal):
            raise
        return True
    finally:
        torch.cuda.set_sync_debug_mode("default")
    return False


def graph(step: Step, seconds: float, replays: int = 20) -> Row:
    """Forward and backward captured once and replayed; the median of blocks of replays, by the device's clock."""
    step.clear()
    torch.cuda.synchronize()
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step.clear()
            step.call(step.embeddings, step.labels).backward()
    torch.cuda.current_stream().wait_stream(side)
    step.clear()
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        loss = step.call(step.embeddings, step.labels)
        loss.backward()
    samples: list[float] = []
    begin = time.perf_counter()
    while len(samples) < 5 or time.perf_counter() - begin < seconds:
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(replays):
            captured.replay()
        end.record()
        end.synchronize()
        samples.append(start.elapsed_time(end) / replays / 1e3)
    return summary(samples) | {"difference": relative(float(loss.detach()), step.value)}


def attempt(task: Callable[[], Row]) -> Row:
    """What a task gives, or why it gave nothing."""
    try:
        return task()
    except Exception as error:
        if torch.cuda.is_available():
            torch.cuda.synchronize()  # raises where the device is lost, and then the row is
        return {"why": reason(error)}


def reason(error: BaseException) -> str:
    """An error in one line."""
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0][:200]}"


# ------------------------------------------------------------------------------------------------ rates and grids


def measure_rate(bench: Bench, key: Row) -> Row:
    """Operations in a second: of the bare product, of a forward, of a forward and backward (four products)."""
    count = 2.0 * key["size"] ** 2 * bench.dim
    with products(key["products"]), rounded_gradients(key["what"] == ROUNDED):
        if key["what"] == "product":
            x = bench.batch(key["size"])[0].to(DTYPES[key["input"]])
            row = device_time(lambda: torch.matmul(x, x.T), bench)
        else:
            both = key["what"] != "forward"
            step = make_step(bench, key, backward=both)
            step()
            count *= 1.0 if not both else 3.0 if key["what"] == ROUNDED else 4.0
            row = device_time(lambda: run(step), bench)
            if both:
                row["gradient_error"] = distance(step.embeddings.grad.double(), true_gradient(bench, key, step))
    return row | {"tflops": round(count / row["median_ms"] / 1e9, 3)}


@contextmanager
def rounded_gradients(asked: bool) -> Iterator[None]:
    """Round gradients by similarities to bfloat16, which takes one product instead of two, and whose error is measured."""
    if not asked:
        yield
        return
    graphs.clear()
    try:
        with unittest.mock.patch.object(ProductSpec, "summands", 1):
            yield
    finally:
        graphs.clear()


def true_gradient(bench: Bench, key: Row, step: Step) -> Tensor:
    """The gradient in float64, computed in chunks from the numbers that the call was given."""

    def compute() -> Tensor:
        exact = make_call(bench, {**key, "contender": "chunked"}).double()
        whole = Step(exact, step.embeddings.detach().double(), step.labels)
        whole()
        return whole.embeddings.grad

    return bench.remembered(("gradient", key["loss"], key["size"], key["input"]), compute)


def run(step: Step) -> None:
    """A step without its clock."""
    step.clear()
    loss = step.call(step.embeddings, step.labels)
    if step.backward:
        loss.backward()


def device_time(task: Callable[[], Any], bench: Bench) -> Row:
    """Calls in a row by the device's own clock, as a training loop would queue them."""
    for _ in range(3):
        task()
    samples: list[float] = []
    begin = time.perf_counter()
    while len(samples) < 5 or time.perf_counter() - begin < bench.seconds:
        if not bench.cuda:
            start = time.perf_counter()
            task()
            samples.append(time.perf_counter() - start)
            continue
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        first.record()
        for _ in range(4):
            task()
        last.record()
        last.synchronize()
        samples.append(first.elapsed_time(last) / 4 / 1e3)
    return summary(samples)


@contextmanager
def few_positives_at_any_size(asked: bool) -> Iterator[None]:
    """Let ``"auto"`` look few positives up whether it pays or not."""
    before = dispatch.INDEX_FROM
    dispatch.INDEX_FROM = 0 if asked else before
    try:
        yield
    finally:
        dispatch.INDEX_FROM = before


def measure_auto(bench: Bench, key: Row) -> Row:
    """Time alone, of anchors against so many references: a batch against itself, references, or classes."""
    m, n = key["size"], key["references"]
    embeddings, labels = bench.batch(max(m, n))
    dtype = DTYPES[key["input"]]
    with products(key["products"]), few_positives_at_any_size(key["contender"] == FEW):
        loss = make_call(bench, {**key, "classes": n})
        anchors, own = embeddings[:m].to(dtype), labels[:m]
        if key["loss"] in HEAD_NAMES:
            step = Step(loss, anchors, own % n)
        elif m == n:
            step = Step(loss, anchors, own)
        else:
            references = embeddings[:n].to(dtype)
            step = Step(lambda x, y: loss(x, y, references, labels[:n]), anchors, own)
        row: Row = {"first_s": round(step(), 3)}
        return row | take_turns({"step": step}, bench.seconds / 3)["step"]
