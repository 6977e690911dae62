"""The base of data sets: images with labels, subsets by images or classes, and a checksum."""

from __future__ import annotations

import copy
import hashlib
import operator
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor
from torch.utils.data import Dataset

from likewise.data.decode import Broken, cropped, decode

Transform = Callable[[Image.Image], Any]


class ImageDataset(Dataset[tuple[Any, int]], ABC):
    """Images with labels: the base of every data set.

    Your own data set is a subclass with ``image`` and ``source``, or, for images that lie in files, an
    `ImageFolder` or an `ImageTable`.

    Args:
        name: the name of the data set.
        labels: one class for each image, ``(n,)``, counted from 0.
        class_names: a name for each class.
        split: which part of the data set this is, for messages.
        transform: applied to an image returned by ``[index]``.
        categories: a coarser class for each image, ``(n,)``, where there is one.
        category_names: a name for each category.
        boxes: where the object is in each image, ``(n, 4)``: left, top, width, height in pixels; NaN for no box.
        is_query: for data with separate queries and gallery, which images are queries, ``(n,)`` booleans.
        coarser: labels on the coarser levels of a hierarchy, ``(n, L - 1)``; see `levels`.
        tags: several labels per image, ``(n, C)`` booleans, for `likewise.formula.MultiLabel`.
        cameras: for re-identification, which camera took each image, ``(n,)`` integers; images of one class by one camera
            are not searched for each other.

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
    """The k of the recalls that are reported of this data set."""

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
        """Labels on all levels of a hierarchy, ``(n, L)``, the class first; ``None`` where there is only the class."""
        return None if self.coarser is None else torch.cat([self.labels[:, None], self.coarser], dim=1)

    @abstractmethod
    def image(self, index: int) -> Image.Image:
        """The image: decoded, RGB, upright."""

    @abstractmethod
    def source(self, index: int) -> str:
        """The source of the image, a path or a description, for messages."""

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
        """A checksum of the data set: its name, classes, labels and images, but not its transform.

        Of image files it covers paths, sizes and contents: all bytes of files up to 48 KiB, the first, middle and last
        16 KiB of longer ones.
        """
        digest = hashlib.sha256()
        for part in (self.name.encode(), *(name.encode() for name in self.class_names), self.labels.numpy().tobytes()):
            digest.update(len(part).to_bytes(8, "big") + part)
        for part in self._contents():
            digest.update(len(part).to_bytes(8, "big") + part)
        return digest.hexdigest()

    def _contents(self) -> Iterable[bytes]:
        """The part of the images in the checksum: their sources, unless a subclass overrides it."""
        return (self.source(index).encode() for index in range(len(self)))

    def subset(self, indices: Sequence[int] | NDArray[Any] | Tensor) -> ImageDataset:
        """These images, given by distinct indices or by one boolean for each image.

        Classes that lose all their images go, and labels are contiguous again.
        """
        return _View(self, checked_indices(indices, len(self)), relabel=True)

    def of_classes(self, classes: Iterable[int]) -> ImageDataset:
        """All images of these classes; labels are contiguous again, in the order they had."""
        wanted = torch.as_tensor([operator.index(each) for each in classes], dtype=torch.int64)
        bad = wanted[(wanted < 0) | (wanted >= len(self.class_names))]
        if len(bad):
            raise ValueError(f"classes must lie between 0 and {len(self.class_names) - 1}, but one is {int(bad[0])}")
        return self.subset(torch.isin(self.labels, wanted))

    def without(self, broken: Sequence[Broken] | Sequence[int]) -> ImageDataset:
        """All images but these, given by index or as `find_broken` lists them."""
        indices = [each.index if isinstance(each, Broken) else each for each in broken]
        keep = torch.ones(len(self), dtype=torch.bool)
        keep[torch.from_numpy(checked_indices(indices, len(self)))] = False
        return self.subset(keep)

    def with_transform(self, transform: Transform | None) -> ImageDataset:
        """The same images with another transform."""
        other = copy.copy(self)
        other.transform = transform
        return other

    @property
    def query(self) -> ImageDataset:
        """The queries; their labels are those of the gallery."""
        return self._role(True)

    @property
    def gallery(self) -> ImageDataset:
        """The images to search in; their labels are those of the queries."""
        return self._role(False)

    def _role(self, query: bool) -> ImageDataset:
        if self.is_query is None:
            raise ValueError(f"{self.name} has no separate queries and gallery: every image is both")
        indices = (self.is_query == query).nonzero()[:, 0].numpy()
        return _View(self, indices, relabel=False)


class ImageFiles(ImageDataset):
    """Images in files; the base of the data sets on disk.

    Args:
        name: the name of the data set.
        folder: where the images are.
        paths: the files, relative to the folder.
        labels: one class for each file.
        class_names: a name for each class.
        split: which part of the data set this is.
        transform: applied to an image returned by ``[index]``.
        crop: cut each image to its box.
        categories: a coarser class for each image.
        category_names: a name for each category.
        boxes: left, top, width and height of the object in each image.
        is_query: which images are queries.
        coarser: labels on the coarser levels of a hierarchy, ``(n, L - 1)``.
        tags: several labels per image, ``(n, C)`` booleans.
        cameras: which camera took each image, ``(n,)`` integers.

    Examples:
        >>> import tempfile, torch
        >>> from PIL import Image
        >>> folder = tempfile.mkdtemp()
        >>> Image.new("L", (8, 4), 255).save(f"{folder}/a.png")
        >>> files = ImageFiles("one", folder, ["a.png"], torch.tensor([0]), ["white"])
        >>> files.image(0).mode, files.source(0).endswith("a.png")
        ('RGB', True)
    """

    def __init__(
        self,
        name: str,
        folder: str | os.PathLike[str],
        paths: Sequence[str],
        labels: Tensor,
        class_names: Sequence[str],
        *,
        split: str | None = None,
        transform: Transform | None = None,
        crop: bool = False,
        categories: Tensor | None = None,
        category_names: Sequence[str] = (),
        boxes: Tensor | None = None,
        is_query: Tensor | None = None,
        coarser: Tensor | None = None,
        tags: Tensor | None = None,
        cameras: Tensor | None = None,
    ):
        super().__init__(
            name,
            labels,
            class_names,
            split=split,
            transform=transform,
            categories=categories,
            category_names=category_names,
            boxes=boxes,
            is_query=is_query,
            coarser=coarser,
            tags=tags,
            cameras=cameras,
        )
        if len(paths) != len(labels):
            raise ValueError(f"paths must have one entry for each of the {len(labels)} labels, but it has {len(paths)}")
        if crop and boxes is None:
            raise ValueError(f"crop must be False, but it is True, and {name} has no boxes at {folder}")
        self.folder = os.fspath(folder)
        # One array of bytes: a list of a million strings would be copied into every worker, page by page.
        self._paths = np.array([os.fsencode(path) for path in paths], dtype=np.bytes_)
        self.crop = crop

    def image(self, index: int) -> Image.Image:
        """The file's image: decoded, RGB, upright, and cut to its box where that was asked for."""
        image = decode(self.source(index))
        if self.crop and self.boxes is not None:
            image = cropped(image, self.boxes[index].tolist(), self.source(index))
        return image

    def source(self, index: int) -> str:
        """The path of the file."""
        return os.path.join(self.folder, os.fsdecode(self._paths[index]))

    def _contents(self) -> Iterable[bytes]:
        """Paths inside the folder and samples of contents: the same files elsewhere have the same checksum."""
        for index in range(len(self)):
            yield self._paths[index] + b":" + file_sample(self.source(index))
        if self.crop and self.boxes is not None:
            yield self.boxes.numpy().tobytes()


class _View(ImageDataset):
    """Some images of a data set."""

    _whole: ImageDataset
    _indices: NDArray[Any]

    def __init__(self, whole: ImageDataset, indices: NDArray[Any], *, relabel: bool):
        if isinstance(whole, _View):  # a view of a view is a view of the whole
            base, positions = whole._whole, whole._indices[indices]
        else:
            base, positions = whole, indices
        chosen = torch.from_numpy(indices)
        labels, names = _relabeled(whole.labels[chosen], whole.class_names, relabel)
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


SAMPLE = 16 * 1024
"""Bytes that a fingerprint reads at the beginning, in the middle and at the end of a file."""


def file_sample(path: str) -> bytes:
    """The size of a file and a checksum of its contents: of all bytes up to 48 KiB, of three samples of a longer file.

    Examples:
        >>> file_sample("nowhere.jpg")
        b'-1'
    """
    digest = hashlib.sha256()
    try:
        with open(path, "rb", buffering=0) as file:
            size = os.fstat(file.fileno()).st_size
            if size <= 3 * SAMPLE:
                digest.update(file.read())
            else:
                for start in (0, (size - SAMPLE) // 2, size - SAMPLE):
                    file.seek(start)
                    digest.update(file.read(SAMPLE))
    except OSError:
        return b"-1"  # no file is something to know, too
    return f"{size}:".encode() + digest.digest()


def contiguous(values: Sequence[int]) -> tuple[Tensor, list[int]]:
    """Labels counted from 0 without gaps, and which value each of them stands for.

    Examples:
        >>> contiguous([7, 3, 7])
        (tensor([1, 0, 1]), [3, 7])
    """
    kept, labels = np.unique(np.asarray(values, dtype=np.int64), return_inverse=True)
    return torch.from_numpy(labels.reshape(-1).astype(np.int64)), kept.tolist()


def require_files(name: str, folder: str | os.PathLike[str], paths: Sequence[str], how: str) -> None:
    """Check that files exist, and name the first that does not.

    Examples:
        >>> import tempfile
        >>> require_files("birds", tempfile.mkdtemp(), ["a.jpg"], "copy it there")
        Traceback (most recent call last):
        FileNotFoundError: birds lists 1 image that is not there, the first is .../a.jpg; copy it there
    """
    missing = missing_files(folder, paths)
    if missing:
        are = "image that is" if len(missing) == 1 else "images that are"
        first = Path(folder, paths[missing[0]])
        raise FileNotFoundError(f"{name} lists {len(missing):,} {are} not there, the first is {first}; {how}")


def missing_files(folder: str | os.PathLike[str], paths: Sequence[str]) -> list[int]:
    """The missing files, found by listing each folder once.

    Examples:
        >>> missing_files("/nowhere", ["a.jpg", "b.jpg"])
        [0, 1]
    """
    listings: dict[str, set[str]] = {}
    missing = []
    for index, path in enumerate(paths):
        parent, file = os.path.split(os.path.join(folder, path))
        if parent not in listings:
            listings[parent] = set(os.listdir(parent)) if os.path.isdir(parent) else set()
        if file not in listings[parent]:
            missing.append(index)
    return missing


def _relabeled(labels: Tensor, names: tuple[str, ...], relabel: bool) -> tuple[Tensor, tuple[str, ...]]:
    if not relabel:
        return labels, names
    fresh, kept = contiguous(labels.tolist())
    return fresh, tuple(names[each] for each in kept)


def _check_labels(what: str, labels: Tensor, beside: str, names: Sequence[str]) -> Tensor:
    if not isinstance(labels, Tensor) or labels.is_floating_point() or labels.dtype == torch.bool or labels.ndim != 1:
        raise TypeError(f"{what} must be an integer tensor of shape (n,), but it is {labels!r}")
    if len(labels) and (int(labels.min()) < 0 or int(labels.max()) >= len(names)):
        raise ValueError(
            f"{what} must lie between 0 and {len(names) - 1}, one for each of {beside}, "
            f"but they lie between {int(labels.min())} and {int(labels.max())}"
        )
    return labels.to(torch.int64)


def checked_indices(indices: Any, size: int) -> NDArray[Any]:
    """Distinct indices between 0 and the size, from indices or from booleans."""
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
        raise ValueError("indices must be distinct, but some image is named twice")
    return array.astype(np.int64)


def _position(index: int, size: int) -> int:
    position = operator.index(index)
    if not -size <= position < size:
        raise IndexError(f"index must lie between 0 and {size - 1}, but it is {position}")
    return position % size
