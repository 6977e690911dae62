"""The conditions of a run: the settings that must be equal in a fair comparison, with the reasons."""

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
"""Named values that are compared together; reports show only those that differ."""


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
        what: the name of the condition in reports.
        why: why a difference matters, with the source.
        severity: the severity of a difference.
        scope: ``"all"``: all runs must agree; ``"method"``: the runs of a method can differ, but all methods must have the
            same set of values; ``"name"``: only runs of the same name must agree.
        fallback: the field to compare instead if more runs record it.
        is_derived: whether it follows from other conditions, so that its absence is not reported.

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


def compared_field(
    what: str,
    why: str,
    severity: Severity = "unfair",
    *,
    scope: Scope = "all",
    fallback: str | None = None,
    is_derived: bool = False,
) -> Any:
    """Declare a field of `Conditions` that is compared.

    Args:
        what: the name of the condition in reports.
        why: why a difference matters, with the source.
        severity: the severity of a difference.
        scope: which runs must agree; see `Rule`.
        fallback: the field to compare instead if more runs record it.
        is_derived: whether it follows from other conditions.

    Examples:
        >>> compared_field("trunk", "Deeper networks embed better (the thesis, 3.5.1).").metadata["rule"].severity
        'unfair'
    """
    return field(
        default=NOT_RECORDED, metadata={"rule": Rule(what, why, severity, scope, fallback, is_derived)}, kw_only=True
    )


def uncompared_field() -> Any:
    """Declare a field of `Conditions` that is not compared directly.

    Examples:
        >>> uncompared_field().default
        <NotRecorded.NOT_RECORDED: 'not recorded'>
    """
    return field(default=NOT_RECORDED, kw_only=True)


_HEAD = "Another head is another network (the reality check, unfair comparisons: network architecture)."
_OPTIMIZER = "The optimizer changes the accuracy of any method (the reality check, unfair comparisons)."
_DATA = "Other images make it another task (our own rule)."
_SPLIT = "Other classes for training and validation are another task (the reality check, cross validation)."
_VERSION = "Results may change with versions (our own rule)."


@dataclass(frozen=True)
class Conditions:
    """The conditions of one run: settings that must be equal in a fair comparison, and settings that are noted.

    The loss, its miner, their hyper-parameters and the learning rates of the parameters of the loss belong to the method,
    not to the conditions.  A field that is not recorded is `NOT_RECORDED`.  `likewise.app.read_conditions` reads the conditions of
    a run, a result or a configuration.

    Examples:
        >>> conditions = Conditions(trunk="resnet50", embedding_size=128)
        >>> conditions.trunk, str(conditions.pooling)
        ('resnet50', 'not recorded')
    """

    # the network
    trunk: Recorded[str] = compared_field(
        "trunk",
        "Accuracy differs between networks even before training, and deeper ones embed better (the thesis, 3.5.1).",
    )
    pretraining: Recorded[str | None] = compared_field(
        "pretraining", "The pretrained weights largely determine the accuracy after training (the thesis, 3.5.1)."
    )
    embedding_size: Recorded[int | None] = compared_field(
        "embedding size", "More dimensions probably raise accuracy (the thesis, 3.5.1)."
    )
    pooling: Recorded[str] = compared_field(
        "pooling",
        "Proxy-Anchor's code adds maximum to average pooling, and its paper does not say so (the thesis, 3.5.1).",
    )
    head: Recorded[str] = compared_field("head", _HEAD)
    unit_length: Recorded[bool] = compared_field(
        "unit length", "All embeddings must be of unit length, or none (the reality check, fair comparisons)."
    )
    layer_norm: Recorded[bool] = compared_field("layer norm", _HEAD)
    frozen_batch_norm: Recorded[bool] = compared_field(
        "frozen batch norm",
        "Multi-similarity's code freezes batch norm, and its paper does not say so (the thesis, 3.5.1).",
    )
    input_channels: Recorded[int | None] = compared_field("input channels", _HEAD, is_derived=True)
    network: Recorded[Settings] = compared_field(
        "network as built", "Another network is another accuracy (the thesis, 3.5.1).", is_derived=True
    )
    # images
    augmentation: Recorded[str] = compared_field(
        "augmentation", "Stronger augmentation improves any method (the reality check, unfair comparisons)."
    )
    crop_size: Recorded[Settings] = compared_field(
        "crop size",
        "Papers name a plain crop where their code does something better (the thesis, 3.5.1).",
        is_derived=True,
    )
    # optimization
    optimizer: Recorded[Settings] = compared_field("optimizer", _OPTIMIZER)
    gradient_clipping: Recorded[float | Settings | None] = compared_field(
        "gradient clipping", _OPTIMIZER, is_derived=True
    )
    learning_rate: Recorded[float] = compared_field(
        "learning rate",
        "A rate that suits one method can be bad for another, unless it is searched for each (our own rule).",
    )
    learning_rate_multipliers: Recorded[Settings] = compared_field(
        "learning-rate multipliers",
        "Published code trains the last layer faster without saying so (the thesis, 3.5.1).",
    )
    schedule: Recorded[Settings] = compared_field(
        "schedule",
        "A better schedule improves any method; all must use the same one (the reality check, fair comparisons).",
    )
    batch_size: Recorded[Settings] = compared_field(
        "batch size",
        "A larger batch has more pairs and less noisy gradients; all must use the same size (the reality check).",
    )
    images_at_once: Recorded[int | None] = compared_field(
        "images at once",
        "A batch norm that is not frozen normalizes one chunk of a batch at a time (our own rule).",
        is_derived=True,
    )
    budget: Recorded[Settings] = compared_field("budget", "Longer training raises accuracy (our own rule).")
    model_selection: Recorded[Settings] = compared_field(
        "model selection", "Another rule to select the model selects another model (the thesis, 3.5.2)."
    )
    # data
    training_images: Recorded[ImageSet | None] = compared_field(
        "training images", _DATA, scope="method", fallback="data_set"
    )
    validation_images: Recorded[ImageSet | None] = compared_field(
        "validation images", _SPLIT, scope="method", is_derived=True
    )
    test_set: Recorded[str] = compared_field("test set", _DATA, fallback="data_set")
    data_set: Recorded[Settings] = uncompared_field()
    """The data set and its options, without the paths of its files."""
    split: Recorded[Settings] = compared_field("split", _SPLIT)
    fold: Recorded[int] = compared_field(
        "folds",
        "A mean over other folds is a mean over other tasks (the reality check, cross validation).",
        scope="method",
        is_derived=True,
    )
    # choices
    test_set_feedback: Recorded[tuple[str, ...]] = compared_field(
        "test-set feedback", "Choices that are based on the test set are overfitted to it (the thesis, 3.5.2)."
    )
    search_budget: Recorded[int] = compared_field(
        "search budget", "A longer search finds better settings; 50 rounds for each loss (the reality check)."
    )
    searched: Recorded[frozenset[str]] = uncompared_field()
    """The names of the conditions whose values were searched."""
    is_finished: Recorded[bool] = compared_field(
        "end of training", "A run that has not ended has not used its budget (our own rule).", is_derived=True
    )
    loss: Recorded[Any] = compared_field(
        "loss of one name",
        "A mean over different losses or hyper-parameters is not meaningful (our own rule).",
        scope="name",
        fallback="loss_text",
        is_derived=True,
    )
    loss_text: Recorded[str] = uncompared_field()
    """The representation of the loss."""
    seed: Recorded[int] = uncompared_field()
    # notes
    batch_composition: Recorded[Settings] = compared_field(
        "batch composition",
        "Losses need it: 8 classes x 4 images for embedding losses, 32 x 1 for classification (the reality check).",
        "note",
    )
    memory: Recorded[Settings | None] = compared_field(
        "memory", "A memory of earlier batches is a separate method (our own rule).", "note"
    )
    precision: Recorded[str] = compared_field("precision", "Rounding seldom affects accuracy (our own rule).", "note")
    averaged_weights: Recorded[float | None] = compared_field(
        "averaged weights", "Averaged weights improve most methods slightly (our own rule).", "note"
    )
    openings: Recorded[int] = compared_field(
        "openings", "The test set must be opened once, at the end (the thesis, 3.5.2).", "note", scope="method"
    )
    versions: Recorded[Settings] = compared_field("versions", _VERSION, "note")
    commit: Recorded[str | None] = compared_field("code", _VERSION, "note", fallback="version")
    version: Recorded[str] = uncompared_field()
    """The version of likewise."""
    hardware: Recorded[Settings] = compared_field(
        "hardware", "Results may change with the device (our own rule).", "note"
    )


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
    "source": "Papers differ in more than they report (the thesis, 3.5.1).",
    "number of seeds": "A number without an interval proves nothing (the reality check, confidence intervals).",
}
"""Why differences matter that a table of results shows, but that no single run records."""
