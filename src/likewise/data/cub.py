"""CUB-200-2011: 11,788 photographs of 200 bird species."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from likewise.data.dataset import Transform, renumber
from likewise.data.download import Archive, fetch
from likewise.data.image_files import ImageFiles, require_files
from likewise.data.layout import (
    classes_of_half,
    compare_counts,
    find,
    locate,
    one_of,
    parse_integer,
    parse_numbers,
    rows,
)

_NAME = "CUB-200-2011"
_OFFICIAL = {"train": (5_864, 100), "test": (5_924, 100), "all": (11_788, 200)}
# The MD5 is published with the record at CaltechDATA.
_ARCHIVE = Archive(
    "https://data.caltech.edu/records/65de6-vp158/files/CUB_200_2011.tgz?download=1",
    "md5:97eceeb196236b17998738112f37df78",
    "CUB_200_2011/images.txt",
)
_HOW = (
    "pass download=True (--data.download true on the command line), or unpack CUB_200_2011.tgz from "
    "https://data.caltech.edu/records/65de6-vp158 there"
)


class CUB200(ImageFiles):
    """CUB-200-2011 (Wah et al. 2011): birds, split by class for retrieval, the first 100 species for training.

    The folder has the layout of the official archive: ``images.txt``, ``image_class_labels.txt``, ``classes.txt``,
    ``images/``, and optionally ``bounding_boxes.txt``.

    Args:
        root: the folder ``CUB_200_2011`` or its parent.
        split: ``"train"`` (5,864 images), ``"test"`` (5,924 images of the other 100 species) or ``"all"``.
        transform: function applied to an image that ``[index]`` returns.
        crop: crop each image to the bounding box of the bird.
        download: download the official archive (1.1 GB) if the data set is not in ``root``.
        mirror: alternative URL of the same archive.
        check: check that every image exists, and warn if the counts differ from the official ones.

    Examples:
        >>> CUB200("/nowhere")
        Traceback (most recent call last):
        FileNotFoundError: CUB-200-2011 is not at /nowhere, which must contain images.txt or CUB_200_2011/images.txt; ...
    """

    recall_at = (1, 2, 4, 8, 16, 32)

    def __init__(
        self,
        root: str | os.PathLike[str],
        split: str = "train",
        *,
        transform: Transform | None = None,
        crop: bool = False,
        download: bool = False,
        mirror: str | None = None,
        check: bool = True,
    ):
        one_of("split", split, tuple(_OFFICIAL))
        if download and find(root, ["CUB_200_2011"], "images.txt") is None:
            fetch(_ARCHIVE if mirror is None else replace(_ARCHIVE, url=mirror), root)
        folder = locate(_NAME, root, ["CUB_200_2011"], "images.txt", _HOW)

        names = _column(folder / "classes.txt", "class_name")
        paths = _column(folder / "images.txt", "path")
        classes = _column(folder / "image_class_labels.txt", "class_id")
        order = {number: position for position, number in enumerate(sorted(names))}
        wanted = classes_of_half(split, len(names))
        chosen = [image for image in paths if order[_class_of(folder, image, classes, names)] in wanted]
        labels, kept = renumber([order[int(classes[image])] for image in chosen])
        in_order = [names[number] for number in sorted(names)]

        files = [paths[image] for image in chosen]
        if check:
            require_files(_NAME, folder / "images", files, "unpack the archive again")
            compare_counts(_NAME, split, (len(files), len(kept)), _OFFICIAL[split])
        super().__init__(
            _NAME,
            folder / "images",
            files,
            labels,
            [in_order[each] for each in kept],
            split=split,
            transform=transform,
            crop=crop,
            boxes=_boxes(folder / "bounding_boxes.txt", chosen),
        )


def _column(path: Path, field: str) -> dict[int, str]:
    """Read a list of numbers and values, the format of all lists of this data set."""
    return {
        parse_integer(path, line, "the number", number): value
        for line, (number, value) in rows(path, ("number", field))
    }


def _class_of(folder: Path, image: int, classes: dict[int, str], names: dict[int, str]) -> int:
    text = classes.get(image, "")
    if not text.isdigit() or int(text) not in names:
        raise ValueError(
            f"{folder / 'image_class_labels.txt'} must give image {image} one of the {len(names)} classes, "
            f"but it gives {text or None!r}"
        )
    return int(text)


def _boxes(path: Path, images: list[int]) -> Tensor | None:
    if not path.is_file():
        return None
    sides = ("x", "y", "width", "height")
    boxes = {
        parse_integer(path, line, "image_id", image): parse_numbers(path, line, sides, box)
        for line, (image, *box) in rows(path, ("image_id", *sides))
    }
    missing = [image for image in images if image not in boxes]
    if missing:
        raise ValueError(f"{path} must have a box for every image, but has none for image {missing[0]}")
    return torch.tensor([boxes[image] for image in images]).reshape(-1, 4)
