"""Leaderboards: methods in the order of their means, as values and as text."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from likewise.protocols.fairness import Difference
from likewise.protocols.pairs import Comparison
from likewise.protocols.repeats import FEWEST, Summary
from likewise.text import align, metric_in_words


class Unfair(ValueError):  # noqa: N818
    """Raised if runs differ in more than the method, so that a ranking would be unfair.

    Args:
        differences: the differences that make the comparison unfair.

    Examples:
        >>> raise Unfair([Difference("trunk", {"margin": "resnet50", "triplet": "googlenet"}, "Networks differ.")])
        Traceback (most recent call last):
        likewise.protocols.leaderboard.Unfair: runs must differ only in the method to be ranked, but they differ
        in trunk: resnet50 (margin), googlenet (triplet); allow_unfair=True ranks them anyway, with a mark
    """

    def __init__(self, differences: Sequence[Difference]) -> None:
        self.differences = tuple(differences)
        listed = "; ".join(map(str, self.differences))
        super().__init__(
            f"runs must differ only in the method to be ranked, but they differ in {listed}; "
            "allow_unfair=True ranks them anyway, with a mark"
        )


@dataclass(frozen=True)
class Place:
    """A line of a leaderboard.

    Args:
        rank: the rank, from 1; equal means share a rank.
        summary: mean, interval and seeds.
        marks: remarks such as ``"tuned on test"``, ``"unfair: …"`` or ``"one seed"``.
        behind: the comparison of the first method with this one; ``None`` for the first method, and without pairs.
        first: whether it is the method with which the others are compared.
        openings: the largest number of openings of the test set of one of its runs; ``None`` if it is unknown.

    Examples:
        >>> from likewise.protocols import rank
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
    """Methods in the order of their means, with notes.

    Args:
        metric: the column by which methods are ranked.
        places: the methods, best first.
        differences: differences between runs besides the method.
        checked: whether the conditions of the runs were compared; otherwise only the columns of the table were.
        missing: settings without a complete seed.
        remark: a sentence for the reader, such as why this metric was chosen.

    Examples:
        >>> from likewise.protocols import rank
        >>> scores = {"a": (0.50, 0.52, 0.54), "b": (0.49, 0.50, 0.52)}
        >>> rows = [{"method": m, "seed": s, "test R@1": each[s]} for m, each in scores.items() for s in range(3)]
        >>> print(rank(rows, "test R@1").text())
        R@1 in percent: mean and 95% interval over seeds
        #  method  R@1    95% interval    seeds  behind the first  marks
        1  a       52.00  47.03 to 56.97  3
        2  b       50.33  46.54 to 54.13  3      1.67 (0.23 to 3.10)
        Not checked: whether the runs differ in more than the method, because their conditions were not given.
    """

    metric: str
    places: tuple[Place, ...]
    differences: tuple[Difference, ...] = ()
    checked: bool = True
    missing: tuple[str, ...] = ()
    remark: str = ""

    @property
    def unfair(self) -> tuple[Difference, ...]:
        """The differences that make the ranking unfair; empty unless the ranking was forced."""
        return tuple(each for each in self.differences if each.severity == "unfair")

    def rows(self) -> list[dict[str, Any]]:
        """Return one dict per place, all with the same keys and plain values; metrics are fractions."""
        return [self._row(place) for place in self.places]

    def _row(self, place: Place) -> dict[str, Any]:
        interval, behind = place.summary.interval, place.behind
        has_interval = interval.count > 1
        row = {"rank": place.rank, **place.summary.group, "metric": self.metric, "mean": interval.mean}
        row |= {"low": interval.low if has_interval else None, "high": interval.high if has_interval else None}
        row |= {"confidence": interval.confidence, "seeds": interval.count, "folds": len(place.summary.folds)}
        row |= {"failed": place.summary.failed, "incomplete": place.summary.incomplete, "openings": place.openings}
        sure = behind is not None and behind.resolution is not None
        row["behind"] = behind.difference.mean if behind else None
        row |= {"behind_low": behind.difference.low if behind and sure else None}
        row |= {"behind_high": behind.difference.high if behind and sure else None}
        row |= {"distinguishable": behind.verdict != "not distinguishable" if behind else None}
        row |= {"pairs": behind.pairs if behind else None, "fair": not self.unfair, "checked": self.checked}
        return row | {"marks": "; ".join(place.marks)}

    def footnotes(self) -> list[str]:
        """Return the notes below the table."""
        notes = [self.remark] if self.remark else []
        if self.unfair:
            notes.append("* Unfair: ranked on request, although the runs differ in more than the method.")
            notes += [f"  {each}. {each.why}" for each in self.unfair]
        notes += [f"Note: {each}. {each.why}" for each in self.differences if each.severity == "note"]
        if not self.checked:
            notes.append(
                "Not checked: whether the runs differ in more than the method, because their conditions were not given."
            )
        if self.missing:
            notes.append(f"Without a complete result: {', '.join(self.missing)}.")
        return notes

    def text(self, width: int = 120) -> str:
        """Format the table for a terminal."""
        confidence = self.places[0].summary.interval.confidence
        columns = list(self.places[0].summary.group)
        shown, sure = metric_in_words(self.metric), f"{100 * confidence:g}% interval"
        folds = max(len(place.summary.folds) for place in self.places)
        over = f"over seeds, each a mean over {folds} folds" if folds > 1 else "over seeds"
        cells = [["#", *columns, self.metric.partition(" ")[2], sure, "seeds", "behind the first", "marks"]]
        cells += [self._cells(place, columns) for place in self.places]
        lines = [f"{shown} in percent: mean and {sure} {over}"]
        for (*_, marks), start in zip(cells, align(row[:-1] for row in cells), strict=True):
            indent = len(start) + 2
            lines += _wrap(marks, f"{start}  ", " " * indent, max(width, indent + 24))
        for note in self.footnotes():
            lines += _wrap(note.strip(), " " * (len(note) - len(note.lstrip())), "    ", width)
        return "\n".join(lines)

    def _cells(self, place: Place, columns: Sequence[str]) -> list[str]:
        scores = place.summary.interval
        interval = f"{100 * scores.low:.2f} to {100 * scores.high:.2f}" if scores.count >= FEWEST else "none"
        group = [str(place.summary.group[column]) for column in columns]
        number = f"{place.rank}{'*' if self.unfair else ''}"
        return [
            number,
            *group,
            f"{100 * scores.mean:.2f}",
            interval,
            str(scores.count),
            _format_gap(place),
            "; ".join(place.marks),
        ]


def _format_gap(place: Place) -> str:
    """Format the distance of a method from the first one."""
    if place.behind is None:
        return "" if place.first else "no pairs"
    difference = place.behind.difference
    if place.behind.verdict == "not distinguishable":
        return "not distinguishable"
    return f"{100 * difference.mean:.2f} ({100 * difference.low:.2f} to {100 * difference.high:.2f})"


def _wrap(text: str, first: str, rest: str, width: int) -> list[str]:
    lines = textwrap.wrap(text, width, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)
    return [line.rstrip() for line in lines or [first]]
