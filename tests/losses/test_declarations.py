"""A declaration is a value: it is made without a batch, prints alike every time, and nothing in it can be assigned."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from likewise.formula import Cosine, Labels, MatrixLoss, PairBatch, Regularizer, Term, sort_declaration
from likewise.losses import Between, ProxyLoss
from likewise.testing import LossCase, loop_over
from tests.losses.cases import CASES, PROXY_CASES

EVERY_CASE = [*CASES, *PROXY_CASES]
over_cases = loop_over("case", EVERY_CASE)


def declared(loss: torch.nn.Module) -> list[Term | Regularizer | MatrixLoss]:
    """Everything that a loss declares, in order."""
    declarations = [loss.declare()]
    if isinstance(loss, ProxyLoss):
        assert all(isinstance(between, Between) for between in declarations[0])
        declarations = list(declarations[0].values())
    return [each for declaration in declarations for each in as_tuple(declaration)]


def as_tuple(declaration: object) -> tuple:
    return declaration if isinstance(declaration, tuple) else (declaration,)


def printed(terms: list[Term | Regularizer | MatrixLoss]) -> list[str]:
    """Formulas as they print; a function is printed by what holds it."""
    return [repr(each) if isinstance(each, Term) else type(each).__name__ for each in terms]


@over_cases
def test_a_declaration_needs_no_batch_and_holds_values(case: LossCase) -> None:
    loss = case.make()
    everything = declared(loss)
    assert everything
    for each in everything:
        assert isinstance(each, Term | Regularizer | MatrixLoss)
        for field in dataclasses.fields(each):
            with pytest.raises(dataclasses.FrozenInstanceError):
                setattr(each, field.name, None)


@over_cases
def test_a_declaration_prints_alike_every_time(case: LossCase) -> None:
    """Also after a call, on another copy, and for every engine and reduction: neither is part of it."""
    loss = case.make()
    expected = printed(declared(loss))
    assert printed(declared(loss)) == expected
    torch.manual_seed(0)
    loss(torch.randn(6, 5), torch.arange(6) // 2)
    assert printed(declared(loss)) == expected
    for options in ({"backend": "dense"}, {"backend": "chunked"}, {"backend": "triton"}, {"reduction": "sum"}):
        assert printed(declared(case.make(**options))) == expected


def test_a_declaration_is_sorted_into_its_three_kinds() -> None:
    for case in CASES:
        terms, regularizers, matrix_losses = sort_declaration(case.make().declare())
        assert all(isinstance(each, Term) for each in terms)
        assert all(isinstance(each, Regularizer) for each in regularizers)
        assert all(isinstance(each, MatrixLoss) for each in matrix_losses)
        assert len(terms) + len(regularizers) + len(matrix_losses) == len(declared(case.make()))


@pytest.mark.parametrize("field", [field.name for field in dataclasses.fields(PairBatch)])
def test_a_batch_is_frozen(field: str) -> None:
    batch = PairBatch(Labels(torch.tensor([0, 0, 1])), Cosine(), anchors=torch.eye(3))
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(batch, field, None)


def test_a_loss_leaves_its_batch_as_it_was() -> None:
    """What engines need of a batch, its matrix or its factors, goes into copies."""
    batch = PairBatch(Labels(torch.tensor([0, 0, 1])), Cosine(), anchors=torch.eye(3))
    before = {field.name: getattr(batch, field.name) for field in dataclasses.fields(batch)}
    for case in CASES:
        loss = case.make()
        if loss.miner is None and isinstance(loss.similarity, str) and loss.similarity == "cosine":
            loss.value(batch)
    for name, value in before.items():
        assert getattr(batch, name) is value
