"""``likewise repeat`` and ``likewise tune``: one method, many seeds or many settings."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from torch import nn

from likewise.app import (
    EXPECTED,
    KINDS,
    Tree,
    UserError,
    check,
    imported,
    make,
    making,
    nearest,
    needed,
    parse_request,
    read_request,
)
from likewise.cli.arguments import Arguments
from likewise.cli.executing import Execution, add_execution_options, execution_of, run_trials
from likewise.cli.screen import bold, columns, paragraph
from likewise.cli.study import StudyFile, write_atomically, write_study
from likewise.cli.study_table import begin, drive_study
from likewise.cli.tournament import finish, write_rows
from likewise.formula import hyperparameters
from likewise.protocols import (
    PROTOCOLS,
    Bayesian,
    CoordinateGrid,
    Method,
    Point,
    Random,
    Range,
    Search,
    Space,
    Study,
    Tried,
    at_point,
    best,
    history,
    is_over,
    plan,
    space_of,
    table,
)
from likewise.train import Optimizer, parameter_groups

HOW: Mapping[str, Method] = {"bayesian": Bayesian(), "grid": CoordinateGrid(), "random": Random()}
LEARNED = "optimizer.lrs.loss"
RATE, LEARNED_RATE = Range(1e-6, 1e-2, log=True), Range(1e-4, 1.0, log=True)
"""Learning rates that are searched: of the network, and of what a loss learns itself, such as proxies."""


def repeat(words: Sequence[str]) -> int:
    """Train one method with several seeds: mean and interval.

    Examples:
        >>> repeat(["--seeds", "0"])
        Traceback (most recent call last):
        likewise.app.errors.UserError: --seeds must be a whole number ≥ 1, but it is 0
    """
    options = Arguments("repeat", "Train one method with several seeds. Other options are those of likewise train.")
    options.add_argument("--seeds", metavar="N", type=int, default=5, help="how many (default: 5)")
    _add_options(options, shards=True)
    given, rest = options.parse_known_args(list(words))
    _at_least("seeds", given.seeds, 1)
    config = parse_request(read_request(rest))
    method = given.name or _loss_name(config)
    study = StudyFile(
        f"repeat-{method}",
        what=f"{method} with {given.seeds} seeds",
        base=config,
        methods={method: {}},
        seeds=list(range(config["seed"], config["seed"] + given.seeds)),
        protocol=given.protocol,
    )
    how, folder = execution_of(given), given.out or Path("studies", study.name)
    with begin(folder, study, how.shard) as study_table:
        return finish(folder, study, study_table, how, ["likewise", "repeat", *words], allow_unfair=False)


def tune(words: Sequence[str]) -> int:
    """Search hyper-parameters on validation classes.

    Examples:
        >>> tune(["--how", "bayes"])
        Traceback (most recent call last):
        likewise.app.errors.UserError: there is no search bayes; did you mean bayesian?
    """
    options = Arguments(
        "tune",
        "Search hyper-parameters on validation classes; the test set stays sealed. What is searched is what the loss and "
        "its miner declare, and learning rates. Other options are those of likewise train.",
    )
    options.add_argument("--rounds", metavar="N", type=int, default=50, help="settings to try (default: 50)")
    options.add_argument(
        "--at-once", metavar="N", type=int, help="settings that are chosen together (default: as many as run at once)"
    )
    options.add_argument("--how", default="bayesian", help=f"{', '.join(HOW)} (default: bayesian)")
    options.add_argument(
        "--search",
        metavar="WHAT",
        nargs="+",
        help="paths to search (default: all of the loss and miner, and learning rates), each with its range if wanted: "
        "loss.alpha, optimizer.lr=1e-5:1e-2:log, optimizer.lrs.proxies=1e-4:1:log",
    )
    _add_options(options, shards=False)  # the next points of a search depend on all results
    given, rest = options.parse_known_args(list(words))
    _at_least("rounds", given.rounds, 1)
    if given.at_once is not None:
        _at_least("at-once", given.at_once, 1)
    if given.how not in HOW:
        raise UserError(f"there is no search {given.how}{nearest(given.how, HOW)}")
    config = parse_request(read_request(rest))
    config["out"] = None
    method = given.name or _loss_name(config)
    protocol = PROTOCOLS[given.protocol]
    if protocol.tuned_on_test:
        raise UserError("--protocol must have validation classes to choose by, but classic has none")
    study = StudyFile(f"tune-{method}", base=config, methods={method: {}}, protocol=given.protocol)
    how, space = execution_of(given), _space(config, given.search)
    search = Search(
        method,
        config,
        space,
        HOW[given.how],
        folds=protocol.folds,
        rounds=given.rounds,
        at_once=given.at_once or max(1, how.count() // len(protocol.folds)),
        seed=config["seed"],
        begin=defaults_first(config, space),
    )
    study.trials()  # refuses what the protocol would overrule
    folder = given.out or Path("studies", study.name)
    write_study(folder, study)
    with drive_study(folder) as study_table:
        print(bold(f"{study.name}: {search.rounds} settings of {', '.join(space)}, {how.words()}, {folder}"))
        return _run(search, folder, study_table, how)


def _run(search: Search, folder: Path, study_table: Study, how: Execution) -> int:
    study_table.retry()  # what another fold makes useless is cancelled again by the plan
    code = run_trials(folder, study_table, how, metric=search.objective, plan=lambda: plan(search, study_table))
    if code or not is_over(search, study_table):
        print(f"stopped with {study_table.counts()['missing']} missing; the same command goes on")
        return code
    return _conclude(search, folder, study_table)


def _conclude(search: Search, folder: Path, study: Study) -> int:
    tried, results = history(search, study), study.results()
    write_rows(folder, table(results))
    found = best(tried)
    if found is None:
        first = next((result.error for result in results if result.error), "every setting was pruned")
        print(paragraph(f"no setting could be trained: {first}"))
        return 1
    print(_listed(tried, search.objective))
    behind = sum(result.note is not None for result in results)
    if behind:
        print(paragraph(f"note: {behind} of {len(results)} trainings have no epoch that is better than their start"))
    text = yaml.safe_dump(at_point(dict(search.config), found.point), sort_keys=False, allow_unicode=True)
    write_atomically(folder / "best.yaml", text)
    command = shlex.join(["likewise", "repeat", "--config", str(folder / "best.yaml")])
    print("\n" + paragraph(f"{command} measures it with several seeds, on the test set"))
    return 0


def _listed(tried: Sequence[Tried], objective: str) -> str:
    """The best settings that were tried."""
    done = sorted((one for one in tried if one.value is not None), key=lambda one: -(one.value or 0.0))
    rows = [(f"validation {objective}", "setting")]
    for one in done[:8]:
        setting = ", ".join(
            f"{path} {value:.4g}" for path, value in one.point.items() if isinstance(value, int | float)
        )
        rows.append((f"{100 * (one.value or 0.0):.2f}", setting))
    others = len(tried) - len(done)
    return columns(rows) + (f"\n  {others} others failed or were pruned" if others else "")


def _space(config: Tree, wanted: Sequence[str] | None) -> dict[str, Any]:
    """What is searched, with its ranges."""
    loss = imported(config["loss"]["class_path"])
    named = ((config["loss"].get("init_args") or {}).get("miner") or {}).get("class_path")
    miner = None if named is None else imported(named)
    try:
        declared = space_of(loss, miner) if hyperparameters(loss) else {}
    except TypeError:
        declared = {}  # a loss of somebody's own, which declares nothing
    rates = {"optimizer.lr": RATE} | ({LEARNED: LEARNED_RATE} if _learns(loss) else {})
    if wanted is None:
        return {**declared, **rates}
    space: dict[str, Any] = {}
    for each in wanted:
        path, equals, text = each.partition("=")
        if equals:
            space[path] = _range(path, text, whole=isinstance(_value(config, path), int))
            with making("--search"):
                space[path] = space_of(loss, miner, {path: space[path]})[path] if path in declared else space[path]
                check(at_point(config, {path: space[path].start}))  # there must be such a setting
        elif path in declared or path in rates:
            space[path] = {**rates, **declared}[path]
        else:
            known = [*declared, *rates]
            raise UserError(
                f"--search: {path} has no range of its own{nearest(path, known)}; give one: {path}=LOW:HIGH"
            )
    return space


def _learns(loss: Any) -> bool:
    """Whether a loss has proxies or class weights, which learn at a rate of their own."""
    return "num_classes" in needed(KINDS["loss"], loss)


def defaults_first(config: Tree, space: Space) -> tuple[Point, ...]:
    """What the configuration says itself, as the first point to try: no search should end below where it began.

    A setting that the configuration leaves open has the value that its loss gives it, or the optimizer.

    Examples:
        >>> config = {"loss": {"class_path": "likewise.losses.TripletLoss", "init_args": {"margin": 0.1}}}
        >>> defaults_first(config, {"loss.margin": Range(0.0, 0.5)})
        ({'loss.margin': 0.1},)
        >>> defaults_first(config, {"loss.margin": Range(0.2, 0.5)})
        ()
        >>> config = {"loss": {"class_path": "likewise.losses.ContrastiveLoss", "init_args": {"positive_margin": None}}}
        >>> defaults_first(config, {"loss.positive_margin": Range(0.0, 1.0)})
        ({'loss.positive_margin': 1.0},)
    """
    point = {}
    for path, setting in space.items():
        value = _value(config, path)
        value = _resolved(config, path) if value is None else value
        if not setting.has(value):
            return ()
        point[path] = value
    return (point,)


def _resolved(config: Tree, path: str) -> Any:
    """What a setting becomes that a configuration leaves open; ``None`` if that is not known before training."""
    room, *words = path.split(".")
    if room != "loss" and path != LEARNED:
        return None
    try:
        part: Any = make(KINDS["loss"], config["loss"], {"num_classes": 2, "embedding_dim": 2})
        if path == LEARNED:
            groups = parameter_groups(nn.Identity(), part, Optimizer(**config["optimizer"]))
            rates = {group.lr for group in groups}
            return rates.pop() if len(rates) == 1 else None
    except EXPECTED:  # needs more than a number of classes; the search begins without it
        return None
    for word in words:
        part = getattr(part, word, None)
    return part


def _value(config: Tree, path: str) -> Any:
    """What a configuration says of a setting; ``None`` if nothing."""
    value: Any = config
    for word in path.split("."):
        inside = value.get("init_args") or {} if isinstance(value, Mapping) and "class_path" in value else value
        value = inside.get(word) if isinstance(inside, Mapping) else None
    return value


def _range(path: str, text: str, *, whole: bool) -> Range:
    low, _, rest = text.partition(":")
    high, colon, scale = rest.partition(":")
    try:
        if colon and scale != "log":
            raise ValueError(f"there is no scale {scale or 'of that name'}")
        return Range(float(low), float(high), log=scale == "log", whole=whole)
    except ValueError as error:
        raise UserError(f"--search {path} must be LOW:HIGH or LOW:HIGH:log, but it is {text}: {error}") from error


def _add_options(options: Arguments, *, shards: bool) -> None:
    options.add_argument("--name", help="what the method is called (default: its loss)")
    options.add_argument("--out", metavar="FOLDER", type=Path, help="where to")
    add_execution_options(options, shards=shards)
    options.add_argument("--protocol", default="own-validation", choices=tuple(PROTOCOLS), help="see docs/protocols.md")


def _at_least(name: str, value: int, least: int) -> int:
    if value < least:
        raise UserError(f"--{name} must be a whole number ≥ {least}, but it is {value}")
    return value


def _loss_name(config: Tree) -> str:
    return str(config["loss"]["class_path"]).rpartition(".")[2].removesuffix("Loss").lower()
