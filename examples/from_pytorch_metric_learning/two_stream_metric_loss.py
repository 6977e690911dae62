"""Anchors from one stream, positives and negatives from another (in PML: the trainer TwoStreamMetricLoss).

Run: python examples/from_pytorch_metric_learning/two_stream_metric_loss.py --epochs 20

Two kinds of measurements of the same objects, with different dimensions, get embeddings in one space. The second stream is
the `references` of the loss.
"""

import argparse
from collections.abc import Sequence

import torch
from torch import nn

from likewise.losses import TripletLoss
from likewise.metrics import retrieval
from likewise.miners import MultiSimilarityMiner


def main(argv: Sequence[str] | None = None) -> dict[str, float]:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=20)
    args = parser.parse_args(argv)

    torch.manual_seed(0)
    objects = torch.randn(400, 16)
    first = objects @ torch.randn(16, 40) + 0.5 * torch.randn(400, 40)
    second = objects @ torch.randn(16, 24) + 0.5 * torch.randn(400, 24)
    ids = torch.arange(400)
    train, test = ids[:300], ids[300:]

    towers = nn.ModuleList([nn.Linear(40, 16), nn.Linear(24, 16)])
    loss = TripletLoss(margin=0.1, miner=MultiSimilarityMiner(epsilon=0.1))
    optimizer = torch.optim.Adam(towers.parameters(), lr=1e-2)
    for _ in range(args.epochs):
        for batch in train[torch.randperm(300)].split(100):
            anchors, references = towers[0](first[batch]), towers[1](second[batch])
            optimizer.zero_grad()
            # Object k is the only positive of row k. There: loss(anchors, labels, ref_emb=..., ref_labels=...).
            loss(anchors, ids[batch], references, ids[batch]).backward()
            optimizer.step()

    with torch.no_grad():
        left, right = towers[0](first[test]), towers[1](second[test])
    # There: GlobalTwoStreamEmbeddingSpaceTester. Here: queries and references are two arguments.
    forward = retrieval(left, test, right, test, ks=(1,))["R@1"]
    backward = retrieval(right, test, left, test, ks=(1,))["R@1"]
    print(f"unseen objects, R@1: first to second {forward:.3f}, second to first {backward:.3f}")
    return {"first to second": forward, "second to first": backward}


if __name__ == "__main__":
    main()
