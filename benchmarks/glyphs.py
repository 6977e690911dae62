"""How hard `Glyphs` is: nearest neighbors by raw pixels, and by a small network after a minute or two of training.

python -m benchmarks.glyphs                under two minutes on one core; writes benchmarks/results/glyphs.json
python -m benchmarks.glyphs --steps 100    prints, and writes nothing
"""

from __future__ import annotations

import time
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.harness import RESULTS, machine, make_parser, versions, write
from likewise.data.glyphs import Glyphs
from likewise.data.samplers import PerClassSampler
from likewise.formula.similarities import Euclidean, SimilarityLike
from likewise.losses import MultiSimilarityLoss
from likewise.metrics import retrieval

RESULT = RESULTS / "glyphs.json"
STEPS = 1500
IMAGES = 24

Row = dict[str, Any]


def main() -> None:
    """Draw, measure pixels, train, measure again."""
    parser = make_parser(__doc__)
    parser.add_argument("--steps", type=int, default=STEPS, help="of training, 32 x 4 images each")
    parser.add_argument("--images-per-class", type=int, default=IMAGES, help="as of Glyphs")
    options = parser.parse_args()
    steps = options.steps
    described = {
        **machine("cpu"),
        "threads": torch.get_num_threads(),
        **versions("torch", "numpy", "pillow", "matplotlib"),
    }
    report: Row = {"machine": described, "steps": steps, "drawing": {}, "rows": []}
    data = {}
    for split in ("train", "val", "test"):
        data[split] = Glyphs(split, images_per_class=options.images_per_class)
        begin = time.perf_counter()
        data[split].pixels()
        seconds = time.perf_counter() - begin
        report["drawing"][split] = {"images": len(data[split]), "seconds": round(seconds, 2)}
        print(f"{data[split]} drawn in {seconds:.1f} s")

    for split in ("val", "test"):
        pixels = data[split].pixels().flatten(1).float()
        report["rows"] += [
            row(split, "pixels, cosine", pixels, data[split].labels),
            row(split, "pixels, Euclidean", pixels, data[split].labels, Euclidean(normalize=False)),
            row(split, "pixels less their mean, cosine", pixels - pixels.mean(dim=1, keepdim=True), data[split].labels),
        ]
    begin = time.perf_counter()
    network = trained(data["train"], steps)
    report["training seconds"] = round(time.perf_counter() - begin, 1)
    for split in ("val", "test"):
        with torch.no_grad():
            embeddings = torch.cat([network(scaled(some)) for some in data[split].pixels().split(1000)])
        report["rows"].append(row(split, f"small network, {steps} steps", embeddings, data[split].labels))
    print(f"training took {report['training seconds']} s")
    if (steps, options.images_per_class) == (STEPS, IMAGES):
        write(report, RESULT)


def row(split: str, what: str, embeddings: Tensor, labels: Tensor, similarity: SimilarityLike = "cosine") -> Row:
    """Measure and print."""
    found = retrieval(embeddings, labels, similarity=similarity)
    print(f"{split:5} {what:32} R@1 {found['R@1']:.3f}  MAP@R {found['MAP@R']:.3f}", flush=True)
    return {"split": split, "what": what, "R@1": round(found["R@1"], 4), "MAP@R": round(found["MAP@R"], 4)}


def scaled(images: Tensor) -> Tensor:
    """Bytes as numbers around zero."""
    return (images.float() - 128.0) / 64.0


def trained(glyphs: Glyphs, steps: int) -> nn.Module:
    """Three convolutions and a linear layer, trained with the multi-similarity loss."""
    torch.manual_seed(0)
    layers: list[nn.Module] = []
    for before, after in ((1, 32), (32, 64), (64, 128)):
        layers += [nn.Conv2d(before, after, 3, stride=2, padding=1), nn.BatchNorm2d(after), nn.ReLU()]
    network = nn.Sequential(*layers, nn.Flatten(), nn.Linear(2048, 64))
    optimizer, loss = torch.optim.AdamW(network.parameters(), 2e-3), MultiSimilarityLoss()
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    pixels = glyphs.pixels()
    for batch in PerClassSampler(glyphs.labels, classes=32, per_class=4, steps=steps):
        optimizer.zero_grad()
        loss(network(scaled(pixels[batch])), glyphs.labels[batch]).backward()
        optimizer.step()
        schedule.step()
    return network.eval()


if __name__ == "__main__":
    main()
