"""Evaluate a run's model: embed its data, measure it and write the report."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from likewise.app.build import Machine, Store, make_transform, this_machine
from likewise.app.defaults import Config
from likewise.app.errors import UserError, making
from likewise.app.pairs import PairStore, mean_of_directions
from likewise.app.parts import Parts, read_parts
from likewise.app.recalls import recall_ks
from likewise.app.runs import open_run
from likewise.data import ImageCache, PairTable
from likewise.formula import whole_number
from likewise.metrics import Interval
from likewise.report import Compared, Part, Scores, measure_part, write_report
from likewise.train import Run, Sealed, check_ks, embed
from likewise.trunks import Embedder, TwoTowers

LAST = "model"
"""The name of the model at the end of a training."""


@dataclass(frozen=True)
class Opening:
    """A request to open the test set.

    Examples:
        >>> Opening("the final number").why
        'the final number'
    """

    why: str


def model_file(run: Run, name: str | None) -> Path:
    """The file of a run's model: ``best``, ``model`` (or ``last``: at the end of training), or any file.

    By default the best one, or the last if there was no validation.

    Examples:
        >>> import tempfile
        >>> model_file(Run.create(tempfile.mkdtemp() + "/run", {}), None)
        Traceback (most recent call last):
        likewise.app.errors.UserError: .../run has no model yet: likewise train --resume .../run continues its training
    """
    if name is None:
        name = "best" if (run.folder / "best.safetensors").exists() else LAST
    name = LAST if name == "last" else name
    file = Path(name) if name.endswith(".safetensors") else run.folder / f"{name}.safetensors"
    if not file.is_file():
        there = [each for each in ("best", LAST) if (run.folder / f"{each}.safetensors").exists()]
        if not there:
            raise UserError(
                f"{run.folder} has no model yet: likewise train --resume {run.folder} continues its training"
            )
        raise UserError(f"{run.folder} has no model {name}: it has {' and '.join(there)}")
    return file


def parts_of(
    run: Run,
    config: Config,
    machine: Machine,
    *,
    model: str | None = None,
    test: Opening | None,
    ks: Sequence[int] | None = None,
    clusterings: int = 0,
) -> list[Part]:
    """The validation part of a run, embedded, and its test part if it is opened.

    Examples:
        >>> import tempfile, torch
        >>> parts_of(Run.create(tempfile.mkdtemp() + "/run", {}), {}, Machine(torch.device("cpu")), test=None)
        Traceback (most recent call last):
        likewise.app.errors.UserError: .../run has no model yet: likewise train --resume .../run continues its training
    """
    with making("--clusters"):
        whole_number("clusterings", clusterings, 0)
    file = model_file(run, model)
    parts = read_parts(config["data"], config["split"])
    store = _open_store(file, config, machine, paired=isinstance(parts.seen, PairTable))
    sealed = store.sealed(parts)
    if test is not None and sealed is None:
        raise UserError(f"{run.folder} has no test part: nothing was sealed when it was trained")
    _, val = store.split(parts)
    with making("--ks"):
        recalls = recall_ks(config) if ks is None else check_ks(ks)
    made = [] if val is None else store.embed("validation", val)
    if test is not None and sealed is not None:
        name = file.stem if file.parent == run.folder else str(file)
        images = sealed.open(run, test.why, model=name, evaluating=True)
        made += store.embed("test", images)
    return [replace(part, ks=recalls, clusterings=clusterings) for part in made]


@dataclass(frozen=True)
class _ImageStore:
    """The images of a run, as its model takes them; a `PairStore` for data of one side."""

    store: Store
    model: Embedder

    def split(self, parts: Parts) -> tuple[ImageCache, ImageCache | None]:
        return self.store.split(parts)

    def sealed(self, parts: Parts) -> Sealed[ImageCache] | None:
        return self.store.sealed(parts)

    def embed(self, name: str, images: ImageCache) -> list[Part]:
        placed = self.store.place(images)
        found = embed(self.model, self.store.in_order(placed), precision=self.store.config["train"]["precision"])
        roles = images.is_query, images.cameras
        return [Part(name, found.embeddings, found.labels, images.class_names, placed.image, *roles)]


def _open_store(file: Path, config: Config, machine: Machine, *, paired: bool) -> Any:
    """The model of a run with its data: an `_ImageStore` or a `PairStore`."""
    with making(f"the model {file}"):
        if paired:
            towers = TwoTowers.load(file).to(machine.device)
            return PairStore(Store(config, make_transform(config, towers), machine), towers)
        model = Embedder.load(file).to(machine.device)
        return _ImageStore(Store(config, make_transform(config, model), machine), model)


def scores(part: Part) -> dict[str, Interval]:
    """The metrics of a part with 95% intervals, drawn over classes.

    Examples:
        >>> import torch
        >>> part = Part("test", torch.eye(2)[[0, 0, 1, 1]], torch.tensor([0, 0, 1, 1]), ["a", "b"], lambda index: None)
        >>> list(scores(part))
        ['R@1', 'R@2', 'R@4', 'R@8', 'P@1', 'RP', 'MAP@R', 'MRR', 'mAP']
    """
    found = measure_part(part, seed=0)
    if found is None:
        raise UserError(f"every class of the {part.name} part has only one image: there is nothing to retrieve")
    first = found.scores["R@1"]  # precision@1 equals recall@1
    rows = {name: value for name, value in found.scores.items() if name.startswith("R@")}
    return {**rows, "P@1": first, **found.scores}


@dataclass(frozen=True)
class Evaluation:
    """The metrics of a model, and the file of its report.

    Args:
        model: the model's file.
        parts: the parts that were measured, embedded.
        scores: by part, the metrics with their 95% intervals.
        report: the report's file.
        openings: number of times that the test set has been opened.

    Examples:
        >>> from dataclasses import fields
        >>> [each.name for each in fields(Evaluation)]
        ['model', 'parts', 'scores', 'report', 'openings']
    """

    model: Path
    parts: tuple[Part, ...]
    scores: Mapping[str, Mapping[str, Interval]]
    report: Path
    openings: int


def evaluate(
    run: Run | str | Path,
    *,
    model: str | None = None,
    test: str | None = None,
    ks: Sequence[int] | None = None,
    clusterings: int = 0,
    machine: Machine | None = None,
    allow: Collection[str] = (),
) -> Evaluation:
    """Measure a run's model on its validation classes, and on the sealed test set if a reason is given.

    Args:
        run: the run, or its folder.
        model: ``"best"`` (default), ``"last"`` (the end of training), or a file.
        test: the reason for opening the test set, for the record; ``None`` leaves it sealed.
        ks: values of k for recall@k; by default those of the configuration or of the data set.
        clusterings: also measure NMI, AMI and F1, averaged over this number of k-means runs.
        machine: the device; by default the one that Accelerate chooses.
        allow: a user's package that contains the run's data set; its loss is never imported.

    Examples:
        >>> evaluate("nowhere")
        Traceback (most recent call last):
        likewise.app.errors.UserError: nowhere must be the folder of a run, but it has no run.yaml
    """
    from likewise.app.training import evaluation_config_of  # imports a parser, which trials do not need

    run = run if isinstance(run, Run) else open_run(Path(run))
    config, file = evaluation_config_of(run, allow), model_file(run, model)
    opening = None if test is None else Opening(test)
    machine = this_machine() if machine is None else machine
    parts = parts_of(run, config, machine, model=model, test=opening, ks=ks, clusterings=clusterings)
    if not parts:
        raise UserError(f"{run.folder} has no validation part to measure on; --test opens the test set")
    found = {part.name: scores(part) for part in parts}
    for name in dict.fromkeys(part.name.partition(",")[0] for part in parts):
        plain = {
            each: {metric: value.mean for metric, value in one.items()}
            for each, one in found.items()
            if each.partition(",")[0] == name
        }
        split = "val" if name == "validation" else name
        run.record_evaluation(split, mean_of_directions(plain), model=file.stem)
    page = write(run, parts)
    run.close_opening()
    return Evaluation(file, tuple(parts), found, page, len(run.openings()))


def report(
    run: Run | str | Path,
    out: Path | None = None,
    *,
    ks: Sequence[int] | None = None,
    clusterings: int = 0,
    machine: Machine | None = None,
    allow: Collection[str] = (),
) -> Path:
    """Rewrite a run's report, from its records and its validation part; returns its file.

    Args:
        run: the run, or its folder.
        out: output file; by default ``report.html`` in the run's folder.
        ks: values of k for recall@k; by default those of the configuration or of the data set.
        clusterings: also measure NMI, AMI and F1, averaged over this number of k-means runs.
        machine: the device; by default the one that Accelerate chooses.
        allow: a user's package that contains the run's data set; its loss is never imported.

    Examples:
        >>> report("nowhere")
        Traceback (most recent call last):
        likewise.app.errors.UserError: nowhere must be the folder of a run, but it has no run.yaml
    """
    from likewise.app.training import evaluation_config_of  # imports a parser, which trials do not need

    run = run if isinstance(run, Run) else open_run(Path(run))
    config = evaluation_config_of(run, allow)
    machine = this_machine() if machine is None else machine
    parts = parts_of(run, config, machine, test=None, ks=ks, clusterings=clusterings)
    return write(run, parts, out)


def report_on(run: Run, config: Config, machine: Machine, *, test: Opening | None) -> Path:
    """Write the report of a run from the data that can be shown now.

    Examples:
        >>> import tempfile, torch
        >>> report_on(Run.create(tempfile.mkdtemp() + "/run", {}), {}, Machine(torch.device("cpu")), test=None)
        Traceback (most recent call last):
        likewise.app.errors.UserError: .../run has no model yet: likewise train --resume .../run continues its training
    """
    return write(run, parts_of(run, config, machine, test=test))


def write(
    run: Run,
    parts: list[Part],
    out: Path | None = None,
    *,
    baselines: Mapping[str, Scores] | None = None,
    comparison: Sequence[Compared] = (),
) -> Path:
    """Write a report.

    Examples:
        >>> import tempfile
        >>> write(Run.create(tempfile.mkdtemp() + "/run", {}), []).name
        'report.html'
    """
    return write_report(run.folder, parts, out=out, baselines=baselines, comparison=comparison)
