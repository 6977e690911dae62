"""What the page on birds says of the study: sentences and figures follow from the committed results, and leave none out."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from likewise.app.configuration import parse_request
from likewise.app.layers import read_request
from likewise.protocols.pairs import compare
from studies.birds import claims, further, plot_findings, plot_parity, plot_verdict, search, verdict

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "studies" / "birds" / "results"


@pytest.fixture(scope="module")
def scripts() -> Any:
    return SimpleNamespace(
        claims=claims,
        further=further,
        search=search,
        settings=verdict,
        birds=plot_parity,
        findings=plot_findings,
        verdict=plot_verdict,
    )


@pytest.fixture(scope="module")
def results() -> Any:
    return SimpleNamespace(
        **{name: json.loads((RESULTS / f"{name}.json").read_text()) for name in ("verdict", "parity", "recent")}
    )


def test_the_page_says_what_the_results_say(scripts: Any, results: Any):
    page = (ROOT / "docs" / "reality-check.md").read_text()
    for block in (
        scripts.findings.findings(results.verdict, results.parity, results.recent),
        scripts.findings.moved(results.verdict, results.parity),
        scripts.verdict.verdict_words(results.verdict, results.parity),
        scripts.verdict.verdict_table(results.verdict, 512, results.recent),
        scripts.verdict.further_table(results.verdict),
        scripts.verdict.claims(results.verdict),
        scripts.birds.words(results.parity),
    ):
        assert f"\n{block}\n" in page


def test_every_comparison_is_in_the_figure_once(scripts: Any, results: Any):
    drawn = [one["question"] for _, found in scripts.findings.groups(results.verdict) for _, one in found]
    assert sorted(drawn) == sorted(one["question"] for one in results.verdict["claims"] if "difference" in one)


def test_figures_are_drawn_of_what_is_there(scripts: Any, results: Any, tmp_path: Path):
    """A part that was not trained leaves its row empty."""
    further = [{**each, "test": {"verdict": each["test"]["verdict"]}} for each in results.verdict["further"]]
    plain = scripts.verdict.untuned(results.parity)
    scripts.findings.draw_further({"further": further}, plain, tmp_path / "some.svg")
    scripts.findings.draw_further(results.verdict, plain, tmp_path / "all.svg")
    scripts.findings.draw_claims(results.verdict, tmp_path / "claims.svg")
    assert (tmp_path / "all.svg").stat().st_size > (tmp_path / "some.svg").stat().st_size
    assert "Binomial + VTHM against Binomial" in (tmp_path / "claims.svg").read_text()


def test_a_method_is_one_pair(scripts: Any):
    """Two methods rise by 1 and 3 points in the mean over their seeds, one kept its setting; a training that failed, and a
    method that has no other side, are left out."""

    def rows(part: str, **scores: tuple[float | None, ...]) -> list[dict[str, Any]]:
        return [
            {
                "method": name,
                "part": part,
                "dim": 512,
                "seed": seed,
                "status": "done" if each else "failed",
                "test MAP@R": each,
            }
            for name, those in scores.items()
            for seed, each in enumerate(those)
        ]

    after = rows("verdict", a=(0.10, 0.12), b=(0.23, 0.25), c=(0.5, 0.5), d=(0.3, 0.4))
    before = rows("untuned", a=(0.08, 0.12), b=(0.21, None), c=(0.5, 0.5))
    found = scripts.claims.tuned([*after, *before])
    assert found["difference"]["count"] == 3
    assert found["difference"]["mean"] == pytest.approx((0.01 + 0.03 + 0.0) / 3)
    assert "a +1.00 (" in found["sentence"]
    assert "c nothing, because its first setting was the best" in found["sentence"]


def test_differences_are_those_of_the_table(scripts: Any, results: Any):
    """Every seed has its partner: the mean of differences is the difference of means, whoever shared a GPU with how many."""
    for each in results.verdict["further"]:
        before = each["test"]["verdict"]["MAP@R"]["mean"]
        for part in ("together", "larger images", "the rest"):
            found = scripts.findings.change(results.verdict, each["method"], part)
            assert found.pairs == 5
            assert found.difference.mean == pytest.approx(each["test"][part]["MAP@R"]["mean"] - before)


def test_what_has_no_partner_is_no_difference(scripts: Any):
    rows = [{"method": m, "seed": s, "test MAP@R": 0.1 + 0.01 * s} for m in "ab" for s in range(3)]
    found = compare(rows, "a", "b")
    assert scripts.findings.said_of(found) == "+0.0 (+0.0 to +0.0)"
    with pytest.raises(ValueError, match="training runs of the same seeds"):
        scripts.findings.said_of(compare(rows[:-1], "a", "b"))


def test_nothing_is_not_below_nothing(scripts: Any):
    ends = SimpleNamespace(mean=-0.0002, low=-0.0031, high=0.0027)
    assert scripts.findings.said_of(SimpleNamespace(difference=ends, unpaired=(0, 0))) == "+0.0 (-0.3 to +0.3)"


def test_the_words_name_what_was_told_apart(scripts: Any):
    rows = [
        {"loss": name, "MAP@R": {"difference": {"low": low, "high": high}}}
        for name, low, high in (("one", -0.1, 0.1), ("other", 0.01, 0.1), ("third", -0.2, -0.1))
    ]
    assert scripts.birds.told_apart({"rows": rows}) == ["other", "third"]


def test_the_recipe_is_where_the_study_ended(scripts: Any, results: Any):
    best = results.verdict["further"][0]
    found = scripts.search.searches(scripts.search.study("data/CUB_200_2011", "imagenet"))[best["method"]]
    plain = scripts.settings.final(found, results.verdict["points"][best["method"]], 0, "verdict", 512).config
    words = ["--config", "cub176", "--data.root", "data/CUB_200_2011"]
    assert parse_request(read_request(words)) == scripts.further.changed(plain, best["helped"])
