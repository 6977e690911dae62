"""Losses whose value and gradients are replayed: equal to the plain path, whatever changes between two calls."""

from __future__ import annotations

import copy
import io
import pickle
import sys
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor, nn

from likewise import distributed, losses, miners
from likewise.engines import graphs
from likewise.formula import (
    NEGATIVES,
    ClassWeighted,
    Labels,
    PerPair,
    Reduction,
    Thresholded,
    check_values,
    hyper,
    pair_entries,
    per_pair,
    relu,
    s,
    similarity_hook,
)
from likewise.formula.similarities import Cosine, Dot
from likewise.losses import PairLoss
from tests.engines.fake_recorder import FakeRecorder
from tests.losses.cases import CASES, PROXY_CASES

module = sys.modules["likewise.engines.replay"]  # the package's attribute of that name is the function

NOT_CAPTURED = {
    "WeightedPairLoss",
    "CSLLoss",
    "HAPLoss",
    "HAPPIERLoss",
    "NDCGLoss",
    "HierarchicalTripletLoss",
    "PDDMLoss",
}
"""Losses with numbers per pair, whose functions may read other tensors at the next call, or with a network."""


@pytest.fixture(autouse=True)
def recorder(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeRecorder]:
    """Record on the CPU, and read no values, as on a GPU."""
    fake = FakeRecorder()
    monkeypatch.setattr(graphs, "_GRAPHS", graphs.Graphs(fake, after=1))
    with check_values(False):
        yield fake


def batch(seed: int = 0, m: int = 12, classes: int = 4) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(classes, (m,), generator=generator)
    return torch.randn(m, 5, generator=generator, dtype=torch.float64), labels


def outcome(loss: nn.Module, embeddings: Tensor, *others: Tensor, scale: float = 1.0) -> list[Tensor | None]:
    leaf = embeddings.detach().clone().requires_grad_()
    value = loss(leaf, *others)
    learned = [each for each in loss.parameters() if each.requires_grad]
    return [value.detach(), *torch.autograd.grad(scale * value, [leaf, *learned], allow_unused=True)]


def plainly(loss: nn.Module, *given: Tensor, scale: float = 1.0) -> list[Tensor | None]:
    other = copy.deepcopy(loss)
    other.backend = "dense"
    return outcome(other, *given, scale=scale)


def check(loss: nn.Module, *given: Tensor) -> None:
    torch.testing.assert_close(outcome(loss, *given, scale=3.0), plainly(loss, *given, scale=3.0), rtol=1e-6, atol=1e-7)


def warm(loss: nn.Module, *given: Tensor) -> nn.Module:
    for _ in range(2):
        outcome(loss, *(given or batch()))
    return loss


# ------------------------------------------------------------------------------------------------ every loss


@pytest.mark.parametrize("case", [*CASES, *PROXY_CASES], ids=lambda case: case.name or case.make.__name__)
def test_every_loss_is_replayed(case, recorder: FakeRecorder) -> None:
    loss = case.make()
    for seed in range(4):  # other embeddings and other labels
        check(loss, *batch(seed))
    captured = type(loss).__name__ not in NOT_CAPTURED and not loss.is_stateful
    assert (recorder.captures, recorder.replays) == ((1, 3) if captured else (0, 0))
    for seed in range(3):
        with torch.no_grad():
            value = loss(*batch(seed))
        torch.testing.assert_close(value, plainly(loss, *batch(seed))[0])


def test_other_references(recorder: FakeRecorder) -> None:
    loss = losses.MultiSimilarityLoss()
    for seed in range(3):
        (embeddings, labels), (references, theirs) = batch(seed), batch(seed + 5, m=9)
        references.requires_grad_()
        found = []
        for each in (loss, losses.MultiSimilarityLoss(backend="dense")):
            leaf = embeddings.clone().requires_grad_()
            found.append(torch.autograd.grad(each(leaf, labels, references, theirs), [leaf, references]))
        torch.testing.assert_close(*found, rtol=1e-6, atol=1e-7)
    assert (recorder.captures, recorder.replays) == (1, 2)
    check(loss, *batch())  # without references it is another one
    assert recorder.replays == 2


@pytest.mark.parametrize(
    ("reduction", "captures"),
    [
        ("mean", 1),
        ("nonzero", 1),
        ("sum", 1),
        ("none", 0),
        ("mean_per_anchor", 0),
        (Thresholded(low=0.2), 1),
        (ClassWeighted([1.0, 2.0, 0.5, 3.0]), 0),  # a tensor is not a constant
    ],
    ids=str,
)
def test_every_reduction(reduction: Reduction, captures: int, recorder: FakeRecorder) -> None:
    loss = losses.ContrastiveLoss(reduction=reduction)
    plain = losses.ContrastiveLoss(reduction=reduction, backend="dense")
    for seed in range(3):
        embeddings, labels = batch(seed)
        leaf = embeddings.clone().requires_grad_()
        found, expected = (torch.autograd.grad(each(leaf, labels).sum(), leaf) for each in (loss, plain))
        torch.testing.assert_close(found, expected)
    assert recorder.captures == captures


# ------------------------------------------------------------------------------------------------ what changes


class Hinge(PairLoss):
    margin: float = hyper(default=0.3, help="where negatives stop to matter")

    def declare(self):
        return per_pair(NEGATIVES, relu(s - self.margin))


def test_changed_hyperparameters(recorder: FakeRecorder) -> None:
    loss = warm(Hinge(miner=miners.MultiSimilarityMiner(0.1)))
    changes = [
        {"margin": 0.1},
        {"margin": -0.3},
        {"miner": miners.MultiSimilarityMiner(0.4)},
        {"miner": None},
        {"similarity": "euclidean"},
        {"similarity": Cosine(normalize=True)},
        {"similarity": Dot()},
        {"reduction": "sum"},
        {"margin": 0.3, "miner": miners.MultiSimilarityMiner(0.1), "similarity": "cosine", "reduction": "mean"},
    ]
    for change in changes:
        for name, value in change.items():
            setattr(loss, name, value)
        for seed in range(3):
            check(loss, *batch(seed))
    assert recorder.captures == len(changes)  # the last is the first again


def test_a_miner_that_changes_in_place(recorder: FakeRecorder) -> None:
    loss = warm(Hinge(miner=miners.MultiSimilarityMiner(0.1)))
    for epsilon in (0.3, 0.6):
        object.__setattr__(loss.miner, "epsilon", epsilon)
        for seed in range(3):
            check(loss, *batch(seed))
    assert recorder.captures == 3


def test_a_second_derivative_has_the_numbers_of_its_call(recorder: FakeRecorder) -> None:
    class Squared(Hinge):
        def declare(self):
            return per_pair(NEGATIVES, (s - self.margin) * (s - self.margin))

    loss = warm(Squared())
    embeddings, labels = batch()
    found = []
    for backend in ("auto", "dense"):
        loss.backend, loss.margin = backend, 0.3
        leaf = embeddings.clone().requires_grad_()
        value = loss(leaf, labels)
        loss.margin = 0.9
        (slope,) = torch.autograd.grad(value, leaf, create_graph=True)
        found.append([slope.detach(), *torch.autograd.grad(slope.square().sum(), leaf)])
    torch.testing.assert_close(*found)
    assert recorder.replays == 2


def test_second_derivatives_reach_the_proxies(recorder: FakeRecorder) -> None:
    loss = warm(losses.ArcFaceLoss(4, 5))
    found = []
    for each in (loss, copy.deepcopy(loss)):
        each.backend = "auto" if each is loss else "dense"
        leaf = batch()[0].requires_grad_()
        slopes = torch.autograd.grad(each(leaf, batch()[1]), [leaf, each.proxies], create_graph=True)
        found.append(torch.autograd.grad(sum(slope.square().sum() for slope in slopes), [leaf, each.proxies]))
    torch.testing.assert_close(*found, rtol=1e-6, atol=1e-7)
    assert recorder.replays == 2


def test_moved_and_replaced_parameters(recorder: FakeRecorder) -> None:
    loss = warm(losses.NormalizedSoftmaxLoss(4, 5, learn_temperature=True))
    other = losses.NormalizedSoftmaxLoss(4, 5, learn_temperature=True)
    optimizer = torch.optim.SGD(loss.parameters(), lr=1.0)

    def step() -> None:
        loss(*batch()).backward()
        optimizer.step()
        optimizer.zero_grad()

    for change in (
        step,
        lambda: loss.proxies.data.mul_(-1.0),
        lambda: setattr(loss.proxies, "data", torch.randn(4, 5)),
        lambda: setattr(loss, "proxies", nn.Parameter(torch.randn(4, 5))),
        lambda: loss.load_state_dict(other.state_dict()),
        lambda: loss.load_state_dict(
            losses.NormalizedSoftmaxLoss(4, 5, learn_temperature=True).state_dict(), assign=True
        ),
    ):
        change()
        check(loss, *batch())
    assert recorder.captures == 1
    loss.double()
    for seed in range(3):
        check(loss, *batch(seed))
    assert recorder.captures == 2
    loss.float()
    check(loss, *batch())
    assert recorder.captures == 2


def test_frozen_parameters(recorder: FakeRecorder) -> None:
    loss = warm(losses.ProxyAnchorLoss(4, 5))
    loss.proxies.requires_grad_(False)
    for seed in range(3):
        check(loss, *batch(seed))
    loss.proxies.requires_grad_()
    check(loss, *batch())
    assert recorder.captures == 2


def test_training_and_evaluation(recorder: FakeRecorder) -> None:
    loss = warm(losses.ArcFaceLoss(4, 5))
    loss.eval()
    for seed in range(3):
        check(loss, *batch(seed))
    assert recorder.captures == 2


def test_training_steps_are_those_of_the_plain_path(recorder: FakeRecorder) -> None:
    found = []
    for backend in ("auto", "dense"):
        torch.manual_seed(0)
        trunk, loss = nn.Linear(5, 5).double(), losses.ProxyAnchorLoss(4, 5, backend=backend)
        optimizer = torch.optim.AdamW([*trunk.parameters(), *loss.parameters()], lr=0.01)
        for step in range(6):
            embeddings, labels = batch(step)
            optimizer.zero_grad()
            loss(trunk(embeddings), labels).backward()
            optimizer.step()
        found.append([each.detach() for each in (*trunk.parameters(), *loss.parameters())])
    torch.testing.assert_close(*found)
    assert recorder.replays == 5


# ------------------------------------------------------------------------------------------------ the plain path


@pytest.mark.parametrize("backend", ["dense", "chunked"])
def test_a_named_engine_is_never_captured(backend: str, recorder: FakeRecorder) -> None:
    for loss in (losses.MultiSimilarityLoss(backend=backend), losses.ArcFaceLoss(4, 5, backend=backend)):
        warm(warm(loss))
    assert recorder.captures == 0


def test_what_draws_or_keeps_is_computed_plainly(recorder: FakeRecorder) -> None:
    generator = torch.Generator().manual_seed(0)
    for loss in (
        losses.TripletLoss(miner=miners.RandomMiner(5, generator=generator)),
        losses.ArcFaceLoss(40, 5, sampled=20),
        losses.ArcFaceLoss(40, 5, sampled=20, generator=generator),
    ):
        torch.manual_seed(0)
        expected = [outcome(loss, *batch(seed)) for seed in range(2)]
        torch.manual_seed(0)
        warmed = [outcome(loss, *batch(seed)) for seed in range(2)]
        if loss.__dict__.get("generator") is None and getattr(loss.__dict__.get("miner"), "generator", None) is None:
            torch.testing.assert_close(warmed, expected)  # no random number was drawn beside the plain path's
        warm(loss)
    assert recorder.captures == 0
    sampled = losses.ArcFaceLoss(40, 5, sampled=20).eval()  # compares with all classes
    warm(sampled)
    check(sampled, *batch())
    assert recorder.captures == 1


@pytest.mark.parametrize(
    "loss",
    [
        losses.TripletLoss(miner=miners.RandomMiner(5)),
        losses.MarginLoss(num_classes=4, miner=miners.DistanceWeightedMiner()),
        losses.MultiSimilarityLoss(miner=miners.DistanceWeightedMiner()),
    ],
)
def test_miners_draw_the_same_with_and_without_a_graph(loss: PairLoss, recorder: FakeRecorder) -> None:
    """The numbers are an input of the graph; calls before a capture draw them once."""
    plain, others = copy.deepcopy(loss), [batch(1), (batch(2, m=12)[0][:9], batch(2)[1][:9])]
    plain.backend = "dense"
    torch.manual_seed(0)
    found = [outcome(loss, *batch()) for _ in range(4)] + [outcome(loss, *batch(1), *each) for each in others * 3]
    torch.manual_seed(0)
    expected = [outcome(plain, *batch()) for _ in range(4)] + [outcome(plain, *batch(1), *each) for each in others * 3]
    torch.testing.assert_close(found, expected)
    assert (recorder.captures, recorder.replays) == (3, 7)
    assert len({float(value) for value, *_ in found[:4]}) > 1


def test_draws_without_a_graph_leave_the_generator_alone(
    recorder: FakeRecorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no graph serves, where a replay fails, and where the plain path would draw other numbers."""
    loss, (embeddings, labels) = losses.TripletLoss(miner=miners.DistanceWeightedMiner()), batch()
    with pytest.raises(ValueError, match="references must have shape"):
        loss(embeddings, labels, torch.tensor(1.0), labels)
    warm(loss)
    before = torch.get_rng_state()

    def fail(*_: object) -> None:
        raise torch.OutOfMemoryError

    with monkeypatch.context() as patch:
        patch.setattr(graphs._GRAPHS, "call", fail)
        with pytest.raises(torch.OutOfMemoryError):
            loss(embeddings, labels)
    assert torch.equal(torch.get_rng_state(), before)
    replays = recorder.replays
    monkeypatch.setattr(module, "DRAWN_UP_TO", 12 * 12)  # miners draw in chunks
    warm(loss)
    assert recorder.replays == replays


def test_a_second_derivative_has_the_draw_of_its_call(recorder: FakeRecorder) -> None:
    def differentiate(loss: PairLoss) -> list[Tensor]:
        torch.manual_seed(0)
        found = []
        for _ in range(4):
            leaf = batch()[0].requires_grad_()
            (gradient,) = torch.autograd.grad(loss(leaf, batch()[1]), leaf, create_graph=True)
            torch.rand(3)  # between the call and its derivative
            found += torch.autograd.grad(gradient.square().sum(), leaf)
        return found

    miner = miners.DistanceWeightedMiner()
    found = differentiate(losses.MarginLoss(miner=miner))
    torch.testing.assert_close(found, differentiate(losses.MarginLoss(miner=miner, backend="dense")))
    assert recorder.replays == 3


class Counting(PairLoss):
    """A loss that behaves differently at every call."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.calls = 0

    def declare(self):
        self.calls += 1
        return per_pair(NEGATIVES, s * float(self.calls))


def test_a_loss_that_counts_its_calls(recorder: FakeRecorder) -> None:
    loss = Counting()
    values = [loss(*batch()) for _ in range(4)]
    torch.testing.assert_close(torch.stack(values) / values[0], torch.arange(1.0, 5.0).double())
    assert recorder.captures == 0


def test_who_watches_sees_the_plain_path(recorder: FakeRecorder) -> None:
    loss = warm(losses.MultiSimilarityLoss())
    replays, seen = recorder.replays, []
    with similarity_hook(lambda pair_batch, matrix: (seen.append(matrix), matrix)[1]):
        loss(*batch())
    assert len(seen) == 1
    with check_values(), pytest.raises(ValueError, match="embeddings must be finite"):
        loss(batch()[0] / 0.0, batch()[1])
    assert recorder.replays == replays


def test_several_processes_take_the_plain_path(recorder: FakeRecorder, monkeypatch: pytest.MonkeyPatch) -> None:
    loss = warm(losses.MultiSimilarityLoss())
    replays = recorder.replays
    monkeypatch.setattr(module, "current_group", lambda: SimpleNamespace())
    loss(*batch())
    assert recorder.replays == replays
    monkeypatch.undo()
    assert distributed.current_group() is distributed.SINGLE_PROCESS


def test_relations_take_the_plain_path(recorder: FakeRecorder) -> None:
    embeddings, labels = batch()
    loss = losses.MultiSimilarityLoss()
    for _ in range(3):
        loss(embeddings, relation=Labels(labels))
    assert recorder.captures == 0


def test_large_batches_take_the_plain_path(recorder: FakeRecorder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "UP_TO", 12 * 12)
    warm(losses.MultiSimilarityLoss())
    assert recorder.captures == 0
    warm(losses.ArcFaceLoss(11, 5))
    assert recorder.captures == 1
    warm(losses.ArcFaceLoss(12, 5))
    assert recorder.captures == 1
    embeddings, labels = batch(m=2)
    warm(losses.ArcFaceLoss(20, 5), embeddings, labels)
    assert recorder.captures == 2
    warm(losses.ProxyRepulsionLoss(20, 5), embeddings, labels)  # its matrix of proxies is large
    assert recorder.captures == 2


def test_large_batches_sum_within_classes(recorder: FakeRecorder, monkeypatch: pytest.MonkeyPatch) -> None:
    """In chunks; the positions of positives, whose number is read from the device, are inputs."""
    monkeypatch.setattr(graphs, "UP_TO", 0)
    monkeypatch.setattr(module, "KERNELS_IN_GRAPH", (0, 2**31))
    loss, shuffled = losses.AngularLoss(), torch.randperm(12, generator=torch.Generator().manual_seed(0))
    for seed in range(4):
        check(loss, batch(seed)[0], shuffled.roll(seed) // 3)
    assert (recorder.captures, recorder.replays) == (1, 3)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's own
def test_compiled_losses_take_the_plain_path(recorder: FakeRecorder) -> None:
    for loss in (losses.MultiSimilarityLoss(), losses.ArcFaceLoss(4, 5)):
        warm(loss)
        expected, replays = outcome(loss, *batch()), recorder.replays
        compiled = torch.compile(loss, backend="eager", fullgraph=True)
        for _ in range(3):
            torch.testing.assert_close(outcome(compiled, *batch()), expected)
        assert recorder.replays == replays


def test_errors_are_the_same(recorder: FakeRecorder) -> None:
    embeddings, labels = batch()
    for loss in (warm(losses.MultiSimilarityLoss()), warm(losses.ArcFaceLoss(4, 5))):
        for _ in range(3):
            with pytest.raises(TypeError, match="labels must be given"):
                loss(embeddings)
            with pytest.raises(ValueError, match="labels must have one entry"):
                loss(embeddings, labels[1:])
            with pytest.raises(TypeError, match="embeddings must be of a floating-point dtype"):
                loss(labels[:, None], labels)
            with pytest.raises(TypeError, match="embeddings must be a tensor"):
                loss([[1.0]], labels)
            with pytest.raises(TypeError, match="labels must be a tensor"):
                loss(embeddings, [0] * 12)
            with pytest.raises(ValueError, match=r"shape \(n, d\)"):
                loss(torch.tensor(1.0), labels)


# ------------------------------------------------------------------------------------------------ around it


def test_copies_and_files_hold_no_graph(recorder: FakeRecorder) -> None:
    for loss in (losses.MultiSimilarityLoss(), losses.ArcFaceLoss(4, 5)):
        before = vars(losses.MultiSimilarityLoss()).keys() | vars(losses.ArcFaceLoss(4, 5)).keys() | {"_declaration"}
        warm(loss)
        assert vars(loss).keys() <= before
        stored = io.BytesIO()
        torch.save(loss, stored)
        stored.seek(0)
        captures = recorder.captures
        for other in (copy.deepcopy(loss), pickle.loads(pickle.dumps(loss)), torch.load(stored, weights_only=False)):
            for seed in range(3):
                check(other, *batch(seed))
            captures += 1
            assert recorder.captures == captures
        check(loss, *batch())
        assert recorder.captures == captures


def test_hooks_run_once(recorder: FakeRecorder) -> None:
    loss, calls = losses.MultiSimilarityLoss(), []
    loss.register_forward_hook(lambda *_: calls.append("after"))
    loss.register_forward_pre_hook(lambda *_: calls.append("before"))
    for step in range(4):
        loss(*batch())
        assert calls == ["before", "after"] * (step + 1)
    assert recorder.captures == 1


def test_a_memory_around_a_loss(recorder: FakeRecorder) -> None:
    found = []
    for backend in ("auto", "dense"):
        memory = losses.CrossBatchMemory(losses.ContrastiveLoss(backend=backend), size=20)
        found.append([outcome(memory, *batch(seed)) for seed in range(4)])
        assert int(memory.filled) == 20
    torch.testing.assert_close(*found)


def test_wrappers_replay_what_they_wrap(recorder: FakeRecorder) -> None:
    found = []
    for backend in ("auto", "dense"):
        loss = losses.Matryoshka(losses.MultiSimilarityLoss(backend=backend), dims=[2, 5])
        found.append([outcome(loss, *batch(seed)) for seed in range(3)])
    torch.testing.assert_close(*found)
    assert recorder.replays == 4


def test_numbers_per_pair_are_not_captured(recorder: FakeRecorder) -> None:
    """Their function may read another tensor at the next call."""

    class Targets(PairLoss):
        def declare(self):
            target = PerPair("target", lambda batch, rows, columns: pair_entries(targets[-1], rows, columns))
            return per_pair(NEGATIVES, target * s)

    targets: list[Tensor] = []
    loss = Targets()
    for seed in range(4):
        targets.append(torch.rand(12, 12, generator=torch.Generator().manual_seed(seed), dtype=torch.float64))
        check(loss, *batch(seed))
    assert recorder.captures == 0


@pytest.mark.parametrize(
    ("embeddings", "references", "plan"),
    [
        (torch.float32, None, "triton"),
        (torch.float32, torch.bfloat16, "triton"),
        (torch.float32, torch.float64, "dense"),
        (torch.float64, torch.float32, "dense"),
    ],
)
def test_the_engine_follows_the_dtype_of_both_sides(
    embeddings: torch.dtype, references: torch.dtype | None, plan: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kernels compute in float32: float64 on either side takes the matrix."""
    monkeypatch.setattr(sys.modules["likewise.engines.dispatch"], "has_triton", lambda: True)
    rows = torch.empty(1500, 2, device="meta")
    labels = torch.empty(1500, dtype=torch.int64, device="meta")
    others = (None, None) if references is None else (rows.to(references), labels)
    chosen = module._choose(losses.MultiSimilarityLoss(), (rows.to(embeddings), labels, *others))
    assert chosen is not None
    assert chosen.value == plan


@pytest.mark.parametrize(
    ("loss", "rows", "plan"),
    [
        (losses.ArcFaceLoss(4096, 2), 4000, "dense"),
        (losses.ArcFaceLoss(4096, 2), 4096, "triton"),
        (losses.ArcFaceLoss(4096, 2), 2**19, None),
        (losses.SubCenterArcFaceLoss(64, 2, centers=2), 4096, "dense"),
        (losses.SubCenterArcFaceLoss(2048, 2, centers=2), 8192, "triton"),
        (losses.SoftTripleLoss(512, 2), 4096, "dense"),
        (losses.SoftTripleLoss(512, 2), 8192, None),
        (losses.SubCenterArcFaceLoss(2, 2, centers=32), 32768, "dense"),
        (losses.ProxyRepulsionLoss(4096, 2), 4000, "dense"),
        (losses.AngularLoss(), 4000, "dense"),
        (losses.AngularLoss(), 8192, "chunked"),
        (losses.AngularLoss(miner=miners.MultiSimilarityMiner()), 8192, None),
        (losses.AngularLoss(), 16384, None),
    ],
)
def test_heads_run_kernels_where_their_matrix_is_large(
    loss: losses.ProxyLoss, rows: int, plan: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Centers are pooled in kernels, up to 31 of them; blended ones in exact float32 are not."""
    monkeypatch.setattr(sys.modules["likewise.engines.dispatch"], "has_triton", lambda: True)
    embeddings, labels = torch.empty(rows, 2, device="meta"), torch.empty(rows, dtype=torch.int64, device="meta")
    chosen = module._choose(loss, (embeddings, labels))
    assert (None if chosen is None else chosen.value) == plan
