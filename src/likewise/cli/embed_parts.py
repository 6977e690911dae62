"""Parts of a collection that are embedded on an executor; each part is a file, and one process puts them together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from likewise.app import UserError, making, this_machine
from likewise.cli.executing import Execution
from likewise.cli.pictures import find_pictures
from likewise.cli.slices import Slices
from likewise.data import progress
from likewise.protocols import (
    STUDY_DATABASE,
    Executor,
    LocalExecutor,
    RayExecutor,
    Result,
    Study,
    Trial,
    interruptible,
    run_missing,
)
from likewise.search import Embedding, batch_for, shown_to
from likewise.trunks import Embedder


@dataclass(frozen=True)
class PartJob:
    """What a process needs to know to embed parts of a collection.

    Args:
        model: the file of the model.
        images: the recipe by which images are shown; ``None``: as the model's card says.
        input: a folder or a table.
        root: where a table's paths begin.
        path_column: what a table calls paths.
        label_column: what a table calls classes.
        folder: where parts go.
        size: images in a part.
        batch: images at once; ``None``: what fits into memory.

    Examples:
        >>> PartJob("m.safetensors", None, "photos", None, "path", "label", "e.npz.parts", 2048, None).size
        2048
    """

    model: str
    images: str | None
    input: str
    root: str | None
    path_column: str
    label_column: str
    folder: str
    size: int
    batch: int | None


def embed_parts(slices: Slices, job: PartJob, how: Execution) -> None:
    """Embed the parts that are missing, on an executor; a part that was being embedded when it died is embedded again."""
    study = Study(slices.folder / STUDY_DATABASE)
    study.add([Trial("embed", asdict(job), start) for start in slices.starts])
    study.retry()
    missing = set(slices.missing())
    for trial in study.missing():
        if trial.seed not in missing:
            study.finish(Result(trial))
    done = len(slices.pictures) - sum(min(slices.size, len(slices.pictures) - start) for start in missing)
    with making("--on"):
        executor = _make_executor(how, slices.folder)
    with progress("embedding", len(slices.pictures), "img", done=done) as advance, interruptible():

        def watch(_running: Mapping[str, str]) -> None:
            nonlocal missing
            left = set(slices.missing())
            advance(sum(min(slices.size, len(slices.pictures) - start) for start in missing - left))
            missing = left

        run_missing(study, executor, watch=watch)
        watch({})
    failed = next((result for result in study.results() if result.status == "failed"), None)
    if failed is not None:
        raise UserError(f"images from number {failed.trial.seed:,} on could not be embedded: {failed.error}")


def _make_executor(how: Execution, logs: Path) -> Executor:
    def go_on(key: str, step: int, value: float) -> bool:
        return True

    if how.on is not None:
        return RayExecutor(embed_part, go_on, address=how.on, workers=how.workers, per_gpu=how.per_gpu)
    return LocalExecutor(embed_part, go_on, workers=how.count(), per_gpu=how.per_gpu, logs=logs)


def embed_part(trial: Trial, report: Callable[[int, float], bool]) -> Result:
    """Embed one part; the model and the list of images are read once in each process."""
    slices, embedding = _opened(tuple(trial.config.items()))
    slices.embed_part(trial.seed, embedding)
    return Result(trial)


@cache
def _opened(said: tuple[tuple[str, Any], ...]) -> tuple[Slices, Embedding]:
    job = PartJob(**dict(said))
    root = None if job.root is None else Path(job.root)
    pictures = find_pictures(Path(job.input), root=root, columns=(job.path_column, job.label_column))
    model, device = Embedder.load(Path(job.model)), this_machine().device
    shown = shown_to(model, job.images)
    embedding = Embedding(model.to(device), device, shown, job.batch or batch_for(shown, device))
    return Slices(Path(job.folder), pictures, job.size), embedding
