"""Parameter groups of the optimizer: every trained parameter belongs to exactly one group."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import nn

from likewise.text import nearest_name
from likewise.train.settings import OptimizerConfig


@dataclass(frozen=True)
class Group:
    """Parameters that share a learning rate.

    Args:
        name: the name of the group in records and in `OptimizerConfig.lrs`.
        parameters: the parameters.
        lr: their learning rate, before the schedule.

    Examples:
        >>> from torch import nn
        >>> [group] = parameter_groups(nn.Linear(2, 1), None, OptimizerConfig(lr=0.1))
        >>> group.name, group.lr, group.size
        ('model', 0.1, 3)
    """

    name: str
    parameters: tuple[nn.Parameter, ...]
    lr: float

    @property
    def size(self) -> int:
        """The number of trained parameters, counted as scalars."""
        return sum(each.numel() for each in self.parameters)


def parameter_groups(model: nn.Module, loss: object, optimizer: OptimizerConfig) -> list[Group]:
    """Return the parameter groups of a training run: those of the model, and one for each parameter name of the loss.

    A model defines its groups with a method ``parameter_groups()`` that returns lists of parameters by name.  A model
    without this method is one group, ``"model"``.  A parameter of the loss is in the group of its name.

    Args:
        model: the network.
        loss: a callable; only a module has parameters.
        optimizer: settings with the learning rates.

    Raises:
        ValueError: if a trained parameter is in no group or in two, or if ``lrs`` names a group that does not exist.

    Examples:
        >>> from likewise.losses import ProxyAnchorLoss
        >>> from likewise.trunks import Embedder
        >>> proxies = ProxyAnchorLoss(num_classes=10, embedding_dim=64)
        >>> groups = parameter_groups(Embedder("convnet", 64), proxies, OptimizerConfig(lrs={"proxies": 1e-2}))
        >>> [(group.name, group.lr) for group in groups]
        [('trunk', 0.0001), ('head', 0.0001), ('proxies', 0.01)]
    """
    names = _name_parameters(model, loss)
    of_model = _group_model(model)
    taken = set(of_model)
    groups = [Group(name, each, optimizer.lrs.get(name, optimizer.lr)) for name, each in of_model.items() if each]
    groups += _group_loss(loss, optimizer, taken)
    _check_each_once(groups, names)
    known = taken | {"loss"}  # also for a loss without parameters, so that one configuration serves all losses
    for name in optimizer.lrs:
        if name not in known:
            close = nearest_name(name, sorted(known))
            hint = "" if close is None else f" (did you mean {close!r}?)"
            listed = ", ".join(sorted(map(repr, known)))
            raise ValueError(f"lrs must name groups among {listed}, but it names {name!r}{hint}")
    return groups


def _name_parameters(model: nn.Module, loss: object) -> dict[int, str]:
    """Map the id of each trained parameter to its name, for messages."""
    found: dict[int, str] = {}
    for what, module in (("model", model), ("loss", loss)):
        if isinstance(module, nn.Module):
            for name, parameter in module.named_parameters():
                if parameter.requires_grad:
                    found.setdefault(id(parameter), f"{what}.{name}")
    return found


def _group_model(model: nn.Module) -> dict[str, tuple[nn.Parameter, ...]]:
    own = getattr(model, "parameter_groups", None)
    if own is None:
        return {"model": tuple(each for each in model.parameters() if each.requires_grad)}
    named = own()
    if not isinstance(named, Mapping):
        raise TypeError(
            f"model.parameter_groups() must return lists of parameters by name, but it returns a {type(named).__name__}"
        )
    return {name: tuple(each for each in some if each.requires_grad) for name, some in named.items()}


def _group_loss(loss: object, optimizer: OptimizerConfig, taken: set[str]) -> list[Group]:
    if not isinstance(loss, nn.Module):
        return []
    if any(getattr(each, "sparse", False) is True for each in loss.modules()):
        raise ValueError(
            "loss must have sparse=False, but it has sparse=True: these optimizers need dense gradients; "
            "use torch.optim.SparseAdam or SGD for sparse proxies in a custom training loop"
        )
    own = getattr(loss, "parameter_groups", None)
    suggested: dict[int, float] = {}
    for group in own() if own is not None else []:
        suggested.update({id(each): group["lr"] for each in group["params"] if "lr" in group})
    of_model = frozenset(taken)  # a rate for such a group does not apply to a parameter of the loss with the same name
    gathered: dict[tuple[str, float], list[nn.Parameter]] = {}
    for name, parameter in loss.named_parameters():
        if parameter.requires_grad:
            last = name.rpartition(".")[2]
            lr = optimizer.lrs.get("loss", suggested.get(id(parameter), optimizer.lr))
            lr = lr if last in of_model else optimizer.lrs.get(last, lr)
            gathered.setdefault((last, lr), []).append(parameter)
    groups: list[Group] = []
    for (name, lr), parameters in gathered.items():
        while name in taken:  # two losses of a sum may suggest different rates for parameters of the same name
            name = f"loss.{name}"
        taken.add(name)
        groups.append(Group(name, tuple(parameters), optimizer.lrs.get(name, lr)))
    return groups


def _check_each_once(groups: list[Group], names: Mapping[int, str]) -> None:
    owner: dict[int, str] = {}
    for group in groups:
        for parameter in group.parameters:
            if id(parameter) in owner:
                name = names.get(id(parameter), "a parameter")
                raise ValueError(
                    f"every parameter must be in one group, but {name} is in {owner[id(parameter)]!r} and in {group.name!r}"
                )
            owner[id(parameter)] = group.name
    orphans = [name for each, name in names.items() if each not in owner]
    if orphans:
        more = f" (and {len(orphans) - 1} more)" if len(orphans) > 1 else ""
        listed = ", ".join(repr(group.name) for group in groups)
        raise ValueError(
            f"every parameter must be in one group, but {orphans[0]}{more} is in none of {listed}: "
            "add it to model.parameter_groups(), or set requires_grad to False"
        )


def make_optimizer(
    groups: list[Group], settings: OptimizerConfig, *, capturable: bool = False
) -> torch.optim.Optimizer:
    """Create the torch optimizer that the settings describe.

    Args:
        groups: the parameters.
        settings: optimizer settings.
        capturable: whether its steps can be recorded as a CUDA graph; learning rates are then tensors.

    Examples:
        >>> from torch import nn
        >>> settings = OptimizerConfig("SGD", lr=0.5)
        >>> make_optimizer(parameter_groups(nn.Linear(2, 1), None, settings), settings).param_groups[0]["lr"]
        0.5
    """

    def rate(group: Group) -> Any:
        return torch.tensor(group.lr, device=group.parameters[0].device) if capturable else group.lr

    rows: list[dict[str, Any]] = [{"params": list(group.parameters), "lr": rate(group)} for group in groups]
    common: dict[str, Any] = {"lr": settings.lr, "weight_decay": settings.weight_decay}
    if not rows:
        raise ValueError("model must have a trained parameter, but neither it nor the loss has one")
    if settings.name == "SGD":
        return _plain(torch.optim.SGD)(rows, **common, momentum=settings.momentum, fused=True)
    if settings.name == "RMSprop":
        common |= {"alpha": settings.alpha, "momentum": settings.momentum, "eps": settings.eps}
        return _plain(torch.optim.RMSprop)(rows, **common, foreach=True, capturable=capturable)
    adam = torch.optim.AdamW if settings.name == "AdamW" else torch.optim.Adam
    return _plain(adam)(rows, **common, betas=settings.betas, eps=settings.eps, fused=True, capturable=capturable)


@cache
def _plain(kind: Any) -> Callable[..., torch.optim.Optimizer]:
    """A torch optimizer without the decorators for ``torch.compile``, which import the compiler: 2 s of a start."""

    def step(self: Any, closure: Callable[[], float] | None = None) -> Any:
        with torch.no_grad():
            return inspect.unwrap(kind.step)(self, closure)

    names = ("add_param_group", "zero_grad", "state_dict", "load_state_dict")
    return type(kind.__name__, (kind,), {"step": step, **{name: inspect.unwrap(getattr(kind, name)) for name in names}})


def set_rate(row: dict[str, Any], lr: float) -> None:
    """Set the learning rate of a parameter group of a torch optimizer; a tensor is changed in place.

    Examples:
        >>> row = {"lr": 0.1}
        >>> set_rate(row, 0.2)
        >>> row
        {'lr': 0.2}
    """
    if isinstance(row["lr"], torch.Tensor):
        row["lr"].fill_(lr)  # the same tensor: a recorded step reads it
    else:
        row["lr"] = lr
