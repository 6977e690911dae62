"""One of two processes that train together on the CPU: python two.py FOLDER WHAT, started twice with a rank each."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from likewise.data import BatchLoader, HardBatchSampler, ImageCache
from likewise.data.augment import Augment
from likewise.data.crops import CenterCrop
from likewise.train import Data, NotFinite, OptimizerConfig, ScheduleConfig, TrainConfig, loop, train
from tests.train.small import Interrupted, draw, linear, loader, terminate, vectors

SETTINGS = OptimizerConfig("SGD", lr=0.05, momentum=0.9, weight_decay=0.0)


class Centers(nn.Module):
    """A loss that learns."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.centers = nn.Parameter(torch.randn(4, 4))

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        return (embeddings - self.centers[labels]).square().sum(dim=1).mean()


def share(rank: int, what: str = "") -> list[tuple[Tensor, ...]]:
    """Each process sees its own batches, or fewer of their images."""
    batches = vectors(3, seed=rank)
    if what == "uneven" and rank == 1:
        return [(images[:3], labels[:3]) for images, labels in batches]
    if what == "alike" and rank == 1:
        return [(images[:1].expand(8, 6), labels) for images, labels in batches]
    if what == "bad image" and rank == 1:
        batches[1][0][3, 2] = float("nan")
    return batches


PLANS = {
    "accumulate": {"accumulate": 2},
    "chunks": {"chunk": 3},
    "chunks of several": {"chunk": 3, "accumulate": 2},
    "uneven": {"chunk": 3},
    "norms": {"chunk": 3},
    "late": {"log_every": 3},
    "mining": {"mine_steps": 2},
}


def mining(photos: ImageCache, rank: int = 0, world_size: int = 1) -> Data:
    """Classes near each other, without chance in the crops; each process embeds some of three batches."""
    share = {"rank": rank, "world_size": world_size}
    sampler = HardBatchSampler(photos.labels, classes=4, per_class=2, anchors=2, steps=5, seed=3, **share)
    in_order = BatchLoader(photos, [range(15), range(15, 30), range(30, 36)], Augment(8, CenterCrop()), workers=1)
    return Data(BatchLoader(photos, sampler, Augment(8, CenterCrop()), workers=1), in_order=in_order)


def pooled() -> nn.Module:
    return nn.Sequential(nn.AvgPool2d(4), nn.Flatten(), linear(features=12))


class Ill(Centers):
    """No number from one of its calls on; and only four classes."""

    def __init__(self, call: int) -> None:
        super().__init__()
        self.call = call

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        self.call -= 1
        return super().forward(embeddings, labels % 4) * (float("nan") if self.call <= 0 else 1.0)


def exchanges() -> int:
    """How often the processes have met so far, for whatever reason."""
    return int(torch.distributed.group.WORLD._get_sequence_number_for_group())


class Counting(loop.Step):
    """A step that says how often the processes met in it."""

    met: list[int] = []  # noqa: RUF012

    def __call__(self, batches: Sequence[Sequence[Tensor]]) -> Tensor:
        before = exchanges()
        embeddings = super().__call__(batches)
        Counting.met.append(exchanges() - before)
        return embeddings


class Later(loop.Step):
    """As on a GPU, where nobody looks at a loss at once."""

    def __init__(self, *args: object, watch: bool = True, **options: object) -> None:
        super().__init__(*args, watch=False, **options)


def main(folder: str, what: str) -> None:
    """Train, and leave what this process ended with."""
    torch.set_num_threads(1)
    rank = int(os.environ["RANK"])
    place, batches = Path(folder), share(rank, what)
    model, loss = linear(), Ill(3 if what in ("bad loss", "late") and rank == 1 else 1000)
    if what == "norms":
        model = nn.Sequential(model, nn.BatchNorm1d(4))
    at = 4 if what == "stop" and rank == 1 else None  # a signal that reaches one of them
    data = Data(batches, vectors(2, seed=7))
    if what == "late":  # a batch can be made again
        data, model = Data(loader(draw(place / f"photos {rank}"), 5)), nn.Sequential(nn.Flatten(), linear(features=192))
    if what == "mining":
        data, model = mining(draw(place / f"mined {rank}"), rank, 2), pooled()
    Counting.met.clear()
    loop.Step = Later if what == "late" else Counting
    error = ""
    try:
        train(
            model,
            Interrupted(loss, at, terminate),
            data,
            optimizer=SETTINGS,
            schedule=ScheduleConfig("constant"),
            settings=TrainConfig(**{"epochs": 2, "log_every": 1, **PLANS.get(what, {})}),
            folder=place / what,
            device="cpu",
        )
    except NotFinite as raised:
        error = str(raised)
    complete = (place / what / "model.safetensors").exists() and "end" in (place / what / "metrics.jsonl").read_text()
    ended = {"model": model.state_dict(), "centers": loss.centers.detach(), "complete": complete}
    torch.save({**ended, "error": error, "met": Counting.met}, place / f"{what}-{rank}.pt")


if __name__ == "__main__":
    for each in sys.argv[2:]:
        main(sys.argv[1], each)
    torch.distributed.destroy_process_group()
