"""What the studies of papers share: experiments, their number and cost, the command line, and the small scale.

An experiment is one study, as a dict in the form of its file.  The tables of a paper come from the rows of several; a row
says ``data`` and ``trunk`` by the names of the paper, also where ``--scale tiny`` trains something smaller in their place.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from likewise import app
from likewise.app.study_file import StudyFile
from likewise.app.study_table import open_study
from likewise.protocols import STUDY_DATABASE
from likewise.protocols.trial import Label

Tree: TypeAlias = dict[str, Any]
Row: TypeAlias = dict[str, Label]

IMAGES = {"CUB200": 5_864, "Cars196": 8_054, "StanfordOnlineProducts": 59_551, "InShop": 25_882}
"""Training images of the data sets, as the papers give them."""

SPEED_FILE = Path(__file__).parent / "results" / "speed.json"
"""Images per second that a training sees, by trunk; ``studies/papers/speed.py`` measures them."""

TINY_STEPS = {"class_path": "PerClassSampler", "init_args": {"classes": 16, "per_class": 2, "steps": 4}}
"""The batches of all losses at ``--scale tiny``."""


@dataclass(frozen=True)
class Experiment:
    """One study among those of a paper.

    Args:
        folder: where its results go, below the folder of all.
        study: its content.
        data: the data set by the name of its class, as the paper has it.
        trunk: the network, as the paper has it.
        epochs: over the training images, of each training, at most.

    Examples:
        >>> study = {
        ...     "name": "one",
        ...     "base": {"data": "Glyphs"},
        ...     "methods": {"circle": {"loss": "CircleLoss"}},
        ...     "seeds": [0, 1],
        ... }
        >>> Experiment("CUB200", study, "CUB200", "bninception").trainings
        2
    """

    folder: str
    study: Tree
    data: str
    trunk: str
    epochs: float = 100.0

    @property
    def trainings(self) -> int:
        """The number of its training runs."""
        return StudyFile(**self.study).planned()

    @property
    def seconds(self) -> float:
        """What all of its training runs take on the GPU that was measured, without validation."""
        return self.trainings * training_seconds(self.data, self.trunk, self.epochs)

    def run(self, out: Path, execution: app.Execution) -> list[Row]:
        """Train what is missing, and return the rows of its table; rows of failed runs stay in the study's table."""
        report = app.run_study(self.study, out / self.folder, execution=execution)
        failed = [result for result in report.results if result.status == "failed"]
        for result in failed[:1]:
            print(f"{self.folder}: {len(failed)} training runs failed, such as {result.trial.method}: {result.error}")
        rows = [row for row in report.rows if row["status"] == "done"]
        return [{**row, "data": self.data, "trunk": self.trunk} for row in rows]


def training_seconds(data: str, trunk: str, epochs: float) -> float:
    """What the steps of a training take on the GPU that was measured.

    Examples:
        >>> 1.0 < training_seconds("CUB200", "bninception", 100) / 60 < 60.0
        True
    """
    speeds = json.loads(SPEED_FILE.read_text(encoding="utf-8"))["images per second"]
    return epochs * IMAGES[data] / float(speeds[trunk])


def tiny_base(
    folder: str | None = None, *, trunk: str = "lenet", dim: int = 16, seed: int = 0, images: int = 2
) -> Tree:
    """What ``--scale tiny`` changes of any set-up: small images and networks, one epoch, on any machine.

    Args:
        folder: images of one's own, a folder for each class; by default printed characters.
        trunk: a network for images of 32 pixels.
        dim: the size of the embeddings.
        seed: of the characters, so that two data sets differ.
        images: of each character.

    Examples:
        >>> tiny_base("pets")["data"]
        {'class_path': 'ImageFolder', 'init_args': {'root': 'pets'}}
    """
    data: Tree = {"class_path": "Glyphs", "init_args": {"images_per_class": images, "seed": seed}}
    if folder is not None:
        data = {"class_path": "ImageFolder", "init_args": {"root": folder}}
    return {
        "data": data,
        "transform": "glyphs",
        "model": {"trunk": trunk, "weights": None, "dim": dim, "freeze_bn": False, "in_channels": 3 if folder else 1},
        "optimizer": {"lr": 1e-3},
        "train": {"epochs": 1, "validate_every": 1, "patience": None, "trunk_warmup": 0, "checkpoint_minutes": 0},
    }


# ---- how much it is


def describe(lines: Sequence[str], out: Path, total: int, minutes: float | None, expected: float | None) -> str:
    """How many training runs there are, how many are done, and how many GPU hours the rest would take.

    Args:
        lines: what the training runs are.
        out: the folder of all studies, whose finished training runs are measured.
        total: the number of training runs.
        minutes: of each, if given.
        expected: seconds of all, from the speed of the GPU that was measured; ``None`` if it says nothing about them.

    Examples:
        >>> print(describe(["1 loss"], Path("nowhere"), 100, 30, 0.0))
        1 loss
        100 training runs, 0 done; about 50 GPU hours for the rest, at 30.0 minutes each as given
    """
    seconds = [
        result.seconds
        for file in sorted(out.rglob(STUDY_DATABASE))
        for result in open_study(file.parent).results()
        if result.status == "done" and result.seconds
    ]
    done = f"{total:,} training runs, {len(seconds):,} done"
    if minutes is not None:
        mean, source = 60 * minutes, "as given"
    elif seconds:
        mean, source = sum(seconds) / len(seconds), "as measured here"
    elif expected is not None:
        mean, source = expected / max(1, total), f"at the speed of {measured_gpu()}, without validation"
    else:
        return "\n".join([*lines, f"{done}; none is measured yet: --minutes-each N gives an estimate"])
    hours = (total - len(seconds)) * mean / 3600
    rest = f"about {hours:,.0f} GPU hours" if hours >= 1 else f"about {60 * hours:.0f} minutes"
    return "\n".join([*lines, f"{done}; {rest} for the rest, at {mean / 60:.1f} minutes each {source}"])


def measured_gpu() -> str:
    """The GPU whose speed is known.

    Examples:
        >>> isinstance(measured_gpu(), str)
        True
    """
    return f"an {json.loads(SPEED_FILE.read_text(encoding='utf-8'))['device']}"


def describe_experiments(
    experiments: Sequence[Experiment], out: Path, minutes: float | None, *, tiny: bool = False
) -> str:
    """The same of experiments, a line for each of their folders to the third level.

    Examples:
        >>> study = {
        ...     "name": "one",
        ...     "base": {"data": "Glyphs"},
        ...     "methods": {"circle": {"loss": "CircleLoss"}},
        ...     "seeds": [0, 1],
        ... }
        >>> print(describe_experiments([Experiment("CUB200/all", study, "CUB200", "resnet50")], Path("nowhere"), 60))
        CUB200/all: 2 training runs
        2 training runs, 0 done; about 2 GPU hours for the rest, at 60.0 minutes each as given
    """
    counts: Counter[str] = Counter()
    for each in experiments:
        counts["/".join(each.folder.split("/")[:3])] += each.trainings
    lines = [f"{folder}: {count:,} training runs" for folder, count in counts.items()]
    expected = None if tiny or minutes is not None else sum(each.seconds for each in experiments)
    return describe(lines, out, counts.total(), minutes, expected)


# ---- the command line


def make_parser(module: str, what: str, data: Iterable[str]) -> argparse.ArgumentParser:
    """A parser with the options that all studies of papers have.

    Examples:
        >>> make_parser("thesis", "", ["CUB200"]).parse_args(["--scale", "tiny"]).scale
        'tiny'
    """
    parser = argparse.ArgumentParser(prog=f"python -m studies.papers.{module}", description=what)
    parser.add_argument("--root", metavar="NAME=FOLDER", nargs="+", default=[], help=f"data sets: {', '.join(data)}")
    parser.add_argument("--scale", choices=("paper", "tiny"), default="paper", help="tiny: small networks, in minutes")
    parser.add_argument("--folder", help="for --scale tiny: images in place of printed characters, a folder per class")
    parser.add_argument(
        "--out", metavar="FOLDER", type=Path, help=f"default: studies/{module.replace('_', '-')}[-tiny]"
    )
    parser.add_argument("--workers", metavar="N", type=int, help="training runs at once")
    parser.add_argument(
        "--dry-run", action="store_true", help="count the training runs and estimate their time, without training"
    )
    parser.add_argument("--minutes-each", metavar="N", type=float, help="time of a training, for the estimate")
    return parser


def read_roots(
    parser: argparse.ArgumentParser, options: argparse.Namespace, data: Sequence[str], tiny: Sequence[str]
) -> dict[str, str | None]:
    """The data sets and their folders; at ``--scale tiny`` those that something small takes the place of.

    Examples:
        >>> parser = make_parser("thesis", "", ["CUB200", "Cars196"])
        >>> read_roots(parser, parser.parse_args(["--root", "CUB200=birds"]), ["CUB200", "Cars196"], ["CUB200"])
        {'CUB200': 'birds'}
    """
    if options.scale == "tiny":
        if options.root:
            parser.error("--root must be left out with --scale tiny, which takes --folder FOLDER or printed characters")
        return dict.fromkeys(tiny, options.folder)
    if options.folder:
        parser.error(
            "--folder must be left out without --scale tiny, which takes any images; --root NAME=FOLDER is meant"
        )
    roots: dict[str, str | None] = {}
    for each in options.root:
        name, equals, folder = each.partition("=")
        if name not in data or not equals:
            parser.error(f"--root must be NAME=FOLDER with a name of {', '.join(data)}, but it is {each}")
        roots[name] = folder
    if not roots:
        parser.error(f"--root must name at least one data set, such as {data[0]}=FOLDER, or --scale must be tiny")
    return roots


def out_of(options: argparse.Namespace, module: str) -> Path:
    """The folder of all results.

    Examples:
        >>> out_of(argparse.Namespace(out=None, scale="tiny"), "reality-check")
        PosixPath('studies/reality-check-tiny')
    """
    return Path(options.out or Path("studies", f"{module}-tiny" if options.scale == "tiny" else module))


def markdown(lines: Sequence[Sequence[str]]) -> str:
    """A table whose first line is its head.

    Examples:
        >>> print(markdown([["", "R@1"], ["Triplet", "50.00"]]))
        |  | R@1 |
        | --- | --- |
        | Triplet | 50.00 |
        <BLANKLINE>
    """
    head, *rows = lines
    return "".join(f"| {' | '.join(line)} |\n" for line in [head, ["---"] * len(head), *rows])


def stand_in(tiny: bool, folder: str | None) -> str:
    """The sentence that says what was trained in place of a paper's data sets and networks; empty at full scale.

    Examples:
        >>> stand_in(False, None)
        ''
    """
    what = f"the images of {folder}" if folder else "printed characters"
    sentence = "Made at --scale tiny: {} and small networks, trained for 4 steps, stand in for the data and the networks named.\n\n"
    return sentence.format(what) if tiny else ""


def overlay_root(recipe: str, root: str | None, changes: Mapping[str, Any] | None = None) -> Tree:
    """The base of a study: a recipe with the folder of its data, or with what ``--scale tiny`` changes.

    Examples:
        >>> overlay_root("thesis/cub-resnet50", "birds")
        {'config': 'thesis/cub-resnet50', 'data': {'init_args': {'root': 'birds'}}}
    """
    return {"config": recipe, **(changes or {"data": {"init_args": {"root": root}}})}
