"""The kernel that finds positives, against a comparison of all labels, and against the index from sorted labels."""

from __future__ import annotations

from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest
import torch
from torch import Tensor

from likewise.engines import positive_index
from likewise.engines.positive_index import FEW, find_positive_index
from likewise.engines.triton.positives import find_positives
from likewise.formula import Labels, PairBatch, PositiveIndex

LABELS = {
    "four each": torch.arange(300) // 4,
    "any number": torch.randint(100, (523,), generator=torch.Generator().manual_seed(0)),
    "int32, negative": torch.tensor([-5, 3, -5, 9, 3, -5], dtype=torch.int32),
    "far apart": torch.tensor([2**40, 1, 2**40 + 1, 2**40, 1 + 2**32]),
    "no positive": torch.arange(40),
    "one sample": torch.tensor([7]),
    "a class of thirty": torch.cat([torch.zeros(30, dtype=torch.int64), torch.arange(20)]),
    "every other one": torch.arange(64).repeat_interleave(2)[::2],
}


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
def test_positives_in_order(labels: Tensor) -> None:
    index, number, extremes = find_positives(labels, 16)
    same = (labels[:, None] == labels).fill_diagonal_(False)
    counts = same.sum(dim=1)
    assert torch.equal(number.long(), counts)
    assert extremes.tolist() == [int(counts.max()), 16 - min(16, int(counts.min()))]
    for row, own in enumerate(same):
        expected = own.nonzero().flatten()[:16]
        assert torch.equal(index[row, : len(expected)], expected)
        assert not index[row, len(expected) :].any()


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
@pytest.mark.parametrize("most", [FEW[-1], 1000])
def test_the_same_index_as_from_sorted_labels(labels: Tensor, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    batch = PairBatch(Labels(labels), matrix=torch.zeros(len(labels), len(labels)))
    expected = find_positive_index(batch, large=True, most=most)
    monkeypatch.setattr(positive_index, "_pays_comparing", lambda relation: True)
    found = find_positive_index(batch, large=True, most=most)
    assert (found is None) == (expected is None)
    if found is not None and expected is not None:
        assert describe(found) == describe(expected)


def describe(found: PositiveIndex) -> tuple[bool, list[list[int]], torch.dtype]:
    """Return whether all positives exist, those that do, by sample, and the dtype of their positions."""
    rows = [row[here].tolist() for row, here in zip(found.index, found.mask, strict=True)]
    return found.exists is None, rows, found.index.dtype


def test_transforms_sort_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Inside a transform of torch.func, labels are wrapped, and a kernel could not read them."""
    labels = MagicMock(is_cuda=True, __len__=lambda _: 8)
    relation = SimpleNamespace(labels=labels, reference_labels=None, valid=None)
    monkeypatch.setattr(positive_index, "has_triton", lambda: True)
    assert positive_index._pays_comparing(relation)
    inside = []

    def look(x: Tensor) -> Tensor:
        inside.append(positive_index._pays_comparing(relation))
        return x.sum()

    torch.func.grad(look)(torch.ones(2))
    assert inside == [False]
