"""Losses as pure functions of tensors for `likewise.engines.graphs`: attributes form a key, parameters are inputs."""

from __future__ import annotations

import copy
import dataclasses
import functools
import weakref
from collections.abc import Callable, Hashable
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from likewise.distributed import SINGLE_PROCESS, current_group
from likewise.engines import graphs
from likewise.engines.constants import SIMPLE, as_constant
from likewise.engines.dispatch import KERNELS_IN_GRAPH, TRITON_FROM, EngineKind, choose_in_graph, needs_positives
from likewise.engines.positive_index import find_positive_index
from likewise.formula import (
    Labels,
    PairBatch,
    Pooled,
    PositiveIndex,
    as_similarity,
    can_read_values,
    has_similarity_hook,
    sort_declaration,
)

Arguments: TypeAlias = tuple[Tensor | None, ...]
"""Those of the ``forward`` of a loss."""

_OF_TORCH = frozenset({"_declaration", *(name for name in vars(nn.Module()) if name[0] == "_")})
"""Attributes that torch adds to a loss."""


def replay(loss: Any, embeddings: Tensor, *others: Tensor | None) -> Tensor | None:
    """Compute a loss on a GPU with a CUDA graph; ``None`` if it must be computed without one.

    Args:
        loss: a `PairLoss` or a `ProxyLoss`.
        embeddings: the first argument of its ``forward``.
        others: the other arguments.

    Examples:
        >>> import torch
        >>> from likewise.losses import ContrastiveLoss
        >>> replay(ContrastiveLoss(), torch.eye(2), torch.tensor([0, 1])) is None
        True
    """
    if torch.compiler.is_compiling() or loss.backend != "auto" or not isinstance(embeddings, Tensor):
        return None
    if loss.is_stateful or loss._modules:
        return None
    if not graphs.accepts(embeddings.device) or not _is_plain(embeddings):
        return None
    learned = {name: each for name, each in (*loss._parameters.items(), *loss._buffers.items()) if each is not None}
    arguments = (embeddings, *others)
    tensors = [each for each in (*arguments, *learned.values()) if each is not None]
    key = _key(loss)
    if key is None or not all(map(torch.is_tensor, tensors)):
        return None
    # whether kernels can run a loss is checked once, before a capture
    pairs = _pairs(loss, arguments)
    if pairs >= KERNELS_IN_GRAPH[1]:
        return None
    prepare = functools.partial(_pure, loss, arguments, tuple(learned))
    there = tuple([each is not None for each in arguments])
    if _draws(loss):
        return _replay_draw(loss, pairs, arguments, (key, there, *learned), prepare, tensors)
    index: list[Tensor] = []
    attempts = None
    if pairs >= graphs.UP_TO and graphs.fits(tensors):
        attempts = _find_attempts(loss, (key, embeddings.dtype), arguments)
    if attempts is not None and attempts.left:
        attempts.left -= 1
        positives = _index_positives(arguments)  # outside of the graph, because it reads from the device
        if positives is None:
            return None
        index = [each for each in (positives.index, positives.exists) if each is not None]
    value = graphs.call(loss, (key, there, len(index), *learned), prepare, [*tensors, *index])
    if value is not None and index and attempts is not None:
        attempts.left = ATTEMPTS
    return value


def _draws(loss: Any) -> bool:
    """Whether the loss has a miner whose draws may be given."""
    return hasattr(vars(loss).get("miner"), "with_numbers")


def _replay_draw(
    loss: Any,
    pairs: int,
    arguments: Arguments,
    key: Hashable,
    prepare: Callable[[], Callable[..., Tensor] | None],
    tensors: list[Tensor],
) -> Tensor | None:
    """Compute a loss whose miner draws; the numbers that it draws are an input of the graph.

    Random numbers do not depend on whether a graph serves the call: without one the generator is as before, and the numbers
    are those that the dense engine would draw.  Where it would not compute the batch, no graph does.
    """
    embeddings, _, references, *_ = arguments
    assert embeddings is not None
    if embeddings.ndim != 2 or (references is not None and references.ndim != 2) or not 0 < pairs < DRAWN_UP_TO:
        return None
    fits = graphs.fits(tensors) and sum([each.nbytes for each in tensors]) + 8 * pairs <= graphs.INPUT_BYTES
    if not fits or loss.reduction in PER_ANCHOR:
        return None
    m, device = len(embeddings), embeddings.device
    generator = torch.cuda.default_generators[device.index] if device.type == "cuda" else torch.default_generator
    before, value = generator.get_state(), None
    try:
        numbers = loss.miner.draw(m, m if references is None else len(references), device)
        value = graphs.call(loss, key, prepare, [*tensors, numbers])
    finally:
        if value is None:
            generator.set_state(before)
    return value


DRAWN_UP_TO = min(graphs.UP_TO, TRITON_FROM)
"""The number of pairs below which a miner draws from the whole matrix, in a graph as without one."""

PER_ANCHOR = ("none", "mean_per_anchor")
"""Reductions to vectors, whose gradients are not captured."""

ATTEMPTS = 64
"""Calls in a row, without a graph that serves them, for which positives are indexed: each number of positives has a graph."""


@dataclasses.dataclass
class _Attempts:
    """For how many more calls of a loss the positives are indexed outside of a graph.

    Args:
        key: the attributes of the loss, and the dtype of embeddings.
        left: the number of calls; zero if kernels do not need the positives, or if no graph can serve the loss.
    """

    key: Hashable
    left: int


_ATTEMPTS: weakref.WeakKeyDictionary[nn.Module, _Attempts] = weakref.WeakKeyDictionary()


def _find_attempts(loss: Any, key: Hashable, arguments: Arguments) -> _Attempts | None:
    """What is left of the attempts to serve a loss on a large batch; ``None`` unless the batch is compared with itself."""
    _, _, *references = arguments
    if hasattr(loss, "proxies") or any(each is not None for each in references):
        return None
    attempts = _ATTEMPTS.get(loss)
    if attempts is None or attempts.key != key:
        # vectors of values with a gradient are not captured, and kernels do not rank an anchor among its positives
        fits = loss.reduction not in PER_ANCHOR and not loss.ranks_itself()
        engines = EngineKind.TRITON, EngineKind.CHUNKED
        takes = fits and needs_positives(loss.declarations()) and _choose(loss, arguments) in engines
        attempts = _ATTEMPTS[loss] = _Attempts(key, ATTEMPTS if takes else 0)
    return attempts


def _index_positives(arguments: Arguments) -> PositiveIndex | None:
    """The positives of each anchor of a batch against itself; ``None`` if there are many or labels are wrong."""
    embeddings, labels, *_ = arguments
    assert embeddings is not None
    if labels is None or labels.shape != embeddings.shape[:1] or labels.is_floating_point():
        return None
    if labels.device != embeddings.device:
        return None
    with torch.no_grad():
        return find_positive_index(PairBatch(Labels(labels), anchors=embeddings), large=True)


def _is_plain(embeddings: Tensor) -> bool:
    """Whether values are not read, no similarity hook is set, and there is one process."""
    return not can_read_values(embeddings) and not has_similarity_hook() and current_group() is SINGLE_PROCESS


def _key(loss: nn.Module) -> Hashable | None:
    """The attributes of a loss, by value; ``None`` if one of them is mutable."""
    found: list[Hashable] = []
    for name, value in vars(loss).items():
        if name in _OF_TORCH:
            continue
        if type(value) not in SIMPLE:
            value = as_constant(value)
            if value is NotImplemented:
                return None
        found.append((name, value))
    return tuple(found)


def _pairs(loss: Any, arguments: Arguments) -> int:
    """The size of the largest matrix of embeddings."""
    # proxies are a parameter, which is faster to find there than as an attribute
    embeddings, references = arguments[0], arguments[2] if len(arguments) > 2 else loss._parameters.get("proxies")
    assert embeddings is not None
    m = embeddings.shape[0] if embeddings.ndim else 0
    return m * (m if references is None or not references.ndim else references.shape[0])


def _choose(loss: Any, arguments: Arguments) -> EngineKind | None:
    """The engine that is captured; ``None`` if the batch is too large for a graph."""
    pairs, embeddings = _pairs(loss, arguments), arguments[0]
    pooled = getattr(loss, "pools_centers", False)
    # small batches do not depend on the declaration; up to its limit, a table of proxies is faster as a whole
    least = graphs.UP_TO if hasattr(loss, "proxies") and not pooled else KERNELS_IN_GRAPH[0]
    whole = pairs < (graphs.POOLED_UP_TO if pooled else graphs.UP_TO)
    if pairs >= least and embeddings is not None:
        similarity, dtype = as_similarity(loss.similarity), embeddings.dtype
        if pooled:
            similarity = Pooled(similarity, loss.proxies_per_class, loss.pooling)
        if len(arguments) > 2 and arguments[2] is not None:
            dtype = torch.promote_types(dtype, arguments[2].dtype)  # that of the batch
        miner = getattr(loss, "miner", None)
        kind = choose_in_graph(loss.declarations(), similarity, miner, dtype, pairs, whole=whole)
        if kind is not EngineKind.DENSE:
            return kind
    return EngineKind.DENSE if whole else None


def _pure(loss: Any, like: Arguments, names: tuple[str, ...]) -> Callable[..., Tensor] | None:
    """The loss on one engine as a function of its tensors, independent of later changes of the loss.

    Args:
        loss: the loss.
        like: the arguments of a call.
        names: the loss's parameters and buffers, which come after the arguments; the numbers that a miner draws, or the
            positions of positives and which of them exist, come last.
    """
    kind = _choose(loss, like)
    if kind is None:
        return None
    there = tuple([each is not None for each in like])
    proxies = getattr(loss, "proxies", None)
    if proxies is not None and len(proxies) ** 2 >= graphs.UP_TO and loss.compares_proxies:
        return None
    if _reads_pair_numbers(loss):  # of a function that may read another tensor at the next call
        return None
    snapshot, draws = _snapshot(loss, kind), _draws(loss)

    def compute(*tensors: Tensor) -> Tensor:
        some = iter(tensors)
        arguments = tuple([next(some) if each else None for each in there])
        state = {f"loss.{name}": next(some) for name in names}
        more, options = tuple(some), {}
        module = _Forward(_with_numbers(snapshot, *more) if draws else snapshot)
        if more and not draws:
            assert arguments[1] is not None
            options["relation"] = Labels(arguments[1], positives=PositiveIndex(*more))
        value: Tensor = torch.func.functional_call(module, state, arguments, options)
        return value

    return compute


def _reads_pair_numbers(loss: Any) -> bool:
    """Whether the loss declares numbers per pair."""
    return any(term.reads_pair_numbers for each in loss.declarations() for term in sort_declaration(each)[0])


def _snapshot(loss: Any, kind: EngineKind) -> Any:
    """A copy that shares no attribute, holds no parameter and runs on one engine."""
    other = copy.copy(loss)
    own = vars(other)
    for name in own:
        if name not in _OF_TORCH:
            own[name] = copy.deepcopy(own[name])
    for store in ("_parameters", "_buffers"):
        own[store] = {name: None if each is None else torch.empty(0) for name, each in own[store].items()}
    other.backend = kind.value
    return other


def _with_numbers(loss: Any, numbers: Tensor) -> Any:
    """A copy of a loss whose miner uses these numbers."""
    other = copy.copy(loss)
    vars(other)["miner"] = loss.miner.with_numbers(numbers)
    return other


class _Forward(nn.Module):
    """The ``forward`` of a loss without the module's hooks, which run around the call."""

    def __init__(self, loss: nn.Module) -> None:
        super().__init__()
        self.loss = loss

    def forward(self, *arguments: Tensor | None, **options: Labels) -> Tensor:
        value: Tensor = self.loss.forward(*arguments, **options)
        return value
