"""What schema 1 wrote is read: a file, a run, a model and a study; an index is refused in one sentence."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from safetensors.torch import save_file

from likewise.app.configuration import check, parse_request
from likewise.app.layers import read_request
from likewise.app.study_io import read_study
from likewise.app.study_table import begin_study, open_study
from likewise.cli import main
from likewise.losses import ProxyGMLLoss
from likewise.protocols.study import Study
from likewise.protocols.trial import Result, Trial
from likewise.report.record import read_run
from likewise.schema import SCHEMA, omit_implied
from likewise.search import Index
from likewise.train import Run
from likewise.trunks import Embedder, read_card
from tests.cli.conftest import TRAIN

CONFIG = """
data: {class_path: likewise.data.ImageFolder, init_args: {root: photos, name: null, extensions: [.avif, .bmp, .gif, .jfif,
      .jpeg, .jpg, .pgm, .png, .ppm, .tif, .tiff, .webp]}}
split: {validation: null, test: 0.2, seed: 0, folds: null, fold: 0, contiguous: false}
images: glyphs
model: {trunk: convnet, weights: null, dim: 8, pool: avg, head: linear, normalize: true, freeze_bn: false, layer_norm: false,
    in_channels: null}
loss: {class_path: likewise.losses.ProxyGMLLoss, init_args: {centers: 3, neighbours: 4, weight: 0.3, reduction: mean,
      backend: streamed, sampled: null, corrected: false, sparse: false, generator: null}}
memory: null
sampler: {class_path: likewise.data.PerClassSampler, init_args: {classes: 4, per_class: 3, steps: null}}
optimizer: {name: AdamW, lr: 0.003, lrs: {}, weight_decay: 0.0001, momentum: 0.0, betas: [0.9, 0.999], alpha: 0.99, eps: 1.0e-08}
schedule: {name: cosine, warmup: 0.0, step: 10, gamma: 0.1, floor: 0.0}
plan: {epochs: 2, validate_every: 1, metric: MAP@R, patience: null, trunk_warmup: 0, accumulate: 1, chunk: null, clip: null,
    ema: null, precision: 'no', compile: false, channels_last: null, graph: null, checkpoint_minutes: 5.0, log_every: 1,
    trackers: [], on_collapse: stop}
lens: {every: 0, beside: null}
seed: 0
out: null
cache: null
hold: memory
"""
"""What ``likewise train --print_config`` printed under schema 1."""

FLAGS = ("--loss", "ProxyGMLLoss", "--loss.neighbors", "4", "--loss.backend", "chunked")
"""What the same training is asked for with now."""

CARD = """{"format": 1, "trunk": {"name": "convnet", "in_channels": 1}, "dim": 8, "pool": "avg", "head": "linear",
"normalize": true, "freeze_bn": false, "layer_norm": false, "preprocessing": {"mean": [0.5], "std": [0.5], "white": 1.0,
"order": "L", "size": 32}, "classes": ["$", "+"], "metrics": {"R@1": 0.25, "MAP@R": 0.125}, "torch": "2.13.0+cpu"}"""

STUDY = """
name: small
what: ''
base:
  data: {class_path: ImageFolder, init_args: {root: photos}}
  images: glyphs
  model: {trunk: convnet, dim: 8, weights: null, freeze_bn: false}
  sampler: {class_path: PerClassSampler, init_args: {classes: 4, per_class: 3}}
  optimizer: {lr: 0.003}
  plan: {epochs: 2, log_every: 1}
  hold: memory
methods:
  gml: {loss: {class_path: ProxyGMLLoss, init_args: {backend: streamed}}}
vary: {loss.neighbours: [4, 8]}
seeds: [0]
protocol: own-validation
metric: MAP@R
"""


def old() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(CONFIG)
    return found


def make_older(run: Path) -> None:
    """Write a run's description as schema 1 did."""
    said = yaml.safe_load((run / "run.yaml").read_text())
    assert said.pop("schema") == said["config"].pop("schema") == SCHEMA
    assert said["config"].pop("cache_on") == "ram"
    said["config"] = omit_implied(said["config"])
    said["plan"] = said.pop("train")
    said["config"] |= {"plan": said["config"].pop("train"), "images": said["config"].pop("transform")}
    said["config"]["lens"] = {"every": 0, "beside": said["config"]["lens"].pop("compare_with")}
    assert {**said["config"], "out": None, "loss": None, "hold": "memory"} == {**old(), "loss": None}
    said["config"] |= {"loss": old()["loss"], "hold": "memory"}
    (run / "run.yaml").write_text(yaml.safe_dump(said, sort_keys=False))


def now(*words: str) -> dict[str, Any]:
    return parse_request(read_request([*TRAIN[1:], *FLAGS, *words]))


# ---- files


def test_a_configuration_means_what_it_meant(here: Path):
    assert check(old()) == now()
    (here / "old.yaml").write_text(CONFIG)
    assert parse_request(read_request(["--config", "old.yaml"])) == now()
    assert parse_request(read_request(["--config", "old.yaml", "--loss.neighbors", "5"])) == now(
        "--loss.neighbors", "5"
    )


def test_flags_have_the_present_names_alone(capsys: pytest.CaptureFixture[str]):
    assert main([*TRAIN, "--loss", "ProxyGMLLoss", "--loss.neighbours", "4"]) == 2
    assert "neighbors" in capsys.readouterr().err


@pytest.mark.parametrize("command", [("train", "--config", "new.yaml"), ("tournament", "new.yaml")])
def test_a_file_of_a_later_schema_is_refused(command: tuple[str, ...], here: Path, capsys: pytest.CaptureFixture[str]):
    (here / "new.yaml").write_text("schema: 3\n" + (STUDY if command[0] == "tournament" else CONFIG))
    assert main(list(command)) == 2
    told = "new.yaml: schema must be a whole number from 1 to 2, but it is 3; a newer likewise may read it"
    assert told in " ".join(capsys.readouterr().err.split())


# ---- a run


def numbers(run: Path) -> list[Any]:
    clock = ("seconds", "images_per_s")
    return [{name: value for name, value in line.items() if name not in clock} for line in Run(run).metrics()]


def test_a_run_goes_on_and_is_read(here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Stopped in the middle, taken for one of schema 1: it ends with the numbers of one that was never stopped."""
    assert main([*TRAIN, *FLAGS, "--out", "whole"]) == 0
    forward, calls = ProxyGMLLoss.forward, []

    def interrupting(self: ProxyGMLLoss, *given: Any, **named: Any) -> Any:
        calls.append(1)
        if len(calls) == 3:
            signal.raise_signal(signal.SIGINT)
        return forward(self, *given, **named)

    with monkeypatch.context() as patch:
        patch.setattr(ProxyGMLLoss, "forward", interrupting)
        assert main([*TRAIN, *FLAGS, "--out", "run"]) == 130
    make_older(here / "run")
    assert main(["train", "--resume", "run"]) == 0
    assert numbers(here / "run") == numbers(here / "whole")

    description = Run(here / "run").description
    assert omit_implied(description["config"]) == omit_implied(now("--out", "run"))
    assert read_run(here / "run").description == description
    capsys.readouterr()
    assert main(["evaluate", "run"]) == 0
    assert main(["leaderboard", "run", "whole", "--metric", "val MAP@R", "--by", "run"]) == 0


def test_a_run_of_a_later_schema_is_refused(run: Path, capsys: pytest.CaptureFixture[str]):
    text = (run / "run.yaml").read_text()
    (run / "run.yaml").write_text(text.replace("schema: 2", "schema: 3", 1))
    for command in (["evaluate", "run"], ["train", "--resume", "run"], ["leaderboard", "run"]):
        assert main(command) == 2
        assert "run/run.yaml: schema must be a whole number from 1 to 2" in " ".join(capsys.readouterr().err.split())
    assert "run.yaml is shown unchanged: schema must be" in read_run(run).gaps[0]


# ---- a model and an index


def write_model(file: Path) -> Embedder:
    torch.manual_seed(0)
    embedder = Embedder("convnet", 8)
    card = " ".join(CARD.split("\n"))
    save_file(dict(embedder.state_dict()), file, metadata={"format": "pt", "likewise": card})
    return embedder.eval()


def test_a_model_is_read(here: Path):
    written = write_model(here / "old.safetensors")
    card = read_card(here / "old.safetensors")
    assert (card.dim, card.classes, card.metrics) == (8, ("$", "+"), {"R@1": 0.25, "MAP@R": 0.125})
    images = torch.rand(2, 1, 32, 32)
    with torch.no_grad():
        assert torch.equal(Embedder.load(here / "old.safetensors").eval()(images), written(images))


def test_an_index_of_an_older_format_is_refused(here: Path):
    (here / "old.index").mkdir()
    (here / "old.index" / "manifest.json").write_text("{}")
    with pytest.raises(
        ValueError, match=r"it has format 1, which is no longer supported: create it again with `likewise index`"
    ):
        Index.open(here / "old.index")


# ---- a study


@pytest.fixture
def trials() -> list[Trial]:
    """The two runs of the study, as schema 1 described them."""
    made = []
    for neighbors in (4, 8):
        config = old()
        config["loss"]["init_args"]["neighbours"] = neighbors
        labels = {"data": "ImageFolder", "trunk": "convnet", "dim": 8, "neighbours": neighbors}
        made.append(Trial("gml", config, labels=labels))
    return made


def test_a_study_goes_on_where_it_was(
    here: Path, trials: list[Trial], serial: None, capsys: pytest.CaptureFixture[str]
):
    """One of two runs was done: the other one is trained now, and neither is planned again."""
    measured = dict.fromkeys(("R@1", "R@2", "R@4", "R@8", "RP", "MAP@R", "MRR", "mAP"), 0.5)
    done = Result(trials[0], val=measured, test=measured, run="runs/elsewhere", openings=1)
    (here / "study").mkdir()
    (here / "study" / "study.yaml").write_text(STUDY)
    table = Study(here / "study" / "study.db")
    table.add(trials)
    table.finish(done)
    assert main(["tournament", "study/study.yaml", "--out", "study", "--workers", "0"]) == 0
    assert [trial.key for trial in open_study(here / "study").trials()] == [trial.key for trial in trials]
    assert main(["tournament", "study/study.yaml", "--out", "study"]) == 0
    first, second = open_study(here / "study").results()
    assert (first.test["MAP@R"], second.status, second.run) == (0.5, "done", f"runs/{trials[1].key}")
    described = Run(here / "study" / second.run).description["config"]
    assert omit_implied(described) == omit_implied(now("--loss.neighbors", "8"))
    capsys.readouterr()
    assert main(["leaderboard", "study", "--by", "neighbors"]) == 0
    assert "not recorded: search budget" in capsys.readouterr().out


def test_the_trials_of_a_study_are_those_of_before(here: Path, trials: list[Trial]):
    (here / "study.yaml").write_text(STUDY)
    planned = read_study(here / "study.yaml").trials()
    assert [trial.key for trial in planned] == [trial.upgrade().key for trial in trials]
    assert [trial.labels["neighbors"] for trial in planned] == [4, 8]


def test_a_study_that_is_begun_again_is_the_same(here: Path):
    (here / "old.yaml").write_text(STUDY)
    study = read_study(here / "old.yaml")
    for _ in range(2):
        with begin_study(here / "study", study) as table:
            assert table.counts()["missing"] == 2
    assert yaml.safe_load((here / "study" / "study.yaml").read_text())["schema"] == SCHEMA
    assert read_study(here / "study" / "study.yaml").to_dict() == study.to_dict()


def test_a_configuration_inside_a_study_may_say_its_own_schema(here: Path):
    said = yaml.safe_load(STUDY) | {"vary": {}}
    said["methods"] = {"gml": {"schema": SCHEMA, "loss": now()["loss"]}}
    (here / "study.yaml").write_text(yaml.safe_dump(said))
    [trial] = read_study(here / "study.yaml").trials()
    assert trial.config["loss"] == now()["loss"]


def test_a_search_goes_on_where_it_was(here: Path, make_search: Callable[[], Any]):
    search = make_search()
    study = Study(here / "study.db")
    config = old()
    config["loss"]["init_args"]["neighbours"] = 9
    trial = Trial("gml", config, 0, 0, "search", {"loss.neighbours": 9})
    study.add([trial])
    study.finish(Result(trial, val={"MAP@R": 0.5}))
    from likewise.protocols.search import history

    assert [(dict(one.point), one.value) for one in history(search, study)] == [({"loss.neighbors": 9}, 0.5)]


@pytest.fixture
def make_search() -> Callable[[], Any]:
    from likewise.protocols.search import Search
    from likewise.protocols.space import Range

    return lambda: Search("gml", now(), {"loss.neighbors": Range(1, 20, whole=True)})
