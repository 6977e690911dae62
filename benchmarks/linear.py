"""Linear metric learning, side by side with metric-learn and scikit-learn.

    OMP_NUM_THREADS=1 python -m benchmarks.linear   wine, digits and n = 5,000, d = 128: CPU seconds of one thread and the
                                                    objective of each library, some minutes; writes
                                                    benchmarks/results/linear-cpu.json
    OMP_NUM_THREADS=1 python -m benchmarks.linear --n 60000 --share 0.05
                                                    one evaluation of NCA, LMNN and MLKR at n = 60,000, d = 784, on a share
                                                    of the rows: CPU seconds of one thread, scaled to all rows, and the peak
                                                    of memory of the process; some minutes, into the same file
    python -m benchmarks.linear --device cuda       the same on all rows, and a metric on a million embeddings; writes
                                                    benchmarks/results/linear-cuda.json

Every row is written when it is measured, and rows that are there are not measured again.  Where metric-learn (0.7.0, with
scikit-learn 1.7) is not installed, its columns are missing.  The libraries take turns, and each row keeps the least time of
each.  metric-learn is stopped after `--limit` CPU seconds; its objective is then the best that it evaluated.  A row has also the
time of the shortest of our fits (the fewest iterations; for SCML, the fewest basis vectors) that reaches metric-learn's objective
to six digits.
"""

from __future__ import annotations

import signal
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.datasets import load_digits, load_wine, make_classification
from sklearn.neighbors import NeighborhoodComponentsAnalysis
from sklearn.preprocessing import StandardScaler

from benchmarks.harness import RESULTS, high_water, machine, make_parser, read, versions, write
from likewise import linear
from likewise.linear.itml import itml_objective
from likewise.linear.lsml import lsml_objective
from likewise.linear.stream import MLKRObjective, NCAObjective
from likewise.linear.targets import LMNNObjective
from likewise.losses import ContrastiveLoss

try:
    import metric_learn
except ImportError:
    metric_learn = None


SIZES = (1, 2, 3, 4, 6, 8, 10, 15, 20, 30, 40, 60, 80, 100, 150, 200, 300, 500, 1000)
"""Iterations of the fits that are tried until one reaches metric-learn's objective."""


class Journal:
    """Rows by name in a file that is written after each."""

    def __init__(self, file: Path, device: str) -> None:
        self.file = file
        packages = versions("torch", "numpy", "scipy", "scikit-learn", "metric-learn")
        self.content = {**machine(device), "versions": packages, "rows": {}}
        del self.content["threads"]  # each row has its own: some are measured with one, some with all
        self.content["rows"] = (read(file) or self.content)["rows"]

    def measure(self, name: str, row: Callable[[], dict[str, Any]]) -> None:
        if name in self.content["rows"]:
            return
        self.content["rows"][name] = {**row(), "threads": torch.get_num_threads()}
        print(name, self.content["rows"][name], flush=True)
        write(self.content, self.file)


if metric_learn is not None:

    class WatchedNCA(metric_learn.NCA):  # type: ignore[misc]
        """Keeps the best map that was evaluated, for a run that is stopped."""

        best = np.inf

        def _loss_grad_lbfgs(self, transformation: Any, X: Any, *rest: Any) -> Any:
            value, gradient = super()._loss_grad_lbfgs(transformation, X, *rest)
            if value < self.best:
                self.best, self.components_ = value, transformation.reshape(-1, X.shape[1]).copy()
            return value, gradient

    class WatchedLMNN(metric_learn.LMNN):  # type: ignore[misc]
        """The same."""

        best = np.inf

        def _loss_grad(self, X: Any, L: Any, *rest: Any) -> Any:
            gradient, value, active = super()._loss_grad(X, L, *rest)
            if value < self.best:
                self.best, self.kept = value, L
            return gradient, value, active


def timed(call: Callable[[], Any], clock: Callable[[], float] = time.perf_counter) -> tuple[Any, float]:
    start = clock()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = call()
    return found, clock() - start


def fit_within(estimator: Any, arguments: tuple[Any, ...], limit: float) -> tuple[Any, float, bool]:
    """A fitted estimator, its CPU seconds, and whether it came to an end; a limit of zero is none."""

    def stop(*_: object) -> None:
        raise TimeoutError

    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, limit)
    try:
        return (*timed(lambda: estimator.fit(*arguments), time.process_time), True)
    except TimeoutError:
        if hasattr(estimator, "kept"):
            estimator.components_ = estimator.kept
        return estimator, limit, False
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)


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


def reach(
    goal: float, value: Callable[[Any], float], arguments: tuple[Any, ...], make: Callable[[int], Any]
) -> dict[str, Any] | None:
    """The shortest fit that reaches an objective: its CPU seconds, least of up to three, and its size."""
    for size in SIZES:
        found, seconds, _ = fit_within(make(size), arguments, 0.0)
        if value(found) <= goal + 1e-6 * abs(goal):
            more = [fit_within(make(size), arguments, 0.0)[1] for _ in range(2)] if seconds < 5.0 else []
            return {"seconds": min([seconds, *more]), "objective": value(found), "finished": True, "size": size}
    return None


Row = Callable[[], dict[str, Any]]


def rows_of(X: np.ndarray, y: np.ndarray, constraints: int, iterations: int, limit: float) -> dict[str, Row]:
    """The methods on one data set: CPU seconds and objective of each library; lower objectives are better."""
    pairs, signs, quadruplets = draw(y, constraints)
    triplets = triplets_of(y, constraints)
    near, far = X[quadruplets[:, 0]] - X[quadruplets[:, 1]], X[quadruplets[:, 2]] - X[quadruplets[:, 3]]
    uniform = np.full(len(near), 1.0 / len(near))
    a, b, c = X[triplets].transpose(1, 0, 2)

    def compare(
        value: Callable[[Any], float],
        arguments: tuple[Any, ...],
        shorter: Callable[[int], Any] | None = None,
        **makers: Callable[[], Any] | None,
    ) -> Row:
        def row() -> dict[str, Any]:
            result: dict[str, Any] = {}
            for _ in range(3):
                for name, make in makers.items():
                    before = result.get(name)
                    if make is None or (before and (not before["finished"] or before["seconds"] > 5.0)):
                        continue
                    found, seconds, finished = fit_within(make(), arguments, 0.0 if name == "likewise" else limit)
                    best = min(seconds, before["seconds"]) if before else seconds
                    result[name] = {"seconds": best, "objective": value(found), "finished": finished}
            if shorter and "metric_learn" in result:
                result["shorter"] = reach(result["metric_learn"]["objective"], value, arguments, shorter)
            return {name.replace("_", "-"): each for name, each in result.items()}

        return row

    def scml_value(found: Any) -> float:
        """Basis vectors have length one, so that the sum of weights is the trace."""
        matrix = found.get_mahalanobis_matrix()
        far_, near_ = ((((a - p) @ matrix) * (a - p)).sum(axis=1) for p in (c, b))
        return float(np.maximum(1.0 - far_ + near_, 0.0).mean() + 1e-5 * np.trace(matrix))

    def itml_value(found: Any) -> float:
        bounds = np.where(signs == 1, *found.bounds_)
        factor = root(found.get_mahalanobis_matrix())
        return itml_objective(factor, X[pairs[:, 0]] - X[pairs[:, 1]], signs == 1, bounds, 1.0)[0]

    def lsml_value(found: Any) -> float:
        return lsml_objective(root(found.get_mahalanobis_matrix()), near, far, uniform)[0]

    ml, options = metric_learn, {"init": "identity", "max_iter": iterations}
    nca, lmnn = NCAObjective(X, y), LMNNObjective(X, y, 3, 0.5)
    return {
        "ITML": compare(
            itml_value,
            (pairs, signs),
            lambda size: linear.ITML(preprocessor=X, solver="lbfgs", max_iter=size),
            likewise=lambda: linear.ITML(preprocessor=X),
            metric_learn=ml and (lambda: ml.ITML(preprocessor=X)),
        ),
        "ITML, L-BFGS": compare(
            itml_value, (pairs, signs), likewise=lambda: linear.ITML(preprocessor=X, solver="lbfgs")
        ),
        "LSML": compare(
            lsml_value,
            (quadruplets,),
            lambda size: linear.LSML(preprocessor=X, max_iter=size),
            likewise=lambda: linear.LSML(preprocessor=X),
            metric_learn=ml and (lambda: ml.LSML(preprocessor=X)),
        ),
        "SCML": compare(
            scml_value,
            (triplets,),
            lambda size: linear.SCML(preprocessor=X, random_state=0, n_basis=size * X.shape[1] // 4),
            likewise=lambda: linear.SCML(preprocessor=X, random_state=0),
            metric_learn=ml and (lambda: ml.SCML(preprocessor=X, random_state=0)),
        ),
        "NCA": compare(
            lambda found: nca(found.components_)[0],
            (X, y),
            lambda size: linear.NCA(init="identity", max_iter=size),
            likewise=lambda: linear.NCA(**options),
            metric_learn=ml and (lambda: WatchedNCA(**options)),
            scikit_learn=lambda: NeighborhoodComponentsAnalysis(tol=1e-9, **options),
        ),
        "LMNN": compare(
            lambda found: lmnn(root(found.get_mahalanobis_matrix()))[0],
            (X, y),
            lambda size: linear.LMNN(max_iter=size),
            likewise=(lambda: linear.LMNN()) if len(X) < 1000 else None,  # minutes
            metric_learn=ml and (lambda: WatchedLMNN(n_neighbors=3)),
        ),
    }


def compare_libraries(journal: Journal, limit: float, only: str) -> None:
    wine, digits = load_wine(return_X_y=True), load_digits(return_X_y=True)
    large = make_classification(5000, 128, n_informative=40, n_classes=10, class_sep=2.0, random_state=0)
    sets = {
        "wine": (StandardScaler().fit_transform(wine[0]), wine[1], 400, 50),
        "digits": (digits[0] / 16.0, digits[1], 400, 20),
        "n=5000 d=128": (large[0] / 10.0, large[1], 2000, 10),
    }
    for name, (X, y, constraints, iterations) in sets.items():
        for method, row in rows_of(X, y, constraints, iterations, limit).items():
            if only in f"{name} {method}":
                journal.measure(f"{name} {method}", row)


def print_table(journal: Journal) -> None:
    """The rows of the libraries as a table in Markdown."""

    def cell(measured: dict[str, Any] | None) -> str:
        if measured is None:
            return ""
        sign = "" if measured["finished"] else "> "
        return f"{sign}{measured['seconds']:.3g} s, {measured['objective']:.7g}"

    print(
        "| | metric-learn | likewise reaches it | times faster | likewise | scikit-learn |\n| :-- " + "| --: " * 5 + "|"
    )
    for name, row in journal.content["rows"].items():
        if "likewise" in row or "shorter" in row:
            theirs, ours = row.get("metric-learn"), row.get("shorter")
            times = f"{theirs['seconds'] / ours['seconds']:.2g}" if theirs and ours else ""
            cells = [cell(theirs), cell(ours), times, cell(row.get("likewise")), cell(row.get("scikit-learn"))]
            print("|", " | ".join([name, *cells]), "|")


def measure_evaluations(journal: Journal, device: str, n: int, d: int, share: float) -> None:
    """Seconds and memory of one objective and gradient, or of a share of its rows."""
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
            objective.chunks = objective.chunks[: max(1, round(share * len(objective.chunks)))]
            done = objective.chunks[-1].stop / n
            # CPU seconds of a CPU: other programs do not change them
            clock, rounds = (time.process_time, 1) if device == "cpu" else (time.perf_counter, 3)
            seconds = min(timed(lambda: objective(np.eye(d)), clock)[1] for _ in range(rounds))
            memory = high_water(device) / 2**20
            return {"seconds": seconds / done, "share": done, "MiB": memory, "n": n, "d": d}

        journal.measure(f"{name} evaluation n={n} d={d}", row)


def measure_million(journal: Journal, device: str, n: int, classes: int) -> None:
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

    journal.measure(f"mini-batches n={n} classes={classes}", row)


if __name__ == "__main__":
    parser = make_parser(__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--n", type=int, help="points of the evaluations; by default 60,000 on a GPU, none on a CPU")
    parser.add_argument("--share", type=float, default=1.0, help="share of the rows that an evaluation has")
    parser.add_argument("--only", default="", help="only rows whose names have this, such as 'wine' or 'd=128 NCA'")
    parser.add_argument("--table", action="store_true", help="print what was measured as a table, and measure nothing")
    parser.add_argument("--limit", type=float, default=120.0, help="CPU seconds after which a fit is stopped")
    parser.add_argument("--million", type=int, help="points of the mini-batches; by default 1,000,000 on a GPU")
    chosen = parser.parse_args()
    gpu = chosen.device != "cpu"
    where = Journal(RESULTS / f"linear-{'cuda' if gpu else 'cpu'}.json", chosen.device)
    if chosen.table:
        print_table(where)
        raise SystemExit
    if not gpu and not chosen.n and not chosen.million:
        compare_libraries(where, chosen.limit, chosen.only)
    if gpu or chosen.n:
        measure_evaluations(where, chosen.device, chosen.n or 60_000, 784, chosen.share)
    if gpu or chosen.million:
        million = chosen.million or 1_000_000
        measure_million(where, chosen.device, million, max(10, million // 100))
