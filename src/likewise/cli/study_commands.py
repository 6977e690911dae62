"""``likewise study``: take a study to another machine, bring its results home, and export its table."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from likewise.app import UserError, nearest, sentence
from likewise.cli.arguments import Arguments
from likewise.cli.executing import add_execution_options, execution_of, run_trials
from likewise.cli.screen import columns, paragraph
from likewise.cli.study import FILE, read_study
from likewise.cli.study_table import drive_study, hold, open_study, shard_file, view_study
from likewise.cli.tournament import write_rows
from likewise.protocols import Study, in_shard, merge_study, pack_study, table

COMMANDS = {
    "run": "run the missing trials of a study that a program has planned",
    "pack": "copy what another machine needs to run the missing trials",
    "merge": "bring results and runs of packs home, and those of shards",
    "export": "write results.csv, and results.parquet where pyarrow is installed",
}


def run(words: Sequence[str]) -> int:
    """Run one of the commands about a study.

    Examples:
        >>> run(["pakc"])
        Traceback (most recent call last):
        likewise.app.errors.UserError: there is no likewise study pakc; did you mean pack?
    """
    if not words or words[0] in ("-h", "--help"):
        print("usage: likewise study COMMAND FOLDER …\n\n" + columns(list(COMMANDS.items())))
        return 0
    name, *rest = words
    if name not in COMMANDS:
        raise UserError(f"there is no likewise study {name}{nearest(name, COMMANDS)}")
    options = Arguments(f"study {name}", COMMANDS[name])
    options.add_argument("folder", metavar="STUDY", type=Path, help="the folder of a study")
    if name == "run":
        add_execution_options(options)
    elif name == "pack":
        options.add_argument("pack", metavar="PACK", type=Path, help="the folder to make")
    elif name == "merge":
        options.add_argument("packs", metavar="PACK", nargs="*", type=Path, help="packs, or copies of the study")
    given = options.parse_args(rest)
    try:
        return {"run": _run, "pack": _pack, "merge": _merge, "export": _export}[name](given)
    except (OSError, RuntimeError, ValueError) as error:
        raise UserError(sentence(error)) from error


def _run(given: Namespace) -> int:
    study, how = read_study(given.folder / FILE), execution_of(given)
    with ExitStack() as held:
        if how.shard is None:
            table = held.enter_context(drive_study(given.folder))
        else:
            missing = open_study(given.folder).missing()
            table = Study(shard_file(given.folder, how.shard))
            held.enter_context(hold(table))
            table.add([trial for trial in missing if in_shard(trial.key, how.shard)])
        code = run_trials(given.folder, table, how, metric=study.metric)
    print(_counts(table))
    return code


def _pack(given: Namespace) -> int:
    study = read_study(given.folder / FILE)
    with drive_study(given.folder):
        missing = pack_study(given.folder, given.pack, metric=study.metric)
    command = f"python -m likewise.app.execute {given.pack.name}"
    print(paragraph(f"{missing} trainings are missing; {command} runs them where {given.pack} is taken to"))
    return 0


def _merge(given: Namespace) -> int:
    read_study(given.folder / FILE)
    with drive_study(given.folder) as study:
        for pack in given.packs:
            print(f"{pack}: {len(merge_study(given.folder, pack))} new results")
    print(_counts(study))
    return 0


def _export(given: Namespace) -> int:
    read_study(given.folder / FILE)
    with view_study(given.folder) as study:
        write_rows(given.folder, table(study.results()))
        print(f"{given.folder / 'results.csv'}: {_counts(study)}")
    return 0


def _counts(study: Study) -> str:
    return ", ".join(f"{count} {state}" for state, count in study.counts().items() if count) or "no trials"
