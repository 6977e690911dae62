"""The inputs of a loss: anchors, references, how they are compared and which pairs are positive or negative."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from likewise._compat import is_transformed
from likewise.distributed import SINGLE_PROCESS, ProcessGroup, RowPartition
from likewise.formula.checks import autocast_is_on, can_read_values, embeddings_of, labels_of, same_device
from likewise.formula.graded import LabelRows, Levels
from likewise.formula.relations import Labels, Relation, RelationLike, as_relation
from likewise.formula.similarities import Pooled, Similarity

HALVES = (torch.bfloat16, torch.float16)
"""The dtypes of half precision."""

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
    """Whether a hook is set: losses then compute the matrix even where they could do without it.

    Examples:
        >>> has_similarity_hook()
        False
    """
    return bool(_hooks)


@dataclass(frozen=True, eq=False)
class PairBatch:
    """The inputs of a loss: anchors, references, how they are compared and which pairs are positive or negative.

    A batch holds the similarity matrix only if `materialize` or the caller computes it: some engines work without it.

    Args:
        relation: which pairs are positive and negative, with a shape.
        similarity: how embeddings are compared; ``None`` where only similarities are known.
        anchors: embeddings, ``(m, d)``.
        references: embeddings, ``(n, d)``, of any float dtype; ``None`` where the references are the anchors.
        matrix: the similarities ``(m, n)``, where they are known.
        factors: anchors and references as they enter the product (`Similarity.factors`), where they are known.
        group: the processes that the anchors are distributed over; the anchors here are this rank's.
        local_rows: where this rank's anchors are among the references, where these are the anchors of all ranks.
        shards: the processes that hold a shard of the references each; every rank then holds all anchors.
        half: the half-precision dtype in which anchors and references are multiplied; ``None``: the batch's dtype.
        labels: the labels of the anchors, where the batch has labels; kept when a miner replaces the relation, and read
            for values per class only: the relation decides which pairs are positive or negative.
        between: what is compared with what, in words.
        table: the side that is a table of parameters, ``"anchors"`` or ``"references"``: it may be large and of another
            dtype, and engines that avoid the matrix also avoid copies of it.
        value_dtype: the dtype of the loss, where the similarity compares embeddings in a wider one
            (`Similarity.working_dtype`); ``None`` where it is that of the embeddings.

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
    value_dtype: torch.dtype | None = None

    def __post_init__(self) -> None:
        if self.similarity is not None and self.anchors is not None:
            self._widen(self.similarity)
        if self.group is None:
            object.__setattr__(self, "group", SINGLE_PROCESS)
        if self.shards is None:
            object.__setattr__(self, "shards", SINGLE_PROCESS)
        if self.labels is None and isinstance(self.relation, Labels | LabelRows):
            object.__setattr__(self, "labels", self.relation.labels)
        if not self.between:
            other = "samples" if self.references is None else "references"
            object.__setattr__(self, "between", f"samples against {other}")

    def replace(self, **changes: Any) -> PairBatch:
        """The same batch with other fields; written out, because torch.compile does not trace `dataclasses.replace`."""
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
        n = len(self.anchors if self.references is None else self.references)
        return len(self.anchors), n if self.similarity is None else n // self.similarity.pooled

    @property
    def dtype(self) -> torch.dtype:
        """The dtype in which the loss accumulates."""
        known = self.matrix if self.anchors is None else self.references if self.table == "anchors" else self.anchors
        assert known is not None
        return known.dtype

    def similarities(self) -> Tensor:
        """The matrix ``(m, n)``; computed at every call unless the batch holds it."""
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
        """This batch with its matrix."""
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

    def from_table(self, rows: Tensor) -> Tensor:
        """Some rows of the table in the dtype of the batch, with the values that they have in the products' dtype."""
        return round_to(rows, self.half).to(self.dtype)

    def prepare(self) -> PairBatch:
        """This batch with its factors."""
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
        """Rows of all anchors from those of this rank, where the references are the anchors of all ranks."""
        return local if self.local_rows is None else self.group.gather(local, self.local_rows)

    def rows(self, rows: slice) -> PairBatch:
        """Some of the anchors against all references, as a batch of this process."""
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

    def under(self, relation: Relation) -> PairBatch:
        """The same batch, labels included, under another relation."""
        return self.replace(relation=relation)


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
    """Check all arguments of a call and make a batch of them.

    Labels that are given together with a relation are read for values per class only; the relation decides the pairs.  In a
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
        if isinstance(value, tuple):  # the place of the indices in other libraries
            raise TypeError(f"{name} must be a tensor, but it is a tuple; give a miner's indices as relation=")
    anchors = embeddings_of("embeddings", embeddings)
    half = same_half(embeddings)
    m = n = len(anchors)
    if references is not None:
        original, references = references, embeddings_of("references", references)
        half = same_half(embeddings, original)
        n = len(references)
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


def same_half(*given: Tensor) -> torch.dtype | None:
    """The half-precision dtype that all tensors share, or ``None``: their products then need no more digits.

    Examples:
        >>> import torch
        >>> same_half(torch.zeros(1).half(), torch.zeros(2).half()), same_half(torch.zeros(1), torch.zeros(2).half())
        (torch.float16, None)
    """
    dtype = given[0].dtype
    return dtype if dtype in HALVES and all(each.dtype == dtype for each in given) else None


def half_of_products(embeddings: Tensor, table: Tensor) -> torch.dtype | None:
    """The half-precision dtype in which embeddings are multiplied with a table of parameters; ``None`` for the batch's dtype.

    It is the dtype that both have.  Under autocast, bfloat16 embeddings are multiplied with a float32 table in bfloat16, as
    `torch.nn.Linear` does it; `PairBatch.from_table` then rounds the table.

    Examples:
        >>> import torch
        >>> half_of_products(torch.zeros(1).bfloat16(), torch.zeros(1)) is None
        True
        >>> with torch.autocast("cpu", dtype=torch.bfloat16):
        ...     half_of_products(torch.zeros(1).bfloat16(), torch.zeros(1))
        torch.bfloat16
    """
    # float16 does not have the range of a table that nothing scales
    mixed = embeddings.dtype == torch.bfloat16 and table.dtype == torch.float32
    return torch.bfloat16 if mixed and autocast_is_on(embeddings) else same_half(embeddings, table)


def round_to(rows: Tensor, half: torch.dtype | None) -> Tensor:
    """Rows of a float32 table with the values that they have in half precision, and the gradient of the rows themselves.

    Args:
        rows: parameters.
        half: the dtype of the products, from `half_of_products`; rows that have it, and ``None``, are not rounded.

    Examples:
        >>> import torch
        >>> round_to(torch.tensor([1.001]), torch.bfloat16), round_to(torch.tensor([1.001]), None)
        (tensor([1.]), tensor([1.0010]))
    """
    if half is None or rows.dtype == half:
        return rows
    if is_transformed():
        # the difference of a number and its nearest neighbor is exact, so the sum is the neighbor
        return rows + (rows.detach().to(half).to(rows.dtype) - rows.detach())
    rounded: Tensor = _Round.apply(rows, half)  # type: ignore[no-untyped-call]
    return rounded


class _Round(torch.autograd.Function):
    """Rounding whose derivative is one; torch's would round the gradient as well."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, half: torch.dtype) -> Tensor:
        return rows.to(half).to(rows.dtype)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return grad, None


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
    return (Labels if labels.ndim == 1 else Levels)(labels, reference_labels, **options)


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
        raise ValueError(f"{missing} must be given together with {present}")
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
    """The labels of the anchors where a relation decides the pairs; the references' are checked, and not read."""
    if reference_labels is not None:
        if references is None:
            raise ValueError("references must be given together with reference_labels")
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
        relation: the positive and negative pairs; or labels, where the matrix compares one set with itself.
        similarity: how the matrix was computed.
        group: the processes that the rows are distributed over.
        labels: the labels of the rows, for values per class; the relation decides the pairs.
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
    """The entry of ``table`` for each anchor's class; labels must be 0-based class indices.

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
