"""A collection of colored shapes, an index of it, and a server in a process of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Self

import numpy as np
import pytest
from PIL import Image, ImageDraw

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")

from likewise.search import Encoder, Index
from likewise.search.serve import make_app
from likewise.search.thumbnails import thumbnail
from likewise.trunks import Embedder

SHAPES = ("disc", "square", "triangle", "ring")
COLORS = ("crimson", "seagreen", "royalblue", "orange", "orchid", "teal")


def draw(shape: str, color: str, place: int, size: tuple[int, int] = (120, 90)) -> Image.Image:
    """A shape of a color somewhere on a pale ground."""
    chance = np.random.default_rng(place)
    ground = tuple(int(each) for each in chance.integers(205, 250, 3))
    image = Image.new("RGB", size, ground)
    pen = ImageDraw.Draw(image)
    side = int(chance.integers(34, 54))
    x, y = (int(chance.integers(6, extent - side - 6)) for extent in size)
    box = (x, y, x + side, y + side)
    if shape == "disc":
        pen.ellipse(box, fill=color)
    elif shape == "square":
        pen.rectangle(box, fill=color)
    elif shape == "triangle":
        pen.polygon([(x, y + side), (x + side, y + side), (x + side // 2, y)], fill=color)
    else:
        pen.ellipse(box, outline=color, width=9)
    return image


def as_file(image: Image.Image, kind: str = "PNG") -> bytes:
    file = BytesIO()
    image.save(file, kind)
    return file.getvalue()


def make_index(folder: Path, *, model: bool = True, count: int = 48) -> Index:
    """Shapes in files, and their index: with a small network that has seen nothing, or with vectors alone."""
    photos = folder / "photos"
    photos.mkdir(parents=True)
    encoder = Encoder(_network(), transform=None) if model else None
    index = Index.create(
        folder / "shapes.index", dim=32, model=encoder, root=photos, name="shapes", model_name="tiny" if model else None
    )
    paths, images, labels, sizes = [], [], [], []
    for place in range(count):
        shape, color = SHAPES[place % 4], COLORS[(place // 4) % 6]
        image = draw(shape, color, place)
        paths.append(f"{shape}-{place:02d}.png")
        image.save(photos / paths[-1])
        images.append(image)
        labels.append(shape)
        sizes.append(place % 7)
    vectors = encoder.embed(images) if encoder is not None else np.random.default_rng(0).normal(size=(count, 32))
    small = [thumbnail(each) for each in images]
    index.add(vectors, paths, labels=labels, metadata={"size": sizes}, thumbnails=small)
    return index


def _network() -> Embedder:
    import torch

    with torch.random.fork_rng():
        torch.manual_seed(3)
        from likewise.trunks import build

        return Embedder(build("convnet", in_channels=3), 32)


@pytest.fixture(scope="session")
def shapes(tmp_path_factory: pytest.TempPathFactory) -> Index:
    """Not to be changed."""
    return make_index(tmp_path_factory.mktemp("shapes"))


class Process:
    """``likewise serve`` as a user starts it."""

    def __init__(self, *words: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "likewise.cli", "serve", *words, "--port", "0"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )
        assert self.process.stdout is not None
        self.said = ""
        while not (found := re.search(r"http://[^/\s]+/", self.said)):
            line = self.process.stdout.readline()
            assert line, self.process.communicate()[1]
            self.said += line
        self.address = found[0]

    def stop(self) -> str:
        """End it as Ctrl-C does; returns what it had to say."""
        self.process.send_signal(signal.SIGINT)
        out, err = self.process.communicate(timeout=20)
        self.said += out
        return err


class Threaded:
    """The same application in a thread of this process, which starts at once."""

    def __init__(self, index: Index, *, token: str | None = None) -> None:
        import uvicorn

        self.server = uvicorn.Server(uvicorn.Config(make_app(index, token=token), port=0, log_level="critical"))
        self.thread = threading.Thread(target=self.server.run)

    def __enter__(self) -> Self:
        self.thread.start()
        while not self.server.started:
            time.sleep(0.01)
        self.address = f"http://127.0.0.1:{self.server.servers[0].sockets[0].getsockname()[1]}/"
        return self

    def __exit__(self, *_error: object) -> None:
        self.server.should_exit = self.server.force_exit = True
        self.thread.join()


@pytest.fixture
def serve() -> Iterator[Callable[..., Process]]:
    started: list[Process] = []

    def start(*words: str) -> Process:
        started.append(Process(*words))
        return started[-1]

    yield start
    for each in started:
        if each.process.poll() is None:
            each.process.kill()
            each.process.communicate()
