"""The algebra of losses: similarities, formulas, folds, relations and what a loss declares."""

from likewise.formula.batch import PairBatch
from likewise.formula.checks import check_values
from likewise.formula.expressions import (
    Folded,
    Formula,
    Number,
    PerAnchor,
    PerReference,
    Rank,
    Total,
    Variable,
    apply,
    at_least,
    derivative,
    evaluate,
    exp,
    ingredients,
    relu,
    s,
    sigmoid,
    softplus,
    sqrt,
    square,
    stop_gradient,
    walk,
    where,
)
from likewise.formula.folds import (
    BOTH,
    NEGATIVES,
    POSITIVES,
    Count,
    Fold,
    LogSumExp,
    Max,
    Mean,
    Min,
    Side,
    Sum,
    add_up,
    count,
    largest,
    logsumexp,
    mean,
    smallest,
)
from likewise.formula.hyperparameters import Hyper, check_hyperparameters, hyper, hyperparameters, option
from likewise.formula.relations import Labels, Masks, Mined, Pairs, Relation, Triplets
from likewise.formula.similarities import SNR, Cosine, Dot, Euclidean, Similarity, SquaredEuclidean, as_similarity, unit
from likewise.formula.terms import (
    FromProblem,
    MatrixLoss,
    Regularizer,
    Term,
    TermValues,
    mean_over_batch,
    per_anchor,
    per_pair,
    reduce,
)

__all__ = [
    "BOTH",
    "NEGATIVES",
    "POSITIVES",
    "SNR",
    "Cosine",
    "Count",
    "Dot",
    "Euclidean",
    "Fold",
    "Folded",
    "Formula",
    "FromProblem",
    "Hyper",
    "Labels",
    "LogSumExp",
    "Masks",
    "MatrixLoss",
    "Max",
    "Mean",
    "Min",
    "Mined",
    "Number",
    "PairBatch",
    "Pairs",
    "PerAnchor",
    "PerReference",
    "Rank",
    "Regularizer",
    "Relation",
    "Side",
    "Similarity",
    "SquaredEuclidean",
    "Sum",
    "Term",
    "TermValues",
    "Total",
    "Triplets",
    "Variable",
    "add_up",
    "apply",
    "as_similarity",
    "at_least",
    "check_hyperparameters",
    "check_values",
    "count",
    "derivative",
    "evaluate",
    "exp",
    "hyper",
    "hyperparameters",
    "ingredients",
    "largest",
    "logsumexp",
    "mean",
    "mean_over_batch",
    "option",
    "per_anchor",
    "per_pair",
    "reduce",
    "relu",
    "s",
    "sigmoid",
    "smallest",
    "softplus",
    "sqrt",
    "square",
    "stop_gradient",
    "unit",
    "walk",
    "where",
]

# What the other packages use beside the public names.
from likewise.formula.batch import batch_from_embeddings as batch_from_embeddings
from likewise.formula.batch import batch_from_similarities as batch_from_similarities
from likewise.formula.batch import check_classes as check_classes
from likewise.formula.batch import class_values as class_values
from likewise.formula.batch import has_similarity_hook as has_similarity_hook
from likewise.formula.batch import same_half as same_half
from likewise.formula.batch import similarity_hook as similarity_hook
from likewise.formula.checks import can_read_values as can_read_values
from likewise.formula.checks import embeddings_as_given as embeddings_as_given
from likewise.formula.checks import embeddings_of as embeddings_of
from likewise.formula.checks import full_precision as full_precision
from likewise.formula.checks import labels_of as labels_of
from likewise.formula.checks import one_of as one_of
from likewise.formula.checks import same_device as same_device
from likewise.formula.checks import whole_number as whole_number
from likewise.formula.expressions import OPERATIONS as OPERATIONS
from likewise.formula.expressions import Apply as Apply
from likewise.formula.expressions import Operand as Operand
from likewise.formula.expressions import is_nonzero as is_nonzero
from likewise.formula.folds import State as State
from likewise.formula.folds import check_side as check_side
from likewise.formula.similarities import SIMILARITIES as SIMILARITIES
from likewise.formula.similarities import SimilarityLike as SimilarityLike
from likewise.formula.terms import REDUCTIONS as REDUCTIONS
from likewise.formula.terms import Declaration as Declaration
from likewise.formula.terms import Reduction as Reduction
from likewise.formula.terms import equal_share as equal_share
from likewise.formula.terms import made_for as made_for
from likewise.formula.terms import sort_declaration as sort_declaration
