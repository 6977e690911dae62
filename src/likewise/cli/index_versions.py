"""``likewise index --versions | --restore N | --purge | --check | --to-parquet FILE``: actions on an existing index."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TypeAlias

from likewise.app import UserError, making, open_index, writing
from likewise.cli.arguments import Arguments
from likewise.cli.screen import bold, table
from likewise.search import check_index, is_url, list_versions, purge_versions, restore_version, write_parquet

Action: TypeAlias = Callable[[argparse.Namespace], int]


def add_options(parser: Arguments) -> None:
    """Add the options that choose an action.

    Examples:
        >>> parser = Arguments("index", "")
        >>> add_options(parser)
        >>> parser.parse_args(["--restore", "3"]).restore
        3
    """
    parser.add_argument("--versions", action="store_true", help="list the versions of an index")
    parser.add_argument("--restore", metavar="N", type=int, help="make version N the newest one again")
    parser.add_argument("--purge", action="store_true", help="remove all versions but the newest")
    parser.add_argument("--check", action="store_true", help="compare all files with their checksums")
    parser.add_argument(
        "--to-parquet", metavar="FILE", type=Path, help="write items and vectors to a Parquet file, for other databases"
    )


def choose_action(options: argparse.Namespace) -> Action | None:
    """The selected action; ``None`` to build an index.

    Examples:
        >>> parser = Arguments("index", "")
        >>> add_options(parser)
        >>> choose_action(parser.parse_args(["--purge"])).__name__
        '_purge'
    """
    actions: list[tuple[str, Action]] = [
        *([("--versions", _list)] if options.versions else []),
        *([("--restore", _restore)] if options.restore is not None else []),
        *([("--purge", _purge)] if options.purge else []),
        *([("--check", _check)] if options.check else []),
        *([("--to-parquet", _to_parquet)] if options.to_parquet is not None else []),
    ]
    if len(actions) > 1:
        raise UserError(f"give one of {' and '.join(name for name, _ in actions)}")
    return actions[0][1] if actions else None


def _place(options: argparse.Namespace) -> str:
    """The index, given first or after ``-o``."""
    places = [*options.what, *([options.out] if options.out is not None else [])]
    if len(places) != 1:
        listed = " ".join(map(str, places)) or "none"
        raise UserError(f"this action needs exactly one index, such as birds.index, but it was given {listed}")
    return str(places[0])


def _folder(options: argparse.Namespace) -> Path:
    place = _place(options)
    if is_url(place):
        raise UserError("an index in a database has no versions: its transactions keep it consistent")
    return Path(place)


def _list(options: argparse.Namespace) -> int:
    folder = _folder(options)
    with making("the index"):
        versions = list_versions(folder)
    rows = [("version", "written", "items", "MB", "change")]
    for each in reversed(versions):
        when = datetime.fromtimestamp(each.card.changed).strftime("%Y-%m-%d %H:%M:%S")
        rows.append((str(each.number), when, f"{each.card.rows:,}", f"{each.bytes / 1e6:,.1f}", each.card.change))
    print(bold(str(folder)))
    print(table(rows))
    print("versions share the files that did not change; --restore N makes one the newest again")
    return 0


def _restore(options: argparse.Namespace) -> int:
    folder = _folder(options)
    with making("--restore"):
        restore_version(folder, options.restore)
    index = open_index(folder)
    print(f"{bold(str(folder))}: version {options.restore} is the newest again, {len(index):,} items")
    return 0


def _purge(options: argparse.Namespace) -> int:
    folder = _folder(options)
    with making("--purge"):
        count = purge_versions(folder)
    print(f"{bold(str(folder))}: {count} older version{'s' * (count != 1)} removed")
    return 0


def _check(options: argparse.Namespace) -> int:
    folder = _folder(options)
    with making("--check"):
        checks = check_index(folder)
    damaged = [file for _, files in checks for file in files]
    for file in damaged:
        print(f"{file} is damaged: it differs from its checksum")
    files = sum(len(version.card.files) for version, _ in checks)
    print(f"{bold(str(folder))}: {files} files in {len(checks)} versions, {len(damaged)} damaged")
    return 1 if damaged else 0


def _to_parquet(options: argparse.Namespace) -> int:
    place = _place(options)
    index = open_index(place)
    with writing(options.to_parquet), making("--to-parquet"):
        count = write_parquet(index, options.to_parquet)
    print(f"{bold(str(options.to_parquet))}: {count:,} items with vectors of {index.dim:,} numbers")
    return 0
