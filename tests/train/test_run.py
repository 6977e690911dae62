"""The records of a run: whole lines, whatever is in them, whoever was killed while writing."""

from __future__ import annotations

import json
import subprocess
import sys
from enum import Enum
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml

from likewise.train import Run
from likewise.train.run import command_line, describe_environment, plain


@pytest.fixture
def run(tmp_path) -> Run:
    return Run.create(tmp_path / "run", {"seed": 3})


def test_a_folder_without_a_run(tmp_path):
    with pytest.raises(FileNotFoundError, match=rf"^folder must contain a run, but {tmp_path} has no run.yaml$"):
        Run(tmp_path)


def test_a_folder_holds_one_run(run):
    with pytest.raises(FileExistsError, match=r"^folder must not contain a run, but .* does: resume it, or choose"):
        Run.create(run.folder, {"seed": 4})
    assert run.description == {"seed": 3}


def test_lines_come_back(run):
    run.log("train", step=1, epoch=0.5, loss=0.1 + 0.2)
    run.log("val", step=2, epoch=1.0, **{"MAP@R": np.float32(0.5), "queries": np.int64(7), "best": np.bool_(True)})
    run.log("end", step=2, epoch=1.0, reason="finished", message="schön — ☃ 𝕏")
    first, second, third = run.metrics()
    assert first == {"kind": "train", "step": 1, "epoch": 0.5, "loss": 0.1 + 0.2}
    assert second["MAP@R"] == 0.5
    assert second["best"] is True
    assert third["message"] == "schön — ☃ 𝕏"
    assert run.metrics("val") == [second]
    assert run.finished
    assert not Run.create(run.folder / "another", {}).finished


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x85", "\x1c", "\n", "\r"])
def test_separators_inside_a_text(run, separator):
    run.record_opening(f"first{separator}second", "best")
    assert [line["why"] for line in run.openings()] == [f"first{separator}second"]


@pytest.mark.parametrize(
    "half", [b'{"kind": "tr', b'{"kind": "train", "message": "sch\xc3', b"\x00\x00\x00", b"\xff\xfe"]
)
def test_half_a_line(run, half):
    run.log("train", step=1, epoch=0.1)
    with (run.folder / "metrics.jsonl").open("ab") as file:
        file.write(half)
    assert [line["step"] for line in run.metrics()] == [1]
    run.log("train", step=2, epoch=0.2)
    assert [line["step"] for line in run.metrics()] == [1, 2]
    assert [line["step"] for line in Run(run.folder).metrics("train")] == [1, 2]


def test_an_empty_line_is_none(run):
    (run.folder / "metrics.jsonl").write_text('\n{"kind": "end", "step": 1, "epoch": 1}\n\n')
    assert len(run.metrics()) == 1


def test_lines_are_json_for_everybody(run):
    run.log("val", step=1, epoch=1.0, a=float("nan"), b=float("inf"), c=np.float32("nan"))

    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is not JSON")

    json.loads((run.folder / "metrics.jsonl").read_text(), parse_constant=refuse)


def test_cutting_back(run):
    run.log("train", step=1, epoch=0.1)
    size, _ = run.sync_metrics()
    run.log("train", step=2, epoch=0.2)
    run.truncate_metrics(size)
    assert [line["step"] for line in run.metrics()] == [1]
    run.truncate_metrics(size + 100)
    assert run.sync_metrics()[0] == size


def test_an_opening_whose_evaluation_was_killed_is_counted_once(run):
    for _ in range(3):  # the evaluation dies each time before close_opening
        run.record_opening("final", "best", evaluating=True)
    assert len(run.openings()) == 1
    run.record_opening("another reason", "best", evaluating=True)
    run.close_opening()
    run.record_opening("another reason", "best", evaluating=True)
    run.record_opening("final", "best")  # in Python, without an evaluation
    assert [line["why"] for line in run.openings()] == ["final", "another reason", "another reason", "final"]


@pytest.mark.parametrize("content", [b"", b"seed: [1, 2", b"\xff\xfe\x00", b"just words"])
def test_a_damaged_description_is_one_sentence(run, content):
    (run.folder / "run.yaml").write_bytes(content)
    with pytest.raises(ValueError, match=r"run.yaml must be the description of a run, but it is [^\n]*$"):
        _ = run.description


class Color(str, Enum):  # noqa: UP042
    RED = "red"


def test_plain():
    value = {
        "numpy": [np.float32(0.5), np.int64(2), np.bool_(False), np.str_("x")],
        "torch": torch.tensor(3),
        ("a", 1): {Path("x")},
        "none": None,
        "device": torch.device("cpu"),
        "dtype": torch.float16,
    }
    assert plain(value) == {
        "numpy": [0.5, 2, False, "x"],
        "torch": 3,
        "('a', 1)": ["x"],
        "none": None,
        "device": "cpu",
        "dtype": "torch.float16",
    }


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.float64(0.5), 0.5),
        (np.str_("x"), "x"),
        (Color.RED, "red"),
        (np.arange(3), [0, 1, 2]),
        (torch.arange(3), [0, 1, 2]),
        (np.array(4), 4),
    ],
    ids=["float64", "str_", "enum", "array", "tensor", "scalar array"],
)
def test_a_description_of_other_peoples_numbers(tmp_path, value, expected):
    run = Run.create(tmp_path / "run", {"value": value})
    assert run.description == {"value": expected}
    assert type(run.description["value"]) is type(expected)


def test_a_description_round_trips(tmp_path):
    said = {
        "schema": 2,
        "created": "2025-01-01T00:00:00+00:00",
        "command": "likewise train --loss 'a b'",
        "config": {"on": "off", "yes": True, "number": "12", "empty": "", "text": "a: b\n- c\n", "float": "1e-3"},
        "numbers": [1e-4, 1e-05, 0.1 + 0.2, 1e300, 3, -0.0],
        "names": ["ä", "日本", "\u2028", "tab\t", "null", "~"],
    }
    run = Run.create(tmp_path / "run", said)
    assert run.description == said
    assert yaml.safe_load((run.folder / "run.yaml").read_text(encoding="utf-8")) == said
    assert list(run.description) == list(said)


def test_a_name_that_is_no_text(run, monkeypatch):
    """A file name of other bytes than UTF-8 comes as surrogates; it is no reason to lose a record."""
    monkeypatch.setattr(sys, "argv", ["likewise", "evaluate", "caf\udce9"])
    run.record_opening("the final number", "best")
    assert len(run.openings()) == 1


def test_the_command_can_be_typed_again(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["/usr/bin/likewise", "train", "--out", "my runs/1"])
    assert command_line() == "likewise train --out 'my runs/1'"


def test_surroundings():
    around = describe_environment()
    assert around["versions"]["torch"] == torch.__version__
    assert set(around["hardware"]) >= {"cpu", "cores", "device"}


def test_the_hardware_is_what_is_used(monkeypatch):
    """A training that stays on the CPU did not run on the GPU that is there, too."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda _=None: "a card")
    used, there = (
        describe_environment(device)["hardware"] for device in (torch.device("cpu"), torch.device("cuda", 1))
    )
    assert (used["device"], used["devices"]) == ("cpu", 0)
    assert (there["device"], there["devices"]) == ("a card", 2)
    assert describe_environment()["hardware"]["device"] == "a card"


def test_evaluations(run):
    run.record_evaluation("val", {"R@1": np.float64(0.25)}, model="best")
    [line] = run.evaluations()
    assert (line["part"], line["opening"], line["metrics"]) == ("val", None, {"R@1": 0.25})
    with pytest.raises(
        ValueError, match=r"^part must be 'val' for a run whose test set was never opened, but it is 'test'$"
    ):
        run.record_evaluation("test", {"R@1": 0.5}, model="best")
    assert len(run.evaluations()) == 1
    run.record_opening("once", "best")
    run.record_opening("twice", "best")
    run.record_evaluation("test", {"R@1": 0.5}, model="best")
    assert run.evaluations()[-1]["opening"] == 2


@pytest.mark.parametrize("part", ["Test", "tset", "", None])
def test_a_part_is_test_or_val(run, part):
    with pytest.raises(ValueError, match=r"^part must be one of"):
        run.record_evaluation(part, {"R@1": 0.5}, model="best")


def test_a_run_is_trained_by_one_process(run):
    program = (
        "import sys; from filelock import FileLock\n"
        "with FileLock(sys.argv[1]): print('held', flush=True); sys.stdin.readline()"
    )
    command = [sys.executable, "-c", program, str(run.folder / ".lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout.readline() == b"held\n"
        with (
            pytest.raises(RuntimeError, match=r"must be used by one training process, but another one is running$"),
            run.lock(),
        ):
            pass
        other.kill()
    with run.lock():  # the system let go of a dead process's lock
        pass
