"""In-Shop Clothes Retrieval (DeepFashion): 52,712 photographs of 7,982 pieces of clothing, with queries and a gallery."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import torch
from torch import Tensor

from likewise.data.dataset import Transform
from likewise.data.image_files import ImageFiles, require_files
from likewise.data.layout import compare_counts, locate, one_of, parse_numbers, rows

_NAME = "In-Shop Clothes Retrieval"
_OFFICIAL = {
    "train": (25_882, 3_997),
    "query": (14_218, 3_985),
    "gallery": (12_612, 3_985),
    "test": (26_830, 3_985),
    "all": (52_712, 7_982),
}
_LIST = "list_eval_partition.txt"
_HOW = (
    "its authors provide it on request only: use the form at "
    "https://mmlab.ie.cuhk.edu.hk/projects/DeepFashion/InShopRetrieval.html, and put list_eval_partition.txt and the "
    "unpacked img.zip there"
)
_INSIDE = ("Eval", "In-shop Clothes Retrieval Benchmark", "In-shop Clothes Retrieval Benchmark/Eval")


class InShop(ImageFiles):
    """In-Shop Clothes Retrieval (Liu et al. 2016): a class is a piece of clothing; queries are searched in a gallery.

    The folder has the official layout: ``Eval/list_eval_partition.txt`` and ``Img/img/``, or both without the outer
    folder, and optionally ``list_bbox_inshop.txt``, there or in ``Anno``.  Categories are names such as
    ``"WOMEN/Dresses"``.  Queries and gallery share their labels, both as separate splits and as ``test.query`` and
    ``test.gallery`` of the split ``"test"``.

    Args:
        root: the folder, or its parent.
        split: ``"train"`` (25,882 images of 3,997 pieces), ``"query"`` (14,218 of 3,985 others), ``"gallery"`` (12,612 of
            the same), ``"test"`` (queries and gallery) or ``"all"``.
        transform: function applied to an image that ``[index]`` returns.
        crop: crop each image to its bounding box.
        download: not supported; the error explains how to get the data.
        check: check that every image exists, and warn if the counts differ from the official ones.

    Examples:
        >>> InShop("/nowhere", "query")
        Traceback (most recent call last):
        FileNotFoundError: In-Shop Clothes Retrieval is not at /nowhere, which must contain list_eval_partition.txt or ...
    """

    recall_at = (1, 10, 20, 30, 40, 50)

    def __init__(
        self,
        root: str | os.PathLike[str],
        split: str = "train",
        *,
        transform: Transform | None = None,
        crop: bool = False,
        download: bool = False,
        check: bool = True,
    ):
        one_of("split", split, tuple(_OFFICIAL))
        how = _HOW + (", then omit download=True (--data.download true on the command line)" if download else "")
        eval_folder = locate(_NAME, root, _INSIDE, _LIST, how)
        folder = eval_folder.parent if eval_folder.name == "Eval" else eval_folder
        images = folder / "Img" if (folder / "Img" / "img").is_dir() else folder

        entries = _read(eval_folder / _LIST)
        parts = {"test": ("query", "gallery"), "all": ("train", "query", "gallery")}.get(split, (split,))
        # Labels count all test classes, so that a query and its match agree, whichever part is loaded.
        shared = ("query", "gallery") if split in ("query", "gallery") else parts
        names = sorted({entry.item for entry in entries if entry.part in shared})
        place = {item: position for position, item in enumerate(names)}
        chosen = [entry for entry in entries if entry.part in parts]
        files = [entry.file for entry in chosen]
        kinds = sorted({_category(entry.file) for entry in entries})
        if check:
            require_files(_NAME, images, files, "unpack img.zip again")
            compare_counts(_NAME, split, (len(files), len({entry.item for entry in chosen})), _OFFICIAL[split])
        super().__init__(
            _NAME,
            images,
            files,
            torch.tensor([place[entry.item] for entry in chosen], dtype=torch.int64),
            names,
            split=split,
            transform=transform,
            crop=crop,
            categories=torch.tensor([kinds.index(_category(file)) for file in files], dtype=torch.int64),
            category_names=kinds,
            boxes=_boxes(folder, files),
            is_query=torch.tensor([entry.part == "query" for entry in chosen]) if split == "test" else None,
        )


@dataclass(frozen=True)
class _Entry:
    file: str
    item: str
    part: str


def _read(path: Path) -> list[_Entry]:
    """Read the list: the number of images, a header, and a line per image."""
    entries = []
    for line, (file, item, part) in rows(path, ("image_name", "item_id", "evaluation_status"), skip=2):
        if part not in ("train", "query", "gallery"):
            raise ValueError(
                f"{path}, line {line}: evaluation_status must be train, query or gallery, but it is {part!r}"
            )
        entries.append(_Entry(file, item, part))
    return entries


def _category(file: str) -> str:
    """Return the category of a file: ``img/WOMEN/Dresses/id_00000002/02_1_front.jpg`` is in ``WOMEN/Dresses``."""
    return "/".join(PurePosixPath(file).parts[1:3])


def _boxes(folder: Path, files: list[str]) -> Tensor | None:
    """Return left, top, width and height from a list of corners."""
    found = [place for place in (folder / "Anno", folder) if (place / "list_bbox_inshop.txt").is_file()]
    if not found:
        return None
    path = found[0] / "list_bbox_inshop.txt"
    sides = ("x_1", "y_1", "x_2", "y_2")
    corners = {}
    for line, fields in rows(path, ("image_name", "clothes_type", "pose_type", *sides), skip=2):
        left, top, right, bottom = parse_numbers(path, line, sides, fields[3:])
        corners[fields[0]] = (left, top, right - left, bottom - top)
    missing = [file for file in files if file not in corners]
    if missing:
        raise ValueError(f"{path} must have a box for every image, but has none for {missing[0]}")
    return torch.tensor([corners[file] for file in files]).reshape(-1, 4)
