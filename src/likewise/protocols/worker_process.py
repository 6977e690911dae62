"""The worker process of a `LocalExecutor`, which runs one trial after the other and ends with its driver.

Driver and worker exchange pickles over the standard input and output of the worker; the output of a trial goes to the log of
the worker.  A thread reads the input.  When the input ends, the driver has ended, and the trial is asked for a checkpoint.
"""

from __future__ import annotations

import os
import pickle
import queue
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO

GRACE = 60.0
"""Seconds that a trial has to save its checkpoint after the driver has ended."""

_DRIVER_GONE = object()


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise ``KeyboardInterrupt`` on SIGTERM and SIGHUP, as on SIGINT.

    Examples:
        >>> with interruptible():
        ...     pass
    """

    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    asked = [signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])]
    main = threading.current_thread() is threading.main_thread()
    # nohup ignores SIGHUP: keep that
    before = {each: signal.getsignal(each) for each in asked if main and signal.getsignal(each) != signal.SIG_IGN}
    for each in before:
        signal.signal(each, interrupt)
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def serve(inbox: BinaryIO, outbox: BinaryIO) -> None:
    """Run the trials that the driver sends, until it closes the input or requests a stop."""
    sys.path[:] = pickle.load(inbox)
    run = pickle.load(inbox)
    from likewise.protocols.executor import run_one

    messages: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(inbox, messages), daemon=True).start()

    def send(*message: Any) -> None:
        with suppress(BrokenPipeError):  # the driver has ended; the other thread handles that
            pickle.dump(message, outbox)
            outbox.flush()

    def ask(_key: str, step: int, value: float) -> bool | None:
        send("report", step, value)
        answer = messages.get()
        # the driver has ended: continue until SIGTERM requests the checkpoint
        return True if answer is _DRIVER_GONE else answer

    send("ready")
    with interruptible():
        try:
            while (trial := messages.get()) is not _DRIVER_GONE:
                send("ended", run_one(run, trial, ask))
        except KeyboardInterrupt:
            send("stopped")


def _listen(inbox: BinaryIO, messages: queue.SimpleQueue[Any]) -> None:
    with suppress(EOFError, pickle.UnpicklingError):
        while True:
            messages.put(pickle.load(inbox))
    messages.put(_DRIVER_GONE)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE)
    os._exit(1)


def main() -> None:
    """Redirect the output of trials to the log, and run trials."""
    inbox, outbox = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    serve(inbox, outbox)


if __name__ == "__main__":
    main()
