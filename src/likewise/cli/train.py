"""``likewise train``: from a configuration to a run."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from likewise.cli.configuration import check, configure, print_config
from likewise.cli.defaults import Tree
from likewise.cli.layers import flags_of, read_request
from likewise.cli.measured import report_on
from likewise.cli.mistakes import EXPECTED, Mistake, ours, sentence
from likewise.cli.parts import read_parts
from likewise.cli.pieces import Machine, Pieces, fit_batches, make_pieces, make_settings, this_machine
from likewise.cli.screen import bold, columns
from likewise.train import Collapsed, NotFinite, Run

PRINT = "--print_config"


def run(words: Sequence[str]) -> int:
    """Train what a command line describes, or go on with a run.

    Examples:
        >>> run(["--data", "Glyps"])
        Traceback (most recent call last):
        likewise.cli.mistakes.Mistake: there is no data set Glyps; did you mean Glyphs?
    """
    resumed = _resumed(words)
    if resumed is not None:
        return _go_on(resumed)
    request = read_request([word for word in words if word != PRINT])
    if PRINT in words:
        print_config(request)
        return 0
    config = configure(request)
    make_settings(config)  # a mistake in them is told before data are read
    machine, parts = this_machine(), read_parts(config["data"], config["split"])
    if "sampler" not in request.given:
        config = fit_batches(config, parts, machine)
    pieces = make_pieces(config, machine, parts)
    folder = _agreed(config["out"] or _free_folder(config, pieces), machine)
    return _train(pieces, config, folder, machine, resume=False)


def _resumed(words: Sequence[str]) -> Path | None:
    """The run that is to go on."""
    if not any(word == "--resume" or word.startswith("--resume=") for word in words):
        return None
    flags = flags_of(words)
    if len(flags) > 1:
        raise Mistake("--resume must be given alone: the configuration is the run's own, in its run.yaml")
    if flags[0].value is None:
        raise Mistake("--resume must be followed by the folder of a run")
    return Path(flags[0].value)


def _go_on(folder: Path) -> int:
    begun = open_run(folder)
    if begun.finished:
        [*_, end] = begun.metrics("end")
        print(f"{folder} has ended already: {end['reason']}, {end['message']}.")
        return 0
    config, machine = config_of(begun), this_machine()
    return _train(make_pieces(config, machine), config, str(folder), machine, resume=True)


def open_run(folder: Path) -> Run:
    """A run, or a mistake that says that there is none, or none that can be read.

    Examples:
        >>> open_run(Path("nowhere"))
        Traceback (most recent call last):
        likewise.cli.mistakes.Mistake: nowhere must be the folder of a run, but it has no run.yaml
    """
    try:
        begun = Run(folder)
        _ = begun.description
    except FileNotFoundError:
        raise Mistake(f"{folder} must be the folder of a run, but it has no run.yaml") from None
    except ValueError as error:  # of a schema that nobody here knows
        raise Mistake(str(error)) from error
    return begun


def config_of(begun: Run) -> Tree:
    """The configuration from which a run was made.

    Examples:
        >>> import tempfile
        >>> config_of(Run.create(tempfile.mkdtemp() + "/run", {"config": {"data": "Glyphs", "loss": "CircleLoss"}}))[
        ...     "seed"
        ... ]
        0
    """
    said = begun.description.get("config")
    if not isinstance(said, dict):
        raise Mistake(
            f"{begun.folder} was not trained by `likewise train`: its run.yaml has no config to make its data of"
        )
    return check(said)


def _train(pieces: Pieces, config: Tree, folder: str, machine: Machine, *, resume: bool) -> int:
    if machine.main:
        _announce(pieces, folder)
    try:
        finished = _guarded(pieces, config, folder, machine, resume)
    except KeyboardInterrupt:
        if machine.main:
            print(f"stopped; go on with: likewise train --resume {folder}", file=sys.stderr)
        return 130
    except (NotFinite, Collapsed) as end:
        if machine.main:
            print(f"stopped: {sentence(end)}", file=sys.stderr)
        return 1
    if machine.main:
        report_on(finished, config, machine, test=None)
        _conclude(finished)
    return 0


def _guarded(pieces: Pieces, config: Tree, folder: str, machine: Machine, resume: bool) -> Run:
    """Train; what the library refuses before anything was measured is the user's mistake, what comes later is not."""
    before = _measured(folder)
    try:
        return pieces.train(folder, config, machine, resume=resume)
    except (*EXPECTED, RuntimeError) as refusal:
        if _measured(folder) <= before and ours(refusal) and not isinstance(refusal, NotFinite | Collapsed):
            raise Mistake(f"the training: {sentence(refusal)}") from refusal
        raise


def _measured(folder: str) -> int:
    file = Path(folder, "metrics.jsonl")
    return file.stat().st_size if file.exists() else 0


def _free_folder(config: Tree, pieces: Pieces) -> str:
    """``runs/DATA-TRUNK-LOSS-NUMBER``, with the first number that is free."""
    loss = config["loss"]["class_path"].rpartition(".")[2].removesuffix("Loss")
    name = "-".join(_plain(each) for each in (pieces.name, config["model"]["trunk"], loss))
    number = 1
    while Path("runs", f"{name}-{number}").exists():
        number += 1
    return f"runs/{name}-{number}"


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9._]+", "-", text.lower()).strip("-.") or "images"


def _agreed(folder: str, machine: Machine) -> str:
    """The same folder in all processes: the first one's."""
    if machine.processes == 1:
        return folder
    from accelerate.utils import broadcast_object_list

    return str(broadcast_object_list([folder])[0])


def _announce(pieces: Pieces, folder: str) -> None:
    data, images = pieces.data, getattr(pieces.data.train, "images", None)
    val = getattr(data.val, "images", None)
    learned = sum(each.numel() for each in pieces.model.parameters() if each.requires_grad)
    rows = [
        ("training", str(images)),
        ("validation", "none: the model is that of the last epoch" if val is None else str(val)),
        ("test", "none" if data.test is None else f"{data.test.description}, sealed"),
        ("model", f"{learned:,} numbers to learn, embeddings of {pieces.model.dim}"),
        ("loss", " ".join(repr(pieces.loss).split())),
        ("run", folder),
    ]
    print(columns(rows, indent=0), flush=True)


def _conclude(finished: Run) -> None:
    """What came out, where it is, and what to do next."""
    [*_, end] = finished.metrics("end")
    print(f"\n{end['message']} ({end['reason']}) in {end['seconds']:.0f} s")
    validations = finished.metrics("val")
    if validations:
        best = finished.chosen or validations[0]
        chosen = {each["step"]: each for each in (validations[0], best, validations[-1])}
        rows = [
            (f"epoch {each['epoch']:g}", f"{100 * each['R@1']:.1f}", f"{100 * each['MAP@R']:.1f}", _remark(each, best))
            for _, each in sorted(chosen.items())
        ]
        print(bold("on validation classes, in per cent"))
        print(columns([("", "R@1", "MAP@R", ""), *rows]))
    print(bold(f"{finished.folder}/"))
    print(columns([(name, what) for name, what in _FILES if (finished.folder / name).exists()]))
    if finished.description["data"]["test"] is not None:
        print(f"the test set is sealed; likewise evaluate {finished.folder} --test opens it")


def _remark(line: dict[str, Any], best: dict[str, Any]) -> str:
    words = ["before training"] if line["step"] == 0 else []
    return ", ".join([*words, "the best"] if line is best else words)


_FILES = (
    ("best.safetensors", "the model that was best on validation"),
    ("model.safetensors", "the model at the end"),
    ("run.yaml", "the complete description"),
    ("metrics.jsonl", "every measurement"),
    ("report.html", "the report, for a browser"),
)
