"""Which images are seen, which are held out, and that what is sealed is not read."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from likewise.app.errors import UserError
from likewise.app.parts import read_parts
from likewise.cli import main
from likewise.data import fixed_validation
from tests.cli.conftest import TRAIN, draw

FOLDER = {"class_path": "likewise.data.ImageFolder", "init_args": {"root": "photos"}}


def test_classes_of_a_folder_are_in_one_part_each():
    parts = read_parts(FOLDER, {"test": 0.25, "validation": 0.2, "seed": 5})
    assert parts.test is not None
    assert parts.classes is not None
    seen = parts.seen.class_names
    train = {seen[each] for each in parts.classes.train}
    val = {seen[each] for each in parts.classes.val}
    test = set(parts.test().class_names)
    assert train | val | test == {f"c{number:02d}" for number in range(12)}
    assert (len(train), len(val), len(test)) == (7, 2, 3)
    again = read_parts(FOLDER, {"test": 0.25, "validation": 0.2, "seed": 5})
    assert again.test is not None
    assert set(again.test().class_names) == test
    assert parts.sealed == "3 of the 12 classes of photos, drawn with seed 5"


def test_nothing_need_be_held_out():
    parts = read_parts(FOLDER, {"test": 0.0, "validation": 0.0})
    assert (parts.test, parts.classes, parts.val, len(parts.seen)) == (None, None, None, 72)


def test_by_default_at_least_two_classes_are_for_validation():
    parts = read_parts(FOLDER, {"test": 0.2})
    assert parts.classes is not None
    assert len(parts.classes.val) == 2


def test_too_few_classes_are_a_sentence(here: Path):
    draw(here / "few", classes=2, each=2)
    data = {"class_path": "likewise.data.ImageFolder", "init_args": {"root": "few"}}
    with pytest.raises(UserError, match=r"^--split.test: share must leave classes on both sides"):
        read_parts(data, {"test": 0.2})


def test_a_data_set_with_parts_of_its_own_uses_them():
    glyphs = {"class_path": "likewise.data.Glyphs", "init_args": {"images_per_class": 1}}
    parts = read_parts(glyphs, {"validation": None, "test": 0.2})
    assert parts.val is not None
    assert parts.classes is None
    assert [each.split for each in (parts.seen, parts.val)] == ["train", "val"]
    drawn = read_parts(glyphs, {"validation": 0.1})
    assert drawn.val is None
    assert drawn.classes is not None
    assert len(drawn.classes.val) == 72  # a tenth of the 719 training characters


WATCHED = """
from likewise.data import ImageFolder

ASKED = []

class Watched(ImageFolder):
    def __init__(self, root: str, split: str = "train"):
        ASKED.append(split)
        if split not in ("train", "test"):
            raise ValueError(f"split must be one of 'train', 'test', but it is {split!r}")
        super().__init__(root, name="watched")
"""


def test_the_test_part_is_not_even_listed_before_it_is_opened(here: Path):
    (here / "watched.py").write_text(WATCHED)
    flags = ["--data", "watched.Watched", "--data.root", "photos", "--out", "run"]
    assert main(["train", "--config", "quick.yaml", *flags, "--train.epochs", "1"]) == 0
    asked = sys.modules["watched"].ASKED
    assert "test" not in asked
    assert {"train", "val"} == set(asked)  # it has no val, and says so
    assert main(["evaluate", "run", "--allow", "watched"]) == 0
    assert "test" not in asked
    assert main(["evaluate", "run", "--test", "--allow", "watched"]) == 0
    assert asked.count("test") == 1
    sys.modules.pop("watched")


def test_sealed_images_of_a_folder_are_not_read_before_they_are_opened(here: Path, capsys: pytest.CaptureFixture[str]):
    """They are all broken; only whoever reads them can notice."""
    draw(here / "sealed")
    names = sorted(each.name for each in (here / "sealed").iterdir())
    for number in fixed_validation(12, share=0.2, seed=0).val:
        for file in (here / "sealed" / names[number]).iterdir():
            file.write_bytes(b"no image")
    flags = ["--config", "quick.yaml", "--data", "ImageFolder", "--data.root", "sealed", "--out", "run"]
    assert main(["train", *flags, "--train.epochs", "1"]) == 0
    assert main(["evaluate", "run"]) == 0
    assert "cannot be read" not in capsys.readouterr().err
    assert main(["evaluate", "run", "--test"]) == 2
    assert (
        "likewise: none of the 12 images of sealed, test: 12 images of 2 classes can be read" in capsys.readouterr().err
    )


def _table(here: Path, rows: list[str], header: str = "path,label,split") -> dict[str, object]:
    (here / "table.csv").write_text("\n".join([header, *rows]))
    return {"class_path": "likewise.data.ImageTable", "init_args": {"path": "table.csv"}}


def test_a_table_has_the_parts_of_its_split_column(here: Path):
    rows = [
        f"photos/c{c:02d}/{i}.png,c{c},{'train' if c < 6 else 'val' if c < 8 else 'test'}"
        for c in range(12)
        for i in range(2)
    ]
    parts = read_parts(_table(here, rows), {"test": 0.2})
    assert parts.val is not None
    assert parts.test is not None
    assert (len(parts.seen.class_names), len(parts.val.class_names), len(parts.test().class_names)) == (6, 2, 4)
    parts = read_parts(_table(here, [row for row in rows if not row.endswith("test")]), {"test": 0.2})
    assert parts.test is None  # its classes were divided by hand; none is taken from them


def test_a_table_without_a_split_column_is_cut_by_classes(here: Path):
    rows = [f"photos/c{c:02d}/{i}.png,c{c}" for c in range(12) for i in range(2)]
    parts = read_parts(_table(here, rows, "path,label"), {"test": 0.25})
    assert parts.test is not None
    assert len(parts.test().class_names) == 3
    assert not set(parts.test().class_names) & set(parts.seen.class_names)


def test_a_fault_of_a_data_set_is_not_taken_for_a_missing_part(here: Path):
    (here / "faulty.py").write_text(WATCHED.replace("split must be one of 'train', 'test'", "the list is damaged"))
    with pytest.raises(UserError, match="the list is damaged"):
        read_parts({"class_path": "faulty.Watched", "init_args": {"root": "photos"}}, {})
    sys.modules.pop("faulty")


def test_a_missing_folder_is_one_line(capsys: pytest.CaptureFixture[str]):
    assert main([*TRAIN[:-1], "nowhere"]) == 2
    expected = (
        "likewise: the data set: root must be a folder with one folder for each class, but nowhere is not a folder\n"
    )
    assert capsys.readouterr().err == expected
