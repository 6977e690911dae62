"""Run the trials of a study: where, how many at once, and for how long."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeAlias

from likewise.app.errors import UserError, making
from likewise.app.trials import run_trial
from likewise.app.trust import check_names
from likewise.protocols import (
    Executor,
    LocalExecutor,
    RayExecutor,
    Report,
    Runner,
    Study,
    TrialState,
    fitting_workers,
    in_shard,
    interruptible,
    reporter,
    run_missing,
)

Watch: TypeAlias = Callable[[Sequence[TrialState], Mapping[str, str]], object]
"""Called twice a second with the states of all trials, and with the workers of running ones, by key."""


@dataclass(frozen=True)
class Execution:
    """Where the trials of a study run, how many at once, and for how long.

    Args:
        workers: maximum number of concurrent trials; ``None``: as many as fit; 0: none, the study is only planned.
        per_gpu: number of trials that share a GPU.
        on: the address of a Ray cluster; ``None``: processes of this machine.
        minutes: time limit; ``None``: until nothing is missing.
        shard: the shard to run: its number, from 1, and the number of shards; ``None``: all trials.
        allow: packages, modules and classes that trials may use in addition to the listed ones.
        places: locations on this machine, such as ``{"data.root": "/data/birds"}``; the trials stay the same.

    Examples:
        >>> str(Execution(workers=2))
        '2 workers'
        >>> Execution(minutes=float("nan"))
        Traceback (most recent call last):
        likewise.app.errors.UserError: --minutes must be a number > 0, but it is nan
    """

    workers: int | None = None
    per_gpu: int = 1
    on: str | None = None
    minutes: float | None = None
    shard: tuple[int, int] | None = None
    allow: tuple[str, ...] = ()
    places: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.workers is not None and self.workers < 0:
            raise UserError(f"--workers must be a whole number ≥ 0, but it is {self.workers}")
        if self.per_gpu < 1:
            raise UserError(f"--per-gpu must be a whole number ≥ 1, but it is {self.per_gpu}")
        if self.minutes is not None and not self.minutes > 0:
            raise UserError(f"--minutes must be a number > 0, but it is {self.minutes:g}")
        if self.shard is not None and not 1 <= self.shard[0] <= self.shard[1]:
            number, count = self.shard
            raise UserError(f"--shard must be I/N with 1 ≤ I ≤ N, such as 2/8, but it is {number}/{count}")

    def count(self) -> int:
        """The number of trials at once at most; on a cluster without a limit, as far as this machine knows."""
        return fitting_workers(self.per_gpu) if self.workers is None else self.workers

    def __str__(self) -> str:
        if self.on is not None:
            return f"on the Ray cluster {self.on}"
        words = "1 worker" if self.count() == 1 else f"{self.count()} workers"
        return words if self.shard is None else f"shard {self.shard[0]} of {self.shard[1]}, {words}"


@contextmanager
def hold_table(study: Study) -> Iterator[None]:
    """Lock a table while this process changes it and runs its trials.

    Examples:
        >>> import tempfile
        >>> study = Study(tempfile.mkdtemp() + "/study.db")
        >>> with hold_table(study), hold_table(study):
        ...     pass
        Traceback (most recent call last):
        likewise.app.errors.UserError: ...study.db must be run by one process, but another one is running it
    """
    with ExitStack() as stack:
        try:
            stack.enter_context(study.driving())
        except RuntimeError as error:
            raise UserError(str(error)) from error
        yield


def run_trials(
    folder: Path,
    study: Study,
    execution: Execution,
    *,
    metric: str,
    plan: Callable[[], object] | None = None,
    watch: Watch | None = None,
) -> None:
    """Run the missing trials of a study that this process holds, until none is missing or the time limit is reached.

    Args:
        folder: the folder of the study.
        study: its table, or that of a shard.
        execution: where, how many at once, and for how long.
        metric: the validation metric to report.
        plan: adds trials and cancels them: see `likewise.protocols.run_missing`.
        watch: called with the states of all trials.

    Raises:
        KeyboardInterrupt: the run was interrupted; results and checkpoints are stored.
        ExecutorBroken: no trial can run.

    Examples:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> run_trials(folder, Study(folder / "study.db"), Execution(workers=0), metric="MAP@R")
    """
    if execution.workers == 0:
        if plan is not None:
            plan()
        return
    for trial in study.missing():
        check_names(trial.config, execution.allow)
    run = partial(run_trial, folder=folder, metric=metric, places=dict(execution.places), allow=execution.allow)
    with making("--on"):
        executor = choose_executor(
            run,
            reporter(study),
            workers=execution.workers,
            per_gpu=execution.per_gpu,
            on=execution.on,
            logs=folder,
        )
    shard = execution.shard
    try:
        with interruptible():
            run_missing(
                study,
                executor,
                plan=plan,
                only=None if shard is None else lambda key: in_shard(key, shard),
                seconds=math.inf if execution.minutes is None else 60 * execution.minutes,
                watch=None if watch is None else lambda running: watch(study.states(), running),
            )
    finally:
        if watch is not None:
            watch(study.states(), {})


def choose_executor(
    run: Runner, report: Report, *, workers: int | None, per_gpu: int, on: str | None, logs: Path
) -> Executor:
    """A Ray cluster if its address is given, otherwise processes of this machine.

    Args:
        run: runs one trial.
        report: called for every value that a trial reports.
        workers: number of concurrent trials; ``None``: as many as fit.
        per_gpu: number of trials that share a GPU.
        on: the address of a Ray cluster.
        logs: the folder for the output of processes.

    Examples:
        >>> choose_executor(max, max, workers=2, per_gpu=1, on=None, logs=Path()).room()
        2
    """
    if on is not None:
        return RayExecutor(run, report, address=on, workers=workers, per_gpu=per_gpu)
    return LocalExecutor(run, report, workers=workers, per_gpu=per_gpu, logs=logs)
