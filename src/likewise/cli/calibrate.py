"""``likewise calibrate``: what a model's similarities mean, learned from labeled images and kept in its file."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from likewise.app import UserError, chosen_model, making
from likewise.cli.arguments import Arguments
from likewise.cli.pictures import Pictures, find_pictures
from likewise.cli.screen import bold, columns, note
from likewise.data import RECIPES, BrokenImage, cores, progress
from likewise.search import Calibration, Embedding, Encoder, batch_for, calibrate, decoded
from likewise.trunks import read_card, read_tensors, write_model

RATES = (1e-1, 1e-2, 1e-3)

LISTED = 20
"""Broken images that are named on the screen."""


def run(words: Sequence[str]) -> int:
    """Learn thresholds and probabilities from labeled images, and write them into the model's file.

    Examples:
        >>> run(["nowhere", "photos"])
        Traceback (most recent call last):
        likewise.app.errors.UserError: there is no model nowhere: give a file that ends in .safetensors, or ...
    """
    options = _options()
    given = options.parse_args(words)
    if not all(0.0 < rate <= 1.0 for rate in given.far):
        options.error(f"--far must be rates above 0 and at most 1, but it is {' '.join(map(str, given.far))}")
    if given.out is not None and given.out.suffix != ".safetensors":
        options.error(f"-o must be a file that ends in .safetensors, but it is {given.out}")
    chosen = chosen_model(given.model, given.images)
    pictures = find_pictures(given.input, root=given.root, columns=(given.path_column, given.label_column))
    labels = np.array(pictures.labels if pictures.labels is not None else [], np.int64)
    if len(labels) == 0 or len(set(labels[labels >= 0].tolist())) < 2:
        raise UserError(
            f"{given.input} must have images of at least two classes: a folder for each, or a column of labels"
        )
    with making(f"the model {chosen.file}"):
        encoder, card = Encoder.load(chosen.file, images=chosen.images), read_card(chosen.file)
    seen = set(card.classes or ()) & set(pictures.class_names)
    if seen:
        note(f"the model was trained on {len(seen):,} of these classes: on others its errors will be more frequent")
    rows, vectors = _embedded(encoder, pictures, np.flatnonzero(labels >= 0))
    with making("the calibration"):
        learned = calibrate(vectors, labels[rows], far=given.far)
        file = given.out or chosen.file
        write_model(file, read_tensors(chosen.file), replace(card, calibration=learned.as_dict()))
    if given.out is None and (file.parent / "openings.jsonl").exists():
        note("the run's record of openings has the checksum of the file as it was before; -o writes another file")
    _show(learned, len(rows), len(set(labels[rows].tolist())))
    print(f"kept in {file}; likewise verify {file} a.jpg b.jpg uses it")
    return 0


def _options() -> Arguments:
    options = Arguments(
        "calibrate",
        "Learn from labeled images, of classes that the model was not trained on, which similarity means that two show "
        "the same, and how likely; it is written into the model's file.",
    )
    options.add_argument(
        "model", metavar="MODEL", type=Path, help="a model (.safetensors), or a run's folder: its best"
    )
    options.add_argument(
        "input", metavar="IMAGES", type=Path, help="a folder of folders, one for each class, or a table with labels"
    )
    options.add_argument(
        "--far",
        metavar="RATE",
        nargs="+",
        type=float,
        default=list(RATES),
        help="wanted false-accept rates: how often different things may pass as the same (0.1 0.01 0.001)",
    )
    options.add_argument(
        "-o", "--out", metavar="FILE", type=Path, help="write a calibrated copy there (default: into the model's file)"
    )
    options.add_argument("--images", metavar="NAME", choices=sorted(RECIPES), help="how images are shown, as for embed")
    options.add_argument(
        "--root", metavar="FOLDER", type=Path, help="where a table's paths begin (default: its folder)"
    )
    options.add_argument("--path-column", metavar="NAME", default="path", help="a table's column of paths (path)")
    options.add_argument("--label-column", metavar="NAME", default="label", help="its column of classes (label)")
    return options


def _embedded(
    encoder: Encoder, pictures: Pictures, wanted: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Vectors of the images that can be read, and which they are."""
    paths = [pictures.root / pictures.paths[row] for row in wanted]
    batch = batch_for(encoder.shown, encoder.device)
    embedding = Embedding(encoder.model, encoder.device, encoder.shown, batch)
    rows: list[int] = []
    vectors: list[NDArray[np.float32]] = []
    broken: list[BrokenImage] = []
    with (
        ThreadPoolExecutor(cores(), thread_name_prefix="likewise-decode") as pool,
        progress("embedding", len(paths), "img") as advance,
    ):
        for first, images in decoded(pool, paths, encoder.shown, batch):
            good = {place: image for place, image in enumerate(images) if not isinstance(image, BrokenImage)}
            broken += [image for image in images if isinstance(image, BrokenImage)]
            rows += [int(wanted[first + place]) for place in good]
            if good:
                vectors.append(embedding([*good.values()]))
            advance(len(images))
    for each in broken[:LISTED]:
        print(f"left out: {each}", file=sys.stderr)
    if len(broken) > LISTED:
        print(f"left out: {len(broken) - LISTED:,} more", file=sys.stderr)
    if not rows:
        raise UserError("none of the images can be read")
    return np.array(rows, np.int64), np.concatenate(vectors)


def _show(learned: Calibration, images: int, classes: int) -> None:
    print(bold(f"{images:,} images of {classes:,} classes"))
    print(columns([("genuine pairs", f"{learned.genuine:,}"), ("impostors", f"{learned.impostors:,}")]))
    rows = [("false accepts", "threshold", "true accepts")]
    rows += [(f"{each.far:g}", f"{each.threshold:.4f}", f"{each.tar:.4f}") for each in learned.points]
    print(columns(rows))
    if learned.error is None:
        note("too few classes to measure how well the probabilities are calibrated")
    else:
        print(f"probabilities are off by {learned.error:.3f} on average, on classes left out of the fit")
    for rate in learned.guessed():
        note(f"{learned.impostors:,} impostors are few for a rate of {rate:g}: less than ten decide its threshold")
