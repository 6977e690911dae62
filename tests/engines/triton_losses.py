"""Every loss of the library that is a formula, on both paths of the Triton engine, against float64."""

from __future__ import annotations

from functools import partial

import pytest
import torch

from likewise import losses, miners
from likewise.formula import ClassWeighted, Reduction, Thresholded
from tests.engines.triton_common import WAYS, batch, check, engine, take
from tests.losses.cases import CASES, PROXY_CASES

NO_FORMULAS = {
    "CentroidTripletLoss",
    "DynamicSoftMarginLoss",
    "MagnetLoss",
    "PDDMLoss",
    "ProxyGMLLoss",
    "WeightedPairLoss",
    "ContrastiveLoss-poincare",
    "NTXentLoss-hyperbolic",
}
FORMULAS = [case for case in CASES + PROXY_CASES if case.label not in NO_FORMULAS]
MINED = [
    partial(losses.MultiSimilarityLoss, miner=miners.MultiSimilarityMiner(0.1)),
    partial(losses.NTXentLoss, miner=miners.PairMarginMiner(0.6, 0.2)),
    partial(losses.MultiSimilarityLoss, miner=miners.SemiHardMiner()),
    partial(losses.TripletLoss, miner=miners.BatchHardMiner()),
    partial(losses.MultiSimilarityLoss, miner=miners.EasyPositiveMiner()),
    partial(losses.TripletLoss, miner=miners.TripletMarginMiner(0.2, kind="easy")),
    partial(losses.TripletLoss, miner=miners.BatchEasyHardMiner("all", "easy", positive_range=(-0.5, 0.9))),
]
"""Every miner; triplets of mined pairs are not a formula."""


REDUCTIONS: tuple[Reduction, ...] = (
    "mean",
    "nonzero",
    "sum",
    "none",
    Thresholded(low=0.2),
    "mean_per_anchor",
    ClassWeighted([0.5, 2.0, 0.0, 1.5, 3.0, 0.25, 1.0, 4.0, 0.1, 0.7]),
)


@pytest.mark.parametrize("case", FORMULAS, ids=[case.label for case in FORMULAS])
def test_every_loss(case, monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths and reductions take turns from case to case, so that each path meets every reduction."""
    turn = FORMULAS.index(case)
    way, reduction = WAYS[turn % len(WAYS)], REDUCTIONS[turn % len(REDUCTIONS)]
    if case.label.startswith("AngularLoss"):  # it evaluates formulas, but it has no units
        reduction = "nonzero"
    take(monkeypatch, way)
    m = 34 if way != "general" else 19  # full tiles with negatives only need thirty-two rows
    # similarities through samples are products of products, which round twice
    units = 8.0 if case.label.endswith("through-samples") else 4.0
    check(partial(case.make, reduction=reduction), *batch(m, 5, 10), units=units)


@pytest.mark.parametrize("way", WAYS)
def test_half_precision(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """16-bit embeddings are multiplied without conversion; the reference in float64 starts from the same 16 bits."""
    embeddings, labels = batch(19, 5, 10)
    take(monkeypatch, way)
    for case in FORMULAS[WAYS.index(way) :: 12]:
        check(case.make, embeddings.half(), labels)


def test_gradients_of_several_stages_are_rounded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mean over the batch needs a second stage; both stages add to the gradient of the same float16 embeddings."""
    embeddings, labels = batch(34, 5, 10)
    take(monkeypatch, "general")
    check(partial(losses.IntraPairVarianceLoss, reduction="sum"), embeddings.half(), labels)


@pytest.mark.parametrize("turn", range(len(MINED)))
def test_every_miner(turn: int, monkeypatch: pytest.MonkeyPatch) -> None:
    way = WAYS[turn % len(WAYS)]
    take(monkeypatch, way)
    check(MINED[turn], *batch(34 if way != "general" else 19, 5, 8))


@pytest.mark.parametrize("similarity", ["dot", "euclidean", "squared_euclidean", "snr"])
@pytest.mark.parametrize("normalize", [True, False])
def test_every_similarity(similarity: str, normalize: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    from likewise.formula.similarities import SIMILARITIES

    kind = type(SIMILARITIES[similarity])(normalize=normalize)
    embeddings, labels = batch(34, 5)
    way, miner = ("general", miners.MultiSimilarityMiner(0.1)) if normalize else ("sorted", None)
    take(monkeypatch, way)
    check(partial(losses.MultiSimilarityLoss, 2.0, 5.0, -0.5, similarity=kind, miner=miner), embeddings, labels)
    if normalize:
        check(partial(losses.NTXentLoss, 0.5, similarity=kind), embeddings[:19].half(), labels[:19])


@pytest.mark.parametrize("label", sorted(NO_FORMULAS))
def test_what_is_no_formula_is_refused(label: str) -> None:
    (case,) = [case for case in CASES + PROXY_CASES if case.label == label]
    embeddings, labels = batch(12, 5, 10)
    with pytest.raises((TypeError, ValueError), match="formula") as caught:
        case.make(backend="triton")(embeddings, labels)
    assert "\n" not in str(caught.value)


def test_there_are_plain_tiles() -> None:
    labels = batch(34, 5, 10)[1].sort().values
    assert labels[15] < labels[16]


def test_the_paths_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    paths = []

    def write_sources(kind, spec, terms, ordered, options, write=engine._write_sources):
        paths.append(("triangular" if kind == "triangle" else "sorted") if ordered else "general")
        return write(kind, spec, terms, ordered, options)

    monkeypatch.setattr(engine, "_write_sources", write_sources)
    monkeypatch.setattr(engine, "_KERNELS", {})
    for way in WAYS:
        take(monkeypatch, way)
        paths.clear()
        embeddings, labels = batch(19)
        losses.ContrastiveLoss(backend="triton")(embeddings, labels)
        assert set(paths) == {way}


def test_memories(monkeypatch: pytest.MonkeyPatch) -> None:
    """A memory that is half full, with the batch among the references."""
    older, their_labels = batch(21, 5, 6, seed=1)
    embeddings, labels = batch(18, 5, 6)

    def memory(kind, **options):
        module = losses.CrossBatchMemory(kind(**options), size=30)
        module.loss.backend = "dense"
        module(older, their_labels)
        module.loss.backend = options["backend"]
        return module.eval()

    for way in WAYS:
        take(monkeypatch, way)
        kind = losses.MultiSimilarityLoss if way != "general" else partial(losses.NTXentLoss, learn_temperature=True)
        check(partial(memory, kind), embeddings, labels)


def test_only_proxies_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    embeddings, labels = batch(19, 5, 6)
    for way in WAYS:
        take(monkeypatch, way)
        found = []
        for backend in ("triton", "dense"):
            torch.manual_seed(0)
            loss = losses.ProxyAnchorLoss(6, 5, backend=backend)
            loss(embeddings, labels).backward()
            found.append(loss.proxies.grad)
        torch.testing.assert_close(*found, rtol=1e-4, atol=1e-5)


HEADS_WITH_CENTERS = [
    partial(losses.SubCenterArcFaceLoss, 10, 5, centers=3),
    partial(losses.SoftTripleLoss, 10, 5, centers=4, gamma=0.5),
    partial(losses.SoftTripleLoss, 10, 5, centers=1, gamma=0.2, tau=0.0),
]


def seeded(make, duplicate: bool = False, **options):
    """A head with the same proxies for every backend; with ``duplicate``, each class's first two centers are equal."""
    torch.manual_seed(0)
    head = make(**options)
    if duplicate:
        with torch.no_grad():
            head.proxies[1 :: head.centers] = head.proxies[0 :: head.centers]
    return head


@pytest.mark.parametrize("make", HEADS_WITH_CENTERS, ids=["nearest", "blended", "one"])
def test_pooled_centers(make, monkeypatch: pytest.MonkeyPatch) -> None:
    """In half precision, where centers tie, and where classes are sampled and so out of order; the paths take turns."""
    embeddings, labels = batch(34, 5, 10)
    turn = HEADS_WITH_CENTERS.index(make)
    half, tied, sampled = (WAYS[(turn + place) % len(WAYS)] for place in range(3))
    take(monkeypatch, half)
    check(partial(seeded, lambda **options: make(**options).half()), embeddings.half(), labels)
    if make.keywords["centers"] > 1:
        take(monkeypatch, tied)
        check(partial(seeded, make, duplicate=True), embeddings, labels)
    take(monkeypatch, sampled)
    check(
        partial(seeded, lambda **options: make(sampled=10, generator=torch.Generator().manual_seed(1), **options)),
        embeddings,
        labels,
    )


def test_too_many_centers_are_refused() -> None:
    embeddings, labels = batch(12, 5, 10)
    with pytest.raises(TypeError, match="32 centers that are pooled by NearestCenter, which has no kernel"):
        losses.SubCenterArcFaceLoss(10, 5, centers=32, backend="triton")(embeddings, labels)
