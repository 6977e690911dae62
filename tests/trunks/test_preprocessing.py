"""Pixels to what weights expect, against the formula written out for each channel."""

from __future__ import annotations

import json

import pytest
import torch

from likewise.trunks import IMAGENET, TRUNKS, Preprocessing, build

BYTES = torch.arange(2 * 3 * 4 * 5).remainder(256).to(torch.uint8).reshape(2, 3, 4, 5)


def by_hand(images: torch.Tensor, index: int, mean: float, std: float) -> torch.Tensor:
    return (images[:, index].double() - mean) / std


def test_imagenet():
    result = IMAGENET(BYTES)
    assert result.dtype == torch.float32
    for index, (mean, std) in enumerate(zip((0.485, 0.456, 0.406), (0.229, 0.224, 0.225), strict=True)):
        wanted = by_hand(BYTES.double() / 255.0, index, mean, std)
        torch.testing.assert_close(result[:, index].double(), wanted, rtol=1e-5, atol=1e-6)


def test_bninception_is_blue_first_and_counts_in_bytes():
    result = build("bninception").preprocessing(BYTES)
    for place, (index, mean) in enumerate(((2, 104.0), (1, 117.0), (0, 128.0))):
        torch.testing.assert_close(result[:, place].double(), by_hand(BYTES, index, mean, 1.0), rtol=1e-5, atol=1e-4)


def test_efficientnet_lite_is_exact():
    result = build("efficientnet_lite0").preprocessing(BYTES)
    torch.testing.assert_close(result.double(), (BYTES.double() - 127.0) / 128.0, rtol=0.0, atol=2e-7)


def test_googlenet_undoes_what_torchvision_does_twice():
    """ImageNet's normalization, then torchvision's ``transform_input``, is pixels from −1 to 1."""
    once = build("googlenet").preprocessing(BYTES)
    normalized = IMAGENET(BYTES)
    for index, (mean, std) in enumerate(zip((0.485, 0.456, 0.406), (0.229, 0.224, 0.225), strict=True)):
        twice = normalized[:, index] * (std / 0.5) + (mean - 0.5) / 0.5
        torch.testing.assert_close(once[:, index], twice, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", TRUNKS)
def test_floats_from_0_to_1_are_bytes_over_255(name: str):
    preprocessing = build(name).preprocessing
    images = BYTES[:, : len(preprocessing.mean)]
    given = preprocessing(images.double() / 255.0)
    assert given.dtype == torch.float64
    torch.testing.assert_close(given.float(), preprocessing(images), rtol=1e-5, atol=1e-4)
    torch.testing.assert_close(preprocessing(images[0]), preprocessing(images)[0])  # one image


def test_through_json():
    for entry in TRUNKS.values():
        preprocessing = entry.make().preprocessing
        assert Preprocessing.from_dict(json.loads(json.dumps(preprocessing.as_dict()))) == preprocessing


def test_frozen_and_hashable():
    assert len({Preprocessing(), Preprocessing(), Preprocessing(size=299)}) == 2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Preprocessing(order="RBG"), "order must be one of 'RGB', 'BGR', 'L', but it is 'RBG'"),
        (lambda: Preprocessing(order="L"), "mean must have one number for each of L's channels, but it has 3"),
        (lambda: Preprocessing(std=(1.0, 0.0, 1.0)), r"std must be positive, but it is \(1.0, 0.0, 1.0\)"),
        (lambda: Preprocessing(white=0.0), "white must be positive, but it is 0.0"),
        (lambda: Preprocessing(size=0), "size must be a whole number from 1 to 4,096, but it is 0"),
        (lambda: IMAGENET(BYTES[:, :1]), r"images must have shape \(B, 3, H, W\) or \(3, H, W\), but the shape is"),
        (
            lambda: IMAGENET(BYTES.long()),
            "images must be uint8 or of a floating-point dtype, but the dtype is torch.int64",
        ),
    ],
)
def test_one_sentence(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()
