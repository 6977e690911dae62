"""Five published losses, written with nothing but what ``docs/write-a-loss.md`` says, against plain loops."""

from __future__ import annotations

import math

import pytest
import torch

from likewise.formula import (
    BOTH,
    NEGATIVES,
    POSITIVES,
    MatrixLoss,
    TermValues,
    add_up,
    as_similarity,
    count,
    exp,
    hyper,
    logsumexp,
    per_anchor,
    per_pair,
    relu,
    s,
    softplus,
    where,
)
from likewise.losses import PairLoss
from likewise.testing import make_batch
from likewise.testing.similarities import check_gradient
from tests.oracles import losses as oracles


class Decoupled(PairLoss):
    """DCL: the positive is not in the denominator.  Yeh et al. 2022."""

    temperature: float = hyper(default=0.5, help="temperature", above=0.0)

    def declare(self):
        logit = s / self.temperature
        return per_pair(POSITIVES, logsumexp(logit, NEGATIVES) - logit, needs=(NEGATIVES,))


class Sigmoid(PairLoss):
    """SigLIP's loss with a learned scale and bias.  Zhai et al. 2023."""

    scale: float = hyper(default=10.0, help="scale", above=0.0, learn=True)
    bias: float = hyper(default=-10.0, help="bias", learn=True)

    def declare(self):
        logit = self.scale * s + self.bias
        return per_anchor(add_up(softplus(-logit), POSITIVES) + add_up(softplus(logit), NEGATIVES), needs=())


class RankedList(PairLoss):
    """Ranked list loss.  Wang et al. 2019."""

    alpha: float = hyper(default=1.2, help="where negatives end")
    margin: float = hyper(default=0.4, help="how much nearer positives are")
    steepness: float = hyper(default=10.0, help="how much near negatives weigh")
    similarity = "euclidean"

    def declare(self):
        far, near = -s > self.alpha - self.margin, -s < self.alpha
        weight = where(near, exp(self.steepness * (self.alpha + s)), 0.0)
        small = 1e-5 * (count(BOTH) + 1.0)
        pull = add_up(relu(-s - (self.alpha - self.margin)), POSITIVES) / (count(POSITIVES, far) + small)
        push = add_up(weight * (self.alpha + s), NEGATIVES) / (add_up(weight, NEGATIVES) + small)
        return per_anchor(0.5 * pull + 0.5 * push, needs=())


class HyperbolicContrastive(PairLoss):
    """A contrastive loss in the Poincaré ball."""

    margin: float = hyper(default=2.0, help="distance of negatives", at_least=0.0)
    similarity = "poincare"

    def declare(self):
        end = as_similarity(self.similarity).threshold(self.margin)
        return per_pair(POSITIVES, -s), per_pair(NEGATIVES, relu(s - end))


class Centroids(PairLoss):
    """A softmax over the centroids of classes; the own one leaves the anchor out.  Wan et al. 2018 (GE2E)."""

    scale: float = hyper(default=5.0, help="scale", above=0.0)
    takes_references = False

    def declare(self):
        def compute(batch, rows):
            same = (batch.labels[:, None] == batch.labels[None, :]).to(batch.dtype)
            sizes = same.sum(dim=0)

            def of_chunk(chunk):
                positive, negative = chunk.masks()
                own = torch.where(positive, chunk.similarities, 0.0).sum(dim=1) / positive.sum(dim=1).clamp_min(1)
                others = self.scale * (chunk.similarities @ (same / sizes)) - sizes.log()
                others = others.masked_fill(~negative, -1e9).logsumexp(dim=1)
                counted = positive.any(dim=1) & negative.any(dim=1)
                value = torch.where(counted, torch.nn.functional.softplus(others - self.scale * own), 0.0)
                return value, counted

            value, counted = rows.map(of_chunk)
            return [TermValues(value, counted, value != 0)]

        return MatrixLoss(compute)


def decoupled(batch, S):
    return [
        (i, math.log(sum(math.exp(S[i][n] / 0.5) for n in batch["negatives"][i])) - S[i][p] / 0.5)
        for i in range(len(S))
        for p in batch["positives"][i]
        if batch["negatives"][i]
    ]


def sigmoid(batch, S):
    logits = [[10.0 * x - 10.0 for x in row] for row in S]
    return [
        (
            i,
            sum(math.log1p(math.exp(-logits[i][p])) for p in batch["positives"][i])
            + sum(math.log1p(math.exp(logits[i][n])) for n in batch["negatives"][i]),
        )
        for i in range(len(S))
    ]


def ranked_list(batch, S):
    units = []
    for i, row in enumerate(S):
        far = [-row[p] - 0.8 for p in batch["positives"][i] if -row[p] > 0.8]
        near = [1.2 + row[n] for n in batch["negatives"][i] if -row[n] < 1.2]
        weights = [math.exp(10.0 * gap) for gap in near]
        pull = sum(far) / (len(far) + 1e-5 * len(S))
        push = sum(w * gap for w, gap in zip(weights, near, strict=True)) / (sum(weights) + 1e-5 * len(S))
        units.append((i, 0.5 * pull + 0.5 * push))
    return units


def centroids(batch, S):
    units = []
    for i, row in enumerate(S):
        if not batch["positives"][i] or not batch["negatives"][i]:
            continue
        own = sum(row[p] for p in batch["positives"][i]) / len(batch["positives"][i])
        others = 0.0
        for label in {batch["labels"][n] for n in batch["negatives"][i]}:
            members = [row[n] for n in batch["negatives"][i] if batch["labels"][n] == label]
            others += math.exp(5.0 * sum(members) / len(members))
        units.append((i, math.log(1.0 + others / math.exp(5.0 * own))))
    return units


def hyperbolic_positives(batch, S):
    return [(i, -S[i][p]) for i in range(len(S)) for p in batch["positives"][i]]


def hyperbolic_negatives(batch, S):
    return [(i, max(0.0, S[i][n] + 2.0)) for i in range(len(S)) for n in batch["negatives"][i]]


@pytest.mark.parametrize(
    ("kind", "terms", "similarity"),
    [
        (Decoupled, [decoupled], "cosine"),
        (Sigmoid, [sigmoid], "cosine"),
        (RankedList, [ranked_list], "euclidean"),
        (HyperbolicContrastive, [hyperbolic_positives, hyperbolic_negatives], "poincare"),
        (Centroids, [centroids], "cosine"),
    ],
)
@pytest.mark.parametrize("backend", ["dense", "chunked"])
def test_value_and_gradient(kind, terms, similarity, backend):
    embeddings, labels = make_batch("ragged", seed=3)
    pairs = oracles.batch(embeddings.tolist(), labels.tolist())
    S = oracles.similarities(pairs, similarity)
    batch = {
        "labels": labels.tolist(),
        "positives": [[j for j, keep in enumerate(row) if keep] for row in pairs.positive],
        "negatives": [[j for j, keep in enumerate(row) if keep] for row in pairs.negative],
    }
    expected = oracles.reduce([term(batch, S) for term in terms], "mean", len(labels))
    loss = kind(backend=backend).double()
    assert loss(embeddings, labels).item() == pytest.approx(expected, rel=1e-6)
    check_gradient(loss, embeddings, labels)
