"""The fairness check finds every setting that could make a comparison unfair, and leaves the method alone."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from likewise.app.conditions import read_conditions
from likewise.app.configuration import parse_request
from likewise.app.layers import read_request
from likewise.losses import ProxyAnchorLoss
from likewise.protocols.conditions import NOT_RECORDED, RULES, Conditions
from likewise.protocols.fairness import Difference, in_words, unfair_differences
from likewise.testing import loop_over
from likewise.train import Data, OptimizerConfig, Run, ScheduleConfig, TrainConfig
from likewise.train.description import describe
from likewise.train.groups import parameter_groups
from likewise.trunks import Embedder


@cache
def _base() -> dict[str, Any]:
    """A description as training writes it, of a configuration as the command line makes it."""
    words = ["--data", "Glyphs", "--loss", "ProxyAnchorLoss", "--optimizer.lrs.proxies", "0.01", "--sampler.steps", "5"]
    config = parse_request(read_request(words))
    optimizer, schedule, plan = (
        kind(**config[name])
        for kind, name in ((OptimizerConfig, "optimizer"), (ScheduleConfig, "schedule"), (TrainConfig, "train"))
    )
    model, loss = Embedder("convnet", 64), ProxyAnchorLoss(num_classes=3, embedding_dim=64)
    groups = parameter_groups(model, loss, optimizer)
    said = describe(model, loss, Data([]), groups, optimizer, schedule, plan, 0, config)
    part = {"name": "Glyphs", "images": 1438, "classes": 719}
    said["data"] = {
        "train": {**part, "split": "train", "fingerprint": "aa"},
        "val": {**part, "split": "val", "fingerprint": "bb"},
        "test": {"description": "the test part of Glyphs"},
    }
    return said | {"openings": [], "search": {"rounds": 0, "searched": []}, "ended": True, "tuned_on_test": False}


def base() -> dict[str, Any]:
    return deepcopy(_base())


def changed(path: str, value: Any, said: dict[str, Any] | None = None) -> dict[str, Any]:
    """The description with one setting changed, in the configuration and where the run repeats it."""
    said = base() if said is None else said
    *way, last = path.split(".")
    for root in (said.get("config"), said) if way[0] != "config" else (said,):
        place: Any = root
        for key in way:
            place = place.get(key) if isinstance(place, dict) else None
        if isinstance(place, dict) and (root is not said or last in place):
            place[last] = value
    return said


def differences(descriptions: dict[str, Any]) -> list[Difference]:
    """What differs between trainings, by their descriptions."""
    return unfair_differences(
        {
            name: read_conditions(each) if isinstance(each, dict) else [read_conditions(one) for one in each]
            for name, each in descriptions.items()
        }
    )


def found(*several: Any, severity: str | None = None) -> dict[str, Difference]:
    named = dict(zip("abcdefgh", several, strict=False))
    return {each.what: each for each in differences(named) if severity in (None, each.severity)}


def test_equal_runs_have_no_difference():
    assert differences({"a": base(), "b": base()}) == []


UNFAIR = {
    "config.model.trunk": ("resnet50", {"trunk"}),
    "config.model.weights": ("imagenet", {"pretraining"}),
    "config.model.dim": (512, {"embedding size"}),
    "config.model.pool": ("avg+max", {"pooling"}),
    "config.model.head": ("mlp", {"head"}),
    "config.model.normalize": (False, {"unit length"}),
    "config.model.layer_norm": (True, {"layer norm"}),
    "config.model.freeze_bn": (True, {"frozen batch norm"}),
    "config.model.in_channels": (1, {"input channels"}),
    "config.transform": ("cub128", {"augmentation", "crop size"}),
    "optimizer.name": ("Adam", {"optimizer"}),
    "optimizer.weight_decay": (0.01, {"optimizer"}),
    "optimizer.betas": ([0.5, 0.999], {"optimizer"}),
    "optimizer.eps": (1e-3, {"optimizer"}),
    "schedule.name": ("constant", {"schedule"}),
    "schedule.warmup": (1.0, {"schedule"}),
    "schedule.floor": (0.1, {"schedule"}),
    "config.sampler.init_args.classes": (16, {"batch size"}),
    "config.sampler.init_args.steps": (50, {"budget"}),
    "train.epochs": (40, {"budget"}),
    "train.metric": ("R@1", {"model selection"}),
    "train.validate_every": (2, {"model selection"}),
    "train.patience": (3, {"model selection"}),
    "train.trunk_warmup": (1, {"learning-rate multipliers"}),
    "train.accumulate": (4, {"batch size"}),
    "train.chunk": (8, {"images at once"}),
    "train.clip": (10.0, {"gradient clipping"}),
    "data.train.fingerprint": ("cc", {"training images"}),
    "data.val.fingerprint": ("cc", {"validation images"}),
    "data.test.description": ("40 of the 200 classes", {"test set"}),
    "tuned_on_test": (True, {"test-set feedback"}),
    "search.rounds": (50, {"search budget"}),
    "ended": (False, {"end of training"}),
    "groups.trunk.lr": (1e-5, {"learning rate", "learning-rate multipliers"}),
    "groups.head.lr": (1e-2, {"learning-rate multipliers"}),
    "model.parameters": (7, {"network as built"}),
}


@loop_over("path", UNFAIR)
def test_each_setting_is_found_and_nothing_else(path: str):
    value, expected = UNFAIR[path]
    said = base()
    place: Any = said
    for key in path.split(".")[:-1]:
        place = place[key]
    if path.startswith(("data", "groups", "model", "search", "tuned", "ended")):
        place[path.rpartition(".")[2]] = value
    else:
        said = changed(path, value)
    told = found(base(), said, severity="unfair")
    assert set(told) == expected
    assert all(each.why.endswith(").") for each in told.values()), "each says why, and who said so"


def leaves(tree: dict[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in tree.items():
        if isinstance(value, dict) and value:
            yield from leaves(value, f"{path}{key}.")
        else:
            yield f"{path}{key}", value


IGNORED = (
    "config.schema",
    "config.loss.",
    "config.language",
    "config.lens.",
    "config.out",
    "config.cache",
    "config.cache_on",
    "config.optimizer.lrs.proxies",
)
UNUSED = ("optimizer.momentum", "optimizer.alpha", "schedule.step", "schedule.gamma")
ENGINE = ("ks", "compile", "channels_last", "graph", "checkpoint_minutes", "log_every", "trackers", "on_collapse")


@loop_over("path", [path for path, _ in leaves({"config": _base()["config"]})])
def test_no_setting_of_a_configuration_slips_through(path: str):
    """Every leaf of a configuration is compared, or stands in a list of what belongs to the method or changes nothing."""
    short = path.removeprefix("config.")
    one, other = ({"config": base()["config"]} for _ in range(2))  # as of a trial that has not run yet
    place: Any = other
    for key in path.split(".")[:-1]:
        place = place[key]
    old = place[path.rpartition(".")[2]]
    place[path.rpartition(".")[2]] = "other" if old is None or isinstance(old, str | list) else old * 2 + 3
    if short.startswith("split.validation"):
        place["validation"] = 0.3
    if short == "scales":
        place["scales"] = [1.0, 0.8]
    if short == "model.freeze":
        place["freeze"] = "trunk"
    told = found(one, other)
    told.pop(NOT_RECORDED, None)
    ignored = path.startswith(IGNORED) or short in UNUSED or short in {f"train.{each}" for each in ENGINE}
    assert bool(told) != ignored, (path, list(told))


def test_the_method_is_not_a_difference():
    other = changed("config.loss", {"class_path": "likewise.losses.CircleLoss", "init_args": {"miner": None}})
    other["loss"] = "CircleLoss()"
    del other["groups"]["proxies"]
    other["optimizer"]["lrs"] = other["config"]["optimizer"]["lrs"] = {}
    assert found(base(), other) == {}


def test_a_learning_rate_of_the_loss_is_the_methods_own():
    other = base()
    other["groups"]["proxies"]["lr"] = 0.5
    assert found(base(), other) == {}


def test_settings_that_an_optimizer_does_not_use_do_not_matter():
    assert found(base(), changed("optimizer.momentum", 0.9)) == {}
    one, other = (changed("optimizer.name", "SGD") for _ in range(2))
    told = found(one, changed("optimizer.momentum", 0.9, other))
    assert str(told["optimizer"]) == "optimizer: momentum 0 (a), momentum 0.9 (b)"


def test_only_keys_that_differ_are_shown():
    told = found(base(), changed("optimizer.weight_decay", 0.01))
    assert dict(told["optimizer"].values) == {"a": {"weight_decay": 0.0001}, "b": {"weight_decay": 0.01}}


def test_multipliers_are_ratios():
    """Ten times all rates is another learning rate, and the same multiplier, whatever floats make of the ratio."""
    one, other = base(), base()
    for said, rate in ((one, 1e-4), (other, 3e-6)):
        said["groups"]["trunk"]["lr"], said["groups"]["head"]["lr"] = rate, rate * 10
    assert set(found(one, other)) == {"learning rate"}


@loop_over(
    "search, severity",
    [
        ({"rounds": 50, "searched": ["optimizer.lr", "loss.alpha"]}, "note"),
        ({"rounds": 50, "searched": ["loss.alpha"]}, "unfair"),
    ],
)
def test_a_learning_rate_that_was_searched_for_all_is_a_note(search: dict[str, Any], severity: str):
    one, other = base(), base()
    for said, rate in ((one, 1e-3), (other, 1e-4)):
        said["search"] = search
        said["groups"]["trunk"]["lr"] = said["groups"]["head"]["lr"] = rate
    assert found(one, other)["learning rate"].severity == severity


def test_a_search_of_unequal_length_does_not_excuse_a_learning_rate():
    one, other = base(), base()
    one["search"], other["search"] = ({"rounds": n, "searched": ["optimizer.lr"]} for n in (50, 20))
    other["groups"]["trunk"]["lr"] = other["groups"]["head"]["lr"] = 1.0
    assert set(found(one, other, severity="unfair")) == {"learning rate", "search budget"}


def test_batches_of_the_same_size_may_be_made_differently():
    """The reality check: 8 x 4 for embedding losses, 32 x 1 for classification losses."""
    one, other = base(), base()
    one["config"]["sampler"]["init_args"] |= {"classes": 8, "per_class": 4}
    other["config"]["sampler"]["init_args"] |= {"classes": 32, "per_class": 1}
    [told] = differences({"contrastive": one, "arcface": other})
    assert (told.what, told.severity) == ("batch composition", "note")
    pairs = base()
    pairs["config"]["sampler"] = {"class_path": "likewise.data.PairSampler", "init_args": {"classes": 16, "steps": 5}}
    assert set(found(one, pairs)) == {"batch composition"}


def test_default_steps_are_counted_from_the_images():
    one, other = base(), base()
    one["config"]["sampler"]["init_args"]["steps"] = None
    other["config"]["sampler"]["init_args"]["steps"] = 1438 // 128
    assert found(one, other) == {}


def test_the_same_images_split_in_other_words_are_the_same():
    assert found(base(), changed("config.split.validation", 0.1)) == {}
    other = changed("config.split.validation", 0.3)
    other["data"]["val"]["fingerprint"] = "cc"
    assert set(found(base(), other)) == {"validation images", "split"}


def test_checksums_are_not_compared_where_pixels_are_stored_in_other_sizes():
    other = changed("config.transform", "cub128")
    other["data"]["train"]["fingerprint"] = other["data"]["val"]["fingerprint"] = "cc"
    told = found(base(), other)
    assert told["training images"].severity == "note"
    assert "validation images" not in told
    other["data"]["train"]["classes"] = 7  # but other classes are other classes
    assert found(base(), other)["training images"].severity == "unfair"


def test_where_the_files_lie_is_no_difference():
    one, other = ({"config": base()["config"]} for _ in range(2))
    one["config"]["data"]["init_args"]["root"], other["config"]["data"]["init_args"]["root"] = "/a", "/b"
    assert set(found(one, other)) == {NOT_RECORDED}


@loop_over(
    "change, expected",
    [
        ({"tuned_on_test": True}, ("tuned on test",)),
        ({"openings": [{"finished": True}, {"finished": False}]}, ("test set opened before the end of training",)),
        ({"openings": [{"finished": True}]}, ()),
        ({"openings": 3}, ()),
        ({"data": {"train": {}, "val": None}}, ("no validation",)),
        ({"train": {"validate_every": 0}}, ("no validation",)),
        ({"config": {"split": {"validation": 0}}, "data": None}, ("no validation",)),
        ({"config": {"split": {"validation": 0, "folds": 4}}, "data": None}, ()),
    ],
)
def test_test_set_feedback(change: dict[str, Any], expected: tuple[str, ...]):
    assert read_conditions(base() | change).test_set_feedback == expected


def test_a_run_that_looked_at_the_test_set_is_not_like_one_that_did_not():
    told = found(base(), base() | {"openings": [{"finished": False}]})
    assert told["test-set feedback"].severity == "unfair"
    assert told["openings"].severity == "note"
    # equal feedback is no difference; it is marked in the table instead
    assert found(*(base() | {"tuned_on_test": True} for _ in range(2))) == {}


@loop_over(
    "key, value, what",
    [
        ("versions", {"torch": "9.9"}, "versions"),
        ("hardware", {"device": "NVIDIA H200"}, "hardware"),
        ("commit", "abc", "code"),
    ],
)
def test_surroundings_are_notes(key: str, value: Any, what: str):
    [told] = found(base(), base() | {key: value}).values()
    assert (told.what, told.severity) == (what, "note")


@loop_over("path, value, what", [("train.precision", "bf16", "precision"), ("train.ema", 0.99, "averaged weights")])
def test_precision_and_averages_are_notes(path: str, value: Any, what: str):
    [told] = found(base(), changed(path, value)).values()
    assert (told.what, told.severity) == (what, "note")


def several(seeds: int, **more: Any) -> list[dict[str, Any]]:
    return [base() | {"seed": seed} | more for seed in range(seeds)]


def test_methods_are_repeated_equally_often():
    told = differences({"a": several(5), "b": several(5), "c": several(3)})
    assert [str(each) for each in told] == ["number of seeds: 5 (a, b), 3 (c)"]
    assert differences({"a": several(5), "b": several(5)}) == []
    [shifted] = differences({"a": several(2), "b": several(3)[1:]})
    assert (shifted.what, shifted.severity) == ("seeds", "note")


def folds(numbers: Any) -> list[dict[str, Any]]:
    runs = []
    for fold in numbers:
        said = base()
        said["config"]["split"] |= {"folds": 4, "fold": fold}
        said["data"]["train"]["fingerprint"], said["data"]["val"]["fingerprint"] = f"t{fold}", f"v{fold}"
        runs.append(said)
    return runs


def test_folds_of_a_method_differ_among_themselves_but_not_from_those_of_another():
    assert differences({"a": folds(range(4)), "b": folds([3, 1, 0, 2])}) == []
    told = found(folds(range(4)), folds(range(3)))
    assert set(told) == {"folds", "training images", "validation images"}


def test_runs_of_one_name_must_agree():
    mixed = several(2)
    mixed[1]["config"]["model"]["dim"] = 512
    told = found(mixed, several(2))
    assert str(told["embedding size"]) == "embedding size: 64 and 512 (a), 64 (b)"
    assert set(found(deepcopy(mixed), deepcopy(mixed))) == {"embedding size"}, "equally mixed is mixed"
    tried = several(2)
    tried[1]["config"]["loss"]["init_args"]["margin"] = 0.7
    assert set(found(tried)) == {"loss of one name"}


def test_what_only_some_record_counts_as_different():
    other = base()
    del other["config"]["model"]["pool"], other["search"]
    told = found(base(), other, severity="unfair")
    assert set(told) == {"pooling", "search budget"}
    assert told["pooling"].values == {"a": "avg", "b": NOT_RECORDED}


def test_what_nobody_records_is_noted():
    [told] = differences({"a": {"seed": 0}, "b": {"seed": 0}})
    assert (told.what, told.severity) == (NOT_RECORDED, "note")
    assert "trunk" in str(told)
    assert "test-set feedback" in str(told)


def test_a_run_of_the_library_is_compared_by_what_it_has():
    """Without a configuration: the network by its size, rates by group, batches by their number."""
    one, other = (base() | {"config": None} for _ in range(2))
    one["data"] = other["data"] = {"train": {"batches": 7}, "val": None, "test": None}
    assert set(found(one, other)) == {NOT_RECORDED}
    other["model"] = {**other["model"], "parameters": 5}
    other["data"] = {"train": {"batches": 9}, "val": None, "test": None}
    assert set(found(one, other, severity="unfair")) == {"network as built", "budget"}


def test_values_are_compared_as_numbers():
    assert found(changed("config.split.validation", 0), changed("config.split.validation", 0.0)) == {}
    assert found(changed("optimizer.betas", (0.9, 0.999)), changed("optimizer.betas", [0.9, 0.999])) == {}


def test_unfair_differences_come_first():
    other = changed("config.model.dim", 512, changed("train.precision", "bf16"))
    assert [each.severity for each in differences({"a": base(), "b": other | {"commit": "x"}})] == [
        "unfair",
        "note",
        "note",
    ]


def test_conditions_are_read_from_a_run(tmp_path: Path):
    run = Run.create(tmp_path / "run", base())
    run.log("val", step=0, epoch=0.0)
    run.record_opening("too early", "best")
    conditions = read_conditions(run.folder, rounds=20, searched=["loss.alpha", "optimizer.lr"])
    assert conditions.test_set_feedback == ("test set opened before the end of training",)
    assert (conditions.is_finished, conditions.search_budget, conditions.seed) == (False, 20, 0)
    assert conditions.searched == {"learning rate"}


def test_every_condition_has_a_reason_with_its_source():
    assert all(rule.why.endswith(").") for rule in RULES.values())
    assert {rule.fallback for rule in RULES.values()} - {None} <= set(vars(Conditions()))


@loop_over("wrong", [{}, {"a": "run.yaml"}, {"a": []}, {"a": [3]}, {"a": None}, {"a": {"config": {}}}])
def test_bad_input_is_one_sentence(wrong: Any):
    with pytest.raises((TypeError, ValueError), match=r"^conditions\S* must "):
        unfair_differences(wrong)


def test_words():
    assert in_words({"steps": [1, 2.5], "ema": None}) == "steps 1 and 2.5, ema none"
