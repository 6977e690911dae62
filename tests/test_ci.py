"""The script of continuous integration: with a browser, with one to install, and with none."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BASH = shutil.which("bash") or "bash"


def run(folder: Path, **commands: str) -> subprocess.CompletedProcess[str]:
    """The script where nothing can be called but these commands."""
    for name, text in {"make": 'echo "make $*"', "dirname": 'echo "${1%/*}"', **commands}.items():
        place = folder / name
        place.write_text(f"#!{BASH}\n{text}\n")
        place.chmod(0o755)
    words = [BASH, str(ROOT / ".ci" / "run")]
    return subprocess.run(words, env={"PATH": str(folder)}, capture_output=True, text=True, check=False)


def test_a_browser_is_there(tmp_path: Path):
    done = run(tmp_path, chromium="")
    assert (done.returncode, done.stdout) == (0, "make test\n")


@pytest.mark.parametrize(("user", "sudo"), [("0", ""), ("1000", 'shift; "$@"')])
def test_a_browser_is_installed_where_that_is_allowed(tmp_path: Path, user: str, sudo: str):
    made = f'[ "$1" = update ] || {{ echo "#!{BASH}" > {tmp_path}/chromium; {shutil.which("chmod")} +x {tmp_path}/chromium; }}'
    done = run(tmp_path, id=f"echo {user}", **{"apt-get": made, "sudo": sudo or "exit 1"})
    assert (done.returncode, done.stdout) == (0, "make test\n")


def test_without_a_browser_it_fails_with_the_command(tmp_path: Path):
    done = run(tmp_path, id="echo 1000", sudo="exit 1")
    assert done.returncode == 1
    assert "make" not in done.stdout
    assert done.stderr.splitlines()[-1].endswith("could not be installed: sudo apt-get install -y chromium")


def test_the_summary_names_what_was_not_tested():
    """pytest itself, where no browser is on the path."""
    words = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "tests/report/test_page.py"]
    words += ["-k", "silent and empty_study"]
    done = subprocess.run(words, cwd=ROOT, env={**os.environ, "PATH": ""}, capture_output=True, text=True, check=False)
    told = [line for line in done.stdout.splitlines() if line.startswith("not tested:")]
    assert told == [
        "not tested: 1 tests of pages, because there is no Chromium; get it: sudo apt-get install -y chromium"
    ], done.stdout
