"""How many images a second the trunks of the papers train on, for the estimates of ``--dry-run``.

    python -m studies.papers.speed -o studies/papers/results/speed.json

A step is that of a training without reading images: forward, Proxy-Anchor with 100 classes, backward, AdamW, in float32 with
frozen batch norms, on a batch that is on the GPU.  Random weights take as long as trained ones.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path

import torch

from likewise.losses import ProxyAnchorLoss
from likewise.trunks import Embedder

BATCHES = {"resnet50": 100, "bninception": 180, "googlenet": 180}
"""The batches of the thesis (section 3.4)."""

SIZE, DIM, CLASSES = 224, 512, 100
WARM, STEPS, REPEATS = 5, 20, 5


def measure(trunk: str, batch: int, device: torch.device) -> float:
    """Images per second: the median over repeats of several steps each."""
    torch.manual_seed(0)
    model = Embedder(trunk, DIM, weights=None, freeze_bn=True).to(device).train()
    loss = ProxyAnchorLoss(CLASSES, DIM).to(device)
    optimizer = torch.optim.AdamW([*model.parameters(), *loss.parameters()], lr=1e-4)
    images = torch.randn(batch, 3, SIZE, SIZE, device=device)
    labels = torch.arange(batch, device=device) % CLASSES

    def steps(count: int) -> float:
        begin = time.perf_counter()
        for _ in range(count):
            optimizer.zero_grad(set_to_none=True)
            loss(model(images), labels).backward()
            optimizer.step()
        torch.cuda.synchronize(device)
        return time.perf_counter() - begin

    steps(WARM)
    seconds = sorted(steps(STEPS) for _ in range(REPEATS))
    return STEPS * batch / seconds[len(seconds) // 2]


def main(words: Sequence[str] | None = None) -> int:
    """Measure all trunks, and write the numbers."""
    parser = argparse.ArgumentParser(prog="python -m studies.papers.speed", description=__doc__.split("\n")[0])
    parser.add_argument("-o", "--out", metavar="FILE", type=Path, required=True, help="a JSON file")
    options = parser.parse_args(words)
    if not torch.cuda.is_available():
        parser.error("there must be a CUDA device, but there is none")
    device = torch.device("cuda")
    speeds = {trunk: round(measure(trunk, batch, device)) for trunk, batch in BATCHES.items()}
    found = {"device": torch.cuda.get_device_name(device), "torch": torch.__version__.split("+")[0], "images": SIZE}
    options.out.write_text(json.dumps({**found, "images per second": speeds}, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(speeds))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
