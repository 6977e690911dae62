"""The wheel installed without extras: torch and numpy are enough for layer 1, and commands name what they lack."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path

import pytest

from likewise.cli.packages import PACKAGES

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
LAYER_1 = ("formula", "engines", "losses", "functional", "miners", "metrics", "analysis", "distributed")


def requirements(name: str, found: set[str]) -> set[str]:
    """A distribution and what it needs without its extras, by normalized names."""
    name = re.sub(r"[-_.]+", "-", name).lower()
    if name not in found:
        found.add(name)
        try:
            lines = requires(name) or []
        except PackageNotFoundError:  # for another platform
            return found
        for line in lines:
            if "extra ==" not in line:
                requirements(re.split(r"[^\w.-]", line)[0], found)
    return found


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel's content."""
    folder = tmp_path_factory.mktemp("bare")
    pip = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check"]
    subprocess.run([*pip, "wheel", "--no-deps", "-w", str(folder), str(ROOT)], check=True, cwd=folder)
    [wheel] = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as content:
        content.extractall(folder / "site")
    return folder / "site"


def run(bare: Path, program: str) -> subprocess.CompletedProcess[str]:
    """Run a program that sees the wheel, torch, numpy and what these two need."""
    there = requirements("torch", requirements("numpy", {"likewise"}))
    hidden = [
        module
        for module, owners in packages_distributions().items()
        if not {re.sub(r"[-_.]+", "-", owner).lower() for owner in owners} & there and not module.startswith("_")
    ]
    begin = f"import sys; sys.path.insert(0, {str(bare)!r}); sys.modules.update(dict.fromkeys({json.dumps(hidden)}))\n"
    return subprocess.run([sys.executable, "-c", begin + program], capture_output=True, text=True, cwd=bare.parent)


def test_layer_1_needs_torch_and_numpy(bare: Path):
    result = run(
        bare,
        "import torch, likewise\n"
        f"assert likewise.__file__.startswith({str(bare)!r})\n"
        + "".join(f"import likewise.{each}\n" for each in LAYER_1)
        + "x, y = torch.randn(8, 4, requires_grad=True), torch.arange(8) // 2\n"
        "likewise.losses.MultiSimilarityLoss(miner=likewise.miners.SemiHardMiner())(x, y).backward()\n"
        "print(sorted(likewise.metrics.retrieval(x.detach(), y)))\n",
    )
    assert result.returncode == 0, result.stderr
    assert "MAP@R" in result.stdout
    linear = run(bare, "import likewise.linear")
    assert linear.stderr.endswith("likewise.linear needs scikit-learn and scipy: pip install 'likewise[linear]'\n")
    testing = run(bare, "import likewise.testing")
    assert testing.stderr.endswith("likewise.testing needs pytest and hypothesis: pip install 'likewise[testing]'\n")


COMMANDS = {
    "--help": None,
    "losses": None,
    "losses CircleLoss": None,
    "trunks": None,
    "datasets": None,
    "doctor": None,
    "datasets CUB200": "likewise datasets needs pillow: pip install 'likewise[train]'",
    "train": "likewise train needs accelerate: pip install 'likewise[train]'",
    "demo": "likewise demo needs accelerate: pip install 'likewise[train]'",
    "index a b": "likewise index needs accelerate: pip install 'likewise[train]'",
}
"""What each command says that it lacks; listings and descriptions lack nothing."""


def test_a_command_names_the_extra_that_it_lacks(bare: Path):
    program = "from likewise.cli import main\n" + "".join(
        f"print({words!r}, main({words.split()!r}), file=sys.stderr)\n" for words in COMMANDS
    )
    expected = [
        line
        for words, said in COMMANDS.items()
        for line in ([f"{words} 0"] if said is None else [f"likewise: {said}", f"{words} 2"])
    ]
    assert run(bare, program).stderr.splitlines() == expected


def test_the_table_of_packages_is_that_of_the_project():
    """What a command says it needs is what the extra installs."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for each in PACKAGES:
        if each.extra is not None and each.name != "docstring_parser":  # of jsonargparse[signatures]
            assert any(re.match(rf"{each.name}\W", line, re.IGNORECASE) for line in extras[each.extra]), each
    listed = {re.split(r"[\[>]", line)[0].lower() for line in extras["train"]}
    assert listed <= {each.name.lower() for each in PACKAGES}
