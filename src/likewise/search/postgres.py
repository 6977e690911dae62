"""An index in PostgreSQL with pgvector: a database that is there already holds the vectors, and many machines share them.

An index is a table of its own name, and a row in ``likewise_indexes``, which holds what belongs to it: the size of its
vectors, what its columns hold, the model.  A change is one transaction, so that a crash leaves the old index or the new
one.  Writers of one index wait for each other at its row; readers wait for nobody.
"""

from __future__ import annotations

import json
import re
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from likewise.formula import one_of, whole_number
from likewise.search.encoder import Encoder
from likewise.search.exact import Part
from likewise.search.found import Floats, Found, Ids, Item, Rerank, numbers
from likewise.search.given import checked_vectors, model_file, query_vectors
from likewise.search.index import Index
from likewise.search.postgres_server import Moment, Server, prepare, quoted, statement
from likewise.search.postgres_statements import TYPES, about_model, all_there, insert, nearest, restructure
from likewise.search.postgres_where import condition
from likewise.search.segment import HIDDEN, RESERVED, Vectors, encode, kind_of, make_table
from likewise.trunks import Card

if TYPE_CHECKING:
    import torch

    from likewise.search.postgres_server import Cursor

FORMAT = 1
NAME = re.compile(r"[^\W\d][\w .-]*")
NAMED = (
    "begin with a letter (but not with likewise_ or pg_), go on with letters, digits, _ . - and spaces, and be short"
)
CHUNK = 5000
"""Items that a merge holds in memory at once."""

Kind = Literal["auto", "exact", "hnsw"]


class PostgresIndex:
    """Items with their vectors in a PostgreSQL database; the methods are those of `likewise.search.Index`.

    What it shows is always the newest: there is nothing to refresh.  One object may be used from several threads: each
    transaction has a connection for itself.

    Attributes:
        name: what it is called, which is also its table's name.
        folder: nothing: it has none.

    Examples:
        >>> PostgresIndex.open("mysql://nowhere", "birds")
        Traceback (most recent call last):
        ValueError: url must begin with postgresql://, but it begins with 'mysql://'
    """

    def __init__(self, url: str, name: str) -> None:
        self.name = name
        self.folder = None
        self._server: Server | Moment = Server(url)
        self._encoders: dict[str, Encoder] = {}
        self._loading = threading.Lock()

    @classmethod
    def create(
        cls,
        url: str,
        name: str,
        *,
        dim: int,
        model: str | Path | Encoder | None = None,
        storage: Literal["float32", "float16"] = "float32",
        images: str | None = None,
        root: str | Path | None = None,
        model_name: str | None = None,
        keep_model: bool = True,
    ) -> PostgresIndex:
        """Make a new, empty index.

        Args:
            url: of the database, ``postgresql://user@host/database``; pgvector must be installed there.
            name: of the index, and of its table.
            dim: the size of vectors.
            model: what makes the vectors; see `likewise.search.Index.create`.
            storage: ``"float32"``, or ``"float16"`` for half the size.
            images: the recipe by which images are shown to the model.
            root: where relative paths begin.
            model_name: what the model is called; by default the name of its file or trunk.
            keep_model: keep a copy of the model in the database; without it queries must be vectors.
        """
        one_of("storage", storage, TYPES, "in PostgreSQL")
        dim = whole_number("dim", dim, 1)
        if not NAME.fullmatch(name) or len(name.encode()) > 63 or name.startswith(("likewise_", "pg_")):
            raise ValueError(f"name must {NAMED}, but it is {name!r}")
        index = cls(url, name)
        with tempfile.TemporaryDirectory() as beside:
            file, images, called = model_file(model, images, Path(beside))
            about = about_model(file, model_name or called, dim, keep_model)
        place = None if root is None else str(Path(root).resolve())
        with index._server.change() as cursor:
            prepare(cursor)
            cursor.execute("SELECT to_regclass(%s)", [quoted(name)])
            if cursor.fetchone() != (None,):
                raise FileExistsError(f"name must be new, but the database has a table {name!r} already")
            cursor.execute(
                "INSERT INTO likewise_indexes (name, format, dim, storage, root, images, model, model_name, model_sha256,"
                " card) VALUES (%s, %s, %s, %s, %s, %s, %b, %s, %s, %s)",
                [name, FORMAT, dim, storage, place, images, *about],
            )
            cursor.execute(
                statement(
                    f"CREATE TABLE {{}} (id bigint PRIMARY KEY, path text NOT NULL, label text,"
                    f" metadata jsonb NOT NULL, thumbnail bytea, vector {TYPES[storage]}({dim}) NOT NULL)",
                    name,
                )
            )
            cursor.execute(statement("CREATE INDEX ON {} (path)", name))
        return index

    @classmethod
    def open(cls, url: str, name: str | None = None) -> PostgresIndex:
        """Open an index by its name, which may be left out where the database has one alone."""
        server = Server(url)
        with server.read() as cursor:
            cursor.execute("SELECT to_regclass('likewise_indexes')")
            known: list[str] = []
            if cursor.fetchone() != (None,):
                known = [row[0] for row in cursor.execute("SELECT name FROM likewise_indexes ORDER BY name")]
        if name is None and len(known) == 1:
            name = known[0]
        if name not in known:
            listed = ", ".join(known) or "none"
            raise ValueError(f"name must be that of an index in the database ({listed}), but it is {name!r}")
        return cls(url, name)

    def drop(self) -> None:
        """Remove the index and all that belongs to it from the database."""
        with self._server.change() as cursor:
            self._row(cursor, "name", lock=True)
            cursor.execute(statement("DROP TABLE {}", self.name))
            cursor.execute("DELETE FROM likewise_indexes WHERE name = %s", [self.name])

    def close(self) -> None:
        """Let go of the connections to the database; whatever is asked next makes a new one."""
        self._server.close()

    def refresh(self) -> bool:
        """Nothing to do: every answer is the newest."""
        return False

    @contextmanager
    def still(self) -> Iterator[PostgresIndex]:
        """The index as it is at this moment, whatever others write meanwhile: for reading, by one thread."""
        with self._reading() as cursor:
            self._row(cursor, "name")  # the moment is that of the first look
            held = copy(self)
            held._server = Moment(self._server.url, cursor)
            yield held

    # ------------------------------------------------------------------------------------------- what it holds

    def __len__(self) -> int:
        return int(self._all("SELECT count(*) FROM {}")[0][0])

    def __repr__(self) -> str:
        return f"PostgresIndex({self.name!r}: {len(self):,} items, {self.dim} dimensions, {self.storage})"

    @property
    def version(self) -> str:
        """A word that changes whenever the index does."""
        # beside its time, because of two changes the later may have begun first: who wrote the row of the catalog
        times = ", ".join(f"(extract(epoch FROM {name}) * 1000000)::bigint" for name in ("created", "changed"))
        [(created, changed, writer)] = self._about(f"{times}, xmin::text")
        return f"{created:x}-{changed:x}-{writer}"

    @property
    def dim(self) -> int:
        """The size of its vectors."""
        return int(self._known("dim"))

    @property
    def storage(self) -> str:
        """How its vectors are stored."""
        return str(self._known("storage"))

    @property
    def root(self) -> Path | None:
        """Where relative paths begin, if that is known."""
        root = self._known("root")
        return None if root is None else Path(root)

    @property
    def card(self) -> Card | None:
        """What is known of the model that made its vectors."""
        card = self._known("card")
        return None if card is None else Card.from_json(json.dumps(card))

    @property
    def model(self) -> Mapping[str, str] | None:
        """The name and the checksum (``sha256``) of its copy of that model; without one, queries must be vectors."""
        [(name, sha256, kept)] = self._about("model_name, model_sha256, model IS NOT NULL")
        return {"name": name, "sha256": sha256} if kept else None

    @property
    def calibration(self) -> Mapping[str, Any] | None:
        """From which similarity on two items are the same, if that was kept with the index."""
        found: Mapping[str, Any] | None = self._known("calibration")
        return found

    @property
    def near(self) -> Mapping[str, Any] | None:
        """The approximate structure: its kind, settings and measured recall."""
        found: Mapping[str, Any] | None = self._known("near")
        return found

    @property
    def fields(self) -> dict[str, str]:
        """Columns of metadata, and whether they hold ``"text"``, ``"number"`` or ``"bool"``."""
        return _shown(self._known("fields"))

    @property
    def ids(self) -> Ids:
        """The numbers of all items, in row order."""
        return np.array([row[0] for row in self._all("SELECT id FROM {} ORDER BY id")], np.int64)

    def matching(self, where: str) -> Ids:
        """The numbers of all items that pass a filter, in row order."""
        with self._reading() as cursor:
            kept = condition(where, _filterable(*self._row(cursor, "fields")))
            found = cursor.execute(
                statement(f"SELECT id FROM {{}} WHERE {kept.sql} ORDER BY id", self.name), kept.parameters
            )
            return np.array([row[0] for row in found], np.int64)

    def vectors(self, ids: Any = None) -> Floats:
        """Vectors of unit length ``(n, dim)``; of all items in row order, or of these."""
        text = "SELECT id, vector_send(vector::vector) FROM {} "
        if ids is None:
            found = dict(self._all(text + "ORDER BY id"))
            asked = list(found)
        else:
            asked = numbers(ids).tolist()
            found = dict(self._all(text + "WHERE id = ANY(%s::bigint[])", [asked]))
            all_there(asked, found)
        # two bytes for the length, two of nothing, then floats with the highest byte first
        raw = [np.frombuffer(found[each], ">f4", offset=4) for each in asked]
        units: Floats = encode(np.stack(raw) if raw else np.zeros((0, self.dim)), "float32")[0]
        return units

    def item(self, id: int) -> Item:
        """What is known of an item."""
        return self.items([id])[0]

    def items(self, ids: Any) -> list[Item]:
        """What is known of several."""
        asked = numbers(ids).tolist()
        with self._reading() as cursor:
            fields = _shown(*self._row(cursor, "fields"))
            text = statement("SELECT id, path, label, metadata FROM {} WHERE id = ANY(%s::bigint[])", self.name)
            found = {row[0]: row for row in cursor.execute(text, [asked])}
        all_there(asked, found)
        chosen = [found[each] for each in asked]
        return [Item(key, path, label, {name: more.get(name) for name in fields}) for key, path, label, more in chosen]

    def thumbnail(self, id: int) -> bytes | None:
        """The WebP file of an item's thumbnail, if it has one."""
        asked = numbers([id]).tolist()
        found: dict[int, bytes | None] = dict(self._all("SELECT id, thumbnail FROM {} WHERE id = %s", asked))
        all_there(asked, found)
        return found[asked[0]]

    def column(self, name: str) -> list[Any]:
        """``"path"``, ``"label"`` or a column of metadata, of all items in row order."""
        fields = _filterable(self._known("fields"))
        if name not in fields:
            raise KeyError(f"name must be one of {', '.join(fields)}, but it is {name!r}")
        if name in ("path", "label", "id"):
            return [row[0] for row in self._all(f"SELECT {name} FROM {{}} ORDER BY id")]
        return [row[0] for row in self._all("SELECT metadata -> %s FROM {} ORDER BY id", [name])]

    def encoder(self, device: str | torch.device | None = None) -> Encoder:
        """The model that made its vectors, ready to embed images; fetched once."""
        with self._loading:
            kept, which, images = self._about("model IS NOT NULL, model_sha256, images")[0]
            if not kept:
                raise ValueError(f"the index {self.name} has no copy of its model: search it with vectors")
            key = f"{which} {images} {device}"  # under the same name another index may have been made since
            if key not in self._encoders:
                with tempfile.TemporaryDirectory() as folder:
                    file = Path(folder) / "model.safetensors"
                    file.write_bytes(self._known("model"))
                    self._encoders[key] = Encoder.load(file, images, device)
            return self._encoders[key]

    # ------------------------------------------------------------------------------------------- search

    def search(
        self,
        queries: Any,
        k: int = 10,
        *,
        where: str | None = None,
        exact: bool | None = None,
        rerank: Rerank | None = None,
    ) -> Found:
        """The k most similar items of each query, the best first; see `likewise.search.Index.search`."""
        k = whole_number("k", k, 1)
        vectors = query_vectors(queries, self.dim, self.encoder)
        if rerank is None:
            return self._found(vectors, k, where, exact)
        return rerank.rerank(vectors, k, lambda some, count: self._found(some, count, where, exact), self.vectors)

    def neighbors(
        self,
        id: int,
        k: int = 10,
        *,
        where: str | None = None,
        exact: bool | None = None,
        rerank: Rerank | None = None,
    ) -> Found:
        """What is most similar to an item of the index, itself left out."""
        k = whole_number("k", k, 1)
        return self.search(self.vectors([id]), k + 1, where=where, exact=exact, rerank=rerank).but(id, k)

    def _found(self, vectors: Floats, k: int, where: str | None, exact: bool | None) -> Found:
        with self._reading() as cursor:
            storage, near, fields = self._row(cursor, "storage, near, fields")
            if exact is False and near is None:
                raise ValueError(f"exact must be True or None for {self.name}, which has no approximate structure")
            kept, roughly = condition(where, _filterable(fields)), near is not None and not exact
            return nearest(cursor, self.name, storage, vectors, k, kept, roughly=roughly)

    # ------------------------------------------------------------------------------------------- changes

    def add(
        self,
        vectors: Any,
        paths: Sequence[str],
        *,
        labels: Sequence[str | None] | None = None,
        metadata: Mapping[str, Sequence[Any]] | None = None,
        thumbnails: Sequence[bytes | None] | None = None,
        replace: bool = True,
    ) -> Ids:
        """Add items; returns their numbers. See `likewise.search.Index.add`."""
        given = checked_vectors("vectors", vectors, self.dim, empty=True)
        if len(paths) != len(given):
            raise ValueError(f"paths must have one entry for each of the {len(given)} vectors, but it has {len(paths)}")
        pictures = [None] * len(given) if thumbnails is None else list(thumbnails)
        if len(pictures) != len(given):
            raise ValueError(
                f"thumbnails must have one entry for each of the {len(given)} vectors, but has {len(pictures)}"
            )
        if not len(given):
            return np.zeros(0, np.int64)
        with self._server.change() as cursor:
            return self._append(cursor, given, paths, labels, metadata, pictures, replace)

    def _append(
        self,
        cursor: Cursor[Any],
        given: Any,
        paths: Sequence[str],
        labels: Sequence[str | None] | None,
        metadata: Mapping[str, Sequence[Any]] | None,
        pictures: Sequence[bytes | None],
        replace: bool,
    ) -> Ids:
        """Add items in a transaction that may add more."""
        first, fields = self._row(cursor, "next_id, fields", lock=True)
        ids = np.arange(first, first + len(given))
        table = make_table(ids, paths, labels, metadata)
        for each in table.schema:
            kind = kind_of(each.type)
            if kind is not None and each.name not in RESERVED and fields.setdefault(each.name, kind) != kind:
                known = fields[each.name]
                raise TypeError(f"metadata[{each.name!r}] must hold a {known} like the index's, but it holds a {kind}")
        insert(cursor, self.name, table.to_pylist(), encode(given, "float32")[0], pictures, replace=replace)
        self._changed(cursor, "next_id = %s, fields = %s", [first + len(given), json.dumps(fields)])
        return ids

    def remove(self, ids: Any = None, *, where: str | None = None) -> int:
        """Remove items by their numbers or by a filter; returns how many there were."""
        if (ids is None) == (where is None):
            raise ValueError("remove takes either ids or where, but it was given both or none")
        with self._server.change() as cursor:
            fields = self._row(cursor, "fields", lock=True)[0]
            if where is None:
                asked = np.unique(numbers(ids)).tolist()
                text = "DELETE FROM {} WHERE id = ANY(%s::bigint[]) RETURNING id"
                cursor.execute(statement(text, self.name), [asked])
                all_there(asked, {row[0] for row in cursor})  # or nothing is removed at all
            else:
                kept = condition(where, _filterable(fields))
                cursor.execute(statement(f"DELETE FROM {{}} WHERE {kept.sql}", self.name), kept.parameters)
            count = cursor.rowcount
            self._changed(cursor)
        return count

    def merge(self, other: Index | PostgresIndex) -> int:
        """Take in all items of another index of the same model, a folder's or a database's; returns how many."""
        if isinstance(other, PostgresIndex):
            [(theirs,)] = other._about("model_sha256")
            if (other.name, other._server.url) == (self.name, self._server.url):
                raise ValueError(f"other must be another index, but it is {other.name} itself")
        else:
            theirs = None if other.manifest.model is None else other.manifest.model.sha256
        if self.dim != other.dim:
            raise ValueError(f"other must have vectors of size {self.dim}, but they are of size {other.dim}")
        [(mine,)] = self._about("model_sha256")
        if mine != theirs:
            raise ValueError("other must be of the same model, but it is of another one")
        root = other.root if other.root != self.root else None
        ids = other.ids
        with self._server.change() as cursor:  # all of them, or none
            for start in range(0, len(ids), CHUNK):
                some = ids[start : start + CHUNK]
                items = other.items(some)
                paths = [item.path if root is None else str(root / item.path) for item in items]
                metadata = {name: [item.metadata.get(name) for item in items] for name in other.fields}
                pictures = [other.thumbnail(int(each)) for each in some]
                labels = [item.label for item in items]
                self._append(cursor, other.vectors(some), paths, labels, metadata, pictures, True)
        return len(ids)

    def rebuild(
        self,
        *,
        storage: Literal["float32", "float16"] | None = None,
        approximate: Kind | None = None,
        queries: int = 200,
    ) -> None:
        """Change how vectors are stored and found, and measure what is approximate.

        Others may read meanwhile, unless the storage changes.

        Args:
            storage: how vectors are stored afterwards; by default as before.
            approximate: ``"exact"`` for none, ``"hnsw"``, or ``"auto"`` by size; by default as before.
            queries: how many queries its recall is measured with.
        """
        if approximate is not None:
            one_of("approximate", approximate, ("auto", "exact", "hnsw"), "in PostgreSQL")
        if storage is not None:
            one_of("storage", storage, TYPES, "in PostgreSQL")
        queries = whole_number("queries", queries, 1)
        with self._server.change() as cursor:
            dim, before, near = self._row(cursor, "dim, storage, near", lock=True)
            kind = approximate or ("exact" if near is None else "hnsw")
            if kind == "auto":
                from likewise.search.approximate import kind_for

                [count] = cursor.execute(statement("SELECT count(*) FROM {}", self.name)).fetchone() or [0]
                kind = "exact" if kind_for(count) == "exact" else "hnsw"
            after, old = storage or before, None if near is None else near["index"]
            if after != before:  # waits until nobody reads, and who comes later waits behind it: not for ever
                cursor.execute("SET LOCAL lock_timeout = '30s'")
            about = restructure(cursor, self.name, dim, (before, after), kind, old)
            self._changed(cursor, "storage = %s, near = %s", [after, None if about is None else json.dumps(about)])
        if about is not None and len(self):
            recall, count = self._recall(queries)
            with self._server.change() as cursor:
                self._changed(cursor, "near = %s", [json.dumps({**about, "recall": recall, "queries": count})])

    def _recall(self, queries: int, k: int = 10) -> tuple[float, int]:
        """The share of the k nearest that is found, for random items moved a little."""
        chance, ids = np.random.default_rng(0), self.ids
        some = self.vectors(chance.choice(ids, min(queries, len(ids)), replace=False))
        asked = some + 0.1 * chance.normal(size=some.shape) / np.sqrt(self.dim)
        truth, found = (self.search(asked, k, exact=exact).ids for exact in (True, False))
        hits = [np.isin(row[row >= 0], other).mean() for row, other in zip(truth, found, strict=True)]
        return float(np.mean(hits)), len(asked)

    def duplicates(self, threshold: float, *, where: str | None = None) -> list[list[int]]:
        """Groups of items that are alike, the largest group first; see `likewise.search.Index.duplicates`."""
        from likewise.search.groups import duplicates

        with self.still() as now:
            ids = now.ids if where is None else now.matching(where)
            vectors = now.vectors(ids)
        if not len(ids):
            return []
        return [ids[each].tolist() for each in duplicates([Part(Vectors(vectors, None))], threshold)]

    def clusters(self, n: int, *, seed: int = 0) -> Ids:
        """The cluster of each item, in row order; see `likewise.search.Index.clusters`."""
        from likewise.search.groups import clusters

        return clusters(self.vectors(), n, seed)

    def calibrated(self, calibration: Mapping[str, Any] | None) -> None:
        """Keep with the index from which similarity on two items are the same, as JSON can hold it."""
        with self._server.change() as cursor:
            self._changed(cursor, "calibration = %s", [None if calibration is None else json.dumps(calibration)])

    # ------------------------------------------------------------------------------------------- the database

    @contextmanager
    def _reading(self) -> Iterator[Cursor[Any]]:
        """A transaction that sees the items of one moment, however somebody stores them anew meanwhile.

        A table that is rewritten looks empty to whoever looked at anything before, and had no lock on it.
        """
        with self._server.read() as cursor:
            cursor.execute(statement("LOCK TABLE {} IN ACCESS SHARE MODE", self.name))
            yield cursor

    def _all(self, text: str, parameters: Sequence[Any] = ()) -> list[Any]:
        with self._reading() as cursor:
            return cursor.execute(statement(text, self.name), parameters).fetchall()

    def _about(self, columns: str) -> list[Any]:
        with self._server.read() as cursor:
            return [self._row(cursor, columns)]

    def _known(self, column: str) -> Any:
        return self._about(column)[0][0]

    def _row(self, cursor: Cursor[Any], columns: str, *, lock: bool = False) -> Any:
        """What the catalog says; with a lock, until the transaction ends nobody else changes the index."""
        more = " FOR UPDATE" if lock else ""
        cursor.execute(statement(f"SELECT {columns} FROM likewise_indexes WHERE name = %s{more}", ""), [self.name])
        row = cursor.fetchone()
        if row is None:
            raise FileNotFoundError(f"the database has no index {self.name} any more")
        return row

    def _changed(self, cursor: Cursor[Any], what: str = "", values: Sequence[Any] = ()) -> None:
        more = f", {what}" if what else ""
        cursor.execute(
            statement(f"UPDATE likewise_indexes SET changed = now(){more} WHERE name = %s", ""), [*values, self.name]
        )


def _shown(fields: Mapping[str, str]) -> dict[str, str]:
    return {name: kind for name, kind in fields.items() if not name.startswith(HIDDEN)}


def _filterable(fields: Mapping[str, str]) -> dict[str, str]:
    """Columns that a filter may name."""
    return {"path": "text", "label": "text", "id": "number", **_shown(fields)}
