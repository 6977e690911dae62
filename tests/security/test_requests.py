"""Hostile images through the server, and secrets in what commands print."""

from __future__ import annotations

import io
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from likewise.search import Encoder, Index
from likewise.search.serve import make_app
from likewise.trunks import Embedder
from tests.search.serve.test_limits import png_claiming
from tests.security.conftest import Answers
from tests.security.test_files import jpeg_of_scans, tiff_of_tile

FAULT = """
import sys
import likewise.cli.serve as serve
from likewise.cli import main

def fail(words):
    raise RuntimeError(f"cannot serve {words}")

serve.run = fail
sys.argv = ["likewise", "serve", "postgresql://me:sesame@host/db#a", "--token", "open-sesame"]
sys.exit(main())
"""

LARGE = """
import io, re, sys
from pathlib import Path
from PIL import Image
from likewise.search import Index
from likewise.search.serve.limits import Limits
from likewise.search.serve.service import Service

def resident():
    return int(re.search(r"VmRSS:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) // 1024

def png_of(side):
    file = io.BytesIO()
    Image.new("RGB", (side, side)).save(file, "PNG", compress_level=1)
    return file.getvalue()

service, large = Service(Index.open(sys.argv[1]), Limits()), png_of(3000)
try:
    service._shrink("small", png_of(8))
    before = resident()
    for _ in range(3):
        list(service._pool.map(lambda _: service._shrink("large", large), range(2)))
    print(resident() - before)
finally:
    service.close()
"""
"""Prints by how many megabytes a process grows that shrinks large images."""


def webp_claiming(side: int) -> bytes:
    """A lossless WebP file that has a header only."""
    body = b"WEBPVP8L" + struct.pack("<I", 10) + b"\x2f" + struct.pack("<I", side - 1 | side - 1 << 14) + bytes(5)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def gif_claiming(side: int) -> bytes:
    file = io.BytesIO()
    Image.new("L", (1, 1)).save(file, "GIF")
    data = bytearray(file.getvalue())
    data[6:10] = struct.pack("<HH", side, side)
    return bytes(data)


@pytest.fixture
def index(here: Path) -> Index:
    return Index.create("a.index", dim=4, model=Encoder(Embedder("convnet", 4), transform="glyphs"))


def test_every_bomb_is_refused_by_the_server(index: Index):
    testclient = pytest.importorskip("fastapi.testclient")
    bombs = (
        jpeg_of_scans(64, 5000),
        tiff_of_tile(16, 20_000),
        png_claiming(60_000, 60_000),
        gif_claiming(60_000),
        webp_claiming(16_383),
    )
    with testclient.TestClient(make_app(index), base_url="http://localhost") as client:
        for bomb in bombs:
            answer = client.post("/api/search", files={"image": ("a", bomb)})
            assert answer.status_code == 413, bomb[:12]
            assert "the image cannot be read" in answer.json()["error"]


@pytest.mark.skipif(sys.platform != "linux", reason="glibc returns memory when it is asked to")
def test_the_memory_of_large_images_returns(index: Index):
    """Six images of 36 MB, which glibc would keep in the heap of a thread; in a process without other tests' memory."""
    ended = subprocess.run([sys.executable, "-c", LARGE, "a.index"], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert int(ended.stdout) < 25


def test_no_secret_in_a_traceback_or_in_the_name_of_a_folder(here: Path, answer: Answers):
    ended = subprocess.run([sys.executable, "-c", FAULT], capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1] == (
        "RuntimeError: cannot serve ['postgresql://me:***@host/db#a', '--token', '***']"
    )
    for option in (["-o", "postgresql://me:sesame@host/db#a"], ["--out=postgresql://me:sesame@host/db#a"]):
        code, err = answer("index", "run", "photos", *option)
        assert code == 2
        assert "--out must be a file or a folder, but it is the URL postgresql://me:***@host/db#a" in err
    assert not list(here.glob("postgresql*"))
