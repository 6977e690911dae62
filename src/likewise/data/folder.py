"""Images in folders: one folder per class."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

from likewise.data.dataset import Transform
from likewise.data.image_files import ImageFiles

EXTENSIONS = (".avif", ".bmp", ".gif", ".jfif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp")


class ImageFolder(ImageFiles):
    """Images in folders: ``root/class/…/image``, at any depth below the class.

    Classes are the folders in root, in alphabetical order; hidden files and files with other extensions are ignored.

    Args:
        root: the folder that contains one folder per class.
        name: name of the data set; by default the name of the folder.
        transform: function applied to an image that ``[index]`` returns.
        extensions: extensions of image files, in upper or lower case.

    Examples:
        >>> import tempfile
        >>> from PIL import Image
        >>> root = Path(tempfile.mkdtemp())
        >>> for path in ("cat/a.png", "dog/old/b.png"):
        ...     (root / path).parent.mkdir(parents=True)
        ...     Image.new("RGB", (2, 2)).save(root / path)
        >>> ImageFolder(root, name="pets")
        pets: 2 images of 2 classes
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        name: str | None = None,
        transform: Transform | None = None,
        extensions: Sequence[str] = EXTENSIONS,
    ):
        if not os.path.isdir(root):
            raise FileNotFoundError(
                f"root must be a folder with one folder for each class, but {os.fspath(root)} is not a folder"
            )
        if isinstance(extensions, str):
            raise TypeError(f"extensions must be several extensions, but it is one string, {extensions!r}")
        endings = tuple(extension.lower() for extension in extensions)
        names = sorted(entry.name for entry in os.scandir(root) if entry.is_dir() and not entry.name.startswith("."))
        found = {each: sorted(walk_images(os.path.join(root, each), endings)) for each in names}
        full = [each for each in names if found[each]]
        if not full:
            flat = sum(entry.name.lower().endswith(endings) for entry in os.scandir(root) if entry.is_file())
            reason = (
                f": {flat:,} images are directly in it; `likewise serve {os.fspath(root)}` does not need classes"
                if flat
                else ""
            )
            raise FileNotFoundError(
                f"root must have folders with images ({' '.join(endings)}), one for each class, but {os.fspath(root)} has "
                f"none{reason}"
            )
        empty = [each for each in names if not found[each]]
        if empty:
            warnings.warn(f"{os.fspath(root)}: no image in {_join_names(empty)}; ignored", UserWarning, stacklevel=2)
        super().__init__(
            Path(root).resolve().name if name is None else name,
            root,
            [os.path.join(each, path) for each in full for path in found[each]],
            torch.repeat_interleave(torch.arange(len(full)), torch.tensor([len(found[each]) for each in full])),
            full,
            transform=transform,
        )


def walk_images(
    folder: str | os.PathLike[str], endings: tuple[str, ...] = EXTENSIONS, *, follow_links: bool = True
) -> Iterator[str]:
    """Return the images below a folder, relative to it; hidden names are skipped, and a linked folder is entered once.

    Args:
        folder: the folder to search.
        endings: file extensions of images, in lower case.
        follow_links: also return files outside the folder that links point to.

    Examples:
        >>> import tempfile
        >>> folder = tempfile.mkdtemp()
        >>> (Path(folder) / "a.PNG").touch()
        >>> list(walk_images(folder))
        ['a.PNG']
    """
    seen, top = set(), os.path.join(os.path.realpath(folder), "")
    for parent, folders, files in os.walk(folder, followlinks=True):
        real = os.path.realpath(parent)
        # a link to a parent folder would never end
        if real in seen or not (follow_links or os.path.join(real, "").startswith(top)):
            folders.clear()
            continue
        seen.add(real)
        folders[:] = [each for each in folders if not each.startswith(".")]
        for file in files:
            path = os.path.join(parent, file)
            if file.startswith(".") or not file.lower().endswith(endings):
                continue
            if follow_links or not os.path.islink(path) or os.path.realpath(path).startswith(top):
                yield os.path.relpath(path, folder)


def _join_names(names: Sequence[str]) -> str:
    rest = len(names) - 5
    return ", ".join(map(repr, names[:5])) + (f" and {rest} more" if rest > 0 else "")
