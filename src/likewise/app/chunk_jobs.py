"""Embed the chunks of a collection on an executor: local processes or Ray; the driver gathers and commits them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from likewise.app.chunks import ChunkFolder, open_chunks
from likewise.app.embedding_options import EmbeddingOptions
from likewise.app.errors import UserError, making
from likewise.app.execution import choose_executor
from likewise.progress import progress
from likewise.protocols import (
    STUDY_DATABASE,
    Result,
    Study,
    Trial,
    interruptible,
    run_missing,
)
from likewise.search import Embedding, Encoder, batch_for


@dataclass(frozen=True)
class ChunkJob:
    """Settings of a process that embeds chunks.

    Args:
        model: the file of the model, absolute, or the name of a published network.
        transform: the name of a transform; ``None``: as the model's card says.
        folder: the folder of chunks, absolute.
        batch: batch size; ``None``: as many as fit into memory.

    Examples:
        >>> ChunkJob("efficientnet_lite0", None, "/data/e.npz.chunks", None).batch is None
        True
    """

    model: str
    transform: str | None
    folder: str
    batch: int | None


def run_chunk_jobs(chunks: ChunkFolder, job: ChunkJob, options: EmbeddingOptions) -> None:
    """Embed missing chunks on an executor; the caller holds the folder's lock.

    A chunk is a trial that is done when its file exists, so every call creates a new table of trials.

    Args:
        chunks: the chunks to embed.
        job: settings of the processes.
        options: the executor and the number of processes.
    """
    for file in chunks.folder.glob(f"{STUDY_DATABASE}*"):
        file.unlink()
    chunks.write_images()
    study = Study(chunks.folder / STUDY_DATABASE)
    missing = set(chunks.missing())
    study.add([Trial("embed", asdict(job), start) for start in sorted(missing)])
    with making("--on"):
        executor = choose_executor(
            embed_chunk,
            lambda *_report: True,
            workers=options.workers,
            per_gpu=options.per_gpu,
            on=options.on,
            logs=chunks.folder,
        )
    done = len(chunks.images) - chunks.count(sorted(missing))
    with progress("embedding", len(chunks.images), "img", done=done) as advance, interruptible():

        def watch(_running: Mapping[str, str]) -> None:
            nonlocal missing
            left = set(chunks.missing())
            advance(chunks.count(sorted(missing - left)))
            missing = left

        run_missing(study, executor, watch=watch)
        watch({})
    failed = next((result for result in study.results() if result.status == "failed"), None)
    if failed is not None:
        raise UserError(f"the chunk that starts at image {failed.trial.seed:,} could not be embedded: {failed.error}")


def embed_chunk(trial: Trial, report: Callable[[int, float], bool]) -> Result:
    """Embed one chunk; a process loads the model and the list of images once."""
    chunks, embedding = _open(ChunkJob(**trial.config))
    chunks.embed(embedding, [trial.seed])
    return Result(trial)


@cache
def _open(job: ChunkJob) -> tuple[ChunkFolder, Embedding]:
    encoder = Encoder.load(job.model, job.transform)
    batch = job.batch or batch_for(encoder.transform, encoder.device)
    return open_chunks(Path(job.folder)), Embedding(encoder.model, encoder.device, encoder.transform, batch)
