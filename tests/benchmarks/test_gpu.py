"""The runner of what needs a GPU."""

from __future__ import annotations

import importlib.util
import time
from pathlib import Path

import pytest

from benchmarks import gpu


@pytest.mark.parametrize("name", gpu.TASKS)
def test_modules_exist(name: str) -> None:
    assert importlib.util.find_spec(gpu.TASKS[name].command.split()[0]) is not None


def test_a_task_runs_and_leaves_a_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert gpu.run("tasks", gpu.Task(1.0, "benchmarks.gpu --list"), time.time(), tmp_path)
    printed = capsys.readouterr().out
    assert printed.count("\n") == len(gpu.TASKS) + 2
    assert "tasks: done" in printed
    assert "benchmarks.engines.grid --device cuda --minutes 7" in (tmp_path / "tasks.log").read_text()


def test_a_task_is_stopped(capsys: pytest.CaptureFixture[str]) -> None:
    assert not gpu.run("endless", gpu.Task(0.01, "timeit -n 1000000000000 pass"), time.time(), None)
    assert not gpu.run("wrong", gpu.Task(1.0, "benchmarks.gpu --tasks none"), time.time(), None)
    printed = capsys.readouterr().out
    assert "endless: stopped" in printed
    assert "wrong: failed with status 2" in printed
