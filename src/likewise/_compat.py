"""What the library uses of PyTorch that has no public name; no other file of the package touches a private name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

# The base class of modes that see every operation.  The tutorials of PyTorch import it from here, because no public module
# exports it (torch 1.13 to 2.13).
from torch.utils._python_dispatch import TorchDispatchMode as TorchDispatchMode

F = TypeVar("F", bound=Callable[..., Any])


def assume_constant_result(function: F) -> F:
    """Mark a function whose result ``torch.compile`` treats as a constant of the graph.

    Examples:
        >>> @assume_constant_result
        ... def count_names() -> int:
        ...     return 3
        >>> count_names()
        3
    """
    # torch.compiler.assume_constant_result sets the same attribute, but importing the compiler for it takes seconds
    # (torch 2.1 to 2.13).
    vars(function)["_dynamo_marked_constant"] = True
    return function
