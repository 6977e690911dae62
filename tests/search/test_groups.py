"""Near-duplicates against scipy's connected components, and clusters against what was planted."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components

from likewise.search import Index, groups
from tests.search.conftest import units


@pytest.mark.parametrize("threshold", [0.5, 0.8, 0.95, 1.0, -1.0])
@pytest.mark.parametrize("tile", [7, 2048])
def test_groups_are_the_connected_components(make, threshold: float, tile: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(groups, "CHUNK", tile)
    index: Index = make(90, 4)
    index.add(units(90, 4)[:6], [f"copy {row}" for row in range(6)])
    index.remove([1, 17])
    vectors = index.vectors().astype(np.float64)
    scores = np.array([[(a * b).sum() for b in vectors] for a in vectors])
    _, found = connected_components(csr_matrix(scores >= threshold))
    expected = [index.ids[found == number].tolist() for number in np.unique(found) if (found == number).sum() > 1]
    expected.sort(key=lambda group: (-len(group), group[0]))
    if threshold == 1.0:  # a copy is the same vector, whose length is one but for a rounding
        assert all(len(group) == 2 and group[1] - group[0] == 90 for group in index.duplicates(1.0 - 1e-7))
        return
    assert index.duplicates(threshold) == expected


def test_a_chain_is_one_group_and_filters_break_it(tmp_path):
    index = Index.create(tmp_path / "a.index", dim=2)
    angles = np.deg2rad([0, 10, 20, 30, 90])
    index.add(np.stack([np.cos(angles), np.sin(angles)], axis=1), list("abcde"))
    least = float(np.cos(np.deg2rad(11)))
    assert index.duplicates(least) == [[0, 1, 2, 3]]
    assert index.duplicates(least, where="path != 'c'") == [[0, 1]]
    assert index.duplicates(0.999) == []
    for bad in (1.5, "0.9", True, float("nan")):
        with pytest.raises(ValueError, match="threshold must be a similarity from -1 to 1"):
            index.duplicates(bad)  # type: ignore[arg-type]


def test_clusters_are_what_was_planted(tmp_path):
    chance = np.random.default_rng(0)
    owner = np.repeat([0, 1, 2], [30, 10, 20])
    vectors = 5.0 * np.eye(3)[owner] + 0.2 * chance.normal(size=(60, 3))
    index = Index.create(tmp_path / "a.index", dim=3)
    index.add(vectors * chance.uniform(1, 100, (60, 1)), [str(row) for row in range(60)])
    found = index.clusters(3)
    assert found.tolist() == np.array([0, 2, 1])[owner].tolist()  # the largest first
    assert np.array_equal(found, index.clusters(3))
    with pytest.raises(ValueError, match="n must be at most the 60 items, but it is 61"):
        index.clusters(61)
    with pytest.raises(ValueError, match="n must be a whole number ≥ 1"):
        index.clusters(0)
