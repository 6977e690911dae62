from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from sklearn.neighbors import NeighborhoodComponentsAnalysis

from likewise.formula import SquaredEuclidean
from likewise.linear import LMNN, MCML, MLKR, NCA
from likewise.linear.stream import MCMLObjective, MLKRObjective, NCAObjective, PairObjective
from likewise.linear.targets import LMNNObjective
from likewise.losses import SupConLoss
from tests.linear.sets import blobs, points_of, references
from tests.oracles import linear as oracles
from tests.oracles.linear import Array

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
X, LABELS = blobs(25, 3)
LABELS[0] = 9  # a class of one
NUMBERS = np.random.default_rng(1).normal(size=25)
OBJECTIVES: dict[str, tuple[PairObjective, Callable[[Array], float]]] = {
    "NCA": (NCAObjective(X, LABELS), lambda L: -oracles.nca(X, LABELS, L)),
    "MCML": (MCMLObjective(X, LABELS), lambda L: oracles.mcml(X, LABELS, L)),
    "MLKR": (MLKRObjective(X, NUMBERS), lambda L: oracles.mlkr(X, NUMBERS, L)),
    "LMNN": (LMNNObjective(X, LABELS, 3, 0.3), lambda L: oracles.lmnn(X, LABELS, L, 3, 0.3)),
}


@pytest.mark.parametrize(("rows", "n_components"), [(128, 1), (7, 2)])
@pytest.mark.parametrize("name", OBJECTIVES)
def test_objectives_are_the_loops(name: str, rows: int, n_components: int):
    """The value, and the gradient by central differences, in one chunk and in several, of few and of many components."""
    objective, oracle = OBJECTIVES[name]
    L = 0.3 * np.random.default_rng(1).normal(size=(n_components, 3))
    objective.chunks = [slice(start, min(start + rows, 25)) for start in range(0, 25, rows)]
    value, gradient = objective(L)
    assert np.isclose(value, oracle(L), rtol=1e-12)
    for i, j in np.ndindex(n_components, 3):
        step = np.zeros((n_components, 3))
        step[i, j] = 1e-5
        assert np.isclose(gradient[i, j], (oracle(L + step) - oracle(L - step)) / 2e-5, rtol=1e-5, atol=1e-6)


def test_few_pairs_and_all_pairs_give_one_gradient():
    """Many impostors are summed as a matrix, few as a list."""
    few, many = LMNNObjective(X, LABELS, 2, 0.5), LMNNObjective(X, LABELS, 2, 0.5)
    L = np.eye(3) * 0.1
    many.points = torch.cat([many.points, torch.zeros(25, 50, dtype=torch.float64)], dim=1)  # a higher dimension
    wide = np.concatenate([L, np.zeros((3, 50))], axis=1)
    assert np.isclose(few(L)[0], many(wide)[0])
    assert np.allclose(few(L)[1], many(wide)[1][:, :3])


@pytest.mark.parametrize("width", [0.5, 3.0])
def test_smooth_hinges_have_their_gradient(width: float):
    objective = LMNNObjective(X, LABELS, 3, 0.3)
    exact = objective(np.eye(3))[0]
    objective = objective.smooth(width)
    value, gradient = objective(np.eye(3))
    assert value < exact
    for i, j in np.ndindex(3, 3):
        step = np.zeros((3, 3))
        step[i, j] = 1e-6
        numeric = (objective(np.eye(3) + step)[0] - objective(np.eye(3) - step)[0]) / 2e-6
        assert np.isclose(gradient[i, j], numeric, rtol=1e-5, atol=1e-5)


def test_mcml_is_a_loss_of_ours():
    points, labels = blobs(20)
    loss = SupConLoss(temperature=1.0, similarity=SquaredEuclidean(normalize=False), reduction="sum")
    value = loss(torch.tensor(points), torch.tensor(labels)).item()
    sizes = np.bincount(labels)[labels] - 1
    assert np.isclose(MCMLObjective(points, labels)(np.eye(3))[0], value - np.log(sizes).sum())


def test_nca_is_scikit_learns():
    """The same objective at the same map, and one at least as good from the same start."""
    points, labels = points_of("wine")
    theirs = NeighborhoodComponentsAnalysis(init="identity", max_iter=20, tol=1e-9).fit(points, labels)
    ours = NCA(init="identity", max_iter=20).fit(points, labels)
    objective = NCAObjective(points, labels)
    assert np.isclose(-objective(ours.components_)[0], ours.objective_)
    assert ours.objective_ >= -objective(theirs.components_)[0] - 1e-3
    assert ours.objective_ >= -objective(references()["wine-NCA"])[0] - 1e-3
    assert NCA(n_components=2).fit(points, labels).components_.shape == (2, 13)


def test_mlkr_is_not_above_metric_learn():
    points, labels = points_of("wine")
    numbers = labels.astype(float)
    ours = MLKR(init="identity", max_iter=50).fit(points, numbers)
    assert ours.objective_ <= MLKRObjective(points, numbers)(references()["wine-MLKR"])[0]
    assert np.isclose(ours.objective_, MLKRObjective(points, numbers)(ours.components_)[0])


def of_triangle(objective: Callable[[Array], float], d: int) -> Any:
    """The minimum over positive semi-definite matrices without gradients."""
    where = np.tril_indices(d)

    def value(vector: Array) -> float:
        factor = np.zeros((d, d))
        factor[where] = vector
        return objective(factor)

    start = np.eye(d)[where]
    for _ in range(3):  # it starts over, with a simplex that is not flat
        result = minimize(value, start, method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-10, "maxiter": 4000})
        start = result.x
    return result


@pytest.mark.slow
def test_mcml_and_lmnn_are_minima():
    points, labels = blobs(14, 2, classes=2)
    wanted = of_triangle(lambda L: MCMLObjective(points, labels)(L)[0], 2)
    found = MCML().fit(points, labels)
    assert found.objective_ <= wanted.fun + 1e-6
    assert np.isclose(found.objective_, oracles.mcml(points, labels, found.components_))
    objective = LMNNObjective(points, labels, 2, 0.5)
    wanted = of_triangle(lambda L: objective(L)[0], 2)
    for init in ("identity", "random"):
        learned = LMNN(n_neighbors=2, init=init, random_state=0).fit(points, labels)
        assert learned.objective_ <= wanted.fun * (1.0 + 1e-5)
        assert np.isclose(learned.objective_, oracles.lmnn(points, labels, learned.components_, 2, 0.5))


def test_lmnn_is_below_metric_learn():
    """200 of metric-learn's steps, which start small, against 50 of ours."""
    points, labels = points_of("wine")
    objective = LMNNObjective(points, labels, 3, 0.5)
    theirs = np.linalg.cholesky(references()["wine-LMNN"]).T
    assert LMNN(max_iter=50).fit(points, labels).objective_ < 0.2 * objective(theirs)[0]


def test_memory_is_linear():
    """A chunk is a bounded number of pairs, so that the matrix of all of them never exists."""
    points = np.zeros((40_000, 1))
    objective = NCAObjective(points, np.arange(40_000) // 2)
    assert max(rows.stop - rows.start for rows in objective.chunks) * 40_000 <= 2**23
    assert sum(len(objective.segments(rows)) for rows in objective.chunks) <= 20_000 + len(objective.chunks)


@pytest.mark.parametrize(
    ("estimator", "sentence"),
    [
        (NCA(n_components=7), "n_components must be a whole number from 1 to 3"),
        (NCA(init="best"), "init must be 'auto' or"),
        (NCA(init=np.eye(2)), r"init must have shape \(3, 3\)"),
        (NCA(init="lda"), "init must not be 'lda'"),
        (NCA(tol=-1.0), "tol must be a number ≥ 0"),
        (LMNN(n_neighbors=0), "n_neighbors must be a whole number ≥ 1"),
        (LMNN(regularization=2.0), "regularization must be a number from 0 to 1"),
        (MCML(max_iter=0), "max_iter must be a whole number ≥ 1"),
    ],
    ids=repr,
)
def test_bad_arguments(estimator: Any, sentence: str):
    with pytest.raises(ValueError, match=sentence):
        estimator.fit(*blobs())
