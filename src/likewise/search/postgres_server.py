"""Connections to a PostgreSQL server with pgvector, and what every index there needs."""

from __future__ import annotations

import re
import threading
import weakref
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from psycopg import Connection
    from psycopg import Cursor as Cursor

MOST, KEPT = 16, 8
"""Connections at once, and those of them that are kept for the next transactions."""

PATIENCE = 10.0
"""Seconds that a transaction waits for a connection where all are in use."""

SETTINGS = {
    "connect_timeout": "10",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",
    "fallback_application_name": "likewise",
}
"""Of every connection whose URL does not say otherwise: a server that was cut off is given up after a minute at most."""

PLAIN = "url must have the signs @ / # of a password written as %40 %2F %23, but they are unescaped"

CATALOG = """
CREATE TABLE IF NOT EXISTS likewise_indexes (
    name text PRIMARY KEY, format integer NOT NULL, dim integer NOT NULL, storage text NOT NULL, root text,
    fields jsonb NOT NULL DEFAULT '{}', next_id bigint NOT NULL DEFAULT 0,
    model bytea, model_name text, model_sha256 text, transform text, card jsonb, calibration jsonb, near jsonb,
    created timestamptz NOT NULL DEFAULT now(), changed timestamptz NOT NULL DEFAULT now()
)
"""


class Server:
    """Connections to a database: a transaction borrows one for itself, and a few are kept for the next.

    Any number of threads may begin transactions; where there are more than connections, they wait.  A thread that is
    in a transaction must not begin another one: if all did, all would wait for each other.

    Args:
        url: of the database; no error repeats it, because it may hold a password.

    Examples:
        >>> Server("mysql://nowhere")
        Traceback (most recent call last):
        ValueError: url must start with postgresql://, but it starts with 'mysql://'
    """

    def __init__(self, url: str) -> None:
        self.url = checked_url(url)
        self._idle: deque[Connection[Any]] = deque()  # its ends may be taken and given by any thread
        self._room = threading.BoundedSemaphore(MOST)
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
        with self._borrowed() as connection:
            try:
                with connection.transaction(), connection.cursor() as cursor:
                    cursor.execute(setting)
                    yield cursor
            except (psycopg.OperationalError, psycopg.InterfaceError) as error:
                raise ConnectionError(f"the database does not answer: {_sentence(error)}") from error
            except psycopg.errors.InsufficientPrivilege as error:
                raise PermissionError(f"the database does not let this user do that: {_sentence(error)}") from error
            except psycopg.errors.UndefinedTable as error:
                raise FileNotFoundError("the database has no such index any more") from error
            except psycopg.DataError as error:
                raise ValueError(f"the database rejects a value: {_sentence(error)}") from error

    @contextmanager
    def _borrowed(self) -> Iterator[Connection[Any]]:
        """A connection that answers, for one thread."""
        if not self._room.acquire(timeout=PATIENCE):
            raise ConnectionError(f"the database is busy: all {MOST} connections to it are in use")
        try:
            connection = self._answering()
            try:
                yield connection
            finally:
                busy = connection.info.transaction_status != 0  # broken, or in the middle of something
                if busy or connection.closed or len(self._idle) >= KEPT:
                    connection.close()
                else:
                    self._idle.append(connection)
        finally:
            self._room.release()

    def _answering(self) -> Connection[Any]:
        """One of the connections that are there, or a new one."""
        psycopg = _psycopg()
        while self._idle:
            try:
                connection = self._idle.pop()
            except IndexError:  # another thread was faster
                break
            try:
                connection.execute("SELECT 1")
                return connection
            except psycopg.OperationalError:  # the server was restarted since
                connection.close()
        options = SETTINGS | _options(self.url)
        try:
            fresh: Connection[Any] = psycopg.connect(**options, autocommit=True)
        except psycopg.Error as error:
            raise ConnectionError(f"the database cannot be reached: {_sentence(error)}") from error
        return fresh


class Moment:
    """One transaction of a server: all that is read in it is of one moment.

    Args:
        url: of the database.
        cursor: in the transaction.

    Examples:
        >>> with Moment("postgresql://host/photos", None).change():
        ...     pass
        Traceback (most recent call last):
        TypeError: an index that is held still can be read, but it cannot be changed
    """

    def __init__(self, url: str, cursor: Any) -> None:
        self.url, self._cursor = url, cursor

    @contextmanager
    def read(self) -> Iterator[Cursor[Any]]:
        """The cursor; after an error it is of no more use."""
        yield self._cursor

    @contextmanager
    def change(self) -> Iterator[Cursor[Any]]:
        """Refused."""
        raise TypeError("an index that is held still can be read, but it cannot be changed")
        yield self._cursor

    def close(self) -> None:
        """Nothing: the connection is given back when the transaction ends."""


def checked_url(url: str) -> str:
    """The URL of a database, or a sentence that repeats nothing of it: there may be a password in it.

    Examples:
        >>> checked_url("postgresql://me:open/sesame@host/photos")
        Traceback (most recent call last):
        ValueError: url must have the signs @ / # of a password written as %40 %2F %23, but they are unescaped
    """
    scheme, there, rest = url.partition("://")
    if scheme not in ("postgresql", "postgres") or not there:
        shown = repr(scheme + "://") if there and re.fullmatch(r"[\w+.-]{1,20}", scheme) else "something else"
        raise ValueError(f"url must start with postgresql://, but it starts with {shown}")
    place = rest.partition("?")[0]
    if "#" in rest or place.count("@") > 1 or "@" in place.partition("/")[2]:
        raise ValueError(PLAIN)
    return url


def _options(url: str) -> dict[str, Any]:
    """What a URL says.  What the database's own library says of one that it cannot read would repeat parts of it."""
    psycopg = _psycopg()
    try:
        options: dict[str, Any] = psycopg.conninfo.conninfo_to_dict(url)
        strange = "@" in str(options.get("host", "")) or not re.fullmatch(r"[\d,]*", str(options.get("port", "")))
    except psycopg.Error:
        strange = True
    if strange:
        raise ValueError("url must be like postgresql://user@host:5432/database, but it cannot be read") from None
    return options


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
    """The extension and the catalog, created if they do not exist, in the cursor's transaction.

    Examples:
        >>> print(CATALOG.split()[5])
        likewise_indexes
    """
    import psycopg

    cursor.execute("SELECT pg_advisory_xact_lock(hashtext('likewise'))")
    try:
        cursor.execute("CREATE EXTENSION IF NOT EXISTS vector")
    except (psycopg.errors.FeatureNotSupported, psycopg.errors.UndefinedFile) as error:
        raise ValueError("the database server must have pgvector installed, but it has no extension vector") from error
    cursor.execute(CATALOG)


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
