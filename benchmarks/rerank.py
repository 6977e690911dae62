"""What re-ranking and test-time views gain and cost: a small network on characters that it has not seen.

python -m benchmarks.rerank                         about five minutes on one core; writes benchmarks/results/rerank.json and
                                         the table of docs/look-alikes-rerank.md
python -m benchmarks.rerank --page                  writes the table again
python -m benchmarks.rerank --choose                one network, more settings, on the validation characters; prints
python -m benchmarks.rerank --epochs 1 --seeds 1    prints, and writes nothing

A network is trained on Glyphs' training characters.  Of every test character half of the images are the collection and
some of the others are queries, so that no query is in the collection.  Options have their defaults; where a row names
others, `--choose` found them on the validation characters.  Times are the best of three: other programs run, too.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import mean, stdev
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from benchmarks.harness import DOCS, RESULTS, fill, machine, make_parser, number, versions, write
from likewise.data import Glyphs, PerClassSampler
from likewise.losses import MultiSimilarityLoss
from likewise.metrics import retrieval
from likewise.search.encoder import Encoder
from likewise.search.index import Index
from likewise.search.matches import Matches, Rerank
from likewise.search.rerank import KReciprocal, QueryExpansion
from likewise.train import Data, OptimizerConfig, TrainConfig, train
from likewise.trunks import Embedder

RESULT = RESULTS / "rerank.json"
PAGE = DOCS / "look-alikes-rerank.md"
EPOCHS, STEPS, SEEDS, QUERIES = 6, 100, 3, 1000

Row = dict[str, Any]


@dataclass(frozen=True)
class Option:
    """One line of the table."""

    name: str
    rerank: Rerank | None = None
    flips: bool = False
    crops: int = 1


OPTIONS = (
    Option("plain"),
    Option("query expansion", QueryExpansion()),
    Option("query expansion, top 2", QueryExpansion(top=2)),
    Option("k-reciprocal", KReciprocal()),
    Option("k-reciprocal, 12, 3, 0.6", KReciprocal(k1=12, k2=3, weight=0.6)),
    Option("5 crops", crops=5),
    Option("mirrored, too", flips=True),
    Option("5 crops, mirrored, too", flips=True, crops=5),
    Option("5 crops and k-reciprocal", KReciprocal(), crops=5),
)

CHOICES = (
    *(Option(f"query expansion, top {top}", QueryExpansion(top=top)) for top in (2, 3, 5, 10)),
    *(
        Option(f"k-reciprocal, {k1}, {k2}, {weight}", KReciprocal(k1=k1, k2=k2, weight=weight))
        for k1, k2 in ((12, 3), (20, 6))
        for weight in (0.1, 0.3, 0.6)
    ),
)
"""What `--choose` looks at."""


def main() -> None:
    """Train, measure, write."""
    parser = make_parser(__doc__)
    parser.add_argument("--epochs", type=int, default=EPOCHS, help=f"of {STEPS} batches")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--page", action="store_true", help="fill the page from what was measured before")
    parser.add_argument("--choose", action="store_true", help="more settings, on the validation characters")
    options = parser.parse_args()
    if options.choose:
        measured(0, options.epochs, "val", (OPTIONS[0], *CHOICES))
        return
    if not options.page:
        described = {**machine("cpu"), "threads": torch.get_num_threads(), **versions("torch", "numpy")}
        report: Row = {"machine": described, "epochs": options.epochs, "queries": QUERIES, "rows": []}
        for seed in range(options.seeds):
            report["rows"] += measured(seed, options.epochs)
        if (options.epochs, options.seeds) != (EPOCHS, SEEDS):
            return
        write(report, RESULT)
    fill(PAGE, {"rerank": table(json.loads(RESULT.read_text()))})


class Batches:
    """Preprocessed batches of 32 characters, four images each."""

    def __init__(self, glyphs: Glyphs, model: Embedder, seed: int) -> None:
        assert model.preprocessing is not None
        self.images, self.labels = model.preprocessing(glyphs.pixels()), glyphs.labels
        self.sampler = PerClassSampler(glyphs.labels, classes=32, per_class=4, steps=STEPS, seed=seed)

    def __len__(self) -> int:
        return STEPS

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        for batch in self.sampler:
            yield self.images[batch], self.labels[batch]


def measured(seed: int, epochs: int, part: str = "test", choices: Sequence[Option] = OPTIONS) -> list[Row]:
    """One network, and every option on it."""
    torch.manual_seed(seed)
    model = Embedder("convnet", 64)
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        train(
            model,
            MultiSimilarityLoss(),
            Data(Batches(Glyphs("train"), model, seed)),
            folder=f"{folder}/run",
            optimizer=OptimizerConfig("AdamW", lr=2e-3),
            settings=TrainConfig(epochs=epochs),
            seed=seed,
        )
        print(f"seed {seed}: trained in {time.perf_counter() - begin:.0f} s", flush=True)
        encoder = Encoder(model, transform="glyphs", device="cpu")
        places = (f"{folder}/{place}.index" for place in range(len(choices)))
        return [measure(option, encoder, seed, place, part) for option, place in zip(choices, places, strict=True)]


def measure(option: Option, encoder: Encoder, seed: int, folder: str, part: str) -> Row:
    """R@1, MAP@R and milliseconds for one option."""
    glyphs = Glyphs(part)
    labels, pixels = glyphs.labels.numpy(), glyphs.pixels()[:, 0].numpy()
    number_in_class = np.concatenate([np.arange(count) for count in np.bincount(labels)])
    half = number_in_class < np.bincount(labels)[labels] // 2
    chance = np.random.default_rng(seed)
    others = np.flatnonzero(~half)
    asked = chance.choice(others, min(QUERIES, len(others)), replace=False)
    kept = np.flatnonzero(half)

    def embed(rows: NDArray[np.int64]) -> NDArray[np.float32]:
        return encoder.embed([Image.fromarray(pixels[row]) for row in rows], flips=option.flips, crops=option.crops)

    index = Index.create(folder, dim=encoder.dim)
    index.add(embed(kept), [str(row) for row in kept])
    wanted = int(np.bincount(labels[kept]).max())
    embed(asked[:50])  # nothing starts up inside the measurement
    queries, embedding = best_of(3, lambda: embed(asked))
    found, searching = best_of(3, lambda: index.search(queries, wanted, rerank=option.rerank))
    row = {
        "what": option.name,
        "seed": seed,
        **scores(found, labels[kept], labels[asked]),
        "embedding ms": 1000.0 * embedding / len(asked),
        "search ms": 1000.0 * searching / len(asked),
    }
    if option.rerank is None:  # what is counted here is what the library counts
        truth = retrieval(queries, labels[asked], index.vectors(), labels[kept])
        assert abs(truth["R@1"] - row["R@1"]) < 1e-3, (truth["R@1"], row["R@1"])
        assert abs(truth["MAP@R"] - row["MAP@R"]) < 1e-3
    shown = f"R@1 {row['R@1']:.3f}  MAP@R {row['MAP@R']:.3f}  {row['embedding ms']:.2f} + {row['search ms']:.2f} ms"
    print(f"{option.name:26} {shown}", flush=True)
    return row


def best_of(count: int, function: Callable[[], Any]) -> tuple[Any, float]:
    """What a function gives, and the least time that it took."""
    best = float("inf")
    for _ in range(count):
        begin = time.perf_counter()
        result = function()
        best = min(best, time.perf_counter() - begin)
    return result, best


def scores(found: Matches, owners: NDArray[np.int64], truth: NDArray[np.int64]) -> Row:
    """R@1 and MAP@R of what was found; numbers of items are rows of the collection."""
    right = owners[found.ids] == truth[:, None]
    positives = np.bincount(owners)[truth]
    counted = np.arange(right.shape[1]) < positives[:, None]
    precision = np.cumsum(right, axis=1) / np.arange(1, right.shape[1] + 1)
    average = (precision * right * counted).sum(axis=1) / positives
    return {"R@1": float(right[:, 0].mean()), "MAP@R": float(average.mean())}


def table(report: Row) -> str:
    """The page's table: means over seeds, and what each network gained over itself."""
    rows = report["rows"]
    plain = {row["seed"]: row for row in rows if row["what"] == "plain"}
    lines = [
        "| option | R@1 | gain | MAP@R | gain | embedding, ms | search, ms |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for option in OPTIONS:
        of = [row for row in rows if row["what"] == option.name]
        cells = []
        for name in ("R@1", "MAP@R"):
            gains = [100.0 * (row[name] - plain[row["seed"]][name]) for row in of]
            spread = f" ± {stdev(gains):.1f}" if len(gains) > 1 else ""
            cells += [f"{100.0 * mean(row[name] for row in of):.1f}"]
            cells += ["" if option.name == "plain" else f"{mean(gains):+.1f}{spread}"]
        costs = [number(mean(row[name] for row in of)) for name in ("embedding ms", "search ms")]
        name = option.name.replace("mirrored, too", "with flips")
        lines.append(f"| {' | '.join([name, *cells, *costs])} |")
    about = report["machine"]
    seeds = len(plain)
    lines += [
        "",
        f"Means over {seeds} networks in percent, ± the standard deviation of the gain; times are for one query.",
    ]
    lines[-1] += f" {about['cpu']}, {about['threads']} thread{'s' * (about['threads'] != 1)}."
    return "\n".join(lines)


if __name__ == "__main__":
    main()
