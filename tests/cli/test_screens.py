"""What stands on a terminal: it fits, it is quick, and it has no color where nobody sees it."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from importlib import import_module
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest
from PIL import Image

from likewise.app.objects import KINDS, import_class
from likewise.cli import COMMANDS, doctor, main, packages
from likewise.cli.formulas import describe, readable
from likewise.cli.screen import columns
from likewise.formula.hyperparameters import hyperparameters
from likewise.testing import loop_over


def test_every_command_is_there():
    for name, command in COMMANDS.items():
        function = getattr(import_module(command.module), command.function)
        assert list(inspect.signature(function).parameters) == ["words"], name


@pytest.mark.parametrize("words", [[], ["--help"], ["-h"], ["help"]])
def test_the_overview_teaches(words: list[str], capsys: pytest.CaptureFixture[str]):
    assert main(words) == 0
    lines = capsys.readouterr().out.splitlines()
    for name, command in COMMANDS.items():
        assert any(line.strip().startswith(name) and command.help in line for line in lines)
    assert sum(line.startswith("  likewise ") for line in lines) == 4
    assert max(map(len, lines)) <= 86  # the examples are commands, which are not broken


def test_the_version(capsys: pytest.CaptureFixture[str]):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("likewise 0.")


@pytest.mark.parametrize(
    ("word", "sentence"),
    [
        ("trian", "there is no command trian; did you mean train?"),
        ("zzz", "there is no command zzz; likewise --help lists the commands"),
    ],
)
def test_a_mistyped_command(word: str, sentence: str, capsys: pytest.CaptureFixture[str]):
    assert main([word]) == 2
    assert capsys.readouterr().err == f"likewise: {sentence}\n"


def test_on_a_terminal_a_refusal_without_a_command_names_the_help(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    sentence = "likewise: nowhere must be the folder of a run, but it has no run.yaml\n"
    assert main(["evaluate", "nowhere"]) == 2
    assert capsys.readouterr().err == sentence
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert main(["evaluate", "nowhere"]) == 2
    assert capsys.readouterr().err == f"{sentence}next: likewise evaluate --help\n"
    assert main(["evalaute"]) == 2
    assert "next:" not in capsys.readouterr().err  # it has a suggestion already


@loop_over("words", [["--help"], ["losses"], ["trunks"], ["datasets"]])
def test_quick_commands_do_not_wait_for_torch(words: list[str]):
    program = (
        "import sys\n"
        "from likewise.cli import main\n"
        f"assert main({words!r}) == 0\n"
        "assert not {'torch', 'numpy', 'jsonargparse', 'PIL'} & set(sys.modules)\n"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert "\033" not in result.stdout


@pytest.mark.parametrize("width", [50, 80, 200])
@pytest.mark.parametrize("command", ["losses", "trunks", "datasets"])
def test_listings_fit(command: str, width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setenv("COLUMNS", str(width))
    assert main([command]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= min(width, 100)


@loop_over("name", KINDS["loss"].names())
def test_a_loss_is_described_from_its_own_declaration(name: str, capsys: pytest.CaptureFixture[str]):
    assert main(["losses", name]) == 0
    text = capsys.readouterr().out
    assert "\\" not in text  # no command of LaTeX is left
    assert "$" not in text
    assert "`" not in text
    loss = import_class(f"likewise.losses.{name}")
    for option, declared in (hyperparameters(loss) if hasattr(loss, "__dataclass_fields__") else {}).items():
        line = next(line for line in text.splitlines() if line.startswith(f"  --loss.{option} "))
        default = inspect.signature(loss).parameters[option].default
        assert ("none" if default is None else str(default)) in line.split()
        assert declared.limits() in " ".join(text.split())
    assert f"likewise train --loss {name}" in text


@pytest.mark.parametrize(("command", "name"), [("datasets", "CUB200"), ("trunks", "resnet50"), ("trunks", "convnet")])
def test_data_sets_and_trunks_are_described(command: str, name: str, capsys: pytest.CaptureFixture[str]):
    assert main([command, name.upper()]) == 0
    text = capsys.readouterr().out
    assert {"CUB200": "--data.root", "resnet50": "He et al. 2016", "convnet": "none published"}[name] in text


def test_a_sheet_of_random_images(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Training images, each of another class: those of a folder's sealed classes are not among them."""
    for number in range(10):
        (tmp_path / "pictures" / f"class{number}").mkdir(parents=True)
        Image.new("RGB", (20, 16), (20 * number, 0, 0)).save(tmp_path / "pictures" / f"class{number}" / "a.png")
    words = ["datasets", "imagefolder", "--data.root", str(tmp_path / "pictures"), "--columns", "4"]
    assert main([*words, "--sheet", str(tmp_path / "sheet.png")]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'sheet.png'}\n"
    with Image.open(tmp_path / "sheet.png") as sheet:
        colors = {color for _, color in sheet.getcolors(1 << 24)}
    assert len(colors & {(20 * number, 0, 0) for number in range(10)}) == 8
    assert main([*words, "--sheet", str(tmp_path / "sheet.txt")]) == 2
    assert "--sheet must be a picture such as sheet.png, but it is " in capsys.readouterr().err


OWN = """
from torch import nn
from likewise.formula import NEGATIVES, hyper, per_pair, relu, s
from likewise.losses import PairLoss

class PushApart(PairLoss):
    margin: float = hyper(default=0.25, help="where negatives stop to matter", at_least=-1.0, search=(0.0, 1.0))

    def declare(self):
        return per_pair(NEGATIVES, relu(s - self.margin))

class Pull(nn.Module):
    "Pulls everything to the origin."

    def __init__(self, num_classes: int, strength: float = 1.0):
        super().__init__()
        self.strength = strength

    def forward(self, embeddings, labels):
        return self.strength * embeddings.square().mean()

class Twice(nn.Module):
    def __init__(self, inner: str = "mean"):
        super().__init__()
        self.loss = PushApart(reduction=inner)

    def forward(self, embeddings, labels):
        return 2.0 * self.loss(embeddings, labels)
"""


def test_a_loss_of_ones_own_is_described_and_shown(here: Path, capsys: pytest.CaptureFixture[str]):
    """By its import path, from a file in the current folder; with what the library says of inherited options."""
    (here / "own_for_screens.py").write_text(OWN)
    assert main(["losses", "own_for_screens.PushApart"]) == 0
    described = " ".join(capsys.readouterr().out.split())
    assert "own_for_screens.PushApart options" in described  # no docstring, and no signature in its place
    assert "--loss.margin 0.25 where negatives stop to matter; ≥ -1" in described
    assert "--loss.miner none a miner of likewise.miners" in described
    assert described.endswith("likewise train --loss own_for_screens.PushApart")
    assert main(["losses", "own_for_screens.Pull"]) == 0
    described = " ".join(capsys.readouterr().out.split())
    assert "Pulls everything to the origin. options" in described
    assert "num_classes" not in described
    assert main(["losses", "own_for_screens.Nothing"]) == 2
    assert capsys.readouterr().err == "likewise: own_for_screens has no Nothing\n"

    words = ["lens", "own_for_screens.PushApart", "circle", "own_for_screens.Twice", "--no-open"]
    assert main(words) == 0
    page = (here / "lens.html").read_text()
    assert "<title>PushApart and Circle · likewise lens</title>" in page
    assert "h_margin" in page.partition('"PushApart": {')[2]  # the formula, with its slider
    assert "It is shown by the weight curves" in page.partition('"Twice": {')[2]
    capsys.readouterr()
    assert main(["lens", "own_for_screens.Pull", "--no-open"]) == 2
    assert capsys.readouterr().err.startswith("likewise: the loss own_for_screens.Pull: Pull computed no similarity")


def test_an_unknown_name(capsys: pytest.CaptureFixture[str]):
    assert main(["losses", "multisim"]) == 2
    assert (
        capsys.readouterr().err
        == "likewise: there is no multisim among the losses; did you mean MultiSimilarityLoss?\n"
    )


@loop_over(
    "latex, plain",
    [
        (r"\frac{1}{|P_i|}\sum_{j\in P_i}[m-s_{ij}]_+", "1/|P_i| Σ_{j ∈ P_i}[m - s_ij]_+"),
        (r"-\log\frac{e^{s/\tau}}{\sum_c e^{s_c/\tau}}", "- log[e^{s/τ} / (Σ_c e^{s_c/τ})]"),
        (r"\mathrm{softplus}(\sigma\cos\theta)", "softplus(σ cos θ)"),
        (r"\sqrt{2-2x\cdot y}", "√(2 - 2x·y)"),
    ],
)
def test_formulas_without_latex(latex: str, plain: str):
    assert readable(latex) == plain


def test_a_description_has_formula_and_source():
    told = describe(import_class("likewise.losses.CircleLoss"))
    assert any(text.startswith("\tsoftplus(") for text in told.paragraphs)
    assert any("Sun et al. 2020" in text for text in told.paragraphs)
    assert set(told.arguments) == {"margin", "gamma"}


def test_the_doctor_finds_everything_needed(capsys: pytest.CaptureFixture[str]):
    assert main(["doctor"]) == 0
    text = capsys.readouterr().out
    assert re.search(r"\d+ of 9 tasks are ready", text)
    for package in ("torch", "umap-learn", "fonts", "cache", "cpu", "python"):
        assert f"  {package} " in text


def test_the_doctor_says_what_is_missing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    real, there = doctor.version, packages.find_spec

    def version(package: str) -> str:
        if package == "numpy":
            raise PackageNotFoundError(package)
        return real(package)

    monkeypatch.setattr(doctor, "version", version)
    monkeypatch.setattr(packages, "find_spec", lambda module: None if module == "fastapi" else there(module))
    assert main(["doctor"]) == 1
    text = capsys.readouterr().out
    assert "MISSING: pip install numpy" in text
    assert "index, search, serve missing: fastapi; pip install 'likewise[search]'" in " ".join(text.split())
    assert text.endswith("missing or broken: numpy\n")


def test_the_doctor_looks_at_the_cache(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setattr(doctor.os, "access", lambda place, mode: False)
    assert main(["doctor"]) == 1
    assert "set LIKEWISE_CACHE to another folder" in " ".join(capsys.readouterr().out.split())


def test_a_path_is_not_broken(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "40")
    path = "/" + "folder/" * 8 + "fonts"
    assert columns([("fonts", f"for glyphs: {path}")]).split() == ["fonts", "for", "glyphs:", path]


def test_as_a_module():
    result = subprocess.run([sys.executable, "-m", "likewise.cli", "losess"], capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (2, "likewise: there is no command losess; did you mean losses?\n")


def test_a_closed_pipe_is_no_error():
    result = subprocess.run(
        f"{sys.executable} -m likewise.cli losses | head -1", shell=True, capture_output=True, text=True
    )
    assert result.stderr == ""
