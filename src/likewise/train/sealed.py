"""The sealed test set: it is read only after its opening was recorded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, NoReturn, TypeVar

from likewise.train.run import Run

T = TypeVar("T")


class Sealed(Generic[T]):
    """A test set that must be opened, which is recorded in a run first.

    The data are created only when opened, so that before there is nothing to look at: it has no
    length, no labels and no images, it is not copied and not pickled.

    Args:
        make: makes the test set.
        description: a description that can be read without opening.

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
            raise TypeError(
                f"make must be a function that makes the test set, so that it is not there before, but it is {make!r}"
            )
        self._description = description

        def opened(run: Run, why: str, model: str, evaluating: bool) -> T:
            if not isinstance(run, Run):
                raise TypeError(
                    f"run must be a Run, in which the opening is recorded, but it is a {type(run).__name__}"
                )
            if not isinstance(why, str) or not why.strip():
                raise ValueError(f"why must be a reason in words, but it is {why!r}")
            Run.record_opening(run, why, model, evaluating=evaluating)  # not the method of a subclass
            return make()

        self._open = opened

    @property
    def description(self) -> str:
        """The description."""
        return self._description

    def open(self, run: Run, why: str, *, model: str = "best", evaluating: bool = False) -> T:
        """Record that the test set is opened, then make it.

        Args:
            run: the run that it is opened for.
            why: the reason, in words.
            model: which of the run's models is evaluated: ``"best"``, ``"model"`` or a path.
            evaluating: an evaluation follows that ends with ``run.close_opening()``: see `Run.record_opening`.
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
