"""The space of a search: what a loss declares, learning rates, and ranges that the user gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isclose
from typing import Any, TypeGuard

from torch import nn

from likewise.app.configuration import check
from likewise.app.defaults import Tree
from likewise.app.errors import EXPECTED, UserError, making, nearest
from likewise.app.execution import Execution
from likewise.app.objects import KINDS, import_class, make, needed
from likewise.app.study_file import StudyFile
from likewise.app.trust import foreign_names
from likewise.formula import hyperparameters
from likewise.protocols import (
    Bayesian,
    CoordinateGrid,
    Method,
    Point,
    Random,
    Range,
    Search,
    Space,
    Study,
    at_point,
    space_of,
    thesis_space,
)
from likewise.train import OptimizerConfig, parameter_groups

THESIS = "thesis-grid"
"""The search of the thesis' table 15: its values, one parameter after the other."""

METHODS: Mapping[str, Method] = {
    "bayesian": Bayesian(),
    "grid": CoordinateGrid(),
    "random": Random(),
    THESIS: CoordinateGrid(),
}
LOSS_RATE_PATH = "optimizer.lrs.loss"
LEARNING_RATE, LOSS_LEARNING_RATE = Range(1e-6, 1e-2, log=True), Range(1e-4, 1.0, log=True)
"""Learning rates that are searched: of the network, and of parameters of the loss, such as proxies."""


def make_search(study: StudyFile, execution: Execution | None = None) -> Search:
    """The search of a study.

    Args:
        study: with a search.
        execution: the number of concurrent trials, by default also the number of settings proposed together.

    Examples:
        >>> methods = {"circle": {"loss": "CircleLoss"}}
        >>> study = StudyFile("one", methods=methods, base={"data": "Glyphs"}, search={"rounds": 20})
        >>> search = make_search(study)
        >>> sorted(search.space), search.rounds
        (['loss.gamma', 'loss.margin', 'optimizer.lr'], 20)
    """
    options, folds = dict(study.search or {}), study.chosen_protocol().folds
    [method] = study.methods
    config = study.configuration(method)
    how = options.get("how", "bayesian")
    space = resolve_space(config, options.get("space"), how=how)
    if how == "grid":
        space = put_on_grid(config, space)
    begin = default_points(config, space) if how != THESIS else (start_on_grid(config, space),)
    chosen = CoordinateGrid(start=begin[0]) if how in ("grid", THESIS) and begin else METHODS[how]
    together = 1 if execution is None else max(1, execution.count() // len(folds))
    return Search(
        method,
        config,
        space,
        chosen,
        folds=folds,
        objective=study.metric,
        rounds=options.get("rounds") or default_rounds(space, how),
        at_once=options.get("at_once") or together,
        seed=config["seed"],
        begin=begin,
    )


def default_rounds(space: Space, how: str) -> int:
    """The number of settings that a search tries by default: 50, or the whole grid of the thesis.

    Examples:
        >>> default_rounds({"loss.margin": Range(0.0, 1.0, step=0.1)}, THESIS), default_rounds({}, "bayesian")
        (12, 50)
    """
    return 1 + sum(len(setting.grid()) for setting in space.values()) if how == THESIS else 50


def start_of(space: Space) -> dict[str, Any]:
    """The point of a space at which every setting has its default.

    Examples:
        >>> start_of({"loss.margin": Range(0.0, 1.0, default=0.1)})
        {'loss.margin': 0.1}
    """
    return {path: setting.start for path, setting in space.items()}


def start_on_grid(config: Tree, space: Space) -> dict[str, Any]:
    """The values of a configuration where they lie on the grids of a space, and the default of the grid where they do not.

    Examples:
        >>> config = {"loss": {"class_path": "likewise.losses.TripletLoss", "init_args": {"margin": 0.3}}}
        >>> grid = Range(0.0, 1.0, step=0.1, default=0.1)
        >>> start_on_grid(config, {"loss.margin": grid})
        {'loss.margin': 0.3}
        >>> start_on_grid(at_point(config, {"loss.margin": 0.33}), {"loss.margin": grid})
        {'loss.margin': 0.1}
        >>> from likewise.protocols import Choice
        >>> start_on_grid(config, {"loss.margin": Choice(("none", None, 0.3))})
        {'loss.margin': 0.3}
    """
    start = start_of(space)
    for path, setting in space.items():
        value = _value(config, path)
        value = _resolve_value(config, path) if value is None else value
        if _is_number(value):
            near = [each for each in setting.grid() if _is_number(each) and isclose(each, value, abs_tol=1e-12)]
            start[path] = near[0] if near else start[path]
        elif value is not None and value in setting.grid():
            start[path] = value
    return start


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def put_on_grid(config: Tree, space: Space) -> dict[str, Any]:
    """A space in which the steps of declared grids are counted from the values of a configuration.

    Examples:
        >>> config = {"loss": {"class_path": "likewise.losses.TripletLoss", "init_args": {"margin": 0.25}}}
        >>> put_on_grid(config, {"loss.margin": Range(0.0, 0.5, step=0.1, default=0.1)})["loss.margin"].grid()
        (0.05, 0.15, 0.25, 0.35, 0.45)
    """
    moved = dict(space)
    for path, point in ((path, _value(config, path)) for path in space):
        setting = space[path]
        if isinstance(setting, Range) and setting.step is not None and setting.has(point):
            moved[path] = replace(setting, default=point)
    return moved


def check_search(search: Search, trials: Study, folder: object) -> None:
    """Refuse a table with the trials of another search: folders of earlier versions do not store the space.

    Examples:
        >>> import tempfile
        >>> check_search(
        ...     Search("a", {"loss": {}}, {"loss.margin": LEARNING_RATE}), Study(tempfile.mkdtemp() + "/s.db"), "."
        ... )
    """
    for trial in trials.trials():
        paths = {path for path in trial.upgrade_labels() if "." in path}
        if trial.stage == "search" and trial.method == search.method and paths != search.space.keys():
            there, here = (", ".join(sorted(each)) for each in (paths, search.space.keys()))
            raise UserError(
                f"{folder} must hold the same search, but its trials search {there} and --search is {here}; "
                "choose another --out"
            )


def parse_search(search: Sequence[str]) -> dict[str, str | None]:
    """Paths and their ranges, from texts such as ``"loss.alpha"`` and ``"optimizer.lr=1e-5:1e-2:log"``.

    Examples:
        >>> parse_search(["loss.alpha", "optimizer.lr=1e-5:1e-2:log"])
        {'loss.alpha': None, 'optimizer.lr': '1e-5:1e-2:log'}
    """
    pairs = [each.partition("=") for each in search]
    return {path: text if equals else None for path, equals, text in pairs}


def resolve_space(
    config: Tree, ranges: Mapping[str, str | None] | None = None, *, how: str = "bayesian"
) -> dict[str, Any]:
    """The settings to search, with their ranges.

    Args:
        config: a complete configuration.
        ranges: by path, ``"LOW:HIGH"``, ``"LOW:HIGH:log"``, ``"LOW:HIGH:STEP"``, or ``None`` for the range that the loss or
            its miner declares; by default all that they declare, and learning rates.
        how: the search method; ``"thesis-grid"`` has the settings and values of the thesis' table 15.

    Examples:
        >>> from likewise import app
        >>> config = app.configure({"data": "Glyphs", "loss": "ProxyAnchorLoss"})
        >>> list(resolve_space(config))
        ['loss.margin', 'loss.alpha', 'optimizer.lr', 'optimizer.lrs.loss']
    """
    loss = import_class(config["loss"]["class_path"])
    if how == THESIS:
        return _thesis_space(config, loss.__name__, ranges)
    miner_path = ((config["loss"].get("init_args") or {}).get("miner") or {}).get("class_path")
    miner = None if miner_path is None else import_class(miner_path)
    try:
        declared = space_of(loss, miner) if hyperparameters(loss) else {}
    except TypeError:
        declared = {}  # a user's loss without declared hyper-parameters
    rates = {"optimizer.lr": LEARNING_RATE}
    if _has_parameters(loss):
        rates[LOSS_RATE_PATH] = LOSS_LEARNING_RATE
    if ranges is None:
        return {**declared, **rates}
    space: dict[str, Any] = {}
    for path, text in ranges.items():
        if text is not None:
            space[path] = _parse_range(path, text, whole=isinstance(_value(config, path), int))
            with making("--search"):
                space[path] = space_of(loss, miner, {path: space[path]})[path] if path in declared else space[path]
                check(at_point(config, {path: space[path].start}), foreign_names(config))  # the setting must exist
        elif path in declared or path in rates:
            space[path] = {**rates, **declared}[path]
        else:
            near = nearest(path, [*declared, *rates])
            raise UserError(f"--search: {path} has no declared range{near}; give one: {path}=LOW:HIGH")
    return space


def _thesis_space(config: Tree, loss: str, ranges: Mapping[str, str | None] | None) -> dict[str, Any]:
    """The rows of table 15 that a loss has, or those of them that are named, in the order of the table."""
    with making(f"--how {THESIS}"):
        space = thesis_space(loss)
    for path, text in (ranges or {}).items():
        if path not in space or text is not None:
            listed = ", ".join(space)
            raise UserError(f"--search must be some of {listed} without ranges for --how {THESIS}, but it has {path}")
    chosen = {path: setting for path, setting in space.items() if not ranges or path in ranges}
    if "loss.miner.epsilon" in chosen and _value(config, "loss.miner") is None:
        raise UserError(
            f"--how {THESIS} searches loss.miner.epsilon, but the loss has no miner; give --loss.miner MultiSimilarityMiner"
        )
    with making(f"--how {THESIS}"):
        check(at_point(config, start_of(chosen)), foreign_names(config))
    return chosen


def _has_parameters(loss: Any) -> bool:
    """Whether a loss has proxies or class weights, with a separate learning rate."""
    return "num_classes" in needed(KINDS["loss"], loss)


def default_points(config: Tree, space: Space) -> tuple[Point, ...]:
    """The values of the configuration as the first point to try, so that a search is never worse than its defaults.

    A value that the configuration leaves open is the one that its loss or the optimizer uses.  On a range with a step it is
    the nearest value of the grid.  There is no point if a value is outside of the space.

    Examples:
        >>> config = {"loss": {"class_path": "likewise.losses.TripletLoss", "init_args": {"margin": 0.1}}}
        >>> default_points(config, {"loss.margin": Range(0.0, 0.5)})
        ({'loss.margin': 0.1},)
        >>> default_points(config, {"loss.margin": Range(0.2, 0.5)})
        ()
        >>> default_points(config, {"loss.margin": Range(0.0, 0.5, step=0.25, on_grid=True)})
        ({'loss.margin': 0.0},)
        >>> config = {"loss": {"class_path": "likewise.losses.ContrastiveLoss", "init_args": {"positive_margin": None}}}
        >>> default_points(config, {"loss.positive_margin": Range(0.0, 1.0)})
        ({'loss.positive_margin': 1.0},)
    """
    point = {}
    for path, setting in space.items():
        value = _value(config, path)
        value = _resolve_value(config, path) if value is None else value
        if not setting.has(value):
            return ()
        point[path] = setting.rounded(value) if isinstance(setting, Range) and setting.on_grid else value
    return (point,)


def _resolve_value(config: Tree, path: str) -> Any:
    """The value of a setting that a configuration leaves open; ``None`` if it is not known before training."""
    section, *words = path.split(".")
    if section != "loss" and path != LOSS_RATE_PATH:
        return None
    try:
        part: Any = make(KINDS["loss"], config["loss"], {"num_classes": 2, "embedding_dim": 2})
        if path == LOSS_RATE_PATH:
            groups = parameter_groups(nn.Identity(), part, OptimizerConfig(**config["optimizer"]))
            rates = {group.lr for group in groups}
            return rates.pop() if len(rates) == 1 else None
    except EXPECTED:  # needs more than a number of classes; the search begins without defaults
        return None
    for word in words:
        part = getattr(part, word, None)
    return part


def _value(config: Tree, path: str) -> Any:
    """The value of a setting in a configuration; ``None`` if it has none."""
    value: Any = config
    for word in path.split("."):
        inside = value.get("init_args") or {} if isinstance(value, Mapping) and "class_path" in value else value
        value = inside.get(word) if isinstance(inside, Mapping) else None
    return value


def _parse_range(path: str, text: str, *, whole: bool) -> Range:
    low, _, rest = str(text).partition(":")
    high, colon, scale = rest.partition(":")
    try:
        if scale == "log":
            return Range(float(low), float(high), log=True, whole=whole)
        step = _parse_step(scale) if colon else None
        return Range(float(low), float(high), step=step, whole=whole, on_grid=step is not None)
    except ValueError as error:
        raise UserError(
            f"--search {path} must be LOW:HIGH, LOW:HIGH:log or LOW:HIGH:STEP, but it is {text}: {error}"
        ) from error


def _parse_step(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"there is no scale {text or 'of that name'}") from None
