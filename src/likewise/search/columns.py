"""The columns of items: path, label and metadata as an Arrow table."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from pyarrow import Table

RESERVED = ("id", "path", "label")
"""Columns of every item."""

HIDDEN = "_"
"""The prefix of the names of hidden columns."""


def arrow() -> Any:
    """Import pyarrow, or raise an error that says how to install it.

    Examples:
        >>> arrow().__name__
        'pyarrow'
    """
    try:
        import pyarrow
    except ImportError as missing:
        raise ImportError("an index needs pyarrow: pip install 'likewise[search]'") from missing
    return pyarrow


def make_table(
    paths: Sequence[str],
    labels: Sequence[str | None] | None = None,
    metadata: Mapping[str, Sequence[Any]] | None = None,
) -> Table:
    """Build the table of items, with checks.

    Args:
        paths: file of each item.
        labels: class of each item, or ``None``.
        metadata: columns of texts, numbers or booleans; ``None`` and NaN are missing values, and a column with only
            missing values is dropped.

    Examples:
        >>> make_table(["a.png"], metadata={"year": [2021], "place": [None]}).column_names
        ['path', 'label', 'year']
    """
    pa = arrow()
    rows = len(paths)
    texts = [os.fspath(path) for path in paths]
    names = [None] * rows if labels is None else [None if each is None else str(each) for each in labels]
    columns = {"path": pa.array(texts, pa.string()), "label": pa.array(names, pa.string())}
    for name, values in (metadata or {}).items():
        if not isinstance(name, str) or not name or name in RESERVED:
            raise ValueError(
                f"metadata must have columns with names other than {', '.join(RESERVED)}, but it has {name!r}"
            )
        columns[name] = _make_column(name, values)
    for name, column in columns.items():
        if len(column) != rows:
            what = {"label": "labels"}.get(name, f"metadata[{name!r}]")
            raise ValueError(f"{what} must have one entry for each of the {rows} vectors, but it has {len(column)}")
    return pa.table({name: column for name, column in columns.items() if not pa.types.is_null(column.type)})


def _make_column(name: str, values: Sequence[Any]) -> Any:
    pa = arrow()
    plain = [_to_python(value) for value in (values.tolist() if isinstance(values, np.ndarray) else values)]
    kinds = {type(value) for value in plain if value is not None}
    if not kinds:
        return pa.nulls(len(plain))
    if kinds == {bool}:
        return pa.array(plain, pa.bool_())
    if kinds == {str}:
        return pa.array(plain, pa.string())
    if kinds == {int} and all(value is None or -(2**63) <= value < 2**63 for value in plain):
        return pa.array(plain, pa.int64())
    if kinds <= {int, float}:
        return pa.array([None if value is None else float(value) for value in plain], pa.float64())
    listed = ", ".join(sorted(kind.__name__ for kind in kinds))
    raise TypeError(f"metadata[{name!r}] must be all texts, all numbers or all booleans, but it has {listed}")


def _to_python(value: Any) -> Any:
    """Convert a value to a Python type; NaN, which marks a missing value in tables, becomes ``None``."""
    if isinstance(value, np.generic):
        value = value.item()
    return None if value is None or value != value else value


def number_rows(table: Table, ids: NDArray[np.int64]) -> Table:
    """Return the table with ids as its first column.

    Examples:
        >>> number_rows(make_table(["a.png"]), np.array([7])).column_names
        ['id', 'path', 'label']
    """
    bare = table.drop_columns(["id"]) if "id" in table.column_names else table
    return bare.add_column(0, "id", arrow().array(ids, arrow().int64()))


def kind_of(column_type: Any) -> str | None:
    """Return the type of a column: ``"text"``, ``"number"`` or ``"bool"``; ``None`` if all values are missing.

    Examples:
        >>> kind_of(arrow().int64())
        'number'
    """
    types = arrow().types
    if types.is_null(column_type):
        return None
    if types.is_boolean(column_type):
        return "bool"
    return "text" if types.is_string(column_type) or types.is_large_string(column_type) else "number"


def kinds_of(schema: Any) -> dict[str, str]:
    """Return the columns of metadata and their types, including hidden columns.

    Examples:
        >>> kinds_of(make_table(["a.png"], metadata={"year": [2021]}).schema)
        {'year': 'number'}
    """
    kinds = {column.name: kind_of(column.type) for column in schema if column.name not in RESERVED}
    return {name: kind for name, kind in kinds.items() if kind is not None}


def visible_fields(fields: Mapping[str, str]) -> dict[str, str]:
    """Return the columns that are shown to users.

    Examples:
        >>> visible_fields({"year": "number", "_stamp": "text"})
        {'year': 'number'}
    """
    return {name: kind for name, kind in fields.items() if not name.startswith(HIDDEN)}


def filterable_fields(fields: Mapping[str, str]) -> dict[str, str]:
    """Return the columns that a filter may use, and their types.

    Examples:
        >>> filterable_fields({"year": "number"})
        {'path': 'text', 'label': 'text', 'id': 'number', 'year': 'number'}
    """
    return {"path": "text", "label": "text", "id": "number", **visible_fields(fields)}


def check_kinds(fields: Mapping[str, str], table: Table) -> dict[str, str]:
    """Return the fields of an index with those of a table added; raise an error if a column has another type in the index.

    Examples:
        >>> check_kinds({"year": "text"}, make_table(["a.png"], metadata={"year": [2021]}))
        Traceback (most recent call last):
        TypeError: metadata['year'] must be a text column as in the index, but it is a number column
    """
    merged = dict(fields)
    for name, kind in kinds_of(table.schema).items():
        if merged.setdefault(name, kind) != kind:
            raise TypeError(
                f"metadata[{name!r}] must be a {merged[name]} column as in the index, but it is a {kind} column"
            )
    return merged
