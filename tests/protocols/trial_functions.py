"""Trials for the tests of executors; processes import them from here."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import torch

from likewise.protocols.trial import Result, Trial


def behave(trial: Trial, report: Callable[[int, float], bool]) -> Result:
    """Do what the trial's method says, in the folder that its configuration names."""
    place = Path(trial.config["folder"])
    (place / f"{trial.method}.{trial.labels['loss.margin']}.begun").write_text(str(os.getpid()))
    return globals()[f"_{trial.method}"](trial, report, place)


def _measure(trial: Trial, report: Callable[[int, float], bool], place: Path) -> Result:
    for step in (1, 2):
        if not report(step, float(trial.config["value"])):
            return Result(trial, "pruned", val={"step": step})
    return Result(trial, val={"threads": torch.get_num_threads()}, machine=os.getcwd())


def _raise(trial: Trial, report: Callable[[int, float], bool], place: Path) -> Result:
    raise RuntimeError("this is\n  not possible")


def _die(trial: Trial, report: Callable[[int, float], bool], place: Path) -> Result:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def _die_on_the_way(trial: Trial, report: Callable[[int, float], bool], place: Path) -> Result:
    """Killed at every step, resumed at the next one: that is no failure."""
    step = len(list(place.glob("step*"))) + 1
    if step < 3:
        (place / f"step{step}").touch()
        report(step, 0.5)
        os.kill(os.getpid(), signal.SIGKILL)
    return Result(trial, val={"step": step})


def _wait(trial: Trial, report: Callable[[int, float], bool], place: Path) -> Result:
    """Until it is canceled, or stopped: then it leaves a checkpoint."""
    try:
        for step in range(1000):
            time.sleep(0.05)
            report(step, 0.5)
            (place / f"reported.{trial.labels['loss.margin']}").touch()
    except KeyboardInterrupt:
        (place / f"checkpoint.{trial.labels['loss.margin']}").touch()
        raise
    return Result(trial)
