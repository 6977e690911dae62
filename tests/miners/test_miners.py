"""What miners promise beyond their contract."""

from __future__ import annotations

from functools import partial
from itertools import product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from likewise import losses, miners
from likewise.engines import dispatch, map_rows
from likewise.engines.chosen import sum_triplets
from likewise.formula import (
    Cosine,
    Euclidean,
    Labels,
    Masks,
    PairBatch,
    Pairs,
    Triplets,
    check_values,
    per_triplet,
    relu,
    s,
    s_p,
    softplus,
)
from likewise.testing import MinerCase, make_batch
from tests.miners.cases import CASES
from tests.oracles import miners as oracles


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 2**31 - 1), margin=st.floats(0.0, 2.0), batch=st.sampled_from(["balanced", "ragged"]))
def test_valid_triplet_mining_is_the_multi_similarity_rule(seed: int, margin: float, batch: str):
    """Section 5.1 of the unified view, written out as a loop, keeps what Wang et al.'s rule keeps: λ is ε."""
    embeddings, labels = make_batch(batch, seed=seed)
    anchors, positives, negative_anchors, negatives = miners.MultiSimilarityMiner(margin).pairs(embeddings, labels)
    S = torch.nn.functional.normalize(embeddings) @ torch.nn.functional.normalize(embeddings).T
    same = labels[:, None] == labels[None]
    P, N = (same & ~torch.eye(len(labels), dtype=torch.bool)).tolist(), (~same).tolist()
    kept_positives, kept_negatives = oracles.valid_triplet(S.tolist(), P, N, margin)
    assert set(zip(anchors.tolist(), positives.tolist(), strict=True)) == kept_positives
    assert set(zip(negative_anchors.tolist(), negatives.tolist(), strict=True)) == kept_negatives


def test_a_kept_pair_is_in_a_triplet_that_violates_the_margin():
    embeddings, labels = make_batch("ragged")
    counts = losses.TripletLoss(0.1)
    S = (torch.nn.functional.normalize(embeddings) @ torch.nn.functional.normalize(embeddings).T).requires_grad_()
    counts.from_similarity(S, labels).backward()
    kept = miners.ValidTripletMiner(0.1)(S.detach(), labels)
    assert torch.equal(kept.positive | kept.negative, S.grad != 0.0)


@pytest.mark.parametrize("dim", [2, 3, 4, 16, 128, 512, 4096])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_distance_weights_in_any_dimension(dim: int, dtype: torch.dtype):
    distances = torch.tensor([[0.0, 0.3, 0.5, 0.9, 1.2, 1.39, 1.41, 1.99, 2.0]], dtype=dtype)
    negative = torch.ones_like(distances, dtype=torch.bool)
    weights = miners.DistanceWeightedMiner().weights(distances, negative, dim)
    expected = torch.tensor([oracles.distance_weights(distances[0].tolist(), dim)], dtype=dtype)
    assert torch.isfinite(weights).all()
    torch.testing.assert_close(weights, expected, rtol=1e-4, atol=1e-8)


def test_a_distance_that_is_none_is_drawn_by_nobody():
    distances = torch.tensor([[0.6, torch.nan, 1.2]])
    before, negative = distances.clone(), torch.tensor([[True, True, True]])
    weights = miners.DistanceWeightedMiner().weights(distances, negative, dim=3)
    torch.testing.assert_close(weights, torch.tensor([[2.0, 0.0, 1.0]]) / 3.0)
    torch.testing.assert_close(distances, before, equal_nan=True)
    assert bool(negative.all())


@pytest.mark.parametrize("reads", [True, False])
def test_distance_weighted_draws_follow_the_weights(reads: bool):
    """20,000 equal anchors with one positive and four negatives each: chi-square with 3 degrees of freedom.

    On a GPU, where the number of positives is not read, every reference is a candidate.
    """
    angles = torch.tensor([0.1, 0.6, 0.9, 1.1, 1.3], dtype=torch.float64)
    references = torch.stack([angles.cos(), angles.sin(), torch.zeros(5, dtype=torch.float64)], dim=1)
    anchor = torch.tensor([[1.0, 0.0, 0.0]], dtype=torch.float64)
    miner = miners.DistanceWeightedMiner(generator=torch.Generator().manual_seed(0))
    with check_values(reads):
        _, positives, negatives = miner.triplets(
            anchor.expand(20_000, 3), torch.zeros(20_000, dtype=torch.long), references, torch.arange(5)
        )
    assert len(negatives) == 20_000
    assert not positives.any()
    distances = torch.cdist(anchor, references[1:])
    expected = torch.tensor(oracles.distance_weights(distances[0].tolist(), 3)) * 20_000
    observed = torch.bincount(negatives - 1, minlength=4)
    assert ((observed - expected).square() / expected).sum() < 16.3  # p = 0.001


def test_an_anchor_without_a_near_negative_gives_no_triplet():
    embeddings = torch.tensor([[1.0, 0.0], [1.0, 0.1], [-1.0, 0.0], [-1.0, 0.1]])
    anchors, _, _ = miners.DistanceWeightedMiner().triplets(embeddings, torch.tensor([0, 0, 1, 1]))
    assert len(anchors) == 0


def test_random_triplets_are_uniform():
    """Two anchors' worth of triplets, 1 x 2 and 1 x 2, and a third anchor without a positive."""
    embeddings, labels = torch.randn(4, 3), torch.tensor([0, 0, 1, 2])
    miner = miners.RandomMiner(8_000, generator=torch.Generator().manual_seed(0))
    drawn = torch.stack(miner.triplets(embeddings, labels), dim=1)
    kinds, counts = torch.unique(drawn, dim=0, return_counts=True)
    assert kinds.tolist() == [[0, 1, 2], [0, 1, 3], [1, 0, 2], [1, 0, 3]]
    assert ((counts - 2000.0).square() / 2000.0).sum() < 16.3  # chi-square, 3 degrees of freedom, p = 0.001


def test_random_triplets_of_classes_of_different_sizes_are_uniform():
    """Classes of three, two and one: 3 x 2 x 3 and 2 x 1 x 4 triplets."""
    embeddings, labels = torch.randn(6, 3), torch.tensor([0, 1, 0, 2, 1, 0])
    miner = miners.RandomMiner(26_000, generator=torch.Generator().manual_seed(0))
    drawn = torch.stack(miner.triplets(embeddings, labels), dim=1)
    kinds, counts = torch.unique(drawn, dim=0, return_counts=True)
    assert len(kinds) == 26
    assert ((counts - 1000.0).square() / 1000.0).sum() < 52.6  # chi-square, 25 degrees of freedom, p = 0.001


@pytest.mark.parametrize("make", [miners.DistanceWeightedMiner, miners.SemiHardMiner])
def test_a_device_is_not_asked_for_the_number_of_a_few_triplets(make):
    """In chunks, each anchor keeps as many triplets as the largest number of positives; unused ones change nothing."""
    embeddings, labels = torch.randn(60, 8, dtype=torch.float64), torch.arange(60) // 4
    labels[:2] = torch.tensor([20, 21])  # without positives
    batch = PairBatch(Labels(labels), Cosine(), anchors=embeddings)
    with check_values(False):
        chosen = make().choose(map_rows(batch, "chunked"))
    assert isinstance(chosen, Triplets)
    assert chosen.per_anchor == 3
    assert not chosen.valid.all()
    term = per_triplet(relu(s - s_p + 0.2), softplus(s - s_p))
    for held in (batch, batch.materialize()):
        outcomes = []
        for triplets in (chosen, chosen.compact()):
            leaf = embeddings.clone().requires_grad_()
            changed = {"anchors": leaf} if held is batch else {"matrix": Cosine()(leaf)}
            values = sum_triplets(term, held.under(triplets).replace(**changed))
            outcomes.append((*values, torch.autograd.grad(values.total.sum(), leaf)[0]))
        torch.testing.assert_close(*outcomes)


@pytest.mark.parametrize("make", [miners.DistanceWeightedMiner, miners.RandomMiner])
def test_generators_make_it_repeatable(make):
    embeddings, labels = make_batch("ragged")
    first, second = (make(generator=torch.Generator().manual_seed(7)).triplets(embeddings, labels) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("case", CASES, ids=[case.label for case in CASES])
def test_a_large_batch_in_chunks_is_mined_alike(case: MinerCase, monkeypatch: pytest.MonkeyPatch):
    """Counts, and a loss on the pairs that triplets contain, on chunks of rows as on the whole matrix."""
    if case.oracle is None:
        return
    embeddings, labels = make_batch("ragged")
    miner = case.make()
    whole = miner.count(embeddings, labels), losses.MultiSimilarityLoss(miner=miner)(embeddings, labels)
    monkeypatch.setattr(dispatch, "CHUNK_FROM", {"cpu": 1, "cuda": 1})
    assert type(map_rows(PairBatch(Labels(labels), Cosine(), anchors=embeddings))).__name__ == "ChunkedRows"
    assert miner.count(embeddings, labels) == whole[0]
    torch.testing.assert_close(losses.MultiSimilarityLoss(miner=miner)(embeddings, labels), whole[1])


def test_equal_similarities_and_equal_embeddings():
    """Of equal candidates the first is chosen; a triplet at the margin or of two equal pairs goes by the rule."""
    points, labels = torch.arange(9.0, dtype=torch.float64)[:, None], torch.tensor([0, 0, 1, 1, 0, 2, 1, 1, 1])
    positive, negative = (mask.tolist() for mask in Labels(labels).masks())
    for batch in (points, points * 0.0 + 1.0, points // 2.0):
        line = Euclidean(normalize=False)
        S = line(batch).tolist()
        rules = [(miners.SemiHardMiner(), oracles.semi_hard), (miners.BatchHardMiner(), oracles.batch_hard)]
        for kind in ("all", "hard", "semihard", "easy"):
            for margin in (-1.0, 0.0, 1.0, 2.0):
                oracle = partial(oracles.triplet_margin, margin=margin, kind=kind)
                rules.append((miners.TripletMarginMiner(margin, kind), oracle))
        for positives, negatives in product(("easy", "semihard", "hard", "all"), repeat=2):
            if "semihard" in (positives, negatives) and {positives, negatives} <= {"semihard", "all"}:
                continue
            oracle = partial(oracles.easy_hard, positives=positives, negatives=negatives)
            rules.append((miners.BatchEasyHardMiner(positives, negatives), oracle))
        for miner, oracle in rules:
            found = set(zip(*map(Tensor.tolist, miner.triplets(batch, labels, similarity=line)), strict=True))
            assert found == oracle(S, positive, negative), miner
            pairs = len({(a, p) for a, p, _ in found}), len({(a, n) for a, _, n in found})
            assert miner.count(batch, labels, similarity=line) == (*pairs, len(found))
            expected = losses.MultiSimilarityLoss(similarity=line)(
                batch, relation=tuple(torch.tensor(sorted(found), dtype=torch.int64).reshape(-1, 3).T)
            )
            for backend in ("dense", "chunked"):
                loss = losses.MultiSimilarityLoss(similarity=line, miner=miner, backend=backend)
                torch.testing.assert_close(loss(batch, labels), expected, msg=f"{miner} on {backend}")


def test_raw_with_other_minings():
    """RAW + semi-hard and RAW + distance-weighted: the RAW weights on the pairs that the triplets touch."""
    embeddings, labels = make_batch("ragged")
    semi_hard = miners.SemiHardMiner()
    anchors, positives, negatives = semi_hard.triplets(embeddings, labels)
    positive = torch.zeros(15, 15, dtype=torch.bool)
    negative = torch.zeros(15, 15, dtype=torch.bool)
    positive[anchors, positives], negative[anchors, negatives] = True, True
    expected = losses.MultiSimilarityLoss()(embeddings, relation=Masks(positive, negative))
    torch.testing.assert_close(losses.RAWLoss(miner=semi_hard)(embeddings, labels), expected)


def test_triplet_miner_with_beta_per_class():
    """The mined triplets still know their anchors' classes."""
    embeddings, labels = make_batch("ragged")
    loss = losses.MarginLoss(num_classes=10, miner=miners.SemiHardMiner())
    with torch.no_grad():
        loss.beta += torch.linspace(-0.5, 0.5, 10)
    anchors, positives, negatives = miners.SemiHardMiner().triplets(embeddings, labels)
    units = torch.nn.functional.normalize(embeddings)
    near = (units[anchors] - units[positives]).norm(dim=1)
    far = (units[anchors] - units[negatives]).norm(dim=1)
    beta = loss.beta.detach()[labels[anchors]]
    terms = torch.cat([torch.relu(0.2 + near - beta), torch.relu(0.2 + beta - far)])
    torch.testing.assert_close(loss(embeddings, labels), terms.sum() / (terms > 0).sum(), rtol=1e-6, atol=1e-6)


def test_a_pair_miner_refines_what_all_triplets_are_made_of():
    embeddings, labels = make_batch("ragged")
    miner = miners.PairMarginMiner(0.7, 0.0)
    anchors, positives, negative_anchors, negatives = miner.pairs(embeddings, labels)
    pairs = [
        (a, p, n)
        for a, p in zip(anchors.tolist(), positives.tolist(), strict=True)
        for b, n in zip(negative_anchors.tolist(), negatives.tolist(), strict=True)
        if a == b
    ]
    triplets = Triplets(*torch.tensor(pairs).T)
    for reduction in ("nonzero", "mean", "sum", "none"):
        for loss, rule in ((losses.TripletLoss, miner), (losses.MarginLoss, _on_distances(miner))):
            mined = loss(miner=rule, reduction=reduction)(embeddings, labels)
            torch.testing.assert_close(mined, loss(reduction=reduction)(embeddings, relation=triplets))


def _on_distances(miner: miners.PairMarginMiner) -> miners.PairMarginMiner:
    """The same rule for distances: s < m is d > √(2 − 2m)."""
    return miners.PairMarginMiner(
        (2.0 - 2.0 * miner.positive_margin) ** 0.5, (2.0 - 2.0 * miner.negative_margin) ** 0.5
    )


DISTANCES = {
    "euclidean": lambda margin: (2.0 - 2.0 * margin) ** 0.5,
    "squared_euclidean": lambda margin: 2.0 - 2.0 * margin,
}


@pytest.mark.parametrize("similarity", DISTANCES)
def test_margins_of_a_distance_are_distances(similarity: str):
    """Positives beyond one distance and negatives within another: the same pairs as by cosines, on every engine."""
    embeddings, labels = make_batch("ragged")
    cosines = 0.7, 0.1
    distances = [DISTANCES[similarity](margin) for margin in cosines]
    by_cosine, by_distance = miners.PairMarginMiner(*cosines), miners.PairMarginMiner(*distances)
    expected = by_cosine.pairs(embeddings, labels)
    found = by_distance.pairs(embeddings, labels, similarity=similarity)
    for left, right in zip(found, expected, strict=True):
        assert torch.equal(left, right)
    assert all(len(indices) for indices in expected)
    kept = Pairs(*expected)
    for backend in ("dense", "chunked"):
        loss = losses.ContrastiveLoss(similarity=similarity, miner=by_distance, backend=backend)
        plain = losses.ContrastiveLoss(similarity=similarity)
        torch.testing.assert_close(loss(embeddings, labels), plain(embeddings, relation=kept))
