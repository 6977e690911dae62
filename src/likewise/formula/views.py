"""Two views of the same samples without labels: the order of the rows defines which rows belong together."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor

from likewise.distributed import SINGLE_PROCESS, ProcessGroup
from likewise.formula.checks import embeddings_as_given, rows_of, same_device

LabeledRows: TypeAlias = tuple[Tensor, Tensor, Tensor | None, Tensor | None]


def label_views(
    relation: str,
    embeddings: Tensor,
    labels: Tensor | None,
    references: Tensor | None,
    reference_labels: Tensor | None,
    group: ProcessGroup = SINGLE_PROCESS,
) -> LabeledRows:
    """Return embeddings, labels, references and their labels for two views of the same samples.

    Args:
        relation: ``"views"``: row k of embeddings and row k of references are one sample, and all rows are compared with
            each other, as one batch of two rows per sample; without references the views are the two halves of embeddings.
            ``"paired"``: row k of references is the positive of row k of embeddings, and all other references are its
            negatives.
        embeddings: the first view, ``(n, d)``, or both views, ``(2n, d)``.
        labels: must be ``None``, as must ``reference_labels``.
        references: the second view, ``(n, d)``.
        reference_labels: see ``labels``.
        group: the processes that the rows are distributed over; a rank holds both views of its samples.

    Examples:
        >>> label_views("views", torch.zeros(2, 3), None, torch.ones(2, 3), None)[1]
        tensor([0, 1, 0, 1])
    """
    if relation not in ("views", "paired"):
        raise ValueError(f"relation must be a Relation, index tensors, 'views' or 'paired', but it is {relation!r}")
    if labels is not None or reference_labels is not None:
        raise ValueError(
            f"labels and reference_labels must be None where relation is {relation!r}: rows are the labels"
        )
    # values of rows that are concatenated are checked here, where each side has a name
    check = rows_of if relation == "paired" else embeddings_as_given
    first, second = _split_views(relation, check("embeddings", embeddings), references, check)
    offset = group.rows(first).offset
    samples = torch.arange(offset, offset + len(first), device=first.device)
    if relation == "paired":
        return first, samples, second, samples
    return torch.cat([first, second]), samples.repeat(2), None, None


def _split_views(
    relation: str, embeddings: Tensor, references: Tensor | None, check: Callable[[str, object], Tensor]
) -> tuple[Tensor, Tensor]:
    if references is not None:
        references = check("references", references)
        same_device("references", references, embeddings.device, "embeddings")
        if references.shape != embeddings.shape:
            raise ValueError(
                f"references must be another view of the embeddings, of shape {tuple(embeddings.shape)}, "
                f"but the shape is {tuple(references.shape)}"
            )
        return embeddings, references
    if relation == "paired":
        raise TypeError("references must be given where relation is 'paired', but they are None")
    if len(embeddings) % 2:
        raise ValueError(f"embeddings must be two views of each sample, but there are {len(embeddings)} rows")
    first, second = embeddings.chunk(2)
    return first, second
