"""Functions with a state, margins, scores or a second view: equal to their docstring, to the module and to its updates."""

from __future__ import annotations

import dataclasses
import inspect

import pytest
import torch

from likewise import functional, losses
from likewise.formula import as_similarity
from likewise.testing import make_batch
from tests.functional.cases import CLASSES, DIM, SAMPLING
from tests.functional.test_expressions import expression_of, run, vocabulary

EMBEDDINGS, LABELS = make_batch("ragged", dim=4)
SECOND = make_batch("ragged", dim=4, seed=1).embeddings
SCORES = torch.tensor([3, 1, 2, 2, 5, 1, 4, 4, 3, 2, 5, 1, 3, 2, 4])


def proxies(dim: int = DIM) -> torch.Tensor:
    return torch.randn(CLASSES, dim, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def evaluate(function, **names):
    """What the expression in a docstring gives, with the defaults of the function."""
    defaults = {name: each.default for name, each in inspect.signature(function).parameters.items()}
    return run(expression_of(function), {**vocabulary(), "sum": sum, "abs": abs, "len": len, **defaults, **names})


@pytest.mark.parametrize("name", ["co_sent", "angl_e", "vic_reg", "anti_collapse"])
def test_rows(name: str):
    function = getattr(functional, name)
    kind = {"co_sent": losses.CoSENTLoss, "angl_e": losses.AnglELoss, "vic_reg": losses.VICRegLoss}.get(
        name, losses.AntiCollapseLoss
    )
    options = {each: 0.7 * getattr(kind(), each) for each in inspect.signature(kind).parameters}
    names = {"embeddings": EMBEDDINGS, "scores": SCORES, "references": SECOND, "labels": None}
    given = {each: names[each] for each in inspect.signature(function).parameters if each in names}
    value = function(**given, **options)
    torch.testing.assert_close(value, evaluate(function, **given, **options))
    torch.testing.assert_close(value, kind(**options)(**given))


@pytest.mark.parametrize("name", ["Arc", "Cos"])
@pytest.mark.parametrize("plus", [False, True])
def test_margins(name: str, plus: bool):
    """Value and gradients with given margins; with ``plus`` the smallest for the largest target cosine."""
    function, kind = getattr(functional, f"elastic_{name.lower()}_face"), getattr(losses, f"Elastic{name}FaceLoss")
    embeddings, labels = make_batch("ragged")
    table = proxies()
    margins = torch.linspace(0.1, 0.5, len(labels), dtype=torch.float64) * (60.0 if name == "Arc" else 1.0)
    S = as_similarity("cosine")(embeddings, table)
    own = torch.nn.functional.one_hot(labels, CLASSES).bool()
    handed = margins
    if plus:
        handed = torch.empty_like(margins)
        handed[S[own].argsort(descending=True)] = margins.sort().values
    names = {"S": S, "own": own, "labels": labels, "margins": handed}
    value = function(embeddings, labels, table, margins, plus=plus, scale=8.0)
    torch.testing.assert_close(value, evaluate(function, **names, plus=plus, scale=8.0))
    module = kind(CLASSES, DIM, plus=plus, scale=8.0).double()
    with torch.no_grad():
        module.proxies.copy_(table)
    torch.testing.assert_close(module(embeddings, labels, margins=margins), value)
    module.sample_margins = lambda n: margins[:n]
    torch.testing.assert_close(module(embeddings, labels), value)


def test_ada_face_returns_its_state():
    embeddings, labels = make_batch("ragged")
    table, state = proxies(), (torch.tensor(3.0, dtype=torch.float64), torch.tensor(0.5, dtype=torch.float64))
    own = torch.nn.functional.one_hot(labels, CLASSES).bool()
    names = {"embeddings": embeddings, "labels": labels, "S": as_similarity("cosine")(embeddings, table), "own": own}
    expected = evaluate(functional.ada_face, batch_mean=state[0], batch_std=state[1], t_alpha=0.3, **names)
    found = functional.ada_face(embeddings, labels, table, *state, t_alpha=0.3)
    torch.testing.assert_close(found, expected)
    assert [float(each) for each in state] == [3.0, 0.5]
    module = losses.AdaFaceLoss(CLASSES, DIM, t_alpha=0.3).double()
    with torch.no_grad():
        module.proxies.copy_(table)
        module.batch_mean.copy_(state[0])
        module.batch_std.copy_(state[1])
    torch.testing.assert_close(module(embeddings, labels), found[0])
    torch.testing.assert_close((module.batch_mean, module.batch_std), found[1])


def test_dynamic_soft_margin_returns_its_state():
    embeddings, labels = make_batch("ragged")
    same = labels[:, None] == labels
    names = {"P": same & ~torch.eye(len(labels), dtype=torch.bool), "N": ~same}
    names["S"] = as_similarity("euclidean")(embeddings)
    module, histogram = losses.DynamicSoftMarginLoss(momentum=0.3).double(), torch.zeros(10, dtype=torch.float64)
    for step in range(2):  # from an empty histogram, and from the one after that
        expected = evaluate(functional.dynamic_soft_margin, histogram=histogram, momentum=0.3, **names)
        found = functional.dynamic_soft_margin(embeddings, labels, histogram, momentum=0.3)
        torch.testing.assert_close(found, expected)
        torch.testing.assert_close(module(embeddings, labels), found[0])
        torch.testing.assert_close(module.histogram, found[1])
        histogram = found[1]
        embeddings = embeddings.flip(1) + step
        names["S"] = as_similarity("euclidean")(embeddings)


def test_a_tree_and_layers():
    """Functions of a tree of classes and of layers equal their docstrings and the modules, with gradients for the layers."""
    embeddings, labels = make_batch("ragged")
    same = labels[:, None] == labels
    names = {
        "embeddings": embeddings,
        "labels": labels,
        "P": same & ~torch.eye(len(labels), dtype=torch.bool),
        "N": ~same,
    }
    module = losses.HierarchicalTripletLoss(CLASSES, margin=0.2, levels=5).double()
    module.update(embeddings, labels)
    tree = dict(module.named_buffers())
    assert len(set(tree["nodes"][:, 1].tolist())) < len(set(tree["nodes"][:, 0].tolist()))
    value = functional.hierarchical_triplet(embeddings, labels, **tree, margin=0.2)
    S = as_similarity("squared_euclidean")(embeddings)
    torch.testing.assert_close(value, evaluate(functional.hierarchical_triplet, S=S, **names, **tree, margin=0.2))
    torch.testing.assert_close(module(embeddings, labels), value)
    learned = losses.PDDMLoss(DIM, beta=0.8).double()
    layers = {name: each.detach().clone().requires_grad_() for name, each in learned.named_parameters()}
    value = functional.pddm(embeddings, labels, layers, beta=0.8)
    S = as_similarity("euclidean")(embeddings)
    torch.testing.assert_close(value, evaluate(functional.pddm, S=S, **names, layers=layers, beta=0.8))
    torch.testing.assert_close(learned(embeddings, labels), value)
    assert all(each is not None for each in torch.autograd.grad(value, list(layers.values())))


@pytest.mark.parametrize("kind", [losses.AdaFaceLoss, losses.DynamicSoftMarginLoss])
def test_states_in_transforms(kind: type):
    """A function is pure, so that it also runs inside ``vmap`` and ``grad``; a module in training says that it does not."""
    embeddings, labels = make_batch("ragged")
    if kind is losses.AdaFaceLoss:
        table, state = proxies(), (torch.tensor(3.0), torch.tensor(0.5))

        def value(x):
            return functional.ada_face(x, labels, table, *state)[0]

        module = kind(CLASSES, DIM).double()
    else:

        def value(x):
            return functional.dynamic_soft_margin(x, labels, torch.zeros(10))[0]

        module = kind().double()
    batches = torch.stack([embeddings, embeddings.flip(1)])
    torch.testing.assert_close(torch.vmap(value)(batches), torch.stack([value(each) for each in batches]))
    leaf = embeddings.clone().requires_grad_()
    torch.testing.assert_close(torch.func.grad(value)(embeddings), torch.autograd.grad(value(leaf), leaf)[0])
    with pytest.raises(RuntimeError, match=r"inside a transform of torch\.func; call eval\(\) before"):
        torch.func.grad(lambda x: module(x, labels))(embeddings)


@pytest.mark.parametrize("kind", [losses.AdaFaceLoss, losses.ElasticArcFaceLoss, losses.ElasticCosFaceLoss])
def test_signatures(kind: type):
    """Keywords of the function are those of the class, except for what its tensors decide."""
    function = {losses.AdaFaceLoss: functional.ada_face, losses.ElasticArcFaceLoss: functional.elastic_arc_face}.get(
        kind, functional.elastic_cos_face
    )
    parameters = inspect.signature(function).parameters
    fields = {field.name: field.default for field in dataclasses.fields(kind)}
    drawn = set() if kind is losses.AdaFaceLoss else {"margin", "std"}
    wanted = set(fields) - SAMPLING - {"num_classes", "embedding_dim"} - drawn
    by_keyword = {name: each.default for name, each in parameters.items() if each.kind is each.KEYWORD_ONLY}
    assert by_keyword == {name: fields[name] for name in wanted}
