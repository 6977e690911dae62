"""EfficientNet-Lite0 against ResNet-50 on birds: the same search for both, and what the report says of made-up runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.harness import fill
from likewise.protocols.study import Study
from likewise.protocols.trial import Result
from studies.birds import search
from studies.birds.record import PLACES, Configured
from studies.birds.verdict import SEEDS, final
from studies.networks import birds


def published() -> dict[str, Any]:
    return {name: json.loads(search.RESULTS.with_name(f"{name}.json").read_text()) for name in ("search", "verdict")}


def test_both_networks_get_the_same_search_and_the_report_compares_them(tmp_path: Path):
    found, of_birds = birds.searches(), published()
    others = {name: search.METHODS[name] for name in birds.LOSSES}
    old = search.searches(search.study(*PLACES.values(), others), others)
    study = Study(tmp_path / "study.db")
    for name, each in found.items():
        wanted = {**old[name].config, "model": {**old[name].config["model"], "trunk": "resnet50"}}
        wanted["model"]["weights"] = "imagenet-keras"
        assert each.config == wanted  # nothing but the network differs
        trials = search.plan(each, study)
        tried = next(row["points"] for row in of_birds["search"]["rows"] if row["method"] == name)
        assert [trial.labels for trial in trials] == [one["point"] for one in tried]
        for place, trial in enumerate(trials):
            study.finish(Result(trial, val={"MAP@R": 0.4 - 0.01 * place}))
    scores = {
        (row["method"], row["seed"]): row["test MAP@R"]
        for row in of_birds["verdict"]["rows"]
        if row["part"] == "verdict" and row["dim"] == 512
    }
    gains = dict(zip(birds.LOSSES, (0.02, -0.01, 0.0), strict=True))
    for name, gain in gains.items():
        for seed in range(SEEDS):
            trial = final(Configured(name, found[name].config), {}, seed, "verdict", 512)
            study.add([trial])
            level = scores[name, seed] + gain + 0.001 * (seed % 2 - 0.4)
            study.finish(Result(trial, val={"MAP@R": 0.4}, test={"MAP@R": level, "RP": level, "R@1": level}))
    report = birds.report(study, of_birds, 8)
    answers = report["against"]["test MAP@R"]
    assert {one["loss"]: one["verdict"] for one in answers["losses"]} == dict(
        zip(birds.LOSSES, ("better", "worse", "not distinguishable"), strict=True)
    )
    assert answers["all"]["pairs"] == 15
    assert abs(answers["all"]["difference"]["mean"] - 0.01 / 3) < 1e-9
    assert report["chosen"]["Contrastive"]["resnet50"]["val MAP@R"] == 0.4
    assert report["waiting"] == 0
    page = tmp_path / "page.md"
    page.write_text("<!-- networks:start -->\n<!-- networks:end -->\n")
    fill(page, {"networks": birds.section(report)})
    assert "| +2.0 (" in page.read_text()
    assert "Over these losses together, ResNet-50 and EfficientNet-Lite0" in page.read_text()
