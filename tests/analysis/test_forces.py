"""Forces: their parts, their directions, and points that follow them."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from likewise.analysis.catalog import catalog
from likewise.analysis.forces import forces, roll
from likewise.analysis.stage import real_stage, show
from likewise.analysis.weights import pair_weights
from likewise.formula import SquaredEuclidean
from likewise.losses import (
    ContrastiveLoss,
    CrossBatchMemory,
    DirectionRegularized,
    MultiSimilarityLoss,
    NPairsLoss,
    ProxyAnchorLoss,
    SupConLoss,
    TripletLoss,
)
from likewise.testing import loop_over


def batch(dim: int = 5, seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(12, dim, generator=generator, dtype=torch.float64), torch.arange(12) // 3


@loop_over("name", list(catalog()))
def test_the_parts_are_the_whole(name: str):
    """Against autograd of the loss itself; and a part along plus a part across is the part."""
    x, y = batch()
    torch.manual_seed(0)
    loss = catalog()[name].make(4, 5).double()
    found = forces(loss, x, y)
    leaf = x.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(loss(leaf, y), leaf)
    assert torch.allclose(found.whole, -gradient, rtol=1e-8, atol=1e-12)
    assert torch.allclose(found.radial() + found.tangential(), found.whole)
    assert torch.allclose((found.tangential() * x).sum(dim=1), torch.zeros(12, dtype=x.dtype), atol=1e-12)


def test_figure_3_of_the_overview():
    """Eq. 6: on squared distances the gradients are 2(n − p), 2(p − a) and 2(a − n)."""
    a, p, n = (torch.tensor(each, dtype=torch.float64) for each in ([0.0, 0.0], [1.0, 0.1], [-0.15, 0.75]))
    loss = TripletLoss(similarity=SquaredEuclidean(normalize=False))
    found = forces(loss, torch.stack([a, p, n]), torch.tensor([0, 0, 1]))
    assert torch.allclose(found.attraction, 2.0 * torch.stack([p - a, a - p, 0.0 * n]))
    assert torch.allclose(found.repulsion, 2.0 * torch.stack([a - n, 0.0 * p, n - a]))
    assert torch.allclose(found.rest, torch.zeros(3, 2, dtype=torch.float64), atol=1e-12)


def test_figure_9_of_the_overview():
    """Direction regularization turns the negative from the anchor towards the middle, and the positive feels it."""
    plane = 0.8 * torch.tensor([[0.0, 0.0], [1.0, 0.1], [-0.15, 0.75]], dtype=torch.float64)
    sphere = torch.cat([plane, (1.0 - plane.square().sum(dim=1, keepdim=True)).sqrt()], dim=1)
    labels = torch.tensor([0, 0, 1])
    plain, turned = (
        forces(loss, sphere, labels) for loss in (TripletLoss(), DirectionRegularized(TripletLoss(), gamma=0.15))
    )
    # seen from above, the positive is to the right of the anchor and the negative a little to its left
    assert float(plain.repulsion[2, 0]) < 0.0 < float(turned.repulsion[2, 0])
    assert float(plain.repulsion[1].norm()) == 0.0
    assert float(turned.repulsion[1].norm()) > 0.0


def test_a_cosine_only_turns():
    x, y = batch()
    assert float(forces(MultiSimilarityLoss(), x, y).radial().norm()) < 1e-12
    assert float(forces(NPairsLoss(), x, y).radial().norm()) > 0.1


def test_sphereface_minds_lengths():
    """The part that goes through no pair is a part along the embedding, by Euler's rule for its logits."""
    x, y = batch()
    torch.manual_seed(0)
    found = forces(catalog()["SphereFace"].make(4, 5).double(), x, y)
    assert float(found.rest.norm()) > 1e-3
    assert torch.allclose(found.tangential(found.rest), torch.zeros_like(x), atol=1e-12)
    others = forces(SupConLoss(), x, y)
    assert torch.allclose(others.rest, torch.zeros_like(x), atol=1e-12)


def test_a_positive_pair_attracts_and_a_negative_one_repels():
    """Two points on a circle: the force points to the other, or away from it."""
    x = torch.tensor([[1.0, 0.0], [0.6, 0.8]], dtype=torch.float64)
    together = forces(ContrastiveLoss(), x, torch.tensor([0, 0]))
    apart = forces(ContrastiveLoss(), x, torch.tensor([0, 1]))
    assert torch.allclose(together.whole, torch.tensor([[0.0, 0.8], [0.64, -0.48]], dtype=torch.float64))
    assert torch.allclose(apart.whole, -together.whole)
    assert not together.repulsion.any()
    assert not apart.attraction.any()


@pytest.mark.parametrize("name", ["Contrastive", "Triplet", "Multi-similarity", "NT-Xent", "Proxy-Anchor", "CosFace"])
@pytest.mark.parametrize("dim", [2, 3])
def test_rolling_goes_down(name: str, dim: int):
    x, y = batch(dim)
    torch.manual_seed(0)
    loss = catalog()[name].make(4, dim)
    before = {key: value.clone() for key, value in loss.state_dict().items()}
    rolled = roll(loss, x, y, steps=20, rate=1e-3)
    assert rolled.positions.shape == (21, 12, dim)
    assert torch.allclose(rolled.positions.norm(dim=2), torch.ones(21, 12, dtype=x.dtype))
    assert rolled.values.shape == (21,)
    assert rolled.values[-1] < rolled.values[0]
    assert all(torch.equal(value, before[key]) for key, value in loss.state_dict().items())
    assert (rolled.proxies is None) == (not catalog()[name].has_proxies)


def test_a_step_is_gradient_descent():
    """One step by hand: down the gradient, back to the circle; proxies along theirs."""
    x, y = batch(2)
    x = x / x.norm(dim=1, keepdim=True)
    loss = ProxyAnchorLoss(4, 2).double()
    leaf = x.clone().requires_grad_()
    step, of_proxies = torch.autograd.grad(loss(leaf, y), [leaf, loss.proxies])
    moved, proxies = x - 0.01 * step, loss.proxies.detach() - 0.01 * of_proxies
    rolled = roll(loss, x, y, steps=1, rate=0.01)
    assert torch.allclose(rolled.positions[1], moved / moved.norm(dim=1, keepdim=True))
    assert torch.allclose(rolled.proxies[1], proxies / proxies.norm(dim=1, keepdim=True))
    few = roll(ProxyAnchorLoss(8, 2).double(), x, y, steps=0)  # more classes than the batch has
    assert few.proxy_labels.tolist() == list(range(8))


def test_looking_at_forces_fills_no_memory():
    x, y = batch()
    memory = CrossBatchMemory(ContrastiveLoss(), size=24)
    forces(memory, x.float(), y)
    assert int(memory.filled) == 0


def test_where_nobody_makes_graphs():
    """A lens is looked through during validation, too."""
    x, labels = torch.randn(6, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0)), torch.arange(6) // 2
    loss, stage = MultiSimilarityLoss(), real_stage(x, labels)

    def looked_at() -> list[Tensor]:
        found = forces(loss, x, labels)
        weights = pair_weights(loss, x, labels)
        return [
            found.attraction,
            found.repulsion,
            roll(loss, x, labels, 3).positions,
            weights,
            show(loss, stage, _as_it_is).derivatives,
        ]

    expected = looked_at()
    assert all(each.abs().max() > 0.0 for each in expected)
    with torch.no_grad():
        torch.testing.assert_close(looked_at(), expected, rtol=0.0, atol=0.0)


def _as_it_is(cosines: Tensor) -> Tensor:
    return cosines


def test_refusals_are_one_sentence():
    x, y = batch()
    with pytest.raises(ValueError, match="rate must be a number > 0, but it is 0"):
        roll(ContrastiveLoss(), x, y, rate=0)
    with pytest.raises(ValueError, match="steps must be a whole number"):
        roll(ContrastiveLoss(), x, y, steps=-1)
