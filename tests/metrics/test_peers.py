"""What other libraries compute under the same names, and what they refuse; differences are rows of docs/conventions.md."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from pytorch_metric_learning.distances import CosineSimilarity, LpDistance
from pytorch_metric_learning.utils import accuracy_calculator
from pytorch_metric_learning.utils.accuracy_calculator import AccuracyCalculator
from pytorch_metric_learning.utils.inference import CustomKNN
from sklearn.metrics import average_precision_score, label_ranking_average_precision_score, ndcg_score
from torch import Tensor

from likewise.formula import Cosine, Dot, Euclidean, Masks
from likewise.metrics import clustering_scores, retrieval

KEYS = {
    "precision_at_1": "P@1",
    "r_precision": "RP",
    "mean_average_precision_at_r": "MAP@R",
    "mean_reciprocal_rank": "MRR",
    "mean_average_precision": "mAP",
}


def sample(n: int = 120, classes: int = 12, seed: int = 4) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, classes, (n,), generator=generator)
    return torch.randn(n, 12, generator=generator), labels


def calculator(distance: Any = None, **options: Any) -> AccuracyCalculator:
    """Theirs, with a plain search in place of faiss, which is optional."""
    options = {"include": tuple(KEYS), "device": torch.device("cpu"), **options}
    return AccuracyCalculator(knn_func=CustomKNN(distance or CosineSimilarity()), **options)


X, Y = sample()
GALLERY, GALLERY_LABELS = sample(150, seed=5)
ALONE = torch.cat([Y[:-3], torch.tensor([100, 101, 102])])
"""Labels of which the last three have one sample."""


EQUAL: dict[str, tuple[dict, tuple, tuple, dict]] = {
    "among-themselves": ({}, (X, Y), (X, Y), {}),
    "gallery": ({}, (X, Y, GALLERY, GALLERY_LABELS), (X, Y, GALLERY, GALLERY_LABELS), {}),
    "references-are-queries": ({}, (X, Y, X, Y, False), (X, Y, X, Y), {}),
    "exclude-self": ({}, (X, Y, X, Y, True), (X, Y, X, Y), {"exclude_self": True}),
    "exclude-self-of-many": ({}, (X[:50], Y[:50], X, Y, True), (X[:50], Y[:50], X, Y), {"exclude_self": True}),
    "without-positives": ({}, (X, ALONE), (X, ALONE), {}),
    "max-bin-count": ({"k": "max_bin_count", "exclude": tuple(KEYS)[3:]}, (X, Y), (X, Y), {}),
    "macro": ({"avg_of_avgs": True}, (X, ALONE), (X, ALONE), {"reduce": "macro"}),
    "class": ({"return_per_class": True}, (X, ALONE), (X, ALONE), {"reduce": "class"}),
    "normalization": (
        {"distance": LpDistance(normalize_embeddings=False)},
        (X, Y),
        (X, Y),
        {"similarity": Euclidean(normalize=False)},
    ),
    "relevance": (
        {"label_comparison_fn": lambda a, b: (a - b).abs() <= 1, "include": tuple(KEYS)[:1]},
        (X, Y, GALLERY, GALLERY_LABELS),
        (X, None, GALLERY),
        {"relevant": (Y[:, None] - GALLERY_LABELS).abs() <= 1},
    ),
}
"""Options and arguments of their calculator, arguments and options of `retrieval`."""


@pytest.mark.parametrize("name", EQUAL)
def test_pml_equals(name: str):
    options, arguments, our_arguments, our_options = EQUAL[name]
    theirs = calculator(**options).get_accuracy(*arguments)
    ours = retrieval(*our_arguments, **our_options)
    for key, value in theirs.items():
        mine = ours[KEYS[key]]
        assert (mine.tolist() if isinstance(mine, Tensor) else mine) == pytest.approx(value, abs=1e-6), key


def test_pml_average_precision_divides_by_all_positives():
    """Also those that no ranking could place among its first k; ours at k divides by what is possible."""
    reached = calculator(k=4, include=("mean_average_precision", "mean_reciprocal_rank")).get_accuracy(X, Y)
    theirs = reached["mean_average_precision"]
    found = retrieval(X, Y, metrics=("mAP@4", "MRR"), reduce="none")
    first = found["MRR"] * (found["MRR"] >= 1 / 4)  # zero beyond k
    assert reached["mean_reciprocal_rank"] == pytest.approx(first.mean().item(), abs=1e-6)
    positives = torch.bincount(Y)[Y] - 1
    assert int(positives.min()) > 4
    assert theirs == pytest.approx((found["mAP@4"] * 4 / positives).mean().item(), abs=1e-6)


def test_pml_precision_divides_by_k():
    """Ours does as well, where a query has fewer than k references."""
    x, y = torch.eye(3)[[0, 0, 0, 1]], torch.tensor([0, 0, 0, 1])
    neighbors = torch.tensor([[0, 0, 1], [0, 0, 1], [0, 0, 1]])  # labels, nearest first
    arguments = (5, False, False, torch.eq)
    theirs = accuracy_calculator.precision_at_k(neighbors, torch.zeros(3, 1), *arguments)
    assert retrieval(x, y, metrics=("P@5",))["P@5"] == pytest.approx(theirs) == 2 / 5


def test_pml_without_positives():
    """A query that nothing answers is left out; where all are, theirs is NaN and ours an error, or zero on request."""
    few = torch.arange(len(X))
    with pytest.raises(ValueError, match="none of the 120 has one"):
        retrieval(X, few)
    assert all(math.isnan(value) for value in calculator().get_accuracy(X, few).values())
    assert retrieval(X, few, without_positives="zero")["mAP"] == 0.0


def test_pml_labels_are_floats():
    """Two labels that float32 cannot tell apart are one class there."""
    labels = 2**24 + torch.tensor([0, 1, 0, 1])
    x = torch.eye(4)[[0, 0, 1, 1]] + 0.1 * torch.eye(4)
    assert calculator().get_accuracy(x, labels)["precision_at_1"] == 1.0
    assert retrieval(x, labels)["P@1"] == 0.0


def test_pml_ties_follow_the_sort():
    """All embeddings alike: theirs is one of the possible orders, ours their mean."""
    x, y = torch.ones(40, 3), torch.arange(40) % 4
    theirs = calculator().get_accuracy(x, y)["mean_average_precision_at_r"]
    worst, mean, best = (retrieval(x, y, ties=ties)["MAP@R"] for ties in ("pessimistic", "expected", "optimistic"))
    assert worst <= theirs <= best
    assert worst < mean < best


def test_pml_clusters():
    clusters = Y.roll(7)
    theirs = calculator(include=("NMI", "AMI"), kmeans_func=lambda x, k: clusters).get_accuracy(X, Y)
    assert {name: clustering_scores(Y, clusters)[name] for name in theirs} == pytest.approx(theirs)


@pytest.mark.parametrize(
    ("theirs", "ours", "kind"),
    [
        (lambda: calculator().get_accuracy(X, Y[1:]), lambda: retrieval(X, Y[1:]), ValueError),
        (lambda: calculator(include=("recall",)), lambda: retrieval(X, Y, metrics=("recall",)), ValueError),
        (lambda: calculator(include="NMI"), lambda: retrieval(X, Y, metrics="mAP"), TypeError),
        (lambda: calculator(k=0), lambda: retrieval(X, Y, ks=(0,)), ValueError),
        (
            lambda: calculator().get_accuracy(X, Y, X[:9], Y[:9], True),
            lambda: retrieval(X, Y, X[:9], Y[:9], exclude_self=True),
            (ValueError, RuntimeError),
        ),
        (
            lambda: calculator(avg_of_avgs=True, return_per_class=True),
            lambda: retrieval(X, Y, reduce="macro and class"),
            ValueError,
        ),
    ],
)
def test_pml_refuses(theirs: Any, ours: Any, kind: Any):
    for call in (theirs, ours):
        with pytest.raises(kind):
            call()


HITS = ["++-+-", "+--++", "-++-+", "--+++", "+----", "---+-"]
"""Six queries with three, three, three, three, one and one positive among five references, nearest first."""


@pytest.mark.parametrize(
    ("k", "precision", "average_precision", "matched"),
    [
        (1, (1, 1, 0, 0, 1, 0), (1, 1, 0, 0, 1, 0), (1, 1, 0, 0, 1, 0)),
        (2, (1, 1 / 2, 1 / 2, 0, 1, 0), (1, 1 / 2, 1 / 4, 0, 1, 0), (1, 1, 1, 0, 1, 0)),
        (3, (2 / 3, 1 / 3, 2 / 3, 1 / 3, 1, 0), (2 / 3, 1 / 3, 7 / 18, 1 / 9, 1, 0), (1, 1, 1, 1, 1, 0)),
        (4, (1, 2 / 3, 2 / 3, 2 / 3, 1, 1), (11 / 12, 1 / 2, 7 / 18, 5 / 18, 1, 1 / 4), (1, 1, 1, 1, 1, 1)),
        (10, (1,) * 6, (11 / 12, 0.7, 53 / 90, 43 / 90, 1, 1 / 4), (1,) * 6),
    ],
)
def test_oml_at_k(k: int, precision: tuple, average_precision: tuple, matched: tuple):
    """open-metric-learning: cmc@k is R@k, map@k is mAP@k; its precision@k divides by min(k, R), ours by k."""
    relevant = torch.tensor([[hit == "+" for hit in row] for row in HITS])
    similarities = torch.arange(5.0, 0.0, -1.0).repeat(6, 1)
    found = _by_matrix(similarities, relevant, metrics=(f"R@{k}", f"P@{k}", f"mAP@{k}"))
    assert found[f"R@{k}"].tolist() == list(matched)
    assert found[f"mAP@{k}"].tolist() == pytest.approx(average_precision)
    possible = relevant.sum(dim=1).clamp(max=k)
    assert (found[f"P@{k}"] * k / possible).tolist() == pytest.approx(precision)


def test_oml_ignored_pairs():
    """Its mask of pairs to ignore is a relation in which they are neither positive nor negative."""
    similarities = torch.tensor([[4.0, 3.0, 2.0, 1.0]])
    positive = torch.tensor([[True, False, True, False]])
    ignored = torch.tensor([[True, True, False, False]])
    found = _by_matrix(similarities, Masks(positive & ~ignored, ~positive & ~ignored), metrics=("R@1", "P@2", "mAP"))
    assert [found[name].item() for name in ("R@1", "P@2", "mAP")] == [1.0, 0.5, 1.0]


def _by_matrix(similarities: Tensor, relevant: Any, metrics: tuple[str, ...]) -> dict[str, Any]:
    """The metrics of each query for given similarities, which are inner products with unit vectors."""
    queries = torch.eye(len(similarities))
    options = {"relevant": relevant, "similarity": "dot", "reduce": "none"}
    return retrieval(queries, references=similarities.T, metrics=metrics, **options)


@pytest.mark.parametrize("tied", [False, True])
def test_scikit_learn(tied: bool):
    """Average precision of a query without ties is scikit-learn's; nDCG is, with ties as well."""
    x, y = sample(50, 6)
    x = x[:, :3].sign() if tied else x.double()
    S = Dot()(x).double().numpy() if tied else Cosine()(x).numpy()
    names = ("mAP", "nDCG@1", "nDCG@7", "nDCG@1000")
    found = retrieval(x, y, reduce="none", metrics=names, similarity="dot" if tied else "cosine")
    for row, query in enumerate(found["query"].tolist()):
        keep = np.arange(50) != query
        same, scores = (y == y[query]).numpy()[keep], S[query, keep]
        average, *gains = (found[name][row].item() for name in names)
        assert gains == pytest.approx([ndcg_score(same[None], scores[None], k=k) for k in (1, 7, 1000)], abs=1e-12)
        if not tied:
            assert average == pytest.approx(average_precision_score(same, scores))
            assert average == pytest.approx(label_ranking_average_precision_score(same[None], scores[None]))
