"""What a look at the weights costs: the share of a training's time that `likewise.analysis.Recorder` takes.

    python -m benchmarks.recorder                  Glyphs as `likewise train` trains it; writes results/recorder-cpu.json
    python -m benchmarks.recorder --device cuda    the same on a GPU, where the steps are replayed as a CUDA graph
    python -m benchmarks.recorder --quick          a smoke test; prints, and writes nothing

One process, one model for each row; blocks of 50 steps with the recorder and without it take turns.  A block with it has one
look, before and after a step, as a training with `--lens.every 50` has.  `share` is the time of all looks over the time of
all blocks that have one; `blocks` is the median of the blocks with it over the median of those without it, less one,
which is the same seen from outside and as noisy as the machine.  On a CPU `computing` is the share of the time that its
cores worked, which other programs do not count in; a look that leaves a core idle takes a smaller share of that than of
the clock.  The bar is a share of 2 % of the clock.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from itertools import chain, islice, repeat
from pathlib import Path
from typing import Any

import torch

from benchmarks.harness import cores, machine, make_parser, result_path, versions, write
from likewise.app.build import make_pieces, this_machine
from likewise.app.configuration import parse_request
from likewise.app.layers import read_request
from likewise.train.groups import make_optimizer, parameter_groups
from likewise.train.lens import LensHook
from likewise.train.processes import make_accelerator
from likewise.train.step import Meter, RecordedStep, Step

EVERY = 50
BAR = 0.02
CASES = {
    "MultiSimilarityLoss": [],
    "MultiSimilarityLoss, beside ContrastiveLoss": ["--lens.compare_with", "ContrastiveLoss"],
    "ProxyAnchorLoss": ["--loss", "ProxyAnchorLoss"],
    "ContrastiveLoss, memory of 4,096": ["--loss", "ContrastiveLoss", "--memory.size", "4096"],
    "TripletLoss": ["--loss", "TripletLoss"],
    "MultiSimilarityLoss, batch of 512": ["--sampler.classes", "128"],
}
"""What is measured, and how `likewise train` is told."""

Row = dict[str, Any]
Times = tuple[float, float]
"""Seconds of the clock, and those that this process computed on all cores."""


class Bench:
    """A training, taken apart: batches without end, a step, and the looks at it."""

    def __init__(self, words: list[str], device: str) -> None:
        config = parse_request(read_request(["--data", "Glyphs", "--lens.every", str(EVERY), *words]))
        pieces = make_pieces(config, this_machine())
        accelerator = make_accelerator(pieces.settings, Path(tempfile.mkdtemp()), "cpu" if device == "cpu" else None)
        self.device = accelerator.device
        groups = parameter_groups(pieces.model, pieces.loss, pieces.optimizer)
        model, loss = pieces.model.to(self.device).train(), pieces.loss.to(self.device).train()
        optimizer = make_optimizer(groups, pieces.optimizer, capturable=device != "cpu")
        prepared = accelerator.prepare_optimizer(optimizer)
        step = Step(accelerator, model, loss, prepared, Meter(self.device), watch=device == "cpu")
        self.step: Step | RecordedStep = step if device == "cpu" else RecordedStep(step)
        self.batches = chain.from_iterable(repeat(pieces.data.train))
        self.looks = LensHook(pieces.lens, main=True)

    def wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def now(self) -> Times:
        self.wait()
        return time.perf_counter(), time.process_time()

    def block(self, *, looking: bool, steps: int) -> tuple[Times, Times]:
        """What so many steps took, and of it the look at the last of them."""
        spent, begin = (0.0, 0.0), self.now()
        for number, batch in enumerate(islice(self.batches, steps), 1):
            pair = batch[0].to(self.device), batch[1].to(self.device)
            look = looking and number == steps
            if look:
                before = self.now()
                self.looks.before(EVERY)
                spent = _since(before, self.now())
            embeddings = self.step([pair])
            if look:
                before = self.now()
                self.looks.after(embeddings, pair[1])
                spent = _sum([spent, _since(before, self.now())])
        return _since(begin, self.now()), spent


def _since(before: Times, now: Times) -> Times:
    return now[0] - before[0], now[1] - before[1]


def _sum(several: list[Times]) -> Times:
    return sum(each[0] for each in several), sum(each[1] for each in several)


def measure(name: str, words: list[str], options: argparse.Namespace) -> Row:
    bench = Bench(words, options.device)
    for looking in (True, False):  # what is only done once
        bench.block(looking=looking, steps=min(10, options.steps))
    found: dict[bool, list[tuple[Times, Times]]] = {True: [], False: []}
    for turn in range(options.turns):
        for looking in (True, False) if turn % 2 else (False, True):
            found[looking].append(bench.block(looking=looking, steps=options.steps))
    whole, looks = (_sum([times[which] for times in found[True]]) for which in (0, 1))
    seen, plain = (statistics.median(total[0] for total, _ in found[looking]) for looking in (True, False))
    row: Row = {
        "what": name,
        "step_ms": round(1e3 * plain / options.steps, 2),
        "look_ms": round(1e3 * statistics.median(spent[0] for _, spent in found[True]), 2),
        "share": round(looks[0] / whole[0], 5),
        "computing": round(looks[1] / whole[1], 5),
        "blocks": round(seen / plain - 1.0, 4),
    }
    print(
        f"{name:44} a step {row['step_ms']:7.2f} ms, a look {row['look_ms']:6.2f} ms: "
        f"{row['share']:.2%} of the time, {row['computing']:.2%} of the computing "
        f"({row['blocks']:+.2%} seen from outside)",
        flush=True,
    )
    return row


def main() -> None:
    """Measure, print, write down."""
    parser = make_parser(__doc__, device=True, quick="three steps", out="recorder")
    parser.add_argument("--turns", type=int, default=5, help="blocks of each kind, for each row")
    parser.add_argument("--threads", type=int, default=cores(), help="of a CPU; by default all cores")
    options = parser.parse_args()
    options.steps = 3 if options.quick else EVERY
    if options.device == "cpu":
        os.environ["ACCELERATE_USE_CPU"] = "1"
        torch.set_num_threads(options.threads)
    options.turns = 1 if options.quick else options.turns
    report: Row = {
        "machine": {**machine(options.device), "threads": options.threads, **versions("torch", "likewise")},
        "data": "Glyphs",
        "every": EVERY,
        "turns": options.turns,
        "bar": BAR,
        "rows": [measure(name, words, options) for name, words in CASES.items()],
    }
    worst = max(row["share"] for row in report["rows"])
    if options.quick:
        return
    print(f"at most {worst:.2%} of the time; the bar is {BAR:.0%}")
    write(report, result_path("recorder", options))
    if worst >= BAR:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
