"""Mappers of matrix rows: `MatrixLoss` and triplet miners run on the whole matrix or on chunks through them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Protocol

import torch
from torch import Tensor

from likewise._compat import is_transformed
from likewise.distributed import SINGLE_PROCESS
from likewise.engines import graphs
from likewise.engines.chunked import plan_rows, settle, settle_mining
from likewise.engines.class_products import TILE, multiply_classes
from likewise.engines.dense import DenseEngine, dense_masks
from likewise.engines.dispatch import INDEX_FROM
from likewise.engines.histograms import compute_histograms
from likewise.engines.pair_numbers import cut_rows
from likewise.engines.positive_index import find_positive_index
from likewise.engines.positives import find_candidates
from likewise.engines.row_chunks import RowChunks
from likewise.engines.schedule import compute_folds
from likewise.engines.synchronization import compact, cut_batch
from likewise.formula import (
    ClassProducts,
    Formula,
    Labels,
    Masks,
    PairBatch,
    PositiveIndex,
    Relation,
    RowChunk,
    RowHistograms,
    RowStatistics,
    Term,
    TermValues,
    Triplets,
    evaluate,
)

Evaluate = Callable[[Term, PairBatch], TermValues]


class Kernels(Protocol):
    """Functions of the whole matrix that kernels compute."""

    def histograms(self, position: Formula, bins: int) -> RowHistograms:
        """See `likewise.formula.RowMapper`."""

    def excess(self, limits: Tensor, classes: Tensor, *, apart: bool) -> tuple[Tensor, Tensor] | None:
        """See `likewise.formula.RowMapper`."""


class WholeRows:
    """Runs functions of rows on the whole matrix, with plain autograd; a `likewise.formula.RowMapper`.

    Args:
        batch: the batch.
        evaluate: computes a formula on another batch.
        kernels: compute functions of the matrix in kernels; ``None``: from rows.

    Examples:
        >>> import torch
        >>> from likewise.formula import Labels
        >>> rows = WholeRows(PairBatch(Labels(torch.tensor([0, 1])), matrix=torch.eye(2)))
        >>> rows.map(lambda chunk: (chunk.similarities.sum(dim=1),))
        [tensor([1., 1.])]
    """

    _large = False

    def __init__(self, batch: PairBatch, evaluate: Evaluate | None = None, kernels: Kernels | None = None) -> None:
        self.batch, self._evaluate, self._kernels = batch, evaluate, kernels

    def prepare(self) -> None:
        """Compute the matrix, with its graph, and keep it."""
        self.batch = self.batch.materialize()

    def chunks(self) -> Iterator[RowChunk]:
        """The whole matrix as one chunk; it is computed on first use and kept."""
        self.prepare()
        yield self._make_chunk(self.batch, slice(0, self.batch.shape[0]), partial(dense_masks, self.batch))

    def _make_chunk(self, batch: PairBatch, rows: slice, masks: Callable[[], tuple[Tensor, Tensor]]) -> RowChunk:
        return RowChunk(batch, rows, masks, partial(self._find_candidates, rows))

    def _find_candidates(self, rows: slice, mask: Tensor) -> PositiveIndex:
        return find_candidates(mask, large=self._may_wait)

    def map(self, function: Callable[[RowChunk], tuple[Tensor, ...]]) -> list[Tensor]:
        """Tensors with one row per anchor."""
        [whole] = self.chunks()
        return list(function(whole))

    def sum(self, function: Callable[[RowChunk], tuple[Tensor, ...]]) -> list[Tensor]:
        """Tensors of fixed shapes."""
        return self.map(function)

    def choose(
        self, function: Callable[[RowChunk], Triplets], in_chunks: Callable[[], Triplets] | None = None
    ) -> Triplets:
        """Return the triplets that a function chooses from rows, without gradient, maybe with unused entries.

        Args:
            function: chooses from the rows of a chunk.
            in_chunks: chooses from a batch in chunks, if that is not a choice from each of them.
        """
        with torch.no_grad():
            [whole] = self.chunks()
            return self.compact(function(whole).with_shape(*self.batch.shape))

    def keep_pairs(
        self, masks: Callable[[RowChunk], tuple[Tensor, Tensor]], in_chunks: Callable[[], Relation]
    ) -> Relation:
        """Return the pairs that a miner keeps, without gradient.

        Args:
            masks: the kept positive and negative pairs of a chunk.
            in_chunks: returns the same pairs as a relation that holds no matrix, for a batch in chunks.
        """
        with torch.no_grad():
            [whole] = self.chunks()
            return Masks(*masks(whole))

    def compact(self, triplets: Triplets) -> Triplets:
        """Return triplets without unused entries, unless removing them would synchronize."""
        return compact(triplets, large=self._may_wait)

    def evaluate(self, term: Term, batch: PairBatch) -> TermValues:
        """A formula on another batch."""
        assert self._evaluate is not None
        return self._evaluate(term, batch)

    def histograms(self, position: Formula, bins: int) -> RowHistograms:
        """Histograms of each anchor's positives and negatives."""
        if self._kernels is not None:
            return self._kernels.histograms(position, bins)
        return RowHistograms(*self.map(partial(compute_histograms, position=position, bins=bins)))

    def excess(self, limits: Tensor, classes: Tensor, *, apart: bool) -> tuple[Tensor, Tensor] | None:
        """The excess of all negative pairs over limits, in kernels."""
        return None if self._kernels is None else self._kernels.excess(limits, classes, apart=apart)

    def multiply_classes(self, rate: float, positives: PositiveIndex) -> ClassProducts | None:
        """Sums over the negatives of both members of each pair of one class; ``None`` unless it is one batch with labels."""
        batch, relation = self.batch, self.batch.relation
        own = isinstance(relation, Labels) and relation.reference_labels is None and relation.valid is None
        is_local = batch.group is SINGLE_PROCESS and batch.shards is SINGLE_PROCESS
        most = positives.index.shape[1]
        if not (own and is_local and 0 < 2 * most <= TILE) or is_transformed() or torch.compiler.is_compiling():
            return None
        return multiply_classes(batch, rate, most)

    def statistics(self, formulas: Sequence[Formula]) -> RowStatistics:
        """A function that computes formulas with one number per anchor from rows and their masks, without gradient."""
        self.prepare()
        with torch.no_grad():
            settled = settle(formulas, self.batch)

        def of_rows(chunk: RowChunk, positive: Tensor, negative: Tensor) -> list[Tensor]:
            with torch.no_grad():
                batch = chunk.batch.under(Masks(positive, negative))
                known = compute_folds(list(formulas), DenseEngine(batch), batch, cut_rows(settled, chunk.rows))
                rows = chunk.similarities.new_empty(len(positive))
                numbers = [torch.as_tensor(evaluate(each, known), device=rows.device) for each in formulas]
                return [number.expand_as(rows) for number in numbers]

        return of_rows

    def positive_index(self, most: int | None = None, *, small: bool = True) -> PositiveIndex | None:
        """The positions of each anchor's positives."""
        options = {} if most is None else {"most": most}
        if not small and not self._large and self._pairs < INDEX_FROM:
            return None
        return find_positive_index(self.batch, large=self._may_wait, **options)

    @property
    def _may_wait(self) -> bool:
        """Whether the batch is so large that reading one number from the device takes less time than it saves."""
        return self._large or self._pairs >= graphs.UP_TO

    @property
    def _pairs(self) -> int:
        """The size of the matrix, of the largest one among ranks, so that all decide alike."""
        m, n = self.batch.shape
        return self.batch.group.largest(m) * n


class ChunkedRows(WholeRows):
    """The same on chunks of anchors, which are recomputed in the backward pass.

    Examples:
        >>> import torch
        >>> from likewise.formula import Labels
        >>> rows = ChunkedRows(PairBatch(Labels(torch.tensor([0, 1])), matrix=torch.eye(2)))
        >>> rows.map(lambda chunk: (chunk.similarities.sum(dim=1),))
        [tensor([1., 1.])]
    """

    _large = True

    def __init__(self, batch: PairBatch, evaluate: Evaluate | None = None, kernels: Kernels | None = None) -> None:
        super().__init__(batch if batch.matrix is not None else batch.prepare(), evaluate, kernels)
        self._mined = settle_mining(batch)
        self._few: tuple[PositiveIndex | None] | None = None

    def _find_candidates(self, rows: slice, mask: Tensor) -> PositiveIndex:
        if self._few is None:  # the host waits once, not for every chunk
            self._few = (find_positive_index(self.batch, large=True),)
        [few] = self._few
        return find_candidates(mask, large=True, known=None if few is None else few.rows(rows))

    def prepare(self) -> None:
        """Do nothing: chunks are computed one after the other."""

    def chunks(self) -> Iterator[RowChunk]:
        """The chunks, each with its rows of the matrix."""
        for rows in plan_rows(self.batch):
            yield self._chunk(cut_batch(self.batch, rows).materialize(), rows)

    def _chunk(self, chunk: PairBatch, rows: slice) -> RowChunk:
        return self._make_chunk(chunk, rows, partial(dense_masks, chunk, cut_rows(self._mined, rows)))

    def choose(
        self, function: Callable[[RowChunk], Triplets], in_chunks: Callable[[], Triplets] | None = None
    ) -> Triplets:
        """The triplets that a function chooses from each chunk, without gradient."""
        if in_chunks is not None:
            return in_chunks()
        found, gaps, widths = _Columns(self.batch), False, set()
        with torch.no_grad():
            for chunk in self.chunks():
                chosen = self.compact(function(chunk).with_shape(*chunk.batch.shape))
                gaps = gaps or chosen.valid is not None
                widths.add(chosen.per_anchor)
                valid = torch.ones_like(chosen.anchors) if chosen.valid is None else chosen.valid
                found.add(chunk.rows, chosen.anchors + chunk.rows.start, chosen.positives, chosen.negatives, valid)
            anchors, positives, negatives, valid = found.all()
        width = widths.pop() if len(widths) == 1 else None
        return Triplets(anchors, positives, negatives, valid.bool() if gaps else None, self.batch.shape, width)

    def keep_pairs(
        self, masks: Callable[[RowChunk], tuple[Tensor, Tensor]], in_chunks: Callable[[], Relation]
    ) -> Relation:
        """The pairs that a miner keeps, as a relation that holds no matrix."""
        return in_chunks()

    def map(self, function: Callable[[RowChunk], tuple[Tensor, ...]]) -> list[Tensor]:
        """Tensors with one row per anchor, chunk by chunk."""
        return self._run(function, summed=False)

    def sum(self, function: Callable[[RowChunk], tuple[Tensor, ...]]) -> list[Tensor]:
        """Tensors of fixed shapes, summed over chunks."""
        return self._run(function, summed=True)

    def _run(self, function: Callable[[RowChunk], tuple[Tensor, ...]], *, summed: bool) -> list[Tensor]:
        cut = plan_rows(self.batch)
        return RowChunks(
            self.batch,
            cut,
            lambda chunk, rows, _numbers, _back: function(self._chunk(chunk, rows)),
            summed=summed,
        ).run()


class KernelRows(ChunkedRows):
    """A mapper of functions that kernels compute; it refuses all others."""

    def multiply_classes(self, rate: float, positives: PositiveIndex) -> None:
        """``None``: kernels compute each pair."""

    def _run(self, function: Callable[[RowChunk], tuple[Tensor, ...]], *, summed: bool) -> list[Tensor]:
        raise TypeError(
            "backend must be 'auto', 'chunked' or 'dense' where anchors have many positives, or labels do not determine them, "
            "because kernels handle few positives per anchor, but it is 'triton'"
        )


class _Columns:
    """Indices from several chunks, in memory that is allocated before that of the chunks.

    Otherwise results would be allocated between the matrices of consecutive chunks; see `likewise.engines.recompute`.
    """

    def __init__(self, batch: PairBatch) -> None:
        self.anchors, self.filled = batch.shape[0], 0
        self.room = torch.empty(4, self.anchors, dtype=torch.int64, device=batch.relation.device)

    def add(self, rows: slice, *columns: Tensor) -> None:
        """Add the indices of some rows."""
        end = self.filled + len(columns[0])
        if end > self.room.shape[1]:  # enough for all rows if each has as many indices as the rows so far
            larger = self.room.new_empty(4, max(end, min(end * self.anchors // max(rows.stop, 1), 2 * end)))
            larger[:, : self.filled] = self.room[:, : self.filled]
            self.room = larger
        for place, column in zip(self.room, columns, strict=True):
            place[self.filled : end] = column
        self.filled = end

    def all(self) -> tuple[Tensor, ...]:
        """All indices."""
        return self.room[:, : self.filled].unbind()
