"""Linear metric learning, side by side with metric-learn and scikit-learn.

    python -m benchmarks.linear                    wine, digits and n = 5,000, d = 128; some minutes on two cores
                                                   writes benchmarks/results/linear-cpu.json
    python -m benchmarks.linear --device cuda      NCA, LMNN and MLKR at n = 60,000, d = 784, and a metric on a million
                                                   embeddings; writes benchmarks/results/linear-cuda.json

Every row is written when it is measured, and rows that are there are not measured again.  Where metric-learn (0.7.0, with
scikit-learn 1.7) is not installed, its columns are missing.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from sklearn.datasets import load_digits, load_wine, make_classification
from sklearn.neighbors import NeighborhoodComponentsAnalysis
from sklearn.preprocessing import StandardScaler

from benchmarks.harness import RESULTS, high_water, machine, make_parser, read, versions, write
from likewise import linear
from likewise.linear.lsml import lsml_objective
from likewise.linear.stream import MLKRObjective, NCAObjective
from likewise.linear.targets import LMNNObjective
from likewise.losses import ContrastiveLoss

try:
    import metric_learn
except ImportError:
    metric_learn = None

Measure: TypeAlias = Callable[[str, Callable[[], dict[str, Any]]], None]
"""Takes the name of a row and what measures it."""


def measure_row(report: dict[str, Any], path: Path, name: str, row: Callable[[], dict[str, Any]]) -> None:
    """Measure a row that is missing, and write the results."""
    if name not in report["rows"]:
        report["rows"][name] = row()
        print(name, report["rows"][name], flush=True)
        write(report, path)


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = call()
    return found, time.perf_counter() - start


def draw(labels: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pairs, half of them similar, with labels; and quadruplets of a similar and a dissimilar pair."""
    random = np.random.default_rng(0)
    a, b = random.integers(len(labels), size=(2, 40 * n))
    same, other = (labels[a] == labels[b]) & (a != b), labels[a] != labels[b]
    near, far = np.stack([a, b], axis=1)[same][:n], np.stack([a, b], axis=1)[other][:n]
    pairs = np.concatenate([near[: n // 2], far[: n // 2]])
    return pairs, np.repeat([1, -1], n // 2), np.concatenate([near, far], axis=1)


def triplets_of(labels: np.ndarray, n: int) -> np.ndarray:
    random = np.random.default_rng(1)
    found = []
    while len(found) < n:
        a, b, c = random.integers(len(labels), size=3)
        if a != b and labels[a] == labels[b] != labels[c]:
            found.append((a, b, c))
    return np.array(found)


def root(matrix: np.ndarray) -> np.ndarray:
    values, vectors = np.linalg.eigh(matrix)
    return np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T


def rows_of(X: np.ndarray, y: np.ndarray, constraints: int, iterations: int) -> dict[str, Callable[[], dict[str, Any]]]:
    """The methods on one data set: seconds and objective of each library; lower objectives are better."""
    pairs, signs, quadruplets = draw(y, constraints)
    triplets = triplets_of(y, constraints)
    near, far = X[quadruplets[:, 0]] - X[quadruplets[:, 1]], X[quadruplets[:, 2]] - X[quadruplets[:, 3]]
    uniform = np.full(len(near), 1.0 / len(near))
    a, b, c = X[triplets].transpose(1, 0, 2)

    def compare(
        ours: Callable[[], Any],
        theirs: Callable[[], Any] | None,
        value: Callable[[Any], float],
        name: str = "metric-learn",
    ) -> Callable[[], dict[str, Any]]:
        def row() -> dict[str, Any]:
            found, seconds = timed(ours)
            result = {"likewise": {"seconds": seconds, "objective": value(found)}}
            if theirs is not None:
                other, seconds = timed(theirs)
                result[name] = {"seconds": seconds, "objective": value(other)}
            return result

        return row

    def scml_value(found: Any) -> float:
        """The mean hinge: metric-learn does not give its weights, whose sum counts 1e-5."""
        matrix = found.get_mahalanobis_matrix()
        far_, near_ = ((((a - p) @ matrix) * (a - p)).sum(axis=1) for p in (c, b))
        return float(np.maximum(1.0 - far_ + near_, 0.0).mean())

    ml = metric_learn
    nca, lmnn = NCAObjective(X, y), LMNNObjective(X, y, 3, 0.5)
    prior = np.eye(X.shape[1])

    def itml_value(found: Any) -> float:
        matrix = found.get_mahalanobis_matrix()
        return float(np.trace(matrix @ prior) - np.linalg.slogdet(matrix)[1])

    return {
        "ITML": compare(
            lambda: linear.ITML(preprocessor=X).fit(pairs, signs),
            None if ml is None else lambda: ml.ITML(preprocessor=X).fit(pairs, signs),
            itml_value,
        ),
        "LSML": compare(
            lambda: linear.LSML(preprocessor=X).fit(quadruplets),
            None if ml is None else lambda: ml.LSML(preprocessor=X).fit(quadruplets),
            lambda found: lsml_objective(root(found.get_mahalanobis_matrix()), near, far, uniform)[0],
        ),
        "SCML": compare(
            lambda: linear.SCML(preprocessor=X, random_state=0).fit(triplets),
            None if ml is None else lambda: ml.SCML(preprocessor=X, random_state=0).fit(triplets),
            scml_value,
        ),
        "NCA": compare(
            lambda: linear.NCA(init="identity", max_iter=iterations).fit(X, y),
            None if ml is None else lambda: ml.NCA(init="identity", max_iter=iterations).fit(X, y),
            lambda found: nca(found.components_)[0],
        ),
        "NCA, scikit-learn": compare(
            lambda: linear.NCA(init="identity", max_iter=iterations).fit(X, y),
            lambda: NeighborhoodComponentsAnalysis(init="identity", max_iter=iterations, tol=1e-9).fit(X, y),
            lambda found: nca(found.components_)[0],
            "scikit-learn",
        ),
        "LMNN": compare(
            lambda: linear.LMNN().fit(X, y),
            None if ml is None else lambda: ml.LMNN(n_neighbors=3).fit(X, y),
            lambda found: lmnn(root(found.get_mahalanobis_matrix()))[0],
        ),
    }


def compare_libraries(measure: Measure) -> None:
    wine, digits = load_wine(return_X_y=True), load_digits(return_X_y=True)
    large = make_classification(5000, 128, n_informative=40, n_classes=10, class_sep=2.0, random_state=0)
    sets = {
        "wine": (StandardScaler().fit_transform(wine[0]), wine[1], 400, 50),
        "digits": (digits[0] / 16.0, digits[1], 400, 20),
        "n=5000 d=128": (large[0] / 10.0, large[1], 2000, 10),
    }
    for name, (X, y, constraints, iterations) in sets.items():
        for method, row in rows_of(X, y, constraints, iterations).items():
            measure(f"{name} {method}", row)


def measure_evaluations(measure: Measure, device: str, n: int, d: int) -> None:
    """Seconds and memory of one objective and gradient."""
    random = np.random.default_rng(0)
    labels = np.arange(n) % 10
    X = 0.1 * random.normal(size=(n, d)) + 0.1 * random.normal(size=(10, d))[labels]
    objectives: dict[str, Callable[[], Any]] = {
        "NCA": lambda: NCAObjective(X, labels, device),
        "LMNN": lambda: LMNNObjective(X, labels, 3, 0.5, device),
        "MLKR": lambda: MLKRObjective(X, labels.astype(float), device),
    }
    for name, make in objectives.items():

        def row(make: Callable[[], Any] = make) -> dict[str, Any]:
            high_water(device, forget=True)
            objective = make()
            times = []
            for _ in range(1 if device == "cpu" else 3):
                _, seconds = timed(lambda: objective(np.eye(d)))
                times.append(seconds)
            return {"seconds": min(times), "MiB": high_water(device) / 2**20, "n": n, "d": d}

        measure(f"{name} evaluation n={n} d={d}", row)


def measure_million(measure: Measure, device: str, n: int, classes: int) -> None:
    """A linear metric on many embeddings by mini-batches."""

    def row() -> dict[str, Any]:
        random = np.random.default_rng(0)
        labels = np.arange(n) % classes
        centers = random.standard_normal((classes, 512), dtype=np.float32)
        X = random.standard_normal((n, 512), dtype=np.float32)
        X += centers[labels] * (np.arange(512) < 128)
        X[:, 256:] *= 3.0  # noise that a metric can suppress
        metric = linear.LinearMetric(
            ContrastiveLoss(), n_components=128, init="pca", batch_size=2048, max_iter=2, device=device, random_state=0
        )
        fitted, seconds = timed(lambda: metric.fit(X, labels))
        sample = np.flatnonzero(labels < 200)
        accuracy = {}
        for name, points in (("before", X[sample]), ("after", fitted.transform(X[sample]))):
            unit = torch.nn.functional.normalize(torch.as_tensor(points, dtype=torch.float32)).to(device)
            similarities = (unit @ unit.T).fill_diagonal_(-2.0)
            nearest = similarities.argmax(dim=1).cpu().numpy()
            accuracy[name] = float((labels[sample][nearest] == labels[sample]).mean())
        return {"seconds": seconds, "steps": fitted.n_iter_, "R@1": accuracy, "n": n, "classes": classes}

    measure(f"mini-batches n={n} classes={classes}", row)


if __name__ == "__main__":
    parser = make_parser(__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--n", type=int, help="points of the evaluations; by default 60,000 on a GPU, none on a CPU")
    parser.add_argument("--million", type=int, help="points of the mini-batches; by default 1,000,000 on a GPU")
    chosen = parser.parse_args()
    gpu = chosen.device != "cpu"
    path = RESULTS / f"linear-{'cuda' if gpu else 'cpu'}.json"
    packages = versions("torch", "numpy", "scipy", "scikit-learn", "metric-learn")
    report = {**machine(chosen.device), "versions": packages, "rows": (read(path) or {"rows": {}})["rows"]}
    measure = partial(measure_row, report, path)
    if not gpu:
        compare_libraries(measure)
    if gpu or chosen.n:
        measure_evaluations(measure, chosen.device, chosen.n or 60_000, 784)
    if gpu or chosen.million:
        million = chosen.million or 1_000_000
        measure_million(measure, chosen.device, million, max(10, million // 100))
