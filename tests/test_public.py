"""Everything exported is documented, typed, shown in an example that runs, and under a contract."""

from __future__ import annotations

import doctest
import importlib
import importlib.resources
import inspect
import re
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

from likewise.formula import Side, hyperparameters
from likewise.losses import PairLoss, ProxyLoss
from likewise.miners import Miner, PairMiner, TripletMiner
from likewise.testing import loop_over
from tests.losses.cases import CASES, PROXY_CASES
from tests.miners.cases import CASES as MINER_CASES

ROOMS = (
    "formula",
    "engines",
    "losses",
    "functional",
    "linear",
    "miners",
    "metrics",
    "data",
    "trunks",
    "train",
    "analysis",
    "search",
    "report",
    "protocols",
    "app",
    "cli",
    "testing",
)
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def exports() -> list[Any]:
    found = []
    for room in ROOMS:
        module = importlib.import_module(f"likewise.{room}")
        assert list(module.__all__) == sorted(module.__all__, key=_isort_key), f"likewise.{room}.__all__ is sorted"
        names = [*module.__all__, *(name for names in getattr(module, "FACES", {}).values() for name in names)]
        found += [getattr(module, name) for name in names]
    return found


def _isort_key(name: str) -> tuple[int, list[str | int]]:
    """As ruff sorts: constants, classes, others; numbers inside a name by their value."""
    parts: list[str | int] = [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]
    return (0 if name.isupper() else 1 if name[0].isupper() else 2), parts


EXPORTS = exports()
DEFINED = [each for each in EXPORTS if inspect.isclass(each) or inspect.isfunction(each)]
ABSTRACT = {"Miner", "TripletMiner"}


@loop_over("thing", DEFINED)
def test_documented(thing: Any):
    own = thing.__dict__.get("__doc__") if inspect.isclass(thing) else thing.__doc__
    assert own, f"{thing.__name__} has no docstring of its own"
    assert own.strip().split("\n")[0].rstrip().endswith((".", ":"))


@loop_over("thing", DEFINED)
def test_shown_in_an_example(thing: Any):
    if thing.__name__ not in ABSTRACT:  # an interface; its implementations are shown
        assert ">>>" in inspect.getdoc(thing)


@loop_over("thing", DEFINED)
def test_typed(thing: Any):
    if inspect.isclass(thing) and (issubclass(thing, Enum | Exception) or getattr(thing, "_is_protocol", False)):
        return  # their constructors are Python's own
    signature = inspect.signature(thing)
    for name, parameter in signature.parameters.items():
        assert parameter.annotation is not inspect.Parameter.empty, f"{thing.__name__}: {name} has no type"
    if inspect.isfunction(thing):
        assert signature.return_annotation is not inspect.Signature.empty


def modules(room: str) -> list[str]:
    package = importlib.import_module(f"likewise.{room}")
    folder = Path(str(importlib.resources.files(package)))
    files = [file.relative_to(folder).with_suffix("") for file in folder.rglob("*.py")]
    return sorted(".".join(("likewise", room, *file.parts)) for file in files if file.name != "__init__")


@loop_over("room", ROOMS)
def test_whatever_is_exported_is_seen(room: str):
    """Also by shells and by the pages of the API, which look into a module, where its names are imported late."""
    module = importlib.import_module(f"likewise.{room}")
    assert set(getattr(module, "__all__", ())) <= set(dir(module))


@pytest.mark.parametrize("room", ROOMS)
def test_examples_run(room: str):
    failed = [name for name in modules(room) if doctest.testmod(importlib.import_module(name), optionflags=OPTIONS)[0]]
    assert not failed


def subclasses(room: str, base: type) -> list[type]:
    module = importlib.import_module(f"likewise.{room}")
    found = [getattr(module, name) for name in module.__all__]
    classes = [each for each in found if inspect.isclass(each)]
    return [each for each in classes if issubclass(each, base) and not each.__module__.endswith("base")]


LOSS_CASES = CASES + PROXY_CASES
PAIR_LOSSES = subclasses("losses", PairLoss)
PROXY_LOSSES = subclasses("losses", ProxyLoss)
LOSSES = PAIR_LOSSES + PROXY_LOSSES
MINERS = subclasses("miners", Miner)


@loop_over("loss", LOSSES)
def test_every_loss_is_under_contract(loss: type):
    found = any(type(case.make()) is loss for case in LOSS_CASES)
    assert found, f"add a row for {loss.__name__} to tests/losses/cases.py"


@loop_over("miner", MINERS)
def test_every_miner_is_under_contract(miner: type):
    assert any(type(case.make()) is miner for case in MINER_CASES)
    assert issubclass(miner, PairMiner | TripletMiner)


@loop_over("thing", LOSSES + MINERS)
def test_hyperparameters_say_what_a_search_needs(thing: type):
    for name, declared in hyperparameters(thing).items():
        assert declared.help, name
        assert declared.search is not None, f"{thing.__name__}.{name} has no search range"
        low, high = declared.search
        assert low < high
        assert declared.allows(low) or declared.above == low
        assert declared.allows(high)
        assert not declared.log or low > 0.0
        assert name in inspect.getdoc(thing), f"{thing.__name__}: {name} is not described"


@loop_over("loss", LOSSES)
def test_the_formula_and_its_source_are_in_the_docstring(loss: type):
    text = inspect.getdoc(loss)
    assert "$" in text or "Eq." in text
    assert (
        any(str(year) in text for year in range(2004, 2027)) or "unified view" in text or "the thesis" in text.lower()
    )


@loop_over("loss", LOSSES)
def test_inheritance_is_flat(loss: type):
    """A loss, its one base, torch's module: vary by composing parts, not by overriding."""
    assert loss.__mro__[1] in (PairLoss, ProxyLoss)
    assert loss.__mro__[2].__name__ == "Module"


def test_sides_print_themselves():
    assert [side.value for side in Side] == ["positives", "negatives", "both", "each positive"]


def test_a_loss_author_needs_few_names():
    """`likewise.formula` shows at most thirty; each other public name is defined in the module that documents it."""
    formula = importlib.import_module("likewise.formula")
    assert len(formula.__all__) <= 30
    for place, names in formula.FACES.items():
        module = importlib.import_module(f"likewise.formula.{place}")
        assert all(getattr(formula, name) is vars(module)[name] for name in names)
        assert not set(names) & set(formula.__all__)
