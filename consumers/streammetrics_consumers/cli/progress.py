"""The progress of a long command: a bar on a terminal, elsewhere a log line every few seconds."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Final, TypeAlias

from streammetrics_consumers.cli import logs
from streammetrics_consumers.model import formatting
from streammetrics_consumers.model.progress import Progress

log = logging.getLogger(__name__)

QUICK_S: Final = 1.0  # shorter commands show no bar
EVERY_S: Final = 5.0  # between two lines without a terminal
Report: TypeAlias = Callable[[Progress], None]


@contextmanager
def shown(activity: str, monotonic: Callable[[], float], unit: str = "events") -> Iterator[Report]:
    """A function that reports progress, for the duration of the block."""
    if logs.are_json() or not sys.stderr.isatty():
        yield _lines(activity, monotonic, unit)
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[text]}"),
    )
    # Other output goes through the bar's console, which redraws the bar below it.
    console = Console(stderr=True, markup=False, highlight=False)
    with Bar(*columns, console=console, transient=True, refresh_per_second=8) as bar:
        task = bar.add_task(activity, total=None, text="")

        def report(progress: Progress) -> None:
            left = progress.remaining
            bar.update(
                task,
                completed=progress.rows,
                total=None if left is None else progress.rows + left,
                text=described(progress, unit),
            )

        yield report


@contextmanager
def counted(
    activity: str, unit: str, monotonic: Callable[[], float]
) -> Iterator[Callable[[int, int], None]]:
    """A function that reports the number done and the total, for the duration of the block. Bytes
    are shown as MiB. A block shorter than QUICK_S shows nothing."""
    began_s = monotonic()
    bits = 20 if unit == "bytes" else 0
    with ExitStack() as stack:
        report: Report | None = None

        def update(n_done: int, total: int) -> None:
            nonlocal report
            seconds = monotonic() - began_s
            if report is None and seconds >= QUICK_S:
                report = stack.enter_context(shown(activity, monotonic, "MiB" if bits else unit))
            if report is not None:
                report(Progress(n_done >> bits, seconds, max(total - n_done, 0) >> bits))

        yield update


def described(progress: Progress, unit: str = "events") -> str:
    """One line: events so far, the rate, and the time left if the end is known."""
    rate = formatting.count(round(progress.rows_per_second))
    text = f"{formatting.count(progress.rows)} {unit}, {rate}/s"
    if progress.remaining is not None and progress.rows + progress.remaining:
        share = progress.rows / (progress.rows + progress.remaining)
        text += f", {share:.0%}"
        if progress.remaining and progress.seconds_left is not None:
            text += f", {formatting.duration(progress.seconds_left)} left"
    return text


def _lines(task: str, monotonic: Callable[[], float], unit: str) -> Report:
    said_s = monotonic()

    def report(progress: Progress) -> None:
        nonlocal said_s
        if monotonic() - said_s >= EVERY_S:
            said_s = monotonic()
            log.info("%s %s", task, described(progress, unit))

    return report
