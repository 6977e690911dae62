"""Classification by nearest neighbors against scikit-learn and a plain loop."""

from __future__ import annotations

from collections import defaultdict

import pytest
import torch
from sklearn.neighbors import KNeighborsClassifier
from torch.nn.functional import normalize

from likewise.metrics import knn_accuracy, knn_votes, retrieval

GENERATOR = torch.Generator().manual_seed(0)
LABELS = torch.arange(60) % 5 - 2
POINTS = torch.randn(60, 8, generator=GENERATOR) + 0.8 * torch.randn(5, 8, generator=GENERATOR)[LABELS + 2]


def test_votes_are_those_of_scikit_learn():
    """Weights by similarity have no ties; a cosine is one minus half the squared distance of unit vectors."""
    points, references = normalize(POINTS[:20]), normalize(POINTS[20:])
    for k, temperature in ((1, 0.07), (7, 0.07), (40, 0.5)):
        theirs = KNeighborsClassifier(
            k, weights=lambda d, t=temperature: torch.exp((1 - torch.as_tensor(d) ** 2 / 2) / t).numpy()
        ).fit(references, LABELS[20:])
        options = {"k": k, "weights": "similarity", "temperature": temperature}
        votes = knn_votes(3 * POINTS[:20], POINTS[20:], LABELS[20:], **options)
        assert votes.labels.tolist() == theirs.predict(points).tolist()
        assert votes.share.numpy() == pytest.approx(theirs.predict_proba(points).max(axis=1), rel=1e-4)
        assert votes.neighbors.tolist() == theirs.kneighbors(points, return_distance=False).tolist()


def test_accuracy_is_that_of_a_loop_with_ties():
    """Whole numbers make equal similarities and votes: the nearer class wins, then the first reference."""
    points = torch.randint(0, 3, (40, 3), generator=GENERATOR).float()
    labels = torch.randint(0, 4, (40,), generator=GENERATOR)
    right = 0
    for query in range(40):
        others = [each for each in range(40) if each != query]
        scores = {each: float(points[query] @ points[each]) for each in others}
        nearest = sorted(others, key=lambda each: (-scores[each], each))[:4]
        votes: dict[int, int] = defaultdict(int)
        for each in nearest:
            votes[int(labels[each])] += 1
        first = {int(labels[each]): -place for place, each in reversed(list(enumerate(nearest)))}
        right += max(votes, key=lambda label: (votes[label], first[label])) == int(labels[query])
    for memory in (2**28, 1):
        found = knn_accuracy(points, labels, ks=(4,), similarity="dot", memory=memory)
        assert found["kNN@4"] == right / 40


def test_one_neighbor_is_recall_at_one():
    assert knn_accuracy(POINTS, LABELS, ks=(1,))["kNN@1"] == pytest.approx(retrieval(POINTS, LABELS)["R@1"])
    alone = torch.cat([LABELS[:59], torch.tensor([99])])
    found = knn_accuracy(POINTS, alone, ks=(1, 500))
    assert (found["queries"], found["queries_without_positive"]) == (59, 1)
    assert knn_accuracy(POINTS, alone, ks=(1,), without_positives="zero")["kNN@1"] < found["kNN@1"]
    for options, words in (({"ks": (0,)}, "k must be"), ({"weights": "distance"}, "weights must be one of")):
        with pytest.raises(ValueError, match=words):
            knn_accuracy(POINTS, LABELS, **options)
