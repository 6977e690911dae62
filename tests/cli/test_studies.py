"""Studies from the command line: what they refuse, what they plan, what comes out, and what happens when they are stopped."""

from __future__ import annotations

import csv
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from pyarrow import parquet

from likewise.app.study_file import StudyFile
from likewise.app.study_io import find_presets, read_study
from likewise.app.study_table import open_study
from likewise.cli import main
from likewise.protocols.combine import concatenated
from likewise.protocols.study import Study
from likewise.protocols.trial import Result
from likewise.protocols.worker_process import interruptible
from likewise.train import Run
from tests.cli.conftest import run_serially

BASE: dict[str, Any] = {
    "data": {"class_path": "ImageFolder", "init_args": {"root": "photos"}},
    "transform": "glyphs",
    "model": {"trunk": "convnet", "dim": 8},
    "sampler": {"class_path": "PerClassSampler", "init_args": {"classes": 4, "per_class": 3, "steps": 4}},
    "optimizer": {"lr": 0.003},
    "train": {"epochs": 2, "log_every": 1},
    "cache_on": "ram",
}
METHODS = {"contrastive": {"loss": "ContrastiveLoss"}, "circle": {"loss": "CircleLoss"}}
OUT = ("--out", "study")


def write(file: str = "s.yaml", **changes: Any) -> str:
    said = {"name": "small", "base": BASE, "methods": METHODS, "seeds": [0, 1], **changes}
    left = {key: value for key, value in said.items() if value != "left out"}
    Path(file).write_text(yaml.safe_dump(left, sort_keys=False))
    return file


def planned(**changes: Any) -> list[dict[str, Any]]:
    """The trials of a study file."""
    return [{**trial.to_dict(), "key": trial.key} for trial in read_study(Path(write(**changes))).trials()]


def rows_of(folder: Path | str) -> list[dict[str, str]]:
    with (Path(folder) / "results.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def results_of(folder: Path | str) -> list[Result]:
    return open_study(Path(folder)).results()


@pytest.fixture(scope="session")
def finished(session_folder: Path) -> Path:
    """A study that is done: copy it before you change it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(session_folder)
        patch.setenv("LIKEWISE_CACHE", str(session_folder / "cache"))
        patch.setattr("likewise.app.execution.choose_executor", run_serially)
        assert main(["tournament", write("done.yaml"), "--out", "done"]) == 0
    return session_folder / "done"


@pytest.fixture
def study(finished: Path, here: Path) -> Path:
    """A copy of it."""
    shutil.copytree(finished, here / "study")
    return here / "study"


# ---- what is refused


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"sedes": [1]}, "there is no key sedes in a study; did you mean seeds?"),
    ({"name": 3}, "name must be a valid folder name, but it is 3"),
    ({"name": "../a"}, "name must be a valid folder name, but it is '../a'"),
    ({"name": ".."}, "name must be a valid folder name, but it is '..'"),
    ({"seeds": 5}, "seeds must be a list of whole numbers such as [0, 1, 2], but it is 5"),
    ({"seeds": []}, "seeds must be a list of whole numbers such as [0, 1, 2], but it is []"),
    ({"seeds": [0, 0]}, "seeds must differ, but they are [0, 0]"),
    ({"seeds": [-1]}, "each of seeds must be a whole number ≥ 0, but it is -1"),
    ({"seeds": [True]}, "each of seeds must be a whole number ≥ 0, but it is True"),
    ({"seeds": ["a"]}, "each of seeds must be a whole number ≥ 0, but it is 'a'"),
    ({"base": ["data"]}, "base must have keys such as data and model, but it is ['data']"),
    ({"base": {}}, "method contrastive: --data must be given"),
    ({"base": {"data": "Nope"}}, "there is no data set Nope"),
    ({"base": {**BASE, "split": {"validation": 0.3}}}, "split.validation is set by the protocol of the study"),
    ({"base": {**BASE, "split": {"folds": 3}}}, "split.folds is set by the protocol of the study"),
    ({"methods": "left out"}, "methods must have at least one method"),
    ({"methods": {}}, "methods must have at least one method"),
    ({"methods": {"a": "CircleLoss"}}, "method a must be a mapping of settings such as {loss: CircleLoss}"),
    ({"methods": {"a": None}}, "method a must be a mapping of settings"),
    ({"methods": {1: {"loss": "CircleLoss"}}}, "names of methods must be texts, but one is 1"),
    ({"methods": {"a": {"loss": "CircelLoss"}}}, "method a: there is no loss CircelLoss; did you mean CircleLoss?"),
    ({"methods": {"a": {"los": "CircleLoss"}}}, "method a: there is no option --los; did you mean --loss?"),
    ({"vary": ["model.dim"]}, "vary must map settings such as model.dim to lists of values"),
    ({"vary": {"model.dim": 8}}, "vary: model.dim must have a list of values, but it is 8"),
    ({"vary": {"model.dim": "abc"}}, "vary: model.dim must have a list of values, but it is 'abc'"),
    ({"vary": {"model.dim": []}}, "vary: model.dim must have a list of values, but it is []"),
    ({"vary": {"model.dim": [8, 8]}}, "vary: the values of model.dim must differ"),
    ({"vary": {"model.dims": [8]}}, "there is no option --model.dims; did you mean --model.dim?"),
    ({"vary": {"seed": [1]}}, "not seeds or protocol, but it contains 'seed'"),
    ({"vary": {"split.seed": [1]}}, "not seeds or protocol, but it contains 'split.seed'"),
    ({"vary": {3: [1]}}, "not seeds or protocol, but it contains 3"),
    (
        {"vary": {"model.dim": [4]}, "methods": {"a": {"model": {"dim": 8}}}},
        "method a: model.dim cannot be changed by a method, because the study varies it",
    ),
    ({"protocol": "clasic"}, "there is no protocol clasic; did you mean classic?"),
    ({"protocol": 3}, "protocol must be a name, {folds: 4} or {validation: 0.1}, but it is 3"),
    ({"protocol": {}}, "protocol must be a name, {folds: 4} or {validation: 0.1}, but it is {}"),
    ({"protocol": {"folds": 1}}, "protocol: folds must be a whole number ≥ 2, but it is 1"),
    ({"protocol": {"folds": 3, "contigous": True}}, "folds has no option contigous; did you mean contiguous?"),
    ({"protocol": {"validation": 0}}, "protocol: share must be a number in (0, 1), but it is 0"),
    ({"protocol": {"validation": "a"}}, "protocol: share must be a number in (0, 1), but it is 'a'"),
    ({"metric": "accuracy"}, "metric must be one of R@K, RP, MAP@R, MRR, mAP, but it is 'accuracy'"),
    ({"metric": "test MAP@R"}, "metric must be one of"),
    ({"board": "postgresql://x"}, "there is no key board in a study"),
]


@pytest.mark.parametrize(("changes", "words"), REFUSED, ids=[words[:40] for _, words in REFUSED])
def test_a_wrong_study_is_refused_in_one_sentence(
    changes: dict[str, Any], words: str, capsys: pytest.CaptureFixture[str]
):
    assert main(["tournament", write(**changes), *OUT, "--workers", "0"]) == 2
    said = capsys.readouterr()
    assert words in said.err
    assert said.err.startswith("likewise: ")
    assert said.err.count("\n") == 1
    assert said.out == ""
    assert not Path("study/runs").exists()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"name: [1", "must be a study in YAML, but it is not"),
        (b"\xff\xfe\x00", "must be a study in YAML, but it is not"),
        (b"", "must have keys such as name and methods, but it is a NoneType"),
        (b"- 1", "must have keys such as name and methods, but it is a list"),
        (b"a: 1\n", "there is no key a in a study"),
    ],
)
def test_what_is_no_study_at_all(content: bytes, words: str, capsys: pytest.CaptureFixture[str]):
    Path("s.yaml").write_bytes(content)
    assert main(["tournament", "s.yaml", "--workers", "0"]) == 2
    assert words in capsys.readouterr().err


DATA = ("--data", "ImageFolder", "--data.root", "photos")


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("tournament", "give a study's FILE or --preset NAME"),
        ("tournament nowhere.yaml", "there is no study nowhere.yaml"),
        ("tournament --preset smok", "there is no preset smok; did you mean smoke?"),
        ("tournament --preset tiny --workers -1", "--workers must be a whole number ≥ 0, but it is -1"),
        ("leaderboard photos", "photos must be the folder of a study or of a run, but it is neither"),
        ("tune DATA --search optimizer.lr=1e-5:1e-2:lgo", "there is no scale lgo"),
        ("tune DATA --search optimizer.lr=1e-5", "must be LOW:HIGH, LOW:HIGH:log or LOW:HIGH:STEP, but it is 1e-5"),
        ("tune DATA --search loss.alhpa", "loss.alhpa has no declared range; did you mean loss.alpha?"),
        ("tune DATA --search loss.alhpa=1:2", "there is no option --loss.alhpa; did you mean --loss.alpha?"),
        ("tune DATA --search nope.x=1:2", "nope.x must name a setting of the configuration"),
        ("tune DATA --search loss.alpha=-5:2", "--search: loss.alpha must be a number > 0, but -5.0 is not"),
        ("tune DATA --search sampler.per_class=2.5:8", "whole numbers"),
        ("tune DATA --search loss.alpha=1:2:0", "step must be a number > 0, but it is 0.0"),
        ("tune DATA --how thesis-grid --loss CircleLoss", "--how thesis-grid: loss must be one of"),
        ("tune DATA --how thesis-grid", "give --loss.miner MultiSimilarityMiner"),
        ("tune DATA --how thesis-grid --search loss.alpha=1:2", "--search must be some of loss.base, loss.alpha"),
        ("tune DATA --protocol classic", "--protocol must have validation classes for the search"),
        (
            "tune DATA --split.validation 0.3 --protocol reality-check",
            "--split.validation cannot be combined with --protocol",
        ),
        ("tune DATA --rounds 0", "--rounds must be a whole number ≥ 1, but it is 0"),
        ("tune DATA --name a/b", "name must be a valid folder name, but it is 'tune-a/b'"),
        ("repeat DATA --split.folds 3", "split.folds is set by the protocol"),
        ("repeat DATA --workers -1", "--workers must be a whole number ≥ 0, but it is -1"),
        ("repeat DATA --shard 3/2", "--shard must be I/N with 1 ≤ I ≤ N, such as 2/8, but it is 3/2"),
        ("repeat DATA --per-gpu 0", "--per-gpu must be a whole number ≥ 1, but it is 0"),
        ("tune DATA --minutes 0", "--minutes must be a number > 0, but it is 0"),
        ("tune DATA --minutes nan", "--minutes must be a number > 0, but it is nan"),
        ("train DATA --out quick.yaml", "--out must be a folder that can be created, but quick.yaml is a file"),
        ("tune DATA --shard 1/2", "there is no option --shard"),
        ("repeat DATA --on local --out out", "--on: address must be auto or host:port, but it is 'local'"),
        ("study merge nowhere", "there is no study nowhere/study.yaml"),
        ("repeat DATA --sedes 3", "there is no option --sedes; did you mean --seed?"),
    ],
)
def test_a_wrong_command_is_refused(command: str, words: str, capsys: pytest.CaptureFixture[str]):
    assert main([word for each in command.split() for word in (DATA if each == "DATA" else (each,))]) == 2
    assert words in capsys.readouterr().err
    assert not Path("studies").exists()


# ---- what is planned


def test_the_presets_can_be_planned():
    counts = {name: len(read_study(path).trials()) for name, path in find_presets().items()}
    assert counts == {"smoke": 20, "tiny": 4}
    smoke = read_study(find_presets()["smoke"])
    assert (len(smoke.methods), len(smoke.seeds), smoke.vary) == (5, 2, {"model.dim": [32, 64]})


def test_an_empty_key_says_nothing():
    assert planned(vary=None, protocol=None) == planned()


def test_trials_are_complete_and_go_seed_by_seed():
    trials = planned(vary={"model.dim": [4, 8]})
    assert [(each["method"], each["labels"]["dim"], each["seed"]) for each in trials] == [
        (method, dim, seed) for seed in (0, 1) for dim in (4, 8) for method in METHODS
    ]
    first = trials[0]["config"]
    assert (first["model"]["dim"], first["seed"], first["split"]["validation"]) == (4, 0, None)
    assert first["loss"]["class_path"] == "likewise.losses.ContrastiveLoss"
    assert trials[0]["labels"] == {"data": "ImageFolder", "trunk": "convnet", "dim": 4}
    assert len({each["key"] for each in trials}) == 8


def labels(**vary: Any) -> list[dict[str, Any]]:
    trials = planned(vary={name.replace("__", "."): value for name, value in vary.items()}, seeds=[0])
    return [each["labels"] for each in trials if each["method"] == "circle"]


def test_whatever_is_varied_has_a_label_of_its_own():
    folders = [{"class_path": "ImageFolder", "init_args": {"root": root}} for root in ("photos", "others")]
    told = [each["data"] for each in labels(data=[*folders, "Glyphs"])]
    assert told == ['ImageFolder {"root": "photos"}', 'ImageFolder {"root": "others"}', "Glyphs"]
    assert [each["trunk"] for each in labels(model__trunk=["convnet", "resnet18"])] == ["convnet", "resnet18"]
    assert [each["betas"] for each in labels(optimizer__betas=[[0.9, 0.99], [0.8, 0.9]])] == [
        "[0.9, 0.99]",
        "[0.8, 0.9]",
    ]
    assert [each["memory"] for each in labels(memory=[None, {"size": 32}])] == [None, '{"size": 32}']


def test_arguments_of_classes_are_varied_by_their_short_paths():
    trials = planned(
        vary={"sampler.per_class": [2, 3], "loss.margin": [0.3]}, methods={"circle": {"loss": "CircleLoss"}}
    )
    made = [(each["config"]["sampler"]["init_args"], each["config"]["loss"]["init_args"]["margin"]) for each in trials]
    assert made[:2] == [
        ({"classes": 4, "per_class": 2, "steps": 4}, 0.3),
        ({"classes": 4, "per_class": 3, "steps": 4}, 0.3),
    ]
    assert trials[0]["labels"]["per_class"] == 2


def test_two_settings_of_the_same_name_are_told_apart():
    study = StudyFile(
        "a", METHODS, BASE, vary={"a.x": [1], "b.x": [2], "c.status": [3], "model.dim": [4], "loss.dim": [5]}
    )
    assert study.settings() == ("data", "trunk", "dim", "a.x", "b.x", "c.status", "loss.dim")


def test_planning_only(here: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["tournament", write(), *OUT, "--workers", "0"]) == 0
    said = capsys.readouterr().out
    assert "small: 4 training runs, 0 workers, study" in said
    assert "nothing is done yet" in said
    assert not Path("study/runs").exists()
    assert open_study(Path("study")).counts()["missing"] == 4
    assert main(["tournament", write(), *OUT, "--workers", "0"]) == 0
    assert open_study(Path("study")).counts()["missing"] == 4, "planned again, it is the same plan"
    assert main(["tournament", write(seeds=[2]), *OUT, "--workers", "0"]) == 2
    assert (
        "study must hold the same study, but its study.yaml differs in seeds: [0, 1] in the file and [2] now"
        in capsys.readouterr().err
    )


# ---- what comes out


def test_every_number_can_be_traced_to_a_run_and_every_run_to_a_command(study: Path):
    rows = rows_of(study)
    assert [(row["method"], row["seed"]) for row in rows] == [(m, s) for s in "01" for m in METHODS]
    for row in rows:
        run = Run(study / row["run"])
        assert (row["status"], row["openings"], len(run.openings())) == ("done", "1", 1)
        [evaluation] = run.evaluations()
        assert float(row["test MAP@R"]) == evaluation["metrics"]["MAP@R"]
        assert evaluation["model"] == run.openings()[0]["model"] == "best"
        best = max(run.metrics("val")[1:], key=lambda line: line["MAP@R"])  # not the model before training
        assert float(row["val MAP@R"]) == best["MAP@R"]
    words = shlex.split(rows[1]["command"])
    words[words.index("--config") + 1] = str(study / rows[1]["run"] / "config.yaml")
    assert main([*words[1:-1], "again"]) == 0
    again, first = Run("again"), Run(study / rows[1]["run"])
    assert [line["MAP@R"] for line in again.metrics("val")] == [line["MAP@R"] for line in first.metrics("val")]


def test_csv_and_parquet_are_the_same_table(study: Path):
    stored = parquet.read_table(study / "results.parquet")
    assert stored.column_names == list(rows_of(study)[0])
    text = [{name: "" if value is None else str(value) for name, value in row.items()} for row in stored.to_pylist()]
    assert text == rows_of(study)


def test_columns_of_several_kinds_can_be_stored(here: Path):
    from likewise.app.study_report import write_results

    rows = [{"a": 1, "b": 1, "c": True, "d": None}, {"a": "x", "b": 1.5, "c": None, "d": None}]
    write_results(here, rows)
    stored = parquet.read_table(here / "results.parquet").to_pylist()
    assert stored == [{"a": "1", "b": 1.0, "c": True, "d": None}, {"a": "x", "b": 1.5, "c": None, "d": None}]


def test_a_second_conclusion_needs_no_process(study: Path, capsys: pytest.CaptureFixture[str]):
    before = rows_of(study)
    assert main(["tournament", str(study / "study.yaml"), "--out", str(study), "--workers", "1"]) == 0
    said = capsys.readouterr().out
    assert not list(study.glob("worker-*.log"))
    assert rows_of(study) == before
    assert "MAP@R in percent: mean and 95% interval over seeds" in said
    assert "tournament\n" in said
    assert "contrastive and circle are not distinguishable by MAP@R" in " ".join(said.split())
    places = [line for line in said.splitlines() if line[:2] in ("1 ", "2 ")]
    assert len(places) == 4
    prose = [line for line in said.splitlines() if not line.startswith(("#", "1 ", "2 ")) and str(study) not in line]
    assert max(map(len, prose)) <= 80, max(prose, key=len)


def test_strange_names_of_methods(serial: None, capsys: pytest.CaptureFixture[str]):
    names = ["a/b c", "größer, 'than' ../x"]
    methods = dict(zip(names, METHODS.values(), strict=True))
    assert main(["tournament", write(methods=methods, seeds=[0]), *OUT]) == 0
    assert [row["method"] for row in rows_of("study")] == names
    assert all(
        each.name == row["key"]
        for each, row in zip(
            sorted(Path("study/runs").iterdir()), sorted(rows_of("study"), key=lambda row: row["key"]), strict=True
        )
    )


BAD = {"loss": {"class_path": "CircleLoss", "init_args": {"gamma": -1.0}}}


def test_a_method_that_cannot_be_trained_fails_alone(serial: None, capsys: pytest.CaptureFixture[str]):
    assert main(["tournament", write(methods={**METHODS, "bad": BAD}, seeds=[0]), *OUT]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "first failure: bad, dim 8, seed 0: the loss: CircleLoss: gamma must be" in said
    assert "failed: bad, dim 8, seed 0: the loss: CircleLoss: gamma must be" in said.replace("first failure", "")
    assert {row["method"]: row["status"] for row in rows_of("study")} == {
        "contrastive": "done",
        "circle": "done",
        "bad": "failed",
    }
    [error] = [row["error"] for row in rows_of("study") if row["error"]]
    assert error.startswith("the loss: CircleLoss: gamma must be")
    assert "Traceback" not in said


def test_when_all_fail_that_is_what_it_says(serial: None, capsys: pytest.CaptureFixture[str]):
    assert main(["tournament", write(methods={"bad": BAD}, seeds=[0]), *OUT]) == 1
    said = capsys.readouterr().out
    assert "failed: bad" in said
    assert "nothing is done\n" in said


def test_what_failed_is_tried_again_by_the_same_command(serial: None, capsys: pytest.CaptureFixture[str]):
    base = {**BASE, "data": {"class_path": "ImageFolder", "init_args": {"root": "later"}}}
    words = ["tournament", write(base=base, methods={"circle": METHODS["circle"]}, seeds=[0]), *OUT, "--workers", "1"]
    assert main(words) == 1
    assert "root must be a folder" in " ".join(capsys.readouterr().out.split())
    Path("later").symlink_to("photos")
    assert main(words) == 0
    assert [row["status"] for row in rows_of("study")] == ["done"]


def test_a_training_without_a_test_part_fails_in_a_sentence(serial: None, capsys: pytest.CaptureFixture[str]):
    file = write(base={**BASE, "split": {"test": 0.0}}, methods={"a": METHODS["circle"]}, seeds=[0])
    assert main(["tournament", file, *OUT]) == 1
    [row] = rows_of("study")
    assert "has no test part" in row["error"]
    assert "Traceback" not in capsys.readouterr().err


def test_settings_that_are_varied_are_never_mixed(serial: None, capsys: pytest.CaptureFixture[str]):
    assert main(["tournament", write(vary={"optimizer.lr": [0.003, 0.001]}, seeds=[0]), *OUT]) == 0
    said = capsys.readouterr().out
    assert "dim 8, lr 0.003\n" in said
    assert "dim 8, lr 0.001\n" in said
    assert "not ranked" not in said
    assert {row["lr"] for row in rows_of("study")} == {"0.003", "0.001"}
    assert "2/2" in said, "each method has two experiments"


def nearest_is_right(embeddings: np.ndarray, labels: np.ndarray) -> float:
    units = embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True)
    alike = units @ units.T
    np.fill_diagonal(alike, -np.inf)
    return float((labels[alike.argmax(1)] == labels).mean())


@pytest.mark.parametrize("contiguous", [False, True])
def test_folds_from_the_file_to_the_table(contiguous: bool, serial: None, capsys: pytest.CaptureFixture[str]):
    protocol = {"folds": 3, "contiguous": contiguous}
    assert main(["tournament", write(protocol=protocol, methods={"circle": METHODS["circle"]}, seeds=[0]), *OUT]) == 0
    assert "each a mean over 3 folds" in capsys.readouterr().out
    *rows, last = rows_of("study")
    assert [row["fold"] for row in rows] == ["0", "1", "2"]
    assert (last["combination"], last["run"]) == ("concatenated", " ".join(row["run"] for row in rows))
    assert {row["tuned_on_test"] for row in rows} == {"False"}
    stored = [np.load(Path("study") / row["run"] / "test.npz") for row in rows]
    for row, each in zip(rows, stored, strict=True):
        assert float(row["test R@1"]) == pytest.approx(nearest_is_right(each["embeddings"], each["labels"]))
    [together] = concatenated(results_of("study"), Path("study"), 3)
    joined = np.concatenate([each["embeddings"] for each in stored], axis=1)
    assert together.test["R@1"] == pytest.approx(nearest_is_right(joined, stored[0]["labels"]))
    assert float(last["test R@1"]) == together.test["R@1"]
    assert together.openings == 3


def test_without_validation_everything_is_marked(serial: None, capsys: pytest.CaptureFixture[str]):
    assert main(["tournament", write(protocol="classic", seeds=[0]), *OUT]) == 0
    said = capsys.readouterr().out
    places = said[said.index("\n#") : said.index("\nNote")]
    assert places.count("tuned on test") == 2, "each place is marked"
    assert "contrastive and circle tuned on test" in " ".join(said.split()), "and the sentence about the two"
    for row in rows_of("study"):
        assert (row["tuned_on_test"], row.get("val MAP@R", "")) == ("True", "")
        run = Run(Path("study") / row["run"])
        assert run.evaluations()[0]["model"] == run.openings()[0]["model"] == "model", "there is no best one"


# ---- ranking and comparing


def test_a_leaderboard_of_a_study(study: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["leaderboard", "study", "--metric", "test R@1"]) == 0
    said = capsys.readouterr().out
    means = {
        method: 100 * np.mean([float(row["test R@1"]) for row in rows_of(study) if row["method"] == method])
        for method in METHODS
    }
    first = max(means, key=lambda name: means[name])
    assert f"1  {first}" in said
    for mean in means.values():
        assert f"{mean:.2f}" in said


def test_a_leaderboard_for_each_setting(serial: None, capsys: pytest.CaptureFixture[str]):
    main(["tournament", write(vary={"model.dim": [6, 8]}, seeds=[0]), *OUT])
    page = capsys.readouterr().out
    assert main(["leaderboard", "study"]) == 0
    said = capsys.readouterr().out
    for size in (6, 8):
        assert f"data ImageFolder, trunk convnet, dim {size}\nMAP@R in percent" in said
        assert f"data ImageFolder, trunk convnet, dim {size}\n" in page


def test_compare_says_a_sentence_for_every_two(study: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["compare", "study"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "2 pairs" in said
    assert main(["compare", "study", "--methods", "circle"]) == 2
    assert "a comparison needs at least two methods, but there is only circle" in capsys.readouterr().err
    assert main(["compare", "study", "--methods", "circle", "triplet"]) == 2
    assert "there is no method triplet: the methods are circle, contrastive" in capsys.readouterr().err
    assert main(["compare", "study", "--metric", "test accuracy"]) == 2
    assert "but it is 'test accuracy'" in capsys.readouterr().err


def test_what_is_unfair_is_refused_unless_it_is_left_out_or_wanted(serial: None, capsys: pytest.CaptureFixture[str]):
    larger = {"loss": "CircleLoss", "model": {"dim": 12}}
    main(["tournament", write(methods={**METHODS, "larger": larger}), *OUT])
    capsys.readouterr()
    for command in ("compare", "leaderboard"):
        assert main([command, "study"]) == 1
        said = capsys.readouterr().out
        assert "not ranked, because the comparison would be unfair" in said
        assert "embedding size" in said
        assert max(map(len, said.splitlines())) <= 80
    assert main(["compare", "study", "--methods", "contrastive", "circle"]) == 0
    assert "unfair" not in capsys.readouterr().out
    assert main(["compare", "study", "--allow-unfair"]) == 0
    assert "unfair: embedding size" in capsys.readouterr().out
    assert main(["leaderboard", "study", "--allow-unfair"]) == 0
    assert "unfair" in capsys.readouterr().out


def test_nothing_done_is_nothing_to_rank(capsys: pytest.CaptureFixture[str]):
    main(["tournament", write(), *OUT, "--workers", "0"])
    assert main(["leaderboard", "study"]) == 2
    assert "no training is done yet" in capsys.readouterr().err


def test_fresh_runs_are_compared_on_validation_classes(run: Path, capsys: pytest.CaptureFixture[str]):
    """The commands do not ask for the test set, which stays sealed, and say what they compare."""
    shutil.copytree("run", "other")
    description = yaml.safe_load(Path("other/run.yaml").read_text())
    description["config"]["loss"] = {"class_path": "likewise.losses.CircleLoss", "init_args": {}}
    Path("other/run.yaml").write_text(yaml.safe_dump(description, sort_keys=False))
    for command in ("compare", "leaderboard"):
        assert main([command, "run", "other"]) == 0
        captured = capsys.readouterr()
        other = {"compare": "leaderboard", "leaderboard": "compare"}[command]
        assert captured.err.splitlines()[-1] == f"next: likewise {other} run other"
        printed = " ".join(captured.out.split())
        assert (
            "Compared on validation classes, because 2 of 2 training runs are not measured on the test set" in printed
        )
        assert "MAP@R on validation classes" in printed
    assert main(["compare", "run", "other", "--metric", "test MAP@R"]) == 2
    assert not Path("run/openings.jsonl").exists()


# ---- one method: repeats and a search

SMALL = ["--config", "quick.yaml", *DATA, "--train.epochs", "1"]


def test_repeats(serial: None, capsys: pytest.CaptureFixture[str]):
    words = ["repeat", *SMALL, "--loss", "CircleLoss", "--seeds", "2", "--seed", "3", *OUT]
    assert main(words) == 0
    assert "over seeds" in capsys.readouterr().out
    assert [(row["method"], row["seed"], row["status"]) for row in rows_of("study")] == [
        ("circle", "3", "done"),
        ("circle", "4", "done"),
    ]
    assert main(words) == 0, "the same command finds it done"


def test_a_search_never_opens_the_test_set_and_ends_in_a_file(serial: None, capsys: pytest.CaptureFixture[str]):
    words = ["tune", *SMALL, "--loss", "CircleLoss", "--search", "optimizer.lr=1e-3:1e-2:log", "sampler.per_class=2:4"]
    words += ["--how", "random", "--rounds", "3", "--workers", "1", *OUT]
    assert main(words) == 0
    said = capsys.readouterr().out
    assert "likewise repeat --config study/best.yaml" in said
    assert not list(Path("study/runs").glob("*/openings.jsonl"))
    rows = rows_of("study")
    assert len(rows) == 3
    assert {row["stage"] for row in rows} == {"search"}
    assert all(1e-3 <= float(row["optimizer.lr"]) <= 1e-2 and row["sampler.per_class"] in "234" for row in rows)
    done = [row for row in rows if row["status"] == "done"]
    best = max(done, key=lambda row: float(row["val MAP@R"]))
    found = yaml.safe_load(Path("study/best.yaml").read_text())
    assert found["optimizer"]["lr"] == float(best["optimizer.lr"])
    assert found["sampler"]["init_args"]["per_class"] == int(best["sampler.per_class"])
    assert main(words) == 0, "the same command finds it done"
    assert rows_of("study") == rows
    assert main(["repeat", "--config", "study/best.yaml", "--seeds", "1", "--out", "final"]) == 0
    assert rows_of("final")[0]["test MAP@R"]
    capsys.readouterr()
    assert main(["leaderboard", "study"]) == 2, "a search has no final results"


def test_a_search_over_folds_and_one_in_which_all_fails(serial: None, capsys: pytest.CaptureFixture[str]):
    words = ["tune", *SMALL, "--loss", "CircleLoss", "--how", "grid", "--rounds", "1", "--protocol", "reality-check"]
    assert main([*words, "--sampler.classes", "3", *OUT]) == 0
    assert sorted(row["fold"] for row in rows_of("study")) == ["0", "1", "2", "3"]
    assert main([*words, "--sampler.classes", "99", "--out", "none"]) == 1
    assert "no setting could be trained: the sampler, for" in capsys.readouterr().out


SHORT = ("--transform", "glyphs", "--model.trunk", "convnet", "--model.dim", "8", "--train.epochs", "1")


@pytest.mark.parametrize("command", ["repeat --seeds 1", "tune --how random --rounds 1"])
def test_default_batches_are_shrunk_to_the_data(command: str, serial: None, capsys: pytest.CaptureFixture[str]):
    """Ten classes are left for training and validation, and the default is 32 in a batch; `likewise train` does the same."""
    words = [*command.split(), *SHORT]
    assert main([*words, *DATA, *OUT]) == 0
    [row] = rows_of("study")
    sampler = Run(Path("study") / row["run"]).description["config"]["sampler"]["init_args"]
    assert sampler["classes"] < 12
    capsys.readouterr()
    assert main([*words, *DATA, "--sampler.classes", "33", "--out", "asked"]) == 1, "what was asked for is not changed"
    printed = " ".join(capsys.readouterr().out.split())
    assert "first failure: multisimilarity, " in printed
    assert "classes must be" in printed


def test_a_trial_is_scored_by_what_was_trained(serial: None, capsys: pytest.CaptureFixture[str]):
    """A rate so small that every epoch is as good as the start: the result is an epoch's, and that is said."""
    frozen = {"model": {**BASE["model"], "freeze_bn": True}, "optimizer": {"lr": 1e-12}}
    file = write(base={**BASE, **frozen}, methods={"circle": METHODS["circle"]}, seeds=[0])
    assert main(["tournament", file, *OUT]) == 0
    [row] = rows_of("study")
    assert row["note"].startswith("no epoch improved on the model before training: ")
    assert "note: circle, dim 8, seed 0: no epoch improved" in " ".join(capsys.readouterr().out.split())
    assert Run(Path("study") / row["run"]).chosen["epoch"] > 0
    words = [
        "--model.freeze_bn",
        "true",
        "--search",
        "optimizer.lr=1e-12:1e-11:log",
        "--how",
        "random",
        "--rounds",
        "1",
    ]
    assert main(["tune", *SMALL, "--loss", "CircleLoss", *words, "--out", "tuned"]) == 0
    [row] = rows_of("tuned")
    assert Run(Path("tuned") / row["run"]).chosen["epoch"] > 0
    assert "note: 1 of 1 training runs never improved on the model before training" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("loss", "first"),
    [
        ("ContrastiveLoss", {"loss.positive_margin": 1.0, "loss.negative_margin": 0.5, "optimizer.lr": 0.003}),
        ("CircleLoss", {"loss.margin": 0.4, "loss.gamma": 80.0, "optimizer.lr": 0.003}),
        (
            "ProxyAnchorLoss",
            {"loss.margin": 0.1, "loss.alpha": 32.0, "optimizer.lr": 0.003, "optimizer.lrs.loss": 0.003},
        ),
    ],
)
def test_a_search_begins_with_the_defaults_and_has_learning_rates(loss: str, first: dict[str, float]):
    """Nothing is named to search: what the loss declares, the network's rate, and that of what the loss learns."""
    assert main(["tune", *SMALL, "--loss", loss, "--how", "random", "--workers", "0", "--rounds", "3", *OUT]) == 0
    planned = open_study(Path("study")).missing()
    assert {name: planned[0].labels[name] for name in first} == first
    assert planned[0].labels.keys() == first.keys()


# ---- shards and packs


def test_shards_have_tables_of_their_own_and_come_together(serial: None, capsys: pytest.CaptureFixture[str]):
    words = ["tournament", write(), *OUT]
    for number in (1, 2, 3):
        assert main([*words, "--shard", f"{number}/3"]) == 0
    tables = [Study(file) for file in sorted(Path("study").glob("study-*-of-3.db"))]
    keys = [{trial.key for trial in table.trials()} for table in tables]
    assert len(set.union(*keys)) == sum(map(len, keys)) == 4
    assert all(int(key, 16) % 3 == number for number, some in enumerate(keys) for key in some)
    assert not Path("study/results.csv").exists()
    assert "run the command without --shard to merge all shards" in " ".join(capsys.readouterr().out.split())
    assert main([*words, "--workers", "0"]) == 0
    assert [row["status"] for row in rows_of("study")] == ["done"] * 4


def test_a_failure_in_a_shard_does_not_end_what_is_tried_again(here: Path):
    """Whoever reads changes nothing; whoever opens the table leaves it to its driver."""
    assert main(["tournament", write(seeds=[0]), *OUT, "--workers", "0"]) == 0
    table, folder = open_study(here / "study"), here / "study"
    first, second = table.missing()
    shard = Study(folder / "study-1-of-1.db")
    shard.add([first, second])
    shard.finish(Result(first, "failed", error="no"))
    shard.finish(Result(second, val={"MAP@R": 0.5}, test={"MAP@R": 0.5}))
    assert main(["study", "export", "study"]) == 0
    assert [row["key"] for row in rows_of("study")] == [second.key]
    with table.driving():
        open_study(folder)
    assert table.counts()["missing"] == 2
    assert open_study(folder).missing() == [first]


def test_what_is_no_table_and_no_folder_is_refused_in_one_sentence(capsys: pytest.CaptureFixture[str]):
    write("out")
    assert main(["tournament", write(), "--out", "out", "--workers", "0"]) == 2
    assert (
        capsys.readouterr().err == "likewise: --out must be a folder that can be created, but out is not: File exists\n"
    )
    assert main(["tournament", write(), *OUT, "--workers", "0"]) == 0
    assert main(["study", "pack", "study", "out/pack"]) == 2
    assert "out/pack" in capsys.readouterr().err
    Path("study/study.db").write_text("this is not a database, but it is long enough to look like one" * 9)
    commands = ["tournament s.yaml --out study", "leaderboard study", "study run study", "study pack study pack"]
    for command in (*commands, "study run study --shard 1/2", "study merge study", "study export study"):
        assert main(command.split()) == 2
        said = capsys.readouterr().err
        assert said.startswith("likewise: file must be the table of a study, but study/study.db is not")
        assert said.count("\n") == 1


BLOCKED = """
import sys

for name in ("optuna", "ray", "jsonargparse", "rich", "pyarrow", "sklearn", "faiss", "fastapi"):
    sys.modules[name] = None
"""


def test_a_pack_is_executed_on_a_bare_machine_and_merged(here: Path, capsys: pytest.CaptureFixture[str]):
    """The data are elsewhere on that machine, and there is no Optuna, Ray or jsonargparse."""
    assert main(["tournament", write(seeds=[0]), *OUT, "--workers", "0"]) == 0
    assert main(["study", "pack", "study", "pack"]) == 0
    assert main(["study", "pack", "study", "pack"]) == 2
    assert "pack must be a folder that does not exist" in capsys.readouterr().err
    away = here / "away"
    away.mkdir()
    shutil.move("pack", away / "pack")
    (away / "images").symlink_to((here / "photos").resolve())
    (away / "sitecustomize.py").write_text(BLOCKED)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(away), os.environ.get("PYTHONPATH", "")))}
    command = [sys.executable, "-m", "likewise.app.execute", "pack", "--minutes", "5", "--workers", "1"]
    for place, code in (("loss.margin=2", 2), ("data.root=images", 0)):
        words = [*command, "--place", place]
        done = subprocess.run(words, cwd=away, env=environment, capture_output=True, text=True, check=False)
        logs = "".join(log.read_text() for log in (away / "pack").glob("worker-*.log"))
        assert done.returncode == code, done.stdout + done.stderr + logs
    assert "2 done, 0 failed, 0 missing" in done.stdout
    assert main(["study", "merge", "study", str(away / "pack")]) == 0
    assert "2 new results\n2 done" in capsys.readouterr().out
    assert main(["study", "export", "study"]) == 0
    assert [Run(Path("study") / row["run"]).finished for row in rows_of("study")] == [True, True]
    assert main(["study", "merge", "study", str(away / "pack")]) == 0
    assert "0 new results\n2 done" in capsys.readouterr().out


# ---- real processes


@pytest.fixture(autouse=True)
def signals_that_are_heard() -> Iterator[None]:
    """A run in the background, or under nohup, ignores some signals, and so would all that it starts."""
    usual = {signal.SIGINT: signal.default_int_handler, signal.SIGHUP: signal.SIG_DFL, signal.SIGTERM: signal.SIG_DFL}
    before = {number: signal.getsignal(number) for number in usual}
    for number, handler in usual.items():
        if before[number] == signal.SIG_IGN:
            signal.signal(number, handler)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_request_to_end_is_an_interrupt(number: signal.Signals):
    before = signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt), interruptible():
        signal.raise_signal(number)
    assert signal.getsignal(number) == before


def likewise(*words: str, log: str = "out.log") -> subprocess.Popen[bytes]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "80"}
    with open(log, "ab") as out:
        return subprocess.Popen([sys.executable, "-m", "likewise.cli", *words], env=environment, stdout=out, stderr=out)


def workers_here() -> list[int]:
    """The processes of executors that were started in this folder."""
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = place.read_bytes().decode(errors="replace").split("\0")
            here = os.readlink(place.with_name("cwd")) == os.getcwd()
        except OSError:
            continue
        if here and words[1:3] == ["-m", "likewise.protocols.worker_process"]:
            found.append(int(place.parent.name))
    return found


def until(there: Callable[[], bool], process: subprocess.Popen[bytes], seconds: float = 60.0) -> None:
    limit = time.monotonic() + seconds
    while not there():
        assert process.poll() is None, Path("out.log").read_text()
        assert time.monotonic() < limit, Path("out.log").read_text()
        time.sleep(0.01)


LONG = {
    **BASE,
    "sampler": {"class_path": "PerClassSampler", "init_args": {"classes": 4, "per_class": 3, "steps": 30}},
    "train": {"epochs": 2, "checkpoint_minutes": 0, "log_every": 5},
}


def numbers(folder: Path | str) -> list[Any]:
    """The table and the records but for times, for how often a seal was opened, and for what names the folder."""
    clock = ("seconds", "openings", "command", "images_per_s")
    lines: list[Any] = [*rows_of(folder)]
    for row in rows_of(folder):
        lines += Run(Path(folder) / row["run"]).metrics()
    return [{name: value for name, value in line.items() if name not in clock} for line in lines]


@contextmanager
def one_thread() -> Iterator[None]:
    """What the processes of an executor have: the same numbers, bit for bit."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@pytest.fixture(scope="module")
def undisturbed(session_folder: Path) -> list[Any]:
    """What comes out of a longer study that nobody disturbs."""
    with pytest.MonkeyPatch.context() as patch, one_thread():
        patch.chdir(session_folder)
        patch.setenv("LIKEWISE_CACHE", str(session_folder / "cache"))
        patch.setattr("likewise.app.execution.choose_executor", run_serially)
        assert main(["tournament", write("long.yaml", base=LONG, seeds=[0]), "--out", "long"]) == 0
        return numbers("long")


def checkpoints() -> int:
    return len(list(Path("study/runs").glob("*/last.safetensors")))


@pytest.mark.slow
def test_a_driver_that_ends_leaves_checkpoints_and_the_same_command_goes_on(undisturbed: list[Any]):
    """Interrupted it waits for its processes; killed, they end by themselves."""
    process = likewise("tournament", write(base=LONG, seeds=[0]), *OUT, "--workers", "1")
    until(lambda: checkpoints() == 1, process)
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130
    assert not workers_here(), "no process is left behind"
    said = " ".join(Path("out.log").read_text().split())
    assert "to continue, run: likewise tournament study/study.yaml --out study" in said
    assert "Traceback" not in said
    process = likewise("tournament", "study/study.yaml", *OUT, "--workers", "1")
    until(lambda: checkpoints() == 2, process)
    process.send_signal(signal.SIGKILL)
    assert process.wait(30) == -signal.SIGKILL
    assert open_study(Path("study")).counts()["missing"] in (1, 2)
    again = likewise("tournament", "study/study.yaml", *OUT, "--workers", "1")
    assert again.wait(90) == 0, Path("out.log").read_text()
    assert not workers_here()
    assert numbers("study") == undisturbed


def test_a_second_driver_is_refused_before_it_changes_anything(capsys: pytest.CaptureFixture[str]):
    """Nor is a study packed or merged while it runs; what reads it is not refused."""
    commands = [["tournament", write(seeds=[0]), *OUT], ["repeat", *SMALL, "--seeds", "1", "--out", "repeated"]]
    commands += [["tune", *SMALL, "--how", "random", "--rounds", "1", "--out", "tuned"]]
    for words in commands:
        main([*words, "--workers", "0"])
        table = open_study(Path(words[-1]))
        table.finish(Result(table.missing()[0], "failed", error="no"))
        capsys.readouterr()
        with table.driving():
            for each in (words, [*words, "--workers", "0"], ["study", "run", words[-1]]):
                assert main(each) == 2
                assert "study.db must be run by one process, but another one is running it" in capsys.readouterr().err
            assert main(["study", "pack", words[-1], "pack"]) == 2
            assert main(["study", "merge", words[-1]]) == 2
            assert main(["study", "export", words[-1]]) == 0
        assert table.counts()["failed"] == 1, "it is not tried again"
        assert not Path("pack").exists()


def test_processes_that_cannot_begin_are_said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setattr(sys, "executable", shutil.which("false"))
    assert main(["tournament", write(seeds=[0]), *OUT, "--workers", "2"]) == 1
    assert "3 processes ended before they could run a trial: see study/worker-" in capsys.readouterr().err
    assert open_study(Path("study")).counts()["missing"] == 2
