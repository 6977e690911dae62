"""Positives of queries, and the number of negatives above and tied with each of them.

Positives are ordered among themselves, and only negatives are counted.  All products have sides that are row multiples,
so that equal vectors tie exactly and rounding does not affect their order.

Three modules compute these counts:

- `symmetric_ranks`: queries among themselves by label, with few positives each; half of the products suffice.
- `first_ranks`: the same, for the first neighbors only.
- `row_ranks`: any queries, references and relation; a few full rows of similarities at a time, counted in the way that
  `row_counts` chooses.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from likewise.metrics.cores import map_over_cores

BYTES_PER_POSITIVE = 256
"""Memory per positive: index, similarity, order, counts, their temporary copies, and the previous chunk."""


@dataclass(frozen=True, eq=False)
class Ties:
    """The positives that tie with negatives, one entry each, queries and their positives in order.

    Args:
        query: the column of the query, ``(t,)``.
        position: the number of positives of the query before this one, ``(t,)``.
        tied: the number of negatives that are exactly as similar, ``(t,)`` int64.
    """

    query: Tensor
    position: Tensor
    tied: Tensor


@dataclass(frozen=True, eq=False)
class RankChunk:
    """Ranks for a chunk of queries that have a positive: one column per query, the most similar positive on top.

    Args:
        queries: indices of the queries, ``(q,)``.
        counts: the number of positives of each query, ``(q,)``.
        references: the reference that each positive is, most similar first, ``(k, q)``; ``None`` if it is not needed.
        rank: the rank of the positive before the negatives that tie with it, ``(k, q)`` float64; infinity in the padding.
        ties: the positives that tie with negatives; ``None`` if there are none.
    """

    queries: Tensor
    counts: Tensor
    references: Tensor | None
    rank: Tensor
    ties: Ties | None


@dataclass(frozen=True, eq=False)
class RelevanceChunk:
    """The first references of a chunk of queries, all of which have a positive.

    Args:
        queries: indices of the queries, ``(q,)``.
        counts: the number of positives of each query, ``(q,)``.
        is_positive: whether each of the first references is a positive, the most similar first, ``(q, n)`` booleans;
            positives come before the negatives that tie with them.
        ties: the positives that tie with negatives; ``None`` if there are none.
        tied_ranks: the rank of each of them before these negatives, ``(t,)``.
    """

    queries: Tensor
    counts: Tensor
    is_positive: NDArray[np.bool_]
    ties: Ties | None
    tied_ranks: Tensor


Chunk: TypeAlias = RankChunk | RelevanceChunk
"""What metrics are computed from."""


@dataclass(frozen=True)
class CountNeeds:
    """Which numbers of a `RankChunk` or a `RelevanceChunk` are needed; the others need not be computed.

    Args:
        references: whether the reference of each positive is needed.
        all_ranks: whether the rank of every positive is needed; otherwise only that of positives among the first
            ``first`` references, and the rank of a positive beyond them is any number that is large enough to show
            this.
        first: the largest rank that matters.
        first_positives: whether ranks up to the query's number of positives matter as well.
    """

    references: bool = True
    all_ranks: bool = True
    first: int = 0
    first_positives: bool = False

    def count_neighbors(self, positives: int) -> int | None:
        """Return how many negatives, or references, matter for a query with this many positives; ``None`` for all."""
        if self.all_ranks:
            return None
        return max(1, self.first, positives if self.first_positives else 1)

    def count_each(self, positives: Tensor) -> Tensor:
        """Return `count_neighbors` of each query, if not all ranks are needed.

        Examples:
            >>> CountNeeds(all_ranks=False, first=2, first_positives=True).count_each(torch.tensor([0, 5]))
            tensor([2, 5])
        """
        return (positives if self.first_positives else torch.zeros_like(positives)).clamp(min=max(1, self.first))


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
        index = candidates.gather(1, order).T.contiguous() if with_index else None
    else:  # numpy sorts values much faster than torch sorts pairs
        values, index = -values.masked_fill_(~is_positive, -torch.inf), None
        map_over_cores(lambda rows: rows.sort(axis=1), values)
        values.neg_()
    padding = torch.arange(values.shape[1], device=values.device) >= counts[:, None]
    values = values.masked_fill_(padding, torch.inf)
    return Positives(values.T.contiguous(), index, counts)


def count_ranks(above: Tensor, tied: Tensor, counts: Tensor) -> tuple[Tensor, Ties | None]:
    """Return the ranks and ties of a `RankChunk` from counts of negatives.

    Args:
        above: the number of negatives above each positive, ``(k, q)``; float64 becomes the ranks, in place.
        tied: the number of negatives tied with each positive, ``(k, q)``.
        counts: the number of positives of each query, ``(q,)``.

    Examples:
        >>> import torch
        >>> above = torch.tensor([[1.0, 0.0], [1.0, 0.0]], dtype=torch.float64)
        >>> rank, ties = count_ranks(above, torch.tensor([[0.0, 0.0], [2.0, 0.0]]), torch.tensor([2, 1]))
        >>> rank.tolist(), ties.query.tolist(), ties.position.tolist(), ties.tied.tolist()
        ([[2.0, 1.0], [3.0, inf]], [0], [1], [2])
    """
    if above.device.type != "cpu":
        query, position = tied.T.nonzero(as_tuple=True)
    else:
        # much faster than torch for a few entries
        flat = torch.from_numpy(np.flatnonzero(tied.T.numpy()))
        query, position = flat // max(1, len(above)), flat % max(1, len(above))
    tied = tied[position, query].long()
    ties = Ties(query, position, tied) if len(query) else None
    place = torch.arange(1, len(above) + 1, device=above.device)[:, None]
    rank = above.double().add_(place)
    if above.device.type != "cpu" or bool((counts < len(above)).any()):
        rank.masked_fill_(place > counts, torch.inf)
    return rank, ties


def make_rank_chunk(
    queries: Tensor,
    counts: Tensor,
    references: Tensor | None,
    ranks: tuple[Tensor, Ties | None],
    is_finite: Tensor,
) -> RankChunk:
    """Make a chunk without the queries that have no positive.

    Args:
        queries: as in `RankChunk`, as are the next two arguments.
        counts: the number of positives of each query; zero is allowed.
        references: the reference that each positive is.
        ranks: the ranks and the ties.
        is_finite: whether the similarities of all positives are finite, a scalar.
    """
    rank, ties = ranks
    has_positive = _find_queries(counts, is_finite)
    if has_positive is None:
        return RankChunk(queries, counts, references, rank, ties)
    references = None if references is None else references[:, has_positive]
    ties = _renumber(ties, has_positive)
    return RankChunk(queries[has_positive], counts[has_positive], references, rank[:, has_positive], ties)


def make_relevance_chunk(
    queries: Tensor,
    counts: Tensor,
    is_positive: NDArray[np.bool_],
    ties: tuple[Ties | None, Tensor],
    is_finite: Tensor,
) -> RelevanceChunk:
    """Make a chunk of first references without the queries that have no positive.

    Args:
        queries: as in `RelevanceChunk`.
        counts: the number of positives of each query; zero is allowed.
        is_positive: whether each of the first references is a positive.
        ties: the positives that tie with negatives, and their ranks.
        is_finite: whether the similarities of all positives are finite, a scalar.
    """
    has_positive = _find_queries(counts, is_finite)
    if has_positive is not None:
        queries, counts, is_positive = queries[has_positive], counts[has_positive], is_positive[has_positive.numpy()]
        ties = _renumber(ties[0], has_positive), ties[1]
    return RelevanceChunk(queries, counts, is_positive, *ties)


def _find_queries(counts: Tensor, is_finite: Tensor) -> Tensor | None:
    """Which queries have a positive, ``None`` if all do; raise an error if a similarity is not finite."""
    has_positive = counts > 0
    all_finite, all_positive = torch.stack([is_finite, has_positive.all()]).tolist()  # waits for the device once
    if not all_finite:
        raise ValueError(
            "embeddings must have finite similarities, but some overflow; scale the embeddings down, or use float64"
        )
    return None if all_positive else has_positive


def _renumber(ties: Ties | None, has_positive: Tensor) -> Ties | None:
    """The ties without the queries that have no positive."""
    return None if ties is None else replace(ties, query=(has_positive.cumsum(0) - 1)[ties.query])


def merge_chunks(chunks: Iterable[Chunk], entries: int) -> Iterator[Chunk]:
    """Merge small chunks of ranks into chunks of about ``entries`` entries, because small chunks have a high overhead.

    Examples:
        >>> import torch
        >>> one = torch.ones(1, 1, dtype=torch.int64)
        >>> [len(chunk.queries) for chunk in merge_chunks([RankChunk(one[0], one[0], one, one.double(), None)] * 3, 8)]
        [3]
    """
    group: list[RankChunk] = []
    for chunk in chunks:
        if isinstance(chunk, RelevanceChunk):
            yield chunk
            continue
        # the group is padded to its largest number of positives; to copy large chunks costs more than it saves
        if group and max(_count_entries([*group, chunk]), 4 * _count_entries(group)) > entries:
            yield _concatenate(group)
            group = []
        group.append(chunk)
    if group:
        yield _concatenate(group)


def _count_entries(chunks: list[RankChunk]) -> int:
    return max(len(chunk.rank) for chunk in chunks) * sum(len(chunk.queries) for chunk in chunks)


def _concatenate(chunks: list[RankChunk]) -> RankChunk:
    if len(chunks) == 1:
        return chunks[0]
    height = max(len(chunk.rank) for chunk in chunks)
    queries, counts = (torch.cat([getattr(chunk, name) for chunk in chunks]) for name in ("queries", "counts"))
    rank = _join([chunk.rank for chunk in chunks], height, torch.inf)
    references = [chunk.references for chunk in chunks if chunk.references is not None]
    starts = np.cumsum([0, *(len(chunk.queries) for chunk in chunks)]).tolist()
    shifted = [
        replace(chunk.ties, query=chunk.ties.query + start)
        for chunk, start in zip(chunks, starts, strict=False)
        if chunk.ties is not None
    ]
    names = ("query", "position", "tied")
    ties = Ties(*(torch.cat([getattr(each, name) for each in shifted]) for name in names)) if shifted else None
    return RankChunk(queries, counts, _join(references, height, 0) if references else None, rank, ties)


def _join(columns: list[Tensor], height: int, padding: float) -> Tensor:
    """The columns of all chunks, padded to one height."""
    whole = columns[0].new_full((height, sum(column.shape[1] for column in columns)), padding)
    start = 0
    for column in columns:
        stop = start + column.shape[1]
        whole[: len(column), start:stop] = column
        start = stop
    return whole
