"""Look-alikes on the screen, in tables and on contact sheets."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from likewise.cli import main
from likewise.search import Index, KReciprocal, QueryExpansion


@pytest.fixture
def birds(trained: Path, session_folder: Path, here: Path) -> Index:
    """An index of all pictures, made once."""
    made = session_folder / "birds.index"
    if not made.exists():
        rows = ["path,label,year"]
        files = sorted((session_folder / "photos").rglob("*.png"))
        rows += [f"photos/{each.parent.name}/{each.name},{each.parent.name},{2000 + int(each.stem)}" for each in files]
        (session_folder / "all.csv").write_text("\n".join(rows))
        assert main(["index", str(trained), str(session_folder / "all.csv"), "-o", str(made)]) == 0
    shutil.copytree(made, here / "birds.index")
    return Index.open(here / "birds.index")


def test_one_picture_on_the_screen(birds: Index, capsys: pytest.CaptureFixture[str]):
    capsys.readouterr()
    assert main(["search", "birds.index", "photos/c03/2.png", "-k", "3"]) == 0
    printed = capsys.readouterr()
    lines = printed.out.splitlines()
    assert printed.err == "next: likewise serve birds.index\n"
    found = birds.search("photos/c03/2.png", 3)
    assert lines[0].split() == ["score", "path", "label"]
    assert [line.split()[0] for line in lines[1:]] == ["1", "2", "3"]
    assert [line.split()[2] for line in lines[1:]] == [item.path for item in birds.items(found.ids[0])]
    assert [float(line.split()[1]) for line in lines[1:]] == pytest.approx(found.scores[0].tolist(), abs=1e-4)
    assert lines[1].split()[1:] == ["1.0000", "photos/c03/2.png", "c03"]


def test_filters_json_items_and_several_pictures(birds: Index, capsys: pytest.CaptureFixture[str]):
    capsys.readouterr()
    words = ["search", "birds.index", "photos/c03/2.png", "photos/c04/1.png", "-k", "4", "--json"]
    assert main([*words, "--where", "label in ('c03', 'c05') and year >= 2004", "--exact"]) == 0
    answers = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [answer["query"] for answer in answers] == ["photos/c03/2.png", "photos/c04/1.png"]
    assert {row["label"] for answer in answers for row in answer["found"]} == {"c03", "c05"}
    assert [len(answer["found"]) for answer in answers] == [4, 4]
    assert answers[0]["found"][0].keys() == {"rank", "score", "id", "path", "label", "year"}
    assert main(["search", "birds.index", "--item", "7", "-k", "2", "--json"]) == 0
    (answer,) = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["id"] for row in answer["found"]] == birds.neighbors(7, 2).ids[0].tolist()
    assert main(["search", "birds.index", "photos/c03/2.png", "--where", "year > 3000"]) == 0
    assert "no item matches the filter year > 3000" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["expansion", "k-reciprocal"])
def test_reranking_by_name(name: str, birds: Index, capsys: pytest.CaptureFixture[str]):
    capsys.readouterr()
    assert main(["search", "birds.index", "photos/c03/2.png", "-k", "4", "--json", "--rerank", name]) == 0
    answer = json.loads(capsys.readouterr().out)
    rerank = QueryExpansion() if name == "expansion" else KReciprocal()
    expected = birds.search("photos/c03/2.png", 4, rerank=rerank)
    assert [row["id"] for row in answer["found"]] == expected.ids[0].tolist()


@pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl"])
def test_a_folder_of_queries_to_a_table(kind: str, birds: Index, here: Path, capsys: pytest.CaptureFixture[str]):
    shutil.copytree("photos/c02", here / "queries")
    (here / "queries" / "bad.png").write_bytes(b"x")
    assert main(["search", "birds.index", "queries", "-k", "3", "-o", f"found.{kind}"]) == 0
    captured = capsys.readouterr()
    assert f"found.{kind}: 18 results of 6 queries" in captured.out
    assert "left out: queries/bad.png: it is not an image of a known format" in captured.err
    if kind == "csv":
        with open("found.csv", newline="") as file:
            rows = list(csv.DictReader(file))
    elif kind == "jsonl":
        rows = [json.loads(line) for line in Path("found.jsonl").read_text().splitlines()]
    else:
        from pyarrow import parquet

        rows = parquet.read_table("found.parquet").to_pylist()
    assert list(rows[0]) == ["query", "rank", "score", "id", "path", "label", "year"]
    found = birds.search(sorted((here / "queries").glob("?.png")), 3)
    assert [int(row["id"]) for row in rows] == found.ids.ravel().tolist()
    assert [int(row["rank"]) for row in rows[:4]] == [1, 2, 3, 1]


def test_a_table_of_queries(birds: Index, here: Path, capsys: pytest.CaptureFixture[str]):
    (here / "q.csv").write_text("file\nphotos/c00/0.png\nphotos/c01/0.png\n")
    assert main(["search", "birds.index", "q.csv", "--path-column", "file", "-k", "1", "--json"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [json.loads(line)["found"][0]["path"] for line in lines if line.startswith("{")] == [
        "photos/c00/0.png",
        "photos/c01/0.png",
    ]


def test_contact_sheets(birds: Index, capsys: pytest.CaptureFixture[str]):
    assert main(["search", "birds.index", "photos/c03/2.png", "--sheet", "found.png"]) == 0
    with Image.open("found.png") as opened:
        sheet = np.asarray(opened.convert("RGB")).astype(int)
    assert sheet.shape[1] == 2 * 28 + 6 * 176 + 5 * 16
    blue = (np.abs(sheet - [0x34, 0x51, 0xB2]).sum(axis=2) < 8).sum()
    assert blue > 1000  # the frame of the query
    one, other = (sheet[70:236, left : left + 160] for left in (36, 36 + 176 + 16))
    assert np.abs(one - other).mean() < 2.0  # the first that is found is the query itself, beside it
    assert main(["search", "birds.index", "photos", "-k", "3", "--sheet", "many.webp"]) == 0
    assert "many.webp: the first 12 of 72 rows" in capsys.readouterr().out
    with Image.open("many.webp") as many:
        assert many.format == "WEBP"
    assert main(["search", "birds.index", "--item", "3", "--sheet", "found.txt"]) == 2
    assert "--sheet must be a file that ends in .png" in capsys.readouterr().err


def test_near_duplicates(birds: Index, capsys: pytest.CaptureFixture[str]):
    copies = birds.vectors([5, 5, 9])
    birds.add(copies, ["x/a.png", "x/b.png", "x/c.png"])
    capsys.readouterr()
    assert main(["search", "birds.index", "--duplicates", "0.9999999", "-o", "d.csv", "--sheet", "d.png"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("2 groups of near-duplicates, 5 images in all; 3 are redundant\n")
    assert "x/a.png" in out
    with open("d.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["group"], row["id"]) for row in rows] == [
        ("1", "5"),
        ("1", "72"),
        ("1", "73"),
        ("2", "9"),
        ("2", "74"),
    ]
    assert main(["search", "birds.index", "--duplicates", "0.9999999", "--where", "label is None", "--json"]) == 0
    (group,) = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [item["path"] for item in group["items"]] == ["x/a.png", "x/b.png"]
    assert main(["search", "birds.index", "--duplicates", "1.0", "--where", "year == 2000"]) == 0
    assert "no two images are that similar" in capsys.readouterr().out


def test_clusters(birds: Index, capsys: pytest.CaptureFixture[str]):
    capsys.readouterr()
    assert main(["search", "birds.index", "--clusters", "5", "-o", "c.csv", "--sheet", "c.png"]) == 0
    assert "c.csv: 72 images in 5 clusters" in capsys.readouterr().out
    with open("c.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0])[:3] == ["id", "path", "cluster"]
    assert [int(row["cluster"]) for row in rows] == (birds.clusters(5) + 1).tolist()
    assert main(["search", "birds.index", "--clusters", "5", "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert sum(line["size"] for line in lines) == 72


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["nowhere.index", "a.jpg"], "the index: there is no index nowhere.index"),
        (["photos", "a.jpg"], "the index: photos must be the folder of an index, but it has no version"),
        (
            ["birds.index"],
            "give one of these: QUERY pictures, --text TEXT, --item ID, --duplicates SIMILARITY or --clusters N",
        ),
        (["birds.index", "a.jpg", "--item", "3"], "give one of these"),
        (["birds.index", "gone.jpg"], "cannot read the image gone.jpg: there is no such file"),
        (["birds.index", "quick.yaml"], "cannot read the image quick.yaml: it is not an image of a known format"),
        (
            ["birds.index", "photos"],
            "results of many queries must be written to a file or as JSON: give -o found.csv, --json or --sheet",
        ),
        (["birds.index", "photos", "photos/c00/0.png"], "photos cannot be combined with other queries"),
        (["birds.index", "photos/c00/0.png", "-k", "0"], "-k must be a whole number ≥ 1, but it is 0"),
        (
            ["birds.index", "photos/c00/0.png", "-o", "a.txt"],
            "--out must be a file that ends in .csv, .parquet, .jsonl",
        ),
        (
            ["birds.index", "photos/c00/0.png", "--where", "yaer > 1"],
            "where must name columns of the index (id, label, ",
        ),
        (["birds.index", "--item", "999"], "ids must be those of items in the index, but it has no item 999"),
        (["birds.index", "--duplicates", "2"], "threshold must be a similarity from -1 to 1, but it is 2.0"),
        (["birds.index", "--clusters", "99"], "n must be at most the 72 items, but it is 99"),
        (["birds.index", "--clusters", "9", "--where", "year > 1"], "remove --where"),
    ],
)
def test_mistakes(birds: Index, words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]):
    assert main(["search", *words]) == 2
    assert sentence in capsys.readouterr().err


def test_what_cannot_be_written_is_said_first(birds: Index, capsys: pytest.CaptureFixture[str]):
    capsys.readouterr()
    query = "photos/c03/2.png"
    for words in (["--sheet", "a.gif"], ["--sheet", "no/a.png"], ["-o", "no/a.csv"]):
        assert main(["search", "birds.index", query, *words]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "--sheet must be a file that ends in .png, .jpg, .jpeg, .webp, but it is a.gif" in said.err
    assert said.err.count("but there is no folder no\n") == 2


def test_more_than_there_is(birds: Index, capsys: pytest.CaptureFixture[str]):
    capsys.readouterr()
    assert main(["search", "birds.index", "photos/c03/2.png", "-k", str(10**30)]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1 + len(birds)
