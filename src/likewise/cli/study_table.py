"""The table of a study in its folder, with those of its shards: who may change it, and who only reads."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from likewise.app import UserError, sentence
from likewise.cli.study import StudyFile, write_study
from likewise.protocols import STUDY_DATABASE, Result, Study, Trial, in_shard


def open_study(folder: Path) -> Study:
    """The table of a study, with the results of its shards unless a driver holds it, which has merged them itself."""
    study = _open_table(folder)
    if _shards(folder):
        with suppress(RuntimeError), study.driving():
            _merge_shards(folder, study)
    return study


@contextmanager
def drive_study(folder: Path) -> Iterator[Study]:
    """Hold the table of a study, with the results of its shards; a second driver is refused before it changes any."""
    study = _open_table(folder)
    with hold(study):
        _merge_shards(folder, study)
        yield study


@contextmanager
def view_study(folder: Path) -> Iterator[Study]:
    """A copy of the table of a study, with the results of its shards; the study stays as it is."""
    with TemporaryDirectory() as place:
        copied = Path(place) / STUDY_DATABASE
        if (folder / STUDY_DATABASE).exists():
            study = _table(folder / STUDY_DATABASE).copy(copied)
        else:
            study = _table(copied)
            _import_board(folder / "board", study)
        _merge_shards(folder, study)
        yield study


@contextmanager
def hold(study: Study) -> Iterator[None]:
    """Hold a table while this process changes it and runs its trials."""
    with ExitStack() as held:
        try:
            held.enter_context(study.driving())
        except RuntimeError as error:
            raise UserError(str(error)) from error
        yield


def _table(file: Path) -> Study:
    try:
        return Study(file)
    except (OSError, ValueError) as error:
        raise UserError(sentence(error)) from error


def _open_table(folder: Path) -> Study:
    is_new = not (folder / STUDY_DATABASE).exists()
    study = _table(folder / STUDY_DATABASE)
    if is_new:
        _import_board(folder / "board", study)
    return study


def _shards(folder: Path) -> list[Path]:
    return sorted(folder.glob("study-*-of-*.db"))


def _merge_shards(folder: Path, study: Study) -> None:
    """Take over what shards have; a trial that the table knows is not failed by them, for it may be tried again here."""
    known = {trial.key for trial in study.trials()}
    for file in _shards(folder):
        study.merge(_table(file), take=lambda result: result.status != "failed" or result.key not in known)


def _import_board(board: Path, study: Study) -> None:
    """Take over the trials and results of a study that an earlier version began, from its folder of small files."""
    if not (board / "trials.jsonl").exists():
        return
    lines = (board / "trials.jsonl").read_text(encoding="utf-8").splitlines()
    study.add([Trial.from_dict(said) for line in lines if line for said in json.loads(line)])
    for file in sorted((board / "results").glob("*.json")):
        study.finish(Result.from_dict(json.loads(file.read_text(encoding="utf-8"))))


@contextmanager
def begin(folder: Path, study: StudyFile, shard: tuple[int, int] | None = None) -> Iterator[Study]:
    """Write the study down, hold its table, and add its trials.

    A study that was begun before is continued; what failed is tried again, because the cause may be mended by now.

    Args:
        folder: of the study.
        study: what it says.
        shard: the part of the trials that goes to a separate table: its number and the number of parts.
    """
    trials = study.trials()  # whatever is refused is refused before there is a folder
    write_study(folder, study)
    with ExitStack() as held:
        if shard is None:
            table = held.enter_context(drive_study(folder))
        else:
            whole = folder / STUDY_DATABASE
            there = {each.key for each in _table(whole).results() if each.status == "done"} if whole.exists() else set()
            trials = [trial for trial in trials if in_shard(trial.key, shard) and trial.key not in there]
            table = _table(shard_file(folder, shard))
            held.enter_context(hold(table))
        there = {trial.upgrade().key for trial in table.trials()}  # a trial of an older schema has the key of that one
        table.add([trial for trial in trials if trial.key not in there])
        table.retry([result.key for result in table.results() if result.status == "failed"])
        yield table


def shard_file(folder: Path, shard: tuple[int, int]) -> Path:
    """The table of a shard.

    Examples:
        >>> shard_file(Path("birds"), (3, 8)).name
        'study-3-of-8.db'
    """
    return folder / f"study-{shard[0]}-of-{shard[1]}.db"
