"""A study: a table of trials in one SQLite file, keyed by the checksum of their configuration.

One process, the driver, writes the table; it submits missing trials to an executor (`likewise.protocols.run_missing`).
Search, repeats, tournaments and pages are computed from the table.
"""

from __future__ import annotations

import json
import math
import os
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

from likewise.files import hold_lock
from likewise.protocols.trial import Result, Trial

StateName = Literal["missing", "done", "failed", "pruned", "canceled"]
STATES: tuple[StateName, ...] = ("missing", "done", "failed", "pruned", "canceled")

Parsed = TypeVar("Parsed", Trial, Result)

Reports = dict[int, float]
"""Intermediate values of a trial, by step."""

STUDY_DATABASE = "study.db"
"""The name of the table in the folder of a study."""

_WAIT = 60.0
"""Seconds to wait for another process that writes the same file."""

_TABLES = """
CREATE TABLE IF NOT EXISTS trials (
    position INTEGER PRIMARY KEY, key TEXT UNIQUE NOT NULL, trial TEXT NOT NULL, result TEXT,
    cancelled INTEGER NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS reports (
    key TEXT NOT NULL, step INTEGER NOT NULL, value REAL, PRIMARY KEY (key, step)) WITHOUT ROWID;
"""


@dataclass(frozen=True)
class TrialState:
    """The state of a trial.

    Args:
        trial: the trial.
        state: ``"missing"``, ``"done"``, ``"failed"``, ``"pruned"`` or ``"canceled"``.
        step: the last step with a report.
        value: the value reported for it.
        error: the error of a failed trial.

    Examples:
        >>> TrialState(Trial("contrastive", {})).state
        'missing'
    """

    trial: Trial
    state: StateName = "missing"
    step: int | None = None
    value: float | None = None
    error: str | None = None


class Study:
    """The trials of a study and their results; changes are synced to disk before a method returns.

    Args:
        file: the SQLite file; it is created with its folder if it does not exist.

    Examples:
        >>> import tempfile
        >>> study = Study(tempfile.mkdtemp() + "/study.db")
        >>> first, second = study.add([Trial("contrastive", {}, seed=1), Trial("contrastive", {}, seed=2)])
        >>> study.finish(Result(first, val={"MAP@R": 0.5}))
        True
        >>> [trial.seed for trial in study.missing()], study.counts()["done"]
        ([2], 1)
    """

    def __init__(self, file: str | os.PathLike[str]) -> None:
        self.file = Path(file)
        self._parsed_trials: dict[str, Trial] = {}
        self._parsed_results: dict[str, tuple[str, Result]] = {}
        self.file.parent.mkdir(parents=True, exist_ok=True)
        try:
            with self._connection() as db:
                db.executescript(_TABLES)
        except sqlite3.DatabaseError as error:
            raise ValueError(f"file must be the table of a study, but {self.file} is not: {error}") from error

    def __repr__(self) -> str:
        return f"Study({str(self.file)!r})"

    @contextmanager
    def driving(self) -> Iterator[None]:
        """Lock the study while this process runs it; a second driver raises an error.

        Examples:
            >>> import tempfile
            >>> study = Study(tempfile.mkdtemp() + "/study.db")
            >>> with study.driving(), study.driving():
            ...     pass
            Traceback (most recent call last):
            RuntimeError: ...study.db must be run by one process, but another one is running it
        """
        refusal = RuntimeError(f"{self.file} must be run by one process, but another one is running it")
        with hold_lock(Path(f"{self.file}.lock"), refusal):
            yield

    def add(self, trials: Sequence[Trial]) -> list[Trial]:
        """Add trials, atomically; existing ones are unchanged.

        Returns:
            The new trials.
        """
        wanted = {trial.key: trial for trial in trials}
        with self._connection() as db:
            known = {key for (key,) in db.execute("SELECT key FROM trials")}
            new = [trial for key, trial in wanted.items() if key not in known]
            rows = [(trial.key, json.dumps(trial.to_dict())) for trial in new]
            db.executemany("INSERT INTO trials (key, trial) VALUES (?, ?)", rows)
        return new

    def finish(self, result: Result) -> bool:
        """Store a result; an existing result is kept, unless it is a failure and the new one is not.

        Returns:
            Whether the result was stored.
        """
        with self._connection() as db:
            row = db.execute("SELECT result FROM trials WHERE key = ?", (result.key,)).fetchone()
            if row is None:
                raise ValueError(f"result must be of a trial of the study, but {result.key!r} is not")
            before = None if row[0] is None else json.loads(row[0])["status"]
            if before is not None and not (before == "failed" != result.status):
                return False
            values = (json.dumps(result.to_dict()), result.key)
            db.execute("UPDATE trials SET result = ? WHERE key = ?", values)
        return True

    def report(self, key: str, step: int, value: float) -> None:
        """Store an intermediate value of a trial; it replaces an earlier one of the same step."""
        self.trial(key)
        self._store_reports([(key, step, value)])

    def cancel(self, keys: Iterable[str]) -> list[str]:
        """Cancel missing trials.

        Returns:
            The keys of the canceled trials.
        """
        return self._mark(keys, lambda state: state == "missing", "cancelled = 1")

    def retry(self, keys: Iterable[str] | None = None) -> list[str]:
        """Reset trials that failed or were canceled, so that they run again; ``None``: all of them.

        Returns:
            The keys of the reset trials.
        """
        chosen = [trial.key for trial in self.trials()] if keys is None else keys
        return self._mark(chosen, lambda state: state in ("failed", "canceled"), "cancelled = 0, result = NULL")

    def merge(self, other: Study, *, take: Callable[[Result], bool] | None = None) -> list[str]:
        """Merge the trials, results and reports of another table, such as that of a shard or a pack, into this one.

        Args:
            other: the other table.
            take: a function that selects the results to merge; ``None``: all.

        Returns:
            The keys of the trials with new results.

        Examples:
            >>> import tempfile
            >>> here, there = (Study(f"{tempfile.mkdtemp()}/study.db") for _ in range(2))
            >>> [trial] = there.add(here.add([Trial("contrastive", {})]))
            >>> there.finish(Result(trial, val={"MAP@R": 0.5}))
            True
            >>> here.merge(there) == [trial.key], here.merge(there), here.counts()["done"]
            (True, [], 1)
        """
        self.add(other.trials())
        offered = [result for result in other.results() if take is None or take(result)]
        new = [result.key for result in offered if self.finish(result)]
        self._store_reports((key, *each) for key, some in other.reports().items() for each in some.items())
        return new

    def copy(self, file: str | os.PathLike[str]) -> Study:
        """Copy a consistent snapshot of the table, even while another process writes it.

        Args:
            file: the path of the copy.

        Examples:
            >>> import tempfile
            >>> study = Study(tempfile.mkdtemp() + "/study.db")
            >>> _ = study.add([Trial("contrastive", {})])
            >>> study.copy(tempfile.mkdtemp() + "/study.db").counts()["missing"]
            1
        """
        made = Study(file)
        with self._connection() as source, closing(sqlite3.connect(made.file)) as target:
            source.backup(target)
        return made

    def trials(self) -> list[Trial]:
        """Return all trials, in the order in which they were added."""
        return [self._trial(key, text) for key, text in self._rows("key, trial")]

    def trial(self, key: str) -> Trial:
        """Return the trial with a key."""
        for text, *_ in self._rows("trial", "key = ?", key):
            return self._trial(key, text)
        raise ValueError(f"key must be that of a trial of the study, but {key!r} is not")

    def missing(self) -> list[Trial]:
        """Return the trials that have no result and were not canceled."""
        rows = self._rows("key, trial", "result IS NULL AND NOT cancelled")
        return [self._trial(key, text) for key, text in rows]

    def results(self) -> list[Result]:
        """Return all results, in the order of their trials."""
        return [self._result(key, text) for key, text in self._rows("key, result", "result IS NOT NULL")]

    def reports(self, keys: Iterable[str] | None = None) -> dict[str, Reports]:
        """Return intermediate values by key and step; ``None``: of all trials."""
        wanted = None if keys is None else set(keys)
        reports: dict[str, Reports] = {}
        with self._connection() as db:
            rows = db.execute("SELECT key, step, value FROM reports ORDER BY key, step").fetchall()
        for key, step, value in rows:
            if wanted is None or key in wanted:
                reports.setdefault(key, {})[step] = math.nan if value is None else value
        return reports

    def states(self) -> list[TrialState]:
        """Return the state of each trial, in the order in which they were added."""
        reports = self.reports()
        states = []
        for key, text, result_text, canceled in self._rows("key, trial, result, cancelled"):
            result = None if result_text is None else self._result(key, result_text)
            step = max(reports.get(key, {}), default=None)
            value = None if step is None else reports[key][step]
            error = None if result is None else result.error
            states.append(TrialState(self._trial(key, text), _state(result, canceled), step, value, error))
        return states

    def counts(self) -> dict[str, int]:
        """Count the trials in each state."""
        counted = Counter(state.state for state in self.states())
        return {name: counted[name] for name in STATES}

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        """Open a connection for one transaction, which is committed and synced, or rolled back."""
        with closing(sqlite3.connect(self.file, timeout=_WAIT)) as db, db:
            db.execute("PRAGMA synchronous = FULL")
            yield db

    def _rows(self, columns: str, where: str = "1", *values: str) -> list[tuple[str, ...]]:
        with self._connection() as db:
            return db.execute(f"SELECT {columns} FROM trials WHERE {where} ORDER BY position", values).fetchall()

    def _store_reports(self, rows: Iterable[tuple[str, int, float]]) -> None:
        # SQLite stores NaN as NULL
        values = [(key, int(step), None if math.isnan(value) else float(value)) for key, step, value in rows]
        with self._connection() as db:
            db.executemany("INSERT OR REPLACE INTO reports VALUES (?, ?, ?)", values)

    def _mark(self, keys: Iterable[str], fits: Callable[[StateName], bool], change: str) -> list[str]:
        states = {state.trial.key: state.state for state in self.states()}
        chosen = [key for key in dict.fromkeys(keys) if key in states and fits(states[key])]
        with self._connection() as db:
            db.executemany(f"UPDATE trials SET {change} WHERE key = ?", [(key,) for key in chosen])
        return chosen

    def _trial(self, key: str, text: str) -> Trial:
        if key not in self._parsed_trials:
            self._parsed_trials[key] = self._parse(Trial.from_dict, text)
        return self._parsed_trials[key]

    def _result(self, key: str, text: str) -> Result:
        if key not in self._parsed_results or self._parsed_results[key][0] != text:
            self._parsed_results[key] = text, self._parse(Result.from_dict, text)
        return self._parsed_results[key][1]

    def _parse(self, make: Callable[[Any], Parsed], text: str) -> Parsed:
        """Parse a row; raise an error if it is not one of a study."""
        try:
            return make(json.loads(text))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise ValueError(
                f"file must be the table of a study, but {self.file} has an invalid row: {error}"
            ) from None


def _state(result: Result | None, canceled: object) -> StateName:
    if result is not None:
        return result.status
    return "canceled" if canceled else "missing"


def in_shard(key: str, shard: tuple[int, int]) -> bool:
    """Whether a trial belongs to a shard of a study; trials are divided by their keys.

    Args:
        key: the key of the trial.
        shard: the number of the shard, from 1, and the number of shards.

    Examples:
        >>> [in_shard("00000000000000ff", (number, 2)) for number in (1, 2)]
        [False, True]
    """
    number, count = shard
    return int(key, 16) % count == number - 1
