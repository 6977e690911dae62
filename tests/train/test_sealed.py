"""The test set is sealed: nothing yields it without a record, and the record comes first."""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import json
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
import torch
import yaml

from likewise.train import Data, Run, Sealed, TrainConfig, train
from tests.train.small import linear, square, vectors

SECRET = "the secret images"


class Secret(list):
    """A test set that knows whether it was made."""

    made = 0

    def __init__(self) -> None:
        Secret.made += 1
        super().__init__([SECRET])


@pytest.fixture
def sealed() -> Sealed[Secret]:
    Secret.made = 0
    return Sealed(Secret, "five birds")


@pytest.fixture
def run(tmp_path) -> Run:
    return Run.create(tmp_path / "run", {})


ATTEMPTS = {
    "iterate": list,
    "next": next,
    "unpack": lambda it: [*it],
    "index": lambda it: it[0],
    "slice": lambda it: it[:],
    "length": len,
    "contains": lambda it: SECRET in it,
    "reversed": lambda it: list(reversed(it)),
    "labels": lambda it: it.labels,
    "make": lambda it: it.make,
    "_make": lambda it: it._make,
    "__wrapped__": lambda it: it.__wrapped__,
    "vars": vars,
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": pickle.dumps,
    "pickle 0": lambda it: pickle.dumps(it, protocol=0),
    "reduce": lambda it: it.__reduce__(),
    "torch.save": lambda it: torch.save(it, os.devnull),
    "call": lambda it: it(),
    "context": lambda it: it.__enter__(),
    "add": lambda it: it + it,
    "asdict": lambda it: dataclasses.asdict(Data([], test=it)),
    "astuple": lambda it: dataclasses.astuple(Data([], test=it)),
    "loader": lambda it: list(torch.utils.data.DataLoader(it)),
    "open without a run": lambda it: it.open(None, "curious"),
    "open without a reason": lambda it: it.open(),
}


@pytest.mark.parametrize("attempt", ATTEMPTS.values(), ids=ATTEMPTS.keys())
def test_ways_that_fail(sealed, attempt):
    with pytest.raises((TypeError, AttributeError)):
        attempt(sealed)
    assert Secret.made == 0


WORDS = {
    "repr": repr,
    "str": str,
    "format": "{}".format,
    "json": lambda it: json.dumps(it, default=str),
    "data": lambda it: repr(Data([], test=it)),
    "replace": lambda it: repr(dataclasses.replace(Data([], test=it), classes=["a"])),
    "fields": lambda it: str(
        {field.name: getattr(Data([], test=it), field.name) for field in dataclasses.fields(Data)}
    ),
    "array": lambda it: repr(np.asarray(it, dtype=object)),
    "dir": lambda it: str([name for name in dir(it) if not name.startswith("_")]),
}


@pytest.mark.parametrize("words", WORDS.values(), ids=WORDS.keys())
def test_ways_that_give_words_alone(sealed, words):
    said = words(sealed)
    assert "secret" not in said
    assert Secret.made == 0


def test_nothing_else_is_public(sealed):
    assert [name for name in dir(sealed) if not name.startswith("_")] == ["description", "open"]
    assert sealed.description == "five birds"


def test_asking_is_allowed(sealed):
    """hasattr and getattr with a default must not raise: describing, showing and debugging tools ask everything."""
    assert not hasattr(sealed, "images")
    assert getattr(sealed, "dataset", None) is None


def test_what_it_is_called_cannot_be_changed(sealed):
    with pytest.raises(AttributeError):
        sealed.description = "six birds"


def test_it_must_not_be_there_yet():
    with pytest.raises(TypeError, match=r"^make must be a function that creates the test set"):
        Sealed([1, 2, 3], "three numbers")


def test_opening(sealed, run):
    (run.folder / "best.safetensors").write_bytes(b"weights")
    run.log("train", step=12, epoch=1.5)
    assert sealed.open(run, "the final number") == [SECRET]
    [line] = run.openings()
    assert line["why"] == "the final number"
    assert (line["step"], line["finished"], line["model"]) == (12, False, "best")
    assert line["sha256"] == hashlib.sha256(b"weights").hexdigest()
    assert line["opened"].endswith("+00:00")
    run.log("end", step=13, epoch=2.0)
    sealed.open(run, "again", model="model")
    assert [(each["step"], each["finished"], each["sha256"]) for each in run.openings()][1] == (13, True, None)
    assert Secret.made == 2


def test_opening_for_a_model_elsewhere(sealed, run, tmp_path):
    (tmp_path / "other.safetensors").write_bytes(b"weights")
    sealed.open(run, "another model", model=str(tmp_path / "other.safetensors"))
    assert run.openings()[0]["sha256"] == hashlib.sha256(b"weights").hexdigest()


def test_the_record_comes_first(run):
    seen = []

    def make() -> str:
        seen.extend(json.loads(line) for line in (run.folder / "openings.jsonl").read_text().splitlines())
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match=r"the disk is gone"):
        Sealed(make, "birds").open(run, "try")
    assert [line["why"] for line in seen] == ["try"]
    assert [line["why"] for line in run.openings()] == ["try"]


def test_what_cannot_be_recorded_is_not_opened(sealed, run):
    (run.folder / "openings.jsonl").mkdir()
    with pytest.raises(OSError, match=r"openings.jsonl"):
        sealed.open(run, "try")
    assert Secret.made == 0


def test_a_run_that_is_none(sealed):
    class Fake:
        def record_opening(self, why: str, model: str) -> None:
            """Write nothing."""

    with pytest.raises(TypeError, match=r"^run must be the Run"):
        sealed.open(Fake(), "curious")
    assert Secret.made == 0


def test_a_run_that_writes_nothing(sealed, run):
    class Silent(Run):
        def record_opening(self, why: str, model: str) -> None:
            """Write nothing."""

    sealed.open(Silent(run.folder), "curious")
    assert len(run.openings()) == 1


@pytest.mark.parametrize("why", ["", "  ", None])
def test_a_reason_is_given(sealed, run, why):
    with pytest.raises((ValueError, TypeError), match=r"^why must be"):
        sealed.open(run, why)
    assert Secret.made == 0


def test_training_leaves_it_alone(sealed, tmp_path):
    run = train(
        linear(),
        square,
        Data(vectors(), vectors(), test=sealed),
        settings=TrainConfig(epochs=1),
        folder=tmp_path / "run",
        device="cpu",
    )
    assert Secret.made == 0
    assert run.openings() == []
    assert not (run.folder / "openings.jsonl").exists()
    assert yaml.safe_load((run.folder / "run.yaml").read_text())["data"]["test"] == {"description": "five birds"}
    assert all("secret" not in file.read_bytes().decode("latin-1") for file in run.folder.iterdir())


PROGRAM = """
import os, signal, sys
from likewise.train import Run, Sealed
Sealed(lambda: os.kill(os.getpid(), signal.SIGKILL), "birds").open(Run(sys.argv[1]), "killed")
"""


@pytest.mark.slow
def test_a_kill_leaves_the_record(run):
    command = [sys.executable, "-c", PROGRAM, str(run.folder)]
    assert subprocess.run(command, check=False).returncode == -9
    assert [line["why"] for line in run.openings()] == ["killed"]
