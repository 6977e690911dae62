"""The contract of a loss as a test class."""

from __future__ import annotations

import copy
import gc
import io
import pickle
import warnings
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import pytest
import torch
from torch import Tensor
from torch.autograd import forward_ad

from likewise.formula import (
    Folded,
    Formula,
    Labels,
    PerReference,
    Rank,
    as_similarity,
    derivative,
    evaluate,
    ingredients,
    sort_declaration,
    walk,
)
from likewise.losses import PairLoss, ProxyLoss
from likewise.testing.batches import DEGENERATE, LABELS, Batch, make_batch
from likewise.testing.loops import loop_over
from likewise.testing.similarities import Curved, check_gradient
from likewise.testing.synchronization import evaluate_without_synchronization

Numbers = list[list[float]]


Oracle: TypeAlias = Callable[
    [Numbers, list[int], Numbers | None, list[int] | None, str],
    float | list[float],
]
"""An independent implementation on plain lists: a function of embeddings, labels, references, their labels and a
reduction that returns the reduced loss (a list for ``reduction="none"``)."""


@dataclass(frozen=True)
class LossCase:
    """One loss under test.

    Args:
        make: creates the loss; it must accept ``reduction=`` and ``backend=`` as keywords.
        oracle: an independent implementation of the paper's formula.
        name: the name in test reports; by default the name of the class.
        stop_gradient_value: for a loss with a stop-gradient, a function ``f(embeddings, at, labels)`` of plain lists
            that returns the value at ``embeddings`` with the stopped expressions evaluated at ``at``.
        tolerance: relative and absolute tolerance to the oracle; larger for learned parameters, which are float32.
        depends_on_scale: whether the loss depends on the length of embeddings although its similarity does not.

    Examples:
        >>> from likewise.losses import NTXentLoss
        >>> LossCase(NTXentLoss, oracle=lambda *batch: 0.0).label
        'NTXentLoss'
    """

    make: Callable[..., PairLoss | ProxyLoss]
    oracle: Oracle
    name: str = ""
    stop_gradient_value: Callable[[Numbers, Numbers, list[int]], float] | None = None
    tolerance: float = 1e-9
    depends_on_scale: bool = False

    @property
    def label(self) -> str:
        """The name in test reports."""
        return self.name or getattr(self.make, "__name__", "loss")


def _shape(leaf: Formula) -> tuple[int, ...]:
    """The shape of a leaf for a matrix of 3 anchors and 4 references."""
    if isinstance(leaf, PerReference):
        return (1, 4)
    return {Rank.NUMBER: (), Rank.ANCHOR: (3, 1), Rank.POSITIVE: (3, 1), Rank.PAIR: (3, 4)}[leaf.rank]


def _close(actual: Tensor, expected: Any, tolerance: float = 1e-9) -> None:
    torch.testing.assert_close(
        actual.detach().double(), torch.as_tensor(expected, dtype=torch.float64), rtol=tolerance, atol=tolerance
    )


def _gradient(loss: Callable[..., Any], embeddings: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    leaf = embeddings.detach().clone().requires_grad_()
    value = loss(leaf, labels)
    (gradient,) = torch.autograd.grad(value.sum(), leaf)
    return value.detach(), gradient


def _check_directions(gradient: Tensor, value: Callable[[Tensor], float], at: Tensor, number: int = 6) -> None:
    """Compare the gradient along random directions with central differences: an error in any entry is in every direction."""
    generator, step = torch.Generator().manual_seed(0), 1e-6
    directions = torch.randn((number, *at.shape), generator=generator, dtype=at.dtype)
    expected = [(value(at + step * each) - value(at - step * each)) / (2.0 * step) for each in directions]
    scale = float(gradient.abs().max()) + 1.0
    _close((directions * gradient).reshape(number, -1).sum(dim=1) / scale, [each / scale for each in expected], 1e-6)


class LossContract:
    """Tests for losses: subclass it in a test file with ``cases = [LossCase(...), …]``, and pytest collects the tests.

    Examples:
        >>> class TestMyLosses(LossContract):
        ...     cases = []
    """

    cases: ClassVar[Sequence[LossCase]] = ()

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Run every test once per case."""
        if "case" in metafunc.fixturenames:
            metafunc.parametrize("case", self.cases, ids=[case.label for case in self.cases])

    # correct ----------------------------------------------------------------------------------------------------

    @loop_over("batch", LABELS)
    @loop_over("reduction", ["mean", "nonzero", "sum", "none"])
    def test_equals_the_oracle(self, case: LossCase, batch: str, reduction: str) -> None:
        """The loss equals the oracle on every batch and under every reduction."""
        embeddings, labels = make_batch(batch)
        expected = case.oracle(embeddings.tolist(), labels.tolist(), None, None, reduction)
        _close(case.make(reduction=reduction)(embeddings, labels), expected, case.tolerance)

    @loop_over("reduction", ["mean", "nonzero"])
    def test_equals_the_oracle_with_references(self, case: LossCase, reduction: str) -> None:
        """With separate references no pair is excluded, not even one of equal embeddings."""
        loss = case.make(reduction=reduction)
        embeddings, labels = make_batch("balanced")
        references, reference_labels = make_batch("ragged", seed=1)
        references[0], reference_labels[:4] = embeddings[0], torch.tensor([0, 1, 2, 3])
        if not loss.takes_references:
            with pytest.raises(ValueError, match="takes no references"):
                loss(embeddings, labels, references, reference_labels)
            return
        expected = case.oracle(
            embeddings.tolist(), labels.tolist(), references.tolist(), reference_labels.tolist(), reduction
        )
        _close(loss(embeddings, labels, references, reference_labels), expected, max(case.tolerance, 1e-7))

    @loop_over("batch", ["ragged", "two classes"])
    def test_gradient_equals_finite_differences(self, case: LossCase, batch: str) -> None:
        """The gradient equals finite differences of the value (with stopped expressions held constant)."""
        embeddings, labels = make_batch(batch, seed=2)
        loss = case.make(reduction="mean")
        _, gradient = _gradient(loss, embeddings, labels)
        stop_gradient_value = case.stop_gradient_value
        if stop_gradient_value is None:

            def value(at: Tensor) -> float:
                return float(loss(at, labels).detach())
        else:

            def value(at: Tensor) -> float:
                return stop_gradient_value(at.tolist(), embeddings.tolist(), labels.tolist())

        _check_directions(gradient, value, embeddings)

    def test_gradient_of_parameters_equals_finite_differences(self, case: LossCase) -> None:
        """The gradient of learned parameters, such as proxies and temperatures, equals finite differences of the value."""
        embeddings, labels = make_batch("ragged", seed=5)
        loss = case.make(reduction="mean").double()
        parameters = list(loss.parameters())
        if not parameters:
            assert not loss.state_dict() or all(not value.requires_grad for value in loss.state_dict().values())
            return
        gradients = torch.autograd.grad(loss(embeddings, labels), parameters)
        for parameter, gradient in zip(parameters, gradients, strict=True):

            def value(at: Tensor, parameter: Tensor = parameter) -> float:
                before = parameter.detach().clone()
                with torch.no_grad():
                    parameter.copy_(at)
                    result = float(loss(embeddings, labels))
                    parameter.copy_(before)
                return result

            _check_directions(gradient, value, parameter.detach().clone())

    def test_second_derivative(self, case: LossCase) -> None:
        """The second derivative along a direction, as a gradient penalty needs it, equals finite differences."""
        embeddings, labels = make_batch("balanced", seed=4)
        loss = case.make(reduction="mean")
        direction = torch.randn(embeddings.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        leaf = embeddings.clone().requires_grad_()
        (gradient,) = torch.autograd.grad(loss(leaf, labels), leaf, create_graph=True)
        (second,) = torch.autograd.grad((gradient * direction).sum(), leaf)
        step = 1e-6
        ahead, behind = (_gradient(loss, embeddings + sign * step * direction, labels)[1] for sign in (1.0, -1.0))
        expected = (ahead - behind) / (2.0 * step)
        if case.stop_gradient_value is not None:  # a stopped weight changes the gradient but has no derivative
            assert torch.isfinite(second).all()
            return
        scale = float(expected.abs().max()) + 1.0
        _close(second / scale, expected / scale, 1e-5)

    def test_declared_derivatives_equal_autograd(self, case: LossCase) -> None:
        """The symbolic derivatives of every curve, in s and in every other leaf, and of every fold equal autograd's."""
        terms = [
            term for declaration in case.make().double().declarations() for term in sort_declaration(declaration)[0]
        ]
        generator = torch.Generator().manual_seed(0)
        for node in walk(*(formula for term in terms for formula in (term.total, term.units, term.nonzero))):
            if isinstance(node, Folded) and node.curve.rank == Rank.PAIR and node.fold.name != "count":
                self._check_derivatives(node, generator)

    @staticmethod
    def _check_derivatives(node: Folded, generator: torch.Generator) -> None:
        leaves = ingredients(node.curve)
        known = {
            leaf: (torch.rand(_shape(leaf), generator=generator, dtype=torch.float64) - 0.5).requires_grad_()
            for leaf in leaves
        }
        values = evaluate(node.curve, dict(known))
        gradients = torch.autograd.grad(values.sum(), list(known.values()), retain_graph=True, allow_unused=True)
        constants = {leaf: value.detach() for leaf, value in known.items()}
        for leaf, gradient in zip(leaves, gradients, strict=True):
            declared = torch.as_tensor(evaluate(derivative(node.curve, leaf), dict(constants)), dtype=torch.float64)
            expected = torch.zeros(_shape(leaf)) if gradient is None else gradient  # a count in a condition has none
            _close(declared.detach().expand(3, 4).sum_to_size(_shape(leaf)), expected)
        keep = torch.tensor([[True, True, False, True], [False] * 4, [True] * 4])
        free = values.detach().requires_grad_()
        state = node.fold.start(free, keep)
        (of_fold,) = torch.autograd.grad(node.fold.finish(state).sum(), free)
        _close(node.fold.derivative(free.detach(), keep, tuple(each.detach() for each in state)), of_fold)

    @loop_over("backend", ["dense", "chunked"])
    def test_gradient_on_a_curved_similarity(self, case: LossCase, backend: str) -> None:
        """The gradient is right for a similarity with its own `prepare`, whose squared norms have a gradient."""
        loss: Any = case.make(reduction="mean", backend=backend).double()
        if isinstance(loss, ProxyLoss) or loss.similarities is not None or case.stop_gradient_value is not None:
            return  # the loss is defined on certain similarities only, or is not differentiable by finite differences
        try:
            loss.similarity = Curved()
        except ValueError:
            return  # its margins are in the units of the similarity that it was constructed with
        check_gradient(loss, *make_batch("balanced", seed=6))

    def test_is_a_function_of_similarities(self, case: LossCase) -> None:
        """``from_similarity`` gives the same value, or raises an error of one sentence."""
        loss = case.make()
        embeddings, labels = make_batch("ragged")
        similarities = as_similarity(loss.similarity)(embeddings)
        if loss.only_from_embeddings() is not None:
            with pytest.raises(TypeError, match="cannot be computed from similarities only"):
                loss.from_similarity(similarities, Labels(labels))
            return
        _close(loss.from_similarity(similarities, Labels(labels)), loss(embeddings, labels).detach())
        _close(loss.from_similarity(similarities, labels), loss(embeddings, labels).detach())

    # invariant --------------------------------------------------------------------------------------------------

    def test_order_and_names_do_not_matter(self, case: LossCase) -> None:
        """A permutation of the batch permutes the gradient; other class ids change nothing."""
        loss = case.make()
        per_class = getattr(loss, "num_classes", None) is not None

        for seed, batch in enumerate(["balanced", "ragged", "two classes", "ragged"]):
            embeddings, labels = make_batch(batch, seed=seed)
            value, gradient = _gradient(loss, embeddings, labels)
            order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(seed))
            permuted_value, permuted_gradient = _gradient(loss, embeddings[order], labels[order])
            _close(permuted_value, value)
            _close(permuted_gradient, gradient[order], 1e-7)
            if not per_class:  # losses with parameters per class depend on the ids
                _close(loss(embeddings, 2**40 - 7 * labels), value)

    def test_scale_does_not_matter(self, case: LossCase) -> None:
        """With a similarity of unit vectors the loss does not depend on the length of embeddings."""
        loss = case.make()
        if not as_similarity(loss.similarity).normalize or case.depends_on_scale:
            with pytest.raises(AssertionError):
                self._check_scale(loss, 2.0, 0)
            return

        for seed, scale in enumerate([1e-20, 0.3, 7.0, 1e20]):
            self._check_scale(loss, scale, seed)

    @staticmethod
    def _check_scale(loss: PairLoss | ProxyLoss, scale: float, seed: int) -> None:
        embeddings, labels = make_batch("ragged", seed=seed)
        _close(loss(scale * embeddings, labels), loss(embeddings, labels).detach(), 1e-7)

    # robust -----------------------------------------------------------------------------------------------------

    @loop_over("dtype", [torch.float16, torch.bfloat16, torch.float32])
    @loop_over("kind", ["ordinary", "identical", "zero", "opposite", "one zero", "large", "small"])
    def test_finite_for_finite_input(self, case: LossCase, dtype: torch.dtype, kind: str) -> None:
        """Value and gradient are finite in half precision and on extreme embeddings; the gradient keeps the dtype."""
        embeddings, labels = make_batch("ragged")
        embeddings = _make_extreme(embeddings, kind).to(dtype)
        value, gradient = _gradient(case.make(), embeddings, labels)
        assert value.dtype == torch.float32
        assert gradient.dtype == dtype
        assert torch.isfinite(value).all()
        assert torch.isfinite(gradient).all()

    @loop_over("backend", ["dense", "chunked"])
    def test_finite_at_any_norm(self, case: LossCase, backend: str) -> None:
        """In float32, unit vectors of any norm have a finite loss; raw ones up to the largest square, else one sentence."""
        loss = case.make(backend=backend)
        bounded = as_similarity(loss.similarity).bounded and not case.depends_on_scale
        embeddings, labels = make_batch("ragged")
        rows = torch.nn.functional.normalize(embeddings)
        for norm in (1e-30, 1e-18, 1e18, 1e19, 1e20, 1e30):
            batch = (norm * rows).float(), labels
            if norm > 1e19 and not bounded:
                with pytest.raises(ValueError, match=r"embeddings must have norms of at most .* but row 0 has norm"):
                    loss(*batch)
                continue
            value, gradient = _gradient(loss, *batch)
            assert torch.isfinite(value), norm
            assert torch.isfinite(gradient).all(), norm

    @loop_over("batch", DEGENERATE)
    def test_degenerate_batches_back_propagate(self, case: LossCase, batch: str) -> None:
        """Without positives, negatives or both, value and gradient are finite."""
        embeddings, labels = make_batch(batch)
        value, gradient = _gradient(case.make(), embeddings, labels)
        assert torch.isfinite(value)
        assert torch.isfinite(gradient).all()
        if float(value) == 0.0:
            assert not gradient.any()

    def test_half_precision_accumulates_in_float32(self, case: LossCase) -> None:
        """The loss of half-precision embeddings is the float32 loss of the same numbers; autocast rounds only proxies."""
        embeddings, labels = make_batch("balanced")
        half = embeddings.bfloat16()
        loss = case.make()
        expected = loss(half.float(), labels).detach()
        assert torch.equal(loss(half, labels).detach(), expected)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            under = loss(half, labels)
        # the product with proxies runs in bfloat16, which rounds each of their entries by at most 2^-9 of it
        tolerance = 2.0**-9 if hasattr(loss, "proxies") else 0.0
        torch.testing.assert_close(under.detach(), expected, rtol=tolerance, atol=0.0)

    @loop_over("backend", ["auto", "chunked", "dense"])
    def test_backward_inside_autocast_is_in_full_precision(self, case: LossCase, backend: str) -> None:
        """Gradients do not depend on autocast where ``backward`` is called; torch would round products in it."""
        embeddings, labels = make_batch("balanced")
        loss = case.make(backend=backend)
        found = []
        for enabled in (False, True):
            leaf, copied = embeddings.float().requires_grad_(), copy.deepcopy(loss)
            torch.manual_seed(0)
            with torch.autocast("cpu", dtype=torch.bfloat16):
                value = copied(leaf, labels).sum()
            learned = [each for each in copied.parameters() if each.requires_grad]
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=enabled):
                found.append(torch.autograd.grad(value, [leaf, *learned], allow_unused=True))
        for plain, inside in zip(*found, strict=True):
            assert plain is inside or torch.equal(plain, inside)

    @loop_over(
        "change, error, message",
        [
            (lambda e, y: (e[0], y), ValueError, r"embeddings must have shape \(n, d\)"),
            (lambda e, y: (e.long(), y), TypeError, "embeddings must be of a floating-point dtype"),
            (lambda e, y: (e.tolist(), y), TypeError, "embeddings must be a tensor, but it is a list"),
            (lambda e, y: (e[:0], y[:0]), ValueError, "embeddings must have at least one row"),
            (lambda e, y: (e / 0.0, y), ValueError, "embeddings must be finite, but row 0"),
            (lambda e, y: (e, None), TypeError, "labels must be given"),
            (lambda e, y: (e, y.double()), TypeError, "labels must be of an integer dtype"),
            (lambda e, y: (e, y[:-1]), ValueError, "labels must have one entry for each of the 15 embeddings"),
            (lambda e, y: (e, y[:, None]), ValueError, r"labels must have shape \(n,\)"),
            (lambda e, y: (e, y.to("meta")), ValueError, "labels must be on the device of embeddings"),
        ],
    )
    def test_bad_input_gets_one_sentence(
        self, case: LossCase, change: Callable[..., Any], error: type[Exception], message: str
    ) -> None:
        """An error message is one sentence that names the argument, what it was and what it must be."""
        if message == "labels must be given" and not getattr(case.make(), "takes_labels", True):
            return
        loss, (embeddings, labels) = case.make(), make_batch("ragged")
        if loss.label_kind == "levels" and "labels must have shape" in message:  # (n, 1) is a hierarchy of one level
            labels, message = labels[:, None], r"labels must have shape \(n, L\)"
        with pytest.raises(error, match=message) as caught:
            loss(*change(embeddings, labels))
        assert "\n" not in str(caught.value)

    # compatible with torch --------------------------------------------------------------------------------------

    def test_copies_are_equal(self, case: LossCase) -> None:
        """``deepcopy``, pickle and a state dict through a file give the same loss."""
        embeddings, labels = make_batch("balanced")
        loss = case.make()
        expected = loss(embeddings, labels).detach()
        stored = io.BytesIO()
        torch.save(loss.state_dict(), stored)
        stored.seek(0)
        restored = case.make()
        restored.load_state_dict(torch.load(stored, weights_only=True))
        for duplicate in (copy.deepcopy(loss), pickle.loads(pickle.dumps(loss)), restored):
            assert torch.equal(duplicate(embeddings, labels).detach(), expected)
            assert repr(duplicate) == repr(loss)

    def test_is_freed(self, case: LossCase) -> None:
        """Nothing keeps a loss that was called, its parameters and its graphs."""
        loss = case.make()
        embeddings, labels = make_batch("balanced")
        loss(embeddings.requires_grad_(), labels).sum().backward()
        alive = weakref.ref(loss)
        del loss
        gc.collect()
        assert alive() is None

    def test_compiles_whole(self, case: LossCase) -> None:
        """``torch.compile(fullgraph=True)`` captures the loss and its gradient in one graph."""
        torch.compiler.reset()
        embeddings, labels = make_batch("ragged")
        loss = case.make()
        value, gradient = _gradient(loss, embeddings, labels)
        compiled = torch.compile(loss, fullgraph=True, backend="eager")
        with warnings.catch_warnings():
            # the tracer uses a function of torch that torch deprecates
            warnings.simplefilter("ignore", DeprecationWarning)
            compiled_value, compiled_gradient = _gradient(compiled, embeddings, labels)
        _close(compiled_value, value)
        _close(compiled_gradient, gradient)

    def test_torch_func_grad(self, case: LossCase) -> None:
        """``torch.func.grad`` by embeddings and by parameters (``functional_call``) equals ``backward``."""
        value, embeddings, parameters, gradients = _functional(case)
        found, of_parameters = torch.func.grad(value, argnums=(0, 1))(embeddings, parameters)
        for each, expected in zip((found, *of_parameters.values()), gradients, strict=True):
            _close(each, expected)

    def test_forward_mode(self, case: LossCase) -> None:
        """``torch.func.jvp`` and dual tensors give the product of the gradient and the tangent."""
        value, embeddings, parameters, gradients = _functional(case)
        generator = torch.Generator().manual_seed(0)
        tangents = [torch.randn(each.shape, generator=generator, dtype=torch.float64) for each in gradients]
        products = [(each * tangent).sum() for each, tangent in zip(gradients, tangents, strict=True)]
        of_parameters = dict(zip(parameters, tangents[1:], strict=True))
        with warnings.catch_warnings():
            # torch loads derivatives that it compiled with a function that it deprecates
            warnings.simplefilter("ignore", DeprecationWarning)
            found = torch.func.jvp(value, (embeddings, parameters), (tangents[0], of_parameters))[1]
            _close(found, sum(products))
            with forward_ad.dual_level():
                dual = forward_ad.make_dual(embeddings, tangents[0])  # type: ignore[no-untyped-call]
                found = forward_ad.unpack_dual(value(dual, parameters)).tangent  # type: ignore[no-untyped-call]
            _close(found, products[0])

    def test_does_not_synchronize(self, case: LossCase) -> None:
        """Forward and backward read no value and no shape that depends on values, and run on meta tensors."""
        embeddings, labels = make_batch("ragged")
        loss = case.make()
        _close(evaluate_without_synchronization(loss, embeddings, labels), loss(embeddings, labels).detach())
        value = case.make().to("meta")(embeddings.to("meta"), labels.to("meta"))
        assert value.shape == ()

    def test_any_integer_labels(self, case: LossCase) -> None:
        """Every integer dtype gives the same loss."""
        embeddings, labels = make_batch("ragged")
        loss = case.make()
        expected = loss(embeddings, labels).detach()
        for dtype in (torch.int8, torch.int16, torch.int32, torch.uint8):
            assert torch.equal(loss(embeddings, labels.to(dtype)).detach(), expected)


def _functional(case: LossCase) -> tuple[Callable[..., Tensor], Tensor, dict[str, Tensor], list[Tensor]]:
    """A loss as a function of embeddings and parameters, its arguments, and its gradients from the backward pass."""
    embeddings, labels = make_batch("ragged", seed=6)
    loss = case.make().double()
    parameters = {name: each.detach() for name, each in loss.named_parameters()}

    def value(embeddings: Tensor, parameters: dict[str, Tensor]) -> Tensor:
        result: Tensor = torch.func.functional_call(loss, parameters, (embeddings, labels))
        return result

    leaf = embeddings.clone().requires_grad_()
    gradients = torch.autograd.grad(loss(leaf, labels), [leaf, *loss.parameters()], materialize_grads=True)
    return value, embeddings, parameters, list(gradients)


def _make_extreme(embeddings: Tensor, kind: str) -> Tensor:
    n = len(embeddings)
    if kind == "identical":
        return embeddings[:1].expand(n, -1).clone()
    if kind == "zero":
        return torch.zeros_like(embeddings)
    if kind == "opposite":  # cosines of exactly 1 and −1
        axis = torch.zeros_like(embeddings)
        axis[:, 0] = torch.tensor([1.0, -1.0], dtype=embeddings.dtype).repeat(n)[:n]
        return axis
    if kind == "one zero":
        return torch.cat([torch.zeros_like(embeddings[:1]), embeddings[1:]])
    return embeddings * {"ordinary": 1.0, "large": 1e3, "small": 1e-2}[kind]


__all__ = ["Batch", "LossCase", "LossContract", "Oracle"]
