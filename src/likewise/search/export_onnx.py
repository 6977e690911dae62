"""ONNX files: writing them, and running them in onnxruntime."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.export import ExportedProgram

EXTRA = "an ONNX file needs onnx, onnxscript and onnxruntime: pip install 'likewise[export]'"

OPSET = 20
"""The version of the ONNX operators; runtimes of recent years support it."""


def write_onnx(program: ExportedProgram, path: Path, metadata: Mapping[str, str], *, open_sides: Sequence[str]) -> None:
    """Write an exported program as ONNX, with metadata in the file.

    Args:
        program: the result of `torch.export`; its first input becomes ``images``, its result ``embeddings``.
        path: the file.
        metadata: texts by name, stored in the file.
        open_sides: names of the first dimensions of the images, which may have any size.

    Examples:
        >>> import tempfile, torch
        >>> from likewise.trunks import Embedder
        >>> shapes = ({0: torch.export.Dim("batch")},)
        >>> embedder, images = Embedder("convnet", 8).eval(), torch.zeros(2, 1, 32, 32)
        >>> program = torch.export.export(embedder, (images,), dynamic_shapes=shapes)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_onnx(program, Path(folder) / "model.onnx", {"made by": "likewise"}, open_sides=["batch"])
        ...     print(onnx_runner(Path(folder) / "model.onnx")(images.numpy()).shape)
        (2, 8)
    """
    try:
        import onnx
        import onnxruntime  # type: ignore[import-untyped,import-not-found,unused-ignore] # noqa: F401
        import onnxscript  # type: ignore[import-untyped,import-not-found,unused-ignore] # noqa: F401
    except ImportError as missing:
        raise ImportError(EXTRA) from missing
    with _quiet():
        made = torch.onnx.export(
            program,
            dynamo=True,
            opset_version=OPSET,
            input_names=["images"],
            output_names=["embeddings"],
            verbose=False,
        )
    assert made is not None
    made.model.metadata_props.update(metadata)
    proto = made.model_proto
    _rename_sides(proto.graph, open_sides)
    onnx.save(proto, path, format="protobuf")


def _rename_sides(graph: Any, names: Sequence[str]) -> None:
    """Rename dimensions of any size from torch's numbered names to ours."""
    [images] = graph.input
    old = [side.dim_param for side in images.type.tensor_type.shape.dim[: len(names)]]
    renamed = dict(zip(old, names, strict=True))
    for value in [*graph.input, *graph.output, *graph.value_info]:
        for side in value.type.tensor_type.shape.dim:
            if side.dim_param in renamed:
                side.dim_param = renamed[side.dim_param]


def onnx_runner(path: Path) -> Callable[[NDArray[Any]], NDArray[np.float32]]:
    """Return a function that runs an ONNX file on images, on the CPU.

    Args:
        path: a file that `write_onnx` wrote.

    Examples:
        >>> onnx_runner(Path("nowhere.onnx"))
        Traceback (most recent call last):
        FileNotFoundError: there is no file nowhere.onnx
    """
    try:
        import onnxruntime  # type: ignore[import-untyped,import-not-found,unused-ignore]
    except ImportError as missing:
        raise ImportError(EXTRA) from missing
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # only errors
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])

    def run(images: NDArray[Any]) -> NDArray[np.float32]:
        [embeddings] = session.run(["embeddings"], {"images": images})
        output: NDArray[np.float32] = embeddings
        return output

    return run


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress warnings of the exporter about its internals and about missing packages."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
