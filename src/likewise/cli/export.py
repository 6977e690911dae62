"""``likewise export``: a model for other programs, compared with torch before it is left there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from likewise.app import EXPECTED, UserError, chosen_model, sentence
from likewise.cli.arguments import Arguments
from likewise.cli.pictures import add_images_option
from likewise.search import EXPORT_FORMATS, export_model


def run(words: Sequence[str]) -> int:
    """Write a model as ONNX, as a program of torch.export, or as a folder for a model hub.

    Examples:
        >>> run(["nowhere", "-o", "birds"])
        Traceback (most recent call last):
        likewise.app.errors.UserError: there is no model nowhere: give a file that ends in .safetensors, or ...
    """
    options = Arguments(
        "export",
        "Write a model for other programs. What is written is read again and compared with torch on random images; a "
        "file that differs is not left there.",
    )
    options.add_argument(
        "model", metavar="MODEL", type=Path, help="a model (.safetensors), or a run's folder: its best"
    )
    options.add_argument("-o", "--out", metavar="FOLDER", type=Path, required=True, help="where to")
    options.add_argument(
        "--format",
        metavar="NAME",
        nargs="+",
        choices=EXPORT_FORMATS,
        default=["onnx"],
        help="one or more: onnx (default), torch (a .pt2 for torch.export.load), hub (a folder with a model card)",
    )
    options.add_argument(
        "--with-preprocessing",
        action="store_true",
        help="the graph takes uint8 images (B, H, W, 3) of any one size, and resizes, crops and scales inside",
    )
    add_images_option(options)
    options.add_argument("--title", metavar="TEXT", help="what the model card calls it (default: the folder's name)")
    given = options.parse_args(words)
    chosen = chosen_model(given.model, given.images)
    if given.with_preprocessing and set(given.format) == {"hub"}:
        options.error("--with-preprocessing is for onnx and torch: a hub's folder has no graph")
    try:
        done = export_model(
            chosen.file,
            given.out,
            formats=given.format,
            preprocessing=given.with_preprocessing,
            images=chosen.images,
            facts=chosen.facts,
            title=given.title,
        )
    except (*EXPECTED, ArithmeticError) as refusal:
        raise UserError(f"the export of {chosen.file}: {sentence(refusal)}") from refusal
    for each in done:
        print(given.out / each.files[0])
        print(f"  {each}")
    print(f"what was compared: {given.out / 'export.json'}")
    return 0
