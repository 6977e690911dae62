"""A trial and its result as data: the same on every machine, and in one table."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from typing import Any

import pytest

from likewise.protocols.trial import Result, Trial, table
from likewise.testing import loop_over

TRIAL = Trial("circle", {"loss": {"b": 1, "a": [0.5, None]}}, 3, 1, "search", {"loss.gamma": 64.0, "dim": 8})


def test_a_key_is_the_checksum_of_the_sorted_json():
    text = (
        '{"config":{"loss":{"a":[0.5,null],"b":1}},"fold":1,"labels":{"dim":8,"loss.gamma":64.0},'
        '"method":"circle","seed":3,"stage":"search"}'
    )
    assert TRIAL.key == hashlib.sha256(text.encode()).hexdigest()[:16]
    turned = Trial("circle", {"loss": {"a": [0.5, None], "b": 1}}, 3, 1, "search", {"dim": 8, "loss.gamma": 64.0})
    assert turned.key == TRIAL.key


@loop_over(
    "change",
    [
        {"method": "circlé"},
        {"config": {"loss": {"b": 2, "a": [0.5, None]}}},
        {"seed": 4},
        {"fold": 0},
        {"stage": "final"},
        {"labels": {}},
    ],
)
def test_whatever_changes_changes_the_key(change: dict[str, Any]):
    changed = dataclasses.replace(TRIAL, **change)
    assert changed.key != TRIAL.key
    assert len(changed.key) == 16


def test_both_survive_json():
    result = Result(TRIAL, "pruned", {"MAP@R": 0.25}, {}, "runs/x", 1.5, "likewise train", "cpu", "why", 2, True)
    again = Result.from_dict(json.loads(json.dumps(result.to_dict())))
    assert again == result
    assert again.key == TRIAL.key


@loop_over(
    "given, words",
    [
        ({"seed": -1}, "seed must be a whole number ≥ 0, but it is -1"),
        ({"seed": True}, "seed must be a whole number ≥ 0, but it is True"),
        ({"fold": 0.5}, "fold must be a whole number ≥ 0, but it is 0.5"),
        ({"stage": "test"}, "stage must be"),
        ({"labels": {"method": "another"}}, "but one is 'method'"),
        ({"labels": {"seed": 7}}, "but one is 'seed'"),
        ({"labels": {"test MAP@R": 1.0}}, "but one is 'test MAP@R'"),
    ],
)
def test_what_is_no_trial_is_refused_in_a_sentence(given: dict[str, Any], words: str):
    with pytest.raises(ValueError, match=words.replace("(", r"\(")):
        Trial(**{"method": "a", "config": {}, **given})


def test_an_unknown_status_is_refused():
    with pytest.raises(ValueError, match="status must be"):
        Result(TRIAL, "finished")  # type: ignore[arg-type]


def test_the_table_has_the_same_columns_in_every_row():
    rows = table(
        [
            Result(Trial("a", {}), "failed", error="it did not work"),
            Result(Trial("b", {}, 1, labels={"dim": 8}), val={"R@1": 0.5}, test={"R@1": 0.25}, openings=1),
        ]
    )
    assert list(rows[0]) == list(rows[1])
    assert (rows[0]["dim"], rows[0]["test R@1"], rows[0]["error"]) == (None, None, "it did not work")
    assert (rows[1]["method"], rows[1]["dim"], rows[1]["seed"]) == ("b", 8, 1)
    assert (rows[1]["val R@1"], rows[1]["test R@1"], rows[1]["openings"]) == (0.5, 0.25, 1)
    assert table([]) == []
