"""A batch is what Pillow and plain arithmetic make of the same crops; recipes are what their papers say."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from likewise.data.augment import PLAIN, Augment, Draw, Normalize
from likewise.data.color import CHANGES, ColorJitter
from likewise.data.crops import CenterCrop, RandomResizedCrop
from likewise.data.resample import FRACTION, PackedImages, resample_batch
from likewise.data.transforms import (
    CUB128,
    CUB176,
    GLYPHS,
    REALITY_CHECK,
    REALITY_CHECK_CODE,
    THESIS,
    TRANSFORMS,
    UNIFIED_VIEW,
)
from tests.data.test_resample import picture


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def pictures(count: int = 5, shorter: int = 40) -> list[np.ndarray]:
    return [picture(shorter + 9 * (i % 2), shorter + 5 * i, seed=i) for i in range(count)]


def by_pillow(image: np.ndarray, box: list[float], flip: bool, size: int) -> np.ndarray:
    top, left, height, width = box
    cut = Image.fromarray(image).crop((left, top, left + width, top + height))
    small = np.asarray(cut.resize((size, size), Image.Resampling.BILINEAR)).astype(float)
    return small[:, ::-1] if flip else small


def on_a_device(augment: Augment, images: list[np.ndarray], draw: Draw) -> torch.Tensor:
    """What happens to a batch on a device, made to happen here."""
    packed = PackedImages.of([torch.from_numpy(image) for image in images])
    pixels = resample_batch(packed, draw.boxes, draw.flips, augment.shape)
    return augment._finish(augment._jitter_colors(pixels / 255.0, draw) * 255.0 if augment.jitter else pixels)


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("engine", ["host", "device"])
def test_a_batch_is_pillows_crops_scaled(engine, channels_last):
    images = pictures()
    augment = Augment(24, RandomResizedCrop((0.1, 1.0)), flip=0.5, normalize=Normalize(), channels_last=channels_last)
    draw = augment.draw(torch.tensor([image.shape[:2] for image in images]), seeded())
    assert set(draw.flips.tolist()) == {True, False}
    batch = augment.apply(images, draw) if engine == "host" else on_a_device(augment, images, draw)
    assert batch.shape == (5, 3, 24, 24)
    assert batch.dtype == torch.float32
    assert batch.is_contiguous(memory_format=torch.channels_last if channels_last else torch.contiguous_format)
    for made, image, box, flip in zip(batch, images, draw.boxes.tolist(), draw.flips.tolist(), strict=True):
        expected = (by_pillow(image, box, flip, 24) / 255 - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]
        assert np.abs(made.permute(1, 2, 0).numpy() - expected).max() < 1.1 / 255 / 0.224


@pytest.mark.parametrize("engine", ["host", "device"])
@pytest.mark.parametrize(
    ("normalize", "expected"),
    [
        (PLAIN, lambda rgb: rgb / 255),
        (Normalize((127.0,) * 3, (128.0,) * 3, white=255.0), lambda rgb: (rgb - 127) / 128),
        (Normalize((104.0, 117.0, 128.0), (1.0,) * 3, 255.0, "BGR"), lambda rgb: rgb[:, :, ::-1] - [104, 117, 128]),
        (Normalize((0.5,), (0.5,), order="L"), lambda rgb: (rgb @ [0.299, 0.587, 0.114])[:, :, None] / 127.5 - 1),
    ],
    ids=["plain", "lite", "BGR", "gray"],
)
def test_pixels_are_scaled_as_a_network_expects_them(engine, normalize, expected):
    images = pictures()
    augment = Augment(20, CenterCrop(20), normalize=normalize)
    draw = augment.draw(torch.tensor([image.shape[:2] for image in images]), seeded())
    batch = augment.apply(images, draw) if engine == "host" else on_a_device(augment, images, draw)
    for made, image in zip(batch, images, strict=True):
        top, left = round((image.shape[0] - 20) / 2), round((image.shape[1] - 20) / 2)
        middle = image[top : top + 20, left : left + 20].astype(np.float64)
        assert np.allclose(made.permute(1, 2, 0).numpy(), expected(middle), atol=1e-4)


def test_a_trunks_preprocessing_is_a_pixel_scale():
    preprocessing = pytest.importorskip("likewise.trunks.preprocessing").Preprocessing(
        (104.0, 117.0, 128.0), (2.0, 1.0, 3.0), white=255.0, order="BGR"
    )
    image = torch.from_numpy(picture(8, 8))
    ours = Augment(8, CenterCrop(), normalize=preprocessing)(image[None], seeded())
    assert torch.allclose(ours, preprocessing(image.permute(2, 0, 1)[None]), atol=1e-4)


def test_chance_comes_from_the_generator_alone():
    images = pictures()
    augment = Augment(16, RandomResizedCrop(), flip=0.5, jitter=ColorJitter(0.3, 0.3, 0.3, 0.1))
    first = augment(images, seeded(7))
    torch.rand(3)
    assert torch.equal(first, augment(images, seeded(7)))
    assert not torch.equal(first, augment(images, seeded(8)))


def test_images_at_several_scales():
    """Boxes keep their centers and are divided by one of the scales; everything else is drawn as without scales."""
    sizes = torch.tensor([[60, 80]]).expand(900, 2)
    plain = Augment(16, RandomResizedCrop(), flip=0.5, jitter=ColorJitter(0.3, 0.3, 0.3, 0.1))
    several = replace(plain, scales=(1.0, 1.25, 0.5))
    numbers = several.draw_numbers(900, seeded())
    found, expected = several.place(sizes, numbers), plain.place(sizes, numbers[:, :-1])
    assert torch.equal(found.flips, expected.flips)
    assert torch.equal(found.amounts, expected.amounts)
    ratios = expected.boxes[:, 2:] / found.boxes[:, 2:]
    centers = [boxes[:, :2] + boxes[:, 2:] / 2 for boxes in (found.boxes, expected.boxes)]
    assert (centers[0] - centers[1]).abs().max() <= 2 * FRACTION
    for scale in several.scales:
        near = (ratios - scale).abs().amax(dim=1) < 0.02
        assert 240 < int(near.sum()) < 360
    images = pictures()
    for augment in (several, replace(several, resize=48)):
        draw = augment.draw(torch.tensor([image.shape[:2] for image in images]), seeded(3))
        on_host = augment.apply(images, draw)
        torch.testing.assert_close(on_a_device(augment, images, draw), on_host, rtol=0.0, atol=2e-2)
    assert CUB128.at_scales([1.0, 2.0]).train.scales == (1.0, 2.0)
    assert CUB128.at_scales([1.0, 2.0]).test == CUB128.test
    for bad in (0.0, 1e-3, 1e9, float("nan")):  # a crop of no pixels, or of thousands of times the image
        with pytest.raises(ValueError, match=r"scales must be numbers from 0.1 to 10, but they are"):
            CUB128.at_scales([1.0, bad])


def test_flips_have_their_probability():
    for share in (0.0, 0.3, 1.0):
        draw = Augment(4, CenterCrop(), flip=share).draw(torch.tensor([[4, 4]]).expand(4000, 2), seeded())
        assert abs(draw.flips.double().mean().item() - share) < 4 * 0.008


def test_the_same_image_in_any_form():
    images = [picture(30, 30, seed=i) for i in range(3)]
    tensors = [torch.from_numpy(image) for image in images]
    augment = Augment(12, RandomResizedCrop(), flip=0.5)
    expected = augment(images, seeded())
    for form in (tensors, torch.stack(tensors), PackedImages.of(tensors)):
        assert torch.equal(augment(form, seeded()), expected)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_other_dtypes_are_the_same_numbers(dtype):
    images = pictures()
    augment = Augment(16, RandomResizedCrop(), normalize=Normalize())
    single, other = augment(images, seeded()), replace(augment, dtype=dtype)(images, seeded())
    assert other.dtype == dtype
    assert torch.equal(single.to(dtype), other)


@pytest.mark.parametrize("order", ["RGB", "L"])
def test_jitter_is_between_resampling_and_scaling(order):
    images, channels = pictures(), len(order)
    plain = Augment(16, CenterCrop(16))
    jittered = replace(
        plain,
        jitter=ColorJitter(brightness=0.5),
        normalize=Normalize((0.5,) * channels, (0.25,) * channels, order=order),
    )
    draw = jittered.draw(torch.tensor([image.shape[:2] for image in images]), seeded(3))
    assert draw.amounts is not None
    bright = CHANGES[0](plain.apply(images, draw), draw.amounts[:, 0, None, None, None])
    if order == "L":
        bright = (bright * torch.tensor([0.299, 0.587, 0.114]).view(1, 3, 1, 1)).sum(1, keepdim=True)
    for batch in (jittered.apply(images, draw), on_a_device(jittered, images, draw)):
        assert torch.allclose(batch, (bright - 0.5) / 0.25, atol=1e-4)


def test_memory_can_be_given():
    images = pictures()
    for channels_last in (False, True):
        augment = Augment(16, CenterCrop(16), channels_last=channels_last)
        out = np.empty(augment.buffer(5), np.float32)
        draw = augment.draw(torch.tensor([image.shape[:2] for image in images]), seeded())
        made = augment.apply(images, draw, out=out)
        assert np.shares_memory(made.numpy(), out)
        assert torch.equal(made, augment.apply(images, draw))


# ------------------------------------------------------------------------------------------------ recipes


def test_evaluation_of_the_reality_check_is_resize_and_center_crop():
    """On images stored at 256 px, byte by byte what Pillow gives; smaller ones are enlarged in the same resampling."""
    photo = Image.fromarray(picture(300, 400))
    stored = photo.resize((341, 256), Image.Resampling.BILINEAR)
    batch = REALITY_CHECK.test([np.asarray(stored)], seeded())
    theirs = np.asarray(stored.crop((57, 14, 57 + 227, 14 + 227)))
    assert (batch[0].permute(1, 2, 0).mul(255).round().numpy() == theirs).all()

    small = photo.resize((170, 128), Image.Resampling.BILINEAR)
    draw = REALITY_CHECK.test.draw(torch.tensor([[128, 170]]), seeded())
    assert draw.boxes.tolist() == [[7.0, 28.0, 113.5, 113.5]]  # half of (14, 56, 227, 227)
    enlarged = REALITY_CHECK.test([np.asarray(small)], seeded())[0].permute(1, 2, 0).mul(255).numpy()
    twice = np.asarray(small.resize((340, 256), Image.Resampling.BILINEAR).crop((56, 14, 56 + 227, 14 + 227)))
    assert np.abs(enlarged[2:-2, 2:-2] - twice[2:-2, 2:-2]).max() < 2.5


def test_training_of_the_reality_check_is_its_text():
    """Shorter side 256; a crop with a size from 40 to 256 and a shape from 3/4 to 4/3; resized to 227; mirrored half the time."""
    train = REALITY_CHECK.train
    assert (train.size, train.resize, train.flip) == (227, 256, 0.5)
    sizes = torch.tensor([[256, 341]]).expand(4000, 2)
    boxes = train.draw(sizes, seeded()).boxes
    sides, shapes = (boxes[:, 2] * boxes[:, 3]).sqrt(), boxes[:, 3] / boxes[:, 2]
    assert 39 < sides.min() < 41
    assert 254 < sides.max() < 257
    assert 0.73 < shapes.min() < 0.77
    assert 1.3 < shapes.max() < 1.36
    # a data set stored at half the size is cropped at the same places
    half = train.draw(torch.tensor([[128, 170]]).expand(4000, 2), seeded()).boxes
    same = boxes[:, 2] == 2 * half[:, 2]  # but for those that fit 341 and not 340 pixels
    assert same.double().mean() > 0.99
    assert (boxes[same, 0] == 2 * half[same, 0]).all()


def test_the_other_recipes_are_their_papers():
    code = REALITY_CHECK_CODE.train.crop
    assert (code.scale, code.ratio, code.side) == ((0.16, 1.0), (0.75, 1.33), None)
    assert (THESIS.train.size, THESIS.train.crop, THESIS.train.resize) == (224, RandomResizedCrop((0.08, 1.0)), None)
    assert (THESIS.test.size, THESIS.test.crop, THESIS.test.resize) == (224, CenterCrop(224), 256)
    assert (CUB128.train.size, CUB128.train.crop) == (112, RandomResizedCrop((0.16, 1.0)))
    assert (CUB128.test.crop, CUB128.test.resize) == (CenterCrop(112), 128)
    for ours, small in ((CUB176.train, CUB128.train), (CUB176.test, CUB128.test)):
        assert ours == replace(small, size=176)  # the same part of the image, larger
    assert CUB176.cache == CUB128.cache == 128
    assert UNIFIED_VIEW.train.resize == (256, 256)
    assert GLYPHS.train.flip == 0.0


@pytest.mark.parametrize("name", TRANSFORMS)
def test_every_recipe_runs_on_what_it_stores(name):
    recipe = TRANSFORMS[name].using(Normalize(), dtype=torch.bfloat16, channels_last=True)
    images = [picture(recipe.cache, recipe.cache * 4 // 3, seed=i) for i in range(3)]
    for augment in (recipe.train, recipe.test):
        batch = augment(images, seeded())
        assert batch.shape == (3, 3, augment.size, augment.size)
        assert batch.dtype == torch.bfloat16
        assert batch.isfinite().all()
    assert torch.equal(recipe.test(images, seeded(0)), recipe.test(images, seeded(1)))


def test_refusals_say_what_is_wrong():
    with pytest.raises(ValueError, match="size must be a whole number of pixels ≥ 1, or two, but it is 0"):
        Augment(0, CenterCrop())
    with pytest.raises(ValueError, match=r"flip must be a probability, but it is 1\.5"):
        Augment(8, CenterCrop(), flip=1.5)
    with pytest.raises(ValueError, match=r"dtype must be a floating-point dtype, but it is torch\.uint8"):
        Augment(8, CenterCrop(), dtype=torch.uint8)
    with pytest.raises(ValueError, match="normalize must have the order"):
        Augment(8, CenterCrop(), normalize=Normalize(order="HSV"))
    with pytest.raises(
        ValueError, match=r"images must be bytes of shape \(h, w, 3\), but one is torch\.float32 \(3, 8, 8\)"
    ):
        Augment(8, CenterCrop())(torch.rand(1, 3, 8, 8), seeded())


# ------------------------------------------------------------------------------------------------ the kernel

KERNEL = """
import torch
from dataclasses import replace
from likewise.data import kernel
from likewise.data.augment import Augment, Normalize
from likewise.data.crops import CenterCrop, RandomResizedCrop, RandomShift
from likewise.data import augment as augmenting
from likewise.data.resample import PackedImages, table_of
from tests.data.test_augment import on_a_device, picture, seeded

augmenting.find_kernel = lambda device: kernel

images = [picture(13, 20), picture(26, 9, seed=1)]
packed = PackedImages.of([torch.from_numpy(image) for image in images])
sizes = torch.tensor([image.shape[:2] for image in images])
lite = Normalize((127.0, 120.0, 110.0), (128.0, 64.0, 32.0), white=255.0)
cases = [
    Augment(10, RandomResizedCrop((0.2, 1.0)), flip=0.5, normalize=lite),
    Augment((17, 35), CenterCrop(), normalize=replace(lite, order="BGR"), channels_last=True),
    Augment(9, RandomResizedCrop(), resize=100, flip=0.5, normalize=Normalize((0.5,), (0.25,), order="L")),
    Augment(12, RandomShift(0.3, zoom=(0.7, 1.3)), flip=1.0, dtype=torch.float16),
    Augment(3, CenterCrop(), channels_last=True),
]
for augment in cases:
    draw = augment.draw(sizes, seeded(1))
    expected = on_a_device(augment, images, draw)
    made = augment.at_once(packed.pixels, table_of(packed, draw.boxes, draw.flips))
    assert made.dtype == expected.dtype and made.stride() == expected.stride(), augment
    least = 2e-3 if augment.dtype == torch.float16 else 2e-4
    assert (made.float() - expected.float()).abs().max() < least, augment
kernel.probe(torch.device("cpu"))
print("the same")
"""


def test_the_compiled_resampling_in_the_interpreter():
    """Triton's interpreter runs the kernel on the CPU; it must be switched on before Triton is imported."""
    pytest.importorskip("triton")
    environment, root = {**os.environ, "TRITON_INTERPRET": "1"}, Path(__file__).parents[2]
    result = subprocess.run([sys.executable, "-c", KERNEL], env=environment, cwd=root, capture_output=True, text=True)
    assert result.stdout.strip() == "the same", result.stderr
