"""Relations of labels: pairs with equal labels are positive."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor

from likewise._compat import is_transformed
from likewise.distributed import ProcessGroup, RowPartition
from likewise.formula.checks import labels_of, same_device
from likewise.formula.masking import is_equal
from likewise.formula.relations import (
    ALL,
    Relation,
    check_index,
    check_range,
    make_unchecked,
    shape_error,
    store_fields,
)

if TYPE_CHECKING:
    from typing import Self


@dataclass(frozen=True, eq=False)
class PositiveIndex:
    """The positions of each anchor's positives among the columns of the matrix.

    Args:
        index: ``(m, k)``, within the number of columns.
        exists: which of them are positives, ``(m, k)``; ``None``: all.

    Examples:
        >>> import torch
        >>> PositiveIndex(torch.tensor([[1]])).index.shape
        torch.Size([1, 1])
    """

    index: Tensor
    exists: Tensor | None = None

    @property
    def mask(self) -> Tensor:
        """Which entries are positives, ``(m, k)`` booleans."""
        return torch.ones_like(self.index, dtype=torch.bool) if self.exists is None else self.exists

    def rows(self, rows: slice) -> PositiveIndex:
        """The positions of some anchors' positives."""
        return PositiveIndex(self.index[rows], None if self.exists is None else self.exists[rows])


@dataclass(frozen=True, eq=False)
class LabelRelation(Relation):
    """A relation that compares the labels of the anchor with those of the reference.

    Args:
        labels: of the anchors, ``(m,)`` or ``(m, L)``.
        reference_labels: of the references; without them the references are the anchors themselves, and no anchor is its
            own positive.
        own: for each anchor the index of the reference that is the anchor itself, −1 for none, where references are
            given and contain copies of the anchors (a memory, a gathered batch).
        valid: which references exist, ``(n,)`` booleans; a memory that is not yet full leaves gaps.
    """

    labels: Tensor
    reference_labels: Tensor | None = None
    own: Tensor | None = None
    valid: Tensor | None = None

    fields: ClassVar[tuple[str, ...]] = ("labels", "reference_labels", "own", "valid")
    """The names of the fields; torch.compile does not trace `dataclasses.replace`."""

    def __post_init__(self) -> None:
        labels = self.check_rows("labels", self.labels)
        references = self.reference_labels
        if references is not None:
            references = self.check_rows("reference_labels", references)
            same_device("reference_labels", references, labels.device, "labels")
            if references.shape[1:] != labels.shape[1:]:
                raise ValueError(
                    f"reference_labels must have the {labels.shape[1]} columns of labels, but have {references.shape[1]}"
                )
        own = self.own
        if own is not None:
            own = check_index("own", own)
            if references is None:
                raise ValueError(f"own must be None where reference_labels are None, but it has {len(own)} entries")
            if len(own) != len(labels):
                raise ValueError(f"own must have one entry for each of the {len(labels)} labels, but it has {len(own)}")
            check_range("own", own, len(references), "references", least=-1)
        if self.valid is not None and (references is None or self.valid.shape != references.shape[:1]):
            size = "no" if references is None else len(references)
            raise ValueError(
                f"valid must be one boolean for each of the reference_labels, of which there are {size}, but its shape is "
                f"{tuple(self.valid.shape)}"
            )
        store_fields(self, labels=labels, reference_labels=references, own=own)

    @classmethod
    @abstractmethod
    def check_rows(cls, name: str, value: object) -> Tensor:
        """Check one argument, labels."""

    @property
    def references(self) -> Tensor:
        """The labels of the references."""
        return self.labels if self.reference_labels is None else self.reference_labels

    @property
    def device(self) -> torch.device:
        """The device of the labels."""
        return self.labels.device

    def leave_out_own(self, related: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
        """Pairs without those of an anchor and itself, and without references that do not exist.

        Args:
            related: which pairs are related, of the shape to which the indices broadcast.
            rows: indices of anchors.
            columns: indices of references.
        """
        if self.reference_labels is None:
            related = related & (rows != columns)
        elif self.own is not None:
            related = related & (self.own[rows] != columns)
        return related if self.valid is None else related & self.valid[columns]

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
        """Return the labels without the anchors' indices among the references: a copy is then a positive."""
        return self._with(reference_labels=self.references, own=None)

    def with_shape(self, anchors: int, references: int) -> Self:
        """Check the numbers of labels."""
        shape = (self.labels.shape[0], self.references.shape[0])
        if shape != (anchors, references):
            raise shape_error("labels", shape, anchors, references)
        return self

    def _with(self, **changes: object) -> Self:
        return make_unchecked(type(self), **{**{name: getattr(self, name) for name in self.fields}, **changes})


@dataclass(frozen=True, eq=False)
class Labels(LabelRelation):
    """Pairs with equal labels are positive, pairs with different labels negative.

    Args:
        labels: labels of the anchors, ``(m,)``, any integer dtype.
        reference_labels: labels of the references, ``(n,)``; without them the references are the anchors themselves,
            and no anchor is its own positive.
        own: for each anchor the index of the reference that is the anchor itself, −1 for none, where references are
            given and contain copies of the anchors (a memory, a gathered batch).
        valid: which references exist, ``(n,)`` booleans; a memory that is not yet full leaves gaps.
        ordered: whether reference_labels are ascending, as those of proxies, so that engines need not sort them.
        positives: the positions of each anchor's positives, if they are known, as for proxies.

    Examples:
        >>> import torch
        >>> Labels(torch.tensor([7, 8]), torch.tensor([8, 8, 7])).masks()[0].int().tolist()
        [[0, 0, 1], [1, 1, 0]]
    """

    ordered: bool = False
    positives: PositiveIndex | None = None

    fields: ClassVar[tuple[str, ...]] = (*LabelRelation.fields, "ordered", "positives")

    @classmethod
    def check_rows(cls, name: str, value: object) -> Tensor:
        """Check one argument, a vector of labels."""
        return labels_of(name, value, None, None, "")

    def masks(self, rows: slice | None = None, columns: slice | None = None) -> tuple[Tensor, Tensor]:
        """Compare labels; an anchor is excluded from its positives by index, never by value."""
        labels = self.labels if rows is None else self.labels[rows]
        references = self.references if columns is None else self.references[columns]
        rows, columns = rows or ALL, columns or ALL
        same = is_equal(labels.unsqueeze(1), references.unsqueeze(0))
        negative = ~same
        positive = self._without_own(same, rows, columns)
        if self.valid is None:
            return positive, negative
        valid = self.valid[None, columns]
        return positive & valid, negative & valid

    def _without_own(self, same: Tensor, rows: slice, columns: slice) -> Tensor:
        """Leave out the pairs of an anchor and itself, in place where possible."""
        if self.own is None:
            if self.reference_labels is not None:
                return same
            if rows == columns and not is_transformed():  # a square on the diagonal, usually the whole matrix
                return same.fill_diagonal_(False)
        index = torch.arange(len(self.references), device=same.device)
        own = index if self.own is None else self.own
        return same & (own[rows, None] != index[None, columns])

    def rows(self, rows: slice) -> Self:
        """The labels of some anchors, the index of each among the references, and the positions of their positives."""
        part = super().rows(rows)
        return part if self.positives is None else part._with(positives=self.positives.rows(rows))

    def gather(self, group: ProcessGroup, references: RowPartition) -> Self:
        """The labels of the references of all ranks, and the index of each anchor among them."""
        return super().gather(group, references)._with(ordered=False, positives=None)

    def relevance(self, rows: Tensor, columns: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
        """One for equal labels; an anchor is not relevant to itself."""
        return self.leave_out_own(self.labels[rows] == self.references[columns], rows, columns).to(dtype)

    def index_pairs(self) -> Self:
        """Return labels that are the positions of the only positive of each anchor, with these positions as an index."""
        return self._with(positives=PositiveIndex(self.labels[:, None]))

    def including_itself(self) -> Self:
        """Return the labels without the anchors' indices among the references: a copy is then a positive."""
        return super().including_itself()._with(positives=None)
