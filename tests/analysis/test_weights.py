"""Pair weights: by hand, against finite differences, for everything that can be weighed; and their signs."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from likewise.analysis.batches import random_batches, sizes_for
from likewise.analysis.catalog import catalog
from likewise.analysis.closed import no_closed_form
from likewise.analysis.signs import negative_weights
from likewise.analysis.weights import merge_matrices, pair_weights, weigh
from likewise.formula import Labels, Masks, Triplets, as_similarity
from likewise.losses import (
    ArcFaceLoss,
    ContrastiveLoss,
    CrossBatchMemory,
    DirectionRegularized,
    EmbeddingNorm,
    LanguageGuidance,
    MarginLoss,
    Matryoshka,
    MultiSimilarityLoss,
    NTXentLoss,
    ProxyAnchorLoss,
    ProxyNCALoss,
    ProxyRepulsionLoss,
    RAWLoss,
    SoftTripleLoss,
    SphereFaceLoss,
    SupConLoss,
    TripletLoss,
    TupletMarginLoss,
    WeightedSum,
)
from likewise.miners import BatchHardMiner, DistanceWeightedMiner, ValidTripletMiner
from likewise.testing import LABELS, loop_over, make_batch

CATALOG = catalog()


def on_a_circle(*degrees: float) -> torch.Tensor:
    angles = torch.tensor(degrees, dtype=torch.float64) * (math.pi / 180.0)
    return torch.stack([angles.cos(), angles.sin()], dim=1)


# ------------------------------------------------------------------------------------------------ by hand


def test_contrastive_weighs_one_or_nothing():
    """Eq. 6 of the unified view: 1 for every positive pair, and for negative pairs whose similarity is above λ.

    Samples at 0°, 40°, 50° and 100° of classes 0, 0, 1, 1: with λ = cos 55° the negative pairs at 10° and 50° count, those
    at 60° and 100° do not.
    """
    x, y = on_a_circle(0.0, 40.0, 50.0, 100.0), torch.tensor([0, 0, 1, 1])
    loss = ContrastiveLoss(negative_margin=math.cos(math.radians(55.0)), reduction="sum")
    expected = [[0, 1, 1, 0], [1, 0, 1, 0], [1, 1, 0, 1], [0, 0, 1, 0]]
    torch.testing.assert_close(pair_weights(loss, x, y), torch.tensor(expected, dtype=torch.float64))
    # a mean is over the pairs that are not zero: 4 positive and 4 negative entries
    torch.testing.assert_close(
        pair_weights(ContrastiveLoss(negative_margin=loss.negative_margin), x, y),
        torch.tensor(expected, dtype=torch.float64) / 4.0,
    )


def test_triplet_weighs_by_active_triplets():
    """Eq. 8: a pair weighs one for each triplet that violates the margin.

    Samples at 0°, 30°, 45°, 90° of classes 0, 0, 1, 1, no margin.  Anchor 0 has the positive at 30° and negatives at 45°
    and 90°: no triplet is active.  Anchor 1 has its positive at 30°, negatives at 15° (active) and 60° (not).  Anchor 2 has
    its positive at 45° and negatives at 45° (a tie, whose hinge is closed) and 15° (active).  Anchor 3 has its positive at
    45°, negatives at 90° and 60°: none.
    """
    x, y = on_a_circle(0.0, 30.0, 45.0, 90.0), torch.tensor([0, 0, 1, 1])
    expected = [[0, 0, 0, 0], [1, 0, 1, 0], [0, 1, 0, 1], [0, 0, 0, 0]]
    weights = pair_weights(TripletLoss(margin=-1e-9, reduction="sum"), x, y)
    torch.testing.assert_close(weights, torch.tensor(expected, dtype=torch.float64))
    # a margin that every triplet violates: each pair is in as many as its anchor has partners on the other side
    weights = pair_weights(TripletLoss(margin=4.0, reduction="sum"), x, y)
    both = [[0, 2, 1, 1], [2, 0, 1, 1], [1, 1, 0, 2], [1, 1, 2, 0]]
    torch.testing.assert_close(weights, torch.tensor(both, dtype=torch.float64))


def test_proxy_anchor_weighs_samples_in_rows():
    """Proxies are the anchors; read with the samples in rows, by hand: softmax weights that log(1 + Σ) tempers."""
    loss = ProxyAnchorLoss(num_classes=2, embedding_dim=2, alpha=3.0, margin=0.1).double()
    x, y = on_a_circle(0.0, 40.0, 75.0), torch.tensor([0, 0, 1])
    with torch.no_grad():
        loss.proxies.copy_(on_a_circle(10.0, 80.0))
    S = x @ loss.proxies.detach().T
    same = y[:, None] == torch.arange(2)
    pull, push = torch.exp(-3.0 * (S - 0.1)), torch.exp(3.0 * (S + 0.1))
    expected = torch.where(
        same,
        3.0 * pull / (1.0 + (pull * same).sum(dim=0)) / 2.0,  # both classes are in the batch
        3.0 * push / (1.0 + (push * ~same).sum(dim=0)) / 2.0,
    )
    torch.testing.assert_close(pair_weights(loss, x, y), expected)
    assert [matrix.between for matrix in weigh(loss, x, y).matrices] == ["proxies against samples"]


def test_proxies_among_themselves():
    """Proxy repulsion: the matrix between proxies has weights of its own, and is no part of those of the samples."""
    loss = ProxyRepulsionLoss(num_classes=3, embedding_dim=2, alpha=3.0, margin=0.1).double()
    with torch.no_grad():
        loss.proxies.copy_(on_a_circle(0.0, 60.0, 200.0))
    x, y = on_a_circle(5.0, 70.0), torch.tensor([0, 1])
    to_samples, among = weigh(loss, x, y).matrices
    assert (to_samples.between, among.between) == ("proxies against samples", "proxies against proxies")
    W = loss.proxies.detach()
    push = torch.exp(3.0 * (W @ W.T + 0.1)).fill_diagonal_(0.0)
    torch.testing.assert_close(among.weights, 3.0 * push / (1.0 + push.sum(dim=1, keepdim=True)) / 3.0)
    assert pair_weights(loss, x, y).shape == (2, 3)
    # a proxy loss whose proxies are fixed is weighed as well
    loss.proxies.requires_grad_(False)
    torch.testing.assert_close(weigh(loss, x, y).matrices[1].weights, among.weights)


# ------------------------------------------------------------------------------------------------ by differences


def by_differences(value, S, step=1e-6):
    result = torch.zeros_like(S)
    for index in range(S.numel()):
        ahead, behind = S.clone(), S.clone()
        ahead.view(-1)[index] += step
        behind.view(-1)[index] -= step
        result.view(-1)[index] = (value(ahead) - value(behind)) / (2.0 * step)
    return result


@pytest.mark.parametrize("name", ["Contrastive", "Triplet", "Intra-pair variance", "FastAP", "Smooth-AP"])
def test_derivatives_are_finite_differences(name):
    """Every entry of the matrix moved by itself, one loss of each kind; the contract has every gradient by differences."""
    loss = CATALOG[name].make(4, 5).double()
    x, y = make_batch("two classes", seed=4)
    (matrix,) = weigh(loss, x, y).matrices
    expected = by_differences(lambda S: float(loss.from_similarity(S, y).detach()), matrix.similarities)
    torch.testing.assert_close(matrix.derivatives, expected, rtol=1e-5, atol=1e-7)


def test_derivatives_with_references_are_finite_differences():
    (x, y), (r, z) = make_batch("two classes"), make_batch("two classes", seed=1)
    loss = NTXentLoss()
    (matrix,) = weigh(loss, x, y, r, z).matrices
    assert matrix.between == "samples against references"
    relation = Labels(y, z)
    expected = by_differences(lambda S: float(loss.from_similarity(S, relation)), matrix.similarities)
    torch.testing.assert_close(matrix.derivatives, expected, rtol=1e-5, atol=1e-7)
    torch.testing.assert_close(
        pair_weights(loss, x, y, r, z), torch.where(y[:, None] == z, -1.0, 1.0) * expected, rtol=1e-5, atol=1e-7
    )


@loop_over("name", [name for name in CATALOG if name != "SphereFace"])
def test_weights_are_the_whole_gradient(name):
    """Nothing is left unexplained, and forces put together by hand from the weights are the gradient.

    On unit vectors u of samples x: ∂L/∂u is the sum over pairs of the derivative times the other's u (of both ends), and ∂L/∂x is
    what of it is orthogonal to x, over the length of x.
    """
    loss = CATALOG[name].make(10, 5).double()
    x, y = make_batch("ragged", seed=3)
    weighing = weigh(loss, x, y)
    assert weighing.unexplained < 1e-9
    if as_similarity(loss.similarity) != as_similarity("cosine"):
        return
    units = nn.functional.normalize(x)
    force = torch.zeros_like(x)
    for matrix in weighing.matrices:
        if matrix.between == "samples against samples":
            force += (matrix.derivatives + matrix.derivatives.T) @ units
        elif matrix.between != "proxies against proxies":
            proxies = nn.functional.normalize(loss.proxies.detach())
            force += (
                matrix.derivatives if matrix.between == "samples against proxies" else matrix.derivatives.T
            ) @ proxies
    tangent = force - units * (force * units).sum(dim=1, keepdim=True)
    torch.testing.assert_close(weighing.gradient, tangent / x.norm(dim=1, keepdim=True), rtol=1e-9, atol=1e-12)


def test_what_is_not_in_the_similarities_is_said():
    x, y = make_batch("ragged")
    assert weigh(SphereFaceLoss(10, 5).double(), x, y).unexplained > 0.1
    assert weigh(SphereFaceLoss(10, 5, normalize=True).double(), x, y).unexplained < 1e-9
    assert weigh(WeightedSum({ContrastiveLoss(): 1.0, EmbeddingNorm(): 0.1}), x, y).unexplained > 0.01


# ------------------------------------------------------------------------------------------------ a user's own


def test_a_function_of_ones_own():
    """Any function of the matrix and labels, with any similarity; against its derivative by hand."""
    x, y = make_batch("balanced")
    S = -torch.cdist(nn.functional.normalize(x), nn.functional.normalize(x)).square()

    def cubes(similarities, labels):
        return (similarities**3 * (labels[:, None] < labels)).sum()

    expected = torch.where(y[:, None] < y, 3.0 * S.square(), 0.0)  # negative pairs alone
    torch.testing.assert_close(pair_weights(cubes, x, y, similarity="squared_euclidean"), expected)
    r, z = make_batch("ragged", seed=2)
    weights = pair_weights(lambda S, labels: (S * 2.0).sum(), x, y, r, z)
    torch.testing.assert_close(weights, torch.where(y[:, None] == z, -2.0, 2.0).double())


def test_a_function_is_a_loss_of_the_library():
    x, y = make_batch("ragged")
    loss = MultiSimilarityLoss()
    torch.testing.assert_close(pair_weights(loss.from_similarity, x, y), pair_weights(loss, x, y))


@pytest.mark.parametrize(
    ("loss", "options", "error", "sentence"),
    [
        (lambda S, y: S, {}, TypeError, r"must return a number .* but it returned a tensor of shape \(15, 15\)"),
        (lambda S, y: 1.0, {}, TypeError, "but it returned a float"),
        (lambda S, y: torch.tensor(1.0), {}, TypeError, "but it returned a constant"),
        (lambda S, y: S.sum(), {"relation": Masks(torch.eye(15) > 0, torch.eye(15) < 1)}, ValueError, "relation must be None"),
        (3.0, {}, TypeError, "loss must be a loss, or a function of similarities and labels, but it is a float"),
        (EmbeddingNorm(), {}, ValueError, "EmbeddingNorm computed no similarity matrix of samples that a hook can observe"),
        (Matryoshka(NTXentLoss(), [2, 5]), {}, ValueError, "Matryoshka reads 2 different matrices .*; weigh\\(\\) returns all of them"),
    ],
)  # fmt: skip
def test_bad_losses_get_one_sentence(loss, options, error, sentence):
    x, y = make_batch("ragged")
    with pytest.raises(error, match=sentence) as caught:
        pair_weights(loss, x, None if options else y, **options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("loss", [NTXentLoss(), ArcFaceLoss(10, 5), lambda S, y: S.sum()])
@pytest.mark.parametrize(
    ("change", "error", "sentence"),
    [
        (lambda x, y: (x[0], y), ValueError, r"embeddings must have shape \(n, d\)"),
        (lambda x, y: (x.long(), y), TypeError, "embeddings must be of a floating-point dtype"),
        (lambda x, y: (x.tolist(), y), TypeError, "embeddings must be a tensor, but it is a list"),
        (lambda x, y: (x, None), TypeError, "labels must be given"),
        (lambda x, y: (x, y[:-1]), ValueError, "labels must have one entry for each of the 15 embeddings"),
    ],
)
def test_bad_input_gets_one_sentence(loss, change, error, sentence):
    with pytest.raises(error, match=sentence) as caught:
        pair_weights(loss, *change(*make_batch("ragged")))
    assert "\n" not in str(caught.value)


def test_a_module_that_compares_by_itself_is_not_seen():
    class Own(nn.Module):
        def forward(self, embeddings, labels):
            return (embeddings @ embeddings.T).sum()

    weighing = weigh(Own(), *make_batch("balanced"))
    assert not weighing.matrices
    assert weighing.unexplained == pytest.approx(1.0)
    with pytest.raises(ValueError, match="give a loss of the library, or a function of a similarity matrix"):
        pair_weights(Own(), *make_batch("balanced"))

    class Float(nn.Module):
        def forward(self, embeddings, labels):
            return 1.0

    with pytest.raises(TypeError, match="loss must return a tensor, but Float returned a float"):
        weigh(Float(), *make_batch("balanced"))


# ------------------------------------------------------------------------------------------------ what is around a loss


def test_mined_pairs_alone_weigh():
    """Whatever the miner leaves out has no weight; signs are those of the labels, not of what was mined."""
    x, y = make_batch("ragged")
    miner = ValidTripletMiner(0.1)
    weights = pair_weights(RAWLoss(), x, y)
    anchors, positives, negative_anchors, negatives = miner.pairs(x, y)
    kept = torch.zeros(15, 15, dtype=torch.bool)
    kept[anchors, positives] = True
    kept[negative_anchors, negatives] = True
    assert torch.equal(weights != 0.0, kept)
    (matrix,) = weigh(RAWLoss(), x, y).matrices
    assert torch.equal(matrix.positive, (y[:, None] == y) & ~torch.eye(15, dtype=torch.bool))
    weights = pair_weights(TripletLoss(margin=4.0, reduction="sum", miner=BatchHardMiner()), x, y)
    anchors, positives, negatives = BatchHardMiner().triplets(x, y)
    expected = torch.zeros(15, 15, dtype=torch.float64)
    expected[anchors, positives] = 1.0
    expected[anchors, negatives] = 1.0
    torch.testing.assert_close(weights, expected)


def test_relations_in_place_of_labels():
    x, _ = make_batch("balanced")
    chosen = Triplets(torch.tensor([0, 1]), torch.tensor([2, 3]), torch.tensor([4, 5]))
    weights = pair_weights(TripletLoss(margin=4.0, reduction="sum"), x, relation=chosen)
    assert sorted(map(tuple, weights.nonzero().tolist())) == [(0, 2), (0, 4), (1, 3), (1, 5)]
    assert float(weights.sum()) == 4.0
    positive = torch.eye(12, dtype=torch.bool).roll(1, dims=0)
    weights = pair_weights(ContrastiveLoss(reduction="sum"), x, relation=Masks(positive, torch.zeros_like(positive)))
    assert torch.equal(weights != 0.0, positive)


def test_a_sum_of_losses_adds_its_weights():
    x, y = make_batch("balanced")
    both = WeightedSum({NTXentLoss(): 2.0, SupConLoss(): 0.5})
    expected = 2.0 * pair_weights(NTXentLoss(), x, y) + 0.5 * pair_weights(SupConLoss(), x, y)
    torch.testing.assert_close(pair_weights(both, x, y), expected)
    other = WeightedSum({NTXentLoss(): 1.0, MarginLoss(): 1.0})  # cosines and distances
    with pytest.raises(ValueError, match="reads 2 different matrices"):
        pair_weights(other, x, y)


def test_nested_prefixes():
    """One matrix for each prefix, whose derivatives are those of the loss there, times its share."""
    x, y = make_batch("balanced")
    short, full = weigh(Matryoshka(NTXentLoss(), [2, 5], weights=[1.0, 3.0]), x, y).matrices
    torch.testing.assert_close(short.weights, 0.25 * pair_weights(NTXentLoss(), x[:, :2], y))
    torch.testing.assert_close(full.weights, 0.75 * pair_weights(NTXentLoss(), x, y))


def test_a_memory_is_weighed_and_left_alone():
    """The batch is compared with itself and the queue; looking adds nothing to the queue."""
    (x, y), (r, z) = make_batch("ragged"), make_batch("balanced", seed=1)
    memory = CrossBatchMemory(ContrastiveLoss(), size=20)
    assert pair_weights(memory, x, y).shape == (15, 15)
    assert not memory.references.numel()
    memory(r, z)
    before, place = {name: value.clone() for name, value in memory.state_dict().items()}, memory.references.data_ptr()
    weights = pair_weights(memory, x, y)
    assert weights.shape == (15, 15 + 20)
    assert not weights[:, 15 + 12 :].any()  # places of the queue that are empty
    assert memory.references.data_ptr() == place
    assert all(torch.equal(value, before[name]) for name, value in memory.state_dict().items())
    with_proxies = CrossBatchMemory(ProxyAnchorLoss(10, 5), size=20).double()
    with_proxies(r, z)
    (matrix,) = weigh(with_proxies, x, y).matrices
    assert matrix.similarities.shape == (10, 15 + 20)


def test_language_guidance_adds_to_the_weights():
    """The divergence alone, by hand: ∂KL/∂s of a softmax against another."""
    x, y = make_batch("balanced")
    words = torch.randn(4, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    nothing = LanguageGuidance(NTXentLoss(), words, weight=0.0)
    torch.testing.assert_close(pair_weights(nothing, x, y), pair_weights(NTXentLoss(), x, y))
    guided = merge_matrices(weigh(LanguageGuidance(NTXentLoss(), words, weight=2.0), x, y), "guided").derivatives
    plain = merge_matrices(weigh(NTXentLoss(), x, y), "plain").derivatives
    units, names = nn.functional.normalize(x), nn.functional.normalize(words)[y]
    p, log_q = (units @ units.T).softmax(dim=1), (names @ names.T).log_softmax(dim=1)
    apart = p.log() - log_q
    expected = 2.0 * p * (apart - (p * apart).sum(dim=1, keepdim=True)) / 12
    torch.testing.assert_close(guided - plain, expected)


@pytest.mark.parametrize("loss", [TripletLoss(), MultiSimilarityLoss(), ProxyNCALoss(10, 5).double()], ids=repr)
def test_direction_regularized_losses(loss):
    """Without the term they weigh as they are; with it, everything still goes through similarities."""
    x, y = make_batch("ragged")
    torch.testing.assert_close(pair_weights(DirectionRegularized(loss, 0.0), x, y), pair_weights(loss, x, y))
    weighing = weigh(DirectionRegularized(loss, 0.3), x, y)
    assert weighing.unexplained < 1e-9
    assert not torch.allclose(merge_matrices(weighing, "it").weights, pair_weights(loss, x, y))


def test_centers_have_weights_of_their_own():
    loss = SoftTripleLoss(10, 5, centers=3).double()
    assert pair_weights(loss, *make_batch("ragged")).shape == (15, 30)


# ------------------------------------------------------------------------------------------------ a good guest


def test_looking_leaves_no_trace():
    """No gradient, no engine, no random number, no generator's state is changed."""
    x, y = make_batch("ragged")
    x.requires_grad_()
    generator = torch.Generator().manual_seed(5)
    loss = ArcFaceLoss(10, 5, sampled=8, generator=generator, backend="chunked")
    torch.manual_seed(0)
    states = torch.get_rng_state(), generator.get_state()
    first = weigh(loss, x, y)
    pair_weights(TripletLoss(miner=DistanceWeightedMiner()), x, y)
    assert torch.equal(torch.get_rng_state(), states[0])
    assert torch.equal(generator.get_state(), states[1])
    assert loss.backend == "chunked"
    assert x.grad is None
    assert loss.proxies.grad is None
    # so the next call of the loss draws the classes that were weighed
    torch.testing.assert_close(loss(x, y).detach(), first.value)
    with pytest.raises(ValueError, match="labels must have one entry"):
        weigh(loss, x, y[:-1])
    assert loss.backend == "chunked"


def test_a_buffer_that_a_graph_needs_stays():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.loss = NTXentLoss()
            self.register_buffer("scale", torch.tensor(2.0, dtype=torch.float64))

        def forward(self, embeddings, labels):
            return self.loss(embeddings * self.scale, labels) * self.scale

    x, y = make_batch("balanced")
    torch.testing.assert_close(pair_weights(Scaled(), x, y), 2.0 * pair_weights(NTXentLoss(), x, y))


def test_precision_modes_and_reductions():
    x, y = make_batch("ragged")
    exact = pair_weights(NTXentLoss(), x, y)
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        torch.testing.assert_close(pair_weights(NTXentLoss(), x.float(), y).double(), exact, rtol=1e-4, atol=1e-6)
    assert pair_weights(NTXentLoss(), x.bfloat16(), y).dtype == torch.float32
    total, each = (pair_weights(NTXentLoss(reduction=reduction), x, y) for reduction in ("sum", "none"))
    torch.testing.assert_close(total, each)
    assert weigh(NTXentLoss(reduction="none"), x, y).value.shape == (15,)
    torch.testing.assert_close(pair_weights(NTXentLoss(backend="chunked"), x, y), exact)


@pytest.mark.parametrize(
    "name", [name for name, each in CATALOG.items() if no_closed_form(each.make(10, 5)) is not None]
)
def test_every_batch_can_be_weighed(name):
    """Also one that lacks positives, negatives or both; test_closed.py weighs those of the other losses."""
    for batch in LABELS:
        assert torch.isfinite(pair_weights(CATALOG[name].make(10, 5).double(), *make_batch(batch))).all(), batch


# ------------------------------------------------------------------------------------------------ signs

NEGATIVE = {
    *("FastAP", "Intra-pair variance", "P2SGrad", "Ranked list", "SoftTriple", "SupCon", "Tuplet margin"),
    *("NDCG", "Recall@k", "Smooth-AP"),  # their ranks compare positives with positives
}
"""Losses that push some positive pair apart or pull some negative pair together.

A search of 3,000 batches for each loss, in 2, 3 and 8 dimensions, found none of the others; losses on soft ranks were searched in 40 batches only.
"""


@pytest.mark.parametrize("name", CATALOG)
def test_which_losses_have_negative_weights(name):
    found = negative_weights(CATALOG[name].make(5, 3), batches=40 if name in NEGATIVE else 8, seed=1)
    assert (found is not None) == (name in NEGATIVE), str(found)


def test_negative_weights_by_hand():
    """SupCon: of two positives, the one that has most of the softmax is pushed; tuplet margin: below its margin."""
    x, y = on_a_circle(0.0, 1.0, 60.0, 180.0), torch.tensor([0, 0, 0, 1])
    assert float(pair_weights(SupConLoss(), x, y)[0, 1]) < 0.0
    assert float(pair_weights(TupletMarginLoss(margin=5.0), x, y)[0, 1]) < 0.0
    x = on_a_circle(0.0, 6.0, 60.0, 180.0)
    assert float(pair_weights(TupletMarginLoss(margin=5.0), x, y)[0, 1]) > 0.0


def test_what_was_found_can_be_seen_again():
    """The pair, its weight and its batch: the same when weighed again."""
    found = negative_weights(SupConLoss())
    weights = pair_weights(SupConLoss(), *found.batch)
    assert float(weights[found.pair]) == pytest.approx(found.weight)
    assert found.kind == "positive"
    assert f"weighs {found.weight:.3g}" in str(found)
    # a negative pair that is pulled together
    found = negative_weights(lambda S, y: -(S.square() * (y[:, None] != y)).sum())
    assert found.kind == "negative"
    assert found.weight == pytest.approx(-2.0 * found.similarity)


def test_searching_leaves_no_trace():
    loss = ProxyAnchorLoss(5, 3)
    before = loss.proxies.detach().clone()
    assert negative_weights(loss, batches=5) is None
    assert torch.equal(loss.proxies, before)
    assert loss.proxies.dtype == torch.float32
    with pytest.raises(ValueError, match="batches must be a whole number ≥ 1, but it is 0"):
        negative_weights(loss, batches=0)


def test_random_batches():
    """The same for a seed, of all kinds: loose and tight, apart and mixed up."""
    some, again = (list(random_batches(64, classes=4, dim=3, seed=7)) for _ in range(2))
    assert all(
        torch.equal(a.embeddings, b.embeddings) and torch.equal(a.labels, b.labels)
        for a, b in zip(some, again, strict=True)
    )
    assert not torch.equal(some[0].embeddings, next(random_batches(1, classes=4, dim=3, seed=8)).embeddings[:1])
    assert {len(batch.labels) for batch in some} >= {4, 24}
    assert all(int(batch.labels.min()) >= 0 and int(batch.labels.max()) < 4 for batch in some)
    closest = [
        float(
            (nn.functional.normalize(batch.embeddings) @ nn.functional.normalize(batch.embeddings).T)
            .fill_diagonal_(-1)
            .max()
        )
        for batch in some
    ]
    assert max(closest) > 1.0 - 1e-6
    assert min(closest) < 0.99


def test_sizes_for_losses():
    assert sizes_for(NTXentLoss()) == (5, 8)
    assert sizes_for(ProxyAnchorLoss(3, 7), MarginLoss(num_classes=2)) == (2, 7)
    assert sizes_for(LanguageGuidance(Matryoshka(NTXentLoss(), [2, 6]), torch.eye(4))) == (4, 6)
    with pytest.raises(ValueError, match="losses must take embeddings of one dimension, but they take 3 and 7"):
        sizes_for(ProxyAnchorLoss(3, 7), ProxyAnchorLoss(3, 3))
