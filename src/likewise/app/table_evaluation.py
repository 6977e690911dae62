"""Measure any model on a table of images: queries and gallery, cameras, classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from likewise.app.calibration import embed_images
from likewise.app.errors import UserError, making
from likewise.app.evaluation import scores
from likewise.app.images import ImageList
from likewise.app.models import resolve_model
from likewise.app.runs import open_run
from likewise.data import Broken, ImageTable
from likewise.formula import whole_number
from likewise.metrics import Interval
from likewise.report import Part
from likewise.train import RECALLS, check_ks


@dataclass(frozen=True)
class TableEvaluation:
    """The metrics of a model on a table of images.

    Args:
        part: the images, embedded.
        scores: the metrics with their 95% intervals.
        broken: the images that could not be read.

    Examples:
        >>> from dataclasses import fields
        >>> [each.name for each in fields(TableEvaluation)]
        ['part', 'scores', 'broken']
    """

    part: Part
    scores: Mapping[str, Interval]
    broken: tuple[Broken, ...] = ()


def evaluate_table(
    model: str | Path,
    table: str | Path,
    *,
    split: str | None = None,
    root: str | Path | None = None,
    columns: Mapping[str, str] | None = None,
    ks: Sequence[int] = RECALLS,
    clusterings: int = 0,
    transform: str | None = None,
) -> TableEvaluation:
    """Measure a model on the images of a table; no run is needed, and nothing is recorded.

    A table that contains the sealed test part of the model's run is refused.

    With a column ``role``, queries are searched in the gallery; with a column ``camera``, images with the class and the
    camera of a query are excluded, as in re-identification, and R@k is the rank-k accuracy of that field.

    Args:
        model: a ``.safetensors`` file, the folder of a run (its best model), or the name of a published network.
        table: a ``.csv``, ``.tsv`` or ``.parquet`` file with the columns of `likewise.data.ImageTable`.
        split: use only the rows of this split; by default all rows.
        root: the folder that relative paths start from; by default the table's folder.
        columns: names of columns that differ from the defaults, such as ``{"label": "pid", "camera": "camid"}``.
        ks: values of k for recall@k.
        clusterings: also measure NMI, AMI and F1, averaged over this number of k-means runs.
        transform: the name of a transform; by default that of the model's run, or what its card implies.

    Raises:
        UserError: an argument is invalid, or no image can be read.

    Examples:
        >>> evaluate_table("nowhere", "people.csv")
        Traceback (most recent call last):
        likewise.app.errors.UserError: there is no model nowhere: give a file that ends in .safetensors, ...
    """
    source = resolve_model(model, transform)
    _refuse_sealed(Path(model), Path(table), split)
    with making("--ks"):
        ks = check_ks(ks)
    with making("--table"):
        images = ImageTable(table, root, split, columns=columns)
    files = ImageList(Path(), tuple(images.source(index) for index in range(len(images))))
    rows, vectors, broken = embed_images(source.load(), files, np.arange(len(files)))
    kept = images.subset(rows)
    with making("--table"):
        part = Part(
            Path(table).stem if split is None else split,
            torch.from_numpy(vectors),
            kept.labels,
            kept.class_names,
            kept.image,
            kept.is_query,
            kept.cameras,
            ks=ks,
            clusterings=whole_number("clusterings", clusterings, 0),
        )
    return TableEvaluation(part, scores(part), broken)


def _refuse_sealed(model: Path, table: Path, split: str | None) -> None:
    """Refuse the rows that a run keeps for its test: an evaluation here would not be recorded."""
    if not model.is_dir():
        return
    data = (open_run(model).description.get("config") or {}).get("data") or {}
    own = (data.get("init_args") or {}).get("path")
    if own is not None and Path(own).resolve() == table.resolve() and split in (None, "test"):
        raise UserError(f"{table} holds the sealed test part of {model}: `likewise evaluate {model} --test` opens it")
