"""Workers on one machine: as many processes as fit its devices, a live table of what they do, and a clean stop."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from likewise.data import cores
from likewise.protocols import Board, Standing

POLL = 0.5
"""Seconds between two looks at the board."""

LOOK = 15.0
"""Seconds between two times that more may be planned."""

DEATHS = 3
"""How often in a row each worker may die while the study gets no further."""


def fitting() -> int:
    """How many workers fit this machine: one for each GPU, or one for each core, at most eight.

    Examples:
        >>> fitting() >= 1
        True
    """
    return torch.cuda.device_count() if torch.cuda.is_available() else max(1, min(8, cores()))


def run_workers(
    folder: Path,
    board: Board,
    count: int,
    *,
    seconds: float = math.inf,
    plan: Callable[[], object] | None = None,
) -> int:
    """Run workers until nothing is left to do; one that dies is replaced, as long as work is left and gets done.

    Args:
        folder: of the study.
        board: its board.
        count: how many processes, at most.
        seconds: after so many they are asked to stop, which may take some more; what they have begun waits, with its
            checkpoint, for the next.
        plan: called first, now and then, and when nothing is left; trials that it adds are worked on, too.

    Returns:
        0, also if the time was over; 1 if workers died for no trial's sake, so that something is left; 130 if it was
        interrupted: what was done is kept, and the same command goes on.
    """
    until, looked, late = time.monotonic() + seconds, -math.inf, False
    with _screen() as show, interruptible():
        try:
            with _Crew(folder, board, count, more=plan is not None) as crew:
                while time.monotonic() < until:
                    if look := not crew.works() or time.monotonic() > looked + LOOK:
                        if plan is not None:
                            plan()
                        looked = time.monotonic()
                    if not crew.fill(look):
                        break
                    show(board.states())
                    time.sleep(POLL)
                else:
                    late = True
        except KeyboardInterrupt:
            show(board.states())
            return 130
        show(board.states())
    if _left(board) and not late:
        print(f"the workers ended before their work was done: {folder / 'worker-1.log'} says why", file=sys.stderr)
        return 1
    return 0


class _Crew:
    """The workers of one machine, each in its place.

    Args:
        folder: of the study.
        board: its board.
        count: how many, at most.
        more: whether trials are added meanwhile, for which who found nothing left is called back.
    """

    def __init__(self, folder: Path, board: Board, count: int, *, more: bool) -> None:
        self.folder, self.board, self.count, self.more = folder, board, count, more
        self.workers: list[subprocess.Popen[bytes]] = []
        self._idle, self._before, self._gone = 0, _progress(board), 0

    def __enter__(self) -> _Crew:
        return self

    def __exit__(self, *_: object) -> None:
        _stop(self.workers)  # whatever happened, nobody trains on alone

    def works(self) -> bool:
        """Whether anybody does."""
        return any(worker.poll() is None for worker in self.workers)

    def fill(self, look: bool) -> bool:
        """Start as many as there is work for; whether anybody worked at the beginning, or was started.

        Args:
            look: whether to look at the board although nobody has ended since the last time.
        """
        ended = [number for number, worker in enumerate(self.workers) if worker.poll() is not None]
        living, started = len(self.workers) - len(ended), 0
        if living < self.count and (look or not living or len(ended) > self._gone):
            # what a dead one had waits again; who finds that others have it all waits for these
            wanted = min(self.count, _left(self.board)) - living
            free = [number for number in ended if self.more or self.workers[number].returncode]
            if self.more or not self.workers:
                free += range(len(self.workers), self.count)
            for number in free[: max(0, wanted)]:
                if number < len(self.workers) and self._in_vain():
                    break
                self.workers[number : number + 1] = [_start(self.folder, number)]
                started += 1
            self._gone = max(0, len(ended) - started)
        return living > 0 or started > 0

    def _in_vain(self) -> bool:
        """Whether too many have been replaced while the study got no further."""
        most = DEATHS * len(self.workers)
        if self._idle <= most:
            now = _progress(self.board)
            self._idle = self._idle + 1 if now == self._before else 1
            self._before = now
        return self._idle > most


def _left(board: Board) -> int:
    """How many trials have no result yet."""
    board.sweep()
    counts = board.counts()
    return counts["waiting"] + counts["running"]


def _progress(board: Board) -> tuple[int, int]:
    """A mark that changes when a trial ends or gets further."""
    states = board.states()
    return sum(each.ended is not None for each in states), sum(each.step or 0 for each in states)


@contextmanager
def interruptible() -> Iterator[None]:
    """SIGTERM and the end of a terminal mean what Ctrl-C means: else workers would go on without anybody, or end without a word."""

    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    asked = [signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])]
    main = threading.current_thread() is threading.main_thread()
    # nohup has told us not to listen
    before = {each: signal.getsignal(each) for each in asked if main and signal.getsignal(each) != signal.SIG_IGN}
    for each in before:
        signal.signal(each, interrupt)
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _device(number: int) -> str:
    """The GPU of a worker, among those that this process may see."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    names = [name for name in visible.split(",") if name] or [str(each) for each in range(torch.cuda.device_count())]
    return names[number % len(names)]


def _start(folder: Path, number: int) -> subprocess.Popen[bytes]:
    environment = dict(os.environ)
    if torch.cuda.is_available():
        environment["CUDA_VISIBLE_DEVICES"] = _device(number)
    else:
        # one thread, whatever the number of workers: its numbers do not depend on how many others there are
        environment["OMP_NUM_THREADS"] = "1"
    command = [sys.executable, "-m", "likewise.cli", "work", str(folder), "--name", f"worker {number + 1}"]
    log = (folder / f"worker-{number + 1}.log").open("ab")
    with log:
        # a group of its own: Ctrl-C reaches this process, which then asks its workers to stop
        return subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)


def _stop(workers: list[subprocess.Popen[bytes]]) -> None:
    """Ask for a checkpoint and an end; insist after a while.

    They are asked twice: a training that was at its end anyway has not listened, and the next one has begun.
    """
    for seconds in (20.0, 40.0):
        for worker in workers:
            if worker.poll() is None:
                worker.send_signal(signal.SIGTERM)
        limit = time.monotonic() + seconds
        while any(worker.poll() is None for worker in workers) and time.monotonic() < limit:
            time.sleep(0.05)
    for worker in workers:
        if worker.poll() is None:
            worker.kill()
            worker.wait()


class _screen:  # noqa: N801
    """A live table on a terminal; a line whenever something is finished, elsewhere."""

    def __init__(self) -> None:
        self._live: Any = None
        self._said = -1
        self._begun = time.monotonic()
        self._before: int | None = None

    def __enter__(self) -> Callable[[list[Standing]], None]:
        if sys.stdout.isatty():
            try:
                from rich.live import Live
            except ImportError:
                return self._print
            self._live = Live(refresh_per_second=4, transient=False)
            self._live.__enter__()
            return self._draw
        return self._print

    def __exit__(self, *error: Any) -> None:
        if self._live is not None:
            self._live.__exit__(*error)

    def _draw(self, states: list[Standing]) -> None:
        from rich.table import Table

        shown = Table(title=self._summary(states), title_justify="left", box=None, pad_edge=False)
        for column in ("trial", "state", "worker", "step", "validation"):
            shown.add_column(column)
        running = [each for each in states if each.state == "running"]
        ended = [each for each in states if each.state in ("done", "failed", "pruned")][-8:]
        for each in (*ended, *running):
            value = "" if each.value is None else f"{100 * each.value:.1f}"
            style = {"running": "bold", "failed": "red"}.get(each.state, "")
            step = "" if each.step is None else str(each.step)
            shown.add_row(describe(each), each.state, each.worker, step, value, style=style)
        self._live.update(shown)

    def _print(self, states: list[Standing]) -> None:
        ended = sum(each.state in ("done", "failed", "pruned") for each in states)
        if ended != self._said:
            self._said = ended
            print(self._summary(states), flush=True)

    def _summary(self, states: list[Standing]) -> str:
        ended = sum(each.state in ("done", "failed", "pruned") for each in states)
        if self._before is None:
            self._before = ended  # by earlier processes
        fresh, seconds = ended - self._before, time.monotonic() - self._begun
        left = len(states) - ended
        ahead = f", about {_minutes(seconds / fresh * left)} left" if fresh and left else ""
        failed = sum(each.state == "failed" for each in states)
        wrong = f", {failed} failed" if failed else ""
        return f"{ended} of {len(states)} trainings done{wrong}{ahead}"


def describe(standing: Standing) -> str:
    """A trial in a few words.

    Examples:
        >>> from likewise.protocols import Trial
        >>> describe(Standing(Trial("circle", {}, seed=1, labels={"dim": 64})))
        'circle, dim 64, seed 1'
    """
    trial = standing.trial
    labels = [f"{name} {value}" for name, value in trial.labels.items() if name not in ("data", "trunk")]
    fold = [f"fold {trial.fold}"] if trial.fold else []
    return ", ".join([trial.method, *labels, f"seed {trial.seed}", *fold])


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
