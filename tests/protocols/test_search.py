"""Search: spaces, ways of choosing points, planted optima through the real table, and rounds that travel."""

from __future__ import annotations

import json
import logging
import math
import os
import random
import re
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import likewise.losses
import likewise.miners
from likewise.formula import hyperparameters
from likewise.losses import MultiSimilarityLoss, SphereFaceLoss
from likewise.miners import MultiSimilarityMiner
from likewise.protocols.bayes import Bayesian, Random
from likewise.protocols.grid import CoordinateGrid
from likewise.protocols.packing import merge_study, pack_study
from likewise.protocols.search import Search, best, history, is_hopeless, is_over, next_points, plan, prune
from likewise.protocols.space import Choice, Range, Tried, at_point, space_of
from likewise.protocols.study import Study
from likewise.protocols.trial import Result, Trial
from likewise.testing import loop_over

SPACE = {"loss.a": Range(1e-4, 1.0, log=True), "loss.b": Range(0.0, 10.0), "loss.c": Range(1, 50, whole=True)}
CONFIG: dict[str, Any] = {"loss": {"class_path": "A", "init_args": {"a": 1.0, "b": 1.0, "c": 1}}, "split": {"seed": 3}}

Objective = Callable[[Mapping[str, Any]], float]


def bump(point: Mapping[str, Any]) -> float:
    """Best, 1, at a = 0.01, b = 7, c = 20; a factor of ten in a is as bad as 2.5 in b or 10 in c."""
    away = math.log10(point["loss.a"] / 0.01), (point["loss.b"] - 7) / 2.5, (point["loss.c"] - 20) / 10
    return math.exp(-sum(each**2 for each in away))


def run(search: Search, study: Study, objective: Objective = bump) -> None:
    """Plan, and run what was planned, until it is over; each fold is a little off, and their mean is not."""
    while plan(search, study):
        for trial in study.missing():
            off = (trial.fold - (len(search.folds) - 1) / 2) / 100
            study.finish(Result(trial, val={"MAP@R": objective(trial.labels) + off}))
    assert is_over(search, study)


class TestSpace:
    def test_of_a_loss_and_its_miner(self):
        space = space_of(MultiSimilarityLoss, MultiSimilarityMiner)
        assert space == {
            "loss.alpha": Range(0.1, 100.0, log=True, step=2.0, default=2.0),
            "loss.beta": Range(1.0, 100.0, log=True, step=2.0, default=50.0),
            "loss.base": Range(0.0, 1.0, step=0.1, default=0.5),
            "loss.miner.epsilon": Range(0.0, 1.0, step=0.1, default=0.1),
        }

    @loop_over("room", [likewise.losses, likewise.miners])
    def test_every_point_of_every_space_is_inside_the_limits(self, room):
        seen = 0
        for name in room.__all__:
            try:
                known = hyperparameters(getattr(room, name))
            except TypeError:
                continue
            if known:
                seen += 1
                space = space_of(getattr(room, name))
                for setting, hyper in zip(space.values(), known.values(), strict=True):
                    for value in [*setting.grid(), *(setting.at(n / 50) for n in range(51)), setting.start]:
                        assert hyper.allows(value)
                        assert isinstance(value, int) == setting.whole
        assert seen >= 5

    def test_settings_may_be_narrowed_fixed_and_added(self):
        extra = {"loss.margin": Range(2, 3), "loss.scale": 8.0, "optimizer.lrs.proxies": Range(1e-5, 1e-2, log=True)}
        space = space_of(SphereFaceLoss, extra=extra)
        assert space["loss.margin"] == Range(2, 3, whole=True)
        assert space["loss.scale"] == Choice((8.0,))
        assert space["optimizer.lrs.proxies"] == extra["optimizer.lrs.proxies"]
        for point in next_points(space, [], 5, Bayesian()):
            assert point["loss.scale"] == 8.0
            assert point["loss.margin"] in (2, 3)

    @loop_over(
        "extra, said",
        [
            ({"loss.margin": Range(0, 4)}, "loss.margin must be a whole number ≥ 1 and ≤ 8, but 0 is not"),
            ({"loss.margin": 2.5}, "loss.margin must be a whole number ≥ 1 and ≤ 8, but 2.5 is not"),
            ({"loss.scale": -1.0}, "loss.scale must be a number > 0, but -1.0 is not"),
            ({"loss.scala": 1.0}, "extra must name declared hyper-parameters (loss.margin, loss.scale), but"),
        ],
    )
    def test_what_is_outside_the_limits_is_refused(self, extra, said):
        with pytest.raises(ValueError, match=f"^{re.escape(said)}"):
            space_of(SphereFaceLoss, extra=extra)

    @loop_over(
        "make, said",
        [
            (lambda: Range(1.0, 1.0), "low must be a number < high"),
            (lambda: Range(0.0, 1.0, log=True), "low must be > 0 on a logarithmic scale, but it is 0.0"),
            (lambda: Range(0.0, 1.0, step=0.0), "step must be a number > 0"),
            (lambda: Range(0.5, 2.0, whole=True), "must be whole numbers with whole=True"),
            (lambda: Choice(()), "values must be a tuple with at least one value"),
            (lambda: Tried({}, None), "value must be a finite number if done"),
            (lambda: Tried({}, 0.5, status="failed"), "value must be a finite number if done, else None"),
            (lambda: next_points({}, [], 1, Random()), "space must have at least one setting"),
        ],
    )
    def test_mistakes_are_said(self, make, said):
        with pytest.raises(ValueError, match=said):
            make()

    def test_grids(self):
        assert Range(0.0, 1.0, step=0.1).grid() == (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
        assert Range(2.0, 100.0, step=2.0).grid() == tuple(float(n) for n in range(2, 101, 2))
        assert Range(0.0, 1.0, step=0.4).grid() == (0.0, 0.4, 0.8)
        assert Range(1, 20, whole=True).grid() == tuple(range(1, 21))
        assert Range(1, 1000, log=True, whole=True).grid(4) == (1, 10, 100, 1000)
        assert Choice(("a", None)).grid() == ("a", None)

    def test_a_point_goes_to_its_places(self):
        miner = {"class_path": "M", "init_args": {"epsilon": 0.1}}
        config = {"loss": {"class_path": "L", "init_args": {"miner": miner}}, "optimizer": {"lr": 1.0, "lrs": {}}}
        before = json.dumps(config)
        changed = at_point(config, {"loss.miner.epsilon": 0.3, "optimizer.lrs.proxies": 2.0, "loss.alpha": 5})
        assert changed["loss"]["init_args"] == {"miner": {"class_path": "M", "init_args": {"epsilon": 0.3}}, "alpha": 5}
        assert changed["optimizer"] == {"lr": 1.0, "lrs": {"proxies": 2.0}}
        assert json.dumps(config) == before
        with pytest.raises(ValueError, match=r"loss.minor.epsilon must name a setting .* it has no section 'minor'"):
            at_point(config, {"loss.minor.epsilon": 0.3})


class TestWays:
    @loop_over("method", [Random(), Bayesian(startup=3)])
    def test_the_same_history_and_seed_give_the_same_points(self, method):
        tried: list[Tried] = []
        for _ in range(4):
            points = next_points(SPACE, tried, 3, method, seed=5)
            assert points == next_points(SPACE, tried, 3, method, seed=5)
            assert points != next_points(SPACE, tried, 3, method, seed=6)
            assert all(SPACE[path].has(value) for point in points for path, value in point.items())
            tried += [Tried(point, bump(point)) for point in points]
        assert len({tuple(one.point.values()) for one in tried}) == 12

    def test_points_are_the_same_in_another_process(self):
        tried = [Tried(point, bump(point)) for point in next_points(SPACE, [], 12, Random(), 1)]
        here = [next_points(SPACE, tried, 2, method, 1) for method in (Random(), Bayesian())]
        program = f"""
from likewise.protocols.bayes import Bayesian, Random
from likewise.protocols.search import next_points
from likewise.protocols.space import Range, Tried
space, tried = {SPACE!r}, {tried!r}
print([next_points(space, tried, 2, method, 1) for method in (Random(), Bayesian())])
"""
        words = [sys.executable, "-W", "error", "-c", program]
        said = subprocess.run(
            words, capture_output=True, text=True, check=True, env={**os.environ, "PYTHONHASHSEED": "77"}
        )
        assert said.stdout.strip() == repr(here)
        assert said.stderr == ""

    def test_random_points_are_even_on_their_scale(self):
        points = next_points(SPACE, [], 400, Random(), 0)
        below = [
            statistics.fmean(point[path] <= middle for point in points)
            for path, middle in (("loss.a", 0.01), ("loss.b", 5.0), ("loss.c", 25))
        ]
        assert below == pytest.approx([0.5, 0.5, 0.5], abs=0.09)  # 3.6 standard deviations of a fair coin

    @loop_over("method", [Random(), Bayesian(startup=2)])
    def test_a_small_space_is_used_up(self, method):
        space = {"a": Range(1, 3, whole=True), "b": Choice(("x", "y"))}
        tried: list[Tried] = []
        while points := next_points(space, tried, 2, method):
            tried += [Tried(point, float(point["a"])) for point in points]
        assert sorted((one.point["a"], one.point["b"]) for one in tried) == [(a, b) for a in (1, 2, 3) for b in "xy"]

    def test_failed_pruned_and_running_points_are_understood(self):
        points = next_points(SPACE, [], 16, Random())
        tried = [Tried(point, bump(point)) for point in points[:12]]
        tried += [Tried(points[12], status="failed"), Tried(points[13], None, {1: 0.1}, "pruned")]
        tried += [Tried(points[14], status="running"), Tried(points[15], None, {1: 0.2}, "running")]
        assert len(next_points(SPACE, tried, 3, Bayesian())) == 3
        outside = [Tried({"loss.a": 5.0, "loss.b": 1.0, "loss.c": 1}, 9.0), Tried({"loss.a": 0.1}, 9.0)]
        assert len(next_points(SPACE, tried + outside, 3, Bayesian())) == 3

    def test_points_asked_for_together_keep_apart(self):
        tried = [Tried({"x": n / 20}, -abs(n / 20 - 0.5)) for n in range(21)]
        points = [point["x"] for point in next_points({"x": Range(0.0, 1.0)}, tried, 6, Bayesian())]
        assert len(set(points)) == 6

    def test_the_grid_goes_one_setting_after_the_other(self):
        space = {"a": Range(0.0, 2.0, step=1.0, default=1.0)}
        space["b"] = Range(0.0, 1.0, step=0.5, default=0.25, on_grid=True)
        grid = CoordinateGrid()
        assert next_points(space, [], 9, grid) == [{"a": a, "b": 0.25} for a in (0.0, 1.0, 2.0)]
        assert next_points(space, [], 2, grid) == [{"a": a, "b": 0.25} for a in (0.0, 1.0)]
        tried = [Tried({"a": 0.0, "b": 0.25}, 0.3), Tried({"a": 1.0, "b": 0.25}, status="failed")]
        waits = [*tried, Tried({"a": 2.0, "b": 0.25}, status="running")]
        assert next_points(space, waits, 9, grid) == []
        tried.append(Tried({"a": 2.0, "b": 0.25}, 0.3))
        second = [{"a": 0.0, "b": b} for b in (0.0, 0.5, 1.0)]  # the first of two that are equally good
        assert next_points(space, tried, 9, grid) == second
        tried += [Tried(point, 0.1) for point in second]
        assert next_points(space, tried, 9, grid) == []
        again = CoordinateGrid(sweeps=2)  # b stays where it was: nothing on its grid is better
        assert next_points(space, tried, 9, again) == []
        with pytest.raises(ValueError, match="start must name settings of the space, but it names 'c'"):
            next_points(space, [], 1, CoordinateGrid(start={"c": 1.0}))

    def test_optuna_is_quiet_and_left_as_it_was(self, capfd, recwarn):
        import optuna

        optuna.logging.set_verbosity(logging.INFO)
        try:
            next_points(SPACE, [], 2, Bayesian())
            assert optuna.logging.get_verbosity() == logging.INFO
        finally:
            optuna.logging.set_verbosity(logging.WARNING)
        assert capfd.readouterr() == ("", "")
        assert not recwarn.list

    def test_without_optuna_it_says_what_to_install(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "optuna", None)
        with pytest.raises(ImportError, match=r"likewise\[study\]"):
            next_points(SPACE, [], 2, Bayesian())
        assert len(next_points(SPACE, [], 2, Random())) == 2


class TestPruning:
    def test_it_is_optunas_median_rule(self):
        """Against Optuna's own pruner, on random curves with gaps and values that are not numbers."""
        optuna = pytest.importorskip("optuna")
        chance = random.Random(3)
        answers = []
        for _ in range(300):
            startup, warmup, least = chance.randrange(4), chance.randrange(3), chance.randrange(1, 3)
            curves = [self.curve(chance) for _ in range(chance.randrange(6))]
            own = self.curve(chance)
            pruner = optuna.pruners.MedianPruner(startup, warmup, n_min_trials=least)
            study = optuna.create_study(direction="maximize", pruner=pruner)
            for curve in curves:
                study.add_trial(optuna.trial.create_trial(value=0.0, intermediate_values=curve))
            asked = optuna.trial.create_trial(state=optuna.trial.TrialState.RUNNING, intermediate_values=own)
            if not own or self.warns(curves, own):  # numpy warns of means of nothing; our own tests are below
                continue
            answers.append(pruner.prune(study, asked))
            assert prune(curves, own, max(own), startup=startup, warmup=warmup, least=least) == answers[-1]
        assert 30 < sum(answers) < len(answers) - 30

    @staticmethod
    def curve(chance: random.Random) -> dict[int, float]:
        steps = [step for step in range(5) if chance.random() < 0.8]
        return {step: math.nan if chance.random() < 0.1 else chance.random() for step in steps}

    @staticmethod
    def warns(curves: list[dict[int, float]], own: dict[int, float]) -> bool:
        there = [curve[max(own)] for curve in curves if max(own) in curve]
        return all(map(math.isnan, own.values())) or (bool(there) and all(map(math.isnan, there)))

    def test_what_is_not_a_number(self):
        others = [{1: 0.5}] * 5
        assert prune(others, {1: math.nan}, 1)
        assert not prune([{1: math.nan}] * 5, {1: 0.1}, 1)
        assert not prune(others[:4], {1: 0.1}, 1)
        assert not prune(others, {}, 1)

    def test_only_trials_of_the_same_race_are_compared(self, tmp_path):
        study = Study(tmp_path / "study.db")

        def trial(margin: float, **more: Any) -> Trial:
            return Trial("triplet", {}, **{"stage": "search", "labels": {"loss.margin": margin, "dim": 8}, **more})

        slow = trial(0.9)
        others = [trial(0.1, fold=1), trial(0.1, seed=1), trial(0.1, labels={"loss.margin": 0.1, "dim": 64})]
        study.add([slow, trial(0.1), *others])
        study.report(slow.key, 1, 0.1)
        for other in others:
            study.report(other.key, 1, 0.5)
            study.finish(Result(other, val={"MAP@R": 0.5}))
        assert not is_hopeless(study, slow, startup=1)
        study.report(trial(0.1).key, 1, 0.5)
        assert not is_hopeless(study, slow, startup=1)
        study.finish(Result(trial(0.1), val={"MAP@R": 0.5}))
        assert is_hopeless(study, slow, startup=1)
        assert not is_hopeless(study, slow, startup=2)
        assert not is_hopeless(study, slow, startup=1, warmup=2)


class TestSearch:
    def test_the_grid_finds_the_best_of_a_separable_function(self, tmp_path):
        space = {
            "loss.base": Range(0.0, 1.0, step=0.1, default=0.5),
            "loss.alpha": Range(2.0, 100.0, step=2.0, default=2.0),
        }
        planted = {"loss.base": 0.8, "loss.alpha": 18.0}
        config = {"loss": {"class_path": "L", "init_args": {}}}
        search = Search("ms", config, space, CoordinateGrid(), rounds=1000, at_once=50)

        def separable(point: Mapping[str, Any]) -> float:
            return -sum(abs(point[path] - value) for path, value in planted.items())

        run(search, Study(tmp_path / "study.db"), separable)
        found = history(search, Study(tmp_path / "study.db"))
        assert best(found).point == planted
        # each setting's grid once; the best point of one is a point of the next grid, or it is not on that grid
        assert len(found) == 11 + 50 - 1

    def test_bayesian_search_beats_random_search(self, tmp_path):
        """The same budget on the same kind of study: the mean distance from the planted optimum, over five seeds."""
        missed: dict[str, list[float]] = {"Bayesian": [], "Random": []}
        for seed in range(5):
            for how in (Bayesian(), Random()):
                name = type(how).__name__
                search = Search("m", CONFIG, SPACE, how, rounds=40, at_once=4, seed=seed)
                study = Study(tmp_path / f"{name}{seed}.db")
                run(search, study)
                missed[name].append(1 - best(history(search, study)).value)
        bayesian, at_random = (statistics.fmean(missed[name]) for name in ("Bayesian", "Random"))
        assert bayesian < 0.5 * at_random
        assert bayesian < 0.15

    def test_it_goes_on_from_its_study_alone(self, tmp_path):
        def study(name: str) -> Study:
            return Study(tmp_path / f"{name}.db")

        search = Search("m", CONFIG, SPACE, Bayesian(startup=4), rounds=10, at_once=3)
        run(search, study("whole"))
        while True:  # everything read again for each trial, and two that plan at once
            plan(search, study("pieces"))
            assert plan(search, study("pieces")) == []
            missing = study("pieces").missing()
            if not missing:
                break
            study("pieces").finish(Result(missing[0], val={"MAP@R": bump(missing[0].labels)}))
        assert history(search, study("pieces")) == history(search, study("whole"))
        assert len(history(search, study("whole"))) == 10

    def test_its_rounds_travel(self, tmp_path):
        """Plans are made in one study, run in packs of it, and brought home; the search is the one that stayed."""
        search = Search("m", CONFIG, SPACE, Bayesian(startup=4), ({"fold": 0}, {"fold": 1}), rounds=9, at_once=3)
        run(search, Study(tmp_path / "stayed.db"))
        home = Study(tmp_path / "home" / "study.db")
        away = 0
        while new := plan(search, home):
            away += 1
            assert pack_study(tmp_path / "home", tmp_path / f"away{away}") == len(new)
            there = Study(tmp_path / f"away{away}" / "study.db")
            for trial in there.missing():
                there.finish(Result(trial, val={"MAP@R": bump(trial.labels) + (trial.fold - 0.5) / 100}))
            assert merge_study(tmp_path / "home", tmp_path / f"away{away}") == [trial.key for trial in new]
        assert away == 3
        assert history(search, home) == history(search, Study(tmp_path / "stayed.db"))

    def test_a_point_is_the_mean_of_its_folds(self, tmp_path):
        study = Study(tmp_path / "study.db")
        search = Search("m", CONFIG, SPACE, Random(), ({"folds": 2, "fold": 0}, {"folds": 2, "fold": 1}), rounds=1)
        first, second = plan(search, study)
        assert first.config["split"] == {"seed": 3, "folds": 2, "fold": 0}
        assert second.config["split"] == {"seed": 3, "folds": 2, "fold": 1}
        assert first.config["loss"]["init_args"] == {name[5:]: first.labels[name] for name in SPACE}
        assert (first.stage, first.fold, second.fold) == ("search", 0, 1)
        study.report(first.key, 1, 0.25)
        study.report(second.key, 1, 0.75)
        study.finish(Result(first, val={"MAP@R": 0.5, "R@1": 0.9}))
        assert [one.status for one in history(search, study)] == ["running"]
        study.finish(Result(second, val={"MAP@R": 0.25, "R@1": 0.7}))
        (one,) = history(search, study)
        assert (one.value, one.status, one.reports) == (0.375, "done", {1: 0.5})
        assert is_over(search, study)

    def test_a_point_that_fails_is_left_and_the_search_goes_on(self, tmp_path):
        study = Study(tmp_path / "study.db")
        search = Search("m", CONFIG, SPACE, Random(), ({"fold": 0}, {"fold": 1}), rounds=3)
        first, _ = plan(search, study)
        study.finish(Result(first, "failed", error="no"))
        assert len(plan(search, study)) == 2
        assert study.states()[1].state == "canceled"
        pruned, sibling = study.missing()
        study.report(pruned.key, 1, 0.25)
        study.finish(Result(pruned, "pruned"))
        third = plan(search, study)
        assert [each.trial for each in study.states() if each.state == "canceled"][1:] == [sibling]
        for trial in third:
            study.finish(Result(trial, val={"MAP@R": math.nan}))
        assert [one.status for one in history(search, study)] == ["failed", "pruned", "failed"]
        assert plan(search, study) == []
        assert best(history(search, study)) is None

    def test_searches_in_one_study_do_not_mix(self, tmp_path):
        study = Study(tmp_path / "study.db")
        one = Search("m", CONFIG, SPACE, Random(), rounds=2)
        others = [
            Search("n", CONFIG, SPACE, Random(), rounds=2),
            Search("m", {**CONFIG, "images": "cub"}, SPACE, Random(), rounds=2),
            Search("m", CONFIG, SPACE, Random(), rounds=2, labels={"dim": 8}),
            Search("m", CONFIG, {"loss.a": SPACE["loss.a"]}, Random(), rounds=2),
        ]
        for search in (one, *others):
            run(search, study, lambda point: point["loss.a"])
        study.add([Trial("m", CONFIG, labels={"loss.a": 0.1, "loss.b": 1.0, "loss.c": 1})])
        assert [len(history(search, study)) for search in (one, *others)] == [2] * 5

    def test_it_may_begin_with_given_points(self, tmp_path):
        usual = {"loss.a": 0.01, "loss.b": 7.0, "loss.c": 20}
        search = Search("m", CONFIG, SPACE, Random(), rounds=4, at_once=2, begin=(usual,))
        run(search, Study(tmp_path / "study.db"))
        tried = history(search, Study(tmp_path / "study.db"))
        assert tried[0].point == usual
        assert best(tried).value == 1.0
        assert 3 <= len(tried) <= 4

    def test_mistakes_are_said(self, tmp_path):
        with pytest.raises(ValueError, match=r"begin must contain points of the space, but one has loss\.b = None"):
            Search("m", CONFIG, SPACE, begin=({"loss.a": 0.01},))
        with pytest.raises(ValueError, match=r"labels must not contain searched settings, but they contain 'loss\.a'"):
            Search("m", CONFIG, SPACE, labels={"loss.a": 1.0})
        with pytest.raises(ValueError, match="folds must have at least one fold"):
            Search("m", CONFIG, SPACE, folds=())
        search = Search("m", CONFIG, SPACE, Random(), objective="RP")
        study = Study(tmp_path / "study.db")
        study.finish(Result(plan(search, study)[0], val={"R@1": 0.5}, test={"RP": 0.5}))
        with pytest.raises(
            ValueError, match=r"objective must be measured on validation classes \(R@1\), but it is 'RP'"
        ):
            plan(search, study)


def test_the_search_needs_no_optuna(tmp_path: Path):
    """A plan can be made, and run, where Optuna is not."""
    program = f"""
import sys
sys.modules["optuna"] = None
from likewise.protocols.bayes import Random
from likewise.protocols.search import Search, plan
from likewise.protocols.space import Range
from likewise.protocols.study import Study
print(len(plan(Search("m", {{"a": 1}}, {{"a": Range(0.0, 1.0)}}, Random(), at_once=3), Study({str(tmp_path)!r} + '/study.db'))))
"""
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "3"
