"""``likewise embed``: images to vectors; killed at any moment, it goes on where it was."""

from __future__ import annotations

import argparse
import hashlib
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from likewise.app import Chosen, UserError, chosen_model, making, this_machine
from likewise.cli.arguments import Arguments
from likewise.cli.embed_parts import PartJob, embed_parts
from likewise.cli.executing import Execution
from likewise.cli.pictures import Pictures, add_images_option, add_table_options, find_pictures
from likewise.cli.screen import columns
from likewise.cli.slices import Gathered, Slices, alone, written
from likewise.data import RECIPES, atomic_write
from likewise.search import Embedding as _Embedding
from likewise.search import batch_for, shown_to
from likewise.trunks import Embedder, read_card

PART = 2048
"""Images whose embeddings are written at once: what a kill costs."""

LISTED = 20
"""Broken images that are named on the screen."""


def run(words: Sequence[str]) -> int:
    """Embed the images of a folder or a table.

    Examples:
        >>> run(["nowhere", "photos", "-o", "embeddings.npz"])
        Traceback (most recent call last):
        likewise.app.errors.UserError: there is no model nowhere: give a file that ends in .safetensors, or ...
    """
    given = _options().parse_intermixed_args(words)
    execution = _execution(given)
    with written(given.out):
        return _run(given, execution)


def _execution(given: argparse.Namespace) -> Execution:
    if given.workers is not None and given.workers < 1:
        raise UserError(f"--workers must be a whole number ≥ 1, but it is {given.workers}")
    if given.per_gpu < 1:
        raise UserError(f"--per-gpu must be a whole number ≥ 1, but it is {given.per_gpu}")
    return Execution(given.workers, given.per_gpu, given.on)


def _run(given: argparse.Namespace, execution: Execution) -> int:
    chosen = chosen_model(given.model, given.images)
    file, images = chosen.file, chosen.images
    with making(f"the model {file}"):
        model, card = Embedder.load(file), read_card(file)
    pictures = find_pictures(given.input, root=given.root, columns=(given.path_column, given.label_column))
    if images is None and model.preprocessing is None:
        raise UserError(f"{file} does not say what images it expects: --images {'|'.join(sorted(RECIPES))} does")
    shown = shown_to(model, images)
    if given.out.suffix != ".npz":
        raise UserError(f"-o must be a file that ends in .npz, but it is {given.out}")
    if given.out.exists() and not given.overwrite:
        raise UserError(f"{given.out} is there already; --overwrite replaces it")
    print(
        columns(
            [("model", str(file)), ("images", f"{len(pictures):,} in {given.input}"), ("shown", shown.name)], indent=0
        )
    )
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    about = {"model": digest, "input": pictures.fingerprint(), "shown": repr(shown), "part": PART}
    slices = Slices(given.out.with_name(given.out.name + ".parts"), pictures, PART)
    with alone(slices.folder):
        slices.begin(about)
        try:
            if given.on is not None or given.workers is not None:
                embed_parts(slices, _job(given, chosen, slices), execution)
            else:
                device = this_machine().device
                slices.embed(_Embedding(model.to(device), device, shown, given.batch or batch_for(shown, device)))
        except KeyboardInterrupt:
            print("stopped; the same command goes on from here", file=sys.stderr)
            return 130
        found = slices.gathered()
        with atomic_write(given.out) as part, part.open("wb") as target:
            np.savez(target, **_content(pictures, found, half=given.half, model=digest, card=card.to_json()))
        shutil.rmtree(slices.folder, ignore_errors=True)
    return _conclude(given.out, pictures, found)


def _job(given: argparse.Namespace, chosen: Chosen, slices: Slices) -> PartJob:
    """What other processes need to know; places are absolute, because they may be in another folder."""
    return PartJob(
        model=str(chosen.file.absolute()),
        images=chosen.images,
        input=str(given.input.absolute()),
        root=None if given.root is None else str(given.root.absolute()),
        path_column=given.path_column,
        label_column=given.label_column,
        folder=str(slices.folder.absolute()),
        size=slices.size,
        batch=given.batch,
    )


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
    add_images_option(options)
    options.add_argument("--batch", metavar="N", type=int, help="images at once; by default what fits into memory")
    add_table_options(options)
    options.add_argument("--workers", metavar="N", type=int, help="embed in so many processes")
    options.add_argument("--per-gpu", metavar="N", type=int, default=1, help="processes that share a GPU (default: 1)")
    options.add_argument("--on", metavar="ADDRESS", help="embed on a Ray cluster that runs: auto, or host:port")
    return options


def _content(pictures: Pictures, found: Gathered, *, half: bool, model: str, card: str) -> dict[str, Any]:
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


def _conclude(out: Path, pictures: Pictures, found: Gathered) -> int:
    for row, reason in list(zip(found.broken, found.reasons, strict=True))[:LISTED]:
        print(f"left out: {pictures.root / pictures.paths[row]}: {reason}", file=sys.stderr)
    if len(found.broken) > LISTED:
        print(f"left out: {len(found.broken) - LISTED:,} more, which broken_paths in {out} lists", file=sys.stderr)
    faults = f"; {len(found.broken):,} of {len(pictures):,} images cannot be read" if len(found.broken) else ""
    print(f"{out}: {len(found.rows):,} embeddings{faults}")
    return 0 if len(found.rows) else 1
