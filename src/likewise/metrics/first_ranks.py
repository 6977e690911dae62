"""Ranks of the first neighbors of queries among themselves by label, from half of the products, on a CPU.

Only negatives that may be among the first neighbors of a query are looked at: see `candidates`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from likewise.metrics.candidates import Candidates, CrowdedError
from likewise.metrics.cores import Cores
from likewise.metrics.inputs import MetricInputs
from likewise.metrics.positives import CountNeeds, RankChunk, make_rank_chunk
from likewise.metrics.symmetric_ranks import Layout, SymmetricSimilarities, multiply_on_diagonal
from likewise.metrics.threshold_counts import exclude

GROWTH = 3
"""Thresholds rise whenever this many times as many similarities are known."""


def rank_first_neighbors(
    inputs: MetricInputs, layout: Layout, needs: CountNeeds, cores: Cores
) -> list[Callable[[], RankChunk]] | None:
    """Return functions that rank the queries of small classes, a chunk each; ``None`` if candidates are too many."""
    try:
        candidates = _Selection(inputs, layout, needs, cores).collect()
    except CrowdedError:
        return None
    return [partial(_make_chunk, layout, *pair) for pair in zip(layout.list_small(), candidates, strict=True)]


def _make_chunk(layout: Layout, chunk: tuple[int, int], candidates: Candidates) -> RankChunk:
    samples, positives = layout.order[chunk[0] : chunk[1]], candidates.positives
    return make_rank_chunk(samples, positives.counts, None, candidates.rank(), candidates.is_finite)


class _Selection:
    """One pass over half of the matrix, along its diagonals, so that the thresholds of all queries rise together.

    Args:
        inputs: the queries and their similarity.
        layout: samples in the order of their classes.
        needs: which ranks are needed.
        cores: threads, each of which reads a pair of chunks at a time.
    """

    def __init__(self, inputs: MetricInputs, layout: Layout, needs: CountNeeds, cores: Cores) -> None:
        self.layout, self.needs, self.cores = layout, needs, cores
        self.similarities = SymmetricSimilarities(inputs, layout)
        self.candidates: list[Candidates] = []

    def collect(self) -> list[Candidates]:
        """Return the candidates of each chunk of small classes."""
        self.candidates = self.cores.map(self._start, self.layout.list_small())
        for pairs in self._plan():
            self.cores.map(self._read, pairs, "ranks")
            self.cores.map(Candidates.select, [each for each in self.candidates if each.added])
        return self.candidates

    def _plan(self) -> list[list[tuple[int, int]]]:
        """Pairs of chunks that are read between two selections."""
        rounds: list[list[tuple[int, int]]] = []
        count, known = len(self.layout.chunks), 1
        for distance in range(1, count // 2 + 1):
            if 2 * distance - 1 >= known:
                rounds.append([])
                known = GROWTH * (2 * distance - 1)
            # the last diagonal of an even number of chunks has each pair twice
            rows = range(count // 2 if 2 * distance == count else count)
            pairs = [(i, (i + distance) % count) for i in rows]
            rounds[-1] += [pair for pair in pairs if min(pair) < len(self.candidates)]
        return rounds

    def _start(self, chunk: tuple[int, int]) -> Candidates:
        """Select from a chunk's product with itself."""
        values, positives, of_class = multiply_on_diagonal(self.similarities, chunk, self.needs)
        exclude(values, *of_class)
        return Candidates.start(values, positives, self.needs.count_each(positives.counts))

    def _read(self, pair: tuple[int, int]) -> None:
        """Add the candidates among the similarities of two chunks, for the queries of both."""
        left, right = (self.similarities.take(self.layout.chunks[i]) for i in pair)
        for rows, values in self.similarities.multiply_few_rows(left, right):
            for dim, i in enumerate(pair):
                if i < len(self.candidates):
                    self._add(self.candidates[i], values.numpy(), dim, rows.start)

    def _add(self, candidates: Candidates, values: NDArray[np.float32], dim: int, start: int) -> None:
        """Add the candidates among the similarities of some rows, from ``start`` on, for the rows or the columns."""
        height, width = values.shape
        thresholds = candidates.thresholds if dim else candidates.thresholds[start : start + height, None]
        reached = self.similarities.scratch.numpy().view(np.bool_)[: values.size].reshape(height, width)
        np.greater_equal(values, thresholds, out=reached)
        row, column = np.divmod(np.flatnonzero(reached).astype(np.int32), np.int32(width))
        candidates.add(column if dim else row + np.int32(start), values[row, column])
