"""``likewise study``: run, pack, merge and export a study."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path

from likewise.app import (
    UserError,
    export_study,
    merge_study,
    nearest,
    pack_study,
    run_planned,
    sentence,
    view_study,
)
from likewise.cli.arguments import Arguments
from likewise.cli.screen import columns, paragraph, suggest
from likewise.cli.study_options import add_execution_options, read_execution
from likewise.cli.study_screen import INTERRUPTED, Screen
from likewise.protocols import ExecutorBroken

COMMANDS = {
    "run": "run the missing trials of a study planned by a program",
    "pack": "copy the files that another machine needs to run the missing trials",
    "merge": "add the results and runs of packs and shards to the study",
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
    parser = Arguments(f"study {name}", COMMANDS[name])
    parser.add_argument("folder", metavar="STUDY", type=Path, help="the folder of a study")
    if name == "run":
        add_execution_options(parser)
    elif name == "pack":
        parser.add_argument("pack", metavar="PACK", type=Path, help="the folder to create")
    elif name == "merge":
        parser.add_argument("packs", metavar="PACK", nargs="*", type=Path, help="packs, or copies of the study")
    options = parser.parse_args(rest)
    return {"run": _run, "pack": _pack, "merge": _merge, "export": _export}[name](options)


def _run(options: Namespace) -> int:
    try:
        with Screen() as screen:
            counts = run_planned(options.folder, execution=read_execution(options), watch=screen.show)
    except KeyboardInterrupt:
        print(_count(options.folder))
        return INTERRUPTED
    except ExecutorBroken as error:
        print(sentence(error), file=sys.stderr)
        return 1
    print(_describe(counts))
    suggest("leaderboard", str(options.folder))
    return 0


def _pack(options: Namespace) -> int:
    missing = pack_study(options.folder, options.pack)
    command = f"python -m likewise.app.execute {options.pack.name}"
    print(
        paragraph(
            f"{missing} training runs are missing; {command} runs them on the machine to which you copy {options.pack}"
        )
    )
    return 0


def _merge(options: Namespace) -> int:
    for pack, count in merge_study(options.folder, *options.packs).items():
        print(f"{pack}: {count} new results")
    print(_count(options.folder))
    suggest("leaderboard", str(options.folder))
    return 0


def _export(options: Namespace) -> int:
    print(f"{export_study(options.folder)}: {_count(options.folder)}")
    suggest("compare", str(options.folder))
    return 0


def _count(folder: Path) -> str:
    with view_study(folder) as study:
        return _describe(study.counts())


def _describe(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {state}" for state, count in counts.items() if count) or "no trials"
