"""The command that shows a store while it is counted: `streammetrics watch STORE`.

On a terminal one screen, drawn anew, until q or Ctrl-C. Elsewhere a text for each change.
"""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from typing import TextIO

from rich.console import Console
from rich.live import Live
from rich.text import Text

from streammetrics_consumers.cli.arguments import Arguments, UsageError
from streammetrics_consumers.cli.exit_codes import DONE
from streammetrics_consumers.cli.read import query_of
from streammetrics_consumers.ledger.failures import LedgerError
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.render.terminal import BARS, PLAIN, Shown, Watcher, screen, speed
from streammetrics_consumers.render.text import Style

Wait = Callable[[float], bool]  # wait for these seconds; whether to go on


def watch(arguments: Arguments, monotonic: Callable[[], float]) -> int:
    """Show a store until whoever watches has seen enough."""
    every_s = arguments.real("every") or 0.0
    if not 0.1 <= every_s <= 3600:
        raise UsageError(f"--every: expected 0.1 to 3600 seconds, got {every_s:g}; correct it")
    query = query_of(arguments)
    with closing(Ledger.open(arguments.words[0])) as ledger, suppress(KeyboardInterrupt):
        watcher = Watcher(ledger, query, monotonic)
        if sys.stdout.isatty():
            with _keys() as wait:
                live(watcher, wait, every_s)
        else:
            lines(watcher, _sleep, every_s)
    return DONE


def lines(watcher: Watcher, wait: Wait, every_s: float) -> None:
    """A text for each change."""
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


def live(watcher: Watcher, wait: Wait, every_s: float) -> None:
    """One screen, drawn anew. While a store is away it says so, and the last screen stays."""
    console = Console(markup=False, highlight=False, emoji=False)
    text, away = "", ""
    with Live(console=console, screen=True, auto_refresh=False) as display:
        while True:
            style, height = Style.of(sys.stdout), console.size.height
            try:
                shown = watcher.look()
                shown = replace(shown, speed=speed(watcher.rate, watcher.quiet_s))
                text = screen(_drawn(shown, sys.stdout), style, height - 1)
                away = ""
            except LedgerError as error:
                away = f"the store is away, what is shown is old: {error}"
            drawn = Text.from_ansi(text)
            foot = Text(away or "q ends", "bold red" if away else "dim", no_wrap=True)
            display.update(Text("\n").join((drawn, foot)), refresh=True)
            if not wait(every_s):
                return


def _drawn(shown: Shown, stream: TextIO) -> Shown:
    """With bars that the stream has letters for."""
    has_letters = (stream.encoding or "").lower().replace("-", "").startswith("utf")
    return replace(shown, bars=BARS if has_letters else PLAIN)


def _sleep(seconds: float) -> bool:
    time.sleep(seconds)
    return True


@contextmanager
def _keys() -> Iterator[Wait]:
    """A wait that ends with False once q is pressed, where somebody can press it."""
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
        pressed = os.read(keyboard, 64)  # nothing: whoever sat there is gone
        return bool(pressed) and b"q" not in pressed.lower()

    tty.setcbreak(keyboard)
    try:
        yield wait
    finally:
        termios.tcsetattr(keyboard, termios.TCSADRAIN, before)
