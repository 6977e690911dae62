"""Retrieval metrics of each query, from its positives and the negatives that tie with them.

If negatives tie with positives, a metric is its expectation over all orders of the tie.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from likewise.metrics.chunks import fit_rows, split_rows
from likewise.metrics.metric_names import QueryMetric
from likewise.metrics.positives import Chunk, RankChunk, RelevanceChunk, Ties
from likewise.metrics.query_orders import FlagOrder, QueryOrder, RankOrder
from likewise.metrics.tie_changes import TieChanges


def score_queries(chunk: Chunk, metrics: Sequence[QueryMetric], ties: str, entries: int = 2**20) -> dict[str, Tensor]:
    """Compute each metric for each query of a chunk, ``(q,)`` float64.

    Args:
        chunk: the ranks, or the first references.
        metrics: from `parse_metrics`.
        ties: ``"expected"``, ``"optimistic"`` or ``"pessimistic"``.
        entries: about how many positives are processed at once.

    Examples:
        >>> import torch
        >>> from likewise.metrics.metric_names import parse_metrics
        >>> one = torch.ones(1, 1, dtype=torch.int64)
        >>> chunk = RankChunk(queries=one[0], counts=one[0], references=one, rank=2.0 * one.double(), ties=None)
        >>> scores = score_queries(chunk, parse_metrics(("R@1", "R@2", "P@2", "MRR"), ()), "expected")
        >>> {name: value.item() for name, value in scores.items()}
        {'R@1': 0.0, 'R@2': 1.0, 'P@2': 0.5, 'MRR': 0.5}
    """
    if ties == "pessimistic" and chunk.ties is not None:
        chunk = _rank_pessimistically(chunk, chunk.ties)
    of_ties = None
    if isinstance(chunk, RelevanceChunk):
        at_once = fit_rows(FLAGS_AT_ONCE, per_row=chunk.is_positive.shape[1])
        ranks = chunk.tied_ranks
    else:
        # ties need most of the memory
        has_few_ties = chunk.ties is None or len(chunk.ties.query) * 8 <= chunk.rank.numel()
        at_once = fit_rows(4 * entries if has_few_ties else entries, per_row=max(1, len(chunk.rank)))
        ranks = chunk.rank[chunk.ties.position, chunk.ties.query] if chunk.ties is not None else chunk.rank[:0, 0]
    scores = []
    for queries in split_rows(len(chunk.queries), at_once):
        counts = chunk.counts[queries].double()
        if ties == "expected" and chunk.ties is not None:
            of_ties = TieChanges.select(chunk.ties, ranks, counts, queries)
        order: QueryOrder
        if isinstance(chunk, RelevanceChunk):
            order = FlagOrder(chunk.is_positive[queries], counts, of_ties, entries)
        else:
            order = RankOrder(chunk.rank[:, queries], counts, of_ties, entries)
        scores.append(_compute(order, metrics))
    return {name: torch.cat([values[name] for values in scores]) for name in scores[0]}


FLAGS_AT_ONCE = 2**19
"""First references that are scored at once: more leave the cache, and threads wait for each other after each step."""


def _rank_pessimistically(chunk: Chunk, ties: Ties) -> Chunk:
    """Return the chunk with the positives of each tie after its negatives."""
    if isinstance(chunk, RankChunk):
        at = ties.position, ties.query
        return replace(chunk, rank=chunk.rank.index_put(at, ties.tied.double(), accumulate=True))
    is_positive, place = chunk.is_positive.copy(), chunk.tied_ranks.long() - 1
    for places, value in ((place, False), (place + ties.tied, True)):
        inside = places < is_positive.shape[1]
        is_positive[ties.query[inside].numpy(), places[inside].numpy()] = value
    return replace(chunk, is_positive=is_positive)


def compute_scores(rank: Tensor, counts: Tensor, metrics: Sequence[QueryMetric]) -> dict[str, Tensor]:
    """Compute each metric for each query if no positive ties with a negative; zero for queries without a positive.

    Args:
        rank: the rank of each positive, ``(k, q)`` float64; infinity in the padding.
        counts: the number of positives of each query, ``(q,)`` float64; one for queries without a positive.
        metrics: from `parse_metrics`.

    Examples:
        >>> import torch
        >>> from likewise.metrics.metric_names import parse_metrics
        >>> rank = torch.tensor([[2.0, 1.0], [3.0, torch.inf]], dtype=torch.float64)
        >>> compute_scores(rank, torch.tensor([2.0, 1.0]).double(), parse_metrics(("R@1",), ()))
        {'R@1': tensor([0., 1.], dtype=torch.float64)}
    """
    return _compute(RankOrder(rank, counts, None), metrics)


def sum_changes(ties: Ties, rank: Tensor, counts: Tensor, metrics: Sequence[QueryMetric]) -> list[float]:
    """Return how much the sum of each metric over the queries changes when ties are taken in all orders.

    Args:
        ties: the positives that tie with negatives; there is at least one.
        rank: the rank of each of them before the negatives that tie with it, ``(t,)`` float64.
        counts: the number of positives of the query of each, ``(t,)`` float64.
        metrics: from `parse_metrics`.

    Examples:
        >>> import torch
        >>> from likewise.metrics.metric_names import parse_metrics
        >>> one = torch.ones(1, dtype=torch.int64)
        >>> ties = Ties(query=one, position=0 * one, tied=one)
        >>> sum_changes(ties, one.double(), one.double(), parse_metrics(("R@1", "R@2", "MRR"), ()))
        [-0.5, 0.0, -0.25]
    """
    of_ties = TieChanges(ties, rank, counts)
    changes: list[float] = torch.stack([of_ties.change(metric) for metric in metrics]).sum(dim=1).tolist()
    return changes


def _compute(order: QueryOrder, metrics: Sequence[QueryMetric]) -> dict[str, Tensor]:
    distinct = {(metric.kind, metric.k): metric for metric in metrics}  # P@1 is R@1
    values = {key: order.compute(metric) for key, metric in distinct.items()}
    return {metric.name: values[metric.kind, metric.k] for metric in metrics}
