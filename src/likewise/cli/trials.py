"""One trial of a study: from its configuration to a result, on whatever machine; nothing here needs a parser."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml

from likewise.app import Machine, Mistake, Opening, make_pieces, model_file, parts_of, sentence, this_machine
from likewise.data import aside
from likewise.protocols import TEST_SET_FILE, Result, Trial
from likewise.train import Collapsed, Embedded, NotFinite, Run, evaluate

METRICS = ("R@1", "R@2", "R@4", "R@8", "RP", "MAP@R", "MRR", "mAP")
"""What the table of a study has of every part."""


def run_trial(trial: Trial, go_on: Callable[[Mapping[str, Any]], bool], *, folder: Path) -> Result:
    """Train, measure, and say what came out; what was begun before is gone on with.

    Args:
        trial: what to train.
        go_on: is told every validation, and says whether to go on.
        folder: of the study; runs go to ``runs/KEY`` in it.

    Examples:
        >>> run_trial(Trial("none", {"optimizer": {"lr": -1}}), lambda _: True, folder=Path("/tmp")).error
        '--optimizer: lr must be a number > 0, but it is -1'
    """
    machine, place = this_machine(), folder / "runs" / trial.key
    about: dict[str, Any] = {"run": f"runs/{trial.key}", "machine": _words(machine), "command": _command(place)}
    config = trial.upgrade().config
    try:
        pieces = make_pieces(config, machine)
        place.mkdir(parents=True, exist_ok=True)
        with aside(place / "config.yaml") as part:
            part.write_text(yaml.safe_dump(dict(config), sort_keys=False, allow_unicode=True), encoding="utf-8")
        begun = (place / "run.yaml").exists()
        run = pieces.train(place, config, machine, resume=begun, go_on=go_on)
    except (Mistake, NotFinite, Collapsed, KeyError) as error:  # another try would end the same way
        return Result(trial, "failed", error=sentence(error), **about)
    [*_, end] = run.metrics("end")
    if end["reason"] in ("not finite", "collapsed"):  # found as it was left by an earlier process
        return Result(trial, "failed", error=end["message"], seconds=end["seconds"], **about)
    try:
        test = _on_test(run, trial, machine) if trial.stage == "final" else {}
    except Mistake as error:  # such as nothing that was sealed
        return Result(trial, "failed", error=sentence(error), seconds=end["seconds"], **about)
    return Result(
        trial,
        "pruned" if end["reason"] == "stopped" else "done",
        val=_chosen(run),
        test=test,
        seconds=end["seconds"],
        openings=len(run.openings()),
        tuned_on_test=pieces.data.val is None,
        **about,
    )


def _chosen(run: Run) -> dict[str, float]:
    """What the table has of the validation of the model that was kept."""
    return {} if run.chosen is None else {name: run.chosen[name] for name in METRICS}


def _on_test(run: Run, trial: Trial, machine: Machine) -> dict[str, float]:
    """The test set, opened once; a process that died after that has left its numbers."""
    for line in run.evaluations():
        if line["part"] == "test":
            return {name: line["metrics"][name] for name in METRICS}
    config = dict(trial.upgrade().config)
    *_, part = parts_of(run, config, machine, test=Opening(f"the final trial {trial.key} of a study"))
    found = evaluate(Embedded(part.embeddings, part.labels), part.is_query)
    if config["split"].get("folds"):
        is_query = np.zeros(0, bool) if part.is_query is None else part.is_query.numpy()
        with aside(run.folder / TEST_SET_FILE) as file, file.open("wb") as opened:
            np.savez(opened, embeddings=part.embeddings.numpy(), labels=part.labels.numpy(), is_query=is_query)
    measured = {name: found[name] for name in METRICS}
    run.record_evaluation("test", measured, model=model_file(run, None).stem)
    return measured


def _command(place: Path) -> str:
    return shlex.join(["likewise", "train", "--config", str(place / "config.yaml"), "--out", f"{place}-again"])


def _words(machine: Machine) -> str:
    return torch.cuda.get_device_name(machine.device) if machine.device.type == "cuda" else "cpu"
