"""The inputs of metrics in one object: embeddings, relation, excluded pairs, similarity, memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor

from likewise.formula import Labels, Relation, Similarity, SimilarityLike, as_similarity, check_values, whole_number
from likewise.metrics.arrays import Array, Embeddings, as_tensor, check_embeddings, check_labels

Relevance: TypeAlias = Relation | Callable[[Tensor, Tensor], Tensor] | Array
"""A relation, a boolean matrix, or a function of two index vectors that returns a boolean matrix."""


@dataclass(frozen=True, eq=False)
class Groups:
    """Labels or ids as codes 0, 1, …, shared by queries and references.

    Args:
        queries: ``(m,)``.
        references: ``(n,)``.
        sizes: the number of references of each code.

    Examples:
        >>> import torch
        >>> Groups.number(torch.tensor([7, -3]), torch.tensor([7, 7, 9])).sizes
        tensor([0, 2, 1])
    """

    queries: Tensor
    references: Tensor
    sizes: Tensor

    @staticmethod
    def number(queries: Tensor, references: Tensor) -> Groups:
        """Number the values from zero."""
        if references is queries:
            names, codes = torch.unique(queries, return_inverse=True)
            return Groups(codes, codes, torch.bincount(codes, minlength=len(names)))
        names, codes = torch.unique(torch.cat([queries, references]), return_inverse=True)
        codes, others = codes[: len(queries)], codes[len(queries) :]
        return Groups(codes, others, torch.bincount(others, minlength=len(names)))


@dataclass(frozen=True, eq=False)
class Ids:
    """The sample id of each query and each reference: a query is not compared with a reference that has its id.

    Args:
        queries: ``(m,)``.
        references: ``(n,)``.

    Examples:
        >>> import torch
        >>> Ids(torch.tensor([4]), torch.tensor([3, 4])).differ(slice(0, 1), slice(0, 2))
        tensor([[ True, False]])
    """

    queries: Tensor
    references: Tensor

    def differ(self, rows: slice, columns: slice) -> Tensor:
        """Return whether a query and a reference are different samples, for a rectangle of pairs."""
        return self.queries[rows, None] != self.references[None, columns]


@dataclass(frozen=True, eq=False)
class MetricInputs:
    """Checked inputs of a metric.

    Args:
        embeddings: queries and references.
        relation: which pairs are positive and negative, with known size.
        ids: the ids that define which pairs are excluded; ``None`` to compare all pairs.
        only_self: whether references were not passed, and only the pair of a query with itself is excluded.
        similarity: how embeddings are compared.
        memory: bytes that the metric may take.
    """

    embeddings: Embeddings
    relation: Relation
    ids: Ids | None
    only_self: bool
    similarity: Similarity
    memory: int

    def classes(self) -> Groups | None:
        """The labels as codes; ``None`` if labels do not fully define the relation."""
        relation = self.relation
        if not isinstance(relation, Labels) or relation.valid is not None:
            return None
        if relation.reference_labels is None:
            return Groups.number(relation.labels, relation.labels)
        if self.embeddings.same_set:
            return None  # a sample may have one label as a query and another one as a reference
        return Groups.number(relation.labels, relation.reference_labels)

    def masks(self, rows: slice, columns: slice) -> tuple[Tensor, Tensor]:
        """Return the positive and the negative pairs of a rectangle, without excluded pairs."""
        positive, negative = self.relation.masks(rows, columns)
        if self.ids is None:
            return positive, negative
        differ = self.ids.differ(rows, columns)
        return positive & differ, negative & differ


class Exclusion(NamedTuple):
    """The options of a metric that define which pairs are excluded, unchecked.

    Examples:
        >>> Exclusion(None, None, True).exclude_self
        True
    """

    ids: Array | None
    reference_ids: Array | None
    exclude_self: bool


def check_inputs(
    embeddings: Array,
    labels: Array | None,
    references: Array | None,
    reference_labels: Array | None,
    exclusion: Exclusion,
    similarity: SimilarityLike,
    relevant: Relevance | None,
    memory: int,
    checks_values: bool = True,
) -> MetricInputs:
    """Check the arguments of a metric and collect them; ``checks_values=False`` leaves out the values of embeddings.

    Examples:
        >>> import torch
        >>> exclusion = Exclusion(None, None, False)
        >>> check_inputs(torch.eye(2), torch.tensor([0]), None, None, exclusion, "cosine", None, memory=1)
        Traceback (most recent call last):
        ...
        ValueError: labels must have one entry for each of the 2 embeddings, but it has 1
    """
    similarity = as_similarity(similarity)
    checked = check_embeddings(embeddings, references, similarity, checks_values)
    memory = whole_number("memory", memory, 1)
    with check_values():
        if relevant is None:
            relation: Relation = _make_labels(checked, labels, reference_labels)
        elif reference_labels is not None:
            raise ValueError("relevant replaces labels and reference_labels; leave reference_labels out")
        else:
            relation = _make_relation(checked, as_tensor("relevant", relevant))
        ids = _make_ids(checked, relation, exclusion)
    return MetricInputs(checked, relation, ids, checked.same_set and exclusion.ids is None, similarity, memory)


def _make_labels(embeddings: Embeddings, labels: Array | None, reference_labels: Array | None) -> Labels:
    m, n, device = len(embeddings.queries), len(embeddings.references), embeddings.queries.device
    if labels is None:
        raise ValueError("labels must be given, or relevant in their place, but both are None")
    labels = check_labels("labels", labels, m, device, "embeddings")
    if embeddings.same_set:
        if reference_labels is not None:
            raise ValueError("reference_labels must be given together with references only, but references is None")
        return Labels(labels)
    if reference_labels is None:
        raise ValueError("reference_labels must be given together with references, but it is None")
    return Labels(labels, check_labels("reference_labels", reference_labels, n, device, "references"))


def _make_ids(embeddings: Embeddings, relation: Relation, exclusion: Exclusion) -> Ids | None:
    """Return which pairs are excluded: by ids, by position, or none."""
    ids, reference_ids, exclude_self = exclusion
    m, n, device = len(embeddings.queries), len(embeddings.references), embeddings.queries.device
    if not isinstance(exclude_self, bool):
        raise TypeError(f"exclude_self must be a boolean, but it is {exclude_self!r}")
    if reference_ids is not None and (embeddings.same_set or ids is None):
        missing = "references" if embeddings.same_set else "ids"
        raise ValueError(f"reference_ids must be given together with {missing} only, but {missing} is None")
    if ids is not None:
        if exclude_self:
            raise ValueError("exclude_self must be left out where ids are given, but it is True")
        queries = check_labels("ids", ids, m, device, "embeddings")
        if embeddings.same_set:
            return Ids(queries, queries)
        if reference_ids is None:
            raise ValueError("reference_ids must be given together with ids and references, but it is None")
        return Ids(queries, check_labels("reference_ids", reference_ids, n, device, "references"))
    positions = torch.arange(n, device=device)
    if embeddings.same_set:
        return Ids(positions, positions)
    if exclude_self:
        if n < m:
            raise ValueError(
                f"references must begin with the {m} embeddings where exclude_self is true, but there are only {n}"
            )
        return Ids(positions[:m], positions)
    own = relation.own if isinstance(relation, Labels) else None
    return None if own is None else Ids(own, positions)


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
        relation = _FunctionRelation(_index_matrix(relevant), (m, n), relevant.device)
    elif callable(relevant):
        relation = _FunctionRelation(relevant, (m, n), device)
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
        return positive, ~positive

    def with_shape(self, anchors: int, references: int) -> Relation:
        return self
