"""What trained models look like: a map of test birds, their similarities, and what the loss does at each of them.

    python -m studies.birds.models FOLDER            where the runs of verdict.py are
    python -m studies.birds.models FOLDER --train    where they are not (they are too large to travel): train them again

writes FOLDER/models.json, which plot_models.py draws when it lies in results/models.json.  The models are those of
seed 0 in 512 dimensions: the best and the lowest on validation classes, contrastive, triplet and multi-similarity; with
--before also the trunk as ImageNet left it.  Nothing is chosen by what is measured here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.harness import MIB, machine, make_parser, versions
from likewise.analysis.stage import real_stage, show
from likewise.files import atomic_write
from likewise.formula import unit
from likewise.metrics import geometry
from likewise.protocols.combine import TEST_SET_FILE
from likewise.protocols.repeats import summarize
from likewise.protocols.study import STUDY_DATABASE, Study
from likewise.protocols.trial import Result
from likewise.report.layout import lay_out
from likewise.train import Embedded, Run, evaluate
from studies.birds.verdict import rows_of

OUT = "models.json"
ALWAYS = ("Multi-similarity", "Contrastive", "Triplet")
SEED, DIM = 0, 512
CLASSES = 20
"""On the map: every so many of the test classes, in their order, with all of their images."""

BINS = 200
BATCHES, BATCH_CLASSES, PER_CLASS = 20, 32, 4
LENS_BINS, FEWEST = 100, 30
BAND = (0.1, 0.9)
LARGEST = 2 * MIB

PICTURE = "a picture of the finished model, by which nothing is chosen"
"""Why a test set is opened."""


# ---- which models


def chosen(results: Sequence[Result]) -> dict[str, tuple[Result, list[str]]]:
    """By method the run to look at, and what it is there for: the best by validation first, the lowest last."""
    rows = rows_of(results, part="verdict", dim=DIM)
    found = summarize(rows, "val MAP@R", by=("method",)) if rows else []
    if not found:
        raise SystemExit(
            f"the folder must hold final trials of the part 'verdict' in {DIM} dimensions, but it has none"
        )
    seeds = max(len(each.scores) for each in found)
    order = sorted((each for each in found if len(each.scores) == seeds), key=lambda each: -each.interval.mean)
    wanted: dict[str, list[str]] = {order[0].name: ["best by validation"]}
    for name in ALWAYS:
        wanted.setdefault(name, [])
    wanted.setdefault(order[-1].name, []).append("lowest by validation")
    runs = {
        each.trial.method: each
        for each in results
        if each.status == "done"
        and each.trial.seed == SEED
        and (each.trial.labels.get("part"), each.trial.labels.get("dim")) == ("verdict", DIM)
    }
    missing = [name for name in wanted if name not in runs]
    if missing:
        print(f"left out, because seed {SEED} in {DIM} dimensions is not done: {', '.join(missing)}")
    return {name: (runs[name], roles) for name, roles in wanted.items() if name in runs}


# ---- their embeddings of the test set


def embedded(folder: Path, result: Result, *, train: bool) -> tuple[Tensor, Tensor]:
    """Embeddings and labels: as they were kept, or of the model that was kept, or of one that is trained again."""
    place = folder / result.run
    if not (place / TEST_SET_FILE).exists():
        there = (place / "run.yaml").exists() and Run(place).finished  # half of a training shows nothing
        if not there and not train:
            raise SystemExit(f"{place} must hold the run of {result.trial.method}, but it does not; --train makes it")
        if not there:
            train_again(folder, result)
        from studies.untrained import keep_test_set

        keep_test_set(place, result.trial.config, PICTURE)
    stored = np.load(place / TEST_SET_FILE)
    return torch.from_numpy(stored["embeddings"]).float(), torch.from_numpy(stored["labels"]).long()


def train_again(folder: Path, result: Result) -> None:
    """The same configuration once more; a GPU need not give the same bits."""
    from likewise.app.trials import run_trial

    print(f"training {result.trial.method} again", flush=True)
    again = run_trial(result.trial, lambda _: True, folder=folder)
    if again.status != "done":
        raise SystemExit(f"{result.trial.method} must be trained to its end, but it {again.status}: {again.error}")


def names_of(result: Result) -> list[str]:
    """What the test classes are called, where the data are; else their numbers."""
    from likewise.app.errors import UserError
    from likewise.app.parts import read_parts

    try:
        parts = read_parts(result.trial.config["data"], result.trial.config["split"])
    except UserError as missing:
        print(f"classes have no names: {missing}")
        return []
    return [] if parts.test is None else [str(name) for name in parts.test().class_names]


# ---- what is measured of each


def map_rows(labels: Tensor) -> tuple[Tensor, Tensor]:
    """The classes on the map and the rows of all their images."""
    classes = labels.unique()
    kept = classes[torch.arange(min(CLASSES, len(classes))) * len(classes) // min(CLASSES, len(classes))]
    return kept, torch.isin(labels, kept).nonzero().squeeze(1)


def on_map(embeddings: Tensor, labels: Tensor, kept: Tensor, rows: Tensor) -> dict[str, Any]:
    """Places in thousandths of the square; whether the nearest of all test images is of the class; R@1 of each class."""
    places, layout = lay_out(embeddings[rows], "tsne", SEED)
    hits = labels[nearest(embeddings, rows)] == labels[rows]
    by_class = [float(hits[labels[rows] == label].double().mean()) for label in kept]
    return {
        "layout": layout,
        "places": np.rint(1000 * places).astype(int).tolist(),
        "found": hits.int().tolist(),
        "R@1": [round(each, 4) for each in by_class],
    }


def nearest(embeddings: Tensor, rows: Tensor) -> Tensor:
    """The nearest of all others to each row."""
    directions = unit(embeddings)
    cosines = directions[rows] @ directions.T
    cosines[torch.arange(len(rows)), rows] = -2.0
    return cosines.argmax(dim=1)


def histogram(embeddings: Tensor, labels: Tensor) -> dict[str, Any]:
    """How often each cosine occurs, among all pairs of the test set."""
    found = geometry(embeddings, labels, bins=BINS)
    means = {f"{side} mean": round(found[f"{key}_mean"], 5) for side, key in SIDES.items()}
    return {side: found[key].tolist() for side, key in SIDES.items()} | means


SIDES = {"positive": "intra", "negative": "inter"}


# ---- the loss on it


def loss_of(config: Mapping[str, Any], classes: int) -> tuple[nn.Module | None, list[str]]:
    """The loss of a trial and what is to be known of it; a wrapper that regularizes is taken off."""
    from likewise.app.objects import KINDS, import_class, make
    from likewise.losses import ProxyLoss

    spec, notes = config["loss"], []
    while isinstance((spec.get("init_args") or {}).get("loss"), Mapping):
        notes.append(f"without what {spec['class_path'].rpartition('.')[2]} adds to it")
        spec = spec["init_args"]["loss"]
    if issubclass(import_class(spec["class_path"]), ProxyLoss):
        return None, ["it compares images with learned proxies of the training classes, and weighs no pair of images"]
    loss: nn.Module = make(KINDS["loss"], spec, {"num_classes": classes, "embedding_dim": config["model"]["dim"]})
    if any(True for _ in loss.parameters()):
        notes.append("what it learns is as it was before training")
    return loss, notes


def batches(labels: Tensor) -> list[Tensor]:
    """Rows of batches of some classes and some images of each, drawn with a fixed seed."""
    generator = torch.Generator().manual_seed(SEED)
    members = [(labels == label).nonzero().squeeze(1) for label in labels.unique()]
    members = [rows for rows in members if len(rows) >= PER_CLASS]
    drawn = []
    for _ in range(BATCHES):
        some = torch.randperm(len(members), generator=generator)[:BATCH_CLASSES].tolist()
        drawn.append(
            torch.cat([members[at][torch.randperm(len(members[at]), generator=generator)[:PER_CLASS]] for at in some])
        )
    return drawn


def lens(loss: nn.Module, embeddings: Tensor, labels: Tensor) -> dict[str, Any]:
    """How strongly pairs are pulled together or pushed apart, by their cosine: mean and band of weights in each interval.

    A weight is ``(1 − 2 I) ∂L/∂cos`` of an entry of the batch's matrix of cosines.
    """
    torch.manual_seed(SEED)
    cosines: dict[str, list[Tensor]] = {side: [] for side in SIDES}
    weights: dict[str, list[Tensor]] = {side: [] for side in SIDES}
    for rows in batches(labels):
        seen = show(loss, real_stage(embeddings[rows].double(), labels[rows]), lambda values: values)
        for side in SIDES:
            mask = getattr(seen, side)
            cosines[side].append(seen.values[mask])
            weights[side].append(seen.weights[mask])
    return {side: in_bins(torch.cat(cosines[side]), torch.cat(weights[side])) for side in SIDES}


def in_bins(cosines: Tensor, weights: Tensor) -> dict[str, Any]:
    """The mean and the band of the weights in each interval of cosines that has enough of them."""
    place = ((cosines.clamp(-1.0, 1.0) + 1.0) / 2.0 * LENS_BINS).long().clamp(max=LENS_BINS - 1)
    found: dict[str, list[Any]] = {"cosine": [], "count": [], "mean": [], "low": [], "high": []}
    for at in place.unique().tolist():
        here = weights[place == at]
        if len(here) < FEWEST:
            continue
        low, high = torch.quantile(here, torch.tensor(BAND, dtype=here.dtype)).tolist()
        found["cosine"].append(round(-1.0 + 2.0 * (at + 0.5) / LENS_BINS, 4))
        found["count"].append(len(here))
        for name, value in (("mean", float(here.mean())), ("low", low), ("high", high)):
            found[name].append(float(f"{value:.4g}"))
    return {**found, "idle": round(float((weights == 0.0).double().mean()), 4)}


def lens_of(config: Mapping[str, Any], embeddings: Tensor, labels: Tensor) -> dict[str, Any]:
    """The lens on a trial's loss, or in words why there is nothing to see."""
    codes = torch.unique(labels, return_inverse=True)[1]
    loss, notes = loss_of(config, int(codes.max()) + 1)
    if loss is None:
        return {"why": notes[0]}
    try:
        return {
            "loss": type(loss).__name__,
            "options": plain(config["loss"]),
            "notes": notes,
            **lens(loss, embeddings, codes),
        }
    except ValueError as refusal:
        return {"why": str(refusal)}


def plain(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers among a loss's arguments, those of what it wraps and of its miner as well."""
    found: dict[str, Any] = {}
    for name, value in (spec.get("init_args") or {}).items():
        if isinstance(value, Mapping) and "class_path" in value:
            found |= {f"{name}.{key}" if name != "loss" else key: each for key, each in plain(value).items()}
        elif isinstance(value, float | int) and not isinstance(value, bool):
            found[name] = float(f"{value:.4g}")
    return found


# ---- all together


def look(embeddings: Tensor, labels: Tensor, kept: Tensor, rows: Tensor) -> dict[str, Any]:
    """What is measured of a model whatever it was trained with."""
    found = evaluate(Embedded(embeddings, labels))
    return {
        "test": {name: found[name] for name in ("MAP@R", "R@1")},
        "map": on_map(embeddings, labels, kept, rows),
        "histogram": histogram(embeddings, labels),
    }


def report(folder: Path, *, train: bool = False, before: bool = False, initial: Path | None = None) -> dict[str, Any]:
    """Everything that the pictures need."""
    wanted = chosen(Study(folder / STUDY_DATABASE).results())
    models: list[dict[str, Any]] = []
    labels: Tensor | None = None
    kept = rows = torch.zeros(0)
    for name, (result, roles) in wanted.items():
        embeddings, those = embedded(folder, result, train=train)
        if labels is None:
            labels, (kept, rows) = those, map_rows(those)
        if not torch.equal(those, labels):
            raise SystemExit(f"all models must have the same test set, but that of {name} is another one")
        recorded = {
            f"{part} {each}": getattr(result, part)[each] for part in ("val", "test") for each in ("MAP@R", "R@1")
        }
        about = {"method": name, "roles": roles, "run": result.run, "seed": SEED, "dim": DIM, "recorded": recorded}
        seen = look(embeddings, labels, kept, rows)
        models.append({**about, **seen, "lens": lens_of(result.trial.config, embeddings, labels)})
        print(f"looked at {name}", flush=True)
    assert labels is not None
    first = next(iter(wanted.values()))[0]
    if before:
        from studies.untrained import embed_untrained

        initial = embed_untrained(folder / "runs" / "before", first.trial.config, PICTURE)
    if initial is not None:
        models.insert(0, looked_before(initial, labels, kept, rows))
    names = names_of(first)
    return {
        "machine": machine("cuda" if torch.cuda.is_available() else "cpu"),
        "versions": versions("torch", "scikit-learn"),
        "images": len(labels),
        "classes": len(labels.unique()),
        "on the map": [{"label": at, "name": names[at] if at < len(names) else str(at)} for at in kept.tolist()],
        "labels": torch.searchsorted(kept, labels[rows]).tolist(),
        "bins": BINS,
        "lens": {"batches": BATCHES, "classes": BATCH_CLASSES, "per class": PER_CLASS, "band": list(BAND)},
        "models": models,
    }


def looked_before(file: Path, labels: Tensor, kept: Tensor, rows: Tensor) -> dict[str, Any]:
    """A model that no loss has touched yet."""
    stored = np.load(file)
    if not np.array_equal(stored["labels"], labels.numpy()):
        raise SystemExit(f"{file} must hold the same test images in the same order, but its labels are others")
    seen = look(torch.from_numpy(stored["embeddings"]).float(), labels, kept, rows)
    return {"method": "Before training", "roles": [], **seen, "lens": {"why": "no loss has touched it yet"}}


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--train", action="store_true", help="train what is not there, from its configuration")
    parser.add_argument("--before", action="store_true", help="also look at the trunk before any training")
    parser.add_argument("--initial", type=Path, help="embeddings and labels (.npz) of a model before training")
    parser.add_argument("-o", "--out", type=Path, help="by default models.json in the folder")
    given = parser.parse_args()
    out = given.out or given.folder / OUT
    made = report(given.folder, train=given.train, before=given.before, initial=given.initial)
    text = json.dumps(made, separators=(",", ":")) + "\n"  # thousands of places, which nobody reads line by line
    if len(text) > LARGEST:
        raise SystemExit(f"the report must be below {LARGEST / MIB:.0f} MiB to travel, but it is {len(text) / MIB:.1f}")
    out.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(out) as part:
        part.write_text(text)
    print(f"wrote {out}, {len(text) / MIB:.2f} MiB")


if __name__ == "__main__":
    main()
