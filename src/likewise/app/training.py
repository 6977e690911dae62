"""Train from a configuration, and resume a run."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TypeAlias

from likewise.app.build import Machine, Pieces, fit_batches, make_pieces, make_settings, this_machine
from likewise.app.configuration import check
from likewise.app.defaults import PHOTOGRAPHS, Tree
from likewise.app.errors import EXPECTED, UserError, ours, sentence
from likewise.app.parts import read_parts
from likewise.app.runs import check_out, open_run
from likewise.app.trust import check_names
from likewise.train import Collapsed, NotFinite, Run

OnStart: TypeAlias = Callable[[Pieces, str], None]


def train(
    config: Tree,
    folder: str | Path | None = None,
    *,
    machine: Machine | None = None,
    shrink_batches: bool = True,
    on_start: OnStart | None = None,
    allow: Collection[str] = (),
) -> Run:
    """Train what a configuration describes, and write the report.

    Args:
        config: a complete configuration, as `configure` returns it.
        folder: the run's folder; by default the configuration's ``out``, or ``runs/DATA-TRUNK-LOSS-NUMBER``.
        machine: the device; by default the one that Accelerate chooses.
        shrink_batches: reduce the classes per batch of a `likewise.data.PerClassSampler` to those of the data set, with a note.
        on_start: called with the objects of the training and the run's folder before the first step.
        allow: packages, modules and classes that the configuration may use in addition to the listed ones.

    Returns:
        The finished run.

    Examples:
        >>> from likewise import app
        >>> train(app.configure({"data": "Glyphs", "optimizer.lr": -1.0}))
        Traceback (most recent call last):
        likewise.app.errors.UserError: --optimizer: lr must be a number > 0, but it is -1.0
    """
    check_names(config, allow)
    make_settings(config)  # errors are raised before data are read
    check_out(folder or config["out"])
    machine = this_machine() if machine is None else machine
    parts = read_parts(config["data"], config["split"])
    if config["sampler"]["class_path"].endswith(".PerClassSampler") and int(parts.seen.labels.bincount().max()) < 2:
        raise UserError(f"{parts.seen.name}: every class has only one image, but training needs two")
    if shrink_batches:
        config = fit_batches(config, parts, machine)
    pieces = make_pieces(config, machine, parts)
    chosen = _agree(str(folder or config["out"] or _find_folder(config, pieces)), machine)
    return _train(pieces, config, chosen, machine, on_start, resume=False)


def resume(
    folder: str | Path,
    *,
    machine: Machine | None = None,
    on_start: OnStart | None = None,
    allow: Collection[str] = (),
    allow_changes: bool = False,
) -> Run:
    """Resume a run from its last checkpoint, and write the report; a finished run that has a report is unchanged.

    The data, the loss and everything else in the run's description must be unchanged.

    Args:
        folder: the run's folder.
        machine: the device; by default the one that Accelerate chooses.
        on_start: called with the objects of the training and the run's folder before the first step.
        allow: packages, modules and classes that the run may use in addition to the listed ones; permissions in the run's
            files are ignored.
        allow_changes: continue even if something differs from the run's description, with a warning.

    Examples:
        >>> resume("nowhere")
        Traceback (most recent call last):
        likewise.app.errors.UserError: nowhere must be the folder of a run, but it has no run.yaml
    """
    run = open_run(Path(folder))
    machine = this_machine() if machine is None else machine
    if run.finished:
        _write_missing_report(run, machine, allow)
        return run
    config = config_of(run, allow)
    pieces = make_pieces(config, machine)
    return _train(pieces, config, str(folder), machine, on_start, resume=True, allow_changes=allow_changes)


def config_of(run: Run, allow: Collection[str] = ()) -> Tree:
    """The configuration of a run; classes that it names are imported only if they are listed or allowed now.

    Examples:
        >>> import tempfile
        >>> config_of(Run.create(tempfile.mkdtemp() + "/run", {"config": {"data": "Glyphs", "loss": "CircleLoss"}}))[
        ...     "seed"
        ... ]
        0
    """
    return check(_stored_config(run), allow)


MEASURED = ("schema", "data", "split", "transform", "train", "seed", "cache", "cache_on")
"""The parts of a configuration that an evaluation needs."""


def evaluation_config_of(run: Run, allow: Collection[str] = ()) -> Tree:
    """The parts of a run's configuration that an evaluation needs; classes used only in training are not imported.

    Examples:
        >>> import tempfile
        >>> config = {"schema": 2, "data": "Glyphs", "transform": "glyphs", "loss": {"class_path": "not_here.Loss"}}
        >>> evaluation_config_of(Run.create(tempfile.mkdtemp() + "/run", {"config": config}))["transform"]
        'glyphs'
    """
    stored = _stored_config(run)
    return check({**{key: stored[key] for key in MEASURED if key in stored}, "loss": PHOTOGRAPHS["loss"]}, allow)


def _stored_config(run: Run) -> Tree:
    config = run.description.get("config")
    if not isinstance(config, dict):
        raise UserError(
            f"{run.folder} was not trained by `likewise train`: its run.yaml has no config that describes its data"
        )
    return config


def _write_missing_report(run: Run, machine: Machine, allow: Collection[str]) -> None:
    """Write the report of a run whose report is missing or older than its record: the process was killed before writing it."""
    has_model = any((run.folder / f"{name}.safetensors").exists() for name in ("best", "model"))
    page, record = run.folder / "report.html", run.folder / "metrics.jsonl"
    is_new = page.exists() and record.exists() and page.stat().st_mtime_ns >= record.stat().st_mtime_ns
    if machine.main and has_model and not is_new:
        from likewise.app.evaluation import report_on  # the report needs packages that a training does not

        report_on(run, evaluation_config_of(run, allow), machine, test=None)


def _train(
    pieces: Pieces,
    config: Tree,
    folder: str,
    machine: Machine,
    on_start: OnStart | None,
    *,
    resume: bool,
    allow_changes: bool = False,
) -> Run:
    from likewise.app.evaluation import report_on  # the report needs packages that a training does not

    if on_start is not None:
        on_start(pieces, folder)
    finished = _train_guarded(pieces, config, folder, machine, resume, allow_changes)
    if machine.main:
        report_on(finished, config, machine, test=None)
    return finished


def _train_guarded(
    pieces: Pieces, config: Tree, folder: str, machine: Machine, resume: bool, allow_changes: bool
) -> Run:
    """Train; errors that the library raises before the first measurement become user errors."""
    before = _count_measured(folder)
    try:
        return pieces.train(folder, config, machine, resume=resume, allow_changes=allow_changes)
    except (*EXPECTED, RuntimeError) as error:
        if _count_measured(folder) <= before and ours(error) and not isinstance(error, NotFinite | Collapsed):
            problem = sentence(error)
            raise UserError(problem if problem.startswith("the training ") else f"the training: {problem}") from error
        raise


def _count_measured(folder: str) -> int:
    file = Path(folder, "metrics.jsonl")
    return file.stat().st_size if file.exists() else 0


def _find_folder(config: Tree, pieces: Pieces) -> str:
    """``runs/DATA-TRUNK-LOSS-NUMBER``, with the first unused number."""
    loss = config["loss"]["class_path"].rpartition(".")[2].removesuffix("Loss")
    name = "-".join(_simplify(each) for each in (pieces.name, config["model"]["trunk"], loss))
    number = 1
    while Path("runs", f"{name}-{number}").exists():
        number += 1
    return f"runs/{name}-{number}"


def _simplify(text: str) -> str:
    return re.sub(r"[^a-z0-9._]+", "-", text.lower()).strip("-.") or "images"


def _agree(folder: str, machine: Machine) -> str:
    """The folder that the first process chose."""
    if machine.processes == 1:
        return folder
    from accelerate.utils import broadcast_object_list

    return str(broadcast_object_list([folder])[0])
