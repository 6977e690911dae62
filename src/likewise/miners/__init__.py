"""Miners: which pairs or triplets of a batch to learn from."""

from likewise.miners.base import MinedCounts, Miner, PairMiner, TripletMiner
from likewise.miners.drawn import DistanceWeightedMiner, RandomMiner
from likewise.miners.easy_hard import BatchEasyHardMiner, BatchHardMiner, EasyPositiveMiner
from likewise.miners.pair import MultiSimilarityMiner, PairMarginMiner, ValidTripletMiner
from likewise.miners.triplet import SemiHardMiner, TripletMarginMiner

__all__ = [
    "BatchEasyHardMiner",
    "BatchHardMiner",
    "DistanceWeightedMiner",
    "EasyPositiveMiner",
    "MinedCounts",
    "Miner",
    "MultiSimilarityMiner",
    "PairMarginMiner",
    "PairMiner",
    "RandomMiner",
    "SemiHardMiner",
    "TripletMarginMiner",
    "TripletMiner",
    "ValidTripletMiner",
]
