"""Kill a training again and again, and see whether its numbers change.

    python benchmarks/kills.py               25 SIGKILLs; writes results/kills.json
    python benchmarks/kills.py --kills 3     prints, and writes nothing

`likewise train` learns glyphs on the CPU, is killed (SIGKILL) at a seeded random moment, goes on with `likewise train
--resume`, is killed again, and so on; every fifth kill waits until a checkpoint is being written.  At the end the record
and the models must be those of a training that nobody disturbed, bit for bit.  Checkpoints are taken all the time here
(plan.checkpoint_minutes 0), so that many kills fall between two of them and into one.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from machine import machine, versions, write
from safetensors.torch import load_file

RESULTS = Path(__file__).parent / "results" / "kills.json"
TIMES = ("seconds", "images_per_s")
KILLS = 25
FLAGS = [
    "--data",
    "Glyphs",
    "--data.images_per_class",
    "4",
    "--loss",
    "ProxyAnchorLoss",
    "--optimizer.lr",
    "0.002",
    "--memory.size",
    "256",
    "--sampler.classes",
    "16",
    "--sampler.steps",
    "60",
    "--plan.epochs",
    "4",
    "--plan.ema",
    "0.9",
    "--plan.log_every",
    "5",
    "--plan.checkpoint_minutes",
    "0",
]


def likewise(*words: str, cache: Path) -> subprocess.Popen[bytes]:
    """A process of the command line, with one thread, so that its numbers are the same whatever else goes on."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "LIKEWISE_CACHE": str(cache)}
    command = [sys.executable, "-m", "likewise.cli", *words]
    return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def measured(folder: Path) -> list[dict[str, Any]]:
    """The record, but for times."""
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [{key: value for key, value in line.items() if key not in TIMES} for line in lines]


def differences(one: Path, other: Path) -> list[str]:
    """What is not the same in two runs."""
    found = [] if measured(one) == measured(other) else ["metrics.jsonl"]
    for name in ("best.safetensors", "model.safetensors"):
        first, second = load_file(one / name), load_file(other / name)
        if first.keys() != second.keys() or any(bool((first[key] != second[key]).any()) for key in first):
            found.append(name)
    return found


def killed(process: subprocess.Popen[bytes], folder: Path, chance: random.Random, inside: bool) -> str | None:
    """Kill a training at a random moment after it has begun; what it was doing, or nothing if it was done before."""
    lines = folder / "metrics.jsonl"
    before = lines.stat().st_mtime_ns if lines.exists() else 0
    while process.poll() is None and not (lines.exists() and lines.stat().st_mtime_ns > before):
        time.sleep(0.005)
    limit = time.monotonic() + chance.uniform(0.0, 3.0)
    while process.poll() is None and time.monotonic() < limit:
        time.sleep(0.001)
    patience = time.monotonic() + 20.0
    while inside and process.poll() is None and time.monotonic() < patience:
        if next(folder.glob("last.safetensors.*.part"), None) is not None:
            break
    writing = next(folder.glob("*.part"), None) is not None
    process.kill()
    process.communicate()
    if process.returncode != -signal.SIGKILL:
        return None
    left = next(folder.glob("*.part"), None) is not None
    return "writing a checkpoint" if writing or left else "training"


def main() -> None:
    """Disturb one training, leave another alone, and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=KILLS, help="how many")
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    options = parser.parse_args()
    chance = random.Random(options.seed)
    moments: list[str] = []
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        alone = likewise("train", *FLAGS, "--out", str(place / "alone"), cache=place / "cache")
        _, said = alone.communicate()
        if alone.returncode:
            raise SystemExit(said.decode())
        rounds, trainings, kinds = 0, 0, []
        while len(moments) < options.kills:  # a training has an end: then another one is disturbed
            folder = place / f"disturbed-{trainings}"
            trainings += 1
            words = ["train", *FLAGS, "--out", str(folder)]
            while True:
                process = likewise(*words, cache=place / "cache")
                moment = None
                if len(moments) < options.kills:
                    moment = killed(process, folder, chance, inside=len(moments) % 5 == 4)
                else:
                    process.communicate()
                rounds += 1
                if moment is None:
                    break
                moments.append(moment)
                print(f"kill {len(moments)}: {moment}, after {rounds} starts", flush=True)
                words = ["train", "--resume", str(folder)]
            kinds.append(differences(place / "alone", folder))
    report = {
        "machine": {**machine("cpu"), **versions("torch", "likewise")},
        "kills": len(moments),
        "while writing a checkpoint": moments.count("writing a checkpoint"),
        "trainings": trainings,
        "processes": rounds,
        "differences": sorted({each for some in kinds for each in some}),
        "seed": options.seed,
    }
    print(json.dumps(report, indent=1))
    if options.kills == KILLS:
        write(report, RESULTS)
    if report["differences"]:
        raise SystemExit("the numbers changed")


if __name__ == "__main__":
    main()
