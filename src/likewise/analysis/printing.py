"""Printing of losses as JavaScript: declarations with named hyper-parameters, for the lens page."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import torch

from likewise.analysis.catalog import Entry
from likewise.engines import javascript
from likewise.formula import (
    SIMILARITIES,
    ClassWeighted,
    Declaration,
    Formula,
    Hyper,
    MatrixLoss,
    NearestCenter,
    Number,
    PerAnchor,
    PerPair,
    PerReference,
    Reduction,
    SimilarityLike,
    Term,
    Thresholded,
    Total,
    TripletTerm,
    as_similarity,
    at_least,
    counted_by,
    hyperparameters,
    per_triplet,
    sort_declaration,
    substitute,
    walk,
)
from likewise.losses import Between, PairLoss, ProxyLoss, fix_hyperparameter
from likewise.miners import PairMiner, TripletMiner

BY_HAND = (files(__package__) / "by_hand.js").read_text(encoding="utf-8")
"""JavaScript functions for what is not a formula, named after their class."""

MANY = 4
"""The largest number of values of a hyper-parameter with a formula for each value."""

CENTERS = 5
"""The largest number of proxies per class on the page, unless the default is larger."""

CLOSE = 1e-8


class NotPrintableError(TypeError):
    """A loss, or a term of one, has no JavaScript.

    Examples:
        >>> raise NotPrintableError("its similarity has no JavaScript")
        Traceback (most recent call last):
        ...
        likewise.analysis.printing.NotPrintableError: its similarity has no JavaScript
    """


@dataclass(frozen=True)
class Adjustable:
    """A hyper-parameter of a loss, or of its miner.

    Args:
        hyper: its declaration.
        value: its default.

    Examples:
        >>> Adjustable(Hyper("proxies of each class", at_least=1, search=(1, 12)), 3).range("centers")
        (1, 5)
    """

    hyper: Hyper
    value: float

    @property
    def whole(self) -> bool:
        """Whether it is a whole number."""
        return isinstance(self.value, int)

    def range(self, name: str) -> tuple[float, float]:
        """The range of its slider."""
        least, most = self.hyper.range(self.value)
        return (least, min(most, max(CENTERS, self.value))) if name == "centers" else (least, most)

    def inside(self, name: str) -> float:
        """A generic value inside the range, away from its ends and from round numbers."""
        least, most = self.range(name)
        if self.hyper.log and least > 0:
            return float(least * (most / least) ** 0.4142)
        return least + (most - least) * 0.4142


@dataclass(frozen=True, eq=False)
class Subject:
    """A loss that can be constructed with any hyper-parameters.

    Args:
        kind: its class.
        adjustable: its hyper-parameters; those of its miner are called ``miner.…``.
        build: constructs it from hyper-parameters by name.

    Examples:
        >>> from likewise.losses import TripletLoss
        >>> list(subject_of(TripletLoss).adjustable)
        ['margin']
    """

    kind: type[PairLoss] | type[ProxyLoss]
    adjustable: Mapping[str, Adjustable]
    build: Callable[[Mapping[str, float]], PairLoss | ProxyLoss]


def subject_of(source: Entry | PairLoss | ProxyLoss | type[PairLoss] | type[ProxyLoss]) -> Subject:
    """The `Subject` of a loss, its class or an entry of the catalog.

    Examples:
        >>> from likewise.analysis.catalog import catalog
        >>> list(subject_of(catalog()["Multi-similarity + its miner"]).adjustable)
        ['alpha', 'beta', 'base', 'miner.epsilon']
    """
    if isinstance(source, type):
        source = Entry(source.__name__, source)
    example: Any = source.make(num_classes=3, embedding_dim=2) if isinstance(source, Entry) else source
    if isinstance(source, Entry):
        entry = source
        defaults: dict[str, Any] = {
            field.name: field.default for field in dataclasses.fields(example) if "hyper" in field.metadata
        }
        # a default of None is decided by the loss
        own = {key: getattr(example, key) if value is None else value for key, value in defaults.items()}
        mined = "miner" in dict(entry.options)

        def build(values: Mapping[str, float]) -> Any:
            made = {key: value for key, value in values.items() if key in own}
            return _with_miner(_fix_learned(entry.make(num_classes=3, embedding_dim=2, **made), made), values)

    else:
        own = {key: _number(type(source).__name__, key, getattr(example, key)) for key in hyperparameters(example)}
        mined = dataclasses.is_dataclass(example.miner) if isinstance(example, PairLoss) else False

        def build(values: Mapping[str, float]) -> Any:
            made = copy.deepcopy(example)
            for key in values.keys() & own.keys():
                if not isinstance(getattr(made, key), torch.Tensor):  # a parameter is not a number of the formula
                    setattr(made, key, values[key])
            return _with_miner(_fix_learned(made, values), values)

    declared = hyperparameters(example)
    adjustable = {key: Adjustable(declared[key], value) for key, value in own.items()}
    if mined:
        for key, hyper in hyperparameters(example.miner).items():
            adjustable[f"miner.{key}"] = Adjustable(hyper, getattr(example.miner, key))
    return Subject(type(example), adjustable, build)


def _number(name: str, key: str, value: Any) -> float:
    """A hyper-parameter as a number; a learned one has its current value."""
    if not isinstance(value, torch.Tensor):
        return float(value) if isinstance(value, float) else int(value)
    if value.numel() > 1:
        raise NotPrintableError(f"{key} of {name} is one number for each class, which has no JavaScript")
    return float(value.detach())


def _fix_learned(loss: Any, values: Mapping[str, float]) -> Any:
    """The loss with numbers in place of the hyper-parameters that it learns: they have sliders too."""
    for key, declared in hyperparameters(loss).items():
        if declared.learn is not False and key in values:
            fix_hyperparameter(loss, key, values[key])
    return loss


def _with_miner(loss: Any, values: Mapping[str, float]) -> Any:
    changed = {name.removeprefix("miner."): value for name, value in values.items() if name.startswith("miner.")}
    if changed:
        loss.miner = dataclasses.replace(loss.miner, **changed)
    return loss


# ------------------------------------------------------------------------------------------------ the text


@dataclass(frozen=True, eq=False)
class Printed:
    """A loss as JavaScript.

    Args:
        names: the hyper-parameters that it depends on, in the order of the arguments of ``run``.
        choices: the hyper-parameters that Python code branches on, and their possible values.
        run: the function, as text.

    Examples:
        >>> from likewise.losses import ContrastiveLoss
        >>> print_loss(subject_of(ContrastiveLoss)).names
        ('positive_margin', 'negative_margin')
    """

    names: tuple[str, ...]
    choices: Mapping[str, tuple[float, ...]]
    run: str


def print_loss(subject: Subject) -> Printed:
    """Print a loss.

    Examples:
        >>> from likewise.losses import MultiSimilarityLoss
        >>> "softplus(f0[i]) / h_alpha" in print_loss(subject_of(MultiSimilarityLoss)).run
        True
    """
    choices = {name: _choices(subject, name) for name in subject.adjustable if _python_decides(subject, name)}
    chosen = [dict(zip(choices, values, strict=True)) for values in itertools.product(*choices.values())]
    texts = [_text(subject.build({**_symbols(subject), **values})) for values in chosen]
    # a handwritten function may read any of them, and the shape of the matrix contains the number of centers
    by_hand = any(f"{subject.kind.__name__}_" in text for text in texts)
    names = tuple(
        name
        for name in subject.adjustable
        if by_hand or name in (*choices, "centers") or any(f"h[{json.dumps(name)}]" in text for text in texts)
    )
    versions = [f"lossOf({{ names: {json.dumps(names)}, {text} }})" for text in texts]
    if not choices:
        return Printed(names, choices, versions[0])
    places, listed = [names.index(name) for name in choices], ",\n".join(versions)
    return Printed(
        names, choices, f"choose({json.dumps(places)}, {json.dumps(list(choices.values()))}, [\n{listed}\n])"
    )


def _symbols(subject: Subject) -> dict[str, float]:
    """Symbols for hyper-parameters by name; whole numbers stay numbers."""
    return {
        name: each.value if each.whole else javascript.Symbol(each.inside(name), javascript.Parameter(name))
        for name, each in subject.adjustable.items()
    }


def _text(loss: Any) -> str:
    """The argument of ``lossOf``: the matrices of a loss, and its functions of points."""
    alone, matrices = [], []
    for between, declaration in _declarations(loss).items():
        terms, regularizers, whole = sort_declaration(declaration)
        if regularizers:
            alone.append(_by_hand(loss, "alone", "a regularizer"))
        terms, mine = _mine_terms(loss, terms, whole)
        value, inputs = _value(terms, loss.reduction)
        if whole and not isinstance(loss.reduction, str):
            raise NotPrintableError(f"{loss.reduction!r} of a function of the matrix has no JavaScript")
        functions = [javascript.print_value(value, inputs)] if terms else []
        if whole:
            name = _by_hand(loss, "matrix", "a function of the matrix")
            functions.append(f"averaged({json.dumps(loss.reduction)}, {name})")
        made = [_by_hand(loss, node.compute.__name__.strip("_"), repr(node)) for node in inputs]
        pool = _pool(loss, between)
        matrices.append(
            f"{{ between: {json.dumps(between)}, similarity: {_similarity(loss, between)}, pool: {pool}, mine: {mine}, "
            f"inputs: [{', '.join(made)}], functions: [{', '.join(functions)}] }}"
        )
    return f"alone: [{', '.join(alone)}], matrices: [{', '.join(matrices)}]"


def _declarations(loss: Any) -> dict[str, Declaration]:
    declared = loss.declare()
    if isinstance(loss, ProxyLoss):
        return {between.value: declaration for between, declaration in declared.items()}
    return {Between.SAMPLES_SAMPLES.value: declared}


def _mine_terms(loss: Any, terms: list[Term], whole: list[MatrixLoss]) -> tuple[list[Term], str]:
    """Terms after mining, and the miner's conditions on pairs as a function."""
    miner = getattr(loss, "miner", None)
    if miner is None:
        return terms, "null"
    if isinstance(miner, PairMiner):
        return terms, javascript.print_conditions(*miner.keep(as_similarity(loss.similarity)))
    choice = miner.choice(as_similarity(loss.similarity)) if isinstance(miner, TripletMiner) else None
    triplets = [term for term in terms if isinstance(term, TripletTerm)]
    if choice is None or whole or len(triplets) < len(terms):
        raise NotPrintableError(f"the choice of {type(miner).__name__} is not a formula of this loss")
    return [term.chosen_by(choice) for term in triplets], "null"


def _value(terms: list[Term], reduction: Reduction) -> tuple[Formula, list[Any]]:
    """The reduced sum of all terms, and the numbers per anchor, reference and pair that the batch provides."""
    if isinstance(reduction, ClassWeighted) or reduction == "mean_per_anchor":
        raise NotPrintableError(f"the reduction {reduction!r} has no JavaScript")
    if isinstance(reduction, Thresholded):
        terms = [term.within(reduction) for term in terms]
    counted = counted_by(reduction)
    value: Formula | None = None
    for term in terms:
        number: Formula = Total(term.total)
        if counted in ("mean", "nonzero"):
            number = number / at_least(Total(term.units if counted == "mean" else term.nonzero), 1)
        value = number if value is None else value + number
    value = Number(0.0) if value is None else value
    return value, [node for node in walk(value) if isinstance(node, PerAnchor | PerReference | PerPair)]


def _by_hand(loss: Any, role: str, what: str) -> str:
    name = f"{type(loss).__name__}_{role}"
    if f"function {name}(" not in BY_HAND and f"const {name} =" not in BY_HAND:
        raise NotPrintableError(f"{what} of {type(loss).__name__} is a Python function that has no JavaScript")
    return name


def _pool(loss: Any, between: str) -> str:
    if between != Between.SAMPLES_CLASSES.value:
        return "null"
    return "nearest" if isinstance(loss.pooling, NearestCenter) else _by_hand(loss, "pool", "the pooling")


def _similarity(loss: Any, between: str) -> str:
    similarity = as_similarity(loss.similarity)
    if between == Between.PROXIES_PROXIES.value:
        similarity, compared = loss.between_proxies(torch.zeros(2, loss.embedding_dim), loss.proxies)
        if compared is not loss.proxies:
            raise NotPrintableError(f"how {type(loss).__name__} compares proxies has no JavaScript")
    kind = next((name for name, known in SIMILARITIES.items() if type(known) is type(similarity)), None)
    if kind not in javascript.LINKS:
        raise NotPrintableError(f"the similarity {similarity!r} has no JavaScript")
    return f"{{ kind: {json.dumps(kind)}, normalize: {json.dumps(similarity.normalize)} }}"


def similarity_name(similarity: SimilarityLike) -> str:
    """The name of a similarity, if it has one.

    Examples:
        >>> from likewise.formula import Cosine, Dot
        >>> similarity_name(Cosine()), similarity_name(Dot(normalize=True))
        ('cosine', 'Dot(normalize=True)')
    """
    if isinstance(similarity, str):
        return similarity
    return next((name for name, known in SIMILARITIES.items() if known == similarity), repr(similarity))


# ------------------------------------------------------------------------------------------------ hyper-parameters


def _python_decides(subject: Subject, name: str) -> bool:
    """Whether a formula depends on a hyper-parameter in other ways than through its symbol."""
    each = subject.adjustable[name]
    symbols = _symbols(subject)
    plain = {key: float(value) if isinstance(value, javascript.Symbol) else value for key, value in symbols.items()}
    loss = subject.build(symbols)
    least, most = each.range(name)
    tried = _choices(subject, name) if each.whole else (least, most, each.value, 0.17 * least + 0.83 * most)
    return not all(_agrees(loss, subject, {**plain, name: value}) for value in tried if each.hyper.allows(value))


def _choices(subject: Subject, name: str) -> tuple[float, ...]:
    """Few values of a hyper-parameter: round ones, the ends and the default."""
    each = subject.adjustable[name]
    least, most = each.range(name)
    if not each.whole:
        return tuple(sorted({least, (least + most) / 2.0, most, each.value}))
    if most - least < MANY:
        return tuple(range(int(least), int(most) + 1))
    rounded = {digit * 10**power for power in range(7) for digit in (1, 2, 5)}
    needed = {least, most, each.value}
    values = sorted({value for value in rounded if least <= value <= most} | needed)
    while len(values) > MANY:  # drop values that are nearest to their predecessor first
        spare = [k for k, value in enumerate(values) if value not in needed]
        del values[min(spare, key=lambda k: values[k] / values[k - 1])]
    return tuple(values)


def _agrees(symbolic: Any, subject: Subject, values: Mapping[str, float]) -> bool:
    """Whether symbolic formulas, at some hyper-parameters, equal the declaration of the loss with these."""
    loss: Any = subject.build(values)
    here, there = _declarations(symbolic), _declarations(loss)
    formulas = [_at(each, values, Number) for each in _formulas(here, symbolic)]
    if repr(formulas) == repr(_formulas(there, loss)):
        return True
    of_miner = [_at(each, values, Number) for each in _formulas({}, symbolic)]
    if repr(of_miner) != repr(_formulas({}, loss)):
        return False
    keys = {between.value: between for between in loss.declare()} if isinstance(loss, ProxyLoss) else {}
    replaced = {keys.get(between): _substitute_terms(here[between], there[between], values) for between in there}
    return _same_values(loss, replaced if keys else replaced[None])


def _formulas(declarations: Mapping[str, Declaration], loss: Any) -> list[Formula]:
    """Every formula of a loss's declarations, and of its miner."""
    miner = getattr(loss, "miner", None)
    found = list(miner.keep(as_similarity(loss.similarity))) if isinstance(miner, PairMiner) else []
    choice = miner.choice(as_similarity(loss.similarity)) if isinstance(miner, TripletMiner) else None
    if choice is not None:
        found += [each for each in (choice.positive, choice.negative, choice.keep) if each is not None]
    for declaration in declarations.values():
        terms, _, _ = sort_declaration(declaration)
        found += [formula for term in terms for formula in (term.total, term.units, term.nonzero)]
    return found


def _at(formula: Formula, values: Mapping[str, float], make: Callable[[Any], Formula]) -> Formula:
    """A formula with the numbers of some hyper-parameters in place of its symbols."""
    made: dict[Formula, Formula] = {}
    for node in walk(formula):
        if isinstance(node, Number) and isinstance(node.value, javascript.Symbol):
            made[node] = make(javascript.value_at(node.value, values))
    return substitute(formula, made)


def _substitute_terms(symbolic: Declaration, plain: Declaration, values: Mapping[str, float]) -> Declaration:
    """A declaration with the symbolic terms, at some hyper-parameters, and the other items unchanged."""

    def tensor(value: float) -> Formula:
        return Number(torch.tensor(value, dtype=torch.float64))

    def at(formula: Formula) -> Formula:
        return _at(formula, values, tensor)

    terms, _, _ = sort_declaration(symbolic)
    _, regularizers, whole = sort_declaration(plain)
    made = [per_triplet(*map(at, term.values)) if isinstance(term, TripletTerm) else term.map(at) for term in terms]
    return (*made, *regularizers, *whole)


def _same_values(loss: Any, declaration: Any) -> bool:
    """Whether a loss has the same values and gradients with another declaration."""
    loss, other = loss.double(), copy.deepcopy(loss).double()
    other.declare = lambda: declaration
    draw = torch.Generator().manual_seed(0)
    for _ in range(3):
        embeddings = torch.randn(12, 2, generator=draw, dtype=torch.float64).requires_grad_()
        labels = torch.randint(3, (12,), generator=draw)
        found = []
        for each in (loss, other):
            value = each(embeddings, labels).sum()
            gradient = torch.autograd.grad(value, embeddings, allow_unused=True, materialize_grads=True)[0]
            found.append(torch.cat([value.detach()[None], gradient.flatten()]))
        if not torch.allclose(found[0], found[1], rtol=CLOSE, atol=CLOSE):
            return False
    return True
