"""What the door refuses beyond the catalog of the contract."""

from __future__ import annotations

import re

import pytest
import torch

from likewise import losses
from likewise.engines import BACKENDS
from likewise.formula import (
    POSITIVES,
    Euclidean,
    Labels,
    Masks,
    Pairs,
    Triplets,
    check_values,
    hyperparameters,
    logsumexp,
    per_anchor,
    per_pair,
    s,
    softplus,
)
from likewise.formula.checks import can_read_values
from likewise.formula.declarations import sort_declaration
from likewise.losses import (
    AngularLoss,
    CircleLoss,
    CrossBatchMemory,
    DirectionRegularized,
    EmbeddingNorm,
    FastAPLoss,
    HistogramLoss,
    IntraPairVarianceLoss,
    LanguageGuidance,
    MarginLoss,
    Matryoshka,
    MultiSimilarityLoss,
    NPairsLoss,
    NTXentLoss,
    PairLoss,
    ProxyNCALoss,
    QuadrupletLoss,
    SoftmaxLoss,
    TripletLoss,
    WeightedSum,
)
from likewise.miners import DistanceWeightedMiner, MultiSimilarityMiner, RandomMiner, SemiHardMiner
from likewise.testing import loop_over

BACKEND_NAMES = ", ".join(map(repr, BACKENDS))


class Unfolded(PairLoss):
    def declare(self):
        return per_anchor(softplus(s))


E = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))
Y = torch.tensor([0, 0, 1, 1])
UNIT = torch.tensor([[1.0, 0.0, 0.0], [0.6, 0.8, 0.0], [0.0, 0.6, 0.8], [0.8, 0.0, 0.6]])


@loop_over(
    "call, message",
    [
        (lambda: MultiSimilarityLoss(alpha=0.0), "MultiSimilarityLoss: alpha must be a number > 0, but it is 0.0"),
        (lambda: MultiSimilarityLoss(beta=float("nan")), "beta must be a number > 0, but it is nan"),
        (lambda: MultiSimilarityLoss(beta="50"), "beta must be a number > 0, but it is '50'"),
        (lambda: FastAPLoss(bins=2.5), "FastAPLoss: bins must be a whole number ≥ 1, but it is 2.5"),
        (lambda: FastAPLoss(bins=True), "bins must be a whole number"),
        (lambda: AngularLoss(90.0), "AngularLoss: alpha must be a number > 0 and ≤ 66, but it is 90.0"),
        (lambda: NTXentLoss(reduction="average"), "reduction must be one of 'mean', 'nonzero', 'sum', 'none'"),
        (lambda: NTXentLoss(backend="cuda"), f"backend must be one of {BACKEND_NAMES}, but it is 'cuda'"),
        (lambda: NTXentLoss(similarity="l2"), "similarity must be one of"),
        (lambda: NTXentLoss(miner=SemiHardMiner), "but it is the class SemiHardMiner, not an object"),
        (lambda: WeightedSum([NTXentLoss()]), "losses must be a mapping from at least one loss to its weight"),
        (lambda: Matryoshka(NTXentLoss(), 5), "dims must be several whole numbers, but it is a int"),
        (
            lambda: Matryoshka(NTXentLoss(), [2], weights=[0.0]),
            "weights must be one for each of the 1 dims and not all",
        ),
        (lambda: LanguageGuidance("x", E), "loss must be a loss, a torch module, but it is a str"),
        (lambda: DirectionRegularized(ProxyNCALoss(2, 3))(E, Y, E, Y), "takes no references or relation"),
        (
            lambda: DirectionRegularized(ProxyNCALoss(2, 7))(E, Y),
            "must have the 7 dimensions of the proxies, but have 3",
        ),
        (lambda: Unfolded()(E, Y), "a loss must be one number per anchor, but its formula has an s outside of every"),
        (
            lambda: per_pair(softplus(s), POSITIVES),
            r"over must be POSITIVES, NEGATIVES, BOTH or EACH_POSITIVE, but it is softplus\(s\)",
        ),
        (
            lambda: logsumexp(s, "positives"),
            "over must be POSITIVES, NEGATIVES, BOTH or EACH_POSITIVE, but it is 'positives'",
        ),
        (lambda: sort_declaration(softplus(s)), r"declare\(\) must return terms.* but it returned softplus\(s\)"),
        (lambda: NTXentLoss(miner="hard"), "miner must be a miner of likewise.miners or None, but it is a str"),
        (lambda: HistogramLoss(similarity="dot"), "HistogramLoss: similarity must be Cosine, but it is 'dot'"),
        (lambda: MarginLoss(num_classes=0), "num_classes must be a whole number ≥ 1 or None, but it is 0"),
        (lambda: MarginLoss(num_classes="3"), "num_classes must be a whole number ≥ 1 or None, but it is '3'"),
        (lambda: MarginLoss(learn_beta="no"), "MarginLoss: learn_beta must be True or False, but it is 'no'"),
        (lambda: MarginLoss(beta="x"), "MarginLoss: beta must be a number, but it is 'x'"),
        (lambda: MarginLoss(similarity="cosine"), "MarginLoss: similarity must be Euclidean, but it is 'cosine'"),
        (lambda: SemiHardMiner("x"), "SemiHardMiner: margin must be a number > 0 or None, but it is 'x'"),
        (lambda: DistanceWeightedMiner(dim=1), "dim must be a whole number ≥ 2 or None, but it is 1"),
        (lambda: DistanceWeightedMiner(1.5, 0.2), "cutoff must be below nonzero_loss_cutoff, 0.2, but it is 1.5"),
        (lambda: QuadrupletLoss(miner=SemiHardMiner())(E, Y), "takes no triplets and no triplet miner"),
        (lambda: Labels([0, 1]), "labels must be a tensor, but it is a list"),
        (lambda: Labels(torch.tensor(0)), r"labels must have shape \(n,\)"),
        (lambda: Labels(Y, Y, own=Y[:2]), "own must have one entry for each of the 4 labels, but it has 2"),
        (lambda: Labels(Y, Y, own=Y + 9), r"own must be indices in -1..3 of the references"),
        (lambda: Masks([[True]], [[True]]), "positive must be a boolean matrix, but it is a list"),
        (lambda: Pairs(Y, Y[:1], Y, Y), "anchors and positives must have one length, but they have 4 and 1"),
        (lambda: Pairs([0], Y, Y, Y), "anchors must be a tensor of indices, but it is a list"),
        (
            lambda: Triplets(Y, Y, Y[:1]),
            "anchors, positives and negatives of triplets must have one length, but they have 4, 4 and 1",
        ),
        (lambda: Triplets(Y, Y, Y, valid=Y), "valid must be one boolean for each of the 4 triplets"),
        (lambda: NTXentLoss()(E, relation=Labels(Y.to("meta"))), "relation must be on the device of embeddings, cpu"),
        (lambda: SoftmaxLoss(2, 3)(E, Y + 1), "labels must be in 0..1, one proxy for each class.*start at 1"),
        (lambda: SoftmaxLoss(2, 4)(E, Y), "embeddings must have the 4 dimensions of the proxies, but have 3"),
        (lambda: SoftmaxLoss(0, 4), "SoftmaxLoss: num_classes must be a whole number ≥ 1, but it is 0"),
        (lambda: SoftmaxLoss(2, 3).from_similarity(E, Y), "cannot be computed from similarities only"),
        (
            lambda: CrossBatchMemory(HistogramLoss(), 4),
            "loss must be a pair loss that takes references or a proxy loss whose",
        ),
        (lambda: CrossBatchMemory(NTXentLoss(), 0), "size must be a whole number ≥ 1, but it is 0"),
        (lambda: Matryoshka(NTXentLoss(), [])(E, Y), "dims must contain at least one whole number"),
        (
            lambda: Matryoshka(NTXentLoss(), [8])(E, Y),
            "embeddings must have at least the 8 dimensions of dims, but have 3",
        ),
        (
            lambda: Matryoshka(SoftmaxLoss(2, 3), [2]),
            "loss must work in any dimension, but a SoftmaxLoss has a fixed one",
        ),
        (lambda: WeightedSum({}), "losses must be a mapping from at least one loss"),
        (
            lambda: LanguageGuidance(NTXentLoss(), E[:1])(E, Y),
            r"labels must be in 0..0, one language embedding for each",
        ),
        (lambda: MultiSimilarityMiner(-1.0), "MultiSimilarityMiner: epsilon must be a number ≥ 0, but it is -1.0"),
        (lambda: MultiSimilarityMiner()(E, Y), r"has shape \(4, 3\); embeddings are mined by miner.pairs\(embeddings,"),
        (lambda: SemiHardMiner()(E, Y), r"embeddings are mined by miner.triplets\(embeddings, labels\)"),
        (lambda: SemiHardMiner(0.0), "SemiHardMiner: margin must be a number > 0 or None"),
        (lambda: RandomMiner(0), "RandomMiner: n must be a whole number ≥ 1, but it is 0"),
        (lambda: NTXentLoss()(E, Y, E), "reference_labels must be given together with references"),
        (lambda: NTXentLoss()(E, Y, None, Y), "references must be given together with reference_labels"),
        (lambda: NTXentLoss()(E, Y, E[:, :2], Y), "references must have the 3 dimensions of embeddings, but have 2"),
        (lambda: NTXentLoss()(E, Y, E, Y[:3]), "reference_labels must have one entry for each of the 4 references"),
        (lambda: MarginLoss(num_classes=2)(E, Y + 1), "labels must be in 0..1, one beta for each class.*start at 1"),
        (lambda: QuadrupletLoss().from_similarity(E @ E.T, Y), "cannot be computed from similarities only"),
        (lambda: NPairsLoss(l2=0.1).from_similarity(E @ E.T, Y), "its l2 term is a function of the embeddings' norms"),
        (lambda: NTXentLoss().from_similarity(E, Y), "relation must be a Relation where similarities are not square"),
        (
            lambda: TripletLoss(miner=DistanceWeightedMiner()).from_similarity(E @ E.T, Y),
            "dim must be given where DistanceWeightedMiner mines a matrix of similarities",
        ),
        (
            lambda: TripletLoss(miner=DistanceWeightedMiner(), similarity="dot")(E, Y),
            "similarities do not determine Euclidean distances of unit vectors",
        ),
        (lambda: NPairsLoss()(E, Y, 1e20 * E, Y), r"references must have norms of at most 1.3e\+19 .* row 0 has norm"),
        (
            lambda: TripletLoss(similarity=Euclidean(normalize=False))(1e19 * torch.eye(4), Y),
            r"embeddings must have norms of at most 9.2e\+18 where they are not normalized, because float32 .* norm 1.0e\+19",
        ),
        (
            lambda: NPairsLoss(l2=0.1, similarity="cosine")(1e20 * E, Y),
            r"embeddings must have norms of at most 1.8e\+19",
        ),
        (lambda: EmbeddingNorm()(1e20 * E), r"embeddings must have norms of at most 1.8e\+19"),
        *(
            (
                lambda loss=loss, norm=norm: loss(norm * UNIT, Y),
                rf"the loss must be finite, but it is (nan|inf); .* norms of up to {norm:.0e}".replace("e+", r".0e\+"),
            )
            for loss, norm in (
                (CircleLoss(similarity="dot"), 1e10),
                (IntraPairVarianceLoss(similarity="dot"), 1e10),
                (NTXentLoss(0.01, similarity="dot", backend="chunked"), 5e18),
            )
        ),
        (
            lambda: EmbeddingNorm()(1e200 * torch.eye(4).double()),
            r"embeddings must have norms of at most 1.3e\+154 .* float64 .* row 0 has norm 1.0e\+200",
        ),
        (
            lambda: NTXentLoss(similarity="dot")(1e154 * torch.eye(4).double(), Y),
            r"embeddings must have norms of at most 9.5e\+153 .* row 0 has norm 1.0e\+154",
        ),
    ],
)
def test_one_sentence(call, message):
    with pytest.raises((ValueError, TypeError), match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_values_are_looked_at_on_the_cpu_and_elsewhere_on_request():
    assert can_read_values(torch.zeros(1))
    assert not can_read_values(torch.zeros(1, device="meta"))
    with check_values():
        assert can_read_values(torch.zeros(1))


def test_large_finite_embeddings_are_not_taken_for_broken_ones():
    """Their sum overflows, and the embeddings are fine."""
    embeddings = torch.full((4, 3), 3e38)
    embeddings[::2, 0] = -3e38
    assert torch.isfinite(MultiSimilarityLoss()(embeddings, Y))


def test_norms_are_not_read_where_values_are_not():
    with check_values(read=False):
        assert not torch.isfinite(NPairsLoss()(1e30 * E, Y))
    assert torch.isfinite(NPairsLoss()(1e30 * E.double(), Y))


def test_hyperparameters_are_declared_once():
    declared = hyperparameters(MultiSimilarityLoss)
    assert list(declared) == ["alpha", "beta", "base"]
    assert declared["beta"].limits() == "> 0"
    assert (declared["base"].search, declared["base"].step) == ((0.0, 1.0), 0.1)


def test_a_wrong_name_is_answered_with_the_right_one():
    for make, message in (
        (lambda: MultiSimilarityLoss(aplha=2), "MultiSimilarityLoss has no argument aplha; did you mean alpha?"),
        (
            lambda: MultiSimilarityLoss(weights=2),
            "MultiSimilarityLoss has no argument weights; it has alpha, beta, base,",
        ),
        (lambda: MultiSimilarityLoss(reducer=2), "no argument reducer; did you mean reduction?"),
        (
            lambda: losses.ArcFaceLoss(num_classes=3, embedding_size=4),
            "ArcFaceLoss has no argument embedding_size; did you mean embedding_dim?",
        ),
        (lambda: losses.TripletMarginLoss, "no attribute 'TripletMarginLoss'; did you mean TripletLoss?"),
        (lambda: losses.CircelLoss, "did you mean CircleLoss?"),
        (lambda: MultiSimilarityLoss()(E, ["a", "a", "b", "b"]), "likewise.metrics.encode_labels of names"),
        (lambda: MultiSimilarityLoss()(E, Y.numpy()), "it is a ndarray: torch.as_tensor makes one of numbers"),
    ):
        with pytest.raises((TypeError, AttributeError), match=re.escape(message)):
            make()
