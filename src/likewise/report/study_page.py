"""The sections of a study's page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from markupsafe import Markup

from likewise.report.blocks import Charts, Code, Definitions, Drawing, Fold, Group, Sentences, Table, Text
from likewise.report.charts import COLORS
from likewise.report.page import Page, Section
from likewise.report.row_charts import RowChart, row_chart
from likewise.report.study_charts import experiment_charts, scatters, search_charts
from likewise.report.study_complete_table import complete_table
from likewise.report.study_names import columns_of, filter_of
from likewise.report.study_openings import openings_of
from likewise.report.study_tables import (
    board_entries,
    board_table,
    failure_tables,
    matrix_table,
    search_table,
    tournament_table,
)
from likewise.report.study_verdict import study_alarms, study_tiles, study_verdict
from likewise.report.words import count, in_words, many, meaning_of

if TYPE_CHECKING:
    from likewise.report.study import Study

NOT_EQUAL = "The runs differ in more than the method"


def study_page(study: Study) -> Page:
    """Create the page of a study.

    Examples:
        >>> from likewise.report.study import Study
        >>> [section.name for section in study_page(Study("s")).sections]
        ['leaderboard', 'experiments', 'fairness', 'all', 'openings', 'made']
    """
    colors = {name: number for number, name in enumerate(_methods(study))}
    columns = columns_of(study.rows, study.metric)
    experiments = experiment_charts(study.rows, study.metric, colors)
    sections = [
        _leaderboard(study, colors, {chart.title: chart.filter for chart in experiments}),
        _tournament(study),
        _tables(study),
        _figures(study),
        _experiments(study, experiments),
        _pairs(study),
        _search(study, colors),
        _fairness(study),
        _failures(study, columns),
        _all(study, columns),
        _openings(study),
        _how_it_was_made(study),
    ]
    headline, *more = study_verdict(study)
    return Page(
        "study",
        study.title,
        headline,
        [section for section in sections if section is not None],
        what=study.what,
        more=more,
        tiles=study_tiles(study),
        alarms=study_alarms(study),
    )


def _methods(study: Study) -> list[str]:
    """List the methods in the order of the table, which determines their colors."""
    standings = (study.tournament or {}).get("standings", ())
    names = [str(row["method"]) for row in study.rows] + [str(name) for name in study.search or {}]
    names += [str(row["method"]) for rows in study.boards.values() for row in rows if "method" in row]
    return list(dict.fromkeys(names + [str(each["method"]) for each in standings]))


def _on(metric: str) -> str:
    part, _, name = metric.partition(" ")
    return f"{name} on {'validation' if part == 'val' else 'test'} classes"


def _leaderboard(study: Study, colors: Mapping[str, int], filters: Mapping[str, str]) -> Section:
    metric = study.metric.partition(" ")[2]
    blocks: list[object] = []
    boards = {setting: rows for setting, rows in study.boards.items() if rows}
    sure = "95%"
    for setting, rows in boards.items():
        if not all(row.get("fair", True) for row in rows):
            blocks.append(Text(f"Unfair: ranked on request, but {NOT_EQUAL[0].lower()}{NOT_EQUAL[1:]}.", "alarm"))
        sure = f"{100 * rows[0].get('confidence', 0.95):g}%"
        entries = board_entries(rows, colors)
        interval = f" and {sure} interval" if any(each.low is not None for each in entries) else ""
        chart = row_chart(metric, entries, note=f"mean{interval} over seeds, in percent")
        # a setting with the name of an experiment has the runs of that experiment
        runs = filters.get(setting, filter_of({"stage": "final"}))
        blocks.append(Group("setting", [chart, board_table(rows, metric, setting, runs)], title=setting))
    if boards:
        folds = " and folds" if any(row.get("fold") is not None for row in study.rows) else ""
        blocks.append(
            Text(
                f"In percent: the mean over seeds and its {sure} Student interval, which covers the variation between "
                "seeds, not between classes; fewer than three seeds have no interval. Axes do not start at zero. “Behind "
                f"the first” is the paired difference over the same seeds{folds}, in points. Each is a single comparison "
                "with the method that has the highest mean, so small differences tend to be overestimated."
            )
        )
        blocks += [Text(f"{metric}: {meaning_of(metric)}.")] if meaning_of(metric) else []
    elif study.is_refused:
        links = Markup(
            'The ranking was refused: {}. <a href="#fairness">The differences</a> are listed below, and '
            '<a href="#experiments">the results</a> are not ranked.'
        )
        blocks.append(Text(links.format(f"{NOT_EQUAL[0].lower()}{NOT_EQUAL[1:]}"), "statement"))
    else:
        blocks.append(Text("There is no leaderboard: no method has a complete result yet.", "empty"))
    return Section("leaderboard", "Leaderboard", blocks, _on(study.metric), "Leaderboard")


def _tournament(study: Study) -> Section | None:
    if not study.tournament:
        return None
    if study.is_refused:
        blocks = [Text(f"Not shown: the ranking was refused. {NOT_EQUAL}.", "empty")]
    elif not study.tournament["standings"]:
        blocks = [Text("No experiment has a result yet.", "empty")]
    else:
        metric = str(study.tournament["metric"]).partition(" ")[2]
        note = (
            f"Each cell is the rank in that experiment, with the mean {metric} in percent below. Equal scores share a "
            "rank. A rank does not show the size of a difference, or whether it is significant."
        )
        notes = [note, *(str(each) for each in study.tournament.get("notes", ()))]
        blocks = [tournament_table(study.tournament), *(Text(each) for each in notes)]  # type: ignore[list-item]
    return Section("tournament", "Tournament", blocks, "ranks in every experiment; 1 is best", "Tournament")


def _caption_blocks(caption: str, command: str) -> list[object]:
    return [*([Text(caption)] if caption else []), *([Code(command, True)] if command else [])]


def _tables(study: Study) -> Section | None:
    blocks = [
        Group(
            "",
            [
                Table(title, each.head, each.rows, "plain in-words" if each.words else "numbers"),
                *_caption_blocks(each.caption, each.command),
            ],
            title=title,
        )
        for title, each in study.tables.items()
    ]
    return Section("tables", "More tables", blocks, link="Tables") if blocks else None


def _figures(study: Study) -> Section | None:
    drawings = [
        Drawing(title, each)
        if isinstance(each, bytes)
        else Drawing(title, each.svg, _caption_blocks(each.caption, each.command))
        for title, each in study.figures.items()
    ]
    return Section("figures", "Figures", [Group("drawings", drawings)], link="Figures") if drawings else None


def _experiments(study: Study, charts: Sequence[RowChart]) -> Section:
    blocks: list[object] = [Text("No final run has a result yet.", "empty")]
    if charts:
        note = (
            "One point per seed, a line for the mean; in the order of the table, not ranked. Hollow points are seeds with a "
            "missing fold, which are not part of the mean. Experiments on the same data have the same axis, which does not "
            "start at zero."
        )
        blocks = [Text(note), Charts(charts, "panels")]
    return Section("experiments", "Each experiment", blocks, f"{_on(study.metric)}, in percent", "Experiments")


def _pairs(study: Study) -> Section | None:
    if not study.comparisons:
        return None
    blocks: list[object] = []
    if study.unfair:
        blocks.append(Text(f"{NOT_EQUAL}, so a difference is not necessarily due to the method.", "alarm"))
    if matrix := matrix_table(study.comparisons):
        note = (
            "The number is the mean difference over pairs with the same seed, fold and setting; its interval is below. "
            "Green: the row is better than the column; red: worse; in brackets: not distinguishable, or fewer than three "
            "pairs."
        )
        blocks += [matrix, Text(note)]
    blocks += [Text(study.comparison_note)] if study.comparison_note else []
    sentences = [str(each["sentence"]) for each in study.comparisons]
    summary = f"In sentences: {many(len(sentences), 'comparison')}"
    blocks.append(Fold(summary, [Sentences(sentences)], is_open=len(sentences) <= 3))
    hint = f"row minus column, in points of {study.metric.partition(' ')[2]}"
    return Section("pairs", "Pair by pair", blocks, hint, "Pairs")


def _search(study: Study, colors: Mapping[str, int]) -> Section | None:
    if not study.search:
        return None
    note = (
        "The rounds of each method, in the given order, not ranked. The best of many rounds is biased upward; runs with new "
        "seeds measure its value."
    )
    blocks: list[object] = [Text(note)]
    if charts := search_charts(study.search, study.objective, colors):
        blocks.append(Charts(charts))
    blocks.append(search_table(study.search, colors))
    settings = scatters(study.search, colors)
    blocks += [
        Group("", [Charts(each, "scatters")], title=method, color=colors[method] % COLORS)
        for method, each in settings.items()
    ]
    if settings:
        note = (
            "Values of the objective in percent, by hyper-parameter. A ring marks the best; a red cross at the bottom failed "
            "or was pruned."
        )
        blocks.append(Text(note))
    return Section("search", "Search", blocks, _on(study.objective), "Search")


def _fairness(study: Study) -> Section:
    protocol = study.protocol
    blocks: list[object] = [Text("The protocol is not recorded.", "empty")]
    if protocol is not None:
        source = f" ({protocol['source']})" if protocol["source"] else ""
        tuned = Markup(' <strong class="bad">Tuned on test.</strong>') if protocol["tuned_on_test"] else ""
        sentence = Markup("Protocol <strong>{}</strong>: {}{}.{}")
        blocks = [Text(sentence.format(protocol["name"], protocol["sentence"], source, tuned), "")]
    if study.fairness is None:
        blocks.append(Text("It was not checked whether the runs differ only in the method.", "statement"))
    elif not study.unfair:
        blocks.append(Text("The check found no difference that makes this comparison unfair.", "statement good"))
    else:
        differ = f"{many(len(study.unfair), 'setting')} {'differs' if len(study.unfair) == 1 else 'differ'}"
        unfair = Markup('<strong class="bad">Not a fair comparison:</strong> {} that {} not part of the method.')
        blocks.append(Text(unfair.format(differ, "is" if len(study.unfair) == 1 else "are"), "statement"))
    if study.fairness is not None and not study.is_checked:
        text = "Only the columns of the table were compared, because the descriptions of the runs were not given."
        blocks.append(Text(text))
    for each in sorted(study.fairness or (), key=lambda one: one["severity"] != "unfair"):
        shared: dict[str, list[str]] = {}
        for name, value in each["values"].items():
            shared.setdefault(in_words(value), []).append(str(name))
        values = Definitions([(value, ", ".join(names)) for value, names in shared.items()])
        box, hint = ("unfair", "unfair") if each["severity"] == "unfair" else ("", "note")
        blocks.append(Group(f"card difference {box}", [values, Text(each["why"], "")], title=each["what"], hint=hint))
    return Section("fairness", "Is it fair?", blocks, link="Fairness")


def _failures(study: Study, columns: list[str]) -> Section | None:
    tables = failure_tables(study.rows, columns)
    if not tables:
        return None
    blocks: list[object] = [tables.get("failed") or Text("None failed.")]
    if pruned := tables.get("pruned"):
        blocks.append(
            Fold(f"Pruned, because others were better at the same step: {many(len(pruned.rows), 'run')}", [pruned])
        )
    hint = ", ".join(f"{len(tables[each].rows) if each in tables else 0} {each}" for each in ("failed", "pruned"))
    return Section("failures", "Failed and pruned", blocks, hint, "Failures")


def _all(study: Study, columns: list[str]) -> Section:
    blocks: list[object] = [Text("Nothing has been trained yet.", "empty")]
    if study.rows:
        example = Markup('<code>method="{}"</code>').format(study.rows[0]["method"])
        note = Markup(
            "Metrics in percent. Click a heading to sort. Filter by words, or by column and value, such as {}. Names of "
            "methods on this page are links that set the filter."
        ).format(example)
        blocks = [Text(note), complete_table(study.rows, columns, study.metric)]
    return Section("all", "All runs", blocks, "the source of every number above", "All runs")


def _openings(study: Study) -> Section:
    opened = openings_of(study.rows, study.openings)
    text: str = f"No test set was opened{', as far as recorded' if opened.unknown else ''}."
    if opened.total:
        often = Markup(', <strong class="bad">more than once in {}</strong>').format(count(len(opened.repeated)))
        text = Markup("Test sets were opened {} in {}: once in {}, never in {}{}.").format(
            many(opened.total, "time"),
            many(len(opened.times), "run"),
            count(opened.once),
            count(opened.never),
            often if opened.repeated else "",
        )
    blocks: list[object] = [Text(text, "statement")]
    if opened.unknown:
        blocks.append(Text(f"For {many(opened.unknown, 'run')} the number of openings is not recorded."))
    if opened.repeated:
        runs = [Markup("<code>{}</code>: {} times").format(run, times) for run, times in opened.repeated.items()]
        blocks.append(Sentences(runs))
    if opened.records:
        number = len(opened.records)
        blocks.append(Fold(f"When and why: {many(number, 'opening')}", [opened.table()], is_open=number <= 8))
    untimed = opened.total - len(opened.records)
    if untimed > 0:
        which = "the openings" if untimed == opened.total else f"{untimed} of them"
        where = Markup(
            "The times of {} are in the folders of the runs (<code>openings.jsonl</code>), not on this page."
        )
        blocks.append(Text(where.format(which)))
    return Section("openings", "Test sets", blocks, link="Test sets")


def _how_it_was_made(study: Study) -> Section:
    blocks: list[object] = [Text("The command that reproduces the study is not recorded.", "empty")]
    if study.command:
        text = "This command reproduces the study; the row of each run contains its command."
        blocks = [Text(text), Code(study.command, True)]
    facts = [("Versions", study.versions or "not recorded"), ("Hardware", study.hardware or "not recorded")]
    return Section("made", "How it was made", [*blocks, Definitions(facts)], link="How it was made")
