"""Nearest neighbors and "is it a match?" with a trained model (in PML: InferenceModel, FaissKNN, MatchFinder).

Run: python examples/from_pytorch_metric_learning/inference.py
"""

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

import torch

from likewise.data import Glyphs
from likewise.metrics import verification
from likewise.search import Index
from likewise.trunks import Embedder


def main(argv: Sequence[str] | None = None) -> float:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=6, help="images per class")
    args = parser.parse_args(argv)

    torch.manual_seed(0)
    gallery, queries = (Glyphs("val", images_per_class=args.images, seed=seed) for seed in (0, 1))
    model = Embedder("convnet", 64).eval()  # in practice: load a trained one
    with torch.no_grad():
        vectors, query_vectors = (model(part.pixels().float() / 255) for part in (gallery, queries))

    # There: inference_model.train_knn(dataset), .get_nearest_neighbors(query, k=5).
    index = Index.create(Path(tempfile.mkdtemp()) / "glyphs.index", dim=64)
    names = [gallery.class_names[label] for label in gallery.labels]
    index.add(vectors.numpy(), paths=[gallery.source(i) for i in range(len(gallery))], labels=names)
    for id, score in index.search(query_vectors[:1].numpy(), k=5).of(0):
        print(f"{score:.4f}  {index.item(id).path}")

    # There: MatchFinder(threshold=0.7).is_match(x, y). Here the threshold follows from an accepted rate of false matches.
    found = verification(vectors, gallery.labels, far=(0.01,))
    threshold = found["threshold@0.01"]
    print(f"threshold for 1% false matches: {threshold:.4f} (finds {found['TAR@0.01']:.1%} of the true ones)")
    same = torch.cosine_similarity(query_vectors, vectors) >= threshold  # image k of both is of the same character
    print(f"matches of new images: {same.float().mean():.1%}")
    return float(found["AUC"])


if __name__ == "__main__":
    main()
