"""Similarities: higher is closer, unit vectors, and no NaN at the edges."""

from __future__ import annotations

import math
from functools import partial
from operator import sub
from statistics import pvariance as variance

import pytest
import torch

from likewise import losses
from likewise.formula import (
    SNR,
    Cosine,
    Dot,
    Euclidean,
    Poincare,
    Similarity,
    SquaredEuclidean,
    as_similarity,
    check_values,
    unit,
)
from likewise.formula.similarities import SIMILARITIES
from likewise.testing import SimilarityCase, SimilarityContract
from tests.oracles import losses as oracles


class Halved(SquaredEuclidean):
    """Somebody's own: half of it."""

    def link(self, products, anchor_squares, reference_squares):
        return 0.5 * super().link(products, anchor_squares, reference_squares)


class Shrunk(SquaredEuclidean):
    """Another map of embeddings, under a class that promises unit norms."""

    def prepare(self, embeddings):
        return super().prepare(embeddings) / (1.0 + embeddings.square().sum(dim=1, keepdim=True))


class Shifted(SquaredEuclidean):
    """Unit vectors minus their mean."""

    subtracts_mean = True


def test_a_promise_of_unit_norm_is_not_inherited_by_another_preparation():
    assert [kind.unit_norm for kind in (SquaredEuclidean, Halved, Shrunk, Shifted, Euclidean, Similarity)] == [
        *(True, True, False, False, False, False)
    ]


def test_squared_distances_under_autocast_are_added_up_in_single_precision():
    a = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert SquaredEuclidean()(a).dtype == torch.float32


CASES = [
    *(SimilarityCase(each, partial(oracles.similarity, name), name) for name, each in SIMILARITIES.items()),
    SimilarityCase(
        SquaredEuclidean(normalize=False), lambda a, b: -sum((x - y) ** 2 for x, y in zip(a, b, strict=True))
    ),
    SimilarityCase(Euclidean(normalize=False), lambda a, b: -math.dist(a, b)),
    SimilarityCase(SNR(normalize=False), lambda a, b: -variance(list(map(sub, b, a))) / variance(a)),
    SimilarityCase(
        Poincare(1.0, 0.8, normalize=True), lambda a, b: -oracles.poincare_distance(*unit_of(a, b), 1.0, 0.8)
    ),
    SimilarityCase(Poincare(1.0, 3.0), lambda a, b: -oracles.poincare_distance(a, b, 1.0, 3.0)),
    SimilarityCase(Halved(), lambda a, b: 0.5 * oracles.similarity("squared_euclidean", a, b)),
    SimilarityCase(Shrunk(), lambda a, b: -(math.dist(shrunk(a), shrunk(b)) ** 2)),
    SimilarityCase(Shifted(), partial(oracles.similarity, "squared_euclidean")),
]


def unit_of(*vectors: list[float]) -> list[list[float]]:
    return [oracles.normalized(vector) for vector in vectors]


def shrunk(vector: list[float]) -> list[float]:
    return [entry / (1.0 + oracles.dot(vector, vector)) for entry in oracles.normalized(vector)]


class TestSimilarities(SimilarityContract):
    cases = CASES


def test_unit_vectors():
    rows = torch.tensor([[3.0, 4.0], [0.0, 0.0], [3e30, 4e30], [3e-30, 4e-30]], requires_grad=True)
    units = unit(rows)
    torch.testing.assert_close(units[[0, 2, 3]], torch.tensor([[0.6, 0.8]]).expand(3, 2))
    assert units[1].tolist() == [0.0, 0.0]
    units[:, 0].sum().backward()
    assert torch.isfinite(rows.grad).all()
    assert rows.grad[1].tolist() == [0.0, 0.0]


def test_unit_gradient_once_and_twice():
    rows = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    for read in (True, False):  # norms are read, or each row is divided by a power of two
        with check_values(read):
            assert torch.autograd.gradcheck(unit, (rows,))
            assert torch.autograd.gradgradcheck(unit, (rows,))
            torch.testing.assert_close(unit(rows), torch.nn.functional.normalize(rows))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_unit_vectors_have_the_same_bits(dtype: torch.dtype):
    """Whether norms are read or not, and whatever the scale of a row."""
    rows = torch.randn(40, 7, dtype=dtype, generator=torch.Generator().manual_seed(0))
    expected = unit(rows)
    for scale in (1.0, 2.0**-50, 2.0**50):  # beyond the last two, norms are read and rows are scaled
        for read in (True, False):
            with check_values(read):
                assert torch.equal(unit(rows * scale), expected)


@pytest.mark.filterwarnings("ignore")  # torch.jit is deprecated, and reports that a tensor is read
def test_unit_vectors_in_a_recorded_graph():
    rows, others = torch.tensor([[3.0, 4.0], [0.0, 0.0]]), torch.tensor([[6e30, 8e30], [1.0, 0.0]])
    traced = torch.jit.trace(unit, (rows,))
    torch.testing.assert_close(traced(others), unit(others))
    program = torch.export.export(_Unit(), (rows,))
    torch.testing.assert_close(program.module()(others), unit(others))
    names = {node.target.__name__ for node in program.graph.nodes if node.op == "call_function"}
    assert "view.dtype" not in names  # exporters to ONNX have no such operation


class _Unit(torch.nn.Module):
    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return unit(rows)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("similarity", [Euclidean(), Poincare()])
def test_equal_embeddings_are_exactly_zero_apart_and_have_no_gradient(similarity: Similarity, dtype: torch.dtype):
    rows = torch.randn(1, 64, dtype=dtype).repeat(5, 1).requires_grad_()
    distances = similarity(rows)
    distances.sum().backward()
    assert not distances.any()
    assert not rows.grad.any()


def test_hyperbolic_distances_up_to_the_rim_and_at_any_norm():
    """Near the rim the ball's coordinates round to 1 in float32; at 1e30 squared norms overflow."""
    direction = torch.tensor([[1.0, 0.0], [-1.0, 0.0], [0.0, 1e-30]])
    rows = (torch.tensor([[1e30], [7.0], [1.0]]) * direction).requires_grad_()
    value = Poincare(1.0, 7.0)(rows)
    torch.testing.assert_close(value[0], torch.tensor([0.0, -28.0, -14.0]))
    value.sum().backward()
    assert torch.isfinite(rows.grad).all()


@pytest.mark.parametrize(
    "similarity", [Poincare(), Poincare(1.0, 2.0), Poincare(1.0, 2.3), Poincare(1.0, 5.0), Poincare(4.0, 3.5)]
)
def test_hyperbolic_distances_at_the_rim_are_not_rounded_to_zero(similarity: Poincare):
    """Two points at the rim and an angle between: cosh(√c d) = 1 + sinh²(2√c r)(1 − cos a), whose distance is known."""
    c, r, loss = similarity.curvature, similarity.clip, losses.ContrastiveLoss(0.0, -1e3, similarity=similarity)
    for angle in torch.logspace(-6, 0, 25).tolist():
        rows = (2.0 * r * torch.tensor([[1.0, 0.0], [math.cos(angle), math.sin(angle)]])).requires_grad_()
        # the angle of the rounded entries; √((cosh − 1) / 2) = sinh of half the distance
        angle = math.atan2(*reversed(rows[1].tolist()))
        true = 2.0 / math.sqrt(c) * math.asinh(math.sinh(2.0 * math.sqrt(c) * r) * math.sin(angle / 2.0))
        if true < 0.05 / math.sqrt(c):
            continue
        for value in (-similarity(rows)[0, 1], loss(rows, torch.tensor([0, 0]))):
            assert value.dtype == torch.float32
            assert value.item() == pytest.approx(true, rel=0.2)
            (gradient,) = torch.autograd.grad(value, rows)
            assert gradient.any()
            assert torch.isfinite(gradient).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"curvature": 0.0}, "curvature must be a number > 0, but it is 0.0"),
        ({"clip": float("nan")}, "clip must be a number > 0, but it is nan"),
        (
            {"curvature": 100.0},
            "clip must be at most 0.7 with curvature 100, because float64 does not resolve distances farther out, "
            "but it is 2.3",
        ),
    ],
)
def test_a_ball_that_float64_does_not_resolve_is_refused(options: dict[str, float], message: str):
    with pytest.raises(ValueError, match=f"^Poincare: {message}$"):
        Poincare(**options)


def test_small_distances_do_not_drown():
    """A collapsed batch must feel which way is apart: float32 near a common point, against float64."""
    torch.manual_seed(0)
    rows = (torch.randn(1, 64) + 1e-4 * torch.randn(16, 64)).requires_grad_()
    wide = rows.detach().double().requires_grad_()
    near, true = Euclidean()(rows), Euclidean()(wide)
    torch.testing.assert_close(near.double(), true, rtol=1e-2, atol=1e-7)
    weights = torch.randn(16, 16)
    (near * weights).sum().backward()
    (true * weights).sum().backward()
    assert (rows.grad.double() - wide.grad).norm() < 1e-2 * wide.grad.norm()
    assert Euclidean(normalize=False)(torch.tensor([[1000.0, 0.0], [1000.5, 0.0]]))[0, 1].item() == -0.5


def test_an_anchor_without_signal():
    """All entries alike: the variance that SNR divides by is zero."""
    anchors = torch.ones(1, 3, requires_grad=True)
    value = SNR()(anchors, torch.tensor([[1.0, 2.0, 3.0]]))
    value.sum().backward()
    assert value.item() == 0.0
    assert not anchors.grad.any()


def test_snr_does_not_mind_the_scale():
    rows = torch.tensor([[1.0, -1.0, 0.5], [0.3, 0.2, -0.9]], dtype=torch.float64)
    torch.testing.assert_close(SNR(normalize=False)(1e-9 * rows), SNR(normalize=False)(rows))


def test_distances_of_unit_vectors():
    rows = torch.randn(4, 8, dtype=torch.float64)
    expected = torch.cdist(unit(rows), unit(rows))
    for similarity in (Cosine(), Euclidean(), SquaredEuclidean()):
        torch.testing.assert_close(similarity.distances(similarity(rows)), expected, atol=1e-7, rtol=1e-7)
    for similarity in (Dot(), SNR(), Poincare(), Euclidean(normalize=False), SquaredEuclidean(normalize=False)):
        with pytest.raises(TypeError, match="do not determine Euclidean distances of unit vectors"):
            similarity.distances(rows)


class OneRow(Cosine):
    """A link that returns a row in place of a matrix."""

    def link(self, products, anchor_squares, reference_squares):
        return products[:1]


class Averaged(Cosine):
    """A preparation that returns a row in place of all."""

    def prepare(self, embeddings):
        return super().prepare(embeddings).mean(dim=0, keepdim=True)


@pytest.mark.parametrize("backend", ["dense", "chunked"])
@pytest.mark.parametrize(
    ("similarity", "message"),
    [
        (
            OneRow(),
            r"OneRow.link must return one similarity for each product, of shape \(4, 4\), but the shape is \(1, 4\)",
        ),
        (Averaged(), r"Averaged.prepare must map each of the 4 embeddings to one row, but .* is \(1, 3\)"),
    ],
)
def test_a_wrong_shape_is_not_broadcast(similarity: Similarity, message: str, backend: str):
    with pytest.raises(ValueError, match=message):
        losses.NTXentLoss(similarity=similarity, backend=backend)(torch.randn(4, 3), torch.tensor([0, 0, 1, 1]))


def test_unknown_names_are_refused_with_the_known_ones():
    with pytest.raises(ValueError, match=r"similarity must be one of 'cosine', 'dot', .* but it is 'cosin'"):
        as_similarity("cosin")
