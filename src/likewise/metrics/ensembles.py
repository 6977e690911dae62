"""Several models of one method: their embeddings side by side, or their scores on average."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral, Real

import torch
from torch import Tensor

from likewise.formula import check_values, embeddings_of, same_device, unit
from likewise.metrics.ranks import Array
from likewise.metrics.tiles import tensor_of


def concatenate(embeddings: Sequence[Array], *, normalize_each: bool = True) -> Tensor:
    """Put the embeddings of several models side by side and scale the result to unit length.

    This is the ensemble that the reality check calls concatenated.  Each model's embeddings are scaled to unit length
    first, so that all have the same say: the cosine of two samples is then the mean of the models' cosines.

    Args:
        embeddings: of the same samples in the same order, ``(n, d)`` each; d may differ.
        normalize_each: scale each model's embeddings first; otherwise longer ones weigh more.

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
        parts = [
            embeddings_of(f"embeddings[{index}]", tensor_of("embeddings", each))
            for index, each in enumerate(embeddings)
        ]
    for index, part in enumerate(parts):
        same_device(f"embeddings[{index}]", part, parts[0].device, "embeddings[0]")
        if len(part) != len(parts[0]):
            raise ValueError(
                f"embeddings[{index}] must have the {len(parts[0])} rows of embeddings[0], but it has {len(part)}"
            )
    return unit(torch.cat([unit(part) if normalize_each else part for part in parts], dim=1))


def separated(results: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The mean of each score over several models, each measured by itself.

    This is what the reality check calls separated.  Whole numbers and flags are no scores but describe what was
    measured, such as the number of queries: they must agree between the models, and are kept.

    Args:
        results: one dict of numbers per model, as `retrieval`, `clustering` or `verification` give them, with the same
            names.

    Examples:
        >>> separated([{"R@1": 0.5, "queries": 8}, {"R@1": 0.75, "queries": 8}])
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
    return {name: _combined(name, [result[name] for result in results]) for name in results[0]}


def _combined(name: str, values: list[float]) -> float:
    for value in values:
        if not isinstance(value, Real):
            raise TypeError(f"results must hold numbers, but {name!r} is a {type(value).__name__}")
    whole = [isinstance(value, Integral) for value in values]
    if not any(whole):
        return sum(float(value) for value in values) / len(values)
    if not all(whole) or any(value != values[0] for value in values):
        raise ValueError(f"results must agree in the count {name!r}, but it is {values}")
    return values[0]
