"""Losses: declarations over one similarity matrix."""

from likewise.losses.base import PairLoss
from likewise.losses.cascade import Cascade
from likewise.losses.centroids import CentroidTripletLoss
from likewise.losses.class_tree import HierarchicalTripletLoss
from likewise.losses.direction import DirectionRegularized
from likewise.losses.dynamic_margin import DynamicSoftMarginLoss
from likewise.losses.gathered import Gathered
from likewise.losses.graded import AnglELoss, CoSENTLoss
from likewise.losses.guide import GuideMasked
from likewise.losses.hierarchy import CSLLoss, HAPLoss, HAPPIERLoss
from likewise.losses.magnet import MagnetLoss
from likewise.losses.memory import CrossBatchMemory
from likewise.losses.neighborhood import (
    HardnessWeightedNTXentLoss,
    InstanceLoss,
    NCALoss,
    NPairsLoss,
    NTXentLoss,
    SupConLoss,
    TupletMarginLoss,
)
from likewise.losses.optimizer_in_backward import OptimizerInBackward
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
from likewise.losses.pddm import PDDMLoss
from likewise.losses.proxy import (
    P2SGradLoss,
    ProxyAnchorLoss,
    ProxyGMLLoss,
    ProxyNCALoss,
    ProxyNCAPPLoss,
    ProxyRepulsionLoss,
)
from likewise.losses.proxy_base import ProxyLoss, cross_entropy
from likewise.losses.proxy_batches import Between
from likewise.losses.quality import AdaFaceLoss, ElasticArcFaceLoss, ElasticCosFaceLoss, MagFaceLoss
from likewise.losses.ranking import FastAPLoss, HistogramLoss
from likewise.losses.regularizers import (
    AntiCollapseLoss,
    EmbeddingNorm,
    GlobalOrthogonalRegularizationLoss,
    KoLeoLoss,
    ZeroMean,
)
from likewise.losses.self_supervised import VICRegLoss
from likewise.losses.several_centers import SoftTripleLoss, SubCenterArcFaceLoss
from likewise.losses.sharded import ShardedProxies
from likewise.losses.soft_rank import NDCGLoss, PNPLoss, RecallAtKLoss, ROADMAPLoss, SmoothAPLoss, SupAPLoss
from likewise.losses.softmax import (
    ArcFaceLoss,
    CosFaceLoss,
    LargeMarginSoftmaxLoss,
    NormalizedSoftmaxLoss,
    SoftmaxLoss,
    SphereFaceLoss,
)
from likewise.losses.structured import AngularLoss, LiftedStructureLoss
from likewise.losses.synthesis import ProxySynthesis
from likewise.losses.thresholds import RankedListLoss, SigmoidLoss, ThresholdConsistentMarginLoss
from likewise.losses.triplet import MarginLoss, QuadrupletLoss, QuadrupletWiseLoss, TripletLoss
from likewise.losses.weighted import WeightedPairLoss
from likewise.losses.wrappers import Fusion, LanguageGuidance, Matryoshka, WeightedSum

__all__ = [
    "AdaFaceLoss",
    "AnglELoss",
    "AngularLoss",
    "AntiCollapseLoss",
    "ArcFaceLoss",
    "Between",
    "BinomialDevianceLoss",
    "CSLLoss",
    "Cascade",
    "CentroidTripletLoss",
    "CircleLoss",
    "CoSENTLoss",
    "ContrastiveLoss",
    "CosFaceLoss",
    "CrossBatchMemory",
    "DirectionRegularized",
    "DynamicSoftMarginLoss",
    "ElasticArcFaceLoss",
    "ElasticCosFaceLoss",
    "EmbeddingNorm",
    "FastAPLoss",
    "Fusion",
    "Gathered",
    "GeneralizedLiftedStructureLoss",
    "GlobalOrthogonalRegularizationLoss",
    "GuideMasked",
    "HAPLoss",
    "HAPPIERLoss",
    "HardnessWeightedNTXentLoss",
    "HierarchicalTripletLoss",
    "HistogramLoss",
    "InstanceLoss",
    "IntraPairVarianceLoss",
    "KoLeoLoss",
    "LanguageGuidance",
    "LargeMarginSoftmaxLoss",
    "LiftedStructureLoss",
    "MagFaceLoss",
    "MagnetLoss",
    "MarginLoss",
    "Matryoshka",
    "MultiSimilarityLoss",
    "NCALoss",
    "NDCGLoss",
    "NPairsLoss",
    "NTXentLoss",
    "NormalizedSoftmaxLoss",
    "OptimizerInBackward",
    "P2SGradLoss",
    "PDDMLoss",
    "PNPLoss",
    "PairLoss",
    "ProxyAnchorLoss",
    "ProxyGMLLoss",
    "ProxyLoss",
    "ProxyNCALoss",
    "ProxyNCAPPLoss",
    "ProxyRepulsionLoss",
    "ProxySynthesis",
    "QuadrupletLoss",
    "QuadrupletWiseLoss",
    "RAWLoss",
    "ROADMAPLoss",
    "RankedListLoss",
    "RecallAtKLoss",
    "SNRContrastiveLoss",
    "ShardedProxies",
    "SigmoidLoss",
    "SmoothAPLoss",
    "SoftTripleLoss",
    "SoftmaxLoss",
    "SphereFaceLoss",
    "SubCenterArcFaceLoss",
    "SupAPLoss",
    "SupConLoss",
    "ThresholdConsistentMarginLoss",
    "TripletLoss",
    "TupletMarginLoss",
    "VICRegLoss",
    "WeightedPairLoss",
    "WeightedSum",
    "ZeroMean",
    "cross_entropy",
]

# Used by tools.
from likewise.losses.constructors import fix_hyperparameter as fix_hyperparameter

_ELSEWHERE = {
    "GenericPairLoss": "PairLoss",
    "MultipleLosses": "WeightedSum",
    "SignalToNoiseRatioContrastiveLoss": "SNRContrastiveLoss",
    "TripletMarginLoss": "TripletLoss",
}
"""Names of pytorch-metric-learning and the corresponding names here."""


def __getattr__(name: str) -> object:
    from likewise.text import nearest_name

    near = _ELSEWHERE.get(name) or nearest_name(name, __all__)
    hint = "" if near is None else f"; did you mean {near}?"
    raise AttributeError(f"module 'likewise.losses' has no attribute {name!r}{hint}")
