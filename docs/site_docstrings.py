"""Docstrings of this project as Markdown, for the pages of the site that mkdocstrings writes.

A docstring here has paragraphs, headings of a metric (Settings, Rows, ...) with indented text, and
doctests. Griffe calls `on_object` with each object of the package.
"""

from __future__ import annotations

import builtins
import inspect
import re
from typing import Any

import griffe

HEADINGS = "Settings|Rows|State|Result|Undefined|Exactness|Cost|Source"
HEADED = re.compile(rf"^({HEADINGS})\n((?:[ ]{{4}}.*\n?|\n(?=[ ]{{4}}))+)", re.MULTILINE)
EXAMPLE = re.compile(r"^>>> (?:.+\n?)+", re.MULTILINE)
CODE = re.compile(r"(^```.*?^```$|`[^`\n]*`)", re.MULTILINE | re.DOTALL)
NAMED = re.compile(r"(?:^|(?<=\. ))((?:\w+, )*\w+): ")  # a setting or a column, and what it is
# What inspection gives as the docstring of an attribute that has none: that of its class.
OF_CLASSES = {inspect.getdoc(kind) for kind in vars(builtins).values() if inspect.isclass(kind)}


def as_markdown(text: str) -> str:
    """A docstring as Markdown: a list below each heading, doctests as blocks of code."""
    fenced = EXAMPLE.sub(lambda match: f"```pycon\n{match[0].rstrip()}\n```\n", text + "\n")
    # Stars, angles and brackets in a row are characters here, not marks.
    pieces = (
        piece
        if piece.startswith("`")
        else piece.replace("*", r"\*").replace("<", "&lt;").replace("][", r"]\[")
        for piece in CODE.split(fenced)
    )
    return HEADED.sub(headed, "".join(pieces))


def headed(match: re.Match[str]) -> str:
    """A heading with its text, which is a list if it names settings or columns."""
    text = " ".join(match[2].split())
    start, *parts = NAMED.split(text)
    if not parts or match[1] not in ("Settings", "Rows"):
        return f"**{match[1]}**  \n{text}\n\n"
    lines = [
        f"- `{name}`: {description.strip()}"
        for name, description in zip(parts[::2], parts[1::2], strict=True)
    ]
    return f"**{match[1]}**  \n{start}\n\n" + "\n".join(lines) + "\n\n"


class Docstrings(griffe.Extension):
    """Rewrites each docstring once."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """The docstring of an object as Markdown; none of an attribute that only its class has."""
        if obj.docstring is None:
            return
        if obj.is_attribute and obj.docstring.value in OF_CLASSES:
            obj.docstring = None
        else:
            obj.docstring.value = as_markdown(obj.docstring.value)
