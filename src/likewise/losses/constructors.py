"""Constructors of losses, generated from the declared hyper-parameters and options; learned hyper-parameters."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import math
import sys
import types
import typing
from collections.abc import Collection
from numbers import Real
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from likewise.formula import Hyper, Number, hyperparameters
from likewise.text import nearest_name

Module = TypeVar("Module", bound=nn.Module)


ELSEWHERE = {"embedding_size": "embedding_dim", "distance": "similarity", "reducer": "reduction"}
"""Argument names of other libraries and the corresponding names here."""


def initialize_module(module: Module, arguments: Collection[str] = ()) -> Module:
    """Check the names of a constructor's arguments and run ``nn.Module.__init__`` before the generated constructor."""
    if arguments:
        _check_names(type(module), arguments)
    nn.Module.__init__(module)
    return module


def _check_names(cls: Any, arguments: Collection[str]) -> None:
    _, *known = inspect.signature(cls.__init__).parameters.values()
    if any(each.kind is inspect.Parameter.VAR_KEYWORD for each in known):
        return
    parameters = [each.name for each in known]
    for name in arguments:
        if name not in parameters:
            near = ELSEWHERE.get(name) or nearest_name(name, parameters)
            hint = f"did you mean {near}?" if near in parameters else f"it has {', '.join(parameters)}"
            raise TypeError(f"{cls.__name__} has no argument {name}; {hint}")


def make_constructor(cls: type) -> None:
    """Generate a class's constructor from its declared hyper-parameters and options."""
    for name, value in cls.__dict__.items():
        if isinstance(value, dataclasses.Field) and name not in inspect.get_annotations(cls):
            raise TypeError(f"{cls.__name__}: {name} must be declared with a type, {name}: float = hyper(...)")
    own = inspect.get_annotations(cls)
    cls.__annotations__ = {**own, **_declare_defaults(cls)}
    dataclasses.dataclass(eq=False, repr=False)(cls)
    cls.__annotations__ = own  # a type's name may be undefined in the module of the subclass
    for field in dataclasses.fields(cls):
        # a default left on the class would hide a parameter of the same name (MarginLoss.beta) from nn.Module
        if field.name in cls.__dict__:
            delattr(cls, field.name)
        declared = field.metadata.get("hyper")
        if declared is not None and declared.learn is not False:
            _check_learned(cls, field.name, declared)
            setattr(cls, field.name, _learnable(field.name, declared))
    _resolve_types(cls)
    if "forward" not in cls.__dict__:
        _copy_forward(cls)


def _check_learned(cls: type, name: str, declared: Hyper) -> None:
    """Check that the option named by ``learn`` exists, and that the name of the parameter is not taken."""
    fields = {field.name: field for field in dataclasses.fields(cls)}
    if isinstance(declared.learn, str):
        decides = fields.get(declared.learn)
        if decides is None or not isinstance(decides.default, bool):
            raise TypeError(
                f"{cls.__name__}: learn of {name} must be True, False or the name of an option that is True or False, "
                f"but it is {declared.learn!r}"
            )
    if declared.is_learned_as_logarithm and (f"log_{name}" in fields or hasattr(cls, f"log_{name}")):
        raise TypeError(
            f"{cls.__name__}: log_{name} must be the parameter of {name}, which is learned as its logarithm, "
            "but the class declares it"
        )


def _resolve_types(cls: Any) -> None:
    """Replace type names in the constructor's annotations by types: a name may be undefined in a subclass's module."""
    for field in dataclasses.fields(cls):
        declared = next(base for base in cls.__mro__ if field.name in inspect.get_annotations(base))
        known = declared.__init__.__annotations__.get(field.name, "") if declared is not cls else ""
        if not isinstance(known, str):  # resolved when the base was defined
            cls.__init__.__annotations__[field.name] = known
            continue
        holder = types.SimpleNamespace(__annotations__={field.name: declared.__annotations__[field.name]})
        names = vars(sys.modules.get(declared.__module__, types))
        with contextlib.suppress(NameError):  # a class inside a function, or a name for type checkers only
            cls.__init__.__annotations__ |= typing.get_type_hints(holder, names)


def _declare_defaults(cls: type) -> dict[str, Any]:
    """Make plain class attributes with the name of an inherited argument its default, and return the types."""
    inherited = {
        field.name: field
        for base in reversed(cls.__mro__[1:])
        if dataclasses.is_dataclass(base)
        for field in dataclasses.fields(base)
    }
    types_of: dict[str, Any] = {}
    for name in (inherited.keys() & set(cls.__dict__)) - inspect.get_annotations(cls).keys():
        default, field = cls.__dict__[name], inherited[name]
        if hasattr(default, "__get__"):
            raise TypeError(
                f"{cls.__name__}: {name} is an argument of the constructor, and its default must be a plain value, "
                f"but it is a {type(default).__name__}"
            )
        again = dataclasses.field(default=default, kw_only=field.kw_only is True, metadata=field.metadata)
        setattr(cls, name, again)
        types_of[name] = field.type
    return types_of


def _copy_forward(cls: Any) -> None:
    """Copy ``forward`` into the class: torch.compile limits the graphs per function, which losses would share."""
    inherited = cls.forward
    # torch.compile also records by name which numbers change from call to call, and these differ between losses
    code = inherited.__code__.replace(co_name=f"forward_of_{cls.__name__}", co_qualname=f"{cls.__qualname__}.forward")
    forward = types.FunctionType(code, inherited.__globals__, "forward", inherited.__defaults__, inherited.__closure__)
    forward.__kwdefaults__, forward.__annotations__ = inherited.__kwdefaults__, inherited.__annotations__
    forward.__doc__, forward.__module__ = inherited.__doc__, inherited.__module__
    forward.__qualname__ = f"{cls.__qualname__}.forward"
    cls.forward = forward


def learn_hyperparameters(loss: nn.Module) -> None:
    """Replace the hyper-parameters declared with ``learn`` by parameters."""
    for name, declared in hyperparameters(loss).items():
        if declared.learn is True or (declared.learn and getattr(loss, declared.learn)):
            start = float(getattr(loss, name))
            log = declared.is_learned_as_logarithm
            vars(loss).pop(f"log_{name}", None)
            loss._parameters[f"log_{name}" if log else name] = nn.Parameter(
                torch.tensor(math.log(start) if log else start)
            )


def fix_hyperparameter(loss: nn.Module, name: str, value: float) -> None:
    """Set a hyper-parameter to a number and stop learning it.

    Examples:
        >>> from likewise.losses import NTXentLoss
        >>> loss = NTXentLoss(learn_temperature=True)
        >>> fix_hyperparameter(loss, "temperature", 0.5)
        >>> loss.temperature, list(loss.parameters())
        (0.5, [])
    """
    if hyperparameters(loss)[name].learn is not False:
        for parameter in (name, f"log_{name}"):
            loss._parameters.pop(parameter, None)
    setattr(loss, name, value)


def _learnable(name: str, declared: Hyper) -> property:
    """An attribute that is a number, or a parameter, or the exponential of the parameter ``log_<name>``."""
    log = declared.is_learned_as_logarithm
    parameter, fixed = f"log_{name}" if log else name, f"_fixed_{name}"

    def read(loss: Any) -> Any:
        if parameter not in loss._parameters:
            return getattr(loss, fixed)
        value = loss._parameters[parameter]
        value = value.exp() if log else value
        # torch.compile mistakes arithmetic of a formula and a tensor for arithmetic of tensors
        return Number(value) if torch.compiler.is_compiling() else value

    def assign(loss: Any, value: float) -> None:
        if parameter not in loss._parameters:
            vars(loss)[fixed] = value
            if log:
                vars(loss)[parameter] = None
            return
        if not isinstance(value, Real | Tensor) or not declared.allows(float(value)):
            kind = f"a number {declared.limits()}".rstrip()
            raise ValueError(f"{type(loss).__name__}: {name} must be {kind}, but it is {value!r}")
        with torch.no_grad():
            loss._parameters[parameter].fill_(math.log(value) if log else value)

    return property(read, assign, doc="The number; a tensor with a gradient while it is learned.")


def describe(module: Any) -> str:
    """Return the constructor's arguments that differ from their defaults, and all hyper-parameters."""
    shown = []
    for field in dataclasses.fields(module):
        value = getattr(module, field.name)
        if isinstance(value, Tensor):
            several = "on meta" if value.is_meta else f"{value.numel()} values"
            plain = value.numel() == 1 and not value.is_meta
            shown.append(f"{field.name}={value.item():g}" if plain else f"{field.name}=({several})")
        elif "hyper" in field.metadata or value != field.default:
            shown.append(f"{field.name}={value!r}")
    return ", ".join(shown)
