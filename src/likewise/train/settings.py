"""Settings of a training run: optimizer, schedule, and everything else; the run records all of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Literal, get_args

from likewise.formula import Hyper, one_of, whole_number

OptimizerName = Literal["AdamW", "Adam", "RMSprop", "SGD"]
ScheduleName = Literal["constant", "step", "cosine"]
Precision = Literal["no", "bf16", "fp16"]
OnCollapse = Literal["stop", "warn"]

_POSITIVE = Hyper("", above=0.0)
_NOT_NEGATIVE = Hyper("", at_least=0.0)
_BELOW_ONE = Hyper("", at_least=0.0, below=1.0)
_FRACTION = Hyper("", at_least=0.0, at_most=1.0)


@dataclass(frozen=True)
class OptimizerConfig:
    """Optimizer settings.

    Args:
        name: ``"AdamW"``, ``"Adam"``, ``"RMSprop"`` or ``"SGD"``.
        lr: the learning rate of all groups that ``lrs`` does not name.
        lrs: learning rates by group: the groups of the model (``"trunk"`` and ``"head"`` of an `Embedder`, else
            ``"model"``), ``"loss"``, or the name of a parameter of the loss (``"proxies"``, ``"beta"``).  A rate given here
            replaces the one that a loss suggests for its parameters.
        weight_decay: the weight decay of all groups.
        momentum: the momentum of RMSprop and SGD.
        betas: the decay rates of the two moments of Adam and AdamW.
        alpha: the decay rate of the moment of RMSprop.
        eps: epsilon of all optimizers except SGD.

    Examples:
        >>> OptimizerConfig("RMSprop", lr=1e-6, lrs={"proxies": 1e-3}).lrs["proxies"]
        0.001
        >>> OptimizerConfig(lr=-1.0)
        Traceback (most recent call last):
        ValueError: lr must be a number > 0, but it is -1.0
    """

    name: OptimizerName = "AdamW"
    lr: float = 1e-4
    lrs: Mapping[str, float] = field(default_factory=dict)
    weight_decay: float = 1e-4
    momentum: float = 0.0
    betas: tuple[float, float] = (0.9, 0.999)
    alpha: float = 0.99
    eps: float = 1e-8

    def __post_init__(self) -> None:
        one_of("name", self.name, get_args(OptimizerName))
        _check_numbers(self, _POSITIVE, "lr")
        _check_numbers(self, _NOT_NEGATIVE, "weight_decay", "momentum", "eps")
        _check_numbers(self, _BELOW_ONE, "alpha")
        if not isinstance(self.betas, Sequence) or len(self.betas) != 2:
            raise ValueError(f"betas must be two numbers, but it is {self.betas!r}")
        lrs = {group: _check_number(f"lrs[{group!r}]", lr, _NOT_NEGATIVE) for group, lr in self.lrs.items()}
        object.__setattr__(self, "lrs", lrs)
        object.__setattr__(self, "betas", tuple(_check_number("betas", each, _BELOW_ONE) for each in self.betas))


@dataclass(frozen=True)
class ScheduleConfig:
    """Schedule of the learning rates: one factor for all groups.

    Args:
        name: ``"constant"``; ``"step"``: multiply by ``gamma`` after every ``step`` epochs; ``"cosine"``: decrease from 1 to
            ``floor`` at the end of the last epoch, along half a cosine.
        warmup: number of epochs at the beginning in which the factor increases linearly to its full value.
        step: number of epochs between two steps.
        gamma: the factor of a step.
        floor: the last factor of a cosine.

    Examples:
        >>> halving = ScheduleConfig("step", step=2, gamma=0.5)
        >>> [halving.factor(step, 10, epochs=6) for step in (0, 19, 20, 50)]
        [1.0, 1.0, 0.5, 0.25]
        >>> [ScheduleConfig("cosine", warmup=0.2).factor(step, 10, epochs=1) for step in (0, 1, 2, 6)]
        [0.5, 1.0, 1.0, 0.5]
    """

    name: ScheduleName = "cosine"
    warmup: float = 0.0
    step: int = 10
    gamma: float = 0.1
    floor: float = 0.0

    def __post_init__(self) -> None:
        one_of("name", self.name, get_args(ScheduleName))
        _check_numbers(self, _NOT_NEGATIVE, "warmup")
        whole_number("step", self.step, 1)
        _check_numbers(self, _POSITIVE, "gamma")
        _check_numbers(self, _FRACTION, "floor")

    def factor(self, step: int, steps_per_epoch: int, epochs: int) -> float:
        """Return the factor of a step, which depends on nothing but the number of the step.

        Args:
            step: the number of steps before it.
            steps_per_epoch: the number of steps of an epoch.
            epochs: the number of epochs.
        """
        warmup = self.warmup * steps_per_epoch
        if step + 1 < warmup:
            return (step + 1) / warmup
        if self.name == "constant":
            return 1.0
        if self.name == "step":
            return float(self.gamma ** (step // steps_per_epoch // self.step))
        share = min(max(step - warmup, 0.0) / max(epochs * steps_per_epoch - warmup, 1.0), 1.0)
        return self.floor + (1.0 - self.floor) * 0.5 * (1.0 + math.cos(math.pi * share))


@dataclass(frozen=True)
class TrainConfig:
    """Settings of a training run: duration, validation, precision and logging.

    Args:
        epochs: the number of epochs.
        validate_every: number of epochs between two validations, the first of which precedes training; 0: no validation.
        metric: the validation metric that selects the best model.
        ks: values of k for recall@k, always including 1; ``None``: those of the data set if it is
            known, else 1, 2, 4 and 8.
        patience: stop after this number of validations without improvement; ``None``: never.
        trunk_warmup: number of epochs at the beginning in which the trunk is frozen.
        mine_every: number of epochs after which all training images are embedded again for a sampler or a loss that mines;
            ``None``: 1.
        mine_steps: the same interval in steps instead of epochs.
        accumulate: number of batches whose gradients are averaged in one step.
        chunk: number of images in one forward pass of the model; ``None``: the whole batch.  The loss is always that of the
            whole batch: a larger batch is embedded in chunks, and each chunk is embedded again for its gradients.
        clip: the largest norm of the gradients of all parameters together.
        clip_value: the largest absolute value of each entry of the gradients; applied before ``clip``.
        ema: validate and save an exponential moving average of the parameters, with this decay per step.
        precision: ``"no"``, ``"bf16"`` or ``"fp16"``: mixed precision of the model; losses compute in float32.
        compile: run the model through ``torch.compile``.
        channels_last: use the memory format in which convolutions on a GPU are fast; ``None``: on a GPU only.
        graph: record a step as a CUDA graph and replay it, which saves Python and launch overhead; ``None``: on a GPU, if
            the step can be recorded; the log contains the reason if it cannot.
        checkpoint_minutes: the maximum time between two checkpoints; a checkpoint is also saved at the end of an epoch if
            that takes less than a hundredth of the time since the last one.
        log_every: number of steps between two lines of the log.
        trackers: names of Accelerate's trackers (``"tensorboard"``, ``"wandb"``, …) that receive the same values.
        on_collapse: what to do when all embeddings collapse to one point: ``"stop"`` or ``"warn"``.

    Examples:
        >>> TrainConfig(epochs=12, patience=3).metric
        'MAP@R'
        >>> TrainConfig(precision="half")
        Traceback (most recent call last):
        ValueError: precision must be one of 'no', 'bf16', 'fp16', but it is 'half'
    """

    epochs: int = 20
    validate_every: int = 1
    metric: str = "MAP@R"
    ks: tuple[int, ...] | None = None
    patience: int | None = None
    trunk_warmup: int = 0
    mine_every: int | None = None
    mine_steps: int | None = None
    accumulate: int = 1
    chunk: int | None = None
    clip: float | None = None
    clip_value: float | None = None
    ema: float | None = None
    precision: Precision = "no"
    compile: bool = False
    channels_last: bool | None = None
    graph: bool | None = None
    checkpoint_minutes: float = 5.0
    log_every: int = 20
    trackers: tuple[str, ...] = ()
    on_collapse: OnCollapse = "stop"

    def __post_init__(self) -> None:
        whole_number("epochs", self.epochs, 1)
        for name in ("validate_every", "trunk_warmup"):
            whole_number(name, getattr(self, name), 0)
        for name in ("accumulate", "log_every"):
            whole_number(name, getattr(self, name), 1)
        for name in ("patience", "chunk", "mine_every", "mine_steps"):
            if getattr(self, name) is not None:
                whole_number(name, getattr(self, name), 1)
        if self.ks is not None:
            object.__setattr__(self, "ks", check_ks(self.ks))
        if self.mine_every is not None and self.mine_steps is not None:
            raise ValueError(f"mine_steps must be None if mine_every is given, but it is {self.mine_steps}")
        for name in ("clip", "clip_value"):
            if getattr(self, name) is not None:
                _check_numbers(self, _POSITIVE, name)
        if self.ema is not None:
            _check_numbers(self, _BELOW_ONE, "ema")
        _check_numbers(self, _NOT_NEGATIVE, "checkpoint_minutes")
        _check_bool("compile", self.compile)
        for name in ("channels_last", "graph"):
            if getattr(self, name) is not None:
                _check_bool(name, getattr(self, name))
        one_of("precision", self.precision, get_args(Precision))
        one_of("on_collapse", self.on_collapse, get_args(OnCollapse))
        if isinstance(self.trackers, str):
            raise TypeError(f"trackers must be a list of names, but it is a string, {self.trackers!r}")
        object.__setattr__(self, "trackers", tuple(self.trackers))


def check_ks(ks: Sequence[int]) -> tuple[int, ...]:
    """Check values of k for recall@k; return them sorted and including 1.

    Examples:
        >>> check_ks([100, 10])
        (1, 10, 100)
    """
    if isinstance(ks, str) or not isinstance(ks, Sequence) or not ks:
        raise TypeError(f"ks must be a list of whole numbers such as 1 10 100, but it is {ks!r}")
    return tuple(sorted({1, *(whole_number("each of ks", k, 1) for k in ks)}))


def _check_number(name: str, value: object, limits: Hyper) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not limits.allows(float(value)):
        raise ValueError(f"{name} must be a number {limits.limits()}, but it is {value!r}")
    return float(value)


def _check_numbers(settings: object, limits: Hyper, *names: str) -> None:
    """Check numbers of a frozen dataclass, and convert them to Python floats: NumPy scalars cannot be written as YAML."""
    for name in names:
        object.__setattr__(settings, name, _check_number(name, getattr(settings, name), limits))


def _check_bool(name: str, value: object) -> None:
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, but it is {value!r}")
