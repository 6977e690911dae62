"""Losses that joined later: what is planned from what is known, and what the page says of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from likewise.protocols.study import Study
from likewise.protocols.trial import Result, Trial
from studies.birds import plot_recent, recent
from studies.birds.travel import plan_next


def made_up(trial: Trial, level: float) -> Result:
    measured = {"MAP@R": level, "RP": level, "R@1": level}
    return Result(trial, val=measured, test=measured if trial.stage == "final" else {})


def test_final_trainings_follow_the_search_of_each_method(tmp_path: Path):
    """The best of the points that are done, in two sizes, five seeds each; the next search begins when there is room."""
    config = {"loss": {"class_path": "TripletLoss", "init_args": {"margin": 0.0}}, "model": {"dim": 512}}
    planned: dict[str, Any] = {}
    for name in ("first", "second"):
        trials = [Trial(name, {**config, "at": at}, 0, 0, "search", {"loss.margin": at}) for at in (0.1, 0.2, 0.3)]
        planned[name] = {"config": config, "trials": [trial.to_dict() for trial in trials]}
    study = Study(tmp_path / "study.db")
    plan_next(study, planned, 3)
    assert {trial.method for trial in study.missing()} == {"first"}
    for trial, status, level in zip(study.missing(), ("done", "done", "failed"), (0.1, 0.3, 0.9), strict=True):
        study.finish(made_up(trial, level) if status == "done" else Result(trial, status))
    plan_next(study, planned, 3)
    finals = study.missing()
    assert len(finals) == 10
    assert {trial.config["loss"]["init_args"]["margin"] for trial in finals} == {0.2}
    assert {(trial.config["model"]["dim"], trial.seed) for trial in finals} == {
        (dim, seed) for dim in (512, 128) for seed in range(5)
    }
    plan_next(study, planned, 11)
    assert {trial.method for trial in study.missing()} == {"first", "second"}


def test_the_section_compares_with_the_contrastive_loss():
    def rows(name: str, level: float) -> list[dict[str, Any]]:
        return [
            {"method": name, "seed": seed, "fold": 0, "stage": "final", "status": "done", "part": "verdict", "dim": 512}
            | {"val MAP@R": level + 0.001 * seed, "test MAP@R": level + 0.001 * seed + 1e-5 * seed * level}
            for seed in range(5)
        ]

    verdict = {
        "rows": [*rows("Contrastive", 0.12), *rows("ProxyGML", 0.13)],
        "table": [{"method": "Contrastive"}, {"method": "ProxyGML"}],
        "best by validation": ["ProxyGML"],
    }
    ours = [*rows("Smooth-AP", 0.11), *rows("ROADMAP", 0.14), *rows("Sigmoid", 0.15)]
    interval = {"mean": 0.14, "low": 0.13, "high": 0.15}
    report = {
        "rows": ours,
        "ranking": ["Smooth-AP", "ROADMAP"],
        "against": recent.against(ours, verdict, {"Smooth-AP", "ROADMAP", "Sigmoid"}),
        "table": [
            {"method": name, "dim": 512, "MAP@R": interval, "RP": interval, "R@1": interval}
            for name in ("Smooth-AP", "ROADMAP", "Sigmoid")
        ],
        "search": {"rows": []},
    }
    text = plot_recent.section(report, verdict)
    assert "better: *ROADMAP*; worse: *Smooth-AP*" in text
    assert "optimizing the metric pays**, compared with the best of the 2 older methods" in text
    assert [line.split(" | ")[0] for line in text.splitlines() if line.startswith("| S")] == [
        "| Sigmoid",
        "| Smooth-AP",
    ]
    assert [name for name, _ in plot_recent.lines(report, 512)] == ["*Smooth-AP*", "*ROADMAP*", "*Sigmoid*"]
