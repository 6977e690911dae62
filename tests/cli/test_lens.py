"""``likewise lens``: a page is written and opened, names are understood, and nothing heavy is imported for it."""

from __future__ import annotations

import subprocess
import sys
import webbrowser
from pathlib import Path

import pytest

from likewise.app.errors import UserError
from likewise.cli.lens import loss_called, run
from likewise.report.lens import loss_names
from likewise.testing import loop_over


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a browser was asked to show."""
    seen: list[str] = []
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr(webbrowser, "open", lambda address: seen.append(address) or True)
    return seen


def test_the_page_is_written_and_opened(here: Path, opened: list[str], capsys: pytest.CaptureFixture[str]):
    assert run(["circle", "ProxyAnchorLoss"]) == 0
    page = here / "lens.html"
    assert opened == [page.resolve().as_uri()]
    assert capsys.readouterr().out == f"opened {page.resolve()}\n"
    assert "<title>Circle and Proxy-Anchor · likewise lens</title>" in page.read_text()


def test_it_need_not_be_opened(here: Path, opened: list[str], capsys: pytest.CaptureFixture[str]):
    assert run(["--no-open", "--out", "some/where/page.html"]) == 0
    assert opened == []
    assert (here / "some" / "where" / "page.html").is_file()
    assert capsys.readouterr().out == f"wrote {(here / 'some/where/page.html').resolve()}; open it in a browser\n"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems have a screen")
def test_without_a_screen_the_path_is_told(
    here: Path, opened: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    assert run([]) == 0
    assert opened == []  # not even a browser in the terminal
    assert "lens.html; open it in a browser" in capsys.readouterr().out


def test_a_browser_that_fails_is_no_error(
    here: Path, opened: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def fail(address: str) -> bool:
        raise webbrowser.Error("could not locate runnable browser")

    monkeypatch.setattr(webbrowser, "open", fail)
    assert run([]) == 0
    assert "open it in a browser" in capsys.readouterr().out


@loop_over(
    "typed, name",
    [
        ("Multi-similarity", "Multi-similarity"),
        ("multi similarity", "Multi-similarity"),
        ("MultiSimilarityLoss", "Multi-similarity"),
        ("multisimilarity", "Multi-similarity"),
        ("NTXent", "NT-Xent"),
        ("nt-xent", "NT-Xent"),
        ("TripletLoss", "Triplet"),
        ("triplet semi-hard", "Triplet, semi-hard"),
        ("raw+vthm", "RAW + VTHM"),
        ("ProxyNCA", "ProxyNCA"),
        ("ProxyNCAPPLoss", "ProxyNCA++"),
        ("proxynca++", "ProxyNCA++"),
    ],
)
def test_a_loss_is_called_many_things(typed: str, name: str):
    assert loss_called(typed, loss_names()) == name


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ("Multi-similarty", "there is no loss Multi-similarty; did you mean Multi-similarity?"),
        ("CircelLoss", "there is no loss CircelLoss; did you mean CircleLoss?"),
    ],
)
def test_a_near_miss(typed: str, sentence: str, here: Path):
    with pytest.raises(UserError) as refused:
        run([typed])
    assert str(refused.value) == sentence
    assert not (here / "lens.html").exists()


def test_a_stranger_is_told_what_there_is():
    with pytest.raises(UserError, match=r"there is no loss zebra; there are Angular, ArcFace, .*, Tuplet margin"):
        run(["zebra"])


def test_a_place_that_cannot_be_written_to(here: Path):
    (here / "file").write_text("")
    with pytest.raises(UserError, match=r"^the page: "):
        run(["--no-open", "--out", "file/lens.html"])


def test_torch_is_not_imported(here: Path):
    """It takes longer than all the rest."""
    program = (
        "import sys\nfrom likewise.cli.lens import run\nrun(['--no-open'])\n"
        "print(sorted({'torch', 'numpy', 'PIL', 'jsonargparse'} & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=here)
    assert result.stdout.splitlines()[-1] == "[]"
