"""The chunked engine: the matrix is computed in chunks, and each chunk is recomputed in the backward pass.

There are three kinds of chunks.  *Rows*: some anchors against all references, so every fold of a row is complete in its
chunk; passes, mining and curves run on a matrix that fits the cache.  *A table as anchors* (proxies): the same, but each
chunk of the table is widened and normalized separately.  *A table as references*: all anchors against some columns; the
states of folds, a few numbers per anchor, are merged.  Memory grows with the batch and the chunk, not with the matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import torch
from torch import Tensor

from likewise.engines.dense import DenseEngine, last_uses
from likewise.engines.indexed import IndexedEngine, IndexedMatrix, collect_numbers, start_others
from likewise.engines.pair_numbers import PairNumbers, cut_rows
from likewise.engines.positive_columns import PositiveColumns
from likewise.engines.recompute import Results, count_busy_rows, plan_chunks
from likewise.engines.row_chunks import RowChunks
from likewise.engines.schedule import Engine, compute_folds
from likewise.engines.table_chunks import TableChunks
from likewise.formula import (
    Count,
    Folded,
    Formula,
    Labels,
    Mined,
    PairBatch,
    PerReference,
    Pooled,
    PositiveIndex,
    Rank,
    State,
    Total,
    walk,
)


def plan_rows(batch: PairBatch) -> list[slice]:
    """Chunks of a batch's anchors.

    Examples:
        >>> import torch
        >>> from likewise.formula import Labels, PairBatch
        >>> plan_rows(PairBatch(Labels(torch.tensor([0, 1])), matrix=torch.eye(2)))
        [slice(0, 2, None)]
    """
    m, n = batch.shape
    like = batch.matrix if batch.anchors is None else batch.anchors
    assert like is not None
    return plan_chunks(m, n, like if like.dtype == batch.dtype else like.new_empty(0, dtype=batch.dtype))


class ChunkedEngine(Engine):
    """Folds over chunks of anchors.

    Args:
        batch: the batch.
        positives: the positions of each anchor's positives, if known; chunks then do not need masks.

    Examples:
        >>> import torch
        >>> from likewise.formula import Cosine, Labels, NEGATIVES, PairBatch, largest, s
        >>> batch = PairBatch(Labels(torch.tensor([0, 1])), Cosine(), anchors=torch.tensor([[1.0, 0.0], [0.6, 0.8]]))
        >>> list(ChunkedEngine(batch).fold([[largest(s, NEGATIVES)]], {}).values())
        [tensor([0.6000, 0.6000])]
    """

    def __init__(self, batch: PairBatch, positives: PositiveIndex | None = None) -> None:
        self.batch, self.positives = batch, positives
        self.mined = settle_mining(batch)

    def fold(self, passes: list[list[Folded]], known: dict[Formula, Any]) -> dict[Formula, Tensor]:
        """One vector per fold, chunk by chunk."""
        folds: list[Folded] = [each for one in passes for each in one]
        differentiable = _with_gradient(passes)

        def compute(engine: Engine, of_chunk: dict[Formula, Tensor], back: bool) -> Results:
            results = engine.fold(differentiable if back else passes, of_chunk)
            return tuple(results.get(each) for each in folds)

        return dict(zip(folds, self._run(folds, known, compute), strict=True))

    def states(self, folds: list[Folded], known: dict[Formula, Any]) -> list[State]:
        """The unfinished folds of one pass, chunk by chunk."""
        sizes: list[int] = []

        def compute(engine: Engine, of_chunk: dict[Formula, Tensor], back: bool) -> Results:
            states = engine.states(folds, of_chunk)
            sizes[:] = map(len, states)
            return tuple(vector for state in states for vector in state)

        vectors = iter(self._run(folds, known, compute))
        return [tuple(next(vectors) for _ in range(size)) for size in sizes]

    def _run(
        self,
        folds: list[Folded],
        known: dict[Formula, Any],
        compute: Callable[[Engine, dict[Formula, Tensor], bool], Results],
    ) -> list[Tensor]:
        (numbers, pairs), ends = _split_numbers(collect_numbers(folds, known)), last_uses(folds)

        def of_rows(chunk: PairBatch, rows: slice, values: Sequence[Tensor], back: bool) -> Results:
            parts = {
                node: value[rows] if _per_anchor(node) else value for node, value in zip(numbers, values, strict=True)
            }
            return compute(self._engine(chunk, rows, ends), parts | cut_rows(pairs, rows), back)

        tensors, closed = list(numbers.values()), not pairs  # numbers per pair may have a gradient by anything
        if self.batch.table == "anchors":
            return self._run_on_table(of_rows, tensors, closed)
        return RowChunks(self.batch, plan_rows(self.batch), of_rows, tensors, closed=closed).run()

    def _run_on_table(self, of_rows: Callable[..., Results], numbers: list[Tensor], closed: bool) -> list[Tensor]:
        """Chunks of a table of anchors; each is widened and prepared separately."""
        batch, table, references = self.batch, self.batch.anchors, self.batch.references
        assert table is not None
        assert references is not None

        def compute(some: Tensor, rows: slice, inputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
            references, *values = inputs
            chunk = PairBatch(
                batch.relation.rows(rows), batch.similarity, anchors=batch.from_table(some), references=references
            )
            return tuple(each for each in of_rows(chunk, rows, values, False) if each is not None)

        chunks = TableChunks(
            table, plan_rows(batch), compute, [references, *numbers], closed=closed, use_table=batch.use_table
        )
        results, _ = chunks.run()
        return [torch.cat(chunks) for chunks in zip(*results, strict=True)]

    def _engine(self, chunk: PairBatch, rows: slice, ends: dict[Formula, list[Formula]]) -> Engine:
        """The engine of one chunk."""
        if self.positives is None:
            return DenseEngine(chunk, cut_rows(self.mined, rows), ends)
        columns = PositiveColumns.of_batch(self.positives.rows(rows), chunk.shape[1], rows.start)
        return IndexedMatrix(chunk.similarities(), columns)


def _with_gradient(passes: list[list[Folded]]) -> list[list[Folded]]:
    """The folds without counts, which have no gradient, except those that a curve refers to."""
    used = {node for folds in passes for each in folds for node in walk(each.curve)}
    kept = [[each for each in folds if each in used or not isinstance(each.fold, Count)] for folds in passes]
    return [folds for folds in kept if folds]


def _per_anchor(node: Formula) -> bool:
    return node.rank == Rank.ANCHOR and not isinstance(node, PerReference)


def _split_numbers(numbers: dict[Formula, Any]) -> tuple[dict[Formula, Tensor], dict[Formula, PairNumbers]]:
    """Numbers that are tensors, and numbers per pair, which chunks compute."""
    pairs = {node: value for node, value in numbers.items() if isinstance(value, PairNumbers)}
    return {node: value for node, value in numbers.items() if node not in pairs}, pairs


def settle_mining(batch: PairBatch) -> dict[Formula, Any]:
    """The numbers of the whole batch, and per pair, that a miner's conditions refer to; a chunk cannot compute them."""
    relation = batch.relation
    if not isinstance(relation, Mined):
        return {}
    with torch.no_grad():
        return settle([relation.keep_positive, relation.keep_negative], batch.under(relation.base))


def settle(formulas: Sequence[Formula], batch: PairBatch) -> dict[Formula, Any]:
    """The numbers of the whole batch, and per pair, that formulas refer to.

    Examples:
        >>> import torch
        >>> from likewise.formula import POSITIVES, Labels, add_up, s
        >>> batch = PairBatch(Labels(torch.tensor([0, 0])), matrix=torch.full((2, 2), 0.5))
        >>> list(settle([s - Total(add_up(s, POSITIVES))], batch).values())
        [tensor(1.)]
    """
    known = compute_folds(list(formulas), ChunkedEngine(batch), batch, only_totals=True)
    return {node: value for node, value in known.items() if isinstance(node, Total) or isinstance(value, PairNumbers)}


class ColumnEngine(IndexedEngine):
    """Folds over a table of references, such as proxies, in chunks of columns.

    The positions of an anchor's positives in the table are known, so folds over positives read only these columns.

    Args:
        batch: anchors against a table; its relation contains the positions of the positives.
        whole: compare with the whole table at once, regardless of its size.

    Examples:
        >>> import torch
        >>> from likewise.formula import Cosine, NEGATIVES, largest, s
        >>> relation = Labels(torch.tensor([1]), torch.arange(2), positives=PositiveIndex(torch.tensor([[1]])))
        >>> table, anchors = torch.eye(2), torch.tensor([[0.6, 0.8]])
        >>> batch = PairBatch(relation, Cosine(), anchors=anchors, references=table, table="references")
        >>> list(ColumnEngine(batch).fold([[largest(s, NEGATIVES)]], {}).values())
        [tensor([0.6000])]
    """

    def __init__(self, batch: PairBatch, *, whole: bool = False) -> None:
        similarity, relation = batch.similarity, batch.relation
        assert similarity is not None
        assert isinstance(relation, Labels)
        assert relation.positives is not None
        assert batch.anchors is not None
        assert batch.references is not None
        self.similarity, self.table, self._widen = similarity, batch.references, batch.from_table
        self._use_table = batch.use_table
        self.centers = similarity.pooled
        self.anchors = similarity.prepare(batch.anchors)
        rows, width = len(self.table), batch.shape[1]
        self.columns = relation.positives.index
        # all proxies of a class are in one chunk; the index of a positive outside of it must not be that of another one
        together = self.centers * self.columns.shape[1]
        least = count_busy_rows(len(self.anchors), self.anchors, together)
        self.cut = (
            [slice(0, rows)] if whole else plan_chunks(rows, len(self.anchors), self.anchors, together, least=least)
        )
        complete = relation.positives.exists is None
        known = PositiveColumns(self.columns, None, width)
        self.positives = known if complete else PositiveColumns.within(self.columns, slice(0, width))
        self._matrix: Tensor | None = None

    def start_others(self, folds: list[Folded], numbers: dict[Formula, Any]) -> tuple[dict[Folded, State], Tensor]:
        """Folds over negatives and both sides, and the similarities of the positives, in one pass over the table."""
        if len(self.cut) > 1 or not folds:
            return self._start_in_chunks(folds, numbers)
        if self._matrix is None:
            self._matrix = self._compare(self.anchors, self.table)
        return start_others(folds, self._matrix, self.positives, slice(0, self.positives.width), numbers)

    def _start_in_chunks(self, folds: list[Folded], numbers: dict[Formula, Any]) -> tuple[dict[Folded, State], Tensor]:
        """The same merged over chunks; the positives' similarities are computed from their rows of the table."""
        centers, sizes = self.centers, [0]
        tensors, pairs = _split_numbers(numbers)

        def compute(some: Tensor, rows: slice, inputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
            anchors, *values = inputs
            columns = slice(rows.start // centers, rows.stop // centers)
            similarities = self._compare(anchors, some)
            positives = PositiveColumns.within(self.columns, columns)
            of_chunk = dict(zip(tensors, values, strict=True)) | pairs
            states, _ = start_others(folds, similarities, positives, columns, of_chunk)
            sizes[:] = [len(state) for state in states.values()]
            return tuple(each for state in states.values() for each in state)

        inputs: list[Any] = [self.anchors, *tensors.values()]
        picked, cut = self._positive_rows().clamp_min(0).flatten(), self.cut if folds else []
        chunks = TableChunks(self.table, cut, compute, inputs, picked, closed=not pairs, use_table=self._use_table)
        results, own = chunks.run()
        states: dict[Folded, State] = {}
        for k, each in enumerate(folds):
            first, end = sum(sizes[:k]), sum(sizes[: k + 1])
            states[each] = reduce(each.fold.merge, [flat[first:end] for flat in results])
        return states, self._compare_positives(self._widen(own))

    def _compare(self, anchors: Tensor, some: Tensor) -> Tensor:
        """All anchors against some rows of the table."""
        base = self.similarity.base if isinstance(self.similarity, Pooled) else self.similarity
        right = base.prepare(self._widen(some))
        if base.subtracts_mean:
            mean = right.detach().mean(dim=0, keepdim=True)
            anchors, right = anchors - mean, right - mean
        return self.similarity.of_factors(anchors, right)

    def _positive_rows(self) -> Tensor:
        """The rows of the table that are each anchor's positives, ``(m, k · centers)``; negative where there are none."""
        if self.centers == 1:
            return self.columns
        return (
            self.columns[:, :, None] * self.centers + torch.arange(self.centers, device=self.columns.device)
        ).flatten(1)

    def _compare_positives(self, own: Tensor) -> Tensor:
        """The similarities of each anchor to its positives, ``(m, k)``.

        Args:
            own: the positives' rows of the table, ``(m · k · centers, d)``.
        """
        each = len(own) // max(len(self.anchors), 1)
        base = self.similarity.base if isinstance(self.similarity, Pooled) else self.similarity
        left, right = self.anchors.repeat_interleave(each, dim=0), base.prepare(own)
        if base.subtracts_mean:
            left, right = left - right, torch.zeros_like(right)
        products, squares = (left * right).sum(dim=1), [base.squares(side) for side in (left, right)]
        similarities = base.of_products(*(part.view(-1, each) for part in (products, *squares)))
        if not isinstance(self.similarity, Pooled):
            return similarities
        return self.similarity.pool(similarities.view(len(self.anchors), -1, self.centers))
