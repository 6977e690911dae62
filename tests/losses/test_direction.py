"""Direction regularization as a term: every loss against plain loops on every engine, finite differences, limits."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from likewise import losses, miners
from likewise.engines import dispatch, recompute
from likewise.formula import Labels, Masks, Triplets
from likewise.losses import DirectionRegularized
from likewise.losses.direction import _Points
from likewise.testing import loop_over, make_batch
from tests.oracles import direction
from tests.oracles import losses as oracles
from tests.oracles import miners as miner_oracles

CLASSES, DIM = 10, 5


def chosen(rule: Callable[..., Any], pairs: oracles.Batch, kind: Any, **options: Any) -> oracles.Terms:
    """The triplet loss on the triplets that a rule chooses by s itself."""
    triplets = rule(oracles.similarities(pairs, kind), pairs.positive, pairs.negative, **options)
    return direction.triplet(pairs, kind=kind, chosen=triplets)


SQUARED = {"similarity": "squared_euclidean"}
PAIR_CASES: dict[str, tuple[Callable[..., losses.PairLoss], Callable[[oracles.Batch], oracles.Terms]]] = {
    "triplets": (partial(losses.TripletLoss, 0.2), partial(direction.triplet, margin=0.2)),
    "triplets, squared": (partial(losses.TripletLoss, **SQUARED), partial(direction.triplet, kind="squared_euclidean")),
    "triplets, Euclidean": (
        partial(losses.TripletLoss, similarity="euclidean"),
        partial(direction.triplet, kind="euclidean"),
    ),
    "triplets, raw": (partial(losses.TripletLoss, similarity="dot"), partial(direction.triplet, kind="dot")),
    "triplets, soft": (partial(losses.TripletLoss, soft=True), partial(direction.triplet, soft=True)),
    "semi-hard": (
        partial(losses.TripletLoss, miner=miners.SemiHardMiner()),
        lambda pairs: chosen(miner_oracles.semi_hard, pairs, "cosine"),
    ),
    "semi-hard, squared, in a band": (
        partial(losses.TripletLoss, miner=miners.SemiHardMiner(0.3), **SQUARED),
        lambda pairs: chosen(miner_oracles.semi_hard, pairs, "squared_euclidean", margin=0.3),
    ),
    "batch hard": (
        partial(losses.TripletLoss, miner=miners.BatchHardMiner()),
        lambda pairs: chosen(miner_oracles.batch_hard, pairs, "cosine"),
    ),
    "multi-similarity": (losses.MultiSimilarityLoss, direction.multi_similarity),
    "multi-similarity, squared": (
        partial(losses.MultiSimilarityLoss, base=-1.0, **SQUARED),
        partial(direction.multi_similarity, base=-1.0, kind="squared_euclidean"),
    ),
    "multi-similarity, mined": (
        partial(losses.MultiSimilarityLoss, miner=miners.MultiSimilarityMiner(0.1)),
        partial(direction.multi_similarity, epsilon=0.1),
    ),
    "contrastive": (losses.ContrastiveLoss, direction.contrastive),
    "contrastive, squared": (
        partial(losses.ContrastiveLoss, **SQUARED),
        partial(direction.contrastive, positive=0.0, negative=-1.0, kind="squared_euclidean"),
    ),
    "N-pairs": (losses.NPairsLoss, direction.n_pairs),
    "N-pairs, cosine": (
        partial(losses.NPairsLoss, scale=4.0, similarity="cosine"),
        partial(direction.n_pairs, scale=4.0, kind="cosine"),
    ),
}
PROXY_CASES: dict[str, tuple[Callable[..., losses.ProxyLoss], Callable[..., oracles.Terms]]] = {
    "ProxyNCA": (partial(losses.ProxyNCALoss, CLASSES, DIM, scale=3.0), partial(direction.proxy_nca, scale=3.0)),
    "ProxyNCA++": (partial(losses.ProxyNCAPPLoss, CLASSES, DIM), direction.proxy_nca_pp),
    "Proxy-Anchor": (partial(losses.ProxyAnchorLoss, CLASSES, DIM), direction.proxy_anchor),
}
MAKERS: dict[str, Callable[..., nn.Module]] = {name: make for name, (make, _) in (PAIR_CASES | PROXY_CASES).items()}


def regularized(name: str, **options: Any) -> DirectionRegularized:
    torch.manual_seed(0)
    return DirectionRegularized(MAKERS[name](**options)).double()


def in_small_chunks(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(recompute, "LEAST_ROWS", 4)
    patch.setattr(recompute, "BUDGET", {"cpu": 1, "cuda": 1})


@pytest.mark.parametrize("backend", ["dense", "auto", "chunked"])
@loop_over("name", PAIR_CASES)
def test_pair_losses_equal_plain_loops(name: str, backend: str, monkeypatch: pytest.MonkeyPatch):
    in_small_chunks(monkeypatch)
    monkeypatch.setattr(dispatch, "INDEX_FROM", 1)  # for "auto"
    loss = regularized(name, backend=backend)
    for kind in ("balanced", "ragged", "two classes", "one class", "singletons", "one sample"):
        embeddings, labels = make_batch(kind)
        others, their_labels = make_batch("ragged", seed=1)
        for arguments in ((embeddings, labels), (embeddings, labels, others, their_labels % 4)):
            pairs = oracles.batch(*(each.tolist() for each in arguments))
            expected = oracles.reduce(PAIR_CASES[name][1](pairs), loss.loss.reduction, len(labels))
            assert loss(*arguments).item() == pytest.approx(expected, rel=1e-9, abs=1e-9), (kind, len(arguments))


@pytest.mark.parametrize("backend", ["dense", "auto", "chunked"])
@pytest.mark.parametrize("name", PROXY_CASES)
def test_proxy_losses_equal_plain_loops(name: str, backend: str, monkeypatch: pytest.MonkeyPatch):
    in_small_chunks(monkeypatch)
    loss = regularized(name, backend=backend)
    for kind in ("balanced", "ragged", "two classes", "one sample"):
        embeddings, labels = make_batch(kind)
        units = PROXY_CASES[name][1](embeddings.tolist(), labels.tolist(), loss.loss.proxies.tolist())
        assert loss(embeddings, labels).item() == pytest.approx(oracles.reduce(units, "mean", CLASSES), rel=1e-9), kind


@pytest.mark.parametrize("name", MAKERS)
def test_gradients(name: str, monkeypatch: pytest.MonkeyPatch):
    """Finite differences by samples, references and proxies; chunks agree; without γ it is the loss itself."""
    embeddings, labels = make_batch("balanced")
    others, their_labels = make_batch("ragged", seed=1)
    proxies = name in PROXY_CASES
    found = []
    in_small_chunks(monkeypatch)
    for backend in ("dense", "chunked"):
        loss = regularized(name, backend=backend)

        def value(x: Tensor, y: Tensor, loss: nn.Module = loss) -> Tensor:
            if proxies:
                return torch.func.functional_call(loss, {"loss.proxies": y}, (x, labels))
            return loss(x, labels, y, their_labels % 4) + loss(x, labels)

        leaves = [x.detach().clone().requires_grad_() for x in (embeddings, loss.loss.proxies if proxies else others)]
        if backend == "dense":
            assert torch.autograd.gradcheck(value, leaves, atol=1e-5, fast_mode=True)
        result = value(*leaves)
        found.append([result, *torch.autograd.grad(result, leaves)])
    torch.testing.assert_close(found[1], found[0])
    plain = DirectionRegularized(loss.loss, gamma=0.0)
    torch.testing.assert_close(plain(embeddings, labels), loss.loss(embeddings, labels))


def test_positives_are_chosen_without_a_gradient_and_from_the_relation():
    """On paper: A at 0°, B at 60° and C at 90° of class 0, D at 180° of class 1, as seen from A.

    The least similar positive of A is C, at 135°; D lies at 180°: cos 45°.  With C left out it is B, at 120°: cos 60°.
    """
    angles = torch.tensor([0.0, 60.0, 90.0, 180.0], dtype=torch.float64).deg2rad()
    points, labels = torch.stack([angles.cos(), angles.sin()], dim=1), torch.tensor([0, 0, 0, 1])
    loss = DirectionRegularized(losses.ContrastiveLoss(negative_margin=-2.0, reduction="none"), gamma=0.5)
    positive, negative = Labels(labels).masks()
    pull = {2: 0.5 + 1.0, 1: 0.5}  # 1 − cos 60° and 1 − cos 90°
    for least, cosine in ((2, 0.5**0.5), (1, 0.5)):
        positive[0, 2] = least == 2
        value = loss(points, relation=Masks(positive, negative))[0]
        assert value.item() == pytest.approx(pull[least] + 2.0 - 1.0 - 0.5 * cosine)
    triplets = Triplets(torch.tensor([0]), torch.tensor([1]), torch.tensor([3]))
    of_triplet = DirectionRegularized(losses.TripletLoss(2.0), gamma=0.5)(points, relation=triplets)
    assert of_triplet.item() == pytest.approx(-1.0 - 0.5 + 2.0 - 0.5 * 0.5)


@pytest.mark.parametrize("name", ["triplets", "N-pairs", "multi-similarity, mined", "ProxyNCA", "Proxy-Anchor"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_it_is_finite(name: str, dtype: torch.dtype):
    labels = torch.tensor([0, 0, 1, 1])
    for embeddings in (torch.zeros(4, 5), torch.ones(4, 5), torch.eye(4, 5), torch.eye(4, 5).roll(1, 0) * -1):
        leaf = embeddings.to(dtype).requires_grad_()
        regularized(name).float()(leaf, labels).backward()
        assert torch.isfinite(leaf.grad).all()


@pytest.mark.parametrize("similarity", ["cosine", "squared_euclidean", "euclidean"])
def test_directions_between_close_points_in_float32(similarity: str):
    """The hard cases that the term exists for: float32 agrees with float64 where points are a hundredth apart."""
    torch.manual_seed(0)
    points = torch.nn.functional.normalize(torch.randn(1, 64).double() + 0.01 * torch.randn(8, 64).double())
    rows, columns = torch.arange(8)[:, None], torch.arange(8)[None, :]
    for materialized in (False, True):
        found = []
        for each in (points, points.float()):
            loss = losses.TripletLoss(similarity=similarity)
            batch = losses.base.batch_from_embeddings(
                each, torch.arange(8), None, None, None, losses.base.as_similarity(loss.similarity)
            )
            geometry = _Points.of(batch.materialize() if materialized else batch)
            found.append(geometry.cosines(rows, rows.roll(1, 0), columns).double())
        torch.testing.assert_close(found[0], found[1], atol=1e-2, rtol=0)


def test_what_has_no_direction_is_refused():
    for make, kind, sentence in (
        (
            lambda: DirectionRegularized(nn.Linear(2, 2)),
            TypeError,
            "loss must be a pair loss or a loss with proxies, but",
        ),
        (lambda: DirectionRegularized(losses.SNRContrastiveLoss()), ValueError, "but it uses 'snr'"),
        (lambda: DirectionRegularized(losses.QuadrupletLoss()), TypeError, "QuadrupletLoss has a MatrixLoss"),
        (
            lambda: DirectionRegularized(losses.SupConLoss()),
            TypeError,
            "loss must fold negatives separately, but SupConLoss",
        ),
        (
            lambda: DirectionRegularized(losses.ProxyRepulsionLoss(3, 2)),
            TypeError,
            "loss must compare anchors with their negatives in formulas, but ProxyRepulsionLoss does not",
        ),
        (lambda: DirectionRegularized(losses.SoftTripleLoss(3, 2)), TypeError, "centers are pooled"),
        (lambda: DirectionRegularized(losses.NTXentLoss(), gamma=-1.0), ValueError, "gamma must be a number ≥ 0"),
    ):
        with pytest.raises(kind, match=sentence) as caught:
            make()
        assert "\n" not in str(caught.value)
