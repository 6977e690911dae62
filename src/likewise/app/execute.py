"""``python -m likewise.app.execute PACK``: run the missing trials of a study where there is nothing but torch and layers 1 and 2.

`likewise study pack` makes the pack, `likewise study merge` brings its results home.  No parser, no Optuna and no Ray is
imported here or in the processes that train.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from likewise.app.trials import WHERE_THINGS_ARE, run_trial
from likewise.protocols import (
    STUDY_DATABASE,
    ExecutorBroken,
    LocalExecutor,
    Study,
    interruptible,
    read_pack,
    reporter,
    run_missing,
)


def execute(
    pack: str | os.PathLike[str],
    *,
    seconds: float = math.inf,
    workers: int | None = None,
    per_gpu: int = 1,
    places: Mapping[str, str] | None = None,
    plan: Callable[[], object] | None = None,
) -> bool:
    """Run the missing trials of a pack in processes of this machine.

    Args:
        pack: its folder; results and runs are written there.
        seconds: after so many, trials that run write a checkpoint and stop, which may take a minute more.
        workers: how many trials at once; by default as many as fit.
        per_gpu: how many trials share a GPU.
        places: where things are on this machine, such as ``{"data.root": "/data/birds"}``; the trials stay the same.
        plan: adds trials and cancels them: see `likewise.protocols.run_missing`.

    Returns:
        Whether nothing is missing.

    Examples:
        >>> import tempfile
        >>> from likewise.protocols import pack_study
        >>> pack = tempfile.mkdtemp() + "/pack"
        >>> pack_study(tempfile.mkdtemp(), pack)
        0
        >>> execute(pack)
        0 done, 0 failed, 0 missing
        True
    """
    folder = Path(pack)
    metric = str(read_pack(folder)["metric"])  # refused before a table is made
    study = Study(folder / STUDY_DATABASE)
    run = partial(run_trial, folder=folder, metric=metric, places=dict(places or {}))
    last = ""

    def show(*_: object) -> None:
        nonlocal last
        counts = study.counts()
        text = f"{counts['done'] + counts['pruned']} done, {counts['failed']} failed, {counts['missing']} missing"
        if text != last:
            print(text, flush=True)
        last = text

    with study.driving(), interruptible():
        executor = LocalExecutor(run, reporter(study), workers=workers, per_gpu=per_gpu, logs=folder)
        try:
            return run_missing(study, executor, plan=plan, seconds=seconds, watch=show)
        finally:
            show()


def main(words: Sequence[str] | None = None) -> int:
    """The program.

    Examples:
        >>> main(["nowhere"])
        2
    """
    parser = argparse.ArgumentParser("python -m likewise.app.execute", description="Run the missing trials of a pack.")
    parser.add_argument("pack", metavar="PACK", type=Path, help="the folder that likewise study pack made")
    parser.add_argument("--minutes", metavar="M", type=float, default=math.inf, help="stop after so many")
    parser.add_argument("--workers", metavar="N", type=int, help="trials at once (default: as many as fit)")
    parser.add_argument("--per-gpu", metavar="N", type=int, default=1, help="trials that share a GPU (default: 1)")
    parser.add_argument(
        "--place",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help=f"where something is on this machine: {', '.join(WHERE_THINGS_ARE)}",
    )
    given = parser.parse_args(words)
    try:
        places = _places(given.place)
        options = {"workers": given.workers, "per_gpu": given.per_gpu, "places": places}
        execute(given.pack, seconds=60 * given.minutes, **options)
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    except ExecutorBroken as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 1 if Study(given.pack / STUDY_DATABASE).counts()["failed"] else 0


def _places(given: Sequence[str]) -> dict[str, str]:
    places = dict(each.partition("=")[::2] for each in given)
    for name in places:
        if name not in WHERE_THINGS_ARE:
            raise ValueError(f"--place must be one of {', '.join(WHERE_THINGS_ARE)}, but it is {name}")
    return places


if __name__ == "__main__":
    sys.exit(main())
