"""Boxes are drawn as the published algorithm draws them: compared with it, written down once more as a plain loop."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
import torch
from scipy.stats import ks_2samp, kstest

from likewise.data.crops import CenterCrop, RandomCrop, RandomResizedCrop, RandomShift, canvas, draw_boxes

COUNT = 6000
Boxes = np.ndarray


def published(height: int, width: int, scale: tuple[float, float], ratio: tuple[float, float], chance: random.Random):
    """The random resized crop that torchvision documents: ten tries, then the largest box of an allowed shape."""
    for _ in range(10):
        area = height * width * chance.uniform(*scale)
        shape = math.exp(chance.uniform(math.log(ratio[0]), math.log(ratio[1])))
        w, h = round(math.sqrt(area * shape)), round(math.sqrt(area / shape))
        if 0 < w <= width and 0 < h <= height:
            return chance.randint(0, height - h), chance.randint(0, width - w), h, w
    if width / height < ratio[0]:
        w, h = width, round(width / ratio[0])
    elif width / height > ratio[1]:
        w, h = round(height * ratio[1]), height
    else:
        w, h = width, height
    return (height - h) // 2, (width - w) // 2, h, w


def many(crop: RandomResizedCrop, height: int, width: int, seed: int = 0) -> Boxes:
    sizes = torch.tensor([[height, width]]).expand(COUNT, 2)
    return draw_boxes(crop, sizes, torch.Generator().manual_seed(seed)).numpy()


def features(boxes: Boxes, height: int, width: int) -> dict[str, np.ndarray]:
    top, left, h, w = boxes.T
    free_down, free_right = np.maximum(height - h, 1e-9), np.maximum(width - w, 1e-9)
    return {
        "area": h * w,
        "shape": w / h,
        "top": top,
        "left": left,
        "how far down": np.where(height > h, top / free_down, 0.5),
        "how far right": np.where(width > w, left / free_right, 0.5),
    }


CASES = {
    "birds": (128, 170, (0.16, 1.0), (3 / 4, 4 / 3)),
    "square": (256, 256, (0.08, 1.0), (3 / 4, 4 / 3)),
    "upright": (341, 256, (0.16, 1.0), (0.75, 1.33)),
    "mostly too large": (100, 400, (0.5, 1.0), (3 / 4, 4 / 3)),
    "tiny": (5, 7, (0.05, 1.0), (1 / 3, 3.0)),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_random_resized_crops_have_the_published_distribution(case):
    height, width, scale, ratio = case
    chance = random.Random(1)
    theirs = np.array([published(height, width, scale, ratio, chance) for _ in range(COUNT)], dtype=float)
    ours = many(RandomResizedCrop(scale, ratio), height, width)
    expected, found = features(theirs, height, width), features(ours, height, width)
    for name, values in expected.items():
        assert ks_2samp(values, found[name]).pvalue > 1e-3, name


def test_the_comparison_would_notice_a_wrong_distribution():
    """Aspect ratios drawn uniformly instead of log-uniformly, or sides instead of areas."""
    chance = random.Random(1)
    right = features(many(RandomResizedCrop((0.16, 1.0), (0.5, 2.0)), 256, 256), 256, 256)
    wrong = [256 * 256 * chance.uniform(0.4, 1.0) ** 2 for _ in range(COUNT)]
    assert ks_2samp(wrong, right["area"]).pvalue < 1e-6
    assert ks_2samp([chance.uniform(0.5, 2.0) for _ in range(COUNT)], right["shape"]).pvalue < 1e-6


def test_crops_lie_inside_and_reach_every_edge():
    boxes = many(RandomResizedCrop((0.2, 1.0)), 40, 60)
    top, left, height, width = boxes.T
    assert (top >= 0).all()
    assert (left >= 0).all()
    assert (top + height <= 40).all()
    assert (left + width <= 60).all()
    assert (top + height == 40).any()
    assert (left + width == 60).any()
    assert (boxes == np.rint(boxes)).all()


def test_the_largest_allowed_box_where_nothing_fits():
    """100 x 400 with shapes up to 4/3: 133 wide, in the middle, (400 − 133) // 2 = 133 from the left; and upright."""
    crop = RandomResizedCrop((1.0, 1.0))
    generator = torch.Generator()
    assert draw_boxes(crop, torch.tensor([[100, 400]]), generator).tolist() == [[0.0, 133.0, 100.0, 133.0]]
    assert draw_boxes(crop, torch.tensor([[400, 100]]), generator).tolist() == [[133.0, 0.0, 133.0, 100.0]]


def test_a_batch_of_different_sizes_is_drawn_size_by_size():
    sizes = torch.tensor([[30, 40], [200, 100], [64, 64]])
    boxes = draw_boxes(RandomResizedCrop((0.1, 0.5)), sizes.repeat(500, 1), torch.Generator().manual_seed(0)).view(
        500, 3, 4
    )
    shares = boxes[:, :, 2:].prod(2) / sizes.prod(1)
    for column in shares.T:
        assert kstest(column.numpy(), "uniform", (0.1, 0.4)).pvalue > 1e-4


def test_sides_in_pixels_are_drawn_uniformly():
    """The reality check's crops of 40 to 256 px: the side of a square of the same area."""
    boxes = many(RandomResizedCrop(side=(40, 256)), 2000, 3000)
    sides = np.sqrt(boxes[:, 2] * boxes[:, 3])
    assert kstest(sides, "uniform", (40, 216)).pvalue > 1e-3
    shapes = np.log(boxes[:, 3] / boxes[:, 2])
    assert abs(shapes).max() < math.log(4 / 3) + 0.03


def test_random_crops_of_one_size_are_equally_likely_everywhere():
    boxes = draw_boxes(RandomCrop(7), torch.tensor([[9, 8]]).expand(COUNT, 2), torch.Generator().manual_seed(0))
    places, counts = torch.unique(boxes[:, :2], dim=0, return_counts=True)
    assert places.tolist() == [[y, x] for y in (0, 1, 2) for x in (0, 1)]
    assert (counts - COUNT / 6).abs().max() < 5 * math.sqrt(COUNT / 6)
    assert (boxes[:, 2:] == 7).all()


def test_center_crops_round_half_to_even():
    """As Python's round: (256 − 227) / 2 = 14.5 -> 14, (255 − 224) / 2 = 15.5 -> 16."""
    generator = torch.Generator()
    assert draw_boxes(CenterCrop(227), torch.tensor([[256, 256]]), generator).tolist() == [[14, 14, 227, 227]]
    assert draw_boxes(CenterCrop(224), torch.tensor([[255, 256]]), generator).tolist() == [[16, 16, 224, 224]]
    assert draw_boxes(CenterCrop(), torch.tensor([[3, 5]]), generator).tolist() == [[0, 0, 3, 5]]


def test_shifts_are_small_and_go_both_ways():
    boxes = draw_boxes(RandomShift(0.1, zoom=(0.8, 1.25)), torch.tensor([[40, 40]]).expand(COUNT, 2), torch.Generator())
    middle = boxes[:, :2] + boxes[:, 2:] / 2 - 20
    assert middle.abs().max() <= 4.5
    assert (middle.abs().amax(0) >= 4).all()
    assert middle.mean(0).abs().max() < 0.15
    assert set(boxes[:, 2].tolist()) == {float(side) for side in range(32, 51)}
    assert (boxes[:, 2] == boxes[:, 3]).all()


def test_the_canvas_is_what_a_resize_would_give():
    sizes = torch.tensor([[375, 500], [500, 375], [128, 128], [100, 7]])
    assert canvas(sizes, 256).tolist() == [[256, 341], [341, 256], [256, 256], [3657, 256]]
    assert canvas(sizes, (20, 30)).tolist() == [[20, 30]] * 4
    assert canvas(sizes, None) is sizes


def test_refusals_say_what_is_wrong():
    with pytest.raises(
        ValueError, match=r"scale must be two positive numbers, the smaller one first, but it is \(1.0, 0.5\)"
    ):
        RandomResizedCrop((1.0, 0.5))
    with pytest.raises(ValueError, match=r"scale must be a fraction of the image's area, at most 1.0"):
        RandomResizedCrop((0.5, 2.0))
    with pytest.raises(
        ValueError, match="size must be at most the images' shorter side, but it is 9 and one image has 8 x 20"
    ):
        draw_boxes(CenterCrop(9), torch.tensor([[9, 9], [8, 20]]), torch.Generator())
    with pytest.raises(ValueError, match=r"sizes must have shape \(n, 2\)"):
        draw_boxes(RandomCrop(1), torch.tensor([8, 20]), torch.Generator())
