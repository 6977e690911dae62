"""Connections to a PostgreSQL server with pgvector, and what every index there needs."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from psycopg import Connection
    from psycopg import Cursor as Cursor

KEPT = 8
"""Connections that are kept for the next transactions."""

CATALOGUE = """
CREATE TABLE IF NOT EXISTS likewise_indexes (
    name text PRIMARY KEY, format integer NOT NULL, dim integer NOT NULL, storage text NOT NULL, root text,
    fields jsonb NOT NULL DEFAULT '{}', next_id bigint NOT NULL DEFAULT 0,
    model bytea, model_name text, model_sha256 text, images text, card jsonb, calibration jsonb, near jsonb,
    created timestamptz NOT NULL DEFAULT now(), changed timestamptz NOT NULL DEFAULT now()
)
"""


class Server:
    """Connections to a database: a transaction borrows one, and a few are kept for the next.

    Args:
        url: of the database.

    Examples:
        >>> Server("mysql://nowhere")
        Traceback (most recent call last):
        ValueError: url must begin with postgresql://, but it begins with 'mysql://'
    """

    def __init__(self, url: str) -> None:
        scheme = url.partition("://")[0]
        if scheme not in ("postgresql", "postgres"):
            raise ValueError(f"url must begin with postgresql://, but it begins with {scheme + '://'!r}")
        self.url = url
        self._idle: deque[Connection[Any]] = deque()  # its ends may be taken and given by any thread
        weakref.finalize(self, _close, self._idle)

    def close(self) -> None:
        """Let go of all connections; the next transaction makes a new one."""
        _close(self._idle)

    @contextmanager
    def read(self) -> Iterator[Cursor[Any]]:
        """A cursor in a transaction that sees one state of the database and changes nothing."""
        with self._transaction("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY") as cursor:
            yield cursor

    @contextmanager
    def change(self) -> Iterator[Cursor[Any]]:
        """A cursor in a transaction that is kept as a whole, or not at all."""
        with self._transaction("SET TRANSACTION ISOLATION LEVEL READ COMMITTED READ WRITE") as cursor:
            yield cursor

    @contextmanager
    def _transaction(self, setting: str) -> Iterator[Cursor[Any]]:
        psycopg = _psycopg()
        connection = self._borrow()
        try:
            with connection.transaction(), connection.cursor() as cursor:
                cursor.execute(setting)
                yield cursor
        except psycopg.OperationalError as error:
            raise ConnectionError(f"the database does not answer: {_sentence(error)}") from error
        except psycopg.errors.InsufficientPrivilege as error:
            raise PermissionError(f"the database does not let this user do that: {_sentence(error)}") from error
        except psycopg.DataError as error:
            raise ValueError(f"the database refuses a value: {_sentence(error)}") from error
        finally:
            if connection.closed or len(self._idle) >= KEPT:
                connection.close()
            else:
                self._idle.append(connection)

    def _borrow(self) -> Connection[Any]:
        """A connection that answers: one that is there, or a new one."""
        psycopg = _psycopg()
        while self._idle:
            try:
                connection = self._idle.pop()
            except IndexError:  # another thread was faster
                break
            try:
                connection.execute("SELECT 1")
                return connection
            except psycopg.OperationalError:  # the server was started anew since
                connection.close()
        try:
            fresh: Connection[Any] = psycopg.connect(self.url, autocommit=True, connect_timeout=10)
        except psycopg.OperationalError as error:
            raise ConnectionError(f"the database cannot be reached: {_sentence(error)}") from error
        return fresh


def _close(idle: deque[Connection[Any]]) -> None:
    while idle:
        idle.pop().close()


def _psycopg() -> ModuleType:
    try:
        import psycopg
    except ImportError as missing:
        raise ImportError("an index in PostgreSQL needs psycopg: pip install 'psycopg[binary]'") from missing
    return psycopg


def _sentence(error: Exception) -> str:
    return " ".join(str(error).split())


def prepare(cursor: Cursor[Any]) -> None:
    """The extension and the catalogue, made by whoever comes first, in the cursor's transaction.

    Examples:
        >>> print(CATALOGUE.split()[5])
        likewise_indexes
    """
    import psycopg

    cursor.execute("SELECT pg_advisory_xact_lock(hashtext('likewise'))")
    try:
        cursor.execute("CREATE EXTENSION IF NOT EXISTS vector")
    except (psycopg.errors.FeatureNotSupported, psycopg.errors.UndefinedFile) as error:
        raise ValueError("the database server must have pgvector installed, but it has no extension vector") from error
    cursor.execute(CATALOGUE)


def statement(text: str, table: str) -> Any:
    """A statement with the table's name in place of ``{}``; nothing else of it comes from a user.

    Examples:
        >>> statement("SELECT id FROM {}", "birds")
        SQL('SELECT id FROM "birds"')
    """
    from psycopg import sql

    return sql.SQL(text.replace("{}", quoted(table)))


def quoted(name: str) -> str:
    """A name as SQL wants it.

    Examples:
        >>> quoted('my "birds" here')
        '"my ""birds"" here"'
    """
    return '"' + name.replace('"', '""') + '"'
