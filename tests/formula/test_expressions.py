"""Formulas: evaluation, slopes, ranks, printing."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise.formula import (
    BOTH,
    EACH_POSITIVE,
    NEGATIVES,
    POSITIVES,
    Formula,
    Number,
    PerAnchor,
    Rank,
    Total,
    acosh,
    add_up,
    apply,
    at_least,
    cos,
    count,
    derivative,
    evaluate,
    exp,
    largest,
    log,
    logsumexp,
    mean,
    relu,
    s,
    s_p,
    sigmoid,
    sin,
    softplus,
    sqrt,
    square,
    stop_gradient,
    substitute,
    tanh,
    where,
)
from likewise.formula.operations import OPERATIONS
from likewise.formula.traversal import ingredients

# one curve for every operation of the table, so that a new operation without a slope cannot slip in
CURVES = {
    "add": s + 1.0,
    "sub": 0.3 - s,
    "mul": s * s,
    "div": (1.0 + s) / (3.0 + s),
    "neg": -s,
    "less": where(0.1 < s, s, 0.0),  # noqa: SIM300  the operand order is the point
    "nonzero": where(apply("nonzero", s), s, 0.0),
    "both": where((s < 0.5) & (s > -0.5), s, 2.0 * s),
    "either": where((s < -0.5) | (s > 0.5), s, 2.0 * s),
    "not": where(~(s < 0.5), s, 2.0 * s),
    "abs": abs(s - 0.1),
    "power": (s + 0.1) ** 1.7,
    "log": log(s + 0.3),
    "tanh": tanh(3.0 * s),
    "acosh": acosh(1.5 + s),
    "relu": relu(s - 0.1),
    "square": square(s),
    "sqrt": sqrt(1.0 - s * s),
    "exp": exp(-s),
    "cos": cos(2.0 * s),
    "sin": sin(2.0 * s),
    "softplus": softplus(50.0 * s),
    "sigmoid": sigmoid(3.0 * s),
    "at_least": at_least(s, 0.2),
    "where": where(s < 0.2, s, s * s),
}


def test_every_operation_has_a_curve():
    assert set(CURVES) | {"stop_gradient"} == set(OPERATIONS)


@settings(max_examples=25, deadline=None)
@given(values=st.lists(st.floats(-0.99, 0.99), min_size=1, max_size=6), name=st.sampled_from(sorted(CURVES)))
def test_declared_slope_is_autograd(values: list[float], name: str):
    curve = CURVES[name]
    similarities = torch.tensor(values, dtype=torch.float64, requires_grad=True)
    value = evaluate(curve, {s: similarities})
    (expected,) = torch.autograd.grad(value.sum(), similarities)
    declared = evaluate(derivative(curve, s), {s: similarities})
    torch.testing.assert_close(torch.as_tensor(declared, dtype=torch.float64).expand_as(expected), expected)
    slope = torch.as_tensor(declared)
    if slope.requires_grad:  # the second derivative, declared and by autograd
        (expected,) = torch.autograd.grad(slope.sum(), similarities)
        twice = evaluate(derivative(derivative(curve, s), s), {s: similarities.detach()})
        torch.testing.assert_close(torch.as_tensor(twice, dtype=torch.float64).expand_as(expected), expected)


def test_what_is_frozen_has_a_value_and_no_slope():
    curve = stop_gradient(s) * s
    at = torch.tensor([0.5], requires_grad=True)
    value = evaluate(curve, {s: at})
    assert value.item() == 0.25
    assert torch.autograd.grad(value, at)[0].item() == 0.5
    assert evaluate(derivative(curve, s), {s: at}).item() == 0.5


def test_slope_by_a_number_that_a_curve_uses():
    negatives = logsumexp(s, NEGATIVES)
    curve = softplus(negatives - s)
    known = {s: torch.tensor([[0.2, 0.4]]), negatives: torch.tensor([[1.0]])}
    by_number, by_similarity = (evaluate(derivative(curve, node), dict(known)) for node in (negatives, s))
    torch.testing.assert_close(by_number, -by_similarity)


def test_ranks_tell_what_a_formula_varies_over():
    negatives = logsumexp(50.0 * s, NEGATIVES)
    norm = PerAnchor("norm", lambda batch: batch.anchors.norm(dim=1))
    ranks = [f.rank for f in (s, negatives, negatives - s, softplus(negatives) + norm, Total(negatives) / 2.0)]
    assert ranks == [Rank.PAIR, Rank.ANCHOR, Rank.PAIR, Rank.ANCHOR, Rank.NUMBER]


def test_a_fold_per_positive_has_a_rank_between_anchors_and_pairs():
    hinges = add_up(relu(s - s_p), NEGATIVES)
    total = add_up(hinges - s_p, EACH_POSITIVE)
    inside = logsumexp(s - mean(s_p, EACH_POSITIVE), NEGATIVES)
    ranks = [f.rank for f in (s_p, s - s_p, hinges, hinges * s, total, total - s, inside)]
    assert ranks == [Rank.POSITIVE, Rank.PAIR, Rank.POSITIVE, Rank.PAIR, Rank.ANCHOR, Rank.PAIR, Rank.ANCHOR]


def test_a_variable_is_replaced_where_it_is_free():
    """A fold binds s or s_p: what is inside is another one."""
    own, other = Number(0.5), Number(0.25)
    push = add_up(relu(s - s_p), NEGATIVES)
    assert repr(substitute(push, {s_p: own})) == "sum[negatives](relu(s - 0.5))"
    nested = add_up(s_p - mean(push, EACH_POSITIVE), EACH_POSITIVE)
    assert substitute(nested, {s_p: own}) is nested
    assert repr(substitute(nested.curve, {s_p: own})) == f"0.5 - {mean(push, EACH_POSITIVE)!r}"
    assert repr(substitute(s * largest(s - s_p, NEGATIVES), {s: other, s_p: own})) == "0.25 * max[negatives](s - 0.5)"
    shared = s_p + 1.0
    new = substitute(add_up(s * shared, NEGATIVES) + shared, {s_p: own})
    assert new.arguments[0].curve.arguments[1] is new.arguments[1]  # what is shared stays shared


def test_a_variable_outside_of_the_folds_that_bind_it_is_refused():
    for formula in (s_p, add_up(s - s_p, NEGATIVES)):
        with pytest.raises(
            ValueError, match=r"has an s_p outside of every fold over EACH_POSITIVE; .* use per_triplet"
        ):
            evaluate(formula + 1.0, {})
    with pytest.raises(ValueError, match=r"has an s outside of every fold; .* use per_pair"):
        evaluate(s + 1.0, {})
    for curve in (s, s - s_p):
        with pytest.raises(ValueError, match="a fold over EACH_POSITIVE must be of one number per positive"):
            mean(curve, EACH_POSITIVE)


def test_ingredients_do_not_look_into_folds():
    inner = logsumexp(s, NEGATIVES)
    assert ingredients(add_up(softplus(inner - s), POSITIVES) + inner) != [s]
    assert ingredients(softplus(inner) - s) == [inner, s]


def test_safe_square_root_at_the_end_of_its_range():
    at = torch.tensor([1.0, -1.0, 1.0 + 1e-7, 0.0], requires_grad=True)
    value = evaluate(sqrt((1.0 - s) * (1.0 + s)), {s: at})
    value.sum().backward()
    assert value.tolist() == [0.0, 0.0, 0.0, 1.0]
    assert torch.isfinite(at.grad).all()


def test_operations_are_finite_at_the_ends_of_their_ranges():
    """Value and derivative, declared and by autograd, where the plain ones are infinite or not a number."""
    ends = {"log": (log(s), -0.5, 0.0), "acosh": (acosh(s), 0.9, 1.0), "power": (s**0.5, -1.0, 0.0)}
    ends |= {f"power {n}": (s**n, 0.0, -0.0) for n in (-1, -2, -1.5)}
    for curve, *points in ends.values():
        at = torch.tensor(points, requires_grad=True)
        value = evaluate(curve, {s: at})
        (slope,) = torch.autograd.grad(value.sum(), at)
        assert torch.isfinite(value).all()
        assert not slope.any()
        assert not torch.as_tensor(evaluate(derivative(curve, s), {s: at.detach()})).any()
    assert evaluate(acosh(s), {s: torch.tensor([1.0])}).item() == 0.0


def test_powers():
    at = torch.tensor([-2.0, 0.5, 3.0], dtype=torch.float64)
    for exponent in (0, 1, 2, 3, 5.0, -1, -3):
        value = torch.as_tensor(evaluate(s**exponent, {s: at}), dtype=torch.float64).expand(3)
        torch.testing.assert_close(value, at**exponent)
    exponent = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
    learned = s**exponent
    (by_autograd,) = torch.autograd.grad(evaluate(learned, {s: at}).sum(), exponent)
    declared = evaluate(derivative(learned, learned.arguments[1]), {s: at})
    torch.testing.assert_close(declared.sum(), by_autograd)
    with pytest.raises(
        TypeError, match=r"the exponent of a power must be a number, but it is s; write exp\(b \* log\(a\)\)"
    ):
        2.0 * s**s
    known = {count(POSITIVES): torch.tensor([[0], [3]]), mean(s, NEGATIVES): torch.zeros(2, 1, dtype=torch.float64)}
    torch.testing.assert_close(
        evaluate(count(POSITIVES) ** -1, known), torch.tensor([[0.0], [1.0 / 3.0]], dtype=torch.float64)
    )


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: where(s, 1.0, 0.0), "the first argument of where must be a condition such as s < 0.5, but it is s"),
        (lambda: s | s, r"an operand of \| must be a condition such as s < 0.5, but it is s"),
        (lambda: (s < 1.0) | 1, r"an operand of \| must be a condition such as s < 0.5, but it is 1"),
        (lambda: (s < 1.0) & logsumexp(s, BOTH), "an operand of & must be a condition .* but it is logsumexp"),
        (lambda: ~s, "the operand of ~ must be a condition such as s < 0.5, but it is s"),
        (lambda: s ** "a", "a formula must consist of formulas, numbers and tensors .* but 'a' is a str"),
        (lambda: s * [1.0], r"a formula must consist of formulas, numbers and tensors .* but \[1.0\] is a list"),
        (lambda: s ** float("nan"), "the exponent of a power must be finite, but it is nan"),
        (lambda: 2.0**s, r"exponent of a power must be a number, but it is s; write exp\(\(s\) \* log\(2.0\)\)"),
        (lambda: log(0.0), "x must be above 0 where it is a plain number, but it is 0.0"),
        (lambda: log(-1), "x must be above 0 where it is a plain number, but it is -1"),
    ],
)
def test_what_is_no_formula_is_refused_where_it_is_written(build: Callable[[], Formula], message: str):
    with pytest.raises((TypeError, ValueError), match=message):
        build()


def test_softplus_is_exact_in_float64():
    x = torch.linspace(-60.0, 60.0, 25, dtype=torch.float64)
    torch.testing.assert_close(
        evaluate(softplus(s), {s: x}), torch.logaddexp(x, torch.zeros_like(x)), rtol=1e-14, atol=1e-20
    )


def test_formulas_print_as_they_are_written():
    assert repr(softplus(50.0 * (s - 0.5)) / 50.0) == "softplus(50.0 * (s - 0.5)) / 50.0"
    assert repr(count(POSITIVES)) == "count[positives](1.0)"
    assert repr(-(s + 1.0)) == "-(s + 1.0)"
    assert repr((s < 0.0) | (abs(s) > 0.5)) == "(s < 0.0) | (0.5 < abs(s))"
    assert repr(~(s < 0.5) & ~apply("nonzero", s)) == "(~(s < 0.5)) & (~nonzero(s))"
    assert repr((1.0 - s) ** 1.5) == "(1.0 - s) ** 1.5"


def test_a_formula_has_no_truth_value():
    with pytest.raises(TypeError, match="a formula has no truth value"):
        bool(s < 0.5)


def test_a_tensor_in_a_formula_is_a_number():
    temperature = torch.tensor(0.5, requires_grad=True)
    value = evaluate(s / temperature, {s: torch.tensor([1.0])})
    value.sum().backward()
    assert temperature.grad.item() == -4.0
    with pytest.raises(ValueError, match="must have no dimensions, but its shape is"):
        s * torch.ones(2)


def test_unknown_numbers_are_named():
    with pytest.raises(KeyError, match=r"needs max\[negatives\]"):
        evaluate(s - largest(s, NEGATIVES), {s: torch.zeros(1, 1)})


def test_formulas_are_immutable():
    formula: Formula = s + 1.0
    with pytest.raises(AttributeError):
        formula.operation = "sub"


@pytest.mark.parametrize(
    "operation", [log, softplus, sigmoid, sqrt, tanh, exp, lambda x: x / count(BOTH), lambda x: x**0.5]
)
def test_counts_are_real_numbers_where_an_operation_needs_them(operation: Callable[[Formula], Formula]):
    """A count is an integer; ``log(count(…))`` is computed in the precision of the similarities."""
    number = torch.tensor([[3]])
    known = {
        count(NEGATIVES): number,
        count(BOTH): number + 2,
        mean(s, NEGATIVES): torch.zeros(1, 1, dtype=torch.float64),
    }
    exact = {node: value.double() for node, value in known.items()}
    found = evaluate(operation(count(NEGATIVES)), known)
    torch.testing.assert_close(found, evaluate(operation(count(NEGATIVES)), exact), rtol=0.0, atol=0.0)
