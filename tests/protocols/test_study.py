"""The table of a study: what it stores, what stands, and what a second process sees."""

from __future__ import annotations

import math
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from likewise.protocols.packing import merge_study, pack_study
from likewise.protocols.study import Study, in_shard
from likewise.protocols.trial import Result, Trial
from likewise.train import Run
from likewise.train.checkpoint import save_checkpoint

TRIALS = [Trial("a", {"loss": {"margin": 0.5}}, seed) for seed in range(4)]


@pytest.fixture
def study(tmp_path: Path) -> Study:
    made = Study(tmp_path / "study.db")
    made.add(TRIALS)
    return made


def test_trials_are_the_same_by_their_content_and_keep_their_order(study: Study):
    more = Trial("b", {})
    assert study.add([TRIALS[2], more, more]) == [more]
    assert Study(study.file).trials() == [*TRIALS, more] == Study(study.file).missing()
    assert study.trial(more.key) == more


def test_the_first_result_stands_unless_it_failed(study: Study):
    first = TRIALS[0]
    table = [("failed", True), ("failed", False), ("pruned", True), ("done", False), ("failed", False)]
    for status, stored in table:
        assert study.finish(Result(first, status, error=status)) == stored  # type: ignore[arg-type]
    assert [(each.status, each.error) for each in Study(study.file).results()] == [("pruned", "pruned")]
    assert study.counts() == {"missing": 3, "done": 0, "failed": 0, "pruned": 1, "canceled": 0}


def test_canceled_and_failed_trials_can_be_tried_again(study: Study):
    keys = [trial.key for trial in TRIALS]
    study.finish(Result(TRIALS[0], "failed", error="no"))
    study.finish(Result(TRIALS[1]))
    assert study.cancel(keys) == keys[2:]
    assert study.cancel(keys) == []
    assert [(each.state, each.error) for each in study.states()] == [
        ("failed", "no"),
        ("done", None),
        ("canceled", None),
        ("canceled", None),
    ]
    assert study.retry(keys[:1]) == keys[:1]
    assert study.retry() == keys[2:]
    assert [trial.seed for trial in study.missing()] == [0, 2, 3]


def test_reports_are_stored_by_step(study: Study):
    for step, value in ((2, 0.5), (1, 0.25), (2, 0.75), (3, math.nan)):
        study.report(TRIALS[1].key, step, value)
    [(key, found)] = Study(study.file).reports().items()
    assert (key, list(found), found[2], math.isnan(found[3])) == (TRIALS[1].key, [1, 2, 3], 0.75, True)
    assert study.reports([TRIALS[0].key]) == {}
    assert study.states()[1].step == 3


def test_what_is_not_in_the_study_is_refused_in_one_sentence(study: Study, tmp_path: Path):
    stranger = Trial("stranger", {})
    with pytest.raises(ValueError, match="key must be that of a trial of the study, but"):
        study.report(stranger.key, 1, 0.5)
    with pytest.raises(ValueError, match="result must be of a trial of the study, but"):
        study.finish(Result(stranger))
    (tmp_path / "text.db").write_text("this is not a database, but it is long enough to look like one" * 9)
    with pytest.raises(ValueError, match=r"file must be the table of a study, but .*text\.db is not"):
        Study(tmp_path / "text.db")


def test_every_trial_is_in_one_shard():
    trials = [Trial("a", {}, seed) for seed in range(100)]
    counts = [sum(in_shard(trial.key, (number, 4)) for trial in trials) for number in range(1, 5)]
    assert sum(counts) == 100
    assert min(counts) > 10


def checkpoint(folder: Path, trial: Trial, step: int) -> Path:
    """The run of a trial, as a training leaves it when it is stopped."""
    place = folder / "runs" / trial.key
    place.mkdir(parents=True, exist_ok=True)
    (place / "run.yaml").write_text("seed: 0")
    save_checkpoint(place / "last.safetensors", {"model": {}}, {"step": step})
    return place


def test_a_pack_brings_results_and_checkpoints_home(study: Study, tmp_path: Path):
    """One trial is done here, one is done there, one is half done there, and one is canceled."""
    home, pack = study.file.parent, tmp_path / "pack"
    study.finish(Result(TRIALS[0], val={"MAP@R": 0.1}))
    study.cancel([TRIALS[3].key])
    run = Run(checkpoint(home, TRIALS[2], 1))
    assert pack_study(home, pack) == 2
    away = Study(pack / "study.db")
    assert away.missing() == TRIALS[1:3]
    assert Run(pack / "runs" / TRIALS[2].key).checkpoint_step == 1
    (pack / "runs" / TRIALS[1].key).mkdir()
    checkpoint(pack, TRIALS[2], 2)
    away.report(TRIALS[1].key, 5, 0.5)
    away.finish(Result(TRIALS[1], val={"MAP@R": 0.2}))
    assert merge_study(home, pack) == [TRIALS[1].key]
    assert merge_study(home, pack) == []
    assert (home / "runs" / TRIALS[1].key).is_dir()
    assert run.checkpoint_step == 2
    assert study.reports() == {TRIALS[1].key: {5: 0.5}}
    assert study.counts() == {"missing": 1, "done": 2, "failed": 0, "pruned": 0, "canceled": 1}


def test_what_is_further_here_stays_when_a_pack_comes_home(study: Study, tmp_path: Path):
    """Of the trials that failed there, one was begun here, one was not, and one has failed here too."""
    home, pack = study.file.parent, tmp_path / "pack"
    pack_study(home, pack)
    away, (further, begun, fresh, failed) = Study(pack / "study.db"), TRIALS
    runs = [Run(checkpoint(home, trial, 3)) for trial in (further, begun, failed)]
    study.finish(Result(failed, "failed", error="here"))
    for trial in TRIALS:
        checkpoint(pack, trial, 2)
    for trial in (begun, fresh, failed):
        away.finish(Result(trial, "failed", error="there"))
    assert merge_study(home, pack) == [fresh.key]
    assert [run.checkpoint_step for run in runs] == [3, 3, 3]
    assert [state.state for state in study.states()] == ["missing", "missing", "failed", "failed"]
    assert study.states()[3].error == "here"


def test_a_pack_of_another_study_is_refused(study: Study, tmp_path: Path):
    """Even if the two have trials in common; a copy of a study must have some."""
    stranger, other = Trial("stranger", {}), tmp_path / "other"
    Study(other / "study.db").add([TRIALS[0], stranger])
    pack_study(other, tmp_path / "pack")
    Study(tmp_path / "copy" / "study.db").add([stranger])
    for folder in (tmp_path / "pack", tmp_path / "copy"):
        with pytest.raises(ValueError, match=r"other must be a pack or a copy of this study, but .* of another one"):
            merge_study(study.file.parent, folder)
    assert study.trials() == TRIALS
    study.add([stranger])  # a study that has grown since
    assert merge_study(study.file.parent, tmp_path / "pack") == []


WRITER = """
import sys
from likewise.protocols.study import Study
from likewise.protocols.trial import Result, Trial

study = Study(sys.argv[1])
for seed in range(100000):
    [trial] = study.add([Trial("written", {}, seed)])
    study.report(trial.key, 1, 0.5)
    study.finish(Result(trial))
    print(seed, flush=True)
"""


def test_what_was_stored_survives_a_kill(tmp_path: Path):
    """A writer is killed at a random moment: all that it has told of is there, and at most one trial more."""
    chance = random.Random(3)
    command: list[Any] = [sys.executable, "-c", WRITER, tmp_path / "study.db"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        told = [writer.stdout.readline()]
        time.sleep(chance.uniform(0.1, 0.5))
        os.kill(writer.pid, signal.SIGKILL)
        told += writer.stdout.readlines()
    study = Study(tmp_path / "study.db")
    done = [result.trial.seed for result in study.results()]
    assert done[: len(told)] == list(range(len(told)))
    assert len(study.trials()) - len(told) in (0, 1)
