"""Output of ``likewise index`` and ``likewise serve`` about an index."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from likewise.app import IndexResult
from likewise.cli.screen import bold, columns, note, print_broken
from likewise.search import Index


def print_update(result: IndexResult, out: Path, *, is_served: bool = False) -> None:
    """Print what was added, replaced and removed.

    Args:
        result: what was done.
        out: the index.
        is_served: whether the index is served next, in which case no command is suggested.

    Examples:
        >>> import tempfile
        >>> print_update(IndexResult(Index.create(tempfile.mkdtemp() + "/a.index", dim=2), 1, 2), Path("a.index"))
        a.index: 1 image added, 2 replaced, 0 removed
        ...
    """
    counts = f"{image_count(result.added)} added, {result.replaced:,} replaced, {result.removed:,} removed"
    print_result(result, out, counts, is_served=is_served)


def print_result(result: IndexResult, out: Path, change: str, *, is_served: bool = False) -> None:
    """Print what was done, what the index holds, and what to do next.

    Args:
        result: what was done.
        out: the index.
        change: a description of the change.
        is_served: whether the index is served next, in which case no command is suggested.

    Examples:
        >>> import tempfile
        >>> print_result(IndexResult(Index.create(tempfile.mkdtemp() + "/a.index", dim=2)), Path("a.index"), "merged")
        a.index: merged
        ...
    """
    print_broken(result.broken, f"{out / 'broken.csv'} lists")
    print(f"{bold(str(out))}: {change}")
    print(columns(summarize(result.index)))
    if is_served:
        return
    query = "photo.jpg" if result.example is None else os.path.relpath(result.example)
    print(f"next: likewise search {shlex.quote(str(out))} {shlex.quote(query)} --sheet found.png")
    print(f"      likewise serve {shlex.quote(str(out))}")


def image_count(count: int) -> str:
    """A number of images as text.

    Examples:
        >>> image_count(1), image_count(2000)
        ('1 image', '2,000 images')
    """
    return f"{count:,} image{'s' * (count != 1)}"


def summarize(index: Index) -> list[tuple[str, str]]:
    """Describe the content and the measured recall of an index.

    Examples:
        >>> import tempfile
        >>> summarize(Index.create(tempfile.mkdtemp() + "/a.index", dim=2))[0]
        ('images', '0, vectors of 2 numbers')
    """
    size = sum(each.bytes for each in index.card.files.values())
    rows = [("images", f"{len(index):,}, vectors of {index.dim:,} numbers")]
    if index.fields:
        rows.append(("metadata", ", ".join(index.fields)))
    storage = f"{index.storage}, {size / 1e6:,.1f} MB in all"
    loss, near = index.loss, index.near
    if loss is not None:
        storage += (
            f"; finds {loss.recall:.1%} of the ten nearest neighbors found with float32, measured with {loss.queries}"
        )
    rows.append(("storage", storage))
    if near is None:
        rows.append(("search", "exact: every image is compared"))
    else:
        name = {"hnsw": "HNSW", "ivfpq": "IVF-PQ"}[near.kind]
        recall = near.recall or 0.0
        measured = (
            f"finds {recall:.1%} of the ten nearest neighbors, {near.faster or 0.0:.0f} times as fast as exact search"
        )
        rows.append(("search", f"{name}: {measured}, measured with {near.queries} queries"))
        if recall < 0.95:
            note(f"{name} misses {1 - recall:.0%} of the nearest neighbors here; search with --exact to find them all")
    return rows
