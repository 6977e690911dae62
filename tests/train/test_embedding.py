"""Embeddings are what the model says, and metrics are those of the metrics room."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

from likewise.train import Embedded, embed, evaluate
from likewise.train.embedding import repeat_last
from likewise.trunks import Embedder
from tests.train.small import linear, pictures, small


def test_it_is_the_forward_pass():
    model, batches = small().train(), pictures(3)
    found = embed(model, batches)
    assert model.training
    assert found.embeddings.dtype == torch.float32
    model.eval()
    with torch.no_grad():
        assert torch.equal(found.embeddings, torch.cat([model(images) for images, _ in batches]))
    assert torch.equal(found.labels, torch.cat([labels for _, labels in batches]))
    assert embed(model, batches).embeddings.equal(found.embeddings)
    assert not model.training


def test_a_last_batch_keeps_its_images_and_its_memory_format():
    for layout in (torch.channels_last, torch.contiguous_format):
        images = torch.rand(3, 2, 4, 4).contiguous(memory_format=layout)
        repeated = repeat_last(images, 5)
        assert torch.equal(repeated, torch.cat([images, images[-1:], images[-1:]]))
        assert repeated.is_contiguous(memory_format=layout)


def test_nothing_is_learned():
    model = small()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    found = embed(model, pictures(2))
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())
    assert not found.embeddings.requires_grad
    (found.embeddings * nn.Parameter(torch.ones(()))).sum().backward()  # and it can be used in training


def test_the_mode_of_every_part_is_restored():
    model = small().train()
    model.trunk[1].eval()  # somebody froze a batch norm by hand
    embed(model, pictures(1))
    assert model.head.training
    assert not model.trunk[1].training


def test_frozen_batch_norms_stay_frozen():
    model = Embedder("convnet", 4, freeze_bn=True).train()
    embed(model, [(torch.rand(4, 1, 16, 16), torch.arange(4))])
    assert model.training
    assert not any(norm.training for norm in model.trunk.norms)


def test_the_mode_is_restored_after_an_error():
    model = small().train()
    with pytest.raises(RuntimeError):
        embed(model, [(torch.zeros(2, 7, 8, 8), torch.arange(2))])
    assert model.training


def test_half_precision():
    batches = pictures(2)
    exact, half = embed(small(), batches).embeddings, embed(small(), batches, precision="bf16").embeddings
    assert half.dtype == torch.float32
    assert not torch.equal(exact, half)
    assert torch.allclose(exact, half, atol=0.05)


class Stream(IterableDataset):
    def __iter__(self):
        yield from zip(*pictures(1)[0], strict=True)


def test_batches_of_any_kind():
    model, [(images, labels)] = small(), pictures(1)
    expected = embed(model, [(images, labels)]).embeddings
    assert embed(model, DataLoader(TensorDataset(images, labels), batch_size=8)).embeddings.equal(expected)
    assert embed(model, iter([[images, labels, "more", None]])).embeddings.equal(expected)
    assert embed(model, DataLoader(Stream(), batch_size=8)).embeddings.equal(expected)


def test_no_batches():
    with pytest.raises(ValueError, match=r"^batches must have at least one batch, but it has none$"):
        embed(linear(), [])


def test_a_model_without_parameters():
    assert embed(nn.Flatten(), [(torch.ones(2, 3), torch.arange(2))]).embeddings.equal(torch.ones(2, 3))


LINE = torch.tensor([[1.0, 0.0], [0.9, 0.3], [0.5, 0.8], [0.0, 1.0], [-0.3, 1.0], [0.6, 0.6]])
LABELS = torch.tensor([0, 0, 1, 1, 1, 0])


def neighbors(queries: list[int], gallery: list[int]) -> float:
    """Recall at one by looking."""
    units = LINE / LINE.norm(dim=1, keepdim=True)
    right = 0
    for query in queries:
        others = [each for each in gallery if each != query]
        nearest = max(others, key=lambda each: float(units[query] @ units[each]))
        right += int(LABELS[nearest] == LABELS[query])
    return right / len(queries)


def test_metrics_of_all_against_all():
    found = evaluate(Embedded(LINE, LABELS), ks=(1, 3))
    everyone = list(range(6))
    assert found["R@1"] == pytest.approx(neighbors(everyone, everyone))
    assert found["R@1"] < 1.0
    assert {"R@1", "R@3", "P@1", "RP", "MAP@R", "MRR", "mAP", "queries", "queries_without_positive"} == set(found)


def test_metrics_of_queries_and_gallery():
    is_query = torch.tensor([True, False, True, False, False, True])
    found = evaluate(Embedded(LINE, LABELS), is_query)
    assert found["queries"] == 3
    assert found["R@1"] == pytest.approx(neighbors([0, 2, 5], [1, 3, 4]))


@pytest.mark.parametrize("is_query", [[1, 0, 1, 0, 0, 1], [True, False], [1.0] * 6])
def test_roles_are_booleans(is_query):
    with pytest.raises((ValueError, TypeError), match=r"^is_query must"):
        evaluate(Embedded(LINE, LABELS), torch.tensor(is_query))
