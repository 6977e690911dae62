"""What the figures of the studies share: transparent, gray text, the same bytes for the same input."""

from __future__ import annotations

import io
from typing import Any

from likewise.formula import one_of

GRAY = "#858585"
"""Text and lines, readable on white as on black."""


def new_figure(width: float, height: float) -> Any:
    """An empty figure of so many inches, in the style of all of them.

    Examples:
        >>> float(new_figure(4.0, 3.0).get_figwidth())
        4.0
    """
    try:
        import matplotlib  # noqa: F401  the figure's module may be loaded without it
        from matplotlib.figure import Figure
    except ImportError as missing:
        raise ImportError("figures need matplotlib; install the extra likewise[train]") from missing
    return Figure(figsize=(width, height), layout="constrained")


def finish_axis(axis: Any, title: str, *, x_name: str = "", y_name: str = "", grid: str = "both") -> None:
    """Titles, names and a faint grid; no frame.

    Examples:
        >>> axis = new_figure(4.0, 3.0).subplots()
        >>> finish_axis(axis, "over Triplet", x_name="improvement in %")
        >>> axis.get_xlabel()
        'improvement in %'
    """
    axis.set_title(title, loc="left", color=GRAY, fontsize=10)
    axis.set_xlabel(x_name, color=GRAY)
    axis.set_ylabel(y_name, color=GRAY)
    axis.tick_params(colors=GRAY, length=0)
    axis.grid(axis=grid, color=GRAY, alpha=0.18, linewidth=0.8)
    axis.set_axisbelow(True)
    for spine in axis.spines.values():
        spine.set_visible(False)


def save_figure(figure: Any, form: str) -> bytes:
    """The bytes of a figure's file, the same for the same figure.

    Args:
        figure: as `new_figure` makes it.
        form: ``"svg"`` or ``"png"``.

    Examples:
        >>> save_figure(new_figure(2.0, 1.0), "svg")[:5]
        b'<?xml'
    """
    import matplotlib as mpl

    one_of("form", form, ("svg", "png"))
    buffer = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "likewise", "font.size": 10, "font.family": "sans-serif"}):
        metadata = {"Date": None} if form == "svg" else None
        figure.savefig(buffer, format=form, transparent=True, dpi=110, metadata=metadata)
    return buffer.getvalue()
