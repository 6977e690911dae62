"""A JavaScript printer of formulas: the value of a loss on one similarity matrix, and its derivative by every entry.

A formula of rank NUMBER is printed as one function.  In its forward pass every fold is a loop that computes one number per
anchor, or per positive.  In its backward pass every fold adds its derivative to the entries of the matrix and to the folds
inside its curve, by the same `likewise.formula.derivative` from which Triton kernels are generated.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from torch import Tensor

from likewise.engines.javascript.folds import FOLDS, FoldSpelling
from likewise.engines.javascript.symbols import Parameter, formula_of
from likewise.formula import (
    OPERATIONS,
    Apply,
    AtPositive,
    Folded,
    Formula,
    Number,
    PerAnchor,
    PerPair,
    PerReference,
    PerTriplet,
    Rank,
    Side,
    Total,
    derivative,
    ingredients,
    is_number,
    s,
    s_p,
    walk,
)

SIDES = {Side.POSITIVES: "positives", Side.EACH_POSITIVE: "positives", Side.NEGATIVES: "negatives", Side.BOTH: "both"}
"""The names of the entries of each side; see ``relationOf`` in ``runtime.js``."""

PLACES = {Rank.ANCHOR: "i", Rank.POSITIVE: "ip"}


def print_value(value: Formula, inputs: Sequence[Formula] = ()) -> str:
    """Print a number of the whole batch as a function ``(S, pairs, h, inputs) => value`` that adds its derivative to ``S.grad``.

    Args:
        value: a formula of rank NUMBER.
        inputs: the `PerAnchor`, `PerReference` and `PerPair` nodes whose arrays are arguments of the function, in this order.

    Examples:
        >>> from likewise.formula import POSITIVES, Total, add_up, s
        >>> print(print_value(Total(add_up(2.0 * s, POSITIVES))).splitlines()[0])
        (S, pairs, h, inputs) => {
    """
    return _Program([value], inputs).print_value()


def print_conditions(positive: Formula, negative: Formula) -> str:
    """Print the conditions of a pair miner as a function ``(S, pairs, h) => kept`` of the pairs that it keeps.

    Examples:
        >>> from likewise.formula import s
        >>> "kept[ij] = 2" in print_conditions(s < 0.9, s > 0.5)
        True
    """
    return _Program([positive, negative], (), differentiates=False).print_conditions()


class _Program:
    """One function: its folds and totals in order, and their names."""

    def __init__(self, roots: Sequence[Formula], inputs: Sequence[Formula], *, differentiates: bool = True) -> None:
        self.differentiates = differentiates
        self.shared = _Shared()
        self.roots = [self.shared(root) for root in roots]
        self.steps = [node for node in walk(*self.roots) if isinstance(node, Folded | Total)]
        self.names: dict[Formula, str] = {s: "s", s_p: "s_p"}
        self.gradient_names: dict[Formula, str] = {s: "grad[ij]", s_p: "grad[ip]"}
        for k, node in enumerate(inputs):
            at = "i" if isinstance(node, PerAnchor) else "ij" if isinstance(node, PerPair) else "ij % n"
            self.name_input(node, k, at)
            if isinstance(node, PerPair):
                self.name_input(node.at_positive, k, "ip")
        for k, node in enumerate(self.steps):
            at = f"[{PLACES[node.rank]}]" if isinstance(node, Folded) else ""
            self.names[node], self.gradient_names[node] = f"f{k}{at}", f"g{k}{at}"
        self.gradients: dict[Formula, bool] = {}
        self.constants = 0

    def name_input(self, node: Formula, k: int, at: str) -> None:
        self.names[node], self.gradient_names[node] = f"inputs[{k}].data[{at}]", f"inputs[{k}].grad[{at}]"

    def print_value(self) -> str:
        (root,) = self.roots
        lines = [line for node in self.steps for line in self.forward(node)]
        scope = _Scope(self, [root])
        value = scope.text(root)
        lines += [*scope.lines[Rank.NUMBER], f"const value = {value};"]
        lines += [line for node in self.steps if self.has_gradient(node) for line in self.declare_gradient(node)]
        for by, partial in self.derivatives_of(root):
            scope = _Scope(self, [partial])
            text = scope.text(partial)
            lines += [*scope.lines[Rank.NUMBER], f"{self.gradient_names[by]} += {text};"]
        lines += [line for node in reversed(self.steps) if self.has_gradient(node) for line in self.backward(node)]
        return self.function("(S, pairs, h, inputs)", [*lines, "return value;"], "{ rows: m, columns: n, data, grad }")

    def print_conditions(self) -> str:
        forward = [line for node in self.steps for line in self.forward(node)]
        scope = _Scope(self, self.roots)
        texts = [scope.text(root) for root in self.roots]
        lines = [*forward, "const kept = new Uint8Array(m * n);", *scope.lines[Rank.NUMBER]]
        loops = []
        for k, (side, text) in enumerate(zip((Side.POSITIVES, Side.NEGATIVES), texts, strict=True)):
            inner = [*scope.lines[Rank.PAIR], f"if ({text}) kept[ij] = {k + 1};"]
            loops += _loop("j", SIDES[side], "s", inner)
        lines += [*_anchors([*scope.lines[Rank.ANCHOR], *loops]), "return relationOf(kept, m, n);"]
        return self.function("(S, pairs, h)", lines, "{ rows: m, columns: n, data }")

    def function(self, arguments: str, lines: list[str], matrix: str) -> str:
        """Return the text of the function; it reads each hyper-parameter once."""
        nodes = [node for root in self.roots for node in walk(root) if isinstance(node, Parameter)]
        numbers = [
            f"const {parameter_name(name)} = h[{name!r}];".replace("'", '"')
            for name in dict.fromkeys(node.name for node in nodes)
        ]
        text = "\n".join(lines)
        sides = [name for name in ("positives", "negatives", "both") if f"{name}.first" in text]
        heads = [f"const {matrix} = S;", f"const {{ {', '.join(sides)} }} = pairs;"]
        body = "\n".join(_indent([*heads, *numbers, *lines]))
        return f"{arguments} => {{\n{body}\n}}"

    # ---- forward

    def forward(self, node: Folded | Total) -> list[str]:
        name = self.names[node].partition("[")[0]
        if isinstance(node, Total):
            scope = _Scope(self, [node.of])
            inner = f"{name} += {scope.text(node.of)};"
            return [f"let {name} = 0;", *scope.lines[Rank.NUMBER], *_anchors([*scope.lines[Rank.ANCHOR], inner])]
        spelling, place = _spelling(node), PLACES[node.rank]
        scope = _Scope(self, [node.curve])
        step = spelling.write_step(scope.text(node.curve))
        after = [f"{name}[{place}] = {spelling.finish};"]
        saved = spelling.saved if self.differentiates and self.has_gradient(node) else ()
        after += [f"{name}_{each}[{place}] = {each};" for each in saved]
        size = "m" if node.rank is Rank.ANCHOR else "m * n"
        arrays = [f"const {each} = new Float64Array({size});" for each in (name, *(f"{name}_{k}" for k in saved))]
        return [f"// {node!r}", *arrays, *_nest(scope, node.over, node.rank, [spelling.start], step, after)]

    # ---- backward

    def derivatives_of(self, formula: Formula) -> list[tuple[Formula, Formula]]:
        """Return the derivatives of a formula that are not zero, with the nodes that they are taken by."""
        derivatives = [
            (by, self.shared(derivative(formula, by))) for by in ingredients(formula) if by in self.gradient_names
        ]
        return [(by, partial) for by, partial in derivatives if not is_number(partial, 0.0) and self.has_gradient(by)]

    def has_gradient(self, node: Formula) -> bool:
        """Return whether the gradient of a node reaches the similarities or the inputs."""
        if not isinstance(node, Folded | Total):
            return True
        if node not in self.gradients:
            flat = isinstance(node, Folded) and _spelling(node).derivative is None
            self.gradients[node] = not flat and bool(
                self.derivatives_of(node.curve if isinstance(node, Folded) else node.of)
            )
        return self.gradients[node]

    def declare_gradient(self, node: Folded | Total) -> list[str]:
        name = self.gradient_names[node].partition("[")[0]
        size = "m" if node.rank is Rank.ANCHOR else "m * n"
        return [f"let {name} = 0;" if isinstance(node, Total) else f"const {name} = new Float64Array({size});"]

    def backward(self, node: Folded | Total) -> list[str]:
        """Add the gradient of a fold or a total to the gradients of the nodes inside it."""
        if isinstance(node, Total):
            derivatives = self.derivatives_of(node.of)
            scope = _Scope(self, [partial for _, partial in derivatives])
            add = [f"{self.gradient_names[by]} += {_weight(scope, partial)};" for by, partial in derivatives]
            weight = f"const w = {self.gradient_names[node]};"  # the same for all anchors
            return [*scope.lines[Rank.NUMBER], *_anchors([weight, *scope.lines[Rank.ANCHOR], *add])]
        derivatives, spelling = self.derivatives_of(node.curve), _spelling(node)
        reads_value = "v" in (spelling.derivative or "")
        scope = _Scope(self, [*([node.curve] if reads_value else []), *(partial for _, partial in derivatives)])
        inner = [f"const v = {scope.text(node.curve)};"] if reads_value else []
        inner += [f"const w = {'g' if spelling.derivative == '1' else f'g * {spelling.derivative}'};"]
        inner += ["if (w === 0) continue;"] if reads_value else []
        name, place = self.names[node].partition("[")[0], PLACES[node.rank]
        before = [f"const g = {self.gradient_names[node]};", "if (g === 0) continue;"]
        before += [f"const {each} = {name}_{each}[{place}];" for each in spelling.saved]
        after = []
        for k, (by, partial) in enumerate(derivatives):
            target, text = self.gradient_names[by], _weight(scope, partial)
            if _is_innermost(by, node.over):
                inner.append(f"{target} += {text};")
            else:  # a target outside of the loop is summed in a variable
                before.append(f"let d{k} = 0;")
                inner.append(f"d{k} += {text};")
                after.append(f"{target} += d{k};")
        return [f"// backward: {node!r}", *_nest(scope, node.over, node.rank, before, inner, after)]


class _Shared:
    """Merge equal formulas into one node, and simplify the products that differentiation produces."""

    def __init__(self) -> None:
        self.nodes: dict[Formula, Formula] = {}
        self.by_key: dict[tuple[object, ...], Formula] = {}

    def __call__(self, node: Formula) -> Formula:
        if node not in self.nodes:
            made = self._make(node)
            self.nodes[node] = self.nodes[made] = made
        return self.nodes[node]

    def _make(self, node: Formula) -> Formula:
        if isinstance(node, Number):
            if isinstance(node.value, Tensor):
                return self._one(("number", node.value.item()), Number(node.value.item()))
            formula = formula_of(node.value)
            return self._one(("number", float(node.value)), formula) if isinstance(formula, Number) else self(formula)
        if isinstance(node, Parameter):
            return self._one(("parameter", node.name), node)
        if isinstance(node, Folded):
            curve = self(node.curve)
            return self._one((type(node.fold), node.over, id(curve)), Folded(node.fold, node.over, curve))
        if isinstance(node, Total):
            of = self(node.of)
            return self._one(("total", id(of)), Total(of))
        if not isinstance(node, Apply):
            return node
        tidy = _tidy(node.operation, tuple(self(argument) for argument in node.arguments))
        if not isinstance(tidy, Apply):
            return tidy
        tidy = Apply(tidy.operation, tuple(self(argument) for argument in tidy.arguments))
        return self._one((tidy.operation, *map(id, tidy.arguments)), tidy)

    def _one(self, key: tuple[object, ...], node: Formula) -> Formula:
        return self.by_key.setdefault(key, node)


def _tidy(operation: str, arguments: tuple[Formula, ...]) -> Formula:
    """Simplify an operation on simplified arguments; a product with a step becomes a condition, so that 0 · ∞ = 0."""
    if operation == "mul":
        for a, b in (arguments, arguments[::-1]):
            if is_number(a, 1.0):
                return b
            if is_number(a, -1.0):
                return Apply("neg", (b,))
            if isinstance(a, Apply) and a.operation == "where":
                condition, yes, no = a.arguments
                if is_number(no, 0.0):
                    return Apply("where", (condition, _tidy("mul", (yes, b)), no))
                if is_number(yes, 0.0):
                    return Apply("where", (condition, yes, _tidy("mul", (no, b))))
    return Apply(operation, arguments)


class _Scope:
    """The expressions of nested loops: each is computed in the outermost loop that it depends on."""

    def __init__(self, program: _Program, roots: Sequence[Formula]) -> None:
        self.program = program
        self.names = dict(program.names)
        self.lines: dict[Rank, list[str]] = {rank: [] for rank in Rank}
        self.count = 0
        self.uses = Counter(
            argument for node in _inside(roots) if isinstance(node, Apply) for argument in node.arguments
        )
        self.uses.update(roots)

    def text(self, node: Formula) -> str:
        """Return a formula as an expression; write a line for what is used twice or belongs to an outer loop."""
        if node in self.names:
            return self.names[node]
        if isinstance(node, Number):
            assert not isinstance(node.value, Tensor)
            return number_text(node.value)
        if isinstance(node, Parameter):
            return parameter_name(node.name)
        if isinstance(node, PerAnchor | PerReference | PerPair | AtPositive | PerTriplet):
            raise TypeError(f"{node!r} is a Python function of the batch, and a formula with it has no JavaScript")
        assert isinstance(node, Apply)
        arguments = [self._argument(argument, node) for argument in node.arguments]
        text = OPERATIONS[node.operation].javascript.format(*arguments)
        return self._name(node, text) if self.uses[node] > 1 else text

    def _argument(self, node: Formula, parent: Apply) -> str:
        text = self.text(node)
        if isinstance(node, Apply) and node not in self.names and node.rank < parent.rank:
            return self._name(node, text)
        whole = node in self.names or not isinstance(node, Apply) or _is_call(node)
        binds = (
            isinstance(node, Apply) and node.operation in ("mul", "div") and parent.operation in ("add", "sub", "less")
        )
        return text if _is_call(parent) or binds or (whole and text[0] != "-") else f"({text})"

    def _name(self, node: Formula, text: str) -> str:
        if node.rank is Rank.NUMBER:  # outside of all loops, where later loops can read it
            name = self.program.names[node] = f"c{self.program.constants}"
            self.program.constants += 1
        else:
            name = f"x{self.count}"
            self.count += 1
        self.names[node] = name
        self.lines[node.rank].append(f"const {name} = {text};")
        return name


def _is_call(node: Apply) -> bool:
    """Return whether an operation is written as a call, which does not need parentheses around it or its arguments."""
    return OPERATIONS[node.operation].javascript.endswith(")")


def _inside(roots: Iterable[Formula]) -> list[Formula]:
    """Return every node of formulas once, without the nodes inside their folds."""
    nodes: dict[Formula, None] = {}
    pending = list(roots)
    while pending:
        node = pending.pop()
        if node not in nodes:
            nodes[node] = None
            pending.extend(node.parts if isinstance(node, Apply) else ())
    return list(nodes)


# ------------------------------------------------------------------------------------------------ loops


def _anchors(lines: list[str]) -> list[str]:
    return ["for (let i = 0; i < m; i++) {", *_indent(lines), "}"]


def _nest(scope: _Scope, over: Side, rank: Rank, before: list[str], inner: list[str], after: list[str]) -> list[str]:
    """Write loops over anchors, over the positives of each if the result has one number per positive, and over the pairs."""
    lines = scope.lines
    if over.binds_positive:
        innermost = _loop("p", SIDES[over], "s_p", [*lines[Rank.POSITIVE], *inner])
    else:
        innermost = _loop("j", SIDES[over], "s", [*lines[Rank.PAIR], *inner])
    loops = [*before, *innermost, *after]
    if rank is Rank.POSITIVE:
        loops = _loop("p", SIDES[Side.POSITIVES], "s_p", [*lines[Rank.POSITIVE], *loops])
    return [*lines[Rank.NUMBER], *_anchors([*lines[Rank.ANCHOR], *loops])]


def _loop(index: str, side: str, name: str, lines: list[str]) -> list[str]:
    """Write a loop over an anchor's entries of one side, with the entry and its similarity if a line reads them."""
    at, text = f"i{index}", "\n".join(lines)
    read = [f"const {at} = {side}.entries[{index}];"] if re.search(rf"\b({at}|{name})\b", text) else []
    read += [f"const {name} = data[{at}];"] if re.search(rf"\b{name}\b", text) else []
    head = f"for (let {index} = {side}.first[i], last = {side}.first[i + 1]; {index} < last; {index}++) {{"
    return [head, *_indent([*read, *lines]), "}"]


def _indent(lines: Iterable[str]) -> list[str]:
    return [f"  {line}" for line in lines]


# ------------------------------------------------------------------------------------------------ words


def number_text(value: float) -> str:
    """Return a number as JavaScript writes it.

    Examples:
        >>> number_text(2.0), number_text(-0.1), number_text(float("inf"))
        ('2', '-0.1', 'Infinity')
    """
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    return str(int(value)) if float(value).is_integer() and abs(value) < 2**53 else repr(float(value))


def parameter_name(name: str) -> str:
    """Return the name of a hyper-parameter inside a function.

    Examples:
        >>> parameter_name("miner.margin")
        'h_miner_margin'
    """
    return "h_" + name.replace(".", "_")


def _spelling(node: Folded) -> FoldSpelling:
    spelling = FOLDS.get(type(node.fold))
    if spelling is None:
        raise TypeError(
            f"a fold must be one of {', '.join(kind.name for kind in FOLDS)} to be printed as JavaScript, but it is {node.fold.name}"
        )
    return spelling


def _is_innermost(by: Formula, over: Side) -> bool:
    """Return whether a derivative belongs to the current entry in the innermost loop of a fold."""
    return by.rank is (Rank.POSITIVE if over.binds_positive else Rank.PAIR)


def _weight(scope: _Scope, partial: Formula) -> str:
    """Write ``w`` times a derivative, or a conditional if the derivative is one."""
    if isinstance(partial, Apply) and partial.operation == "where" and partial not in scope.names:
        condition, yes, no = partial.arguments
        if is_number(no, 0.0) or is_number(yes, 0.0):
            texts = ["0" if is_number(each, 0.0) else _product(scope.text(each)) for each in (yes, no)]
            return f"{scope.text(condition)} ? {texts[0]} : {texts[1]}"
    return _product(scope.text(partial))


def _product(partial: str) -> str:
    if partial in ("1", "-1"):
        return "w" if partial == "1" else "-w"
    return f"w * {partial}" if partial.replace("_", "").isalnum() else f"w * ({partial})"
