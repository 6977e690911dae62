"""Whatever is sent, the answer is a result or a sentence, and never a fault of the server."""

from __future__ import annotations

import itertools
import random
import warnings
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from likewise.search import Index
from likewise.search.serve import Limits, make_app
from likewise.search.serve.app import _make_application
from tests.search.serve.conftest import as_file, draw
from tests.search.serve.test_limits import KINDS, png_claiming

LOCAL = "http://127.0.0.1:8000"
WITHOUT_ARGUMENTS = ("/api/about", "/api/columns", "/api/map")
QUIET = settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def client(shapes: Index) -> Iterator[TestClient]:
    with TestClient(make_app(shapes, limits=Limits(pixels=200_000)), base_url=LOCAL) as client:
        yield client


def damaged() -> list[bytes]:
    """Files cut, bent, joined and swollen."""
    chance = random.Random(0)
    made = [b"", b"\0" * 100, b"GIF89a", b"\x89PNG\r\n\x1a\n", png_claiming(2**31 - 1, 2**31 - 1), png_claiming(1, 1)]
    for kind in KINDS:
        whole = as_file(draw("ring", "teal", 1), kind)
        made += [whole[: chance.randrange(1, len(whole))] for _ in range(3)]
        for _ in range(6):
            bent = bytearray(whole)
            for _ in range(chance.choice([1, 5, 60])):
                bent[chance.randrange(len(bent))] = chance.randrange(256)
            made.append(bytes(bent))
        made.append(whole[:20] + whole)
        made.append(whole + whole)
    return made


@pytest.mark.parametrize("address", ["/api/search", "/api/why", "/api/verify"])
def test_damaged_images(client: TestClient, address: str):
    good = as_file(draw("disc", "gold", 5))
    for data in damaged()[:: 1 if address == "/api/search" else 5]:
        files = {"first": good, "second": data} if address == "/api/verify" else {"image": data}
        answer = client.post(address, files=files, data={"item": "3"} if address == "/api/why" else {})
        assert answer.status_code in (200, 413, 415, 422), answer.text
        if answer.status_code != 200:
            assert set(answer.json()) == {"error"}
            assert 10 < len(answer.json()["error"]) < 300


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"", "multipart/form-data"),
        (b"", "multipart/form-data; boundary="),
        (b"--x\r\n", "multipart/form-data; boundary=x"),
        (b"--x\r\nContent-Disposition: form-data\r\n\r\nabc\r\n--x--", "multipart/form-data; boundary=x"),
        (b'--x\r\nContent-Disposition: form-data; name="image"\r\n\r\nabc\r\n--x--', "multipart/form-data; boundary=x"),
        (
            b'--x\r\nContent-Disposition: form-data; name="k"; filename="a"\r\n\r\nabc\r\n--x--',
            "multipart/form-data; boundary=x",
        ),
        (b'--x\r\nContent-Disposition: form-data; name="k"\r\n\r\n' + b"9" * 70_000, "multipart/form-data; boundary=x"),
        (
            b'--x\r\nContent-Disposition: form-data; name="where"\r\nContent-Type: text/plain; charset=no-such\r\n\r\n\xff\xfe\r\n--x--',
            "multipart/form-data; boundary=x; charset=no-such",
        ),
        (b"\xff\xfe", "application/json"),
        (b"[" * 100_000, "application/json"),
        (b'{"id": ' + b"9" * 5000 + b"}", "application/json"),
        (b'{"id": 1, "where": "\\ud800"}', "application/json"),
        (b'{"id": 1, "where": "label == \'\\u0000\'"}', "application/json"),
        (b'{"id": 1, "where": "' + b"(" * 4000 + b'"}', "application/json"),
        (b"null", "application/json"),
        (b"image=1", "application/x-www-form-urlencoded"),
        (b"{}", "text/plain; charset=no-such"),
    ],
)
def test_damaged_bodies(client: TestClient, body: bytes, kind: str):
    for address in ("/api/search", "/api/why", "/api/verify"):
        answer = client.post(address, content=body, headers={"content-type": kind})
        assert answer.status_code in (400, 413, 415, 422), answer.text
        assert set(answer.json()) == {"error"}


WORDS = st.sampled_from(
    [
        *"()[]{}<>=!+-*/%.,:'\"\\",
        "and",
        "or",
        "not",
        "in",
        "is",
        "None",
        "True",
        "label",
        "size",
        "path",
        "id",
        "like",
        "==",
        "!=",
        "<=",
        '"disc"',
        "'*'",
        "1",
        "-1",
        "1e400",
        str(10**30),
        "column",
        "lambda",
        "if",
        "else",
        "\n",
        "é",
    ]
)


@settings(QUIET, max_examples=250)
@given(where=st.one_of(st.text(max_size=60), st.lists(WORDS, max_size=9).map(" ".join)))
def test_filters(client: TestClient, where: str):
    answer = client.get("/api/items", params={"where": where})
    assert answer.status_code in (200, 422), (where, answer.text)
    answer = client.post("/api/search", json={"id": 3, "where": where})
    assert answer.status_code in (200, 422), (where, answer.text)


def test_the_description_holds_for_whatever_is_sent(shapes: Index):
    """schemathesis: requests made from the API's own description, right and wrong, and answers held against it."""
    pytest.importorskip("schemathesis")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of schemathesis' own imports
        import schemathesis
        from schemathesis.specs.openapi.checks import (
            content_type_conformance,
            response_schema_conformance,
            status_code_conformance,
        )
    app, service = _make_application(shapes, Limits(), "pca")
    guarded = make_app(shapes)
    schema = schemathesis.openapi.from_asgi("/openapi.json", app)
    tried: dict[tuple[str, str], list[int]] = {}
    with TestClient(guarded, base_url=LOCAL) as client:
        for result, mode in itertools.product(schema.get_all_operations(), schemathesis.GenerationMode):
            operation = result.ok()
            if mode.is_negative and operation.path in WITHOUT_ARGUMENTS:
                continue  # there is nothing that could be wrong
            key = operation.path, mode.value

            @QUIET
            @given(case=operation.as_strategy(generation_mode=mode), key=st.just(key))
            def check(case: schemathesis.Case, key: tuple[str, str]) -> None:
                answer = case.call(session=client, base_url=LOCAL)
                assert answer.status_code < 500, answer.text
                case.validate_response(
                    answer, checks=(status_code_conformance, content_type_conformance, response_schema_conformance)
                )
                tried.setdefault(key, []).append(answer.status_code)

            check()
    service.close()
    assert len(tried) == 23
    assert all(len(statuses) >= 5 for (path, _), statuses in tried.items() if path not in WITHOUT_ARGUMENTS)
    assert 200 in tried["/api/search", "positive"] + tried["/api/items", "positive"]
    assert 422 in tried["/api/search", "negative"]
