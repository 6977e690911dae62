"""What losses with proxies promise beyond their contract."""

from __future__ import annotations

import copy
import math
import pickle

import pytest
import torch

from likewise import losses
from likewise.formula import s
from likewise.losses import Between, cross_entropy
from likewise.testing import make_batch


def test_softmax_is_a_linear_layer_and_cross_entropy():
    embeddings, labels = make_batch("ragged")
    loss = losses.SoftmaxLoss(10, 5, bias=True).double()
    with torch.no_grad():
        loss.bias.normal_()
    logits = embeddings @ loss.proxies.T + loss.bias
    torch.testing.assert_close(loss(embeddings, labels), torch.nn.functional.cross_entropy(logits, labels))
    torch.testing.assert_close(loss.logits(embeddings), logits)
    gradients = torch.autograd.grad(loss(embeddings, labels), [loss.proxies, loss.bias])
    expected = torch.autograd.grad(torch.nn.functional.cross_entropy(logits, labels), [loss.proxies, loss.bias])
    for ours, theirs in zip(gradients, expected, strict=True):
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("margin", [0.0, 28.6, 60.0, 89.0])
def test_arc_face_value_and_slope_along_the_whole_circle(margin: float):
    """One class at angle 0, a sample at every angle: scale · cos(θ + m), and a straight line past π; finite at ±1."""
    loss = losses.ArcFaceLoss(2, 2, margin=margin, scale=1.0).double()
    with torch.no_grad():
        loss.proxies.copy_(torch.tensor([[1.0, 0.0], [0.0, 0.0]]))
    m = math.radians(margin)
    for theta in torch.linspace(0.0, math.pi, 41, dtype=torch.float64).tolist():
        x = torch.tensor([[math.cos(theta), math.sin(theta)]], dtype=torch.float64, requires_grad=True)
        value = loss(x, torch.tensor([0]))
        value.backward()
        assert torch.isfinite(x.grad).all()
        inside = theta + m < math.pi - 1e-9
        logit = math.cos(theta + m) if inside else math.cos(theta) - m * math.sin(m)
        if abs(theta + m - math.pi) > 1e-6:
            assert value.item() == pytest.approx(math.log1p(math.exp(-logit)), abs=1e-9)


@pytest.mark.parametrize("margin", [1, 2, 3, 4, 5])
def test_sphere_face_is_continuous_and_falls(margin: float):
    loss = losses.SphereFaceLoss(2, 2, margin=margin).double()
    with torch.no_grad():
        loss.proxies.copy_(torch.tensor([[1.0, 0.0], [0.0, 0.0]]))
    thetas = torch.linspace(0.0, math.pi, 2001, dtype=torch.float64)
    x = torch.stack([thetas.cos(), thetas.sin()], dim=1)
    loss.reduction = "none"
    psi = -torch.log(torch.expm1(loss(x, torch.zeros(2001, dtype=torch.long)))).detach()
    assert psi.diff().max() <= 1e-9
    assert psi.diff().abs().max() < 0.01 * margin
    torch.testing.assert_close(psi[[0, -1]], torch.tensor([1.0, 1.0 - 2.0 * margin], dtype=torch.float64))


def test_a_sub_center_loss_does_not_ignore_its_options():
    embeddings, labels = make_batch("ragged")
    per_sample = losses.SubCenterArcFaceLoss(10, 5, reduction="none")(embeddings, labels)
    assert per_sample.shape == (15,)
    one, arc = losses.SubCenterArcFaceLoss(10, 5, centers=1), losses.ArcFaceLoss(10, 5)
    with torch.no_grad():
        arc.proxies.copy_(one.proxies)
    torch.testing.assert_close(one(embeddings, labels), arc(embeddings, labels))


def test_soft_triple_counts_the_centers_left():
    loss = losses.SoftTripleLoss(3, 4, centers=3)
    with torch.no_grad():
        loss.proxies.copy_(torch.tensor([[1.0, 0, 0, 0]] * 3 + [[0, 1.0, 0, 0], [0, 2.0, 0, 0], [0, 0, 1.0, 0]] * 2))
    assert loss.centers_left().tolist() == [1, 2, 2]
    before = loss.merging().item()
    loss.merging().backward()
    with torch.no_grad():
        loss.proxies -= 0.01 * loss.proxies.grad
    assert loss.merging().item() < before


def test_proxy_anchor_divides_its_terms_by_different_counts():
    """Two of ten classes in the batch: the pull is a mean over two proxies, the push over ten."""
    loss = losses.ProxyAnchorLoss(10, 5)
    embeddings, labels = torch.zeros(4, 5), torch.tensor([0, 0, 1, 1])
    pull = math.log1p(2 * math.exp(32 * 0.1))
    push = (2 * math.log1p(2 * math.exp(3.2)) + 8 * math.log1p(4 * math.exp(3.2))) / 10
    assert loss(embeddings, labels).item() == pytest.approx(pull + push, rel=1e-5)


def test_through_samples_does_not_overflow():
    """180 equal samples: the sum over the batch is 180, and e^(32 · 180) is no float."""
    loss = losses.ProxyRepulsionLoss(20, 8, through_samples=True)
    with torch.no_grad():
        loss.proxies.copy_(torch.ones(20, 8))
    embeddings = torch.ones(180, 8, requires_grad=True)
    value = loss(embeddings, torch.arange(180) % 20)
    value.backward()
    assert torch.isfinite(value)
    assert torch.isfinite(loss.proxies.grad).all()


def test_proxy_gml_keeps_positives_always():
    embeddings, labels = make_batch("ragged")
    few = losses.ProxyGMLLoss(10, 5, centers=3, neighbors=1, weight=0.0)
    assert few(embeddings, labels).item() == pytest.approx(0.0, abs=1e-6)
    value = losses.ProxyGMLLoss(10, 5, centers=3, neighbors=1000, weight=0.0)(embeddings, labels)
    assert value.item() > 0.0


@pytest.mark.parametrize(
    "kind", [losses.SoftmaxLoss, losses.NormalizedSoftmaxLoss, losses.ProxyAnchorLoss, losses.SoftTripleLoss]
)
def test_learns_to_classify(kind):
    torch.manual_seed(0)
    centers = torch.randn(6, 16)
    labels = torch.arange(60) % 6
    embeddings = centers[labels] + 0.1 * torch.randn(60, 16)
    loss = kind(6, 16)
    optimizer = torch.optim.Adam(loss.parameter_groups(lr=0.05))
    for _ in range(60):
        optimizer.zero_grad()
        loss(embeddings, labels).backward()
        optimizer.step()
    assert (loss.classify(embeddings) == labels).all()


def test_parameter_groups_have_the_thesis_rates():
    assert losses.ArcFaceLoss(3, 4).parameter_groups()[0]["lr"] == 1e-4
    assert losses.ProxyNCALoss(3, 4).parameter_groups(lr=0.3)[0]["lr"] == 0.3
    assert losses.MarginLoss().parameter_groups()[0]["lr"] == 5e-5
    assert "lr" not in losses.ProxyAnchorLoss(3, 4).parameter_groups()[0]
    assert losses.ContrastiveLoss().parameter_groups() == []


def test_label_ids_above_2_to_the_24_do_not_collide():
    """Class ids reach a proxy by index, never by way of a float."""
    labels = torch.tensor([2**24, 2**24 + 1])
    memory = losses.CrossBatchMemory(losses.ContrastiveLoss(), 4)
    assert not any(memory(torch.eye(2), labels + 2 * step).item() for step in range(1))


class Counting(losses.NormalizedSoftmaxLoss):
    """Says how often it was asked for its declaration."""

    def declare(self):
        type(self).asked += 1
        return super().declare()

    asked = 0


def test_what_is_declared_is_kept_until_something_changes():
    embeddings, labels = make_batch("ragged")
    loss = Counting(10, 5).double()
    Counting.asked = 0
    for _ in range(3):
        loss(embeddings, labels).backward()
    assert Counting.asked == 1
    loss.temperature = 0.5
    fresh = losses.NormalizedSoftmaxLoss(10, 5, temperature=0.5).double()
    fresh.load_state_dict(loss.state_dict())
    assert loss(embeddings, labels).item() == fresh(embeddings, labels).item()
    assert Counting.asked == 2
    copies = copy.deepcopy(loss), pickle.loads(pickle.dumps(loss))
    assert Counting.asked == 2
    for each in copies:
        each.temperature = 2.0
        assert each(embeddings, labels).item() != loss(embeddings, labels).item()


@pytest.mark.parametrize(
    "loss",
    [
        losses.NormalizedSoftmaxLoss(10, 5, learn_temperature=True),
        losses.SoftTripleLoss(10, 5, centers=2, tau=0.2),
        losses.SoftmaxLoss(10, 5, bias=True),
    ],
    ids=lambda loss: type(loss).__name__,
)
def test_what_a_loss_learns_is_looked_at_every_time(loss: torch.nn.Module):
    embeddings, labels = make_batch("ragged")
    loss = loss.double()
    before = loss(embeddings, labels)
    before.backward()
    with torch.no_grad():
        for parameter in loss.parameters():
            parameter.mul_(1.5).add_(0.1 * torch.randn_like(parameter))
    again = copy.deepcopy(loss)
    assert loss(embeddings, labels).item() == again(embeddings, labels).item() != before.item()
    loss(embeddings, labels).backward()  # no graph is kept from call to call


class ByProxies(losses.ProxyLoss):
    """Whose scale is the length of its proxies, asked when it declares."""

    def declare(self):
        return {Between.SAMPLES_PROXIES: cross_entropy(self.scale() * s, self.scale() * s)}

    def scale(self) -> float:
        return float(self.proxies.detach().norm())


class ByAllParameters(ByProxies):
    """The same, by another door."""

    def scale(self) -> float:
        return float(sum(parameter.detach().norm() for parameter in self.parameters()))


@pytest.mark.parametrize("kind", [ByProxies, ByAllParameters])
def test_a_declaration_that_looks_at_proxies_is_made_anew(kind: type[losses.ProxyLoss]):
    embeddings, labels = make_batch("ragged")
    loss = kind(10, 5).double()
    before = loss(embeddings, labels).item()
    with torch.no_grad():
        loss.proxies.mul_(3.0)
    assert loss(embeddings, labels).item() == copy.deepcopy(loss)(embeddings, labels).item() != before
    assert type(loss._parameters) is dict
