"""``likewise repeat`` and ``likewise tune``: one method, many seeds or many settings."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from likewise.app import Execution, StudyFile, UserError, allowed_by, flags_of, parse_request, read_request
from likewise.app import repeat as repeat_method
from likewise.app import tune as tune_method
from likewise.cli.arguments import Arguments
from likewise.cli.study_options import add_execution_options, read_execution
from likewise.cli.study_screen import run_on_screen
from likewise.cli.tournament import announce
from likewise.protocols import PROTOCOLS, Study


def repeat(words: Sequence[str]) -> int:
    """Train one method with several seeds: mean and interval.

    Examples:
        >>> repeat(["--data", "Glyphs", "--seeds", "0"])
        Traceback (most recent call last):
        likewise.app.errors.UserError: --seeds must be a whole number ≥ 1, but it is 0
    """
    parser = Arguments("repeat", "Train one method with several seeds. Other options are those of likewise train.")
    parser.add_argument("--seeds", metavar="N", type=int, default=5, help="number of seeds (default: 5)")
    _add_options(parser, shards=True)
    options, rest = parser.parse_known_args(list(words))
    execution = read_execution(options, allowed_by(rest))
    config = _read_config(options, rest, execution)
    return run_on_screen(
        lambda on_start, watch: repeat_method(
            config,
            options.out,
            seeds=options.seeds,
            name=options.name,
            protocol=options.protocol,
            execution=execution,
            on_start=on_start,
            watch=watch,
        ),
        ["likewise", "repeat", *words],
        announce=lambda study, folder, trials: announce(study, folder, trials, execution),
    )


def tune(words: Sequence[str]) -> int:
    """Search hyper-parameters on validation classes.

    Examples:
        >>> tune(["--data", "Glyphs", "--how", "bayes"])
        Traceback (most recent call last):
        likewise.app.errors.UserError: there is no search bayes; did you mean bayesian?
    """
    parser = Arguments(
        "tune",
        "Search hyper-parameters on validation classes; the test set stays sealed. By default the hyper-parameters that "
        "the loss and its miner declare, and the learning rates, are searched. Other options are those of likewise train.",
    )
    parser.add_argument(
        "--rounds", metavar="N", type=int, help="settings to try (default: 50; thesis-grid: all of them)"
    )
    parser.add_argument(
        "--at-once", metavar="N", type=int, help="settings proposed together (default: as many as run at once)"
    )
    parser.add_argument(
        "--how",
        default="bayesian",
        help="bayesian, random, grid (one setting after the other) or thesis-grid (the values of its table 15) "
        "(default: bayesian)",
    )
    parser.add_argument(
        "--search",
        metavar="WHAT",
        nargs="+",
        help="paths to search (default: all of the loss and miner, and learning rates), each optionally with a range: "
        "loss.alpha, optimizer.lr=1e-5:1e-2:log, loss.margin=0:1:0.1 (a step)",
    )
    _add_options(parser, shards=False)  # the next settings of a search depend on all results
    options, rest = parser.parse_known_args(list(words))
    execution = read_execution(options, allowed_by(rest))
    config = _read_config(options, rest, execution)

    def announce(study: StudyFile, folder: Path, trials: Study) -> str:
        search = study.search or {}
        paths = ", ".join(search["space"])
        return f"{study.name}: {search['rounds']} settings of {paths}, {execution}, {folder}"

    return run_on_screen(
        lambda on_start, watch: tune_method(
            config,
            options.out,
            rounds=options.rounds,
            how=options.how,
            search=options.search,
            at_once=options.at_once,
            name=options.name,
            protocol=options.protocol,
            execution=execution,
            on_start=on_start,
            watch=watch,
        ),
        ["likewise", "tune", *words],
        announce=announce,
    )


def _add_options(parser: Arguments, *, shards: bool) -> None:
    parser.add_argument("--name", help="the name of the method (default: that of its loss)")
    parser.add_argument("--out", metavar="FOLDER", type=Path, help="where results go")
    add_execution_options(parser, shards=shards)
    parser.add_argument(
        "--protocol",
        choices=tuple(PROTOCOLS),
        help="how classes are held out, instead of the split of a file: see docs/protocols.md (default: the split)",
    )


def _read_config(options: Namespace, rest: Sequence[str], execution: Execution) -> dict[str, Any]:
    """The configuration; a protocol replaces a split from files, but not one from flags."""
    if options.protocol is not None:
        for flag in flags_of(rest):
            if flag.key.startswith("split.") and flag.key != "split.test":
                raise UserError(f"--{flag.key} cannot be combined with --protocol, which chooses the held-out classes")
    return parse_request(read_request(rest, execution.allow), execution.allow)
