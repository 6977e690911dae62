"""Graded relations: pairs with a relevance between 0 and 1.

`Levels` are labels of a hierarchy, `MultiLabel` several labels per item, `GradedPairs` and `Grades` similarities that were
given, and `Ignoring` leaves pairs out of another relation.  A pair is positive where its relevance is above zero.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import torch
from torch import Tensor

from likewise.distributed import ProcessGroup, RowPartition
from likewise.formula.checks import can_read_values, one_of, same_device
from likewise.formula.relations import (
    Masks,
    Mined,
    Relation,
    check_index,
    check_range,
    leave_out_own,
    make_unchecked,
    store_fields,
)

if TYPE_CHECKING:
    from typing import Self


@dataclass(frozen=True, eq=False)
class LabelRows(Relation):
    """A relation that compares a row of labels of the anchor with one of the reference.

    Args:
        labels: of the anchors, ``(m, L)``.
        reference_labels: of the references, ``(n, L)``; without them the references are the anchors themselves, and no
            anchor is its own positive.
        own: for each anchor the index of the reference that is the anchor itself, −1 for none.
        valid: which references exist, ``(n,)`` booleans.

    Examples:
        >>> issubclass(Levels, LabelRows)
        True
    """

    labels: Tensor
    reference_labels: Tensor | None = None
    own: Tensor | None = None
    valid: Tensor | None = None

    kind: ClassVar[str] = "integers"

    def __post_init__(self) -> None:
        labels = self.check_rows("labels", self.labels)
        references = self.reference_labels
        if references is not None:
            references = self.check_rows("reference_labels", references)
            same_device("reference_labels", references, labels.device, "labels")
            if references.shape[1] != labels.shape[1]:
                raise ValueError(
                    f"reference_labels must have the {labels.shape[1]} columns of labels, but have {references.shape[1]}"
                )
        own = self.own
        if own is not None:
            if references is None or len(check_index("own", own)) != len(labels):
                raise ValueError("own must be one index for each of the labels, together with reference_labels")
            own = check_index("own", own)
            check_range("own", own, len(references), "references", least=-1)
        if self.valid is not None and (references is None or self.valid.shape != references.shape[:1]):
            raise ValueError("valid must be one boolean for each row of reference_labels")
        store_fields(self, labels=labels, reference_labels=references, own=own)

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

    @property
    def references(self) -> Tensor:
        """The labels of the references."""
        return self.labels if self.reference_labels is None else self.reference_labels

    @property
    def device(self) -> torch.device:
        """The device of the labels."""
        return self.labels.device

    def relevance(self, rows: Tensor, columns: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
        """The relevance by labels; an anchor is not relevant to itself."""
        value = self.compare(rows, columns, dtype)
        return torch.where(leave_out_own(self, value > 0, rows, columns), value, 0.0)

    def masks(self, rows: slice | None = None, columns: slice | None = None) -> tuple[Tensor, Tensor]:
        """Positive where labels have something in common."""
        left = torch.arange(len(self.labels), device=self.device)[rows or slice(None), None]
        right = torch.arange(len(self.references), device=self.device)[None, columns or slice(None)]
        related = self.compare(left, right, torch.float32) > 0
        positive, negative = leave_out_own(self, related, left, right), ~related
        return positive, negative if self.valid is None else negative & self.valid[right]

    def rows(self, rows: slice) -> Self:
        """The labels of some anchors, and the index of each among the references."""
        own = self.own
        if self.reference_labels is None:
            own = torch.arange(len(self.labels), device=self.device)
        return self._with(
            labels=self.labels[rows], reference_labels=self.references, own=None if own is None else own[rows]
        )

    def gather(self, group: ProcessGroup, references: RowPartition) -> Self:
        """The labels of the references of all ranks, and the index of each anchor among them."""
        if self.reference_labels is None:
            own: Tensor | None = torch.arange(len(self.labels), device=self.device) + references.offset
        else:
            own = None if self.own is None else torch.where(self.own < 0, -1, self.own + references.offset)
        return self._with(
            reference_labels=group.gather(self.references, references),
            own=own,
            valid=None if self.valid is None else group.gather(self.valid, references),
        )

    def including_itself(self) -> Self:
        """The same labels without an anchor's index among the references: it has the labels of its copy."""
        return self._with(reference_labels=self.references, own=None)

    def with_shape(self, anchors: int, references: int) -> Self:
        """Check the numbers of labels."""
        shape = (len(self.labels), len(self.references))
        if shape != (anchors, references):
            raise ValueError(
                f"relation must have shape ({anchors}, {references}), anchors x references, but its labels have {shape}"
            )
        return self

    def _with(self, **changes: Any) -> Self:
        return make_unchecked(type(self), **{**vars(self), **changes})


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
        """The hierarchy of a table of parents.

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
        """The relation of items with a list of labels each, whole numbers from 0.

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
        if rows.shape[-1] == 1 and columns.numel() == columns.shape[-1]:  # a chunk of the matrix
            shape = torch.broadcast_shapes(rows.shape, columns.shape)  # type: ignore[no-untyped-call]
            shared = (left[rows.reshape(-1)] @ right[columns.reshape(-1)].T).view(shape)
        else:
            shared = (left[rows] * right[columns]).sum(dim=-1)
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


@dataclass(frozen=True, eq=False)
class Grades(Relation):
    """A relevance in [0, 1] for each pair, as a matrix; a pair without one (NaN) is neither positive nor negative.

    Args:
        matrix: ``(m, n)``, any float dtype.

    Examples:
        >>> import torch
        >>> relation = Grades(torch.tensor([[0.5, 0.0, torch.nan]]))
        >>> [mask.tolist() for mask in relation.masks()]
        [[[True, False, False]], [[False, True, False]]]
    """

    matrix: Tensor

    def __post_init__(self) -> None:
        matrix = self.matrix
        if not isinstance(matrix, Tensor) or not matrix.is_floating_point() or matrix.ndim != 2:
            what = (
                f"of dtype {matrix.dtype} and shape {tuple(matrix.shape)}"
                if isinstance(matrix, Tensor)
                else type(matrix).__name__
            )
            raise ValueError(f"matrix must be a matrix of numbers between 0 and 1, but it is {what}")
        _check_scores("matrix", matrix[~matrix.isnan()] if can_read_values(matrix) else matrix)

    @property
    def device(self) -> torch.device:
        """The device of the matrix."""
        return self.matrix.device

    @property
    def is_graded(self) -> bool:
        """Always."""
        return True

    def relevance(self, rows: Tensor, columns: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
        """The entries, zero for pairs without one."""
        return self.matrix[rows, columns].nan_to_num(0.0).to(dtype)

    def masks(self, rows: slice | None = None, columns: slice | None = None) -> tuple[Tensor, Tensor]:
        """Positive above zero, negative at zero."""
        matrix = self.matrix[rows or slice(None), columns or slice(None)]
        return matrix > 0.0, matrix == 0.0

    def rows(self, rows: slice) -> Grades:
        """Some rows of the matrix."""
        return make_unchecked(Grades, matrix=self.matrix[rows])

    def with_shape(self, anchors: int, references: int) -> Grades:
        """Check the shape."""
        if self.matrix.shape != (anchors, references):
            raise ValueError(
                f"relation must have shape ({anchors}, {references}), anchors x references, but its matrix has shape "
                f"{tuple(self.matrix.shape)}"
            )
        return self


def _check_scores(name: str, scores: Tensor) -> None:
    if can_read_values(scores) and len(scores.reshape(-1)) and not bool(((scores >= 0.0) & (scores <= 1.0)).all()):
        bad = scores[~((scores >= 0.0) & (scores <= 1.0))].reshape(-1)[0]
        raise ValueError(f"{name} must be between 0 and 1, but one of them is {float(bad):g}")


@dataclass(frozen=True, eq=False)
class GradedPairs(Relation):
    """A table of pairs with a score: anchor, reference, relevance.  Pairs that it does not list are ignored.

    An anchor may have several references.  A score of zero makes a pair negative.

    Args:
        anchors: indices of anchors, ``(t,)``.
        references: indices of references, ``(t,)``; each pair once.
        scores: their relevance in [0, 1], ``(t,)``.

    Examples:
        >>> import torch
        >>> pairs = GradedPairs(torch.tensor([0, 0]), torch.tensor([1, 2]), torch.tensor([0.8, 0.0]))
        >>> [mask.tolist() for mask in pairs.with_shape(1, 3).masks()]
        [[[False, True, False]], [[False, False, True]]]
    """

    anchors: Tensor
    references: Tensor
    scores: Tensor

    def __post_init__(self) -> None:
        anchors, references = check_index("anchors", self.anchors), check_index("references", self.references)
        scores = self.scores
        if (
            not isinstance(scores, Tensor)
            or not scores.is_floating_point()
            or not scores.shape == anchors.shape == references.shape
        ):
            raise ValueError(
                f"anchors, references and scores must have one entry for each pair, but there are {len(anchors)}, "
                f"{len(references)} and {tuple(scores.shape) if isinstance(scores, Tensor) else type(scores).__name__}"
            )
        _check_scores("scores", scores)
        store_fields(self, anchors=anchors, references=references)

    @property
    def device(self) -> torch.device:
        """The device of the indices."""
        return self.anchors.device

    @property
    def is_graded(self) -> bool:
        """Always."""
        return True

    def masks(self, rows: slice | None = None, columns: slice | None = None) -> tuple[Tensor, Tensor]:
        """Pairs of indices have no size before `with_shape`."""
        raise TypeError("GradedPairs have no masks before with_shape(anchors, references)")

    def with_shape(self, anchors: int, references: int) -> Grades:
        """Convert the table to a matrix."""
        check_range("anchors of relation", self.anchors, anchors, "anchors")
        check_range("references of relation", self.references, references, "references")
        matrix = self.scores.new_full((anchors * references,), torch.nan)
        return Grades(
            matrix.index_copy(0, self.anchors * references + self.references, self.scores).view(anchors, references)
        )


@dataclass(frozen=True, eq=False)
class Ignoring(Relation):
    """A relation without some of its pairs, which are neither positive nor negative.

    Args:
        base: the relation.
        ignored: the pairs that are left out, ``(m, n)`` booleans.

    Examples:
        >>> import torch
        >>> from likewise.formula import Labels
        >>> relation = Ignoring(Labels(torch.tensor([0, 0, 1])), torch.eye(3, dtype=torch.bool).roll(1, 1))
        >>> relation.masks()[0].int().tolist()
        [[0, 0, 0], [1, 0, 0], [0, 0, 0]]
    """

    base: Relation
    ignored: Tensor

    def __post_init__(self) -> None:
        if not isinstance(self.ignored, Tensor) or self.ignored.dtype != torch.bool or self.ignored.ndim != 2:
            raise ValueError("ignored must be a boolean matrix, anchors x references")

    @property
    def device(self) -> torch.device:
        """The device of the relation."""
        return self.base.device

    @property
    def is_graded(self) -> bool:
        """Whether the underlying relation is."""
        return self.base.is_graded

    def relevance(self, rows: Tensor, columns: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
        """That of the underlying relation, zero for pairs that are left out."""
        return torch.where(self.ignored[rows, columns], 0.0, self.base.relevance(rows, columns, dtype))

    def masks(self, rows: slice | None = None, columns: slice | None = None) -> tuple[Tensor, Tensor]:
        """Those of the underlying relation without the pairs."""
        keep = ~self.ignored[rows or slice(None), columns or slice(None)]
        positive, negative = self.base.masks(rows, columns)
        return positive & keep, negative & keep

    def rows(self, rows: slice) -> Ignoring:
        """Some rows of both."""
        return Ignoring(self.base.rows(rows), self.ignored[rows])

    def gather(self, group: ProcessGroup, references: RowPartition) -> Ignoring:
        """The mask already covers the references of all ranks."""
        return Ignoring(self.base.gather(group, references), self.ignored)

    def including_itself(self) -> Ignoring:
        """The underlying relation with an anchor as its own positive, unless that pair is left out."""
        return Ignoring(self.base.including_itself(), self.ignored)

    def with_shape(self, anchors: int, references: int) -> Ignoring:
        """Check both."""
        if self.ignored.shape != (anchors, references):
            raise ValueError(
                f"ignored must have shape ({anchors}, {references}), anchors x references, but it has {tuple(self.ignored.shape)}"
            )
        return Ignoring(self.base.with_shape(anchors, references), self.ignored)


def binarize(relation: Relation, threshold: float, anchors: int, references: int) -> Masks:
    """A graded relation as positive and negative pairs, for a loss that reads no grades.

    Args:
        relation: the relation.
        threshold: a pair is positive from this relevance on, negative below; it stays left out where it was.
        anchors: the number of anchors.
        references: the number of references.

    Examples:
        >>> import torch
        >>> binarize(Grades(torch.tensor([[0.8, 0.3, torch.nan]])), 0.5, 1, 3).negative.tolist()
        [[False, True, False]]
    """
    relation = relation.with_shape(anchors, references)
    rows, columns = (torch.arange(size, device=relation.device) for size in (anchors, references))
    positive, negative = relation.masks()
    above = relation.relevance(rows[:, None], columns[None, :]) >= threshold
    return Masks((positive | negative) & above, (positive | negative) & ~above)


def find_levels(relation: Relation) -> Levels | None:
    """The hierarchy that a relation refines, or ``None``.

    Examples:
        >>> import torch
        >>> levels = Levels(torch.tensor([[0, 0], [1, 0]]))
        >>> find_levels(Ignoring(levels, torch.eye(2, dtype=torch.bool))) is levels
        True
    """
    while isinstance(relation, Ignoring | Mined):
        relation = relation.base
    return relation if isinstance(relation, Levels) else None
