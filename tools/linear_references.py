"""Write what metric-learn 0.7.0 finds on wine and digits, for tests/linear.

    python tools/linear_references.py       in an environment with metric-learn 0.7.0 and scikit-learn 1.7
                                            writes tests/linear/data/metric_learn.npz

SDML is missing: it raises with every scikit-learn that metric-learn 0.7.0 accepts.  Tuples are drawn here with numpy and stored as indices, so that both libraries see the same ones.
"""

from __future__ import annotations

import time
import warnings
from pathlib import Path

import metric_learn
import numpy as np
from sklearn.datasets import load_digits, load_wine
from sklearn.preprocessing import StandardScaler

OUT = Path(__file__).parents[1] / "tests" / "linear" / "data" / "metric_learn.npz"


def draw(labels: np.ndarray, n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pairs with labels, half of them similar, and quadruplets, the near pair of one class and the far one of two."""
    rng = np.random.default_rng(seed)
    near, far = [], []
    while min(len(near), len(far)) < n:
        a, b = rng.integers(len(labels), size=2)
        if a != b:
            (near if labels[a] == labels[b] else far).append((a, b))
    near_pairs, far_pairs = np.array(near[:n]), np.array(far[:n])
    pairs = np.stack([near_pairs[: n // 2], far_pairs[: n // 2]], axis=1).reshape(-1, 2)
    return pairs, np.tile([1, -1], n // 2), np.concatenate([near_pairs, far_pairs], axis=1)


def triplets_of(labels: np.ndarray, n: int, seed: int) -> np.ndarray:
    """Triplets: an anchor, another point of its class, and one of another class."""
    rng = np.random.default_rng(seed)
    found = []
    while len(found) < n:
        a, b, c = rng.integers(len(labels), size=3)
        if a != b and labels[a] == labels[b] != labels[c]:
            found.append((a, b, c))
    return np.array(found)


def main() -> None:
    """Fit everything that works and store matrices."""
    warnings.simplefilter("ignore")
    sets = {"wine": load_wine(return_X_y=True), "digits": load_digits(return_X_y=True)}
    content = {}
    for name, (X, y) in sets.items():
        X = StandardScaler().fit_transform(X) if name == "wine" else X / 16.0
        pairs, signs, quadruplets = draw(y, 400, seed=0)
        triplets = triplets_of(y, 400, seed=1)
        content |= {f"{name}-pairs": pairs, f"{name}-signs": signs, f"{name}-quadruplets": quadruplets}
        content[f"{name}-triplets"] = triplets
        start = time.time()
        content[f"{name}-Covariance"] = metric_learn.Covariance().fit(X).get_mahalanobis_matrix()
        if name == "wine":  # NaN on digits
            content[f"{name}-RCA"] = metric_learn.RCA().fit(X, y).get_mahalanobis_matrix()
            content[f"{name}-RCA-2"] = metric_learn.RCA(n_components=2).fit(X, y).get_mahalanobis_matrix()
        itml = metric_learn.ITML(preprocessor=X).fit(pairs, signs)
        content[f"{name}-ITML"] = itml.components_
        content[f"{name}-ITML-bounds"] = itml.bounds_
        content[f"{name}-ITML-threshold"] = np.array(itml.threshold_)
        content[f"{name}-LSML"] = metric_learn.LSML(preprocessor=X).fit(quadruplets).get_mahalanobis_matrix()
        content[f"{name}-SCML"] = (
            metric_learn.SCML(preprocessor=X, basis="triplet_diffs", n_basis=200, random_state=0)
            .fit(triplets).get_mahalanobis_matrix()
        )  # fmt: skip
        content[f"{name}-LMNN"] = metric_learn.LMNN(n_neighbors=3, max_iter=200).fit(X, y).get_mahalanobis_matrix()
        if name == "wine":
            content[f"{name}-NCA"] = metric_learn.NCA(init="identity", max_iter=50).fit(X, y).components_
            content[f"{name}-MLKR"] = (
                metric_learn.MLKR(init="identity", max_iter=50).fit(X, y.astype(float)).components_
            )
            content[f"{name}-MMC"] = metric_learn.MMC(preprocessor=X).fit(pairs, signs).get_mahalanobis_matrix()
        print(name, f"{time.time() - start:.1f} s")
    np.savez_compressed(OUT, **content)


if __name__ == "__main__":
    main()
