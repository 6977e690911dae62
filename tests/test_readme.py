"""The commands of the README, typed as they stand there, by somebody who has nothing but the repository."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from likewise.cli import main

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
COMMANDS = [line for block in re.findall(r"^```console\n(.*?)^```", README, re.S | re.M) for line in block.splitlines()]
TYPED = [shlex.split(line.removeprefix("$ "), comments=True) for line in COMMANDS]


def run(words: list[str], folder: Path, **environment: str) -> str:
    """What a command prints; it must succeed."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    settings = {**os.environ, "PATH": path, "LIKEWISE_CACHE": str(folder / "cache"), **environment}
    result = subprocess.run(words, cwd=folder, env=settings, capture_output=True, text=True)
    assert result.returncode == 0, f"{shlex.join(words)}\n{result.stdout[-2000:]}\n{result.stderr[-2000:]}"
    return result.stdout


def answered(words: list[str], folder: Path) -> dict[str, Any]:
    """What a server says about itself."""
    command = [str(Path(sys.executable).parent / words[0]), *words[1:], "--port", "0"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            address = re.search(r"http://\S+", server.stdout.readline())
            assert address is not None
            with urllib.request.urlopen(f"{address[0]}api/about", timeout=60) as reply:
                said: dict[str, Any] = json.load(reply)
        finally:
            server.terminate()
    return said


def photographs(folder: Path) -> None:
    """Eight by six images whose class is a color and a shape."""
    chance = np.random.default_rng(0)
    for label in range(8):
        (folder / f"class {label}").mkdir(parents=True)
        pattern = chance.integers(0, 256, (6, 6, 3))
        for number in range(6):
            noisy = np.clip(pattern + chance.normal(0.0, 40.0, (6, 6, 3)), 0, 255).astype(np.uint8)
            Image.fromarray(noisy).resize((140, 128)).save(folder / f"class {label}" / f"{number}.jpg")


@pytest.mark.slow
def test_the_command_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """In this process, which has imported torch; the demonstration below is a process of its own."""
    photographs(tmp_path / "photos")
    shutil.copy(tmp_path / "photos" / "class 3" / "0.jpg", tmp_path / "query.jpg")
    typed = [words for words in TYPED if words[0] == "likewise"]
    assert len(typed) >= 8
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path / "cache"))
    said = {}
    for words in typed:
        if words[1] != "serve":
            assert main(words[1:]) == 0, f"{shlex.join(words)}\n{capsys.readouterr()}"
            said[shlex.join(words[1:3])] = capsys.readouterr().out
    [served] = [words for words in typed if words[1] == "serve"]
    assert answered(served, tmp_path)["items"] == 48
    assert "ProxyAnchorLoss" in said["train --config"]
    assert {"best.safetensors", "report.html"} <= {file.name for file in (tmp_path / "runs" / "photos").iterdir()}
    [opening] = [json.loads(line) for line in (tmp_path / "runs/photos/openings.jsonl").read_text().splitlines()]
    assert opening["why"] == "for the paper"
    assert opening["finished"]
    assert "class 3/0.jpg" in said["search photos.index"].splitlines()[1]  # the query is in the collection, too
    assert (tmp_path / "found.png").stat().st_size > 10_000


@pytest.mark.slow
def test_the_demo(tmp_path: Path):
    """Unseen characters are found far more often than by raw pixels and by the untrained network.

    That is so with a quarter of the images and a quarter of the training, too: 23 points where this was written.
    """
    assert ["make", "demo"] in TYPED
    recipe = re.search(r"^demo:.*\n\t(.+)$", (ROOT / "Makefile").read_text(), re.M)
    assert recipe is not None
    words = shlex.split(recipe[1].replace("$(BIN)/", ""))  # what make runs, into a folder of our own
    said = run([*words, "--epochs", "1", "--images-per-class", "6"], tmp_path, OMP_NUM_THREADS="1")
    found = {name.strip(): float(value) for name, value in re.findall(r"^  (\S.*?)\s{2,}(\d+\.\d) ±", said, re.M)}
    best = re.search(r"best on validation: (.+?)\. ", said)
    assert best is not None
    assert found[best[1]] >= 15.0 + max(found["raw pixels"], found["untrained network"])
    report = re.search(r"the report, for a browser: (\S+)", said)
    assert report is not None
    assert (tmp_path / report[1]).stat().st_size < 10_000_000
    page = (tmp_path / report[1]).read_text()
    assert "raw pixels" in page
    assert "untrained network" in page
    records = [path.read_text().count("\n") for path in (tmp_path / "runs/demo").glob("*/openings.jsonl")]
    assert records == [1, 1, 1]
