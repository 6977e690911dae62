"""Reductions beside mean, nonzero, sum and none: against oracles of units, on every engine, and against torch's weights."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from torch import nn

from likewise import losses, miners
from likewise.engines import recompute
from likewise.engines.dispatch import CHUNK_FROM
from likewise.formula import ClassWeighted, MatrixLoss, Pairs, Term, Thresholded, Triplets, sort_declaration
from likewise.testing import make_batch
from tests.losses.cases import CASES, PROXY_CASES

WEIGHTS = [0.5, 2.0, 0.0, 1.5, 3.0, 0.25, 1.0, 4.0, 0.1, 0.7]
# their units are no values of single anchors
ALONE = {
    "GlobalOrthogonalRegularizationLoss",
    "HistogramLoss",
    "LiftedStructureLoss",
    "WeightedPairLoss",
    "ProxyGMLLoss",
    # its contrastive term is a mean over violations under every reduction, so it has no list of units for an oracle to
    # reduce; the contract holds its own oracle, which takes the reduction, to the same accuracy
    "ROADMAPLoss",
}
TABLE = [case for case in [*CASES, *PROXY_CASES] if case.label not in ALONE]


def is_formula(loss: nn.Module) -> bool:
    return not any(isinstance(each, MatrixLoss) for d in loss.declarations() for each in sort_declaration(d)[2])


def sort_units(terms, n):
    """The units, as the oracles list them."""
    return terms


def mean_per_anchor(terms, n):
    result = [0.0] * n
    for term in terms:
        for anchor in range(n):
            values = [value for i, value in term if i == anchor]
            result[anchor] += sum(values) / len(values) if values else 0.0
    return result


def between(low, high):
    def reduce(terms, n):
        total = 0.0
        for term in terms:
            values = [value for _, value in term if (low is None or value > low) and (high is None or value < high)]
            total += sum(values) / len(values) if values else 0.0
        return total

    return reduce


def weighted(classes, normalize=False):
    def reduce(terms, n):
        total = 0.0
        for term in terms:
            weights = [WEIGHTS[classes[i]] for i, _ in term]
            number = sum(weights) if normalize else len(weights)
            total += sum(w * value for w, (_, value) in zip(weights, term, strict=True)) / number if number else 0.0
        return total

    return reduce


def thresholds_of(terms) -> tuple[float, float]:
    """Thresholds with units on both sides, far from any unit."""
    values = sorted(value for term in terms for _, value in term)
    gaps = [(right - left, (left + right) / 2.0) for left, right in pairwise(values)]
    third = max(len(gaps) // 3, 1)
    return max(gaps[:third])[1], max(gaps[-third:])[1]


@pytest.mark.parametrize("case", TABLE, ids=lambda case: case.label)
def test_equals_the_oracle(case) -> None:
    embeddings, labels = make_batch("ragged")
    given = embeddings.tolist(), labels.tolist(), None, None

    def check(reduction, oracle) -> None:
        found = case.make(reduction=reduction)(embeddings, labels).detach()
        expected = torch.as_tensor(case.oracle(*given, oracle), dtype=found.dtype)
        torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-6)

    check("mean_per_anchor", mean_per_anchor)
    on_proxies = len(case.make(reduction="none")(embeddings, labels)) != len(labels)
    classes = list(range(10)) if on_proxies else labels.tolist()
    for normalize in (False, True):
        check(ClassWeighted(WEIGHTS, normalize=normalize), weighted(classes, normalize))
    if is_formula(case.make()):
        low, high = thresholds_of(case.oracle(*given, sort_units))
        for limits in ((low, None), (None, high), (low, high), (1e9, None)):
            check(Thresholded(*limits), between(*limits))
    else:
        with pytest.raises(TypeError, match="must not be Thresholded for a loss that is not a formula"):
            case.make(reduction=Thresholded(0.1))(embeddings, labels)


LOSSES = {
    "contrastive": lambda **o: losses.ContrastiveLoss(**o),
    "contrastive-mined": lambda **o: losses.ContrastiveLoss(miner=miners.MultiSimilarityMiner(0.3), **o),
    "nt-xent": lambda **o: losses.NTXentLoss(0.5, **o),
    "multi-similarity": lambda **o: losses.MultiSimilarityLoss(**o),
    "triplet": lambda **o: losses.TripletLoss(0.5, **o),
    "triplet-band": lambda **o: losses.TripletLoss(0.5, miner=miners.SemiHardMiner(0.4), **o),
    "triplet-hard": lambda **o: losses.TripletLoss(0.5, miner=miners.BatchHardMiner(), **o),
    "margin": lambda **o: losses.MarginLoss(**o),
    "margin-band": lambda **o: losses.MarginLoss(miner=miners.SemiHardMiner(0.4), **o),
    "smooth-softmax": lambda **o: losses.NormalizedSoftmaxLoss(10, 5, 0.5, **o),
    "sampled": lambda **o: losses.NormalizedSoftmaxLoss(10, 5, 0.5, sampled=10, corrected=True, **o),
    "sub-centers": lambda **o: losses.SubCenterArcFaceLoss(10, 5, scale=4.0, **o),
    "proxy-anchor": lambda **o: losses.ProxyAnchorLoss(10, 5, alpha=4.0, **o),
}


@pytest.mark.parametrize("name", LOSSES)
def test_every_engine(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks, positives by index and triplets by rule give the dense value and gradients; and finite differences agree.

    The reductions take turns from loss to loss.
    """
    reductions = ("mean_per_anchor", ClassWeighted(WEIGHTS), Thresholded(0.1, 1.05))
    reduction = reductions[list(LOSSES).index(name) % len(reductions)]
    monkeypatch.setattr(recompute, "LEAST_ROWS", 5)
    monkeypatch.setattr(recompute, "BUDGET", {"cpu": 1, "cuda": 1})
    monkeypatch.setattr("likewise.engines.dispatch.INDEX_FROM", 1)
    embeddings, labels = make_batch("ragged", seed=3)
    outcomes = []
    for backend in ("dense", "chunked", "auto", "auto in chunks"):
        monkeypatch.setitem(CHUNK_FROM, "cpu", 1 if backend == "auto in chunks" else 2**22)
        torch.manual_seed(0)
        loss = LOSSES[name](reduction=reduction, backend=backend.split()[0]).double()
        leaf = embeddings.clone().requires_grad_()
        value = loss(leaf, labels)
        objective = (value * torch.arange(1, 1 + value.numel())).sum()
        outcomes.append([value.detach(), *torch.autograd.grad(objective, [leaf, *loss.parameters()])])
    for other in outcomes[1:]:
        torch.testing.assert_close(other, outcomes[0], rtol=1e-9, atol=1e-11)
    torch.autograd.gradcheck(lambda x: loss(x, labels), leaf, atol=1e-4)


def test_given_pairs_and_triplets() -> None:
    """Explicit triplets are thresholded one by one; a class has no weight where there are no labels."""
    embeddings, _ = make_batch("balanced")
    index = torch.arange(4)
    triplets = Triplets(index, index + 4, index + 8)
    S = torch.nn.functional.normalize(embeddings) @ torch.nn.functional.normalize(embeddings).T
    values = torch.relu(S[index, index + 8] - S[index, index + 4] + 0.5)
    high = float(values.sort().values[-2:].mean())
    found = losses.TripletLoss(0.5, reduction=Thresholded(high=high))(embeddings, relation=triplets)
    torch.testing.assert_close(found, values[values < high].mean())
    pairs = Pairs(index, index + 4, index, index + 8)
    loss = losses.ContrastiveLoss(1.0, -1.0, reduction=ClassWeighted(WEIGHTS))
    with pytest.raises(TypeError, match="labels must be given together with a relation where there is one weight"):
        loss(embeddings, relation=pairs)
    classes = torch.arange(12) % 10
    weights = torch.tensor(WEIGHTS, dtype=torch.float64)[:4]
    units = 1.0 - S[index, index + 4] + S[index, index + 8] + 1.0
    torch.testing.assert_close(loss(embeddings, classes, relation=pairs), (weights * units).mean())


def test_weights_of_torch() -> None:
    """Normalized class weights of a softmax are those of `torch.nn.CrossEntropyLoss`."""
    embeddings, labels = make_batch("ragged")
    loss = losses.SoftmaxLoss(10, 5, reduction=ClassWeighted(WEIGHTS, normalize=True)).double()
    peer = nn.CrossEntropyLoss(weight=torch.tensor(WEIGHTS, dtype=torch.float64))
    torch.testing.assert_close(loss(embeddings, labels), peer(embeddings @ loss.proxies.T, labels), rtol=1e-6, atol=0)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_compiles() -> None:
    embeddings, labels = make_batch("ragged")
    for reduction in ("mean_per_anchor", ClassWeighted(WEIGHTS), Thresholded(low=0.3)):
        loss = losses.NTXentLoss(reduction=reduction)
        compiled = torch.compile(loss, fullgraph=True, backend="eager")
        torch.testing.assert_close(compiled(embeddings, labels), loss(embeddings, labels))


class Opaque(losses.PairLoss):
    """A term whose units are not stated."""

    def declare(self) -> Term:
        plain = losses.ContrastiveLoss().declare()[0]
        return Term(plain.total, plain.units, plain.nonzero)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: ClassWeighted([1.0, -1.0]), "weights must be finite and zero at least, but one of them is -1.0"),
        (lambda: ClassWeighted([[1.0]]), r"weights must be one number per class, but their shape is \(1, 1\)"),
        (lambda: Thresholded(), "low or high must be a number, but both are None"),
        (lambda: Thresholded(1.0, 0.5), "low must be below high, 0.5, but it is 1"),
        (lambda: Thresholded("1"), "low must be a number or None, but it is '1'"),
        (lambda: losses.NTXentLoss(reduction=ClassWeighted), "reduction must be one of 'mean', 'nonzero'"),
        (
            lambda: losses.NTXentLoss(reduction=ClassWeighted([1.0]))(torch.eye(2), torch.tensor([0, 1])),
            "labels must be in 0..0, one weight for each class",
        ),
        (
            lambda: Opaque(reduction=Thresholded(0.1))(torch.eye(2), torch.tensor([0, 1])),
            "must not be Thresholded for a term that does not state the value of one unit",
        ),
    ],
)
def test_refusals(make, sentence: str) -> None:
    with pytest.raises((TypeError, ValueError), match=sentence):
        make()
