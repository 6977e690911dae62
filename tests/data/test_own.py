"""A user's own data: folders, tables, and data sets of other libraries."""

from __future__ import annotations

import pickle
import sys
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
import torch
from PIL import Image
from torch.utils.data import Subset

from likewise.data import BrokenImage, ImageDataset, ImageFolder, ImageTable, find_broken, from_dataset
from tests.data.layouts import draw


def files(dataset: ImageDataset) -> list[str]:
    return [Path(dataset.source(index)).name for index in range(len(dataset))]


def test_a_folder_for_each_class(tmp_path: Path):
    for path in ("wren/b.png", "wren/1999/deep/a.PNG", "robin/x.webp", "auk/.hidden.png", "auk/y.jpg", ".git/z.png"):
        draw(tmp_path / path)
    (tmp_path / "robin" / "notes.txt").write_text("no image")
    draw(tmp_path / "stray.png")
    birds = ImageFolder(tmp_path)
    assert birds.class_names == ("auk", "robin", "wren")
    assert files(birds) == ["y.jpg", "x.webp", "a.PNG", "b.png"]
    assert birds.labels.tolist() == [0, 1, 2, 2]
    assert birds.name == tmp_path.name
    with pytest.warns(UserWarning, match="no image in 'auk', 'robin'; ignored"):
        pngs = ImageFolder(tmp_path, extensions=[".png"])
    assert pngs.class_names == ("wren",)


def test_links_in_folders(tmp_path: Path):
    draw(tmp_path / "elsewhere" / "a.png")
    root = tmp_path / "root"
    (root / "cat").mkdir(parents=True)
    (root / "dog").symlink_to(tmp_path / "elsewhere")
    draw(root / "cat" / "b.png")
    (root / "cat" / "round").symlink_to(root / "cat")
    assert files(ImageFolder(root)) == ["b.png", "a.png"]


def test_names_of_files_may_be_anything(tmp_path: Path):
    draw(tmp_path / "Möwe, groß" / "снимок 1.png")
    assert ImageFolder(tmp_path).image(0).size == (8, 6)


def test_folders_that_are_none(tmp_path: Path):
    with pytest.raises(FileNotFoundError, match="root must be a folder with one folder for each class"):
        ImageFolder(tmp_path / "none")
    draw(tmp_path / "a.png")
    with pytest.raises(FileNotFoundError, match="root must have folders with images"):
        ImageFolder(tmp_path)


ROWS = [
    # path, label, split, role, category, x, y, width, height
    ("a.png", "wren", "train", "", "small", "", "", "", ""),
    ("b.png", "robin", "test", "query", "small", "1", "2", "3", "4"),
    ("c.png", "robin", "test", "gallery", "small", "0", "0", "2.5", "2"),
    ("d.png", "crow", "test", "gallery", "large", "", "", "", ""),
]
HEADER = ("path", "label", "split", "role", "category", "x", "y", "width", "height")


def write_csv(path: Path, header: tuple[str, ...] = HEADER, rows: list[tuple[str, ...]] = ROWS, by: str = ",") -> Path:
    for row in rows:
        if row[0].endswith(".png"):
            draw(path.parent / row[0], size=(10, 8))
    path.write_text("\n".join(by.join(row) for row in (header, *rows)) + "\n", encoding="utf-8-sig")
    return path


def write_parquet(path: Path) -> Path:
    write_csv(path.with_suffix(".csv"))
    columns = {name: [row[index] or None for row in ROWS] for index, name in enumerate(HEADER)}
    for side in ("x", "y", "width", "height"):
        columns[side] = [None if value is None else float(value) for value in columns[side]]
    pyarrow.parquet.write_table(pyarrow.table(columns), path)
    return path


@pytest.mark.parametrize("kind", ["csv", "tsv", "parquet"])
def test_tables(tmp_path: Path, kind: str):
    path = tmp_path / f"birds.{kind}"
    if kind == "parquet":
        write_parquet(path)
    else:
        write_csv(path, by="\t" if kind == "tsv" else ",")
    assert files(ImageTable(path)) == ["a.png", "b.png", "c.png", "d.png"]
    test = ImageTable(path, split="test")
    assert test.name == "birds"
    assert test.class_names == ("crow", "robin")
    assert test.labels.tolist() == [1, 1, 0]
    assert files(test.query) == ["b.png"]
    assert files(test.gallery) == ["c.png", "d.png"]
    assert test.gallery.labels.tolist() == [1, 0]
    assert test.categories.tolist() == [1, 1, 0]
    assert test.category_names == ("large", "small")
    assert test.boxes[0].tolist() == [1, 2, 3, 4]
    assert test.boxes[2].isnan().all()
    cut = ImageTable(path, split="test", crop=True)
    assert [cut.image(index).size for index in range(3)] == [(3, 4), (2, 2), (10, 8)]
    train = ImageTable(path, split="train")
    assert train.class_names == ("wren",)
    assert train.is_query is None


def test_a_table_with_two_columns_under_other_names(tmp_path: Path):
    path = write_csv(tmp_path / "t.csv", ("file", "n", "color"), [("a.png", "10", "x"), ("b.png", "9", "y")])
    table = ImageTable(path, columns={"path": "file", "label": "n"})
    assert table.class_names == ("9", "10")  # numbers are in the order of numbers
    assert table.labels.tolist() == [1, 0]
    assert table.boxes is None
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "t.csv").rename(elsewhere / "t.csv")
    assert len(ImageTable(elsewhere / "t.csv", root=tmp_path, columns={"path": "file", "label": "n"})) == 2


def test_numbers_in_parquet_are_labels(tmp_path: Path):
    for name in ("a.png", "b.png", "c.png"):
        draw(tmp_path / name)
    content = pyarrow.table({"path": ["a.png", "b.png", "c.png"], "label": [700, 5, 700], "split": [0, 0, 1]})
    pyarrow.parquet.write_table(content, tmp_path / "t.parquet")
    table = ImageTable(tmp_path / "t.parquet")
    assert table.labels.tolist() == [1, 0, 1]
    assert table.class_names == ("5", "700")
    assert len(ImageTable(tmp_path / "t.parquet", split="1")) == 1


def changed(row: int, column: str, value: str) -> list[tuple[str, ...]]:
    rows = [list(each) for each in ROWS]
    rows[row][HEADER.index(column)] = value
    return [tuple(each) for each in rows]


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        (changed(2, "label", ""), r"line 4, column 'label': it must be a text or a whole number, but it is ''"),
        (changed(1, "path", ""), r"line 3, column 'path': it must be a text, but it is ''"),
        (
            changed(1, "path", "no.jpg"),
            r"line 3, column 'path': it must be a file in .* \(set root= .*\), but it is 'no\.jpg'",
        ),
        (changed(1, "x", "left"), r"line 3, column 'x': it must be a number, .* but it is 'left'"),
        (changed(1, "height", ""), r"line 3, column 'height': it must be a number, or empty with the other three"),
        (
            changed(1, "role", "qeury"),
            r"line 3, column 'role': it must be 'query', 'gallery' or empty, but it is 'qeury'",
        ),
        ([*ROWS, ("e.png", "crow")], r"line 6 must have 9 cells, but it has 2"),
    ],
)
def test_faults_in_a_table_are_named(tmp_path: Path, rows: list[tuple[str, ...]], text: str):
    path = write_csv(tmp_path / "birds.csv", rows=rows)
    with pytest.raises(ValueError, match=r"birds\.csv, " + text):
        ImageTable(path)


def test_roles_in_some_rows_only(tmp_path: Path):
    path = write_csv(tmp_path / "birds.csv")
    assert ImageTable(path).is_query is None  # the training row has no role
    path = write_csv(tmp_path / "birds.csv", rows=changed(3, "role", ""))
    with pytest.raises(ValueError, match=r"line 5, column 'role': it must be 'query' or 'gallery', as other rows"):
        ImageTable(path, split="test")
    path = write_csv(tmp_path / "plain.csv", ("path", "label", "role"), [("a.png", "1", "query"), ("b.png", "1", "")])
    with pytest.raises(ValueError, match=r"line 3, column 'role': it must be 'query' or 'gallery', as other rows"):
        ImageTable(path)


def test_tables_that_cannot_be_read(tmp_path: Path):
    path = write_csv(tmp_path / "birds.csv")
    with pytest.raises(ValueError, match=r"split must be one of 'test', 'train' in .*, but it is 'dev'"):
        ImageTable(path, split="dev")
    with pytest.raises(ValueError, match=r"must have a column 'species', but it has 'path', 'label'"):
        ImageTable(path, columns={"label": "species"})
    with pytest.raises(ValueError, match=r"columns must name some of path, label, .*, but it names 'color'"):
        ImageTable(path, columns={"color": "x"})
    path = write_csv(tmp_path / "plain.csv", ("path", "label", "x"), [("a.png", "1", "3")])
    with pytest.raises(ValueError, match="must have all of the columns x, y, width, height or none, but it has x"):
        ImageTable(path)
    path = write_csv(tmp_path / "plain.csv", ("path", "label"), [("a.png", "1")])
    with pytest.raises(ValueError, match=r"split must be None, because .* has no column 'split'"):
        ImageTable(path, split="train")
    with pytest.raises(ValueError, match=r"must have at least one row"):
        ImageTable(write_csv(tmp_path / "empty.csv", ("path", "label"), []))
    with pytest.raises(ValueError, match=r"names 'path' twice"):
        ImageTable(write_csv(tmp_path / "twice.csv", ("path", "path"), []))
    with pytest.raises(ValueError, match=r"path must end with \.csv, \.tsv, \.parquet"):
        ImageTable(tmp_path / "birds.xlsx")
    with pytest.raises(FileNotFoundError, match="there is no file"):
        ImageTable(tmp_path / "none.csv")
    (tmp_path / "latin.csv").write_bytes("path,label\nä.png,1\n".encode("latin-1"))
    with pytest.raises(ValueError, match="must be encoded in UTF-8"):
        ImageTable(tmp_path / "latin.csv")
    (tmp_path / "quote.csv").write_text('path,label\n"a.png,1\n')
    with pytest.raises(ValueError, match="is not valid CSV"):
        ImageTable(tmp_path / "quote.csv")
    (tmp_path / "bad.parquet").write_text("no table")
    with pytest.raises(ValueError, match="must be a Parquet file"):
        ImageTable(tmp_path / "bad.parquet")


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    write_parquet(tmp_path / "birds.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"a Parquet table needs pyarrow; install the extra likewise\[data\]"):
        ImageTable(tmp_path / "birds.parquet")


def shade(value: int) -> Image.Image:
    return Image.new("L", (3, 2), value)


class HuggingFace:
    """What we use of a `datasets.Dataset`: columns by name, rows by number; it counts how many rows were read."""

    _fingerprint = "abc"

    def __init__(self, names: list[str] | None):
        self.column_names = ["image", "label"]

        class ClassLabel:
            def __init__(self) -> None:
                self.names = names

        self.features = {"image": object(), "label": ClassLabel() if names else object()}
        self.read = 0

    def __len__(self) -> int:
        return 3

    def __getitem__(self, key: int | str) -> Any:
        if isinstance(key, str):
            assert key == "label", "no image needs decoding"
            return [2, 0, 2]
        self.read += 1
        return {"image": shade(key), "label": [2, 0, 2][key]}


def test_a_hugging_face_data_set():
    other = HuggingFace(["a", "b", "c"])
    data = from_dataset(other)
    assert other.read == 0
    assert data.labels.tolist() == [1, 0, 1]
    assert data.class_names == ("a", "c")
    assert data.image(2).getpixel((0, 0)) == (2, 2, 2)
    assert data.source(1) == "item 1 of HuggingFace"
    assert other.read == 1
    assert data.fingerprint == from_dataset(HuggingFace(["a", "b", "c"])).fingerprint
    assert other.read == 1
    assert from_dataset(HuggingFace(None)).class_names == ("0", "2")
    with pytest.raises(ValueError, match="label must be one of the columns 'image', 'label', but it is 'species'"):
        from_dataset(other, label="species")
    with pytest.raises(TypeError, match="dataset must be one of the splits 'train', 'test', but it is all of them"):
        from_dataset({"train": other, "test": other})


class TorchVision:
    """What we use of a torchvision data set."""

    def __init__(self, targets: Any):
        self.classes = ["zero", "one"]
        self.targets = targets
        self.read = 0

    def __len__(self) -> int:
        return len(self.targets)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        self.read += 1
        return shade(index), int(self.targets[index])


@pytest.mark.parametrize("targets", [[1, 0, 1], torch.tensor([1, 0, 1]), np.array([1, 0, 1])])
def test_a_torchvision_data_set(targets: Any):
    other = TorchVision(targets)
    data = from_dataset(other, name="digits")
    assert other.read == 0
    assert data.labels.tolist() == [1, 0, 1]
    assert data.class_names == ("zero", "one")
    assert data[1][0].getpixel((0, 0)) == (1, 1, 1)
    part = from_dataset(Subset(other, [2, 0]))
    assert part.labels.tolist() == [0, 0]
    assert part.class_names == ("one",)
    assert part.image(0).getpixel((0, 0)) == (2, 2, 2)


def test_files_of_a_torchvision_folder_are_named(tmp_path: Path):
    other = TorchVision([0])
    other.samples = [(str(draw(tmp_path / "a.png")), 0)]
    data = from_dataset(other, name="x")
    assert data.source(0) == str(tmp_path / "a.png")
    before = data.fingerprint
    draw(tmp_path / "a.png", size=(70, 70))
    assert from_dataset(other, name="x").fingerprint != before


def test_pairs_and_dictionaries():
    pairs = from_dataset([(shade(5), "b"), (shade(6), "a")], class_names=None)
    assert pairs.labels.tolist() == [1, 0]
    assert pairs.class_names == ("a", "b")
    table = from_dataset([{"x": shade(5), "y": np.int64(4)}], image="x", label="y", class_names=list("abcde"))
    assert table.class_names == ("e",)
    swapped = from_dataset([("b", shade(7), 3)], image=1, label=0)
    assert swapped.image(0).getpixel((0, 0)) == (7, 7, 7)


def test_images_of_every_kind(tmp_path: Path):
    file = BytesIO()
    shade(9).save(file, "PNG")
    array = np.full((2, 3), 9, dtype=np.uint8)
    kinds = [array, np.dstack([array] * 3), str(draw(tmp_path / "a.png", color=(9, 9, 9))), {"bytes": file.getvalue()}]
    data = from_dataset([(kind, 0) for kind in kinds])
    assert all(data.image(index).getpixel((0, 0)) == (9, 9, 9) for index in range(4))
    turned = from_dataset([(torch.zeros(3, 2, 2), 0)])
    with pytest.raises(
        TypeError, match=r"item 0 of list must be a Pillow image, .* a Tensor; pass a transform that returns tensors"
    ):
        turned.image(0)


def test_pixels_are_the_fingerprint_where_nothing_else_is():
    def made(value: int, version: str | None = None) -> str:
        return from_dataset([(shade(value), 0)], version=version).fingerprint

    assert made(1) == made(1)
    assert made(1) != made(2)
    assert made(1, "v1") == made(2, "v1") != made(2, "v2")


def test_a_broken_image_of_another_library(tmp_path: Path):
    path = draw(tmp_path / "a.png", size=(64, 64))
    path.write_bytes(path.read_bytes()[:60])
    with Image.open(path) as late:
        data = from_dataset([(late, 0)], name="late")
        with pytest.raises(BrokenImage, match="cannot read the image item 0 of late: "):
            data.image(0)
        assert len(find_broken(data)) == 1


def test_what_cannot_be_taken_over():
    with pytest.raises(TypeError, match="dataset must have a length and"):
        from_dataset(iter([]))
    with pytest.raises(ValueError, match="at least one item"):
        from_dataset([])
    with pytest.raises(TypeError, match=r"label must be a whole number or a text, .* but in item 1 it is 0\.5"):
        from_dataset([(shade(0), 1), (shade(0), 0.5)])
    with pytest.raises(TypeError, match="label must be a whole number or a text, the same in every item"):
        from_dataset([(shade(0), 1), (shade(0), "1")])
    with pytest.raises(ValueError, match="must have 'label' in its items, but they have 'image'"):
        from_dataset([{"image": shade(0)}])
    with pytest.raises(ValueError, match="class_names must have a name for each label, but it has 1 for label 3"):
        from_dataset([(shade(0), 3)], class_names=["a"])


def test_an_adapted_data_set_can_be_sent_to_a_worker():
    sent = pickle.loads(pickle.dumps(from_dataset([(shade(5), "b")])))
    assert sent.image(0).getpixel((0, 0)) == (5, 5, 5)


def test_several_label_columns_and_a_list_column(tmp_path: Path):
    for name in "abc":
        draw(tmp_path / f"{name}.png")
    rows = [
        ("a.png", "robin", "Turdidae", "red; small"),
        ("b.png", "wren", "Troglodytidae", ""),
        ("c.png", "thrush", "Turdidae", "small"),
    ]
    text = "\n".join(",".join(row) for row in [("path", "label", "family", "tags"), *rows])
    (tmp_path / "birds.csv").write_text(text)
    columns: dict[str, Any] = {
        name: list(cells) for name, cells in zip(("path", "label", "family"), zip(*rows, strict=True), strict=False)
    }
    columns["tags"] = [["red", "small"], None, ["small"]]
    pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "birds.parquet")
    for file in ("birds.csv", "birds.parquet"):
        birds = ImageTable(tmp_path / file, levels=["family"], tags="tags")
        assert birds.levels is not None
        assert birds.levels.tolist() == [[0, 1], [2, 0], [1, 1]]
        assert birds.tags is not None
        assert birds.tags.tolist() == [[True, True], [False, False], [False, True]]
        assert birds.tag_names == ("red", "small")
        some = birds.of_classes([1, 2])  # the class is relabeled, the family stays
        assert some.levels is not None
        assert some.levels.tolist() == [[1, 0], [0, 1]]
    assert ImageTable(tmp_path / "birds.csv").levels is None
    with pytest.raises(ValueError, match="must have a column 'order'"):
        ImageTable(tmp_path / "birds.csv", levels=["order"])
    with pytest.raises(TypeError, match="levels must be a list of columns, but it is the text 'family'"):
        ImageTable(tmp_path / "birds.csv", levels="family")
