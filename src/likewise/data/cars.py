"""Cars196 (Stanford Cars): 16,185 photographs of 196 car models."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from likewise.data.dataset import Transform, renumber
from likewise.data.download import Archive, fetch
from likewise.data.image_files import ImageFiles, require_files
from likewise.data.layout import classes_of_half, compare_counts, one_of

_NAME = "Cars196"
_OFFICIAL = {"train": (8_054, 98), "test": (8_131, 98), "all": (16_185, 196)}
_HOW = (
    "the authors' server is offline, so get a copy from another source (one with cars_annos.mat, or with "
    "cars_test_annos_withlabels.mat and the devkit) and unpack it there, or pass download=True and mirror=URL "
    "(--data.download true --data.mirror URL on the command line)"
)
_INSIDE = ("", "CARS196", "Cars196", "cars196", "stanford_cars", "cars")
_TEST = "cars_test_annos_withlabels.mat"


class Cars196(ImageFiles):
    """Cars196 (Krause et al. 2013): car models, split by class for retrieval, the first 98 models for training.

    Two layouts are supported: ``cars_annos.mat`` with ``car_ims/``, and ``cars_train/``, ``cars_test/`` with ``devkit/``
    and ``cars_test_annos_withlabels.mat``, inside the devkit or next to it.  The retrieval split takes all images of a
    model, from both folders.

    Args:
        root: the folder, or its parent.
        split: ``"train"`` (8,054 images), ``"test"`` (8,131 images of the other 98 models) or ``"all"``.
        transform: function applied to an image that ``[index]`` returns.
        crop: crop each image to the bounding box of the car.
        download: download the archive from the mirror if the data set is not in ``root``.
        mirror: URL of an archive with one of the layouts; the authors' server is offline, and no checksum was
            published.
        check: check that every image exists, and warn if the counts differ from the official ones.

    Examples:
        >>> Cars196("/nowhere")
        Traceback (most recent call last):
        FileNotFoundError: Cars196 is not at /nowhere, which must contain cars_annos.mat, or ... the authors' server is offline, ...
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
        found = _read(Path(root))
        if found is None and download and mirror is not None:
            fetch(Archive(mirror, None, None), root)
            found = _read(Path(root))
        if found is None:
            raise FileNotFoundError(
                f"{_NAME} is not at {os.fspath(root)}, which must contain cars_annos.mat, or devkit/cars_train_annos.mat "
                f"with {_TEST}; {_HOW}"
            )
        wanted = classes_of_half(split, len(found.names))
        chosen = np.flatnonzero((found.classes >= wanted.start) & (found.classes < wanted.stop))
        labels, kept = renumber(found.classes[chosen].tolist())
        files = [found.files[each] for each in chosen]
        if check:
            require_files(_NAME, found.folder, files, "unpack the archive again")
            compare_counts(_NAME, split, (len(files), len(kept)), _OFFICIAL[split])
        super().__init__(
            _NAME,
            found.folder,
            files,
            labels,
            [found.names[each] for each in kept],
            split=split,
            transform=transform,
            crop=crop,
            boxes=found.boxes[torch.from_numpy(chosen)],
        )


@dataclass(frozen=True)
class _Annotations:
    """The content of either layout: files relative to the folder, classes counted from 0, boxes."""

    folder: Path
    files: list[str]
    classes: NDArray[Any]
    names: list[str]
    boxes: Tensor


def _read(root: Path) -> _Annotations | None:
    for folder in (root / inside for inside in _INSIDE):
        if (folder / "cars_annos.mat").is_file():
            return _read_whole(folder)
        devkits = [kit for kit in (folder / "devkit", folder / "car_devkit" / "devkit") if kit.is_dir()]
        tests = [place / _TEST for place in (*devkits, folder) if (place / _TEST).is_file()]
        if devkits and tests:
            return _read_halves(folder, devkits[0], tests[0])
    return None


def _read_whole(folder: Path) -> _Annotations:
    """Read the first layout: one list, paths such as ``car_ims/000001.jpg``."""
    path = folder / "cars_annos.mat"
    content = _load(path, "annotations", "class_names")
    entries = np.atleast_1d(content["annotations"])
    names = _names(content["class_names"])
    files = [str(each) for each in _field(path, entries, "relative_im_path")]
    return _Annotations(folder, files, _classes(path, entries, names), names, _boxes(path, entries))


def _read_halves(folder: Path, devkit: Path, test: Path) -> _Annotations:
    """Read the second layout: two lists, paths such as ``00001.jpg`` in two folders."""
    names = _names(_load(devkit / "cars_meta.mat", "class_names")["class_names"])
    files, classes, boxes = [], [], []
    for part, path in (("cars_train", devkit / "cars_train_annos.mat"), ("cars_test", test)):
        entries = np.atleast_1d(_load(path, "annotations")["annotations"])
        nested = (folder / part / part).is_dir()  # the layout of some copies
        prefix = f"{part}/{part}" if nested else part
        files += [f"{prefix}/{each}" for each in _field(path, entries, "fname")]
        classes.append(_classes(path, entries, names))
        boxes.append(_boxes(path, entries))
    return _Annotations(folder, files, np.concatenate(classes), names, torch.cat(boxes))


def _load(path: Path, *variables: str) -> dict[str, Any]:
    try:
        from scipy.io import loadmat
    except ImportError as missing:
        raise ImportError("Cars196 needs scipy to read its .mat files; install the extra likewise[data]") from missing
    if not path.is_file():
        raise FileNotFoundError(f"{_NAME} needs {path}, but there is no such file; unpack the devkit again")
    content: dict[str, Any] = loadmat(path, squeeze_me=True)
    for each in variables:
        if each not in content:
            raise ValueError(f"{path} must contain the variable {each!r}, but it does not")
    return content


def _field(path: Path, entries: NDArray[Any], name: str) -> list[Any]:
    if name not in (entries.dtype.names or ()):
        raise ValueError(f"{path}: annotations must have the field {name!r}, but they have {entries.dtype.names}")
    return list(entries[name])


def _names(value: Any) -> list[str]:
    return [str(each) for each in np.atleast_1d(value)]


def _classes(path: Path, entries: NDArray[Any], names: list[str]) -> NDArray[Any]:
    classes = np.array(_field(path, entries, "class"), dtype=np.int64) - 1
    if len(classes) and (classes.min() < 0 or classes.max() >= len(names)):
        raise ValueError(
            f"{path}: classes must lie between 1 and {len(names)}, but they lie between {classes.min() + 1} and "
            f"{classes.max() + 1}"
        )
    return classes


def _boxes(path: Path, entries: NDArray[Any]) -> Tensor:
    """Convert first and last pixels, counted from 1 as in MATLAB, to left, top, width and height."""
    sides = [np.array(_field(path, entries, f"bbox_{side}"), dtype=np.float32) for side in ("x1", "y1", "x2", "y2")]
    left, top, right, bottom = sides
    return torch.from_numpy(np.stack([left - 1, top - 1, right - left + 1, bottom - top + 1], axis=1))
