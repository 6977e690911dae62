"""``likewise export``: write a model for other programs and verify it against torch."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from likewise.app import export
from likewise.cli.arguments import Arguments
from likewise.cli.image_options import MODEL_HELP, add_transform_option
from likewise.search import EXPORT_FORMATS


def run(words: Sequence[str]) -> int:
    """Write a model as ONNX, as a torch.export program, or as a folder for a model hub.

    Examples:
        >>> run(["nowhere", "-o", "birds"])
        Traceback (most recent call last):
        likewise.app.errors.UserError: there is no model nowhere: give a file that ends in .safetensors, ...
    """
    parser = Arguments(
        "export",
        "Export a model for other programs. The written file is read back and compared with torch on random images; a "
        "file that differs is deleted.",
    )
    parser.add_argument("model", metavar="MODEL", help=MODEL_HELP)
    parser.add_argument(
        "-o", "--out", metavar="PLACE", type=Path, required=True, help="a folder, or a .onnx or .pt2 file"
    )
    parser.add_argument(
        "--format",
        metavar="NAME",
        nargs="+",
        choices=EXPORT_FORMATS,
        help="one or more: onnx (default), torch (a .pt2 for torch.export.load), hub (a folder with a model card)",
    )
    parser.add_argument(
        "--without-preprocessing",
        action="store_true",
        help="the graph takes preprocessed float32 images (B, C, h, w) (default: uint8 images "
        "(B, H, W, 3) of any one size)",
    )
    add_transform_option(parser)
    parser.add_argument("--title", metavar="TEXT", help="the title of the model card (default: the folder's name)")
    options = parser.parse_args(words)
    exports = export(
        options.model,
        options.out,
        formats=options.format,
        preprocessing=not options.without_preprocessing,
        transform=options.transform,
        title=options.title,
    )
    folder = options.out.parent if options.out.is_file() else options.out
    for each in exports:
        print(folder / each.files[0])
        print(f"  {each}")
    if options.out.is_dir():
        print(f"details of the comparison: {options.out / 'export.json'}")
    if any("embed.py" in each.files for each in exports):
        print(f"next, without torch: {shlex.join(['python', str(options.out / 'embed.py'), 'a.jpg'])}")
    return 0
