"""Splits of classes: disjoint, complete, the same everywhere, and safe on disk."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from likewise.data.dataset import ImageDataset
from likewise.data.splits import Split, contiguous_folds, fixed_validation, half_split, random_folds


class Blank(ImageDataset):
    def image(self, index: int) -> Image.Image:
        return Image.new("RGB", (2, 2))

    def source(self, index: int) -> str:
        return f"blank {index}"


def blank(classes: int, each: int = 2) -> Blank:
    return Blank("blank", torch.arange(classes).repeat_interleave(each), [f"c{number}" for number in range(classes)])


def test_the_classic_split_is_half_and_half():
    split = half_split(200)
    assert split.train == tuple(range(100))
    assert split.test == tuple(range(100, 200))
    assert split.val == ()
    assert (half_split(5).train, half_split(5).test) == ((0, 1), (2, 3, 4))


@pytest.mark.parametrize(("share", "count"), [(0.3, 30), (0.2, 20), (0.1, 10), (0.05, 5), (0.5, 50), (0.126, 13)])
def test_the_ratios_of_the_thesis(share: float, count: int):
    split = fixed_validation(half_split(200), share=share, seed=4)
    assert len(split.val) == count
    assert sorted(split.train + split.val) == list(range(100))
    assert split.test == tuple(range(100, 200))
    assert split.val != tuple(range(count))  # at random
    assert split == fixed_validation(half_split(200), share=share, seed=4)
    assert split.val != fixed_validation(half_split(200), share=share, seed=5).val


def test_ten_random_folds_use_every_class_once_for_validation():
    folds = random_folds(half_split(200), seed=1)
    assert len(folds) == 10
    assert [len(fold.val) for fold in folds] == [10] * 10
    assert sorted(each for fold in folds for each in fold.val) == list(range(100))
    for fold in folds:
        assert set(fold.train) == set(range(100)) - set(fold.val)
        assert fold.test == tuple(range(100, 200))
        assert fold.seed == 1
    assert folds[0].val != tuple(range(10))
    assert len({fold.checksum for fold in folds}) == 10


def test_four_contiguous_folds_are_an_eighth_of_all_classes_each():
    folds = contiguous_folds(half_split(200))
    assert [(fold.val[0], fold.val[-1], len(fold.val)) for fold in folds] == [
        (0, 24, 25),
        (25, 49, 25),
        (50, 74, 25),
        (75, 99, 25),
    ]
    assert all(fold.seed is None for fold in folds)


@settings(max_examples=50, deadline=None)
@given(st.integers(2, 60), st.integers(2, 60), st.integers(0, 2**40), st.booleans())
def test_folds_are_a_partition_with_even_sizes(classes: int, count: int, seed: int, random: bool):
    if count > classes:
        with pytest.raises(ValueError, match=f"folds must not be more than the {classes} training classes"):
            contiguous_folds(classes, folds=count)
        return
    folds = random_folds(classes, folds=count, seed=seed) if random else contiguous_folds(classes, folds=count)
    sizes = [len(fold.val) for fold in folds]
    assert max(sizes) - min(sizes) <= 1
    assert sorted(each for fold in folds for each in fold.val) == list(range(classes))
    assert all(sorted(fold.train + fold.val) == list(range(classes)) for fold in folds)


def test_the_choice_is_the_same_on_every_machine():
    """Raw words of PCG64, sorted; numpy's own generator, asked for whole words, gives the same ones."""
    words = np.random.Generator(np.random.PCG64(np.random.SeedSequence(7, spawn_key=()))).integers(
        0, 2**64, size=20, dtype=np.uint64
    )
    expected = sorted(sorted(range(20), key=lambda place: words[place])[:5])
    split = fixed_validation(20, share=0.25, seed=7)
    assert list(split.val) == expected == [3, 4, 6, 11, 12]


def test_it_prints_what_it_is():
    split = Split("mine", 1200, train=range(1100), val=[1100])
    assert str(split) == f"mine: 1,200 classes, 1,100 train, 1 val, 0 test, 99 in no part ({split.checksum[:8]})"


def test_the_checksum_is_that_of_plain_json():
    said = '{"classes":4,"name":"x","seed":null,"test":[3],"train":[0,2],"val":[1]}'
    assert Split("x", 4, [2, 0], [1], [3]).checksum == hashlib.sha256(said.encode()).hexdigest()


def test_the_checksum_covers_everything():
    base = {"name": "a", "classes": 6, "train": (0, 1), "val": (2,), "test": (3,), "seed": 1}
    changes = [{"name": "b"}, {"classes": 7}, {"train": (0,)}, {"val": (4,)}, {"test": ()}, {"seed": 2}]
    sums = {Split(**{**base, **change}).checksum for change in [{}, *changes]}
    assert len(sums) == 7
    assert Split(**{**base, "train": (1, 0)}).checksum == Split(**base).checksum  # a part is a set


def test_saved_and_loaded(tmp_path: Path):
    split = fixed_validation(half_split(40), share=0.2, seed=3)
    split.save(tmp_path / "split.json")
    assert Split.load(tmp_path / "split.json") == split
    assert [path.name for path in tmp_path.iterdir()] == ["split.json"]
    assert json.loads((tmp_path / "split.json").read_text())["checksum"] == split.checksum


def test_a_changed_file_is_refused(tmp_path: Path):
    path = tmp_path / "split.json"
    fixed_validation(40, seed=3).save(path)
    content = json.loads(path.read_text())
    content["train"], content["val"] = content["train"][1:], content["val"] + content["train"][:1]
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=r"split\.json must have the checksum that it states, .* it was changed after"):
        Split.load(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "must be a saved split, but it is not JSON"),
        ("[1]", "must be a saved split of the format 'likewise split 1', but it is not"),
        ('{"format": "likewise split 2"}', "must be a saved split of the format"),
        ('{"format": "likewise split 1", "name": ""}', "must be a saved split, but classes is missing"),
    ],
)
def test_another_file_is_refused(tmp_path: Path, content: str, message: str):
    (tmp_path / "x.json").write_text(content)
    with pytest.raises(ValueError, match=message):
        Split.load(tmp_path / "x.json")


def test_a_save_that_dies_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "split.json"
    old = half_split(10)
    old.save(path)

    def die(*_: object) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr("os.fsync", die)
    with pytest.raises(OSError, match="the disk is full"):
        half_split(20).save(path)
    assert Split.load(path) == old
    assert [each.name for each in tmp_path.iterdir()] == ["split.json"]


def test_a_save_syncs_the_file_and_then_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """What a power failure needs: without a sync of the folder, the rename may be lost after the answer."""
    synced, real = [], os.fsync

    def sync(handle: int) -> None:
        real(handle)
        synced.append(os.readlink(f"/proc/self/fd/{handle}"))

    monkeypatch.setattr(os, "fsync", sync)
    half_split(10).save(tmp_path / "split.json")
    assert len(synced) == 2
    assert synced[0].endswith(".part")
    assert synced[1] == str(tmp_path)


def test_applied_to_a_data_set():
    data = blank(6, each=3)
    parts = Split("mine", 6, train=[0, 2, 5], test=[1]).apply(data)
    assert list(parts) == ["train", "test"]
    assert parts["train"].class_names == ("c0", "c2", "c5")
    assert parts["train"].labels.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert parts["test"].class_names == ("c1",)
    assert parts["train"].source(8) == "blank 17"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: half_split(10).apply(blank(9)), "dataset must have the 10 classes that .* but blank has 9"),
        (lambda: half_split(1), "classes must be a whole number ≥ 2, but it is 1"),
        (lambda: half_split(2.5), "classes must be a whole number ≥ 2, but it is 2.5"),
        (
            lambda: fixed_validation(100, share=0.004),
            "share must leave classes on both sides, but 0.004 of 100 .* is 0",
        ),
        (lambda: fixed_validation(10, share=0.96), "share must leave classes on both sides, but 0.96 of 10 .* is 10"),
        (lambda: fixed_validation(100, share=10), "share must be between 0 and 1, but it is 10"),
        (lambda: fixed_validation(100, share=float("nan")), "share must be between 0 and 1, but it is nan"),
        (lambda: fixed_validation(100, share="x"), "share must be between 0 and 1, but it is 'x'"),
        (lambda: fixed_validation(100, seed=-1), "seed must be a whole number ≥ 0, but it is -1"),
        (lambda: fixed_validation("cub"), "of must be a split or a number of classes, but it is 'cub'"),
        (lambda: fixed_validation(fixed_validation(10)), "of must be a split without validation classes"),
        (lambda: random_folds(5, folds=6), "folds must not be more than the 5 training classes, but it is 6"),
        (lambda: contiguous_folds(5, folds=1), "folds must be a whole number ≥ 2, but it is 1"),
        (lambda: Split("x", 3, [0, 0]), "train must have every class once, but it has class 0 twice"),
        (lambda: Split("x", 3, [3]), "every class of train must be below 3, the number of classes, but one is 3"),
        (lambda: Split("x", 3, [-1]), "every class of train must be a whole number ≥ 0, but it is -1"),
        (lambda: Split("x", 3, [0], [1], [0]), "train and test must have no class in common, but both have class 0"),
        (lambda: Split(3, 3, [0]), "name must be a string, but it is 3"),
    ],
)
def test_one_sentence(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()
