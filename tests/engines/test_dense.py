"""The dense engine on declarations that no loss of the library has."""

from __future__ import annotations

import pytest
import torch

from likewise.formula import (
    NEGATIVES,
    POSITIVES,
    PerAnchor,
    PerReference,
    Total,
    add_up,
    count,
    largest,
    logsumexp,
    mean,
    mean_over_batch,
    per_anchor,
    per_pair,
    s,
    smallest,
    square,
)
from likewise.losses import PairLoss
from likewise.miners import PairMiner

E, Y = torch.randn(12, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64), torch.arange(12) // 3


def loss_of(term):
    class Declared(PairLoss):
        def declare(self):
            return term

    return Declared()


def test_folds_over_constants():
    assert loss_of(per_anchor(add_up(2.0, NEGATIVES)))(E, Y).item() == 18.0
    assert loss_of(per_anchor(mean(3.0, POSITIVES)))(E, Y).item() == 3.0
    assert loss_of(per_anchor(logsumexp(0.0, POSITIVES)))(E, Y).item() == pytest.approx(torch.tensor(2.0).log().item())
    assert loss_of(per_anchor(count(NEGATIVES) * 1.0))(E, Y).item() == 9.0


def test_totals_of_totals_and_of_numbers_per_anchor():
    norms = PerAnchor("norm", lambda batch: batch.anchors.norm(dim=1))
    assert loss_of(per_anchor(Total(norms) * 1.0))(E, Y).item() == pytest.approx(E.norm(dim=1).sum().item())
    sums = add_up(s, POSITIVES)
    S = torch.nn.functional.normalize(E) @ torch.nn.functional.normalize(E).T
    rows = torch.where((Y[:, None] == Y) & ~torch.eye(12, dtype=torch.bool), S, 0.0).sum(dim=1)
    group = loss_of(per_anchor(Total(square(sums - Total(sums) / 12.0)) / 12.0))(E, Y)
    assert group.item() == pytest.approx(rows.var(unbiased=False).item())


def test_numbers_per_reference():
    bias = torch.arange(12, dtype=torch.float64, requires_grad=True)
    loss = loss_of(per_pair(NEGATIVES, s + PerReference("bias", lambda batch: bias)))
    value = loss(E, Y)
    value.backward()
    plain = loss_of(per_pair(NEGATIVES, s))(E, Y)
    assert value.item() == pytest.approx(plain.item() + 5.5)
    torch.testing.assert_close(bias.grad, torch.full((12,), 1 / 12, dtype=torch.float64))


@pytest.mark.parametrize(
    "term",
    [
        per_pair(POSITIVES, square(s - logsumexp(s, NEGATIVES)), needs=(NEGATIVES,)),
        per_pair(POSITIVES, square(s - largest(s, NEGATIVES)), needs=(NEGATIVES,)),
        per_anchor(largest(s, NEGATIVES) * smallest(s, POSITIVES)),
        per_anchor(square(logsumexp(s, NEGATIVES) - logsumexp(s, POSITIVES))),
    ],
)
@pytest.mark.parametrize("labels", [torch.zeros(12, dtype=torch.long), torch.arange(12), Y.clamp_max(2)])
def test_an_empty_side_is_never_nan(term, labels):
    leaf = E.clone().requires_grad_()
    value = loss_of(term)(leaf, labels)
    value.backward()
    assert torch.isfinite(value)
    assert torch.isfinite(leaf.grad).all()


def test_a_miner_may_use_statistics_of_the_batch():
    class AboveAverage(PairMiner):
        def keep(self, similarity):
            return s < mean_over_batch(s, POSITIVES), s > mean_over_batch(s, NEGATIVES)

        def __post_init__(self):
            pass

    S = torch.nn.functional.normalize(E) @ torch.nn.functional.normalize(E).T
    kept = AboveAverage()(S, Y)
    same = Y[:, None] == Y
    positive, negative = same & ~torch.eye(12, dtype=torch.bool), ~same
    assert torch.equal(kept.positive, positive & (S[positive].mean() > S))
    assert torch.equal(kept.negative, negative & (S[negative].mean() < S))
