"""Results of a search as tables and contact sheets."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import Any

from likewise.app.errors import writing
from likewise.app.index_places import is_near
from likewise.app.searching import Answer, Cluster
from likewise.app.tables import TABLE_FORMATS, check_file
from likewise.data import BrokenImage
from likewise.files import atomic_write
from likewise.search import Index, Item, Shot, draw_contact_sheet, pixels, place_below

SHEET_FORMATS = {".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG", ".webp": "WEBP"}

SHEET_ROWS = 12
"""Maximum number of rows of a contact sheet."""

MEMBERS = 6
"""Maximum number of members of a group on a contact sheet."""

Row = dict[str, Any]


def check_outputs(table: Path | None, sheet: Path | None) -> None:
    """Refuse files that cannot be written, before a search begins.

    Args:
        table: the file of a table; ``None`` for none.
        sheet: the file of a contact sheet; ``None`` for none.

    Examples:
        >>> check_outputs(Path("found.txt"), None)
        Traceback (most recent call last):
        likewise.app.errors.UserError: --out must be a file that ends in .csv, .parquet, .jsonl, but it is found.txt
    """
    for option, file, formats in (("--out", table, TABLE_FORMATS), ("--sheet", sheet, SHEET_FORMATS)):
        if file is not None:
            check_file(option, file, formats)


def item_row(item: Item) -> Row:
    """The columns of an item.

    Examples:
        >>> item_row(Item(3, "wren/1.jpg", "wren", {"year": 2021}))
        {'id': 3, 'path': 'wren/1.jpg', 'label': 'wren', 'year': 2021}
    """
    return {"id": item.id, "path": item.path, "label": item.label, **item.metadata}


def answer_rows(answers: Sequence[Answer]) -> list[Row]:
    """One row for each match of each answer.

    Examples:
        >>> from likewise.app.searching import Match
        >>> answer_rows([Answer("a.jpg", (Match(Item(3, "b.jpg"), 0.9),))])
        [{'query': 'a.jpg', 'rank': 1, 'score': 0.9, 'id': 3, 'path': 'b.jpg', 'label': None}]
    """
    return [
        {"query": answer.query, "rank": rank, "score": round(match.score, 6), **item_row(match.item)}
        for answer in answers
        for rank, match in enumerate(answer.matches, 1)
    ]


def group_rows(groups: Sequence[Sequence[Item]]) -> list[Row]:
    """One row for each member of each group of near-duplicates.

    Examples:
        >>> group_rows([(Item(3, "a.jpg"), Item(5, "b.jpg"))])[1]
        {'group': 1, 'id': 5, 'path': 'b.jpg', 'label': None}
    """
    return [{"group": number, **item_row(item)} for number, group in enumerate(groups, 1) for item in group]


def cluster_rows(clusters: Sequence[Cluster]) -> list[Row]:
    """One row for each item of each cluster, in the order of their ids.

    Examples:
        >>> cluster_rows([Cluster((Item(5, "b.jpg"),), None)])
        [{'cluster': 1, 'id': 5, 'path': 'b.jpg', 'label': None}]
    """
    rows = [{"cluster": number, **item_row(item)} for number, each in enumerate(clusters, 1) for item in each.items]
    return sorted(rows, key=lambda row: int(row["id"]))


def answer_shots(index: Index, answers: Sequence[Answer], *, show_files: bool = False) -> list[list[Shot]]:
    """The rows of a contact sheet: a query and its matches in each.

    Args:
        index: the index that was searched.
        answers: the answers.
        show_files: for items without a thumbnail, also read image files from a folder that is not next
            to the index.

    Examples:
        >>> answer_shots(None, [Answer("a.jpg", ())])[0][0].title
        'query'
    """
    rows = []
    for answer in answers[:SHEET_ROWS]:
        lead = Shot(answer.thumbnail, "query", os.path.basename(answer.query), lead=True)
        rows.append([lead, *(_shot(index, match.item, match.score, show_files) for match in answer.matches)])
    return rows


def group_shots(index: Index, groups: Sequence[Sequence[Item]], *, show_files: bool = False) -> list[list[Shot]]:
    """The rows of a contact sheet: a group of near-duplicates in each; arguments as in `answer_shots`.

    Examples:
        >>> group_shots(None, [])
        []
    """
    rows = []
    for number, group in enumerate(groups[:SHEET_ROWS], 1):
        shown = group[: 2 * MEMBERS]
        vectors = index.vectors([item.id for item in shown])
        scores = vectors @ vectors[0]
        row = [_shot(index, item, float(score), show_files) for item, score in zip(shown, scores, strict=True)]
        row[0] = Shot(row[0].image, f"group {number}", group[0].path, lead=True)
        rows.append(row)
    return rows


def cluster_shots(index: Index, clusters: Sequence[Cluster], *, show_files: bool = False) -> list[list[Shot]]:
    """The rows of a contact sheet: the most central items of a cluster in each; arguments as in `answer_shots`.

    Examples:
        >>> cluster_shots(None, [])
        []
    """
    rows = []
    for number, cluster in enumerate(clusters[:SHEET_ROWS], 1):
        if cluster.items:
            row = [_shot(index, item, None, show_files) for item in cluster.items[:MEMBERS]]
            row[0] = Shot(row[0].image, f"cluster {number}", f"{len(cluster.items):,} images", lead=True)
            rows.append(row)
    return rows


def _shot(index: Index, item: Item, score: float | None, show_files: bool) -> Shot:
    title = "   ".join(each for each in ("" if score is None else f"{score:.3f}", item.label or "") if each)
    picture: Any = index.thumbnail(item.id)
    if picture is None and (show_files or is_near(index)):
        file = place_below(index.root, item.path)
        with suppress(BrokenImage):
            picture = None if file is None else pixels(file)
    return Shot(picture, title or os.path.basename(item.path), item.path if title else "")


def write_sheet(out: str | Path, index: Index, rows: Sequence[Sequence[Shot]], *, where: str | None = None) -> None:
    """Draw a contact sheet and write it to a picture.

    Args:
        out: the file, which ends in ``.png``, ``.jpg``, ``.jpeg`` or ``.webp``.
        index: the index that was searched.
        rows: such as those of `answer_shots`.
        where: the filter of the search, for the heading.

    Examples:
        >>> import tempfile
        >>> index = Index.create(tempfile.mkdtemp() + "/birds.index", dim=2)
        >>> write_sheet(tempfile.mkdtemp() + "/found.png", index, [[Shot(None, "query", lead=True)]])
    """
    out = Path(out)
    check_file("--sheet", out, SHEET_FORMATS)
    detail = f"{len(index):,} images" + (f", where {where}" if where else "")
    file = BytesIO()
    draw_contact_sheet(rows, heading=index.name, detail=detail).save(file, SHEET_FORMATS[out.suffix.lower()])
    with writing(out), atomic_write(out) as part:
        part.write_bytes(file.getvalue())
