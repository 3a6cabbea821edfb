"""The commands that read: results, status, quarantine, export, merge, show, drift, report, watch.

A command imports what it needs when it runs: `status` takes a third of a second, half of which is
for SQLAlchemy, and needs no numpy.
"""

from __future__ import annotations

import logging
import os
import select
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from streammetrics_consumers.cli import logs, progress
from streammetrics_consumers.cli.arguments import Arguments, UsageError
from streammetrics_consumers.cli.exit_codes import DONE
from streammetrics_consumers.ledger.failures import LedgerError
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.model import formatting
from streammetrics_consumers.query.query import Query, parse_generation, parse_query

if TYPE_CHECKING:
    from streammetrics_consumers.render.terminal import ScreenContents, Watcher

log = logging.getLogger(__name__)

Clock = Callable[[], float]
Wait = Callable[[float], bool]  # wait for these seconds; returns whether to continue

ACTIONS = ("list", "export", "retry")


def read(arguments: Arguments, monotonic: Clock) -> int:
    """Run one of these commands."""
    commands: dict[str, Callable[[Arguments], None]] = {
        "results": lambda command_line: _results(command_line, monotonic),
        "status": _status,
        "quarantine": lambda command_line: _quarantine(command_line, monotonic),
        "export": lambda command_line: _export(command_line, monotonic),
        "merge": lambda command_line: _merge(command_line, monotonic),
        "show": _show,
        "drift": _drift,
        "report": lambda command_line: _report(command_line, monotonic),
        "watch": lambda command_line: _watch(command_line, monotonic),
    }
    commands[arguments.command](arguments)
    return DONE


def _results(arguments: Arguments, monotonic: Clock) -> None:
    from streammetrics_consumers.query.reader import read_json, read_results
    from streammetrics_consumers.render.style import Style
    from streammetrics_consumers.render.text import results_text, text_query

    store, query = arguments.words[0], query_of(arguments)
    if arguments.is_on("json"):
        query = replace(query, headlines=arguments.text("views") == "headline")
    else:
        query = text_query(query)
    logs.to_stderr("text")
    with (
        closing(Ledger.open(store)) as ledger,
        progress.counted("reading", "bytes", monotonic) as update,
    ):
        if arguments.is_on("json"):
            pieces = read_json(ledger, query, update)
        else:
            results = read_results(ledger, query, update, digests=False)
    if arguments.is_on("json"):
        for piece in pieces:
            _write(piece)
    else:
        _print([results_text(results, query, Style.from_stream(sys.stdout), store=store)])


def _status(arguments: Arguments) -> None:
    store, generation = arguments.words[0], parse_generation(arguments.number("generation"))
    with closing(Ledger.open(store)) as ledger:
        if arguments.is_on("history"):
            _history(arguments, ledger, generation)
            return
        if arguments.is_on("json"):
            from streammetrics_consumers.query.status import status_json

            _write(status_json(ledger, generation))
            return
        from streammetrics_consumers.render.store_text import status_text
        from streammetrics_consumers.render.style import Style

        title = ledger.store.name
        style = Style.from_stream(sys.stdout)
        _print([status_text(ledger, style, title=title, generation_number=generation)])


def _history(arguments: Arguments, ledger: Ledger, generation: int | None) -> None:
    from streammetrics_consumers.query.counting_history import counting_history, history_json

    history = counting_history(ledger, generation)
    if arguments.is_on("json"):
        _write(history_json(history))
        return
    from streammetrics_consumers.render.store_text import history_text
    from streammetrics_consumers.render.style import Style

    _print([history_text(history, Style.from_stream(sys.stdout), title=ledger.store.name)])


def _quarantine(arguments: Arguments, monotonic: Clock) -> None:
    from streammetrics_consumers.render import quarantine

    words = arguments.words
    action, store = ("list", words[0]) if len(words) == 1 else words[:2]
    if action not in ACTIONS or len(words) > 2:
        raise UsageError(
            f"quarantine: expected [{'|'.join(ACTIONS)}] STORE, got {' '.join(words)!r}"
        )
    with closing(Ledger.open(store)) as ledger:
        if action == "export":
            _export_quarantine(ledger, arguments.text("output"), monotonic)
        elif arguments.is_on("json"):
            _write(quarantine.as_json(ledger))
        else:
            _print(f"{line}\n" for line in quarantine.listing(ledger))


def _export(arguments: Arguments, monotonic: Clock) -> None:
    from streammetrics_consumers.cli.export_command import export

    export(arguments, monotonic, query_of(arguments))


def _merge(arguments: Arguments, monotonic: Clock) -> None:
    from streammetrics_consumers.query.state_files import merge_files, write_state

    output, paths = _output(arguments), [Path(word) for word in arguments.words]
    logs.to_stderr("text")
    skipped: list[Path] | None = [] if arguments.text("replay") == "skip" else None
    with progress.counted("merging", "files", monotonic) as update:
        state = merge_files(paths, lambda n_done: update(n_done, len(paths)), skipped=skipped)
    write_state(state, output)
    for path in skipped or ():
        log.warning("%s is skipped: all its rows are counted already", path)


def _show(arguments: Arguments) -> None:
    from streammetrics_consumers.query.encoding import dumps
    from streammetrics_consumers.query.state_files import description, read_state
    from streammetrics_consumers.render.state_text import state_text
    from streammetrics_consumers.render.style import Style

    path = Path(arguments.words[0])
    state = read_state(path)
    if arguments.is_on("json"):
        _write(dumps(description(state)))
    else:
        _print([state_text(state, Style.from_stream(sys.stdout), title=path.name)])


def _drift(arguments: Arguments) -> None:
    from streammetrics import StreamMetricsError
    from streammetrics_consumers.query.encoding import dumps
    from streammetrics_consumers.query.state_drifts import drifts_json, drifts_of
    from streammetrics_consumers.query.state_files import read_state
    from streammetrics_consumers.render.state_text import drifts_text
    from streammetrics_consumers.render.style import Style

    paths = [Path(word) for word in arguments.words]
    reference, current = (read_state(path) for path in paths)
    label, bins = arguments.number("label"), arguments.number("bins") or 0
    try:
        drifts = drifts_of(reference, current, label=label, bins=bins)
    except StreamMetricsError as error:
        sides = dict(zip(("drift(reference)", "drift(current)"), map(str, paths), strict=True))
        raise error.but(where=sides.get(error.where, error.where)) from None
    if arguments.is_on("json"):
        _write(dumps(drifts_json(reference, current, drifts)))
    else:
        names = [formatting.name(path.name, 60) for path in paths]
        _print(
            [
                drifts_text(
                    drifts, Style.from_stream(sys.stdout), title=f"{names[1]} against {names[0]}"
                )
            ]
        )


def _report(arguments: Arguments, monotonic: Clock) -> None:
    """Write the report; a file is replaced atomically."""
    from streammetrics_consumers.render.html import report_html
    from streammetrics_consumers.render.material import gather

    output, query = arguments.text("output"), query_of(arguments)
    if not output:
        raise UsageError("report: expected -o FILE, got nothing; name the file, or - for stdout")
    logs.to_stderr("text")
    with (
        closing(Ledger.open(arguments.words[0])) as ledger,
        progress.counted("drawing", "figures", monotonic) as update,
    ):
        material = gather(ledger, query, update)
    data = report_html(material)
    if output == "-":
        _write(data)
        return
    whole = Path(output)
    part = whole.with_name(whole.name + ".part")
    try:
        part.write_bytes(data)
        part.replace(whole)
    finally:
        part.unlink(missing_ok=True)
    logs.say(f"{output}: {formatting.count(len(data) // 1000)} kB")


def _watch(arguments: Arguments, monotonic: Clock) -> None:
    """Show a store during counting: on a terminal one screen, redrawn until q or Ctrl-C; elsewhere
    a text for each change."""
    from streammetrics_consumers.render.terminal import Watcher

    every_s = arguments.real("every") or 0.0
    if not 0.1 <= every_s <= 3600:
        raise UsageError(f"--every: expected 0.1 to 3600 seconds, got {every_s:g}; correct it")
    query = query_of(arguments)
    with closing(Ledger.open(arguments.words[0])) as ledger, suppress(KeyboardInterrupt):
        watcher = Watcher(ledger, query, monotonic)
        if sys.stdout.isatty():
            with _keys() as wait:
                watch_on_a_screen(watcher, wait, every_s)
        else:
            watch_as_lines(watcher, _sleep, every_s)


def watch_as_lines(watcher: Watcher, wait: Wait, every_s: float) -> None:
    """Print a text for each change."""
    from streammetrics_consumers.render.style import Style
    from streammetrics_consumers.render.terminal import screen

    last = ""
    while True:
        shown = watcher.look()
        text = screen(_drawn(shown, sys.stdout), Style())
        if text != last:
            sys.stdout.write(text + "\n")
            sys.stdout.flush()
            last = text
        if not wait(every_s):
            return


def watch_on_a_screen(watcher: Watcher, wait: Wait, every_s: float) -> None:
    """Redraw one screen. While the store is unavailable, keep the last screen with a message."""
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    from streammetrics_consumers.render.style import Style
    from streammetrics_consumers.render.terminal import screen, speed

    console = Console(markup=False, highlight=False, emoji=False)
    text, away = "", ""
    with Live(console=console, screen=True, auto_refresh=False) as display:
        while True:
            style, height = Style.from_stream(sys.stdout), console.size.height
            try:
                shown = watcher.look()
                shown = replace(shown, speed=speed(watcher.rate, watcher.quiet_s))
                text = screen(_drawn(shown, sys.stdout), style, height - 1)
                away = ""
            except LedgerError as error:
                away = f"the store is unavailable, and the results shown are old: {error}"
            drawn = Text.from_ansi(text)
            foot = Text(away or "q quits", "bold red" if away else "dim", no_wrap=True)
            display.update(Text("\n").join((drawn, foot)), refresh=True)
            if not wait(every_s):
                return


def _drawn(shown: ScreenContents, stream: TextIO) -> ScreenContents:
    """Choose bars that the encoding of the stream supports."""
    from streammetrics_consumers.render.terminal import BARS, PLAIN

    has_letters = (stream.encoding or "").lower().replace("-", "").startswith("utf")
    return replace(shown, bars=BARS if has_letters else PLAIN)


def _sleep(seconds: float) -> bool:
    time.sleep(seconds)
    return True


@contextmanager
def _keys() -> Iterator[Wait]:
    """A wait that returns False once q is pressed, if stdin is a terminal."""
    if not sys.stdin.isatty():
        yield _sleep
        return
    import termios
    import tty

    keyboard = sys.stdin.fileno()
    before = termios.tcgetattr(keyboard)

    def wait(seconds: float) -> bool:
        ready, _, _ = select.select([keyboard], [], [], seconds)
        if not ready:
            return True
        pressed = os.read(keyboard, 64)  # empty: the terminal is gone
        return bool(pressed) and b"q" not in pressed.lower()

    tty.setcbreak(keyboard)
    try:
        yield wait
    finally:
        termios.tcsetattr(keyboard, termios.TCSADRAIN, before)


def query_of(arguments: Arguments) -> Query:
    """The query that these flags describe."""
    return parse_query(
        arguments.text("window") or "total",
        arguments.text("by"),
        arguments.several("where"),
        arguments.text("metric"),
        arguments.number("generation"),
        arguments.text("experiment"),
    )


def _output(arguments: Arguments) -> Path:
    output = arguments.text("output")
    if not output:
        raise UsageError(f"{arguments.command}: expected -o FILE, got nothing; name the file")
    return Path(output)


def _export_quarantine(ledger: Ledger, output: str | None, monotonic: Clock) -> None:
    from streammetrics_consumers.ledger.quarantine import count_entries
    from streammetrics_consumers.render import quarantine

    lines = quarantine.exported(ledger)
    if output in (None, "-"):
        for line in lines:
            _write(line)
        return
    logs.to_stderr("text")
    counts = count_entries(ledger.store, ledger.generation().id)
    total = counts.open + counts.done
    with (
        Path(str(output)).open("wb") as file,
        progress.counted("writing", "events", monotonic) as update,
    ):
        for n_done, line in enumerate(lines, 1):
            file.write(line)
            update(n_done, total)


def _write(data: bytes) -> None:
    sys.stdout.flush()
    sys.stdout.buffer.write(data)


def _print(texts: Iterable[str]) -> None:
    for text in texts:
        sys.stdout.write(text)
