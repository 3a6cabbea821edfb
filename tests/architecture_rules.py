"""The rules of architecture, as functions from source text to findings.

Each rule takes a `Source` and gives the list of what is wrong in it, `path:line: what`. They know
nothing of this project but what they are told; `test_architecture.py` tells them, and shows each
a small bad source first, so that a rule which sees nothing is itself found out. The rules on
imports are in `import_rules.py`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from tests.python_source import Source, is_private

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
    return [source.at(lines, f"has {lines} lines, over {limit}")] if lines > limit else []


def vague_name(source: Source) -> list[str]:
    """Files and folders whose name says nothing."""
    words = set(re.split(r"[._]", source.module.rpartition(".")[2]))
    met = sorted(words & VAGUE_NAMES)
    return [source.at(1, f"is called {met[0]}: name the idea")] if met else []


def metaprogramming(source: Source) -> list[str]:
    """Code that makes or changes classes while the program runs."""
    found = []
    for node in source.nodes:
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
    for one in source.imports:
        if one.module in {"math", "cmath", "numpy"} and one.name is None:
            modules.add(one.bound_to)
        elif one.module.partition(".")[0] in {"math", "cmath", "numpy"} and (
            {one.name, one.module.rpartition(".")[2]} & FLOAT_FUNCTIONS
        ):
            found.append(source.at(one.line, f"imports {one.name} from {one.module}"))
    for node in source.nodes:
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
    for one in source.imports:
        if one.module == "time" and one.name in CLOCKS["time"]:
            found.append(source.at(one.line, f"imports {one.name} from time"))
    for node in source.nodes:
        if isinstance(node, ast.Attribute):
            inner = node.value
            owner = inner.attr if isinstance(inner, ast.Attribute) else getattr(inner, "id", "")
            if node.attr in CLOCKS.get(owner, ()):
                found.append(source.at(node.lineno, f"reads {owner}.{node.attr}"))
    return found


def unsafe_code(source: Source) -> list[str]:
    """Ways to run what came as data."""
    found = []
    for one in source.imports:
        if one.module.partition(".")[0] in UNSAFE_MODULES:
            found.append(source.at(one.line, f"imports {one.module}"))
    for node in source.nodes:
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
