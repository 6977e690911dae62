"""Run planned trials, pack a study for another machine, merge results, and export the table."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from likewise import protocols
from likewise.app.errors import UserError, sentence
from likewise.app.execution import Execution, Watch, run_trials
from likewise.app.study_io import STUDY_FILE, read_study
from likewise.app.study_report import write_results
from likewise.app.study_table import drive_shard, drive_study, open_study, view_study
from likewise.protocols import in_shard, table


def run_planned(
    folder: str | os.PathLike[str],
    *,
    execution: Execution | None = None,
    watch: Watch | None = None,
) -> Mapping[str, int]:
    """Run the missing trials in the table of a study, without adding any: for studies planned by a program.

    Args:
        folder: the folder of the study.
        execution: where trials run, how many at once and for how long.
        watch: called twice a second with the states of all trials.

    Returns:
        Number of trials in each state.

    Examples:
        >>> run_planned("nowhere")
        Traceback (most recent call last):
        likewise.app.errors.UserError: there is no study nowhere/study.yaml
    """
    place, execution = Path(folder), execution or Execution()
    shard = execution.shard
    study = read_study(place / STUDY_FILE)
    with ExitStack() as stack:
        if shard is None:
            trials = stack.enter_context(drive_study(place))
        else:
            missing = open_study(place).missing()
            trials = stack.enter_context(drive_shard(place, shard))
            trials.add([trial for trial in missing if in_shard(trial.key, shard)])
        run_trials(place, trials, execution, metric=study.metric, watch=watch)
        return trials.counts()


def pack_study(folder: str | os.PathLike[str], pack: str | os.PathLike[str]) -> int:
    """Copy the files that another machine needs to run the missing trials of a study: the table and started runs.

    Data and weights are not copied.  `execute_pack` runs the trials there, and `merge_study` adds the results here.

    Args:
        folder: the folder of the study.
        pack: the folder to create; it must not exist.

    Returns:
        The number of missing trials.

    Examples:
        >>> import tempfile
        >>> from likewise import app
        >>> folder = tempfile.mkdtemp() + "/tiny"
        >>> _ = app.run_study("tiny", folder, execution=app.Execution(workers=0))
        >>> pack_study(folder, folder + "-pack")
        4
    """
    study = read_study(Path(folder) / STUDY_FILE)
    with drive_study(Path(folder)):
        try:
            return protocols.pack_study(folder, pack, metric=study.metric)
        except OSError as error:
            raise UserError(sentence(error)) from error


def merge_study(folder: str | os.PathLike[str], *packs: str | os.PathLike[str]) -> dict[str, int]:
    """Add the results and runs of packs, or of copies of a study, and those of its shards, to the study.

    Args:
        folder: the folder of the study.
        packs: folders of packs, or of copies of the study.

    Returns:
        The number of new results of each pack.

    Examples:
        >>> import tempfile
        >>> from likewise import app
        >>> folder = tempfile.mkdtemp() + "/tiny"
        >>> _ = app.run_study("tiny", folder, execution=app.Execution(workers=0))
        >>> merge_study(folder)
        {}
    """
    read_study(Path(folder) / STUDY_FILE)
    with drive_study(Path(folder)):
        try:
            return {str(pack): len(protocols.merge_study(folder, pack)) for pack in packs}
        except (OSError, ValueError) as error:
            raise UserError(sentence(error)) from error


def export_study(folder: str | os.PathLike[str]) -> Path:
    """Write ``results.csv``, and ``results.parquet`` if pyarrow is installed.

    Args:
        folder: the folder of the study.

    Returns:
        The CSV file.

    Examples:
        >>> import tempfile
        >>> from likewise import app
        >>> folder = tempfile.mkdtemp() + "/tiny"
        >>> _ = app.run_study("tiny", folder, execution=app.Execution(workers=0))
        >>> export_study(folder).name
        'results.csv'
    """
    read_study(Path(folder) / STUDY_FILE)
    with view_study(Path(folder)) as study:
        write_results(Path(folder), table(study.results()))
    return Path(folder) / "results.csv"
