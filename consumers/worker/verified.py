"""What `verify` found: differences, and what it could not compare."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

SHOWN: Final = 100  # differences that are kept as text


@dataclass(slots=True)
class Verified:
    """`rows`: events that were read again. `logs`, `states`, `entries`: what was compared. `count`
    differences, and `skipped` panes that changed all the time."""

    rows: int = 0
    logs: int = 0
    states: int = 0
    entries: int = 0
    count: int = 0
    skipped: int = 0
    differences: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def differs(self, where: str, what: str) -> None:
        """The ledger does not say what the log says."""
        self.count += 1
        if len(self.differences) < SHOWN:
            self.differences.append(f"{where}: {what}")

    def note(self, text: str) -> None:
        """Something was not compared, or calls for attention."""
        if text not in self.notes and len(self.notes) < SHOWN:
            self.notes.append(text)

    def skips(self, text: str) -> None:
        """Something should have been compared, and could not be."""
        self.skipped += 1
        self.note(text)

    @property
    def is_good(self) -> bool:
        """Whether something was compared, nothing of it left out, and nothing differs."""
        return not self.count and not self.skipped and self.logs > 0
