"""Draw `docs/demo.svg`, the terminal after `make demo ARGS=--once`; run it after a change."""

from __future__ import annotations

import io
import os
import pty
import re
import subprocess
import sys
import termios
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

COLUMNS = 100
COMMAND = (sys.executable, "-m", "streammetrics", "demo", "--once")


def captured() -> str:
    """What the demonstration writes to a terminal."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (40, COLUMNS))
    with subprocess.Popen(COMMAND, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        pieces: list[bytes] = []
        try:
            while data := os.read(ours, 1 << 16):
                pieces.append(data)
        except OSError:  # the other end is closed
            pass
    os.close(ours)
    if process.returncode:
        raise SystemExit("the demonstration failed")
    return b"".join(pieces).decode()


def settled(text: str) -> str:
    """The text as it stands at the end: of a line drawn several times, the last."""
    lines = [line.split("\r")[-1] for line in text.replace("\r\n", "\n").split("\n")]
    return re.sub(r"\x1b\[\??[0-9;]*[A-KSTfhlnsu]", "", "\n".join(lines)).strip("\n")


def main() -> None:
    """Run, draw and write."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO())
    console.print(Text.from_ansi("$ make demo ARGS=--once\n" + settled(captured())))
    drawn = console.export_svg(title="streammetrics", theme=MONOKAI, unique_id="demo")
    # Rich would have the reader's browser fetch a font from another host.
    drawn = re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL)
    drawn = re.sub(r"<!--.*?-->", "", drawn)
    drawn = drawn.replace("Fira Code", "ui-monospace, Menlo, Consolas")
    Path(__file__).with_name("demo.svg").write_text(drawn, encoding="utf-8")


if __name__ == "__main__":
    main()
