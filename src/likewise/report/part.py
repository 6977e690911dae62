"""The inputs of a report: the embeddings of a part of the data, and runs to compare with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from PIL import Image
from torch import Tensor

from likewise.formula import embeddings_of, labels_of
from likewise.metrics import Interval, shot_ids

Scores = Mapping[str, float | Interval]
"""Metrics by name, as fractions or as intervals of fractions."""


@dataclass(frozen=True, eq=False)
class Part:
    """The embeddings of one part of the data, such as validation or test.

    Args:
        name: the name on the page, such as ``"test"``.
        embeddings: floats ``(n, d)``.
        labels: integers ``(n,)``, each an index of ``class_names``.
        class_names: the name of each class.
        image: a function that returns the image of a row; called for the images on the page.
        is_query: which rows are queries, ``(n,)`` booleans; the others are the gallery, in which neighbors are searched.
            ``None``: every row is a query, and neighbors are searched among all others.
        cameras: for re-identification, the camera of each image, ``(n,)`` integers; images with the class and the camera of
            a query are excluded.
        ks: values of k for recall@k.
        clusterings: the number of runs of k-means, for NMI, AMI and F1; 0: none of these metrics.

    Examples:
        >>> import torch
        >>> from PIL import Image
        >>> colors = ["navy", "teal"]
        >>> labels = torch.tensor([0, 0, 1, 1])
        >>> part = Part(
        ...     "test", torch.eye(2)[labels], labels, colors, lambda i: Image.new("RGB", (8, 8), colors[i // 2])
        ... )
        >>> part.queries.tolist(), part.references.tolist(), part.class_name(3)
        ([0, 1, 2, 3], [0, 1, 2, 3], 'teal')
    """

    name: str
    embeddings: Tensor
    labels: Tensor
    class_names: Sequence[str]
    image: Callable[[int], Image.Image]
    is_query: Tensor | None = None
    cameras: Tensor | None = None
    ks: Sequence[int] = (1, 2, 4, 8)
    clusterings: int = 0

    def __post_init__(self) -> None:
        points = embeddings_of("embeddings", self.embeddings).detach().cpu()
        if len(points) < 2:
            raise ValueError("embeddings must have at least two rows, but there is one, which has no neighbor")
        labels = labels_of("labels", self.labels, len(points), None, "embeddings").cpu()
        low, high = int(labels.min()), int(labels.max())
        if low < 0 or high >= len(self.class_names):
            wrong = low if low < 0 else high
            raise ValueError(
                f"labels must be indices of the {len(self.class_names)} class_names, but one of them is {wrong}"
            )
        object.__setattr__(self, "embeddings", points)
        object.__setattr__(self, "labels", labels)
        if self.is_query is not None:
            object.__setattr__(self, "is_query", _roles(self.is_query, len(points)))
        if self.cameras is not None:
            cameras = labels_of("cameras", self.cameras, len(points), None, "embeddings").cpu()
            object.__setattr__(self, "cameras", cameras)

    @property
    def queries(self) -> Tensor:
        """The rows of the queries."""
        return torch.arange(len(self.labels)) if self.is_query is None else self.is_query.nonzero()[:, 0]

    @property
    def references(self) -> Tensor:
        """The rows in which neighbors are searched."""
        return torch.arange(len(self.labels)) if self.is_query is None else (~self.is_query).nonzero()[:, 0]

    @property
    def ids(self) -> Tensor:
        """Ids of rows; rows with the same id are not neighbors: a row itself, or images of its class by the same camera."""
        if self.cameras is None:
            return torch.arange(len(self.labels))
        return shot_ids(self.labels, self.cameras)[0]

    def class_name(self, row: int) -> str:
        """Return the class name of a row."""
        return str(self.class_names[int(self.labels[row])])


def _roles(is_query: object, rows: int) -> Tensor:
    if not isinstance(is_query, Tensor) or is_query.dtype != torch.bool or is_query.shape != (rows,):
        what = f"{is_query.dtype} {tuple(is_query.shape)}" if isinstance(is_query, Tensor) else type(is_query).__name__
        raise ValueError(f"is_query must be booleans of shape ({rows},), but it is {what}")
    queries = int(is_query.sum())
    if queries in (0, rows):
        raise ValueError(f"is_query must mark some rows, but not all, as queries, but {queries} of {rows} are queries")
    return is_query.cpu()


@dataclass(frozen=True, eq=False)
class Compared:
    """A run in the comparison of a report.

    Args:
        name: the name on the page.
        metrics: metrics by name, as fractions or intervals, of the last part of the report.
        folder: the run folder, for its curves and settings; the table does not need it.

    Examples:
        >>> from likewise.metrics import Interval
        >>> Compared("triplet", {"R@1": Interval(0.71, 0.68, 0.74, 0.95, 100)}).metrics["R@1"].low
        0.68
    """

    name: str
    metrics: Scores
    folder: Path | str | None = None
