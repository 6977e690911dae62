"""Verification against scikit-learn's ROC curve and against plain counting."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score, roc_curve
from torch import Tensor

from likewise.formula import Cosine, Dot, Masks
from likewise.metrics import verification

MODULE = sys.modules["likewise.metrics.verification"]


def sample(seed: int, n: int = 60, tied: bool = False) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, 8, (n,), generator=generator)
    if tied:
        return torch.randint(-1, 2, (n, 3), generator=generator).float(), labels
    return torch.randn(n, 6, generator=generator) + 0.8 * torch.randn(8, 6, generator=generator)[labels], labels


def flat(S: Tensor, labels: Tensor) -> tuple[np.ndarray, np.ndarray]:
    i, j = torch.triu_indices(len(labels), len(labels), 1)
    return S[i, j].double().numpy(), (labels[i] == labels[j]).numpy()


def equal_error(scores: np.ndarray, same: np.ndarray) -> float:
    """Walk down every threshold; where the errors cross between two, the crossing of the straight lines."""
    before = (0.0, 1.0)
    for t in sorted(set(scores.tolist()), reverse=True):
        for accepted in (scores > t, scores >= t):
            accept, reject = (accepted & ~same).sum() / (~same).sum(), (~accepted & same).sum() / same.sum()
            if accept >= reject:
                (a0, r0), share = before, 0.0
                share = (r0 - a0) / ((accept - a0) - (reject - r0))
                return a0 + share * (accept - a0)
            before = (accept, reject)
    raise AssertionError("the errors always cross")


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("budget", [2**28, 2**18])
def test_all_pairs(seed: int, tied: bool, budget: int):
    embeddings, labels = sample(seed, tied=tied)
    scores, same = flat(Dot()(embeddings), labels)
    found = verification(embeddings, labels, similarity="dot", far=(0.5, 0.1, 0.01, 1e-6), memory=budget)
    assert found["exact"]
    assert (found["genuine"], found["impostors"]) == (same.sum(), (~same).sum())
    assert found["AUC"] == pytest.approx(roc_auc_score(same, scores), abs=1e-12)
    assert found["EER"] == pytest.approx(equal_error(scores, same), abs=1e-12)
    false, true, _ = roc_curve(same, scores, drop_intermediate=False)
    for rate in (0.5, 0.1, 0.01, 1e-6):
        assert found[f"TAR@{rate:g}"] == pytest.approx(true[false <= rate].max(), abs=1e-12)
        threshold = found[f"threshold@{rate:g}"]
        assert (scores[same] >= threshold).mean() == found[f"TAR@{rate:g}"]
        assert (scores[~same] >= threshold).mean() <= rate


def test_queries_and_a_gallery():
    queries, labels = sample(1, 20)
    gallery, reference_labels = sample(2, 30)
    found = verification(queries, labels, gallery, reference_labels)
    same = (labels[:, None] == reference_labels).flatten().numpy()
    scores = Cosine()(queries, gallery).flatten().numpy()
    assert found["AUC"] == pytest.approx(roc_auc_score(same, scores), abs=1e-12)
    assert found["genuine"] + found["impostors"] == 600


def test_left_out_pairs_and_relations():
    """Only the pairs of a relation count, as in a protocol with a fixed list of pairs."""
    embeddings, labels = sample(3, 30)
    generator = torch.Generator().manual_seed(0)
    listed = (torch.rand(30, 30, generator=generator) < 0.3).triu(1)
    same = labels[:, None] == labels
    found = verification(embeddings, relevant=Masks(same & listed, ~same & listed))
    S = Cosine()(embeddings)
    assert found["AUC"] == pytest.approx(roc_auc_score(same[listed].numpy(), S[listed].numpy()), abs=1e-12)


def test_a_matrix_over_many_chunks(monkeypatch: pytest.MonkeyPatch):
    embeddings, labels = sample(5, 150)
    monkeypatch.setattr(MODULE, "fit_rows", lambda budget, per_pair: 40)  # rounded up to one row multiple
    by_matrix = verification(embeddings, relevant=labels[:, None] == labels)
    assert by_matrix == verification(embeddings, labels)
    scores, same = flat(Cosine()(embeddings), labels)
    assert by_matrix["AUC"] == pytest.approx(roc_auc_score(same, scores), abs=1e-12)


def test_the_pair_of_a_sample_with_itself_is_left_out():
    """Where the call says which pairs are one sample; even where its two labels do not agree."""
    embeddings, labels = sample(6, 20)
    everything = verification(embeddings, labels, embeddings, labels)
    assert everything["genuine"] + everything["impostors"] == 400
    without = verification(embeddings, labels, embeddings, labels, exclude_self=True)
    alone = verification(embeddings, labels)
    assert (without["genuine"], without["impostors"]) == (2 * alone["genuine"], 2 * alone["impostors"])
    assert without["AUC"] == pytest.approx(alone["AUC"], abs=1e-12)
    one = (torch.eye(3)[:1], torch.tensor([0]), torch.eye(3), torch.tensor([1, 0, 1]))
    found = verification(*one, ids=torch.tensor([5]), reference_ids=torch.tensor([5, 1, 2]))
    assert (found["genuine"], found["impostors"]) == (1, 1)
    assert verification(embeddings, labels, ids=torch.arange(20) // 2)["genuine"] < alone["genuine"]


def test_a_grid_where_memory_ends(monkeypatch: pytest.MonkeyPatch):
    embeddings, labels = sample(4, 200)
    scores, same = flat(Cosine()(embeddings), labels)
    monkeypatch.setattr(MODULE._Pairs, "count_genuine", lambda self: 2**40)
    found = verification(embeddings, labels)
    assert not found["exact"]
    assert found["AUC"] == pytest.approx(roc_auc_score(same, scores), abs=1e-5)
    assert found["EER"] == pytest.approx(equal_error(scores, same), abs=2e-4)


def test_perfect_and_hopeless():
    labels = torch.tensor([0, 0, 1, 1])
    perfect = verification(torch.eye(4)[[0, 0, 1, 1]], labels)
    assert (perfect["AUC"], perfect["EER"], perfect["TAR@0.001"]) == (1.0, 0.0, 1.0)
    alike = verification(torch.ones(4, 2), labels)
    assert (alike["AUC"], alike["EER"], alike["TAR@0.001"]) == (0.5, 0.5, 0.0)
    assert alike["threshold@0.001"] == float("inf")


@pytest.mark.parametrize(
    ("labels", "options", "message"),
    [
        ([0, 1, 2], {}, "labels must give at least one genuine pair, but there is none"),
        ([0, 0, 0], {}, "labels must give at least one impostor pair, but there is none"),
        ([0, 0, 1], {"far": (0.0,)}, "each of far must be above 0 and at most 1, but it is 0.0"),
    ],
)
def test_bad_input_is_named(labels: list[int], options: dict, message: str):
    with pytest.raises(ValueError, match=message):
        verification(torch.eye(3), torch.tensor(labels), **options)
