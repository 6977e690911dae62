"""A folder of another person's: its modules, its repository, its links and its pictures execute and change nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from likewise.data import BrokenImage, decode
from likewise.files import hold_lock
from likewise.protocols import Study, Trial, merge_study
from likewise.protocols.local import _start_process
from likewise.train import Run
from likewise.train.commit import read_commit
from tests.security.conftest import Answers

MARK = "open('EXECUTED', 'w').close()\n"


def git(*words: str) -> None:
    subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], check=True, capture_output=True)


@pytest.mark.parametrize("way", ["monitor", "filter", "hook", "included"])
def test_a_repository_runs_nothing(way: str, here: Path):
    """``git status`` runs what a repository configures; the commit is read all the same."""
    git("init", "-q", ".")
    Path("a.txt").write_text("a")
    git("add", "a.txt")
    git("commit", "-qm", "a")
    assert str(read_commit())[-1:] not in "+?"
    Path("a.txt").write_text("b")
    assert str(read_commit()).endswith("+")
    evil = "touch PWNED; false"
    if way == "monitor":
        git("config", "core.fsmonitor", evil)
    elif way == "filter":
        git("config", "filter.evil.clean", evil)
        Path(".gitattributes").write_text("* filter=evil\n")
    elif way == "hook":
        hook = Path(".git/hooks/post-index-change")
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\n{evil}\n")
        hook.chmod(0o755)
        os.utime("a.txt", (0, 0))
    else:
        Path(".git/more").write_text(f'[core]\n  fsmonitor = "{evil}"\n')
        git("config", "include.path", "more")
    assert read_commit() is not None
    assert not (here / "PWNED").exists()


def test_workers_and_packs_take_no_module_of_the_current_folder(here: Path):
    for name in ("queue", "pickle", "signal", "torch", "yaml"):
        (here / f"{name}.py").write_text(MARK)
    process = _start_process(0, None)
    process.communicate(b"", timeout=60)
    done = subprocess.run(
        [sys.executable, "-m", "likewise.app.execute", "nowhere"], capture_output=True, text=True, check=False
    )
    assert "pack must be a folder" in done.stderr
    assert done.returncode == 2
    assert not (here / "EXECUTED").exists()


def test_a_run_is_not_written_through_links(here: Path, answer: Answers):
    """Records are appended to, cut and locked in place: a link could lead to any file of the user's."""
    (here / "precious").write_text("precious\n")
    run = Run.create("run", {})
    for name in ("metrics.jsonl", "openings.jsonl", "evaluations.jsonl", ".lock"):
        (here / "run" / name).symlink_to(here / "precious")
    for write in (
        lambda: run.log("train", step=1),
        lambda: run.truncate_metrics(0),
        lambda: run.record_opening("why", "best"),
        lambda: run.lock().__enter__(),
        lambda: hold_lock(here / "run" / ".lock", RuntimeError()).__enter__(),
    ):
        with pytest.raises(OSError, match="must not be a link"):
            write()
    assert (here / "precious").read_text() == "precious\n"


def test_a_pack_brings_no_links(here: Path):
    (here / "secret").write_text("secret")
    [trial] = Study(here / "mine" / "study.db").add([Trial("a", {})])
    Study(here / "theirs" / "study.db").add([trial])
    run = Run.create(here / "theirs" / "runs" / trial.key, {})
    (run.folder / "notes").symlink_to(here / "secret")
    merge_study(here / "mine", here / "theirs")
    assert [each.name for each in (here / "mine" / "runs" / trial.key).iterdir()] == ["run.yaml"]


def test_a_picture_that_is_a_program(here: Path, monkeypatch: pytest.MonkeyPatch):
    """Pillow knows files by their content, and hands PostScript to Ghostscript."""
    (here / "gs").write_text("#!/bin/sh\ntouch PWNED\n")
    (here / "gs").chmod(0o755)
    monkeypatch.setenv("PATH", str(here), prepend=os.pathsep)
    (here / "a.png").write_text("%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n%%EndComments\n%%EOF\n")
    with pytest.raises(BrokenImage, match="EPS file, which only an external program can decode"):
        decode(here / "a.png")
    assert not (here / "PWNED").exists()


def test_a_name_is_an_import_path_or_an_error(here: Path, answer: Answers):
    """What is printed for a shell or a terminal is not what a recipe writes."""
    for name in ("a.B; touch PWNED", "a.B\\x1b[31m", "a..B", "a.B\\nlikewise: all is well"):
        (here / "recipe.yaml").write_text(f'data: Glyphs\nloss: {{class_path: "{name}"}}\n')
        code, err = answer("train", "--config", "recipe.yaml")
        assert code == 2
        assert "loss must be an import path such as a.B" in err
        assert err.count("\n") == 1
        assert "\x1b" not in err
