"""Translation of filter conditions to Arrow expressions and to parameterized PostgreSQL conditions.

Both have the same meaning: a condition is true or false, never missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

from likewise.search.columns import RESERVED, arrow
from likewise.search.filters import (
    Column,
    Comparison,
    Condition,
    Constant,
    Every,
    IsMissing,
    IsTrue,
    Like,
    Not,
    Operand,
    Some,
)

if TYPE_CHECKING:
    from pyarrow.compute import Expression

SQL_OPERATORS: Mapping[str, str] = {"==": "=", "!=": "<>"}
"""Operators that SQL spells differently."""

SQL_CASTS: Mapping[str, str] = {"text": "{}", "number": "({})::numeric", "bool": "({})::boolean"}


def to_arrow(condition: Condition) -> Expression:
    """Return an expression for ``Table.filter``, Arrow data sets and Parquet files.

    Examples:
        >>> from likewise.search.filters import parse
        >>> table = arrow().table({"label": ["wren", "robin", None], "year": [2019, 2021, 2020]})
        >>> expression = to_arrow(parse('label != "wren" and year > 2019', {"label": "text", "year": "number"}))
        >>> table.filter(expression).column("year").to_pylist()
        [2021, 2020]
    """
    arrow()
    from pyarrow import compute

    match condition:
        case Comparison(left, operator, right):
            first, second = _arrow_operand(left), _arrow_operand(right)
            names = {"==": "equal", "!=": "not_equal", "<": "less", "<=": "less_equal", ">": "greater"}
            result = getattr(compute, names.get(operator, "greater_equal"))(first, second)
            return compute.coalesce(result, compute.scalar(operator == "!="))
        case IsMissing(operand):
            return _arrow_operand(operand).is_null()
        case Like(column, pattern):
            return compute.coalesce(compute.match_like(compute.field(column.name), pattern), compute.scalar(False))
        case IsTrue(operand):
            return compute.coalesce(_arrow_operand(operand), compute.scalar(False))
        case Not(inner):
            return ~to_arrow(inner)
        case Every(conditions):
            return reduce(lambda left, right: left & right, map(to_arrow, conditions))
        case Some(conditions):
            return reduce(lambda left, right: left | right, map(to_arrow, conditions))


def _arrow_operand(operand: Operand) -> Any:
    from pyarrow import compute

    return compute.field(operand.name) if isinstance(operand, Column) else compute.scalar(operand.value)


@dataclass(frozen=True)
class SqlCondition:
    """A PostgreSQL condition in which every name and value of a user is a parameter.

    Args:
        sql: the condition, with ``%s`` for each parameter.
        parameters: the parameters in order.

    Examples:
        >>> from likewise.search.filters import parse
        >>> to_sql(parse("year >= 2019", {"year": "number"}))
        SqlCondition(sql='COALESCE(((metadata ->> %s))::numeric >= %s, false)', parameters=('year', 2019))
    """

    sql: str
    parameters: tuple[Any, ...] = ()


def to_sql(condition: Condition | None) -> SqlCondition:
    """Return a condition on a table with the columns id, path, label and metadata (jsonb); ``None`` is true.

    Examples:
        >>> from likewise.search.filters import parse
        >>> to_sql(parse('label != "wren"', {"label": "text"})).sql
        'COALESCE((label) COLLATE "C" <> %s, true)'
    """
    if condition is None:
        return SqlCondition("true")
    parameters: list[Any] = []
    sql = _sql(condition, parameters)
    return SqlCondition(sql, tuple(parameters))


def _sql(condition: Condition, parameters: list[Any]) -> str:
    """Return the SQL of a condition, and append its parameters in the order in which they occur."""
    match condition:
        case Comparison(left, operator, right):
            first, second = _sql_operand(left, parameters), _sql_operand(right, parameters)
            missing = "true" if operator == "!=" else "false"
            return f"COALESCE({first} {SQL_OPERATORS.get(operator, operator)} {second}, {missing})"
        case IsMissing(operand):
            return f"({_sql_operand(operand, parameters)} IS NULL)"
        case Like(column, pattern):
            text = _sql_operand(column, parameters)
            parameters.append(pattern)
            return f"COALESCE({text} LIKE %s, false)"
        case IsTrue(operand):
            return f"COALESCE({_sql_operand(operand, parameters)}, false)"
        case Not(inner):
            return f"(NOT {_sql(inner, parameters)})"
        case Every(conditions):
            return "(" + " AND ".join(_sql(each, parameters) for each in conditions) + ")"
        case Some(conditions):
            return "(" + " OR ".join(_sql(each, parameters) for each in conditions) + ")"


def _sql_operand(operand: Operand, parameters: list[Any]) -> str:
    if isinstance(operand, Constant):
        parameters.append(operand.value)
        return "%s"
    if operand.name in RESERVED:
        text = operand.name if operand.kind == "number" else f"({operand.name})"
    else:
        parameters.append(operand.name)
        text = SQL_CASTS[operand.kind].format("(metadata ->> %s)")
    return f'{text} COLLATE "C"' if operand.kind == "text" else text  # order by code points, as in Arrow and Python
