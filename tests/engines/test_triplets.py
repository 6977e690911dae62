"""Triplets: hinges counted in sorted rows, triplets given by index, and rules that choose them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor, nn

from likewise.engines import evaluate_declaration, map_rows, run
from likewise.engines.chosen import sum_triplets
from likewise.engines.hinges import Hinge, match_hinge, sum_hinges
from likewise.formula import (
    BOTH,
    EACH_POSITIVE,
    NEGATIVES,
    POSITIVES,
    Choice,
    Cosine,
    Euclidean,
    Formula,
    Labels,
    Masks,
    Number,
    PairBatch,
    PerAnchor,
    Similarity,
    Term,
    Triplets,
    add_up,
    count,
    largest,
    mean,
    per_triplet,
    relu,
    s,
    s_p,
    softplus,
    square,
    where,
)
from likewise.losses import MarginLoss, TripletLoss
from likewise.miners import (
    BatchEasyHardMiner,
    BatchHardMiner,
    EasyPositiveMiner,
    SemiHardMiner,
    TripletMarginMiner,
    TripletMiner,
)
from likewise.testing import loop_over

DENSE, DISPATCH, RECOMPUTE = (sys.modules[f"likewise.engines.{name}"] for name in ("dense", "dispatch", "recompute"))

FEW = torch.tensor([0, 1, 0, 2, 1, 0, 1, 2, 3, 0, 2])
MANY = torch.arange(38) % 2  # eighteen positives, too many to expand


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four rows at a time; a handful of anchors is enough to index their positives."""
    monkeypatch.setattr(RECOMPUTE, "LEAST_ROWS", 4)
    monkeypatch.setattr(RECOMPUTE, "BUDGET", {"cpu": 1, "cuda": 1})
    monkeypatch.setattr(DISPATCH, "INDEX_FROM", 1)


def embed(m: int, seed: int = 0, d: int = 4) -> Tensor:
    return torch.randn(m, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def gradient_of(value: Tensor, leaf: Tensor) -> list[Tensor]:
    """The value and its gradient, with another weight for each entry."""
    weights = torch.linspace(0.5, 1.5, max(value.numel(), 1), dtype=value.dtype).reshape(value.shape)
    (gradient,) = torch.autograd.grad((value * weights).sum(), leaf)
    return [value.detach(), gradient]


# ------------------------------------------------------------------------------------------------ hinges by sorting


def over_triplets(curve: Formula) -> Formula:
    return add_up(add_up(curve, NEGATIVES), EACH_POSITIVE)


def number_of(condition: Formula) -> Formula:
    return add_up(count(NEGATIVES, condition), EACH_POSITIVE)


BAND = (s_p - 0.3 < s) & (s < s_p)

MATCHES = [
    (over_triplets(relu(s - s_p)), Hinge("total", 0.0, None)),
    (over_triplets(relu(s - s_p + 0.5)), Hinge("total", 0.5, None)),
    (over_triplets(relu(0.5 + s - s_p)), Hinge("total", 0.5, None)),
    (over_triplets(relu(0.5 - (s_p - s))), Hinge("total", 0.5, None)),
    (over_triplets(relu(-s_p + s - 0.25)), Hinge("total", -0.25, None)),
    (over_triplets(where(BAND, relu(s - s_p + 0.5), 0.0)), Hinge("total", 0.5, 0.3)),
    (number_of(relu(s - s_p + 0.5) > 0.0), Hinge("active", 0.5, None)),
    (number_of(BAND & (relu(s - s_p + 0.5) > 0.0)), Hinge("active", 0.5, 0.3)),
    (number_of(BAND), Hinge("inside", 0.0, 0.3)),
    (over_triplets(where(s_p - 0.3 < s, relu(s - s_p + 0.5), 0.0)), Hinge("total", 0.5, 0.3, below=False)),
    (number_of((s_p - 0.3 < s) & (relu(s - s_p + 0.5) > 0.0)), Hinge("active", 0.5, 0.3, below=False)),
    (number_of(s_p < s), Hinge("inside", 0.0, 0.0, below=False)),
]
LEARNED = Number(torch.tensor(0.0, requires_grad=True))
DIFFERENT = [
    # another fold or side
    mean(add_up(relu(s - s_p), NEGATIVES), EACH_POSITIVE),
    largest(add_up(relu(s - s_p), NEGATIVES), EACH_POSITIVE),
    add_up(mean(relu(s - s_p), NEGATIVES), EACH_POSITIVE),
    add_up(largest(relu(s - s_p), NEGATIVES), EACH_POSITIVE),
    add_up(add_up(relu(s - s_p), POSITIVES), EACH_POSITIVE),
    add_up(add_up(relu(s - s_p), BOTH), EACH_POSITIVE),
    add_up(2.0 * add_up(relu(s - s_p), NEGATIVES), EACH_POSITIVE),
    # another curve
    over_triplets(s - s_p),
    over_triplets(relu(s_p - s)),
    over_triplets(relu(s + s_p)),
    over_triplets(relu(2.0 * s - s_p)),
    over_triplets(2.0 * relu(s - s_p)),
    over_triplets(relu(s - s_p + s)),
    over_triplets(square(relu(s - s_p))),
    over_triplets(softplus(s - s_p)),
    # a margin that is no constant
    over_triplets(relu(s - s_p + LEARNED)),
    over_triplets(relu(s - s_p + PerAnchor("margin", lambda batch: torch.zeros(batch.shape[0])))),
    # another condition
    over_triplets(where(BAND, relu(s - s_p), 1.0)),
    over_triplets(where(BAND, relu(s - s_p), LEARNED)),
    over_triplets(where(s < s_p, relu(s - s_p + 0.5), 0.0)),
    over_triplets(where((s_p - 0.3 < s) & (s < s_p + 0.1), relu(s - s_p + 0.5), 0.0)),
    over_triplets(where((2.0 * s_p - 0.3 < s) & (s < s_p), relu(s - s_p + 0.5), 0.0)),
    number_of(s_p < 2.0 * s),
    number_of(relu(s - s_p) > 0.5),
    number_of((s < s_p) & (relu(s - s_p + 0.5) > 0.0)),
]


@pytest.mark.parametrize(("formula", "hinge"), MATCHES, ids=lambda x: repr(x) if isinstance(x, Formula) else "")
def test_forms_that_sorting_takes(formula: Formula, hinge: Hinge) -> None:
    assert match_hinge(formula) == hinge


@loop_over("formula", DIFFERENT)
def test_forms_that_sorting_must_not_take(formula: Formula) -> None:
    assert match_hinge(formula) is None


def test_triplet_losses_are_forms_that_sorting_takes() -> None:
    everything = TripletLoss(0.2).declare()
    assert match_hinge(everything.total) == Hinge("total", 0.2, None)
    assert match_hinge(everything.nonzero) == Hinge("active", 0.2, None)
    semihard = everything.chosen_by(SemiHardMiner(0.3).choice(Cosine()))
    assert match_hinge(semihard.total) == Hinge("total", 0.2, 0.3)
    assert match_hinge(semihard.nonzero) == Hinge("active", 0.2, 0.3)
    assert match_hinge(semihard.units) == Hinge("inside", 0.0, 0.3)
    violated = everything.chosen_by(TripletMarginMiner(0.3).choice(Cosine()))
    assert match_hinge(violated.total) == Hinge("total", 0.2, 0.3, below=False)
    assert match_hinge(violated.nonzero) == Hinge("active", 0.2, 0.3, below=False)
    assert match_hinge(violated.units) == Hinge("inside", 0.0, 0.3, below=False)


@loop_over("backend", ["dense", "chunked", "auto"])
@loop_over("ties", [False, True])
def test_sorting_gives_what_loops_give(backend: str, ties: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where negatives are exactly at a threshold, which is not above it; no other way is taken."""
    monkeypatch.setattr(DENSE, "fold_each_positive", None)
    generator = torch.Generator().manual_seed(0)
    S = torch.rand(7, 12, generator=generator, dtype=torch.float64)
    S = (S * 8.0).round() / 8.0 if ties else S
    kind = torch.randint(3, S.shape, generator=generator)
    kind[5], kind[6] = 0, 1  # one without negatives, one without positives
    relation = Masks(kind == 0, kind == 1)
    violated = s_p - 0.25 < s
    band = violated & (s < s_p)
    values: dict[Formula, Callable[[float, float], float]] = {}
    for margin in (0.5, 0.25, 0.0, -0.25):
        hinge = relu(s - s_p + margin)

        def plain(n: float, p: float, margin: float = margin) -> float:
            return max(n - p + margin, 0.0)

        def inside(n: float, p: float) -> bool:
            return p - 0.25 < n < p

        def above(n: float, p: float) -> bool:
            return p - 0.25 < n

        values[over_triplets(hinge)] = plain
        values[number_of(hinge > 0.0)] = lambda n, p, plain=plain: plain(n, p) > 0.0
        values[over_triplets(where(band, hinge, 0.0))] = lambda n, p, plain=plain: inside(n, p) * plain(n, p)
        values[number_of(band & (hinge > 0.0))] = lambda n, p, plain=plain: inside(n, p) and plain(n, p) > 0.0
        values[over_triplets(where(violated, hinge, 0.0))] = lambda n, p, plain=plain: above(n, p) * plain(n, p)
        values[number_of(violated & (hinge > 0.0))] = lambda n, p, plain=plain: above(n, p) and plain(n, p) > 0.0
    values[number_of(band)] = inside
    values[number_of(violated)] = above
    batch = PairBatch(relation, matrix=S)
    for formula, value in values.items():
        found = run([Term(formula, count(POSITIVES), count(POSITIVES))], batch, "sum", backend)[0].total
        expected = [
            sum(
                value(row[n].item(), row[p].item())
                for p in yes.nonzero()[:, 0].tolist()
                for n in no.nonzero()[:, 0].tolist()
            )
            for row, yes, no in zip(S, relation.positive, relation.negative, strict=True)
        ]
        torch.testing.assert_close(found.double(), torch.tensor(expected, dtype=torch.float64), rtol=1e-12, atol=1e-12)


@loop_over("backend", ["dense", "chunked"])
@pytest.mark.parametrize(
    "miner", [None, SemiHardMiner(0.4), TripletMarginMiner(0.1), TripletMarginMiner(-0.1)], ids=repr
)
def test_gradients_by_sorting(backend: str, miner: TripletMiner | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """First and second derivatives are those of the general way."""
    found = []
    for sorts in (True, False):
        if not sorts:
            monkeypatch.setattr(DENSE, "match_hinge", lambda folded: None)
        leaf = embed(len(MANY)).requires_grad_()
        relation = Masks(*Labels(MANY).masks())
        batch = PairBatch(relation, Cosine(), anchors=leaf)
        term = TripletLoss(0.3).declare()
        term = term if miner is None else term.chosen_by(miner.choice(Cosine()))
        total = evaluate_declaration(term, batch, "mean", backend)
        (gradient,) = torch.autograd.grad(total, leaf, create_graph=True)
        found.append([total, gradient, torch.autograd.grad(gradient.square().sum(), leaf)[0]])
    torch.testing.assert_close(*found, rtol=1e-9, atol=1e-11)


def test_sums_that_nearly_cancel() -> None:
    """Many hinges of rounding size, in float32: never below zero, and as exact as their inputs."""
    S = 0.9 + 1e-7 * torch.rand(1, 4000, generator=torch.Generator().manual_seed(0))
    positive = (torch.arange(4000) % 2 == 0)[None]
    total, active = sum_hinges(S, positive, ~positive, 0.0)
    own, others = S[positive].double(), S[~positive].double()
    hinges = torch.relu(others[None, :] - own[:, None])
    assert active.item() == (hinges > 0).sum()
    assert total.item() == pytest.approx(hinges.sum().item(), rel=1e-6)


# ------------------------------------------------------------------------------------------------ given triplets

TRIPLETS = [(0, 2, 1), (0, 5, 3), (0, 2, 1), (4, 1, 8), (3, 7, 0), (10, 3, 5)]  # one of them twice
ANCHORS, POSITIVE_INDEX, NEGATIVE_INDEX = torch.tensor(TRIPLETS).T


@loop_over("gaps", [False, True])
@loop_over("backend", ["dense", "chunked", "auto"])
@loop_over("reduction", ["mean", "nonzero", "sum", "none"])
def test_given_triplets(reduction: str, backend: str, gaps: bool) -> None:
    """Two values for each triplet, a number per anchor inside, and triplets that do not count."""
    valid = torch.tensor([True, True, False, True, True, True])
    length = PerAnchor("length", lambda batch: batch.anchors.norm(dim=1))
    term = per_triplet(relu(length * (s - s_p) + 0.2), softplus(s_p - s) * length)
    leaf = embed(11).requires_grad_()
    triplets = Triplets(ANCHORS, POSITIVE_INDEX, NEGATIVE_INDEX, valid if gaps else None).with_shape(11, 11)
    batch = PairBatch(triplets, Cosine(), anchors=leaf)
    found = gradient_of(evaluate_declaration(term, batch, reduction, backend), leaf)

    leaf = embed(11).requires_grad_()
    units = nn.functional.normalize(leaf)
    S, lengths = units @ units.T, leaf.norm(dim=1)
    rows, values = [torch.zeros((), dtype=torch.float64) for _ in range(11)], []
    for k, (a, p, n) in enumerate(TRIPLETS):
        if valid[k] or not gaps:
            each = [torch.relu(lengths[a] * (S[a, n] - S[a, p]) + 0.2)]
            each += [nn.functional.softplus(S[a, p] - S[a, n]) * lengths[a]]
            values += each
            rows[a] = rows[a] + sum(each)
    total = torch.stack(values).sum()
    plain = {
        "mean": total / len(values),
        "nonzero": total / sum(bool(value > 0) for value in values),
        "sum": total,
        "none": torch.stack(rows),
    }
    torch.testing.assert_close(found, gradient_of(plain[reduction], leaf), rtol=1e-10, atol=1e-10)


def test_triplets_of_other_references_and_of_a_matrix() -> None:
    anchors, references = embed(5), embed(7, seed=1)
    index = [torch.tensor(each) for each in ([0, 0, 4, 2], [1, 6, 3, 3], [2, 2, 0, 5])]
    triplets = Triplets(*index).with_shape(5, 7)
    term, S = per_triplet(softplus(s - s_p)), Euclidean()(anchors, references)
    values = nn.functional.softplus(S[index[0], index[2]] - S[index[0], index[1]])
    for batch in (
        PairBatch(triplets, Euclidean(), anchors=anchors, references=references),
        PairBatch(triplets, matrix=S),
    ):
        found = sum_triplets(term, batch)
        torch.testing.assert_close(found.total, torch.zeros(5).double().index_add(0, index[0], values))
        assert found.units.tolist() == found.nonzero.tolist() == [2, 0, 1, 0, 1]


# ------------------------------------------------------------------------------------------------ rules

RULES: list[TripletMiner] = [
    SemiHardMiner(),
    SemiHardMiner(0.3),
    BatchHardMiner(),
    EasyPositiveMiner(),
    EasyPositiveMiner(negatives="hard"),
    TripletMarginMiner(0.3),
    TripletMarginMiner(-0.1),
    TripletMarginMiner(0.3, kind="hard"),
    TripletMarginMiner(0.3, kind="easy"),
    BatchEasyHardMiner("semihard", "easy", positive_range=(-0.6, 1.1)),
    BatchEasyHardMiner("hard", "semihard", positive_range=(-0.6, 1.1)),
    BatchEasyHardMiner("all", "hard", positive_range=(-0.6, 1.1)),
    BatchEasyHardMiner("easy", "all", negative_range=(-0.5, 1.3)),
    BatchEasyHardMiner("all", "all", positive_range=(-0.6, 1.1)),
]
LOSSES = [partial(TripletLoss, 0.4), partial(TripletLoss, 0.4, soft=True), partial(MarginLoss, 0.3, 1.1)]


def similarity_of(loss: nn.Module) -> Similarity:
    return Euclidean() if isinstance(loss, MarginLoss) else Cosine()


@loop_over("labels", [FEW, MANY])
@loop_over("make", LOSSES)
@pytest.mark.parametrize("miner", RULES, ids=repr)
def test_a_rule_chooses_the_triplets_that_its_miner_names(
    miner: TripletMiner, make: Callable[..., nn.Module], labels: Tensor
) -> None:
    """Units and values, and gradients: no two similarities of an anchor are equal here."""
    embeddings = embed(len(labels))
    for reduction in ("mean", "nonzero"):
        plain = make(reduction=reduction, backend="dense").double()
        S = similarity_of(plain)(embeddings)
        named = miner.choose(map_rows(PairBatch(Labels(labels), similarity_of(plain), matrix=S)))
        assert len(named.anchors)
        leaf = embeddings.clone().requires_grad_()
        expected = gradient_of(plain(leaf, relation=named), leaf)
        for backend in ("dense", "chunked", "auto"):
            leaf = embeddings.clone().requires_grad_()
            loss = make(reduction=reduction, backend=backend, miner=miner).double()
            torch.testing.assert_close(gradient_of(loss(leaf, labels), leaf), expected, rtol=1e-9, atol=1e-9)


@loop_over("make", LOSSES)
@pytest.mark.parametrize("miner", RULES, ids=repr)
def test_a_rule_as_folds_is_the_rule_by_index(miner: TripletMiner, make: Callable[..., nn.Module]) -> None:
    """The declaration under the rule, executed as plain folds, whatever the dispatcher would do."""
    term, embeddings = make().declare(), embed(len(FEW))
    batch = PairBatch(Labels(FEW), similarity_of(make()), anchors=embeddings)
    triplets = miner.choose(map_rows(batch, "dense")).compact()
    named = sum_triplets(term, batch.under(triplets))
    for relation in (Labels(FEW), Masks(*Labels(FEW).masks())):
        for backend in ("dense", "chunked"):
            for reduction in ("mean", "nonzero"):
                values = run(
                    [term.chosen_by(miner.choice(similarity_of(make())))], batch.under(relation), reduction, backend
                )[0]
                torch.testing.assert_close(values.total, named.total, check_dtype=False)
                counted, expected = (
                    (values.units, named.units) if reduction == "mean" else (values.nonzero, named.nonzero)
                )
                assert counted.tolist() == expected.tolist()


def test_a_rule_follows_its_miner() -> None:
    """A term keeps what the last rule made of it, until the miner or the similarity is another one."""
    generator = torch.Generator().manual_seed(0)
    embeddings, labels = torch.randn(20, 3, generator=generator), torch.arange(20) // 4
    loss, seen = TripletLoss(miner=SemiHardMiner()), set()
    for miner, similarity in (
        (SemiHardMiner(), "cosine"),
        (SemiHardMiner(margin=0.01), "cosine"),
        (SemiHardMiner(margin=0.1), "cosine"),
        (SemiHardMiner(margin=0.1), "euclidean"),
    ):
        loss.miner, loss.similarity = miner, similarity
        fresh = TripletLoss(miner=miner, similarity=similarity)(embeddings, labels)
        assert [float(loss(embeddings, labels)) for _ in range(2)] == [float(fresh)] * 2
        seen.add(float(fresh))
    object.__setattr__(loss.miner, "margin", 0.05)
    assert float(loss(embeddings, labels)) not in seen
    assert len(seen) == 4


def test_a_value_may_have_a_fold_of_its_own() -> None:
    """What a rule replaces is the triplet's similarity, and not that of the pairs inside a fold."""
    choice = Choice(largest(s, POSITIVES), largest(s, NEGATIVES), count(POSITIVES) > 0)
    term = per_triplet(relu(s - s_p + 0.5) * square(mean(s, NEGATIVES)), choice=choice)
    batch = PairBatch(Labels(FEW), Cosine(), anchors=embed(len(FEW)))
    found = run([term], batch, "sum", "dense")[0].total
    S, (positive, negative) = batch.similarities(), batch.relation.masks()
    for a in range(len(FEW)):
        if positive[a].any():
            others = S[a][negative[a]]
            expected = torch.relu(others.max() - S[a][positive[a]].max() + 0.5) * others.mean().square()
            torch.testing.assert_close(found[a], expected)
