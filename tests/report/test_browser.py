"""The page in a real browser: it renders, nothing complains, and pointing, tapping and keys work."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from likewise.data import Glyphs
from likewise.report import Compared, Part, write_report
from tests.report.runs import make_part, make_run, open_test

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium to look at the page with")

SCRIPT = """
const errors = [];
addEventListener("error", (event) => errors.push(String(event.message)));
addEventListener("securitypolicyviolation", (event) => errors.push(event.violatedDirective));
addEventListener("load", () => {
  const seen = {};
  const $ = (selector) => document.querySelector(selector);
  const inside = (box, field) => box.left >= field.left && box.right <= field.right && box.top >= field.top && box.bottom <= field.bottom;
  const point = (svg, x, y, type) => {
    const box = svg.getBoundingClientRect();
    const view = svg.viewBox.baseVal;
    const at = { clientX: box.left + (x / view.width) * box.width, clientY: box.top + (y / view.height) * box.height };
    svg.dispatchEvent(new PointerEvent(type, { ...at, pointerType: "mouse", bubbles: true }));
  };
  const key = (element, name) => element.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true }));

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
  const histogram = $(".histogram");
  point(histogram.querySelector("svg"), 200, 100, "pointermove");
  seen.bar = histogram.querySelector(".readout").textContent;

  document.querySelectorAll("details").forEach((each) => (each.open = true));
  seen.width = [document.documentElement.scrollWidth, document.documentElement.clientWidth];
  seen.small = [...document.querySelectorAll("p, td, th, dd, li, figcaption")].filter((each) => parseFloat(getComputedStyle(each).fontSize) < 12).length;
  seen.unnamed = [...document.querySelectorAll("[role=img], [role=application], button, a")]
    .filter((each) => !(each.getAttribute("aria-label") || each.textContent.trim())).length;
  seen.errors = errors;
  document.documentElement.dataset.seen = JSON.stringify(seen);
});
"""


def chromium(folder: Path, page: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    assert CHROMIUM is not None
    fixed = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--hide-scrollbars"]
    fixed += [f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=4000", "--enable-logging=stderr"]
    return subprocess.run(
        [CHROMIUM, *fixed, *flags, page.as_uri()], capture_output=True, text=True, timeout=60, check=True
    )


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Glyphs as an untrained eye sees them: raw pixels, some right and some wrong."""
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
    return write_report(run, parts, comparison=compared, baselines={"noise": {"R@1": 0.02, "MAP@R": 0.01}})


def driven(page: Path, folder: Path, *flags: str) -> dict[str, Any]:
    """What a script sees that points, clicks and types; it is put into a copy of the page, whose policy lets it run."""
    text = page.read_text()
    text = re.sub(r"script-src '[^']*'", "script-src 'unsafe-inline'", text, count=1)
    copy = folder / "driven.html"
    copy.write_text(text.replace("<style>", f"<script>{SCRIPT}</script><style>", 1))
    result = chromium(folder, copy, "--dump-dom", *flags)
    found = re.search(r'data-seen="([^"]*)"', result.stdout)
    assert found is not None, result.stderr
    return dict(json.loads(html.unescape(found[1])))


def test_a_desktop_reader_can_use_it(page: Path, tmp_path: Path):
    seen = driven(page, tmp_path, "--window-size=1280,900")
    assert seen["errors"] == []
    assert seen["panels"] == [[True, False, False], [False, True, False], [False, False, True]]
    assert seen["thumb"][0] > 60
    assert seen["thumb"][1].startswith('url("data:image/webp')
    assert seen["frames"] == ["rgb(35, 122, 59)", "rgb(194, 41, 46)"]
    tip = seen["tip"]
    assert seen["hidden"] is True
    assert tip["hidden"] is False
    assert tip["name"] == tip["expected"]
    assert "its own class" in tip["nearest"] or tip["other"] in tip["nearest"]
    assert tip["image"].startswith('url("data:image/webp')
    assert tip["position"] == tip["expectedPosition"]
    assert tip["inside"]
    assert tip["same"] == 1
    assert seen["left"] is True
    assert seen["walked"]
    assert seen["escaped"] is True
    assert seen["colors"] == [True, True]
    assert re.fullmatch(r"epoch 4: raw 0.25 · a rather-long-name-for-a-run 0.25", seen["readout"])
    assert "of the pairs of one class" in seen["bar"]
    assert seen["unnamed"] == 0


def test_a_phone_shows_everything_without_scrolling_sideways(page: Path, tmp_path: Path):
    # a window of a desktop's Chromium is at least 500 pixels wide: the page stands in a frame of a phone's width
    frame = tmp_path / "phone.html"
    text = re.sub(r"script-src '[^']*'", "script-src 'unsafe-inline'", page.read_text(), count=1)
    (tmp_path / "inner.html").write_text(text.replace("<style>", f"<script>{SCRIPT}</script><style>", 1))
    frame.write_text(
        "<iframe id=f src=inner.html style='width:360px;height:740px;border:0'></iframe><script>"
        "onload = () => setTimeout(() => document.documentElement.dataset.seen = "
        "document.getElementById('f').contentDocument.documentElement.dataset.seen, 500)</script>"
    )
    result = chromium(tmp_path, frame, "--dump-dom", "--allow-file-access-from-files")
    found = re.search(r'data-seen="([^"]*)"', result.stdout)
    assert found is not None, result.stderr
    seen = json.loads(html.unescape(found[1]))
    assert seen["width"] == [360, 360]
    assert seen["tip"]["inside"]
    assert seen["small"] == 0
    assert seen["errors"] == []


@pytest.mark.parametrize(("scheme", "dark"), [("1", False), ("0", True)])
def test_it_is_dark_where_the_reader_wants_it_dark(page: Path, tmp_path: Path, scheme: str, dark: bool):
    """The page itself, unchanged; nothing may appear on the console, least of all a refusal of its own policy."""
    picture = tmp_path / "page.png"
    flags = (f"--screenshot={picture}", "--window-size=1000,800", f"--blink-settings=preferredColorScheme={scheme}")
    result = chromium(tmp_path, page, *flags)
    assert "CONSOLE" not in result.stderr
    with Image.open(picture) as image:
        colors = image.convert("RGB").getcolors(2**20) or []
        assert len(colors) > 20  # something is drawn
        ground = max(colors)[1]
    assert ground == ((19, 21, 24) if dark else (250, 250, 248))


def test_on_paper_every_grid_is_there(page: Path, tmp_path: Path):
    paper = tmp_path / "page.pdf"
    chromium(tmp_path, page, f"--print-to-pdf={paper}", "--no-pdf-header-footer")
    assert paper.read_bytes().startswith(b"%PDF")
    pages = len(re.findall(rb"/Type\s*/Page\b", paper.read_bytes()))
    assert pages >= 4
