"""Metrics of embeddings: exact ranks, retrieval, verification, clustering, geometry, and confidence intervals.

Functions take all embeddings at once; `Retrieval`, `Verification` and `Clustering` collect them batch by batch.
"""

from likewise.metrics.clustering import clustering, clustering_scores
from likewise.metrics.consistency import opis
from likewise.metrics.ensembles import average_scores, concatenate
from likewise.metrics.geometry import CollapseWarning, geometry
from likewise.metrics.graded import graded_retrieval
from likewise.metrics.intervals import Interval, bootstrap, t_interval
from likewise.metrics.kmeans import KMeans, kmeans
from likewise.metrics.knn import KNNVotes, knn_accuracy, knn_votes
from likewise.metrics.labels import encode_labels
from likewise.metrics.modules import Clustering, Retrieval, Verification
from likewise.metrics.ranks import Ranks, ranks
from likewise.metrics.reidentification import reidentification, shot_ids
from likewise.metrics.retrieval import retrieval
from likewise.metrics.verification import verification

__all__ = [
    "Clustering",
    "CollapseWarning",
    "Interval",
    "KMeans",
    "KNNVotes",
    "Ranks",
    "Retrieval",
    "Verification",
    "average_scores",
    "bootstrap",
    "clustering",
    "clustering_scores",
    "concatenate",
    "encode_labels",
    "geometry",
    "graded_retrieval",
    "kmeans",
    "knn_accuracy",
    "knn_votes",
    "opis",
    "ranks",
    "reidentification",
    "retrieval",
    "shot_ids",
    "t_interval",
    "verification",
]

# Names for the other packages, in addition to the public ones.
from likewise.metrics.chunks import MEMORY as MEMORY
from likewise.metrics.precision import exact_precision as exact_precision
