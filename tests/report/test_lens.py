"""The lens: one file that fetches nothing, and in a real browser what it says is what the library computes."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
import torch
from PIL import Image
from torch import Tensor

from likewise.analysis.catalog import catalog
from likewise.analysis.weights import pair_weights, weigh
from likewise.losses import ContrastiveLoss, MultiSimilarityLoss
from likewise.report.lens import loss_names, write_lens
from tests.report.browser import Browser

PLAIN = Path(__file__).with_name("lens_losses.js").read_text()
"""Three losses in JavaScript, written by hand, so that the page is tested by itself."""


# ---- the file


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_lens(tmp_path_factory.mktemp("lens") / "lens.html").read_text()


def test_it_fetches_nothing(text: str):
    addresses = set(re.findall(r"https?://[^\"'\s<>)\\]+", text))
    assert addresses <= {"http://www.w3.org/1998/Math/MathML"}  # the name of a language, not a place
    assert not re.search(r"<(?:link|img|script|iframe|source)\b[^>]*\b(?:src|href)=\"(?!data:)", text)
    assert "@import" not in text
    assert not re.search(r"\b(?:fetch|eval|Function|importScripts|XMLHttpRequest|WebSocket)\s*\(", text)


def test_nothing_runs_but_what_its_policy_names(text: str):
    [policy] = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]+)"', text)
    rules = dict(each.strip().split(" ", 1) for each in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert "unsafe" not in policy
    for rule, element in (("script-src", "script"), ("style-src", "style")):
        inside = re.findall(rf"<{element}>(.*?)</{element}>", text, re.DOTALL)
        digests = [hashlib.sha256(each.encode()).digest() for each in inside]
        assert [f"'sha256-{base64.b64encode(each).decode()}'" for each in digests] == rules[rule].split()
    assert not re.search(r"<[^>]+\s(?:on\w+|style)=", re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL))


def test_every_loss_is_on_it(text: str):
    assert dict(loss_names()) == {name: entry.kind.__name__ for name, entry in catalog().items()}
    for name in catalog():
        assert json.dumps(name) in text or f"'{name}'" in text


def test_the_same_bytes_and_nothing_left_beside(tmp_path: Path):
    first, second = (write_lens(tmp_path / name, ["Contrastive"], PLAIN) for name in ("a.html", "b.html"))
    assert first.read_bytes() == second.read_bytes()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.html", "b.html"]
    assert "<title>Contrastive · likewise lens</title>" in first.read_text()


def test_what_is_refused(tmp_path: Path):
    with pytest.raises(ValueError, match="losses must be names of losses on the page, but one of them is 'Zebra'"):
        write_lens(tmp_path / "lens.html", ["Zebra"], PLAIN)
    with pytest.raises(ValueError, match="scripts must not contain </script"):
        write_lens(tmp_path / "lens.html", scripts=PLAIN + '"</script>"')
    assert not list(tmp_path.iterdir())


# ---- in a browser


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_lens(tmp_path_factory.mktemp("lens") / "lens.html", scripts=PLAIN).as_uri()


@pytest.fixture
def lens(browser: Browser, page: str) -> Iterator[Lens]:
    yield Lens(browser, page)
    assert browser.complaints == []
    assert {each.partition("#")[0] for each in browser.requests} <= {page, "about:blank"}


class Lens:
    """What a reader sees and does."""

    def __init__(self, browser: Browser, page: str) -> None:
        self.browser, self.page = browser, page

    def open(self, link: str = "") -> None:
        self.browser.open(self.page + link)
        self.browser.wait("document.querySelector('.says')?.textContent")

    def text(self, selector: str) -> str:
        self.browser.frames()
        return str(self.browser.ask(f"document.querySelector({json.dumps(selector)}).textContent"))

    def numbers(self, lane: int = 0) -> list[str]:
        """The loss, pairs, the share without weight, what the heaviest tenth carries, the gradient's norm, the rate."""
        self.browser.frames()
        said = f"[...document.querySelectorAll('.lane')[{lane}].querySelectorAll('.says b')].map((b) => b.textContent)"
        return [str(each).replace("−", "-") for each in self.browser.ask(said)]

    def value(self, lane: int = 0) -> float:
        return float(self.numbers(lane)[0])

    def point(self, lane: int = 0) -> tuple[str, int]:
        """The selected point and its angle in degrees."""
        self.browser.frames()
        said = str(self.browser.ask(f"document.querySelectorAll('.ring figcaption')[{lane}].textContent"))
        found = re.match(r"(.+?) at (\d+)°", said)
        assert found is not None, said
        return found[1], int(found[2])

    def angles(self, preset: str = "clusters", classes: int = 4, each: int = 6, seed: int = 1) -> Tensor:
        made = self.browser.ask(f"[...Batch.anglesOf({preset!r}, {classes}, {each}, {seed})]")
        return torch.tensor(made, dtype=torch.float64)

    def place(self, degrees: float) -> tuple[float, float]:
        """Where on the window an angle of the first circle is."""
        x, y = self.browser.ask(
            "(() => { const c = document.querySelector('.ring canvas'); c.scrollIntoView({block: 'center'});"
            f" const b = c.getBoundingClientRect(); const [x, y] = Draw.spot(Draw.frame(c), {math.radians(degrees)});"
            " return [b.left + x, b.top + y]; })()"
        )
        return float(x), float(y)

    def link(self) -> dict[str, str]:
        """What the address says after a moment."""
        self.browser.ask("new Promise((done) => setTimeout(done, 400))")
        return {name: each[0] for name, each in parse_qs(str(self.browser.ask("location.hash"))[1:]).items()}


def on_circle(angles: Tensor) -> Tensor:
    return torch.stack([angles.cos(), angles.sin()], dim=1)


def near(said: str, value: float) -> bool:
    """Whether a number on the page is a value, to the digits that are shown."""
    return math.isclose(float(said.rstrip("%")), value, rel_tol=0.006, abs_tol=0.6 if said.endswith("%") else 1e-12)


def test_numbers_are_those_of_the_library(lens: Lens):
    lens.open("#loss=Contrastive&negative_margin=0.2&preset=random&classes=3&each=5&seed=4")
    embeddings, labels = on_circle(lens.angles("random", 3, 5, 4)), torch.arange(15) // 5
    loss = ContrastiveLoss(negative_margin=0.2)
    weighing = weigh(loss, embeddings, labels)
    pairs = ~torch.eye(15, dtype=torch.bool)
    weights = pair_weights(loss, embeddings, labels)[pairs].sort(descending=True).values
    value, count, zero, heaviest, norm, _ = lens.numbers()
    assert near(value, float(weighing.value))
    assert count == "210"
    assert near(zero, 100 * float((weights == 0).double().mean()))
    assert near(heaviest, 100 * float(weights[:21].sum() / weights.sum()))
    assert near(norm, float(weighing.gradient.norm()))  # of unit vectors and a cosine: all along the circle


def test_forces_of_a_point_add_up_to_the_gradient(lens: Lens):
    lens.open("#loss=Multi-similarity&preset=random&classes=3&each=5&seed=4&point=7")
    angles = lens.angles("random", 3, 5, 4)
    gradient = weigh(MultiSimilarityLoss(), on_circle(angles), torch.arange(15) // 5).gradient[7]
    along = float(gradient[1] * angles[7].cos() - gradient[0] * angles[7].sin())
    said = lens.text(".ring figcaption")
    parts = [
        float(size.replace("−", "-")) * (1 if way == "counter-clockwise" else -1)
        for way, size in re.findall(r"turn it ((?:counter-)?clockwise) \(([^)]+)\)", said)
    ]
    assert len(parts) == 2
    assert sum(parts) == pytest.approx(-along, rel=0.02, abs=1e-4)


def test_a_tour_of_six_steps_opens_the_page(lens: Lens):
    lens.open()
    titles, states = [], []
    for place in range(6):
        assert lens.text("#guide-place") == f"{place + 1} of 6"
        titles.append(lens.text("#guide-title"))
        states.append(lens.link())
        outlined = lens.browser.ask("document.querySelectorAll('.pointed').length")
        assert outlined == 1
        if titles[-1] == "Training follows the arrows":
            before = lens.value()
            lens.browser.click("#play")
            lens.browser.wait("+document.querySelector('#count').textContent.slice(5) > 40")
            lens.browser.click("#play")
            assert lens.value() < before
        assert lens.browser.ask("document.querySelector('.tune').checkVisibility()") == (place == 5)
        lens.browser.click("#guide-next")
    assert len(set(titles)) == 6
    assert states[0]["loss"] == "Contrastive"
    assert states[5]["beside"] == "Multi-similarity"
    assert lens.browser.ask("document.querySelector('#guide').hidden") is True
    lens.browser.click("#tour")
    assert lens.text("#guide-place") == "1 of 6"
    lens.browser.click("#guide-skip")
    lens.open("#loss=Contrastive")  # a link shows what it says
    assert lens.browser.ask("document.querySelector('#guide').hidden") is True


def test_a_loss_is_found_by_searching(lens: Lens):
    lens.open("#loss=Multi-similarity")
    lens.browser.click(".chosen")
    assert [lens.browser.ask(f"document.querySelectorAll('.options')[0].children[{n}].ariaLabel") for n in (0, 1)] == [
        "pairs",
        "proxies",
    ]
    lens.browser.write("gathers its class")  # words of its description
    lens.browser.press("Enter")
    assert lens.text(".chosen") == "Proxy-Anchor"
    assert "24 points of 4 classes and 4 proxies" in lens.browser.ask(
        "document.querySelector('.ring canvas').getAttribute('aria-label')"
    )
    assert lens.link() == {"loss": "Proxy-Anchor"}
    lens.browser.click(".chosen")
    lens.browser.write("zebra")
    lens.browser.press("Enter")  # nothing to choose
    lens.browser.press("Escape")
    assert lens.text(".chosen") == "Proxy-Anchor"
    assert lens.browser.ask("document.activeElement.className") == "chosen"


def test_a_point_is_dragged(lens: Lens):
    lens.open("#loss=Contrastive")
    before, degrees = lens.value(), torch.rad2deg(lens.angles())
    lens.browser.drag(lens.place(float(degrees[6])), lens.place(float(degrees[6]) + 90))
    name, at = lens.point()
    assert name == "B1"
    assert abs((at - float(degrees[6]) - 90 + 180) % 360 - 180) < 2
    assert lens.value() != before
    moved = [float(each) for each in lens.link()["points"].split()]
    others = [n for n in range(24) if n != 6]
    assert torch.allclose(torch.tensor(moved)[others] % 360, degrees.float()[others] % 360, atol=0.01)


def test_a_finger_moves_a_point_and_not_the_page(lens: Lens):
    lens.browser.size(390, 844, phone=True)
    lens.open("#loss=Multi-similarity")
    degrees = float(torch.rad2deg(lens.angles())[12])
    start, end, scrolled = lens.place(degrees), lens.place(degrees + 60), lens.browser.ask("scrollY")
    before = lens.value()
    lens.browser.swipe(start, end)
    name, at = lens.point()
    assert name == "C1"
    assert abs((at - degrees - 60 + 180) % 360 - 180) < 3
    assert lens.value() != before
    assert lens.browser.ask("scrollY") == scrolled


def test_it_works_by_keyboard_alone(lens: Lens):
    lens.open("#loss=Proxy-Anchor")
    press = lens.browser.press
    for _ in range(30):
        press("Tab")
        if lens.browser.ask("document.activeElement.tagName") == "CANVAS":
            break
    first, start = lens.point()
    assert first == "A1"
    press("ArrowLeft")
    assert lens.point() == ("A1", (start + 2) % 360)
    press("ArrowRight", shift=True)
    assert lens.point() == ("A1", (start - 8) % 360)
    press("ArrowDown")
    assert lens.point()[0] == "A2"
    assert lens.text("#status").startswith("A2 at ")
    press("ArrowUp")
    press("ArrowUp")
    assert lens.point()[0] == "proxy D"
    press("Home")
    before = lens.value()
    press("+")
    press("+")
    assert lens.text("#count") == "step 2"
    assert lens.value() < before
    press("-")
    assert lens.text("#count") == "step 1"
    press("0")
    assert lens.text("#count") == "step 0"
    assert lens.value() == before
    press(" ")
    assert lens.text("#play") == "Pause"
    press(" ")
    assert lens.text("#play") == "Play"
    press("?")
    assert lens.browser.ask("document.querySelector('#keys').open") is True
    press("Escape")
    assert lens.browser.ask("document.querySelector('#keys').open") is False
    seed = lens.browser.ask("document.querySelector('#seed input[type=number]').value")
    press("s")
    assert lens.browser.ask("document.querySelector('#seed input[type=number]').value") == str(int(seed) + 1)


def test_hyper_parameters_are_turned(lens: Lens):
    lens.open("#loss=Multi-similarity")
    embeddings, labels = on_circle(lens.angles()), torch.arange(24) // 6
    beta = "document.querySelectorAll('.lane .tune .slider')[1]"
    lens.browser.ask(f"{beta}.querySelector('input[type=range]').focus()")
    lens.browser.press("Home")  # a logarithmic scale ends where the range does
    assert near(lens.numbers()[0], float(MultiSimilarityLoss(beta=1.0)(embeddings, labels)))
    lens.browser.ask(f"{beta}.querySelector('input[type=number]').select()")
    lens.browser.ask(f"{beta}.querySelector('input[type=number]').focus()")
    lens.browser.write("12.5")
    assert near(lens.numbers()[0], float(MultiSimilarityLoss(beta=12.5)(embeddings, labels)))
    assert lens.link() == {"loss": "Multi-similarity", "beta": "12.5"}
    lens.browser.ask(f"{beta}.querySelector('.reset').click()")
    assert near(lens.numbers()[0], float(MultiSimilarityLoss()(embeddings, labels)))
    assert lens.link() == {"loss": "Multi-similarity"}


def test_a_second_loss_beside_the_first(lens: Lens):
    lens.open("#loss=Multi-similarity&preset=hard")
    lens.browser.press("+")
    assert lens.text("#count") == "step 1"
    lens.browser.click("#pickers .picker:nth-child(2) .chosen")
    lens.browser.write("contra")
    lens.browser.press("Enter")
    lens.browser.frames()
    embeddings, labels = on_circle(lens.angles("hard")), torch.arange(24) // 6
    one, other = (weigh(loss, embeddings, labels).gradient for loss in (MultiSimilarityLoss(), ContrastiveLoss()))
    agreement = float((one * other).sum() / one.norm() / other.norm())
    assert lens.text("#count") == "step 0"  # both begin at the same place
    assert lens.text("#together b") == f"{agreement:.2f}"
    assert near(lens.numbers(1)[0], float(ContrastiveLoss()(embeddings, labels)))
    lens.browser.click("#play")
    lens.browser.wait("+document.querySelector('#count').textContent.slice(5) > 20")
    lens.browser.click("#play")
    assert "which differ from" in lens.text("#together")  # each goes where its own loss takes it
    lens.browser.click(".remove:not([hidden])")
    lens.browser.frames()
    assert lens.browser.ask("document.querySelector('#together').hidden") is True
    assert lens.link() == {"loss": "Multi-similarity", "preset": "hard"}


@pytest.mark.parametrize("name", ["Contrastive", "Multi-similarity", "Proxy-Anchor"])
def test_playing_lowers_the_loss(lens: Lens, name: str):
    lens.open(f"#loss={name}&preset=random&classes=3&each=5")
    before, where = lens.value(), lens.point()
    lens.browser.click("#play")
    lens.browser.wait("+document.querySelector('#count').textContent.slice(5) > 60")
    lens.browser.click("#play")
    assert lens.value() < 0.9 * before
    assert lens.point()[1] != where[1]
    lens.browser.click("#restart")
    assert lens.value() == before
    assert lens.point() == where


def test_a_step_is_gradient_descent_on_the_circle(lens: Lens):
    lens.open("#loss=Multi-similarity&preset=random&classes=3&each=5&speed=5")
    angles, labels = lens.angles("random", 3, 5, 1), torch.arange(15) // 5
    rate = float(lens.numbers()[-1])
    embeddings = on_circle(angles)
    gradient = weigh(MultiSimilarityLoss(), embeddings, labels).gradient
    after = torch.nn.functional.normalize(embeddings - rate * gradient)
    lens.browser.press("+")
    assert near(lens.numbers()[0], float(MultiSimilarityLoss()(after, labels)))


def test_a_link_brings_everything_back(lens: Lens):
    link = "#loss=Multi-similarity&beta=20&beside=Proxy-Anchor&beside.alpha=16&preset=outlier&classes=3&each=4&seed=9&point=5"
    lens.open(link)
    numbers, where = lens.numbers(), lens.point()
    lens.browser.drag(lens.place(where[1]), lens.place(where[1] + 40))
    moved, at, said = lens.numbers(), lens.point(), lens.link()
    assert moved != numbers
    assert {name: said[name] for name in said if name != "points"} == {
        name: each[0] for name, each in parse_qs(link[1:]).items()
    }
    kept = lens.browser.ask("location.hash")
    lens.open("#loss=Contrastive")
    assert lens.numbers() != moved
    lens.open(kept)
    assert lens.numbers() == moved
    assert lens.numbers(1)[0] == lens.numbers(1)[0]
    assert abs(lens.point()[1] - at[1]) <= 1
    lens.browser.ask(f"(location.hash = {link!r}, 0)")  # the same page, another link
    lens.browser.frames(4)
    assert lens.numbers() == numbers
    lens.open("#loss=Zebra&classes=-3&each=1e9&speed=x&points=1+2&alpha=nonsense")
    assert lens.text("#status") == "There is no loss Zebra on this page."
    assert math.isfinite(lens.value())


def test_a_phone_shows_everything_without_scrolling_sideways(lens: Lens):
    lens.browser.size(360, 740, phone=True)
    for link in ("#loss=Contrastive", "#loss=Multi-similarity&beside=Proxy-Anchor&classes=20&each=10&preset=random"):
        lens.open(link)
        lens.browser.ask("(document.querySelector('#batch').open = true, 0)")
        lens.browser.frames()
        width = "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
        assert lens.browser.ask(width) == [360, 360]
        outside = (
            "[...document.querySelectorAll('body *')].filter((e) => e.checkVisibility() && e.getClientRects().length"
            " && !e.closest('.away, dialog, template, .formula, h2') && e.getBoundingClientRect().right > 360.5)"
            ".map((e) => e.outerHTML.slice(0, 80))"
        )
        assert lens.browser.ask(outside) == []
        small = (
            "[...document.querySelectorAll('button, select')].filter((e) => e.checkVisibility() && e.offsetHeight < 28)"
        )
        assert lens.browser.ask(f"{small}.map((e) => e.outerHTML)") == []
    lens.browser.click("#pickers .chosen")
    assert lens.browser.ask(width) == [360, 360]  # the list of losses fits, too


def test_dark_where_the_reader_wants_it_dark(lens: Lens, tmp_path: Path):
    def extremes() -> tuple[Any, int, int]:
        """The ground, and the darkest and the brightest on the circle."""
        lens.browser.picture(tmp_path / "page.png")
        box = "(({left, top, right, bottom}) => [left, top, right, bottom])(document.querySelector('.ring').getBoundingClientRect())"
        with Image.open(tmp_path / "page.png") as image:
            gray = image.convert("L").crop([int(each) for each in lens.browser.ask(box)])
            return image.convert("RGB").getpixel((1, 1)), *gray.getextrema()

    lens.open()
    ground, darkest, _ = extremes()
    assert ground == (250, 250, 248)
    assert darkest < 80
    lens.browser.prefers(color_scheme="dark")  # it changes while the page is open
    lens.browser.frames(4)
    ground, _, brightest = extremes()
    assert ground == (19, 21, 24)
    assert brightest > 200


def test_little_motion_for_those_who_want_little(lens: Lens):
    lens.browser.prefers(reduced_motion="reduce")
    lens.open("#loss=Multi-similarity&preset=random")
    lens.browser.ask(
        "(window.drawn = new Set(), new MutationObserver(([each]) => drawn.add(each.target.textContent))"
        ".observe(document.querySelector('#count'), {childList: true}), 0)"
    )
    lens.browser.click("#play")
    lens.browser.wait("+document.querySelector('#count').textContent.slice(5) >= 45")
    lens.browser.click("#play")
    taken = int(lens.text("#count").split()[1])
    assert taken % 15 == 0
    assert lens.browser.ask("drawn.size") <= taken / 15 + 1


def test_the_hardest_batches_break_nothing(lens: Lens):
    for link in (
        "#loss=Multi-similarity&preset=collapsed&classes=1&each=1",  # no pair at all
        "#loss=Contrastive&preset=collapsed&classes=5&each=1",  # no positive
        "#loss=Contrastive&preset=hard&classes=1&each=7",  # no negative
        "#loss=Proxy-Anchor&preset=outlier&classes=20&each=10",
    ):
        lens.open(link)
        lens.browser.press("+")
        lens.browser.press("+")
        assert all(math.isfinite(float(each.rstrip("%").replace(",", ""))) for each in lens.numbers()), link


# ---- the losses of the library, on the page


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_lens(tmp_path_factory.mktemp("lens") / "lens.html").as_uri()


LOOK_AT_ALL = """(async () => {
  const $ = (selector) => document.querySelector(selector);
  const frame = () => new Promise(requestAnimationFrame);
  const numbers = () => [...document.querySelectorAll(".says b")].map((each) => parseFloat(each.textContent.replace(/,/g, "").replace(/−/g, "-")));
  const seen = {};
  for (const name of Object.keys(LENS)) {
    location.hash = `preset=random&classes=3&each=4&loss=${encodeURIComponent(name)}`;
    while ($(".chosen").textContent !== name) await frame();
    for (let k = 0; k < 2; k++) await frame();
    const before = numbers();
    $("#step").click();
    for (let k = 0; k < 2; k++) await frame();
    seen[name] = [before, numbers(), $(".formula").textContent];
  }
  return seen;
})()"""


def test_every_loss_of_the_library_can_be_looked_at(browser: Browser, whole: str):
    browser.complaints.clear()
    browser.size(1280, 900)
    lens = Lens(browser, whole)
    lens.open()
    assert sorted(
        browser.ask(
            "[...document.querySelectorAll('.picker')[0].querySelectorAll('[data-name]')].map((e) => e.dataset.name)"
        )
    ) == sorted(catalog())
    seen = browser.ask(LOOK_AT_ALL)
    assert list(seen) == list(catalog())
    for name, (before, after, formula) in seen.items():
        assert all(math.isfinite(float(each)) for each in (*before, *after)), name
        assert before[1] in (132, 36, 108, 360)  # pairs of 12 points, or of 12 points and their proxies
        # the weights of the ranked list grow so fast that a step of the page passes the minimum
        assert after[0] <= before[0] * (1.05 if name == "Ranked list" else 1.01) + 1e-9, name
        assert "\\" not in formula, name
    assert browser.complaints == []


def test_centers_are_as_many_as_asked_for(browser: Browser, whole: str):
    browser.complaints.clear()
    lens = Lens(browser, whole)
    lens.open("#loss=SoftTriple&classes=3&each=4&point=40")  # a proxy, of ten for each class
    assert lens.point()[0] == "proxy C9"
    assert lens.numbers()[1] == str(12 * 30)
    browser.ask("(location.hash = 'loss=SoftTriple&classes=3&each=4&centers=2', 0)")
    browser.wait("document.querySelector('.says').textContent.includes(' 72 pairs')")
    centers = "[...document.querySelectorAll('.tune .slider')].find((each) => each.textContent.startsWith('centers'))"
    browser.ask(f"{centers}.querySelector('input').focus()")
    browser.press("Home")
    assert lens.numbers()[1] == str(12 * 3)
    browser.press("+")  # a slider is no place for it
    assert lens.text("#count") == "step 0"
    assert browser.complaints == []
