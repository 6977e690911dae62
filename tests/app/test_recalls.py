"""Recall at any k, and clusters: from the data set, the configuration or the command line to tables and pages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from likewise import app
from likewise.app.recalls import metrics_of, recall_ks
from likewise.app.study_io import make_study
from likewise.cli import main
from likewise.data import CUB200, Cars196, InShop, StanfordOnlineProducts
from likewise.protocols import Trial
from likewise.report import Part
from tests.app.test_studies import TINY, flat, serial

__all__ = ["serial"]

STUDY: dict[str, Any] = {**TINY, "train": {"epochs": 1, "ks": [1, 10]}}


def test_data_sets_bring_their_own():
    assert CUB200.recall_at == Cars196.recall_at == (1, 2, 4, 8, 16, 32)
    assert StanfordOnlineProducts.recall_at == (1, 10, 100, 1000)
    assert InShop.recall_at == (1, 10, 20, 30, 40, 50)
    config = app.configure({"data": "CUB200", "data.root": "birds"})
    assert recall_ks(config) == CUB200.recall_at
    assert metrics_of(config)[:6] == tuple(f"R@{k}" for k in CUB200.recall_at)
    without = {**config, "train": {key: value for key, value in config["train"].items() if key != "ks"}}
    assert Trial("a", config).key == Trial("a", without).key, "the new setting changes no key"


def test_a_study_ranks_by_a_recall_that_is_measured():
    study = {"base": STUDY, "methods": {"circle": {"loss": "CircleLoss"}}, "metric": "R@10"}
    assert len(make_study(study).trials()) == 1
    with pytest.raises(app.UserError, match=r"metric must be one of R@1, R@10, RP.*but it is R@100; train\.ks sets"):
        make_study({**study, "metric": "R@100"}).trials()
    with pytest.raises(app.UserError, match=r"--train: each of ks must be a whole number ≥ 1, but it is 0"):
        make_study({**study, "base": {**TINY, "train": {"ks": [0]}}}).trials()


def test_recalls_and_clusters_go_everywhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    shown: list[Part] = []
    monkeypatch.setattr("likewise.app.evaluation.write", lambda run, parts, *_: shown.extend(parts))
    config = app.configure({**flat(), "loss": "CircleLoss", "train.ks": [1, 10]})
    report = app.repeat(config, tmp_path / "study", seeds=1)
    [row] = report.rows
    assert {"val R@1", "val R@10", "test R@1", "test R@10"} <= row.keys()
    assert "test R@2" not in row
    assert "R@10" in app.leaderboard(report.folder, metric="test R@10").text()
    run = report.folder / str(row["run"])
    assert main(["evaluate", str(run), "--ks", "3", "--clusters", "2"]) == 0
    said = capsys.readouterr().out
    assert [name for name in ("R@1 ", "R@3", "R@10", "NMI", "AMI", "F1") if name not in said] == ["R@10"]
    line = json.loads((run / "evaluations.jsonl").read_text().splitlines()[-1])["metrics"]
    assert 0 < line["NMI"] < 1
    assert "R@3" in line
    assert main(["report", str(run)]) == 0
    assert [(part.ks, part.clusterings) for part in shown] == [((1, 3), 2), ((1, 10), 0)]
