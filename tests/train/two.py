"""One of two processes that train together on the CPU: python two.py FOLDER WHAT, started twice with a rank each."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import torch
from torch import Tensor, nn

from likewise.train import Data, Optimizer, Plan, Schedule, train
from tests.train.small import Interrupted, linear, terminate, vectors

SETTINGS = Optimizer("SGD", lr=0.05, momentum=0.9, weight_decay=0.0)


class Centres(nn.Module):
    """A loss that learns."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.centres = nn.Parameter(torch.randn(4, 4))

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        return (embeddings - self.centres[labels]).square().sum(dim=1).mean()


def share(rank: int) -> list[tuple[Tensor, ...]]:
    """Each process sees its own batches."""
    return vectors(3, seed=rank)


def main(folder: str, what: str) -> None:
    """Train, and leave what this process ended with."""
    torch.set_num_threads(1)
    rank = int(os.environ["RANK"])
    model, loss = linear(), Centres()
    place = Path(folder)
    at = 4 if what == "stop" and rank == 1 else None  # a signal that reaches one of them
    train(
        model,
        Interrupted(loss, at, terminate),
        Data(share(rank), vectors(2, seed=7)),
        optimizer=SETTINGS,
        schedule=Schedule("constant"),
        plan=Plan(epochs=2, log_every=1, accumulate=2 if what == "accumulate" else 1),
        folder=place / what,
        resume=(place / what / "run.yaml").exists() and what == "resume",
        device="cpu",
    )
    complete = (place / what / "model.safetensors").exists() and "end" in (place / what / "metrics.jsonl").read_text()
    torch.save(
        {"model": model.state_dict(), "centres": loss.centres.detach(), "complete": complete},
        place / f"{what}-{rank}.pt",
    )


if __name__ == "__main__":
    for each in sys.argv[2:]:
        main(sys.argv[1], each)
    torch.distributed.destroy_process_group()
