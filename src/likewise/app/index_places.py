"""The places of an index: its folder, the folder where a new one is made, and a database."""

from __future__ import annotations

import shutil
from pathlib import Path

from likewise.app.chunks import SUFFIX
from likewise.app.errors import UserError, making, writing
from likewise.search import Index, adopt, is_index, kind_for, split_url


def chunk_folder(out: Path) -> Path:
    """The folder of chunks of an index under construction.

    Examples:
        >>> chunk_folder(Path("birds.index")).name
        'birds.index.chunks'
    """
    return out.with_name(out.name + SUFFIX)


def check_free(out: Path, *, overwrite: bool, hint: str) -> None:
    """Refuse to replace anything but an index, such as a folder of photographs.

    Examples:
        >>> check_free(Path("."), overwrite=True, hint="--update adds to it")
        Traceback (most recent call last):
        likewise.app.errors.UserError: . exists and is not an index: choose another --out, or remove it
    """
    with writing(out):
        if not out.exists():
            return
    if not is_index(out):
        raise UserError(f"{out} exists and is not an index: choose another --out, or remove it")
    if not overwrite:
        raise UserError(f"{out} is there already; {hint}")


def index_name(out: Path, name: str | None = None) -> str:
    """The name of a new index.

    Examples:
        >>> index_name(Path("birds.index"))
        'birds'
    """
    return name or out.name.removesuffix(".index")


def new_folder(out: Path) -> Path:
    """The folder in which a new index is built before it is moved into place; a leftover one is removed.

    Examples:
        >>> new_folder(Path("birds.index")).as_posix()
        'birds.index.chunks/index'
    """
    folder = chunk_folder(out) / "index"
    shutil.rmtree(folder, ignore_errors=True)
    return folder


def remove_leftovers(out: Path) -> None:
    """Remove the folder of a new index, but keep the chunks of an interrupted call.

    Examples:
        >>> import tempfile
        >>> out = Path(tempfile.mkdtemp()) / "birds.index"
        >>> chunk_folder(out).mkdir()
        >>> (chunk_folder(out) / ".lock").touch()
        >>> remove_leftovers(out)
        >>> chunk_folder(out).exists()
        False
    """
    new_folder(out)
    if {each.name for each in chunk_folder(out).iterdir()} == {".lock"}:
        shutil.rmtree(chunk_folder(out), ignore_errors=True)


def finish_index(index: Index, out: Path, approximate: str) -> Index:
    """Build the approximate structure of a large index, and move the index into place.

    Examples:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> finish_index(Index.create(folder / "new", dim=2), folder / "birds.index", "auto").folder.name
        'birds.index'
    """
    kind = kind_for(len(index)) if approximate == "auto" else approximate
    if kind != "exact":
        index.rebuild(approximate=kind)  # type: ignore[arg-type]
    assert index.folder is not None
    adopt(index.folder, out)
    return Index.open(out)


def open_index(place: str | Path) -> Index:
    """Open an index: a folder, or ``postgresql://…#name``.

    Args:
        place: the folder or URL.

    Raises:
        UserError: it does not exist or cannot be read.

    Examples:
        >>> open_index("nowhere.index")
        Traceback (most recent call last):
        likewise.app.errors.UserError: the index: there is no index nowhere.index
    """
    with making("the index"):
        return Index.open(place)


def check_store(store: str) -> None:
    """Check that a database answers, before hours of indexing.

    Examples:
        >>> check_store("mysql://nowhere")
        Traceback (most recent call last):
        likewise.app.errors.UserError: --store: url must start with postgresql://, but it starts with 'mysql://'
    """
    with making("--store"):
        _open_or_none(store)


def store_index(index: Index | str | Path, store: str) -> tuple[str, int]:
    """Copy the items of an index into a database; items whose paths it has are replaced.

    Args:
        index: the index, or its place.
        store: the URL of a database, ``postgresql://me@host/photos``, optionally with ``#name``.

    Returns:
        The name of the index in the database, and how many items were copied.

    Raises:
        UserError: the database refuses.

    Examples:
        >>> import tempfile
        >>> store_index(Index.create(tempfile.mkdtemp() + "/a.index", dim=2), "mysql://nowhere")
        Traceback (most recent call last):
        likewise.app.errors.UserError: --store: url must start with postgresql://, but it starts with 'mysql://'
    """
    source = index if isinstance(index, Index) else open_index(index)
    with making("--store"):
        url, name = split_url(store)
        place = f"{url}#{name or source.name}"
        target = _open_or_none(place)
        if target is None:
            target = Index.create_like(source, place)
        count = target.merge(source)
        target.close()
    return name or source.name, count


def _open_or_none(store: str) -> Index | None:
    """The index in a database; ``None`` if it does not exist yet."""
    split_url(store)
    try:
        return Index.open(store)
    except ValueError:
        return None


def is_near(index: Index) -> bool:
    """Whether the images of an index are next to it: an index from another source could name any folder of this machine.

    Examples:
        >>> import tempfile
        >>> folder = tempfile.mkdtemp()
        >>> (
        ...     is_near(Index.create(f"{folder}/a.index", dim=2, root=folder)),
        ...     is_near(Index.create(f"{folder}/b.index", dim=2, root="/etc")),
        ... )
        (True, False)
    """
    if index.root is None or index.folder is None:
        return False
    return index.root.resolve().is_relative_to(index.folder.resolve().parent)
