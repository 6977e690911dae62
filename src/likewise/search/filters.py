"""Filters on what is known of items: a small language in Python's grammar, of which nothing is ever executed.

``label == "wren" and year >= 2019``, ``camera in ("north", "south")``, ``not like(path, "*/draft/*")``.  Where an item
has no value, it equals nothing, is unequal to everything, and is in no order.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from likewise.search.segment import arrow

if TYPE_CHECKING:
    from pyarrow import Table

LONGEST = 4096
"""Characters of an expression."""

DEEPEST = 64
"""Levels of an expression."""

Mask: TypeAlias = Callable[["Table"], Any]
"""From a table to one truth value for each row (pyarrow's)."""

ORDERS: Mapping[type[ast.cmpop], str] = {
    ast.Eq: "equal",
    ast.NotEq: "not_equal",
    ast.Lt: "less",
    ast.LtE: "less_equal",
    ast.Gt: "greater",
    ast.GtE: "greater_equal",
}


@dataclass(frozen=True)
class Filter:
    """An expression that was understood.

    Args:
        text: as it was given.
        mask: what it means.

    Examples:
        >>> table = arrow().table({"label": ["wren", "robin", None], "year": [2019, 2021, 2020]})
        >>> parse('label != "wren" and year > 2020', {"label": "text", "year": "number"}).rows(table).tolist()
        [False, True, False]
    """

    text: str
    mask: Mask

    def rows(self, table: Table) -> NDArray[np.bool_]:
        """Which rows of a table pass."""
        found = self.mask(table)
        array: NDArray[np.bool_] = np.asarray(found.to_numpy(zero_copy_only=False), bool)
        return array


def parse(text: str, fields: Mapping[str, str]) -> Filter:
    """Understand an expression.

    Args:
        text: the expression.
        fields: columns and what they hold: ``"text"``, ``"number"`` or ``"bool"``.

    Examples:
        >>> parse("lable == 'wren'", {"label": "text", "path": "text"})
        Traceback (most recent call last):
        ValueError: where must name columns of the index (label, path), but it names lable
    """
    if not isinstance(text, str):
        raise TypeError(f"where must be a text, but it is a {type(text).__name__}")
    if len(text) > LONGEST:
        raise ValueError(f"where must have at most {LONGEST} characters, but it has {len(text)}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # on strange escapes and the like, which are the user's business
            tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        reason = error.msg if isinstance(error, SyntaxError) else "it cannot be parsed"
        raise ValueError(
            f"where must be an expression such as 'label == \"wren\" and year >= 2019', but {text!r} is none: {reason}"
        ) from None
    return Filter(text, _Reader(text, fields).truth(tree, 0))


@dataclass(frozen=True)
class _Operand:
    """A column, or a constant: what it holds, and how it is had."""

    kind: str
    of: Callable[[Table], Any]
    name: str | None = None


@dataclass(frozen=True)
class _Reader:
    """From Python's syntax tree to masks; whatever is not listed here is refused."""

    text: str
    fields: Mapping[str, str]

    def truth(self, node: ast.expr, depth: int) -> Mask:
        if depth > DEEPEST:
            raise ValueError(f"where must have at most {DEEPEST} levels, but it has more")
        if isinstance(node, ast.BoolOp):
            parts = [self.truth(each, depth + 1) for each in node.values]
            return _joined(parts, "and_" if isinstance(node.op, ast.And) else "or_")
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            inner = self.truth(node.operand, depth + 1)
            return lambda table: _compute().invert(inner(table))
        if isinstance(node, ast.Compare):
            return self._compare(node)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "like":
            return self._like(node)
        column = self._operand(node)
        if column.kind != "bool":
            raise ValueError(f"where must compare {self._shown(node)}, which is neither true nor false by itself")
        return lambda table: _filled(_spread(column.of(table), table), False)

    def _compare(self, node: ast.Compare) -> Mask:
        parts: list[Mask] = []
        left = node.left
        for operator, right in zip(node.ops, node.comparators, strict=True):
            if isinstance(operator, ast.In | ast.NotIn):
                parts.append(self._among(left, right, isinstance(operator, ast.NotIn)))
            elif isinstance(operator, ast.Is | ast.IsNot) or _is_none(left) or _is_none(right):
                parts.append(self._nothing(left, operator, right))
            else:
                parts.append(self._ordered(left, operator, right))
            left = right
        return _joined(parts, "and_")

    def _ordered(self, left: ast.expr, operator: ast.cmpop, right: ast.expr) -> Mask:
        first, second = self._operand(left), self._operand(right)
        if first.name is None and second.name is None:
            raise ValueError(f"where must compare a column, but {self.text!r} compares two constants")
        self._alike(left, first, right, second)
        function, unequal = ORDERS[type(operator)], isinstance(operator, ast.NotEq)

        def mask(table: Table) -> Any:
            found = getattr(_compute(), function)(first.of(table), second.of(table))
            return _filled(_spread(found, table), unequal)

        return mask

    def _among(self, left: ast.expr, right: ast.expr, outside: bool) -> Mask:
        column = self._operand(left)
        if column.name is None or not isinstance(right, ast.Tuple | ast.List | ast.Set) or not right.elts:
            raise ValueError(
                f"where must have a column in front of 'in' and values behind it, such as ('a', 'b'), not {self._shown(right)}"
            )
        options = [self._operand(each) for each in right.elts]
        for node, option in zip(right.elts, options, strict=True):
            if option.name is not None:
                raise ValueError(f"where must have values behind 'in', but it has the column {option.name}")
            self._alike(left, column, node, option)

        def mask(table: Table) -> Any:
            compute = _compute()
            found = None
            for option in options:
                same = _filled(_spread(compute.equal(column.of(table), option.of(table)), table), False)
                found = same if found is None else compute.or_(found, same)
            return compute.invert(found) if outside else found

        return mask

    def _nothing(self, left: ast.expr, operator: ast.cmpop, right: ast.expr) -> Mask:
        node = left if _is_none(right) else right
        if not (_is_none(left) or _is_none(right)) or not isinstance(operator, ast.Is | ast.IsNot | ast.Eq | ast.NotEq):
            raise ValueError("where must use 'is' and 'is not' with a column and None alone")
        column = self._operand(node)
        there = isinstance(operator, ast.IsNot | ast.NotEq)

        def mask(table: Table) -> Any:
            empty = _spread(_compute().is_null(column.of(table)), table)
            return _compute().invert(empty) if there else empty

        return mask

    def _like(self, node: ast.Call) -> Mask:
        pattern = node.args[1] if len(node.args) == 2 and not node.keywords else None
        if not isinstance(pattern, ast.Constant) or not isinstance(pattern.value, str):
            raise ValueError('where must use like(column, "pattern*"), with * for any characters and ? for one')
        column = self._operand(node.args[0])
        if column.kind != "text" or column.name is None:
            raise ValueError(f"where must use like() with a column of texts, but {self._shown(node.args[0])} is none")
        sql = "".join({"*": "%", "?": "_", "%": r"\%", "_": r"\_", "\\": r"\\"}.get(one, one) for one in pattern.value)

        def mask(table: Table) -> Any:
            return _filled(_spread(_compute().match_like(column.of(table), sql), table), False)

        return mask

    def _operand(self, node: ast.expr) -> _Operand:
        if isinstance(node, ast.Name):
            return self._column(node.id)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "column":
            name = node.args[0] if len(node.args) == 1 and not node.keywords else None
            if not isinstance(name, ast.Constant) or not isinstance(name.value, str):
                raise ValueError('where must use column("name") with the name of a column')
            return self._column(name.value)
        sign = 1
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
            sign, node = -1 if isinstance(node.op, ast.USub) else 1, node.operand
            if not isinstance(node, ast.Constant) or type(node.value) not in (int, float):
                raise ValueError(f"where must have a number behind a sign, but it has {self._shown(node)}")
        if isinstance(node, ast.Constant) and type(node.value) in (bool, int, float, str):
            return _constant(node.value if sign == 1 else -node.value)  # type: ignore[operator]
        raise ValueError(
            f"where must be made of columns, texts, numbers, True, False, comparisons, in, and, or, not and like(), but {self._shown(node)} is none of these"
        )

    def _column(self, name: str) -> _Operand:
        if name not in self.fields:
            known = ", ".join(sorted(self.fields))
            raise ValueError(f"where must name columns of the index ({known}), but it names {name}")
        return _Operand(self.fields[name], lambda table: _column_of(table, name, self.fields[name]), name)

    def _alike(self, left: ast.expr, first: _Operand, right: ast.expr, second: _Operand) -> None:
        if first.kind != second.kind:
            raise ValueError(
                f"where must compare what is alike, but {self._shown(left)} is a {first.kind} and {self._shown(right)} a {second.kind}"
            )

    def _shown(self, node: ast.expr) -> str:
        return (ast.get_source_segment(self.text.strip(), node) or "it")[:80]


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _constant(value: Any) -> _Operand:
    kind = "bool" if isinstance(value, bool) else "text" if isinstance(value, str) else "number"
    if kind == "text" and any("\ud800" <= one <= "\udfff" for one in value):
        raise ValueError(f"where must have texts of whole characters, but {value!r} has half of one")
    if kind == "number" and not -(2**63) <= value < 2**63:
        try:
            value = float(value)
        except OverflowError:
            value = inf if value > 0 else -inf
    return _Operand(kind, lambda table: arrow().scalar(value))


def _compute() -> Any:
    arrow()
    import pyarrow.compute

    return pyarrow.compute


def _column_of(table: Table, name: str, kind: str) -> Any:
    """A column, of nothing where the table has none; whole numbers are compared as such."""
    pa = arrow()
    types = {"text": pa.string(), "number": pa.float64(), "bool": pa.bool_()}
    if name not in table.column_names:
        return pa.nulls(table.num_rows, types[kind])
    column = table.column(name)
    return column.cast(types[kind]) if pa.types.is_null(column.type) else column


def _spread(found: Any, table: Table) -> Any:
    """One value for each row, in one piece."""
    pa = arrow()
    if isinstance(found, pa.ChunkedArray):
        return found.combine_chunks()
    return pa.repeat(found, table.num_rows) if isinstance(found, pa.Scalar) else found


def _filled(found: Any, value: bool) -> Any:
    return _compute().fill_null(found, value)


def _joined(parts: list[Mask], function: str) -> Mask:
    def mask(table: Table) -> Any:
        compute = _compute()
        found = parts[0](table)
        for part in parts[1:]:
            found = getattr(compute, function)(found, part(table))
        return found

    return mask
