"""Neighbors, confusions, measurements and what is chosen of them, against loops and by hand."""

from __future__ import annotations

import warnings

import pytest
import torch
from PIL import Image

from likewise.metrics import bootstrap, retrieval
from likewise.report import Part
from likewise.report.measure import measure_part, similarities
from likewise.report.neighbors import confusions, nearest
from likewise.report.selection import choose_points, choose_queries
from likewise.report.view import view
from likewise.testing import loop_over
from tests.report.runs import make_part


def brute_force(part: Part, k: int) -> list[list[int]]:
    found = []
    gallery = [j for j in range(len(part.labels)) if part.is_query is None or not part.is_query[j]]
    for i in range(len(part.labels)):
        if part.is_query is not None and not part.is_query[i]:
            continue
        scores = {
            j: float(torch.nn.functional.cosine_similarity(part.embeddings[i], part.embeddings[j], dim=0))
            for j in gallery
            if j != i
        }
        found.append(sorted(scores, key=lambda j: -scores[j])[:k])
    return found


@pytest.mark.parametrize("roles", [False, True])
def test_neighbors_are_those_of_a_loop(roles: bool, monkeypatch: pytest.MonkeyPatch):
    part = make_part(classes=6, per_class=4, noise=1.5, roles=roles)
    monkeypatch.setattr("likewise.report.neighbors.ENTRIES", 50)  # several blocks
    assert nearest(part, 5).index.tolist() == brute_force(part, 5)


def test_queries_find_the_gallery_alone():
    part = make_part(roles=True)
    assert part.is_query is not None
    assert not part.is_query[nearest(part, 8).index].any()


def test_ties_go_to_the_first_row():
    part = Part("test", torch.ones(6, 3), torch.tensor([0, 0, 1, 1, 2, 2]), ["a", "b", "c"], lambda i: None)
    assert nearest(part, 5).index.tolist()[1] == [0, 2, 3, 4, 5]


def test_the_margin_on_paper():
    points = torch.tensor([[1.0, 0.0], [0.6, 0.8], [0.8, 0.6], [0.0, 1.0]])
    part = Part("test", points, torch.tensor([0, 0, 1, 2]), ["a", "b", "c"], lambda i: None)
    found = nearest(part, 1).margin.tolist()
    assert found[0] == pytest.approx(0.6 - 0.8)
    assert found[1] == pytest.approx(0.6 - 0.96)
    assert found[2] == float("-inf")
    same = Part("test", points, torch.tensor([0, 0, 0, 1]), ["a", "b"], lambda i: None)
    assert nearest(same, 1).margin.tolist() == pytest.approx([0.8 - 0.0, 0.96 - 0.8, 0.96 - 0.6, -torch.inf])


def test_confusions_on_paper():
    """On a circle: 0 (a) and 1 (b) find each other; 2 (b) finds 3 (c), which finds 4 (b), which finds it back."""
    degrees = torch.tensor([0.0, 5.0, 40.0, 46.0, 47.0, 120.0, 121.0])
    points = torch.stack([torch.cos(torch.deg2rad(degrees)), torch.sin(torch.deg2rad(degrees))], dim=1)
    part = Part("test", points, torch.tensor([0, 1, 1, 2, 1, 3, 3]), ["a", "b", "c", "d"], lambda i: None)
    found = confusions(part, nearest(part, 1), 9, 9)
    assert [(each.classes, each.mistakes, each.queries) for each in found] == [((1, 2), 3, 4), ((0, 1), 2, 4)]
    assert [example[:2] for example in found[0].examples] == [(3, 4), (2, 3)]  # and not (4, 3), the same images
    assert [example[:2] for example in found[1].examples] == [(0, 1)]
    assert len(confusions(part, nearest(part, 1), 1, 1)) == 1


def test_numbers_and_intervals_are_those_of_the_metrics():
    part = make_part(noise=1.5)
    found = measure_part(part, seed=5)
    assert found is not None
    alone = retrieval(part.embeddings, part.labels, reduce="none")
    assert found.over == "classes"
    assert found.group_count == 12
    for name in ("R@1", "MAP@R", "mAP"):
        assert found.scores[name] == bootstrap(alone[name], groups=part.labels, seed=5)
    assert "P@1" not in found.scores


def test_roles_are_measured_as_queries_against_gallery():
    part = make_part(noise=1.5, roles=True)
    found = measure_part(part, seed=0)
    q, g = part.queries, part.references
    plain = retrieval(part.embeddings[q], part.labels[q], part.embeddings[g], part.labels[g])
    assert found is not None
    assert found.scores["MAP@R"].mean == pytest.approx(plain["MAP@R"])
    assert set(found.rows.tolist()) == set(q.tolist())


def test_one_class_is_drawn_by_queries():
    part = Part("test", torch.randn(5, 3), torch.zeros(5, dtype=torch.int64), ["a"], lambda i: None)
    found = measure_part(part, seed=0)
    assert found is not None
    assert (found.over, found.group_count) == ("queries", 5)


def test_best_and_worst_are_the_extremes_and_of_different_classes():
    part = make_part(noise=2.5)
    measured = measure_part(part, seed=0)
    assert measured is not None
    margin = nearest(part, 1).margin
    found = choose_queries(part, measured.rows, measured.quality, margin, most=4, seed=0)
    quality = dict(zip(measured.rows.tolist(), measured.quality.tolist(), strict=True))
    assert quality[found["best"][0]] == max(quality.values())
    assert quality[found["worst"][0]] == min(quality.values())
    for rows in found.values():
        assert len({int(part.labels[row]) for row in rows}) == len(rows) == 4
    assert found == choose_queries(part, measured.rows, measured.quality, margin, most=4, seed=0)
    others = choose_queries(part, measured.rows, measured.quality, margin, most=4, seed=1)
    assert found["random"] != others["random"]


@loop_over("classes, per_class", [(5, 1000), (500, 10), (4000, 1), (40, 100)])
def test_the_map_shows_groups(classes: int, per_class: int):
    labels = torch.arange(classes).repeat_interleave(per_class)[torch.randperm(classes * per_class)]
    rows = choose_points(labels, 1000, seed=0)
    assert len(rows) == len(rows.unique()) == 1000
    sizes = labels[rows].unique(return_counts=True)[1]
    assert (sizes >= min(per_class, 20)).sum() >= len(sizes) - 1  # all but the last are as many as can be
    assert rows.equal(choose_points(labels, 1000, seed=0))
    assert not rows.equal(choose_points(labels, 1000, seed=1))


def test_histograms_count_every_pair():
    part = make_part(classes=3, per_class=3, noise=0.1)
    found = similarities(part, seed=0)
    for series in found.chart.series:
        shares = [float(text.rstrip("%")) for _, _, _, text in series.values]
        assert sum(shares) == pytest.approx(100.0, abs=3.0)
    units = torch.nn.functional.normalize(part.embeddings)
    products, same = units @ units.T, part.labels[:, None] == part.labels
    inside = products[same & ~torch.eye(9, dtype=torch.bool)].mean()
    assert float(found.facts[0][1]) == pytest.approx(float(inside), abs=2e-3)
    assert found.note == "All 36 pairs of the 9 images."


def test_large_parts_are_sampled_and_said(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("likewise.report.measure.PAIRS_OF", 20)
    assert similarities(make_part(), seed=0).note == "All 190 pairs of 20 images, chosen at random from the 72."


def test_a_collapse_is_said_and_not_warned_about():
    part = Part("test", torch.ones(8, 3), torch.arange(8) // 2, list("abcd"), lambda i: Image.new("L", (8, 8)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = view(part, layout="pca", seed=0, budget=10**6)
    assert "collapsed" in found.similarities.collapse


def test_each_image_is_asked_for_once():
    asked: list[int] = []
    part = make_part()
    counted = Part(
        part.name, part.embeddings, part.labels, part.class_names, lambda i: asked.append(i) or part.image(i)
    )
    view(counted, layout="pca", seed=0, budget=10**6)
    assert sorted(asked) == list(range(72))


def test_gallery_points_of_the_map_have_neighbors_in_the_gallery():
    part = make_part(noise=0.01, roles=True)
    found = view(part, layout="pca", seed=0, budget=10**6)
    assert all(point[5] == point[6] and point[7] > 0.9 for point in found.map.data["points"])
    assert "24 queries and a gallery of 48" in found.summary


@loop_over(
    "change, sentence",
    [
        ({"embeddings": torch.zeros(4)}, "embeddings must have shape"),
        ({"embeddings": torch.zeros(1, 2), "labels": torch.tensor([0])}, "at least two rows"),
        ({"labels": torch.tensor([0, 1, 2, 3])}, "labels must be indices of the 2 class_names, but one of them is 3"),
        ({"labels": torch.tensor([0, 1, -1, 1])}, "but one of them is -1"),
        ({"is_query": torch.ones(4, dtype=torch.bool)}, "must mark some rows, but not all, as queries, but 4 of 4"),
        ({"is_query": torch.tensor([0, 1, 0, 1])}, "is_query must be booleans"),
    ],
)
def test_bad_parts_are_refused_in_a_sentence(change: dict[str, torch.Tensor], sentence: str):
    given = {"embeddings": torch.randn(4, 3), "labels": torch.tensor([0, 0, 1, 1]), **change}
    with pytest.raises((TypeError, ValueError), match=sentence):
        Part("test", class_names=["a", "b"], image=lambda i: None, **given)
