"""Write a loss as a formula. Miners, reductions, references, every engine and its pair weights follow from it.

Run: python examples/new_loss.py
"""

import argparse
from collections.abc import Sequence

import torch
from torch import nn

from likewise.analysis import pair_weights
from likewise.formula import NEGATIVES, POSITIVES, Declaration, hyper, logsumexp, mean, per_anchor, s, softplus
from likewise.losses import PairLoss
from likewise.miners import MultiSimilarityMiner


class MeanVersusHardest(PairLoss):
    """The mean positive against a soft maximum of the negatives."""

    gamma: float = hyper(default=16.0, help="sharpness of the soft maximum", above=0.0, search=(1.0, 64.0), log=True)
    margin: float = hyper(default=0.1, help="margin", search=(0.0, 1.0))

    def declare(self) -> Declaration:
        hardest = logsumexp(self.gamma * s, NEGATIVES) / self.gamma
        return per_anchor(softplus(self.gamma * (hardest - mean(s, POSITIVES) + self.margin)) / self.gamma)


def main(argv: Sequence[str] | None = None) -> list[float]:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=50)
    args = parser.parse_args(argv)

    torch.manual_seed(0)
    labels = torch.arange(16).repeat_interleave(4)
    features = torch.randn(16, 32)[labels] + torch.randn(64, 32)
    model = nn.Linear(32, 8)
    loss = MeanVersusHardest(margin=0.2, miner=MultiSimilarityMiner(epsilon=0.1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

    losses = []
    for _ in range(args.steps):
        optimizer.zero_grad()
        value = loss(model(features), labels)
        value.backward()
        optimizer.step()
        losses.append(value.item())
    print(f"{loss}\nloss: {losses[0]:.3f} before, {losses[-1]:.3f} after {args.steps} steps")

    # The same declaration runs on every engine.
    embeddings = model(features).detach()
    chunked = MeanVersusHardest(margin=0.2, backend="chunked")(embeddings, labels)
    dense = MeanVersusHardest(margin=0.2, backend="dense")(embeddings, labels)
    print(f"dense {dense:.6f}, chunked {chunked:.6f}")

    weights = pair_weights(MeanVersusHardest(margin=0.2), embeddings, labels)  # (64, 64)
    is_negative = labels[:, None] != labels
    share = weights[is_negative].sort(descending=True).values[:64].sum() / weights[is_negative].sum()
    print(f"the 64 heaviest of {int(is_negative.sum())} negative pairs carry {share:.0%} of the weight on negatives")
    return losses


if __name__ == "__main__":
    main()
