"""The rules of architecture on imports: layers, packages from outside, and public names."""

from __future__ import annotations

import ast
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter

from tests.python_source import Source, is_private, under

CORE = "streammetrics.core"
STANDARD_LIBRARY = sys.stdlib_module_names | {"__future__"}


@dataclass(frozen=True)
class Layers:
    """The rows of the table of layers, the top one first; a row names modules or packages."""

    rows: Sequence[Sequence[str]]

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The row of each entry."""
        return {entry: number for number, row in enumerate(self.rows) for entry in row}

    @cached_property
    def split(self) -> set[str]:
        """The packages with rows for their parts."""
        parts = [entry.split(".") for entry in self.numbers]
        return {".".join(part[:n]) for part in parts for n in range(1, len(part))}

    def place(self, module: str) -> tuple[int, str] | None:
        """The row and the entry of a module; a package with rows for its parts is only itself."""
        parts = module.split(".")
        for n in range(len(parts), 0, -1):
            entry = ".".join(parts[:n])
            if entry in self.numbers and (entry == module or entry not in self.split):
                return self.numbers[entry], entry
        return None


def upward_imports(source: Source, layers: Layers, modules: Collection[str]) -> list[str]:
    """Imports that point up, or sideways in a row; those for types within `CORE` may."""
    here = layers.place(source.module)
    if here is None:
        return [source.at(1, f"{source.module} is in no layer")]
    found = []
    for one in source.imports:
        whole = f"{one.module}.{one.name}"
        target = whole if whole in modules else one.module
        there = layers.place(target)
        if one.for_types and under(source.module, CORE) and under(target, CORE):
            continue
        if there is None:
            if any(under(target, entry.partition(".")[0]) for row in layers.rows for entry in row):
                found.append(source.at(one.line, f"imports {target}, which is in no layer"))
        elif there[0] < here[0] or (there[0] == here[0] and there[1] != here[1]):
            found.append(source.at(one.line, f"{here[1]} imports {target}, of {there[1]}"))
    return found


def circle(sources: Collection[Source]) -> list[str]:
    """Some modules of which each imports the next, and the last the first; empty without any."""
    modules = {source.module for source in sources}
    imports: dict[str, set[str]] = {}
    for source in sources:
        named = {(f"{one.module}.{one.name}", one.module) for one in source.imports}
        targets = {whole if whole in modules else module for whole, module in named}
        imports[source.module] = targets & modules - {source.module}
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def outside_imports(
    source: Source, allowed: Mapping[str, Collection[str]], own: Collection[str]
) -> list[str]:
    """Third-party packages that this module may not import; `allowed`: package → importers."""
    found = []
    for one in source.imports:
        top = one.module.partition(".")[0]
        if top in STANDARD_LIBRARY or top in own:
            continue
        if not any(under(source.module, importer) for importer in allowed.get(top, ())):
            found.append(source.at(one.line, f"imports {top}"))
    return found


def several_engines(source: Source, engines: Sequence[Collection[str]]) -> list[str]:
    """More than one third-party engine in one file; an engine may be several packages."""
    tops = {one.module.partition(".")[0] for one in source.imports}
    met = [sorted(tops & set(engine)) for engine in engines if tops & set(engine)]
    return [source.at(1, f"uses {met}: one engine for each file")] if len(met) > 1 else []


def not_public(source: Source, library: str, public: Mapping[str, Collection[str]]) -> list[str]:
    """Uses of the library that are not of a public name; `public`: module → names."""
    found, aliases = [], {}
    for one in source.imports:
        if not under(one.module, library):
            continue
        if one.name is None:
            aliases[one.bound_to] = library if one.bound_to == library else one.module
            if one.module not in public:
                found.append(source.at(one.line, f"imports {one.module}"))
        elif one.name not in public.get(one.module, ()):
            if f"{one.module}.{one.name}" in public:
                aliases[one.bound_to] = f"{one.module}.{one.name}"
            else:
                found.append(source.at(one.line, f"imports {one.name} from {one.module}"))
    for node in source.nodes:
        if not isinstance(node, ast.Attribute):
            continue
        value = node.value.func if isinstance(node.value, ast.Call) else node.value
        called = value is not node.value
        owner = value.id if isinstance(value, ast.Name) and called == (value.id == "super") else ""
        if owner in aliases:
            module = aliases[owner]
            if node.attr not in public.get(module, ()) and f"{module}.{node.attr}" not in public:
                found.append(source.at(node.lineno, f"uses {module}.{node.attr}"))
        elif (owner, node.attr) == ("os", "_exit"):
            continue  # documented, whatever its name looks like
        elif is_private(node.attr) and owner not in {"self", "cls", "super"}:
            found.append(source.at(node.lineno, f"uses .{node.attr} of another object"))
    return found
