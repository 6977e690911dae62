"""Losses: declarations over one similarity matrix."""

from likewise.losses.module import PairLoss
from likewise.losses.nca import NCALoss, NPairsLoss, NTXentLoss, SupConLoss, TupletMarginLoss
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
from likewise.losses.ranking import FastAPLoss, HistogramLoss
from likewise.losses.structured import AngularLoss, LiftedStructureLoss
from likewise.losses.triplet import MarginLoss, QuadrupletLoss, TripletLoss

__all__ = [
    "AngularLoss",
    "BinomialDevianceLoss",
    "CircleLoss",
    "ContrastiveLoss",
    "FastAPLoss",
    "GeneralizedLiftedStructureLoss",
    "HistogramLoss",
    "IntraPairVarianceLoss",
    "LiftedStructureLoss",
    "MarginLoss",
    "MultiSimilarityLoss",
    "NCALoss",
    "NPairsLoss",
    "NTXentLoss",
    "PairLoss",
    "QuadrupletLoss",
    "RAWLoss",
    "SNRContrastiveLoss",
    "SupConLoss",
    "TripletLoss",
    "TupletMarginLoss",
]
