"""The commands of the README, typed as they stand there, by somebody who has nothing but the repository."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

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


def photographs(folder: Path) -> None:
    """Eight by six images whose class is a colour and a shape."""
    chance = np.random.default_rng(0)
    for label in range(8):
        (folder / f"class {label}").mkdir(parents=True)
        pattern = chance.integers(0, 256, (6, 6, 3))
        for number in range(6):
            noisy = np.clip(pattern + chance.normal(0.0, 40.0, (6, 6, 3)), 0, 255).astype(np.uint8)
            Image.fromarray(noisy).resize((140, 128)).save(folder / f"class {label}" / f"{number}.jpg")


@pytest.mark.slow
def test_the_command_lines(tmp_path: Path):
    photographs(tmp_path / "photos")
    (tmp_path / "recipes").symlink_to(ROOT / "recipes")
    typed = [words for words in TYPED if words[0] == "likewise"]
    assert len(typed) >= 8
    said = {shlex.join(words[1:3]): run(words, tmp_path, OMP_NUM_THREADS="1") for words in typed}
    assert "ProxyAnchorLoss" in said["train --config"]
    assert {"best.safetensors", "report.html"} <= {file.name for file in (tmp_path / "runs" / "photos").iterdir()}
    [opening] = [json.loads(line) for line in (tmp_path / "runs/photos/openings.jsonl").read_text().splitlines()]
    assert opening["why"] == "for the paper"
    assert opening["finished"]
    with np.load(tmp_path / "embeddings.npz") as saved:
        assert len(saved["embeddings"]) == len(saved["paths"]) == 48


@pytest.mark.slow
def test_the_demo(tmp_path: Path):
    """Unseen characters are found at least 25 points more often than by raw pixels and by the untrained network."""
    assert ["make", "demo"] in TYPED
    recipe = re.search(r"^demo:.*\n\t(.+)$", (ROOT / "Makefile").read_text(), re.M)
    assert recipe is not None
    words = shlex.split(recipe[1].replace("$(BIN)/", ""))  # what make runs, into a folder of our own
    said = run(words, tmp_path, OMP_NUM_THREADS="1")
    found = {name.strip(): float(value) for name, value in re.findall(r"^  (\S.*?)\s{2,}(\d+\.\d) ±", said, re.M)}
    best = re.search(r"best on validation: (.+?)\. ", said)
    assert best is not None
    assert found[best[1]] >= 25.0 + max(found["raw pixels"], found["untrained network"])
    report = re.search(r"the report, for a browser: (\S+)", said)
    assert report is not None
    assert (tmp_path / report[1]).stat().st_size < 10_000_000
    page = (tmp_path / report[1]).read_text()
    assert "raw pixels" in page
    assert "untrained network" in page
    records = [path.read_text().count("\n") for path in (tmp_path / "runs/demo").glob("*/openings.jsonl")]
    assert records == [1, 1, 1]
