from __future__ import annotations

import importlib
import math
import warnings
from itertools import combinations

import numpy as np
import pytest
import scipy.stats
import torch

from likewise.formula import unit
from likewise.metrics.geometry import CollapseWarning, geometry

COUNTS = ("edges", "intra", "inter", "spectrum")
MEANS = ("intra_mean", "inter_mean", "alignment", "density_intra", "density_ratio", "uniformity", "density_inter")


def cloud(count: int, width: int, classes: int, noise: float = 1.0, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    centers = torch.randn(classes, width, generator=generator, dtype=torch.float64)
    labels = torch.randint(classes, (count,), generator=generator)
    return centers[labels] + noise * torch.randn(count, width, generator=generator, dtype=torch.float64), labels


def brute_force(embeddings: torch.Tensor, labels: torch.Tensor, bins: int) -> dict[str, object]:
    """Loops over pairs and classes in float64."""
    points = [row / row.norm() for row in embeddings.double()]
    within: list[float] = []
    between: list[float] = []
    squared: dict[bool, list[float]] = {True: [], False: []}
    for i, j in combinations(range(len(points)), 2):
        same = bool(labels[i] == labels[j])
        (within if same else between).append(float(points[i] @ points[j]))
        squared[same].append(float((points[i] - points[j]).square().sum()))
    everything = squared[True] + squared[False]
    spread, directions = [], []
    for label in labels.unique():
        rows = torch.stack([point for point, other in zip(points, labels, strict=True) if other == label])
        directions.append(rows.mean(dim=0) / rows.mean(dim=0).norm())
        if len(rows) > 1:
            spread.append(np.mean([1.0 - float(a @ b) for a, b in combinations(rows, 2)]))
    apart = np.mean([1.0 - float(a @ b) for a, b in combinations(directions, 2)])
    singular = torch.linalg.svdvals(torch.stack(points)).numpy()
    shares = singular / singular.sum()
    principal = torch.linalg.svdvals(torch.stack(points) - torch.stack(points).mean(dim=0)).square()
    return {
        "edges": np.linspace(-1, 1, bins + 1),
        "intra": np.histogram(within, bins, (-1, 1))[0],
        "inter": np.histogram(between, bins, (-1, 1))[0],
        "intra_mean": np.mean(within),
        "inter_mean": np.mean(between),
        "alignment": np.mean(squared[True]),
        "uniformity": math.log(np.mean([math.exp(-2.0 * each) for each in everything])),
        "spectrum": singular,
        "spectral_decay": scipy.stats.entropy(np.full(len(shares), 1.0 / len(shares)), shares),
        "effective_rank": math.exp(scipy.stats.entropy(shares)),
        "density_intra": np.mean(spread),
        "density_inter": apart,
        "density_ratio": np.mean(spread) / apart,
        "variance_share": float(principal[0] / principal.sum()),
        "collapsed": False,
    }


@pytest.mark.parametrize("case", range(12))
def test_against_loops_over_pairs(case: int):
    width = (2, 5, 40)[case % 3]
    embeddings, labels = cloud(30 + case, width, (3, 8, 25)[case // 4], seed=case)
    bins = (1, 7, 100)[case % 3]
    found = geometry(embeddings, labels * 2**33 - 5, bins=bins, memory=(2**28, 20_000)[case % 2])
    expected = brute_force(embeddings, labels, bins)
    assert list(found) == list(expected)
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-9, atol=1e-9, err_msg=name)
    assert found["intra"].dtype == found["inter"].dtype == torch.int64


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_lower_precision(dtype: torch.dtype):
    embeddings, labels = cloud(60, 16, 6)
    embeddings = embeddings.to(dtype)
    found, expected = geometry(embeddings, labels), brute_force(embeddings, labels, 100)
    for name in (*MEANS, "spectrum", "effective_rank", "spectral_decay", "variance_share"):
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-4, atol=1e-5, err_msg=name)
    assert int(found["intra"].sum() + found["inter"].sum()) == 60 * 59 // 2
    assert abs(found["intra"] - torch.from_numpy(expected["intra"])).sum() <= 4


def test_chunks_do_not_matter(monkeypatch: pytest.MonkeyPatch):
    embeddings, labels = cloud(101, 7, 9)
    whole = geometry(embeddings, labels)
    # the package exports a function with the name of the module
    monkeypatch.setattr(importlib.import_module("likewise.metrics.geometry"), "CHUNK_ENTRIES", 30)
    chunks = geometry(embeddings.numpy(), labels.numpy(), memory=1)
    for name, value in whole.items():
        np.testing.assert_allclose(chunks[name], value, rtol=1e-10, atol=1e-12, err_msg=name)


def test_lengths_and_order_do_not_matter():
    embeddings, labels = cloud(50, 7, 9)
    order = torch.randperm(50, generator=torch.Generator().manual_seed(0))
    scaled = embeddings * torch.logspace(-30, 30, 50, dtype=torch.float64)[:, None]
    expected, found = geometry(embeddings, labels), geometry(scaled[order], labels[order])
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-9, atol=1e-9, err_msg=name)


def test_points_on_a_cross_worked_out_on_paper():
    """±e₁ in one class and ±e₂ in another: 2 pairs within at cosine −1, 4 between at cosine 0."""
    points = torch.tensor([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    found = geometry(points, torch.tensor([0, 0, 1, 1]), bins=4)
    assert found["intra"].tolist() == [2, 0, 0, 0]
    assert found["inter"].tolist() == [0, 0, 4, 0]
    assert (found["intra_mean"], found["inter_mean"], found["alignment"]) == (-1.0, 0.0, 4.0)
    assert found["uniformity"] == pytest.approx(math.log((2 * math.exp(-8) + 4 * math.exp(-4)) / 6))
    torch.testing.assert_close(found["spectrum"], torch.full((2,), 2.0**0.5, dtype=torch.float64))
    assert found["spectral_decay"] == pytest.approx(0.0, abs=1e-12)
    assert found["effective_rank"] == pytest.approx(2.0)
    # the classes have a mean of zero, which points nowhere
    assert (found["density_intra"], found["density_inter"], found["density_ratio"]) == (2.0, 1.0, 2.0)
    assert found["variance_share"] == pytest.approx(0.5)


def test_the_last_bin_holds_one():
    found = geometry(torch.ones(3, 5), torch.zeros(3, dtype=torch.int64), bins=10)
    assert found["intra"].tolist() == [0] * 9 + [3]


def values(found: dict[str, object]) -> list[float]:
    numbers = [float(value) for value in found.values() if isinstance(value, int | float)]
    return numbers + [float(each) for name in COUNTS for each in found[name]]


@pytest.mark.parametrize(
    ("embeddings", "labels", "missing"),
    [
        (torch.eye(4), [0, 0, 0, 0], {"inter_mean", "density_inter", "density_ratio"}),
        (torch.eye(4), [0, 1, 2, 3], {"intra_mean", "alignment", "density_intra", "density_ratio"}),
        (torch.ones(1, 3), [5], {*MEANS, "variance_share"}),
        (torch.ones(4, 3), [1, 1, 1, 1], {"inter_mean", "density_inter", "density_ratio", "variance_share"}),
        (
            torch.tensor([[1.0], [-1.0], [1.0], [-1.0]]),
            [0, 1, 2, 3],
            {"intra_mean", "alignment", "density_intra", "density_ratio"},
        ),
        (torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), [0, 0, 1], set()),
        (torch.eye(4) * 1e38, [0, 0, 1, 1], set()),
        (torch.eye(4) * 1e-37, [0, 0, 1, 1], set()),
    ],
    ids=["one class", "singletons", "one sample", "one point", "one dimension", "a zero row", "huge", "tiny"],
)
def test_edges_are_defined(embeddings: torch.Tensor, labels: list[int], missing: set[str]):
    found = geometry(embeddings, torch.tensor(labels))
    assert {name for name, value in found.items() if value is None} == missing
    assert all(math.isfinite(value) for value in values(found))
    assert not found["collapsed"]


def test_all_zero_embeddings_have_collapsed():
    with pytest.warns(CollapseWarning, match="all look alike"):
        found = geometry(torch.zeros(4, 3), torch.tensor([0, 0, 1, 1]))
    assert found["collapsed"]
    assert found["effective_rank"] == 1.0
    assert all(math.isfinite(value) for value in values(found))


def test_a_row_of_zeros_is_far_from_all_others():
    found = geometry(torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), torch.tensor([0, 0, 1]))
    assert found["alignment"] == 1.0
    assert found["uniformity"] == pytest.approx(math.log((2 * math.exp(-2) + math.exp(-4)) / 3), abs=1e-6)


def test_a_spectrum_with_zeros_is_finite():
    """Three of eight dimensions in use: rank three, and the unused ones count as rounding."""
    embeddings = torch.eye(8)[:3].repeat(5, 1)
    found = geometry(embeddings, torch.arange(3).repeat(5))
    assert found["effective_rank"] == pytest.approx(3.0, abs=1e-5)
    assert found["spectral_decay"] == pytest.approx((3 * math.log(3 / 8) + 5 * math.log(2**23 * 3 / 8)) / 8, rel=1e-5)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_on_a_gpu():
    embeddings, labels = cloud(3000, 32, 50)
    expected = geometry(embeddings, labels)
    for found in (geometry(embeddings.cuda(), labels.cuda(), memory=2**20) for _ in range(2)):
        for name, value in expected.items():
            np.testing.assert_allclose(found[name], value, rtol=1e-9, atol=1e-9, err_msg=name)


HEALTHY = {
    "random": cloud(300, 32, 30, 10.0),
    "trained": cloud(300, 32, 30, 0.1),
    "a circle": (torch.stack([torch.arange(60.0).cos(), torch.arange(60.0).sin()], dim=1), torch.arange(60) // 6),
    "two tight classes": (torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]).repeat(10, 1), torch.arange(20) % 2),
    "one tight class": (torch.ones(10, 4), torch.zeros(10, dtype=torch.int64)),
    "a common direction": (cloud(300, 32, 30, 0.3)[0] + 2.0, cloud(300, 32, 30, 0.3)[1]),
    "few samples": cloud(8, 512, 4, 0.5),
}
COLLAPSED = {
    "a point": (cloud(300, 32, 30)[0] * 1e-4 + 1.0, cloud(300, 32, 30)[1]),
    "nearly a point": (cloud(300, 32, 30)[0] * 0.03 + 1.0, cloud(300, 32, 30)[1]),
    "two points": (torch.tensor([[1.0, 0.0], [-1.0, 0.1]])[torch.arange(40) % 2], torch.arange(40) // 4),
    "a line": (torch.linspace(-0.5, 0.5, 40)[:, None] * torch.eye(8)[:1] + torch.eye(8)[1:2], torch.arange(40) // 4),
}


@pytest.mark.parametrize("name", HEALTHY)
def test_healthy_embeddings_are_left_in_peace(name: str):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert geometry(*HEALTHY[name])["collapsed"] is False


@pytest.mark.parametrize("name", COLLAPSED)
def test_collapse_is_noticed(name: str):
    with pytest.warns(CollapseWarning, match="the embeddings have collapsed: ") as caught:
        assert geometry(*COLLAPSED[name])["collapsed"] is True
    assert caught[0].filename == __file__


def test_a_tight_class_is_measured_exactly():
    """Distances of 10⁻⁴, squared 10⁻⁸, drown in float32 products but not in sums of float64."""
    generator = torch.Generator().manual_seed(0)
    points = unit(torch.eye(16)[torch.arange(40) % 4] + 1e-4 * torch.randn(40, 16, generator=generator))
    labels = torch.arange(40) % 4
    expected = brute_force(points, labels, 100)["alignment"]
    assert geometry(points, labels)["alignment"] == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (
            lambda: geometry(torch.zeros(2, 2), torch.zeros(3, dtype=torch.int64)),
            ValueError,
            "labels must have one entry",
        ),
        (
            lambda: geometry(torch.zeros(2), torch.zeros(2, dtype=torch.int64)),
            ValueError,
            r"embeddings must have shape \(n, d\)",
        ),
        (lambda: geometry(torch.zeros(2, 2), torch.zeros(2)), TypeError, "labels must be of an integer dtype"),
        (
            lambda: geometry(torch.eye(2), torch.zeros(2, dtype=torch.int64), bins=0),
            ValueError,
            "bins must be a whole number",
        ),
    ],
)
def test_refusals(call, kind, message):
    with pytest.raises(kind, match=message):
        call()
