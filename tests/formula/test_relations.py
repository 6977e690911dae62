"""Relations: labels, masks, pairs, triplets, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from likewise.formula import Cosine, Euclidean, Labels, Masks, Mined, Pairs, Relation, Triplets, s
from likewise.losses import (
    ContrastiveLoss,
    LanguageGuidance,
    LiftedStructureLoss,
    MarginLoss,
    MultiSimilarityLoss,
    NTXentLoss,
    TripletLoss,
)
from likewise.testing import make_batch


def index(*values: int) -> torch.Tensor:
    return torch.tensor(values)


@settings(max_examples=30, deadline=None)
@given(labels=st.lists(st.integers(-3, 3), min_size=1, max_size=8), data=st.data())
def test_labels_give_the_masks_of_any_rectangle(labels: list[int], data: st.DataObject):
    relation = Labels(torch.tensor(labels))
    positive, negative = relation.masks()
    n = len(labels)
    for i in range(n):
        for j in range(n):
            assert positive[i, j].item() == (labels[i] == labels[j] and i != j)
            assert negative[i, j].item() == (labels[i] != labels[j])
    cuts = [sorted(data.draw(st.tuples(st.integers(0, n), st.integers(0, n)))) for _ in range(2)]
    rows, columns = (slice(*cut) for cut in cuts)
    tile_positive, tile_negative = relation.masks(rows, columns)
    assert torch.equal(tile_positive, positive[rows, columns])
    assert torch.equal(tile_negative, negative[rows, columns])


def test_nobody_is_excluded_among_other_references():
    positive, _ = Labels(index(0, 1), index(0, 1)).masks()
    assert positive.tolist() == [[True, False], [False, True]]


def test_an_anchors_own_copy_among_references_is_excluded_by_index():
    relation = Labels(index(0, 0), index(0, 0, 0), own=index(2, -1))
    assert relation.masks()[0].tolist() == [[True, True, False], [True, True, True]]
    assert relation.masks(slice(0, 1), slice(1, 3))[0].tolist() == [[True, False]]


def test_labels_above_2_to_the_24_do_not_collide():
    positive, _ = Labels(index(2**24, 2**24 + 1, 2**53, 2**53 + 1)).masks()
    assert not positive.any()


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32, torch.uint16, torch.uint32])
def test_labels_of_any_integer_dtype(dtype: torch.dtype):
    assert Labels(index(1, 1, 2).to(dtype)).masks()[0].sum() == 2


def test_relations_that_say_the_same_give_the_same_loss():
    embeddings, labels = make_batch("ragged")
    positive, negative = Labels(labels).masks()
    pairs = Pairs(*positive.nonzero(as_tuple=True), *negative.nonzero(as_tuple=True))
    for loss in (MultiSimilarityLoss(), ContrastiveLoss(), TripletLoss(), NTXentLoss()):
        expected = loss(embeddings, labels)
        for relation in (Labels(labels), Masks(positive, negative), pairs):
            torch.testing.assert_close(loss(embeddings, relation=relation), expected)


def test_triplet_losses_take_triplets_and_others_the_pairs_they_touch():
    """Two triplets of anchor 0 share a negative: two terms for a triplet loss, three pairs for the others."""
    S = torch.tensor([[1.0, 0.8, 0.6, 0.9], [0.8, 1.0, 0.0, 0.0], [0.6, 0.0, 1.0, 0.0], [0.9, 0.0, 0.0, 1.0]])
    triplets = Triplets(index(0, 0), index(1, 2), index(3, 3))
    total = TripletLoss(0.2, reduction="sum").from_similarity(S, triplets)
    assert total.item() == pytest.approx((0.9 - 0.8 + 0.2) + (0.9 - 0.6 + 0.2))
    touched = ContrastiveLoss(reduction="sum").from_similarity(S, triplets)
    assert touched.item() == pytest.approx((1 - 0.8) + (1 - 0.6) + (0.9 - 0.5))
    # distances are −s: [0.2 + d_ap − β]₊ and [0.2 + β − d_an]₊ of each triplet
    D = -S
    margin = MarginLoss(beta=-0.75, reduction="sum").from_similarity(D * -1.0, triplets)
    assert margin.item() == pytest.approx((0.2 - 0.8 + 0.75) + (0.2 - 0.6 + 0.75) + 2 * (0.2 - 0.75 + 0.9), abs=1e-6)


def test_two_views_and_text_to_image():
    images, texts = torch.randn(4, 8, dtype=torch.float64), torch.randn(4, 8, dtype=torch.float64)
    names = torch.arange(4)
    eye = torch.eye(4, dtype=torch.bool)
    loss = NTXentLoss(0.1)
    logits = torch.nn.functional.normalize(images) @ torch.nn.functional.normalize(texts).T / 0.1
    expected = torch.nn.functional.cross_entropy(logits, names)
    torch.testing.assert_close(loss(images, names, texts, names), expected)
    torch.testing.assert_close(loss(images, references=texts, relation=Masks(eye, ~eye)), expected)


@pytest.mark.parametrize(
    ("relation", "message"),
    [
        (
            Labels(index(0, 1)),
            r"relation must have shape \(4, 4\), anchors x references, but the shape of its labels is \(2, 2\)",
        ),
        (Masks(torch.eye(3) > 0, torch.eye(3) < 1), r"relation must have shape \(4, 4\)"),
        (Triplets(index(0), index(1), index(4)), r"negatives of relation must be indices in 0..3 of the references"),
        (Pairs(index(0), index(-1), index(0), index(1)), r"positives of relation must be indices in 0..3"),
        ("labels", "relation must be a Relation"),
    ],
)
def test_what_does_not_fit_is_refused(relation: Relation, message: str):
    with pytest.raises((ValueError, TypeError), match=message):
        MultiSimilarityLoss()(torch.randn(4, 3), relation=relation)


def test_indices_are_whole_numbers_of_any_width():
    with pytest.raises(TypeError, match="anchors must be 1-D integer indices"):
        Triplets(index(0).float(), index(1), index(2))
    for dtype in (torch.int8, torch.uint8, torch.int32):
        relation = Triplets(*(index(i).to(dtype) for i in range(3))).with_shape(3, 3)
        assert relation.masks()[0].nonzero().tolist() == [[0, 1]]
    for kind in (np.uint16, np.int64):
        backwards = (np.arange(6, dtype=kind)[i::-3] for i in range(3, 6))  # a stride that torch does not have
        relation = Triplets(*backwards).with_shape(6, 6)
        assert relation.masks()[0].nonzero().tolist() == [[0, 1], [3, 4]]


def test_a_pair_named_once_is_the_same_unordered_pair_named_twice():
    embeddings, _ = make_batch("balanced")
    once = Pairs(index(0), index(1), index(0), index(5))
    twice = Pairs(index(0, 1), index(1, 0), index(0), index(5))
    for reduction in ("mean", "sum"):
        loss = LiftedStructureLoss(reduction=reduction)
        torch.testing.assert_close(loss(embeddings, relation=once), loss(embeddings, relation=twice))


def test_masks_are_checked():
    eye = torch.eye(2, dtype=torch.bool)
    with pytest.raises(ValueError, match=r"must not overlap, but the pair of anchor and reference \(0, 0\) is both"):
        Masks(eye, eye)
    with pytest.raises(ValueError, match="positive must be a boolean matrix"):
        Masks(eye.float(), eye)
    with pytest.raises(ValueError, match="positive and negative must have one shape"):
        Masks(eye, eye[:1])


TUPLES = {
    "triplets": ((index(0, 4), index(1, 5), index(2, 0)), Triplets(index(0, 4), index(1, 5), index(2, 0))),
    "pairs": ((index(0), index(1), index(0, 3), index(3, 2)), Pairs(index(0), index(1), index(0, 3), index(3, 2))),
    "a list": ([index(0), index(1), index(2)], Triplets(index(0), index(1), index(2))),
    "nothing": ((index().long(),) * 3, Triplets(*(index().long(),) * 3)),
}


@pytest.mark.parametrize("row", TUPLES)
@pytest.mark.parametrize("loss", [TripletLoss(2.0), MultiSimilarityLoss(), LiftedStructureLoss()], ids=repr)
def test_the_indices_of_a_miner_are_a_relation(loss: nn.Module, row: str):
    """From embeddings, against references, and from similarities where the loss allows it; labels decide no pair."""
    indices, relation = TUPLES[row]
    embeddings, labels = make_batch("balanced")
    expected = loss(embeddings, relation=relation)
    torch.testing.assert_close(loss(embeddings, relation=indices), expected, rtol=0, atol=0)
    torch.testing.assert_close(loss(embeddings, labels, relation=indices), expected, rtol=0, atol=0)
    leaf = embeddings.clone().requires_grad_()
    loss(leaf, labels, relation=indices).backward()
    assert leaf.grad.isfinite().all()
    assert bool(leaf.grad.any()) == (row != "nothing")
    if loss.takes_references:
        others, other_labels = make_batch("ragged")
        found = loss(embeddings, labels, others, other_labels, relation=indices)
        torch.testing.assert_close(found, loss(embeddings, references=others, relation=relation), rtol=0, atol=0)
        torch.testing.assert_close(loss.from_similarity(Cosine()(embeddings), indices), expected)


def test_labels_with_a_relation_are_read_per_class():
    embeddings, labels = make_batch("balanced")
    triplets = index(0, 4), index(1, 5), index(3, 0)
    loss = MarginLoss(num_classes=4, learn_beta=False)
    loss.beta.copy_(torch.linspace(0.5, 1.5, 4))
    # ordinary labels: the same pairs, and each anchor with the β of its class
    anchors, positives, negatives = triplets
    S, beta = Euclidean()(embeddings), loss.beta[labels[anchors]].double()
    terms = torch.cat([0.2 - S[anchors, positives] - beta, 0.2 + beta + S[anchors, negatives]]).relu()
    expected = terms.sum() / (terms > 0).sum()
    torch.testing.assert_close(loss(embeddings, labels, relation=triplets), expected)
    torch.testing.assert_close(loss.from_similarity(S, triplets, labels=labels), expected)
    guided = LanguageGuidance(loss, torch.eye(4, dtype=torch.float64), weight=0.0)
    torch.testing.assert_close(guided(embeddings, labels, relation=triplets), expected)
    with pytest.raises(
        TypeError, match="labels must be given together with a relation where there is one beta per class"
    ):
        loss(embeddings, relation=triplets)


@pytest.mark.parametrize(
    ("relation", "options", "message"),
    [
        ((index(0), index(1)), {}, "3 index tensors .triplets. or 4 .pairs., but it is a tuple of 2"),
        (index(0, 1, 2), {}, "relation must be a Relation .* but it is a Tensor"),
        ((index(0), [1], index(2)), {}, r"relation\[1\] must be a tensor of indices, but it is a list"),
        ((index(0), index(1), torch.ones(1)), {}, r"relation\[2\] must be 1-D integer indices"),
        ((index(0), index(1), index(2, 3)), {}, r"relation\[2\] must have one length, but they have 1, 1, 2"),
        ((index(0), index(1, 2), index(0), index(3)), {}, r"relation\[0\], relation\[1\] must have one length"),
        ((index(0), index(1), index(2), index(1, 3)), {}, r"relation\[2\], relation\[3\] must have one length"),
        ((index(0), index(1), index(0), index(1)), {}, r"pairs of a relation must not overlap, .* \(0, 1\) is both"),
        ((index(0), index(1), np.ones(1)), {}, r"relation\[2\] must be a tensor of indices, but it is a ndarray"),
        (None, {"labels": (index(0),) * 3}, "labels must be a tensor, but it is a tuple; give .* as relation="),
        (None, {"references": (index(0),) * 4}, "references must be a tensor, but it is a tuple; give .* as relation="),
        ((index(0), index(1), index(12)), {}, r"negatives of relation must be indices in 0\.\.11 of the references"),
        ((index(0), index(1), index(2)), {"labels": index(0)}, "labels must have one entry for each of the 12"),
        ((index(0), index(1), index(2)), {"reference_labels": index(0)}, "references must be given together"),
        (
            (index(0), index(1), index(2)),
            {"references": torch.ones(3, 5).double(), "reference_labels": index(0)},
            "reference_labels must have one entry for each of the 3 references",
        ),
    ],
)
def test_wrong_indices_are_one_sentence(relation: object, options: dict[str, torch.Tensor], message: str):
    embeddings, _ = make_batch("balanced")
    with pytest.raises((TypeError, ValueError), match=message):
        TripletLoss()(embeddings, relation=relation, **options)


def test_a_relation_without_masks_says_so():
    with pytest.raises(TypeError, match="an engine computes them"):
        Mined(Labels(index(0, 1)), s < 0.5, s > 0.5).masks()
    for relation in (Pairs(*[index(0)] * 4), Triplets(*[index(0)] * 3)):
        with pytest.raises(TypeError, match="before with_shape"):
            relation.masks()
