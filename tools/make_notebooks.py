"""Write the notebooks of examples/notebooks from their scripts, without output.

A script in percent format has cells that begin with ``# %%`` (code) or ``# %% [markdown]`` (text in comments).

    $ python tools/make_notebooks.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "examples" / "notebooks"
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def make_cell(number: int, header: str, lines: list[str]) -> dict[str, Any]:
    """One cell; an id by position keeps notebooks equal from one call to the next."""
    if "[markdown]" in header:
        text = "\n".join(line.removeprefix("#").removeprefix(" ") for line in lines).strip()
        return {
            "cell_type": "markdown",
            "id": f"cell-{number}",
            "metadata": {},
            "source": text.splitlines(keepends=True),
        }
    source = "\n".join(lines).strip().splitlines(keepends=True)
    return {
        "cell_type": "code",
        "execution_count": None,
        "id": f"cell-{number}",
        "metadata": {},
        "outputs": [],
        "source": source,
    }


def make_notebook(script: str) -> str:
    """The notebook of a script as JSON; what comes before the first cell is left out."""
    cells: list[tuple[str, list[str]]] = []
    for line in script.splitlines():
        if line.startswith("# %%"):
            cells.append((line, []))
        elif cells:
            cells[-1][1].append(line)
    content = {
        "cells": [make_cell(number, header, lines) for number, (header, lines) in enumerate(cells)],
        "metadata": METADATA,
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def main() -> None:
    """Write every notebook."""
    for script in sorted(FOLDER.glob("*.py")):
        script.with_suffix(".ipynb").write_text(make_notebook(script.read_text(encoding="utf-8")), encoding="utf-8")
        print(script.with_suffix(".ipynb").relative_to(FOLDER.parents[1]))


if __name__ == "__main__":
    main()
