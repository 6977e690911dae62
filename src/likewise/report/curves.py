"""Training curves of one or several runs: loss, validation, learning rates and pair weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from likewise.report.charts import COLORS, Chart, Line, line_chart
from likewise.report.record import Record, Row
from likewise.report.words import count, many, short

Run = tuple[str, int, Record]
"""The name of a run, the number of its color, and its record."""

Read = Callable[[Row], object]
"""A function that returns the value of a line of the record."""


def training_charts(runs: Sequence[Run]) -> list[Chart]:
    """Create the training charts for which the records have data.

    Examples:
        >>> from pathlib import Path
        >>> rows = [{"kind": "train", "epoch": float(n), "loss": 1.0 / n, "lr": {"trunk": 1e-4}} for n in (1, 2, 3)]
        >>> charts = training_charts([("one", 0, Record(Path("one"), {}, rows, [], [], []))])
        >>> [chart.title for chart in charts]
        ['Loss', 'Learning rate']
    """
    several = len(runs) > 1
    marks = [] if several else _marks(runs)
    # values of different losses are not comparable, only the shapes of their curves
    note = "each run on a separate scale" if several else ""
    loss = [_line(run, "train", lambda row: row.get("loss")) for run in runs]
    charts = [line_chart("Loss", loss, note=note, separate_scales=several, marks=marks)]
    if several:
        for metric in ("MAP@R", "R@1"):
            lines = [_line(run, "val", _getter(metric), dots=True) for run in runs]
            charts.append(line_chart(f"Validation {metric}", lines, as_percent=True, note="in percent"))
    elif runs:
        record = runs[0][2]
        lines = [
            _line((metric, color, record), "val", _getter(metric), dots=True)
            for color, metric in enumerate(("R@1", "RP", "MAP@R"))
        ]
        charts.append(line_chart("Validation", lines, as_percent=True, note="in percent", marks=marks))
    charts.append(_rates(runs))
    spread = [_line(run, "train", lambda row: row.get("spread")) for run in runs]
    charts.append(line_chart("Spread of a batch", spread, note="near 0: all embeddings are alike", within=(0.0, 1.0)))
    return [chart for chart in charts if chart is not None]


def weight_charts(runs: Sequence[Run]) -> list[Chart]:
    """Create the charts of a recorder's data: pair weights, gradients, and the agreement of two losses.

    Examples:
        >>> from pathlib import Path
        >>> rows = [{"kind": "lens", "epoch": float(n), "zero_negatives": 0.9, "gradient": 1.0 / n} for n in (1, 2, 3)]
        >>> charts = weight_charts([("one", 0, Record(Path("one"), {}, rows, [], [], []))])
        >>> [chart.title for chart in charts], charts[1].summary
        (['Pairs without weight', 'Gradient'], 'Gradient by epoch. all classes: from 1 to 0.333.')
    """
    charts: list[Chart | None] = []
    for (every, words, note), lines in _SHARES.items():
        # one run: all values in one chart; several runs: one chart per value, one line per run
        drawn = {every: lines} if len(runs) == 1 else {name: {name: read} for name, read in lines.items()}
        for name, reads in drawn.items():
            title = words.format(name)
            shares = _lens_lines(runs, reads)
            charts.append(
                line_chart(title[0].upper() + title[1:], shares, note=note, as_percent=True, within=(0.0, 1.0))
            )
    half = _lens_lines(runs, {"pairs": _getter("half")})
    charts.append(_by_size("Pairs that carry half of the weight", half, _pairs(runs)))
    turned = _lens_lines(runs, {"pairs": _getter("below_zero")})
    if any(y for line in turned for y in line.ys):
        charts.append(line_chart("Pairs of negative weight", turned, note="percent of all pairs", as_percent=True))
    charts.append(_by_size("Gradient", _lens_lines(runs, _gradients(runs)), "norm of the tangential gradient"))
    agreement = _lens_lines(runs, {"cosine": _getter("agreement")})
    note = f"cosine with the gradient of {' or '.join(_second_losses(runs))}"
    charts.append(line_chart("Agreement", agreement, note=note, within=(0.0, 1.0)))
    return [chart for chart in charts if chart is not None]


def weights_note(runs: Sequence[Run]) -> str:
    """Describe the data of the weight charts in a sentence; empty if there are none.

    Examples:
        >>> from pathlib import Path
        >>> row = {"kind": "lens", "epoch": 1.0, "samples": 4096, "anchors": 256, "seconds": 0.5}
        >>> end = {"kind": "end", "seconds": 50.0}
        >>> weights_note([("one", 0, Record(Path("one"), {}, [row, end], [], [], []))])
        'One step recorded, in 1.0% of the time; 256 of 4,096 anchors are used as a sample of each batch.'
    """
    looks = [row for _, _, record in runs for row in record.of_kind("lens")]
    if not looks:
        return ""
    text = f"{many(len(looks), 'step')} recorded" if len(looks) > 1 else "One step recorded"
    looked = [record for _, _, record in runs if record.of_kind("lens")]
    whole = sum(float(record.end.get("seconds") or 0.0) for record in looked if record.end is not None)
    if whole and all(record.end is not None for record in looked):
        text += f", in {sum(float(row.get('seconds') or 0.0) for row in looks) / whole:.1%} of the time"
    some = [row for row in looks if row.get("anchors", 0) < row.get("samples", 0)]
    if some:
        text += (
            f"; {count(some[-1]['anchors'])} of {count(some[-1]['samples'])} anchors are used as a sample of each batch"
        )
    return text + "."


def _marks(runs: Sequence[Run]) -> list[tuple[float, str]]:
    best = runs[0][2].best if runs else None
    return [] if best is None else [(float(best["epoch"]), f"best: epoch {short(float(best['epoch']))}")]


def _getter(metric: str) -> Read:
    return lambda row: row.get(metric)


def _quantile(place: int) -> Read:
    """Return a function that reads one of the quantiles of the gradient norms of classes."""

    def read(row: Row) -> object:
        classes = row.get("classes")
        values = classes.get("quantiles") if isinstance(classes, dict) else None
        return values[place] if isinstance(values, list) and len(values) > place else None

    return read


def _weight_on_positives(row: Row) -> object:
    known = [row.get(name) for name in ("weight_positives", "weight_negatives")]
    numbers = [float(each) for each in known if isinstance(each, int | float)]
    return numbers[0] / sum(numbers) if len(numbers) == 2 and sum(numbers) > 0.0 else None


_SHARES: dict[tuple[str, str, str], dict[str, Read]] = {
    ("pairs", "{} without weight", "percent of the pairs of a kind"): {
        "positives": _getter("zero_positives"),
        "negatives": _getter("zero_negatives"),
    },
    ("heaviest pairs", "weight of the {}", "percent of all weight"): {
        "heaviest 1%": _getter("heaviest_1"),
        "heaviest 10%": _getter("heaviest_10"),
    },
    ("positives", "weight on {}", "percent of all weight"): {"positives": _weight_on_positives},
}
"""Charts of shares: what they show, the title, the note, and the lines."""


def _gradients(runs: Sequence[Run]) -> dict[str, Read]:
    whole: dict[str, Read] = {"all classes": _getter("gradient")}
    if len(runs) > 1:
        return whole
    whole |= {"largest class": _quantile(4), "median class": _quantile(2)}
    return whole | {f"all classes, {name}": _second_gradient for name in _second_losses(runs)}


def _second_losses(runs: Sequence[Run]) -> list[str]:
    """List the second losses of the recorders."""
    named = (row.get("compare_with") for _, _, record in runs for row in record.of_kind("lens"))
    return list(dict.fromkeys(str(name) for name in named if name))


def _second_gradient(row: Row) -> object:
    gradient, ratio = row.get("gradient"), row.get("ratio")
    return gradient * ratio if isinstance(gradient, int | float) and isinstance(ratio, int | float) else None


def _lens_lines(runs: Sequence[Run], what: dict[str, Read]) -> list[Line]:
    """Create lines of a recorder's data: one color per line for one run, one color per run for several."""
    if len(runs) > 1:
        return [_line(run, "lens", read) for run in runs for read in what.values()]
    return [
        _line((name, color, record), "lens", read)
        for _, _, record in runs
        for color, (name, read) in enumerate(what.items())
    ]


def _pairs(runs: Sequence[Run]) -> str:
    """Format the number of pairs of a batch, if it is constant."""
    looks = [row for _, _, record in runs for row in record.of_kind("lens") if row.get("half") is not None]
    counts = {row.get("positives", 0) + row.get("negatives", 0) for row in looks}
    return f"of {count(counts.pop())}" if len(counts) == 1 else ""


def _by_size(title: str, lines: Sequence[Line], note: str) -> Chart | None:
    """Create a chart whose axis is logarithmic if values differ in magnitude."""
    values = [y for line in lines for y in line.ys if y > 0.0]
    log = bool(values) and max(values) > 10.0 * min(values)
    return line_chart(title, lines, log=log, note=", ".join(filter(None, (note, "logarithmic" if log else ""))))


def _line(run: Run, kind: str, value: Read, *, dots: bool = False, dash: bool = False) -> Line:
    name, color, record = run
    points: list[tuple[float, float]] = []
    for row in record.of_kind(kind):
        y = value(row)
        if isinstance(y, int | float):
            points.append((float(row["epoch"]), float(y)))
    points.sort(key=lambda point: point[0])
    return Line(name, [x for x, _ in points], [y for _, y in points], color % COLORS, dash, dots)


def _rates(runs: Sequence[Run]) -> Chart | None:
    """Create the chart of learning rates: one line per run and group; equal lines are merged."""
    shared: dict[tuple[tuple[float, ...], tuple[float, ...]], dict[str, list[str]]] = {}
    colors: dict[str, int] = {}
    for name, color, record in runs:
        colors[name] = color
        rates = [row["lr"] for row in record.of_kind("train") if isinstance(row.get("lr"), dict)]
        for group in dict.fromkeys(group for each in rates for group in each):
            line = _line((name, color, record), "train", _rate_of(group))
            shared.setdefault((tuple(line.xs), tuple(line.ys)), {}).setdefault(name, []).append(group)
    lines = []
    seen: set[int] = set()
    for number, ((xs, ys), owners) in enumerate(shared.items()):
        color = number if len(runs) == 1 else colors[next(iter(owners))] if len(owners) < len(runs) else COLORS - 1
        lines.append(Line(_owners(owners, runs), xs, ys, color % COLORS, color in seen))
        seen.add(color)
    # rates of groups often differ by a factor of 100; a single schedule is easier to read on a linear axis
    highest = [max(line.ys) for line in lines if line.ys and max(line.ys) > 0.0]
    log = len(highest) > 1 and max(highest) > 10.0 * min(highest)
    return line_chart("Learning rate", lines, log=log, note="logarithmic" if log else "")


def _owners(owners: dict[str, list[str]], runs: Sequence[Run]) -> str:
    """Name the groups of a learning rate, with several runs also the runs."""
    groups = ", ".join(dict.fromkeys(group for each in owners.values() for group in each))
    if len(runs) == 1:
        return groups
    return f"{'all runs' if len(owners) == len(runs) else ', '.join(owners)}: {groups}"


def _rate_of(group: str) -> Read:
    def rate(row: Row) -> object:
        rates = row.get("lr")
        return rates.get(group) if isinstance(rates, dict) else None

    return rate
