"""A folder of small pictures, and a run that was trained on them."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from likewise.cli import main
from likewise.protocols.executor import Executor, Report, Runner, SerialExecutor

CLASSES, EACH, SIDE = 12, 6, 36

QUICK = """
transform: glyphs
model: {trunk: convnet, dim: 8, weights: null, freeze_bn: false}
sampler: {class_path: PerClassSampler, init_args: {classes: 4, per_class: 3}}
optimizer: {lr: 0.003}
train: {epochs: 2, log_every: 1}
cache_on: ram
"""


def draw(folder: Path, classes: int = CLASSES, each: int = EACH) -> Path:
    """Stripes: a class is a direction and a width, an image a place and some noise."""
    chance = np.random.default_rng(0)
    y, x = np.mgrid[0:SIDE, 0:SIDE]
    for number in range(classes):
        place = folder / f"c{number:02d}"
        place.mkdir(parents=True)
        angle, wide = number * np.pi / classes, 0.4 + 0.05 * (number % 3)
        for image in range(each):
            wave = np.sin(wide * (x * np.cos(angle) + y * np.sin(angle)) + chance.uniform(0, 6))
            gray = (127 + 90 * wave + chance.normal(0, 12, (SIDE, SIDE))).clip(0, 255).astype(np.uint8)
            Image.fromarray(gray).save(place / f"{image}.png")
    return folder


@pytest.fixture(scope="session")
def session_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cli")
    draw(folder / "photos")
    (folder / "quick.yaml").write_text(QUICK)
    return folder


@pytest.fixture(autouse=True)
def here(session_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every test in a folder of its own, with the pictures beside; decoded images are shared."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LIKEWISE_CACHE", str(session_folder / "cache"))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("LIKEWISE_DEBUG", raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))  # undone afterwards, unlike what the program does itself
    (tmp_path / "photos").symlink_to(session_folder / "photos")
    shutil.copy(session_folder / "quick.yaml", tmp_path)
    return tmp_path


def run_serially(run: Runner, report: Report, **_options: object) -> Executor:
    """Trials run in this process: takes the place of `likewise.app.execution.choose_executor`."""
    return SerialExecutor(run, report)


@pytest.fixture
def serial(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands about studies run trials in this process."""
    monkeypatch.setattr("likewise.app.execution.choose_executor", run_serially)


TRAIN = ("train", "--config", "quick.yaml", "--data", "ImageFolder", "--data.root", "photos")


@pytest.fixture(scope="session")
def trained(session_folder: Path) -> Path:
    """A finished run; copy it before you change it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(session_folder)
        patch.setenv("LIKEWISE_CACHE", str(session_folder / "cache"))
        assert main([*TRAIN, "--out", "run"]) == 0
    return session_folder / "run"


@pytest.fixture
def run(trained: Path, here: Path) -> Path:
    """A copy of the finished run, beside the pictures."""
    shutil.copytree(trained, here / "run")
    return here / "run"
