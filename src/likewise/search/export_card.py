"""Export of a model as a folder for model hubs: two JSON files and a model card in Markdown."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import yaml

from likewise.data import CenterCrop
from likewise.files import write_text
from likewise.search.embedding import EvalTransform
from likewise.trunks import Card

BILINEAR = 2
"""Pillow's number of the resampling filter, which preprocessor files use."""


def write_hub(
    folder: Path, card: Card, transform: EvalTransform, *, name: str | None, facts: Mapping[str, str], title: str
) -> None:
    """Write ``config.json``, ``preprocessor_config.json`` and ``README.md`` next to a model's ``model.safetensors``.

    Args:
        folder: folder of the model.
        card: the card in the file of the model.
        transform: the transform from an image to the input of the network.
        name: name of the transform, if it differs from the one that the card implies.
        facts: additional lines of the model card.
        title: title of the model card.

    Examples:
        >>> import tempfile
        >>> from likewise.search.embedding import eval_transform
        >>> from likewise.trunks import Embedder
        >>> embedder = Embedder("resnet18", 64)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     place = Path(folder)
        ...     write_hub(place, embedder.card(), eval_transform(embedder, None), name=None, facts={}, title="Birds")
        ...     print(json.loads((place / "preprocessor_config.json").read_text())["crop_size"])
        ...     print((place / "README.md").read_text().splitlines()[1])
        {'height': 224, 'width': 224}
        library_name: likewise
    """
    texts = {
        "config.json": json.dumps(config(card), indent=2, ensure_ascii=False) + "\n",
        "preprocessor_config.json": json.dumps(preprocessor(transform), indent=2) + "\n",
        "README.md": readme(card, transform, name=name, facts=facts, title=title),
    }
    for file, text in texts.items():
        write_text(folder / file, text)


def config(card: Card) -> dict[str, Any]:
    """Return the content of ``config.json``: the card of the model, and the keys that tools expect.

    Examples:
        >>> from likewise.trunks import Embedder
        >>> config(Embedder("convnet", 8).card())["hidden_size"]
        8
    """
    return {
        "model_type": "likewise",
        "architectures": ["Embedder"],
        "hidden_size": card.dim,
        "torch_dtype": "float32",
        "likewise_version": version("likewise"),
        "likewise": json.loads(card.to_json()),
    }


def preprocessor(transform: EvalTransform) -> dict[str, Any]:
    """Return the transform in the format of image processors: resize, crop, rescale, normalize.

    The format cannot express BGR or gray channels.  Such models store them under ``likewise`` and have no
    ``image_processor_type``, so that tools do not silently use a different input.  Neither can it express that images are
    first cropped to 3 : 1 and resized, which changes pixels of long and of small images slightly.

    Examples:
        >>> from likewise.search.embedding import eval_transform
        >>> from likewise.trunks import Embedder
        >>> content = preprocessor(eval_transform(Embedder("resnet18", 64), "thesis"))
        >>> content["image_processor_type"], content["size"], content["rescale_factor"]
        ('BitImageProcessor', {'shortest_edge': 256}, 0.00392156862745098)
        >>> "image_processor_type" in preprocessor(eval_transform(Embedder("bninception", 64), "thesis"))
        False
    """
    augment, scale = transform.augment, transform.augment.normalize
    height, width = augment.shape
    crop = augment.crop.size if isinstance(augment.crop, CenterCrop) else None
    sides: dict[str, int] = {"height": height, "width": width}
    resize = augment.resize
    if isinstance(resize, tuple):
        sides = {"height": resize[0], "width": resize[1]}
    elif resize is not None:
        sides = {"shortest_edge": resize}
    known = {"image_processor_type": "BitImageProcessor"} if scale.order == "RGB" else {}
    return {
        **known,
        "do_convert_rgb": True,
        "do_resize": True,
        "size": sides,
        "resample": BILINEAR,
        "do_center_crop": crop is not None,
        "crop_size": {"height": height, "width": width},
        "do_rescale": True,
        "rescale_factor": scale.white / 255.0,
        "do_normalize": True,
        "image_mean": list(scale.mean),
        "image_std": list(scale.std),
        "likewise": {"order": scale.order, "shrunk_first_to": transform.cache, "shown": transform.name},
    }


def readme(card: Card, transform: EvalTransform, *, name: str | None, facts: Mapping[str, str], title: str) -> str:
    """Return the model card: description, metrics, intended use, limits, and how to load the model.

    Examples:
        >>> from likewise.search.embedding import eval_transform
        >>> from likewise.trunks import Embedder
        >>> embedder = Embedder("convnet", 8)
        >>> card, transform = embedder.card(metrics={"R@1": 0.9}), eval_transform(embedder, "glyphs")
        >>> text = readme(card, transform, name="glyphs", facts={}, title="Glyphs")
        >>> [line for line in text.splitlines() if "| R@1" in line]
        ['| R@1 | 0.9000 |']
    """
    parts = [_front_matter(card, facts, title), f"# {title}\n", _about(card, transform, facts), _format_measured(card)]
    argument = "" if name is None else f", transform={name!r}".replace("'", '"')
    return "\n".join([*parts, _USE, _limits(card), _LOAD.replace("TRANSFORM", argument)])


def _front_matter(card: Card, facts: Mapping[str, str], title: str) -> str:
    """Return the YAML that hubs read: tags, and metrics under ``model-index``."""
    trunk = "own-trunk" if card.trunk is None else str(card.trunk["name"]).replace(":", "-")
    front: dict[str, Any] = {
        "library_name": "likewise",
        "pipeline_tag": "image-feature-extraction",
        "tags": ["likewise", "metric-learning", "image-retrieval", "image-similarity", trunk],
    }
    if card.metrics:
        data = facts.get("data", "not specified")
        metrics = [{"name": name, "type": name, "value": value} for name, value in card.metrics.items()]
        result = {"task": {"type": front["pipeline_tag"]}, "dataset": {"name": data, "type": data}, "metrics": metrics}
        front["model-index"] = [{"name": title, "results": [result]}]
    return f"---\n{yaml.safe_dump(front, sort_keys=False, allow_unicode=True)}---\n"


def _about(card: Card, transform: EvalTransform, facts: Mapping[str, str]) -> str:
    trunk = "a custom trunk" if card.trunk is None else f"`{card.trunk['name']}`"
    unit = ", of unit length: compare them by their dot product, higher is closer" if card.normalize else ""
    rows = [
        f"An image embedding: {trunk}, {card.pool} pooling, head {card.head}; {card.dim} dimensions{unit}.\n",
        f"Preprocessing: {transform.name}.\n",
    ]
    rows += [f"- {name}: {value}" for name, value in facts.items()]
    if card.classes:
        rows += [f"- trained on {len(card.classes):,} classes, such as {', '.join(card.classes[:5])}"]
    return "\n".join([*rows, ""])


def _format_measured(card: Card) -> str:
    if not card.metrics:
        return (
            "## Metrics\n\nNo metrics are stored with the model. Measure it on your own images before you rely on it.\n"
        )
    rows = [f"| {name} | {value:.4f} |" for name, value in card.metrics.items()]
    return "\n".join(["## Metrics\n", "As fractions, as recorded in training.\n", "| | |", "| --- | --- |", *rows, ""])


_USE = """## Intended use

Use it to find similar images in a collection of the kind that it was trained on, to group them, and to decide whether
two images show the same thing. It returns vectors; a threshold decides what counts as the same, and should be chosen on
your own labeled images.
"""


def _limits(card: Card) -> str:
    rows = [
        "## Limitations\n",
        "- On images of another kind than its training images, its neighbors may not be meaningful.",
        "- A similarity is not a probability"
        + (" without the calibration in `config.json`." if card.calibration else "."),
        "- It inherits the biases of its training images; it was not evaluated for use on people, and must"
        " not be used for decisions about them.",
        "",
    ]
    return "\n".join(rows)


_LOAD = """## How to load it

```python
from likewise.search import Encoder

encoder = Encoder.load("model.safetensors"TRANSFORM)
vectors = encoder.embed(["a.jpg", "b.jpg"])
print(vectors[0] @ vectors[1])
```

`config.json` holds the model's card, `preprocessor_config.json` the preprocessing.
Without likewise: `model.safetensors` is a plain state dict; `likewise export --format onnx torch` writes graphs that
need neither.
"""
