"""One trial of a study: from its configuration to a result, on any machine; nothing here needs a parser."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml
from filelock import FileLock, Timeout

from likewise.app.build import (
    Machine,
    fit_batches,
    has_default_batches,
    make_pieces,
    make_settings,
    this_machine,
)
from likewise.app.errors import UserError, sentence
from likewise.app.evaluation import Opening, model_file, parts_of
from likewise.app.pairs import mean_of_directions
from likewise.app.parts import read_parts
from likewise.app.recalls import is_metric, recall_ks
from likewise.app.trust import check_names
from likewise.files import atomic_write, write_text
from likewise.protocols import TEST_SET_FILE, Result, Trial, at_point
from likewise.train import Collapsed, Embedded, NotFinite, Run, evaluate

WHERE_THINGS_ARE = ("data.root", "model.weights", "cache", "cache_on")
"""Settings that may differ between machines; they do not affect results."""

ORPHAN_SECONDS = 60.0
"""Seconds that a trial waits for an orphaned process that is still writing the checkpoint of its run."""


def run_trial(
    trial: Trial,
    report: Callable[[int, float], bool],
    *,
    folder: Path,
    metric: str = "MAP@R",
    places: Mapping[str, str] | None = None,
    allow: Collection[str] = (),
) -> Result:
    """Train, measure, and return the result; a run that exists is resumed.

    The result is that of a trained epoch, never that of the model before training.

    Args:
        trial: the trial.
        report: called with step and value of every validation; returns whether to continue.
        folder: of the study; runs go to ``runs/KEY`` in it.
        metric: which metric of a validation is reported.
        places: locations on this machine: other values for some of `WHERE_THINGS_ARE`.
        allow: packages, modules and classes that the trial may use in addition to the listed ones.

    Examples:
        >>> run_trial(Trial("none", {"optimizer": {"lr": -1}}), lambda step, value: True, folder=Path("/tmp")).error
        '--optimizer: lr must be a number > 0, but it is -1'
    """

    def should_continue(validation: Mapping[str, Any]) -> bool:
        return report(int(validation["step"]), float(validation[metric]))

    machine, place = this_machine(), folder / "runs" / trial.key
    about: dict[str, Any] = {"run": f"runs/{trial.key}", "machine": _words(machine), "command": _command(place)}
    try:
        config = at_point(trial.upgrade().config, places or {})
        check_names(config, allow)
        make_settings(config)
        parts = read_parts(config["data"], config["split"])
        if has_default_batches(config):
            config = fit_batches(config, parts, machine)
        pieces = make_pieces(config, machine, parts)
        place.mkdir(parents=True, exist_ok=True)
        write_text(place / "config.yaml", yaml.safe_dump(dict(config), sort_keys=False, allow_unicode=True))
        has_run = (place / "run.yaml").exists()
        _wait_for_orphan(place)
        run = pieces.train(place, config, machine, resume=has_run, should_continue=should_continue, keep_start=False)
    except (UserError, NotFinite, Collapsed, KeyError) as error:  # a retry would fail the same way
        return Result(trial, "failed", error=sentence(error), **about)
    [*_, end] = run.metrics("end")
    if end["reason"] in ("not finite", "collapsed"):  # in an earlier process
        return Result(trial, "failed", error=end["message"], seconds=end["seconds"], **about)
    try:
        test = _on_test(run, trial, config, machine) if trial.stage == "final" else {}
    except UserError as error:  # such as no sealed test set
        return Result(trial, "failed", error=sentence(error), seconds=end["seconds"], **about)
    return Result(
        trial,
        "pruned" if end["reason"] == "stopped" else "done",
        val=_read_chosen(run),
        test=test,
        seconds=end["seconds"],
        openings=len(run.openings()),
        tuned_on_test=pieces.data.val is None,
        note=_compare_with_start(run, metric),
        **about,
    )


def _read_chosen(run: Run) -> dict[str, float]:
    """The validation metrics of the chosen model for the table."""
    return {name: value for name, value in (run.chosen or {}).items() if is_metric(name)}


def _compare_with_start(run: Run, metric: str) -> str | None:
    """A note on a training that never improved on the model before training."""
    start = next((line for line in run.metrics("val") if line["step"] == 0), None)
    if start is None or run.chosen is None or run.chosen[metric] > start[metric]:
        return None
    best, before = f"{100 * run.chosen[metric]:.2f}", f"{100 * start[metric]:.2f}"
    return f"no epoch improved on the model before training: {best} versus {before} percent validation {metric}"


def _wait_for_orphan(place: Path) -> None:
    with suppress(Timeout):
        FileLock(place / ".lock").acquire(timeout=ORPHAN_SECONDS).lock.release()


def _on_test(run: Run, trial: Trial, config: dict[str, Any], machine: Machine) -> dict[str, float]:
    """Open the test set once; numbers of an earlier process that opened it are reused."""
    for line in run.evaluations():
        if line["part"] == "test":
            return {name: value for name, value in line["metrics"].items() if is_metric(name)}
    parts = parts_of(run, config, machine, test=Opening(f"the final trial {trial.key} of a study"))
    part = parts[-1]
    metrics = mean_of_directions(
        {
            each.name: evaluate(
                Embedded(each.embeddings, each.labels), each.is_query, ks=recall_ks(config), cameras=each.cameras
            )
            for each in parts
            if each.name.partition(",")[0] == "test"
        }
    )
    if config["split"].get("folds"):
        stored: dict[str, Any] = {"embeddings": part.embeddings.numpy(), "labels": part.labels.numpy()}
        stored["is_query"] = np.zeros(0, bool) if part.is_query is None else part.is_query.numpy()
        if part.cameras is not None:
            stored["cameras"] = part.cameras.numpy()
        with atomic_write(run.folder / TEST_SET_FILE) as file, file.open("wb") as opened:
            np.savez(opened, **stored)
    measured = {name: value for name, value in metrics.items() if is_metric(name)}
    run.record_evaluation("test", measured, model=model_file(run, None).stem)
    run.close_opening()
    return measured


def _command(place: Path) -> str:
    return shlex.join(["likewise", "train", "--config", str(place / "config.yaml"), "--out", f"{place}-again"])


def _words(machine: Machine) -> str:
    return torch.cuda.get_device_name(machine.device) if machine.device.type == "cuda" else "cpu"
