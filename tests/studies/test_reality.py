"""Papers versus reality: improvements by hand, what may be compared with what, and a figure that is one."""

from __future__ import annotations

import doctest
import importlib
import io
import random
import re
import statistics
import sys
from xml.etree import ElementTree

import pytest
import scipy.stats
from PIL import Image

from likewise.protocols import STUDY_DATABASE, Result, Study, Trial
from studies.published import (
    compare,
    comparison,
    draw_improvements,
    draw_trend,
    improvements,
    papers_versus_reality,
    published,
    trend,
)


def own(seeds=4, **scores):
    chance = random.Random(0)
    return [
        {"method": name, "data": "Glyphs", "dim": 64, "seed": seed, "test R@1": score + chance.gauss(0.0, 0.01)}
        for name, score in scores.items()
        for seed in range(seeds)
    ]


def one(found, method, **conditions):
    fits = [each for each in found if each.method == method and conditions.items() <= each.conditions.items()]
    assert len(fits) == 1
    return fits[0]


def test_improvement_by_hand():
    """CosFace on CUB, separated: 59.63 ± 0.36 over 59.73 ± 0.40."""
    found = improvements(published("reality-check", data="CUB200"))
    cosface = one(found, "CosFace", protocol="separated")
    assert cosface.relative == pytest.approx(59.63 / 59.73 - 1)
    assert cosface.plus_minus == pytest.approx(((0.36 / 59.73) ** 2 + (59.63 * 0.40 / 59.73**2) ** 2) ** 0.5)
    assert cosface.year == 2018
    base = one(found, "Contrastive", protocol="separated")
    assert (base.relative, base.plus_minus) == (0.0, 0.0)
    assert one(found, "Pretrained", protocol="separated").plus_minus is None


def test_a_result_is_compared_under_its_own_conditions():
    found = improvements(published("thesis", table=(6, 7)), "Triplet")
    assert one(found, "Margin", trunk="resnet50", dim=128).relative == pytest.approx(63.00 / 60.48 - 1)
    assert one(found, "Margin", trunk="bninception", dim=64).relative == pytest.approx(56.80 / 55.82 - 1)


def test_papers_compare_across_networks():
    """Margin with ResNet50 and 128 dimensions over Contrastive with GoogLeNet: what papers do, and only if told to."""
    rows = published("rolinek-2020", data="CUB200")
    assert one(improvements(rows), "Margin").relative is None
    across = one(improvements(rows, within=("source", "data")), "Margin")
    assert across.relative == pytest.approx(63.8 / 26.4 - 1)
    assert across.conditions["trunk"] == "resnet50"


def test_sorted_by_year_unknown_last():
    found = improvements(own(contrastive=0.5, proxy_anchor=0.6, mine=0.55, ArcFaceLoss=0.5))
    assert [(each.year, each.method) for each in found] == [
        (2006, "Contrastive"),
        (2019, "ArcFace"),
        (2020, "ProxyAnchor"),
        (None, "mine"),
    ]
    assert improvements([{"method": "contrastive", "test R@1": 0.5, "year": 1999}])[0].year == 1999


def test_seeds_give_an_interval():
    rows = own(contrastive=0.5, mine=0.6)
    mine = one(improvements(rows), "mine")
    values = {name: [row["test R@1"] for row in rows if row["method"] == name] for name in ("contrastive", "mine")}
    means = {name: statistics.fmean(all_) for name, all_ in values.items()}
    half = {name: scipy.stats.t.ppf(0.975, 3) * statistics.stdev(all_) / 2.0 for name, all_ in values.items()}
    ratio = means["mine"] / means["contrastive"]
    assert mine.relative == pytest.approx(ratio - 1)
    expected = ratio * ((half["mine"] / means["mine"]) ** 2 + (half["contrastive"] / means["contrastive"]) ** 2) ** 0.5
    assert mine.plus_minus == pytest.approx(expected)
    assert mine.count == 4


def test_two_names_for_one_method_are_not_mixed():
    found = improvements(own(contrastive=0.5, margin=0.6, MarginLoss=0.4))
    assert [each.method for each in found] == ["Contrastive", "MarginLoss", "margin"]


def test_side_by_side():
    series = papers_versus_reality(own(contrastive=0.7, triplet=0.68, mine=0.72))
    assert list(series) == ["papers, CUB200", "reality check, CUB200", "thesis, CUB200", "yours"]
    claimed = [each.relative for each in series["papers, CUB200"] if each.baseline == "Contrastive"]
    measured = [each.relative for each in series["reality check, CUB200"] if each.baseline == "Contrastive"]
    assert max(claimed) > 1.4  # more than doubled
    assert max(measured) < 0.01
    assert all(each.conditions["dim"] == 128 for each in series["reality check, CUB200"])
    assert {each.baseline for each in series["yours"]} == {"Contrastive", "Triplet"}
    assert "OurLoss" in [each.method for each in series["thesis, CUB200"]]


def test_series_without_numbers_are_not_there():
    assert "papers, Cars196" not in papers_versus_reality(data="Cars196", baselines=["Contrastive", "Triplet"])
    assert list(papers_versus_reality(metric="test MAP@R")) == ["reality check, CUB200"]
    assert papers_versus_reality(data="InShop") == {}


def test_cars_are_compared_with_the_oldest_loss_that_all_sources_have():
    """The unified view quotes 79.6 for Margin and 73.2 for ProxyNCA; no source quotes the contrastive or triplet loss."""
    series = papers_versus_reality(data="Cars196")
    assert list(series) == ["papers, Cars196", "reality check, Cars196", "thesis, Cars196"]
    claimed = {each.method: each.relative for each in series["papers, Cars196"]}
    assert claimed["Margin"] == pytest.approx(79.6 / 73.2 - 1)
    assert {each.baseline for each in series["papers, Cars196"]} == {"ProxyNCA"}
    assert {each.baseline for each in series["reality check, Cars196"]} == {"Contrastive", "Triplet", "ProxyNCA"}


def test_the_trend_in_absolute_numbers():
    panels = trend(own(triplet=0.5, mine=0.6), data="Cars196")
    assert list(panels) == ["according to papers", "according to reality", "yours"]
    papers = {each.method: each.value for each in panels["according to papers"]["CUB200"]}
    assert (papers["Contrastive"], papers["ProxyNCA"]) == (0.264, 0.64), "the best claim of a method"
    reality = {each.method: each.value for each in panels["according to reality"]["SOP"]}
    assert "Pretrained" not in reality
    assert reality["Contrastive"] == 0.6934
    assert [each.year for each in panels["yours"]["Cars196"]] == [2015, None]
    for name in ("according to papers", "according to reality"):
        years = [each.year or 9999 for each in panels[name]["Cars196"]]
        assert years == sorted(years)
    drawn = draw_trend(own(triplet=0.5), data="Cars196")
    assert drawn == draw_trend(own(triplet=0.5), data="Cars196")
    assert all(word in drawn for word in (b"according to papers", b"RaMBO log", b"yours"))


def test_text():
    text = comparison(papers_versus_reality(own(contrastive=0.7, mine=0.72), baselines=["Contrastive"]))
    lines = text.splitlines()
    assert lines[0].split("  ")[0] == "over Contrastive"
    margin = next(line for line in lines if "Margin " in line)
    assert "+141.7%" in margin
    assert "-8.3% ± 0.8" in margin
    assert margin.endswith("–")
    assert len({len(line) for line in lines}) == 1
    assert "+86.4% to +142.4%" in text  # ProxyNCA with GoogLeNet, and with ResNet50


def test_figure_is_a_figure_and_the_same_every_time():
    series = papers_versus_reality(own(contrastive=0.7, triplet=0.68, mine=0.72))
    drawn = draw_improvements(series)
    assert ElementTree.fromstring(drawn).tag.endswith("svg")
    assert draw_improvements(series) == drawn
    for color in (b"#e08a1e", b"#3b8edb", b"#2aa876", b"#c2559d"):
        assert color in drawn
    image = Image.open(io.BytesIO(draw_improvements(series, "png")))
    assert image.getpixel((0, 0))[3] == 0  # nothing behind it: the page's color shows


def test_without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"figures need matplotlib; install the extra likewise\[train\]"):
        draw_improvements(papers_versus_reality())


@pytest.mark.parametrize(
    ("rows", "options", "words"),
    [
        ([], {}, "rows must hold results, but it is empty"),
        (
            [{"method": "a", "test R@1": 0.5}],
            {},
            "baseline must be a method of the rows, but it is 'Contrastive' and they are of 'a'",
        ),
        ([{"method": "a"}], {}, "none of the 1 is one"),
        ([{"method": "contrastive", "test R@1": "high"}], {}, "must be a finite number, but it is 'high'"),
        ([{"method": "contrastive", "test R@1": 0.0}], {}, "must be above 0"),
        (
            [{"method": "contrastive", "dim": dim, "test R@1": 0.5} for dim in (64, 128)],
            {"within": ()},
            "within must single out one Contrastive, but there are several",
        ),
    ],
)
def test_refusals(rows, options, words):
    with pytest.raises(ValueError, match=words):
        improvements(rows, **options)


def test_refusals_of_the_figure():
    with pytest.raises(ValueError, match="form must be one of 'svg', 'png'"):
        draw_improvements(papers_versus_reality(), "jpeg")
    with pytest.raises(ValueError, match="series must hold improvements"):
        draw_improvements({})
    with pytest.raises(ValueError, match="own must hold finished results of Contrastive or Triplet"):
        papers_versus_reality([{"method": "mine", "test R@1": 0.5}])
    with pytest.raises(ValueError, match="metric must be one that results have"):
        draw_trend(metric="test nothing")
    with pytest.raises(ValueError, match="data must be one of"):
        papers_versus_reality(data="MNIST")


@pytest.mark.parametrize("name", ["tables", "reality", "ranks", "trend", "drawing"])
def test_examples_run(name):
    module = importlib.import_module(f"studies.published.{name}")
    results = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert results.attempted > 0
    assert results.failed == 0


def test_a_study_stands_beside_papers(tmp_path, capsys):
    """What `papers_versus_reality` gives for the rows of its table, and a figure."""
    study = Study(tmp_path / STUDY_DATABASE)
    (tmp_path / "study.yaml").touch()
    config = {"data": {"class_path": "Glyphs"}, "model": {"trunk": "convnet", "dim": 64}}
    for method, score in (("contrastive", 0.5), ("mine", 0.55)):
        for seed in (0, 1):
            trial = Trial(method, config, seed, labels={"data": "Glyphs", "dim": 64})
            study.add([trial])
            study.finish(Result(trial, test={"R@1": score}))
    compare.main([str(tmp_path), "--figure", str(tmp_path / "figure.svg")])
    said = capsys.readouterr().out
    assert re.search(r"mine +– +– +– +\+10\.0%", said)
    assert (tmp_path / "figure.svg").read_bytes().startswith(b"<?xml")
    with pytest.raises(SystemExit, match="must be the folder of a study or of a run, but it is neither"):
        compare.main([str(tmp_path / "nowhere")])
