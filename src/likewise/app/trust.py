"""Classes that a configuration may use: those that the package lists, and those that the user allows.

A configuration is data.  Its names are checked here, at every nesting level, before anything is imported.
"""

from __future__ import annotations

import importlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from likewise.app.errors import UserError

PACKAGES = ("likewise.data", "likewise.formula", "likewise.losses", "likewise.miners")
"""The packages whose exports a configuration may always name."""


class NotAllowed(UserError):  # noqa: N818 - the name tells the cause
    """A configuration names classes that likewise does not list and that the user has not allowed.

    Args:
        names: import paths by the key that uses them.

    Examples:
        >>> print(NotAllowed({"loss": "my_package.MyLoss"}))
        loss names my_package.MyLoss, which likewise does not list: it is imported only if you allow it, with --allow my_package.MyLoss
    """

    def __init__(self, names: Mapping[str, str]) -> None:
        self.flags = allow_flags(names.values())
        which = " and ".join(f"{key} names {name}" for key, name in names.items())
        what = "which likewise does not list: it is imported only if you allow it, with"
        if len(self.flags) > 2:
            what = "which likewise does not list: they are imported only if you allow them, with"
        super().__init__(f"{which}, {what} {' '.join(self.flags)}")


def allow_flags(names: Collection[str]) -> list[str]:
    """The flags that allow import paths.

    Examples:
        >>> allow_flags(["my_package.MyLoss"])
        ['--allow', 'my_package.MyLoss']
    """
    return [word for name in dict.fromkeys(names) for word in ("--allow", name)]


def is_allowed(name: str, allow: Collection[str] = ()) -> bool:
    """Whether an import path may be imported: it is listed, allowed, or in an allowed package.

    Examples:
        >>> is_allowed("likewise.losses.CircleLoss"), is_allowed("subprocess.Popen")
        (True, False)
        >>> is_allowed("my_package.losses.MyLoss", ["my_package"]), is_allowed("my_package2.MyLoss", ["my_package"])
        (True, False)
    """
    module, _, last = name.rpartition(".")
    if module in PACKAGES and last in importlib.import_module(module).__all__:
        return True
    return any(name == each or name.startswith(f"{each}.") for each in allow)


def check_names(tree: Any, allow: Collection[str] = (), within: tuple[str, ...] = ()) -> None:
    """Check every class that a tree names, at every level; nothing is imported.

    Args:
        tree: a configuration, or a part of one.
        allow: packages, modules and classes that the user allows.
        within: the key of the part, for the error.

    Raises:
        NotAllowed: a class is neither listed nor allowed.

    Examples:
        >>> check_names({"loss": {"class_path": "likewise.losses.CircleLoss"}})
        >>> check_names({"loss": {"class_path": "torch.nn.Transformer"}})
        Traceback (most recent call last):
        likewise.app.trust.NotAllowed: loss names torch.nn.Transformer, which likewise does not list: ...
    """
    names = {".".join(path): name for path, name in named_classes(tree, within) if not is_allowed(name, allow)}
    if names:
        raise NotAllowed(names)


def foreign_names(tree: Any) -> list[str]:
    """The import paths in a tree that likewise does not list, for the record of a run.

    Examples:
        >>> foreign_names({"loss": {"class_path": "my_package.MyLoss"}, "data": {"class_path": "likewise.data.Glyphs"}})
        ['my_package.MyLoss']
    """
    return list(dict.fromkeys(name for _, name in named_classes(tree) if not is_allowed(name)))


def named_classes(tree: Any, within: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Every import path under a ``class_path``, and the keys that lead to it; names without a dot are not paths.

    A text that contains a ``class_path``, with escapes or without, is an error: a parser could read it as a tree.

    Examples:
        >>> list(named_classes({"loss": {"init_args": {"miner": {"class_path": "my.Miner"}}}}))
        [(('loss', 'miner'), 'my.Miner')]
    """
    if isinstance(tree, Mapping):
        for key, value in tree.items():
            if key == "class_path":
                if isinstance(value, str) and "." in value:
                    if not all(word.isidentifier() for word in value.split(".")):
                        raise UserError(f"{'.'.join(within)} must be an import path such as a.B, but it is {value!r}")
                    yield within, value
            else:
                yield from named_classes(value, within if key in ("init_args", "dict_kwargs") else (*within, str(key)))
    elif isinstance(tree, str):
        if _reads_class(tree):
            raise UserError(f"{'.'.join(within)} must not be a text that contains class_path, but it is {tree!r}")
    elif isinstance(tree, Sequence):
        for value in tree:
            yield from named_classes(value, within)


def _reads_class(tree: Any) -> bool:
    """Whether a text, or one inside it, is YAML for a tree with a ``class_path``, which escapes can hide."""
    import yaml

    if isinstance(tree, Mapping):
        return any(_reads_class(each) for pair in tree.items() for each in pair)
    if not isinstance(tree, str):
        return isinstance(tree, Sequence) and any(map(_reads_class, tree))
    if "class_path" in tree or "\\" not in tree:
        return "class_path" in tree
    try:
        read = yaml.safe_load(tree)
    except (yaml.YAMLError, ValueError):
        return False
    return bool(read != tree) and _reads_class(read)
