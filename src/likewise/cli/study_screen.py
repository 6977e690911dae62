"""What the commands about studies print: progress, results and leaderboards."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from likewise.app import OnStart, StudyFile, StudyReport, Watch, sentence
from likewise.cli.screen import bold, columns, paragraph, suggest, width
from likewise.progress import is_quiet
from likewise.protocols import STUDY_DATABASE, ExecutorBroken, Study, Trial, TrialState, Tried

INTERRUPTED = 130
"""The exit code after Ctrl-C."""


def run_on_screen(
    run: Callable[[OnStart, Watch], StudyReport],
    command: Sequence[str],
    *,
    announce: Callable[[StudyFile, Path, Study], str],
) -> int:
    """Run a study, show its progress, and print its results.

    Args:
        run: function that runs the study, called with ``on_start`` and ``watch`` of `likewise.app.run_study`.
        command: the command that continues the study.
        announce: the first line, for a study, its folder and its table.

    Returns:
        The exit code: 0; 1 if a trial failed or none can run; 130 after Ctrl-C.
    """
    tables: list[Study] = []

    def on_start(study: StudyFile, folder: Path, trials: Study) -> None:
        tables.append(trials)
        print(bold(announce(study, folder, trials)), flush=True)

    try:
        with Screen() as screen:
            report = run(on_start, screen.show)
    except KeyboardInterrupt:
        if not tables:
            raise
        _print_stopped(tables[0].counts(), command)
        return INTERRUPTED
    except ExecutorBroken as error:
        print(sentence(error), file=sys.stderr)
        return 1
    return _print_outcome(report, tables[0], command)


def _print_outcome(report: StudyReport, trials: Study, command: Sequence[str]) -> int:
    failure = 1 if report.counts["failed"] else 0
    if report.is_concluded and report.study.search is not None:
        return print_search(report)
    if report.is_concluded:
        print_report(report)
        return failure
    if trials.file.name != STUDY_DATABASE:
        state = ", ".join(f"{report.counts[name]} {name}" for name in ("done", "failed", "missing"))
        print(paragraph(f"{trials.file}: {state}; run the command without --shard to merge all shards"))
        return failure
    _print_stopped(report.counts, command)
    return 0


def _print_stopped(counts: Mapping[str, int], command: Sequence[str]) -> None:
    print(f"stopped with {counts['missing']} training runs missing; to continue, run: {shlex.join(command)}")


def print_report(report: StudyReport) -> None:
    """Print failures, leaderboards and comparisons of a study.

    Examples:
        >>> study = StudyFile("one", methods={"circle": {"loss": "CircleLoss"}}, base={"data": "Glyphs"})
        >>> print_report(StudyReport(study, Path("studies/one"), {"missing": 1}))
        nothing is done yet
    """
    for result in report.results:
        if result.status == "failed":
            print(paragraph(f"failed: {describe(result.trial)}: {result.error}"))
        elif result.note:
            print(paragraph(f"note: {describe(result.trial)}: {result.note}"))
    if report.page is None:
        print("nothing is done" + ("" if report.results else " yet"))
        return
    if report.unfair:
        differences = "; ".join(map(str, report.unfair))
        print(
            "\n"
            + paragraph(
                "not ranked: training runs may differ only in the method, but they differ in "
                f"{differences}; --allow-unfair ranks them anyway and marks the table"
            )
        )
        print(report.page)
        return
    for name, board in report.leaderboards.items():
        print(bold(f"\n{name}"))
        print(board.text(width()))
    if report.tournament is not None:
        print(bold("\ntournament"))
        print(report.tournament.text())
        sentences = [report.no_pairs] if report.comparisons is None else report.comparisons.sentences()
        print("\n" + "\n".join(map(paragraph, sentences)))
    print(f"\n{report.folder / 'results.csv'}\n{report.page}")
    suggest("leaderboard" if report.comparisons is None else "compare", str(report.folder))


def print_search(report: StudyReport) -> int:
    """Print the best settings of a search.

    Returns:
        The exit code.

    Examples:
        >>> study = StudyFile("one", methods={"circle": {"loss": "CircleLoss"}}, base={"data": "Glyphs"})
        >>> print_search(StudyReport(study, Path("studies/one"), {"missing": 0}))
        no setting could be trained: every setting was pruned
        1
    """
    if report.best is None:
        reason = next((result.error for result in report.results if result.error), "every setting was pruned")
        print(paragraph(f"no setting could be trained: {reason}"))
        return 1
    print(_format_settings(report.tried, report.study.metric))
    behind = sum(result.note is not None for result in report.results)
    if behind:
        total = len(report.results)
        print(paragraph(f"note: {behind} of {total} training runs never improved on the model before training"))
    command = shlex.join(["likewise", "repeat", "--config", str(report.folder / "best.yaml")])
    print(f"\nnext, to train with several seeds and measure on the test set: {command}")
    return 0


def _format_settings(tried: Sequence[Tried], objective: str) -> str:
    """A table of the best settings."""
    done = sorted((one for one in tried if one.value is not None), key=lambda one: -(one.value or 0.0))
    rows = [(f"validation {objective}", "setting")]
    for one in done[:8]:
        setting = ", ".join(
            f"{path} {value:.4g}" for path, value in one.point.items() if isinstance(value, int | float)
        )
        rows.append((f"{100 * (one.value or 0.0):.2f}", setting))
    others = len(tried) - len(done)
    return columns(rows) + (f"\n  {others} others failed or were pruned" if others else "")


class Screen:
    """A live table on a terminal; elsewhere a line per finished trial; with ``--quiet`` only failures.

    Examples:
        >>> with Screen() as screen:
        ...     screen.show([TrialState(Trial("circle", {}))], {})
        0 of 1 training runs done
    """

    def __init__(self) -> None:
        self._live: Any = None
        self._last = -1
        self._start = time.monotonic()
        self._before: int | None = None
        self._has_failed = False

    def __enter__(self) -> Screen:
        if sys.stdout.isatty() and not is_quiet():
            try:
                from rich.live import Live
            except ImportError:
                return self
            self._live = Live(refresh_per_second=4, transient=False)
            self._live.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        if self._live is not None:
            self._live.__exit__(*error)

    def show(self, states: Sequence[TrialState], running: Mapping[str, str]) -> None:
        """Show the states of all trials, and the workers of running ones."""
        failed = next((each for each in states if each.state == "failed"), None)
        if failed is not None and not self._has_failed:
            self._has_failed = True
            print(paragraph(f"first failure: {describe(failed.trial)}: {failed.error}"), flush=True)
        if self._live is not None:
            self._live.update(self._table(states, running))
            return
        ended = _count_ended(states)
        if ended != self._last and not is_quiet():
            self._last = ended
            print(self._summary(states), flush=True)

    def _table(self, states: Sequence[TrialState], running: Mapping[str, str]) -> Any:
        from rich.table import Table

        grid = Table(title=self._summary(states), title_justify="left", box=None, pad_edge=False)
        for column in ("trial", "state", "where", "step", "validation"):
            grid.add_column(column)
        ended = [each for each in states if each.state in ("done", "failed", "pruned")][-8:]
        for each in (*ended, *(one for one in states if one.trial.key in running)):
            where = running.get(each.trial.key)
            state = each.state if where is None else "running"
            value = "" if each.value is None else f"{100 * each.value:.1f}"
            style = {"running": "bold", "failed": "red"}.get(state, "")
            step = "" if each.step is None else str(each.step)
            grid.add_row(describe(each.trial), state, where or "", step, value, style=style)
        return grid

    def _summary(self, states: Sequence[TrialState]) -> str:
        ended = _count_ended(states)
        if self._before is None:
            self._before = ended  # in earlier processes
        fresh, seconds = ended - self._before, time.monotonic() - self._start
        left = len(states) - ended
        ahead = f", about {_minutes(seconds / fresh * left)} left" if fresh and left else ""
        failed = sum(each.state == "failed" for each in states)
        wrong = f", {failed} failed" if failed else ""
        return f"{ended} of {len(states)} training runs done{wrong}{ahead}"


def _count_ended(states: Sequence[TrialState]) -> int:
    return sum(each.state in ("done", "failed", "pruned") for each in states)


def describe(trial: Trial) -> str:
    """A trial in a few words.

    Examples:
        >>> describe(Trial("circle", {}, seed=1, labels={"dim": 64}))
        'circle, dim 64, seed 1'
    """
    labels = [f"{name} {value}" for name, value in trial.labels.items() if name not in ("data", "trunk")]
    fold = [f"fold {trial.fold}"] if trial.fold else []
    return ", ".join([trial.method, *labels, f"seed {trial.seed}", *fold])


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
