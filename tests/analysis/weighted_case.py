"""The weights of RAW (Eq. 15 and 16 of the unified view) as a function, and as an oracle in plain loops."""

from __future__ import annotations

import math
from functools import partial

import torch

from likewise.formula import NEGATIVES, POSITIVES, logsumexp, s
from likewise.losses.weighted import WeightedPairLoss
from likewise.testing import LossCase
from tests.oracles import losses as oracles

ALPHA, BETA, GAMMA = 2.0, 50.0, 0.5

RELATIVE = {"pull": logsumexp(-ALPHA * s, POSITIVES), "push": logsumexp(BETA * s, NEGATIVES)}


def eq_15_and_16(similarities, rows, is_positive):
    """RAW: Σ_k exp(α (s_ij − s_ik)) is exp(α s_ij + pull), with pull the log-sum-exp of −α s."""
    pull = 1.0 / (torch.exp(ALPHA * similarities + rows["pull"]) + torch.exp(ALPHA * (similarities - GAMMA)))
    push = 1.0 / (torch.exp(rows["push"] - BETA * similarities) + torch.exp(-BETA * (similarities - GAMMA)))
    return torch.where(is_positive, pull, push)


def raw_weights(still: oracles.Matrix, batch: oracles.Batch) -> oracles.Matrix:
    """Eq. 15 and 16 in plain loops, with the sign that a pair has in the loss."""
    weights = [[0.0] * len(row) for row in still]
    for i, row in enumerate(still):
        for j in oracles.positives_of(batch, i):
            others = sum(math.exp(ALPHA * (row[j] - row[k])) for k in oracles.positives_of(batch, i))
            weights[i][j] = -1.0 / (others + math.exp(ALPHA * (row[j] - GAMMA)))
        for j in oracles.negatives_of(batch, i):
            others = sum(math.exp(-BETA * (row[j] - row[k])) for k in oracles.negatives_of(batch, i))
            weights[i][j] = 1.0 / (others + math.exp(-BETA * (row[j] - GAMMA)))
    return weights


def weighted_terms(batch: oracles.Batch, still: oracles.Batch) -> oracles.Terms:
    S = oracles.similarities(batch, "cosine")
    weights = raw_weights(oracles.similarities(still, "cosine"), batch)
    return [[(i, sum(w * x for w, x in zip(weights[i], S[i], strict=True))) for i in oracles.anchors_of(batch)]]


def weighted(embeddings, labels, references, reference_labels, reduction):
    batch = oracles.batch(embeddings, labels, references, reference_labels)
    return oracles.reduce(weighted_terms(batch, batch), reduction, len(embeddings))


def weighted_frozen(embeddings, at, labels):
    batch, still = oracles.batch(embeddings, labels), oracles.batch(at, labels)
    return oracles.reduce(weighted_terms(batch, still), "mean", len(embeddings))


CASE = LossCase(
    partial(WeightedPairLoss, eq_15_and_16, RELATIVE),
    weighted,
    name="WeightedPairLoss",
    stop_gradient_value=weighted_frozen,
)
