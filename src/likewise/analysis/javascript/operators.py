"""ATen's operations in JavaScript: what each entry of a result is, in terms of entries of its arguments.

Three tables: `POINTWISE`, an expression of the arguments at the same place; `VIEWS`, an argument at another place; and
`REDUCTIONS`, how an entry is gathered from many.  What is in none of them is in
`likewise.analysis.javascript.entries` and `likewise.analysis.javascript.writer`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import sympy
from torch.utils._sympy.functions import FloorDiv, Mod

from likewise.analysis.javascript.arrays import Array, Index, product, ravel, same
from likewise.analysis.javascript.kernels import Kernel, Loop, Term

# ------------------------------------------------------------------------------------------------ element by element

Pointwise = Callable[..., Term]


def _arithmetic(form: str) -> Pointwise:
    return lambda kernel, array, *terms: kernel.make(form, *map(kernel.number, terms))


def _comparison(sign: str) -> Pointwise:
    return lambda kernel, array, a, b: kernel.make(
        f"({{0}}{sign}{{1}})", kernel.number(a), kernel.number(b), truth=True
    )


def _is(term: Term, value: str) -> bool:
    return term.is_plain and term.outside is None and term.form == value


def times(kernel: Kernel, a: Term, b: Term) -> Term:
    """A product; one times something is that.

    Examples:
        >>> kernel = Kernel((), {})
        >>> times(kernel, kernel.constant(1), kernel.outside("x", "h")).outside
        ('x', 'h')
    """
    a, b = kernel.number(a), kernel.number(b)
    if _is(a, "1"):
        return b
    if _is(b, "1"):
        return a
    if _is(a, "-1"):
        return kernel.make("(-{0})", b)
    return kernel.make("(-{0})", a) if _is(b, "-1") else kernel.make("({0}*{1})", a, b)


def _multiply(kernel: Kernel, array: Array, a: Term, b: Term) -> Term:
    if array.dtype.is_floating_point or a.truth == b.truth:
        return times(kernel, a, b)
    # a whole number is finite, so that it need not be known where a condition fails
    condition, value = (a, b) if a.truth else (b, a)
    return kernel.make("({0}?{1}:0)", condition, value)


def _exp2(kernel: Kernel, array: Array, a: Term) -> Term:
    """As a power of e, which browsers have; a factor that turns one into the other is left out."""
    a, factor = kernel.number(a), math.log(2.0)
    if a.form == "({0}*{1})" and a.parts[1].is_plain and a.parts[1].outside is None and a.parts[1].depth == 0:
        a, factor = a.parts[0], factor * float(a.parts[1].form)
    if abs(factor - 1.0) < 1e-15:
        return kernel.make("Math.exp({0})", a)
    return kernel.make("Math.exp({0})", times(kernel, a, kernel.constant(factor)))


def plus(kernel: Kernel, a: Term, b: Term, sign: str = "+") -> Term:
    """A sum or a difference; nothing added to something is that.

    Examples:
        >>> kernel = Kernel((), {})
        >>> plus(kernel, kernel.constant(0), kernel.outside("x", "h"), "-").form
        '(-{0})'
    """
    a, b = kernel.number(a), kernel.number(b)
    if _is(b, "0"):
        return a
    if _is(a, "0"):
        return b if sign == "+" else kernel.make("(-{0})", b)
    return kernel.make(f"({{0}}{sign}{{1}})", a, b)


def _sum(sign: str) -> Pointwise:
    def function(kernel: Kernel, array: Array, a: Term, b: Term, alpha: Term | None = None) -> Term:
        return plus(kernel, a, b if alpha is None else times(kernel, b, alpha), sign)

    return function


def _divide(kernel: Kernel, array: Array, a: Term, b: Term) -> Term:
    a, b = kernel.number(a), kernel.number(b)
    result = a if _is(b, "1") else kernel.make("({0}/{1})", a, b)
    mode = array.options.get("rounding_mode")
    return result if mode is None else kernel.make(f"Math.{mode}({{0}})", result)


def _power(kernel: Kernel, array: Array, a: Term, b: Term) -> Term:
    a, b = kernel.number(a), kernel.number(b)
    forms = {"1": "{0}", "0.5": "Math.sqrt({0})", "-1": "(1/{0})", "-0.5": "(1/Math.sqrt({0}))"}
    if _is(b, "2"):
        return kernel.make("({0}*{1})", a, a)
    form = next((form for exponent, form in forms.items() if _is(b, exponent)), None)
    return kernel.make("Math.pow({0},{1})", a, b) if form is None else kernel.make(form, a)


def _logical(sign: str, on_whole_numbers: str) -> Pointwise:
    def function(kernel: Kernel, array: Array, a: Term, b: Term) -> Term:
        if array.is_truth:
            return kernel.make(f"({{0}}{sign}{{1}})", truth_of(kernel, a), truth_of(kernel, b), truth=True)
        return kernel.make(f"({{0}}{on_whole_numbers}{{1}})", a, b)

    return function


def truth_of(kernel: Kernel, term: Term) -> Term:
    """A number as a boolean.

    Examples:
        >>> kernel = Kernel((), {})
        >>> truth_of(kernel, kernel.outside("x", "h")).form
        '({0}!==0)'
    """
    if term.form == "({0}?1:0)":
        return term.parts[0]
    return term if term.truth else kernel.make("({0}!==0)", term, truth=True)


def _not(kernel: Kernel, array: Array, a: Term) -> Term:
    if not array.is_truth:
        return kernel.make("(~{0})", a)
    a = truth_of(kernel, a)
    return a.parts[0] if a.form == "(!{0})" else kernel.make("(!{0})", a, truth=True)


def _where(kernel: Kernel, array: Array, condition: Term, a: Term, b: Term) -> Term:
    condition = truth_of(kernel, condition)
    if array.is_truth:
        return kernel.make("({0}?{1}:{2})", condition, truth_of(kernel, a), truth_of(kernel, b), truth=True)
    return kernel.make("({0}?{1}:{2})", condition, kernel.number(a), kernel.number(b))


def _clamp(kernel: Kernel, array: Array, a: Term, least: Term | None = None, most: Term | None = None) -> Term:
    a = kernel.number(a)
    if least is not None:
        a = kernel.make("Math.max({0},{1})", a, kernel.number(least))
    return a if most is None else kernel.make("Math.min({0},{1})", a, kernel.number(most))


def _convert(kernel: Kernel, array: Array, a: Term) -> Term:
    if array.is_truth:
        return truth_of(kernel, a)
    source = array.args[0]
    if isinstance(source, Array) and source.dtype.is_floating_point and not array.dtype.is_floating_point:
        return kernel.make("Math.trunc({0})", kernel.number(a))
    return kernel.number(a)


def _equal(sign: str) -> Pointwise:
    def function(kernel: Kernel, array: Array, a: Term, b: Term) -> Term:
        if not (a.truth and b.truth):
            a, b = kernel.number(a), kernel.number(b)
        return kernel.make(f"({{0}}{sign}{{1}})", a, b, truth=True)

    return function


_MATH = "abs exp log log1p expm1 sqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh"
_MATH += " floor ceil trunc sign log2 log10"

POINTWISE: dict[str, Pointwise] = {
    **{name: _arithmetic(f"Math.{name}({{0}})") for name in _MATH.split()},
    "atan2": _arithmetic("Math.atan2({0},{1})"),
    "hypot": _arithmetic("Math.hypot({0},{1})"),
    "add": _sum("+"),
    "sub": _sum("-"),
    "mul": _multiply,
    "div": _divide,
    "neg": _arithmetic("(-{0})"),
    "reciprocal": _arithmetic("(1/{0})"),
    "pow": _power,
    "exp2": _exp2,
    "rsqrt": _arithmetic("(1/Math.sqrt({0}))"),
    "sigmoid": _arithmetic("(1/(1+Math.exp(-{0})))"),
    "relu": _arithmetic("Math.max({0},0)"),
    "maximum": _arithmetic("Math.max({0},{1})"),
    "minimum": _arithmetic("Math.min({0},{1})"),
    "fmod": _arithmetic("({0}%{1})"),
    "remainder": _arithmetic("modulo({0},{1})"),
    "floor_divide": _arithmetic("Math.floor({0}/{1})"),
    "round": _arithmetic("toEven({0})"),
    "clamp": _clamp,
    "clamp_min": _clamp,
    "clamp_max": lambda kernel, array, a, most: _clamp(kernel, array, a, None, most),
    "gt": _comparison(">"),
    "ge": _comparison(">="),
    "lt": _comparison("<"),
    "le": _comparison("<="),
    "eq": _equal("==="),
    "ne": _equal("!=="),
    "isnan": lambda kernel, array, a: kernel.make("({0}!=={1})", kernel.number(a), kernel.number(a), truth=True),
    "isinf": lambda kernel, array, a: kernel.make("(Math.abs({0})===Infinity)", kernel.number(a), truth=True),
    "bitwise_and": _logical("&&", "&"),
    "bitwise_or": _logical("||", "|"),
    "bitwise_xor": _logical("!==", "^"),
    "logical_and": _logical("&&", "&"),
    "logical_or": _logical("||", "|"),
    "logical_xor": _logical("!==", "^"),
    "bitwise_not": _not,
    "logical_not": _not,
    "where": _where,
    "_to_copy": _convert,
    "view.dtype": _convert,
}

COSTS = {"exp": 12, "log": 12, "log1p": 14, "expm1": 14, "pow": 20, "exp2": 12, "sigmoid": 14, "sin": 14, "cos": 14}
COSTS |= {"tan": 16, "tanh": 16, "div": 3, "sqrt": 3, "searchsorted": 40, "gather": 3, "index": 3, "cat": 4}
"""What an entry costs, where one is not a guess."""


# ------------------------------------------------------------------------------------------------ other places

View = Callable[[Array, Index], Index]


def _base(array: Array) -> Array:
    source: Array = array.args[0]
    return source


def _permute(array: Array, index: Index) -> Index:
    order = [dim % len(index) for dim in array.args[1]]
    return tuple(index[order.index(dim)] for dim in range(len(index)))


def _unsqueeze(array: Array, index: Index) -> Index:
    dim = array.args[1] % len(index)
    return index[:dim] + index[dim + 1 :]


def _squeeze(array: Array, index: Index) -> Index:
    shape = _base(array).shape
    dims = array.argument(1, "dim", range(len(shape)))
    dims = [dims] if isinstance(dims, int) else list(dims)
    gone = {dim % len(shape) for dim in dims if same(shape[dim], 1)}
    left = iter(index)
    return tuple(sympy.Integer(0) if dim in gone else next(left) for dim in range(len(shape)))


def _expand(array: Array, index: Index) -> Index:
    return broadcast(index, array.shape, _base(array).shape)


def broadcast(index: Index, shape: Index, smaller: Index) -> Index:
    """The place in an array that is repeated to fill a larger one.

    Examples:
        >>> i, j, n = sympy.symbols("i j n")
        >>> broadcast((i, j), (n, n), (n, 1))
        (i, 0)
    """
    skipped = len(shape) - len(smaller)
    return tuple(
        sympy.Integer(0) if same(size, 1) else each for each, size in zip(index[skipped:], smaller, strict=True)
    )


def _slice(array: Array, index: Index) -> Index:
    dim = array.argument(1, "dim", 0) % len(index)
    start = array.argument(2, "start") or 0
    size = _base(array).shape[dim]
    start = size + start if isinstance(start, int) and start < 0 else start
    step = array.argument(4, "step", 1)
    return (*index[:dim], start + step * index[dim], *index[dim + 1 :])


def _select(array: Array, index: Index) -> Index:
    shape = _base(array).shape
    dim, at = array.args[1] % len(shape), array.args[2]
    at = shape[dim] + at if isinstance(at, int) and at < 0 else at
    return (*index[:dim], sympy.sympify(at), *index[dim:])


def _flip(array: Array, index: Index) -> Index:
    dims = {dim % len(index) for dim in array.args[1]}
    return tuple(
        size - 1 - each if dim in dims else each
        for dim, (each, size) in enumerate(zip(index, array.shape, strict=True))
    )


def _repeat(array: Array, index: Index) -> Index:
    shape = _base(array).shape
    return tuple(divided(each, size)[1] for each, size in zip(index[len(index) - len(shape) :], shape, strict=True))


def _diagonal(array: Array, index: Index) -> Index:
    rank = len(_base(array).shape)
    offset, first, second = (
        array.argument(k, name, default) for k, name, default in ((1, "offset", 0), (2, "dim1", 0), (3, "dim2", 1))
    )
    first, second = first % rank, second % rank
    rest, along = iter(index[:-1]), index[-1]
    places = {first: along + max(-offset, 0), second: along + max(offset, 0)}
    return tuple(places[dim] if dim in places else next(rest) for dim in range(rank))


def reshape(array: Array, index: Index) -> Index:
    """The place in an array of another shape: groups of dimensions with as many entries on either side.

    Examples:
        >>> import torch
        >>> i, n = sympy.symbols("i n")
        >>> matrix = Array("x", (), {}, (n, sympy.Integer(3)), torch.float64)
        >>> reshape(Array("view", (matrix,), {}, (3 * n,), torch.float64), (i,))
        ((i//3), Mod(i, 3))
    """
    inner, outer = _base(array).shape, array.shape
    places: list[sympy.Expr] = []
    a = b = 0
    while a < len(inner):
        start_a, start_b = a, b
        a += 1
        while not same(product(inner[start_a:a]), product(outer[start_b:b])):
            if b < len(outer) and not (a < len(inner) and _more(product(outer[start_b:b]), product(inner[start_a:a]))):
                b += 1
            elif a < len(inner):
                a += 1
            else:
                raise NotImplementedError(f"a view of {inner} as {outer} is not known here")
        flat = ravel(index[start_b:b], outer[start_b:b])
        places += _unravel(flat, inner[start_a:a])
    return tuple(places)


def _more(a: sympy.Expr, b: sympy.Expr) -> bool:
    """Whether one product of sizes has more entries than another, judged by what divides what."""
    _, denominator = sympy.fraction(sympy.cancel(a / b))
    return bool(denominator == 1)


def _unravel(flat: sympy.Expr, shape: Index) -> list[sympy.Expr]:
    places: list[sympy.Expr] = []
    for size in reversed(shape[1:]):
        flat, place = divided(flat, size)
        places.insert(0, place)
    return [flat, *places] if shape else []


def divided(flat: sympy.Expr, by: sympy.Expr) -> tuple[sympy.Expr, sympy.Expr]:
    """Quotient and rest of whole numbers.

    Examples:
        >>> n = sympy.Symbol("n")
        >>> i, j = Loop("i", n), Loop("j", n)
        >>> divided(i * n + j, n) == (i, j)
        True
    """
    if same(by, 1):
        return flat, sympy.Integer(0)
    whole, rest = sympy.Integer(0), sympy.Integer(0)
    for part in sympy.Add.make_args(sympy.expand(flat)):
        ratio = sympy.cancel(part / by)
        if sympy.fraction(ratio)[1] == 1:
            whole += ratio
        else:
            rest += part
    if rest == 0 or (isinstance(rest, Loop) and same(rest.bound, by)):
        return whole, rest
    return FloorDiv(flat, by), Mod(flat, by)


VIEWS: dict[str, View] = {
    "permute": _permute,
    "unsqueeze": _unsqueeze,
    "squeeze": _squeeze,
    "expand": _expand,
    "slice": _slice,
    "select": _select,
    "flip": _flip,
    "repeat": _repeat,
    "diagonal": _diagonal,
    "view": reshape,
    "reshape": reshape,
    "_unsafe_view": reshape,
}
RESHAPES = ("view", "reshape", "_unsafe_view", "unsqueeze", "squeeze")
"""Views that leave every entry where it is in memory."""


# ------------------------------------------------------------------------------------------------ gathered from many

REDUCTIONS = {
    "sum": ("0", "a+={0};"),
    "prod": ("1", "a*={0};"),
    "amax": ("-Infinity", "a=Math.max(a,{0});"),
    "amin": ("Infinity", "a=Math.min(a,{0});"),
    "max": ("-Infinity", "a=Math.max(a,{0});"),
    "min": ("Infinity", "a=Math.min(a,{0});"),
    "any": ("0", "if({0})a=1;"),
    "all": ("1", "if(!{0})a=0;"),
}
"""Where a reduction starts, and what it does with each entry."""

PICKS = {"argmax": ("-Infinity", ">"), "argmin": ("Infinity", "<")}
"""Where the search for a place starts, and what is better; of several alike the first is it."""
