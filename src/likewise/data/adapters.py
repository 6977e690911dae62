"""Adapters: data sets of other libraries, or any sequence of images with labels, as data sets of this library."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from likewise.data.dataset import ImageDataset, Transform
from likewise.data.decode import BrokenImage, decode, to_rgb
from likewise.data.image_files import file_sample
from likewise.progress import progress


def from_dataset(
    dataset: Any,
    *,
    image: str | int = "image",
    label: str | int = "label",
    name: str | None = None,
    class_names: Sequence[str] | None = None,
    version: str | None = None,
    transform: Transform | None = None,
) -> ImageDataset:
    """Convert a data set of another library, or a sequence of images with labels.

    Items are pairs of an image and a label, or dictionaries with both (Hugging Face).  Images are Pillow images, arrays of
    bytes of shape ``(height, width)`` or ``(height, width, 3)``, or paths.  Labels are read without decoding images if the
    data set stores them separately (a column, ``targets``, ``labels``), and by one pass over the data set otherwise.

    Args:
        dataset: an object with a length and ``[index]``.
        image: key of the image in an item that is not a pair.
        label: key of the label in an item that is not a pair.
        name: name of the data set; by default the name of its class.
        class_names: name of each label, counted from 0; by default the names in the data set, or the labels themselves.
        version: text that distinguishes this data set from others with the same labels in the fingerprint; by default the
            identity that the data set has (the fingerprint of Hugging Face, the files of a folder), or else all its pixels.
        transform: function applied to an image that ``[index]`` returns.

    Examples:
        >>> pairs = [(Image.new("L", (4, 4)), "cat"), (Image.new("L", (4, 4)), "dog"), (Image.new("L", (4, 4)), "cat")]
        >>> pets = from_dataset(pairs, name="pets")
        >>> pets, pets.labels.tolist(), pets.class_names
        (pets: 3 images of 2 classes, [0, 1, 0], ('cat', 'dog'))
        >>> from_dataset([{"img": Image.new("L", (4, 4)), "species": 7}], image="img", label="species").class_names
        ('7',)
    """
    if isinstance(dataset, dict):
        raise TypeError(f"dataset must be one of the splits {', '.join(map(repr, dataset))}, but it is all of them")
    if not hasattr(dataset, "__getitem__") or not hasattr(dataset, "__len__"):
        raise TypeError(f"dataset must have a length and [index], but it is a {type(dataset).__name__}")
    if len(dataset) == 0:
        raise ValueError("dataset must have at least one item, but it is empty")
    values = _to_plain(_labels(dataset, label))
    if len(values) != len(dataset):
        raise ValueError(f"dataset must have a label for each of its {len(dataset)} items, but it has {len(values)}")
    names = class_names if class_names is not None else _names(dataset, label)
    labels, kept = _number_labels(values, names)
    return _Adapted(type(dataset).__name__ if name is None else name, dataset, image, labels, kept, version, transform)


class _Adapted(ImageDataset):
    def __init__(
        self,
        name: str,
        wrapped: Any,
        key: str | int,
        labels: Tensor,
        class_names: Sequence[str],
        version: str | None,
        transform: Transform | None,
    ):
        super().__init__(name, labels, class_names, transform=transform)
        self._wrapped = wrapped
        self._key = key
        self._version = version

    def image(self, index: int) -> Image.Image:
        return _image(_part(self._wrapped[index], self._key, 0), self.source(index))

    def source(self, index: int) -> str:
        path = _path(self._wrapped, index)
        return f"item {index} of {self.name}" if path is None else path

    def _contents(self) -> Iterable[bytes]:
        own = self._version or getattr(self._wrapped, "_fingerprint", None)
        if isinstance(own, str):
            yield own.encode()
        elif _path(self._wrapped, 0) is not None:
            for index in range(len(self)):
                path = self.source(index)
                yield os.fsencode(path) + b":" + file_sample(path)
        else:
            with progress(f"computing the fingerprint of {self.name}", len(self), "img") as advance:
                for index in range(len(self)):
                    picture = self.image(index)
                    yield repr(picture.size).encode() + hashlib.sha256(picture.tobytes()).digest()
                    advance(1)


def _part(item: Any, key: str | int, position: int) -> Any:
    """Return the image or the label of an item: by key, or by position in a pair."""
    if isinstance(item, dict):
        if key not in item:
            raise ValueError(f"dataset must have {key!r} in its items, but they have {', '.join(map(repr, item))}")
        return item[key]
    if isinstance(item, tuple | list) and len(item) > position:
        return item[key if isinstance(key, int) else position]
    raise TypeError(f"dataset must have pairs or dictionaries as items, but one is a {type(item).__name__}")


def _labels(dataset: Any, key: str | int) -> Sequence[Any]:
    columns = getattr(dataset, "column_names", None)
    if isinstance(columns, list):  # Hugging Face
        if key not in columns:
            raise ValueError(f"label must be one of the columns {', '.join(map(repr, columns))}, but it is {key!r}")
        return list(dataset[key])
    for attribute in ("targets", "labels", "_labels"):  # torchvision has all three
        found = getattr(dataset, attribute, None)
        if found is not None and not callable(found) and len(found) == len(dataset):
            return list(found)
    if hasattr(dataset, "dataset") and hasattr(dataset, "indices"):  # torch's Subset
        whole = _labels(dataset.dataset, key)
        return [whole[index] for index in dataset.indices]
    values = []
    with progress("reading labels", len(dataset), "img") as advance:
        for index in range(len(dataset)):
            values.append(_part(dataset[index], key, 1))
            advance(1)
    return values


def _to_plain(values: Sequence[Any]) -> list[Any]:
    """Return labels as Python integers or strings; those of numpy and torch are converted."""
    plain: list[Any] = [_scalar(value) for value in values]
    for index, value in enumerate(plain):
        if isinstance(value, bool) or not isinstance(value, int | str) or type(value) is not type(plain[0]):
            raise TypeError(
                f"label must be a whole number or a text, the same in every item, but in item {index} it is {value!r}"
            )
    return plain


def _scalar(value: Any) -> Any:
    one = isinstance(value, np.generic) or (isinstance(value, Tensor) and value.numel() == 1)
    return value.item() if one else value


def _names(dataset: Any, key: str | int) -> Sequence[str] | None:
    """Return the class names that the data set stores for integer labels, if any."""
    features = getattr(dataset, "features", None)
    if isinstance(features, dict):
        names = getattr(features.get(key), "names", None)
        return None if names is None else [str(each) for each in names]
    if hasattr(dataset, "dataset") and hasattr(dataset, "indices"):
        return _names(dataset.dataset, key)
    names = getattr(dataset, "classes", None)
    return [str(each) for each in names] if isinstance(names, list | tuple) else None


def _number_labels(values: list[Any], names: Sequence[str] | None) -> tuple[Tensor, list[str]]:
    kept = sorted(set(values))
    place = {value: position for position, value in enumerate(kept)}
    labels = torch.tensor([place[value] for value in values], dtype=torch.int64)
    if names is None or isinstance(kept[0], str):
        return labels, [str(value) for value in kept]
    if kept[0] < 0 or kept[-1] >= len(names):
        raise ValueError(f"class_names must have a name for each label, but it has {len(names)} for label {kept[-1]}")
    return labels, [names[value] for value in kept]


def _path(dataset: Any, index: int) -> str | None:
    """Return the file of an item, if the data set lists files as torchvision's folders do."""
    samples = getattr(dataset, "samples", None)
    if isinstance(samples, list) and len(samples) == len(dataset) and isinstance(samples[index], tuple):
        first = samples[index][0]
        return first if isinstance(first, str) else None
    return None


def _image(value: Any, source: str) -> Image.Image:
    if isinstance(value, Image.Image):
        return _safely(lambda: to_rgb(value), source)
    if isinstance(value, str | os.PathLike):
        return decode(value)
    if isinstance(value, dict) and isinstance(value.get("bytes"), bytes):  # Hugging Face, not decoded
        return decode(value["bytes"], name=value.get("path") or source)
    if isinstance(value, np.ndarray) and value.dtype == np.uint8 and (value.ndim == 2 or value.shape[2:] == (3,)):
        return to_rgb(Image.fromarray(value))
    raise TypeError(
        f"{source} must be a Pillow image, an array of bytes (height, width[, 3]) or a path, but it is a "
        f"{type(value).__name__}; pass a transform that returns tensors as transform="
    )


def _safely(convert: Callable[[], Image.Image], source: str) -> Image.Image:
    """Convert an image and name it in errors: Pillow decodes lazily, so a broken file raises an error only here."""
    try:
        return convert()
    except (OSError, SyntaxError, ValueError) as error:
        raise BrokenImage(source, str(error)) from error
