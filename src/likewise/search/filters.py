"""Filters on columns of items: a small language with Python's grammar, which is parsed and never executed.

Examples are ``label == "wren" and year >= 2019``, ``camera in ("north", "south")`` and ``not like(path, "*/draft/*")``.  A
missing value equals nothing, differs from everything, and is neither less nor greater than anything.

`parse` turns a text into a tree of conditions; `likewise.search.conditions` translates the tree to Arrow or PostgreSQL.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Any, TypeAlias

LONGEST = 4096
"""The largest number of characters of an expression."""

DEEPEST = 64
"""The largest nesting depth of an expression."""

OPERATORS: Mapping[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}


@dataclass(frozen=True)
class Column:
    """A column; ``kind`` is ``"text"``, ``"number"`` or ``"bool"``."""

    name: str
    kind: str


@dataclass(frozen=True)
class Constant:
    """A value; numbers must fit into 64 bits."""

    value: bool | int | float | str
    kind: str


Operand: TypeAlias = Column | Constant


@dataclass(frozen=True)
class Comparison:
    """``left operator right``, where at least one side is a column; with a missing value it is false, and ``!=`` is true."""

    left: Operand
    operator: str
    right: Operand


@dataclass(frozen=True)
class IsMissing:
    """True if an operand has no value."""

    operand: Operand


@dataclass(frozen=True)
class Like:
    """True if a text matches a SQL LIKE pattern, in which a backslash escapes."""

    column: Column
    pattern: str


@dataclass(frozen=True)
class IsTrue:
    """A boolean; a missing one is false."""

    operand: Operand


@dataclass(frozen=True)
class Not:
    """The negation of a condition."""

    condition: Condition


@dataclass(frozen=True)
class Every:
    """True if all conditions hold."""

    conditions: tuple[Condition, ...]


@dataclass(frozen=True)
class Some:
    """True if at least one condition holds."""

    conditions: tuple[Condition, ...]


Condition: TypeAlias = Comparison | IsMissing | Like | IsTrue | Not | Every | Some


def parse(text: str, fields: Mapping[str, str]) -> Condition:
    """Parse an expression into a condition that is never missing.

    Args:
        text: the expression.
        fields: columns and their types: ``"text"``, ``"number"`` or ``"bool"``.

    Examples:
        >>> parse("year >= 2019", {"year": "number"})
        Comparison(left=Column(name='year', kind='number'), operator='>=', right=Constant(value=2019, kind='number'))
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
            warnings.simplefilter("ignore")  # about invalid escapes, for example
            tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        reason = error.msg if isinstance(error, SyntaxError) else "it cannot be parsed"
        raise ValueError(
            f"where must be an expression such as 'label == \"wren\" and year >= 2019', but it is {text!r}: {reason}"
        ) from None
    return _Parser(text, fields).condition(tree, 0)


@dataclass(frozen=True)
class _Parser:
    """Converts Python's syntax tree to conditions; any other syntax is rejected."""

    text: str
    fields: Mapping[str, str]

    def condition(self, node: ast.expr, depth: int) -> Condition:
        if depth > DEEPEST:
            raise ValueError(f"where must have at most {DEEPEST} levels, but it has more")
        if isinstance(node, ast.BoolOp):
            parts = tuple(self.condition(each, depth + 1) for each in node.values)
            return Every(parts) if isinstance(node.op, ast.And) else Some(parts)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return Not(self.condition(node.operand, depth + 1))
        if isinstance(node, ast.Compare):
            return self._chain(node)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "like":
            return self._like(node)
        operand = self._operand(node)
        if operand.kind != "bool":
            raise ValueError(f"where must compare {self._source(node)}, which is not true or false")
        return IsTrue(operand)

    def _chain(self, node: ast.Compare) -> Condition:
        parts: list[Condition] = []
        left = node.left
        for operator, right in zip(node.ops, node.comparators, strict=True):
            if isinstance(operator, ast.In | ast.NotIn):
                among = self._membership(left, right)
                parts.append(Not(among) if isinstance(operator, ast.NotIn) else among)
            elif isinstance(operator, ast.Is | ast.IsNot) or _is_none(left) or _is_none(right):
                parts.append(self._missing(left, operator, right))
            else:
                parts.append(self._comparison(left, OPERATORS[type(operator)], right))
            left = right
        return parts[0] if len(parts) == 1 else Every(tuple(parts))

    def _comparison(self, left: ast.expr, operator: str, right: ast.expr) -> Comparison:
        first, second = self._operand(left), self._operand(right)
        if isinstance(first, Constant) and isinstance(second, Constant):
            raise ValueError(f"where must compare a column, but {self.text!r} compares two constants")
        self._check_alike(left, first, right, second)
        return Comparison(first, operator, second)

    def _membership(self, left: ast.expr, right: ast.expr) -> Condition:
        column = self._operand(left)
        if isinstance(column, Constant) or not isinstance(right, ast.Tuple | ast.List | ast.Set) or not right.elts:
            raise ValueError(
                f"where must have a column in front of 'in' and values behind it, such as ('a', 'b'), not {self._source(right)}"
            )
        parts = []
        for node in right.elts:
            option = self._operand(node)
            if isinstance(option, Column):
                raise ValueError(f"where must have values behind 'in', but it has the column {option.name}")
            self._check_alike(left, column, node, option)
            parts.append(Comparison(column, "==", option))
        return Some(tuple(parts))

    def _missing(self, left: ast.expr, operator: ast.cmpop, right: ast.expr) -> Condition:
        node = left if _is_none(right) else right
        if not (_is_none(left) or _is_none(right)) or not isinstance(operator, ast.Is | ast.IsNot | ast.Eq | ast.NotEq):
            raise ValueError("where must use 'is' and 'is not' with a column and None")
        missing = IsMissing(self._operand(node))
        return Not(missing) if isinstance(operator, ast.IsNot | ast.NotEq) else missing

    def _like(self, node: ast.Call) -> Like:
        pattern = node.args[1] if len(node.args) == 2 and not node.keywords else None
        if not isinstance(pattern, ast.Constant) or not isinstance(pattern.value, str):
            raise ValueError('where must use like(column, "pattern*"), with * for any characters and ? for one')
        column = self._operand(node.args[0])
        if column.kind != "text" or isinstance(column, Constant):
            raise ValueError(
                f"where must use like() with a column of texts, but {self._source(node.args[0])} is not one"
            )
        text = str(_constant(pattern.value).value)
        signs = {"*": "%", "?": "_", "%": r"\%", "_": r"\_", "\\": r"\\"}
        return Like(column, "".join(signs.get(one, one) for one in text))

    def _operand(self, node: ast.expr) -> Operand:
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
                raise ValueError(f"where must have a number behind a sign, but it has {self._source(node)}")
        if isinstance(node, ast.Constant) and type(node.value) in (bool, int, float, str):
            return _constant(node.value if sign == 1 else -node.value)  # type: ignore[operator]
        raise ValueError(
            f"where must consist of columns, texts, numbers, True, False, comparisons, in, and, or, not and like(), but {self._source(node)} is not one of these"
        )

    def _column(self, name: str) -> Column:
        if name not in self.fields:
            known = ", ".join(sorted(self.fields))
            raise ValueError(f"where must name columns of the index ({known}), but it names {name}")
        return Column(name, self.fields[name])

    def _check_alike(self, left: ast.expr, first: Operand, right: ast.expr, second: Operand) -> None:
        if first.kind != second.kind:
            raise ValueError(
                f"where must compare values of the same type, but {self._source(left)} is a {first.kind} and {self._source(right)} a {second.kind}"
            )

    def _source(self, node: ast.expr) -> str:
        return (ast.get_source_segment(self.text.strip(), node) or "it")[:80]


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _constant(value: Any) -> Constant:
    kind = "bool" if isinstance(value, bool) else "text" if isinstance(value, str) else "number"
    if kind == "text" and any("\ud800" <= one <= "\udfff" or one == "\0" for one in value):
        raise ValueError(f"where must have texts without lone surrogates and NUL characters, but it has {value!r}")
    if kind == "number" and not -(2**63) <= value < 2**63:
        try:
            value = float(value)
        except OverflowError:
            value = inf if value > 0 else -inf
    return Constant(value, kind)
