"""Measuring a run: the same numbers as by hand, and a seal that is written down when it is broken."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from likewise.cli import main
from likewise.data import fixed_validation
from likewise.train import Run

NAMES = ["R@1", "R@2", "R@4", "R@8", "P@1", "RP", "MAP@R", "MRR", "mAP"]


def by_hand(run: Path, folder: Path, classes: set[str]) -> dict[str, float]:
    """R@1 and MAP@R from embeddings that ``likewise embed`` made of the files, without any of the library's metrics."""
    assert main(["embed", str(run), str(folder), "-o", "by_hand.npz"]) == 0
    with np.load("by_hand.npz") as content:
        owner = content["class_names"][content["labels"]]
        chosen = np.isin(owner, sorted(classes))
        vectors, owner = content["embeddings"][chosen], owner[chosen]
    similar = vectors @ vectors.T
    np.fill_diagonal(similar, -np.inf)
    first, average = [], []
    for row, mine in zip(similar, owner, strict=True):
        hits = owner[np.argsort(-row)[:-1]] == mine
        count = int(hits.sum())
        first.append(float(hits[0]))
        average.append(sum(hits[: k + 1].mean() for k in range(count) if hits[k]) / count)
    return {"R@1": float(np.mean(first)), "MAP@R": float(np.mean(average))}


def test_the_numbers_are_those_of_the_classes_held_out(run: Path, capsys: pytest.CaptureFixture[str]):
    names = [f"c{number:02d}" for number in range(12)]
    sealed = fixed_validation(12, share=0.2, seed=0)
    seen = [names[each] for each in sealed.train]
    val = {seen[each] for each in fixed_validation(10, share=0.2, seed=0).val}
    assert main(["evaluate", "run", "--test"]) == 0
    lines = Run("run").evaluations()
    assert [line["part"] for line in lines] == ["val", "test"]
    for line, classes in zip(lines, (val, {names[each] for each in sealed.val}), strict=True):
        assert list(line["metrics"]) == NAMES
        expected = by_hand(run, Path("photos"), classes)
        assert {name: line["metrics"][name] for name in expected} == pytest.approx(expected, abs=1e-6)
        Path("by_hand.npz").unlink()
    shown = capsys.readouterr().out.splitlines()
    row = next(line for line in shown if line.startswith("  MAP@R")).split()
    assert float(row[1]) == pytest.approx(100 * lines[0]["metrics"]["MAP@R"], abs=0.006)
    low, high = float(row[2]), float(row[4])
    assert low <= float(row[1]) <= high


def test_the_seal_stays_until_it_is_broken_and_then_it_is_written_down(run: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["evaluate", "run"]) == 0
    assert Run("run").openings() == []
    printed = capsys.readouterr()
    assert "the test set was opened" not in printed.out
    assert printed.err.splitlines()[-1] == "next: likewise export run -o run-export"
    page = (run / "report.html").read_text()
    assert main(["evaluate", "run", "--test", "--why", "the final number", "--model", "last"]) == 0
    assert main(["evaluate", "run", "--test"]) == 0
    first, second = Run("run").openings()
    assert (first["why"], first["model"], first["finished"]) == ("the final number", "model", True)
    assert (second["why"], second["model"]) == ("likewise evaluate --test", "best")
    assert "the test set has been opened twice" in capsys.readouterr().out
    assert [line["opening"] for line in Run("run").evaluations()] == [None, None, 1, None, 2]
    again = (run / "report.html").read_text()
    assert "the final number" in again
    assert "the final number" not in page


def test_a_resume_writes_the_report_that_a_kill_prevented(run: Path):
    (run / "report.html").unlink()
    assert main(["train", "--resume", str(run)]) == 0
    written = (run / "report.html").stat().st_mtime_ns
    assert main(["train", "--resume", str(run)]) == 0
    assert (run / "report.html").stat().st_mtime_ns == written


def test_a_report_can_be_written_again(run: Path, capsys: pytest.CaptureFixture[str]):
    (run / "report.html").unlink()
    assert main(["report", "run"]) == 0
    assert capsys.readouterr() == ("run/report.html\n", "next: likewise evaluate run\n")
    assert (run / "report.html").read_text().lstrip().lower().startswith("<!doctype html>")
    assert main(["report", "run", "-o", "elsewhere.html"]) == 0
    assert Path("elsewhere.html").exists()
    assert Run("run").openings() == []


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["nowhere"], "nowhere must be the folder of a run, but it has no run.yaml"),
        (["run", "--tset"], "there is no option --tset; did you mean --test?"),
        (["run", "--why", "x"], "--why requires --test: it is the reason for opening the test set"),
        (["run", "--model", "first"], "run has no model first: it has best and model"),
        ([], "the following arguments are required: RUN"),
        (["run", "more"], "there is no place for more"),
    ],
)
def test_mistakes(run: Path, words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]):
    assert main(["evaluate", *words]) == 2
    assert capsys.readouterr().err == f"likewise: {sentence}\n"


def test_a_run_that_was_made_in_python_has_no_data_to_measure_on(here: Path, capsys: pytest.CaptureFixture[str]):
    Run.create("by-hand", {"config": None})
    assert main(["evaluate", "by-hand"]) == 2
    assert "was not trained by `likewise train`" in capsys.readouterr().err


def test_data_without_a_test_part(here: Path, capsys: pytest.CaptureFixture[str]):
    flags = ["--config", "quick.yaml", "--data", "ImageFolder", "--data.root", "photos", "--split.test", "0"]
    assert main(["train", *flags, "--train.epochs", "1", "--out", "run"]) == 0
    assert "likewise evaluate" not in capsys.readouterr().out
    assert main(["evaluate", "run", "--test"]) == 2
    assert (
        capsys.readouterr().err.splitlines()[0]
        == "likewise: run has no test part: nothing was sealed when it was trained"
    )
    assert not (here / "run" / "openings.jsonl").exists()


def test_the_file_that_was_opened_is_known_by_its_checksum(run: Path):
    assert main(["evaluate", "run", "--test"]) == 0
    line = json.loads((run / "openings.jsonl").read_text())
    assert line["sha256"] == hashlib.sha256((run / "best.safetensors").read_bytes()).hexdigest()
