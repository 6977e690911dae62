"""``likewise search``: the look-alikes of pictures, what texts describe, near-duplicates and clusters of a collection."""

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
"""Groups that are printed."""


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
    parser = Arguments("search", "Find look-alikes in an index: of pictures, or among the collection itself.")
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
        help="what a text describes, where the model has a text side; may be given several times",
    )
    parser.add_argument("-k", metavar="N", type=int, default=10, help="how many for each (10)")
    parser.add_argument("--item", metavar="ID", type=int, help="look-alikes of an item of the index")
    parser.add_argument("--where", metavar="FILTER", help="""such as 'label == "wren" and year >= 2019'""")
    parser.add_argument(
        "--rerank",
        choices=sorted(RERANKS),
        help="order the best again: expansion searches with a query that is moved towards its matches, k-reciprocal "
        "prefers items that share the query's neighbors",
    )
    parser.add_argument("--exact", action="store_true", help="compare with every item, whatever the index has")
    parser.add_argument("--duplicates", metavar="SIMILARITY", type=float, help="groups that are so alike, such as 0.95")
    parser.add_argument("--clusters", metavar="N", type=int, help="sort the collection into N clusters")
    parser.add_argument("--sheet", metavar="FILE", type=Path, help="a contact sheet (.png, .jpg, .webp)")
    parser.add_argument(
        "--show-files",
        action="store_true",
        help="on the sheet, show files of items without thumbnails also where the index names a folder that is not next "
        "to it; check that it is yours",
    )
    parser.add_argument(
        "-o", "--out", metavar="FILE", type=Path, help=f"a table of results ({', '.join(TABLE_FORMATS)})"
    )
    parser.add_argument("--raw", action="store_true", help="write texts to CSV as they are, also those like formulas")
    parser.add_argument("--json", action="store_true", help="print JSON, one line for each query or group")
    parser.add_argument("--root", metavar="FOLDER", type=Path, help="where a table of queries' paths begin")
    parser.add_argument("--path-column", metavar="NAME", default="path", help="a table's column of paths (path)")
    return parser


def _search(index: Index, options: argparse.Namespace) -> int:
    many = len(options.queries) == 1 and is_image_source(options.queries[0])
    if many and options.out is None and not options.json and options.sheet is None:
        raise UserError("many queries need a place for what is found: -o found.csv, --json or --sheet found.png")
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
        print("no picture can be read: there is nothing to search for", file=sys.stderr)
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
            note(f"nothing passes the filter {where}" if where else "the index is empty")
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
        print(f"{what}; {members - len(groups):,} could go" if groups else "no two images are so alike")
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
        raise UserError("--clusters sorts the whole collection: leave --where out")
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
