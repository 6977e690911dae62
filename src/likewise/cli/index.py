"""``likewise index``: a model and a folder or table of images to an index that finds look-alikes."""

from __future__ import annotations

import argparse
import csv
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from likewise.app import Asked, UserError, asked_model, making
from likewise.cli import index_versions
from likewise.cli.arguments import Arguments
from likewise.cli.collection import STAMP, Collection, find_collection
from likewise.cli.index_merge import index_vectors, merge
from likewise.cli.index_place import (
    check_place,
    check_store,
    conclude,
    fresh_folder,
    index_name,
    join_words,
    parts_folder,
    put_in_place,
    store_index,
)
from likewise.cli.pictures import add_images_option, add_table_options
from likewise.cli.screen import columns
from likewise.cli.slices import Gathered, Slices, alone, written
from likewise.data import atomic_write
from likewise.search import (
    INDEX_KINDS,
    STORAGES,
    THUMBNAIL_SIDE,
    Embedding,
    Encoder,
    Index,
    batch_for,
    is_url,
)

PART = 1024
"""Images whose embeddings are written at once: what a kill costs."""

LISTED = 20
"""Broken images that are named on the screen."""

STOPPED = 130


def run(words: Sequence[str]) -> int:
    """Make an index, bring one up to date, or put several together.

    Examples:
        >>> run(["efficientnet_lite0", "nowhere", "-o", "birds.index"])
        Traceback (most recent call last):
        likewise.app.errors.UserError: there is no folder or table nowhere
    """
    given = _options().parse_intermixed_args(words)
    action = index_versions.chosen_action(given)
    if action is not None:
        return action(given)
    if given.out is None:
        raise UserError("likewise index needs a place for the index: -o birds.index")
    with written(given.out):
        return _run(given)


def _run(given: argparse.Namespace) -> int:
    if given.store is not None and (given.update or not is_url(given.store)):
        what = "a new index or --merge, not with --update" if given.update else "the URL of a database, postgresql://…"
        raise UserError(f"--store goes with {what}")
    if given.prune and not given.update:
        raise UserError("--prune goes with --update: a new index has nothing to remove")
    if given.prune and (given.shard or given.vectors):
        raise UserError(
            "--prune needs all images: leave --shard and --vectors out, or the others would be taken for gone"
        )
    if given.merge:
        return merge(given)
    if given.vectors is not None:
        return index_vectors(given)
    if given.update:
        return _update(given)
    if len(given.what) != 2:
        raise UserError(f"likewise index needs a MODEL and IMAGES, but it was given {join_words(given.what)}")
    check_place(given, "--update adds to it, --overwrite replaces it")
    check_store(given.store)
    asked = asked_model(given.what[0], given.images)
    collection = _collection(given)
    encoder = asked.load()
    _headline(given, encoder, str(asked.place), len(collection))
    with alone(parts_folder(given.out)):
        slices = _slices(given, collection, asked, encoder)
        found = _embedded(given, slices, encoder)
        if found is None:
            return STOPPED
        if not len(found.rows):
            shutil.rmtree(slices.folder, ignore_errors=True)
            return _nothing(collection, found)
        with making("the index"):
            index = Index.create(
                fresh_folder(given.out),
                dim=encoder.dim,
                model=asked.place if isinstance(asked.place, Path) else encoder,
                storage=given.storage or "float32",
                name=index_name(given),
                images=asked.images,
                root=collection.pictures.root,
            )
            _add(index, collection, found)
            index = put_in_place(given, index, given.approximate or "auto")
        _write_broken(given.out, collection, found)
        shutil.rmtree(slices.folder, ignore_errors=True)
    _list_broken(given.out, collection, found)
    store_index(index, given.store)
    return conclude(index, given.out, f"{_images(len(found.rows))} indexed", collection.take(found.rows[:1].tolist()))


def _options() -> Arguments:
    options = Arguments(
        "index", "Make an index of images: likewise search finds look-alikes in it, likewise serve shows them."
    )
    options.usage = (
        "likewise index MODEL IMAGES -o birds.index [options]\n"
        "       likewise index --update [MODEL] IMAGES -o birds.index [--prune]\n"
        "       likewise index --vectors embeddings.npz [MODEL] -o birds.index [--update]\n"
        "       likewise index --merge a.index b.index -o all.index\n"
        "       likewise index --versions | --restore N | --purge | --check | --to-parquet FILE  birds.index"
    )
    options.add_argument(
        "what",
        metavar="MODEL IMAGES",
        nargs="*",
        help="a model (.safetensors), a run's folder, or a published network such as efficientnet_lite0; and a folder, "
        "nested or flat, or a table (.csv, .tsv, .parquet), whose columns are kept",
    )
    options.add_argument("-o", "--out", metavar="INDEX", type=Path, help="where to: a folder.index")
    options.add_argument("--update", action="store_true", help="add new files, replace changed ones")
    options.add_argument("--prune", action="store_true", help="with --update: remove those that are gone")
    options.add_argument("--merge", action="store_true", help="put indexes of the same model together")
    options.add_argument(
        "--vectors", metavar="FILE", type=Path, help="embeddings from elsewhere (.npz: embeddings, paths, labels, …)"
    )
    index_versions.add_options(options)
    options.add_argument("--shard", metavar="I/N", help="only the I-th of N slices, to be merged later")
    options.add_argument("--overwrite", action="store_true", help="replace the index if it is there")
    options.add_argument(
        "--store", metavar="URL", help="put it into a database, too: postgresql://…#name (PostgreSQL with pgvector)"
    )
    options.add_argument("--name", help="what the index is called; by default its file's name")
    options.add_argument(
        "--storage", choices=STORAGES, help="float32, float16 (half the size) or int8 (a quarter); the loss is measured"
    )
    options.add_argument(
        "--approximate",
        choices=INDEX_KINDS,
        help="auto (by size: exact below 200,000 images), exact, hnsw or ivfpq; the recall is measured",
    )
    options.add_argument(
        "--thumbnails",
        metavar="PIXELS",
        type=int,
        default=THUMBNAIL_SIDE,
        help=f"side of small pictures ({THUMBNAIL_SIDE}); 0 for none",
    )
    add_images_option(options)
    options.add_argument("--batch", metavar="N", type=int, help="images at once; by default what fits into memory")
    add_table_options(options)
    return options


def _collection(given: argparse.Namespace) -> Collection:
    place = Path(given.what[-1])
    collection = find_collection(place, root=given.root, columns=(given.path_column, given.label_column))
    if given.thumbnails < 0 or given.thumbnails > 2048:
        raise UserError(f"--thumbnails must be a side in pixels from 0 to 2048, but it is {given.thumbnails}")
    if given.shard is None:
        return collection
    said = re.fullmatch(r"(\d+)/(\d+)", given.shard)
    if said is None or not 1 <= int(said[1]) <= int(said[2]):
        raise UserError(f"--shard must be I/N with I from 1 to N, such as 2/8, but it is {given.shard}")
    rows = range(int(said[1]) - 1, len(collection), int(said[2]))
    if not rows:
        raise UserError(f"--shard {given.shard} has none of the {len(collection):,} images: take fewer slices")
    return collection.take(rows)


def _headline(given: argparse.Namespace, encoder: Encoder, model: str, images: int) -> None:
    part = f", slice {given.shard}" if given.shard else ""
    rows = [("model", model), ("images", f"{images:,} in {given.what[-1]}{part}"), ("shown", encoder.shown.name)]
    print(columns(rows, indent=0))


# ------------------------------------------------------------------------------------------------ embedding


def _slices(given: argparse.Namespace, collection: Collection, asked: Asked, encoder: Encoder) -> Slices:
    slices = Slices(parts_folder(given.out), collection.pictures, PART, given.thumbnails)
    slices.begin(
        {
            "model": asked.fingerprint,
            "input": collection.pictures.fingerprint(),
            "shown": repr(encoder.shown),
            "part": PART,
            "thumbnails": given.thumbnails,
        }
    )
    return slices


def _embedded(given: argparse.Namespace, slices: Slices, encoder: Encoder) -> Gathered | None:
    """Vectors of all images, part by part; nothing where somebody stopped it."""
    batch = given.batch or batch_for(encoder.shown, encoder.device)
    try:
        slices.embed(Embedding(encoder.model, encoder.device, encoder.shown, batch))
    except KeyboardInterrupt:
        print("stopped; the same command goes on from here", file=sys.stderr)
        return None
    return slices.gathered()


def _add(index: Index, collection: Collection, found: Gathered) -> None:
    known = collection.take(found.rows.tolist())
    root = index.root or known.pictures.root.resolve()
    index.add(
        found.embeddings,
        known.stored_paths(root),
        labels=known.labels,
        metadata=known.metadata | {STAMP: known.stamps()},
        thumbnails=found.thumbnails,
    )


# ------------------------------------------------------------------------------------------------ update, merge


def _update(given: argparse.Namespace) -> int:
    if len(given.what) not in (1, 2):
        raise UserError(f"likewise index --update needs IMAGES, but it was given {join_words(given.what)}")
    with making("the index"):
        index = Index.open(given.out)
    asked = _same_model(index, given)
    collection = _collection(given)
    paths = collection.stored_paths(index.root or collection.pictures.root.resolve())
    stamps = dict(zip(index.column("path"), index.column(STAMP), strict=True))
    changed = [
        row
        for row, (path, stamp) in enumerate(zip(paths, collection.stamps(), strict=True))
        if stamps.get(path) != stamp
    ]
    gone = _gone(index, collection, paths) if given.prune else np.zeros(0, np.int64)
    added, found, some = 0, None, collection.take(changed)
    if changed:
        encoder = index.encoder()
        _headline(given, encoder, index.card.model.name if index.card.model else "", len(some))
        with alone(parts_folder(given.out)):
            slices = _slices(given, some, asked, encoder)
            found = _embedded(given, slices, encoder)
            if found is None:
                return STOPPED
            with making("the index"):
                _add(index, some, found)
            added = len(found.rows)
            _write_broken(given.out, some, found)
            shutil.rmtree(slices.folder, ignore_errors=True)
        _list_broken(given.out, some, found)
    with making("the index"):
        removed = index.remove(gone) if len(gone) else 0
        if given.storage or given.approximate:
            index.rebuild(storage=given.storage, approximate=given.approximate)
    fresh = 0 if found is None else sum(paths[changed[row]] not in stamps for row in found.rows)
    done = f"{_images(fresh)} added, {added - fresh:,} replaced, {removed:,} removed"
    return conclude(index, given.out, done, collection if found is None else some.take(found.rows[:1].tolist()))


def _same_model(index: Index, given: argparse.Namespace) -> Asked:
    """The index's own model; another one would make vectors that cannot be compared."""
    model = index.model
    if model is None or index.model_file is None:
        raise UserError(f"{given.out} has no model: add vectors to it in Python")
    own = Asked(index.model_file, model.images, model.sha256)
    if len(given.what) == 2:
        asked = asked_model(given.what[0], given.images)
        name = str(asked.place)
        same = asked.fingerprint == model.sha256 if isinstance(asked.place, Path) else name == model.name
        if not same:
            raise UserError(f"{given.out} was made with the model {model.name}, not with {name}: make a new index")
    if given.images not in (None, model.images):
        raise UserError(
            f"{given.out} shows images by {model.images or 'the card'}, not by {given.images}: make a new index"
        )
    return own


def _gone(index: Index, collection: Collection, paths: Sequence[str]) -> Any:
    """Items whose files lie under what was given, and are not there any more."""
    root, here = index.root, collection.pictures.root.resolve()
    listed = set(paths)
    found = []
    for number, path in zip(index.ids, index.column("path"), strict=True):
        full = Path(path) if root is None else root / path
        if path not in listed and full.is_relative_to(here):
            found.append(number)
    return np.array(found, np.int64)


# ------------------------------------------------------------------------------------------------ what is said


def _write_broken(folder: Path, collection: Collection, found: Gathered) -> None:
    """All images that could not be read, beside the index."""
    listed = folder / "broken.csv"
    if not len(found.broken):
        listed.unlink(missing_ok=True)
        return
    with atomic_write(listed) as part, part.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(("path", "reason"))
        for row, reason in zip(found.broken, found.reasons, strict=True):
            writer.writerow((collection.pictures.paths[row], reason))


def _list_broken(out: Path, collection: Collection, found: Gathered) -> None:
    for row, reason in list(zip(found.broken, found.reasons, strict=True))[:LISTED]:
        print(f"left out: {collection.pictures.root / collection.pictures.paths[row]}: {reason}", file=sys.stderr)
    if len(found.broken) > LISTED:
        print(f"left out: {len(found.broken) - LISTED:,} more, which {out / 'broken.csv'} lists", file=sys.stderr)


def _nothing(collection: Collection, found: Gathered) -> int:
    _list_broken(Path(), collection, found)
    print("no image can be read: there is nothing to index", file=sys.stderr)
    return 1


def _images(count: int) -> str:
    return f"{count:,} image{'s' * (count != 1)}"
