"""Miners: which pairs or triplets of a batch to learn from."""

from likewise.miners.module import Choice, Miner, PairMiner, TripletMiner
from likewise.miners.pairs import MultiSimilarityMiner, PairMarginMiner, ValidTripletMiner
from likewise.miners.triplets import (
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
