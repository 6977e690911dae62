"""A board in a database: for many workers on many machines.

One row for each trial, and one for each value measured on the way.  A claim locks its row and passes over those that
others have locked (``FOR UPDATE SKIP LOCKED``) where the database can; SQLite has one writer at a time.  Either way a
claim changes a row only if it still waits, so that no two workers get the same trial.
"""

from __future__ import annotations

import json
import math
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from likewise.protocols.board import (
    Holder,
    Reports,
    Standing,
    StateName,
    checked_limits,
    last_of,
    last_words,
    may_replace,
    tally,
)
from likewise.protocols.trial import Result, Trial

T = TypeVar("T")

_WAIT = 60.0
"""For how many seconds a database that has gone away is waited for: a finished training is worth more than a minute."""


class _Tables(NamedTuple):
    every: Any
    trials: Any
    reports: Any


class SqlBoard:
    """A board in a database, which many machines may share.

    A database that goes away, because it is started anew or the network fails, is waited for for a minute.

    Args:
        url: of the database: ``sqlite:///study.db`` for a file, ``postgresql://user@host/name``, or another one that
            SQLAlchemy knows.
        study: the name of the study; a database may hold several.
        patience: a claim ends when nothing was heard of its worker for this many seconds.
        tries: a trial has failed after this many claims in a row that got no further than those before.

    Examples:
        >>> import tempfile
        >>> board = SqlBoard(f"sqlite:///{tempfile.mkdtemp()}/study.db")
        >>> _ = board.add([Trial("triplet", {"seed": 1}), Trial("triplet", {"seed": 2})])
        >>> first, second = board.claim("me"), board.claim("you")
        >>> first == second, board.claim("they") is None
        (False, True)
        >>> board.finish(Result(first, val={"MAP@R": 0.5})), board.counts()["running"]
        (True, 1)
    """

    def __init__(self, url: str, study: str = "study", *, patience: float = 300.0, tries: int = 3) -> None:
        self.study = study
        self.patience, self.tries = checked_limits(patience, tries)
        self._sql = _sqlalchemy()
        self._engine = _engine(self._sql, url)
        self.url = self._engine.url.render_as_string(hide_password=True)
        self._tables = _tables(self._sql)
        self._held: dict[str, str] = {}
        self._known: dict[str, Trial] = {}
        self._create()

    def __repr__(self) -> str:
        return f"SqlBoard({self.url!r}, {self.study!r})"

    def add(self, trials: Sequence[Trial]) -> list[Trial]:
        """Put trials on the board, all or none of them; those it has already stay as they are."""
        wanted = {trial.key: trial for trial in trials}
        t = self._tables.trials

        def put(to: Any) -> list[Trial]:
            known = set(to.scalars(self._sql.select(t.c.key).where(t.c.study == self.study)))
            new = {key: trial for key, trial in wanted.items() if key not in known}
            rows = [
                {"study": self.study, "key": key, "trial": json.dumps(trial.to_dict())} for key, trial in new.items()
            ]
            if rows:
                to.execute(t.insert().values(state="waiting", tries=0, added=self._now), rows)
            return list(new.values())

        while True:
            try:
                return self._do(put)
            except self._sql.exc.IntegrityError:  # somebody added one of them at the same time: look again
                continue

    def claim(self, worker: str) -> Trial | None:
        """Take the first trial that waits; no two workers get the same one."""
        self.sweep()
        holder, token = Holder.here(worker), uuid.uuid4().hex
        select, t, r = self._sql.select, self._tables.trials, self._tables.reports
        first = select(t.c.id, t.c.key, t.c.trial).where(t.c.study == self.study, t.c.state == "waiting")
        first = first.order_by(t.c.id).limit(1).with_for_update(skip_locked=True)

        def take(to: Any) -> tuple[bool, Any]:
            row = to.execute(first).first()
            if row is None:
                return True, None
            steps = select(self._sql.func.max(r.c.step)).where(r.c.study == self.study, r.c.key == row.key)
            change = t.update().where(t.c.id == row.id, t.c.state == "waiting")
            change = change.values(state="running", tries=t.c.tries + 1, reached=to.scalar(steps), token=token)
            change = change.values(worker=worker, machine=holder.machine, process=holder.process, since=holder.since)
            taken = to.execute(change.values(started=self._now, beat=self._now, error=None)).rowcount == 1
            return taken, row

        while True:
            taken, row = self._do(take)
            if row is None:
                return None
            if taken:  # else somebody was faster, in a database that cannot pass over locked rows
                self._held[row.key] = token
                return self._trial(row)

    def heartbeat(self, key: str) -> bool:
        """Say that the claim of this board object lives; false if it was lost, cancelled, or finished elsewhere."""
        t = self._tables.trials
        change = t.update().where(*self._mine(key)).values(beat=self._now)
        return key in self._held and bool(self._do(lambda to: to.execute(change).rowcount == 1))

    def report(self, key: str, step: int, value: float) -> None:
        """Keep a value that was measured on the way; the last one for a step stands."""
        r = self._tables.reports
        here = (r.c.study == self.study, r.c.key == key, r.c.step == int(step))
        number = float(value)
        kept = None if math.isnan(number) else number  # SQLite has no word for it

        def put(to: Any) -> None:
            self._row(to, key)  # whoever writes about the same trial waits here
            if to.execute(r.update().where(*here).values(value=kept)).rowcount == 0:
                to.execute(r.insert().values(study=self.study, key=key, step=int(step), value=kept))
            to.execute(self._tables.trials.update().where(*self._mine(key)).values(beat=self._now))

        self._do(put)

    def finish(self, result: Result) -> bool:
        """Keep a result.  The first one stands, unless it says failed and this one does not."""
        key, t = result.key, self._tables.trials

        def put(to: Any) -> bool:
            row = self._row(to, key)
            mine = row.state == "running" and row.token == self._held.get(key, "")
            if not may_replace(row.state, result.status, mine=mine):
                return False
            self._end_with(to, t.c.id == row.id, result)
            return True

        kept = self._do(put)
        self._held.pop(key, None)
        return kept

    def give_up(self, key: str, error: str) -> bool:
        """End the claim of this board object with an error: the trial waits for its next try, or has failed."""
        return self._give_back(key, error, counts=True)

    def put_back(self, key: str) -> bool:
        """End the claim of this board object because the worker stops; the try does not count."""
        return self._give_back(key, None, counts=False)

    def sweep(self) -> list[str]:
        """End the claims of workers that are gone."""
        t = self._tables.trials
        columns = (t.c.key, t.c.token, t.c.worker, t.c.machine, t.c.process, t.c.since)
        silent = (self._now - t.c.beat).label("silent")
        look = self._sql.select(*columns, silent).where(t.c.study == self.study, t.c.state == "running")
        swept = []
        for row in self._do(lambda to: to.execute(look).all(), reads=True):
            gone = Holder(row.worker, row.machine, row.process, row.since).gone()
            if (gone or row.silent > self.patience) and self._end(row.key, row.token, last_words(row.worker)):
                swept.append(row.key)
        return swept

    def cancel(self, keys: Iterable[str] | None = None) -> list[str]:
        """Let trials not be run, or stop at their next heartbeat; by default all that wait or run."""
        return self._change_state(keys, ("waiting", "running"), {"state": "cancelled"})

    def again(self, keys: Iterable[str] | None = None) -> list[str]:
        """Let trials that failed or were cancelled wait again, as if never tried; by default all of them."""
        fresh: dict[str, Any] = {"state": "waiting", "tries": 0, "result": None, "ended": None, "error": None}
        return self._change_state(keys, ("failed", "cancelled"), fresh | {"token": None})

    def trials(self) -> list[Trial]:
        """All trials, in the order in which they were added."""
        return [self._trial(row) for row in self._rows("key", "trial")]

    def results(self) -> list[Result]:
        """All results, in the order in which their trials were added."""
        return [Result.from_dict(json.loads(row.result)) for row in self._rows("result") if row.result is not None]

    def reports(self, keys: Iterable[str] | None = None) -> dict[str, Reports]:
        """What was measured on the way, by key and step; by default of all trials."""
        r = self._tables.reports
        look = self._sql.select(r.c.key, r.c.step, r.c.value).where(r.c.study == self.study)
        if keys is not None:
            look = look.where(r.c.key.in_(list(keys)))
        found: dict[str, Reports] = {}
        for row in self._do(lambda to: to.execute(look.order_by(r.c.key, r.c.step)).all(), reads=True):
            found.setdefault(row.key, {})[row.step] = math.nan if row.value is None else row.value
        return found

    def states(self) -> list[Standing]:
        """How each trial stands, in the order in which they were added."""
        reports = self.reports()
        found = []
        for row in self._rows("key", "trial", "state", "worker", "tries", "started", "beat", "ended", "error"):
            step, value = last_of(reports.get(row.key, {}))
            times = (row.started, row.beat, row.ended)
            found.append(
                Standing(self._trial(row), row.state, row.worker or "", row.tries, *times, step, value, row.error)
            )
        return found

    def counts(self) -> dict[StateName, int]:
        """How many trials are in each state."""
        return tally(row.state for row in self._rows("state"))

    @property
    def _now(self) -> Any:
        """The board's clock: the server's, one for all machines, or this machine's where the database is a file."""
        if self._engine.dialect.name == "postgresql":
            return self._sql.cast(self._sql.extract("epoch", self._sql.func.clock_timestamp()), self._sql.Double)
        return self._sql.literal(time.time())

    def _create(self) -> None:
        """Make the tables, if nobody else has, or does at this moment."""
        deadline, seen = time.monotonic() + _WAIT, 0
        while True:
            try:
                return self._tables.every.create_all(self._engine)  # type: ignore[no-any-return]
            except self._sql.exc.OperationalError as error:
                why = " ".join(str(error.orig).split())
                if "locked" not in why or time.monotonic() > deadline:  # SQLite's word for: another worker makes them
                    raise ConnectionError(
                        f"url must be that of a database that answers, but {self.url} does not: {why}"
                    ) from error
                time.sleep(0.05)
            except (self._sql.exc.IntegrityError, self._sql.exc.ProgrammingError):  # PostgreSQL's words for it
                seen += 1
                if seen == 3:
                    raise

    def _do(self, work: Callable[[Any], T], *, reads: bool = False) -> T:
        """Do something in one transaction; if the database has gone away, wait for it and do it again."""
        deadline = time.monotonic() + _WAIT
        pause = 0.05
        while True:
            try:
                with self._transaction(reads) as to:
                    return work(to)
            except self._sql.exc.OperationalError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(pause)
                pause = min(2 * pause, 5.0)

    @contextmanager
    def _transaction(self, reads: bool) -> Iterator[Any]:
        with self._engine.connect() as connection, connection.execution_options(likewise_reads=reads).begin():
            yield connection

    def _rows(self, *columns: str) -> Sequence[Any]:
        t = self._tables.trials
        look = self._sql.select(*(t.c[name] for name in columns)).where(t.c.study == self.study).order_by(t.c.id)
        found: Sequence[Any] = self._do(lambda to: to.execute(look).all(), reads=True)
        return found

    def _row(self, to: Any, key: str) -> Any:
        """The row of a trial, to oneself until the transaction ends."""
        t = self._tables.trials
        look = self._sql.select(t).where(t.c.study == self.study, t.c.key == key).with_for_update()
        row = to.execute(look).first()
        if row is None:
            raise ValueError(f"key must be that of a trial on the board, but {key!r} is not")
        return row

    def _trial(self, row: Any) -> Trial:
        if row.key not in self._known:
            self._known[row.key] = Trial.from_dict(json.loads(row.trial))
        return self._known[row.key]

    def _mine(self, key: str, token: str | None = None) -> tuple[Any, ...]:
        t = self._tables.trials
        return (
            *(t.c.study == self.study, t.c.key == key, t.c.state == "running"),
            t.c.token == (token or self._held.get(key, "")),
        )

    def _give_back(self, key: str, error: str | None, *, counts: bool) -> bool:
        token = self._held.pop(key, None)
        return token is not None and self._end(key, token, error, counts=counts)

    def _end(self, key: str, token: str, error: str | None, *, counts: bool = True) -> bool:
        """End a claim without a result, if it is still that claim."""
        t, r = self._tables.trials, self._tables.reports
        steps = self._sql.select(self._sql.func.max(r.c.step)).where(r.c.study == self.study, r.c.key == key)

        def put(to: Any) -> bool:
            row = self._row(to, key)
            if row.token != token or row.state != "running":
                return False
            now = to.scalar(steps)
            further = now is not None and (row.reached is None or now > row.reached)
            used = 0 if further else row.tries if counts else row.tries - 1
            change = t.update().where(t.c.id == row.id)
            to.execute(change.values(state="waiting", tries=used, token=None, error=error))
            if used >= self.tries:
                self._end_with(to, t.c.id == row.id, Result(self._trial(row), status="failed", error=error))
            return True

        return self._do(put)

    def _end_with(self, to: Any, where: Any, result: Result) -> None:
        text = json.dumps(result.to_dict())
        change = self._tables.trials.update().where(where)
        to.execute(change.values(state=result.status, result=text, ended=self._now, error=result.error, token=None))

    def _change_state(self, keys: Iterable[str] | None, old: Sequence[str], new: dict[str, Any]) -> list[str]:
        wanted = None if keys is None else set(keys)
        t = self._tables.trials
        look = self._sql.select(t.c.id, t.c.key).where(t.c.study == self.study, t.c.state.in_(old))

        def put(to: Any) -> list[str]:
            rows = to.execute(look.order_by(t.c.id).with_for_update()).all()
            chosen = [row for row in rows if wanted is None or row.key in wanted]
            for row in chosen:
                to.execute(t.update().where(t.c.id == row.id).values(**new))
            return [row.key for row in chosen]

        return self._do(put)


def _sqlalchemy() -> Any:
    try:
        import sqlalchemy
    except ImportError as missing:
        raise ImportError("a board in a database needs the extra likewise[study]; install it") from missing
    return sqlalchemy


def _engine(sql: Any, url: str) -> Any:
    """An engine without a pool: a connection for each transaction survives forks, and servers that start anew."""
    try:
        parsed = sql.make_url(url)
    except sql.exc.ArgumentError as error:
        raise ValueError(f"url must be like sqlite:///study.db or postgresql://host/name, but it is {url!r}") from error
    if parsed.drivername in ("postgres", "postgresql"):
        parsed = parsed.set(drivername="postgresql+psycopg")
    lite = parsed.get_backend_name() == "sqlite"
    if lite and parsed.database in (None, "", ":memory:"):
        raise ValueError(f"url must name a file, because workers are processes, but it is {url!r}")
    if lite:
        Path(parsed.database).absolute().parent.mkdir(parents=True, exist_ok=True)
    try:
        engine = sql.create_engine(parsed, poolclass=sql.pool.NullPool, connect_args={"timeout": _WAIT} if lite else {})
    except ImportError as missing:
        raise ImportError(
            f"a board at {parsed.drivername}:// needs the package {missing.name}, which likewise[study] brings for "
            f"PostgreSQL; install it"
        ) from missing
    if lite:
        sql.event.listen(engine, "connect", _open_sqlite)
        sql.event.listen(engine, "begin", _begin_sqlite)
    return engine


def _open_sqlite(connection: Any, record: Any) -> None:
    connection.isolation_level = None  # transactions begin where we say
    if connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        connection.execute("PRAGMA journal_mode=WAL")  # readers and the writer do not wait for each other


def _begin_sqlite(connection: Any) -> None:
    reads = connection.get_execution_options().get("likewise_reads", False)
    # to ask for the right to write in the middle of a transaction fails at once if somebody else has it
    connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")


def _tables(sql: Any) -> _Tables:
    every = sql.MetaData()
    text, number = sql.Text, sql.Double
    trials = sql.Table(
        "likewise_trials",
        every,
        sql.Column("id", sql.Integer, primary_key=True),
        sql.Column("study", sql.String(200), nullable=False),
        sql.Column("key", sql.String(64), nullable=False),
        sql.Column("trial", text, nullable=False),
        sql.Column("state", sql.String(16), nullable=False),
        sql.Column("tries", sql.Integer, nullable=False),
        sql.Column("reached", sql.Integer),  # the last step that any claim before this one had reported
        sql.Column("token", sql.String(32)),  # which claim it is
        sql.Column("worker", text),
        sql.Column("machine", text),
        sql.Column("process", sql.Integer),
        sql.Column("since", sql.String(32)),
        *(sql.Column(name, number) for name in ("added", "started", "beat", "ended")),
        sql.Column("error", text),
        sql.Column("result", text),
        sql.UniqueConstraint("study", "key"),
    )
    sql.Index("likewise_trials_by_state", trials.c.study, trials.c.state, trials.c.id)
    reports = sql.Table(
        "likewise_reports",
        every,
        sql.Column("study", sql.String(200), primary_key=True),
        sql.Column("key", sql.String(64), primary_key=True),
        sql.Column("step", sql.Integer, primary_key=True, autoincrement=False),
        sql.Column("value", number),
    )
    return _Tables(every, trials, reports)
