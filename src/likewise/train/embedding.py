"""Embed batches of images, and compute the retrieval metrics of the embeddings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from likewise.metrics import retrieval, shot_ids
from likewise.progress import progress
from likewise.train.settings import Precision

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}


class Embedded(NamedTuple):
    """Embeddings of a data set, in main memory.

    Args:
        embeddings: ``(n, d)``, float32.
        labels: the classes, ``(n,)``.

    Examples:
        >>> import torch
        >>> Embedded(torch.zeros(2, 4), torch.tensor([0, 1])).labels
        tensor([0, 1])
    """

    embeddings: Tensor
    labels: Tensor


def embed(model: nn.Module, batches: Iterable[Sequence[Any]], *, precision: Precision = "no") -> Embedded:
    """Embed all images, in evaluation mode and without gradients, on the device of the model.

    Args:
        model: the network that maps images to embeddings; its training mode is restored.
        batches: batches of images and labels; further entries are ignored.
        precision: mixed precision of the model.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> model, images = nn.Flatten(), torch.zeros(3, 1, 2, 2)
        >>> embed(model, [(images, torch.tensor([0, 0, 1]))]).embeddings.shape
        torch.Size([3, 4])
    """
    device = device_of(model)
    modes = {module: module.training for module in model.modules()}  # some may be frozen
    model.eval()
    embeddings, labels, size = [], [], 0
    half = torch.autocast(device.type, dtype=DTYPES.get(precision), enabled=precision != "no")
    try:
        with torch.inference_mode(), half, progress("embedding", count(batches), "batch") as advance:
            for batch in batches:
                images, number = batch[0].to(device), len(batch[1])
                size = max(size, number)
                # on a GPU the first pass of a network through images of another shape takes seconds
                if 0 < number < size and isinstance(images, Tensor) and images.is_cuda:
                    images = repeat_last(images, size)
                embeddings.append(model(images)[:number].float())
                labels.append(batch[1])
                advance(1)
    finally:
        for module, training in modes.items():
            module.training = training
    if not embeddings:
        raise ValueError("batches must have at least one batch, but it has none")
    # plain tensors: inference tensors cannot be used in training
    return Embedded(torch.cat(embeddings).cpu().clone(), torch.cat(labels).cpu().clone())


def repeat_last(images: Tensor, size: int) -> Tensor:
    """Repeat the last image of a batch up to a number of images, in the same memory format.

    Examples:
        >>> repeat_last(torch.tensor([[1.0], [2.0]]), 4).flatten()
        tensor([1., 2., 2., 2.])
    """
    is_channels_last = images.ndim == 4 and images.is_contiguous(memory_format=torch.channels_last)
    rows = torch.arange(size, device=images.device).clamp_(max=len(images) - 1)
    return images[rows].contiguous(memory_format=torch.channels_last if is_channels_last else torch.contiguous_format)


RECALLS = (1, 2, 4, 8)
"""Default values of k for recall@k."""


def evaluate(
    embedded: Embedded,
    is_query: Tensor | None = None,
    *,
    ks: Sequence[int] = RECALLS,
    cameras: Tensor | None = None,
) -> dict[str, float]:
    """Compute the retrieval metrics of embeddings: all against all others, or queries against the gallery.

    Args:
        embedded: embeddings and labels.
        is_query: which samples are queries, ``(n,)`` booleans; the others are the gallery.  ``None``: all are both.
        ks: values of k for recall@k.
        cameras: for re-identification, the camera of each image, ``(n,)``; see `likewise.metrics.reidentification`.

    Examples:
        >>> import torch
        >>> vectors = torch.tensor([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0], [0.1, 1.0]])
        >>> evaluate(Embedded(vectors, torch.tensor([0, 0, 1, 1])))["R@1"]
        1.0
    """
    embeddings, labels = embedded
    ids = None if cameras is None else shot_ids(labels, cameras)[0]
    if is_query is None:
        return retrieval(embeddings, labels, ks=ks, ids=ids)
    if is_query.dtype != torch.bool or is_query.shape != labels.shape:
        raise ValueError(
            f"is_query must be {len(labels)} booleans, but it is {is_query.dtype} of shape {tuple(is_query.shape)}"
        )
    return retrieval(
        embeddings[is_query],
        labels[is_query],
        embeddings[~is_query],
        labels[~is_query],
        ks=ks,
        ids=None if ids is None else ids[is_query],
        reference_ids=None if ids is None else ids[~is_query],
    )


def evaluate_both_ways(
    embedded: Embedded, is_query: Tensor, sides: Sequence[str], *, ks: Sequence[int] = RECALLS
) -> dict[str, float]:
    """Compute the retrieval metrics of two sides in both directions: anchors to references, and references to anchors.

    Args:
        embedded: embeddings and labels of both sides.
        is_query: which samples are anchors, ``(n,)`` booleans; the others are references.
        sides: the names of the sides, such as ``("image", "text")``.
        ks: values of k for recall@k.

    Returns:
        The mean of both directions under the name of each metric; the recalls of each direction, such as
        ``"R@1 text to image"``; and the number of queries of both directions together.

    Examples:
        >>> vectors = torch.tensor([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0], [1.0, 0.2], [0.0, 1.0]])
        >>> labels, is_query = torch.tensor([0, 1, 2, 0, 2]), torch.tensor([True, True, True, False, False])
        >>> metrics = evaluate_both_ways(Embedded(vectors, labels), is_query, ("image", "text"), ks=[1])
        >>> metrics["R@1"], metrics["R@1 image to text"], metrics["R@1 text to image"], metrics["queries"]
        (0.75, 1.0, 0.5, 4)
    """
    there, back = evaluate(embedded, is_query, ks=ks), evaluate(embedded, ~is_query, ks=ks)
    metrics: dict[str, float] = {}
    for name in there:
        total = there[name] + back[name]
        metrics[name] = total if name.startswith("queries") else total / 2
    for direction, scores in zip(directions(sides), (there, back), strict=True):
        metrics |= {f"{name} {direction}": value for name, value in scores.items() if name.startswith("R@")}
    return metrics


def directions(sides: Sequence[str]) -> tuple[str, str]:
    """Name the two directions of a search between two sides.

    Examples:
        >>> directions(("image", "text"))
        ('image to text', 'text to image')
    """
    return f"{sides[0]} to {sides[1]}", f"{sides[1]} to {sides[0]}"


def count(batches: object) -> int | None:
    """Return the number of batches, or ``None`` if it is unknown, such as for a loader of a stream.

    Examples:
        >>> count([1, 2]), count(iter([1, 2]))
        (2, None)
    """
    try:
        return len(batches)  # type: ignore[arg-type]
    except TypeError:
        return None


def device_of(model: nn.Module) -> torch.device:
    """Return the device of a model.

    Examples:
        >>> from torch import nn
        >>> device_of(nn.Linear(1, 1))
        device(type='cpu')
    """
    for tensor in (*model.parameters(), *model.buffers()):
        return tensor.device
    return torch.device("cpu")
