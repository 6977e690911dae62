"""Cross-batch memory: a queue that survives, wraps round and never compares a sample with itself."""

from __future__ import annotations

import io
import warnings

import pytest
import torch
from torch._dynamo.testing import CompileCounter

from likewise.formula import Labels
from likewise.losses import (
    ContrastiveLoss,
    CrossBatchMemory,
    MultiSimilarityLoss,
    ProxyRepulsionLoss,
    SoftmaxLoss,
    TripletLoss,
)
from likewise.miners import MultiSimilarityMiner
from likewise.testing import make_batch


def batches(n: int, seed: int = 0):
    return [make_batch("balanced", seed=seed + i) for i in range(n)]


@pytest.mark.parametrize("loss", [ContrastiveLoss(), MultiSimilarityLoss(miner=MultiSimilarityMiner()), TripletLoss()])
def test_equals_the_loss_on_batch_and_queue(loss):
    """The third batch against itself, with gradient on both sides, and the two before it."""
    memory = CrossBatchMemory(loss, size=100)
    (e1, y1), (e2, y2), (e3, y3) = batches(3)
    memory(e1, y1)
    memory(e2, y2)
    leaf = e3.clone().requires_grad_()
    value = memory(leaf, y3)
    twin = e3.clone().requires_grad_()
    relation = Labels(y3, torch.cat([y3, y1, y2]), own=torch.arange(12))
    expected = loss(twin, references=torch.cat([twin, e1, e2]), relation=relation)
    torch.testing.assert_close(value, expected)
    torch.testing.assert_close(torch.autograd.grad(value, leaf), torch.autograd.grad(expected, twin))


def test_an_empty_memory_is_the_plain_loss():
    embeddings, labels = make_batch("ragged")
    memory = CrossBatchMemory(ContrastiveLoss(), 50)
    assert memory(embeddings, labels) == ContrastiveLoss()(embeddings, labels)


def test_no_sample_is_its_own_positive():
    """Every label once: without positives the loss is zero, although the batch is among the references."""
    memory = CrossBatchMemory(ContrastiveLoss(negative_margin=2.0), size=10)
    for _ in range(2):
        value = memory(torch.randn(5, 4), torch.arange(5))
        memory.clear()
    assert value.item() == 0.0


def test_the_oldest_leave_first_and_the_pointer_wraps():
    memory = CrossBatchMemory(ContrastiveLoss(), size=5)
    for step in range(4):
        memory(torch.full((2, 3), float(step)), torch.tensor([step, step]))
    assert sorted(memory.reference_labels.tolist()) == [1, 2, 2, 3, 3]
    assert (int(memory.filled), int(memory.pointer), int(memory.batches)) == (5, 3, 4)
    memory(torch.randn(7, 3), torch.arange(7))
    assert sorted(memory.reference_labels.tolist()) == [2, 3, 4, 5, 6]


def test_saved_and_restored_in_the_middle():
    """A reloaded memory is not empty: it goes on with the same numbers."""
    memory = CrossBatchMemory(MultiSimilarityLoss(), size=30)
    first, rest = batches(2), batches(3, seed=10)
    for embeddings, labels in first:
        memory(embeddings, labels)
    stored = io.BytesIO()
    torch.save(memory.state_dict(), stored)
    stored.seek(0)
    restored = CrossBatchMemory(MultiSimilarityLoss(), size=30)
    restored.load_state_dict(torch.load(stored, weights_only=True))
    for embeddings, labels in rest:
        assert torch.equal(memory(embeddings, labels), restored(embeddings, labels))
    with pytest.raises(ValueError, match="size must be that of the stored memory, 30, but it is 7"):
        CrossBatchMemory(MultiSimilarityLoss(), size=7).load_state_dict(memory.state_dict())


def test_warm_up_remembers_and_does_not_compare():
    memory = CrossBatchMemory(ContrastiveLoss(), size=50, warmup=2)
    plain = ContrastiveLoss()
    data = batches(3)
    for batch in data[:2]:
        torch.testing.assert_close(memory(*batch), plain(*batch))
    assert memory(*data[2]) != plain(*data[2])


def test_evaluation_does_not_remember():
    memory = CrossBatchMemory(ContrastiveLoss(), size=50)
    memory.eval()
    memory(*make_batch("balanced"))
    assert int(memory.filled) == 0
    memory.train()
    memory(torch.randn(4, 9), torch.arange(4))  # nothing was remembered, not even a dimension


def test_compiles_once_and_never_waits():
    """The queue has one shape from its first batch on, and its counters are tensors."""
    torch.compiler.reset()
    counter = CompileCounter()
    memory, twin = CrossBatchMemory(ContrastiveLoss(), 40), CrossBatchMemory(ContrastiveLoss(), 40)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        compiled = torch.compile(memory, fullgraph=True, backend=counter)
        for embeddings, labels in batches(12):
            torch.testing.assert_close(compiled(embeddings, labels), twin(embeddings, labels))
    assert counter.frame_count <= 3
    meta = CrossBatchMemory(ContrastiveLoss(), 40).to("meta")
    for _ in range(2):
        assert meta(torch.empty(6, 4, device="meta"), torch.empty(6, dtype=torch.long, device="meta")).shape == ()


def test_half_precision_batches_do_not_round_the_queue():
    memory = CrossBatchMemory(ContrastiveLoss(), 20)
    memory(1e5 * torch.randn(4, 5), torch.arange(4) // 2)
    assert torch.isfinite(memory(torch.randn(4, 5).half(), torch.arange(4) // 2))
    assert memory.references.dtype == torch.float32


def test_a_partial_state_is_torchs_to_report():
    memory = CrossBatchMemory(ContrastiveLoss(), 20)
    memory(*make_batch("balanced"))
    state = memory.state_dict()
    del state["reference_labels"]
    with pytest.raises(RuntimeError, match="Missing key"):
        CrossBatchMemory(ContrastiveLoss(), 20).load_state_dict(state)


def test_sample_wise_proxy_losses_are_refused():
    """A memory would only dilute their gradient."""
    with pytest.raises(TypeError, match="a proxy loss whose anchors are proxies, but it is a SoftmaxLoss"):
        CrossBatchMemory(SoftmaxLoss(4, 5), 20)
    with pytest.raises(ValueError, match="compares with its queue"):
        CrossBatchMemory(ContrastiveLoss(), 20)(torch.eye(2), relation=Labels(torch.arange(2)))


def test_the_thesis_losses_see_a_larger_batch():
    loss = ProxyRepulsionLoss(4, 5, through_samples=True)
    memory = CrossBatchMemory(loss, size=50)
    (e1, y1), (e2, y2) = batches(2)
    memory(e1, y1)
    torch.testing.assert_close(memory(e2, y2), loss(torch.cat([e2, e1]), torch.cat([y2, y1])))


def test_another_dimension_is_refused():
    memory = CrossBatchMemory(ContrastiveLoss(), size=5)
    memory(torch.randn(2, 3), torch.tensor([0, 0]))
    with pytest.raises(ValueError, match="embeddings must have the 3 dimensions of the memory, but have 4"):
        memory(torch.randn(2, 4), torch.tensor([0, 0]))


def test_only_keys_are_stored():
    """MoCo: the rows that are not keys are anchors, and nothing else; the first batch has no queue yet."""
    (e1, y1), (e2, y2) = batches(2)
    keys = torch.arange(12) < 5
    memory = CrossBatchMemory(MultiSimilarityLoss(), size=20, miner=MultiSimilarityMiner())
    loss = MultiSimilarityLoss(miner=MultiSimilarityMiner())
    torch.testing.assert_close(memory(e1, y1, enqueue=keys), loss(e1[5:], y1[5:], e1[:5], y1[:5]))
    assert torch.equal(memory.references[: int(memory.filled)], e1[:5])
    expected = loss(e2[5:], y2[5:], torch.cat([e2[:5], e1[:5]]), torch.cat([y2[:5], y1[:5]]))
    torch.testing.assert_close(memory(e2, y2, enqueue=keys), expected)
    assert (int(memory.filled), int(memory.batches)) == (10, 2)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (
            lambda: CrossBatchMemory(TripletLoss(miner=MultiSimilarityMiner()), 9, miner=MultiSimilarityMiner()),
            "miner must be None for a loss with a miner",
        ),
        (lambda: CrossBatchMemory(TripletLoss(), 9, miner="hard"), "miner must be a miner of likewise.miners or None"),
        (
            lambda: CrossBatchMemory(ProxyRepulsionLoss(4, 5), 9, miner=MultiSimilarityMiner()),
            "miner must be None for a loss whose anchors are proxies",
        ),
        (
            lambda: CrossBatchMemory(TripletLoss(), 9)(torch.eye(2), torch.arange(2), enqueue=torch.tensor([0, 1])),
            r"enqueue must be one boolean for each of the 2 embeddings, but it is of dtype torch.int64 and shape \(2,\)",
        ),
        (
            lambda: CrossBatchMemory(TripletLoss(), 9)(torch.eye(2), torch.arange(2), enqueue=torch.ones(2).bool()),
            "enqueue must mark some embeddings and not all, but it marks 2 of 2",
        ),
        (
            lambda: CrossBatchMemory(ProxyRepulsionLoss(4, 2), 9)(
                torch.eye(2), torch.arange(2), enqueue=torch.tensor([True, False])
            ),
            "enqueue must be None for a loss whose anchors are proxies",
        ),
    ],
)
def test_refusals(make, sentence: str):
    with pytest.raises((TypeError, ValueError), match=sentence):
        make()
