"""Options of the use cases that read a collection of images and embed it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from likewise.app.errors import UserError


@dataclass(frozen=True)
class ImageOptions:
    """How the images of a folder or a table are listed.

    Args:
        root: the folder that a table's paths are relative to; by default the table's folder.
        path_column: the table's path column.
        label_column: a table's column of classes, which it may lack.
        follow_links: also list what links out of a folder lead to.

    Examples:
        >>> ImageOptions(path_column="file").label_column
        'label'
    """

    root: str | Path | None = None
    path_column: str = "path"
    label_column: str = "label"
    follow_links: bool = False


@dataclass(frozen=True)
class EmbeddingOptions(ImageOptions):
    """How a collection of images is listed and embedded, see `embed_folder`, `index_folder` and `update_index`.

    Args:
        root: the folder that a table's paths are relative to; by default the table's folder.
        path_column: the table's path column.
        label_column: a table's column of classes, which it may lack.
        follow_links: also embed what links out of a folder lead to.
        transform: the name of a transform; by default that of the model's run, or what its card implies.
        batch: images at once; by default as many as fit into memory.
        workers: embed in so many processes; by default in this one.
        per_gpu: processes that share a GPU.
        on: the address of a Ray cluster that embeds, ``"auto"`` or ``"host:port"``.

    Raises:
        UserError: a count is below one.

    Examples:
        >>> EmbeddingOptions(workers=0)
        Traceback (most recent call last):
        likewise.app.errors.UserError: --workers must be a whole number ≥ 1, but it is 0
    """

    transform: str | None = None
    batch: int | None = None
    workers: int | None = None
    per_gpu: int = 1
    on: str | None = None

    def __post_init__(self) -> None:
        for option, count in (("--batch", self.batch), ("--workers", self.workers), ("--per-gpu", self.per_gpu)):
            if count is not None and count < 1:
                raise UserError(f"{option} must be a whole number ≥ 1, but it is {count}")
