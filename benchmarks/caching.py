"""What a batch costs that goes through the network in chunks: time and memory of a step, beside the plain step.

    python -m benchmarks.caching                            EfficientNet-Lite0, 112 px, 512-d, on the CPU; writes
                                                            results/caching-cpu.json
    python -m benchmarks.caching --device cuda              65,536 images in one batch (`benchmarks.large_batches`); writes
                                                            results/caching-cuda.json row by row, continues if run again
    python -m benchmarks.caching --device cuda --minutes 5  starts no row after five minutes
    python -m benchmarks.caching --device cuda --page       fills the table of docs/large-batches.md
    python -m benchmarks.caching --quick                    a smoke test with a small network; prints, and writes nothing

On the CPU every row is a process of its own, so that the peak of its memory is its own: beyond what is there after a step of two
images.  Ratios are to the plain step of the same batch in the same run; plain and chunked steps take turns.  With `f`
for a forward pass and `b` for a backward pass of the whole batch, a plain step computes f + b, one in chunks 2 f + b.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
from collections.abc import Callable
from typing import Any

import torch
from accelerate import Accelerator

from benchmarks import large_batches
from benchmarks.harness import (
    DOCS,
    GIB,
    MIB,
    RESULTS,
    fill,
    high_water,
    machine,
    make_parser,
    result_path,
    run_in_child,
    versions,
    write,
)
from likewise.losses import MultiSimilarityLoss
from likewise.train.step import Meter, Step
from likewise.trunks import Embedder

Row = dict[str, Any]


def make(options: argparse.Namespace) -> tuple[Embedder, MultiSimilarityLoss, Accelerator, Any]:
    torch.manual_seed(0)
    accelerator = Accelerator(cpu=True)
    model = Embedder(options.trunk, options.dim, freeze_bn=True).train()
    optimizer = accelerator.prepare_optimizer(torch.optim.SGD(model.parameters(), lr=1e-4, fused=True))
    return model, MultiSimilarityLoss(), accelerator, optimizer


def batch(options: argparse.Namespace, size: int) -> tuple[torch.Tensor, torch.Tensor]:
    channels = 1 if options.trunk == "convnet" else 3
    chance = torch.Generator().manual_seed(1)
    images = torch.randn(size, channels, options.size, options.size, generator=chance)
    return images, torch.arange(size) // 4


def taken(call: Callable[[], object]) -> tuple[float, float]:
    """Seconds of a call, and those that it computed, of one core, where other programs do not count.

    What is not computing is the system's time, which goes into fetching memory.
    """

    def now() -> tuple[float, float]:
        used = resource.getrusage(resource.RUSAGE_SELF)
        return used.ru_utime + used.ru_stime, used.ru_utime

    begin = now()
    call()
    end = now()
    return end[0] - begin[0], end[1] - begin[1]


def peak_of(options: argparse.Namespace, size: int, chunk: int | None) -> int:
    """Bytes that a step takes at most, beyond what a step of two images has left behind; in a process of its own."""
    torch.set_num_threads(1)
    model, loss, accelerator, optimizer = make(options)
    step = Step(accelerator, model, loss, optimizer, Meter(accelerator.device), chunk=chunk)
    images, labels = batch(options, size)
    step([(images[:2], labels[:2])])
    before = high_water(forget=True)
    step([(images, labels)])
    return high_water() - before


def peak(options: argparse.Namespace, size: int, chunk: int | None) -> int:
    return int(run_in_child(peak_of, options, size, chunk))


def compare(options: argparse.Namespace, size: int, chunks: list[int]) -> Row:
    """One batch size: plain, and in chunks."""
    model, loss, accelerator, optimizer = make(options)
    images, labels = batch(options, size)
    ways: dict[int | None, Step] = {
        chunk: Step(accelerator, model, loss, optimizer, Meter(accelerator.device), chunk=chunk)
        for chunk in (None, *chunks)
    }
    times: dict[int | None, list[tuple[float, float]]] = {chunk: [] for chunk in ways}
    forwards = []
    for turn in range(options.turns + 1):
        for chunk, step in ways.items():
            took = taken(lambda step=step: step([(images, labels)]))  # type: ignore[misc]
            if turn:  # the first one warms up
                times[chunk].append(took)
        with torch.no_grad(), accelerator.autocast():
            forwards.append(taken(lambda: model(images))[1])

    def ratio(chunk: int, which: int) -> float:
        return statistics.median(
            mine[which] / other[which] for mine, other in zip(times[chunk], times[None], strict=True)
        )

    plain, whole = (
        (statistics.median(each[which] for each in times[None]) for which in (0, 1)),
        peak(options, size, None),
    )
    total, computed = plain
    share = statistics.median(forwards) / computed
    row: Row = {
        "batch": size,
        "seconds": round(total, 3),
        "computing": round(computed, 3),
        "mib": round(whole / MIB, 1),
    }
    row |= {"forward_share": round(share, 3), "chunks": []}
    for chunk in chunks:
        memory = peak(options, size, chunk)
        found = {"chunk": chunk, "time_ratio": round(ratio(chunk, 0), 3), "computing_ratio": round(ratio(chunk, 1), 3)}
        row["chunks"].append({**found, "mib": round(memory / MIB, 1), "memory_ratio": round(memory / whole, 3)})
        shown = f"{ratio(chunk, 0):.2f} of the time ({ratio(chunk, 1):.2f} of the computing)"
        print(f"batch {size}, chunks of {chunk}: {shown}, {memory / whole:.2f} of the memory", flush=True)
    print(
        f"batch {size}: {total:.2f} s, {whole / GIB:.2f} GiB; a forward pass is {share:.2f} of the computing",
        flush=True,
    )
    return row


def main() -> None:
    """Measure, print, write down."""
    parser = make_parser(__doc__, device=True, quick="a small network", out="caching")
    parser.add_argument("--turns", type=int, default=5, help="of each way")
    parser.add_argument("--minutes", type=float, default=20.0, help="on a GPU: start no row afterwards")
    parser.add_argument("--any-code", action="store_true", help="on a GPU: keep rows of other code; each says which")
    parser.add_argument("--page", action="store_true", help="fill the page from what was measured before, on a GPU")
    options = parser.parse_args()
    if options.page:
        report = json.loads((RESULTS / "caching-cuda.json").read_text())
        fill(DOCS / "large-batches.md", {"caching-gpu": large_batches.describe(report)})
        return
    if options.device != "cpu" or options.quick:
        large_batches.run(options, result_path("caching", options))
    if options.device != "cpu":
        return
    torch.set_num_threads(1)
    options.trunk, options.size, options.dim = (
        ("convnet", 32, 64) if options.quick else ("efficientnet_lite0", 112, 512)
    )
    report = {
        "machine": {**machine(options.device), "threads": 1, **versions("torch", "likewise")},
        "network": {"trunk": options.trunk, "size": options.size, "dim": options.dim, "frozen batch norm": True},
        "precision": "float32",
        "loss": "MultiSimilarityLoss",
        "turns": options.turns,
        "time": "of one core",
        "rows": [compare(options, 64, [8, 16])],
    }
    write(report, result_path("caching", options))


if __name__ == "__main__":
    main()
