"""The tensors of a graph as arrays: what makes each of them, of which size, and who needs it."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import sympy
import torch
from torch.utils._sympy.functions import CleanDiv, FloorDiv

from likewise.analysis.tracing import VALUE_ASKED, Trace, TracingError

Index = tuple[sympy.Expr, ...]

SIZES = {name: sympy.Symbol(name, integer=True, positive=True) for name in "ndc"}
"""The numbers of samples, dimensions and classes."""


@dataclass(eq=False)
class Array:
    """A tensor of the graph.

    Args:
        op: the operation that makes it, by ATen's name.
        args: its arguments: arrays, numbers, sizes.
        options: its keyword arguments.
        shape: its sizes.
        dtype: what its entries are in torch; every number is a double here.

    Examples:
        >>> Array("neg", (), {}, (sympy.Integer(2),), torch.bool).kind
        'u'
    """

    op: str
    args: tuple[Any, ...]
    options: dict[str, Any]
    shape: Index
    dtype: torch.dtype
    users: list[Array] = field(default_factory=list)

    @property
    def kind(self) -> str:
        """In which kind of JavaScript array it is kept: ``f`` of doubles, ``u`` of bytes."""
        return "u" if self.dtype == torch.bool else "f"

    @property
    def is_truth(self) -> bool:
        """Whether its entries are booleans."""
        return self.dtype == torch.bool

    def inputs(self) -> list[Array]:
        """The arrays among its arguments."""
        return [each for each in _flat((self.args, tuple(self.options.values()))) if isinstance(each, Array)]

    def argument(self, position: int, name: str, default: Any = None) -> Any:
        """An argument by position or by name."""
        return self.args[position] if position < len(self.args) else self.options.get(name, default)


def _flat(values: Any) -> list[Any]:
    if isinstance(values, list | tuple):
        return [each for value in values for each in _flat(value)]
    return [values]


def product(sizes: Any) -> sympy.Expr:
    """All sizes multiplied.

    Examples:
        >>> product((sympy.Symbol("n"), 2))
        2*n
    """
    result: sympy.Expr = sympy.Integer(1)
    for size in sizes:
        result = result * size
    return sympy.expand(result)


def ravel(index: Index, shape: Index) -> sympy.Expr:
    """The place of an entry in memory, row after row.

    Examples:
        >>> i, j, n = sympy.symbols("i j n")
        >>> ravel((i, j), (n, n))
        i*n + j
    """
    place: sympy.Expr = sympy.Integer(0)
    for each, size in zip(index, shape, strict=True):
        place = place * size + each
    return sympy.expand(place)


def same(a: Any, b: Any) -> bool:
    """Whether two sizes are equal whatever the batch.

    Examples:
        >>> n = sympy.Symbol("n")
        >>> same(n * n + n, n * (n + 1)), same(n, 1)
        (True, False)
    """
    return bool(sympy.expand(sympy.sympify(a) - sympy.sympify(b)) == 0)


def tidy(expression: sympy.Expr) -> sympy.Expr:
    """A size without divisions that come out even.

    Examples:
        >>> c = sympy.Symbol("c", integer=True, positive=True)
        >>> tidy(FloorDiv(c**2, c) * 3)
        3*c
    """
    if not expression.args:
        return expression
    parts = [tidy(part) for part in expression.args]
    if isinstance(expression, FloorDiv | CleanDiv):
        ratio = sympy.cancel(parts[0] / parts[1])
        numerator, denominator = sympy.fraction(ratio)
        if denominator == 1 and numerator.is_integer:
            return sympy.expand(ratio)
    return expression.func(*parts)


# ------------------------------------------------------------------------------------------------ from a graph

SAME = ("alias", "detach", "clone", "lift_fresh_copy", "contiguous")
"""Operations that are their argument."""

_NOT_NEEDED = ("device", "layout", "pin_memory", "memory_format", "non_blocking", "requires_grad")


@dataclass(frozen=True, eq=False)
class Arrays:
    """A graph as arrays, in an order in which they can be computed.

    Args:
        name: what the loss is called.
        order: every array that a result needs.
        inputs: what the graph is given, by the name that it has in a script.
        outputs: the results, in the order of the graph.
        constants: the numbers among the inputs that are always the same.

    Examples:
        >>> Arrays("Mine", (), {}, (), ()).name
        'Mine'
    """

    name: str
    order: tuple[Array, ...]
    inputs: dict[Array, str]
    outputs: tuple[Array, ...]
    constants: tuple[torch.Tensor, ...]


def arrays_of(trace: Trace, places: Mapping[str, int] | None = None) -> Arrays:
    """Read a graph: equal operations once, those that do nothing not at all.

    Args:
        trace: the graph.
        places: where each hyper-parameter stands among all; by default in the order of the graph.

    Examples:
        >>> from likewise.analysis.subjects import subject_of
        >>> from likewise.analysis.tracing import Sizes, trace
        >>> graph = trace(subject_of(lambda s, labels: (s * s).sum(), name="Squares"), {}, Sizes(7, 3, 5))
        >>> [array.op for array in arrays_of(graph).outputs[:2]]
        ['sum', 'mm']
    """
    reader = _Reader(trace, places or {name: k for k, name in enumerate(trace.free)})
    outputs = reader.read()
    needed: dict[Array, None] = {}

    def visit(array: Array) -> None:
        if array not in needed:
            for each in array.inputs():
                visit(each)
            needed[array] = None

    for output in outputs:
        visit(output)
    for array in needed:
        for each in dict.fromkeys(array.inputs()):
            each.users.append(array)
    return Arrays(trace.name, tuple(needed), reader.inputs, tuple(outputs), tuple(reader.constants))


class _Reader:
    """Reads a graph node by node."""

    def __init__(self, trace: Trace, places: Mapping[str, int]) -> None:
        self.trace, self.places = trace, places
        self.sizes = {symbol: SIZES[name] for symbol, name in trace.symbols.items()}
        self.inputs: dict[Array, str] = {}
        self.constants = list(trace.constants)
        self._values: dict[torch.fx.Node, Any] = {}
        self._known: dict[Any, Array] = {}
        self._turned: dict[Array, list[int]] = {}

    def read(self) -> list[Array]:
        names = ["x", "y"] + (["p"] if self.trace.centers else [])
        names += [f"c{k}" for k in range(len(self.trace.constants))]
        names += [f"h[{self.places[name]}]" if name in self.places else "idle" for name in self.trace.free]
        given = iter(names)
        outputs: list[Array] = []
        for node in self.trace.module.graph.nodes:
            if node.op == "placeholder":
                array = Array("input", (), {}, self._shape(node.meta["val"]), node.meta["val"].dtype)
                self.inputs[array] = next(given)
                self._values[node] = array
            elif node.op == "output":
                outputs = self._value(node.args[0])
            elif node.op == "get_attr":
                self._values[node] = self._held(getattr(self.trace.module, node.target))
            elif node.op == "call_function":
                self._values[node] = self._call(node)
            else:
                raise TracingError(f"{self.trace.name} cannot be written as JavaScript: it holds {node.target}")
        return list(outputs)

    def _held(self, tensor: torch.Tensor) -> Array:
        """A tensor that was there before the graph."""
        array = Array("input", (), {}, self._shape(tensor), tensor.dtype)
        self.inputs[array] = f"c{len(self.constants)}"
        self.constants.append(tensor.detach())
        return array

    def _shape(self, tensor: Any) -> Index:
        return tuple(self._size(size) for size in tensor.shape)

    def _size(self, value: Any) -> Any:
        if isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool):
            size = tidy(value.node.expr.subs(self.sizes))
            if size.free_symbols - set(SIZES.values()):
                raise TracingError(f"{self.trace.name} cannot be traced: {VALUE_ASKED}")
            return size
        return sympy.Integer(value) if isinstance(value, int) and not isinstance(value, bool) else value

    def _value(self, value: Any) -> Any:
        if isinstance(value, torch.fx.Node):
            return self._values[value]
        if isinstance(value, list | tuple):
            return tuple(self._value(each) for each in value)
        return value

    def _call(self, node: torch.fx.Node) -> Any:
        made: Any = node.meta.get("val")
        if isinstance(made, torch.SymInt | torch.SymFloat | torch.SymBool | int | float):
            return self._size(made)
        args = self._value(node.args)
        if node.target is operator.getitem:
            return self._part(args[0], args[1], made)
        schema = getattr(node.target, "_schema", None)
        if schema is None:
            raise TracingError(f"{self.trace.name} cannot be written as JavaScript: {node.target} is not known here")
        name = schema.name.split("::")[1]
        if str(node.target) == "aten.view.dtype":
            name = "view.dtype"
        options = {key: self._value(value) for key, value in node.kwargs.items() if key not in _NOT_NEEDED}
        first = made[0] if isinstance(made, list | tuple) else made
        array = Array(name, args, options, self._shape(first), first.dtype)
        return self._sorted(array) if name in ("sort", "topk") else self._simple(array)

    def _sorted(self, array: Array) -> Array:
        """Sorting along the last dimension, whichever it was."""
        source, rank = array.args[0], len(array.shape)
        position = 2 if array.op == "topk" else 1
        dim = array.options.get("dim", array.args[position] if len(array.args) > position else -1) % rank
        if dim == rank - 1:
            return self._once(array)
        order = [*(each for each in range(rank) if each != dim), dim]
        turned = self._once(Array("permute", (source, order), {}, _moved(source.shape, order), source.dtype))
        args = [*array.args[1:], *([None] * position)][: max(len(array.args) - 1, position)]
        args[position - 1] = -1
        options = {key: value for key, value in array.options.items() if key != "dim"}
        made = self._once(Array(array.op, (turned, *args), options, _moved(array.shape, order), array.dtype))
        self._turned[made] = [order.index(each) for each in range(rank)]
        return made

    def _part(self, whole: Array, place: int, made: Any) -> Array:
        """One of several results."""
        if whole.op in ("max", "min"):
            name = ("a" if place == 0 else "arg") + whole.op
            return self._once(Array(name, whole.args, {}, self._shape(made), made.dtype))
        shape = self._shape(made)
        if whole.op == "split_with_sizes":
            source, lengths = whole.args[:2]
            dim, start = whole.argument(2, "dim", 0), sum(lengths[:place], sympy.Integer(0))
            return self._simple(Array("slice", (source, dim, start), {}, shape, made.dtype))
        if whole.op == "unbind":
            return self._once(
                Array("select", (whole.args[0], whole.argument(1, "dim", 0), place), {}, shape, made.dtype)
            )
        if whole not in self._turned:
            return self._once(Array("part", (whole, place), {}, shape, made.dtype))
        back = self._turned[whole]
        order = [back.index(each) for each in range(len(back))]
        part = self._once(Array("part", (whole, place), {}, _moved(shape, order), made.dtype))
        return self._once(Array("permute", (part, back), {}, shape, made.dtype))

    def _simple(self, array: Array) -> Array:
        """An array, or the one that it merely repeats."""
        source = array.args[0] if array.args and isinstance(array.args[0], Array) else None
        if source is not None:
            unmoved = len(source.shape) == len(array.shape) and all(map(same, source.shape, array.shape))
            if array.op in SAME or (unmoved and array.op in ("expand", "view", "reshape", "_unsafe_view", "slice")):
                return source
            if array.op == "slice_scatter" and all(map(same, array.args[1].shape, array.shape)):
                return self._simple(Array("alias", array.args[1:2], {}, array.shape, array.dtype))
            if array.op == "_to_copy" and source.dtype == array.dtype:
                return source
        return self._once(array)

    def _once(self, array: Array) -> Array:
        key = (
            array.op,
            _key(array.args),
            _key(tuple(sorted(array.options.items(), key=lambda item: item[0]))),
            array.shape,
            array.dtype,
        )
        return self._known.setdefault(key, array)


def _moved(shape: Index, order: list[int]) -> Index:
    return tuple(shape[dim] for dim in order)


def _key(value: Any) -> Any:
    """Something that equal arguments share; 1 and 1.0 and True differ."""
    if isinstance(value, list | tuple):
        return tuple(_key(each) for each in value)
    return id(value) if isinstance(value, Array) else (type(value).__name__, str(value))
