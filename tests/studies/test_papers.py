"""The tables of papers made again: planned in full, made from printed numbers, and run end to end."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler, normalize

from likewise import app
from likewise.app.study_io import make_study
from likewise.protocols import Executor, Result, SerialExecutor, Trial
from studies.papers import reality_check, thesis, unified_view
from studies.papers.pretrained import reduce_by_pca
from studies.papers.thesis_tables import tables_of
from studies.published import method_of, printed, published


def test_the_plan_is_that_of_the_paper(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    roots = [f"{name}=somewhere" for name in reality_check.DATA]
    assert reality_check.main(["--root", *roots, "--dry-run", "--out", str(tmp_path), "--minutes-each", "6"]) == 0
    assert "10,080 training runs, 0 done; about 1,008 GPU hours" in capsys.readouterr().out
    assert len(reality_check.LOSSES) == 14
    base = reality_check.base_of("CUB200", "birds", False)
    config = reality_check.configure(base, "proxy-nca", reality_check.SCALES["paper"], False)
    known = method_of("ProxyNCA", "reality-check")
    assert known is not None
    assert config["loss"]["class_path"].endswith(known.loss)
    assert config["model"]["trunk"] == "bninception"
    assert reality_check.space_of(config)[-1].startswith("optimizer.lrs.proxies=")
    for study in (reality_check, thesis, unified_view):
        with pytest.raises(SystemExit):
            study.main(["--dry-run"])


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
    [before] = [line for line in (tmp_path / "CUB200/final/table.md").read_text().splitlines() if "pretrained" in line]
    assert all(0.0 < float(number) < 100.0 for number in before.split("|")[2:-1])
    assert len(trained) == reality_check.SCALES["tiny"].trainings(1) == 8
    capsys.readouterr()
    assert reality_check.main([*words, "--dry-run"]) == 0
    assert "8 training runs, 8 done" in capsys.readouterr().out


def test_the_plan_of_the_thesis(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    """10 losses x 3 trunks x 4 sizes x 3 data sets, 3 losses x 10 folds, 4 ratios x 10 draws."""
    roots = [f"{name}=somewhere" for name in thesis.DATA]
    assert thesis.main(["--root", *roots, "--dry-run", "--out", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert (
        "CUB200/bninception/folds: 30 training runs\nCUB200/bninception/splits: 40 training runs\n430 training runs, 0 done"
        in shown
    )
    assert "GPU hours for the rest" in shown
    assert "NVIDIA H200" in shown
    plan = thesis.plan({"CUB200": "birds"}, thesis.Choices(), thesis.SCALES["paper"], tiny=False)
    assert [each.trainings for each in plan[:4]] == [40, 40, 40, 30]
    margin = make_study({"schema": 2, **plan[0].study}).configuration("Margin")
    assert margin["model"]["trunk"] == "resnet50"
    assert margin["schedule"]["step"] == 5
    assert margin["sampler"]["init_args"] == {"classes": 20, "per_class": 5, "steps": None}
    assert plan[0].study["protocol"] == "fixed-validation"
    shares = [each.study["protocol"]["validation"] for each in plan[4:]]
    assert [shares.count(share) for share in (0.3, 0.2, 0.1, 0.05)] == [10] * 4
    tiny = thesis.plan({"CUB200": None}, thesis.Choices(), thesis.SCALES["tiny"], tiny=True)
    assert sum(each.trainings for each in tiny) == 74


def test_tables_and_figures_of_the_thesis(tmp_path: Path):
    """Made from the printed numbers they are the printed tables, digit by digit, but for the misprints of table 11."""
    assert thesis.main(["--printed", "--out", str(tmp_path)]) == 0
    text = (tmp_path / "tables.md").read_text()
    for table in (6, 7, 8, 9, 10, 20, 21):
        block = text.split(f"## Table {table}:")[1].split("##")[0]
        cells = [cell.strip() for line in block.splitlines() if line.startswith("|") for cell in line.split("|")]
        digits = sorted(each for each in cells if each.replace(".", "").isdigit())
        assert digits == sorted(each.printed for each in printed("thesis", table=table)), table
    ranks = text.split("## Table 11")[1].split("##")[0]
    assert "| SoftTriple | 38 | 3.17 | 1.19 |" in ranks
    assert "| SoftTriple | 64.09 ± 0.48 |" in text
    measured = tables_of([row for row in thesis.printed_rows() if row["part"] == "folds"])
    assert "| MultiSimilarity | 63.61 ± 0.59 |" in measured, "from the ten folds of table 13"
    assert "| 10 | 97.92 | 62.34 |" in measured
    assert "| 90/10 | 91.49 | 64.38 |" in text
    drawn = {file.stem: file.read_bytes() for file in tmp_path.glob("*.svg")}
    assert sorted(drawn) == [f"figure-{number}" for number in range(27, 32)]
    assert all(word in drawn["figure-27"] for word in (b"R@8", b"LiftedStructure", b"66.7")), "ProxyAnchor's R@1"
    assert all(word in drawn["figure-31"] for word in (b"bninception", b"googlenet", b"69.5"))


def test_the_unified_view(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    roots = [f"{name}=somewhere" for name in unified_view.DATA]
    assert unified_view.main(["--root", *roots, "--dry-run", "--out", str(tmp_path), "--minutes-each", "30"]) == 0
    assert "28 training runs, 0 done; about 14 GPU hours" in capsys.readouterr().out
    names = {"SOP": "StanfordOnlineProducts"}
    rows = [
        {**row, "data": names.get(str(row["data"]), row["data"])}
        for row in published("unified-view", origin="measured")
        if row["table"] == "1" or row["method"] == "RAW+VTHM"
    ]
    canonical = {"BinomialDeviance": "Binomial", "BinomialDeviance+VTHM": "Binomial+VTHM"}
    ablation = [
        {**row, "method": canonical.get(str(row["method"]), row["method"])} for row in rows if row["table"] == "1"
    ]
    text = unified_view.tables_of(ablation)
    assert "| Binomial+VTHM | 65.34 | 81.48 | 77.22 | 88.87 |" in text
    wide = unified_view.tables_of([row for row in rows if row["table"] in ("2", "3")])
    assert "| RAW+VTHM | 78.18 | 90.47 | 96.00 | 98.74 | 89.64 | 97.87 | 98.47 | 98.84 | 99.05 | 99.20 |" in wide
    assert "| HTL (quoted) | 57.10 |" in wide


def test_a_folder_of_images_from_training_to_table(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """A training for real, on images of one's own."""
    noise = np.random.default_rng(0)
    for name in range(24):
        (tmp_path / f"images/{name:02}").mkdir(parents=True)
        color = noise.integers(0, 256, 3)
        for index in range(3):
            pixels = np.clip(color + noise.integers(-20, 20, (32, 32, 3)), 0, 255).astype(np.uint8)
            Image.fromarray(pixels).save(tmp_path / f"images/{name:02}/{index}.png")
    monkeypatch.setattr(
        "likewise.app.execution.choose_executor", lambda real, report, **_: SerialExecutor(real, report)
    )
    [experiment] = unified_view.plan({"CUB200": str(tmp_path / "images")}, ["RAW+VTHM"], tiny=True)
    rows = experiment.run(tmp_path, app.Execution(workers=1))
    [row] = rows
    assert (row["data"], row["trunk"]) == ("CUB200", "bninception"), "by the names of the paper"
    text = unified_view.write(tmp_path, rows, "")
    assert f"| RAW+VTHM | {100 * float(str(row['test R@1'])):.2f} |" in text
    assert "## Table 2" in text
    assert (tmp_path / "ablation.svg").read_bytes().startswith(b"<?xml")


def test_pca_is_that_of_scikit_learn():
    """Standardized, projected, scaled to unit length: equal up to the signs of the components."""
    features = torch.randn(40, 12, generator=torch.Generator().manual_seed(0), dtype=torch.float64) ** 3
    ours = reduce_by_pca(features, 5).double()
    theirs = torch.from_numpy(
        normalize(PCA(5, svd_solver="full").fit_transform(StandardScaler().fit_transform(features)))
    )
    torch.testing.assert_close(ours @ ours.T, theirs @ theirs.T, atol=1e-6, rtol=0.0)
    with pytest.raises(ValueError, match=r"dim must be a whole number in \[1, 12\], but it is 13"):
        reduce_by_pca(features, 13)


def test_examples_run():
    for name in ("planning", "thesis", "thesis_tables", "unified_view", "reality_check", "pretrained", "figures"):
        module = importlib.import_module(f"studies.papers.{name}")
        assert doctest.testmod(module).failed == 0, name
