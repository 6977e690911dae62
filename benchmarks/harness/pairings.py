"""What is measured: each loss of `likewise`, and how a user of pytorch-metric-learning would ask for the same thing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from likewise import losses, miners

try:
    from pytorch_metric_learning import distances
    from pytorch_metric_learning import losses as pml
    from pytorch_metric_learning import miners as pml_miners
except ModuleNotFoundError as missing:
    # a bare GPU machine may not have it, or not what it needs; then its side of every row says so
    PEER_MISSING = str(missing)
else:
    PEER_MISSING = ""

Call = Callable[[Tensor, Tensor], Tensor]

SAMPLES_PER_CLASS = 4


@dataclass(frozen=True)
class Pairing:
    """One loss, on both sides.

    Args:
        name: what the row is called.
        ours: makes our loss.
        theirs: makes theirs; ``None`` where there is no such loss.
        mined_by: makes the miner that is called before their loss.
        growth: the power of the batch size with which their time and memory grow, for predictions.
        same_problem: whether both sides compute the same number from the same pairs, up to a random draw.
        random: whether miners draw; then values are compared on the triplets that ours drew.
        note: what a reader must know about the row.
    """

    name: str
    ours: Callable[[], nn.Module]
    theirs: Callable[[], nn.Module] | None = None
    mined_by: Callable[[], Any] | None = None
    growth: int = 2
    same_problem: bool = True
    random: bool = False
    note: str = ""

    def call(self, side: str, device: str) -> Call:
        """One side as a function of embeddings and labels, mining included."""
        if side == "ours":
            return self.ours().to(device)
        assert self.theirs is not None, f"{self.name} has no peer"
        if PEER_MISSING:
            raise NotImplementedError(PEER_MISSING)
        loss = self.theirs().to(device)
        if self.mined_by is None:
            return loss
        miner = self.mined_by()
        return lambda embeddings, labels: loss(embeddings, labels, miner(embeddings, labels))

    def call_on_our_triplets(self, device: str) -> Call:
        """Their loss on the triplets that our random miner draws next."""
        assert self.theirs is not None, f"{self.name} has no peer"
        loss = self.theirs().to(device)
        miner: Any = self.ours().miner
        return lambda embeddings, labels: loss(embeddings, labels, miner.triplets(embeddings, labels))


@dataclass(frozen=True)
class Head:
    """One loss with proxies, on both sides; a pairing once the number of classes and the dimension are known.

    Args:
        name: what the row is called.
        ours: makes our loss from the number of classes and the dimension.
        theirs: makes theirs likewise; ``None`` where there is no such loss.
    """

    name: str
    ours: Callable[[int, int], nn.Module]
    theirs: Callable[[int, int], nn.Module] | None = None

    def pairing(self, classes: int, dim: int) -> Pairing:
        """Both sides for so many classes; both start from the same proxies."""

        def ours() -> nn.Module:
            torch.manual_seed(0)
            return self.ours(classes, dim)

        def theirs() -> nn.Module:
            assert self.theirs is not None
            loss, start = self.theirs(classes, dim), ours().get_parameter("proxies")
            (weights,) = loss.parameters()
            with torch.no_grad():
                weights.copy_(start if weights.shape == start.shape else start.T)
            return loss

        note = f"{classes:,} classes"
        return Pairing(self.name, ours, None if self.theirs is None else theirs, growth=1, note=note)


def make_batch(size: int, dim: int, device: str = "cpu", seed: int = 0) -> tuple[Tensor, Tensor]:
    """Unit vectors in float32, four per class, as from a network early in training.

    A direction that all share, one per class, and noise: positives have cosines around 0.5, negatives around 0.4, so
    that every loss and every miner finds active pairs.
    """
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(size) // SAMPLES_PER_CLASS
    shared = torch.randn(1, dim, generator=generator)
    centers = torch.randn(int(labels[-1]) + 1, dim, generator=generator)
    noise = torch.randn(size, dim, generator=generator)
    embeddings = 0.8**0.5 * shared + 0.2**0.5 * centers[labels] + noise
    # in no order: nobody may profit from classes that stand together
    order = torch.randperm(size, generator=generator)
    return nn.functional.normalize(embeddings)[order].to(device), labels[order].to(device)


def floor(embeddings: Tensor, _labels: Tensor) -> Tensor:
    """The least that a loss on the whole matrix can cost: the similarities, and a slope for each of them."""
    units = nn.functional.normalize(embeddings)
    return (units @ units.T).sum()


class OnePairPerClass(nn.Module):
    """N-pairs loss on the first two samples of each class, the problem that pytorch-metric-learning solves."""

    def __init__(self) -> None:
        super().__init__()
        self.loss = losses.NPairsLoss(similarity="cosine")

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """The loss of one pair per class; the other positives are the negatives of an anchor."""
        ordered, order = labels.sort(stable=True)
        changes = (ordered[1:] != ordered[:-1]).nonzero().squeeze(1) + 1
        starts = torch.cat([changes.new_zeros(1), changes])
        anchors = starts[torch.diff(starts, append=starts.new_tensor([len(labels)])) > 1]
        positives = embeddings[order[anchors + 1]]
        value: Tensor = self.loss(embeddings[order[anchors]], references=positives, relation="paired")
        return value


def _cosine() -> distances.CosineSimilarity:
    return distances.CosineSimilarity()


PAIRINGS: tuple[Pairing, ...] = (
    Pairing(
        "Contrastive",
        lambda: losses.ContrastiveLoss(1.0, 0.5),
        lambda: pml.ContrastiveLoss(pos_margin=1.0, neg_margin=0.5, distance=_cosine()),
    ),
    Pairing(
        "Triplet, all",
        lambda: losses.TripletLoss(0.1),
        lambda: pml.TripletMarginLoss(margin=0.1, distance=_cosine()),
        growth=3,
    ),
    Pairing(
        "Triplet, semi-hard",
        lambda: losses.TripletLoss(0.1, miner=miners.SemiHardMiner(0.1)),
        lambda: pml.TripletMarginLoss(margin=0.1, distance=_cosine()),
        lambda: pml_miners.TripletMarginMiner(margin=0.1, type_of_triplets="semihard", distance=_cosine()),
        growth=3,
    ),
    Pairing(
        "Triplet, soft",
        lambda: losses.TripletLoss(0.1, soft=True),
        lambda: pml.TripletMarginLoss(margin=0.1, smooth_loss=True, distance=_cosine()),
        growth=3,
    ),
    Pairing(
        "Margin, all triplets",
        lambda: losses.MarginLoss(0.2, 1.2),
        lambda: pml.MarginLoss(margin=0.2, beta=1.2, learn_beta=True),
        growth=3,
    ),
    Pairing(
        "Margin + distance weighted",
        lambda: losses.MarginLoss(0.2, 1.2, miner=miners.DistanceWeightedMiner(0.5, 1.4)),
        lambda: pml.MarginLoss(margin=0.2, beta=1.2, learn_beta=True),
        lambda: pml_miners.DistanceWeightedMiner(cutoff=0.5, nonzero_loss_cutoff=1.4),
        random=True,
        note="random negatives; theirs draws as many triplets per anchor as its class has members, ours one fewer",
    ),
    Pairing(
        "Multi-similarity",
        lambda: losses.MultiSimilarityLoss(2.0, 50.0, 0.5),
        lambda: pml.MultiSimilarityLoss(alpha=2.0, beta=50.0, base=0.5),
    ),
    Pairing(
        "Multi-similarity + miner",
        lambda: losses.MultiSimilarityLoss(2.0, 50.0, 0.5, miner=miners.MultiSimilarityMiner(0.1)),
        lambda: pml.MultiSimilarityLoss(alpha=2.0, beta=50.0, base=0.5),
        lambda: pml_miners.MultiSimilarityMiner(epsilon=0.1),
    ),
    Pairing(
        "NT-Xent",
        lambda: losses.NTXentLoss(0.07),
        lambda: pml.NTXentLoss(temperature=0.07),
        growth=3,
    ),
    Pairing("SupCon", lambda: losses.SupConLoss(0.1), lambda: pml.SupConLoss(temperature=0.1)),
    Pairing("Circle", lambda: losses.CircleLoss(0.4, 80.0), lambda: pml.CircleLoss(m=0.4, gamma=80.0)),
    Pairing(
        "Lifted structure",
        lambda: losses.LiftedStructureLoss(1.0),
        lambda: pml.LiftedStructureLoss(neg_margin=1.0, pos_margin=0.0),
        growth=3,
    ),
    Pairing(
        "Generalized lifted",
        lambda: losses.GeneralizedLiftedStructureLoss(0.5),
        lambda: pml.GeneralizedLiftedStructureLoss(neg_margin=0.0, pos_margin=0.5, distance=_cosine()),
    ),
    Pairing("FastAP", lambda: losses.FastAPLoss(10), lambda: pml.FastAPLoss(num_bins=10)),
    Pairing("Angular", lambda: losses.AngularLoss(40.0), lambda: pml.AngularLoss(alpha=40.0)),
    Pairing(
        "Tuplet margin",
        lambda: losses.TupletMarginLoss(5.73, 64.0),
        lambda: pml.TupletMarginLoss(margin=5.73, scale=64.0),
        growth=3,
    ),
    Pairing(
        "Intra-pair variance",
        lambda: losses.IntraPairVarianceLoss(0.01, 0.01),
        lambda: pml.IntraPairVarianceLoss(pos_eps=0.01, neg_eps=0.01),
    ),
    Pairing("NCA", lambda: losses.NCALoss(1.0), lambda: pml.NCALoss(softmax_scale=1.0)),
    Pairing(
        "N-pairs",
        losses.NPairsLoss,
        lambda: pml.NPairsLoss(),
        same_problem=False,
        note="theirs looks at one pair per class, ours at all pairs",
    ),
    Pairing("N-pairs, one pair per class", OnePairPerClass, lambda: pml.NPairsLoss()),
    Pairing(
        "SNR contrastive",
        lambda: losses.SNRContrastiveLoss(0.0, 1.0),
        lambda: pml.SignalToNoiseRatioContrastiveLoss(pos_margin=0.0, neg_margin=1.0),
    ),
    Pairing("Histogram", lambda: losses.HistogramLoss(100), lambda: pml.HistogramLoss(n_bins=100)),
    Pairing("Binomial deviance", lambda: losses.BinomialDevianceLoss(2.0, 50.0, 0.5)),
    Pairing("RAW", lambda: losses.RAWLoss(2.0, 50.0, 0.5, 0.1)),
    Pairing("Quadruplet", lambda: losses.QuadrupletLoss(0.1, 0.05)),
)

HEADS: tuple[Head, ...] = (
    Head("Softmax", lambda c, d: losses.SoftmaxLoss(c, d)),
    Head(
        "Normalized softmax",
        lambda c, d: losses.NormalizedSoftmaxLoss(c, d, temperature=0.05),
        lambda c, d: pml.NormalizedSoftmaxLoss(c, d, temperature=0.05),
    ),
    Head("ProxyNCA", lambda c, d: losses.ProxyNCALoss(c, d)),
    # what is called ProxyNCA there has the positive in its denominator: ProxyNCA++ with T = 1 / scale
    Head(
        "ProxyNCA++",
        lambda c, d: losses.ProxyNCAPPLoss(c, d, temperature=1 / 8),
        lambda c, d: pml.ProxyNCALoss(c, d, softmax_scale=8),
    ),
    Head("SphereFace", lambda c, d: losses.SphereFaceLoss(c, d), lambda c, d: pml.SphereFaceLoss(c, d)),
    Head("CosFace", lambda c, d: losses.CosFaceLoss(c, d), lambda c, d: pml.CosFaceLoss(c, d)),
    Head("ArcFace", lambda c, d: losses.ArcFaceLoss(c, d), lambda c, d: pml.ArcFaceLoss(c, d)),
    Head(
        "Sub-center ArcFace",
        lambda c, d: losses.SubCenterArcFaceLoss(c, d, centers=3),
        lambda c, d: pml.SubCenterArcFaceLoss(num_classes=c, embedding_size=d, sub_centers=3),
    ),
    # its regularizer is an argument of its own there; tau is ours
    Head(
        "SoftTriple",
        lambda c, d: losses.SoftTripleLoss(c, d, centers=10, tau=0.0),
        lambda c, d: pml.SoftTripleLoss(c, d, centers_per_class=10),
    ),
    Head("Proxy-Anchor", lambda c, d: losses.ProxyAnchorLoss(c, d), lambda c, d: pml.ProxyAnchorLoss(c, d)),
    Head("Proxy repulsion", lambda c, d: losses.ProxyRepulsionLoss(c, d)),
    Head("ProxyGML", lambda c, d: losses.ProxyGMLLoss(c, d)),
)
"""Losses with proxies: `Head.pairing` makes rows of them."""

HEAD_CLASSES = 1000
"""Classes of the heads in the table of the CPU."""


def find(name: str, dim: int, classes: int = HEAD_CLASSES) -> Pairing:
    """The row of that name; ``classes`` are those of a head."""
    for pairing in PAIRINGS:
        if pairing.name == name:
            return pairing
    return next(head for head in HEADS if head.name == name).pairing(classes, dim)
