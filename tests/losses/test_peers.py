"""The same batch in other libraries: equal where they mean the same, and where they do not, how they differ.

``theirs`` is pytorch-metric-learning 2.9.0 throughout.  Everything is float64 and to 1e-10, gradients included, unless a
test is about precision.  `docs/conventions.md` names these tests.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from pytorch_metric_learning import losses as theirs
from pytorch_metric_learning import miners as their_miners
from pytorch_metric_learning.distances import CosineSimilarity, DotProductSimilarity, LpDistance
from pytorch_metric_learning.reducers import ClassWeightedReducer, MeanReducer, PerAnchorReducer, ThresholdReducer
from pytorch_metric_learning.regularizers import LpRegularizer, ZeroMeanRegularizer
from pytorch_metric_learning.utils import loss_and_miner_utils as their_utils
from sklearn.neighbors import NeighborhoodComponentsAnalysis
from torch import Tensor, nn
from torch.nn.functional import normalize

from likewise import losses, miners
from likewise.formula import ClassWeighted, Euclidean, Masks, Pairs, SquaredEuclidean, Thresholded, Triplets
from likewise.testing import loop_over, make_batch

COSINE = CosineSimilarity()
# their histogram loss indexes a tensor with a list
pytestmark = pytest.mark.filterwarnings("ignore:Using a non-tuple sequence for multidimensional indexing")


def gradients(loss: Callable[..., Tensor], *arguments: Any) -> list[Tensor]:
    """The value, and its gradients by the embeddings among the arguments and by the loss's own parameters."""
    arguments = [x.clone().requires_grad_() if torch.is_tensor(x) and x.is_floating_point() else x for x in arguments]
    leaves = [x for x in arguments if torch.is_tensor(x) and x.requires_grad]
    parameters = list(loss.parameters()) if isinstance(loss, nn.Module) else []
    value = loss(*arguments)
    return [value.detach(), *torch.autograd.grad(value, leaves + parameters)]


def assert_equal(left: Any, right: Any, tolerance: float = 1e-10) -> None:
    torch.testing.assert_close(left, right, rtol=tolerance, atol=tolerance)


# Where both mean the same ------------------------------------------------------------------------------------------


class Mined(nn.Module):
    """Their loss with their miner, in one call."""

    def __init__(self, loss: nn.Module, miner: nn.Module) -> None:
        super().__init__()
        self.loss, self.miner = loss, miner

    def forward(self, embeddings, labels, _=None, references=None, reference_labels=None):
        chosen = self.miner(embeddings, labels, references, reference_labels)
        return self.loss(embeddings, labels, chosen, references, reference_labels)


class OfUnits(nn.Module):
    """Their loss on embeddings that are normalized before it sees them."""

    def __init__(self, loss: nn.Module) -> None:
        super().__init__()
        self.loss = loss

    def forward(self, embeddings, labels, chosen=None, references=None, reference_labels=None):
        references = None if references is None else normalize(references)
        return self.loss(normalize(embeddings), labels, chosen, references, reference_labels)


class OfAnchorsWithBoth(nn.Module):
    """Their loss on the pairs of anchors that have a positive and a negative, and the mean over these anchors."""

    def __init__(self, loss: nn.Module) -> None:
        super().__init__()
        self.loss = loss

    def forward(self, embeddings, labels, _=None, references=None, reference_labels=None):
        pairs = their_utils.get_all_pairs_indices(labels, reference_labels)
        everyone = torch.arange(len(labels))
        both = torch.isin(everyone, pairs[0]) & torch.isin(everyone, pairs[2])
        of_positive, of_negative = both[pairs[0]], both[pairs[2]]
        chosen = (*(x[of_positive] for x in pairs[:2]), *(x[of_negative] for x in pairs[2:]))
        value = self.loss(embeddings, labels, chosen, references, reference_labels)
        return value * len(labels) / both.sum()


def their_circle() -> nn.Module:
    """With a softplus that is exact: torch's turns into a straight line at 20, an error of 2e-9."""
    loss = theirs.CircleLoss()
    loss.soft_plus.threshold = 50
    return loss


class TheirHistogram(theirs.HistogramLoss):
    """With nodes in float64: they are products of integers and a number, which torch makes in its default dtype."""

    def forward(self, *arguments: Any) -> Tensor:
        torch.set_default_dtype(torch.float64)
        try:
            return super().forward(*arguments)
        finally:
            torch.set_default_dtype(torch.float32)


class MeanOverAnchors(nn.Module):
    """Our loss with one value per anchor, and the mean over all anchors."""

    def __init__(self, loss: nn.Module) -> None:
        super().__init__()
        self.loss = loss

    def forward(self, *arguments: Any) -> Tensor:
        return self.loss(*arguments).mean()


WEIGHTS = torch.tensor([0.5, 2.0, 0.0, 1.5, 3.0, 0.25, 1.0, 4.0, 0.1, 0.7], dtype=torch.float64)
WEIGHTED, THEIRS_WEIGHTED = ClassWeighted(WEIGHTS), ClassWeightedReducer(WEIGHTS)


class Row(NamedTuple):
    ours: Callable[[], nn.Module]
    theirs: Callable[[], nn.Module]
    references: bool = True


ROWS = {
    "contrastive": Row(losses.ContrastiveLoss, lambda: theirs.ContrastiveLoss(1.0, 0.5, distance=COSINE)),
    "contrastive-mean": Row(
        lambda: losses.ContrastiveLoss(0.9, 0.1, reduction="mean"),
        lambda: theirs.ContrastiveLoss(0.9, 0.1, distance=COSINE, reducer=MeanReducer()),
    ),
    "contrastive-euclidean": Row(lambda: losses.ContrastiveLoss(similarity="euclidean"), theirs.ContrastiveLoss),
    "contrastive-class-weighted": Row(
        lambda: losses.ContrastiveLoss(reduction=WEIGHTED),
        lambda: theirs.ContrastiveLoss(1.0, 0.5, distance=COSINE, reducer=THEIRS_WEIGHTED),
    ),
    "contrastive-thresholded": Row(
        lambda: losses.ContrastiveLoss(1.0, -1.0, reduction=Thresholded(0.3, 1.2)),
        lambda: theirs.ContrastiveLoss(1.0, -1.0, distance=COSINE, reducer=ThresholdReducer(0.3, 1.2)),
    ),
    "contrastive-per-anchor": Row(
        lambda: MeanOverAnchors(losses.ContrastiveLoss(reduction="mean_per_anchor")),
        lambda: theirs.ContrastiveLoss(1.0, 0.5, distance=COSINE, reducer=PerAnchorReducer()),
        references=False,  # theirs takes the number of embeddings for that of the references
    ),
    "triplet-class-weighted": Row(
        lambda: losses.TripletLoss(reduction=WEIGHTED),
        lambda: theirs.TripletMarginLoss(0.1, distance=COSINE, reducer=THEIRS_WEIGHTED),
    ),
    "triplet-thresholded": Row(
        lambda: losses.TripletLoss(reduction=Thresholded(high=0.4)),
        lambda: theirs.TripletMarginLoss(0.1, distance=COSINE, reducer=ThresholdReducer(high=0.4)),
    ),
    "nt-xent-class-weighted": Row(
        lambda: losses.NTXentLoss(reduction=WEIGHTED), lambda: theirs.NTXentLoss(reducer=THEIRS_WEIGHTED)
    ),
    "nt-xent-thresholded": Row(
        lambda: losses.NTXentLoss(reduction=Thresholded(low=2.0)),
        lambda: theirs.NTXentLoss(reducer=ThresholdReducer(low=2.0)),
    ),
    "multi-similarity-thresholded": Row(
        lambda: losses.MultiSimilarityLoss(reduction=Thresholded(low=0.8)),
        lambda: theirs.MultiSimilarityLoss(reducer=ThresholdReducer(low=0.8)),
    ),
    "triplet": Row(losses.TripletLoss, lambda: theirs.TripletMarginLoss(0.1, distance=COSINE)),
    "triplet-soft": Row(
        lambda: losses.TripletLoss(soft=True), lambda: theirs.TripletMarginLoss(0.1, smooth_loss=True, distance=COSINE)
    ),
    "triplet-euclidean": Row(lambda: losses.TripletLoss(0.05, similarity="euclidean"), theirs.TripletMarginLoss),
    "triplet-semihard": Row(
        lambda: losses.TripletLoss(0.3, miner=miners.SemiHardMiner(0.2)),
        lambda: Mined(
            theirs.TripletMarginLoss(0.3, distance=COSINE),
            their_miners.TripletMarginMiner(0.2, type_of_triplets="semihard", distance=COSINE),
        ),
    ),
    "angular": Row(losses.AngularLoss, lambda: OfUnits(theirs.AngularLoss())),
    "margin": Row(lambda: losses.MarginLoss(learn_beta=False), theirs.MarginLoss),
    "margin-learned": Row(
        lambda: losses.MarginLoss(nu=0.1).double(), lambda: theirs.MarginLoss(learn_beta=True, nu=0.1).double()
    ),
    "margin-per-class": Row(
        lambda: losses.MarginLoss(num_classes=10).double(),
        lambda: theirs.MarginLoss(num_classes=10, learn_beta=True).double(),
    ),
    "margin-semihard": Row(
        lambda: losses.MarginLoss(miner=miners.SemiHardMiner(0.2)).double(),
        lambda: Mined(
            theirs.MarginLoss(learn_beta=True), their_miners.TripletMarginMiner(0.2, type_of_triplets="semihard")
        ).double(),
    ),
    "lifted-structure": Row(losses.LiftedStructureLoss, theirs.LiftedStructureLoss, references=False),
    "generalized-lifted-structure": Row(
        losses.GeneralizedLiftedStructureLoss,
        lambda: OfAnchorsWithBoth(theirs.GeneralizedLiftedStructureLoss(0.0, 0.5, distance=COSINE)),
    ),
    "generalized-lifted-structure-euclidean": Row(  # of their two margins only the difference matters
        lambda: losses.GeneralizedLiftedStructureLoss(0.7, similarity="euclidean"),
        lambda: OfAnchorsWithBoth(theirs.GeneralizedLiftedStructureLoss(1.0, 0.3)),
    ),
    "tuplet-margin": Row(losses.TupletMarginLoss, theirs.TupletMarginLoss),
    "intra-pair-variance": Row(losses.IntraPairVarianceLoss, theirs.IntraPairVarianceLoss),
    "circle": Row(losses.CircleLoss, their_circle),
    "nt-xent": Row(losses.NTXentLoss, theirs.NTXentLoss),
    "nt-xent-euclidean": Row(
        lambda: losses.NTXentLoss(similarity="euclidean"), lambda: theirs.NTXentLoss(distance=LpDistance())
    ),
    "sup-con": Row(losses.SupConLoss, theirs.SupConLoss),
    "nca": Row(losses.NCALoss, theirs.NCALoss),
    "nca-scaled": Row(lambda: losses.NCALoss(9.0), lambda: theirs.NCALoss(9.0)),
    "snr-contrastive": Row(losses.SNRContrastiveLoss, theirs.SignalToNoiseRatioContrastiveLoss),
    "snr-contrastive-regularized": Row(  # their regularizer takes the embeddings as they come
        lambda: losses.SNRContrastiveLoss(0.1, 1.2, 0.3),
        lambda: OfUnits(
            theirs.SignalToNoiseRatioContrastiveLoss(
                pos_margin=0.1, neg_margin=1.2, embedding_regularizer=ZeroMeanRegularizer(), embedding_reg_weight=0.3
            )
        ),
    ),
    "multi-similarity": Row(losses.MultiSimilarityLoss, theirs.MultiSimilarityLoss),
    "multi-similarity-mined": Row(
        lambda: losses.MultiSimilarityLoss(miner=miners.MultiSimilarityMiner()),
        lambda: Mined(theirs.MultiSimilarityLoss(), their_miners.MultiSimilarityMiner()),
    ),
    "raw": Row(losses.RAWLoss, lambda: Mined(theirs.MultiSimilarityLoss(), their_miners.MultiSimilarityMiner())),
    "fast-ap": Row(losses.FastAPLoss, theirs.FastAPLoss, references=False),
    "histogram": Row(losses.HistogramLoss, TheirHistogram, references=False),
}


@loop_over("seed", range(3))
@loop_over("batch", ["balanced", "ragged"])
@pytest.mark.parametrize("row", ROWS)
def test_equals(row: str, batch: str, seed: int) -> None:
    embeddings, labels = make_batch(batch, seed=seed)
    ours, other = ROWS[row].ours(), ROWS[row].theirs()
    assert_equal(gradients(ours, embeddings, labels), gradients(other, embeddings, labels))


@loop_over("seed", range(2))
@pytest.mark.parametrize("row", [name for name, row in ROWS.items() if row.references])
def test_equals_with_references(row: str, seed: int) -> None:
    """One class of the anchors is not among the references; the references get a gradient too."""
    embeddings, labels = make_batch("balanced", seed=seed)
    references, reference_labels = make_batch("ragged", seed=seed + 100)
    reference_labels = reference_labels % 4
    ours, other = ROWS[row].ours(), ROWS[row].theirs()
    assert_equal(
        gradients(ours, embeddings, labels, references, reference_labels),
        gradients(other, embeddings, labels, None, references, reference_labels),
    )


TRANSFORMS: dict[str, Callable[..., Tensor]] = {
    "grad": lambda loss, embeddings, labels: torch.func.grad(loss)(embeddings, labels),
    "jvp": lambda loss, embeddings, labels: torch.func.jvp(
        lambda x: loss(x, labels), (embeddings,), (embeddings + 1.0,)
    )[1],
    "vmap": lambda loss, embeddings, labels: torch.vmap(lambda x: loss(x, labels))(
        torch.stack([embeddings, -embeddings])
    ),
}


@pytest.mark.filterwarnings("ignore")  # theirs, and torch's about operations that vmap runs in a loop for them
@pytest.mark.parametrize("row", ROWS)
def test_transforms_equal(row: str) -> None:
    """Ours have every transform of ``torch.func``; theirs have ``grad``, and the others where they read no values."""
    batch = make_batch("balanced", seed=0)
    for name, transform in TRANSFORMS.items():
        ours = transform(ROWS[row].ours(), *batch)
        try:
            other = transform(ROWS[row].theirs(), *batch)
        except (RuntimeError, NotImplementedError, IndexError, ValueError):
            assert name != "grad"
            continue
        assert_equal(ours, other, 1e-8)


# What their own tests ask ------------------------------------------------------------------------------------------

ANGLES = torch.tensor([0.0, 10.0, 21.0, 53.0, 64.0, 85.0], dtype=torch.float64).deg2rad()
ON_A_CIRCLE = torch.stack([ANGLES.cos(), ANGLES.sin()], dim=1)
CLASSES = torch.tensor([0, 0, 0, 1, 1, 2])
# their nodes are float32 (histogram); the variance of two numbers may be zero (SNR)
NO_CIRCLE = {"histogram", "snr-contrastive", "snr-contrastive-regularized"}


@loop_over("row", [name for name in ROWS if name not in NO_CIRCLE])
def test_points_on_a_circle_in_every_dtype(row: str) -> None:
    """Value and gradient are theirs in float64 of the same numbers; the value is float32 at least, the gradient as given."""
    for dtype, tolerance in ((torch.float16, 2e-2), (torch.bfloat16, 2e-2), (torch.float32, 2e-4)):
        points = ON_A_CIRCLE.to(dtype)
        expected = gradients(ROWS[row].theirs(), points.double(), CLASSES)
        found = gradients(ROWS[row].ours().float(), points, CLASSES)
        assert found[0].dtype == torch.float32
        assert found[1].dtype == dtype
        scale = expected[1].abs().max() + 1.0
        assert_equal(found[0].double(), expected[0].double(), 1e-4)
        assert_equal(found[1].double() / scale, expected[1] / scale, tolerance)


@loop_over("row", ROWS)
def test_no_pairs(row: str) -> None:
    """One sample, one class, or one sample per class: zero and no gradient, unless negatives cost something on their own."""
    pushes = row.startswith(("contrastive", "snr", "multi", "raw", "intra"))
    for labels in ([0], [0, 0, 0], [1, 2, 3]):
        embeddings = make_batch("balanced").embeddings[: len(labels)]
        value, gradient = gradients(ROWS[row].ours(), embeddings, torch.tensor(labels))[:2]
        if row == "margin-learned":
            value = value - 0.1 * 1.2  # ν β
        if pushes or row == "snr-contrastive-regularized":
            assert_equal([value, gradient], gradients(ROWS[row].theirs(), embeddings, torch.tensor(labels))[:2])
        else:
            assert abs(float(value)) < 1e-7
            assert not gradient.any()


PAIRED = [
    name
    for name in ROWS
    if not name.endswith(("-semihard", "-mined", "-class-weighted", "-per-class", "-per-anchor"))
    # rows below show what they make of given pairs (NCA, FastAP, angular, histogram), or their wrapper needs labels
    and not name.startswith(("raw", "nca", "fast-ap", "angular", "histogram", "generalized", "snr-contrastive-reg"))
]


@loop_over("row", PAIRED)
def test_pairs_without_labels(row: str) -> None:
    """Given pairs, all or mined: theirs with ``indices_tuple``, ours with ``relation``; without either, an exception."""
    embeddings, labels = make_batch("balanced", seed=4)
    mined = their_miners.MultiSimilarityMiner(0.3)(embeddings, labels)
    for pairs in (their_utils.get_all_pairs_indices(labels), mined):
        relation = Pairs(*pairs)
        ours, other = ROWS[row].ours(), ROWS[row].theirs()
        if pairs is mined and row == "lifted-structure":
            continue  # a pair is unordered to ours
        found = gradients(lambda x, f=ours, r=relation: f(x, relation=r), embeddings)
        expected = gradients(lambda x, f=other, p=pairs: f(x, indices_tuple=p), embeddings)
        assert_equal(found, expected)
    with pytest.raises(TypeError, match="labels must be given unless relation is given"):
        ROWS[row].ours()(embeddings)


# Losses that PML has for one set and all of its pairs or samples only ---------------------------------------------------

OF_ONE_SET = {
    "ranked-list": Row(losses.RankedListLoss, lambda: theirs.RankedListLoss(0.4, 10, reducer=MeanReducer())),
    "ranked-list-weighted": Row(
        lambda: losses.RankedListLoss(0.6, 4.0, 0.3, 1.2, 3.0),
        lambda: theirs.RankedListLoss(0.6, 4.0, 0.3, 1.2, 3.0, reducer=MeanReducer()),
    ),
    "threshold-consistent-margin": Row(losses.ThresholdConsistentMarginLoss, theirs.ThresholdConsistentMarginLoss),
    "threshold-consistent-margin-weighted": Row(
        lambda: losses.ThresholdConsistentMarginLoss(0.8, 0.3, 2.0, 0.5),
        lambda: theirs.ThresholdConsistentMarginLoss(2.0, 0.5, 0.8, 0.3),
    ),
}


@pytest.mark.filterwarnings("ignore:Values of Tp or Tn are too high")
@loop_over("seed", range(3))
@loop_over("batch", ["balanced", "ragged"])
@pytest.mark.parametrize("row", OF_ONE_SET)
def test_of_one_set(row: str, batch: str, seed: int) -> None:
    batches = make_batch(batch, seed=seed)
    assert_equal(gradients(OF_ONE_SET[row].ours(), *batches), gradients(OF_ONE_SET[row].theirs(), *batches))


@loop_over("batch", ["balanced", "ragged", "singletons"])
def test_instance_loss(batch: str) -> None:
    """Every sample is its own class: theirs with labels that are all different."""
    embeddings, labels = make_batch(batch)
    found = gradients(lambda x: losses.InstanceLoss()(x, labels), embeddings)
    assert_equal(found, gradients(lambda x: theirs.InstanceLoss()(x, torch.arange(len(x))), embeddings))
    if batch != "singletons":  # a class index is a column there, which means another sample
        assert theirs.InstanceLoss()(embeddings, labels) > found[0] + 1.0


def test_dynamic_soft_margin() -> None:
    """The value and the histogram, from an empty one and after that; their gradient also flows through the histogram."""
    ours, other = losses.DynamicSoftMarginLoss().double(), theirs.DynamicSoftMarginLoss()
    for seed in range(3):
        embeddings, labels = make_batch("ragged", seed=seed)
        found, expected = gradients(ours, embeddings, labels), gradients(other, embeddings, labels)
        assert_equal(found[0], expected[0])
        assert_equal(ours.histogram, other.hist_.detach())
        assert not torch.allclose(found[1], expected[1], rtol=1e-3)
        other.hist_ = other.hist_.detach()  # otherwise their graph grows with every batch


def test_dynamic_soft_margin_of_a_far_positive() -> None:
    """A violation in the last bin: its mass stays there, where theirs has an index that does not exist."""
    embeddings, labels = torch.tensor([[1.0, 0.0], [-1.0, 0.1], [1.0, 0.1]]).double(), torch.tensor([0, 0, 1])
    assert torch.isfinite(losses.DynamicSoftMarginLoss()(embeddings, labels))
    with pytest.raises((IndexError, RuntimeError)):
        theirs.DynamicSoftMarginLoss()(embeddings, labels)


def test_several_losses() -> None:
    """Theirs are a list with weights, miners and a regularizer of the embeddings; ours a sum of losses."""
    embeddings, labels = make_batch("ragged")
    ours = losses.WeightedSum(
        {
            losses.ContrastiveLoss(): 1.0,
            losses.MultiSimilarityLoss(miner=miners.MultiSimilarityMiner()): 0.23,
            losses.EmbeddingNorm(): 0.5,
        }
    )
    other = theirs.MultipleLosses(
        losses=[
            theirs.ContrastiveLoss(
                1.0, 0.5, distance=COSINE, embedding_regularizer=LpRegularizer(), embedding_reg_weight=0.5
            ),
            theirs.MultiSimilarityLoss(),
        ],
        weights=[1, 0.23],
        miners=[None, their_miners.MultiSimilarityMiner()],
    )
    assert_equal(gradients(ours, embeddings, labels), gradients(other, embeddings, labels))
    with pytest.raises(ValueError, match="losses must be a mapping from at least one loss to its weight"):
        losses.WeightedSum([losses.ContrastiveLoss()])


# Who counts --------------------------------------------------------------------------------------------------------


def test_circle_averages_over_nonzero_anchors() -> None:
    """An anchor whose loss rounds to zero leaves their mean; it stays in ours, unless we say ``"nonzero"``."""
    embeddings = torch.eye(3, dtype=torch.float64).repeat_interleave(2, dim=0)
    embeddings[5] = torch.tensor([0.6, 0.0, 0.8])
    labels = torch.tensor([0, 0, 1, 1, 2, 2])
    per_anchor = losses.CircleLoss(gamma=4096.0, reduction="none")(embeddings, labels)
    assert (per_anchor == 0.0).sum() == 3
    other = theirs.CircleLoss(gamma=4096.0)(embeddings, labels)
    assert_equal(losses.CircleLoss(gamma=4096.0, reduction="nonzero")(embeddings, labels), other)
    assert_equal(losses.CircleLoss(gamma=4096.0)(embeddings, labels), other / 2)


def test_generalized_lifted_structure_of_an_anchor_without_positives() -> None:
    """An empty side is a zero to them, so that the singleton pays for its negatives; to us it does not count."""
    embeddings, labels = make_batch("ragged")
    other = theirs.GeneralizedLiftedStructureLoss(0.0, 0.5, distance=COSINE)(embeddings, labels)
    ours = losses.GeneralizedLiftedStructureLoss(reduction="sum")(embeddings, labels)
    lone = torch.relu(COSINE(embeddings[:1], embeddings[1:]).logsumexp(dim=1)).sum()
    assert lone > 0.0
    assert_equal((ours + lone) / len(labels), other)


@pytest.mark.parametrize("name", ["NTXentLoss", "TupletMarginLoss"])
def test_positive_pair_without_negatives(name: str) -> None:
    """They count it as a zero; we do not count it."""
    embeddings, labels = make_batch("ragged")
    pairs = [torch.tensor(index) for index in ([1, 3], [2, 4], [1, 1], [0, 3])]
    other = getattr(theirs, name)()(embeddings, labels, tuple(pairs))
    assert_equal(getattr(losses, name)()(embeddings, relation=Pairs(*pairs)), 2 * other)


def test_sup_con_of_an_anchor_without_negatives() -> None:
    """They let its positives compete with each other; we leave it out, as there is nothing to tell them from."""
    embeddings, labels = make_batch("ragged")
    pairs = [torch.tensor(index) for index in ([1, 3, 3], [2, 4, 5], [1, 1], [0, 3])]
    other = theirs.SupConLoss()(embeddings, labels, tuple(pairs))
    logits = COSINE(embeddings[3:4], embeddings[4:6])[0] / 0.1
    lone = logits.logsumexp(dim=0) - logits.mean()
    assert_equal(losses.SupConLoss()(embeddings, relation=Pairs(*pairs)) + lone, 2 * other)


def test_one_pair_is_a_loss() -> None:
    """They return zero when there is at most one pair of each kind."""
    embeddings, labels = make_batch("ragged")
    pairs = [torch.tensor([index]) for index in (1, 2, 1, 0)]
    assert theirs.ContrastiveLoss(1.0, -1.0, distance=COSINE)(embeddings, labels, tuple(pairs)) == 0.0
    S = COSINE(embeddings)
    ours = losses.ContrastiveLoss(1.0, -1.0)(embeddings, relation=Pairs(*pairs))
    assert_equal(ours, 1.0 - S[1, 2] + S[1, 0] + 1.0)


def test_triplets_given_to_a_pair_loss() -> None:
    """They count a pair once for every triplet that it is in; we count it once."""
    embeddings, labels = make_batch("ragged")
    anchors, positives, negatives = miners.SemiHardMiner(0.5).triplets(embeddings, labels)
    ours = losses.ContrastiveLoss()(embeddings, relation=Triplets(anchors, positives, negatives))
    other = theirs.ContrastiveLoss(1.0, 0.5, distance=COSINE)
    pairs = [*torch.stack([anchors, positives]).unique(dim=1), *torch.stack([anchors, negatives]).unique(dim=1)]
    assert_equal(ours, other(embeddings, labels, tuple(pairs)))
    S = COSINE(embeddings)
    pull, push = 1.0 - S[anchors, positives], torch.relu(S[anchors, negatives] - 0.5)
    repeated = other(embeddings, labels, (anchors, positives, negatives))
    assert_equal(repeated, pull.mean() + push[push > 0.0].mean())
    assert abs(float(ours - repeated)) > 0.01


@pytest.mark.parametrize("name", ["NCALoss", "FastAPLoss"])
def test_triplets_given_to_nca_or_fast_ap(name: str) -> None:
    """To them a miner's choice is a weight per anchor, its frequency; to us it is the pairs."""
    embeddings, labels = make_batch("balanced")
    chosen = miners.BatchHardMiner().triplets(embeddings, labels)
    weights = their_utils.convert_to_weights(chosen, labels, torch.float64)
    per_anchor = getattr(losses, name)(reduction="none")(embeddings, labels)
    assert_equal((weights * per_anchor).mean(), getattr(theirs, name)()(embeddings, labels, chosen))
    ours = getattr(losses, name)(miner=miners.BatchHardMiner())(embeddings, labels)
    assert_equal(ours, getattr(losses, name)()(embeddings, relation=Triplets(*chosen)))


def test_references_that_are_the_embeddings() -> None:
    """They leave an anchor out of its references if both are one object in memory; we, if no references are given."""
    embeddings, labels = make_batch("balanced")
    ours, other = losses.NTXentLoss(), theirs.NTXentLoss()
    assert_equal(other(embeddings, labels, None, embeddings, labels), ours(embeddings, labels))
    copies = embeddings.clone(), labels.clone()
    assert_equal(other(embeddings, labels, None, *copies), ours(embeddings, labels, embeddings, labels))


# Memories ----------------------------------------------------------------------------------------------------------

MEMORIES = {
    "contrastive": (losses.ContrastiveLoss, None, lambda: theirs.ContrastiveLoss(1.0, 0.5, distance=COSINE), None),
    "nt-xent": (losses.NTXentLoss, None, theirs.NTXentLoss, None),
    "contrastive-mined": (
        losses.ContrastiveLoss,
        miners.MultiSimilarityMiner(0.2),
        lambda: theirs.ContrastiveLoss(1.0, 0.5, distance=COSINE),
        lambda: their_miners.MultiSimilarityMiner(0.2),
    ),
    "triplet-band": (
        lambda: losses.TripletLoss(0.3),
        miners.SemiHardMiner(0.2),
        lambda: theirs.TripletMarginLoss(0.3, distance=COSINE),
        lambda: their_miners.TripletMarginMiner(0.2, type_of_triplets="semihard", distance=COSINE),
    ),
    "multi-similarity-mined": (
        losses.MultiSimilarityLoss,
        miners.PairMarginMiner(0.6, 0.1),
        theirs.MultiSimilarityLoss,
        lambda: their_miners.PairMarginMiner(0.6, 0.1, distance=COSINE),
    ),
}


@pytest.mark.parametrize("name", MEMORIES)
def test_memories(name: str) -> None:
    """The same values while the queue fills and after it wraps; with keys, the same gradient of the anchors too.

    Their memory holds the batch, ours is compared beside it: theirs has room for one batch more.
    """
    make, miner, make_theirs, their_miner = MEMORIES[name]
    is_key = torch.arange(12) % 2 == 0
    for enqueue, stored in ((None, 12), (is_key, 6)):
        ours = losses.CrossBatchMemory(make(), size=24, miner=miner)
        chooser = None if their_miner is None else their_miner()
        other = theirs.CrossBatchMemory(make_theirs(), embedding_size=5, memory_size=24 + stored, miner=chooser)
        for seed in range(6):
            embeddings, labels = make_batch("balanced", seed=seed)
            options = {} if enqueue is None else {"enqueue": enqueue}
            theirs_options = {} if enqueue is None else {"enqueue_mask": enqueue}
            keys = embeddings[is_key]
            outcomes = []
            for memory, more in ((ours, options), (other, theirs_options)):
                leaf = embeddings.clone().requires_grad_()
                rows = leaf if enqueue is None else leaf.index_copy(0, is_key.nonzero()[:, 0], keys)
                value = memory(rows, labels, **more)
                outcomes.append([value.detach(), *torch.autograd.grad(value, leaf)][: 1 if enqueue is None else 2])
            assert_equal(*outcomes)
            assert outcomes[0][0] > 0.0


def test_a_memory_keeps_the_gradient_between_samples_of_a_batch() -> None:
    """Theirs compares a batch with detached copies of itself: half of the gradient is missing."""
    embeddings, labels = make_batch("balanced")
    ours = losses.CrossBatchMemory(losses.ContrastiveLoss(), size=50)
    other = theirs.CrossBatchMemory(theirs.ContrastiveLoss(1.0, 0.5, distance=COSINE), embedding_size=5, memory_size=50)
    assert_equal(gradients(ours, embeddings, labels)[1], 2.0 * gradients(other, embeddings, labels)[1])


# Losses that are something else ------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", ["balanced", "ragged"])
def test_n_pairs_of_one_pair_per_class(batch: str) -> None:
    """Theirs takes one positive pair of each class, and unit vectors; ours says so with references and a cosine."""
    embeddings, labels = make_batch(batch)
    anchors, positives = their_utils.convert_to_pos_pairs_with_unique_labels(None, labels)
    for similarity, distance in (("cosine", None), ("dot", DotProductSimilarity(normalize_embeddings=False))):
        ours = losses.NPairsLoss(similarity=similarity)
        found = gradients(lambda x, f=ours: f(x[anchors], labels[anchors], x[positives], labels[positives]), embeddings)
        assert_equal(found, gradients(theirs.NPairsLoss(distance=distance), embeddings, labels))
    assert abs(float(losses.NPairsLoss()(embeddings, labels) - found[0])) > 0.1


def test_angular_normalizes_negatives() -> None:
    """Theirs depends on the length of negatives, ours on no length."""
    embeddings, labels = make_batch("balanced")
    ours, other = losses.AngularLoss(), theirs.AngularLoss()
    assert_equal(ours(3.0 * embeddings, labels), other(normalize(embeddings), labels))
    assert other(3.0 * embeddings, labels) > 2.0 * other(embeddings, labels)


def test_angular_ignores_mined_negatives() -> None:
    """Given pairs, theirs still takes every reference of another class for a negative."""
    embeddings, labels = make_batch("balanced")
    pairs = their_utils.get_all_pairs_indices(labels)
    fewer = *pairs[:2], pairs[2][:1], pairs[3][:1]
    other = theirs.AngularLoss()
    assert_equal(other(embeddings, labels, fewer), other(embeddings, labels))


def test_margin_regularizer_per_class() -> None:
    """Ours is ν times the mean β; theirs adds the β of every triplet's anchor, divided by the non-zero terms."""
    embeddings, labels = make_batch("ragged")
    total, mean = (losses.MarginLoss(beta=1.25, reduction=r)(embeddings, labels) for r in ("sum", "nonzero"))
    triplets = len(their_utils.get_all_triplets_indices(labels)[0])
    options = {"beta": 1.25, "num_classes": 10, "nu": 0.1, "learn_beta": True}
    assert_equal(losses.MarginLoss(**options)(embeddings, labels), mean + 0.1 * 1.25, 1e-7)
    assert_equal(theirs.MarginLoss(**options)(embeddings, labels), mean + 0.1 * 1.25 * triplets * mean / total, 1e-7)


def test_margin_defaults() -> None:
    """Our β is learned unless told otherwise; a fixed one is saved with the loss, theirs is not."""
    assert [name for name, _ in losses.MarginLoss().named_parameters()] == ["beta"]
    assert list(losses.MarginLoss(learn_beta=False).state_dict()) == ["beta"]
    assert list(theirs.MarginLoss().state_dict()) == []


def test_histogram_of_two_singletons() -> None:
    """Theirs goes through triplets, so that a pair of two classes without positives is missing; ours has it."""
    embeddings = make_batch("balanced").embeddings[:4]
    labels = torch.tensor([0, 0, 1, 2])
    positive, negative = (labels[:, None] == labels) & ~torch.eye(4, dtype=torch.bool), labels[:, None] != labels
    assert_equal(
        losses.HistogramLoss()(embeddings, relation=Masks(positive, negative)),
        losses.HistogramLoss()(embeddings, labels),
    )
    negative[2, 3] = negative[3, 2] = False
    other = TheirHistogram()(embeddings, labels)
    assert_equal(losses.HistogramLoss()(embeddings, relation=Masks(positive, negative)), other)
    assert abs(float(losses.HistogramLoss()(embeddings, labels) - other)) > 0.01


@pytest.mark.parametrize("batch", ["balanced", "ragged"])
def test_nca_of_scikit_learn(batch: str) -> None:
    """Its objective is the sum of the probabilities of which our units are minus the logarithms; so is its gradient."""
    points, labels = make_batch(batch)
    transformation = torch.randn(3, 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64) / 2.0
    loss = losses.NCALoss(similarity=SquaredEuclidean(normalize=False), reduction="none")
    has_positive = (labels[:, None] == labels).sum(dim=1) > 1  # a singleton is a unit of neither

    def objective(components: Tensor) -> Tensor:
        return loss(points @ components.T, labels).neg().exp()[has_positive].sum()

    value, gradient = gradients(objective, transformation)
    peer = NeighborhoodComponentsAnalysis()
    peer.n_iter_ = 1  # it prints a header at 0
    same = (labels[:, None] == labels).numpy()
    expected, expected_gradient = peer._loss_grad_lbfgs(transformation.numpy().ravel(), points.numpy(), same)
    np.testing.assert_allclose(value, expected, rtol=1e-10)
    np.testing.assert_allclose(gradient.ravel(), expected_gradient, rtol=1e-10, atol=1e-10)


# Precision and extremes --------------------------------------------------------------------------------------------


def test_nt_xent_of_a_very_bad_pair() -> None:
    """Their epsilon inside the logarithm caps the loss, at 87 in float32, and such a pair gets no gradient at all."""
    anchors = torch.tensor([[1.0, 0.0], [1.0, 0.0]]), torch.tensor([0, 0])
    references = torch.tensor([[-0.8, 0.6], [0.6, 0.8]]), torch.tensor([0, 1])
    value, gradient, _ = gradients(theirs.NTXentLoss(0.01), *anchors, None, *references)
    assert_equal(value, torch.tensor(torch.finfo(torch.float32).tiny).log().neg(), 1e-6)
    assert not gradient.any()
    value, gradient, _ = gradients(losses.NTXentLoss(0.01), *anchors, *references)
    assert_equal(value, torch.tensor(140.0), 1e-6)
    assert gradient.any(dim=1).all()


def test_nca_of_a_very_bad_anchor() -> None:
    """They drop anchors whose probability underflows, which are the worst; ours keeps them."""
    embeddings = torch.tensor([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]])
    labels = torch.tensor([0, 0, 1])
    assert not theirs.NCALoss(100.0)(embeddings, labels) > 0.0
    assert_equal(losses.NCALoss(100.0)(embeddings, labels), torch.tensor(200.0), 1e-6)


def test_half_precision() -> None:
    """We compute in float32; they stay in float16, where the cap of NT-Xent is already at 9.7."""
    embeddings, labels = make_batch("ragged")
    half = embeddings.half()
    exact = losses.NTXentLoss()(half.double(), labels)
    ours, other = losses.NTXentLoss()(half, labels), theirs.NTXentLoss()(half, labels)
    assert ours.dtype == torch.float32
    assert other.dtype == torch.float16
    assert_equal(ours.double(), exact, 1e-5)
    assert other < 0.9 * exact


def test_zero_and_tiny_embeddings() -> None:
    """They divide by a norm of at least 1e-12: a zero row gets an enormous gradient, a tiny one is not normalized."""
    embeddings, labels = make_batch("balanced")
    ours, other = losses.ContrastiveLoss(), theirs.ContrastiveLoss(1.0, 0.5, distance=COSINE)
    zero, tiny = embeddings.clone(), embeddings.clone()
    zero[0], tiny[0] = 0.0, 1e-14 * embeddings[0]
    assert not gradients(ours, zero, labels)[1][0].any()
    assert gradients(other, zero, labels)[1][0].abs().max() > 1e9
    assert_equal(ours(tiny, labels), ours(embeddings, labels))
    assert abs(float(other(tiny, labels) - other(embeddings, labels))) > 0.01


def test_equal_embeddings_have_distance_zero() -> None:
    """From 26 rows on their distances come from a matrix product, and rounding is a distance of its own."""
    row = torch.randn(1, 16, generator=torch.Generator().manual_seed(0))
    embeddings = row.expand(30, -1).clone()
    assert not Euclidean()(embeddings).any()
    assert LpDistance()(embeddings).max() > 1e-4


def test_equal_embeddings_have_a_finite_gradient() -> None:
    """The arc cosine of 1 has an infinite slope: NaN in their tuplet margin loss."""
    embeddings, labels = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.8, 0.6]]), torch.tensor([0, 0, 1])
    assert gradients(theirs.TupletMarginLoss(), embeddings, labels)[1].isnan().any()
    assert gradients(losses.TupletMarginLoss(), embeddings, labels)[1].isfinite().all()


def test_histogram_of_equal_embeddings() -> None:
    """A similarity of 1 lies behind their last bin."""
    embeddings, labels = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.8, 0.6]]), torch.tensor([0, 0, 1])
    with pytest.raises(RuntimeError, match="out of bounds"):
        theirs.HistogramLoss()(embeddings, labels)
    assert losses.HistogramLoss()(embeddings, labels) == 0.0


def test_labels_are_integers() -> None:
    """They compare any labels; we take integers, because equality of floats is an accident."""
    embeddings, labels = make_batch("balanced")
    assert_equal(theirs.NTXentLoss()(embeddings, labels / 3), losses.NTXentLoss()(embeddings, labels))
    with pytest.raises(TypeError, match="integer dtype"):
        losses.NTXentLoss()(embeddings, labels / 3)
