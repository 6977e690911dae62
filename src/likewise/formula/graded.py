"""Graded relations: pairs with a relevance between 0 and 1.

`GradedPairs` and `Grades` hold given relevances; `Ignoring` excludes pairs from another relation, and `binarize`
converts grades to positive and negative pairs.  A pair is positive if its relevance is above zero.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from likewise.distributed import ProcessGroup, RowPartition
from likewise.formula.checks import can_read_values, same_device
from likewise.formula.label_rows import Levels
from likewise.formula.relations import (
    ALL,
    Masks,
    Mined,
    Relation,
    check_index,
    check_range,
    make_unchecked,
    shape_error,
    store_fields,
)


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
        matrix = self.matrix[rows or ALL, columns or ALL]
        return matrix > 0.0, matrix == 0.0

    def rows(self, rows: slice) -> Grades:
        """Some rows of the matrix."""
        return make_unchecked(Grades, matrix=self.matrix[rows])

    def with_shape(self, anchors: int, references: int) -> Grades:
        """Check the shape."""
        if self.matrix.shape != (anchors, references):
            raise shape_error("matrix", tuple(self.matrix.shape), anchors, references)
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
        same_device("references", references, anchors.device, "anchors")
        same_device("scores", scores, anchors.device, "anchors")
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
        places = self.anchors * references + self.references
        if can_read_values(places):
            listed, times = places.unique(return_counts=True)  # type: ignore[no-untyped-call]
            if len(listed) < len(places):
                pair = divmod(int(listed[times > 1][0]), references)
                raise ValueError(
                    f"relation must list each pair once, but it has that of anchor and reference {pair} twice"
                )
        matrix = self.scores.new_full((anchors * references,), torch.nan)
        return Grades(matrix.index_copy(0, places, self.scores).view(anchors, references))


@dataclass(frozen=True, eq=False)
class Ignoring(Relation):
    """A relation without some of its pairs, which are neither positive nor negative.

    Args:
        base: the relation.
        ignored: the pairs to exclude, ``(m, n)`` booleans.

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
            is_tensor = isinstance(self.ignored, Tensor)
            what = (
                f"of dtype {self.ignored.dtype} and shape {tuple(self.ignored.shape)}"
                if is_tensor
                else repr(self.ignored)
            )
            raise ValueError(f"ignored must be a boolean matrix, anchors x references, but it is {what}")

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
        keep = ~self.ignored[rows or ALL, columns or ALL]
        positive, negative = self.base.masks(rows, columns)
        return positive & keep, negative & keep

    def rows(self, rows: slice) -> Ignoring:
        """Some rows of both."""
        return Ignoring(self.base.rows(rows), self.ignored[rows])

    def gather(self, group: ProcessGroup, references: RowPartition) -> Ignoring:
        """The mask already covers the references of all ranks."""
        return Ignoring(self.base.gather(group, references), self.ignored)

    def including_itself(self) -> Ignoring:
        """Return the underlying relation with an anchor as its own positive, unless that pair is excluded."""
        return Ignoring(self.base.including_itself(), self.ignored)

    def with_shape(self, anchors: int, references: int) -> Ignoring:
        """Check both."""
        if self.ignored.shape != (anchors, references):
            raise ValueError(
                f"ignored must have shape ({anchors}, {references}), anchors x references, but it has {tuple(self.ignored.shape)}"
            )
        return Ignoring(self.base.with_shape(anchors, references), self.ignored)


def binarize(relation: Relation, threshold: float, anchors: int, references: int) -> Masks:
    """Convert a graded relation to positive and negative pairs, for a loss that does not use grades.

    Args:
        relation: the relation.
        threshold: pairs of at least this relevance are positive, others negative; excluded pairs stay excluded.
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
    """Return the hierarchy that a relation refines, or ``None``.

    Examples:
        >>> import torch
        >>> levels = Levels(torch.tensor([[0, 0], [1, 0]]))
        >>> find_levels(Ignoring(levels, torch.eye(2, dtype=torch.bool))) is levels
        True
    """
    while isinstance(relation, Ignoring | Mined):
        relation = relation.base
    return relation if isinstance(relation, Levels) else None
