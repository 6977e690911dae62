"""What papers claim, tested on birds: one sentence each, with a number and an interval."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from likewise.protocols.pairs import Comparison, NoPairs, compare, compare_sides
from likewise.protocols.significance import holm
from likewise.protocols.trial import Result
from studies.birds.added import ADDED, PART, Added, name_of, strength
from studies.birds.record import SEARCHED_SEED

Rows = Sequence[Mapping[str, Any]]
RECENT = (
    *("Multi-similarity", "Multi-similarity + miner", "SoftTriple", "FastAP", "SNR contrastive", "Circle"),
    *(
        "Proxy-Anchor",
        "ProxyNCA++",
        "ProxyGML",
        "Proxy repulsion",
        "ArcFace",
        "CosFace",
        "NT-Xent",
    ),
)
"""Losses that a paper of 2018 or later proposed as a loss of its own; not what is added to others."""

CONFIDENCE = 0.95

METRIC = "test MAP@R"
RIVAL = "Is contrastive as good as {}, under equal terms?"
FOUND = "{} against {}, each as its own search found it"
SIZE = "Are {} dimensions better than {}?"
TWICE = "How far apart does one function end that is written in two ways?"
TUNING = "Does tuning help the five that are best on validation classes?"
FLATTERY = "How much does choosing on test classes flatter?"
SIZES = ((1024, 512), (512, 128), (128, 64))
SIZE_OF_FIVE = "Are 512 dimensions better than 128 for the five that are best on validation classes?"
MINED = (("Multi-similarity + miner", "RAW + semi-hard"), ("Multi-similarity + miner", "RAW + distance weighted"))
"""Ways to choose among the pairs that RAW weighs."""

TWINS = ("ProxyNCA++", "Normalized softmax")
"""The same function: the one's temperature is twice the other's, and their proxies begin with other lengths."""

Answer = dict[str, Any]


def claims(results: Sequence[Result], search: Mapping[str, Any]) -> list[Answer]:
    """Every question with its answer, as far as there are results."""
    rows = [result.row() for result in results if result.trial.stage == "final"]
    at_512 = [row for row in rows if row.get("part") == "verdict" and row.get("dim") == 512]
    there = {row["method"] for row in at_512 if row["status"] == "done"}

    def pair(a: str, b: str) -> Callable[[], Comparison | None]:
        return lambda: compare(at_512, a, b, METRIC) if {a, b} <= there else None

    asked: list[tuple[str, str, Callable[[], Comparison | Answer | None]]] = [
        *((one.question, one.source, lambda one=one: helped(one, rows, results)) for one in ADDED),
        *((FOUND.format(one.method, one.base), one.source, pair(one.method, one.base)) for one in ADDED),
        *((FOUND.format(*names), "the unified view", pair(*names)) for names in MINED),
        (TWICE, "this page", lambda: twice(pair(*TWINS)())),
        *((SIZE.format(*dims), "the thesis", lambda dims=dims: sizes(rows, *dims)) for dims in SIZES),
        (
            SIZE_OF_FIVE,
            "the thesis",
            lambda: sizes(rows, 512, 128, {row["method"] for row in rows if row["dim"] == 64}),
        ),
        (TUNING, "everybody", lambda: tuned(rows)),
        (FLATTERY, "the reality check", lambda: flattery(rows, search)),
    ]
    rivals = [(RIVAL.format(name), "the thesis, the reality check", pair(name, "Contrastive")) for name in RECENT]
    return [*together(answers(rivals)), *answers(asked)]


def answers(asked: Sequence[tuple[str, str, Callable[[], Comparison | Answer | None]]]) -> list[Answer]:
    """The questions that can be answered."""
    found = [(question, source, answer_of(ask)) for question, source, ask in asked]
    return [
        {"question": question, "claimed by": source, **answer}
        for question, source, answer in found
        if answer is not None
    ]


def answer_of(ask: Callable[[], Comparison | Answer | None]) -> Answer | None:
    try:
        answer = ask()
    except NoPairs:  # a side has no results yet
        return None
    if not isinstance(answer, Comparison):
        return answer
    said = {"sentence": str(answer), "verdict": answer.verdict, "difference": asdict(answer.difference)}
    return said | {"p": answer.p}


def together(family: list[Answer]) -> list[Answer]:
    """The same question about many losses: what holds of each must hold among so many (Holm's correction)."""
    corrected = holm([1.0 if one["p"] is None else one["p"] for one in family])
    for one, p in zip(family, corrected, strict=True):
        one["p, corrected"] = p
        if one["verdict"] != "not distinguishable" and p > 1.0 - CONFIDENCE:
            one["verdict"] = "not distinguishable"
            one["sentence"] += f"; not distinguishable after Holm's correction for {len(family)} losses"
    return family


def helped(one: Added, rows: Rows, results: Sequence[Result]) -> Answer | None:
    """A method with an addition, and the same setting without it."""
    at_512 = [row for row in rows if row.get("dim") == 512]
    sides = [
        [{**row, "method": "either"} for row in at_512 if (row["method"], row.get("part")) == (name, part)]
        for name, part in ((name_of(one), PART), (one.base, "verdict"))
    ]
    value = strength(one, results)
    if value is None:
        return None
    found = answer_of(lambda: compare_sides(*sides, one.method, one.base, METRIC, but=("part",)))
    if found is None:
        return None
    tried = ", ".join(f"{each:g}" for each in one.values)
    edge = value in (one.values[0], one.values[-1])
    at = f"{one.path.rpartition('.')[2]} {value:g}, {'at the edge ' if edge else ''}of {tried}"
    return found | {"sentence": f"{found['sentence']}; {at}, and nothing else is different", "edge": edge}


def twice(twins: Comparison | None) -> Answer | None:
    """What the search found of the same function twice: no method explains the difference."""
    if twins is None:
        return None
    gap = twins.difference
    low, high = sorted(math.copysign(1.0, gap.mean) * end for end in (gap.low, gap.high))
    sentence = (
        f"{twins.a} and {twins.b} are one function, with a temperature of 2T in the one and T in the other; with the "
        f"same draws of that temperature and the rates they end {100 * abs(gap.mean):.1f} points of MAP@R apart (95% interval over seeds "
        f"{100 * low:.1f} to {100 * high:.1f}, {twins.pairs} pairs): so much can hang on where ten settings lie, and on the length with "
        "which proxies begin"
    )
    return {"sentence": sentence, "verdict": "the same function", "difference": asdict(gap)}


def sizes(rows: Rows, large: int, small: int, only: Container[str] | None = None) -> Answer | None:
    """The same methods in two sizes."""
    verdict = [row for row in rows if row.get("part") == "verdict" and (only is None or row["method"] in only)]
    sides = ([row for row in verdict if row["dim"] == dim] for dim in (large, small))
    return by_method(*sides, f"{large}-d", f"{small}-d")


def tuned(rows: Rows) -> Answer | None:
    """The found settings against the ones that the search began with, for the methods where both were trained."""
    at_512 = [row for row in rows if row.get("dim") == 512]
    after, before = ([row for row in at_512 if row.get("part") == part] for part in ("verdict", "untuned"))
    found = by_method(after, before, "tuned", "untuned")
    if found is None:
        return None
    told = []
    for name in dict.fromkeys(row["method"] for row in before):
        sides = [[row for row in side if row["method"] == name] for side in (after, before)]
        if [row[METRIC] for row in sides[0]] == [row[METRIC] for row in sides[1]]:
            told.append(f"{name} nothing, because its first setting was the best")
        elif one := answer_of(partial(compare_sides, *sides, "tuned", "untuned", METRIC, but=("part",))):
            told.append("{} {mean:+.2f} ({low:+.2f} to {high:+.2f})".format(name, **points(one)))
    said = f"{found['sentence']}; one by one: {', '.join(told)}; methods whose first setting fails were not asked"
    return found | {"sentence": said}


def points(one: Mapping[str, Any]) -> dict[str, float]:
    """A difference and its interval in per cent."""
    return {name: 100 * one["difference"][name] for name in ("mean", "low", "high")}


def by_method(of_a: Rows, of_b: Rows, a: str, b: str) -> Answer | None:
    """Each method's mean over seeds is one pair: its seeds share its setting."""
    means = []
    for side in (of_a, of_b):
        of: dict[str, list[float]] = {}
        for row in side:
            if row["status"] == "done":
                of.setdefault(row["method"], []).append(row[METRIC])
        means.append({name: statistics.fmean(values) for name, values in of.items()})
    there = sorted(means[0].keys() & means[1].keys())
    sides = ([{"seed": at, METRIC: side[name]} for at, name in enumerate(there)] for side in means)
    found = answer_of(lambda: compare_sides(*sides, a, b, METRIC))
    return None if found is None else found | {"sentence": f"{found['sentence']}; a pair is a method"}


def tried(search: Mapping[str, Any], method: str) -> dict[str, Mapping[str, Any]]:
    """The points of a published search that were trained to their end, by the names of their parts."""
    points = next((row["points"] for row in search["rows"] if row["method"] == method), [])
    return {f"point {number}": one["point"] for number, one in enumerate(points) if one["val MAP@R"] is not None}


def flattery(rows: Rows, search: Mapping[str, Any]) -> dict[str, Any] | None:
    """What choosing by test classes adds to the number that is reported; a method is one repeat."""
    each = {}
    for name in (row["method"] for row in search["rows"]):
        points = tried(search, name)
        ours = [row for row in rows if row["method"] == name and row["seed"] == SEARCHED_SEED]
        others = [row for row in ours if row["part"] in points]
        honest = [row[METRIC] for row in ours if (row["part"], row["dim"]) == ("verdict", 512) and METRIC in row]
        if honest and others and len(others) == len(points) - 1:  # all but the one that was chosen
            each[name] = max(honest[0], *(row.get(METRIC, 0.0) for row in others)) - honest[0]
    if len(each) < 2:
        return None
    told = ", ".join(f"{name} {100 * gap:.2f}" for name, gap in sorted(each.items(), key=lambda pair: -pair[1]))
    sentence = (
        f"who chooses by test classes instead of validation classes, among the settings that the search trained to their end, one "
        f"seed, reports {100 * statistics.median(each.values()):.2f} points of MAP@R more in the middle of {len(each)} methods ({told})"
    )
    return {"sentence": sentence, "verdict": "tuned on test", "methods": each}
