"""What the page on birds says of the study: sentences and figures follow from the committed results, and leave none out."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
BENCHMARKS = ROOT / "benchmarks"


@pytest.fixture(scope="module")
def scripts() -> Any:
    """The scripts, which find each other by their folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHMARKS))
        import birds_claims
        import plot_birds
        import plot_findings
        import plot_verdict

        yield SimpleNamespace(claims=birds_claims, birds=plot_birds, findings=plot_findings, verdict=plot_verdict)


@pytest.fixture(scope="module")
def results() -> Any:
    return SimpleNamespace(
        **{name: json.loads((BENCHMARKS / f"results/birds-{name}.json").read_text()) for name in ("verdict", "parity")}
    )


def test_the_page_says_what_the_results_say(scripts: Any, results: Any):
    page = (ROOT / "docs" / "reality-check.md").read_text()
    for block in (
        scripts.findings.findings(results.verdict, results.parity),
        scripts.findings.moved(results.verdict, results.parity),
        scripts.verdict.verdict_words(results.verdict, results.parity),
        scripts.verdict.verdict_table(results.verdict),
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
    """Two methods rise by 1 and 3 points in the mean over their seeds; a training that failed, and a method that has no other
    side, are left out."""

    def row(method: str, part: str, score: float, status: str = "done") -> dict[str, Any]:
        return {"method": method, "part": part, "dim": 512, "status": status, "test MAP@R": score}

    after = [row("a", "verdict", score) for score in (0.10, 0.12)] + [
        row("b", "verdict", 0.23),
        row("c", "verdict", 0.5),
    ]
    before = [row("a", "untuned", 0.10), row("b", "untuned", 0.20), row("b", "untuned", 0.0, "failed")]
    found = scripts.claims.tuned([*after, *before])
    assert found.pairs == 2
    assert found.difference.mean == pytest.approx(0.02)


def test_nothing_is_not_below_nothing(scripts: Any):
    ends = SimpleNamespace(mean=-0.0002, low=-0.0031, high=0.0027)
    assert scripts.findings.said_of(SimpleNamespace(difference=ends)) == "+0.0 (-0.3 to +0.3)"


def test_the_words_name_what_was_told_apart(scripts: Any):
    rows = [
        {"loss": name, "MAP@R": {"difference": {"low": low, "high": high}}}
        for name, low, high in (("one", -0.1, 0.1), ("other", 0.01, 0.1), ("third", -0.2, -0.1))
    ]
    assert scripts.birds.told_apart({"rows": rows}) == ["other", "third"]
