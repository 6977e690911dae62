"""Heads over many classes: on the CPU in chunks, dense, sampled, and pytorch-metric-learning's; on a GPU up to 29 million.

    python -m benchmarks.classes                            10,000 to 100,000 classes; writes results/classes-cpu.json
    python -m benchmarks.classes --device cuda              training steps of 1, 10 and 29 million classes, with and without
                                                            a ResNet-50 (`benchmarks.class_steps`); writes
                                                            results/classes-cuda.json row by row, continues if run again
    python -m benchmarks.classes --device cuda --minutes 5  starts no row after five minutes
    python -m benchmarks.classes --page [--device cuda]     writes the table of docs/many-classes.md again
    python -m benchmarks.classes --quick                    a smoke test of both; prints, and writes nothing

On the CPU a step is the loss of a batch and all gradients.  All sides of a row take turns in one process, so that what
else the machine does hits all of them; a ratio is the median over rounds of two times of one round.  Peaks of memory are
those of fresh processes, beyond what is there once the proxies and the libraries are.  Values must agree before anything
is timed.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from typing import Any

import torch
from torch import nn

from benchmarks import class_steps
from benchmarks.harness import (
    DOCS,
    MIB,
    RESULTS,
    fill,
    high_water,
    machine,
    make_parser,
    result_path,
    run_in_child,
    table,
    versions,
    write,
)
from likewise import losses as ours

PAGE = DOCS / "many-classes.md"
HEADS = ("ArcFaceLoss", "NormalizedSoftmaxLoss", "ProxyAnchorLoss")
SHARE = 0.1
Row = dict[str, Any]


def side(head: str, name: str, classes: int, dim: int) -> nn.Module | None:
    """One side of a row; ``None`` where there is none."""
    if name == "pytorch-metric-learning":
        from pytorch_metric_learning import losses as theirs

        made: nn.Module = getattr(theirs, head)(classes, dim)
        return made
    if name == "sampled":
        kind = getattr(ours, head)
        return None if kind.compares_all else kind(classes, dim, backend="chunked", sampled=SHARE, sparse=True)
    return getattr(ours, head)(classes, dim, backend=name)


def sides(head: str, classes: int, dim: int) -> dict[str, nn.Module]:
    """All sides of a row, with the same proxies."""
    names = ("chunked", "dense", "pytorch-metric-learning", "sampled")
    made = {name: loss for name in names if (loss := side(head, name, classes, dim)) is not None}
    start = next(iter(made["chunked"].parameters())).detach()
    with torch.no_grad():
        for loss in made.values():
            for parameter in loss.parameters():
                parameter.copy_(start if parameter.shape == start.shape else start.T)
    return made


def batch(size: int, classes: int, dim: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(size, dim, generator=generator), torch.randint(0, classes, (size,), generator=generator)


def step(loss: nn.Module, embeddings: torch.Tensor, labels: torch.Tensor) -> float:
    for parameter in loss.parameters():
        parameter.grad = None
    value = loss(embeddings.clone().requires_grad_(), labels)
    value.backward()
    return float(value.detach())


def timed(loss: nn.Module, embeddings: torch.Tensor, labels: torch.Tensor) -> float:
    begin = time.perf_counter()
    step(loss, embeddings, labels)
    return time.perf_counter() - begin


def measure(head: str, classes: int, options: argparse.Namespace) -> Row:
    torch.manual_seed(0)
    embeddings, labels = batch(options.batch, classes, options.dim)
    losses = sides(head, classes, options.dim)
    values = {name: step(loss, embeddings, labels) for name, loss in losses.items()}
    for name, value in values.items():
        if name != "sampled" and abs(value - values["dense"]) > 1e-4 * abs(values["dense"]):
            raise AssertionError(f"{head}, {classes} classes: {name} says {value}, dense {values['dense']}")
    rounds = [{name: timed(loss, embeddings, labels) for name, loss in losses.items()} for _ in range(options.rounds)]
    ratio = {
        name: round(statistics.median(each[name] / each["chunked"] for each in rounds), 2)
        for name in losses
        if name != "chunked"
    }
    peaks = {name: run_in_child(peak, head, name, classes, options.batch, options.dim) for name in losses}
    return {"head": head, "classes": classes, "times_of_chunked": ratio, "peak_mib": peaks}


def peak(head: str, name: str, classes: int, size: int, dim: int) -> float:
    """MiB of a step beyond the proxies."""
    small = side(head, name, 16 * size, dim)
    assert small is not None
    step(small, *batch(size, 16 * size, dim))  # libraries are loaded
    loss = side(head, name, classes, dim)
    assert loss is not None
    before = high_water(forget=True)
    step(loss, *batch(size, classes, dim))
    return round((high_water() - before) / MIB, 1)


def block(rows: list[dict[str, Any]]) -> str:
    """Times in multiples of the chunked one's, and memory."""
    sides = ("dense", "pytorch-metric-learning", "sampled")
    head = ["head", "classes", "time: dense", *sides[1:], "memory: chunked", *sides]
    lines = []
    for row in rows:
        times = [f"{row['times_of_chunked'][side]:.2f}" if side in row["times_of_chunked"] else "–" for side in sides]
        peaks = [f"{row['peak_mib'][side]:,.0f}" if side in row["peak_mib"] else "–" for side in ("chunked", *sides)]
        lines.append([row["head"], f"{row['classes']:,}", *times, *peaks])
    return table(head, lines)


def show(report: dict[str, Any]) -> None:
    """Fill the page."""
    machine, arguments = report["machine"], report["arguments"]
    words = (
        f"{machine['cpu']}, {machine['threads']} threads; {arguments['batch']} samples of {arguments['dim']} dimensions, "
        f"torch {machine['torch']}, pytorch-metric-learning {machine['pytorch-metric-learning']}."
    )
    fill(PAGE, {"classes-machine": words, "classes-table": block(report["rows"])})


def main() -> None:
    parser = make_parser(__doc__, device=True, quick="2,000 classes, two rounds", out="classes")
    parser.add_argument("--classes", type=int, nargs="+", default=[10_000, 50_000, 100_000])
    parser.add_argument("--batch", type=int, help="by default 256 on the CPU and 1,024, as Partial FC, on a GPU")
    parser.add_argument("--minutes", type=float, default=20.0, help="on a GPU: start no row afterwards")
    parser.add_argument("--any-code", action="store_true", help="on a GPU: keep rows of other code; each says which")
    parser.add_argument("--dim", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--page", action="store_true", help="fill the page from what was measured before")
    options = parser.parse_args()
    on_gpu = options.device != "cpu"
    options.batch = options.batch or (1024 if on_gpu else 256)
    if options.page:
        report = json.loads((RESULTS / f"classes-{'cuda' if on_gpu else 'cpu'}.json").read_text())
        if on_gpu:
            fill(PAGE, {"classes-gpu": class_steps.describe(report)})
        else:
            show(report)
        return
    if on_gpu or options.quick:
        class_steps.run(options, result_path("classes", options))
    if on_gpu:
        return
    torch.set_num_threads(options.threads)
    if options.quick:
        options.classes, options.rounds, options.batch = [2000], 2, 64
    rows = []
    for head in HEADS:
        for classes in options.classes:
            rows.append(measure(head, classes, options))
            print(rows[-1], flush=True)
    if not options.quick:
        described = {**machine("cpu"), **versions("torch", "pytorch-metric-learning", "likewise")}
        described["threads"] = options.threads
        arguments = {name: getattr(options, name) for name in ("classes", "batch", "dim", "rounds")}
        report = {"machine": described, "arguments": {**arguments, "share": SHARE}, "rows": rows}
        write(report, result_path("classes", options))
        show(report)


if __name__ == "__main__":
    main()
