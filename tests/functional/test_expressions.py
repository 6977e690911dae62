"""The expression in a function's docstring is what the function equals: it is run."""

from __future__ import annotations

import ast
import inspect
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from likewise import functional, losses
from likewise.formula import as_similarity
from likewise.testing import loop_over, make_batch
from tests.functional.cases import CASES, Case, function_of

SHOWN = [case for case in CASES if not case.options.get("soft") and "num_classes" not in case.construction]
"""An expression has a hinge for triplets, and one boundary for all classes."""


def expression_of(function: Callable[..., Tensor]) -> ast.Module:
    """The indented block that follows the first line of a docstring."""
    lines = inspect.getdoc(function).splitlines()
    assert lines[1] == ""
    block = []
    for line in lines[2:]:
        if line and not line.startswith("    "):
            break
        block.append(line[4:])
    return ast.parse("\n".join(block))


def run(code: ast.Module, names: dict[str, Any]) -> Any:
    """The value of the last line, after the others."""
    *statements, last = code.body
    assert isinstance(last, ast.Expr)
    exec(compile(ast.Module(statements, []), "docstring", "exec"), names)
    return eval(compile(ast.Expression(last.value), "docstring", "eval"), names)


def number(function: Callable[[Tensor], Tensor]) -> Callable[[Any], Any]:
    """A function of torch, of a plain number too."""
    return lambda x: function(x) if isinstance(x, Tensor) else float(function(torch.tensor(x, dtype=torch.float64)))


def vocabulary() -> dict[str, Any]:
    names = {
        name: number(getattr(torch, name)) for name in ("exp", "log", "log1p", "cos", "sin", "tan", "sqrt", "floor")
    }
    names |= {name: getattr(torch, name) for name in ("cat", "where", "relu", "arccos", "sigmoid", "log2", "arange")}
    names |= {name: getattr(torch.nn.functional, name) for name in ("softplus", "cross_entropy", "normalize", "linear")}
    names["linspace"] = lambda *bounds: torch.linspace(*bounds, dtype=torch.float64)
    return {**names, "torch": torch, "inf": math.inf, "pi": math.pi, "radians": math.radians}


def pair_names(case: Case, embeddings: Tensor, labels: Tensor) -> dict[str, Any]:
    same = labels[:, None] == labels
    names: dict[str, Any] = {"P": same & ~torch.eye(len(labels), dtype=torch.bool), "N": ~same}
    similarity = inspect.signature(function_of(case.kind)).parameters["similarity"].default
    names["S"] = as_similarity(similarity)(embeddings, embeddings)
    if case.kind is losses.WeightedPairLoss:
        pull = (-2.0 * names["S"]).masked_fill(~names["P"], -math.inf)
        names["rows"] = {"pull": pull.logsumexp(dim=1, keepdim=True)}
    return names


def proxy_names(case: Case, embeddings: Tensor, labels: Tensor, proxies: Tensor, centers: int) -> dict[str, Any]:
    own = torch.nn.functional.one_hot(labels, len(proxies) // centers).bool()
    return {"proxies": proxies, "own": own, "S": as_similarity(case.kind.similarity)(embeddings, proxies)}


@loop_over("seed", range(3))
@loop_over("case", SHOWN)
def test_the_expression_in_the_docstring_is_the_value(case: Case, seed: int):
    embeddings, labels = make_batch("balanced", seed=seed)
    embeddings = 0.3 * embeddings  # inner products of which a plain exponential can be taken
    function = function_of(case.kind)
    signature = inspect.signature(function).parameters
    module = case.make()
    tensors = {name: each.detach() for name, each in case.tensors(module).items()}
    defaults = {name: each.default for name, each in signature.items() if each.kind is each.KEYWORD_ONLY}
    # a default of None is a number that the class decides on
    defaults |= {name: getattr(module, name, None) for name, value in defaults.items() if value is None}
    names = {**vocabulary(), **defaults, **case.options, **tensors, "embeddings": embeddings, "labels": labels}
    if issubclass(case.kind, losses.PairLoss):
        names |= pair_names(case, embeddings, labels)
    elif case.has_proxies:
        names |= proxy_names(case, embeddings, labels, tensors["proxies"], names.get("centers", 1))
    expected = run(expression_of(function), names)
    torch.testing.assert_close(case.call(embeddings, labels, tensors), expected.reshape(()), rtol=1e-6, atol=1e-6)


def test_every_function_has_an_expression():
    for name in functional.__all__:
        code = expression_of(getattr(functional, name))
        assert code.body, name
        assert isinstance(code.body[-1], ast.Expr), name
