"""``likewise demo``: train a few losses on drawn characters and measure them on unseen ones."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from likewise.app import DemoTraining, run_demo
from likewise.cli.arguments import Arguments
from likewise.cli.screen import bold, columns
from likewise.metrics import Interval

CHARACTERS = "719 characters for training, 143 for model selection, 576 sealed until the end"


def run(words: Sequence[str]) -> int:
    """Draw, train, choose, open the test set, report.

    Examples:
        >>> run(["--epochs", "few"])
        Traceback (most recent call last):
        likewise.app.errors.UserError: argument --epochs: invalid int value: 'few'
    """
    parser = Arguments("demo", "Train a few losses on drawn characters; no data needed.")
    parser.add_argument("--out", type=Path, default=Path("runs/demo"), help="where the runs go (default: runs/demo)")
    parser.add_argument("--epochs", type=int, default=4, help="per loss, of 100 batches each (default: 4)")
    parser.add_argument("--images-per-class", type=int, default=24, help="images per character (default: 24)")
    parser.add_argument("--seed", type=int, default=0, help="random seed (default: 0)")
    options = parser.parse_args(words)
    begin = time.monotonic()
    print(bold("likewise demo: train on some characters, then retrieve others that were never seen"))
    print(f"  {CHARACTERS}", flush=True)
    demo = run_demo(
        options.out,
        epochs=options.epochs,
        images_per_class=options.images_per_class,
        seed=options.seed,
        on_trained=_print_training,
        on_test=_print_choice,
    )
    print(bold("\non unseen characters, in percent, with 95% intervals"))
    rows = [(name, _percent(found["R@1"]), _percent(found["MAP@R"])) for name, found in demo.scores.items()]
    print(columns([("", "R@1", "MAP@R"), *rows]))
    print(f"\nthe report, for a browser: {demo.page}")
    print(f"the model: {demo.best.run.folder / 'best.safetensors'}")
    print(f"\n{time.monotonic() - begin:.0f} s. Next: likewise train --data ImageFolder --data.root YOUR_PHOTOS")
    return 0


def _print_training(training: DemoTraining) -> None:
    scores = ", ".join(f"{name} {100 * training.validation[name]:.1f}" for name in ("R@1", "MAP@R"))
    print(f"  {training.name:<20}{training.seconds:5.0f} s   validation {scores}", flush=True)


def _print_choice(best: DemoTraining) -> None:
    print(
        f"\nbest on validation: {best.name}. Opening the sealed test set; the record of each run notes it.", flush=True
    )


def _percent(value: Interval) -> str:
    return f"{100 * value.mean:5.1f} ± {50 * (value.high - value.low):.1f}"
