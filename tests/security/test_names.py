"""A configuration is data: opening one of somebody else's executes nothing, whatever it names and wherever it lies."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from likewise import app
from likewise.app.execute import main as execute
from likewise.app.models import resolve_model
from likewise.app.training import evaluation_config_of
from likewise.protocols import Study, Trial, pack_study
from likewise.train import Run
from likewise.trunks import Embedder
from tests.security.conftest import Answers

POPEN = {"class_path": "subprocess.Popen", "init_args": {"args": ["touch", "PWNED"]}}
TRANSFORMER = {"class_path": "torch.nn.Transformer", "init_args": {"custom_encoder": POPEN}}
HOSTILE: dict[str, dict[str, Any]] = {
    "nested": {"loss": TRANSFORMER},
    "loss": {"loss": {"class_path": "evil.Loss"}},
    "loss by name": {"loss": "evil.Loss"},
    "function": {"loss": {"class_path": "evil.call"}},
    "of the standard library": {"loss": POPEN},
    "miner": {"loss": {"class_path": "TripletLoss", "init_args": {"miner": "evil.Miner"}}},
    "inner loss": {"loss": {"class_path": "Matryoshka", "init_args": {"loss": "evil.Loss", "dims": [4]}}},
    "similarity": {"loss": {"class_path": "TripletLoss", "init_args": {"similarity": {"class_path": "evil.Loss"}}}},
    "similarity as text": {"loss": {"class_path": "TripletLoss", "init_args": {"similarity": "evil.Loss"}}},
    "reduction as text": {"loss": {"class_path": "TripletLoss", "init_args": {"reduction": "evil.call"}}},
    "text in a text": {"loss": {"class_path": "TripletLoss", "init_args": {"similarity": "{class_path: evil.Loss}"}}},
    "escapes in a text": {
        "loss": {"class_path": "TripletLoss", "init_args": {"similarity": r'{"class\u005fpath": "evil.Loss"}'}}
    },
    "text in a list in a text": {
        "loss": {"class_path": "TripletLoss", "init_args": {"similarity": r'- "{\"class\\u005fpath\": \"evil.Loss\"}"'}}
    },
    "text with a tag": {"loss": {"class_path": "TripletLoss", "init_args": {"similarity": "!!str evil.Loss"}}},
    "text with a comment": {"loss": {"class_path": "TripletLoss", "init_args": {"similarity": "evil.Loss # ours"}}},
    "file": {"loss": {"class_path": "TripletLoss", "init_args": {"similarity": "./similarity.yaml"}}},
    "file without an ending": {"loss": {"class_path": "TripletLoss", "init_args": {"reduction": "mean"}}},
    "file in a list": {"loss": {"class_path": "TripletLoss", "init_args": {"similarity": ["./similarity.yaml"]}}},
    "list": {"loss": {"class_path": "TripletLoss", "init_args": {"similarity": [{"class_path": "evil.Loss"}]}}},
    "keyword arguments": {"loss": {"class_path": "TripletLoss", "dict_kwargs": {"a": {"class_path": "evil.Loss"}}}},
    "sampler": {"sampler": {"class_path": "evil.Draws"}},
    "data": {"data": {"class_path": "evil.Data", "init_args": {"root": "."}}},
    "second loss": {"lens": {"every": 1, "compare_with": "evil.Loss"}},
    "hidden module": {"loss": {"class_path": "likewise.losses.base.evil.Loss"}},
    "not listed": {"loss": {"class_path": "likewise.cli.app.main"}},
    "permission": {"allow": ["evil"], "loss": "evil.Loss"},
}


def recipe(name: str) -> dict[str, Any]:
    return {"data": "Glyphs", "loss": "CircleLoss", **HOSTILE[name]}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_recipe_and_its_run(name: str, here: Path, answer: Answers):
    """Resuming names what it would import and the exact command; what the run recorded is no permission."""
    (here / "recipe.yaml").write_text(yaml.safe_dump(recipe(name)))
    others = (("train", "--print-config"), ("tune",), ("repeat",)) if name in ("nested", "file", "data") else ()
    for words in (("train",), *others):
        code, err = answer(*words, "--config", "recipe.yaml")
        assert code == 2, words
        assert err.startswith("likewise: ")
        assert "Traceback" not in err
    if name == "permission":
        return
    Run.create("run", {"config": recipe(name), "allowed": ["evil", "subprocess", "torch"], "data": {"test": None}})
    code, err = answer("train", "--resume", "run")
    assert code == 2
    if "if you trust it" in err:
        assert err.splitlines()[-1].startswith("if you trust it: likewise train --resume run --allow ")


@pytest.mark.parametrize(
    "text",
    [
        "loss: &a [*a]",
        "loss: " + "[" * 700,
        "loss: 2021-99-99",
        "a: &a [0, 0]\n"
        + "".join(f"{b}: &{b} [*{a}, *{a}]\n" for a, b in itertools.pairwise("abcdefghijklmnopqrstuv")),
    ],
    ids=["itself", "deep", "no date", "doubles"],
)
def test_yaml_without_measure(text: str, here: Path, answer: Answers):
    Run.create("run", {})
    for file in ("recipe.yaml", "run/run.yaml", "study.yaml"):
        (here / file).write_text(text)
    for words in (("train", "--config", "recipe.yaml"), ("train", "--resume", "run"), ("tournament", "study.yaml")):
        assert answer(*words)[0] == 2


def test_a_run_is_measured_without_its_loss(here: Path, answer: Answers):
    for name in HOSTILE:
        folder = f"run {name}"
        run = Run.create(folder, {"config": recipe(name)})
        if name == "data":
            Embedder("convnet", 4).save(Path(folder, "model.safetensors"))
            for command in ("evaluate", "report"):
                code, err = answer(command, folder)
                assert code == 2
                assert "data names evil.Data" in err
        else:
            assert evaluation_config_of(run)["data"]["class_path"] == "likewise.data.Glyphs"
    assert not (here / "EXECUTED").exists()


def test_the_model_of_a_hostile_run(here: Path, answer: Answers):
    Run.create("run", {"config": recipe("nested")})
    Embedder("convnet", 4).save(Path("run", "model.safetensors"))
    for words in (("embed", "run", "nowhere"), ("index", "run", "nowhere", "-o", "a.index"), ("doctor", "run")):
        assert answer(*words)[0] in (0, 2)
    assert resolve_model("run").facts["loss"] == "torch.nn.Transformer"  # a name, and no class


@pytest.mark.parametrize("name", ["nested", "sampler"])
def test_a_study(name: str, here: Path, answer: Answers, capsys: pytest.CaptureFixture[str]):
    (here / "study.yaml").write_text(yaml.safe_dump({"name": "a", "methods": {"a": recipe(name)}}))
    assert answer("tournament", "study.yaml")[0] == 2
    table = Study(here / "planned" / "study.db")
    table.add([Trial("a", recipe(name))])
    (here / "planned" / "study.yaml").write_text(yaml.safe_dump({"name": "a", "methods": {"a": {}}}))
    code, err = answer("study", "run", "planned", "--workers", "1")
    assert code == 2
    assert "if you trust it: likewise study run planned --workers 1 --allow " in err
    pack_study(here / "planned", here / "pack")
    assert execute(["pack"]) == 2
    assert "which likewise does not list" in capsys.readouterr().err
    assert not (here / "EXECUTED").exists()


def test_what_is_allowed_is_of_the_right_kind(here: Path, monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(app.UserError, match=r"--loss.custom_encoder must be a Module, but it is subprocess.Popen"):
        app.configure(recipe("nested"), allow=("torch", "subprocess"))
    with pytest.raises(app.UserError, match=r"evil.call must be a class derived from torch.nn.Module"):
        app.configure(recipe("function"), allow=("evil",))
    assert (here / "EXECUTED").exists()  # now it was allowed
    assert app.configure(recipe("loss"), allow=("evil",))["loss"]["class_path"] == "evil.Loss"
    with pytest.raises(app.NotAllowed):
        app.train(app.configure(recipe("loss"), allow=("evil",)))  # every call is asked again
    sys.modules.pop("evil")
    sys.path.remove(os.getcwd())


def test_modules_of_the_current_folder_replace_none(here: Path):
    """``python -m`` puts the current folder first; a run's folder may hold a yaml.py."""
    for name in ("yaml", "torch", "jsonargparse", "PIL"):
        (here / f"{name}.py").write_text("open('EXECUTED', 'w').close()\n")
    (here / "run.yaml").write_text("config: 1\n")
    done = subprocess.run(
        [sys.executable, "-m", "likewise.cli", "train", "--resume", "."], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2, done.stderr
    assert "its run.yaml has no config" in done.stderr
    assert not (here / "EXECUTED").exists()
