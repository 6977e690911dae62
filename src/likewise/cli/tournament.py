"""``likewise tournament``: train every method of a study, resumable, and rank the methods."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from likewise.app import Execution, StudyFile, UserError, allow_flags, find_presets, nearest, read_study, run_study
from likewise.cli.arguments import Arguments
from likewise.cli.study_options import add_execution_options, read_execution
from likewise.cli.study_screen import run_on_screen
from likewise.protocols import Study


def run(words: Sequence[str]) -> int:
    """Run or continue a study, and write its tables and its page.

    Examples:
        >>> run(["--preset", "smok"])
        Traceback (most recent call last):
        likewise.app.errors.UserError: there is no preset smok; did you mean smoke?
    """
    parser = Arguments("tournament", "Train every method in every setting with every seed, and rank them fairly.")
    parser.add_argument("study", metavar="FILE", nargs="?", type=Path, help="a YAML file that describes a study")
    parser.add_argument("--preset", metavar="NAME", help=f"a study of the library: {', '.join(find_presets())}")
    parser.add_argument("--out", metavar="FOLDER", type=Path, help="where results go (default: studies/NAME)")
    add_execution_options(parser)
    parser.add_argument(
        "--allow-unfair", action="store_true", help="also rank training runs that differ in more than the method"
    )
    options = parser.parse_args(words)
    if (options.study is None) == (options.preset is None):
        parser.error("give a study's FILE or --preset NAME")
    if options.preset is not None and options.preset not in find_presets():
        raise UserError(f"there is no preset {options.preset}{nearest(options.preset, find_presets())}")
    study = read_study(options.study or find_presets()[options.preset], allow=options.allow)
    folder = options.out or Path("studies", study.name)
    execution = read_execution(options)
    return run_on_screen(
        lambda on_start, watch: run_study(
            study, folder, execution=execution, allow_unfair=options.allow_unfair, on_start=on_start, watch=watch
        ),
        ["likewise", "tournament", str(folder / "study.yaml"), "--out", str(folder), *allow_flags(options.allow)],
        announce=lambda study, folder, trials: announce(study, folder, trials, execution),
    )


def announce(study: StudyFile, folder: Path, trials: Study, execution: Execution) -> str:
    """The first line of the output.

    Examples:
        >>> import tempfile
        >>> study = StudyFile("one", methods={"circle": {"loss": "CircleLoss"}}, base={"data": "Glyphs"})
        >>> announce(study, Path("studies/one"), Study(tempfile.mkdtemp() + "/study.db"), Execution(workers=2))
        'one: 0 training runs, 2 workers, studies/one'
    """
    return f"{study.name}: {len(trials.trials())} training runs, {execution}, {folder}"
