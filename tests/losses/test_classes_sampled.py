"""Sampled negatives: what is drawn, how far the loss is off, and gradients of the rows that were compared alone."""

from __future__ import annotations

import copy
import math
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from likewise import losses
from likewise.engines import recompute
from likewise.formula import NEGATIVES, largest, per_anchor, s
from likewise.losses import Between
from likewise.losses.sampling import draw, number_of_classes

C, D = 40, 6

HEADS: dict[str, Any] = {
    "softmax": lambda **o: losses.SoftmaxLoss(C, D, bias=True, **o),
    "normalized": lambda **o: losses.NormalizedSoftmaxLoss(C, D, temperature=0.5, **o),
    "sphere-face": lambda **o: losses.SphereFaceLoss(C, D, **o),
    "cos-face": lambda **o: losses.CosFaceLoss(C, D, scale=4.0, **o),
    "arc-face": lambda **o: losses.ArcFaceLoss(C, D, scale=4.0, **o),
    "sub-center": lambda **o: losses.SubCenterArcFaceLoss(C, D, scale=4.0, **o),
    "soft-triple": lambda **o: losses.SoftTripleLoss(C, D, la=4.0, centers=3, tau=0.0, **o),
    "proxy-nca": lambda **o: losses.ProxyNCALoss(C, D, **o),
    "proxy-nca-pp": lambda **o: losses.ProxyNCAPPLoss(C, D, temperature=1.0, **o),
}


def make(name: str, **options: Any) -> losses.ProxyLoss:
    torch.manual_seed(3)
    loss = HEADS[name](**options).double()
    with torch.no_grad():
        for parameter in loss.parameters():
            parameter.normal_()
    return loss


def batch(m: int = 7) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(4)
    return torch.randn(m, D, dtype=torch.float64, generator=generator), torch.randint(0, C, (m,), generator=generator)


# ---------------------------------------------------------------------------------------------------- what is drawn


def test_the_classes_of_the_batch_come_first_and_the_rest_is_uniform():
    """9 of 30 classes, 3 of them the batch's: each other one is drawn with probability 6/27; 4σ of 2,000 draws."""
    generator = torch.Generator().manual_seed(0)
    labels, times = torch.tensor([5, 29, 5, 0]), torch.zeros(30)
    pairs = torch.zeros(30, 30)
    for _ in range(2000):
        chosen, positions, log_weights = draw(labels, 30, 9, generator)
        assert torch.equal(chosen, chosen.unique())
        assert torch.equal(chosen[positions], labels)
        here = torch.zeros(30).index_fill(0, chosen, 1.0)
        times += here
        pairs += here[:, None] * here[None, :]
        assert log_weights[positions].eq(0.0).all()
        torch.testing.assert_close(log_weights.exp().sum(), torch.tensor(30.0))
    own = torch.zeros(30, dtype=torch.bool).index_fill(0, labels, True)
    assert times[own].eq(2000).all()
    p = 6 / 27
    assert (times[~own] - 2000 * p).abs().max() < 4.0 * math.sqrt(2000 * p * (1 - p))
    both = p * 5 / 26  # without replacement
    off_diagonal = pairs[~own][:, ~own][~torch.eye(27, dtype=torch.bool)]
    assert (off_diagonal - 2000 * both).abs().max() < 5.0 * math.sqrt(2000 * both * (1 - both))


def test_a_generator_repeats_itself_and_is_the_only_source():
    embeddings, labels = batch()
    values = []
    for _ in range(2):
        loss = make("arc-face", sampled=12, generator=torch.Generator().manual_seed(7))
        state = torch.get_rng_state()
        values.append([loss(embeddings, labels).item() for _ in range(3)])
        assert torch.equal(torch.get_rng_state(), state)
    assert values[0] == values[1]
    assert len(set(values[0])) == 3


def test_nothing_waits_for_the_device():
    """No operation that hands a value to the host, or whose size depends on values, once nobody may look."""

    class Forbid(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            name = function.overloadpacket.__name__
            assert name not in ("_local_scalar_dense", "nonzero", "masked_select", "_unique2", "unique_dim"), name
            return function(*args, **(kwargs or {}))

    labels = torch.randint(0, 1000, (64,))
    with Forbid():
        draw(labels, 1000, 100)


def test_too_few_places_is_one_sentence_on_the_cpu():
    loss = make("cos-face", sampled=3)
    with pytest.raises(ValueError, match="sampled must be at least the number of classes of a batch, 4, but"):
        loss(torch.randn(4, D), torch.tensor([1, 2, 3, 4]))
    assert loss(torch.randn(4, D), torch.tensor([1, 2, 1, 2])).isfinite()


@pytest.mark.parametrize("backend", ["dense", "chunked"])
def test_who_finds_no_room_where_nobody_looks_is_left_out(backend: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("likewise.formula.inputs.can_read_values", lambda tensor: False)
    loss = make("cos-face", sampled=3, backend=backend, reduction="none")
    embeddings, labels = batch(9)
    assert len(labels.unique()) > 3
    value = loss(embeddings, labels)
    kept = value != 0.0
    assert len(labels[kept].unique()) == 3
    assert torch.isin(labels[~kept], labels[kept]).logical_not().all()
    loss.reduction = "mean"
    value = loss(embeddings, labels)
    value.backward()
    assert value.isfinite()
    assert loss.proxies.grad.isfinite().all()


# ------------------------------------------------------------------------------------------------------ the loss


@pytest.mark.parametrize("backend", ["dense", "chunked"])
@pytest.mark.parametrize("name", HEADS)
def test_equals_the_full_loss_on_the_classes_drawn(name: str, backend: str, monkeypatch: pytest.MonkeyPatch):
    """A loss over the 12 classes alone, relabeled; the gradient is zero elsewhere."""
    monkeypatch.setitem(recompute.BUDGET, "cpu", 1)
    monkeypatch.setattr(recompute, "LEAST_ROWS", 5)
    loss = make(name, sampled=12, generator=torch.Generator().manual_seed(9), backend=backend)
    embeddings, labels = batch()
    chosen, positions, _ = draw(labels, C, 12, torch.Generator().manual_seed(9))
    small = make(name)
    centers = small.proxies_per_class
    rows = (chosen[:, None] * centers + torch.arange(centers)).flatten()
    small.num_classes = 12
    small.proxies = torch.nn.Parameter(loss.proxies.detach()[rows].clone())
    if isinstance(getattr(small, "bias", None), Tensor):
        small.bias = torch.nn.Parameter(loss.bias.detach()[chosen].clone())
    values = loss(embeddings, labels), small(embeddings, positions)
    torch.testing.assert_close(*values, rtol=1e-10, atol=1e-12)
    for value in values:
        value.backward()
    expected = torch.zeros_like(loss.proxies).index_copy(0, rows, small.proxies.grad)
    torch.testing.assert_close(loss.proxies.grad, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", HEADS)
def test_the_sampled_loss_is_below_the_full_one_by_the_probability_left_out(name: str):
    """For every draw: full − sampled = −log(1 − P), P the full softmax's probability of the classes left out."""
    loss = make(name, sampled=12, reduction="none")
    embeddings, labels = batch()
    full = loss.eval()(embeddings, labels)
    loss.train()
    for _ in range(20):
        assert (loss(embeddings, labels) < full).all()


def test_the_gap_is_exact():
    loss = make("softmax", sampled=12, reduction="none", generator=torch.Generator().manual_seed(1))
    embeddings, labels = batch()
    chosen, _, _ = draw(labels, C, 12, torch.Generator().manual_seed(1))
    probability = torch.softmax(loss.logits(embeddings), dim=1)
    left_out = 1.0 - probability[:, chosen].sum(dim=1)
    sampled = loss(embeddings, labels)
    torch.testing.assert_close(loss.eval()(embeddings, labels) - sampled, -torch.log1p(-left_out))


@pytest.mark.parametrize("name", ["softmax", "sub-center", "proxy-nca"])
def test_the_expected_denominator_is_the_full_one(name: str):
    """The sum over negatives, averaged over 1,000 draws: within 4 standard errors."""
    plain, corrected = (make(name, sampled=14, corrected=each, reduction="none") for each in (False, True))
    full = corrected.eval()
    embeddings, labels = batch(5)
    embeddings = 0.3 * embeddings  # no class outweighs all others

    def denominator(loss: losses.ProxyLoss) -> Tensor:
        value = loss(embeddings, labels).detach()
        # the loss is log(1 + Σ/e^own), or log(Σ/e^own) where the denominator leaves the own class out
        return value.exp() if name == "proxy-nca" else value.exp() - 1.0

    target = denominator(full)
    corrected.train()
    torch.manual_seed(0)
    draws = torch.stack([denominator(corrected) for _ in range(1000)])
    error = draws.std(dim=0) / math.sqrt(1000)
    assert ((draws.mean(dim=0) - target).abs() < 4.0 * error).all()
    assert (error < 0.02 * target).all()  # a test that could not fail would be none
    without = torch.stack([denominator(plain) for _ in range(100)]).mean(dim=0)
    assert (without < 0.8 * target).all()
    # the logarithm is concave: on average the corrected loss is below the full one
    mean_loss = (draws if name == "proxy-nca" else draws + 1.0).log().mean(dim=0)
    assert (mean_loss < (target if name == "proxy-nca" else target + 1.0).log()).all()


def test_evaluation_compares_with_all():
    loss = make("arc-face", sampled=12)
    embeddings, labels = batch()
    assert loss.eval()(embeddings, labels).item() == make("arc-face")(embeddings, labels).item()


# ----------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize("sampled", [0, -0.1, 2.5, float("nan"), float("inf"), True, "half"])
def test_what_is_no_share_and_no_number(sampled: Any):
    with pytest.raises(
        ValueError, match="sampled must be a fraction of the classes, up to 1, or a whole number of them"
    ):
        losses.ArcFaceLoss(C, D, sampled=sampled)


def test_shares_and_numbers():
    assert [number_of_classes(each, 1001) for each in (1e-9, 0.5, 1, 1.0, 2, 2.0, 5000)] == [
        1,
        501,
        1001,
        1001,
        2,
        2,
        1001,
    ]


@pytest.mark.parametrize("kind", [losses.ProxyAnchorLoss, losses.ProxyRepulsionLoss, losses.ProxyGMLLoss])
def test_losses_over_all_proxies_are_not_sampled(kind: type[losses.ProxyLoss]):
    with pytest.raises(ValueError, match=f"{kind.__name__}: sampled must be None, because its .*, but it is 0.5"):
        kind(C, D, sampled=0.5)  # type: ignore[call-arg]


def test_options_that_need_sampling():
    for option in ("sparse", "corrected"):
        with pytest.raises(ValueError, match=f"{option} must be False unless sampled is given"):
            losses.ArcFaceLoss(C, D, **{option: True})
    with pytest.raises(ValueError, match="sparse must be False unless tau is 0"):
        losses.SoftTripleLoss(C, D, sampled=0.5, sparse=True)


def test_a_fold_that_cannot_be_corrected():
    class Hardest(losses.ProxyLoss):
        def declare(self):
            return {Between.SAMPLES_PROXIES: per_anchor(largest(s, NEGATIVES))}

    assert Hardest(C, D, sampled=0.5)(torch.randn(4, D), torch.arange(4)).isfinite()
    with pytest.raises(TypeError, match="corrected needs negatives in a log-sum-exp or a sum, but the loss has a max"):
        Hardest(C, D, sampled=0.5, corrected=True)(torch.randn(4, D), torch.arange(4))


# ---------------------------------------------------------------------------------------------- sparse gradients


@pytest.mark.parametrize("name", HEADS)
def test_the_sparse_gradient_is_the_dense_one(name: str):
    embeddings, labels = batch()
    grads = []
    for sparse in (False, True):
        loss = make(name, sampled=12, sparse=sparse, generator=torch.Generator().manual_seed(5))
        loss(embeddings, labels).backward()
        grads.append(loss.proxies.grad)
    assert grads[1].is_sparse
    assert grads[1]._nnz() == 12 * loss.proxies_per_class
    torch.testing.assert_close(grads[1].to_dense(), grads[0])


def three_steps(loss: losses.ProxyLoss, optimizer: torch.optim.Optimizer) -> Tensor:
    embeddings, labels = batch()
    for step in range(3):
        optimizer.zero_grad()
        loss(embeddings + 0.1 * step, labels).backward()
        optimizer.step()
    return loss.proxies.detach()


def test_sparse_adam_is_adam_where_all_rows_are_touched():
    sparse, dense = make("arc-face", sampled=1.0, sparse=True), make("arc-face")
    # they put eps on two sides of the correction of the second moment
    ours = three_steps(sparse, torch.optim.SparseAdam([sparse.proxies], lr=0.1, eps=1e-20))
    torch.testing.assert_close(ours, three_steps(dense, torch.optim.Adam([dense.proxies], lr=0.1, eps=1e-20)))


# torch's Adagrad makes sparse tensors in a way that torch warns of
@pytest.mark.filterwarnings("ignore:Sparse invariant checks are implicitly disabled")
@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.Adagrad])
def test_optimizers_without_decay_do_not_care(kind: Any):
    results = []
    for sparse in (False, True):
        loss = make("cos-face", sampled=12, sparse=sparse, generator=torch.Generator().manual_seed(5))
        results.append(three_steps(loss, kind([loss.proxies], lr=0.1)))
    torch.testing.assert_close(*results)


def test_sparse_adam_leaves_untouched_rows_and_their_moments_alone():
    loss = make("cos-face", sampled=12, sparse=True)
    before = loss.proxies.detach().clone()
    embeddings, labels = batch()
    optimizer = torch.optim.SparseAdam([loss.proxies], lr=0.1)
    loss(embeddings, labels).backward()
    touched = torch.zeros(C, dtype=torch.bool).index_fill(0, loss.proxies.grad.coalesce().indices()[0], True)
    assert int(touched.sum()) == 12
    optimizer.step()
    moved = (loss.proxies.detach() != before).any(dim=1)
    assert torch.equal(moved, touched)
    state = optimizer.state[loss.proxies]
    for moment in ("exp_avg", "exp_avg_sq"):
        assert not state[moment][~touched].any()
        assert state[moment][touched].any(dim=1).all()


def test_other_optimizers_refuse_a_sparse_gradient_aloud():
    loss = make("cos-face", sampled=12, sparse=True)
    loss(*batch()).backward()
    with pytest.raises(RuntimeError, match=r"[Ss]parse"):
        torch.optim.Adam([loss.proxies]).step()


def test_it_learns_with_sampled_negatives_and_a_sparse_optimizer():
    torch.manual_seed(0)
    centers, labels = torch.randn(30, 16), torch.arange(60) % 30
    embeddings = centers[labels] + 0.1 * torch.randn(60, 16)
    loss = losses.NormalizedSoftmaxLoss(30, 16, sampled=10, sparse=True)
    optimizer = torch.optim.SparseAdam([loss.proxies], lr=0.05)
    for step in range(150):
        some = torch.arange(6) + 6 * (step % 10)
        optimizer.zero_grad()
        loss(embeddings[some], labels[some]).backward()
        optimizer.step()
    assert (loss.classify(embeddings) == labels).all()


def test_a_sampled_loss_is_copied_and_loaded():
    loss = make("arc-face", sampled=12, sparse=True)
    twin = copy.deepcopy(loss)
    twin.load_state_dict(loss.state_dict())
    assert "sampled=12" in repr(twin)
    torch.manual_seed(1)
    first = loss(*batch()).item()
    torch.manual_seed(1)
    assert twin(*batch()).item() == first


def test_several_processes_refuse_sparse_gradients_in_words(monkeypatch: pytest.MonkeyPatch):
    """Inside DistributedDataParallel it would be "Cannot access storage of SparseTensorImpl"."""
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 2)
    loss = make("arc-face", sampled=12, sparse=True)
    with pytest.raises(ValueError, match="sparse must be False where there are several processes"):
        loss(*batch())
    loss.sparse = False
    assert loss(*batch()).isfinite()
