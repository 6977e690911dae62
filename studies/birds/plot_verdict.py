"""The search and the verdict on docs/reality-check.md: tables, figures and sentences, from what the scripts on birds wrote.

python -m studies.birds.plot_verdict
"""

from __future__ import annotations

import json
import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import indent
from typing import Any

from benchmarks.harness import COLORS, DOCS, GRAY, fill, finish, read, start, table
from benchmarks.harness import RESULTS as MEASURED
from likewise.protocols.pairs import Comparison, compare
from studies.birds.claims import RECENT, RIVAL, points
from studies.birds.further import PARTS
from studies.birds.plot_recent import lines, percent, section, settings
from studies.birds.record import SEARCHED_SEED, part_of
from studies.birds.verdict import DIMS, METRICS
from studies.published import draw_improvements, papers_versus_reality

RESULTS = Path(__file__).parent / "results"
PAGE = DOCS / "reality-check.md"
ASSETS = DOCS / "assets"
BOTH = ("val MAP@R", "test MAP@R")
FIRST = 10
YEARS = {
    **{"Triplet, semi-hard": 2015, "Generalized lifted structure": 2017, "Margin + distance weighted": 2017},
    **{"Circle": 2020, "ProxyGML": 2020, "ProxyNCA++": 2020, "Multi-similarity, language": 2022},
    **{"Triplet, direction": 2020, "Multi-similarity, direction": 2020, "ProxyNCA, direction": 2020},
}
"""Of the papers, where the published tables have no such method."""

Row = Mapping[str, Any]


def main() -> None:
    """Fill the page and draw, as far as there are results."""
    search = read(RESULTS / "search.json")
    verdict = read(RESULTS / "verdict.json")
    recent = read(RESULTS / "recent.json")
    parity = json.loads((RESULTS / "parity.json").read_text())
    blocks: dict[str, str] = {}
    if search is not None:
        blocks |= {"search-words": search_words(search), "search-table": search_table(search)}
    if verdict is not None:
        blocks |= {
            "verdict-words": verdict_words(verdict, parity),
            "verdict-table": verdict_table(verdict, 512, recent),
            "verdict-table-small": indent(verdict_table(verdict, 128, recent), 4 * " "),
            "recent": "" if recent is None else section(recent, verdict),
            "verdict-validation": validation_words(verdict),
            "verdict-sizes": sizes_table(verdict),
            "verdict-folds": folds_table(verdict),
            "verdict-further": further_table(verdict),
            "verdict-tournament": tournament_table(verdict),
            "verdict-claims": claims(verdict),
            "verdict-cost": f"{cost_words(verdict, read(MEASURED / 'training-cuda.json'))}\n\n{cost_table(verdict)}",
        }
        draw(verdict, untuned(parity)["MAP@R"], ASSETS / "birds-verdict.svg")
        draw_validation(verdict, ASSETS / "birds-validation.svg")
        largest = [row for row in part_of(verdict["rows"], "verdict") if row["dim"] == DIMS[0]]
        series = papers_versus_reality([{**row, "year": YEARS.get(row["method"])} for row in largest], within=("dim",))
        here = {"here" if name == "yours" else name: found for name, found in series.items()}
        (ASSETS / "birds-papers.svg").write_bytes(draw_improvements(here))
    fill(PAGE, blocks)


def search_words(report: Row) -> str:
    """What was searched."""
    rounds = sorted({row["rounds"] for row in report["rows"]})
    counted = f"{rounds[0]}" if len(rounds) == 1 else f"{rounds[0]} to {rounds[-1]}"
    done = [row for row in report["rows"] if row["best"] is not None]
    before = untrained(report)
    never = [one for row in report["rows"] for one in row["points"] if one["val MAP@R"] == before]
    gains = [row["best"]["val MAP@R"] - first(row) for row in done if first(row) is not None]
    return (
        f"{report['trials']} trainings, {counted} settings for each of {len(report['rows'])} methods; "
        f"{report['stopped early']} were stopped early because they fell behind (below the median of their method's others at the "
        f"same epoch), {report['collapsed']} because all embeddings became alike, and of {len(never)} the best epoch was the one before "
        f"the first step: they never came above the untrained network's {100 * before:.1f}. The best setting is "
        f"{100 * statistics.median(gains):.1f} points of MAP@R above the start on validation classes (median over methods; "
        f"at most {100 * max(gains):.1f}); some of that is luck, because the best of ten is chosen on them."
    )


def untrained(report: Row) -> float:
    """What the network reaches before the first step: the one number that trainings of many methods have in common."""
    values = Counter(
        one["val MAP@R"] for row in report["rows"] for one in row["points"] if one["val MAP@R"] is not None
    )
    return values.most_common(1)[0][0]


def first(row: Row) -> float | None:
    """What the configuration itself reached."""
    value = row["points"][0]["val MAP@R"]
    return None if value is None else float(value)


def search_table(report: Row) -> str:
    """Each method: default and best on validation classes, and where the best is."""
    made = []
    for row in report["rows"]:
        default, best = first(row), row["best"]
        made.append(
            [
                row["method"],
                "–" if default is None else f"{100 * default:.1f}",
                "–" if best is None else f"{100 * best['val MAP@R']:.1f}",
                "–" if best is None else ", ".join(settings(best["point"])),
            ]
        )
    return table(["method", "start", "best of ten", "where"], made, words=(0, 3))


def at(report: Row, dim: int) -> dict[str, Row]:
    return {row["method"]: row for row in report["table"] if row["dim"] == dim}


def named(report: Row, method: str) -> str:
    """A method with its other names."""
    others = [alias for alias, of in report["aliases"].items() if of == method]
    return f"{method} (= {', '.join(others)})" if others else method


def verdict_words(report: Row, parity: Row) -> str:
    """Who is chosen, who is above, and what losses reach as they come."""
    if not report["best by validation"]:
        return ""  # nobody has all seeds yet
    best = report["best by validation"][0]
    rows, plain = at(report, DIMS[0]), untuned(parity)
    beside = {name: told(report, name, best) for name in rows if name != best}
    higher, lower = ([name for name in rows if beside.get(name) == verdict] for verdict in ("better", "worse"))
    named = " and ".join(f"*{name}*" for name in higher)
    above = f"{named} {'is' if len(higher) == 1 else 'are'}" if higher else "no method is"
    return (
        f"The best on validation classes, {best}, reaches R@1 {percent(rows[best]['R@1'])} and MAP@R {percent(rows[best]['MAP@R'])} on "
        f"the test classes. Of the other {len(rows) - 1} methods {above} above it and {len(lower)} are below (paired, 95% each). For "
        f"comparison, losses as they come, with all training classes to learn from and none held out: the best of {plain['of']} by "
        f"test MAP@R, {plain['loss']}, has R@1 {100 * plain['R@1']:.2f} and MAP@R {100 * plain['MAP@R']:.2f} "
        f"([parity](#parity)).{reopened(report)}{unfinished(report)}"
    )


def told(report: Row, a: str, b: str) -> str:
    """Whether a is better or worse than b in 512 dimensions."""
    rows = [row for row in part_of(report["rows"], "verdict") if row["dim"] == DIMS[0]]
    return whole(compare(rows, a, b, BOTH[1])).verdict


def whole(found: Comparison) -> Comparison:
    """A comparison in which every training has its partner."""
    if any(found.unpaired):
        raise ValueError(
            f"{found.a} and {found.b} must have trainings of the same seeds, but of some there is no other: {found}"
        )
    return found


def untuned(parity: Row) -> dict[str, Any]:
    """The best of the losses as they come, which is chosen by the test."""
    means = [{each: statistics.fmean(row[each]["likewise"]) for each in ("R@1", "MAP@R")} for row in parity["rows"]]
    best = max(range(len(means)), key=lambda at: means[at]["MAP@R"])
    return {"loss": parity["rows"][best]["loss"], "of": len(means), **means[best]}


def reopened(report: Row) -> str:
    """Which test sets were opened again."""
    again = [row for row in part_of(report["rows"], "verdict") if row.get("openings", 1) > 1]
    if not again:
        return ""
    which = "; ".join(f"{row['method']}, {row['dim']}-d, seed {row['seed']}" for row in again)
    return f" {len(again)} trainings were stopped while they opened the test set, and opened it again with the same model ({which})."


def both(report: Row) -> dict[str, tuple[float, float]]:
    """MAP@R of each method in 512 dimensions on validation and on test classes, the best of the validation first.

    Without the seed of the search: on validation classes that training is the best of ten.
    """
    done = [
        row
        for row in part_of(report["rows"], "verdict")
        if row["dim"] == DIMS[0] and row["status"] == "done" and row["seed"] != SEARCHED_SEED
    ]
    found = {
        name: tuple(statistics.fmean(row[metric] for row in done if row["method"] == name) for metric in BOTH)
        for name in at(report, DIMS[0])
    }
    return dict(sorted(found.items(), key=lambda each: -each[1][0]))


def validation_words(report: Row) -> str:
    """How far the order of the validation is that of the test."""
    found = list(both(report).values())
    if len(found) < FIRST:
        return ""
    words = (
        f"The rank correlation of the two is {agreement(found)} over all {len(found)} methods, and {agreement(found[:FIRST])} "
        f"among the {FIRST} that are best on validation classes, which lie within "
        f"{100 * (found[0][0] - found[FIRST - 1][0]):.1f} points of each other there."
    )
    lost = [gap for one in report["claims"] for gap in one.get("methods", {}).values()]  # by choosing on validation
    if lost:
        words += (
            f" Among the settings of one method that its search trained to their end, validation classes chose the one that is best "
            f"on test classes in {lost.count(0.0)} of {len(lost)} methods, and one that is at most {100 * max(lost):.2f} points below it "
            "in the others."
        )
    return words


def agreement(pairs: Sequence[tuple[float, float]]) -> str:
    """The correlation of ranks, and its 95% interval (Fisher's transformation, with Bonett and Wright's variance)."""
    found = rank_correlation(pairs)
    half = 1.96 * math.sqrt((1.0 + found**2 / 2.0) / (len(pairs) - 3))
    middle = math.atanh(max(-1.0 + 1e-9, min(1.0 - 1e-9, found)))
    low, high = math.tanh(middle - half), math.tanh(middle + half)
    return f"{found:.2f} ({low:.2f} to {high:.2f})"


def rank_correlation(pairs: Sequence[tuple[float, float]]) -> float:
    """Spearman's; values that are equal share the mean of their ranks."""
    from scipy.stats import spearmanr

    return float(spearmanr(pairs).statistic)


def draw_validation(report: Row, path: Path) -> None:
    """Each method by both; the first of the validation by name, in the order of the test."""
    found = [(name, 100 * val, 100 * test) for name, (val, test) in both(report).items()]
    first, others = found[:FIRST], found[FIRST:]
    figure, axes = start(4.2)
    axes.plot(*zip(*(each[1:] for each in others), strict=True), "o", ms=4, color=GRAY, mew=0, alpha=0.6)
    low, high = min(each[2] for each in found), max(each[2] for each in found)
    edge = max(each[1] for each in found) + 0.6
    for number, (name, val, test) in enumerate(sorted(first, key=lambda each: -each[2])):
        height = high - number * (high - low) / (2 * FIRST)
        axes.plot([val, edge - 0.1], [test, height], lw=0.5, color=GRAY, alpha=0.5)
        axes.plot([val], [test], "o", ms=5, color=COLORS[0], mew=0)
        axes.text(edge, height, name, va="center", fontsize=8, color=GRAY)
    axes.set_xlabel(f"MAP@R on validation classes in per cent; by name: the {FIRST} that are best there")
    axes.set_ylabel("MAP@R on test classes")
    finish(figure, axes, path)


def unfinished(report: Row) -> str:
    """What is to come, if anything is."""
    left = report["waiting"]
    return f" {left} trainings are still to come; what they are needed for is not in the tables yet." if left else ""


def verdict_table(report: Row, dim: int, recent: Row | None = None) -> str:
    """All methods in a size, the best first; those that joined later in italics."""
    made = []
    rows = [(named(report, name), row) for name, row in at(report, dim).items()]
    rows += [] if recent is None else lines(recent, dim)
    for shown, row in sorted(rows, key=lambda each: -each[1]["MAP@R"]["mean"]):
        failed = row.get("failed", 0)
        name = shown + (f" ({failed} trainings failed)" if failed else "")
        made.append([name, *(percent(row[metric]) for metric in METRICS)])
    return table([f"{dim} dimensions", *METRICS], made)


def sizes_table(report: Row) -> str:
    """The five best in four sizes."""
    found = {dim: at(report, dim) for dim in (64, 128, 512, 1024)}
    made = [
        [name, metric, *(percent(rows[name][metric]) if name in rows else "–" for rows in found.values())]
        for name in report["best by validation"]
        for metric in METRICS
    ]
    return table(["method", "", *(f"{dim}-d" for dim in found)], made, words=(0, 1))


def folds_table(report: Row) -> str:
    """The reality check's own protocol: four models of 128 dimensions, separated and concatenated."""
    joined = {row["method"]: row for row in report["concatenated"]}
    made = []
    for row in sorted(report["separated"], key=lambda row: -row["MAP@R"]["mean"]):
        for kind, found in (("separated", row), ("concatenated", joined.get(row["method"]))):
            cells = ["–" if found is None else percent(found[metric]) for metric in METRICS]
            made.append([row["method"], kind, *cells])
    return table(["method", "models", *METRICS], made, words=(0, 1))


def further_table(report: Row) -> str:
    """What moves the best configuration: each change on validation classes, all that helped on test classes."""
    made = []
    for each in report["further"]:
        done = {change: [x for x in of if x is not None] for change, of in each["validation"].items()}
        plain = statistics.fmean(done[""]) if done.get("") else None
        for change, scores in done.items():
            if not scores:
                made.append([each["method"], change or "as the search found it", "collapsed", "", ""])
                continue
            mean = 100 * statistics.fmean(scores)
            gained = "" if plain is None or not change else f" ({mean - 100 * plain:+.1f})"
            kept = " ✓" if change in (each["helped"] or []) else ""
            test = None if change else each["test"].get("verdict")
            measured = ["", ""] if test is None else [percent(test["MAP@R"]), percent(test["R@1"])]
            made.append([each["method"], change or "as the search found it", f"{mean:.1f}{gained}{kept}", *measured])
        for part, words in PARTS.items():
            if part in each["test"]:
                found = each["test"][part]
                made.append([each["method"], words, "", percent(found["MAP@R"]), percent(found["R@1"])])
    return table(["method", "changed", "validation, MAP@R", "test, MAP@R", "test, R@1"], made, words=(0, 1))


def tournament_table(report: Row) -> str:
    """Places by mean rank over both sizes."""
    made = [
        [
            str(row["place"]),
            named(report, row["method"]),
            f"{row['average']:.1f}",
            str(row["gold"] + row["silver"] + row["bronze"]),
        ]
        for row in report["tournament"]["standings"][:10]
    ]
    return table(["place", "method", "mean rank", "medals"], made, words=(1,))


def claims(report: Row) -> str:
    """Questions and answers; the same question about many losses is a table."""
    rivals = {RIVAL.format(name): name for name in RECENT}
    asked = [(rivals[one["question"]], one) for one in report["claims"] if one["question"] in rivals]
    told = [
        f"- *{one['question']}* ({one['claimed by']}) {sentence(one['sentence'])}"
        for one in report["claims"]
        if one["question"] not in rivals
    ]
    return "\n".join([*(rivalry(asked) if asked else []), *told])


def rivalry(asked: Sequence[tuple[str, Row]]) -> list[str]:
    """Newer losses against contrastive, best first."""
    counts = Counter(one["verdict"] for _, one in asked)
    words = (
        f"*Is contrastive as good as newer losses, under equal terms?* ({asked[0][1]['claimed by']}) Of {len(asked)} losses of "
        f"2018 and later {counts['better']} are better, {counts['worse']} are worse, and {counts['not distinguishable']} are not "
        "distinguishable from it, after Holm's correction for so many comparisons. Intervals are those of one comparison."
    )
    ordered = sorted(asked, key=lambda pair: -pair[1]["difference"]["mean"])
    rows = [
        [
            name,
            "{mean:+.2f} ({low:+.2f} to {high:+.2f})".format(**points(one)),
            f"{one['p, corrected']:.3f}",
            one["verdict"],
        ]
        for name, one in ordered
    ]
    head = ["loss", "above contrastive, points of MAP@R", "p, corrected", "verdict"]
    return [words, "", table(head, rows, words=(0, 3)), ""]


def sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def cost_words(report: Row, alone: Row | None) -> str:
    """On what, and what is counted; how fast one training is that shares the GPU with nobody, where that was measured."""
    cost = report["cost"]
    shared = " or ".join(map(str, cost["at once"]))
    return (
        f"On one {' or '.join(cost['machines'])}, which {shared} trainings shared at a time. Seconds of the GPU are a training's own, "
        f"over how many shared it; a worker's start, planning and what was stopped half-way are not in them.{unshared(alone)}{unfinished(report)}"
    )


def unshared(alone: Row | None) -> str:
    """How fast one training is by itself."""
    found = next((row["likewise"] for row in (alone or {"rows": ()})["rows"] if "busy" in row["likewise"]), None)
    if found is None:
        return ""
    return (
        f" SingleProcess, with the data path included, a training takes {found['images_per_s']:,.0f} images/s, and the GPU is busy "
        f"{100 * found['busy']:.0f}% of the time ([training](benchmarks-training.md))."
    )


def cost_table(report: Row) -> str:
    """What it took."""
    cost, one = report["cost"], report["cost"]["one training"]
    made = [
        [name, f"{cost['trainings'][stage]:,}", f"{cost['seconds'][stage] / 60:,.0f} min"]
        for stage, name in (("search", "the search"), ("final", "everything after it"))
    ]
    said = [["one training in 512 dimensions", "1", f"{one['mean']:.1f} s"]] if one else []
    return table(["", "trainings", "time of the GPU"], [*made, *said])


def draw(report: Row, plain: float, path: Path) -> None:
    """MAP@R of every method with its interval, both sizes."""
    order = sorted(at(report, 512).values(), key=lambda row: row["MAP@R"]["mean"])
    figure, axes = start(0.27 * len(order) + 1.1)
    for dim, color, shift in zip(DIMS, COLORS, (0.14, -0.14), strict=False):
        rows = at(report, dim)
        for number, row in enumerate(order):
            if row["method"] not in rows:
                continue
            found = rows[row["method"]]["MAP@R"]
            y = number + shift
            axes.plot([100 * found["low"], 100 * found["high"]], [y, y], color=color, lw=2, alpha=0.5)
            axes.plot([100 * found["mean"]], [y], "o", ms=4, color=color, mew=0)
        axes.plot([], [], "o", color=color, label=f"{dim} dimensions", mew=0)
    axes.axvline(100 * plain, color=GRAY, lw=1, ls=":")
    axes.set_yticks(range(len(order)), [row["method"] for row in order])
    axes.set_xlabel(
        "MAP@R on the test birds in per cent, 95% intervals of five seeds\ndotted: the best of the losses as they come, all training classes"
    )
    axes.legend(frameon=False, loc="upper left", labelcolor=GRAY)
    finish(figure, axes, path)


if __name__ == "__main__":
    main()
