"""Declarations that no loss of the library has: every operation, nested folds, values from outside, miners at their limits."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch import nn

from likewise.formula import (
    BOTH,
    NEGATIVES,
    POSITIVES,
    Cosine,
    Labels,
    Mined,
    PerAnchor,
    PerPair,
    PerReference,
    Term,
    Total,
    acosh,
    add_up,
    apply,
    at_least,
    cos,
    count,
    exp,
    hyper,
    largest,
    log,
    logsumexp,
    mean,
    mean_over_batch,
    per_anchor,
    per_pair,
    relu,
    s,
    sigmoid,
    sin,
    smallest,
    softplus,
    sqrt,
    square,
    stop_gradient,
    tanh,
    where,
)
from likewise.formula.expressions import Folded, Formula, Number
from likewise.formula.folds import Fold, Sum
from likewise.formula.operations import OPERATIONS
from likewise.formula.traversal import walk
from likewise.losses import PairLoss
from tests.engines.test_pair_numbers import DIM, Guided, Relevant, alternate
from tests.engines.triton_common import WAYS, batch, check, declare_loss, make_miner, take
from tests.test_outside import MeanVersusHardest

WAYS_AND_SIZES = (("general", 19), ("triangular", 34))


# ------------------------------------------------------------------------------------------------ the language


def three_passes() -> Formula:
    """A fold of a fold of a fold, with many operations in between."""
    hardest = largest(s, NEGATIVES)
    soft = logsumexp(4.0 * (s - hardest) / at_least(exp(-s), 0.6), NEGATIVES)  # the second pass
    pull = softplus(soft - 3.0 * s) + sigmoid(s) * stop_gradient(square(s)) - sqrt(1.5 + s) * cos(sin(s))
    pull = pull + 0.1 * tanh(abs(s - 0.1)) * log(2.0 + s) * (1.5 + s) ** 1.7 * acosh(2.5 + s)
    near = (0.1 * soft < s + 2.0) & apply("nonzero", s)
    kept = where(near | ~(s < 5.0), relu(pull + 0.4), -s / 3.0)
    return add_up(kept, POSITIVES) + mean(s * smallest(s, POSITIVES), BOTH)  # the third


def test_every_operation_is_in_it() -> None:
    used = {node.operation for node in walk(three_passes()) if hasattr(node, "operation")}
    assert used == set(OPERATIONS)


@pytest.mark.parametrize(("way", "m"), WAYS_AND_SIZES)
def test_folds_in_folds(way: str, m: int, monkeypatch: pytest.MonkeyPatch) -> None:
    take(monkeypatch, way)
    # every class has several samples, because a fold inside a curve must be finite
    embeddings, labels = batch(m)[0], torch.arange(m) % 6
    check(partial(declare_loss, per_anchor(three_passes())), embeddings, labels)
    check(partial(declare_loss, per_anchor(three_passes())), embeddings.half(), labels)


@pytest.mark.parametrize(("way", "m"), WAYS_AND_SIZES)
def test_a_loss_from_outside(way: str, m: int, monkeypatch: pytest.MonkeyPatch) -> None:
    take(monkeypatch, way)
    for reduction in ("mean", "none"):
        check(partial(MeanVersusHardest, 9.0, reduction=reduction), *batch(m))


@pytest.mark.parametrize("constant", [0.0, 7.0])
def test_folds_over_constants(constant: float, monkeypatch: pytest.MonkeyPatch) -> None:
    for way, m in WAYS_AND_SIZES:
        take(monkeypatch, way)
        folds = (
            add_up(constant, NEGATIVES)
            + mean(constant, POSITIVES)
            + logsumexp(constant, BOTH)
            + largest(constant, BOTH)
        )
        check(partial(declare_loss, per_anchor(folds + mean(s, BOTH))), *batch(m))


def test_values_that_are_the_same_for_a_whole_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """A curve or a counted condition with one value per anchor counts once for each of its pairs."""
    gap = relu(largest(s, NEGATIVES) - 0.6)
    terms = {
        "a pair's value": per_pair(POSITIVES, gap, needs=(NEGATIVES,)),
        "a count of it": Term(add_up(gap + s, NEGATIVES), count(NEGATIVES, gap > 0.1), count(BOTH, gap > 0.1)),
        "a number that is a condition": Term(
            add_up(s, NEGATIVES), count(NEGATIVES, where(s > 0.1, 1, 0)), count(POSITIVES, s)
        ),
    }
    for way, m in WAYS_AND_SIZES:
        take(monkeypatch, way)
        for term in terms.values():
            reduction = "nonzero" if way == "general" else "mean"
            check(partial(declare_loss, term, reduction=reduction), *batch(m))


# ------------------------------------------------------------------------------------------------ miners

CONDITIONS = {
    "per anchor": (s < 2.0, largest(s, NEGATIVES) > 0.8),
    "a constant": (s < 2.0, apply("less", 0.3, 0.7)),
    "empty": (apply("less", 0.7, 0.3), s > 2.0),
    "counts": ((s < 0.9) & (count(POSITIVES) > 1.0), (s > 0.0) & (count(NEGATIVES) > 27.0)),
    "folds of folds": (s < largest(s - mean(s, NEGATIVES), NEGATIVES), smallest(s, POSITIVES) < s),
    "the whole batch": (s < mean_over_batch(s, POSITIVES) + 0.1, mean_over_batch(s, NEGATIVES) < s),
}


@pytest.mark.parametrize("name", CONDITIONS)
def test_stubborn_miners(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The loss counts pairs after mining, the miner those before it: the same fold has two values."""
    term = per_pair(NEGATIVES, square(s) / (1.0 + count(NEGATIVES)) + 0.01 * count(POSITIVES))
    way, m = WAYS_AND_SIZES[list(CONDITIONS).index(name) % len(WAYS_AND_SIZES)]
    take(monkeypatch, way)
    reduction = "nonzero" if way == "general" else "mean"
    check(partial(declare_loss, term, miner=make_miner(*CONDITIONS[name]), reduction=reduction), *batch(m))


def test_mined_twice_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    take(monkeypatch, "general")
    embeddings, labels = batch(6)
    once = Mined(Labels(labels), *CONDITIONS["per anchor"])
    loss = declare_loss(per_pair(NEGATIVES, s), miner=make_miner(*CONDITIONS["empty"]), backend="triton")
    with pytest.raises(TypeError, match="takes one miner, but the relation is mined already; give") as caught:
        loss(embeddings, relation=once)
    assert "\n" not in str(caught.value)


def test_means_of_what_is_mined(monkeypatch: pytest.MonkeyPatch) -> None:
    term = per_anchor(mean(relu(s + 0.3), NEGATIVES) + logsumexp(s, BOTH))
    for way, m in WAYS_AND_SIZES:
        take(monkeypatch, way)
        check(partial(declare_loss, term, miner=make_miner(*CONDITIONS["per anchor"])), *batch(m))


# ------------------------------------------------------------------------------------------------ numbers from outside


class Numbers(PairLoss):
    """A learned scalar, a value per anchor, one per reference and two for the whole batch."""

    margin: float = hyper(default=0.2, help="margin")

    def __post_init__(self) -> None:
        super().__post_init__()
        generator = torch.Generator().manual_seed(0)
        self.scale = nn.Parameter(torch.tensor(1.3))
        self.of_anchors = nn.Parameter(torch.randn(40, generator=generator))
        self.of_references = nn.Parameter(torch.randn(40, generator=generator))

    def declare(self) -> Term:
        scale = Number(self.scale)
        anchor = PerAnchor("anchor", lambda pair_batch: self.of_anchors[: pair_batch.shape[0]])
        length = PerAnchor("length", lambda pair_batch: pair_batch.anchors.norm(dim=1))
        reference = PerReference("reference", lambda pair_batch: self.of_references[: pair_batch.shape[1]])
        negatives = logsumexp(scale * s + reference, NEGATIVES)
        group = mean_over_batch(square(s), NEGATIVES)
        positives = add_up(softplus(negatives - scale * s * anchor + reference + group), POSITIVES)
        total = positives + length * largest(reference * s, NEGATIVES) + Total(anchor) * 0.01
        return Term(where(count(NEGATIVES) > 0.0, total, 0.0), count(POSITIVES), count(POSITIVES, s > scale * 0.1))


@pytest.mark.parametrize(("dtype", "way"), [(torch.float32, "triangular"), (torch.float16, "general")])
def test_learned_numbers_of_every_kind(dtype: torch.dtype, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    take(monkeypatch, way)
    embeddings, labels = batch(dict(WAYS_AND_SIZES)[way])
    check(partial(Numbers, reduction="nonzero" if way == "general" else "mean"), embeddings.to(dtype), labels)
    references, theirs = batch(37, seed=3)
    check(Numbers, [embeddings.to(dtype), references.to(dtype)], labels, reference_labels=theirs)


def test_a_number_per_reference_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    bias = PerReference(
        "bias", lambda pair_batch: torch.linspace(-1.0, 2.0, pair_batch.shape[1], dtype=pair_batch.dtype)
    )
    term = per_anchor(
        logsumexp(bias, NEGATIVES) * largest(bias, NEGATIVES) + add_up(square(s), NEGATIVES), needs=(NEGATIVES,)
    )
    for way, m in WAYS_AND_SIZES:
        take(monkeypatch, way)
        check(partial(declare_loss, term), *batch(m))
        check(partial(declare_loss, term, miner=make_miner(s < 2.0, bias > 0.3)), *batch(m))


# ------------------------------------------------------------------------------------------------ refusals


class Product(Sum):
    """A fold without a template."""

    name = "product"


class Shifted(Cosine):
    """A similarity without a product."""


@pytest.mark.parametrize("way", WAYS)
def test_refusals_are_one_sentence(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    take(monkeypatch, way)
    embeddings, labels = batch(6)
    fold: Fold = Product()
    cases = {
        "computes in float32, but embeddings are torch.float64": (
            MeanVersusHardest(backend="triton"),
            embeddings.double(),
        ),
        "has no product fold": (declare_loss(per_anchor(Folded(fold, NEGATIVES, s)), backend="triton"), embeddings),
        "has no formula of the similarity Shifted": (
            MeanVersusHardest(backend="triton", similarity=Shifted()),
            embeddings,
        ),
    }
    for words, (loss, given) in cases.items():
        for _ in range(2):  # what was refused once is refused again
            with pytest.raises(TypeError, match=words) as caught:
                loss(given, labels)
            assert "\n" not in str(caught.value)
            assert "give" in str(caught.value)
    with pytest.raises(TypeError, match="needs embeddings, but only their similarities are known") as caught:
        MeanVersusHardest(backend="triton").from_similarity(embeddings @ embeddings.T, labels)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("way", "m", "references"),
    [(*each, bool(turn % 2)) for turn, each in enumerate(WAYS_AND_SIZES)],
)
def test_numbers_per_pair(way: str, m: int, references: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels read them from a matrix, also inside a miner's conditions, and their gradient reaches a parameter."""
    take(monkeypatch, way)
    embeddings, labels = batch(m, d=DIM)[0], torch.arange(m) % 6
    others = [torch.randn(29, DIM, generator=torch.Generator().manual_seed(1))] if references else []
    options = {"labels": labels, **({"reference_labels": torch.arange(29) % 7} if references else {})}
    check(Guided, [embeddings, *others], **options)
    relevance = PerPair("relevance", alternate)
    term = per_anchor(softplus(logsumexp(3.0 * s + relevance, NEGATIVES) - mean(relevance * s, POSITIVES)))
    check(partial(declare_loss, term, miner=Relevant()), [embeddings, *others], **options)
