"""Ranking losses beyond the contract: hierarchies, several labels, many positives, memories, and the losses of others."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor

from likewise import losses
from likewise.engines import positives, recompute
from likewise.formula import (
    GradedPairs,
    Grades,
    Ignoring,
    Labels,
    Levels,
    MultiLabel,
    Relation,
    binarize,
)
from tests.oracles import losses as oracles
from tests.oracles import soft_rank


def hierarchy(n: int, seed: int = 0, groups: tuple[int, ...] = (2, 4, 8)) -> tuple[Tensor, Tensor]:
    """Embeddings around the centers of their groups, and labels of nested groups of these sizes."""
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(n, generator=generator)
    labels = torch.stack([order // size for size in groups], dim=1)
    embeddings = torch.randn(n, 6, generator=generator, dtype=torch.float64)
    for column in labels.T:
        embeddings += 0.7 * torch.randn(n, 6, generator=generator, dtype=torch.float64)[column]
    return embeddings, labels


def value_and_gradient(
    loss: Callable[..., Tensor], embeddings: Tensor, *others: Any, **more: Any
) -> tuple[Tensor, Tensor]:
    leaf = embeddings.clone().requires_grad_()
    value = loss(leaf, *others, **more)
    return value.detach(), torch.autograd.grad(value.sum(), leaf)[0]


def expected(oracle: Callable[..., oracles.Terms], *batch: Tensor, **options: Any) -> float:
    lists = [each.tolist() for each in batch]
    result: float = oracles.reduce(oracle(oracles.batch(*lists), **options), "mean", len(lists[0]))
    return result


GRADED = {
    "HAP": (losses.HAPLoss, soft_rank.hap, {"alpha": 2.0}),
    "HAP-self": (losses.HAPLoss, soft_rank.hap, {"include_self": True, "offset": None}),
    "NDCG": (losses.NDCGLoss, soft_rank.ndcg, {}),
    "NDCG-self": (losses.NDCGLoss, soft_rank.ndcg, {"include_self": True}),
}


@pytest.mark.parametrize("name", GRADED)
def test_hierarchies_on_every_engine(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three levels, few positives and many, the matrix and chunks, one set and references: the oracle's value."""
    kind, oracle, options = GRADED[name]
    monkeypatch.setattr(recompute, "BUDGET", {"cpu": 1, "cuda": 1})
    monkeypatch.setattr(recompute, "LEAST_ROWS", 7)
    monkeypatch.setattr(positives, "TRIPLETS_AT_ONCE", {"cpu": 500, "cuda": 500})
    monkeypatch.setattr(positives, "MANY", 16)  # from here on rows are sorted
    for groups in ((1, 2, 4), (2, 6, 24)):
        embeddings, labels = hierarchy(48, groups=groups)
        references, their_labels = hierarchy(30, seed=1, groups=groups)
        wanted = expected(oracle, embeddings, labels, **options)
        against = expected(oracle, embeddings, labels, references, their_labels, **options)
        gradients = []
        for backend in ("dense", "chunked", "auto"):
            loss = kind(**options, backend=backend)
            value, gradient = value_and_gradient(loss, embeddings, labels)
            assert float(value) == pytest.approx(wanted, rel=1e-9)
            assert float(loss(embeddings, labels, references, their_labels)) == pytest.approx(against, rel=1e-9)
            gradients.append(gradient)
        torch.testing.assert_close(gradients[0], gradients[1])
        torch.testing.assert_close(gradients[0], gradients[2])


def test_pnp_variants_and_recall_at_all_ks() -> None:
    """Sixteen is more than a batch of twelve; with references the batch is still the anchors."""
    embeddings, labels = hierarchy(12)
    references, their_labels = hierarchy(20, seed=1)
    alone = embeddings, labels[:, 1]
    for include_self in (False, True):
        for variant in ("O", "Ds", "Dq", "Iu", "Ib"):
            options = {"variant": variant, "alpha": 0.5, "b": 3.0, "include_self": include_self}
            wanted = expected(soft_rank.pnp, *alone, **options)
            assert float(losses.PNPLoss(**options)(*alone)) == pytest.approx(wanted, rel=1e-9), options
        loss = losses.RecallAtKLoss(include_self=include_self)
        for batch in (alone, (*alone, references, their_labels[:, 1])):
            wanted = expected(soft_rank.recall_at_k, *batch, include_self=include_self)
            assert float(loss(*batch)) == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("make", [losses.HAPLoss, partial(losses.NDCGLoss, include_self=True), losses.SmoothAPLoss])
def test_memory(make: Callable[..., Any]) -> None:
    """A queue with labels on several levels: the batch and the queue as references, no sample its own positive."""
    older, their_labels = hierarchy(16, seed=1)
    embeddings, labels = hierarchy(12)
    if make is losses.SmoothAPLoss:
        their_labels, labels = their_labels[:, 0], labels[:, 0]
    memory = losses.CrossBatchMemory(make(), size=20)
    memory(older, their_labels)
    memory.eval()
    relation = Labels if labels.ndim == 1 else Levels
    own = torch.arange(len(labels))
    among = relation(labels, torch.cat([labels, their_labels]), own=own)
    wanted = make()(embeddings, references=torch.cat([embeddings, older]), relation=among)
    torch.testing.assert_close(memory(embeddings, labels), wanted)


def test_happier_is_a_weighted_sum() -> None:
    embeddings, labels = hierarchy(16)
    loss = losses.HAPPIERLoss(8, 6, weight=0.3, alpha=2.0).double()
    softmax = losses.NormalizedSoftmaxLoss(8, 6).double()
    softmax.proxies = loss.proxies
    wanted = 0.7 * losses.HAPLoss(alpha=2.0)(embeddings, labels) + 0.3 * softmax(embeddings, labels[:, 0])
    torch.testing.assert_close(loss(embeddings, labels), wanted)


def test_csl_of_three_levels() -> None:
    """Also where labels are not those of the table: the formula reads both."""
    table = torch.stack([torch.arange(8), torch.arange(8) // 2, torch.arange(8) // 4], dim=1)
    embeddings, labels = hierarchy(16)
    loss = losses.CSLLoss(8, 6, table).double()
    unit, proxies = torch.nn.functional.normalize, loss.proxies.detach()
    for some in (table[labels[:, 0]], torch.stack([labels[:, 0], labels[:, 1].flip(0), labels[:, 2]], dim=1)):
        cosines = (unit(embeddings) @ unit(proxies).T).tolist()
        units = soft_rank.csl(cosines, some.tolist(), table.tolist())
        assert loss(embeddings, some).item() == pytest.approx(sum(value for _, value in units) / 16, rel=1e-9)
    with pytest.raises(ValueError, match=r"labels must have shape \(n, 3\)"):
        loss(embeddings, labels[:, :2])
    for changes, message in (
        ({"hierarchy": table.flip(0)}, "hierarchy must have the classes 0, 1, … in column 0"),
        ({"hierarchy": table[:5]}, "hierarchy must have 8 rows, but it has 5"),
        ({"margins": (0.1,)}, "margins must have one number for each of the 3 levels"),
    ):
        with pytest.raises(ValueError, match=message):
            losses.CSLLoss(**{"num_classes": 8, "embedding_dim": 6, "hierarchy": table, **changes})


TAGS = [[0, 1], [1, 2], [2], [3], [0, 3], [1], [2, 3], [4]]


def relations(n: int) -> dict[str, tuple[Relation, Tensor]]:
    """Relations of one set, and the relevance of each pair; NaN where a pair is ignored."""
    generator = torch.Generator().manual_seed(0)
    tags = [set(each) for each in TAGS[:n]]
    jaccard = torch.tensor([[len(a & b) / len(a | b) for b in tags] for a in tags], dtype=torch.float64)
    jaccard.fill_diagonal_(torch.nan)
    scores = torch.rand(n, n, generator=generator, dtype=torch.float64).round(decimals=1)
    scores[torch.rand(n, n, generator=generator) < 0.3] = torch.nan
    listed = (~scores.isnan()).nonzero()
    ignored = torch.rand(n, n, generator=generator) < 0.3
    labels = torch.arange(n) // 3
    same = (labels[:, None] == labels).double().fill_diagonal_(torch.nan)
    return {
        "several labels": (MultiLabel.from_lists(TAGS[:n]), torch.where(jaccard > 0, 1.0, jaccard)),
        "jaccard": (MultiLabel.from_lists(TAGS[:n], grade="jaccard"), jaccard),
        "scores": (GradedPairs(listed[:, 0], listed[:, 1], scores[listed[:, 0], listed[:, 1]]), scores),
        "ignored": (Ignoring(Labels(labels), ignored), same.masked_fill(ignored, torch.nan)),
        "parents": (Levels.from_parents(torch.arange(n), [n + k // 2 for k in range(n)] + [-1] * n), 0.5 * _pairs(n)),
    }


def _pairs(n: int) -> Tensor:
    two = torch.arange(n) // 2
    return (two[:, None] == two).double().fill_diagonal_(torch.nan)


@pytest.mark.parametrize("name", relations(8))
@pytest.mark.parametrize("backend", ["dense", "chunked"])
def test_relations_with_grades(name: str, backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """NDCG of any relation, and the same relation as a matrix of relevances."""
    monkeypatch.setattr(recompute, "BUDGET", {"cpu": 1, "cuda": 1})
    monkeypatch.setattr(recompute, "LEAST_ROWS", 3)
    relation, relevance = relations(8)[name]
    embeddings = torch.randn(8, 4, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    shaped = relation.with_shape(8, 8)
    index = torch.arange(8)
    found = shaped.relevance(index[:, None], index[None, :], torch.float64)
    torch.testing.assert_close(found, relevance.nan_to_num(0.0))
    positive, negative = shaped.masks()
    assert torch.equal(positive, relevance > 0)
    assert torch.equal(negative, relevance == 0)
    loss = losses.NDCGLoss(backend=backend)
    torch.testing.assert_close(loss(embeddings, relation=relation), loss(embeddings, relation=Grades(relevance)))


def test_losses_of_classes_refuse_grades() -> None:
    embeddings, labels = hierarchy(12)
    relation = Levels(labels)
    with pytest.raises(
        TypeError, match="relation must have positive and negative pairs only for SmoothAPLoss"
    ) as caught:
        losses.SmoothAPLoss()(embeddings, relation=relation)
    assert "\n" not in str(caught.value)
    pairs = binarize(relation, 1.0, 12, 12)
    value = losses.SmoothAPLoss()(embeddings, relation=pairs)
    # the finest groups are pairs, and everything else is negative except the anchor itself
    torch.testing.assert_close(value, losses.SmoothAPLoss()(embeddings, labels[:, 0]))
    with pytest.raises(TypeError, match=r"relation must be Levels, a hierarchy, .* but it is MultiLabel"):
        losses.HAPLoss()(embeddings, relation=MultiLabel.from_lists([[0, 1], [1]] * 6, grade="jaccard"))
    with pytest.raises(ValueError, match=r"labels must have shape \(n,\)"):
        losses.ContrastiveLoss()(embeddings, labels)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Levels(torch.zeros(3)), "labels must be of an integer dtype"),
        (lambda: Levels(torch.zeros(3, dtype=torch.int64)), r"labels must have shape \(n, L\)"),
        (
            lambda: Levels(torch.zeros(3, 2).long(), torch.zeros(4, 3).long()),
            "reference_labels must have the 2 columns",
        ),
        (lambda: Levels.from_parents(torch.tensor([0, 2]), [1, -1, -1]), "nodes with the same number of ancestors"),
        (lambda: MultiLabel(torch.zeros(3, 2)), "labels must be a boolean matrix"),
        (lambda: MultiLabel.from_lists([[-1]]), "labels must be whole numbers from 0, but one of them is -1"),
        (lambda: Grades(torch.tensor([[1.5]])), "matrix must be between 0 and 1, but one of them is 1.5"),
        (lambda: GradedPairs(torch.tensor([0]), torch.tensor([0, 1]), torch.ones(1)), "one entry for each pair"),
        (
            lambda: GradedPairs(torch.tensor([0, 1, 1]), torch.tensor([0, 2, 2]), torch.ones(3)).with_shape(2, 3),
            r"must list each pair once, but it has that of anchor and reference \(1, 2\) twice",
        ),
        (lambda: Ignoring(Labels(torch.arange(2)), torch.zeros(2, 2)), "ignored must be a boolean matrix"),
        (lambda: losses.RecallAtKLoss(ks=(0,)), "ks must be a whole number ≥ 1, but it is 0"),
        (lambda: losses.PNPLoss("X"), "variant must be one of 'O', 'Ds', 'Dq', 'Iu', 'Ib', but it is 'X'"),
        (
            lambda: losses.RankedListLoss(margin="wide"),
            "RankedListLoss: margin must be a number ≥ 0 and ≤ 2, but it is",
        ),
        (lambda: losses.SupAPLoss(offset="high"), "offset must be a number, but it is 'high'"),
    ],
)
def test_bad_arguments_get_one_sentence(make: Callable[[], Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_a_positive_counts_itself_on_every_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps at zero: the similarity of a positive is computed twice in chunks, and must tie with itself."""
    monkeypatch.setattr(recompute, "BUDGET", {"cpu": 1, "cuda": 1})
    embeddings = torch.randn(64, 37, generator=torch.Generator().manual_seed(0))
    labels = torch.arange(64) // 4
    for include_self in (False, True):
        dense, chunked = (
            losses.SupAPLoss(include_self=include_self, backend=backend)(embeddings, labels)
            for backend in ("dense", "chunked")
        )
        torch.testing.assert_close(dense, chunked, rtol=1e-5, atol=1e-6)


def test_smooth_ap_of_pytorch_metric_learning() -> None:
    """Its SmoothAP is the loss (the anchor included) only where every class has as many samples as there are classes."""
    pml = pytest.importorskip("pytorch_metric_learning.losses")
    generator = torch.Generator().manual_seed(0)
    for classes, per_class in ((3, 3), (3, 2)):
        embeddings = torch.randn(classes * per_class, 5, generator=generator, dtype=torch.float64)
        labels = torch.arange(classes).repeat_interleave(per_class)
        theirs = pml.SmoothAPLoss(temperature=0.1)(embeddings, labels)
        ours = losses.SmoothAPLoss(0.1, include_self=True)(embeddings, labels)  # the contract has its oracle
        assert (float(theirs) == pytest.approx(float(ours), rel=1e-6)) == (classes == per_class)
