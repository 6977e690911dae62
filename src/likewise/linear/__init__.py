"""Metric learning without a network: linear and kernel methods as scikit-learn estimators.

An estimator learns a linear map L, ``components_``; its metric is the Euclidean distance of the mapped points,
``‖L(a − b)‖``.  It learns from points with labels, or from pairs, triplets or quadruplets of points.  The package needs
the ``linear`` extra.
"""

from importlib.util import find_spec

if find_spec("sklearn") is None or find_spec("scipy") is None:
    raise ImportError("likewise.linear needs scikit-learn and scipy: pip install 'likewise[linear]'")

from likewise.linear.any_loss import LinearMetric
from likewise.linear.closed import LFDA, RCA, Covariance
from likewise.linear.files import load_embeddings
from likewise.linear.itml import ITML
from likewise.linear.kernel import Kernelized, kernel_distances
from likewise.linear.kwok import KwokTsang
from likewise.linear.lsml import LSML
from likewise.linear.mmc import MMC
from likewise.linear.neighborhood import LMNN, MCML, MLKR, NCA
from likewise.linear.online import OASIS, POLA
from likewise.linear.relative import SCML, SchultzJoachims
from likewise.linear.sparse import SDML

__all__ = [
    "ITML",
    "LFDA",
    "LMNN",
    "LSML",
    "MCML",
    "MLKR",
    "MMC",
    "NCA",
    "OASIS",
    "POLA",
    "RCA",
    "SCML",
    "SDML",
    "Covariance",
    "Kernelized",
    "KwokTsang",
    "LinearMetric",
    "SchultzJoachims",
    "kernel_distances",
    "load_embeddings",
]
