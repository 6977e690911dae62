"""Running a study from the command line: options, the executor, and what is shown meanwhile."""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from likewise.app import UserError, making, sentence
from likewise.cli.arguments import Arguments
from likewise.cli.screen import paragraph
from likewise.protocols import (
    Executor,
    ExecutorBroken,
    LocalExecutor,
    RayExecutor,
    Study,
    Trial,
    TrialState,
    fitting_workers,
    in_shard,
    interruptible,
    reporter,
    run_missing,
)

INTERRUPTED = 130
"""The exit code after Ctrl-C."""


@dataclass(frozen=True)
class Execution:
    """Where the trials of a study run, and how many of them.

    Args:
        workers: how many at once at most; ``None``: as many as fit; 0: none, the study is only planned.
        per_gpu: how many share a GPU.
        on: the address of a Ray cluster; ``None``: processes of this machine.
        minutes: how long; ``None``: until nothing is missing.
        shard: its number and how many there are; ``None``: all trials.

    Examples:
        >>> Execution(workers=2).words()
        '2 workers'
    """

    workers: int | None = None
    per_gpu: int = 1
    on: str | None = None
    minutes: float | None = None
    shard: tuple[int, int] | None = None

    def count(self) -> int:
        """How many trials run at once at most; on a cluster without a limit, as far as this machine knows."""
        return fitting_workers(self.per_gpu) if self.workers is None else self.workers

    def words(self) -> str:
        """The execution in a few words."""
        if self.on is not None:
            return f"on the Ray cluster {self.on}"
        words = "1 worker" if self.count() == 1 else f"{self.count()} workers"
        return words if self.shard is None else f"shard {self.shard[0]} of {self.shard[1]}, {words}"


def add_execution_options(options: Arguments, *, shards: bool = True) -> None:
    """Add the options that `execution_of` reads."""
    options.add_argument(
        "--workers", metavar="N", type=int, help="trials at once (default: as many as fit); 0: only plan"
    )
    options.add_argument("--per-gpu", metavar="N", type=int, default=1, help="trials that share a GPU (default: 1)")
    options.add_argument("--on", metavar="ADDRESS", help="a Ray cluster that runs: auto, or host:port")
    options.add_argument("--minutes", metavar="M", type=float, help="stop after so many; the same command goes on")
    if shards:
        options.add_argument("--shard", metavar="I/N", help="run this part of the trials, into a separate table")


def execution_of(given: argparse.Namespace) -> Execution:
    """The execution that options ask for.

    Examples:
        >>> given = argparse.Namespace(workers=None, per_gpu=1, on=None, minutes=None, shard="2/3")
        >>> execution_of(given).shard
        (2, 3)
    """
    if given.workers is not None and given.workers < 0:
        raise UserError(f"--workers must be a whole number ≥ 0, but it is {given.workers}")
    if given.per_gpu < 1:
        raise UserError(f"--per-gpu must be a whole number ≥ 1, but it is {given.per_gpu}")
    if given.minutes is not None and not given.minutes > 0:
        raise UserError(f"--minutes must be a number > 0, but it is {given.minutes:g}")
    shard = None
    if getattr(given, "shard", None) is not None:
        number, _, count = given.shard.partition("/")
        if not (number.isdigit() and count.isdigit() and 1 <= int(number) <= int(count)):
            raise UserError(f"--shard must be I/N with 1 ≤ I ≤ N, such as 2/8, but it is {given.shard}")
        shard = int(number), int(count)
    return Execution(given.workers, given.per_gpu, given.on, given.minutes, shard)


def run_trials(
    folder: Path, study: Study, how: Execution, *, metric: str, plan: Callable[[], object] | None = None
) -> int:
    """Run what is missing in a study that this process holds.

    Args:
        folder: of the study.
        study: its table, or that of a shard.
        how: where and how many.
        metric: whose validation is reported on the way.
        plan: adds trials and cancels them: see `likewise.protocols.run_missing`.

    Returns:
        0, also if the time was over; 1 if trials could not run; 130 if it was interrupted: what was done is stored,
        and the same command goes on.
    """
    if how.workers == 0:
        if plan is not None:
            plan()
        return 0
    shard, screen = how.shard, _Screen()
    with ExitStack() as held:
        with making("--on"):
            executor = make_executor(folder, study, how, metric)
        held.enter_context(interruptible())
        held.enter_context(screen)
        try:
            run_missing(
                study,
                executor,
                plan=plan,
                only=None if shard is None else lambda key: in_shard(key, shard),
                seconds=math.inf if how.minutes is None else 60 * how.minutes,
                watch=lambda running: screen.show(study.states(), running),
            )
        except KeyboardInterrupt:
            return INTERRUPTED
        except ExecutorBroken as error:
            print(sentence(error), file=sys.stderr)
            return 1
        finally:
            screen.show(study.states(), {})
    return 0


def make_executor(folder: Path, study: Study, how: Execution, metric: str) -> Executor:
    """The executor that runs the trials of a study."""
    from likewise.app import run_trial

    run = partial(run_trial, folder=folder, metric=metric)
    if how.on is not None:
        return RayExecutor(run, reporter(study), address=how.on, workers=how.workers, per_gpu=how.per_gpu)
    return LocalExecutor(run, reporter(study), workers=how.count(), per_gpu=how.per_gpu, logs=folder)


class _Screen:
    """A live table on a terminal; elsewhere a line whenever a trial has ended."""

    def __init__(self) -> None:
        self._live: Any = None
        self._last = -1
        self._begin = time.monotonic()
        self._before: int | None = None
        self._has_failed = False

    def __enter__(self) -> _Screen:
        if sys.stdout.isatty():
            try:
                from rich.live import Live
            except ImportError:
                return self
            self._live = Live(refresh_per_second=4, transient=False)
            self._live.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        if self._live is not None:
            self._live.__exit__(*error)

    def show(self, states: list[TrialState], running: Mapping[str, str]) -> None:
        """Show the states of all trials and where some of them run."""
        failed = next((each for each in states if each.state == "failed"), None)
        if failed is not None and not self._has_failed:
            self._has_failed = True
            print(paragraph(f"first failure: {describe(failed.trial)}: {failed.error}"), flush=True)
        if self._live is not None:
            self._live.update(self._table(states, running))
            return
        ended = _ended(states)
        if ended != self._last:
            self._last = ended
            print(self._summary(states), flush=True)

    def _table(self, states: list[TrialState], running: Mapping[str, str]) -> Any:
        from rich.table import Table

        shown = Table(title=self._summary(states), title_justify="left", box=None, pad_edge=False)
        for column in ("trial", "state", "where", "step", "validation"):
            shown.add_column(column)
        ended = [each for each in states if each.state in ("done", "failed", "pruned")][-8:]
        for each in (*ended, *(one for one in states if one.trial.key in running)):
            where = running.get(each.trial.key)
            state = each.state if where is None else "running"
            value = "" if each.value is None else f"{100 * each.value:.1f}"
            style = {"running": "bold", "failed": "red"}.get(state, "")
            step = "" if each.step is None else str(each.step)
            shown.add_row(describe(each.trial), state, where or "", step, value, style=style)
        return shown

    def _summary(self, states: list[TrialState]) -> str:
        ended = _ended(states)
        if self._before is None:
            self._before = ended  # in earlier processes
        fresh, seconds = ended - self._before, time.monotonic() - self._begin
        left = len(states) - ended
        ahead = f", about {_minutes(seconds / fresh * left)} left" if fresh and left else ""
        failed = sum(each.state == "failed" for each in states)
        wrong = f", {failed} failed" if failed else ""
        return f"{ended} of {len(states)} trainings done{wrong}{ahead}"


def _ended(states: list[TrialState]) -> int:
    return sum(each.state in ("done", "failed", "pruned") for each in states)


def describe(trial: Trial) -> str:
    """A trial in a few words.

    Examples:
        >>> describe(Trial("circle", {}, seed=1, labels={"dim": 64}))
        'circle, dim 64, seed 1'
    """
    labels = [f"{name} {value}" for name, value in trial.labels.items() if name not in ("data", "trunk")]
    fold = [f"fold {trial.fold}"] if trial.fold else []
    return ", ".join([trial.method, *labels, f"seed {trial.seed}", *fold])


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
