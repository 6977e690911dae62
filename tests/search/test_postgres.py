"""What is particular to an index in PostgreSQL; what it shares with a folder is in test_store.py."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Any

import numpy as np
import pytest

from likewise.search import Index
from likewise.search.postgres_server import Server as Connections
from tests.search.conftest import units
from tests.search.database import Server

DIM = 12


@pytest.fixture
def database(url: str) -> Index:
    index = Index.create(f"{url}#birds", dim=DIM)
    index.add(
        units(100, DIM), [f"{row}.jpg" for row in range(100)], metadata={"year": [2000 + row for row in range(100)]}
    )
    return index


def test_a_failure_in_the_middle_changes_nothing(database: Index):
    """The paths that an addition would replace are deleted first: they come back."""
    before, new = (database.card, database.column("path")), units(3, DIM, 1)
    with pytest.raises(ValueError, match=r"the database rejects a value"):
        database.add(new, ["0.jpg", "a", "nul\0"], metadata={"fresh": [1, 2, 3]})
    with pytest.raises(ValueError, match=r"metadata must be finite numbers in PostgreSQL"):
        database.add(new, ["0.jpg", "a", "b"], metadata={"fresh": [1.0, 2.0, np.inf]})
    assert (database.card, database.column("path")) == before
    assert database.add(new[:1], ["b"]).tolist() == [100]


PROGRAM = """
import sys, time
import numpy as np
from likewise.search import Index, postgres

index = Index.open(sys.argv[1])
text, count = postgres.as_text, 0

def slow(vector):
    global count
    count += 1
    if count == 40:
        print("in the middle", flush=True)
        time.sleep(60)
    return text(vector)

postgres.as_text = slow
index.add(np.ones((50, 12)), [f"{row}.jpg" for row in range(50)], metadata={"fresh": list(range(50))})
"""


def test_a_killed_writer_has_changed_nothing(database: Index, url: str):
    """It was replacing fifty items when it died; the next writer does not wait for it."""
    before = database.card
    with subprocess.Popen([sys.executable, "-c", PROGRAM, f"{url}#birds"], stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "in the middle\n"
        assert len(database) == 100  # readers do not wait
        writer.kill()
    assert database.column("path") == [f"{row}.jpg" for row in range(100)]
    assert database.card == before
    assert database.add(np.ones((1, DIM)), ["next"]).tolist() == [100]


def test_the_plan_uses_hnsw(url: str):
    """An approximate search looks into the structure, an exact one at everything."""
    import psycopg

    index = Index.create(f"{url}#planned", dim=DIM)
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


def test_an_older_structure_is_read(database: Index, url: str):
    """What was kept of a structure stays as it was, so that databases need no change."""
    import psycopg

    database.rebuild(approximate="hnsw", queries=5)
    with psycopg.connect(url) as connection:
        [(near,)] = connection.execute("SELECT near FROM likewise_indexes").fetchall()
    assert {*near} == {"kind", "m", "ef_construction", "index", "recall", "queries"}
    with pytest.raises(ValueError, match=r"approximate must be one of 'auto', 'exact', 'hnsw' in PostgreSQL"):
        database.rebuild(approximate="ivfpq")
    wide = Index.create(f"{url}#wide", dim=3000)
    with pytest.raises(ValueError, match="dim must be at most 2000 for hnsw with float32, but it is 3000"):
        wide.rebuild(approximate="hnsw")


def test_names_and_databases(url: str):
    with pytest.raises(ValueError, match=r"name must be an index in the database \(none\), but it is None"):
        Index.open(url)
    first = Index.create(f"{url}#Vögel 2021", dim=2)
    assert Index.open(url).name == "Vögel 2021"
    Index.create(f"{url}#other", dim=2)
    with pytest.raises(ValueError, match=r"name must be an index in the database \(Vögel 2021, other\)"):
        Index.open(url)
    with pytest.raises(FileExistsError, match=r"name must be new, but the database already has a table 'other'"):
        Index.create(f"{url}#other", dim=2)
    for name in ("", "likewise_indexes", "pg_x", 'a"b', "a%s", "é" * 40, "1st"):
        with pytest.raises(ValueError, match=r"name must begin with a letter"):
            Index.create(url, name=name, dim=2)
    with pytest.raises(
        ValueError, match=r"storage must be one of 'float32', 'float16' in PostgreSQL, but it is 'int8'"
    ):
        Index.create(f"{url}#third", dim=2, storage="int8")
    assert [Index.open(f"{url}#{name}").name for name in ("other", "Vögel 2021")] == ["other", "Vögel 2021"]
    first.drop()
    assert Index.open(url).name == "other"
    assert Index.open(url).name == "other"
    with pytest.raises(FileNotFoundError, match=r"the database no longer has an index Vögel 2021"):
        first.add(np.ones((1, 2)), ["a"])


def test_a_server_that_starts_anew(running: Server, url: str):
    """Readers go on; nothing that was promised is lost."""
    index = Index.create(f"{url}#lasting", dim=2)
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
        with Connections(url).change() as cursor:
            for words in ("CREATE ROLE a_guest", "SET LOCAL ROLE a_guest", "CREATE ROLE another_guest"):
                cursor.execute(words)

    with pytest.raises(PermissionError, match="the database does not permit this operation: permission denied"):
        refused()
