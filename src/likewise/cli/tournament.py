"""``likewise tournament``: many trainings, killed and resumed at will, one table at the end."""

from __future__ import annotations

import csv
import io
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from likewise.app import UserError, nearest
from likewise.cli.arguments import Arguments
from likewise.cli.executing import INTERRUPTED, Execution, add_execution_options, describe, execution_of, run_trials
from likewise.cli.screen import bold, paragraph, width
from likewise.cli.study import FILE, StudyFile, presets, read_study, write_atomically
from likewise.cli.study_page import write_page
from likewise.cli.study_table import begin
from likewise.data import atomic_write
from likewise.protocols import (
    Leaderboard,
    NoPairs,
    Result,
    Study,
    Unfair,
    compare_all,
    concatenated,
    leaderboards,
    table,
    tournament,
)


def run(words: Sequence[str]) -> int:
    """Run a study, or go on with it, and write its tables and its page.

    Examples:
        >>> run(["--preset", "smok"])
        Traceback (most recent call last):
        likewise.app.errors.UserError: there is no preset smok; did you mean smoke?
    """
    options = Arguments("tournament", "Train every method in every setting with every seed, and rank them fairly.")
    options.add_argument("study", metavar="FILE", nargs="?", type=Path, help="a study in YAML")
    options.add_argument("--preset", metavar="NAME", help=f"one that is here: {', '.join(presets())}")
    options.add_argument("--out", metavar="FOLDER", type=Path, help="where to (default: studies/NAME)")
    add_execution_options(options)
    options.add_argument("--allow-unfair", action="store_true", help="rank also what differs in more than the method")
    given = options.parse_args(words)
    if (given.study is None) == (given.preset is None):
        options.error("give a study's FILE or --preset NAME")
    if given.preset is not None and given.preset not in presets():
        raise UserError(f"there is no preset {given.preset}{nearest(given.preset, presets())}")
    study = read_study(given.study or presets()[given.preset])
    how, folder = execution_of(given), given.out or Path("studies", study.name)
    again = ["likewise", "tournament", str(folder / FILE), "--out", str(folder)]
    with begin(folder, study, how.shard) as table:
        print(bold(f"{study.name}: {len(table.trials())} trainings, {how.words()}, {folder}"), flush=True)
        return finish(folder, study, table, how, again, allow_unfair=given.allow_unfair)


def finish(
    folder: Path, study: StudyFile, table: Study, how: Execution, again: Sequence[str], *, allow_unfair: bool
) -> int:
    """Run what is missing, and write the tables and the page.

    Args:
        folder: of the study.
        study: what its file says.
        table: its table, or that of a shard, which this process holds.
        how: where trials run.
        again: the command that goes on.
        allow_unfair: rank also what differs in more than the method.

    Returns:
        The exit code.
    """
    code = run_trials(folder, table, how, metric=study.metric)
    counts = table.counts()
    if code == INTERRUPTED or (how.minutes is not None and counts["missing"]):
        print(f"stopped with {counts['missing']} missing; the same command goes on: {shlex.join(again)}")
        return code
    if how.shard is not None:
        done = f"{counts['done']} done, {counts['failed']} failed, {counts['missing']} missing"
        print(paragraph(f"{table.file}: {done}; the command without --shard puts all shards together"))
    else:
        conclude(folder, study, table.results(), allow_unfair=allow_unfair)
    return 1 if code or counts["failed"] else 0


def conclude(folder: Path, study: StudyFile, results: list[Result], *, allow_unfair: bool) -> None:
    """The tables of a study, on the screen and in files."""
    metric, folds = f"test {study.metric}", len(study.chosen_protocol().folds)
    done = [result for result in results if result.status == "done" and result.test]
    joined = concatenated(done, folder, folds) if folds > 1 else []
    write_rows(folder, table([*results, *joined]))
    for result in results:
        if result.status == "failed":
            print(paragraph(f"failed: {describe(result.trial)}: {result.error}"))
        elif result.note:
            print(paragraph(f"note: {describe(result.trial)}: {result.note}"))
    if not done:
        print("nothing is done" + ("" if results else " yet"))
        return
    within, planned = study.settings(), len(study.trials())
    boards: dict[str, Leaderboard] = {}
    try:
        for title, some in {"": done, "concatenated": joined}.items():
            found = leaderboards(some, metric, within=within, allow_unfair=allow_unfair) if some else {}
            for setting, board in found.items():
                name = ", ".join(f"{label} {value}" for label, value in zip(within, setting, strict=True))
                boards[", ".join(filter(None, [name, title]))] = board
    except Unfair as unfair:
        print("\n" + paragraph(f"not ranked: {unfair}"))
        print(write_page(folder, study, [*results, *joined], {}, unfair=unfair.differences, planned=planned))
        return
    for name, board in boards.items():
        print(bold(f"\n{name}"))
        print(board.text(width()))
    ranks, compared = None, None
    if len(study.methods) > 1:
        print(bold("\ntournament"))
        ranks = tournament([result.row() for result in done], metric, within)
        print(ranks.text())
        try:
            compared = compare_all([result.row() for result in done], metric)
            print("\n" + "\n".join(map(paragraph, compared.sentences())))
        except NoPairs as none:
            print("\n" + paragraph(str(none)))
    page = write_page(folder, study, [*results, *joined], boards, ranks=ranks, compared=compared, planned=planned)
    print(f"\n{folder / 'results.csv'}\n{page}")


def write_rows(folder: Path, rows: Sequence[Mapping[str, object]]) -> None:
    """The tidy table as CSV, and as Parquet where pyarrow is installed."""
    columns = list(rows[0]) if rows else []
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_atomically(folder / "results.csv", text.getvalue())
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        return
    if rows:
        with atomic_write(folder / "results.parquet") as part:
            parquet.write_table(pyarrow.table({name: _alike([row[name] for row in rows]) for name in columns}), part)


def _alike(values: Sequence[object]) -> list[object]:
    """A column of one kind of value: words where there are words and numbers, as CSV has them."""
    kinds = {type(value) for value in values if value is not None}
    mixed = len(kinds) > 1 and kinds != {int, float}
    return [str(value) if mixed and value is not None else value for value in values]
