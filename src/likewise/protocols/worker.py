"""A worker: takes one trial after the other from a board, until there is nothing left."""

from __future__ import annotations

import os
import socket
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from likewise.protocols.board import Board
from likewise.protocols.search import hopeless
from likewise.protocols.trial import Result, Trial

Validated = Callable[[Mapping[str, Any]], bool]
Runner = Callable[[Trial, Validated], Result]
"""Runs a trial; tells every validation, and stops if the answer is no."""


class _Lost(Exception):  # noqa: N818
    """The trial was given to somebody else, or cancelled: whatever comes out here is not wanted."""


class Stopped(Exception):  # noqa: N818
    """The worker was asked to stop in the middle of a trial, which waits again.

    Examples:
        >>> issubclass(Stopped, Exception)
        True
    """


def work(
    board: Board,
    run: Runner,
    *,
    name: str | None = None,
    metric: str = "MAP@R",
    beat: float = 20.0,
    linger: float = 2.0,
    wait: bool = True,
    prune: bool = True,
) -> int:
    """Run trials until none waits and none runs.

    A trial whose process dies is run again by whoever is left; one that raises an error is tried again, as often as the
    board allows.

    Args:
        board: where trials are.
        run: makes a result of a trial.
        name: of the worker, for people.
        metric: whose validation is reported on the way.
        beat: seconds between two signs of life.
        linger: seconds between two looks at a board on which nothing waits.
        wait: stay while others still run something, in case they die; else end when nothing waits.
        prune: stop trials of a search that are hopeless.

    Returns:
        How many trials it has finished.

    Examples:
        >>> import tempfile
        >>> from likewise.protocols.file_board import FileBoard
        >>> board = FileBoard(tempfile.mkdtemp())
        >>> _ = board.add([Trial("a", {}), Trial("b", {})])
        >>> work(board, lambda trial, go_on: Result(trial, val={"MAP@R": 0.5}))
        2
    """
    name = name or f"{socket.gethostname()} {os.getpid()}"
    done = 0
    while True:
        trial = board.claim(name)
        if trial is None:
            counts = board.counts()
            if not counts["waiting"] and (not wait or not counts["running"]):
                return done
            time.sleep(linger)
            continue
        try:
            with _alive(board, trial, beat) as lost:
                result = run(trial, _told(board, trial, metric, prune, lost))
        except (KeyboardInterrupt, Stopped):
            board.put_back(trial.key)
            raise
        except _Lost:
            board.put_back(trial.key)  # there is no claim any more; what is held of it is let go
            continue
        except Exception as error:
            traceback.print_exc()
            board.give_up(trial.key, f"{type(error).__name__}: {' '.join(str(error).split())}")
            continue
        done += board.finish(result)


def _told(board: Board, trial: Trial, metric: str, prune: bool, lost: threading.Event) -> Validated:
    def go_on(validation: Mapping[str, Any]) -> bool:
        if lost.is_set():  # an error, and not an answer: the run has not ended, somebody else goes on with it
            raise _Lost
        board.report(trial.key, int(validation["step"]), float(validation[metric]))
        return not (prune and trial.stage == "search" and hopeless(board, trial))

    return go_on


@contextmanager
def _alive(board: Board, trial: Trial, beat: float) -> Iterator[threading.Event]:
    """Signs of life from another thread while a trial runs; the event is set when the claim was lost."""
    over, lost = threading.Event(), threading.Event()

    def beating() -> None:
        while not over.wait(beat):
            try:
                there = board.heartbeat(trial.key)
            except Exception:  # a database that is away for a moment; the board is patient for some beats
                traceback.print_exc()
                continue
            if not there:
                lost.set()
                return

    thread = threading.Thread(target=beating, name="likewise-heartbeat", daemon=True)
    thread.start()
    try:
        yield lost
    finally:
        over.set()
        thread.join()
