"""``likewise classify``: classify images by votes of their nearest labeled neighbors."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from likewise.app import TABLE_FORMATS, Classification, ImageOptions, check_outputs, classify, write_rows
from likewise.cli.arguments import Arguments
from likewise.cli.image_options import add_table_options, add_transform_option
from likewise.cli.screen import note, print_broken, suggest, table

LISTED = 40
"""Maximum number of printed predictions."""

COLUMNS = ["query", "label", "share", "nearest", "score", "truth"]


def run(words: Sequence[str]) -> int:
    """Classify images by the labels of their nearest neighbors.

    Examples:
        >>> run(["nowhere", "a.jpg"])
        Traceback (most recent call last):
        likewise.app.errors.UserError: there is no model nowhere: give a file that ends in .safetensors, ...
    """
    options = _parser().parse_intermixed_args(words)
    check_outputs(options.out, None)
    found = classify(
        options.source,
        options.images,
        examples=options.examples,
        k=options.k,
        weighted=options.weighted,
        temperature=options.temperature,
        transform=options.transform,
        options=ImageOptions(options.root, options.path_column, options.label_column),
        allow=options.allow,
    )
    print_broken(found.broken)
    rows = [
        {**asdict(each), "share": round(each.share, 4), "score": round(each.score, 4)} for each in found.predictions
    ]
    if options.json:
        for row in rows:
            print(json.dumps(row, ensure_ascii=False))
    else:
        _show(found)
    if options.out is not None:
        write_rows(options.out, rows, COLUMNS)
        print(f"{options.out}: {len(rows):,} images", file=sys.stderr if options.json else sys.stdout)
    else:
        suggest("classify", *words, "-o", "classes.csv")
    return 0


def _parser() -> Arguments:
    parser = Arguments(
        "classify",
        "Classify images: the k nearest labeled images vote. Nothing is trained; classes that the model has not seen "
        "need only examples.",
    )
    parser.add_argument(
        "source", metavar="SOURCE", help="an index with labels, a run (its training images vote), or a model"
    )
    parser.add_argument(
        "images", metavar="IMAGE", nargs="+", type=Path, help="pictures, or one folder or table of pictures"
    )
    parser.add_argument(
        "--examples", metavar="IMAGES", type=Path, help="labeled images that vote: a folder of folders, or a table"
    )
    parser.add_argument("-k", metavar="N", type=int, default=5, help="number of neighbors that vote (5)")
    parser.add_argument("--weighted", action="store_true", help="nearer neighbors count more: exp(similarity / T)")
    parser.add_argument("--temperature", metavar="T", type=float, default=0.07, help="T of --weighted (0.07)")
    parser.add_argument("-o", "--out", metavar="FILE", type=Path, help=f"write a table ({', '.join(TABLE_FORMATS)})")
    parser.add_argument("--json", action="store_true", help="print JSON, one line per image")
    parser.add_argument(
        "--allow",
        metavar="PACKAGE",
        action="append",
        default=[],
        help="import this package if the run's data set is a class of it",
    )
    add_transform_option(parser)
    add_table_options(parser)
    return parser


def _show(found: Classification) -> None:
    rows = [
        (each.query, each.label, f"{100 * each.share:.0f}%", each.nearest, f"{each.score:.4f}")
        for each in found.predictions[:LISTED]
    ]
    print(table([("image", "class", "votes", "nearest", "score"), *rows]))
    if len(found.predictions) > LISTED:
        note(f"{len(found.predictions) - LISTED:,} more images; -o classes.csv lists all")
    print(f"{found.examples:,} examples of {found.classes:,} classes")
    if found.accuracy is not None:
        known = sum(each.truth is not None for each in found.predictions)
        print(f"{100 * found.accuracy:.2f} percent of the {known:,} images with a known class are classified correctly")
