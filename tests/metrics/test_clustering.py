from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import sklearn.cluster
import sklearn.metrics
import torch

from likewise.formula import unit
from likewise.metrics.clustering import clustering, clustering_scores
from likewise.metrics.kmeans import kmeans
from likewise.testing import loop_over


def brute_force_f1(labels: list[int], clusters: list[int]) -> float:
    right = said = true = 0
    for i, j in combinations(range(len(labels)), 2):
        together, alike = clusters[i] == clusters[j], labels[i] == labels[j]
        right, said, true = right + (together and alike), said + together, true + alike
    if not said and not true:
        return 1.0
    precision, recall = right / max(said, 1), right / max(true, 1)
    return 2.0 * precision * recall / (precision + recall) if right else 0.0


def partitions(case: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(case)
    count = int(torch.randint(1, 40, (1,), generator=generator))
    kinds = torch.randint(1, count + 2, (2,), generator=generator).tolist()
    labels, clusters = (torch.randint(kind, (count,), generator=generator) for kind in kinds)
    if case % 3 == 0:
        clusters = torch.where(torch.rand(count, generator=generator) < 0.7, labels, clusters)
    return labels, clusters


@loop_over("case", range(100))
def test_scores_against_scikit_learn_and_brute_force(case: int):
    labels, clusters = partitions(case)
    found = clustering_scores(labels, clusters)
    pairs = sklearn.metrics.pair_confusion_matrix(labels, clusters)
    assert found["F1"] == pytest.approx(brute_force_f1(labels.tolist(), clusters.tolist()), abs=1e-12)
    together = 2 * pairs[1, 1] + pairs[0, 1] + pairs[1, 0]
    assert found["F1"] == (2 * pairs[1, 1] / together if together else 1.0)
    nmi = sklearn.metrics.normalized_mutual_info_score(labels, clusters)
    ami = sklearn.metrics.adjusted_mutual_info_score(labels, clusters)
    np.testing.assert_allclose([found["NMI"], found["AMI"]], [nmi, ami], atol=1e-9)


def test_scores_of_a_larger_table():
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(300, (5000,), generator=generator) ** 2 // 300
    clusters = torch.where(
        torch.rand(5000, generator=generator) < 0.5, labels, torch.randint(200, (5000,), generator=generator)
    )
    found = clustering_scores(labels, clusters)
    assert found["NMI"] == pytest.approx(sklearn.metrics.normalized_mutual_info_score(labels, clusters), abs=1e-12)
    assert found["AMI"] == pytest.approx(sklearn.metrics.adjusted_mutual_info_score(labels, clusters), abs=1e-9)


def test_scores_worked_out_on_paper():
    """Classes aaabbb in clusters {aa} {abbb}: one pair of a, three of b together; 7 pairs said, 6 pairs true."""
    found = clustering_scores(torch.tensor([0, 0, 0, 1, 1, 1]), torch.tensor([0, 0, 1, 1, 1, 1]))
    assert found["F1"] == 2 * 4 / (7 + 6)
    information = (2 * np.log2(2) + 1 * np.log2(0.5) + 3 * np.log2(1.5)) / 6
    entropy = -(np.log2(1 / 3) / 3 + 2 * np.log2(2 / 3) / 3)
    assert found["NMI"] == pytest.approx(information / ((1 + entropy) / 2), abs=1e-12)


@loop_over("dtype", [torch.uint8, torch.int8, torch.int32, torch.int64])
def test_ids_do_not_matter(dtype: torch.dtype):
    labels, clusters = partitions(12)
    expected = pytest.approx(clustering_scores(labels, clusters), abs=1e-12)
    assert clustering_scores(labels.to(dtype), clusters.to(dtype)) == expected
    # ids that float32 cannot tell apart, negative ones, and the ends of int64
    assert clustering_scores(labels + 2**24, -clusters - 2**40) == expected
    ends = torch.where(clusters == 0, torch.iinfo(torch.int64).min, clusters)
    assert clustering_scores(labels.numpy(), ends.numpy()) == expected


def test_many_samples_do_not_overflow():
    """Two classes of 100,000: 10¹⁰ pairs, more than 32 bits."""
    labels = torch.arange(200_000) // 100_000
    clusters = torch.zeros_like(labels)
    pairs = 100_000 * 99_999 // 2
    expected = 2 * (2 * pairs) / (2 * pairs + 200_000 * 199_999 // 2)
    assert clustering_scores(labels, clusters) == {"NMI": 0.0, "AMI": 0.0, "F1": expected}


one, alone, halves = torch.zeros(6, dtype=torch.int64), torch.arange(6), torch.arange(6) // 3


@pytest.mark.parametrize(
    ("labels", "clusters", "expected"),
    [
        (one, one, (1.0, 1.0, 1.0)),
        (alone, alone, (1.0, 1.0, 1.0)),
        (halves, 1 - halves, (1.0, 1.0, 1.0)),
        (one[:1], one[:1], (1.0, 1.0, 1.0)),
        (one, halves, (0.0, 0.0, 4 / 7)),
        (halves, one, (0.0, 0.0, 4 / 7)),
        (one, alone, (0.0, 0.0, 0.0)),
        (alone, one, (0.0, 0.0, 0.0)),
    ],
)
def test_edges_are_defined(labels, clusters, expected):
    found = clustering_scores(labels, clusters)
    assert tuple(found.values()) == pytest.approx(expected, abs=1e-12)


def blobs(count: int, width: int, classes: int, noise: float, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    centers = torch.randn(classes, width, generator=generator)
    labels = torch.arange(count) % classes
    return centers[labels] + noise * torch.randn(count, width, generator=generator), labels


def test_clustering_finds_what_is_there():
    embeddings, labels = blobs(200, 16, 10, 0.05)
    assert clustering(embeddings, labels - 5) == {"NMI": 1.0, "AMI": 1.0, "F1": 1.0}
    assert clustering(embeddings.numpy(), labels.numpy()) == clustering(embeddings, labels)
    assert clustering(embeddings.half(), labels)["F1"] == 1.0


def test_clustering_is_about_what_scikit_learn_finds():
    embeddings, labels = blobs(600, 32, 20, 1.0)
    ours = np.mean([clustering(embeddings, labels, seed)["NMI"] for seed in range(5)])
    points = unit(embeddings).numpy()
    theirs = [
        sklearn.metrics.normalized_mutual_info_score(
            labels, sklearn.cluster.KMeans(20, n_init=1, random_state=seed).fit_predict(points)
        )
        for seed in range(5)
    ]
    assert ours == pytest.approx(np.mean(theirs), abs=0.03)


def test_lengths_matter_only_where_asked():
    """Two classes that differ in length alone: no direction tells them apart."""
    direction = unit(torch.randn(40, 3, generator=torch.Generator().manual_seed(0)) * 0.01 + 1.0)
    labels = torch.arange(40) % 2
    embeddings = direction * (1.0 + 9.0 * labels[:, None])
    assert clustering(embeddings, labels, normalize=False)["F1"] == 1.0
    assert clustering(embeddings, labels)["AMI"] < 0.5


def test_clustering_of_degenerate_embeddings():
    labels = torch.arange(6) // 2
    for embeddings in (torch.zeros(6, 3), torch.ones(6, 3)):
        assert clustering(embeddings, labels) == {"NMI": 0.0, "AMI": 0.0, "F1": 2 * 3 / (15 + 3)}
    distinct = torch.randn(6, 3, generator=torch.Generator().manual_seed(0))
    assert clustering(distinct, alone) == {"NMI": 1.0, "AMI": 1.0, "F1": 1.0}
    assert clustering(distinct, one) == {"NMI": 1.0, "AMI": 1.0, "F1": 1.0}


# k-means itself


def inertia_of(points: torch.Tensor, centers: torch.Tensor, assignments: torch.Tensor) -> float:
    return float((points.double() - centers.double()[assignments]).square().sum())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_kmeans_stops_where_lloyd_stops(dtype: torch.dtype):
    """Every point with its nearest center, every center the mean of its points."""
    points = blobs(500, 8, 12, 1.0)[0].to(dtype) + 3.0
    found = kmeans(points, 12)
    assert found.converged
    assert torch.equal(torch.cdist(points, found.centers).argmin(dim=1), found.assignments)
    means = torch.stack([points[found.assignments == each].mean(dim=0) for each in range(12)])
    torch.testing.assert_close(found.centers, means, rtol=1e-5, atol=1e-5)
    assert found.inertia == pytest.approx(inertia_of(points, means, found.assignments), rel=1e-5)


def test_kmeans_is_as_good_as_scikit_learns():
    points = unit(blobs(1500, 32, 60, 1.0)[0])
    ours = np.mean([kmeans(points, 60, seed=seed).inertia for seed in range(5)])
    theirs = np.mean(
        [sklearn.cluster.KMeans(60, n_init=1, random_state=seed).fit(points.numpy()).inertia_ for seed in range(5)]
    )
    assert ours <= 1.02 * theirs


def test_kmeans_finds_many_clusters_in_rounds():
    """Far apart, so that every cluster must get its seed: 300 of 3 points each."""
    points, labels = blobs(900, 16, 300, 0.01)
    assert clustering_scores(labels, kmeans(points, 300).assignments)["F1"] > 0.99


def test_kmeans_is_deterministic_and_leaves_the_global_generator_alone():
    points = blobs(300, 8, 10, 2.0)[0]
    before = torch.get_rng_state()
    found = [kmeans(points, 30, seed=seed) for seed in (5, 5, 6)]
    assert torch.equal(before, torch.get_rng_state())
    assert torch.equal(found[0].assignments, found[1].assignments)
    assert torch.equal(found[0].centers, found[1].centers)
    assert found[0].inertia == found[1].inertia
    assert not torch.equal(found[0].assignments, found[2].assignments)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_kmeans_on_a_gpu_is_deterministic():
    points = unit(blobs(6000, 128, 100, 2.0)[0]).cuda()
    torch.use_deterministic_algorithms(True)
    try:
        found = [kmeans(points, 100) for _ in range(3)]
    finally:
        torch.use_deterministic_algorithms(False)
    assert all(torch.equal(each.centers, found[0].centers) for each in found)
    assert all(torch.equal(each.assignments, found[0].assignments) for each in found)
    assert found[0].centers.is_cuda
    assert found[0].inertia == pytest.approx(kmeans(points.cpu(), 100).inertia, rel=0.02)


def test_chunks_do_not_matter():
    points = blobs(301, 8, 10, 2.0)[0].double()
    whole = kmeans(points, 30)
    small = kmeans(points, 30, memory=10_000)
    assert torch.equal(whole.assignments, small.assignments)
    assert whole.inertia == pytest.approx(small.inertia, rel=1e-12)


@pytest.mark.parametrize("clusters", [1, 3, 4, 10, 20])
def test_duplicates_neither_loop_nor_break(clusters: int):
    points = torch.tensor([[0.1, 0.2], [0.3, 0.7], [5.0, 5.1]]).repeat(7, 1)[:20]
    found = kmeans(points, clusters)
    assert found.converged
    assert found.iterations < 20
    assert found.centers.isfinite().all()
    assert len(found.assignments.unique()) == min(clusters, 3)
    assert found.inertia == pytest.approx(0.0, abs=1e-9) if clusters >= 3 else found.inertia > 1.0


def test_an_empty_cluster_takes_the_farthest_point():
    """Centers 0, 1 and one that is far from all points: the farthest point, 9, is 4.5 from the mean of 0 and 9."""
    from likewise.metrics.kmeans import _Points, _update_centers

    points = torch.tensor([[0.0], [9.0], [1.0]])
    centers = torch.tensor([[4.0], [1.0], [-50.0]])
    moved = _update_centers(_Points(points, 2**20), torch.tensor([0, 0, 1]), centers)
    # 0 and 9 are equally far, the first of them moves out; its former cluster is left with 9
    assert moved.tolist() == [[9.0], [1.0], [0.0]]


def test_as_many_clusters_as_points():
    points = torch.randn(50, 4, generator=torch.Generator().manual_seed(0))
    found = kmeans(points, 50)
    assert sorted(found.assignments.tolist()) == list(range(50))
    assert found.inertia == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("factor", [1e-30, 1e30])
def test_no_scale_breaks_kmeans(factor: float):
    points = blobs(100, 4, 5, 0.1)[0]
    expected, found = kmeans(points, 5), kmeans(points * factor, 5)
    assert torch.equal(expected.assignments, found.assignments)
    assert found.inertia == pytest.approx(expected.inertia * factor**2, rel=1e-4)


def test_a_common_shift_does_not_drown_the_clusters():
    points, labels = blobs(100, 4, 5, 0.01)
    assert clustering_scores(labels, kmeans(points + 1000.0, 5).assignments)["F1"] == 1.0


def test_autocast_and_gradients_do_not_matter():
    points = blobs(100, 4, 5, 0.5)[0]
    expected = kmeans(points, 5)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = kmeans(points.requires_grad_(), 5)
    assert torch.equal(found.assignments, expected.assignments)
    assert found.centers.dtype == torch.float32
    assert not found.centers.requires_grad


def test_iterations_are_limited():
    points = torch.rand(500, 2, generator=torch.Generator().manual_seed(0))
    found = kmeans(points, 20, iterations=1)
    assert (found.iterations, found.converged) == (1, False)
    assert torch.equal(torch.cdist(points, found.centers).argmin(dim=1), found.assignments)


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: kmeans(torch.zeros(3, 2), 4), ValueError, "clusters must be at most the 3 embeddings, but it is 4"),
        (lambda: kmeans(torch.zeros(3, 2), 0), ValueError, "clusters must be a whole number ≥ 1, but it is 0"),
        (lambda: kmeans(torch.full((3, 2), torch.inf), 1), ValueError, "embeddings must be finite, but row 0"),
        (lambda: kmeans(torch.zeros(3, 2), 1, seed=-1), ValueError, "seed must be a whole number ≥ 0, but it is -1"),
        (
            lambda: clustering(torch.zeros(3, 2), torch.zeros(2, dtype=torch.int64)),
            ValueError,
            "labels must have one entry",
        ),
        (lambda: clustering_scores(one, one[:2]), ValueError, "clusters must have one entry for each of the 6 labels"),
        (lambda: clustering_scores(one[:0], one[:0]), ValueError, "labels must have at least one entry"),
        (lambda: clustering_scores(one.float(), one), TypeError, "labels must be of an integer dtype"),
    ],
)
def test_refusals(call, kind, message):
    with pytest.raises(kind, match=message):
        call()
