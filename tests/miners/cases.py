"""One row for each miner: the class, and the oracle that it must equal."""

from __future__ import annotations

from functools import partial

from likewise import miners
from likewise.testing import MinerCase
from tests.oracles import miners as oracles

GRID: list[tuple[str, str, dict[str, tuple[float, float]]]] = [
    ("easy", "easy", {"negative_range": (-0.5, 0.5)}),
    ("semihard", "hard", {}),
    ("hard", "semihard", {"positive_range": (0.0, 1.0), "negative_range": (-0.2, 0.4)}),
    ("easy", "all", {"positive_range": (-1.0, 0.6), "negative_range": (0.0, 1.0)}),
    ("all", "hard", {"positive_range": (-1.0, 0.6)}),
    ("all", "all", {"negative_range": (0.0, 1.0)}),
]
"""Cells of the grid, and ranges; test_peers.py has every cell."""

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
    *(
        MinerCase(
            partial(miners.TripletMarginMiner, margin, kind),
            partial(oracles.triplet_margin, margin=margin, kind=kind),
            name=f"TripletMarginMiner-{kind}{'-negative' if margin < 0.0 else ''}",
        )
        for margin, kind in ((0.3, "all"), (0.3, "hard"), (0.3, "easy"), (-0.1, "all"))
    ),
    *(
        MinerCase(
            partial(miners.BatchEasyHardMiner, positives, negatives, **ranges),
            partial(oracles.easy_hard, positives=positives, negatives=negatives, **ranges),
            name=f"BatchEasyHardMiner-{positives}-{negatives}",
        )
        for positives, negatives, ranges in GRID
    ),
    MinerCase(miners.DistanceWeightedMiner),
    MinerCase(partial(miners.DistanceWeightedMiner, 0.0), name="DistanceWeightedMiner-no-cutoff"),
    MinerCase(partial(miners.RandomMiner, 50), name="RandomMiner"),
]
