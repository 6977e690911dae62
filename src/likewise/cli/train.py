"""``likewise train``: options, progress and results on the terminal."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from jsonargparse import ArgumentParser

from likewise.app import (
    Machine,
    Pieces,
    UserError,
    add_group,
    add_settings,
    allow_flags,
    allowed_by,
    dump_configuration,
    flags_of,
    guess_data,
    import_class,
    kind_of,
    needed,
    open_run,
    parse_request,
    read_request,
    resolve,
    resume,
    sentence,
    this_machine,
    train,
)
from likewise.cli.app import NO_ROOM, STARTED
from likewise.cli.arguments import QUIET, QUIET_HELP
from likewise.cli.helping import help_of
from likewise.cli.screen import bold, columns
from likewise.train import Collapsed, NotFinite, Run

PRINT = "--print-config"
CHANGES = "--allow-changes"
DEVICE = "--device"
OnStart: TypeAlias = Callable[[Pieces, str], None]
FEW_CLASSES = 3
"""Fewer validation classes than this are too few to select a model."""
USAGE = "likewise train [IMAGES] [--config FILE ...] [--OPTION VALUE ...]\n       likewise train --resume RUN [--allow-changes]"
DESCRIPTION = f"""Train an embedding on a data set's training classes, select it on validation classes, and write a report.

IMAGES is a folder with one subfolder per class, or a table; --data selects any other data set.

Options are flags, or the same names in YAML files (--config). Flags override files, and later files override earlier
ones. {PRINT} prints the whole configuration as a file for --config. To use your own class, give its import path
(--loss my_package.MyLoss) and its options as flags (--loss.alpha 2). A class that a file names is imported only if
likewise lists it or you allow it (--allow my_package)."""
SWITCHES = {
    "--config": "a YAML file; repeatable",
    PRINT: "print the whole configuration as a file for --config, and exit",
    "--allow": "your own package, module or class that files may name; repeatable",
    "--resume": "continue the run in this folder",
    DEVICE: "cpu or gpu (default: a GPU if available)",
    QUIET: QUIET_HELP,
    CHANGES: "with --resume: continue even if the data or settings differ from those of the run",
}
"""Options that are not settings."""


def run(words: Sequence[str]) -> int:
    """Run the training that the command line describes, or resume a run.

    Examples:
        >>> run(["--data", "Glyps"])
        Traceback (most recent call last):
        likewise.app.errors.UserError: there is no data set Glyps; did you mean Glyphs?
    """
    if words and not words[0].startswith("-"):
        words = _name_data(words[0], words[1:])
    if _print_help(words):
        return 0
    device, words = _take_device(words)
    if any(word == "--resume" or word.startswith("--resume=") for word in words):
        return _resume(words, device)
    words = [word for word in words if word != PRINT] if (prints := PRINT in words) else words
    given, allow = read_request(words), allowed_by(words)
    if prints:
        print(dump_configuration(given, allow), end="")
        return 0
    config = parse_request(given, allow)
    shrink = "classes" not in (given.get("sampler", {}).get("init_args") or {})
    machine = this_machine(device)

    def start(on_start: OnStart) -> Run:
        return train(config, machine=machine, shrink_batches=shrink, on_start=on_start, allow=allow)

    return _watch(start, machine, allow, words)


def _name_data(place: str, words: Sequence[str]) -> list[str]:
    """Replace a folder or table by the equivalent data options, and print them."""
    if any(flag.key == "data" or flag.key.startswith("data.") for flag in flags_of(words)):
        raise UserError(f"{place!r} must not be given together with --data, which names the images")
    named = [word for key, value in guess_data(place).items() for word in (f"--{key}", value)]
    print(f"data        {shlex.join(named)}")
    return [*named, *words]


def _take_device(words: Sequence[str]) -> tuple[str | None, list[str]]:
    """Split off ``--device``: its value, and the other arguments."""
    words, device = [*words], None
    for index, word in enumerate(words):
        if word.partition("=")[0] == DEVICE:
            end = index + 1 if "=" in word else index + 2
            device = word.partition("=")[2] if "=" in word else " ".join(words[index + 1 : end])
            return device, [*words[:index], *words[end:]]
    return device, words


def _resume(words: Sequence[str], device: str | None) -> int:
    """Resume a run; permissions (imports, changes) come from the command line, never from the run."""
    changes = CHANGES in words
    words = [word for word in words if word != CHANGES]
    folder, allow = _folder_to_resume(words), allowed_by(words)
    begun, machine = open_run(folder), this_machine(device)
    if begun.finished:
        [*_, end] = begun.metrics("end")
        resume(folder, allow=allow)  # writes the report if it is missing
        print(f"{folder} has already ended: {end['reason']}, {end['message']}.")
        return 0

    def start(on_start: OnStart) -> Run:
        def announce(pieces: Pieces, place: str) -> None:
            on_start(pieces, place)
            if machine.main:
                step = begun.checkpoint_step
                where = "the beginning: there is no checkpoint" if step is None else f"the checkpoint of step {step:,}"
                print(f"resumed     from {where}", flush=True)

        return resume(folder, machine=machine, on_start=announce, allow=allow, allow_changes=changes)

    return _watch(start, machine, allow)


def _print_help(words: Sequence[str]) -> bool:
    """Print the requested help: of the command, or with ``--loss.help NAME`` of a class."""
    if "--help" in words or "-h" in words:
        parser = ArgumentParser(usage=USAGE, description=DESCRIPTION, add_help=False)
        for name, what in SWITCHES.items():
            parser.add_argument(name, help=what)
        add_settings(parser, {})
        print(help_of(parser), end="")
        return True
    for flag in flags_of(words):
        if flag.key.endswith(".help"):
            print(_help_of_class(flag.key, flag.value), end="")
            return True
    return False


def _help_of_class(key: str, name: str | None) -> str:
    path = tuple(key.split(".")[:-1])
    kind = kind_of(path)
    if kind is None:
        raise UserError(f"there is no option --{key}; data, loss, loss.miner, sampler and lens.compare_with have one")
    if name is None:
        raise UserError(f"--{key} must be followed by the name of a {kind.what}")
    thing = import_class(resolve(kind, name, [name]))
    parser = ArgumentParser(add_help=False)
    add_group(parser, ".".join(path), thing, {*kind.filled, *needed(kind, thing)})
    return help_of(parser)


def _folder_to_resume(words: Sequence[str]) -> Path:
    """The run to resume."""
    flags = [flag for flag in flags_of(words) if flag.key != "allow"]
    if len(flags) > 1:
        raise UserError(
            f"--resume accepts no other options than --allow and {CHANGES}: the configuration is read from the run's run.yaml"
        )
    if flags[0].value is None:
        raise UserError("--resume must be followed by the folder of a run")
    return Path(flags[0].value)


def _watch(start: Callable[[OnStart], Run], machine: Machine, allow: Sequence[str], words: Sequence[str] = ()) -> int:
    """Run a training, print its settings and results, and print how to resume it if it is interrupted.

    Args:
        start: function that starts the training.
        machine: the device.
        allow: packages that its configuration may import.
        words: the command line; empty for a resumed run.
    """
    folders = list[str]()
    ready = time.monotonic()

    def announce(pieces: Pieces, folder: str) -> None:
        nonlocal ready
        ready = time.monotonic()
        folders.append(folder)
        if machine.main:
            _announce(pieces, folder)
            _warn_of_few_classes(pieces, words)

    try:
        finished = start(announce)
    except KeyboardInterrupt:
        if not folders:
            raise
        if machine.main:
            print(f"stopped; resume with: {_resume_command(folders[0], allow)}", file=sys.stderr)
        return 130
    except OSError as error:
        if error.errno not in NO_ROOM or not folders or not Path(folders[0], "run.yaml").exists():
            raise
        raise UserError(_describe_unwritten(error, folders[0], allow)) from error
    except (NotFinite, Collapsed) as end:
        if machine.main:
            print(f"stopped: {sentence(end)}", file=sys.stderr)
        return 1
    if machine.main:
        rest = time.monotonic() - ready if words else None
        _conclude(finished, describe_cost(finished.metrics(), ready - STARTED, rest))
    return 0


def describe_cost(rows: Sequence[Mapping[str, Any]], start: float, rest: float | None) -> str:
    """One line: the seconds spent in steps and in everything else.

    Args:
        rows: the log of the run.
        start: seconds from the start of the program to the start of the training.
        rest: seconds from there to the end of the report; ``None`` for a resumed run, part of which ran in another
            process.

    Examples:
        >>> rows = [{"kind": "start", "seconds": {"setup": 0.5, "first_step": 1.0}}]
        >>> rows += [{"kind": "val", "seconds": 2.0}, {"kind": "end", "seconds": 9.0}]
        >>> describe_cost(rows, 2.5, 11.0)
        'steps 6.0 s; everything else 7.5 s: start 3.0 s, first step 1.0 s, validation 2.0 s, report 1.5 s'
    """
    spent = {
        kind: sum(row.get("seconds", 0.0) for row in rows if row.get("kind") == kind)
        for kind in ("val", "mining", "end")
    }
    begun = next((row["seconds"] for row in rows if row.get("kind") == "start"), {"setup": 0.0, "first_step": 0.0})
    costs = {"start": start + begun["setup"], "first step": begun["first_step"]}
    costs |= {"validation": spent["val"], "mining": spent["mining"]}
    if rest is not None:
        costs["report"] = max(0.0, rest - spent["end"] - begun["setup"])
    steps = max(0.0, spent["end"] - spent["val"] - spent["mining"] - begun["first_step"])
    listed = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in costs.items() if seconds)
    return f"steps {steps:.1f} s; everything else {sum(costs.values()):.1f} s: {listed}"


def _resume_command(folder: str, allow: Sequence[str]) -> str:
    return shlex.join(["likewise", "train", "--resume", folder, *allow_flags(allow)])


def _describe_unwritten(error: OSError, folder: str, allow: Sequence[str]) -> str:
    """What could not be written during a training, what is kept, and how to resume."""
    step = open_run(Path(folder)).checkpoint_step
    stays = "there is no checkpoint yet" if step is None else f"the checkpoint of step {step:,} is kept"
    return f"{error.filename} cannot be written: {error.strerror}; {stays}. Free some space, then run: {_resume_command(folder, allow)}"


def _announce(pieces: Pieces, folder: str) -> None:
    data, images = pieces.data, getattr(pieces.data.train, "images", None)
    val = getattr(data.val, "images", None)
    learned = sum(each.numel() for each in pieces.model.parameters() if each.requires_grad)
    rows = [
        ("training", str(images)),
        ("validation", "none: the model of the last epoch is used" if val is None else str(val)),
        ("test", "none" if data.test is None else f"{data.test.description}, sealed"),
        ("model", f"{learned:,} trainable parameters, {pieces.model.dim}-dimensional embeddings"),
        ("loss", " ".join(repr(pieces.loss).split())),
        ("run", folder),
    ]
    print(columns(rows, indent=0), flush=True)


def _warn_of_few_classes(pieces: Pieces, words: Sequence[str]) -> None:
    """Warn that two or three classes are too few to select a model, and suggest cross-validation."""
    val = getattr(pieces.data.val, "images", None)
    folded = any(word.partition("=")[0] == "--split.folds" for word in words)
    if val is None or len(val.class_names) > FEW_CLASSES or not words or folded:
        return
    out = [index for index, word in enumerate(words) if word == "--out"]
    kept = [word for index, word in enumerate(words) if index not in out and index - 1 not in out]
    again = shlex.join(["likewise", "train", *kept, "--split.folds", "4", "--split.fold"])
    print(
        f"note: validation has {len(val.class_names)} classes, too few to select a model; for cross-validation over classes, run:\n"
        f"  for fold in 0 1 2 3; do {again} $fold; done"
    )


def _conclude(finished: Run, cost: str) -> None:
    """Print the results, the cost, the files and the next command."""
    [*_, end] = finished.metrics("end")
    print(f"\n{end['message']} ({end['reason']}) in {end['seconds']:.0f} s\n{cost}")
    validations = finished.metrics("val")
    if validations:
        best = finished.chosen or validations[0]
        chosen = {each["step"]: each for each in (validations[0], best, validations[-1])}
        rows = [
            (f"epoch {each['epoch']:g}", f"{100 * each['R@1']:.1f}", f"{100 * each['MAP@R']:.1f}", _remark(each, best))
            for _, each in sorted(chosen.items())
        ]
        print(bold("on validation classes, in percent"))
        print(columns([("", "R@1", "MAP@R", ""), *rows]))
        if best["step"] == 0 and len(validations) > 1:
            print("note: no epoch improved on the model before training; best.safetensors is that model")
    print(bold(f"{finished.folder}/"))
    print(columns([(name, what) for name, what in _FILES if (finished.folder / name).exists()]))
    if finished.description["data"]["test"] is not None:
        print(f"the test set is sealed; likewise evaluate {finished.folder} --test opens it")
    print(f"next: {_next_command(finished)}")


def _next_command(finished: Run) -> str:
    """Suggest a search for a folder of images; otherwise the lens of the loss."""
    data = (finished.description.get("config") or {}).get("data") or {}
    root = (data.get("init_args") or {}).get("root")
    folder = str(finished.folder)
    if root is None:
        return shlex.join(["likewise", "calibrate", folder])
    return shlex.join(["likewise", "index", folder, str(root), "-o", f"{Path(root).name}.index"])


def _remark(line: dict[str, Any], best: dict[str, Any]) -> str:
    words = ["before training"] if line["step"] == 0 else []
    return ", ".join([*words, "the best"] if line["step"] == best["step"] else words)


_FILES = (
    ("best.safetensors", "the best model on validation"),
    ("model.safetensors", "the model at the end"),
    ("run.yaml", "the complete configuration"),
    ("metrics.jsonl", "every measurement"),
    ("report.html", "the report, for a browser"),
)
