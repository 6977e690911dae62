"""An index in PostgreSQL behind the page and the API: as a folder's, for many at once, and while the database comes and goes."""

from __future__ import annotations

import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")

from starlette.testclient import TestClient

from likewise.app.errors import UserError
from likewise.cli import serve as command
from likewise.search import Index, postgres_server
from likewise.search.calibration import Calibration, Point
from likewise.search.places import split_url
from likewise.search.postgres import PostgresStore
from likewise.search.serve import make_app
from likewise.search.serve import map as maps
from likewise.search.serve.faults import UNREADABLE
from likewise.search.serve.map import map_of
from likewise.testing import loop_over
from tests.search.database import Server
from tests.search.serve.conftest import Process, as_file, draw, make_index, serve

assert serve is not None  # the fixture

LOCAL = "http://127.0.0.1:8000"
SECRET = "open%40sesame"
PLAIN = "open@sesame"


def stored(index: Index, url: str, name: str = "shapes") -> Index:
    """What a folder holds, in a database."""
    database = Index.create_like(index, f"{url}#{name}")
    database.merge(index)
    return database


def plain(url: str, name: str, count: int = 8) -> Index:
    """A few vectors of 32 numbers."""
    database = Index.create(f"{url}#{name}", dim=32)
    database.add(np.random.default_rng(0).normal(size=(count, 32)), [f"{row}.jpg" for row in range(count)])
    return database


@pytest.fixture(scope="module")
def pair(running: Server, tmp_path_factory: pytest.TempPathFactory) -> tuple[Index, Index]:
    """Shapes in a folder and in the database; not to be changed, and before any test that clears the database."""
    folder = make_index(tmp_path_factory.mktemp("shapes"))
    learned = Calibration(
        (Point(0.1, 0.2, 0.9), Point(0.001, float("inf"), 0.0)), (-1.0, 1.0), (0.0, 1.0), 10, 100, None
    )
    folder.set_calibration(learned.as_dict())
    return folder, stored(folder, running.url)


@pytest.fixture(scope="module")
def clients(pair: tuple[Index, Index]) -> Iterator[tuple[TestClient, TestClient]]:
    with (
        TestClient(make_app(pair[0]), base_url=LOCAL) as folder,
        TestClient(make_app(pair[1]), base_url=LOCAL) as database,
    ):
        yield folder, database


def alike(one: Any, other: Any, tolerance: float = 2e-5) -> bool:
    """The same JSON, but for the last digits of numbers with a point and for how long it took."""
    if isinstance(one, dict):
        kept = [{key: value for key, value in each.items() if key != "milliseconds"} for each in (one, other)]
        return kept[0].keys() == kept[1].keys() and all(alike(kept[0][key], kept[1][key], tolerance) for key in kept[0])
    if isinstance(one, list):
        return len(one) == len(other) and all(map(lambda a, b: alike(a, b, tolerance), one, other))
    if isinstance(one, float) and isinstance(other, float | int):
        return abs(one - other) <= tolerance
    return bool(one == other)


def vector(seed: int = 1) -> list[float]:
    found: list[float] = np.random.default_rng(seed).normal(size=32).tolist()
    return found


IMAGE = as_file(draw("square", "gold", 99))
RINGS = 'label == "ring" and size >= 3'
QUESTIONS: list[tuple[str, str, dict[str, Any]]] = [
    ("GET", "/api/items/5/neighbors", {"params": {"k": 6, "place": True}}),
    ("GET", "/api/items/5/neighbors", {"params": {"k": 1000}}),
    ("GET", "/api/items/5/neighbors", {"params": {"k": 6, "exact": True, "where": RINGS}}),
    ("POST", "/api/search", {"json": {"id": 3, "where": RINGS, "k": 5}}),
    ("POST", "/api/search", {"json": {"id": 3, "where": "size > 99"}}),
    ("POST", "/api/search", {"json": {"vector": vector(), "k": 7, "place": True}}),
    ("POST", "/api/search", {"json": {"vectors": [vector(2), vector(3)], "k": 7, "exact": True}}),
    ("POST", "/api/search", {"json": {"vector": vector(4), "k": 5, "rerank": "k-reciprocal", "where": "size < 5"}}),
    ("POST", "/api/search", {"json": {"vector": vector(4), "k": 5, "rerank": "query-expansion"}}),
    ("POST", "/api/search", {"files": {"image": IMAGE}, "data": {"k": "4", "place": "true"}}),
    ("POST", "/api/search", {"files": {"image": IMAGE}, "data": {"k": "4", "where": RINGS, "exact": "true"}}),
    ("GET", "/api/items", {"params": {"offset": 2, "limit": 3, "where": 'label == "disc"'}}),
    ("GET", "/api/items", {"params": {"offset": 10, "limit": 30, "spread": True}}),
    ("GET", "/api/items", {"params": {"offset": 1000}}),
    ("GET", "/api/items/3", {}),
    ("GET", "/api/map", {}),
    ("POST", "/api/verify", {"json": {"first": 4, "second": 9}}),
    ("POST", "/api/verify", {"files": {"first": IMAGE, "second": IMAGE}}),
    ("POST", "/api/why", {"json": {"query": 4, "item": 9}}),
    ("POST", "/api/why", {"files": {"image": IMAGE}, "data": {"item": "8"}}),
    # what is refused
    ("GET", "/api/items/999", {}),
    ("GET", "/api/items/999/thumbnail", {}),
    ("GET", "/api/items/999/image", {}),
    ("GET", "/api/items/999/neighbors", {}),
    ("GET", "/api/items/9223372036854775807", {}),
    ("POST", "/api/verify", {"json": {"first": 4, "second": 999}}),
    ("POST", "/api/why", {"json": {"query": 999, "item": 9}}),
    ("POST", "/api/search", {"json": {"id": 1, "where": "lable == 'a'"}}),
    ("POST", "/api/search", {"json": {"id": 1, "where": "__import__('os').system('ls')"}}),
    ("POST", "/api/search", {"json": {"vector": [1.0] * 31}}),
    ("POST", "/api/search", {"json": {"vectors": [[1.0] * 32, [1.0] * 31]}}),
    ("POST", "/api/search", {"json": {"id": 1, "k": 5000}}),
    ("POST", "/api/search", {"files": {"image": b"%PDF"}}),
    ("GET", "/api/items", {"params": {"where": "size +"}}),
]


@loop_over("method, address, given", QUESTIONS)
def test_answers_are_the_folders(
    clients: tuple[TestClient, TestClient], method: str, address: str, given: dict[str, Any]
):
    expected, answer = (client.request(method, address, **given) for client in clients)
    assert answer.status_code == expected.status_code
    assert answer.status_code in (200, 404, 415, 422)
    assert alike(answer.json(), expected.json(), 2e-4 if address == "/api/map" else 2e-5), answer.text


def test_bytes_and_facts_are_the_folders(clients: tuple[TestClient, TestClient]):
    for address in ("/api/items/3/thumbnail", "/api/items/3/image", "/", "/page.js", "/openapi.json"):
        expected, answer = (client.get(address) for client in clients)
        assert (answer.status_code, answer.content) == (200, expected.content)
        assert answer.headers["content-type"] == expected.headers["content-type"]
    expected, about = (client.get("/api/about").json() for client in clients)
    version = about.pop("version")
    expected.pop("version")
    assert about == expected
    assert about["calibrated"]
    assert about["model"]["name"] == "tiny"
    kept = clients[1].get("/api/items/3/thumbnail", params={"v": version}).headers["cache-control"]
    assert "immutable" in kept
    assert clients[1].get("/api/items/3/thumbnail?v=old").headers["cache-control"] == "no-cache"
    told = clients[1].post("/api/verify", json={"first": 1, "second": 1}).json()
    assert told["rates"][0] == {"far": 0.1, "threshold": 0.2, "same": True}


def test_many_threads_at_once_are_answered_each_its_own(pair: tuple[Index, Index]):
    """Sixteen threads, 480 requests of every kind; no connection is used by two, and few are left over."""
    folder, database = pair
    truth = folder.search(folder.vectors(), 6, exact=True)
    own = Index.open(f"{database._store.server.url}#{database.name}")  # type: ignore[attr-defined]

    def ask(number: int) -> str | None:
        item, kind = number % 48, number % 5
        expected = [each for each, _ in truth.of(item)]
        if kind == 0:
            answer = client.get(f"/api/items/{item}/thumbnail")
            return None if answer.content == folder.thumbnail(item) else f"{number}: {answer.status_code}"
        if kind == 1:
            answer = client.get("/api/items", params={"where": f"id >= {item}", "limit": 3})
            told = [each["id"] for each in answer.json().get("items", [])]
            return None if told == list(range(item, 48))[:3] else f"{number}: {answer.text}"
        if kind == 2:
            answer = client.get(f"/api/items/{item}")
            return None if answer.json().get("path") == folder.item(item).path else f"{number}: {answer.text}"
        if kind == 3:
            given = {"vector": folder.vectors([item])[0].tolist(), "k": 6}
            answer = client.post("/api/search", json=given)
        else:
            answer = client.get(f"/api/items/{item}/neighbors?k=5")
            expected = [each for each in expected if each != item][:5]
        found = answer.json().get("answers", [{"found": []}])[0]["found"]
        return None if [each["id"] for each in found] == expected else f"{number}: {answer.text}"

    with TestClient(make_app(own), base_url=LOCAL) as client, ThreadPoolExecutor(16) as threads:
        assert [each for each in threads.map(ask, range(480)) if each] == []
    assert len(own._store.server._idle) <= postgres_server.IDLE_CONNECTIONS  # type: ignore[attr-defined]
    own.close()


def test_what_others_write_is_seen_at_once(url: str):
    database = plain(url, "changing")
    with TestClient(make_app(Index.open(f"{url}#changing")), base_url=LOCAL) as client:
        query = [1.0] + [0.0] * 31

        def found() -> list[int]:
            answer = client.post("/api/search", json={"vector": query, "k": 20, "place": True})
            return [each["id"] for each in answer.json()["answers"][0]["found"]]

        versions = [client.get("/api/about").json()["version"]]
        assert len(found()) == 8
        [new] = database.add(np.array([query]), ["new.jpg"], metadata={"year": [2021]})
        versions.append(client.get("/api/about").json()["version"])
        assert found()[0] == new
        assert client.get("/api/about").json()["fields"]["year"] == "number"
        assert client.get("/api/items").json()["total"] == 9
        assert client.get("/api/map").json()["ids"] == [*range(8), new]
        assert client.get("/api/items", params={"where": "year == 2021"}).json()["items"][0]["path"] == "new.jpg"
        database.remove([new])
        versions.append(client.get("/api/about").json()["version"])
        assert new not in found()
        assert client.get(f"/api/items/{new}").status_code == 404
        assert client.get("/api/items").json()["total"] == len(client.get("/api/map").json()["ids"]) == 8
        assert len({*versions}) == 3


def test_answers_are_of_one_moment_while_others_write(url: str):
    """Items come and go between a search and the look-up of what it found; nobody is told that there is none."""
    database = plain(url, "busy", 40)
    query = [1.0] + [0.0] * 31
    stop = threading.Event()

    def write() -> None:
        mine = Index.open(f"{url}#busy")
        while not stop.is_set():
            mine.remove(mine.add(np.array([query]), ["passing.jpg"]))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        with TestClient(make_app(database), base_url=LOCAL) as client, ThreadPoolExecutor(4) as threads:
            for ask in (
                lambda _: client.post("/api/search", json={"vector": query, "k": 10, "place": True}),
                lambda _: client.get("/api/items", params={"limit": 100}),
                lambda _: client.get("/api/map"),
            ):
                assert {answer.status_code for answer in threads.map(ask, range(25))} == {200}
    finally:
        stop.set()
        writer.join(20)


def test_storing_anew_never_shows_an_empty_index(url: str):
    """A table that is rewritten looks empty to a transaction which began before and had no lock on it."""
    database = plain(url, "rewritten", 40)
    stop = threading.Event()

    def store() -> None:
        mine = Index.open(f"{url}#rewritten")
        for turn in range(12):
            mine.rebuild(storage=("float16", "float32")[turn % 2])
        stop.set()

    writer = threading.Thread(target=store)
    writer.start()
    reads = 0
    try:
        while not stop.is_set() or reads < 5:
            with database.still() as now:
                time.sleep(0.002)
                assert len(now) == 40
                assert now.search(np.eye(32)[:1], 3).ids.min() >= 0
            assert len(database.items(database.ids[:3])) == 3
            assert len(database.matching("label == 'none' or id >= 0")) == 40
            reads += 1
    finally:
        writer.join()


def test_what_is_held_still_cannot_be_changed_and_versions_differ(url: str):
    database = plain(url, "held")
    seen = [database.version]
    with (
        database.still() as now,
        pytest.raises(TypeError, match=r"an index inside still\(\) is read-only"),
    ):
        now.remove([1])
    database.rebuild(approximate="hnsw", queries=2)
    seen.append(database.version)
    database.drop()
    assert len({*seen, plain(url, "held").version}) == 3


def test_an_approximate_index_says_so_and_can_be_asked_exactly(url: str):
    database = Index.create(f"{url}#near", dim=32)
    vectors = np.random.default_rng(0).normal(size=(600, 32))
    database.add(vectors, [str(row) for row in range(600)])
    truth = database.search(vectors[:1] + 0.2, 10, exact=True)
    database.rebuild(approximate="hnsw", queries=20)
    with TestClient(make_app(database), base_url=LOCAL) as client:
        near = client.get("/api/about").json()["near"]
        assert (near["kind"], near["recall"]) == ("hnsw", pytest.approx(database.near.recall))  # type: ignore[index]
        for exact in (True, False, None):
            given = {"vector": (vectors[0] + 0.2).tolist(), "exact": exact}
            found = client.post("/api/search", json=given).json()["answers"][0]["found"]
            same = {each["id"] for each in found} & {*truth.ids[0].tolist()}
            assert len(same) == 10 if exact else len(same) >= 8
        empty = Index.create(f"{url}#empty", dim=2)
        empty.rebuild(approximate="hnsw")
    with TestClient(make_app(empty), base_url=LOCAL) as client:
        assert client.get("/api/about").json()["near"] == {"kind": "hnsw", "recall": None}
        assert client.get("/api/map").json()["ids"] == []
        assert client.get("/api/items").json() == {"items": [], "total": 0, "offset": 0}
        assert client.post("/api/search", json={"vector": [1.0, 0.0]}).json()["answers"][0]["found"] == []


def test_without_a_model_or_files(url: str, tmp_path: Path):
    """Vectors and thumbnails are there; what needs the model or the pictures says so."""
    folder = make_index(tmp_path, count=8)
    bare = Index.create(f"{url}#bare", dim=32, model=folder.model_file, keep_model=False)
    bare.merge(Index.open(folder.folder))
    with TestClient(make_app(bare), base_url=LOCAL) as client:
        assert client.get("/api/about").json()["model"] is None
        for address, more in (("/api/search", {}), ("/api/why", {"item": "1"})):
            answer = client.post(address, files={"image": IMAGE}, data=more)
            assert (answer.status_code, "bare has no model" in answer.text) == (409, True)
        answer = client.post("/api/verify", files={"first": IMAGE, "second": IMAGE})
        assert answer.status_code == 409
        assert client.get("/api/items/3/thumbnail").content == folder.thumbnail(3)
    elsewhere = Index.create(f"{url}#elsewhere", dim=32, model=folder.model_file, root=tmp_path / "other")
    elsewhere.add(folder.vectors(), folder.column("path"))
    with TestClient(make_app(elsewhere), base_url=LOCAL) as client:
        assert len(client.post("/api/search", files={"image": IMAGE}).json()["answers"][0]["found"]) == 8
        for answer in (client.get("/api/items/3/image"), client.post("/api/why", json={"query": 1, "item": 2})):
            assert answer.status_code == 404
            assert "is not below the root of the index" in answer.json()["error"]


def test_another_index_of_the_same_name_brings_its_own_model(url: str, tmp_path: Path):
    folder = make_index(tmp_path, count=8)
    database = stored(folder, url, "again")
    first = database.encoder("cpu")
    assert database.encoder("cpu") is first
    database.drop()
    Index.create(f"{url}#again", dim=32)
    with pytest.raises(ValueError, match="the index again has no copy of its model"):
        database.encoder("cpu")


def test_a_map_leaves_nothing_on_the_disk(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    database = plain(url, "mapped")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(maps, "_store_map", lambda *_given: pytest.fail("a map was written"))
    drawn = map_of(database)
    assert (drawn.ids.tolist(), drawn.total, len(drawn.labels)) == ([*range(8)], 8, 8)
    assert list(tmp_path.iterdir()) == []


def test_a_database_that_goes_away_and_comes_back(running: Server, url: str, capfd: pytest.CaptureFixture[str]):
    plain(url, "lasting")
    database = Index.open(url.replace("likewise@", f"likewise:{SECRET}@") + "#lasting")
    asks = [
        ("GET", "/api/about", {}),
        ("GET", "/api/items", {}),
        ("GET", "/api/items/3", {}),
        ("GET", "/api/map", {}),
        ("GET", "/api/items/3/neighbors", {}),
        ("POST", "/api/search", {"json": {"vector": vector()}}),
        ("POST", "/api/search", {"files": {"image": IMAGE}}),
        ("POST", "/api/verify", {"json": {"first": 1, "second": 2}}),
        ("POST", "/api/why", {"json": {"query": 1, "item": 2}}),
    ]
    with TestClient(make_app(database), base_url=LOCAL) as client:
        before = [client.request(method, address, **given) for method, address, given in asks]
        running.stop()
        try:
            for method, address, given in asks:
                answer = client.request(method, address, **given)
                assert (answer.status_code, answer.json()) == (503, {"error": UNREADABLE}), address
                assert answer.headers["retry-after"] == "5"
            assert client.get("/").status_code == 200  # the page itself needs no database
        finally:
            running.start()
        after = [client.request(method, address, **given) for method, address, given in asks]
    assert [each.status_code for each in after] == [200] * 6 + [409, 200, 409]
    assert all(alike(*each) for each in zip([x.json() for x in before], [x.json() for x in after], strict=True))
    said = capfd.readouterr().err
    assert "the index cannot be read: the database" in said
    assert said.count("\n") <= 4  # not one line for each request
    assert "Traceback" not in said
    assert PLAIN not in said + repr(database)
    assert SECRET not in said


def test_an_index_that_is_dropped_meanwhile(url: str):
    database = plain(url, "short-lived")
    with TestClient(make_app(Index.open(f"{url}#short-lived")), base_url=LOCAL) as client:
        database.drop()
        for address in (
            "/api/about",
            "/api/items",
            "/api/items/3",
            "/api/items/3/thumbnail",
            "/api/items/3/neighbors",
        ):
            answer = client.get(address)
            assert (answer.status_code, answer.json()["error"]) == (503, UNREADABLE), address
        assert client.post("/api/search", json={"vector": vector()}).status_code == 503


def test_connections_are_bounded(url: str, monkeypatch: pytest.MonkeyPatch):
    """A transaction waits for a connection, and not for ever."""
    monkeypatch.setattr(postgres_server, "CONNECTIONS", 2)
    monkeypatch.setattr(postgres_server, "PATIENCE", 0.2)
    database = plain(url, "narrow")
    with ThreadPoolExecutor(1) as other:
        with database.still() as one, database.still():
            assert len(one) == 8
            with pytest.raises(ConnectionError, match=r"the database is busy: all 2 connections to it are in use"):
                other.submit(len, database).result()
            monkeypatch.setattr(postgres_server, "PATIENCE", 20.0)
            waiting = other.submit(len, database)
            with pytest.raises(TimeoutError):
                waiting.result(0.1)
        assert waiting.result(10) == 8


def test_what_changes_an_index_needs_one_connection(url: str, monkeypatch: pytest.MonkeyPatch):
    """Or threads that hold one each would wait for another for ever."""
    monkeypatch.setattr(postgres_server, "CONNECTIONS", 1)
    monkeypatch.setattr(postgres_server, "PATIENCE", 0.5)
    database = plain(url, "alone")
    database.add(np.eye(32)[:2], ["a", "b"], metadata={"year": [1, 2]})
    assert database.remove(where="year == 1") == 1
    assert database.remove([0]) == 1
    database.rebuild(approximate="auto")
    database.set_calibration(None)
    assert database.duplicates(0.999) == []
    assert len(database.search(np.eye(32)[:1], 3, where="id > 2").of(0)) == 3


def test_a_search_may_be_given_a_time(url: str):
    plain(url, "slow")
    sign = "&" if "?" in url else "?"
    database = Index.open(f"{url}{sign}options=-c%20statement_timeout%3D20ms#slow")
    with pytest.raises(ConnectionError, match=r"the database does not answer: canceling statement due to statement"):
        database._store._all("SELECT pg_sleep(5) FROM {}")
    assert len(database) == 8


@loop_over(
    "place",
    [
        f"postgresql://me:{PLAIN}@host/photos#birds",
        "postgresql://me:open/sesame@host/photos#birds",
        "postgresql://me:open#sesame@host/photos#birds",
        "postgresql://me:open#sesame@host/photos",
        "postgresql://me:open#sesame",
        "postgresql://me:sesame",
        "postgresql://me:open?s/sesame@host/photos",
        "postgresql://me:x@host/photos?sesame",
        "postgresql://me:x@host/photos?sesame=1",
        "postgresql://me:x@host:sesame/photos",
        "postgresql://me:%zzsesame@host/photos",
        "postgresql://me:sesame@host.invalid/photos",
        "postgresql://me:sesame@/photos?host=/nowhere",
        "postgresql://me@/photos?host=/nowhere&password=sesame",
        "postgrsql://me:sesame@host/photos",
        "host=/nowhere password=sesame",
    ],
)
def test_no_error_repeats_a_password(place: str):
    pytest.importorskip("psycopg")
    with pytest.raises((ValueError, ConnectionError)) as refused:
        PostgresStore.open(*(split_url(place) if "://" in place else (place, None)))
    with pytest.raises(UserError) as mistake:
        command.run([place if "://" in place else f"{place}://", "--port", "0"])
    for error in (refused.value, mistake.value):
        while error is not None:  # with all that a traceback would show
            assert "sesame" not in str(error)
            error = error.__cause__ or error.__context__  # type: ignore[assignment]


def test_a_command_and_its_page(
    pair: tuple[Index, Index], running: Server, tmp_path: Path, serve: Callable[..., Process]
):
    """As a user types it, with a password; and while the database is started anew."""
    stored(pair[0], running.url, "typed")
    place = running.url.replace("likewise@", f"likewise:{SECRET}@") + "#typed"
    started = serve(place)
    assert started.said.startswith("typed: 48 images at http://127.0.0.1:")

    def fetched(address: str) -> bytes:
        with urllib.request.urlopen(started.address + address, timeout=20) as answer:
            return bytes(answer.read())

    pages = [fetched(each) for each in ("", "page.js", "openapi.json", "api/about", "api/items", "api/map")]
    assert b"<title>" in pages[0]
    assert json.loads(pages[3])["items"] == 48
    assert fetched("api/items/3/thumbnail") == pair[0].thumbnail(3)
    running.stop()
    try:
        with pytest.raises(urllib.error.HTTPError) as away:
            fetched("api/items/3")
        assert (away.value.code, json.loads(away.value.read())) == (503, {"error": UNREADABLE})
    finally:
        running.start()
    assert json.loads(fetched("api/items/3"))["path"] == "ring-03.png"
    said = started.stop()
    assert said.endswith("stopped\n")
    assert said.count("the index cannot be read: the database") == 1
    assert started.process.returncode == 0
    for word in (SECRET, PLAIN):
        assert word.encode() not in b"".join(pages)
        assert word not in started.said + said
