"""Metrics of rankings with graded relevance: hierarchies, several labels per item, scores of pairs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from likewise.formula import (
    Relation,
    SimilarityLike,
    as_similarity,
    check_labels,
    check_values,
    make_labels,
    whole_number,
)
from likewise.metrics.arrays import Array, Embeddings, as_tensor, check_embeddings
from likewise.metrics.chunks import MEMORY, fit_rows, split_rows
from likewise.metrics.precision import exact_precision

_BYTES_PER_PAIR = 96
"""Bytes of the largest intermediate results, for each pair of a chunk."""


def graded_retrieval(
    embeddings: Array,
    labels: Array | None = None,
    references: Array | None = None,
    reference_labels: Array | None = None,
    *,
    relation: Relation | None = None,
    ks: Sequence[int] = (1, 10, 100),
    alpha: float = 1.0,
    similarity: SimilarityLike = "cosine",
    memory: int = MEMORY,
) -> dict[str, Any]:
    r"""Hierarchical average precision, NDCG and average set intersection of rankings with graded relevance.

    References j of a query have relevances $r_j\in[0,1]$ and similarities $s_j$; R of them are relevant, $r_j>0$.

    - ``H-AP``: $\sum_p (h_p/n_p)\,/\sum_p g_p$ over relevant p, with $g_j=r_j^\alpha/\#\{k:r_k=r_j\}$,
      $n_p=\#\{j:s_j\ge s_p\}$ and $h_p=\sum_{j:\,s_j\ge s_p}\min(g_j,g_p)$ (Ramzi et al. 2022); with equal relevances it is
      average precision.
    - ``NDCG@k``: $\sum_{i\le k} r_{(i)}/\log_2(1+i)$ in the order of similarity, divided by the same sum in the order of
      relevance (Järvelin and Kekäläinen 2002, with the relevance as the gain); the mean over all orders of a tie.
    - ``ASI``: $\frac1R\sum_{k\le R}\frac1k\sum_v\min(a_v(k),b_v(k))$, where $a_v(k)$ and $b_v(k)$ count the references of
      relevance v among the first k by similarity and by relevance (Sun et al. 2021); the less relevant of a tie come first.

    Average precision with several labels per item is `retrieval` with ``relevant=MultiLabel(...)``.

    Args:
        embeddings: queries, ``(m, d)``, any float dtype.
        labels: their labels, ``(m,)``, or the levels of a hierarchy, ``(m, L)``, column 0 the finest.
        references: the searched embeddings, ``(n, d)``; a query is compared with all of them.  By default, each query
            is compared with all other queries.
        reference_labels: their labels, ``(n,)`` or ``(n, L)``.
        relation: the relevance of each pair in place of labels (`likewise.formula.Levels`, ``MultiLabel``, ``Grades``, …).
        ks: the numbers k of ``NDCG@k``.
        alpha: the exponent α of H-AP.
        similarity: ``"cosine"``, ``"dot"``, ``"euclidean"``, … or an object.
        memory: bytes that the computation may take in addition to its inputs and its result; at least enough for one
            query.

    Returns:
        Means over the queries that have a relevant reference, by name, and the counts ``"queries"`` and
        ``"queries_without_positive"``.

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.6, 0.5]])
        >>> scores = graded_retrieval(embeddings, torch.tensor([[0, 0], [0, 0], [1, 0], [2, 1]]), ks=(1,))
        >>> {name: round(value, 3) for name, value in scores.items()}
        {'H-AP': 0.787, 'NDCG@1': 0.667, 'ASI': 0.583, 'queries': 3, 'queries_without_positive': 1}
    """
    compared = check_embeddings(embeddings, references, as_similarity(similarity))
    relation = _make_relation(compared, labels, reference_labels, relation)
    ks = [whole_number("ks", k, 1) for k in ks]
    rows = fit_rows(whole_number("memory", memory, 1), per_row=_BYTES_PER_PAIR * len(compared.references))
    with exact_precision(compared.queries):
        chunks = [_score(compared, relation, chunk, ks, alpha) for chunk in split_rows(len(compared.queries), rows)]
    values = {name: torch.cat([chunk[name] for chunk in chunks]) for name in chunks[0]}
    has_relevant = values.pop("relevant") > 0
    count = int(has_relevant.sum())
    means = {name: value[has_relevant].double().mean().item() if count else 0.0 for name, value in values.items()}
    return {**means, "queries": count, "queries_without_positive": len(has_relevant) - count}


def _make_relation(
    compared: Embeddings, labels: Array | None, reference_labels: Array | None, relation: Relation | None
) -> Relation:
    m, n, device = len(compared.queries), len(compared.references), compared.queries.device
    if relation is not None:
        if labels is not None or reference_labels is not None:
            raise ValueError("relation replaces labels and reference_labels; leave them out")
        return relation.with_shape(m, n)
    if labels is None:
        raise ValueError("labels must be given, or relation in their place, but both are None")
    if compared.same_set and reference_labels is not None:
        raise ValueError("reference_labels must be given together with references only, but references is None")
    if not compared.same_set and reference_labels is None:
        raise ValueError("reference_labels must be given together with references, but it is None")
    with check_values():
        own = check_labels("labels", as_tensor("labels", labels), m, device, "embeddings", levels=True)
        if reference_labels is None:
            return make_labels(own)
        others = as_tensor("reference_labels", reference_labels)
        return make_labels(own, check_labels("reference_labels", others, n, device, "references", levels=True))


def _score(compared: Embeddings, relation: Relation, rows: slice, ks: Sequence[int], alpha: float) -> dict[str, Tensor]:
    """The metrics of some queries, and the number of their relevant references."""
    dtype, device = compared.dtype, compared.queries.device
    S = compared.similarity(compared.queries[rows].to(dtype), compared.references.to(dtype))
    index = torch.arange(max(len(compared.queries), S.shape[1]), device=device)
    relevance = relation.relevance(index[rows, None], index[None, : S.shape[1]], torch.float64)
    positive, negative = relation.masks(rows)
    meets = positive | negative
    # in a tie the less relevant come first; excluded pairs come last
    order = relevance.argsort(dim=1, stable=True)
    by_similarity = S.masked_fill(~meets, -torch.inf).gather(1, order).argsort(dim=1, descending=True, stable=True)
    order = order.gather(1, by_similarity)
    sorted_S, gains = S.gather(1, order), torch.where(meets, relevance, 0.0).gather(1, order)
    there = meets.gather(1, order)
    last = _last_of_ties(sorted_S, there)
    best = gains.sort(dim=1, descending=True).values
    hap, asi = _score_levels(gains, there, last, alpha)
    return {
        "H-AP": hap,
        **{f"NDCG@{k}": _ndcg(gains, best, last, k) for k in ks},
        "ASI": asi,
        "relevant": (gains > 0.0).sum(dim=1),
    }


def _last_of_ties(values: Tensor, there: Tensor) -> Tensor:
    """Return the last position with the same value for each position of descending rows; excluded pairs tie."""
    n = values.shape[1]
    position = torch.arange(n, device=values.device).expand_as(values)
    differs = torch.ones_like(there)
    differs[:, :-1] = (values[:, :-1] != values[:, 1:]) | (there[:, :-1] != there[:, 1:])
    return torch.where(differs, position, n).flip(1).cummin(dim=1).values.flip(1)


def _ndcg(gains: Tensor, best: Tensor, last: Tensor, k: int) -> Tensor:
    """The discounted gain of the first k, divided by the best; a tie has its mean gain at each of its positions."""
    n = gains.shape[1]
    position = torch.arange(n, device=gains.device)
    discount = torch.where(position < k, 1.0 / torch.log2(position.double() + 2.0), 0.0)
    total = torch.zeros_like(gains).scatter_add(1, last, gains)
    count = torch.zeros_like(gains).scatter_add(1, last, torch.ones_like(gains))
    means = (total / count.clamp_min(1.0)).gather(1, last)
    ideal = best @ discount
    return means @ discount / torch.where(ideal > 0.0, ideal, 1.0)


def _score_levels(gains: Tensor, there: Tensor, last: Tensor, alpha: float) -> tuple[Tensor, Tensor]:
    """H-AP and ASI, from the numbers of references of each relevance down to each position."""
    n = gains.shape[1]
    rank = there.cumsum(dim=1).gather(1, last)
    weight = torch.zeros_like(gains)
    levels = torch.unique(gains)
    levels = levels[levels > 0.0].flip(0)
    counts = [(gains == level).sum(dim=1, keepdim=True) for level in levels]
    for level, count in zip(levels, counts, strict=True):
        weight = torch.where(gains == level, level**alpha / count.clamp_min(1), weight)
    graded, shared = torch.zeros_like(gains), torch.zeros_like(gains)
    place, before = torch.arange(1, n + 1, device=gains.device), torch.zeros_like(rank[:, :1])
    for level, count in zip(levels, counts, strict=True):
        so_far = (gains == level).cumsum(dim=1)
        graded += so_far.gather(1, last) * torch.minimum(weight, level**alpha / count.clamp_min(1))
        shared += torch.minimum(so_far, (place - before).clamp_min(0).minimum(count))
        before = before + count
    total = weight.sum(dim=1)
    hap = torch.where(weight > 0.0, graded / rank.clamp_min(1), 0.0).sum(dim=1) / torch.where(total > 0.0, total, 1.0)
    asi = torch.where(place <= before, shared / place, 0.0).sum(dim=1) / before[:, 0].clamp_min(1)
    return hap, asi
