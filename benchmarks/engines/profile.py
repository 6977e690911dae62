"""Where the time of a call goes: kernels on the device, and the host's time beyond them.

    python -m benchmarks.engines.profile --device cuda --losses Multi-similarity --sizes 32768 --precisions bf16
    python -m benchmarks.engines.profile --device cuda --host    the host's time of every loss; writes results/host-cuda.json
    python -m benchmarks.engines.profile --page                  fills the table of docs/benchmarks-engines.md

A call is a forward and a backward pass, as in `benchmarks.engines.grid`.  Its clock time is that of a synchronized call without
the profiler, the median of many.  Its device time is the sum of its kernels by torch's profiler; kernels of a CUDA graph, and the
gaps between them, count as long as a replay takes when replays are queued one after another.  The host's time is the difference.
Its floor is that of a function that copies its inputs, replays a graph of one kernel and copies the results, and nothing else.
"""

from __future__ import annotations

import argparse
import statistics
from collections import defaultdict
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

from benchmarks.engines.grid import DIM, NAMES, PRECISIONS, WARM, Autocast, make_step, setting
from benchmarks.harness import DOCS, Step, fill, machine, make_parser, number, read, result_path, table, versions, write
from benchmarks.harness.pairings import make_batch
from likewise.engines import graphs
from likewise.engines.recording import Recording

Row = dict[str, Any]
CALLS = 10
"""Calls under the profiler."""

SECONDS, REPLAYS = 0.3, 50
"""Seconds of calls without it, and replays that are queued."""

HOST_SIZES = (128, 2048, 8192, 32768)
HOST_NAMES = tuple(name for name in NAMES if name != "N-pairs, one pair per class")
"""Losses of the table of the host's time; the benchmark itself chooses the pairs of the one that is left out."""
SERVED_BAR, OTHER_BAR = 0.15, 0.5
"""Milliseconds of the host that a call may take beyond the device: served by a graph, and launched kernel by kernel."""


def main() -> None:
    """Print kernels, or measure the host's time."""
    parser = make_parser(__doc__, device=True, quick="one loss on the CPU", out="host")
    parser.add_argument("--losses", nargs="*", default=HOST_NAMES)
    parser.add_argument("--sizes", type=int, nargs="*")
    parser.add_argument("--precisions", nargs="*", choices=PRECISIONS, default=["mixed"])
    parser.add_argument("--host", action="store_true", help="one line per loss, written to a file")
    parser.add_argument("--most", type=int, default=16, help="kernels to print")
    parser.add_argument("--page", action="store_true", help="fill the page and measure nothing")
    options = parser.parse_args()
    if options.page:
        show(options)
        return
    path = result_path("host", options) if options.host and options.device != "cpu" else None
    report: Row = {"machine": {**machine(options.device), **versions("torch", "triton")}, "rows": []}
    if path is not None:
        report["floor_ms"] = measure_floor(options.device)
    for size in options.sizes or ((128,) if options.quick else HOST_SIZES):
        for precision in options.precisions:
            for loss in ("Contrastive",) if options.quick else options.losses:
                key = {"loss": loss, "size": size, "precision": precision}
                try:
                    report["rows"].append(measure(key, options))
                except Exception as error:  # out of memory, or a size that the loss does not take
                    print(f"{loss}, {size:,}, {precision}: {type(error).__name__}: {error}", flush=True)
        write(report, path)  # after each size, because the rental may end


def measure(key: Row, options: argparse.Namespace) -> Row:
    """Measure one loss and print it."""
    graphs.clear()
    embeddings, labels = make_batch(key["size"], 16 if options.quick else DIM, options.device)
    with setting(key):
        step = make_step(key, "ours", embeddings, labels, options.device)
        recording = warm_up(step)
        calls = max(CALLS, int(SECONDS / step()))
        clock = statistics.median(step() for _ in range(calls))
        kernels = profile_kernels(step)
        replay = None if recording is None else time_replays(recording)
    device = add_up(kernels, replay)
    row = {"key": key, "ms": round(1e3 * clock, 4), "device_ms": round(device, 4), "graph": recording is not None}
    row["launches"] = round(sum(kernel.launches for kernel in kernels.values() if not kernel.in_graph), 1)
    row["host_ms"] = round(row["ms"] - device, 4)
    print(
        f"{key['loss']}, {key['size']:,}, {key['precision']}: {row['ms']:.3f} ms, device {device:.3f}, host "
        f"{row['host_ms']:.3f}, {'graph' if row['graph'] else 'launched'}, {row['launches']} kernels launched one by one",
        flush=True,
    )
    if not options.host:
        for (name, _), kernel in sorted(kernels.items(), key=lambda item: -item[1].ms)[: options.most]:
            print(f"    {kernel.ms:8.3f} ms {kernel.launches:6.1f} x {name[:100]}", flush=True)
    return row


def warm_up(step: Step) -> Recording | None:
    """Call until kernels are compiled and graphs captured; return the recording that serves the call, if there is one."""
    for _ in range(WARM):
        step()
    before = graphs._GRAPHS.replayed
    step()
    if graphs._GRAPHS.replayed == before:
        return None
    known = [found for each in graphs._GRAPHS._known.values() for found in each.values()]
    return max((each for each in known if isinstance(each, Recording)), key=lambda recording: recording.used)


def measure_floor(device: str) -> float:
    """The host's milliseconds beyond the device's that torch itself takes for a replay and a backward pass."""
    embeddings, labels = make_batch(128, DIM, device)
    with setting({"precision": "mixed"}):
        step = Step(Autocast(_Bare(embeddings, labels), device.split(":")[0]), embeddings.bfloat16(), labels)
        for _ in range(WARM):
            step()
        clock = statistics.median(step() for _ in range(int(SECONDS / step())))
        kernels = profile_kernels(step)
    floor = 1e3 * clock - add_up(kernels, None)
    print(f"the floor: {floor:.3f} ms", flush=True)
    return round(floor, 4)


class _Bare(nn.Module):
    """A value and a gradient from a graph of one kernel, through the fewest operations of torch."""

    def __init__(self, embeddings: Tensor, labels: Tensor) -> None:
        super().__init__()
        self.inputs = [embeddings.bfloat16(), labels.clone()]
        self.outputs = [torch.zeros((), device=embeddings.device), embeddings.bfloat16()]
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.outputs[0].add_(1.0)

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        value: Tensor = _Copied.apply(self, embeddings, labels)  # type: ignore[no-untyped-call]
        return value


class _Copied(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, bare: _Bare, *tensors: Tensor) -> Tensor:
        for target, tensor in zip(bare.inputs, tensors, strict=True):
            target.copy_(tensor)
        bare.graph.replay()
        ctx.save_for_backward(bare.outputs[1].clone())
        return bare.outputs[0].clone()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        (gradient,) = ctx.saved_tensors
        return None, gradient * grad, None


class Kernel(NamedTuple):
    """What a call spends in a kernel.

    Args:
        launches: how often the kernel runs.
        ms: milliseconds.
        in_graph: whether a CUDA graph runs it.
    """

    launches: float
    ms: float
    in_graph: bool


def profile_kernels(step: Step) -> dict[tuple[str, bool], Kernel]:
    """The kernels of a call, by name and whether a graph runs them."""
    cuda = step.embeddings.is_cuda
    activities = [ProfilerActivity.CUDA] if cuda else [ProfilerActivity.CPU]
    with profile(activities=activities) as profiler:
        for _ in range(CALLS):
            step()
    events = [event for event in profiler.events() if (event.device_type == DeviceType.CUDA) == cuda]
    together: defaultdict[int, int] = defaultdict(int)
    for event in events:  # the kernels of one graph have the number of its launch
        together[event.id] += 1
    kernels: dict[tuple[str, bool], Kernel] = {}
    for event in events:
        key = event.name, cuda and together[event.id] > 1
        known = kernels.get(key, Kernel(0.0, 0.0, key[1]))
        took = event.time_range.elapsed_us() if cuda else event.self_cpu_time_total
        kernels[key] = Kernel(known.launches + 1 / CALLS, known.ms + took / 1e3 / CALLS, key[1])
    return kernels


def time_replays(recording: Recording) -> float:
    """The milliseconds of a replay between others."""
    if not recording.inputs[0].is_cuda:
        return 0.0
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    recording.replay()
    start.record()
    for _ in range(REPLAYS):
        recording.replay()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) / REPLAYS


def add_up(kernels: dict[tuple[str, bool], Kernel], replay: float | None) -> float:
    """The milliseconds of the device: those of single kernels, and those of a replay in place of the kernels of its graph."""
    single = sum(kernel.ms for kernel in kernels.values() if not kernel.in_graph)
    in_graph = sum(kernel.ms for kernel in kernels.values() if kernel.in_graph)
    if replay is None:
        return single + in_graph
    return single + max(replay, in_graph)


def show(options: argparse.Namespace) -> None:
    """Fill the page."""
    options.device = "cuda"
    path = result_path("host", options)
    report = read(path) if path is not None else None
    if report is None:
        raise SystemExit("there are no results yet: run python -m benchmarks.engines.profile --device cuda --host")
    fill(DOCS / "benchmarks-engines.md", {"engines-host": page(report["rows"], report.get("floor_ms"))})


def page(rows: list[Row], floor: float | None) -> str:
    """The table: milliseconds of the host by loss and size, the ones over their bar in bold."""
    sizes = sorted({row["key"]["size"] for row in rows})
    by_key = {(row["key"]["loss"], row["key"]["size"]): row for row in rows}
    over = sum(map(is_over, rows))
    lines = [
        [loss, *(_cell(by_key.get((loss, size))) for size in sizes)]
        for loss in dict.fromkeys(row["key"]["loss"] for row in rows)
    ]
    words = (
        f"Milliseconds of the host beyond the device's, {rows[0]['key']['precision']}; calls that a graph serves have a G. "
        f"{len(rows) - over} of {len(rows)} are within {SERVED_BAR} ms with a graph and {OTHER_BAR} ms without; the others are bold."
    )
    if floor is not None:
        words += f" A function that copies its inputs, replays a graph of one kernel and copies the results takes {number(floor)} ms."
    return f"{words}\n\n{table(['loss', *(f'{size:,}' for size in sizes)], lines)}"


def is_over(row: Row) -> bool:
    """Whether the host takes longer than it may."""
    return bool(row["host_ms"] > (SERVED_BAR if row["graph"] else OTHER_BAR))


def _cell(row: Row | None) -> str:
    if row is None:
        return ""
    text = f"{number(max(row['host_ms'], 0.0))}{' G' if row['graph'] else ''}"
    return f"**{text}**" if is_over(row) else text


if __name__ == "__main__":
    main()
