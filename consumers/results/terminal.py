"""Text for a terminal, a pipe or a file: colours where a person looks, plain letters elsewhere."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TextIO

from rich.console import Console, RenderableType

WIDTH: Final = 80  # columns of a text whose reader's width is not known


@dataclass(frozen=True, slots=True)
class Style:
    """How wide a text may be, and whether it may have colours."""

    width: int = WIDTH
    colour: bool = False

    @staticmethod
    def of(stream: TextIO) -> Style:
        """That of a stream: plain and 80 wide unless it is a terminal; NO_COLOR is respected."""
        if not stream.isatty():
            return Style()
        try:
            width = os.get_terminal_size(stream.fileno()).columns or WIDTH
        except OSError:
            width = WIDTH
        colour = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        return Style(min(max(width, 40), 120), colour)


def rendered(parts: Sequence[RenderableType], style: Style) -> str:
    """The parts below each other, as text without spaces at the ends of its lines."""
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
