"""Checks of a call's arguments, batches made from them, and values per class."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from likewise.distributed import SINGLE_PROCESS, ProcessGroup
from likewise.formula.batch import PairBatch
from likewise.formula.checks import can_read_values, embeddings_of, labels_of, same_device
from likewise.formula.label_rows import Levels
from likewise.formula.labels import Labels
from likewise.formula.precision import same_half
from likewise.formula.relations import Relation, RelationLike, as_relation, make_unchecked
from likewise.formula.similarity_base import Similarity


def batch_from_embeddings(
    embeddings: Tensor,
    labels: Tensor | None,
    references: Tensor | None,
    reference_labels: Tensor | None,
    relation: RelationLike | None,
    similarity: Similarity,
    group: ProcessGroup = SINGLE_PROCESS,
    *,
    levels: bool = False,
) -> PairBatch:
    """Check all arguments of a call and return them as a batch.

    Labels passed together with a relation are used only for values per class; the relation defines the pairs.  In a
    distributed batch, embeddings and references are the rows of this rank, and its anchors are compared with the
    references of all ranks; a relation other than labels must index all of them.  Labels may be those of a hierarchy,
    ``(n, L)``, where ``levels`` is true.

    Examples:
        >>> import torch
        >>> from likewise.formula import Cosine
        >>> batch_from_embeddings(torch.eye(2), torch.tensor([0]), None, None, None, Cosine())
        Traceback (most recent call last):
        ...
        ValueError: labels must have one entry for each of the 2 embeddings, but it has 1
    """
    for name, value in (("labels", labels), ("references", references)):
        if isinstance(value, tuple):  # other libraries take the indices at this position
            raise TypeError(f"{name} must be a tensor, but it is a tuple; give a miner's indices as relation=")
    anchors = embeddings_of("embeddings", embeddings)
    half = same_half(embeddings)
    m = n = anchors.shape[0]
    if references is not None:
        original, references = references, embeddings_of("references", references)
        half = same_half(embeddings, original)
        n = references.shape[0]
        if references.shape[1] != anchors.shape[1]:
            raise ValueError(
                f"references must have the {anchors.shape[1]} dimensions of embeddings, but have {references.shape[1]}"
            )
        same_device("references", references, anchors.device, "embeddings")
        dtype = torch.promote_types(anchors.dtype, references.dtype)
        anchors, references = anchors.to(dtype), references.to(dtype)
        similarity.check("references", references)
    similarity.check("embeddings", anchors)
    if relation is None:
        relation = _labels(labels, references, reference_labels, (m, n), anchors.device, levels)
        labels = relation.labels
    else:
        relation = as_relation(relation)
        labels = _labels_for_classes(labels, references, reference_labels, (m, n), anchors.device, levels)
    if relation.device != anchors.device:
        raise ValueError(
            f"relation must be on the device of embeddings, {anchors.device}, but it is on {relation.device}"
        )
    if group is not SINGLE_PROCESS:
        batch = _gather_references(anchors, references, relation, similarity, group)
    else:
        batch = PairBatch(relation.with_shape(m, n), similarity, anchors=anchors, references=references)
    if labels is not None and labels is not batch.labels:
        batch = batch.replace(labels=labels)
    return batch if half is None else batch.replace(half=half)


def _gather_references(
    anchors: Tensor, references: Tensor | None, relation: Relation, similarity: Similarity, group: ProcessGroup
) -> PairBatch:
    """This rank's anchors against the references of all ranks."""
    anchor_rows = group.batch_rows(anchors)
    reference_rows = anchor_rows if references is None else group.rows(references)
    gathered = group.gather(anchors if references is None else references, reference_rows)
    return PairBatch(
        relation.gather(group, reference_rows).with_shape(len(anchors), reference_rows.count),
        similarity,
        anchors=anchors,
        references=gathered,
        group=group,
        local_rows=anchor_rows if references is None else None,
    )


def check_labels(
    name: str, value: object, rows: int, device: torch.device, others: str, *, levels: bool = False
) -> Tensor:
    """Check labels of classes, ``(rows,)``, or, where ``levels`` is true, of classes or of a hierarchy, ``(rows, L)``.

    Examples:
        >>> import torch
        >>> check_labels("labels", torch.tensor([[0, 1]]), 1, torch.device("cpu"), "embeddings", levels=True)
        tensor([[0, 1]])
    """
    if not levels or (isinstance(value, Tensor) and value.ndim == 1):
        return labels_of(name, value, rows, device, others)
    labels = Levels.check_rows(name, value)
    if len(labels) != rows:
        raise ValueError(f"{name} must have one entry for each of the {rows} {others}, but it has {len(labels)}")
    same_device(name, labels, device, others)
    return labels


def make_labels(labels: Tensor, reference_labels: Tensor | None = None, **options: Any) -> Labels | Levels:
    """The relation of checked labels: classes, or the levels of a hierarchy.

    Examples:
        >>> import torch
        >>> type(make_labels(torch.tensor([[0, 1], [2, 1]]))).__name__
        'Levels'
    """
    if reference_labels is not None and reference_labels.ndim != labels.ndim:
        raise ValueError(
            f"reference_labels must have as many dimensions as labels, {labels.ndim}, but have {reference_labels.ndim}"
        )
    if labels.ndim > 1:
        return Levels(labels, reference_labels, **options)
    if options:
        return Labels(labels, reference_labels, **options)
    return make_unchecked(Labels, labels=labels, reference_labels=reference_labels)


def _labels(
    labels: Tensor | None,
    references: Tensor | None,
    reference_labels: Tensor | None,
    shape: tuple[int, int],
    device: torch.device,
    levels: bool,
) -> Labels | Levels:
    if labels is None:
        raise TypeError("labels must be given unless relation is given, but both are None")
    labels = check_labels("labels", labels, shape[0], device, "embeddings", levels=levels)
    if (references is None) != (reference_labels is None):
        present, missing = (
            ("reference_labels", "references") if references is None else ("references", "reference_labels")
        )
        raise ValueError(f"{missing} must be given together with {present}, but they are None")
    if reference_labels is None:
        return make_labels(labels)
    others = check_labels("reference_labels", reference_labels, shape[1], device, "references", levels=levels)
    return make_labels(labels, others)


def _labels_for_classes(
    labels: Tensor | None,
    references: Tensor | None,
    reference_labels: Tensor | None,
    shape: tuple[int, int],
    device: torch.device,
    levels: bool,
) -> Tensor | None:
    """Return the labels of the anchors if a relation defines the pairs; those of the references are only checked."""
    if reference_labels is not None:
        if references is None:
            raise ValueError("references must be given together with reference_labels, but they are None")
        check_labels("reference_labels", reference_labels, shape[1], device, "references", levels=levels)
    return None if labels is None else check_labels("labels", labels, shape[0], device, "embeddings", levels=levels)


def batch_from_similarities(
    similarities: Tensor,
    relation: RelationLike | Tensor,
    similarity: Similarity,
    group: ProcessGroup = SINGLE_PROCESS,
    *,
    labels: Tensor | None = None,
    levels: bool = False,
) -> PairBatch:
    """Make a batch from a matrix of similarities; in a distributed batch each rank holds some rows.

    Args:
        similarities: the matrix ``(m, n)``.
        relation: the positive and negative pairs; or labels, if the matrix compares one set with itself.
        similarity: how the matrix was computed.
        group: the processes that the rows are distributed over.
        labels: the labels of the rows, for values per class; the relation defines the pairs.
        levels: whether labels may be those of a hierarchy, ``(m, L)``.

    Examples:
        >>> import torch
        >>> from likewise.formula import Cosine
        >>> batch_from_similarities(torch.eye(2), torch.tensor([0, 0]), Cosine()).relation.masks()[0].tolist()
        [[False, True], [True, False]]
    """
    matrix = embeddings_of("similarities", similarities)
    m, n = matrix.shape
    if isinstance(relation, Tensor):
        if m != n:
            raise ValueError(
                f"relation must be a Relation where similarities are not square, but it is a tensor of labels "
                f"and similarities have shape ({m}, {n})"
            )
        relation = make_labels(
            check_labels("relation", relation, m, matrix.device, "rows of similarities", levels=levels)
        )
    else:
        relation = as_relation(relation, more=", labels")
    if relation.device != matrix.device:
        raise ValueError(
            f"relation must be on the device of similarities, {matrix.device}, but it is on {relation.device}"
        )
    if labels is not None:
        labels = check_labels("labels", labels, m, matrix.device, "rows of similarities", levels=levels)
    return PairBatch(relation.with_shape(m, n), similarity, matrix=matrix, group=group, labels=labels)


def class_values(table: Tensor, batch: PairBatch, name: str) -> Tensor:
    """Return the entry of ``table`` for each anchor's class; labels must be 0-based class indices.

    Examples:
        >>> import torch
        >>> from likewise.formula import Labels
        >>> class_values(torch.tensor([1.0, 2.0]), PairBatch(Labels(torch.tensor([1, 1, 0]))), "beta")
        tensor([2., 2., 1.])
    """
    labels = batch.labels
    if labels is None:
        raise TypeError(
            f"labels must be given together with a relation where there is one {name} per class, but they are None"
        )
    labels = labels if labels.ndim == 1 else labels[:, 0]  # the finest level of a hierarchy
    check_classes(labels, len(table), name)
    return table[labels]


def check_classes(labels: Tensor, classes: int, what: str) -> None:
    """Check that labels are indices of classes that have one ``what`` each.

    Examples:
        >>> import torch
        >>> check_classes(torch.tensor([1, 2]), 2, "proxy")
        Traceback (most recent call last):
        ...
        ValueError: labels must be in 0..1, one proxy for each class, but they reach from 1 to 2; ids that start at 1 need 1 subtracted
    """
    if can_read_values(labels) and len(labels) and (int(labels.min()) < 0 or int(labels.max()) >= classes):
        raise ValueError(
            f"labels must be in 0..{classes - 1}, one {what} for each class, but they reach from "
            f"{int(labels.min())} to {int(labels.max())}"
            + ("; ids that start at 1 need 1 subtracted" if int(labels.min()) == 1 else "")
        )


def check_number_of_classes(labels: Tensor, most: int, classes: int) -> None:
    """Check that a batch has no more than the sampled number of classes.

    Examples:
        >>> import torch
        >>> check_number_of_classes(torch.tensor([1, 2, 1]), 1, 10)
        Traceback (most recent call last):
        ...
        ValueError: sampled must be at least the number of classes of a batch, 2, but it is 1 of 10
    """
    if most < len(labels) and can_read_values(labels):
        present = len(torch.unique(labels))
        if present > most:
            raise ValueError(
                f"sampled must be at least the number of classes of a batch, {present}, but it is {most} of {classes}"
            )
