"""docs/interface.md, config.md and http.md say what the code says, in both directions.

The pages are read as data, one after the other: their tables, configs and JSON. A name that is
missing on either side fails, and so does a default, an argument or an exit code that differs.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import cache

import pytest

from tests.requirements import ROOT

PAGES = ("interface.md", "config.md", "http.md")
PAGE = "\n".join((ROOT / "docs" / name).read_text(encoding="utf-8") for name in PAGES)


@cache
def table(head: str) -> tuple[tuple[str, ...], ...]:
    """The rows of the tables whose first column has this title, as cells."""
    rows = []
    for part in PAGE.split("\n\n"):
        if part.startswith(f"| {head} |"):
            _, _, *lines = part.splitlines()
            rows += [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines]
    if not rows:
        pytest.fail(f"no page of the interface has a table whose first column is {head!r}")
    return tuple(rows)


def spans(text: str) -> list[str]:
    """What stands in backticks."""
    return re.findall(r"`([^`]+)`", text)


def block(language: str, number: int = 0) -> str:
    """A fenced block in this language, by its number."""
    return str(re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)[number])


def signature(arguments: str) -> inspect.Signature:
    """Arguments as the page writes them."""
    function: Callable[..., object] = eval(f"lambda {arguments}: None", {"nan": "nan"})
    return inspect.signature(function)


def bare(function: Callable[..., object], *, method: bool = False) -> inspect.Signature:
    """A signature without its types; nan, which equals nothing, as a text."""
    parameters = list(inspect.signature(function).parameters.values())[int(method) :]
    empty = inspect.Parameter.empty
    return inspect.Signature(
        [
            parameter.replace(
                annotation=empty,
                default="nan" if parameter.default != parameter.default else parameter.default,
            )
            for parameter in parameters
        ]
    )
