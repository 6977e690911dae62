"""Can birds of kinds that no training has seen be found by their names?  CUB-200-2011, EfficientNet-Lite0 and all-MiniLM-L6-v2.

    python -m benchmarks.text_search --data CUB --cache FOLDER --page

Both trunks are frozen and run once; two linear heads are trained on the first 100 kinds, with "a photo of a NAME" for a text.
Measured are the other 100 kinds: names among images and images among names.  The control has the names of the training kinds
shuffled.  Settings were chosen on the last 20 of the first 100 kinds (--validation).
"""

from __future__ import annotations

import tempfile
import time
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
DIM, CLASSES, EPOCHS, LR = 256, 64, 5, 1e-3
WAYS = ("text to image", "image to text")


def make_towers(seed: int) -> TwoTowers:
    """Both networks, frozen, and two heads of random numbers."""
    torch.manual_seed(seed)
    return TwoTowers(
        Embedder("efficientnet_lite0", DIM, weights="imagenet", freeze="trunk"),
        Embedder(build_text("minilm"), DIM, freeze="trunk"),
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


def measure(model: TwoTowers, images: Tensor, labels: Tensor, words: Tensor) -> dict[str, dict[str, Tensor]]:
    """Recalls and average precision of every query, both ways."""
    with torch.inference_mode():
        of_images, of_words = model.anchors(images), model.references(words)
    kinds = torch.arange(len(words))
    there = retrieval(of_words, kinds, of_images, labels, ks=KS, reduce="none")
    back = retrieval(of_images, labels, of_words, kinds, ks=KS, reduce="none")
    names = (*(f"R@{k}" for k in KS), "mAP")
    return {way: {name: found[name] for name in names} for way, found in zip(WAYS, (there, back), strict=True)}


def expected_by_chance(labels: Tensor, kinds: int) -> dict[str, dict[str, float]]:
    """The recalls of a random order: of names among images, with replacement, and of one name among all."""
    shares = torch.bincount(labels, minlength=kinds).double() / len(labels)
    return {
        WAYS[0]: {f"R@{k}": float((1 - (1 - shares) ** k).mean()) for k in KS} | {"mAP": float(shares.mean())},
        WAYS[1]: {f"R@{k}": min(1.0, k / kinds) for k in KS}
        | {"mAP": float((1 / torch.arange(1, kinds + 1).double()).mean())},
    }


def summarize(found: list[dict[str, dict[str, Tensor]]], labels: Tensor, kinds: int) -> dict[str, Any]:
    """The mean over seeds of every query, with a 95% interval over classes, and the range over seeds."""
    groups = {WAYS[0]: torch.arange(kinds), WAYS[1]: labels}
    made: dict[str, Any] = {}
    for way in WAYS:
        made[way] = {}
        for name in found[0][way]:
            several = torch.stack([each[way][name].double() for each in found])
            interval = bootstrap(several.mean(dim=0), seed=0, groups=groups[way])
            seeds = several.mean(dim=1)
            made[way][name] = {
                "mean": interval.mean,
                "low": interval.low,
                "high": interval.high,
                "seeds": [float(seeds.min()), float(seeds.max())],
            }
    return made


def rows(report: dict[str, Any]) -> list[list[str]]:
    """A row for each direction and method."""
    made = []
    for way in WAYS:
        for method in ("heads", "shuffled names"):
            cells = [report[method][way][name] for name in (*(f"R@{k}" for k in KS), "mAP")]
            words = [
                f"{100 * each['mean']:.1f} ({100 * each['low']:.1f} to {100 * each['high']:.1f})" for each in cells
            ]
            made.append([way, "trained" if method == "heads" else method, *words])
        made.append([way, "chance", *(f"{100 * value:.1f}" for value in report["chance"][way].values())])
    return made


def main() -> None:
    parser = make_parser(__doc__, quick="one seed, one epoch")
    parser.add_argument("--data", required=True, help="the folder of CUB-200-2011")
    parser.add_argument("--cache", type=Path, required=True, help="where decoded images and features are kept")
    parser.add_argument("--validation", action="store_true", help="train on 80 kinds and measure on the 20 after them")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--page", action="store_true", help="fill the table of docs/text-and-images.md")
    options = parser.parse_args()
    begin = time.monotonic()
    birds = CUB200(options.data, "all", check=False)
    labels, texts = birds.labels, prompts(birds.class_names)
    images, words = compute_features(birds, texts, options.cache)
    first, last = (80, 100) if options.validation else (100, 200)
    seen, unseen = labels < first, (labels >= first) & (labels < last)
    test = images[unseen], labels[unseen] - first, words[first:last]
    report: dict[str, Any] = {
        "machine": machine("cpu"),
        "versions": versions("torch"),
        "settings": {"dim": DIM, "classes": CLASSES, "epochs": EPOCHS, "lr": LR, "seeds": options.seeds},
        "training": {"images": int(seen.sum()), "kinds": first},
        "test": {"images": int(unseen.sum()), "kinds": last - first},
        "feature seconds": round(time.monotonic() - begin, 1),
        "chance": expected_by_chance(test[1], last - first),
    }
    with tempfile.TemporaryDirectory() as folder:
        some = [f"{birds.source(at)},{texts[labels[at]]}" for at in seen.nonzero()[:, 0].tolist()]
        Path(folder, "birds.csv").write_text("\n".join(["image,text", *some]))
        pairs = PairTable(Path(folder, "birds.csv"), root="/", check=False)
    for method in ("heads", "shuffled names"):
        found = []
        for seed in range(1 if options.quick else options.seeds):
            order = torch.randperm(first, generator=torch.Generator().manual_seed(seed))
            order = order if method == "shuffled names" else torch.arange(first)
            model = train_heads(pairs, images[seen], words[:first][order], seed, 1 if options.quick else EPOCHS)
            found.append(measure(model, *test))
        report[method] = summarize(found, test[1], last - first)
        print(method, {way: round(each["R@1"]["mean"], 4) for way, each in report[method].items()}, flush=True)
    report["seconds"] = round(time.monotonic() - begin, 1)
    keep = not options.quick and not options.validation
    write(report, RESULT if keep else None)
    if options.page and keep:
        head = ["search", "", *(f"R@{k}" for k in KS), "mAP"]
        fill(DOCS / "text-and-images.md", {"text-search": table(head, rows(report))})


if __name__ == "__main__":
    main()
