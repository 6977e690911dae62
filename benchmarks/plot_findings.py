"""What the study of birds found, on docs/reality-check.md: the summary, what moved the best, and all comparisons in one figure.

    python benchmarks/plot_findings.py

draws docs/assets/birds-claims.svg and birds-further.svg from results/birds-verdict.json, and fills the page.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from birds_added import ADDED
from birds_claims import FLATTERY, FOUND, LUCK, METRIC, MINED, RECENT, RIVAL, SIZE, SIZES, TUNING, TWINS
from birds_further import DIM, PARTS
from birds_record import part_of
from page import COLOURS, GREY, fill, finish, read, start
from plot_birds import told_apart
from plot_verdict import ASSETS, PAGE, RESULTS, at, percent, points, untuned

from likewise.protocols.pairs import Comparison, compare, compare_sides

Row = Mapping[str, Any]
INK = {"better": COLOURS[2], "worse": COLOURS[1], "not distinguishable": GREY}
OTHER = COLOURS[0]
TOP = 10
AGAINST = "{} against {}".format


def main() -> None:
    """Fill the page and draw."""
    verdict = read(RESULTS / "birds-verdict.json")
    if verdict is None or verdict["waiting"]:
        raise SystemExit("results/birds-verdict.json must hold all trainings, but some are still to come")
    parity = json.loads((RESULTS / "birds-parity.json").read_text())
    fill(PAGE, {"findings": findings(verdict, parity), "further-words": moved(verdict, parity)})
    draw_claims(verdict, ASSETS / "birds-claims.svg")
    draw_further(verdict, untuned(parity), ASSETS / "birds-further.svg")


# ---- in words


def findings(report: Row, parity: Row) -> str:
    """The study in a few sentences, each with its number and where it is told."""
    answers = {one["question"]: one for one in report["claims"]}
    rivals = [answers[RIVAL.format(name)] for name in RECENT]
    added = {one.method: answers[one.question] for one in ADDED}
    best, other = report["further"]
    flattered = answers[FLATTERY]["methods"].values()
    scores = sorted((row["MAP@R"]["mean"] for row in at(report, DIM).values()), reverse=True)
    gains = [points(one)["mean"] for one in rivals if one["verdict"] == "better"]
    helps = [f"{name}, {points(one)['mean']:+.1f}" for name, one in added.items() if one["verdict"] == "better"]
    harms = [f"{name}, {points(one)['mean']:+.1f}" for name, one in added.items() if one["verdict"] == "worse"]
    luck = points(answers[LUCK])["mean"]
    whole = change(report, best["method"], "together")
    larger = change(report, best["method"], "larger images")
    wide, wider = (points(answers[SIZE.format(*dims)]) for dims in ((512, 128), (1024, 512)))
    said = [
        f"**Losses differ less than the luck of tuning them.** The {TOP} best of {len(scores)} methods lie within "
        f"{100 * (scores[0] - scores[TOP - 1]):.1f} points of MAP@R; two searches of one function ended {abs(luck):.1f} apart "
        "([claims](#claims)).",
        f"**Newer is not always better.** Of {len(rivals)} losses of 2018 and later {count(rivals, 'better')} are above the contrastive "
        f"loss of 2006, by {min(gains):.1f} to {max(gains):.1f} points, {count(rivals, 'worse')} are below it and "
        f"{count(rivals, 'not distinguishable')} not distinguishable ([claims](#claims)).",
        f"**Little of what is added to a loss helps.** Mining, direction and language, with nothing else changed: of {len(added)} "
        f"additions {len(helps)} {'is' if len(helps) == 1 else 'are'} better ({'; '.join(helps) or 'none'}), {len(harms)} worse"
        f"{' (' + '; '.join(harms) + ')' if harms else ''}, {count(added.values(), 'not distinguishable')} not distinguishable "
        "([claims](#claims)).",
        f"**What is not the loss counts most.** Changes outside of it, chosen on validation classes, move {best['method']} by "
        f"{said_of(whole)} points, larger images alone by {said_of(larger)}; the same kind of changes brings {other['method'].lower()} from "
        f"{mean(other, 'verdict')} to {mean(other, 'together')} ([how far it goes](#further)).",
        f"**Who chooses on test classes** reports {100 * statistics.median(flattered):.2f} points more in the middle of "
        f"{len(flattered)} methods, up to {100 * max(flattered):.2f} ([claims](#claims)).",
        f"**512 dimensions** are {wide['mean']:.1f} points above 128, and 1,024 are {wider['mean']:.1f} above 512 ([sizes](#sizes)).",
        f"**The losses are the losses.** With everything equal, {len(parity['rows']) - len(told_apart(parity))} of {len(parity['rows'])} cannot be told from "
        "pytorch-metric-learning's ([parity](#parity)).",
    ]
    return "\n".join(f"- {each}" for each in said)


def moved(report: Row, parity: Row) -> str:
    """Where the gain of the best configuration comes from."""
    best, other = report["further"]
    name, plain = best["method"], untuned(parity)
    whole, larger, rest = (change(report, name, part) for part in ("together", "larger images", "the rest"))
    everyone = compare_sides(
        *(of(report, name, part) for part in ("all classes", "together")), "a", "b", METRIC, but=("part",)
    )
    before, after = (rivals(report, part, name, other["method"]) for part in ("verdict", "together"))
    test = {
        part: f"MAP@R {percent(found['MAP@R'])}, R@1 {percent(found['R@1'])}" for part, found in best["test"].items()
    }
    return (
        f"All that helped brings {name} to {test['together']}: {said_of(whole)} points of MAP@R above the setting that the search "
        f"found. **The larger images alone are {said_of(larger)} of it, everything else alone {said_of(rest)}**: at 112 px {name} has "
        f"{test['the rest']}, where the best of {plain['of']} losses as they come, {plain['loss']}, has MAP@R {100 * plain['MAP@R']:.2f}, R@1 "
        f"{100 * plain['R@1']:.2f}. To learn from the validation classes too, up to the last epoch, changes that by {said_of(everyone)}. The gap between {name} and "
        f"{other['method'].lower()} is {said_of(before)} before these changes and {said_of(after)} after them: what has nothing to do with "
        f"the loss moves both by several times as much as the choice between them."
    )


def change(report: Row, name: str, part: str) -> Comparison:
    """A part of what goes further against the setting that the search found, seed by seed."""
    return compare_sides(of(report, name, part), of(report, name, "verdict"), part, "before", METRIC, but=("part",))


def rivals(report: Row, part: str, a: str, b: str) -> Comparison:
    """Two methods in one part."""
    return compare([row for row in part_of(report["rows"], part) if row["dim"] == DIM], a, b, METRIC)


def of(report: Row, name: str, part: str) -> list[Row]:
    """The trainings of a method in a part."""
    return [row for row in part_of(report["rows"], part) if (row["method"], row["dim"]) == (name, DIM)]


def said_of(found: Comparison) -> str:
    """A difference in points with its interval."""
    ends = (found.difference.mean, found.difference.low, found.difference.high)
    middle, low, high = (f"{round(100 * each, 1) + 0.0:+.1f}" for each in ends)  # no -0.0
    return f"{middle} ({low} to {high})"


def mean(further: Row, part: str) -> str:
    return f"{100 * further['test'][part]['MAP@R']['mean']:.1f}"


def count(answers: Iterable[Row], verdict: str) -> int:
    return sum(one["verdict"] == verdict for one in answers)


# ---- in figures


def groups(report: Row) -> list[tuple[str, list[tuple[str, Row]]]]:
    """The comparisons with their labels, kind by kind."""
    answers = {one["question"]: one for one in report["claims"]}

    def those(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, Row]]:
        return [(label, answers[question]) for label, question in pairs if question in answers]

    newer = those((name, RIVAL.format(name)) for name in RECENT)
    added = [(one.method, one.base) for one in ADDED]
    return [
        ("newer losses against contrastive", sorted(newer, key=lambda pair: -pair[1]["difference"]["mean"])),
        ("added to a loss, nothing else changed", those((one.method, one.question) for one in ADDED)),
        ("each as its own search found it", those((AGAINST(*pair), FOUND.format(*pair)) for pair in (*added, *MINED))),
        ("one function, searched twice", those([(AGAINST(*TWINS), LUCK)])),
        (
            "sizes and tuning",
            those(
                [
                    *((f"{AGAINST(*dims)} dimensions", SIZE.format(*dims)) for dims in SIZES),
                    ("tuned against untuned", TUNING),
                ]
            ),
        ),
    ]


def draw_claims(report: Row, path: Path) -> None:
    """A row for each comparison: the difference, its interval, and in colour whether it is one."""
    rows: list[tuple[str, Row | None]] = []
    for kind, found in groups(report):
        rows += [(kind, None), *found]
    figure, axes = start(0.215 * len(rows) + 0.8)
    for number, (_, one) in enumerate(rows):
        if one is None:
            continue
        span, ink = points(one), INK.get(one["verdict"], OTHER)
        axes.plot([span["low"], span["high"]], [number, number], color=ink, lw=2, alpha=0.5)
        axes.plot([span["mean"]], [number], "o", ms=4.5, color=ink, mew=0)
    axes.axvline(0.0, color=GREY, lw=1)
    axes.set_yticks(range(len(rows)), [label for label, _ in rows], fontsize=8)
    for label, (_, one) in zip(axes.get_yticklabels(), rows, strict=True):
        if one is None:
            label.set_fontweight("bold")
    axes.set_ylim(len(rows) - 0.4, -0.6)
    for verdict, ink in INK.items():
        axes.plot([], [], "o-", color=ink, label=verdict, mew=0)
    axes.legend(frameon=False, loc="lower left", labelcolor=GREY, fontsize=8)
    axes.set_xlabel("difference in points of MAP@R on the test birds, 95% intervals", fontsize=8)
    finish(figure, axes, path)


def draw_further(report: Row, plain: Row, path: Path) -> None:
    """MAP@R on test classes of each part of what was taken further, both methods."""
    parts = [("verdict", "as the search found it"), *PARTS.items()]
    figure, axes = start(2.6)
    for shift, colour, one in zip((-0.13, 0.13), COLOURS, report["further"], strict=False):
        for number, (part, _) in enumerate(parts):
            if part in one["test"]:
                found = one["test"][part]["MAP@R"]
                ends = [100 * found["low"], 100 * found["high"]]
                axes.plot(ends, [number + shift] * 2, color=colour, lw=2, alpha=0.5)
                axes.plot([100 * found["mean"]], [number + shift], "o", ms=4.5, color=colour, mew=0)
        axes.plot([], [], "o-", color=colour, label=one["method"], mew=0)
    axes.axvline(100 * plain["MAP@R"], color=GREY, lw=1, ls=":")
    axes.set_yticks(range(len(parts)), [words for _, words in parts], fontsize=8)
    axes.set_ylim(len(parts) - 0.5, -0.5)
    axes.legend(frameon=False, loc="upper right", labelcolor=GREY, fontsize=8)
    axes.set_xlabel(
        "MAP@R on the test birds in per cent, 95% intervals of five seeds\n"
        f"dotted: the best of the losses as they come, {plain['loss']}, all training classes",
        fontsize=8,
    )
    finish(figure, axes, path)


if __name__ == "__main__":
    main()
