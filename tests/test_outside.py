"""A loss that is declared outside the package, in fifteen lines, and inherits the whole contract."""

from __future__ import annotations

import inspect
import math

from likewise.formula import NEGATIVES, POSITIVES, Similarity, add_up, hyper, logsumexp, mean, per_anchor, s, softplus
from likewise.losses import PairLoss
from likewise.testing import LossCase, LossContract, SimilarityCase, SimilarityContract
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


class Ball(Similarity):
    """Minus the squared distance inside a ball, over the room to its rim: eight lines."""

    def prepare(self, embeddings):
        return embeddings / (1.0 + embeddings.norm(dim=1, keepdim=True))

    def link(self, products, anchor_squares, reference_squares):
        return (2.0 * products - anchor_squares - reference_squares) / (3.0 - anchor_squares - reference_squares)


def ball_oracle(a, b):
    a, b = ([entry / (1.0 + math.hypot(*each)) for entry in each] for each in (a, b))
    return -(math.dist(a, b) ** 2) / (3.0 - math.hypot(*a) ** 2 - math.hypot(*b) ** 2)


class SigmoidInBall(PairLoss):
    """A sigmoid for every pair, with a scale and a bias that are learned, on the ball."""

    scale: float = hyper(default=4.0, help="steepness", above=0.0, learn=True)
    bias: float = hyper(default=-1.0, help="bias", learn=True)
    similarity = Ball()

    def declare(self):
        logit = self.scale * s + self.bias
        return per_anchor(add_up(softplus(-logit), POSITIVES) + add_up(softplus(logit), NEGATIVES), needs=())


def sigmoid_oracle(embeddings, labels, references, reference_labels, reduction, scale=4.0, bias=-1.0):
    batch = oracles.batch(embeddings, labels, references, reference_labels)
    units = []
    for i, a in enumerate(batch.anchors):
        value = 0.0
        for j, b in enumerate(batch.references):
            logit = scale * ball_oracle(a, b) + bias
            value += math.log1p(math.exp(-logit)) if batch.positive[i][j] else 0.0
            value += math.log1p(math.exp(logit)) if batch.negative[i][j] else 0.0
        units.append((i, value))
    return oracles.reduce([units], reduction, len(embeddings))


class TestOutside(LossContract):
    cases = (
        LossCase(MeanVersusHardest, oracle),
        LossCase(SigmoidInBall, sigmoid_oracle, tolerance=1e-6, depends_on_scale=True),
    )


class TestSimilarityOutside(SimilarityContract):
    cases = (SimilarityCase(Ball(), ball_oracle),)


def test_it_took_fifteen_lines():
    source = inspect.getsource(inspect.getmodule(MeanVersusHardest))
    declaration = source.split("# declaration: begin\n")[1].split("# declaration: end")[0]
    assert sum(bool(line.strip()) for line in declaration.splitlines()) <= 15
