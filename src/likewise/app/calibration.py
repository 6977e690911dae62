"""Calibrate a model: fit match probabilities to labeled images, store them in its file, and compare two images."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from likewise.app.build import this_machine
from likewise.app.embedding_options import ImageOptions
from likewise.app.errors import Note, UserError, making, writing
from likewise.app.evaluation import parts_of
from likewise.app.images import ImageList, find_images
from likewise.app.models import ModelSource, resolve_model
from likewise.app.runs import open_run
from likewise.data import Broken, BrokenImage, cores
from likewise.progress import progress
from likewise.search import Calibration, Embedding, Encoder, Point, batch_for, embed_batches
from likewise.search import calibrate as calibrate_embeddings
from likewise.trunks import read_tensors, write_model

RATES = (1e-1, 1e-2, 1e-3)


@dataclass(frozen=True)
class CalibratedModel:
    """A model's file with a calibration.

    Args:
        file: the file.
        calibration: thresholds and probabilities.
        images: number of images used for the fit.
        classes: number of their classes.
        broken: the images that could not be read.

    Examples:
        >>> from dataclasses import fields
        >>> [each.name for each in fields(CalibratedModel)]
        ['file', 'calibration', 'images', 'classes', 'broken']
    """

    file: Path
    calibration: Calibration
    images: int
    classes: int
    broken: tuple[Broken, ...]


def calibrate(
    model: str | Path,
    images: str | Path | None = None,
    *,
    far: Sequence[float] = RATES,
    out: str | Path | None = None,
    transform: str | None = None,
    root: str | Path | None = None,
    path_column: str = "path",
    label_column: str = "label",
    allow: Collection[str] = (),
) -> CalibratedModel:
    """Fit thresholds and probabilities to labeled images, and write them into the model's file.

    Args:
        model: a ``.safetensors`` file, the folder of a run (its best model), or the name of a published network.
        images: images of classes that the model was not trained on: a folder of folders, or a table with labels; by
            default the validation classes of the model's run.
        far: false-accept rates: the share of different pairs accepted as the same.
        out: write a calibrated copy to this file; by default the model's file is replaced.
        transform: the name of a transform; by default that of the model's run, or what its card implies.
        root: the folder that a table's paths are relative to; by default the table's folder.
        path_column: the table's path column.
        label_column: the table's class column.
        allow: user's packages that contain the run's data set.

    Raises:
        UserError: an argument is invalid, or the file cannot be written.

    Examples:
        >>> calibrate("nowhere", "photos")
        Traceback (most recent call last):
        likewise.app.errors.UserError: there is no model nowhere: give a file that ends in .safetensors, ...
    """
    if not far or not all(0.0 < rate <= 1.0 for rate in far):
        listed = " ".join(map(str, far)) or "none"
        raise UserError(f"--far must be rates above 0 and at most 1, but it is {listed}")
    target = None if out is None else Path(out)
    if target is not None and target.suffix != ".safetensors":
        raise UserError(f"--out must be a file that ends in .safetensors, but it is {target}")
    source = resolve_model(model, transform)
    if target is None and source.file is None:
        raise UserError(
            f"{source.place} is a published network without a file: set --out to the file for the calibrated model"
        )
    if images is None:
        labels, vectors, broken = _embed_validation(source, transform, allow)
    else:
        labels, vectors, broken = _embed_labeled(source, images, ImageOptions(root, path_column, label_column))
    with making("the calibration"):
        learned = calibrate_embeddings(vectors, labels, far=far)
    with source.as_file() as original:
        file = target or original
        with writing(file):
            write_model(file, read_tensors(original), replace(source.read_card(), calibration=learned.as_dict()))
    if target is None and (file.parent / "openings.jsonl").exists():
        _warn("the run's record of openings has the checksum of the old file; --out writes a separate file instead")
    return CalibratedModel(file, learned, len(labels), len(set(labels.tolist())), broken)


_Labeled: TypeAlias = tuple[NDArray[np.int64], NDArray[np.float32], tuple[Broken, ...]]
"""Labels, vectors, and unreadable images."""


def _embed_validation(source: ModelSource, transform: str | None, allow: Collection[str]) -> _Labeled:
    """Embed the validation classes of a model's run."""
    from likewise.app.training import evaluation_config_of  # a parser

    if source.file is None or not (source.file.parent / "run.yaml").exists():
        raise UserError(f"images must be given for {source.place}, because it is not the model of a run")
    if transform is not None:
        raise UserError("--transform requires IMAGES: the run's validation classes use the run's transform")
    run = open_run(source.file.parent)
    parts = parts_of(run, evaluation_config_of(run, allow), this_machine(), model=str(source.file), test=None)
    if not parts:
        raise UserError(f"images must be given for {run.folder}, because it has no validation classes")
    if parts[0].name != "validation":
        raise UserError(f"images must be given for {run.folder}, because its data are pairs")
    return parts[0].labels.cpu().numpy(), parts[0].embeddings.float().cpu().numpy(), ()


def _embed_labeled(source: ModelSource, images: str | Path, options: ImageOptions) -> _Labeled:
    """Embed the labeled images of a folder or a table."""
    files = find_images(images, options)
    labels = np.array(files.labels if files.labels is not None else [], np.int64)
    if len(set(labels[labels >= 0].tolist())) < 2:
        raise UserError(f"{images} must have images of at least two classes: one folder per class, or a label column")
    seen = set(source.read_card().classes or ()) & set(files.class_names)
    if seen:
        _warn(
            f"the model was trained on {len(seen):,} of these classes: on unseen classes its error rates will be higher"
        )
    rows, vectors, broken = embed_images(source.load(), files, np.flatnonzero(labels >= 0))
    return labels[rows], vectors, broken


def _warn(text: str) -> None:
    warnings.warn(text, Note, stacklevel=3)


def embed_images(
    encoder: Encoder, images: ImageList, wanted: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.float32], tuple[Broken, ...]]:
    """Rows of the images that can be read, their vectors, and the broken ones.

    Examples:
        >>> import tempfile
        >>> from likewise.trunks import Embedder
        >>> file = Path(tempfile.mkdtemp()) / "model.safetensors"
        >>> Embedder("convnet", 8).save(file)
        >>> embed_images(Encoder.load(file), ImageList(Path(), ("nowhere.png",)), np.array([0]))
        Traceback (most recent call last):
        likewise.app.errors.UserError: none of the images can be read
    """
    files = [images.root / images.paths[row] for row in wanted]
    batch = batch_for(encoder.transform, encoder.device)
    embedding = Embedding(encoder.model, encoder.device, encoder.transform, batch)
    rows: list[int] = []
    vectors: list[NDArray[np.float32]] = []
    broken: list[Broken] = []
    with (
        ThreadPoolExecutor(cores(), thread_name_prefix="likewise-decode") as pool,
        progress("embedding", len(files), "img") as advance,
    ):
        for each in embed_batches(embedding, files, lambda image: None, pool):
            rows += [int(wanted[row]) for row in each.rows]
            vectors.append(each.vectors)
            broken += [
                Broken(int(wanted[row]), str(files[row]), image.reason or "it cannot be read")
                for row, image in each.broken
            ]
            advance(each.count)
    if not rows:
        raise UserError("none of the images can be read")
    return np.array(rows, np.int64), np.concatenate(vectors), tuple(broken)


@dataclass(frozen=True)
class Verification:
    """Whether two images show the same thing.

    Args:
        same: whether the similarity reaches the threshold, or the files are identical.
        similarity: the cosine of the two embeddings.
        probability: probability that they show the same thing.
        threshold: minimum similarity of a match; ``None`` for identical files.
        point: the rates at that threshold on validation pairs, if a false-accept rate was given.

    Examples:
        >>> print(Verification(True, 0.8, 0.97, 0.6))
        the same
    """

    same: bool
    similarity: float
    probability: float
    threshold: float | None
    point: Point | None = None

    def __str__(self) -> str:
        if self.threshold is None:
            return "the same: the two files are identical"
        if self.point is not None and self.same != (self.probability >= 0.5):
            likely = "the same" if self.probability >= 0.5 else "not the same"
            enough = "similar enough" if self.same else "not similar enough"
            return f"probably {likely}, but {enough} for a false-accept rate of {self.point.far:g}"
        return "the same" if self.same else "not the same"


def verify(
    model: str | Path,
    first: str | Path,
    second: str | Path,
    *,
    far: float | None = None,
    prior: float = 0.5,
    transform: str | None = None,
) -> Verification:
    """Compare two images with a calibrated model.

    They match if that is more likely than not, or, with ``far``, if the similarity reaches the threshold of that
    false-accept rate.  Identical files always match.

    Args:
        model: a calibrated model: a ``.safetensors`` file, the folder of a run, or the name of a published network.
        first: an image.
        second: another image.
        far: the share of different pairs accepted as the same; one of the calibrated rates, or ``None``.
        prior: prior probability that two images show the same thing.
        transform: the name of a transform; by default that of the model's run, or what its card implies.

    Raises:
        UserError: the model is not calibrated, or an argument does not fit.

    Examples:
        >>> verify("nowhere", "a.jpg", "b.jpg")
        Traceback (most recent call last):
        likewise.app.errors.UserError: there is no model nowhere: give a file that ends in .safetensors, ...
    """
    source = resolve_model(model, transform)
    if _are_identical(Path(first), Path(second)):
        return Verification(True, 1.0, 1.0, None)
    card = source.read_card()
    if card.calibration is None:
        images = "" if source.file is not None and (source.file.parent / "run.yaml").exists() else " IMAGES"
        copy = " -o FILE" if source.file is None else ""
        raise UserError(f"{source.place} is not calibrated: run likewise calibrate {model}{images}{copy}")
    with making("the calibration"):
        learned = Calibration.from_dict(card.calibration)
        point = None if far is None else learned.point(far)
        threshold = learned.threshold(prior=prior) if point is None else point.threshold
        learned.probability(0.0, prior=prior)  # check the prior before embedding
    encoder = source.load()
    try:
        one, other = encoder.embed([first, second]).astype(float)
    except BrokenImage as broken:
        raise UserError(str(broken)) from broken
    similarity = float(one @ other / max((one @ one) ** 0.5 * (other @ other) ** 0.5, 1e-12))
    probability = learned.probability(similarity, prior=prior)
    return Verification(similarity >= threshold, similarity, probability, threshold, point)


def _are_identical(first: Path, second: Path) -> bool:
    """Whether two files have the same content."""
    files = first.is_file() and second.is_file() and first.stat().st_size == second.stat().st_size
    return files and first.read_bytes() == second.read_bytes()
