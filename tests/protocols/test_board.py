"""The contract of a board, for each of them: with real processes, and kills."""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from likewise.protocols.board import Board, Holder, _began, merge
from likewise.protocols.file_board import FileBoard
from likewise.protocols.sql_board import SqlBoard
from likewise.protocols.trial import Result, Trial

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["tests.protocols.test_board"])  # torch is imported once

Where = tuple[str, str]


def open_board(where: Where, **options: Any) -> Board:
    kind, place = where
    return FileBoard(place, **options) if kind == "file" else SqlBoard(place, "a study", **options)


def some(n: int) -> list[Trial]:
    return [Trial("contrastive", {"loss": {"alpha": 2.0}, "text": "Größe"}, seed=seed) for seed in range(n)]


def value_of(trial: Trial) -> float:
    return 1.0 / (1 + trial.seed)


def work(where: Where, name: str, log: str, seconds: float, barrier: Any = None) -> None:
    """A worker: one trial after the other, and a line for each time that one begins."""
    board = open_board(where, tries=1000)
    if barrier is not None:
        barrier.wait(60)
    while True:
        trial = board.claim(name)
        if trial is not None:
            with open(log, "a") as file:
                file.write(f"{trial.key} {time.time()}\n")
            time.sleep(seconds)
            board.finish(Result(trial, val={"MAP@R": value_of(trial)}))
        elif board.counts()["running"] == 0:
            return
        else:
            time.sleep(0.02)


def hold(where: Where, said: Any, reports: int = 0, orphan: bool = False) -> None:
    """A worker that takes a trial and never comes to an end."""
    board = open_board(where)
    trial = board.claim("holder")
    for step in range(reports):
        board.report(trial.key, step, 0.5)
    if orphan and os.fork() == 0:
        time.sleep(20)  # as a data loader's process, which has all open files of its parent, and may outlive it
        os._exit(0)
    said.send(trial.key)
    time.sleep(600)


def add_them(where: Where, barrier: Any, said: Any) -> None:
    barrier.wait(60)
    said.put(len(open_board(where).add(some(20))))


def held(where: Where, reports: int = 0, orphan: bool = False) -> tuple[Any, str]:
    here, there = PROCESSES.Pipe()
    process = PROCESSES.Process(target=hold, args=(where, there, reports, orphan), daemon=True)
    process.start()
    assert here.poll(60)
    return process, here.recv()


class BoardContract:
    """What every board does; a class below gives ``where`` it is."""

    @pytest.fixture
    def make(self, where: Where) -> Callable[..., Board]:
        return lambda **options: open_board(where, **options)

    def test_trials_are_added_once_and_keep_their_order(self, make):
        board, trials = make(), some(5)
        assert board.add(trials[2:4]) == trials[2:4]
        assert board.add(trials + trials) == [trials[0], trials[1], trials[4]]
        assert board.add(trials) == []
        assert make().trials() == [trials[index] for index in (2, 3, 0, 1, 4)]

    def test_trials_are_claimed_in_order_and_once(self, make):
        first, second, trials = make(), make(), some(4)
        first.add(trials)
        assert [each.claim("w") for each in (first, second, second, first)] == trials
        assert first.claim("w") is None
        assert second.counts()["running"] == 4

    def test_a_result_comes_back_as_it_was(self, make):
        board = make()
        board.add(some(2))
        trial = board.claim("me")
        val = {"MAP@R": 0.1 + 0.2, "R@1": math.inf}
        result = Result(trial, "done", val, {}, "runs/a", 1.5, "likewise train", "a GPU", None, 1)
        assert board.finish(result)
        assert make().results() == [result]
        assert make().counts() == {"waiting": 1, "running": 0, "done": 1, "failed": 0, "pruned": 0, "cancelled": 0}

    def test_the_first_result_stands_unless_it_failed(self, make):
        board = make()
        board.add(some(1))
        trial = board.claim("me")
        assert board.finish(Result(trial, "failed", error="too hot"))
        assert not board.finish(Result(trial, "failed", error="too cold"))
        assert make().finish(Result(trial, val={"MAP@R": 0.5}))
        assert not board.finish(Result(trial, val={"MAP@R": 0.75}))
        assert not board.finish(Result(trial, "pruned"))
        assert [result.val for result in make().results()] == [{"MAP@R": 0.5}]
        assert make().states()[0].error is None

    def test_a_heartbeat_is_for_one_claim(self, make):
        board, other = make(), make()
        board.add(some(2))
        trial = board.claim("me")
        assert board.heartbeat(trial.key)
        assert not other.heartbeat(trial.key)
        assert not other.give_up(trial.key, "not mine")
        assert not board.heartbeat(board.trials()[1].key)
        assert other.finish(Result(trial))
        assert not board.heartbeat(trial.key)
        assert not board.give_up(trial.key, "too late")
        assert board.counts()["done"] == 1

    def test_what_nobody_has_added_is_refused(self, make):
        board = make()
        stranger = some(1)[0]
        for call in (lambda: board.finish(Result(stranger)), lambda: board.report(stranger.key, 1, 0.5)):
            with pytest.raises(ValueError, match=f"key must be that of a trial on the board, but '{stranger.key}'"):
                call()

    def test_errors_are_tried_again_and_then_kept(self, make):
        board = make(tries=2)
        board.add(some(2))
        trial = board.claim("me")
        assert board.give_up(trial.key, "out of memory")
        standing = board.states()[0]
        assert (standing.state, standing.tries, standing.error) == ("waiting", 1, "out of memory")
        assert make(tries=2).claim("you") == trial
        assert board.states()[0].tries == 2
        assert not board.give_up(trial.key, "that claim is over")

    def test_a_trial_fails_after_its_tries(self, make):
        board = make(tries=3)
        board.add(some(2))
        for _ in range(3):
            trial = board.claim("me")
            assert trial.seed == 0
            board.give_up(trial.key, "out of memory")
        (result,) = board.results()
        assert (result.status, result.error, result.trial) == ("failed", "out of memory", trial)
        assert board.states()[0].state == "failed"
        assert board.claim("me").seed == 1

    def test_tries_that_get_further_do_not_count(self, make):
        board = make(tries=2)
        board.add(some(1))
        for step in range(5):
            trial = board.claim("me")
            board.report(trial.key, step, 0.5)
            board.give_up(trial.key, "killed")
        for _ in range(2):
            trial = board.claim("me")
            board.report(trial.key, 4, 0.5)
            board.give_up(trial.key, "no further")
        assert [result.error for result in board.results()] == ["no further"]

    def test_to_stop_is_no_try(self, make):
        board = make(tries=2)
        board.add(some(1))
        for _ in range(5):
            assert board.put_back(board.claim("me").key)
        assert not board.put_back(board.trials()[0].key)
        assert board.counts()["waiting"] == 1
        assert board.states()[0].tries == 0

    def test_a_silent_worker_loses_its_claim(self, make):
        silent, other = make(patience=0.3), make(patience=0.3)
        silent.add(some(1))
        trial = silent.claim("silent")
        assert other.claim("other") is None
        time.sleep(0.5)
        assert other.sweep() == [trial.key]
        assert "silent" in other.states()[0].error
        assert other.claim("other") == trial
        assert not silent.heartbeat(trial.key)
        assert not silent.give_up(trial.key, "it is the other's now")
        assert other.heartbeat(trial.key)
        # what it did all the same is not thrown away, and the other one may stop
        assert silent.finish(Result(trial, val={"MAP@R": 0.5}))
        assert not other.heartbeat(trial.key)

    def test_how_a_worker_stopped_that_had_lost_its_claim_is_no_result(self, make):
        silent, other = make(patience=0.2), make(patience=0.2)
        silent.add(some(2))
        trial, second = silent.claim("silent"), silent.claim("silent")
        time.sleep(0.3)
        assert other.claim("other") == trial
        assert not silent.finish(Result(trial, "pruned"))
        assert not silent.finish(Result(trial, "failed"))
        assert other.heartbeat(trial.key)
        assert other.finish(Result(trial, "pruned"))
        assert other.claim("other") == second
        silent.cancel()
        assert not other.finish(Result(second, "pruned"))
        assert other.states()[1].state == "cancelled"
        assert other.finish(Result(second, "done"))

    def test_a_worker_that_is_heard_of_keeps_its_claim(self, make):
        slow, other = make(patience=0.5), make(patience=0.5)
        slow.add(some(1))
        trial = slow.claim("slow")
        for step in range(6):
            time.sleep(0.15)
            slow.report(trial.key, step, 0.1) if step % 2 else slow.heartbeat(trial.key)
            assert other.claim("other") is None

    def test_reports_are_kept_and_the_last_stands(self, make):
        board = make()
        board.add(some(2))
        first, second = board.claim("me"), board.claim("me")
        for step, value in ((1, 0.25), (2, 0.5), (2, 0.75)):
            board.report(first.key, step, value)
        board.report(second.key, 1, math.nan)
        found = make().reports()
        assert found[first.key] == {1: 0.25, 2: 0.75}
        assert math.isnan(found[second.key][1])
        assert make().reports([first.key]) == {first.key: {1: 0.25, 2: 0.75}}
        assert (make().states()[0].step, make().states()[0].value) == (2, 0.75)

    def test_states_tell_who_and_when(self, make):
        board = make()
        board.add(some(2))
        before = time.time()
        trial = board.claim("gpu 3")
        running, waiting = board.states()
        assert (running.state, running.worker, running.tries, running.ended) == ("running", "gpu 3", 1, None)
        assert (waiting.state, waiting.worker, waiting.started, waiting.beat) == ("waiting", "", None, None)
        board.finish(Result(trial))
        done = board.states()[0]
        assert done.state == "done"
        assert before - 1 <= done.started <= done.beat <= done.ended <= time.time() + 1

    def test_cancelled_trials_stop_and_may_wait_again(self, make):
        board = make(tries=1)
        board.add(some(4))
        keys = [trial.key for trial in board.trials()]
        board.finish(Result(board.claim("me")))
        running = board.claim("me")
        assert make().cancel(keys[:3]) == keys[1:3]
        assert not board.heartbeat(running.key)
        assert board.cancel() == keys[3:]
        assert board.claim("me") is None
        assert board.counts()["cancelled"] == 3
        assert board.again([keys[0], keys[3]]) == [keys[3]]
        failing = board.claim("me")
        board.give_up(failing.key, "no")
        assert board.counts()["failed"] == 1
        assert board.again() == keys[1:]
        assert [board.claim("me").key for _ in range(3)] == keys[1:]
        assert len(board.results()) == 1

    def test_a_killed_worker_loses_its_trial_only(self, make, where):
        board = make()
        board.add(some(3))
        board.finish(Result(board.claim("me"), val={"MAP@R": 0.5}))
        process, key = held(where)
        assert key == board.trials()[1].key
        assert board.claim("me") == board.trials()[2]
        assert board.claim("me") is None
        os.kill(process.pid, signal.SIGKILL)
        deadline = time.monotonic() + 20
        again = None
        while (
            again is None and time.monotonic() < deadline
        ):  # well inside the patience: its process is known to be gone
            again = board.claim("me")
            time.sleep(0.01)
        assert again == board.trials()[1]
        assert board.states()[1].tries == 2
        assert [result.val for result in board.results()] == [{"MAP@R": 0.5}]
        process.join(10)

    def test_a_trial_that_kills_its_worker_fails(self, make, where):
        board = make(tries=2)
        board.add(some(1))
        for _ in range(2):
            process, _ = held(where, reports=2)
            process.kill()
            process.join(10)
            board.sweep()
        # the first one got further than none before it, so it did not count
        assert board.counts()["waiting"] == 1
        process, _ = held(where, reports=2)
        process.kill()
        process.join(10)
        board.sweep()
        (result,) = board.results()
        assert result.status == "failed"
        assert "holder" in result.error

    def test_children_of_a_killed_worker_do_not_keep_its_claim(self, make, where):
        board = make()
        board.add(some(1))
        process, key = held(where, orphan=True)
        process.kill()
        process.join(10)
        assert board.sweep() == [key]

    def test_workers_never_share_a_trial(self, make, where, tmp_path):
        board, log = make(), tmp_path / "log"
        board.add(some(40))
        workers = [PROCESSES.Process(target=work, args=(where, f"w{n}", str(log), 0.002)) for n in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(60)
        begun = [line.split()[0] for line in log.read_text().splitlines()]
        assert Counter(begun) == Counter(trial.key for trial in board.trials())
        assert [result.val["MAP@R"] for result in board.results()] == [1 / (1 + n) for n in range(40)]

    def test_kills_at_random_moments_change_nothing(self, make, where, tmp_path):
        board, chance = make(), random.Random(7)
        board.add(some(12))
        for kill in range(6):
            worker = PROCESSES.Process(target=work, args=(where, f"w{kill}", str(tmp_path / "log"), 0.03))
            worker.start()
            worker.join(chance.uniform(0.02, 0.25))
            worker.kill()
            worker.join(10)
        work(where, "last", str(tmp_path / "log"), 0.0)
        assert [result.val["MAP@R"] for result in make().results()] == [1 / (1 + n) for n in range(12)]
        assert board.counts()["done"] == 12

    def test_workers_may_open_and_add_at_the_same_time(self, make, where):
        barrier, said = PROCESSES.Barrier(4), PROCESSES.Queue()
        workers = [PROCESSES.Process(target=add_them, args=(where, barrier, said)) for _ in range(4)]
        for worker in workers:
            worker.start()
        added = sorted(said.get(timeout=60) for _ in workers)
        for worker in workers:
            worker.join(60)
        assert added == [0, 0, 0, 20]
        assert make().trials() == some(20)

    def test_a_study_travels_and_comes_back(self, make, tmp_path):
        board = make()
        board.add(some(4))
        board.finish(Result(board.claim("here"), val={"MAP@R": 0.9}))
        away = FileBoard(tmp_path / "away")
        away.add(board.trials()[:3])
        for value in (0.1, 0.2):
            trial = away.claim("there")
            away.report(trial.key, 1, value)
            away.finish(Result(trial, val={"MAP@R": value}))
        away.claim("there")
        keys = [trial.key for trial in board.trials()]
        assert merge(board, away) == keys[1:2]
        assert merge(board, away) == []
        assert [result.val["MAP@R"] for result in board.results()] == [0.9, 0.2]
        assert board.reports() == {keys[1]: {1: 0.2}}
        assert board.counts()["waiting"] == 2

    def test_limits_are_checked(self, make):
        with pytest.raises(ValueError, match="patience must be a number of seconds > 0, but it is 0"):
            make(patience=0)
        with pytest.raises(ValueError, match="tries must be a whole number ≥ 1, but it is 0"):
            make(tries=0)


class TestFileBoard(BoardContract):
    @pytest.fixture
    def where(self, tmp_path: Path) -> Where:
        return "file", str(tmp_path / "board")

    def test_half_a_line_spoils_nothing(self, make, where):
        """Whoever was killed while it wrote has added nothing, and what comes after it is whole."""
        board = make()
        board.add(some(1))
        trials = Path(where[1], "trials.jsonl")
        whole = trials.read_text()
        trials.write_text(whole + whole[: len(whole) // 2].rstrip("\n"))
        reports = Path(where[1], "reports", f"{some(1)[0].key}.jsonl")
        board.report(some(1)[0].key, 1, 0.5)
        with reports.open("a") as file:
            file.write('\n{"step": 2, "va')
        assert board.trials() == make().trials() == some(1)
        assert board.add(some(3)) == some(3)[1:]
        board.report(some(1)[0].key, 2, 0.75)
        assert board.trials() == make().trials() == some(3)
        assert make().reports() == {some(1)[0].key: {1: 0.5, 2: 0.75}}

    def test_a_claim_without_a_word_is_over(self, make, where):
        """Its process died between making the file and writing to it."""
        board = make()
        board.add(some(1))
        Path(where[1], "claims", f"{some(1)[0].key}.1").touch()
        assert board.counts()["running"] == 1
        assert board.claim("me") == some(1)[0]

    def test_a_failure_that_was_not_written_down_is_written_down(self, make, where):
        board = make(tries=1)
        board.add(some(1))
        key = board.claim("me").key
        board.give_up(key, "no")
        Path(where[1], "results", f"{key}.json").unlink()
        assert make(tries=1).claim("me") is None
        assert [result.error for result in make().results()] == ["no"]

    def test_other_machines_are_judged_by_their_heartbeat(self, make, where):
        board = make()
        board.add(some(1))
        key = board.claim("far").key
        claim = Path(where[1], "claims", f"{key}.1")
        said = json.loads(claim.read_text()) | {"machine": "elsewhere", "process": 2**22 + 1}
        board._let_go(key)  # no lock of ours on it
        claim.write_text(json.dumps(said))
        assert board.claim("me") is None
        os.utime(claim, (time.time() - 301, time.time() - 301))
        assert board.claim("me").key == key

    def test_a_lock_outlives_no_process(self, make, where):
        """Where process ids deceive, the lock does not: nobody holds it, so nobody holds the claim."""
        board = make()
        board.add(some(1))
        key = board.claim("me").key
        assert board.sweep() == []
        board._let_go(key)
        assert board.sweep() == [key]

    def test_merging_needs_a_board(self, make, tmp_path):
        with pytest.raises(FileNotFoundError, match="folder must hold a board"):
            make().merge(tmp_path / "nothing")

    def test_it_needs_nothing_but_the_core_rooms(self, tmp_path):
        """Its modules by themselves; what else the room brings along is the room's business."""
        program = f"""
import sys, types
import torch
import likewise
before = {{name.split(".")[0] for name in sys.modules}} | set(sys.stdlib_module_names)
room = sys.modules["likewise.protocols"] = types.ModuleType("likewise.protocols")
room.__path__ = [likewise.__path__[0] + "/protocols"]
from likewise.protocols.file_board import FileBoard
from likewise.protocols.trial import Result, Trial
board = FileBoard({str(tmp_path / "bare")!r})
board.add([Trial("a", {{}})])
board.finish(Result(board.claim("me")))
after = {{name.split(".")[0] for name in sys.modules}}
rooms = {{name.split(".")[1] for name in sys.modules if name.startswith("likewise.")}}
print(sorted(after - before), sorted(rooms))
"""
        out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
        assert out.strip() == "[] ['distributed', 'formula', 'protocols', 'schema']"


class TestSqliteBoard(BoardContract):
    @pytest.fixture
    def where(self, tmp_path: Path) -> Where:
        return "sql", f"sqlite:///{tmp_path}/folder/study.db"

    def test_a_database_holds_several_studies(self, where):
        one, two = SqlBoard(where[1], "one"), SqlBoard(where[1], "two")
        one.add(some(2))
        two.add(some(1))
        two.finish(Result(two.claim("me")))
        assert one.counts()["waiting"] == 2
        assert two.counts() == {**dict.fromkeys(two.counts(), 0), "done": 1}
        one.report(some(1)[0].key, 1, 0.5)
        assert two.reports() == {}

    @pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:"])
    def test_a_database_in_memory_is_refused(self, url):
        with pytest.raises(ValueError, match="url must name a file"):
            SqlBoard(url)

    def test_what_is_no_url_is_refused(self):
        with pytest.raises(ValueError, match=r"url must be like sqlite:///study\.db or .* but it is 'study.db'"):
            SqlBoard("study.db")

    def test_a_database_that_does_not_answer_is_named_without_its_password(self):
        pytest.importorskip("psycopg")
        with pytest.raises(ConnectionError) as caught:
            SqlBoard("postgresql://me:secret@127.0.0.1:1/study")
        assert "url must be that of a database that answers" in str(caught.value)
        assert "secret" not in str(caught.value)

    def test_without_sqlalchemy_it_says_what_to_install(self, where, monkeypatch):
        monkeypatch.setitem(sys.modules, "sqlalchemy", None)
        with pytest.raises(ImportError, match=r"likewise\[study\]"):
            SqlBoard(where[1])


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the system does not say when a process began")
def test_a_process_that_has_ended_is_gone_before_its_parent_asks():
    process = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    here = Holder.here("me")
    cat = Holder("", here.machine, process.pid, _began(process.pid) or "")
    assert not here.gone()
    assert not cat.gone()
    process.stdin.close()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert cat.gone()
    assert not Holder("", "elsewhere", cat.process, cat.since).gone()
    process.wait()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the system does not say when a process began")
def test_a_process_id_that_is_used_again_is_another_process():
    here = Holder.here("me")
    assert Holder("me", here.machine, here.process, str(int(here.since) - 1)).gone()
