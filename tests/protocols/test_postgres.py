"""The board on PostgreSQL, from a server that is started here; skipped where none can be had."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from likewise.protocols.trial import Result
from tests.protocols.postgres import NoServerError, Server, server
from tests.protocols.test_board import PROCESSES, BoardContract, Where, some, work

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def running() -> Iterator[Server]:
    try:
        with server() as started:
            yield started
    except NoServerError as why:
        pytest.skip(f"no PostgreSQL server can be had: {why}")


@pytest.fixture
def fresh(running: Server) -> str:
    """The server's URL, with nothing on its boards."""
    return emptied(running.url)


def emptied(url: str) -> str:
    import psycopg

    with psycopg.connect(url) as connection:
        connection.execute("DROP TABLE IF EXISTS likewise_trials, likewise_reports")
    return url


class TestPostgresBoard(BoardContract):
    @pytest.fixture
    def where(self, fresh: str) -> Where:
        return "sql", fresh

    def test_two_workers_take_at_most_six_tenths_of_the_time_of_one(self, make, where, tmp_path):
        """The best of three: what else the machine does is in every measurement."""
        ratios = []
        while len(ratios) < 3 and min(ratios, default=1.0) > 0.6:
            emptied(where[1])
            alone, ran_alone = self.run(make, where, 1, tmp_path / f"one-{len(ratios)}")
            emptied(where[1])
            together, ran_together = self.run(make, where, 2, tmp_path / f"two-{len(ratios)}")
            assert ran_alone == ran_together == Counter({trial.key: 1 for trial in some(8)})
            ratios.append(together / alone)
        assert min(ratios) <= 0.6, ratios

    def run(self, make, where: Where, workers: int, log: Path) -> tuple[float, Counter[str]]:
        make().add(some(8))
        barrier = PROCESSES.Barrier(workers + 1)
        processes = [
            PROCESSES.Process(target=work, args=(where, f"w{n}", str(log), 0.5, barrier)) for n in range(workers)
        ]
        for process in processes:
            process.start()
        barrier.wait(60)
        begun = time.monotonic()
        for process in processes:
            process.join(60)
        took = time.monotonic() - begun
        assert make().counts()["done"] == 8
        return took, Counter(line.split()[0] for line in log.read_text().splitlines())

    def test_a_server_that_starts_anew_costs_nothing(self, make, where, running):
        board = make()
        board.add(some(2))
        trial = board.claim("me")
        running.stop()
        soon = threading.Timer(0.5, running.start)
        soon.start()
        assert board.finish(Result(trial, val={"MAP@R": 0.5}))
        soon.join(30)
        assert board.claim("me").seed == 1
        assert make().counts()["done"] == 1

    def test_the_clock_is_the_servers(self, make, where, monkeypatch):
        """A machine whose clock is wrong by a day neither loses its claims nor takes those of others."""
        board, other = make(), make()
        board.add(some(1))
        trial = board.claim("me")
        before = time.time()
        monkeypatch.setattr(time, "time", lambda: before + 86400)
        assert other.claim("you") is None
        assert board.heartbeat(trial.key)
        assert abs(board.states()[0].beat - before) < 3600
