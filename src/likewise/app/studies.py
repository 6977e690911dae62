"""Run studies: a tournament of methods, the repeats of one method, or a search."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from likewise.app.configuration import check
from likewise.app.defaults import Tree
from likewise.app.errors import UserError, require_package
from likewise.app.execution import Execution, Watch, run_trials
from likewise.app.search_space import check_search, default_rounds, make_search, parse_search, resolve_space
from likewise.app.study_file import StudyFile
from likewise.app.study_io import find_presets, make_study, read_study, write_study
from likewise.app.study_recipes import leave_to_protocol, protocol_of
from likewise.app.study_report import StudyReport, conclude_search, conclude_study
from likewise.app.study_table import begin_study, drive_study
from likewise.protocols import Bayesian, Study, history, is_over, plan
from likewise.schema import SCHEMA

OnStart: TypeAlias = Callable[[StudyFile, Path, Study], object]
"""Called with the study, its folder and its table before the first training."""


def run_study(
    study: StudyFile | Mapping[str, Any] | str | os.PathLike[str],
    folder: str | os.PathLike[str] | None = None,
    *,
    execution: Execution | None = None,
    allow_unfair: bool = False,
    on_start: OnStart | None = None,
    watch: Watch | None = None,
) -> StudyReport:
    """Run the missing trials of a study, and rank its methods; call it again to continue a study.

    Args:
        study: a YAML file, the folder of a study, a preset (``"tiny"``, ``"smoke"``), or the content of the file: a
            `StudyFile`, or a dict with its keys, of the current schema unless it has a ``schema``.
        folder: output folder; by default ``studies/NAME``, or the folder given as the study.
        execution: where trials run, how many at once and for how long; ``workers=0`` only plans.
        allow_unfair: rank methods that differ in more than the method.
        on_start: called with the study, its folder and its table before the first training.
        watch: called twice a second with the states of all trials.

    Raises:
        KeyboardInterrupt: the run was interrupted; results and checkpoints are stored.

    Examples:
        >>> import tempfile
        >>> study = {"base": {"data": "Glyphs"}, "methods": {"circle": {"loss": "CircleLoss"}}, "seeds": [0, 1]}
        >>> report = run_study(study, tempfile.mkdtemp() + "/study", execution=Execution(workers=0))
        >>> report.counts["missing"], report.is_finished
        (2, False)
    """
    execution = execution or Execution()
    content, place = _load(study, folder, execution.allow)
    content = replace(content, allow=execution.allow)
    if content.search is not None:
        return _run_search(content, place, execution, on_start, watch)
    if len(content.methods) > 1:
        require_package("scipy", "study", "a comparison of methods")
    with begin_study(place, content, execution.shard) as trials:
        if on_start is not None:
            on_start(content, place, trials)
        run_trials(place, trials, execution, metric=content.metric, watch=watch)
        counts = trials.counts()
        if execution.shard is not None or (execution.minutes is not None and counts["missing"]):
            return StudyReport(content, place, counts, tuple(trials.results()))
        return conclude_study(content, place, trials, allow_unfair=allow_unfair)


def repeat(
    config: Tree,
    folder: str | os.PathLike[str] | None = None,
    *,
    seeds: int = 5,
    name: str | None = None,
    protocol: str | Tree | None = None,
    execution: Execution | None = None,
    on_start: OnStart | None = None,
    watch: Watch | None = None,
) -> StudyReport:
    """Train one method with several seeds, and measure each on the test set: mean and interval.

    Args:
        config: a configuration, as `configure` returns it; its seed is the first one.
        folder: output folder; by default ``studies/repeat-NAME``.
        seeds: number of seeds.
        name: name of the method; by default that of its loss.
        protocol: how classes are held out, instead of the configuration's split: see `likewise.protocols.PROTOCOLS`;
            by default that split.
        execution: where trials run, how many at once and for how long; ``workers=0`` only plans.
        on_start: called with the study, its folder and its table before the first training.
        watch: called twice a second with the states of all trials.

    Examples:
        >>> import tempfile
        >>> from likewise import app
        >>> config = app.configure({"data": "Glyphs", "loss": "CircleLoss"})
        >>> report = repeat(config, tempfile.mkdtemp() + "/repeat", seeds=3, execution=Execution(workers=0))
        >>> report.study.name, report.counts["missing"]
        ('repeat-circle', 3)
    """
    if seeds < 1:
        raise UserError(f"--seeds must be a whole number ≥ 1, but it is {seeds}")
    execution = execution or Execution()
    config = check(config, execution.allow)
    method = name or _loss_name(config)
    study = StudyFile(
        f"repeat-{method}",
        what=f"{method} with {seeds} seeds",
        base={**leave_to_protocol(config), "out": None},
        methods={method: {}},
        seeds=list(range(config["seed"], config["seed"] + seeds)),
        protocol=protocol_of(config["split"]) if protocol is None else protocol,
        allow=execution.allow,
    )
    return run_study(study, folder, execution=execution, on_start=on_start, watch=watch)


def tune(
    config: Tree,
    folder: str | os.PathLike[str] | None = None,
    *,
    rounds: int | None = None,
    how: str = "bayesian",
    search: Sequence[str] | None = None,
    at_once: int | None = None,
    name: str | None = None,
    protocol: str | Tree | None = None,
    execution: Execution | None = None,
    on_start: OnStart | None = None,
    watch: Watch | None = None,
) -> StudyReport:
    """Search hyper-parameters on validation classes; the test set stays sealed.

    A trial is scored by its best trained epoch, never by the model before training.  The best configuration is in the
    report, and in ``best.yaml``.  A folder holds one search: more rounds can be added, but another space or method is refused.

    Args:
        config: a configuration, as `configure` returns it.
        folder: output folder; by default ``studies/tune-NAME``.
        rounds: number of settings to try; by default 50, or the whole grid of the thesis.
        how: ``"bayesian"``, ``"random"``, ``"grid"`` (one setting after the other), or ``"thesis-grid"``, the same with the
            settings and values of the thesis' table 15.
        search: paths to search, with their ranges if they have no declared one: ``["loss.alpha",
            "optimizer.lr=1e-5:1e-2:log", "loss.margin=0:1:0.1"]``; by default all that the loss and its miner declare, and learning rates.
        at_once: number of settings proposed together; by default as many as run at once.
        name: name of the method; by default that of its loss.
        protocol: how classes are held out, instead of the configuration's split: see `likewise.protocols.PROTOCOLS`;
            by default that split.
        execution: where trials run, how many at once and for how long; ``workers=0`` only plans.
        on_start: called with the study, its folder and its table before the first training.
        watch: called twice a second with the states of all trials.

    Examples:
        >>> import tempfile
        >>> from likewise import app
        >>> config = app.configure({"data": "Glyphs", "loss": "CircleLoss"})
        >>> only_plan = Execution(workers=0)
        >>> report = tune(config, tempfile.mkdtemp() + "/tune", how="random", rounds=4, at_once=2, execution=only_plan)
        >>> report.counts["missing"], list(report.tried[0].point)
        (2, ['loss.margin', 'loss.gamma', 'optimizer.lr'])
    """
    execution = execution or Execution()
    config = check(config, execution.allow)
    method = name or _loss_name(config)
    ranges = None if search is None else parse_search(search)
    space = resolve_space(config, ranges, how=how)
    options: Tree = {"space": ranges or dict.fromkeys(space), "how": how}
    options["rounds"] = default_rounds(space, how) if rounds is None else rounds
    study = StudyFile(
        f"tune-{method}",
        base={**leave_to_protocol(config), "out": None},
        methods={method: {}},
        seeds=[config["seed"]],
        protocol=protocol_of(config["split"]) if protocol is None else protocol,
        search=options | ({} if at_once is None else {"at_once": at_once}),
        allow=execution.allow,
    )
    return run_study(study, folder, execution=execution, on_start=on_start, watch=watch)


def _run_search(
    study: StudyFile, folder: Path, execution: Execution, on_start: OnStart | None, watch: Watch | None
) -> StudyReport:
    if execution.shard is not None:
        raise UserError("--shard cannot be used with a search: its next settings depend on all results")
    study.trials()  # refuses settings that conflict with the protocol
    search = make_search(study, execution)
    if isinstance(search.how, Bayesian):
        require_package("optuna", "study", "a Bayesian search")
    write_study(folder, study)
    with drive_study(folder) as trials:
        check_search(search, trials, folder)
        if on_start is not None:
            on_start(study, folder, trials)
        trials.retry()  # the plan cancels trials again that another fold makes useless
        run_trials(folder, trials, execution, metric=study.metric, plan=lambda: plan(search, trials), watch=watch)
        if is_over(search, trials):
            return conclude_search(study, folder, trials, search)
        return StudyReport(
            study, folder, trials.counts(), tuple(trials.results()), tried=tuple(history(search, trials))
        )


def _load(
    study: StudyFile | Mapping[str, Any] | str | os.PathLike[str],
    folder: str | os.PathLike[str] | None,
    allow: Collection[str],
) -> tuple[StudyFile, Path]:
    """The content of a study, and its folder."""
    if isinstance(study, str) and study in find_presets() and not Path(study).exists():
        study = find_presets()[study]
    if isinstance(study, StudyFile):
        content = study
    elif isinstance(study, Mapping):
        try:
            content = make_study({"schema": SCHEMA, **study}, allow=allow)
        except UserError as error:
            raise UserError(f"the study {error}" if str(error).startswith("must") else str(error)) from error
    else:
        content = read_study(study, allow=allow)
        if folder is None and Path(study).is_dir():
            folder = study
    return content, Path("studies", content.name) if folder is None else Path(folder)


def _loss_name(config: Tree) -> str:
    return str(config["loss"]["class_path"]).rpartition(".")[2].removesuffix("Loss").lower()
