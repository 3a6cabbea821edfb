"""The adapters: one file a library, which says what is called for each definition."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).with_name("adapters")
OURS: Final = FOLDER / "ours.py"


@dataclass(frozen=True)
class Adapter:
    """The file of a library, which is read here and only imported where the library is."""

    path: Path

    @cached_property
    def _constants(self) -> dict[str, object]:
        """The plain values that the file gives to names in capitals."""
        values: dict[str, object] = {}
        for node in ast.parse(self.path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Assign):
                targets = ast.unparse(node.targets[0]).strip("()").split(", ")
                if all(name.isupper() for name in targets):
                    value = ast.literal_eval(node.value)
                    values.update(
                        zip(targets, [value] if len(targets) == 1 else value, strict=True)
                    )
        return values

    @property
    def name(self) -> str:
        """The name of the library."""
        return str(self._constants["DISTRIBUTION"])

    @property
    def environment(self) -> str:
        """The folder of its environment in .cache."""
        return str(self._constants["ENVIRONMENT"])

    @property
    def calls(self) -> dict[str, str]:
        """What is called, by the key of the definition."""
        calls = self._constants["CALLS"]
        assert isinstance(calls, dict)
        return calls


ADAPTERS: Final = tuple(map(Adapter, sorted({*FOLDER.glob("*.py")} - {OURS})))
