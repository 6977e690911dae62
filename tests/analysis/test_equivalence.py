"""The theorem of the unified view as a test: every function of similarities has a weighted pair loss with its gradient."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from likewise.analysis.catalog import catalog
from likewise.analysis.equivalence import (
    Verdict,
    equivalent_weighted_loss,
    gradient_equivalent,
    learned_elsewhere,
)
from likewise.formula import Masks
from likewise.losses import (
    ArcFaceLoss,
    BinomialDevianceLoss,
    CircleLoss,
    ContrastiveLoss,
    CosFaceLoss,
    CrossBatchMemory,
    DirectionRegularized,
    EmbeddingNorm,
    LanguageGuidance,
    Matryoshka,
    MultiSimilarityLoss,
    NormalizedSoftmaxLoss,
    NPairsLoss,
    NTXentLoss,
    ProxyAnchorLoss,
    ProxyNCALoss,
    ProxyNCAPPLoss,
    ProxyRepulsionLoss,
    RAWLoss,
    SNRContrastiveLoss,
    SoftmaxLoss,
    SoftTripleLoss,
    SphereFaceLoss,
    SupConLoss,
    TripletLoss,
    WeightedSum,
)
from likewise.miners import MultiSimilarityMiner, ValidTripletMiner
from likewise.testing import loop_over, make_batch

CATALOG = catalog()
FUNCTIONS_OF_SIMILARITIES = [name for name in CATALOG if name != "SphereFace"]
CLASSES, DIM = 10, 5


def a_network(seed: int = 0, inputs: int = 7) -> nn.Sequential:
    """Small, but one in which samples of a batch depend on each other."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        layers = [nn.Linear(inputs, 16), nn.BatchNorm1d(16), nn.GELU(), nn.Linear(16, DIM)]
        return nn.Sequential(*layers).double()


def a_batch(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    labels = make_batch("ragged").labels
    generator = torch.Generator().manual_seed(seed)
    centers = torch.randn(CLASSES, 7, generator=generator, dtype=torch.float64)
    return centers[labels] + 0.7 * torch.randn(len(labels), 7, generator=generator, dtype=torch.float64), labels


def same_gradients(loss, double, embeddings, labels, parameters, tolerance=1e-10, **options):
    """The gradients of both by the same parameters; ``None`` is zero."""
    found = []
    for each in (loss, double):
        value = each(embeddings, labels, **options).sum()
        grads = torch.autograd.grad(value, parameters, retain_graph=True, allow_unused=True)
        found.append([torch.zeros_like(p) if g is None else g for p, g in zip(parameters, grads, strict=True)])
    scale = max(1.0, *(float(grad.abs().max()) for grad in found[0]))
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(other / scale, one / scale, rtol=0.0, atol=tolerance)
    return found[0]


# ------------------------------------------------------------------------------------------------ Theorem 3.1


@loop_over("stop_gradient", [True, False])
@pytest.mark.parametrize("name", FUNCTIONS_OF_SIMILARITIES)
def test_theorem(name, stop_gradient):
    """By the embeddings, and by the parameters of a network with batch norm, to 1e-10 in float64."""
    loss, network = CATALOG[name].make(CLASSES, DIM).double(), a_network(1)
    inputs, labels = a_batch(len(name))
    embeddings = network(inputs)
    double = equivalent_weighted_loss(loss, embeddings, labels) if stop_gradient else equivalent_weighted_loss(loss)
    gradients = same_gradients(loss, double, embeddings, labels, [embeddings, *network.parameters()])
    assert gradients[0].any(), "a batch on which the loss has a gradient"


OWN = {"Margin": ["beta"], "Sigmoid": ["log_scale", "bias"], "SoftTriple": ["proxies"]}
"""What losses learn, at their defaults, by other ways than pairs of samples and proxies.

The boundary β, a scale and a bias are no pairs; the pull among SoftTriple's centers is a term on proxies alone.
"""


@pytest.mark.parametrize("name", FUNCTIONS_OF_SIMILARITIES)
def test_theorem_for_what_a_loss_learns(name):
    """Proxies get their gradient through the weights, too: of samples and proxies, and of proxies among themselves."""
    loss = CATALOG[name].make(CLASSES, DIM).double()
    embeddings, labels = make_batch("ragged", seed=2)
    elsewhere = learned_elsewhere(loss, embeddings, labels)
    assert list(elsewhere) == OWN.get(name, [])
    learned = [parameter for key, parameter in loss.named_parameters() if key not in elsewhere]
    if learned:
        embeddings.requires_grad_()
        double = equivalent_weighted_loss(loss, embeddings, labels)
        gradients = same_gradients(loss, double, embeddings, labels, learned)
        assert any(gradient.any() for gradient in gradients)


def test_a_training_with_the_double_is_the_training():
    """Twenty steps of momentum through batch norm, with the loss and with its double: the same network comes out."""
    results = []
    for make in (lambda loss: loss, equivalent_weighted_loss):
        network, loss = a_network(3), ProxyAnchorLoss(CLASSES, DIM, alpha=8.0).double()
        with torch.no_grad():
            loss.proxies.copy_(
                torch.randn(CLASSES, DIM, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
            )
        objective = make(loss)
        optimizer = torch.optim.SGD([*network.parameters(), *loss.parameters()], lr=0.1, momentum=0.9)
        for step in range(20):
            inputs, labels = a_batch(step)
            optimizer.zero_grad()
            objective(network(inputs), labels).backward()
            optimizer.step()
        results.append([*network.parameters(), loss.proxies])
    start = a_network(3)
    assert not torch.allclose(results[0][0], start[0].weight, atol=1e-2)
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize(
    "loss",
    [
        WeightedSum({NTXentLoss(): 1.0, CircleLoss(): 0.1}),
        Matryoshka(MultiSimilarityLoss(), [2, 5]),
        LanguageGuidance(RAWLoss(), torch.eye(CLASSES), weight=3.0),
        DirectionRegularized(TripletLoss(margin=1.0)),
        DirectionRegularized(MultiSimilarityLoss()),
        ProxyRepulsionLoss(CLASSES, DIM, alpha=4.0, through_samples=True),
        SphereFaceLoss(CLASSES, DIM, normalize=True),
        SoftTripleLoss(CLASSES, DIM, centers=3, tau=0.0),
        SoftmaxLoss(CLASSES, DIM),
        ArcFaceLoss(CLASSES, DIM, sampled=8).eval(),
        NTXentLoss(reduction="none"),
        SupConLoss(backend="chunked"),
        NTXentLoss(learn_temperature=True),
    ],
    ids=lambda loss: repr(loss).split("\n")[0][:50],
)
def test_theorem_for_wrappers_and_options(loss):
    loss = loss.double()
    embeddings, labels = make_batch("ragged", seed=1)
    embeddings.requires_grad_()
    parameters = [embeddings, *(p for name, p in loss.named_parameters() if "proxies" in name)]
    for double in (equivalent_weighted_loss(loss), equivalent_weighted_loss(loss, embeddings, labels)):
        same_gradients(loss, double, embeddings, labels, parameters)


def test_theorem_with_references_relations_and_a_memory():
    (x, y), (r, z) = make_batch("ragged"), make_batch("balanced", seed=1)
    x.requires_grad_()
    r.requires_grad_()
    loss = SupConLoss()
    double = equivalent_weighted_loss(loss, x, y, r, z)
    same_gradients(loss, double, x, y, [x, r], references=r, reference_labels=z)
    positive = torch.rand(15, 15, generator=torch.Generator().manual_seed(0)) < 0.3
    relation = Masks(positive, ~positive)
    same_gradients(loss, equivalent_weighted_loss(loss, x, relation=relation), x, None, [x], relation=relation)
    memory = CrossBatchMemory(loss, size=20)
    memory(r.detach(), z)
    # each call remembers the batch: the memory must be the same for both
    twin = equivalent_weighted_loss(copy.deepcopy(memory))
    same_gradients(memory, twin, x, y, [x])
    assert torch.equal(memory.references, twin.loss.references)


def test_theorem_for_a_function_of_ones_own():
    """In the distances that it is told to be a function of."""

    def spread(S, labels):
        return torch.logsumexp(S.flatten(), dim=0) - S[labels[:, None] == labels].mean()

    x, y = make_batch("ragged")
    x.requires_grad_()
    for batch in ((), (x, y)):
        double = equivalent_weighted_loss(spread, *batch, similarity="euclidean")
        units = nn.functional.normalize(x)
        S = -torch.cdist(units, units)
        gradient = torch.autograd.grad(spread(S, y), x)[0]
        torch.testing.assert_close(torch.autograd.grad(double(x, y), x)[0], gradient, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize(
    "loss",
    [
        SphereFaceLoss(CLASSES, DIM),
        NPairsLoss(l2=0.02),
        SNRContrastiveLoss(regularizer=1.0),
        WeightedSum({NTXentLoss(): 1.0, EmbeddingNorm(): 0.5}),
    ],
    ids=lambda loss: repr(loss).split("\n")[0][:40],
)
def test_what_sees_more_than_similarities_is_refused(loss):
    x, y = make_batch("ragged")
    x.requires_grad_()
    for make in (
        lambda: equivalent_weighted_loss(loss.double(), x, y),
        lambda: equivalent_weighted_loss(loss.double())(x, y),
    ):
        with pytest.raises(ValueError, match=r"\d+% of the gradient of \w+ does not pass through them") as caught:
            make()
        assert "\n" not in str(caught.value)
    # where nobody differentiates there is nothing to be refused
    assert torch.isfinite(equivalent_weighted_loss(loss.double())(x.detach(), y))


def test_weights_of_one_batch_stay():
    """Eq. 4 is linear: at another batch it has the weights of the first, and a batch of another size is refused."""
    (x, y), (r, _) = make_batch("balanced"), make_batch("balanced", seed=1)
    double = equivalent_weighted_loss(NTXentLoss(), x, y)
    assert double.fixed is not None
    units = nn.functional.normalize(r)
    expected = (double.fixed[0].derivatives * (units @ units.T)).sum()
    torch.testing.assert_close(double(r, y), expected)
    assert not gradient_equivalent(NTXentLoss(), double, r, y)
    with pytest.raises(
        ValueError, match=r"of the shapes \[\(12, 12\)\] of the fixed weights, but they have \[\(6, 6\)\]"
    ):
        double(r[:6], y[:6])


def test_the_double_is_a_module():
    """It can be copied, moved to another precision and printed; half precision goes in as for any loss."""
    x, y = make_batch("balanced")
    loss = CosFaceLoss(CLASSES, DIM)
    double = copy.deepcopy(equivalent_weighted_loss(loss, x.float(), y))
    assert [name for name, _ in double.named_parameters()] == ["loss.proxies"]
    assert "weights of one batch" in repr(double)
    assert "computed for every batch" in repr(equivalent_weighted_loss(loss))
    leaf = x.float().requires_grad_()
    expected = torch.autograd.grad(loss(leaf, y), leaf)[0]
    torch.testing.assert_close(torch.autograd.grad(double(leaf, y), leaf)[0], expected)
    assert torch.isfinite(double(x.bfloat16(), y))
    with torch.no_grad():
        assert torch.isfinite(equivalent_weighted_loss(loss)(leaf, y))


# ------------------------------------------------------------------------------------------------ Definition 3.1


def test_raw_is_multi_similarity_with_its_miner():
    verdict = gradient_equivalent(RAWLoss(), MultiSimilarityLoss(miner=MultiSimilarityMiner(0.1)))
    assert verdict
    assert verdict.factor == 1.0
    assert verdict.difference == 0.0
    assert str(verdict) == (
        "RAWLoss and MultiSimilarityLoss are gradient equivalent on 20 batches: their gradients by the embeddings differ "
        "by at most 0.0e+00 of the largest entry."
    )
    assert not gradient_equivalent(RAWLoss(), MultiSimilarityLoss())
    assert gradient_equivalent(MultiSimilarityLoss(), MultiSimilarityLoss(miner=None, reduction="mean"))


def test_proxy_nca_pp_is_a_normalized_softmax():
    """−‖x − p‖² = 2 cos − 2 on unit vectors, so its temperature is twice the softmax's; proxies are compared as well."""
    softmax, nca = NormalizedSoftmaxLoss(3, 4, temperature=0.1), ProxyNCAPPLoss(3, 4, temperature=0.2)
    assert not gradient_equivalent(softmax, nca)  # other proxies
    nca.load_state_dict(softmax.state_dict())
    verdict = gradient_equivalent(softmax, nca)
    assert verdict, str(verdict)
    assert verdict.by == "the embeddings and by proxies"
    assert not gradient_equivalent(softmax, ProxyNCAPPLoss(3, 4, temperature=0.1))


def test_proportional_gradients_are_said_to_be():
    """A sum is as many times the mean as there are units, on a batch; on batches of other sizes there is no one factor."""
    x, y = make_batch("balanced")
    verdict = gradient_equivalent(BinomialDevianceLoss(), BinomialDevianceLoss(reduction="sum"), x, y)
    assert not verdict
    assert verdict.factor == pytest.approx(12.0)
    assert "up to a factor: the gradient of BinomialDevianceLoss by the embeddings is 12 times that of" in str(verdict)
    verdict = gradient_equivalent(BinomialDevianceLoss(), BinomialDevianceLoss(reduction="sum"))
    assert verdict.factor is None
    # the opposite is no multiple
    assert gradient_equivalent(NTXentLoss(), WeightedSum({NTXentLoss(): -1.0})).factor is None
    assert gradient_equivalent(NTXentLoss(), WeightedSum({NTXentLoss(): 3.0})).factor == pytest.approx(3.0)
    assert gradient_equivalent(WeightedSum({NTXentLoss(): 0.0}), NTXentLoss()).factor is None


def test_where_two_losses_differ():
    """By hand: one pair counts for one of them and not for the other."""
    x = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]], dtype=torch.float64)
    y = torch.tensor([0, 0, 1])
    strict = ContrastiveLoss(negative_margin=0.5, reduction="sum")
    verdict = gradient_equivalent(strict, ContrastiveLoss(negative_margin=0.7, reduction="sum"), x, y)
    assert not verdict
    assert verdict.worst == 1
    assert verdict.pair is not None
    assert {verdict.pair.anchor, verdict.pair.reference} == {0, 2}
    assert verdict.pair.kind == "negative"
    assert verdict.pair.similarity == pytest.approx(0.6)
    assert verdict.pair.weights == (1.0, 0.0)
    assert str(verdict).startswith(
        "ContrastiveLoss and ContrastiveLoss are not gradient equivalent: on batch 1 of 1 the cosine between their "
        f"gradients by the embeddings is {verdict.cosine:.3f}, and their norms are "
    )
    assert str(verdict).endswith("of similarity 0.6 weighs 1 and 0.")
    first, second = (
        torch.autograd.functional.jacobian(
            lambda at, m=m: ContrastiveLoss(negative_margin=m, reduction="sum")(at, y), x
        )
        for m in (0.5, 0.7)
    )
    assert verdict.cosine == pytest.approx(float((first * second).sum() / first.norm() / second.norm()))
    assert verdict.norms == pytest.approx((float(first.norm()), float(second.norm())))


def test_losses_on_other_pairs_can_be_compared():
    """A pair loss and a proxy loss have no pair in common, and a gradient by the same embeddings."""
    verdict = gradient_equivalent(NTXentLoss(), ProxyAnchorLoss(4, 6))
    assert not verdict
    assert verdict.pair is None
    assert "cosine between their gradients" in str(verdict)
    verdict = gradient_equivalent(NTXentLoss(), Matryoshka(NTXentLoss(), [2, 6]))
    assert verdict.pair is None


def test_by_the_parameters_of_a_network():
    """The gradient through a network, one that drops units at random too; the network is left as it was."""
    inputs, labels = a_batch()
    network = nn.Sequential(a_network().float(), nn.Dropout(0.2))
    before = copy.deepcopy(network.state_dict())
    verdict = gradient_equivalent(
        RAWLoss(), MultiSimilarityLoss(miner=ValidTripletMiner(0.1)), inputs.float(), labels, network=network
    )
    assert verdict
    assert "by the network's parameters" in str(verdict)
    verdict = gradient_equivalent(RAWLoss(), NTXentLoss(), inputs, labels, network=network)
    assert not verdict
    assert verdict.pair is not None
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())
    assert all(parameter.grad is None for parameter in network.parameters())


def test_a_batch_without_gradient_says_nothing():
    x, y = make_batch("singletons")
    verdict = gradient_equivalent(NTXentLoss(), SupConLoss(), x, y)
    assert verdict
    assert verdict.batches == (1, 0)
    assert str(verdict).endswith("have no gradient by the embeddings on 1 batch, so that they cannot be compared.")


def test_losses_are_left_as_they_were():
    memory = CrossBatchMemory(NTXentLoss(), size=20)
    with torch.no_grad():  # as on any page that only looks
        verdict = gradient_equivalent(memory, NTXentLoss())
    assert isinstance(verdict, Verdict)
    assert verdict
    assert int(memory.filled) == 0
    loss = ProxyNCALoss(3, 4)
    assert gradient_equivalent(loss, copy.deepcopy(loss))
    assert loss.proxies.dtype == torch.float32
    assert loss.proxies.grad is None


def test_functions_of_ones_own_can_be_compared():
    assert gradient_equivalent(lambda S, y: S.sum(), lambda S, y: S.sum() + 1.0)
    verdict = gradient_equivalent(CircleLoss(), CircleLoss().from_similarity)
    assert verdict
    assert verdict.names == ("CircleLoss", "from_similarity")


@pytest.mark.parametrize(
    ("arguments", "options", "error", "sentence"),
    [
        ((torch.eye(3),), {}, TypeError, "labels must be given together with embeddings"),
        ((), {"network": nn.Identity()}, TypeError, "embeddings must be given together with network"),
        ((), {"batches": 0}, ValueError, "batches must be a whole number ≥ 1, but it is 0"),
        (([[1.0]], torch.tensor([0])), {}, TypeError, "embeddings must be a tensor, but it is a list"),
        ((torch.eye(3), torch.tensor([0])), {}, ValueError, "labels must have one entry for each of the 3"),
    ],
)
def test_bad_input_gets_one_sentence(arguments, options, error, sentence):
    with pytest.raises(error, match=sentence) as caught:
        gradient_equivalent(NTXentLoss(), SupConLoss(), *arguments, **options)
    assert "\n" not in str(caught.value)


def test_other_seeds_are_other_batches():
    a, b = (gradient_equivalent(NTXentLoss(), SupConLoss(), seed=seed) for seed in (0, 1))
    assert a.cosine != b.cosine
    assert a == gradient_equivalent(NTXentLoss(), SupConLoss())
