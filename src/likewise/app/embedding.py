"""Embed the images of a folder or a table into one NumPy file; a killed call continues where it stopped."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from likewise.app.chunk_jobs import ChunkJob, run_chunk_jobs
from likewise.app.chunks import SUFFIX, ChunkFolder, EmbeddedImages, lock_chunks
from likewise.app.embedding_options import EmbeddingOptions
from likewise.app.errors import UserError, writing
from likewise.app.images import ImageList, find_images
from likewise.app.models import ModelSource, resolve_model
from likewise.data import Broken
from likewise.files import atomic_write
from likewise.search import Embedding, Encoder, batch_for

CHUNK = 2048
"""Images per chunk file; a killed process loses at most one chunk."""


@dataclass(frozen=True)
class EmbeddingStart:
    """Facts about an embedding job before it starts.

    Args:
        model: the file of the model, or the name of a published network.
        images: number of images.
        transform: the transform, as text.

    Examples:
        >>> EmbeddingStart("efficientnet_lite0", 72, "whole image, scaled to 32 x 32 px").images
        72
    """

    model: str
    images: int
    transform: str


@dataclass(frozen=True)
class EmbeddedFile:
    """A file of embeddings that was written.

    Args:
        file: the NumPy file: ``embeddings``, ``paths``, ``labels`` and so on.
        count: number of embedded images.
        broken: the images that could not be read.

    Examples:
        >>> EmbeddedFile(Path("e.npz"), 72, ()).count
        72
    """

    file: Path
    count: int
    broken: tuple[Broken, ...]


def embed_folder(
    model: str | Path,
    images: str | Path,
    out: str | Path,
    *,
    half: bool = False,
    overwrite: bool = False,
    options: EmbeddingOptions | None = None,
    on_start: Callable[[EmbeddingStart], object] | None = None,
) -> EmbeddedFile:
    """Embed the images of a folder or a table, and write the embeddings to a NumPy file.

    Chunks of 2,048 images are stored in ``OUT.chunks`` until the file is complete: an interrupted or killed call continues
    from there.  Images that cannot be read are left out and listed.

    Args:
        model: a ``.safetensors`` file, the folder of a run (its best model), or the name of a published network.
        images: a folder, nested or flat, or a table (``.csv``, ``.tsv``, ``.parquet``).
        out: the file, which ends in ``.npz``.
        half: store float16.
        overwrite: replace the file if it exists.
        options: how images are listed, transformed and embedded.
        on_start: called before the first image is embedded.

    Raises:
        UserError: an argument is invalid, or the file cannot be written.

    Examples:
        >>> import tempfile
        >>> from PIL import Image
        >>> from likewise.trunks import Embedder
        >>> folder = Path(tempfile.mkdtemp())
        >>> Embedder("convnet", 8).save(folder / "model.safetensors")
        >>> for color in ("red", "blue"):
        ...     (folder / "photos" / color).mkdir(parents=True)
        ...     Image.new("RGB", (32, 32), color).save(folder / "photos" / color / "0.png")
        >>> model, options = folder / "model.safetensors", EmbeddingOptions(transform="glyphs")
        >>> result = embed_folder(model, folder / "photos", folder / "e.npz", options=options)
        >>> result.count, np.load(result.file)["class_names"].tolist()
        (2, ['blue', 'red'])
    """
    out, options = Path(out), options or EmbeddingOptions()
    if out.suffix != ".npz":
        raise UserError(f"--out must be a file that ends in .npz, but it is {out}")
    if out.exists() and not overwrite:
        raise UserError(f"{out} already exists; --overwrite replaces it")
    source = resolve_model(model, options.transform)
    files = find_images(images, options)
    encoder = source.load()
    if on_start is not None:
        on_start(EmbeddingStart(str(source.place), len(files), encoder.transform.name))
    chunks = ChunkFolder(out.with_name(out.name + SUFFIX), files, CHUNK)
    with writing(out), lock_chunks(chunks.folder):
        embedded = embed_in_chunks(chunks, source, encoder, options)
        with source.as_file() as file:
            written = ModelSource(file)
            content = _content(
                files, embedded, half=half, model=written.fingerprint, card=written.read_card().to_json()
            )
        with atomic_write(out) as part, part.open("wb") as target:
            np.savez(target, **content)
        shutil.rmtree(chunks.folder, ignore_errors=True)
    return EmbeddedFile(out, len(embedded.rows), embedded.broken)


def embed_in_chunks(
    chunks: ChunkFolder, source: ModelSource, encoder: Encoder, options: EmbeddingOptions
) -> EmbeddedImages:
    """Embed missing chunks, here or on an executor, and gather all; the caller holds the folder's lock."""
    images, transform = chunks.images.fingerprint(), repr(encoder.transform)
    chunks.begin({"model": source.fingerprint, "images": images, "transform": transform})
    if options.on is not None or options.workers is not None:
        job = ChunkJob(source.address, source.transform, str(chunks.folder.absolute()), options.batch)
        run_chunk_jobs(chunks, job, options)
    else:
        batch = options.batch or batch_for(encoder.transform, encoder.device)
        chunks.embed(Embedding(encoder.model, encoder.device, encoder.transform, batch))
    return chunks.gather()


def _content(images: ImageList, embedded: EmbeddedImages, *, half: bool, model: str, card: str) -> dict[str, Any]:
    """The arrays of the file."""
    content: dict[str, Any] = {
        "embeddings": embedded.embeddings.astype(np.float16 if half else np.float32),
        "paths": np.array([images.paths[row] for row in embedded.rows], np.str_),
        "root": np.array(str(images.root.resolve())),
        "broken_paths": np.array([images.paths[each.index] for each in embedded.broken], np.str_),
        "broken_reasons": np.array([each.reason for each in embedded.broken], np.str_),
        "model_sha256": np.array(model),
        "card": np.array(card),
    }
    if images.labels is not None:
        content["labels"] = np.array(images.labels, np.int64)[embedded.rows]
        content["class_names"] = np.array(images.class_names, np.str_)
    return content
