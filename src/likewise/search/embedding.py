"""Embedding of images in batches: the evaluation transform, averaged views, and a loop that decodes and embeds."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from likewise.data import TRANSFORMS, Augment, BrokenImage, CenterCrop, Draw, Shape, decode, free_memory, to_rgb
from likewise.formula import one_of
from likewise.trunks import Embedder, Preprocessing, TextTrunk

LARGEST, LARGEST_ON_HOST = 512, 16
"""The largest number of images in a batch; on the CPU larger batches are not faster."""

RATIO = 3.0
"""The largest ratio of the sides of an image; the same as in training."""

CORNER = 7 / 8
"""The side of a corner crop, as a fraction of the side of the image, for a model that is evaluated on the whole image."""

Picture: TypeAlias = str | os.PathLike[str] | bytes | Image.Image
"""An image: a path, the bytes of a file, or pixels."""

Extra = TypeVar("Extra")


@dataclass(frozen=True)
class EvalTransform:
    """The transform of images in evaluation.

    Args:
        name: a description of crop and size, for people.
        cache: length of the shorter side to which images are resized first, as in training.
        augment: crop and pixel scaling.

    Examples:
        >>> EvalTransform("the whole image", 32, TRANSFORMS["glyphs"].test).augment.shape
        (32, 32)
    """

    name: str
    cache: int
    augment: Augment

    @property
    def shape(self) -> Shape:
        """The size to which an image is resized first."""
        return Shape(self.cache, RATIO)


def eval_transform(model: Embedder, name: str | None) -> EvalTransform:
    """Return the evaluation transform of a model: a named one, or the one that its card implies.

    Args:
        model: the network.
        name: name of a transform; ``None`` for the one in the model's card.

    Examples:
        >>> eval_transform(Embedder("convnet", 8), None).name
        "shorter side 37 px, center crop of 32 px, from the model's card"
        >>> eval_transform(Embedder("convnet", 8), "glyphs").name
        'whole image, scaled to 32 x 32 px'
    """
    if isinstance(model.trunk, TextTrunk):
        raise ValueError("model must embed images, but both of its sides embed texts")
    expects: Preprocessing | None = model.preprocessing
    if name is not None:
        one_of("transform", name, TRANSFORMS)
        preset = TRANSFORMS[name] if expects is None else TRANSFORMS[name].using(expects)
        return EvalTransform(_describe_crop(preset.test), preset.cache, preset.test)
    if expects is None:
        raise ValueError(
            f"transform must be one of {', '.join(sorted(TRANSFORMS))} for a model whose card has no preprocessing"
        )
    side, size = round(expects.size * 8 / 7), expects.size  # 256 for 224, the usual ratio
    augment = Augment(size, CenterCrop(size), resize=side, normalize=expects)
    return EvalTransform(f"{_describe_crop(augment)}, from the model's card", side, augment)


def _describe_crop(augment: Augment) -> str:
    """Describe which part of an image a network sees, without the name of the transform: it may be that of other data."""
    words, crop = [], augment.crop
    if isinstance(augment.resize, int):
        words.append(f"shorter side {augment.resize} px")
    elif augment.resize is not None:
        words.append("resized to {} x {} px".format(*augment.resize))
    size = getattr(crop, "size", None)
    words.append("whole image" if size is None else f"center crop of {size} px")
    if augment.shape != (size, size):
        words.append("scaled to {} x {} px".format(*augment.shape))
    return ", ".join(words)


@dataclass(frozen=True)
class Views:
    """The views of an image over which embeddings are averaged.

    Args:
        flips: also use the mirrored image.
        crops: 1 for the usual crop, 5 for that crop and the four corners.

    Examples:
        >>> Views(flips=True, crops=5).count
        10
    """

    flips: bool = False
    crops: int = 1

    def __post_init__(self) -> None:
        if self.crops not in (1, 5) or isinstance(self.crops, bool):
            raise ValueError(f"crops must be 1 or 5, but it is {self.crops!r}")

    @property
    def count(self) -> int:
        """The number of views per image."""
        return self.crops * (1 + self.flips)

    def of(self, middle: Tensor, sizes: Tensor) -> Iterator[Draw]:
        """Yield the crops of each view.

        Args:
            middle: boxes of the usual crop: top, left, height and width, ``(n, 4)``.
            sizes: heights and widths of the images, ``(n, 2)``.
        """
        for boxes in [middle] if self.crops == 1 else [middle, *_corners(middle, sizes)]:
            for flip in (False, True) if self.flips else (False,):
                yield Draw(boxes, torch.full((len(boxes),), flip))


def _corners(middle: Tensor, sizes: Tensor) -> Iterator[Tensor]:
    """Yield boxes of the same size in the four corners; slightly smaller ones if the usual crop is the whole image."""
    whole = (middle[:, 2:] >= sizes.double()).all(dim=1, keepdim=True)
    sides = torch.where(whole, middle[:, 2:] * CORNER, middle[:, 2:]).round().clamp_min(1.0)
    rest = (sizes.double() - sides).clamp_min(0.0)
    for down, right in ((0, 0), (0, 1), (1, 0), (1, 1)):
        yield torch.cat([rest[:, :1] * down, rest[:, 1:] * right, sides], dim=1)


@dataclass
class Embedding:
    """A model with a batch size that is reduced when memory runs out.

    Args:
        model: the network, in evaluation mode, on the device.
        device: the device.
        transform: crop and pixel scaling.
        batch: number of images per batch.
        views: the views that are averaged.

    Examples:
        >>> model = Embedder("convnet", 8).eval()
        >>> embedding = Embedding(model, torch.device("cpu"), eval_transform(model, "glyphs"), 2)
        >>> embedding([np.zeros((32, 32, 3), np.uint8)] * 3).shape
        (3, 8)
    """

    model: Embedder
    device: torch.device
    transform: EvalTransform
    batch: int
    views: Views = Views()

    def __post_init__(self) -> None:
        if self.device.type == "cpu":  # halves the time of depthwise convolutions
            self.model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def __call__(self, images: list[Any]) -> NDArray[np.float32]:
        """Embed images that were decoded and resized."""
        vectors = []
        while images:
            some = images[: self.batch]
            try:
                vectors.append(self._embed(some))
            except (torch.OutOfMemoryError, MemoryError):
                if self.batch == 1:
                    raise
                self.batch = max(1, min(self.batch, len(some)) // 2)
                if self.device.type == "cuda":
                    torch.cuda.empty_cache()
                continue
            images = images[len(some) :]
        return np.concatenate(vectors)

    def _embed(self, images: list[Any]) -> NDArray[np.float32]:
        augment = self.transform.augment
        sizes = torch.tensor([image.shape[:2] for image in images], dtype=torch.int64)
        middle = augment.draw(sizes, torch.Generator()).boxes
        total: Tensor | None = None
        with torch.inference_mode():
            for draw in self.views.of(middle, sizes):
                batch = augment.apply(images, draw).to(self.device)
                if self.device.type == "cpu":
                    batch = batch.contiguous(memory_format=torch.channels_last)
                vectors = self.model(batch).float()
                total = vectors if total is None else total + vectors
        assert total is not None
        if self.views.count > 1:
            total = total / self.views.count
            if self.model.normalize:
                total = total / torch.linalg.vector_norm(total, dim=1, keepdim=True).clamp_min(1e-12)
        array: NDArray[np.float32] = total.cpu().numpy()
        return array


def batch_for(transform: EvalTransform, device: torch.device) -> int:
    """Return the number of images that fit into memory: activations need some hundred times the bytes of the input.

    Examples:
        >>> 1 <= batch_for(
        ...     EvalTransform("whole", 32, TRANSFORMS["glyphs"].test), torch.device("cpu")
        ... ) <= LARGEST_ON_HOST
        True
    """
    height, width = transform.augment.shape
    image = 3 * 4 * height * width * 200
    free = free_memory(device)
    return (
        LARGEST
        if free is None
        else int(max(1, min(LARGEST if device.type == "cuda" else LARGEST_ON_HOST, free // 4 // image)))
    )


def pixels(picture: Picture) -> Image.Image:
    """Return an image as upright RGB, from a file, the bytes of a file, or a PIL image.

    Examples:
        >>> pixels(Image.new("L", (3, 2))).mode
        'RGB'
    """
    if isinstance(picture, Image.Image):
        return to_rgb(picture)
    if isinstance(picture, str | os.PathLike | bytes):
        return decode(picture)
    raise TypeError(f"an image must be a path, bytes or a PIL image, but it is a {type(picture).__name__}")


@dataclass(frozen=True)
class EmbeddedBatch(Generic[Extra]):
    """A batch of images after decoding and embedding.

    Args:
        count: number of images that were read, including broken ones.
        rows: positions of the images that could be read.
        vectors: their embeddings ``(len(rows), dim)``.
        extras: the results of ``extra`` for each of them.
        broken: positions of the other images, and the reasons.

    Examples:
        >>> EmbeddedBatch(
        ...     1, [], np.zeros((0, 8), np.float32), [], [(0, BrokenImage("a.png", "the file is empty"))]
        ... ).count
        1
    """

    count: int
    rows: list[int]
    vectors: NDArray[np.float32]
    extras: list[Extra]
    broken: list[tuple[int, BrokenImage]]


def embed_batches(
    embedding: Embedding, images: Sequence[Picture], extra: Callable[[Image.Image], Extra], pool: ThreadPoolExecutor
) -> Iterator[EmbeddedBatch[Extra]]:
    """Decode and embed images batch by batch; the next batch is decoded while this one is embedded.

    Args:
        embedding: the model.
        images: files, bytes of files, or PIL images.
        extra: function of each decoded image, for example one that makes a thumbnail.
        pool: the threads that decode.

    Examples:
        >>> model = Embedder("convnet", 8).eval()
        >>> embedding = Embedding(model, torch.device("cpu"), eval_transform(model, "glyphs"), 2)
        >>> with ThreadPoolExecutor(1) as pool:
        ...     images = [Image.new("L", (9, 9))] * 3
        ...     [(each.rows, each.extras) for each in embed_batches(embedding, images, lambda image: image.mode, pool)]
        [([0, 1], ['RGB', 'RGB']), ([2], ['RGB'])]
    """
    shape, size = embedding.transform.shape, embedding.batch

    def read(image: Picture) -> tuple[NDArray[np.uint8], Extra] | BrokenImage:
        try:
            decoded = pixels(image)
            return shape.of(decoded), extra(decoded)
        except BrokenImage as broken:
            return broken

    def submit(first: int) -> list[Future[tuple[NDArray[np.uint8], Extra] | BrokenImage]]:
        return [pool.submit(read, image) for image in images[first : first + size]]

    waiting = submit(0)
    for first in range(0, len(images), size):
        now, waiting = waiting, submit(first + size)
        results = [(first + place, each.result()) for place, each in enumerate(now)]
        good = [(row, *each) for row, each in results if not isinstance(each, BrokenImage)]
        vectors = embedding([image for _, image, _ in good]) if good else np.zeros((0, embedding.model.dim), np.float32)
        broken = [(row, each) for row, each in results if isinstance(each, BrokenImage)]
        yield EmbeddedBatch(len(now), [row for row, *_ in good], vectors, [each for *_, each in good], broken)
