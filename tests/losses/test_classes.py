"""Losses with very many proxies: in chunks they are what the dense engine says they are."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from likewise import losses
from likewise.engines import recompute
from likewise.formula import BOTH, NEGATIVES, POSITIVES, add_up, largest, logsumexp, mean, per_anchor, s, softplus
from likewise.formula.expressions import PerAnchor, PerReference
from likewise.losses import Between
from likewise.testing import loop_over
from tests.memory import GIVES_BACK, HIGH_WATER

C, D = 37, 5


class Everything(losses.ProxyLoss):
    """Every fold, a pass that needs another, numbers per sample and per proxy, several proxies of a class."""

    @property
    def proxies_per_class(self) -> int:
        return 2

    def declare(self):
        bias = PerReference("bias", lambda pair_batch: torch.linspace(0.0, 1.0, 2 * C, dtype=pair_batch.dtype))
        norm = PerAnchor("norm", lambda pair_batch: pair_batch.anchors.norm(dim=1))
        above = softplus(s - logsumexp(s, NEGATIVES) + bias)
        value = (
            add_up(above, NEGATIVES) + norm * mean(s * bias, BOTH) - largest(s * s, POSITIVES) + largest(s, NEGATIVES)
        )
        return {Between.SAMPLES_PROXIES: per_anchor(value)}


class Distances(losses.ProxyLoss):
    """A similarity that takes a common shift off first."""

    similarity = "euclidean"

    def declare(self):
        return {Between.SAMPLES_PROXIES: losses.cross_entropy(3.0 * s, s)}


MAKERS: dict[str, Callable[..., losses.ProxyLoss]] = {
    "softmax": losses.SoftmaxLoss,
    "softmax-bias": lambda *a, **o: losses.SoftmaxLoss(*a, bias=True, **o),
    "normalized": losses.NormalizedSoftmaxLoss,
    "normalized-learned": lambda *a, **o: losses.NormalizedSoftmaxLoss(*a, learn_temperature=True, **o),
    "sphere-face": losses.SphereFaceLoss,
    "large-margin": losses.LargeMarginSoftmaxLoss,
    "cos-face": losses.CosFaceLoss,
    "arc-face": losses.ArcFaceLoss,
    "sub-center": losses.SubCenterArcFaceLoss,
    "soft-triple": lambda *a, **o: losses.SoftTripleLoss(*a, centers=3, **o),
    "proxy-nca": losses.ProxyNCALoss,
    "proxy-nca-pp": losses.ProxyNCAPPLoss,
    "proxy-anchor": losses.ProxyAnchorLoss,
    "repulsion": losses.ProxyRepulsionLoss,
    "repulsion-through": lambda *a, **o: losses.ProxyRepulsionLoss(*a, through_samples=True, **o),
    "proxy-gml": losses.ProxyGMLLoss,
    "everything": Everything,
    "distances": Distances,
}


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks of two or three rows."""
    monkeypatch.setitem(recompute.BUDGET, "cpu", 1)
    monkeypatch.setattr(recompute, "LEAST_ROWS", 3)


def make(name: str, backend: str, **options: Any) -> losses.ProxyLoss:
    torch.manual_seed(1)
    loss = MAKERS[name](C, D, backend=backend, **options).double()
    with torch.no_grad():
        for parameter in loss.parameters():
            if parameter.ndim:
                parameter.normal_()
    return loss


def batch(m: int = 11) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(2)
    embeddings = torch.randn(m, D, dtype=torch.float64, generator=generator).requires_grad_()
    return embeddings, torch.randint(0, C, (m,), generator=generator)


def value_and_gradients(loss: losses.ProxyLoss) -> list[Tensor]:
    embeddings, labels = batch()
    value = loss(embeddings, labels)
    weights = torch.linspace(1.0, 2.0, value.numel(), dtype=value.dtype).reshape(value.shape)
    (value * weights).sum().backward()
    return [value.detach(), embeddings.grad, *(parameter.grad for parameter in loss.parameters())]


@pytest.mark.usefixtures("tiny")
@loop_over("reduction", ["mean", "none"])
@pytest.mark.parametrize("name", MAKERS)
def test_chunked_equals_dense(name: str, reduction: str):
    dense, chunked = (value_and_gradients(make(name, each, reduction=reduction)) for each in ("dense", "chunked"))
    assert len(dense) >= 3
    for left, right in zip(dense, chunked, strict=True):
        torch.testing.assert_close(left, right, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", MAKERS)
def test_the_matrix_is_never_whole(name: str, tiny: None, monkeypatch: pytest.MonkeyPatch):
    """Nothing with the entries of the smallest matrix that the loss looks at, m x C, is made; the table is smaller."""
    loss = make(name, "chunked")
    generator = torch.Generator().manual_seed(2)
    m = 301
    embeddings = torch.randn(m, D, dtype=torch.float64, generator=generator).requires_grad_()
    labels = torch.randint(0, C, (m,), generator=generator)
    monkeypatch.setattr(recompute, "LEAST_ROWS", 2)
    largest_made = [0]

    class Watch(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            result = function(*args, **(kwargs or {}))
            for each in result if isinstance(result, tuple | list) else [result]:
                if isinstance(each, Tensor):
                    largest_made[0] = max(largest_made[0], each.numel())
            return result

    with Watch():
        loss(embeddings, labels).backward()
    rows = 2 * loss.proxies_per_class
    bound = max(m * rows, m * D * loss.proxies_per_class, len(loss.proxies) * max(D, 8))
    if name == "repulsion-through":
        bound = m * C  # proxies are compared by way of the batch: what stands for one is its cosine with every sample
    assert largest_made[0] <= bound, (largest_made[0], bound)


@pytest.mark.usefixtures("tiny")
@loop_over("name", [name for name in MAKERS if name not in ("everything",)])
def test_classify_is_the_argmax_of_the_logits(name: str):
    loss = make(name, "auto")
    embeddings, _ = batch(23)
    assert torch.equal(loss.classify(embeddings), loss.logits(embeddings).argmax(dim=1))


@pytest.mark.usefixtures("tiny")
def test_a_memory_of_samples_with_gaps():
    """Proxy-Anchor over a queue that is not yet full: gaps are not samples, in chunks as in one matrix."""
    results = []
    for backend in ("dense", "chunked"):
        memory = losses.CrossBatchMemory(make("proxy-anchor", backend), size=29)
        embeddings, labels = batch()
        for _ in range(2):
            value = memory(embeddings, labels)
        value.backward()
        results.append([value.detach(), embeddings.grad, memory.loss.proxies.grad])
    for left, right in zip(*results, strict=True):
        torch.testing.assert_close(left, right, rtol=1e-10, atol=1e-12)


@pytest.mark.usefixtures("tiny")
def test_backward_of_chunks_inside_autocast():
    loss = make("arc-face", "chunked").float()
    embeddings, labels = batch()
    grads = []
    for enabled in (False, True):
        leaf = embeddings.detach().float().requires_grad_()
        value = loss(leaf, labels)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=enabled):
            value.backward()
        grads.append(leaf.grad)
    assert torch.equal(*grads)


@pytest.mark.usefixtures("tiny")
@loop_over("dtype", [torch.bfloat16, torch.float16])
@loop_over("name", ["arc-face", "softmax-bias", "sub-center", "proxy-anchor", "soft-triple"])
def test_half_precision_proxies(name: str, dtype: torch.dtype):
    """Computed in float32 from the rounded table, and the gradient rounded once: equal to the float32 one, rounded."""
    half = make(name, "chunked").to(dtype)
    full = make(name, "dense").to(dtype).float()
    embeddings, labels = batch()
    values = [loss(embeddings.detach().float(), labels) for loss in (half, full)]
    torch.testing.assert_close(*values, rtol=1e-5, atol=1e-5)
    for value in values:
        value.backward()
    for ours, theirs in zip(half.parameters(), full.parameters(), strict=True):
        assert ours.grad.dtype == dtype
        torch.testing.assert_close(
            ours.grad.float(), theirs.grad, rtol=2**-7, atol=2e-3 * theirs.grad.abs().max().item()
        )


def test_chunks_cover_the_table_and_keep_classes_together(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(recompute, "LEAST_ROWS", 1)
    for classes, together, budget in itertools.product((1, 7, 64), (1, 3), (1, 4000, 10**9)):
        monkeypatch.setitem(recompute.BUDGET, "cpu", budget)
        cut = recompute.plan_chunks(classes * together, 5, torch.zeros(1), together)
        assert [row for rows in cut for row in range(rows.start, rows.stop)] == list(range(classes * together))
        assert all((rows.stop - rows.start) % together == 0 for rows in cut)


def test_no_gradient_where_none_is_wanted(tiny: None):
    loss = make("cos-face", "chunked")
    embeddings, labels = batch()
    loss.proxies.requires_grad_(False)
    loss(embeddings, labels).backward()
    assert loss.proxies.grad is None
    loss.proxies.requires_grad_(True)
    other = embeddings.detach()
    loss(other, labels).backward()
    assert other.grad is None
    torch.testing.assert_close(loss.proxies.grad, value_and_gradients(make("cos-face", "dense"))[2])


linux = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="Linux says how much memory a process took")
PEAK = """
import torch
from likewise import losses
kind, m, classes, dtype, backend = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), getattr(torch, sys.argv[4]), sys.argv[5]
torch.set_default_dtype(dtype)  # the table is made in its dtype, not converted
small = getattr(losses, kind)(64, 16, backend=backend)
small(torch.randn(m, 16, requires_grad=True), torch.arange(m) % 64).backward()  # libraries are loaded
before = high_water()
loss = getattr(losses, kind)(classes, 16, backend=backend)
table = loss.proxies.numel() * loss.proxies.element_size() / 2**20
made = high_water()
loss(torch.randn(m, 16, requires_grad=True), torch.randint(0, classes, (m,))).backward()
stepped = high_water()
loss.classify(torch.randn(m, 16))
mib = [made - before, stepped - made, high_water() - stepped]
print(mib[0] / 2**20 - table, mib[1] / 2**20 - table, mib[2] / 2**20, table)
"""


def beyond(kind: str, m: int, classes: int, dtype: str, backend: str = "chunked") -> list[float]:
    """MiB that it takes to make a loss beyond its table, a step beyond the gradient, and to classify; and the table's."""
    environment = {**os.environ, **GIVES_BACK, "OMP_NUM_THREADS": "1"}
    arguments = [kind, str(m), str(classes), dtype, backend]
    done = subprocess.run(
        [sys.executable, "-c", HIGH_WATER + PEAK, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    return [float(each) for each in done.stdout.split()]


@linux
@pytest.mark.parametrize(("kind", "classes"), [("ArcFaceLoss", 200_000), ("ProxyAnchorLoss", 60_000)])
def test_memory_of_many_classes(kind: str, classes: int):
    """256 x 200,000 logits are 195 MiB: a dense step takes 3,130, and 440 for 60,000 classes; a chunk's budget is 32."""
    making, stepping, classifying, _ = beyond(kind, 256, classes, "float32")
    assert max(making, classifying) < 20.0, (making, classifying)
    assert stepping < 80.0, f"{stepping:.0f} MiB"


@linux
def test_half_precision_proxies_are_not_widened_as_a_whole():
    """The table in float32 would be 61 MiB more; a chunk's budget is 32, and indices of the classes are 16."""
    making, stepping, classifying, table = beyond("ArcFaceLoss", 16, 1_000_000, "bfloat16")
    assert table == pytest.approx(30.5, abs=0.1)
    assert max(making, classifying) < 30.0, (making, classifying)
    assert stepping < 75.0, f"{stepping:.0f} MiB"


class NoTable(TorchDispatchMode):
    """No operation makes a tensor as large as the table of proxies."""

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        if isinstance(result, Tensor) and not any(result.is_set_to(each) for each in args if isinstance(each, Tensor)):
            assert result.numel() < 2000 * D, function
        return result


@pytest.mark.usefixtures("tiny")
@loop_over("name", ["arc-face", "proxy-anchor"])
def test_autocast_rounds_proxies_in_chunks(name: str):
    loss = MAKERS[name](2000, D, backend="chunked")
    with torch.autocast("cpu", dtype=torch.bfloat16), NoTable():
        loss(torch.ones(3, D, dtype=torch.bfloat16), torch.tensor([1, 0, 1]))


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("backend", ["dense", "chunked"])
@pytest.mark.parametrize("name", ["arc-face", "softmax-bias", "sub-center", "proxy-anchor"])
def test_autocast_rounds_float32_proxies_for_bfloat16_embeddings(name: str, backend: str):
    """The loss of the rounded table on every engine; gradients of the table stay in float32 and are not rounded."""
    mixed, rounded = make(name, backend).float(), make(name, "dense").float()
    rounded.proxies.data = rounded.proxies.data.bfloat16().float()
    embeddings, labels = batch()
    half = embeddings.detach().bfloat16()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        value = mixed(half, labels)
    expected = rounded(half.float(), labels)
    torch.testing.assert_close(value, expected, rtol=1e-5, atol=1e-6)
    value.backward()
    expected.backward()
    assert mixed.proxies.grad.dtype == torch.float32
    torch.testing.assert_close(mixed.proxies.grad, rounded.proxies.grad, rtol=1e-4, atol=1e-6)
    with torch.autocast("cpu", dtype=torch.bfloat16):  # float32 embeddings, and other dtypes, are not rounded
        assert torch.equal(mixed(half.float(), labels), make(name, backend).float()(half.float(), labels))
    assert torch.equal(mixed(half, labels), mixed(half.float(), labels))
