"""Run the missing trials of a packed study, on a machine that needs only torch and the packages of training.

``python -m likewise.app.execute PACK`` is the same from a shell.  `likewise.app.pack_study` makes the pack,
`likewise.app.merge_study` adds its results to the study.  No parser, no Optuna and no Ray is imported here or in the
processes that train.
"""

from __future__ import annotations

from likewise._safe_path import leave_current_folder

if __name__ == "__main__":
    leave_current_folder()

import argparse
import os
import sys
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path

from likewise.app.errors import UserError
from likewise.app.execution import Execution, hold_table, run_trials
from likewise.app.trials import WHERE_THINGS_ARE
from likewise.progress import is_quiet, quiet
from likewise.protocols import STUDY_DATABASE, ExecutorBroken, Study, TrialState, read_pack


def execute_pack(
    pack: str | os.PathLike[str],
    *,
    minutes: float | None = None,
    workers: int | None = None,
    per_gpu: int = 1,
    places: Mapping[str, str] | None = None,
    plan: Callable[[], object] | None = None,
    allow: Collection[str] = (),
) -> bool:
    """Run the missing trials of a pack in processes of this machine.

    Args:
        pack: its folder; results and runs are written there.
        minutes: time limit, after which running trials write a checkpoint and stop; allow a minute more.
        workers: number of concurrent trials; by default as many as fit.
        per_gpu: number of trials that share a GPU.
        places: locations on this machine, such as ``{"data.root": "/data/birds"}``; the trials stay the same.
        plan: adds trials and cancels them: see `likewise.protocols.run_missing`.
        allow: packages, modules and classes that trials may use in addition to the listed ones.

    Returns:
        Whether all trials are done.

    Examples:
        >>> import tempfile
        >>> from likewise.protocols import pack_study
        >>> pack = tempfile.mkdtemp() + "/pack"
        >>> pack_study(tempfile.mkdtemp(), pack)
        0
        >>> execute_pack(pack)
        0 done, 0 failed, 0 missing
        True
    """
    execution = Execution(workers, per_gpu, minutes=minutes, allow=tuple(allow), places=places or {})
    folder = Path(pack)
    metric = str(read_pack(folder)["metric"])  # raises an error before a table is created
    study = Study(folder / STUDY_DATABASE)
    last = ""

    def show(states: Sequence[TrialState], _running: Mapping[str, str]) -> None:
        nonlocal last
        counts = Counter(each.state for each in states)
        text = f"{counts['done'] + counts['pruned']} done, {counts['failed']} failed, {counts['missing']} missing"
        if text != last and not is_quiet():
            print(text, flush=True)
        last = text

    with hold_table(study):
        run_trials(folder, study, execution, metric=metric, plan=plan, watch=show)
    return not study.missing()


def main(words: Sequence[str] | None = None) -> int:
    """Run ``python -m likewise.app.execute``.

    Returns:
        The exit code: 0; 1 if a trial failed or none can run; 2 for an error of the user; 130 after Ctrl-C.

    Examples:
        >>> main(["nowhere"])
        2
    """
    parser = argparse.ArgumentParser("python -m likewise.app.execute", description="Run the missing trials of a pack.")
    parser.add_argument("pack", metavar="PACK", type=Path, help="the folder written by likewise study pack")
    parser.add_argument("--minutes", metavar="M", type=float, help="stop after M minutes")
    parser.add_argument("--workers", metavar="N", type=int, help="trials at once (default: as many as fit)")
    parser.add_argument("--per-gpu", metavar="N", type=int, default=1, help="trials that share a GPU (default: 1)")
    parser.add_argument(
        "--place",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help=f"where something is on this machine: {', '.join(WHERE_THINGS_ARE)}",
    )
    parser.add_argument(
        "--allow",
        metavar="PACKAGE",
        action="append",
        default=[],
        help="import this package if a trial uses its classes",
    )
    parser.add_argument("--quiet", action="store_true", help="hide progress")
    options = parser.parse_args(words)
    try:
        with quiet() if options.quiet else nullcontext():
            execute_pack(
                options.pack,
                minutes=options.minutes,
                workers=options.workers,
                per_gpu=options.per_gpu,
                places=_parse_places(options.place),
                allow=options.allow,
            )
    except (OSError, ValueError, UserError) as error:
        print(error, file=sys.stderr)
        return 2
    except ExecutorBroken as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 1 if Study(options.pack / STUDY_DATABASE).counts()["failed"] else 0


def _parse_places(texts: Sequence[str]) -> dict[str, str]:
    places = dict(each.partition("=")[::2] for each in texts)
    for name in places:
        if name not in WHERE_THINGS_ARE:
            raise UserError(f"--place must be one of {', '.join(WHERE_THINGS_ARE)}, but it is {name}")
    return places


if __name__ == "__main__":
    sys.exit(main())
