"""Data sets of image files, and checks of these files."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from PIL import Image
from torch import Tensor

from likewise.data.dataset import ImageDataset, Transform
from likewise.data.decode import crop_to_box, decode

SAMPLE = 16 * 1024
"""Bytes that a fingerprint reads at the beginning, middle and end of a file."""


class ImageFiles(ImageDataset):
    """Images in files: the base class of the data sets on disk.

    Args:
        name: name of the data set.
        folder: folder of the images.
        paths: image files, relative to the folder.
        labels: class of each file.
        class_names: name of each class.
        split: name of the split.
        transform: function applied to an image that ``[index]`` returns.
        crop: crop each image to its bounding box.
        categories: coarser class of each image.
        category_names: name of each category.
        boxes: left, top, width and height of the object in each image.
        is_query: which images are queries.
        coarser: labels on the coarser levels of a hierarchy, ``(n, L - 1)``.
        tags: several labels per image, ``(n, C)`` booleans.
        cameras: camera of each image, ``(n,)`` integers.

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
        # One array of bytes: a list of a million strings would be copied into every worker process, page by page.
        self._paths = np.array([os.fsencode(path) for path in paths], dtype=np.bytes_)
        self.crop = crop

    def image(self, index: int) -> Image.Image:
        """Return the image of a file, decoded, in RGB and upright, and cropped to its box if ``crop`` is set."""
        image = decode(self.source(index))
        if self.crop and self.boxes is not None:
            image = crop_to_box(image, self.boxes[index].tolist(), self.source(index))
        return image

    def source(self, index: int) -> str:
        """Return the path of the file."""
        return os.path.join(self.folder, os.fsdecode(self._paths[index]))

    def _contents(self) -> Iterable[bytes]:
        """Yield relative paths and samples of contents: the same files in another folder have the same checksum."""
        for index in range(len(self)):
            yield self._paths[index] + b":" + file_sample(self.source(index))
        if self.crop and self.boxes is not None:
            yield self.boxes.numpy().tobytes()


def file_sample(path: str) -> bytes:
    """Return the size of a file and a checksum of its contents: all bytes up to 48 KiB, three samples of a larger file.

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
        return b"-1"  # a missing file changes the checksum, too
    return f"{size}:".encode() + digest.digest()


def require_files(name: str, folder: str | os.PathLike[str], paths: Sequence[str], how: str) -> None:
    """Raise an error that names the first missing file, if any file is missing.

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
    """Return the indices of missing files; each folder is listed once.

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
