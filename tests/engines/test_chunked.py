"""The chunked engine: chunks of any height, no matrix anywhere, four products, and the dense engine's meaning."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from likewise import losses, miners
from likewise.engines import DenseEngine, dense_masks, map_rows
from likewise.engines.chunked import plan_rows
from likewise.engines.schedule import run_on
from likewise.formula import (
    NEGATIVES,
    POSITIVES,
    Cosine,
    Labels,
    Masks,
    MatrixLoss,
    Mined,
    Number,
    PairBatch,
    PerAnchor,
    PerReference,
    Relation,
    RowChunk,
    TermValues,
    Total,
    add_up,
    count,
    full_precision,
    hyper,
    largest,
    logsumexp,
    mean,
    mean_over_batch,
    per_anchor,
    per_pair,
    relu,
    s,
    smallest,
    softplus,
    square,
)
from likewise.losses import PairLoss
from likewise.testing import loop_over
from tests.memory import HIGH_WATER

RECOMPUTE = sys.modules["likewise.engines.recompute"]
M, N, D = 41, 59, 6


@pytest.fixture(autouse=True)
def thin_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seven rows at a time."""
    monkeypatch.setattr(RECOMPUTE, "LEAST_ROWS", 7)
    monkeypatch.setattr(RECOMPUTE, "BUDGET", {"cpu": 1, "cuda": 1})


def batch(m: int = M, d: int = D, classes: int = 9, dtype: torch.dtype = torch.float64, seed: int = 0):
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(classes, (m,), generator=generator)
    centers = torch.randn(classes, d, generator=generator, dtype=torch.float64)
    return (centers[labels] + torch.randn(m, d, generator=generator, dtype=torch.float64)).to(dtype), labels


def outcome(loss: nn.Module, tensors: list[Tensor], *args: Any, **kwargs: Any) -> list[Tensor]:
    leaves = [tensor.detach().clone().requires_grad_() for tensor in tensors]
    value = loss(leaves[0], *args, **({"references": leaves[1]} if len(leaves) > 1 else {}), **kwargs)
    weight = torch.linspace(1.5, 2.5, max(value.numel(), 1), dtype=value.dtype).reshape(value.shape)
    learned = [parameter for parameter in loss.parameters() if parameter.requires_grad]
    return [value.detach(), *torch.autograd.grad((value * weight).sum(), [*leaves, *learned])]


class Everything(PairLoss):
    """Folds in folds, a learned scalar, a number per anchor, per reference and for the batch."""

    scale: float = hyper(default=1.3, help="scale")

    def __post_init__(self) -> None:
        super().__post_init__()
        self.learned = nn.Parameter(torch.tensor(self.scale))
        self.bias = nn.Parameter(torch.linspace(-1.0, 1.0, N))

    def declare(self):
        scale = Number(self.learned)
        bias = PerReference("bias", lambda pair_batch: self.bias[: pair_batch.shape[1]].to(pair_batch.dtype))
        length = PerAnchor("length", lambda pair_batch: pair_batch.anchors.norm(dim=1))
        negatives = logsumexp(scale * s + bias, NEGATIVES)
        pull = add_up(softplus(negatives - scale * s - mean_over_batch(square(s), NEGATIVES)), POSITIVES)
        value = pull + length * largest(s, NEGATIVES) - smallest(s, POSITIVES) + 0.01 * Total(length)
        return per_anchor(value), per_pair(NEGATIVES, square(s) / (1.0 + count(NEGATIVES)))


class AboveMean(miners.PairMiner):
    """Conditions on the whole batch, which no chunk knows."""

    def keep(self, similarity):
        return s < mean_over_batch(s, POSITIVES) + 0.2, mean_over_batch(s, NEGATIVES) < s

    def __post_init__(self) -> None:
        pass


# ------------------------------------------------------------------------------------------------ meaning


@pytest.mark.parametrize("height", [1, 16, 41])
@pytest.mark.parametrize(
    "miner", [None, miners.MultiSimilarityMiner(0.1), AboveMean()], ids=["all", "mined", "above mean"]
)
def test_chunks_of_any_height(height: int, miner: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RECOMPUTE, "LEAST_ROWS", height)
    embeddings, labels = batch()
    references, theirs = batch(N, seed=1)
    for reduction in ("mean", "none"):
        make = partial(Everything, reduction=reduction, miner=miner)
        for tensors, more in (([embeddings], {}), ([embeddings, references], {"reference_labels": theirs})):
            expected = outcome(make(backend="dense").double(), tensors, labels, **more)
            found = outcome(make(backend="chunked").double(), tensors, labels, **more)
            torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)


@loop_over("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("similarity", ["cosine", "dot", "euclidean", "squared_euclidean", "snr"])
def test_as_exact_as_the_matrix(similarity: str, dtype: torch.dtype) -> None:
    embeddings, labels = batch(dtype=dtype)
    make = partial(losses.MultiSimilarityLoss, 2.0, 5.0, similarity=similarity)
    true = outcome(make(backend="dense"), [embeddings.double()], labels)
    errors = []
    for backend in ("dense", "chunked"):
        found = outcome(make(backend=backend), [embeddings], labels)
        assert (found[0].dtype, found[1].dtype) == (torch.float32, dtype)
        errors.append([float((x.double() - t).norm() / t.norm()) for x, t in zip(found, true, strict=True)])
    for dense, own in zip(*errors, strict=True):
        assert own <= 2.0 * dense + 4.0 * torch.finfo(torch.float32).eps


def test_it_may_be_differentiated_twice() -> None:
    embeddings, labels = batch(9, 3, 3)
    found = []
    for backend in ("dense", "chunked"):
        leaf = embeddings.clone().requires_grad_()
        loss = losses.MultiSimilarityLoss(backend=backend)
        (gradient,) = torch.autograd.grad(loss(leaf, labels), leaf, create_graph=True)
        found.append(torch.autograd.grad(gradient.square().sum(), leaf)[0])
    torch.testing.assert_close(*found, rtol=1e-9, atol=1e-9)


def test_back_twice() -> None:
    embeddings, labels = batch()
    leaf = embeddings.clone().requires_grad_()
    value = Everything(backend="chunked").double()(leaf, labels)
    first, second = (torch.autograd.grad(value, leaf, retain_graph=True)[0] for _ in range(2))
    assert torch.equal(first, second)


def test_without_a_graph() -> None:
    embeddings, labels = batch()
    loss = losses.MultiSimilarityLoss(backend="chunked")
    expected = loss(embeddings.clone().requires_grad_(), labels)
    assert not loss(embeddings, labels).requires_grad
    with torch.no_grad():
        assert torch.equal(loss(embeddings.requires_grad_(), labels), expected.detach())


@loop_over("classes", [9, 2])
@loop_over("backend", ["dense", "chunked"])
@pytest.mark.parametrize(
    "make",
    [
        losses.MultiSimilarityLoss,
        losses.LiftedStructureLoss,
        losses.AngularLoss,
        losses.FastAPLoss,
        partial(losses.SubCenterArcFaceLoss, 9, D),
        partial(losses.SoftTripleLoss, 9, D),
    ],
)
def test_backward_inside_autocast(make: Any, backend: str, classes: int) -> None:
    """Losses accumulate in float32 whatever surrounds them, and so do their gradients."""
    embeddings, labels = batch(dtype=torch.float32, classes=classes)
    loss = make(backend=backend)
    expected = outcome(loss, [embeddings], labels)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = outcome(loss, [embeddings], labels)
    torch.testing.assert_close(found, expected)


def test_autocast_is_as_it_was_outside_of_a_loss() -> None:
    """What comes before a loss goes back as if there were none."""
    embeddings, labels = batch(dtype=torch.float32)
    trunk, loss = nn.Linear(D, D), losses.MultiSimilarityLoss(backend="dense")
    slopes = []
    with torch.autocast("cpu", dtype=torch.bfloat16):
        rows = trunk(embeddings)
        alone = rows.detach().requires_grad_()
        loss(rows, labels).backward()
        loss(alone, labels).backward()
        slopes += [trunk.weight.grad.clone(), torch.autograd.grad(trunk(embeddings), trunk.weight, alone.grad)[0]]
        assert torch.is_autocast_enabled("cpu")
    assert torch.equal(*slopes)


def test_a_private_attribute_counts() -> None:
    class Private(PairLoss):
        def declare(self):
            return per_pair(NEGATIVES, relu(s - self._margin))

    embeddings, labels = batch()
    loss = Private()
    loss._margin = 0.1
    first = loss(embeddings, labels)
    loss._margin = 0.5
    assert not torch.equal(loss(embeddings, labels), first)


def test_no_precision_is_lost_on_the_way_back() -> None:
    """Products of matrices and of batches of them, one of them broadcast, differentiated once and twice."""
    generator = torch.Generator().manual_seed(0)
    for left, right in [((3, 4), (4, 5)), ((2, 3, 4), (2, 4, 5)), ((2, 3, 4), (4, 5))]:
        tensors = [torch.randn(shape, generator=generator, dtype=torch.float64) for shape in (left, right)]

        def found(dtype: torch.dtype, tensors: list[Tensor] = tensors) -> list[Tensor]:
            a, b = (tensor.to(dtype).requires_grad_() for tensor in tensors)
            with full_precision(a):
                value = (a @ b).square().sum()
                if a.ndim == b.ndim == 2:
                    value = value + torch.addmm(b.sum(dim=0), a, b).square().sum()
            first = torch.autograd.grad(value, [a, b], create_graph=True)
            return [*first, *torch.autograd.grad(sum(each.square().sum() for each in first), [a, b])]

        with torch.autocast("cpu", dtype=torch.bfloat16):
            single = found(torch.float32)
        torch.testing.assert_close([each.double() for each in single], found(torch.float64), rtol=1e-5, atol=1e-4)


class Nested(PairLoss):
    """Folds inside of curves: infinite, and huge, where an anchor has no positive."""

    def declare(self):
        furthest = mean(square(s - smallest(s, POSITIVES)), NEGATIVES)
        return per_anchor(furthest + square(add_up(s - logsumexp(s, POSITIVES), NEGATIVES)))


@pytest.mark.parametrize("backend", ["dense", "chunked"])
def test_folds_in_curves_over_nothing(backend: str) -> None:
    """An anchor without positives is not counted, and neither is its gradient."""
    embeddings, _ = batch(9, 3)
    labels = torch.tensor([0, 0, 1, 1, 1, 2, 2, 0, 3])
    found = outcome(Nested(backend=backend), [embeddings], labels)
    leaf = embeddings.clone().requires_grad_()
    units = leaf / leaf.norm(dim=1, keepdim=True)
    values = []
    for anchor in range(8):  # the ninth is alone in its class
        row, same = units @ units[anchor], labels == labels[anchor]
        positives = row[same & (torch.arange(9) != anchor)]
        value = (row[~same] - positives.min()).square().mean()
        values.append(value + (row[~same] - positives.exp().sum().log()).sum().square())
    expected = torch.stack(values).mean()
    torch.testing.assert_close(found[0], expected.detach())
    torch.testing.assert_close(found[1], torch.autograd.grad(1.5 * expected, leaf)[0])


@pytest.mark.parametrize("backend", ["dense", "chunked"])
def test_from_a_matrix(backend: str) -> None:
    """The gradients of a matrix that is given and of a learned scalar, through a fold in a fold."""
    embeddings, labels = batch(20)
    matrix = Cosine()(embeddings).requires_grad_()
    loss = losses.NTXentLoss(learn_temperature=True, backend=backend).double()
    value = loss.from_similarity(matrix, labels)
    slope, learned = torch.autograd.grad(value, [matrix, loss.log_temperature])
    same = labels[:, None] == labels[None, :]
    plain, log = matrix.detach().clone().requires_grad_(), loss.log_temperature.detach().clone().requires_grad_()
    logits = plain / log.exp()
    negatives = logits.masked_fill(same, -torch.inf).logsumexp(dim=1, keepdim=True)
    terms = (torch.logaddexp(negatives, logits) - logits)[same & ~torch.eye(20, dtype=torch.bool)]
    expected = torch.autograd.grad(terms.mean(), [plain, log])
    torch.testing.assert_close([slope, learned], list(expected))


@pytest.mark.parametrize("frozen", [0, 1])
def test_one_side_is_frozen(frozen: int) -> None:
    (anchors, labels), (references, theirs) = batch(), batch(N, seed=1)
    found = []
    for backend in ("dense", "chunked"):
        tensors = [anchors.clone(), references.clone()]
        tensors[1 - frozen].requires_grad_()
        loss = losses.MultiSimilarityLoss(similarity="euclidean", backend=backend)
        value = loss(tensors[0], labels, tensors[1], theirs)
        found.append(torch.autograd.grad(value, tensors[1 - frozen])[0])
    torch.testing.assert_close(*found)


# ------------------------------------------------------------------------------------------------ cost


class Largest(TorchDispatchMode):
    """The size of the largest tensor that anybody makes."""

    numel = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for each in result if isinstance(result, list | tuple) else [result]:
            if isinstance(each, Tensor) and not (each._is_view() or each.numel() == 0):
                self.numel = max(self.numel, each.untyped_storage().nbytes() // each.element_size())
        return result


@pytest.mark.parametrize(
    "miner", [None, miners.MultiSimilarityMiner(0.1), AboveMean()], ids=["all", "mined", "above mean"]
)
def test_the_matrix_is_never_made(miner: object) -> None:
    """Nothing is larger than seven rows of it, forward or back."""
    embeddings, labels = batch(97, 4)
    for make in (losses.MultiSimilarityLoss, losses.NTXentLoss, losses.SupConLoss):
        with Largest() as seen:
            outcome(make(backend="chunked", miner=miner), [embeddings], labels)
        assert seen.numel <= 7 * 97
    with Largest() as seen:
        outcome(losses.MultiSimilarityLoss(backend="dense"), [embeddings], labels)
    assert seen.numel >= 97 * 97  # it would be seen


def products(task: Any) -> float:
    """How many products of anchors and references a task makes."""
    with FlopCounterMode(display=False) as counter:
        task()
    return counter.get_total_flops() / (2 * M * N * D)


def step(loss: nn.Module, tensors: list[Tensor], *args: Any, **kwargs: Any) -> None:
    anchors, references = (tensor.clone().requires_grad_() for tensor in tensors)
    loss(anchors, *args, references=references, **kwargs).backward()


@pytest.mark.parametrize("miner", [None, miners.MultiSimilarityMiner(0.1)], ids=["all", "mined"])
def test_four_products(miner: object) -> None:
    """One forward; back, each chunk is made once more, and two products take its gradient to both sides."""
    (anchors, labels), (references, theirs) = batch(), batch(N, seed=1)
    more = {"reference_labels": theirs}
    loss = losses.MultiSimilarityLoss(backend="chunked", miner=miner)
    assert products(lambda: loss(anchors, labels, references, **more)) == 1.0
    assert products(lambda: step(loss, [anchors, references], labels, **more)) == 4.0
    dense = losses.MultiSimilarityLoss(backend="dense", miner=miner)
    assert products(lambda: step(dense, [anchors, references], labels, **more)) == 3.0


def test_a_statistic_of_the_batch_takes_one_more() -> None:
    (anchors, labels), (references, theirs) = batch(), batch(N, seed=1)
    loss = losses.MultiSimilarityLoss(backend="chunked", miner=AboveMean())
    assert products(lambda: step(loss, [anchors, references], labels, reference_labels=theirs)) == 5.0


@pytest.mark.parametrize(("m", "n"), [(1, 1), (7, 3), (8, 3), (100, 10**6), (1000, 50), (0, 5)])
@loop_over("budget", [1, 10**5, 10**9])
def test_chunks_cover_every_row_once(m: int, n: int, budget: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RECOMPUTE, "BUDGET", {"cpu": budget, "cuda": budget})
    relation = Labels(torch.zeros(m, dtype=torch.long), torch.zeros(n, dtype=torch.long))
    cut = plan_rows(PairBatch(relation, matrix=torch.empty(m, n, device="meta")))
    assert [row for rows in cut for row in range(rows.start, rows.stop)] == list(range(m))
    heights = [rows.stop - rows.start for rows in cut]
    assert len(cut) >= 1
    assert max(heights) - min(heights) <= max(heights[0] - heights[-1], 0)  # all alike but for the last
    assert max(heights) <= max(7, budget // (RECOMPUTE.COPIES * n * 4))


def test_nothing_grows() -> None:
    embeddings, labels = batch(20)
    loss = Everything(backend="chunked").double()

    def live() -> int:
        return sum(issubclass(type(each), Tensor) for each in gc.get_objects())

    outcome(loss, [embeddings], labels)
    gc.collect()
    before = live()
    gc.disable()
    try:
        for _ in range(20):
            outcome(loss, [embeddings], labels)
        assert live() == before
    finally:
        gc.enable()


PEAK = """
import sys, torch
from likewise.losses import ContrastiveLoss, MarginLoss
from likewise.miners import DistanceWeightedMiner

torch.set_num_threads(1)
loss = eval(sys.argv[1])
loss.backend = "chunked"
for size in (64, int(sys.argv[2])):
    x = torch.randn(size, 32, requires_grad=True)
    before = high_water(forget=True)
    loss(x, torch.arange(size) // 4).backward()
print(high_water() - before)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("loss", "size", "mib"),
    [("ContrastiveLoss()", 4096, 96), ("MarginLoss(miner=DistanceWeightedMiner())", 8192, 128)],
)
def test_what_is_free_is_used_again(loss: str, size: int, mib: int) -> None:
    """Also of a C library that gives nothing back: ten matrices of a chunk are 20 MiB, and there are 32 chunks or more."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    command = [sys.executable, "-c", HIGH_WATER + PEAK, loss, str(size)]
    result = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert int(result.stdout) < mib * 2**20


# ------------------------------------------------------------------------------------------------ tools


def test_functions_of_rows() -> None:
    """Losses that are no formula: any number of terms, with any of their counts."""
    embeddings, labels = batch(20)

    def compute(S: Tensor, positive: Tensor, negative: Tensor) -> list[TermValues]:
        return [
            TermValues((S * positive).sum(dim=1), positive.sum(dim=1), None),
            TermValues((S * S * negative).sum(dim=1), None, negative.sum(dim=1)),
        ]

    results = []
    for backend in ("dense", "chunked"):
        leaf = embeddings.clone().requires_grad_()
        pair_batch = PairBatch(Labels(labels), Cosine(), anchors=leaf)
        rows = map_rows(pair_batch, backend)
        values = MatrixLoss.by_rows(compute).compute(rows.batch, rows)
        sum(term.total.sum() for term in values).backward()
        results.append((values, leaf.grad))
        (top,) = rows.map(lambda chunk: (chunk.similarities.sort(dim=1).values[:, :3],))
        assert top.shape == (20, 3)
        (total,) = rows.sum(lambda chunk: (chunk.similarities.exp().sum(),))
        torch.testing.assert_close(total, pair_batch.similarities().exp().sum())
    torch.testing.assert_close(results[0][1], results[1][1])
    for ours, theirs in zip(results[0][0], results[1][0], strict=True):
        for a, b in zip(ours, theirs, strict=True):
            assert (a is None) == (b is None)
            if a is not None:
                torch.testing.assert_close(a, b)


class Doubled(torch.autograd.Function):
    """Not visible to who watches calls of torch."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return 2.0 * x

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return 2.0 * grad


def test_what_a_function_of_rows_knows_gets_its_gradient() -> None:
    """Something learned, the chunk's own anchors and factors, what comes of the embeddings elsewhere."""
    embeddings, labels = batch(20)
    weight = torch.linspace(0.5, 1.5, 20, dtype=torch.float64)

    def gradients(kind: str, backend: str) -> list[Tensor]:
        leaf, learned = embeddings.clone().requires_grad_(), weight.clone().requires_grad_()
        pair_batch, length = PairBatch(Labels(labels), Cosine(), anchors=leaf), leaf.norm(dim=1)
        known = {
            "nothing": lambda chunk: 1.0,
            "learned": lambda chunk: learned,
            "by a function": lambda chunk: Doubled.apply(learned),
            "elsewhere": lambda chunk: torch.stack([length, length])[0],
            "anchors": lambda chunk: chunk.batch.anchors.sum(dim=1, keepdim=True),
            "factors": lambda chunk: chunk.batch.both_factors()[1].square().sum(dim=1) * learned,
        }
        rows = map_rows(pair_batch, backend)
        (result,) = rows.map(lambda chunk: ((chunk.similarities * known[kind](chunk)).sum(dim=1),))
        return list(torch.autograd.grad((result * weight).sum(), [leaf, learned], allow_unused=True))

    for kind in ("nothing", "learned", "by a function", "elsewhere", "anchors", "factors"):
        found, expected = gradients(kind, "chunked"), gradients(kind, "dense")
        assert [each is None for each in found] == [each is None for each in expected]
        for ours, theirs in zip(found, expected, strict=True):
            torch.testing.assert_close(ours, theirs)


def test_a_miner_that_needs_the_batch_by_rows() -> None:
    embeddings, labels = batch(20)
    mined = Mined(Labels(labels), *AboveMean().keep(Cosine()))
    pair_batch = PairBatch(mined, Cosine(), anchors=embeddings)

    def compute(chunk: RowChunk) -> tuple[Tensor, ...]:
        return tuple(mask.sum(dim=1) for mask in chunk.masks())

    expected = [mask.sum(dim=1) for mask in dense_masks(pair_batch)]
    for backend in ("dense", "chunked"):
        torch.testing.assert_close(map_rows(pair_batch, backend).map(compute), expected)


class Odd(Relation):
    """A relation that cannot be cut."""

    def __init__(self, masks: Masks) -> None:
        self.of = masks

    device = property(lambda self: self.of.device)

    def masks(self, rows: slice = slice(None), columns: slice = slice(None)) -> tuple[Tensor, Tensor]:
        return self.of.masks(rows, columns)

    def with_shape(self, anchors: int, references: int) -> Odd:
        return self


def test_a_relation_that_cannot_be_cut_is_refused() -> None:
    embeddings, labels = batch(20)
    relation = Odd(Masks(*Labels(labels).masks()))
    losses.ContrastiveLoss(backend="dense")(embeddings, relation=relation)
    with pytest.raises(TypeError, match=r"must define rows\(\) to be computed in chunks") as caught:
        losses.ContrastiveLoss(backend="chunked")(embeddings, relation=relation)
    assert "\n" not in str(caught.value)


# ------------------------------------------------------------------------------------------------ the schedule


def fresh_terms() -> Iterator[list[Any]]:
    stays = per_pair(POSITIVES, s)
    yield [stays]
    yield [stays, per_anchor(logsumexp(s - largest(s, NEGATIVES), NEGATIVES))]
    yield [stays, per_pair(NEGATIVES, square(s - mean_over_batch(s, NEGATIVES)))]
    yield [stays]


def test_a_schedule_is_that_of_its_terms() -> None:
    """It is kept with the first term; the others may be others next time, and so may the reduction."""
    embeddings, labels = batch(20)
    pair_batch = PairBatch(Labels(labels), Cosine(), anchors=embeddings)
    for terms in fresh_terms():
        for reduction in ("mean", "nonzero", "sum", "none"):
            values = run_on(terms, pair_batch, DenseEngine(pair_batch), reduction)
            assert len(values) == len(terms)
            again = [run_on([term], pair_batch, DenseEngine(pair_batch), reduction)[0] for term in terms]
            torch.testing.assert_close([value.total for value in values], [value.total for value in again])
            assert all((value.units is None) == (reduction != "mean") for value in values)
            assert all((value.nonzero is None) == (reduction != "nonzero") for value in values)
