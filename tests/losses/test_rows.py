"""Losses on pairs of rows and on whole batches: CoSENT, AnglE, VICReg and anti-collapse, against plain loops."""

from __future__ import annotations

import copy

import pytest
import torch
from pytorch_metric_learning import losses as theirs

from likewise import losses
from likewise.testing import make_batch
from tests.oracles import modern

FIRST, SECOND = make_batch("ragged").embeddings, make_batch("ragged", seed=1).embeddings
SCORES = torch.tensor([3, 1, 2, 2, 5, 1, 4, 4, 3, 2, 5, 1, 3, 2, 4])
GRADED = {losses.CoSENTLoss: modern.cosine_of, losses.AnglELoss: modern.angle_of_halves}
MAKERS = {
    losses.CoSENTLoss: lambda a, b: losses.CoSENTLoss()(a, SCORES[: len(a)], b),
    losses.AnglELoss: lambda a, b: losses.AnglELoss()(a, SCORES[: len(a)], b),
    losses.VICRegLoss: lambda a, b: losses.VICRegLoss()(a, None, b),
    losses.AntiCollapseLoss: lambda a, b: losses.AntiCollapseLoss()(a),
}
every_kind = pytest.mark.parametrize("kind", MAKERS, ids=lambda kind: kind.__name__)


@pytest.mark.parametrize("kind", GRADED)
def test_graded_pairs_equal_the_oracle(kind: type):
    """For an even and an odd dimension, with scores that tie, as integers and as floats."""
    for dim, scale, scores in ((4, 20.0, SCORES), (5, 200.0, SCORES.double() / 7.0)):
        a, b = FIRST[:, :dim], SECOND[:, :dim]
        expected = modern.co_sent(a.tolist(), SCORES.tolist(), b.tolist(), scale, GRADED[kind])
        assert kind(scale)(a, scores, b).item() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("kind", GRADED)
def test_equal_scores_make_no_term(kind: type):
    similar = SCORES.median() < SCORES
    assert torch.equal(kind()(FIRST, similar, SECOND), kind()(FIRST, similar.float(), SECOND))  # booleans are 0 and 1
    leaf = FIRST.clone().requires_grad_()
    value = kind()(leaf, torch.ones(len(leaf)), SECOND)
    value.backward()
    assert float(value.detach()) == 0.0
    assert not leaf.grad.any()


def test_vic_reg_equals_the_oracle_and_the_peer():
    options = {"invariance_lambda": 20.0, "variance_mu": 10.0, "covariance_v": 2.0, "eps": 1e-3}
    for given in ({}, options):
        expected = modern.vic_reg((0.3 * FIRST).tolist(), SECOND.tolist(), **given)
        found = losses.VICRegLoss(**given)(0.3 * FIRST, None, SECOND)
        assert found.item() == pytest.approx(expected, rel=1e-12)
        peer = theirs.VICRegLoss(**given)(0.3 * FIRST, ref_emb=SECOND)
        torch.testing.assert_close(found, peer, rtol=1e-10, atol=1e-10)
    one = losses.VICRegLoss()(FIRST[:1], None, SECOND[:1])
    assert one.item() == pytest.approx(modern.vic_reg(FIRST[:1].tolist(), SECOND[:1].tolist()))


def test_anti_collapse_equals_the_oracle():
    epsilon = 2.0
    found = losses.AntiCollapseLoss(epsilon)(FIRST)
    assert found.item() == pytest.approx(modern.anti_collapse(FIRST.tolist(), epsilon), rel=1e-12)
    collapsed = losses.AntiCollapseLoss(epsilon)(FIRST[:1].expand(15, -1))
    assert float(collapsed) > float(found)
    head = losses.ArcFaceLoss(10, 5)
    losses.AntiCollapseLoss()(head.proxies).backward()
    assert head.proxies.grad.any()


@every_kind
def test_gradients_equal_finite_differences(kind: type):
    leaves = FIRST[:6].clone().requires_grad_(), SECOND[:6].clone().requires_grad_()
    assert torch.autograd.gradcheck(MAKERS[kind], leaves)
    assert torch.autograd.gradgradcheck(MAKERS[kind], leaves)


@every_kind
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=str)
def test_finite_for_finite_input(kind: type, dtype: torch.dtype):
    """Half precision is computed in float32; zero, equal and opposite rows have a finite gradient."""
    ordinary = FIRST.to(dtype)
    for a, b in (
        (ordinary, SECOND.to(dtype)),
        (torch.zeros_like(ordinary), ordinary),
        (ordinary[:1].expand(15, -1), ordinary[:1].expand(15, -1)),
        (ordinary, -ordinary),
        (ordinary[:1], ordinary[1:2]),
    ):
        leaf = a.clone().requires_grad_()
        value = MAKERS[kind](leaf, b)
        (gradient,) = torch.autograd.grad(value, leaf)
        assert value.dtype == torch.float32
        assert gradient.dtype == dtype
        assert torch.isfinite(value)
        assert torch.isfinite(gradient).all()


@every_kind
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # the tracer uses a function of torch that torch deprecates
def test_compiles_and_copies(kind: type):
    module = kind()
    arguments = (FIRST, SCORES, SECOND)
    value = module(*arguments)
    torch.compiler.reset()
    torch.testing.assert_close(torch.compile(module, fullgraph=True, backend="eager")(*arguments), value)
    duplicate = copy.deepcopy(module)
    assert repr(duplicate) == repr(module)
    assert torch.equal(duplicate(*arguments), value)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: losses.CoSENTLoss(0.0), ValueError, "scale must be a number > 0 and ≤ 200, but it is 0.0"),
        (lambda: losses.CoSENTLoss()(FIRST, None, SECOND), TypeError, "scores must be given, one for each of the 15"),
        (lambda: losses.CoSENTLoss()(FIRST, SCORES), TypeError, "references must be given, one for each of the 15"),
        (lambda: losses.AnglELoss()(FIRST, SCORES, SECOND[:3]), ValueError, r"references must have the shape of embed"),
        (lambda: losses.AnglELoss()(FIRST, SCORES[:3], SECOND), ValueError, r"scores must have shape \(15,\), but"),
        (lambda: losses.CoSENTLoss()(FIRST, [1.0], SECOND), TypeError, "scores must be a tensor of real numbers, but"),
        (lambda: losses.CoSENTLoss()(FIRST, SCORES / 0, SECOND), ValueError, "scores must be finite"),
        (lambda: losses.CoSENTLoss()(FIRST, SCORES, SECOND, SCORES), ValueError, "reference_labels must be None for"),
        (lambda: losses.VICRegLoss()(FIRST), TypeError, "references must be given, the second view"),
        (lambda: losses.VICRegLoss()(FIRST, None, SECOND[:3]), ValueError, "references must have the shape of embed"),
        (lambda: losses.VICRegLoss(eps=0.0), ValueError, "eps must be a number > 0, but it is 0.0"),
        (lambda: losses.VICRegLoss(variance_mu=-1.0), ValueError, "variance_mu must be a number ≥ 0, but it is -1.0"),
        (lambda: losses.AntiCollapseLoss(-1.0), ValueError, "epsilon must be a number > 0, but it is -1.0"),
    ],
)
def test_bad_input_gets_one_sentence(call, error: type[Exception], message: str):
    with pytest.raises(error, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)
