"""Store in PostgreSQL with pgvector, for vectors in an existing database that several machines share.

An index is a table, and a row in ``likewise_indexes`` with its card and its model.  A change is one transaction, so that a
crash leaves the old state or the new one.  Writers of one index are serialized by a lock on its row; readers do not wait.
"""

from __future__ import annotations

import json
import re
import secrets
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from itertools import islice, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.formula import one_of
from likewise.search.approximate import kind_for
from likewise.search.card import IndexCard, ModelEntry, Structure
from likewise.search.columns import RESERVED, arrow, check_kinds, filterable_fields
from likewise.search.conditions import SqlCondition, to_sql
from likewise.search.exact import recall
from likewise.search.filters import parse
from likewise.search.matches import Floats, Ids, Matches
from likewise.search.postgres_server import OpenTransaction, Server, prepare, quote, statement
from likewise.search.store import NewRows, check_paths, missing_id
from likewise.search.vectors import Vectors, encode, encode_chunks

if TYPE_CHECKING:
    from pyarrow import Table

    from likewise.search.postgres_server import Cursor

FORMAT = 1
NAME = re.compile(r"[^\W\d][\w .-]*")
NAME_RULE = (
    "begin with a letter (but not with likewise_ or pg_), continue with letters, digits, _ . - and spaces, and be short"
)

TYPES = {"float32": "vector", "float16": "halfvec"}
"""Types of pgvector; it has none of eight bits."""

LARGEST_NEAR = {"float32": 2000, "float16": 4000}
"""The largest dimensions over which pgvector builds an approximate structure."""

LINKS, BUILDING, EFFORT = 16, 100, 100
"""HNSW: links per item, candidates during construction, and the minimum number of candidates during search."""

AT_ONCE = 200
"""Queries per statement."""

DISTANCE = "COALESCE(NULLIF(vector <=> q.v, 'NaN'), 1)"
"""The cosine distance; a vector of zeros has no direction and is orthogonal to everything."""

ABOUT = (
    "name, dim, storage, root, fields, next_id, model IS NOT NULL, model_name, model_sha256, transform, card, calibration, near,"
    " extract(epoch FROM created)::float8, extract(epoch FROM changed)::float8, xmin::text"
)
"""The columns of a card; the version contains the number of the writer, because of two changes the later may have begun first."""


class PostgresStore:
    """Items and vectors in a database; see `likewise.search.store.VectorStore`.

    One object may be used from several threads: each transaction has a separate connection.

    Args:
        url: URL of the database.
        name: name of the index and of its table.

    Examples:
        >>> PostgresStore.open("mysql://nowhere", "birds")
        Traceback (most recent call last):
        ValueError: url must start with postgresql://, but it starts with 'mysql://'
    """

    folder: Path | None = None

    def __init__(self, url: str, name: str) -> None:
        self.name = name
        self.server: Server | OpenTransaction = Server(url)

    @classmethod
    def create(cls, url: str, card: IndexCard, model: Path | None = None) -> PostgresStore:
        """Create a new, empty store.

        Args:
            url: URL of the database, ``postgresql://user@host/database``; pgvector must be installed there.
            card: name, vectors and model of the index.
            model: file of the model, which is stored in the database.
        """
        name, about = card.name, card.model
        one_of("storage", card.storage, TYPES, "in PostgreSQL")
        if not NAME.fullmatch(name) or len(name.encode()) > 63 or name.startswith(("likewise_", "pg_")):
            raise ValueError(f"name must {NAME_RULE}, but it is {name!r}")
        known = [None] * 4 if about is None else [about.name, about.sha256, about.transform, json.dumps(about.card)]
        store = cls(url, name)
        with store.server.change() as cursor:
            prepare(cursor)
            cursor.execute("SELECT to_regclass(%s)", [quote(name)])
            if cursor.fetchone() != (None,):
                raise FileExistsError(f"name must be new, but the database already has a table {name!r}")
            cursor.execute(
                "INSERT INTO likewise_indexes (name, format, dim, storage, root, model, model_name, model_sha256, transform,"
                " card) VALUES (%s, %s, %s, %s, %s, %b, %s, %s, %s, %s)",
                [
                    name,
                    FORMAT,
                    card.dim,
                    card.storage,
                    card.root,
                    None if model is None else model.read_bytes(),
                    *known,
                ],
            )
            cursor.execute(
                statement(
                    "CREATE TABLE {} (id bigint PRIMARY KEY, path text NOT NULL, label text, metadata jsonb NOT NULL,"
                    f" thumbnail bytea, vector {TYPES[card.storage]}({card.dim}) NOT NULL)",
                    name,
                )
            )
            cursor.execute(statement("CREATE INDEX ON {} (path)", name))
        return store

    @classmethod
    def open(cls, url: str, name: str | None = None) -> PostgresStore:
        """Open an index by name, which may be omitted if the database has only one."""
        with Server(url).read() as cursor:
            cursor.execute("SELECT to_regclass('likewise_indexes')")
            known: list[str] = []
            if cursor.fetchone() != (None,):
                known = [row[0] for row in cursor.execute("SELECT name FROM likewise_indexes ORDER BY name")]
        if name is None and len(known) == 1:
            name = known[0]
        if name not in known:
            listed = ", ".join(known) or "none"
            raise ValueError(f"name must be an index in the database ({listed}), but it is {name!r}")
        return cls(url, name)

    def drop(self) -> None:
        """Remove the index from the database."""
        with self._change() as (cursor, _):
            cursor.execute(statement("DROP TABLE {}", self.name))
            cursor.execute("DELETE FROM likewise_indexes WHERE name = %s", [self.name])

    def close(self) -> None:
        """Close the connections; the next call opens a new one."""
        self.server.close()

    def refresh(self) -> bool:
        """Return false: every call reads the newest state."""
        return False

    @contextmanager
    def still(self) -> Iterator[PostgresStore]:
        """Open a read-only transaction on the index, for one thread."""
        with self._read() as cursor:
            self._card(cursor)  # the first query fixes the state that the transaction sees
            held = copy(self)
            held.server = OpenTransaction(self.server.url, cursor)
            yield held

    # ------------------------------------------------------------------------------------------- reading

    @property
    def card(self) -> IndexCard:
        """The card: content and measurements."""
        with self.server.read() as cursor:
            return self._card(cursor)

    def __len__(self) -> int:
        return int(self._all("SELECT count(*) FROM {}")[0][0])

    def ids(self, where: str | None = None) -> Ids:
        """Return the ids of all items, or of those that pass a filter, in order."""
        with self._read() as cursor:
            condition = _condition(self._card(cursor), where)
            text = statement(f"SELECT id FROM {{}} WHERE {condition.sql} ORDER BY id", self.name)
            return np.array([row[0] for row in cursor.execute(text, condition.parameters)], np.int64)

    def table(self, ids: Ids | None = None, columns: Sequence[str] | None = None) -> Table:
        """Return columns of all items in order, or of some."""
        with self._read() as cursor:
            fields = self._card(cursor).fields
            rows = self._rows(cursor, "path, label, metadata", ids)
        pa, types = arrow(), {"text": "string", "number": None, "bool": "bool_"}
        cells: dict[str, Any] = {
            "id": pa.array([row[0] for row in rows], pa.int64()),
            **{name: pa.array([row[at] for row in rows], pa.string()) for at, name in ((1, "path"), (2, "label"))},
        }
        for name, kind in fields.items():
            values = [row[3].get(name) for row in rows]
            whole = all(value is None or isinstance(value, int) for value in values)
            cells[name] = pa.array(values, getattr(pa, types[kind] or ("int64" if whole else "float64"))())
        return pa.table(cells if columns is None else {name: cells[name] for name in columns})

    def vectors(self, ids: Ids | None = None) -> Vectors:
        """Return vectors of all items in order, or of some."""
        with self._read() as cursor:
            rows = self._rows(cursor, "vector_send(vector::vector)", ids)
            dim = self._card(cursor).dim
        # two bytes of length, two unused bytes, then big-endian floats
        raw = np.stack([np.frombuffer(row[1], ">f4", offset=4) for row in rows]) if rows else np.zeros((0, dim))
        return Vectors(*encode(raw, "float32"))

    def thumbnails(self, ids: Ids) -> Iterator[bytes | None]:
        """Yield the thumbnails of some items, as WebP files."""
        for start in range(0, len(ids), AT_ONCE):
            with self._read() as cursor:
                rows = self._rows(cursor, "thumbnail", ids[start : start + AT_ONCE])
            yield from (row[1] for row in rows)

    @contextmanager
    def model(self) -> Iterator[Path]:
        """Write the model to a temporary file."""
        with self.server.read() as cursor:
            cursor.execute("SELECT model FROM likewise_indexes WHERE name = %s", [self.name])
            [content] = cursor.fetchone() or [None]
        if content is None:
            raise ValueError(f"the index {self.name} has no copy of its model: search it with vectors")
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "model.safetensors"
            file.write_bytes(content)
            yield file

    def search(self, vectors: Floats, k: int, *, where: str | None = None, exact: bool | None = None) -> Matches:
        """Return the k most similar items of each query, best first; ties are in the order of addition."""
        with self._read() as cursor:
            card = self._card(cursor)
            if exact is False and card.near is None:
                raise ValueError(f"exact must be True or None for {self.name}, which has no approximate structure")
            condition, order = _condition(card, where), f"{DISTANCE}, id"
            if card.near is not None and not exact:
                # continue until enough items pass the filter
                cursor.execute("SET LOCAL hnsw.iterative_scan = strict_order")
                cursor.execute(f"SET LOCAL hnsw.ef_search = {min(1000, max(EFFORT, 2 * k))}")
                order = "vector <=> q.v"
            return self._nearest(cursor, card.storage, vectors, k, condition, order)

    def _nearest(
        self, cursor: Cursor[Any], storage: str, vectors: Floats, k: int, condition: SqlCondition, order: str
    ) -> Matches:
        ids = np.full((len(vectors), k), -1, np.int64)
        scores = np.full((len(vectors), k), -np.inf, np.float32)
        query = statement(
            f"SELECT q.n, found.id, found.distance FROM unnest(%s::text[]::{TYPES[storage]}[]) WITH ORDINALITY AS q (v, n),"
            f" LATERAL (SELECT id, {DISTANCE} AS distance FROM {{}} WHERE {condition.sql} ORDER BY {order} LIMIT {k}) AS found"
            " ORDER BY q.n, found.distance, found.id",
            self.name,
        )
        for start in range(0, len(vectors), AT_ONCE):
            some = [as_text(vector) for vector in vectors[start : start + AT_ONCE]]
            place, before = -1, 0
            for n, number, distance in cursor.execute(query, [some, *condition.parameters]):
                place = place + 1 if n == before else 0
                before = n
                ids[start + n - 1, place], scores[start + n - 1, place] = number, 1.0 - distance
        return Matches(ids, scores)

    # ------------------------------------------------------------------------------------------- changes

    def add(self, rows: NewRows, *, replace: bool = True) -> Ids:
        """Add items and return their ids; with ``replace`` they replace items with the same paths."""
        with self._change() as (cursor, card):
            fields = check_kinds(card.fields, rows.table)
            ids = np.arange(card.next_id, card.next_id + len(rows))
            if replace:
                check_paths(rows.table)
                paths = rows.table.column("path").to_pylist()
                cursor.execute(statement("DELETE FROM {} WHERE path = ANY(%b)", self.name), [paths])
            into = statement("COPY {} (id, path, label, metadata, thumbnail, vector) FROM STDIN", self.name)
            with cursor.copy(into) as copying:
                for row in _cells(rows, ids):
                    copying.write_row(row)
            self._mark_changed(cursor, "next_id = %s, fields = %s", [card.next_id + len(rows), json.dumps(fields)])
        return ids

    def remove(self, ids: Ids | None = None, *, where: str | None = None) -> int:
        """Remove items by ids or by a filter, and return their number."""
        with self._change() as (cursor, card):
            if ids is not None:
                wanted = np.unique(ids).tolist()
                text = "DELETE FROM {} WHERE id = ANY(%s::bigint[]) RETURNING id"
                there = {row[0] for row in cursor.execute(statement(text, self.name), [wanted])}
                if absent := [each for each in wanted if each not in there]:
                    raise missing_id(absent[0])  # the transaction is rolled back
            else:
                condition = _condition(card, where)
                cursor.execute(statement(f"DELETE FROM {{}} WHERE {condition.sql}", self.name), condition.parameters)
            count = cursor.rowcount
            self._mark_changed(cursor)
        return count

    def rebuild(self, *, storage: str | None, approximate: str | None, queries: int) -> None:
        """Change storage type and search structure, and measure; readers wait only while the storage type changes."""
        if approximate is not None:
            one_of("approximate", approximate, ("auto", "exact", "hnsw"), "in PostgreSQL")
        if storage is not None:
            one_of("storage", storage, TYPES, "in PostgreSQL")
        with self._change() as (cursor, card):
            kind, after = approximate or ("exact" if card.near is None else "hnsw"), storage or card.storage
            if kind == "auto":
                [count] = cursor.execute(statement("SELECT count(*) FROM {}", self.name)).fetchone() or [0]
                kind = "exact" if kind_for(count) == "exact" else "hnsw"
            about = self._restructure(cursor, card, after, kind)
            self._mark_changed(cursor, "storage = %s, near = %s", [after, None if about is None else json.dumps(about)])
        if about is not None and len(self):
            share, count = self._recall(queries)
            with self._change() as (cursor, _):
                self._mark_changed(cursor, "near = %s", [json.dumps({**about, "recall": share, "queries": count})])

    def _restructure(self, cursor: Cursor[Any], card: IndexCard, after: str, kind: str) -> dict[str, Any] | None:
        """Build the new structure while others use the old one; they wait only while the storage type changes."""
        if kind == "hnsw" and card.dim > LARGEST_NEAR[after]:
            raise ValueError(f"dim must be at most {LARGEST_NEAR[after]} for hnsw with {after}, but it is {card.dim}")
        drop = [] if card.near is None else [statement("DROP INDEX {}", card.near.settings["index"])]
        if card.storage != after:
            cursor.execute("SET LOCAL lock_timeout = '30s'")  # it waits for readers, and later readers wait for it
            for each in drop:
                cursor.execute(each)
            new = f"{TYPES[after]}({card.dim})"
            cursor.execute(statement(f"ALTER TABLE {{}} ALTER COLUMN vector TYPE {new} USING vector::{new}", self.name))
        about = None
        if kind == "hnsw":
            index = f"likewise_near_{secrets.token_hex(8)}"
            about = {"kind": "hnsw", "m": LINKS, "ef_construction": BUILDING, "index": index}
            cursor.execute(
                statement(
                    f"CREATE INDEX {quote(index)} ON {{}} USING hnsw (vector {TYPES[after]}_cosine_ops)"
                    f" WITH (m = {LINKS}, ef_construction = {BUILDING})",
                    self.name,
                )
            )
        if card.storage == after:
            for each in drop:
                cursor.execute(each)
        return about

    def _recall(self, queries: int, k: int = 10) -> tuple[float, int]:
        """Return the recall of the k nearest, for random items moved slightly, and the number of queries."""
        rng, ids = np.random.default_rng(0), self.ids()
        some = self.vectors(rng.choice(ids, min(queries, len(ids)), replace=False)).codes
        moved = encode(some + 0.1 * rng.normal(size=some.shape) / np.sqrt(some.shape[1]), "float32")[0]
        truth, rows = (self.search(moved, k, exact=exact).ids for exact in (True, False))
        return recall(rows, truth), len(moved)

    def calibrate(self, calibration: Mapping[str, Any] | None) -> None:
        """Store a calibration with the index."""
        with self._change() as (cursor, _):
            self._mark_changed(cursor, "calibration = %s", [None if calibration is None else json.dumps(calibration)])

    # ------------------------------------------------------------------------------------------- transactions

    @contextmanager
    def _read(self) -> Iterator[Cursor[Any]]:
        """Open a transaction that sees one state.

        The table is locked first: a table that is rewritten looks empty to a transaction that has read anything else before.
        """
        with self.server.read() as cursor:
            cursor.execute(statement("LOCK TABLE {} IN ACCESS SHARE MODE", self.name))
            yield cursor

    @contextmanager
    def _change(self) -> Iterator[tuple[Cursor[Any], IndexCard]]:
        """Open a transaction that locks the index for changes and is committed as a whole."""
        with self.server.change() as cursor:
            yield cursor, self._card(cursor, " FOR UPDATE")

    def _card(self, cursor: Cursor[Any], lock: str = "") -> IndexCard:
        cursor.execute(statement(f"SELECT {ABOUT} FROM likewise_indexes WHERE name = %s{lock}", ""), [self.name])
        row = cursor.fetchone()
        if row is None:
            raise FileNotFoundError(f"the database no longer has an index {self.name}")
        name, dim, storage, root, fields, next_id, kept, *about = row
        model_name, sha256, transform, card, calibration, near, created, changed, writer = about
        settings = {key: value for key, value in (near or {}).items() if key not in ("kind", "recall", "queries")}
        return IndexCard(
            name,
            dim,
            storage,
            fields=fields,
            next_id=next_id,
            model=None if sha256 is None else ModelEntry(model_name, sha256, transform, card, kept),
            near=near and Structure(near["kind"], settings, near.get("recall"), near.get("queries", 0)),
            calibration=calibration,
            root=root,
            created=created,
            changed=changed,
            version=f"{int(created * 1e6):x}-{int(changed * 1e6):x}-{writer}",
        )

    def _rows(self, cursor: Cursor[Any], columns: str, ids: Ids | None) -> list[Any]:
        """Return the id and some columns of all items in order, or of some in the order of ids."""
        text = f"SELECT id, {columns} FROM {{}}"
        if ids is None:
            return cursor.execute(statement(f"{text} ORDER BY id", self.name)).fetchall()
        wanted = ids.tolist()
        rows = cursor.execute(statement(f"{text} WHERE id = ANY(%s::bigint[])", self.name), [wanted]).fetchall()
        there = {row[0]: row for row in rows}
        if absent := [each for each in wanted if each not in there]:
            raise missing_id(absent[0])
        return [there[each] for each in wanted]

    def _all(self, text: str) -> list[Any]:
        with self._read() as cursor:
            return cursor.execute(statement(text, self.name)).fetchall()

    def _mark_changed(self, cursor: Cursor[Any], what: str = "", values: Sequence[Any] = ()) -> None:
        text = f"UPDATE likewise_indexes SET changed = now(){', ' * bool(what)}{what} WHERE name = %s"
        cursor.execute(statement(text, ""), [*values, self.name])


def _condition(card: IndexCard, where: str | None) -> SqlCondition:
    return to_sql(None if where is None else parse(where, filterable_fields(card.fields)))


def _cells(rows: NewRows, ids: Ids) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a table in a database; a few thousand are in memory at a time."""
    pictures: Iterator[bytes | None] = iter(rows.thumbnails if rows.thumbnails is not None else repeat(None, len(rows)))
    start = 0
    for chunk in encode_chunks(rows.vectors, "float32"):
        units = chunk.take(slice(None))
        some: Iterable[dict[str, Any]] = rows.table.slice(start, len(units)).to_pylist()
        small = list(islice(pictures, len(units)))
        for cells, picture, unit, number in zip(some, small, units, ids[start : start + len(units)], strict=True):
            known = {name: value for name, value in cells.items() if name not in RESERVED and value is not None}
            yield int(number), cells["path"], cells["label"], _json(known), picture, as_text(unit)
        start += len(units)


def as_text(vector: Floats) -> str:
    """Return a vector in the text format of pgvector, with all significant digits.

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
