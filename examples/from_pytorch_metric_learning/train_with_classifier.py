"""A metric loss plus a classifier on the embedding (in PML: the trainer TrainWithClassifier).

Run: python examples/from_pytorch_metric_learning/train_with_classifier.py --epochs 3

A classifier is a loss with proxies, so both losses are one weighted sum.
"""

import argparse
from collections.abc import Sequence

import torch

from likewise.data import Glyphs, PerClassSampler
from likewise.losses import MultiSimilarityLoss, SoftmaxLoss, WeightedSum
from likewise.metrics import retrieval
from likewise.miners import MultiSimilarityMiner
from likewise.trunks import Embedder


def main(argv: Sequence[str] | None = None) -> float:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--images", type=int, default=8, help="images per class")
    parser.add_argument("--steps", type=int, default=None, help="steps per epoch; default: one pass over the images")
    args = parser.parse_args(argv)

    torch.manual_seed(0)
    train, val = (Glyphs(split, images_per_class=args.images) for split in ("train", "val"))
    images, val_images = (part.pixels().float() / 255 for part in (train, val))

    model = Embedder("convnet", 64, normalize=False)  # the softmax uses the length of the embeddings
    metric = MultiSimilarityLoss(miner=MultiSimilarityMiner(epsilon=0.1))
    classifier = SoftmaxLoss(len(train.class_names), 64, bias=True)
    loss = WeightedSum({metric: 1.0, classifier: 0.5})  # there: loss_weights={"metric_loss": 1, "classifier_loss": 0.5}
    groups = [{"params": model.parameters(), "lr": 1e-3}, {"params": loss.parameters(), "lr": 1e-2}]
    optimizer = torch.optim.AdamW(groups)

    score = 0.0
    for epoch in range(args.epochs):
        model.train()
        correct = total = 0
        for batch in PerClassSampler(
            train.labels, classes=32, per_class=min(4, args.images), steps=args.steps, seed=epoch
        ):
            embeddings, labels = model(images[batch]), train.labels[batch]
            optimizer.zero_grad()
            loss(embeddings, labels).backward()
            optimizer.step()
            correct += int((classifier.logits(embeddings).argmax(1) == labels).sum())
            total += len(batch)
        model.eval()
        with torch.no_grad():
            embeddings = torch.cat([model(chunk) for chunk in val_images.split(256)])
        score = retrieval(embeddings, val.labels, ks=(1,))["MAP@R"]
        print(f"epoch {epoch + 1}: classified {correct / total:.3f} in training, validation MAP@R {score:.3f}")
    return score


if __name__ == "__main__":
    main()
