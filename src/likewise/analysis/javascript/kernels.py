"""Loops in JavaScript: what is computed for every entry of an array, each thing once and as far out as it can be.

A `Kernel` is a nest of loops with statements inside.  Expressions are `Term`s, which know how many of the loops they
depend on: a term that several others need, or that an inner loop would repeat, gets a line of its own in front of the
loop; all others are written where they are used.  The text names its arrays and numbers by their order, so that two losses
that need the same loops share one function.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import sympy
from torch.utils._sympy import functions as torch_sympy

LOOPS = "ijklmpqr"
"""Names of loop variables, from outside in."""


class Loop(sympy.Dummy):  # type: ignore[misc]
    """A loop variable, which is below its bound.

    Examples:
        >>> Loop("i", sympy.Integer(3)).bound
        3
    """

    bound: sympy.Expr

    def __new__(cls, name: str, bound: sympy.Expr) -> Loop:
        """A symbol of its own."""
        made: Loop = super().__new__(cls, name, integer=True, nonnegative=True)
        made.bound = bound
        return made


@dataclass(frozen=True, eq=False)
class Term:
    """A piece of JavaScript.

    Args:
        form: its text, with ``{0}``, ``{1}`` for its parts, each once.
        parts: the terms inside it.
        depth: how many loops must be open before it is known.
        truth: whether it is a boolean, else a number.
        outside: an array or a number that the kernel is given: ``("f", name)``; `form` is not used then.

    Examples:
        >>> Term("({0} + 1)", (Term("2"),)).parts[0].form
        '2'
    """

    form: str
    parts: tuple[Term, ...] = ()
    depth: int = 0
    truth: bool = False
    outside: tuple[str, str] | None = None

    @property
    def is_plain(self) -> bool:
        """Whether it is no work to write it down twice."""
        return not self.parts


def number_text(value: float) -> str:
    """A number as JavaScript spells it.

    Examples:
        >>> number_text(2.0), number_text(-float("inf")), number_text(1e-5)
        ('2', '-Infinity', '1e-05')
    """
    if isinstance(value, bool):
        return "1" if value else "0"
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return str(int(value)) if float(value).is_integer() and abs(value) < 2**53 else repr(float(value))


def text_key(text: str) -> str:
    """A short name for a text, the same wherever it is written.

    Examples:
        >>> text_key("(x){return x;}")
        '04f3c461'
    """
    return hashlib.sha256(text.encode()).hexdigest()[:8]


@dataclass(frozen=True)
class Function:
    """A kernel as text, and what it is called with.

    Examples:
        >>> Function("double", "function double(a0){}", ("x",)).call()
        'double(x)'
    """

    name: str
    text: str
    arguments: tuple[str, ...]

    def call(self) -> str:
        """The call."""
        return f"{self.name}({', '.join(self.arguments)})"


@dataclass(eq=False)
class Kernel:
    """Loops with statements inside.

    Args:
        bounds: how far each loop goes, from outside in; sizes are symbols.
        sizes: the names of sizes.

    Examples:
        >>> n = sympy.Symbol("n")
        >>> kernel = Kernel((n,), {n: "n"})
        >>> entry = kernel.read("f", "x", kernel.loops[0])
        >>> kernel.store("f", "out", kernel.loops[0], kernel.make("({0}*{1})", entry, entry))
        >>> print(kernel.function().text.split("(", 1)[1])
        n0,f0,f1){for(let i=0;i<n0;i++){const t0=f1[i];f0[i]=(t0*t0);}}
    """

    bounds: tuple[sympy.Expr, ...]
    sizes: dict[sympy.Symbol, str]
    statements: list[tuple[int, bool, str, tuple[Term, ...]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.loops = tuple(Loop(LOOPS[k], bound) for k, bound in enumerate(self.bounds))
        self._known: dict[Any, Term] = {}
        self._opaque: dict[sympy.Symbol, Term] = {}

    # -------------------------------------------------------------------------------------------- terms

    def make(self, form: str, *parts: Term, truth: bool = False) -> Term:
        """A term of others; the same one for the same."""
        key = (form, tuple(map(id, parts)))
        if key not in self._known:
            depth = max((part.depth for part in parts), default=0)
            self._known[key] = Term(form, parts, depth, truth)
        return self._known[key]

    def constant(self, value: float | bool) -> Term:
        """A number, or a boolean."""
        if isinstance(value, bool):
            return self.make("true" if value else "false", truth=True)
        return self.make(number_text(value))

    def outside(self, kind: str, name: str) -> Term:
        """An array (by kind: ``f`` of floats, ``u`` of bytes, ``y`` of labels) or a number (``x``) from outside."""
        key = (kind, name)
        if key not in self._known:
            self._known[key] = Term("", outside=key)
        return self._known[key]

    def index(self, expression: Any) -> Term:
        """A whole number made of loop variables, sizes and what `as_index` wrapped."""
        expression = sympy.sympify(expression)
        if expression in self.loops:
            k = self.loops.index(expression)
            key = ("loop", k)
            if key not in self._known:
                self._known[key] = Term(LOOPS[k], depth=k + 1)
            return self._known[key]
        if expression in self._opaque:
            return self._opaque[expression]
        if expression in self.sizes:
            return self.outside("n", self.sizes[expression])
        if expression.is_Integer or expression.is_Float:
            return self.make(number_text(float(expression)))
        parts = [self.index(part) for part in expression.args]
        if isinstance(expression, sympy.Add | sympy.Mul):
            sign = "+" if isinstance(expression, sympy.Add) else "*"
            # what outer loops know first, so that it is computed there
            parts.sort(key=lambda part: (part.depth, part.form))
            result = parts[0]
            for part in parts[1:]:
                result = self.make(f"({{0}}{sign}{{1}})", result, part)
            return result
        return self.make(_index_form(expression), *parts)

    def as_index(self, term: Term) -> sympy.Symbol:
        """A computed number as a symbol, to be used in indices."""
        symbol = sympy.Symbol(f"#{len(self._opaque)}", integer=True)
        for known, other in self._opaque.items():
            if other is term:
                return known
        self._opaque[symbol] = term
        return symbol

    def read(self, kind: str, name: str, address: Any) -> Term:
        """An entry of an array; bytes are booleans."""
        form = "({0}[{1}] !== 0)" if kind == "u" else "{0}[{1}]"
        return self.make(form, self.outside(kind, name), self.index(address), truth=kind == "u")

    # -------------------------------------------------------------------------------------------- statements

    def say(self, form: str, *terms: Term, depth: int | None = None, after: bool = False) -> None:
        """A statement inside so many loops (all by default), in front of those inside it or after them."""
        self.statements.append((len(self.bounds) if depth is None else depth, after, form, terms))

    def store(
        self, kind: str, name: str, address: Any, value: Term, *, depth: int | None = None, after: bool = False
    ) -> None:
        """Write an entry of an array."""
        if kind == "u":
            form = "{0}[{1}]={2}?1:0;" if value.truth else "{0}[{1}]={2};"
        else:
            value = self.number(value)
            form = "{0}[{1}]={2};"
        self.say(form, self.outside(kind, name), self.index(address), value, depth=depth, after=after)

    def number(self, term: Term) -> Term:
        """A boolean as 1 or 0."""
        if not term.truth:
            return term
        if term.form in ("true", "false"):
            return self.constant(1 if term.form == "true" else 0)
        return self.make("({0}?1:0)", term)

    # -------------------------------------------------------------------------------------------- text

    def function(self, returned: str = "") -> Function:
        """The kernel as a function."""
        names: dict[tuple[str, str], str] = {}
        body = self.body(lambda outside: _canonical(names, outside))
        if returned:
            body += f"return {returned};"
        order = sorted(names, key=lambda each: ("nxfuy".index(each[0]), int(names[each][1:])))
        text = f"({','.join(names[each] for each in order)}){{{body}}}"
        name = "k" + text_key(text)
        return Function(name, f"function {name}{text}", tuple(each[1] for each in order))

    def body(self, name_of: Callable[[tuple[str, str]], str], prefix: str = "t") -> str:
        """The loops as text."""
        uses = _uses(term for _, _, _, terms in self.statements for term in terms)
        before: list[list[str]] = [[] for _ in range(len(self.bounds) + 1)]
        afterwards: list[list[str]] = [[] for _ in range(len(self.bounds) + 1)]
        variables: dict[Term, str] = {}

        def text(term: Term, depth: int) -> str:
            if term.outside is not None:
                return name_of(term.outside)
            if term.is_plain:
                return term.form
            if term not in variables and (uses[term] > 1 or term.depth < depth):
                line = term.form.format(*(text(part, term.depth) for part in term.parts))
                variables[term] = f"{prefix}{len(variables)}"
                before[term.depth].append(f"const {variables[term]}={_bare(line)};")
            if term in variables:
                return variables[term]
            return term.form.format(*(text(part, depth) for part in term.parts))

        bounds = [text(self.index(bound), 0) for bound in self.bounds]
        for depth, after, form, terms in self.statements:
            line = form.format(*(text(term, depth) for term in terms))
            (afterwards if after else before)[depth].append(line)
        result = ""
        for depth in range(len(self.bounds), 0, -1):
            i = LOOPS[depth - 1]
            inside = "".join(before[depth]) + result + "".join(afterwards[depth])
            result = f"for(let {i}=0;{i}<{bounds[depth - 1]};{i}++){{{inside}}}"
        return "".join(before[0]) + result + "".join(afterwards[0])


def _uses(terms: Iterable[Term]) -> Counter[Term]:
    """How often each term is written inside others."""
    uses: Counter[Term] = Counter()
    waiting = list(terms)
    while waiting:
        term = waiting.pop()
        uses[term] += 1
        if uses[term] == 1:
            waiting += term.parts
    return uses


def _canonical(names: dict[tuple[str, str], str], outside: tuple[str, str]) -> str:
    if outside not in names:
        kind = outside[0]
        names[outside] = f"{kind}{sum(known[0] == kind for known in names)}"
    return names[outside]


def _bare(text: str) -> str:
    """Without a pair of parentheses around the whole."""
    if not text.startswith("(") or not text.endswith(")"):
        return text
    level = 0
    for k, letter in enumerate(text):
        level += (letter == "(") - (letter == ")")
        if level == 0:
            return text[1:-1] if k == len(text) - 1 else text
    return text


def _index_form(expression: sympy.Expr) -> str:
    """Whole-number arithmetic on numbers that are not negative."""
    if isinstance(expression, sympy.Pow):
        if expression.exp.is_Integer and expression.exp > 0:
            return "({0}**{1})"
        return "(1/{0})" if expression.exp == -1 else "Math.pow({0},{1})"
    if isinstance(expression, torch_sympy.FloorDiv | torch_sympy.CleanDiv):
        return "Math.floor({0}/{1})"
    if isinstance(expression, torch_sympy.Mod | torch_sympy.PythonMod | sympy.Mod):
        return "({0}%{1})"
    if isinstance(expression, torch_sympy.IntTrueDiv | torch_sympy.FloatTrueDiv):
        return "({0}/{1})"
    if isinstance(expression, torch_sympy.ToFloat):
        return "{0}"
    if isinstance(expression, sympy.Max | torch_sympy.Max):
        return f"Math.max({','.join(f'{{{k}}}' for k in range(len(expression.args)))})"
    if isinstance(expression, sympy.Min | torch_sympy.Min):
        return f"Math.min({','.join(f'{{{k}}}' for k in range(len(expression.args)))})"
    raise NotImplementedError(f"sizes are combined by {type(expression).__name__}, which is not known here")
