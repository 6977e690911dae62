r"""Calibration: thresholds for false-accept rates, and match probabilities of similarities.

Both are fitted to labeled images that the model was not trained on.  Every pair of them is genuine (same label) or an
impostor.  Let $g(s)$ be the density of similarity s among genuine pairs, $f(s)$ that among impostors, and π the prior
probability of a genuine pair.  Then $P(same | s) = π g(s) / (π g(s) + (1 - π) f(s))$.  The map is stored for π = ½; another
prior only shifts the odds.  The only assumption of the fit is that the map increases: it is an isotonic regression (Ayer
et al. 1955) on groups of equal weight, with linear interpolation between the groups.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import inf, isfinite
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from likewise.metrics import encode_labels, verification

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

BINS = 20_000
"""Number of similarity bins from −1 to 1."""

GROUPS = 200
"""Initial groups of pairs for the isotonic regression: each has 1/200 of the weight of both kinds."""

FEWEST = 10
"""The number of impostors that a false-accept rate must accept on the validation pairs; with fewer, its threshold is unreliable."""

ROWS = 2048


@dataclass(frozen=True)
class Point:
    """A threshold for a false-accept rate.

    Args:
        far: upper bound of the fraction of impostors at or above the threshold.
        threshold: smallest similarity that counts as the same; infinity if no threshold is strict enough.
        tar: fraction of genuine pairs at or above the threshold.

    Examples:
        >>> Point(0.01, 0.6, 0.9).threshold
        0.6
    """

    far: float
    threshold: float
    tar: float


@dataclass(frozen=True)
class Calibration:
    """Thresholds and probabilities, fitted to validation pairs.

    Args:
        points: thresholds for false-accept rates.
        similarities: increasing similarities at which the map to probabilities is defined.
        probabilities: probability that a pair is genuine at each of them, if half of all pairs are; non-decreasing.
        genuine: number of genuine pairs in the fit.
        impostors: number of impostor pairs.
        error: expected calibration error, measured on classes that were held out of the fit; ``None`` with fewer than
            four classes of two images.

    Examples:
        >>> learned = Calibration((Point(0.1, 0.5, 0.9),), (0.2, 0.8), (0.1, 0.9), 10, 100, None)
        >>> round(learned.probability(0.5), 3), learned.same(0.6, far=0.1)
        (0.5, True)
        >>> round(learned.threshold(), 3), round(learned.threshold(prior=0.3), 3)
        (0.5, 0.65)
        >>> Calibration.from_dict(learned.as_dict()) == learned
        True
    """

    points: tuple[Point, ...]
    similarities: tuple[float, ...]
    probabilities: tuple[float, ...]
    genuine: int
    impostors: int
    error: float | None = None

    def probability(self, similarity: float, *, prior: float = 0.5) -> float:
        """Return the probability that two images of this similarity are the same.

        Args:
            similarity: cosine of the two images.
            prior: prior probability that they are the same.
        """
        if not 0.0 < prior < 1.0:
            raise ValueError(f"prior must be between 0 and 1, but it is {prior!r}")
        even = float(np.interp(similarity, self.similarities, self.probabilities))
        return prior * even / (prior * even + (1.0 - prior) * (1.0 - even))

    def threshold(self, *, prior: float = 0.5) -> float:
        """Return the smallest similarity at which two images are more likely the same than not; infinity if there is none.

        Args:
            prior: prior probability that two images are the same.
        """
        if self.probability(inf, prior=prior) < 0.5:
            return inf
        if self.probability(-inf, prior=prior) >= 0.5:
            return -inf
        odds = np.array([self.probability(each, prior=prior) for each in self.similarities])
        after = int(np.argmax(odds >= 0.5))
        low, high = self.similarities[after - 1], self.similarities[after]
        for _ in range(60):  # the probability increases from low to high
            middle = (low + high) / 2.0
            low, high = (low, middle) if self.probability(middle, prior=prior) >= 0.5 else (middle, high)
        return high

    def point(self, far: float) -> Point:
        """Return the threshold for a false-accept rate, which must be one of the calibrated rates."""
        for each in self.points:
            if abs(each.far - far) <= 1e-9 * far:
                return each
        known = ", ".join(f"{each.far:g}" for each in self.points)
        raise ValueError(f"far must be one of the calibrated rates ({known}), but it is {far:g}")

    def same(self, similarity: float, far: float) -> bool:
        """Return whether two images of this similarity count as the same, at a false-accept rate."""
        return similarity >= self.point(far).threshold

    def unreliable_rates(self) -> tuple[float, ...]:
        """Return the rates whose threshold is determined by fewer than ten validation pairs, and therefore unreliable."""
        return tuple(each.far for each in self.points if each.far * self.impostors < FEWEST)

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON; an infinite threshold is ``None``."""
        content = asdict(self) | {"similarities": list(self.similarities), "probabilities": list(self.probabilities)}
        content["points"] = [
            asdict(each) | {"threshold": each.threshold if isfinite(each.threshold) else None} for each in self.points
        ]
        return content

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Calibration:
        """Create a calibration from the result of `as_dict`."""
        try:
            points = tuple(
                Point(float(each["far"]), inf if each["threshold"] is None else float(each["threshold"]), each["tar"])
                for each in content["points"]
            )
            where, says = (tuple(map(float, content[name])) for name in ("similarities", "probabilities"))
            return cls(points, where, says, int(content["genuine"]), int(content["impostors"]), content.get("error"))
        except (KeyError, TypeError, ValueError) as wrong:
            raise ValueError(
                f"the calibration must be one that likewise wrote, but {wrong!r} is missing or invalid"
            ) from wrong


def calibrate(
    embeddings: ArrayLike | Tensor,
    labels: Sequence[Any] | NDArray[Any] | Tensor,
    *,
    far: Sequence[float] = (1e-1, 1e-2, 1e-3),
) -> Calibration:
    """Fit thresholds and probabilities to all pairs of labeled images.

    Args:
        embeddings: embeddings ``(n, d)``; compared by cosine similarity.
        labels: class of each embedding, of any type; classes that the model was not trained on.
        far: false-accept rates of the thresholds.

    Examples:
        >>> embeddings = torch.tensor([[0.0, 1.0], [0.1, 1.0], [1.0, 0.0], [1.0, 0.1], [-1.0, -1.0], [-1.0, -0.8]])
        >>> learned = calibrate(embeddings, list("aabbcc"), far=[0.1])
        >>> learned.same(0.999, far=0.1), learned.same(0.2, far=0.1), learned.genuine, learned.impostors
        (True, False, 3, 12)
    """
    vectors = torch.as_tensor(embeddings, dtype=torch.float32).detach().cpu()
    if vectors.ndim != 2 or not vectors.isfinite().all():
        raise ValueError(f"embeddings must be finite numbers (n, d), but the shape is {tuple(vectors.shape)}")
    codes = encode_labels(labels)[0] if not isinstance(labels, Tensor) else labels
    codes = torch.unique(torch.as_tensor(codes), return_inverse=True)[1].cpu()
    rates = verification(vectors, codes, far=list(far))
    points = tuple(Point(float(rate), rates[f"threshold@{rate:g}"], rates[f"TAR@{rate:g}"]) for rate in far)
    vectors = torch.nn.functional.normalize(vectors, dim=1)
    counts = count_pairs(vectors, codes)
    similarities, probabilities = monotone_map(*counts)
    return Calibration(
        points,
        tuple(similarities.tolist()),
        tuple(probabilities.tolist()),
        int(counts[0].sum()),
        int(counts[1].sum()),
        _held_out_error(vectors, codes),
    )


def count_pairs(units: Tensor, codes: Tensor) -> tuple[Counts, Counts]:
    """Count genuine and impostor pairs in each of `BINS` similarity bins from −1 to 1.

    Args:
        units: embeddings ``(n, d)`` of unit length.
        codes: class of each.

    Examples:
        >>> genuine, impostors = count_pairs(torch.eye(2)[[0, 0, 1]], torch.tensor([5, 5, 6]))
        >>> int(genuine.sum()), int(impostors.sum()), int(impostors.argmax())
        (1, 2, 10000)
    """
    totals = torch.zeros(2, BINS, dtype=torch.int64)
    for start in range(0, len(units), ROWS):
        rows = slice(start, start + ROWS)
        for first in range(start, len(units), ROWS):
            columns = slice(first, first + ROWS)
            similarities = units[rows] @ units[columns].T
            place = ((similarities + 1.0) * (BINS / 2)).long().clamp_(0, BINS - 1)
            same = codes[rows, None] == codes[None, columns]
            once = torch.ones_like(same).triu(1) if first == start else torch.ones_like(same)
            for kind, mask in enumerate((same & once, ~same & once)):
                totals[kind] += torch.bincount(place[mask], minlength=BINS)
    genuine, impostors = totals.numpy()
    return genuine, impostors


def monotone_map(genuine: Counts, impostors: Counts) -> tuple[Floats, Floats]:
    """Return similarities and, non-decreasing, the probability that a pair is genuine there, if half of all pairs are.

    Probabilities keep a distance from 0 and 1 that depends on the number of pairs: one in two more than the pairs seen of
    the other kind.

    Args:
        genuine: number of genuine pairs in each of several equal bins from −1 to 1.
        impostors: number of impostor pairs in each bin.

    Examples:
        >>> similarities, probabilities = monotone_map(np.array([0, 0, 1, 3]), np.array([2, 5, 1, 0]))
        >>> similarities.round(2), probabilities.round(2)
        (array([-0.75, -0.25,  0.25,  0.75]), array([0.17, 0.17, 0.67, 0.9 ]))
    """
    if not genuine.sum() or not impostors.sum():
        raise ValueError("there must be genuine pairs and impostors, but one kind is missing")
    width = 2.0 / len(genuine)
    centers = -1.0 + width * (np.arange(len(genuine)) + 0.5)
    weights = np.stack([genuine / genuine.sum(), impostors / impostors.sum()])
    total = weights.sum(axis=0)
    group = np.minimum((np.cumsum(total) - total / 2.0) / 2.0 * GROUPS, GROUPS - 1).astype(np.int64)
    held = np.unique(group[total > 0.0])
    gathered = np.stack([np.bincount(group, each, GROUPS)[held] for each in (*weights, total * centers)])
    mass = gathered[0] + gathered[1]
    least, most = 1.0 / (genuine.sum() + 2.0), 1.0 - 1.0 / (impostors.sum() + 2.0)
    rising = isotonic(gathered[0] / mass, mass).clip(least, most)
    return gathered[2] / mass, rising


def isotonic(values: Floats, weights: Floats) -> Floats:
    """Return the non-decreasing sequence that is nearest to a sequence in weighted least squares.

    Args:
        values: the sequence.
        weights: weight of each entry, above 0.

    Examples:
        >>> isotonic(np.array([1.0, 3.0, 2.0]), np.array([1.0, 1.0, 3.0]))
        array([1.  , 2.25, 2.25])
    """
    means: list[float] = []
    masses: list[float] = []
    sizes: list[int] = []
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        means.append(value)
        masses.append(weight)
        sizes.append(1)
        while len(means) > 1 and means[-2] >= means[-1]:  # merge decreasing neighbors
            mass = masses[-2] + masses[-1]
            means[-2] = (means[-2] * masses[-2] + means[-1] * masses[-1]) / mass
            masses[-2], sizes[-2] = mass, sizes[-2] + sizes[-1]
            del means[-1], masses[-1], sizes[-1]
    return np.repeat(np.array(means), sizes)


def calibration_error(
    similarities: Floats, probabilities: Floats, genuine: Counts, impostors: Counts, *, bins: int = 15
) -> float:
    """Return the expected calibration error of a map on counted pairs, with equal weight of both kinds (Naeini et al. 2015).

    Pairs are grouped into equal bins of their predicted probability; the error is the mean over pairs of the difference,
    in their bin, between the mean probability and the fraction of genuine pairs.

    Args:
        similarities: similarities at which the map is defined.
        probabilities: the predicted probabilities.
        genuine: number of genuine pairs in each of several equal bins of similarity from −1 to 1.
        impostors: number of impostor pairs in each bin.
        bins: number of bins of probability.

    Examples:
        >>> map = np.array([-1.0, 1.0]), np.array([0.25, 0.25])
        >>> calibration_error(*map, np.array([1, 1]), np.array([1, 1]))
        0.25
    """
    centers = -1.0 + 2.0 / len(genuine) * (np.arange(len(genuine)) + 0.5)
    predicted = np.interp(centers, similarities, probabilities)
    true, false = genuine / genuine.sum() / 2.0, impostors / impostors.sum() / 2.0
    step = np.minimum((predicted * bins).astype(np.int64), bins - 1)
    expected, seen = (np.bincount(step, each, bins) for each in ((true + false) * predicted, true))
    return float(np.abs(expected - seen).sum())


def _held_out_error(units: Tensor, codes: Tensor) -> float | None:
    """Return the mean error of two maps, each fitted on one half of the classes and measured on the other half."""
    sizes = torch.bincount(codes)
    paired = (sizes >= 2).nonzero().flatten()
    if len(paired) < 4:
        return None
    side = torch.arange(len(sizes)) % 2
    side[paired] = torch.arange(len(paired)) % 2  # classes with genuine pairs are divided evenly
    halves = [count_pairs(units[side[codes] == half], codes[side[codes] == half]) for half in (0, 1)]
    if any(not counts.sum() for half in halves for counts in half):
        return None
    errors = [calibration_error(*monotone_map(*halves[fitted]), *halves[1 - fitted]) for fitted in (0, 1)]
    return float(np.mean(errors))
