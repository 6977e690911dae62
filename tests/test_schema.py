"""The table of what a schema changed: old names and values are read as the present ones, wherever they stand."""

from __future__ import annotations

import ast
import importlib
import inspect
from pathlib import Path
from typing import Any

import pytest

from likewise.app.objects import KINDS, import_class
from likewise.protocols.trial import Trial
from likewise.schema import CHANGES, PACKAGES, SCHEMA, schema_of, upgrade, upgrade_description, upgrade_setting

GML = {"class_path": "likewise.losses.ProxyGMLLoss", "init_args": {"neighbours": 4, "centers": 2}}
NEW = {"class_path": "likewise.losses.ProxyGMLLoss", "init_args": {"neighbors": 4, "centers": 2}}


def contrastive(*margins: float, **others: Any) -> dict[str, Any]:
    margins_by_name = dict(zip(("positive_margin", "negative_margin"), margins, strict=True))
    return {"class_path": "ContrastiveLoss", "init_args": {**margins_by_name, **others}}


def miner(*margins: float) -> dict[str, Any]:
    return {**contrastive(*margins), "class_path": "PairMarginMiner"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"loss": GML}, {"loss": NEW}),
        ({"loss": {"init_args": {"neighbours": 4}}}, {"loss": {"init_args": {"neighbors": 4}}}),
        (
            {"loss": {"class_path": "Matryoshka", "init_args": {"loss": GML, "dims": [8]}}},
            {"loss": {"class_path": "Matryoshka", "init_args": {"loss": NEW, "dims": [8]}}},
        ),
        ({"lens": {"every": 5, "beside": GML}}, {"lens": {"every": 5, "compare_with": NEW}}),
        # another class, and another place, may have the word
        ({"loss": {**GML, "class_path": "mine.Loss"}}, {"loss": {**GML, "class_path": "mine.Loss"}}),
        ({"data": {"class_path": "mine.Data", "init_args": {"neighbours": 4}}}, None),
        ({"loss": "ContrastiveLoss", "seed": 3}, None),
    ],
)
def test_a_renamed_argument_is_found_where_it_may_stand(old: dict[str, Any], new: dict[str, Any] | None):
    assert upgrade(old) == {"schema": SCHEMA, **(new or old)}


@pytest.mark.parametrize(
    ("old", "new"), [("streamed", "chunked"), ("fused", "triton"), ("auto", "auto"), ("dense", "dense")]
)
def test_engines_have_other_names(old: str, new: str):
    loss = {"class_path": "CircleLoss", "init_args": {"backend": old}}
    assert upgrade({"loss": loss})["loss"]["init_args"] == {"backend": new}


@pytest.mark.parametrize(
    "similarity", ["euclidean", "squared_euclidean", "snr", {"class_path": "likewise.core.Euclidean"}]
)
def test_margins_of_a_distance_are_distances(similarity: Any):
    """``[s − m]₊`` with s = −d and m = −1 is ``[1 − d]₊``: the margin is 1."""
    said = upgrade({"loss": contrastive(0.0, -1.0, similarity=similarity, miner=miner(-0.2, -1.4))})["loss"][
        "init_args"
    ]
    assert (said["positive_margin"], said["negative_margin"]) == (0.0, 1.0)
    assert said["miner"]["init_args"] == {"positive_margin": 0.2, "negative_margin": 1.4}


def test_margins_of_a_similarity_stay():
    for similarity in ({}, {"similarity": "cosine"}, {"similarity": "dot"}):
        loss = contrastive(1.0, 0.5, **similarity, miner=miner(0.8, 0.3))
        assert upgrade({"loss": loss})["loss"] == loss
    snr = {**contrastive(0.3, 0.8, similarity="snr"), "class_path": "SNRContrastiveLoss"}  # they were distances before
    assert upgrade({"loss": snr})["loss"] == snr
    inside = {
        "class_path": "MarginLoss",
        "init_args": {"miner": miner(-0.5, -1.0)},
    }  # whose similarity is the Euclidean one
    assert upgrade({"loss": inside})["loss"]["init_args"]["miner"] == miner(0.5, 1.0)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("likewise.losses.pair.CircleLoss", "likewise.losses.CircleLoss"),
        ("likewise.data.samplers.PerClassSampler", "likewise.data.PerClassSampler"),
        ("likewise.core.similarity.Euclidean", "likewise.formula.Euclidean"),
        ("likewise.core.Euclidean", "likewise.formula.Euclidean"),
        ("mine.losses.pair.Own", "mine.losses.pair.Own"),
        ("CircleLoss", "CircleLoss"),
    ],
)
def test_a_class_is_named_by_its_package(old: str, new: str):
    assert upgrade({"loss": {"class_path": old}})["loss"]["class_path"] == new
    if new.startswith("likewise."):
        assert import_class(new).__name__ == new.rpartition(".")[2]


def test_the_present_schema_stays_as_it_is():
    config = {"schema": SCHEMA, "loss": contrastive(0.0, -1.0, similarity="euclidean"), "seed": 1}
    assert upgrade(config) == config
    assert upgrade(upgrade({"loss": GML})) == upgrade({"loss": GML})
    old = contrastive(0.0, -1.0, similarity="euclidean")
    assert upgrade(upgrade({"loss": old}))["loss"]["init_args"]["negative_margin"] == 1.0


@pytest.mark.parametrize("schema", [0, SCHEMA + 1, "2", None, True])
def test_a_schema_that_nobody_knows_is_refused(schema: Any):
    with pytest.raises(ValueError, match=f"schema must be a whole number from 1 to {SCHEMA}, but it is {schema!r}"):
        schema_of({"schema": schema})


def test_settings_by_their_paths():
    assert upgrade_setting("loss.loss.neighbours", 4, 1) == ("loss.loss.neighbors", 4)
    assert upgrade_setting("loss.init_args.neighbours", 4, 1) == ("loss.neighbors", 4)
    assert upgrade_setting("loss.backend", ["streamed", "dense"], 1) == ("loss.backend", ["chunked", "dense"])
    assert upgrade_setting("neighbours", 4, 1) == ("neighbours", 4)
    assert upgrade_setting("loss.neighbours", 4, SCHEMA) == ("loss.neighbours", 4)


def test_a_description_has_settings_twice():
    said = {
        "likewise": "0.1.0",
        "config": {"loss": GML},
        "plan": {"epochs": 3},
        "optimizer": {"lr": 0.1},
        "loss": "ProxyGMLLoss()",
    }
    found = upgrade_description(said)
    rest = {key: value for key, value in said.items() if key != "plan"}
    assert found == {**rest, "train": {"epochs": 3}, "config": {"schema": SCHEMA, "loss": NEW}}
    assert upgrade_description({**found, "schema": SCHEMA}) == {**found, "schema": SCHEMA}
    assert upgrade_description({"seed": 1, "config": None}) == {"seed": 1, "config": None}


def test_a_trial_of_an_older_schema_is_another_one():
    old = Trial("gml", {"loss": GML, "seed": 1}, 1, labels={"loss.neighbours": 4, "dim": 8})
    new = Trial("gml", {"schema": SCHEMA, "loss": NEW, "seed": 1}, 1, labels={"loss.neighbors": 4, "dim": 8})
    assert old.upgrade() == new == new.upgrade()
    assert old.upgrade().key == new.key != old.key
    assert Trial.from_dict(old.to_dict()).key == old.key  # a study finds its trials by it


def test_the_table_names_what_there_is():
    """Every new name is an argument of its class, so that no entry leads nowhere."""
    for change in CHANGES:
        if change.of is None:
            continue
        kind = KINDS["miner" if change.key.startswith("loss.miner.") else "loss"]
        taken = inspect.signature(import_class(f"{kind.room}.{change.of}")).parameters
        assert (change.name or change.key.rpartition(".")[2]) in taken


def test_packages_of_the_table_are_there():
    for package in PACKAGES.values():
        importlib.import_module(f"likewise.{package}")


def test_old_names_are_nowhere_else():
    """What reads a configuration calls `upgrade`; nothing else knows a name that a schema has changed."""
    source = Path(__file__).parents[1] / "src" / "likewise"
    # these words have other uses, too
    old = {change.key.rpartition(".")[2] for change in CHANGES if change.name} - {"plan", "images", "beside"}
    old |= {"streamed", "fused"}
    for path in source.rglob("*.py"):
        if path.name == "schema.py":
            continue
        said = {node.value for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Constant)}
        assert not said & old, path
