r"""Why two images are alike: their similarity, place by place.

A pooled feature is a sum over the places of a map: a mean is a sum of equal parts, a maximum is where it is, and a mean of
powers is shared out as the powers are.  What follows until the embedding is linear, or is for one image: a layer norm
divides by one number, and every unit of a hidden layer is on or off.  So the embedding before its scaling is
$z = \sum_p z_p$ with one part for each place, and with the other image's embedding u of unit length

$$\cos = \frac{z^\top u}{\|z\|} = \sum_p \frac{z_p^\top u}{\|z\|} .$$

The terms are the heat-map.  They are not an estimate: they sum to the similarity.  Biases belong to no place and are
spread evenly.
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
    """What the places of an image add to its similarity with another.

    Args:
        places: ``(h, w)``, in float64; they sum to the similarity.
        box: the part of the image that they cover: left, top, right and bottom as shares of its width and height.

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
    """The heat-maps of two images, each by what it has in common with the whole of the other.

    Args:
        encoder: the model.
        first: an image.
        second: another.

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
    parts = [place_parts(encoder.model, each.features) for each in maps]
    wholes = [each.sum(dim=(1, 2)) for each in parts]
    lengths = [torch.linalg.vector_norm(each).clamp_min(1e-12) for each in wholes]
    units = [whole / length for whole, length in zip(wholes, lengths, strict=True)]
    heats = [
        Heat(torch.einsum("dhw,d->hw", parts[own] / lengths[own], units[1 - own]), maps[own].box) for own in (0, 1)
    ]
    return heats[0], heats[1]


def place_parts(model: Embedder, features: Tensor) -> Tensor:
    """The embedding before it is scaled, as a sum over places: ``(dim, h, w)`` in float64.

    Args:
        model: whose pooling and head they go through.
        features: the trunk's map of one image, ``(C, h, w)``.

    Examples:
        >>> model = Embedder("convnet", 8, pool="gem", head="mlp", layer_norm=True, normalize=False).eval()
        >>> images = torch.rand(1, 1, 32, 32, generator=torch.Generator().manual_seed(0))
        >>> parts = place_parts(model, model.trunk(images)[0])
        >>> torch.allclose(parts.sum(dim=(1, 2)).float(), model(images)[0], atol=1e-5)
        True
    """
    with torch.no_grad():
        shares = pooled_shares(model.pool, features.detach().cpu().double())
        channels, height, width = shares.shape
        rows = shares.reshape(channels, height * width).T  # (places, C)
        if isinstance(model.norm, nn.LayerNorm):
            whole = rows.sum(dim=0)
            spread = torch.sqrt(whole.var(unbiased=False) + model.norm.eps)
            rows = (rows - rows.mean(dim=1, keepdim=True)) / spread
        layers = list(model.head) if isinstance(model.head, nn.Sequential) else [model.head]
        for layer in layers:
            rows = _through(layer, rows)
        return rows.T.reshape(-1, height, width)


def _through(layer: nn.Module, rows: Tensor) -> Tensor:
    """Parts of a layer's output, from parts of its input ``(places, n)``."""
    if isinstance(layer, nn.Linear):
        out = rows @ layer.weight.detach().cpu().double().T
        return out if layer.bias is None else out + layer.bias.detach().cpu().double() / len(rows)
    if isinstance(layer, nn.ReLU):
        return rows * (rows.sum(dim=0) > 0.0)  # a unit is on or off for the whole image
    if isinstance(layer, nn.Identity):
        return rows
    raise TypeError(f"a head must consist of linear layers and ReLU for a heat-map, but it has {type(layer).__name__}")


def pooled_shares(pool: nn.Module, features: Tensor) -> Tensor:
    """What each place of a map adds to the pooled features: ``(C, h, w)``, which sums to them.

    Args:
        pool: one of `likewise.trunks.POOLS`.
        features: the map, ``(C, h, w)``.

    Examples:
        >>> pooled_shares(MaxPool(), torch.tensor([[[1.0, 3.0, 3.0]]]))
        tensor([[[0.0000, 1.5000, 1.5000]]])
    """
    places = features.shape[1] * features.shape[2]
    if isinstance(pool, AveragePool):
        return features / places
    if isinstance(pool, MaxPool):
        return _at_largest(features)
    if isinstance(pool, AveragePlusMaxPool):
        return features / places + _at_largest(features)
    if isinstance(pool, GeneralizedMeanPool):
        p = float(pool.p.detach())
        powers = features.clamp_min(pool.least).pow(p)
        total = powers.sum(dim=(1, 2), keepdim=True)
        return (total / places).pow(1.0 / p) * powers / total
    raise TypeError(f"a pooling must be one of ours to be shared out, but it is a {type(pool).__name__}")


def _at_largest(features: Tensor) -> Tensor:
    """The largest value of each channel at its place; shared where it is at several."""
    largest = features.amax(dim=(1, 2), keepdim=True)
    there = (features == largest).to(features.dtype)
    return largest * there / there.sum(dim=(1, 2), keepdim=True)
