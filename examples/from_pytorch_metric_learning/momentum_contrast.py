"""Momentum contrast without labels (in PML: the MoCo example on CIFAR10).

Run: python examples/from_pytorch_metric_learning/momentum_contrast.py --epochs 3

Two views of each image: queries from the trained encoder, keys from a slow copy. A memory keeps the keys of earlier batches
as negatives. He et al. 2020.
"""

import argparse
import copy
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from likewise.data import Glyphs
from likewise.losses import CrossBatchMemory, NTXentLoss
from likewise.metrics import knn_accuracy
from likewise.trunks import Embedder


def augment(images: Tensor) -> Tensor:
    """A shifted, noisy view of every image: (n, 1, 32, 32)."""
    padded = nn.functional.pad(images, (3, 3, 3, 3), mode="replicate")
    top, left = torch.randint(0, 7, (2,)).tolist()
    return padded[..., top : top + 32, left : left + 32] + 0.1 * torch.randn_like(images)


@torch.no_grad()
def follow(slow: nn.Module, fast: nn.Module, momentum: float = 0.99) -> None:
    for old, new in zip(slow.parameters(), fast.parameters(), strict=True):
        old.lerp_(new, 1 - momentum)


def main(argv: Sequence[str] | None = None) -> float:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--images", type=int, default=8, help="images per class")
    parser.add_argument("--batch", type=int, default=128)
    args = parser.parse_args(argv)

    torch.manual_seed(0)
    glyphs = Glyphs("val", images_per_class=args.images)
    images = glyphs.pixels().float() / 255

    encoder = Embedder("convnet", 64)
    key_encoder = copy.deepcopy(encoder).requires_grad_(False)
    loss = CrossBatchMemory(NTXentLoss(temperature=0.1), size=1024)
    optimizer = torch.optim.SGD(encoder.parameters(), lr=0.1, momentum=0.9)
    accuracy = 0.0
    for epoch in range(args.epochs):
        for number, batch in enumerate(torch.randperm(len(images)).split(args.batch)):
            queries = encoder(augment(images[batch]))
            keys = key_encoder(augment(images[batch]))
            # Every view of a batch gets a label that no earlier batch had: an image's only positive is its own key.
            ids = torch.arange(len(batch)) + (epoch * len(images) + number * args.batch)
            is_key = torch.arange(2 * len(batch)) >= len(batch)
            # There: enqueue_mask=is_key.
            value = loss(torch.cat([queries, keys]), ids.repeat(2), enqueue=is_key)
            optimizer.zero_grad()
            value.backward()
            optimizer.step()
            follow(key_encoder, encoder)
        with torch.no_grad():
            embeddings = encoder(images)
        accuracy = float(knn_accuracy(embeddings, glyphs.labels, ks=(1,))["kNN@1"])
        print(f"epoch {epoch + 1}: loss {value:.3f}, nearest-neighbor accuracy {accuracy:.3f}")
    return accuracy


if __name__ == "__main__":
    main()
