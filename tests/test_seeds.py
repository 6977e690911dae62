"""The page of the four papers: every name, file and test on it exists, and every command is understood."""

from __future__ import annotations

import importlib
import re
import shlex
from pathlib import Path
from typing import NamedTuple

import pytest

from likewise.app import find_recipe, list_recipes, parse_request, read_request
from likewise.cli import main
from likewise.testing import loop_over

ROOT = Path(__file__).parents[1]


class Row(NamedTuple):
    """A row of a table."""

    cells: tuple[str, ...]

    @property
    def codes(self) -> list[list[str]]:
        return [re.findall(r"`([^`]+)`", cell) for cell in self.cells]


def rows_of(page: str, columns: int) -> list[Row]:
    lines = [line for line in (ROOT / "docs" / page).read_text().splitlines() if line.startswith("|")]
    rows = [Row(tuple(cell.strip() for cell in line.strip("|").split("|"))) for line in lines if "---" not in line]
    return [row for row in rows if len(row.cells) == columns and row.cells[0] not in ("item", "where")]


SEEDS = rows_of("seeds.md", 5)
MISPRINTS = rows_of("misprints.md", 5)
COMMANDS = sorted({command for row in SEEDS for command in row.codes[3]})


def exists(name: str) -> bool:
    if "/" in name:
        return find_recipe(name).exists() if name in list_recipes() else (ROOT / name).exists()
    package, _, attribute = name.rpartition(".")
    return hasattr(importlib.import_module(f"likewise.{package}"), attribute)


def test_names_files_and_tests_exist():
    assert len(SEEDS) > 90
    for item, _, where, command, test in (row.cells for row in SEEDS):
        if where == "not yet":
            assert not test + command, item
            continue
        names = re.findall(r"`([^`]+)`", where)
        assert names, item
        assert all(map(exists, names)), where
        file, _, name = test.strip("`").partition("::")
        assert (ROOT / file).is_file(), test
        assert not name or re.search(rf"^( {{4}})?def {name}\(", (ROOT / file).read_text(), re.MULTILINE), test


def test_all_misprints_are_listed_with_our_form():
    assert len(MISPRINTS) == 24
    assert all(all(row.cells) for row in MISPRINTS)
    assert all(exists(name) for row in MISPRINTS for name in row.codes[4] if "." in name)


@loop_over("command", COMMANDS)
def test_commands_are_understood(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    """Listings are run, training runs and studies configured; of the others every option is in the help."""
    monkeypatch.setattr("likewise.cli.tuning.run_on_screen", lambda *_, **__: 0)
    program, name, *words = shlex.split(command)
    if program == "python":
        monkeypatch.chdir(tmp_path)
        module, *words = words
        only_plan = [] if "--printed" in words or "compare" in module else ["--dry-run"]
        assert not importlib.import_module(module).main([*words, *only_plan])
        return
    monkeypatch.chdir(ROOT)
    if name in ("losses", "trunks", "datasets", "tune", "repeat"):
        assert main([name, *words]) == 0, capsys.readouterr().err
    elif name == "train":
        assert parse_request(read_request(words))["data"]["init_args"]["root"] == "FOLDER"
    else:
        assert main([name, "--help"]) == 0
        shown = capsys.readouterr().out
        assert [word for word in words if word.startswith("-") and f"{word} " not in shown.replace(",", " ")] == []
