"""How fast the lens is, in headless Chromium: until the first frame is drawn, and while 200 points move.

python -m benchmarks.lens.speed                            writes benchmarks/results/lens.json; half a minute, more on a busy machine
python -m benchmarks.lens.speed --losses Triplet FastAP    prints, and writes nothing
"""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.report.browser import CHROMIUM, Browser

from benchmarks.harness import RESULTS, machine, make_parser, write
from likewise.report.lens import loss_names, write_lens

RESULT = RESULTS / "lens.json"
LOADS = 5
FRAMES = 240
TWO = ["Multi-similarity & Circle"]
"""Two beside each other."""
POINTS = "preset=random&classes=20&each=10"

# the work of a frame is what its callback takes; a page that is asked for a frame as soon as one is shown never waits
WATCH = """
window.watched = { work: [], at: [], first: null };
const before = window.requestAnimationFrame.bind(window);
window.requestAnimationFrame = (draw) => before((now) => {
  const began = performance.now();
  draw(now);
  const ended = performance.now();
  watched.work.push(ended - began);
  watched.at.push(now);
  if (watched.first === null) before(() => (watched.first ??= performance.now()));
});
"""

Row = dict[str, Any]


def main() -> None:
    """Measure, print, and write unless only some losses were asked for."""
    parser = make_parser(__doc__)
    parser.add_argument("--losses", nargs="+", default=None, help="those to play; all without it")
    parser.add_argument("--frames", type=int, default=FRAMES, help="of each loss")
    options = parser.parse_args()
    losses = options.losses or list(loss_names())
    with tempfile.TemporaryDirectory() as folder, Browser(Path(folder) / "profile") as browser:
        page = write_lens(Path(folder) / "lens.html")
        browser.call("Page.addScriptToEvaluateOnNewDocument", source=WATCH)
        browser.size(1280, 900)
        report: Row = {
            "machine": {
                **machine("cpu"),
                "chromium": chromium(),
                "python": platform.python_version(),
                "load": os.getloadavg()[0],
            },
            "page_bytes": page.stat().st_size,
            "command_s": commands(Path(folder)),
            "first_frame_ms": first_frames(browser, page.as_uri()),
            "playing": [
                playing(browser, page.as_uri(), each, options.frames) for each in losses + TWO * (not options.losses)
            ],
        }
    if options.losses is None and options.frames == FRAMES:
        write(report, RESULT)


def chromium() -> str:
    """Its version."""
    told = subprocess.run([str(CHROMIUM), "--version"], capture_output=True, text=True, check=True)
    return told.stdout.strip()


def commands(folder: Path) -> Row:
    """Seconds from the command to the page on disk."""
    program = "from likewise.cli.lens import run; run(['--no-open', '--out', 'lens.html'])"
    taken = []
    for _ in range(LOADS):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", program], cwd=folder, check=True, capture_output=True)
        taken.append(time.perf_counter() - began)
    print(f"the command: {statistics.median(taken):.2f} s, at most {max(taken):.2f} s")
    return {"median": round(statistics.median(taken), 3), "most": round(max(taken), 3)}


def first_frames(browser: Browser, page: str) -> Row:
    """Milliseconds from navigation to the frame after the first one that was drawn: it is on the screen then."""
    taken = []
    for _ in range(LOADS):
        browser.open(page)
        browser.wait("watched.first !== null")
        taken.append(float(browser.ask("watched.first")))
    print(f"first frame: {statistics.median(taken):.0f} ms, at most {max(taken):.0f} ms")
    return {"median": round(statistics.median(taken)), "most": round(max(taken))}


def playing(browser: Browser, page: str, loss: str, frames: int) -> Row:
    """What a frame costs and how often one comes, with 200 points."""
    named = "&beside=".join(quote(each) for each in loss.split(" & "))
    browser.open(f"{page}#{POINTS}&loss={named}")
    browser.frames(10)
    browser.click("#play")
    browser.frames(20)  # compiled by now
    browser.ask("(watched.work.length = watched.at.length = 0, 0)")
    browser.wait(f"watched.work.length >= {frames} || document.querySelector('#play').textContent === 'Play'", 120)
    seen = browser.ask("watched")
    work, at = seen["work"], seen["at"]
    between = [after - before for before, after in pairwise(at)]
    row = {
        "loss": loss,
        "frames": len(work),
        "work_ms": {"median": round(statistics.median(work), 2), "p95": round(quantile(work, 0.95), 2)},
        "between_ms": {"median": round(statistics.median(between), 2), "p95": round(quantile(between, 0.95), 2)},
        "frames_per_second": round(1000 / statistics.mean(between), 1),
    }
    print(
        f"{loss:30} {row['frames_per_second']:5.1f} frames a second; work of a frame: median"
        f" {row['work_ms']['median']:5.1f} ms, p95 {row['work_ms']['p95']:5.1f} ms",
        flush=True,
    )
    return row


def quantile(values: list[float], share: float) -> float:
    """The value that this share is not above."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


if __name__ == "__main__":
    main()
