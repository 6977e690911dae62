"""Trackers of Accelerate are told what the record is told."""

from __future__ import annotations

import struct
import time
from pathlib import Path

import pytest

from likewise.train import Data, TrainConfig, train
from tests.train.small import linear, square, vectors


def scalars(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """What is in TensorBoard's files: records of a length, a checksum, an event and a checksum."""
    from tensorboardX.proto.event_pb2 import Event

    found: dict[str, list[tuple[int, float]]] = {}
    for file in sorted(folder.rglob("events.out.tfevents.*")):
        content, place = file.read_bytes(), 0
        while place < len(content):
            (length,) = struct.unpack("<Q", content[place : place + 8])
            event = Event.FromString(content[place + 12 : place + 12 + length])
            place += 12 + length + 4
            for value in event.summary.value:
                found.setdefault(value.tag, []).append((event.step, value.simple_value))
    return found


def test_tensorboard(tmp_path):
    pytest.importorskip("tensorboardX")
    plan = TrainConfig(epochs=2, log_every=2, trackers=("tensorboard",))
    run = train(linear(), square, Data(vectors(), vectors()), settings=plan, folder=tmp_path / "run", device="cpu")
    found = scalars(run.folder)
    for kind, name in (("train", "loss"), ("train", "spread"), ("val", "MAP@R"), ("val", "R@1")):
        expected = [(line["step"], line[name]) for line in run.metrics(kind)]
        told = found[f"{kind}/{name}".replace("@", "_")]  # tensorboardX leaves no other character in a name
        assert [step for step, _ in told] == [step for step, _ in expected]
        assert [x for _, x in told] == pytest.approx([x for _, x in expected], rel=1e-6)
    assert run.finished
    assert [x for _, x in found["train/lr/model"]] == pytest.approx(
        [line["lr"]["model"] for line in run.metrics("train")]
    )


def test_a_second_try_leaves_no_trace(tmp_path):
    """A folder that is refused is not written to, by a tracker neither."""
    pytest.importorskip("tensorboardX")
    plan = TrainConfig(epochs=1, trackers=("tensorboard",))
    data = Data(vectors())
    run = train(linear(), square, data, settings=plan, folder=tmp_path / "run", device="cpu")
    before = sorted(run.folder.rglob("*"))
    time.sleep(1.1)  # a tracker's files are named by the second
    with pytest.raises(FileExistsError):
        train(linear(), square, data, settings=plan, folder=tmp_path / "run", device="cpu")
    assert sorted(run.folder.rglob("*")) == before


@pytest.mark.parametrize("installed", [[], ["tensorboard"]])
def test_a_tracker_that_is_not_installed(tmp_path, monkeypatch, installed):
    monkeypatch.setattr("likewise.train.requirements.get_available_trackers", lambda: installed)
    with pytest.raises(ValueError, match=r"must") as refused:
        train(
            linear(),
            square,
            Data(vectors()),
            settings=TrainConfig(trackers=("wandb",)),
            folder=tmp_path / "run",
            device="cpu",
        )
    said = str(refused.value)
    assert said.endswith("but it is 'wandb'")
    assert "of  " not in said
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", ["Tensorboard", "all", "", 3])
def test_a_tracker_that_there_is_not(tmp_path, name):
    with pytest.raises((ValueError, TypeError), match=r"^each of trackers must be one of"):
        train(
            linear(),
            square,
            Data(vectors()),
            settings=TrainConfig(trackers=(name,)),
            folder=tmp_path / "run",
            device="cpu",
        )
