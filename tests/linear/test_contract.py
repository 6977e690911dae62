"""What all estimators promise: scikit-learn's conventions, tuples as arrays or indices, thresholds, clear sentences."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score, fbeta_score, roc_auc_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from likewise import linear
from likewise.linear import (
    ITML,
    LFDA,
    LMNN,
    LSML,
    MCML,
    MLKR,
    MMC,
    NCA,
    OASIS,
    POLA,
    RCA,
    SCML,
    SDML,
    Covariance,
    Kernelized,
    KwokTsang,
    LinearMetric,
    SchultzJoachims,
)
from tests.linear.sets import blobs, tuples

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
SUPERVISED = [
    *(Covariance(), RCA(), RCA(n_components=1), LFDA(), LFDA(n_components=1)),
    *(NCA(max_iter=10), LMNN(max_iter=10), MCML(max_iter=10), MLKR(max_iter=10)),
    *(LinearMetric(max_iter=5), LinearMetric(batch_size=8, max_iter=2), Kernelized(Covariance())),
]
CHECKED = [
    *(Covariance(), RCA(), LFDA(), NCA(max_iter=3), LMNN(max_iter=3), MCML(max_iter=3), MLKR(max_iter=3)),
    *(LinearMetric(max_iter=2), LinearMetric(batch_size=8, max_iter=1), Kernelized(Covariance())),
]
OF_PAIRS = [ITML(), MMC(), MMC(diagonal=True), POLA(), SDML(), KwokTsang()]
OF_TRIPLETS = [SCML(random_state=0), SchultzJoachims(), OASIS()]
OF_QUADRUPLETS = [LSML()]
OF_TUPLES = [
    *(("pairs", each) for each in OF_PAIRS),
    *(("triplets", each) for each in OF_TRIPLETS),
    *(("quadruplets", each) for each in OF_QUADRUPLETS),
]
WIDTH = {"pairs": 2, "triplets": 3, "quadruplets": 4}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.parametrize("estimator", CHECKED, ids=repr)
def test_scikit_learns_checks(estimator: Any):
    check_estimator(estimator)


def test_every_estimator_is_under_contract():
    known = {type(each).__name__ for each in (*SUPERVISED, *(each for _, each in OF_TUPLES))}
    estimators = {name for name in linear.__all__ if hasattr(getattr(linear, name), "get_params")}
    assert estimators <= known


@pytest.mark.parametrize("estimator", SUPERVISED, ids=repr)
def test_the_metric_is_one(estimator: Any):
    """`transform`, `pair_distance`, `get_metric` and the matrix agree."""
    X, y = blobs()
    fitted = clone(estimator).fit(X, y)
    pairs = X[[[0, 1], [2, 3], [4, 4]]]
    moved = fitted.transform(X)
    wanted = [np.linalg.norm(moved[a] - moved[b]) for a, b in ((0, 1), (2, 3), (4, 4))]
    assert np.allclose(fitted.pair_distance(pairs), wanted)
    assert np.array_equal(fitted.pair_score(pairs), -fitted.pair_distance(pairs))
    assert np.allclose([fitted.get_metric()(a, b) for a, b in pairs], wanted)
    if not hasattr(fitted, "get_mahalanobis_matrix"):
        return  # a kernel
    squares = [(a - b) @ fitted.get_mahalanobis_matrix() @ (a - b) for a, b in pairs]
    assert np.allclose(np.sqrt(squares), wanted)
    again = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(again.components_, fitted.components_)


def outcome(estimator: Any, points: Any, labels: Any) -> Any:
    """The transformed points, or the sentence that refuses them."""
    try:
        return estimator.fit(points, labels).transform(points)
    except ValueError as error:
        return str(error)


@pytest.mark.parametrize("estimator", SUPERVISED, ids=repr)
def test_degenerate_data(estimator: Any):
    """Constant columns, duplicates, fewer points than features, one class: a finite result or one sentence."""
    random = np.random.default_rng(0)
    X, y = blobs(12, 3)
    cases = {
        "constant column": (np.concatenate([X, np.ones((12, 1))], axis=1), y),
        "duplicates": (np.repeat(X[:6], 2, axis=0), np.repeat(y[:6], 2)),
        "n < d": (random.normal(size=(6, 9)), np.arange(6) // 2),
        "one class": (X, np.zeros(12, int)),
        "equal points": (np.ones((6, 2)), np.arange(6) // 3),
    }
    for name, (points, labels) in cases.items():
        found = outcome(clone(estimator), points, labels)
        if isinstance(found, str):
            assert " must " in found, name
        else:
            assert found.dtype == np.float64
            assert np.isfinite(found).all(), name


@pytest.mark.parametrize(
    ("kind", "estimator"),
    [
        *(("", each) for each in (NCA(max_iter=1), LMNN(max_iter=1), MCML(max_iter=1), MLKR(max_iter=1))),
        *(("", each) for each in (LinearMetric(max_iter=1), LinearMetric(psd="projection", max_iter=1))),
        *(("pairs", ITML(max_iter=1)), ("quadruplets", LSML(max_iter=1))),
    ],
    ids=repr,
)
def test_too_few_iterations_warn(kind: str, estimator: Any):
    with pytest.warns(ConvergenceWarning, match="max_iter=1 .* do not suffice: .*; raise max_iter"):
        fitted = clone(estimator).fit(*(tuples(kind) if kind else blobs()))
    assert fitted.n_iter_ >= 1


def test_hostile_input():
    """Words as classes are classes; what cannot be used gets one sentence."""
    X, y = blobs(12)
    words = np.array(["ant", "bee", "cow"])[y]
    for estimator in (RCA(), LFDA(), NCA(max_iter=2)):
        assert np.array_equal(clone(estimator).fit(X, words).components_, clone(estimator).fit(X, y).components_)
    pairs, signs = np.array([[0, 1], [2, 3]]), [1, -1]
    for bad, given, sentence in (
        (ITML(preprocessor=X), pairs.astype(float), r"or \(n, 2\) with whole numbers as indices"),
        (ITML(preprocessor=lambda at: X[:1]), pairs, "preprocessor must return one point for each of 4 indices"),
        (ITML(preprocessor=lambda at: X[at] * np.nan), pairs, "contains NaN"),
        (ITML(), np.full((2, 2, 3), "far"), "could not convert string"),
    ):
        with pytest.raises(ValueError, match=sentence):
            bad.fit(given, signs)
    with pytest.raises(ValueError, match="contains NaN"):
        OASIS(init=np.full((3, 3), np.nan)).fit(*tuples("triplets"))


def test_in_a_pipeline():
    X, y = blobs(60)
    found = make_pipeline(RCA(), KNeighborsClassifier(3)).fit(X, y).score(X, y)
    assert found > 0.7
    assert list(LFDA(n_components=2).fit(X, y).get_feature_names_out()) == ["lfda0", "lfda1"]


@pytest.mark.parametrize(("kind", "estimator"), OF_TUPLES, ids=lambda each: repr(each))
def test_tuples(kind: str, estimator: Any):
    """Copies, pickles, arrays and indices, decisions, and sentences for bad input."""
    arguments = tuples(kind)
    fitted = clone(estimator).fit(*arguments)
    assert clone(fitted).get_params().keys() == fitted.get_params().keys()
    decisions = fitted.decision_function(arguments[0])
    assert decisions.shape == (len(arguments[0]),)
    assert np.isfinite(decisions).all()
    again = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(again.decision_function(arguments[0]), decisions)
    points = arguments[0].reshape(-1, 3)
    indices = np.arange(len(points)).reshape(-1, WIDTH[kind])
    by_index = clone(estimator).set_params(preprocessor=points).fit(indices, *arguments[1:])
    assert np.allclose(by_index.decision_function(indices), decisions)
    by_function = clone(estimator).set_params(preprocessor=lambda at: points[at]).fit(indices, *arguments[1:])
    assert np.allclose(by_function.decision_function(arguments[0]), decisions)
    assert fitted.n_features_in_ == 3
    for bad, sentence in (
        (arguments[0][0], f"{kind} must have shape"),
        (arguments[0][:, :1], f"{kind} must have shape"),
        (indices, f"{kind} must have shape"),
        (np.full_like(arguments[0], np.nan), "contains NaN"),
    ):
        with pytest.raises(ValueError, match=sentence):
            clone(estimator).fit(bad, *arguments[1:])
    with pytest.raises(ValueError, match="must be indices from 0"):
        by_index.decision_function(indices + 1)
    with pytest.raises(ValueError, match="must have 3 features"):
        fitted.decision_function(arguments[0][..., :2])


@pytest.mark.parametrize(("kind", "estimator"), OF_TUPLES[len(OF_PAIRS) :], ids=lambda each: repr(each))
def test_relative_scores(kind: str, estimator: Any):
    arguments = tuples(kind)
    fitted = clone(estimator).fit(*arguments)
    decisions = fitted.decision_function(arguments[0])
    assert np.array_equal(fitted.predict(arguments[0]), np.sign(decisions))
    assert fitted.score(arguments[0]) == np.mean(decisions > 0.0)
    if hasattr(fitted, "pair_distance"):
        last = arguments[0][:, -2:] if kind == "quadruplets" else arguments[0][:, [0, 2]]
        wanted = fitted.pair_distance(last) - fitted.pair_distance(arguments[0][:, :2])
        assert np.allclose(decisions, wanted)


@pytest.mark.parametrize("estimator", OF_PAIRS, ids=repr)
def test_pairs_are_predicted(estimator: Any):
    pairs, y = tuples("pairs")
    fitted = clone(estimator).fit(pairs, y)
    distances = fitted.pair_distance(pairs)
    assert np.array_equal(fitted.decision_function(pairs), -distances)
    assert np.array_equal(fitted.predict(pairs), np.where(distances <= fitted.threshold_, 1, -1))
    assert fitted.score(pairs, y) == roc_auc_score(y, -distances)
    assert fitted.set_threshold(0.0).threshold_ == 0.0
    for bad in (y[:-1], np.zeros_like(y), np.array(["a"] * len(y))):
        with pytest.raises(ValueError, match=r"^y must"):
            clone(estimator).fit(pairs, bad)


def test_thresholds_are_the_best():
    """Every strategy against all candidates, one at a time."""
    random = np.random.default_rng(0)
    pairs, y = tuples("pairs")
    fitted = ITML().fit(pairs, y)
    distances = fitted.pair_distance(pairs)
    assert accuracy_score(y, fitted.predict(pairs)) == max(
        accuracy_score(y, np.where(distances <= each, 1, -1)) for each in (*distances, -1.0)
    )
    for beta in (0.3, 1.0, 2.0):
        fitted.calibrate_threshold(pairs, y, strategy="f_beta", beta=beta)
        values = {each: fbeta_score(y, np.where(distances <= each, 1, -1), beta=beta) for each in distances}
        best = max(values.values())
        assert fitted.threshold_ == max(each for each, value in values.items() if value > best - 1e-12)
    for rate in random.uniform(size=5):
        for strategy, wanted, other in (("max_tpr", 1, -1), ("max_tnr", -1, 1)):
            fitted.calibrate_threshold(pairs, y, strategy=strategy, min_rate=rate)
            predicted = fitted.predict(pairs)
            assert (predicted[y == other] == other).mean() >= rate
            possible = [
                (guess[y == wanted] == wanted).mean()
                for each in (*distances, -1.0)
                for guess in [np.where(distances <= each, 1, -1)]
                if (guess[y == other] == other).mean() >= rate
            ]
            assert (predicted[y == wanted] == wanted).mean() == max(possible)


def test_all_pairs_can_be_rejected():
    pairs = np.array([[[0.0], [1.0]], [[0.0], [2.0]], [[0.0], [3.0]]])
    fitted = ITML().fit(pairs, [1, -1, -1])
    assert (fitted.calibrate_threshold(pairs, [-1, -1, -1]).predict(pairs) == -1).all()
    assert fitted.calibrate_threshold(pairs, [-1, 1, -1]).threshold_ < fitted.pair_distance(pairs)[0]  # a tie


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"strategy": "best"}, "strategy must be 'accuracy' or"),
        ({"strategy": "max_tpr"}, "min_rate must be a number from 0 to 1"),
        ({"strategy": "max_tnr", "min_rate": "high"}, "min_rate must be a number from 0 to 1"),
        ({"strategy": "f_beta", "beta": -1.0}, "beta must be a number ≥ 0"),
        ({"strategy": "f_beta", "beta": "large"}, "beta must be a number ≥ 0"),
    ],
)
def test_bad_thresholds(arguments: dict[str, Any], sentence: str):
    pairs, y = tuples("pairs")
    with pytest.raises(ValueError, match=sentence):
        ITML().fit(pairs, y).calibrate_threshold(pairs, y, **arguments)


@pytest.mark.parametrize("threshold", ["far", float("nan")])
def test_bad_threshold(threshold: Any):
    with pytest.raises(ValueError, match="threshold must be a number, but it is"):
        ITML().fit(*tuples("pairs")).set_threshold(threshold)


@pytest.mark.parametrize(
    ("kind", "estimator", "sentence"),
    [
        ("pairs", ITML(gamma=0.0), "gamma must be a number > 0"),
        ("pairs", ITML(solver="newton"), "solver must be 'projections' or 'lbfgs'"),
        ("pairs", ITML(solver="lbfgs", gamma=np.inf), "gamma must be finite with solver='lbfgs'"),
        ("pairs", ITML(max_iter=0), "max_iter must be a whole number ≥ 1"),
        ("pairs", ITML(prior="best"), "prior must be 'identity'"),
        ("pairs", ITML(prior=np.zeros((3, 3))), "prior must be positive definite"),
        ("pairs", ITML(prior=np.eye(2)), "prior must be a symmetric matrix"),
        ("pairs", ITML(prior=np.triu(np.ones((3, 3)))), "prior must be a symmetric matrix, but it is not symmetric"),
        ("pairs", POLA(threshold=-1.0), "threshold must be a number ≥ 0"),
        ("pairs", MMC(tol=0.0), "tol must be a number > 0"),
        ("triplets", SCML(basis="best"), "basis must be 'triplet_diffs'"),
        ("triplets", SCML(n_basis=0), "n_basis must be a whole number ≥ 1"),
        ("triplets", SCML(basis=np.eye(2)), r"basis must have shape \(n_basis, 3\)"),
        ("triplets", SchultzJoachims(C=-1.0), "C must be a number > 0"),
        ("triplets", OASIS(init="best"), "init must be 'identity'"),
        ("triplets", OASIS(init=np.eye(2)), "init must be 'identity' or a matrix"),
        ("quadruplets", LSML(tol=-1.0), "tol must be a number > 0"),
    ],
    ids=lambda each: repr(each) if not isinstance(each, str) else "",
)
def test_bad_arguments(kind: str, estimator: Any, sentence: str):
    with pytest.raises(ValueError, match=sentence):
        estimator.fit(*tuples(kind))


@pytest.mark.parametrize(
    ("estimator", "sentence"),
    [
        (RCA(n_components=9), "n_components must be a whole number from 1 to 3"),
        (LFDA(k=0), "k must be a whole number ≥ 1"),
        (LFDA(embedding_type="best"), "embedding_type must be 'weighted' or"),
    ],
    ids=repr,
)
def test_bad_arguments_of_supervised(estimator: Any, sentence: str):
    with pytest.raises(ValueError, match=sentence):
        estimator.fit(*blobs())
