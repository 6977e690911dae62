"""The page about a study: what it says, what it refuses to say, and that a reader can use it."""

from __future__ import annotations

import base64
import csv
import html
import io
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from likewise.protocols import rank
from likewise.protocols.tournament import tournament
from likewise.report.study import Study, StudyFigure, StudyTable, write_study
from likewise.testing import loop_over
from tests.report.browser import Browser
from tests.report.pages import Elements, text_of, use
from tests.report.studies import difference, fail, final_rows, make_study, search_rows, searched


def page_of(study: Study, folder: Path) -> str:
    return write_study(folder / "study.html", study).read_text()


def said(study: Study, folder: Path) -> str:
    return text_of(page_of(study, folder))


def verdict(study: Study, folder: Path) -> str:
    found = re.search(r'<p class="verdict">(.*?)</p>', page_of(study, folder), re.S)
    assert found is not None
    return html.unescape(found[1])


def scores(**methods: tuple[float, ...]) -> list[dict[str, Any]]:
    return [
        {"method": name.replace("_", " "), "seed": seed, "test MAP@R": value, "run": f"{name}-{seed}", "openings": 1}
        for name, values in methods.items()
        for seed, value in enumerate(values)
    ]


def ranked(rows: list[dict[str, Any]], **options: Any) -> Study:
    board = [{**row, "checked": True} for row in rank(rows, **options).rows()]
    return Study("s", rows=rows, leaderboard=board, fairness=[])


def test_the_whole_page(tmp_path: Path):
    page = page_of(make_study(), tmp_path)
    text = text_of(page)
    for sentence in (
        "proxy anchor has the highest mean MAP@R in each of 2 settings, but is not always distinguishable from multi-similarity.",
        "The check found no difference that makes this comparison unfair.",
        "a fixed share of the training classes is held out for validation (the thesis, Section 5.2)",
        "the loss is not finite after step 312",
        "Test sets were opened 50 times in 123 runs: once in 50, never in 73.",
        "likewise tournament --preset smoke --out studies/five-losses",
        "Kernels round differently.",
        "🥇 gold",
    ):
        assert sentence in text
    assert page.count('class="card rows ') == 4  # two leaderboards, two experiments
    assert len(page) < 600_000


def test_every_number_leads_to_runs_and_every_run_to_a_command(tmp_path: Path):
    """The mean of the leaderboard is that of the rows which its link shows, and each row has its run and command."""
    study = make_study()
    page = page_of(study, tmp_path)
    row = re.search(
        r'data-filter="([^"]*)" title="show its runs">margin</a></span></span></th>\s*<td>([\d.]+)</td>', page
    )
    assert row is not None
    assert html.unescape(row[1]) == 'method="margin" data="glyphs" trunk="convnet" dim="64" stage="final"'
    mine = [r["test MAP@R"] for r in study.rows if r["method"] == "margin" and r["stage"] == "final" and r["dim"] == 64]
    assert row[2] == f"{100 * sum(mine) / 5:.2f}"
    text = text_of(page)
    for each in study.rows:
        assert each["run"] in text
        assert each["command"] in text


def test_the_table_can_be_downloaded(tmp_path: Path):
    study = make_study()
    links = [
        value for _, name, value in Elements(page_of(study, tmp_path)).attributes if value.startswith("data:text/csv")
    ]
    assert len(links) == 1
    rows = list(csv.DictReader(io.StringIO(base64.b64decode(links[0].partition(",")[2]).decode(), newline="")))
    assert len(rows) == len(study.rows)
    for read, row in zip(rows, study.rows, strict=True):
        assert read["run"] == row["run"]
        assert read["command"] == row["command"]
        value = row.get("test MAP@R")
        assert read["test MAP@R"] == ("" if value is None else repr(value))


# ---- the verdict


def test_better_is_said_only_where_the_pairs_tell(tmp_path: Path):
    """Differences 2, 2.1, 1.9 points: their interval is 2 ± 4.303 · 0.1/√3 = 1.75 to 2.25, above zero."""
    clear = scores(a=(0.50, 0.52, 0.54), b=(0.48, 0.499, 0.521))
    assert verdict(ranked(clear), tmp_path).startswith("a is better by MAP@R than b: 52.0% (95% interval 47.0–57.0")
    unclear = scores(a=(0.50, 0.52, 0.54), b=(0.52, 0.50, 0.51))
    assert "a has the highest mean MAP@R" in verdict(ranked(unclear), tmp_path)
    assert "not distinguishable from b" in verdict(ranked(unclear), tmp_path)


def test_a_correction_for_many_comparisons_is_heard(tmp_path: Path):
    rows = scores(a=(0.50, 0.52, 0.54), b=(0.48, 0.499, 0.521))
    doubt = {"a": "b", "b": "a", "sentence": "?", "mean": -0.02, "low": -0.0225, "high": -0.0175, "pairs": 3}
    study = Study(
        "s", rows=rows, leaderboard=rank(rows).rows(), comparisons=[{**doubt, "verdict": "not distinguishable"}]
    )
    assert "not distinguishable from b" in verdict(study, tmp_path)


def test_one_seed_proves_nothing(tmp_path: Path):
    study = ranked(scores(a=(0.9,), b=(0.1,)))
    assert verdict(study, tmp_path) == (
        "a has the highest mean MAP@R, 90.0%, but 1 seed is too few to distinguish it from b."
    )
    assert "one seed" in said(study, tmp_path)


def test_two_seeds_show_no_interval(tmp_path: Path):
    """Two seeds that happen to be close would give a narrow interval, and two equal differences one of no width."""
    study = ranked(scores(a=(0.50, 0.501), b=(0.40, 0.401)))
    assert verdict(study, tmp_path) == (
        "a has the highest mean MAP@R, 50.0%, but 2 seeds are too few to distinguish it from b."
    )
    pair = {"a": "a", "b": "b", "sentence": "?", "mean": 0.1, "low": 0.1, "high": 0.1, "pairs": 2, "verdict": "better"}
    page = page_of(replace(study, comparisons=[pair]), tmp_path)
    text = text_of(page)
    assert text.count("2 seeds: no interval") == 2
    assert text.count("2 pairs: no interval") == 3  # behind the first, and twice in the matrix
    assert 'class="interval-line"' not in page
    assert 'class="better"' not in page


def test_equal_means_share_the_first_place(tmp_path: Path):
    told = verdict(ranked(scores(a=(0.5, 0.6), b=(0.6, 0.5))), tmp_path)
    assert told == "a and b share the highest mean MAP@R, 55.0%, and are not distinguishable."


def test_one_method(tmp_path: Path):
    study = ranked(scores(a=(0.5, 0.52)))
    assert "there is no other method to compare it with" in verdict(study, tmp_path)


def test_what_is_unfair_is_not_ranked(tmp_path: Path):
    """Not in the verdict, not as a leaderboard, not as a tournament; what was measured is still shown."""
    rows = final_rows(seeds=2)
    found = tournament(rows, "test MAP@R").to_dict()
    pair = {"a": "margin", "b": "triplet", "sentence": "?", "mean": 0.04, "low": 0.03, "high": 0.05, "pairs": 4}
    compared = [{**pair, "verdict": "better"}]
    study = Study("s", rows=rows, fairness=[difference()], tournament=found, comparisons=compared)
    page = page_of(study, tmp_path)
    assert verdict(study, tmp_path).startswith("Not ranked: the runs differ in embedding size, not only in the method.")
    assert "The ranking was refused" in page
    assert 'class="heat"' not in page
    assert "gold" not in text_of(page)
    assert "so a difference is not necessarily due to the method" in text_of(page)
    assert 'class="panels"' in page
    text = text_of(page)
    assert "64 triplet, contrastive" in text
    assert "The check found nothing" not in text


def test_an_unfair_ranking_that_was_asked_for_says_so_everywhere(tmp_path: Path):
    rows = [
        {**row, "dim": 64 if row["method"] == "a" else 128} for row in scores(a=(0.5, 0.6, 0.55), b=(0.4, 0.41, 0.42))
    ]
    board = rank(rows, allow_unfair=True).rows()
    study = Study("s", rows=rows, leaderboard=board, fairness=[difference()])
    page = page_of(study, tmp_path)
    assert verdict(study, tmp_path).startswith("Unfair: the runs differ in embedding size, so")
    assert '<li class="bad">unfair: embedding size 64</li>' in page
    assert '<span class="place">1*</span>' in page
    assert "Not a fair comparison" in text_of(page)


def test_nobody_looked_is_not_the_same_as_nothing_found(tmp_path: Path):
    rows = scores(a=(0.5, 0.52), b=(0.4, 0.42))
    text = said(Study("s", rows=rows, leaderboard=rank(rows).rows()), tmp_path)
    assert "was not checked" in text
    assert "The check found nothing" not in text


def test_tuned_on_test_is_loud(tmp_path: Path):
    protocol = {"name": "classic", "sentence": "no validation classes", "source": "", "tuned_on_test": True}
    rows = [{**row, "tuned_on_test": True} for row in scores(a=(0.5, 0.52), b=(0.4, 0.42))]
    page = page_of(Study("s", rows=rows, leaderboard=rank(rows).rows(), fairness=[], protocol=protocol), tmp_path)
    assert '<p class="alarm" role="alert">Tuned on test: the protocol classic' in page
    assert page.count('<li class="bad">tuned on test</li>') == 2


def test_opening_twice_or_early_is_loud(tmp_path: Path):
    rows = scores(a=(0.5, 0.52))
    rows[1]["openings"] = 3
    early = {"run": "a-0", "opened": "2026-03-01T15:00:00+01:00", "why": "curious", "finished": False}
    text = said(Study("s", rows=rows, openings=[early]), tmp_path)
    assert "The test set was opened more than once in 1 run." in text
    assert "The test set was opened before training had ended in 1 run." in text
    assert "Test sets were opened 4 times in 2 runs: once in 1, never in 0, more than once in 1" in text
    assert "2026-03-01 15:00 +01:00" in text
    assert "The times of 3 of them are in the folders of the runs" in text


# ---- as far as it got


def test_nothing_done_yet(tmp_path: Path):
    text = said(Study("s", planned=40), tmp_path)
    for sentence in ("Nothing has been trained yet.", "0 of 40", "There is no leaderboard", "No test set was opened"):
        assert sentence in text


def test_all_failed(tmp_path: Path):
    rows = final_rows(seeds=2)
    for row in rows:
        fail(row)
    text = said(Study("s", rows=rows, planned=len(rows)), tmp_path)
    assert "0 of 20 runs finished, so there is nothing to compare." in text
    assert "No final run has a result yet." in text
    assert text.count("the loss is not finite after step 312") == 40  # among the failures and in the table


def test_a_partial_tournament_is_marked(tmp_path: Path):
    rows = [row for row in final_rows(seeds=2) if (row["method"], row["dim"]) != ("triplet", 128)]
    found = tournament(rows, "test MAP@R").to_dict()
    text = said(Study("s", rows=rows, tournament=found, planned=20), tmp_path)
    assert "* 1 of 2 experiments" in text
    assert "The study is not complete: 18 of 20 runs have ended." in text
    assert "with some results missing. A rank does not show whether a difference is significant." in text


def test_a_search_alone_ranks_nothing(tmp_path: Path):
    search = searched()
    study = Study("s", metric="val MAP@R", rows=search_rows(search), search=search)
    best = max(one["value"] for one in search["contrastive"] if one["status"] == "done")
    assert f"contrastive {100 * best:.1f}%" in verdict(study, tmp_path)
    page = page_of(study, tmp_path)
    assert page.count('class="missed"') == sum(
        len(one["point"]) for tried in search.values() for one in tried if one["status"] != "done"
    )
    assert page.count('class="best"') == sum(len(tried[0]["point"]) for tried in search.values())


def test_a_search_that_just_began(tmp_path: Path):
    running = {"point": {"loss.margin": 0.1}, "value": None, "status": "running"}
    text = said(Study("s", search={"a": [running], "b": []}), tmp_path)
    assert "1 running" in text
    assert "none yet" in text


def test_a_seed_that_lacks_a_fold_is_not_in_the_mean(tmp_path: Path):
    rows = [{"method": "a", "seed": s, "fold": f, "test MAP@R": 0.4 + 0.1 * s} for s, f in ((0, 0), (0, 1), (1, 0))]
    page = page_of(Study("s", rows=rows), tmp_path)
    assert '<span class="value">40.0<small>1 seed</small></span>' in page
    assert page.count('class="seed hollow"') == 1


# ---- a file like any other


def test_tables_and_figures_say_what_they_show_and_what_makes_them_again(tmp_path: Path):
    svg = b"<svg xmlns='http://www.w3.org/2000/svg'/>"
    study = Study(
        "s",
        tables={
            "What it took": StudyTable(
                ["stage", "minutes"], [["search", "73"], ["final", "107"]], "On one GPU.", "cost"
            ),
            "Claims": StudyTable(["question", "answer"], [["Is it?", "It is not."]], words=True),
        },
        figures={"Map": StudyFigure(svg, "Crosses are mistakes.", "python map.py"), "Plain": svg},
    )
    page = page_of(study, tmp_path)
    found = Elements(page)
    places = [page.index(f'id="{name}"') for name in ("leaderboard", "tables", "figures", "experiments")]
    assert places == sorted(places)
    section = page[places[1] : places[3]]
    text = text_of(section)
    assert "What it took stage minutes search 73 final 107 On one GPU. cost" in " ".join(text.split())
    assert "Claims question answer Is it? It is not." in " ".join(text.split())
    assert "Crosses are mistakes." in text
    assert section.count('class="command"') == 2  # of the first table and the first figure
    data = [value for tag, name, value in found.attributes if (tag, name) == ("img", "src")]
    assert [base64.b64decode(each.partition(",")[2]) for each in data] == [svg, svg]
    assert {"#tables", "#figures"} <= {value for _, name, value in found.attributes if name == "href"}


def test_a_page_without_tables_and_figures_has_no_place_for_them(tmp_path: Path):
    page = page_of(Study("s"), tmp_path)
    assert 'id="tables"' not in page
    assert 'id="figures"' not in page


def test_what_is_not_a_table_is_refused():
    with pytest.raises(ValueError, match="rows must have a cell for each of the 2 columns, but row 1 has 1"):
        StudyTable(["a", "b"], [["1", "2"], ["1"]])
    with pytest.raises(TypeError, match="tables must be StudyTable objects, but 'x' is a list"):
        Study("s", tables={"x": [["1"]]})  # type: ignore[dict-item]


@loop_over(
    "given, sentence",
    [
        ({"metric": "MAP@R"}, "metric must be a column such as 'test MAP@R' or 'val R@1', but it is 'MAP@R'"),
        ({"rows": [{"seed": 0}]}, "rows must have method in each entry, but entry 0 lacks 'method'"),
        ({"fairness": [{"what": "x"}]}, "but entry 0 lacks 'values'"),
        ({"search": {"a": [{"point": {}}]}}, r"search\['a'\] must have point, value, status in each entry"),
        ({"leaderboard": {"dim 64": [{"rank": 1}]}}, r"leaderboard\['dim 64'\] must have rank, mean, marks"),
        ({"protocol": {"name": "x"}}, "protocol must have name, sentence, source, tuned_on_test"),
        ({"planned": -1}, "planned must be a whole number"),
        ({"figures": {"x": b"\x89PNG"}}, "figures must be bytes of an SVG, but 'x' is not"),
        ({"figures": {"x": StudyFigure(b"\x89PNG", "A map.")}}, "figures must be bytes of an SVG, but 'x' is not"),
    ],
)
def test_what_is_not_a_study_is_refused(given: dict[str, Any], sentence: str):
    with pytest.raises(ValueError, match=sentence):
        Study("s", **given)


# ---- in a browser

SCRIPT = r"""
  const heads = [...document.querySelectorAll("#all thead th")];
  const at = (name) => heads.findIndex((head) => head.dataset.name === name);
  const rows = () => [...document.querySelectorAll("#all tbody tr")].filter((row) => !row.hidden);
  const column = (name) => rows().map((row) => row.cells[at(name)].textContent.trim());
  const press = (name) => heads[at(name)].querySelector("button").click();
  const type = (text) => { const input = $("#all input"); input.value = text; input.dispatchEvent(new Event("input")); };
  const rowCount = () => $("#all .row-count").textContent;

  seen.all = rowCount();
  press("test_map@r");
  seen.down = [column("test_map@r"), heads[at("test_map@r")].getAttribute("aria-sort")];
  press("test_map@r");
  seen.up = [column("test_map@r"), heads[at("test_map@r")].getAttribute("aria-sort")];
  press("method");
  seen.names = [column("method"), heads[at("test_map@r")].hasAttribute("aria-sort")];
  type("TRIPLET seed5");
  seen.words = [rowCount(), column("run")];
  type("dim=128 stage=final");
  seen.exact = [rowCount(), new Set(column("dim")).size];
  type("dim=12");
  seen.part = rowCount();
  type("command no-such-thing");
  seen.none = rowCount();
  type("");
  $("#leaderboard a[data-filter]").click();
  seen.link = [rowCount(), [...new Set(column("method"))], $("#all input").value];
  type("");
  const chart = $("#search .chart");
  chart.querySelector("svg").dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true }));
  seen.readout = chart.querySelector(".readout").textContent;
  const dot = $("#leaderboard circle").getBoundingClientRect();
  seen.dot = [dot.width, dot.height];
"""


@pytest.mark.parametrize("width", [1280, 360])
def test_a_reader_can_use_it(browser: Browser, tmp_path: Path, width: int):
    study = make_study()
    seen = use(browser, page_of(study, tmp_path), tmp_path, width, SCRIPT)
    assert seen["errors"] == []
    values = sorted(row["test MAP@R"] for row in study.rows if row.get("test MAP@R") is not None)
    shown = [f"{100 * value:.2f}" for value in values]
    empty = ["–"] * (len(study.rows) - len(values))
    assert seen["all"] == f"{len(study.rows)} rows"
    assert seen["up"] == [shown + empty, "ascending"]
    assert seen["down"] == [shown[::-1] + empty, "descending"]
    assert seen["names"] == [sorted(row["method"] for row in study.rows), False]
    assert seen["words"] == [f"1 of {len(study.rows)} rows", ["runs/triplet-dim64-seed5"]]
    assert seen["exact"] == [f"25 of {len(study.rows)} rows", 1]
    assert seen["part"] == f"0 of {len(study.rows)} rows"  # 128 is not 12
    assert seen["none"] == f"0 of {len(study.rows)} rows"
    assert seen["link"][:2] == [f"5 of {len(study.rows)} rows", ["proxy anchor"]]
    assert seen["readout"].startswith("round 1: contrastive ")
    assert seen["dot"] == [11, 11]
    assert seen["width"] == [width, width]
    assert seen["small"] == 0
    assert seen["unnamed"] == 0
