"""Positives of queries, and the number of negatives above and tied with each of them.

Positives are ordered among themselves, and only negatives are counted.  A positive is compared with negatives from
products of the same shape as the product that its similarity comes from, so that equal vectors tie exactly and rounding
does not affect their order.

Two modules compute these counts:

- `symmetric_ranks`: queries among themselves by label, with few positives each; half of the products suffice.
- `row_ranks`: any queries, references and relation; a few full rows of similarities at a time, counted in the way that
  `row_counts` chooses.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from likewise.metrics.threshold_counts import map_over_cores

BYTES_PER_POSITIVE = 256
"""Memory per positive: index, similarity, order, counts, their temporary copies, and the previous chunk."""


@dataclass(frozen=True, eq=False)
class RankChunk:
    """Counts for a chunk of queries that have a positive: one column per query, the most similar positive on top.

    Args:
        queries: indices of the queries, ``(q,)``.
        counts: the number of positives of each query, ``(q,)``; entries below are padding.
        references: the reference that each positive is, most similar first, ``(k, q)``; ``None`` if it is not needed.
        above: the number of negatives that are more similar than the positive, ``(k, q)`` int64.
        tied: the number of negatives that are exactly as similar, ``(k, q)`` int64; ``None`` if no negative ties.
    """

    queries: Tensor
    counts: Tensor
    references: Tensor | None
    above: Tensor
    tied: Tensor | None


@dataclass(frozen=True)
class CountNeeds:
    """Which numbers of a `RankChunk` are needed; the others need not be computed.

    Args:
        references: whether the reference of each positive is needed.
        all_ranks: whether the count above every positive is needed; otherwise only that of positives among the first
            ``first`` references, and the count of a positive beyond them is any number that is large enough to show
            this.
        first: the largest rank that matters.
        first_positives: whether ranks up to the query's number of positives matter as well.
    """

    references: bool = True
    all_ranks: bool = True
    first: int = 0
    first_positives: bool = False

    def count_neighbors(self, positives: int) -> int | None:
        """Return how many negatives must be counted for a query with this many positives; ``None`` for all."""
        if self.all_ranks:
            return None
        return max(self.first, positives if self.first_positives else 1)


@dataclass(frozen=True, eq=False)
class Positives:
    """The positives of some rows, most similar first, one column per row.

    Args:
        similarities: ``(k, q)``; infinity in the padding.
        positive_index: their columns in the similarities, ``(k, q)``; ``None`` if it is not needed.
        counts: the number of positives of each row, ``(q,)``.
    """

    similarities: Tensor
    positive_index: Tensor | None
    counts: Tensor

    def are_finite(self) -> Tensor:
        """Whether all similarities are finite, a scalar."""
        padding = torch.arange(len(self.similarities), device=self.counts.device)[:, None] >= self.counts
        return (self.similarities.isfinite() | padding).all()


def gather_positives(
    similarities: Tensor, candidates: Tensor, is_positive: Tensor, with_index: bool = True
) -> Positives:
    """Gather the similarities of positives and sort them.

    Args:
        similarities: ``(q, n)``.
        candidates: columns of candidates, ``(q, k)``.
        is_positive: which candidates are positives, ``(q, k)``.
        with_index: whether the columns of the sorted positives are needed.

    Examples:
        >>> import torch
        >>> positives = gather_positives(
        ...     torch.tensor([[0.1, 0.7, 0.4]]), torch.tensor([[0, 1, 2]]), torch.tensor([[True, True, False]])
        ... )
        >>> positives.similarities.T, positives.positive_index.T
        (tensor([[0.7000, 0.1000,    inf]]), tensor([[1, 0, 2]]))
    """
    values = similarities.gather(1, candidates)
    counts = is_positive.sum(dim=1)
    if with_index or values.device.type != "cpu":
        values, order = values.masked_fill_(~is_positive, -torch.inf).sort(dim=1, descending=True, stable=True)
        index = candidates.gather(1, order).T.contiguous()
    else:  # numpy sorts values much faster than torch sorts pairs
        values, index = -values.masked_fill_(~is_positive, -torch.inf), None
        map_over_cores(lambda rows: rows.sort(axis=1), values)
        values.neg_()
    padding = torch.arange(values.shape[1], device=values.device) >= counts[:, None]
    values = values.masked_fill_(padding, torch.inf)
    return Positives(values.T.contiguous(), index, counts)


def make_rank_chunk(
    queries: Tensor,
    counts: Tensor,
    references: Tensor | None,
    above: Tensor,
    tied: Tensor | None,
    is_finite: Tensor,
) -> RankChunk:
    """Make a chunk without the queries that have no positive.

    Args:
        queries: as in `RankChunk`, as are the next four arguments.
        counts: the number of positives of each query; zero is allowed.
        references: the reference that each positive is.
        above: the number of negatives above each positive.
        tied: the number of negatives that tie with each positive.
        is_finite: whether the similarities of all positives are finite, a scalar.
    """
    has_positive = counts > 0
    all_finite, all_positive = torch.stack([is_finite, has_positive.all()]).tolist()  # waits for the device once
    if not all_finite:
        raise ValueError(
            "embeddings must have finite similarities, but some overflow; scale the embeddings down, or use float64"
        )
    if all_positive:
        return RankChunk(queries, counts, references, above, tied)
    above = above[:, has_positive]
    references, tied = (None if each is None else each[:, has_positive] for each in (references, tied))
    return RankChunk(queries[has_positive], counts[has_positive], references, above, tied)


def merge_chunks(chunks: Iterable[RankChunk], entries: int) -> Iterator[RankChunk]:
    """Merge small chunks into chunks of about ``entries`` entries, because small chunks have a high overhead.

    Examples:
        >>> import torch
        >>> one = torch.ones(1, 1, dtype=torch.int64)
        >>> [len(chunk.queries) for chunk in merge_chunks([RankChunk(one[0], one[0], one, one, one)] * 3, 8)]
        [3]
    """
    group: list[RankChunk] = []
    for chunk in chunks:
        # the group is padded to its largest number of positives
        if group and _count_entries([*group, chunk]) > entries:
            yield _concatenate(group)
            group = []
        group.append(chunk)
    if group:
        yield _concatenate(group)


def _count_entries(chunks: list[RankChunk]) -> int:
    return max(len(chunk.above) for chunk in chunks) * sum(len(chunk.queries) for chunk in chunks)


def _concatenate(chunks: list[RankChunk]) -> RankChunk:
    if len(chunks) == 1:
        return chunks[0]
    height = max(len(chunk.above) for chunk in chunks)
    queries, counts = (torch.cat([getattr(chunk, name) for chunk in chunks]) for name in ("queries", "counts"))
    references, above, tied = (_join(chunks, name, height) for name in ("references", "above", "tied"))
    assert above is not None
    return RankChunk(queries, counts, references, above, tied)


def _join(chunks: list[RankChunk], name: str, height: int) -> Tensor | None:
    """The columns of all chunks, padded with zeros; ``None`` if no chunk has them."""
    columns: list[Tensor | None] = [getattr(chunk, name) for chunk in chunks]
    if all(column is None for column in columns):
        return None
    whole = chunks[0].above.new_zeros(height, sum(len(chunk.queries) for chunk in chunks))
    start = 0
    for chunk, column in zip(chunks, columns, strict=True):
        stop = start + len(chunk.queries)
        if column is not None:
            whole[: len(column), start:stop] = column
        start = stop
    return whole
