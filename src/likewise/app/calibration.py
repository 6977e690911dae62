"""What a model's similarities mean: learned from labeled images, stored in its file, and used to compare two images."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from likewise.app.embedding_options import ImageOptions
from likewise.app.errors import Note, UserError, making, writing
from likewise.app.images import ImageList, find_images
from likewise.app.models import resolve_model
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
        images: how many images it was learned from.
        classes: how many classes they have.
        broken: the images that could not be read.

    Examples:
        >>> list(CalibratedModel.__dataclass_fields__)
        ['file', 'calibration', 'images', 'classes', 'broken']
    """

    file: Path
    calibration: Calibration
    images: int
    classes: int
    broken: tuple[Broken, ...]


def calibrate(
    model: str | Path,
    images: str | Path,
    *,
    far: Sequence[float] = RATES,
    out: str | Path | None = None,
    transform: str | None = None,
    root: str | Path | None = None,
    path_column: str = "path",
    label_column: str = "label",
) -> CalibratedModel:
    """Learn thresholds and probabilities from labeled images, and write them into the model's file.

    Args:
        model: a ``.safetensors`` file, the folder of a run (its best model), or the name of a published network.
        images: images of classes that the model was not trained on: a folder of folders, or a table with labels.
        far: wanted false-accept rates: the share of different things that may pass as the same.
        out: write a calibrated copy there; by default the model's own file is replaced.
        transform: the name of a transform; by default that of the model's run, or what its card implies.
        root: where a table's paths begin; by default its folder.
        path_column: a table's column of paths.
        label_column: a table's column of classes.

    Raises:
        UserError: an argument does not fit, or the file cannot be written.

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
            f"{source.place} is a published network without a file: --out says where the calibrated one goes"
        )
    files = find_images(images, ImageOptions(root, path_column, label_column))
    labels = np.array(files.labels if files.labels is not None else [], np.int64)
    if len(set(labels[labels >= 0].tolist())) < 2:
        raise UserError(f"{images} must have images of at least two classes: a folder for each, or a column of labels")
    encoder, card = source.load(), source.read_card()
    seen = set(card.classes or ()) & set(files.class_names)
    if seen:
        _warn(f"the model was trained on {len(seen):,} of these classes: on others its errors will be more frequent")
    rows, vectors, broken = embed_images(encoder, files, np.flatnonzero(labels >= 0))
    with making("the calibration"):
        learned = calibrate_embeddings(vectors, labels[rows], far=far)
    with source.as_file() as original:
        file = target or original
        with writing(file):
            write_model(file, read_tensors(original), replace(card, calibration=learned.as_dict()))
    if target is None and (file.parent / "openings.jsonl").exists():
        _warn("the run's record of openings has the checksum of the file as it was before; --out writes another file")
    return CalibratedModel(file, learned, len(rows), len(set(labels[rows].tolist())), broken)


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
    """Whether two images show the same.

    Args:
        same: whether the similarity reaches the threshold.
        similarity: the cosine of the two embeddings.
        point: the threshold and its rates on validation pairs.
        probability: how likely they are the same.

    Examples:
        >>> Verification(True, 0.8, Point(0.01, 0.6, 0.9), 0.97).same
        True
    """

    same: bool
    similarity: float
    point: Point
    probability: float


def verify(
    model: str | Path,
    first: str | Path,
    second: str | Path,
    *,
    far: float = 0.01,
    prior: float = 0.5,
    transform: str | None = None,
) -> Verification:
    """Compare two images with a calibrated model.

    Args:
        model: a ``.safetensors`` file that `calibrate` wrote, or the folder of a run.
        first: an image.
        second: another image.
        far: the share of different things that may pass as the same; one of the calibrated rates.
        prior: how likely two images are the same before they are compared.
        transform: the name of a transform; by default that of the model's run, or what its card implies.

    Raises:
        UserError: the model is not calibrated, or an argument does not fit.

    Examples:
        >>> verify("nowhere", "a.jpg", "b.jpg")
        Traceback (most recent call last):
        likewise.app.errors.UserError: there is no model nowhere: give a file that ends in .safetensors, ...
    """
    source = resolve_model(model, transform)
    card = source.read_card()
    if card.calibration is None:
        copy = " -o FILE" if source.file is None else ""
        raise UserError(f"{source.place} is not calibrated: likewise calibrate {model} IMAGES{copy} does that")
    with making("the calibration"):
        learned = Calibration.from_dict(card.calibration)
        point = learned.point(far)
        learned.probability(0.0, prior=prior)  # the prior is checked before anything is embedded
    encoder = source.load()
    try:
        one, other = encoder.embed([first, second]).astype(float)
    except BrokenImage as broken:
        raise UserError(str(broken)) from broken
    similarity = float(one @ other / max((one @ one) ** 0.5 * (other @ other) ** 0.5, 1e-12))
    probability = learned.probability(similarity, prior=prior)
    return Verification(similarity >= point.threshold, similarity, point, probability)
