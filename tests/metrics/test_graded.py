"""Metrics with graded relevance against plain loops, scikit-learn, and the losses that optimize them."""

from __future__ import annotations

from itertools import pairwise, permutations
from math import log2
from typing import Any

import pytest
import torch
from torch import Tensor

from likewise import metrics
from likewise.formula import Grades, Levels, MultiLabel

KS = (1, 3, 50)


def rankings(similarities: list[float]) -> list[list[int]]:
    """Every order of the references by descending similarity."""
    orders = permutations(range(len(similarities)))
    return [list(o) for o in orders if all(similarities[a] >= similarities[b] for a, b in pairwise(o))]


def of_query(s: list[float], r: list[float], alpha: float) -> dict[str, float] | None:
    """The metrics of one query, written out."""
    relevant = [j for j in range(len(r)) if r[j] > 0.0]
    if not relevant:
        return None
    g = [value**alpha / r.count(value) if value else 0.0 for value in r]
    total = 0.0
    for p in relevant:
        above = [j for j in range(len(r)) if s[j] >= s[p]]
        total += sum(min(g[j], g[p]) for j in above) / len(above)
    result = {"H-AP": total / sum(g)}
    best = sorted(r, reverse=True)
    for k in KS:
        gains = [sum(r[j] / log2(2 + i) for i, j in enumerate(order[:k])) for order in rankings(s)]
        ideal = sum(value / log2(2 + i) for i, value in enumerate(best[:k]))
        result[f"NDCG@{k}"] = sum(gains) / len(gains) / ideal
    order = sorted(range(len(r)), key=lambda j: (-s[j], r[j]))
    shares = []
    for k in range(1, len(relevant) + 1):
        first = [r[j] for j in order[:k]]
        shares.append(sum(min(first.count(value), best[:k].count(value)) for value in set(r)) / k)
    result["ASI"] = sum(shares) / len(shares)
    return result


def expected(S: Tensor, relevance: Tensor, alpha: float = 1.0) -> dict[str, Any]:
    """The means over queries; NaN marks pairs that do not meet."""
    rows = []
    for s, r in zip(S.tolist(), relevance.tolist(), strict=True):
        met = [(a, b) for a, b in zip(s, r, strict=True) if b == b]
        rows.append(of_query([a for a, _ in met], [b for _, b in met], alpha))
    found = [row for row in rows if row is not None]
    means = {name: sum(row[name] for row in found) / len(found) for name in found[0]}
    return {**means, "queries": len(found), "queries_without_positive": len(rows) - len(found)}


def embeddings(n: int, *, ties: bool) -> Tensor:
    rows = torch.randn(n, 3, generator=torch.Generator().manual_seed(n), dtype=torch.float64)
    if ties:
        rows[1::2] = rows[::2][: len(rows[1::2])]
    return rows


@pytest.mark.parametrize(("ties", "memory"), [(False, 2**28), (True, 1)])
def test_hierarchies(ties: bool, memory: int) -> None:
    x = embeddings(7, ties=ties)
    labels = torch.tensor([[0, 0, 0], [0, 0, 0], [1, 0, 0], [2, 1, 0], [3, 2, 1], [3, 2, 1], [4, 3, 2]])
    index = torch.arange(7)
    relevance = Levels(labels).relevance(index[:, None], index[None, :], torch.float64).fill_diagonal_(torch.nan)
    unit = torch.nn.functional.normalize(x)
    S = unit @ unit.T
    found = metrics.graded_retrieval(x, labels, ks=KS, alpha=2.0, memory=memory)
    assert found == pytest.approx(expected(S.round(decimals=12), relevance, 2.0))
    assert metrics.graded_retrieval(x, relation=Grades(relevance), ks=KS, alpha=2.0) == pytest.approx(found)


def test_references_and_ignored_pairs() -> None:
    queries, gallery = embeddings(4, ties=False), embeddings(6, ties=False)
    relevance = torch.rand(4, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64).round(decimals=1)
    relevance[0, :2], relevance[1] = torch.nan, 0.0
    S = torch.nn.functional.normalize(queries) @ torch.nn.functional.normalize(gallery).T
    found = metrics.graded_retrieval(queries, references=gallery, relation=Grades(relevance), ks=KS)
    assert found == pytest.approx(expected(S, relevance))


def test_classes_are_one_level() -> None:
    """H-AP is average precision, and NDCG is that of `retrieval`."""
    x, labels = embeddings(20, ties=False), torch.arange(20) // 4
    graded = metrics.graded_retrieval(x, labels, ks=(5,))
    plain = metrics.retrieval(x, labels, metrics=("mAP", "nDCG@5"))
    assert graded["H-AP"] == pytest.approx(plain["mAP"])
    assert graded["NDCG@5"] == pytest.approx(plain["nDCG@5"])


def test_scikit_learn() -> None:
    ndcg_score = pytest.importorskip("sklearn.metrics").ndcg_score
    x = embeddings(9, ties=True)
    relevance = torch.rand(9, 9, generator=torch.Generator().manual_seed(1), dtype=torch.float64).round(decimals=1)
    unit = torch.nn.functional.normalize(x)
    found = metrics.graded_retrieval(x, references=x, relation=Grades(relevance), ks=(4,))
    S = (unit @ unit.T).round(decimals=12)
    assert found["NDCG@4"] == pytest.approx(ndcg_score(relevance.numpy(), S.numpy(), k=4))


def test_average_precision_with_several_labels() -> None:
    tags = [[0, 1], [1, 2], [2], [3], [0, 3], [1], [2, 3], [4]]
    x = embeddings(8, ties=False)
    found = metrics.retrieval(x, relevant=MultiLabel.from_lists(tags), metrics=("mAP",))
    unit = torch.nn.functional.normalize(x)
    S, values = unit @ unit.T, []
    for i in range(8):
        order = sorted((j for j in range(8) if j != i), key=lambda j: -float(S[i, j]))
        hits = [bool(set(tags[i]) & set(tags[j])) for j in order]
        if any(hits):
            values.append(sum(sum(hits[: k + 1]) / (k + 1) for k, hit in enumerate(hits) if hit) / sum(hits))
    assert found["mAP"] == pytest.approx(sum(values) / len(values))
    assert found["queries"] == len(values)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "labels must be given, or relation in their place"),
        ({"labels": torch.arange(4), "references": torch.eye(4)}, "reference_labels must be given together with"),
        ({"labels": torch.arange(4), "ks": (0,)}, "ks must be a whole number ≥ 1, but it is 0"),
        ({"labels": torch.arange(4), "relation": Levels(torch.zeros(4, 1).long())}, "relation replaces labels"),
    ],
)
def test_bad_arguments_get_one_sentence(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        metrics.graded_retrieval(torch.eye(4), **arguments)
    assert "\n" not in str(caught.value)
