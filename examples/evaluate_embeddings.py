"""Evaluate embeddings from another program, stored in an .npz file with the arrays `embeddings` and `labels`.

Run: python examples/evaluate_embeddings.py my_embeddings.npz
     python examples/evaluate_embeddings.py          # without a file: synthetic embeddings
"""

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from likewise.metrics import bootstrap, clustering, encode_labels, retrieval, verification


def write_synthetic(file: Path) -> None:
    random = np.random.default_rng(0)
    labels = np.arange(40).repeat(10)
    embeddings = random.normal(size=(40, 64))[labels] + 1.5 * random.normal(size=(400, 64))
    np.savez(file, embeddings=embeddings.astype(np.float32), labels=np.array([f"class {label}" for label in labels]))


def main(argv: Sequence[str] | None = None) -> dict[str, Any]:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", nargs="?", type=Path)
    args = parser.parse_args(argv)
    if args.file is None:
        args.file = Path(tempfile.mkdtemp()) / "embeddings.npz"
        write_synthetic(args.file)

    with np.load(args.file) as content:  # object arrays are refused: they would be unpickled
        embeddings, names = content["embeddings"], content["labels"]
    labels, _ = encode_labels(names)  # class names to integers

    # Every sample is a query among all others. Ranks are counted, so that each value is exact for any k.
    scores = retrieval(embeddings, labels, ks=(1, 10, 100))
    for name in ("R@1", "R@10", "R@100", "MAP@R", "mAP"):
        print(f"{name:8} {scores[name]:.4f}")

    per_query = retrieval(embeddings, labels, reduce="none")["MAP@R"]
    print("MAP@R with 95% interval over classes:", bootstrap(per_query, groups=labels))
    print("clusters:", {name: round(value, 4) for name, value in clustering(embeddings, labels).items()})
    print("same or not: AUC", round(verification(embeddings, labels)["AUC"], 4))
    return scores


if __name__ == "__main__":
    main()
