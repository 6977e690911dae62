"""Products by oneDNN and in parts against float64, anywhere: values, gradients, and where plain products are needed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor

from likewise import losses
from likewise._compat import is_built_with_onednn, multiply_with_onednn
from likewise.formula import matmul as module
from likewise.formula import multiply_columns, multiply_pairs, multiply_rows, split_into_parts
from likewise.formula.parts import multiply_parts, repays_splitting
from likewise.formula.similarities import SNR, Euclidean, SquaredEuclidean
from likewise.metrics import prepared_rows, retrieval

CALLS: list[int] = []


@pytest.fixture(autouse=True, params=["oneDNN", "parts"])
def method(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Use one method for all products, and count them."""
    CALLS.clear()
    if request.param == "oneDNN":
        if not is_built_with_onednn():
            pytest.skip("torch has no oneDNN")
        for place in (module, prepared_rows):
            monkeypatch.setattr(place, "multiply_with_onednn", _count(multiply_with_onednn))
        monkeypatch.setattr(module, "_suits_onednn", lambda: True)
    else:
        monkeypatch.setattr(module, "multiply_parts", _count(multiply_parts))
        monkeypatch.setattr(module, "pays_parts", _are_plain_floats)
        monkeypatch.setattr(module, "pays_onednn", lambda left, right: False)
    monkeypatch.setattr(module, "LEAST_MULTIPLICATIONS", 1)
    monkeypatch.setattr(module, "LEAST_ROWS", 1)
    return request.param


def _count(multiply: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def counted(*args: Any) -> Tensor:
        CALLS.append(1)
        return multiply(*args)

    return counted


def _are_plain_floats(left: Tensor, right: Tensor) -> bool:
    return left.dtype == right.dtype == torch.float32 and {type(left), type(right)} <= {Tensor, torch.nn.Parameter}


def _random(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


def _is_close(ours: Tensor, exact: Tensor) -> bool:
    return torch.allclose(ours.double(), exact, rtol=1e-5, atol=1e-5)


LAYOUTS = {
    "contiguous": lambda m, n: _random(m, n),
    "transposed": lambda m, n: _random(n, m).T,
    "columns of a wider matrix": lambda m, n: _random(m, 2 * n)[:, 1 : n + 1],
    "every other row": lambda m, n: _random(2 * m, n)[::2],
    "expanded": lambda m, n: _random(m, 1).expand(m, n),
}


@pytest.mark.parametrize("left", LAYOUTS)
@pytest.mark.parametrize("right", LAYOUTS)
def test_values_of_any_layout(left: str, right: str) -> None:
    a, b = LAYOUTS[left](40, 24), LAYOUTS[right](56, 24)
    assert _is_close(multiply_rows(a, b), a.double() @ b.double().T)
    for wide in (56, 280):
        a, b = LAYOUTS[left](40, 24), LAYOUTS[right](40, wide)
        product = multiply_columns(a, b)
        assert _is_close(product, a.double().T @ b.double())
        assert product.is_contiguous()
    assert len(CALLS) == 3


def test_added_numbers_and_a_factor(method: str) -> None:
    a, b, c = _random(30, 8), _random(50, 8), _random(1, 50)
    assert _is_close(multiply_rows(a, b, c, -2.0), -2.0 * a.double() @ b.double().T + c.double())
    assert bool(CALLS) is (method == "oneDNN")  # sums of parts are rounded towards zero, and do not cancel
    assert _is_close(multiply_rows(a, b, factor=-2.0), -2.0 * a.double() @ b.double().T)
    assert CALLS


def test_distances_cancel(method: str) -> None:
    """Equal embeddings have distance zero, so that their products must not be rounded in one direction."""
    x = _random(40, 16)
    for similarity in (Euclidean(), SquaredEuclidean(), SNR()):
        similarity(x, x + 1.0)
        assert bool(CALLS) is (method == "oneDNN"), similarity
        CALLS.clear()
    losses.ContrastiveLoss(similarity="euclidean", backend="chunked")(x, torch.arange(40) // 4)
    assert bool(CALLS) is (method == "oneDNN")


@pytest.mark.parametrize("factor", [1.0, 2.0])
@pytest.mark.parametrize("same", [False, True])
def test_gradients_once_and_twice(same: bool, factor: float) -> None:
    left, added, grad = _random(40, 3), _random(1, 40 if same else 50), _random(40, 40 if same else 50)
    given = [left, added] if same else [left, added, _random(50, 3)]

    def differentiate(inputs: list[Tensor]) -> list[Tensor]:
        inputs = [each.clone().requires_grad_() for each in inputs]
        value = multiply_pairs(inputs[0], inputs[0] if same else inputs[2], inputs[1], factor)
        first = torch.autograd.grad(value, inputs, grad.to(value.dtype), retain_graph=True)
        again = torch.autograd.grad(value.pow(3).sum(), inputs, create_graph=True)
        second = torch.autograd.grad(torch.cat([each.flatten() for each in again]).square().sum(), inputs)
        return [value, *first, *second]

    ours = differentiate(given)
    assert len(CALLS) >= 3
    for result, exact in zip(ours, differentiate([each.double() for each in given]), strict=True):
        torch.testing.assert_close(result.double(), exact, rtol=1e-4, atol=1e-4 * exact.abs().max().item())


def test_only_added_numbers_have_a_gradient() -> None:
    left, right, added = _random(40, 3), _random(50, 3), _random(1, 50).requires_grad_()
    for product in (multiply_pairs, multiply_rows):
        (gradient,) = torch.autograd.grad(product(left, right, added).square().sum(), added)
        exact = 2.0 * (left.double() @ right.double().T + added.double()).sum(dim=0, keepdim=True)
        torch.testing.assert_close(gradient.double(), exact, rtol=1e-4, atol=1e-4)


def test_transforms_and_autocast_use_plain_products() -> None:
    a, b = _random(30, 8), _random(50, 8)
    torch.testing.assert_close(torch.vmap(lambda row: multiply_pairs(row[None], b)[0])(a), a @ b.T)
    results = torch.func.jvp(lambda rows: multiply_pairs(rows, b).sum(), (a,), (a,))
    torch.testing.assert_close(results[0], results[1])
    compiled = torch.compile(multiply_pairs, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(a, b), a @ b.T)
    with torch.autocast("cpu", torch.bfloat16):
        assert multiply_pairs(a, b).dtype == torch.bfloat16
    assert not CALLS
    assert multiply_rows(a.double(), b.double()).dtype == torch.float64
    assert not CALLS


class _Rows(Tensor):
    """A subclass, which may know other products."""


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_only_plain_tensors_and_where_it_is_enabled(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = _random(30, 8), _random(50, 8)
    multiply_rows(a.as_subclass(_Rows), b)
    if method == "oneDNN":
        with monkeypatch.context() as patch:
            patch.setattr(torch.backends.mkldnn, "enabled", False)
            multiply_rows(a, b)
    traced = torch.jit.trace(multiply_rows, (a, b), check_trace=False)
    assert not CALLS
    torch.testing.assert_close(traced(a, b), a @ b.T)


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")  # torch instantiates one
@pytest.mark.parametrize("kind", [losses.ContrastiveLoss, losses.NTXentLoss, losses.AngularLoss])
def test_compiled_in_one_graph(kind: Callable[..., torch.nn.Module], monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where products are large enough for oneDNN, and nothing is known of the processor yet."""
    monkeypatch.undo()
    module._suits_onednn.cache_clear()
    embeddings, labels = _random(512, 64).requires_grad_(), torch.arange(512) // 4
    loss = kind()
    value = torch.compile(loss, backend="eager", fullgraph=True)(embeddings, labels)
    torch.testing.assert_close(value, loss(embeddings, labels))


@pytest.mark.parametrize("kind", [losses.ContrastiveLoss, partial(losses.NormalizedSoftmaxLoss, 20, 16)])
def test_engines_agree(kind: Callable[..., torch.nn.Module]) -> None:
    embeddings, labels = _random(80, 16).requires_grad_(), torch.arange(80) % 20
    results = []
    for backend in ("dense", "chunked"):
        CALLS.clear()
        torch.manual_seed(0)
        loss = kind(backend=backend)
        value = loss(embeddings, labels)
        results.append([value, *torch.autograd.grad(value, [embeddings, *loss.parameters()])])
        assert len(CALLS) >= 2
    for dense, chunked in zip(*results, strict=True):
        torch.testing.assert_close(dense, chunked, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("method", ["oneDNN"], indirect=True)
def test_metrics() -> None:
    embeddings, labels = _random(200, 16), torch.arange(200) % 20
    scores = retrieval(embeddings, labels)
    assert CALLS
    exact = retrieval(embeddings.double(), labels)
    assert scores == pytest.approx(exact)


@pytest.mark.parametrize("method", ["parts"], indirect=True)
@pytest.mark.parametrize("shape", [(64, 16, 80), (8, 400, 8), (8, 3000, 16)])  # copies, six products, chunks and a rest
def test_parts_are_as_exact_as_float32(shape: tuple[int, int, int]) -> None:
    m, inner, n = shape
    a, b = torch.nn.functional.normalize(_random(m, inner)), torch.nn.functional.normalize(_random(n, inner))
    exact = a.double() @ b.double().T
    own, plain = (float((each.double() - exact).abs().max()) for each in (multiply_rows(a, b), a @ b.T))
    assert own <= 2.0 * plain + 2.0**-24
    high, mid, low = (part.double() for part in split_into_parts(a, 3))
    assert float((high + mid + low - a.double()).abs().max()) <= 2.0**-25


@pytest.mark.parametrize("method", ["parts"], indirect=True)
@pytest.mark.parametrize(
    ("shape", "pays"),
    [
        ((8192, 512, 8192), True),
        ((32768, 512, 4160), True),
        ((1024, 512, 1024), False),  # too small
        ((64, 512, 131072), False),  # splitting takes longer than the product
        ((8192, 4096, 512), False),  # the same for a gradient
        ((8192, 4096, 2048), True),
        ((131072, 1024, 8192), False),  # too large
    ],
)
def test_where_parts_pay(shape: tuple[int, int, int], pays: bool) -> None:
    m, inner, n = shape
    left, right = torch.empty(m, inner, device="meta"), torch.empty(n, inner, device="meta")
    assert repays_splitting(left, right) is pays
