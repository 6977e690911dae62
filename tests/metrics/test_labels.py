from __future__ import annotations

import random

import numpy as np
import pytest
import torch

from likewise.metrics.labels import encode_labels


class Column:
    """What a pandas column looks like from here."""

    ndim = 1

    def __init__(self, values: list[object]) -> None:
        self.values = values

    def __iter__(self):
        return iter(self.values)

    def tolist(self) -> list[object]:
        return self.values


BIRDS = ["wren", "albatross", "wren", "tern", "Émeu"]


@pytest.mark.parametrize(
    "labels",
    [
        BIRDS,
        tuple(BIRDS),
        np.array(BIRDS),
        np.array(BIRDS, dtype=object),
        Column(BIRDS),
        [b"b", b"a"],
        [("bird", "wren"), ("bird", "tern"), ("ape", "gorilla")],
        np.array([2**40, -3, 2**40]),
        torch.tensor([2**24 + 1, 2**24, -7]),
        np.array(["2020-01-02", "2020-01-01"], dtype="datetime64[D]"),
        [True, False],
        [0.5, 2, -1],
    ],
    ids=lambda labels: type(labels).__name__,
)
def test_codes_name_what_was_given(labels):
    codes, names = encode_labels(labels)
    assert codes.dtype == torch.int64
    values = labels.tolist() if hasattr(labels, "tolist") else list(labels)
    assert [names[code] for code in codes] == values
    assert list(names) == sorted(set(values))
    assert set(codes.tolist()) == set(range(len(names)))


def test_the_order_of_the_samples_does_not_matter():
    labels = [random.Random(0).choice("qwertz") for _ in range(100)]
    codes, names = encode_labels(labels)
    order = torch.randperm(100, generator=torch.Generator().manual_seed(0))
    shuffled, again = encode_labels([labels[index] for index in order])
    assert again == names
    assert torch.equal(shuffled, codes[order])


def test_a_gallery_takes_the_codes_of_the_queries():
    _, names = encode_labels(["b", "a", "c"])
    codes, again = encode_labels(np.array(["c", "a"]), names)
    assert again == ("a", "b", "c")
    assert codes.tolist() == [2, 0]
    assert encode_labels([], names)[0].tolist() == []


def test_names_keep_their_order():
    assert encode_labels(["a", "b"], ["b", "a"])[0].tolist() == [1, 0]


@pytest.mark.parametrize(
    ("labels", "names", "kind", "message"),
    [
        (["a", "z"], ["a", "b"], ValueError, "labels must be among the 2 names, but one is 'z'"),
        (["a"], ["a", "b", "a"], ValueError, "names must be different from each other, but 'a' is there twice"),
        ("abc", None, TypeError, "labels must be several labels, but it is one string, 'abc'"),
        (["a"], "a", TypeError, "names must be several labels, but it is one string, 'a'"),
        (7, None, TypeError, "labels must be one label per sample, but it is a int"),
        (np.zeros((2, 2)), None, ValueError, r"labels must have shape \(n,\), but it has 2 dimensions"),
        ([["a"]], None, TypeError, "labels must be hashable, but entry 0 is a list"),
        (["a", 1], None, TypeError, "labels must be of one kind that can be sorted, but they are of int, str"),
        (["a", None], None, ValueError, "labels must not be missing, but entry 1 is None"),
        (np.array([0.0, np.nan]), None, ValueError, "labels must not be missing, but entry 1 is nan"),
    ],
)
def test_refusals(labels, names, kind, message):
    with pytest.raises(kind, match=message):
        encode_labels(labels, names)


def test_single_numbers_in_tensors_are_numbers():
    """What a list of a data set's labels often is."""
    assert encode_labels([torch.tensor(4), torch.tensor(2), torch.tensor(4)])[0].tolist() == [1, 0, 1]
