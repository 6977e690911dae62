"""The board of a study: which trials wait, which run, what came out.

Two boards mean the same: `likewise.protocols.file_board.FileBoard` is a folder and needs nothing but Python,
`likewise.protocols.sql_board.SqlBoard` is a database that many machines share.

A trial is claimed by one worker at a time.  The claim of a process that is gone, or that has not been heard of for
``patience`` seconds, ends, and the trial waits again; after ``tries`` claims in a row that got no further than those
before them it has failed.  So a worker that is killed loses what it did for one trial since the last checkpoint, no
trial is lost, and a trial that kills its worker does not do so for ever.
"""

from __future__ import annotations

import os
import socket
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from likewise.formula import whole_number
from likewise.protocols.trial import Result, Trial

StateName = Literal["waiting", "running", "done", "failed", "pruned", "cancelled"]
STATES: tuple[StateName, ...] = ("waiting", "running", "done", "failed", "pruned", "cancelled")

Reports = dict[int, float]
"""What a trial measured on its way: values by step."""


@dataclass(frozen=True)
class Standing:
    """How a trial stands.

    Args:
        trial: which one.
        state: ``"waiting"``, ``"running"``, ``"done"``, ``"failed"``, ``"pruned"`` or ``"cancelled"``.
        worker: who runs it, or ran it last.
        tries: how many claims there were in a row that got no further than those before them, this one included.
        started: when the last claim began, in seconds since 1970 by the clock of the board.
        beat: when the worker was heard of last.
        ended: when the result came.
        step: the last step that was reported.
        value: what was reported for it.
        error: what went wrong in the last claim that ended without a result, if something did.

    Examples:
        >>> Standing(Trial("contrastive", {})).state
        'waiting'
    """

    trial: Trial
    state: StateName = "waiting"
    worker: str = ""
    tries: int = 0
    started: float | None = None
    beat: float | None = None
    ended: float | None = None
    step: int | None = None
    value: float | None = None
    error: str | None = None


class Board(Protocol):
    """Which trials wait, which run, what came out; every operation is whole or has not happened.

    Examples:
        >>> import tempfile
        >>> from likewise.protocols.file_board import FileBoard
        >>> board: Board = FileBoard(tempfile.mkdtemp())
        >>> _ = board.add([Trial("contrastive", {}, seed=1), Trial("contrastive", {}, seed=2)])
        >>> trial = board.claim("me")
        >>> trial.seed, board.finish(Result(trial, val={"MAP@R": 0.5}))
        (1, True)
        >>> board.counts()["waiting"], [result.val["MAP@R"] for result in board.results()]
        (1, [0.5])
    """

    def add(self, trials: Sequence[Trial]) -> list[Trial]:
        """Put trials on the board, all or none of them; those it has already stay as they are.

        Returns:
            The new ones.
        """

    def claim(self, worker: str) -> Trial | None:
        """Take the first trial that waits; no two workers get the same one.

        ``None`` if none waits; one may again while `counts` says that something runs.
        """

    def heartbeat(self, key: str) -> bool:
        """Say that the claim of this board object lives.

        Returns:
            Whether to go on: false if the claim was lost, or the trial cancelled, or finished by somebody else.
        """

    def report(self, key: str, step: int, value: float) -> None:
        """Keep a value that was measured on the way; the last one for a step stands.  It is a heartbeat, too."""

    def finish(self, result: Result) -> bool:
        """Keep a result.  The first one stands, unless it says failed and this one does not.

        From a worker that has lost its claim, because another one has it now or the trial was cancelled, ``"done"`` is
        kept, since work that was done is; ``"failed"`` and ``"pruned"`` are not, since that may be how it stopped.

        Returns:
            Whether it was kept.
        """

    def give_up(self, key: str, error: str) -> bool:
        """End the claim of this board object with an error: the trial waits for its next try, or has failed.

        An error that another try cannot mend is a result instead: `finish` with the status ``"failed"``.

        Returns:
            Whether there was such a claim.
        """

    def put_back(self, key: str) -> bool:
        """End the claim of this board object because the worker stops: the trial waits, and the try does not count."""

    def sweep(self) -> list[str]:
        """End the claims of workers that are gone; `claim` does it first.  Returns their keys."""

    def cancel(self, keys: Iterable[str] | None = None) -> list[str]:
        """Let trials that wait not be run, and those that run stop at their next heartbeat; by default all of them.

        Returns:
            The keys of those that were cancelled.
        """

    def again(self, keys: Iterable[str] | None = None) -> list[str]:
        """Let trials that failed or were cancelled wait again, as if never tried; by default all of them.

        Returns:
            The keys of those that wait again.
        """

    def trials(self) -> list[Trial]:
        """All trials, in the order in which they were added."""

    def results(self) -> list[Result]:
        """All results, in the order in which their trials were added."""

    def reports(self, keys: Iterable[str] | None = None) -> dict[str, Reports]:
        """What was measured on the way, by key and step; by default of all trials."""

    def states(self) -> list[Standing]:
        """How each trial stands, in the order in which they were added."""

    def counts(self) -> dict[StateName, int]:
        """How many trials are in each state."""


@dataclass(frozen=True)
class Holder:
    """Who holds a claim.

    Args:
        worker: its name, for people.
        machine: where it runs; process ids mean the same inside one such name, and only there.
        process: its process id.
        since: when the process began, because ids are used again; empty where the system does not say.

    Examples:
        >>> Holder.here("me").gone()
        False
    """

    worker: str
    machine: str
    process: int
    since: str

    @classmethod
    def here(cls, worker: str) -> Holder:
        """This process."""
        return cls(worker, this_machine(), os.getpid(), _began(os.getpid()) or "")

    def gone(self) -> bool:
        """Whether it is known to have ended; nothing is known of processes on other machines."""
        if self.machine != this_machine():
            return False
        if self.since:
            return _began(self.process) != self.since
        try:
            os.kill(self.process, 0)
        except ProcessLookupError:
            return True
        except PermissionError:  # somebody else's, so it is there
            return False
        return False


def this_machine() -> str:
    """A name for this machine since it was started, and for this container if it is one.

    Examples:
        >>> this_machine() == this_machine()
        True
    """
    boot = Path("/proc/sys/kernel/random/boot_id")
    space = Path("/proc/self/ns/pid")
    try:
        return f"{socket.gethostname()} {boot.read_text().strip()} {os.readlink(space)}"
    except OSError:  # not Linux
        return socket.gethostname()


def _began(process: int) -> str | None:
    """When a process began, in the kernel's ticks; ``None`` if it has ended or the system does not say."""
    try:
        words = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    state, began = words[0], words[19]
    return None if state in "ZX" else began  # a zombie has ended; only its parent has not asked yet


def last_words(worker: str) -> str:
    """What is said for a worker that could not.

    Examples:
        >>> last_words("gpu 3")
        'the process of gpu 3 ended before the trial did, or was not heard of for too long'
    """
    return f"the process of {worker or 'a worker'} ended before the trial did, or was not heard of for too long"


def merge(board: Board, other: Board) -> list[str]:
    """Bring what another board knows to this one: its trials, its results, and what was measured on the way.

    Trials that wait or run there wait here; a result that is here already stays, unless it says failed.

    Returns:
        The keys whose results are new here.

    Examples:
        >>> import tempfile
        >>> from likewise.protocols.file_board import FileBoard
        >>> here, there = FileBoard(tempfile.mkdtemp()), FileBoard(tempfile.mkdtemp())
        >>> _ = here.add([Trial("contrastive", {})]), there.add(here.trials())
        >>> there.finish(Result(there.claim("far away"), val={"MAP@R": 0.5}))
        True
        >>> len(merge(here, there)), here.counts()["done"], merge(here, there)
        (1, 1, [])
    """
    board.add(other.trials())
    measured = other.reports()
    brought = []
    for result in other.results():
        key = result.key
        if board.finish(result):
            brought.append(key)
            for step, value in measured.get(key, {}).items():
                board.report(key, step, value)
    return brought


def may_replace(old: StateName, new: str, *, mine: bool) -> bool:
    """Whether a result is kept, by the state that the trial is in: see `Board.finish`.

    Args:
        old: the state.
        new: the status of the result.
        mine: whether whoever brings it holds the trial.

    Examples:
        >>> may_replace("running", "pruned", mine=True), may_replace("failed", "done", mine=False)
        (True, True)
        >>> may_replace("running", "pruned", mine=False), may_replace("done", "done", mine=False)
        (False, False)
    """
    if old in ("running", "cancelled"):
        return mine or new == "done"
    return old == "waiting" or (old == "failed" and new != "failed")


def tally(names: Iterable[StateName]) -> dict[StateName, int]:
    """How many of each state, with a zero for those that there are none of.

    Examples:
        >>> tally(["done", "done", "failed"])["done"]
        2
    """
    counted = Counter(names)
    return {name: counted[name] for name in STATES}


def checked_limits(patience: float, tries: int) -> tuple[float, int]:
    """Check how long to wait for a worker, and how often to try.

    Examples:
        >>> checked_limits(60, 3)
        (60.0, 3)
    """
    if not patience > 0:
        raise ValueError(f"patience must be a number of seconds > 0, but it is {patience!r}")
    return float(patience), whole_number("tries", tries, 1)


def last_of(reports: Mapping[int, float]) -> tuple[int | None, float | None]:
    """The last step that was reported, and its value.

    Examples:
        >>> last_of({1: 0.5, 2: 0.75}), last_of({})
        ((2, 0.75), (None, None))
    """
    step = max(reports, default=None)
    return (None, None) if step is None else (step, reports[step])
