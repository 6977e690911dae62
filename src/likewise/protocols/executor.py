"""Executors, which run trials, and the driver of a study, which submits missing trials and stores their results."""

from __future__ import annotations

import math
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from likewise.protocols.search import is_hopeless
from likewise.protocols.study import Study
from likewise.protocols.trial import Result, Trial

Report: TypeAlias = Callable[[str, int, float], bool]
"""``report(key, step, value) -> should_continue``: called in the driver for every intermediate value of a trial."""

Runner: TypeAlias = Callable[[Trial, Callable[[int, float], bool]], Result]
"""A function that runs one trial; it calls ``report(step, value)`` for intermediate values and stops if that is false.

Executors that start processes pickle it, so it must be a function of a module or a `functools.partial` of one.
"""

PLAN_SECONDS = 15.0
"""Seconds between two calls of the planner of `run_missing` while trials run."""


@dataclass(frozen=True)
class Ended:
    """The end of a trial that was submitted.

    Args:
        trial: the trial.
        result: its result; ``None`` if it ended without one.
        error: why it ended without a result; ``None`` if it was canceled or stopped.

    Examples:
        >>> Ended(Trial("contrastive", {}), error="the process of worker 1 ended before the trial").result is None
        True
    """

    trial: Trial
    result: Result | None = None
    error: str | None = None


class TrialCancelled(Exception):  # noqa: N818
    """Raised by the report of a trial after it was canceled; executors catch it.

    Examples:
        >>> issubclass(TrialCancelled, Exception)
        True
    """


class ExecutorBroken(RuntimeError):  # noqa: N818
    """Raised if an executor cannot run any trial; missing trials stay missing.

    Examples:
        >>> issubclass(ExecutorBroken, RuntimeError)
        True
    """


class Executor(Protocol):
    """The interface of executors, which `run_missing` uses.

    Examples:
        >>> executor: Executor = SerialExecutor(lambda trial, report: Result(trial), lambda *_: True)
        >>> executor.room()
        1
    """

    def room(self) -> int:
        """Number of additional trials that can run now."""

    def submit(self, trial: Trial) -> None:
        """Start a trial, or queue it if there is no room."""

    def results(self, timeout: float = 0.5) -> list[Ended]:
        """Return the trials that have ended since the last call; wait up to ``timeout`` seconds for one.

        Meanwhile, reports of running trials are answered.
        """

    def cancel(self, key: str) -> None:
        """Stop a trial at its next report; it ends without a result and without an error."""

    def running(self) -> Mapping[str, str]:
        """Return the submitted trials that have not ended: where each runs, by key."""

    def stop(self) -> list[Ended]:
        """Ask all trials to save a checkpoint and end, and return those that ended; it can be called twice."""


class SerialExecutor:
    """Runs trials in this process, one after the other, inside `results`.

    Args:
        run: the function that runs a trial.
        report: called for every intermediate value of a trial.

    Examples:
        >>> def run(trial, report):
        ...     return Result(trial, "done" if report(1, 0.5) else "pruned")
        >>> executor = SerialExecutor(run, lambda key, step, value: value > 0.9)
        >>> executor.submit(Trial("contrastive", {}))
        >>> [ended.result.status for ended in executor.results()]
        ['pruned']
    """

    def __init__(self, run: Runner, report: Report) -> None:
        self._run, self._report = run, report
        self._queue: list[Trial] = []
        self._canceled: set[str] = set()

    def room(self) -> int:
        """Number of additional trials that can run now."""
        return 0 if self._queue else 1

    def submit(self, trial: Trial) -> None:
        """Queue a trial."""
        self._queue.append(trial)

    def results(self, timeout: float = 0.5) -> list[Ended]:
        """Run the next trial and return its end."""
        if not self._queue:
            return []
        trial = self._queue[0]
        try:
            ended = run_one(self._run, trial, self._answer)
        finally:
            self._queue.pop(0)
            self._canceled.discard(trial.key)
        return [ended]

    def cancel(self, key: str) -> None:
        """Stop a trial at its next report."""
        self._canceled.add(key)

    def running(self) -> Mapping[str, str]:
        """Return the trials that have not ended."""
        return {trial.key: "this process" for trial in self._queue}

    def stop(self) -> list[Ended]:
        """Drop queued trials."""
        ended = [Ended(trial) for trial in self._queue]
        self._queue.clear()
        return ended

    def _answer(self, key: str, step: int, value: float) -> bool | None:
        return None if key in self._canceled else self._report(key, step, value)


def run_one(run: Runner, trial: Trial, ask: Callable[[str, int, float], bool | None]) -> Ended:
    """Run one trial in this process; an error is printed, and returned as one line of an `Ended`.

    Args:
        run: the function that runs a trial.
        trial: the trial.
        ask: a function of key, step and value that returns whether to continue; ``None`` if the trial was canceled.

    Examples:
        >>> run_one(lambda trial, report: Result(trial), Trial("contrastive", {}), lambda *_: True).result.status
        'done'
    """

    def report(step: int, value: float) -> bool:
        answer = ask(trial.key, step, value)
        if answer is None:
            raise TrialCancelled
        return answer

    try:
        return Ended(trial, run(trial, report))
    except TrialCancelled:
        return Ended(trial)
    except Exception as error:
        traceback.print_exc()
        return Ended(trial, error=f"{type(error).__name__}: {' '.join(str(error).split())}")


def reporter(study: Study, *, prune: bool = True) -> Report:
    """Return the report function of a study, which stores values in its table and prunes trials of a search.

    Args:
        study: the table.
        prune: whether trials are pruned; see `likewise.protocols.prune`.

    Examples:
        >>> import tempfile
        >>> study = Study(tempfile.mkdtemp() + "/study.db")
        >>> [trial] = study.add([Trial("contrastive", {})])
        >>> reporter(study)(trial.key, 1, 0.5), study.reports()[trial.key]
        (True, {1: 0.5})
    """

    def report(key: str, step: int, value: float) -> bool:
        study.report(key, step, value)
        trial = study.trial(key)
        return not (prune and trial.stage == "search" and is_hopeless(study, trial))

    return report


def run_missing(
    study: Study,
    executor: Executor,
    *,
    plan: Callable[[], object] | None = None,
    only: Callable[[str], bool] | None = None,
    seconds: float = math.inf,
    tries: int = 3,
    watch: Callable[[Mapping[str, str]], object] | None = None,
) -> bool:
    """Run the missing trials of a study on an executor, and store their results.

    A trial that ends without a result, because its process was killed or raised an error, is submitted again.  It has failed
    after ``tries`` consecutive attempts without progress.  When this function ends, for any reason, running trials are asked
    to save a checkpoint, and the results that they return are stored.

    Args:
        study: the table.
        executor: the executor that runs the trials.
        plan: a function that can add and cancel trials; called at the start, every 15 seconds, and when no trial is missing.
        only: a function of the key that selects the trials to run; the others stay missing.
        seconds: the time after which no trial is started and running trials are stopped.
        tries: the number of attempts without progress after which a trial has failed.
        watch: called twice a second with the running trials.

    Returns:
        Whether all selected trials have a result.

    Examples:
        >>> import tempfile
        >>> study = Study(tempfile.mkdtemp() + "/study.db")
        >>> _ = study.add([Trial("contrastive", {}, seed=1), Trial("contrastive", {}, seed=2)])
        >>> run_missing(study, SerialExecutor(lambda trial, report: Result(trial), reporter(study)))
        True
        >>> study.counts()["done"]
        2
    """
    record = _Record(study, tries)
    until, planned = time.monotonic() + seconds, -math.inf
    try:
        while time.monotonic() < until:
            missing = _missing(study, only)
            if plan is not None and (not missing or time.monotonic() > planned + PLAN_SECONDS):
                plan()
                planned, missing = time.monotonic(), _missing(study, only)
            running = executor.running()
            for key in running.keys() - missing.keys():
                executor.cancel(key)
            waiting = [trial for key, trial in missing.items() if key not in running]
            for trial in waiting[: executor.room()]:
                executor.submit(trial)
            if not executor.running():
                return True
            if watch is not None:
                watch(executor.running())
            record.store(executor.results())
    finally:
        record.store(executor.stop())
    return not _missing(study, only)


def _missing(study: Study, only: Callable[[str], bool] | None) -> dict[str, Trial]:
    return {trial.key: trial for trial in study.missing() if only is None or only(trial.key)}


class _Record:
    """Stores results, and counts attempts without a result.

    Args:
        study: the table.
        tries: the number of attempts without progress after which a trial has failed.
    """

    def __init__(self, study: Study, tries: int) -> None:
        self.study, self.tries = study, tries
        self._attempts: dict[str, int] = {}
        self._reached: dict[str, int] = {}

    def store(self, ends: list[Ended]) -> None:
        for ended in ends:
            key = ended.trial.key
            if ended.result is not None:
                self.study.finish(ended.result)
            elif ended.error is not None and self._is_last(key):
                self.study.finish(Result(ended.trial, "failed", error=ended.error))

    def _is_last(self, key: str) -> bool:
        reached = max(self.study.reports([key]).get(key, {}), default=-1)
        further = reached > self._reached.get(key, -1)
        self._reached[key] = max(reached, self._reached.get(key, -1))
        self._attempts[key] = 1 if further else self._attempts.get(key, 0) + 1
        return self._attempts[key] >= self.tries
