"""Base classes of data sets: labeled images, subsets by image or by class, and a checksum."""

from __future__ import annotations

import copy
import hashlib
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor
from torch.utils.data import Dataset

from likewise.data.decode import Broken

Transform = Callable[[Image.Image], Any]


class ImageDataset(Dataset[tuple[Any, int]], ABC):
    """Base class of data sets: images with labels.

    A custom data set is a subclass that implements ``image`` and ``source``.  For images in files, use `ImageFolder`
    or `ImageTable`.

    Args:
        name: name of the data set.
        labels: class of each image, ``(n,)``, counted from 0.
        class_names: name of each class.
        split: name of the split, for messages.
        transform: function applied to an image that ``[index]`` returns.
        categories: coarser class of each image, ``(n,)``, if there is one.
        category_names: name of each category.
        boxes: bounding box of the object in each image, ``(n, 4)``: left, top, width, height in pixels; NaN means that
            the image has no box.
        is_query: which images are queries, ``(n,)`` booleans, for data with separate queries and gallery.
        coarser: labels on the coarser levels of a hierarchy, ``(n, L - 1)``; see `levels`.
        tags: several labels per image, ``(n, C)`` booleans, for `likewise.formula.MultiLabel`.
        cameras: camera of each image, ``(n,)`` integers, for re-identification; images of one class and one camera
            are excluded from each other's results.

    Examples:
        >>> import torch
        >>> from PIL import Image
        >>> class Flags(ImageDataset):
        ...     def image(self, index):
        ...         return Image.new("RGB", (3, 2), self.class_names[int(self.labels[index])])
        ...
        ...     def source(self, index):
        ...         return f"flag {index}"
        >>> flags = Flags("flags", torch.tensor([0, 1, 2, 2]), ["red", "green", "blue"])
        >>> flags
        flags: 4 images of 3 classes
        >>> flags[1]
        (<PIL.Image.Image image mode=RGB size=3x2 at ...>, 1)
        >>> some = flags.of_classes([0, 2])
        >>> some.labels.tolist(), some.class_names
        ([0, 1, 1], ('red', 'blue'))
    """

    recall_at: ClassVar[tuple[int, ...]] = (1, 2, 4, 8)
    """The values of k for which recall at k is reported on this data set."""

    sides: tuple[str, str] | None = None
    """The names of the two sides of a data set of pairs, which is searched in both directions; ``None`` for other data."""

    def __init__(
        self,
        name: str,
        labels: Tensor,
        class_names: Sequence[str],
        *,
        split: str | None = None,
        transform: Transform | None = None,
        categories: Tensor | None = None,
        category_names: Sequence[str] = (),
        boxes: Tensor | None = None,
        is_query: Tensor | None = None,
        coarser: Tensor | None = None,
        tags: Tensor | None = None,
        cameras: Tensor | None = None,
    ):
        self.name = name
        self.split = split
        self.labels = _check_labels("labels", labels, "class_names", class_names)
        self.class_names = tuple(class_names)
        self.transform = transform
        self.categories = categories
        if categories is not None:
            self.categories = _check_labels("categories", categories, "category_names", category_names)
        self.category_names = tuple(category_names)
        self.boxes = boxes
        self.is_query = is_query
        self.coarser = coarser
        self.tags = tags
        self.cameras = cameras
        for what, value, shape in (
            ("coarser", coarser, (len(labels), 1 if coarser is None else coarser.shape[-1])),
            ("tags", tags, (len(labels), 1 if tags is None else tags.shape[-1])),
            ("categories", categories, (len(labels),)),
            ("boxes", boxes, (len(labels), 4)),
            ("is_query", is_query, (len(labels),)),
            ("cameras", cameras, (len(labels),)),
        ):
            if value is not None and tuple(value.shape) != shape:
                raise ValueError(f"{what} must have shape {shape}, but the shape is {tuple(value.shape)}")

    @property
    def levels(self) -> Tensor | None:
        """Labels on all levels of a hierarchy, ``(n, L)``, the class first; ``None`` without coarser levels."""
        return None if self.coarser is None else torch.cat([self.labels[:, None], self.coarser], dim=1)

    @abstractmethod
    def image(self, index: int) -> Image.Image:
        """Return an image, decoded, in RGB and upright."""

    @abstractmethod
    def source(self, index: int) -> str:
        """Return where an image comes from, a path or a description, for messages."""

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        position = _position(index, len(self))
        image = self.image(position)
        return (image if self.transform is None else self.transform(image)), int(self.labels[position])

    def __repr__(self) -> str:
        part = "" if self.split is None else f", {self.split}"
        classes = len(self.class_names)
        counts = f"{len(self):,} image{'s' * (len(self) != 1)} of {classes:,} class{'es' * (classes != 1)}"
        return f"{self.name}{part}: {counts}"

    @cached_property
    def fingerprint(self) -> str:
        """Checksum of the data set: its name, classes, labels and images, but not its transform.

        For image files it covers paths, sizes and contents: all bytes of a file up to 48 KiB, and the first, middle and
        last 16 KiB of a larger one.
        """
        digest = hashlib.sha256()
        for part in (self.name.encode(), *(name.encode() for name in self.class_names), self.labels.numpy().tobytes()):
            digest.update(len(part).to_bytes(8, "big") + part)
        for part in self._contents():
            digest.update(len(part).to_bytes(8, "big") + part)
        return digest.hexdigest()

    def _contents(self) -> Iterable[bytes]:
        """Yield the bytes of the images that enter the checksum: their sources, unless a subclass overrides it."""
        return (self.source(index).encode() for index in range(len(self)))

    def subset(self, indices: Sequence[int] | NDArray[Any] | Tensor) -> ImageDataset:
        """Return the images at distinct indices, or where a boolean per image is true.

        Classes without remaining images are dropped, and labels are renumbered without gaps.
        """
        return _View(self, check_indices(indices, len(self)), relabel=True)

    def of_classes(self, classes: Iterable[int]) -> ImageDataset:
        """Return all images of these classes; labels are renumbered without gaps, in the same order."""
        wanted = torch.as_tensor([operator.index(each) for each in classes], dtype=torch.int64)
        bad = wanted[(wanted < 0) | (wanted >= len(self.class_names))]
        if len(bad):
            raise ValueError(f"classes must lie between 0 and {len(self.class_names) - 1}, but one is {int(bad[0])}")
        return self.subset(torch.isin(self.labels, wanted))

    def without(self, broken: Sequence[Broken] | Sequence[int]) -> ImageDataset:
        """Return all images except these, which are indices or entries of `find_broken`."""
        indices = [each.index if isinstance(each, Broken) else each for each in broken]
        keep = torch.ones(len(self), dtype=torch.bool)
        keep[torch.from_numpy(check_indices(indices, len(self)))] = False
        return self.subset(keep)

    def with_transform(self, transform: Transform | None) -> ImageDataset:
        """Return the same images with another transform."""
        other = copy.copy(self)
        other.transform = transform
        return other

    @property
    def query(self) -> ImageDataset:
        """The queries; they share their labels with the gallery."""
        return self._role(True)

    @property
    def gallery(self) -> ImageDataset:
        """The images that are searched; they share their labels with the queries."""
        return self._role(False)

    def _role(self, query: bool) -> ImageDataset:
        if self.is_query is None:
            raise ValueError(f"{self.name} has no separate queries and gallery: every image is both")
        indices = (self.is_query == query).nonzero()[:, 0].numpy()
        return _View(self, indices, relabel=False)


class _View(ImageDataset):
    """A subset of the images of a data set."""

    _whole: ImageDataset
    _indices: NDArray[Any]

    def __init__(self, whole: ImageDataset, indices: NDArray[Any], *, relabel: bool):
        if isinstance(whole, _View):  # a view of a view refers to the original data set
            base, positions = whole._whole, whole._indices[indices]
        else:
            base, positions = whole, indices
        chosen = torch.from_numpy(indices)
        labels, names = _relabel(whole.labels[chosen], whole.class_names, relabel)
        super().__init__(
            whole.name,
            labels,
            names,
            split=whole.split,
            transform=whole.transform,
            categories=None if whole.categories is None else whole.categories[chosen],
            category_names=whole.category_names,
            boxes=None if whole.boxes is None else whole.boxes[chosen],
            is_query=None if whole.is_query is None or not relabel else whole.is_query[chosen],
            coarser=None if whole.coarser is None else whole.coarser[chosen],
            tags=None if whole.tags is None else whole.tags[chosen],
            cameras=None if whole.cameras is None else whole.cameras[chosen],
        )
        self._whole = base
        self._indices = positions

    def image(self, index: int) -> Image.Image:
        return self._whole.image(int(self._indices[index]))

    def source(self, index: int) -> str:
        return self._whole.source(int(self._indices[index]))

    def _contents(self) -> Iterable[bytes]:
        yield self._whole.fingerprint.encode()
        yield self._indices.tobytes()


def renumber(values: Sequence[int]) -> tuple[Tensor, list[int]]:
    """Return labels counted from 0 without gaps, and the original value of each of them.

    Examples:
        >>> renumber([7, 3, 7])
        (tensor([1, 0, 1]), [3, 7])
    """
    kept, labels = np.unique(np.asarray(values, dtype=np.int64), return_inverse=True)
    return torch.from_numpy(labels.reshape(-1).astype(np.int64)), kept.tolist()


def _relabel(labels: Tensor, names: tuple[str, ...], relabel: bool) -> tuple[Tensor, tuple[str, ...]]:
    if not relabel:
        return labels, names
    fresh, kept = renumber(labels.tolist())
    return fresh, tuple(names[each] for each in kept)


def _check_labels(what: str, labels: Tensor, names_argument: str, names: Sequence[str]) -> Tensor:
    if not isinstance(labels, Tensor) or labels.is_floating_point() or labels.dtype == torch.bool or labels.ndim != 1:
        raise TypeError(f"{what} must be an integer tensor of shape (n,), but it is {labels!r}")
    if len(labels) and (int(labels.min()) < 0 or int(labels.max()) >= len(names)):
        raise ValueError(
            f"{what} must lie between 0 and {len(names) - 1}, one for each of {names_argument}, "
            f"but they lie between {int(labels.min())} and {int(labels.max())}"
        )
    return labels.to(torch.int64)


def check_indices(indices: Any, size: int) -> NDArray[Any]:
    """Return distinct indices from 0 to ``size - 1``, given as indices or as booleans."""
    array = np.asarray(indices)
    if array.dtype == np.bool_:
        if array.shape != (size,):
            raise ValueError(
                f"indices must be one boolean for each of the {size} images, but the shape is {array.shape}"
            )
        return np.flatnonzero(array)
    if array.size == 0:
        return np.zeros(0, dtype=np.int64)
    if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer):
        raise TypeError(
            f"indices must be a sequence of whole numbers, but it has {array.ndim} dimensions of {array.dtype}"
        )
    if array.min() < 0 or array.max() >= size:
        raise IndexError(
            f"indices must lie between 0 and {size - 1}, but they lie between {array.min()} and {array.max()}"
        )
    if len(np.unique(array)) != len(array):
        raise ValueError("indices must be distinct, but an image occurs twice")
    return array.astype(np.int64)


def _position(index: int, size: int) -> int:
    position = operator.index(index)
    if not -size <= position < size:
        raise IndexError(f"index must lie between 0 and {size - 1}, but it is {position}")
    return position % size
