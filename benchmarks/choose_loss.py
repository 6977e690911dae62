"""Which loss under which conditions?  Eight losses on Glyphs, by label noise and images per class.

    python -m benchmarks.choose_loss            writes results/choose-loss-cpu.json row by row; run it again to continue
    python -m benchmarks.choose_loss --page     fills the tables of docs/choose-a-loss.md
    python -m benchmarks.choose_loss --quick    a smoke test; prints, and writes nothing

A small convolutional network is trained on training characters and measured on test characters, which no training has
seen.  One condition changes at a time; all other settings are those of the base condition: 200 classes of 16 images,
correct labels, batches of 128.  Every training sees the same number of images.  Losses keep their default settings (ArcFace: scale 32).  The learning rates of each loss are chosen once, in the base
condition, by MAP@R on validation characters, and kept for all other conditions.
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.harness import DOCS, RESULTS, fill, machine, make_parser, read, table, versions, write
from likewise import losses, miners
from likewise.data.glyphs import Glyphs
from likewise.data.samplers import PerClassSampler
from likewise.metrics import retrieval, verification

RESULT = RESULTS / "choose-loss-cpu.json"
PAGE = DOCS / "choose-a-loss.md"
DIM, IMAGES, CLASSES, BATCH = 64, 16, 200, 128
SEEN = 300 * BATCH  # images per training
SEEDS = 3
RATES, PROXY_RATES = (3e-3, 1e-2, 3e-2), (1e-2, 1e-1)
METRICS = ("MAP@R", "R@1", "EER", "AUC")

Row = dict[str, Any]

LOSSES: dict[str, Callable[[int], nn.Module]] = {
    "Contrastive": lambda classes: losses.ContrastiveLoss(),
    "Triplet, semi-hard": lambda classes: losses.TripletLoss(miner=miners.SemiHardMiner()),
    "Multi-similarity": lambda classes: losses.MultiSimilarityLoss(),
    "SupCon": lambda classes: losses.SupConLoss(),
    "Smooth-AP": lambda classes: losses.SmoothAPLoss(),
    "Proxy-Anchor": lambda classes: losses.ProxyAnchorLoss(classes, DIM),
    "Normalized softmax": lambda classes: losses.NormalizedSoftmaxLoss(classes, DIM),
    "ArcFace": lambda classes: losses.ArcFaceLoss(classes, DIM, scale=32.0),
}
WITH_PROXIES = ("Proxy-Anchor", "Normalized softmax", "ArcFace")


@dataclass(frozen=True)
class Condition:
    """What the training data and the batches are."""

    noise: float = 0.0
    images: int = IMAGES
    classes: int = CLASSES
    batch: int = BATCH
    seen: int = SEEN


BASE = Condition()
AXES: dict[str, list[Condition]] = {
    "noise": [BASE, Condition(noise=0.2), Condition(noise=0.4)],
    "images": [Condition(images=2), BASE],
}
HEADS = {
    "noise": [f"{condition.noise:.0%} wrong" for condition in AXES["noise"]],
    "images": [f"{condition.images} images" for condition in AXES["images"]],
}
CONDITIONS = list(dict.fromkeys(itertools.chain.from_iterable(AXES.values())))


def make_network() -> nn.Module:
    """Half the resolution, two convolutions and a linear layer: many runs fit into minutes of one core."""
    layers: list[nn.Module] = [nn.AvgPool2d(2)]  # (n, 1, 16, 16)
    for before, after in ((1, 16), (16, 32)):
        layers += [nn.Conv2d(before, after, 3, stride=2, padding=1), nn.BatchNorm2d(after), nn.ReLU()]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(32 * 4 * 4, DIM))


def scaled(images: Tensor) -> Tensor:
    """Bytes as numbers around zero."""
    return (images.float() - 128.0) / 64.0


def training_data(pixels: Tensor, condition: Condition, seed: int) -> tuple[Tensor, Tensor]:
    """The images and labels of a condition.

    Args:
        pixels: ``(classes, images, 1, 32, 32)``, everything there is.
        condition: how many classes and images to keep, and how many labels are wrong.
        seed: of the choice of classes and of the wrong labels.

    Returns:
        Images ``(n, 1, 32, 32)`` and labels ``(n,)``.  A wrong label is another class, drawn uniformly.
    """
    chance = torch.Generator().manual_seed(seed)
    chosen = torch.randperm(len(pixels), generator=chance)[: condition.classes]
    kept = pixels[chosen, : condition.images].flatten(0, 1)
    labels = torch.arange(len(chosen)).repeat_interleave(condition.images)
    wrong = torch.rand(len(labels), generator=chance) < condition.noise
    shift = torch.randint(1, len(chosen), labels.shape, generator=chance)
    return kept, torch.where(wrong, (labels + shift) % len(chosen), labels)


def train(
    loss: nn.Module, images: Tensor, labels: Tensor, condition: Condition, rates: tuple[float, float], seed: int
) -> nn.Module:
    """Train a network; AdamW, cosine decay of the rates."""
    network = make_network()
    groups = [{"params": list(network.parameters()), "lr": rates[0]}]
    if proxies := list(loss.parameters()):
        groups.append({"params": proxies, "lr": rates[1]})
    optimizer = torch.optim.AdamW(groups)
    steps = condition.seen // condition.batch
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    per_class = min(4, condition.images)
    classes = min(condition.batch // per_class, condition.classes)
    per_class = condition.batch // classes
    for batch in PerClassSampler(labels, classes=classes, per_class=per_class, steps=steps, seed=seed):
        optimizer.zero_grad()
        loss(network(scaled(images[batch])), labels[batch]).backward()
        optimizer.step()
        schedule.step()
    return network.eval()


def measure(network: nn.Module, images: Tensor, labels: Tensor) -> Row:
    """Retrieval and verification among images of unseen classes."""
    with torch.no_grad():
        embeddings = torch.cat([network(scaled(some)) for some in images.split(1000)])
    found = retrieval(embeddings, labels) | verification(embeddings, labels)
    return {name: round(float(found[name]), 5) for name in METRICS}


def run_one(
    name: str, condition: Condition, rates: tuple[float, float], seed: int, data: dict[str, Any], split: str
) -> Row:
    """Train and measure once."""
    begin = time.perf_counter()
    images, labels = training_data(data["train"], condition, seed)
    torch.manual_seed(seed)
    network = train(LOSSES[name](condition.classes), images, labels, condition, rates, seed)
    row = {
        "loss": name,
        **asdict(condition),
        "rate": rates[0],
        "proxy_rate": rates[1] if name in WITH_PROXIES else None,
        "seed": seed,
        "split": split,
        **measure(network, *data[split]),
        "seconds": round(time.perf_counter() - begin, 1),
    }
    print(f"{name:20} {condition} seed {seed} {split} MAP@R {row['MAP@R']:.3f} R@1 {row['R@1']:.3f}", flush=True)
    return row


def rates_to_try(name: str) -> list[tuple[float, float]]:
    """Learning rates of the network and of the proxies."""
    return list(itertools.product(RATES, PROXY_RATES if name in WITH_PROXIES else (0.0,)))


def chosen_rates(rows: list[Row], name: str) -> tuple[float, float]:
    """The rates of a loss with the highest MAP@R on validation classes."""
    tried = [row for row in rows if row["split"] == "val" and row["loss"] == name]
    best = max(tried, key=lambda row: row["MAP@R"])
    return best["rate"], best["proxy_rate"] or 0.0


def is_done(rows: list[Row], **wanted: Any) -> bool:
    """Whether a row is there already."""
    return any(all(row[field] == value for field, value in wanted.items()) for row in rows)


def load(images: int) -> dict[str, Any]:
    """Training images by class; images and labels of unseen classes, 6 images of each."""
    training = Glyphs("train", images_per_class=images).pixels()
    data: dict[str, Any] = {"train": training.unflatten(0, (-1, images))}
    for split in ("val", "test"):
        glyphs = Glyphs(split, images_per_class=6)
        data[split] = (glyphs.pixels(), glyphs.labels)
    return data


def work(report: dict[str, Any], seeds: int) -> None:
    """Train what is missing; every row is on disk as soon as it is known."""
    rows, data = report["rows"], load(IMAGES)
    for name in LOSSES:
        for rates in rates_to_try(name):
            known = {"loss": name, "rate": rates[0], "proxy_rate": rates[1] or None, "split": "val"}
            if not is_done(rows, **known):
                rows.append(run_one(name, BASE, rates, 100, data, "val"))
                write(report, RESULT)
    for condition, seed, name in itertools.product(CONDITIONS, range(seeds), LOSSES):
        if not is_done(rows, loss=name, seed=seed, split="test", **asdict(condition)):
            rows.append(run_one(name, condition, chosen_rates(rows, name), seed, data, "test"))
            write(report, RESULT)


def values(rows: list[Row], name: str, condition: Condition, metric: str) -> list[float]:
    """A metric on test characters, for every seed, in per cent."""
    wanted = {"loss": name, "split": "test", **asdict(condition)}
    return [100 * row[metric] for row in rows if all(row[field] == value for field, value in wanted.items())]


def cell(found: list[float]) -> str:
    """The mean over seeds, and half of the range; a dash where seeds are missing."""
    if len(found) < SEEDS:
        return "–"
    return f"{statistics.mean(found):.1f} ± {(max(found) - min(found)) / 2:.1f}"


def blocks(report: dict[str, Any]) -> dict[str, str]:
    """The tables of the page."""
    rows = report["rows"]
    made = {}
    for axis, conditions in AXES.items():
        lines = [[name, *(cell(values(rows, name, condition, "MAP@R")) for condition in conditions)] for name in LOSSES]
        made[f"choose-{axis}"] = table(["MAP@R", *HEADS[axis]], lines)
    head = ["loss", "MAP@R", "R@1", "EER", "AUC", "network lr", "proxy lr"]
    lines = []
    for name in LOSSES:
        rate, proxy_rate = chosen_rates(rows, name)
        metrics = [cell(values(rows, name, BASE, metric)) for metric in METRICS]
        lines.append([name, *metrics, f"{rate:g}", f"{proxy_rate:g}" if proxy_rate else "–"])
    made["choose-base"] = table(head, lines)
    noisy = Condition(noise=0.4)
    lines = [
        [name, *(cell(values(rows, name, each, metric)) for metric in ("R@1", "EER") for each in (BASE, noisy))]
        for name in LOSSES
    ]
    made["choose-verification"] = table(["loss", "R@1, 0%", "R@1, 40%", "EER, 0%", "EER, 40%"], lines)
    return made


def smoke() -> None:
    """Train every loss once for a few steps on a few classes."""
    pixels = Glyphs("train", images_per_class=4).pixels()[:80].unflatten(0, (20, 4))
    data = {"train": pixels, "test": (pixels.flatten(0, 1), torch.arange(20).repeat_interleave(4))}
    condition = Condition(noise=0.2, images=4, classes=20, batch=32, seen=64)
    for name in LOSSES:
        run_one(name, condition, (1e-3, 1e-2), 0, data, "test")


def main() -> None:
    """Run what is missing."""
    parser = make_parser(__doc__, quick="two steps of each loss on 20 classes")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--page", action="store_true", help="fill the tables of docs/choose-a-loss.md from the results")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.quick:
        smoke()
        return
    head = {
        "machine": {**machine("cpu"), "threads": 1, **versions("torch", "numpy", "pillow", "matplotlib")},
    }
    report = read(RESULT) or {**head, "rows": []}
    if options.page:
        fill(PAGE, blocks(report))
    else:
        work(report, options.seeds)


if __name__ == "__main__":
    main()
