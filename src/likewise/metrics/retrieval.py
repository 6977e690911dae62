"""Retrieval metrics: recall, precision and average precision of the nearest neighbors of each query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from likewise.formula import SimilarityLike, one_of
from likewise.metrics.arrays import Array, check_labels
from likewise.metrics.chunks import MEMORY
from likewise.metrics.inputs import Exclusion, MetricInputs, Relevance, check_inputs
from likewise.metrics.metric_names import QueryMetric, find_needs, parse_metrics
from likewise.metrics.positives import Chunk
from likewise.metrics.query_scores import score_queries
from likewise.metrics.ranks import TIES, map_rank_chunks
from likewise.metrics.whole_ranks import WholeRanks, rank_whole

REDUCTIONS = ("mean", "none", "macro", "class")


def retrieval(
    embeddings: Array,
    labels: Array | None = None,
    references: Array | None = None,
    reference_labels: Array | None = None,
    *,
    ks: Sequence[int] = (1, 2, 4, 8),
    metrics: Sequence[str] | None = None,
    similarity: SimilarityLike = "cosine",
    ties: str = "expected",
    relevant: Relevance | None = None,
    ids: Array | None = None,
    reference_ids: Array | None = None,
    exclude_self: bool = False,
    without_positives: str = "leave_out",
    reduce: str = "mean",
    memory: int = MEMORY,
) -> dict[str, Any]:
    r"""Compute exact recall, precision, average precision and other metrics from the ranks of each query's positives.

    With R positives of a query at ranks $r_1 < r_2 < \dots < r_R$ among its references:

    - ``R@k``: whether a positive is among the first k, $[r_1 \le k]$;
    - ``P@k``: the fraction of positives among the first k, $\frac1k \sum_i [r_i \le k]$; ``P@1`` equals ``R@1``;
    - ``RP``: the same for the first R, $\frac1R \sum_i [r_i \le R]$;
    - ``MAP@R``: $\frac1R \sum_i [r_i \le R]\, i / r_i$ (Musgrave et al. 2020);
    - ``MRR``: $1 / r_1$;
    - ``mAP``: $\frac1R \sum_i i / r_i$, over all ranks;
    - ``mAP@k``: $\frac{1}{\min(k, R)} \sum_i [r_i \le k]\, i / r_i$, over the first k;
    - ``nDCG@k``: $\sum_i [r_i \le k] / \log_2(1 + r_i)$ divided by $\sum_{i \le \min(k, R)} 1 / \log_2(1 + i)$, its largest
      value (Järvelin and Kekäläinen 2002, with relevance 0 or 1).

    Args:
        embeddings: queries, ``(m, d)``, any float dtype.
        labels: their labels, ``(m,)``, any integers (`encode_labels` converts names).
        references: the searched embeddings, ``(n, d)``; a query is compared with all of them.  By default, each query
            is compared with all other queries.
        reference_labels: their labels, ``(n,)``.
        ks: the values of k in ``"R@k"``; with metrics over all ranks, a large k takes no additional time.
        metrics: names such as ``"P@10"``, or ``"P@k"`` for each of ``ks``; by default ``R@k, P@1, RP, MAP@R, MRR, mAP``.
        similarity: ``"cosine"``, ``"dot"``, ``"euclidean"``, ``"squared_euclidean"``, ``"snr"``, ``"poincare"`` or an object.
        ties: ``"expected"``, each metric's expectation over all orders of a tie; ``"optimistic"``, positives first;
            ``"pessimistic"``, negatives first.
        relevant: which pairs are positive, in place of labels: a boolean matrix ``(m, n)``; a function of query indices
            and reference indices that returns a boolean matrix; or a relation.
        ids: the sample id of each query, ``(m,)`` integers; a query is not compared with a reference that has its id.
        reference_ids: the sample id of each reference, ``(n,)``.
        exclude_self: whether the references begin with the queries, in their order; a query then skips itself.
        without_positives: ``"leave_out"`` excludes queries without a positive from every mean; ``"zero"`` counts each as 0.
        reduce: ``"mean"`` over queries; ``"none"``, one value per query, with indices under ``"query"``; ``"class"``, one mean
            per class, with labels under ``"class"`` and counts under ``"queries"``; ``"macro"``, the mean of these means.
        memory: bytes that the computation may take in addition to its inputs and its result.

    Returns:
        Fractions by name, and the counts ``"queries"`` (with a positive) and ``"queries_without_positive"``.

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.6, 0.5]])
        >>> scores = retrieval(embeddings, torch.tensor([7, 7, 8, 8]), ks=(1, 1000))
        >>> {name: round(value, 3) for name, value in scores.items()}
        {'R@1': 0.75, 'R@1000': 1.0, 'P@1': 0.75, 'RP': 0.75, 'MAP@R': 0.75, 'MRR': 0.833, 'mAP': 0.833, 'queries': 4, 'queries_without_positive': 0}
        >>> retrieval(embeddings, torch.tensor([7, 7, 8, 9]), metrics=["P@2"], without_positives="zero")
        {'P@2': 0.25, 'queries': 2, 'queries_without_positive': 2}
    """
    wanted = check_options(metrics, ks, ties, without_positives, reduce)
    exclusion = Exclusion(ids, reference_ids, exclude_self)
    inputs = check_inputs(
        embeddings, labels, references, reference_labels, exclusion, similarity, relevant, memory, checks_values=False
    )
    m, device = len(inputs.embeddings.queries), inputs.embeddings.queries.device
    classes = _check_classes(labels, m, device, reduce)
    whole = rank_whole(inputs) if reduce == "mean" and device.type != "cpu" else None
    if whole is not None and (summary := whole.summarize(wanted, ties)) is not None:
        return _divide(summary, wanted, m, without_positives)
    query, values = _score(inputs, wanted, ties, whole)
    if without_positives == "leave_out" and not len(query):
        what = "labels" if relevant is None else "relevant"
        raise ValueError(f"{what} must give some query a positive among the references, but none of the {m} has one")
    return _reduce(values, query, classes, m, without_positives, reduce)


def check_options(
    metrics: Sequence[str] | None, ks: Sequence[int], ties: str, without_positives: str, reduce: str
) -> tuple[QueryMetric, ...]:
    """Check the options of `retrieval` and return the metrics to compute.

    Examples:
        >>> check_options(["mAP"], (), "expected", "zero", "median")
        Traceback (most recent call last):
        ...
        ValueError: reduce must be one of 'mean', 'none', 'macro', 'class', but it is 'median'
    """
    one_of("ties", ties, TIES)
    one_of("reduce", reduce, REDUCTIONS)
    one_of("without_positives", without_positives, ("leave_out", "zero"))
    return parse_metrics(metrics, ks)


def _check_classes(labels: Array | None, rows: int, device: torch.device, reduce: str) -> Tensor | None:
    """The labels that group queries by class; ``None`` if nothing is reduced by class."""
    if reduce not in ("macro", "class"):
        return None
    if labels is None:
        raise ValueError(f"labels must be given for reduce={reduce!r}, but they are None")
    return check_labels("labels", labels, rows, device, "embeddings")


def _fit_entries(inputs: MetricInputs) -> int:
    """Return how many positives are scored at once."""
    # a few dozen float64 numbers per positive, which take about a quarter of the memory; on a CPU they stay in its cache
    if inputs.embeddings.queries.device.type != "cpu":
        return min(2**20, max(2**12, inputs.memory // 2**10))
    return min(2**18, max(2**12, inputs.memory // 2**10 // torch.get_num_threads()))  # each thread scores chunks


def _divide(
    summary: tuple[list[float], int], metrics: Sequence[QueryMetric], m: int, without_positives: str
) -> dict[str, Any]:
    """Return the means from sums over the queries with a positive."""
    sums, with_positive = summary
    total = m if without_positives == "zero" else with_positive
    means = {metric.name: value / total for metric, value in zip(metrics, sums, strict=True)}
    return {**means, "queries": with_positive, "queries_without_positive": m - with_positive}


def _score(
    inputs: MetricInputs, metrics: Sequence[QueryMetric], ties: str, whole: WholeRanks | None
) -> tuple[Tensor, dict[str, Tensor]]:
    """Check the values of embeddings; return the queries that have a positive, in order, and each of their metrics."""
    inputs.embeddings.check_values()
    device, entries = inputs.embeddings.queries.device, _fit_entries(inputs)

    def score(chunk: Chunk) -> tuple[Tensor, dict[str, Tensor]]:
        return chunk.queries, score_queries(chunk, metrics, ties, entries)

    if whole is None:
        chunks = map_rank_chunks(inputs, find_needs(metrics), score, entries)
    else:
        chunks = [score(whole.make_chunk())]
    if not chunks:
        empty = torch.empty(0, dtype=torch.float64, device=device)
        return empty.long(), {metric.name: empty for metric in metrics}
    query, order = torch.cat([queries for queries, _ in chunks]).sort()
    return query, {name: torch.cat([scores[name] for _, scores in chunks])[order] for name in chunks[0][1]}


def _fill_zeros(query: Tensor, values: dict[str, Tensor], m: int) -> tuple[Tensor, dict[str, Tensor]]:
    """Return all queries, and their metrics with zeros for those without a positive."""
    filled = {name: value.new_zeros(m).index_copy_(0, query, value) for name, value in values.items()}
    return torch.arange(m, device=query.device), filled


def _reduce(
    values: dict[str, Tensor], query: Tensor, labels: Tensor | None, m: int, without_positives: str, reduce: str
) -> dict[str, Any]:
    has_positive = torch.zeros(m, dtype=torch.bool, device=query.device).index_fill_(0, query, True)
    if without_positives == "zero":
        query, values = _fill_zeros(query, values, m)
    with_positive = int(has_positive.sum())
    counts = {"queries": with_positive, "queries_without_positive": len(has_positive) - with_positive}
    if reduce == "none":
        return {**values, "query": query, **counts}
    if reduce == "mean":
        means = torch.stack([value.mean() for value in values.values()]).tolist()  # waits for the device once
        return {**dict(zip(values, means, strict=True)), **counts}
    assert labels is not None
    classes, code, size = torch.unique(labels[query], return_inverse=True, return_counts=True)
    # sums per class without atomic additions; differences of cumulative sums would lose digits
    by_class = code.argsort(stable=True)
    table = {
        name: torch.segment_reduce(value[by_class].cpu(), "sum", lengths=size.cpu()).to(value.device) / size
        for name, value in values.items()
    }
    if reduce == "macro":
        return {**{name: value.mean().item() for name, value in table.items()}, "classes": len(classes), **counts}
    counts_by_class = torch.bincount(code[has_positive[query]], minlength=len(classes))
    return {**table, "class": classes, **counts, "queries": counts_by_class}
