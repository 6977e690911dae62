"""The losses of the parity run on birds, as a user of either library asks for them; untuned, the settings of one table.

`Side` is what a configuration names: one row, ours or pytorch-metric-learning's, with the mining before it.  Both sides of
a head begin with the same proxies.
"""

from __future__ import annotations

from torch import Tensor, nn

from benchmarks.harness.pairings import PEER_MISSING, Head, Pairing
from likewise import losses, miners

if not PEER_MISSING:
    from pytorch_metric_learning import distances
    from pytorch_metric_learning import losses as pml
    from pytorch_metric_learning import miners as pml_miners


ROWS: dict[str, Pairing | Head] = {
    row.name: row
    for row in (
        Pairing(
            "Contrastive",
            lambda: losses.ContrastiveLoss(1.0, 0.5),
            lambda: pml.ContrastiveLoss(pos_margin=1.0, neg_margin=0.5, distance=distances.CosineSimilarity()),
        ),
        Pairing(
            "Triplet, semi-hard",
            lambda: losses.TripletLoss(0.1, miner=miners.SemiHardMiner(0.1)),
            lambda: pml.TripletMarginLoss(margin=0.1, distance=distances.CosineSimilarity()),
            lambda: pml_miners.TripletMarginMiner(
                margin=0.1, type_of_triplets="semihard", distance=distances.CosineSimilarity()
            ),
        ),
        Pairing("NT-Xent", lambda: losses.NTXentLoss(0.1), lambda: pml.NTXentLoss(temperature=0.1)),
        Pairing(
            "Generalized lifted",
            lambda: losses.GeneralizedLiftedStructureLoss(0.5),
            lambda: pml.GeneralizedLiftedStructureLoss(
                neg_margin=0.0, pos_margin=0.5, distance=distances.CosineSimilarity()
            ),
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
        Pairing("Circle", lambda: losses.CircleLoss(0.4, 80.0), lambda: pml.CircleLoss(m=0.4, gamma=80.0)),
        Pairing("FastAP", lambda: losses.FastAPLoss(10), lambda: pml.FastAPLoss(num_bins=10)),
        Pairing(
            "SNR contrastive",
            lambda: losses.SNRContrastiveLoss(0.0, 1.0),
            lambda: pml.SignalToNoiseRatioContrastiveLoss(pos_margin=0.0, neg_margin=1.0),
        ),
        Head(
            "Normalized softmax",
            lambda c, d: losses.NormalizedSoftmaxLoss(c, d, temperature=0.05),
            lambda c, d: pml.NormalizedSoftmaxLoss(c, d, temperature=0.05),
        ),
        # what is called ProxyNCA there has the positive in its denominator: ProxyNCA++ with T = 1 / scale
        Head(
            "ProxyNCA, scale 8",
            lambda c, d: losses.ProxyNCAPPLoss(c, d, temperature=1 / 8),
            lambda c, d: pml.ProxyNCALoss(c, d, softmax_scale=8),
        ),
        Head(
            "CosFace",
            lambda c, d: losses.CosFaceLoss(c, d, margin=0.35, scale=32.0),
            lambda c, d: pml.CosFaceLoss(c, d, margin=0.35, scale=32),
        ),
        Head(
            "ArcFace",
            lambda c, d: losses.ArcFaceLoss(c, d, margin=28.6, scale=32.0),
            lambda c, d: pml.ArcFaceLoss(c, d, margin=28.6, scale=32),
        ),
        # its regularizer is an argument of its own there; tau is ours
        Head(
            "SoftTriple",
            lambda c, d: losses.SoftTripleLoss(c, d, centers=10, tau=0.0),
            lambda c, d: pml.SoftTripleLoss(c, d, centers_per_class=10),
        ),
        Head(
            "Proxy-Anchor",
            lambda c, d: losses.ProxyAnchorLoss(c, d, margin=0.1, alpha=32.0),
            lambda c, d: pml.ProxyAnchorLoss(c, d, margin=0.1, alpha=32),
        ),
    )
}


class Side(nn.Module):
    """One side of a row as a loss.

    Args:
        num_classes: of the training part.
        embedding_dim: of the embeddings.
        row: which row.
        theirs: whether it is pytorch-metric-learning's side.
    """

    def __init__(self, num_classes: int, embedding_dim: int, row: str, theirs: bool = False) -> None:
        super().__init__()
        found = ROWS[row]
        pairing = found if isinstance(found, Pairing) else found.pairing(num_classes, embedding_dim)
        if theirs and PEER_MISSING:
            raise NotImplementedError(PEER_MISSING)
        make = pairing.theirs if theirs else pairing.ours
        assert make is not None
        self.loss = make()
        self.miner = pairing.mined_by() if theirs and pairing.mined_by is not None else None

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """The loss of a batch."""
        if self.miner is None:
            value: Tensor = self.loss(embeddings, labels)
        else:
            value = self.loss(embeddings, labels, self.miner(embeddings, labels))
        return value
