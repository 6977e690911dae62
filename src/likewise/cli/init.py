"""``likewise init``: a configuration with comments, for a folder or table of images."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from likewise.app import write_starter
from likewise.cli.arguments import Arguments


def run(words: Sequence[str]) -> int:
    """Write a configuration for a folder or table of images.

    Examples:
        >>> run(["nowhere"])
        Traceback (most recent call last):
        likewise.app.errors.UserError: there is no folder or table nowhere
    """
    parser = Arguments(
        "init", "Write a commented configuration for a folder with one subfolder per class, or for a table."
    )
    parser.add_argument("images", metavar="IMAGES", help="a folder of folders, or a table (.csv, .tsv, .parquet)")
    parser.add_argument("-o", "--out", metavar="FILE", type=Path, help="output file (default: NAME.yaml)")
    parser.add_argument("--overwrite", action="store_true", help="replace an existing file")
    options = parser.parse_args(words)
    file, summary = write_starter(options.images, options.out, overwrite=options.overwrite)
    print(f"{file}: {summary}")
    print(f"next: likewise train --config {shlex.quote(str(file))}")
    return 0
