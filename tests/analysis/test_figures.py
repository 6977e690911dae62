"""Pictures: the same bytes for the same input, readable by an XML parser, and refused in one sentence."""

from __future__ import annotations

import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
import torch
from PIL import Image

from likewise.analysis.curves import sensitivities, weight_curves
from likewise.analysis.figures import draw_curves, draw_mining, draw_sensitivity, thin_line
from likewise.analysis.forces import forces, roll
from likewise.analysis.motion import animate, draw_forces
from likewise.losses import CircleLoss, ContrastiveLoss, NTXentLoss, ProxyAnchorLoss, RAWLoss, SupConLoss, TripletLoss
from likewise.miners import SemiHardMiner, ValidTripletMiner

GRID = torch.linspace(-0.9, 0.9, 7)
ASSETS = Path(__file__).parents[2] / "docs" / "assets"
NAMES = ("unified", "mining", "sensitivity", "grades", "triplet", "gallery-pairs", "gallery-proxies")


def batch() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(12, 2, generator=generator, dtype=torch.float64), torch.arange(12) // 4


def pictures() -> dict[str, object]:
    x, y = batch()
    several = {"contrastive": ContrastiveLoss(), "supcon": SupConLoss(), "proxies": ProxyAnchorLoss(3, 2).double()}
    found = {name: forces(loss, x, y) for name, loss in several.items()}
    return {
        "curves": lambda form: draw_curves(
            weight_curves(several, similarities=GRID, embeddings=x, labels=y), form, columns=2
        ),
        "sensitivity": lambda form: draw_sensitivity(sensitivities(NTXentLoss(), similarities=GRID), form),
        "mining": lambda form: draw_mining(RAWLoss(miner=ValidTripletMiner()), x, y, (0, 5), form),
        "forces": lambda form: draw_forces(found, y, form=form),
    }


@pytest.mark.parametrize("name", list(pictures()))
def test_a_picture_is_an_svg_and_always_the_same(name: str):
    torch.manual_seed(0)
    first = pictures()[name]("svg")
    torch.manual_seed(0)
    assert pictures()[name]("svg") == first
    tree = ElementTree.fromstring(first)
    assert tree.tag.endswith("svg")
    assert b"<dc:date>" not in first
    assert b"<text" not in first  # letters are shapes: no font is needed to read them
    assert len(first) < 150_000


def test_a_picture_can_be_a_png(tmp_path: Path):
    path = tmp_path / "curves.png"
    path.write_bytes(draw_curves(weight_curves(CircleLoss(), similarities=GRID), "png"))
    with Image.open(path) as image:
        assert image.mode == "RGBA"
        assert image.getpixel((0, 0))[3] == 0  # transparent: light and dark pages show through


def test_one_panel_for_each_loss():
    """A histogram and a line for either side of each panel: more losses, more lines."""
    losses = {"a": CircleLoss(), "b": CircleLoss(), "c": CircleLoss()}
    tree = ElementTree.fromstring(draw_curves(weight_curves(losses, similarities=GRID), columns=2))
    panels = [each for each in tree.iter() if each.get("id", "").startswith("axes_")]
    drawn = [panel for panel in panels if any(each.get("id", "").startswith("line2d") for each in panel.iter())]
    assert len(drawn) == 3


def test_a_thinned_line_is_the_same_line():
    across = torch.linspace(-1.0, 1.0, 200, dtype=torch.float64)
    up = torch.sigmoid(20.0 * across)
    few_across, few_up = thin_line(across, up, 0.01)
    assert len(few_across) < 40
    back = torch.tensor([_between(float(place), few_across, few_up) for place in across])
    assert float((back - up).abs().max()) <= 0.01 + 1e-12


def _between(place: float, across: list[float], up: list[float]) -> float:
    for left, right, low, high in zip(across, across[1:], up, up[1:], strict=False):
        if left <= place <= right:
            return low + (high - low) * (place - left) / (right - left)
    raise AssertionError


@pytest.mark.parametrize("dim", [2, 3])
def test_an_animation_has_its_frames(tmp_path: Path, dim: int):
    generator = torch.Generator().manual_seed(0)
    x, y = torch.randn(6, dim, generator=generator), torch.arange(6) // 2
    rolled = {"triplet": roll(TripletLoss(), x, y, steps=6), "proxies": roll(ProxyAnchorLoss(3, dim), x, y, steps=3)}
    path = animate(rolled, tmp_path / "roll.gif", frames=4, rate=5)
    with Image.open(path) as image:
        assert image.format == "GIF"
        assert image.n_frames == 4
        assert image.info["duration"] == 200
    assert [each.name for each in tmp_path.iterdir()] == ["roll.gif"]


def test_without_ffmpeg_there_is_no_mp4(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("shutil.which", lambda name: None)
    rolled = roll(ContrastiveLoss(), torch.eye(2), torch.tensor([0, 0]), steps=1)
    with pytest.raises(
        ValueError, match=r"path must end in \.gif where ffmpeg is not installed, but it is 'roll\.mp4'"
    ):
        animate(rolled, tmp_path / "roll.mp4")
    with pytest.raises(ValueError, match="ending of path must be one of"):
        animate(rolled, tmp_path / "roll.avi")


def test_without_matplotlib_the_extra_is_named(monkeypatch: pytest.MonkeyPatch):
    curves = weight_curves(CircleLoss(), similarities=GRID)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"the lens draws with matplotlib: pip install 'likewise\[train\]'"):
        draw_curves(curves)


def test_refusals_are_one_sentence():
    x, y = batch()
    with pytest.raises(ValueError, match="form must be one of"):
        draw_curves(weight_curves(CircleLoss(), similarities=GRID), "jpg")
    with pytest.raises(ValueError, match="loss must have a miner with a margin"):
        draw_mining(RAWLoss(miner=SemiHardMiner()), x, y)
    with pytest.raises(ValueError, match="two or three dimensions to be drawn, but have 4"):
        draw_forces({"it": forces(CircleLoss(), torch.randn(4, 4), torch.tensor([0, 0, 1, 1]))}, torch.zeros(4))
    with pytest.raises(ValueError, match="names must be one for each embedding or none, but there are 1"):
        draw_forces({"it": forces(CircleLoss(), x, y)}, y, ("a",))
    with pytest.raises(ValueError, match="at least one hyper-parameter"):
        draw_sensitivity({})


@pytest.mark.parametrize("name", NAMES)
def test_the_pictures_of_the_page_are_there(name: str):
    picture = (ASSETS / f"lens-{name}.svg").read_bytes()
    ElementTree.fromstring(picture)
    assert b"<dc:date>" not in picture
    assert len(picture) < 230_000
