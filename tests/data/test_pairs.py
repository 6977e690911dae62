"""Tables of pairs: which rows are of one class, and batches without false negatives."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from likewise.data import PairLoader, PairTable, PerClassSampler, RowLoader, Sides
from tests.two_sides import write_squares


def write(folder, *rows):
    table = folder / "pairs.csv"
    table.write_text("\n".join(rows))
    return table


def test_what_shares_a_sample_or_a_label_is_of_one_class(tmp_path):
    pairs = PairTable(write(tmp_path, "text,text", "a,x", "b,x", "b,y", "c,z", "d,w"))
    assert pairs.sides == ("text", "text_2")
    assert pairs.row_labels.tolist() == [0, 0, 0, 1, 2]
    assert pairs.labels.tolist() == [0, 0, 1, 2, 0, 0, 1, 2]  # a b c d, x y z w
    assert pairs.is_query.tolist() == [True] * 4 + [False] * 4
    assert pairs.class_names == ("x", "z", "w")
    labeled = PairTable(write(tmp_path, "text_2,label,text", "x,7,a", "x,8,b", "z,9,c", "w,8,d"))
    assert labeled.cells(0) == ("a", "b", "c", "d")
    assert labeled.row_labels.tolist() == [0, 0, 1, 0]
    assert labeled.class_names == ("7", "9")


def test_a_subset_keeps_whole_pairs(tmp_path):
    pairs = PairTable(write_squares(tmp_path))
    assert repr(pairs) == "squares: 36 images and 18 texts of 18 classes"
    some = pairs.of_classes([3, 17])
    assert some.cells(1) == ("a dark green square", "a bright pink square")
    assert some.rows.tolist() == [[0, 0], [1, 0], [2, 1], [3, 1]]
    assert some.labels.tolist() == [0, 0, 1, 1, 0, 1]
    assert some.images(0).source(2).endswith("bright-pink-0.png")
    assert some.fingerprint != pairs.fingerprint
    assert some.image(4).size == (160, 160), "a picture of a text"
    assert some.without([0]).rows.tolist() == [[0, 0], [1, 1], [2, 1]]


def test_no_batch_has_a_false_negative(tmp_path):
    """120 rows of 40 images and 30 texts, drawn at random: no two rows of a batch share an image or a text."""
    chance = np.random.default_rng(1)
    rows = [f"i{chance.integers(80)},t{chance.integers(90)}" for _ in range(60)]
    pairs = PairTable(write(tmp_path, "text,text", *rows))
    classes = len(pairs.class_names)
    assert 8 <= classes < 60, "some rows are joined"
    sampler = PerClassSampler(pairs.row_labels, classes=8, per_class=1)
    tokens = [torch.arange(1, 1 + len(pairs.cells(side)))[:, None] for side in (0, 1)]
    labels = [pairs.labels[pairs.is_query], pairs.labels[~pairs.is_query]]
    loader = PairLoader(pairs, sampler, *(RowLoader(t, y, []) for t, y in zip(tokens, labels, strict=True)))
    listed = {tuple(row) for row in pairs.rows.tolist()}
    for _ in range(3):
        for batch in loader:
            found = torch.cat([batch.images.anchors, batch.images.references], dim=1) - 1  # tokens are positions
            assert {tuple(row) for row in found.tolist()} <= listed
            assert all(len(found[:, side].unique()) == len(found) for side in (0, 1))
            assert torch.equal(batch.labels[0::2], batch.labels[1::2])
            assert torch.equal(batch.labels[0::2], labels[0][found[:, 0]])
            meets = {(int(a), int(b)) for a in found[:, 0] for b in found[:, 1]} & listed
            assert meets == {tuple(row) for row in found.tolist()}, "no listed pair is taken for a negative"


def test_sides_are_split_pair_by_pair():
    sides = Sides(torch.arange(5), 10 + torch.arange(5))
    parts = sides.tensor_split(2)
    assert [part.anchors.tolist() for part in parts] == [[0, 1, 2], [3, 4]]
    assert [part.references.tolist() for part in parts] == [[10, 11, 12], [13, 14]]
    assert len(Sides(None, torch.zeros(3, 2))) == 3


def test_errors_name_the_column(tmp_path):
    for rows, message in (
        (["text,label", "a,b"], "must have two of the columns image, image_2, text, text_2, but it has 'text'"),
        (["image,text", "a.png,x"], "line 2, column 'image': it must be a file in"),
        (["text,text_2", "a,"], "line 2, column 'text_2': it must be a text, but it is ''"),
        (["text,text,text", "a,b,c"], "must name each column once, but it names 'text' twice"),
    ):
        with pytest.raises(ValueError, match=r"pairs\.csv") as error:
            PairTable(write(tmp_path, *rows))
        assert message in str(error.value)
    with pytest.raises(ValueError, match="split must be one of 'train'"):
        PairTable(write(tmp_path, "text,text,split", "a,b,train"), split="test")
