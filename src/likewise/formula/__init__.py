"""The language of losses: formulas, folds and terms; similarities, relations and hyper-parameters.

``__all__`` contains the names needed to write a loss: the similarity `s` (and `s_p`, that of a positive), the sides and
folds, the common functions, `per_anchor`, `per_pair` and `per_triplet`.  `FACES` lists the other public names by
module: similarities, relations, reductions, less common functions.  All of them can be imported from
`likewise.formula`.  The names at the end of this file are for the other packages of this library and may change.
"""

from likewise.formula.expressions import PerAnchor, s, s_p
from likewise.formula.folds import (
    BOTH,
    EACH_POSITIVE,
    NEGATIVES,
    POSITIVES,
    add_up,
    count,
    largest,
    logsumexp,
    mean,
    smallest,
)
from likewise.formula.hyperparameters import hyper
from likewise.formula.matrix_losses import MatrixLoss
from likewise.formula.operations import exp, log, relu, sigmoid, softplus, sqrt, square, stop_gradient, where
from likewise.formula.pair_numbers import PerPair, relevance
from likewise.formula.terms import Regularizer, per_anchor, per_pair
from likewise.formula.triplet_terms import per_triplet

__all__ = [
    "BOTH",
    "EACH_POSITIVE",
    "NEGATIVES",
    "POSITIVES",
    "MatrixLoss",
    "PerAnchor",
    "PerPair",
    "Regularizer",
    "add_up",
    "count",
    "exp",
    "hyper",
    "largest",
    "log",
    "logsumexp",
    "mean",
    "per_anchor",
    "per_pair",
    "per_triplet",
    "relevance",
    "relu",
    "s",
    "s_p",
    "sigmoid",
    "smallest",
    "softplus",
    "sqrt",
    "square",
    "stop_gradient",
    "where",
]

# The other public names.
from likewise.formula.batch import PairBatch as PairBatch
from likewise.formula.batch import RowGradients as RowGradients
from likewise.formula.batch import TableUse as TableUse
from likewise.formula.batch import has_similarity_hook as has_similarity_hook
from likewise.formula.batch import similarity_hook as similarity_hook
from likewise.formula.checks import can_read_values as can_read_values
from likewise.formula.checks import check_finite as check_finite
from likewise.formula.checks import check_squared_norms as check_squared_norms
from likewise.formula.checks import check_values as check_values
from likewise.formula.checks import embeddings_as_given as embeddings_as_given
from likewise.formula.checks import embeddings_of as embeddings_of
from likewise.formula.checks import labels_of as labels_of
from likewise.formula.checks import one_of as one_of
from likewise.formula.checks import rows_of as rows_of
from likewise.formula.checks import same_device as same_device
from likewise.formula.checks import whole_number as whole_number
from likewise.formula.declarations import Declaration as Declaration
from likewise.formula.declarations import sort_declaration as sort_declaration
from likewise.formula.declarations import term_within as term_within
from likewise.formula.expressions import Apply as Apply
from likewise.formula.expressions import Folded as Folded
from likewise.formula.expressions import Formula as Formula
from likewise.formula.expressions import Number as Number
from likewise.formula.expressions import Operand as Operand
from likewise.formula.expressions import PerReference as PerReference
from likewise.formula.expressions import Rank as Rank
from likewise.formula.expressions import Total as Total
from likewise.formula.expressions import Variable as Variable
from likewise.formula.expressions import apply as apply
from likewise.formula.expressions import is_condition as is_condition
from likewise.formula.expressions import is_number as is_number
from likewise.formula.expressions import mentions_positive as mentions_positive
from likewise.formula.folds import Count as Count
from likewise.formula.folds import Fold as Fold
from likewise.formula.folds import LogSumExp as LogSumExp
from likewise.formula.folds import Max as Max
from likewise.formula.folds import Mean as Mean
from likewise.formula.folds import Min as Min
from likewise.formula.folds import Side as Side
from likewise.formula.folds import State as State
from likewise.formula.folds import Sum as Sum
from likewise.formula.graded import GradedPairs as GradedPairs
from likewise.formula.graded import Grades as Grades
from likewise.formula.graded import Ignoring as Ignoring
from likewise.formula.graded import binarize as binarize
from likewise.formula.graded import find_levels as find_levels
from likewise.formula.hyperparameters import Hyper as Hyper
from likewise.formula.hyperparameters import check_hyperparameters as check_hyperparameters
from likewise.formula.hyperparameters import hyperparameters as hyperparameters
from likewise.formula.hyperparameters import option as option
from likewise.formula.indexing import broadcast_shape as broadcast_shape
from likewise.formula.indexing import inner_products as inner_products
from likewise.formula.indexing import pair_entries as pair_entries
from likewise.formula.indexing import take_columns as take_columns
from likewise.formula.indexing import take_rows as take_rows

# Used by engines, miners, losses and tools.
from likewise.formula.inputs import batch_from_embeddings as batch_from_embeddings
from likewise.formula.inputs import batch_from_similarities as batch_from_similarities
from likewise.formula.inputs import check_classes as check_classes
from likewise.formula.inputs import check_labels as check_labels
from likewise.formula.inputs import check_number_of_classes as check_number_of_classes
from likewise.formula.inputs import class_values as class_values
from likewise.formula.inputs import make_labels as make_labels
from likewise.formula.label_rows import Levels as Levels
from likewise.formula.label_rows import MultiLabel as MultiLabel
from likewise.formula.labels import LabelRelation as LabelRelation
from likewise.formula.labels import Labels as Labels
from likewise.formula.labels import PositiveIndex as PositiveIndex
from likewise.formula.matmul import beats_torch as beats_torch
from likewise.formula.matmul import is_onednn_faster as is_onednn_faster
from likewise.formula.matmul import multiply_columns as multiply_columns
from likewise.formula.matmul import multiply_rows as multiply_rows
from likewise.formula.matmul import multiply_with_onednn as multiply_with_onednn
from likewise.formula.matrix_losses import ClassProducts as ClassProducts
from likewise.formula.matrix_losses import RowChunk as RowChunk
from likewise.formula.matrix_losses import RowHistograms as RowHistograms
from likewise.formula.matrix_losses import RowMapper as RowMapper
from likewise.formula.matrix_losses import RowStatistics as RowStatistics
from likewise.formula.matrix_losses import map_values as map_values
from likewise.formula.operations import OPERATIONS as OPERATIONS
from likewise.formula.operations import acosh as acosh
from likewise.formula.operations import at_least as at_least
from likewise.formula.operations import cos as cos
from likewise.formula.operations import derivative as derivative
from likewise.formula.operations import evaluate as evaluate
from likewise.formula.operations import is_nonzero as is_nonzero
from likewise.formula.operations import join_conditions as join_conditions
from likewise.formula.operations import logical_not as logical_not
from likewise.formula.operations import sin as sin
from likewise.formula.operations import tanh as tanh
from likewise.formula.pair_numbers import AtPositive as AtPositive
from likewise.formula.pair_numbers import PerTriplet as PerTriplet
from likewise.formula.parts import ALIGNMENT as ALIGNMENT
from likewise.formula.parts import accumulates_in_float32 as accumulates_in_float32
from likewise.formula.parts import add_part_products as add_part_products
from likewise.formula.parts import multiplies_parts_fast as multiplies_parts_fast
from likewise.formula.parts import multiply_into_float32 as multiply_into_float32
from likewise.formula.parts import pair_parts as pair_parts
from likewise.formula.parts import split_into_parts as split_into_parts
from likewise.formula.pooling import BlendedCenters as BlendedCenters
from likewise.formula.pooling import NearestCenter as NearestCenter
from likewise.formula.pooling import Pooling as Pooling
from likewise.formula.pooling import SummedCenters as SummedCenters
from likewise.formula.precision import are_built_in as are_built_in
from likewise.formula.precision import exactly as exactly
from likewise.formula.precision import full_precision as full_precision
from likewise.formula.precision import half_of_products as half_of_products
from likewise.formula.products import multiply_pairs as multiply_pairs
from likewise.formula.reductions import ClassWeighted as ClassWeighted
from likewise.formula.reductions import Counted as Counted
from likewise.formula.reductions import Reduction as Reduction
from likewise.formula.reductions import TermValues as TermValues
from likewise.formula.reductions import Thresholded as Thresholded
from likewise.formula.reductions import check_reduction as check_reduction
from likewise.formula.reductions import counted_by as counted_by
from likewise.formula.reductions import equal_share as equal_share
from likewise.formula.reductions import reduce as reduce
from likewise.formula.relations import Masks as Masks
from likewise.formula.relations import Mined as Mined
from likewise.formula.relations import Pairs as Pairs
from likewise.formula.relations import Relation as Relation
from likewise.formula.relations import RelationLike as RelationLike
from likewise.formula.relations import Triplets as Triplets
from likewise.formula.similarities import SIMILARITIES as SIMILARITIES
from likewise.formula.similarities import SNR as SNR
from likewise.formula.similarities import Cosine as Cosine
from likewise.formula.similarities import Dot as Dot
from likewise.formula.similarities import Euclidean as Euclidean
from likewise.formula.similarities import Poincare as Poincare
from likewise.formula.similarities import Pooled as Pooled
from likewise.formula.similarities import SimilarityLike as SimilarityLike
from likewise.formula.similarities import SquaredEuclidean as SquaredEuclidean
from likewise.formula.similarities import as_similarity as as_similarity
from likewise.formula.similarity_base import Similarity as Similarity
from likewise.formula.terms import Term as Term
from likewise.formula.terms import mean_over_batch as mean_over_batch
from likewise.formula.traversal import Substitution as Substitution
from likewise.formula.traversal import ingredients as ingredients
from likewise.formula.traversal import substitute as substitute
from likewise.formula.traversal import walk as walk
from likewise.formula.triplet_terms import Choice as Choice
from likewise.formula.triplet_terms import TripletTerm as TripletTerm
from likewise.formula.unit import unit as unit
from likewise.formula.views import label_views as label_views

FACES = {
    "similarities": ("SNR", "Cosine", "Dot", "Euclidean", "Poincare", "SquaredEuclidean"),
    "similarity_base": ("Similarity",),
    "labels": ("Labels",),
    "label_rows": ("Levels", "MultiLabel"),
    "relations": ("Masks", "Pairs", "Triplets"),
    "graded": ("GradedPairs", "Grades", "Ignoring", "binarize"),
    "operations": ("acosh", "at_least", "cos", "derivative", "logical_not", "sin", "tanh"),
    "reductions": ("ClassWeighted", "TermValues", "Thresholded"),
    "pair_numbers": ("PerTriplet",),
    "indexing": ("inner_products", "pair_entries"),
    "expressions": ("Number", "PerReference"),
    "hyperparameters": ("option",),
    "terms": ("mean_over_batch",),
    "batch": ("PairBatch", "similarity_hook"),
    "checks": ("check_values",),
}
"""The other public names by the module that documents them, for callers of losses and for less common losses."""
