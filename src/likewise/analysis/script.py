"""JavaScript from losses: the page of the lens computes what the library computes, because it is made from it.

`script_of` traces a loss, checks the graph against the loss itself on batches of many sizes and at the ends of every
hyper-parameter's range, and writes it down.  A hyper-parameter that Python decides by, or a whole number, becomes a
choice between few values, each with code of its own.  ``python -m likewise.analysis.script`` writes all losses of the
catalog into the file that the page is made of.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.resources import files
from inspect import getdoc
from pathlib import Path
from typing import Any

from likewise.analysis.catalog import Entry, catalog
from likewise.analysis.graphs import Case, Graphs, graphs_of, is_exact
from likewise.analysis.javascript.arrays import arrays_of
from likewise.analysis.javascript.kernels import number_text, text_key
from likewise.analysis.javascript.writer import Body, body_of, condition_text, size_text
from likewise.analysis.subjects import Adjustable, Source, Subject, similarity_name, subject_of
from likewise.formula import SimilarityLike

PAGE = Path(__file__).parents[1] / "report" / "lens_losses.js"
"""The file that the page of the lens is made of."""


@dataclass(frozen=True)
class Parameter:
    """A hyper-parameter as the page shows it.

    Args:
        name: its name; ``miner.…`` for a miner's.
        help: what it means.
        value: what it is by default.
        least: the lower end of its slider.
        most: the upper end.
        log: whether the slider is logarithmic.
        whole: whether it is a whole number.
        choices: the values that can be had, where not all can.

    Examples:
        >>> Parameter("margin", "a margin", 0.1, 0.0, 1.0, False, False, None).most
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
        name: what it is called.
        parameters: its hyper-parameters, in the order in which ``run`` takes them.
        entry: the object that stands for it, as text.
        functions: the functions that it calls, by name; losses that need the same share them.

    Examples:
        >>> script = script_of(lambda s, labels: (s * s).sum(), name="Squares")
        >>> script.text().startswith("// Generated")
        True
    """

    name: str
    parameters: tuple[Parameter, ...]
    entry: str
    functions: Mapping[str, str]

    def text(self) -> str:
        """A file with this loss alone."""
        return _file([self])


def script_of(source: Source, *, name: str | None = None, similarity: SimilarityLike = "cosine") -> LossScript:
    """Write a loss as JavaScript.

    Args:
        source: an entry of the catalog; a loss of the library's kind, or its class; any module that takes embeddings
            and labels; or a function of a similarity matrix and labels.
        name: what to call it.
        similarity: how embeddings are compared, for a function; losses of the library know.

    Examples:
        >>> from likewise.losses import ContrastiveLoss
        >>> [parameter.name for parameter in script_of(ContrastiveLoss).parameters]
        ['positive_margin', 'negative_margin']
    """
    subject = subject_of(source, name=name, similarity=similarity)
    graphs = graphs_of(subject)
    parameters = tuple(
        _parameter(key, subject.adjustable[key], graphs.choices.get(key))
        for key in subject.adjustable
        if key not in graphs.idle
    )
    places = {parameter.name: k for k, parameter in enumerate(parameters)}
    functions: dict[str, str] = {}
    versions = [_version(cases, places, functions) for cases in graphs.versions]
    entry = _entry(subject, graphs, parameters, versions)
    return LossScript(subject.name, parameters, entry, functions)


def scripts(losses: Mapping[str, Entry] | None = None) -> str:
    """Every loss of a catalog in one file, which defines ``LENS``.

    Args:
        losses: the catalog; by default `likewise.analysis.catalog.catalog`'s.

    Examples:
        >>> from likewise.analysis.catalog import catalog
        >>> text = scripts({"Softmax": catalog()["Softmax"]})
        >>> "const LENS" in text
        True
    """
    entries = catalog() if losses is None else losses
    made = []
    for name, entry in entries.items():
        made.append(script_of(entry, name=name))
        if sys.stderr.isatty():
            print(f"{len(made)}/{len(entries)} {name}", file=sys.stderr)
    return _file(made)


def write_scripts(path: Path = PAGE) -> Path:
    """Write every loss of the catalog into the file that the page is made of.

    Args:
        path: the file; it is written aside and renamed.

    Examples:
        >>> PAGE.name
        'lens_losses.js'
    """
    text = scripts()
    handle, aside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(aside, 0o644)
        os.replace(aside, path)
    except BaseException:
        os.unlink(aside)
        raise
    return path


# ------------------------------------------------------------------------------------------------ text


def _file(made: list[LossScript]) -> str:
    functions: dict[str, str] = {}
    for script in made:
        for name, text in script.functions.items():
            assert functions.setdefault(name, text) == text, f"two texts are called {name}"
    lines = [
        "// Generated from the losses themselves by python -m likewise.analysis.script; do not edit.",
        "// run(x, labels, n, d, proxies, classes, parameters): the arrays that it returns are written again by the next",
        "// call of the same loss.",
        "const LENS = (() => {",
        '"use strict";',
        (files("likewise.analysis.javascript") / "runtime.js").read_text(encoding="utf-8").strip(),
        *(functions[name] for name in sorted(functions)),
        "return {",
        *(script.entry for script in made),
        "};",
        "})();",
    ]
    return "\n".join(lines) + "\n"


def _entry(subject: Subject, graphs: Graphs, parameters: tuple[Parameter, ...], versions: list[str]) -> str:
    text = " ".join((getdoc(subject.documented) or "").split())
    formula = re.search(r"\$\$(.+?)\$\$", text)
    facts: dict[str, Any] = {
        "about": (getdoc(subject.documented) or "").split("\n\n")[0].replace("\n", " "),
        "cite": _cited(text),
        "kind": getattr(subject.documented, "__name__", subject.name),
        "miner": subject.miner,
        "formula": formula[1].strip() if formula else "",
        "similarity": similarity_name(subject.similarity),
        "centers": graphs.centers,
        "parameters": [asdict(parameter) for parameter in parameters],
        "exact": is_exact(subject),
    }
    lines = [f"{key}: {json.dumps(value, ensure_ascii=False)}," for key, value in facts.items()]
    if len(versions) == 1:
        run = f"run: {versions[0]},"
    else:
        by = [k for k, parameter in enumerate(parameters) if parameter.name in graphs.choices]
        lists = json.dumps([parameters[k].choices for k in by])
        run = f"run: choose({json.dumps(by)}, {lists}, [\n" + ",\n".join(versions) + "]),"
    return "\n".join([f"{json.dumps(subject.name, ensure_ascii=False)}: {{", *lines, run, "},"])


def _version(cases: tuple[Case, ...], places: Mapping[str, int], functions: dict[str, str]) -> str:
    """What ``run`` is for one choice of hyper-parameters; where sizes matter, one of several functions."""
    calls = ""
    for case in cases:
        call = f"{_function(case, places, functions)}(own,x,y,n,d,p,c,h)"
        calls += f"{condition_text(case.condition)}?{call}:" if case.condition else call
    return f"((own)=>(x,y,n,d,p,c,h)=>{calls})([])"


def _function(case: Case, places: Mapping[str, int], functions: dict[str, str]) -> str:
    """The name of the function for a graph, which others may have written already."""
    arrays = arrays_of(case.trace, places)
    body = body_of(arrays)
    functions.update(body.functions)
    lines = []
    for k, tensor in enumerate(arrays.constants):
        numbers = ",".join(number_text(float(value)) for value in tensor.flatten().tolist())
        name = "c" + text_key(numbers)
        functions[name] = f"const {name}=Float64Array.of({numbers});"
        lines.append(f"const c{k}={name};")
    text = "\n".join(["(own,x,y,n,d,p,c,h){", *lines, body.text, _result(case, arrays.outputs, body), "}"])
    name = "r" + text_key(text)
    functions[name] = f"function {name}{text}"
    return name


def _result(case: Case, outputs: Any, body: Body) -> str:
    value, *rest = body.results
    matrices = []
    for between in case.trace.between:
        s, slopes, *rest = rest
        rows, columns = outputs[body.results.index(s)].shape
        sizes = f"rows:{size_text(rows)},columns:{size_text(columns)}"
        matrices.append(f"{{between:{json.dumps(between)},{sizes},s:{s},slopes:{slopes}}}")
    gradient, proxies = rest[0], rest[1] if len(rest) > 1 else "null"
    return f"return {{value:{value},matrices:[{','.join(matrices)}],gradient:{gradient},proxyGradient:{proxies}}};"


def _cited(text: str) -> str | None:
    """The sources that a docstring names."""
    name = r"(?:van den )?[A-Z][\w’'-]+"
    papers = re.findall(rf"({name}(?: & {name}| et al\.)? (?:19|20)\d\d)", text)
    if not papers:
        papers = re.findall(r"(Eq\. [\d.]+(?: and [\d.]+)? of the (?:unified view|thesis|overview))", text)
    return ", ".join(dict.fromkeys(papers)) or None


def _parameter(name: str, adjustable: Adjustable, choices: tuple[float, ...] | None) -> Parameter:
    least, most = (choices[0], choices[-1]) if choices else adjustable.range()
    log = adjustable.hyper.log and least > 0
    return Parameter(name, adjustable.hyper.help, adjustable.value, least, most, log, adjustable.whole, choices)


if __name__ == "__main__":
    print(write_scripts(Path(sys.argv[1]) if len(sys.argv) > 1 else PAGE))
