"""The losses of the lens page as JavaScript: printed formulas with a slider for every hyper-parameter.

`script_of` constructs a loss with named hyper-parameters and prints its declaration.  A hyper-parameter that Python code
branches on becomes a choice between few values, with a formula for each.  Functions that are not formulas are in
``by_hand.js``; a loss with a function that has no JavaScript is shown by the weight curves that Python computes.
`write_scripts` writes all losses of the catalog into the file that the page includes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from inspect import getdoc
from pathlib import Path
from typing import Any

import torch

from likewise.analysis.batches import sizes_for
from likewise.analysis.catalog import Entry, catalog
from likewise.analysis.curves import weight_curves
from likewise.analysis.printing import (
    BY_HAND,
    Adjustable,
    NotPrintableError,
    Printed,
    print_loss,
    similarity_name,
    subject_of,
)
from likewise.analysis.weights import Loss, name_of, weigh
from likewise.engines import javascript
from likewise.files import write_text
from likewise.losses import PairLoss, ProxyLoss

PAGE = Path(__file__).parents[1] / "report" / "lens_losses.js"
"""The file that the page of the lens includes."""

Source = Entry | Loss | type[PairLoss] | type[ProxyLoss]


@dataclass(frozen=True)
class Slider:
    """The slider of a hyper-parameter.

    Args:
        name: its name; ``miner.…`` for a miner's.
        help: its meaning.
        value: its default.
        least: the lower end of its slider.
        most: the upper end.
        log: whether the slider is logarithmic.
        whole: whether it is a whole number.
        choices: the possible values, if they are limited.

    Examples:
        >>> Slider("margin", "a margin", 0.1, 0.0, 1.0, False, False, None).most
        1.0
    """

    name: str
    help: str
    value: float
    least: float
    most: float
    log: bool
    whole: bool
    choices: tuple[float, ...] | None


@dataclass(frozen=True, eq=False)
class LossScript:
    """A loss as JavaScript.

    Args:
        name: its name.
        parameters: its hyper-parameters, in the order of the arguments of ``run``.
        entry: its JavaScript object, as text.

    Examples:
        >>> script_of(lambda s, labels: (s * s).sum(), name="Squares").text().startswith("// Printed")
        True
    """

    name: str
    parameters: tuple[Slider, ...]
    entry: str

    def text(self) -> str:
        """A file with only this loss."""
        return _file([self])


def script_of(source: Source, *, name: str | None = None) -> LossScript:
    """Return a loss as JavaScript.

    Args:
        source: an entry of the catalog; a loss of the library's kind, or its class; any module that takes embeddings
            and labels; or a function of a matrix of cosines and labels.
        name: its name on the page.

    Examples:
        >>> from likewise.losses import ContrastiveLoss
        >>> [parameter.name for parameter in script_of(ContrastiveLoss).parameters]
        ['positive_margin', 'negative_margin']
    """
    is_class = isinstance(source, type) and issubclass(source, PairLoss | ProxyLoss)
    if not is_class and not isinstance(source, Entry) and not callable(source):
        raise TypeError(
            "source must be a loss, an entry of the catalog or a function of similarities and labels, "
            f"but it is a {type(source).__name__}"
        )
    loss: Any = source if callable(source) and not is_class else None
    if isinstance(source, Entry) or is_class:
        entry = source if isinstance(source, Entry) else Entry(source.__name__, source)  # type: ignore[arg-type]
        loss = entry.make(num_classes=8, embedding_dim=2)
    called = name or (source.name if isinstance(source, Entry) else name_of(loss))
    try:
        if not isinstance(loss, PairLoss | ProxyLoss):
            raise NotPrintableError("it is a Python function that has no JavaScript")
        subject = subject_of(source)  # type: ignore[arg-type]
        printed = print_loss(subject)
    except NotPrintableError as reason:
        note = f"It is shown by the weight curves of a typical batch that Python computed, because {reason}."
        return LossScript(called, (), _entry(called, loss, (), Printed((), {}, _by_curves(loss)), note))
    parameters = tuple(_slider(key, subject.adjustable[key], printed.choices.get(key)) for key in printed.names)
    return LossScript(called, parameters, _entry(called, loss, parameters, printed))


def scripts(losses: Mapping[str, Entry] | None = None) -> str:
    """Every loss of a catalog in one file, which defines ``LENS``.

    Args:
        losses: the catalog; by default `likewise.analysis.catalog`'s.

    Examples:
        >>> from likewise.analysis.catalog import catalog
        >>> "const LENS" in scripts({"Softmax": catalog()["Softmax"]})
        True
    """
    entries = catalog() if losses is None else losses
    return _file([script_of(entry, name=name) for name, entry in entries.items()])


def write_scripts(path: Path = PAGE) -> Path:
    """Write every loss of the catalog into the file that the page includes.

    Args:
        path: the file; it is replaced atomically.

    Examples:
        >>> PAGE.name
        'lens_losses.js'
    """
    write_text(path, scripts())
    return path


# ------------------------------------------------------------------------------------------------ text


def _file(made: list[LossScript]) -> str:
    lines = [
        "// Printed from the declarations of the losses by likewise.analysis.write_scripts; do not edit.",
        "// run(x, labels, n, d, proxies, classes, parameters) gives the loss, its matrices and its gradients.",
        "const LENS = (() => {",
        '"use strict";',
        javascript.RUNTIME.strip(),
        BY_HAND.strip(),
        "return {",
        *(script.entry for script in made),
        "};",
        "})();",
    ]
    return "\n".join(lines) + "\n"


def _entry(name: str, loss: Any, parameters: tuple[Slider, ...], printed: Printed, note: str = "") -> str:
    documented = type(loss) if isinstance(loss, torch.nn.Module) else loss
    text = " ".join((getdoc(documented) or "").split())
    formula = re.search(r"\$\$(.+?)\$\$", text)
    miner = getattr(loss, "miner", None)
    about = (getdoc(documented) or "").split("\n\n")[0].replace("\n", " ")
    facts: dict[str, Any] = {
        "about": " ".join(filter(None, (about, note))),
        "cite": _find_citations(text),
        "kind": getattr(documented, "__name__", name),
        "miner": None if miner is None else type(miner).__name__,
        "formula": formula[1].strip() if formula else "",
        "similarity": "cosine" if note else similarity_name(getattr(loss, "similarity", "cosine")),
        "centers": loss.proxies_per_class if isinstance(loss, ProxyLoss) else 0,
        "parameters": [asdict(parameter) for parameter in parameters],
        "exact": bool(note) or is_exact(loss),
    }
    lines = [f"{key}: {json.dumps(value, ensure_ascii=False)}," for key, value in facts.items()]
    return "\n".join([f"{json.dumps(name, ensure_ascii=False)}: {{", *lines, f"run: {printed.run},", "},"])


def is_exact(loss: Loss) -> bool:
    """Whether the gradient passes only through similarities.

    Examples:
        >>> from likewise.losses import SphereFaceLoss, TripletLoss
        >>> is_exact(TripletLoss()), is_exact(SphereFaceLoss(8, 2))
        (True, False)
    """
    draw = torch.Generator().manual_seed(0)
    embeddings, labels = torch.randn(12, 2, generator=draw), torch.arange(12) % 3
    return weigh(loss, embeddings, labels).unexplained < 1e-3


def _slider(name: str, adjustable: Adjustable, choices: tuple[float, ...] | None) -> Slider:
    least, most = (choices[0], choices[-1]) if choices else adjustable.range(name)
    log = adjustable.hyper.log and least > 0
    return Slider(name, adjustable.hyper.help, adjustable.value, least, most, log, adjustable.whole, choices)


def _find_citations(text: str) -> str | None:
    """The papers that a docstring cites."""
    name = r"(?:van den )?[A-Z][\w’'-]+"
    papers = re.findall(rf"({name}(?: & {name}| et al\.)? (?:19|20)\d\d)", text)
    if not papers:
        papers = re.findall(r"(Eq\. [\d.]+(?: and [\d.]+)? of the (?:unified view|thesis|overview))", text)
    return ", ".join(dict.fromkeys(papers)) or None


def _by_curves(loss: Loss) -> str:
    """A loss whose pair weights are functions of the cosine, taken from a typical batch."""
    classes, _ = sizes_for(loss)
    (curve,) = weight_curves({"it": loss}, classes=classes).of.values()
    tables = [curve.similarities, curve.positive.mean(dim=0), curve.negative.mean(dim=0)]
    numbers = [", ".join(javascript.number_text(float(f"{value:.6g}")) for value in table.tolist()) for table in tables]
    function = f"byCurves({', '.join(f'[{each}]' for each in numbers)})"
    between = "samples against proxies" if "proxies" in curve.between else "samples against samples"
    return (
        f'lossOf({{ names: [], alone: [], matrices: [{{ between: "{between}", '
        'similarity: { kind: "cosine", normalize: true }, pool: null, mine: null, inputs: [], '
        f"functions: [{function}] }}] }})"
    )
