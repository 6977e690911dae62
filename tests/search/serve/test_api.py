"""The API says what the index says, and lets in what it should."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
import pytest
from PIL import Image
from starlette.testclient import TestClient

from likewise.search import Index
from likewise.search.calibration import Calibration, Point
from likewise.search.rerank import KReciprocal
from likewise.search.serve import Limits, make_app
from likewise.search.serve.service import Service
from tests.search.serve.conftest import as_file, draw, make_index

LOCAL = "http://127.0.0.1:8000"


@pytest.fixture(scope="module")
def client(shapes: Index) -> Iterator[TestClient]:
    with TestClient(make_app(shapes), base_url=LOCAL) as client:
        yield client


def found(answer: httpx2.Response, query: int = 0) -> list[tuple[int, float]]:
    assert answer.status_code == 200, answer.text
    return [(hit["id"], hit["score"]) for hit in answer.json()["answers"][query]["found"]]


def same(some: list[tuple[int, float]], others: list[tuple[int, float]]) -> bool:
    numbers = [number for number, _ in some] == [number for number, _ in others]
    return numbers and np.allclose([score for _, score in some], [score for _, score in others], atol=2e-6)


# ---- what is found


def test_vectors_find_what_the_index_finds(client: TestClient, shapes: Index):
    queries = np.random.default_rng(1).normal(size=(3, 32))
    truth = shapes.search(queries, 7)
    one = client.post("/api/search", json={"vector": queries[0].tolist(), "k": 7})
    assert same(found(one), truth.of(0))
    several = client.post("/api/search", json={"vectors": queries.tolist(), "k": 7})
    assert all(same(found(several, row), truth.of(row)) for row in range(3))
    hit = one.json()["answers"][0]["found"][0]
    item = shapes.item(hit["id"])
    assert (hit["path"], hit["label"], hit["metadata"]) == (item.path, item.label, dict(item.metadata))


def test_the_length_of_a_vector_means_nothing(client: TestClient):
    vector = np.random.default_rng(1).normal(size=32)
    first, *others = (
        found(client.post("/api/search", json={"vector": (vector * scale).tolist()})) for scale in (1, 1e-300, 1e300)
    )
    assert all(same(first, other) for other in others)
    assert len(found(client.post("/api/search", json={"vector": [0.0] * 32}))) == 10  # no direction: all equally far


def test_an_item_finds_its_neighbors_without_itself(client: TestClient, shapes: Index):
    truth = shapes.neighbors(5, 6)
    assert same(found(client.get("/api/items/5/neighbors?k=6")), truth.of(0))
    assert same(found(client.post("/api/search", json={"id": 5, "k": 6})), truth.of(0))
    assert len(found(client.get("/api/items/5/neighbors?k=1000"))) == 47


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "TIFF"])
def test_an_uploaded_image(client: TestClient, shapes: Index, kind: str):
    data = as_file(draw("square", "gold", 99), kind)
    answer = client.post("/api/search", files={"image": ("any name at all", data)}, data={"k": "4", "place": "true"})
    assert same(found(answer), shapes.search(data, 4).of(0))
    x, y = answer.json()["answers"][0]["place"]
    assert -0.03 < x < 1.03
    assert -0.03 < y < 1.03


def test_filters_and_reranking(client: TestClient, shapes: Index):
    where = 'label == "ring" and size >= 3'
    given = {"id": 3, "where": where, "k": 5}
    answer = client.post("/api/search", json=given)
    assert same(found(answer), shapes.neighbors(3, 5, where=where).of(0))
    assert {hit["label"] for hit in answer.json()["answers"][0]["found"]} == {"ring"}
    vector = shapes.vectors([7])[0]
    again = client.post("/api/search", json={"vector": vector.tolist(), "rerank": "k-reciprocal", "k": 5})
    assert same(found(again), shapes.search(vector, 5, rerank=KReciprocal()).of(0))
    assert found(client.post("/api/search", json={"id": 3, "where": "size > 99"})) == []


def test_clients_at_once_are_answered_each_its_own(shapes: Index):
    """Different questions in one batch: no answer goes to a neighbor."""
    queries = np.random.default_rng(2).normal(size=(40, 32))
    settings = [(1 + number % 5, ("size > 2", None)[number % 2]) for number in range(40)]

    async def main() -> tuple[list[httpx2.Response], list[int]]:
        app = make_app(shapes)
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url=LOCAL) as client:
            sent = [
                client.post("/api/search", json={"vector": query.tolist(), "k": k, "where": where})
                for query, (k, where) in zip(queries, settings, strict=True)
            ]
            return await asyncio.gather(*sent), []

    answers, _ = asyncio.run(main())
    for query, (k, where), answer in zip(queries, settings, answers, strict=True):
        assert same(found(answer), shapes.search(query, k, where=where).of(0))


# ---- what is looked up


def test_items(client: TestClient, shapes: Index):
    assert client.get("/api/items/3").json() == {
        "id": 3,
        "path": "ring-03.png",
        "label": "ring",
        "metadata": {"size": 3},
    }
    page = client.get("/api/items", params={"where": 'label == "disc"', "offset": 2, "limit": 3}).json()
    assert page["total"] == 12
    assert [each["id"] for each in page["items"]] == [8, 12, 16]
    spread: list[int] = []
    for offset in range(0, 60, 10):
        page = client.get("/api/items", params={"offset": offset, "limit": 10, "spread": True}).json()
        spread += [each["id"] for each in page["items"]]
    assert sorted(spread) == list(range(48))
    assert len({number // 12 for number in spread[:4]}) >= 3


def test_pictures(client: TestClient, shapes: Index):
    small = client.get("/api/items/3/thumbnail")
    assert (small.content, small.headers["content-type"]) == (shapes.thumbnail(3), "image/webp")
    assert small.headers["cache-control"] == "no-cache"
    version = client.get("/api/about").json()["version"]
    assert "immutable" in client.get(f"/api/items/3/thumbnail?v={version}").headers["cache-control"]
    whole = client.get("/api/items/3/image")
    assert whole.headers["content-type"] == "image/png"
    assert whole.content == (shapes.root / "ring-03.png").read_bytes()  # type: ignore[operator]


def test_about_and_map(client: TestClient, shapes: Index):
    told = client.get("/api/about").json()
    assert (told["name"], told["items"], told["dim"], told["near"]) == ("shapes", 48, 32, None)
    assert told["fields"] == {"label": "text", "path": "text", "id": "number", "size": "number"}
    assert told["model"]["name"] == "tiny"
    drawn = client.get("/api/map").json()
    assert drawn["ids"] == list(range(48))
    assert [drawn["names"][code] for code in drawn["labels"]] == shapes.column("label")
    placed = client.post("/api/search", json={"id": 9, "place": True}).json()["answers"][0]["place"]
    assert placed == pytest.approx([drawn["x"][9], drawn["y"][9]], abs=1e-3)


def test_why_and_verify(client: TestClient, shapes: Index):
    told = client.post("/api/why", json={"query": 4, "item": 9}).json()
    first, second = shapes.vectors([4, 9]).astype(float)
    assert told["similarity"] == pytest.approx(float(first @ second), abs=1e-5)
    for side in ("query", "item"):
        assert sum(map(sum, told[side]["places"])) == pytest.approx(told["similarity"], abs=1e-9)
    data = as_file(draw(*("disc", "royalblue"), 8))
    told = client.post("/api/why", files={"image": data}, data={"item": "8"}).json()
    assert told["similarity"] == pytest.approx(1.0, abs=1e-5)  # item 8 is this very image
    told = client.post("/api/verify", files={"first": data, "second": data}).json()
    assert told == {"similarity": pytest.approx(1.0), "probability": None, "rates": []}
    told = client.post("/api/verify", json={"first": 4, "second": 9}).json()
    assert told["similarity"] == pytest.approx(float(first @ second), abs=1e-6)


def test_verify_says_what_was_calibrated(tmp_path: Path):
    index = make_index(tmp_path, model=False, count=8)
    learned = Calibration(
        (Point(0.1, 0.2, 0.9), Point(0.001, float("inf"), 0.0)), (-1.0, 1.0), (0.0, 1.0), 10, 100, None
    )
    index.set_calibration(learned.as_dict())
    with TestClient(make_app(index), base_url=LOCAL) as client:
        told = client.post("/api/verify", json={"first": 1, "second": 1}).json()
        assert told["probability"] == pytest.approx(1.0)
        assert told["rates"] == [
            {"far": 0.1, "threshold": 0.2, "same": True},
            {"far": 0.001, "threshold": None, "same": False},
        ]
        for address in ("/api/search", "/api/why"):
            answer = client.post(address, files={"image": as_file(draw("disc", "teal", 1))}, data={"item": "1"})
            assert (answer.status_code, "has no model" in answer.json()["error"]) in ((409, True), (422, False))


def test_what_others_write_is_seen(tmp_path: Path):
    index = make_index(tmp_path, model=False, count=8)
    with TestClient(make_app(Index.open(index.folder)), base_url=LOCAL) as client:
        vector = [1.0] + [0.0] * 31
        assert len(found(client.post("/api/search", json={"vector": vector, "k": 20}))) == 8
        [new] = index.add(np.array([vector]), ["new.png"])
        best = found(client.post("/api/search", json={"vector": vector, "k": 20}))
        assert best[0] == (new, pytest.approx(1.0))
        index.remove([new])
        assert new not in [each for each, _ in found(client.post("/api/search", json={"vector": vector, "k": 20}))]
        assert client.get(f"/api/items/{new}").status_code == 404


# ---- what is refused


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, "one of vector, vectors and id, but it has none"),
        ({"id": 1, "vector": [1.0] * 32}, "but it has vector and id"),
        ({"vector": [1.0] * 31}, "a vector must have dimension 32, but it has 31"),
        ({"vectors": [[1.0] * 32] * 300}, "vectors must be at most 256 at once, but there are 300"),
        ({"id": 1, "k": 0}, "k: input should be greater than or equal to 1, but it is 0"),
        ({"id": 1, "k": 5000}, "k must be at most 1,000, but it is 5,000"),
        ({"id": 1, "where": "lable == 'a'"}, "where must name columns of the index (id, label, path, size)"),
        ({"id": 1, "where": "__import__('os').system('ls')"}, "where must consist of columns"),
        ({"id": 1, "exact": False}, "exact must be True or None"),
        ({"id": 1, "rerank": "luck"}, "rerank: input should be 'k-reciprocal' or 'query-expansion'"),
        ({"id": 1, "extra": 1}, "extra: extra inputs are not permitted"),
        ({"vector": ["a"] * 32}, "vector.0: input should be a valid number"),
    ],
)
def test_mistakes_are_sentences(client: TestClient, given: dict[str, Any], says: str):
    answer = client.post("/api/search", json=given)
    assert answer.status_code == 422
    assert says in answer.json()["error"]


def test_numbers_that_are_none(client: TestClient):
    for word in ("NaN", "Infinity", "-Infinity", "1e999"):
        body = '{"vector": [' + ", ".join([word] * 32) + "]}"
        answer = client.post("/api/search", content=body, headers={"content-type": "application/json"})
        assert answer.status_code == 422, word


def test_what_is_not_there(client: TestClient):
    for address in ("/api/items/999", "/api/items/999/thumbnail", "/api/items/999/image", "/api/items/999/neighbors"):
        answer = client.get(address)
        assert (answer.status_code, "999" in answer.json()["error"]) == (404, True)
    assert client.get("/api/nothing").json() == {"error": "there is no page /api/nothing"}
    assert client.delete("/api/items/3").status_code == 405
    assert client.get("/api/items", params={"limit": 201}).status_code == 422


@pytest.mark.parametrize(
    "path",
    ["..%2f..%2fetc%2fpasswd", "../../etc/passwd", "%2e%2e/version-000002/card.json", "3%00", "3/../../.lock", "-1"],
)
def test_no_path_leads_outside(client: TestClient, path: str):
    for address in (f"/api/items/{path}/image", f"/{path}", f"/api/items/3/image/{path}"):
        answer = client.get(address)
        assert answer.status_code in (404, 422), address
        assert "root:" not in answer.text


def test_an_index_cannot_name_what_is_outside(tmp_path: Path):
    """An index from somebody else with paths of its own choice."""
    secret = tmp_path / "secret.png"
    draw("disc", "teal", 1).save(secret)
    root = tmp_path / "root"
    root.mkdir()
    (root / "notes.txt").write_text("private words")
    (root / "link.png").symlink_to(secret)
    Image.new("L", (30, 20)).save(root / "scan.tif")
    index = Index.create(tmp_path / "a.index", dim=2, root=root)
    index.add(np.ones((5, 2)), [str(secret), "../secret.png", "link.png", "notes.txt", "scan.tif"])
    with TestClient(make_app(index), base_url=LOCAL) as client:
        assert [client.get(f"/api/items/{number}/image").status_code for number in range(5)] == [
            404,
            404,
            404,
            415,
            200,
        ]
        shown = client.get("/api/items/4/image")
        assert shown.headers["content-type"] == "image/webp"
        assert Image.open(BytesIO(shown.content)).size == (30, 20)


def test_too_large(shapes: Index):
    with TestClient(make_app(shapes, limits=Limits(upload=50_000)), base_url=LOCAL) as client:
        data = as_file(draw("disc", "teal", 1), "BMP") + bytes(60_000)
        answer = client.post("/api/search", files={"image": data})
        assert (answer.status_code, answer.json()["error"]) == (
            413,
            "a request must have at most 0.05 MB, but this one has more",
        )

        def stream() -> Iterator[bytes]:
            yield from [b"x" * 10_000] * 9

        answer = client.post("/api/search", content=stream(), headers={"content-type": "application/json"})
        assert answer.status_code == 413  # though no header said how long it is
        assert client.get("/api/about").status_code == 200


def test_other_hosts_and_other_sites_are_refused(shapes: Index, client: TestClient):
    for host in ("evil.example", "127.0.0.1.evil.example", "localhost.evil.example:8000", "", "0.0.0.0"):
        assert client.get("/api/about", headers={"host": host}).status_code == 421, host
        assert client.get("/", headers={"host": host}).status_code == 421
    for host in ("localhost", "localhost:1234", "127.0.0.1", "[::1]:8000", "127.8.9.1"):
        assert client.get("/api/about", headers={"host": host}).status_code == 200, host
    assert client.get("/api/about", headers={"sec-fetch-site": "cross-site"}).status_code == 403
    assert client.get("/", headers={"sec-fetch-site": "cross-site"}).status_code == 200  # a link
    with TestClient(make_app(shapes, loopback=False), base_url="http://photos.example") as open_client:
        assert open_client.get("/api/about").status_code == 200


def test_a_token(shapes: Index):
    with TestClient(make_app(shapes, token="s3cret"), base_url=LOCAL) as client:
        for given in (
            None,
            "",
            "Bearer",
            "Bearer ",
            "Bearer s3cre",
            "Bearer s3cret1",
            "Basic s3cret",
            "s3cret",
            "Bearer \xff",
        ):
            headers = {} if given is None else {"authorization": given.encode("latin-1")}
            for address in ("/api/about", "/api/items/3/image", "/api/map", "/api/nothing"):
                answer = client.get(address, headers=headers)
                assert answer.status_code == 401
                assert answer.headers["www-authenticate"] == "Bearer"
            assert client.post("/api/search", json={"id": 1}, headers=headers).status_code == 401
        assert client.get("/api/about", headers={"authorization": "Bearer s3cret"}).status_code == 200
        assert client.get("/").status_code == 200  # the page that asks for it


def test_headers_on_everything(client: TestClient):
    for address in (
        "/",
        "/page.js",
        "/docs",
        "/openapi.json",
        "/api/about",
        "/api/items/3/image",
        "/api/items/999",
        "/x",
    ):
        headers = client.get(address).headers
        policy = dict(each.split(" ", 1) for each in headers["content-security-policy"].split("; "))
        assert policy["default-src"] == "'none'"
        assert policy["script-src"] == "'self'"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert "server" not in headers
        assert "access-control-allow-origin" not in headers


def test_a_request_that_takes_too_long(shapes: Index, monkeypatch: pytest.MonkeyPatch):
    async def never(*_given: object) -> None:
        await asyncio.sleep(60)

    monkeypatch.setattr(Service, "search", never)
    with TestClient(make_app(shapes, limits=Limits(seconds=0.2)), base_url=LOCAL) as client:
        answer = client.get("/api/items/3/neighbors")
        assert (answer.status_code, answer.json()["error"]) == (503, "this took longer than 0.2 seconds")
        assert client.get("/api/about").status_code == 200


def test_when_full_some_are_told_to_come_back_and_nobody_hangs(shapes: Index):
    image = as_file(draw("disc", "teal", 1))

    async def main() -> list[httpx2.Response]:
        app = make_app(shapes, limits=Limits(waiting=3, uploads=2))
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url=LOCAL) as client:
            sent = [client.get(f"/api/items/{number}/neighbors") for number in range(30)]
            sent += [client.post("/api/search", files={"image": image}) for _ in range(10)]
            answers = await asyncio.wait_for(asyncio.gather(*sent), 20)
            later = await asyncio.gather(
                client.get("/api/items/3/neighbors"), client.post("/api/search", files={"image": image})
            )
            return [*answers, *later]

    *answers, first, second = asyncio.run(main())
    statuses = [each.status_code for each in answers]
    assert set(statuses) == {200, 429}
    assert statuses[:30].count(200) >= 3
    assert statuses[30:].count(200) >= 1
    assert all(each.headers["retry-after"] == "1" for each in answers if each.status_code == 429)
    assert (first.status_code, second.status_code) == (200, 200)  # there is room again


def test_the_page_is_inside_and_asks_nobody(client: TestClient):
    for address, kind in (
        ("/", "text/html"),
        ("/docs", "text/html"),
        ("/page.js", "text/javascript"),
        ("/page.css", "text/css"),
    ):
        answer = client.get(address)
        assert answer.headers["content-type"].startswith(kind)
        assert "http://" not in answer.text.replace("http://www.w3.org/2000/svg", "")
        assert "https://" not in answer.text
        again = client.get(address, headers={"if-none-match": answer.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        if kind == "text/html":
            assert " style=" not in answer.text
            assert "<script>" not in answer.text


def test_the_description_is_whole(client: TestClient):
    told = client.get("/openapi.json").json()
    text = json.dumps(told)
    assert "HTTPValidationError" not in text
    for path, methods in told["paths"].items():
        for operation in methods.values():
            assert operation["summary"], path
            assert {"401", "404", "422", "429", "503"} <= set(operation["responses"])
