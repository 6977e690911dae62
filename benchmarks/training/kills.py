"""Kill every command that writes, again and again, and compare what it leaves with what it leaves undisturbed.

    python -m benchmarks.training.kills                       100 SIGKILLs over all commands; writes results/kills.json
    python -m benchmarks.training.kills --kills 5             prints, and writes nothing
    python -m benchmarks.training.kills --minutes 8 --write   as many as fit; writes how many that were

`likewise train`, `evaluate --test`, `embed`, `index` and `tournament` run on the CPU, are killed (SIGKILL) at a seeded random
moment, are started again (`train` with --resume, the others with the same command), are killed again, and so on. A restart
that ends with an error is counted as refused. When a command comes to its end, its result must be that of the undisturbed
one, bit for bit; what is not is counted as lost. Recovery is the time from a restart until it writes. Checkpoints are taken
all the time here (train.checkpoint_minutes 0), so that many kills fall between two of them and into one.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from PIL import Image
from safetensors.torch import load_file

from benchmarks.harness import RESULTS, machine, make_parser, versions, write
from likewise.search import Index, check_version, list_versions

RESULT = RESULTS / "kills.json"
TIMES = ("seconds", "images_per_s")
KILLS = 100
GLYPHS = ["--data", "Glyphs", "--data.images_per_class", "4", "--optimizer.lr", "0.002", "--sampler.classes", "16"]
OFTEN = ["--train.log_every", "5", "--train.checkpoint_minutes", "0"]
TRAIN = [*GLYPHS, *OFTEN, "--loss", "ProxyAnchorLoss", "--memory.size", "256", "--sampler.steps", "20"]
TRAIN += ["--train.epochs", "2", "--train.ema", "0.9"]
STUDY = {
    "name": "kills",
    "base": {
        "data": {"class_path": "Glyphs", "init_args": {"images_per_class": 4}},
        "sampler": {"class_path": "PerClassSampler", "init_args": {"classes": 16, "steps": 10}},
        "train": {"epochs": 1, "checkpoint_minutes": 0},
    },
    "methods": {"contrastive": {"loss": "ContrastiveLoss"}, "circle": {"loss": "CircleLoss"}},
}


@dataclass
class Command:
    """A command that is killed.

    Args:
        name: what it is called.
        words: makes the command line, for a folder to write to.
        again: makes that of a restart.
        same: compares two results.
        delay: seconds after the first write in which it is killed.
    """

    name: str
    words: Callable[[Path], list[str]]
    again: Callable[[Path], list[str]]
    same: Callable[[Path, Path], bool]
    delay: float = 3.0
    tried: int = 0
    writing: int = 0
    ended: int = 0
    lost: int = 0
    refused: int = 0
    starts: int = 0
    recoveries: list[float] = field(default_factory=list)

    def row(self) -> dict[str, Any]:
        """What is published."""
        slowest = round(max(self.recoveries), 1) if self.recoveries else None
        counts = {key: getattr(self, key) for key in ("tried", "writing", "ended", "lost", "refused", "starts")}
        return {"command": self.name, **counts, "slowest recovery": slowest}


def likewise(*words: str, place: Path) -> subprocess.Popen[bytes]:
    """A process of the command line, with one thread, so that its numbers are the same whatever else goes on."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "LIKEWISE_CACHE": str(place / "cache")}
    command = [sys.executable, "-m", "likewise.cli", *words]
    # a group of its own: the workers of a study are killed with it
    return subprocess.Popen(
        command, env=environment, cwd=place, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
    )


def same_runs(one: Path, other: Path) -> bool:
    """Whether two runs have the same record, but for times, and the same models."""
    lines = [
        [{k: v for k, v in json.loads(line).items() if k not in TIMES} for line in text.splitlines()]
        for text in ((folder / "metrics.jsonl").read_text() for folder in (one, other))
    ]
    return lines[0] == lines[1] and all(
        _same_tensors(one / name, other / name) for name in ("best.safetensors", "model.safetensors")
    )


def _same_tensors(one: Path, other: Path) -> bool:
    first, second = load_file(one), load_file(other)
    return first.keys() == second.keys() and all(bool((first[key] == second[key]).all()) for key in first)


def same_evaluations(one: Path, other: Path) -> bool:
    """Whether the test set counts as opened once, with the same numbers."""
    lines = [
        [json.loads(line) for line in (folder / "evaluations.jsonl").read_text().splitlines()]
        for folder in (one, other)
    ]
    opened = len((other / "openings.jsonl").read_text().splitlines())
    last = [next(line["metrics"] for line in reversed(some) if line["part"] == "test") for some in lines]
    return opened == 1 and last[0] == last[1] and (other / "report.html").exists()


def same_arrays(one: Path, other: Path) -> bool:
    """Whether two files of embeddings are equal."""
    with np.load(one / "a.npz") as first, np.load(other / "a.npz") as second:
        return all(np.array_equal(first[key], second[key]) for key in ("embeddings", "paths"))


def same_indexes(one: Path, other: Path) -> bool:
    """Whether two indexes have the same items, and no file of the second is damaged."""
    first, second = (Index.open(folder / "a.index") for folder in (one, other))
    damaged = [file for version in list_versions(other / "a.index") for file in check_version(version)]
    vectors = [each.vectors(np.arange(len(each))) for each in (first, second)]
    return not damaged and np.array_equal(vectors[0], vectors[1])


def same_studies(one: Path, other: Path) -> bool:
    """Whether two studies have the same table, but for times and commands."""
    tables = []
    for folder in (one, other):
        head, *rows = (folder / "results.csv").read_text().splitlines()
        kept = [
            place for place, name in enumerate(head.split(",")) if name.startswith(("method", "seed", "val", "test"))
        ]
        tables.append(sorted(tuple(row.split(",")[place] for place in kept) for row in rows))
    return tables[0] == tables[1]


def newest(folder: Path) -> int:
    """When something in a folder changed last."""
    times = [0]
    for file in folder.rglob("*"):
        try:
            times.append(file.stat().st_mtime_ns)
        except OSError:
            continue
    return max(times)


def disturb(command: Command, process: subprocess.Popen[bytes], folder: Path, chance: random.Random) -> bool:
    """Kill a process at a random moment after its first write; whether it was still running."""
    before, begin = newest(folder), time.monotonic()
    while process.poll() is None and newest(folder) <= before:
        time.sleep(0.02)
    if command.starts > 1 and process.poll() is None:
        command.recoveries.append(time.monotonic() - begin)
    limit = time.monotonic() + chance.uniform(0.0, command.delay)
    while process.poll() is None and time.monotonic() < limit:
        time.sleep(0.002)
    running = process.poll() is None
    if running:
        os.killpg(process.pid, signal.SIGKILL)
    _, errors = process.communicate()
    if process.returncode == -signal.SIGKILL:
        command.tried += 1
        command.writing += any(folder.rglob("*.part")) or any(folder.rglob(".*.aside"))
        return True
    if process.returncode:
        command.refused += 1
        print(f"{command.name} refused: {errors.decode()[-400:]}", flush=True)
    return False


def make_commands(place: Path) -> list[Command]:
    """Every command that writes, with what its undisturbed run leaves in ``alone/NAME``."""
    run, photos, study = place / "alone" / "train", place / "photos", place / "study.yaml"
    draw(photos)
    study.write_text(yaml.safe_dump(STUDY))

    def evaluate(folder: Path) -> list[str]:
        if not folder.exists() or not (folder / "run.yaml").exists():
            copy(run, folder)
        return ["evaluate", str(folder), "--test", "--why", "kills"]

    def embed(folder: Path) -> list[str]:
        return ["embed", str(run), str(photos), "-o", str(folder / "a.npz")]

    def index(folder: Path) -> list[str]:
        return ["index", str(run), str(photos), "-o", str(folder / "a.index")]

    def tournament(folder: Path) -> list[str]:
        return ["tournament", str(study), "--out", str(folder), "--workers", "1"]

    def train(folder: Path) -> list[str]:
        return ["train", *TRAIN, "--out", str(folder)]

    def resume(folder: Path) -> list[str]:
        return ["train", "--resume", str(folder)] if (folder / "run.yaml").exists() else train(folder)

    return [
        Command("train", train, resume, same_runs),
        Command("evaluate --test", evaluate, evaluate, same_evaluations, delay=6.0),
        Command("embed", embed, embed, same_arrays, delay=1.0),
        Command("index", index, index, same_indexes, delay=1.0),
        Command("tournament", tournament, tournament, same_studies, delay=8.0),
    ]


def draw(folder: Path) -> None:
    """Pictures to embed."""
    chance = np.random.default_rng(0)
    for number in range(400):
        (folder / f"c{number % 20}").mkdir(parents=True, exist_ok=True)
        pixels = chance.integers(0, 255, (48, 48, 3), np.uint8)
        Image.fromarray(pixels).save(folder / f"c{number % 20}" / f"{number}.png")


def copy(source: Path, folder: Path) -> None:
    """A finished run whose test set is sealed."""
    folder.mkdir(parents=True, exist_ok=True)
    for file in source.iterdir():
        if file.is_file() and file.name not in ("openings.jsonl", "evaluations.jsonl", ".lock", "run.yaml"):
            (folder / file.name).write_bytes(file.read_bytes())
    (folder / "run.yaml").write_bytes((source / "run.yaml").read_bytes())


def disturb_all(place: Path, commands: list[Command], kills: int, until: float, seed: int) -> None:
    """Kill one command after the other, until there are as many kills as wanted or the time is over."""
    chance, rounds = random.Random(seed), 0
    while sum(command.tried for command in commands) < kills and time.monotonic() < until:
        command = commands[rounds % len(commands)]
        folder = place / f"disturbed-{rounds}"
        folder.mkdir()
        words, left = command.words(folder), max(1, kills // (2 * len(commands)))
        while True:
            process = likewise(*words, place=place)
            command.starts += 1
            enough = left == 0 or time.monotonic() > until
            if enough:
                _, errors = process.communicate()
                if process.returncode:
                    command.refused += 1
                    print(f"{command.name} refused: {errors.decode()[-400:]}", flush=True)
            elif disturb(command, process, folder, chance):
                left -= 1
                words = command.again(folder)
                continue
            break
        command.ended += 1
        same = process.returncode == 0 and command.same(place / "alone" / command.name.split()[0], folder)
        command.lost += not same
        rounds += 1
        print(command.row(), flush=True)


def main() -> None:
    """Run each command undisturbed, disturb all of them, and compare."""
    parser = make_parser(__doc__)
    parser.add_argument("--kills", type=int, default=KILLS, help="how many")
    parser.add_argument(
        "--minutes", type=float, default=float("inf"), help="kill no longer than so many; what was killed is finished"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    parser.add_argument("--write", action="store_true", help="write the results of another number of kills, too")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        commands = make_commands(place)
        for command in commands:
            folder = place / "alone" / command.name.split()[0]
            if command.name != "train":
                folder.mkdir(parents=True)
            process = likewise(*command.words(folder), place=place)
            _, errors = process.communicate()
            if process.returncode:
                raise SystemExit(errors.decode())
            print(f"{command.name}: undisturbed", flush=True)
        until = time.monotonic() + 60 * options.minutes
        disturb_all(place, commands, options.kills, until, options.seed)
    rows, first = [command.row() for command in commands], commands[0]
    report = {
        "machine": {**machine("cpu"), **versions("torch", "likewise")},
        "kills": first.tried,
        "while writing a checkpoint": first.writing,
        "trainings": first.ended,
        "processes": first.starts,
        "kills of all commands": sum(row["tried"] for row in rows),
        "differences": [row["command"] for row in rows if row["lost"]],
        "commands": rows,
        "seed": options.seed,
    }
    print(json.dumps(report, indent=1))
    if options.write or options.kills == KILLS:
        write(report, RESULT)
    if report["differences"]:
        raise SystemExit("something was lost")


if __name__ == "__main__":
    main()
