"""A batch norm at rest is folded into the convolution before it: the same numbers and gradients, never old ones."""

from __future__ import annotations

import copy
from importlib import import_module

import pytest
import torch
from torch import Tensor, nn

from likewise.trunks import Embedder, build
from likewise.trunks import folding as module
from likewise.trunks.folding import apply_conv_norm, freeze

TRUNKS = {
    "convnet": (1, 32),
    "resnet18": (3, 64),
    "googlenet": (3, 64),
    "bninception": (3, 64),
    "efficientnet_lite0": (3, 64),
}


def restless(network: nn.Module) -> nn.Module:
    """Batch norms with numbers of their own."""
    chance = torch.Generator().manual_seed(0)
    for each in network.modules():
        if isinstance(each, nn.BatchNorm2d):
            for tensor, low in ((each.weight.data, 0.5), (each.bias.data, -0.5), (each.running_mean, -0.5)):
                tensor.copy_(low + torch.rand(tensor.shape, generator=chance))
            each.running_var.copy_(0.5 + torch.rand(each.running_var.shape, generator=chance))
    return network


def plain(x: Tensor, conv: nn.Conv2d, norm: nn.BatchNorm2d) -> Tensor:
    return norm(conv(x))


def gradients(network: nn.Module, images: Tensor) -> tuple[Tensor, list[Tensor]]:
    output = network(images)
    learned = [each for each in network.parameters() if each.requires_grad]
    return output.detach(), list(torch.autograd.grad(output[:, 0].sum(), learned))


@pytest.mark.parametrize("name", TRUNKS)
def test_a_frozen_network_is_the_same_function(name: str, monkeypatch: pytest.MonkeyPatch):
    channels, side = TRUNKS[name]
    torch.manual_seed(0)
    embedder = restless(Embedder(build(name, in_channels=channels), 8, freeze_bn=True).double()).train()
    images = torch.randn(2, channels, side, side, dtype=torch.float64)
    folded = gradients(embedder, images)
    for where in ("convnet", "resnet", "googlenet", "bninception", "efficientnet_lite"):
        monkeypatch.setattr(import_module(f"likewise.trunks.{where}"), "apply_conv_norm", plain)
    expected = gradients(embedder, images)
    assert any(each.abs().max() > 1e-6 for each in expected[1])
    torch.testing.assert_close(folded, expected, rtol=1e-9, atol=1e-9)


def pair(bias: bool = False) -> tuple[nn.Conv2d, nn.BatchNorm2d, Tensor]:
    torch.manual_seed(0)
    conv, norm = nn.Conv2d(3, 4, 3, bias=bias), restless(nn.BatchNorm2d(4))
    assert isinstance(norm, nn.BatchNorm2d)
    freeze(norm)
    return conv, norm, torch.randn(2, 3, 6, 6)


def test_one_convolution_and_nothing_else(monkeypatch: pytest.MonkeyPatch):
    conv, norm, x = pair(bias=True)
    expected = norm(conv(x))
    monkeypatch.setattr(norm, "forward", None)  # it is not asked
    torch.testing.assert_close(apply_conv_norm(x, conv, norm), expected)


@pytest.mark.parametrize("name", ["weight", "bias", "running_mean", "running_var"])
def test_numbers_that_change_are_seen(name: str):
    conv, norm, x = pair()
    before = apply_conv_norm(x, conv, norm)
    getattr(norm, name).detach().add_(0.25)
    torch.testing.assert_close(apply_conv_norm(x, conv, norm), norm(conv(x)))
    assert not torch.allclose(before, apply_conv_norm(x, conv, norm))
    norm.load_state_dict({key: value + 1 for key, value in norm.state_dict().items()})
    torch.testing.assert_close(apply_conv_norm(x, conv, norm), norm(conv(x)))


def test_a_copy_and_another_dtype_have_their_own():
    conv, norm, x = pair()
    apply_conv_norm(x, conv, norm)
    other = copy.deepcopy(norm)
    other.running_mean.add_(1.0)
    torch.testing.assert_close(apply_conv_norm(x, conv, other), other(conv(x)))
    torch.testing.assert_close(apply_conv_norm(x, conv, norm), norm(conv(x)))
    torch.testing.assert_close(apply_conv_norm(x.double(), conv.double(), norm.double()), norm(conv(x.double())))


def test_nothing_is_kept_of_a_norm_that_is_gone():
    conv, norm, x = pair()
    apply_conv_norm(x, conv, norm)
    size = len(module._CACHE)
    del norm
    assert len(module._CACHE) == size - 1


def test_a_norm_that_learns_learns():
    conv, norm, x = pair()
    norm.requires_grad_(True)
    apply_conv_norm(x, conv, norm).sum().backward()
    assert norm.weight.grad is not None
    norm.train()
    before = norm.running_mean.clone()
    apply_conv_norm(x, conv, norm)
    assert not torch.equal(before, norm.running_mean)


def test_hooks_are_called():
    conv, norm, x = pair()
    seen = []
    norm.register_forward_hook(lambda *_: seen.append(1))
    apply_conv_norm(x, conv, norm)
    assert seen == [1]


def test_nothing_is_kept_of_a_norm_that_nobody_froze():
    """Training moves running statistics in ways that leave no trace in a tensor's version."""
    conv, _, x = pair()
    norm = restless(nn.BatchNorm2d(4))
    assert isinstance(norm, nn.BatchNorm2d)
    for requires_grad in (True, False):
        norm.requires_grad_(requires_grad)
        for _ in range(2):
            apply_conv_norm(x, conv, norm.train())
            with torch.no_grad():
                assert torch.equal(apply_conv_norm(x, conv, norm.eval()), norm(conv(x)))


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_what_was_kept_without_gradients_serves_with_them(mode):
    conv, norm, x = pair()
    with mode():
        torch.testing.assert_close(apply_conv_norm(x, conv, norm), norm(conv(x)))
    apply_conv_norm(x, conv, norm).sum().backward()
    expected = torch.autograd.grad(norm(conv(x)).sum(), conv.weight)[0]
    torch.testing.assert_close(conv.weight.grad, expected)


def test_exported_as_it_is_written():
    embedder = restless(Embedder("convnet", 8, freeze_bn=True)).eval()
    x = torch.randn(2, 1, 32, 32)
    program = torch.export.export(embedder, (x,))
    torch.testing.assert_close(program.module()(x), embedder(x))
