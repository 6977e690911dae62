"""Miners: which pairs or triplets of a batch to learn from."""

from likewise.miners.base import Choice, Miner, PairMiner, TripletMiner
from likewise.miners.pair import MultiSimilarityMiner, PairMarginMiner, ValidTripletMiner
from likewise.miners.triplet import (
    BatchHardMiner,
    DistanceWeightedMiner,
    EasyPositiveMiner,
    RandomMiner,
    SemiHardMiner,
)

__all__ = [
    "BatchHardMiner",
    "Choice",
    "DistanceWeightedMiner",
    "EasyPositiveMiner",
    "Miner",
    "MultiSimilarityMiner",
    "PairMarginMiner",
    "PairMiner",
    "RandomMiner",
    "SemiHardMiner",
    "TripletMiner",
    "ValidTripletMiner",
]

# What the other packages use beside the public names.
from likewise.miners.base import NO_POSITIVE as NO_POSITIVE
from likewise.miners.triplet import band_counts as band_counts
