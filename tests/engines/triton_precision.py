"""Precision of the Triton engine: rounding to TF32, half precision in both factors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from triton.runtime import interpreter

from likewise import losses, miners
from likewise.engines import evaluate_declaration
from likewise.engines.triton import product
from likewise.engines.triton.factor import Factor
from likewise.engines.triton.product import make_factors
from likewise.formula import Labels, PairBatch, split_into_parts
from likewise.formula.inputs import batch_from_embeddings
from likewise.formula.precision import same_half
from likewise.formula.similarities import SIMILARITIES, SNR, Cosine, Dot, Euclidean, Similarity, SquaredEuclidean
from tests.engines.triton_common import EPS, WAYS, batch, check, layout, relative_errors, run, take


@pytest.fixture(autouse=True)
def restore_precision() -> Iterator[None]:
    before = torch.get_float32_matmul_precision()
    yield
    torch.set_float32_matmul_precision(before)


def round_to_tf32(x: Tensor) -> Tensor:
    """Round to eleven binary digits, ties away from zero, in float64 arithmetic."""
    mantissa, exponent = np.frexp(x.double().numpy())
    rounded = np.copysign(np.floor(np.abs(mantissa) * 2.0**11 + 0.5), mantissa)
    return torch.from_numpy(np.ldexp(rounded, exponent - 11))


# ------------------------------------------------------------------------------------------------ TF32


def test_rounding_to_tf32() -> None:
    generator = torch.Generator().manual_seed(0)
    some = torch.randn(64, generator=generator) * 10.0 ** torch.randint(-30, 30, (64,), generator=generator)
    ties = torch.tensor([1.0 + 2.0**-11, -1.0 - 2.0**-11, 1.0 + 3 * 2.0**-11, 2.0 - 2.0**-12, 0.0, -0.0, 1.0, 3.0])
    below = torch.tensor([1.0 + 2.0**-11 - 2.0**-23, -1.0 - 2.0**-11 + 2.0**-23])
    x = torch.cat([some, ties, below, torch.zeros(6)])[None]
    found = Factor(x, None, unit=False, dtype=torch.float32, rounded=True).operand
    assert torch.equal(found.double(), round_to_tf32(x))
    assert not (found.view(torch.int32) & 0x1FFF).any()  # the bits that a tensor core drops
    # about half of the magnitudes are rounded up: no bias
    assert abs(float(((found - x).sign() * x.sign()).mean())) < 0.3


def test_infinity_and_nan_stay() -> None:
    large = torch.finfo(torch.float32).max
    x = torch.tensor([[torch.inf, -torch.inf, torch.nan, large, -large, 1e-45, *[0.0] * 10]])
    found = Factor(x, None, unit=False, dtype=torch.float32, rounded=True).operand[0]
    assert found[:5].tolist()[:2] == [torch.inf, -torch.inf]
    assert found[2].isnan()
    assert found[3:6].tolist() == [torch.inf, -torch.inf, 0.0]  # the next number of eleven binary digits is too large


@pytest.mark.parametrize(("allowed", "copied"), [("highest", False), ("high", True)])
def test_rows_that_need_no_copy(allowed: str, copied: bool) -> None:
    """Sixteen dimensions without normalization or sorting: the operand is the embeddings, unless they must be rounded."""
    embeddings, labels = batch(19, 16)
    torch.set_float32_matmul_precision(allowed)
    pair_batch = batch_from_embeddings(embeddings, labels, None, None, None, Dot())
    operand = layout.lay_out(pair_batch).left.operand
    assert (operand.data_ptr() != embeddings.data_ptr()) == copied
    assert torch.equal(operand.double(), round_to_tf32(embeddings) if copied else embeddings.double())


def test_only_where_tf32_is_used() -> None:
    embeddings, labels = batch(19)
    pair_batch = batch_from_embeddings(embeddings, labels, None, None, None, Cosine())
    half = batch_from_embeddings(embeddings.half(), labels, None, None, None, Cosine())
    for allowed, rounded in (("highest", False), ("high", True), ("medium", False)):
        torch.set_float32_matmul_precision(allowed)
        assert make_factors(pair_batch).product.rounded == rounded
        assert not make_factors(half).product.rounded


def truncate_operands(patch: pytest.MonkeyPatch) -> list[bool]:
    """Make the interpreter truncate float32 operands, as tensor cores do."""
    made, changed = interpreter.InterpreterBuilder.create_dot, []

    def create_dot(self, a, b, d, precision, imprecise):
        kept = []
        for each in (a, b):
            kept.append(interpreter.TensorHandle((each.data.view(np.int32) & -0x2000).view(np.float32), each.dtype))
            changed.append(not np.array_equal(kept[-1].data, each.data))
        return made(self, *kept, d, precision, imprecise)

    patch.setattr(interpreter.InterpreterBuilder, "create_dot", create_dot)
    return changed


SIDES: dict[str, Similarity] = {
    "cosine": Cosine(),
    "dot": Dot(),
    "chord": SquaredEuclidean(),
    "squared": SquaredEuclidean(normalize=False),
    "euclidean": Euclidean(normalize=False),
    "snr": SNR(normalize=False),
}


@pytest.mark.parametrize("name", SIDES)
def test_truncation_finds_nothing_to_drop(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    embeddings, labels = batch(19, 70)
    torch.set_float32_matmul_precision("high")
    loss = losses.MultiSimilarityLoss(2.0, 5.0, -0.5, similarity=SIDES[name], backend="triton")
    take(monkeypatch, WAYS[list(SIDES).index(name) % len(WAYS)])
    expected = run(loss, [embeddings], labels)
    with monkeypatch.context() as patch:
        changed = truncate_operands(patch)
        found = run(loss, [embeddings], labels)
        assert changed
        assert not any(changed)
    assert all(torch.equal(x, y) for x, y in zip(found, expected, strict=True))


@pytest.mark.parametrize("name", SIDES)
def test_norms_are_not_rounded(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Products of rounded embeddings, but norms in float32, as in a dense engine with TF32 products."""
    embeddings, labels = batch(19, 70)
    similarity = SIDES[name]
    wide = embeddings.double()
    if similarity.normalize:
        wide = torch.nn.functional.normalize(wide)
    elif name == "snr":
        wide = wide - wide.mean(dim=1, keepdim=True)
    elif name == "euclidean":
        wide = wide - wide.mean(dim=0, keepdim=True)
    squares = wide.square().sum(dim=1)
    # the factor of the ratio is rounded with its 2, that of distances without it
    left = (
        round_to_tf32((2.0 * wide / squares[:, None]).float()) if name == "snr" else 2.0 * round_to_tf32(wide.float())
    )
    products = left @ round_to_tf32(wide.float()).T
    if similarity.uses_squares:
        ratio = (1.0 / squares[:, None]) if name == "snr" else 1.0
        expected = products - (squares[:, None] + squares) * ratio
        expected = -(-expected).clamp_min(0.0).sqrt() if name == "euclidean" else expected
    else:
        expected = products / 2.0
    torch.set_float32_matmul_precision("high")
    take(monkeypatch, "general")
    loss = losses.ContrastiveLoss(
        similarity.threshold(0.3), similarity.threshold(0.2), similarity=similarity, backend="triton", reduction="mean"
    )
    value = loss(embeddings, labels)
    off = ~torch.eye(19, dtype=torch.bool)
    same = (labels[:, None] == labels) & off
    true = torch.relu(0.3 - expected[same]).mean() + torch.relu(expected[~same & off] - 0.2).mean()
    assert abs(float(value) - float(true)) <= 16.0 * EPS * float(expected[off].abs().mean())


# ------------------------------------------------------------------------------------------------ half precision


def test_which_half_all_have() -> None:
    x = torch.zeros(2, 3)
    assert same_half(x.half()) == torch.float16
    assert same_half(x.bfloat16(), x.bfloat16()) == torch.bfloat16
    for others in ((x,), (x.half(), x), (x, x.half()), (x.half(), x.bfloat16()), (x.double(), x.double())):
        assert same_half(*others) is None


@pytest.mark.parametrize("name", [name for name in SIMILARITIES if name != "poincare"])
def test_two_sets_in_half_precision(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (anchors, labels), (references, theirs) = batch(19, 17, 6), batch(37, 17, 6, seed=1)
    anchors[3], references[5] = 0.0, 0.0
    references *= 10.0 ** torch.linspace(-3, 3, 37)[:, None]  # each row has another scale
    tensors = [anchors.half(), references.half()]
    pair_batch = batch_from_embeddings(*tensors[:1], labels, tensors[1], theirs, None, SIMILARITIES[name])
    spec = make_factors(pair_batch).product
    assert (spec.dtype == torch.float16) == (name != "snr")
    assert spec.scaled == (name not in ("dot", "snr"))
    if name == "dot":
        tensors = [anchors.half(), (references / references.abs().amax(dim=1, keepdim=True).clamp_min(1.0)).half()]
    take(monkeypatch, WAYS[list(SIMILARITIES).index(name) % len(WAYS)])
    check(partial(losses.NTXentLoss, 2.0, similarity=name), tensors, labels, reference_labels=theirs)


def test_two_sets_of_which_one_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both orientations of chunks, with a miner and with folds whose gradient goes to one pair."""
    (anchors, labels), (references, theirs) = batch(35, 9, 6), batch(7, 9, 6, seed=1)
    miner = miners.MultiSimilarityMiner(0.3)
    for way in WAYS:
        take(monkeypatch, way)
        for left, right in (((anchors, labels), (references, theirs)), ((references, theirs), (anchors, labels))):
            make = partial(losses.MultiSimilarityLoss, 2.0, 5.0, miner=miner)
            check(make, [left[0].half(), right[0].half()], left[1], reference_labels=right[1])


def test_two_sets_of_two_dtypes(monkeypatch: pytest.MonkeyPatch) -> None:
    (anchors, labels), (references, theirs) = batch(19), batch(23, seed=1)
    for tensors in ([anchors.half(), references], [anchors, references.half()]):
        pair_batch = batch_from_embeddings(tensors[0], labels, tensors[1], theirs, None, Cosine())
        assert pair_batch.half is None
        take(monkeypatch, "general")
        check(losses.MultiSimilarityLoss, tensors, labels, reference_labels=theirs)


@pytest.mark.parametrize(("way", "turned"), [("general", True), ("sorted", False)])
def test_proxies_in_half_precision(way: str, turned: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The batches of losses with proxies: ordered references, or proxies as anchors."""
    take(monkeypatch, way)
    (samples, labels), proxies = batch(34, 12, 10), batch(10, 12, 10, seed=2)[0]
    loss = losses.ProxyAnchorLoss(10, 12) if turned else losses.ArcFaceLoss(10, 12, 20.0, 7.0)
    ((_, declaration),) = loss.declare().items()
    found = []
    for backend, wide in (("triton", torch.float32), ("dense", torch.float64), ("dense", torch.float32)):
        leaves = [x.half().to(wide).requires_grad_() for x in (samples, proxies)]
        relation = Labels(torch.arange(10), labels) if turned else Labels(labels, torch.arange(10), ordered=True)
        anchors, references = leaves[::-1] if turned else leaves
        pair_batch = PairBatch(relation, Cosine(), anchors=anchors, references=references, half=torch.float16)
        if backend == "triton":
            assert make_factors(pair_batch).product.scaled
        value = evaluate_declaration(declaration, pair_batch, "mean", backend)
        found.append([value.detach(), *torch.autograd.grad(value, leaves)])
    triton, true, dense = found
    for own, theirs in zip(relative_errors(triton, true), relative_errors(dense, true), strict=True):
        assert own <= 2.0 * theirs + 4.0 * EPS


# ------------------------------------------------------------------------------------------------ parts


@pytest.mark.parametrize("kind", ["pairs", "distances", "proxies", "centers", "bins"])
@pytest.mark.parametrize("way", WAYS)
def test_gradients_in_parts(way: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gradients by similarities as sums of three bfloat16 matrices, on every path that multiplies them."""
    kinds: dict[str, Callable[..., nn.Module]] = {
        "pairs": partial(losses.MultiSimilarityLoss, 2.0, 5.0),
        "distances": partial(losses.ContrastiveLoss, 0.3, 1.2, similarity="euclidean"),
        "proxies": partial(losses.ArcFaceLoss, 8, 5, 20.0, 7.0),
        "centers": partial(losses.SoftTripleLoss, 8, 5, centers=2),
        "bins": partial(losses.FastAPLoss, 10),
    }
    take(monkeypatch, way)
    split_operands: list[int] = []

    def count(operand: Tensor, number: int) -> list[Tensor]:
        split_operands.append(number)
        return split_into_parts(operand, number)

    monkeypatch.setattr(product, "PARTS_FROM", 1)
    monkeypatch.setattr(product, "multiplies_parts_fast", lambda device: True)
    monkeypatch.setattr(layout, "split_into_parts", count)

    def make(**options: Any) -> nn.Module:
        torch.manual_seed(0)
        return kinds[kind](**options)

    check(make, *batch())
    assert set(split_operands) == {3}
