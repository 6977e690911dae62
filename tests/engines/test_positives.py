"""Folds over each positive, on every engine, against loops over anchors, positives and references in float64."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor, nn

from likewise import engines, losses
from likewise.engines import ChunkedEngine, DenseEngine, run
from likewise.engines.chunked import plan_rows
from likewise.engines.indexed import IndexedMatrix
from likewise.engines.positive_index import find_positive_index
from likewise.formula import (
    BOTH,
    EACH_POSITIVE,
    NEGATIVES,
    POSITIVES,
    Cosine,
    Formula,
    Labels,
    Masks,
    Mined,
    Number,
    PairBatch,
    PerAnchor,
    PerReference,
    Rank,
    Relation,
    Side,
    Term,
    add_up,
    at_least,
    count,
    largest,
    logsumexp,
    mean,
    mean_over_batch,
    per_anchor,
    relu,
    s,
    s_p,
    sigmoid,
    smallest,
    softplus,
    where,
)
from likewise.losses import PairLoss
from likewise.miners import BatchHardMiner, SemiHardMiner, TripletMiner
from likewise.testing import loop_over

DISPATCH, RECOMPUTE = (sys.modules[f"likewise.engines.{name}"] for name in ("dispatch", "recompute"))

LABELS = torch.tensor([0, 1, 0, 2, 1, 0, 1, 2, 3])
"""Classes of three, two and one: the last anchor has no positive."""


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four rows at a time; nine anchors are enough to index their positives."""
    monkeypatch.setattr(RECOMPUTE, "LEAST_ROWS", 4)
    monkeypatch.setattr(RECOMPUTE, "BUDGET", {"cpu": 1, "cuda": 1})
    monkeypatch.setattr(DISPATCH, "INDEX_FROM", 1)


def embed(m: int, seed: int = 0, d: int = 4) -> Tensor:
    return torch.randn(m, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def masks_of(labels: Tensor) -> Masks:
    """The same pairs, without the positions of positives."""
    return Masks(*Labels(labels).masks())


def by_masks(relation: Labels | Masks) -> Masks:
    return relation if isinstance(relation, Masks) else Masks(*relation.masks())


# ------------------------------------------------------------------------------------------------ plain loops


def fold_list(name: str, values: list[Tensor]) -> Tensor:
    """A fold of a list, empty or not."""
    if not values:
        return torch.tensor({"max": -torch.inf, "logsumexp": -torch.inf}.get(name, 0.0), dtype=torch.float64)
    row = torch.stack(values)
    if name == "mean":
        return row.sum() / len(values)
    return {"sum": row.sum(), "count": row.sum(), "max": row.amax(), "logsumexp": row.exp().sum().log()}[name]


Curve = Callable[[Tensor, Tensor], Tensor]


def loop(S: Tensor, relation: Masks, outer: str, inner: str, over: Side, curve: Curve) -> Tensor:
    """One number per anchor: for each positive a fold over a side, then a fold over positives."""
    sides = {POSITIVES: relation.positive, NEGATIVES: relation.negative, BOTH: relation.positive | relation.negative}
    rows = []
    for a in range(len(S)):
        references = sides[over][a].nonzero()[:, 0].tolist()
        positives = relation.positive[a].nonzero()[:, 0].tolist()
        rows.append(
            fold_list(outer, [fold_list(inner, [curve(S[a, j], S[a, p]) for j in references]) for p in positives])
        )
    return torch.stack(rows)


def unit_products(anchors: Tensor, references: Tensor | None = None) -> Tensor:
    left = nn.functional.normalize(anchors)
    return left @ (left if references is None else nn.functional.normalize(references)).T


FOLDS: dict[str, Callable[[Formula, Side], Formula]] = {
    "sum": add_up,
    "mean": mean,
    "max": largest,
    "logsumexp": logsumexp,
    "count": lambda condition, over: count(over, condition),
}

CURVES: dict[str, tuple[Formula, Curve]] = {
    "hinge": (relu(s - s_p + 0.1), lambda n, p: torch.relu(n - p + 0.1)),
    "softplus": (softplus(3.0 * (s - s_p)), lambda n, p: nn.functional.softplus(3.0 * (n - p))),
    "sigmoid": (sigmoid((s - s_p) / 0.2), lambda n, p: torch.sigmoid((n - p) / 0.2)),
    "step": (where(s_p < s + 0.05, 1.0, 0.0), lambda n, p: (p < n + 0.05).double()),
}
CONDITION = s_p < s + 0.05, CURVES["step"][1]


# ------------------------------------------------------------------------------------------------ engines

WAYS = [
    ("dense", Labels),  # few positives, expanded
    ("chunked", Labels),
    ("auto", Labels),  # expanded, positives known by index
    ("dense", masks_of),  # general
    ("chunked", masks_of),
    ("auto", masks_of),
]


def as_term(formula: Formula) -> Term:
    return Term(formula, count(POSITIVES), count(POSITIVES))


def evaluate_on(formula: Formula, batch: PairBatch, backend: str) -> Tensor:
    """One number per anchor."""
    return run([as_term(formula)], batch, "sum", backend)[0].total


def outcome(value: Tensor, inputs: list[Tensor], rows: Tensor) -> list[Tensor]:
    """The value for some anchors and its gradient, with another weight for each anchor."""
    kept = value[rows].double()
    if not kept.requires_grad:
        return [kept, *(torch.zeros_like(each) for each in inputs)]
    weights = torch.linspace(0.5, 1.5, len(kept), dtype=torch.float64)
    gradients = torch.autograd.grad((kept * weights).sum(), inputs, allow_unused=True)
    filled = [torch.zeros_like(x) if g is None else g for x, g in zip(inputs, gradients, strict=True)]
    return [kept.detach(), *filled]


def test_these_are_different_ways() -> None:
    """Expanded or general, on the matrix, in three chunks, and with positives known by index."""
    known, unknown = (PairBatch(relate(LABELS), Cosine(), anchors=embed(9)) for relate in (Labels, masks_of))
    assert find_positive_index(known, large=False) is not None
    assert find_positive_index(unknown, large=False) is None
    assert len(plan_rows(known)) == 3
    kinds = [
        type(DISPATCH.make_engine(known, DISPATCH.choose(known, backend))) for backend in ("dense", "chunked", "auto")
    ]
    assert kinds == [DenseEngine, ChunkedEngine, IndexedMatrix]


@pytest.mark.parametrize("over", [NEGATIVES, POSITIVES, BOTH], ids=lambda side: side.value)
@pytest.mark.parametrize("inner", FOLDS)
@pytest.mark.parametrize(
    "outer", ["mean", "max"]
)  # one that expands and one that does not; sum is in the formulas below
def test_every_fold_of_every_fold_is_what_loops_give(outer: str, inner: str, over: Side) -> None:
    embeddings, there = embed(9), torch.arange(8)
    for formula, curve in [CONDITION] if inner == "count" else CURVES.values():
        folded = FOLDS[outer](FOLDS[inner](formula, over), EACH_POSITIVE)
        leaf = embeddings.clone().requires_grad_()
        expected = outcome(loop(unit_products(leaf), masks_of(LABELS), outer, inner, over, curve), [leaf], there)
        for backend, relate in WAYS:
            leaf = embeddings.clone().requires_grad_()
            value = evaluate_on(folded, PairBatch(relate(LABELS), Cosine(), anchors=leaf), backend)
            # a step is a number without a dtype, which torch takes as float32
            tolerance = 1e-6 if formula.rank is Rank.PAIR and formula in (CURVES["step"][0], CONDITION[0]) else 1e-10
            torch.testing.assert_close(outcome(value, [leaf], there), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(("backend", "relate"), WAYS)
@loop_over("outer", ["sum", "mean", "max", "logsumexp", "min", "count"])
def test_an_anchor_without_positives_gets_the_identity(outer: str, backend: str, relate: Callable) -> None:
    folds = {**FOLDS, "min": smallest}
    hinges = add_up(relu(s - s_p + 0.1), NEGATIVES)
    value = folds[outer](hinges > 0.0 if outer == "count" else hinges, EACH_POSITIVE)
    found = evaluate_on(value, PairBatch(relate(LABELS), Cosine(), anchors=embed(9)), backend)[8].item()
    if outer == "logsumexp":
        assert found < -1e38
    else:
        assert found == {"max": -torch.inf, "min": torch.inf}.get(outer, 0.0)


@pytest.mark.parametrize(("backend", "relate"), WAYS)
def test_folds_of_what_no_fold_is_inside_of(backend: str, relate: Callable) -> None:
    """Folds of the positive's similarity itself, of a constant, and the number of positives."""
    batch = PairBatch(relate(LABELS), Cosine(), anchors=embed(9))
    for fold in (add_up, mean, largest, smallest, logsumexp):
        expected = evaluate_on(fold(2.0 * s, POSITIVES), batch, "dense")
        torch.testing.assert_close(evaluate_on(fold(2.0 * s_p, EACH_POSITIVE), batch, backend), expected)
    numbers = evaluate_on(count(EACH_POSITIVE), batch, backend)
    assert numbers.tolist() == evaluate_on(count(POSITIVES), batch, "dense").tolist()
    assert (evaluate_on(add_up(3.0, EACH_POSITIVE), batch, backend) == 3.0 * numbers).all()


# ------------------------------------------------------------------------------------------------ inputs

SOFT_RANK = add_up(sigmoid((s - s_p) / 0.2), BOTH)
FORMULAS = {
    "expands": mean(SOFT_RANK / (1.0 + add_up(softplus(2.0 * (s - s_p)), NEGATIVES)), EACH_POSITIVE),
    "general": logsumexp(SOFT_RANK - 2.0 * s_p, EACH_POSITIVE),
}
CHECKS: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    "expands": lambda rank, push, own: (rank / (1.0 + push)).mean(),
    "general": lambda rank, push, own: (rank - 2.0 * own).logsumexp(dim=0),
}


def loop_formula(name: str, S: Tensor, relation: Masks) -> Tensor:
    """The formulas above, for anchors with positives."""
    rows = []
    for row, positive, negative in zip(S, relation.positive, relation.negative, strict=True):
        own = row[positive]
        if len(own):
            rank = torch.stack([torch.sigmoid((row[positive | negative] - p) / 0.2).sum() for p in own])
            push = torch.stack([nn.functional.softplus(2.0 * (row[negative] - p)).sum() for p in own])
            rows.append(CHECKS[name](rank, push, own))
    return torch.stack(rows)


def relations() -> Iterator[tuple[Relation, Masks]]:
    """Labels, with and without gaps, and masks, for seven anchors and nine other references."""
    anchors, references = torch.tensor([0, 1, 2, 0, 1, 4, 2]), LABELS
    labels = Labels(anchors, references)
    yield labels, by_masks(labels)
    own = Labels(anchors, references, own=torch.tensor([2, -1, -1, 0, 1, -1, 7]))
    yield own, by_masks(own)
    valid = torch.arange(9) % 4 != 1
    gaps = Labels(anchors, references, valid=valid)
    yield gaps, by_masks(gaps)
    generator = torch.Generator().manual_seed(3)
    kind = torch.randint(3, (7, 9), generator=generator)
    yield Masks(kind == 0, kind == 1), Masks(kind == 0, kind == 1)


@loop_over("name", FORMULAS)
@pytest.mark.parametrize("backend", ["dense", "chunked", "auto"])
def test_other_references(name: str, backend: str) -> None:
    anchors, references = embed(7), embed(9, seed=1)
    for relation, masks in relations():
        there = masks.positive.any(dim=1).nonzero()[:, 0]
        leaves = [each.clone().requires_grad_() for each in (anchors, references)]
        plain = loop_formula(name, unit_products(*leaves), masks)
        expected = outcome(plain, leaves, torch.arange(len(there)))
        batch = PairBatch(relation, Cosine(), anchors=leaves[0], references=leaves[1])
        found = outcome(evaluate_on(FORMULAS[name], batch, backend), leaves, there)
        torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)


@loop_over("name", FORMULAS)
@pytest.mark.parametrize("backend", ["dense", "chunked", "auto"])
def test_a_mined_relation(name: str, backend: str) -> None:
    """A miner's condition with a fold and a number for the whole batch: positions of positives are not known."""
    embeddings = embed(9)
    keep = s < largest(s, NEGATIVES) - 0.3, mean_over_batch(s, NEGATIVES) < s + 0.2
    S, (positive, negative) = unit_products(embeddings), Labels(LABELS).masks()
    hardest = S.masked_fill(~negative, -torch.inf).amax(dim=1, keepdim=True)
    masks = Masks(positive & (hardest - 0.3 > S), negative & (S[negative].mean() < S + 0.2))
    assert masks.positive.sum() < positive.sum()
    assert masks.negative.sum() < negative.sum()
    there = masks.positive.any(dim=1).nonzero()[:, 0]
    leaf = embeddings.clone().requires_grad_()
    expected = outcome(loop_formula(name, unit_products(leaf), masks), [leaf], torch.arange(len(there)))
    batch = PairBatch(Mined(Labels(LABELS), *keep), Cosine(), anchors=leaf)
    found = outcome(evaluate_on(FORMULAS[name], batch, backend), [leaf], there)
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)


@loop_over("name", FORMULAS)
@pytest.mark.parametrize("backend", ["dense", "chunked", "auto"])
def test_many_positives(name: str, backend: str) -> None:
    """Nineteen are too many to expand."""
    labels, embeddings = torch.arange(40) % 2, embed(40)
    leaf = embeddings.clone().requires_grad_()
    batch = PairBatch(Labels(labels), Cosine(), anchors=leaf)
    assert find_positive_index(batch, large=False) is None
    expected = outcome(loop_formula(name, unit_products(leaf), masks_of(labels)), [leaf], torch.arange(40))
    found = outcome(evaluate_on(FORMULAS[name], batch, backend), [leaf], torch.arange(40))
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)


@loop_over("name", FORMULAS)
@pytest.mark.parametrize("backend", ["dense", "chunked", "auto"])
def test_a_known_matrix(name: str, backend: str) -> None:
    leaf = unit_products(embed(9)).requires_grad_()
    there = torch.arange(8)
    expected = outcome(loop_formula(name, leaf, masks_of(LABELS)), [leaf], there)
    for relation in (Labels(LABELS), masks_of(LABELS)):
        found = outcome(evaluate_on(FORMULAS[name], PairBatch(relation, matrix=leaf), backend), [leaf], there)
        torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)


def test_steps_of_many_triplets_are_recomputed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two positives at a time give the numbers of all positives at once."""
    positives = sys.modules["likewise.engines.positives"]
    labels, embeddings = torch.arange(40) % 2, embed(40)
    found = []
    for at_once in (2**20, 2 * 40 * 40, 1):
        monkeypatch.setattr(positives, "TRIPLETS_AT_ONCE", {"cpu": at_once, "cuda": at_once})
        leaf = embeddings.clone().requires_grad_()
        batch = PairBatch(Labels(labels), Cosine(), anchors=leaf)
        found.append(outcome(evaluate_on(FORMULAS["general"], batch, "dense"), [leaf], torch.arange(40)))
    for other in found[1:]:
        torch.testing.assert_close(other, found[0], rtol=1e-12, atol=1e-12)


# ------------------------------------------------------------------------------------------------ numbers inside


@pytest.mark.parametrize(("backend", "relate"), WAYS)
def test_numbers_inside(backend: str, relate: Callable) -> None:
    """A number per anchor, one per reference, a learned one and a fold per anchor, with their gradients."""
    embeddings, start = embed(9), torch.tensor(1.3, dtype=torch.float64)

    def inputs() -> list[Tensor]:
        return [each.clone().requires_grad_() for each in (embeddings, start, torch.linspace(-1.0, 1.0, 9).double())]

    leaf, scale, bias = inputs()
    length = PerAnchor("length", lambda batch: batch.anchors.norm(dim=1))
    shift = PerReference("bias", lambda batch: bias)
    curve = softplus(length * (s - s_p) + Number(scale) * shift) * largest(s, NEGATIVES)
    formula = add_up(add_up(curve, NEGATIVES) / at_least(count(NEGATIVES), 1) + length * s_p, EACH_POSITIVE)
    batch = PairBatch(relate(LABELS), Cosine(), anchors=leaf)
    found = outcome(evaluate_on(formula, batch, backend), [leaf, scale, bias], torch.arange(9))

    leaf, scale, bias = inputs()
    S, (positive, negative), lengths = unit_products(leaf), Labels(LABELS).masks(), leaf.norm(dim=1)
    rows = []
    for a in range(9):
        total = torch.zeros((), dtype=torch.float64)
        hardest = S[a][negative[a]].max()
        for p in positive[a].nonzero()[:, 0]:
            values = nn.functional.softplus(lengths[a] * (S[a] - S[a, p]) + scale * bias)[negative[a]]
            total = total + (values * hardest).sum() / negative[a].sum() + lengths[a] * S[a, p]
        rows.append(total)
    expected = outcome(torch.stack(rows), [leaf, scale, bias], torch.arange(9))
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(("backend", "relate"), WAYS)
def test_a_fold_per_positive_inside_another(backend: str, relate: Callable) -> None:
    """Each positive's push against the mean push of the anchor's positives; and the same inside a plain fold."""
    push = add_up(sigmoid(4.0 * (s - s_p)), NEGATIVES)
    center = mean(push, EACH_POSITIVE)
    spread = add_up(softplus(push - center) - mean(s_p, EACH_POSITIVE) * s_p, EACH_POSITIVE)
    formula = spread + add_up(softplus(s - center), NEGATIVES)
    embeddings = embed(9)
    leaf = embeddings.clone().requires_grad_()
    batch = PairBatch(relate(LABELS), Cosine(), anchors=leaf)
    found = outcome(evaluate_on(formula, batch, backend), [leaf], torch.arange(8))

    leaf = embeddings.clone().requires_grad_()
    S, (positive, negative) = unit_products(leaf), Labels(LABELS).masks()
    rows = []
    for a in range(8):
        own, others = S[a][positive[a]], S[a][negative[a]]
        pushes = torch.stack([torch.sigmoid(4.0 * (others - p)).sum() for p in own])
        value = nn.functional.softplus(pushes - pushes.mean()).sum() - (own.mean() * own).sum()
        rows.append(value + nn.functional.softplus(others - pushes.mean()).sum())
    expected = outcome(torch.stack(rows), [leaf], torch.arange(8))
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)


# ------------------------------------------------------------------------------------------------ gradients


@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize(("backend", "relate"), WAYS)
def test_finite_differences_once_and_twice(name: str, backend: str, relate: Callable) -> None:
    labels = torch.tensor([0, 1, 0, 0, 1])

    def value(embeddings: Tensor) -> Tensor:
        return evaluate_on(FORMULAS[name], PairBatch(relate(labels), Cosine(), anchors=embeddings), backend)

    leaf = embed(5, d=3).requires_grad_()
    assert torch.autograd.gradcheck(value, (leaf,), fast_mode=True)
    assert torch.autograd.gradgradcheck(value, (leaf,), fast_mode=True)


class Declared(PairLoss):
    """A formula given from outside."""

    def declare(self):
        return self._term


def loss_of(term: Term, **options: str) -> Declared:
    loss = Declared(**options)
    loss._term = term
    return loss


@loop_over("backend", ["dense", "chunked", "auto"])
@loop_over("fold", [add_up, mean, largest, smallest, logsumexp])
@pytest.mark.parametrize(
    "positive",
    [
        [[0, 1, 1, 0], [1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]],  # two without positives
        [[0, 1, 1, 1], [1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0]],  # one without negatives, one without positives
        [[0] * 4] * 4,
    ],
)
def test_an_empty_side_is_never_nan(fold: Callable, backend: str, positive: list[list[int]]) -> None:
    """It contributes nothing, and neither does it count."""
    yes = torch.tensor(positive).bool()
    no = ~yes & ~torch.eye(4, dtype=torch.bool)
    inner = largest(s - s_p, NEGATIVES) + logsumexp(s - s_p, NEGATIVES) + smallest(sigmoid(s - s_p), NEGATIVES)
    leaf = embed(4).requires_grad_()
    value = loss_of(per_anchor(fold(inner, EACH_POSITIVE)), backend=backend)(leaf, relation=Masks(yes, no))
    value.backward()
    assert torch.isfinite(value)
    assert torch.isfinite(leaf.grad).all()
    S, rows = unit_products(leaf.detach()), []
    for a in range(4):
        own, others = S[a][yes[a]], S[a][no[a]]
        if len(own) and len(others):
            gaps = [others - p for p in own]
            row = torch.stack([gap.max() + gap.logsumexp(dim=0) + gap.sigmoid().min() for gap in gaps])
            plain = {add_up: row.sum(), mean: row.mean(), largest: row.max(), smallest: row.min()}
            rows.append(plain.get(fold, row.logsumexp(dim=0)))
    expected = torch.stack(rows).mean() if rows else torch.tensor(0.0, dtype=torch.float64)
    torch.testing.assert_close(value.detach(), expected)


# ------------------------------------------------------------------------------------------------ a loss on top


class SmoothAP(PairLoss):
    """One minus a smooth average precision: the soft rank among positives over the soft rank among all (Brown et al. 2020)."""

    def declare(self):
        above = sigmoid((s - s_p) / 0.1)
        among_positives = add_up(above, POSITIVES) + 0.5  # the positive itself is half above itself
        return per_anchor(1.0 - mean(among_positives / (among_positives + add_up(above, NEGATIVES)), EACH_POSITIVE))


def smooth_ap(S: Tensor, labels: Tensor) -> Tensor:
    values = []
    for a in range(len(S)):
        positives = [j for j in range(len(S)) if labels[j] == labels[a] and j != a]
        precisions = []
        for p in positives:
            above = torch.sigmoid((S[a] - S[a, p]) / 0.1)
            rank = 1.0 + above[[j for j in positives if j != p]].sum()
            precisions.append(rank / (rank + above[labels != labels[a]].sum()))
        if precisions:
            values.append(1.0 - sum(precisions) / len(precisions))
    return torch.stack(values).mean()


@loop_over("backend", ["dense", "chunked", "auto"])
@pytest.mark.parametrize("labels", [LABELS, torch.arange(22) % 2, torch.arange(36) % 2], ids=["few", "ten", "many"])
def test_a_soft_rank_in_three_lines(labels: Tensor, backend: str) -> None:
    embeddings = embed(len(labels))
    leaf = embeddings.clone().requires_grad_()
    expected = outcome(smooth_ap(unit_products(leaf), labels)[None], [leaf], torch.arange(1))
    for relation in (Labels(labels), masks_of(labels)):
        leaf = embeddings.clone().requires_grad_()
        value = SmoothAP(backend=backend)(leaf, relation=relation)
        torch.testing.assert_close(outcome(value[None], [leaf], torch.arange(1)), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("miner", [SemiHardMiner(0.5), SemiHardMiner(), BatchHardMiner()], ids=repr)
def test_a_soft_rank_of_what_a_triplet_miner_touches(miner: TripletMiner) -> None:
    """A loss without triplets takes the pairs of the triplets."""
    embeddings = embed(9)
    touched = Masks(*miner(unit_products(embeddings), LABELS).masks())
    assert touched.positive.any()
    found = []
    for backend in ("dense", "chunked", "auto"):
        for options, given in (({}, {"relation": touched}), ({"miner": miner}, {"labels": LABELS})):
            leaf = embeddings.clone().requires_grad_()
            value = SmoothAP(backend=backend, **options)(leaf, **given)
            found.append(outcome(value[None], [leaf], torch.arange(1)))
    for other in found[1:]:
        torch.testing.assert_close(other, found[0], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("relate", [Labels, masks_of])
def test_sharded_references_are_refused(relate: Callable) -> None:
    """The positive and its negatives may be on different ranks: one sentence, in place of a wrong number."""
    batch = PairBatch(relate(LABELS), Cosine(), anchors=embed(9), shards=object())
    with pytest.raises(TypeError, match="a fold over EACH_POSITIVE needs all references") as caught:
        engines.run([as_term(FORMULAS["expands"])], batch, "sum")
    assert "\n" not in str(caught.value)


def test_kernels_do_not_take_any_number_of_positives() -> None:
    """One sentence, before anything is computed."""
    batch = PairBatch(masks_of(LABELS), Cosine(), anchors=embed(9))
    with pytest.raises(
        TypeError, match="backend must be 'auto', 'chunked' or 'dense' where anchors have many"
    ) as caught:
        engines.run([as_term(FORMULAS["expands"])], batch, "sum", "triton")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("make", [losses.TripletLoss, losses.MarginLoss, losses.SmoothAPLoss])
def test_one_loss_on_batches_with_other_numbers_of_positives(make: Callable[..., torch.nn.Module]) -> None:
    """Terms that were expanded for one batch have the numbers of the next one."""
    shared, generator = make(), torch.Generator().manual_seed(0)
    for sizes in ((2, 2, 2), (3, 1, 4), (2, 2, 2), (3, 3, 3), (4, 3, 1), (3, 1, 4)):
        labels = torch.arange(3).repeat_interleave(torch.tensor(sizes))
        x = torch.randn(len(labels), 4, generator=generator, dtype=torch.float64).requires_grad_()
        found, expected = shared(x, labels), make()(x, labels)
        assert torch.equal(found, expected)
        assert torch.equal(*(torch.autograd.grad(each, x)[0] for each in (found, expected)))
