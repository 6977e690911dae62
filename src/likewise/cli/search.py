"""``likewise search``: find images like given pictures or texts, near-duplicates and clusters of a collection."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from likewise.app import (
    MEMBERS,
    RERANKS,
    TABLE_FORMATS,
    Answer,
    UserError,
    answer_rows,
    answer_shots,
    check_outputs,
    cluster_rows,
    cluster_shots,
    find_clusters,
    find_duplicates,
    group_rows,
    group_shots,
    is_image_source,
    item_row,
    open_index,
    search,
    write_rows,
    write_sheet,
)
from likewise.cli.arguments import Arguments
from likewise.cli.screen import bold, note, print_broken, suggest, table
from likewise.sanitize import hide_passwords
from likewise.search import Index, Shot

LISTED = 20
"""Maximum number of printed groups."""


def run(words: Sequence[str]) -> int:
    """Search an index.

    Examples:
        >>> run(["nowhere.index", "photo.jpg"])
        Traceback (most recent call last):
        likewise.app.errors.UserError: the index: there is no index nowhere.index
    """
    options = _parser().parse_intermixed_args(words)
    index = open_index(options.index)
    check_outputs(options.out, options.sheet)
    modes = [options.duplicates is not None, options.clusters is not None, bool(options.queries), bool(options.text)]
    if sum([*modes, options.item is not None]) != 1:
        raise UserError(
            "give one of these: QUERY pictures, --text TEXT, --item ID, --duplicates SIMILARITY or --clusters N"
        )
    does = _duplicates if options.duplicates is not None else _clusters if options.clusters is not None else _search
    code = does(index, options)
    if code == 0:
        suggest("serve", hide_passwords(options.index))
    return code


def _parser() -> Arguments:
    parser = Arguments("search", "Search an index with pictures or texts, or find near-duplicates and clusters in it.")
    parser.add_argument("index", metavar="INDEX", help="an index: a folder, or postgresql://…#name")
    parser.add_argument(
        "queries",
        metavar="QUERY",
        nargs="*",
        type=Path,
        help="pictures, or one folder or table (.csv, .tsv, .parquet) of pictures",
    )
    parser.add_argument(
        "--text",
        metavar="TEXT",
        action="append",
        default=[],
        help="find images that match a text, if the model has a text encoder; repeatable",
    )
    parser.add_argument("-k", metavar="N", type=int, default=10, help="results per query (10)")
    parser.add_argument("--item", metavar="ID", type=int, help="search with an item of the index")
    parser.add_argument(
        "--where", metavar="FILTER", help="""only matching items, such as 'label == "wren" and year >= 2019'"""
    )
    parser.add_argument(
        "--rerank",
        choices=sorted(RERANKS),
        help="rerank the best results: expansion searches again with a query moved toward its matches, k-reciprocal "
        "prefers items that share the query's neighbors",
    )
    parser.add_argument(
        "--exact", action="store_true", help="compare with every item, even if the index has an approximate search"
    )
    parser.add_argument(
        "--duplicates", metavar="SIMILARITY", type=float, help="find groups with at least this similarity, such as 0.95"
    )
    parser.add_argument("--clusters", metavar="N", type=int, help="cluster the collection into N clusters")
    parser.add_argument("--sheet", metavar="FILE", type=Path, help="write a contact sheet (.png, .jpg, .webp)")
    parser.add_argument(
        "--show-files",
        action="store_true",
        help="on the sheet, also show image files from a folder that is not next to the index; make sure that you "
        "trust the index",
    )
    parser.add_argument(
        "-o", "--out", metavar="FILE", type=Path, help=f"write a table of results ({', '.join(TABLE_FORMATS)})"
    )
    parser.add_argument(
        "--raw",
        action="store_true",
        help="write texts to CSV unchanged, even if a spreadsheet would read them as formulas",
    )
    parser.add_argument("--json", action="store_true", help="print JSON, one line per query or group")
    parser.add_argument(
        "--root", metavar="FOLDER", type=Path, help="the folder that paths of a query table are relative to"
    )
    parser.add_argument("--path-column", metavar="NAME", default="path", help="the table's path column (path)")
    return parser


def _search(index: Index, options: argparse.Namespace) -> int:
    many = len(options.queries) == 1 and is_image_source(options.queries[0])
    if many and options.out is None and not options.json and options.sheet is None:
        raise UserError(
            "results of many queries must be written to a file or as JSON: give -o found.csv, --json or --sheet found.png"
        )
    result = search(
        index,
        options.queries,
        texts=options.text,
        item=options.item,
        k=options.k,
        where=options.where,
        exact=options.exact,
        rerank=options.rerank,
        root=options.root,
        path_column=options.path_column,
    )
    print_broken(result.broken)
    if not result.answers:
        print("no picture could be read: there is nothing to search for", file=sys.stderr)
        return 1
    if options.json:
        for answer in result.answers:
            matches = [{name: cell for name, cell in row.items() if name != "query"} for row in answer_rows([answer])]
            _print_json({"query": answer.query, "found": matches})
    elif not many:
        _print_answers(result.answers, options.where)
    rows = answer_rows(result.answers)
    columns = ["query", "rank", "score", "id", "path", "label", *index.fields]
    _write_table(options, rows, columns, f"{len(rows):,} results of {len(result.answers):,} queries")
    _write_sheet(
        index,
        options,
        answer_shots(index, result.answers, show_files=options.show_files) if options.sheet else [],
        len(result.answers),
    )
    return 0


def _print_answers(answers: Sequence[Answer], where: str | None) -> None:
    for number, answer in enumerate(answers):
        if len(answers) > 1:
            print(("\n" if number else "") + bold(answer.query))
        if not answer.matches:
            note(f"no item matches the filter {where}" if where else "the index is empty")
            continue
        labels = any(match.item.label is not None for match in answer.matches)
        rows = [("", "score", "path", "label")[: 3 + labels]]
        for rank, match in enumerate(answer.matches, 1):
            rows.append((str(rank), f"{match.score:.4f}", match.item.path, match.item.label or "–")[: 3 + labels])
        print(table(rows))


def _duplicates(index: Index, options: argparse.Namespace) -> int:
    groups = find_duplicates(index, options.duplicates, where=options.where)
    members = sum(map(len, groups))
    if options.json:
        for number, group in enumerate(groups, 1):
            _print_json({"group": number, "items": [item_row(item) for item in group]})
    else:
        what = f"{len(groups):,} group{'s' * (len(groups) != 1)} of near-duplicates, {members:,} images in all"
        print(f"{what}; {members - len(groups):,} are redundant" if groups else "no two images are that similar")
        for number, group in enumerate(groups[:LISTED], 1):
            names = [item.path for item in group[:MEMBERS]]
            more = [f"and {len(group) - MEMBERS:,} more"] if len(group) > MEMBERS else []
            print(table([("   " if place else f"{number:3d}", name) for place, name in enumerate([*names, *more])]))
        if len(groups) > LISTED:
            note(f"{len(groups) - LISTED:,} more groups; -o duplicates.csv lists all")
    columns = ["group", "id", "path", "label", *index.fields]
    _write_table(options, group_rows(groups), columns, f"{members:,} images in {len(groups):,} groups")
    if groups:
        _write_sheet(
            index,
            options,
            group_shots(index, groups, show_files=options.show_files) if options.sheet else [],
            len(groups),
        )
    return 0


def _clusters(index: Index, options: argparse.Namespace) -> int:
    if options.where is not None:
        raise UserError("--clusters clusters the whole collection: remove --where")
    clusters = find_clusters(index, options.clusters)
    if options.json:
        for number, cluster in enumerate(clusters, 1):
            central = [item.path for item in cluster.items[:MEMBERS]]
            size, label = len(cluster.items), cluster.label or ""
            _print_json({"cluster": number, "size": size, "label": label, "central": central})
    else:
        lines = [("cluster", "images", "most common label", "most central")]
        for number, cluster in enumerate(clusters, 1):
            first = cluster.items[0].path if cluster.items else "–"
            lines.append((str(number), f"{len(cluster.items):,}", cluster.label or "–", first))
        print(table(lines))
    rows = cluster_rows(clusters)
    columns = ["id", "path", "cluster", "label", *index.fields]
    _write_table(options, rows, columns, f"{len(rows):,} images in {len(clusters)} clusters")
    _write_sheet(
        index,
        options,
        cluster_shots(index, clusters, show_files=options.show_files) if options.sheet else [],
        len(clusters),
    )
    return 0


def _print_json(content: dict[str, object]) -> None:
    print(json.dumps(content, ensure_ascii=False))


def _write_table(
    options: argparse.Namespace, rows: Sequence[dict[str, object]], columns: Sequence[str], what: str
) -> None:
    if options.out is not None:
        write_rows(options.out, rows, columns, raw=options.raw)
        print(f"{options.out}: {what}", file=sys.stderr if options.json else sys.stdout)


def _write_sheet(index: Index, options: argparse.Namespace, rows: Sequence[Sequence[Shot]], count: int) -> None:
    if options.sheet is None:
        return
    write_sheet(options.sheet, index, rows, where=options.where)
    first = f"the first {len(rows)} of " if count > len(rows) else ""
    screen = sys.stderr if options.json else sys.stdout
    print(f"{options.sheet}: {first}{count:,} row{'s' * (count != 1)}", file=screen)
