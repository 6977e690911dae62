"""Can birds of kinds that no training has seen be found by their names?  CUB-200-2011, EfficientNet-Lite0 and all-MiniLM-L6-v2.

    python -m benchmarks.text_search --data CUB --cache FOLDER --page

Both trunks are frozen and run once; two linear heads are trained on 100 kinds, with "a photo of a NAME" for a text.  Measured are
the other 100 kinds: names among images and images among names.  Halves are random ones, another one for each seed, or the
official ones, which are alphabetical: few words of one half are in the other.  The control has the names of the training kinds
shuffled.  Settings were chosen on 20 random kinds of the first 100, trained on the other 80.
"""

from __future__ import annotations

import tempfile
import time
from math import comb
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.harness import DOCS, RESULTS, fill, machine, make_parser, table, versions, write
from likewise.data import CUB200, TRANSFORMS, PairLoader, PairTable, PerClassSampler, RowLoader, cached
from likewise.losses import NTXentLoss
from likewise.metrics import bootstrap, retrieval
from likewise.train import Data, FeatureLoader, OptimizerConfig, TrainConfig, TwoSided, train
from likewise.trunks import Embedder, TwoTowers, build_text, prompts

RESULT = RESULTS / "text-search-cub.json"
KS = (1, 5, 10)
DIM, CLASSES, EPOCHS, LR = 256, 64, 3, 1e-3
WAYS = ("text to image", "image to text")
HALVES = ("random halves", "official halves")
METHODS = ("trained", "shuffled names")
MEASURES = (*(f"R@{k}" for k in KS), "mAP")


def make_towers(seed: int) -> TwoTowers:
    """Both networks, frozen, and two heads of random numbers."""
    torch.manual_seed(seed)
    return TwoTowers(
        Embedder("efficientnet_lite0", DIM, weights="imagenet", freeze="trunk", layer_norm=True),
        Embedder(build_text("minilm"), DIM, freeze="trunk", layer_norm=True),
    ).eval()


def compute_features(birds: CUB200, texts: list[str], cache: Path) -> tuple[Tensor, Tensor]:
    """What the heads see of all images and of all texts."""
    towers = make_towers(0)
    transform = TRANSFORMS["cub128"].using(towers.anchors.preprocessing)
    stored = cached(birds, cache, size=transform.cache)
    images = FeatureLoader(towers.anchors, stored, None, transform.test, cache=cache / "features").features()
    with torch.inference_mode():
        words = towers.references.features(towers.references.trunk.tokenize(texts)).clone()
    return images, words


def train_heads(pairs: PairTable, images: Tensor, words: Tensor, seed: int, epochs: int) -> TwoTowers:
    """Train the heads on the features of anchors and references, by the loop that trains any model."""
    model = make_towers(seed)
    assert pairs.is_query is not None
    sampler = PerClassSampler(pairs.row_labels, classes=CLASSES, per_class=1, seed=seed)
    sides = (
        RowLoader(images, pairs.labels[pairs.is_query], []),
        RowLoader(words, pairs.labels[~pairs.is_query], []),
    )
    with tempfile.TemporaryDirectory() as folder:
        train(
            model,
            TwoSided(NTXentLoss()),
            Data(PairLoader(pairs, sampler, *sides)),
            folder=Path(folder, "run"),
            settings=TrainConfig(epochs=epochs, validate_every=0, log_every=1000),
            optimizer=OptimizerConfig(lr=LR),
            seed=seed,
            device="cpu",
        )
    return model.eval()


def measure(
    model: TwoTowers, images: Tensor, labels: Tensor, words: Tensor, kinds: Tensor
) -> dict[str, dict[str, Tensor]]:
    """Recalls and average precision of every query, both ways, and the kind of each query."""
    with torch.inference_mode():
        of_images, of_words = model.anchors(images), model.references(words)
    there = retrieval(of_words, kinds, of_images, labels, ks=KS, reduce="none")
    back = retrieval(of_images, labels, of_words, kinds, ks=KS, reduce="none")
    found = {way: {name: each[name] for name in MEASURES} for way, each in zip(WAYS, (there, back), strict=True)}
    return {WAYS[0]: found[WAYS[0]] | {"kind": kinds}, WAYS[1]: found[WAYS[1]] | {"kind": labels}}


def expected_by_chance(labels: Tensor, kinds: int) -> dict[str, dict[str, float]]:
    """The expected recalls and average precision of a random order, of images and of names."""
    counts = labels.unique(return_counts=True)[1].tolist()
    there = [_random_order(count, len(labels)) for count in counts]
    return {
        WAYS[0]: {name: sum(each[name] for each in there) / len(there) for name in MEASURES},
        WAYS[1]: _random_order(1, kinds),
    }


def _random_order(right: int, among: int) -> dict[str, float]:
    """Some of ``right`` items are among the first k with the hypergeometric probability; the expectation of the average
    precision follows from E[x_i x_j] = R (R - 1) / (N (N - 1)) for two places and R / N for one."""
    found = {f"R@{k}": 1 - comb(among - right, k) / comb(among, k) for k in KS}
    harmonic = float((1 / torch.arange(1, among + 1).double()).sum())
    return found | {"mAP": harmonic / among + (right - 1) / (among * (among - 1)) * (among - harmonic)}


def summarize(found: list[dict[str, dict[str, Tensor]]]) -> dict[str, Any]:
    """The mean over the queries of all seeds, with a 95% interval over kinds, and the range over seeds."""
    made: dict[str, Any] = {way: {} for way in WAYS}
    for way in WAYS:
        kinds = torch.cat([each[way]["kind"] for each in found])
        for name in MEASURES:
            several = [each[way][name].double() for each in found]
            interval = bootstrap(torch.cat(several), seed=0, groups=kinds)
            means = [float(each.mean()) for each in several]
            numbers = {"mean": interval.mean, "low": interval.low, "high": interval.high}
            made[way][name] = {**numbers, "seeds": [min(means), max(means)]}
    return made


def rows(report: dict[str, Any]) -> list[list[str]]:
    """A row for each direction, choice of halves and method."""
    made = []
    for way in WAYS:
        for halves in HALVES:
            for method in METHODS:
                cells = [report["results"][halves][method][way][name] for name in MEASURES]
                low_high = [(100 * each["mean"], 100 * each["low"], 100 * each["high"]) for each in cells]
                made.append(
                    [way, halves, method, *(f"{mean:.1f} ({low:.1f} to {high:.1f})" for mean, low, high in low_high)]
                )
        made.append([way, "", "chance", *(f"{100 * value:.1f}" for value in report["chance"][way].values())])
    return made


class Birds:
    """All images and names, their features, and training runs on half of the kinds."""

    def __init__(self, data: str, cache: Path) -> None:
        self.birds = CUB200(data, "all", check=False)
        self.labels, self.texts = self.birds.labels, prompts(self.birds.class_names)
        self.images, self.words = compute_features(self.birds, self.texts, cache)

    def measure(self, halves: str, method: str, seed: int, epochs: int) -> dict[str, dict[str, Tensor]]:
        """Train on one half, and measure on the other."""
        chance = torch.Generator().manual_seed(seed)
        order = torch.randperm(200, generator=chance) if halves == "random halves" else torch.arange(200)
        seen, unseen = order[:100].sort().values, order[100:].sort().values
        rows = torch.isin(self.labels, seen).nonzero()[:, 0]
        with tempfile.TemporaryDirectory() as folder:
            lines = [f"{self.birds.source(row)},{self.texts[self.labels[row]]}" for row in rows.tolist()]
            Path(folder, "birds.csv").write_text("\n".join(["image,text", *lines]))
            pairs = PairTable(Path(folder, "birds.csv"), root="/", check=False)
        names = seen if method == "trained" else seen[torch.randperm(100, generator=chance)]
        model = train_heads(pairs, self.images[rows], self.words[names], seed, epochs)
        others = torch.isin(self.labels, unseen)
        return measure(model, self.images[others], self.labels[others], self.words[unseen], unseen)


def main() -> None:
    parser = make_parser(__doc__, quick="one seed, one epoch")
    parser.add_argument("--data", required=True, help="the folder of CUB-200-2011")
    parser.add_argument("--cache", type=Path, required=True, help="where decoded images and features are kept")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--page", action="store_true", help="fill the table of docs/text-and-images.md")
    options = parser.parse_args()
    begin = time.monotonic()
    birds = Birds(options.data, options.cache)
    seeds, epochs = (1, 1) if options.quick else (options.seeds, EPOCHS)
    report: dict[str, Any] = {
        "machine": machine("cpu"),
        "versions": versions("torch"),
        "settings": {
            "dim": DIM,
            "classes": CLASSES,
            "epochs": epochs,
            "lr": LR,
            "seeds": seeds,
            "loss": "NTXentLoss()",
        },
        "chance": expected_by_chance(birds.labels[birds.labels >= 100], 100),
        "results": {},
    }
    for halves in HALVES:
        report["results"][halves] = {}
        for method in METHODS:
            found = summarize([birds.measure(halves, method, seed, epochs) for seed in range(seeds)])
            report["results"][halves][method] = found
            print(halves, method, {way: round(found[way]["R@1"]["mean"], 4) for way in WAYS}, flush=True)
    report["seconds"] = round(time.monotonic() - begin, 1)
    write(report, None if options.quick else RESULT)
    if options.page and not options.quick:
        head = ["search", "kinds", "", *MEASURES]
        fill(DOCS / "text-and-images.md", {"text-search": table(head, rows(report))})


if __name__ == "__main__":
    main()
