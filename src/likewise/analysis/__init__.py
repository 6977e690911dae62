"""The lens: pair weights, closed forms, equivalence, curves and forces of losses."""

from likewise.analysis.catalog import Entry, catalog
from likewise.analysis.closed import closed_weights, no_closed_form, weight_formulas
from likewise.analysis.curves import GRID, Curve, Curves, sensitivities, sensitivity, weight_curves
from likewise.analysis.equivalence import (
    PairDifference,
    Verdict,
    WeightedEquivalent,
    equivalent_weighted_loss,
    gradient_equivalent,
    learned_elsewhere,
)
from likewise.analysis.figures import draw_curves, draw_mining, draw_sensitivity
from likewise.analysis.forces import Forces, Trajectory, forces, roll
from likewise.analysis.lens import LossScript, script_of, write_scripts
from likewise.analysis.motion import animate, draw_forces
from likewise.analysis.recorder import Recorder
from likewise.analysis.signs import NegativeWeight, negative_weights
from likewise.analysis.similarity_table import Depends, Follows, derive, similarity_table
from likewise.analysis.stage import Typical
from likewise.analysis.weights import Weighed, Weighing, pair_weights, weigh

__all__ = [
    "GRID",
    "Curve",
    "Curves",
    "Depends",
    "Entry",
    "Follows",
    "Forces",
    "LossScript",
    "NegativeWeight",
    "PairDifference",
    "Recorder",
    "Trajectory",
    "Typical",
    "Verdict",
    "Weighed",
    "Weighing",
    "WeightedEquivalent",
    "animate",
    "catalog",
    "closed_weights",
    "derive",
    "draw_curves",
    "draw_forces",
    "draw_mining",
    "draw_sensitivity",
    "equivalent_weighted_loss",
    "forces",
    "gradient_equivalent",
    "learned_elsewhere",
    "negative_weights",
    "no_closed_form",
    "pair_weights",
    "roll",
    "script_of",
    "sensitivities",
    "sensitivity",
    "similarity_table",
    "weigh",
    "weight_curves",
    "weight_formulas",
    "write_scripts",
]
