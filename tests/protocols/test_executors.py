"""Executors: one suite for local processes and for Ray, and one for what only local processes promise."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from likewise.protocols.executor import Executor, ExecutorBroken, Report, SerialExecutor, reporter, run_missing
from likewise.protocols.local import LocalExecutor, device_of
from likewise.protocols.ray_executor import RayExecutor
from likewise.protocols.study import Study
from likewise.protocols.trial import Result, Trial
from tests.protocols.trial_functions import behave

Make = Callable[..., Executor]
ROOT = Path(__file__).parents[2]


def wait_until(there: Callable[[], object], seconds: float = 60.0) -> None:
    limit = time.monotonic() + seconds
    while not there():
        assert time.monotonic() < limit
        time.sleep(0.02)


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """A Ray cluster of one node with two CPUs, started once."""
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'likewise[ray]'")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = ["start", "--head", f"--port={port}", "--node-ip-address=127.0.0.1", "--num-cpus=2", "--num-gpus=0"]
    words += ["--include-dashboard=false", "--disable-usage-stats", "--block", "--object-store-memory=100000000"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (ROOT / "src", ROOT)))}
    program = "import sys; from ray.scripts.scripts import main; sys.exit(main())"
    node = subprocess.Popen(
        [sys.executable, "-c", program, *words],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )

    def answers() -> bool:
        assert node.poll() is None
        with socket.socket() as gcs:
            return gcs.connect_ex(("127.0.0.1", port)) == 0

    wait_until(answers)
    yield f"127.0.0.1:{port}"
    node.terminate()
    node.wait(60)


@pytest.fixture(params=["local", "ray"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Make]:
    made: list[Executor] = []
    address = request.getfixturevalue("cluster") if request.param == "ray" else None

    def make(report: Report = lambda *_: True, workers: int = 2) -> Executor:
        if address is not None:
            made.append(RayExecutor(behave, report, address=address, workers=workers))
        else:
            made.append(LocalExecutor(behave, report, workers=workers, logs=tmp_path / "logs"))
        return made[-1]

    yield make
    for each in made:
        each.stop()


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return Study(tmp_path / "study.db")


def trials(method: str, place: Path, count: int = 1, stage: Any = "final") -> list[Trial]:
    return [
        Trial(method, {"folder": str(place), "value": each / 10}, 0, 0, stage, {"loss.margin": each})
        for each in range(count)
    ]


# ---- what every executor promises


def test_every_end_of_a_trial_is_stored(make: Make, study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """On two workers: trials that are done, pruned and canceled, that raise, that die, and that get further every time.

    A process sees the driver's modules, is in its folder, and has one thread.
    """
    study.add(trials("measure", tmp_path, 3))
    for method in ("raise", "die", "die_on_the_way", "wait"):
        study.add(trials(method, tmp_path))
    hopeless, wait = study.trials()[2].key, study.trials()[-1].key
    store, seen = reporter(study), list[int]()

    def plan() -> None:
        if (tmp_path / "wait.0.begun").exists():
            study.cancel([wait])

    monkeypatch.setattr("likewise.protocols.executor.PLAN_SECONDS", 0.0)
    executor = make(lambda key, *report: store(key, *report) and key != hopeless)
    assert executor.room() == 2
    assert run_missing(study, executor, plan=plan, tries=2, watch=lambda running: seen.append(len(running)))
    assert max(seen) == 2
    assert [each.state for each in study.states()] == ["done", "done", "pruned", "failed", "failed", "done", "canceled"]
    first, second, pruned, raised, died, on_the_way = study.results()
    for each in (first, second):
        assert (each.val, each.machine) == ({"threads": 1}, os.getcwd())
    assert study.reports()[second.key] == {1: 0.1, 2: 0.1}
    assert pruned.val == {"step": 1}
    assert raised.error == "RuntimeError: this is not possible"
    assert "ended before the trial" in str(died.error)
    assert on_the_way.val == {"step": 3}


def test_when_the_time_is_over_trials_write_a_checkpoint_and_stay_missing(make: Make, study: Study, tmp_path: Path):
    study.add(trials("wait", tmp_path, 3))
    executor = make(reporter(study))

    def seconds(running: object) -> None:
        wait_until(lambda: executor.results(0.05) or all((tmp_path / f"reported.{each}").exists() for each in (0, 1)))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_missing(study, executor, watch=seconds)
    assert sorted(path.name for path in tmp_path.glob("checkpoint*")) == ["checkpoint.0", "checkpoint.1"]
    assert study.counts()["missing"] == 3
    assert not executor.running()


DRIVER = """
import sys
from pathlib import Path
from likewise.protocols.executor import reporter, run_missing
from likewise.protocols.local import LocalExecutor
from likewise.protocols.ray_executor import RayExecutor
from likewise.protocols.study import Study
from tests.protocols.trial_functions import behave

study, address = Study(sys.argv[1]), sys.argv[2]
if address:
    executor = RayExecutor(behave, reporter(study), address=address)
else:
    executor = LocalExecutor(behave, reporter(study), workers=1)
run_missing(study, executor)
"""


@pytest.mark.parametrize("kind", ["local", "ray"])
def test_trials_end_when_their_driver_is_killed(
    kind: str, study: Study, tmp_path: Path, request: pytest.FixtureRequest
):
    """Local processes write a checkpoint first; Ray kills the tasks of a driver that is gone."""
    address = request.getfixturevalue("cluster") if kind == "ray" else ""
    study.add(trials("wait", tmp_path))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (ROOT / "src", ROOT)))}
    driver = subprocess.Popen([sys.executable, "-c", DRIVER, study.file, address], env=environment)
    begun = tmp_path / "wait.0.begun"
    wait_until(lambda: begun.exists() and begun.read_text())
    driver.send_signal(signal.SIGKILL)
    driver.wait()

    def gone() -> bool:
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(begun.read_text()), 0)
            return False
        return True

    wait_until(gone)
    assert kind == "ray" or (tmp_path / "checkpoint.0").exists()
    assert study.counts()["missing"] == 1


def test_a_study_on_a_cluster_is_that_of_processes(cluster: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A real training, by the command line: the same numbers on Ray and in a process."""
    from likewise.cli import main
    from tests.cli.conftest import QUICK, draw

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path / "cache"))
    draw(tmp_path / "photos")
    (tmp_path / "quick.yaml").write_text(QUICK)
    words = ["repeat", "--config", "quick.yaml", "--data", "ImageFolder", "--data.root", "photos", "--seeds", "1"]
    found = []
    for out, where in (("ray", ["--on", cluster]), ("local", ["--workers", "1"])):
        assert main([*words, "--out", out, *where]) == 0
        [result] = Study(tmp_path / out / "study.db").results()
        found.append((result.status, result.val, result.test, result.key))
    assert found[0] == found[1]
    assert found[0][0] == "done"


# ---- the driver


def test_two_drivers_of_one_study_are_refused(study: Study):
    with (
        study.driving(),
        pytest.raises(RuntimeError, match="must be run by one process, but another one is running it"),
    ):
        Study(study.file).driving().__enter__()


def test_hopeless_trials_of_a_search_are_pruned(study: Study, tmp_path: Path):
    """Five are done at 0.1 to 0.5 and the sixth is below their median at its first step."""
    *others, worst = reversed(trials("measure", tmp_path, 6, "search"))
    study.add([*others, worst])
    assert run_missing(study, SerialExecutor(behave, reporter(study)))
    assert [result.status for result in study.results()] == ["done"] * 5 + ["pruned"]
    assert study.results()[-1].val == {"step": 1}


def test_only_some_trials_for_some_time(study: Study):
    study.add(trials("measure", Path(), 3))
    chosen = study.trials()[1].key
    executor = SerialExecutor(lambda trial, report: Result(trial), reporter(study))
    assert not run_missing(study, executor, seconds=0.0)
    assert run_missing(study, executor, only=lambda key: key == chosen)
    assert [each.state for each in study.states()] == ["missing", "done", "missing"]


def test_what_a_plan_adds_is_run(study: Study):
    more = trials("measure", Path(), 3)
    assert run_missing(
        study,
        SerialExecutor(lambda trial, report: Result(trial), reporter(study)),
        plan=lambda: study.add([more.pop()] if more else []),
    )
    assert study.counts()["done"] == 3


# ---- local processes


def test_processes_that_cannot_begin_are_no_failure_of_a_trial(study: Study, tmp_path: Path, monkeypatch: Any):
    study.add(trials("measure", tmp_path))
    executor = LocalExecutor(behave, reporter(study), workers=2, logs=tmp_path / "logs")
    executor._run = b"no pickle"
    with pytest.raises(ExecutorBroken, match=r"3 processes ended before they could run a trial: see .*worker-1.log"):
        run_missing(study, executor)
    assert study.counts()["missing"] == 1
    assert "UnpicklingError" in (tmp_path / "logs" / "worker-1.log").read_text()


def test_a_worker_sees_only_the_devices_that_its_driver_sees(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,5")
    assert [device_of(number) for number in range(3)] == ["2", "5", "2"]
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    assert [device_of(number) for number in range(3)] == ["0", "1", "0"]


# ---- Ray


def test_a_cluster_is_never_started():
    for address in ("local", "", "here"):
        with pytest.raises(ValueError, match="address must be auto or host:port, but it is"):
            RayExecutor(behave, lambda *_: True, address=address)


def test_an_address_without_a_cluster_is_refused_in_one_sentence():
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'likewise[ray]'")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(ConnectionError, match="address must be that of a running cluster, but 127"):
        RayExecutor(behave, lambda *_: True, address=f"127.0.0.1:{port}")


def test_without_ray_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match=r"a Ray cluster needs the extra likewise\[ray\]"):
        RayExecutor(behave, lambda *_: True, address="auto")
