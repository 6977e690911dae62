from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.neighbors import KNeighborsClassifier

from likewise.linear import ITML, LFDA, NCA, RCA, SDML, Covariance, Kernelized, KwokTsang, kernel_distances
from tests.linear.sets import blobs, tuples
from tests.oracles.linear import Array


def xor(n: int = 60) -> tuple[Array, Array]:
    """Figure 2 of the thesis: opposite corners are one class."""
    random = np.random.default_rng(0)
    corners = random.integers(2, size=(n, 2))
    return corners * 2.0 - 1.0 + random.normal(scale=0.25, size=(n, 2)), corners.sum(axis=1) % 2


def test_coordinates_have_the_kernels_distances():
    X, _ = blobs(20)
    fitted = Kernelized(Covariance(), kernel="rbf", gamma=0.3).fit(X)
    moved = fitted._coordinates(X)
    wanted = kernel_distances(X, gamma=0.3)
    kernel = rbf_kernel(X, gamma=0.3)
    assert np.allclose(wanted, np.sqrt(np.maximum(2.0 - 2.0 * kernel, 0.0)), atol=1e-7)
    assert np.allclose(np.linalg.norm(moved[:, None] - moved, axis=2), wanted, atol=1e-6)
    assert np.allclose(kernel_distances(X, kernel=lambda a, b: float(a @ b)), np.linalg.norm(X[:, None] - X, axis=2))


def test_a_linear_kernel_changes_nothing():
    """The learned distances are those of the estimator without a kernel."""
    pairs, y = tuples("pairs")
    plain = ITML().fit(pairs, y, bounds=(1.0, 9.0))
    kernelized = Kernelized(ITML(), kernel="linear").fit(pairs, y)
    same = ITML().fit(pairs, y)
    assert np.allclose(kernelized.pair_distance(pairs), same.pair_distance(pairs), rtol=1e-6)
    assert not np.allclose(plain.pair_distance(pairs), same.pair_distance(pairs))
    assert np.array_equal(kernelized.predict(pairs), same.predict(pairs))
    assert np.isclose(kernelized.score(pairs, y), same.score(pairs, y))
    assert np.allclose(kernelized.decision_function(pairs), kernelized.pair_score(pairs))
    assert np.isclose(kernelized.get_metric()(*pairs[0]), kernelized.pair_distance(pairs[:1])[0])
    assert not hasattr(Kernelized(RCA()), "predict")


def test_xor_needs_a_kernel():
    """A linear map to one dimension cannot separate XOR; one of the feature space can."""
    X, y = xor()
    linear = LFDA(n_components=1).fit_transform(X, y)
    assert KNeighborsClassifier(5).fit(linear, y).score(linear, y) < 0.85
    for kernelized in (
        Kernelized(LFDA(n_components=1), kernel="poly", degree=2),
        Kernelized(NCA(n_components=1), kernel="rbf", gamma=0.5, n_components=8),
        Kernelized(LFDA(n_components=1), kernel="rbf", gamma=0.5, n_landmarks=20, n_components=8, random_state=0),
    ):
        moved = kernelized.fit_transform(X, y)
        assert KNeighborsClassifier(5).fit(moved, y).score(moved, y) >= 0.9


def test_bad_kernels():
    X, y = xor(20)
    with pytest.raises(ValueError, match="kernel must be positive semi-definite"):
        Kernelized(RCA(), kernel=lambda a, b: -float(a @ b)).fit(X, y)
    with pytest.raises(ValueError, match="n_landmarks must be a whole number"):
        Kernelized(RCA(), n_landmarks=0).fit(X, y)
    with pytest.raises(ValueError, match="n_components must be a whole number ≥ 1 or None, but it is -1"):
        Kernelized(RCA(), n_components=-1).fit(X, y)
    with pytest.raises(ValueError, match="must not have a preprocessor"):
        Kernelized(ITML(preprocessor=X)).fit(X, y)
    with pytest.raises(ValueError, match="X must have 2 features"):
        Kernelized(RCA()).fit(X, y).pair_distance(np.zeros((1, 2, 3)))


@pytest.mark.parametrize(("c", "nu"), [(1.0, 0.5), (20.0, 0.3)])
def test_kwok_tsang_is_the_minimum(c: float, nu: float):
    pairs, y = tuples("pairs", n=6, d=2)
    v = pairs[:, 0] - pairs[:, 1]
    lengths = (v**2).sum(axis=1)

    def objective(vector: Array) -> float:
        factor = np.array([[vector[0], 0.0], [vector[1], vector[2]]])
        matrix, margin = factor @ factor.T, vector[3] ** 2
        beyond = np.einsum("ni,ij,nj->n", v, matrix, v) - lengths
        similar, dissimilar = np.maximum(beyond[y == 1], 0.0), np.maximum(margin - beyond[y == -1], 0.0)
        return float(0.5 * (matrix**2).sum() + c * similar.mean() + 2.0 * c * (dissimilar.mean() - nu * margin))

    start = np.array([1.0, 0.0, 1.0, 1.0])
    for _ in range(4):
        result = minimize(
            objective, start, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12, "maxiter": 5000}
        )
        start = result.x
    found = KwokTsang(c_similar=c, c_dissimilar=2.0 * c, nu=nu).fit(pairs, y)
    root = np.linalg.cholesky(found.get_mahalanobis_matrix() + 1e-14 * np.eye(2))
    value = objective(np.array([root[0, 0], root[1, 0], root[1, 1], np.sqrt(found.margin_)]))
    assert value <= result.fun + 2e-4 * max(1.0, abs(result.fun))
    with pytest.raises(ValueError, match="nu must be a number from 0 to 1"):
        KwokTsang(nu=2.0).fit(pairs, y)
    with pytest.raises(ValueError, match="all pairs have one label"):
        KwokTsang().fit(pairs, np.ones(12))


def test_kwok_tsang_warns_after_one_step():
    rng = np.random.default_rng(0)
    pairs, y = rng.normal(size=(12, 2, 3)), np.where(np.arange(12) % 2, 1, -1)
    with pytest.warns(ConvergenceWarning, match="max_iter=1 steps do not suffice"):
        fitted = KwokTsang(c_similar=10.0, c_dissimilar=20.0, nu=0.9, max_iter=1).fit(pairs, y)
    assert np.isfinite(fitted.components_).all()


@pytest.mark.parametrize("balance", [0.01, 0.5])
def test_sdml_is_the_minimum(balance: float):
    """No subgradient of the objective is away from zero; entries that are zero may have any inside of the penalty."""
    pairs, y = tuples("pairs", n=20)
    found = SDML(balance_param=balance, sparsity_param=0.2).fit(pairs, y)
    v = pairs[:, 0] - pairs[:, 1]
    weights = np.where(y == 1, balance, -balance * found.dissimilar_weight_)
    matrix = found.get_mahalanobis_matrix()
    slope = np.eye(3) + (v.T * weights) @ v - np.linalg.inv(matrix)
    assert 0.0 < found.dissimilar_weight_ <= 1.0
    off = ~np.eye(3, dtype=bool)
    scale = np.abs(np.eye(3) + (v.T * weights) @ v).max()
    assert np.abs(np.diag(slope)).max() < 1e-5 * scale
    zero = np.abs(matrix) < 1e-9
    assert (np.abs(slope[off & zero]) <= 0.2 + 1e-5 * scale).all()
    assert np.allclose(slope[off & ~zero], -0.2 * np.sign(matrix[off & ~zero]), atol=1e-5 * scale)
