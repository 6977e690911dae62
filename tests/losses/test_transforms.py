"""``torch.func``, forward mode and second derivatives, on every engine: equal to ``backward`` and to loops, or one sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import pytest
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.func import functional_call, grad, jvp, stack_module_state, vmap

from likewise import distributed, losses, miners
from likewise.distributed import TorchProcessGroup
from likewise.engines import dispatch, recompute
from likewise.formula import Euclidean, Labels, Masks, Triplets
from likewise.testing import make_batch
from tests.losses.cases import CASES, PROXY_CASES

# vmap expands what it does not map over
pytestmark = pytest.mark.filterwarnings("ignore:torch.searchsorted")

X, Y = make_batch("ragged", seed=3)
DIRECTION = torch.randn(X.shape, generator=torch.Generator().manual_seed(0), dtype=X.dtype)
BATCHES, LABELS = torch.stack([X, X + 0.1 * DIRECTION, X.flip(0)]), torch.stack([Y, Y.flip(0), Y])
REFERENCES, REFERENCE_LABELS = make_batch("balanced", seed=4)


@pytest.fixture
def tiny_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several chunks, of anchors and of proxies, also where the dispatcher chooses the engine."""
    monkeypatch.setitem(recompute.BUDGET, "cpu", 1)
    monkeypatch.setattr(recompute, "LEAST_ROWS", 4)


def close(found: Tensor, expected: Tensor, tolerance: float = 1e-8) -> None:
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)


def backward(loss: Callable[..., Tensor], *arguments: Tensor) -> Tensor:
    leaf = arguments[0].clone().requires_grad_()
    return torch.autograd.grad(loss(leaf, *arguments[1:]).sum(), leaf)[0]


def check_transforms(loss: Callable[..., Tensor]) -> None:
    """Embeddings mapped, differentiated in both modes, and differentiated for each batch."""

    def total(embeddings: Tensor) -> Tensor:
        return loss(embeddings).sum()

    expected = [backward(loss, embeddings) for embeddings in BATCHES]
    close(grad(total)(X), expected[0])
    close(jvp(total, (X,), (DIRECTION,))[1], (expected[0] * DIRECTION).sum())
    close(vmap(loss)(BATCHES), torch.stack([loss(embeddings).detach() for embeddings in BATCHES]))
    close(vmap(grad(total))(BATCHES), torch.stack(expected))


def check_labels(loss: nn.Module) -> None:
    """Labels mapped, with the embeddings and without them."""
    together = [loss(*each).detach() for each in zip(BATCHES, LABELS, strict=True)]
    close(vmap(loss)(BATCHES, LABELS), torch.stack(together))
    close(vmap(loss, (None, 0))(X, LABELS), torch.stack([loss(X, labels).detach() for labels in LABELS]))


@pytest.mark.usefixtures("tiny_chunks")
@pytest.mark.parametrize("case", [*CASES, *PROXY_CASES], ids=lambda case: case.label)
def test_every_loss_on_every_engine(case) -> None:
    auto = ("auto",) if case in PROXY_CASES else ()  # a small batch of pairs is dense
    for backend in (*auto, "dense", "chunked"):
        loss = case.make(backend=backend).double()
        check_transforms(lambda embeddings, loss=loss: loss(embeddings, Y))
        check_labels(loss)


@pytest.mark.parametrize("case", [*CASES, *PROXY_CASES], ids=lambda case: case.label)
def test_second_derivatives_and_ensembles(case) -> None:
    """Forward over reverse equals reverse over reverse; parameters of several losses are mapped together."""
    loss = case.make().double()
    leaf = X.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(loss(leaf, Y), leaf, create_graph=True)
    (expected,) = torch.autograd.grad((gradient * DIRECTION).sum(), leaf)
    close(jvp(grad(lambda embeddings: loss(embeddings, Y)), (X,), (DIRECTION,))[1], expected, 1e-6)
    ensemble = [case.make().double() for _ in range(2)]
    if not list(loss.parameters()):
        return
    for each in ensemble[1].parameters():
        each.data += 0.1
    parameters, buffers = stack_module_state(ensemble)
    found = vmap(lambda state: functional_call(loss, state, (X, Y)))({**parameters, **buffers})
    close(found.detach(), torch.stack([each(X, Y) for each in ensemble]).detach())


def make_seeded(make: Callable[[], nn.Module]) -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return make().double()


def filled_memory(loss: nn.Module) -> nn.Module:
    memory = losses.CrossBatchMemory(loss, size=8)
    memory(X.flip(0), Y.flip(0))
    return memory.eval()


WRAPPED: dict[str, Callable[[], nn.Module]] = {
    "direction, triplets": lambda: losses.DirectionRegularized(losses.TripletLoss()),
    "direction, multi-similarity": lambda: losses.DirectionRegularized(losses.MultiSimilarityLoss()),
    "direction, ProxyNCA": lambda: losses.DirectionRegularized(losses.ProxyNCALoss(10, 5)),
    "language": lambda: losses.LanguageGuidance(losses.ContrastiveLoss(), torch.randn(10, 4), mask_same_class=True),
    "norm": losses.EmbeddingNorm,
    "zero mean": losses.ZeroMean,
    "sum": lambda: losses.WeightedSum({losses.ContrastiveLoss(): 1.0, losses.SoftmaxLoss(10, 5): 0.5}),
    "matryoshka": lambda: losses.Matryoshka(losses.TripletLoss(), [2, 5]),
    "memory": lambda: filled_memory(losses.ContrastiveLoss()),
    "memory of proxy anchors": lambda: filled_memory(losses.ProxyAnchorLoss(10, 5).double()),
    "gathered": lambda: losses.Gathered(losses.NTXentLoss()),
    "sharded": lambda: losses.ShardedProxies(losses.SoftmaxLoss(10, 5)),
    "sampled, in evaluation": lambda: losses.ArcFaceLoss(10, 5, sampled=8).eval(),
}


@pytest.mark.usefixtures("tiny_chunks")
@pytest.mark.parametrize("make", WRAPPED.values(), ids=WRAPPED)
def test_wrappers(make) -> None:
    loss = make_seeded(make)
    check_transforms(lambda embeddings: loss(embeddings, Y))
    check_labels(loss)


CHOSEN = torch.tensor([0, 1, 2])
POSITIVE = torch.rand(15, 15, generator=torch.Generator().manual_seed(0)) < 0.3
CALLS: dict[str, Callable[..., Tensor]] = {
    "references": lambda e, make: make()(e, Y, REFERENCES, REFERENCE_LABELS),
    "masks": lambda e, make: make()(e, relation=Masks(POSITIVE, ~POSITIVE)),
    "triplets": lambda e, make: make()(e, relation=Triplets(CHOSEN, CHOSEN + 1, CHOSEN + 5)),
    "a matrix": lambda e, make: make().from_similarity(e @ e.T, Labels(Y)),
    "a value per anchor": lambda e, make: make(reduction="none")(e, Y),
    "a row of zeros": lambda e, make: make()(torch.cat([e[:-1], 0.0 * e[-1:]]), Y),
}


@pytest.mark.usefixtures("tiny_chunks")
@pytest.mark.parametrize("backend", ["dense", "chunked"])
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_calls(call, backend: str) -> None:
    for make in (losses.TripletLoss, losses.MultiSimilarityLoss):
        check_transforms(partial(call, make=partial(make, backend=backend)))


@pytest.mark.usefixtures("tiny_chunks")
@pytest.mark.parametrize(
    "miner",
    [
        miners.SemiHardMiner(),
        miners.SemiHardMiner(0.2),
        miners.BatchHardMiner(),
        miners.EasyPositiveMiner(),
        miners.BatchEasyHardMiner("semihard", "easy"),
        miners.TripletMarginMiner(0.1, kind="hard"),
        miners.MultiSimilarityMiner(0.1),
        miners.PairMarginMiner(0.9, 0.1),
        miners.ValidTripletMiner(),
    ],
    ids=str,
)
def test_miners(miner) -> None:
    """The mined pairs and triplets differ from batch to batch; the second derivative exists where they leave a side empty."""
    for make in (losses.TripletLoss, losses.ContrastiveLoss, losses.LiftedStructureLoss):
        for backend in ("auto", "chunked"):
            loss = make(miner=miner, backend=backend)
            check_transforms(lambda embeddings, loss=loss: loss(embeddings, Y))
            check_labels(loss)
            check_second_derivative(loss)


def check_second_derivative(loss: nn.Module) -> None:
    leaf = X.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(loss(leaf, Y), leaf, create_graph=True)
    (found,) = torch.autograd.grad((gradient * DIRECTION).sum(), leaf)
    ahead, behind = (backward(loss, X + sign * 1e-6 * DIRECTION, Y) for sign in (1.0, -1.0))
    close(found, (ahead - behind) / 2e-6, 1e-4)


def test_second_derivative_of_distances_that_differ_by_hundreds() -> None:
    """The negatives of one member of a pair weigh e⁻⁸⁰⁰ against those of the other."""
    scale = torch.tensor([1.0, 1e3]).repeat(8)[:15, None]
    leaf = (scale * X).requires_grad_()
    loss = losses.LiftedStructureLoss(similarity=Euclidean(normalize=False))
    (gradient,) = torch.autograd.grad(loss(leaf, Y), leaf, create_graph=True)
    (second,) = torch.autograd.grad((gradient * DIRECTION).sum(), leaf)
    assert second.isfinite().all()
    assert second.any()


@pytest.mark.parametrize("crowd", [3, 150], ids=["many positives", "few positives"])
def test_large_batches(crowd: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sizes at which the index of positives, sums by bits and recomputation replace plain operations without a transform."""
    embeddings = torch.randn(600, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    labels, tangent = torch.arange(600) % crowd, embeddings.flip(0)
    assert embeddings.shape[0] ** 2 >= dispatch.INDEX_FROM
    monkeypatch.setitem(dispatch.CHUNK_FROM, "cpu", 2**18 + 1)
    for loss in (losses.ContrastiveLoss(), losses.TripletLoss(), losses.MultiSimilarityLoss(), losses.AngularLoss()):
        expected = backward(loss, embeddings, labels)
        close(grad(loss)(embeddings, labels), expected)
        found = jvp(lambda e, loss=loss: loss(e, labels), (embeddings,), (tangent,))[1]
        close(found, (expected * tangent).sum(), 1e-7)


def test_half_precision() -> None:
    """Losses accumulate in float32, in the forward and in the backward pass of a transform too."""
    loss, embeddings = losses.MultiSimilarityLoss(), X.float()
    assert torch.equal(grad(loss)(X.bfloat16(), Y), backward(loss, X.bfloat16(), Y))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = grad(loss)(embeddings, Y)
    close(found, grad(loss)(embeddings, Y), 1e-5)


def test_compiled_transforms() -> None:
    """``torch.compile`` captures a transformed loss in one graph."""
    torch.compiler.reset()
    loss = losses.NTXentLoss()
    for function, batch in ((grad(loss), (X, Y)), (vmap(loss), (BATCHES, LABELS))):
        close(torch.compile(function, fullgraph=True, backend="eager")(*batch), function(*batch))


DRAWING: dict[str, Callable[[], nn.Module]] = {
    "distance-weighted": lambda: losses.TripletLoss(miner=miners.DistanceWeightedMiner()),
    "random": lambda: losses.TripletLoss(miner=miners.RandomMiner(20)),
    "sampled": lambda: losses.NormalizedSoftmaxLoss(10, 5, sampled=8, corrected=True),
    "sampled, sparse": lambda: losses.NormalizedSoftmaxLoss(10, 5, sampled=8, sparse=True),
}


@pytest.mark.parametrize("make", DRAWING.values(), ids=DRAWING)
def test_losses_that_draw(make) -> None:
    """``randomness="same"`` draws as one call does; ``"different"`` draws for each batch; by default torch refuses."""
    loss = make_seeded(make)

    def seeded(function: Callable[..., Tensor], *arguments: Tensor) -> Tensor:
        torch.manual_seed(7)
        return function(*arguments)

    parameters = dict(loss.named_parameters())
    of_parameters = grad(lambda state, *batch: functional_call(loss, state, batch))
    of_one = vmap(lambda embeddings: loss(embeddings, Y), randomness="same")
    close(seeded(of_one, BATCHES).detach(), torch.stack([seeded(loss, each, Y).detach() for each in BATCHES]))
    close(seeded(grad(loss), X, Y), seeded(partial(backward, loss), X, Y))
    for randomness in ("same", "different"):
        for dims in ((0, 0), (None, 0)):
            found = vmap(loss, dims, randomness=randomness)(X if dims[0] is None else BATCHES, LABELS)
            assert found.isfinite().all()
        found = vmap(of_parameters, (None, 0, 0), randomness=randomness)(parameters, BATCHES, LABELS)
        assert all(each.isfinite().all() for each in found.values())
    with pytest.raises(RuntimeError, match="use the 'same' or 'different' randomness flags"):
        vmap(loss)(BATCHES, LABELS)


# where torch cannot ----------------------------------------------------------------------------------------------------


@pytest.fixture
def group(tmp_path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A distributed batch of one process, whose collectives run."""
    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/meeting", rank=0, world_size=1)
    monkeypatch.setattr(distributed._current, "group", TorchProcessGroup())
    yield
    dist.destroy_process_group()


@pytest.mark.usefixtures("group")
def test_distributed_batches() -> None:
    """Collectives are differentiated in both modes; vmap cannot map over them."""
    for make in (
        losses.MultiSimilarityLoss,
        losses.QuadrupletLoss,
        losses.LiftedStructureLoss,
        lambda: losses.ShardedProxies(losses.ArcFaceLoss(10, 5)),
        lambda: losses.ProxyAnchorLoss(10, 5),
    ):
        loss = make_seeded(make)
        expected = backward(loss, X, Y)
        close(grad(loss)(X, Y), expected)
        close(jvp(lambda e, loss=loss: loss(e, Y), (X,), (DIRECTION,))[1], (expected * DIRECTION).sum())
        with forward_ad.dual_level():
            found = forward_ad.unpack_dual(loss(forward_ad.make_dual(X, DIRECTION), Y)).tangent
        close(found, (expected * DIRECTION).sum())
        with pytest.raises(RuntimeError, match="vmap cannot map over distributed batches"):
            vmap(loss)(BATCHES, LABELS)


def refused(case: str) -> Tensor:
    if case == "memory":
        return grad(losses.CrossBatchMemory(losses.ContrastiveLoss(), size=8))(X, Y)
    if case == "mapped memory":
        return vmap(losses.CrossBatchMemory(losses.ContrastiveLoss(), size=8))(BATCHES, LABELS)
    return grad(losses.NTXentLoss(backend="triton"))(X, Y)


@pytest.mark.parametrize(
    ("case", "error", "message"),
    [
        ("memory", RuntimeError, "CrossBatchMemory cannot change its queue inside a transform of torch.func"),
        ("mapped memory", RuntimeError, "CrossBatchMemory cannot change its queue inside a transform of torch.func"),
        ("triton", ValueError, "backend must be 'auto', 'chunked' or 'dense' inside a transform .* but it is 'triton'"),
    ],
)
def test_refusals_are_one_sentence(case: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        refused(case)
    assert "\n" not in str(caught.value)


def test_dual_tensors_fill_a_memory() -> None:
    """Forward mode without ``torch.func`` may change buffers, which keep no tangent."""
    memory = losses.CrossBatchMemory(losses.ContrastiveLoss(), size=8)
    with forward_ad.dual_level():
        found = forward_ad.unpack_dual(memory(forward_ad.make_dual(X, DIRECTION), Y)).tangent
        assert forward_ad.unpack_dual(memory.references).tangent is None
    close(found, (backward(losses.ContrastiveLoss(), X, Y) * DIRECTION).sum())
    assert int(memory.filled) == 8
