"""Checks that need a GPU: bfloat16, tiles of every size, kernels that were compiled for another batch.

``test_triton.py`` runs each check where there is a GPU; as a script, ``python -m tests.engines.triton_gpu``, it needs no
pytest.  Names of checks as arguments run these only: ``python -m tests.engines.triton_gpu numbers_per_pair tf32_is_rounded``.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from unittest import mock

import torch
from torch import Tensor, nn

from likewise import losses, miners
from likewise.engines import evaluate_declaration, positive_index
from likewise.engines.positive_index import find_positive_index
from likewise.formula import (
    NEGATIVES,
    POSITIVES,
    ClassWeighted,
    Labels,
    PairBatch,
    PerPair,
    PerReference,
    Thresholded,
    acosh,
    inner_products,
    largest,
    log,
    logsumexp,
    mean,
    multiply_columns,
    multiply_rows,
    parts,
    per_anchor,
    per_pair,
    per_triplet,
    relu,
    s,
    s_p,
    smallest,
    softplus,
    square,
    tanh,
    where,
)
from likewise.formula.similarities import Cosine, SquaredEuclidean
from likewise.losses import PairLoss

DTYPES = (torch.float32, torch.bfloat16, torch.float16)
ROUNDING = {torch.float32: 2.0**-21, torch.bfloat16: 2.0**-9, torch.float16: 2.0**-12}
"""The rounding of a gradient that is stored in a dtype."""


def batch(m: int, d: int = 64, classes: int | None = None, seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(classes or max(m // 4, 1), (m,), generator=generator)
    centers = torch.randn(int(labels.max()) + 1, d, generator=generator)
    return (centers[labels] + torch.randn(m, d, generator=generator)).cuda(), labels.cuda()


def run(
    loss: nn.Module, embeddings: Tensor, labels: Tensor, references: Tensor | None = None, theirs: Tensor | None = None
) -> list[Tensor]:
    leaves = [x.detach().clone().requires_grad_() for x in (embeddings, references) if x is not None]
    value = loss(leaves[0], labels, *([] if theirs is None else [leaves[1], theirs]))
    learned = [parameter for parameter in loss.parameters() if parameter.requires_grad]
    return [value.detach(), *torch.autograd.grad(value, [*leaves, *learned])]


def check(
    make: Callable[..., nn.Module],
    embeddings: Tensor,
    labels: Tensor,
    references: Tensor | None = None,
    theirs: Tensor | None = None,
    slack: float = ROUNDING[torch.float32],
) -> None:
    """Assert that errors are at most twice those of the dense engine, plus rounding, or plus ``slack`` for the value."""
    wide = None if references is None else references.double()
    true = run(make(backend="dense").cuda().double(), embeddings.double(), labels, wide, theirs)
    triton, dense = (
        run(make(backend=backend).cuda(), embeddings, labels, references, theirs) for backend in ("triton", "dense")
    )
    what = f"{make(backend='triton')}, {tuple(embeddings.shape)}, {embeddings.dtype}"
    compare(triton, dense, true, what, slack)


def compare(
    triton: list[Tensor], dense: list[Tensor], true: list[Tensor], what: str, slack: float = ROUNDING[torch.float32]
) -> None:
    for place, (x, y, t) in enumerate(zip(triton, dense, true, strict=True)):
        own, theirs = (float((z.double() - t).norm() / t.norm().clamp_min(1e-30)) for z in (x, y))
        limit = 2.0 * theirs + (ROUNDING[x.dtype] if place else slack)
        assert own <= limit, f"{what}: {f'gradient {place}' if place else 'value'}: {own:.2e}, dense {theirs:.2e}"


@contextmanager
def allowed(precision: str) -> Iterator[None]:
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


class Biased(PairLoss):
    """A learned value per reference."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.bias = nn.Parameter(torch.linspace(-1.0, 1.0, 300))

    def declare(self):
        bias = PerReference("bias", lambda pair_batch: self.bias[: pair_batch.shape[1]].to(pair_batch.dtype))
        return per_pair(NEGATIVES, square(s) * bias + square(bias)), per_anchor(logsumexp(s + bias, NEGATIVES))


class Guided(PairLoss):
    """A value per pair with a gradient: products of embeddings under a learned map."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.weight = nn.Parameter(torch.linspace(-0.2, 0.2, 128).view(64, 2))

    def declare(self):
        weight = self.weight
        guide = PerPair(
            "guide", lambda vectors, rows, columns: inner_products(*vectors, rows, columns), project(weight)
        )
        return (
            per_anchor(softplus(logsumexp(4.0 * s - guide, NEGATIVES) - mean(guide * s, POSITIVES))),
            per_triplet(relu(s - s_p + 0.1 * guide - 0.2 * guide.at_positive)),
        )


def project(weight: Tensor) -> Callable[[PairBatch], tuple[Tensor, Tensor]]:
    def prepare(pair_batch: PairBatch) -> tuple[Tensor, Tensor]:
        return tuple(each @ weight.to(each.dtype) for each in pair_batch.both_factors())

    return prepare


def directed(kind: type[PairLoss], **options: object) -> losses.DirectionRegularized:
    return losses.DirectionRegularized(kind(**options))


class Operations(PairLoss):
    """The operations that are spelled as device functions, over the ranges where their plain forms lose digits."""

    def declare(self):
        condition = (abs(s) < 0.1) | (s > 0.8)
        curve = tanh(3.0 * s) + log(s + 0.5) + acosh(1.0 + square(s)) + (1.1 + s) ** 1.7 + where(condition, s, 2.0)
        return per_pair(NEGATIVES, square(curve)), per_anchor(square(tanh(1e-3 * logsumexp(s, NEGATIVES))))


class HardestOnly(PairLoss):
    """Each gradient goes to one pair, which the backward pass must identify bit by bit; otherwise it is missing."""

    def declare(self):
        return per_anchor(largest(s, NEGATIVES) - smallest(s, POSITIVES))


def every_dtype_on_odd_sizes() -> None:
    for dtype in DTYPES:
        for m, d in ((1, 1), (2, 3), (17, 16), (129, 100), (257, 33)):
            embeddings, labels = batch(m, d)
            for make in (
                losses.MultiSimilarityLoss,
                partial(losses.MultiSimilarityLoss, miner=miners.MultiSimilarityMiner(0.1)),
                partial(losses.NTXentLoss, learn_temperature=True),
                partial(losses.ContrastiveLoss, 0.0, -1.0, similarity="euclidean"),
            ):
                check(make, embeddings.to(dtype), labels)


def operations_keep_their_digits() -> None:
    embeddings, labels = batch(300)
    check(Operations, embeddings, labels, slack=4e-6)


def numbers_per_reference() -> None:
    embeddings, labels = batch(300)
    for dtype in DTYPES:
        check(Biased, embeddings.to(dtype), labels)


def numbers_per_pair() -> None:
    """Kernels read them from a matrix, in the order of the batch and in that of its labels.

    A directed triplet loss expands into folds with a matrix each, for every positive of the largest class, and compiles
    them all: classes are small here.
    """
    labels = torch.arange(300, device="cuda") // 4
    embeddings, _ = batch(300)
    for make in (
        Guided,
        partial(directed, losses.MultiSimilarityLoss),
        partial(directed, losses.TripletLoss, reduction="mean"),
    ):
        check(make, embeddings, labels)


def other_reductions() -> None:
    """Few units, so that none lies within rounding of a threshold; the weights are on the device."""
    embeddings, labels = batch(129, classes=10)
    weights = torch.linspace(0.0, 2.0, 10).cuda()
    for reduction in (Thresholded(low=1.0), Thresholded(high=1.0), ClassWeighted(weights)):
        for kind in (losses.NTXentLoss, losses.MultiSimilarityLoss):
            check(partial(kind, reduction=reduction), embeddings, labels)


def the_hardest_pair_is_found_again() -> None:
    """Sizes at which folds and gradients would use different tiles, in one chunk and in several.

    Of thousands of rows a few may have two hardest pairs within rounding; a pair that is not found again is no exception.
    """
    for dtype, sizes in (
        (torch.float32, (300, 1500, 8320)),
        (torch.bfloat16, (300, 2048, 6000)),
        (torch.float16, (2048,)),
    ):
        for m in sizes:
            for similarity in ("cosine", "squared_euclidean"):
                embeddings, labels = batch(m, 200)
                embeddings = embeddings.to(dtype)
                (_, found), (_, true) = (
                    run(HardestOnly(backend=backend, similarity=similarity), inputs, labels)
                    for backend, inputs in (("triton", embeddings), ("dense", embeddings.double()))
                )
                wrong = (found.double() - true).norm(dim=1) > 0.02 * true.norm(dim=1)
                assert int(wrong.sum()) <= m // 1000, f"{dtype}, {m}, {similarity}: {int(wrong.sum())} rows are wrong"


def kernels_fit_the_next_batch() -> None:
    """Sizes that a compiled kernel is specialized for (one, a multiple of 16) and others, in turn."""
    for m in (16, 5, 1, 32, 33, 16, 5):
        for n in (16, 7, 1, 260, 64):
            anchors, labels = batch(m, 16, 3)
            references, theirs = batch(n, 16, 3, seed=1)
            found = []
            for backend in ("triton", "dense"):
                leaf = anchors.clone().requires_grad_()
                value = HardestOnly(backend=backend)(leaf, labels, references, theirs)
                value.backward()
                found.append((value.detach(), leaf.grad))
            torch.testing.assert_close(*found, rtol=1e-4, atol=1e-5)


def the_same_bits_twice() -> None:
    for m in (300, 3000):
        embeddings, labels = batch(m)
        for dtype in DTYPES:
            for make in (losses.MultiSimilarityLoss, HardestOnly):
                first, second = (run(make(backend="triton"), embeddings.to(dtype), labels) for _ in range(2))
                assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


def tf32_is_rounded() -> None:
    """At ``"high"`` as accurate as torch's TF32 products, which round; truncation would be a bias that accumulates."""
    with allowed("high"):
        for m in (128, 2048):
            embeddings, labels = batch(m, 512)
            proxies = partial(seeded, losses.ArcFaceLoss, int(labels.max()) + 1, 512)
            for make in (
                losses.MultiSimilarityLoss,
                losses.NTXentLoss,
                partial(losses.ContrastiveLoss, 0.9, 0.1),
                partial(losses.ContrastiveLoss, -5.0, -30.0, similarity=SquaredEuclidean(normalize=False)),
                partial(losses.MultiSimilarityLoss, similarity="dot", alpha=0.1, beta=0.1),
                proxies,
            ):
                # the errors of thousands of pairs cancel in the value if they have no bias
                check(make, embeddings / embeddings.norm(dim=1, keepdim=True) * 4.0, labels, slack=2e-5)


def seeded(kind: type[nn.Module], *args: object, **options: object) -> nn.Module:
    torch.manual_seed(0)
    return kind(*args, **options)


def half_precision_on_both_sides() -> None:
    """Anchors and references of one half dtype: as accurate as float32, in small batches and in chunks of either side."""
    for dtype in (torch.bfloat16, torch.float16):
        for m, n, d in ((1, 7, 3), (33, 129, 100), (300, 5000, 64), (5000, 300, 64), (2048, 2048, 128)):
            (anchors, labels), (references, theirs) = batch(m, d, 40), batch(n, d, 40, seed=1)
            anchors[m // 2] = 0.0
            references = references * 4.0 ** torch.linspace(-4, 4, n, device=references.device)[:, None]
            for make in (
                losses.MultiSimilarityLoss,
                partial(losses.NTXentLoss, 0.3, similarity="squared_euclidean"),
                partial(losses.MultiSimilarityLoss, miner=miners.MultiSimilarityMiner(0.1)),
            ):
                check(make, anchors.to(dtype), labels, references.to(dtype), theirs)
            check(partial(losses.NTXentLoss, 300.0, similarity="dot"), anchors.to(dtype), labels,
                  references.to(dtype), theirs)  # fmt: skip


def proxies_in_half_precision() -> None:
    """The batches of losses with proxies: references in the order of their labels, or proxies as anchors."""
    for dtype in (torch.bfloat16, torch.float16):
        for m, classes in ((64, 100), (700, 3000)):
            samples, labels = batch(m, 96, classes)
            proxies, everyone = batch(classes, 96, seed=3)[0], torch.arange(classes, device=labels.device)
            for loss, turned in ((losses.ArcFaceLoss(classes, 96), False), (losses.ProxyAnchorLoss(classes, 96), True)):
                ((_, declaration),) = loss.declare().items()
                found = []
                for backend, wide in (("triton", torch.float32), ("dense", torch.float32), ("dense", torch.float64)):
                    leaves = [x.to(dtype).to(wide).requires_grad_() for x in (samples, proxies)]
                    relation = Labels(everyone, labels) if turned else Labels(labels, everyone, ordered=True)
                    anchors, references = leaves[::-1] if turned else leaves
                    pair_batch = PairBatch(relation, Cosine(), anchors=anchors, references=references, half=dtype)
                    value = evaluate_declaration(declaration, pair_batch, "mean", backend)
                    gradients = torch.autograd.grad(value, leaves)
                    # losses store the gradient of half precision in half precision
                    found.append([value.detach(), *[x if wide == torch.float64 else x.to(dtype) for x in gradients]])
                compare(*found, f"{loss}, {m} samples, {dtype}")


def float32_proxies_under_autocast() -> None:
    """bfloat16 embeddings and float32 proxies: the loss of the rounded table, with a float32 gradient of the table."""
    for m, classes in ((64, 100), (700, 3000)):
        samples, labels = batch(m, 96, classes)
        for kind in (losses.ArcFaceLoss, losses.NormalizedSoftmaxLoss, losses.ProxyAnchorLoss, losses.SphereFaceLoss):
            true = seeded(kind, classes, 96, backend="dense").cuda()
            true.proxies.data = true.proxies.data.bfloat16().float()
            true = true.double()
            found = [run(true, samples.bfloat16().double(), labels)]
            for backend in ("dense", "triton"):
                loss = seeded(kind, classes, 96, backend=backend).cuda()
                with torch.autocast("cuda", dtype=torch.bfloat16):
                    found.append(run(loss, samples.bfloat16(), labels))
            assert found[-1][-1].dtype == torch.float32
            compare(found[2][:2], found[1][:2], found[0][:2], f"{loss}, {m} samples")
            # gradients by similarities enter the product as the sum of two bfloat16 matrices
            own, theirs = (float((each[2].double() - found[0][2]).norm() / found[0][2].norm()) for each in found[:0:-1])
            assert own <= 2.0 * theirs + 2.0**-18, (
                f"{loss}, {m} samples: gradient of proxies: {own:.2e}, dense {theirs:.2e}"
            )


def tables_in_chunks() -> None:
    """A table whose operand is computed in chunks, and proxies that the backward pass updates: the results of the whole."""
    from likewise.engines.triton import layout

    samples, labels = batch(700, 96, 5003)
    for kind in (losses.ArcFaceLoss, losses.SoftmaxLoss, losses.ProxyNCALoss):
        for dtype, mixed in (
            (torch.bfloat16, False),
            (torch.float16, False),
            (torch.float32, False),
            (torch.float32, True),
        ):
            made = []
            for most, fused in ((2**28, False), (2**17, False), (2**17, True)):
                loss = seeded(kind, 5003, 96, backend="triton").cuda().to(dtype)
                rule = partial(torch.optim.SGD, lr=0.125)
                optimizer = losses.OptimizerInBackward(loss, rule).optimizer if fused else rule([loss.proxies])
                leaf = samples.to(torch.bfloat16 if mixed else dtype).requires_grad_()
                with (
                    mock.patch.object(layout, "MAX_OPERAND_BYTES", most),
                    torch.autocast("cuda", torch.bfloat16, enabled=mixed),
                ):
                    value = loss(leaf, labels)
                    value.backward()
                assert (loss.proxies.grad is None) == fused
                if not fused:
                    optimizer.step()
                made.append([value.detach(), leaf.grad, loss.proxies.detach()])
            whole, *others = made
            for other in others:
                for left, right in zip(whole, other, strict=True):
                    # gradients of samples are summed over other chunks
                    torch.testing.assert_close(left, right, rtol=2.0**-7 if dtype != torch.float32 else 1e-4, atol=1e-5)


def any_memory_any_stream() -> None:
    """Unaligned rows, strides and other streams give the result of plain rows on the first stream."""
    plain, labels = batch(130, 48)
    padded = torch.zeros(130, 60, device=plain.device)
    padded[:, 3:51] = plain
    odd = torch.zeros(130 * 48 + 1, device=plain.device)[1:].view(130, 48)
    odd.copy_(plain)
    loss = losses.MultiSimilarityLoss(backend="triton")
    expected = loss(plain, labels)
    for _ in range(3):
        for embeddings in (padded[:, 3:51], odd, plain.T.contiguous().T, plain):
            torch.testing.assert_close(loss(embeddings, labels), expected)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        torch.cuda._sleep(50_000_000)
        shifted = plain * 1.0  # not computed yet when another stream launches
        for _ in range(3):
            found = loss(shifted, labels)
    torch.cuda.current_stream().wait_stream(side)
    torch.testing.assert_close(found, expected)


def as_a_cuda_graph() -> None:
    """A step that is captured and replayed on other inputs."""
    for make in (losses.MultiSimilarityLoss, losses.NTXentLoss, partial(losses.NTXentLoss, learn_temperature=True)):
        for dtype in (torch.float32, torch.bfloat16):
            loss = make(backend="triton").cuda()
            leaf, labels = batch(128, 64)[0].to(dtype).requires_grad_(), batch(128, 64)[1]
            stream = torch.cuda.Stream()
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                for _ in range(3):
                    torch.autograd.grad(loss(leaf, labels), leaf)
            torch.cuda.current_stream().wait_stream(stream)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                value = loss(leaf, labels)
                (gradient,) = torch.autograd.grad(value, leaf)
            for seed in (5, 6):
                embeddings, others = batch(128, 64, seed=seed)
                with torch.no_grad():
                    leaf.copy_(embeddings)
                    labels.copy_(others)
                graph.replay()
                again = leaf.detach().clone().requires_grad_()
                expected = loss(again, labels)
                torch.testing.assert_close(value.detach(), expected.detach())
                torch.testing.assert_close(gradient, torch.autograd.grad(expected, again)[0])


def on_another_device() -> None:
    """Tensors on a device that is not the current one; with one GPU there is nothing to check."""
    for index in range(1, torch.cuda.device_count()):
        for m in (128, 1200):
            for dtype in DTYPES:
                embeddings, labels = batch(m)
                here = run(losses.MultiSimilarityLoss(backend="triton"), embeddings.to(dtype), labels)
                for _ in range(2):
                    there = run(
                        losses.MultiSimilarityLoss(backend="triton"), embeddings.to(dtype).to(index), labels.to(index)
                    )
                    assert all(each.device.index == index for each in there)
                    assert torch.cuda.current_device() == 0
                    for a, b in zip(here, there, strict=True):
                        torch.testing.assert_close(a, b.to(a.device))


def products_in_parts() -> None:
    """float32 products and gradients as sums of bfloat16 parts are as exact as torch's products."""
    left, right = (nn.functional.normalize(batch(size, 2048, seed=size)[0]) for size in (4608, 8192))
    weights = torch.randn(4608, 8192, device="cuda")
    for found, plain, exact in (
        (multiply_rows(left, right), left @ right.T, left.double() @ right.double().T),
        (multiply_columns(weights, left), weights.T @ left, weights.double().T @ left.double()),
    ):
        own, theirs = (float((each.double() - exact).norm() / exact.norm()) for each in (found, plain))
        assert not torch.equal(found, plain), "it is torch's product"
        assert own <= 1.5 * theirs, f"{tuple(found.shape)}: {own:.2e}, torch {theirs:.2e}"
    embeddings, labels = batch(4608, 512, 1000)
    heads = {"num_classes": 4096, "embedding_dim": 512}
    for kind in (
        losses.MultiSimilarityLoss,
        losses.SNRContrastiveLoss,
        losses.FastAPLoss,
        losses.TripletLoss,
        losses.LiftedStructureLoss,
        partial(seeded, losses.ArcFaceLoss, **heads),
        partial(seeded, losses.ProxyAnchorLoss, **heads),
        partial(seeded, losses.SubCenterArcFaceLoss, **heads),
        partial(seeded, losses.SoftTripleLoss, **heads),
    ):
        true = run(kind(backend="chunked").cuda().double(), embeddings.double(), labels)
        with mock.patch.object(parts, "LEAST_MULTIPLICATIONS", 2**60):
            plain = run(kind(backend="chunked").cuda(), embeddings, labels)
        for backend in ("auto", "triton", "chunked"):
            found = run(kind(backend=backend).cuda(), embeddings, labels)
            compare(found, plain, true, f"{kind(backend=backend)}, {backend}", slack=2.0**-20)
    copies = embeddings[:1].repeat(4608, 1)
    for backend in ("auto", "chunked", "dense"):
        apart = losses.ContrastiveLoss(0.0, 1.0, similarity="euclidean", backend=backend)(copies, labels * 0)
        assert apart == 0.0, f"{backend}: equal embeddings are {float(apart):.1e} apart"


def positives_are_found() -> None:
    """Comparing labels gives the index that sorting them gives."""
    generator = torch.Generator().manual_seed(0)
    for labels in (
        torch.arange(8192)[torch.randperm(8192, generator=generator)] // 4,
        torch.randint(3000, (5001,), generator=generator),
        torch.randint(3000, (777,), generator=generator, dtype=torch.int32),
        torch.arange(100) // 50,
    ):
        batch_of = PairBatch(Labels(labels.cuda()), anchors=torch.zeros(len(labels), 2, device="cuda"))
        found = find_positive_index(batch_of, large=True)
        with mock.patch.object(positive_index, "COMPARE_UP_TO", 0):
            expected = find_positive_index(batch_of, large=True)
        if found is None or expected is None:
            assert found is expected
            continue
        assert (found.exists is None) == (expected.exists is None)
        assert torch.equal(found.mask, expected.mask)
        assert torch.equal(found.index[found.mask], expected.index[expected.mask])


CHECKS = (
    every_dtype_on_odd_sizes,
    operations_keep_their_digits,
    numbers_per_reference,
    numbers_per_pair,
    other_reductions,
    the_hardest_pair_is_found_again,
    kernels_fit_the_next_batch,
    the_same_bits_twice,
    products_in_parts,
    positives_are_found,
    tf32_is_rounded,
    half_precision_on_both_sides,
    proxies_in_half_precision,
    float32_proxies_under_autocast,
    tables_in_chunks,
    any_memory_any_stream,
    as_a_cuda_graph,
    on_another_device,
)


def main(names: list[str]) -> int:
    """Run the named checks, or all, print a line for each with its seconds, and return how many failed."""
    known = {task.__name__: task for task in CHECKS}
    unknown = [name for name in names if name not in known]
    if unknown:
        print(f"checks must be among {', '.join(known)}, but {', '.join(unknown)} is given", file=sys.stderr)
        return 2
    failed = 0
    for name in names or known:
        begin = time.perf_counter()
        try:
            known[name]()
            verdict = "right"
        except Exception as error:
            failed += 1
            verdict = f"{type(error).__name__}: {error}"
        print(f"{name}: {verdict} ({time.perf_counter() - begin:.1f} s)", flush=True)
    return failed


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
