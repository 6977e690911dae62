"""Heat-maps sum to the similarity, whatever lies between the map and the embedding."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from torch import nn

from likewise.search import Encoder
from likewise.search.serve.why import explain, pooled_contributions, position_terms
from likewise.testing import loop_over
from likewise.trunks import POOLS, Embedder, build
from tests.search.serve.conftest import draw

OPTIONS = [*itertools.product(POOLS, ("linear", "mlp", "none"), (False, True))]


@loop_over("pool, head, layer_norm", OPTIONS)
def test_places_sum_to_the_cosine_of_the_embeddings(pool: str, head: str, layer_norm: bool):
    torch.manual_seed(5)
    model = Embedder(
        build("convnet", in_channels=3), None if head == "none" else 16, pool=pool, head=head, layer_norm=layer_norm
    )
    encoder = Encoder(model)
    images = draw("disc", "teal", 1), draw("ring", "crimson", 2, (80, 110))
    first, second = encoder.embed(images).astype(np.float64)
    expected = float(first @ second)
    for heat in explain(encoder, *images):
        assert heat.places.shape == (2, 2)
        assert heat.similarity == pytest.approx(expected, abs=2e-6)
        assert heat.places.numel() == 4


def test_by_hand():
    """Two places, two channels, a head that swaps them and adds a bias: every number on paper.

    Features (1, 0) and (3, 2), averaged (2, 1); swapped and with a bias of (0, 2): z = (1, 4).  The places are
    (0, 0.5) + (0, 1) and (1, 1.5) + (0, 1), with half of the bias each.
    """
    model = Embedder(build("convnet"), 2)
    model.head = nn.Linear(2, 2)
    with torch.no_grad():
        model.head.weight.copy_(torch.tensor([[0.0, 1.0], [1.0, 0.0]]))
        model.head.bias.copy_(torch.tensor([0.0, 2.0]))
    parts = position_terms(model, torch.tensor([[[1.0, 3.0]], [[0.0, 2.0]]]))
    assert parts.tolist() == [[[0.0, 1.0]], [[1.5, 2.5]]]


def test_a_place_with_nothing_in_common_is_cold():
    """Where one image is unlike the whole of the other, its term is negative, and the sum is lower for it."""
    model = Embedder(build("convnet"), 2)
    model.head = nn.Identity()
    parts = position_terms(model, torch.tensor([[[1.0, -1.0]], [[0.0, 4.0]]]))
    whole = parts.sum(dim=(1, 2))
    assert whole.tolist() == [0.0, 2.0]
    other = torch.tensor([0.8, 0.6], dtype=torch.float64)
    terms = torch.einsum("dhw,d->hw", parts, other) / whole.norm()
    assert terms.flatten().tolist() == pytest.approx([0.2, 0.4])  # (0.5·0.8)/2 and (-0.5·0.8 + 2·0.6)/2
    assert float(terms.sum()) == pytest.approx(0.6)


@loop_over("name", POOLS)
def test_shares_sum_to_what_the_pooling_gives(name: str):
    maps = torch.randn(5, 3, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    maps[0, 0, 0] = maps[0, 1, 1] = 9.0  # a tie
    pool = POOLS[name]()
    torch.testing.assert_close(
        pooled_contributions(pool, maps).sum(dim=(1, 2)),
        pool(maps[None])[0].detach(),
        check_dtype=False,
        atol=1e-6,
        rtol=1e-6,
    )


def test_strange_parts_are_refused():
    with pytest.raises(TypeError, match=r"pool must be one of likewise.trunks.POOLS"):
        pooled_contributions(nn.Identity(), torch.ones(1, 2, 2))
    model = Embedder(build("convnet"), 4)
    model.head = nn.Sequential(nn.Linear(256, 4), nn.GELU())
    with pytest.raises(TypeError, match="linear layers and ReLU"):
        position_terms(model, torch.ones(256, 2, 2))


def test_both_boxes_are_what_the_model_saw():
    torch.manual_seed(0)
    encoder = Encoder(Embedder(build("convnet", in_channels=3), 8))
    wide, tall = explain(encoder, draw("disc", "teal", 1, (200, 100)), draw("disc", "teal", 1, (100, 200)))
    assert wide.box[1] < 0.1 < wide.box[0]
    assert tall.box[0] < 0.1 < tall.box[1]
