"""Somebody who sees more than a training may end it: what it is told, when, and what it leaves behind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from likewise.data import ImageCache
from likewise.losses import ContrastiveLoss
from likewise.train import Data, OptimizerConfig, Run, TrainConfig, train
from tests.train.small import Broken, assert_same_runs, held_out, linear, loader, small, vectors

Told = list[Mapping[str, Any]]


def listening(told: Told, answers: Mapping[int, bool] | None = None) -> Callable[[Mapping[str, Any]], bool]:
    """Somebody who writes down what it is told, and refuses at some steps."""

    def should_continue(validation: Mapping[str, Any]) -> bool:
        told.append(validation)
        return (answers or {}).get(validation["step"], True)

    return should_continue


def trained(
    folder: Path, should_continue: Callable[[Mapping[str, Any]], bool] | None, *, val: bool = True, **plan: Any
) -> Run:
    batches = vectors()
    data = Data(batches, batches[:1] if val else None)
    settings = TrainConfig(**{"epochs": 4, **plan})
    return train(
        linear(),
        ContrastiveLoss(),
        data,
        folder=folder,
        settings=settings,
        device="cpu",
        should_continue=should_continue,
    )


def test_it_is_told_every_validation_of_the_training(tmp_path: Path):
    told: Told = []
    run = trained(tmp_path / "run", listening(told))
    assert [each["step"] for each in told] == [3, 6, 9, 12]  # three batches an epoch; not the one before the first step
    assert told == run.metrics("val")[1:]
    assert {"MAP@R", "R@1", "best"} <= told[0].keys()
    assert run.metrics("end")[-1]["reason"] == "finished"


def test_only_when_there_is_a_validation(tmp_path: Path):
    told: Told = []
    trained(tmp_path / "every", listening(told), validate_every=3)
    assert [each["step"] for each in told] == [9]
    told.clear()
    trained(tmp_path / "never", listening(told), validate_every=0)
    trained(tmp_path / "none", listening(told), val=False)
    assert told == []


def test_a_no_ends_it_at_once_with_everything_written(tmp_path: Path):
    told: Told = []
    run = trained(tmp_path / "run", listening(told, {6: False}))
    [end] = run.metrics("end")
    assert (end["reason"], end["message"], end["step"]) == ("stopped", "2 of 4 epochs", 6)
    assert run.finished
    assert all((run.folder / f"{name}.safetensors").exists() for name in ("best", "model", "last"))
    before = (run.folder / "metrics.jsonl").read_bytes()
    again = train(
        linear(),
        ContrastiveLoss(),
        Data(vectors(), vectors()[:1]),
        folder=run.folder,
        settings=TrainConfig(epochs=4),
        device="cpu",
        resume=True,
    )
    assert again.finished
    assert (run.folder / "metrics.jsonl").read_bytes() == before


def test_until_then_it_was_the_same_training(tmp_path: Path):
    whole = trained(tmp_path / "whole", None)
    part = trained(tmp_path / "part", listening([], {6: False}))
    pairs = zip(whole.metrics("val"), part.metrics("val"), strict=False)
    assert [(a["step"], a["MAP@R"]) for a, _ in pairs] == [(b["step"], b["MAP@R"]) for b in part.metrics("val")]
    assert len(part.metrics("val")) == 3


def test_at_the_end_there_is_nothing_left_to_stop(tmp_path: Path):
    run = trained(tmp_path / "run", listening([], {12: False}))
    [end] = run.metrics("end")
    assert (end["reason"], end["message"]) == ("finished", "4 of 4 epochs")


def test_patience_and_refusal_are_told_apart(tmp_path: Path):
    # the best of these is the first one, and nothing changes with a learning rate of almost nothing
    slow = OptimizerConfig(lr=1e-12)
    reasons = []
    for name, answers in (("patience", {}), ("both", {3: False})):
        run = train(
            linear(),
            ContrastiveLoss(),
            Data(vectors(), vectors()[:1]),
            folder=tmp_path / name,
            optimizer=slow,
            settings=TrainConfig(epochs=4, patience=1),
            device="cpu",
            should_continue=listening([], answers),
        )
        reasons.append(run.metrics("end")[-1]["reason"])
    assert reasons == ["early stopping", "stopped"]


def test_an_error_of_its_own_leaves_a_run_that_can_should_continue(tmp_path: Path, photos: ImageCache):
    def begun(folder: Path, should_continue: Callable[[Mapping[str, Any]], bool], *, resume: bool = False) -> Run:
        data = Data(loader(photos), held_out(photos))
        plan = TrainConfig(epochs=3, checkpoint_minutes=0.0)
        return train(
            small(),
            ContrastiveLoss(),
            data,
            folder=folder,
            settings=plan,
            device="cpu",
            resume=resume,
            should_continue=should_continue,
        )

    def lost(validation: Mapping[str, Any]) -> bool:
        raise Broken

    begun(tmp_path / "whole", listening([]))
    with pytest.raises(Broken):
        begun(tmp_path / "lost", lost)
    assert not Run(tmp_path / "lost").finished
    told: Told = []
    begun(tmp_path / "lost", listening(told), resume=True)
    assert [each["step"] for each in told] == [5, 10, 15]
    assert_same_runs(tmp_path / "whole", tmp_path / "lost")
