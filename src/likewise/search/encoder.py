"""Image encoder: a model and its transform, from files, bytes or images to vectors."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from likewise.data import cores
from likewise.search.embedding import RATIO, Embedding, Picture, Views, batch_for, embed_batches, eval_transform, pixels
from likewise.trunks import TRUNKS, Card, Embedder


class Maps(NamedTuple):
    """The feature maps of a convolutional trunk for one image.

    Args:
        features: feature maps ``(C, h, w)``, before pooling.
        box: the region of the image that they cover: left, top, right and bottom as fractions of its width and height.

    Examples:
        >>> features, box = Encoder(Embedder("convnet", 8), transform="glyphs").maps(Image.new("L", (32, 32)))
        >>> box
        (0.0, 0.0, 1.0, 1.0)
    """

    features: Tensor
    box: tuple[float, float, float, float]


class Encoder:
    """A model and the transform of its images.

    Args:
        model: a network; it is set to evaluation mode.
        transform: name of a transform; by default the one that the model's card implies.
        device: the device; by default an accelerator if available.

    Attributes:
        model: the network.
        transform: the transform of images.
        transform_name: the name of the transform, if it has one.
        device: the device.

    Examples:
        >>> encoder = Encoder(Embedder("convnet", 8), transform="glyphs")
        >>> encoder.embed([Image.new("L", (40, 40)), Image.new("RGB", (32, 50), "red")]).shape
        (2, 8)
    """

    def __init__(
        self, model: Embedder, *, transform: str | None = None, device: str | torch.device | None = None
    ) -> None:
        self.device = _device(device)
        self.model = model.eval().to(self.device)
        self.transform_name = transform
        self.transform = eval_transform(model, transform)
        self._batch = batch_for(self.transform, self.device)

    @classmethod
    def load(cls, model: str | Path, transform: str | None = None, device: str | torch.device | None = None) -> Encoder:
        """Read a model from its file, or create a published trunk by name, which returns its ImageNet features.

        Args:
            model: a ``.safetensors`` file that an `Embedder` wrote, or a name in `likewise.trunks.TRUNKS` (with published
                weights other than ``imagenet`` after a colon: ``"resnet50:imagenet-keras"``) or of a model of another
                package (``"timm:…"``).
            transform: name of a transform.
            device: the device.

        Examples:
            >>> Encoder.load("nowhere")
            Traceback (most recent call last):
            ValueError: model must be a .safetensors file or the name of a trunk (convnet, ...), but it is 'nowhere'
        """
        if Path(model).is_file():
            return cls(Embedder.load(model), transform=transform, device=device)
        name = str(model)
        other = name.startswith(("timm:", "transformers:"))
        trunk, _, weights = (name, "", "pretrained") if other else name.partition(":")
        if trunk not in TRUNKS and not other:
            names = ", ".join(TRUNKS)
            raise ValueError(f"model must be a .safetensors file or the name of a trunk ({names}), but it is {name!r}")
        try:
            published = Embedder(trunk, None, head="none", weights=weights or "imagenet")
        except ImportError as missing:
            raise ImportError(f"{missing}: pip install 'likewise[{'timm' if other else 'weights'}]'") from missing
        return cls(published, transform=transform, device=device)

    @property
    def dim(self) -> int:
        """The dimension of the embeddings."""
        return self.model.dim

    @property
    def card(self) -> Card:
        """The card of the model."""
        return self.model.card()

    def embed(self, images: Sequence[Picture], *, flips: bool = False, crops: int = 1) -> NDArray[np.float32]:
        """Return vectors ``(n, dim)`` of images.

        Args:
            images: files, bytes of files, or PIL images.
            flips: average over the image and its mirror image.
            crops: 1, or 5 to average over the center and the four corners.

        Raises:
            BrokenImage: an image cannot be read.
        """
        if isinstance(images, str | os.PathLike | bytes | Image.Image):
            raise TypeError(f"images must be a sequence of images, but it is one {type(images).__name__}")
        views = Views(flips, crops)
        if not len(images):
            return np.zeros((0, self.dim), np.float32)
        batch = max(1, self._batch // views.count)
        embedding = Embedding(self.model, self.device, self.transform, batch, views)
        if len(images) == 1:  # without a thread pool
            return embedding([self.shrink(images[0])])
        vectors = []
        with ThreadPoolExecutor(cores(), thread_name_prefix="likewise-decode") as pool:
            for each in embed_batches(embedding, images, lambda image: None, pool):
                if each.broken:
                    raise each.broken[0][1]
                vectors.append(each.vectors)
        return np.concatenate(vectors)

    def shrink(self, image: Picture) -> NDArray[np.uint8]:
        """Return the pixels ``(h, w, 3)`` that the transform needs of an image, such as a resized copy."""
        return self.transform.shape.of(pixels(image))

    def embed_shrunk(self, images: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        """Return vectors ``(n, dim)`` of at least one image that `shrink` returned; equals `embed` of the original images."""
        return Embedding(self.model, self.device, self.transform, self._batch)(list(images))

    def maps(self, image: Picture) -> Maps:
        """Return the feature maps of the trunk for one image, before pooling and head, for heat maps."""
        picture = pixels(image)
        stored = self.shrink(picture)
        draw = self.transform.augment.draw(torch.tensor([stored.shape[:2]]), torch.Generator())
        draw = replace(draw, flips=torch.zeros(1, dtype=torch.bool))
        with torch.inference_mode():
            features = self.model.trunk(self.transform.augment.apply([stored], draw).to(self.device))
        if features.ndim != 4:
            raise ValueError("maps needs a convolutional trunk, but this one returns vectors")
        return Maps(features[0].float().cpu(), _to_fractions(draw.boxes[0].tolist(), stored.shape[:2], picture.size))


def _to_fractions(
    box: list[float], stored: Sequence[int], original: tuple[int, int]
) -> tuple[float, float, float, float]:
    """Convert a box in stored pixels to fractions of the original, whose ends are cut off if it is very long."""
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
    accelerator = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    return torch.device("cpu") if accelerator is None else accelerator
