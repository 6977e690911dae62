"""Batches of all kinds: odd sizes, any labels and relations, rows of zeros, huge and tiny numbers, any strides."""

from __future__ import annotations

import dataclasses
from functools import partial

import pytest
import torch
from torch import Tensor

from likewise import losses, miners
from likewise.engines.triton.tile_source import KernelSpec, Pairing, Tiles, choose_indent, write_head
from likewise.formula import (
    BOTH,
    NEGATIVES,
    POSITIVES,
    Labels,
    Masks,
    Pairs,
    Triplets,
    add_up,
    count,
    largest,
    logsumexp,
    mean,
    per_anchor,
    per_pair,
    relu,
    s,
    smallest,
)
from tests.engines.triton_common import WAYS, batch, check, declare_loss, engine, kernels, run, take

BY_SIDE = per_anchor(
    logsumexp(3.0 * s, NEGATIVES) - mean(s, POSITIVES) + 0.1 * add_up(relu(s + 1.0), BOTH) + largest(s, NEGATIVES)
)
"""A loss with folds over every side."""


@pytest.mark.parametrize(("m", "n", "d"), [(1, 1, 1), (1, 2, 3), (17, 33, 1), (33, 5, 17), (16, 32, 16)])
def test_odd_sizes(m: int, n: int, d: int, monkeypatch: pytest.MonkeyPatch) -> None:
    (anchors, labels), (references, theirs) = batch(m, d, 4, seed=m), batch(n, d, 4, seed=n)
    for way in WAYS:
        take(monkeypatch, way)
        check(partial(declare_loss, BY_SIDE), [anchors, references], labels, reference_labels=theirs)


@pytest.mark.parametrize("m", [2, 33])
def test_odd_batches(m: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for way in WAYS:
        take(monkeypatch, way)
        check(partial(declare_loss, BY_SIDE), *batch(m, 3, 2))


def test_shapes_as_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tiles that GPUs use, both deeper than the embeddings and not."""
    take(monkeypatch, "general")
    monkeypatch.setattr(engine, "TRIANGLE_STATE_BYTES", 2**28)
    for shape in (
        kernels.SMALL_SHAPE,
        *[kernels.TileShape(*size, 4, 3) for size in ((32, 64, 64), (64, 32, 32), (32, 32, 16))],
        kernels.TileShape(32, 32, 16, 4, 3, programs=2, chunks=2),
    ):
        monkeypatch.setattr(kernels, "SMALL_SHAPE", shape)
        check(partial(declare_loss, BY_SIDE), *batch(37, 70))


def test_largest_and_smallest_find_their_pair_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """With other tiles in the backward pass, products differ in the last bit; for a maximum they must not."""
    term = per_anchor(largest(s, NEGATIVES) - smallest(s, POSITIVES))
    choose_tiles = kernels.Operands.choose_tiles

    def by_purpose(self: kernels.Operands, m: int, n: int, large) -> kernels.TileShape:
        shape = choose_tiles(self, m, n, large)
        depth = 64 if (large is kernels.FOLD_SHAPES) == (m >= 19) else 16
        return dataclasses.replace(shape, depth=depth)

    monkeypatch.setattr(kernels.Operands, "choose_tiles", by_purpose)
    for way in WAYS:
        take(monkeypatch, way)
        embeddings, labels = batch(34 if way != "general" else 19, 70)
        check(partial(declare_loss, term), embeddings, labels)


# ------------------------------------------------------------------------------------------------ relations


def relations() -> dict[str, object]:
    labels, theirs = batch(19)[1], batch(21, seed=1)[1]
    generator = torch.Generator().manual_seed(0)
    same = labels[:, None] == theirs[None, :]
    some = torch.rand(same.shape, generator=generator) < 0.6
    anchors, positives = (same & some).nonzero(as_tuple=True)
    negative_anchors, negatives = (~same & some).nonzero(as_tuple=True)
    rows = torch.randint(19, (60,), generator=generator)
    triplets = [torch.randint(21, (60,), generator=generator) for _ in range(2)]
    own = torch.where(torch.arange(19) % 3 == 0, -1, torch.arange(19))
    valid = torch.arange(21) % 5 != 2
    return {
        "masks": Masks(same & some, ~same & some),
        "empty": Masks(torch.zeros_like(same), torch.zeros_like(same)),
        "pairs": Pairs(anchors, positives, negative_anchors, negatives),
        # some pairs are positive in one triplet and negative in another
        "triplets": Triplets(rows, *triplets),
        "triplets with gaps": Triplets(rows, *triplets, valid=torch.arange(60) % 4 != 1),
        "own": Labels(labels, theirs, own=own),
        "valid": Labels(labels, theirs, valid=valid),
        "own and valid": Labels(labels, theirs, own=own, valid=valid),
        "none valid": Labels(labels, theirs, valid=torch.zeros(21, dtype=torch.bool)),
        "ordered": Labels(labels, theirs.sort().values, ordered=True),
    }


@pytest.mark.parametrize("name", relations())
def test_every_relation(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tensors = [batch(19)[0], batch(21, seed=1)[0]]
    miner = miners.MultiSimilarityMiner(0.3)
    for way, choice in (("general", None), ("sorted", miner)):
        take(monkeypatch, way)
        check(partial(declare_loss, BY_SIDE, miner=choice), tensors, relation=relations()[name])


def test_a_relation_of_a_batch_to_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Explicit pairs need not be symmetric."""
    embeddings, labels = batch(19)
    positive, negative = Labels(labels).masks()
    odd = torch.rand(19, 19, generator=torch.Generator().manual_seed(0)) < 0.5
    for way in ("general", "sorted"):
        take(monkeypatch, way)
        check(partial(declare_loss, BY_SIDE), embeddings, relation=Masks(positive & odd, negative & odd))
        check(partial(declare_loss, BY_SIDE), embeddings.half(), relation=Masks(positive & odd, negative & odd))


WIDTHS = (torch.int8, torch.int64, torch.uint16)


@pytest.mark.parametrize("dtype", WIDTHS)
def test_labels_of_every_width(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    embeddings, labels = batch(19)
    most = torch.iinfo(dtype).max
    shifted = (labels + (most - 8)).to(dtype)
    take(monkeypatch, WAYS[WIDTHS.index(dtype) % len(WAYS)])
    expected = run(declare_loss(BY_SIDE, backend="triton"), [embeddings], labels)
    found = run(declare_loss(BY_SIDE, backend="triton"), [embeddings], shifted)
    assert all(torch.equal(a, b) for a, b in zip(expected, found, strict=True))


def test_labels_that_differ_beyond_32_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    embeddings, labels = batch(34)
    references, theirs = batch(19, seed=1)
    far = torch.tensor([0, 2**32, -(2**32), 2**40, 1, 2**63 - 1, -(2**63), -1])
    for way in WAYS:
        take(monkeypatch, way)
        if way != "general":
            check(partial(declare_loss, BY_SIDE), embeddings, far[labels])
        else:
            check(partial(declare_loss, BY_SIDE), [references, embeddings], far[theirs], reference_labels=far[labels])


EMPTY_SIDES = {
    "one class": torch.zeros(34, dtype=torch.long),
    "all different": torch.arange(34),
    "one alone": (torch.arange(34) == 5).long(),
}


@pytest.mark.parametrize("labels", EMPTY_SIDES)
def test_empty_sides_are_finite(labels: str, monkeypatch: pytest.MonkeyPatch) -> None:
    embeddings = batch(34)[0]
    for way in WAYS:
        take(monkeypatch, way)
        make = losses.NTXentLoss if way == "general" else partial(declare_loss, BY_SIDE)
        check(partial(make, reduction="nonzero"), embeddings, EMPTY_SIDES[labels])
    check(partial(losses.TripletLoss, miner=miners.BatchHardMiner()), embeddings[:19], EMPTY_SIDES[labels][:19])


# ------------------------------------------------------------------------------------------------ numbers


def test_ties_share_their_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    """On paper: three references with the same similarity get a third of the gradient each, a fourth gets none."""
    anchor = torch.tensor([[1.0, 0.0]])
    references = torch.tensor([[0.6, 0.8], [0.8, 0.6], [0.8, 0.6], [0.0, 1.0], [0.8, 0.6]])
    labels, theirs = torch.tensor([0]), torch.tensor([1, 2, 3, 4, 5])
    term = per_anchor(largest(s, NEGATIVES), needs=(NEGATIVES,))
    for way in WAYS:
        take(monkeypatch, way)
        loss = declare_loss(term, backend="triton", similarity="dot")
        leaf = references.clone().requires_grad_()
        loss(anchor, labels, leaf, theirs).backward()
        expected = torch.zeros(5, 2)
        expected[[1, 2, 4], 0] = 1.0 / 3.0
        torch.testing.assert_close(leaf.grad, expected)


def test_ties_across_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every embedding occurs three times, in different tiles."""
    embeddings, labels = batch(13, 7)
    embeddings, labels = embeddings.repeat(3, 1), torch.cat([labels, labels + 1, labels])
    term = per_anchor(largest(s, NEGATIVES) - smallest(s, POSITIVES))
    for way in WAYS:
        take(monkeypatch, way)
        check(partial(declare_loss, term), embeddings.half() if way == "general" else embeddings, labels)


@pytest.mark.parametrize("similarity", ["cosine", "euclidean", "squared_euclidean", "snr", "dot"])
def test_duplicates_and_rows_of_zeros(similarity: str, monkeypatch: pytest.MonkeyPatch) -> None:
    embeddings, labels = batch(19, 70)
    embeddings[3] = embeddings[4] = embeddings[17]
    embeddings[[0, 9]] = 0.0
    make = partial(losses.MultiSimilarityLoss, similarity=similarity)
    half = similarity in ("cosine", "euclidean")
    take(monkeypatch, "sorted" if half else "general")
    check(make, embeddings, labels)
    if half:
        take(monkeypatch, "general")
        check(make, embeddings.half(), labels)


@pytest.mark.parametrize("kind", ["mixed", "subnormal"])
def test_rows_of_any_length(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cosine does not depend on norms: it neither overflows nor vanishes, and the gradient scales with the inverse norm."""
    embeddings, labels = batch(19)
    if kind == "mixed":
        embeddings = embeddings * 10.0 ** torch.linspace(-30, 30, 19)[:, None]
    if kind == "subnormal":  # float32 cannot represent their direction
        embeddings[::2] *= 1e-39
    loss = losses.MultiSimilarityLoss(backend="triton")
    for way in WAYS:
        take(monkeypatch, way)
        value, gradient = run(loss, [embeddings], labels)
        dense_value, dense_gradient = run(losses.MultiSimilarityLoss(backend="dense"), [embeddings], labels)
        torch.testing.assert_close(value, dense_value)
        # a huge row has a tiny gradient, so each row is compared separately
        scale = dense_gradient.abs().amax(dim=1, keepdim=True).clamp_min(1e-37)
        torch.testing.assert_close(gradient / scale, dense_gradient / scale, rtol=1e-4, atol=1e-5)


def test_float16_to_its_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    embeddings, labels = batch(19)
    embeddings = embeddings / embeddings.abs().amax(dim=1, keepdim=True)
    lengths = torch.cat([torch.full((6, 1), 65504.0), torch.full((6, 1), 6e-5), torch.full((7, 1), 1.0)])
    for way in WAYS:
        take(monkeypatch, way)
        check(partial(losses.NTXentLoss, 0.5), (embeddings * lengths).half(), labels)


# ------------------------------------------------------------------------------------------------ memory layouts


def layouts() -> dict[str, Tensor]:
    plain = batch(19, 6)[0]
    wide = torch.zeros(19, 14)
    wide[:, 1::2] = torch.cat([plain, plain[:, :1]], dim=1)
    odd = torch.zeros(19 * 6 + 1)[1:].view(19, 6)
    odd.copy_(plain)
    padded = torch.zeros(19, 9)
    padded[:, 2:8] = plain
    return {
        "transposed": plain.T.contiguous().T,
        "columns of a matrix": padded[:, 2:8],
        "every second column": wide[:, 1::2][:, :6],
        "every second row": plain.repeat_interleave(2, dim=0)[::2],
        "unaligned": odd,
    }


@pytest.mark.parametrize("name", layouts())
def test_any_strides(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plain, labels = batch(19, 6)
    similarity = "dot" if name in ("transposed", "unaligned") else "cosine"  # the latter reads norms, too
    take(monkeypatch, WAYS[list(layouts()).index(name) % len(WAYS)])
    results = []
    for embeddings in (plain, layouts()[name]):
        leaf = embeddings.detach().requires_grad_()
        value = declare_loss(BY_SIDE, backend="triton", similarity=similarity)(leaf, labels)
        value.backward()
        results.append((value.detach(), leaf.grad))
    torch.testing.assert_close(*results, rtol=0.0, atol=0.0)


def test_one_row_expanded(monkeypatch: pytest.MonkeyPatch) -> None:
    """All embeddings are the same: every similarity is one, and normalization leaves no gradient."""
    one = torch.tensor([[3.0, 4.0, 0.0]], requires_grad=True)
    labels = torch.arange(19) % 4
    for way in WAYS:
        take(monkeypatch, way)
        value = declare_loss(per_pair(NEGATIVES, s), backend="triton")(one.expand(19, 3), labels)
        value.backward()
        assert value.item() == pytest.approx(1.0)
        assert one.grad.abs().max() < 1e-5
        one.grad = None


def test_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts are exact integers on both paths."""
    embeddings, labels = batch(34)
    same = labels[:, None] == labels
    for way in ("general", "sorted"):
        take(monkeypatch, way)
        term = per_anchor(1.0 * count(NEGATIVES) + 100.0 * count(POSITIVES) + 0.0 * add_up(s, BOTH), needs=())
        values = declare_loss(term, backend="triton", reduction="none")(embeddings, labels)
        assert values.tolist() == ((~same).sum(dim=1) + 100 * (same.sum(dim=1) - 1)).tolist()


VISIT = "tl.store(out + i * column_tiles + j, 1.0 + tl.load(out + i * column_tiles + j))"


@pytest.mark.parametrize("upper", [False, True])
def test_mixed_tiles_are_visited_once(upper: bool) -> None:
    """Every tile that has a label of both sides, or that crosses the edge of the matrix, and no other."""
    spec = KernelSpec((), s, None, Pairing(), scaled=False)
    lines = write_head(spec, Tiles.MIXED, "visit", triangular=upper)
    generator = torch.Generator().manual_seed(0)
    for classes in (1, 2, 9, 60):
        for m, n in ((1, 1), (16, 64), (37, 64), (64, 70), (70, 70)):
            n, columns = (m, 0) if upper else (n, 16 if n > 16 else 0)
            labels, theirs = (torch.randint(classes, (k,), generator=generator).sort()[0] for k in (m, n))
            theirs = labels if upper else theirs
            rows_of, columns_of = list(labels.split(16)), list(theirs[columns:].split(16))
            expected = torch.tensor(
                [
                    [
                        not (upper and j < i) and (
                            len(row) < 16 or len(column) < 16 or bool((column[-1] >= row[0]) & (column[0] <= row[-1]))
                        )
                        for j, column in enumerate(columns_of)
                    ]
                    for i, row in enumerate(rows_of)
                ]
            )  # fmt: skip
            visits, empty = torch.zeros(len(rows_of), len(columns_of)), torch.zeros(max(m, n), 16)
            kernel = kernels.compile_source("\n".join([*lines, choose_indent(Tiles.MIXED) + VISIT]) + "\n")
            pointers = [empty, empty, empty, empty, labels, theirs, *[empty] * 4, visits, empty, empty]
            sizes = [0, m, columns, n, n, 1]
            constants = [16, 16, 16, 16, kernels.GROUP, "ieee", 1, 1, False, False]
            kernels.launch(kernel, 1, [*pointers, *sizes, *constants], empty.device)
            assert torch.equal(visits, expected.float()), (classes, m, n)
