"""Positives of queries, and the number of negatives above and tied with each of them.

Positives are ordered among themselves, and only negatives are counted.  A positive is compared with negatives from
products of the same shape as the product that gave its own similarity: equal vectors tie to the last bit, and rounding
never ranks a sample against itself.

Two modules compute these counts:

- `symmetric_ranks`: queries among themselves by label; half of the products suffice.
- `row_ranks`: any queries, references and relation; a few full rows of similarities at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from likewise.metrics.threshold_counts import ThresholdCounts

BYTES_PER_POSITIVE = 256
"""Memory per positive: index, similarity, order, counts, their temporary copies, and the previous chunk."""


@dataclass(frozen=True, eq=False)
class RankChunk:
    """Counts for a chunk of queries that have a positive: one column per query, the most similar positive on top.

    Args:
        queries: indices of the queries, ``(q,)``.
        counts: the number of positives of each query, ``(q,)``; entries below are padding.
        references: the reference that each positive is, most similar first, ``(k, q)``.
        above: the number of negatives that are more similar than the positive, ``(k, q)`` int64.
        tied: the number of negatives that are exactly as similar, ``(k, q)`` int64.
    """

    queries: Tensor
    counts: Tensor
    references: Tensor
    above: Tensor
    tied: Tensor


@dataclass(frozen=True, eq=False)
class Positives:
    """The positives of some rows, most similar first, one column per row.

    Args:
        similarities: ``(k, q)``; infinity in the padding.
        positive_index: their columns in the similarities, ``(k, q)``.
        counts: the number of positives of each row, ``(q,)``.
    """

    similarities: Tensor
    positive_index: Tensor
    counts: Tensor


def gather_positives(similarities: Tensor, candidates: Tensor, is_positive: Tensor) -> Positives:
    """Gather the similarities of positives and sort them.

    Args:
        similarities: ``(q, n)``.
        candidates: columns of candidates, ``(q, k)``.
        is_positive: which candidates are positives, ``(q, k)``.

    Examples:
        >>> import torch
        >>> positives = gather_positives(
        ...     torch.tensor([[0.1, 0.7, 0.4]]), torch.tensor([[0, 1, 2]]), torch.tensor([[True, True, False]])
        ... )
        >>> positives.similarities.T, positives.positive_index.T
        (tensor([[0.7000, 0.1000,    inf]]), tensor([[1, 0, 2]]))
    """
    values = similarities.gather(1, candidates)
    values, order = values.masked_fill_(~is_positive, -torch.inf).sort(dim=1, descending=True, stable=True)
    counts = is_positive.sum(dim=1)
    padding = torch.arange(values.shape[1], device=values.device) >= counts[:, None]
    values = values.masked_fill_(padding, torch.inf)
    return Positives(values.T.contiguous(), candidates.gather(1, order).T.contiguous(), counts)


def find_tie_starts(above: Tensor, tied: Tensor) -> Tensor:
    """Mark each positive that does not tie with the positive before it, along the first dimension.

    Positives are ordered from the most similar down.  If no negative ties, the order among positives does not matter,
    and each positive starts a group with itself as the only member.

    Examples:
        >>> import torch
        >>> find_tie_starts(above=torch.tensor([0, 0, 0, 3]), tied=torch.tensor([0, 2, 2, 0]))
        tensor([ True,  True, False,  True])
    """
    starts = torch.ones_like(above, dtype=torch.bool)
    starts[1:] = (tied[1:] == 0) | (tied[1:] != tied[:-1]) | (above[1:] != above[:-1])
    return starts


def make_rank_chunk(
    negatives: ThresholdCounts, positives: Positives, queries: Tensor, references: Tensor | None = None
) -> RankChunk:
    """Combine positives with the counts of their negatives, without the queries that have no positive.

    Args:
        negatives: the counts.
        positives: the positives that the counts belong to.
        queries: the query of each column.
        references: the reference of each positive index; without it, the index is the reference.
    """
    padding = torch.arange(len(positives.positive_index), device=queries.device)[:, None] >= positives.counts
    has_positive = positives.counts > 0
    all_finite, all_positive = torch.stack(
        [(positives.similarities.isfinite() | padding).all(), has_positive.all()]
    ).tolist()
    if not all_finite:
        raise ValueError(
            "embeddings must have finite similarities, but some overflow; scale the embeddings down, or use float64"
        )
    index = positives.positive_index if references is None else references[positives.positive_index]
    chunk = RankChunk(queries, positives.counts, index, negatives.above.long(), negatives.tied)
    if all_positive:
        return chunk
    columns = (each[:, has_positive] for each in (chunk.references, chunk.above, chunk.tied))
    return RankChunk(chunk.queries[has_positive], chunk.counts[has_positive], *columns)


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
    columns = (
        torch.cat([_pad(getattr(chunk, name), height) for chunk in chunks], dim=1)
        for name in ("references", "above", "tied")
    )
    return RankChunk(queries, counts, *columns)


def _pad(columns: Tensor, height: int) -> Tensor:
    return torch.nn.functional.pad(columns, (0, 0, 0, height - len(columns)))
