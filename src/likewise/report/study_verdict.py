"""What a study's page says first: which method is better, as far as anybody can tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from likewise.report.study_tables import openings_of
from likewise.report.study_words import Row, name_of, points
from likewise.report.words import count, many, percent

if TYPE_CHECKING:
    from likewise.report.study import Study

MOST = 4
"""How many names a sentence lists."""


def metric_in_words(metric: str) -> str:
    """A column as it is called in a sentence.

    Examples:
        >>> metric_in_words("test R@1"), metric_in_words("val MAP@R")
        ('R@1', 'MAP@R on validation classes')
    """
    part, _, name = metric.partition(" ")
    return f"{name} on validation classes" if part == "val" else name


def listed(names: Sequence[str]) -> str:
    """Names in a sentence.

    Examples:
        >>> listed(["a"]), listed(["a", "b", "c"]), listed(list("abcdef"))
        ('a', 'a, b and c', 'a, b, c and 3 more')
    """
    if len(names) > MOST:
        return f"{', '.join(names[: MOST - 1])} and {len(names) - MOST + 1} more"
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def study_verdict(study: Study) -> list[str]:
    """The verdict in one sentence, and sentences to go with it; it ranks nothing that the leaderboard does not.

    Examples:
        >>> from likewise.report.study import Study
        >>> study_verdict(Study("s", rows=[{"method": "a", "status": "failed"}]))
        ['None of 1 training came to its end: there is nothing to compare.']
    """
    done = [row for row in study.rows if (row.get("status") or "done") == "done"]
    boards = {setting: rows for setting, rows in study.boards.items() if rows}
    if study.refused:
        what = listed([str(each["what"]) for each in study.unfair])
        why = "so that better numbers need not be due to the better method"
        told = [f"Not ranked: the trainings differ in more than the method ({what}), {why}."]
    elif boards:
        told = _ranked(study, boards)
    elif not study.rows:
        told = ["Nothing has been trained yet."]
    elif not done:
        told = [f"None of {many(len(study.rows), 'training')} came to its end: there is nothing to compare."]
    elif study.tournament and study.tournament["standings"]:
        told = [_tournament(study.tournament)]
    elif study.search:
        told = _searched(study)
    else:
        are = "is" if len(done) == 1 else "are"
        told = [f"{many(len(done), 'training')} {are} done, and nothing has been compared yet."]
    if study.planned is not None and 0 < len(study.rows) < study.planned:
        told.append(f"This is not the end: {count(len(study.rows))} of {many(study.planned, 'training')} are over.")
    return told


def _ranked(study: Study, boards: Mapping[str, Sequence[Row]]) -> list[str]:
    told = [_one(study, next(iter(boards.values())))] if len(boards) == 1 else _several(study, boards)
    fair = all(row.get("fair", True) for rows in boards.values() for row in rows)
    if study.unfair or not fair:
        what = listed([str(each["what"]) for each in study.unfair]) or "more than the method"
        told[0] = f"Unfair, for the trainings differ in {what}, and ranked because that was asked for: {told[0]}"
    elif not study.checked:
        told.append("Whether the trainings are equal in all but the method was not checked in full.")
    if len(boards) > 1 and study.tournament and study.tournament["standings"]:
        told.append(_tournament(study.tournament))
    return told


def _apart(study: Study, rows: Sequence[Row]) -> tuple[list[str], list[str], list[str]]:
    """The others than the first: those it is distinguishable from, those it is not, those it was not compared with."""
    first, *others = rows
    doubted = {
        frozenset((str(each["a"]), str(each["b"])))
        for each in study.comparisons
        if each["verdict"] == "not distinguishable" and len(study.boards) == 1
    }
    clear: list[str] = []
    unclear: list[str] = []
    unknown: list[str] = []
    for row in others:
        # a correction for many comparisons may take back what one alone would show
        told = row.get("distinguishable") and frozenset((name_of(first), name_of(row))) not in doubted
        (unknown if row.get("distinguishable") is None else clear if told else unclear).append(name_of(row))
    return clear, unclear, unknown


def _one(study: Study, rows: Sequence[Row]) -> str:
    first, metric = rows[0], metric_in_words(study.metric)
    reached = f"{percent(first['mean'])}% ({_surety(first)})"
    if len(rows) == 1:
        return f"{name_of(first)} reaches a mean {metric} of {reached}; there is no other method to compare it with."
    clear, unclear, unknown = _apart(study, rows)
    if not unclear and not unknown:
        others = "the other one" if len(rows) == 2 else f"each of the {len(rows) - 1} others"
        behind = rows[1].get("behind")
        gap = "" if behind is None else f", {points(behind, 1)} points above {name_of(rows[1])}"
        return f"{name_of(first)} is better by {metric} than {others}: {reached}{gap}."
    equal = [name_of(row) for row in rows if row["rank"] == first["rank"]]
    if len(equal) > 1:
        return (
            f"{listed(equal)} share the highest mean {metric}, {percent(first['mean'])}%, and are not distinguishable."
        )
    told = f"{name_of(first)} has the highest mean {metric}, {reached}"
    if unclear:
        told += f", but it is not distinguishable from {listed(unclear)}"
    if unknown:
        told += f"{'; it' if unclear else ', but it'} was not compared with {listed(unknown)}, for they share no seeds"
    if clear:
        told += f"; it is better than {listed(clear)}"
    return told + "."


def _surety(row: Row) -> str:
    seeds = many(int(row["seeds"]), "seed") if row.get("seeds") else "seeds not known"
    if row.get("low") is None or row.get("high") is None:
        return f"{seeds}, no interval"
    return f"{100 * row.get('confidence', 0.95):g}% interval {percent(row['low'])}–{percent(row['high'])}, {seeds}"


def _several(study: Study, boards: Mapping[str, Sequence[Row]]) -> list[str]:
    metric, over = metric_in_words(study.metric), many(len(boards), "setting")
    lost = {setting: [*_apart(study, rows)[1], *_apart(study, rows)[2]] for setting, rows in boards.items()}
    firsts = {setting: name_of(rows[0]) for setting, rows in boards.items()}
    clear = [setting for setting, rows in boards.items() if len(rows) > 1 and not lost[setting]]
    leaders = list(dict.fromkeys(firsts.values()))
    if len(leaders) == 1 and len(clear) == len(boards):
        return [f"{leaders[0]} is better by {metric} than every other method in each of {over}."]
    if len(leaders) == 1:
        where = f"in {listed([each for each in boards if each not in clear])} " if clear else "within a setting "
        rivals = list(dict.fromkeys(name for names in lost.values() for name in names))
        but = f"is not distinguishable from {listed(rivals)}" if rivals else "has nothing to be compared with"
        told = f"{leaders[0]} has the highest mean {metric} in each of {over}, but {where}it {but}."
        return [told, *_together(study, leaders[0], rivals)]
    named = {setting: f"{name} ({setting})" for setting, name in firsts.items()}
    rest = listed([named[each] for each in boards if each not in clear])
    if not clear:
        none = f"In none of {over} is one method distinguishable by {metric} from all others"
        return [f"{none}; the highest means are those of {rest}."]
    told = f"In {len(clear)} of {over} one method is better by {metric} than every other: "
    told += listed([named[each] for each in clear])
    return [told + (f"; elsewhere {rest} is highest, but not distinguishable from all others." if rest else ".")]


def _together(study: Study, first: str, rivals: Sequence[str]) -> list[str]:
    """What all pairs together say of the first and of the one that no single setting tells from it."""
    told = [
        str(each["sentence"])
        for each in study.comparisons
        if first in (each["a"], each["b"]) and ({str(each["a"]), str(each["b"])} - {first}) <= set(rivals)
    ]
    return [f"All settings together: {told[0]}."] if len(told) == 1 else []


def _tournament(found: Mapping[str, Any]) -> str:
    standings, experiments = found["standings"], len(found["experiments"])
    best = [str(each["method"]) for each in standings if each["place"] == 1]
    verb = "has" if len(best) == 1 else "share"
    over = many(experiments, "experiment")
    told = f"Over {over} {listed(best)} {verb} the best average rank, {standings[0]['average']:.2f} of {len(standings)}"
    partial = any(not each["complete"] for each in standings)
    return (
        told + (", with some results missing" if partial else "") + "; a rank does not tell a difference from chance."
    )


def _searched(study: Study) -> list[str]:
    """What a search found, method by method; each in its own space, so that they are not ranked."""
    found = []
    for method, tried in (study.search or {}).items():
        values = [one["value"] for one in tried if one["status"] == "done"]
        found.append(f"{method} {percent(max(values))}%" if values else f"{method} nothing")
    metric = metric_in_words(study.objective)
    return [
        f"The best {metric} that the search has found: {listed(found)}.",
        "The highest of many tries is too high by chance; only new seeds tell what it is worth.",
    ]


def study_alarms(study: Study) -> list[str]:
    """What must not be overlooked.

    Examples:
        >>> from likewise.report.study import Study
        >>> study_alarms(Study("s", rows=[{"method": "a", "openings": 2}]))
        ['The test set was opened more than once in 1 run.']
    """
    told = []
    tuned = [row for row in study.rows if row.get("tuned_on_test")]
    if study.protocol is not None and study.protocol["tuned_on_test"]:
        told.append(
            f"Tuned on test: the protocol {study.protocol['name']} has no validation classes, so that whatever was chosen was chosen on the test set."
        )
    elif tuned:
        methods = listed(list(dict.fromkeys(str(row["method"]) for row in tuned)))
        told.append(
            f"Tuned on test: {many(len(tuned), 'training')} ({methods}) had something chosen by looking at test classes."
        )
    if study.unfair:
        what = listed([str(each["what"]) for each in study.unfair])
        ranked = (
            "It is ranked all the same, because that was asked for."
            if study.boards
            else "Nothing on this page is ranked."
        )
        told.append(f"Not a fair comparison: the trainings differ in {what}. {ranked}")
    opened = openings_of(study.rows, study.openings)
    if opened["often"]:
        told.append(f"The test set was opened more than once in {many(len(opened['often']), 'run')}.")
    if opened["early"]:
        told.append(
            f"The test set was opened before training had ended in {many(len({str(each['run']) for each in opened['early']}), 'run')}."
        )
    return told


def study_tiles(study: Study) -> list[dict[str, str]]:
    """Four facts at a glance, none of which is a rank.

    Examples:
        >>> from likewise.report.study import Study
        >>> [tile["label"] for tile in study_tiles(Study("s"))]
        ['Trainings done', 'Methods', 'Fairness', 'Test sets']
    """
    rows = study.rows
    done = sum((row.get("status") or "done") == "done" for row in rows)
    statuses = {each: sum(row.get("status") == each for row in rows) for each in ("failed", "pruned")}
    lost = ", ".join(f"{number} {status}" for status, number in statuses.items() if number)
    of = study.planned if study.planned is not None else len(rows)
    final = [
        row for row in rows if (row.get("stage") or "final") == "final" and (row.get("status") or "done") == "done"
    ]
    seeds = {str(row["seed"]) for row in final if row.get("seed") is not None}
    methods = {str(row["method"]) for row in rows}
    opened = openings_of(rows, study.openings)
    unfair = len(study.unfair)
    fair = (
        f"{many(unfair, 'difference')}"
        if unfair
        else "nothing unfair"
        if study.checked
        else "not checked in full"
        if study.fairness is not None
        else "not checked"
    )
    most = max(opened["counts"].values(), default=0)
    test = "never opened" if not opened["total"] else "at most once a run" if most == 1 else f"up to {most} times a run"
    return [
        {
            "label": "Trainings done",
            "strong": count(done),
            "small": f" of {count(of)}",
            "hint": lost or "none failed",
            "tone": "",
        },
        {
            "label": "Methods",
            "strong": count(len(methods)),
            "small": "",
            "hint": many(len(seeds), "seed") if seeds else "no final training yet",
            "tone": "",
        },
        {
            "label": "Fairness",
            "words": fair,
            "link": "#fairness",
            "hint": "what was compared",
            "tone": "bad" if unfair else "good" if study.checked else "",
        },
        {
            "label": "Test sets",
            "words": test,
            "link": "#openings",
            "hint": f"{many(opened['total'], 'opening')} on record",
            "tone": "bad" if most > 1 or opened["early"] else "",
        },
    ]
