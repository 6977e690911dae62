"""Write the table behind `likewise losses`, `datasets` and `trunks` from the library's classes.

Run it as `python tools/write_catalog.py`, or `make catalog`.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import sys
from typing import Any

from likewise.app import KINDS, import_class
from likewise.cli.catalog import FILE, Entry
from likewise.cli.formulas import plain
from likewise.formula import hyperparameters
from likewise.trunks import TRUNKS


def collect() -> str:
    """The table, as the text of its file."""
    things = {name: [import_class(f"{kind.room}.{each}") for each in kind.names()] for name, kind in KINDS.items()}
    things["trunk"] = [entry.make for entry in TRUNKS.values()]
    table = {
        name: [dataclasses.asdict(describe(each)) for each in sorted(some, key=find_place)]
        for name, some in things.items()
    }
    return json.dumps(table, indent=1, ensure_ascii=False) + "\n"


def describe(thing: Any) -> Entry:
    """A class or function as an entry of the table."""
    family = (sys.modules[thing.__module__].__doc__ or "").split("\n")[0].split(":")[0].rstrip(".")
    declared = hyperparameters(thing) if dataclasses.is_dataclass(thing) else {}
    signature = inspect.signature(thing).parameters
    defaults = {name: repr(signature[name].default) for name in declared}
    return Entry(thing.__name__, family, plain((inspect.getdoc(thing) or "").split("\n\n")[0]), defaults)


def find_place(thing: Any) -> tuple[str, int]:
    """Where something is defined: its module, and its place among the names of that."""
    return thing.__module__, list(vars(sys.modules[thing.__module__])).index(thing.__name__)


if __name__ == "__main__":
    FILE.write_text(collect(), encoding="utf-8")
    print(FILE)
