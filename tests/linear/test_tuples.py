from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import linprog, minimize
from sklearn.metrics import euclidean_distances

from likewise.linear import ITML, LSML, MMC, OASIS, POLA, SCML, SchultzJoachims
from likewise.linear.itml import _order_statistics, distance_percentiles
from likewise.linear.lsml import lsml_objective
from tests.linear.sets import points_of, references, tuples
from tests.oracles import linear as oracles
from tests.oracles.linear import Array

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def triangle(vector: Array, d: int) -> Array:
    """A lower triangular matrix from its entries."""
    found = np.zeros((d, d))
    found[np.tril_indices(d)] = vector
    return found


@pytest.mark.parametrize("name", ["wine", "digits"])
def test_itml_is_metric_learns(name: str):
    X, _ = points_of(name)
    wanted = references()
    found = ITML(preprocessor=X).fit(wanted[f"{name}-pairs"], wanted[f"{name}-signs"])
    assert np.abs(found.components_ - wanted[f"{name}-ITML"]).max() < 1e-9
    assert np.allclose(found.bounds_, wanted[f"{name}-ITML-bounds"])
    assert math.isclose(found.threshold_, wanted[f"{name}-ITML-threshold"], rel_tol=1e-9)


@pytest.mark.parametrize(("gamma", "sweeps"), [(1.0, 1), (0.1, 7)])
def test_itml_is_one_projection_after_the_other(gamma: float, sweeps: int):
    pairs, y = tuples("pairs", n=40)
    found = ITML(gamma=gamma, max_iter=sweeps, tol=0.0).fit(pairs, y, bounds=(2.0, 9.0))
    wanted = oracles.itml(pairs, y.tolist(), (2.0, 9.0), gamma, sweeps)
    assert np.allclose(found.get_mahalanobis_matrix(), wanted, rtol=1e-10)
    assert found.n_iter_ == sweeps


def test_percentiles_of_many_points_are_exact():
    X, _ = points_of("wine")
    ranks = np.array([0, 177, 178, 10_000, 178 * 178 - 1])
    assert np.array_equal(_order_statistics(X, ranks, bins=64), np.sort(euclidean_distances(X).ravel())[ranks])
    assert distance_percentiles(X, (50.0,)) == np.median(euclidean_distances(X))


def test_itml_by_lbfgs_is_the_limit_of_the_projections():
    pairs, y = tuples("pairs", n=40)
    options = {"gamma": 0.7, "prior": np.diag([2.0, 1.0, 0.5])}
    limit = ITML(max_iter=3000, tol=1e-13, **options).fit(pairs, y, bounds=(2.0, 9.0)).get_mahalanobis_matrix()
    found = ITML(solver="lbfgs", **options).fit(pairs, y, bounds=(2.0, 9.0)).get_mahalanobis_matrix()
    assert np.allclose(found, limit, atol=1e-6)


def test_itml_leaves_out_equal_points():
    pairs, y = tuples("pairs", n=5)
    more = np.concatenate([pairs, pairs[:2, :1].repeat(2, axis=1)])
    found = ITML().fit(more, [*y, 1, -1], bounds=(1.0, 4.0))
    assert np.allclose(found.components_, ITML().fit(pairs, y, bounds=(1.0, 4.0)).components_)


def test_lsml_is_the_minimum():
    (quadruplets,) = tuples("quadruplets", n=12, d=2)
    weights, prior = np.arange(1.0, 13.0), np.array([[2.0, 0.5], [0.5, 1.0]])

    def objective(matrix: Array) -> float:
        value = float(np.trace(matrix @ np.linalg.inv(prior)) - np.linalg.slogdet(matrix)[1])
        for (a, b, c, d), weight in zip(quadruplets, weights / weights.sum(), strict=True):
            far = math.sqrt(oracles.squared(c, d, matrix))
            value += weight * max(0.0, math.sqrt(oracles.squared(a, b, matrix)) - far) ** 2
        return value

    result = minimize(
        lambda v: objective(triangle(v, 2) @ triangle(v, 2).T), [1.0, 0.0, 1.0], method="Nelder-Mead",
        options={"xatol": 1e-9, "fatol": 1e-12, "maxiter": 4000},
    )  # fmt: skip
    found = LSML(prior=prior).fit(quadruplets, weights=weights).get_mahalanobis_matrix()
    assert objective(found) <= result.fun + 1e-9
    assert np.allclose(found, triangle(result.x, 2) @ triangle(result.x, 2).T, atol=1e-5)


@pytest.mark.parametrize("name", ["wine", "digits"])
def test_lsml_is_not_above_metric_learn(name: str):
    X, _ = points_of(name)
    wanted = references()
    index = wanted[f"{name}-quadruplets"]
    near, far = X[index[:, 0]] - X[index[:, 1]], X[index[:, 2]] - X[index[:, 3]]
    weights = np.full(len(index), 1.0 / len(index))
    ours = LSML(preprocessor=X).fit(index).components_
    theirs = np.linalg.cholesky(wanted[f"{name}-LSML"]).T
    assert lsml_objective(ours, near, far, weights)[0] <= lsml_objective(theirs, near, far, weights)[0]


def mmc_ratio(pairs: Array, y: Array, matrix: Array) -> float:
    v = pairs[:, 0] - pairs[:, 1]
    squares = np.einsum("ni,ij,nj->n", v, matrix, v).clip(0.0)
    return float(np.sqrt(squares[y == -1]).sum() / np.sqrt(squares[y == 1].sum()))


def test_mmc_is_the_maximum():
    pairs, y = tuples("pairs", n=15, d=2)
    result = minimize(
        lambda v: -mmc_ratio(pairs, y, triangle(v, 2) @ triangle(v, 2).T), [1.0, 0.1, 1.0], method="Nelder-Mead",
        options={"xatol": 1e-9, "fatol": 1e-12, "maxiter": 4000},
    )  # fmt: skip
    found = MMC().fit(pairs, y)
    matrix = found.get_mahalanobis_matrix()
    assert mmc_ratio(pairs, y, matrix) >= -result.fun - 1e-6
    v = (pairs[:, 0] - pairs[:, 1])[y == 1]
    assert math.isclose(float(np.einsum("ni,ij,nj->n", v, matrix, v).sum()), 1.0, rel_tol=1e-9)
    X, _ = points_of("wine")
    index, signs = references()["wine-pairs"], references()["wine-signs"]
    ours = MMC(preprocessor=X).fit(index, signs).get_mahalanobis_matrix()
    assert mmc_ratio(X[index], signs, ours) >= mmc_ratio(X[index], signs, references()["wine-MMC"])


@pytest.mark.parametrize("c", [1.0, 5.0])
def test_mmc_diagonal_is_the_minimum(c: float):
    pairs, y = tuples("pairs", n=15)
    v = (pairs[:, 0] - pairs[:, 1]) ** 2

    def objective(weights: Array) -> float:
        return float((v[y == 1] @ weights).sum() - c * np.log(np.sqrt(v[y == -1] @ weights).sum()))

    result = minimize(lambda roots: objective(roots**2), np.full(3, 0.1), method="Nelder-Mead", options={"maxiter": 4000, "xatol": 1e-9, "fatol": 1e-13})  # fmt: skip
    found = MMC(diagonal=True, diagonal_c=c).fit(pairs, y).get_mahalanobis_matrix()
    assert np.array_equal(found, np.diag(np.diag(found)))
    assert objective(np.diag(found)) <= result.fun + 1e-8


def test_mmc_says_where_there_is_no_maximum():
    pairs = np.array([[[0.0, 0.0], [1.0, 0.0]], [[0.0, 0.0], [0.0, 1.0]]])
    for diagonal in (False, True):
        with pytest.raises(ValueError, match="no similar pair differs"):
            MMC(diagonal=diagonal).fit(pairs, [1, -1])
    with pytest.raises(ValueError, match="two different points in a similar and in a dissimilar pair"):
        MMC().fit(pairs, [1, 1])


@pytest.mark.parametrize("beta", [1e-5, 0.01, 100.0])
def test_scml_is_the_linear_program(beta: float):
    (triplets,) = tuples("triplets", n=40)
    basis = np.random.default_rng(0).normal(size=(200, 3))
    anchor, near, far = triplets.transpose(1, 0, 2)
    rows = ((anchor - far) @ basis.T) ** 2 - ((anchor - near) @ basis.T) ** 2
    costs = np.concatenate([np.full(200, beta), np.full(40, 1.0 / 40)])
    wanted = linprog(costs, A_ub=-np.concatenate([rows, np.eye(40)], axis=1), b_ub=-np.ones(40)).fun
    found = SCML(beta=beta, basis=basis).fit(triplets)
    value = beta * found.weights_.sum() + np.maximum(1.0 - rows @ found.weights_, 0.0).mean()
    assert wanted - 1e-9 <= value <= wanted + 1e-6
    matrix = (basis.T * found.weights_) @ basis
    assert np.allclose(found.get_mahalanobis_matrix(), matrix)
    assert len(found.components_) <= 3


def test_scml_draws_its_basis():
    (triplets,) = tuples("triplets", n=40)
    first, again = (SCML(random_state=3).fit(triplets) for _ in range(2))
    assert np.array_equal(first.components_, again.components_)
    assert first.basis_.shape == (240, 3)
    anchor, near, far = triplets.transpose(1, 0, 2)
    euclidean = np.linalg.norm(anchor - far, axis=1) > np.linalg.norm(anchor - near, axis=1)
    assert first.score(triplets) > euclidean.mean() + 0.1
    assert SCML(n_basis=5, random_state=0).fit(triplets[:2]).basis_.shape[0] <= 5
    with pytest.raises(ValueError, match="far point farther"):
        SCML().fit(triplets[:, [0, 1, 1]])


@pytest.mark.parametrize("C", [0.01, 1.0, 50.0])
def test_schultz_joachims_is_the_quadratic_program(C: float):
    (triplets,) = tuples("triplets", n=20)
    anchor, near, far = triplets.transpose(1, 0, 2)
    rows = (anchor - far) ** 2 - (anchor - near) ** 2

    def objective(w: Array) -> float:
        return 0.5 * float(w @ w) + C * float(np.maximum(1.0 - rows @ w, 0.0).sum())

    start = np.concatenate([np.ones(3), np.full(20, 20.0)])
    wanted = minimize(
        lambda z: 0.5 * z[:3] @ z[:3] + C * z[3:].sum(), start, method="SLSQP", bounds=[(0.0, None)] * 23,
        constraints={"type": "ineq", "fun": lambda z: rows @ z[:3] + z[3:] - 1.0}, options={"maxiter": 500, "ftol": 1e-13},
    )  # fmt: skip
    found = SchultzJoachims(C=C).fit(triplets)
    assert objective(found.weights_) <= objective(wanted.x[:3].clip(0.0)) + 1e-6
    assert np.allclose(found.weights_, wanted.x[:3], atol=1e-4)
    assert np.allclose(found.components_, np.diag(np.sqrt(found.weights_)))


def test_pola_is_one_pass():
    pairs, y = tuples("pairs", n=25)
    order = np.random.default_rng(0).permutation(len(y))
    pairs, y = pairs[order], y[order]
    matrix, b = oracles.pola(pairs, y.tolist(), 1.0)
    found = POLA().fit(pairs, y)
    assert np.allclose(found.matrix_, matrix)
    assert math.isclose(found.b_, b)
    assert math.isclose(found.threshold_, math.sqrt(b))
    parts = POLA().partial_fit(pairs[:10], y[:10]).partial_fit(pairs[10:], y[10:])
    assert np.array_equal(parts.matrix_, found.matrix_)
    assert np.allclose(found.get_mahalanobis_matrix(), matrix)


def test_oasis_is_one_pass():
    (triplets,) = tuples("triplets", n=25)
    found = OASIS(c=0.2).fit(triplets)
    matrix = oracles.oasis(triplets, 0.2)
    assert np.allclose(found.get_bilinear_matrix(), matrix)
    parts = OASIS(c=0.2).partial_fit(triplets[:10]).partial_fit(triplets[10:])
    assert np.array_equal(parts.matrix_, found.matrix_)
    scores = [float(p @ matrix @ q) for p, q, _ in triplets]
    assert np.allclose(found.pair_score(triplets[:, :2]), scores)
    assert np.allclose(found.decision_function(triplets), found.pair_score(triplets[:, :2]) - found.pair_score(triplets[:, [0, 2]]))  # fmt: skip
    assert np.array_equal(OASIS(init=matrix, c=1e-12).fit(triplets[:1]).matrix_.round(6), matrix.round(6))
