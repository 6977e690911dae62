"""Train with several processes; the loss and its gradients equal those of one process with the whole batch.

Run: torchrun --nproc-per-node 2 examples/torchrun.py
     python examples/torchrun.py        # one process prints the same losses
"""

import argparse
import os
from collections.abc import Sequence

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from likewise.data import PerClassSampler
from likewise.losses import Gathered, MultiSimilarityLoss


def main(argv: Sequence[str] | None = None) -> list[float]:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=5)
    args = parser.parse_args(argv)

    rank, world_size = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    if world_size > 1:
        dist.init_process_group("gloo")  # "nccl" on GPUs

    torch.manual_seed(0)  # the same data and initial weights in every process
    centers = torch.randn(32, 16)
    labels = torch.arange(32).repeat_interleave(8)
    features = centers[labels] + 0.5 * torch.randn(256, 16)

    model: nn.Module = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 8))
    if world_size > 1:
        model = DistributedDataParallel(model)
    # Without Gathered, DistributedDataParallel computes a loss within each process's share of the batch.
    loss = Gathered(MultiSimilarityLoss())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    # Every process gets its classes of each global batch of 16 classes x 4 samples.
    sampler = PerClassSampler(labels, classes=16, per_class=4, steps=args.steps, rank=rank, world_size=world_size)
    losses = []
    for batch in sampler:
        optimizer.zero_grad()
        value = loss(model(features[batch]), labels[batch])
        value.backward()
        optimizer.step()
        losses.append(value.item())

    if rank == 0:
        print(" ".join(f"{value:.6f}" for value in losses))
    if world_size > 1:
        dist.destroy_process_group()
    return losses


if __name__ == "__main__":
    main()
