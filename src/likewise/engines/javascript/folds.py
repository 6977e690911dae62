"""The folds in JavaScript: the loop over values, and the derivative by each value."""

from __future__ import annotations

from dataclasses import dataclass

from likewise.formula import Count, Fold, LogSumExp, Max, Mean, Min, Sum


@dataclass(frozen=True)
class FoldSpelling:
    """A fold as the lines of a loop over values ``v``.

    Args:
        start: the declaration of the state.
        step: the statement that adds one value.
        finish: the fold's value, an expression of the state.
        saved: the variables of the state that the derivative reads.
        derivative: by ``v``, an expression of ``v`` and the saved variables; ``None`` for zero.

    Examples:
        >>> FOLDS[Sum].write_step("2 * s")
        ['const v = 2 * s;', 'sum += v;']
    """

    start: str
    step: str
    finish: str
    saved: tuple[str, ...] = ()
    derivative: str | None = None

    def write_step(self, value: str) -> list[str]:
        """Return the lines that add the value of an expression."""
        if "v" in self.step:
            return [f"const v = {value};", self.step]
        return [self.step] if value == "1" else [f"if ({value}) {self.step}"]


def _spell_extreme(sign: str, worst: str) -> FoldSpelling:
    return FoldSpelling(
        f"let best = {worst}, ties = 0;",
        f"if (v {sign} best) {{ best = v; ties = 1; }} else if (v === best) ties++;",
        "best",
        ("best", "ties"),
        "(v === best ? 1 / ties : 0)",
    )


FOLDS: dict[type[Fold], FoldSpelling] = {
    LogSumExp: FoldSpelling(
        "let peak = -Number.MAX_VALUE, total = 0;",
        "if (v > peak) { total = total * Math.exp(peak - v) + 1; peak = v; } else total += Math.exp(v - peak);",
        "Math.log(Math.max(total, 1)) + peak",
        ("peak", "total"),
        "(Math.exp(v - peak) / total)",
    ),
    Sum: FoldSpelling("let sum = 0;", "sum += v;", "sum", (), "1"),
    Mean: FoldSpelling(
        "let sum = 0, count = 0;", "sum += v; count++;", "sum / Math.max(count, 1)", ("count",), "(1 / count)"
    ),
    Max: _spell_extreme(">", "-Infinity"),
    Min: _spell_extreme("<", "Infinity"),
    Count: FoldSpelling("let count = 0;", "count++;", "count"),
}
