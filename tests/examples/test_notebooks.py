"""The notebooks are what the tool writes, and they run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tools.make_notebooks import FOLDER, make_notebook

SCRIPTS = sorted(FOLDER.glob("*.py"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_notebook_is_its_script(script: Path):
    stored = script.with_suffix(".ipynb").read_text(encoding="utf-8")
    assert stored == make_notebook(script.read_text(encoding="utf-8")), "run python tools/make_notebooks.py"
    assert all(not cell["outputs"] for cell in json.loads(stored)["cells"] if cell["cell_type"] == "code")


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_notebook_is_valid(script: Path):
    nbformat = pytest.importorskip("nbformat")
    nbformat.validate(nbformat.read(script.with_suffix(".ipynb"), as_version=4))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_the_cells_run(script: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """In order and in one namespace, as a kernel runs them."""
    monkeypatch.setenv("LIKEWISE_EXAMPLE_IMAGES", "2")
    monkeypatch.setenv("LIKEWISE_EXAMPLE_STEPS", "3")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    namespace = {"__name__": "notebook"}
    for cell in json.loads(script.with_suffix(".ipynb").read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), f"{script.stem} {cell['id']}", "exec"), namespace)


def test_cells():
    cells = json.loads(make_notebook("# before\n# %% [markdown]\n# # Title\n#\n# text\n\n# %%\nx = 1\n\n"))["cells"]
    assert [cell["source"] for cell in cells] == [["# Title\n", "\n", "text"], ["x = 1"]]
