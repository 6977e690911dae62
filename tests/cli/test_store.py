"""The same commands over a database, where a PostgreSQL server with pgvector can be had."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from likewise.cli import main
from likewise.search import Index
from tests.search.conftest import running, url

__all__ = ["running", "url"]  # fixtures


def test_slices_go_into_a_database_and_are_searched_there(run: Path, url: str, capsys: pytest.CaptureFixture[str]):
    assert main(["index", "run", "photos", "-o", "whole.index"]) == 0
    for part in (1, 2):
        words = ["index", "run", "photos", "-o", f"{part}.index", "--shard", f"{part}/2", "--store", f"{url}#birds"]
        assert main(words) == 0
    assert "36 images stored in the index birds of the database" in capsys.readouterr().out
    found = []
    for place in ("whole.index", f"{url}#birds"):
        assert main(["search", place, "photos/c03/2.png", "-k", "5", "--json", "--where", "label != 'c04'"]) == 0
        [line] = capsys.readouterr().out.splitlines()
        found.append(json.loads(line)["found"])
    folder, database = found
    assert [row["path"] for row in folder] == [row["path"] for row in database]
    assert np.allclose([row["score"] for row in folder], [row["score"] for row in database], atol=1e-5)
    assert main(["search", f"{url}#birds", "--item", "3", "-k", "2", "--sheet", "found.png"]) == 0
    assert main(["search", f"{url}#birds", "--clusters", "3", "-o", "clusters.csv"]) == 0
    assert main(["search", f"{url}#birds", "--duplicates", "0.9999"]) == 0
    assert Path("found.png").exists()
    assert len(Index.open("whole.index")) == 72


def test_a_database_that_is_not_there(run: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["search", "postgresql://127.0.0.1:9/nothing#birds", "photos/c00/0.png"]) == 2
    assert capsys.readouterr().err.startswith("likewise: the index: ")


def test_it_is_asked_for_before_hours_are_spent(run: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["index", "run", "photos", "-o", "a.index", "--store", "postgresql://127.0.0.1:9/nothing#birds"]) == 2
    said = capsys.readouterr()
    assert said.err.startswith("likewise: --store: the database cannot be reached: ")
    assert said.out == ""
    assert not list(Path().glob("a.index*"))
