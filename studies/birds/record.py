"""Results on birds as rows of a file, and a study that begins with them: whatever was trained before is not trained again.

A row is known by its trial, and a trial by its configuration.  Where the birds and the weights lie is no part of that: it is
another place on every machine.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from likewise.protocols.space import at_point
from likewise.protocols.study import Study
from likewise.protocols.trial import Result, Trial

JOINED = "joined.jsonl"
PLACES = {"data.root": "data/CUB_200_2011", "model.weights": "imagenet"}
"""Where everything lies in a row's configuration."""

SEARCHED_SEED = 0
"""The seed of every search, whose best run on validation classes was chosen."""

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Configured:
    """A method with its configuration before anything was searched."""

    method: str
    config: Mapping[str, Any]


def key_of(trial: Trial) -> str:
    """The same on every machine, and for a trial of an older schema."""
    present = trial.upgrade()
    return replace(present, config=at_point(present.config, PLACES)).key


def row_of(result: Result, at_once: Mapping[str, int], now: int) -> dict[str, Any]:
    """What a result says to anybody; its folders and commands are of no use elsewhere.

    Args:
        result: of a training.
        at_once: how many training runs shared the GPU, for the keys of results that came from elsewhere.
        now: the same for all others.
    """
    row = {name: value for name, value in result.row().items() if name not in ("run", "command")}
    key = key_of(result.trial)
    return row | {"key": key, "machine": result.machine, "at once": at_once.get(key, now)}


def result_of(trial: Trial, row: Row) -> Result:
    """The inverse, for a trial that has the row's key."""
    val, test = (
        {name.removeprefix(part): value for name, value in row.items() if name.startswith(part)}
        for part in ("val ", "test ")
    )
    said = {name: row[name] for name in ("status", "seconds", "openings", "tuned_on_test", "machine", "error")}
    return Result(trial, val=val, test=test, run=f"runs/{trial.key}", **said)  # where it would be made again


def part_of(rows: Iterable[Row], part: str) -> list[Row]:
    """The rows of one part of the verdict, without the number of runs that shared the GPU, which does not change a run."""
    return [{name: row[name] for name in row if name != "at once"} for row in rows if row.get("part") == part]


def recorded(known: Mapping[str, Any], what: str) -> list[Row]:
    """All rows of a record, also those that no plan has asked for yet."""
    return [*known.get(what, ()), *known.get(f"{what}, not planned", ())]


def merged(*records: Mapping[str, Any] | None) -> dict[str, list[Row]]:
    """All rows of several records: what the last one says of each, but a training that was done once is done."""
    found: dict[str, dict[str, Row]] = {"rows": {}, "joined": {}}
    for record in filter(None, records):
        for what, rows in found.items():
            rows |= {r["key"]: r for r in recorded(record, what) if r["status"] == "done" or r["key"] not in rows}
    return {what: list(rows.values()) for what, rows in found.items()}


def not_planned(rows: Iterable[Row], there: Iterable[Row]) -> list[Row]:
    """Rows of a record that are not among those of a study: what they are a part of may be planned later, and they stay."""
    keys = {row["key"] for row in there}
    return [row for row in rows if row["status"] == "done" and row["key"] not in keys]


def restore(table: Study, rows: Iterable[Row]) -> int:
    """Give missing trials the results that are on record; returns how many it gave.

    What failed is tried again: it may have been the machine.
    """
    known = {row["key"]: row for row in rows if row["status"] == "done"}
    missing = table.missing()
    found = [result_of(trial, known[key]) for trial in missing if (key := key_of(trial)) in known]
    return sum(table.finish(result) for result in found)


# ---- models of several folds together, which are in no study


def together(trial: Trial) -> Trial:
    """The trial that stands for all folds of one."""
    return replace(trial, fold=0, labels={**trial.labels, "combination": "concatenated"})


def restore_joined(folder: Path, trials: Sequence[Trial], rows: Iterable[Row]) -> None:
    """The joined results that are on record, beside those that are there already."""
    known = {row["key"]: row for row in rows}
    of_folds = [together(trial) for trial in trials if trial.labels.get("part") == "folds" and trial.fold == 0]
    keep_joined(folder, [result_of(trial, known[key]) for trial in of_folds if (key := key_of(trial)) in known])


def keep_joined(folder: Path, more: Iterable[Result]) -> list[Result]:
    """Add results to those that were joined before; returns all."""
    found = {(each.trial.method, each.trial.seed): each for each in (*joined(folder), *more)}
    aside = folder / f"{JOINED}.new"
    aside.write_text("".join(json.dumps(each.to_dict()) + "\n" for each in found.values()))
    aside.replace(folder / JOINED)
    return list(found.values())


def joined(folder: Path) -> list[Result]:
    """What was joined before."""
    path = folder / JOINED
    return [Result.from_dict(json.loads(line)) for line in path.read_text().splitlines()] if path.exists() else []
