"""The results on birds after their keys have changed with the schema of configurations: nothing is lost, no number is new."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from likewise.protocols.trial import Trial
from likewise.schema import omit_implied
from studies.birds import migrate

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "studies" / "birds" / "results"
PARTS = ("rows", "joined")


@pytest.fixture(scope="module")
def tool() -> Any:
    return migrate


@pytest.fixture(scope="module")
def birds() -> Any:
    names = ("verdict", "search", "parity", "models", "keys")
    return SimpleNamespace(**{name: json.loads((RESULTS / f"{name}.json").read_text()) for name in names})


@pytest.fixture(scope="module")
def trials(tool: Any, birds: Any) -> dict[str, dict[str, Trial]]:
    """What the study plans now, by the keys of schema 1."""
    of_new = {row["key"]: row for row in birds.verdict["rows"]}
    rows = tool.plan(birds.search, {old: of_new[new] for old, new in birds.keys["rows"].items()})
    return {"rows": rows, "joined": tool.joined(rows)}


@pytest.mark.parametrize("what", PARTS)
def test_every_row_has_its_trial(birds: Any, tool: Any, trials: dict[str, dict[str, Trial]], what: str):
    """A key of schema 1 is the checksum of the configuration of that time: who has the checksum has the configuration."""
    keys, rows = birds.keys[what], birds.verdict[what]
    assert len(keys) == len(set(keys.values())) == {"rows": 667, "joined": 21}[what]
    assert [row["key"] for row in rows] == list(keys.values())
    assert keys == {old: tool.key_of(trials[what][old]) for old in keys}
    assert trials[what].keys() == keys.keys(), "and nothing is planned that was not trained"


@pytest.mark.parametrize("what", PARTS)
def test_a_row_is_of_its_trial(birds: Any, trials: dict[str, dict[str, Trial]], what: str):
    for (old, new), row in zip(birds.keys[what].items(), birds.verdict[what], strict=True):
        trial = trials[what][old]
        assert (row["key"], row["method"], row["seed"]) == (new, trial.method, trial.seed)
        assert (row["fold"], row["stage"]) == (trial.fold, trial.stage)
        assert {name: row[name] for name in trial.labels} == dict(trial.labels)


def test_the_table_of_changes_leads_from_the_old_trials_to_the_new_ones(
    birds: Any, tool: Any, trials: dict[str, dict[str, Trial]]
):
    for old, trial in trials["rows"].items():
        before = tool.first_schema(trial)
        assert before.key == old
        assert replace(before, method=trial.method).upgrade() == replace(trial, config=omit_implied(trial.config))


def test_no_number_has_changed(birds: Any, tool: Any):
    for name, wanted in birds.keys["numbers"].items():
        assert tool.checksum(json.loads((RESULTS / name).read_text())) == wanted, name
    assert birds.keys["numbers"].keys() == tool.FORMATS.keys()


def test_models_are_those_of_rows(birds: Any):
    """Where a model was measured its weights lay elsewhere, and its key was another: its numbers say which row it is of."""
    rows = {row["key"]: row for row in birds.verdict["rows"]}
    found = [model for model in birds.models["models"] if "run" in model]
    assert [model["run"] for model in found] == [f"runs/{key}" for key in birds.keys["models"].values()]
    for model in found:
        row = rows[model["run"].removeprefix("runs/")]
        assert (row["method"], row["seed"], row["dim"]) == (model["method"], model["seed"], model["dim"])
        assert model["recorded"] == {name: row[name] for name in model["recorded"]}


def test_the_page_shows_every_training_with_its_numbers(birds: Any):
    """Each row of the page: a key, the numbers that the results have for it, and a command in the present words."""
    page = (ROOT / "docs" / "assets" / "reality-check.html").read_text()
    lines = {
        found[1]: line for line in page.split("<tr>") if (found := re.search(r"<code>([0-9a-f]{16})</code>", line))
    }
    shown = [row for row in birds.verdict["rows"] if row["part"] == "verdict" and row["dim"] in (512, 128)]
    assert lines.keys() >= {row["key"] for row in shown}
    for row in shown:
        line = lines[row["key"]]
        assert f'<th scope="row">{html.escape(row["method"])}</th>' in line
        numbers = {float(each) for each in re.findall(r'data-n="([^"]+)"', line)}
        wanted = {value for name, value in row.items() if name.startswith(("val ", "test ")) and value is not None}
        assert wanted <= numbers
        assert f"--seed {row['seed']} " in line
    assert not set(birds.keys["rows"]) & lines.keys()
    assert "--loss.neighbors 47" in page
    assert "neighbours" not in page


def test_running_it_again_changes_nothing(tool: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    names = (*tool.FORMATS, "keys.json")
    for name in names:
        (tmp_path / name).write_bytes((RESULTS / name).read_bytes())
    monkeypatch.setattr(tool, "RESULTS", tmp_path)
    monkeypatch.setattr(tool, "KEYS", tmp_path / "keys.json")
    tool.main()
    for name in names:
        assert (tmp_path / name).read_bytes() == (RESULTS / name).read_bytes(), name
