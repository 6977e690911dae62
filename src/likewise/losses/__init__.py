"""Losses: declarations over one similarity matrix."""

from likewise.losses.base import PairLoss
from likewise.losses.direction import DirectionRegularized
from likewise.losses.gathered import Gathered
from likewise.losses.memory import CrossBatchMemory
from likewise.losses.neighborhood import NCALoss, NPairsLoss, NTXentLoss, SupConLoss, TupletMarginLoss
from likewise.losses.pair import (
    BinomialDevianceLoss,
    CircleLoss,
    ContrastiveLoss,
    GeneralizedLiftedStructureLoss,
    IntraPairVarianceLoss,
    MultiSimilarityLoss,
    RAWLoss,
    SNRContrastiveLoss,
)
from likewise.losses.proxy import ProxyAnchorLoss, ProxyGMLLoss, ProxyNCALoss, ProxyNCAPPLoss, ProxyRepulsionLoss
from likewise.losses.proxy_base import Between, ProxyLoss, cross_entropy
from likewise.losses.ranking import FastAPLoss, HistogramLoss
from likewise.losses.sharded import ShardedProxies
from likewise.losses.softmax import (
    ArcFaceLoss,
    CosFaceLoss,
    NormalizedSoftmaxLoss,
    SoftmaxLoss,
    SoftTripleLoss,
    SphereFaceLoss,
    SubCenterArcFaceLoss,
)
from likewise.losses.structured import AngularLoss, LiftedStructureLoss
from likewise.losses.triplet import MarginLoss, QuadrupletLoss, TripletLoss
from likewise.losses.weighted import WeightedPairLoss
from likewise.losses.wrappers import (
    EmbeddingNorm,
    LanguageGuidance,
    Matryoshka,
    WeightedSum,
    ZeroMean,
)

__all__ = [
    "AngularLoss",
    "ArcFaceLoss",
    "Between",
    "BinomialDevianceLoss",
    "CircleLoss",
    "ContrastiveLoss",
    "CosFaceLoss",
    "CrossBatchMemory",
    "DirectionRegularized",
    "EmbeddingNorm",
    "FastAPLoss",
    "Gathered",
    "GeneralizedLiftedStructureLoss",
    "HistogramLoss",
    "IntraPairVarianceLoss",
    "LanguageGuidance",
    "LiftedStructureLoss",
    "MarginLoss",
    "Matryoshka",
    "MultiSimilarityLoss",
    "NCALoss",
    "NPairsLoss",
    "NTXentLoss",
    "NormalizedSoftmaxLoss",
    "PairLoss",
    "ProxyAnchorLoss",
    "ProxyGMLLoss",
    "ProxyLoss",
    "ProxyNCALoss",
    "ProxyNCAPPLoss",
    "ProxyRepulsionLoss",
    "QuadrupletLoss",
    "RAWLoss",
    "SNRContrastiveLoss",
    "ShardedProxies",
    "SoftTripleLoss",
    "SoftmaxLoss",
    "SphereFaceLoss",
    "SubCenterArcFaceLoss",
    "SupConLoss",
    "TripletLoss",
    "TupletMarginLoss",
    "WeightedPairLoss",
    "WeightedSum",
    "ZeroMean",
    "cross_entropy",
]

# For tools.
from likewise.losses.constructors import fix_hyperparameter as fix_hyperparameter
