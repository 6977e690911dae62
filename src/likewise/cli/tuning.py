"""``likewise repeat`` and ``likewise tune``: one method, many seeds or many settings."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from likewise.app import Mistake, Tree, check, imported, making, nearest, parse_request, read_request
from likewise.cli.arguments import Arguments
from likewise.cli.pool import fitting, run_workers
from likewise.cli.screen import bold, columns, paragraph
from likewise.cli.study import StudyFile, begin, board_of, with_aside, write_study
from likewise.cli.tournament import INTERRUPTED, conclude, write_rows
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
    Tried,
    at_point,
    best,
    history,
    is_over,
    plan,
    space_of,
    table,
)

HOW: Mapping[str, Method] = {"bayesian": Bayesian(), "grid": CoordinateGrid(), "random": Random()}
RATES = {"optimizer.lr": Range(1e-6, 1e-2, log=True)}


def repeat(words: Sequence[str]) -> int:
    """Train one method with several seeds: mean and interval.

    Examples:
        >>> repeat(["--seeds", "0"])
        Traceback (most recent call last):
        likewise.app.errors.Mistake: --seeds must be a whole number ≥ 1, but it is 0
    """
    options = Arguments("repeat", "Train one method with several seeds. Other options are those of likewise train.")
    options.add_argument("--seeds", metavar="N", type=int, default=5, help="how many (default: 5)")
    _shared(options)
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
    workers = _workers(given)
    folder = given.out or Path("studies", study.name)
    board = begin(folder, study)
    code = run_workers(folder, board, workers)
    if code == INTERRUPTED:
        print("stopped; the same command goes on")
        return code
    conclude(folder, study, board.results(), even_if_unfair=False)
    return 1 if code or board.counts()["failed"] else 0


def tune(words: Sequence[str]) -> int:
    """Search hyper-parameters on validation classes.

    Examples:
        >>> tune(["--how", "bayes"])
        Traceback (most recent call last):
        likewise.app.errors.Mistake: there is no search bayes; did you mean bayesian?
    """
    options = Arguments(
        "tune",
        "Search hyper-parameters on validation classes; the test set stays sealed. What is searched is what the loss and "
        "its miner declare, and learning rates. Other options are those of likewise train.",
    )
    options.add_argument("--rounds", metavar="N", type=int, default=50, help="settings to try (default: 50)")
    options.add_argument("--how", default="bayesian", help=f"{', '.join(HOW)} (default: bayesian)")
    options.add_argument(
        "--search",
        metavar="WHAT",
        nargs="+",
        help="paths to search (default: all of the loss and miner), each with its own range if wanted: "
        "loss.alpha, optimizer.lr=1e-5:1e-2:log, optimizer.lrs.proxies=1e-4:1:log",
    )
    _shared(options)
    given, rest = options.parse_known_args(list(words))
    _at_least("rounds", given.rounds, 1)
    if given.how not in HOW:
        raise Mistake(f"there is no search {given.how}{nearest(given.how, HOW)}")
    config = parse_request(read_request(rest))
    config["out"] = None
    method = given.name or _loss_name(config)
    protocol = PROTOCOLS[given.protocol]
    if protocol.tuned_on_test:
        raise Mistake("--protocol must have validation classes to choose by, but classic has none")
    study = StudyFile(f"tune-{method}", base=config, methods={method: {}}, protocol=given.protocol, board=given.board)
    workers, space = _workers(given), _space(config, given.search)
    search = Search(
        method,
        config,
        space,
        HOW[given.how],
        folds=protocol.folds,
        rounds=given.rounds,
        at_once=max(1, workers // len(protocol.folds)),
        seed=config["seed"],
        begin=defaults_first(config, space),
    )
    study.trials()  # refuses what the protocol would overrule
    folder = given.out or Path("studies", study.name)
    write_study(folder, study)
    return _run(search, folder, study, workers)


def _run(search: Search, folder: Path, study: StudyFile, workers: int) -> int:
    board = board_of(folder, study)
    print(bold(f"{study.name}: {search.rounds} settings of {', '.join(search.space)}, {workers} workers, {folder}"))
    board.again()  # what failed of being killed too often; what another fold has made vain is cancelled again by the plan
    while not is_over(search, board):
        plan(search, board)
        code = run_workers(folder, board, workers)
        if code:
            print("stopped; the same command goes on")
            return code
    tried = history(search, board)
    write_rows(folder, table(board.results()))
    found = best(tried)
    if found is None:
        print("no setting could be trained: see results.csv")
        return 1
    print(_listed(tried, search.objective))
    text = yaml.safe_dump(at_point(dict(search.config), found.point), sort_keys=False, allow_unicode=True)
    with_aside(folder / "best.yaml", text)
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
    if wanted is None:
        if not declared:
            raise Mistake("the loss declares nothing to search: --search optimizer.lr=1e-5:1e-2:log names something")
        return dict(declared)
    space: dict[str, Any] = {}
    for each in wanted:
        path, equals, text = each.partition("=")
        if equals:
            space[path] = _range(path, text, whole=isinstance(_value(config, path), int))
            with making("--search"):
                space[path] = space_of(loss, miner, {path: space[path]})[path] if path in declared else space[path]
                check(at_point(config, {path: space[path].start}))  # there must be such a setting
        elif path in declared or path in RATES:
            space[path] = {**RATES, **declared}[path]
        else:
            raise Mistake(
                f"--search: {path} has no range of its own{nearest(path, declared)}; give one: {path}=LOW:HIGH"
            )
    return space


def defaults_first(config: Tree, space: Space) -> tuple[Point, ...]:
    """What the configuration says itself, as the first point to try: no search should end below where it began.

    Examples:
        >>> config = {"loss": {"class_path": "likewise.losses.TripletLoss", "init_args": {"margin": 0.1}}}
        >>> defaults_first(config, {"loss.margin": Range(0.0, 0.5)})
        ({'loss.margin': 0.1},)
        >>> defaults_first(config, {"loss.margin": Range(0.2, 0.5)})
        ()
    """
    point = {}
    for path, setting in space.items():
        value = _value(config, path)
        if not setting.has(value):
            return ()
        point[path] = value
    return (point,)


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
        raise Mistake(f"--search {path} must be LOW:HIGH or LOW:HIGH:log, but it is {text}: {error}") from error


def _shared(options: Arguments) -> None:
    options.add_argument("--name", help="what the method is called (default: its loss)")
    options.add_argument("--out", metavar="FOLDER", type=Path, help="where to")
    options.add_argument("--workers", metavar="N", type=int, help="processes (default: as many as fit)")
    options.add_argument(
        "--board", metavar="URL", help="a database that several machines share, such as postgresql://…"
    )
    options.add_argument("--protocol", default="own-validation", choices=tuple(PROTOCOLS), help="see docs/protocols.md")


def _workers(given: argparse.Namespace) -> int:
    if given.workers is None:
        return fitting()
    return _at_least("workers", given.workers, 1)


def _at_least(name: str, value: int, least: int) -> int:
    if value < least:
        raise Mistake(f"--{name} must be a whole number ≥ {least}, but it is {value}")
    return value


def _loss_name(config: Tree) -> str:
    return str(config["loss"]["class_path"]).rpartition(".")[2].removesuffix("Loss").lower()
