"""Relations of rows of labels: the levels of a hierarchy, or several labels per item.  They may be graded."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from likewise.formula.checks import one_of
from likewise.formula.indexing import inner_products
from likewise.formula.labels import LabelRelation
from likewise.formula.relations import ALL, check_index, check_range


@dataclass(frozen=True, eq=False)
class LabelRows(LabelRelation):
    """A relation that compares rows of labels of anchor and reference; the arguments have shape ``(n, L)``.

    Examples:
        >>> issubclass(Levels, LabelRows)
        True
    """

    @classmethod
    def check_rows(cls, name: str, value: object) -> Tensor:
        """Check one argument, a matrix of labels."""
        if not isinstance(value, Tensor):
            raise TypeError(f"{name} must be a tensor, but it is a {type(value).__name__}")
        if value.is_floating_point() or value.is_complex() or value.dtype == torch.bool:
            raise TypeError(f"{name} must be of an integer dtype, but the dtype is {value.dtype}")
        if value.ndim != 2 or not value.shape[1]:
            raise ValueError(
                f"{name} must have shape (n, L), one column for each level, but the shape is {tuple(value.shape)}"
            )
        return value.to(torch.int64)

    @abstractmethod
    def compare(self, rows: Tensor, columns: Tensor, dtype: torch.dtype) -> Tensor:
        """The relevance of pairs by their labels only; indices broadcast."""

    def relevance(self, rows: Tensor, columns: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
        """The relevance by labels; an anchor is not relevant to itself."""
        value = self.compare(rows, columns, dtype)
        return torch.where(self.leave_out_own(value > 0, rows, columns), value, 0.0)

    def masks(self, rows: slice | None = None, columns: slice | None = None) -> tuple[Tensor, Tensor]:
        """Pairs that share a label are positive."""
        left = torch.arange(len(self.labels), device=self.device)[rows or ALL, None]
        right = torch.arange(len(self.references), device=self.device)[None, columns or ALL]
        related = self.compare(left, right, torch.float32) > 0
        positive, negative = self.leave_out_own(related, left, right), ~related
        return positive, negative if self.valid is None else negative & self.valid[right]


@dataclass(frozen=True, eq=False)
class Levels(LabelRows):
    """A hierarchy: labels on several levels, column 0 the finest; relevance is the fraction of levels that agree.

    Args:
        labels: of the anchors, ``(m, L)``, any integer dtype.
        reference_labels: of the references, ``(n, L)``.
        own: for each anchor the index of the reference that is the anchor itself, −1 for none.
        valid: which references exist, ``(n,)`` booleans.

    Examples:
        >>> import torch
        >>> relation = Levels(torch.tensor([[0, 0], [1, 0], [2, 1]]))
        >>> index = torch.arange(3)
        >>> relation.relevance(index[:, None], index[None, :]).tolist()
        [[0.0, 0.5, 0.0], [0.5, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """

    @classmethod
    def from_parents(
        cls, labels: Tensor, parents: Tensor | Sequence[int], reference_labels: Tensor | None = None
    ) -> Levels:
        """Return the hierarchy of a table of parents.

        Args:
            labels: the node of each anchor, ``(m,)``.
            parents: the parent of each node, −1 for a root; the nodes of labels must have the same number of ancestors.
            reference_labels: the node of each reference, ``(n,)``.

        Examples:
            >>> import torch
            >>> Levels.from_parents(torch.tensor([0, 1, 2]), [3, 3, 4, -1, -1]).labels.tolist()
            [[0, 3], [1, 3], [2, 4]]
        """
        table = torch.as_tensor(parents, device=labels.device)
        check_range("parents", table, len(table), "parents", least=-1)
        rows = [
            _find_ancestors(name, nodes, table)
            for name, nodes in (("labels", labels), ("reference_labels", reference_labels))
            if nodes is not None
        ]
        return cls(*rows)

    @property
    def is_graded(self) -> bool:
        """Whether there are two levels or more."""
        return self.labels.shape[1] > 1

    def compare(self, rows: Tensor, columns: Tensor, dtype: torch.dtype) -> Tensor:
        """The fraction of levels on which labels agree."""
        return self.count_agreements(rows, columns).to(dtype) / self.labels.shape[1]

    def count_agreements(self, rows: Tensor, columns: Tensor) -> Tensor:
        """The number of levels on which the labels of pairs agree, as bytes; indices broadcast."""
        left, right = self.labels[rows], self.references[columns]
        levels = range(self.labels.shape[1])
        equal = [(left[..., level] == right[..., level]).to(torch.uint8) for level in levels]
        return sum(equal[1:], equal[0])


def _find_ancestors(name: str, nodes: Tensor, parents: Tensor) -> Tensor:
    """The node of each row and its ancestors, ``(n, L)``."""
    nodes = check_index(name, nodes)
    check_range(name, nodes, len(parents), "parents")
    columns = [nodes]
    while bool((parents[columns[-1]] >= 0).any()):
        above = parents[columns[-1]]
        if bool((above < 0).any()) or len(columns) > len(parents):
            node = int(nodes[(above < 0).nonzero()[0, 0]]) if bool((above < 0).any()) else int(nodes[0])
            raise ValueError(
                f"{name} must be nodes with the same number of ancestors in parents, but node {node} has "
                f"{len(columns) - 1 if len(columns) <= len(parents) else 'itself as an ancestor'}"
            )
        columns.append(above)
    return torch.stack(columns, dim=1)


@dataclass(frozen=True, eq=False)
class MultiLabel(LabelRows):
    """Several labels per item: a pair is positive if the two share a label.

    Args:
        labels: of the anchors, ``(m, C)`` booleans, one column for each class; `MultiLabel.from_lists` makes them.
        reference_labels: of the references, ``(n, C)``.
        own: for each anchor the index of the reference that is the anchor itself, −1 for none.
        valid: which references exist, ``(n,)`` booleans.
        grade: ``"any"``: relevance is 1 for every positive pair; ``"jaccard"``: the number of shared labels divided by the
            number of labels that either has.

    Examples:
        >>> import torch
        >>> relation = MultiLabel.from_lists([[0, 1], [1], [2]], grade="jaccard")
        >>> relation.relevance(torch.tensor([0, 0]), torch.tensor([1, 2])).tolist()
        [0.5, 0.0]
    """

    grade: Literal["any", "jaccard"] = "any"

    fields: ClassVar[tuple[str, ...]] = (*LabelRows.fields, "grade")

    def __post_init__(self) -> None:
        one_of("grade", self.grade, ("any", "jaccard"))
        super().__post_init__()

    @classmethod
    def check_rows(cls, name: str, value: object) -> Tensor:
        """Check one argument, a matrix of booleans."""
        if not isinstance(value, Tensor):
            raise TypeError(f"{name} must be a tensor, but it is a {type(value).__name__}")
        if value.dtype != torch.bool or value.ndim != 2:
            raise ValueError(
                f"{name} must be a boolean matrix, one column for each class, but it is of dtype {value.dtype} and shape "
                f"{tuple(value.shape)}"
            )
        return value

    @classmethod
    def from_lists(
        cls,
        labels: Sequence[Sequence[int]],
        reference_labels: Sequence[Sequence[int]] | None = None,
        *,
        grade: Literal["any", "jaccard"] = "any",
    ) -> MultiLabel:
        """Return the relation of items with a list of labels each, whole numbers from 0.

        Examples:
            >>> MultiLabel.from_lists([[0, 2], []]).labels.tolist()
            [[True, False, True], [False, False, False]]
        """
        lists = [*labels, *(reference_labels or [])]
        marked = mark_labels(lists)
        return cls(marked[: len(labels)], None if reference_labels is None else marked[len(labels) :], grade=grade)

    @property
    def is_graded(self) -> bool:
        """Whether relevance is a Jaccard index."""
        return self.grade == "jaccard"

    def compare(self, rows: Tensor, columns: Tensor, dtype: torch.dtype) -> Tensor:
        """One where labels are shared, or the Jaccard index."""
        left, right = self.labels.to(dtype), self.references.to(dtype)
        shared = inner_products(left, right, rows, columns)
        if self.grade == "any":
            return (shared > 0).to(dtype)
        return shared / (left.sum(dim=1)[rows] + right.sum(dim=1)[columns] - shared).clamp_min(1.0)


def mark_labels(lists: Sequence[Sequence[int]]) -> Tensor:
    """Lists of labels as a boolean matrix, one column for each class from 0.

    Examples:
        >>> mark_labels([[1], [0, 1]]).tolist()
        [[False, True], [True, True]]
    """
    flat = [(row, int(label)) for row, each in enumerate(lists) for label in each]
    if any(label < 0 for _, label in flat):
        raise ValueError(f"labels must be whole numbers from 0, but one of them is {min(label for _, label in flat)}")
    marked = torch.zeros(len(lists), 1 + max((label for _, label in flat), default=0), dtype=torch.bool)
    for row, label in flat:
        marked[row, label] = True
    return marked
