"""Engines: dense, chunked and Triton evaluation of the same declarations.

`evaluate_declaration` computes a declaration on the whole matrix (dense), on chunks of it that are recomputed in the
backward pass (chunked), or in generated Triton kernels.  `likewise.engines.dispatch` chooses the engine.
"""

from likewise.engines.blending import BlendedMatrix as BlendedMatrix
from likewise.engines.chunked import ChunkedEngine
from likewise.engines.dense import DenseEngine, dense_masks
from likewise.engines.dispatch import BACKENDS, choose
from likewise.engines.evaluation import evaluate_declaration, map_rows, run
from likewise.engines.schedule import Engine

__all__ = [
    "BACKENDS",
    "ChunkedEngine",
    "DenseEngine",
    "Engine",
    "choose",
    "dense_masks",
    "evaluate_declaration",
    "map_rows",
    "run",
]

# Used by miners, losses and tools.
from likewise.engines.chosen import similarities_at as similarities_at
from likewise.engines.hinges import count_within as count_within
from likewise.engines.mapping import WholeRows as WholeRows
from likewise.engines.recompute import call_recomputed as call_recomputed
from likewise.engines.recompute import plan_chunks as plan_chunks
from likewise.engines.replay import replay as replay
from likewise.engines.schedule import compute_number as compute_number
from likewise.engines.schedule import schedule as schedule
from likewise.engines.table_chunks import TableChunks as TableChunks
