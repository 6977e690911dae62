"""A board that is a folder: for one machine, a bare one, or a shared file system.

- ``trials.jsonl``: a line for each trial, in order
- ``claims/KEY.N``: the Nth claim of a trial; its time of change is the heartbeat, and the process that made it keeps it
  locked while it lives; ``claims/KEY.N.over`` says how a claim ended without a result; ``claims/KEY.cancelled``
- ``reports/KEY.jsonl``: values measured on the way
- ``results/KEY.json``: what came out, written aside and renamed
- ``lock``: held for the moment in which the board is changed; its time of change is the board's clock, because on a
  shared file system that is one clock for all machines
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from likewise.protocols.board import (
    Holder,
    Reports,
    Standing,
    StateName,
    checked_limits,
    last_of,
    last_words,
    may_replace,
    merge,
    tally,
    this_machine,
)
from likewise.protocols.trial import Result, Trial


@dataclass(frozen=True)
class _Claims:
    """What the names in the folder of claims say about one trial."""

    number: int = 0
    over: bool = True
    cancelled: bool = False

    @property
    def live(self) -> bool:
        return self.number > 0 and not self.over


class FileBoard:
    """A board in a folder, which needs nothing but Python.

    Workers on several machines may share it if their file system is shared and has locks that hold between machines.

    Args:
        folder: where it is; made if it is not there.
        patience: a claim ends when nothing was heard of its worker for this many seconds.
        tries: a trial has failed after this many claims in a row that got no further than those before.

    Examples:
        >>> import tempfile
        >>> board = FileBoard(tempfile.mkdtemp())
        >>> _ = board.add([Trial("triplet", {"seed": 1})])
        >>> trial = board.claim("me")
        >>> board.report(trial.key, step=1, value=0.25)
        >>> board.states()[0].state, board.states()[0].value
        ('running', 0.25)
        >>> board.put_back(trial.key), board.claim("you") == trial
        (True, True)
    """

    def __init__(self, folder: str | os.PathLike[str], *, patience: float = 300.0, tries: int = 3) -> None:
        self.folder = Path(folder)
        self.patience, self.tries = checked_limits(patience, tries)
        for part in ("claims", "reports", "results"):
            (self.folder / part).mkdir(parents=True, exist_ok=True)
        self._claims_folder, self._results_folder = self.folder / "claims", self.folder / "results"
        (self.folder / "lock").touch()
        self._held: dict[str, tuple[int, Path]] = {}
        self._holding = threading.Lock()  # a heartbeat comes from another thread than the end
        self._known: dict[str, Trial] = {}
        self._read_to = 0
        self._reading = threading.Lock()
        self._kept: dict[str, tuple[tuple[int, int], Result, float]] = {}

    def __repr__(self) -> str:
        return f"FileBoard({str(self.folder)!r})"

    def add(self, trials: Sequence[Trial]) -> list[Trial]:
        """Put trials on the board, all or none of them; those it has already stay as they are."""
        with self._changing():
            known = self._trials()
            new = {trial.key: trial for trial in trials if trial.key not in known}
            if new:
                # one line for all of them, so that they are there together or not at all
                _append(self.folder / "trials.jsonl", [trial.to_dict() for trial in new.values()])
        return list(new.values())

    def claim(self, worker: str) -> Trial | None:
        """Take the first trial that waits; no two workers get the same one."""
        with self._changing():
            claims, ended = self._claims(), self._ended()
            for key, last in self._sweep(claims, ended):
                claims[key] = _Claims(last.number, True, last.cancelled)
            ended = self._ended()
            for key, trial in self._trials().items():
                last = claims.get(key, _Claims())
                if key in ended or last.cancelled or last.live:
                    continue
                used, error = self._used(key, last)
                if used >= self.tries:  # whoever wrote that down died before it could write the result
                    self._fail(key, error)
                elif self._take(key, last.number + 1, worker, used + 1):
                    return trial
        return None

    def heartbeat(self, key: str) -> bool:
        """Say that the claim of this board object lives; false if it was lost, cancelled, or finished elsewhere."""
        with self._holding:
            if key not in self._held:
                return False
            descriptor, path = self._held[key]
            lost = (
                os.fstat(descriptor).st_nlink == 0
                or _over(path).exists()
                or (self._claims_folder / f"{key}.cancelled").exists()
                or (self._results_folder / f"{key}.json").exists()
            )
            if not lost:
                os.utime(descriptor)
            return not lost

    def report(self, key: str, step: int, value: float) -> None:
        """Keep a value that was measured on the way; the last one for a step stands."""
        self._must_know(key)
        _append(self.folder / "reports" / f"{key}.jsonl", {"step": int(step), "value": float(value)})
        self.heartbeat(key)

    def finish(self, result: Result) -> bool:
        """Keep a result.  The first one stands, unless it says failed and this one does not."""
        key = result.key
        self._must_know(key)
        with self._changing():
            old = _state(self._claims().get(key, _Claims()), self._results().get(key))
            kept = may_replace(old, result.status, mine=self.heartbeat(key))
            if kept:
                _write(self._results_folder / f"{key}.json", result.to_dict())
        self._let_go(key)
        return kept

    def give_up(self, key: str, error: str) -> bool:
        """End the claim of this board object with an error: the trial waits for its next try, or has failed."""
        return self._give_back(key, error, counts=True)

    def put_back(self, key: str) -> bool:
        """End the claim of this board object because the worker stops; the try does not count."""
        return self._give_back(key, None, counts=False)

    def sweep(self) -> list[str]:
        """End the claims of workers that are gone."""
        with self._changing():
            return [key for key, _ in self._sweep(self._claims(), self._ended())]

    def cancel(self, keys: Iterable[str] | None = None) -> list[str]:
        """Let trials not be run, or stop at their next heartbeat; by default all that wait or run."""
        wanted = None if keys is None else set(keys)
        with self._changing():
            claims, ended = self._claims(), self._ended()
            chosen = [
                key
                for key in self._trials()
                if (wanted is None or key in wanted) and key not in ended and not claims.get(key, _Claims()).cancelled
            ]
            for key in chosen:
                (self._claims_folder / f"{key}.cancelled").touch()
        return chosen

    def again(self, keys: Iterable[str] | None = None) -> list[str]:
        """Let trials that failed or were cancelled wait again, as if never tried; by default all of them."""
        wanted = None if keys is None else set(keys)
        with self._changing():
            claims, results = self._claims(), self._results()
            chosen = []
            for key in self._trials():
                failed = key in results and results[key].status == "failed"
                cancelled = key not in results and claims.get(key, _Claims()).cancelled
                if (wanted is None or key in wanted) and (failed or cancelled):
                    chosen.append(key)
            for key in chosen:
                (self._results_folder / f"{key}.json").unlink(missing_ok=True)
                for file in self._claims_folder.glob(f"{key}.*"):
                    file.unlink()
        return chosen

    def trials(self) -> list[Trial]:
        """All trials, in the order in which they were added."""
        return list(self._trials().values())

    def results(self) -> list[Result]:
        """All results, in the order in which their trials were added."""
        found = self._results()
        return [found[key] for key in self._trials() if key in found]

    def reports(self, keys: Iterable[str] | None = None) -> dict[str, Reports]:
        """What was measured on the way, by key and step; by default of all trials."""
        found = {}
        for key in self._trials() if keys is None else keys:
            lines = _lines(self.folder / "reports" / f"{key}.jsonl")
            if lines:
                found[key] = {int(line["step"]): float(line["value"]) for line in lines}
        return found

    def states(self) -> list[Standing]:
        """How each trial stands, in the order in which they were added."""
        claims, results, reports = self._claims(), self._results(), self.reports()
        found = []
        for key, trial in self._trials().items():
            last = claims.get(key, _Claims())
            path = self._claims_folder / f"{key}.{last.number}"
            said = _read(path) or {}
            over = (_read(_over(path)) or {}) if last.over else {}
            result = results.get(key)
            step, value = last_of(reports.get(key, {}))
            standing = Standing(
                trial,
                _state(last, result),
                worker=said.get("worker", ""),
                tries=over.get("tries", said.get("tries", 0)),
                started=said.get("at"),
                beat=_changed(path),
                ended=self._kept[key][2] if result else None,
                step=step,
                value=value,
                error=result.error if result else over.get("error"),
            )
            found.append(standing)
        return found

    def counts(self) -> dict[StateName, int]:
        """How many trials are in each state."""
        claims, results = self._claims(), self._results()
        return tally(_state(claims.get(key, _Claims()), results.get(key)) for key in self._trials())

    def merge(self, folder: str | os.PathLike[str]) -> list[str]:
        """Bring what a board in another folder knows to this one; returns the keys whose results are new here.

        Examples:
            >>> import tempfile
            >>> FileBoard(tempfile.mkdtemp()).merge(FileBoard(tempfile.mkdtemp()).folder)
            []
        """
        if not (Path(folder) / "lock").is_file():
            raise FileNotFoundError(f"folder must hold a board, but {folder} has none")
        return merge(self, FileBoard(folder))

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """The board to oneself, for a moment."""
        descriptor = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT, 0o666)
        try:
            _lock(descriptor, wait=True)
            yield
        finally:
            os.close(descriptor)

    def _now(self) -> float:
        os.utime(self.folder / "lock")
        return (self.folder / "lock").stat().st_mtime

    def _trials(self) -> Mapping[str, Trial]:
        """All trials by key; the file only grows, so only what is new in it is read."""
        with self._reading, suppress(FileNotFoundError), (self.folder / "trials.jsonl").open("rb") as file:
            file.seek(self._read_to)
            text = file.read()
            whole = text.rfind(b"\n") + 1
            for line in _parsed(text[:whole]):
                for said in line:
                    trial = Trial.from_dict(said)
                    self._known.setdefault(trial.key, trial)
            self._read_to += whole
        return dict(self._known)

    def _must_know(self, key: str) -> None:
        if key not in self._known and key not in self._trials():
            raise ValueError(f"key must be that of a trial on the board, but {key!r} is not")

    def _claims(self) -> dict[str, _Claims]:
        found: dict[str, _Claims] = {}
        names = sorted(os.listdir(self._claims_folder), key=lambda name: ("over" in name, name))
        for name in names:  # claims first, then how they ended
            key, what, *over = name.split(".")
            last = found.get(key, _Claims())
            if what == "cancelled":
                found[key] = _Claims(last.number, last.over, True)
            elif not over and int(what) > last.number:
                found[key] = _Claims(int(what), False, last.cancelled)
            elif over == ["over"] and int(what) == last.number:
                found[key] = _Claims(last.number, True, last.cancelled)
        return found

    def _ended(self) -> set[str]:
        return {name.removesuffix(".json") for name in os.listdir(self._results_folder) if name.endswith(".json")}

    def _results(self) -> dict[str, Result]:
        found = {}
        for key in self._ended():
            path = self._results_folder / f"{key}.json"
            with suppress(FileNotFoundError):  # it was made to wait again since
                seen = path.stat()
                mark = (seen.st_mtime_ns, seen.st_ino)
                if key not in self._kept or self._kept[key][0] != mark:
                    result = Result.from_dict(json.loads(path.read_text(encoding="utf-8")))
                    self._kept[key] = (mark, result, seen.st_mtime)
                found[key] = self._kept[key][1]
        return found

    def _take(self, key: str, number: int, worker: str, tries: int) -> bool:
        path = self._claims_folder / f"{key}.{number}"
        reached, _ = last_of(self.reports([key]).get(key, {}))
        said = {**asdict(Holder.here(worker)), "tries": tries, "reached": reached, "at": self._now()}
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        except FileExistsError:  # where locks do not hold between machines, this still does
            return False
        _lock(descriptor, wait=True)  # before there is anything to read: whoever can read it finds it locked
        os.write(descriptor, json.dumps(said).encode())
        self._let_go(key)
        self._held[key] = (descriptor, path)
        return True

    def _sweep(self, claims: Mapping[str, _Claims], ended: set[str]) -> list[tuple[str, _Claims]]:
        """End claims whose holders are gone; the board is held."""
        now = self._now()
        swept = []
        for key, last in claims.items():
            path = self._claims_folder / f"{key}.{last.number}"
            if last.live and key not in ended and self._stale(path, now):
                said = _read(path) or {}
                self._end(key, path, last_words(said.get("worker", "")), counts=True)
                swept.append((key, last))
        return swept

    def _stale(self, path: Path, now: float) -> bool:
        said = _read(path)
        if said is None:  # its writer held the board, as we do now; so it is gone
            return True
        holder = Holder(said["worker"], said["machine"], said["process"], said["since"])
        if holder.gone() or now - (_changed(path) or now) > self.patience:
            return True
        if holder.machine != this_machine():
            return False
        # a lock goes with its process, even where process ids deceive
        descriptor = os.open(path, os.O_RDWR)
        try:
            return _lock(descriptor, wait=False)
        finally:
            os.close(descriptor)

    def _give_back(self, key: str, error: str | None, *, counts: bool) -> bool:
        with self._changing():
            mine = self.heartbeat(key)
            if mine:
                self._end(key, self._held[key][1], error, counts=counts)
        self._let_go(key)
        return mine

    def _end(self, key: str, path: Path, error: str | None, *, counts: bool) -> None:
        said = _read(path) or {}
        reached, now = said.get("reached"), last_of(self.reports([key]).get(key, {}))[0]
        further = now is not None and (reached is None or now > reached)
        tries = int(said.get("tries", 1))
        used = 0 if further else tries if counts else tries - 1
        _write(_over(path), {"tries": used, "error": error})
        if used >= self.tries:
            self._fail(key, error)

    def _used(self, key: str, last: _Claims) -> tuple[int, str | None]:
        if last.number == 0:
            return 0, None
        said = _read(_over(self._claims_folder / f"{key}.{last.number}")) or {}
        return int(said.get("tries", 0)), said.get("error")

    def _fail(self, key: str, error: str | None) -> None:
        result = Result(self._trials()[key], status="failed", error=error)
        _write(self._results_folder / f"{key}.json", result.to_dict())

    def _let_go(self, key: str) -> None:
        with self._holding:
            held = self._held.pop(key, None)
            if held is not None:
                os.close(held[0])


def _state(last: _Claims, result: Result | None) -> StateName:
    if result is not None:
        return result.status
    return "cancelled" if last.cancelled else "running" if last.live else "waiting"


def _lock(descriptor: int, *, wait: bool) -> bool:
    """Lock an open file; without waiting, say whether nobody else had it."""
    try:
        import fcntl
    except ImportError as missing:
        raise OSError("FileBoard needs a system with flock (Linux, macOS); use SqlBoard instead") from missing
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _over(path: Path) -> Path:
    return path.with_name(f"{path.name}.over")


def _changed(path: Path) -> float | None:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return None


def _write(path: Path, said: Mapping[str, Any]) -> None:
    """Write a file aside, in the folder above so that no listing meets it, and rename it; the board is held."""
    part = path.parent.parent / f"{path.name}.part"
    with part.open("w", encoding="utf-8") as file:
        json.dump(said, file)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def _append(path: Path, said: object) -> None:
    """Append a line.  It begins with a line break, so that half a line of somebody who died spoils no other."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    line = f"\n{json.dumps(said)}\n".encode()
    try:
        if os.write(descriptor, line) != len(line):
            raise OSError(f"{path} could not be written to its end")
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _read(path: Path) -> dict[str, Any] | None:
    """What a small file says; ``None`` if it is not there or was not written to its end."""
    try:
        said: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, json.JSONDecodeError):
        return None
    return said


def _lines(path: Path) -> list[Any]:
    try:
        return _parsed(path.read_bytes())
    except FileNotFoundError:
        return []


def _parsed(text: bytes) -> list[Any]:
    found = []
    for line in text.split(b"\n"):
        with suppress(json.JSONDecodeError, UnicodeDecodeError):  # half a line: whoever wrote it died, and will again
            found.append(json.loads(line))
    return found
