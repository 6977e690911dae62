"""The resampling is Pillow's, on the host and in batches: compared with Pillow, and with the filter written as loops."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from PIL import Image

from likewise.data.loader import pack_rows
from likewise.data.resample import PackedImages, resample_batch, resample_each
from likewise.testing import loop_over


def picture(height: int, width: int, seed: int = 0) -> np.ndarray:
    """Smooth colors with noise and hard edges, so that any slip of a pixel shows."""
    chance = np.random.default_rng(seed)
    y, x = np.mgrid[:height, :width]
    waves = np.stack([np.sin(y / (3 + c) + c) * np.cos(x / (5 - c)) for c in range(3)], axis=2)
    noisy = 128 + 90 * waves + chance.normal(0, 25, (height, width, 3))
    noisy[height // 3 : height // 2, width // 4 : width // 2] = chance.integers(0, 256, 3)
    return noisy.clip(0, 255).astype(np.uint8)


def triangle(image: np.ndarray, box: tuple[float, ...], size: tuple[int, int]) -> np.ndarray:
    """The antialiased bilinear filter as loops over output pixels, in float64, on the whole pixels around the box."""
    result = np.pad(image, ((50, 50), (50, 50), (0, 0)), mode="edge").astype(np.float64)
    for axis in (0, 1):
        start, length = box[axis] + 50, box[axis + 2]
        first, last = math.floor(start), math.ceil(start + length)
        step = length / size[axis]
        reach = max(step, 1.0)
        lines = []
        for place in range(size[axis]):
            center = start + (place + 0.5) * step
            weights = {k: max(0.0, 1.0 - abs(k + 0.5 - center) / reach) for k in range(first, last)}
            total = sum(weights.values())
            lines.append(sum(w / total * result.take(k, axis=axis) for k, w in weights.items() if w))
        result = np.stack(lines, axis=axis)
    return result


def whole_boxes(height: int, width: int, count: int, seed: int) -> list[tuple[float, ...]]:
    chance = np.random.default_rng(seed)
    boxes = []
    for _ in range(count):
        h, w = int(chance.integers(1, height + 1)), int(chance.integers(1, width + 1))
        boxes.append((int(chance.integers(0, height - h + 1)), int(chance.integers(0, width - w + 1)), h, w))
    return boxes


BROKEN_BOXES = [(0.25, 3.5, 30.5, 20.125), (10.75, 0.0, 7.25, 51.0), (0.5, 0.5, 39.0, 50.0), (3.0, 2.25, 1.5, 1.5)]
OVERHANGING = [(-3.0, -2.0, 46.0, 55.0), (-4.0, 10.0, 20.0, 47.0), (30.0, -5.0, 13.0, 20.0)]


@pytest.mark.parametrize("size", [(16, 16), (40, 24), (90, 70)])
def test_boxes_of_whole_pixels_are_pillows_crop_and_resize(size):
    image = picture(41, 52)
    boxes = whole_boxes(41, 52, 40, seed=1)
    each = resample_each([image] * len(boxes), torch.tensor(boxes, dtype=torch.float64), size)
    for (top, left, height, width), ours in zip(boxes, each, strict=True):
        cut = Image.fromarray(image).crop((left, top, left + width, top + height))
        theirs = np.asarray(cut.resize((size[1], size[0]), Image.Resampling.BILINEAR))
        assert np.abs(ours.astype(int) - theirs).max() <= 1


@loop_over("box", [*whole_boxes(41, 52, 6, seed=2), *BROKEN_BOXES, *OVERHANGING])
@pytest.mark.parametrize("size", [(12, 15), (56, 48)])
def test_both_engines_are_the_triangle_filter(box, size):
    image, boxes = picture(41, 52), torch.tensor([box], dtype=torch.float64)
    truth = triangle(image, box, size)
    [host] = resample_each([image], boxes, size)
    assert host.shape == (*size, 3)
    assert np.abs(host - truth).max() <= 1.01  # rounded to bytes after each of two passes
    batch = resample_batch(PackedImages.of([torch.from_numpy(image)]), boxes, torch.tensor([False]), size)
    assert batch.shape == (1, 3, *size)
    assert np.abs(batch[0].permute(1, 2, 0).numpy() - truth).max() < 0.01


def test_a_batch_of_many_sizes_is_each_of_them():
    images = [picture(20 + 7 * i, 60 - 5 * i, seed=i) for i in range(6)]
    boxes = [(*whole_boxes(*image.shape[:2], 1, seed=i)[0],) for i, image in enumerate(images)]
    boxes[3] = (1.5, 2.25, 11.5, 20.75)
    flips = torch.tensor([True, False, True, True, False, False])
    packed = PackedImages.of([torch.from_numpy(image) for image in images])
    batch = resample_batch(packed, torch.tensor(boxes, dtype=torch.float64), flips, (24, 32))
    for made, image, box, flip in zip(batch, images, boxes, flips, strict=True):
        truth = triangle(image, box, (24, 32))
        truth = truth[:, ::-1] if flip else truth
        assert np.abs(made.permute(1, 2, 0).numpy() - truth).max() < 0.01
    chosen = packed.select(torch.tensor([4, 1]))
    again = resample_batch(chosen, torch.tensor([boxes[4], boxes[1]]), flips[[4, 1]], (24, 32))
    assert torch.allclose(again, batch[[4, 1]], atol=1e-3)


def test_nothing_aliases():
    """A checkerboard of single pixels, seen from afar, is gray; plain bilinear sampling sees stripes in it."""
    board = np.indices((65, 65)).sum(0) % 2 * np.uint8(255)
    image = np.repeat(board[:, :, None], 3, axis=2).astype(np.uint8)
    box = torch.tensor([[0.0, 0.0, 65.0, 65.0]])
    [host] = resample_each([image], box, (9, 9))
    batch = resample_batch(PackedImages.of([torch.from_numpy(image)]), box, torch.tensor([False]), (9, 9))
    assert np.abs(host.astype(float) - 127.5).max() < 8
    assert (batch - 127.5).abs().max() < 8
    planes = torch.from_numpy(image).permute(2, 0, 1)[None].float()
    plain = F.interpolate(planes, (9, 9), mode="bilinear", antialias=False)
    assert (plain - 127.5).abs().max() > 60


def test_a_box_of_the_right_size_is_copied():
    image = picture(30, 40)
    box = torch.tensor([[4.0, 5.0, 20.0, 24.0]])
    [host] = resample_each([image], box, (20, 24))
    assert (host == image[4:24, 5:29]).all()
    batch = resample_batch(PackedImages.of([torch.from_numpy(image)]), box, torch.tensor([True]), (20, 24))
    assert (batch[0].permute(1, 2, 0).numpy() == image[4:24, 5:29][:, ::-1]).all()


def test_autocast_does_not_spoil_the_pixels():
    image, box = torch.from_numpy(picture(41, 52))[None], torch.tensor([[1.0, 2.0, 33.0, 44.0]])
    arguments = (PackedImages.of(image), box, torch.tensor([False]), (20, 20))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = resample_batch(*arguments)
    assert inside.dtype == torch.float32
    assert torch.equal(inside, resample_batch(*arguments))


@pytest.mark.parametrize(
    "box", [(5.0, 3.0, 10.0, 12.0), (0.5, 1.0, 7.25, 9.0), (-3.0, 0.0, 9.0, 9.0), (35.0, 2.0, 9.0, 9.0)]
)
def test_the_rows_of_a_box_are_enough(box):
    image, boxes, flips = picture(41, 52), torch.tensor([box]), torch.tensor([False])
    packed, moved = pack_rows([image], boxes)
    assert packed.pixels.shape[0] <= (math.ceil(box[2]) + 1) * 52
    whole = resample_batch(PackedImages.of([torch.from_numpy(image)]), boxes, flips, (8, 8))
    assert torch.equal(resample_batch(packed, moved, flips, (8, 8)), whole)
