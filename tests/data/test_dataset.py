"""What every data set can do: being cut, checked, known by a checksum, loaded by workers."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import DataLoader

from likewise.data import Broken, BrokenImage, ImageDataset, ImageFiles, ImageFolder, find_broken
from likewise.progress import progress, quiet
from tests.data.layouts import draw


class Shades(ImageDataset):
    """Image i is of the shade i."""

    def __init__(self, labels: list[int], **options: object):
        super().__init__(
            "shades", torch.tensor(labels), [f"class {each}" for each in range(max(labels) + 1)], **options
        )

    def image(self, index: int) -> Image.Image:
        return Image.new("RGB", (1, 1), (index, index, index))

    def source(self, index: int) -> str:
        return f"shade {index}"


def shades(dataset: ImageDataset) -> list[int]:
    return [dataset.image(index).getpixel((0, 0))[0] for index in range(len(dataset))]


def test_items_and_iteration():
    data = Shades([0, 1, 1])
    assert [(image.getpixel((0, 0))[0], label) for image, label in data] == [(0, 0), (1, 1), (2, 1)]
    assert data[-1][1] == 1
    assert data[np.int64(1)][1] == 1
    with pytest.raises(IndexError, match="index must lie between 0 and 2, but it is 3"):
        data[3]
    doubled = data.with_transform(lambda image: image.getpixel((0, 0))[0] * 2)
    assert doubled[2] == (4, 1)
    assert data[2][0].size == (1, 1)


@pytest.mark.parametrize("indices", [[4, 0, 2], np.array([4, 0, 2]), torch.tensor([4, 0, 2], dtype=torch.int32)])
def test_a_subset_counts_its_classes_anew(indices: object):
    part = Shades([0, 1, 2, 3, 3]).subset(indices)
    assert shades(part) == [4, 0, 2]
    assert part.labels.tolist() == [2, 0, 1]
    assert part.class_names == ("class 0", "class 2", "class 3")
    again = part.of_classes([2, 0])
    assert shades(again) == [4, 0]
    assert again.labels.tolist() == [1, 0]
    assert again.source(0) == "shade 4"


def test_a_subset_by_booleans():
    data = Shades([0, 1, 2, 2])
    assert shades(data.subset(data.labels == 2)) == [2, 3]
    assert shades(data.subset(np.array([True, False, False, True]))) == [0, 3]
    assert len(data.subset([])) == 0


def test_what_is_known_of_images_goes_with_them():
    data = Shades(
        [0, 1, 2, 1],
        categories=torch.tensor([0, 1, 1, 0]),
        category_names=["a", "b"],
        boxes=torch.arange(16.0).reshape(4, 4),
        is_query=torch.tensor([True, False, True, False]),
    )
    part = data.subset([2, 3])
    assert part.categories.tolist() == [1, 0]
    assert part.boxes[1].tolist() == [12, 13, 14, 15]
    assert shades(part.query) == [2]
    assert part.query.labels.tolist() == [1]
    assert part.gallery.labels.tolist() == [0]
    assert part.query.class_names == part.gallery.class_names == ("class 1", "class 2")
    with pytest.raises(ValueError, match="no separate queries and gallery"):
        Shades([0]).query


@pytest.mark.parametrize(
    ("indices", "error", "text"),
    [
        ([3], IndexError, "indices must lie between 0 and 2, but they lie between 3 and 3"),
        ([-1], IndexError, "indices must lie between 0 and 2"),
        ([1, 1], ValueError, "indices must be distinct"),
        ([True], ValueError, "one boolean for each of the 3 images"),
        ([0.5], TypeError, "indices must be a sequence of whole numbers"),
    ],
)
def test_bad_indices(indices: list[object], error: type[Exception], text: str):
    with pytest.raises(error, match=text):
        Shades([0, 1, 2]).subset(indices)


def test_bad_arguments():
    with pytest.raises(ValueError, match="classes must lie between 0 and 1, but one is 2"):
        Shades([0, 1]).of_classes([2])
    with pytest.raises(ValueError, match=r"labels must lie between 0 and 1, .* but they lie between 0 and 5"):
        ImageFiles("x", "/", ["a", "b"], torch.tensor([0, 5]), ["a", "b"])
    with pytest.raises(TypeError, match="labels must be an integer tensor"):
        ImageFiles("x", "/", ["a"], torch.tensor([0.0]), ["a"])
    with pytest.raises(ValueError, match="paths must have one entry for each of the 1 labels, but it has 2"):
        ImageFiles("x", "/", ["a", "b"], torch.tensor([0]), ["a"])
    with pytest.raises(ValueError, match=r"boxes must have shape \(2, 4\), but the shape is \(4, 2\)"):
        Shades([0, 1], boxes=torch.zeros(4, 2))


def test_the_fingerprint_knows_what_matters(tmp_path: Path):
    for place in ("here", "there"):
        draw(tmp_path / place / "cat" / "a.png")
        draw(tmp_path / place / "dog" / "b.png")
    here, there = (ImageFolder(tmp_path / place, name="pets") for place in ("here", "there"))
    assert here.fingerprint == there.fingerprint
    assert here.with_transform(np.asarray).fingerprint == here.fingerprint
    assert here.subset([0]).fingerprint == there.subset([0]).fingerprint
    assert len({here.fingerprint, here.subset([0]).fingerprint, here.subset([1]).fingerprint}) == 3
    draw(tmp_path / "there" / "dog" / "b.png", size=(99, 99))
    assert ImageFolder(tmp_path / "there", name="pets").fingerprint != here.fingerprint
    (tmp_path / "there" / "dog" / "b.png").rename(tmp_path / "there" / "dog" / "c.png")
    assert len({Shades(labels).fingerprint for labels in ([0, 1], [1, 0], [0, 1, 1])}) == 3


def test_broken_images_are_listed_and_left_out(tmp_path: Path):
    good = draw(tmp_path / "cat" / "good.png")
    (tmp_path / "cat" / "cut.png").write_bytes(good.read_bytes()[:40])
    (tmp_path / "dog").mkdir()
    (tmp_path / "dog" / "empty.jpg").touch()
    pets = ImageFolder(tmp_path)
    broken = find_broken(pets, workers=2)
    assert [each.index for each in broken] == [0, 2]
    assert broken[1] == Broken(2, str(tmp_path / "dog" / "empty.jpg"), "the file is empty")
    rest = pets.without(broken)
    assert rest.class_names == ("cat",)
    assert rest.source(0) == str(good)
    assert find_broken(rest) == []
    assert len(pets.without([0])) == 2
    with pytest.raises(ValueError, match="workers must be"):
        find_broken(pets, workers=0)


@pytest.mark.parametrize("installed", [True, False])
def test_progress_is_silent_off_a_terminal(
    tmp_path: Path, installed: bool, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
):
    if not installed:
        monkeypatch.setitem(sys.modules, "tqdm", None)
    draw(tmp_path / "cat" / "a.png")
    assert find_broken(ImageFolder(tmp_path)) == []
    assert capfd.readouterr() == ("", "")


def test_progress_is_a_line_a_minute_off_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    seconds = iter([0.0, 30.0, 61.0, 61.0, 90.0, 122.0, 122.0])
    monkeypatch.setattr(sys.modules["likewise.progress"].time, "monotonic", lambda: next(seconds))
    with progress("embedding", 4000, "img", done=1000) as advance:
        for _ in range(4):
            advance(500)
    assert capsys.readouterr().err == "embedding: 2,000 of 4,000 img\nembedding: 3,000 of 4,000 img\n"


def test_progress_on_a_terminal(monkeypatch: pytest.MonkeyPatch):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress("checking", 4, "img", done=1, delay=0.0) as advance:
        advance(2)
    assert "checking" in terminal.getvalue()
    assert "3/4" in terminal.getvalue()
    terminal.truncate(0)
    with quiet(), progress("checking", 4, "img", delay=0.0) as advance:
        advance(2)
        advance.print_line("epoch 1 of 1")
    assert not terminal.getvalue().strip("\0")


def as_array(image: Image.Image) -> Tensor:
    return torch.from_numpy(np.asarray(image).copy())


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # Python 3.12 on, where threads are about
@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_workers_load_it(tmp_path: Path, start: str):
    for index in range(4):
        draw(tmp_path / f"class {index % 2}" / f"{index}.png", color=(index, 0, 0))
    data = ImageFolder(tmp_path, transform=as_array).subset([3, 1, 0])
    loader = DataLoader(data, batch_size=3, num_workers=1, multiprocessing_context=start)
    images, labels = next(iter(loader))
    assert images[:, 0, 0, 0].tolist() == [3, 2, 0]
    assert labels.tolist() == [1, 0, 0]


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_worker_names_the_broken_file(tmp_path: Path):
    draw(tmp_path / "cat" / "a.png")
    (tmp_path / "cat" / "b.png").write_bytes(b"no picture")
    with pytest.raises(BrokenImage, match=r"b\.png: it is not an image of a known format"):
        list(DataLoader(ImageFolder(tmp_path, transform=as_array), num_workers=1, batch_size=None))
