"""The reality check made again: planned in full, and run end to end with trainings that are made up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from likewise.protocols import Executor, Result, SerialExecutor, Trial
from studies.papers import reality_check
from studies.published import method_of


def test_the_plan_is_that_of_the_paper(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    roots = [f"{name}=somewhere" for name in reality_check.DATA]
    assert reality_check.main(["--root", *roots, "--dry-run", "--out", str(tmp_path), "--minutes-each", "6"]) == 0
    assert "10,080 trainings, 0 done; about 1,008 GPU hours" in capsys.readouterr().out
    assert len(reality_check.LOSSES) == 14
    base = reality_check.base_of("CUB200", "birds", False)
    config = reality_check.configure(base, "proxy-nca", reality_check.SCALES["paper"], False)
    known = method_of("ProxyNCA", "reality-check")
    assert known is not None
    assert config["loss"]["class_path"].endswith(known.loss)
    assert config["model"]["trunk"] == "bninception"
    assert reality_check.space_of(config)[-1].startswith("optimizer.lrs.proxies=")
    with pytest.raises(SystemExit):
        reality_check.main(["--dry-run"])


def test_from_search_to_table(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """A made-up training is better the nearer its margin is to 0.2; the search's best goes into the table."""
    trained: list[Trial] = []

    def choose_executor(real: Any, report: Any, **_: Any) -> Executor:
        folder = real.keywords["folder"]

        def run(trial: Trial, report: object) -> Result:
            trained.append(trial)
            value = 0.5 - abs(trial.config["loss"]["init_args"]["margin"] - 0.2)
            place = folder / "runs" / trial.key
            place.mkdir(parents=True)
            points = np.eye(4, dtype=np.float32)[[0, 0, 1, 2]]
            roles = np.zeros(0, bool)
            np.savez(place / "test.npz", embeddings=points, labels=np.array([0, 0, 1, 1]), is_query=roles)
            metrics = {"R@1": value, "RP": value, "MAP@R": value}
            test = metrics if trial.stage == "final" else {}
            return Result(trial, val=metrics, test=test, run=f"runs/{trial.key}", seconds=60.0)

        return SerialExecutor(run, report)

    monkeypatch.setattr("likewise.app.execution.choose_executor", choose_executor)
    words = ["--scale", "tiny", "--losses", "triplet", "--out", str(tmp_path)]
    assert reality_check.main([*words, "--workers", "1"]) == 0
    [row] = [line for line in (tmp_path / "CUB200/final/table.md").read_text().splitlines() if "triplet" in line]
    searched = [trial for trial in trained if trial.stage == "search"]
    best = min(abs(trial.config["loss"]["init_args"]["margin"] - 0.2) for trial in searched)
    assert f"| {100 * (0.5 - best):.2f} ± 0.00 |" in row
    assert row.startswith("| triplet | 66.67 ± 0.00 |"), (
        "concatenated: two find their class, two are tied with all three others"
    )
    assert len(trained) == reality_check.SCALES["tiny"].trainings(1) == 8
    capsys.readouterr()
    assert reality_check.main([*words, "--dry-run"]) == 0
    assert "8 trainings, 8 done" in capsys.readouterr().out
