"""Results as JSON files: written as they come, continued by the same command, never half a file."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Container, Mapping
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"

Row = dict[str, Any]


def result_path(name: str, options: argparse.Namespace) -> Path | None:
    """The file to write: ``--out``, or ``results/<name>-<device>.json``; None for ``--quick`` without ``--out``."""
    given: Path | None = getattr(options, "out", None)
    if given is not None or options.quick:
        return given
    return RESULTS / f"{name}-{getattr(options, 'device', 'cpu').split(':')[0]}.json"


def write(report: Mapping[str, Any], path: Path | None) -> None:
    """Replace a file of results; nothing without a path."""
    if path is not None:
        replace_text(path, json.dumps(report, indent=1) + "\n")
        print(f"wrote {path.name}")


def read(path: Path) -> dict[str, Any] | None:
    """Results, or None if there are none yet."""
    return json.loads(path.read_text()) if path.exists() else None


def resume(path: Path | None, head: Mapping[str, Any], but: Container[str] = ()) -> dict[str, Any] | None:
    """The results so far, if all that they are headed by is the same."""
    known = None if path is None else read(path)
    if known is None or any(known.get(name) != value for name, value in head.items() if name not in but):
        return None
    return {**known, **head}


def replace_text(path: Path, text: str) -> None:
    """Write a file under another name and rename it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    part.write_text(text)
    os.replace(part, path)


def name_of(key: Row) -> str:
    """A row's name, from what names it."""
    return json.dumps({field: value for field, value in sorted(key.items()) if value is not None})


class Journal:
    """Rows by name, and the file that holds them: a row is on disk as soon as it is known.

    Args:
        path: the file; ``None`` keeps them in memory.
        head: what the run is: the machine, the versions, the arguments.
        compared: what of a file's head must be the same for its rows to be taken over.
    """

    def __init__(
        self, path: Path | None, head: dict[str, Any], compared: Callable[[Mapping[str, Any]], object]
    ) -> None:
        self.path = path
        self.head = head
        self.compared = compared
        self.rows: dict[str, Row] = {}

    def take(self, path: Path, holds: Callable[[Row], bool]) -> int:
        """Take over the rows of a file that still hold; returns how many are new."""
        report = read(path)
        if report is None:
            return 0
        if self.compared(report) != self.compared(self.head):
            print(f"{path.name} is of another machine, version or arguments; its rows are not taken over")
            return 0
        before = len(self.rows)
        self.rows |= {name_of(row["key"]): row for row in report["rows"] if holds(row)}
        return len(self.rows) - before

    def add(self, key: Row, code: str, row: Row) -> None:
        """Put a row down, with the code that it depends on."""
        self.rows[name_of(key)] = {"key": key, "code": code, **row}
        self.write()

    def write(self) -> None:
        """Replace the file; one row on a line."""
        if self.path is None:
            return
        head = ",\n".join(f'"{part}": {json.dumps(self.head[part])}' for part in self.head)
        rows = ",\n".join(json.dumps(row) for row in self.rows.values())
        replace_text(self.path, f'{{{head},\n"rows": [\n{rows}\n]}}\n')


@cache
def fingerprint() -> str:
    """Our code as one number; workers get it from their parent, so that it stays the same during a run."""
    if given := os.environ.get("LIKEWISE_BENCHMARK_CODE"):
        return given
    digest = hashlib.sha256()
    for package in ("formula", "engines", "losses", "miners"):
        for path in sorted((ROOT / "src" / "likewise" / package).rglob("*.py")):
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
