"""Miners: which pairs or triplets of a batch to learn from."""

from likewise.miners.base import Miner, PairMiner, TripletMiner
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
