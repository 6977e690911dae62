"""A ranking that refuses to be unfair, and says in its own table what it could not vouch for."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from likewise.protocols.conditions import WHY, Description, at, feedback
from likewise.protocols.fairness import Difference, described, seed_difference, unfair_differences
from likewise.protocols.pairs import Comparison, NoPairs, compare_sides, shown_metric
from likewise.protocols.repeats import Row, Summary, is_done, labels_of_rows, name_of, of_stage, summarize
from likewise.protocols.trial import Result
from likewise.report import in_words
from likewise.train import Run

Entry: TypeAlias = tuple[Row, Description | None]

CONDITIONS = {
    "data": "data",
    "trunk": "trunk",
    "weights": "pretraining",
    "dim": "embedding size",
    "pool": "pooling",
    "images": "augmentation",
    "protocol": "split",
    "source": "source",
}
"""Columns of a table of results in which methods must agree, and what they are called in a comparison."""


class Unfair(ValueError):  # noqa: N818
    """Trainings are not equal, so that they are not ranked.

    Args:
        differences: what makes the comparison unfair.

    Examples:
        >>> raise Unfair([Difference("trunk", {"margin": "resnet50", "triplet": "googlenet"}, WHY["trunk"])])
        Traceback (most recent call last):
        likewise.protocols.leaderboard.Unfair: trainings must be equal in all but the method to be ranked, but they differ
        in trunk: resnet50 (margin), googlenet (triplet); allow_unfair=True ranks them all the same, and says so
    """

    def __init__(self, differences: Sequence[Difference]) -> None:
        self.differences = tuple(differences)
        listed = "; ".join(map(str, self.differences))
        super().__init__(
            f"trainings must be equal in all but the method to be ranked, but they differ in {listed}; "
            "allow_unfair=True ranks them all the same, and says so"
        )


@dataclass(frozen=True)
class Place:
    """A line of a leaderboard.

    Args:
        rank: from 1; equal means share one.
        summary: mean, interval and seeds.
        marks: what a reader must know: ``"tuned on test"``, ``"unfair: …"``, ``"one seed"``, ….
        behind: the first against this one, pair by pair; ``None`` for the first, and without pairs.
        first: whether it is the one that others are held against.
        openings: how often the test set of one of its runs was opened, at most; ``None`` where that is not known.

    Examples:
        >>> rank([{"method": "a", "seed": 0, "test R@1": 0.5}], "test R@1").places[0].marks
        ('one seed',)
    """

    rank: int
    summary: Summary
    marks: tuple[str, ...] = ()
    behind: Comparison | None = None
    first: bool = True
    openings: int | None = None


@dataclass(frozen=True)
class Leaderboard:
    """Methods in the order of their means, with what there is to know about the order.

    Args:
        metric: by which column they are ranked.
        places: best first.
        differences: in what the trainings differ besides the method.
        checked: whether their descriptions were compared; else only the columns of the table were.
        missing: settings without a single complete seed.

    Examples:
        >>> scores = {"a": (0.50, 0.52, 0.54), "b": (0.49, 0.50, 0.52)}
        >>> rows = [{"method": m, "seed": s, "test R@1": each[s]} for m, each in scores.items() for s in range(3)]
        >>> print(rank(rows, "test R@1").text())
        R@1 in per cent: mean and 95% interval over seeds
        #  method  R@1    95% interval    seeds  behind the first  marks
        1  a       52.00  47.03 to 56.97  3
        2  b       50.33  46.54 to 54.13  3      1.67 (0.23 to 3.10)
        Whether the trainings are otherwise equal was not checked: their descriptions were not given.
    """

    metric: str
    places: tuple[Place, ...]
    differences: tuple[Difference, ...] = ()
    checked: bool = True
    missing: tuple[str, ...] = ()

    @property
    def unfair(self) -> tuple[Difference, ...]:
        """The differences that make the ranking unfair; there are none unless it was asked for all the same."""
        return tuple(each for each in self.differences if each.severity == "unfair")

    def rows(self) -> list[dict[str, Any]]:
        """A dict for each place, the same keys in all, of what CSV and JSON can hold; metrics are fractions."""
        return [self._row(place) for place in self.places]

    def _row(self, place: Place) -> dict[str, Any]:
        found, behind = place.summary.interval, place.behind
        known = found.count > 1
        row = {"rank": place.rank, **place.summary.group, "metric": self.metric, "mean": found.mean}
        row |= {"low": found.low if known else None, "high": found.high if known else None}
        row |= {"confidence": found.confidence, "seeds": found.count, "folds": len(place.summary.folds)}
        row |= {"failed": place.summary.failed, "incomplete": place.summary.incomplete, "openings": place.openings}
        sure = behind is not None and behind.resolution is not None
        row["behind"] = behind.difference.mean if behind else None
        row |= {"behind_low": behind.difference.low if behind and sure else None}
        row |= {"behind_high": behind.difference.high if behind and sure else None}
        row |= {"distinguishable": behind.verdict != "not distinguishable" if behind else None}
        row |= {"pairs": behind.pairs if behind else None, "fair": not self.unfair, "checked": self.checked}
        return row | {"marks": "; ".join(place.marks)}

    def footnotes(self) -> list[str]:
        """What stands under the table."""
        told = []
        if self.unfair:
            told.append("* Unfair: ranked although the trainings are not equal, as was asked for.")
            told += [f"  {each}. {each.why}" for each in self.unfair]
        told += [f"Note: {each}. {each.why}" for each in self.differences if each.severity == "note"]
        if not self.checked:
            told.append("Whether the trainings are otherwise equal was not checked: their descriptions were not given.")
        if self.missing:
            told.append(f"Without a complete result: {', '.join(self.missing)}.")
        return told

    def text(self, width: int = 120) -> str:
        """The table for a terminal."""
        confidence = self.places[0].summary.interval.confidence
        columns = list(self.places[0].summary.group)
        shown, sure = shown_metric(self.metric), f"{100 * confidence:g}% interval"
        folds = max(len(place.summary.folds) for place in self.places)
        over = f"over seeds, each a mean over {folds} folds" if folds > 1 else "over seeds"
        cells = [["#", *columns, self.metric.partition(" ")[2], sure, "seeds", "behind the first", "marks"]]
        cells += [self._cells(place, columns) for place in self.places]
        wide = [max(len(row[place]) for row in cells) for place in range(len(cells[0]) - 1)]
        lines = [f"{shown} in per cent: mean and {sure} {over}"]
        for *front, marks in cells:
            start = "  ".join(cell.ljust(size) for cell, size in zip(front, wide, strict=True)) + "  "
            lines += _wrapped(marks, start, " " * len(start), max(width, len(start) + 24))
        for told in self.footnotes():
            lines += _wrapped(told.strip(), " " * (len(told) - len(told.lstrip())), "    ", width)
        return "\n".join(lines)

    def _cells(self, place: Place, columns: Sequence[str]) -> list[str]:
        found = place.summary.interval
        interval = f"{100 * found.low:.2f} to {100 * found.high:.2f}" if found.count > 1 else "none"
        group = [str(place.summary.group[column]) for column in columns]
        number = f"{place.rank}{'*' if self.unfair else ''}"
        return [
            number,
            *group,
            f"{100 * found.mean:.2f}",
            interval,
            str(found.count),
            _gap(place),
            "; ".join(place.marks),
        ]


def _gap(place: Place) -> str:
    """How far a place is behind the first."""
    if place.behind is None:
        return "" if place.first else "no pairs"
    found = place.behind.difference
    if place.behind.verdict == "not distinguishable":
        return "not distinguishable"
    return f"{100 * found.mean:.2f} ({100 * found.low:.2f} to {100 * found.high:.2f})"


def _wrapped(text: str, first: str, rest: str, width: int) -> list[str]:
    lines = textwrap.wrap(text, width, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)
    return [line.rstrip() for line in lines or [first]]


def rank(
    given: Sequence[Row | Result | Run] | Mapping[str, Run | Sequence[Run]],
    metric: str = "test MAP@R",
    *,
    by: Sequence[str] = ("method",),
    descriptions: Mapping[str, Description | Sequence[Description]] | None = None,
    allow_unfair: bool = False,
    stage: str = "final",
    confidence: float = 0.95,
) -> Leaderboard:
    """Rank methods by their means over seeds, unless that would be unfair.

    Trainings that differ in more than the method are refused, with all that differs; ``allow_unfair`` ranks them, and
    the table says so.  Runs and results bring their descriptions along.  Of rows only the columns can be compared,
    unless descriptions are given beside them, and the table says that, too.

    Args:
        given: rows of the tidy table, results, or runs; or runs by the name of their method, else that of their loss.
        metric: by which column; values are fractions, higher is better.
        by: columns that tell the lines of the table apart.
        descriptions: for rows, what `unfair_differences` takes, by the names of the lines (`name_of`).
        allow_unfair: rank all the same.
        stage: ``"final"`` or ``"search"``.
        confidence: of the intervals.

    Raises:
        Unfair: the trainings are not equal, and nobody asked for a ranking all the same.

    Examples:
        >>> rows = [{"method": "margin", "dim": 128, "seed": 0, "test R@1": 0.64}]
        >>> rows.append({"method": "triplet", "dim": 64, "seed": 0, "test R@1": 0.43})
        >>> rank(rows, "test R@1")
        Traceback (most recent call last):
        likewise.protocols.leaderboard.Unfair: trainings must be equal in all but the method to be ranked, but they differ
        in embedding size: 128 (margin), 64 (triplet); allow_unfair=True ranks them all the same, and says so
        >>> [place.marks for place in rank(rows, "test R@1", allow_unfair=True).places]
        [('unfair: embedding size 128', 'one seed'), ('unfair: embedding size 64', 'one seed')]
    """
    entries = entries_of(given)
    rows = of_stage([row for row, _ in entries], metric, stage)
    summaries = summarize(rows, metric, by=by, stage=stage, confidence=confidence)
    if not summaries:
        raise ValueError("given must hold a setting with a complete seed, but all trainings failed or miss a fold")
    if descriptions is None:
        descriptions = _grouped(entries, by, stage, {each.name for each in summaries})
    elif unknown := {each.name for each in summaries} - set(descriptions):
        raise ValueError(f"descriptions must name every line of the table, but {sorted(unknown)[0]!r} is missing")
    sides: dict[str, list[Row]] = {}
    for row in rows:
        sides.setdefault(name_of(row, by), []).append(row)
    ranked = {each.name: sides[each.name] for each in summaries}
    differences = _differences(summaries, ranked, descriptions)
    unfair = [each for each in differences if each.severity == "unfair"]
    if unfair and not allow_unfair:
        raise Unfair(unfair)
    places = _places(summaries, ranked, metric, unfair, descriptions or {})
    missing = tuple(name for name in sides if name not in ranked)
    return Leaderboard(metric, places, tuple(differences), bool(descriptions), missing)


def leaderboards(
    given: Sequence[Row | Result | Run],
    metric: str = "test MAP@R",
    *,
    within: Sequence[str],
    allow_unfair: bool = False,
    stage: str = "final",
    confidence: float = 0.95,
) -> dict[tuple[Any, ...], Leaderboard]:
    """A leaderboard of methods for each setting, such as each data set, trunk and size.

    Args:
        given: rows of the tidy table, results, or runs.
        metric: by which column.
        within: the columns of which each combination gets a table of its own.
        allow_unfair: rank also what is not equal.
        stage: ``"final"`` or ``"search"``.
        confidence: of the intervals.

    Examples:
        >>> rows = [{"method": m, "dim": d, "test R@1": d / 1000} for m in "ab" for d in (64, 128)]
        >>> list(leaderboards(rows, "test R@1", within=("dim",)))
        [(64,), (128,)]
    """
    parts: dict[tuple[Any, ...], list[Row | Result | Run]] = {}
    for each, (row, _) in zip(given, entries_of(given), strict=True):
        if (row.get("stage") or "final") == stage or isinstance(each, Result):
            parts.setdefault(tuple(row.get(column) for column in within), []).append(each)
    return {
        key: rank(part, metric, allow_unfair=allow_unfair, stage=stage, confidence=confidence)
        for key, part in parts.items()
        if any((row.get("stage") or "final") == stage for row, _ in entries_of(part))
    }


# ---- rows and descriptions of what was given


def entries_of(given: Sequence[Row | Result | Run] | Mapping[str, Run | Sequence[Run]]) -> list[Entry]:
    """A row for each training, and its description where it has one.

    Examples:
        >>> from likewise.protocols.trial import Trial
        >>> [(row, said)] = entries_of([Result(Trial("triplet", {"model": {"dim": 64}}), test={"R@1": 0.5})])
        >>> row["test R@1"], said["config"]["model"]
        (0.5, {'dim': 64})
    """
    found: list[Entry] = []
    if isinstance(given, Mapping):
        named = [(name, run) for name, runs in given.items() for run in ([runs] if isinstance(runs, Run) else runs)]
        return [(run_row(run, name), described(run)) for name, run in named]
    for index, each in enumerate(given):
        if isinstance(each, Run):
            found.append((run_row(each), described(each)))
        elif isinstance(each, Result):
            config = each.trial.upgrade().config
            said = {"config": config, "seed": each.trial.seed, "openings": each.openings}
            found.append((each.row(), {**said, "tuned_on_test": each.tuned_on_test}))
        elif isinstance(each, Mapping):
            found.append((each, None))
        else:
            raise TypeError(f"given must hold rows, results or runs, but entry {index} is a {type(each).__name__}")
    return found


_NO_METRICS = {"kind", "step", "epoch", "queries", "queries_without_positive", "best", "seconds"}


def run_row(run: Run, method: str | None = None) -> dict[str, Any]:
    """The row of a run in the tidy table.

    Test metrics are those of the model that was chosen on validation, or of the last one where none was; of several
    evaluations the latest.

    Args:
        run: a run.
        method: what it is called; by default the class of its loss.

    Examples:
        >>> import tempfile
        >>> run = Run.create(tempfile.mkdtemp() + "/run", {"seed": 3, "loss": "CircleLoss(margin=0.4)"})
        >>> row = run_row(run)
        >>> row["method"], row["status"], row["error"]
        ('CircleLoss', 'failed', 'the training has not ended')
    """
    said = run.description
    config = said.get("config") or {}
    named = str(at(config, "loss.class_path") if config.get("loss") else said.get("loss", "")).partition("(")[0]
    ends = run.metrics("end")
    reason = ends[-1]["reason"] if ends else "the training has not ended"
    row: dict[str, Any] = {"method": method or named.rpartition(".")[2]}
    labels = {"data": at(said, "data.train.name"), "trunk": at(config, "model.trunk"), "dim": at(config, "model.dim")}
    row |= {name: value for name, value in labels.items() if value != "not recorded"}
    fold = at(config, "split.fold")
    row |= {"seed": said.get("seed"), "fold": fold if isinstance(fold, int) else 0, "stage": "final"}
    row["status"] = "done" if reason in ("finished", "early stopping") else "failed"
    for line in [line for line in run.metrics("val") if line.get("best")][-1:]:
        row |= {f"val {name}": value for name, value in line.items() if name not in _NO_METRICS}
    tests = [line for line in run.evaluations() if line["part"] == "test"]
    for line in ([line for line in tests if line["model"] == "best"] or tests)[-1:]:
        row |= {f"test {name}": value for name, value in line["metrics"].items()}
    openings = run.openings()
    row |= {"openings": len(openings), "tuned_on_test": not all(line.get("finished", True) for line in openings)}
    row |= {"run": str(run.folder), "command": said.get("command")}
    return row | {"error": None if row["status"] == "done" else reason}


def _grouped(
    entries: Iterable[Entry], by: Sequence[str], stage: str, names: set[str]
) -> dict[str, list[Description]] | None:
    """Descriptions by name, with what the search spent on each; ``None`` unless every training has one."""
    found: dict[str, list[Description]] = {}
    tried: dict[str, dict[str, set[str]]] = {}
    for row, said in entries:
        name = name_of(row, by)
        of_stage = (row.get("stage") or "final") == stage
        if name in names and of_stage and is_done(row):
            if said is None:
                return None
            found.setdefault(name, []).append(said)
        elif not of_stage:
            searched = {label: row[label] for label in labels_of_rows([row]) if "." in label}
            tried.setdefault(name, {}).setdefault(str(sorted(searched.items())), set()).update(searched)
    if not tried:
        return found
    for name, several in found.items():
        rounds = tried.get(name, {})
        search = {"rounds": len(rounds), "searched": sorted(set().union(*rounds.values()))}
        found[name] = [{**said, "search": search} for said in several]
    return found


# ---- what differs, and how it is marked


def _differences(
    summaries: Sequence[Summary],
    sides: Mapping[str, list[Row]],
    descriptions: Mapping[str, Description | Sequence[Description]] | None,
) -> list[Difference]:
    found = _of_columns(summaries, sides)
    if descriptions:
        told = {each.what for each in found}
        told |= {"training images", "validation images", "test set"} if "data" in told else set()
        chosen = {name: descriptions[name] for name in sides}
        found += [each for each in unfair_differences(chosen) if each.what not in told]
    return sorted(found, key=lambda each: each.severity == "note")


def _of_columns(summaries: Sequence[Summary], sides: Mapping[str, list[Row]]) -> list[Difference]:
    """What the table itself says of the conditions."""
    found = []
    for column, what in CONDITIONS.items():
        values = {name: _one_or_all(row.get(column) for row in rows) for name, rows in sides.items()}
        if len({str(each) for each in values.values()}) > 1:
            found.append(Difference(what, values, WHY[what]))
    tuned = {name: any(row.get("tuned_on_test") for row in rows) for name, rows in sides.items()}
    if len(set(tuned.values())) > 1:
        told = {name: "tuned on test" if each else "none" for name, each in tuned.items()}
        found.append(Difference("test-set feedback", told, WHY["test-set feedback"]))
    counts = {each.name: each.interval.count for each in summaries}
    if len(set(counts.values())) > 1:
        found.append(seed_difference(counts))
    folds = {each.name: sorted(each.folds, key=str) for each in summaries}
    if len(set(map(str, folds.values()))) > 1:
        found.append(Difference("folds", folds, WHY["folds"]))
    return found


def _one_or_all(values: Iterable[Any]) -> Any:
    distinct = list(dict.fromkeys(values))
    return distinct[0] if len(distinct) == 1 else distinct


def _places(
    summaries: Sequence[Summary],
    sides: Mapping[str, list[Row]],
    metric: str,
    unfair: Sequence[Difference],
    descriptions: Mapping[str, Description | Sequence[Description]],
) -> tuple[Place, ...]:
    ordered = sorted(summaries, key=lambda each: -each.interval.mean)
    first, means = ordered[0], [each.interval.mean for each in ordered]
    confidence = first.interval.confidence
    places = []
    for summary in ordered:
        behind = None
        if summary is not first:
            names = (first.name, summary.name)
            try:
                left, right = (sides[name] for name in names)
                # a line is one setting throughout, so that seed and fold are all that pairs
                labels = labels_of_rows([*left, *right])
                behind = compare_sides(left, right, *names, metric, but=labels, confidence=confidence)
            except NoPairs:
                behind = None
        rows, said = sides[summary.name], descriptions.get(summary.name, ())
        opened = [row["openings"] for row in rows if row.get("openings") is not None]
        openings = max(opened) if opened else None
        marks = _marks(summary, rows, unfair, [said] if isinstance(said, Mapping) else said, openings)
        places.append(Place(1 + means.index(summary.interval.mean), summary, marks, behind, summary is first, openings))
    return tuple(places)


def _marks(
    summary: Summary,
    rows: Sequence[Row],
    unfair: Sequence[Difference],
    descriptions: Sequence[Description],
    openings: int | None,
) -> tuple[str, ...]:
    told = ["tuned on test"] if any(row.get("tuned_on_test") for row in rows) else []
    told += [each for said in descriptions for each in feedback(said)]
    if unfair:
        told.append("unfair: " + ", ".join(_marked(each, summary.name) for each in unfair))
    if summary.interval.count == 1:
        told.append("seeds not known" if None in summary.scores else "one seed")
    if summary.failed:
        told.append(f"{summary.failed} failed")
    if summary.incomplete:
        told.append(f"{summary.incomplete} {'seed' if summary.incomplete == 1 else 'seeds'} incomplete")
    if openings is not None and openings > 1:
        told.append(f"test set opened {openings} times")
    return tuple(dict.fromkeys(told))


def _marked(found: Difference, name: str) -> str:
    """A difference in a few words; a footnote says the rest."""
    value = found.values[name]
    return found.what if isinstance(value, Mapping | list) else f"{found.what} {in_words(value)}"
