"""Compare a small batch with thousands of earlier embeddings: cross-batch memory (Wang et al. 2020).

Run: python examples/cross_batch_memory.py --epochs 3
"""

import argparse
from collections.abc import Sequence

import torch

from likewise.data import Glyphs, PerClassSampler
from likewise.losses import ContrastiveLoss, CrossBatchMemory
from likewise.metrics import retrieval
from likewise.trunks import Embedder


def main(argv: Sequence[str] | None = None) -> dict[str, float]:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--images", type=int, default=8, help="images per class")
    parser.add_argument("--steps", type=int, default=None, help="steps per epoch; default: one pass over the images")
    parser.add_argument("--size", type=int, default=2048, help="embeddings in the memory")
    args = parser.parse_args(argv)

    train, val = (Glyphs(split, images_per_class=args.images) for split in ("train", "val"))
    images, val_images = (part.pixels().float() / 255 for part in (train, val))

    scores = {}
    for name in ("batch only", "with memory"):
        torch.manual_seed(0)
        model = Embedder("convnet", 64)
        loss = ContrastiveLoss(positive_margin=0.9, negative_margin=0.4)
        # Early embeddings change fast: the memory collects 20 batches before the loss uses it.
        objective = CrossBatchMemory(loss, args.size, warmup=20) if name == "with memory" else loss
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        for _ in range(args.epochs):
            model.train()
            for batch in PerClassSampler(train.labels, classes=8, per_class=2, steps=args.steps):
                optimizer.zero_grad()
                objective(model(images[batch]), train.labels[batch]).backward()
                optimizer.step()
        model.eval()
        with torch.no_grad():
            embeddings = torch.cat([model(chunk) for chunk in val_images.split(256)])
        scores[name] = retrieval(embeddings, val.labels, ks=(1,))["MAP@R"]
        print(f"{name}: validation MAP@R {scores[name]:.3f}")
    return scores


if __name__ == "__main__":
    main()
