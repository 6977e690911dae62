"""Proxies that are updated in chunks during the backward pass are those of an ordinary step, bit by bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from likewise import losses
from likewise.engines import recompute
from likewise.losses import OptimizerInBackward, optimizer_in_backward
from tests.losses.test_classes import MAKERS, C, D, batch, make

Rule = Callable[[list[nn.Parameter]], torch.optim.Optimizer]
RULES: dict[str, Rule] = {
    "sgd": lambda chunks: torch.optim.SGD(chunks, lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-3),
    "adamw": lambda chunks: torch.optim.AdamW(chunks, lr=0.1),
    "rmsprop": lambda chunks: torch.optim.RMSprop(chunks, lr=0.1, momentum=0.5),
}
DENSE = {"softmax-bias", "soft-triple", "repulsion", "repulsion-through", "proxy-gml", "everything", "large-margin"}
"""Losses that use their proxies more than once, or not in a formula, or that have numbers per class."""


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks of three rows, and steps of seven."""
    monkeypatch.setitem(recompute.BUDGET, "cpu", 1)
    monkeypatch.setattr(recompute, "LEAST_ROWS", 3)
    monkeypatch.setattr(optimizer_in_backward, "CHUNK_BYTES", 7 * D * 8)


def sgd(chunks: list[nn.Parameter]) -> torch.optim.Optimizer:
    return torch.optim.SGD(chunks, lr=0.125)  # on a CPU, torch rounds other products of bfloat16 by their place


def train(loss: losses.ProxyLoss, rule: Rule, fused: bool) -> list[Tensor]:
    optimizer = None if fused else rule([loss.proxies])
    fused_optimizer = OptimizerInBackward(loss, rule) if fused else None
    others = [each for each in loss.parameters() if each is not loss.proxies]
    rest = torch.optim.SGD(others, lr=0.1) if others else None
    generator, result = torch.Generator().manual_seed(0), []
    for _ in range(3):
        embeddings = torch.randn(11, D, dtype=torch.float64, generator=generator).requires_grad_()
        value = loss(embeddings, torch.randint(0, C, (11,), generator=generator))
        value.backward()
        for each in (optimizer, rest):
            if each is not None:
                each.step()
                each.zero_grad()
        result += [value.detach(), embeddings.grad]
    assert loss.proxies.grad is None
    if fused_optimizer is not None:
        assert len(fused_optimizer.optimizer.state) == -(-len(loss.proxies) // 7)
    return [*result, *(each.detach() for each in loss.parameters())]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", MAKERS)
def test_it_is_the_ordinary_step(name: str, rule: str):
    ordinary, fused = (train(make(name, "chunked"), RULES[rule], each) for each in (False, True))
    for left, right in zip(ordinary, fused, strict=True):
        assert torch.equal(left, right)


class LargestMade(TorchDispatchMode):
    """The largest number of entries of a tensor that operations make."""

    entries = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        if isinstance(result, Tensor) and not any(result.is_set_to(each) for each in args if isinstance(each, Tensor)):
            self.entries = max(self.entries, result.numel())
        return result


@pytest.mark.parametrize("name", [name for name in MAKERS if name not in DENSE])
def test_no_tensor_is_as_large_as_the_table(name: str, monkeypatch: pytest.MonkeyPatch):
    torch.manual_seed(0)
    made = {}
    for fused in (True, False):
        loss = MAKERS[name](200, D, backend="chunked")
        monkeypatch.setattr(optimizer_in_backward, "CHUNK_BYTES", 10 * D * 4)
        if fused:
            OptimizerInBackward(loss, RULES["sgd"])
        with LargestMade() as largest:
            loss(torch.randn(3, D, requires_grad=True), torch.tensor([1, 0, 1])).backward()
        made[fused] = largest.entries
    assert made[False] >= loss.proxies.numel()
    assert made[True] < loss.proxies.numel()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_other_dtypes(dtype: torch.dtype):
    proxies = []
    for fused in (False, True):
        loss = make("arc-face", "chunked").to(dtype)
        optimizer = OptimizerInBackward(loss, sgd).optimizer if fused else sgd([loss.proxies])
        loss(batch()[0].float(), batch()[1]).backward()
        if not fused:
            optimizer.step()
        proxies.append(loss.proxies.detach())
    assert proxies[0].dtype == dtype
    assert torch.equal(*proxies)


def test_losses_that_share_the_proxies_are_summed():
    """Two batches before one backward pass: their gradients are accumulated, and there is one step."""
    proxies = []
    for fused in (False, True):
        loss = make("arc-face", "chunked")
        optimizer = OptimizerInBackward(loss, RULES["adamw"]).optimizer if fused else RULES["adamw"]([loss.proxies])
        (loss(*batch(11)) + loss(*batch(7))).backward()
        if not fused:
            optimizer.step()
        proxies.append(loss.proxies.detach())
    torch.testing.assert_close(*proxies, rtol=1e-12, atol=1e-12)


def test_another_gradient_of_the_proxies_is_refused():
    loss = make("arc-face", "chunked")
    OptimizerInBackward(loss, sgd)
    with pytest.raises(RuntimeError, match="proxies must be used by the loss only"):
        (loss(*batch()) + loss.proxies.sum()).backward()


def test_a_graph_from_before_an_update_is_refused():
    loss = make("arc-face", "chunked")
    OptimizerInBackward(loss, sgd)
    value = loss(*batch())
    value.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        value.backward()


def test_a_loss_without_a_backward_pass_changes_nothing():
    """A value that was kept, of which nobody computes a gradient, and one without a graph."""
    expected, found = make("arc-face", "chunked"), make("arc-face", "chunked")
    OptimizerInBackward(expected, sgd)
    fused = OptimizerInBackward(found, sgd)
    kept = found(*batch())
    with torch.no_grad():
        found(*batch())
    for loss in (expected, found):
        loss(*batch()).backward()
    assert torch.equal(expected.proxies, found.proxies)
    assert len(fused._uses) == 1
    del kept
    assert not fused._uses


def test_a_schedule_and_a_checkpoint():
    whole, first, second = (make("arc-face", "chunked") for _ in range(3))
    optimizers = [OptimizerInBackward(each, RULES["adamw"]).optimizer for each in (whole, first)]
    for loss, optimizer in zip((whole, first), optimizers, strict=True):
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
        loss(*batch()).backward()
        schedule.step()
    assert optimizers[0].param_groups[0]["lr"] == pytest.approx(0.05)
    second.load_state_dict(first.state_dict())
    OptimizerInBackward(second, RULES["adamw"]).optimizer.load_state_dict(optimizers[1].state_dict())
    for loss in (whole, second):
        loss(*batch(9)).backward()
    assert torch.equal(whole.proxies, second.proxies)


def test_it_can_be_removed():
    loss = make("arc-face", "chunked")
    OptimizerInBackward(loss, sgd).remove()
    before = loss.proxies.detach().clone()
    loss(*batch()).backward()
    assert torch.equal(loss.proxies, before)
    assert loss.proxies.grad is not None


def test_proxies_that_were_moved_are_noticed():
    loss = make("arc-face", "chunked")
    OptimizerInBackward(loss, sgd)
    loss.float()
    with pytest.raises(RuntimeError, match="but they were moved"):
        loss(batch()[0].float(), batch()[1]).backward()


def test_what_it_refuses():
    with pytest.raises(TypeError, match="loss must be a loss with proxies, but it is a TripletLoss"):
        OptimizerInBackward(losses.TripletLoss(), sgd)
    with pytest.raises(ValueError, match=r"loss must compare with all of its proxies, but sampled is 0\.1"):
        OptimizerInBackward(losses.ArcFaceLoss(30, 4, sampled=0.1), sgd)
