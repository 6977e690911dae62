"""Decisions, predictions, scores and thresholds of learners from pairs, triplets and quadruplets."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score, roc_curve
from sklearn.utils.validation import check_is_fitted

from likewise.linear.metric import (
    Array,
    MahalanobisMixin,
    check_choice,
    check_number,
    distances,
    read_pair_labels,
    read_tuples,
)

STRATEGIES = ("accuracy", "f_beta", "max_tpr", "max_tnr")


class PairMixin(MahalanobisMixin):
    """Pairs ``(n, 2, d)`` with labels +1 (similar) and −1: similar where the distance is at most ``threshold_``."""

    threshold_: float

    def _read(self, pairs: Any, y: Any) -> tuple[Array, NDArray[np.int64]]:
        """The differences of pairs and their labels, for fit."""
        points = read_tuples(self, pairs, 2, reset=True)
        return points[:, 0] - points[:, 1], read_pair_labels(y, len(points))

    def decision_function(self, pairs: Any) -> Array:
        """Minus the distance of each pair."""
        return -self.pair_distance(pairs)

    def predict(self, pairs: Any) -> NDArray[np.int64]:
        """+1 for pairs whose distance is at most ``threshold_``, else −1."""
        check_is_fitted(self, "threshold_")
        return np.where(self.pair_distance(pairs) <= self.threshold_, 1, -1)

    def score(self, pairs: Any, y: Any) -> float:
        """The area under the ROC curve of `decision_function`."""
        decisions = self.decision_function(pairs)
        labels = read_pair_labels(y, len(decisions))
        if len(np.unique(labels)) < 2:
            raise ValueError("y must contain +1 and −1 to score pairs, but all pairs have one label")
        return float(roc_auc_score(labels, decisions))

    def set_threshold(self, threshold: float) -> Self:
        """Set the distance up to which a pair is predicted as similar."""
        check_is_fitted(self, "components_")
        self.threshold_ = check_number("threshold", threshold)
        return self

    def calibrate_threshold(
        self, pairs: Any, y: Any, strategy: str = "accuracy", min_rate: float | None = None, beta: float = 1.0
    ) -> Self:
        """Choose ``threshold_`` on pairs with known labels.

        Args:
            pairs: the pairs, ``(n, 2, d)``.
            y: their labels, +1 and −1.
            strategy: ``"accuracy"`` (among ties the smallest distance; rejecting every pair is a candidate) or
                ``"f_beta"`` (among ties the largest distance) over the pairs' distances; ``"max_tpr"``, the greatest
                true-positive rate with a true-negative rate of at least `min_rate`; ``"max_tnr"``, the reverse.
            min_rate: the rate that the other class must have.
            beta: weight of recall against precision in ``"f_beta"``.
        """
        check_choice("strategy", strategy, STRATEGIES)
        values = self.pair_distance(pairs)
        self.threshold_ = find_threshold(values, read_pair_labels(y, len(values)), strategy, min_rate, beta)
        return self

    def _calibrate(self, differences: Array, labels: NDArray[np.int64]) -> Self:
        """The threshold of best accuracy on the training pairs."""
        self.threshold_ = find_threshold(distances(differences, self.components_), labels, "accuracy", None, 1.0)
        return self


def find_threshold(
    values: Array, labels: NDArray[np.int64], strategy: str, min_rate: float | None, beta: float
) -> float:
    """The distance up to which pairs are accepted, by one of `STRATEGIES`.

    Examples:
        >>> find_threshold(np.array([1.0, 2.0, 3.0]), np.array([1, 1, -1]), "accuracy", None, 1.0)
        2.0
    """
    if strategy in ("max_tpr", "max_tnr"):
        return _by_rate(values, labels, strategy, min_rate)
    order = np.argsort(values, kind="stable")
    ordered, positive = values[order], labels[order] == 1
    accepted = np.arange(1, len(values) + 1)
    hits = np.cumsum(positive)
    last = np.append(ordered[1:] != ordered[:-1], True)  # equal distances are accepted together
    if strategy == "accuracy":
        correct = hits + (~positive).sum() - (accepted - hits)
        correct = np.append((~positive).sum(), np.where(last, correct, -1))
        best = int(np.argmax(correct))
        return float(ordered[best - 1] if best else ordered[0] - 1.0)
    if not np.isfinite(check_number("beta", beta, at_least=0.0)):
        raise ValueError(f"beta must be a finite number ≥ 0, but it is {beta!r}")
    if not positive.any():
        raise ValueError("y must contain +1 for the strategy 'f_beta', but all pairs are −1")
    scores = (1.0 + beta**2) * hits / (beta**2 * positive.sum() + accepted)
    scores = np.where(last, scores, -1.0)
    return float(ordered[len(scores) - 1 - int(np.argmax(scores[::-1]))])


def _by_rate(values: Array, labels: NDArray[np.int64], strategy: str, min_rate: float | None) -> float:
    if not isinstance(min_rate, int | float | np.number) or not 0.0 <= min_rate <= 1.0:
        raise ValueError(f"min_rate must be a number from 0 to 1 for the strategy {strategy!r}, but it is {min_rate!r}")
    if len(np.unique(labels)) < 2:
        raise ValueError(f"y must contain +1 and −1 for the strategy {strategy!r}, but all pairs have one label")
    false_rate, true_rate, thresholds = roc_curve(labels, -values, pos_label=1)
    allowed = np.flatnonzero((1.0 - false_rate if strategy == "max_tpr" else true_rate) >= min_rate)
    wanted = true_rate if strategy == "max_tpr" else 1.0 - false_rate
    return -float(thresholds[allowed[np.argmax(wanted[allowed])]])


class TripletMixin(MahalanobisMixin):
    """Triplets ``(n, 3, d)``: anchor, near, far."""

    def decision_function(self, triplets: Any) -> Array:
        """``d(anchor, far) − d(anchor, near)``."""
        check_is_fitted(self, "components_")
        points = read_tuples(self, triplets, 3)
        near, far = points[:, 0] - points[:, 1], points[:, 0] - points[:, 2]
        return distances(far, self.components_) - distances(near, self.components_)

    def predict(self, triplets: Any) -> Array:
        """The sign of `decision_function`: +1 where the near point is nearer."""
        return np.sign(self.decision_function(triplets))

    def score(self, triplets: Any, y: object = None) -> float:
        """The fraction of triplets whose near point is nearer."""
        return float(np.mean(self.decision_function(triplets) > 0.0))

    def _read(self, triplets: Any) -> tuple[Array, Array]:
        """The differences of anchors to near and far points, for fit."""
        points = read_tuples(self, triplets, 3, reset=True)
        return points[:, 0] - points[:, 1], points[:, 0] - points[:, 2]


class QuadrupletMixin(MahalanobisMixin):
    """Quadruplets ``(n, 4, d)`` of points a, b, c, d, for which ``d(a, b) < d(c, d)`` should hold."""

    def decision_function(self, quadruplets: Any) -> Array:
        """``d(c, d) − d(a, b)``."""
        check_is_fitted(self, "components_")
        points = read_tuples(self, quadruplets, 4)
        near, far = points[:, 0] - points[:, 1], points[:, 2] - points[:, 3]
        return distances(far, self.components_) - distances(near, self.components_)

    def predict(self, quadruplets: Any) -> Array:
        """The sign of `decision_function`."""
        return np.sign(self.decision_function(quadruplets))

    def score(self, quadruplets: Any, y: object = None) -> float:
        """Return the fraction of quadruplets in the correct order."""
        return float(np.mean(self.decision_function(quadruplets) > 0.0))
