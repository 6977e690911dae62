"""What an entry of a tensor is: read from an array, or computed from entries of other tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sympy

from likewise.analysis.javascript.arrays import Array, Arrays, Index, ravel, same
from likewise.analysis.javascript.kernels import Kernel, Term, number_text
from likewise.analysis.javascript.operators import POINTWISE, RESHAPES, VIEWS, broadcast
from likewise.analysis.tracing import TracingError

CONSTANTS = ("full", "full_like", "scalar_tensor", "empty", "empty_like", "empty_permuted", "zeros", "ones")
"""Operations whose entries are all alike."""

_SIGNATURES = {
    "add": ("self", "other", "alpha"),
    "sub": ("self", "other", "alpha"),
    "clamp": ("self", "min", "max"),
    "_to_copy": ("self",),
    "view.dtype": ("self",),
}
"""Arguments that may be given by name, or that are none of an expression's."""

_UPDATES = {"amax": "Math.max", "amin": "Math.min", "sum": "+="}

Place = Callable[[Kernel, Index], Index]
Value = Callable[[Kernel, Index], Term]


class Entries:
    """Finds entries; arrays that were written down are known by name.

    Examples:
        >>> import torch
        >>> n = sympy.Symbol("n")
        >>> vector = Array("input", (), {}, (n,), torch.float64)
        >>> entries = Entries(Arrays("Mine", (vector,), {vector: "x"}, (vector,), ()))
        >>> kernel = Kernel((n,), {n: "n"})
        >>> entries.entry(kernel, Array("neg", (vector,), {}, (n,), torch.float64), (kernel.loops[0],)).form
        '(-{0})'
    """

    def __init__(self, arrays: Arrays) -> None:
        self.loss = arrays.name
        self._names: dict[Array, str] = {}
        self._kinds: dict[Array, str] = {}
        self._known: dict[Any, Term] = {}
        for array, name in arrays.inputs.items():
            self.keep(array, name, "y" if name == "y" else array.kind)

    def keep(self, array: Array, name: str, kind: str | None = None) -> None:
        """Remember the name of an array that was written down."""
        self._names[array] = name
        self._kinds[array] = kind or array.kind

    def name_of(self, array: Array) -> str:
        """The name of an array that was written down."""
        return self._names[array]

    def memory(self, array: Array) -> tuple[str, str] | None:
        """Kind and name of what holds an array's entries one after the other, if anything does."""
        while array not in self._names and array.op in RESHAPES:
            array = array.args[0]
        return (self._kinds[array], self._names[array]) if array in self._names and array.shape else None

    def address(self, array: Array, index: Index) -> tuple[str, sympy.Expr] | None:
        """The array that holds an entry, and where, if one does whatever the index."""
        while self.memory(array) is None and array.op in VIEWS:
            array, index = array.args[0], VIEWS[array.op](array, index)
        memory = self.memory(array)
        return None if memory is None else (memory[1], ravel(index, array.shape))

    def unflattened(self, arrays: list[Array], shape: Index) -> Index:
        """The shape of something that was flattened to this one, if entries are computed from it."""
        waiting, seen = list(arrays), set()
        while waiting and len(shape) == 1:
            array = waiting.pop(0)
            if array in seen or self.memory(array) is not None:
                continue
            seen.add(array)
            if array.op in RESHAPES and len(array.shape) == 1 and same(array.shape[0], shape[0]):
                inner: Index = array.args[0].shape
                if len(inner) > 1:
                    return inner
            waiting += array.inputs()
        return shape

    def entry(self, kernel: Kernel, array: Array, index: Index) -> Term:
        """The entry at an index."""
        key = (kernel, array, index)
        if key not in self._known:
            self._known[key] = self._entry(kernel, array, index)
        return self._known[key]

    def _entry(self, kernel: Kernel, array: Array, index: Index) -> Term:
        if array in self._names and not array.shape:
            number = kernel.outside("x", self._names[array])
            return kernel.make("({0}!==0)", number, truth=True) if array.is_truth else number
        memory = self.memory(array)
        if memory is not None:
            return kernel.read(*memory, ravel(index, array.shape))
        if array.op in POINTWISE:
            return self._pointwise(kernel, array, index)
        if array.op in VIEWS:
            return self.entry(kernel, array.args[0], VIEWS[array.op](array, index))
        constant = self.constant_of(array)
        if constant is not None:
            return kernel.constant(bool(int(constant))) if array.is_truth else kernel.make(constant)
        finders = {
            "scalar_tensor": lambda: self._operand(kernel, array.args[0], array, index),
            "full": lambda: self._operand(kernel, array.args[1], array, index),
            "full_like": lambda: self._operand(kernel, array.args[1], array, index),
            "arange": lambda: kernel.index(array.args[0] + array.argument(2, "step", 1) * index[0]),
            "gather": lambda: self.entry(kernel, array.args[0], self._gathered(kernel, array, index)),
            "index_select": lambda: self.entry(kernel, array.args[0], self._selected(kernel, array, index)),
            "index": lambda: self.entry(
                kernel, array.args[0], self._indexed(kernel, array.args[0], array.args[1], index)
            ),
            "embedding": lambda: self._embedded(kernel, array, index),
            "searchsorted": lambda: self._searched(kernel, array, index),
            "cat": lambda: self._joined(kernel, array, index),
            "slice_scatter": lambda: self._patched(kernel, array, index),
            "select_scatter": lambda: self._replaced(kernel, array, index),
            "diagonal_scatter": lambda: self._on_diagonal(kernel, array, index),
            "constant_pad_nd": lambda: self._padded(kernel, array, index),
        }
        if array.op not in finders:
            raise unknown(self.loss, array.op)
        return finders[array.op]()

    def _operand(self, kernel: Kernel, value: Any, array: Array, index: Index) -> Term:
        if isinstance(value, Array):
            return self.entry(kernel, value, broadcast(index, array.shape, value.shape))
        return kernel.index(value) if isinstance(value, sympy.Basic) else kernel.constant(value)

    def _pointwise(self, kernel: Kernel, array: Array, index: Index) -> Term:
        names = _SIGNATURES.get(array.op)
        args = array.args if names is None else [array.argument(k, name) for k, name in enumerate(names)]
        terms = [None if arg is None else self._operand(kernel, arg, array, index) for arg in args]
        return POINTWISE[array.op](kernel, array, *terms)

    def constant_of(self, array: Array) -> str | None:
        """The number that all entries of an array are, as text."""
        if array.op not in CONSTANTS:
            return None
        fill: Any = {"full": 1, "full_like": 1, "scalar_tensor": 0}.get(array.op)
        value = 1 if array.op == "ones" else 0 if fill is None else array.argument(fill, "fill_value")
        return None if isinstance(value, Array | sympy.Basic) else number_text(value)

    # -------------------------------------------------------------------------------------------- elsewhere

    def _number_at(self, kernel: Kernel, array: Array, index: Index) -> sympy.Symbol:
        return kernel.as_index(kernel.number(self.entry(kernel, array, index)))

    def _gathered(self, kernel: Kernel, array: Array, index: Index) -> Index:
        dim = array.args[1] % len(index)
        return (*index[:dim], self._number_at(kernel, array.args[2], index), *index[dim + 1 :])

    def _selected(self, kernel: Kernel, array: Array, index: Index) -> Index:
        dim = array.args[1] % len(index)
        return (*index[:dim], self._number_at(kernel, array.args[2], (index[dim],)), *index[dim + 1 :])

    def _embedded(self, kernel: Kernel, array: Array, index: Index) -> Term:
        table, places = array.args[:2]
        return self.entry(kernel, table, (self._number_at(kernel, places, index[:-1]), index[-1]))

    def _indexed(self, kernel: Kernel, source: Array, indices: Any, index: Index) -> Index:
        """``source[indices]``: where indices are, each dimension's own; a colon leaves the dimension."""
        indices = (*indices, *([None] * (len(source.shape) - len(indices))))
        given = [each for each in indices if each is not None]
        rank = max(len(each.shape) for each in given)
        first, adjacent = _where_indexed(indices)
        at = first if adjacent else 0
        shared, rest = index[at : at + rank], iter((*index[:at], *index[at + rank :]))
        places = []
        for each, size in zip(indices, source.shape, strict=True):
            if each is None:
                places.append(next(rest))
                continue
            own = broadcast(shared, tuple(sympy.Integer(-1) for _ in shared), each.shape)
            term = kernel.number(self.entry(kernel, each, own))
            places.append(kernel.as_index(kernel.make("({0}<0?{1}+{2}:{3})", term, term, kernel.index(size), term)))
        return tuple(places)

    def _searched(self, kernel: Kernel, array: Array, index: Index) -> Term:
        ordered, wanted = array.args[:2]
        right = array.options.get("right", False) or array.options.get("side") == "right"
        memory = self.memory(ordered)
        assert memory is not None
        last = ordered.shape[-1]
        start = ravel((*index[: len(ordered.shape) - 1], sympy.Integer(0)), ordered.shape)
        value = kernel.number(self._operand(kernel, wanted, array, index))
        bounds = kernel.index(start), kernel.index(sympy.expand(start + last))
        form = "notAbove({0},{1},{2},{3})" if right else "below({0},{1},{2},{3})"
        return kernel.make(form, kernel.outside(*memory), *bounds, value)

    def _joined(self, kernel: Kernel, array: Array, index: Index) -> Term:
        pieces, dim = array.args[0], array.argument(1, "dim", 0) % len(index)
        place = index[dim]
        ends: list[sympy.Expr] = []
        for piece in pieces:
            ends.append((ends[-1] if ends else 0) + piece.shape[dim])
        result = None
        for piece, start, end in reversed(list(zip(pieces, [sympy.Integer(0), *ends], ends, strict=False))):
            here = self.entry(kernel, piece, (*index[:dim], sympy.expand(place - start), *index[dim + 1 :]))
            if result is None:
                result = here
            else:
                inside = kernel.make("({0}<{1})", kernel.index(place), kernel.index(end), truth=True)
                result = POINTWISE["where"](kernel, array, inside, here, result)
        assert result is not None
        return result

    def _patched(self, kernel: Kernel, array: Array, index: Index) -> Term:
        source, patch = array.args[:2]
        dim = array.argument(2, "dim", 0) % len(index)
        if array.argument(5, "step", 1) != 1:
            raise unknown(self.loss, "slice_scatter with a step")
        start, size = array.argument(3, "start") or 0, source.shape[dim]
        start = size + start if isinstance(start, int) and start < 0 else start
        place = kernel.index(index[dim])
        after = kernel.make("({0}>={1})", place, kernel.index(start), truth=True)
        before = kernel.make("({0}<{1})", place, kernel.index(sympy.expand(start + patch.shape[dim])), truth=True)
        inside = kernel.make("({0}&&{1})", after, before, truth=True)
        new = self.entry(kernel, patch, (*index[:dim], sympy.expand(index[dim] - start), *index[dim + 1 :]))
        return POINTWISE["where"](kernel, array, inside, new, self.entry(kernel, source, index))

    def _replaced(self, kernel: Kernel, array: Array, index: Index) -> Term:
        source, patch, dim, at = array.args
        dim = dim % len(index)
        at = source.shape[dim] + at if isinstance(at, int) and at < 0 else at
        here = kernel.make("({0}==={1})", kernel.index(index[dim]), kernel.index(at), truth=True)
        new = self.entry(kernel, patch, (*index[:dim], *index[dim + 1 :]))
        return POINTWISE["where"](kernel, array, here, new, self.entry(kernel, source, index))

    def _on_diagonal(self, kernel: Kernel, array: Array, index: Index) -> Term:
        source, patch = array.args[:2]
        rank = len(index)
        offset, first, second = (
            array.argument(2, "offset", 0),
            array.argument(3, "dim1", 0),
            array.argument(4, "dim2", 1),
        )
        row, column = index[first % rank], index[second % rank]
        here = kernel.make("({0}==={1})", kernel.index(sympy.expand(row + offset)), kernel.index(column), truth=True)
        rest = tuple(each for dim, each in enumerate(index) if dim not in (first % rank, second % rank))
        new = self.entry(kernel, patch, (*rest, row if offset >= 0 else column))
        return POINTWISE["where"](kernel, array, here, new, self.entry(kernel, source, index))

    def _padded(self, kernel: Kernel, array: Array, index: Index) -> Term:
        source, margins = array.args[:2]
        value = kernel.constant(array.argument(2, "value", 0))
        place = list(index)
        result: Term | None = None
        conditions = []
        for k in range(len(margins) // 2):
            dim = len(index) - 1 - k
            place[dim] = sympy.expand(index[dim] - margins[2 * k])
            at = kernel.index(place[dim])
            conditions.append(kernel.make("({0}>=0)", at, truth=True))
            conditions.append(kernel.make("({0}<{1})", at, kernel.index(source.shape[dim]), truth=True))
        result = self.entry(kernel, source, tuple(place))
        for condition in conditions:
            result = POINTWISE["where"](kernel, array, condition, result, value)
        return result

    # -------------------------------------------------------------------------------------------- written elsewhere

    def scattered(self, array: Array) -> tuple[Index, Place, Value, str]:
        """What a scatter loops over, where each value goes, the value, and how it meets what is there."""
        if array.op in ("index_put", "_unsafe_index_put"):
            return self._put(array)
        source, dim, places = array.args[:3]
        dim = dim % len(source.shape)
        form = "+=" if array.op == "scatter_add" else "="
        if array.op == "scatter_reduce":
            form = _UPDATES.get(array.argument(4, "reduce"), "")
            if not form or not array.argument(5, "include_self", True):
                raise unknown(self.loss, f"scatter_reduce by {array.argument(4, 'reduce')}")
        src = array.argument(3, "src", array.options.get("value"))

        def place_of(kernel: Kernel, index: Index) -> Index:
            return (*index[:dim], self._number_at(kernel, places, index), *index[dim + 1 :])

        def value_of(kernel: Kernel, index: Index) -> Term:
            # a source may be larger than the indices: its first entries are meant
            return self.entry(kernel, src, index) if isinstance(src, Array) else kernel.constant(src)

        return places.shape, place_of, value_of, form

    def _put(self, array: Array) -> tuple[Index, Place, Value, str]:
        source, indices, values = array.args[:3]
        indices = (*indices, *([None] * (len(source.shape) - len(indices))))
        given = [each for each in indices if each is not None]
        rank = max(len(each.shape) for each in given)
        shared = [sympy.Integer(1)] * rank
        for each in given:
            for k, size in enumerate(reversed(each.shape), start=1):
                shared[-k] = shared[-k] if same(size, 1) else size
        first, adjacent = _where_indexed(indices)
        at = first if adjacent else 0
        rest = [size for size, each in zip(source.shape, indices, strict=True) if each is None]
        shape = (*rest[:at], *shared, *rest[at:])

        def value_of(kernel: Kernel, index: Index) -> Term:
            return self.entry(kernel, values, broadcast(index, shape, values.shape))

        form = "+=" if array.argument(3, "accumulate", False) else "="
        return shape, lambda kernel, index: self._indexed(kernel, source, indices, index), value_of, form


def _where_indexed(indices: tuple[Any, ...]) -> tuple[int, bool]:
    """The first dimension that is indexed, and whether all such stand together."""
    at = [dim for dim, each in enumerate(indices) if each is not None]
    return at[0], at == list(range(at[0], at[-1] + 1))


def unknown(loss: str, operation: str) -> TracingError:
    """The refusal of an operation that is not known.

    Examples:
        >>> unknown("Mine", "erf")
        TracingError("Mine cannot be written as JavaScript: torch's operation erf is not known here")
    """
    return TracingError(f"{loss} cannot be written as JavaScript: torch's operation {operation} is not known here")
