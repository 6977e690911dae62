"""Options that commands on images and models share."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import fields
from pathlib import Path

from likewise.app import EmbeddingOptions, EmbeddingStart
from likewise.cli.arguments import Arguments
from likewise.cli.screen import columns
from likewise.data import TRANSFORMS

MODEL_HELP = (
    "a model (.safetensors), a run's folder (its best model), or a published network such as efficientnet_lite0"
)


def add_transform_option(parser: Arguments) -> None:
    """Add ``--transform``, for commands that take a model.

    Examples:
        >>> parser = Arguments("embed", "")
        >>> add_transform_option(parser)
        >>> parser.parse_args(["--transform", "glyphs"]).transform
        'glyphs'
    """
    parser.add_argument(
        "--transform",
        metavar="NAME",
        choices=sorted(TRANSFORMS),
        help=f"crop and scaling of images ({', '.join(sorted(TRANSFORMS))}; default: as in the model's run)",
    )


def add_table_options(parser: Arguments) -> None:
    """Add ``--root``, ``--path-column`` and ``--label-column``, for commands that read a table of images.

    Examples:
        >>> parser = Arguments("embed", "")
        >>> add_table_options(parser)
        >>> parser.parse_args(["--path-column", "file"]).path_column
        'file'
    """
    parser.add_argument(
        "--root",
        metavar="FOLDER",
        type=Path,
        help="the folder that a table's paths are relative to (default: the table's folder)",
    )
    parser.add_argument("--path-column", metavar="NAME", default="path", help="the table's path column (path)")
    parser.add_argument(
        "--label-column", metavar="NAME", default="label", help="the table's class column, if any (label)"
    )


def add_embedding_options(parser: Arguments) -> None:
    """Add ``--batch``, ``--workers``, ``--per-gpu``, ``--on`` and ``--follow-links``, for commands that embed a collection.

    Examples:
        >>> parser = Arguments("embed", "")
        >>> add_embedding_options(parser)
        >>> parser.parse_args(["--workers", "2"]).workers
        2
    """
    parser.add_argument("--batch", metavar="N", type=int, help="images per batch (default: as many as fit into memory)")
    parser.add_argument("--workers", metavar="N", type=int, help="number of processes")
    parser.add_argument("--per-gpu", metavar="N", type=int, default=1, help="processes that share a GPU (default: 1)")
    parser.add_argument("--on", metavar="ADDRESS", help="embed on a running Ray cluster: auto, or host:port")
    parser.add_argument(
        "--follow-links", action="store_true", help="also read files that links lead to outside the folder"
    )


def read_embedding_options(options: Namespace) -> EmbeddingOptions:
    """Read the options that the three functions above add.

    Examples:
        >>> parser = Arguments("embed", "")
        >>> for add in (add_transform_option, add_table_options, add_embedding_options):
        ...     add(parser)
        >>> read_embedding_options(parser.parse_args(["--batch", "8"])).batch
        8
    """
    return EmbeddingOptions(**{each.name: getattr(options, each.name) for each in fields(EmbeddingOptions)})


def print_start(start: EmbeddingStart, images: str) -> None:
    """Print the model, the images and the transform before embedding.

    Examples:
        >>> print_start(EmbeddingStart("efficientnet_lite0", 72, "whole image, scaled to 32 x 32 px"), "photos")
        model      efficientnet_lite0
        images     72 in photos
        transform  whole image, scaled to 32 x 32 px
    """
    rows = [("model", start.model), ("images", f"{start.images:,} in {images}"), ("transform", start.transform)]
    print(columns(rows, indent=0))
