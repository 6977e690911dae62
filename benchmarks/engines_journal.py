"""The file of results of `engines.py`: a row is on disk as soon as it is known, and is not measured twice."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import torch
from engines_jobs import Job
from engines_measure import PEER, Row
from machine import machine, versions
from pairings import PEER_MISSING, SAMPLES_PER_CLASS

ROOT = Path(__file__).parents[1]
NOT_ROWS = ("machine", "arguments")


def name_of(key: Row) -> str:
    """A row's name, from what names it."""
    return json.dumps({field: value for field, value in sorted(key.items()) if value is not None})


class Journal:
    """Rows by name, and the file that holds them.

    Args:
        path: the file; ``None`` keeps them in memory.
        head: what the run is: the machine, the versions, the arguments.
    """

    def __init__(self, path: Path | None, head: dict[str, Any]) -> None:
        self.path = path
        self.head = head
        self.rows: dict[str, Row] = {}

    def take(self, path: Path, jobs: dict[str, Job], *, retry: bool, any_code: bool) -> int:
        """Take over the rows of a file that still hold: same machine, versions and arguments, and the same code."""
        if not path.exists():
            return 0
        report = json.loads(path.read_text())
        if any(same(report[part]) != same(self.head[part]) for part in NOT_ROWS):
            print(f"{path.name} is of another machine, version or arguments; its rows are not taken over")
            return 0
        before = len(self.rows)
        for row in report["rows"]:
            name, job = name_of(row["key"]), jobs.get(name_of(row["key"]))
            if retry and "why" in row:
                continue
            # a part that was not asked for this time stays as it is, under the same condition
            code = code_of(job.ours) if job else code_of(row["key"]["contender"] not in (PEER, "torch"))
            if any_code or row["code"] == code:
                self.rows[name] = row
        return len(self.rows) - before

    def add(self, job: Job, row: Row) -> None:
        """Put a row down."""
        self.rows[name_of(job.key)] = {"key": job.key, "code": code_of(job.ours), **row}
        self.write()

    def write(self) -> None:
        """Write aside and rename; one row on a line."""
        if self.path is None:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        aside = self.path.with_name(self.path.name + ".part")
        head = ",\n".join(f'"{part}": {json.dumps(self.head[part])}' for part in self.head)
        rows = ",\n".join(json.dumps(row) for row in self.rows.values())
        aside.write_text(f'{{{head},\n"rows": [\n{rows}\n]}}\n')
        os.replace(aside, self.path)


def same(part: dict[str, Any]) -> dict[str, Any]:
    """What must be equal for rows to be comparable; which processor drives a GPU need not be."""
    chip = part.get("device") or part.get("cpu")
    return {
        "chip": chip,
        **{name: part.get(name) for name in ("torch", "triton", "dim", "seconds", "quick", "per_class")},
    }


def heading(device: str, dim: int, seconds: float, quick: bool) -> dict[str, Any]:
    """What the run is."""
    arguments = {"dim": dim, "seconds": seconds, "quick": quick, "per_class": SAMPLES_PER_CLASS}
    facts = {**machine(device), **versions("torch", "triton", "numpy", "likewise"), PEER: peer_version()}
    return {"machine": facts, "arguments": arguments, "commit": commit()}


def peer_version() -> str:
    """Their version; carried as a folder, the package has no metadata."""
    if PEER_MISSING:
        return "missing"
    import pytorch_metric_learning

    return str(pytorch_metric_learning.__version__)


def code_of(ours: bool) -> str:
    """What a row depends on: our code, or the version of theirs."""
    return fingerprint() if ours else f"{PEER} {peer_version()}, torch {torch.__version__}"


@cache
def fingerprint() -> str:
    """Our code as one number; workers are told theirs, so that nobody changes it in the middle of a run."""
    if told := os.environ.get("LIKEWISE_BENCHMARK_CODE"):
        return told
    digest = hashlib.sha256()
    for room in ("formula", "engines", "losses", "miners"):
        for path in sorted((ROOT / "src" / "likewise" / room).rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def commit() -> str | None:
    """The commit, where there is a repository around the code, and git."""
    if shutil.which("git") is None:
        return None
    asked = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return asked.stdout.strip() or None
