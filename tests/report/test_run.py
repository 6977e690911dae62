"""The report of a run: what it says, and that a reader can use it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from likewise.data import Glyphs
from likewise.metrics import Interval
from likewise.report import Compared, Part, write_report
from likewise.report.curves import training_charts, weight_charts, weights_note
from likewise.report.record import differences, read_run
from tests.report.browser import Browser
from tests.report.pages import text_of, use, without_time
from tests.report.runs import lines, make_part, make_run, open_test


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return make_run(tmp_path / "run")


def test_the_whole_page(run: Path):
    open_test(run)
    parts = [make_part("validation", seed=1), make_part("test", noise=1.2)]
    page = write_report(run, parts, baselines={"raw pixels": {"R@1": 0.25}}, layout="pca").read_text()
    text = text_of(page)
    assert "RAWLoss with convnet on Glyphs" in text
    assert re.search(
        r"On test, the nearest neighbor has the right class for [\d.]+% of 72 queries \(95% interval", text
    )
    assert re.search(r"[\d.]+ points (above|below) raw pixels\.", text)
    assert "over the 12 classes of test, the 12 classes of validation" in text
    assert "The test set was opened once, after training had ended." in text
    assert "the final number" in text
    assert "likewise train --config recipe.yaml --out 'runs/a b'" in text
    assert "class_path: RAWLoss" in text
    assert "torch 2.13.0" in text
    assert "a cpu" in text
    for kind in ("Best", "Worst", "Random"):
        assert f"{kind} queries" in text


def test_another_seed_gives_another_page(run: Path, tmp_path: Path):
    pages = [
        without_time(write_report(run, [make_part(noise=1.0)], seed=seed, out=tmp_path / "page.html").read_text())
        for seed in (0, 0, 1)
    ]
    assert pages[0] == pages[1]
    assert pages[0] != pages[2]


def test_an_empty_folder_is_said_in_words(tmp_path: Path):
    text = text_of(write_report(tmp_path).read_text())
    for sentence in (
        "Nothing has been measured yet.",
        "The test set was never opened.",
        "There are no curves: nothing has been recorded yet.",
        "run.yaml is missing",
        "The command that reproduces the run is not recorded.",
        "No part was embedded, so there are no retrieval grids",
    ):
        assert sentence in text


def test_a_run_without_parts_shows_its_validation(run: Path):
    text = text_of(write_report(run).read_text())
    assert "On validation, R@1 is 70.0% and MAP@R is 42.0% at the best epoch, 4" in text
    assert "Training finished after 4 epochs, 120 steps, 1 min 15 s." in text


def test_opening_before_the_end_is_loud(run: Path):
    open_test(run, finished=False)
    open_test(run)
    page = write_report(run, [make_part()], layout="pca").read_text()
    assert page.count("The test set was opened once before training had ended") == 2  # at the top and at the record
    assert 'role="alert"' in page
    assert "opened twice" in text_of(page)


def test_test_numbers_without_an_opening_are_loud(run: Path):
    text = text_of(write_report(run, [make_part("test")], layout="pca").read_text())
    assert "no opening of the test set is recorded" in text
    text = text_of(write_report(run, [make_part("validation")], layout="pca").read_text())
    assert "no opening of the test set is recorded" not in text


def test_an_unfinished_and_a_torn_record(tmp_path: Path):
    run = make_run(tmp_path / "run", finished=False)
    with (run / "metrics.jsonl").open("a") as file:
        file.write('{"kind": "train", "step": 150, "ep')
    text = text_of(write_report(run).read_text())
    assert "Training has not ended: the last record is of epoch 4." in text
    assert "1 line of metrics.jsonl could not be read" in text


@pytest.mark.parametrize(("reason", "words"), [("collapsed", "embeddings collapsed"), ("not finite", "was not finite")])
def test_a_training_that_went_wrong_is_loud(tmp_path: Path, reason: str, words: str):
    run = make_run(tmp_path / "run", finished=False)
    with (run / "metrics.jsonl").open("a") as file:
        file.write(f'{{"kind": "end", "epoch": 2.0, "reason": "{reason}", "message": "See batch.pt."}}\n')
    page = write_report(run).read_text()
    assert words in text_of(page)
    assert "See batch.pt." in text_of(page)
    assert 'class="alarm"' in page


def test_records_of_any_shape_do_no_harm(tmp_path: Path):
    """What other versions may have written: missing keys, other types."""
    run = tmp_path / "run"
    run.mkdir()
    (run / "run.yaml").write_text("config: null\ncreated: 2026-03-01\nversions: [1]\ndata: null\nloss: null\n")
    lines(run / "metrics.jsonl", [{"kind": "train"}, {"kind": "val", "epoch": None}, {"kind": "end"}, {}])
    lines(run / "openings.jsonl", [{}])
    lines(run / "evaluations.jsonl", [{}, {"metrics": {"R@1": 0.5}}])
    text = text_of(write_report(run).read_text())
    assert "The run was started from Python" in text
    (run / "run.yaml").write_text("{")
    assert "run.yaml cannot be read as YAML." in text_of(write_report(run).read_text())


def test_runs_side_by_side(tmp_path: Path):
    ours, theirs = make_run(tmp_path / "ours"), make_run(tmp_path / "theirs", loss="TripletLoss()", scale=50.0)
    score = {"R@1": Interval(0.61, 0.58, 0.64, 0.95, 12), "MAP@R": Interval(0.3, 0.28, 0.33, 0.95, 12)}
    compared = [
        Compared("raw", score, ours),
        Compared("triplet", {"R@1": 0.5}, theirs),
        Compared("paper", {"R@1": 0.7}),
    ]
    page = write_report(ours, [make_part()], comparison=compared, layout="pca").read_text()
    text = text_of(page)
    assert "3 runs on test, in the given order, not ranked." in text
    assert "58.0–64.0" in text
    assert "What differs between the runs: 2 settings" in text
    assert "The charts show 2 runs, one color each." in text
    assert text.count("this run") == 1
    charts = training_charts([("raw", 0, read_run(ours)), ("triplet", 1, read_run(theirs))])
    assert [chart.title for chart in charts][:3] == ["Loss", "Validation MAP@R", "Validation R@1"]
    assert all(len(chart.series) == 2 for chart in charts)
    assert charts[0].series[0].path == charts[0].series[1].path  # the same shape, on separate scales
    assert charts[0].series[1].values[0][3] == "50"
    assert [line.name for line in charts[3].series] == ["all runs: trunk, head", "all runs: proxies"]


def looks(folder: Path, *, beside: str | None = None, below: float = 0.0, anchors: int = 8) -> Path:
    """The lines of a recorder, added to a run's record: the weight moves to fewer and fewer pairs."""
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    for step in (1, 60, 120):
        share = step / 120
        row = {"kind": "lens", "step": step, "epoch": step / 30, "samples": 8, "anchors": anchors, "seconds": 0.25}
        row |= {"positives": 8, "negatives": 48, "zero_positives": 0.0, "zero_negatives": share, "below_zero": below}
        row |= {"weight_positives": 1.0, "weight_negatives": 3.0, "heaviest_1": 0.2, "heaviest_10": 0.5 + share / 2}
        row |= {
            "half": round(30 - 25 * share),
            "gradient": 10.0 / step,
            "classes": {"quantiles": [1, 2, 3, 4, 5.0 / step]},
        }
        row |= {} if beside is None else {"compare_with": beside, "agreement": -share, "ratio": 2.0}
        rows.insert(-1, row)
    lines(folder / "metrics.jsonl", rows)
    return folder


def test_weights_are_shown_where_they_were_recorded(run: Path):
    assert "Weights" not in text_of(write_report(run).read_text())
    text = text_of(write_report(looks(run, beside="NTXentLoss")).read_text())
    assert "3 steps recorded, in 1.0% of the time." in text
    charts = {chart.title: chart for chart in weight_charts([("this run", 0, read_run(run))])}
    assert list(charts) == [
        "Pairs without weight",
        "Weight of the heaviest pairs",
        "Weight on positives",
        "Pairs that carry half of the weight",
        "Gradient",
        "Agreement",
    ]
    assert charts["Pairs without weight"].summary == (
        "Pairs without weight by epoch. positives: from 0.0% to 0.0%. negatives: from 0.8% to 100.0%."
    )
    assert charts["Weight on positives"].summary == "Weight on positives by epoch. positives: from 25.0% to 25.0%."
    assert charts["Pairs that carry half of the weight"].note == "of 56"
    assert (
        charts["Pairs that carry half of the weight"].summary
        == "Pairs that carry half of the weight by epoch. pairs: from 30 to 5."
    )
    gradient = charts["Gradient"]
    assert [line.name for line in gradient.series][1:] == ["largest class", "median class", "all classes, NTXentLoss"]
    assert gradient.note == "norm of the tangential gradient, logarithmic"
    assert [line.values[0][3] for line in gradient.series] == ["10", "5", "3", "20"]
    assert charts["Agreement"].note == "cosine with the gradient of NTXentLoss"
    assert charts["Agreement"].y_ticks[0].text == "-1"
    assert all(title in text for title in charts)


def test_weights_of_several_runs(run: Path, tmp_path: Path):
    looks(run, below=0.1, anchors=4)
    other, without = looks(make_run(tmp_path / "other")), make_run(tmp_path / "without")
    runs = [(folder.name, n, read_run(folder)) for n, folder in enumerate((run, other, without))]
    charts = {chart.title: chart for chart in weight_charts(runs)}
    assert "Positives without weight" in charts
    assert "Weight of the heaviest 10%" in charts
    assert [line.name for line in charts["Pairs of negative weight"].series] == ["run", "other"]
    assert all(len(chart.series) == 2 for chart in charts.values())
    assert (
        weights_note(runs)
        == "6 steps recorded, in 1.0% of the time; 4 of 8 anchors are used as a sample of each batch."
    )
    assert weights_note([]) == ""


def test_differences_leave_out_what_always_differs():
    one = {"created": "now", "command": "x", "config": {"out": "a", "train": {"epochs": 3}}, "loss": "A"}
    two = {"created": "then", "command": "y", "config": {"out": "b", "train": {"epochs": 4}}, "loss": "A"}
    assert differences({"one": one, "two": two}) == [("config.train.epochs", ["3", "4"])]


def test_a_part_with_nothing_to_find(run: Path):
    part = Part("odd", torch.randn(4, 3), torch.arange(4), list("abcd"), lambda i: Image.new("L", (8, 8)))
    text = text_of(write_report(run, [part], layout="pca").read_text())
    assert "Every class of odd has only one image" in text
    assert "there is nothing to retrieve" in text


def test_queries_and_gallery(run: Path):
    text = text_of(write_report(run, [make_part(roles=True)], layout="pca").read_text())
    assert "nearest neighbors in the gallery" in text
    assert "24 queries and a gallery of 48" in text


def test_bad_arguments_are_refused_in_a_sentence(run: Path):
    with pytest.raises(ValueError, match="folder must be a run folder, but there is no folder"):
        write_report(run / "elsewhere")
    with pytest.raises(ValueError, match="parts must have different names, but they are 'test', 'test'"):
        write_report(run, [make_part(), make_part()], layout="pca")
    with pytest.raises(ValueError, match="seed must be a whole number"):
        write_report(run, seed=-1)
    with pytest.raises(ValueError, match="layout must be one of"):
        write_report(run, [make_part()], layout="mds")


@pytest.mark.slow
def test_five_thousand_images_stay_below_ten_megabytes(run: Path):
    """The worst case: noise, which no encoder makes small."""
    labels = torch.arange(5000) // 10
    points = torch.nn.functional.one_hot(labels).float() + 0.05 * torch.randn(5000, 500)
    noise = np.random.default_rng(0).integers(0, 256, (5100, 96, 3), dtype=np.uint8)

    def image(row: int) -> Image.Image:
        return Image.fromarray(noise[row : row + 96])

    page = write_report(run, [Part("test", points, labels, [f"class {n}" for n in range(500)], image)], layout="pca")
    assert page.stat().st_size < 10_000_000
    said = "1,000 of the 5,000 images are on the map, of 100 classes, chosen at random; 4,000 are not shown."
    assert said in text_of(page.read_text())


# ---- in a browser

SCRIPT = """
  const inside = (box, field) => box.left >= field.left && box.right <= field.right && box.top >= field.top && box.bottom <= field.bottom;
  const point = (svg, x, y, type) => {
    const box = svg.getBoundingClientRect();
    const view = svg.viewBox.baseVal;
    const at = { clientX: box.left + (x / view.width) * box.width, clientY: box.top + (y / view.height) * box.height };
    svg.dispatchEvent(new PointerEvent(type, { ...at, pointerType: "mouse", bubbles: true }));
  };

  const panels = () => [...document.querySelectorAll("#retrieval-0 .panel")].map((panel) => !panel.hidden);
  seen.panels = [panels()];
  $("#tab-0-worst").click();
  seen.panels.push(panels());
  key($("#tab-0-worst"), "ArrowRight");
  seen.panels.push(panels());
  const thumb = $("#grid-0-random .found .thumb");
  seen.thumb = [thumb.getBoundingClientRect().width, getComputedStyle(thumb).backgroundImage.slice(0, 20)];
  const right = $("#retrieval-0 .right .thumb"), wrong = $("#retrieval-0 .wrong .thumb");
  seen.frames = [right, wrong].map((each) => getComputedStyle(each).outlineColor);

  const map = $(".map svg"), tip = $(".map .tip");
  const data = JSON.parse($("#map-data-0").textContent);
  seen.hidden = tip.hidden;
  const last = data.points.reduce((a, b) => (b[0] > a[0] ? b : a));
  point(map, last[0], last[1], "pointermove");
  const style = getComputedStyle(tip.querySelector(".thumb"));
  seen.tip = { hidden: tip.hidden, name: tip.querySelector("strong").textContent, expected: data.names[last[5]],
    nearest: tip.querySelector(".says").textContent, other: data.names[last[6]],
    image: style.backgroundImage.slice(0, 20), position: style.backgroundPosition,
    expectedPosition: `${last[3]}% ${last[4]}%`,
    inside: inside(tip.getBoundingClientRect(), map.getBoundingClientRect()),
    same: document.querySelectorAll(".map g.same").length };
  point(map, last[0], last[1], "pointerleave");
  seen.left = tip.hidden;
  map.focus();
  key(map, "ArrowRight");
  const first = tip.querySelector("strong").textContent + map.querySelector(".cursor").getAttribute("cx");
  key(map, "ArrowRight");
  key(map, "ArrowDown");
  seen.walked = first !== tip.querySelector("strong").textContent + map.querySelector(".cursor").getAttribute("cx");
  key(map, "Escape");
  seen.escaped = tip.hidden;
  const fill = (selector) => getComputedStyle(map.querySelector(selector)).fill;
  const before = fill("g circle:not(.m)");
  $("[data-by=right]").click();
  seen.colors = [before !== fill("g circle:not(.m)"), fill("g circle:not(.m)") !== fill("g circle.m")];

  const chart = $("#training .chart");
  point(chart.querySelector("svg"), 360, 100, "pointermove");
  seen.readout = chart.querySelector(".readout").textContent;
  const histogram = $("#similarities-0 .chart");
  point(histogram.querySelector("svg"), 200, 100, "pointermove");
  seen.bar = histogram.querySelector(".readout").textContent;
"""


@pytest.fixture(scope="module")
def glyph_page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Glyphs embedded by their raw pixels: some neighbors are right and some wrong."""
    folder = tmp_path_factory.mktemp("report")
    run, other = make_run(folder / "run"), make_run(folder / "other", loss="TripletLoss()")
    open_test(run)
    glyphs = Glyphs("test", images_per_class=5).of_classes(range(0, 576, 12))
    images = [glyphs.image(row) for row in range(len(glyphs))]
    pixels = torch.from_numpy(np.stack([np.asarray(image.convert("L")) for image in images])).flatten(1).float()
    part = Part("test", pixels - pixels.mean(), glyphs.labels, glyphs.class_names, glyphs.image)
    compared = [Compared("raw", {"R@1": 0.6}, run), Compared("a rather-long-name-for-a-run", {"R@1": 0.5}, other)]
    long_names = ["a class with quite a long name, such as birds have"] + [f"c{n}" for n in range(7)]
    parts = [make_part("validation", classes=8, names=long_names, size=(60, 30)), part]
    page = write_report(run, parts, comparison=compared, baselines={"noise": {"R@1": 0.02, "MAP@R": 0.01}})
    return page.read_text()


@pytest.mark.parametrize("width", [1280, 360])
def test_a_reader_can_use_it(browser: Browser, glyph_page: str, tmp_path: Path, width: int):
    seen = use(browser, glyph_page, tmp_path, width, SCRIPT)
    assert seen["errors"] == []
    assert seen["panels"] == [[True, False, False], [False, True, False], [False, False, True]]
    assert seen["thumb"][0] > 50
    assert seen["thumb"][1].startswith('url("data:image/webp')
    assert seen["frames"] == ["rgb(35, 122, 59)", "rgb(194, 41, 46)"]
    tip = seen["tip"]
    assert seen["hidden"] is True
    assert tip["hidden"] is False
    assert tip["name"] == tip["expected"]
    assert "same class" in tip["nearest"] or tip["other"] in tip["nearest"]
    assert tip["image"].startswith('url("data:image/webp')
    assert tip["position"] == tip["expectedPosition"]
    assert tip["inside"]
    assert tip["same"] == 1
    assert seen["left"] is True
    assert seen["walked"]
    assert seen["escaped"] is True
    assert seen["colors"] == [True, True]
    assert seen["readout"] == "epoch 4: raw 0.25 · a rather-long-name-for-a-run 0.25"
    assert re.fullmatch(r"similarity .* to .*: two classes [\d.]+% · one class [\d.]+%", seen["bar"])
    assert seen["width"] == [width, width]
    assert seen["small"] == 0
    assert seen["unnamed"] == 0
