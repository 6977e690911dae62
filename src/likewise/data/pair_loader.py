"""Loaders of pairs: batches of anchors and references for two encoders, in alternating rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, tee
from typing import Any, NamedTuple

import torch
from torch import Tensor

from likewise.data.pairs import PairTable
from likewise.data.resumable_loader import Batch, Indices, ResumableLoader


@dataclass(frozen=True)
class Sides:
    """The inputs of two encoders: the same number of anchors and references, or only one side.

    Rows of embeddings alternate between an anchor and its reference, so that chunks of a batch, and the batches of several
    processes, are concatenated like those of a single encoder.

    Args:
        anchors: inputs of the first encoder, ``(n, …)``.
        references: inputs of the second encoder, ``(n, …)``.

    Examples:
        >>> sides = Sides(torch.zeros(4, 2), torch.ones(4, 3))
        >>> len(sides), [len(part) for part in sides.tensor_split(2)]
        (8, [4, 4])
    """

    anchors: Tensor | None
    references: Tensor | None

    def __len__(self) -> int:
        return sum(len(each) for each in (self.anchors, self.references) if each is not None)

    def to(self, device: torch.device) -> Sides:
        """Move the inputs to a device."""
        return Sides(*(None if each is None else each.to(device) for each in (self.anchors, self.references)))

    def tensor_split(self, sections: int) -> list[Sides]:
        """Split the batch into ``sections`` chunks without separating pairs."""
        parts = [
            [None] * sections if each is None else each.tensor_split(sections)
            for each in (self.anchors, self.references)
        ]
        return [Sides(one, other) for one, other in zip(*parts, strict=True)]


class PairedBatch(NamedTuple):
    """A batch of pairs.

    Args:
        images: inputs of both encoders.
        labels: class of each row of embeddings, ``(2 n,)``, or ``(n,)`` for one side.
        indices: rows of the table, or samples of the side.

    Examples:
        >>> PairedBatch(Sides(torch.zeros(1, 2), None), torch.tensor([7]), torch.tensor([0])).labels
        tensor([7])
    """

    images: Sides
    labels: Tensor
    indices: Tensor


class RowLoader(ResumableLoader[Batch]):
    """Batches of the rows of a tensor: token ids of texts, or features of a frozen encoder.

    Args:
        rows: ``(n, …)``; integers are token ids padded with zeros, which are cut to the longest text of a batch.
        labels: classes of the rows, ``(n,)``.
        batches: the rows of each batch.
        device: device of the batches.

    Examples:
        >>> tokens = torch.tensor([[5, 6, 7], [8, 0, 0]])
        >>> [batch.images.tolist() for batch in RowLoader(tokens, torch.tensor([0, 1]), [[1], [0, 1]])]
        [[[8]], [[5, 6, 7], [8, 0, 0]]]
    """

    def __init__(
        self, rows: Tensor, labels: Tensor, batches: Iterable[Indices], *, device: str | torch.device = "cpu"
    ) -> None:
        super().__init__(batches, device=device)
        self.rows, self.labels = rows, labels

    def make_batches(self, work: Iterator[tuple[int, Tensor]]) -> Iterator[Batch]:
        """Yield the batch of each step, from the indices of its rows."""
        for _, indices in work:
            rows = self.rows[indices]
            if not rows.is_floating_point():
                rows = rows[:, : max(1, int((rows != 0).sum(dim=1).max()))]
            yield Batch(rows.to(self.device), self.labels[indices].to(self.device), indices)


class PairLoader(ResumableLoader[PairedBatch]):
    """Batches of pairs, for training.

    Args:
        pairs: the data set.
        batches: the rows of the table in each batch, such as a `likewise.data.PerClassSampler` of ``row_labels`` with
            ``per_class=1``: then no two rows of a batch are in one class, and everything that is not a pair is a negative.
        anchors: loader of the first side: a `likewise.data.BatchLoader` or a `RowLoader`.
        references: loader of the second side.
        device: device of the batches.

    Examples:
        >>> import tempfile
        >>> from pathlib import Path
        >>> table = Path(tempfile.mkdtemp()) / "pairs.csv"
        >>> _ = table.write_text('''text,text
        ... a,b
        ... c,d''')
        >>> pairs, labels, tokens = PairTable(table), torch.arange(2), torch.tensor([[1], [2]])
        >>> loader = PairLoader(pairs, [[1, 0]], RowLoader(tokens, labels, []), RowLoader(tokens, labels, []))
        >>> [(batch.images.references.tolist(), batch.labels.tolist()) for batch in loader]
        [([[2], [1]], [1, 1, 0, 0])]
    """

    def __init__(
        self,
        pairs: PairTable,
        batches: Iterable[Indices],
        anchors: ResumableLoader[Batch],
        references: ResumableLoader[Batch],
        *,
        device: str | torch.device = "cpu",
    ) -> None:
        super().__init__(batches, device=device)
        self.images = pairs
        self.sides = anchors, references

    def make_batches(self, work: Iterator[tuple[int, Tensor]]) -> Iterator[PairedBatch]:
        """Yield the batch of each step, from the indices of its rows in the table."""
        rows, *works = tee(work, 3)
        made = []
        for number, (side, mine) in enumerate(zip(self.sides, works, strict=True)):
            side.set_epoch(self.epoch)  # augmentation depends on it
            made.append(side.make_batches(_column(mine, self.images.rows[:, number])))
        for (_, indices), anchors, references in zip(rows, *made, strict=True):
            labels = self.images.row_labels[indices].repeat_interleave(2).to(self.device)
            yield PairedBatch(Sides(anchors.images, references.images), labels, indices)


def _column(work: Iterator[tuple[int, Tensor]], samples: Tensor) -> Iterator[tuple[int, Tensor]]:
    return ((step, samples[indices]) for step, indices in work)


class SampleLoader:
    """All anchors, then all references, once each, in the order of a `PairTable`, for evaluation.

    Args:
        pairs: the data set.
        anchors: all samples of the first side, in order.
        references: all samples of the second side, in order.

    Examples:
        >>> import tempfile
        >>> from pathlib import Path
        >>> table = Path(tempfile.mkdtemp()) / "pairs.csv"
        >>> _ = table.write_text('''text,text
        ... a,b
        ... c,b''')
        >>> tokens, labels = torch.tensor([[1], [2]]), torch.tensor([0, 0])
        >>> sides = RowLoader(tokens, labels, [[0, 1]]), RowLoader(tokens[:1], labels[:1], [[0]])
        >>> [len(batch.images) for batch in SampleLoader(PairTable(table), *sides)]
        [2, 1]
    """

    def __init__(self, pairs: PairTable, anchors: ResumableLoader[Batch], references: ResumableLoader[Batch]) -> None:
        self.images = pairs
        self.sides = anchors, references

    def __len__(self) -> int:
        return sum(map(len, self.sides))

    def __iter__(self) -> Iterator[PairedBatch]:
        for side in self.sides:
            side.set_epoch(0)  # the same batches in every iteration
        anchors = (_one_side(batch, Sides(batch.images, None)) for batch in self.sides[0])
        return chain(anchors, (_one_side(batch, Sides(None, batch.images)) for batch in self.sides[1]))


def _one_side(batch: Any, sides: Sides) -> PairedBatch:
    return PairedBatch(sides, batch.labels, batch.indices)
