"""What a run's model is worth: its parts embedded, measured and shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from likewise.cli.defaults import Tree
from likewise.cli.mistakes import Mistake, making
from likewise.cli.parts import read_parts
from likewise.cli.pieces import Machine, Store, shown_as
from likewise.cli.screen import columns, note
from likewise.data import ImageCache
from likewise.metrics import Interval
from likewise.report import Compared, Part, Scores, measure_part, write_report
from likewise.train import Run, embed
from likewise.trunks import Embedder

LAST = "model"
"""What the model at the end of a training is called."""


@dataclass(frozen=True)
class Opening:
    """The wish to open the test set.

    Examples:
        >>> Opening("the final number").why
        'the final number'
    """

    why: str


def model_file(run: Run, name: str | None) -> Path:
    """The file of a run's model: ``best``, ``model`` (or ``last``: at the end of training), or any file.

    Without a name it is the best one, or the last where none was chosen on validation.

    Examples:
        >>> import tempfile
        >>> model_file(Run.create(tempfile.mkdtemp() + "/run", {}), None)
        Traceback (most recent call last):
        likewise.cli.mistakes.Mistake: .../run has no model model: it has none yet
    """
    if name is None:
        name = "best" if (run.folder / "best.safetensors").exists() else LAST
    name = LAST if name == "last" else name
    file = Path(name) if name.endswith(".safetensors") else run.folder / f"{name}.safetensors"
    if not file.is_file():
        there = [each for each in ("best", LAST) if (run.folder / f"{each}.safetensors").exists()]
        listed = f"it has {' and '.join(there)}" if there else "it has none yet"
        raise Mistake(f"{run.folder} has no model {name}: {listed}")
    return file


def parts_of(run: Run, config: Tree, machine: Machine, *, model: str | None = None, test: Opening | None) -> list[Part]:
    """The validation part of a run, embedded, and its test part if that is to be opened.

    Examples:
        >>> import tempfile, torch
        >>> parts_of(Run.create(tempfile.mkdtemp() + "/run", {}), {}, Machine(torch.device("cpu")), test=None)
        Traceback (most recent call last):
        likewise.cli.mistakes.Mistake: .../run has no model model: it has none yet
    """
    file = model_file(run, model)
    with making(f"the model {file}"):
        embedder = Embedder.load(file).to(machine.device)
    parts = read_parts(config["data"], config["split"])
    store = Store(config, shown_as(config, embedder), machine)
    sealed = store.sealed(parts)
    if test is not None and sealed is None:
        raise Mistake(f"{run.folder} has no test part: nothing was sealed when it was trained")
    _, val = store.cut(parts)
    made = [] if val is None else [_embedded("validation", embedder, store.held(val), store)]
    if test is not None and sealed is not None:
        images = sealed.open(run, test.why, model=file.stem if file.parent == run.folder else str(file))
        made.append(_embedded("test", embedder, images, store))
    return made


def _embedded(name: str, model: Embedder, images: ImageCache, store: Store) -> Part:
    found = embed(model, store.in_order(images), precision=store.config["plan"]["precision"])
    return Part(name, found.embeddings, found.labels, images.class_names, images.image, images.is_query)


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
        raise Mistake(f"no image of the {part.name} part has another one of its class: there is nothing to find")
    first = found.scores["R@1"]  # precision at one is recall at one
    rows = {name: value for name, value in found.scores.items() if name.startswith("R@")}
    return {**rows, "P@1": first, **found.scores}


def table(found: dict[str, Interval]) -> str:
    """The metrics of a part, for a terminal.

    Examples:
        >>> print(table({"R@1": Interval(0.5, 0.25, 0.75, 0.95, 10)}))
               per cent  95% interval
          R@1  50.00     25.00 to 75.00
    """
    rows = [("", "per cent", "95% interval")]
    for name, value in found.items():
        rows.append((name, f"{100 * value.mean:.2f}", f"{100 * value.low:.2f} to {100 * value.high:.2f}"))
    return columns(rows)


def report_on(run: Run, config: Tree, machine: Machine, *, test: Opening | None) -> Path:
    """Write the report of a run with what can be shown of it now.

    Examples:
        >>> import tempfile, torch
        >>> report_on(Run.create(tempfile.mkdtemp() + "/run", {}), {}, Machine(torch.device("cpu")), test=None)
        Traceback (most recent call last):
        likewise.cli.mistakes.Mistake: .../run has no model model: it has none yet
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
    """Write a report; without scikit-learn its map is a plainer one.

    Examples:
        >>> import tempfile
        >>> write(Run.create(tempfile.mkdtemp() + "/run", {}), []).name
        'report.html'
    """
    layout = "tsne"
    if find_spec("sklearn") is None:
        layout = "pca"
        note("the report's map shows principal components; pip install 'likewise[report]' gets t-SNE")
    return write_report(run.folder, parts, layout=layout, out=out, baselines=baselines, comparison=comparison)
