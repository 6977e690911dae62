"""The table of a study in its folder, with the tables of its shards: open, hold, view and begin it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from likewise.app.errors import UserError, sentence
from likewise.app.execution import hold_table
from likewise.app.study_file import StudyFile
from likewise.app.study_io import write_study
from likewise.protocols import STUDY_DATABASE, Study, in_shard


def open_study(folder: Path) -> Study:
    """The table of a study, with the results of its shards unless a running driver holds and merges them.

    Examples:
        >>> import tempfile
        >>> open_study(Path(tempfile.mkdtemp())).counts()["missing"]
        0
    """
    study = _open_folder(folder)
    if _shards(folder):
        with suppress(RuntimeError), study.driving():
            _merge_shards(folder, study)
    return study


@contextmanager
def drive_study(folder: Path) -> Iterator[Study]:
    """Lock the table of a study, with the results of its shards; a second driver is refused before it changes any.

    Examples:
        >>> import tempfile
        >>> with drive_study(Path(tempfile.mkdtemp())) as study:
        ...     study.counts()["done"]
        0
    """
    study = _open_folder(folder)
    with hold_table(study):
        _merge_shards(folder, study)
        yield study


@contextmanager
def view_study(folder: Path) -> Iterator[Study]:
    """A copy of the table of a study, with the results of its shards; the study is not changed.

    Examples:
        >>> import tempfile
        >>> with view_study(Path(tempfile.mkdtemp())) as study:
        ...     study.results()
        []
    """
    with TemporaryDirectory() as scratch:
        copied = Path(scratch) / STUDY_DATABASE
        _refuse_older(folder)
        if (folder / STUDY_DATABASE).exists():
            study = open_table(folder / STUDY_DATABASE).copy(copied)
        else:
            study = open_table(copied)
        _merge_shards(folder, study)
        yield study


def open_table(file: Path) -> Study:
    """The table in a file.

    Examples:
        >>> open_table(Path("/dev/null/study.db"))
        Traceback (most recent call last):
        likewise.app.errors.UserError: /dev/null: ...
    """
    try:
        return Study(file)
    except (OSError, ValueError) as error:
        raise UserError(sentence(error)) from error


def _open_folder(folder: Path) -> Study:
    _refuse_older(folder)
    return open_table(folder / STUDY_DATABASE)


def _refuse_older(folder: Path) -> None:
    if not (folder / STUDY_DATABASE).exists() and (folder / "board" / "trials.jsonl").exists():
        raise UserError(f"{folder} is a study of an earlier version, which cannot be read: choose another --out")


def _shards(folder: Path) -> list[Path]:
    return sorted(folder.glob("study-*-of-*.db"))


def _merge_shards(folder: Path, study: Study) -> None:
    """Add the results of shards, except failures of trials in this table, which can be retried here."""
    known = {trial.key for trial in study.trials()}
    for file in _shards(folder):
        study.merge(open_table(file), take=lambda result: result.status != "failed" or result.key not in known)


@contextmanager
def begin_study(folder: Path, study: StudyFile, shard: tuple[int, int] | None = None) -> Iterator[Study]:
    """Write the file of a study, lock its table, and add its trials.

    An existing study is continued; failed trials are retried, because the cause may be fixed.

    Args:
        folder: the folder of the study.
        study: the content of the study.
        shard: the shard, whose trials are in a separate table: its number and the number of shards.

    Examples:
        >>> import tempfile
        >>> study = StudyFile("one", methods={"circle": {"loss": "CircleLoss"}}, base={"data": "Glyphs"})
        >>> with begin_study(Path(tempfile.mkdtemp()), study) as table:
        ...     len(table.missing())
        1
    """
    trials = study.trials()  # errors are raised before a folder is created
    write_study(folder, study)
    with ExitStack() as stack:
        if shard is None:
            table = stack.enter_context(drive_study(folder))
        else:
            table = stack.enter_context(drive_shard(folder, shard))
            done = _find_done(folder)
            trials = [trial for trial in trials if in_shard(trial.key, shard) and trial.key not in done]
        known = {trial.upgrade().key for trial in table.trials()}  # trials of older schemas have different keys
        table.add([trial for trial in trials if trial.key not in known])
        table.retry([result.key for result in table.results() if result.status == "failed"])
        yield table


@contextmanager
def drive_shard(folder: Path, shard: tuple[int, int]) -> Iterator[Study]:
    """Lock the table of a shard.

    Examples:
        >>> import tempfile
        >>> with drive_shard(Path(tempfile.mkdtemp()), (1, 8)) as study:
        ...     study.file.name
        'study-1-of-8.db'
    """
    table = open_table(shard_file(folder, shard))
    with hold_table(table):
        yield table


def _find_done(folder: Path) -> set[str]:
    """The keys of the trials of a study's table that are done."""
    file = folder / STUDY_DATABASE
    return {each.key for each in open_table(file).results() if each.status == "done"} if file.exists() else set()


def shard_file(folder: Path, shard: tuple[int, int]) -> Path:
    """The table of a shard.

    Examples:
        >>> shard_file(Path("birds"), (3, 8)).name
        'study-3-of-8.db'
    """
    return folder / f"study-{shard[0]}-of-{shard[1]}.db"
