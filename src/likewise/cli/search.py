"""``likewise search``: the look-alikes of a picture, of many, and of a whole collection among itself."""

from __future__ import annotations

import argparse
import csv
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from likewise.app import UserError, making
from likewise.cli.arguments import Arguments
from likewise.cli.pictures import TABLES, find_pictures
from likewise.cli.screen import bold, note
from likewise.cli.slices import written
from likewise.data import BrokenImage, atomic_write, decode
from likewise.search import (
    Found,
    Index,
    Item,
    KReciprocal,
    QueryExpansion,
    Rerank,
    Shot,
    draw_contact_sheet,
    pixels,
    thumbnail,
)

OUTPUTS = (".csv", ".parquet", ".jsonl")
SHEETS = {".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG", ".webp": "WEBP"}
BATCH = 256
"""Queries that are embedded and searched at once."""

LISTED, SHEETED = 20, 12
"""Groups that are shown on the screen, and rows of a contact sheet."""

EACH = 6
"""Members of a group that are shown."""

RERANKS: Mapping[str, Callable[[], Rerank]] = {"expansion": QueryExpansion, "k-reciprocal": KReciprocal}
"""Ways to order candidates anew, by name."""

Row = dict[str, Any]


def run(words: Sequence[str]) -> int:
    """Search an index.

    Examples:
        >>> run(["nowhere.index", "photo.jpg"])
        Traceback (most recent call last):
        likewise.app.errors.UserError: the index: there is no index nowhere.index
    """
    given = _options().parse_intermixed_args(words)
    with making("the index"):
        index = Index.open(given.index)
    if given.out is not None and given.out.suffix not in OUTPUTS:
        raise UserError(f"-o must be a file that ends in {', '.join(OUTPUTS)}, but it is {given.out}")
    if given.sheet is not None and given.sheet.suffix.lower() not in SHEETS:
        raise UserError(f"--sheet must be a file that ends in {', '.join(SHEETS)}, but it is {given.sheet}")
    for option, file in (("-o", given.out), ("--sheet", given.sheet)):
        if file is not None and not file.parent.is_dir():
            raise UserError(f"{option} must be a file in a folder that is there, but there is no folder {file.parent}")
    asked = [given.duplicates is not None, given.clusters is not None, bool(given.queries), given.item is not None]
    if sum(asked) != 1:
        raise UserError("give one of these: QUERY pictures, --item ID, --duplicates SIMILARITY or --clusters N")
    if given.duplicates is not None:
        return _duplicates(index, given)
    if given.clusters is not None:
        return _clusters(index, given)
    return _search(index, given)


def _options() -> Arguments:
    options = Arguments("search", "Find look-alikes in an index: of pictures, or among the collection itself.")
    options.add_argument("index", metavar="INDEX", help="what likewise index made: a folder, or postgresql://…#name")
    options.add_argument(
        "queries",
        metavar="QUERY",
        nargs="*",
        type=Path,
        help="pictures, or one folder or table (.csv, .tsv, .parquet) of pictures",
    )
    options.add_argument("-k", metavar="N", type=int, default=10, help="how many for each (10)")
    options.add_argument("--item", metavar="ID", type=int, help="look-alikes of an item of the index")
    options.add_argument("--where", metavar="FILTER", help="""such as 'label == "wren" and year >= 2019'""")
    options.add_argument(
        "--rerank",
        choices=sorted(RERANKS),
        help="order the best anew: expansion searches again with a query that is moved towards what it found, k-reciprocal "
        "asks who shares the query's neighbors",
    )
    options.add_argument("--exact", action="store_true", help="compare with every item, whatever the index has")
    options.add_argument(
        "--duplicates", metavar="SIMILARITY", type=float, help="groups that are so alike, such as 0.95"
    )
    options.add_argument("--clusters", metavar="N", type=int, help="sort the collection into N clusters")
    options.add_argument("--sheet", metavar="FILE", type=Path, help="a contact sheet (.png, .jpg, .webp)")
    options.add_argument("-o", "--out", metavar="FILE", type=Path, help=f"a table of results ({', '.join(OUTPUTS)})")
    options.add_argument("--json", action="store_true", help="print JSON, one line for each query or group")
    options.add_argument("--root", metavar="FOLDER", type=Path, help="where a table of queries' paths begin")
    options.add_argument("--path-column", metavar="NAME", default="path", help="a table's column of paths (path)")
    return options


# ------------------------------------------------------------------------------------------------ look-alikes


@dataclass(frozen=True)
class _Answer:
    """A query, and what was found for it."""

    query: str
    picture: bytes | None
    found: list[tuple[Item, float]]


def _search(index: Index, given: argparse.Namespace) -> int:
    if given.k < 1:
        raise UserError(f"-k must be a whole number ≥ 1, but it is {given.k}")
    given.k = min(given.k, max(1, len(index)))  # nobody can find more
    paths, many = _queries(given)
    if many and given.out is None and not given.json and given.sheet is None:
        raise UserError("many queries need a place for what is found: -o found.csv, --json or --sheet found.png")
    answers: list[_Answer] = []
    if given.item is not None:
        with making("--item"):
            found = _refusing(
                lambda: index.neighbors(
                    given.item, given.k, where=given.where, exact=given.exact or None, rerank=_rerank(given)
                )
            )
        item = index.item(given.item)
        answers.append(_answer(index, item.path, index.thumbnail(item.id), found, 0))
    broken = 0
    for start in range(0, len(paths), BATCH):
        some, failed = _searched(index, paths[start : start + BATCH], given, one=len(paths) == 1)
        answers += some
        broken += failed
    if not answers:
        print("no picture can be read: there is nothing to search for", file=sys.stderr)
        return 1
    _print_answers(answers, given, many)
    if given.out is not None:
        rows = [row for answer in answers for row in _rows(answer)]
        _write_table(given.out, rows, ["query", "rank", "score", "id", "path", "label", *index.fields])
        print(
            f"{given.out}: {len(rows):,} results of {len(answers):,} queries",
            file=sys.stderr if given.json else sys.stdout,
        )
    if given.sheet is not None:
        _sheet(index, given, [_shots(index, answer) for answer in answers[:SHEETED]], len(answers))
    return 0


def _rerank(given: argparse.Namespace) -> Rerank | None:
    return None if given.rerank is None else RERANKS[given.rerank]()


def _queries(given: argparse.Namespace) -> tuple[list[Path], bool]:
    """The files that are asked about, and whether they came as a folder or table."""
    places: list[Path] = given.queries
    if len(places) == 1 and (places[0].is_dir() or places[0].suffix.lower() in TABLES):
        pictures = find_pictures(places[0], root=given.root, columns=(given.path_column, "label"))
        return [pictures.root / path for path in pictures.paths], True
    several = [each for each in places if each.is_dir() or each.suffix.lower() in TABLES]
    if several:
        raise UserError(f"{several[0]} must stand alone: give pictures, or one folder or table of them")
    return places, False


def _searched(index: Index, paths: Sequence[Path], given: argparse.Namespace, one: bool) -> tuple[list[_Answer], int]:
    names, images, small = [], [], []
    for path in paths:
        try:
            image = decode(path)
        except BrokenImage as broken:
            if one:
                raise UserError(str(broken)) from None
            print(f"left out: {path}: {broken.reason}", file=sys.stderr)
            continue
        names.append(os.fsencode(path).decode("utf-8", "replace"))  # a name may be no UTF-8, and no screen shows that
        images.append(image)
        small.append(thumbnail(image))
    if not images:
        return [], len(paths)
    with making("the search"):
        found = index.search(images, given.k, where=given.where, exact=given.exact or None, rerank=_rerank(given))
    answers = [
        _answer(index, name, picture, found, row) for row, (name, picture) in enumerate(zip(names, small, strict=True))
    ]
    return answers, len(paths) - len(images)


def _answer(index: Index, name: str, picture: bytes | None, found: Found, row: int) -> _Answer:
    pairs = found.of(row)
    items = index.items([number for number, _ in pairs]) if pairs else []
    return _Answer(name, picture, [(item, score) for item, (_, score) in zip(items, pairs, strict=True)])


def _refusing(call: Any) -> Any:
    """A key that is not there is a user's mistake, too."""
    try:
        return call()
    except KeyError as missing:
        raise UserError(str(missing.args[0])) from None


def _rows(answer: _Answer) -> list[Row]:
    return [
        {"query": answer.query, "rank": rank, "score": round(score, 6), **_cells(item)}
        for rank, (item, score) in enumerate(answer.found, 1)
    ]


def _cells(item: Item) -> Row:
    return {"id": item.id, "path": item.path, "label": item.label, **item.metadata}


def _print_answers(answers: Sequence[_Answer], given: argparse.Namespace, many: bool) -> None:
    if given.json:
        for answer in answers:
            found = [{key: value for key, value in row.items() if key != "query"} for row in _rows(answer)]
            print(json.dumps({"query": answer.query, "found": found}, ensure_ascii=False))
        return
    if many:
        return
    for number, answer in enumerate(answers):
        if len(answers) > 1:
            print(("\n" if number else "") + bold(answer.query))
        if not answer.found:
            note(f"nothing passes the filter {given.where}" if given.where else "the index is empty")
            continue
        labels = any(item.label is not None for item, _ in answer.found)
        rows = [("", "score", "path", "label")[: 3 + labels]]
        for rank, (item, score) in enumerate(answer.found, 1):
            rows.append((str(rank), f"{score:.4f}", item.path, item.label or "–")[: 3 + labels])
        print(_table(rows))


def _table(rows: Sequence[Sequence[str]]) -> str:
    """Rows in columns; a path stays in one piece, so that it can be copied."""
    wide = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  " + "  ".join(map(str.ljust, row, wide)).rstrip() for row in rows)


# ------------------------------------------------------------------------------------------------ groups


def _duplicates(index: Index, given: argparse.Namespace) -> int:
    with making("--duplicates"):
        groups = index.duplicates(given.duplicates, where=given.where)
    known = {item.id: item for item in index.items([each for group in groups for each in group])} if groups else {}
    members = sum(map(len, groups))
    if given.json:
        for number, group in enumerate(groups, 1):
            print(json.dumps({"group": number, "items": [_cells(known[each]) for each in group]}, ensure_ascii=False))
    else:
        what = f"{len(groups):,} group{'s' * (len(groups) != 1)} of near-duplicates, {members:,} images in all"
        print(f"{what}; {members - len(groups):,} could go" if groups else "no two images are so alike")
        for number, group in enumerate(groups[:LISTED], 1):
            names = [known[each].path for each in group[:EACH]]
            more = [f"and {len(group) - EACH:,} more"] if len(group) > EACH else []
            print(
                _table([(f"{number:3d}" if not place else "   ", name) for place, name in enumerate([*names, *more])])
            )
        if len(groups) > LISTED:
            note(f"{len(groups) - LISTED:,} more groups; -o duplicates.csv lists all")
    if given.out is not None:
        rows = [{"group": number, **_cells(known[each])} for number, group in enumerate(groups, 1) for each in group]
        _write_table(given.out, rows, ["group", "id", "path", "label", *index.fields])
        print(
            f"{given.out}: {members:,} images in {len(groups):,} groups", file=sys.stderr if given.json else sys.stdout
        )
    if given.sheet is not None and groups:
        shots = []
        for number, group in enumerate(groups[:SHEETED], 1):
            lead = index.vectors(group[:1])[0]
            scores = index.vectors(group[: 2 * EACH]) @ lead
            shots.append(
                [_shot(index, known[each], float(score)) for each, score in zip(group[: 2 * EACH], scores, strict=True)]
            )
            shots[-1][0] = Shot(shots[-1][0].image, f"group {number}", known[group[0]].path, lead=True)
        _sheet(index, given, shots, len(groups))
    return 0


def _clusters(index: Index, given: argparse.Namespace) -> int:
    if given.where is not None:
        raise UserError("--clusters sorts the whole collection: leave --where out")
    with making("--clusters"):
        owner = index.clusters(given.clusters)
    ids, vectors = index.ids, index.vectors()
    groups = [np.flatnonzero(owner == number) for number in range(given.clusters)]
    labels = np.array([label or "" for label in index.column("label")])
    central = [_central(vectors, rows) for rows in groups]
    if given.json:
        for number, rows in enumerate(groups, 1):
            best = [item.path for item in index.items(ids[central[number - 1][:EACH]])]
            print(
                json.dumps(
                    {"cluster": number, "size": len(rows), "label": _commonest(labels[rows]), "central": best},
                    ensure_ascii=False,
                )
            )
    else:
        table = [("cluster", "images", "most common label", "most central")]
        for number, rows in enumerate(groups, 1):
            first = index.item(ids[central[number - 1][0]]).path if len(rows) else "–"
            table.append((str(number), f"{len(rows):,}", _commonest(labels[rows]) or "–", first))
        print(_table(table))
    if given.out is not None:
        rows_out = [{"cluster": int(owner[place]) + 1, **_cells(item)} for place, item in enumerate(index.items(ids))]
        _write_table(given.out, rows_out, ["id", "path", "cluster", "label", *index.fields])
        print(
            f"{given.out}: {len(rows_out):,} images in {given.clusters} clusters",
            file=sys.stderr if given.json else sys.stdout,
        )
    if given.sheet is not None:
        shots = []
        for number, rows in enumerate(groups[:SHEETED], 1):
            if len(rows):
                items = index.items(ids[central[number - 1][:EACH]])
                shots.append([_shot(index, item, None) for item in items])
                shots[-1][0] = Shot(shots[-1][0].image, f"cluster {number}", f"{len(rows):,} images", lead=True)
        _sheet(index, given, shots, given.clusters)
    return 0


def _central(vectors: Any, rows: Any) -> Any:
    """Rows of a cluster, those nearest to its middle first."""
    if not len(rows):
        return rows
    middle = vectors[rows].mean(axis=0)
    return rows[np.argsort(-(vectors[rows] @ middle), kind="stable")]


def _commonest(labels: Any) -> str:
    named = labels[labels != ""]
    if not len(named):
        return ""
    names, counts = np.unique(named, return_counts=True)
    return str(names[counts.argmax()])


# ------------------------------------------------------------------------------------------------ sheets and tables


def _shots(index: Index, answer: _Answer) -> list[Shot]:
    lead = Shot(answer.picture, "query", os.path.basename(answer.query), lead=True)
    return [lead, *(_shot(index, item, score) for item, score in answer.found)]


def _shot(index: Index, item: Item, score: float | None) -> Shot:
    title = "   ".join(each for each in ("" if score is None else f"{score:.3f}", item.label or "") if each)
    picture: bytes | Image.Image | None = index.thumbnail(item.id)
    if picture is None:
        try:
            picture = pixels(Path(item.path) if index.root is None else index.root / item.path)
        except BrokenImage:
            picture = None
    return Shot(picture, title or os.path.basename(item.path), item.path if title else "")


def _sheet(index: Index, given: argparse.Namespace, rows: Sequence[Sequence[Shot]], count: int) -> None:
    detail = f"{len(index):,} images" + (f", where {given.where}" if given.where else "")
    sheet = draw_contact_sheet(rows, heading=index.name, detail=detail)
    file = BytesIO()
    sheet.save(file, SHEETS[given.sheet.suffix.lower()])
    with written(given.sheet), atomic_write(given.sheet) as part:
        part.write_bytes(file.getvalue())
    said = sys.stderr if given.json else sys.stdout
    print(
        f"{given.sheet}: {'the first ' + str(len(rows)) + ' of ' if count > len(rows) else ''}{count:,} row{'s' * (count != 1)}",
        file=said,
    )


def _write_table(out: Path, rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> None:
    """Results as a table, written aside."""
    with written(out), atomic_write(out) as part:
        if out.suffix == ".jsonl":
            lines = (json.dumps({name: row.get(name) for name in names}, ensure_ascii=False) for row in rows)
            part.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
        elif out.suffix == ".csv":
            with part.open("w", newline="", encoding="utf-8") as file:
                writer = csv.writer(file)
                writer.writerow(names)
                writer.writerows([["" if row.get(name) is None else row[name] for name in names] for row in rows])
        else:
            import pyarrow
            from pyarrow import parquet

            parquet.write_table(pyarrow.table({name: [row.get(name) for row in rows] for name in names}), part)
