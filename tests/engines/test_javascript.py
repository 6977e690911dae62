"""The JavaScript printer: the value and every derivative of a printed formula are those of the dense engine."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch

from likewise.engines import javascript
from likewise.engines.javascript import FOLDS, Parameter, Symbol, print_conditions, print_value, value_at
from likewise.formula import (
    BOTH,
    EACH_POSITIVE,
    NEGATIVES,
    OPERATIONS,
    POSITIVES,
    SIMILARITIES,
    Count,
    Fold,
    Folded,
    Formula,
    LogSumExp,
    Max,
    Mean,
    Min,
    PerAnchor,
    PerPair,
    Sum,
    Term,
    Total,
    add_up,
    count,
    largest,
    logsumexp,
    mean,
    mean_over_batch,
    pair_entries,
    relu,
    s,
    s_p,
    sigmoid,
    smallest,
    softplus,
    sqrt,
    square,
    stop_gradient,
    where,
)
from likewise.losses import PairLoss
from tests.analysis.agreement import NODE, evaluated
from tests.formula.test_expressions import CURVES
from tests.report.browser import CHROMIUM

pytestmark = pytest.mark.skipif(NODE is None and CHROMIUM is None, reason="there is no node or Chromium to run it in")

ALPHA = Symbol(2.0, Parameter("alpha"))
RANK = 1.0 + add_up(sigmoid((s - s_p) / 0.1), BOTH)
FORMULAS: dict[str, Formula] = {
    **{f"operation {name}": add_up(curve, POSITIVES) for name, curve in CURVES.items()},
    "operation stop_gradient": add_up(stop_gradient(s) * s, POSITIVES),
    **{
        f"{fold.name} over {side.value}": where(count(side) > 0.0, Folded(fold, side, ALPHA * s * s), 0.0)
        for fold in (LogSumExp(), Sum(), Mean(), Max(), Min(), Count())
        for side in (POSITIVES, NEGATIVES, BOTH)
    },
    "a fold inside a curve": mean(softplus(logsumexp(ALPHA * s, NEGATIVES) - ALPHA * s), POSITIVES),
    "a total inside a curve": add_up(square(relu(s - (1.0 + ALPHA) * mean_over_batch(s, NEGATIVES))), NEGATIVES),
    "a total of a fold that has a total": add_up(square(s - Total(add_up(s * mean_over_batch(s, BOTH), BOTH))), BOTH),
    "triplets": add_up(add_up(relu(s - s_p + ALPHA), NEGATIVES), EACH_POSITIVE),
    "a fold per positive inside a curve per positive": add_up(
        softplus(largest(where(s < s_p, s, -9.0), NEGATIVES)), EACH_POSITIVE
    ),
    "average precision": add_up((1.0 + add_up(sigmoid((s - s_p) / 0.1), POSITIVES)) / RANK, EACH_POSITIVE),
    "largest over each positive": where(count(POSITIVES) > 0.0, Folded(Max(), EACH_POSITIVE, RANK), 0.0),
    "a fold per positive that sees a fold per anchor": mean(square(RANK - logsumexp(s, NEGATIVES)), EACH_POSITIVE),
    "conditions": where(
        (smallest(s, BOTH) < 0.1) & (largest(s, BOTH) > 0.2), sqrt(count(BOTH) * mean(s * s, BOTH)), 3.0
    ),
}


class Mine(PairLoss):
    """Whatever is given."""

    def declare(self):
        return Term(self.formula, count(BOTH) > -1.0, count(BOTH) > -1.0)


def batch(seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Similarities, some of them equal, and labels; one class has one sample."""
    draw = torch.Generator().manual_seed(seed)
    S = torch.rand(7, 7, generator=draw, dtype=torch.float64) * 2.0 - 1.0
    S[:, 3], S[0, 4] = S[:, 2], S[0, 5]
    return S, torch.tensor([0, 0, 0, 1, 1, 1, 2]) if seed % 2 else torch.tensor([0, 0, 1, 1, 1, 1, 2])


def printed(functions: list[str], cases: list[dict[str, Any]], folder: Path) -> list[dict[str, Any]]:
    program = f"""{javascript.RUNTIME}
    const functions = [{",".join(functions)}];
    const cases = {json.dumps(cases)};
    const answers = cases.map(({{ S, labels, h }}, k) => {{
      const n = labels.length, matrix = matrixOf(n, n, Float64Array.from(S));
      const places = Float64Array.from(labels, (_, i) => i / n), numbers = Float64Array.from(S, (_, ij) => ((ij * ij) % 5) / 5);
      const inputs = [matrixOf(n, 1, places), matrixOf(n, n, numbers)];
      const found = functions[k](matrix, relate(labels, labels, true), h, inputs);
      if (typeof found !== "number") return Array.from(found.kinds);
      return {{ value: found, derivatives: [matrix, ...inputs].map(({{ grad }}) => Array.from(grad)) }};
    }});"""
    return list(json.loads(evaluated(program, "JSON.stringify(answers)", folder)))


def test_values_and_derivatives_are_those_of_the_dense_engine(tmp_path: Path):
    functions, cases, expected = [], [], []
    for k, formula in enumerate(FORMULAS.values()):
        S, labels = batch(k)
        loss = Mine(reduction="sum", backend="dense")
        loss.formula = formula
        leaf = S.clone().requires_grad_()
        value = loss.from_similarity(leaf, labels)
        derivatives = torch.autograd.grad(value, leaf)[0] if value.requires_grad else torch.zeros_like(S)
        functions.append(print_value(Total(formula)))
        cases.append({"S": S.flatten().tolist(), "labels": labels.tolist(), "h": {"alpha": 2.0}})
        expected.append((value.item(), derivatives.flatten()))
    for name, found, (value, derivatives) in zip(FORMULAS, printed(functions, cases, tmp_path), expected, strict=True):
        assert found["value"] == pytest.approx(value, rel=1e-12, abs=1e-12), name
        torch.testing.assert_close(
            torch.tensor(found["derivatives"][0], dtype=torch.float64), derivatives, rtol=1e-10, atol=1e-12, msg=name
        )


def test_every_operation_and_every_fold_is_spelled(tmp_path: Path):
    assert {f"operation {name}" for name in OPERATIONS} <= set(FORMULAS)
    assert set(FOLDS) == {LogSumExp, Sum, Mean, Max, Min, Count}
    names = evaluated(javascript.RUNTIME, "JSON.stringify(Object.keys(LINKS))", tmp_path)
    assert set(json.loads(names)) == javascript.LINKS <= set(SIMILARITIES)


def test_numbers_per_anchor_and_per_pair_get_their_derivatives(tmp_path: Path):
    S, labels = batch(1)
    place = (torch.arange(7, dtype=torch.float64) / 7).requires_grad_()
    number = (torch.arange(49, dtype=torch.float64).square() % 5 / 5).view(7, 7).requires_grad_()
    per_anchor = PerAnchor("place", lambda batch: place)
    per_pair = PerPair("number", lambda batch, rows, columns: pair_entries(number, rows, columns))
    ranks = add_up(sigmoid(per_pair * s - s_p), BOTH)
    formula = per_anchor * add_up(per_pair * s, NEGATIVES) + add_up(per_pair.at_positive * ranks, EACH_POSITIVE)
    loss, leaf = Mine(reduction="sum", backend="dense"), S.clone().requires_grad_()
    loss.formula = formula
    value = loss.from_similarity(leaf, labels)
    expected = torch.autograd.grad(value, (leaf, place, number))
    text = print_value(Total(formula), [per_anchor, per_pair])
    [found] = printed([text], [{"S": S.flatten().tolist(), "labels": labels.tolist(), "h": {}}], tmp_path)
    assert found["value"] == pytest.approx(value.item())
    for derivatives, gradient in zip(found["derivatives"], expected, strict=True):
        torch.testing.assert_close(torch.tensor(derivatives, dtype=torch.float64), gradient.flatten())


def test_conditions_keep_pairs(tmp_path: Path):
    S, labels = batch(2)
    text = print_conditions(s - ALPHA < largest(s, NEGATIVES), s > smallest(s, POSITIVES))
    [found] = printed([text], [{"S": S.flatten().tolist(), "labels": labels.tolist(), "h": {"alpha": 0.1}}], tmp_path)
    same = (labels[:, None] == labels[None, :]) & ~torch.eye(7, dtype=torch.bool)
    other = labels[:, None] != labels[None, :]
    near = same & (torch.where(other, S, -math.inf).amax(dim=1, keepdim=True) > S - 0.1)
    far = other & (torch.where(same, S, math.inf).amin(dim=1, keepdim=True) < S)
    assert found == (near.long() + 2 * far.long()).flatten().tolist()


def test_what_cannot_be_printed_is_refused_in_a_sentence():
    class Median(Fold):
        name = "median"
        start = merge = finish = derivative = None  # type: ignore[assignment]

    Median.__abstractmethods__ = frozenset()  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match=r"a fold must be one of logsumexp, sum, .* as JavaScript, but it is median"):
        print_value(Total(Folded(Median(), BOTH, s)))
    with pytest.raises(
        TypeError, match="norm is a Python function of the batch, and a formula with it has no JavaScript"
    ):
        print_value(Total(PerAnchor("norm", lambda batch: None)))


def test_symbols_are_numbers_that_keep_their_names():
    margin, scale = Symbol(0.25, Parameter("margin")), Symbol(8.0, Parameter("scale"))
    assert isinstance(margin, float)
    assert margin < 0.3
    combined = (1.0 - margin) / scale + 2.0 * -margin
    assert repr(combined) == "(((1.0 - margin) / scale) + (2.0 * (-margin)))"
    assert combined == 0.75 / 8.0 - 0.5
    assert value_at(combined, {"margin": 0.5, "scale": 2.0}) == 0.25 - 1.0
    assert repr(relu(margin - scale * s)) == "relu(margin - (scale * s))"
    assert type(math.sqrt(margin)) is float  # what Python computes has no name
