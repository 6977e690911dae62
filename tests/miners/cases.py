"""One row for each miner: the class, and the oracle that it must equal."""

from __future__ import annotations

from functools import partial

from likewise import miners
from likewise.testing import MinerCase
from tests.oracles import miners as oracles

CASES = [
    MinerCase(miners.MultiSimilarityMiner, oracles.multi_similarity),
    MinerCase(
        partial(miners.MultiSimilarityMiner, 0.4),
        partial(oracles.multi_similarity, epsilon=0.4),
        name="MultiSimilarityMiner-wide",
    ),
    MinerCase(miners.ValidTripletMiner, oracles.valid_triplet),
    MinerCase(
        partial(miners.PairMarginMiner, 0.7, 0.1),
        partial(oracles.pair_margin, positive_margin=0.7, negative_margin=0.1),
        name="PairMarginMiner",
    ),
    MinerCase(miners.SemiHardMiner, oracles.semi_hard),
    MinerCase(
        partial(miners.SemiHardMiner, 0.3),
        partial(oracles.semi_hard, margin=0.3),
        name="SemiHardMiner-margin",
    ),
    MinerCase(miners.BatchHardMiner, oracles.batch_hard),
    MinerCase(miners.EasyPositiveMiner, oracles.easy_positive),
    MinerCase(
        partial(miners.EasyPositiveMiner, negatives="hard"),
        partial(oracles.easy_positive, negatives="hard"),
        name="EasyPositiveMiner-hard",
    ),
    MinerCase(miners.DistanceWeightedMiner),
    MinerCase(partial(miners.RandomMiner, 50), name="RandomMiner"),
]
