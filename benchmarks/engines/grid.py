"""likewise against pytorch-metric-learning: every loss that both have, by batch size and precision, in one process.

    python -m benchmarks.engines.grid --device cuda --minutes 9     measures what is missing; run it again to continue
    python -m benchmarks.engines.grid --device cuda --list slower   prints the cells in which likewise is slower
    python -m benchmarks.engines.grid --page                        fills the table of docs/benchmarks-engines.md
    python -m benchmarks.engines.grid --quick                       a smoke test on the CPU that writes nothing

A cell is the median time of one eager call, forward and backward, synchronized, after the calls that compile kernels and
capture graphs.  The two libraries take turns.  likewise is slower in a cell if it takes over 5% and over 0.05 ms longer in two
runs; a cell that is slower in its first run is measured a second time.  A library that runs out of memory has lost the cell.

Four precisions: float32 with exact products (``highest``), float32 with TF32 (``high``), bfloat16 embeddings and proxies, and
``mixed``: bfloat16 embeddings and float32 proxies under autocast.  Up to B = 2,048 each cell has the relative errors of the
gradients against float64 on the operands that were passed in.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.engines.journal import compared, heading
from benchmarks.engines.rows import configure, distance, products, reason
from benchmarks.harness import (
    DOCS,
    Step,
    fill,
    fingerprint,
    make_parser,
    number,
    out_of_memory,
    read,
    relative,
    result_path,
    table,
    take_turns,
)
from benchmarks.harness.pairings import HEADS, PAIRINGS, Call, Pairing, find, make_batch
from benchmarks.harness.results import Journal, name_of
from likewise.engines import graphs

Row = dict[str, Any]

SIZES = (128, 2048, 8192, 32768, 512, 131072, 32)
"""Batch sizes, the most important first."""

PRECISIONS = ("mixed", "highest", "high", "bf16")
TITLES = {
    "mixed": "Mixed: bfloat16 embeddings, float32 proxies, autocast",
    "highest": "float32, exact products",
    "high": "float32, TF32 products",
    "bf16": "bfloat16 embeddings and proxies",
}
HEAD_NAMES = tuple(head.name for head in HEADS)
NAMES = tuple(each.name for each in (*PAIRINGS, *HEADS) if each.theirs is not None)
CLASSES = 1000
"""The least number of classes of a head; large batches have a quarter as many classes as samples."""

DIM, SECONDS = 512, 0.1
WARM = graphs.AFTER + 2
"""Calls before the first timed one: compiled, captured, replayed."""

COMPILED_SIZE = 8192
"""The batch size for which kernels are compiled ahead; larger batches use the same kernels."""

LONG = 0.1
"""Seconds from which one call after the first is enough."""

GRADIENTS = 2048
"""The largest batch whose gradients are compared with float64."""

COMPILERS = os.cpu_count() or 1
"""Processes that compile kernels ahead."""

LATE = ("Margin + distance weighted",)
"""Losses that are measured last: one call of theirs takes 49 seconds at 32,768 samples."""

HURRIED = 2.0
"""Seconds from which the first call is the measurement: what it compiles is a small part of it."""


def main() -> None:
    """Measure, list or fill in."""
    parser = make_parser(__doc__, device=True, quick="two losses on small batches", out="grid")
    parser.add_argument("--minutes", type=float, default=9.0, help="stop before the first cell after this time")
    parser.add_argument("--sizes", type=int, nargs="*", help="batch sizes; all without it")
    parser.add_argument("--losses", nargs="*", default=NAMES, help="names of losses; all without it")
    parser.add_argument("--precisions", nargs="*", choices=PRECISIONS, default=PRECISIONS)
    parser.add_argument("--list", choices=("slower", "all"), help="print cells and measure nothing")
    parser.add_argument("--page", action="store_true", help="fill the page and measure nothing")
    parser.add_argument(
        "--compiled", action="store_true", help="kernels are compiled already: do not compile them ahead"
    )
    parser.add_argument("--compile", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.quick:
        options.losses, options.sizes = ("Contrastive", "ArcFace"), options.sizes or (32,)
    if options.compile is not None:
        compile_ahead(options)
        return
    if options.page or options.list:
        show(options)
        return
    measure_missing(options)


def cells(options: argparse.Namespace) -> list[Row]:
    """The cells that are asked for, the most important first."""
    every = itertools.product(options.sizes or SIZES, options.precisions, options.losses)
    return [{"loss": loss, "size": size, "precision": precision} for size, precision, loss in every]


def measure_missing(options: argparse.Namespace) -> None:
    """Measure cells until the time is over: those that were slower, then those without a result, then those of other code."""
    until = time.monotonic() + 60 * options.minutes
    dim, seconds = (16, 0.0) if options.quick else (DIM, SECONDS)
    path = result_path("grid", options)
    journal = Journal(path, heading(options.device, dim, seconds, options.quick), compared)
    if path is not None:
        journal.take(path, lambda row: True)
    if options.device != "cpu" and not options.compiled:
        start_compilers()
    slower = {name for name, row in journal.rows.items() if is_slower(row)}
    known = {name: row["code"] for name, row in journal.rows.items()}
    wanted = [key for key in cells(options) if known.get(name_of(key)) != fingerprint()]
    for key in sorted(wanted, key=lambda key: (name_of(key) not in slower, name_of(key) in known, key["loss"] in LATE)):
        if time.monotonic() > until:
            break
        row = measure_cell(key, options.device, dim, seconds)
        journal.add(key, fingerprint(), row)
        print(describe({"key": key, **row}), flush=True)
    rows = list(journal.rows.values())
    print(f"{len(rows)} cells, {sum(map(is_slower, rows))} slower")


# ------------------------------------------------------------------------------------------------ one cell


def measure_cell(key: Row, device: str, dim: int, seconds: float) -> Row:
    """Both sides of a cell; twice if ours is slower."""
    runs = [measure_once(key, device, dim, seconds)]
    if is_slower({"runs": runs}):
        runs.append(measure_once(key, device, dim, seconds))
    row: Row = {"runs": runs}
    if key["size"] <= GRADIENTS and device != "cpu":
        row["errors"] = attempt(lambda: gradient_errors(key, device, dim))
    return row


def measure_once(key: Row, device: str, dim: int, seconds: float) -> Row:
    """Times in ms, or why there is none; and how far the two values are apart."""
    graphs.clear()
    embeddings, labels = make_batch(key["size"], dim, device)
    steps: dict[str, Step] = {}
    found: Row = {}
    with setting(key):
        for side in ("ours", "theirs"):
            try:
                step = make_step(key, side, embeddings, labels, device)
                first = step()  # compiles
                again = first if first > HURRIED and side == "theirs" else step()
                if again < LONG:
                    for _ in range(WARM if side == "ours" else 1):
                        step()
                    steps[side] = step
                else:
                    found[f"{side}_ms"] = round(1e3 * again, 3)
                found[f"{side}_value"] = step.value
            except Exception as error:
                found[f"{side}_why"] = "out of memory" if out_of_memory(error) else reason(error)
                step = None  # type: ignore[assignment]
                if device != "cpu":
                    torch.cuda.empty_cache()
        try:
            taken = take_turns(steps, seconds)
            found |= {f"{side}_ms": one["median_ms"] for side, one in taken.items()}
        except Exception as error:
            if not out_of_memory(error):
                raise
            found |= {f"{side}_why": "out of memory beside the other" for side in steps}  # which one is not known
    if "ours_value" in found and "theirs_value" in found:
        found["difference"] = relative(found["ours_value"], found["theirs_value"])
    return found


@contextlib.contextmanager
def setting(key: Row) -> Iterator[None]:
    """How float32 matrices are multiplied."""
    with products(key["precision"] if key["precision"] in ("high", "highest") else "highest"):
        yield


class Autocast(nn.Module):
    """A call under autocast, entered once per call as in a training loop: its cache of casts lives no longer."""

    def __init__(self, call: Call, kind: str) -> None:
        super().__init__()
        self.call, self.kind = call, kind

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        with torch.autocast(self.kind, torch.bfloat16):
            return self.call(embeddings, labels)


def make_step(key: Row, side: str, embeddings: Tensor, labels: Tensor, device: str) -> Step:
    """One side of a cell on its batch."""
    call = pairing_of(key, embeddings.shape[1]).call(side, device)
    half = key["precision"] in ("mixed", "bf16")
    if key["precision"] == "bf16" and isinstance(call, nn.Module):
        call = call.to(torch.bfloat16)
    if key["precision"] == "mixed":
        call = Autocast(call, device.split(":")[0])
    return Step(call, embeddings.to(torch.bfloat16) if half else embeddings, labels)


def pairing_of(key: Row, dim: int) -> Pairing:
    return find(key["loss"], dim, max(key["size"] // 4, CLASSES))


def gradient_errors(key: Row, device: str, dim: int) -> Row:
    """How far the gradients of each side are from our dense engine's in float64, on the operands that were passed in."""
    embeddings, labels = make_batch(key["size"], dim, device)
    if "distance weighted" in key["loss"] or not pairing_of(key, dim).same_problem:
        return {}
    with setting(key):
        steps = {side: make_step(key, side, embeddings, labels, device) for side in ("ours", "theirs")}
    ours = steps["ours"]
    exact = configure(pairing_of(key, dim).ours().to(device).double(), backend="dense")
    state = {name.removeprefix("call."): each.double() for name, each in ours.call.state_dict().items()}
    exact.load_state_dict(state)
    truth = Step(exact, ours.embeddings.detach().double(), labels)
    truth()
    found: Row = {}
    for side, step in steps.items():
        with setting(key):
            found[side] = attempt(lambda step=step: {"error": gradient_error(step, truth)})  # type: ignore[misc]
    return found


def gradient_error(step: Step, truth: Step) -> float:
    """The largest relative error among the gradients."""
    step()
    pairs = zip([leaf.grad for leaf in step.leaves], [leaf.grad for leaf in truth.leaves], strict=False)
    known = [(g, t) for g, t in pairs if g is not None and t is not None]
    return max(distance((g if g.shape == t.shape else g.T).double(), t) for g, t in known)


def attempt(task: Any) -> Row:
    """What a task returns, or why it failed."""
    try:
        return dict(task())
    except Exception as error:
        return {"why": reason(error)}


# ------------------------------------------------------------------------------------------------ compiling ahead


def start_compilers() -> None:
    """Compile every kernel in several processes, so that the measuring process finds them on disk."""
    command = [sys.executable, "-m", "benchmarks.engines.grid", *sys.argv[1:]]
    environment = {**os.environ, "LIKEWISE_BENCHMARK_CODE": fingerprint(), "OMP_NUM_THREADS": "1"}
    workers = [
        subprocess.Popen([*command, "--compile", str(place)], env=environment, stderr=subprocess.DEVNULL)
        for place in range(COMPILERS)
    ]
    begin = time.monotonic()
    for worker in workers:
        worker.wait()
    print(f"compiled ahead in {time.monotonic() - begin:.0f} s", flush=True)


def compile_ahead(options: argparse.Namespace) -> None:
    """Call each of our losses, a share of the losses and precisions, at the size from which kernels are the same."""
    asked = [
        (name, each)
        for name, each in itertools.product(options.losses, options.precisions)
        if each != "bf16" or name in HEAD_NAMES or "mixed" not in options.precisions  # the same kernels
    ]
    for loss, precision in asked[options.compile :: COMPILERS]:
        key = {"loss": loss, "size": COMPILED_SIZE, "precision": precision}
        embeddings, labels = make_batch(COMPILED_SIZE, DIM, options.device)
        with contextlib.suppress(Exception), setting(key):
            step = make_step(key, "ours", embeddings, labels, options.device)
            for _ in range(WARM):
                step()


# ------------------------------------------------------------------------------------------------ reading


def is_slower(row: Row) -> bool:
    """Whether ours takes over 5% and over 0.05 ms longer in every run."""
    return all(_slower_once(run) for run in row["runs"])


def solves_same(row: Row) -> bool:
    """Whether both libraries compare the same pairs in a cell."""
    return pairing_of(row["key"], DIM).same_problem


def _slower_once(run: Row) -> bool:
    if "ours_ms" not in run:
        return "theirs_ms" in run
    return "theirs_ms" in run and run["ours_ms"] > max(1.05 * run["theirs_ms"], run["theirs_ms"] + 0.05)


def best_of(row: Row) -> Row:
    """The run with the smaller ratio of our time to theirs."""
    return min(row["runs"], key=lambda run: run.get("ours_ms", float("inf")) / run.get("theirs_ms", float("inf")))


def describe(row: Row) -> str:
    """A cell in one line."""
    key, run = row["key"], best_of(row)
    sides = [str(run.get(f"{side}_ms", run.get(f"{side}_why", "?"))) for side in ("ours", "theirs")]
    errors = " ".join(
        f"{one.get('error', float('nan')):.0e}" for one in row.get("errors", {}).values() if isinstance(one, dict)
    )
    mark = "SLOWER" if is_slower(row) else ""
    return f"{key['loss']:28} {key['size']:>7} {key['precision']:8} {sides[0]:>10} {sides[1]:>14} {errors} {mark}"


def show(options: argparse.Namespace) -> None:
    """Print cells, or fill the page, which is that of the GPU."""
    options.device = "cuda" if options.page else options.device
    path = result_path("grid", options)
    report = read(path) if path is not None else None
    if report is None:
        raise SystemExit(f"there are no results yet: run python -m benchmarks.engines.grid --device {options.device}")
    if options.page:
        fill(DOCS / "benchmarks-engines.md", {"engines-grid": page(report)})
        return
    for row in report["rows"]:
        if options.list == "all" or is_slower(row):
            print(describe(row))


def page(report: Row) -> str:
    """What the page shows: how many cells are faster, those that are not, and a table for each precision."""
    rows = report["rows"]
    slower, to_smaller = (
        [row for row in rows if is_slower(row) and solves_same(row) is same] for same in (True, False)
    )
    codes = len({row["code"] for row in rows})
    machine = report["machine"]
    parts = [
        f"{len(rows):,} of {len(SIZES) * len(PRECISIONS) * len(NAMES):,} cells are measured; likewise is slower in "
        + (f"{len(slower)}: " + "; ".join(map(_name_cell, slower)) + "." if slower else "none of them.")
        + (
            f" Where theirs solves a smaller problem, it takes less time in: {'; '.join(map(_name_cell, to_smaller))}; their N-pairs "
            "loss compares one pair of each class, as ours does in the row with one pair per class."
            if to_smaller
            else ""
        )
        + f" {machine['device']}, torch {machine['torch']}, triton {machine['triton']}, pytorch-metric-learning "
        f"{machine['pytorch-metric-learning']}, {DIM} dimensions, four samples per class, heads with a quarter as many classes as "
        f"samples and at least {CLASSES:,}"
        + (f"; rows come from {codes} states of the code" if codes > 1 else "")
        + " (`benchmarks/results/grid-cuda.json`). A cell in which likewise is slower is measured a second time, and the tables show "
        "its more favorable run; cells in which likewise is faster are measured once."
    ]
    by_key = {(row["key"]["loss"], row["key"]["size"], row["key"]["precision"]): row for row in rows}
    for precision in PRECISIONS:
        head = ["ms, likewise / theirs", *(f"{size:,}" for size in sorted(SIZES))]
        lines = [
            [name, *(_cell(by_key.get((name, size, precision))) for size in sorted(SIZES))]
            for name in NAMES
            if any((name, size, precision) in by_key for size in SIZES)
        ]
        parts.append(f'??? note "{TITLES[precision]}"\n\n' + _indent(table(head, lines)))
    return "\n\n".join(parts)


def _indent(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())


def _name_cell(row: Row) -> str:
    key, run = row["key"], best_of(row)
    ours = number(run["ours_ms"]) if "ours_ms" in run else run["ours_why"]
    return f"{key['loss']} at {key['size']:,}, {key['precision']} ({ours} against {number(run['theirs_ms'])} ms)"


def _cell(row: Row | None) -> str:
    if row is None:
        return ""
    run = best_of(row)
    short = {"out of memory": "oom", "out of memory beside the other": "oom"}
    sides = [
        number(run[f"{side}_ms"]) if f"{side}_ms" in run else short.get(run.get(f"{side}_why", ""), "–")
        for side in ("ours", "theirs")
    ]
    text = " / ".join(sides)
    return f"**{text}**" if is_slower(row) else text


if __name__ == "__main__":
    main()
