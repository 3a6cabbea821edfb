"""Write `streammetrics/usual_names.txt` from the usual names of docs/metrics.md; `make generated`
runs it.

A line is a name without spaces, marks and capitals, a tab, and what it is here. The package reads
the file where a name that it does not have is asked for (`streammetrics/exports.py`).
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import streammetrics
from docs import metrics_page
from streammetrics.exports import bare_name
from streammetrics.ranking.measures import MEASURES

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "metrics.md"
LIST = ROOT / "streammetrics" / "usual_names.txt"
MOST = 4  # places that an answer names


class Row(NamedTuple):
    """A row of a table of usual names: these, what they are here, and the names in other tools."""

    names: list[str]
    here: list[str]
    tools: list[str]


def rows_of(text: str, head: str) -> Iterator[Row]:
    """The rows of the table whose first column has this title."""
    for line in text.partition(f"\n| {head} |")[2].partition("\n\n")[0].splitlines()[2:]:
        names, view_cell, *tools = line.strip().strip("|").split("|")
        usual = re.split(r"[,;]", re.sub(r"\([^)]*\)", "", names))
        spans = [re.findall(r"`([^`]+)`", cell) for cell in (view_cell, " ".join(tools))]
        row = Row(
            [name.strip() for name in usual],
            spans[0],
            [_view(span) for span in spans[1]],
        )
        if row.tools or len(usual) > 1 or bare_name(usual[0]) != bare_name(_view(spans[0][0])):
            yield row  # else a view that has only its own name


def _view(span: str) -> str:
    return span.rpartition(".")[2]


def place(span: str) -> str:
    """How `Class.view` is written in Python."""
    name, _, view = span.partition(".")
    if name in MEASURES:
        return f"the measure {name}, as in RankingMetrics([{name}])"
    kind = getattr(streammetrics, name)
    if not inspect.isclass(kind):
        return f"{name}(...)"
    if not view:
        return name
    parameters = inspect.signature(kind).parameters.values()
    needed = any(p.default is p.empty and p.kind is not p.VAR_KEYWORD for p in parameters)
    [result, *_] = metrics_page.results_of(kind) if hasattr(kind, "compute") else [kind]
    call = "(...)" if inspect.isfunction(getattr(result, view, None)) else ""
    compute = ".compute()" if hasattr(kind, "compute") else ""
    return f"{name}({'...' if needed else ''}){compute}.{view}{call}"


def meant(name: str, spans: list[str]) -> tuple[list[str], list[str]]:
    """What a name is for certain, the views with this name or these initials or the only view of
    the row; and else where to look, one span for each view."""
    initials = "".join(word[0] for word in re.split(r"[\s-]+", name.casefold()) if word)
    views = {span: bare_name(_view(span)) for span in spans}
    same = [span for span, view in views.items() if view in (bare_name(name), initials)]
    if same or len({*views.values()}) == 1:
        return same or spans, []
    return [], [*{view: span for span, view in reversed(views.items())}.values()][::-1]


class Answer:
    """What a name is, by all rows that have it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.certain: dict[str, None] = {}
        self.near: dict[str, None] = {}

    def add(self, spans: list[str], name: str, *, is_tools: bool = False) -> None:
        """Take another row. What a tool calls so may be defined otherwise."""
        certain, near = ([], spans) if is_tools else meant(name, spans)
        self.certain |= dict.fromkeys(map(place, certain))
        self.near |= dict.fromkeys(map(place, near))

    def __str__(self) -> str:
        near = ", ".join([*self.near][:MOST])
        if not self.certain:
            return f"for {self.name} see {near}"
        sentence = f"{self.name} is {' or '.join([*self.certain][:MOST])}"
        return f"{sentence}; see also {near}" if near else sentence


def lines_of(text: str) -> Iterator[str]:
    """A line for each name, in the order of the names. What a name usually is comes before what a
    tool calls so, and that before the name of a view."""
    answers: dict[str, Answer] = {}
    for head in ("usual name", "usual name of a measure"):
        rows = list(rows_of(text, head))
        keys: set[str] = set()
        for is_tools in (False, True):
            fresh = [
                (bare_name(name), name, row.here)
                for row in rows
                for name in (row.tools if is_tools else row.names)
            ]
            for key, name, spans in fresh:
                if key and key not in keys:
                    answers.setdefault(key, Answer(name)).add(spans, name, is_tools=is_tools)
            keys |= {key for key, _, _ in fresh}
    views = [(_view(span), row) for row in rows_of(text, "usual name") for span in row.here]
    for name, row in views:
        if bare_name(name) not in answers:
            answers[bare_name(name)] = Answer(name)
            answers[bare_name(name)].add(row.here, name)
    exports = {bare_name(name) for name in streammetrics.__all__}
    for key in sorted(answers.keys() - exports):
        yield f"{key}\t{answers[key]}\n"


def main() -> int:
    """Write the file; with `--check` only say whether it is stale."""
    text = "".join(lines_of(PAGE.read_text(encoding="utf-8")))
    if "--check" in sys.argv[1:]:
        return int(LIST.read_text(encoding="utf-8") != text)
    LIST.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
