"""The inputs of a loss: anchors, references, how they are compared and which pairs are positive or negative."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import torch
from torch import Tensor

from likewise.distributed import SINGLE_PROCESS, ProcessGroup, RowPartition
from likewise.formula.labels import LabelRelation, Labels
from likewise.formula.precision import round_to
from likewise.formula.relations import Relation
from likewise.formula.similarities import Pooled
from likewise.formula.similarity_base import Similarity

# the innermost hook is last; a plain list, because torch.compile cannot read a context variable
_hooks: list[Callable[[PairBatch, Tensor], Tensor]] = []


@contextmanager
def similarity_hook(see: Callable[[PairBatch, Tensor], Tensor]) -> Iterator[None]:
    """Pass every similarity matrix that losses compute inside this block through a function.

    Args:
        see: maps a batch and its matrix to the matrix that the loss uses.

    Examples:
        >>> import torch
        >>> from likewise.formula import Cosine, Labels
        >>> seen = []
        >>> with similarity_hook(lambda batch, matrix: (seen.append(matrix), matrix)[1]):
        ...     _ = PairBatch(Labels(torch.tensor([0, 1])), Cosine(), anchors=torch.eye(2)).similarities()
        >>> seen
        [tensor([[1., 0.],
                [0., 1.]])]
    """
    _hooks.append(see)
    try:
        yield
    finally:
        _hooks.remove(see)


def has_similarity_hook() -> bool:
    """Return whether a hook is set; losses then compute the matrix even if they do not need it.

    Examples:
        >>> has_similarity_hook()
        False
    """
    return bool(_hooks)


class TableUse(Protocol):
    """One use of a table in a graph; its backward pass may return the gradient of the table or pass it on in chunks."""

    def is_only(self) -> bool:
        """Whether nothing else uses the table, so that its rows may change as soon as their gradient is known."""

    def take(self, rows: slice, gradient: Tensor) -> None:
        """Receive the gradient of some rows; rows come in order, and each row once."""


class RowGradients(Protocol):
    """Receives the gradient of a table of parameters in chunks of rows, so that it never exists as a whole."""

    def use(self) -> TableUse:
        """Register a use of the table in a graph."""


@dataclass(frozen=True, eq=False)
class PairBatch:
    """The inputs of a loss: anchors, references, how they are compared and which pairs are positive or negative.

    A batch holds the similarity matrix only if `materialize` or the caller computes it: some engines work without it.

    Args:
        relation: which pairs are positive and negative, with a shape.
        similarity: how embeddings are compared; ``None`` if only similarities are known.
        anchors: embeddings, ``(m, d)``.
        references: embeddings, ``(n, d)``, of any float dtype; ``None`` if the references are the anchors.
        matrix: the similarities ``(m, n)``, if they are known.
        factors: anchors and references as they enter the product (`Similarity.factors`), if they are known.
        group: the processes that the anchors are distributed over; the anchors here are this rank's.
        local_rows: the positions of this rank's anchors among the references, if these are the anchors of all ranks.
        shards: the processes over which the references are sharded; every rank then holds all anchors.
        half: the half-precision dtype in which anchors and references are multiplied; ``None``: the batch's dtype.
        labels: the labels of the anchors, if the batch has labels; kept when a miner replaces the relation, and used
            only for values per class: the relation defines which pairs are positive or negative.
        between: what is compared with what, in words.
        table: the side that is a table of parameters, ``"anchors"`` or ``"references"``: it may be large and of another
            dtype, and engines that avoid the matrix also avoid copies of it.
        row_gradients: receives the gradient of the table in chunks; ``None``: it is one tensor.
        value_dtype: the dtype of the loss if the similarity compares embeddings in a wider one
            (`Similarity.working_dtype`); ``None`` for the dtype of the embeddings.

    Examples:
        >>> import torch
        >>> from likewise.formula import Cosine, Labels
        >>> batch = PairBatch(Labels(torch.tensor([0, 1])), Cosine(), anchors=torch.eye(2))
        >>> batch.similarities()
        tensor([[1., 0.],
                [0., 1.]])
    """

    relation: Relation
    similarity: Similarity | None = None
    anchors: Tensor | None = None
    references: Tensor | None = None
    matrix: Tensor | None = None
    factors: tuple[Tensor, Tensor] | None = None
    group: ProcessGroup = None  # type: ignore[assignment]  # SINGLE_PROCESS: torch.compile does not trace an object as a default
    local_rows: RowPartition | None = None
    shards: ProcessGroup = None  # type: ignore[assignment]
    half: torch.dtype | None = None
    labels: Tensor | None = None
    between: str = ""
    table: Literal["anchors", "references"] | None = None
    row_gradients: RowGradients | None = None
    value_dtype: torch.dtype | None = None

    def __post_init__(self) -> None:
        if self.similarity is not None and self.anchors is not None:
            self._widen(self.similarity)
        if self.group is None:
            object.__setattr__(self, "group", SINGLE_PROCESS)
        if self.shards is None:
            object.__setattr__(self, "shards", SINGLE_PROCESS)
        if self.labels is None and isinstance(self.relation, LabelRelation):
            object.__setattr__(self, "labels", self.relation.labels)
        if not self.between:
            other = "samples" if self.references is None else "references"
            object.__setattr__(self, "between", f"samples against {other}")

    def replace(self, **changes: Any) -> PairBatch:
        """Return the batch with other fields; torch.compile does not trace `dataclasses.replace`."""
        fields = {
            "relation": self.relation,
            "similarity": self.similarity,
            "anchors": self.anchors,
            "references": self.references,
            "matrix": self.matrix,
            "factors": self.factors,
            "group": self.group,
            "local_rows": self.local_rows,
            "shards": self.shards,
            "half": self.half,
            "labels": self.labels,
            "between": self.between,
            "table": self.table,
            "row_gradients": self.row_gradients,
            "value_dtype": self.value_dtype,
        }
        return PairBatch(**{**fields, **changes})

    def _widen(self, similarity: Similarity) -> None:
        """Convert the embeddings that set the batch's dtype to the dtype of the similarity."""
        dtype = self.dtype
        wide = similarity.working_dtype(dtype)
        if wide == dtype:
            return
        side = "references" if self.table == "anchors" else "anchors"
        object.__setattr__(self, side, getattr(self, side).to(wide))
        object.__setattr__(self, "value_dtype", dtype)

    @property
    def shape(self) -> tuple[int, int]:
        """The number of anchors and of references."""
        if self.matrix is not None:
            return self.matrix.shape[0], self.matrix.shape[1]
        assert self.anchors is not None
        n = (self.anchors if self.references is None else self.references).shape[0]  # len takes longer
        return self.anchors.shape[0], n if self.similarity is None else n // self.similarity.pooled

    @property
    def dtype(self) -> torch.dtype:
        """The dtype in which the loss accumulates."""
        known = self.matrix if self.anchors is None else self.references if self.table == "anchors" else self.anchors
        assert known is not None
        return known.dtype

    def similarities(self) -> Tensor:
        """Return the matrix ``(m, n)``; it is computed at every call unless the batch holds it."""
        if self.matrix is not None:
            return self.matrix
        left, right = self.both_factors()
        similarity = self.similarity
        assert similarity is not None
        if not _hooks:
            return similarity.of_factors(left, right)
        if isinstance(similarity, Pooled):  # hooks see the pairs themselves
            return similarity.pool_columns(self._unpool(similarity).similarities())
        return _hooks[-1](self, similarity.of_factors(left, right))

    def _unpool(self, similarity: Pooled) -> PairBatch:
        assert isinstance(self.relation, Labels)
        assert self.relation.reference_labels is not None
        owners = self.relation.reference_labels.repeat_interleave(similarity.pooled)
        relation = Labels(self.relation.labels, owners)
        return self.replace(similarity=similarity.base, relation=relation, between="samples against proxies")

    def materialize(self) -> PairBatch:
        """Return this batch with its matrix."""
        return self if self.matrix is not None else self.replace(matrix=self.similarities())

    def both_factors(self) -> tuple[Tensor, Tensor]:
        """Anchors and references as they enter the product; see `Similarity.factors`."""
        if self.factors is not None:
            return self.factors
        if self.similarity is None or self.anchors is None:
            raise TypeError("a batch needs either embeddings and a similarity, or a matrix of similarities")
        return self.similarity.factors(*self.both_sides())

    def both_sides(self) -> tuple[Tensor, Tensor | None]:
        """Anchors and references in the dtype of the batch, a table of parameters as `from_table` makes it."""
        assert self.anchors is not None
        if self.table == "anchors":
            return self.from_table(self.anchors), self.references
        if self.table == "references" and self.references is not None:
            return self.anchors, self.from_table(self.references)
        references = None if self.references is None else self.references.to(self.dtype)
        return self.anchors.to(self.dtype), references

    def use_table(self) -> TableUse | None:
        """Register a use of the table in a graph; ``None`` if its gradient, if any, is one tensor."""
        table = self.anchors if self.table == "anchors" else self.references
        wanted = self.row_gradients is not None and torch.is_grad_enabled() and table is not None
        return self.row_gradients.use() if wanted and table.requires_grad else None  # type: ignore[union-attr]

    def from_table(self, rows: Tensor) -> Tensor:
        """Some rows of the table in the dtype of the batch, with the values that they have in the products' dtype."""
        return round_to(rows, self.half).to(self.dtype)

    def prepare(self) -> PairBatch:
        """Return this batch with its factors."""
        return self if self.factors is not None else self.replace(factors=self.both_factors())

    def similarities_among_references(self) -> Tensor:
        """The similarities of the references among themselves, ``(n, n)``; each rank computes some rows."""
        if self.references is None or self.local_rows is not None:
            return self.gather(self.similarities())
        assert self.similarity is not None
        right = self.both_factors()[1]
        rows = self.group.split(len(right))
        return self.group.gather(self.similarity.of_factors(right[rows.local], right), rows)

    def gather(self, local: Tensor) -> Tensor:
        """Gather rows of all anchors from those of each rank; the references must be the anchors of all ranks."""
        return local if self.local_rows is None else self.group.gather(local, self.local_rows)

    def rows(self, rows: slice) -> PairBatch:
        """Return some of the anchors against all references, as a batch of this process."""
        changes: dict[str, Any] = {
            "relation": self.relation.rows(rows),
            "labels": None if self.labels is None else self.labels[rows],
            "group": SINGLE_PROCESS,
            "local_rows": None,
        }
        if self.matrix is not None:
            changes["matrix"] = self.matrix[rows]
        if self.anchors is not None:
            left, right = self.both_factors()
            references = self.anchors if self.references is None else self.references
            changes |= {"anchors": self.anchors[rows], "references": references, "factors": (left[rows], right)}
        return self.replace(**changes)

    def index_pairs(self) -> PairBatch:
        """Return the batch with an index of the only positive of each anchor, whose position is the anchor's label."""
        assert isinstance(self.relation, Labels)
        return self.under(self.relation.index_pairs())

    def under(self, relation: Relation) -> PairBatch:
        """Return the same batch, including labels, with another relation."""
        return self.replace(relation=relation)
