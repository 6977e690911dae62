"""Pack the missing trials of a study for another machine, and merge the results."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from likewise.protocols.study import STUDY_DATABASE, Study
from likewise.protocols.trial import Result
from likewise.train import Run

PACK_FILE = "pack.json"
"""The file that describes a pack."""


def pack_study(folder: str | os.PathLike[str], pack: str | os.PathLike[str], *, metric: str = "MAP@R") -> int:
    """Copy the files that another machine needs to run the missing trials of a study: its table and unfinished runs.

    Data and weights are not copied.

    Args:
        folder: the folder of the study.
        pack: the folder to create; it must not exist.
        metric: the validation metric that trials report.

    Returns:
        The number of missing trials.

    Examples:
        >>> import tempfile
        >>> from likewise.protocols.trial import Trial
        >>> here = tempfile.mkdtemp()
        >>> _ = Study(f"{here}/study.db").add([Trial("contrastive", {})])
        >>> pack_study(here, f"{here}/pack"), read_pack(f"{here}/pack")["metric"]
        (1, 'MAP@R')
    """
    place = Path(pack)
    if place.exists():
        raise FileExistsError(f"pack must be a folder that does not exist, but {place} does")
    study = Study(Path(folder) / STUDY_DATABASE)
    part = place.with_name(f"{place.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    study.copy(part / STUDY_DATABASE)
    missing = [trial.key for trial in study.missing()]
    _copy_runs(Path(folder), part, missing)
    content = {"metric": metric, "trials": [trial.key for trial in study.trials()]}
    (part / PACK_FILE).write_text(json.dumps(content), encoding="utf-8")
    part.rename(place)
    return len(missing)


def read_pack(pack: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the description of a pack.

    Examples:
        >>> read_pack("nowhere")
        Traceback (most recent call last):
        FileNotFoundError: pack must be a folder that `likewise study pack` made, but nowhere is not
    """
    try:
        content: dict[str, Any] = json.loads((Path(pack) / PACK_FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileNotFoundError(f"pack must be a folder that `likewise study pack` made, but {pack} is not") from None
    return content


def merge_study(folder: str | os.PathLike[str], other: str | os.PathLike[str]) -> list[str]:
    """Merge the results and runs of a pack, or of a copy of a study, into the study.

    Existing results are kept, unless they are failures.  A failure in the pack does not end a trial that has been started in
    the study.  Runs of trials that are missing in both are copied if their checkpoints are more recent.

    Args:
        folder: the folder of the study.
        other: the pack.

    Returns:
        The keys of the trials with new results.

    Examples:
        >>> import tempfile
        >>> from likewise.protocols.trial import Result, Trial
        >>> here, there = tempfile.mkdtemp(), tempfile.mkdtemp()
        >>> [trial] = Study(f"{there}/study.db").add([Trial("contrastive", {})])
        >>> _ = Study(f"{there}/study.db").finish(Result(trial))
        >>> merge_study(here, there) == [trial.key]
        True
    """
    if not (Path(other) / STUDY_DATABASE).exists():
        raise FileNotFoundError(f"other must be a pack or a study, but {other} has no {STUDY_DATABASE}")
    home, away = Study(Path(folder) / STUDY_DATABASE), Study(Path(other) / STUDY_DATABASE)
    _check_same_study(home, away, Path(other))
    home.add(away.trials())
    here = {result.key: result.status for result in home.results()}
    started = {trial.key for trial in home.missing() if _run_of(folder, trial.key).exists()}

    def take(result: Result) -> bool:
        if result.status == "failed":
            return result.key not in here and result.key not in started
        return here.get(result.key, "failed") == "failed"

    brought = {result.key for result in away.results() if take(result)}
    unfinished = {trial.key for trial in home.missing()} & {trial.key for trial in away.missing()}
    further = {key for key in unfinished if key not in started or _step(other, key) > _step(folder, key)}
    _copy_runs(Path(other), Path(folder), brought | further)  # before their results, which name the runs
    return home.merge(away, take=take)


def _check_same_study(home: Study, away: Study, other: Path) -> None:
    """Raise an error for the pack of another study, which lists other trials."""
    here, there = {trial.key for trial in home.trials()}, {trial.key for trial in away.trials()}
    packed = set(read_pack(other).get("trials", ())) if (other / PACK_FILE).exists() else set()
    alike = packed <= here if packed else not there or here & there
    if here and not alike:
        raise ValueError(f"other must be a pack or a copy of this study, but {other} has the trials of another one")


def _run_of(folder: str | os.PathLike[str], key: str) -> Path:
    return Path(folder) / "runs" / key


def _step(folder: str | os.PathLike[str], key: str) -> int:
    """Return the step of the checkpoint of a trial; -1 without one."""
    try:
        step = Run(_run_of(folder, key)).checkpoint_step
    except FileNotFoundError:
        step = None
    return -1 if step is None else step


def _copy_runs(source: Path, to: Path, keys: Iterable[str]) -> None:
    for key in keys:
        run, copy = _run_of(source, key), _run_of(to, key)
        if run.exists():
            part = copy.with_name(f"{key}.part")
            shutil.rmtree(part, ignore_errors=True)
            shutil.copytree(run, part, ignore=_links)  # an untrusted pack could contain links to any file
            shutil.rmtree(copy, ignore_errors=True)
            part.rename(copy)


def _links(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if Path(folder, name).is_symlink()]
