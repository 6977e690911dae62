"""The map: principal components, kept with the index, and true to it."""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np
import pytest

from likewise.search import Index
from likewise.search.serve import map as maps
from likewise.search.serve.map import lay_out, map_of
from tests.search.conftest import make, units

assert make is not None  # the fixture


def test_places_are_principal_components():
    """Against numpy's singular values; signs and scales are ours."""
    vectors = units(50, 6) * np.array([3, 2, 1, 1, 1, 1], np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    drawn = lay_out(np.arange(50), vectors, "pca")
    centered = vectors.astype(np.float64) - vectors.mean(axis=0)
    scores = np.linalg.svd(centered, full_matrices=False)[0][:, :2]
    for axis in range(2):
        assert abs(np.corrcoef(scores[:, axis], drawn.places[:, axis])[0, 1]) > 1 - 1e-6
    assert drawn.places.min(axis=0).tolist() == pytest.approx([0.0, 0.0], abs=1e-6)
    assert drawn.places.max(axis=0).tolist() == pytest.approx([1.0, 1.0], abs=1e-6)
    np.testing.assert_allclose(drawn.place(vectors[7:9]), drawn.places[7:9], atol=1e-5)


def test_few_and_equal_points():
    assert lay_out(np.zeros(0, np.int64), np.zeros((0, 4), np.float32), "pca").place(units(2, 4)).tolist() == [
        [0.5, 0.5],
        [0.5, 0.5],
    ]
    same = np.repeat(units(1, 4), 3, axis=0)
    assert lay_out(np.arange(3), same, "tsne").places.tolist() == [[0.5, 0.5]] * 3
    assert lay_out(np.arange(3), np.ones((3, 1), np.float32), "pca").places.shape == (3, 2)


def test_it_is_computed_once_and_again_after_a_change(make: Callable[..., Index], monkeypatch: pytest.MonkeyPatch):
    index = make()
    counted: list[int] = []
    real = maps.lay_out
    monkeypatch.setattr(maps, "lay_out", lambda *given: counted.append(1) or real(*given))
    first = map_of(index)
    second = map_of(Index.open(index.folder))
    assert len(counted) == 1
    np.testing.assert_array_equal(first.places, second.places)
    index.remove([3])
    assert 3 not in map_of(index).ids
    assert len(counted) == 2
    (index.folder / "map-pca.npz").write_bytes(b"half a fi")
    map_of(index)
    assert len(counted) == 3
    assert not list(index.folder.glob("*.part"))


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is closed to root")
def test_a_folder_of_somebody_else(make: Callable[..., Index]):
    index = make()
    index.folder.chmod(0o500)
    try:
        assert len(map_of(index).ids) == 60
    finally:
        index.folder.chmod(0o700)


def test_a_sample_of_a_large_collection(make: Callable[..., Index], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(maps, "MOST", 20)
    index = make()
    ids = map_of(index).ids
    assert len(ids) == 20
    assert (ids[0], ids[-1]) == (0, 59)


def test_tsne_places_a_query_among_its_neighbors():
    pytest.importorskip("sklearn")
    centers = units(3, 8)
    vectors = np.repeat(centers, 10, axis=0) + 0.02 * units(30, 8, 1)
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    drawn = lay_out(np.arange(30), vectors, "tsne")
    assert drawn.layout == "tsne"
    groups = drawn.places.reshape(3, 10, 2)
    for group, place in zip(groups, drawn.place(centers), strict=True):
        low, high = group.min(axis=0), group.max(axis=0)
        assert (place >= low - 1e-6).all()
        assert (place <= high + 1e-6).all()
