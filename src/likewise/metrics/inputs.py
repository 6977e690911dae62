"""Inputs of metrics: tensors, arrays or lists, checked once and collected in one value."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from likewise.formula import (
    Labels,
    Relation,
    Similarity,
    SimilarityLike,
    as_similarity,
    check_values,
    embeddings_as_given,
    labels_of,
    same_device,
    whole_number,
)

Array: TypeAlias = Any
"""A tensor, or a numpy array, which is used as a CPU tensor that shares its memory."""

Relevance: TypeAlias = Relation | Callable[[Tensor, Tensor], Tensor] | Array
"""A relation, a boolean matrix, or a function of two index vectors that returns a boolean matrix."""


def as_tensor(name: str, value: object) -> object:
    """Convert an array to a tensor that shares its memory and a list to a new tensor; return anything else unchanged.

    Examples:
        >>> import numpy as np
        >>> as_tensor("embeddings", np.zeros(2))
        tensor([0., 0.], dtype=torch.float64)
        >>> as_tensor("labels", ["wren", "auk"])
        Traceback (most recent call last):
        ...
        TypeError: labels must hold numbers, but its dtype is <U4; encode_labels turns names into numbers
    """
    if isinstance(value, list | tuple):
        value = np.asarray(value)
    if not isinstance(value, np.ndarray):
        return value
    if value.dtype.kind not in "biuf":
        hint = "; encode_labels turns names into numbers" if "labels" in name else ""
        raise TypeError(f"{name} must hold numbers, but its dtype is {value.dtype}{hint}")
    try:
        with warnings.catch_warnings():
            # a read-only array is safe: metrics never write to their inputs
            warnings.filterwarnings("ignore", message=".*not writable.*")
            return torch.from_numpy(value)
    except (TypeError, ValueError):  # a byte order or a stride that torch does not support
        return torch.from_numpy(np.ascontiguousarray(value.astype(value.dtype.newbyteorder("="))))


def check_labels(name: str, value: object, rows: int | None, device: torch.device | None, embeddings: str) -> Tensor:
    """Check labels given as a tensor, an array or a list, as `likewise.formula.labels_of` does.

    Args:
        name: the argument's name in error messages.
        value: the labels.
        rows: how many labels there must be; ``None`` for any number.
        device: where they must be; ``None`` for any device.
        embeddings: the name of the argument that the labels belong to.

    Examples:
        >>> check_labels("labels", [3, 4], 2, None, "embeddings")
        tensor([3, 4])
    """
    return labels_of(name, as_tensor(name, value), rows, device, embeddings)


@dataclass(frozen=True, eq=False)
class Embeddings:
    """Checked queries and references, in their own dtype and without a copy.

    Args:
        queries: ``(m, d)``.
        references: ``(n, d)``; the queries themselves if ``same_set``.
        same_set: whether queries are compared among themselves.
    """

    queries: Tensor
    references: Tensor
    same_set: bool

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of products: at least float32."""
        return torch.promote_types(torch.promote_types(self.queries.dtype, self.references.dtype), torch.float32)


def check_embeddings(embeddings: object, references: object, similarity: Similarity) -> Embeddings:
    """Check embeddings and references, including their values on every device: an evaluation can wait for the device.

    Examples:
        >>> import torch
        >>> from likewise.formula import Cosine
        >>> check_embeddings(torch.eye(3), None, Cosine()).same_set
        True
    """
    queries = _check_rows("embeddings", embeddings, similarity)
    if references is None or references is embeddings:
        return Embeddings(queries, queries, same_set=True)
    others = _check_rows("references", references, similarity)
    if others.shape[1] != queries.shape[1]:
        raise ValueError(
            f"references must have the {queries.shape[1]} dimensions of embeddings, but have {others.shape[1]}"
        )
    same_device("references", others, queries.device, "embeddings")
    # the same memory twice means the queries among themselves: otherwise each sample would retrieve itself first
    memory = [(each.data_ptr(), each.shape, each.stride(), each.dtype) for each in (queries, others)]
    return Embeddings(queries, others, same_set=memory[0] == memory[1])


def _check_rows(name: str, value: object, similarity: Similarity) -> Tensor:
    with check_values():
        rows = embeddings_as_given(name, as_tensor(name, value)).detach()
    if similarity.bounded:
        return rows
    limit = torch.finfo(torch.promote_types(rows.dtype, torch.float32)).max
    largest = float(rows.abs().amax())
    if largest * largest * 4.0 * rows.shape[1] > limit:
        raise ValueError(
            f"{name} must have finite similarities, but with entries of {largest:.1e} some would overflow; scale the "
            "embeddings down, or use float64"
        )
    return rows


@dataclass(frozen=True, eq=False)
class Classes:
    """Labels as codes 0, 1, …, shared by queries and references.

    Args:
        queries: ``(m,)``.
        references: ``(n,)``.
        sizes: the number of references of each code.
        own: for each query the index of the reference that is the query itself, −1 for none; ``None`` if no reference
            is a query.
    """

    queries: Tensor
    references: Tensor
    sizes: Tensor
    own: Tensor | None

    @staticmethod
    def from_labels(relation: Labels, same_set: bool) -> Classes:
        """Number the labels from zero."""
        if relation.reference_labels is None:
            names, queries = torch.unique(relation.labels, return_inverse=True)
            references = queries
        else:
            names, codes = torch.unique(torch.cat([relation.labels, relation.reference_labels]), return_inverse=True)
            queries, references = codes[: len(relation.labels)], codes[len(relation.labels) :]
        own = torch.arange(len(queries), device=queries.device) if same_set else relation.own
        return Classes(queries, references, torch.bincount(references, minlength=len(names)), own)


@dataclass(frozen=True, eq=False)
class MetricInputs:
    """Checked inputs of a metric.

    Args:
        embeddings: queries and references.
        relation: which pairs are positive and negative, with known size.
        similarity: how embeddings are compared.
        memory: bytes that the metric may take.
    """

    embeddings: Embeddings
    relation: Relation
    similarity: Similarity
    memory: int

    def classes(self) -> Classes | None:
        """The labels as codes; ``None`` if labels do not fully define the relation."""
        relation = self.relation
        if not isinstance(relation, Labels) or relation.valid is not None:
            return None
        if self.embeddings.same_set and relation.reference_labels is not None:
            return None  # a sample may have one label as a query and another one as a reference
        return Classes.from_labels(relation, self.embeddings.same_set)


def check_inputs(
    embeddings: Array,
    labels: Array | None,
    references: Array | None,
    reference_labels: Array | None,
    similarity: SimilarityLike,
    relevant: Relevance | None,
    own: Array | None,
    memory: int,
) -> MetricInputs:
    """Check the arguments of a metric and collect them.

    Examples:
        >>> import torch
        >>> check_inputs(torch.eye(2), torch.tensor([0]), None, None, "cosine", None, None, 1)
        Traceback (most recent call last):
        ...
        ValueError: labels must have one entry for each of the 2 embeddings, but it has 1
    """
    similarity = as_similarity(similarity)
    checked = check_embeddings(embeddings, references, similarity)
    memory = whole_number("memory", memory, 1)
    with check_values():
        if relevant is None:
            relation: Relation = _make_labels(checked, labels, reference_labels, own)
        elif reference_labels is not None or own is not None:
            raise ValueError("relevant replaces labels, reference_labels and own; leave reference_labels and own out")
        else:
            relation = _make_relation(checked, as_tensor("relevant", relevant))
    return MetricInputs(checked, relation, similarity, memory)


def _make_labels(
    embeddings: Embeddings, labels: Array | None, reference_labels: Array | None, own: Array | None
) -> Labels:
    m, n, device = len(embeddings.queries), len(embeddings.references), embeddings.queries.device
    if labels is None:
        raise ValueError("labels must be given, or relevant in their place, but both are None")
    labels = check_labels("labels", labels, m, device, "embeddings")
    if embeddings.same_set:
        if reference_labels is not None:
            others = check_labels("reference_labels", reference_labels, n, device, "references")
            if not torch.equal(labels, others):
                raise ValueError("reference_labels must be left out where the references are the embeddings themselves")
        if own is not None:
            raise ValueError("own must be left out where the references are the embeddings themselves")
        return Labels(labels)
    if reference_labels is None:
        raise ValueError("reference_labels must be given together with references, but it is None")
    reference_labels = check_labels("reference_labels", reference_labels, n, device, "references")
    own = None if own is None else check_labels("own", own, m, device, "embeddings")
    return Labels(labels, reference_labels, own)


def _make_relation(embeddings: Embeddings, relevant: object) -> Relation:
    m, n, device = len(embeddings.queries), len(embeddings.references), embeddings.queries.device
    if isinstance(relevant, Relation):
        relation = relevant.with_shape(m, n)
    elif isinstance(relevant, Tensor):
        if relevant.dtype != torch.bool or relevant.shape != (m, n):
            raise ValueError(
                f"relevant must be a boolean matrix of shape ({m}, {n}), queries x references, but it is of dtype "
                f"{relevant.dtype} and shape {tuple(relevant.shape)}"
            )
        relation = _FunctionRelation(_index_matrix(relevant), embeddings.same_set, (m, n), relevant.device)
    elif callable(relevant):
        relation = _FunctionRelation(relevant, embeddings.same_set, (m, n), device)
    else:
        raise TypeError(
            f"relevant must be a boolean matrix, a function or a Relation, but it is a {type(relevant).__name__}"
        )
    if relation.device != device:
        raise ValueError(f"relevant must be on the device of embeddings, {device}, but it is on {relation.device}")
    return relation


def _index_matrix(relevant: Tensor) -> Callable[[Tensor, Tensor], Tensor]:
    """Wrap a matrix as a function of indices; full rows, the most frequent request, are copied once."""

    def function(rows: Tensor, columns: Tensor) -> Tensor:
        return relevant[rows] if len(columns) == relevant.shape[1] else relevant[rows[:, None], columns]

    return function


@dataclass(frozen=True, eq=False)
class _FunctionRelation(Relation):
    """A relation defined by a function of indices, which is called for a few rows at a time."""

    function: Callable[[Tensor, Tensor], Tensor]
    same_set: bool
    shape: tuple[int, int]
    function_device: torch.device

    @property
    def device(self) -> torch.device:
        return self.function_device

    def masks(self, rows: slice | None = None, columns: slice | None = None) -> tuple[Tensor, Tensor]:
        left = torch.arange(self.shape[0], device=self.device)[rows or slice(None)]
        right = torch.arange(self.shape[1], device=self.device)[columns or slice(None)]
        positive = self.function(left, right)
        if (
            not isinstance(positive, Tensor)
            or positive.dtype != torch.bool
            or positive.shape != (len(left), len(right))
        ):
            got = (positive.dtype, tuple(positive.shape)) if isinstance(positive, Tensor) else type(positive).__name__
            raise ValueError(
                f"relevant must return a boolean tensor of shape ({len(left)}, {len(right)}) for so many queries and "
                f"references, but it returned {got}"
            )
        if not self.same_set:
            return positive, ~positive
        own = left[:, None] == right
        return positive & ~own, ~positive & ~own

    def with_shape(self, anchors: int, references: int) -> Relation:
        return self
