"""Which tensors are written down as arrays, and which are computed wherever an entry is needed."""

from __future__ import annotations

from likewise.analysis.javascript.arrays import Array, Arrays, product, same
from likewise.analysis.javascript.entries import CONSTANTS
from likewise.analysis.javascript.operators import COSTS, POINTWISE, RESHAPES, VIEWS

WORTH_KEEPING = 8
"""An entry that costs more than this is written down where two loops need it."""

WORTH_KEEPING_APART = 4
"""The same for what is repeated along a dimension, a number per anchor say: it is a small array."""

GATHERS = ("gather", "index", "index_select", "embedding", "searchsorted")
PATCHES = ("cat", "slice_scatter", "select_scatter", "diagonal_scatter", "constant_pad_nd")
LAZY = {*POINTWISE, *VIEWS, *CONSTANTS, *GATHERS, *PATCHES, "arange", "input"}


def kept_arrays(arrays: Arrays) -> set[Array]:
    """The arrays that are written down.

    Examples:
        >>> from likewise.analysis.javascript.arrays import arrays_of
        >>> from likewise.analysis.subjects import subject_of
        >>> from likewise.analysis.tracing import Sizes, trace
        >>> graph = trace(subject_of(lambda s, labels: (s * s).sum(), name="Squares"), {}, Sizes(7, 3, 5))
        >>> sorted({array.op for array in kept_arrays(arrays_of(graph)) if array.op in ("mm", "mul", "permute")})
        ['mm']
    """
    costs = _costs(arrays)
    forced = _forced(arrays)
    kept: set[Array] = set()
    loops: dict[Array, set[Array]] = {}
    repeated: set[Array] = set()
    for array in reversed(arrays.order):
        if array.op == "input":
            continue
        loops[array] = set()
        for user in array.users:
            loops[array] |= {user} if user in kept else loops[user]
        if array.op in VIEWS and array in repeated:
            repeated.add(array.args[0])
        if array.op not in LAZY or array in forced or _worth(array, costs[array], len(loops[array]), array in repeated):
            kept.add(array)
            loops[array] = {array}
        for source in array.inputs():
            if (
                source.shape
                and array.op in (*POINTWISE, "expand")
                and not same(product(source.shape), product(array.shape))
            ):
                repeated.add(source)
    return kept


def _worth(array: Array, cost: int, loops: int, repeated: bool) -> bool:
    if array.op in VIEWS or array.op in CONSTANTS or array.op == "arange":
        return False
    if not array.shape:
        return len(array.users) > 1 or any(user.shape for user in array.users)
    return (loops > 1 and cost > WORTH_KEEPING) or (repeated and cost > WORTH_KEEPING_APART)


def _costs(arrays: Arrays) -> dict[Array, int]:
    """What it takes to compute an entry where it is needed."""
    costs: dict[Array, int] = {}
    for array in arrays.order:
        if array.op == "input" or array.op not in LAZY:
            costs[array] = 1
        elif array.op in CONSTANTS or array.op == "arange" or not array.shape:
            costs[array] = 0
        else:
            own = 0 if array.op in VIEWS or array.op == "_to_copy" else COSTS.get(array.op, 1)
            costs[array] = own + sum(costs[each] for each in array.inputs())
    return costs


def _forced(arrays: Arrays) -> set[Array]:
    """Arrays of which entries are read again and again, or in any order; and the results."""
    forced: set[Array] = set()
    for array in arrays.order:
        if array.op in ("mm", "bmm"):
            forced |= {_without_views(each, tuple(VIEWS)) for each in array.args}
        elif array.op in ("gather", "index", "index_select", "embedding"):
            forced.add(_without_views(array.args[0], tuple(VIEWS)))
        elif array.op in ("searchsorted", "sort", "topk"):
            forced.add(_without_views(array.args[0], RESHAPES))
    return {array for array in forced if array.op not in (*CONSTANTS, "arange")} | set(arrays.outputs)


def _without_views(array: Array, views: tuple[str, ...]) -> Array:
    while array.op in views:
        array = array.args[0]
    return array
