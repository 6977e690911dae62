"""The language of losses: similarities, formulas, folds, relations, terms and hyper-parameters.

To write a loss, you need the similarity `s` (and `s_p`, that of a positive), the sides and folds, a few functions, and
`per_anchor`, `per_pair` or `per_triplet`; to call one, a relation or a similarity.  `__all__` lists these names.  The other
packages of the library also import the names below `__all__`; they may change.
"""

from likewise.formula.batch import PairBatch, similarity_hook
from likewise.formula.checks import check_values
from likewise.formula.expressions import (
    Number,
    PerAnchor,
    PerReference,
    s,
    s_p,
)
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
from likewise.formula.hyperparameters import hyper, option
from likewise.formula.operations import (
    acosh,
    at_least,
    cos,
    derivative,
    exp,
    log,
    logical_not,
    relu,
    sigmoid,
    sin,
    softplus,
    sqrt,
    square,
    stop_gradient,
    tanh,
    where,
)
from likewise.formula.pair_numbers import PerPair, PerTriplet, inner_products, pair_entries
from likewise.formula.reductions import ClassWeighted, TermValues, Thresholded
from likewise.formula.relations import Labels, Masks, Pairs, Triplets
from likewise.formula.similarities import SNR, Cosine, Dot, Euclidean, Poincare, Similarity, SquaredEuclidean
from likewise.formula.terms import (
    MatrixLoss,
    Regularizer,
    mean_over_batch,
    per_anchor,
    per_pair,
    per_triplet,
)

__all__ = [
    "BOTH",
    "EACH_POSITIVE",
    "NEGATIVES",
    "POSITIVES",
    "SNR",
    "ClassWeighted",
    "Cosine",
    "Dot",
    "Euclidean",
    "Labels",
    "Masks",
    "MatrixLoss",
    "Number",
    "PairBatch",
    "Pairs",
    "PerAnchor",
    "PerPair",
    "PerReference",
    "PerTriplet",
    "Poincare",
    "Regularizer",
    "Similarity",
    "SquaredEuclidean",
    "TermValues",
    "Thresholded",
    "Triplets",
    "acosh",
    "add_up",
    "at_least",
    "check_values",
    "cos",
    "count",
    "derivative",
    "exp",
    "hyper",
    "inner_products",
    "largest",
    "log",
    "logical_not",
    "logsumexp",
    "mean",
    "mean_over_batch",
    "option",
    "pair_entries",
    "per_anchor",
    "per_pair",
    "per_triplet",
    "relu",
    "s",
    "s_p",
    "sigmoid",
    "similarity_hook",
    "sin",
    "smallest",
    "softplus",
    "sqrt",
    "square",
    "stop_gradient",
    "tanh",
    "where",
]

# For engines, miners, losses and tools.
from likewise.formula.batch import batch_from_embeddings as batch_from_embeddings
from likewise.formula.batch import batch_from_similarities as batch_from_similarities
from likewise.formula.batch import check_classes as check_classes
from likewise.formula.batch import check_number_of_classes as check_number_of_classes
from likewise.formula.batch import class_values as class_values
from likewise.formula.batch import has_similarity_hook as has_similarity_hook
from likewise.formula.batch import same_half as same_half
from likewise.formula.checks import can_read_values as can_read_values
from likewise.formula.checks import check_squared_norms as check_squared_norms
from likewise.formula.checks import embeddings_as_given as embeddings_as_given
from likewise.formula.checks import embeddings_of as embeddings_of
from likewise.formula.checks import full_precision as full_precision
from likewise.formula.checks import labels_of as labels_of
from likewise.formula.checks import one_of as one_of
from likewise.formula.checks import same_device as same_device
from likewise.formula.checks import whole_number as whole_number
from likewise.formula.expressions import Apply as Apply
from likewise.formula.expressions import Folded as Folded
from likewise.formula.expressions import Formula as Formula
from likewise.formula.expressions import Operand as Operand
from likewise.formula.expressions import Rank as Rank
from likewise.formula.expressions import Substitution as Substitution
from likewise.formula.expressions import Total as Total
from likewise.formula.expressions import Variable as Variable
from likewise.formula.expressions import apply as apply
from likewise.formula.expressions import ingredients as ingredients
from likewise.formula.expressions import is_condition as is_condition
from likewise.formula.expressions import is_number as is_number
from likewise.formula.expressions import mentions_positive as mentions_positive
from likewise.formula.expressions import substitute as substitute
from likewise.formula.expressions import walk as walk
from likewise.formula.folds import Count as Count
from likewise.formula.folds import Fold as Fold
from likewise.formula.folds import LogSumExp as LogSumExp
from likewise.formula.folds import Max as Max
from likewise.formula.folds import Mean as Mean
from likewise.formula.folds import Min as Min
from likewise.formula.folds import Side as Side
from likewise.formula.folds import State as State
from likewise.formula.folds import Sum as Sum
from likewise.formula.hyperparameters import Hyper as Hyper
from likewise.formula.hyperparameters import check_hyperparameters as check_hyperparameters
from likewise.formula.hyperparameters import hyperparameters as hyperparameters
from likewise.formula.operations import OPERATIONS as OPERATIONS
from likewise.formula.operations import evaluate as evaluate
from likewise.formula.operations import is_nonzero as is_nonzero
from likewise.formula.pair_numbers import AtPositive as AtPositive
from likewise.formula.pair_numbers import broadcast_shape as broadcast_shape
from likewise.formula.reductions import Counted as Counted
from likewise.formula.reductions import Reduction as Reduction
from likewise.formula.reductions import check_reduction as check_reduction
from likewise.formula.reductions import counted_by as counted_by
from likewise.formula.reductions import equal_share as equal_share
from likewise.formula.reductions import reduce as reduce
from likewise.formula.relations import Mined as Mined
from likewise.formula.relations import PositiveIndex as PositiveIndex
from likewise.formula.relations import Relation as Relation
from likewise.formula.relations import RelationLike as RelationLike
from likewise.formula.similarities import SIMILARITIES as SIMILARITIES
from likewise.formula.similarities import Pooled as Pooled
from likewise.formula.similarities import SimilarityLike as SimilarityLike
from likewise.formula.similarities import as_similarity as as_similarity
from likewise.formula.similarities import unit as unit
from likewise.formula.terms import Choice as Choice
from likewise.formula.terms import Declaration as Declaration
from likewise.formula.terms import RowChunk as RowChunk
from likewise.formula.terms import RowMapper as RowMapper
from likewise.formula.terms import Term as Term
from likewise.formula.terms import TripletTerm as TripletTerm
from likewise.formula.terms import map_values as map_values
from likewise.formula.terms import sort_declaration as sort_declaration
from likewise.formula.terms import term_within as term_within
from likewise.formula.views import label_views as label_views
