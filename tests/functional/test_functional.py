"""Every loss as a pure function: it is the class, less the state."""

from __future__ import annotations

import dataclasses
import doctest
import inspect
import math
import threading
import typing
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from likewise import functional, losses, miners
from likewise.formula import Masks, hyperparameters
from likewise.functional import _call
from likewise.testing import loop_over, make_batch
from likewise.testing.batches import LABELS
from tests.functional import on_gpu
from tests.functional.cases import (
    CASES,
    CLASSES,
    CONSTRUCTION,
    DEFAULT,
    LEARNED,
    SAMPLING,
    WITH_OTHER_TENSORS,
    Case,
    function_of,
    kinds,
    label,
    name_of,
)

WITH_PROXIES = [case for case in DEFAULT if case.has_proxies]
ON_PAIRS = [case for case in DEFAULT if issubclass(case.kind, losses.PairLoss)]
BATCH_ARGUMENTS = ["embeddings", "labels", "references", "reference_labels"]

every_case = pytest.mark.parametrize("case", CASES, ids=label)
every_kind = loop_over("case", DEFAULT)


# names and signatures -------------------------------------------------------------------------------------------------


@loop_over(
    "kind, name",
    [
        (losses.ContrastiveLoss, "contrastive"),
        (losses.MultiSimilarityLoss, "multi_similarity"),
        (losses.NTXentLoss, "nt_xent"),
        (losses.SupConLoss, "sup_con"),
        (losses.FastAPLoss, "fast_ap"),
        (losses.NPairsLoss, "n_pairs"),
        (losses.NCALoss, "nca"),
        (losses.RAWLoss, "raw"),
        (losses.SNRContrastiveLoss, "snr_contrastive"),
        (losses.SubCenterArcFaceLoss, "sub_center_arc_face"),
        (losses.ProxyNCAPPLoss, "proxy_nca_pp"),
        (losses.ProxyGMLLoss, "proxy_gml"),
        (losses.EmbeddingNorm, "embedding_norm"),
        (losses.CoSENTLoss, "co_sent"),
        (losses.P2SGradLoss, "p2s_grad"),
        (losses.VICRegLoss, "vic_reg"),
    ],
)
def test_the_rule_of_names(kind: type, name: str):
    assert name_of(kind) == name


def test_there_is_one_function_for_each_loss():
    expected = {name_of(kind) for kind in (*kinds(), *WITH_OTHER_TENSORS)}
    assert set(functional.__all__) == expected, "add the function to likewise.functional"


def test_the_example_of_the_package_runs():
    assert doctest.testmod(functional) == (0, 5)


@every_kind
def test_the_signature_is_the_classs(case: Case):
    """Tensors first, then by keyword whatever the class takes, with its defaults."""
    parameters = inspect.signature(function_of(case.kind)).parameters
    positional = [name for name, each in parameters.items() if each.kind is each.POSITIONAL_OR_KEYWORD]
    by_keyword = {name: each for name, each in parameters.items() if each.kind is each.KEYWORD_ONLY}
    assert len(positional) + len(by_keyword) == len(parameters)
    if not dataclasses.is_dataclass(case.kind):
        assert list(parameters) == ["embeddings"]
        return
    more = ["hierarchy"] if case.kind is losses.CSLLoss else []
    assert positional == (["embeddings", "labels", "proxies", *more] if case.has_proxies else BATCH_ARGUMENTS)
    if not case.has_proxies:
        assert by_keyword.pop("relation").default is None
    fields = {field.name: field for field in dataclasses.fields(case.kind)}
    for name in CONSTRUCTION | SAMPLING | {*more}:
        fields.pop(name, None)
    assert set(by_keyword) == set(fields)
    for name, parameter in by_keyword.items():
        default = fields[name].default
        decides = name == "bias" and case.kind is losses.SoftmaxLoss  # there it is an option, and a tensor here
        expected = None if decides else parameter.empty if default is dataclasses.MISSING else default
        assert parameter.default == expected, name
        assert type(parameter.default) is type(expected), name


@every_kind
def test_numbers_that_a_class_learns_may_be_tensors(case: Case):
    hints = typing.get_type_hints(function_of(case.kind))
    for learned in (each for each in LEARNED if each.kind is case.kind):
        for argument in learned.learned:
            assert Tensor in typing.get_args(hints[argument])


# values and gradients -------------------------------------------------------------------------------------------------


def value_and_gradients(value: Tensor, leaves: list[Tensor]) -> list[Tensor]:
    weights = torch.linspace(1.0, 2.0, value.numel(), dtype=value.dtype).reshape(value.shape)
    gradients = torch.autograd.grad((value * weights).sum(), leaves, allow_unused=True, materialize_grads=True)
    return [value.detach(), *gradients]


def compare(case: Case, batch: str, *, tolerance: float = 1e-12, **more: Any) -> None:
    """Value and gradients of the function and of the module on a batch."""
    embeddings, labels = make_batch(batch)
    embeddings.requires_grad_()
    at_call = {name: more.pop(name) for name in ("relation", "references", "reference_labels") if name in more}
    module = case.make(**more)
    tensors = case.tensors(module)
    expected = value_and_gradients(module(embeddings, labels, **at_call), [embeddings, *module.parameters()])
    parameters = [name for name, _ in module.named_parameters()]
    actual = value_and_gradients(
        case.call(embeddings, labels, tensors, **at_call, **more), [embeddings, *tensors.values()]
    )
    torch.testing.assert_close(actual[0], expected[0], rtol=tolerance, atol=tolerance)
    torch.testing.assert_close(actual[1], expected[1], rtol=tolerance, atol=tolerance)
    assert len(actual) == len(expected) == 2 + len(parameters)
    by_parameter = dict(zip(parameters, expected[2:], strict=True))
    for (argument, tensor), gradient in zip(tensors.items(), actual[2:], strict=True):
        of_module = by_parameter[case.learned.get(argument, argument)]
        if case.learned.get(argument) == f"log_{argument}":  # the module learns its logarithm
            gradient = gradient * tensor.detach()
        torch.testing.assert_close(gradient, of_module, rtol=max(tolerance, 1e-10), atol=tolerance)


def tolerance_of(case: Case) -> float:
    """A module keeps a fixed beta in float32, a function has it as exact as the embeddings."""
    return 1e-6 if case.kind is losses.MarginLoss and not case.learned else 1e-12


@loop_over("batch", LABELS)
@every_case
def test_equals_the_module(case: Case, batch: str):
    compare(case, batch, tolerance=tolerance_of(case))


@loop_over("reduction", ["mean", "nonzero", "sum", "none"])
@every_kind
def test_equals_the_module_under_every_reduction(case: Case, reduction: str):
    if dataclasses.is_dataclass(case.kind):
        compare(case, "ragged", reduction=reduction, tolerance=tolerance_of(case))


@loop_over("case", [*WITH_PROXIES, *ON_PAIRS, *LEARNED])
def test_equals_the_module_in_chunks(case: Case):
    """What a backward pass recomputes finds the tensors of the call, not the module's placeholders."""
    compare(case, "ragged", backend="chunked", tolerance=max(tolerance_of(case), 1e-10))


@loop_over("case", ON_PAIRS)
def test_equals_the_module_with_references(case: Case):
    if case.kind.takes_references:
        references, reference_labels = make_batch("balanced", seed=3)
        compare(case, "ragged", references=references, reference_labels=reference_labels, tolerance=tolerance_of(case))


@loop_over("case", ON_PAIRS)
def test_equals_the_module_on_a_relation(case: Case):
    embeddings, labels = make_batch("ragged")
    same = labels[:, None] == labels
    masks = Masks(same & ~torch.eye(len(labels), dtype=torch.bool), ~same)
    # the labels of quadruplets are read; no other labels that are given with a relation matter here
    quadruplets = case.kind in (losses.QuadrupletLoss, losses.QuadrupletWiseLoss)
    if quadruplets:
        with pytest.raises(TypeError, match="labels must be given together with a relation"):
            case.call(embeddings, None, {}, relation=masks)
    if case.kind in (losses.CentroidTripletLoss, losses.MagnetLoss):
        with pytest.raises(TypeError, match="relation must be None"):
            case.call(embeddings, None, {}, relation=masks)
        return
    indices = *masks.positive.nonzero(as_tuple=True), *masks.negative.nonzero(as_tuple=True)
    expected = case.call(embeddings, labels, {})
    for relation, beside in ((masks, None), (indices, None), (indices, labels.flip(0))):
        value = case.call(embeddings, labels if quadruplets else beside, {}, relation=relation)
        torch.testing.assert_close(value, expected, rtol=1e-9, atol=1e-9)


@loop_over("miner", [miners.MultiSimilarityMiner(0.2), miners.SemiHardMiner()])
@loop_over("name", ["triplet", "margin", "multi_similarity", "contrastive"])
def test_equals_the_module_with_a_miner(name: str, miner: miners.Miner):
    [case] = [case for case in DEFAULT if name_of(case.kind) == name]
    compare(case, "ragged", miner=miner, tolerance=tolerance_of(case))


@loop_over("case", LEARNED)
def test_learned_numbers_get_a_gradient(case: Case):
    module = case.make()
    tensors = case.tensors(module)
    case.call(*make_batch("ragged"), tensors).backward()
    for argument in case.learned:
        assert tensors[argument].grad is not None
        assert tensors[argument].grad.abs().max() > 0.0


def test_a_tensor_is_the_number_it_holds():
    embeddings, labels = make_batch("ragged")
    proxies = torch.randn(CLASSES, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    for shape in ((), (1,)):
        number = torch.full(shape, 0.25, dtype=torch.float64)
        for function in (functional.nt_xent, functional.sup_con):
            torch.testing.assert_close(
                function(embeddings, labels, temperature=number), function(embeddings, labels, temperature=0.25)
            )
        torch.testing.assert_close(
            functional.normalized_softmax(embeddings, labels, proxies, temperature=number),
            functional.normalized_softmax(embeddings, labels, proxies, temperature=0.25),
        )
        torch.testing.assert_close(
            functional.margin(embeddings, labels, beta=number), functional.margin(embeddings, labels, beta=0.25)
        )


def test_sampled_classes_are_rows_of_the_proxies():
    """Partial FC without state: the caller chooses classes, and names samples by their places among them."""
    embeddings, labels = make_batch("ragged")
    generator = torch.Generator().manual_seed(0)
    proxies = torch.randn(100, 5, dtype=torch.float64, generator=generator).requires_grad_()
    index = torch.cat([labels.unique(), torch.randperm(90, generator=generator)[:20] + 10]).sort().values
    value = functional.cos_face(embeddings, torch.searchsorted(index, labels), proxies[index], scale=8.0)
    value.backward()
    cosines = torch.nn.functional.normalize(embeddings) @ torch.nn.functional.normalize(proxies[index]).T
    own = labels[:, None] == index
    expected = torch.nn.functional.cross_entropy(8.0 * (cosines - 0.35 * own), own.long().argmax(dim=1))
    torch.testing.assert_close(value, expected)
    assert set(proxies.grad.any(dim=1).nonzero().flatten().tolist()) == set(index.tolist())


# refusals -------------------------------------------------------------------------------------------------------------


@every_kind
def test_a_bad_hyperparameter_gets_the_classs_sentence(case: Case):
    embeddings, labels = make_batch("ragged")
    tensors = case.tensors(case.make())
    defaults = {name: each.default for name, each in inspect.signature(function_of(case.kind)).parameters.items()}
    for name in hyperparameters(case.kind) if dataclasses.is_dataclass(case.kind) else {}:
        for bad in (math.nan, "much", True, *([None] if defaults[name] is not None else [])):
            options = {**case.options, name: bad}
            with pytest.raises((ValueError, TypeError)) as expected:
                dataclasses.replace(case, options=options).make()
            with pytest.raises(type(expected.value)) as caught:
                dataclasses.replace(case, options=options).call(embeddings, labels, tensors)
            assert str(caught.value) == str(expected.value)


@loop_over("option", ["similarity", "miner", "reduction", "backend"])
@every_kind
def test_a_bad_option_gets_the_classs_sentence(case: Case, option: str):
    if option not in inspect.signature(function_of(case.kind)).parameters:
        return
    options = {**case.options, option: "none such"}
    with pytest.raises((ValueError, TypeError)) as expected:
        dataclasses.replace(case, options=options).make()
    with pytest.raises(type(expected.value)) as caught:
        dataclasses.replace(case, options=options).call(*make_batch("ragged"), case.tensors(case.make()))
    assert str(caught.value) == str(expected.value)


@loop_over(
    "change",
    [
        lambda e, y: (e[0], y),
        lambda e, y: (e.long(), y),
        lambda e, y: (e.tolist(), y),
        lambda e, y: (e[:0], y[:0]),
        lambda e, y: (e / 0.0, y),
        lambda e, y: (e, None),
        lambda e, y: (e, y.double()),
        lambda e, y: (e, y[:-1]),
    ],
)
@every_kind
def test_a_bad_batch_gets_the_classs_sentence(case: Case, change: Any):
    batch, module = change(*make_batch("ragged")), case.make()
    error = refusal(lambda: module(*batch))
    if error is None:
        ignores_labels = case.kind in (losses.EmbeddingNorm, losses.ZeroMean) or not case.kind.takes_labels
        assert ignores_labels
        return
    assert repr(refusal(lambda: case.call(*batch, case.tensors(module)))) == repr(error)


def refusal(call: Callable[[], Any]) -> Exception | None:
    try:
        call()
    except (TypeError, ValueError) as error:
        return error
    return None


@loop_over("case", WITH_PROXIES)
def test_bad_proxies_get_one_sentence(case: Case):
    embeddings, labels = make_batch("ragged")
    proxies = case.make().proxies.detach()
    too_few = (
        "hierarchy must have 5 rows" if case.kind is losses.CSLLoss else r"labels must be in 0..4, one proxy for each"
    )
    for bad, error, message in (
        (proxies.tolist(), TypeError, "proxies must be a tensor, but it is a list"),
        (proxies[0], ValueError, r"proxies must have shape \(n, d\), but the shape is \(5,\)"),
        (proxies.long(), TypeError, "proxies must be of a floating-point dtype"),
        (proxies / 0.0, ValueError, "proxies must be finite, but row 0"),
        (proxies[:, :3], ValueError, "embeddings must have the 3 dimensions of the proxies, but have 5"),
        (proxies.to("meta"), ValueError, "embeddings must be on the device of proxies"),
        (proxies[: len(proxies) // 2], ValueError, too_few),
    ):
        with pytest.raises(error, match=message) as caught:
            case.call(embeddings, labels, {"proxies": bad})
        assert "\n" not in str(caught.value)


@loop_over("name", ["sub_center_arc_face", "soft_triple", "proxy_gml"])
def test_every_class_has_as_many_centers(name: str):
    embeddings, labels = make_batch("ragged")
    with pytest.raises(ValueError, match="proxies must have 3 rows for each class, but there are 31 rows"):
        getattr(functional, name)(embeddings, labels, torch.ones(31, 5), centers=3)
    with pytest.raises(ValueError, match="proxies must have 7 rows for each class, but there are 5 rows"):
        getattr(functional, name)(embeddings, labels, torch.ones(5, 5), centers=7)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda e, y, p: functional.nt_xent(e, y, temperature=torch.tensor(-1.0)), ValueError, "NTXentLoss: temperature must be a number > 0, but it is -1"),
        (lambda e, y, p: functional.sup_con(e, y, temperature=torch.ones(2)), ValueError, r"SupConLoss: temperature must have one number, but the shape is \(2,\)"),
        (lambda e, y, p: functional.nt_xent(e, y, temperature=torch.tensor(1)), TypeError, "NTXentLoss: temperature must be of a floating-point dtype"),
        (lambda e, y, p: functional.nt_xent(e, y, temperature=torch.ones((), device="meta")), ValueError, "NTXentLoss: temperature must be on the device of embeddings"),
        (lambda e, y, p: functional.margin(e, y, beta=torch.ones(2, 2)), ValueError, r"MarginLoss: beta must have shape \(n,\), but the shape is \(2, 2\)"),
        (lambda e, y, p: functional.margin(e, y, beta=torch.ones(3)), ValueError, r"labels must be in 0..2, one beta for each class"),
        (lambda e, y, p: functional.softmax(e, y, p, bias=torch.ones(3)), ValueError, r"SoftmaxLoss: bias must have shape \(10,\), but the shape is \(3,\)"),
        (lambda e, y, p: functional.softmax(e, y, p, bias=True), TypeError, "SoftmaxLoss: bias must be a tensor or None, but it is a bool"),
        (lambda e, y, p: functional.softmax(e, y, [[1.0]], bias=torch.ones(3)), TypeError, "proxies must be a tensor, but it is a list"),
    ],
)  # fmt: skip
def test_a_bad_learned_number_gets_one_sentence(call: Any, error: type[Exception], message: str):
    with pytest.raises(error, match=message) as caught:
        call(*make_batch("ragged"), torch.ones(CLASSES, 5, dtype=torch.float64))
    assert "\n" not in str(caught.value)


# purity ---------------------------------------------------------------------------------------------------------------


@loop_over("case", CASES)
def test_draws_no_random_numbers_and_changes_no_input(case: Case):
    embeddings, labels = make_batch("ragged", seed=hash(label(case)) % 1000)
    tensors = case.tensors(case.make())
    before = [embeddings.clone(), labels.clone(), *(each.detach().clone() for each in tensors.values())]
    state = torch.get_rng_state()
    first, second = (case.call(embeddings, labels, tensors).detach() for _ in range(2))
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(first, second)
    for was, now in zip(before, [embeddings, labels, *tensors.values()], strict=True):
        assert torch.equal(was, now)


def test_one_call_leaves_nothing_to_the_next():
    """Also where the options are equal numbers of another type, or the same with other proxies."""
    embeddings, labels = make_batch("ragged")
    assert torch.isfinite(functional.contrastive(embeddings, labels, positive_margin=1.0))
    with pytest.raises(ValueError, match="positive_margin must be a number, but it is True"):
        functional.contrastive(embeddings, labels, positive_margin=True)
    proxies = torch.randn(CLASSES, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    alone = functional.arc_face(embeddings, labels, proxies)
    functional.arc_face(embeddings, labels, -proxies)
    assert torch.equal(functional.arc_face(embeddings, labels, proxies), alone)


def test_options_that_cannot_be_kept_are_used_all_the_same():
    class Unhashable(miners.PairMarginMiner):
        __hash__ = None

    embeddings, labels = make_batch("ragged")
    value = functional.contrastive(embeddings, labels, miner=Unhashable(2.0, -2.0))
    torch.testing.assert_close(value, functional.contrastive(embeddings, labels))


def test_threads_do_not_see_each_others_proxies():
    embeddings, labels = make_batch("ragged")
    generator = torch.Generator().manual_seed(0)
    tables = [torch.randn(CLASSES, 5, dtype=torch.float64, generator=generator) for _ in range(4)]
    expected = [functional.arc_face(embeddings, labels, table) for table in tables]
    wrong: list[int] = []

    def work(which: int) -> None:
        for _ in range(50):
            value = functional.arc_face(embeddings, labels, tables[which])
            wrong.extend([which] * (not torch.equal(value, expected[which])))

    threads = [threading.Thread(target=work, args=(which,)) for which in range(len(tables))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


# a good citizen of torch ----------------------------------------------------------------------------------------------


@every_kind
def test_without_gradients(case: Case):
    embeddings, labels = make_batch("ragged")
    tensors = case.tensors(case.make())
    with torch.no_grad():
        value = case.call(embeddings, labels, tensors)
    assert not value.requires_grad
    torch.testing.assert_close(value, case.call(embeddings, labels, tensors).detach())


@loop_over("case", [*DEFAULT, *LEARNED])
@loop_over("dtype", [torch.float16, torch.bfloat16])
def test_half_precision(case: Case, dtype: torch.dtype):
    """The value is float32 and that of the module; gradients have the dtype of what they are gradients of."""
    embeddings, labels = make_batch("ragged")
    module = case.make().to(dtype)
    half = embeddings.to(dtype).requires_grad_()
    tensors = {name: each.detach().to(dtype).requires_grad_() for name, each in case.tensors(case.make()).items()}
    value = case.call(half, labels, tensors)
    assert value.dtype == torch.float32
    value.backward()
    for each in (half, *tensors.values()):
        assert each.grad is not None
        assert each.grad.dtype == dtype
        assert torch.isfinite(each.grad).all()
    # a logarithm is rounded in the module alone
    if not any(name.startswith("log_") for name in case.learned.values()):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            under = case.call(half, labels, tensors).detach()
        close = {"rtol": 1e-5, "atol": 1e-5} if case.kind is not losses.MarginLoss else {"rtol": 1e-2, "atol": 1e-2}
        torch.testing.assert_close(value.detach(), module(half, labels).detach(), **close)
        torch.testing.assert_close(under, value.detach(), rtol=1e-5, atol=1e-5)


@every_case
@pytest.mark.filterwarnings("ignore:torch.searchsorted")  # vmap expands what it does not map over
def test_transforms(case: Case):
    """``vmap`` and ``grad`` over all tensors; the module that a function finds is constructed inside of them."""
    _call._cached_module.cache_clear()
    embeddings, labels = make_batch("ragged")
    tensors = {name: each.detach() for name, each in case.tensors(case.make()).items()}
    inputs = embeddings, tensors
    scaled = embeddings.flip(0), {name: 1.01 * each for name, each in tensors.items()}
    stacked = (
        torch.stack([embeddings, scaled[0]]),
        {name: torch.stack([tensors[name], scaled[1][name]]) for name in tensors},
    )

    def value(embeddings: Tensor, tensors: dict[str, Tensor]) -> Tensor:
        return case.call(embeddings, labels, tensors)

    torch.testing.assert_close(torch.vmap(value)(*stacked), torch.stack([value(*inputs), value(*scaled)]))
    leaves = [each.clone().requires_grad_() for each in (embeddings, *tensors.values())]
    expected = torch.autograd.grad(value(leaves[0], dict(zip(tensors, leaves[1:], strict=True))), leaves)
    of_embeddings, of_tensors = torch.func.grad(value, argnums=(0, 1))(*inputs)
    torch.testing.assert_close((of_embeddings, *of_tensors.values()), expected)


def test_beside_a_network_that_is_called_as_a_function():
    """Gradients of a network's and a loss's tensors from one pure function of both."""
    embeddings, labels = make_batch("balanced")
    network = torch.nn.Linear(5, 3, dtype=torch.float64)
    weights = {name: each.detach().clone().requires_grad_() for name, each in network.named_parameters()}
    proxies = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    temperature = torch.tensor(0.2, dtype=torch.float64, requires_grad=True)
    features = torch.func.functional_call(network, weights, (embeddings,))
    value = functional.normalized_softmax(features, labels, proxies, temperature=temperature)
    for gradient in torch.autograd.grad(value, [*weights.values(), proxies, temperature]):
        assert gradient.abs().max() > 0.0


def test_gradients_are_right_by_finite_differences():
    embeddings, labels = make_batch("two classes", dim=3)
    embeddings.requires_grad_()
    proxies = torch.randn(2, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    temperature = torch.tensor(0.3, dtype=torch.float64, requires_grad=True)
    bias = torch.tensor([0.3, -0.2], dtype=torch.float64, requires_grad=True)
    beta = torch.tensor([0.9, 1.1], dtype=torch.float64, requires_grad=True)
    for function, inputs in (
        (lambda e, t: functional.nt_xent(e, labels, temperature=t), (embeddings, temperature)),
        (lambda e, t: functional.sup_con(e, labels, temperature=t), (embeddings, temperature)),
        (lambda e, b: functional.margin(e, labels, beta=b, nu=0.1, reduction="sum"), (embeddings, beta)),
        (lambda e, p, b: functional.softmax(e, labels, p, bias=b), (embeddings, proxies, bias)),
        (
            lambda e, p, t: functional.normalized_softmax(e, labels, p, temperature=t),
            (embeddings, proxies, temperature),
        ),
    ):
        assert torch.autograd.gradcheck(function, inputs)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_on_a_gpu():
    for case in CASES:
        on_gpu.check(case)


COMPILED = ["ContrastiveLoss", "FastAPLoss", "ArcFaceLoss", "SoftTripleLoss"]


@pytest.mark.slow
@pytest.mark.parametrize("case", [*(c for c in DEFAULT if label(c) in COMPILED), LEARNED[0]], ids=label)
def test_compiles_whole(case: Case):
    torch.compiler.reset()
    embeddings, labels = make_batch("ragged")
    embeddings.requires_grad_()
    tensors = case.tensors(case.make())
    leaves = [embeddings, *tensors.values()]
    expected = value_and_gradients(case.call(embeddings, labels, tensors), leaves)
    function = torch.compile(function_of(case.kind), fullgraph=True, backend="eager")
    with warnings.catch_warnings():
        # the tracer itself touches something in torch that torch deprecates
        warnings.simplefilter("ignore", DeprecationWarning)
        value = function(embeddings, labels, **tensors, **case.options)
    for actual, wanted in zip(value_and_gradients(value, leaves), expected, strict=True):
        torch.testing.assert_close(actual, wanted)


@pytest.mark.slow
def test_compiled_functions_follow_sizes_and_numbers_that_change():
    torch.compiler.reset()
    embeddings, labels = make_batch("ragged")
    function = torch.compile(functional.cos_face, fullgraph=True, backend="eager", dynamic=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        for classes, margin in ((10, 0.1), (11, 0.1), (11, 0.2), (12, 0.3)):
            proxies = torch.randn(classes, 5, dtype=torch.float64)
            torch.testing.assert_close(
                function(embeddings, labels, proxies, margin=margin),
                functional.cos_face(embeddings, labels, proxies, margin=margin),
            )


@pytest.mark.slow
def test_a_weight_function_runs_beside_a_graph():
    torch.compiler.reset()
    embeddings, labels = make_batch("ragged")
    [case] = [case for case in DEFAULT if case.kind is losses.WeightedPairLoss]
    compiled = torch.compile(lambda x: 2.0 * case.call(3.0 * x, labels, {}), backend="eager")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        value = compiled(embeddings)
    torch.testing.assert_close(value, 2.0 * case.call(embeddings, labels, {}))
    torch.compiler.reset()
    whole = torch.compile(lambda x: case.call(x, labels, {}), backend="eager", fullgraph=True)
    with pytest.raises(Exception, match=r"WeightedPairLoss must be constructed before torch\.compile"):
        whole(embeddings)
