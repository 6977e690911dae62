"""A loss that is declared outside the package, in fifteen lines, and inherits the whole contract."""

from __future__ import annotations

import inspect
import math

from likewise.formula import NEGATIVES, POSITIVES, hyper, logsumexp, mean, per_anchor, s, softplus
from likewise.losses import PairLoss
from likewise.testing import LossCase, LossContract
from tests.oracles import losses as oracles


# declaration: begin
class MeanVersusHardest(PairLoss):
    r"""The mean positive against a soft maximum of the negatives: $\log(1+e^{\gamma(\max_N s-\bar s_P+\lambda)})/\gamma$.

    Args:
        gamma: how hard the maximum is.
        margin: the margin λ.
    """

    gamma: float = hyper(default=16.0, help="how hard the maximum is", above=0.0, search=(1.0, 64.0), log=True)
    margin: float = hyper(default=0.1, help="margin", search=(0.0, 1.0))

    def declare(self):
        hardest = logsumexp(self.gamma * s, NEGATIVES) / self.gamma
        return per_anchor(softplus(self.gamma * (hardest - mean(s, POSITIVES) + self.margin)) / self.gamma)


# declaration: end


def oracle(embeddings, labels, references, reference_labels, reduction, gamma=16.0, margin=0.1):
    batch = oracles.batch(embeddings, labels, references, reference_labels)
    S = oracles.similarities(batch, "cosine")
    units = []
    for i, row in enumerate(S):
        positives = [x for x, keep in zip(row, batch.positive[i], strict=True) if keep]
        negatives = [x for x, keep in zip(row, batch.negative[i], strict=True) if keep]
        if positives and negatives:
            hardest = math.log(sum(math.exp(gamma * x) for x in negatives)) / gamma
            gap = hardest - sum(positives) / len(positives) + margin
            units.append((i, math.log1p(math.exp(gamma * gap)) / gamma))
    return oracles.reduce([units], reduction, len(embeddings))


class TestOutside(LossContract):
    cases = (LossCase(MeanVersusHardest, oracle),)


def test_it_took_fifteen_lines():
    source = inspect.getsource(inspect.getmodule(MeanVersusHardest))
    declaration = source.split("# declaration: begin\n")[1].split("# declaration: end")[0]
    assert sum(bool(line.strip()) for line in declaration.splitlines()) <= 15
