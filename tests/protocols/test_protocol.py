"""Protocols as values: what they cut, what may be looked at, and what they say of themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from likewise.app.errors import UserError
from likewise.app.parts import read_parts
from likewise.protocols.protocol import PROTOCOLS, fixed_share, k_fold
from likewise.testing import loop_over
from tests.train.small import draw

FOLDED = {"k": k_fold(3), "contiguous": k_fold(3, contiguous=True), "seeded": k_fold(3, seed=5)}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Ten classes of two images, without parts of their own."""
    folder = tmp_path_factory.mktemp("protocol")
    draw(folder, classes=10, images=2)
    return {"class_path": "likewise.data.ImageFolder", "init_args": {"root": str(Path(folder) / "images")}}


@pytest.mark.parametrize("name", FOLDED)
def test_every_training_class_is_for_validation_once(name: str, data: dict[str, Any]):
    cuts = [read_parts(data, {"test": 0.2, **fold}).classes for fold in FOLDED[name].folds]
    assert all(cut is not None for cut in cuts)
    held = [number for cut in cuts if cut is not None for number in cut.val]
    assert sorted(held) == list(range(8))
    for cut in cuts:
        assert cut is not None
        assert set(cut.train) | set(cut.val) == set(range(8))
        assert not set(cut.train) & set(cut.val)
    if name == "contiguous":
        assert held == list(range(8))


def test_the_test_classes_are_the_same_in_every_fold(data: dict[str, Any]):
    parts = [read_parts(data, {"test": 0.2, **fold}) for fold in k_fold(4).folds]
    assert len({each.sealed for each in parts}) == 1
    assert len({tuple(each.test().class_names) for each in parts if each.test is not None}) == 1


def test_the_papers_protocols():
    assert [len(PROTOCOLS[name].folds) for name in ("thesis-folds", "reality-check")] == [10, 4]
    assert PROTOCOLS["fixed-validation"].folds == ({"validation": 0.1, "seed": 0},)
    assert PROTOCOLS["own-validation"].folds == ({"validation": None, "seed": 0},)
    assert PROTOCOLS["classic"].folds == ({"validation": 0.0},)
    assert [name for name, each in PROTOCOLS.items() if each.tuned_on_test] == ["classic"]


def test_each_says_of_itself_what_it_does():
    said = {name: str(protocol) for name, protocol in PROTOCOLS.items()}
    assert "marked" in said["classic"]
    assert "10 folds" in said["thesis-folds"]
    assert "at random" in said["thesis-folds"]
    assert "in their order" in said["reality-check"]
    assert "validation part of the data set" in said["own-validation"]
    assert len(set(said.values())) == len(said)


@loop_over("share", [0, 0.0, 1.0, 2, -0.1, True, "a"])
def test_a_share_is_between_none_and_all(share: Any):
    with pytest.raises(ValueError, match="share must be a number in"):
        fixed_share(share)


@loop_over("given, what", [({"folds": 1}, "folds"), ({"folds": 2.0}, "folds"), ({"seed": -1}, "seed")])
def test_strange_folds_are_refused(given: dict[str, Any], what: str):
    with pytest.raises(ValueError, match=f"{what} must be a whole number"):
        k_fold(**given)


@pytest.mark.parametrize(
    ("split", "words"),
    [
        ({"folds": 0}, "folds must be a whole number ≥ 2, but it is 0"),
        ({"folds": 1}, "folds must be a whole number ≥ 2, but it is 1"),
        ({"folds": 3, "fold": 3}, "fold must be below folds, 3, but it is 3"),
        ({"folds": 3, "fold": -1}, "fold must be a whole number ≥ 0, but it is -1"),
        ({"folds": 3, "validation": 0.1}, "validation cannot be combined with folds, but it is 0.1"),
        ({"folds": 3, "validation": 0.0}, "validation cannot be combined with folds, but it is 0.0"),
        ({"fold": 1}, "fold must be given together with folds"),
        ({"contiguous": True}, "contiguous must be given together with folds"),
        ({"folds": 11}, "folds must not be more than"),
    ],
)
def test_a_split_without_effect_is_refused(split: dict[str, Any], words: str, data: dict[str, Any]):
    with pytest.raises(UserError) as refused:
        read_parts(data, {"test": 0.2, **split})
    assert words in str(refused.value)
