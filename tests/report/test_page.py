"""The page stack: what holds for the report of a run and for the page of a study alike."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from likewise.protocols import rank, tournament
from likewise.report import Compared, Study, StudyFigure, StudyTable, write_report, write_study, writing
from likewise.report.blocks import Cell, Table, Text
from likewise.report.writing import render
from tests.report.browser import Browser
from tests.report.pages import NASTY, Elements, without_time
from tests.report.runs import lines, make_part, make_run, open_test
from tests.report.studies import make_study


def write_run_page(folder: Path) -> Path:
    run = make_run(folder / "run")
    open_test(run)
    parts = [make_part("validation", classes=4), make_part("test", noise=1.0)]
    return write_report(run, parts, comparison=[Compared("this", {"R@1": 0.6}, run)], layout="pca")


def write_study_page(folder: Path) -> Path:
    return write_study(folder / "study.html", make_study())


def write_empty_run_page(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    return write_report(folder)


def write_empty_study_page(folder: Path) -> Path:
    return write_study(folder / "study.html", Study("s", planned=4))


both = pytest.mark.parametrize("write", [write_run_page, write_study_page])


def test_blocks_are_escaped():
    assert render(Text("a < b")) == '<p class="note">a &lt; b</p>'
    table = str(render(Table("Scores", ["<i>"], [["a", Cell("<b>", title='"')]])))
    assert "&lt;i&gt;" in table
    assert 'title="&#34;"' in table
    assert "<b>" not in table


@both
def test_nothing_is_fetched(write: Callable[[Path], Path], tmp_path: Path):
    page = write(tmp_path).read_text()
    found = Elements(page)
    for tag, name, value in found.attributes:
        if name in ("src", "srcset", "poster", "action", "data", "xlink:href", "background"):
            assert value.startswith("data:image/"), f"<{tag} {name}={value[:40]}>"
        if name == "href":
            assert value.startswith(("#", "data:,", "data:text/csv;")), value[:40]
    assert not {"iframe", "object", "embed", "base", "form"} & set(found.tags)
    assert all(value.startswith("data:") for value in re.findall(r"url\((.*?)\)", page))
    assert "@import" not in page
    assert "://" not in page
    policy = next(value for _, name, value in found.attributes if name == "content" and "default-src" in value)
    assert policy.startswith("default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-")
    names = [value for _, name, value in found.attributes if name == "id"]
    assert len(names) == len(set(names))
    assert {value[1:] for _, name, value in found.attributes if name == "href" and value[0] == "#"} <= set(names)


@both
def test_the_same_input_gives_the_same_bytes(write: Callable[[Path], Path], tmp_path: Path):
    first, second = (without_time(write(tmp_path / name).read_text()) for name in ("a", "b"))
    assert first == second


def test_the_old_page_stays_until_the_new_one_is_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    page = write_empty_study_page(tmp_path)
    before = page.read_bytes()

    def fail(handle: int) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OSError, match="the disk is full"):
        write_study(page, Study("new"))
    assert page.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["study.html"]


def test_names_in_a_run_are_harmless(tmp_path: Path):
    run = make_run(tmp_path / "run", loss=NASTY)
    lines(run / "openings.jsonl", [{"opened": NASTY, "why": NASTY, "model": NASTY, "step": NASTY, "finished": True}])
    lines(run / "evaluations.jsonl", [{"part": NASTY, "time": NASTY, "model": NASTY, "opening": 1, "metrics": NASTY}])
    part = make_part(NASTY, classes=4, names=[NASTY + str(n) for n in range(4)], noise=2.0)
    compared = [Compared(NASTY, {"R@1": 0.5, NASTY: 0.1}, run), Compared("other", {"R@1": 0.4})]
    page = write_report(run, [part], baselines={NASTY: {"R@1": 0.1}}, comparison=compared, layout="pca", title=NASTY)
    check_nasty(page, scripts=2, images=0)  # the page's script and the map's data


def test_names_in_a_study_are_harmless(tmp_path: Path):
    rows: list[dict[str, Any]] = [
        {
            "method": NASTY + str(n),
            NASTY: NASTY,
            "seed": 0,
            "stage": "final",
            "status": "done",
            "test MAP@R": 0.5 - n / 10,
        }
        | {"run": NASTY, "command": NASTY, "openings": 1}
        for n in range(3)
    ]
    broken = {**rows[0], "seed": 1, "status": "failed", "error": NASTY}
    pair = {"a": rows[0]["method"], "b": rows[1]["method"], "sentence": NASTY, "mean": 0.1, "low": 0.05, "high": 0.2}
    svg = f"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script><text>{NASTY}</text></svg>".encode()
    study = Study(
        NASTY,
        NASTY,
        rows=[*rows, broken],
        protocol={"name": NASTY, "sentence": NASTY, "source": NASTY, "tuned_on_test": True},
        tournament=tournament(rows, "test MAP@R", experiment=(NASTY,), notes=(NASTY,)).to_dict(),
        leaderboard={NASTY: [{**row, "marks": NASTY} for row in rank(rows).rows()]},
        comparisons=[{**pair, "pairs": 3, "verdict": NASTY}],
        comparison_note=NASTY,
        fairness=[{"what": NASTY, "values": {NASTY: {NASTY: [NASTY]}}, "why": NASTY, "severity": "unfair"}],
        search={
            NASTY: [{"point": {NASTY: n, "x": NASTY + str(n)}, "value": n / 10, "status": "done"} for n in range(3)]
        },
        tables={NASTY: StudyTable([NASTY, NASTY], [[NASTY, NASTY]], NASTY, NASTY, words=True)},
        figures={NASTY: StudyFigure(svg, NASTY, NASTY)},
        openings=[{"run": NASTY, "opened": NASTY, "why": NASTY, "finished": False}],
        command=NASTY,
        versions=NASTY,
        hardware=NASTY,
    )
    check_nasty(write_study(tmp_path / "study.html", study), scripts=1, images=1)  # nothing can run in an image


def check_nasty(page: Path, *, scripts: int, images: int) -> None:
    found = Elements(page.read_text())
    assert "b" not in found.tags
    assert found.tags.count("script") == scripts
    assert found.tags.count("img") == images
    assert not [name for _, name, _ in found.attributes if name.startswith("on")]
    assert NASTY in " ".join(found.text)
    assert "49" not in found.text[0]


# ---- in a browser


@pytest.mark.parametrize("write", [write_run_page, write_study_page, write_empty_run_page, write_empty_study_page])
def test_the_console_stays_silent_in_light_and_dark_and_on_paper(
    browser: Browser, write: Callable[[Path], Path], tmp_path: Path
):
    """The unchanged page, under its policy."""
    page, picture = write(tmp_path / "page"), tmp_path / "page.png"
    browser.size(1000, 800)
    for scheme, ground in (("light", (250, 250, 248)), ("dark", (19, 21, 24))):
        browser.prefers(color_scheme=scheme)
        browser.open(page.as_uri())
        browser.picture(picture)
        with Image.open(picture) as image:
            colors = image.convert("RGB").getcolors(2**20) or []
        assert len(colors) > 20  # something is drawn
        assert max(colors)[1] == ground
    if "empty" not in write.__name__:
        assert len(re.findall(rb"/Type\s*/Page\b", browser.print())) >= 3
    assert browser.complaints == []


def test_every_class_of_the_page_has_a_style() -> None:
    folder = Path(writing.__file__).parent
    template, style = (folder / "page.html.jinja").read_text(), (folder / "page.css").read_text()
    names = {name for names in re.findall(r'class="([^"{]*)"', template) for name in names.split()}
    assert "tiles" in names
    assert not {name for name in names if f".{name}" not in style}
