"""From a graph of tensors to JavaScript: which tensors become arrays, and the loops that fill them.

Most tensors are never written down: an entry is an expression of other entries, and is put where it is needed.  An array
is made of what gathers many entries into one (sums, products, sorting), of what loops would compute again and again, and
of the results.  Arrays are taken from a pool and given back after their last use.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sympy

from likewise.analysis.javascript.arrays import SIZES, Array, Arrays, Index, product, ravel, same
from likewise.analysis.javascript.entries import Entries
from likewise.analysis.javascript.kernels import Function, Kernel, Term
from likewise.analysis.javascript.operators import PICKS, REDUCTIONS
from likewise.analysis.javascript.plan import kept_arrays
from likewise.analysis.tracing import TracingError

SCATTERS = ("scatter", "scatter_add", "scatter_reduce", "index_put", "_unsafe_index_put")


@dataclass(frozen=True)
class Step:
    """A line of a script.

    Args:
        text: the line.
        arrays: the arrays that it reads or writes.

    Examples:
        >>> Step("fill(b0);", ("b0",)).arrays
        ('b0',)
    """

    text: str
    arrays: tuple[str, ...]


@dataclass(frozen=True)
class Body:
    """What a loss does, as JavaScript.

    Args:
        text: the lines, which make ``results`` of samples ``x``, labels ``y``, proxies ``p``, hyper-parameters ``h`` and
            the sizes ``n``, ``d`` and ``c``; ``own`` keeps the results' arrays.
        results: the names of the results.
        functions: the functions that it calls, by name.

    Examples:
        >>> Body("const v0=1;", ("v0",), {}).results
        ('v0',)
    """

    text: str
    results: tuple[str, ...]
    functions: dict[str, str]


def body_of(arrays: Arrays) -> Body:
    """Write a graph as JavaScript.

    Examples:
        >>> from likewise.analysis.javascript.arrays import arrays_of
        >>> from likewise.analysis.subjects import subject_of
        >>> from likewise.analysis.tracing import Sizes, trace
        >>> graph = trace(subject_of(lambda s, labels: (s * s).sum(), name="Squares"), {}, Sizes(7, 3, 5))
        >>> len(body_of(arrays_of(graph)).results)
        4
    """
    try:
        return _Writer(arrays).write()
    except NotImplementedError as error:
        raise TracingError(f"{arrays.name} cannot be written as JavaScript: {error}") from error


class _Writer:
    """Writes arrays in order."""

    def __init__(self, arrays: Arrays) -> None:
        self.arrays = arrays
        self.kept = kept_arrays(arrays)
        self.entries = Entries(arrays)
        self.steps: list[Step] = []
        self.functions: dict[str, str] = {}
        self.sizes: dict[str, Index] = {}
        self.kinds: dict[str, str] = {}

    def write(self) -> Body:
        for array in self.arrays.order:
            if array in self.kept:
                self._write(array)
        names = [self.entries.name_of(output) for output in self.arrays.outputs]
        return Body(self._text(names), tuple(names), self.functions)

    # -------------------------------------------------------------------------------------------- arrays

    def _array(self, array: Array) -> str:
        """A new array."""
        name = f"b{len(self.sizes)}"
        self.sizes[name], self.kinds[name] = array.shape, array.kind
        return name

    def _kernel(self, *bounds: sympy.Expr) -> Kernel:
        return Kernel(bounds, {symbol: name for name, symbol in SIZES.items()})

    def _loops(self, shape: Index, sources: list[Array]) -> tuple[Kernel, Index]:
        """Loops over a shape, and the place inside them; what was flattened is gone through as it was before."""
        inner = self.entries.unflattened(sources, shape)
        real = [dim for dim, size in enumerate(inner) if not same(size, 1)]
        kernel = self._kernel(*(inner[dim] for dim in real))
        place = tuple(kernel.loops[real.index(dim)] if dim in real else sympy.Integer(0) for dim in range(len(inner)))
        return kernel, place if inner is shape else (ravel(place, inner),)

    def _call(self, function: Function, result: str = "") -> None:
        self.functions[function.name] = function.text
        call = function.call() + ";"
        self._say(f"const {result}={call}" if result else call, *function.arguments)

    def _say(self, text: str, *arrays: str) -> None:
        self.steps.append(Step(text, tuple(name for name in arrays if name in self.sizes)))

    def _write(self, array: Array) -> None:
        writers = {
            **dict.fromkeys(REDUCTIONS, self._reduce),
            **dict.fromkeys(PICKS, self._pick),
            **dict.fromkeys(SCATTERS, self._scatter),
            **dict.fromkeys(("mm", "bmm"), self._product),
            **dict.fromkeys(("cumsum", "cumprod"), self._running),
            **dict.fromkeys(("sort", "topk"), self._sort),
        }
        if array.op in writers:
            writers[array.op](array)
        elif array.op == "part":
            pass  # written with the others
        elif not array.shape:
            self._number(array)
        else:
            name = self._array(array)
            self._copy(array, name)
            self.entries.keep(array, name)

    def _number(self, array: Array) -> None:
        """A tensor without dimensions is a plain number."""
        name = f"v{len(self.steps)}"
        kernel = self._kernel()
        term = kernel.number(self.entries.entry(kernel, array, ()))
        kernel.say(f"const {name}={{0}};", term)
        read: list[str] = []

        def named(outside: tuple[str, str]) -> str:
            read.append(outside[1])
            return outside[1]

        text = kernel.body(named, prefix=f"{name}_")
        self._say(text, *read)
        self.entries.keep(array, name)

    def _copy(self, array: Array, name: str, source: Array | None = None) -> None:
        """Every entry by itself."""
        kernel, place = self._loops(array.shape, [source or array])
        value = self.entries.entry(kernel, source or array, place)
        kernel.store(array.kind, name, ravel(place, array.shape), value)
        self._call(kernel.function())

    def _reduce(self, array: Array) -> None:
        source, dims, at = _reduced(array)
        kernel, place, outer = self._nest(source, dims)
        value = self.entries.entry(kernel, source, place)
        start, form = REDUCTIONS[array.op]
        kernel.say(f"let a={start};", depth=outer)
        kernel.say(form, value if array.op in ("any", "all") and value.truth else kernel.number(value))
        self._finish(array, kernel, "a", outer, at(place))

    def _pick(self, array: Array) -> None:
        """The place of an extreme."""
        source, dims, at = _reduced(array)
        kernel, place, outer = self._nest(source, dims)
        value = kernel.number(self.entries.entry(kernel, source, place))
        start, better = PICKS[array.op]
        kernel.say(f"let a={start},b=0;", depth=outer)
        flat = ravel(tuple(place[dim] for dim in dims), tuple(source.shape[dim] for dim in dims))
        kernel.say(f"if({{0}}{better}a){{{{a={{1}};b={{2}};}}}}", value, value, kernel.index(flat))
        self._finish(array, kernel, "b", outer, at(place))

    def _nest(self, source: Array, dims: tuple[int, ...]) -> tuple[Kernel, Index, int]:
        """Loops over what is kept, and inside them over what is reduced."""
        order = [dim for dim in range(len(source.shape)) if dim not in dims] + list(dims)
        real = [dim for dim in order if not same(source.shape[dim], 1)]
        kernel = self._kernel(*(source.shape[dim] for dim in real))
        outer = sum(dim not in dims for dim in real)
        place = tuple(
            kernel.loops[real.index(dim)] if dim in real else sympy.Integer(0) for dim in range(len(source.shape))
        )
        return kernel, place, outer

    def _finish(self, array: Array, kernel: Kernel, result: str, outer: int, place: Index) -> None:
        if not array.shape:
            name = f"v{len(self.steps)}"
            self._call(kernel.function(returned=result), name)
        else:
            name = self._array(array)
            term = Term(result, depth=outer)
            kernel.store(array.kind, name, ravel(place, array.shape), term, depth=outer, after=True)
            self._call(kernel.function())
        self.entries.keep(array, name)

    def _running(self, array: Array) -> None:
        """Sums or products of all entries so far."""
        source, dim = array.args[0], array.args[1] % len(array.shape)
        kernel, place, outer = self._nest(source, (dim,))
        name = self._array(array)
        start, form = REDUCTIONS["sum" if array.op == "cumsum" else "prod"]
        kernel.say(f"let a={start};", depth=outer)
        kernel.say(form, kernel.number(self.entries.entry(kernel, source, place)))
        kernel.store("f", name, ravel(place, array.shape), Term("a", depth=len(kernel.bounds)))
        self._call(kernel.function())
        self.entries.keep(array, name)

    def _product(self, array: Array) -> None:
        left, right = array.args
        *batch, rows, columns = array.shape
        inner = left.shape[-1]
        name = self._array(array)
        short = any(size.is_Integer or size == SIZES["d"] for size in (rows, columns, inner))
        places = self._steps_of(left), self._steps_of(right)
        if not (short or batch) and places[0] and places[1]:
            sizes = ",".join(size_text(size) for size in (rows, inner, columns))
            self._say(f"multiply({name},{places[0][1]},{places[1][1]},{sizes});", name, places[0][0], places[1][0])
        else:
            kernel = self._kernel(*batch, rows, columns, inner)
            *b, i, j, k = kernel.loops
            terms = self.entries.entry(kernel, left, (*b, i, k)), self.entries.entry(kernel, right, (*b, k, j))
            outer = len(batch) + 2
            kernel.say("let a=0;", depth=outer)
            kernel.say("a+={0};", kernel.make("({0}*{1})", *map(kernel.number, terms)))
            kernel.store("f", name, ravel((*b, i, j), array.shape), Term("a", depth=outer), depth=outer, after=True)
            self._call(kernel.function())
        self.entries.keep(array, name)

    def _steps_of(self, matrix: Array) -> tuple[str, str] | None:
        """The array that holds a matrix, and as text: it, its first entry, and the steps along rows and columns."""
        if len(matrix.shape) != 2:
            return None
        i, j = sympy.symbols("i j")
        found = self.entries.address(matrix, (i, j))
        if found is None:
            return None
        name, place = found[0], sympy.expand(found[1])
        steps = place.coeff(i), place.coeff(j)
        first = sympy.expand(place - i * steps[0] - j * steps[1])
        if {i, j} & (first.free_symbols | steps[0].free_symbols | steps[1].free_symbols):
            return None
        return name, ",".join([name, *(size_text(each) for each in (first, *steps))])

    def _sort(self, array: Array) -> None:
        source = array.args[0]
        columns = source.shape[-1]
        rows = product(source.shape[:-1])
        kept: Any = columns
        if array.op == "topk":
            kept, descending = array.args[1], array.argument(3, "largest", True)
        else:
            # sort(x, dim, descending) and sort(x, stable=…, dim=…, descending=…)
            descending = array.options.get("descending", array.args[2] if len(array.args) > 2 else False)
        names = {0: "null", 1: "null"}
        for part in array.users:
            name = self._array(part)
            self.entries.keep(part, name)
            names[part.args[1]] = name
        memory = self.entries.memory(source)
        assert memory is not None
        numbers = ",".join(size_text(size) for size in (rows, columns, sympy.sympify(kept)))
        text = f"sortRows({memory[1]},{numbers},{names[0]},{names[1]},{'true' if descending else 'false'});"
        self._say(text, memory[1], *names.values())

    def _scatter(self, array: Array) -> None:
        """A copy, and then entries written into it."""
        source, name = array.args[0], self._array(array)
        constant = self.entries.constant_of(source)
        if constant is not None:
            self._say(f"{name}.fill({constant},0,{size_text(product(array.shape))});", name)
        else:
            self._copy(array, name, source)
        shape, place_of, value_of, form = self.entries.scattered(array)
        kernel, place = self._loops(shape, array.inputs()[1:])
        address = kernel.index(ravel(place_of(kernel, place), array.shape))
        value = value_of(kernel, place)
        if array.kind == "u":
            value = kernel.number(value)
        out = kernel.outside(array.kind, name)
        if form in ("=", "+="):
            kernel.say(f"{{0}}[{{1}}]{form}{{2}};", out, address, value)
        else:
            kernel.say(f"{{0}}[{{1}}]={form}({{2}}[{{3}}],{{4}});", out, address, out, address, value)
        self._call(kernel.function())
        self.entries.keep(array, name)

    # -------------------------------------------------------------------------------------------- text

    def _text(self, results: list[str]) -> str:
        """The steps, each with the arrays that begin there; an array is free again after its last use."""
        last = {name: k for k, step in enumerate(self.steps) for name in step.arrays}
        free: dict[str, list[int]] = {}
        used = {"f": 0, "u": 0}
        slots: dict[str, tuple[str, int]] = {}
        lines = []
        for k, step in enumerate(self.steps):
            for name in dict.fromkeys(step.arrays):
                if name in slots or name in results:
                    continue
                size, kind = size_text(product(self.sizes[name])), self.kinds[name]
                waiting = free.setdefault(kind + size, [])
                if not waiting:
                    waiting.append(used[kind])
                    used[kind] += 1
                slots[name] = (kind + size, waiting.pop(0))
                lines.append(f"const {name}={'FU'[kind == 'u']}({slots[name][1]},{size});")
            lines.append(step.text)
            for name in dict.fromkeys(step.arrays):
                if name in slots and last[name] == k:
                    free[slots[name][0]].append(slots[name][1])
        first = [
            f"const {name}=R(own,{k},{size_text(product(self.sizes[name]))});"
            for k, name in enumerate(dict.fromkeys(results))
            if name in self.sizes
        ]
        return "\n".join([*first, *lines])


def size_text(size: sympy.Expr) -> str:
    """A size as JavaScript.

    Examples:
        >>> size_text(SIZES["n"] * 2 + 1)
        '((n*2)+1)'
    """
    kernel = Kernel((), {symbol: name for name, symbol in SIZES.items()})
    kernel.say("{0}", kernel.index(size))
    return kernel.body(lambda outside: outside[1])


def _reduced(array: Array) -> tuple[Array, tuple[int, ...], Any]:
    """What is reduced, along which dimensions, and where an entry goes."""
    source = array.args[0]
    rank = len(source.shape)
    given = array.argument(1, "dim")
    dims = tuple(range(rank)) if given is None or given == () else (given,) if isinstance(given, int) else tuple(given)
    dims = tuple(sorted(int(dim) % rank for dim in dims)) if rank else ()
    keeps = len(array.shape) == rank

    def at(place: Index) -> Index:
        if keeps:
            return tuple(sympy.Integer(0) if dim in dims else each for dim, each in enumerate(place))
        return tuple(each for dim, each in enumerate(place) if dim not in dims)

    return source, dims, at


_SIGNS = {sympy.Ge: ">=", sympy.Gt: ">", sympy.Le: "<=", sympy.Lt: "<", sympy.Eq: "===", sympy.Ne: "!=="}


def condition_text(conditions: tuple[sympy.Basic, ...]) -> str:
    """Conditions on sizes as JavaScript.

    Examples:
        >>> condition_text((sympy.Ge(3 * SIZES["c"], 8),))
        '(c*3)>=8'
    """
    sides = [(condition, *map(size_text, condition.args)) for condition in conditions]
    return "&&".join(f"{left}{_SIGNS[condition.func]}{right}" for condition, left, right in sides)
