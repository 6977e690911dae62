"""Ensembles: concatenated embeddings of several models, or the mean of their scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral, Real

import torch
from torch import Tensor

from likewise.formula import check_values, embeddings_of, same_device, unit
from likewise.metrics.arrays import Array, as_tensor


def concatenate(embeddings: Sequence[Array], *, normalize_each: bool = True) -> Tensor:
    """Concatenate the embeddings of several models and scale the result to unit length.

    This is the "concatenated" ensemble of Musgrave et al. (2020).  Each model's embeddings are scaled to unit length
    first, so that all models have the same weight: the cosine of two samples is the mean of the models' cosines.

    Args:
        embeddings: one tensor ``(n, d)`` per model, with the same samples in the same order; d may differ.
        normalize_each: scale each model's embeddings to unit length first; otherwise longer ones weigh more.

    Returns:
        Unit vectors ``(n, d_1 + d_2 + …)``.

    Examples:
        >>> import torch
        >>> concatenate([torch.tensor([[3.0, 4.0]]), torch.tensor([[2.0]])])
        tensor([[0.4243, 0.5657, 0.7071]])
    """
    if isinstance(embeddings, Tensor) or not isinstance(embeddings, Sequence) or not embeddings:
        what = "empty" if isinstance(embeddings, Sequence) else f"a {type(embeddings).__name__}"
        raise TypeError(f"embeddings must be a list with one tensor per model, but it is {what}")
    with check_values():
        tensors = [
            embeddings_of(f"embeddings[{index}]", as_tensor("embeddings", each))
            for index, each in enumerate(embeddings)
        ]
    for index, tensor in enumerate(tensors):
        same_device(f"embeddings[{index}]", tensor, tensors[0].device, "embeddings[0]")
        if len(tensor) != len(tensors[0]):
            raise ValueError(
                f"embeddings[{index}] must have the {len(tensors[0])} rows of embeddings[0], but it has {len(tensor)}"
            )
    return unit(torch.cat([unit(tensor) if normalize_each else tensor for tensor in tensors], dim=1))


def average_scores(results: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Average each score over several models that are evaluated separately.

    This is the "separated" protocol of Musgrave et al. (2020).  Integers and booleans are not scores but describe the
    evaluation, such as the number of queries: they must agree between the models and are returned unchanged.

    Args:
        results: one dict of numbers per model, from `retrieval`, `clustering` or `verification`, with the same names.

    Returns:
        The mean of each score over models, by name, and the counts.

    Examples:
        >>> average_scores([{"R@1": 0.5, "queries": 8}, {"R@1": 0.75, "queries": 8}])
        {'R@1': 0.625, 'queries': 8}
    """
    if not isinstance(results, Sequence) or not results:
        what = "empty" if isinstance(results, Sequence) else f"a {type(results).__name__}"
        raise TypeError(f"results must be a list with one dict per model, but it is {what}")
    for index, result in enumerate(results):
        different = sorted(set(result) ^ set(results[0]))
        if different:
            raise ValueError(
                f"results must have the same names, but results[0] and results[{index}] differ in {different}"
            )
    return {name: _combine(name, [result[name] for result in results]) for name in results[0]}


def _combine(name: str, values: list[float]) -> float:
    for value in values:
        if not isinstance(value, Real):
            raise TypeError(f"results must hold numbers, but {name!r} is a {type(value).__name__}")
    are_counts = [isinstance(value, Integral) for value in values]
    if not any(are_counts):
        return sum(float(value) for value in values) / len(values)
    if not all(are_counts) or any(value != values[0] for value in values):
        raise ValueError(f"results must agree in the count {name!r}, but it is {values}")
    return values[0]
