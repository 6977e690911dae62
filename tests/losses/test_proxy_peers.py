"""Losses with proxies against pytorch-metric-learning in float64, to 1e-10; where we differ, the difference is shown."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from pytorch_metric_learning import losses as pml
from pytorch_metric_learning.distances import DotProductSimilarity
from pytorch_metric_learning.reducers import ClassWeightedReducer, ThresholdReducer

from likewise import losses
from likewise.formula import ClassWeighted, Thresholded
from likewise.testing import loop_over, make_batch

# SphereFace there calls numpy in a way that numpy deprecates
pytestmark = pytest.mark.filterwarnings("ignore:__array_wrap__:DeprecationWarning")

Row = tuple[Callable[[], losses.ProxyLoss], Callable[[], torch.nn.Module]]

ROWS: dict[str, Row] = {
    "normalized-softmax": (
        lambda: losses.NormalizedSoftmaxLoss(10, 5, temperature=0.05),
        lambda: pml.NormalizedSoftmaxLoss(10, 5, temperature=0.05),
    ),
    "normalized-softmax-raw": (  # only proxies are of unit length
        lambda: losses.NormalizedSoftmaxLoss(10, 5, normalize_embeddings=False),
        lambda: pml.NormalizedSoftmaxLoss(10, 5, distance=DotProductSimilarity(normalize_embeddings=False)),
    ),
    "normalized-softmax-class-weighted": (
        lambda: losses.NormalizedSoftmaxLoss(10, 5, reduction=ClassWeighted(torch.arange(10.0))),
        lambda: pml.NormalizedSoftmaxLoss(10, 5, reducer=ClassWeightedReducer(torch.arange(10.0))),
    ),
    "arc-face-thresholded": (
        lambda: losses.ArcFaceLoss(10, 5, reduction=Thresholded(low=20.0)),
        lambda: pml.ArcFaceLoss(10, 5, reducer=ThresholdReducer(low=20.0)),
    ),
    "cos-face": (lambda: losses.CosFaceLoss(10, 5), lambda: pml.CosFaceLoss(10, 5)),
    "arc-face": (lambda: losses.ArcFaceLoss(10, 5), lambda: pml.ArcFaceLoss(10, 5)),
    "arc-face-wide": (
        lambda: losses.ArcFaceLoss(10, 5, margin=80.0, scale=10.0),
        lambda: pml.ArcFaceLoss(10, 5, margin=80.0, scale=10.0),
    ),
    "large-margin-softmax": (lambda: losses.LargeMarginSoftmaxLoss(10, 5), lambda: pml.LargeMarginSoftmaxLoss(10, 5)),
    "sphere-face": (lambda: losses.SphereFaceLoss(10, 5), lambda: pml.SphereFaceLoss(10, 5)),
    "sub-center-arc-face": (
        lambda: losses.SubCenterArcFaceLoss(10, 5, centers=3),
        lambda: pml.SubCenterArcFaceLoss(num_classes=10, embedding_size=5, sub_centers=3),
    ),
    # its regularizer is an argument of its own there; tau is ours
    "soft-triple": (
        lambda: losses.SoftTripleLoss(10, 5, centers=4, tau=0.0),
        lambda: pml.SoftTripleLoss(10, 5, centers_per_class=4),
    ),
    "proxy-anchor": (lambda: losses.ProxyAnchorLoss(10, 5), lambda: pml.ProxyAnchorLoss(10, 5)),
    # what is called ProxyNCA there has the positive in its denominator: ProxyNCA++ with T = 1 / scale
    "proxy-nca-pp": (
        lambda: losses.ProxyNCAPPLoss(10, 5, temperature=1 / 8),
        lambda: pml.ProxyNCALoss(10, 5, softmax_scale=8),
    ),
}


def pair(name: str) -> tuple[losses.ProxyLoss, torch.nn.Module, torch.Tensor]:
    """Both losses with the same proxies, and theirs as a parameter."""
    torch.manual_seed(0)
    ours, theirs = (make().double() for make in ROWS[name])
    (weights,) = theirs.parameters()
    with torch.no_grad():
        weights.copy_(ours.proxies if weights.shape == ours.proxies.shape else ours.proxies.T)
    return ours, theirs, weights


@pytest.mark.parametrize("name", ROWS)
@loop_over("batch", ["balanced", "ragged", "singletons"])
@loop_over("seed", range(3))
def test_equals(name: str, batch: str, seed: int):
    ours, theirs, weights = pair(name)
    embeddings, labels = make_batch(batch, seed=seed)
    leaves = [embeddings.clone().requires_grad_() for _ in range(2)]
    values = ours(leaves[0], labels), theirs(leaves[1], labels)
    torch.testing.assert_close(*values, rtol=1e-10, atol=1e-10)
    of_ours = torch.autograd.grad(values[0], [leaves[0], ours.proxies])
    of_theirs = torch.autograd.grad(values[1], [leaves[1], weights])
    torch.testing.assert_close(of_ours[0], of_theirs[0], rtol=1e-10, atol=1e-10)
    theirs_turned = of_theirs[1] if of_theirs[1].shape == of_ours[1].shape else of_theirs[1].T
    torch.testing.assert_close(of_ours[1], theirs_turned, rtol=1e-10, atol=1e-10)


@loop_over("name", ROWS)
def test_shapes_and_exceptions(name: str):
    """Our proxies are rows, theirs rows or columns; neither takes a batch without labels, or references."""
    ours, theirs, weights = pair(name)
    embeddings, labels = make_batch("ragged")
    assert weights.numel() == ours.proxies.numel()
    assert ours.proxies.shape == (10 * ours.proxies_per_class, 5)
    assert ours.logits(embeddings).shape == theirs.get_logits(embeddings).shape == (len(labels), 10)
    for half in (torch.float16, torch.bfloat16):
        value = ours(embeddings.to(half), labels)
        assert value.dtype == torch.float32
        exact = ours(embeddings.to(half).double(), labels)
        torch.testing.assert_close(value.double(), exact, rtol=1e-4, atol=1e-4)
    for loss in (ours, theirs):
        with pytest.raises((TypeError, ValueError), match=r"labels must be given|labels are required|cannot be None"):
            loss(embeddings, None)
    with pytest.raises(ValueError, match="takes no references or relation"):
        ours(embeddings, labels, embeddings, labels)
    with pytest.raises(ValueError, match="ref_emb is not supported"):
        theirs(embeddings, labels, None, embeddings.clone(), labels)


def length(x: torch.Tensor) -> torch.Tensor:
    return torch.linalg.vector_norm(x, dim=1, keepdim=True)


LOGITS: dict[str, Callable[[losses.ProxyLoss, torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "normalized-softmax": lambda loss, x, s: s / loss.temperature,
    "normalized-softmax-raw": lambda loss, x, s: length(x) * s / loss.temperature,
    "cos-face": lambda loss, x, s: loss.scale * s,
    "arc-face": lambda loss, x, s: loss.scale * s,
    "sphere-face": lambda loss, x, s: loss.scale * length(x) * s,
    "sub-center-arc-face": lambda loss, x, s: loss.scale * s,
    "soft-triple": lambda loss, x, s: s,
    "proxy-anchor": lambda loss, x, s: s,
    "proxy-nca-pp": lambda loss, x, s: -s,  # theirs are distances
}
"""Their logits, from ours, which are never scaled."""


@loop_over("name", LOGITS)
def test_logits(name: str):
    """Ours are similarities without margin, scale and temperature; theirs are scaled where the loss has a softmax."""
    ours, theirs, _ = pair(name)
    embeddings, _ = make_batch("ragged")
    found = ours.logits(embeddings)
    torch.testing.assert_close(
        LOGITS[name](ours, embeddings, found), theirs.get_logits(embeddings), rtol=1e-9, atol=1e-9
    )
    for option in ("margin", "scale", "temperature"):
        if hasattr(ours, option):
            setattr(ours, option, 2)
    torch.testing.assert_close(ours.logits(embeddings), found)
    assert torch.equal(ours.classify(embeddings), found.argmax(dim=1))


@loop_over("threshold", [40.0, 75.0, 120.0])
def test_outliers(threshold: float):
    """The same samples and centers; theirs come class by class, ours ascend."""
    ours, theirs, _ = pair("sub-center-arc-face")
    draw = torch.Generator().manual_seed(0)
    labels = torch.randint(8, (200,), generator=draw)  # two classes have no samples
    embeddings = torch.randn(200, 5, generator=draw, dtype=torch.float64)
    expected, centers = theirs.get_outliers(embeddings, labels, threshold)
    assert torch.equal(ours.find_outliers(embeddings, labels, threshold), expected.sort().values)
    assert 0 < len(expected) < 200
    dominant = ours.dominant_centers(embeddings, labels)
    assert dominant[8:].tolist() == [-1, -1]
    rows = ours.proxies.view(10, 3, 5)[torch.arange(8), dominant[:8]]
    torch.testing.assert_close(rows, centers.T[:8])


def test_proxy_nca_leaves_the_positive_out():
    """Ours is the overview's Eq. 16; adding the positive to the denominator turns one into the other."""
    embeddings, labels = make_batch("ragged")
    ours = losses.ProxyNCALoss(10, 5, scale=8.0, reduction="none").double()
    theirs = pml.ProxyNCALoss(10, 5, softmax_scale=8).double()
    with torch.no_grad():
        theirs.proxies.copy_(ours.proxies)
    contrast = ours(embeddings, labels)
    torch.testing.assert_close(
        torch.nn.functional.softplus(contrast, threshold=50.0).mean(), theirs(embeddings, labels)
    )


def test_labels_from_one_are_an_error_with_advice():
    """CUB's files count from 1; the other library answers with an index error, or uses the wrong proxies."""
    embeddings, _ = make_batch("balanced")
    with pytest.raises(ValueError, match="ids that start at 1 need 1 subtracted"):
        losses.ArcFaceLoss(12, 5)(embeddings, torch.arange(1, 13))
    with pytest.raises(IndexError):
        pml.ArcFaceLoss(12, 5)(embeddings, torch.arange(1, 13))


def test_arc_face_gradient_at_a_cosine_of_one():
    """Theirs has an arc cosine in the way, and its slope at one is infinite."""
    x = torch.tensor([[1.0, 0.0]])
    gradients = []
    for kind in (losses.ArcFaceLoss, pml.ArcFaceLoss):
        loss = kind(2, 2)
        (weights,) = loss.parameters()
        with torch.no_grad():
            weights.copy_(torch.eye(2))
        leaf = x.clone().requires_grad_()
        loss(leaf, torch.tensor([0])).backward()
        gradients.append(leaf.grad)
    assert torch.isfinite(gradients[0]).all()
    assert not torch.isfinite(gradients[1]).all()


@loop_over("batch", ["balanced", "ragged"])
def test_p2s_grad(batch: str):
    """Theirs has the dimension first, columns as proxies, and scales their data to unit length up to 1e-7."""
    ours, theirs = losses.P2SGradLoss(10, 5).double(), pml.P2SGradLoss(5, 10).double()
    with torch.no_grad():
        ours.proxies.copy_(torch.nn.functional.normalize(ours.proxies))
        theirs.weight.copy_(ours.proxies.T)
    embeddings, labels = make_batch(batch)
    leaves = [embeddings.clone().requires_grad_() for _ in range(2)]
    values = ours(leaves[0], labels), theirs(leaves[1], labels)
    torch.testing.assert_close(*values, rtol=1e-6, atol=1e-6)
    of_embeddings = [torch.autograd.grad(value, leaf)[0] for value, leaf in zip(values, leaves, strict=True)]
    torch.testing.assert_close(*of_embeddings, rtol=1e-6, atol=1e-6)
