"""What benchmarks read of a machine: the share of the time in which its GPU was busy."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from benchmarks.harness import Busy

DRIVER = """#!/bin/sh
echo "$@" > {folder}/asked
for share in 90 70 '[N/A]' 20; do echo "$share"; done
exec sleep 60
"""


@pytest.fixture
def busy() -> Any:
    return Busy


@pytest.mark.skipif(os.name != "posix", reason="the driver here is a shell script")
def test_the_driver_is_asked_while_a_block_runs(busy: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """What it does not know is left out, and so is what it says of the time before; then it is told to end."""
    script = tmp_path / "nvidia-smi"
    script.write_text(DRIVER.format(folder=tmp_path))
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    begin = time.perf_counter()
    with busy("cuda:1") as watch:
        until = begin + 30.0
        while len(watch.seen) < 3 and time.perf_counter() < until:
            time.sleep(0.01)
    assert time.perf_counter() < until
    assert watch.process.poll() is not None
    assert "--id=1" in (tmp_path / "asked").read_text()
    assert [share for _, share in watch.seen] == [0.9, 0.7, 0.2]
    end = time.perf_counter()
    assert watch.share(begin - watch.BEHIND, end) == pytest.approx(0.6)
    assert watch.share(begin, begin + watch.BEHIND / 2) is None
    watch.seen = [(0.9, 0.5), (1.1, 0.8), (2.0, 1.0), (2.1, 0.1)]
    assert watch.share(0.0, 2.0) == pytest.approx(0.9)


def test_nothing_is_asked_about_a_processor(busy: Any):
    with busy("cpu") as watch:
        pass
    assert watch.share(0.0, time.perf_counter()) is None
