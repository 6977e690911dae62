"""Formatting of numbers, values and names on pages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import floor, isfinite, log10
from typing import Any

from likewise.metrics import Interval

METRICS = {
    "RP": "R-precision: the share of correct results among the first R, where R is the number of relevant images",
    "MAP@R": "mean average precision at R: like RP, but sensitive to the order",
    "MRR": "the inverse rank of the first correct result",
    "mAP": "mean average precision over all ranks",
    "NMI": "normalized mutual information of classes and k-means clusters",
    "AMI": "the same, adjusted: zero for random clusters",
    "F1": "pairs in one cluster against pairs of one class: harmonic mean of precision and recall",
}
"""Metrics in the order of their columns, after recall@k, with their meanings."""


def meaning_of(metric: str) -> str:
    """Return the meaning of a metric; an empty string for an unknown one.

    Examples:
        >>> meaning_of("R@10"), meaning_of("accuracy")
        ('a neighbor of the right class is among the first 10', '')
    """
    if metric == "R@1":
        return "the nearest neighbor has the right class"
    return (
        f"a neighbor of the right class is among the first {metric[2:]}"
        if metric.startswith("R@")
        else METRICS.get(metric, "")
    )


def sort_metrics(names: Iterable[str]) -> list[str]:
    """Sort metrics: recall@k by k, then the other known metrics, then the rest in their order.

    Examples:
        >>> sort_metrics(["accuracy", "mAP", "R@10", "R@2"])
        ['R@2', 'R@10', 'mAP', 'accuracy']
    """
    known = list(METRICS)

    def place(name: str) -> tuple[int, int]:
        if name.startswith("R@") and name[2:].isdecimal():
            return 0, int(name[2:])
        return (1, known.index(name)) if name in METRICS else (2, 0)

    return sorted(dict.fromkeys(names), key=place)


def percent(value: float | Interval | None, digits: int = 1) -> str:
    """Format a fraction in percent, without the percent sign.

    Examples:
        >>> percent(0.8731), percent(None)
        ('87.3', '–')
    """
    number = value.mean if isinstance(value, Interval) else value
    return "–" if number is None or not isfinite(number) else f"{100.0 * number:.{digits}f}"


def between(value: float | Interval | None) -> str:
    """Format the limits of an interval in percent; an empty string for a number without an interval.

    Examples:
        >>> between(Interval(0.5, 0.4, 0.61, 0.95, 10)), between(0.5)
        ('40.0–61.0', '')
    """
    if not isinstance(value, Interval) or not (isfinite(value.low) and isfinite(value.high)):
        return ""
    return f"{percent(value.low)}–{percent(value.high)}"


def count(number: int) -> str:
    """Format a whole number with thousands separators.

    Examples:
        >>> count(60502)
        '60,502'
    """
    return f"{number:,}"


def many(number: int, one: str, more: str | None = None) -> str:
    """Format a number with a noun in the singular or plural.

    Examples:
        >>> many(1, "class", "classes"), many(1200, "class", "classes"), many(2, "epoch")
        ('1 class', '1,200 classes', '2 epochs')
    """
    return f"{number:,} {one if number == 1 else more or one + 's'}"


def short(number: float) -> str:
    """Format a number briefly, for axes and tooltips.

    Examples:
        >>> short(0.0), short(0.25), short(100.0), short(1200.0), short(0.00003), short(12.3456)
        ('0', '0.25', '100', '1,200', '3e-5', '12.3')
    """
    if number == 0.0 or not isfinite(number):
        return "0" if number == 0.0 else str(number)
    size = floor(log10(abs(number)))
    if size < -3:
        mantissa, exponent = f"{number:.1e}".split("e")
        return f"{mantissa.removesuffix('.0')}e{int(exponent)}"
    if size >= 2:
        return f"{number:,.0f}"
    return f"{number:.{2 - size}f}".rstrip("0").rstrip(".")


def duration(seconds: float) -> str:
    """Format a duration.

    Examples:
        >>> duration(4.2), duration(75), duration(7500)
        ('4 s', '1 min 15 s', '2 h 5 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60} min"


def points(value: float | None, digits: int = 2, *, sign: bool = False) -> str:
    """Format a difference of fractions in percentage points.

    Examples:
        >>> points(0.0123, sign=True), points(-0.002, 1), points(None), points(-0.00001)
        ('+1.23', '−0.2', '–', '0.00')
    """
    if value is None or not isfinite(value):
        return "–"
    shown = f"{abs(100.0 * value):.{digits}f}"
    return shown if float(shown) == 0.0 else ("+" if sign and value > 0 else "−" if value < 0 else "") + shown


def in_words(value: Any) -> str:
    """Format a value for a sentence.

    Examples:
        >>> in_words({"name": "SGD", "momentum": 0.9}), in_words(None), in_words([64, 128]), in_words(True)
        ('name SGD, momentum 0.9', 'none', '64 and 128', 'yes')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {in_words(each)}" for key, each in value.items())
    if isinstance(value, list | tuple | set | frozenset):
        return " and ".join(map(in_words, value)) or "none"
    return "none" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


MOST = 4
"""The maximum number of names in a sentence."""


def join_names(names: Sequence[str]) -> str:
    """Join names for a sentence.

    Examples:
        >>> join_names(["a"]), join_names(["a", "b", "c"]), join_names(list("abcdef"))
        ('a', 'a, b and c', 'a, b, c and 3 more')
    """
    if len(names) > MOST:
        return f"{', '.join(names[: MOST - 1])} and {len(names) - MOST + 1} more"
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))
