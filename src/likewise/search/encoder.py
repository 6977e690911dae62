"""A model and how images are shown to it: from files, bytes or pictures to vectors."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from likewise.data import RECIPES, Augment, BrokenImage, CenterCrop, Draw, Shape, cores, decode, free_memory, to_rgb
from likewise.formula import one_of
from likewise.trunks import TRUNKS, Card, Embedder, Preprocessing

LARGEST, LARGEST_ON_HOST = 512, 16
"""Images in a batch, at most; on the CPU larger ones only move more memory."""

RATIO = 3.0
"""How long an image may be; the same as in training."""

CORNER = 7 / 8
"""The side of a corner crop, as a share of the image's, where the model is shown the whole image."""

Picture: TypeAlias = str | os.PathLike[str] | bytes | Image.Image
"""An image: its file, the file's bytes, or pixels."""

Given = TypeVar("Given")
Read = TypeVar("Read")


@dataclass(frozen=True)
class Shown:
    """How images are shown to a model.

    Args:
        name: in words.
        cache: the length of the shorter side to which they are shrunk first, as they are for training.
        augment: crop and scaling.

    Examples:
        >>> Shown("the whole image", 32, RECIPES["glyphs"].test).augment.shape
        (32, 32)
    """

    name: str
    cache: int
    augment: Augment

    @property
    def shape(self) -> Shape:
        """What an image is shrunk to."""
        return Shape(self.cache, RATIO)


def shown_to(model: Embedder, images: str | None) -> Shown:
    """How images are shown: as a recipe has it, or as the model's card says of its size.

    Args:
        model: what they are shown to.
        images: the name of a recipe.

    Examples:
        >>> shown_to(Embedder("convnet", 8), None).name
        "shorter side 37, the middle 32 x 32, as the model's card says"
        >>> shown_to(Embedder("convnet", 8), "glyphs").name
        'as in the recipe glyphs'
    """
    expects: Preprocessing | None = model.preprocessing
    if images is not None:
        one_of("images", images, RECIPES)
        recipe = RECIPES[images] if expects is None else RECIPES[images].using(expects)
        return Shown(f"as in the recipe {images}", recipe.cache, recipe.test)
    if expects is None:
        raise ValueError(f"images must be one of {', '.join(sorted(RECIPES))} for a model whose card does not say")
    side, size = round(expects.size * 8 / 7), expects.size  # 256 for 224, as is usual
    augment = Augment(size, CenterCrop(size), resize=side, normalize=expects)
    return Shown(f"shorter side {side}, the middle {size} x {size}, as the model's card says", side, augment)


@dataclass(frozen=True)
class Views:
    """Which views of an image are averaged.

    Args:
        flips: the mirrored image, too.
        crops: 1 for what the model is shown otherwise, 5 for that and the four corners.

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
        """How often the network looks at an image."""
        return self.crops * (1 + self.flips)

    def of(self, middle: Tensor, sizes: Tensor) -> Iterator[Draw]:
        """What to draw, view by view.

        Args:
            middle: the boxes that are shown otherwise: top, left, height and width, ``(n, 4)``.
            sizes: heights and widths of the images, ``(n, 2)``.
        """
        for boxes in [middle] if self.crops == 1 else [middle, *_corners(middle, sizes)]:
            for flip in (False, True) if self.flips else (False,):
                yield Draw(boxes, torch.full((len(boxes),), flip))


def _corners(middle: Tensor, sizes: Tensor) -> Iterator[Tensor]:
    """Boxes as large as the middle ones in the corners; somewhat smaller where those are the whole image."""
    whole = (middle[:, 2:] >= sizes.double()).all(dim=1, keepdim=True)
    sides = torch.where(whole, middle[:, 2:] * CORNER, middle[:, 2:]).round().clamp_min(1.0)
    rest = (sizes.double() - sides).clamp_min(0.0)
    for down, right in ((0, 0), (0, 1), (1, 0), (1, 1)):
        yield torch.cat([rest[:, :1] * down, rest[:, 1:] * right, sides], dim=1)


@dataclass
class Embedding:
    """A model with batches that become smaller when memory runs out.

    Args:
        model: in evaluation mode, on the device.
        device: where it is.
        shown: how images are shown to it.
        batch: images at once.
        views: which views are averaged.

    Examples:
        >>> model = Embedder("convnet", 8).eval()
        >>> embedding = Embedding(model, torch.device("cpu"), shown_to(model, "glyphs"), 2)
        >>> embedding([np.zeros((32, 32, 3), np.uint8)] * 3).shape
        (3, 8)
    """

    model: Embedder
    device: torch.device
    shown: Shown
    batch: int
    views: Views = Views()

    def __post_init__(self) -> None:
        if self.device.type == "cpu":  # depthwise convolutions take half the time so
            self.model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def __call__(self, images: list[Any]) -> NDArray[np.float32]:
        """Vectors of images that were decoded and shrunk."""
        found = []
        while images:
            some = images[: self.batch]
            try:
                found.append(self._embedded(some))
            except (torch.OutOfMemoryError, MemoryError):
                if self.batch == 1:
                    raise
                self.batch = max(1, min(self.batch, len(some)) // 2)
                if self.device.type == "cuda":
                    torch.cuda.empty_cache()
                continue
            images = images[len(some) :]
        return np.concatenate(found)

    def _embedded(self, images: list[Any]) -> NDArray[np.float32]:
        augment = self.shown.augment
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


def batch_for(shown: Shown, device: torch.device) -> int:
    """As many images as fit: a network's maps take some hundred times the bytes of what it is shown.

    Examples:
        >>> 1 <= batch_for(Shown("whole", 32, RECIPES["glyphs"].test), torch.device("cpu")) <= LARGEST_ON_HOST
        True
    """
    height, width = shown.augment.shape
    image = 3 * 4 * height * width * 200
    free = free_memory(device)
    return (
        LARGEST
        if free is None
        else int(max(1, min(LARGEST if device.type == "cuda" else LARGEST_ON_HOST, free // 4 // image)))
    )


def pixels(picture: Picture) -> Image.Image:
    """An image as upright RGB, whatever it was given as.

    Examples:
        >>> pixels(Image.new("L", (3, 2))).mode
        'RGB'
    """
    if isinstance(picture, Image.Image):
        return to_rgb(picture)
    if isinstance(picture, str | os.PathLike | bytes):
        return decode(picture)
    raise TypeError(f"an image must be a path, bytes or a PIL image, but it is a {type(picture).__name__}")


def ahead(
    pool: ThreadPoolExecutor, pictures: Sequence[Given], batch: int, read: Callable[[Given], Read]
) -> Iterator[tuple[int, list[Read | BrokenImage]]]:
    """Batches of images and where each begins; the next one is read while this one is used.

    Args:
        pool: of threads.
        pictures: what is read.
        batch: how many at once.
        read: how; a broken image that it raises stands in the batch.

    Examples:
        >>> with ThreadPoolExecutor(1) as pool:
        ...     list(ahead(pool, ["a", "b", "c"], 2, str.upper))
        [(0, ['A', 'B']), (2, ['C'])]
    """

    def guarded(picture: Given) -> Read | BrokenImage:
        try:
            return read(picture)
        except BrokenImage as broken:
            return broken

    def begin(first: int) -> list[Future[Read | BrokenImage]]:
        return [pool.submit(guarded, picture) for picture in pictures[first : first + batch]]

    waiting = begin(0)
    for first in range(0, len(pictures), batch):
        now, waiting = waiting, begin(first + batch)
        yield first, [each.result() for each in now]


def decoded(
    pool: ThreadPoolExecutor, pictures: Sequence[Picture], shown: Shown, batch: int
) -> Iterator[tuple[int, list[NDArray[np.uint8] | BrokenImage]]]:
    """Batches of images as they are shown, and where each begins.

    Examples:
        >>> with ThreadPoolExecutor(1) as pool:
        ...     shown = Shown("whole", 32, RECIPES["glyphs"].test)
        ...     [(start, len(images)) for start, images in decoded(pool, [Image.new("L", (9, 9))] * 3, shown, 2)]
        [(0, 2), (2, 1)]
    """
    return ahead(pool, pictures, batch, lambda picture: shown.shape.of(pixels(picture)))


class Maps(NamedTuple):
    """What a convolutional trunk makes of one image.

    Args:
        features: ``(C, h, w)``, before the pooling.
        box: the part of the image that they cover: left, top, right and bottom as shares of its width and height.

    Examples:
        >>> features, box = Encoder(Embedder("convnet", 8), images="glyphs").maps(Image.new("L", (32, 32)))
        >>> box
        (0.0, 0.0, 1.0, 1.0)
    """

    features: Tensor
    box: tuple[float, float, float, float]


class Encoder:
    """A model and how images are shown to it.

    Args:
        model: a network; it is put into evaluation mode.
        images: the name of the recipe by which images are shown; by default as the model's card says.
        device: where it runs; by default an accelerator if there is one.

    Attributes:
        model: the network.
        shown: how images are shown to it.
        images: the recipe's name, if it was given.
        device: where it runs.

    Examples:
        >>> encoder = Encoder(Embedder("convnet", 8), images="glyphs")
        >>> encoder.embed([Image.new("L", (40, 40)), Image.new("RGB", (32, 50), "red")]).shape
        (2, 8)
    """

    def __init__(self, model: Embedder, *, images: str | None = None, device: str | torch.device | None = None) -> None:
        self.device = _device(device)
        self.model = model.eval().to(self.device)
        self.images = images
        self.shown = shown_to(model, images)
        self._batch = batch_for(self.shown, self.device)

    @classmethod
    def load(cls, model: str | Path, images: str | None = None, device: str | torch.device | None = None) -> Encoder:
        """Read a model from its file, or take a published trunk by its name, with ImageNet's features.

        Args:
            model: a ``.safetensors`` file that an `Embedder` wrote, or a name of `likewise.trunks.TRUNKS` or of
                another package's model (``"timm:…"``).
            images: the name of the recipe by which images are shown.
            device: where it runs.

        Examples:
            >>> Encoder.load("nowhere")
            Traceback (most recent call last):
            ValueError: model must be a .safetensors file or the name of a trunk (convnet, ...), but it is 'nowhere'
        """
        if Path(model).is_file():
            return cls(Embedder.load(model), images=images, device=device)
        name = str(model)
        other = name.startswith(("timm:", "transformers:"))
        if name not in TRUNKS and not other:
            names = ", ".join(TRUNKS)
            raise ValueError(f"model must be a .safetensors file or the name of a trunk ({names}), but it is {name!r}")
        try:
            published = Embedder(name, None, head="none", weights="pretrained" if other else "imagenet")
        except ImportError as missing:
            raise ImportError(f"{missing}: pip install 'likewise[{'timm' if other else 'weights'}]'") from missing
        return cls(published, images=images, device=device)

    @property
    def dim(self) -> int:
        """The size of the embeddings."""
        return self.model.dim

    @property
    def card(self) -> Card:
        """What is known of the model."""
        return self.model.card()

    def embed(self, images: Sequence[Picture], *, flips: bool = False, crops: int = 1) -> NDArray[np.float32]:
        """Vectors ``(n, dim)`` of images.

        Args:
            images: files, bytes of files, or PIL images.
            flips: average over the image and its mirror image.
            crops: 1, or 5 to average over the middle and the four corners.

        Raises:
            BrokenImage: one of them cannot be read.
        """
        if isinstance(images, str | os.PathLike | bytes | Image.Image):
            raise TypeError(f"images must be a sequence of images, but it is one {type(images).__name__}")
        views = Views(flips, crops)
        if not len(images):
            return np.zeros((0, self.dim), np.float32)
        batch = max(1, self._batch // views.count)
        embedding = Embedding(self.model, self.device, self.shown, batch, views)
        if len(images) == 1:  # a search page's query: no pool to start
            return embedding([self.shown.shape.of(pixels(images[0]))])
        found = []
        with ThreadPoolExecutor(cores(), thread_name_prefix="likewise-decode") as pool:
            for _, some in decoded(pool, images, self.shown, batch):
                for each in some:
                    if isinstance(each, BrokenImage):
                        raise each
                found.append(embedding(some))
        return np.concatenate(found)

    def maps(self, image: Picture) -> Maps:
        """The trunk's maps of one image, before pooling and head, for a look at what is alike where."""
        picture = pixels(image)
        stored = self.shown.shape.of(picture)
        draw = self.shown.augment.draw(torch.tensor([stored.shape[:2]]), torch.Generator())
        draw = replace(draw, flips=torch.zeros(1, dtype=torch.bool))
        with torch.inference_mode():
            features = self.model.trunk(self.shown.augment.apply([stored], draw).to(self.device))
        if features.ndim != 4:
            raise ValueError("maps needs a convolutional trunk, but this one gives vectors")
        return Maps(features[0].float().cpu(), _shares(draw.boxes[0].tolist(), stored.shape[:2], picture.size))


def _shares(box: list[float], stored: Sequence[int], original: tuple[int, int]) -> tuple[float, float, float, float]:
    """A box in stored pixels as shares of the original, whose ends are cut off where it is very long."""
    (top, left, height, width), (rows, columns) = box, stored
    x = max(0.0, 1.0 - RATIO * original[1] / original[0]) / 2.0
    y = max(0.0, 1.0 - RATIO * original[0] / original[1]) / 2.0
    wide, high = 1.0 - 2.0 * x, 1.0 - 2.0 * y
    return (
        x + wide * max(0.0, left / columns),
        y + high * max(0.0, top / rows),
        x + wide * min(1.0, (left + width) / columns),
        y + high * min(1.0, (top + height) / rows),
    )


def _device(device: str | torch.device | None) -> torch.device:
    if device is not None:
        return torch.device(device)
    found = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    return torch.device("cpu") if found is None else found
