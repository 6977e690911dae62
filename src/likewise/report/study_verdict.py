"""The headline, the warnings and the tiles of a study's page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from likewise.report.page import Tile
from likewise.report.study_names import Row, name_of
from likewise.report.study_openings import openings_of
from likewise.report.study_tables import interval_of, too_few
from likewise.report.words import count, join_names, many, percent, points
from likewise.text import metric_in_words

if TYPE_CHECKING:
    from likewise.report.study import Study


def study_verdict(study: Study) -> list[str]:
    """Return the headline and the sentences below it, which rank nothing beyond the leaderboard.

    Examples:
        >>> from likewise.report.study import Study
        >>> study_verdict(Study("s", rows=[{"method": "a", "status": "failed"}]))
        ['0 of 1 run finished, so there is nothing to compare.']
    """
    done = [row for row in study.rows if (row.get("status") or "done") == "done"]
    boards = {setting: rows for setting, rows in study.boards.items() if rows}
    if study.is_refused:
        lines = [f"Not ranked: the runs differ in {_unfair(study)}, not only in the method."]
    elif boards:
        lines = _describe_ranks(study, boards)
    elif not study.rows:
        lines = ["Nothing has been trained yet."]
    elif not done:
        lines = [f"0 of {many(len(study.rows), 'run')} finished, so there is nothing to compare."]
    elif study.tournament and study.tournament["standings"]:
        lines = _tournament(study.tournament)
    elif study.search:
        lines = _search(study)
    else:
        lines = [f"{many(len(done), 'run')} finished; nothing has been compared yet."]
    if study.planned is not None and 0 < len(study.rows) < study.planned:
        lines.append(f"The study is not complete: {count(len(study.rows))} of {many(study.planned, 'run')} have ended.")
    return lines


def _unfair(study: Study) -> str:
    return join_names([str(each["what"]) for each in study.unfair]) or "more than the method"


def _describe_ranks(study: Study, boards: Mapping[str, Sequence[Row]]) -> list[str]:
    lines = _one(study, next(iter(boards.values()))) if len(boards) == 1 else _several(study, boards)
    if study.unfair or not all(row.get("fair", True) for rows in boards.values() for row in rows):
        lines = [
            f"Unfair: the runs differ in {_unfair(study)}, so the ranking does not compare the methods.",
            f"Ranked on request: {lines[0]}",
            *lines[1:],
        ]
    elif not study.is_checked:
        lines.append("It was not fully checked that the runs differ only in the method.")
    if len(boards) > 1 and study.tournament and study.tournament["standings"]:
        lines += _tournament(study.tournament)
    return lines


def _group_by_verdict(study: Study, rows: Sequence[Row]) -> dict[str, list[str]]:
    """Group the methods after the first by the verdict on their difference from it."""
    first, *others = rows
    doubted = {
        frozenset((str(each["a"]), str(each["b"])))
        for each in study.comparisons
        if each["verdict"] == "not distinguishable" and len(study.boards) == 1
    }
    names: dict[str, list[str]] = {"better": [], "unclear": [], "few": [], "unknown": []}
    for row in others:
        # the correction for multiple comparisons can change the verdict of a single one
        is_clear = row.get("distinguishable") and frozenset((name_of(first), name_of(row))) not in doubted
        kind = "unknown" if row.get("distinguishable") is None else "better" if is_clear else "unclear"
        names["few" if too_few(row.get("pairs")) else kind].append(name_of(row))
    return names


def _one(study: Study, rows: Sequence[Row]) -> list[str]:
    first, metric = rows[0], metric_in_words(study.metric)
    reached = f"{percent(first['mean'])}% ({_interval(first)})"
    if len(rows) == 1:
        return [f"{name_of(first)} has a mean {metric} of {reached}; there is no other method to compare it with."]
    names = _group_by_verdict(study, rows)
    if len(names["better"]) == len(rows) - 1:
        others = name_of(rows[1]) if len(rows) == 2 else f"each of the {len(rows) - 1} others"
        lines = [f"{name_of(first)} is better by {metric} than {others}: {reached}."]
        if rows[1].get("behind") is not None:
            lines.append(f"It is {points(rows[1]['behind'], 1)} points above {name_of(rows[1])}.")
        return lines
    equal = [name_of(row) for row in rows if row["rank"] == first["rank"]]
    if len(equal) > 1:
        mean = f"{percent(first['mean'])}%"
        return [f"{join_names(equal)} share the highest mean {metric}, {mean}, and are not distinguishable."]
    line, lines = f"{name_of(first)} has the highest mean {metric}, {reached}", []
    if names["unclear"]:
        line += f", but is not distinguishable from {join_names(names['unclear'])}"
    if names["few"]:
        pairs = max(int(row["pairs"]) for row in rows[1:] if too_few(row.get("pairs")))
        few = f"{many(pairs, 'seed')} {'is' if pairs == 1 else 'are'} too few to distinguish it from"
        few += f" {join_names(names['few'])}"
        if names["unclear"]:
            lines.append(f"{few}.")
        else:
            line = f"{name_of(first)} has the highest mean {metric}, {percent(first['mean'])}%, but {few}"
    if names["better"]:
        lines.append(f"It is better than {join_names(names['better'])}.")
    if names["unknown"]:
        lines.append(f"It was not compared with {join_names(names['unknown'])}: they share no seeds.")
    return [f"{line}.", *lines]


def _interval(row: Row) -> str:
    shown = interval_of(row.get("low"), row.get("high"), row.get("seeds"), "seed", 1)
    if not shown[0].isdigit() or "no interval" in shown:
        return shown
    seeds = f", {many(int(row['seeds']), 'seed')}" if row.get("seeds") else ""
    return f"{100 * row.get('confidence', 0.95):g}% interval {shown}{seeds}"


def _several(study: Study, boards: Mapping[str, Sequence[Row]]) -> list[str]:
    metric, over = metric_in_words(study.metric), many(len(boards), "setting")
    names = {setting: _group_by_verdict(study, rows) for setting, rows in boards.items()}
    rivals = {
        setting: [name for kind in ("unclear", "few", "unknown") for name in each[kind]]
        for setting, each in names.items()
    }
    firsts = {setting: name_of(rows[0]) for setting, rows in boards.items()}
    clear = [setting for setting, rows in boards.items() if len(rows) > 1 and not rivals[setting]]
    leaders = list(dict.fromkeys(firsts.values()))
    if len(leaders) == 1 and len(clear) == len(boards):
        return [f"{leaders[0]} is better by {metric} than every other method in each of {over}."]
    if len(leaders) == 1:
        others = list(dict.fromkeys(name for each in rivals.values() for name in each))
        line = f"{leaders[0]} has the highest mean {metric} in each of {over}"
        line += f", but is not always distinguishable from {join_names(others)}." if others else "."
        return [line, *_all_settings(study, leaders[0], others)]
    winners = join_names([f"{firsts[each]} ({each})" for each in clear])
    highest = join_names([f"{firsts[each]} ({each})" for each in boards if each not in clear])
    if not clear:
        return [f"0 of {over} have a clear winner by {metric}.", f"The highest means: {highest}."]
    lines = [f"{len(clear)} of {over} {'has' if len(clear) == 1 else 'have'} a clear winner by {metric}: {winners}."]
    return lines + ([f"Highest elsewhere, but not distinguishable from all others: {highest}."] if highest else [])


def _all_settings(study: Study, first: str, rivals: Sequence[str]) -> list[str]:
    """Return the comparison of the first method with its only rival, over all settings."""
    sentences = [
        str(each["sentence"])
        for each in study.comparisons
        if first in (each["a"], each["b"]) and ({str(each["a"]), str(each["b"])} - {first}) <= set(rivals)
    ]
    return [f"All settings together: {sentences[0]}."] if len(sentences) == 1 else []


def _tournament(tournament: Mapping[str, Any]) -> list[str]:
    standings = tournament["standings"]
    best = [str(each["method"]) for each in standings if each["place"] == 1]
    verb, over = "has" if len(best) == 1 else "share", many(len(tournament["experiments"]), "experiment")
    rank = f"{standings[0]['average']:.2f} of {len(standings)}"
    missing = ", with some results missing" if any(not each["complete"] for each in standings) else ""
    return [
        f"Over {over} {join_names(best)} {verb} the best average rank, {rank}{missing}.",
        "A rank does not show whether a difference is significant.",
    ]


def _search(study: Study) -> list[str]:
    """Describe the best value of each method; they are not ranked, because their search spaces differ."""
    best = []
    for method, rounds in (study.search or {}).items():
        values = [one["value"] for one in rounds if one["status"] == "done"]
        best.append(f"{method} {percent(max(values))}%" if values else f"{method} none yet")
    return [
        f"The best {metric_in_words(study.objective)} of the search: {join_names(best)}.",
        "The best of many rounds is biased upward; runs with new seeds measure its value.",
    ]


def study_alarms(study: Study) -> list[str]:
    """Return important warnings.

    Examples:
        >>> from likewise.report.study import Study
        >>> study_alarms(Study("s", rows=[{"method": "a", "openings": 2}]))
        ['The test set was opened more than once in 1 run.']
    """
    alarms = []
    tuned = [row for row in study.rows if row.get("tuned_on_test")]
    if study.protocol is not None and study.protocol["tuned_on_test"]:
        name = study.protocol["name"]
        alarms.append(
            f"Tuned on test: the protocol {name} has no validation classes, so choices were made on the test set."
        )
    elif tuned:
        methods = join_names(list(dict.fromkeys(str(row["method"]) for row in tuned)))
        alarms.append(f"Tuned on test: choices for {many(len(tuned), 'run')} ({methods}) were made on test classes.")
    if study.unfair:
        ranked = "The ranking was requested explicitly." if study.boards else "Nothing on this page is ranked."
        alarms.append(f"Not a fair comparison: the runs differ in {_unfair(study)}. {ranked}")
    opened = openings_of(study.rows, study.openings)
    if opened.repeated:
        alarms.append(f"The test set was opened more than once in {many(len(opened.repeated), 'run')}.")
    if opened.early:
        alarms.append(f"The test set was opened before training had ended in {many(len(opened.early), 'run')}.")
    return alarms


def study_tiles(study: Study) -> list[Tile]:
    """Return the four tiles of the page, none of which is a rank.

    Examples:
        >>> from likewise.report.study import Study
        >>> [tile.label for tile in study_tiles(Study("s"))]
        ['Runs done', 'Methods', 'Fairness', 'Test sets']
    """
    rows = study.rows
    done = [row for row in rows if (row.get("status") or "done") == "done"]
    numbers = {status: sum(row.get("status") == status for row in rows) for status in ("failed", "pruned")}
    lost = ", ".join(f"{number} {status}" for status, number in numbers.items() if number) or "none failed"
    planned = study.planned if study.planned is not None else len(rows)
    final = [row for row in done if (row.get("stage") or "final") == "final"]
    seeds = {str(row["seed"]) for row in final if row.get("seed") is not None}
    opened = openings_of(rows, study.openings)
    most = max(opened.times.values(), default=0)
    test = (
        "never opened" if not opened.total else "at most once per run" if most == 1 else f"up to {most} times per run"
    )
    fair = "not checked" if study.fairness is None else "not checked in full"
    if study.unfair or study.is_checked:
        fair = many(len(study.unfair), "difference") if study.unfair else "nothing unfair"
    tone = "bad" if study.unfair else "good" if study.is_checked else ""
    return [
        Tile("Runs done", count(len(done)), lost, unit=f" of {count(planned)}"),
        Tile(
            "Methods",
            count(len({str(row["method"]) for row in rows})),
            many(len(seeds), "seed") if seeds else "no final run yet",
            unit="",
        ),
        Tile("Fairness", fair, "what was compared", target="fairness", tone=tone),
        Tile(
            "Test sets",
            test,
            f"{many(opened.total, 'opening')} recorded",
            target="openings",
            tone="bad" if most > 1 or opened.early else "",
        ),
    ]
