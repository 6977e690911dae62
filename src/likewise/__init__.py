"""likewise: deep metric learning.  Train embeddings, measure them honestly, see why a loss works.

Packages load on first use: ``import likewise`` imports nothing, and ``likewise.losses.TripletLoss`` imports
`likewise.losses`.

    >>> import likewise
    >>> likewise.losses.TripletLoss(margin=0.2)
    TripletLoss(margin=0.2)
"""

import importlib
from types import ModuleType

__version__ = "0.2.0"

__all__ = [
    "analysis",
    "app",
    "data",
    "distributed",
    "engines",
    "formula",
    "functional",
    "linear",
    "losses",
    "metrics",
    "miners",
    "progress",
    "protocols",
    "report",
    "search",
    "testing",
    "train",
    "trunks",
]


def __getattr__(name: str) -> ModuleType:
    if name not in __all__:
        raise AttributeError(f"module 'likewise' has no attribute {name!r}")
    return importlib.import_module(f"likewise.{name}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
