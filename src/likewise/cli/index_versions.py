"""``likewise index --versions | --restore N | --purge | --check | --to-parquet FILE``: what is done with an index that is there."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TypeAlias

from likewise.app import UserError, making
from likewise.cli.arguments import Arguments
from likewise.cli.screen import bold
from likewise.cli.slices import written
from likewise.search import Index, check_version, is_url, list_versions, purge_versions, restore_version, write_parquet

Action: TypeAlias = Callable[[argparse.Namespace], int]


def add_options(options: Arguments) -> None:
    """Add the options that choose an action.

    Examples:
        >>> options = Arguments("index", "")
        >>> add_options(options)
        >>> options.parse_args(["--restore", "3"]).restore
        3
    """
    options.add_argument("--versions", action="store_true", help="list the versions of an index")
    options.add_argument("--restore", metavar="N", type=int, help="make version N the newest one again")
    options.add_argument("--purge", action="store_true", help="remove all versions but the newest")
    options.add_argument("--check", action="store_true", help="compare all files with their checksums")
    options.add_argument(
        "--to-parquet", metavar="FILE", type=Path, help="write items and vectors to a Parquet file, for other databases"
    )


def chosen_action(given: argparse.Namespace) -> Action | None:
    """What is to be done with an index; ``None`` where one is made.

    Examples:
        >>> options = Arguments("index", "")
        >>> add_options(options)
        >>> chosen_action(options.parse_args(["--purge"])).__name__
        '_purge'
    """
    chosen: list[tuple[str, Action]] = [
        *([("--versions", _list)] if given.versions else []),
        *([("--restore", _restore)] if given.restore is not None else []),
        *([("--purge", _purge)] if given.purge else []),
        *([("--check", _check)] if given.check else []),
        *([("--to-parquet", _to_parquet)] if given.to_parquet is not None else []),
    ]
    if len(chosen) > 1:
        raise UserError(f"give one of {' and '.join(name for name, _ in chosen)}")
    return chosen[0][1] if chosen else None


def _place(given: argparse.Namespace) -> str:
    """The one index that was named, in front or after ``-o``."""
    places = [*given.what, *([given.out] if given.out is not None else [])]
    if len(places) != 1:
        listed = " ".join(map(str, places)) or "none"
        raise UserError(f"this needs one index, such as birds.index, but it was given {listed}")
    return str(places[0])


def _folder(given: argparse.Namespace) -> Path:
    place = _place(given)
    if is_url(place):
        raise UserError("an index in a database has no versions: its transactions keep it whole")
    return Path(place)


def _list(given: argparse.Namespace) -> int:
    folder = _folder(given)
    with making("the index"):
        versions = list_versions(folder)
    rows = [("version", "written", "items", "MB", "change")]
    for each in reversed(versions):
        when = datetime.fromtimestamp(each.card.changed).strftime("%Y-%m-%d %H:%M:%S")
        rows.append((str(each.number), when, f"{each.card.rows:,}", f"{each.bytes / 1e6:,.1f}", each.card.change))
    wide = [max(map(len, column)) for column in zip(*rows, strict=True)]
    print(bold(str(folder)))
    print("\n".join("  " + "  ".join(map(str.ljust, row, wide)).rstrip() for row in rows))
    print("versions share the files that did not change; --restore N makes one the newest again")
    return 0


def _restore(given: argparse.Namespace) -> int:
    folder = _folder(given)
    with making("--restore"):
        restore_version(folder, given.restore)
        index = Index.open(folder)
    print(f"{bold(str(folder))}: version {given.restore} is the newest again, {len(index):,} items")
    return 0


def _purge(given: argparse.Namespace) -> int:
    folder = _folder(given)
    with making("--purge"):
        count = purge_versions(folder)
    print(f"{bold(str(folder))}: {count} older version{'s' * (count != 1)} removed")
    return 0


def _check(given: argparse.Namespace) -> int:
    folder = _folder(given)
    with making("--check"):
        versions = list_versions(folder)
        damaged = [file for each in versions for file in check_version(each)]
    for file in damaged:
        print(f"{file} is not what was written")
    files = sum(len(each.card.files) for each in versions)
    print(f"{bold(str(folder))}: {files} files in {len(versions)} versions, {len(damaged)} damaged")
    return 1 if damaged else 0


def _to_parquet(given: argparse.Namespace) -> int:
    place = _place(given)
    with making("the index"):
        index = Index.open(place)
    with written(given.to_parquet), making("--to-parquet"):
        count = write_parquet(index, given.to_parquet)
    print(f"{bold(str(given.to_parquet))}: {count:,} items with vectors of {index.dim:,} numbers")
    return 0
