"""The part of a page that a script writes, between two marks; the rest is written by hand."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

END = "<!-- written by hand from here on -->\n"


@dataclass(frozen=True)
class MarkedPart:
    """The part of the page at `path` between `start` and END, which is as `written` says."""

    path: Path
    start: str
    written: Callable[[], str]

    def page(self, text: str) -> str:
        """The page with its part as it must be now."""
        before, start, rest = text.partition(self.start)
        _, end, after = rest.partition(END)
        if not start or not end:
            marks = f"{self.start.strip()} and {END.strip()}"
            raise SystemExit(f"{self.path.name} has lost its marks: {marks}")
        return f"{before}{start}\n{self.written()}\n{end}{after}"

    def main(self) -> int:
        """Write the page; with `--check` only say whether it is stale."""
        text = self.path.read_text(encoding="utf-8")
        page = self.page(text)
        if "--check" in sys.argv[1:]:
            if page != text:
                sys.stderr.write(f"{self.path.name} is stale: run `make docs`\n")
            return int(page != text)
        self.path.write_text(page, encoding="utf-8")
        return 0
