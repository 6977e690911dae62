"""Stanford Online Products: 120,053 photographs of 22,634 products in 12 categories."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path, PurePosixPath

from likewise.data.dataset import Transform, renumber
from likewise.data.download import Archive, fetch
from likewise.data.image_files import ImageFiles, require_files
from likewise.data.layout import compare_counts, find, locate, one_of, parse_integer, rows

_NAME = "Stanford Online Products"
_OFFICIAL = {"train": (59_551, 11_318), "test": (60_502, 11_316), "all": (120_053, 22_634)}
_FIELDS = ("image_id", "class_id", "super_class_id", "path")
# The authors publish no checksum; this one is from TensorFlow Datasets, for the same file on the same server.
_ARCHIVE = Archive(
    "http://ftp.cs.stanford.edu/cs/cvgl/Stanford_Online_Products.zip",
    "sha256:b04fa78210e69fab050ce73939550e1cd0f96890bdd98ec9fee732c3b756ef48",
    "Stanford_Online_Products/Ebay_train.txt",
)
_HOW = (
    "pass download=True (--data.download true on the command line), or unpack Stanford_Online_Products.zip from "
    "https://cvgl.stanford.edu/projects/lifted_struct there"
)


class StanfordOnlineProducts(ImageFiles):
    """Stanford Online Products (Oh Song et al. 2016): a class is one product, photographed by its seller.

    The folder has the layout of the official archive: ``Ebay_train.txt``, ``Ebay_test.txt`` and one folder per category.
    ``categories`` holds the category of each image, one of twelve.

    Args:
        root: the folder ``Stanford_Online_Products`` or its parent.
        split: ``"train"`` (59,551 images of 11,318 products), ``"test"`` (60,502 of 11,316 others) or ``"all"``.
        transform: function applied to an image that ``[index]`` returns.
        download: download the official archive (3.1 GB) if the data set is not in ``root``.
        mirror: alternative URL of the same archive.
        check: check that every image exists, and warn if the counts differ from the official ones.

    Examples:
        >>> StanfordOnlineProducts("/nowhere")
        Traceback (most recent call last):
        FileNotFoundError: Stanford Online Products is not at /nowhere, which must contain Ebay_train.txt or ...
    """

    recall_at = (1, 10, 100, 1000)

    def __init__(
        self,
        root: str | os.PathLike[str],
        split: str = "train",
        *,
        transform: Transform | None = None,
        download: bool = False,
        mirror: str | None = None,
        check: bool = True,
    ):
        one_of("split", split, tuple(_OFFICIAL))
        if download and find(root, ["Stanford_Online_Products"], "Ebay_train.txt") is None:
            fetch(_ARCHIVE if mirror is None else replace(_ARCHIVE, url=mirror), root)
        folder = locate(_NAME, root, ["Stanford_Online_Products"], "Ebay_train.txt", _HOW)

        classes, supers, files = _read(folder, ("train", "test") if split == "all" else (split,))
        labels, kept = renumber(classes)
        categories, super_kept = renumber(supers)
        # the folder of a category is named after it: bicycle_final
        titles = {
            each: PurePosixPath(file).parts[0].removesuffix("_final") for each, file in zip(supers, files, strict=True)
        }
        title_of = {each: titles[category] for each, category in zip(classes, supers, strict=True)}
        if check:
            require_files(_NAME, folder, files, "unpack the archive again")
            compare_counts(_NAME, split, (len(files), len(kept)), _OFFICIAL[split])
        super().__init__(
            _NAME,
            folder,
            files,
            labels,
            [f"{title_of[each]}_{each}" for each in kept],
            split=split,
            transform=transform,
            categories=categories,
            category_names=[titles[each] for each in super_kept],
        )


def _read(folder: Path, parts: tuple[str, ...]) -> tuple[list[int], list[int], list[str]]:
    """Read classes, categories and files from the lists."""
    classes, supers, files = [], [], []
    for part in parts:
        path = folder / f"Ebay_{part}.txt"
        for line, (_, thing, category, file) in rows(path, _FIELDS, skip=1):
            classes.append(parse_integer(path, line, "class_id", thing))
            supers.append(parse_integer(path, line, "super_class_id", category))
            files.append(file)
    return classes, supers, files
