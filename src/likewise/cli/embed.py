"""``likewise embed``: embed images; resumes where it was interrupted."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from likewise.app import embed_folder
from likewise.cli.arguments import Arguments
from likewise.cli.image_options import (
    MODEL_HELP,
    add_embedding_options,
    add_table_options,
    add_transform_option,
    print_start,
    read_embedding_options,
)
from likewise.cli.screen import print_broken, suggest


def run(words: Sequence[str]) -> int:
    """Embed the images of a folder or a table.

    Examples:
        >>> run(["nowhere", "photos", "-o", "embeddings.npz"])
        Traceback (most recent call last):
        likewise.app.errors.UserError: there is no model nowhere: give a file that ends in .safetensors, ...
    """
    options = _parser().parse_intermixed_args(words)
    try:
        embedded = embed_folder(
            options.model,
            options.images,
            options.out,
            half=options.half,
            overwrite=options.overwrite,
            options=read_embedding_options(options),
            on_start=lambda start: print_start(start, str(options.images)),
        )
    except KeyboardInterrupt:
        print("stopped; run the same command again to continue", file=sys.stderr)
        return 130
    print_broken(embedded.broken, f"broken_paths in {embedded.file} lists")
    total, faults = embedded.count + len(embedded.broken), ""
    if embedded.broken:
        faults = f"; {len(embedded.broken):,} of {total:,} images cannot be read"
    print(f"{embedded.file}: {embedded.count:,} embeddings{faults}")
    if not embedded.count:
        return 1
    suggest("index", "--vectors", str(embedded.file), options.model, "-o", f"{Path(embedded.file).stem}.index")
    return 0


def _parser() -> Arguments:
    parser = Arguments("embed", "Embed images and write the vectors, one row per image, to a NumPy file.")
    parser.add_argument("model", metavar="MODEL", help=MODEL_HELP)
    parser.add_argument(
        "images", metavar="IMAGES", type=Path, help="a folder, nested or flat, or a table (.csv, .tsv, .parquet)"
    )
    parser.add_argument("-o", "--out", metavar="FILE", type=Path, required=True, help="output file (.npz)")
    parser.add_argument("--overwrite", action="store_true", help="replace an existing file")
    parser.add_argument("--half", action="store_true", help="store float16: half the size")
    add_transform_option(parser)
    add_table_options(parser)
    add_embedding_options(parser)
    return parser
