"""Retrieval metrics the long way: plain Python lists, every order of the tied written out."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product
from math import log2

KS = (1, 2, 4, 100)
AT_K = tuple(f"{name}@{k}" for name in ("R", "P", "mAP", "nDCG") for k in KS)
METRICS = (*AT_K, "RP", "MAP@R", "MRR", "mAP")


def of_order(hits: list[bool]) -> dict[str, Fraction]:
    """Metrics of one query whose references, nearest first, are hits or misses."""
    places = [place for place, hit in enumerate(hits, start=1) if hit]
    total = len(places)
    average, at_r = Fraction(0), Fraction(0)
    for found, place in enumerate(places, start=1):
        average += Fraction(found, place)
        if place <= total:
            at_r += Fraction(found, place)
    values = {}
    for k in KS:
        precisions = sum(Fraction(found, place) for found, place in enumerate(places, start=1) if place <= k)
        gain = sum(Fraction(1.0 / log2(1 + place)) for place in places if place <= k)
        ideal = sum(Fraction(1.0 / log2(1 + place)) for place in range(1, min(k, total) + 1))
        values[f"R@{k}"] = Fraction(any(hits[:k]))
        values[f"P@{k}"] = Fraction(sum(hits[:k]), k)
        values[f"mAP@{k}"] = precisions / Fraction(min(k, total))
        values[f"nDCG@{k}"] = gain / Fraction(ideal)
    return {
        **values,
        "RP": Fraction(sum(hits[:total]), total),
        "MAP@R": at_r / total,
        "MRR": Fraction(1, places[0]),
        "mAP": average / total,
    }


def orders(similarities: list[float], positive: list[bool]) -> list[list[list[bool]]]:
    """For each group of equal similarities, highest first, every pattern of hits and misses in it."""
    groups = []
    for value in sorted(set(similarities), reverse=True):
        tied = [hit for s, hit in zip(similarities, positive, strict=True) if s == value]
        ways = combinations(range(len(tied)), sum(tied))
        groups.append([[place in way for place in range(len(tied))] for way in ways])
    return groups


def of_query(similarities: list[float], positive: list[bool], ties: str) -> dict[str, float] | None:
    """Metrics of one query over all its references; ``None`` if none of them is positive."""
    if not any(positive):
        return None
    groups = orders(similarities, positive)
    if ties != "expected":
        best = ties == "optimistic"
        hits = [hit for group in groups for hit in sorted(group[0], reverse=best)]
        return {name: float(value) for name, value in of_order(hits).items()}
    total: dict[str, Fraction] = dict.fromkeys(METRICS, Fraction(0))
    count = 0
    for arrangement in product(*groups):
        values = of_order([hit for group in arrangement for hit in group])
        total = {name: total[name] + values[name] for name in total}
        count += 1
    return {name: float(value / count) for name, value in total.items()}


def expected_ranks(similarities: list[float], positive: list[bool]) -> list[float]:
    """The expected rank of each positive, in order of appearance."""
    total, count = [Fraction(0)] * sum(positive), 0
    for arrangement in product(*orders(similarities, positive)):
        places = [place for place, hit in enumerate([h for g in arrangement for h in g], start=1) if hit]
        total = [a + b for a, b in zip(total, places, strict=True)]
        count += 1
    return [float(value / count) for value in total]
