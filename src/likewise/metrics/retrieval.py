"""Retrieval metrics: recall, precision and average precision of the nearest neighbors of each query."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor

from likewise.formula import SimilarityLike, one_of, whole_number
from likewise.metrics.chunks import MEMORY
from likewise.metrics.inputs import Array, Relevance, check_inputs, check_labels
from likewise.metrics.positives import merge_chunks
from likewise.metrics.query_scores import score_queries
from likewise.metrics.ranks import TIES, rank_chunks

REDUCTIONS = ("mean", "none", "macro", "class")


def retrieval(
    embeddings: Array,
    labels: Array | None = None,
    references: Array | None = None,
    reference_labels: Array | None = None,
    *,
    ks: Sequence[int] = (1, 2, 4, 8),
    similarity: SimilarityLike = "cosine",
    ties: str = "expected",
    relevant: Relevance | None = None,
    own: Array | None = None,
    reduce: str = "mean",
    memory: int = MEMORY,
) -> dict[str, Any]:
    r"""Exact recall@k, precision@1, R-precision, MAP@R, MRR and mAP, from the ranks of each query's positives.

    With R positives of a query at ranks $r_1 < r_2 < \dots < r_R$ among its references:

    - ``R@k``: whether a positive is among the first k, $[r_1 \le k]$;
    - ``P@1``: whether the first is a positive, $[r_1 = 1]$; equal to ``R@1``;
    - ``RP``: the fraction of positives among the first R, $\frac1R \sum_i [r_i \le R]$;
    - ``MAP@R``: $\frac1R \sum_i [r_i \le R]\, i / r_i$ (Musgrave et al. 2020);
    - ``MRR``: $1 / r_1$;
    - ``mAP``: $\frac1R \sum_i i / r_i$, over all ranks.

    Args:
        embeddings: queries, ``(m, d)``, any float dtype.
        labels: their labels, ``(m,)``, any integers (`encode_labels` converts names).
        references: the searched embeddings, ``(n, d)``; without it each query is ranked against all other queries.
        reference_labels: their labels, ``(n,)``.
        ks: the k of ``R@k``; a large k costs no more than a small one.
        similarity: ``"cosine"``, ``"dot"``, ``"euclidean"``, ``"squared_euclidean"``, ``"snr"``,
            ``"poincare"`` or an object.
        ties: ``"expected"``, each metric's expectation over all orders of a tie; ``"optimistic"``, positives first;
            ``"pessimistic"``, negatives first.
        relevant: which pairs are positive, in place of labels: a boolean matrix ``(m, n)``; a function of query indices
            and reference indices that returns a boolean matrix; or a relation.
        own: for each query the index of the reference that is the query itself, −1 for none, for references that
            contain queries.
        reduce: ``"mean"`` over the queries that have a positive; ``"none"``, a tensor with one value per such query,
            and their indices under ``"query"``; ``"class"``, a tensor with one mean per class, with the labels under
            ``"class"`` and the counts under ``"queries"``; ``"macro"``, the mean over classes of the class means.
        memory: bytes that the computation may take in addition to its inputs and its result.

    Returns:
        Fractions by name, and the counts ``"queries"`` (queries with a positive, over which the mean is taken) and
        ``"queries_without_positive"`` (queries without one, which no metric includes).

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.6, 0.5]])
        >>> scores = retrieval(embeddings, torch.tensor([7, 7, 8, 8]), ks=(1, 1000))
        >>> {name: round(value, 3) for name, value in scores.items()}
        {'R@1': 0.75, 'R@1000': 1.0, 'P@1': 0.75, 'RP': 0.75, 'MAP@R': 0.75, 'MRR': 0.833, 'mAP': 0.833, 'queries': 4, 'queries_without_positive': 0}
    """
    one_of("ties", ties, TIES)
    one_of("reduce", reduce, REDUCTIONS)
    if isinstance(ks, str) or not isinstance(ks, Iterable):
        raise TypeError(f"ks must be a sequence of whole numbers, but it is {ks!r}")
    sizes = tuple(dict.fromkeys(whole_number("each of ks", k, 1) for k in ks))
    inputs = check_inputs(embeddings, labels, references, reference_labels, similarity, relevant, own, memory)
    m, device = len(inputs.embeddings.queries), inputs.embeddings.queries.device
    if reduce in ("macro", "class"):
        if labels is None:
            raise ValueError(f"labels must be given for reduce={reduce!r}, but they are None")
        labels = check_labels("labels", labels, m, device, "embeddings")
    # a few dozen float64 numbers per positive, which take about a quarter of the memory
    entries = min(2**20, max(2**12, inputs.memory // 2**10))
    chunks = [
        (chunk.queries, score_queries(chunk, sizes, ties, entries))
        for chunk in merge_chunks(rank_chunks(inputs), entries)
    ]
    if not sum(len(queries) for queries, _ in chunks):
        what = "labels" if relevant is None else "relevant"
        raise ValueError(f"{what} must give some query a positive among the references, but none of the {m} has one")
    query, order = torch.cat([queries for queries, _ in chunks]).sort()
    values = {name: torch.cat([scores[name] for _, scores in chunks])[order] for name in chunks[0][1]}
    return _reduce(values, query, labels, m, reduce)


def _reduce(values: dict[str, Tensor], query: Tensor, labels: Tensor | None, m: int, reduce: str) -> dict[str, Any]:
    counts = {"queries": len(query), "queries_without_positive": m - len(query)}
    if reduce == "none":
        return {**values, "query": query, **counts}
    if reduce == "mean":
        return {**{name: value.mean().item() for name, value in values.items()}, **counts}
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
    return {**table, "class": classes, "queries": size, "queries_without_positive": m - len(query)}
