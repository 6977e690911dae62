"""Glyphs: printed characters, drawn on demand from the fonts inside matplotlib, so that no download is needed.

A class is a character; an image is that character in one of twelve faces, slightly moved, slanted, thickened and with
noise.  Every image is determined by (seed, character, number).  It is computed with raw words of a named generator and
exact arithmetic, so that neither the order of access nor the machine changes it.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterable, Sequence

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from likewise.data.dataset import ImageDataset, Transform
from likewise.data.glyph_characters import CHARACTERS
from likewise.data.glyph_shapes import FACES, draw_shape, font_folder, kinds_of
from likewise.data.layout import one_of
from likewise.data.random_source import Array, RandomSource, whole_number
from likewise.progress import progress

# The largest deviation of an image from its face, in either direction.
_TURN = np.deg2rad(8.0)
_SCALE = 0.12  # of the logarithm of the size
_STRETCH = 0.08  # of the logarithm of the width; the height goes the other way
_SLANT = 0.1
_SHIFT = 1 / 16  # of the size of the image
_THINNER, _THICKER = 0.6, 1.0  # pixels of the fine drawing, on every edge
_FADED = 64  # the lightest ink; the darkest paper is 255 minus this
_NOISE = 31  # the largest standard deviation
_WORDS = 10  # random numbers of an image before its noise


class Glyphs(ImageDataset):
    """Printed characters: 1,438 classes that need no download, for tests and quick experiments.

    The characters are the letters, numerals and symbols that twelve DejaVu faces share, without look-alikes
    (`likewise.data.glyph_shapes.alike`).  Half of them are for training, a tenth for validation and the rest for test, in
    the order of a checksum of the character.  The three parts therefore have the same mixture of scripts, and validation
    scores are representative of test scores.

    Image ``k`` of a character is in face ``k mod 12``, for any number of images per class.

    Args:
        split: ``"train"`` (719 characters), ``"val"`` (143), ``"test"`` (576) or ``"all"``.
        size: height and width of an image in pixels.
        images_per_class: number of images per character.
        seed: seed of the jitter; the characters of a split do not depend on it.
        transform: function applied to an image that ``[index]`` returns.

    Examples:
        >>> glyphs = Glyphs("test", images_per_class=12)
        >>> glyphs
        Glyphs, test: 6,912 images of 576 classes
        >>> glyphs.image(0).size, glyphs.source(5)
        ((32, 32), 'U+0035 DIGIT FIVE in DejaVuSansMono-Bold, image 5')
    """

    def __init__(
        self,
        split: str = "train",
        *,
        size: int = 32,
        images_per_class: int = 24,
        seed: int = 0,
        transform: Transform | None = None,
    ):
        one_of("split", split, ("train", "val", "test", "all"))
        self.size = whole_number("size", size, 8)
        self.images_per_class = whole_number("images_per_class", images_per_class, 1)
        self.seed = whole_number("seed", seed, 0)
        characters = _characters(split)
        kinds, names = kinds_of(characters)
        super().__init__(
            "Glyphs",
            torch.arange(len(characters)).repeat_interleave(images_per_class),
            characters,
            split=split,
            transform=transform,
            categories=torch.tensor(kinds).repeat_interleave(images_per_class),
            category_names=names,
        )
        self._pixels: Tensor | None = None
        font_folder()  # a missing font raises an error here and not in a worker

    def image(self, index: int) -> Image.Image:
        """Return an image, drawn on demand unless `pixels` has drawn it; gray, in RGB like that of every data set."""
        if self._pixels is not None:
            return Image.fromarray(self._pixels[index, 0].numpy()).convert("RGB")
        label, number = divmod(int(index), self.images_per_class)
        drawn = draw_glyphs(self.class_names[label], [number], size=self.size, seed=self.seed)
        return Image.fromarray(drawn[0]).convert("RGB")

    def source(self, index: int) -> str:
        """Return the character, the face and the number of the image."""
        label, number = divmod(int(index), self.images_per_class)
        character = self.class_names[label]
        named = f"U+{ord(character):04X} {unicodedata.name(character)}"
        return f"{named} in {FACES[number % len(FACES)]}, image {number}"

    def pixels(self) -> Tensor:
        """Return all images, ``(n, 1, size, size)`` bytes; they are drawn at the first call and stored.

        Examples:
            >>> Glyphs("val", images_per_class=1).pixels().shape
            torch.Size([143, 1, 32, 32])
        """
        if self._pixels is None:
            drawn = np.empty((len(self.class_names), self.images_per_class, self.size, self.size), dtype=np.uint8)
            numbers = range(self.images_per_class)
            with progress("drawing glyphs", len(self), "image") as advance:
                for label, character in enumerate(self.class_names):
                    drawn[label] = draw_glyphs(character, numbers, size=self.size, seed=self.seed)
                    advance(self.images_per_class)
            self._pixels = torch.from_numpy(drawn.reshape(len(self), 1, self.size, self.size))
        return self._pixels

    def _contents(self) -> Iterable[bytes]:
        """Yield what determines the images, including the fonts, and some images, in case a library draws differently."""
        yield f"{self.size} {self.images_per_class} {self.seed}".encode()
        for face in FACES:
            yield hashlib.sha256((font_folder() / f"{face}.ttf").read_bytes()).digest()
        yield draw_glyphs(self.class_names[0], range(len(FACES)), size=self.size, seed=self.seed).tobytes()


def draw_glyphs(character: str, numbers: Sequence[int], *, size: int = 32, seed: int = 0) -> Array:
    """Draw images of a character: dark on light, ``(len(numbers), size, size)`` bytes.

    Args:
        character: any character of the fonts.
        numbers: numbers of the images; image ``k`` is in face ``k mod 12`` and does not depend on the other numbers.
        size: height and width of an image.
        seed: seed of the jitter.

    Examples:
        >>> one, three = draw_glyphs("A", [2]), draw_glyphs("A", [0, 1, 2])
        >>> three.shape, bool((one[0] == three[2]).all())
        ((3, 32, 32), True)
    """
    count = _WORDS + (size * size + 1) // 2
    words = np.stack([RandomSource(seed, ord(character), number).words(count) for number in numbers])
    fractions = (words[:, :_WORDS] >> np.uint64(11)) * 2.0**-53  # in [0, 1)
    faces = sorted({number % len(FACES) for number in numbers})
    strokes = _strokes(np.stack([draw_shape(character, face, size=size) for face in faces]), rounds=max(1, size // 32))
    maps = _maps(2.0 * fractions[:, :6] - 1.0, size)
    weights = np.floor((fractions[:, 6] * (_THINNER + _THICKER) - _THINNER) * 256.0).astype(np.int32)

    ink = np.empty((len(numbers), size, size), dtype=np.int32)
    for row, number in enumerate(numbers):
        thin, plain, thick = strokes[:, faces.index(number % len(FACES))]
        other = thick if weights[row] > 0 else thin
        blend = plain + ((other - plain) * abs(weights[row]) >> 8)
        shape = Image.fromarray(blend.astype(np.uint8))
        moved = shape.transform((size, size), Image.Transform.AFFINE, maps[row], Image.Resampling.BILINEAR)
        ink[row] = np.asarray(moved)
    return _print_ink(ink, np.floor(fractions[:, 7:] * [_FADED + 1, _FADED + 1, _NOISE + 1]).astype(np.int32), words)


def _strokes(shapes: Array, rounds: int) -> Array:
    """Return each shape with thinner, unchanged and thicker strokes, smoothed for sampling: ``(3, n, side, side)``."""
    thin, thick = shapes, shapes
    for _ in range(rounds):
        thin, thick = 255 - _dilate(255 - thin), _dilate(thick)
    wide = np.pad(np.stack([thin, shapes, thick]).astype(np.int32), ((0, 0), (0, 0), (1, 1), (1, 1)))
    wide = wide[..., :-2] + 2 * wide[..., 1:-1] + wide[..., 2:]
    soft: Array = (wide[..., :-2, :] + 2 * wide[..., 1:-1, :] + wide[..., 2:, :] + 8) >> 4
    return soft


def _dilate(shapes: Array) -> Array:
    """Return the maximum of each pixel and its eight neighbors."""
    for axis in (1, 2):
        moved = np.moveaxis(shapes, axis, 0)
        largest = moved.copy()
        np.maximum(largest[1:], moved[:-1], out=largest[1:])
        np.maximum(largest[:-1], moved[1:], out=largest[:-1])
        shapes = np.moveaxis(largest, 0, axis)
    return shapes


def _maps(amounts: Array, size: int) -> list[tuple[float, ...]]:
    """Return, for each row, the affine map from image pixels to the fine drawing, as the six numbers that Pillow takes.

    The numbers are multiples of 1/1024, so that everything computed from them is exact in floating point and the same
    on every machine.
    """
    turn, scale, stretch, slant, right, down = amounts.T
    cos, sin = np.cos(_TURN * turn), np.sin(_TURN * turn)
    shear, wide, far = _SLANT * slant, np.exp(_STRETCH * stretch), 2.0 / np.exp(_SCALE * scale)
    # rotation x shear x stretch, and two fine pixels to a pixel
    matrix = far * np.stack([cos / wide, (cos * shear - sin) * wide, sin / wide, (sin * shear + cos) * wide])
    x, y = size / 2 + _SHIFT * size * right, size / 2 + _SHIFT * size * down
    offsets = size - np.stack([matrix[0] * x + matrix[1] * y, matrix[2] * x + matrix[3] * y])
    rows = np.stack([matrix[0], matrix[1], offsets[0], matrix[2], matrix[3], offsets[1]], axis=1)
    return [tuple(row) for row in (np.round(rows * 1024.0) / 1024.0).tolist()]


def _print_ink(ink: Array, levels: Array, words: Array) -> Array:
    """Draw ink on paper, each with a random gray, and add noise; computed in integers."""
    dark, light, spread = levels[:, 0], 255 - levels[:, 1], levels[:, 2]
    gray = light[:, None, None] - ((light - dark)[:, None, None] * ink + 127) // 255
    # A sum of four bytes is close to normal, with standard deviation 148.
    parts = np.ascontiguousarray(words[:, _WORDS:]).astype("<u8").view(np.uint8)
    sums = parts.reshape(len(words), -1, 4).sum(axis=2, dtype=np.int32)[:, : ink[0].size].reshape(ink.shape) - 510
    soiled: Array = gray + (sums * spread[:, None, None] + 74) // 148
    return soiled.clip(0, 255).astype(np.uint8)


def _characters(split: str) -> list[str]:
    """Return the characters of a split, by code point."""
    if split == "all":
        return list(CHARACTERS)
    # The order of checksums is as good as random, and does not change when characters are added or removed.
    order = sorted(CHARACTERS, key=lambda character: hashlib.sha256(f"U+{ord(character):04X}".encode()).digest())
    half, tenth = len(order) // 2, len(order) // 10
    parts = {"train": order[:half], "val": order[half : half + tenth], "test": order[half + tenth :]}
    return sorted(parts[split])
