"""Kill a whole tournament again and again, and see whether its table changes.

    python -m benchmarks.tournament_kills                            20 SIGKILLs; writes results/tournament-kills.json
    python -m benchmarks.tournament_kills --preset tiny --kills 3    prints, and writes nothing

`likewise tournament` trains on the CPU; at a seeded random moment it is killed (SIGKILL) with all its workers, goes on with
the same command, is killed again, and so on.  At the end its table must be that of a study that nobody disturbed, bit for
bit, in all columns but `seconds`, `command` (which names the folder) and `openings`: a process that dies after it has broken
the seal of a test set and before it has written down what it found must break it again, and that is in the record, as it
should be.  How often it happened is in the report.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.harness import RESULTS, machine, make_parser, versions, write
from likewise.protocols.study import Study
from likewise.train import Run

RESULT = RESULTS / "tournament-kills.json"
NOT_COMPARED = ("seconds", "command", "openings")
KILLS, PRESET = 20, "smoke"
LATEST = 40.0
"""Seconds after a start within which it is killed, or most of what an undisturbed study takes, if that is less."""


def start(folder: Path, preset: str, workers: int | None, cache: Path) -> subprocess.Popen[bytes]:
    """Begin a tournament, or go on with it: the command is the same."""
    environment = {**os.environ, "LIKEWISE_CACHE": str(cache)}
    command = [sys.executable, "-m", "likewise.cli", "tournament", "--preset", preset, "--out", str(folder)]
    command += [] if workers is None else ["--workers", str(workers)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    folder.parent.mkdir(exist_ok=True)
    return subprocess.Popen(command, env=environment, start_new_session=True, cwd=folder.parent, **pipes)  # type: ignore[call-overload, no-any-return]


def workers_of(folder: Path) -> list[int]:
    """The processes that work for a study; they are in sessions of their own, and in the folder above it."""
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = place.read_bytes().decode(errors="replace").split("\0")
            here = os.readlink(place.with_name("cwd")) == str(folder.parent.resolve())
        except OSError:  # it has ended since
            continue
        if here and words[1:3] == ["-m", "likewise.protocols.worker_process"]:
            found.append(int(place.parent.name))
    return found


def doing(folder: Path) -> str:
    """What a study that was killed had been doing, by what it has left behind."""
    if not (folder / "study.db").exists():
        return "planning"
    keys = [trial.key for trial in Study(folder / "study.db").missing()]
    runs = [Run(folder / "runs" / key) for key in keys if (folder / "runs" / key / "run.yaml").exists()]
    if any((each.folder / "test.npz").exists() or each.openings() for each in runs if not each.evaluations()):
        return "measuring the test set"
    if any(list(each.folder.glob("*.part")) or list(each.folder.glob(".*.aside")) for each in runs):
        return "writing a model or a checkpoint"
    if any(each.metrics() and not each.finished for each in runs):
        return "training"
    return "beginning or ending a training" if runs else "starting processes"


def killed(process: subprocess.Popen[bytes], folder: Path, seconds: float) -> bool:
    """Kill a tournament and its workers; false if it had ended before."""
    try:
        process.communicate(timeout=seconds)
        return False
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # the driver first, which would replace them
        process.communicate()
    while left := workers_of(folder):
        for each in left:
            try:
                os.kill(each, signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(0.01)
    return True


def finish(process: subprocess.Popen[bytes]) -> None:
    """Wait for the end."""
    said, _ = process.communicate()
    if process.returncode:
        raise SystemExit(f"the tournament ended with {process.returncode}:\n{said.decode()}")


def rows_of(folder: Path) -> list[dict[str, str]]:
    """The tidy table, as it is written."""
    with (folder / "results.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def differences(one: Path, other: Path) -> list[str]:
    """Which cells of two tables are not the same."""
    first, second = rows_of(one), rows_of(other)
    if [list(row) for row in first] != [list(row) for row in second]:
        return ["the columns or the number of rows"]
    return [
        f"{row['key']} {name}: {row[name]} and {twin[name]}"
        for row, twin in zip(first, second, strict=True)
        for name in row
        if name not in NOT_COMPARED and row[name] != twin[name]
    ]


def disturb(place: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Disturb one study after the other until there were enough kills, and compare each with one left alone."""
    chance, moments, starts, studies = random.Random(options.seed), Counter[str](), 0, 0
    begun = time.monotonic()
    finish(start(place / "alone" / "study", options.preset, options.workers, place / "cache"))
    alone = time.monotonic() - begun
    found: list[str] = []
    again = 0
    while moments.total() < options.kills:  # a study has an end: then another one is disturbed
        folder = place / f"disturbed-{studies}" / "study"
        studies += 1
        while True:
            process = start(folder, options.preset, options.workers, place / "cache")
            starts += 1
            if moments.total() == options.kills:
                finish(process)
                break
            if not killed(process, folder, chance.uniform(0.5, min(LATEST, 0.8 * alone))):
                if process.returncode:
                    raise SystemExit(f"the tournament ended with {process.returncode}")
                break
            moment = doing(folder)
            moments[moment] += 1
            counts = Study(folder / "study.db").counts() if (folder / "study.db").exists() else {}
            done = f"{counts.get('done', 0)} done, {counts.get('failed', 0)} failed"
            print(f"kill {moments.total()}, while {moment}: {done}", flush=True)
        found += differences(place / "alone" / "study", folder)
        again += sum(int(row["openings"]) - 1 for row in rows_of(folder))
    return {
        "kills": moments.total(),
        "while": dict(moments.most_common()),
        "studies": studies,
        "starts": starts,
        "trainings in a study": len(rows_of(place / "alone" / "study")),
        "differences": found,
        "test sets opened again after a kill": again,
        "not compared": list(NOT_COMPARED),
        "seconds undisturbed": round(alone, 1),
    }


def main() -> None:
    """Disturb one study, leave another alone, and compare."""
    parser = make_parser(__doc__)
    parser.add_argument("--preset", choices=("smoke", "tiny"), default=PRESET, help="which study")
    parser.add_argument("--kills", type=int, default=KILLS, help="how many")
    parser.add_argument("--workers", type=int, help="processes (default: as many as fit)")
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        report = {"machine": {**machine("cpu"), **versions("torch", "likewise")}, "preset": options.preset}
        report |= {"seed": options.seed, **disturb(Path(scratch), options)}
    print(json.dumps(report, indent=1))
    if (options.kills, options.preset) == (KILLS, PRESET):
        write(report, RESULT)
    if report["differences"]:
        raise SystemExit("the table changed")


if __name__ == "__main__":
    main()
