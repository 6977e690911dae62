"""Checksums of the tensors in a safetensors file, in its metadata: a flipped bit is noticed when the file is read."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

TENSORS, TEXT = "likewise crc32 of tensors", "likewise crc32 of text"
"""The keys of the metadata."""


def checksums(tensors: Mapping[str, Tensor], text: str = "") -> dict[str, str]:
    """The metadata that `check_checksums` compares.

    Args:
        tensors: by name, contiguous and on the CPU.
        text: other metadata.

    Examples:
        >>> sorted(checksums({"weight": torch.ones(2)}))
        ['likewise crc32 of tensors', 'likewise crc32 of text']
    """
    return {TENSORS: str(_checksum(tensors)), TEXT: str(zlib.crc32(text.encode()))}


def check_checksums(path: str | Path, tensors: Mapping[str, Tensor], text: str, metadata: Mapping[str, str]) -> bool:
    """Check the contents of a file against its checksums.

    Args:
        path: the file, for the error.
        tensors: all its tensors.
        text: its other metadata.
        metadata: its metadata, with the checksums.

    Returns:
        Whether the file has checksums; files of earlier versions do not.

    Examples:
        >>> tensors = {"weight": torch.ones(2)}
        >>> check_checksums("a.safetensors", tensors, "", checksums(tensors))
        True
        >>> check_checksums("a.safetensors", {"weight": torch.zeros(2)}, "", checksums(tensors))
        Traceback (most recent call last):
        ValueError: a.safetensors must be as it was written, but it is damaged: its tensors have another checksum
    """
    if TENSORS not in metadata or TEXT not in metadata:
        return False
    now = checksums(tensors, text)
    for key, parts in ((TEXT, "metadata have"), (TENSORS, "tensors have")):
        if metadata[key] != now[key]:
            raise ValueError(f"{path} must be as it was written, but it is damaged: its {parts} another checksum")
    return True


def _checksum(tensors: Mapping[str, Tensor]) -> int:
    """One CRC-32 over names, shapes, dtypes and bytes."""
    result = 0
    for name in sorted(tensors):
        tensor = tensors[name].detach().contiguous()
        result = zlib.crc32(f"{name}{tuple(tensor.shape)}{tensor.dtype}".encode(), result)
        if tensor.numel():
            result = zlib.crc32(tensor.reshape(-1).view(torch.uint8).numpy().data, result)
    return result
