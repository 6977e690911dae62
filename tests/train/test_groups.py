"""Every parameter is in one group, with the learning rate that was said for it."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from torch import nn

from likewise.losses import (
    ContrastiveLoss,
    CrossBatchMemory,
    MarginLoss,
    NormalizedSoftmaxLoss,
    ProxyAnchorLoss,
    ProxyNCALoss,
    WeightedSum,
)
from likewise.testing import loop_over
from likewise.train import OptimizerConfig, parameter_groups
from likewise.train.groups import make_optimizer
from likewise.trunks import Embedder
from tests.train.small import Small, linear

SUGGESTED = 5e-5  # of MarginLoss, by the thesis


def rates(model: nn.Module, loss: object, **settings) -> dict[str, float]:
    return {group.name: group.lr for group in parameter_groups(model, loss, OptimizerConfig(**settings))}


def test_every_parameter_is_in_exactly_one_group():
    model, loss = Small(), WeightedSum({ProxyAnchorLoss(3, 4): 1.0, MarginLoss(num_classes=3): 0.5})
    groups = parameter_groups(model, loss, OptimizerConfig())
    found = [id(each) for group in groups for each in group.parameters]
    assert sorted(found) == sorted(id(each) for each in [*model.parameters(), *loss.parameters()])
    assert [group.name for group in groups] == ["trunk", "head", "proxies", "beta"]
    assert [group.size for group in groups] == [3 * 5 * 9 + 10, 45 * 4 + 4, 12, 3]


def test_an_orphan_is_named():
    model = Small()
    model.forgotten = nn.Linear(2, 2)
    with pytest.raises(ValueError, match=r"must") as refused:
        parameter_groups(model, None, OptimizerConfig())
    assert str(refused.value) == (
        "every parameter must be in one group, but model.forgotten.weight (and 1 more) is in none of 'trunk', 'head': "
        "add it to model.parameter_groups(), or set requires_grad to False"
    )
    model.forgotten.requires_grad_(False)
    assert [group.name for group in parameter_groups(model, None, OptimizerConfig())] == ["trunk", "head"]


def test_a_parameter_in_two_groups_is_named():
    class Twice(Small):
        def parameter_groups(self):
            return {**super().parameter_groups(), "again": [self.head.bias]}

    with pytest.raises(ValueError, match=r"but model.head.bias is in 'head' and in 'again'$"):
        parameter_groups(Twice(), None, OptimizerConfig())


def test_a_parameter_that_model_and_loss_share_is_named():
    class Tied(nn.Module):
        def __init__(self, weight):
            super().__init__()
            self.weight = weight

    model = linear()
    with pytest.raises(ValueError, match=r"but model.weight is in 'model' and in 'weight'$"):
        parameter_groups(model, Tied(model.weight), OptimizerConfig())


def test_parameters_tied_inside_a_model_are_one():
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    model[1].weight = model[0].weight
    [group] = parameter_groups(model, None, OptimizerConfig())
    assert group.size == 9 + 3 + 3


def test_an_unknown_group_gets_the_nearest_name():
    with pytest.raises(ValueError, match=r"must") as refused:
        rates(Small(), ProxyAnchorLoss(3, 4), lrs={"proxy": 1e-2})
    assert str(refused.value) == (
        "lrs must name groups among 'head', 'loss', 'proxies', 'trunk', but it names 'proxy' (did you mean 'proxies'?)"
    )
    with pytest.raises(ValueError, match=r"but it names 'zzz'$"):
        rates(linear(), None, lrs={"zzz": 1e-2})


def test_one_configuration_serves_losses_that_learn_and_that_do_not():
    assert rates(linear(), ContrastiveLoss(), lr=0.1, lrs={"loss": 1e-2}) == {"model": 0.1}


def test_which_rate_wins():
    """By name, then by "loss", then what the loss suggests, then the common one."""
    margin, anchor = MarginLoss(), ProxyAnchorLoss(3, 4)
    assert anchor.suggested_lr is None or anchor.suggested_lr > 0
    assert margin.suggested_lr == SUGGESTED
    assert rates(linear(), margin, lr=0.1) == {"model": 0.1, "beta": SUGGESTED}
    assert rates(linear(), margin, lr=0.1, lrs={"loss": 0.2}) == {"model": 0.1, "beta": 0.2}
    assert rates(linear(), margin, lr=0.1, lrs={"loss": 0.2, "beta": 0.3}) == {"model": 0.1, "beta": 0.3}
    assert rates(linear(), margin, lr=0.1, lrs={"beta": 0.0})["beta"] == 0.0
    assert rates(linear(), nn.Bilinear(2, 2, 1), lr=0.1) == {"model": 0.1, "weight": 0.1, "bias": 0.1}
    assert rates(Small(), None, lr=0.1, lrs={"trunk": 0.01}) == {"trunk": 0.01, "head": 0.1}


def test_frozen_parameters_are_in_no_group():
    embedder = Embedder("convnet", 4, freeze_bn=True)
    loss = ProxyAnchorLoss(3, 4)
    loss.proxies.requires_grad_(False)
    groups = parameter_groups(embedder, loss, OptimizerConfig())
    assert [(group.name, len(group.parameters)) for group in groups] == [("trunk", 4), ("head", 2)]
    embedder.trunk.requires_grad_(False)
    groups = parameter_groups(embedder, loss, OptimizerConfig(lrs={"trunk": 1e-5}))  # a group may be empty
    assert [group.name for group in groups] == ["head"]


def test_through_a_memory():
    loss = CrossBatchMemory(ProxyAnchorLoss(3, 4), size=8)
    assert rates(linear(), loss, lrs={"proxies": 0.5})["proxies"] == 0.5
    loss = CrossBatchMemory(MarginLoss(), size=8)
    assert rates(linear(), loss)["beta"] == SUGGESTED


def test_two_losses_with_proxies_and_the_same_rate_are_one_group():
    loss = WeightedSum({ProxyAnchorLoss(3, 4): 1.0, ProxyAnchorLoss(5, 4): 1.0})
    [_, group] = parameter_groups(linear(), loss, OptimizerConfig(lrs={"proxies": 0.5}))
    assert (group.name, group.lr, group.size) == ("proxies", 0.5, 32)


class Own(nn.Module):
    """A loss with two parts that call what they learn the same, and suggest different rates for it."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.other = ProxyNCALoss(3, 4), ProxyNCALoss(3, 4)

    def parameter_groups(self):
        return [{"params": [self.one.proxies], "lr": 0.1}, {"params": [self.other.proxies], "lr": 0.2}]


def test_two_suggestions_for_one_name_are_two_groups():
    assert rates(linear(), Own()) == {"model": 1e-4, "proxies": 0.1, "loss.proxies": 0.2}


def test_a_rate_for_the_second_of_them():
    assert rates(linear(), Own(), lrs={"loss.proxies": 0.7})["loss.proxies"] == 0.7


def test_a_rate_of_the_model_is_not_the_losss():
    """A loss may call a parameter like a group of the model; then its group is called loss.head."""

    class Named(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.head = nn.Parameter(torch.zeros(2))

    assert rates(Small(), Named(), lr=0.1, lrs={"head": 0.5}) == {"trunk": 0.1, "head": 0.5, "loss.head": 0.1}


def test_groups_that_are_no_mapping():
    class Listed(Small):
        def parameter_groups(self):
            return [list(self.parameters())]

    with pytest.raises(TypeError, match=r"^model.parameter_groups\(\) must return lists .* it returns a list$"):
        parameter_groups(Listed(), None, OptimizerConfig())


@pytest.mark.parametrize(
    ("settings", "kind", "options"),
    [
        (OptimizerConfig("AdamW", betas=(0.8, 0.9), eps=1e-3), torch.optim.AdamW, {"betas": (0.8, 0.9), "eps": 1e-3}),
        (OptimizerConfig("Adam", betas=(0.8, 0.9), eps=1e-3), torch.optim.Adam, {"betas": (0.8, 0.9), "eps": 1e-3}),
        (OptimizerConfig("SGD", momentum=0.9), torch.optim.SGD, {"momentum": 0.9}),
        (OptimizerConfig("RMSprop", momentum=0.9, alpha=0.5), torch.optim.RMSprop, {"momentum": 0.9, "alpha": 0.5}),
    ],
    ids=lambda x: getattr(x, "name", ""),
)
def test_settings_reach_the_optimizer(settings, kind, options):
    optimizer = make_optimizer(parameter_groups(linear(), MarginLoss(), settings), settings)
    assert isinstance(optimizer, kind)
    assert [row["lr"] for row in optimizer.param_groups] == [1e-4, SUGGESTED]
    for row in optimizer.param_groups:
        assert row["weight_decay"] == 1e-4
        assert {name: row[name] for name in options} == options


@loop_over("name", ["AdamW", "Adam", "SGD", "RMSprop"])
def test_optimizers_update_as_those_of_torch(name):
    """The methods without decorators for the compiler do the same."""
    settings = OptimizerConfig(name, lr=0.1)
    ours, theirs = linear(), linear()
    theirs.load_state_dict(ours.state_dict())
    optimizer = make_optimizer(parameter_groups(ours, None, settings), settings)
    defaults = {key: value for key, value in optimizer.defaults.items() if key != "decoupled_weight_decay"}
    reference = getattr(torch.optim, name)(theirs.parameters(), **defaults)
    for _ in range(3):
        for model, each in ((ours, optimizer), (theirs, reference)):
            each.zero_grad()
            model(torch.ones(3, 6)).square().sum().backward()
            each.step()
        optimizer.load_state_dict(optimizer.state_dict())
    assert all(torch.equal(*pair) for pair in zip(ours.parameters(), theirs.parameters(), strict=True))


def test_a_step_does_not_import_the_compiler():
    """The import takes seconds, and most trainings compile nothing."""
    program = """
import sys, torch
from likewise.train import OptimizerConfig
from likewise.train.groups import make_optimizer, parameter_groups
for name in ("AdamW", "Adam", "SGD", "RMSprop"):
    model, settings = torch.nn.Linear(2, 1), OptimizerConfig(name)
    optimizer = make_optimizer(parameter_groups(model, None, settings), settings)
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    optimizer.load_state_dict(optimizer.state_dict())
assert "torch._dynamo" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_nothing_to_learn():
    with pytest.raises(ValueError, match=r"^model must have a trained parameter"):
        make_optimizer([], OptimizerConfig())


def test_sparse_proxies_are_refused():
    loss = NormalizedSoftmaxLoss(4, 3, sampled=2, sparse=True)
    with pytest.raises(ValueError, match="loss must have sparse=False"):
        parameter_groups(nn.Linear(2, 3), loss, OptimizerConfig())
