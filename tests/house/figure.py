"""One line of the table: a name, what was measured, and the goal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

NOT_MEASURED = "not measured here"


@dataclass(frozen=True)
class Figure:
    """One line of the table.

    now: a number, or a text that says why there is none. most: the greatest number that is good,
    None without a goal. unit: of both, such as "s". details: what the figure consists of.
    """

    name: str
    now: float | str
    most: float | None = None
    unit: str = ""
    details: Sequence[str] = field(default=())

    @property
    def reached(self) -> bool:
        """Whether a goal is there and reached."""
        return self.most is not None and not isinstance(self.now, str) and self.now <= self.most

    def text(self) -> str:
        """The line."""
        now = self.now if isinstance(self.now, str) else self._number(self.now)
        goal = "" if self.most is None else f"<= {self._number(self.most)}"
        return f"{self.name:<62} {now:>18}   {goal:<14}{'reached' if self.reached else ''}".rstrip()

    def _number(self, number: float) -> str:
        unit = f" {self.unit}" if self.unit else ""
        return f"{number:,.4g}{unit}" if isinstance(number, float) else f"{number:,}{unit}"
