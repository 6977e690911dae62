"""The pair_batch: anchors, references, how they are compared and who is positive to whom."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from likewise.distributed import SINGLE_PROCESS, ProcessGroup, RowPartition
from likewise.formula.checks import can_read_values, embeddings_of, labels_of, same_device
from likewise.formula.relations import Labels, Relation
from likewise.formula.similarities import Similarity

HALVES = (torch.bfloat16, torch.float16)
"""The dtypes of half precision."""

# whoever looks on, the last first; a plain list, because torch.compile cannot read a context variable
_watchers: list[Callable[[PairBatch, Tensor], Tensor]] = []


@contextmanager
def similarity_hook(see: Callable[[PairBatch, Tensor], Tensor]) -> Iterator[None]:
    """Show every similarity matrix that losses make inside this block to somebody, who may put another in its place.

    Args:
        see: maps a pair_batch and the matrix that was just made for it to the matrix that the loss will use.

    Examples:
        >>> import torch
        >>> from likewise.formula import Cosine, Labels
        >>> seen = []
        >>> with similarity_hook(lambda pair_batch, matrix: (seen.append(matrix), matrix)[1]):
        ...     _ = PairBatch(Labels(torch.tensor([0, 1])), Cosine(), anchors=torch.eye(2)).similarities()
        >>> seen
        [tensor([[1., 0.],
                [0., 1.]])]
    """
    _watchers.append(see)
    try:
        yield
    finally:
        _watchers.remove(see)


def has_similarity_hook() -> bool:
    """Whether somebody looks on, for whom a loss that could do without the matrix makes it.

    Examples:
        >>> has_similarity_hook()
        False
    """
    return bool(_watchers)


class PairBatch:
    """One batch as a loss sees it.

    The similarity matrix is made when somebody asks for it and not before: an engine that never holds the matrix never
    asks.

    Args:
        relation: who is positive to whom, sized.
        similarity: how embeddings are compared; ``None`` where only similarities are known.
        anchors: embeddings as the caller gave them, ``(m, d)``.
        references: embeddings, ``(n, d)``; ``None`` where the references are the anchors.
        similarities: the matrix ``(m, n)``, where it is all that is known.
        group: the processes that have an anchor each; the anchors here are this one's.
        share: where the anchors stand among the references, where these are the anchors of all processes.
        shards: the processes that have a share of the references each; all have all anchors then.

    Attributes:
        half: the half precision in which all embeddings were given, anchors and references alike, and whose digits they
            still have; ``None`` where there is no such dtype.
        labels: the anchors' labels, where the batch came with labels; kept when a miner replaces the relation.
        between: what is compared with what, in words: samples, references, proxies.

    Examples:
        >>> import torch
        >>> from likewise.formula import Cosine, Labels
        >>> pair_batch = PairBatch(Labels(torch.tensor([0, 1])), Cosine(), anchors=torch.eye(2))
        >>> pair_batch.similarities()
        tensor([[1., 0.],
                [0., 1.]])
    """

    def __init__(
        self,
        relation: Relation,
        similarity: Similarity | None = None,
        *,
        anchors: Tensor | None = None,
        references: Tensor | None = None,
        similarities: Tensor | None = None,
        group: ProcessGroup | None = None,
        local_rows: RowPartition | None = None,
        shards: ProcessGroup | None = None,
    ) -> None:
        self.relation = relation
        self.labels = relation.labels if isinstance(relation, Labels) else None
        self.similarity = similarity
        self.anchors = anchors
        self.references = references
        self.group: ProcessGroup = SINGLE_PROCESS if group is None else group
        self.local_rows = local_rows
        self.shards: ProcessGroup = SINGLE_PROCESS if shards is None else shards
        self.half: torch.dtype | None = None
        self.between = "samples against samples" if references is None else "samples against references"
        self._similarities = similarities
        self._factors: tuple[Tensor, Tensor] | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """How many anchors and references there are."""
        if self._similarities is not None:
            return self._similarities.shape[0], self._similarities.shape[1]
        assert self.anchors is not None
        return len(self.anchors), len(self.anchors if self.references is None else self.references)

    @property
    def extent(self) -> tuple[int, int]:
        """The shape that decides about engines: with the largest share of anchors, so that all processes agree."""
        m, n = self.shape
        return self.group.largest(m), n

    @property
    def dtype(self) -> torch.dtype:
        """The dtype in which the loss accumulates."""
        known = self._similarities if self.anchors is None else self.anchors
        assert known is not None
        return known.dtype

    def similarities(self) -> Tensor:
        """The matrix ``(m, n)``, computed once."""
        if self._similarities is None:
            left, right = self.factors()
            assert self.similarity is not None
            made = self.similarity.of_factors(left, right)
            self._similarities = _watchers[-1](self, made) if _watchers else made
        return self._similarities

    def factors(self) -> tuple[Tensor, Tensor]:
        """Anchors and references as they enter the product, computed once; see `Similarity.factors`."""
        if self._factors is None:
            if self.similarity is None or self.anchors is None:
                raise TypeError("a pair_batch needs either embeddings and a similarity, or a matrix of similarities")
            self._factors = self.similarity.factors(self.anchors, self.references)
        return self._factors

    @property
    def is_matrix(self) -> bool:
        """Whether only the matrix is known, or it was made already."""
        return self._similarities is not None

    def among_references(self) -> Tensor:
        """The similarities of the references among themselves, ``(n, n)``; no process makes rows that another has."""
        if self.references is None or self.local_rows is not None:
            return self.gather(self.similarities())
        assert self.similarity is not None
        right = self.factors()[1]
        rows = self.group.split(len(right))
        return self.group.gather(self.similarity.of_factors(right[rows.own], right), rows)

    def gather(self, own: Tensor) -> Tensor:
        """Something that each anchor has, for each reference, where the references are the anchors of all processes."""
        return own if self.local_rows is None else self.group.gather(own, self.local_rows)

    def rows(self, rows: slice) -> PairBatch:
        """Some of the anchors against all references, as a pair_batch of this process alone."""
        panel = self.under(self.relation.rows(rows))
        panel.group, panel.local_rows = SINGLE_PROCESS, None
        panel.labels = None if self.labels is None else self.labels[rows]
        if self._similarities is not None:
            panel._similarities = self._similarities[rows]
        if self.anchors is not None:
            panel.anchors = self.anchors[rows]
            panel.references = self.anchors if self.references is None else self.references
            left, right = self.factors()
            panel._factors = left[rows], right
        return panel

    def under(self, relation: Relation) -> PairBatch:
        """The same batch, labels included, under another relation."""
        # by hand: torch.compile takes no copy.copy before torch 2.12
        pair_batch = PairBatch(
            relation,
            self.similarity,
            anchors=self.anchors,
            references=self.references,
            similarities=self._similarities,
            group=self.group,
            local_rows=self.local_rows,
            shards=self.shards,
        )
        pair_batch.labels, pair_batch.half, pair_batch.between = self.labels, self.half, self.between
        pair_batch._factors = self._factors
        return pair_batch


def batch_from_embeddings(
    embeddings: Tensor,
    labels: Tensor | None,
    references: Tensor | None,
    reference_labels: Tensor | None,
    relation: Relation | None,
    similarity: Similarity,
    group: ProcessGroup = SINGLE_PROCESS,
) -> PairBatch:
    """Check everything that a caller gave, and make the pair_batch of it.

    Where the batch is spread over processes, embeddings and references are this process's shares, and its anchors are
    compared with all references; a relation other than labels must name all of them.

    Examples:
        >>> import torch
        >>> from likewise.formula import Cosine
        >>> batch_from_embeddings(torch.eye(2), torch.tensor([0]), None, None, None, Cosine())
        Traceback (most recent call last):
        ...
        ValueError: labels must have one entry for each of the 2 embeddings, but it has 1
    """
    anchors = embeddings_of("embeddings", embeddings)
    half = same_half(embeddings)
    m = n = len(anchors)
    if references is not None:
        given, references = references, embeddings_of("references", references)
        half = same_half(embeddings, given)
        n = len(references)
        if references.shape[1] != anchors.shape[1]:
            raise ValueError(
                f"references must have the {anchors.shape[1]} dimensions of embeddings, but have {references.shape[1]}"
            )
        same_device("references", references, anchors.device, "embeddings")
        dtype = torch.promote_types(anchors.dtype, references.dtype)
        anchors, references = anchors.to(dtype), references.to(dtype)
    if relation is None:
        relation = _labels(labels, references, reference_labels, m, n, anchors.device)
    elif labels is not None or reference_labels is not None:
        raise ValueError("relation replaces labels and reference_labels; give one or the other, not both")
    elif not isinstance(relation, Relation):
        raise TypeError(
            f"relation must be a Relation (Labels, Pairs, Triplets, Masks), but it is a {type(relation).__name__}"
        )
    if relation.device != anchors.device:
        raise ValueError(
            f"relation must be on the device of embeddings, {anchors.device}, but it is on {relation.device}"
        )
    if group is not SINGLE_PROCESS:
        pair_batch = _gathered(anchors, references, relation, similarity, group)
    else:
        pair_batch = PairBatch(relation.sized(m, n), similarity, anchors=anchors, references=references)
    pair_batch.half = half
    return pair_batch


def same_half(*given: Tensor) -> torch.dtype | None:
    """The half precision that all tensors have, if they have one: their products then need no more digits.

    Examples:
        >>> import torch
        >>> same_half(torch.zeros(1).half(), torch.zeros(2).half()), same_half(torch.zeros(1), torch.zeros(2).half())
        (torch.float16, None)
    """
    dtype = given[0].dtype
    return dtype if dtype in HALVES and all(each.dtype == dtype for each in given) else None


def _gathered(
    anchors: Tensor, references: Tensor | None, relation: Relation, similarity: Similarity, group: ProcessGroup
) -> PairBatch:
    """This process's anchors against everybody's references."""
    batch = group.batch_rows(anchors)
    theirs = batch if references is None else group.rows(references)
    everyone = group.gather(anchors if references is None else references, theirs)
    return PairBatch(
        relation.gathered(group, theirs).sized(len(anchors), theirs.count),
        similarity,
        anchors=anchors,
        references=everyone,
        group=group,
        local_rows=batch if references is None else None,
    )


def _labels(
    labels: Tensor | None,
    references: Tensor | None,
    reference_labels: Tensor | None,
    m: int,
    n: int,
    device: torch.device,
) -> Labels:
    if labels is None:
        raise TypeError("labels must be given unless relation says who is positive to whom")
    labels = labels_of("labels", labels, m, device, "embeddings")
    if (references is None) != (reference_labels is None):
        given, missing = (
            ("reference_labels", "references") if references is None else ("references", "reference_labels")
        )
        raise ValueError(f"{missing} must be given together with {given}")
    if reference_labels is None:
        return Labels(labels)
    return Labels(labels, labels_of("reference_labels", reference_labels, n, device, "references"))


def batch_from_similarities(
    similarities: Tensor, relation: Relation | Tensor, similarity: Similarity, group: ProcessGroup = SINGLE_PROCESS
) -> PairBatch:
    """The pair_batch of which only the matrix is known; where it is spread over processes, each has some rows.

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
        relation = Labels(labels_of("relation", relation, m, matrix.device, "rows of similarities"))
    elif not isinstance(relation, Relation):
        raise TypeError(f"relation must be a Relation or labels, but it is a {type(relation).__name__}")
    if relation.device != matrix.device:
        raise ValueError(
            f"relation must be on the device of similarities, {matrix.device}, but it is on {relation.device}"
        )
    return PairBatch(relation.sized(m, n), similarity, similarities=matrix, group=group)


def class_values(table: Tensor, pair_batch: PairBatch, name: str) -> Tensor:
    """The entry of ``table`` for each anchor's class; labels must be 0-based class indices.

    Examples:
        >>> import torch
        >>> from likewise.formula import Labels
        >>> class_values(torch.tensor([1.0, 2.0]), PairBatch(Labels(torch.tensor([1, 1, 0]))), "beta")
        tensor([2., 2., 1.])
    """
    labels = pair_batch.labels
    if labels is None:
        raise TypeError(f"{name} per class needs labels, but the relation is {type(pair_batch.relation).__name__}")
    check_classes(labels, len(table), name)
    return table[labels]


def check_classes(labels: Tensor, classes: int, what: str) -> None:
    """Check that labels are class indices, of which there is one ``what`` each.

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
