"""What the tests of pages share: their elements and text, and a headless Chromium that opens them."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from tests.report.browser import Browser

NASTY = "<b>&\"'</script></style><img src=x onerror=alert(1)>{{ 7*7 }}"


class Elements(HTMLParser):
    """The elements, their attributes and the text of a page."""

    def __init__(self, page: str):
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.text: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        if self.tags[-1:] not in (["script"], ["style"]):
            self.text.append(data)


def text_of(page: str) -> str:
    return " ".join(" ".join(Elements(page).text).split())


def without_time(page: str) -> str:
    return re.sub(r"<time.*?</time>", "", page)


USED = r"""
const errors = [];
addEventListener("error", (event) => errors.push(String(event.message)));
addEventListener("securitypolicyviolation", (event) => errors.push(event.violatedDirective));
addEventListener("load", () => {
  const seen = {};
  const $ = (selector) => document.querySelector(selector);
  const key = (element, name) => element.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true }));
  %s
  document.querySelectorAll("details").forEach((each) => (each.open = true));
  seen.width = [document.documentElement.scrollWidth, document.documentElement.clientWidth];
  seen.small = [...document.querySelectorAll("p, td, th, dd, li, figcaption")].filter((each) => parseFloat(getComputedStyle(each).fontSize) < 12).length;
  seen.unnamed = [...document.querySelectorAll("[role=img], [role=region], [role=application], button, a, input")]
    .filter((each) => !(each.getAttribute("aria-label") || each.textContent.trim() || each.closest("label"))).length;
  seen.errors = errors;
  document.documentElement.dataset.seen = JSON.stringify(seen);
});
"""


def use(browser: Browser, page: str, folder: Path, width: int, script: str) -> dict[str, Any]:
    """What a script sees that points, clicks and types on a screen of this width.

    The script is in a copy of the page whose policy lets it run.
    """
    page = re.sub(r"script-src '[^']*'", "script-src 'unsafe-inline'", page, count=1)
    copy = folder / "used.html"
    copy.write_text(page.replace("<style>", f"<script>{USED % script}</script><style>", 1))
    browser.size(width, 740)
    browser.open(copy.as_uri())
    browser.wait("document.documentElement.dataset.seen")
    return dict(json.loads(browser.ask("document.documentElement.dataset.seen")))
