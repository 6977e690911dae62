from __future__ import annotations

import numpy as np
import pytest

from likewise.linear import LFDA, RCA, Covariance
from tests.linear.sets import blobs, points_of, references
from tests.oracles import linear as oracles


@pytest.mark.parametrize("name", ["wine", "digits"])
def test_covariance_is_metric_learns(name: str):
    X, _ = points_of(name)
    found, wanted = Covariance().fit(X).get_mahalanobis_matrix(), references()[f"{name}-Covariance"]
    assert np.abs(found - wanted).max() < 1e-8 * max(1.0, np.abs(wanted).max())  # digits: entries up to 1e6


def test_covariance_whitens():
    X, _ = blobs()
    assert np.allclose(np.cov(Covariance().fit_transform(X), rowvar=False), np.eye(3))


@pytest.mark.parametrize("n_components", [None, 2])
def test_rca_is_metric_learns(n_components: int | None):
    X, y = points_of("wine")
    found = RCA(n_components).fit(X, y)
    wanted = references()["wine-RCA" if n_components is None else "wine-RCA-2"]
    assert np.abs(found.get_mahalanobis_matrix() - wanted).max() < 1e-8
    assert found.components_.shape == (n_components or 13, 13)


def test_rca_leaves_out_points_in_no_chunk():
    X, y = blobs()
    chunks = np.where(np.arange(len(y)) < 30, y, -1)
    assert np.allclose(RCA().fit(X, chunks).components_, RCA().fit(X[:30], y[:30]).components_)
    with pytest.raises(ValueError, match="at least one point into a chunk"):
        RCA().fit(X, np.full(len(X), -1))


@pytest.mark.parametrize("k", [1, 3])
def test_lfda_is_the_pairwise_definition(k: int):
    """Generalized eigenvectors, from matrices that are summed pair by pair."""
    X, y = blobs(n=15)
    y[0] = 7  # a class of one
    within, between = oracles.lfda(X, y, k)
    values, vectors = np.linalg.eigh(
        np.linalg.inv(np.linalg.cholesky(within)) @ between @ np.linalg.inv(np.linalg.cholesky(within)).T
    )
    wanted = np.linalg.inv(np.linalg.cholesky(within)).T @ vectors[:, ::-1]
    plain = LFDA(k=k, embedding_type="plain").fit(X, y)
    assert np.allclose(plain.components_.T * np.sign(plain.components_[:, 0]), wanted * np.sign(wanted[0]))
    weighted = LFDA(n_components=2, k=k).fit(X, y).get_mahalanobis_matrix()
    assert np.allclose(weighted, (wanted[:, :2] * values[::-1][:2]) @ wanted[:, :2].T)
    rows = LFDA(n_components=2, k=k, embedding_type="orthonormalized").fit(X, y).components_
    assert np.allclose(rows @ rows.T, np.eye(2))
    assert np.linalg.matrix_rank(np.concatenate([rows, plain.components_[:2]]), tol=1e-8) == 2


@pytest.mark.parametrize("estimator", [Covariance(), RCA(), LFDA()], ids=repr)
def test_digits_give_real_numbers(estimator: Covariance | RCA | LFDA):
    """Constant columns: metric-learn returns NaN (RCA) or complex numbers (LFDA)."""
    X, y = points_of("digits")
    found = estimator.fit(X, y).transform(X)
    assert found.dtype == np.float64
    assert np.isfinite(found).all()


def test_lfda_needs_a_class_that_varies():
    with pytest.raises(ValueError, match="no class varies"):
        LFDA().fit(np.eye(3), [0, 1, 2])
