"""Faults seen in public implementations; each is a test here so that ours cannot have them."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import pytest
import torch

from likewise import losses
from likewise.engines import evaluate_declaration
from likewise.formula import Cosine, Labels, Number, PairBatch, SquaredEuclidean, Triplets, hyper
from likewise.losses import PairLoss
from likewise.miners.base import TripletMiner
from likewise.testing import make_batch


def test_margin_loss_counts_positive_and_negative_terms_separately():
    """A triplet whose two terms are both active counts twice, not once (``bool + bool`` is an or)."""
    S = -torch.tensor([[0.0, 1.5, 0.9], [1.5, 0.0, 2.0], [0.9, 2.0, 0.0]])
    value = losses.MarginLoss(margin=0.2, beta=1.2).from_similarity(S, torch.tensor([0, 0, 1]))
    # anchor 0: 0.2 + 1.5 − 1.2 = 0.5 and 0.2 + 1.2 − 0.9 = 0.5; anchor 1: 0.5 and nothing
    assert value.item() == pytest.approx(1.5 / 3, abs=1e-6)


def test_fast_ap_gradient_is_the_slope_of_its_value():
    """A published backward is off by the factor |P| / 2: with six positives that would be three."""
    embeddings, _ = make_batch("balanced")
    labels = torch.tensor([0] * 7 + [1] * 5)
    loss = losses.FastAPLoss()
    assert torch.autograd.gradcheck(lambda x: loss(x, labels), (embeddings.requires_grad_(),), atol=1e-6)


@pytest.mark.parametrize("loss", [losses.TupletMarginLoss(), losses.AngularLoss(), losses.CircleLoss()])
def test_gradients_at_a_cosine_of_one_are_finite(loss):
    """``acos`` has an infinite slope there; two equal embeddings of one class are common."""
    embeddings = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]], requires_grad=True)
    loss(embeddings, torch.tensor([0, 0, 1, 1])).backward()
    assert torch.isfinite(embeddings.grad).all()


def test_self_pairs_are_excluded_by_index_not_by_value():
    """Dropping pairs with ``s < 1`` would drop a duplicate, or keep an anchor that rounds below one."""
    embeddings = torch.randn(1, 33).repeat(2, 1)
    value = losses.ContrastiveLoss(positive_margin=2.0, reduction="mean")(embeddings, torch.tensor([0, 0]))
    assert value.item() == pytest.approx(1.0, abs=1e-5)


def test_multi_similarity_averages_over_every_anchor():
    """Not over the anchors that the mining leaves something of; and an anchor without positives is no error."""
    embeddings, labels = make_batch("ragged")
    mined = losses.RAWLoss(reduction="none")(embeddings, labels)
    assert (mined == 0).any()
    torch.testing.assert_close(losses.RAWLoss()(embeddings, labels), mined.mean())


def test_angular_loss_normalizes_negatives_too():
    embeddings, labels = make_batch("balanced")
    lengths = torch.linspace(0.1, 10.0, len(labels), dtype=torch.float64)[:, None]
    loss = losses.AngularLoss()
    torch.testing.assert_close(loss(embeddings * lengths, labels), loss(embeddings, labels))


def test_a_learned_temperature_cannot_become_negative():
    embeddings, labels = make_batch("balanced")
    loss = losses.NTXentLoss(learn_temperature=True)
    optimizer = torch.optim.SGD(loss.parameters(), lr=1.0)
    for _ in range(5):
        optimizer.zero_grad()
        value = loss(embeddings, labels)
        value.backward()
        optimizer.step()
        assert torch.isfinite(value)
        assert loss.log_temperature.exp() >= 0.0


def test_beta_is_a_parameter_and_moves():
    embeddings, labels = make_batch("ragged")
    loss = losses.MarginLoss(num_classes=10, nu=0.1)
    assert dict(loss.named_parameters())["beta"] is loss.beta
    loss(embeddings, labels).backward()
    assert loss.beta.grad[9] != 0.1 / 10
    # a class that is not in the batch feels the penalty alone
    assert loss.beta.grad[0].item() == pytest.approx(0.01)
    fixed = losses.MarginLoss(learn_beta=False)
    assert not list(fixed.parameters())
    assert list(fixed.state_dict()) == ["beta"]


def test_options_are_not_swallowed():
    with pytest.raises(TypeError, match="has no argument gamma; it has alpha, beta, base"):
        losses.MultiSimilarityLoss(gamma=1.0)
    with pytest.raises(TypeError, match="positional"):
        losses.MultiSimilarityLoss(2.0, 50.0, 0.5, "dot")


def test_similarity_objects_take_normalize():
    embeddings, labels = make_batch("balanced")
    scaled = losses.NCALoss(similarity=SquaredEuclidean(normalize=False))
    assert scaled(2.0 * embeddings, labels) != scaled(embeddings, labels)


def test_equal_embeddings_are_not_counted_for_their_rounding():
    """References that contain the anchors: ``1 − s`` is 6e-8 for a copy, and that is zero."""
    torch.manual_seed(0)
    embeddings, labels = torch.randn(256, 64), torch.arange(256) // 4
    exact = Cosine()(embeddings.double())
    exact.fill_diagonal_(1.0)
    expected = losses.ContrastiveLoss().from_similarity(exact, Labels(labels, labels))
    for dtype in (torch.float32, torch.float64):
        value = losses.ContrastiveLoss()(embeddings.to(dtype), labels, embeddings.to(dtype), labels)
        assert value.item() == pytest.approx(expected.item(), rel=1e-5)


def test_nan_shows_in_the_value_and_breaks_nothing():
    """Where values are not looked at, a NaN must come out as a NaN: an index made of it would kill a CUDA context."""
    S = torch.eye(4)
    S[0, 1] = float("nan")
    for loss in (losses.FastAPLoss(), losses.HistogramLoss()):
        batch = PairBatch(Labels(torch.tensor([0, 0, 1, 1])), matrix=-S)
        assert evaluate_declaration(loss.declare(), batch, "none", "dense").isnan().any()


def test_soft_triplets_count_alike_however_they_are_named():
    torch.manual_seed(0)
    embeddings, labels = 40.0 * torch.randn(8, 4), torch.arange(8) // 2
    positive, negative = Labels(labels).masks()
    every = (positive[:, :, None] & negative[:, None, :]).nonzero().T
    loss = losses.TripletLoss(soft=True, similarity="dot")
    torch.testing.assert_close(loss(embeddings, labels), loss(embeddings, relation=Triplets(*every)))


def test_a_plain_attribute_is_another_default():
    class Mine(losses.TripletLoss):
        reduction = "mean"
        margin = 0.3

    assert (Mine().reduction, Mine().margin, Mine(0.2, reduction="sum").reduction) == ("mean", 0.3, "sum")
    assert (losses.TripletLoss().reduction, losses.TripletLoss().margin) == ("nonzero", 0.1)
    assert str(inspect.signature(Mine)).startswith("(margin: float = 0.3, soft: bool = False, *,")
    with pytest.raises(ValueError, match="Mine: margin must be a number"):
        Mine("wide")
    with pytest.raises(
        TypeError, match=r"Broken: reduction is an argument of the constructor, .* but it is a function"
    ):

        class Broken(losses.TripletLoss):
            def reduction(self): ...


def test_a_learned_number_is_a_tensor_and_takes_numbers():
    loss = losses.NTXentLoss(0.5, learn_temperature=True)
    assert dict(loss.named_parameters()).keys() == {"log_temperature"}
    loss.temperature.backward()
    assert loss.log_temperature.grad.item() == pytest.approx(0.5)
    loss.temperature = 0.25
    assert loss.log_temperature.exp().item() == pytest.approx(0.25)
    assert repr(loss) == "NTXentLoss(temperature=0.25, learn_temperature=True)"
    fixed = losses.NTXentLoss(0.5)
    assert (fixed.temperature, fixed.log_temperature, list(fixed.parameters())) == (0.5, None, [])
    assert repr(loss.to("meta")) == "NTXentLoss(temperature=(on meta), learn_temperature=True)"
    assert repr(Number(loss.temperature)) == "learned(on meta)"


def scale(**options: object) -> object:
    return hyper(default=2.0, help="a scale", **options)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: scale(above=0.0, at_most=1.0, learn=True),
            "is learned must have no limits, or above=0.0, but its limits are > 0 and ≤ 1",
        ),
        (lambda: scale(learn=3), "learn must be True, False or the name of an option, but it is 3"),
        (
            lambda: declare_class(PairLoss, t=scale(learn="nope")),
            "Mine: learn of t must be True, False or the name of an option that is True or False, but it is 'nope'",
        ),
        (lambda: declare_class(PairLoss, t=scale(learn="u"), u=scale()), "Mine: learn of t must be .* but it is 'u'"),
        (
            lambda: declare_class(PairLoss, t=scale(learn=True, above=0.0), log_t=scale()),
            "Mine: log_t must be the parameter of t, which is learned as its logarithm, but the class declares it",
        ),
        (
            lambda: declare_class(TripletMiner, t=scale(learn=True)),
            "Mine: t must not be learned, because a miner's choice has no gradient, but it is declared with learn=True",
        ),
        *(
            (
                lambda value=value: setattr(losses.NTXentLoss(learn_temperature=True), "temperature", value),
                f"NTXentLoss: temperature must be a number > 0, but it is {value!r}",
            )
            for value in (-0.7, float("nan"), "warm")
        ),
    ],
)
def test_a_number_that_cannot_be_learned_is_refused(make: Callable, message: str):
    with pytest.raises((TypeError, ValueError), match=message):
        make()


def declare_class(base: type, **fields: object) -> type:
    return type("Mine", (base,), {"__annotations__": dict.fromkeys(fields, float), **fields})
