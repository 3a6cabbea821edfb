"""The reference pages of what is no metric: public functions, classes and constants, by package.

The public modules are those of docs/architecture.md, and their names those of their stubs. Metrics,
their results and measures have pages of their own (metrics_page.py). A name that several modules
export stands once, on the first page that has it; the others link to it.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Final, TypeAlias

from docs.metrics_page import metrics, results_of
from streammetrics.exports import Home, exported_names
from streammetrics.ranking.measures import MEASURES

Rewrite: TypeAlias = Callable[[str], str]

ROOT: Final = Path(__file__).resolve().parent.parent
# Each public module, with the title of its page, in their order.
TITLES: Final = MappingProxyType(
    {
        "streammetrics": "Functions and types",
        "streammetrics.evaluation": "evaluation: rankings",
        "streammetrics.experiments": "experiments: A/B tests",
        "streammetrics.join": "join: late outcomes",
        "streammetrics.engines": "engines: partial states",
        "streammetrics.engines.spark": "engines.spark",
        "streammetrics.engines.beam": "engines.beam",
        "streammetrics.results": "results: reading any result",
        "streammetrics.present": "present: figures and texts",
        "streammetrics.registry": "registry: metrics by name",
        "streammetrics.authoring": "authoring: your own metrics",
        "streammetrics.testing": "testing: the laws",
    }
)
# Modules that need an engine or hypothesis, which the site has not: their text is read, not run.
UNIMPORTED: Final = frozenset(
    {"streammetrics.engines.spark", "streammetrics.engines.beam", "streammetrics.testing"}
)
# What has no docstring.
CONSTANTS: Final = MappingProxyType(
    {
        "ACTIONS": "All actions that a `Recommendation` may have.",
        "AUTO": "The `score_type` that keeps floats as they are, in 32 bits while these hold them.",
        "Action": "One of `ACTIONS`, for type checkers.",
        "AnySlots": "The slots of rows: an array, or those of rows that are in several slots.",
        "CHUNK": "Rows whose temporaries stay in the cache of a core.",
        "END_OF_TIME": "A time after all events: `JoinRows.close(END_OF_TIME)` closes all windows.",
        "EXACT_WITHIN": "The heading of certain bounds.",
        "FLOAT64": "What an error expects of a number.",
        "HASH": "The hash of users that `user_buckets` and `UserGroups` share.",
        "HIGHER": "The direction of a view that is better if it is higher.",
        "LAWS": "The laws, as functions: of a factory of metrics, and rows.",
        "LOWER": "The direction of a view that is better if it is lower.",
        "NONE": "The direction of a view that has no better side.",
        "ONE": "The default weight unit.",
        "POSITIVE": "The range of a view that is at least 0.",
        "QUANTA": "The number 1 in the quanta of exact sums.",
        "SCALES": "The powers of two of sums of products that lie beyond both ends of the floats.",
        "SCORE_TYPES": "The values of a setting `score_type`.",
        "SHARE": "The range of a view from 0 to 1.",
        "SIGNED": "The range of a view from -1 to 1.",
        "SLOT_0": "The slot of an accumulator with one state.",
        "Schemas": "Former schemas of a metric, with the parts that each lacks.",
        "Setting": "What the value of a setting may be.",
        "Slots": "The slot of each row, [n].",
        "Spec": "A figure as a Vega-Lite specification.",
        "THEMES": "The themes of figures.",
        "UNDEFINED": "The text of an undefined value.",
        "Unit": "A weight unit as it is given: a fraction, an integer, or a text such as '1/1000'.",
        "VERDICTS": "All verdicts that a `Finding` may have.",
        "Verdict": "One of `VERDICTS`, for type checkers.",
        "__version__": "The release.",
        "checks": "Checks of columns, for `check` of a metric.",
    }
)


@dataclass(frozen=True)
class Page:
    """The page of a module. own: its names that no page before has; elsewhere: the others, with the
    address of their page."""

    module: str
    own: dict[str, Home]
    elsewhere: dict[str, str]

    @property
    def path(self) -> str:
        """Where it is among the sources."""
        name = self.module.removeprefix("streammetrics").strip(".").replace(".", "_")
        return f"reference/{name or 'functions'}.md"


def file_of(module: str) -> Path:
    """The file of a module, that of a package its `__init__`."""
    path = ROOT / module.replace(".", "/")
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def homes_of(module: str) -> dict[str, Home]:
    """The names that a module exports, each with its home: from its stub, or from its text."""
    file = file_of(module)
    if file.with_suffix(".pyi").exists():
        return exported_names(file.with_suffix(".pyi").read_text(encoding="utf-8"))
    body = ast.parse(file.read_text(encoding="utf-8")).body
    homes = {
        alias.asname or alias.name: Home(node.module or "", alias.name)
        for node in body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    [names] = [
        ast.literal_eval(node.value)
        for node in body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    ]
    return {name: defined(homes.get(name, Home(module, name))) for name in names}


def defined(home: Home) -> Home:
    """Where a name is defined, if its home is a package that imports it."""
    while file_of(home.module).name == "__init__.py":
        inner = homes_of(home.module).get(home.name, home)
        if inner == home:
            break
        home = inner
    return home


@cache
def pages() -> tuple[Page, ...]:
    """The page of each public module."""
    paths = {
        (kind.__module__, kind.__qualname__): f"{name}.md"
        for name, metric in metrics().items()
        for kind in (metric, *results_of(metric))
        if inspect.isclass(kind)
    }
    page_list = []
    for module in TITLES:
        page = Page(module, {}, {})
        for name, exported in sorted(homes_of(module).items()):
            home = defined(exported)
            if name in MEASURES:
                page.elsewhere[name] = "../metrics.md#every-measure-of-ranked-lists"
            elif home in paths:
                page.elsewhere[name] = paths[home]
            else:
                page.own[name] = home
                paths[home] = page.path.removeprefix("reference/")
        page_list.append(page)
    return tuple(page_list)


def markdown(page: Page, as_markdown: Rewrite = str) -> str:
    """The page, with objects that mkdocstrings replaces by their docstrings; as_markdown: what
    rewrites the docstrings of modules that the site cannot import."""
    text = ast.get_docstring(ast.parse(file_of(page.module).read_text(encoding="utf-8"))) or ""
    about = text.partition("\n\n")[0].replace("\n", " ")
    pieces = [
        f"---\ntitle: '{TITLES[page.module]}'\n---\n",
        f"# `{page.module}`\n",
        f"{about}\n" if page.module != "streammetrics" else f"{_FIRST}\n",
    ]
    for name, home in page.own.items():
        is_read = page.module in UNIMPORTED
        pieces.append(static_entry(name, home, as_markdown) if is_read else entry(name, home))
    if page.elsewhere:
        pieces.append("## On other pages\n")
        links = (f"[`{name}`]({path})" for name, path in page.elsewhere.items())
        pieces.append(", ".join(links) + "\n")
    return "\n".join(pieces)


_FIRST: Final = (
    "What `from streammetrics import ...` gives beside metrics: functions, the base class of "
    "metrics, values with bounds and intervals, and errors. What only a part of programs uses is "
    "on the pages of the other modules."
)


def entry(name: str, home: Home) -> str:
    """A class or function for mkdocstrings; a constant with its sentence and its value."""
    value = getattr(import_module(home.module), home.name)
    if name in CONSTANTS:
        return constant(name, value)
    options = ["heading_level: 2", "show_root_toc_entry: true"]
    options += [f'heading: "{name}"', f'toc_label: "{name}"'] if name != home.name else []
    lines = "".join(f"      {option}\n" for option in options)
    return f"::: {home.module}.{home.name}\n    options:\n{lines}"


def constant(name: str, value: object) -> str:
    """A constant: its sentence, and its value if that is short."""
    text = repr(value)
    shown = f"```python\n{text}\n```\n" if len(text) < 300 and " at 0x" not in text else ""
    return f"## `{name}`\n\n{CONSTANTS[name]}\n\n" + shown * (not inspect.ismodule(value))


def static_entry(name: str, home: Home, as_markdown: Rewrite) -> str:
    """A class or function, read from its text."""
    node = definition(home)
    if node is None:
        return constant(name, None).partition("```")[0]
    lines = [f"## {name}\n", *_described(node, name, as_markdown)]
    if isinstance(node, ast.ClassDef):
        for method in node.body:
            if isinstance(method, ast.FunctionDef) and not method.name.startswith("_"):
                lines += [
                    f"### {name}.{method.name}\n",
                    *_described(method, method.name, as_markdown),
                ]
    return "\n".join(lines)


def _described(
    node: ast.ClassDef | ast.FunctionDef, name: str, as_markdown: Rewrite
) -> Iterator[str]:
    if isinstance(node, ast.FunctionDef):
        yield f"```python\n{name}({ast.unparse(node.args)})\n```\n"
    yield as_markdown(ast.get_docstring(node) or "")


def definition(home: Home) -> ast.ClassDef | ast.FunctionDef | None:
    """The class or function of this name in its module; None for a constant."""
    body = ast.parse(file_of(home.module).read_text(encoding="utf-8")).body
    for node in body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == home.name:
            return node
    return None
