"""Connections to a PostgreSQL server with pgvector, and the catalog table of indexes."""

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

CONNECTIONS, IDLE_CONNECTIONS = 16, 8
"""The largest number of connections, and of idle ones that are kept for later transactions."""

PATIENCE = 10.0
"""Seconds that a transaction waits for a connection if all are in use."""

SETTINGS = {
    "connect_timeout": "10",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",
    "fallback_application_name": "likewise",
}
"""Default connection settings; a server that is unreachable is given up after at most a minute."""

ESCAPE_PASSWORD = "url must have the characters @ / # of a password escaped as %40 %2F %23, but they are not escaped"

CATALOG = """
CREATE TABLE IF NOT EXISTS likewise_indexes (
    name text PRIMARY KEY, format integer NOT NULL, dim integer NOT NULL, storage text NOT NULL, root text,
    fields jsonb NOT NULL DEFAULT '{}', next_id bigint NOT NULL DEFAULT 0,
    model bytea, model_name text, model_sha256 text, transform text, card jsonb, calibration jsonb, near jsonb,
    created timestamptz NOT NULL DEFAULT now(), changed timestamptz NOT NULL DEFAULT now()
)
"""


class Server:
    """Connection pool of a database: each transaction uses one connection, and a few are kept for later ones.

    Any number of threads may begin transactions; if there are more than connections, they wait.  A thread in a transaction
    must not begin another one, because threads that all wait for a second connection would block each other.

    Args:
        url: URL of the database; errors do not repeat it, because it may contain a password.

    Examples:
        >>> Server("mysql://nowhere")
        Traceback (most recent call last):
        ValueError: url must start with postgresql://, but it starts with 'mysql://'
    """

    def __init__(self, url: str) -> None:
        self.url = check_url(url)
        self._idle: deque[Connection[Any]] = deque()  # append and pop are thread-safe
        self._room = threading.BoundedSemaphore(CONNECTIONS)
        weakref.finalize(self, _close, self._idle)

    def close(self) -> None:
        """Close all connections; the next transaction opens a new one."""
        _close(self._idle)

    @contextmanager
    def read(self) -> Iterator[Cursor[Any]]:
        """Open a read-only transaction that sees one state of the database, and yield its cursor."""
        with self._transaction("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY") as cursor:
            yield cursor

    @contextmanager
    def change(self) -> Iterator[Cursor[Any]]:
        """Open a transaction that is committed as a whole or not at all, and yield its cursor."""
        with self._transaction("SET TRANSACTION ISOLATION LEVEL READ COMMITTED READ WRITE") as cursor:
            yield cursor

    @contextmanager
    def _transaction(self, setting: str) -> Iterator[Cursor[Any]]:
        psycopg = _psycopg()
        with self._borrow() as connection:
            try:
                with connection.transaction(), connection.cursor() as cursor:
                    cursor.execute(setting)
                    yield cursor
            except (psycopg.OperationalError, psycopg.InterfaceError) as error:
                raise ConnectionError(f"the database does not answer: {_first_line(error)}") from error
            except psycopg.errors.InsufficientPrivilege as error:
                raise PermissionError(f"the database does not permit this operation: {_first_line(error)}") from error
            except psycopg.errors.UndefinedTable as error:
                raise FileNotFoundError("the database no longer has this index") from error
            except psycopg.DataError as error:
                raise ValueError(f"the database rejects a value: {_first_line(error)}") from error

    @contextmanager
    def _borrow(self) -> Iterator[Connection[Any]]:
        """Yield a working connection for one thread."""
        if not self._room.acquire(timeout=PATIENCE):
            raise ConnectionError(f"the database is busy: all {CONNECTIONS} connections to it are in use")
        try:
            connection = self._find_working()
            try:
                yield connection
            finally:
                busy = connection.info.transaction_status != 0  # broken, or inside a transaction
                if busy or connection.closed or len(self._idle) >= IDLE_CONNECTIONS:
                    connection.close()
                else:
                    self._idle.append(connection)
        finally:
            self._room.release()

    def _find_working(self) -> Connection[Any]:
        """Return an idle connection, or a new one."""
        psycopg = _psycopg()
        while self._idle:
            try:
                connection = self._idle.pop()
            except IndexError:  # another thread has taken the last one
                break
            try:
                connection.execute("SELECT 1")
                return connection
            except psycopg.OperationalError:  # the server was restarted
                connection.close()
        options = SETTINGS | _options(self.url)
        try:
            fresh: Connection[Any] = psycopg.connect(**options, autocommit=True)
        except psycopg.Error as error:
            raise ConnectionError(f"the database cannot be reached: {_first_line(error)}") from error
        return fresh


class OpenTransaction:
    """One open transaction of a server: everything is read from one state.

    Args:
        url: URL of the database.
        cursor: cursor of the transaction.

    Examples:
        >>> with OpenTransaction("postgresql://host/photos", None).change():
        ...     pass
        Traceback (most recent call last):
        TypeError: an index inside still() is read-only: change it outside
    """

    def __init__(self, url: str, cursor: Any) -> None:
        self.url, self._cursor = url, cursor

    @contextmanager
    def read(self) -> Iterator[Cursor[Any]]:
        """Yield the cursor; it cannot be used after an error."""
        yield self._cursor

    @contextmanager
    def change(self) -> Iterator[Cursor[Any]]:
        """Raise an error: the transaction is read-only."""
        raise TypeError("an index inside still() is read-only: change it outside")
        yield self._cursor

    def close(self) -> None:
        """Do nothing: the connection is returned when the transaction ends."""


def check_url(url: str) -> str:
    """Return the URL of a database, or raise an error that does not repeat it, because it may contain a password.

    Examples:
        >>> check_url("postgresql://me:open/sesame@host/photos")
        Traceback (most recent call last):
        ValueError: url must have the characters @ / # of a password escaped as %40 %2F %23, but they are not escaped
    """
    scheme, there, rest = url.partition("://")
    if scheme not in ("postgresql", "postgres") or not there:
        shown = repr(scheme + "://") if there and re.fullmatch(r"[\w+.-]{1,20}", scheme) else "something else"
        raise ValueError(f"url must start with postgresql://, but it starts with {shown}")
    place = rest.partition("?")[0]
    if "#" in rest or place.count("@") > 1 or "@" in place.partition("/")[2]:
        raise ValueError(ESCAPE_PASSWORD)
    return url


def _options(url: str) -> dict[str, Any]:
    """Parse a URL; the message of libpq about an invalid one is not shown, because it repeats parts of the URL."""
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


def _first_line(error: Exception) -> str:
    return " ".join(str(error).split())


def prepare(cursor: Cursor[Any]) -> None:
    """Create the extension and the catalog if they do not exist, in the transaction of the cursor.

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
    """Return a statement with the quote name of a table in place of ``{}``; the rest of the text is constant.

    Examples:
        >>> statement("SELECT id FROM {}", "birds")
        SQL('SELECT id FROM "birds"')
    """
    from psycopg import sql

    return sql.SQL(text.replace("{}", quote(table)))


def quote(name: str) -> str:
    """Quote a name for SQL.

    Examples:
        >>> quote('my "birds" here')
        '"my ""birds"" here"'
    """
    return '"' + name.replace('"', '""') + '"'
