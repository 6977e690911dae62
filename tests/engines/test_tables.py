"""Tables of references and of anchors in chunks, and references in shards: what the whole matrix gives."""

from __future__ import annotations

import sys
from functools import partial, reduce

import pytest
import torch
from torch import Tensor

from likewise.distributed import SINGLE_PROCESS, RowPartition
from likewise.engines import ChunkedEngine, DenseEngine
from likewise.engines.chunked import ColumnEngine
from likewise.engines.schedule import merge_states
from likewise.formula import (
    BOTH,
    NEGATIVES,
    POSITIVES,
    Cosine,
    Labels,
    PairBatch,
    Pooled,
    PositiveIndex,
    add_up,
    count,
    largest,
    logsumexp,
    mean,
    s,
    smallest,
)
from tests.engines.test_chunked import N, batch

RECOMPUTE = sys.modules["likewise.engines.recompute"]


@pytest.fixture(autouse=True)
def thin_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seven rows at a time."""
    monkeypatch.setattr(RECOMPUTE, "LEAST_ROWS", 7)
    monkeypatch.setattr(RECOMPUTE, "BUDGET", {"cpu": 1, "cuda": 1})


FOLDS = [
    fold(curve, over)
    for over in (POSITIVES, NEGATIVES, BOTH)
    for fold, curve in ((logsumexp, 30.0 * s), (add_up, s), (mean, s), (largest, s), (smallest, s))
] + [count(POSITIVES), count(NEGATIVES, s > 0.1)]


def against_table(anchors: Tensor, table: Tensor, labels: Tensor, centers: int, *, absent: bool) -> PairBatch:
    """Anchors against a table with some rows for each class; the positions of positives are known."""
    classes = len(table) // centers
    similarity = (
        Cosine() if centers == 1 else Pooled(Cosine(), centers, lambda similarities: similarities.logsumexp(dim=2))
    )
    exists = (labels >= 0)[:, None] if absent else None
    relation = Labels(labels, torch.arange(classes), positives=PositiveIndex(labels[:, None], exists))
    return PairBatch(relation, similarity, anchors=anchors, references=table, table="references")


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("absent", [False, True])
@pytest.mark.parametrize("centers", [1, 3])
def test_chunks_of_columns(centers: int, absent: bool, whole: bool) -> None:
    """A table of references: values and gradients of every fold, some anchors without a positive, pooled centers."""
    labels = torch.arange(13) * 5 % 23
    labels = torch.where(labels % 4 == 0, -1, labels) if absent else labels
    found = []
    for kind in (DenseEngine, partial(ColumnEngine, whole=whole)):
        anchors, table = batch(13)[0].requires_grad_(), batch(23 * centers, seed=2)[0].requires_grad_()
        engine = kind(against_table(anchors, table, labels, centers, absent=absent))
        values = engine.fold([FOLDS], {})
        there = (labels >= 0).nonzero()[:, 0]
        numbers = [values[each][there] for each in FOLDS]
        total = sum((k + 1.0) * value.sum() for k, value in enumerate(numbers))
        gradients = torch.autograd.grad(total, [anchors, table], create_graph=True)
        again = torch.autograd.grad(sum(each.square().sum() for each in gradients), [anchors, table])
        found.append([*(value.detach() for value in numbers), *gradients, *again])
        if not isinstance(engine, DenseEngine):
            assert len(engine.cut) == (1 if whole else 4)
    torch.testing.assert_close(*found, rtol=1e-8, atol=1e-8)


def test_chunks_of_a_table_of_anchors() -> None:
    """Each chunk of the table is widened by itself; the loss is that of the widened table."""
    (table, owners), (samples, labels) = batch(23, dtype=torch.float32), batch(13, seed=1)
    found = []
    for kind, role in ((DenseEngine, None), (ChunkedEngine, "anchors")):
        leaves = [table.clone().requires_grad_(), samples.clone().requires_grad_()]
        anchors = leaves[0] if role else leaves[0].double()
        pair_batch = PairBatch(Labels(owners, labels), Cosine(), anchors=anchors, references=leaves[1], table=role)
        values = kind(pair_batch).fold([[logsumexp(9.0 * s, NEGATIVES), add_up(s, POSITIVES)]], {})
        total = sum((k + 1.0) * value.sum() for k, value in enumerate(values.values()))
        found.append([*(value.detach() for value in values.values()), *torch.autograd.grad(total, leaves)])
    torch.testing.assert_close(*found)


@pytest.mark.parametrize("together", [1, 3])
@pytest.mark.parametrize("rows", [0, 3, 21, 99])
def test_what_belongs_together_stays_together(rows: int, together: int) -> None:
    cut = RECOMPUTE.plan_chunks(rows, 10**6, torch.zeros(1), together)
    assert [row for chunk in cut for row in range(chunk.start, chunk.stop)] == list(range(rows))
    assert all(chunk.start % together == chunk.stop % together == 0 for chunk in cut)


# ------------------------------------------------------------------------------------------------ shards of references


class Shards:
    """As many processes as there are shards, played one after the other by this one."""

    def __init__(self, gathered: list[Tensor], rank: int) -> None:
        self.gathered, self.size, self.rank = gathered, len(gathered), rank

    def gather(self, local: Tensor, rows: RowPartition) -> Tensor:
        assert torch.equal(local[0], self.gathered[self.rank])
        return torch.stack(self.gathered)


@pytest.mark.parametrize("kind", [DenseEngine, ChunkedEngine])
def test_states_of_shards_make_the_whole(kind: type) -> None:
    """Every fold over references in three shards, one of which has no positive of some anchor."""
    (anchors, labels), (references, theirs) = batch(20), batch(N, seed=1)
    cuts = [slice(0, 3), slice(3, 40), slice(40, N)]

    def pair_batch(rows: slice) -> PairBatch:
        return PairBatch(Labels(labels, theirs[rows]), Cosine(), anchors=anchors, references=references[rows])

    states = [kind(pair_batch(rows)).states(FOLDS, {}) for rows in cuts]
    flat = [torch.stack([vector.double() for state in each for vector in state]) for each in states]
    whole = kind(pair_batch(slice(0, N))).fold([FOLDS], {})
    for rank in range(3):
        joined = merge_states(FOLDS, states[rank], Shards(flat, rank))
        for each, state in zip(FOLDS, joined, strict=True):
            torch.testing.assert_close(each.fold.finish(state), whole[each])
    assert merge_states(FOLDS, states[0], SINGLE_PROCESS) is states[0]
    by_hand = [reduce(each.fold.merge, [state[k] for state in states]) for k, each in enumerate(FOLDS)]
    torch.testing.assert_close(
        [each.fold.finish(x) for each, x in zip(FOLDS, by_hand, strict=True)], list(whole.values())
    )
