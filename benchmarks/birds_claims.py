"""What papers claim, tested on birds: one sentence each, with a number and an interval."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from likewise.metrics import t_interval
from likewise.protocols.pairs import Comparison, NoPairs, compare, compare_sides
from likewise.protocols.trial import Result

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
"""Losses of 2018 and later."""

METRIC = "test MAP@R"
RIVAL = "Is contrastive as good as {}, under equal terms?"


def claims(results: Sequence[Result], search: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Every question with its answer, as far as there are results."""
    rows = [result.row() for result in results if result.trial.stage == "final"]
    at_512 = [row for row in rows if row.get("part") == "verdict" and row.get("dim") == 512]

    there = {row["method"] for row in at_512 if row["status"] == "done"}

    def pair(a: str, b: str) -> Callable[[], Comparison | None]:
        return lambda: compare(at_512, a, b, METRIC) if {a, b} <= there else None

    asked: list[tuple[str, str, Callable[[], Comparison | dict[str, Any] | None]]] = [
        *(
            (
                RIVAL.format(name),
                "the thesis, the reality check",
                pair(name, "Contrastive"),
            )
            for name in RECENT
        ),
        ("Does mining valid triplets help binomial?", "the unified view", pair("Binomial + VTHM", "Binomial")),
        (
            "Does mining help multi-similarity (RAW + VTHM against RAW)?",
            "the unified view",
            pair("Multi-similarity + miner", "Multi-similarity"),
        ),
        *(
            (
                f"Is RAW's own mining better than {other} mining?",
                "the unified view",
                pair("Multi-similarity + miner", name),
            )
            for other, name in (("semi-hard", "RAW + semi-hard"), ("distance-weighted", "RAW + distance weighted"))
        ),
        ("Does the direction help triplets?", "the overview", pair("Triplet, direction", "Triplet")),
        ("Does it help multi-similarity?", "the overview", pair("Multi-similarity, direction", "Multi-similarity")),
        ("Does it help ProxyNCA?", "the overview", pair("ProxyNCA, direction", "ProxyNCA")),
        (
            "Does language help multi-similarity?",
            "the overview",
            pair("Multi-similarity, language", "Multi-similarity"),
        ),
        *(
            (f"Are {large} dimensions better than {small}?", "the thesis", lambda a=large, b=small: sizes(rows, a, b))
            for large, small in ((1024, 512), (512, 128), (128, 64))
        ),
        ("Does tuning help?", "everybody", lambda: tuned(rows)),
        ("How much does choosing on test classes flatter?", "the reality check", lambda: flattery(rows, search)),
    ]
    answered = []
    for question, source, ask in asked:
        answer = answer_of(ask)
        if answer is not None:
            answered.append({"question": question, "claimed by": source, **answer})
    return answered


def answer_of(ask: Callable[[], Comparison | dict[str, Any] | None]) -> dict[str, Any] | None:
    try:
        answer = ask()
    except NoPairs:  # a side has no results yet
        return None
    if not isinstance(answer, Comparison):
        return answer
    return {"sentence": str(answer), "verdict": answer.verdict, "difference": asdict(answer.difference)}


def sizes(rows: Rows, large: int, small: int) -> Comparison:
    """The same methods and seeds in two sizes; each method is a setting."""
    verdict = [{**row, "loss name": row["method"]} for row in rows if row.get("part") == "verdict"]
    both = [[row for row in verdict if row["dim"] == dim] for dim in (large, small)]
    there = {row["method"] for row in both[0]} & {row["method"] for row in both[1]}
    sides = [[row for row in side if row["method"] in there] for side in both]
    return compare_sides(sides[0], sides[1], f"{large}-d", f"{small}-d", METRIC, but=("dim", "method"))


def tuned(rows: Rows) -> Comparison:
    """The found settings against the ones that the search began with, for the methods where both were trained."""
    marked = [{**row, "loss name": row["method"]} for row in rows if row.get("dim") == 512]
    before = [row for row in marked if row.get("part") == "untuned"]
    there = {row["method"] for row in before}
    after = [row for row in marked if row.get("part") == "verdict" and row["method"] in there]
    return compare_sides(after, before, "tuned", "untuned", METRIC, but=("part", "method"))


def tried(search: Mapping[str, Any], method: str) -> dict[str, Mapping[str, Any]]:
    """The points of a published search that were trained to their end, by the names of their parts."""
    points = next((row["points"] for row in search["rows"] if row["method"] == method), [])
    return {f"point {number}": one["point"] for number, one in enumerate(points) if one["val MAP@R"] is not None}


def flattery(rows: Rows, search: Mapping[str, Any]) -> dict[str, Any] | None:
    """What choosing by test classes adds to the number that is reported; a method is one repeat."""
    each = {}
    for name in (row["method"] for row in search["rows"]):
        points = tried(search, name)
        ours = [row for row in rows if row["method"] == name and row["seed"] == 0]
        others = [row for row in ours if row["part"] in points]
        honest = [row[METRIC] for row in ours if (row["part"], row["dim"]) == ("verdict", 512) and METRIC in row]
        if honest and others and len(others) == len(points) - 1:  # all but the one that was chosen
            each[name] = max(honest[0], *(row.get(METRIC, 0.0) for row in others)) - honest[0]
    if len(each) < 2:
        return None
    gap = t_interval(list(each.values()))
    sentence = (
        f"who chooses by test classes instead of validation classes, among the trainings that the search did not stop early, "
        f"reports {100 * gap.mean:.2f} points of MAP@R more (95% interval {100 * gap.low:.2f} to {100 * gap.high:.2f}, "
        f"{len(each)} methods)"
    )
    return {"sentence": sentence, "verdict": "tuned on test", "difference": asdict(gap), "methods": each}
