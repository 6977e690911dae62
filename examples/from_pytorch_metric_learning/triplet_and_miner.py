"""Triplet loss with a semi-hard miner on small gray images (in PML: the MNIST example).

Run: python examples/from_pytorch_metric_learning/triplet_and_miner.py --epochs 3
"""

import argparse
from collections.abc import Sequence

import torch
from torch import nn

from likewise.data import Glyphs, RandomBatchSampler
from likewise.losses import TripletLoss
from likewise.metrics import retrieval
from likewise.miners import TripletMarginMiner


class Net(nn.Sequential):
    def __init__(self, dim: int = 32):
        super().__init__(
            nn.Conv2d(1, 16, 3, stride=2, padding=1), nn.ReLU(),
            nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU(),
            nn.Flatten(), nn.Linear(32 * 8 * 8, dim),
        )  # fmt: skip


def main(argv: Sequence[str] | None = None) -> float:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--images", type=int, default=8, help="images per class")
    args = parser.parse_args(argv)

    torch.manual_seed(0)
    # The same characters for training and test, as digits are there; the jitter differs.
    train, test = (Glyphs("val", images_per_class=args.images, seed=seed) for seed in (0, 1))
    images, test_images = (part.pixels().float() / 255 for part in (train, test))

    model = Net()
    # There: TripletMarginLoss(0.2, distance=CosineSimilarity()), TripletMarginMiner(0.2, type_of_triplets="semihard").
    loss = TripletLoss(margin=0.2)
    miner = TripletMarginMiner(margin=0.2, kind="semihard")
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    accuracy = 0.0
    for epoch in range(args.epochs):
        mined = 0
        for batch in RandomBatchSampler(train.labels, batch_size=256, seed=epoch):
            embeddings, labels = model(images[batch]), train.labels[batch]
            triplets = miner.triplets(embeddings, labels)  # there: miner(embeddings, labels)
            mined += len(triplets[0])
            optimizer.zero_grad()
            loss(embeddings, labels, relation=triplets).backward()  # there: loss(embeddings, labels, triplets)
            optimizer.step()
        with torch.no_grad():
            references, queries = model(images), model(test_images)
        accuracy = retrieval(queries, test.labels, references, train.labels, ks=(1,))["P@1"]
        print(f"epoch {epoch + 1}: {mined} triplets, precision at 1 of the test images: {accuracy:.3f}")
    return accuracy


if __name__ == "__main__":
    main()
