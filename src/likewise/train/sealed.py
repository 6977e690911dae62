"""The sealed test set, which is read only after its opening has been recorded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, NoReturn, TypeVar

from likewise.train.run import Run

T = TypeVar("T")


class Sealed(Generic[T]):
    """A test set that can only be used after its opening has been recorded in a run.

    The data set is created when it is opened.  Before that there is nothing to look at: a sealed test set has no length,
    labels or images, and cannot be copied or pickled.

    Args:
        make: a function that creates the test set.
        description: a description that is available without opening.

    Examples:
        >>> import tempfile
        >>> from likewise.train import Run
        >>> sealed = Sealed(lambda: ["the", "test", "set"], "three words")
        >>> sealed
        Sealed(three words)
        >>> len(sealed)
        Traceback (most recent call last):
        TypeError: the test set (three words) is sealed: open(run, why) opens it and records that in the run
        >>> run = Run.create(tempfile.mkdtemp() + "/run", {})
        >>> sealed.open(run, why="the final number")
        ['the', 'test', 'set']
        >>> [opening["why"] for opening in run.openings()]
        ['the final number']
    """

    __slots__ = ("_description", "_open")

    def __init__(self, make: Callable[[], T], description: str) -> None:
        if not callable(make):
            raise TypeError(f"make must be a function that creates the test set when it is opened, but it is {make!r}")
        self._description = description

        def open_sealed(run: Run, why: str, model: str, evaluating: bool) -> T:
            if not isinstance(run, Run):
                raise TypeError(
                    f"run must be the Run in which the opening is recorded, but it is a {type(run).__name__}"
                )
            if not isinstance(why, str) or not why.strip():
                raise ValueError(f"why must be a reason, as text, but it is {why!r}")
            Run.record_opening(run, why, model, evaluating=evaluating)  # not the method of a subclass
            return make()

        self._open = open_sealed

    @property
    def description(self) -> str:
        """The description, available without opening."""
        return self._description

    def open(self, run: Run, why: str, *, model: str = "best", evaluating: bool = False) -> T:
        """Record the opening in a run, then create and return the test set.

        Args:
            run: the run for which the test set is opened.
            why: the reason, as text.
            model: the model of the run that is evaluated: ``"best"``, ``"model"`` or a path.
            evaluating: whether an evaluation follows that ends with ``run.close_opening()``; see `Run.record_opening`.
        """
        return self._open(run, why, model, evaluating)

    def _sentence(self) -> str:
        return f"the test set ({self.description}) is sealed: open(run, why) opens it and records that in the run"

    def _refuse(self, *_: object) -> NoReturn:
        raise TypeError(self._sentence())

    __len__ = __iter__ = __getitem__ = __contains__ = _refuse
    __copy__ = __deepcopy__ = __reduce_ex__ = _refuse

    def __getattr__(self, name: str) -> NoReturn:
        # an AttributeError, for callers such as hasattr
        raise AttributeError(name if name.startswith("_") else self._sentence())

    def __repr__(self) -> str:
        return f"Sealed({self.description})"
