"""The field's benchmarks, read from small copies of their official layouts."""

from __future__ import annotations

import pickle
import shutil
import sys
import warnings
from pathlib import Path

import pytest
import torch

from likewise.data import CUB200, Cars196, ImageDataset, InShop, StanfordOnlineProducts
from tests.data import layouts


def files(dataset: ImageDataset) -> list[str]:
    return [Path(dataset.source(index)).name for index in range(len(dataset))]


@pytest.fixture
def quiet():
    """Small copies have small numbers; the warning has tests of its own."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*but the official one has", UserWarning)
        yield


@pytest.mark.usefixtures("quiet")
def test_cub_is_split_by_class(tmp_path: Path):
    layouts.cub(tmp_path)
    train, test, both = (CUB200(tmp_path, split) for split in ("train", "test", "all"))
    assert files(train) == ["a1.png", "b1.png", "b2.png"]
    assert train.labels.tolist() == [0, 1, 1]
    assert train.class_names == ("001.Auk", "002.Bunting")
    assert files(test) == ["c1.png", "d1.png", "c2.png"]
    assert test.labels.tolist() == [0, 1, 0]
    assert test.class_names == ("003.Crow", "004.Duck")
    assert both.labels.tolist() == [2, 0, 1, 1, 3, 2]
    assert train.labels.dtype == torch.int64
    assert (train.name, train.split, str(train)) == (
        "CUB-200-2011",
        "train",
        "CUB-200-2011, train: 3 images of 2 classes",
    )


@pytest.mark.usefixtures("quiet")
def test_cub_root_may_be_the_folder_itself(tmp_path: Path):
    folder = layouts.cub(tmp_path)
    assert CUB200(folder).fingerprint == CUB200(tmp_path).fingerprint
    assert CUB200(str(folder), "test").fingerprint != CUB200(folder).fingerprint


@pytest.mark.usefixtures("quiet")
def test_cub_boxes(tmp_path: Path):
    layouts.cub(tmp_path)
    train = CUB200(tmp_path)
    assert train.boxes is not None
    assert train.boxes.tolist() == [[2, 1, 4, 5], [3, 1, 4, 5], [4, 1, 4, 5]]
    assert train.image(0).size == (10, 8)
    cut = CUB200(tmp_path, crop=True)
    assert cut.image(0).size == (4, 5)
    assert cut.fingerprint != train.fingerprint


@pytest.mark.usefixtures("quiet")
def test_cub_without_boxes(tmp_path: Path):
    layouts.cub(tmp_path, boxes=False)
    assert CUB200(tmp_path).boxes is None
    with pytest.raises(ValueError, match="crop must be False"):
        CUB200(tmp_path, crop=True)


def test_counts_that_are_not_the_official_ones(tmp_path: Path):
    layouts.cub(tmp_path)
    with pytest.warns(UserWarning, match="official") as caught:
        CUB200(tmp_path)
    assert len(caught) == 1
    text = str(caught[0].message)
    assert "3 images of 2 classes" in text
    assert "5,864 images of 100 classes" in text
    assert caught[0].filename == __file__
    CUB200(tmp_path, check=False)


@pytest.mark.usefixtures("quiet")
def test_cub_faults_are_named(tmp_path: Path):
    with pytest.raises(
        FileNotFoundError, match=r"images\.txt or CUB_200_2011/images\.txt; .* download=True \(--data\.download true"
    ):
        CUB200(tmp_path)
    folder = layouts.cub(tmp_path)
    with pytest.raises(ValueError, match="split must be one of 'train', 'test', 'all', but it is 'val'"):
        CUB200(tmp_path, "val")
    (folder / "images" / "001.Auk" / "a1.png").unlink()
    with pytest.raises(FileNotFoundError, match=r"lists 1 image that is not there, .*a1\.png"):
        CUB200(tmp_path)
    assert len(CUB200(tmp_path, check=False)) == 3
    (folder / "image_class_labels.txt").write_text("1 3\n2 1\n3 9\n4 2\n5 4\n6 3\n")
    with pytest.raises(ValueError, match=r"image 3 one of the 4 classes, but it gives '9'"):
        CUB200(tmp_path)
    (folder / "images.txt").write_text("1 a.png\nnonsense\n")
    with pytest.raises(ValueError, match=r"images\.txt, line 2 must be 'number path', but it is 'nonsense'"):
        CUB200(tmp_path)
    (folder / "classes.txt").unlink()
    with pytest.raises(FileNotFoundError, match=r"classes\.txt must be a file"):
        CUB200(tmp_path)


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("layout", ["whole", "devkit inside", "beside the devkit", "nested", "in a folder"])
def test_cars_reads_every_layout(tmp_path: Path, layout: str):
    if layout == "whole":
        layouts.cars_whole(tmp_path)
    elif layout == "in a folder":
        layouts.cars_halves(tmp_path / "stanford_cars", inside=True)
    else:
        layouts.cars_halves(tmp_path, inside=layout == "devkit inside")
    if layout == "nested":
        for part in ("cars_train", "cars_test"):
            shutil.move(tmp_path / part, tmp_path / "atomic_write")
            (tmp_path / part).mkdir()
            shutil.move(tmp_path / "atomic_write", tmp_path / part / part)
    train, test = Cars196(tmp_path), Cars196(tmp_path, "test")
    # classes 2, 4, 1, 2, 3 of four models: the first two models are for training, from both folders
    assert train.labels.tolist() == [1, 0, 1]
    assert train.class_names == ("Acura TL", "BMW M3")
    assert test.labels.tolist() == [1, 0]
    assert test.class_names == ("Dodge Ram", "Tesla S")
    assert train.boxes is not None
    # pixels 2 to 4 across and 4 to 7 down, counted from 1
    assert train.boxes[2].tolist() == [1, 3, 3, 4]
    assert Cars196(tmp_path, crop=True).image(2).size == (3, 4)
    names = {"whole": ["000001.jpg", "000003.jpg", "000004.jpg"]}.get(layout, ["00001.jpg", "00003.jpg", "00001.jpg"])
    assert files(train) == names
    assert len(Cars196(tmp_path, "all")) == 5


def test_cars_says_that_its_server_is_gone(tmp_path: Path):
    with pytest.raises(
        FileNotFoundError, match=r"cars_annos\.mat, .* server is offline, so .* mirror=URL \(--data\.download true"
    ):
        Cars196(tmp_path, download=True)
    layouts.cars_halves(tmp_path, inside=True)
    (tmp_path / "devkit" / "cars_meta.mat").unlink()
    with pytest.raises(FileNotFoundError, match=r"needs .*cars_meta\.mat"):
        Cars196(tmp_path)


def test_cars_need_scipy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    layouts.cars_whole(tmp_path)
    monkeypatch.setitem(sys.modules, "scipy.io", None)
    with pytest.raises(ImportError, match=r"Cars196 needs scipy .*; install the extra likewise\[data\]"):
        Cars196(tmp_path)


def test_cars_counts(tmp_path: Path):
    layouts.cars_whole(tmp_path)
    with pytest.warns(UserWarning, match=r"2 images of 2 classes here, but the official one has 8,131 images of 98"):
        Cars196(tmp_path, "test")


@pytest.mark.usefixtures("quiet")
def test_online_products(tmp_path: Path):
    folder = layouts.sop(tmp_path)
    train, test, both = (StanfordOnlineProducts(tmp_path, split) for split in ("train", "test", "all"))
    assert train.labels.tolist() == [0, 0, 1]
    assert train.class_names == ("bicycle_1", "mug_2")
    assert test.labels.tolist() == [1, 0]
    assert test.class_names == ("bicycle_7", "mug_9")
    assert test.categories is not None
    assert test.categories.tolist() == [1, 0]
    assert test.category_names == ("bicycle", "mug")
    assert both.labels.tolist() == [0, 0, 1, 3, 2]
    assert files(StanfordOnlineProducts(folder)) == ["1_0.JPG", "1_1.JPG", "2_0.JPG"]
    (folder / "Ebay_test.txt").write_text("image_id class_id super_class_id path\n4 nine 2 mug_final/9_0.JPG\n")
    with pytest.raises(ValueError, match=r"Ebay_test\.txt, line 2: class_id must be a whole number, but it is 'nine'"):
        StanfordOnlineProducts(tmp_path, "test")


def test_online_products_counts(tmp_path: Path):
    layouts.sop(tmp_path)
    with pytest.warns(UserWarning, match=r"but the official one has 59,551 images of 11,318 classes"):
        StanfordOnlineProducts(tmp_path)
    with pytest.warns(UserWarning, match=r"but the official one has 60,502 images of 11,316 classes"):
        StanfordOnlineProducts(tmp_path, "test")


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("official", [True, False])
def test_in_shop_shares_labels_between_queries_and_gallery(tmp_path: Path, official: bool):
    layouts.inshop(tmp_path, official=official)
    train, query, gallery, test = (InShop(tmp_path, split) for split in ("train", "query", "gallery", "test"))
    assert (train.labels.tolist(), train.class_names) == ([0], ("id_00000080",))
    assert query.class_names == gallery.class_names == test.class_names == ("id_00000001", "id_00000002")
    assert query.labels.tolist() == [1, 0]
    assert gallery.labels.tolist() == [1, 0, 0]
    assert files(query) == ["02_1_front.jpg", "01_3_back.jpg"]
    assert test.labels.tolist() == [1, 1, 0, 0, 0]
    assert files(test.query) == files(query)
    assert files(test.gallery) == files(gallery)
    assert test.gallery.labels.tolist() == gallery.labels.tolist()
    assert len(InShop(tmp_path, "all").class_names) == 3


@pytest.mark.usefixtures("quiet")
def test_in_shop_categories_and_boxes(tmp_path: Path):
    layouts.inshop(tmp_path)
    query = InShop(tmp_path, "query", crop=True)
    assert query.categories is not None
    assert [query.category_names[each] for each in query.categories] == ["WOMEN/Dresses", "WOMEN/Tees"]
    assert query.boxes is not None
    assert query.boxes[0].tolist() == [1, 2, 6, 3]
    assert query.image(0).size == (6, 3)


def test_in_shop_counts(tmp_path: Path):
    layouts.inshop(tmp_path)
    official = {
        "train": "25,882 images of 3,997",
        "query": "14,218 images of 3,985",
        "gallery": "12,612 images of 3,985",
    }
    for split, counts in official.items():
        with pytest.warns(UserWarning, match=f"but the official one has {counts} classes"):
            InShop(tmp_path, split)


def test_in_shop_cannot_be_downloaded(tmp_path: Path):
    with pytest.raises(FileNotFoundError, match=r"on request only: use the form .* omit download=True"):
        InShop(tmp_path, download=True)
    layouts.inshop(tmp_path)
    path = tmp_path / "Eval" / "list_eval_partition.txt"
    path.write_text(path.read_text().replace("train", "trian"))
    with pytest.raises(
        ValueError, match=r"line 3: evaluation_status must be train, query or gallery, but it is 'trian'"
    ):
        InShop(tmp_path)


@pytest.mark.usefixtures("quiet")
def test_a_data_set_can_be_sent_to_a_worker(tmp_path: Path):
    layouts.cub(tmp_path)
    sent = pickle.loads(pickle.dumps(CUB200(tmp_path).of_classes([1])))
    assert files(sent) == ["b1.png", "b2.png"]
    assert sent[0][0].getpixel((0, 0)) == (3, 0, 0)
