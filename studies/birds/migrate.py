"""Give the results on birds the keys of the present schema of configurations.

    python -m studies.birds.migrate

A row of results/verdict.json is found by the key of its trial, a checksum of the trial's configuration, so a renamed
setting changes the key.  This plans the study as it is now, takes every trial back to schema 1, finds its row by the key
that it had there, and writes the new key.  It also brings settings and names of methods to the present spelling, and
touches no number.

results/keys.json keeps the key of schema 1 and the present one for every row, and a checksum of all numbers of each
file; tests/studies/test_birds_keys.py holds both.  After another entry in `likewise.schema.CHANGES`, run it again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from likewise.protocols.space import at_point
from likewise.protocols.trial import Result, Trial
from likewise.schema import ADDED, CHANGES, omit_implied, upgrade_setting
from studies.birds.record import PLACES, Configured, key_of, result_of, together
from studies.birds.search import searches, study
from studies.birds.verdict import planned

RESULTS = Path(__file__).parent / "results"
KEYS = RESULTS / "keys.json"
FORMATS: Mapping[str, Mapping[str, Any]] = {
    "search.json": {"indent": 1},
    "verdict.json": {"indent": 1},
    "parity.json": {"indent": 1},
    "models.json": {"separators": (",", ":")},
}
"""The files, and how each is written."""

SPELLED = {"Normalised softmax": "Normalized softmax", "Generalised lifted": "Generalized lifted"}
"""Names of methods in the present spelling, by that of schema 1."""

OLD_NAMES = {change.name: change.key.rpartition(".")[2] for change in CHANGES if change.name is not None}

LATER = {name for arguments in ADDED.values() for name in arguments}
"""Arguments that schema 1 did not have."""

Trials = dict[str, Trial]
Row = dict[str, Any]


def spelled(value: Any) -> Any:
    """The same with settings and methods by their present names, at any depth."""
    if isinstance(value, Mapping):
        return {spelled(key): spelled(each) for key, each in value.items()}
    if isinstance(value, list):
        return [spelled(each) for each in value]
    if not isinstance(value, str):
        return value
    for old, new in SPELLED.items():
        value = value.replace(old, new)
    return upgrade_setting(value, None, 1)[0]


def first_schema(trial: Trial) -> Trial:
    """The trial as schema 1 described it; that this is right is seen by its key."""
    method = trial.method
    for old, new in SPELLED.items():
        method = method.replace(new, old)
    return replace(trial, method=method, config=_first(omit_implied(at_point(trial.config, PLACES))))


def _first(tree: Mapping[str, Any]) -> dict[str, Any]:
    return {
        OLD_NAMES.get(key, key): _first(value) if isinstance(value, Mapping) else value
        for key, value in tree.items()
        if key != "schema" and key not in LATER
    }


def plan(search: Mapping[str, Any], rows: Mapping[str, Row]) -> Trials:
    """Every trial that follows from the rows, by its key in schema 1; what is planned later follows from what came before."""
    chosen = study(PLACES["data.root"], PLACES["model.weights"])
    found = {name: Configured(name, each.config) for name, each in searches(chosen).items()}
    trials: Trials = {}
    results: list[Result] = []
    while True:
        before = len(trials)
        trials = {first_schema(trial).key: trial for trial in planned(found, search, results)}
        results = [result_of(trial, rows[key]) for key, trial in trials.items() if key in rows]
        if len(trials) == before:
            return trials


def joined(trials: Trials) -> Trials:
    """The trials that stand for all folds of one, by their keys in schema 1."""
    folds = [trial for trial in trials.values() if trial.labels["part"] == "folds" and trial.fold == 0]
    return {first_schema(together(trial)).key: together(trial) for trial in folds}


def new_keys(trials: Trials, rows: Mapping[str, Row]) -> dict[str, str]:
    """The present key of each row by its old one: no row is lost, and no two become one."""
    lost = sorted(rows.keys() - trials.keys())
    if lost:
        raise SystemExit(f"every row must have a trial in the plan, but {len(lost)} have none; the first is {lost[0]}")
    keys = {old: key_of(trials[old]) for old in rows}
    if len(set(keys.values())) < len(keys):
        raise SystemExit("every row must have a key of its own, but two would have the same")
    return keys


def numbers(value: Any) -> Iterator[float]:
    """All numbers of a file, in their order."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from numbers(each)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield value


def checksum(report: Any) -> str:
    """A checksum of all numbers of a file."""
    return hashlib.sha256(json.dumps(list(numbers(report))).encode()).hexdigest()


def main() -> None:
    """Write the files with their new keys, and the keys."""
    files = {name: json.loads((RESULTS / name).read_text()) for name in FORMATS}
    known = json.loads(KEYS.read_text()) if KEYS.exists() else {"numbers": {}, "rows": {}, "joined": {}, "models": {}}
    # a file that was migrated before is taken back by the keys of that time
    before = {what: {new: old for old, new in known[what].items()} for what in ("rows", "joined")}
    counted = {name: checksum(report) for name, report in files.items()}
    if any(counted[name] != each for name, each in known["numbers"].items()):
        raise SystemExit("every number must be as it was in schema 1, but some are not")
    # the names of a report's parts are no settings
    files = {name: {part: spelled(each) for part, each in report.items()} for name, report in files.items()}
    verdict, models = files["verdict.json"], files["models.json"]["models"]
    rows, of_folds = (
        {before[what].get(row["key"], row["key"]): row for row in verdict[what]} for what in ("rows", "joined")
    )
    trials = plan(files["search.json"], rows)
    keys = {"rows": new_keys(trials, rows), "joined": new_keys(joined(trials), of_folds)}
    for what, some in (("rows", rows), ("joined", of_folds)):
        for old, row in some.items():
            row["key"] = keys[what][old]
    # a model's run lay where weights and images had other places, and its key was that of these places
    by_setting = {(row["method"], row["part"], row.get("dim"), row["seed"]): row["key"] for row in verdict["rows"]}
    ran = {}
    for model in models:
        if "run" in model:
            old = next((old for old, new in known["models"].items() if f"runs/{new}" == model["run"]), model["run"][5:])
            ran[old] = by_setting[model["method"], "verdict", model["dim"], model["seed"]]
            model["run"] = f"runs/{ran[old]}"
    for name, report in files.items():
        (RESULTS / name).write_text(json.dumps(report, **FORMATS[name]) + "\n")
    told = {"numbers": counted, **keys, "models": ran}
    KEYS.write_text(json.dumps(told, indent=1) + "\n")
    print(f"{len(rows)} rows, {len(of_folds)} joined rows and {len(ran)} models have their keys")


if __name__ == "__main__":
    main()
