"""Hostile and damaged files of every kind that likewise reads: one sentence each, and nothing is executed."""

from __future__ import annotations

import asyncio
import base64
import csv
import io
import json
import os
import pickle
import struct
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

from likewise import app
from likewise.app.build import make_model
from likewise.app.embedding_options import ImageOptions
from likewise.app.images import find_images, read_columns
from likewise.app.index_places import is_near
from likewise.app.serving import check_host
from likewise.data import BrokenImage, ImageFolder, TooLarge, decode
from likewise.losses import CircleLoss
from likewise.metrics import retrieval
from likewise.report.study_complete_table import csv_link
from likewise.sanitize import hide_secrets
from likewise.search import Encoder, Index, Shot, draw_contact_sheet
from likewise.search.serve.decoders import Decoders
from likewise.search.serve.guard import Guard, _Body
from likewise.search.serve.limits import Limits, RequestError, read_upload
from likewise.search.serve.service import Service
from likewise.train import Run
from likewise.train.run import command_line
from likewise.trunks import Embedder
from likewise.trunks.weights import read_state
from tests.search.serve.test_limits import png_claiming
from tests.security.conftest import Answers


class Payload:
    """A pickle that runs a command."""

    def __reduce__(self):
        return os.system, ("touch PWNED",)


# ------------------------------------------------------------------------------------------------ images


def jpeg_of_scans(side: int, scans: int) -> bytes:
    """A progressive JPEG whose last scan is repeated."""
    file = io.BytesIO()
    Image.new("L", (side, side)).save(file, "JPEG", progressive=True)
    data = file.getvalue()
    last = data[data.rindex(b"\xff\xda") : -2]
    return data[:-2] + last * scans + data[-2:]


def tiff_of_tile(side: int, tile: int) -> bytes:
    """A TIFF of few pixels whose one tile claims many."""
    entries = [
        (256, side),
        (257, side),
        (258, 8),
        (259, 8),
        (262, 1),
        (277, 1),
        (322, tile),
        (323, tile),
        (324, 200),
        (325, 8),
    ]
    packed = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in entries)
    head = struct.pack("<2sHIH", b"II", 42, 8, len(entries)) + packed + bytes(4)
    return head.ljust(200, b"\0") + bytes(8)


def test_scans_and_tiles_are_counted_before_they_are_decoded():
    with pytest.raises(TooLarge, match=r"at most 64 scans, but it has 5,00\d"):
        decode(jpeg_of_scans(64, 5000), name="a.jpg")
    assert decode(jpeg_of_scans(64, 20)).size == (64, 64)
    with pytest.raises(TooLarge, match="tiles of 20,000 x 20,000 pixels are larger than the image"):
        decode(tiff_of_tile(16, 20_000), name="a.tif")
    with pytest.raises(RequestError) as refused:
        read_upload(jpeg_of_scans(64, 5000), Limits())
    assert refused.value.status == 413


@pytest.fixture
def large() -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (2100, 2100)).save(file, "PNG", compress_level=1)
    return file.getvalue()


@pytest.mark.skipif(os.name != "posix", reason="memory is limited where the system can")
def test_a_decoder_is_killed_and_replaced(large: bytes):
    small = io.BytesIO()
    Image.new("RGB", (5, 4), "red").save(small, "PNG")
    decoders = Decoders(1, seconds=0.02)
    try:
        begin = time.monotonic()
        with pytest.raises(TooLarge, match=r"longer than 0\.02 seconds"):
            decoders.decode(large, "a.png", ["PNG"], pixels=10**8)
        assert time.monotonic() - begin < 5.0
        decoders.seconds, decoders.memory = 60.0, 150_000_000
        with pytest.raises(BrokenImage):
            decoders.decode(_png(9000), "a.png", ["PNG"], pixels=10**8)
        decoders.memory = 1_500_000_000
        image = decoders.decode(small.getvalue(), "b.png", ["PNG"], pixels=100)
        assert (image.size, image.getpixel((4, 3))) == ((5, 4), (255, 0, 0))
        assert decoders.decode(large, "c.png", ["PNG"], pixels=10**8).size == (2100, 2100)
    finally:
        decoders.close()


def _png(side: int) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (side, side)).save(file, "PNG", compress_level=1)
    return file.getvalue()


def test_uploads_wait_small_and_their_bytes_are_counted(here: Path, large: bytes, monkeypatch: pytest.MonkeyPatch):
    """What waits for the model is shrunk, and all bodies together are limited."""
    index = Index.create("a.index", dim=4, model=Encoder(Embedder("convnet", 4), transform="glyphs"))
    service, waiting = Service(index, Limits()), []

    async def record(image: np.ndarray) -> np.ndarray:
        waiting.append(image)
        return np.ones(4, np.float32)

    monkeypatch.setattr(service._embeds, "do", record)
    try:
        asyncio.run(service.embed([("the image", large)]))
    finally:
        service.close()
    assert max(image.nbytes for image in waiting) < 100_000

    async def answer(count: int) -> list[int]:
        statuses: list[int] = []

        async def work(scope: Any, receive: Any, send: Any) -> None:
            await receive()
            await asyncio.sleep(0.01)
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b""})

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": bytes(60), "more_body": False}

        async def send(message: Any) -> None:
            if "status" in message:
                statuses.append(message["status"])

        guard = Guard(work, Limits(upload=100, in_flight=130))
        scope = {"type": "http", "method": "POST", "path": "/", "headers": [(b"host", b"localhost")]}
        await asyncio.gather(*(guard(scope, receive, send) for _ in range(count)))
        return statuses

    assert sorted(asyncio.run(answer(5))) == [200, 200, 429, 429, 429]

    async def drain() -> int:
        """What is left of a body that is refused on its way, so that its sender reads the answer."""
        rest = [{"type": "http.request", "body": bytes(10), "more_body": more} for more in (True, True, False)]

        async def receive() -> dict[str, Any]:
            return rest.pop(0)

        def hold(_count: int) -> None:
            raise RequestError(429, "too many", retry=1)

        with pytest.raises(RequestError, match="too many"):
            await _Body(receive, {}, 100, hold)()
        return len(rest)

    assert asyncio.run(drain()) == 0


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "10.0.0.7", "example.org"])
def test_other_machines_need_a_proxy_in_front(host: str):
    with pytest.raises(app.UserError, match="put a proxy in front that limits clients and slow requests"):
        check_host(host, behind_proxy=False)
    check_host(host, behind_proxy=True)


# ------------------------------------------------------------------------------------------------ models and indexes


def test_a_pickle_is_not_executed(here: Path):
    torch.save({"a": Payload()}, "weights.pt")
    with pytest.raises(ValueError, match="which could run code when they are read"):
        read_state("weights.pt")
    with pytest.raises(app.UserError):
        make_model({"trunk": "convnet", "weights": "weights.pt", "dim": 4, "in_channels": None})
    assert not (here / "PWNED").exists()


@pytest.mark.parametrize("trunk", ["evil.Loss", "timm:../evil", "os:system"])
def test_the_card_of_a_model_names_no_code(trunk: str, here: Path):
    Embedder("convnet", 4).save("a.safetensors")
    from safetensors import safe_open

    with safe_open("a.safetensors", "pt") as file:
        metadata, tensors = dict(file.metadata()), {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    metadata = {key: text.replace('"convnet"', json.dumps(trunk)) for key, text in metadata.items()}
    assert any(trunk in text for text in metadata.values())
    save_file(tensors, "b.safetensors", metadata=metadata)
    with pytest.raises((ValueError, ImportError, OSError, KeyError, RuntimeError)):
        Embedder.load("b.safetensors")
    assert not (here / "EXECUTED").exists()


@pytest.fixture
def index(here: Path) -> Path:
    made = Index.create("a.index", dim=2)
    made.add(np.eye(2), ["a.jpg", "b.jpg"])
    return here / "a.index"


def test_an_index_with_a_pickle_in_it(index: Path, here: Path):
    [vectors] = sorted(index.rglob("vectors.npy"))[-1:]
    size = vectors.stat().st_size
    with vectors.open("wb") as file:
        np.save(file, np.array([Payload()], dtype=object), allow_pickle=True)
    content = vectors.read_bytes()
    vectors.write_bytes(content[:size].ljust(size, b"\0"))
    with pytest.raises(ValueError, match="damaged"):
        Index.open(index)
    assert pickle.PROTO  # the module that would have run it is there
    assert not (here / "PWNED").exists()


def test_a_foreign_index_points_at_no_other_folder(here: Path):
    (here / "secret").mkdir()
    (here / "mine").mkdir()
    Image.new("RGB", (2, 2)).save(here / "secret" / "a.png")
    made = Index.create(here / "mine" / "a.index", dim=2, root=here / "secret")
    made.add(np.eye(2), ["a.png", "b.png"])
    assert not is_near(made)
    assert is_near(Index.create(here / "mine" / "b.index", dim=2, root=here / "mine" / "photos"))
    pictures = [
        [shot.image for row in app.group_shots(made, [made.items([0, 1])], show_files=files) for shot in row]
        for files in (False, True)
    ]
    assert pictures[0] == [None, None]
    assert pictures[1][0].size == (2, 2)
    assert draw_contact_sheet([[Shot(png_claiming(60_000, 60_000), "bomb"), Shot(b"no picture", "none")]]).width > 0
    for files in (False, True):
        service = Service(made, Limits(), files=files)
        try:
            if files:
                assert service.file(0)[0] == (here / "secret" / "a.png").resolve()
            else:
                with pytest.raises(RequestError, match="are not served"):
                    service.file(0)
        finally:
            service.close()


# ------------------------------------------------------------------------------------------------ damage


def flip(file: Path, place: int = -20) -> None:
    content = bytearray(file.read_bytes())
    content[place] ^= 8
    file.write_bytes(content)


def test_the_doctor_finds_flipped_bits(index: Path, here: Path, answer: Answers, capsys: pytest.CaptureFixture[str]):
    Run.create("run", {})
    Embedder("convnet", 4).save("run/best.safetensors")
    assert answer("doctor", "run", "a.index")[0] == 0
    flip(here / "run" / "best.safetensors")
    assert [each.problem is None for each in app.check_artifact("run")] == [True, False]
    with pytest.raises(ValueError, match="is damaged: its tensors have another checksum"):
        Embedder.load("run/best.safetensors")
    flip(sorted(index.rglob("vectors.npy"))[-1], -1)
    capsys.readouterr()
    assert answer("doctor", "run", "a.index")[0] == 1
    assert sum(each.problem is not None for each in app.check_artifact("a.index")) == 1


@pytest.mark.parametrize(
    "command", [("train", "--resume", "run"), ("evaluate", "run"), ("report", "run"), ("doctor", "run")]
)
def test_a_cut_description_or_model_is_one_sentence(command: tuple[str, ...], here: Path, answer: Answers):
    Run.create("run", {"config": {"data": "Glyphs", "loss": "CircleLoss"}, "seed": 0})
    text = (here / "run" / "run.yaml").read_bytes()
    # half a line, the end of a line and the end of a word are YAML, too
    for content in (text[: len(text) // 2] + b"{", text[:-2], text[: text.rindex(b"loss")], b"", b"\xff\xfe"):
        (here / "run" / "run.yaml").write_bytes(content)
        code, err = answer(*command)
        assert code in (1, 2)
        assert "Traceback" not in err
    (here / "run" / "run.yaml").write_bytes(text)
    Embedder("convnet", 4).save("run/model.safetensors")
    model = (here / "run" / "model.safetensors").read_bytes()
    (here / "run" / "model.safetensors").write_bytes(model[: len(model) // 2])
    if command[0] in ("evaluate", "report"):
        code, err = answer(*command)
        assert code == 2
        assert "model.safetensors must be a safetensors file, but it is damaged" in err.splitlines()[-1]


def test_a_folder_that_cannot_be_written_is_one_sentence(here: Path, answer: Answers, monkeypatch: pytest.MonkeyPatch):
    (here / "file").touch()
    words = ["train", "--data", "Glyphs", "--data.images_per_class", "2", "--cache", "file/cache"]
    code, err = answer(*words)
    assert code == 2
    assert err.count("\n") == 1
    assert "file" in err

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", "run/report.html")

    monkeypatch.setattr("likewise.cli.evaluate.report", refuse)
    assert answer("report", "run") == (2, "likewise: run/report.html cannot be written or read: Permission denied\n")


def test_sparse_tensors_are_one_sentence():
    embeddings, labels = torch.eye(4).to_sparse(), torch.tensor([0, 0, 1, 1])
    for call in (CircleLoss(), retrieval):
        with pytest.raises(TypeError, match=r"^embeddings must be a dense tensor, but its layout is torch.sparse_coo"):
            call(embeddings, labels)
        with pytest.raises(TypeError, match=r"^labels must be a dense tensor"):
            call(torch.eye(4), labels.to_sparse())


# ------------------------------------------------------------------------------------------------ data, tables, secrets


def test_a_fingerprint_covers_contents(here: Path):
    for name, color in (("a", "red"), ("b", "blue")):
        (here / "photos" / name).mkdir(parents=True)
        Image.new("RGB", (80, 80), color).save(here / "photos" / name / "0.bmp")
    before = ImageFolder(here / "photos").fingerprint
    file = here / "photos" / "a" / "0.bmp"
    size = file.stat().st_size
    Image.new("RGB", (80, 80), "green").save(file)
    assert file.stat().st_size == size
    assert ImageFolder(here / "photos").fingerprint != before


def test_a_table_computes_nothing_in_a_spreadsheet(here: Path):
    rows = [
        {"path": "=cmd|' /C calc'!A0", "score": -0.5},
        {"path": "'=1", "score": 1.0},
        {"path": "a.jpg", "score": 0.1},
    ]
    app.write_rows(here / "a.csv", rows, ["path", "score", "=1+1"])
    with (here / "a.csv").open(newline="") as file:
        cells = [cell for row in csv.reader(file) for cell in (row[0], row[2])]
    assert not any(cell.startswith(("=", "+", "-", "@")) for cell in cells)
    assert read_columns(here / "a.csv")["path"] == [row["path"] for row in rows]
    assert "=1+1" in read_columns(here / "a.csv")
    (here / "page.csv").write_bytes(base64.b64decode(csv_link(rows).partition(",")[2]))
    assert "\n'=cmd" in (here / "page.csv").read_text()
    assert read_columns(here / "page.csv")["path"] == [row["path"] for row in rows]
    app.write_rows(here / "raw.csv", rows, ["path", "score"], raw=True)
    assert "\n=cmd" in (here / "raw.csv").read_text()


def test_links_out_of_a_folder_are_not_followed(here: Path):
    (here / "secret").mkdir()
    (here / "photos").mkdir()
    for place in ("secret/s.png", "photos/a.png"):
        Image.new("RGB", (2, 2)).save(here / place)
    (here / "photos" / "link.png").symlink_to(here / "secret" / "s.png")
    (here / "photos" / "folder").symlink_to(here / "secret")
    (here / "photos" / "b.png").symlink_to(here / "photos" / "a.png")
    assert find_images(here / "photos").paths == ("a.png", "b.png")
    assert len(find_images(here / "photos", ImageOptions(follow_links=True)).paths) == 4


def test_no_secret_is_written(here: Path, answer: Answers, monkeypatch: pytest.MonkeyPatch):
    words = ["likewise", "serve", "postgresql://me:se:sa@me@host/db?sslmode=on&password=sesame#a", "--token=sesame"]
    assert "sesame" not in " ".join(hide_secrets([*words, "--token", "sesame"]))
    assert answer("report", "run", "postgresql://me:sesame@host/db") == (
        2,
        "likewise: there is no place for postgresql://me:***@host/db\n",
    )
    assert answer("serve", "photos", "--token", "--sesame") == (2, "likewise: there is no option ***\n")
    with pytest.raises(app.UserError, match=r"--cache must not be a URL with a password") as refused:
        app.configure({"data": "Glyphs", "cache": "postgresql://me:sesame@host/db"})
    assert "sesame" not in str(refused.value)
    monkeypatch.setattr("sys.argv", [*words, "--token", "sesame"])
    run = Run.create("run", {"command": command_line()})
    run.record_opening("final", "best")
    for file in run.folder.iterdir():
        assert "sesame" not in file.read_text()
        assert "se:sa" not in file.read_text()
