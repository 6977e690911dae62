"""Verification: whether two samples belong to one class, by a threshold on their similarity."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from likewise.formula import SimilarityLike
from likewise.metrics.arrays import Array
from likewise.metrics.chunks import MEMORY, fit_rows, split_pairs
from likewise.metrics.cores import map_over_cores
from likewise.metrics.inputs import Exclusion, MetricInputs, Relevance, check_inputs
from likewise.metrics.precision import exact_precision
from likewise.metrics.prepared_rows import PreparedRows, compute_center, multiply, round_up
from likewise.progress import track

MAX_GRID = 2**18
"""Thresholds if there are too many genuine pairs for the memory: evenly spaced over all similarities."""

BYTES_PER_GENUINE = 128
"""Memory per genuine pair: a threshold, four counts, and the temporaries of collecting and sorting them."""

MAX_SIZE, MAX_SIZE_ON_DEVICE = 2048, 8192
"""Rows and columns of a chunk of similarities."""


def verification(
    embeddings: Array,
    labels: Array | None = None,
    references: Array | None = None,
    reference_labels: Array | None = None,
    *,
    far: Sequence[float] = (1e-1, 1e-2, 1e-3),
    similarity: SimilarityLike = "cosine",
    relevant: Relevance | None = None,
    ids: Array | None = None,
    reference_ids: Array | None = None,
    exclude_self: bool = False,
    memory: int = MEMORY,
) -> dict[str, Any]:
    r"""Compute the area under the ROC curve, the equal error rate and true-accept rates over all pairs.

    A pair is accepted at a threshold t if its similarity is at least t.  With the fraction of genuine pairs (same
    label) that are accepted, $TAR(t)$, and the fraction of impostor pairs that are accepted, $FAR(t)$:

    - ``AUC``: the probability that a genuine pair is more similar than an impostor pair; a tie counts one half;
    - ``EER``: the error rate at which false accepts and false rejects are equal, $FAR(t) = 1 - TAR(t)$, linearly
      interpolated between two thresholds;
    - ``TAR@f``: the largest $TAR(t)$ with $FAR(t) \le f$; ``threshold@f`` is its threshold (infinity if every
      threshold with $FAR(t) \le f$ rejects all genuine pairs).

    The result is exact if half of ``memory`` holds the genuine pairs (128 bytes each).  Otherwise thresholds are the
    points of a grid over the range of similarities, at most 2¹⁸, and ``exact`` is false.

    Args:
        embeddings: ``(m, d)``; without references every unordered pair of them counts once.
        labels: their labels.
        references: embeddings to pair with the first ones, ``(n, d)``.
        reference_labels: their labels.
        far: false-accept rates, each in (0, 1].
        similarity: how two embeddings are compared.
        relevant: which pairs are genuine, in place of labels, as in `retrieval`; pairs of a relation that are neither
            positive nor negative are ignored.  Without references it must be symmetric, and so must the similarity:
            only the upper triangle is read.
        ids: the sample id of each of ``embeddings``, as in `retrieval`; pairs with the same id are ignored.
        reference_ids: the sample id of each reference.
        exclude_self: set this if the references begin with ``embeddings``: a sample is then not paired with itself.
        memory: bytes that the computation may take.

    Returns:
        The scores above, the counts ``"genuine"`` and ``"impostors"``, and ``"exact"``.

    Examples:
        >>> import torch
        >>> scores = verification(torch.eye(4)[[0, 0, 1, 1]], torch.tensor([7, 7, 8, 8]), far=[0.01])
        >>> scores["AUC"], scores["EER"], scores["TAR@0.01"], scores["genuine"], scores["impostors"]
        (1.0, 0.0, 1.0, 2, 4)
    """
    rates = check_rates(far)
    exclusion = Exclusion(ids, reference_ids, exclude_self)
    inputs = check_inputs(embeddings, labels, references, reference_labels, exclusion, similarity, relevant, memory)
    with exact_precision(inputs.embeddings.queries):
        curve = _Curve.compute(inputs)
    for name, count in (("genuine", curve.genuine), ("impostor", curve.impostors)):
        if not count:
            what = "labels" if relevant is None else "relevant"
            raise ValueError(f"{what} must give at least one {name} pair, but there is none")
    result: dict[str, Any] = {"AUC": curve.area(), "EER": curve.equal_error()}
    for rate in rates:
        result[f"TAR@{rate:g}"], result[f"threshold@{rate:g}"] = curve.find_threshold(rate)
    return {**result, "genuine": curve.genuine, "impostors": curve.impostors, "exact": curve.exact}


def check_rates(far: Sequence[float]) -> tuple[float, ...]:
    """Check false-accept rates and return them.

    Examples:
        >>> check_rates([0.0])
        Traceback (most recent call last):
        ...
        ValueError: each of far must be above 0 and at most 1, but it is 0.0
    """
    if isinstance(far, str) or not isinstance(far, Iterable):
        raise TypeError(f"far must be a sequence of rates, but it is {far!r}")
    rates = tuple(far)
    for rate in rates:
        if not isinstance(rate, float | int) or not 0.0 < rate <= 1.0:
            raise ValueError(f"each of far must be above 0 and at most 1, but it is {rate!r}")
    return rates


class _Curve:
    """The numbers of genuine and impostor pairs that reach and that exceed ascending thresholds, ``(t,)`` int64."""

    def __init__(self, thresholds: Tensor, genuine: Tensor, impostors: Tensor, exact: bool) -> None:
        self.thresholds, self.exact = thresholds, exact
        self.genuine, self.impostors = int(genuine[0, -1]), int(impostors[0, -1])
        self.true, self.false = genuine[:, :-1], impostors[:, :-1]

    @staticmethod
    def compute(inputs: MetricInputs) -> _Curve:
        pairs = _Pairs(inputs)
        exact = BYTES_PER_GENUINE * pairs.count_genuine() <= inputs.memory // 2
        if exact:
            genuine = [similarities[same] for similarities, same, _ in pairs.iterate(impostors=False)]
            thresholds = torch.unique(torch.cat(genuine)) if genuine else pairs.empty()
        else:
            low, high = pairs.range()
            points = min(MAX_GRID, max(2, inputs.memory // (2 * BYTES_PER_GENUINE)))
            thresholds = torch.linspace(low, high, points, dtype=torch.float64, device=pairs.device).to(pairs.dtype)
            thresholds = torch.unique(thresholds)
        counts = torch.zeros(2, 2, len(thresholds) + 1, dtype=torch.int64, device=pairs.device)
        for similarities, same, other in pairs.iterate():
            counts[0, :, -1] += same.sum()
            counts[1, :, -1] += other.sum()
            counts[0, :, :-1] += _count_reached(similarities[same], thresholds)
            counts[1, :, :-1] += _count_reached(similarities.masked_fill_(~other, -torch.inf).reshape(-1), thresholds)
        return _Curve(thresholds, counts[0], counts[1], exact)

    def rates(self) -> tuple[Tensor, Tensor]:
        """The points of the curve: false-accept and true-accept rates, from (0, 0) to (1, 1)."""
        return _compute_rates(self.false, self.impostors), _compute_rates(self.true, self.genuine)

    def area(self) -> float:
        """The area under straight lines between the points."""
        accept, true = self.rates()
        return torch.trapezoid(true, accept).item()

    def equal_error(self) -> float:
        """The error rate where the line between two consecutive points crosses the diagonal."""
        accept, true = self.rates()
        gap = accept - (1.0 - true)  # ascending from −1 to 1
        after = int((gap >= 0.0).nonzero()[0])
        fraction = -gap[after - 1] / (gap[after] - gap[after - 1])
        return (accept[after - 1] + fraction * (accept[after] - accept[after - 1])).item()

    def find_threshold(self, rate: float) -> tuple[float, float]:
        """Return the largest true-accept rate within a false-accept rate, and its threshold."""
        is_within = (self.false[0].double() / self.impostors <= rate).nonzero()
        if not len(is_within):
            return 0.0, float("inf")
        first = int(is_within[0])
        return self.true[0, first].item() / self.genuine, self.thresholds[first].item()


def _compute_rates(counts: Tensor, total: int) -> Tensor:
    # from the highest threshold down, each threshold gives two points: pairs that exceed it, pairs that reach it
    points = counts.flip(1).T.flip(1).reshape(-1).double()
    return torch.cat([points.new_zeros(1), points, points.new_tensor([total])]) / total


def _count_reached(values: Tensor, thresholds: Tensor) -> Tensor:
    """Count the values that reach and that exceed each threshold, ``(2, t)``; the values may be overwritten."""
    if values.is_cuda:
        ordered = values.sort().values
        below = torch.stack([torch.searchsorted(ordered, thresholds, right=right) for right in (False, True)])
        return len(values) - below
    edges = thresholds.numpy()

    def count(chunk: np.ndarray) -> np.ndarray:
        chunk.sort()
        return np.stack([len(chunk) - np.searchsorted(chunk, edges, side=side) for side in ("left", "right")])

    return torch.from_numpy(np.sum(map_over_cores(count, values), axis=0))


class _Pairs:
    """All pairs chunk by chunk: similarities, which are genuine and which are impostors."""

    def __init__(self, inputs: MetricInputs) -> None:
        embeddings, similarity = inputs.embeddings, inputs.similarity
        self.inputs, self.device, self.dtype = inputs, embeddings.queries.device, embeddings.dtype
        center = compute_center(embeddings.references, similarity, self.dtype)
        self.left = PreparedRows(embeddings.queries, None, similarity, self.dtype, center)
        self.right = self.left
        if not embeddings.same_set:
            self.right = PreparedRows(embeddings.references, None, similarity, self.dtype, center)
        budget = inputs.memory // 2
        if self.right.nbytes <= budget // 2:
            self.right.cache()
            budget -= self.right.nbytes
        # similarities, their masks, the values of one kind, and the temporaries of sorting them
        size = fit_rows(budget, per_pair=6 * self.dtype.itemsize + 20)
        self.size = round_up(min(MAX_SIZE if self.device.type == "cpu" else MAX_SIZE_ON_DEVICE, size), self.device)

    def empty(self) -> Tensor:
        return torch.empty(0, dtype=self.dtype, device=self.device)

    def _split(self) -> list[tuple[slice, slice]]:
        return split_pairs(len(self.left), len(self.right), self.size, upper=self.inputs.embeddings.same_set)

    def _masks(self, rows: slice, columns: slice) -> tuple[Tensor, Tensor]:
        same, other = self.inputs.masks(rows, columns)
        if self.inputs.embeddings.same_set and rows == columns:
            return same.triu(1), other.triu(1)
        return same, other

    def count_genuine(self) -> int:
        """Return the number of genuine pairs, or a few more."""
        classes = self.inputs.classes()
        if classes is not None:
            pairs = int(classes.sizes[classes.queries].sum())
            return (pairs - len(classes.queries)) // 2 if self.inputs.embeddings.same_set else pairs
        return sum(int(self._masks(rows, columns)[0].sum()) for rows, columns in self._split())

    def iterate(self, impostors: bool = True) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Yield similarities and masks of all chunks; without impostors, of the chunks that hold a genuine pair."""
        out = torch.empty(self.size, self.size, dtype=self.dtype, device=self.device)
        for rows, columns in track(self._split(), "pairs"):
            same, other = self._masks(rows, columns)
            if impostors or bool(same.any()):
                left = self.left.take(rows.start, rows.start + self.size)
                right = self.right.take(columns.start, columns.start + self.size)
                similarities = multiply(left, right, self.inputs.similarity, out)
                yield similarities[: same.shape[0], : same.shape[1]], same, other

    def range(self) -> tuple[float, float]:
        """The smallest and the largest similarity."""
        ends = [torch.stack(similarities.aminmax()) for similarities, _, _ in self.iterate()]
        low, high = torch.stack(ends).T
        return low.min().item(), high.max().item()
