"""The rules of architecture, as functions from source text to findings.

Each rule takes a `Source` and gives the list of what is wrong in it, `path:line: what`. They know
nothing of this project but what they are told; `test_architecture.py` tells them, and shows each
a small bad source first, so that a rule which sees nothing is itself found out.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

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


@dataclass(frozen=True)
class Source:
    """One Python file: its dotted module name, its path for messages, and its text."""

    module: str
    path: str
    text: str

    @classmethod
    def read(cls, root: Path, path: Path) -> Source:
        """The source of a file below the root of the repository."""
        parts = path.relative_to(root).with_suffix("").parts
        module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        return cls(module, str(path.relative_to(root)), path.read_text(encoding="utf-8"))

    @cached_property
    def tree(self) -> ast.Module:
        """The syntax tree."""
        return ast.parse(self.text)

    @property
    def package(self) -> str:
        """The package that relative imports start from."""
        own = self.path.endswith("__init__.py")
        return self.module if own else self.module.rpartition(".")[0]

    def at(self, line: int, what: str) -> str:
        """A finding."""
        return f"{self.path}:{line}: {what}"


@dataclass(frozen=True)
class Imported:
    """One import: the module, the name taken from it (None for `import x`), and the line."""

    module: str
    name: str | None
    bound_to: str
    line: int


def imports(source: Source) -> Iterator[Imported]:
    """Every import of the file, those inside functions and TYPE_CHECKING blocks included."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                bound = alias.asname or alias.name.partition(".")[0]
                yield Imported(alias.name, None, bound, node.lineno)
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            if node.level:
                start = source.package.split(".")
                start = start[: len(start) - node.level + 1]
                module = ".".join([*start, module] if module else start)
            for alias in node.names:
                yield Imported(module, alias.name, alias.asname or alias.name, node.lineno)


def under(module: str, package: str) -> bool:
    """Whether a module is the package or lies in it."""
    return module == package or module.startswith(package + ".")


@dataclass(frozen=True)
class Layers:
    """The rows of the table of layers, the top one first; a row names modules or packages."""

    rows: Sequence[Sequence[str]]

    def place(self, module: str) -> tuple[int, str] | None:
        """The row and the entry of a module; a package with rows for its parts is only itself."""
        found: tuple[int, str] | None = None
        for number, row in enumerate(self.rows):
            for entry in row:
                split = any(
                    other.startswith(entry + ".") for entries in self.rows for other in entries
                )
                inside = module == entry if split else under(module, entry)
                if inside and (found is None or len(entry) > len(found[1])):
                    found = number, entry
        return found


def upward_imports(source: Source, layers: Layers, modules: Collection[str]) -> list[str]:
    """Imports that point up, or to a neighbour in the same row."""
    here = layers.place(source.module)
    if here is None:
        return [source.at(1, f"{source.module} is in no layer")]
    found = []
    for one in imports(source):
        whole = f"{one.module}.{one.name}"
        target = whole if whole in modules else one.module
        there = layers.place(target)
        if there is None:
            if any(under(target, entry.partition(".")[0]) for row in layers.rows for entry in row):
                found.append(source.at(one.line, f"imports {target}, which is in no layer"))
        elif there[0] < here[0] or (there[0] == here[0] and there[1] != here[1]):
            found.append(source.at(one.line, f"{here[1]} imports {target}, of {there[1]}"))
    return found


def outside_imports(
    source: Source, allowed: Mapping[str, Collection[str]], own: Collection[str]
) -> list[str]:
    """Third-party packages that this module may not import; `allowed`: package → importers."""
    found = []
    for one in imports(source):
        top = one.module.partition(".")[0]
        if top in STANDARD_LIBRARY or top in own:
            continue
        if not any(under(source.module, importer) for importer in allowed.get(top, ())):
            found.append(source.at(one.line, f"imports {top}"))
    return found


def several_engines(source: Source, engines: Sequence[Collection[str]]) -> list[str]:
    """More than one third-party engine in one file; an engine may be several packages."""
    tops = {one.module.partition(".")[0] for one in imports(source)}
    met = [sorted(tops & set(engine)) for engine in engines if tops & set(engine)]
    return [source.at(1, f"uses {met}: one engine for each file")] if len(met) > 1 else []


def exported(source: Source) -> set[str]:
    """The names in `__all__`."""
    for node in source.tree.body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        if isinstance(target, ast.Name) and target.id == "__all__":
            value = node.value  # type: ignore[attr-defined]
            return set(ast.literal_eval(value))
    return set()


def is_private(name: str) -> bool:
    """Whether a name says by its underscore that it is nobody else's."""
    return name.startswith("_") and not (name.startswith("__") and name.endswith("__"))


def not_public(source: Source, library: str, public: Mapping[str, Collection[str]]) -> list[str]:
    """Uses of the library that are not of a public name; `public`: module → names."""
    found, aliases = [], {}
    for one in imports(source):
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
    for node in ast.walk(source.tree):
        if not isinstance(node, ast.Attribute):
            continue
        owner = node.value.id if isinstance(node.value, ast.Name) else ""
        if owner in aliases:
            module = aliases[owner]
            if node.attr not in public.get(module, ()) and f"{module}.{node.attr}" not in public:
                found.append(source.at(node.lineno, f"uses {module}.{node.attr}"))
        elif is_private(node.attr) and owner not in {"self", "cls"}:
            found.append(source.at(node.lineno, f"uses .{node.attr} of another object"))
    return found


def too_long(source: Source, limit: int) -> list[str]:
    """Files of more lines than the limit."""
    lines = source.text.count("\n")
    return [source.at(lines, f"has {lines} lines, over {limit}")] if lines > limit else []


def vague_name(source: Source) -> list[str]:
    """Files and folders whose name says nothing."""
    words = set(re.split(r"[._]", source.module.rpartition(".")[2]))
    met = sorted(words & VAGUE_NAMES)
    return [source.at(1, f"is called {met[0]}: name the idea")] if met else []


def metaprogramming(source: Source) -> list[str]:
    """Code that makes or changes classes while the program runs."""
    found = []
    for node in ast.walk(source.tree):
        if isinstance(node, ast.FunctionDef) and node.name in META_METHODS:
            found.append(source.at(node.lineno, f"defines {node.name}"))
        elif isinstance(node, ast.ClassDef) and any(k.arg == "metaclass" for k in node.keywords):
            found.append(source.at(node.lineno, f"{node.name} has a metaclass"))
        elif isinstance(node, ast.Name) and node.id in META_NAMES:
            found.append(source.at(node.lineno, f"uses {node.id}"))
        elif isinstance(node, ast.Attribute) and node.attr in META_NAMES:
            found.append(source.at(node.lineno, f"uses {node.attr}"))
        elif isinstance(node, ast.Call) and len(node.args) == 3 and _calls(node) == "type":
            found.append(source.at(node.lineno, "makes a class with type()"))
    return found


def _calls(node: ast.Call) -> str:
    return node.func.id if isinstance(node.func, ast.Name) else ""


def float_functions(source: Source) -> list[str]:
    """Float operations whose last bits depend on the processor."""
    found, modules = [], set()
    for one in imports(source):
        if one.module in {"math", "cmath", "numpy"} and one.name is None:
            modules.add(one.bound_to)
        elif one.module.partition(".")[0] in {"math", "cmath", "numpy"} and (
            {one.name, one.module.rpartition(".")[2]} & FLOAT_FUNCTIONS
        ):
            found.append(source.at(one.line, f"imports {one.name} from {one.module}"))
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Attribute) and node.attr in FLOAT_FUNCTIONS:
            if isinstance(node.value, ast.Name) and node.value.id in modules:
                found.append(source.at(node.lineno, f"uses {node.value.id}.{node.attr}"))
            elif node.attr == "dot":
                found.append(source.at(node.lineno, "uses .dot"))
        elif isinstance(node, ast.BinOp | ast.AugAssign):
            if isinstance(node.op, ast.MatMult):
                found.append(source.at(node.lineno, "uses @"))
            elif isinstance(node.op, ast.Pow):
                binary = isinstance(node, ast.BinOp)
                sides = [node.left, node.right] if binary else [node.target, node.value]
                if any(map(_is_float, sides)) and not all(map(_is_constant, sides)):
                    found.append(source.at(node.lineno, "uses ** on floats"))
    return found


def _is_constant(node: ast.expr) -> bool:
    inner = node.operand if isinstance(node, ast.UnaryOp) else node
    return isinstance(inner, ast.Constant)


def _is_float(node: ast.expr) -> bool:
    inner = node.operand if isinstance(node, ast.UnaryOp) else node
    return isinstance(inner, ast.Constant) and isinstance(inner.value, float)


def clock_reads(source: Source) -> list[str]:
    """Reads of a clock."""
    found = []
    for one in imports(source):
        if one.module == "time" and one.name in CLOCKS["time"]:
            found.append(source.at(one.line, f"imports {one.name} from time"))
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Attribute):
            inner = node.value
            owner = inner.attr if isinstance(inner, ast.Attribute) else getattr(inner, "id", "")
            if node.attr in CLOCKS.get(owner, ()):
                found.append(source.at(node.lineno, f"reads {owner}.{node.attr}"))
    return found


def unsafe_code(source: Source) -> list[str]:
    """Ways to run what came as data."""
    found = []
    for one in imports(source):
        if one.module.partition(".")[0] in UNSAFE_MODULES:
            found.append(source.at(one.line, f"imports {one.module}"))
    for node in ast.walk(source.tree):
        if not isinstance(node, ast.Call):
            continue
        if _calls(node) in UNSAFE_CALLS:
            found.append(source.at(node.lineno, f"calls {_calls(node)}"))
        if any(k.arg == "allow_pickle" for k in node.keywords):
            found.append(source.at(node.lineno, "passes allow_pickle"))
    return found


def any_in_signatures(source: Source) -> list[str]:
    """Public functions, methods and fields that are typed as `Any`."""
    found = []

    def check(node: ast.expr | None, name: str) -> None:
        if node is not None and _names_any(node):
            found.append(source.at(node.lineno, f"{name} is typed with Any"))

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
    return found


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
