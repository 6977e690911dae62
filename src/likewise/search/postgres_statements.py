"""What an index in PostgreSQL asks of its table: the nearest, new rows, and another structure."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.search.found import Floats, Found
from likewise.search.postgres_server import quoted, statement
from likewise.search.postgres_where import Condition
from likewise.trunks import read_card

if TYPE_CHECKING:
    from likewise.search.postgres_server import Cursor

TYPES = {"float32": "vector", "float16": "halfvec"}
"""pgvector's types; it has none of eight bits."""

OPERATORS = {"float32": "vector_cosine_ops", "float16": "halfvec_cosine_ops"}
LARGEST_NEAR = {"float32": 2000, "float16": 4000}
"""Dimensions that pgvector can build an approximate structure over."""

LINKS, BUILDING, EFFORT = 16, 100, 100
"""HNSW: links of an item, candidates while it is built, and at least while it is searched."""

AT_ONCE = 200
"""Queries in one statement."""

DISTANCE = "COALESCE(NULLIF(vector <=> q.v, 'NaN'), 1)"
"""A vector of zeros has no direction: it is at right angles to everything."""


def nearest(
    cursor: Cursor[Any], name: str, storage: str, vectors: Floats, k: int, kept: Condition, *, roughly: bool
) -> Found:
    """The k nearest of each query, among the rows that a condition keeps.

    Args:
        cursor: in a transaction.
        name: the index.
        storage: how its vectors are stored.
        vectors: the queries.
        k: how many.
        kept: which rows may be found.
        roughly: use the approximate structure.

    Examples:
        >>> nearest(None, "birds", "float32", np.zeros((0, 2), np.float32), 3, Condition("true"), roughly=False).ids
        array([], shape=(0, 3), dtype=int64)
    """
    ids = np.full((len(vectors), k), -1, np.int64)
    scores = np.full((len(vectors), k), -np.inf, np.float32)
    order = f"{DISTANCE}, id"
    if roughly:
        # go on looking until enough items pass the filter
        cursor.execute("SET LOCAL hnsw.iterative_scan = strict_order")
        cursor.execute(f"SET LOCAL hnsw.ef_search = {min(1000, max(EFFORT, 2 * k))}")
        order = "vector <=> q.v"
    for start in range(0, len(vectors), AT_ONCE):
        asking = statement(
            f"SELECT q.n, found.id, found.distance FROM unnest(%s::text[]::{TYPES[storage]}[]) WITH ORDINALITY AS q (v, n),"
            f" LATERAL (SELECT id, {DISTANCE} AS distance FROM {{}} WHERE {kept.sql} ORDER BY {order} LIMIT {k}) AS found"
            " ORDER BY q.n, found.distance, found.id",
            name,
        )
        some = [as_text(vector) for vector in vectors[start : start + AT_ONCE]]
        place, before = -1, 0
        for n, number, distance in cursor.execute(asking, [some, *kept.parameters]):
            place = place + 1 if n == before else 0
            before = n
            ids[start + n - 1, place], scores[start + n - 1, place] = number, 1.0 - distance
    return Found(ids, scores)


def insert(
    cursor: Cursor[Any],
    name: str,
    rows: Sequence[Mapping[str, Any]],
    units: Floats,
    pictures: Sequence[bytes | None],
    *,
    replace: bool,
) -> None:
    """New rows; with ``replace`` those that have their paths go.

    Args:
        cursor: in a transaction.
        name: the index.
        rows: numbers, paths, labels and whatever else is known.
        units: their vectors.
        pictures: their thumbnails.
        replace: whether rows with the same paths go.

    Examples:
        >>> insert(None, "birds", [{"path": "a"}, {"path": "a"}], np.eye(2, dtype=np.float32), [None] * 2, replace=True)
        Traceback (most recent call last):
        ValueError: paths must name each file once, but it names 'a' twice
    """
    if replace:
        counts = Counter(row["path"] for row in rows)
        path, count = counts.most_common(1)[0]
        if count > 1:
            raise ValueError(f"paths must name each file once, but it names {path!r} twice")
        cursor.execute(statement("DELETE FROM {} WHERE path = ANY(%b)", name), [list(counts)])
    into = statement("COPY {} (id, path, label, metadata, thumbnail, vector) FROM STDIN", name)
    with cursor.copy(into) as copy:
        for row, picture, unit in zip(rows, pictures, units, strict=True):
            known = {name: value for name, value in row.items() if name not in ("id", "path", "label")}
            copy.write_row((row["id"], row["path"], row["label"], _json(known), picture, as_text(unit)))


def restructure(
    cursor: Cursor[Any], name: str, dim: int, storages: tuple[str, str], kind: str, old: str | None
) -> dict[str, Any] | None:
    """Change how vectors are stored, and build a structure for approximate search, or none.

    A new structure is built beside the old one, which others use meanwhile; while the storage changes, they wait.

    Args:
        cursor: in a transaction.
        name: the index.
        dim: the size of vectors.
        storages: how they are stored now, and how they shall be.
        kind: ``"exact"`` for no structure, or ``"hnsw"``.
        old: what the structure that there is is called.

    Returns:
        What is known of the new structure.

    Examples:
        >>> restructure(None, "birds", 3000, ("float32", "float32"), "hnsw", None)
        Traceback (most recent call last):
        ValueError: dim must be at most 2000 for hnsw of float32, but it is 3000
    """
    before, after = storages
    if kind == "hnsw" and dim > LARGEST_NEAR[after]:
        raise ValueError(f"dim must be at most {LARGEST_NEAR[after]} for hnsw of {after}, but it is {dim}")
    if before != after:
        if old is not None:
            cursor.execute(statement("DROP INDEX {}", old))
        new = f"{TYPES[after]}({dim})"
        cursor.execute(statement(f"ALTER TABLE {{}} ALTER COLUMN vector TYPE {new} USING vector::{new}", name))
    about = None
    if kind == "hnsw":
        about = {
            "kind": "hnsw",
            "m": LINKS,
            "ef_construction": BUILDING,
            "index": f"likewise_near_{secrets.token_hex(8)}",
        }
        cursor.execute(
            statement(
                f"CREATE INDEX {quoted(str(about['index']))} ON {{}} USING hnsw (vector {OPERATORS[after]})"
                f" WITH (m = {LINKS}, ef_construction = {BUILDING})",
                name,
            )
        )
    if before == after and old is not None:
        cursor.execute(statement("DROP INDEX {}", old))
    return about


def about_model(file: Path | None, called: str | None, dim: int, keep: bool) -> list[Any]:
    """What the catalog keeps of a model: its bytes, name, checksum and card.

    Args:
        file: of the model, if there is one.
        called: its name; by default its file's.
        dim: the size of the vectors in the index.
        keep: whether its bytes are kept.

    Examples:
        >>> about_model(None, None, 2, True)
        [None, None, None, None]
    """
    if file is None:
        return [None, None, None, None]
    card, content = read_card(file), file.read_bytes()
    if card.dim != dim:
        raise ValueError(f"dim must be the model's {card.dim}, but it is {dim}")
    digest = hashlib.sha256(content).hexdigest()
    return [content if keep else None, called or file.name, digest, card.to_json()]


def all_there(asked: Sequence[int], found: Collection[int]) -> None:
    """Refuse what was asked for if any of it is missing.

    Examples:
        >>> all_there([3, 5], {3: "wren"})
        Traceback (most recent call last):
        KeyError: 'ids must be of items in the index, but it has none with the number 5'
    """
    for each in asked:
        if each not in found:
            raise KeyError(f"ids must be of items in the index, but it has none with the number {each}")


def as_text(vector: Floats) -> str:
    """A vector as pgvector reads it, with all digits that count.

    Examples:
        >>> as_text(np.array([0.5, -1.0], np.float32))
        '[0.5,-1.0]'
    """
    return "[" + ",".join(map(repr, vector.astype(float).tolist())) + "]"


def _json(known: Mapping[str, Any]) -> str:
    try:
        return json.dumps(known, allow_nan=False)
    except ValueError:
        raise ValueError("metadata must be finite numbers in PostgreSQL, but one is infinite") from None
