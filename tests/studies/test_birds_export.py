"""The files to download are the committed results."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from studies.birds import export

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "studies" / "birds" / "results"
ASSETS = ROOT / "docs" / "assets"


def test_the_files_are_up_to_date():
    for name, text in export.files(RESULTS):
        assert (ASSETS / name).read_text() == text


@pytest.mark.parametrize("source", export.SOURCES)
def test_every_number_is_that_of_the_results(source: str):
    """Read back with another reader, cell by cell."""
    with (ASSETS / "reality-check.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["results"] == source]
    report = json.loads((RESULTS / f"{source}.json").read_text())
    wanted = {(row["method"], row["dim"]): row for row in report["table"] if "MAP@R" in row}
    assert {(row["method"], int(row["dim"])) for row in rows} == set(wanted)
    for row in rows:
        found = wanted[row["method"], int(row["dim"])]
        for metric in ("MAP@R", "RP", "R@1"):
            for end in ("mean", "low", "high"):
                assert float(row[f"{metric} {end}"]) == pytest.approx(found[metric][end], abs=1e-6)
