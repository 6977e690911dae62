"""Paired comparisons of methods: one is better, or they are not distinguishable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import ceil, isinf, log10
from statistics import fmean
from typing import Any, Literal

from likewise.formula import one_of
from likewise.metrics import Interval, t_interval
from likewise.protocols.repeats import FEWEST, Row, index_rows, is_done, read_metric, select_stage, shared_labels
from likewise.protocols.significance import flip_p, holm, paired_p
from likewise.text import align, metric_in_words

Unit = Literal["seed", "fold"]
Verdict = Literal["better", "worse", "not distinguishable"]


class NoPairs(ValueError):  # noqa: N818
    """Raised if two methods have no runs with the same seed, fold and setting.

    Examples:
        >>> compare_sides([{"seed": 0, "test R@1": 0.5}], [{"seed": 1, "test R@1": 0.5}], "a", "b", "test R@1")
        Traceback (most recent call last):
        likewise.protocols.pairs.NoPairs: a and b must have runs with the same seed, fold and setting, but 'a' and 'b' have none
    """


@dataclass(frozen=True)
class Comparison:
    """The comparison of two methods over the same seeds, folds and settings.

    Args:
        a: the first method.
        b: the second method.
        metric: the compared column.
        difference: the mean of a minus b over pairs, with its interval, which is infinite for one pair.
        differences: the difference of each pair.
        p: the p-value of the two-sided paired t-test; ``None`` for one pair.
        p_flip: the p-value of the two-sided sign-flip test, which assumes only that the distribution of differences is
            symmetric; with n pairs it is at least 2 / 2ⁿ.
        unpaired: the numbers of runs of a and b without a partner.
        failed: the numbers of runs of a and b that failed or were pruned.
        settings: the number of settings (trunk, size, …) of the pairs.
        tuned_on_test: those of a and b that were tuned on the test set.

    Examples:
        >>> scores = {"a": (0.50, 0.52, 0.54), "b": (0.49, 0.50, 0.52)}
        >>> rows = [{"method": m, "seed": s, "test R@1": each[s]} for m, each in scores.items() for s in range(3)]
        >>> print(compare(rows, "a", "b", "test R@1"))
        a is better than b by 1.7 points of R@1 (95% interval 0.2 to 3.1, 3 pairs)
        >>> print(compare(rows[:4], "a", "b", "test R@1"))
        a and b are not distinguishable by R@1 (a is 1.0 points above, one pair: the variation between pairs is unknown);
        2 runs of a had no partner
    """

    a: str
    b: str
    metric: str
    difference: Interval
    differences: tuple[float, ...]
    p: float | None
    p_flip: float
    unpaired: tuple[int, int] = (0, 0)
    failed: tuple[int, int] = (0, 0)
    settings: int = 1
    tuned_on_test: tuple[str, ...] = ()

    @property
    def pairs(self) -> int:
        """The number of pairs."""
        return self.difference.count

    @property
    def verdict(self) -> Verdict:
        """Whether a is better or worse than b: the interval of at least three pairs is above or below zero."""
        if self.pairs < FEWEST:
            return "not distinguishable"
        if self.difference.low > 0.0:
            return "better"
        return "worse" if self.difference.high < 0.0 else "not distinguishable"

    @property
    def resolution(self) -> float | None:
        """Half the width of the interval: the difference that is detected with 50% power; ``None`` for one pair."""
        half = (self.difference.high - self.difference.low) / 2.0
        return None if isinf(half) else half

    def __str__(self) -> str:
        verdict: Verdict = self.verdict
        difference, shown = self.difference, metric_in_words(self.metric)
        digits = _digits(difference.mean, self.resolution)
        pairs = "one pair" if self.pairs == 1 else f"{self.pairs} pairs"
        pairs += f" over {self.settings} settings" if self.settings > 1 else ""
        sure = f"{100 * difference.confidence:g}% interval"
        if verdict != "not distinguishable":
            sign = 1.0 if verdict == "better" else -1.0
            low, high = sorted((sign * difference.low, sign * difference.high))
            ends = f"{_points(low, digits)} to {_points(high, digits)}"
            size = _points(sign * difference.mean, digits)
            sentence = f"{self.a} is {verdict} than {self.b} by {size} points of {shown} ({sure} {ends}, {pairs})"
            return sentence + self._tail()
        size = _points(abs(difference.mean), digits)
        size = f"less than {10.0**-digits:g}" if difference.mean and float(size) == 0.0 else size
        above = f"{self.a} is {size} points {'above' if difference.mean >= 0 else 'below'}"
        if self.resolution is None:
            why = f"{above}, {pairs}: the variation between pairs is unknown"
        elif self.pairs < FEWEST:
            why = f"{above}, {pairs}: at least {FEWEST} are needed"
        else:
            ends = f"{_points(difference.low, digits)} to {_points(difference.high, digits)}"
            seen = f"a difference of about {_points(self.resolution, digits)} would be detected with 50% power"
            why = f"{above}, {sure} {ends}, {pairs}; with {pairs} {seen}"
        return f"{self.a} and {self.b} are not distinguishable by {shown} ({why})" + self._tail()

    def _tail(self) -> str:
        """Format remarks, which are appended to the sentence."""
        remarks = []
        for counts, what in ((self.unpaired, "had no partner"), (self.failed, "failed")):
            named = [
                f"{count} {'run' if count == 1 else 'runs'} of {name}"
                for name, count in zip((self.a, self.b), counts, strict=True)
                if count
            ]
            remarks += [f"{' and '.join(named)} {what}"] if named else []
        if self.tuned_on_test:
            remarks.append(f"{' and '.join(self.tuned_on_test)} tuned on test")
        return "".join(f"; {each}" for each in remarks)


def compare(
    rows: Sequence[Row],
    a: str,
    b: str,
    metric: str = "test MAP@R",
    *,
    by: str = "method",
    unit: Unit = "seed",
    stage: str = "final",
    confidence: float = 0.95,
) -> Comparison:
    """Compare two methods over the same seeds, folds and settings.

    Two runs are a pair if they agree in seed, fold and every label without a dot (trunk, size, data; labels such as
    ``loss.alpha`` belong to the method).  Effects of a seed, a fold or a setting that are common to both methods cancel in
    the differences.  The interval is Student's t interval.

    Args:
        rows: the tidy table of results.
        a: a value of the column ``by``.
        b: another value of it.
        metric: the column to compare; values are fractions, higher is better.
        by: the column of the method.
        unit: ``"seed"``: a pair is the mean over the folds of a seed; ``"fold"``: each fold is a pair, which makes the
            interval too narrow, because folds share training classes.
        stage: ``"final"`` or ``"search"``.
        confidence: the confidence level of the interval.

    Examples:
        >>> scores = {"a": (0.500, 0.520, 0.510), "b": (0.495, 0.525, 0.505)}
        >>> rows = [{"method": m, "seed": s, "test MAP@R": each[s]} for m, each in scores.items() for s in range(3)]
        >>> print(compare(rows, "a", "b"))
        a and b are not distinguishable by MAP@R (a is 0.2 points above, 95% interval -1.3 to 1.6, 3 pairs; with 3 pairs
        a difference of about 1.4 would be detected with 50% power)
    """
    chosen = select_stage(rows, metric, stage)
    if a == b:
        raise ValueError(f"a and b must be different methods, but both are {a!r}")
    sides = [[row for row in chosen if row.get(by) == name] for name in (a, b)]
    for place, name, side in zip("ab", (a, b), sides, strict=True):
        if not side:
            there = ", ".join(sorted({str(row.get(by)) for row in chosen}))
            raise ValueError(f"{place} must be one of the rows' {by} ({there}), but it is {name!r}")
    return compare_sides(sides[0], sides[1], a, b, metric, but=(by,), unit=unit, confidence=confidence)


def compare_sides(
    of_a: Sequence[Row],
    of_b: Sequence[Row],
    a: str,
    b: str,
    metric: str,
    *,
    but: Sequence[str] = ("method",),
    unit: Unit = "seed",
    confidence: float = 0.95,
) -> Comparison:
    """Compare the rows of two sides; see `compare`.

    Args:
        of_a: the rows of the first side.
        of_b: the rows of the second side.
        a: the name of the first side.
        b: the name of the second side.
        metric: the column to compare.
        but: labels that are not used for pairing, because the sides differ in them.
        unit: the unit of a pair; see `compare`.
        confidence: the confidence level of the interval.

    Examples:
        >>> small, large = {"dim": 64, "test R@1": 0.5}, {"dim": 512, "test R@1": 0.6}
        >>> compare_sides([large], [small], "512", "64", "test R@1", but=("dim",)).pairs
        1
    """
    one_of("unit", unit, ("seed", "fold"))
    columns = ("seed", "fold", *shared_labels([*of_a, *of_b], but))
    left, right = (
        index_rows(name, [row for row in rows if is_done(row)], columns) for name, rows in ((a, of_a), (b, of_b))
    )
    both = [key for key in left if key in right]
    if not both:
        raise NoPairs(f"a and b must have runs with the same seed, fold and setting, but {a!r} and {b!r} have none")
    gathered: dict[tuple[Any, ...], list[float]] = {}
    for seed, fold, *setting in both:
        key = (seed, fold, *setting)
        pair = (seed, *setting) if unit == "seed" else key
        gathered.setdefault(pair, []).append(read_metric(left[key], metric, a) - read_metric(right[key], metric, b))
    differences = [fmean(each) for each in gathered.values()]
    return Comparison(
        a,
        b,
        metric,
        t_interval(differences, confidence),
        tuple(differences),
        paired_p(differences),
        flip_p(differences),
        (len(left) - len(both), len(right) - len(both)),
        (len(of_a) - len(left), len(of_b) - len(right)),
        len({tuple(key[2:]) for key in both}),
        tuple(name for name, rows in ((a, of_a), (b, of_b)) if any(row.get("tuned_on_test") for row in rows)),
    )


def _digits(mean: float, half: float | None) -> int:
    """Return the number of decimals at which half the interval, in points, has one nonzero digit."""
    size = 100 * abs(half or mean)
    return min(max(1, ceil(-log10(size))), 4) if size else 1


def _points(value: float, digits: int) -> str:
    shown = f"{100 * value:.{digits}f}"
    return shown.lstrip("-") if float(shown) == 0.0 else shown


@dataclass(frozen=True)
class Comparisons:
    """The comparisons of all methods with each other.

    Args:
        names: the methods.
        cells: the comparison of each two methods, in the order of ``names``.
        without: methods without a pair of runs, two by two.
        corrected: p-values after Holm's correction; ``None`` without correction.

    Examples:
        >>> scores = {"a": (0.50, 0.52, 0.54), "b": (0.49, 0.50, 0.52)}
        >>> rows = [{"method": m, "seed": s, "test R@1": each[s]} for m, each in scores.items() for s in range(3)]
        >>> print(compare_all(rows, "test R@1").text())
        row minus column, in points of R@1; in brackets: not distinguishable
              a     b
        a        +1.7
        b  -1.7
        1 comparison at 95%.
    """

    names: tuple[str, ...]
    cells: Mapping[tuple[str, str], Comparison]
    without: tuple[tuple[str, str], ...] = ()
    corrected: Mapping[tuple[str, str], float] | None = None

    def verdict(self, a: str, b: str) -> Verdict | None:
        """Return whether a is better or worse than b, after the correction if there is one; ``None`` without pairs."""
        key = (a, b) if (a, b) in self.cells else (b, a)
        if key not in self.cells:
            return None
        cell = self.cells[key]
        if self.corrected is not None and self.corrected[key] > 1.0 - cell.difference.confidence:
            return "not distinguishable"
        return cell.verdict if key == (a, b) else _TURNED[cell.verdict]

    def sentences(self) -> list[str]:
        """Describe each comparison in a sentence."""
        sentences = []
        for key, cell in self.cells.items():
            verdict = self.verdict(*key)
            changed = verdict != cell.verdict and verdict is not None
            sentences.append(f"{cell}; not distinguishable after Holm's correction" if changed else str(cell))
        return sentences

    @property
    def note(self) -> str:
        """A note on multiple comparisons."""
        count = len(self.cells)
        if not count:
            return "no two methods have a pair of runs."
        confidence = next(iter(self.cells.values())).difference.confidence
        note = f"{count} comparison{'s' if count > 1 else ''} at {100 * confidence:g}%"
        wrong = 1.0 - confidence
        if self.corrected is not None:
            note += f", with Holm's correction: the chance of any false difference is at most {100 * wrong:.2g}%"
        elif count > 1:
            note += (
                f", uncorrected: if all methods were equal, about {wrong * count:.2g} of them would appear different"
            )
        missing = f"; without a pair: {', '.join(' and '.join(each) for each in self.without)}" if self.without else ""
        return f"{note}{missing}."

    def matrix(self) -> list[list[float | None]]:
        """Return the differences, row minus column; ``None`` on the diagonal and without pairs."""
        return [[self._difference(a, b) for b in self.names] for a in self.names]

    def _difference(self, a: str, b: str) -> float | None:
        if (a, b) in self.cells:
            return self.cells[a, b].difference.mean
        return -self.cells[b, a].difference.mean if (b, a) in self.cells else None

    def text(self) -> str:
        """Format the matrix for a terminal."""
        cells = [["", *self.names]]
        for name, row in zip(self.names, self.matrix(), strict=True):
            cells.append([name, *(self._cell(name, b, value) for b, value in zip(self.names, row, strict=True))])
        lines = [line.rstrip() for line in align(cells, left=1)]
        metric = metric_in_words(next(iter(self.cells.values())).metric) if self.cells else "nothing"
        head = f"row minus column, in points of {metric}; in brackets: not distinguishable"
        return "\n".join([head, *lines, self.note])

    def _cell(self, a: str, b: str, value: float | None) -> str:
        if value is None:
            return "" if a == b else "?"
        return f"({100 * value:+.1f})" if self.verdict(a, b) == "not distinguishable" else f"{100 * value:+.1f}"


_TURNED: dict[Verdict, Verdict] = {
    "better": "worse",
    "worse": "better",
    "not distinguishable": "not distinguishable",
}


def compare_all(
    rows: Sequence[Row],
    metric: str = "test MAP@R",
    *,
    by: str = "method",
    correct: Literal["none", "holm"] = "none",
    unit: Unit = "seed",
    stage: str = "final",
    confidence: float = 0.95,
) -> Comparisons:
    """Compare every method with every other one.

    Args:
        rows: the tidy table of results.
        metric: the column to compare.
        by: the column of the method.
        correct: ``"holm"``: Holm's correction, which limits the probability of any false difference to that of a single
            comparison; intervals are not changed.
        unit: the unit of a pair; see `compare`.
        stage: ``"final"`` or ``"search"``.
        confidence: the confidence level of the intervals.

    Examples:
        >>> scores = {"a": (0.50, 0.52, 0.54), "b": (0.49, 0.50, 0.52), "c": (0.3, 0.3, 0.3)}
        >>> rows = [{"method": m, "seed": s, "test R@1": each[s]} for m, each in scores.items() for s in range(3)]
        >>> comparisons = compare_all(rows, "test R@1", correct="holm")
        >>> comparisons.verdict("c", "a"), comparisons.verdict("a", "b")
        ('worse', 'better')
        >>> comparisons.note
        "3 comparisons at 95%, with Holm's correction: the chance of any false difference is at most 5%."
    """
    one_of("correct", correct, ("none", "holm"))
    chosen = select_stage(rows, metric, stage)
    sides: dict[str, list[Row]] = {}
    for row in chosen:
        sides.setdefault(str(row.get(by)), []).append(row)
    cells, without = {}, []
    for a, b in combinations(sides, 2):
        try:
            cells[a, b] = compare_sides(sides[a], sides[b], a, b, metric, but=(by,), unit=unit, confidence=confidence)
        except NoPairs:
            without.append((a, b))
    corrected = None
    if correct == "holm":
        # a comparison with one pair has no p-value, but it counts
        values = [1.0 if cell.p is None else cell.p for cell in cells.values()]
        corrected = dict(zip(cells, holm(values), strict=True))
    return Comparisons(tuple(sides), cells, tuple(without), corrected)
