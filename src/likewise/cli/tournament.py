"""``likewise tournament`` and ``likewise work``: many trainings, killed and resumed at will, one table at the end."""

from __future__ import annotations

import csv
import io
import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from likewise.app import Mistake, nearest
from likewise.cli.arguments import Arguments
from likewise.cli.pool import describe, fitting, interruptible, run_workers
from likewise.cli.screen import bold, paragraph, width
from likewise.cli.study import FILE, StudyFile, begin, board_of, presets, read_study, with_aside
from likewise.cli.study_page import write_page
from likewise.data import aside
from likewise.protocols import (
    Board,
    Leaderboard,
    NoPairs,
    Result,
    Standing,
    Unfair,
    compare_all,
    concatenated,
    leaderboards,
    table,
    tournament,
)
from likewise.protocols import work as take

INTERRUPTED = 130
"""The exit code after Ctrl-C."""


def run(words: Sequence[str]) -> int:
    """Run a study, or go on with it, and write its tables and its page.

    Examples:
        >>> run(["--preset", "smok"])
        Traceback (most recent call last):
        likewise.app.errors.Mistake: there is no preset smok; did you mean smoke?
    """
    options = Arguments("tournament", "Train every method in every setting with every seed, and rank them fairly.")
    options.add_argument("study", metavar="FILE", nargs="?", type=Path, help="a study in YAML")
    options.add_argument("--preset", metavar="NAME", help=f"one that is here: {', '.join(presets())}")
    options.add_argument("--out", metavar="FOLDER", type=Path, help="where to (default: studies/NAME)")
    options.add_argument("--workers", metavar="N", type=int, help="processes (default: as many as fit); 0: only plan")
    options.add_argument(
        "--board", metavar="URL", help="a database that several machines share, such as postgresql://…"
    )
    options.add_argument("--even-if-unfair", action="store_true", help="rank also what differs in more than the method")
    given = options.parse_args(words)
    if (given.study is None) == (given.preset is None):
        options.error("give a study's FILE or --preset NAME")
    if given.preset is not None and given.preset not in presets():
        raise Mistake(f"there is no preset {given.preset}{nearest(given.preset, presets())}")
    study = read_study(given.study or presets()[given.preset])
    if given.board is not None:
        study = replace(study, board=given.board)
    workers = fitting() if given.workers is None else given.workers
    if workers < 0:
        raise Mistake(f"--workers must be a whole number ≥ 0, but it is {workers}")
    folder = given.out or Path("studies", study.name)
    board = begin(folder, study)
    print(bold(f"{study.name}: {len(board.trials())} trainings, {workers} workers, {folder}"), flush=True)
    code = run_workers(folder, board, workers) if workers else 0
    if code == INTERRUPTED:
        again = ["likewise", "tournament", str(folder / FILE), "--out", str(folder)]
        print(f"stopped; the same command goes on: {shlex.join(again)}")
        return code
    conclude(folder, study, board.results(), even_if_unfair=given.even_if_unfair)
    return 1 if code or board.counts()["failed"] else 0


def work(words: Sequence[str]) -> int:
    """Take trials from a study's board until there is nothing left; as many of these as one likes, on any machine.

    Examples:
        >>> work(["nowhere"])
        Traceback (most recent call last):
        likewise.app.errors.Mistake: there is no study nowhere/study.yaml
    """
    options = Arguments("work", "Run trials of a study, one after the other, until there is nothing left.")
    options.add_argument("study", metavar="STUDY", type=Path, help="the folder of a study")
    options.add_argument(
        "--workers", metavar="N", type=int, help="so many processes at once; they share a GPU, or have one thread each"
    )
    options.add_argument("--minutes", metavar="M", type=float, help="stop after so many; the same command goes on")
    options.add_argument("--name", help="of this worker, in tables")
    given = options.parse_args(words)
    study = read_study(given.study / FILE)
    board = board_of(given.study, study)
    if given.workers is None and given.minutes is None:
        return _take(given.study, study, board, given.name)
    if given.workers is not None and given.workers < 1:
        raise Mistake(f"--workers must be a whole number ≥ 1, but it is {given.workers}")
    if given.minutes is not None and not given.minutes > 0:
        raise Mistake(f"--minutes must be a number > 0, but it is {given.minutes:g}")
    if given.name is not None:
        raise Mistake("--name is of one worker in this process: leave it out beside --workers and --minutes")
    seconds = math.inf if given.minutes is None else 60 * given.minutes
    code = run_workers(given.study, board, given.workers or 1, seconds=seconds)
    left = board.counts()["waiting"]
    if left and code in (0, INTERRUPTED):
        print(f"{left} trainings wait; the same command goes on: {shlex.join(['likewise', 'work', *words])}")
    return code


def _take(folder: Path, study: StudyFile, board: Board, name: str | None) -> int:
    """Be a worker."""
    from likewise.cli.trials import run_trial

    with interruptible():  # not only a training, but whatever a trial consists of is put back
        done = take(board, lambda trial, go_on: run_trial(trial, go_on, folder=folder), name=name, metric=study.metric)
    print(f"{done} trainings")
    return 0


def conclude(folder: Path, study: StudyFile, results: list[Result], *, even_if_unfair: bool) -> None:
    """The tables of a study, on the screen and in files."""
    metric, folds = f"test {study.metric}", len(study.chosen_protocol().folds)
    done = [result for result in results if result.status == "done" and result.test]
    joined = concatenated(done, folder, folds) if folds > 1 else []
    write_rows(folder, table([*results, *joined]))
    for result in results:
        if result.status == "failed":
            print(paragraph(f"failed: {describe(Standing(result.trial))}: {result.error}"))
    if not done:
        print("nothing is done" + ("" if results else " yet: likewise work runs what waits"))
        return
    within, planned = study.settings(), len(study.trials())
    boards: dict[str, Leaderboard] = {}
    try:
        for title, some in {"": done, "concatenated": joined}.items():
            found = leaderboards(some, metric, within=within, even_if_unfair=even_if_unfair) if some else {}
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
    with_aside(folder / "results.csv", text.getvalue())
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        return
    if rows:
        with aside(folder / "results.parquet") as part:
            parquet.write_table(pyarrow.table({name: _alike([row[name] for row in rows]) for name in columns}), part)


def _alike(values: Sequence[object]) -> list[object]:
    """A column of one kind of value: words where there are words and numbers, as CSV has them."""
    kinds = {type(value) for value in values if value is not None}
    mixed = len(kinds) > 1 and kinds != {int, float}
    return [str(value) if mixed and value is not None else value for value in values]
