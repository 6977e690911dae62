"""Retrieval: what a user finds among the nearest neighbors of a query."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor

from likewise.formula import SimilarityLike, one_of, whole_number
from likewise.metrics.pieces import gathered
from likewise.metrics.ranks import TIES, Array, Relevance, make_search, pieces
from likewise.metrics.scores import per_query
from likewise.metrics.tiles import MEMORY, labels_from

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
    r"""Recall@k, precision@1, R-precision, MAP@R, MRR and mAP, exactly, from the ranks of each query's positives.

    With R positives of a query at ranks $r_1 < r_2 < \dots < r_R$ among its references:

    - ``R@k``: whether a positive is among the first k, $[r_1 \le k]$;
    - ``P@1``: whether the first is a positive, $[r_1 = 1]$; equal to ``R@1``;
    - ``RP``: the share of positives among the first R, $\frac1R \sum_i [r_i \le R]$;
    - ``MAP@R``: the reality check's $\frac1R \sum_i [r_i \le R]\, i / r_i$;
    - ``MRR``: $1 / r_1$;
    - ``mAP``: $\frac1R \sum_i i / r_i$, over all ranks.

    Args:
        embeddings: queries, ``(m, d)``, any float dtype.
        labels: their labels, ``(m,)``, any integers (`encode_labels` makes them of names).
        references: what is searched, ``(n, d)``; without it the queries are searched among themselves, and none finds
            itself.
        reference_labels: their labels, ``(n,)``.
        ks: the k of ``R@k``; large ones cost nothing.
        similarity: ``"cosine"``, ``"dot"``, ``"euclidean"``, ``"squared_euclidean"``, ``"snr"`` or an object.
        ties: ``"expected"``, each metric's expectation over all orders of the tied; ``"optimistic"``, positives first;
            ``"pessimistic"``, negatives first.
        relevant: who is positive to whom, in place of labels: a boolean matrix ``(m, n)``; a function of query indices
            and reference indices that gives a boolean matrix; or a relation.
        own: for each query the index of the reference that is the query itself, −1 for none, where references contain
            queries.
        reduce: ``"mean"`` over the queries that have a positive; ``"none"``, a tensor with one value for each of them
            and their indices under ``"query"``; ``"class"``, a tensor with the mean of each class, with ``"class"`` and
            ``"queries"`` beside; ``"macro"``, the mean of these means.
        memory: bytes that the pass may take beside its inputs and its result.

    Returns:
        Fractions by name, and the counts ``"queries"`` (those that have a positive and are in the mean) and
        ``"queries_without_positive"`` (those that have none and are in no number).

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.6, 0.5]])
        >>> found = retrieval(embeddings, torch.tensor([7, 7, 8, 8]), ks=(1, 1000))
        >>> {name: round(value, 3) for name, value in found.items()}
        {'R@1': 0.75, 'R@1000': 1.0, 'P@1': 0.75, 'RP': 0.75, 'MAP@R': 0.75, 'MRR': 0.833, 'mAP': 0.833, 'queries': 4, 'queries_without_positive': 0}
    """
    one_of("ties", ties, TIES)
    one_of("reduce", reduce, REDUCTIONS)
    if isinstance(ks, str) or not isinstance(ks, Iterable):
        raise TypeError(f"ks must be a sequence of whole numbers, but it is {ks!r}")
    sizes = tuple(dict.fromkeys(whole_number("each of ks", k, 1) for k in ks))
    search = make_search(embeddings, labels, references, reference_labels, similarity, relevant, own, memory)
    m, device = len(search.sides.queries), search.sides.queries.device
    if reduce in ("macro", "class"):
        if labels is None:
            raise ValueError(f"labels must be given for reduce={reduce!r}, but they are None")
        labels = labels_from("labels", labels, m, device, "embeddings")
    # a few dozen float64 numbers for each positive, a quarter of the memory's worth at once
    entries = min(2**20, max(2**12, search.memory // 2**10))
    found = [(piece.queries, per_query(piece, sizes, ties, entries)) for piece in gathered(pieces(search), entries)]
    if not sum(len(queries) for queries, _ in found):
        what = "labels" if relevant is None else "relevant"
        raise ValueError(f"{what} must give some query a positive among the references, but none of the {m} has one")
    query, order = torch.cat([queries for queries, _ in found]).sort()
    values = {name: torch.cat([part[name] for _, part in found])[order] for name in found[0][1]}
    return _reduced(values, query, labels, m, reduce)


def _reduced(values: dict[str, Tensor], query: Tensor, labels: Tensor | None, m: int, reduce: str) -> dict[str, Any]:
    counts = {"queries": len(query), "queries_without_positive": m - len(query)}
    if reduce == "none":
        return {**values, "query": query, **counts}
    if reduce == "mean":
        return {**{name: value.mean().item() for name, value in values.items()}, **counts}
    assert labels is not None
    classes, code, size = torch.unique(labels[query], return_inverse=True, return_counts=True)
    # a sum of each class without atomic additions: sorted by class, differences of running sums would cancel
    by_class = code.argsort(stable=True)
    table = {
        name: torch.segment_reduce(value[by_class].cpu(), "sum", lengths=size.cpu()).to(value.device) / size
        for name, value in values.items()
    }
    if reduce == "macro":
        return {**{name: value.mean().item() for name, value in table.items()}, "classes": len(classes), **counts}
    return {**table, "class": classes, "queries": size, "queries_without_positive": m - len(query)}
