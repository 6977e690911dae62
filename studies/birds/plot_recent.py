"""The section on losses that joined later, for docs/reality-check.md; plot_verdict.py fills it in."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.harness import table
from likewise.protocols.pairs import compare
from studies.birds.claims import METRIC
from studies.birds.recent import METHODS
from studies.birds.record import SEARCHED_SEED, part_of
from studies.birds.verdict import DIMS, METRICS

Row = Mapping[str, Any]
TITLE = "### Do ranking losses and other recent losses help? { #metric }"
VERDICTS = ("better", "worse", "not distinguishable")


def section(recent: Row, verdict: Row) -> str:
    """Heading, paragraph and table."""
    return f"{TITLE}\n\n{words(recent, verdict)}\n\n{comparisons(recent)}\n\n{searched(recent)}"


def words(recent: Row, verdict: Row) -> str:
    """One paragraph: how the ranking losses fare against the contrastive loss and against the best of the others."""
    family = [one for one in recent["against"] if one["method"] in recent["ranking"]]
    counts = {each: [one["method"] for one in family if one["verdict"] == each] for each in VERDICTS}
    leader, before = best(recent["rows"], recent["ranking"]), verdict["best by validation"][0]
    rows = [*at_first_size(verdict["rows"]), *at_first_size(recent["rows"])]
    duel = compare(rows, leader, before, METRIC)
    pays = {"better": "pays", "worse": "does not pay", "not distinguishable": "makes no significant difference"}
    found = {row["method"]: row for row in recent["table"] if row["dim"] == DIMS[0]}
    listed = "; ".join(f"{each}: {', '.join(f'*{name}*' for name in names)}" for each, names in counts.items() if names)
    others = len(METHODS) - len(found)
    planned = f" ({others} more losses are planned and not trained yet)" if others else ""
    return (
        f"{len(found)} losses were added after the first {len({row['method'] for row in verdict['table']})}, with the same search budget, seeds and classes; they are in italics in the "
        "tables. "
        f"{'All' if len(family) == len(found) else len(family)} of them are ranking losses, smooth versions of the metric itself{planned}.\n\n"
        f"The ranking losses against contrastive, paired by seed, with Holm's correction for {len(recent['against'])} losses: {listed}. The best of them on validation classes, {leader}, "
        f"reaches MAP@R {percent(found[leader]['MAP@R'])} and R@1 {percent(found[leader]['R@1'])} on the test classes. {duel}.\n\n"
        f"**On these birds, in batches of 128, optimizing the metric {pays[duel.verdict]}**, compared with the best of the "
        f"{len({row['method'] for row in verdict['table']})} older methods."
    )


def at_first_size(rows: Sequence[Row]) -> list[Row]:
    """The verdict's training runs in 512 dimensions."""
    return [row for row in part_of(rows, "verdict") if row["dim"] == DIMS[0] and row["status"] == "done"]


def best(rows: Sequence[Row], names: Sequence[str]) -> str:
    """The method that is best on validation classes, without the seed of the search."""
    of = [row for row in at_first_size(rows) if row["seed"] != SEARCHED_SEED]
    means = {name: statistics.fmean(row["val MAP@R"] for row in of if row["method"] == name) for name in names}
    return max(means, key=lambda name: means[name])


def comparisons(recent: Row) -> str:
    """Each loss against the contrastive loss, the best first."""
    made = [
        [
            one["method"],
            "{:+.2f} ({:+.2f} to {:+.2f})".format(*(100 * one["difference"][each] for each in ("mean", "low", "high"))),
            "–" if one["p, corrected"] is None else f"{one['p, corrected']:.3f}",
            one["verdict"],
        ]
        for one in sorted(recent["against"], key=lambda one: -one["difference"]["mean"])
    ]
    return table(["against contrastive", "points of MAP@R", "p, corrected", "verdict"], made, words=(0, 3))


def searched(recent: Row) -> str:
    """What the searches found."""
    made = []
    for row in recent["search"]["rows"]:
        start = row["points"][0]["val MAP@R"]
        first = "–" if start is None else f"{100 * start:.1f}"
        made.append([row["method"], first, f"{100 * row['best']['val MAP@R']:.1f}"])
    lines = table(["method", "first setting", "best of ten"], made).splitlines()
    return "\n".join(['??? note "Their searches: MAP@R on validation classes"', "", *(f"    {line}" for line in lines)])


def settings(point: Row) -> Iterator[str]:
    """The settings of a point, each with its value."""
    names = {"optimizer.lr": "rate", "optimizer.lrs.loss": "rate of the loss"}
    for name, value in point.items():
        shown = f"{value:.3g}" if isinstance(value, float) else str(value)
        yield f"{names.get(name, name.removeprefix('loss.').removeprefix('loss.'))} {shown}"


def lines(recent: Row, dim: int) -> list[tuple[str, Row]]:
    """The rows of the verdict's table in a size, by names in italics."""
    return [(f"*{row['method']}*", row) for row in recent["table"] if row["dim"] == dim and set(METRICS) <= row.keys()]


def percent(found: Row) -> str:
    """A mean and half of its interval."""
    return f"{100 * found['mean']:.2f}\u00a0±\u00a0{50 * (found['high'] - found['low']):.2f}"  # in one line
