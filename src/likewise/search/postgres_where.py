"""Filters as conditions for a database: the same language as `likewise.search.filters`, and the same meaning.

What a user wrote never becomes part of the SQL: names of columns and values are parameters.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from likewise.search.filters import parse

_ORDERS = {ast.Eq: "=", ast.NotEq: "<>", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}

_OWN = {"id": "id", "path": "path", "label": "label"}

_CASTS = {"text": "{}", "number": "({})::numeric", "bool": "({})::boolean"}


@dataclass(frozen=True)
class Condition:
    """A condition and its parameters.

    Args:
        sql: with ``%s`` for each parameter.
        parameters: in their order.

    Examples:
        >>> condition("year >= 2019", {"year": "number"})
        Condition(sql='COALESCE(((metadata ->> %s))::numeric >= %s, false)', parameters=('year', 2019))
    """

    sql: str
    parameters: tuple[Any, ...] = ()


def condition(where: str | None, fields: Mapping[str, str]) -> Condition:
    """A filter as a condition on a table with the columns id, path, label and metadata (jsonb).

    Args:
        where: the expression; nothing for no condition.
        fields: columns that it may name and what they hold: ``"text"``, ``"number"`` or ``"bool"``.

    Examples:
        >>> condition("lable == 'wren'", {"label": "text"})
        Traceback (most recent call last):
        ValueError: where must name columns of the index (label), but it names lable
        >>> condition('label != "wren"', {"label": "text"}).sql
        'COALESCE((label) COLLATE "C" <> %s, true)'
    """
    if where is None:
        return Condition("true")
    parse(where, fields)  # whatever it refuses, it refuses in a sentence
    writer = _Writer(fields)
    sql = writer.truth(ast.parse(where.strip(), mode="eval").body)
    return Condition(sql, tuple(writer.parameters))


@dataclass
class _Writer:
    """From a tree that was found to be right to SQL; parameters are gathered in the order in which they stand."""

    fields: Mapping[str, str]
    parameters: list[Any] = field(default_factory=list)

    def truth(self, node: ast.expr) -> str:
        if isinstance(node, ast.BoolOp):
            word = " AND " if isinstance(node.op, ast.And) else " OR "
            return "(" + word.join(self.truth(each) for each in node.values) + ")"
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return f"(NOT {self.truth(node.operand)})"
        if isinstance(node, ast.Compare):
            return self._compare(node)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "like":
            return self._like(node)
        return f"COALESCE({self._operand(node)}, false)"

    def _compare(self, node: ast.Compare) -> str:
        parts, left = [], node.left
        for operator, right in zip(node.ops, node.comparators, strict=True):
            parts.append(self._one(left, operator, right))
            left = right
        return parts[0] if len(parts) == 1 else "(" + " AND ".join(parts) + ")"

    def _one(self, left: ast.expr, operator: ast.cmpop, right: ast.expr) -> str:
        if isinstance(operator, ast.In | ast.NotIn):
            assert isinstance(right, ast.Tuple | ast.List | ast.Set)
            same = [f"COALESCE({self._operand(left)} = {self._operand(each)}, false)" for each in right.elts]
            return f"({'NOT ' * isinstance(operator, ast.NotIn)}({' OR '.join(same)}))"
        if _is_none(left) or _is_none(right):
            there = isinstance(operator, ast.IsNot | ast.NotEq)
            return f"({self._operand(left if _is_none(right) else right)} IS {'NOT ' * there}NULL)"
        unequal = "true" if isinstance(operator, ast.NotEq) else "false"
        return f"COALESCE({self._operand(left)} {_ORDERS[type(operator)]} {self._operand(right)}, {unequal})"

    def _like(self, node: ast.Call) -> str:
        column, pattern = node.args
        assert isinstance(pattern, ast.Constant)
        escaped = {"*": "%", "?": "_", "%": r"\%", "_": r"\_", "\\": r"\\"}
        sql = self._operand(column)
        self.parameters.append("".join(escaped.get(one, one) for one in str(pattern.value)))
        return f"COALESCE({sql} LIKE %s, false)"

    def _operand(self, node: ast.expr) -> str:
        if isinstance(node, ast.Name):
            return self._column(node.id)
        if isinstance(node, ast.Call):
            [name] = node.args
            assert isinstance(name, ast.Constant)
            return self._column(str(name.value))
        value: Any = ast.literal_eval(node)
        self.parameters.append(value)
        # a text has no type of its own in SQL; a truth value and a number do
        return "%s"

    def _column(self, name: str) -> str:
        kind = self.fields[name]
        if name in _OWN:
            sql = _OWN[name] if kind == "number" else f"({_OWN[name]})"
        else:
            self.parameters.append(name)
            sql = _CASTS[kind].format("(metadata ->> %s)")
        return f'{sql} COLLATE "C"' if kind == "text" else sql  # in the order of characters' numbers, as everywhere


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
