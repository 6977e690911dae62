"""Make an index of texts, with the text encoder of a model that has two towers."""

from __future__ import annotations

from pathlib import Path

from likewise.app.chunks import lock_chunks
from likewise.app.collection import infer_types
from likewise.app.errors import UserError, making, writing
from likewise.app.images import read_columns
from likewise.app.index_places import check_free, chunk_folder, finish_index, index_name, new_folder, remove_leftovers
from likewise.app.indexing import IndexResult
from likewise.app.models import resolve_model
from likewise.search import Index, Kind, Storage, TextEncoder


def index_texts(
    model: str | Path,
    table: str | Path,
    out: str | Path,
    *,
    column: str = "text",
    label_column: str = "label",
    name: str | None = None,
    overwrite: bool = False,
    storage: Storage = "float32",
    approximate: Kind = "auto",
) -> IndexResult:
    """Build an index of the texts of a table, to search with images or texts; the path of an item is its text.

    Args:
        model: a ``.safetensors`` file, or the folder of a run (its best model), with a text encoder.
        table: a ``.csv``, ``.tsv`` or ``.parquet`` file; its other columns become metadata.
        out: the folder of the index.
        column: the table's column of texts; of several rows with one text, the last is used.
        label_column: the table's column of labels, if it has one.
        name: its name; by default that of the folder.
        overwrite: replace an existing index: the new one is its next version.
        storage: see `index_folder`.
        approximate: see `index_folder`.

    Raises:
        UserError: an argument is invalid, or the index cannot be written.

    Examples:
        >>> index_texts("nowhere", "captions.csv", "captions.index")
        Traceback (most recent call last):
        likewise.app.errors.UserError: there is no model nowhere: give a file that ends in .safetensors, ...
    """
    out = Path(out)
    source = resolve_model(model)
    if source.file is None:
        raise UserError(f"{model} must be a model with a text encoder, but it is a published image network")
    columns = read_columns(Path(table))
    if column not in columns:
        raise UserError(f"{table} must have a column {column!r}, but it has {', '.join(map(repr, columns)) or 'none'}")
    last = {text: row for row, text in enumerate(map(str, columns[column])) if text}
    texts, rows = list(last), list(last.values())
    if not texts:
        raise UserError(f"{table} must have a text, but its column {column!r} is empty")
    check_free(out, overwrite=overwrite, hint="--overwrite replaces it")
    with making(f"the model {source.place}"):
        encoder = TextEncoder.load(source.file, indexed=True)
    own = (column, label_column, "id", "path")
    metadata = {
        title: [infer_types(cells)[row] for row in rows] for title, cells in columns.items() if title not in own
    }
    labels = [str(columns[label_column][row]) for row in rows] if label_column in columns else None
    with writing(out), lock_chunks(chunk_folder(out)), making("the index"):
        index = Index.create(
            new_folder(out),
            dim=encoder.dim,
            model=source.file,
            storage=storage,
            name=index_name(out, name),
            transform=source.transform,
        )
        index.add(encoder.embed(texts), texts, labels=labels, metadata=metadata)
        index = finish_index(index, out, approximate)
        remove_leftovers(out)
    return IndexResult(index, added=len(texts))
