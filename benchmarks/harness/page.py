"""Pages of the documentation: blocks between markers, numbers, tables, figures."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[2] / "docs"

# mid tones: readable on white as on black
GRAY = "#858585"
COLORS = ("#3b8edb", "#e08a1e", "#2aa876", "#c2559d", "#8a6fd1")


def fill(page: Path, blocks: dict[str, str]) -> None:
    """Put every block between its markers, ``<!-- name:start -->`` and ``<!-- name:end -->``."""
    text = page.read_text()
    for name, block in blocks.items():
        pattern = re.compile(rf"(<!-- {name}:start -->\n).*?(<!-- {name}:end -->)", re.DOTALL)
        found = pattern.search(text)
        if found is None:
            raise ValueError(f"{page} has no markers for {name}")
        text = text[: found.end(1)] + block + "\n" + text[found.start(2) :]
    page.write_text(text)


def table(head: Sequence[str], rows: Iterable[Sequence[str]], words: Sequence[int] = (0,)) -> str:
    """A Markdown table of numbers, but for some columns that are text."""
    marks = [":--" if number in words else "--:" for number in range(len(head))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, marks, *rows))


def number(value: float) -> str:
    """Three digits that count."""
    return f"{value:,.0f}" if value >= 99.5 else f"{value:.1f}" if value >= 9.95 else f"{value:.2f}"


def times(ratio: float) -> str:
    """A ratio with the digits that another run would repeat."""
    return f"{ratio:,.0f}×" if ratio >= 9.95 else f"{ratio:.1f}×" if ratio >= 1.0 else f"{ratio:.2f}×"


def start(height: float) -> tuple[Any, Any]:
    """An empty figure of rows, as wide as a page."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "birds", "text.color": GRAY, "axes.labelcolor": GRAY})
    from matplotlib import pyplot as plt

    return plt.subplots(figsize=(7.2, height))


def finish(figure: Any, axes: Any, path: Path) -> None:
    """A figure of rows: no frame, faint lines to read along, transparent, the same bytes for the same numbers."""
    axes.tick_params(colors=GRAY, length=0)
    axes.grid(axis="x", color=GRAY, alpha=0.25)
    axes.set_axisbelow(True)
    for spine in axes.spines.values():
        spine.set_visible(False)
    figure.tight_layout()
    figure.savefig(path, transparent=True, metadata={"Date": None})
    print(f"wrote {path.name}")
