"""Measure an embedding: exact ranks, retrieval, verification, clustering, geometry, and how sure one may be."""

from likewise.metrics.clustering import clustering, clustering_scores
from likewise.metrics.ensembles import concatenate, separated
from likewise.metrics.geometry import CollapseWarning, geometry
from likewise.metrics.intervals import Interval, bootstrap, t_interval
from likewise.metrics.kmeans import KMeans, kmeans
from likewise.metrics.labels import encode_labels
from likewise.metrics.ranks import Ranks, ranks
from likewise.metrics.retrieval import retrieval
from likewise.metrics.verification import verification

__all__ = [
    "CollapseWarning",
    "Interval",
    "KMeans",
    "Ranks",
    "bootstrap",
    "clustering",
    "clustering_scores",
    "concatenate",
    "encode_labels",
    "geometry",
    "kmeans",
    "ranks",
    "retrieval",
    "separated",
    "t_interval",
    "verification",
]

# What the other packages use beside the public names.
from likewise.metrics.tiles import MEMORY as MEMORY
from likewise.metrics.tiles import exactly as exactly
from likewise.metrics.tiles import track as track
