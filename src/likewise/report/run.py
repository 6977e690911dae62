"""The report of a run: its sections, and `write_report`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from likewise.formula import whole_number
from likewise.metrics import Interval
from likewise.report.blocks import Cell, Charts, Code, Definitions, Fold, Group, Table, Text, yes_or_no
from likewise.report.charts import COLORS
from likewise.report.curves import Run, training_charts, weight_charts, weights_note
from likewise.report.layout import check_layout
from likewise.report.page import Folded, Page, Section, Tile, write_page
from likewise.report.part import Compared, Part, Scores
from likewise.report.record import Record, as_yaml, differences, read_run
from likewise.report.row_charts import Entry, RowChart, row_chart
from likewise.report.run_verdict import End, Seal, end_of, seal_of, title_of, verdict_of
from likewise.report.view import View, view
from likewise.report.words import between, count, many, meaning_of, percent, short, sort_metrics
from likewise.text import moment

MAP_BYTES = 6_500_000
"""The maximum number of bytes of the thumbnails of all maps, so that a page stays below 10 MB."""


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
    """Write a self-contained HTML page about a run, which loads no external files.

    The files of the run folder are ``run.yaml``, ``metrics.jsonl``, ``openings.jsonl`` and ``evaluations.jsonl``; the page
    lists missing ones.  The same input gives the same bytes, except for the time of writing.  The file is replaced
    atomically.

    Args:
        folder: the run folder.
        parts: embedded parts of the data.  The verdict, the baselines and the comparison are about the last one.
        baselines: metrics of other embeddings of the last part, by name, such as ``{"raw pixels": {"R@1": 0.31}}``.
        comparison: runs to show side by side, in this order; they are not ranked.
        out: the file; ``None``: ``report.html`` in the run folder.
        seed: the seed of the random queries, the map and the bootstrap.
        layout: the layout of the map: ``"tsne"``, ``"umap"`` (umap-learn) or ``"pca"``.
        title: the title of the page; ``None``: the loss, the trunk and the data set.

    Returns:
        The path of the page.

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
    record, views = read_run(folder), _views(parts, layout, seed)
    page = _page(record, views, dict(baselines or {}), list(comparison), seed, title)
    return write_page(Path(out) if out is not None else folder / "report.html", page)


def _views(parts: Sequence[Part], layout: str, seed: int) -> list[View]:
    """Compute the content for each part, the last part first."""
    views: list[View] = []
    for number, part in enumerate(reversed(parts)):
        first = sum(len(each.sheets) for each in views)
        budget = MAP_BYTES // len(parts)
        views.append(view(part, layout=layout, seed=seed, budget=budget, first=first, number=number))
    return views


def _page(
    record: Record,
    views: list[View],
    baselines: dict[str, Scores],
    comparison: list[Compared],
    seed: int,
    title: str | None,
) -> Page:
    lead = views[0] if views else None
    end, seal = end_of(record), seal_of(record, [each.part.name for each in views])
    columns, runs = _columns(views, baselines, comparison), _runs(record, comparison)
    sections: list[Section | Folded] = []
    if views or baselines:
        sections.append(_numbers(views, baselines, columns, seed))
    if comparison:
        sections.append(_comparison(record, lead, comparison, baselines, columns))
    sections.append(_training(end, runs))
    if weights := weight_charts(runs):
        sections.append(_weights(runs, Charts(weights)))
    for number, each in enumerate(views):
        shown = _part(each, number)
        sections += shown if number == 0 else [Folded(each.part.name.capitalize(), each.summary, shown)]
    if not views:
        sections.append(
            Section(
                "images", "Images", [Text("No part was embedded, so there are no retrieval grids and no map.", "empty")]
            )
        )
    sections += [_test_set(seal, record), _how_it_was_made(record)]
    alarms = [*seal.warnings, *([end.text] if end.tone == "bad" else [])]
    alarms += [
        f"{each.part.name.capitalize()}: {each.similarities.collapse}." for each in views if each.similarities.collapse
    ]
    return Page(
        "report",
        title or title_of(record),
        verdict_of(record, lead, baselines),
        sections,
        tiles=_tiles(record, lead, end, seal),
        alarms=alarms,
        sheets=[sheet for each in views for sheet in each.sheets],
        footer=record.gaps,
    )


def _tiles(record: Record, lead: View | None, end: End, seal: Seal) -> list[Tile]:
    tiles = []
    if lead is not None and lead.measured is not None:
        for name in ("R@1", "MAP@R"):
            score = lead.measured.scores[name]
            tiles.append(Tile(f"{name}, {lead.part.name}", percent(score), between(score) or "no interval", unit="%"))
    ended = (record.end.get("reason") or "ended") if record.end else "not ended" if record.metrics else "no record"
    best = f"best at epoch {short(float(record.best['epoch']))}" if record.best else "no best epoch"
    tiles.append(Tile("Test set", seal.short, "the record", target="seal", tone=seal.tone))
    return [*tiles, Tile("Training", str(ended), best, tone=end.tone)]


# ---- numbers


def _columns(views: list[View], baselines: dict[str, Scores], comparison: list[Compared]) -> list[str]:
    """List all metrics, known ones first, without P@1, which equals R@1."""
    tables = [each.measured.scores for each in views if each.measured] + [*baselines.values()]
    tables += [each.metrics for each in comparison]
    return sort_metrics(name for scores in tables for name in scores if name != "P@1")


def _scores(name: Cell, scores: Scores, columns: Sequence[str]) -> list[Cell]:
    cells = [Cell(percent(scores.get(each)), between(scores.get(each)), name.kind) for each in columns]
    return [name, *cells]


def _baselines(baselines: Mapping[str, Scores], columns: Sequence[str]) -> list[list[Cell]]:
    return [_scores(Cell(name, "baseline", "baseline"), scores, columns) for name, scores in baselines.items()]


def _numbers(views: list[View], baselines: dict[str, Scores], columns: list[str], seed: int) -> Section:
    rows: list[list[Cell]] = [] if views else _baselines(baselines, columns)
    for each in views:
        name = Cell(each.part.name, each.summary, "ours")
        nothing = Cell("every class has only one image", kind="empty", span=max(1, len(columns)))
        rows.append([name, nothing] if each.measured is None else _scores(name, each.measured.scores, columns))
        rows += _baselines(baselines, columns) if each is views[0] else []
    head = [Cell("part"), *(Cell(name, title=meaning_of(name)) for name in columns)]
    measured = [(each.part.name, each.measured) for each in views if each.measured is not None]
    notes = []
    if measured:
        over = ", ".join(f"the {count(each.group_count)} {each.over} of {name}" for name, each in measured)
        note = (
            f"In percent. Below each number is its 95% interval: a percentile bootstrap of 1,000 draws (seed {seed}) "
            f"over {over}. It covers the choice of {measured[0][1].over}, not the variation between runs."
        )
        if runs := max(each.part.clusterings for each in views):
            note += f" NMI, AMI and F1: the mean of {many(runs, 'run')} of k-means, with the interval over them."
        for part, scores in measured:
            if scores.without_positive:
                have = (
                    "has no other image of its class and is"
                    if scores.without_positive == 1
                    else "have no other image of their class and are"
                )
                note += f" {many(scores.without_positive, 'query', 'queries')} of {part} {have} excluded."
        notes.append(Text(note))
    meanings = Definitions([(name, meaning_of(name)) for name in columns if meaning_of(name)], "meanings")
    table = Table("Metrics", head, rows)
    return Section("metrics", "Numbers", [table, *notes, Fold("What the columns mean", [meanings])], link="Numbers")


# ---- comparison


def _is_same(record: Record, each: Compared) -> bool:
    return each.folder is not None and Path(each.folder).resolve() == record.folder.resolve()


def _runs(record: Record, comparison: list[Compared]) -> list[Run]:
    """Return name, color and record of every run with curves; colors follow the order of the comparison."""
    runs = [
        (each.name, at, read_run(Path(each.folder))) for at, each in enumerate(comparison) if each.folder is not None
    ]
    if not any(_is_same(record, each) for each in comparison):
        runs = [("this run", len(comparison), record), *runs]
    return [run for run in runs if run[2].metrics]


def _comparison(
    record: Record, lead: View | None, comparison: list[Compared], baselines: dict[str, Scores], columns: list[str]
) -> Section:
    where = lead.part.name if lead is not None else "the same data"
    rows = []
    for number, each in enumerate(comparison):
        same = _is_same(record, each)
        name = Cell(each.name, "this run" if same else "", "ours" if same else "", color=number % COLORS)
        rows.append(_scores(name, each.metrics, columns))
    blocks: list[object] = [
        Text(f"{many(len(comparison), 'run')} on {where}, in the given order, not ranked."),
        Charts(_bars(comparison, baselines)),
        Table("Comparison", ["run", *columns], [*rows, *_baselines(baselines, columns)]),
    ]
    descriptions = {
        each.name: read_run(Path(each.folder)).description for each in comparison if each.folder is not None
    }
    known = {name: description for name, description in descriptions.items() if description}
    settings = differences(known) if len(known) > 1 else []
    if settings:
        table = Table("Settings that differ", ["setting", *known], [[n, *values] for n, values in settings], "plain")
        blocks.append(Fold(f"What differs between the runs: {many(len(settings), 'setting')}", [table]))
    elif len(known) > 1:
        blocks.append(Text("No setting differs between the runs."))
    else:
        blocks.append(Text("Fewer than two of the runs have a run.yaml, so their differences are unknown."))
    return Section("comparison", "Comparison", blocks, link="Comparison")


def _bars(comparison: list[Compared], baselines: dict[str, Scores]) -> list[RowChart]:
    """Create the charts of R@1 and MAP@R of all runs and baselines."""
    rows = [(each.name, each.metrics, n % COLORS, False) for n, each in enumerate(comparison)]
    rows += [(name, scores, 7, True) for name, scores in baselines.items()]
    charts = []
    for metric in ("R@1", "MAP@R"):
        entries = [_entry(name, scores[metric], color, base) for name, scores, color, base in rows if metric in scores]
        if entries:
            charts.append(row_chart(metric, entries, note="in percent, with 95% intervals", kind="bars"))
    return charts


def _entry(name: str, value: float | Interval, color: int, is_baseline: bool) -> Entry:
    if isinstance(value, Interval):
        return Entry(name, color, value.mean, value.low, value.high, is_baseline=is_baseline)
    return Entry(name, color, value, is_baseline=is_baseline)


# ---- training


def _training(end: End, runs: Sequence[Run]) -> Section:
    several = f" The charts show {many(len(runs), 'run')}, one color each." if len(runs) > 1 else ""
    charts = training_charts(runs)
    body = Charts(charts) if charts else Text("There are no curves: nothing has been recorded yet.", "empty")
    return Section("training", "Training", [Text(end.text + several), body], link="Training")


def _weights(runs: Sequence[Run], charts: Charts) -> Section:
    text = (
        "How the loss distributes its weight over the pairs of a batch. The weight of a pair is the strength with which "
        f"the loss attracts a positive pair or repels a negative pair. {weights_note(runs)}"
    )
    return Section("weights", "Weights", [Text(text), charts], link="Weights")


# ---- one part


def _part(shown: View, number: int) -> list[Section]:
    name = shown.part.name
    gallery = " in the gallery" if shown.part.is_query is not None else ""
    retrieval: list[object] = [Text("Every class has only one image, so there is nothing to retrieve.", "empty")]
    if shown.grids.grids:
        text = (
            f"A query and its nearest neighbors{gallery}, nearest first, with class and cosine similarity. A green frame "
            "with ✓ is the class of the query, a red frame with ✗ another class. Best and worst refer to average precision "
            "at R (AP), with at most one query per class."
        )
        retrieval = [Text(text), shown.grids]
    on_map = (
        f"{shown.map.note} Close points are similar to the model; long distances and the axes have no meaning. Hover over "
        "the map, tap it, or focus it and use the arrow keys to see images."
    )
    alike = shown.similarities
    histograms = Group("beside", [alike.chart, Definitions(alike.facts, "facts")])
    overlap = Text(f"{alike.note} The less they overlap, the better a threshold separates same from different classes.")
    hardest: list[object] = [Text("None: the nearest neighbor of every query has its class.", "empty")]
    if shown.confused.pairs:
        have = f"{many(shown.mistakes, 'query', 'queries')} {'has' if shown.mistakes == 1 else 'have'}"
        text = (
            f"{have} a nearest neighbor of another class. These pairs of classes cause most of these mistakes. The images "
            "show the mistakes with the highest similarity: a query, then its nearest neighbor."
        )
        hardest = [Text(text), shown.confused]
    sections = [
        Section(f"retrieval-{number}", "Retrieval", retrieval, f"{name}: {shown.summary}", "Retrieval"),
        Section(f"map-{number}", "Map", [Text(on_map), shown.map], f"{name}, by {shown.map.method}", "Map"),
        Section(f"similarities-{number}", "Similarities", [histograms, overlap], name, "Similarities"),
        Section(f"confused-{number}", "Hardest pairs of classes", hardest, name, "Confusions"),
    ]
    return sections


# ---- records


def _format_known(value: object) -> str:
    return "–" if value is None else str(value)


def _test_set(seal: Seal, record: Record) -> Section:
    blocks: list[object] = [Text(seal.text, f"statement {seal.tone}"), *(Text(each, "alarm") for each in seal.warnings)]
    data = record.description.get("data")
    test = data.get("test") if isinstance(data, Mapping) else None
    if isinstance(test, Mapping) and test.get("description"):
        blocks.append(Text(str(test["description"])))
    if record.openings:
        rows: list[list[str | Cell]] = [
            [
                str(number),
                Cell(moment(each.get("opened", "–")), kind="time"),
                *(_format_known(each.get(name, "–")) for name in ("why", "model", "step")),
                yes_or_no(each.get("finished")),
            ]
            for number, each in enumerate(record.openings, 1)
        ]
        head = ["#", "opened", "why", "model", "step", "training had ended"]
        blocks.append(Table("Openings of the test set", head, rows, "plain"))
    if record.evaluations:
        rows = [
            [
                Cell(moment(each.get("time", "–")), kind="time"),
                *(_format_known(each.get(name)) for name in ("part", "model", "opening")),
                *(_metric(each.get("metrics"), name) for name in ("R@1", "MAP@R")),
            ]
            for each in record.evaluations
        ]
        table = Table("Evaluations", ["time", "part", "model", "opening", "R@1", "MAP@R"], rows, "plain")
        blocks.append(Fold(many(len(rows), "recorded evaluation"), [table]))
    return Section("seal", "The test set", blocks, link="Test set")


def _metric(metrics: object, name: str) -> str:
    value = metrics.get(name) if isinstance(metrics, Mapping) else None
    return percent(value) if isinstance(value, int | float) else "–"


def _how_it_was_made(record: Record) -> Section:
    about: Mapping[str, Any] = record.description
    blocks: list[object] = [Text("The command that reproduces the run is not recorded.", "empty")]
    if about.get("command"):
        commit = Markup(", at commit <code>{}</code>").format(about["commit"]) if about.get("commit") else ""
        blocks = [Text(Markup("This command reproduces the run{}:").format(commit)), Code(str(about["command"]), True)]
    config = about.get("config")
    if config:
        blocks.append(Fold("The whole configuration", [Code(as_yaml(config))]))
    elif about:
        blocks.append(
            Text("The run was started from Python, so there is no configuration file; this is its description.")
        )
    if about:
        rest = {name: value for name, value in about.items() if name != "config"}
        title = "The whole description, run.yaml" + (" without the configuration" if config else "")
        blocks.append(Fold(title, [Code(as_yaml(rest))]))
        blocks.append(Group("columns", [_describe_record(about, "versions"), _describe_record(about, "hardware")]))
    else:
        blocks.append(Text("Configuration, versions and hardware are not recorded.", "empty"))
    facts = [Markup("Folder <code>{}</code>").format(record.folder.name)]
    facts += [Markup("seed {}").format(about["seed"])] if about.get("seed") is not None else []
    facts += [Markup("created {}").format(moment(about["created"]))] if about.get("created") else []
    blocks.append(Text(Markup(", ").join(facts) + "."))
    return Section("run", "The run", blocks, link="Run")


def _describe_record(about: Mapping[str, Any], name: str) -> Group:
    values = about.get(name)
    if not isinstance(values, Mapping) or not values:
        return Group("", [Text("Not recorded.", "empty")], title=name.capitalize())
    return Group(
        "", [Definitions([(str(key), _format_known(value)) for key, value in values.items()])], title=name.capitalize()
    )
