"""The settings of a training: limits, messages, and schedules that are those of torch."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR, LambdaLR, LinearLR, LRScheduler, SequentialLR, StepLR

from likewise.testing import loop_over
from likewise.train import OptimizerConfig, ScheduleConfig, TrainConfig

NAN, INF = math.nan, math.inf
EPOCHS, STEPS = 7, 4

BAD = [
    (OptimizerConfig, "name", "Adagrad", "name must be one of 'AdamW', 'Adam', 'RMSprop', 'SGD', but it is 'Adagrad'"),
    (OptimizerConfig, "name", None, "name must be one of 'AdamW', 'Adam', 'RMSprop', 'SGD', but it is None"),
    (OptimizerConfig, "lr", 0.0, "lr must be a number > 0, but it is 0.0"),
    (OptimizerConfig, "lr", "1e-3", "lr must be a number > 0, but it is '1e-3'"),
    (OptimizerConfig, "lr", True, "lr must be a number > 0, but it is True"),
    (OptimizerConfig, "lr", NAN, "lr must be a number > 0, but it is nan"),
    (OptimizerConfig, "lr", INF, "lr must be a number > 0, but it is inf"),
    (OptimizerConfig, "lrs", {"proxies": -1e-3}, "lrs['proxies'] must be a number ≥ 0, but it is -0.001"),
    (OptimizerConfig, "weight_decay", -1e-4, "weight_decay must be a number ≥ 0, but it is -0.0001"),
    (OptimizerConfig, "momentum", -0.5, "momentum must be a number ≥ 0, but it is -0.5"),
    (OptimizerConfig, "eps", -1e-8, "eps must be a number ≥ 0, but it is -1e-08"),
    (OptimizerConfig, "betas", (0.9, 1.0), "betas must be a number ≥ 0 and < 1, but it is 1.0"),
    (OptimizerConfig, "betas", (-0.1, 0.9), "betas must be a number ≥ 0 and < 1, but it is -0.1"),
    (OptimizerConfig, "alpha", 1.0, "alpha must be a number ≥ 0 and < 1, but it is 1.0"),
    (ScheduleConfig, "name", "linear", "name must be one of 'constant', 'step', 'cosine', but it is 'linear'"),
    (ScheduleConfig, "warmup", -1.0, "warmup must be a number ≥ 0, but it is -1.0"),
    (ScheduleConfig, "step", 0, "step must be a whole number ≥ 1, but it is 0"),
    (ScheduleConfig, "step", 2.5, "step must be a whole number ≥ 1, but it is 2.5"),
    (ScheduleConfig, "gamma", 0.0, "gamma must be a number > 0, but it is 0.0"),
    (TrainConfig, "epochs", 0, "epochs must be a whole number ≥ 1, but it is 0"),
    (TrainConfig, "epochs", True, "epochs must be a whole number ≥ 1, but it is True"),
    (TrainConfig, "validate_every", -1, "validate_every must be a whole number ≥ 0, but it is -1"),
    (TrainConfig, "trunk_warmup", 0.5, "trunk_warmup must be a whole number ≥ 0, but it is 0.5"),
    (TrainConfig, "accumulate", 0, "accumulate must be a whole number ≥ 1, but it is 0"),
    (TrainConfig, "chunk", 0, "chunk must be a whole number ≥ 1, but it is 0"),
    (TrainConfig, "chunk", 2.5, "chunk must be a whole number ≥ 1, but it is 2.5"),
    (TrainConfig, "log_every", 0, "log_every must be a whole number ≥ 1, but it is 0"),
    (TrainConfig, "patience", 0, "patience must be a whole number ≥ 1, but it is 0"),
    (TrainConfig, "clip", 0.0, "clip must be a number > 0, but it is 0.0"),
    (TrainConfig, "ema", 1.0, "ema must be a number ≥ 0 and < 1, but it is 1.0"),
    (TrainConfig, "checkpoint_minutes", -1.0, "checkpoint_minutes must be a number ≥ 0, but it is -1.0"),
    (TrainConfig, "precision", "half", "precision must be one of 'no', 'bf16', 'fp16', but it is 'half'"),
    (TrainConfig, "on_collapse", "ignore", "on_collapse must be one of 'stop', 'warn', but it is 'ignore'"),
]


@loop_over("kind, name, value, message", BAD)
def test_limits(kind, name, value, message):
    with pytest.raises(ValueError, match=r"must") as refused:
        kind(**{name: value})
    assert str(refused.value) == message


def test_trackers_are_several_names():
    with pytest.raises(TypeError, match=r"^trackers must be a list of names, but it is a string, 'wandb'$"):
        TrainConfig(trackers="wandb")
    assert TrainConfig(trackers=["wandb"]).trackers == ("wandb",)


@pytest.mark.parametrize("betas", [(0.9,), (0.9, 0.99, 0.999), 0.9])
def test_betas_are_two(betas):
    with pytest.raises((ValueError, TypeError), match=r"^betas must be two numbers"):
        OptimizerConfig(betas=betas)


@pytest.mark.parametrize("name", ["compile", "channels_last", "graph"])
def test_switches_are_booleans(name):
    with pytest.raises((ValueError, TypeError), match=rf"^{name} must be"):
        TrainConfig(**{name: "no"})


@pytest.mark.parametrize("floor", [-0.1, 5.0])
def test_a_floor_is_a_share(floor):
    with pytest.raises(ValueError, match=r"^floor must be a number"):
        ScheduleConfig(floor=floor)


def test_settings_are_values():
    assert OptimizerConfig(lrs={"head": 1e-3}) == OptimizerConfig(lrs={"head": 1e-3})
    given = {"head": 1e-3}
    settings = OptimizerConfig(lrs=given, betas=[0.8, 0.9])
    given["head"] = 1.0
    assert settings.lrs == {"head": 1e-3}
    assert settings.betas == (0.8, 0.9)
    with pytest.raises(AttributeError):
        settings.lr = 1.0


def test_numbers_of_numpy():
    assert TrainConfig(epochs=np.int64(3)).epochs == 3
    assert OptimizerConfig(lr=np.float64(0.5)).lr == 0.5
    assert OptimizerConfig(lr=np.float32(0.5)).lr == 0.5


def rates(scheduler: LRScheduler, optimizer: torch.optim.Optimizer, every: int) -> list[float]:
    """What torch's scheduler does when it is asked after every so many steps."""
    found = []
    for step in range(1, EPOCHS * STEPS + 1):
        found.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        if step % every == 0:
            scheduler.step()
    return found


def factors(schedule: ScheduleConfig) -> list[float]:
    return [schedule.factor(step, STEPS, EPOCHS) for step in range(EPOCHS * STEPS)]


@pytest.fixture
def sgd():
    return torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=1.0)


@pytest.mark.parametrize(("step", "gamma"), [(1, 0.5), (2, 0.1), (3, 2.0), (100, 0.1)])
def test_step_is_torchs(sgd, step, gamma):
    expected = rates(StepLR(sgd, step, gamma), sgd, STEPS)
    assert factors(ScheduleConfig("step", step=step, gamma=gamma)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("floor", [0.0, 0.25, 1.0])
def test_cosine_is_torchs(sgd, floor):
    expected = rates(CosineAnnealingLR(sgd, EPOCHS * STEPS, eta_min=floor), sgd, 1)
    assert factors(ScheduleConfig("cosine", floor=floor)) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("warmup", [0.25, 1, 2.5, 7])
def test_warmup_and_constant_are_torchs(sgd, warmup):
    steps = int(warmup * STEPS)
    start = 1 / steps
    scheduler = LinearLR(sgd, start, total_iters=steps - 1) if steps > 1 else LambdaLR(sgd, lambda _: 1.0)
    assert factors(ScheduleConfig("constant", warmup=warmup)) == pytest.approx(rates(scheduler, sgd, 1), rel=1e-9)


def test_warmup_and_cosine_are_torchs(sgd):
    steps = 2 * STEPS
    warm = LinearLR(sgd, 1 / steps, total_iters=steps - 1)
    wave = CosineAnnealingLR(sgd, EPOCHS * STEPS - steps, eta_min=0.1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("warnings.warn", lambda *_, **__: None)  # torch's own: it hands a deprecated argument on
        expected = rates(SequentialLR(sgd, [warm, wave], milestones=[steps]), sgd, 1)
    assert factors(ScheduleConfig("cosine", warmup=2, floor=0.1)) == pytest.approx(expected, rel=1e-9)


def test_a_schedule_is_never_negative_and_ends_at_its_floor():
    for schedule in (
        ScheduleConfig("cosine", warmup=0.3),
        ScheduleConfig("cosine", warmup=20),
        ScheduleConfig("step", warmup=3.0, step=2),
    ):
        assert all(0.0 < factor <= 1.0 for factor in factors(schedule))
    assert ScheduleConfig("cosine", floor=0.2).factor(EPOCHS * STEPS, STEPS, EPOCHS) == pytest.approx(0.2)


def test_warmup_rises_to_what_follows_it():
    """A warm-up over a step: it rises to the full value, one, and the steps that were due come at once."""
    rising = ScheduleConfig("step", warmup=3.0, step=2, gamma=0.1)
    got = [rising.factor(step, 2, 6) for step in range(12)]
    assert got[:5] == pytest.approx([1 / 6, 2 / 6, 3 / 6, 4 / 6, 5 / 6])
    assert got[5:] == pytest.approx([0.1] * 3 + [0.01] * 4)
