"""Numbers per pair and per triplet: every engine gives the value of plain loops, and the gradient by everything."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from likewise import miners
from likewise.analysis import closed_weights, weigh
from likewise.engines import dispatch, evaluation, recompute
from likewise.formula import (
    EACH_POSITIVE,
    NEGATIVES,
    POSITIVES,
    Declaration,
    PairBatch,
    PerPair,
    PerTriplet,
    Triplets,
    add_up,
    inner_products,
    logsumexp,
    mean,
    pair_entries,
    per_anchor,
    per_pair,
    per_triplet,
    relu,
    s,
    s_p,
    sigmoid,
    similarity_hook,
    softplus,
)
from likewise.losses import Between, PairLoss, ProxyLoss
from likewise.miners import PairMiner

DIM = 5


def project(weight: Tensor, batch: PairBatch) -> tuple[Tensor, Tensor]:
    """Anchors and references under a linear map."""
    assert batch.anchors is not None
    left = batch.anchors.to(batch.dtype) @ weight
    return left, left if batch.references is None else batch.references.to(batch.dtype) @ weight


def compare(vectors: tuple[Tensor, Tensor], rows: Tensor, columns: Tensor) -> Tensor:
    return inner_products(*vectors, rows, columns)


def compare_references(vectors: tuple[Tensor, Tensor], rows: Tensor, positives: Tensor, columns: Tensor) -> Tensor:
    """Something that depends on all three of a triplet."""
    return inner_products(vectors[1], vectors[1], positives, columns) * vectors[0].sum(dim=1)[rows]


def alternate(batch: PairBatch, rows: Tensor, columns: Tensor) -> Tensor:
    """A relevance that is a constant; in a distributed batch the columns are those of all ranks."""
    offset = 0 if batch.local_rows is None else batch.local_rows.offset
    return ((3 * (rows + offset) + columns * columns) % 5) / 4


class Guided(PairLoss):
    """Every place of a formula that a number per pair can have; the guide learns."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.weight = nn.Parameter(torch.linspace(-1.0, 1.0, 2 * DIM).view(DIM, 2))

    def numbers(self) -> tuple[PerPair, PerPair, PerTriplet]:
        return (
            PerPair("guide", compare, self._project),  # a method: torch.compile cannot compare nested functions
            PerPair("relevance", alternate),
            PerTriplet("angle", compare_references, self._project),
        )

    def _project(self, batch: PairBatch) -> tuple[Tensor, Tensor]:
        return project(self.weight.to(batch.dtype), batch)

    def declare(self) -> Declaration:
        guide, relevance, angle = self.numbers()
        negatives = logsumexp(3.0 * s - guide, NEGATIVES)
        positives = logsumexp(relevance * s, POSITIVES)
        rank = add_up(sigmoid(2.0 * (s - s_p) + guide - guide.at_positive + 0.1 * angle), NEGATIVES)
        return (
            per_anchor(softplus(negatives - positives)),
            per_pair(POSITIVES, softplus(relevance * guide - s + negatives), needs=(NEGATIVES,)),
            per_anchor(mean(guide.at_positive / (1.0 + rank), EACH_POSITIVE)),
            per_triplet(relu(s - s_p + 0.3 * relevance - 0.2 * relevance.at_positive + 0.1 * angle)),
        )


def softplus_of(x: float) -> float:
    return math.log1p(math.exp(x))


def in_loops(x: Any, y: list[int], r: Any, z: list[int], weight: Any, own: bool) -> float:
    """The same in plain loops over Python floats."""

    def dot(a: list[float], b: list[float]) -> float:
        return sum(p * q for p, q in zip(a, b, strict=True))

    def project_one(a: list[float]) -> list[float]:
        return [sum(a[k] * weight[k][c] for k in range(DIM)) for c in range(2)]

    left, right = [project_one(a) for a in x], [project_one(b) for b in r]
    totals, counts = [0.0] * 4, [0] * 4
    for i, a in enumerate(x):
        norm = math.sqrt(dot(a, a))
        S = [dot(a, b) / norm / math.sqrt(dot(b, b)) for b in r]
        guide = [dot(left[i], other) for other in right]
        relevance = [((3 * i + j * j) % 5) / 4 for j in range(len(r))]
        P = [j for j in range(len(r)) if z[j] == y[i] and not (own and i == j)]
        N = [j for j in range(len(r)) if z[j] != y[i]]
        if not P or not N:
            continue
        negatives = math.log(sum(math.exp(3.0 * S[k] - guide[k]) for k in N))
        positives = math.log(sum(math.exp(relevance[p] * S[p]) for p in P))
        totals[0] += softplus_of(negatives - positives)
        counts[0] += 1
        for p in P:
            totals[1] += softplus_of(relevance[p] * guide[p] - S[p] + negatives)
            counts[1] += 1
            angle = {k: dot(right[p], right[k]) * sum(left[i]) for k in N}
            rank = sum(1.0 / (1.0 + math.exp(-(2.0 * (S[k] - S[p]) + guide[k] - guide[p] + 0.1 * angle[k]))) for k in N)
            totals[2] += guide[p] / (1.0 + rank) / len(P)
            for k in N:
                totals[3] += max(S[k] - S[p] + 0.3 * relevance[k] - 0.2 * relevance[p] + 0.1 * angle[k], 0.0)
                counts[3] += 1
        counts[2] += 1
    return sum(total / max(number, 1) for total, number in zip(totals, counts, strict=True))


def batch(references: bool) -> list[Tensor]:
    draw = torch.Generator().manual_seed(0)
    x, r = (torch.randn(n, DIM, generator=draw, dtype=torch.float64) for n in (18, 23))
    y, z = torch.arange(18) % 5, torch.arange(23) % 6
    y[0] = 9  # an anchor without positives
    return [x, y, r, z] if references else [x, y]


def in_small_chunks(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(recompute, "LEAST_ROWS", 4)
    patch.setattr(recompute, "BUDGET", {"cpu": 1, "cuda": 1})


WAYS: dict[str, Callable[[pytest.MonkeyPatch], str]] = {
    "dense": lambda patch: "dense",
    "indexed": lambda patch: patch.setattr(dispatch, "INDEX_FROM", 1) or "auto",
    "chunked": lambda patch: in_small_chunks(patch) or "chunked",
    "indexed chunks": lambda patch: (
        in_small_chunks(patch)
        or patch.setattr(dispatch, "INDEX_FROM", 1)
        or patch.setattr(dispatch, "CHUNK_FROM", {"cpu": 1, "cuda": 1})
        or "auto"
    ),
    "each positive": lambda patch: patch.setattr(evaluation, "find_positive_index", lambda *_, **__: None) or "dense",
    "each positive in chunks": lambda patch: (
        in_small_chunks(patch) or patch.setattr(evaluation, "find_positive_index", lambda *_, **__: None) or "chunked"
    ),
}


@pytest.mark.parametrize("references", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_every_engine_equals_plain_loops(way: str, references: bool, monkeypatch: pytest.MonkeyPatch):
    arguments = batch(references)
    lists = [each.tolist() for each in (arguments if references else arguments * 2)]
    loss = Guided(backend=WAYS[way](monkeypatch), reduction="mean").double()
    value = loss(*arguments)
    expected = in_loops(*lists, loss.weight.tolist(), own=not references)
    assert value.item() == pytest.approx(expected, rel=1e-12)

    def of_inputs(*tensors: Tensor) -> Tensor:
        x, weight, *others = tensors
        rest = [others[0], arguments[3]] if references else []
        return torch.func.functional_call(loss, {"weight": weight}, (x, arguments[1], *rest))

    inputs = [arguments[0], loss.weight.detach(), *arguments[2:3]]
    leaves = [each.clone().requires_grad_() for each in inputs]
    assert torch.autograd.gradcheck(of_inputs, leaves, atol=1e-6, fast_mode=True)
    if way in ("dense", "chunked"):
        assert torch.autograd.gradgradcheck(of_inputs, leaves, atol=1e-5, fast_mode=True)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # the tracer's own
def test_torch_compiles_it_whole():
    x, y = batch(False)
    loss = Guided().double()
    torch.compiler.reset()
    compiled = torch.compile(loss, fullgraph=True, backend="eager")
    leaf = x.requires_grad_()
    found = [torch.autograd.grad(each(leaf, y), [leaf, loss.weight]) for each in (compiled, loss)]
    torch.testing.assert_close(found[0], found[1])


def test_chunks_ask_for_their_pairs_only(monkeypatch: pytest.MonkeyPatch):
    in_small_chunks(monkeypatch)
    x, y = batch(False)
    sizes: list[int] = []

    class Counted(PairLoss):
        def declare(self) -> Declaration:
            def compute(_batch: PairBatch, rows: Tensor, columns: Tensor) -> Tensor:
                sizes.append(torch.broadcast_tensors(rows, columns)[0].numel())
                return (rows - columns).double()

            return per_anchor(logsumexp(s + 0.1 * PerPair("gap", compute), NEGATIVES))

    dense = Counted(backend="dense")(x, y)
    assert max(sizes) == 18 * 18
    sizes.clear()
    leaf = x.requires_grad_()
    value = Counted(backend="chunked")(leaf, y)
    value.backward()
    torch.testing.assert_close(value, dense)
    assert max(sizes) <= 4 * 18 + 18


@dataclass(frozen=True)
class Relevant(PairMiner):
    """A miner with a number per pair in its conditions."""

    def keep(self, similarity: Any) -> Any:
        relevance = PerPair("relevance", alternate)
        return relevance > 0.3, s > 0.2 * relevance + 0.1 * mean(s, POSITIVES)


@pytest.mark.parametrize(
    ("miner", "relation"),
    [(Relevant(), False), (miners.SemiHardMiner(), False), (miners.BatchHardMiner(), False), (None, True)],
)
def test_mined_pairs_and_explicit_triplets(miner: Any, relation: bool, monkeypatch: pytest.MonkeyPatch):
    """What is mined in chunks is what is mined on the matrix, and a triplet has the numbers of its pairs."""
    in_small_chunks(monkeypatch)
    x, y = batch(False)
    options: dict[str, Any] = {"labels": y}
    if relation:
        anchors, positives, negatives = torch.tensor([[1, 6, 2], [3, 8, 1], [3, 13, 9]]).T
        options = {"relation": Triplets(anchors, positives, negatives)}
    found = []
    for backend in ("dense", "chunked"):
        loss, leaf = Guided(backend=backend, miner=miner).double(), x.clone().requires_grad_()
        value = loss(leaf, **options)
        found.append([value, *torch.autograd.grad(value, [leaf, loss.weight])])
    torch.testing.assert_close(found[0], found[1])
    assert found[0][1].any()


class GuidedProxies(ProxyLoss):
    """Numbers per pair where one side is a table."""

    def declare(self) -> dict[Between, Declaration]:
        guide = PerPair("guide", compare, partial(project, torch.linspace(-1.0, 1.0, 2 * DIM).double().view(DIM, 2)))
        term = per_anchor(softplus(logsumexp(s + guide, NEGATIVES) - logsumexp(s - guide, POSITIVES)))
        return dict.fromkeys((Between.SAMPLES_PROXIES, Between.PROXIES_SAMPLES), term)


def test_tables_of_proxies(monkeypatch: pytest.MonkeyPatch):
    x, y = batch(False)
    torch.manual_seed(0)
    loss = GuidedProxies(40, DIM).double()
    leaf, found = x.requires_grad_(), []
    for backend in ("dense", "auto", "chunked"):
        if backend == "chunked":
            in_small_chunks(monkeypatch)
        loss.backend = backend
        value = loss(leaf, y)
        found.append([value, *torch.autograd.grad(value, [leaf, loss.proxies])])
    for each in found[1:]:
        torch.testing.assert_close(each, found[0])
    assert torch.autograd.gradcheck(lambda x: loss(x, y), (leaf,), fast_mode=True)


def test_pair_weights():
    """A number per pair is a constant of the closed form, and autograd agrees; the matrix is seen by the hook."""
    x, y = batch(False)

    class Constant(PairLoss):
        def declare(self) -> Declaration:
            target = PerPair("target", alternate)
            return per_pair(POSITIVES, target * softplus(-s)), per_anchor(logsumexp(target * s, NEGATIVES))

    [closed], weighing = closed_weights(Constant(), x, y), weigh(Constant(), x, y)
    torch.testing.assert_close(closed.weights, weighing.matrices[0].weights)
    assert weighing.unexplained < 1e-12
    with similarity_hook(lambda batch, matrix: 0.5 * matrix):
        torch.testing.assert_close(Constant()(2.0 * x, y), Constant(backend="dense")(x, y))


def test_refusals():
    x, y = batch(False)

    def declared(declare: Callable[[], Declaration]) -> PairLoss:
        return type("Declared", (PairLoss,), {"declare": lambda self: declare()})()

    entries = PerPair("target", lambda batch, rows, columns: pair_entries(torch.eye(18), rows, columns)[:3])
    for make, sentence in {
        lambda: per_anchor(add_up(s * entries, NEGATIVES)): (
            r"compute of target must return one number for each pair, a tensor of shape \(18, 18\), but it returned shape "
            r"\(3, 18\)"
        ),
        lambda: per_anchor(add_up(s * PerPair("one", lambda *_: 1.0), NEGATIVES)): "but it returned a float",
        lambda: per_anchor(
            entries + add_up(s, NEGATIVES)
        ): "its formula has target, a number per pair, outside of every",
    }.items():
        with pytest.raises(ValueError, match=sentence) as caught:
            declared(make)(x, y)
        assert "\n" not in str(caught.value)
