"""Colors change as Pillow changes them, by amounts with torchvision's distribution."""

from __future__ import annotations

import colorsys

import numpy as np
import pytest
import torch
from PIL import Image, ImageEnhance
from scipy.stats import kstest

from likewise.data.augment import Augment
from likewise.data.color import CHANGES, ColorJitter, gray, turn_hue
from likewise.data.crops import CenterCrop
from tests.data.test_resample import picture


def as_floats(image: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(image).permute(2, 0, 1)[None] / 255.0


@pytest.mark.parametrize(
    ("change", "enhance"),
    [(0, ImageEnhance.Brightness), (1, ImageEnhance.Contrast), (2, ImageEnhance.Color)],
    ids=["brightness", "contrast", "saturation"],
)
@pytest.mark.parametrize("factor", [0.0, 0.4, 1.0, 1.7])
def test_changes_are_pillows(change, enhance, factor):
    image = picture(31, 42)
    theirs = np.asarray(enhance(Image.fromarray(image)).enhance(factor)).astype(float)
    ours = CHANGES[change](as_floats(image), torch.tensor(factor)) * 255.0
    # Pillow truncates to bytes, and rounds the mean gray for contrast
    assert np.abs(ours[0].permute(1, 2, 0).numpy() - theirs).max() <= 2.0


@pytest.mark.parametrize("turn", [-0.5, -0.2, 0.0, 1 / 3, 0.5])
def test_the_hue_turns_as_in_colorsys(turn):
    colors = torch.rand(1, 3, 6, 6, generator=torch.Generator().manual_seed(0))
    colors[0, :, 0, 0] = 0.4  # gray has no hue
    colors[0, :, 0, 1] = torch.tensor([1.0, 1.0, 0.0])
    turned = turn_hue(colors, torch.tensor(turn))
    for y in range(6):
        for x in range(6):
            hue, saturation, value = colorsys.rgb_to_hsv(*colors[0, :, y, x].tolist())
            expected = colorsys.hsv_to_rgb((hue + turn) % 1.0, saturation, value)
            assert turned[0, :, y, x].tolist() == pytest.approx(expected, abs=1e-5)


def test_gray_is_pillows():
    image = picture(16, 16)
    theirs = np.asarray(Image.fromarray(image).convert("L")).astype(float)
    assert np.abs(gray(as_floats(image))[0, 0].numpy() * 255 - theirs).max() <= 0.51


def test_amounts_are_uniform_and_each_images_own():
    jitter = ColorJitter(brightness=0.4, contrast=1.5, saturation=0.2, hue=0.1)
    amounts = jitter.amounts(torch.rand(4000, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64))
    for column, (low, width) in zip(amounts.T, [(0.6, 0.8), (0.0, 2.5), (0.8, 0.4), (-0.1, 0.2)], strict=True):
        assert kstest(column.numpy(), "uniform", (low, width)).pvalue > 1e-3
    assert torch.corrcoef(amounts.T).fill_diagonal_(0.0).abs().max() < 0.06


def test_every_order_comes():
    generator, augment = torch.Generator().manual_seed(0), Augment(4, CenterCrop(), jitter=ColorJitter(hue=0.1))
    assert len({augment.order(generator) for _ in range(400)}) == 24


def test_the_order_matters_and_is_followed():
    jitter = ColorJitter(brightness=0.9, saturation=0.9)
    images, amounts = torch.rand(2, 3, 5, 5), torch.tensor([[1.7, 1.0, 0.2, 0.0], [0.4, 1.0, 1.8, 0.0]])
    first = jitter.apply(images, amounts, (0, 1, 2, 3))
    by_hand = CHANGES[2](CHANGES[0](images, amounts[:, 0, None, None, None]), amounts[:, 2, None, None, None])
    assert torch.equal(first, by_hand)
    assert not torch.allclose(first, jitter.apply(images, amounts, (2, 1, 0, 3)))


def test_without_amounts_nothing_changes():
    images = torch.rand(1, 3, 4, 4)
    assert torch.equal(ColorJitter().apply(images, torch.ones(1, 4), (3, 2, 1, 0)), images)


@pytest.mark.parametrize(("name", "value"), [("brightness", -0.1), ("hue", 0.6), ("contrast", float("inf"))])
def test_refusals_name_the_argument(name, value):
    with pytest.raises(ValueError, match=f"{name} must be"):
        ColorJitter(**{name: value})
