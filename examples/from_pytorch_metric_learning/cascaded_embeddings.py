"""Several embeddings, each trained on the hard pairs of the one before (in PML: CascadedEmbeddings with HDCMiner).

Run: python examples/from_pytorch_metric_learning/cascaded_embeddings.py --epochs 3

Yuan et al. 2017. The embeddings are slices of one output; together they are the embedding that is evaluated.
"""

import argparse
from collections.abc import Sequence

import torch

from likewise.data import Glyphs, PerClassSampler
from likewise.losses import Cascade, ContrastiveLoss
from likewise.metrics import retrieval
from likewise.trunks import Embedder


def main(argv: Sequence[str] | None = None) -> dict[str, float]:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--images", type=int, default=8, help="images per class")
    parser.add_argument("--steps", type=int, default=None, help="steps per epoch; default: one pass over the images")
    args = parser.parse_args(argv)

    torch.manual_seed(0)
    train, val = (Glyphs(split, images_per_class=args.images) for split in ("train", "val"))
    images, val_images = (part.pixels().float() / 255 for part in (train, val))

    dims = (32, 32, 32)
    model = Embedder("convnet", sum(dims), normalize=False)  # every slice is normalized by the loss
    # There: HDCMiner(filter_percentage=...) for each embedding. The second gets half of the pairs, the third a fifth of those.
    loss = Cascade(ContrastiveLoss(), dims, shares=(0.5, 0.2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for epoch in range(args.epochs):
        model.train()
        for batch in PerClassSampler(
            train.labels, classes=32, per_class=min(4, args.images), steps=args.steps, seed=epoch
        ):
            optimizer.zero_grad()
            loss(model(images[batch]), train.labels[batch]).backward()
            optimizer.step()

    model.eval()
    with torch.no_grad():
        embeddings = torch.cat([model(chunk) for chunk in val_images.split(256)])
    parts = dict(zip(("first", "second", "third"), embeddings.split(dims, dim=1), strict=True))
    scores = {name: retrieval(part, val.labels)["MAP@R"] for name, part in {**parts, "together": embeddings}.items()}
    print("validation MAP@R:", {name: round(score, 3) for name, score in scores.items()})
    return scores


if __name__ == "__main__":
    main()
