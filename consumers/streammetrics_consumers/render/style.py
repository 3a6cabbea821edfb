"""How texts look: the width and the colours of a stream, and tables without rules."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TextIO

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from streammetrics_consumers.query.json_kinds import Tone

WIDTH: Final = 80  # of a text if the width of its reader is not known
GAP: Final = 2  # spaces between columns
COLOURS: Final[Mapping[Tone, str]] = {
    "good": "bold green",
    "bad": "bold red",
    "warn": "yellow",
    "neutral": "",
}


@dataclass(frozen=True, slots=True)
class Style:
    """The width of a text, and whether it may have colours."""

    width: int = WIDTH
    colour: bool = False

    @staticmethod
    def from_stream(stream: TextIO) -> Style:
        """The style of a stream: plain, 80 wide unless it is a terminal; NO_COLOR is respected."""
        if not stream.isatty():
            return Style()
        try:
            width = os.get_terminal_size(stream.fileno()).columns or WIDTH
        except OSError:
            width = WIDTH
        colour = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        return Style(min(max(width, 40), 120), colour)


def rendered(parts: Sequence[RenderableType], style: Style) -> str:
    """The parts, one below the other, as text without trailing spaces."""
    out = io.StringIO()
    console = Console(
        file=out,
        width=style.width,
        force_terminal=style.colour,
        color_system="standard" if style.colour else None,
        markup=False,
        highlight=False,
        emoji=False,
        legacy_windows=False,
        _environ={},
    )
    for part in parts:
        console.print(part, overflow="fold", soft_wrap=False)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def columns(
    *names: str, numbers: Iterable[str] = (), style: str = "bold", header: bool = True
) -> Table:
    """A table without rules: columns of names, then right-aligned numbers; others may follow."""
    table = Table(
        box=None, padding=(0, GAP, 0, 0), pad_edge=False, header_style=style, show_header=header
    )
    for name in names:
        table.add_column(Text(name), overflow="fold")
    for name in numbers:
        table.add_column(Text(name), justify="right", no_wrap=True)
    return table
