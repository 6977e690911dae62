"""Whatever is shown is run: the Python of the README and of the pages (its commands: test_readme.py)."""

from __future__ import annotations

import re
import sys
import types
from pathlib import Path

import pytest

from likewise import losses, miners
from likewise.testing import loop_over

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs" / "decisions").glob("*.md"))]
BASES = {"PairLoss", "ProxyLoss", "Between", "cross_entropy", "Miner", "PairMiner", "TripletMiner"}
TEXTS = [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_on_a_page_runs(page: Path, monkeypatch: pytest.MonkeyPatch):
    """The blocks of a page, one after the other in one namespace."""
    module = types.ModuleType("page")
    monkeypatch.setitem(sys.modules, "page", module)  # classes look their module up
    for block in re.findall(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE):
        exec(compile(block, page.name, "exec"), vars(module))


@loop_over("page", TEXTS)
def test_links_lead_somewhere(page: Path):
    prose = re.sub(
        r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE
    )  # brackets in code are no links
    for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", prose):
        if not target.startswith(("http", "mailto")):
            assert (page.parent / target).exists(), target


def test_the_tests_that_a_page_names_exist():
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", (ROOT / "docs" / "reliability.md").read_text())
    assert len(named) > 15
    for file, test in named:
        assert f"\ndef {test}(" in (ROOT / file).read_text(), f"{file} has no {test}"


@loop_over("page", TEXTS)
def test_make_targets_exist(page: Path):
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for name in re.findall(r"^\$ make ([a-z-]+)", page.read_text(), re.MULTILINE):
        assert name in targets


def test_every_loss_and_miner_is_on_its_page():
    for room, page in ((losses, "losses.md"), (miners, "miners.md")):
        text = (ROOT / "docs" / page).read_text()
        for name in set(room.__all__) - BASES:
            assert f"[`{name}`]" in text, f"add a link to {name} to the table of docs/{page}"


def test_the_diff_in_contributing_is_the_real_one():
    shown = re.findall(r"^```diff\n(.*?)^```", (ROOT / "CONTRIBUTING.md").read_text(), re.DOTALL | re.MULTILINE)
    places = (
        *(
            f"src/likewise/{name}.py"
            for name in ("losses/pair", "formula/operations", "formula/folds", "engines/dispatch")
        ),
        *("tests/losses/cases.py", "tests/oracles/losses.py"),
    )
    code = "".join((ROOT / place).read_text() for place in places)
    lines = [line[1:] for block in shown for line in block.splitlines() if line.strip() != "+"]
    lines = [line for line in lines if "your" not in line.lower()]  # an engine that does not exist
    declared = [line[1:] for line in shown[0].splitlines() if line.strip() != "+"]
    assert len(declared) <= 15
    for line in lines:
        assert line in code or '"""' in line, line
