from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from likewise.analysis import pair_weights
from likewise.formula import SquaredEuclidean
from likewise.linear import LinearMetric
from likewise.linear.any_loss import _Problem
from likewise.linear.batches import ClassBatches
from likewise.linear.regularizers import pair_scatter
from likewise.losses import ContrastiveLoss, MultiSimilarityLoss, NCALoss, ProxyAnchorLoss, TripletLoss
from likewise.metrics import retrieval
from tests.linear.sets import blobs

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
FAR = SquaredEuclidean(normalize=False)


def value_of(loss: Any, points: Any, labels: Any, components: Any) -> float:
    return float(loss(torch.tensor(points @ components.T), torch.tensor(labels)).detach())


@pytest.mark.parametrize(
    ("loss", "options"),
    [
        (ContrastiveLoss(), {}),
        (MultiSimilarityLoss(), {"n_components": 2}),
        (TripletLoss(0.2), {"diagonal": True}),
        (NCALoss(similarity=FAR), {"psd": "projection"}),
    ],
    ids=repr,
)
def test_the_loss_falls(loss: Any, options: dict[str, Any]):
    points, labels = blobs(30)
    points = points + 2.0  # the loss sees what transform returns, wherever the origin is
    found = LinearMetric(loss, max_iter=15, init="identity", **options).fit(points, labels)
    start = np.eye(options.get("n_components", 3), 3)
    assert value_of(loss, points, labels, found.components_) < value_of(loss, points, labels, start)
    if options.get("diagonal"):
        assert np.array_equal(found.components_, np.diag(np.diag(found.components_)))
    weights = pair_weights(loss, torch.tensor(found.transform(points)), torch.tensor(labels))
    assert torch.isfinite(weights).all()
    assert 0.0 <= retrieval(torch.tensor(found.transform(points)), torch.tensor(labels))["R@1"] <= 1.0


@pytest.mark.parametrize("regularizer", ["frobenius", "trace", "logdet", "nuclear"])
def test_regularizers_are_their_formulas(regularizer: str):
    """The value at a map, and the gradient by A of a projected metric, by central differences."""
    points, labels = blobs(12)
    matrix = np.diag([1.0, 2.0, 3.0]) + 0.1
    options = LinearMetric(NCALoss(similarity=FAR), regularizer=regularizer, regularization=0.7, matrix=matrix)
    problem = _Problem(options, points, labels)
    A = np.array([[1.0, 0.2, 0.0], [0.2, 0.8, -0.1], [0.0, -0.1, 0.5]])
    ratio = A @ np.linalg.inv(matrix)
    wanted = {
        "frobenius": 0.5 * (A**2).sum(),
        "trace": np.trace(A @ matrix),
        "logdet": np.trace(ratio) - np.log(np.linalg.det(ratio)) - 3.0,
        "nuclear": np.linalg.eigvalsh(A).sum(),
    }[regularizer]
    assert np.isclose(float(problem.penalty(torch.tensor(A))), 0.7 * wanted)
    value, gradient = problem.of_metric(A)
    root = np.linalg.cholesky(A).T
    factored = float(problem.value(torch.tensor(root)).detach())
    assert np.isclose(value, factored)
    for i, j in ((0, 0), (1, 2)):
        step = np.zeros((3, 3))
        step[i, j] = step[j, i] = 1e-6
        numeric = (problem.of_metric(A + step)[0] - problem.of_metric(A - step)[0]) / 2e-6
        assert np.isclose((gradient * (step / 1e-6)).sum(), numeric, rtol=1e-4)


def test_factors_and_projections_meet():
    """A convex objective has one minimum, whichever way the metric is held positive."""
    points, labels = blobs(20, 2)
    options: dict[str, Any] = {"regularizer": "frobenius", "regularization": 0.1, "max_iter": 500}
    loss = NCALoss(similarity=FAR)
    first = LinearMetric(loss, psd="factor", **options).fit(points, labels).get_mahalanobis_matrix()
    second = LinearMetric(loss, psd="projection", **options).fit(points, labels).get_mahalanobis_matrix()
    assert np.allclose(first, second, atol=1e-3)


def test_a_nuclear_norm_lowers_the_rank():
    points, labels = blobs(40, 6)
    ranks = [
        np.linalg.matrix_rank(
            LinearMetric(regularizer="nuclear", regularization=weight, max_iter=300, psd="projection").fit(points, labels).get_mahalanobis_matrix(),
            tol=1e-4,
        )
        for weight in (0.0, 0.3)
    ]  # fmt: skip
    assert ranks[1] < ranks[0]


def test_the_default_trace_is_over_similar_pairs():
    points, labels = blobs(12)
    wanted = [
        np.outer(points[i] - points[j], points[i] - points[j])
        for i in range(12)
        for j in range(i)
        if labels[i] == labels[j]
    ]
    assert np.allclose(pair_scatter(points, labels), np.mean(wanted, axis=0))


def test_proxies_are_learned():
    points, labels = blobs(30)
    found = LinearMetric(ProxyAnchorLoss(3, 2), n_components=2, max_iter=20).fit(points, labels)
    assert not torch.equal(found.loss_.proxies.detach(), ProxyAnchorLoss(3, 2).proxies.detach())
    assert found.components_.shape == (2, 3)


def test_mini_batches():
    points, labels = blobs(300, 4, classes=5)
    options: dict[str, Any] = {"init": "identity", "batch_size": 20, "max_iter": 5, "lr": 0.03, "random_state": 0}
    found, again = (LinearMetric(**options).fit(points, labels) for _ in range(2))
    assert np.array_equal(found.components_, again.components_)
    loss = NCALoss(similarity=FAR)
    value, start = (value_of(loss, points, labels, each) for each in (found.components_, np.eye(4)))
    best = value_of(loss, points, labels, LinearMetric(init="identity").fit(points, labels).components_)
    assert value - best < 0.5 * (start - best)


def test_batches_have_four_of_a_class():
    labels = torch.arange(60) % 6
    labels[:2] = 6  # a class of two
    batches = ClassBatches(labels, 20, seed=0)
    for _ in range(20):
        drawn = batches.draw()
        assert len(drawn.unique()) == len(drawn)
        counts = labels[drawn].bincount(minlength=7)
        assert set(counts[:6].tolist()) <= {0, 4}
        assert counts[6].item() in (0, 2)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"psd": "best"}, "psd must be 'factor' or 'projection'"),
        ({"regularizer": "best"}, "regularizer must be 'frobenius' or"),
        ({"regularizer": "logdet", "n_components": 1}, "n_components must be None"),
        ({"regularizer": "logdet", "matrix": np.zeros((3, 3))}, "matrix must be positive definite"),
        ({"matrix": np.eye(2)}, "matrix must be a symmetric matrix"),
        ({"batch_size": 3}, "batch_size must be a whole number ≥ 8"),
        ({"batch_size": 8, "psd": "projection"}, "psd must be 'factor'"),
        ({"lr": 0.0}, "lr must be a number > 0"),
        ({"loss": ProxyAnchorLoss(3, 3), "psd": "projection"}, "psd must be 'factor' for a loss with parameters"),
    ],
    ids=repr,
)
def test_bad_arguments(options: dict[str, Any], sentence: str):
    with pytest.raises(ValueError, match=sentence):
        LinearMetric(**options).fit(*blobs())


def test_a_loss_is_a_module():
    with pytest.raises(TypeError, match="loss must be a loss"):
        LinearMetric("contrastive").fit(*blobs())  # type: ignore[arg-type]
