"""The rules of architecture, as functions from source text to findings.

Each rule takes a `Source` and gives the list of what is wrong in it, `path:line: what`. They know
nothing of this project but what they are told; `test_architecture.py` tells them, and shows each
a small bad source first, so that a rule which sees nothing is itself found out.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter

from streammetrics.exports import Home
from tests.python_source import Source, is_private, under

CORE = "streammetrics.core"
STANDARD_LIBRARY = sys.stdlib_module_names | {"__future__"}
VAGUE_NAMES = {"base", "common", "helper", "helpers", "misc", "util", "utils"}

# libm and BLAS: their last bits differ between processors. sqrt, ldexp and frexp are exact.
FLOAT_FUNCTIONS = {
    *("log", "log2", "log10", "log1p", "exp", "exp2", "expm1", "pow", "power", "float_power"),
    *("logaddexp", "logaddexp2", "cbrt", "hypot", "sin", "cos", "tan", "arcsin", "arccos", "asin"),
    *("acos", "atan", "arctan", "atan2", "arctan2", "sinh", "cosh", "tanh", "erf", "erfc", "gamma"),
    *("lgamma", "dot", "vdot", "inner", "matmul", "tensordot", "einsum", "linalg", "fft"),
    *("convolve", "correlate", "cov", "corrcoef", "interp", "random"),
}

CLOCKS = {
    "time": {
        *("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns"),
        *("localtime", "gmtime", "ctime"),
    },
    "datetime": {"now", "utcnow", "today"},
    "date": {"today"},
}

UNSAFE_MODULES = {"cloudpickle", "dill", "marshal", "pickle", "shelve"}
UNSAFE_CALLS = {"eval", "exec", "compile", "__import__"}

META_METHODS = {"__init_subclass__", "__prepare__", "__getattr__", "__getattribute__"}
META_NAMES = {"setattr", "delattr", "dataclass_transform", "make_dataclass", "new_class"}


def too_long(source: Source, limit: int) -> list[str]:
    """Files of more lines than the limit."""
    lines = source.text.count("\n")
    return [source.finding(lines, f"has {lines} lines, over {limit}")] if lines > limit else []


def vague_name(source: Source) -> list[str]:
    """Files and folders whose name says nothing."""
    words = set(re.split(r"[._]", source.module.rpartition(".")[2]))
    matches = sorted(words & VAGUE_NAMES)
    return [source.finding(1, f"is called {matches[0]}: name the idea")] if matches else []


def metaprogramming(source: Source) -> list[str]:
    """Code that makes or changes classes while the program runs."""
    problems = []
    for node in source.nodes:
        if isinstance(node, ast.FunctionDef) and node.name in META_METHODS:
            problems.append(source.finding(node.lineno, f"defines {node.name}"))
        elif isinstance(node, ast.ClassDef) and any(k.arg == "metaclass" for k in node.keywords):
            problems.append(source.finding(node.lineno, f"{node.name} has a metaclass"))
        elif isinstance(node, ast.Name) and node.id in META_NAMES:
            problems.append(source.finding(node.lineno, f"uses {node.id}"))
        elif isinstance(node, ast.Attribute) and node.attr in META_NAMES:
            problems.append(source.finding(node.lineno, f"uses {node.attr}"))
        elif isinstance(node, ast.Call) and len(node.args) == 3 and _calls(node) == "type":
            problems.append(source.finding(node.lineno, "makes a class with type()"))
    return problems


def _calls(node: ast.Call) -> str:
    return node.func.id if isinstance(node.func, ast.Name) else ""


def float_functions(source: Source) -> list[str]:
    """Float operations whose last bits depend on the processor."""
    problems, modules = [], set()
    for entry in source.imports:
        if entry.module in {"math", "cmath", "numpy"} and entry.name is None:
            modules.add(entry.bound_to)
        elif entry.module.partition(".")[0] in {"math", "cmath", "numpy"} and (
            {entry.name, entry.module.rpartition(".")[2]} & FLOAT_FUNCTIONS
        ):
            problems.append(source.finding(entry.line, f"imports {entry.name} from {entry.module}"))
    for node in source.nodes:
        if isinstance(node, ast.Attribute) and node.attr in FLOAT_FUNCTIONS:
            if isinstance(node.value, ast.Name) and node.value.id in modules:
                problems.append(source.finding(node.lineno, f"uses {node.value.id}.{node.attr}"))
            elif node.attr == "dot":
                problems.append(source.finding(node.lineno, "uses .dot"))
        elif isinstance(node, ast.BinOp | ast.AugAssign):
            if isinstance(node.op, ast.MatMult):
                problems.append(source.finding(node.lineno, "uses @"))
            elif isinstance(node.op, ast.Pow):
                binary = isinstance(node, ast.BinOp)
                sides = [node.left, node.right] if binary else [node.target, node.value]
                if any(map(_is_float, sides)) and not all(map(_is_constant, sides)):
                    problems.append(source.finding(node.lineno, "uses ** on floats"))
    return problems


def _is_constant(node: ast.expr) -> bool:
    inner = node.operand if isinstance(node, ast.UnaryOp) else node
    return isinstance(inner, ast.Constant)


def _is_float(node: ast.expr) -> bool:
    inner = node.operand if isinstance(node, ast.UnaryOp) else node
    return isinstance(inner, ast.Constant) and isinstance(inner.value, float)


def clock_reads(source: Source) -> list[str]:
    """Reads of a clock."""
    problems = []
    for entry in source.imports:
        if entry.module == "time" and entry.name in CLOCKS["time"]:
            problems.append(source.finding(entry.line, f"imports {entry.name} from time"))
    for node in source.nodes:
        if isinstance(node, ast.Attribute):
            inner = node.value
            owner = inner.attr if isinstance(inner, ast.Attribute) else getattr(inner, "id", "")
            if node.attr in CLOCKS.get(owner, ()):
                problems.append(source.finding(node.lineno, f"reads {owner}.{node.attr}"))
    return problems


def unsafe_code(source: Source) -> list[str]:
    """Ways to run what came as data."""
    problems = []
    for entry in source.imports:
        if entry.module.partition(".")[0] in UNSAFE_MODULES:
            problems.append(source.finding(entry.line, f"imports {entry.module}"))
    for node in source.nodes:
        if not isinstance(node, ast.Call):
            continue
        if _calls(node) in UNSAFE_CALLS:
            problems.append(source.finding(node.lineno, f"calls {_calls(node)}"))
        if any(k.arg == "allow_pickle" for k in node.keywords):
            problems.append(source.finding(node.lineno, "passes allow_pickle"))
    return problems


def any_in_signatures(source: Source) -> list[str]:
    """Public functions, methods and fields that are typed as `Any`."""
    problems = []

    def check(node: ast.expr | None, name: str) -> None:
        if node is not None and _names_any(node):
            problems.append(source.finding(node.lineno, f"{name} is typed with Any"))

    def walk(body: Sequence[ast.stmt], prefix: str) -> None:
        for node in body:
            if isinstance(node, ast.ClassDef) and not is_private(node.name):
                walk(node.body, f"{node.name}.")
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                if not is_private(node.target.id):
                    check(node.annotation, prefix + node.target.id)
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                if not is_private(node.name):
                    a = node.args
                    for argument in (*a.posonlyargs, *a.args, *a.kwonlyargs, a.vararg, a.kwarg):
                        check(argument.annotation if argument else None, prefix + node.name)
                    check(node.returns, prefix + node.name)
            elif isinstance(node, ast.If):
                walk([*node.body, *node.orelse], prefix)

    walk(source.tree.body, "")
    return problems


def _names_any(annotation: ast.expr) -> bool:
    for node in ast.walk(annotation):
        if isinstance(node, ast.Name) and node.id == "Any":
            return True
        if isinstance(node, ast.Attribute) and node.attr == "Any":
            return True
        quoted = node.value if isinstance(node, ast.Constant) else None
        if isinstance(quoted, str) and re.search(r"\bAny\b", quoted):
            return True
    return False


# -- imports -----------------------------------------------------------------------------------


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

    @cached_property
    def tops(self) -> set[str]:
        """The packages that have layers."""
        return {entry.partition(".")[0] for entry in self.numbers}

    def place(self, module: str) -> tuple[int, str] | None:
        """The row and the entry of a module; a package with rows for its parts is only itself."""
        parts = module.split(".")
        for n in range(len(parts), 0, -1):
            entry = ".".join(parts[:n])
            if entry in self.numbers and (entry == module or entry not in self.split):
                return self.numbers[entry], entry
        return None


def upward_imports(
    source: Source,
    layers: Layers,
    modules: Collection[str],
    homes: Mapping[str, Mapping[str, Home]],
) -> list[str]:
    """Imports that point up, or sideways in a row; those for types within `CORE` may.

    homes: of each package the names that its stub exports. Such a name is imported from its home as
    well.
    """
    place = layers.place(source.module)
    if place is None:
        return [source.finding(1, f"{source.module} is in no layer")]
    problems = []
    for entry in source.imports:
        whole = f"{entry.module}.{entry.name}"
        targets = [whole if whole in modules else entry.module]
        while home := homes.get(targets[-1], {}).get(entry.name or ""):
            targets.append(home.module)
        for target in targets:
            target_place = layers.place(target)
            if entry.for_types and under(source.module, CORE) and under(target, CORE):
                continue
            if target_place is None:
                if any(under(target, row_name) for row_name in layers.tops):
                    problems.append(
                        source.finding(entry.line, f"imports {target}, which is in no layer")
                    )
            elif target_place[0] < place[0] or (
                target_place[0] == place[0] and target_place[1] != place[1]
            ):
                problems.append(
                    source.finding(entry.line, f"{place[1]} imports {target}, of {target_place[1]}")
                )
    return problems


def circle(sources: Collection[Source]) -> list[str]:
    """Some modules of which each imports the next, and the last the first; empty without any."""
    modules = {source.module for source in sources}
    imports: dict[str, set[str]] = {}
    for source in sources:
        pairs = {(f"{entry.module}.{entry.name}", entry.module) for entry in source.imports}
        targets = {whole if whole in modules else module for whole, module in pairs}
        imports[source.module] = targets & modules - {source.module}
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def outside_imports(
    source: Source, allowed: Mapping[str, Collection[str]], own_packages: Collection[str]
) -> list[str]:
    """Third-party packages that this module may not import; `allowed`: package → importers."""
    problems = []
    for entry in source.imports:
        top = entry.module.partition(".")[0]
        if top in STANDARD_LIBRARY or top in own_packages:
            continue
        if not any(under(source.module, importer) for importer in allowed.get(top, ())):
            problems.append(source.finding(entry.line, f"imports {top}"))
    return problems


def several_engines(source: Source, engines: Sequence[Collection[str]]) -> list[str]:
    """More than one third-party engine in one file; an engine may be several packages."""
    tops = {entry.module.partition(".")[0] for entry in source.imports}
    groups = [sorted(tops & set(engine)) for engine in engines if tops & set(engine)]
    return (
        [source.finding(1, f"uses {groups}: one engine for each file")] if len(groups) > 1 else []
    )


def not_public(source: Source, library: str, public: Mapping[str, Collection[str]]) -> list[str]:
    """Uses of the library that are not of a public name; `public`: module → names."""
    problems, aliases = [], {}
    for entry in source.imports:
        if not under(entry.module, library):
            continue
        if entry.name is None:
            aliases[entry.bound_to] = library if entry.bound_to == library else entry.module
            if entry.module not in public:
                problems.append(source.finding(entry.line, f"imports {entry.module}"))
        elif entry.name not in public.get(entry.module, ()):
            if f"{entry.module}.{entry.name}" in public:
                aliases[entry.bound_to] = f"{entry.module}.{entry.name}"
            else:
                problems.append(
                    source.finding(entry.line, f"imports {entry.name} from {entry.module}")
                )
    for node in source.nodes:
        if not isinstance(node, ast.Attribute):
            continue
        value = node.value.func if isinstance(node.value, ast.Call) else node.value
        called = value is not node.value
        owner = value.id if isinstance(value, ast.Name) and called == (value.id == "super") else ""
        if owner in aliases:
            module = aliases[owner]
            if node.attr not in public.get(module, ()) and f"{module}.{node.attr}" not in public:
                problems.append(source.finding(node.lineno, f"uses {module}.{node.attr}"))
        elif (owner, node.attr) == ("os", "_exit"):
            continue  # documented, whatever its name looks like
        elif is_private(node.attr) and owner not in {"self", "cls", "super"}:
            problems.append(source.finding(node.lineno, f"uses .{node.attr} of another object"))
    return problems
