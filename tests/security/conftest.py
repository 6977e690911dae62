"""A folder with modules that leave a mark when they are imported, and commands that must not leave one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from likewise.cli import main

EVIL = """
from pathlib import Path
Path(__file__).with_name("EXECUTED").touch()
from torch import nn
from torch.utils.data import Sampler
from likewise.data import ImageFolder

class Loss(nn.Module): ...
class Miner: ...
class Draws(Sampler): ...
class Data(ImageFolder): ...
def call(*args, **kwargs): ...
"""

Answers = Callable[..., tuple[int, str]]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, as an attacker has prepared it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("LIKEWISE_DEBUG", raising=False)
    (tmp_path / "evil.py").write_text(EVIL)
    for name in ("similarity.yaml", "mean"):
        (tmp_path / name).write_text("class_path: evil.Loss")
    return tmp_path


@pytest.fixture
def answer(here: Path, capsys: pytest.CaptureFixture[str]) -> Answers:
    """Run a command: its exit code and its errors; nothing of the attacker's may have been executed."""

    def call(*words: str) -> tuple[int, str]:
        code = main(list(words))
        assert not (here / "EXECUTED").exists(), words
        assert not (here / "PWNED").exists(), words
        return code, capsys.readouterr().err

    return call
