"""A worker: errors, interruptions, claims that are lost, trials that are hopeless."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from likewise.protocols.board import Board
from likewise.protocols.file_board import FileBoard
from likewise.protocols.sql_board import SqlBoard
from likewise.protocols.trial import Result, Trial
from likewise.protocols.worker import Stopped, Validated, work

TRIALS = [Trial("a", {}, seed) for seed in range(3)]


@pytest.fixture
def board(tmp_path: Path) -> FileBoard:
    board = FileBoard(tmp_path / "board")
    board.add(TRIALS)
    return board


def validation(step: int, value: float, **others: Any) -> Mapping[str, Any]:
    return {"kind": "val", "step": step, "MAP@R": value, **others}


def test_all_are_run_in_order_and_reported(board: FileBoard):
    seen = []

    def run(trial: Trial, go_on: Validated) -> Result:
        seen.append(trial)
        assert go_on(validation(5, 0.25, **{"R@1": 0.75}))
        return Result(trial, val={"MAP@R": 0.5})

    assert work(board, run, name="me", metric="R@1") == 3
    assert seen == TRIALS
    assert {each.state for each in board.states()} == {"done"}
    assert [(each.worker, each.step, each.value) for each in board.states()] == [("me", 5, 0.75)] * 3


def test_an_error_is_tried_again_and_then_said_in_one_line(board: FileBoard, capfd: pytest.CaptureFixture[str]):
    calls = []

    def run(trial: Trial, go_on: Validated) -> Result:
        calls.append(trial.seed)
        if trial.seed == 1:
            raise RuntimeError("this is\n  not possible")
        return Result(trial)

    assert work(board, run) == 2
    assert calls == [0, 1, 1, 1, 2]
    assert [each.state for each in board.states()] == ["done", "failed", "done"]
    assert board.results()[1].error == "RuntimeError: this is not possible"
    assert "Traceback" in capfd.readouterr().err


def test_an_error_that_goes_away_costs_nothing(board: FileBoard, capfd: pytest.CaptureFixture[str]):
    failures = iter([True, True])

    def run(trial: Trial, go_on: Validated) -> Result:
        if next(failures, False):
            raise OSError("the disk is full")
        return Result(trial)

    assert work(board, run) == 3
    assert board.counts()["done"] == 3


@pytest.mark.parametrize("error", [KeyboardInterrupt, Stopped])
def test_who_stops_puts_its_trial_back(board: FileBoard, error: type[BaseException]):
    def run(trial: Trial, go_on: Validated) -> Result:
        raise error

    for _ in range(5):  # more often than a trial may be tried
        with pytest.raises(error):
            work(board, run)
    assert [(each.state, each.tries) for each in board.states()] == [("waiting", 0)] * 3
    assert work(board, lambda trial, go_on: Result(trial)) == 3


def test_a_trial_that_was_taken_away_is_neither_pruned_nor_finished(tmp_path: Path):
    board, thief = (FileBoard(tmp_path, patience=each) for each in (300.0, 0.05))
    first, second = board.add(TRIALS[:2])
    ended = []

    def run(trial: Trial, go_on: Validated) -> Result:
        if trial == first:
            time.sleep(0.1)
            assert thief.claim("thief") == first  # longer than it is patient for
            time.sleep(0.4)
            go_on(validation(1, 0.5))
            ended.append("went on")
        return Result(trial, val={"MAP@R": 0.5})

    assert work(board, run, beat=0.2, wait=False) == 1  # the other one
    assert not ended
    assert [result.trial for result in board.results()] == [second]
    assert [each.worker for each in board.states() if each.state == "running"] == ["thief"]
    assert thief.finish(Result(first, val={"MAP@R": 0.25}))
    assert {result.status for result in board.results()} == {"done"}


@pytest.mark.parametrize("kind", ["file", "sql"])
def test_a_trial_that_was_cancelled_stops(tmp_path: Path, kind: str):
    board: Board = FileBoard(tmp_path) if kind == "file" else SqlBoard(f"sqlite:///{tmp_path}/study.db", "study")
    board.add(TRIALS)

    def run(trial: Trial, go_on: Validated) -> Result:
        board.cancel([trial.key])
        time.sleep(0.2)
        go_on(validation(1, 0.5))
        raise AssertionError("it went on")

    assert work(board, run, beat=0.05) == 0
    assert board.counts()["cancelled"] == 3
    assert board.results() == []


def test_a_sign_of_life_that_fails_is_not_the_last_one(board: FileBoard, capfd: pytest.CaptureFixture[str]):
    beats = []
    real = board.heartbeat

    def heartbeat(key: str) -> bool:
        beats.append(threading.current_thread().name)
        if len(beats) == 1:
            raise OSError("the database is away")
        return real(key)

    board.heartbeat = heartbeat  # type: ignore[method-assign]

    def run(trial: Trial, go_on: Validated) -> Result:
        time.sleep(0.2)
        return Result(trial)

    assert work(board, run, beat=0.02) == 3
    assert beats.count("likewise-heartbeat") > 3
    assert "the database is away" in capfd.readouterr().err
    assert not any(each.name == "likewise-heartbeat" for each in threading.enumerate())


def race(board: FileBoard, stage: Any, *, prune: bool = True) -> list[bool]:
    """Five good trials and a bad one of a search; what the bad one was told."""
    trials = [Trial("a", {}, stage=stage, labels={"loss.alpha": alpha}) for alpha in range(6)]
    board.add(trials)
    told = []

    def run(trial: Trial, go_on: Validated) -> Result:
        bad = trial == trials[-1]
        for step in (1, 2):
            answer = go_on(validation(step, 0.1 if bad else 0.5))
            if bad:
                told.append(answer)
            if not answer:
                return Result(trial, "pruned")
        return Result(trial, val={"MAP@R": 0.5})

    work(board, run, prune=prune)
    return told


def test_what_is_hopeless_in_a_search_is_stopped(tmp_path: Path):
    board = FileBoard(tmp_path)
    assert race(board, "search") == [False]
    assert [each.state for each in board.states()] == ["done"] * 5 + ["pruned"]


def test_final_trials_are_never_pruned(tmp_path: Path):
    assert race(FileBoard(tmp_path / "final"), "final") == [True, True]
    assert race(FileBoard(tmp_path / "told"), "search", prune=False) == [True, True]


def test_a_worker_waits_for_what_others_run(tmp_path: Path):
    board, other = (FileBoard(tmp_path, patience=0.3) for _ in range(2))
    board.add(TRIALS[:1])
    assert other.claim("silent") == TRIALS[0]
    assert work(board, lambda trial, go_on: Result(trial), wait=False) == 0
    begun = time.monotonic()
    assert work(board, lambda trial, go_on: Result(trial), linger=0.05) == 1
    assert time.monotonic() - begun < 5.0
    assert not other.finish(Result(TRIALS[0])), "the first result stands"
