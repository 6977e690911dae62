"""Read the conditions of a training from its description: the only code that knows the layout of a ``run.yaml``."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from likewise.app.runs import open_run
from likewise.data import TRANSFORMS
from likewise.protocols import NOT_RECORDED, Conditions, ImageSet, Recorded, Result
from likewise.train import Run

Description: TypeAlias = Mapping[str, Any]
"""A ``run.yaml``, or ``{"config": …}`` for a training that has not run."""


def read_conditions(
    training: Run | Result | Description | str | os.PathLike[str],
    *,
    rounds: int | None = None,
    searched: Iterable[str] = (),
    tuned_on_test: bool = False,
) -> Conditions:
    """The conditions of a training, as comparisons need them.

    Args:
        training: a run or its folder, a result of a study, or a description: a ``run.yaml`` as a dict, or
            ``{"config": …}`` with a configuration.
        rounds: number of settings that were tried to find its hyper-parameters; ``None`` if that is not known.
        searched: the options that were searched, such as ``"loss.alpha"`` and ``"optimizer.lr"``.
        tuned_on_test: whether anything was chosen by looking at test classes.

    Examples:
        >>> conditions = read_conditions({"config": {"model": {"trunk": "resnet50", "dim": 64}}}, rounds=50)
        >>> conditions.trunk, conditions.embedding_size, conditions.search_budget
        ('resnet50', 64, 50)
    """
    if isinstance(training, Result):
        trial = training.trial.upgrade()
        description: dict[str, Any] = {"config": trial.config, "seed": trial.seed, "openings": training.openings}
        description["tuned_on_test"] = tuned_on_test or training.tuned_on_test
    elif isinstance(training, Mapping):
        description = {**training} | ({"tuned_on_test": True} if tuned_on_test else {})
    else:
        run = training if isinstance(training, Run) else open_run(Path(training))
        description = {**run.description, "openings": run.openings(), "ended": run.finished}
        description["tuned_on_test"] = tuned_on_test
    if rounds is not None:
        description["search"] = {"rounds": rounds, "searched": list(searched)}
    return _read(description)


def _read(run: Description) -> Conditions:
    model = _find(run, "config", "model")
    train = _section(run, "train")
    return Conditions(
        trunk=_trunks(model),
        pretraining=_find(model, "weights"),
        embedding_size=_find(model, "dim"),
        pooling=_find(model, "pool"),
        head=_find(model, "head"),
        unit_length=_find(model, "normalize"),
        layer_norm=_find(model, "layer_norm"),
        frozen_batch_norm=_find(model, "freeze_bn"),
        input_channels=_find(model, "in_channels"),
        network=run["model"] if isinstance(run.get("model"), Mapping) and "class" in run["model"] else NOT_RECORDED,
        augmentation=_augmentation(run),
        crop_size=_crop_size(run),
        optimizer=_settings(run, "optimizer", ("name", "weight_decay"), _OPTIMIZER),
        gradient_clipping=_clipping(train),
        learning_rate=_learning_rate(run),
        learning_rate_multipliers=_multipliers(run),
        schedule=_settings(run, "schedule", ("name", "warmup"), _SCHEDULE),
        batch_size=_batch_size(run),
        # with frozen batch norm the batch size has no effect
        images_at_once=None if _find(model, "freeze_bn") is True else _find(train, "chunk"),
        budget=_budget(run),
        model_selection=_some(train, "metric", "validate_every", "patience"),
        training_images=_image_set(run, "train"),
        validation_images=_image_set(run, "val"),
        test_set=_find(run, "data", "test", "description"),
        data_set=_data_set(run),
        split=_split(run),
        fold=_fold(run),
        test_set_feedback=_feedback(run),
        search_budget=_find(run, "search", "rounds"),
        searched=_searched(run),
        is_finished=_find(run, "ended"),
        loss=_find(run, "config", "loss"),
        loss_text=_find(run, "loss"),
        seed=run["seed"] if "seed" in run else _find(run, "config", "seed"),
        batch_composition=_composition(run),
        memory=_find(run, "config", "memory"),
        precision=_find(train, "precision"),
        averaged_weights=_find(train, "ema"),
        openings=_openings(run),
        versions=_find(run, "versions"),
        commit=_find(run, "commit"),
        version=_find(run, "likewise"),
        hardware=_find(run, "hardware"),
    )


def _find(tree: Any, *keys: str) -> Any:
    """The value at a path of keys."""
    for key in keys:
        if not isinstance(tree, Mapping) or key not in tree:
            return NOT_RECORDED
        tree = tree[key]
    return tree


def _section(run: Description, name: str) -> Any:
    """Settings of a training, as it ran or as it is configured."""
    for section in (run.get(name), _find(run, "config", name)):
        if isinstance(section, Mapping):
            return section
    return NOT_RECORDED


def _some(tree: Any, *keys: str) -> Any:
    known = {key: tree[key] for key in keys if key in tree} if isinstance(tree, Mapping) else {}
    return known or NOT_RECORDED


_OPTIMIZER = {
    "SGD": ("momentum",),
    "RMSprop": ("momentum", "alpha", "eps"),
    "Adam": ("betas", "eps"),
    "AdamW": ("betas", "eps"),
}
_SCHEDULE = {"step": ("step", "gamma"), "cosine": ("floor",)}


def _settings(run: Description, name: str, always: Sequence[str], by_name: Mapping[str, Sequence[str]]) -> Any:
    """Those settings of a section that its optimizer or schedule uses."""
    section = _section(run, name)
    if section is NOT_RECORDED:
        return NOT_RECORDED
    return {key: section[key] for key in (*always, *by_name.get(section.get("name", ""), ())) if key in section}


def _is_frozen(run: Description) -> bool:
    """Whether only the head was trained, on features that were computed once."""
    return bool(_find(run, "config", "model", "freeze") == "trunk")


def _trunks(model: Any) -> Any:
    """The trunk, and that of a second encoder."""
    trunk, text = _find(model, "trunk"), _find(model, "text")
    return trunk if text in (NOT_RECORDED, None) else f"{trunk} and {text}"


def _augmentation(run: Description) -> Any:
    transform, scales = (_find(run, "config", name) for name in ("transform", "scales"))
    if _is_frozen(run):
        return f"none: frozen features of {transform}"
    return f"{transform} at the scales {scales}" if isinstance(scales, list) else transform


def _crop_size(run: Description) -> Any:
    transform = TRANSFORMS.get(str(_find(run, "config", "transform")))
    if transform is None:
        return NOT_RECORDED
    size = transform.test.size if _is_frozen(run) else transform.train.size
    return {"training": size, "evaluation": transform.test.size}


def _image_set(run: Description, part: str) -> Recorded[ImageSet | None]:
    images = _find(run, "data", part)
    if images is None:
        return None
    if not isinstance(images, Mapping) or "fingerprint" not in images:
        return NOT_RECORDED
    return ImageSet(images.get("name"), images.get("images"), images.get("classes"), str(images["fingerprint"]))


_PLACES = ("root", "path", "folder", "download")
"""Options of a data set that say where its files are."""


def _data_set(run: Description) -> Any:
    data = _find(run, "config", "data")
    if not isinstance(data, Mapping):
        return data
    options = {key: value for key, value in (data.get("init_args") or {}).items() if key not in _PLACES}
    return {"class": _class_name(data), **options}


def _class_name(spec: Mapping[str, Any]) -> str:
    return str(spec.get("class_path", "")).rpartition(".")[2]


def _split(run: Description) -> Any:
    """Which classes are held out, and by which rule; the number of the fold is a separate condition."""
    split = _find(run, "config", "split")
    if not isinstance(split, Mapping):
        return split
    defaults = {"validation": None, "test": 0.2, "seed": 0, "folds": None, "contiguous": False}
    return {key: split.get(key, default) for key, default in defaults.items()}


def _fold(run: Description) -> Any:
    split = _find(run, "config", "split")
    return split.get("fold", 0) if isinstance(split, Mapping) else NOT_RECORDED


def _feedback(run: Description) -> Recorded[tuple[str, ...]]:
    """How the test set may have influenced the training."""
    is_validated, openings = _is_validated(run), run.get("openings")
    if is_validated is None and "tuned_on_test" not in run and "openings" not in run:
        return NOT_RECORDED
    feedback = ["tuned on test"] if run.get("tuned_on_test") else []
    if isinstance(openings, Sequence) and not all(line.get("finished", True) for line in openings):
        feedback.append("test set opened before the end of training")
    if is_validated is False:
        feedback.append("no validation")
    return tuple(feedback)


def _is_validated(run: Description) -> bool | None:
    """Whether there were validation classes; ``None`` if that is not recorded."""
    share = _find(run, "config", "split", "validation")
    if _find(_section(run, "train"), "validate_every") == 0:
        return False
    if isinstance(run.get("data"), Mapping) and "val" in run["data"]:
        return run["data"]["val"] is not None
    if _find(run, "config", "split", "folds") not in (NOT_RECORDED, None):
        return True
    return None if share is NOT_RECORDED else share is None or share > 0


def _openings(run: Description) -> Any:
    openings = run.get("openings", NOT_RECORDED)
    return len(openings) if isinstance(openings, Sequence) and not isinstance(openings, str) else openings


_SEARCHABLE = {
    "learning rate": {"optimizer.lr", "optimizer.lrs.trunk", "optimizer.lrs.model"},
    "learning-rate multipliers": {"optimizer.lrs.trunk", "optimizer.lrs.head"},
}
"""The options of a search that change a condition."""


def _searched(run: Description) -> Any:
    options = _find(run, "search", "searched")
    if options is NOT_RECORDED:
        return NOT_RECORDED
    return frozenset(what for what, paths in _SEARCHABLE.items() if paths & set(options))


def _images_in_batch(run: Description) -> int | None:
    sampler = _find(run, "config", "sampler")
    options = _find(sampler, "init_args")
    if not isinstance(options, Mapping):
        return None
    if isinstance(options.get("batch_size"), int):
        return int(options["batch_size"])
    each = 2 if _class_name(sampler) == "PairSampler" else options.get("per_class")
    classes = options.get("classes")
    return classes * each if isinstance(classes, int) and isinstance(each, int) else None


def _batch_size(run: Description) -> Any:
    size, accumulate = _images_in_batch(run), _find(_section(run, "train"), "accumulate")
    if size is None:
        return NOT_RECORDED
    return {"images": size, "batches a step": 1 if accumulate is NOT_RECORDED else accumulate}


def _composition(run: Description) -> Any:
    sampler = _find(run, "config", "sampler")
    if not isinstance(sampler, Mapping):
        return NOT_RECORDED
    options = {key: value for key, value in (sampler.get("init_args") or {}).items() if key != "steps"}
    train = _section(run, "train")
    mining = {key: _find(train, key) for key in ("mine_every", "mine_steps")}
    options |= {key: value for key, value in mining.items() if value not in (None, NOT_RECORDED)}
    return {"sampler": _class_name(sampler), **options}


def _clipping(train: Any) -> Any:
    """The norm to which gradients are clipped, and the value where there is one."""
    norm, value = _find(train, "clip"), _find(train, "clip_value")
    return norm if value in (None, NOT_RECORDED) else {"norm": norm, "value": value}


def _budget(run: Description) -> Any:
    """Epochs, and batches in all of them together."""
    epochs, batch = _find(_section(run, "train"), "epochs"), _images_in_batch(run)
    if epochs is NOT_RECORDED:
        return NOT_RECORDED
    steps, images = _find(run, "config", "sampler", "init_args", "steps"), _find(run, "data", "train", "images")
    if not isinstance(steps, int) and isinstance(images, int) and batch:
        steps = max(1, images // batch)
    if not isinstance(steps, int):
        steps = _find(run, "data", "train", "batches")
    return {"epochs": epochs} | ({"batches": epochs * steps} if isinstance(steps, int) else {})


def _rates(run: Description) -> dict[str, float] | None:
    """Learning rates of the network's groups; the loss's groups come after them and belong to the method."""
    groups, learned = run.get("groups"), _find(run, "model", "learned")
    if isinstance(groups, Mapping) and groups:
        rates, total = {}, 0
        for name, group in groups.items():
            if total >= learned if isinstance(learned, int) else name not in ("trunk", "head", "model"):
                break
            rates[name], total = float(group["lr"]), total + group["parameters"]
        return rates or None
    optimizer = _section(run, "optimizer")
    if _find(optimizer, "lr") is NOT_RECORDED:
        return None
    names = ("trunk",) if _find(run, "config", "model", "head") == "none" else ("trunk", "head")
    names = ("head",) if _is_frozen(run) else names
    lrs = optimizer.get("lrs") or {}
    return {name: float(lrs.get(name, optimizer["lr"])) for name in names}


def _learning_rate(run: Description) -> Any:
    rates = _rates(run)
    return NOT_RECORDED if rates is None else next(iter(rates.values()))


def _multipliers(run: Description) -> Any:
    rates, warmup = _rates(run), _find(_section(run, "train"), "trunk_warmup")
    if rates is None:
        return NOT_RECORDED
    (_, first), *others = rates.items()
    # to nine digits: 1e-3 / 1e-4 and 1e-4 / 1e-5 are not the same float
    ratios = {name: float(f"{rate / first:.9g}") if first else rate for name, rate in others}
    return {**ratios, "epochs in which the trunk rests": 0 if warmup is NOT_RECORDED else warmup}
