"""``likewise work`` with several processes, for some minutes: who is started, when they stop, and what is planned meanwhile."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from likewise.cli import main, pool
from likewise.protocols.file_board import FileBoard
from likewise.protocols.trial import Result, Trial
from tests.cli.test_studies import OUT, numbers, one_thread, worked, write


class Worker:
    """A process that takes trials when it is looked at, or none at all; it ends when nothing is left, or when it is asked to."""

    def __init__(self, board: FileBoard, number: int, *, takes: bool = True, leaves: int | None = None) -> None:
        self.board, self.number, self.takes = board, number, takes
        self.returncode = leaves
        self.asked: list[int] = []

    def poll(self) -> int | None:
        if self.returncode is None and self.takes:
            trial = self.board.claim(f"worker {self.number}")
            if trial is not None:
                self.board.finish(Result(trial, val={"MAP@R": 0.5}))
            elif not self.board.counts()["running"]:
                self.returncode = 0
        return self.returncode

    def send_signal(self, number: int) -> None:
        self.asked.append(number)
        self.returncode = 0


@pytest.fixture
def crew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Worker]]:
    """Lets workers be made of nothing; those that were started."""

    def made_of(board: FileBoard, **options: object) -> list[Worker]:
        started: list[Worker] = []

        def start(_folder: Path, number: int) -> Worker:
            started.append(Worker(board, number, **options))  # type: ignore[arg-type]
            return started[-1]

        monkeypatch.setattr(pool, "_start", start)
        monkeypatch.setattr(pool, "POLL", 0.001)
        return started

    return made_of


def trials(letters: str) -> list[Trial]:
    return [Trial(letter, {}) for letter in letters]


def test_what_is_planned_meanwhile_is_worked_on(crew: Callable[..., list[Worker]], tmp_path: Path):
    """Nothing waits at first; each time that nothing is left more is planned, twice; one place is enough for one trial."""
    board = FileBoard(tmp_path / "board")
    started, more = crew(board), ["abc", "d"]
    assert pool.run_workers(tmp_path, board, 2, plan=lambda: board.add(trials(more.pop(0) if more else ""))) == 0
    assert board.counts()["done"] == 4
    assert [worker.number for worker in started] == [0, 1, 0]
    assert not more


def test_when_the_time_is_over_they_are_asked_to_stop(
    crew: Callable[..., list[Worker]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    board = FileBoard(tmp_path / "board")
    board.add(trials("abc"))
    started = crew(board, takes=False)
    assert pool.run_workers(tmp_path, board, 2, seconds=0.05) == 0
    assert [worker.asked for worker in started] == [[signal.SIGTERM]] * 2
    assert pool.run_workers(tmp_path, board, 2, seconds=0.0) == 0, "no time at all"
    assert len(started) == 2
    assert "before their work was done" not in capsys.readouterr().err


def test_a_plan_that_fails_leaves_nobody_behind(
    crew: Callable[..., list[Worker]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    board = FileBoard(tmp_path / "board")
    board.add(trials("ab"))
    started, asked = crew(board, takes=False), [0]

    def plan() -> None:
        asked[0] += 1
        if asked[0] > 1:
            raise OSError("no space left")

    monkeypatch.setattr(pool, "LOOK", 0.0)
    with pytest.raises(OSError, match="no space left"):
        pool.run_workers(tmp_path, board, 2, plan=plan)
    assert [worker.asked for worker in started] == [[signal.SIGTERM]] * 2


def test_who_ends_while_the_board_is_looked_at_is_replaced(
    crew: Callable[..., list[Worker]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Two places, and one worker because there is one trial; it dies between a look at it and the end of a look at the board."""
    board = FileBoard(tmp_path / "board")
    board.add(trials("a"))
    started, left = crew(board, takes=False), pool._left

    def slow(board: FileBoard) -> int:
        if len(started) == 1:
            started[0].returncode = 1
        for worker in started[1:]:
            worker.takes = True
        return left(board)

    monkeypatch.setattr(pool, "_left", slow)
    monkeypatch.setattr(pool, "LOOK", 0.0)
    assert pool.run_workers(tmp_path, board, 2) == 0
    assert board.counts()["done"] == 1
    assert len(started) == 2


@pytest.mark.parametrize("code", [0, 2])
def test_workers_that_leave_at_once_are_not_started_for_ever(
    code: int, crew: Callable[..., list[Worker]], tmp_path: Path
):
    board = FileBoard(tmp_path / "board")
    board.add(trials("abc"))
    started = crew(board, leaves=code)
    assert pool.run_workers(tmp_path, board, 2, seconds=20.0, plan=lambda: None) == 1
    assert 2 < len(started) <= 2 + 3 * 2


def test_one_trial_is_not_tried_by_many(crew: Callable[..., list[Worker]], tmp_path: Path):
    board = FileBoard(tmp_path / "board")
    board.add(trials("a"))
    started = crew(board, leaves=2)
    assert pool.run_workers(tmp_path, board, 8) == 1
    assert [worker.number for worker in started] == [0] * 4


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--workers", "0"), "--workers must be a whole number ≥ 1, but it is 0"),
        (("--minutes", "0"), "--minutes must be a number > 0, but it is 0"),
        (("--minutes", "nan"), "--minutes must be a number > 0, but it is nan"),
        (("--workers", "2", "--name", "me"), "--name is of one worker in this process"),
    ],
)
def test_what_is_refused(words: tuple[str, ...], why: str, here: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["tournament", write(seeds=[0]), *OUT, "--workers", "0"]) == 0
    assert main(["work", "study", *words]) == 2
    assert why in capsys.readouterr().err


def test_what_is_left_is_said(here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    assert main(["tournament", write(seeds=[0]), *OUT, "--workers", "0"]) == 0
    asked: list[tuple[int, float]] = []

    def run_workers(folder: Path, board: FileBoard, count: int, *, seconds: float) -> int:
        asked.append((count, seconds))
        return 0

    monkeypatch.setattr("likewise.cli.tournament.run_workers", run_workers)
    assert main(["work", "study", "--workers", "3", "--minutes", "0.5"]) == 0
    assert asked == [(3, 30.0)]
    said = capsys.readouterr().out
    assert "2 trainings wait; the same command goes on: likewise work study --workers 3 --minutes 0.5" in said


@pytest.mark.slow
def test_processes_that_stop_in_time_and_go_on_do_what_one_does(here: Path, capsys: pytest.CaptureFixture[str]):
    words = write(seeds=[0])
    with one_thread():
        assert worked(words, "--out", "alone") == 0
    assert main(["tournament", words, *OUT, "--workers", "0"]) == 0
    assert main(["work", "study", "--workers", "2", "--minutes", "0.03"]) == 0  # before anybody has begun
    assert "2 trainings wait; the same command goes on" in capsys.readouterr().out
    assert all(each.tries == 0 for each in FileBoard("study/board").states()), "it is not held against a trial"
    assert main(["work", "study", "--workers", "2", "--minutes", "5"]) == 0
    assert main(["tournament", words, *OUT, "--workers", "1"]) == 0  # nothing is left for it
    assert numbers("study") == numbers("alone")
