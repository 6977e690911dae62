"""What do unlabeled images add?  Glyphs with 0, 5, 20 and 100% of the labels: labeled images only, views, pseudo-labels.

    python -m benchmarks.semi_supervised --page

Everything else is the same: network, loss (NT-Xent), batches of 32 x 4, number of steps.  The metric is R@1 and MAP@R on
validation characters, which no training has seen, of the model after the last epoch; --seeds 3 adds the range over seeds.  Unlabeled images are four
views each, or clusters of k-means that are renewed before every epoch, as many as there are classes.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.harness import DOCS, RESULTS, fill, machine, make_parser, table, versions, write
from likewise import app

RESULT = RESULTS / "semi-supervised-cpu.json"
SHARES = (0.0, 0.05, 0.2, 1.0)
METHODS = ("labeled only", "views", "pseudo-labels")
IMAGES, CLASSES = 8, 719


def settings(share: float, method: str) -> dict[str, Any] | None:
    """The batches of a method; ``None`` where it has nothing to learn from, or nothing of its own."""
    if method == "labeled only":
        return None if share == 0.0 else {"sampler.labeled": share, "sampler.labeled_classes": 32}
    if share == 1.0:
        return None
    clusters = {"sampler.clusters": CLASSES} if method == "pseudo-labels" else {}
    return {"sampler.labeled": share, **clusters}


def measure(share: float, method: str, seed: int, epochs: int, steps: int, folder: Path) -> dict[str, Any] | None:
    """Train once; the metrics on validation characters, and the seconds."""
    chosen = settings(share, method)
    if chosen is None:
        return None
    common = {
        "data": "Glyphs",
        "data.images_per_class": IMAGES,
        "loss": "NTXentLoss",
        "sampler": "SemiSupervisedSampler",
        "sampler.steps": steps,
        "train.epochs": epochs,
        "train.validate_every": epochs,
        "seed": seed,
    }
    begin = time.monotonic()
    run = app.train(app.configure(common | chosen), folder / f"{method}-{share}-{seed}")
    first, last = run.metrics("val")[0], run.metrics("val")[-1]
    print(f"{method}, {share:.0%} of the labels, seed {seed}: R@1 {last['R@1']:.3f}", flush=True)
    return {
        "share": share,
        "method": method,
        "seed": seed,
        "R@1": last["R@1"],
        "MAP@R": last["MAP@R"],
        "R@1 before": first["R@1"],
        "seconds": round(time.monotonic() - begin, 1),
    }


def rows(found: list[dict[str, Any]]) -> list[list[str]]:
    """A row for each share, a column for each method: mean R@1 and the range over seeds."""
    made = []
    for share in SHARES:
        cells = [f"{share:.0%}"]
        for method in METHODS:
            values = [100 * each["R@1"] for each in found if (each["share"], each["method"]) == (share, method)]
            spread = f" ({min(values):.1f} to {max(values):.1f})" if len(values) > 1 else ""
            cells.append(f"{statistics.mean(values):.1f}{spread}" if values else "–")
        made.append(cells)
    return made


def main() -> None:
    parser = make_parser(__doc__, quick="two steps")
    parser.add_argument("--page", action="store_true", help="fill the table of docs/samplers.md from the results")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--steps", type=int, default=30, help="of an epoch")
    options = parser.parse_args()
    found: list[dict[str, Any]] = []
    report = {
        "machine": machine("cpu"),
        "versions": versions("torch"),
        "epochs": options.epochs,
        "steps": options.steps,
    }
    epochs, steps = (1, 2) if options.quick else (options.epochs, options.steps)
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(options.seeds):
            for share in SHARES[-1:] if options.quick else SHARES:
                for method in METHODS:
                    result = measure(share, method, seed, epochs, steps, Path(folder))
                    found += [] if result is None else [result]
                    write({**report, "results": found}, None if options.quick else RESULT)
    if options.page and not options.quick:
        head = ["labels", "labeled images only", "and views", "and pseudo-labels"]
        fill(DOCS / "samplers.md", {"semi-supervised": table(head, rows(found))})


if __name__ == "__main__":
    main()
