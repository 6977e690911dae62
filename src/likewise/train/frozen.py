"""Batches of features: the outputs of a frozen trunk are computed once, and only the head is trained."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from likewise.checksums import check_checksums, checksums
from likewise.data import Augment, Batch, BatchLoader, ImageCache, free_memory
from likewise.files import atomic_write
from likewise.progress import progress
from likewise.train.embedding import DTYPES, device_of
from likewise.train.settings import Precision

AT_ONCE = 256
"""Batch size for feature computation."""


class FrozenModel(Protocol):
    """A network with a frozen trunk that accepts features instead of images, such as ``Embedder(..., freeze="trunk")``."""

    trunk: nn.Module
    pool: nn.Module

    def features(self, images: Tensor) -> Tensor:
        """Compute the input of the head, ``(B, C)``."""


class FeatureLoader(BatchLoader):
    """Batches of the features of a frozen trunk instead of images.

    The features of all images are computed when the first batch is requested, with the evaluation transform, which has no
    augmentation.  A batch is then a selection of rows, and a step trains only the head.

    Args:
        model: a network with ``freeze="trunk"``; its trunk must not change.
        images: a cached data set.
        batches: the indices of the images of each batch, as for a `likewise.data.BatchLoader`; ``None``: all in order.
        augment: the preprocessing of the images: the evaluation part of a transform.
        device: the device of the batches.
        seed: part of the state of the loader; features do not depend on it.
        rank: the rank of this process; each process computes the features of all images.
        precision: mixed precision of the trunk.
        cache: a folder that stores features for other runs with the same trunk, images and transform.

    Examples:
        >>> FeatureLoader.__mro__[1].__name__
        'BatchLoader'
    """

    def __init__(
        self,
        model: FrozenModel,
        images: ImageCache,
        batches: Iterable[Sequence[int]] | None,
        augment: Augment,
        *,
        device: str | torch.device = "cpu",
        seed: int = 0,
        rank: int = 0,
        precision: Precision = "no",
        cache: Path | None = None,
    ) -> None:
        if getattr(model, "freeze", None) != "trunk":
            raise ValueError(
                f"model must have freeze='trunk', because the features of a trained trunk change, but it has "
                f"freeze={getattr(model, 'freeze', None)!r}"
            )
        in_order = [range(start, min(start + AT_ONCE, len(images))) for start in range(0, len(images), AT_ONCE)]
        super().__init__(images, in_order if batches is None else batches, augment, device=device, seed=seed, rank=rank)
        self._all = BatchLoader(images, in_order, augment, device=device)
        self._model, self._precision, self._cache = model, precision, cache
        self._features: Tensor | None = None

    def make_batches(self, work: Iterator[tuple[int, Tensor]]) -> Iterator[Batch]:
        """Select the rows of each batch."""
        features = self.features()
        labels = self.labels.to(self.device)
        for _, indices in work:
            rows, here = indices.to(features.device), indices.to(self.device)
            yield Batch(features[rows].to(self.device), labels[here], here)

    def features(self) -> Tensor:
        """Return the features of all images, ``(n, C)``, in float32: on the device if they fit, else in main memory."""
        if self._features is None:
            file = None if self._cache is None else self._cache / f"features-{self._key()}.safetensors"
            found = None if file is None else _read(file)
            if found is None:
                found = self._compute()
                if file is not None:
                    file.parent.mkdir(parents=True, exist_ok=True)
                    tensors = {"features": found}
                    with atomic_write(file) as part:
                        save_file(tensors, part, metadata=checksums(tensors))
            free = free_memory(self.device)
            fits = free is None or found.nbytes <= free // 3
            self._features = found.to(self.device) if fits else found
        return self._features

    def _compute(self) -> Tensor:
        device, precision = device_of(self._model.trunk), self._precision
        half = torch.autocast(device.type, dtype=DTYPES.get(precision), enabled=precision != "no")
        found = []
        with torch.inference_mode(), half, progress("features", len(self._all), "batch") as advance:
            for batch in self._all:
                found.append(self._model.features(batch.images.to(device)).float().cpu())
                advance(1)
        return torch.cat(found).clone()  # a plain tensor: inference tensors cannot be used in training

    def _key(self) -> str:
        """Compute a checksum of everything that the features depend on."""
        words = (self.images.fingerprint, repr(self.augment), self._precision, self.device.type, torch.__version__)
        digest = hashlib.sha256("\n".join(words).encode())
        for module in (self._model.trunk, self._model.pool):
            digest.update(type(module).__name__.encode())
            for name, tensor in module.state_dict().items():
                digest.update(name.encode() + tensor.cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes())
        return digest.hexdigest()[:32]


def _read(file: Path) -> Tensor | None:
    """Read the features of a file; ``None`` if it is missing or damaged."""
    try:
        with safe_open(file, "pt") as content:
            tensors: dict[str, Any] = {"features": content.get_tensor("features")}
            check_checksums(file, tensors, "", content.metadata() or {})
    except (OSError, SafetensorError, ValueError):
        return None
    return tensors["features"]  # type: ignore[no-any-return]
