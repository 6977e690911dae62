"""Read a run folder: its description, its metrics, and the openings of its test set."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from likewise.sanitize import read_yaml
from likewise.schema import upgrade_description

Row = dict[str, Any]


@dataclass(frozen=True)
class Record:
    """The contents of a run folder.

    Args:
        folder: the folder.
        description: the content of ``run.yaml``; empty if there is none.
        metrics: the lines of ``metrics.jsonl``.
        openings: the lines of ``openings.jsonl``: when and why the test set was opened.
        evaluations: the lines of ``evaluations.jsonl``.
        gaps: sentences on missing or damaged files.

    Examples:
        >>> record = Record(Path("runs/one"), {}, [{"kind": "train", "epoch": 1.0, "loss": 0.5}], [], [], [])
        >>> record.of_kind("train")[0]["loss"], record.end
        (0.5, None)
    """

    folder: Path
    description: Row
    metrics: list[Row]
    openings: list[Row]
    evaluations: list[Row]
    gaps: list[str]

    def of_kind(self, kind: str) -> list[Row]:
        """Return the lines of ``metrics.jsonl`` of one kind, such as ``"val"``."""
        return [row for row in self.metrics if row.get("kind") == kind and isinstance(row.get("epoch"), int | float)]

    @property
    def end(self) -> Row | None:
        """The last line, if training has ended."""
        return next((row for row in reversed(self.metrics) if row.get("kind") == "end"), None)

    @property
    def best(self) -> Row | None:
        """The validation metrics of the best model, if there are any."""
        return next((row for row in reversed(self.of_kind("val")) if row.get("best")), None)


def read_run(folder: Path) -> Record:
    """Read a run folder.

    An incomplete line, which a killed process can leave, is skipped and reported.

    Examples:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     record = read_run(Path(folder))
        >>> record.gaps[0]
        'run.yaml is missing, so the configuration, the command and the versions are unknown.'
    """
    gaps: list[str] = []
    description = _description(folder / "run.yaml", gaps)
    metrics = _lines(folder / "metrics.jsonl", gaps)
    if not (folder / "metrics.jsonl").exists():
        gaps.append("metrics.jsonl is missing, so there are no curves.")
    openings = _lines(folder / "openings.jsonl", gaps)
    return Record(folder, description, metrics, openings, _lines(folder / "evaluations.jsonl", gaps), gaps)


def _description(path: Path, gaps: list[str]) -> Row:
    if not path.exists():
        gaps.append("run.yaml is missing, so the configuration, the command and the versions are unknown.")
        return {}
    try:
        description = read_yaml(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError):
        gaps.append("run.yaml cannot be read as YAML.")
        return {}
    if not isinstance(description, dict):
        gaps.append("run.yaml does not contain a description.")
        return {}
    try:
        return upgrade_description(description)
    except ValueError as error:
        gaps.append(f"run.yaml is shown unchanged: {error}.")
        return description


def _lines(path: Path, gaps: list[str]) -> list[Row]:
    if not path.exists():
        return []
    rows, broken = [], 0
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError:
            row = None
        if isinstance(row, dict):
            rows.append(row)
        else:
            broken += 1
    if broken:
        gaps.append(f"{broken} {'line' if broken == 1 else 'lines'} of {path.name} could not be read and are skipped.")
    return rows


def flatten(value: object, prefix: str = "") -> dict[str, str]:
    """Flatten a nested mapping to dotted names and texts.

    Examples:
        >>> flatten({"train": {"epochs": 3, "lrs": {}}, "seed": 0})
        {'train.epochs': '3', 'train.lrs': '{}', 'seed': '0'}
    """
    if isinstance(value, Mapping) and value:
        flat: dict[str, str] = {}
        for key, inner in value.items():
            flat |= flatten(inner, f"{prefix}.{key}" if prefix else str(key))
        return flat
    return {prefix: "none" if value is None else str(value)}


ALWAYS_DIFFERENT = ("created", "command", "config.out", "commit", "likewise")
"""Settings that differ between any two runs."""


def differences(descriptions: Mapping[str, Row]) -> list[tuple[str, list[str]]]:
    """List the settings that differ between runs: the dotted name, and the value of each run.

    Examples:
        >>> differences({"a": {"loss": "X", "seed": 0}, "b": {"loss": "Y", "seed": 0}})
        [('loss', ['X', 'Y'])]
    """
    flat = [flatten(each) for each in descriptions.values()]
    names = dict.fromkeys(name for each in flat for name in each if not name.startswith(ALWAYS_DIFFERENT))
    rows = [(name, [each.get(name, "–") for each in flat]) for name in names]
    return [(name, values) for name, values in rows if len(set(values)) > 1]


def as_yaml(value: object) -> str:
    """Format a description as YAML, without sorting it.

    Examples:
        >>> print(as_yaml({"train": {"epochs": 3}, "seed": 0}), end="")
        train:
          epochs: 3
        seed: 0
    """
    return str(yaml.safe_dump(value, sort_keys=False, allow_unicode=True, default_flow_style=False, width=100))
