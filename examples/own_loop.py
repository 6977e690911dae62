"""Train an embedding in a plain PyTorch loop: sampler, loss with a miner, exact evaluation on unseen classes.

Run: python examples/own_loop.py --epochs 5
"""

import argparse
from collections.abc import Sequence

import torch
from torch import Tensor

from likewise.data import Glyphs, PerClassSampler
from likewise.losses import MultiSimilarityLoss
from likewise.metrics import retrieval
from likewise.miners import MultiSimilarityMiner
from likewise.trunks import Embedder


def load(split: str, images_per_class: int) -> tuple[Tensor, Tensor]:
    """Images in [0, 1] of shape (n, 1, 32, 32), and their labels."""
    glyphs = Glyphs(split, images_per_class=images_per_class)
    return glyphs.pixels().float() / 255, glyphs.labels


def main(argv: Sequence[str] | None = None) -> float:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--images", type=int, default=8, help="images per class")
    parser.add_argument("--steps", type=int, default=None, help="steps per epoch; default: one pass over the images")
    args = parser.parse_args(argv)

    torch.manual_seed(0)
    images, labels = load("train", args.images)
    val_images, val_labels = load("val", args.images)

    model = Embedder("convnet", 64)
    loss = MultiSimilarityLoss(miner=MultiSimilarityMiner(epsilon=0.1))
    # A loss may have parameters (proxies, a learned margin): pass them to the optimizer even if this one has none.
    optimizer = torch.optim.AdamW([*model.parameters(), *loss.parameters()], lr=1e-3)
    sampler = PerClassSampler(labels, classes=32, per_class=min(4, args.images), steps=args.steps)

    score = 0.0
    for epoch in range(args.epochs):
        model.train()
        total = 0.0
        for batch in sampler:
            optimizer.zero_grad()
            value = loss(model(images[batch]), labels[batch])
            value.backward()
            optimizer.step()
            total += value.item()

        model.eval()
        with torch.no_grad():
            embeddings = torch.cat([model(chunk) for chunk in val_images.split(256)])
        score = retrieval(embeddings, val_labels, ks=(1,))["MAP@R"]
        print(f"epoch {epoch + 1}: loss {total / len(sampler):.3f}, validation MAP@R {score:.3f}")
    return score


if __name__ == "__main__":
    main()
