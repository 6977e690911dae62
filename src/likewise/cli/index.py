"""``likewise index``: build a searchable index from a model and a folder or table of images."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from likewise.app import (
    IndexResult,
    UnreadableImagesError,
    UserError,
    check_store,
    index_folder,
    index_texts,
    index_vectors,
    merge_indexes,
    store_index,
    update_index,
)
from likewise.cli import index_versions
from likewise.cli.arguments import Arguments
from likewise.cli.image_options import (
    MODEL_HELP,
    add_embedding_options,
    add_table_options,
    add_transform_option,
    print_start,
    read_embedding_options,
)
from likewise.cli.index_screen import image_count, print_result, print_update
from likewise.cli.screen import print_broken
from likewise.cli.study_options import parse_shard
from likewise.search import INDEX_KINDS, STORAGES, THUMBNAIL_SIDE, is_url


def run(words: Sequence[str]) -> int:
    """Build, update or merge indexes.

    Examples:
        >>> run(["efficientnet_lite0", "nowhere", "-o", "birds.index"])
        Traceback (most recent call last):
        likewise.app.errors.UserError: there is no folder or table nowhere
    """
    options = _parser().parse_intermixed_args(words)
    action = index_versions.choose_action(options)
    if action is not None:
        return action(options)
    if options.out is None:
        raise UserError("likewise index needs an output folder: -o birds.index")
    _check(options)
    if options.store is not None:
        check_store(options.store)
    try:
        result = _make(options)
    except KeyboardInterrupt:
        print("stopped; run the same command again to continue", file=sys.stderr)
        return 130
    except UnreadableImagesError as nothing:
        print_broken(nothing.broken)
        print(nothing, file=sys.stderr)
        return 1
    if options.store is not None:
        name, count = store_index(result.index, options.store)
        print(f"{count:,} images stored in the index {name} of the database")
    _print(result, options)
    return 0


def _check(options: argparse.Namespace) -> None:
    """Refuse options that cannot be combined."""
    if options.store is not None and (options.update or not is_url(options.store)):
        place = "the URL of a database, postgresql://…"
        raise UserError(f"--store requires {'a new index or --merge, not with --update' if options.update else place}")
    if options.prune and not options.update:
        raise UserError("--prune requires --update: a new index has nothing to remove")
    if options.prune and (options.shard or options.vectors):
        raise UserError(
            "--prune needs all images: remove --shard and --vectors, or all other images would be removed from the index"
        )
    words = " ".join(options.what) or "neither"
    if options.vectors is not None and not options.merge and len(options.what) > 1:
        raise UserError(f"likewise index --vectors takes at most a MODEL, but it was given {words}")
    if options.texts and (options.update or options.shard or options.merge or options.vectors is not None):
        raise UserError("--texts builds a new index: remove --update, --shard, --merge and --vectors")
    if options.merge or options.vectors is not None:
        return
    if options.update and len(options.what) not in (1, 2):
        raise UserError(f"likewise index --update needs IMAGES, but it was given {words}")
    if not options.update and len(options.what) != 2:
        raise UserError(f"likewise index needs a MODEL and IMAGES, but it was given {words}")


def _make(options: argparse.Namespace) -> IndexResult:
    if options.merge:
        return merge_indexes(
            options.what,
            options.out,
            name=options.name,
            overwrite=options.overwrite,
            storage=options.storage,
            approximate=options.approximate or "auto",
        )
    if options.vectors is not None:
        return index_vectors(
            options.vectors,
            options.out,
            model=options.what[0] if options.what else None,
            update=options.update,
            name=options.name,
            overwrite=options.overwrite,
            storage=options.storage,
            approximate=options.approximate,
            transform=options.transform,
            root=options.root,
        )
    if options.texts:
        return index_texts(
            options.what[0],
            options.what[-1],
            options.out,
            column=options.text_column,
            label_column=options.label_column,
            name=options.name,
            overwrite=options.overwrite,
            storage=options.storage or "float32",
            approximate=options.approximate or "auto",
        )
    shared: dict[str, Any] = {
        "shard": parse_shard(options.shard),
        "thumbnails": options.thumbnails,
        "options": read_embedding_options(options),
        "on_start": lambda start: print_start(start, _describe_images(options)),
    }
    if options.update:
        model = options.what[0] if len(options.what) == 2 else None
        kinds = {"storage": options.storage, "approximate": options.approximate}
        return update_index(options.out, options.what[-1], prune=options.prune, model=model, **kinds, **shared)
    return index_folder(
        options.what[0],
        options.what[-1],
        options.out,
        name=options.name,
        overwrite=options.overwrite,
        storage=options.storage or "float32",
        approximate=options.approximate or "auto",
        **shared,
    )


def _describe_images(options: argparse.Namespace) -> str:
    return f"{options.what[-1]}, shard {options.shard}" if options.shard else str(options.what[-1])


def _print(result: IndexResult, options: argparse.Namespace) -> None:
    if options.merge:
        print_result(result, options.out, f"{len(options.what)} indexes merged")
    elif options.vectors is not None:
        count = result.added + result.replaced
        print_result(result, options.out, f"{count:,} vectors {'added' if options.update else 'indexed'}")
    elif options.update:
        print_update(result, options.out)
    elif options.texts:
        print_result(result, options.out, f"{result.added:,} text{'s' * (result.added != 1)} indexed")
    else:
        print_result(result, options.out, f"{image_count(result.added)} indexed")


def _parser() -> Arguments:
    parser = Arguments("index", "Build an index of images for likewise search and likewise serve.")
    parser.usage = (
        "likewise index MODEL IMAGES -o birds.index [options]\n"
        "       likewise index --update [MODEL] IMAGES -o birds.index [--prune]\n"
        "       likewise index --texts MODEL captions.csv -o captions.index\n"
        "       likewise index --vectors embeddings.npz [MODEL] -o birds.index [--update]\n"
        "       likewise index --merge a.index b.index -o all.index\n"
        "       likewise index --versions | --restore N | --purge | --check | --to-parquet FILE  birds.index"
    )
    parser.add_argument(
        "what",
        metavar="MODEL IMAGES",
        nargs="*",
        help=f"{MODEL_HELP}; and a folder, nested or flat, or a table (.csv, .tsv, .parquet), whose columns are kept",
    )
    parser.add_argument(
        "-o", "--out", metavar="INDEX", type=Path, help="the index to write: a folder, such as birds.index"
    )
    parser.add_argument("--update", action="store_true", help="add new files and replace changed ones")
    parser.add_argument("--prune", action="store_true", help="with --update: remove files that no longer exist")
    parser.add_argument("--merge", action="store_true", help="merge indexes of the same model")
    parser.add_argument(
        "--vectors", metavar="FILE", type=Path, help="existing embeddings (.npz: embeddings, paths, labels, …)"
    )
    parser.add_argument(
        "--texts", action="store_true", help="index the texts of a table, if the model has a text encoder"
    )
    parser.add_argument("--text-column", metavar="NAME", default="text", help="the table's text column (text)")
    index_versions.add_options(parser)
    parser.add_argument("--shard", metavar="I/N", help="index only shard I of N; merge the shards later")
    parser.add_argument("--overwrite", action="store_true", help="replace an existing index")
    parser.add_argument(
        "--store", metavar="URL", help="also store it in a database: postgresql://…#name (PostgreSQL with pgvector)"
    )
    parser.add_argument("--name", help="the name of the index (default: the folder's name)")
    parser.add_argument(
        "--storage",
        choices=STORAGES,
        help="float32, float16 (half the size) or int8 (a quarter); the loss in recall is measured",
    )
    parser.add_argument(
        "--approximate",
        choices=INDEX_KINDS,
        help="auto (by size: exact below 200,000 images), exact, hnsw or ivfpq; the recall is measured",
    )
    parser.add_argument(
        "--thumbnails",
        metavar="PIXELS",
        type=int,
        default=THUMBNAIL_SIDE,
        help=f"side of the thumbnails in pixels ({THUMBNAIL_SIDE}); 0 for none",
    )
    add_transform_option(parser)
    add_table_options(parser)
    add_embedding_options(parser)
    return parser
