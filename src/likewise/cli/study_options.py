"""Options of the commands about studies: where trials run, and how long."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence

from likewise.app import Execution, UserError
from likewise.cli.arguments import Arguments


def add_execution_options(options: Arguments, *, shards: bool = True) -> None:
    """Add the options that `read_execution` reads.

    Examples:
        >>> options = Arguments("study run", "Run trials.")
        >>> add_execution_options(options)
        >>> read_execution(options.parse_args(["--workers", "2"])).workers
        2
    """
    options.add_argument(
        "--workers", metavar="N", type=int, help="trials at once (default: as many as fit); 0 only plans the study"
    )
    options.add_argument("--per-gpu", metavar="N", type=int, default=1, help="trials that share a GPU (default: 1)")
    options.add_argument("--on", metavar="ADDRESS", help="a running Ray cluster: auto, or host:port")
    options.add_argument("--minutes", metavar="M", type=float, help="stop after M minutes; the same command continues")
    options.add_argument(
        "--allow",
        metavar="PACKAGE",
        action="append",
        default=[],
        help="import this package if a trial uses its classes",
    )
    if shards:
        options.add_argument("--shard", metavar="I/N", help="run shard I of N of the trials, into a separate table")


def read_execution(options: Namespace, allow: Sequence[str] = ()) -> Execution:
    """Read where trials run, how many at once and for how long.

    Args:
        options: what the parser returned.
        allow: packages that other options allow.

    Examples:
        >>> options = Namespace(workers=None, per_gpu=1, on=None, minutes=None, shard="2/3", allow=[])
        >>> read_execution(options).shard
        (2, 3)
    """
    shard = parse_shard(getattr(options, "shard", None))
    return Execution(options.workers, options.per_gpu, options.on, options.minutes, shard, (*options.allow, *allow))


def parse_shard(text: str | None) -> tuple[int, int] | None:
    """The number of a shard and the number of all shards, from ``I/N``.

    Examples:
        >>> parse_shard("2/8")
        (2, 8)
    """
    if text is None:
        return None
    number, _, count = text.partition("/")
    if not (number.isdigit() and count.isdigit()):
        raise UserError(f"--shard must be I/N with 1 ≤ I ≤ N, such as 2/8, but it is {text}")
    return int(number), int(count)
