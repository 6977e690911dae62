"""Positives known by index: what masks give, without a mask, and only where it was measured to be faster."""

from __future__ import annotations

import sys
from functools import partial

import pytest
import torch
from torch import Tensor, nn

from likewise import losses, miners
from likewise.engines import ChunkedEngine, DenseEngine, Engine
from likewise.engines.dispatch import CHUNK_FROM
from likewise.engines.indexed import IndexedMatrix
from likewise.engines.positive_columns import PositiveColumns
from likewise.engines.positive_index import find_positive_index
from likewise.formula import (
    NEGATIVES,
    POSITIVES,
    Cosine,
    Labels,
    PairBatch,
    PerAnchor,
    largest,
    logsumexp,
    mean,
    per_anchor,
    s,
    similarity_hook,
)
from tests.losses.cases import CASES

DISPATCH, RECOMPUTE = (sys.modules[f"likewise.engines.{name}"] for name in ("dispatch", "recompute"))

RAGGED = torch.tensor([3, 0, 1, 3, 2, 0, 3, 1, 5, 3, 0, 7, 7])
"""Classes of four, three, two, one: some positions are empty, and some anchors have no positive."""


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch of thirteen is large here."""
    monkeypatch.setattr(DISPATCH, "INDEX_FROM", 1)


def batch(labels: Tensor = RAGGED, **options: object) -> PairBatch:
    embeddings = torch.randn(len(labels), 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return PairBatch(Labels(labels, **options), Cosine(), anchors=embeddings)  # type: ignore[arg-type]


def engine_of(batch: PairBatch, backend: str = "auto") -> Engine:
    return DISPATCH.make_engine(batch, DISPATCH.choose(batch, backend))


def outcome(loss: nn.Module, embeddings: Tensor, labels: Tensor) -> list[Tensor]:
    """The value, first derivatives, and the derivative of their square."""
    leaf = embeddings.clone().requires_grad_()
    value = loss(leaf, labels)
    gradients = torch.autograd.grad(value.sum(), [leaf, *loss.parameters()], create_graph=True, allow_unused=True)
    there = [gradient for gradient in gradients if gradient is not None and gradient.requires_grad]
    again = torch.autograd.grad(sum(gradient.square().sum() for gradient in there), leaf) if there else ()
    return [value.detach(), *(gradient.detach() for gradient in gradients if gradient is not None), *again]


def in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is computed in chunks of five anchors."""
    monkeypatch.setitem(CHUNK_FROM, "cpu", 1)
    monkeypatch.setattr(RECOMPUTE, "LEAST_ROWS", 5)
    monkeypatch.setattr(RECOMPUTE, "BUDGET", {"cpu": 1, "cuda": 1})


@pytest.mark.parametrize(("reduction", "way"), [("nonzero", "whole"), ("mean", "chunks")])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.label)
def test_every_loss_is_what_masks_make_of_it(case, reduction: str, way: str, monkeypatch: pytest.MonkeyPatch):
    if way == "chunks":
        in_chunks(monkeypatch)
    embeddings = torch.randn(len(RAGGED), 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    torch.manual_seed(0)
    plain = case.make().double()
    torch.manual_seed(0)
    quick = case.make().double()
    for loss, backend in ((plain, "dense"), (quick, "auto")):
        loss.reduction, loss.backend = reduction, backend
    for found, expected in zip(outcome(quick, embeddings, RAGGED), outcome(plain, embeddings, RAGGED), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-11)


def test_it_is_taken_where_it_is_faster_and_nowhere_else(monkeypatch: pytest.MonkeyPatch):
    assert type(engine_of(batch())) is IndexedMatrix
    assert type(engine_of(batch(), "dense")) is DenseEngine  # the reference is what was asked for
    many = torch.arange(40) // 20
    assert type(engine_of(batch(many))) is DenseEngine
    others = batch(reference_labels=RAGGED)
    assert type(engine_of(others.replace(references=others.anchors))) is DenseEngine
    monkeypatch.setattr(DISPATCH, "INDEX_FROM", len(RAGGED) ** 2 + 1)
    assert type(engine_of(batch())) is DenseEngine


def test_chunks_of_a_large_batch_need_no_masks(monkeypatch: pytest.MonkeyPatch):
    in_chunks(monkeypatch)
    engine = engine_of(batch())
    assert isinstance(engine, ChunkedEngine)
    assert engine.positives is not None
    for masked in (engine_of(batch(), "chunked"), engine_of(batch(torch.arange(40) // 20))):
        assert isinstance(masked, ChunkedEngine)
        assert masked.positives is None
    monkeypatch.setattr(DenseEngine, "__init__", None)  # nobody calls it
    found = engine.fold([[logsumexp(s, NEGATIVES), largest(s, POSITIVES)]], {})
    positives = find_positive_index(batch(), large=False)
    columns = PositiveColumns.of_batch(positives, len(RAGGED), 0)
    whole = IndexedMatrix(batch().similarities(), columns).fold([list(found)], {})
    for fold, value in found.items():
        torch.testing.assert_close(value, whole[fold], rtol=1e-12, atol=0.0)


def test_a_hook_sees_the_matrix(monkeypatch: pytest.MonkeyPatch):
    in_chunks(monkeypatch)
    embeddings = torch.randn(len(RAGGED), 5, generator=torch.Generator().manual_seed(6))
    with similarity_hook(lambda _batch, matrix: 0.5 * matrix):
        seen, known = (
            losses.MultiSimilarityLoss(backend=name)(embeddings, RAGGED).item() for name in ("auto", "dense")
        )
    assert seen == known != losses.MultiSimilarityLoss()(embeddings, RAGGED).item()


def test_a_miner_is_given_masks():
    embeddings = torch.randn(len(RAGGED), 5, generator=torch.Generator().manual_seed(2))
    make = partial(losses.MultiSimilarityLoss, miner=miners.MultiSimilarityMiner(0.1))
    assert make()(embeddings, RAGGED).item() == make(backend="dense")(embeddings, RAGGED).item()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_a_temperature_in_another_precision_is_rounded_once(dtype: torch.dtype):
    embeddings = torch.randn(len(RAGGED), 5, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    values = [
        losses.NTXentLoss(0.07, learn_temperature=True, backend=backend).to(dtype)(embeddings, RAGGED).item()
        for backend in ("auto", "dense")
    ]
    assert values[0] == pytest.approx(values[1], rel=1e-12)


class ByLength(losses.PairLoss):
    """A factor for each anchor that is wider than the similarities."""

    def declare(self):
        length = PerAnchor("length", lambda batch: batch.anchors.detach().double().norm(dim=1))
        return per_anchor(logsumexp(length * s, NEGATIVES) - mean(s, POSITIVES))


def test_a_wide_number_per_anchor():
    embeddings = torch.randn(len(RAGGED), 5, generator=torch.Generator().manual_seed(4))
    gradients = []
    for backend in ("auto", "dense"):
        leaf = embeddings.clone().requires_grad_()
        ByLength(backend=backend)(leaf, RAGGED).backward()
        gradients.append(leaf.grad)
    torch.testing.assert_close(*gradients)


def test_labels_may_be_a_column_of_a_table():
    """Torch warns of searches in strided tensors, and here a warning is an error."""
    labels = torch.stack([RAGGED, RAGGED], dim=1)[:, 0]
    assert not labels.is_contiguous()
    embeddings = torch.randn(len(labels), 5, generator=torch.Generator().manual_seed(5))
    assert losses.NTXentLoss()(embeddings, labels).item() == losses.NTXentLoss()(embeddings, RAGGED).item()
