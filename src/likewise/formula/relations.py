"""Relations: which references are positive and which are negative to an anchor.

A relation has a shape, anchors x references, and computes the masks of any rectangle of it, so that engines can work on
tiles.  A pair is positive, negative or neither (an anchor and itself), never both.  Each pair also has a relevance in
[0, 1]; it is 1 for every positive pair, except in graded relations (`likewise.formula.graded`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypeVar

import torch
from torch import Tensor

from likewise.distributed import ProcessGroup, RowPartition
from likewise.formula.checks import can_read_values, same_device
from likewise.formula.expressions import Formula

ALL = slice(None)  # not a default argument, which torch.compile cannot trace before torch 2.12


class Relation(ABC):
    """The positive and negative pairs of anchors and references.

    Examples:
        >>> import torch
        >>> from likewise.formula import Labels
        >>> positive, negative = Labels(torch.tensor([0, 0, 1])).masks()
        >>> positive.int().tolist()
        [[0, 1, 0], [1, 0, 0], [0, 0, 0]]
    """

    @property
    @abstractmethod
    def device(self) -> torch.device:
        """The device of the relation, which must be that of the embeddings."""

    @abstractmethod
    def masks(self, rows: slice | None = None, columns: slice | None = None) -> tuple[Tensor, Tensor]:
        """The positive and the negative pairs of a rectangle, or of all; two boolean tensors."""

    def rows(self, rows: slice) -> Relation:
        """The relation of some of the anchors to all references; the chunked engine uses it."""
        raise TypeError(
            f"{type(self).__name__} must define rows() to be computed in chunks of anchors, but it does not"
        )

    def gather(self, group: ProcessGroup, references: RowPartition) -> Relation:
        """The relation of this rank's anchors to the references of all ranks; masks and indices already cover all ranks."""
        return self

    @abstractmethod
    def with_shape(self, anchors: int, references: int) -> Relation:
        """The relation for these numbers of anchors and references; an error if its size differs."""

    @property
    def is_graded(self) -> bool:
        """Whether positive pairs may have different relevances; losses that do not use them reject such a relation."""
        return False

    def relevance(self, rows: Tensor, columns: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
        """The relevance of pairs, in [0, 1]: above zero for positive pairs, zero for negative ones.

        Args:
            rows: indices of anchors.
            columns: indices of references; both broadcast, as those of `likewise.formula.PerPair` do.
            dtype: the dtype of the result.
        """
        return self.masks()[0][rows, columns].to(dtype)

    def including_itself(self) -> Relation:
        """Return the relation in which an anchor among the references is its own positive; masks are unchanged."""
        return self


def shape_error(what: str, shape: tuple[int, ...], anchors: int, references: int) -> ValueError:
    """Return the error for a relation of another shape."""
    return ValueError(
        f"relation must have shape ({anchors}, {references}), anchors x references, but the shape of its {what} is {shape}"
    )


@dataclass(frozen=True, eq=False)
class Masks(Relation):
    """Two boolean matrices, for relevance that labels cannot express (several labels per sample, graded groups).

    Examples:
        >>> import torch
        >>> eye = torch.eye(2, dtype=torch.bool)
        >>> Masks(positive=eye, negative=~eye).masks()[1].tolist()
        [[False, True], [True, False]]
    """

    positive: Tensor
    negative: Tensor

    def __post_init__(self) -> None:
        for name, mask in (("positive", self.positive), ("negative", self.negative)):
            if not isinstance(mask, Tensor):
                raise TypeError(f"{name} must be a boolean matrix, but it is a {type(mask).__name__}")
            if mask.dtype != torch.bool or mask.ndim != 2:
                raise ValueError(
                    f"{name} must be a boolean matrix, but it is of dtype {mask.dtype} and shape {tuple(mask.shape)}"
                )
        if self.positive.shape != self.negative.shape:
            raise ValueError(
                f"positive and negative must have one shape, but they have "
                f"{tuple(self.positive.shape)} and {tuple(self.negative.shape)}"
            )
        if can_read_values(self.positive) and bool((both := self.positive & self.negative).any()):
            raise ValueError(
                "positive and negative pairs of a relation must not overlap, but the pair of anchor and reference "
                f"{tuple(both.nonzero()[0].tolist())} is both"
            )

    @property
    def device(self) -> torch.device:
        """The device of the masks."""
        return self.positive.device

    def masks(self, rows: slice | None = None, columns: slice | None = None) -> tuple[Tensor, Tensor]:
        """Slice the masks."""
        rows, columns = rows or ALL, columns or ALL
        return self.positive[rows, columns], self.negative[rows, columns]

    def rows(self, rows: slice) -> Masks:
        """Some rows of the masks."""
        return make_unchecked(Masks, positive=self.positive[rows], negative=self.negative[rows])

    def with_shape(self, anchors: int, references: int) -> Masks:
        """Check the shape."""
        if self.positive.shape != (anchors, references):
            raise shape_error("masks", tuple(self.positive.shape), anchors, references)
        return self


def _mark_pairs(rows: Tensor, columns: Tensor, valid: Tensor | None, shape: tuple[int, int]) -> Tensor:
    """A boolean matrix that is true at the valid (row, column) pairs; computed without synchronizing."""
    # bytes, because CUDA does not scatter booleans; an invalid entry writes a zero, which changes nothing
    flat = torch.zeros(shape[0] * shape[1], dtype=torch.uint8, device=rows.device)
    hits = torch.ones_like(rows, dtype=torch.uint8) if valid is None else valid.to(torch.uint8)
    return flat.scatter_reduce(0, rows * shape[1] + columns, hits, reduce="amax").view(shape).bool()


def check_index(name: str, index: Any) -> Tensor:
    """Check indices, a tensor or an array, and convert them to an int64 tensor."""
    if hasattr(index, "__array_interface__") and index.dtype.kind in "iu":  # torch lacks some dtypes and strides
        index = torch.from_numpy(index.astype("int64", order="C"))
    if not isinstance(index, Tensor):
        raise TypeError(f"{name} must be a tensor of indices, but it is a {type(index).__name__}")
    if index.is_floating_point() or index.dtype == torch.bool or index.ndim != 1:
        raise TypeError(f"{name} must be 1-D integer indices, but they are of dtype {index.dtype}, {index.ndim}-D")
    return index.to(torch.int64)


def check_range(name: str, index: Tensor, size: int, of: str, least: int = 0) -> None:
    """Check that indices are within a size."""
    if can_read_values(index) and len(index) and (int(index.min()) < least or int(index.max()) >= size):
        raise ValueError(
            f"{name} must be indices in {least}..{size - 1} of the {of}, but they reach from {int(index.min())} "
            f"to {int(index.max())}"
        )


def store_fields(relation: object, **fields: object) -> None:
    """Set fields of a frozen relation while it is constructed."""
    for name, value in fields.items():
        object.__setattr__(relation, name, value)


Kind = TypeVar("Kind", bound=Relation)


def make_unchecked(kind: type[Kind], **fields: object) -> Kind:
    """Return a relation made without checks from one that was checked."""
    relation = object.__new__(kind)
    store_fields(relation, **fields)
    return relation


@dataclass(frozen=True, eq=False)
class Pairs(Relation):
    """Explicit pairs by index: positives ``(anchors, positives)`` and negatives ``(negative_anchors, negatives)``.

    Examples:
        >>> import torch
        >>> zero, one, two = torch.tensor([0]), torch.tensor([1]), torch.tensor([2])
        >>> Pairs(zero, one, zero, two).with_shape(1, 3).masks()[1].tolist()
        [[False, False, True]]
    """

    anchors: Tensor
    positives: Tensor
    negative_anchors: Tensor
    negatives: Tensor

    def __post_init__(self) -> None:
        names = ("anchors", "positives", "negative_anchors", "negatives")
        store_fields(self, **{name: check_index(name, getattr(self, name)) for name in names})
        for left, right in (names[:2], names[2:]):
            if len(getattr(self, left)) != len(getattr(self, right)):
                raise ValueError(
                    f"{left} and {right} must have one length, but they have "
                    f"{len(getattr(self, left))} and {len(getattr(self, right))}"
                )

    @property
    def device(self) -> torch.device:
        """The device of the indices."""
        return self.anchors.device

    def masks(self, rows: slice | None = None, columns: slice | None = None) -> tuple[Tensor, Tensor]:
        """Pairs of indices have no size before `with_shape`."""
        raise TypeError("Pairs have no masks before with_shape(anchors, references)")

    def rows(self, rows: slice) -> Relation:
        """Pairs of indices have no size before `with_shape`."""
        raise TypeError("Pairs have no rows before with_shape(anchors, references)")

    def with_shape(self, anchors: int, references: int) -> Masks:
        """Convert the pairs to masks."""
        for name, index in (("anchors", self.anchors), ("negative_anchors", self.negative_anchors)):
            check_range(f"{name} of relation", index, anchors, "anchors")
        for name, index in (("positives", self.positives), ("negatives", self.negatives)):
            check_range(f"{name} of relation", index, references, "references")
        shape = (anchors, references)
        return Masks(
            _mark_pairs(self.anchors, self.positives, None, shape),
            _mark_pairs(self.negative_anchors, self.negatives, None, shape),
        )


@dataclass(frozen=True, eq=False)
class Triplets(Relation):
    """Triplets by index: each has an anchor, a positive and a negative reference.

    Triplet losses use the triplets themselves; every other loss uses the pairs that the triplets contain.

    Args:
        anchors: indices of anchors, ``(t,)``.
        positives: indices of references, ``(t,)``.
        negatives: indices of references, ``(t,)``.
        valid: which triplets count; a miner on a GPU leaves unused entries to avoid synchronizing.
        shape: how many anchors and references there are; set by `with_shape`.
        per_anchor: the number of triplets of each anchor, used or not, if they come in the order of anchors; set by
            `of_rows`.

    Examples:
        >>> import torch
        >>> zero, one, two = torch.tensor([0]), torch.tensor([1]), torch.tensor([2])
        >>> Triplets(zero, one, two).with_shape(3, 3).masks()[0].nonzero().tolist()
        [[0, 1]]
    """

    anchors: Tensor
    positives: Tensor
    negatives: Tensor
    valid: Tensor | None = None
    shape: tuple[int, int] | None = None
    per_anchor: int | None = None

    @classmethod
    def of_rows(cls, positives: Tensor, negatives: Tensor, valid: Tensor) -> Triplets:
        """Return as many triplets for each anchor, from matrices ``(m, k)`` with one row per anchor.

        Examples:
            >>> import torch
            >>> Triplets.of_rows(torch.tensor([[1], [0]]), torch.tensor([[2], [2]]), torch.ones(2, 1).bool()).anchors
            tensor([0, 1])
        """
        m, k = positives.shape
        anchors = torch.arange(m, device=positives.device)[:, None].expand(m, k)
        anchors, positives, negatives, valid = (each.reshape(-1) for each in (anchors, positives, negatives, valid))
        return cls(anchors, positives, negatives, valid, per_anchor=k)

    def __post_init__(self) -> None:
        names = ("anchors", "positives", "negatives")
        store_fields(self, **{name: check_index(name, getattr(self, name)) for name in names})
        if not len(self.anchors) == len(self.positives) == len(self.negatives):
            raise ValueError(
                f"anchors, positives and negatives of triplets must have one length, but they have "
                f"{len(self.anchors)}, {len(self.positives)} and {len(self.negatives)}"
            )
        if self.valid is not None and (self.valid.dtype != torch.bool or self.valid.shape != self.anchors.shape):
            raise ValueError(
                f"valid must be one boolean for each of the {len(self.anchors)} triplets, but it is of dtype "
                f"{self.valid.dtype} and shape {tuple(self.valid.shape)}"
            )

    @property
    def device(self) -> torch.device:
        """The device of the indices."""
        return self.anchors.device

    def masks(self, rows: slice | None = None, columns: slice | None = None) -> tuple[Tensor, Tensor]:
        """The pairs that the triplets contain."""
        # torch.compile cannot trace slice.indices before torch 2.12
        part = self if rows is None and self.shape is not None else self.rows(rows or ALL)
        assert part.shape is not None
        columns = columns or ALL
        positive = _mark_pairs(part.anchors, part.positives, part.valid, part.shape)
        negative = _mark_pairs(part.anchors, part.negatives, part.valid, part.shape)
        return positive[:, columns], negative[:, columns]

    def rows(self, rows: slice) -> Triplets:
        """Return the triplets of some anchors; the others become unused entries, as counting would synchronize."""
        if self.shape is None:
            raise TypeError("Triplets have no masks before with_shape(anchors, references)")
        first, end, _ = rows.indices(self.shape[0])
        if (first, end) == (0, self.shape[0]):
            return self
        if self.per_anchor is not None:
            own = slice(first * self.per_anchor, end * self.per_anchor)
            return self._with(
                anchors=self.anchors[own] - first,
                positives=self.positives[own],
                negatives=self.negatives[own],
                valid=None if self.valid is None else self.valid[own],
                shape=(end - first, self.shape[1]),
            )
        inside = (self.anchors >= first) & (self.anchors < end)
        return self._with(
            anchors=(self.anchors - first).clamp(0, max(end - first - 1, 0)),
            valid=inside if self.valid is None else inside & self.valid,
            shape=(end - first, self.shape[1]),
        )

    def with_shape(self, anchors: int, references: int) -> Triplets:
        """Check the indices."""
        check_range("anchors of relation", self.anchors, anchors, "anchors")
        check_range("positives of relation", self.positives, references, "references")
        check_range("negatives of relation", self.negatives, references, "references")
        is_matrix = self.per_anchor is not None and self.per_anchor * anchors == len(self.anchors)
        return self._with(shape=(anchors, references), per_anchor=self.per_anchor if is_matrix else None)

    def compact(self) -> Triplets:
        """Return the triplets without unused entries; synchronizes to read their number."""
        if self.valid is None:
            return self
        index = self.valid.nonzero().squeeze(1)
        return Triplets(self.anchors[index], self.positives[index], self.negatives[index], None, self.shape)

    def _with(self, **changes: object) -> Triplets:
        names = ("anchors", "positives", "negatives", "valid", "shape", "per_anchor")
        return make_unchecked(Triplets, **{**{name: getattr(self, name) for name in names}, **changes})


@dataclass(frozen=True, eq=False)
class Mined(Relation):
    """A relation refined by conditions on the similarity, as declared by a pair miner.

    The conditions are formulas of `s` and of folds over the underlying relation (the hardest negative, …), so that an
    engine can apply them tile by tile; constructing a ``Mined`` computes nothing.

    Examples:
        >>> import torch
        >>> from likewise.formula import NEGATIVES, Labels, largest, s
        >>> base = Labels(torch.tensor([0, 0, 1]))
        >>> mined = Mined(base, keep_positive=s < largest(s, NEGATIVES), keep_negative=0.5 < s)
    """

    base: Relation
    keep_positive: Formula
    keep_negative: Formula

    @property
    def device(self) -> torch.device:
        """The device of the underlying relation."""
        return self.base.device

    def masks(self, rows: slice | None = None, columns: slice | None = None) -> tuple[Tensor, Tensor]:
        """Not available without similarities."""
        raise TypeError("the masks of a Mined relation depend on similarities; an engine computes them")

    @property
    def is_graded(self) -> bool:
        """Whether the underlying relation is."""
        return self.base.is_graded

    def relevance(self, rows: Tensor, columns: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
        """That of the underlying relation."""
        return self.base.relevance(rows, columns, dtype)

    def rows(self, rows: slice) -> Mined:
        """The same conditions on fewer rows."""
        return Mined(self.base.rows(rows), self.keep_positive, self.keep_negative)

    def gather(self, group: ProcessGroup, references: RowPartition) -> Mined:
        """The same conditions on the references of all ranks."""
        return Mined(self.base.gather(group, references), self.keep_positive, self.keep_negative)

    def with_shape(self, anchors: int, references: int) -> Mined:
        """Check the underlying relation."""
        return Mined(self.base.with_shape(anchors, references), self.keep_positive, self.keep_negative)


ViewRelation: TypeAlias = Literal["views", "paired"]
"""Two views of the same samples, by the order of their rows; see `likewise.formula.views`."""

RelationLike: TypeAlias = Relation | tuple[Any, ...] | ViewRelation
"""A relation; the index tensors or arrays of a miner, three for triplets and four for pairs; or two views."""


def as_relation(relation: object, *, more: str = "") -> Relation:
    """Convert an argument to a relation: a relation, or index tensors as returned by miners.

    Args:
        relation: a `Relation`; or ``(anchors, positives, negatives)``, which are `Triplets`; or ``(anchors, positives,
            negative_anchors, negatives)``, which are `Pairs`.
        more: what else the caller accepts, for the error message.

    Examples:
        >>> import torch
        >>> type(as_relation((torch.tensor([0]), torch.tensor([1]), torch.tensor([2])))).__name__
        'Triplets'
        >>> as_relation((torch.tensor([0]), torch.tensor([1])))
        Traceback (most recent call last):
        ...
        TypeError: relation must be a Relation (Labels, Pairs, Triplets, Masks) or a tuple of 3 index tensors (triplets) or 4 (pairs), but it is a tuple of 2
    """
    if isinstance(relation, Relation):
        return relation
    if not isinstance(relation, tuple | list) or len(relation) not in (3, 4):
        size = f" of {len(relation)}" if isinstance(relation, tuple | list) else ""
        raise TypeError(
            f"relation must be a Relation (Labels, Pairs, Triplets, Masks){more} or a tuple of 3 index tensors (triplets) "
            f"or 4 (pairs), but it is a {type(relation).__name__}{size}"
        )
    indices = [check_index(f"relation[{place}]", index) for place, index in enumerate(relation)]
    for place, index in enumerate(indices):
        same_device(f"relation[{place}]", index, indices[0].device, "relation[0]")
    _check_lengths(indices)
    if len(indices) == 4:
        return Pairs(*indices)
    anchors, positives, negatives = indices
    return Triplets(anchors, positives, negatives)


def _check_lengths(indices: list[Tensor]) -> None:
    """Check that each triplet has three indices, and each pair two."""
    for places in ((0, 1, 2),) if len(indices) == 3 else ((0, 1), (2, 3)):
        lengths = [len(indices[place]) for place in places]
        if len(set(lengths)) > 1:
            names = ", ".join(f"relation[{place}]" for place in places)
            raise ValueError(f"{names} must have one length, but they have {', '.join(map(str, lengths))}")
