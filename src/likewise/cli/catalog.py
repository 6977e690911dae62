"""What a room exports, read from its source: a listing does not have to wait until torch is there."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from likewise.cli.formulas import plain


@dataclass(frozen=True)
class Entry:
    """A class or function that a room exports.

    Args:
        name: its name.
        family: the module that it is in.
        summary: the first sentence of its docstring.
        marks: what it derives from, for a class; what it takes, for a function.
        defaults: hyper-parameters with their defaults, as they stand in the source.

    Examples:
        >>> entries("losses")["CircleLoss"].marks
        frozenset({'PairLoss'})
    """

    name: str
    family: str
    summary: str
    marks: frozenset[str]
    defaults: tuple[tuple[str, str], ...]


def entries(room: str) -> dict[str, Entry]:
    """What a room exports, by name, in the order of its modules.

    Examples:
        >>> entries("losses")["MultiSimilarityLoss"].defaults
        (('alpha', '2.0'), ('beta', '50.0'), ('base', '0.5'))
    """
    folder = _folder(room)
    found: dict[str, Entry] = {}
    for node in ast.parse((folder / "__init__.py").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            family = node.module.rpartition(".")[2]
            wanted = {alias.name for alias in node.names}
            for each in ast.parse((folder / f"{family}.py").read_text(encoding="utf-8")).body:
                if isinstance(each, ast.ClassDef | ast.FunctionDef) and each.name in wanted:
                    found[each.name] = Entry(each.name, family, _summary(each), _marks(each), tuple(_defaults(each)))
    return found


def heading(room: str, family: str) -> str:
    """What a module says it is about.

    Examples:
        >>> heading("losses", "ranking")
        'Ranking losses: average precision and pair order, through soft histograms of similarities'
    """
    text = ast.get_docstring(ast.parse((_folder(room) / f"{family}.py").read_text(encoding="utf-8"))) or family
    return text.split("\n")[0].rstrip(".")


def _folder(room: str) -> Path:
    found = find_spec("likewise")  # not the room: finding that would import it
    assert found is not None
    assert found.submodule_search_locations
    return Path(found.submodule_search_locations[0]) / room


def _marks(node: ast.ClassDef | ast.FunctionDef) -> frozenset[str]:
    if isinstance(node, ast.ClassDef):
        return frozenset(ast.unparse(base).rpartition(".")[2] for base in node.bases)
    return frozenset(each.arg for each in (*node.args.args, *node.args.kwonlyargs))


def _summary(node: ast.ClassDef | ast.FunctionDef) -> str:
    return plain((ast.get_docstring(node) or "").split("\n\n")[0])


def _defaults(node: ast.ClassDef | ast.FunctionDef) -> list[tuple[str, str]]:
    """Hyper-parameters are declared as ``alpha: float = hyper(default=2.0, …)``."""
    found = []
    for each in node.body:
        call = each.value if isinstance(each, ast.AnnAssign) else None
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "hyper":
            assert isinstance(each, ast.AnnAssign)
            given = [keyword.value for keyword in call.keywords if keyword.arg == "default"]
            found.append((ast.unparse(each.target), ast.unparse(given[0])))
    return found
