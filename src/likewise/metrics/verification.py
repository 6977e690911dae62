"""Verification: are these two the same?  Genuine pairs against impostors, over all pairs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import isqrt
from typing import Any

import numpy as np
import torch
from torch import Tensor

from likewise.formula import Labels, SimilarityLike
from likewise.metrics.counting import on_each_core
from likewise.metrics.pieces import Search
from likewise.metrics.ranks import Array, Relevance, make_search
from likewise.metrics.tiles import MEMORY, Rows, center, exactly, multiply, track, whole_grains

GRID = 2**18
"""Thresholds where genuine pairs are too many to hold: evenly spaced over all similarities."""


BYTES_PER_GENUINE = 128
"""A threshold, four counts, and what is found and sorted on the way to them."""


def verification(
    embeddings: Array,
    labels: Array | None = None,
    references: Array | None = None,
    reference_labels: Array | None = None,
    *,
    far: Sequence[float] = (1e-1, 1e-2, 1e-3),
    similarity: SimilarityLike = "cosine",
    relevant: Relevance | None = None,
    own: Array | None = None,
    memory: int = MEMORY,
) -> dict[str, Any]:
    r"""Area under the ROC curve, equal error rate, and true-accept rates at false-accept rates, over all pairs.

    A pair is accepted at a threshold t if its similarity is at least t.  With the share of genuine pairs (same label)
    that are accepted, $TAR(t)$, and the share of impostors that are, $FAR(t)$:

    - ``AUC``: the chance that a genuine pair is more similar than an impostor, a tie counting one half;
    - ``EER``: the error rate at which false accepts and false rejects balance, $FAR(t) = 1 - TAR(t)$, between two
      thresholds by linear interpolation;
    - ``TAR@f``: the largest $TAR(t)$ with $FAR(t) \le f$; ``threshold@f`` is where it is reached (infinity if no
      threshold rejects enough impostors and accepts anybody).

    Exact as long as half of ``memory`` holds the genuine pairs (128 bytes each); beyond, thresholds are the points of a
    grid over the range of similarities, at most 2¹⁸, and ``exact`` says so.

    Args:
        embeddings: ``(m, d)``; without references every unordered pair of them is looked at once.
        labels: their labels.
        references: pairs are made between embeddings and these, ``(n, d)``.
        reference_labels: their labels.
        far: false-accept rates, each in (0, 1].
        similarity: how two embeddings are compared.
        relevant: which pairs are genuine, in place of labels, as in `retrieval`; pairs of a relation that are neither
            are left out.  Without references it must be symmetric, as must the similarity: the upper triangle is read.
        own: which reference is the query itself, as in `retrieval`: that pair is left out.
        memory: bytes that the pass may take.

    Returns:
        The numbers above, the counts ``"genuine"`` and ``"impostors"``, and ``"exact"``.

    Examples:
        >>> import torch
        >>> found = verification(torch.eye(4)[[0, 0, 1, 1]], torch.tensor([7, 7, 8, 8]), far=[0.01])
        >>> found["AUC"], found["EER"], found["TAR@0.01"], found["genuine"], found["impostors"]
        (1.0, 0.0, 1.0, 2, 4)
    """
    if isinstance(far, str) or not isinstance(far, Iterable):
        raise TypeError(f"far must be a sequence of rates, but it is {far!r}")
    for rate in far:
        if not isinstance(rate, float | int) or not 0.0 < rate <= 1.0:
            raise ValueError(f"each of far must be above 0 and at most 1, but it is {rate!r}")
    search = make_search(embeddings, labels, references, reference_labels, similarity, relevant, own, memory)
    with exactly(search.sides.queries):
        curve = _Curve.of(search)
    for name, count in (("genuine", curve.genuine), ("impostor", curve.impostors)):
        if not count:
            what = "labels" if relevant is None else "relevant"
            raise ValueError(f"{what} must give at least one {name} pair, but there is none")
    result: dict[str, Any] = {"AUC": curve.area(), "EER": curve.equal_error()}
    for rate in far:
        result[f"TAR@{rate:g}"], result[f"threshold@{rate:g}"] = curve.accepted_at(rate)
    return {**result, "genuine": curve.genuine, "impostors": curve.impostors, "exact": curve.exact}


class _Curve:
    """How many pairs of each kind reach, and how many exceed, each of some ascending thresholds, ``(t,)`` int64."""

    def __init__(self, thresholds: Tensor, genuine: Tensor, impostors: Tensor, exact: bool) -> None:
        self.thresholds, self.exact = thresholds, exact
        self.genuine, self.impostors = int(genuine[0, -1]), int(impostors[0, -1])
        self.true, self.false = genuine[:, :-1], impostors[:, :-1]

    @staticmethod
    def of(search: Search) -> _Curve:
        tiles = _Pairs(search)
        exact = BYTES_PER_GENUINE * tiles.most_genuine() <= search.memory // 2
        if exact:
            found = [similarities[same] for similarities, same, _ in tiles.pairs(impostors=False)]
            thresholds = torch.unique(torch.cat(found)) if found else tiles.empty()
        else:
            low, high = tiles.range()
            points = min(GRID, max(2, search.memory // (2 * BYTES_PER_GENUINE)))
            thresholds = torch.linspace(low, high, points, dtype=torch.float64, device=tiles.device).to(tiles.dtype)
            thresholds = torch.unique(thresholds)
        counts = torch.zeros(2, 2, len(thresholds) + 1, dtype=torch.int64, device=tiles.device)
        for similarities, same, other in tiles.pairs():
            counts[0, :, -1] += same.sum()
            counts[1, :, -1] += other.sum()
            counts[0, :, :-1] += _reached(similarities[same], thresholds)
            counts[1, :, :-1] += _reached(similarities.masked_fill_(~other, -torch.inf).reshape(-1), thresholds)
        return _Curve(thresholds, counts[0], counts[1], exact)

    def rates(self) -> tuple[Tensor, Tensor]:
        """The curve's points: false-accept and true-accept rates, from (0, 0) to (1, 1)."""
        # exceeded and reached by turns, from the highest threshold down
        return _rates(self.false, self.impostors), _rates(self.true, self.genuine)

    def area(self) -> float:
        """The area under straight lines between the points."""
        accept, true = self.rates()
        return torch.trapezoid(true, accept).item()

    def equal_error(self) -> float:
        """Where the line from one threshold's errors to the next's meets the diagonal."""
        accept, true = self.rates()
        gap = accept - (1.0 - true)  # from −1 up to 1
        after = int((gap >= 0.0).nonzero()[0])
        span = gap[after] - gap[after - 1]
        share = -gap[after - 1] / span
        return (accept[after - 1] + share * (accept[after] - accept[after - 1])).item()

    def accepted_at(self, rate: float) -> tuple[float, float]:
        """The largest true-accept rate within a false-accept rate, and its threshold."""
        allowed = (self.false[0].double() / self.impostors <= rate).nonzero()
        if not len(allowed):
            return 0.0, float("inf")
        first = int(allowed[0])
        return self.true[0, first].item() / self.genuine, self.thresholds[first].item()


def _rates(counts: Tensor, total: int) -> Tensor:
    steps = counts.flip(1).T.flip(1).reshape(-1).double()
    return torch.cat([steps.new_zeros(1), steps, steps.new_tensor([total])]) / total


def _reached(values: Tensor, thresholds: Tensor) -> Tensor:
    """How many values reach and how many exceed each threshold, ``(2, t)``; the values may be overwritten."""
    if values.is_cuda:
        ordered = values.sort().values
        right = torch.stack([torch.searchsorted(ordered, thresholds, right=side) for side in (False, True)])
        return len(values) - right
    edges = thresholds.numpy()

    def count(part: np.ndarray) -> np.ndarray:
        part.sort()
        return np.stack([len(part) - np.searchsorted(part, edges, side=side) for side in ("left", "right")])

    return torch.from_numpy(np.sum(on_each_core(count, values), axis=0))


class _Pairs:
    """All pairs tile by tile: similarities, which are genuine and which are impostors."""

    def __init__(self, search: Search) -> None:
        sides, similarity = search.sides, search.similarity
        self.search, self.device, self.dtype = search, sides.queries.device, sides.dtype
        middle = center(sides.references, similarity, sides.dtype)
        self.left = Rows(sides.queries, None, similarity, sides.dtype, middle)
        self.right = self.left if sides.alone else Rows(sides.references, None, similarity, sides.dtype, middle)
        left = search.memory // 2
        if self.right.nbytes <= left // 2:
            self.right.keep()
            left -= self.right.nbytes
        # a tile, its masks, the values of one kind, and what sorting them takes
        largest = 2048 if self.device.type == "cpu" else 8192
        self.side = whole_grains(max(1, min(largest, isqrt(left // (6 * sides.dtype.itemsize + 20)))), self.device)

    def empty(self) -> Tensor:
        return torch.empty(0, dtype=self.dtype, device=self.device)

    def _blocks(self) -> Iterator[tuple[slice, slice]]:
        m, n = len(self.left), len(self.right)
        for top in range(0, m, self.side):
            for start in range(top if self.search.sides.alone else 0, n, self.side):
                yield slice(top, min(top + self.side, m)), slice(start, min(start + self.side, n))

    def _masks(self, rows: slice, columns: slice) -> tuple[Tensor, Tensor]:
        relation = self.search.relation
        same, other = relation.masks(rows, columns)
        if isinstance(relation, Labels) and relation.own is not None:
            index = torch.arange(columns.start, columns.stop, device=self.device)
            other = other & (relation.own[rows, None] != index)
        if self.search.sides.alone and rows == columns:
            return same.triu(1), other.triu(1)
        return same, other

    def most_genuine(self) -> int:
        """How many pairs are genuine, or a few more."""
        classes = self.search.classes()
        if classes is not None:
            pairs = int(classes.sizes[classes.queries].sum())
            return (pairs - len(classes.queries)) // 2 if self.search.sides.alone else pairs
        return sum(int(self._masks(*block)[0].sum()) for block in self._blocks())

    def pairs(self, impostors: bool = True) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Similarities and masks of all tiles, or of those alone that hold a genuine pair."""
        tile = torch.empty(self.side, self.side, dtype=self.dtype, device=self.device)
        for rows, columns in track(list(self._blocks()), "pairs"):
            same, other = self._masks(rows, columns)
            if impostors or bool(same.any()):
                left = self.left.take(rows.start, rows.start + self.side)
                right = self.right.take(columns.start, columns.start + self.side)
                similarities = multiply(left, right, self.search.similarity, tile)
                yield similarities[: same.shape[0], : same.shape[1]], same, other

    def range(self) -> tuple[float, float]:
        """The smallest and the largest similarity."""
        ends = [torch.stack(similarities.aminmax()) for similarities, _, _ in self.pairs()]
        low, high = torch.stack(ends).T
        return low.min().item(), high.max().item()
