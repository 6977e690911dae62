"""The page in a real browser, on a real server: upload, walk, filter, why, faults, dark, phone."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from likewise.search import Index
from tests.report.browser import Browser
from tests.search.serve.conftest import Process, Threaded, draw

PICTURES = os.environ.get("LIKEWISE_PICTURES")
"""A folder for pictures of every state, to look at."""

DONE = (
    "document.querySelector('#found').getAttribute('aria-busy') === 'false'"
    " && document.querySelector('#found').dataset.at === location.hash"
)


class Page:
    """The page, and what is looked at on it."""

    def __init__(self, browser: Browser, address: str) -> None:
        self.browser, self.address = browser, address

    def open(self, place: str = "") -> None:
        self.browser.open(self.address + place)
        self.ready()

    def ready(self) -> None:
        self.browser.wait(DONE)
        self.browser.frames()

    def text(self, selector: str) -> str:
        return str(self.browser.ask(f"document.querySelector({json.dumps(selector)}).textContent")).strip()

    def shown(self, selector: str) -> bool:
        return bool(self.browser.ask(f"document.querySelector({json.dumps(selector)}).checkVisibility()"))

    def numbers(self, selector: str = "#found a") -> list[int]:
        return list(
            self.browser.ask(f"[...document.querySelectorAll('{selector}')].map((each) => Number(each.dataset.id))")
        )

    def give(self, file: Path) -> None:
        """Choose a file, as a user does in the dialog."""
        found = self.browser.call("Runtime.evaluate", expression="document.querySelector('#file')")
        self.browser.call("DOM.enable")
        self.browser.call("DOM.setFileInputFiles", files=[str(file)], objectId=found["result"]["objectId"])
        self.browser.frames()

    def picture(self, name: str, folder: Path) -> Image.Image:
        self.browser.wait("[...document.querySelectorAll('#found img')].slice(0, 8).every((each) => each.complete)")
        self.browser.frames()
        place = Path(PICTURES or folder) / f"{name}.png"
        self.browser.picture(place)
        return Image.open(place).convert("RGB")

    def overflow(self) -> int:
        return int(self.browser.ask("document.documentElement.scrollWidth - document.documentElement.clientWidth"))


@pytest.fixture(scope="module")
def server(shapes: Index) -> Iterator[Process]:
    started = Process(str(shapes.folder), "--upload", "0.5")
    yield started
    assert "Traceback" not in started.stop()


@pytest.fixture
def page(browser: Browser, server: Process) -> Iterator[Page]:
    yield Page(browser, server.address)
    assert all(each.startswith((server.address, "blob:", "about:")) for each in browser.requests)


def test_start(page: Page, tmp_path: Path):
    page.open()
    assert page.text("#name") == "shapes"
    assert page.text("#facts") == "48 images · tiny · exact search"
    assert len(page.numbers()) == 48
    assert page.shown("#drop")
    assert not page.shown("#alarm")
    assert len({*page.numbers()}) == 48
    page.browser.wait("!document.querySelector('#map-card').hidden")
    page.picture("home", tmp_path)
    assert page.browser.complaints == []
    unnamed = page.browser.ask(
        "[...document.querySelectorAll('button, a, input, select, canvas')].filter((each) => each.checkVisibility() &&"
        " !(each.getAttribute('aria-label') || each.textContent.trim() || each.labels?.length)).length"
    )
    assert unnamed == 0


def test_upload_results_click_through_and_back(page: Page, shapes: Index, tmp_path: Path):
    file = tmp_path / "mine.png"
    draw("square", "gold", 77).save(file)
    page.open()
    page.give(file)
    page.browser.wait("document.querySelector('#headline').textContent.includes('mine.png')")
    page.ready()
    expected = [number for number, _ in shapes.search(str(file), 24).of(0)]
    assert page.numbers() == expected
    assert page.text("#headline") == "24 look-alikes of mine.png"
    assert page.text("#found .score").startswith(f"{shapes.search(str(file), 1).scores[0, 0]:.3f}")
    page.picture("upload", tmp_path)

    page.browser.click("#found li:nth-child(3) a")
    page.browser.wait("location.hash.startsWith('#/item/')")
    page.ready()
    chosen = expected[2]
    assert page.browser.ask("location.hash") == f"#/item/{chosen}"
    walked = [number for number, _ in shapes.neighbors(chosen, 24).of(0)]
    assert page.numbers() == walked
    assert page.text("#query-path") == shapes.item(chosen).path
    assert page.text("#query-facts dt") == "size"
    page.browser.click("#back")
    page.browser.wait("location.hash.startsWith('#/upload/')")
    page.ready()
    assert page.numbers() == expected
    page.browser.ask("history.forward()")
    page.browser.wait("location.hash.startsWith('#/item/')")
    page.ready()
    assert page.numbers() == walked
    page.browser.press("Escape")
    page.browser.wait("location.hash === '#/'")
    page.ready()
    assert page.shown("#drop")
    assert page.browser.complaints == []


def test_drop_and_paste(page: Page):
    """Files as a browser hands them over: through a DataTransfer."""
    page.open()
    make = """(async (kind) => {
      const canvas = new OffscreenCanvas(60, 40); const pen = canvas.getContext("2d");
      pen.fillStyle = "tomato"; pen.fillRect(10, 5, 30, 30);
      const given = new DataTransfer();
      given.items.add(new File([await canvas.convertToBlob()], kind + ".png", { type: "image/png" }));
      if (kind === "drop") {
        dispatchEvent(new DragEvent("dragenter", { dataTransfer: given }));
        const veiled = !document.querySelector("#veil").hidden;
        dispatchEvent(new DragEvent("drop", { dataTransfer: given }));
        return veiled && document.querySelector("#veil").hidden;
      }
      document.body.dispatchEvent(new ClipboardEvent("paste", { clipboardData: given, bubbles: true }));
      return true;
    })"""
    for kind in ("drop", "paste"):
        assert page.browser.ask(f"{make}('{kind}')")
        page.browser.wait(f"document.querySelector('#headline').textContent.includes('{kind}.png')")
        page.ready()
        assert len(page.numbers()) == 24
    page.browser.ask("document.body.dispatchEvent(new ClipboardEvent('paste', { bubbles: true }))")
    assert page.text("#alarm p") == "The clipboard contains no image."


def test_filter(page: Page, shapes: Index, tmp_path: Path):
    page.open("#/item/5")
    page.browser.press("/")
    page.browser.wait("document.activeElement.id === 'where'")
    page.browser.write('label == "ring" and (size >= 3 or size == 0)')
    page.browser.press("Enter")
    page.browser.wait("location.hash.includes('where')")
    page.ready()
    expected = shapes.neighbors(5, 24, where='label == "ring" and (size >= 3 or size == 0)').of(0)
    assert page.numbers() == [number for number, _ in expected]
    assert page.text("#chips button").startswith('label == "ring" and (')  # an expression that is not a form's
    address = page.browser.ask("location.href")
    page.browser.ask("document.querySelector('#filter-open').click()")
    page.browser.wait("document.querySelector('#expression').open")
    page.browser.ask("document.querySelector('#where').value = 'lable == 3'")
    page.browser.ask("document.querySelector('#tools').requestSubmit()")
    page.browser.wait("!document.querySelector('#where-fault').hidden")
    assert page.text("#where-fault") == (
        "The filter must name columns of the index (id, label, path, size), but it names lable."
    )
    assert page.browser.ask("document.querySelector('#where').getAttribute('aria-invalid')") == "true"
    page.picture("filter", tmp_path)
    page.browser.open(address)  # an address can be kept
    page.ready()
    assert page.numbers() == [number for number, _ in expected]
    page.browser.click("#chips button")
    page.browser.wait("location.hash === '#/item/5'")
    page.ready()
    assert len(page.numbers()) == 24
    page.open("#/?where=size%20%3E%2099")
    assert page.text("#headline") == "0 of 48 match the filter"


def choose(page: Page, row: int, place: int, value: str) -> None:
    """Choose or type a value in a row of the form."""
    page.browser.ask(
        f"(() => {{ const row = document.querySelectorAll('#conditions li')[{row}];"
        f" const field = row.querySelectorAll('select, input')[{place}]; field.value = {json.dumps(value)};"
        " field.dispatchEvent(new Event('change')); })()"
    )


def test_a_form_filters_without_code(page: Page, shapes: Index, tmp_path: Path):
    page.open()
    page.browser.click("#filter-open")
    page.browser.wait("document.querySelector('#conditions select')")
    options = (
        "[...document.querySelectorAll('#conditions select')].map((list) => [...list.options].map((each) => each.text))"
    )
    names, ways, values = page.browser.ask(options)
    assert names == ["label", "size", "file path"]
    assert ways == ["is", "is not", "contains", "starts with"]
    assert values == ["choose …", "disc (12)", "ring (12)", "square (12)", "triangle (12)"]
    choose(page, 0, 2, "ring")
    page.browser.click("#condition-add")
    choose(page, 1, 0, "size")
    choose(page, 1, 1, "least")
    choose(page, 1, 2, "3")
    page.picture("form", tmp_path)
    page.browser.click("#tools .strong")
    page.browser.wait("location.hash.includes('where')")
    page.ready()
    assert page.numbers() == shapes.matching('label == "ring" and size >= 3').tolist()
    chips = "[...document.querySelectorAll('#chips button')].map((each) => each.textContent)"
    assert page.browser.ask(chips) == ["label is ring ×", "size is at least 3 ×"]
    page.browser.click("#chips button")
    page.browser.wait("!location.hash.includes('label')")
    page.ready()
    assert page.numbers() == shapes.matching("size >= 3").tolist()
    inverse = (
        "import('/filter.js').then(({ parse, compile }) => ['label == \"a \\\\\" and b\" and size >= -2.5', 'not flag',"
        " 'like(path, \"*x*\")', 'like(path, \"x*\")', 'column(\"a b\") != 3', 'a or b', '(a)', 'like(path, \"a?*\")', 'size == ']"
        ".map((each) => { const read = parse(each); return read && compile(read) === each; }))"
    )
    assert page.browser.ask(inverse) == [True] * 5 + [None] * 4
    page.open("#/clusters")
    assert not page.shown("#filter-open")


def test_an_index_without_labels(browser: Browser, tmp_path: Path):
    """No chip or column of labels, a file's name on the map, and no words of a filter where there is none."""
    index = Index.create(tmp_path / "plain.index", dim=4)
    index.add(np.random.default_rng(0).normal(size=(60, 4)), [f"IMG_{n:04d}.jpg" for n in range(60)])
    with Threaded(index) as started:
        page = Page(browser, started.address)
        page.open()
        assert page.shown("#more")
        assert page.text("#drop-hint") == "this collection has vectors but no model: search with one of its pictures"
        browser.click("#filter-open")
        browser.wait("document.querySelector('#conditions select')")
        assert browser.ask("[...document.querySelectorAll('#conditions select')].map((each) => each.value)") == [
            "path",
            "contains",
        ]
        browser.click("#tools .strong")  # nothing was typed
        assert browser.ask("location.hash") in ("", "#/")
        browser.ask("document.querySelector('#map').scrollIntoView()")
        x, y = browser.ask(
            "fetch('/api/map').then((answer) => answer.json()).then(({ x, y }) => { const box ="
            " document.querySelector('#map').getBoundingClientRect();"
            " return [box.left + 14 + (box.width - 28) * x[9], box.top + 14 + (box.height - 28) * (1 - y[9])]; })"
        )
        browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        browser.wait("document.querySelector('#tip span').textContent === 'IMG_0009.jpg'")


def test_duplicates_and_clusters(page: Page, shapes: Index, tmp_path: Path):
    page.open("#/duplicates?threshold=0.99")
    expected = shapes.duplicates(0.99)
    sizes = "[...document.querySelectorAll('.group h2')].map((each) => each.textContent)"
    assert page.browser.ask(sizes) == [f"{len(each)} similar pictures" for each in expected]
    assert page.text("#headline").startswith(f"{len(expected)} group")
    assert page.numbers(".group:first-child a") == expected[0][:12]
    if len(expected[0]) > 12:
        page.browser.click(".group > button")
        page.browser.wait(f"document.querySelectorAll('.group:first-child a').length === {len(expected[0])}")
    page.picture("duplicates", tmp_path)
    page.open("#/duplicates?threshold=1")
    assert page.text("#headline") == "No two pictures have a similarity of 1.00 or more"
    page.browser.click("#views a:nth-child(3)")
    page.browser.wait("location.hash === '#/clusters'")
    page.ready()
    owners = shapes.clusters(12)
    assert page.numbers(".group:first-child a") == shapes.ids[owners == 0].tolist()[:12]
    assert page.text("#headline") == "The collection in 12 clusters"
    page.picture("clusters", tmp_path)
    page.browser.click(".group:first-child a")  # a picture of a group is a query like any other
    page.browser.wait("location.hash.startsWith('#/item/')")
    page.ready()
    assert page.shown("#found")
    assert not page.shown("#groups")


def test_the_original_is_one_click_away(page: Page, shapes: Index, tmp_path: Path):
    page.open("#/item/7")
    page.browser.click("#open-original")
    page.browser.wait("document.querySelector('#original-size').textContent.includes('pixels')")
    assert page.text("#original-size") == "120 × 90 pixels"
    assert page.browser.ask("document.querySelector('#original-link').href").endswith("/api/items/7/image")
    assert not page.shown("#original-zoom")  # a small picture fits as it is
    page.browser.press("Escape")
    page.browser.ask("document.querySelector('#found a').focus()")
    page.browser.press("o")
    first = shapes.item(page.numbers()[0])
    page.browser.wait(f"document.querySelector('#original-link').href.endsWith('/{first.id}/image')")
    assert page.text("#original-title") == first.label


def test_keys(page: Page):
    page.open("#/item/5")
    page.browser.ask("document.querySelector('#found a').focus()")
    place = "[...document.querySelectorAll('#found a')].indexOf(document.activeElement)"
    columns = page.browser.ask(
        "getComputedStyle(document.querySelector('#found')).gridTemplateColumns.split(' ').length"
    )
    seen = []
    for key in ("ArrowRight", "ArrowDown", "ArrowLeft", "ArrowUp", "ArrowUp", "End", "ArrowRight", "Home"):
        page.browser.press(key)
        seen.append(page.browser.ask(place))
    assert seen == [1, 1 + columns, columns, 0, 0, 23, 23, 0]
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    assert page.browser.ask(outline) == "solid"
    page.browser.press("ArrowRight")
    chosen = page.browser.ask("document.activeElement.dataset.id")
    page.browser.press("Enter")
    page.browser.wait(f"location.hash === '#/item/{chosen}'")
    assert page.browser.ask("document.querySelectorAll('#found a[tabindex=\"0\"]').length") == 1


def test_why(page: Page, tmp_path: Path):
    page.open("#/item/5")
    page.browser.ask("document.querySelector('#found a').focus()")
    page.browser.press("w")
    page.browser.wait("document.querySelector('#why').open && !document.querySelector('#why-legend').hidden")
    score = float(page.text("#found .score"))
    assert abs(float(page.text("#why-lead b")) - score) < 0.0021
    page.picture("why", tmp_path)
    differ = """(() => { const all = document.querySelectorAll("#why canvas"); const out = [];
      for (const each of all) { const d = each.getContext("2d").getImageData(0, 0, each.width, each.height).data;
        let sum = 0; for (let i = 0; i < d.length; i += 4) sum += d[i] + 3 * d[i + 1] + 7 * d[i + 2]; out.push(sum); }
      return out; })()"""
    before = page.browser.ask(differ)
    page.browser.ask(
        "(() => { const heat = document.querySelector('#heat'); heat.value = 0; heat.dispatchEvent(new Event('input')); })()"
    )
    after = page.browser.ask(differ)
    assert before[0] != after[0]
    assert before[1] != after[1]
    page.browser.press("Escape")
    page.browser.wait("!document.querySelector('#why').open")
    assert page.browser.ask("location.hash") == "#/item/5"  # Escape closed the dialog alone


def test_the_map_leads_to_items(page: Page, shapes: Index):
    page.open("#/item/5")
    page.browser.wait("!document.querySelector('#map-card').hidden")
    page.browser.frames()
    assert "the query lies" in page.browser.ask("document.querySelector('#map').getAttribute('aria-label')")
    drawn = page.browser.ask(
        "fetch('/api/map').then((answer) => answer.json()).then(({ x, y }) => { const box ="
        " document.querySelector('#map').getBoundingClientRect();"
        " return [box.left + 14 + (box.width - 28) * x[9], box.top + 14 + (box.height - 28) * (1 - y[9])]; })"
    )
    page.browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=drawn[0], y=drawn[1])
    page.browser.wait("!document.querySelector('#tip').hidden")
    pointed = int(page.browser.ask("document.querySelector('#tip').dataset.id"))
    assert page.text("#tip span") == shapes.item(pointed).label
    page.browser.drag(tuple(drawn), tuple(drawn))
    page.browser.wait(f"location.hash === '#/item/{pointed}'")


def test_faults_are_sentences(page: Page, tmp_path: Path):
    (tmp_path / "notes.png").write_text("I am a text, whatever my name says.")
    (tmp_path / "empty.jpg").write_bytes(b"")
    (tmp_path / "large.jpg").write_bytes(bytes(700_000))
    page.open()
    page.give(tmp_path / "notes.png")
    page.browser.wait("!document.querySelector('#alarm').hidden")
    page.ready()
    assert page.text("#alarm p") == "The image must be a JPEG, PNG, WebP, GIF, BMP, TIFF or AVIF file, but it is not."
    assert not page.shown("#again")
    assert not page.shown("#query-image")
    assert page.text("#headline") == "No look-alikes"
    assert not page.shown("#more")  # there is nothing to append the collection to
    assert page.numbers() == []
    page.picture("text-file", tmp_path)
    page.give(tmp_path / "empty.jpg")
    page.browser.wait("document.querySelector('#alarm p').textContent.includes('empty')")
    page.give(tmp_path / "large.jpg")
    page.browser.wait("document.querySelector('#alarm p').textContent.includes('large')")
    assert page.text("#alarm p") == "large.jpg has 0.7 MB, but the limit is 0.5 MB: make it smaller."
    page.open("#/item/4711")
    assert page.text("#alarm p") == "There is no item 4711 in shapes."
    page.open("#/upload/7")
    assert "drop it again" in page.text("#alarm p")


def test_a_token_is_asked_for_and_a_server_that_has_gone(browser: Browser, shapes: Index, tmp_path: Path):
    with Threaded(shapes, token="open-sesame") as started:
        page = Page(browser, started.address)
        browser.open(started.address)
        browser.wait("document.querySelector('#token').open")
        browser.ask("document.querySelector('#token-word').focus()")
        browser.write("guess")
        browser.press("Enter")
        browser.wait("document.querySelector('#token').open && !document.querySelector('#token-fault').hidden")
        browser.picture(Path(PICTURES or tmp_path) / "token.png")
        browser.write("open-sesame")
        browser.press("Enter")
        page.ready()
        assert len(page.numbers()) == 48
        browser.wait("document.querySelector('#found img').naturalWidth > 0")  # pictures need it, too
    browser.click("#found a")
    browser.wait("!document.querySelector('#alarm').hidden")
    assert page.text("#alarm p") == "The server does not answer. Is likewise serve still running?"
    assert page.shown("#again")
    page.picture("gone", tmp_path)
    browser.ask("sessionStorage.clear()")


def test_dark_and_phone(page: Page, tmp_path: Path):
    for scheme, phone in (("dark", False), ("light", True), ("dark", True)):
        if phone:
            page.browser.size(390, 844, phone=True, scale=2)
        page.browser.prefers(color_scheme=scheme)
        for name, place in (("home", ""), ("item", "#/item/7")):
            page.open(place)
            image = page.picture(f"{scheme}-{'phone' if phone else 'desk'}-{name}", tmp_path)
            ground = image.getpixel((3, image.height - 3))
            assert (sum(ground) < 150) == (scheme == "dark")  # type: ignore[arg-type]
            assert page.overflow() <= 0
        if phone:
            first = page.browser.ask("document.querySelector('#found li').getBoundingClientRect().top")
            assert first < 844 / 2  # the query and one row of controls come before the pictures
            cut = "[...document.querySelectorAll('.named *')].filter((each) => each.scrollWidth > each.clientWidth).length"
            assert page.browser.ask(cut) == 0
    assert page.browser.complaints == []


def test_the_api_is_described_without_help_from_outside(page: Page, tmp_path: Path):
    page.browser.open(page.address + "docs")
    page.browser.wait("document.querySelectorAll('.operation').length === 13")
    page.browser.ask("document.querySelectorAll('details').forEach((each) => (each.open = true))")
    assert "k-reciprocal" in page.text("#list")
    assert page.overflow() <= 0
    assert page.browser.complaints == []
