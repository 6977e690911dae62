"""Export a model for other programs."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path

from likewise.app.errors import EXPECTED, Note, UserError, sentence
from likewise.app.models import resolve_model
from likewise.search import ExportedModel, export_model


def export(
    model: str | Path,
    out: str | Path,
    *,
    formats: Sequence[str] | None = None,
    preprocessing: bool = True,
    transform: str | None = None,
    title: str | None = None,
) -> list[ExportedModel]:
    """Write a model as ONNX, as a `torch.export` program, or as a folder for a model hub.

    The written file is read back and compared with torch on random images; a file that differs is deleted.

    Args:
        model: a ``.safetensors`` file, the folder of a run (its best model), or the name of a published network.
        out: the folder, or a file that ends in ``.onnx`` or ``.pt2``.
        formats: one or more of ``"onnx"``, ``"torch"`` (``model.pt2`` for ``torch.export.load``) and ``"hub"``; by
            default ONNX, or what the file's name ends in.
        preprocessing: let the graph take uint8 images ``(B, H, W, 3)`` of any one size.
        transform: the name of a transform; by default that of the model's run, or what its card implies.
        title: the title of the model card; by default the folder's name.

    Raises:
        UserError: an argument is invalid, or the written file differs from torch.

    Examples:
        >>> import tempfile
        >>> from likewise.trunks import Embedder
        >>> folder = Path(tempfile.mkdtemp())
        >>> Embedder("convnet", 8).save(folder / "model.safetensors")
        >>> [done] = export(folder / "model.safetensors", folder / "out", formats=["hub"], transform="glyphs")
        >>> done.files
        ('model.safetensors', 'config.json', 'preprocessor_config.json', 'README.md')
    """
    source = resolve_model(model, transform)
    if source.file is not None and source.read_card().other is not None:
        warnings.warn(f"{source.place} has two encoders: only the image encoder is exported", Note, stacklevel=2)
    try:
        with source.as_file() as file:
            return export_model(
                file,
                out,
                formats=formats,
                preprocessing=preprocessing,
                transform=source.transform,
                facts=source.facts,
                title=title,
            )
    except (*EXPECTED, ArithmeticError) as refusal:
        raise UserError(f"the export of {source.place}: {sentence(refusal)}") from refusal
