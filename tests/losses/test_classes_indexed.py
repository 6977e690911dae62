"""Folds over rows whose positives are known by index: what masks say, without a mask."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from likewise import losses
from likewise.engines import DenseEngine, recompute
from likewise.engines.indexed import fold_positives, start_others, start_positives
from likewise.engines.positive_columns import PositiveColumns
from likewise.formula import (
    BOTH,
    NEGATIVES,
    POSITIVES,
    BlendedCenters,
    Masks,
    NearestCenter,
    PairBatch,
    add_up,
    count,
    exp,
    largest,
    logsumexp,
    mean,
    s,
    smallest,
    softplus,
)
from likewise.formula.batch import similarity_hook
from likewise.formula.expressions import Number, PerAnchor, PerReference
from likewise.formula.folds import Count, Mean, Sum
from likewise.formula.traversal import walk
from likewise.testing import loop_over
from tests.losses.test_classes import MAKERS, C, D, batch, make, value_and_gradients

PASSES_OF_THEIR_OWN = ("repulsion", "repulsion-through", "proxy-gml")
"""Losses that compare proxies with proxies, in chunks of rows."""


# -------------------------------------------------------------------------------------------------------- whole losses


@loop_over("reduction", ["mean", "none"])
@loop_over("name", MAKERS)
def test_the_engine_with_masks_says_the_same(name: str, reduction: str):
    """Who looks on gets the engine for any pair_batch: it makes masks of labels, and a curve for every pair."""
    ours = value_and_gradients(make(name, "auto", reduction=reduction))
    seen: list[Tensor] = []
    with similarity_hook(lambda pair_batch, matrix: (seen.append(matrix), matrix)[1]):
        general = value_and_gradients(make(name, "dense", reduction=reduction))
    assert seen
    for left, right in zip(ours, general, strict=True):
        torch.testing.assert_close(left, right, rtol=1e-11, atol=1e-13)


class Largest(TorchDispatchMode):
    """The largest result of each operation, and how often it was called."""

    def __init__(self) -> None:
        super().__init__()
        self.made: dict[str, int] = {}
        self.booleans = 0
        self.products = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        name = function.overloadpacket.__name__
        for each in result if isinstance(result, tuple | list) else [result]:
            if isinstance(each, Tensor):
                self.made[name] = max(self.made.get(name, 0), each.numel())
                if each.dtype == torch.bool:
                    self.booleans = max(self.booleans, each.numel())
        self.products += name in ("mm", "addmm")
        return result


@pytest.mark.parametrize(
    "name", ["normalized", "sphere-face", "cos-face", "arc-face", "proxy-nca-pp", "sub-center", "soft-triple"]
)
def test_one_matrix_no_mask_and_a_margin_for_the_own_class_alone(name: str):
    loss = make(name, "auto")
    embeddings, labels = batch()
    m = len(labels)
    with Largest() as seen:
        value = loss(embeddings, labels)
        forward = seen.products
        value.backward()
    assert forward == 1
    assert seen.products == 3
    if name != "soft-triple":  # its pull between centers chooses by a mask of centers
        assert seen.booleans <= max(m, len(loss.proxies))
    assert seen.made.get("sqrt", 0) <= C * 9  # arc-face's, of m; and the distances between centers
    assert seen.made["exp2_"] == m * C


# ------------------------------------------------------------------------------------------------ single folds

ANCHOR = PerAnchor("anchor", lambda pair_batch: torch.zeros(0))
REFERENCE = PerReference("reference", lambda pair_batch: torch.zeros(0))
LEARNED = torch.tensor(1.3, dtype=torch.float64, requires_grad=True)

CURVES: dict[str, Callable[[], Any]] = {
    "s": lambda: s,
    "a number times s": lambda: 64.0 * s,
    "s over a number": lambda: s / 0.05,
    "both": lambda: 3.0 * (s / 0.2) * ANCHOR,
    "an anchor's number": lambda: ANCHOR * s,
    "a learned number": lambda: s / Number(LEARNED),
    "affine": lambda: 2.0 * (s - 0.5),
    "per reference": lambda: s + REFERENCE,
    "a reference's number times s": lambda: REFERENCE * s,
    "no similarity": lambda: ANCHOR + 1.0,
    "constant": lambda: Number(2.0),
    "a number over s": lambda: 1.0 / (s + 5.0),
    "curved": lambda: softplus(s) * exp(-s),
}
FOLDS = {"logsumexp": logsumexp, "sum": add_up, "mean": mean, "max": largest, "min": smallest}
M, N = 6, 9


def problem_of(columns: Tensor) -> tuple[Tensor, Masks, dict[Any, Tensor]]:
    """Similarities, masks made by looking at every pair, and the numbers that curves refer to."""
    generator = torch.Generator().manual_seed(0)
    matrix = torch.randn(M, N, dtype=torch.float64, generator=generator).requires_grad_()
    positive = torch.zeros(M, N, dtype=torch.bool)
    for row, known in enumerate(columns.tolist()):
        for place in known:
            if place >= 0:
                positive[row, place] = True
    numbers: dict[Any, Tensor] = {
        ANCHOR: (torch.rand(M, dtype=torch.float64, generator=generator) + 0.5).requires_grad_(),
        REFERENCE: torch.randn(N, dtype=torch.float64, generator=generator).requires_grad_(),
    }
    return matrix, Masks(positive, ~positive), numbers


def gradients(values: Tensor, leaves: list[Tensor]) -> list[Tensor]:
    if not values.requires_grad:
        return [torch.zeros_like(leaf) for leaf in leaves]
    weights = torch.linspace(1.0, 2.0, len(values), dtype=torch.float64)
    found = torch.autograd.grad((values * weights).sum(), leaves, allow_unused=True, retain_graph=True)
    return [torch.zeros_like(leaf) if grad is None else grad for leaf, grad in zip(leaves, found, strict=True)]


COLUMNS = {
    "one each": torch.tensor([[0], [8], [3], [3], [4], [1]]),
    "one or none": torch.tensor([[0], [-1], [3], [8], [-1], [1]]),
    "two each": torch.tensor([[0, 1], [7, 8], [2, 3], [4, 5], [0, 1], [2, 3]]),
}


@loop_over("columns", COLUMNS.values())
@pytest.mark.parametrize("curve", CURVES)
@loop_over("fold", FOLDS)
def test_folds_are_those_of_masks(fold: str, curve: str, columns: Tensor):
    """Value and every gradient, from one matrix and from chunks of two, four and three columns."""
    for over in (POSITIVES, NEGATIVES, BOTH):
        check_fold(FOLDS[fold](CURVES[curve](), over), over, columns)


def check_fold(term: Any, over: Any, columns: Tensor) -> None:
    matrix, masks, numbers = problem_of(columns)
    leaves = [matrix, *numbers.values(), LEARNED]
    general = DenseEngine(PairBatch(masks, matrix=matrix)).fold([[term]], numbers)[term]
    numbers = {**numbers, **dict.fromkeys(_learned(term), LEARNED)}
    complete = bool((columns >= 0).all())
    known = PositiveColumns(columns, None, N) if complete else PositiveColumns.within(columns, slice(0, N))
    if over is POSITIVES:
        own = matrix.gather(1, known.columns)
        state = start_positives([term], own, known, numbers)[term]
        found = [fold_positives([term], own, known, numbers)[term], term.fold.finish(state)]
    else:
        states, own = start_others([term], matrix, known, slice(0, N), numbers)
        assert torch.equal(own, matrix.gather(1, known.columns))
        merged = None
        for chunk in (slice(0, 2), slice(2, 6), slice(6, 9)):
            each = PositiveColumns.within(columns, chunk)
            state = start_others([term], matrix[:, chunk], each, chunk, numbers)[0][term]
            merged = state if merged is None else term.fold.merge(merged, state)
        found = [term.fold.finish(states[term]), term.fold.finish(merged)]
    for value in found:
        torch.testing.assert_close(value, general, rtol=1e-12, atol=1e-12)
        for left, right in zip(gradients(value, leaves), gradients(general, leaves), strict=True):
            torch.testing.assert_close(left, right, rtol=1e-11, atol=1e-12)


def _learned(term: Any) -> list[Any]:
    return [node for node in walk(term) if isinstance(node, Number) and isinstance(node.value, Tensor)]


@loop_over("columns", COLUMNS.values())
@loop_over("over", [POSITIVES, NEGATIVES, BOTH])
@loop_over("condition", [None, s > 0.0])
def test_counts_are_those_of_masks(condition: Any, over: Any, columns: Tensor):
    term = count(over, condition)
    matrix, masks, numbers = problem_of(columns)
    expected = DenseEngine(PairBatch(masks, matrix=matrix)).fold([[term]], numbers)[term]
    known = PositiveColumns.within(columns, slice(0, N))
    if over is POSITIVES:
        found = fold_positives([term], matrix.gather(1, known.columns), known, {})[term]
    else:
        found = term.fold.finish(start_others([term], matrix, known, slice(0, N), {})[0][term])
    assert torch.equal(found, expected)
    assert found.dtype == torch.int64


@pytest.mark.parametrize("scale", [64.0, 1e4, ANCHOR], ids=str)
@pytest.mark.parametrize("over", [NEGATIVES, BOTH])
def test_second_derivatives_of_a_log_sum_exp(scale: Any, over: Any):
    """Against torch's own log-sum-exp, also where the own class is far above all others."""
    columns = COLUMNS["one each"]
    matrix, _, numbers = problem_of(columns)
    with torch.no_grad():
        matrix[0, 0] = 50.0
    term = logsumexp(scale * s, over)
    leaves = [matrix, numbers[ANCHOR]]
    factor = numbers[ANCHOR][:, None] if scale is ANCHOR else scale
    values = matrix * factor
    if over is NEGATIVES:
        values = values.scatter(1, columns, -torch.inf)
    expected = torch.logsumexp(values, dim=1)
    ours = term.fold.finish(
        start_others([term], matrix, PositiveColumns(columns, None, N), slice(0, N), numbers)[0][term]
    )
    torch.testing.assert_close(ours, expected)
    direction = torch.randn(M, N, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    second = []
    for value in (ours, expected):
        (first,) = torch.autograd.grad(value.sum(), matrix, create_graph=True)
        found = torch.autograd.grad((first * direction).sum(), leaves, allow_unused=True)
        second.append([torch.zeros(1) if grad is None else grad for grad in found])
    for left, right in zip(*second, strict=True):
        assert torch.isfinite(left).all()
        torch.testing.assert_close(left, right, rtol=1e-9, atol=1e-9)


def test_a_single_class_has_no_negatives():
    """log(1 + 0) is 0, and nothing moves."""
    loss = losses.ArcFaceLoss(1, D)
    embeddings = torch.randn(3, D, requires_grad=True)
    value = loss(embeddings, torch.zeros(3, dtype=torch.int64))
    value.backward()
    assert value == 0.0
    assert not embeddings.grad.any()
    assert not loss.proxies.grad.any()


def test_far_below_the_peak_is_nothing():
    """Weights under e⁻⁸⁰ are zero, not denormal, and the logarithm does not notice."""
    matrix = torch.tensor([[0.0, 1.0, -0.3, 0.99]], requires_grad=True)
    term = logsumexp(100.0 * s, BOTH)
    states, _ = start_others([term], matrix, PositiveColumns(torch.tensor([[0]]), None, 4), slice(0, 4), {})
    value = term.fold.finish(states[term])
    value.backward()
    torch.testing.assert_close(value, torch.tensor([100.0 + math.log1p(math.exp(-1.0))]))
    assert matrix.grad[0, 0] == 0.0
    assert matrix.grad[0, 2] == 0.0
    torch.testing.assert_close(matrix.grad.sum(), torch.tensor(100.0))


# ------------------------------------------------------------------------------------------ gradients of gradients


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks of two or three classes."""
    monkeypatch.setitem(recompute.BUDGET, "cpu", 1)
    monkeypatch.setattr(recompute, "LEAST_ROWS", 3)


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("name", [name for name in MAKERS if name not in PASSES_OF_THEIR_OWN])
def test_a_gradient_penalty_through_chunks(name: str):
    """The squared length of all gradients, added to the loss, has the gradient that the engine with masks finds."""
    results = []
    for backend in ("dense", "chunked"):
        loss = make(name, backend)
        embeddings, labels = batch()
        leaves = [embeddings, *loss.parameters()]

        def penalized(loss: Any = loss, leaves: Any = leaves, labels: Tensor = labels) -> list[Tensor]:
            value = loss(leaves[0], labels)
            first = torch.autograd.grad(value, leaves, create_graph=True)
            total = value + sum(each.square().sum() for each in first)
            return list(torch.autograd.grad(total, leaves))

        if backend == "dense":
            with similarity_hook(lambda pair_batch, matrix: matrix):
                results.append(penalized())
        else:
            results.append(penalized())
    for left, right in zip(*results, strict=True):
        assert left.abs().max() > 0.0
        torch.testing.assert_close(left, right, rtol=1e-9, atol=1e-11)


@pytest.mark.usefixtures("tiny")
def test_a_gradient_penalty_through_chunks_is_the_slope_of_the_gradient():
    """Central differences of the first gradient along a direction, in embeddings and in proxies."""
    loss = make("arc-face", "chunked")
    embeddings, labels = batch()
    leaves = [embeddings, loss.proxies]
    generator = torch.Generator().manual_seed(5)
    along = [torch.randn(leaf.shape, dtype=torch.float64, generator=generator) for leaf in leaves]
    first = torch.autograd.grad(loss(embeddings, labels), leaves, create_graph=True)
    product = sum((grad * way).sum() for grad, way in zip(first, along, strict=True))
    second = torch.autograd.grad(product, leaves)
    step, ends = 1e-6, []
    for sign in (1.0, -1.0):
        with torch.no_grad():
            for leaf, way in zip(leaves, along, strict=True):
                leaf.add_(way, alpha=sign * step)
        ends.append(torch.autograd.grad(loss(embeddings, labels), leaves))
        with torch.no_grad():
            for leaf, way in zip(leaves, along, strict=True):
                leaf.sub_(way, alpha=sign * step)
    for found, ahead, behind in zip(second, *ends, strict=True):
        expected = (ahead - behind) / (2.0 * step)
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6 * float(expected.abs().max()))


# ------------------------------------------------------------------------------------------------ centers


def test_nearest_centers_share_a_tie():
    """Class 0 has its two largest alike; class 1 has one."""
    similarities = torch.tensor([[[0.5, 0.5, 0.1], [0.2, 0.3, 0.1]]], requires_grad=True)
    best = NearestCenter()(similarities)
    best.backward(torch.tensor([[2.0, 3.0]]))
    assert torch.equal(best.detach(), torch.tensor([[0.5, 0.3]]))
    assert torch.equal(similarities.grad, torch.tensor([[[1.0, 1.0, 0.0], [0.0, 3.0, 0.0]]]))


@pytest.mark.parametrize("strided", [False, True])
@pytest.mark.parametrize("pool", [NearestCenter(), BlendedCenters(0.1)], ids=["nearest", "blended"])
def test_pooling_has_two_derivatives_on_any_strides(pool: Callable[[Tensor], Tensor], strided: bool):
    generator = torch.Generator().manual_seed(0)
    values = torch.randn(2, 3, 4, dtype=torch.float64, generator=generator)
    values = values.transpose(1, 2).contiguous().transpose(1, 2) if strided else values
    assert torch.autograd.gradcheck(pool, values.requires_grad_())
    assert torch.autograd.gradgradcheck(pool, values)


def test_blended_centers_by_hand():
    """Weights 1/4 and 3/4 at a temperature of one: similarities 0 and log 3."""
    similarities = torch.tensor([[[0.0, math.log(3.0)]]])
    torch.testing.assert_close(BlendedCenters(1.0)(similarities), torch.tensor([[0.75 * math.log(3.0)]]))


# ------------------------------------------------------------------------------------------------ large masks


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_sums_and_counts_of_a_large_matrix_see_nothing_that_is_not_kept(dtype: torch.dtype):
    """From 65,536 pairs on sums go by bits and counts by 32: not even a NaN may get through; strided alike."""
    generator = torch.Generator().manual_seed(0)
    values = torch.randn(300, 600, dtype=dtype, generator=generator)
    keep = torch.rand(300, 600, generator=generator) < 0.5
    values[~keep] = torch.tensor([torch.nan, torch.inf, -torch.inf], dtype=dtype).repeat(180_000)[: int((~keep).sum())]
    for these, those in ((values, keep), (values[:, ::2], keep[:, ::2])):
        leaf = these.detach().clone().requires_grad_()
        rows = [row[kept] for row, kept in zip(these.double(), those, strict=True)]
        for fold, expected in ((Sum(), [row.sum() for row in rows]), (Mean(), [row.mean() for row in rows])):
            found = fold.finish(fold.start(leaf, those))
            torch.testing.assert_close(found.double(), torch.stack(expected), rtol=1e-4, atol=1e-4)
            (slope,) = torch.autograd.grad(found.sum(), leaf)
            assert torch.equal(slope != 0.0, those)
        assert fold.start(leaf, those)[1].tolist() == [len(row) for row in rows]
        assert Count().finish(Count().start(those, those)).tolist() == [len(row) for row in rows]
