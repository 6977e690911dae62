"""Conditions of a training: every setting that a comparison must hold equal, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any, Literal, TypeAlias, TypeVar

Severity = Literal["unfair", "note"]
Scope = Literal["all", "method", "name"]


class NotRecorded(StrEnum):
    """The value of a condition that is not recorded.

    Examples:
        >>> print(NOT_RECORDED)
        not recorded
    """

    NOT_RECORDED = "not recorded"


NOT_RECORDED = NotRecorded.NOT_RECORDED

T = TypeVar("T")
Recorded: TypeAlias = T | NotRecorded
Settings: TypeAlias = Mapping[str, Any]
"""Named values that are compared together; only those that differ are printed."""


@dataclass(frozen=True)
class ImageSet:
    """The images of one part of a data set.

    Args:
        name: the data set.
        images: number of images.
        classes: number of classes.
        fingerprint: checksum of the pixels as they are stored.

    Examples:
        >>> print(ImageSet("CUB200", 5864, 100, "0123456789abcdef"))
        CUB200, 5864 images of 100 classes, checksum 0123456789ab
    """

    name: str | None
    images: int | None
    classes: int | None
    fingerprint: str

    def __str__(self) -> str:
        return f"{self.name}, {self.images} images of {self.classes} classes, checksum {self.fingerprint[:12]}"


@dataclass(frozen=True)
class Rule:
    """How a condition is compared.

    Args:
        what: its name in reports.
        why: why a difference in it matters, with the source.
        severity: of a difference in it.
        scope: ``"all"`` trainings must agree; with ``"method"`` the trainings of one method may differ, and each method
            must have the same set of values; with ``"name"`` only trainings of one name must agree.
        fallback: the field to compare where fewer trainings record this one.
        is_derived: it follows from other conditions, so that its absence is not reported.

    Examples:
        >>> RULES["trunk"].why
        'Accuracy differs between networks even before training, and deeper ones embed better (the thesis, 3.5.1).'
    """

    what: str
    why: str
    severity: Severity = "unfair"
    scope: Scope = "all"
    fallback: str | None = None
    is_derived: bool = False


def compared(
    what: str,
    why: str,
    severity: Severity = "unfair",
    *,
    scope: Scope = "all",
    fallback: str | None = None,
    is_derived: bool = False,
) -> Any:
    """A field of `Conditions` that is compared.

    Args:
        what: its name in reports.
        why: why a difference in it matters, with the source.
        severity: of a difference in it.
        scope: who must agree: see `Rule`.
        fallback: the field to compare where fewer trainings record this one.
        is_derived: it follows from other conditions.

    Examples:
        >>> compared("trunk", "Deeper networks embed better (the thesis, 3.5.1).").metadata["rule"].severity
        'unfair'
    """
    return field(
        default=NOT_RECORDED, metadata={"rule": Rule(what, why, severity, scope, fallback, is_derived)}, kw_only=True
    )


def recorded() -> Any:
    """A field of `Conditions` that is not compared directly.

    Examples:
        >>> recorded().default
        <NotRecorded.NOT_RECORDED: 'not recorded'>
    """
    return field(default=NOT_RECORDED, kw_only=True)


_HEAD = "Another head is another network (the reality check, unfair comparisons: network architecture)."
_OPTIMIZER = "The optimizer lifts or sinks any method (the reality check, unfair comparisons)."
_DATA = "Other images make it another task (our own rule)."
_SPLIT = "Other classes for training and validation are another task (the reality check, cross validation)."
_VERSION = "Results may change with versions (our own rule)."


@dataclass(frozen=True)
class Conditions:
    """The conditions of one training: settings that a comparison must hold equal, and settings that it notes.

    The loss, its miner, their hyper-parameters and the learning rates of the loss's parameters are the method, and are not
    among them.  A field that is not recorded is `NOT_RECORDED`.  `likewise.app.read_conditions` reads the conditions of
    a run, a result or a configuration.

    Examples:
        >>> conditions = Conditions(trunk="resnet50", embedding_size=128)
        >>> conditions.trunk, str(conditions.pooling)
        ('resnet50', 'not recorded')
    """

    # the network
    trunk: Recorded[str] = compared(
        "trunk",
        "Accuracy differs between networks even before training, and deeper ones embed better (the thesis, 3.5.1).",
    )
    pretraining: Recorded[str | None] = compared(
        "pretraining", "Where a network starts from decides much of where it ends (the thesis, 3.5.1)."
    )
    embedding_size: Recorded[int | None] = compared(
        "embedding size", "More dimensions probably raise accuracy (the thesis, 3.5.1)."
    )
    pooling: Recorded[str] = compared(
        "pooling",
        "Proxy-Anchor's code adds maximum to average pooling, and its paper does not say so (the thesis, 3.5.1).",
    )
    head: Recorded[str] = compared("head", _HEAD)
    unit_length: Recorded[bool] = compared(
        "unit length", "All embeddings must be of unit length, or none (the reality check, fair comparisons)."
    )
    layer_norm: Recorded[bool] = compared("layer norm", _HEAD)
    frozen_batch_norm: Recorded[bool] = compared(
        "frozen batch norm",
        "Multi-similarity's code freezes batch norm, and its paper does not say so (the thesis, 3.5.1).",
    )
    input_channels: Recorded[int | None] = compared("input channels", _HEAD, is_derived=True)
    network: Recorded[Settings] = compared(
        "network as built", "Another network is another accuracy (the thesis, 3.5.1).", is_derived=True
    )
    # images
    augmentation: Recorded[str] = compared(
        "augmentation", "Stronger augmentation lifts any method (the reality check, unfair comparisons)."
    )
    crop_size: Recorded[Settings] = compared(
        "crop size",
        "Papers name a plain crop where their code does something better (the thesis, 3.5.1).",
        is_derived=True,
    )
    # optimization
    optimizer: Recorded[Settings] = compared("optimizer", _OPTIMIZER)
    gradient_clipping: Recorded[float | Settings | None] = compared("gradient clipping", _OPTIMIZER, is_derived=True)
    learning_rate: Recorded[float] = compared(
        "learning rate",
        "A rate that suits one method may handicap another, unless it is searched for each (our own rule).",
    )
    learning_rate_multipliers: Recorded[Settings] = compared(
        "learning-rate multipliers", "Published code lets the last layer learn faster, unsaid (the thesis, 3.5.1)."
    )
    schedule: Recorded[Settings] = compared(
        "schedule",
        "A better schedule lifts any method; one optimizer must serve all (the reality check, fair comparisons).",
    )
    batch_size: Recorded[Settings] = compared(
        "batch size",
        "A larger batch has more pairs and steadier gradients; one size must serve all (the reality check).",
    )
    images_at_once: Recorded[int | None] = compared(
        "images at once",
        "A batch norm that is not frozen normalizes one chunk of a batch at a time (our own rule).",
        is_derived=True,
    )
    budget: Recorded[Settings] = compared("budget", "Longer training raises accuracy (our own rule).")
    model_selection: Recorded[Settings] = compared(
        "model selection", "Another rule to choose the model picks another model (the thesis, 3.5.2)."
    )
    # data
    training_images: Recorded[ImageSet | None] = compared("training images", _DATA, scope="method", fallback="data_set")
    validation_images: Recorded[ImageSet | None] = compared(
        "validation images", _SPLIT, scope="method", is_derived=True
    )
    test_set: Recorded[str] = compared("test set", _DATA, fallback="data_set")
    data_set: Recorded[Settings] = recorded()
    """The data set and its options, without the place of its files."""
    split: Recorded[Settings] = compared("split", _SPLIT)
    fold: Recorded[int] = compared(
        "folds",
        "A mean over other folds is a mean over other tasks (the reality check, cross validation).",
        scope="method",
        is_derived=True,
    )
    # choices
    test_set_feedback: Recorded[tuple[str, ...]] = compared(
        "test-set feedback", "What was chosen with a look at the test set is overfitted to it (the thesis, 3.5.2)."
    )
    search_budget: Recorded[int] = compared(
        "search budget", "Who tries more settings finds a better one; 50 rounds for each loss (the reality check)."
    )
    searched: Recorded[frozenset[str]] = recorded()
    """Names of the conditions that the search chose a value of."""
    is_finished: Recorded[bool] = compared(
        "end of training", "A training that has not ended has not had its budget (our own rule).", is_derived=True
    )
    loss: Recorded[Any] = compared(
        "loss of one name",
        "A mean over different losses or hyper-parameters is not meaningful (our own rule).",
        scope="name",
        fallback="loss_text",
        is_derived=True,
    )
    loss_text: Recorded[str] = recorded()
    """The loss as Python prints it."""
    seed: Recorded[int] = recorded()
    # notes
    batch_composition: Recorded[Settings] = compared(
        "batch composition",
        "Losses need it: 8 classes x 4 images for embedding losses, 32 x 1 for classification (the reality check).",
        "note",
    )
    memory: Recorded[Settings | None] = compared(
        "memory", "A memory of earlier batches is a separate method (our own rule).", "note"
    )
    precision: Recorded[str] = compared("precision", "Rounding seldom affects accuracy (our own rule).", "note")
    averaged_weights: Recorded[float | None] = compared(
        "averaged weights", "Averaged weights improve most methods slightly (our own rule).", "note"
    )
    openings: Recorded[int] = compared(
        "openings", "The test set is to be opened once, at the end (the thesis, 3.5.2).", "note", scope="method"
    )
    versions: Recorded[Settings] = compared("versions", _VERSION, "note")
    commit: Recorded[str | None] = compared("code", _VERSION, "note", fallback="version")
    version: Recorded[str] = recorded()
    """The version of likewise."""
    hardware: Recorded[Settings] = compared("hardware", "Results may change with the device (our own rule).", "note")


RULES: Mapping[str, Rule] = {each.name: each.metadata["rule"] for each in fields(Conditions) if "rule" in each.metadata}
"""How each field of `Conditions` is compared, in the order of reports."""

NETWORK = frozenset(
    RULES[name].what
    for name in (
        *("trunk", "pretraining", "embedding_size", "pooling", "head"),
        *("layer_norm", "frozen_batch_norm", "input_channels"),
    )
)
"""Conditions from which the size of the network follows."""

OUTSIDE = {
    "data": _DATA,
    "source": "Papers differ in more than they say (the thesis, 3.5.1).",
    "number of seeds": "A number without its scatter proves nothing (the reality check, confidence intervals).",
}
"""Why other differences matter, which a table of results shows and which no single training has."""
