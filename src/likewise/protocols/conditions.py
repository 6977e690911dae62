"""Under what conditions a training ran: each setting that a comparison looks at, and why it matters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from likewise.data import RECIPES

Description: TypeAlias = Mapping[str, Any]
Severity = Literal["unfair", "note"]

UNKNOWN = "not recorded"
"""The value of what a description does not say."""


@dataclass(frozen=True)
class Aspect:
    """A setting of a training, and how it is read off a description.

    Args:
        what: its name.
        why: why a difference in it matters, with the source.
        read: ways to read it; the one that the most descriptions allow is taken.
        severity: of a difference in it.
        folds: whether it may differ between runs of one name; then each name must have all its values.
        within: whether it may differ between names; then only the runs of one name must agree.
        derived: whether it follows from other settings, so that its absence need not be told.

    Examples:
        >>> [trunk] = [aspect for aspect in ASPECTS if aspect.what == "trunk"]
        >>> trunk.read[0]({"config": {"model": {"trunk": "resnet50"}}})
        'resnet50'
    """

    what: str
    why: str
    read: tuple[Callable[[Description], Any], ...]
    severity: Severity = "unfair"
    folds: bool = False
    within: bool = False
    derived: bool = False


def feedback(description: Description) -> tuple[str, ...]:
    """How the test set may have had a say in what was trained: not at all, if nothing is returned.

    Args:
        description: a ``run.yaml``, or what `described` returns.

    Examples:
        >>> feedback({"data": {"train": {}, "val": None}, "openings": [{"finished": False}]})
        ('test set opened before the end of training', 'no validation')
    """
    found = ["tuned on test"] if description.get("tuned_on_test") else []
    openings = description.get("openings")
    if isinstance(openings, Sequence) and not all(line.get("finished", True) for line in openings):
        found.append("test set opened before the end of training")
    if validated(description) is False:
        found.append("no validation")
    return tuple(found)


def at(said: Any, path: str) -> Any:
    """What stands at a path of keys.

    Examples:
        >>> at({"plan": {"epochs": 3}}, "plan.epochs"), at({"plan": None}, "plan.epochs")
        (3, 'not recorded')
    """
    for key in path.split("."):
        if not isinstance(said, Mapping) or key not in said:
            return UNKNOWN
        said = said[key]
    return said


def _path(path: str) -> Callable[[Description], Any]:
    return lambda run: at(run, path)


def _section(run: Description, name: str) -> Mapping[str, Any] | None:
    """The settings of a training, as it ran or as it is configured."""
    for said in (run.get(name), at(run, f"config.{name}")):
        if isinstance(said, Mapping):
            return said
    return None


def _settings(
    section: str, always: Sequence[str], by_name: Mapping[str, Sequence[str]]
) -> Callable[[Description], Any]:
    """Those settings of a section that mean something for the kind that it names."""

    def read(run: Description) -> Any:
        said = _section(run, section)
        if said is None:
            return UNKNOWN
        return {key: said[key] for key in (*always, *by_name.get(said.get("name", ""), ())) if key in said}

    return read


def _at_once(run: Mapping[str, Any]) -> Any:
    """How many images a batch norm sees; whoever has none that learns sees no difference."""
    return None if at(run, "config.model.freeze_bn") is True else _in_plan("chunk")(run)


def _in_plan(*keys: str) -> Callable[[Description], Any]:
    def read(run: Description) -> Any:
        plan = _section(run, "plan")
        known = {} if plan is None else {key: plan[key] for key in keys if key in plan}
        return UNKNOWN if not known else known[keys[0]] if len(keys) == 1 else known

    return read


def _network(run: Description) -> Any:
    said = run.get("model")
    return said if isinstance(said, Mapping) and "class" in said else UNKNOWN


def _crop(run: Description) -> Any:
    recipe = RECIPES.get(str(at(run, "config.images")))
    return UNKNOWN if recipe is None else {"training": recipe.train.size, "evaluation": recipe.test.size}


def _part(part: str) -> Callable[[Description], Any]:
    def read(run: Description) -> Any:
        said = at(run, f"data.{part}")
        if not isinstance(said, Mapping) or "fingerprint" not in said:
            return "none" if said is None else UNKNOWN
        images = f"{said.get('images')} images of {said.get('classes')} classes"
        return f"{said.get('name')}, {images}, checksum {str(said['fingerprint'])[:12]}"

    return read


def configured_data(run: Description) -> Any:
    """The data set as configured; where its files lie is no difference.

    Examples:
        >>> configured_data(
        ...     {"config": {"data": {"class_path": "likewise.data.CUB200", "init_args": {"root": "birds"}}}}
        ... )
        {'class': 'CUB200'}
    """
    said = at(run, "config.data")
    if not isinstance(said, Mapping):
        return said
    options = said.get("init_args") or {}
    kept = {key: value for key, value in options.items() if key not in ("root", "path", "folder", "download")}
    return {"class": str(said.get("class_path", "")).rpartition(".")[2], **kept}


def split_of(run: Description) -> Any:
    """Which classes are held out, by which rule; which of the folds it is is no difference.

    Examples:
        >>> split_of({"config": {"split": {"validation": 0.1, "fold": 3}}})
        {'validation': 0.1, 'test': 0.2, 'seed': 0, 'folds': None, 'contiguous': False}
    """
    said = at(run, "config.split")
    if not isinstance(said, Mapping):
        return said
    defaults = {"validation": None, "test": 0.2, "seed": 0, "folds": None, "contiguous": False}
    return {key: said.get(key, default) for key, default in defaults.items()}


def _fold(run: Description) -> Any:
    said = at(run, "config.split")
    return said.get("fold", 0) if isinstance(said, Mapping) else UNKNOWN


def validated(run: Description) -> bool | None:
    """Whether there were validation classes; ``None`` where nothing says so.

    Examples:
        >>> validated({"config": {"split": {"validation": 0.0}}}), validated({})
        (False, None)
    """
    plan, share = _section(run, "plan"), at(run, "config.split.validation")
    if plan is not None and plan.get("validate_every") == 0:
        return False
    if isinstance(run.get("data"), Mapping) and "val" in run["data"]:
        return run["data"]["val"] is not None
    if at(run, "config.split.folds") not in (UNKNOWN, None):
        return True
    return None if share == UNKNOWN else share is None or share > 0


def _told_feedback(run: Description) -> Any:
    if validated(run) is None and "tuned_on_test" not in run and "openings" not in run:
        return UNKNOWN
    return ", ".join(feedback(run)) or "none"


def _openings(run: Description) -> Any:
    said = run.get("openings", UNKNOWN)
    return len(said) if isinstance(said, Sequence) and not isinstance(said, str) else said


def _batch(run: Description) -> int | None:
    """How many images make a batch."""
    said = at(run, "config.sampler.init_args")
    if not isinstance(said, Mapping):
        return None
    if isinstance(said.get("batch_size"), int):
        return int(said["batch_size"])
    if not isinstance(said.get("classes"), int):
        return None
    pairs = str(at(run, "config.sampler.class_path")).endswith("PairSampler")
    each = 2 if pairs else said.get("per_class")
    return said["classes"] * each if isinstance(each, int) else None


def _batch_size(run: Description) -> Any:
    size, plan = _batch(run), _section(run, "plan")
    return UNKNOWN if size is None else {"images": size, "batches a step": (plan or {}).get("accumulate", 1)}


def _composition(run: Description) -> Any:
    said = at(run, "config.sampler")
    if not isinstance(said, Mapping):
        return UNKNOWN
    options = {key: value for key, value in (said.get("init_args") or {}).items() if key != "steps"}
    return {"sampler": str(said.get("class_path", "")).rpartition(".")[2], **options}


def _budget(run: Description) -> Any:
    """Epochs, and batches in all of them together."""
    plan, batch = _section(run, "plan"), _batch(run)
    if plan is None or "epochs" not in plan:
        return UNKNOWN
    steps, images = at(run, "config.sampler.init_args.steps"), at(run, "data.train.images")
    if not isinstance(steps, int) and isinstance(images, int) and batch:
        steps = max(1, images // batch)
    if not isinstance(steps, int):
        steps = at(run, "data.train.batches")
    told = {"epochs": plan["epochs"]}
    return told | ({"batches": plan["epochs"] * steps} if isinstance(steps, int) else {})


def _rates(run: Description) -> dict[str, float] | None:
    """Learning rates of the model's own groups: those of the loss come after them, and are the method's."""
    groups, learned = run.get("groups"), at(run, "model.learned")
    if isinstance(groups, Mapping) and groups:
        rates, total = {}, 0
        for name, group in groups.items():
            if total >= learned if isinstance(learned, int) else name not in ("trunk", "head", "model"):
                break
            rates[name], total = float(group["lr"]), total + group["parameters"]
        return rates or None
    optimizer = _section(run, "optimizer")
    if optimizer is None or "lr" not in optimizer:
        return None
    own = {} if at(run, "config.model.head") == "none" else {"head": 0.0}
    lrs = optimizer.get("lrs") or {}
    return {name: float(lrs.get(name, optimizer["lr"])) for name in ("trunk", *own)}


def _rate(run: Description) -> Any:
    rates = _rates(run)
    return UNKNOWN if rates is None else next(iter(rates.values()))


def _multipliers(run: Description) -> Any:
    rates = _rates(run)
    if rates is None:
        return UNKNOWN
    (_, first), *others = rates.items()
    # to nine digits: 1e-3 / 1e-4 and 1e-4 / 1e-5 are not the same float
    times = {name: float(f"{rate / first:.9g}") if first else rate for name, rate in others}
    return {**times, "epochs in which the trunk rests": (_section(run, "plan") or {}).get("trunk_warmup", 0)}


_OPTIMIZER = {
    "SGD": ("momentum",),
    "RMSprop": ("momentum", "alpha", "eps"),
    "Adam": ("betas", "eps"),
    "AdamW": ("betas", "eps"),
}
_SCHEDULE = {"step": ("step", "gamma"), "cosine": ("floor",)}
MODEL = frozenset(
    {"trunk", "pretraining", "embedding size", "pooling", "head", "layer norm", "frozen batch norm", "input channels"}
)
"""Settings of the network, from which its size follows."""


WHY = {
    "trunk": "Accuracy differs between networks even before training, and deeper ones embed better (the thesis, 3.5.1).",
    "pretraining": "Where a network starts from decides much of where it ends (the thesis, 3.5.1).",
    "embedding size": "More dimensions probably raise accuracy (the thesis, 3.5.1).",
    "pooling": "Proxy-Anchor's code adds maximum to average pooling, and its paper does not say so (the thesis, 3.5.1).",
    "head": "Another head is another network (the reality check, unfair comparisons: network architecture).",
    "unit length": "All embeddings must be of unit length, or none (the reality check, fair comparisons).",
    "layer norm": "Another head is another network (the reality check, unfair comparisons: network architecture).",
    "frozen batch norm": "Multi-similarity's code freezes batch norm, and its paper does not say so (the thesis, 3.5.1).",
    "network as built": "Another network is another accuracy (the thesis, 3.5.1).",
    "augmentation": "Stronger augmentation lifts any method (the reality check, unfair comparisons).",
    "crop size": "Papers name a plain crop where their code does something better (the thesis, 3.5.1).",
    "optimizer": "The optimizer lifts or sinks any method (the reality check, unfair comparisons).",
    "learning rate": "A rate that suits one method is another's handicap, unless it is searched for each (our own rule).",
    "learning-rate multipliers": "Published code lets the last layer learn faster, unsaid (the thesis, 3.5.1).",
    "schedule": "A better schedule lifts any method; one optimizer must serve all (the reality check, fair comparisons).",
    "batch size": "A larger batch has more pairs and steadier gradients; one size must serve all (the reality check).",
    "images at once": "A batch norm that is not frozen sees one chunk of a batch at a time (our own rule).",
    "budget": "Who trains longer gets further (our own rule).",
    "model selection": "Another rule to choose the model picks another model (the thesis, 3.5.2).",
    "split": "Other classes for training and validation are another task (the reality check, cross validation).",
    "folds": "A mean over other folds is a mean over other tasks (the reality check, cross validation).",
    "source": "Papers differ in more than they say (the thesis, 3.5.1).",
    "data": "Other images are another task (our own rule).",
    "test-set feedback": "What was chosen with a look at the test set is overfitted to it (the thesis, 3.5.2).",
    "search budget": "Who tries more settings finds a better one; 50 rounds for each loss (the reality check).",
    "number of seeds": "A number without its scatter proves nothing (the reality check, confidence intervals).",
    "loss of one name": "A mean over different losses or hyper-parameters is a mean over nothing (our own rule).",
    "end of training": "A training that has not ended has not had its budget (our own rule).",
}
"""Why each difference is unfair, and who said so."""


def _plain(what: str, *paths: str) -> Aspect:
    return Aspect(what, WHY[what], tuple(map(_path, paths)))


ASPECTS = (
    _plain("trunk", "config.model.trunk"),
    _plain("pretraining", "config.model.weights"),
    _plain("embedding size", "config.model.dim"),
    _plain("pooling", "config.model.pool"),
    _plain("head", "config.model.head"),
    _plain("unit length", "config.model.normalize"),
    _plain("layer norm", "config.model.layer_norm"),
    _plain("frozen batch norm", "config.model.freeze_bn"),
    Aspect("input channels", WHY["head"], (_path("config.model.in_channels"),), derived=True),
    Aspect("network as built", WHY["network as built"], (_network,), derived=True),
    _plain("augmentation", "config.images"),
    Aspect("crop size", WHY["crop size"], (_crop,), derived=True),
    Aspect("optimizer", WHY["optimizer"], (_settings("optimizer", ("name", "weight_decay"), _OPTIMIZER),)),
    Aspect("gradient clipping", WHY["optimizer"], (_in_plan("clip"),), derived=True),
    Aspect("learning rate", WHY["learning rate"], (_rate,)),
    Aspect("learning-rate multipliers", WHY["learning-rate multipliers"], (_multipliers,)),
    Aspect("schedule", WHY["schedule"], (_settings("schedule", ("name", "warmup"), _SCHEDULE),)),
    Aspect("batch size", WHY["batch size"], (_batch_size,)),
    Aspect("images at once", WHY["images at once"], (_at_once,), derived=True),
    Aspect("budget", WHY["budget"], (_budget,)),
    Aspect("model selection", WHY["model selection"], (_in_plan("metric", "validate_every", "patience"),)),
    Aspect("training images", WHY["data"], (_part("train"), configured_data), folds=True),
    Aspect("validation images", WHY["split"], (_part("val"),), folds=True, derived=True),
    Aspect("test set", WHY["data"], (_path("data.test.description"), configured_data)),
    Aspect("split", WHY["split"], (split_of,)),
    Aspect("folds", WHY["folds"], (_fold,), folds=True, derived=True),
    Aspect("test-set feedback", WHY["test-set feedback"], (_told_feedback,)),
    Aspect("search budget", WHY["search budget"], (_path("search.rounds"),)),
    Aspect("end of training", WHY["end of training"], (_path("ended"),), derived=True),
    Aspect(
        "loss of one name", WHY["loss of one name"], (_path("config.loss"), _path("loss")), within=True, derived=True
    ),
    Aspect(
        "batch composition",
        "Losses need it: 8 classes x 4 images for embedding losses, 32 x 1 for classification (the reality check).",
        (_composition,),
        "note",
    ),
    Aspect(
        "memory",
        "A memory of earlier batches is a method of its own (our own rule).",
        (_path("config.memory"),),
        "note",
    ),
    Aspect("precision", "Rounding is seldom seen in accuracy (our own rule).", (_in_plan("precision"),), "note"),
    Aspect(
        "averaged weights",
        "An average of weights lifts most methods a little (our own rule).",
        (_in_plan("ema"),),
        "note",
    ),
    Aspect(
        "openings",
        "The test set is to be opened once, at the end (the thesis, 3.5.2).",
        (_openings,),
        "note",
        folds=True,
    ),
    Aspect("versions", "Numbers may move with a version (our own rule).", (_path("versions"),), "note"),
    Aspect("code", "Numbers may move with a version (our own rule).", (_path("commit"), _path("likewise")), "note"),
    Aspect("hardware", "Numbers may move with a device (our own rule).", (_path("hardware"),), "note"),
)
