"""The table of operations, from which engines compute, differentiate and print formulas.

A new operation is one row of `OPERATIONS` and one function that builds its node.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from likewise.formula.expressions import (
    Apply,
    Folded,
    Formula,
    Number,
    Operand,
    Rank,
    apply,
    as_formula,
    is_number,
    s,
    s_p,
)


@dataclass(frozen=True)
class Operation:
    """One row of `OPERATIONS`: an operation in torch, its derivatives, and its spelling in Triton and JavaScript.

    Args:
        compute: the operation on tensors.
        derivatives: the derivative by each argument, as a formula of the arguments.
        triton: the expression in a Triton kernel, with a place for each argument.
        javascript: the same in JavaScript.
        symbol: the infix sign in a printed formula; without one it is printed as a function.
    """

    compute: Callable[..., Any]
    derivatives: tuple[Callable[..., Operand], ...]
    triton: str
    javascript: str
    symbol: str = ""


def _softplus(x: Tensor) -> Tensor:
    # torch switches to the identity at 20, an error of 2e-9 that float64 resolves; at 50 the error is below its rounding
    return torch.nn.functional.softplus(x, threshold=50.0)


def safe_sqrt(x: Tensor) -> Tensor:
    """``√max(x, 0)`` with derivative zero, not infinite, where ``x ≤ 0``: the inner mask keeps autograd from computing 1/0.

    Examples:
        >>> import torch
        >>> safe_sqrt(torch.tensor([4.0, -1e-9]))
        tensor([2., 0.])
    """
    positive = x > 0
    return torch.where(positive, torch.where(positive, x, 1.0).sqrt(), 0.0)


def _safe_log(x: Tensor) -> Tensor:
    # the inner mask keeps autograd from computing 1/0
    positive = x > 0
    return torch.where(positive, torch.where(positive, x, 1.0).log(), math.log(torch.finfo(x.dtype).tiny))


def _safe_acosh(x: Tensor) -> Tensor:
    above = x > 1
    return torch.where(above, torch.where(above, x, 2.0).acosh(), 0.0)


def _safe_power(x: Tensor, exponent: Tensor | float) -> Tensor:
    positive = x > 0
    return torch.where(positive, torch.where(positive, x, 1.0) ** exponent, 0.0)


def is_nonzero(x: Tensor) -> Tensor:
    """Return where a value differs from zero by more than the rounding of a similarity, so that equal embeddings tie.

    Examples:
        >>> import torch
        >>> is_nonzero(torch.tensor([0.0, 1e-7, -0.1]))
        tensor([False, False,  True])
    """
    return x.detach().abs() > 8.0 * torch.finfo(x.dtype).eps


def _detach(x: Any) -> Any:
    return x.detach() if isinstance(x, Tensor) else x


# steps are integers, 1 and 0, so that a product keeps the dtype of the other factor; a value is zero within eight times the
# rounding of its dtype, which is float32 in a kernel and float64 in JavaScript
OPERATIONS: dict[str, Operation] = {
    "add": Operation(lambda a, b: a + b, (lambda a, b: 1.0, lambda a, b: 1.0), "{} + {}", "{} + {}", "+"),
    "sub": Operation(lambda a, b: a - b, (lambda a, b: 1.0, lambda a, b: -1.0), "{} - {}", "{} - {}", "-"),
    "mul": Operation(lambda a, b: a * b, (lambda a, b: b, lambda a, b: a), "{} * {}", "{} * {}", "*"),
    "div": Operation(lambda a, b: a / b, (lambda a, b: 1.0 / b, lambda a, b: -a / (b * b)), "{} / {}", "{} / {}", "/"),
    "neg": Operation(lambda a: -a, (lambda a: -1.0,), "-{}", "-{}", "-"),
    "less": Operation(lambda a, b: a < b, (lambda a, b: 0.0, lambda a, b: 0.0), "{} < {}", "{} < {}", "<"),
    "both": Operation(lambda a, b: a & b, (lambda a, b: 0.0, lambda a, b: 0.0), "{} & {}", "{} && {}", "&"),
    "either": Operation(lambda a, b: a | b, (lambda a, b: 0.0, lambda a, b: 0.0), "{} | {}", "{} || {}", "|"),
    "not": Operation(
        lambda a: ~a if isinstance(a, Tensor) else not a, (lambda a: 0.0,), "tl.where({}, 0, 1) > 0", "!{}", "~"
    ),
    "nonzero": Operation(
        is_nonzero, (lambda x: 0.0,), "tl.abs({}) > 9.5367431640625e-07", "Math.abs({}) > 1.7763568394002505e-15"
    ),
    "relu": Operation(torch.relu, (lambda x: where(x > 0.0, 1, 0),), "tl.maximum({}, 0.0)", "Math.max({}, 0)"),
    "square": Operation(torch.square, (lambda x: 2.0 * x,), "{0} * {0}", "square({})"),
    "sqrt": Operation(
        safe_sqrt,
        (lambda x: where(x > 0.0, 0.5 / sqrt(where(x > 0.0, x, 1.0)), 0.0),),
        "tl.sqrt(tl.maximum({}, 0.0))",
        "Math.sqrt(Math.max({}, 0))",
    ),
    "abs": Operation(torch.abs, (lambda x: where(x > 0.0, 1, where(x < 0.0, -1, 0)),), "tl.abs({})", "Math.abs({})"),
    "power": Operation(
        _safe_power,
        (
            lambda x, exponent: exponent * apply("power", x, exponent - 1.0),
            lambda x, exponent: apply("power", x, exponent) * log(where(x > 0.0, x, 1.0)),
        ),
        "_power({}, {})",
        "(({0}) > 0 ? Math.pow({0}, {1}) : 0)",
        "**",
    ),
    "log": Operation(
        _safe_log,
        (lambda x: where(x > 0.0, 1.0 / where(x > 0.0, x, 1.0), 0.0),),
        "tl.log(tl.maximum({}, 1.1754943508222875e-38))",
        "Math.log(Math.max({}, 2.2250738585072014e-308))",
    ),
    "tanh": Operation(torch.tanh, (lambda x: 1.0 - square(tanh(x)),), "_tanh({})", "Math.tanh({})"),
    "acosh": Operation(
        _safe_acosh,
        # two roots, because the square of a large number overflows
        (lambda x: where(x > 1.0, 1.0 / (sqrt(where(x > 1.0, x - 1.0, 1.0)) * sqrt(x + 1.0)), 0.0),),
        "_acosh({})",
        "Math.acosh(Math.max({}, 1))",
    ),
    "exp": Operation(torch.exp, (lambda x: exp(x),), "tl.exp({})", "Math.exp({})"),
    "cos": Operation(torch.cos, (lambda x: -sin(x),), "tl.cos({})", "Math.cos({})"),
    "sin": Operation(torch.sin, (lambda x: cos(x),), "tl.sin({})", "Math.sin({})"),
    "softplus": Operation(_softplus, (lambda x: sigmoid(x),), "_softplus({})", "softplus({})"),
    "sigmoid": Operation(torch.sigmoid, (lambda x: sigmoid(x) * (1.0 - sigmoid(x)),), "_sigmoid({})", "sigmoid({})"),
    "at_least": Operation(
        lambda x, floor: torch.clamp_min(x, floor),
        (lambda x, floor: where(x < floor, 0, 1), lambda x, floor: where(x < floor, 1, 0)),
        "tl.maximum({}, {})",
        "Math.max({}, {})",
    ),
    "where": Operation(
        torch.where,
        (lambda c, a, b: 0.0, lambda c, a, b: where(c, 1, 0), lambda c, a, b: where(c, 0, 1)),
        "tl.where({}, {}, {})",
        "{} ? {} : {}",
    ),
    "stop_gradient": Operation(_detach, (lambda x: 0.0,), "{}", "{}"),
}


_REAL = frozenset({"div", "sqrt", "power", "log", "tanh", "acosh", "exp", "cos", "sin", "softplus", "sigmoid"})
"""Operations whose result is a real number also where their arguments are counts, which are integers."""


def _as_real(value: Any, known: dict[Formula, Any]) -> Any:
    """A count in the dtype of the similarities; torch would use its default dtype."""
    if not isinstance(value, Tensor):
        return value
    dtypes = (each.dtype for each in known.values() if isinstance(each, Tensor) and each.is_floating_point())
    return value.to(next(dtypes, torch.get_default_dtype()))


def relu(x: Operand) -> Formula:
    """``max(x, 0)``, the hinge ``[x]₊``; its derivative at zero is zero.

    Examples:
        >>> from likewise.formula import s
        >>> relu(s - 0.5)
        relu(s - 0.5)
    """
    return apply("relu", x)


def square(x: Operand) -> Formula:
    """``x²``.

    Examples:
        >>> from likewise.formula import s
        >>> derivative(square(s), s)
        2.0 * s
    """
    return apply("square", x)


def sqrt(x: Operand) -> Formula:
    """``√max(x, 0)``, with derivative zero where ``x ≤ 0``, so that a cosine of exactly 1 has a finite gradient.

    Examples:
        >>> from likewise.formula import s
        >>> sqrt(1.0 - s * s)
        sqrt(1.0 - (s * s))
    """
    return apply("sqrt", x)


def exp(x: Operand) -> Formula:
    """``eˣ``.  Use `likewise.formula.logsumexp` for sums of exponentials; it cannot overflow.

    Examples:
        >>> from likewise.formula import s
        >>> exp(-s)
        exp(-s)
    """
    return apply("exp", x)


def log(x: Operand) -> Formula:
    """``log x``; a value that is not positive counts as the smallest normal number of the dtype, with derivative zero.

    Use `likewise.formula.logsumexp` for logarithms of sums of exponentials; it cannot overflow.  A plain number gives a
    number.

    Examples:
        >>> from likewise.formula import s
        >>> log(1.0 + s)
        log(1.0 + s)
    """
    if type(x) is not float and type(x) is not int:
        return apply("log", x)
    if not x > 0:
        raise ValueError(f"x must be above 0 where it is a plain number, but it is {x!r}")
    return Number(math.log(x))


def tanh(x: Operand) -> Formula:
    """``tanh x``.

    Examples:
        >>> from likewise.formula import s
        >>> derivative(tanh(s), s)
        1.0 - square(tanh(s))
    """
    return apply("tanh", x)


def acosh(x: Operand) -> Formula:
    """``arcosh max(x, 1)``, with derivative zero where ``x ≤ 1``, so that a point's distance to itself has a gradient.

    Examples:
        >>> from likewise.formula import s
        >>> acosh(1.0 + 2.0 * square(s))
        acosh(1.0 + (2.0 * square(s)))
    """
    return apply("acosh", x)


def cos(x: Operand) -> Formula:
    """``cos x`` of an angle in radians; a plain number gives a number.

    Examples:
        >>> from likewise.formula import s
        >>> cos(0.0) * s, derivative(cos(s), s)
        (s, -sin(s))
    """
    return Number(math.cos(x)) if type(x) is float or type(x) is int else apply("cos", x)


def sin(x: Operand) -> Formula:
    """``sin x`` of an angle in radians; a plain number gives a number.

    Examples:
        >>> from likewise.formula import s
        >>> derivative(sin(s), s)
        cos(s)
    """
    return Number(math.sin(x)) if type(x) is float or type(x) is int else apply("sin", x)


def softplus(x: Operand) -> Formula:
    """``log(1 + eˣ)``; of a log-sum-exp it is the ``log(1 + Σ e^…)`` of many losses.

    Examples:
        >>> from likewise.formula import s
        >>> derivative(softplus(s), s)
        sigmoid(s)
    """
    return apply("softplus", x)


def sigmoid(x: Operand) -> Formula:
    """``1 / (1 + e⁻ˣ)``.

    Examples:
        >>> from likewise.formula import s
        >>> sigmoid(s)
        sigmoid(s)
    """
    return apply("sigmoid", x)


def at_least(x: Operand, floor: float) -> Formula:
    """``max(x, floor)``.

    Examples:
        >>> from likewise.formula import s
        >>> at_least(s, 1.0)
        at_least(s, 1.0)
    """
    return apply("at_least", x, floor)


def where(condition: Operand, then: Operand, otherwise: Operand) -> Formula:
    """``then`` where the condition holds, else ``otherwise``.

    Examples:
        >>> from likewise.formula import s
        >>> where(0.5 < s, s, 0.0)
        where(0.5 < s, s, 0.0)
    """
    return apply("where", condition, then, otherwise)


def logical_not(condition: Operand) -> Formula:
    """The negation of a condition, ``~condition``; ``torch.compile`` can trace only this form.

    Examples:
        >>> from likewise.formula import s
        >>> logical_not(s < 0.5)
        ~(s < 0.5)
    """
    return apply("not", condition)


def join_conditions(left: Formula | None, right: Formula | None) -> Formula | None:
    """``left & right``, where ``None`` means that there is no condition.

    Examples:
        >>> from likewise.formula import s
        >>> join_conditions(s < 0.5, None), join_conditions(s < 0.5, 0.1 < s)
        (s < 0.5, (s < 0.5) & (0.1 < s))
    """
    return right if left is None else left if right is None else left & right


def stop_gradient(x: Operand) -> Formula:
    """The value of ``x`` without its gradient (Circle's self-paced weights).

    Examples:
        >>> from likewise.formula import s
        >>> derivative(stop_gradient(s) * s, s)
        stop_gradient(s)
    """
    return apply("stop_gradient", x)


def evaluate(node: Formula, known: dict[Formula, Any]) -> Any:
    """Evaluate a formula with torch; ``known`` holds the values of `s` and the folds, and caches what is computed.

    Values may have any shapes that broadcast: engines use ``(m, n)`` for pairs and ``(m, 1)`` for anchors.

    Examples:
        >>> import torch
        >>> from likewise.formula import s
        >>> evaluate(2.0 * s + 1.0, {s: torch.tensor([[0.5]])})
        tensor([[2.]])
    """
    if node in known:
        return known[node]
    if not isinstance(node, Apply):
        return _leaf_value(node)
    arguments = [evaluate(argument, known) for argument in node.arguments]
    if node.operation in _REAL and not any(isinstance(each, Tensor) and each.is_floating_point() for each in arguments):
        arguments = [_as_real(each, known) for each in arguments]
    value = OPERATIONS[node.operation].compute(*arguments)
    known[node] = value
    return value


def _leaf_value(node: Formula) -> float | Tensor:
    """The value of a number; an error for anything that an engine must compute first."""
    if isinstance(node, Number):
        return node.value
    if node is s:
        raise ValueError(
            "a loss must be one number per anchor, but its formula has an s outside of every fold; "
            "fold it with mean, add_up or logsumexp, or use per_pair"
        )
    if node is s_p or (isinstance(node, Folded) and node.rank is Rank.POSITIVE):
        raise ValueError(
            "a loss must be one number per anchor, but its formula has an s_p outside of every fold over EACH_POSITIVE; "
            "fold it with mean, add_up or logsumexp, or use per_triplet"
        )
    raise KeyError(f"the formula needs {node!r}, which was not computed")


def derivative(node: Formula, by: Formula) -> Formula:
    """Return the derivative of a formula by `s`, by a fold inside it, or by any other node it contains.

    A fold counts as one number per anchor; engines differentiate the fold itself with `Fold.derivative`.

    Examples:
        >>> from likewise.formula import relu, s
        >>> derivative(relu(0.2 - s), s)
        where(0.0 < (0.2 - s), 1, 0) * -1.0
    """
    if node is by:
        return Number(1.0)
    if not isinstance(node, Apply):
        return Number(0.0)
    result: Formula = Number(0.0)
    for argument, rule in zip(node.arguments, OPERATIONS[node.operation].derivatives, strict=True):
        inner = derivative(argument, by)
        if not is_number(inner, 0.0):
            result = _plus(result, _times(as_formula(rule(*node.arguments)), inner))
    return result


def _plus(a: Formula, b: Formula) -> Formula:
    return b if is_number(a, 0.0) else a if is_number(b, 0.0) else a + b


def _times(a: Formula, b: Formula) -> Formula:
    if is_number(a, 0.0) or is_number(b, 0.0):
        return Number(0.0)
    return b if is_number(a, 1.0) else a if is_number(b, 1.0) else a * b
