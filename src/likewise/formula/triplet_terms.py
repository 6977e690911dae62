"""Terms over triplets: the triplets that a rule selects are summed in folds, without enumerating them."""

from __future__ import annotations

from dataclasses import dataclass

from likewise.formula.expressions import Apply, Folded, Formula, Number, Rank, is_number, mentions_positive, s, s_p
from likewise.formula.folds import EACH_POSITIVE, NEGATIVES, POSITIVES, add_up, count
from likewise.formula.operations import join_conditions, where
from likewise.formula.pair_numbers import AtPositive
from likewise.formula.reductions import Thresholded
from likewise.formula.terms import Term
from likewise.formula.traversal import substitute, walk


@dataclass(frozen=True, eq=False)
class Choice:
    """The triplets that a rule selects, as formulas, without enumerating them.

    Args:
        positive: the similarity of a triplet's positive: `likewise.formula.s_p` for every positive, or one per anchor.
        negative: the similarity of its negative: `likewise.formula.s` for every negative, or one per positive or anchor.
        keep: which of these triplets count; ``None``: all.

    Examples:
        >>> from likewise.formula import NEGATIVES, POSITIVES, largest, s, smallest
        >>> Choice(smallest(s, POSITIVES), largest(s, NEGATIVES)).negative
        max[negatives](s)
    """

    positive: Formula = s_p
    negative: Formula = s
    keep: Formula | None = None


ALL_TRIPLETS = Choice()


@dataclass(frozen=True, eq=False)
class TripletTerm(Term):
    """A term over triplets.  On given triplets (`likewise.formula.Triplets`) it is the sum over those.

    Args:
        total: the sum over the anchor's triplets.
        units: their number, times the number of values.
        nonzero: the number of values that are not zero.
        values: the values of one triplet, formulas of `likewise.formula.s_p` and `likewise.formula.s`; each is a unit.
        choice: the triplets.
        thresholds: the units that count; ``None``: all.

    Examples:
        >>> from likewise.formula import per_triplet, relu, s, s_p
        >>> per_triplet(relu(s - s_p + 0.1)).values
        (relu((s - s_p) + 0.1),)
    """

    values: tuple[Formula, ...]
    choice: Choice = ALL_TRIPLETS
    thresholds: Thresholded | None = None

    def chosen_by(self, choice: Choice) -> TripletTerm:
        """The same values over the triplets that a rule chooses."""
        return per_triplet(*self.values, choice=choice, thresholds=self.thresholds)

    def within(self, thresholds: Thresholded) -> TripletTerm:
        """The same values over the units between thresholds."""
        return per_triplet(*self.values, choice=self.choice, thresholds=thresholds)


def per_triplet(*values: Formula, choice: Choice = ALL_TRIPLETS, thresholds: Thresholded | None = None) -> TripletTerm:
    """Return a term with one unit per triplet and value.

    Args:
        values: formulas of `likewise.formula.s_p`, the similarity of the positive, and `likewise.formula.s`, that of the
            negative; values must not be negative.
        choice: the triplets.
        thresholds: the units that count; ``None``: all.

    Examples:
        >>> from likewise.formula import per_triplet, relu, s, s_p
        >>> per_triplet(relu(s - s_p + 0.1)).total
        sum[each positive](sum[negatives](relu((s - s_p) + 0.1)))
    """
    parts = []
    for value in values:
        value = substitute(value, {s_p: choice.positive, s: choice.negative})
        inside = None if thresholds is None else thresholds.contains(value)
        parts.append(_over_triplets(value, choice, inside))
    total, units, nonzero = parts[0]
    for more in parts[1:]:
        total, units, nonzero = total + more[0], units + more[1], nonzero + more[2]
    return TripletTerm(total, units, nonzero, values, choice, thresholds)


def _over_triplets(value: Formula, choice: Choice, inside: Formula | None) -> tuple[Formula, Formula, Formula]:
    """The sum of a value over an anchor's triplets, their number, and the number of those that are not zero.

    Only triplets for which ``inside`` holds, a condition on the value, are summed and counted.
    """
    if choice.negative is s and value.rank is not Rank.PAIR:
        return _over_equal_negatives(value, choice, inside)
    keep, differs = join_conditions(choice.keep, inside), value > 0.0
    if choice.negative is s:
        summand = value if keep is None else where(keep, value, 0.0)
        parts: tuple[Formula, Formula, Formula] = (
            add_up(summand, NEGATIVES),
            count(NEGATIVES, keep),
            count(NEGATIVES, differs if keep is None else keep & differs),
        )
    elif keep is None:
        parts = value, Number(1), where(differs, 1, 0)
    else:
        parts = where(keep, value, 0.0), where(keep, 1, 0), where(keep & differs, 1, 0)
    if choice.positive is not s_p:
        return parts
    total, units, nonzero = (_over_positives(part) for part in parts)
    return total, units, nonzero


def _over_equal_negatives(value: Formula, choice: Choice, inside: Formula | None) -> tuple[Formula, Formula, Formula]:
    """The same for a value that does not depend on the negative."""
    negatives, differs = count(NEGATIVES, choice.keep), join_conditions(inside, value > 0.0)
    assert differs is not None
    summand = value if inside is None else where(inside, value, 0.0)
    per_positive = mentions_positive(negatives)
    if choice.positive is s_p and not per_positive:  # the number of negatives is the same for all positives
        of_positives = [
            count(POSITIVES, None if condition is None else _as_pair(condition)) for condition in (inside, differs)
        ]
        return negatives * _over_positives(summand), negatives * of_positives[0], negatives * of_positives[1]
    units = negatives if inside is None else where(inside, negatives, 0)
    parts = negatives * summand, units, where(differs, negatives, 0)
    if choice.positive is not s_p:
        return parts
    total, units, nonzero = (_over_positives(part) for part in parts)
    return total, units, nonzero


def _over_positives(value: Formula) -> Formula:
    """Return the sum of a formula over an anchor's positives; plain folds unless inner folds need one at a time."""
    if not mentions_positive(value):
        return count(POSITIVES) if is_number(value, 1.0) else count(POSITIVES) * value
    return add_up(value, EACH_POSITIVE) if _folds_per_positive(value) else add_up(_as_pair(value), POSITIVES)


def _as_pair(value: Formula) -> Formula:
    """A formula of one positive as a formula of the pair of the anchor and that positive."""
    by: dict[Formula, Formula] = {node: node.pair for node in walk(value) if isinstance(node, AtPositive)}
    return substitute(value, {s_p: s, **by})


def _folds_per_positive(node: Formula) -> bool:
    if isinstance(node, Folded):
        return node.rank is Rank.POSITIVE
    return isinstance(node, Apply) and any(_folds_per_positive(argument) for argument in node.arguments)
