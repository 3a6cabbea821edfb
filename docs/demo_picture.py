"""Draw `docs/demo.svg`: `results` of the store of `make demo ARGS=--once`, and of one experiment in
it; run it after a change."""

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
STREAMMETRICS = (sys.executable, "-m", "streammetrics")
RESULTS = "results .demo/demo.db"


def captured(command: str) -> str:
    """What a command writes to a terminal."""
    words = (*STREAMMETRICS, *command.split())
    reader, terminal = pty.openpty()
    termios.tcsetwinsize(terminal, (40, COLUMNS))
    with subprocess.Popen(words, stdin=terminal, stdout=terminal, stderr=terminal) as process:
        os.close(terminal)
        pieces: list[bytes] = []
        try:
            while data := os.read(reader, 1 << 16):
                pieces.append(data)
        except OSError:  # the other end is closed
            pass
    os.close(reader)
    if process.returncode:
        raise SystemExit(f"{command} failed")
    return b"".join(pieces).decode()


def settled(text: str) -> str:
    """The text as it stands at the end: of a line drawn several times, the last."""
    lines = [line.split("\r")[-1] for line in text.replace("\r\n", "\n").split("\n")]
    return re.sub(r"\x1b\[\??[0-9;]*[A-KSTfhlnsu]", "", "\n".join(lines)).strip("\n")


def main() -> None:
    """Run, draw and write."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO())
    captured("demo --once")
    for command in (RESULTS, f"{RESULTS} --experiment ranker"):
        text = settled(captured(command))
        console.print(Text.from_ansi(f"$ streammetrics {command}\n{text}\n"))
    drawn = console.export_svg(title="streammetrics", theme=MONOKAI, unique_id="demo")
    # Rich would have the reader's browser fetch a font from another host.
    drawn = re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL)
    drawn = re.sub(r"<!--.*?-->", "", drawn)
    drawn = drawn.replace("Fira Code", "ui-monospace, Menlo, Consolas")
    Path(__file__).with_name("demo.svg").write_text(drawn, encoding="utf-8")


if __name__ == "__main__":
    main()
