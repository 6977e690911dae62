"""A training that is killed ends with the numbers that it would have had; `benchmarks.kills` kills it at any moment."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from safetensors.torch import load_file

from tests.train.program import draw

PROGRAM = Path(__file__).with_name("program.py")
TIMES = ("seconds", "images_per_s")


def start(folder: Path, cache: Path, *die: str) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(PROGRAM.parents[2])}
    command = [sys.executable, str(PROGRAM), str(folder), str(cache), *die]
    return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def finish(folder: Path, cache: Path) -> None:
    process = start(folder, cache)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 0, said.decode()


def measured(folder: Path) -> list[dict[str, object]]:
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [{key: value for key, value in line.items() if key not in TIMES} for line in lines]


def assert_same(one: Path, other: Path) -> None:
    assert measured(one) == measured(other)
    for name in ("model.safetensors", "best.safetensors"):
        first, second = load_file(one / name), load_file(other / name)
        assert first.keys() == second.keys()
        assert all(bool((first[key] == second[key]).all()) for key in first), name
    assert not list(other.glob("*.part"))


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("killed")
    draw(place / "images")
    return place


@pytest.fixture(scope="module")
def undisturbed(cache: Path) -> Path:
    finish(cache / "undisturbed", cache)
    return cache / "undisturbed"


@pytest.mark.slow
def test_killed_while_a_checkpoint_is_written(cache: Path, undisturbed: Path):
    """Before its file is written, in the middle of it, and before the rename; each run continues the one before."""
    folder = cache / "checkpoints"
    for die in ("before:3", "half:8", "rename:6"):
        process = start(folder, cache, "--die", die)
        _, said = process.communicate(timeout=120)
        assert process.returncode == -signal.SIGKILL, said.decode()
    finish(folder, cache)
    assert_same(undisturbed, folder)
