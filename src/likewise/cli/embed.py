"""``likewise embed``: images to vectors; killed at any moment, it goes on where it was."""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from likewise.cli.arguments import Arguments
from likewise.cli.measured import model_file
from likewise.cli.mistakes import Mistake, making
from likewise.cli.pictures import Pictures, find_pictures
from likewise.cli.pieces import Machine, this_machine
from likewise.cli.screen import columns, note
from likewise.cli.train import open_run
from likewise.data import RECIPES, Augment, BrokenImage, CenterCrop, decode
from likewise.data.aside import aside
from likewise.data.memory import free_memory
from likewise.data.progress import progress
from likewise.data.shards import Shape, cores, write_aside
from likewise.trunks import Embedder, Preprocessing, read_card

PART = 2048
"""Images whose embeddings are written at once: what a kill costs."""

LARGEST = 512
"""Images in a batch, at most."""

LISTED = 20
"""Broken images that are named on the screen."""

RATIO = 3.0
"""How long an image may be; the same as in training."""

Decoded = NDArray[np.uint8] | BrokenImage


@dataclass(frozen=True)
class Shown:
    """How images are shown to a model.

    Args:
        name: in words.
        cache: the length of the shorter side to which they are shrunk first, as they are for training.
        augment: crop and scaling.

    Examples:
        >>> Shown("the whole image", 32, RECIPES["glyphs"].test).augment.shape
        (32, 32)
    """

    name: str
    cache: int
    augment: Augment


def run(words: Sequence[str]) -> int:
    """Embed the images of a folder or a table.

    Examples:
        >>> run(["nowhere", "photos", "-o", "embeddings.npz"])
        Traceback (most recent call last):
        likewise.cli.mistakes.Mistake: there is no model nowhere: give a file that ends in .safetensors, or ...
    """
    given = _options().parse_args(words)
    file = _file_of(given.model)
    with making(f"the model {file}"):
        model, card = Embedder.load(file), read_card(file)
    pictures = find_pictures(given.input, root=given.root, columns=(given.path_column, given.label_column))
    shown = _shown(file, model, given.images)
    if given.out.suffix != ".npz":
        raise Mistake(f"-o must be a file that ends in .npz, but it is {given.out}")
    if given.out.exists() and not given.overwrite:
        raise Mistake(f"{given.out} is there already; --overwrite replaces it")
    print(
        columns(
            [("model", str(file)), ("images", f"{len(pictures):,} in {given.input}"), ("shown", shown.name)], indent=0
        )
    )
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    about = {"model": digest, "input": pictures.fingerprint(), "shown": repr(shown), "part": PART}
    folder = given.out.with_name(given.out.name + ".parts")
    with _alone(folder):
        _begin(folder, about)
        try:
            _embed_parts(model, this_machine(), pictures, shown, folder, given.batch)
        except KeyboardInterrupt:
            print("stopped; the same command goes on from here", file=sys.stderr)
            return 130
        found = _gathered(folder, len(pictures))
        with aside(given.out) as part, part.open("wb") as target:
            np.savez(target, **_content(pictures, found, half=given.half, model=digest, card=card.to_json()))
        shutil.rmtree(folder, ignore_errors=True)
    return _conclude(given.out, pictures, found)


def _options() -> Arguments:
    options = Arguments("embed", "Turn images into vectors: one row for each, written to a NumPy file.")
    options.add_argument(
        "model", metavar="MODEL", type=Path, help="a model (.safetensors), or a run's folder: its best"
    )
    options.add_argument(
        "input", metavar="IMAGES", type=Path, help="a folder, nested or flat, or a table (.csv, .tsv, .parquet)"
    )
    options.add_argument("-o", "--out", metavar="FILE", type=Path, required=True, help="where to: a file.npz")
    options.add_argument("--overwrite", action="store_true", help="replace the file if it is there")
    options.add_argument("--half", action="store_true", help="store float16: half the size")
    options.add_argument(
        "--images",
        metavar="NAME",
        choices=sorted(RECIPES),
        help=f"how images are shown ({', '.join(sorted(RECIPES))}); by default as in the model's run",
    )
    options.add_argument("--batch", metavar="N", type=int, help="images at once; by default what fits into memory")
    options.add_argument(
        "--root", metavar="FOLDER", type=Path, help="where a table's paths begin (default: its folder)"
    )
    options.add_argument("--path-column", metavar="NAME", default="path", help="a table's column of paths (path)")
    options.add_argument(
        "--label-column", metavar="NAME", default="label", help="its column of classes, if any (label)"
    )
    return options


def _file_of(model: Path) -> Path:
    if model.is_dir():
        return model_file(open_run(model), None)
    if not model.is_file():
        raise Mistake(f"there is no model {model}: give a file that ends in .safetensors, or the folder of a run")
    return model


def _shown(file: Path, model: Embedder, images: str | None) -> Shown:
    """As it was in the run that the file lies in; elsewhere what the model's card says of its size."""
    if images is None and (file.parent / "run.yaml").exists():
        images = (open_run(file.parent).description.get("config") or {}).get("images")
    expects: Preprocessing | None = model.preprocessing
    if images is not None:
        recipe = RECIPES[images] if expects is None else RECIPES[images].using(expects)
        return Shown(f"as in the recipe {images}", recipe.cache, recipe.test)
    if expects is None:
        raise Mistake(f"{file} does not say what images it expects: --images {'|'.join(sorted(RECIPES))} does")
    side, size = round(expects.size * 8 / 7), expects.size  # 256 for 224, as is usual
    augment = Augment(size, CenterCrop(size), resize=side, normalize=expects)
    return Shown(f"shorter side {side}, the middle {size} x {size}, as the model's card says", side, augment)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One process at a time for a folder of parts; the system lets go when it dies."""
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / ".lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise Mistake(f"another process is writing {str(folder).removesuffix('.parts')}") from None
    try:
        yield
    finally:
        lock.release()


def _begin(folder: Path, about: dict[str, Any]) -> None:
    """Go on with parts of the same model and input, and with no others."""
    told = folder / "about.json"
    if told.exists():
        if json.loads(told.read_text()) != about:
            raise Mistake(f"{folder} holds parts of another model or other images: remove it, or choose another -o")
        done = len(list(folder.glob("*.npz")))
        if done:
            note(f"going on after {done} part{'s' * (done != 1)} of {PART:,} images")
        return
    write_aside(told, json.dumps(about).encode())


def _embed_parts(
    model: Embedder, machine: Machine, pictures: Pictures, shown: Shown, folder: Path, batch: int | None
) -> None:
    """Embed what is not there yet, part by part."""
    starts = range(0, len(pictures), PART)
    missing = [start for start in starts if not _part(folder, start).exists()]
    done = len(pictures) - sum(min(PART, len(pictures) - start) for start in missing)
    embedding = _Embedding(model.to(machine.device), machine.device, shown, batch or _batch_for(shown, machine.device))
    with (
        ThreadPoolExecutor(cores(), thread_name_prefix="likewise-decode") as pool,
        progress("embedding", len(pictures), "img", done=done) as advance,
    ):
        for start in missing:
            paths = [str(pictures.root / path) for path in pictures.paths[start : start + PART]]
            rows, vectors, broken = [], [], []
            for first, images in _decoded(pool, paths, shown, embedding.batch):
                good = [place for place, image in enumerate(images) if not isinstance(image, BrokenImage)]
                for place, image in enumerate(images):
                    if isinstance(image, BrokenImage):
                        broken.append((start + first + place, image.reason or "it cannot be read"))
                if good:
                    vectors.append(embedding([images[place] for place in good]))
                    rows += [start + first + place for place in good]
                advance(len(images))
            with aside(_part(folder, start)) as part, part.open("wb") as file:
                np.savez(
                    file,
                    rows=np.array(rows, np.int64),
                    embeddings=np.concatenate(vectors) if vectors else np.zeros((0, model.dim), np.float32),
                    broken=np.array([each[0] for each in broken], np.int64),
                    reasons=np.array([each[1] for each in broken], np.str_),
                )


def _part(folder: Path, start: int) -> Path:
    return folder / f"{start // PART:06d}.npz"


def _decoded(
    pool: ThreadPoolExecutor, paths: Sequence[str], shown: Shown, batch: int
) -> Iterator[tuple[int, list[Decoded]]]:
    """Batches of images; the next one is decoded while this one is embedded."""
    shape = Shape(shown.cache, RATIO)

    def read(path: str) -> Decoded:
        try:
            return shape.of(decode(path))
        except BrokenImage as broken:
            return broken

    def begin(first: int) -> list[Future[Decoded]]:
        return [pool.submit(read, path) for path in paths[first : first + batch]]

    waiting = begin(0)
    for first in range(0, len(paths), batch):
        now, waiting = waiting, begin(first + batch)
        yield first, [each.result() for each in now]


@dataclass
class _Embedding:
    """A model with batches that become smaller when memory runs out."""

    model: Embedder
    device: torch.device
    shown: Shown
    batch: int

    def __call__(self, images: list[Any]) -> NDArray[np.float32]:
        found = []
        while images:
            some = images[: self.batch]
            try:
                found.append(self._embedded(some))
            except (torch.OutOfMemoryError, MemoryError):
                if self.batch == 1:
                    raise
                self.batch = max(1, min(self.batch, len(some)) // 2)
                if self.device.type == "cuda":
                    torch.cuda.empty_cache()
                continue
            images = images[len(some) :]
        return np.concatenate(found)

    def _embedded(self, images: list[Any]) -> NDArray[np.float32]:
        batch = self.shown.augment(images, torch.Generator())
        with torch.inference_mode():
            vectors: NDArray[np.float32] = self.model(batch.to(self.device)).float().cpu().numpy()
        return vectors


def _batch_for(shown: Shown, device: torch.device) -> int:
    """As many images as fit: a network's maps take some hundred times the bytes of what it is shown."""
    height, width = shown.augment.shape
    image = 3 * 4 * height * width * 200
    free = free_memory(device)
    return LARGEST if free is None else int(max(1, min(LARGEST if device.type == "cuda" else 64, free // 4 // image)))


@dataclass(frozen=True)
class _Found:
    """Embeddings and faults, with the numbers of their images."""

    rows: NDArray[np.int64]
    embeddings: NDArray[np.float32]
    broken: NDArray[np.int64]
    reasons: NDArray[np.str_]


def _gathered(folder: Path, count: int) -> _Found:
    """All parts, one after the other."""
    names = ("rows", "embeddings", "broken", "reasons")
    gathered: dict[str, list[NDArray[Any]]] = {name: [] for name in names}
    for start in range(0, count, PART):
        with np.load(_part(folder, start), allow_pickle=False) as part:
            for name in names:
                gathered[name].append(part[name])
    return _Found(**{name: np.concatenate(each) for name, each in gathered.items()})


def _content(pictures: Pictures, found: _Found, *, half: bool, model: str, card: str) -> dict[str, Any]:
    """What is in the file."""
    content: dict[str, Any] = {
        "embeddings": found.embeddings.astype(np.float16 if half else np.float32),
        "paths": np.array([pictures.paths[row] for row in found.rows], np.str_),
        "root": np.array(str(pictures.root.resolve())),
        "broken_paths": np.array([pictures.paths[row] for row in found.broken], np.str_),
        "broken_reasons": found.reasons,
        "model_sha256": np.array(model),
        "card": np.array(card),
    }
    if pictures.labels is not None:
        content["labels"] = np.array(pictures.labels, np.int64)[found.rows]
        content["class_names"] = np.array(pictures.class_names, np.str_)
    return content


def _conclude(out: Path, pictures: Pictures, found: _Found) -> int:
    for row, reason in list(zip(found.broken, found.reasons, strict=True))[:LISTED]:
        print(f"left out: {pictures.root / pictures.paths[row]}: {reason}", file=sys.stderr)
    if len(found.broken) > LISTED:
        print(f"left out: {len(found.broken) - LISTED:,} more, which broken_paths in {out} lists", file=sys.stderr)
    faults = f"; {len(found.broken):,} of {len(pictures):,} images cannot be read" if len(found.broken) else ""
    print(f"{out}: {len(found.rows):,} embeddings{faults}")
    return 0 if len(found.rows) else 1
