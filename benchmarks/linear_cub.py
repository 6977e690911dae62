"""A linear metric on frozen features of CUB's birds, against full training.

    python -m benchmarks.linear_cub --cub PATH --features FILE.npz      PATH a folder or zip in the official layout

Embeds all images once with EfficientNet-Lite0 (ImageNet's weights, 112-px center crops) into FILE, where it is not there;
learns 512-d linear metrics on the first 100 classes and measures them on the other 100.  Writes
benchmarks/results/linear-cub.json.  Needs the linear and weights extras.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.harness import RESULTS, machine, make_parser, versions, write
from benchmarks.trunks import batches, files_of
from likewise.linear import RCA, LinearMetric
from likewise.losses import ContrastiveLoss, ProxyAnchorLoss
from likewise.metrics import retrieval, t_interval
from likewise.trunks import build

OUT = RESULTS / "linear-cub.json"


@torch.inference_mode()
def embed(place: Path, file: Path) -> None:
    """Pooled features of all images."""
    trunk = build("efficientnet_lite0", weights="imagenet").eval()
    read, images = files_of(place)
    start = time.perf_counter()
    rows = [
        trunk(trunk.preprocessing(batch)).mean(dim=(2, 3)) for batch in batches(read, [name for name, _ in images], 112)
    ]
    labels = np.array([label for _, label in images])
    np.savez(file, embeddings=torch.cat(rows).numpy(), labels=labels, seconds=time.perf_counter() - start)


def measure(points: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    found = retrieval(torch.as_tensor(points, dtype=torch.float32), torch.as_tensor(labels))
    return {name: 100.0 * float(found[name]) for name in ("R@1", "MAP@R")}


def methods(seed: int) -> dict[str, Any]:
    options: dict[str, Any] = {"n_components": 512, "init": "pca", "batch_size": 128, "random_state": seed}
    return {
        "Contrastive": LinearMetric(ContrastiveLoss(), max_iter=12, lr=1e-3, **options),
        "Proxy-Anchor": LinearMetric(ProxyAnchorLoss(100, 512), max_iter=12, lr=1e-3, **options),
    }


def main(features: Path, seeds: int) -> None:
    with np.load(features) as content:
        X, y, seconds = content["embeddings"], content["labels"], float(content["seconds"])
    train, test = y <= 100, y > 100
    result: dict[str, Any] = {
        **machine("cpu"),
        "versions": versions("torch", "scikit-learn"),
        "embedding seconds": seconds,
    }
    result["frozen features"] = measure(X[test], y[test])
    start = time.perf_counter()
    whitened = RCA().fit(X[train], y[train])
    result["RCA"] = {**measure(whitened.transform(X[test]), y[test]), "seconds": time.perf_counter() - start}
    for name in methods(0):
        runs, times = [], []
        for seed in range(seeds):
            torch.manual_seed(seed)  # proxies
            start = time.perf_counter()
            fitted = methods(seed)[name].fit(X[train], y[train])
            times.append(time.perf_counter() - start)
            runs.append(measure(fitted.transform(X[test]), y[test]))
        result[name] = {"seconds": float(np.mean(times)), "seeds": seeds}
        for metric in ("R@1", "MAP@R"):
            interval = t_interval([run[metric] for run in runs])
            result[name][metric] = {"mean": interval.mean, "low": interval.low, "high": interval.high}
        print(name, result[name], flush=True)
        write(result, OUT)


if __name__ == "__main__":
    parser = make_parser(__doc__)
    parser.add_argument("--cub", type=Path, help="CUB-200-2011, a folder or a zip")
    parser.add_argument("--features", type=Path, required=True, help="where the features are, or are written")
    parser.add_argument("--seeds", type=int, default=3)
    chosen = parser.parse_args()
    if not chosen.features.exists():
        embed(chosen.cub, chosen.features)
    main(chosen.features, chosen.seeds)
