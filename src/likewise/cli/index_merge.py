"""``likewise index --merge`` and ``--vectors``: an index of what is embedded already."""

from __future__ import annotations

import argparse
from pathlib import Path

from likewise.app import UserError, asked_model, making
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
    tidy,
)
from likewise.cli.slices import alone
from likewise.search import Index, read_embeddings


def merge(given: argparse.Namespace) -> int:
    """Put several indexes of one model together.

    Examples:
        >>> merge(argparse.Namespace(what=["a.index"]))
        Traceback (most recent call last):
        likewise.app.errors.UserError: likewise index --merge needs two indexes or more, but it was given a.index
    """
    if len(given.what) < 2:
        raise UserError(f"likewise index --merge needs two indexes or more, but it was given {join_words(given.what)}")
    check_place(given, "--overwrite replaces it")
    check_store(given.store)
    with making("the index"):
        parts = [Index.open(each) for each in given.what]
    with alone(parts_folder(given.out)):
        first = parts[0]
        with making("the index"):
            index = Index.create_like(first, fresh_folder(given.out), storage=given.storage, name=index_name(given))
            try:
                for name, part in zip(given.what, parts, strict=True):
                    with making(f"{name}"):
                        index.merge(part)
            except UserError:
                tidy(given.out)
                raise
            if any(part.calibration != first.calibration for part in parts):
                index.calibrated(None)
            index = put_in_place(given, index, given.approximate or "auto")
        tidy(given.out)
    store_index(index, given.store)
    return conclude(index, given.out, f"{len(parts)} indexes merged")


def index_vectors(given: argparse.Namespace) -> int:
    """Make an index of vectors from elsewhere, or add them to one, with the model that made them or without it.

    Examples:
        >>> index_vectors(argparse.Namespace(what=["a", "b"]))
        Traceback (most recent call last):
        likewise.app.errors.UserError: likewise index --vectors takes a MODEL or none, but it was given a b
    """
    if len(given.what) > 1:
        raise UserError(f"likewise index --vectors takes a MODEL or none, but it was given {join_words(given.what)}")
    check_store(given.store)
    with making("--vectors"):
        found = read_embeddings(given.vectors)
    asked = asked_model(given.what[0], given.images) if given.what else None
    if asked is not None and isinstance(asked.place, Path) and found.model_sha256 not in (None, asked.fingerprint):
        raise UserError(f"{given.vectors} was made with another model than {asked.place}")
    if not given.update:
        check_place(given, "--update adds to it, --overwrite replaces it")
    with alone(parts_folder(given.out)), making("the index"):
        if given.update:
            index = Index.open(given.out)
            if index.card.model is not None and found.model_sha256 not in (None, index.card.model.sha256):
                raise UserError(f"{given.vectors} was made with another model than {given.out}")
        else:
            index = Index.create(
                fresh_folder(given.out),
                dim=found.vectors.shape[1],
                model=None if asked is None else asked.place,
                storage=given.storage or "float32",
                name=index_name(given),
                images=None if asked is None else asked.images,
                root=given.root or found.root,
            )
        index.add(found.vectors, found.paths, labels=found.labels, metadata=found.metadata)
        if not given.update:
            index = put_in_place(given, index, given.approximate or "auto")
        elif given.storage or given.approximate:
            index.rebuild(storage=given.storage, approximate=given.approximate)
        tidy(given.out)
    store_index(index, given.store)
    return conclude(index, given.out, f"{len(found.paths):,} vectors {'added' if given.update else 'indexed'}")
