"""Sums of smooth curves in Chebyshev polynomials, against every triplet written out in float64."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn.functional import softplus as plain_softplus

from likewise import losses
from likewise.engines import graphs, positives
from likewise.engines.expansions import Softplus, find_interval, match_smooth, sum_smooth
from likewise.formula import (
    EACH_POSITIVE,
    NEGATIVES,
    POSITIVES,
    Cosine,
    Dot,
    Euclidean,
    Folded,
    Labels,
    PairBatch,
    add_up,
    check_values,
    count,
    s,
    s_p,
    similarity_hook,
    softplus,
    where,
)
from tests.engines.fake_recorder import FakeRecorder

INTERVALS = ((-1.0, 1.0), (-2.0, 0.0), (-4.0, 0.0))


def draw(interval: tuple[float, float], dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    """Similarities up to both ends and a little beyond them, negatives, and weights; the last row has no negative."""
    generator = torch.Generator().manual_seed(0)
    low, high = interval
    S = low + (high - low) * torch.rand(5, 90, generator=generator, dtype=torch.float64)
    S[:, :3] = torch.tensor([low, high, high + 1e-6])
    negative = torch.rand(5, 90, generator=generator) < 0.6
    negative[4] = False
    return S.to(dtype), negative, torch.randn(5, 90, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("interval", INTERVALS, ids=str)
@pytest.mark.parametrize(("dtype", "slack"), [(torch.float64, 1e-13), (torch.float32, 4e-7)], ids=str)
def test_sums_and_gradients(interval: tuple[float, float], dtype: torch.dtype, slack: float) -> None:
    S, negative, weights = draw(interval, dtype)
    leaf, truth = S.clone().requires_grad_(), S.double().requires_grad_()
    values = plain_softplus(truth[:, None, :] - truth[:, :, None] + 0.1, threshold=50.0)
    wanted = (values * negative[:, None, :]).sum(dim=2)
    found = sum_smooth(leaf, negative, Softplus((1.0, -1.0, 0.1), interval))
    torch.testing.assert_close(found.double(), wanted, rtol=slack, atol=slack)
    (expected,) = torch.autograd.grad((wanted * weights).sum(), truth)
    (gradient,) = torch.autograd.grad((found * weights).sum(), leaf)
    torch.testing.assert_close(gradient.double(), expected, rtol=slack, atol=slack * float(expected.abs().max()))


def test_second_derivatives(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of rows in several chunks."""
    monkeypatch.setattr("likewise.engines.expansions.AT_ONCE", {"cpu": 20, "cuda": 20})
    S, negative, _ = draw(INTERVALS[0], torch.float64)
    curve = Softplus((1.0, -1.0, 0.1), INTERVALS[0])
    leaf = S[:3, 3:11].clone().requires_grad_()
    assert torch.autograd.gradgradcheck(lambda x: sum_smooth(x, negative[:3, 3:11], curve), leaf)


def test_what_is_matched() -> None:
    """Only what is the same for every similarity of the interval."""
    curve, interval = softplus(s - (s_p - 0.1)), INTERVALS[0]
    assert match_smooth(add_up(curve, NEGATIVES), interval) == Softplus((1.0, -1.0, 0.1), interval)
    assert match_smooth(count(NEGATIVES, curve > 0.0), interval) is not None
    for other in (
        add_up(curve, POSITIVES),
        add_up(where(s < s_p, curve, 0.0), NEGATIVES),
        count(NEGATIVES, curve > 0.1),
        count(NEGATIVES, softplus(s - s_p - 100.0) > 0.0),  # may underflow
        add_up(add_up(curve, NEGATIVES), EACH_POSITIVE),
    ):
        assert isinstance(other, Folded)
        assert match_smooth(other, interval) is None
    for steep in (softplus(6.0 * (s - s_p)), softplus(6.0 * s - 6.0 * s_p)):
        assert match_smooth(add_up(steep, NEGATIVES), interval) is None
    assert match_smooth(add_up(curve, NEGATIVES), (-100.0, 0.0)) is None
    assert match_smooth(add_up(softplus(0.0 * s_p + 0.1), NEGATIVES), interval) is None


def test_where_the_interval_is_known() -> None:
    labels, x = Labels(torch.tensor([0, 1])), torch.eye(2)
    batch = PairBatch(labels, Cosine(), anchors=x)
    assert find_interval(batch) == find_interval(batch.materialize()) == (-1.0, 1.0)
    assert find_interval(PairBatch(labels, Euclidean(), anchors=x)) == (-2.0, 0.0)
    for unknown in (Dot(), Euclidean(normalize=False), Cosine(normalize=False)):
        assert find_interval(PairBatch(labels, unknown, anchors=x)) is None
    assert find_interval(PairBatch(labels, Cosine(), matrix=x)) is None
    with similarity_hook(lambda _batch, matrix: 5.0 * matrix):
        assert find_interval(batch) is None


@pytest.mark.parametrize("similarity", ["cosine", "euclidean", "squared_euclidean"])
@pytest.mark.parametrize("reduction", ["nonzero", "mean", "sum"])
def test_soft_triplets_read_no_number(similarity: str, reduction: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch of any size is captured, with the values of the engine that looks its positives up."""
    recorder = FakeRecorder()
    monkeypatch.setattr(graphs, "_GRAPHS", graphs.Graphs(recorder, after=1))
    monkeypatch.setattr(positives, "COUNT_FROM", 0)
    loss = losses.TripletLoss(0.1, soft=True, similarity=similarity, reduction=reduction)
    for seed in range(3):
        generator = torch.Generator().manual_seed(seed)
        labels = torch.randint(3 + 10 * seed, (40,), generator=generator)  # many positives, and few
        leaf = torch.randn(40, 5, generator=generator, dtype=torch.float64).requires_grad_()
        expected = loss(leaf, labels)
        with check_values(False):
            found = loss(leaf, labels)
        torch.testing.assert_close(found, expected)
        torch.testing.assert_close(torch.autograd.grad(found, leaf), torch.autograd.grad(expected, leaf))
    assert (recorder.captures, recorder.replays) == (1, 2)


def test_unknown_similarities_are_not_expanded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Inner products have no interval, so their positives are counted."""
    recorder = FakeRecorder()
    monkeypatch.setattr(graphs, "_GRAPHS", graphs.Graphs(recorder, after=0))
    monkeypatch.setattr(positives, "COUNT_FROM", 0)
    loss = losses.TripletLoss(0.1, soft=True, similarity="dot")
    x, labels = torch.randn(40, 5, generator=torch.Generator().manual_seed(0)), torch.arange(40) % 4
    expected = loss(x, labels)
    with check_values(False):
        torch.testing.assert_close(loss(x, labels), expected)
    assert recorder.captures == 0
