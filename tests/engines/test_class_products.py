"""Sums over the negatives of both members of a pair, against every triplet, on whole rows, and each pair as an anchor."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.autograd import forward_ad

from likewise.engines import class_products, split_products
from likewise.engines.class_products import multiply_classes
from likewise.engines.mapping import WholeRows
from likewise.engines.split_products import PlainFactors, SplitFactors
from likewise.formula import Cosine, Labels, PairBatch, check_values, multiply_into_float32
from likewise.losses import AngularLoss

LABELS = {
    "four each": lambda m, generator: torch.randperm(m, generator=generator) // 4,
    "any number": lambda m, generator: torch.randint(m // 4 + 2, (m,), generator=generator),
    "fourteen each": lambda m, generator: torch.randperm(m, generator=generator) // 14,
    "seventeen each": lambda m, generator: torch.randperm(m, generator=generator) // 17,
    "one class": lambda m, generator: torch.zeros(m, dtype=torch.int64),
    "no positive": lambda m, generator: torch.randperm(m, generator=generator),
}


def draw(m: int, labels: str, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(m)
    return torch.randn(m, 6, generator=generator, dtype=dtype), LABELS[labels](m, generator)


@pytest.fixture(params=[1, 2, 100], ids=lambda tiles: f"{tiles} tiles at once")
def tiles(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks of one tile, of several, and of all rows."""

    def plan(rows: int, columns: int, like: Tensor, together: int, **options: int) -> list[slice]:
        step = request.param * together
        return [slice(first, min(first + step, rows)) for first in range(0, max(rows, 1), step)]

    monkeypatch.setattr(class_products, "plan_chunks", plan)


def outcome(x: Tensor, labels: Tensor) -> tuple[Tensor, ...]:
    """The loss, its gradient, a second derivative, and the values and gradients of single anchors."""
    leaf = x.clone().requires_grad_()
    value = AngularLoss()(leaf, labels)
    (gradient,) = torch.autograd.grad(value, leaf, create_graph=True)
    second = (
        torch.autograd.grad((gradient * x.cos()).sum(), leaf, retain_graph=True)[0] if gradient.requires_grad else x
    )
    (plain,) = torch.autograd.grad(value, leaf)
    return value, gradient, second, plain, AngularLoss(reduction="mean_per_anchor")(x, labels)


@pytest.mark.parametrize("m", [1, 5, 31, 70])
@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.usefixtures("tiles")
def test_angular_loss(m: int, labels: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x, classes = draw(m, labels)
    found = outcome(x, classes)
    with monkeypatch.context() as patch:
        patch.setattr(WholeRows, "multiply_classes", lambda *_: None)
        torch.testing.assert_close(found, outcome(x, classes), rtol=1e-10, atol=1e-12)
        patch.setattr(WholeRows, "positive_index", lambda *_, **__: None)
        torch.testing.assert_close(found, outcome(x, classes), rtol=1e-10, atol=1e-12)


def test_not_a_number_is_not_hidden() -> None:
    x, labels = draw(31, "four each")
    x[5, 2] = torch.nan
    with check_values(False):
        assert AngularLoss()(x, labels).isnan()


def test_several_gradients_at_once() -> None:
    x, labels = draw(31, "any number")
    value = AngularLoss()(x.requires_grad_(), labels)
    upstream = torch.tensor([1.0, -2.0], dtype=torch.float64)
    (both,) = torch.autograd.grad(value, x, upstream, is_grads_batched=True, retain_graph=True)
    (one,) = torch.autograd.grad(value, x, retain_graph=True)
    torch.testing.assert_close(both, torch.stack([one, -2.0 * one]))
    mapped = torch.func.vmap(lambda factor: torch.autograd.grad(value, x, factor, retain_graph=True)[0])(upstream)
    torch.testing.assert_close(mapped, torch.stack([one, -2.0 * one]))


def test_a_gradient_inside_other_transforms() -> None:
    x, labels = draw(31, "any number")
    value = AngularLoss()(x.requires_grad_(), labels)
    (expected,) = torch.autograd.grad(value, x, retain_graph=True)
    with forward_ad.dual_level():
        (found,) = torch.autograd.grad(value, x, retain_graph=True)
    torch.testing.assert_close(found, expected, rtol=0.0, atol=0.0)

    def differentiate(other: Tensor) -> Tensor:
        (found,) = torch.autograd.grad(value, x)
        torch.testing.assert_close(found, expected, rtol=0.0, atol=0.0)
        return other.sum()

    torch.func.grad(differentiate)(torch.ones(2))


@pytest.mark.usefixtures("tiles")
def test_sums() -> None:
    x, labels = draw(50, "any number")
    batch = PairBatch(Labels(labels), Cosine(), anchors=x)
    most = int(labels.bincount().max()) - 1
    found, S = multiply_classes(batch, 2.0, most), batch.similarities()
    pairs = set()
    for row, k in found.exists.nonzero().tolist():
        a, p = int(found.order[row]), int(found.order[row + k + 1])
        pairs |= {(a, p), (p, a)}
        negatives = labels != labels[a]
        torch.testing.assert_close(found.similarities[row, k], S[a, p])
        torch.testing.assert_close(found.sums[row, k], torch.exp(2.0 * (S[a] + S[p]))[negatives].sum())
    assert pairs == {(a, p) for a in range(50) for p in range(50) if a != p and labels[a] == labels[p]}
    number = found.add_both(found.exists.double())
    torch.testing.assert_close(number, (labels[:, None] == labels).double().sum(dim=1) - 1.0)


def test_halves_of_float32() -> None:
    """Products and gradients of halves are far more accurate than bfloat16, as rows and as part of the loss."""
    rows = torch.nn.functional.normalize(torch.randn(64, 128, generator=torch.Generator().manual_seed(0)))
    gradient = torch.randn(20, 64, generator=torch.Generator().manual_seed(1))
    some, split, plain = slice(10, 30), SplitFactors.of(rows), PlainFactors(rows.double())
    torch.testing.assert_close(split.multiply(some).double(), plain.multiply(some), rtol=0.0, atol=1e-5)
    found, expected = torch.ones_like(rows), torch.ones_like(rows).double()
    split.pass_on(gradient, some, found)
    plain.pass_on(gradient.double(), some, expected)
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=2e-5)


@pytest.mark.usefixtures("tiles")
def test_angular_loss_of_halves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(class_products, "make_factors", lambda rows, half: SplitFactors.of(rows))
    x, labels = draw(70, "four each", torch.float32)
    leaf, truth = x.clone().requires_grad_(), x.double().requires_grad_()
    loss = AngularLoss()
    value = loss(leaf, labels)
    (gradient,) = torch.autograd.grad(value, leaf)
    monkeypatch.setattr(class_products, "make_factors", split_products.make_factors)
    exact = loss(truth, labels)
    (expected,) = torch.autograd.grad(exact, truth)
    torch.testing.assert_close(value.double(), exact, rtol=1e-5, atol=0.0)
    torch.testing.assert_close(gradient.double(), expected, rtol=0.0, atol=2e-5 * float(expected.abs().max()))


def test_sums_of_products_in_float32() -> None:
    left, right = torch.eye(2).bfloat16(), torch.tensor([[1.0, 2.0], [3.0, 4.0]]).bfloat16()
    total = torch.ones(2, 2)
    assert multiply_into_float32(left, right, total) is total
    torch.testing.assert_close(total, right.float() + 1.0)
    assert multiply_into_float32(left, right).dtype == torch.float32
