"""Where ``likewise index`` puts an index: its folder, a database beside it, and what is said at the end."""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path

from likewise.app import UserError, making
from likewise.cli.collection import Collection
from likewise.cli.screen import bold, columns, note
from likewise.search import Index, adopt, is_index, kind_for, split_url


def parts_folder(out: Path) -> Path:
    """Where embeddings are kept until the index is there.

    Examples:
        >>> parts_folder(Path("birds.index")).name
        'birds.index.parts'
    """
    return out.with_name(out.name + ".parts")


def check_place(given: argparse.Namespace, hint: str) -> None:
    """Refuse to replace anything but an index: the same name may be that of a folder of photographs.

    Examples:
        >>> check_place(argparse.Namespace(out=Path(".")), "--update adds to it")
        Traceback (most recent call last):
        likewise.app.errors.UserError: . is there already and is no index: choose another -o, or remove it
    """
    if not given.out.exists():
        return
    if not is_index(given.out):
        raise UserError(f"{given.out} is there already and is no index: choose another -o, or remove it")
    if not given.overwrite:
        raise UserError(f"{given.out} is there already; {hint}")


def index_name(given: argparse.Namespace) -> str:
    """The name of a new index.

    Examples:
        >>> index_name(argparse.Namespace(name=None, out=Path("birds.index")))
        'birds'
    """
    name: str = given.name or given.out.name.removesuffix(".index")
    return name


def fresh_folder(out: Path) -> Path:
    """Where a new index is made before it is put in place; what was there is removed.

    Examples:
        >>> fresh_folder(Path("birds.index")).as_posix()
        'birds.index.parts/index'
    """
    new = parts_folder(out) / "index"
    shutil.rmtree(new, ignore_errors=True)
    return new


def tidy(out: Path) -> None:
    """Remove what a new index leaves, but not the embeddings of another command that was stopped.

    Examples:
        >>> import tempfile
        >>> out = Path(tempfile.mkdtemp()) / "birds.index"
        >>> parts_folder(out).mkdir()
        >>> (parts_folder(out) / ".lock").touch()
        >>> tidy(out)
        >>> parts_folder(out).exists()
        False
    """
    fresh_folder(out)
    if {each.name for each in parts_folder(out).iterdir()} == {".lock"}:
        shutil.rmtree(parts_folder(out), ignore_errors=True)


def put_in_place(given: argparse.Namespace, index: Index, kind: str) -> Index:
    """Build what makes a large index quick, and make the new index the one of that name.

    Examples:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> index = Index.create(folder / "new", dim=2)
        >>> put_in_place(argparse.Namespace(out=folder / "birds.index"), index, "auto").folder.name
        'birds.index'
    """
    kind = kind_for(len(index)) if kind == "auto" else kind
    if kind != "exact":
        index.rebuild(approximate=kind)  # type: ignore[arg-type]
    assert index.folder is not None
    adopt(index.folder, given.out)
    return Index.open(given.out)


def check_store(store: str | None) -> None:
    """Ask whether the database answers, before hours are spent.

    Examples:
        >>> check_store("mysql://nowhere")
        Traceback (most recent call last):
        likewise.app.errors.UserError: --store: url must begin with postgresql://, but it begins with 'mysql://'
    """
    if store is not None:
        with making("--store"):
            _opened(store)


def _opened(store: str) -> Index | None:
    """The index in a database; ``None`` where it has none of that name yet."""
    split_url(store)
    try:
        return Index.open(store)
    except ValueError:
        return None


def store_index(index: Index, store: str | None) -> None:
    """Put the items into a database, too; those whose paths are there are replaced.

    Examples:
        >>> import tempfile
        >>> store_index(Index.create(tempfile.mkdtemp() + "/a.index", dim=2), None)
    """
    if store is None:
        return
    with making("--store"):
        url, name = split_url(store)
        place = f"{url}#{name or index.name}"
        target = _opened(place)
        if target is None:
            target = Index.create_like(index, place)
        count = target.merge(index)
        target.close()
    print(f"{count:,} images stored in the index {name or index.name} of the database")


def join_words(words: Sequence[str]) -> str:
    """What a command was given, for a sentence.

    Examples:
        >>> join_words([])
        'neither'
    """
    return " ".join(words) if words else "neither"


def conclude(index: Index, out: Path, done: str, collection: Collection | None = None) -> int:
    """Print what was done, what the index holds, and what to do next.

    Examples:
        >>> import tempfile
        >>> conclude(Index.create(tempfile.mkdtemp() + "/a.index", dim=2), Path("a.index"), "2 indexes merged")
        a.index: 2 indexes merged
        ...
        0
    """
    print(f"{bold(str(out))}: {done}")
    print(columns(summary(index)))
    query = "photo.jpg"
    if collection is not None and len(collection):
        query = os.path.relpath(collection.pictures.root / collection.pictures.paths[0])
    print(f"next: likewise search {shlex.quote(str(out))} {shlex.quote(query)} --sheet found.png")
    print(f"      likewise serve {shlex.quote(str(out))}")
    return 0


def summary(index: Index) -> list[tuple[str, str]]:
    """What an index holds, and what was measured, in words.

    Examples:
        >>> import tempfile
        >>> summary(Index.create(tempfile.mkdtemp() + "/a.index", dim=2))[0]
        ('images', '0, vectors of 2 numbers')
    """
    size = sum(each.bytes for each in index.card.files.values())
    rows = [("images", f"{len(index):,}, vectors of {index.dim:,} numbers")]
    if index.fields:
        rows.append(("metadata", ", ".join(index.fields)))
    stored = f"{index.storage}, {size / 1e6:,.1f} MB in all"
    loss, near = index.loss, index.near
    if loss is not None:
        stored += f"; finds {loss.recall:.1%} of the ten nearest that float32 finds, measured with {loss.queries}"
    rows.append(("storage", stored))
    if near is None:
        rows.append(("search", "exact: every image is compared"))
    else:
        name = {"hnsw": "HNSW", "ivfpq": "IVF-PQ"}[near.kind]
        recall = near.recall or 0.0
        measured = f"finds {recall:.1%} of the ten nearest, {near.faster or 0.0:.0f} times as fast as exact search"
        rows.append(("search", f"{name}: {measured}, measured with {near.queries} queries"))
        if recall < 0.95:
            note(f"{name} misses {1 - recall:.0%} of the nearest here: --exact on a search finds them all")
    return rows
