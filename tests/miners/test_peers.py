"""The same batch in the miners of pytorch-metric-learning 2.9.0 (``theirs``): the same indices, or the reason why not."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from pytorch_metric_learning import losses as their_losses
from pytorch_metric_learning import miners as theirs
from pytorch_metric_learning.distances import CosineSimilarity, LpDistance
from pytorch_metric_learning.utils import loss_and_miner_utils as their_utils
from torch import Tensor

from likewise import losses, miners
from likewise.formula import Euclidean, Labels, SimilarityLike
from likewise.testing import loop_over, make_batch
from likewise.testing.batches import DEGENERATE

COSINE = CosineSimilarity()


EUCLIDEAN = LpDistance()
LINE = LpDistance(normalize_embeddings=False)


def tuples(*indices: Tensor) -> set[tuple[int, ...]]:
    return set(zip(*(index.tolist() for index in indices), strict=True))


def chosen_by(indices: tuple[Tensor, ...]) -> Any:
    """Three index tensors are triplets, four are positive and negative pairs; each once."""
    if len(indices) == 3:
        assert len(tuples(*indices)) == len(indices[0])
        return tuples(*indices)
    return tuples(*indices[:2]), tuples(*indices[2:])


def mine(miner: miners.Miner, *batch: Tensor, similarity: SimilarityLike = "cosine") -> Any:
    choose = miner.pairs if isinstance(miner, miners.PairMiner) else miner.triplets
    return chosen_by(choose(*batch, similarity=similarity))


class EasyHard(theirs.BatchEasyHardMiner):
    """Their miner returns pairs; triplets are the pairs of one anchor."""

    def forward(self, *batch: Tensor) -> tuple[Tensor, ...]:
        anchors, positives, negative_anchors, negatives = super().forward(*batch)
        if "all" not in (self.pos_strategy, self.neg_strategy):
            assert torch.equal(anchors, negative_anchors)
        pair, other = torch.where(anchors[:, None] == negative_anchors)
        return anchors[pair], positives[pair], negatives[other]


CELLS = [
    (positives, negatives)
    for positives in ("easy", "semihard", "hard", "all")
    for negatives in ("easy", "semihard", "hard", "all")
    if {positives, negatives} not in ({"semihard"}, {"semihard", "all"})
]
ROWS: dict[str, tuple[miners.Miner, Any, SimilarityLike]] = {
    "multi-similarity": (miners.MultiSimilarityMiner(), theirs.MultiSimilarityMiner(), "cosine"),
    "multi-similarity-wide": (miners.MultiSimilarityMiner(0.4), theirs.MultiSimilarityMiner(0.4), "cosine"),
    "multi-similarity-euclidean": (
        miners.MultiSimilarityMiner(),
        theirs.MultiSimilarityMiner(distance=EUCLIDEAN),
        "euclidean",
    ),
    "valid-triplet": (miners.ValidTripletMiner(0.3), theirs.MultiSimilarityMiner(0.3), "cosine"),
    "pair-margin": (miners.PairMarginMiner(0.7, 0.1), theirs.PairMarginMiner(0.7, 0.1, distance=COSINE), "cosine"),
    "pair-margin-euclidean": (miners.PairMarginMiner(0.8, 1.2), theirs.PairMarginMiner(0.8, 1.2), "euclidean"),
    "semihard-margin": (
        miners.SemiHardMiner(0.3),
        theirs.TripletMarginMiner(0.3, type_of_triplets="semihard", distance=COSINE),
        "cosine",
    ),
    "batch-hard": (miners.BatchHardMiner(), theirs.BatchHardMiner(distance=COSINE), "cosine"),
    "batch-hard-euclidean": (miners.BatchHardMiner(), theirs.BatchHardMiner(distance=EUCLIDEAN), "euclidean"),
    "easy-positive": (miners.EasyPositiveMiner(), EasyHard(), "cosine"),
    "easy-positive-hard": (miners.EasyPositiveMiner(negatives="hard"), EasyHard("easy", "hard"), "cosine"),
    "easy-hard-default": (miners.BatchEasyHardMiner(), EasyHard(), "euclidean"),
    "easy-hard-ranges": (
        miners.BatchEasyHardMiner("hard", "hard", positive_range=(0.2, 1.0), negative_range=(0.5, 1.3)),
        EasyHard("hard", "hard", (0.2, 1.0), (0.5, 1.3)),
        "euclidean",
    ),
    **{
        f"easy-hard-{positives}-{negatives}": (
            miners.BatchEasyHardMiner(positives, negatives),
            EasyHard(positives, negatives, distance=COSINE),
            "cosine",
        )
        for positives, negatives in CELLS
    },
    **{
        f"triplet-margin-{kind}-{margin}-{similarity}": (
            miners.TripletMarginMiner(margin, kind),
            theirs.TripletMarginMiner(margin, kind, distance=EUCLIDEAN if similarity == "euclidean" else COSINE),
            similarity,
        )
        for kind in ("all", "hard", "semihard", "easy")
        for margin, similarity in ((-0.05, "cosine"), (0.0, "cosine"), (0.2, "euclidean"), (0.5, "cosine"))
    },
}


@loop_over("row", ROWS)
def test_same_indices(row: str) -> None:
    """On ordinary and degenerate batches, against references, and in half precision, which both widen or keep."""
    ours, other, similarity = ROWS[row]
    batches = [make_batch(name, seed=seed) for name in ("balanced", "ragged", "two classes") for seed in range(3)]
    for embeddings, labels in (*batches, *map(make_batch, DEGENERATE)):
        assert mine(ours, embeddings, labels, similarity=similarity) == chosen_by(other(embeddings, labels))
    for seed in range(3):
        references, reference_labels = make_batch("ragged", seed=seed + 100)
        batch = *make_batch("balanced", seed=seed), references, reference_labels % 4
        assert mine(ours, *batch, similarity=similarity) == chosen_by(other(*batch))


# What the tests of their miners check -------------------------------------------------------------------------------

ON_A_LINE = torch.tensor([0, 0, 1, 1, 0, 2, 1, 1, 1])
"""The classes of the points 0 … 8, with ties: anchor 4 is one away from 3 and from 5."""

FOUND = {  # anchor: positive, negative
    ("semihard", "hard"): "0: 1 2, 7: 6 5, 8: 6 5",
    ("semihard", "easy"): "0: 4 8, 1: 4 8, 2: 3 5, 3: 2 0, 4: 1 8, 6: 2 0, 7: 2 0, 8: 2 0",
    ("hard", "semihard"): "0: 4 5, 1: 4 5, 6: 2 1, 7: 2 1, 8: 2 1",
    ("easy", "semihard"): "0: 1 2, 1: 0 3, 2: 3 0, 3: 2 1, 4: 1 8, 6: 7 4, 7: 6 5, 8: 7 5",
    ("hard", "hard"): "0: 4 2, 1: 4 2, 2: 8 1, 3: 8 4, 4: 0 3, 6: 2 5, 7: 2 5, 8: 2 5",
    ("easy", "hard"): "0: 1 2, 1: 0 2, 2: 3 1, 3: 2 4, 4: 1 3, 6: 7 5, 7: 6 5, 8: 7 5",
    ("hard", "easy"): "0: 4 8, 1: 4 8, 2: 8 5, 3: 8 0, 4: 0 8, 6: 2 0, 7: 2 0, 8: 2 0",
    ("easy", "easy"): "0: 1 8, 1: 0 8, 2: 3 5, 3: 2 0, 4: 1 8, 6: 7 0, 7: 6 0, 8: 7 0",
}
"""What the cells of the grid choose on the line; of equal distances, the lower index."""


def on_a_line(positives: str, negatives: str, **ranges: Any) -> set[tuple[int, ...]]:
    points = torch.arange(9.0, dtype=torch.float64)[:, None]
    miner = miners.BatchEasyHardMiner(positives, negatives, **ranges)
    found = mine(miner, points, ON_A_LINE, similarity=Euclidean(normalize=False))
    # theirs may take another one of equal pairs: compare distances
    names = {"positive_range": "allowed_pos_range", "negative_range": "allowed_neg_range"}
    options = {names[name]: bounds for name, bounds in ranges.items()}
    other = chosen_by(EasyHard(positives, negatives, distance=LINE, **options)(points, ON_A_LINE))
    apart = [sorted((a, abs(a - p), abs(a - n)) for a, p, n in triplets) for triplets in (found, other)]
    assert apart[0] == apart[1]
    return found


@loop_over("cell", CELLS)
def test_grid_on_a_line(cell: tuple[str, str]) -> None:
    found = on_a_line(*cell)
    if cell in FOUND:
        rows = (row.replace(":", "").split() for row in FOUND[cell].split(", "))
        assert found == {tuple(map(int, row)) for row in rows}


def test_grid_with_ranges_on_a_line() -> None:
    """A range leaves out pairs before an extreme is chosen: 8 is too far from 0, and 7 is not."""
    found = on_a_line("easy", "easy", positive_range=(1, 7), negative_range=(1, 7))
    assert {(a, n) for a, _, n in found} == {(0, 7), (1, 8), (2, 5), (3, 0), (4, 8), (6, 0), (7, 0), (8, 1)}
    assert {(a, p) for a, p, _ in on_a_line("easy", "hard", positive_range=(5, 5))} == {(2, 7), (3, 8), (7, 2), (8, 3)}
    assert on_a_line("easy", "easy", positive_range=(7, 9)) == set()


@loop_over("dtype", [torch.float16, torch.float32, torch.float64])
@loop_over("row", ROWS)
def test_nothing_without_positives(row: str, dtype: torch.dtype) -> None:
    """32 classes of one sample: no triplet and no positive pair, in any precision."""
    ours, _, similarity = ROWS[row]
    embeddings, labels = torch.randn(32, 64, generator=torch.Generator().manual_seed(0)).to(dtype), torch.arange(32)
    found = mine(ours, embeddings, labels, similarity=similarity)
    assert (found[0] if isinstance(ours, miners.PairMiner) else found) == set()
    assert ours.count(embeddings, labels, similarity=similarity)[::2] == (0, 0)
    assert mine(miners.DistanceWeightedMiner(0.1, 0.5), embeddings, labels) == set()


@pytest.mark.parametrize(
    ("make", "options", "message"),
    [
        (miners.BatchEasyHardMiner, {"positives": "blah"}, "positives must be one of 'easy', .* but it is 'blah'"),
        (miners.BatchEasyHardMiner, {"positives": "semihard"}, "an easy or hard side .* 'semihard' and 'semihard'"),
        (miners.BatchEasyHardMiner, {"positives": "all"}, "an easy or hard side .* but they are 'all' and 'semihard'"),
        (miners.BatchEasyHardMiner, {"positives": "semihard", "negatives": "all"}, "but they are 'semihard' and 'all'"),
        (miners.BatchEasyHardMiner, {"positive_range": (1.0, 0.0)}, "positive_range must be a lowest and a highest"),
        (miners.BatchEasyHardMiner, {"negative_range": 0.5}, "negative_range must be a lowest and .* it is 0.5"),
        (miners.TripletMarginMiner, {"kind": "harder"}, "kind must be one of 'all', 'hard', 'semihard', 'easy'"),
        (miners.TripletMarginMiner, {"margin": torch.inf}, "margin must be a number, but it is inf"),
        (miners.DistanceWeightedMiner, {"cutoff": -0.1}, "cutoff must be a number ≥ 0 and < 2, but it is -0.1"),
    ],
)
def test_wrong_options(make: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(**options)


@pytest.mark.parametrize("with_references", [False, True])
def test_distance_weighted_draws_are_uniform_on_a_circle(with_references: bool) -> None:
    """In two dimensions and without a cutoff the drawn distances are uniform below the larger cutoff."""
    generator = torch.Generator().manual_seed(0)
    angles = torch.deg2rad(torch.arange(256.0))
    circle = torch.stack([angles.cos(), angles.sin()], dim=1)
    labels, others = torch.randint(0, 2, (2, 256), generator=generator)
    batch = (circle, labels, circle.clone(), others) if with_references else (circle, labels)
    for cutoff in (0.49, 0.99, 1.39):
        anchors, _, negatives = miners.DistanceWeightedMiner(0.0, cutoff, generator=generator).triplets(*batch)
        apart = (circle[anchors] - circle[negatives]).norm(dim=1)
        assert apart.max() <= cutoff
        assert abs(apart.mean() - cutoff / 2) < 0.05 * cutoff
        assert abs(apart.var() - cutoff**2 / 12) < 0.1 * cutoff**2 / 12


# A loop of theirs, line by line -------------------------------------------------------------------------------------

LOOPS = {
    "triplets": (
        theirs.TripletMarginMiner(0.2, distance=COSINE),
        their_losses.TripletMarginLoss(0.1, distance=COSINE),
        losses.TripletLoss(0.1),
    ),
    "pairs": (
        theirs.MultiSimilarityMiner(0.1),
        their_losses.MultiSimilarityLoss(2.0, 50.0, 0.5),
        losses.MultiSimilarityLoss(),
    ),
    "pairs for a triplet loss": (
        theirs.PairMarginMiner(0.7, 0.1, distance=COSINE),
        their_losses.TripletMarginLoss(0.1, distance=COSINE),
        losses.TripletLoss(0.1),
    ),
    "a beta per class": (
        theirs.TripletMarginMiner(0.2, "semihard"),
        their_losses.MarginLoss(0.2, beta=1.1, num_classes=10, learn_beta=True, triplets_per_anchor="all"),
        losses.MarginLoss(0.2, beta=1.1, num_classes=10),
    ),
}


@loop_over("row", LOOPS)
def test_a_loop_ports_line_by_line(row: str) -> None:
    """``hard = miner(embeddings, labels); loss(embeddings, labels, hard)``, with and without references."""
    miner, other, ours = LOOPS[row]
    ours = ours.double()
    if row == "a beta per class":
        other = other.double()
        with torch.no_grad():
            for beta in (other.beta, ours.beta):
                beta.copy_(torch.linspace(0.8, 1.2, 10))
    embeddings, labels = make_batch("ragged", seed=4)
    references, reference_labels = make_batch("balanced", seed=5)
    hard = miner(embeddings, labels)
    torch.testing.assert_close(ours(embeddings, labels, relation=hard), other(embeddings, labels, hard))
    hard = miner(embeddings, labels, references, reference_labels)
    found = ours(embeddings, labels, references, reference_labels, relation=hard)
    torch.testing.assert_close(found, other(embeddings, labels, hard, references, reference_labels))


def test_a_loop_with_our_miner() -> None:
    """The loop of docs/miners.md: value and gradient are theirs, and a miner inside the loss mines by distance instead."""
    embeddings, labels = make_batch("ragged", seed=4)
    embeddings.requires_grad_()
    hard = miners.MultiSimilarityMiner(epsilon=0.1).pairs(embeddings, labels)
    found = losses.TripletLoss(margin=0.1, similarity="euclidean")(embeddings, labels, relation=hard)
    their_hard = theirs.MultiSimilarityMiner(epsilon=0.1)(embeddings, labels)
    truth = their_losses.TripletMarginLoss(margin=0.1)(embeddings, labels, their_hard)
    torch.testing.assert_close(found, truth)
    torch.testing.assert_close(*(torch.autograd.grad(each, embeddings)[0] for each in (found, truth)))
    inside = losses.TripletLoss(margin=0.1, similarity="euclidean", miner=miners.MultiSimilarityMiner(epsilon=0.1))
    assert abs(inside(embeddings, labels) - truth) > 1e-4


# Differences that stay ----------------------------------------------------------------------------------------------


def test_semihard_without_a_margin_is_another_rule() -> None:
    """Without a margin ours takes one negative per positive pair, the hardest of theirs with a margin without end."""
    embeddings, labels = make_batch("ragged")
    every = chosen_by(theirs.TripletMarginMiner(9.0, type_of_triplets="semihard", distance=COSINE)(embeddings, labels))
    S = COSINE(embeddings)
    hardest: dict[tuple[int, int], int] = {}
    for anchor, positive, negative in every:
        best = hardest.setdefault((anchor, positive), negative)
        if S[anchor, negative] > S[anchor, best]:
            hardest[anchor, positive] = negative
    found = mine(miners.SemiHardMiner(), embeddings, labels)
    assert found == {(*pair, negative) for pair, negative in hardest.items()}
    assert len(found) < len(every)


def test_triplets_at_the_margin() -> None:
    """A triplet exactly at the margin has a hinge of zero; they count it as a violation, we do not."""
    embeddings = torch.tensor([[1.0, 0.0, 0.0, 0.0], [0.5, 0.5, 0.5, 0.5], [0.0, 0.0, 0.0, 1.0]])
    labels = torch.tensor([0, 0, 1])
    # anchor 0: the margin is 0.5; anchor 1: it is 0, and the triplet is hard in both
    rows = {"all": ({1}, {0, 1}), "semihard": (set(), {0}), "hard": ({1}, {1}), "easy": ({0}, set())}
    for kind, anchors in rows.items():
        other = theirs.TripletMarginMiner(0.5, type_of_triplets=kind, distance=COSINE)
        found = mine(miners.TripletMarginMiner(0.5, kind), embeddings, labels), chosen_by(other(embeddings, labels))
        assert tuple({a for a, _, _ in triplets} for triplets in found) == anchors, kind
        wider = miners.TripletMarginMiner(torch.nextafter(torch.tensor(0.5), torch.tensor(1.0)).item(), kind)
        assert mine(wider, embeddings, labels) == found[1]
    assert mine(miners.SemiHardMiner(0.5), embeddings, labels) == set()


def test_ranges_of_a_side_that_is_all() -> None:
    """Our range holds for every strategy; theirs is not read where the side is "all"."""
    embeddings, labels = make_batch("ragged")
    inside = {"positive_range": (0.0, 0.6)}
    found = mine(miners.BatchEasyHardMiner("all", "hard", **inside), embeddings, labels)
    other = chosen_by(EasyHard("all", "hard", (0.0, 0.6), distance=COSINE)(embeddings, labels))
    S = COSINE(embeddings)
    assert found == {(a, p, n) for a, p, n in other if 0.0 <= S[a, p] <= 0.6}
    assert found < other == mine(miners.BatchEasyHardMiner("all", "hard"), embeddings, labels)


# Distance weighted sampling ----------------------------------------------------------------------------------------


def their_weights(embeddings: Tensor, labels: Tensor, monkeypatch: pytest.MonkeyPatch) -> Tensor:
    """The probabilities from which their miner draws."""
    seen = []
    monkeypatch.setattr(
        their_utils, "get_random_triplet_indices", lambda *_, weights, **__: seen.append(weights) or ([], [], [])
    )
    theirs.DistanceWeightedMiner()(embeddings, labels)
    monkeypatch.undo()
    return seen[0]


def our_weights(embeddings: Tensor, labels: Tensor) -> Tensor:
    return miners.DistanceWeightedMiner().weights(
        LpDistance()(embeddings), Labels(labels).masks()[1], embeddings.shape[1]
    )


@pytest.mark.parametrize("dim", [3, 5, 32])
@pytest.mark.parametrize("batch", ["balanced", "ragged"])
def test_distance_weights(batch: str, dim: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same probabilities, and those of the density on the sphere; of a row without candidates they say NaN."""
    embeddings, labels = make_batch(batch, dim=dim)
    ours, other = our_weights(embeddings, labels), their_weights(embeddings, labels, monkeypatch)
    torch.testing.assert_close(ours, other.nan_to_num(), rtol=1e-10, atol=1e-10)
    distances = LpDistance()(embeddings)
    d = distances.clamp_min(0.5)
    density = d ** (dim - 2) * (1.0 - d**2 / 4.0) ** ((dim - 3) / 2)
    inverse = torch.where((labels[:, None] != labels) & (distances < 1.4), 1.0 / density, 0.0)
    expected = inverse / inverse.sum(dim=1, keepdim=True)
    torch.testing.assert_close(ours, expected.nan_to_num(), rtol=1e-10, atol=1e-10)


def far_but_for_one_pair() -> tuple[Tensor, Tensor]:
    """In 512 dimensions: neighbors at a distance of 1.3, but for two of different classes that are close together."""
    labels = torch.arange(6).repeat_interleave(2)
    shared = torch.full((12, 1), 0.155**0.5)
    embeddings = torch.cat([shared, torch.eye(12, 511) * 0.845**0.5], dim=1)
    embeddings[2] = embeddings[0] + 0.01 * embeddings[2]
    return embeddings, labels


def test_distance_weights_in_high_dimension(monkeypatch: pytest.MonkeyPatch) -> None:
    """They subtract the largest log-weight of the batch, not of the row: every other anchor underflows and is lost."""
    embeddings, labels = far_but_for_one_pair()
    ours, other = our_weights(embeddings, labels), their_weights(embeddings, labels, monkeypatch)
    others = torch.tensor([1, *range(3, 12)])
    torch.testing.assert_close(ours.sum(dim=1), torch.ones(12))
    assert other[others].isnan().all()
    assert {a for a, _, _ in tuples(*theirs.DistanceWeightedMiner()(embeddings, labels))} == {0, 2}
    assert {a for a, _, _ in mine(miners.DistanceWeightedMiner(), embeddings, labels)} == set(range(12))


def test_distance_weighted_draws() -> None:
    """Ours: one negative for every positive pair.  Theirs: as many as the class is large, with random positives."""
    embeddings, labels = make_batch("balanced")
    anchors, positives, _ = miners.DistanceWeightedMiner().triplets(embeddings, labels)
    positive = Labels(labels).masks()[0]
    assert len(anchors) == len(tuples(anchors, positives)) == positive.sum()
    assert len(theirs.DistanceWeightedMiner()(embeddings, labels)[0]) == 3 * len(labels)


def test_equal_embeddings_without_a_cutoff() -> None:
    """Without a cutoff a negative at distance zero has an infinite weight: ours always draws it, theirs never."""
    embeddings, labels = torch.randn(6, 8, generator=torch.Generator().manual_seed(0)), torch.tensor([0, 0, 1, 1, 2, 2])
    embeddings[2] = embeddings[0]
    near = {(a, n) for a, _, n in mine(miners.DistanceWeightedMiner(0.0), embeddings, labels)}
    assert {n for a, n in near if a in (0, 2)} == {0, 2}
    other = {(a, n) for a, _, n in tuples(*theirs.DistanceWeightedMiner(0.0)(embeddings, labels))}
    assert not {(0, 2), (2, 0)} & other
