"""Layouts, sprite sheets, charts and words."""

from __future__ import annotations

import base64
import io
import sys

import numpy as np
import pytest
import torch
from PIL import Image
from scipy.spatial.distance import cdist, squareform
from sklearn.manifold import TSNE
from sklearn.manifold._t_sne import _joint_probabilities
from threadpoolctl import threadpool_limits

from likewise.metrics import Interval
from likewise.report.axes import fit_axis, ticks
from likewise.report.charts import Line, histogram, line_chart, scatter, thin
from likewise.report.layout import check_layout, lay_out
from likewise.report.row_charts import Entry, row_chart
from likewise.report.sprites import Sheet, fitting_sheets, sprite_sheets, thumbnail
from likewise.report.tsne import _gradient, fit_tsne
from likewise.report.words import between, duration, percent, short
from likewise.testing import loop_over
from likewise.text import moment
from tests.report.runs import make_part


def decoded(sheet: Sheet) -> Image.Image:
    return Image.open(io.BytesIO(base64.b64decode(sheet.data.split(",")[1])))


def test_tsne_is_the_same_every_time_and_keeps_neighbors():
    part = make_part(classes=15, per_class=8, noise=0.2)
    places, name = lay_out(part.embeddings, "tsne", seed=0)
    assert name == "t-SNE"
    assert places.min() == 0.0
    assert places.max() == 1.0
    with threadpool_limits(2):
        assert np.array_equal(places, lay_out(part.embeddings, "tsne", seed=0)[0])
    far = ((places[:, None] - places) ** 2).sum(axis=2) + 9.0 * np.eye(len(places))
    assert (part.labels[far.argmin(axis=1)] == part.labels).float().mean() > 0.95


def divergence(points: np.ndarray, places: np.ndarray) -> float:
    """The Kullback-Leibler divergence that t-SNE minimizes, with affinities from scikit-learn."""
    p = squareform(_joint_probabilities(cdist(points, points, "sqeuclidean"), 30.0, 0))
    q = 1.0 / (1.0 + cdist(places, places, "sqeuclidean"))
    np.fill_diagonal(q, 0.0)
    return float((p[p > 0.0] * np.log(p[p > 0.0] / (q / q.sum())[p > 0.0])).sum())


def test_tsne_is_as_good_as_that_of_scikit_learn():
    """Its exact gradients and 150 iterations reach the divergence of 1,000 iterations with a tree."""
    points = make_part(classes=15, per_class=20, noise=0.5).embeddings.numpy()
    start = points[:, :2] * 1e-4
    theirs = TSNE(init=start, perplexity=30.0, random_state=0).fit_transform(points)
    assert divergence(points, fit_tsne(points, start)) < 1.02 * divergence(points, theirs)


def test_the_gradient_of_tsne_is_that_of_its_divergence():
    chance = np.random.default_rng(0)
    places, affinities = chance.normal(size=(12, 2)), chance.random((12, 12))
    np.fill_diagonal(affinities, 0.0)
    affinities = (affinities + affinities.T) / (2.0 * affinities.sum())

    def loss(moved: np.ndarray) -> float:
        q = 1.0 / (1.0 + cdist(moved, moved, "sqeuclidean")) - np.eye(12)
        return float((affinities * np.log(np.maximum(affinities, 1e-300) / np.maximum(q / q.sum(), 1e-300))).sum())

    expected = np.zeros_like(places)
    for at in np.ndindex(*places.shape):
        step = np.zeros_like(places)
        step[at] = 1e-5
        expected[at] = (loss(places + step) - loss(places - step)) / 2e-5
    found = _gradient(affinities.astype(np.float32), places.astype(np.float32), 1.0)
    assert np.allclose(found, expected, atol=1e-5)


def test_a_handful_of_points_is_laid_out_by_principal_components():
    """Three points in a plane, whose principal axes are worked out by numpy."""
    points = torch.nn.functional.normalize(torch.tensor([[1.0, 0.2], [0.9, -0.4], [0.1, 1.0]], dtype=torch.float64))
    places, name = lay_out(points, "tsne", seed=0)
    assert name == "principal components"
    centered = (points - points.mean(dim=0)).numpy()
    along = centered @ np.linalg.svd(centered)[2][0]
    expected = (along - along.min()) / np.ptp(along)
    assert np.allclose(places[:, 0], expected) or np.allclose(places[:, 0], 1.0 - expected)


def test_the_layout_of_identical_points_is_finite():
    assert np.isfinite(lay_out(torch.ones(20, 1), "tsne", seed=0)[0]).all()


def test_a_missing_package_is_said(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "umap", None)
    with pytest.raises(ImportError, match="pip install umap-learn"):
        check_layout("umap")


def test_an_unknown_layout_is_refused():
    with pytest.raises(ValueError, match="layout must be one of 'tsne', 'umap', 'pca', but it is 'mds'"):
        check_layout("mds")


def test_a_tile_is_where_the_style_sheet_looks():
    """CSS places an image of c columns so that x% of (c − 1) tiles are to the left."""
    colors = {row: (row * 5 % 256, row * 3 % 256, 90) for row in range(70)}
    sheets, tiles = sprite_sheets({row: Image.new("RGB", (32, 32), c) for row, c in colors.items()}, first=2)
    assert [(sheet.number, sheet.columns, sheet.rows) for sheet in sheets] == [(2, 32, 3)]
    page = decoded(sheets[0])
    assert page.size == (32 * 32, 3 * 32)
    for row, tile in tiles.items():
        left, top = round(tile.x / 100 * 31) * 32, round(tile.y / 100 * 2) * 32
        seen = np.asarray(page.convert("RGB").crop((left + 8, top + 8, left + 24, top + 24)), dtype=float).mean((0, 1))
        assert np.abs(seen - colors[row]).max() < 12


def test_images_that_are_not_square_stand_free():
    small = thumbnail(Image.new("RGB", (200, 100), "red"), 64)
    assert small.size == (64, 32)
    page = decoded(sprite_sheets({0: small}, first=0)[0][0])
    assert page.mode == "RGBA"
    assert page.getpixel((32, 2))[3] == 0
    assert page.getpixel((32, 32))[3] == 255


@loop_over("mode", ["L", "RGB", "RGBA", "P", "1", "LA", "CMYK", "I;16"])
def test_any_mode_of_image_has_a_thumbnail(mode: str):
    assert thumbnail(Image.new(mode, (100, 80)), 64).mode in ("RGB", "RGBA")


def test_thumbnails_fit_their_budget():
    noise = np.random.default_rng(0).integers(0, 256, (40, 96, 96, 3), dtype=np.uint8)
    images = {row: Image.fromarray(pixels) for row, pixels in enumerate(noise)}
    plenty, tight = (fitting_sheets(images, first=0, budget=budget)[0] for budget in (10**6, 60_000))
    assert decoded(plenty[0]).width == 32 * 64
    assert sum(len(sheet.data) for sheet in tight) <= 60_000 < sum(len(sheet.data) for sheet in plenty)


def test_a_chart_on_paper():
    """From (0, 2) to (4, 0) on axes 0…4 and 0…2: from the top left of the field to its bottom right."""
    chart = line_chart("Loss", [Line("loss", [0.0, 4.0], [2.0, 0.0])])
    assert chart is not None
    assert chart.series[0].path == "M46,12 368,202"
    assert [tick.text for tick in chart.x_ticks] == ["0", "1", "2", "3", "4"]
    assert chart.y_ticks[0].at == 202.0
    assert chart.series[0].values[1][2:] == ("4", "0")


def test_what_is_not_finite_is_left_out():
    chart = line_chart("Loss", [Line("loss", [0.0, 1.0, 2.0], [1.0, float("nan"), 3.0])])
    assert chart is not None
    assert len(chart.series[0].values) == 2
    assert line_chart("Rate", [Line("rate", [0.0], [0.0])], log=True) is None


def test_one_point_and_a_flat_line_are_drawn():
    for line in (
        Line("one", [0.0], [5.0]),
        Line("flat", [0.0, 1.0], [0.0, 0.0]),
        Line("flat", [1.0, 2.0], [-3.0, -3.0]),
    ):
        for separate_scales in (False, True):
            chart = line_chart("Loss", [line], separate_scales=separate_scales)
            assert chart is not None
            assert "nan" not in chart.series[0].path


def test_a_long_line_is_thinned_to_means():
    line = Line("loss", [float(x) for x in range(1000)], [float(x % 2) for x in range(1000)])
    short_line = thin(line, 100)
    assert len(short_line.xs) == 100
    assert set(short_line.ys) == {0.5}


@loop_over("low, high", [(0.0, 1.0), (-3.2, 12.7), (1e-6, 3e-6), (5.0, 5.0), (0.0, 0.0), (-1e9, 4.0)])
def test_ticks_are_few_and_go_round(low: float, high: float):
    values, first, last = ticks(low, high, 5)
    assert first <= low <= high <= last
    assert 2 <= len(values) <= 12


def test_the_tallest_histogram_reaches_the_top():
    counts = [("two classes", 7, [5, 5, 0]), ("one class", 0, [0, 0, 8])]
    negative, positive = histogram("s", [-1.0, 0.0, 0.5, 1.0], counts, x_name="cosine").series
    assert " V12 " in positive.path
    assert " V12 " not in negative.path
    assert negative.path.count("V107") == 2  # half as high


def test_a_scatter_has_an_axis_that_fits():
    """From 0.01 to 1 on a logarithmic axis of 42 to 244: 0.1 is in the middle; names are side by side."""
    points = [(0.01, 0.2, ""), (0.1, 0.6, ""), (1.0, None, "failed")]
    chart = scatter("margin", points, color=0, summary="")
    assert [(point.x, point.kind) for point in chart.series[0].points] == [(42, "dot"), (143, "best"), (244, "cross")]
    assert chart.note == "logarithmic"
    named = scatter("optimizer", [("adam", 0.2, ""), ("sgd", 0.2, "")], color=0, summary="")
    assert [tick.text for tick in named.x_ticks] == ["adam", "sgd"]
    assert [point.kind for point in named.series[0].points] == ["best", "dot"]  # the first of equals


def test_bars_begin_at_zero_and_intervals_do_not():
    entries = [Entry("one", 0, 0.5, 0.4, 0.6), Entry("pixels", 0, 0.45, is_baseline=True)]
    bars, intervals = (row_chart("R@1", entries, kind=kind) for kind in ("bars", "intervals"))
    assert [(row.at, row.low, row.high) for row in bars.rows] == [(50.0, 40.0, 60.0), (45.0, None, None)]
    assert [(row.at, row.low, row.high) for row in intervals.rows] == [(50.0, 0.0, 100.0), (25.0, None, None)]
    endless = row_chart("R@1", [Entry("one", 0, 0.5, float("-inf"), float("inf"), "no interval")])
    assert (endless.rows[0].low, endless.rows[0].small) == (None, "no interval")


@loop_over("values", [[0.0], [1.0], [0.99, 1.0], [0.0, 0.001], []])
def test_an_axis_of_fractions_stays_between_0_and_100(values: list[float]):
    chart = row_chart("R@1", [Entry(str(x), 0, x) for x in values])
    assert all(0.0 <= float(tick.text) <= 100.0 for tick in chart.ticks)
    assert all(0.0 <= row.at <= 100.0 for row in chart.rows if row.at is not None)


def test_an_axis_ends_at_its_values_or_at_ticks():
    loose, tight = (fit_axis([0.13, 0.87], 0, 100, about=4, round_ends=each) for each in (True, False))
    assert (loose.low, loose.high, tight.low, tight.high) == (0.0, 1.0, 0.13, 0.87)
    assert [tick.text for tick in tight.ticks] == ["0.2", "0.4", "0.6", "0.8"]


def test_numbers_are_written_plainly():
    assert [short(x) for x in (1.0, 10.0, 100.0, 0.1, 0.001, 1e-4, 2.5e-5, -0.25, 99.96, 123456.0)] == [
        "1", "10", "100", "0.1", "0.001", "1e-4", "2.5e-5", "-0.25", "100", "123,456",
    ]  # fmt: skip
    assert percent(Interval(1.0, 1.0, 1.0, 0.95, 3)) == "100.0"
    assert between(Interval(0.5, float("-inf"), float("inf"), 0.95, 1)) == ""
    assert moment("2026-03-01T14:05:09Z") == "2026-03-01 14:05 UTC"
    assert moment(None) == "None"
    assert duration(3600) == "1 h 0 min"
