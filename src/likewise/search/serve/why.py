r"""Explanation of a similarity: heat maps of the contributions of image positions.

A pooled feature is a sum over the positions of a feature map: a mean is a sum of equal terms, a maximum is the value at
its position, and a generalized mean is divided in proportion to the powers.  The following layers are linear, or linear
for a given image: a layer norm divides by one number, and every unit of a hidden layer is on or off.  So the embedding
before normalization is $z = \sum_p z_p$ with one term for each position, and with the unit embedding u of the other image

$$\cos = \frac{z^\top u}{\|z\|} = \sum_p \frac{z_p^\top u}{\|z\|} .$$

The terms are the heat map.  They are exact, not an estimate: they sum to the similarity.  Biases belong to no position and
are distributed evenly.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from likewise.search.embedding import Picture
from likewise.search.encoder import Encoder, Maps
from likewise.trunks import AveragePlusMaxPool, AveragePool, Embedder, GeneralizedMeanPool, MaxPool


@dataclass(frozen=True, eq=False)
class Heat:
    """The contribution of each position of an image to its similarity with another image.

    Args:
        places: contributions ``(h, w)``, in float64; they sum to the similarity.
        box: the region of the image that they cover: left, top, right and bottom as fractions of its width and height.

    Examples:
        >>> Heat(torch.tensor([[0.5, 0.25]]), (0.0, 0.0, 1.0, 1.0)).similarity
        0.75
    """

    places: Tensor
    box: tuple[float, float, float, float]

    @property
    def similarity(self) -> float:
        """The cosine of the two images."""
        return float(self.places.sum())


def explain(encoder: Encoder, first: Picture, second: Picture) -> tuple[Heat, Heat]:
    """Return the heat maps of two images; each shows the contributions of one image to the similarity with the whole other.

    Args:
        encoder: the model.
        first: an image.
        second: another image.

    Examples:
        >>> from PIL import Image
        >>> pictures = Image.new("L", (40, 40), 200), Image.linear_gradient("L")
        >>> torch.manual_seed(0)
        <torch._C.Generator object at ...>
        >>> one, other = explain(Encoder(Embedder("convnet", 8), transform="glyphs"), *pictures)
        >>> abs(one.similarity - other.similarity) < 1e-9
        True
    """
    maps: tuple[Maps, Maps] = encoder.maps(first), encoder.maps(second)
    parts = [position_terms(encoder.model, each.features) for each in maps]
    wholes = [each.sum(dim=(1, 2)) for each in parts]
    lengths = [torch.linalg.vector_norm(each).clamp_min(1e-12) for each in wholes]
    units = [whole / length for whole, length in zip(wholes, lengths, strict=True)]
    heats = [
        Heat(torch.einsum("dhw,d->hw", parts[own] / lengths[own], units[1 - own]), maps[own].box) for own in (0, 1)
    ]
    return heats[0], heats[1]


def position_terms(model: Embedder, features: Tensor) -> Tensor:
    """Return the terms of the unnormalized embedding, one per position: ``(dim, h, w)`` in float64.

    Args:
        model: the model, for its pooling and head.
        features: feature map of the trunk for one image, ``(C, h, w)``.

    Examples:
        >>> model = Embedder("convnet", 8, pool="gem", head="mlp", layer_norm=True, normalize=False).eval()
        >>> images = torch.rand(1, 1, 32, 32, generator=torch.Generator().manual_seed(0))
        >>> parts = position_terms(model, model.trunk(images)[0])
        >>> torch.allclose(parts.sum(dim=(1, 2)).float(), model(images)[0], atol=1e-5)
        True
    """
    with torch.no_grad():
        shares = pooled_contributions(model.pool, features.detach().cpu().double())
        channels, height, width = shares.shape
        rows = shares.reshape(channels, height * width).T  # (positions, C)
        if isinstance(model.norm, nn.LayerNorm):
            whole = rows.sum(dim=0)
            spread = torch.sqrt(whole.var(unbiased=False) + model.norm.eps)
            rows = (rows - rows.mean(dim=1, keepdim=True)) / spread
        layers = list(model.head) if isinstance(model.head, nn.Sequential) else [model.head]
        for layer in layers:
            rows = _propagate(layer, rows)
        return rows.T.reshape(-1, height, width)


def _propagate(layer: nn.Module, rows: Tensor) -> Tensor:
    """Return the terms of a layer's output, from the terms of its input ``(positions, n)``."""
    if isinstance(layer, nn.Linear):
        out = rows @ layer.weight.detach().cpu().double().T
        return out if layer.bias is None else out + layer.bias.detach().cpu().double() / len(rows)
    if isinstance(layer, nn.ReLU):
        return rows * (rows.sum(dim=0) > 0.0)  # a unit is on or off for the whole image
    if isinstance(layer, nn.Identity):
        return rows
    raise TypeError(
        f"a head must consist of linear layers and ReLU for a heat map, but it has a {type(layer).__name__}"
    )


def pooled_contributions(pool: nn.Module, features: Tensor) -> Tensor:
    """Return the contribution of each position of a map to the pooled features: ``(C, h, w)``, which sums to them.

    Args:
        pool: one of `likewise.trunks.POOLS`.
        features: the feature map, ``(C, h, w)``.

    Examples:
        >>> pooled_contributions(MaxPool(), torch.tensor([[[1.0, 3.0, 3.0]]]))
        tensor([[[0.0000, 1.5000, 1.5000]]])
    """
    places = features.shape[1] * features.shape[2]
    if isinstance(pool, AveragePool):
        return features / places
    if isinstance(pool, MaxPool):
        return _value_at_maximum(features)
    if isinstance(pool, AveragePlusMaxPool):
        return features / places + _value_at_maximum(features)
    if isinstance(pool, GeneralizedMeanPool):
        p = float(pool.p.detach())
        powers = features.clamp_min(pool.least).pow(p)
        total = powers.sum(dim=(1, 2), keepdim=True)
        return (total / places).pow(1.0 / p) * powers / total
    raise TypeError(f"pool must be one of likewise.trunks.POOLS for a heat map, but it is a {type(pool).__name__}")


def _value_at_maximum(features: Tensor) -> Tensor:
    """Return the largest value of each channel at its position, divided evenly if it occurs at several."""
    largest = features.amax(dim=(1, 2), keepdim=True)
    there = (features == largest).to(features.dtype)
    return largest * there / there.sum(dim=(1, 2), keepdim=True)
