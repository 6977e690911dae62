"""Put the page together and write it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jinja2

from likewise import __version__
from likewise.formula import whole_number
from likewise.metrics import Interval
from likewise.report import words
from likewise.report.charts import COLORS, interval_bars
from likewise.report.curves import training_charts, weight_charts, weights_note
from likewise.report.layout import check_layout
from likewise.report.part import Compared, Part, Scores
from likewise.report.record import Record, as_yaml, differences, read_run
from likewise.report.verdict import end_of, seal_of, title_of, verdict_of
from likewise.report.view import View, view
from likewise.report.writing import package_text, policy_hash, write_page

MAP_BYTES = 6_500_000
"""What all maps' thumbnails may take together, so that a page stays below 10 MB."""


SAID = ("command", "commit", "config", "created", "data", "hardware", "seed", "versions")
"""What the page looks for in a description."""


def write_report(
    folder: Path | str,
    parts: Sequence[Part] = (),
    *,
    baselines: Mapping[str, Scores] | None = None,
    comparison: Sequence[Compared] = (),
    out: Path | str | None = None,
    seed: int = 0,
    layout: str = "tsne",
    title: str | None = None,
) -> Path:
    """Write one self-contained HTML page about a run: it fetches nothing, and what it shows is inside it.

    The run folder's files are read as they are (``run.yaml``, ``metrics.jsonl``, ``openings.jsonl``,
    ``evaluations.jsonl``); what is missing is said in words.  The same input gives the same bytes, but for the time of
    writing.  The file is written beside its place and renamed.

    Args:
        folder: the run folder.
        parts: what was embedded.  The last one leads the report: the verdict, the baselines and the comparison are
            about it.
        baselines: metrics by name of other embeddings of the last part, such as ``{"raw pixels": {"R@1": 0.31}}``.
        comparison: runs to show side by side, in this order, this one among them if it is given; they are not ranked.
        out: the file; ``report.html`` in the run folder without it.
        seed: of the random queries, of the map and of the bootstrap.
        layout: of the map: ``"tsne"`` (scikit-learn), ``"umap"`` (umap-learn) or ``"pca"``.
        title: of the page; made of the loss, the trunk and the data set without it.

    Returns:
        Where the page is.

    Examples:
        >>> import tempfile, torch
        >>> from PIL import Image
        >>> labels = torch.arange(12) // 4
        >>> part = Part("test", torch.eye(3)[labels], labels, ["a", "b", "c"], lambda i: Image.new("L", (8, 8), 20 * i))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     page = write_report(folder, [part], layout="pca").read_text()
        >>> "never opened" in page, "http://" in page
        (True, False)
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise ValueError(f"folder must be a run folder, but there is no folder {folder}")
    whole_number("seed", seed, 0)
    if parts:
        check_layout(layout)
    names = [part.name for part in parts]
    if len(set(names)) < len(names):
        raise ValueError(f"parts must have different names, but they are {', '.join(map(repr, names))}")
    record = read_run(folder)
    views: list[View] = []
    for part in parts:
        first = sum(len(each.sheets) for each in views)
        views.append(view(part, layout=layout, seed=seed, first=first, budget=MAP_BYTES // len(parts)))
    page = _render(record, views, dict(baselines or {}), list(comparison), seed, title)
    return write_page(Path(out) if out is not None else folder / "report.html", page)


def _render(
    record: Record,
    views: list[View],
    baselines: dict[str, Scores],
    comparison: list[Compared],
    seed: int,
    title: str | None,
) -> str:
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        loader=jinja2.FunctionLoader(package_text),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for name in ("percent", "between", "count", "many", "moment", "short", "duration"):
        environment.filters[name] = getattr(words, name)
    environment.filters["yaml"] = as_yaml
    lead = views[-1] if views else None
    script = package_text("page.js")
    runs = _runs(record, comparison)
    shown = {
        "title": title or title_of(record),
        "script": script,
        # the only script that may run is this one, whatever a class is called
        "script_hash": policy_hash(script),
        "style": package_text("page.css"),
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
        "version": __version__,
        "seed": seed,
        "record": record,
        "said": {**dict.fromkeys(SAID), **record.description},
        "verdict": verdict_of(record, lead, baselines),
        "end": end_of(record),
        "seal": seal_of(record, [each.part.name for each in views]),
        "views": list(reversed(views)),
        "columns": _columns(views, baselines, comparison),
        "meanings": words.METRICS,
        "baselines": baselines,
        "charts": training_charts(runs),
        "weights": weight_charts(runs),
        "weights_note": weights_note(runs),
        "runs": runs,
        "compared": _compared(record, comparison),
        "bars": _bars(comparison, baselines, lead),
        "differences": _differences(record, comparison),
    }
    return environment.get_template("page.html.jinja").render(shown)


def _columns(views: list[View], baselines: dict[str, Scores], comparison: list[Compared]) -> list[str]:
    """Metrics that anything has, the known ones first; P@1 is R@1 by another name."""
    given = [each.measured.scores for each in views if each.measured] + [*baselines.values()]
    given += [each.metrics for each in comparison]
    names = dict.fromkeys(name for scores in given for name in scores if name != "P@1")
    return [name for name in words.METRICS if name in names] + [name for name in names if name not in words.METRICS]


def _runs(record: Record, comparison: list[Compared]) -> list[tuple[str, int, Record]]:
    """Name, color and record of every run that has curves; colors follow the order of the comparison."""
    runs = [
        (each.name, number, read_run(Path(each.folder)))
        for number, each in enumerate(comparison)
        if each.folder is not None
    ]
    if not any(_same(record, run.folder) for _, _, run in runs):
        runs = [("this run", len(comparison), record), *runs]
    return [run for run in runs if run[2].metrics]


def _same(record: Record, folder: Path) -> bool:
    return folder.resolve() == record.folder.resolve()


def _compared(record: Record, comparison: list[Compared]) -> list[dict[str, Any]]:
    return [
        {
            "name": each.name,
            "metrics": each.metrics,
            "color": number % COLORS,
            "this": each.folder is not None and _same(record, Path(each.folder)),
        }
        for number, each in enumerate(comparison)
    ]


def _bars(comparison: list[Compared], baselines: dict[str, Scores], lead: View | None) -> list[Any]:
    """R@1 and MAP@R of every run and baseline, side by side."""
    rows: list[tuple[str, Scores, int, bool]] = [
        (each.name, each.metrics, n % COLORS, False) for n, each in enumerate(comparison)
    ]
    if not rows:
        return []
    rows += [(name, scores, 0, True) for name, scores in baselines.items()]
    figures = []
    for metric in ("R@1", "MAP@R"):
        found: list[tuple[str, float | Interval, int, bool]] = [
            (name, scores[metric], color, baseline) for name, scores, color, baseline in rows if metric in scores
        ]
        if found:
            figures.append(interval_bars(metric, found))
    return figures


def _differences(record: Record, comparison: list[Compared]) -> dict[str, Any]:
    found = {each.name: read_run(Path(each.folder)).description for each in comparison if each.folder is not None}
    known = {name: description for name, description in found.items() if description}
    return {"names": list(known), "rows": differences(known) if len(known) > 1 else []}
