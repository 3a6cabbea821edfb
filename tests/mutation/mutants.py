"""Small changes of the source, one at a time, each of which some test should notice.

A mutant is known by its function, not by its place in the file: `pairs#1f2e3d4c:compare.2` is the
third comparison in the function `pairs` whose source, without docstrings and comments, has that
hash. So it is the same mutant after the function has moved, also to another file.
"""

from __future__ import annotations

import ast
import copy
import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
NEGATED_BY_COMPARISON = (ast.Eq, ast.NotEq, ast.Is, ast.IsNot, ast.In, ast.NotIn)
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.Pow: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.BitXor: ast.BitOr,
}  # fmt: skip
# Calls whose swapped arguments no test could miss, or could not tell apart.
ANY_ORDER = ("isinstance", "issubclass", "getattr", "setattr", "hasattr", "cast", "max", "min")
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Mutant:
    """One change of one function; `index` counts the changes of its file."""

    path: str
    line: int
    end: int  # the last line of what is changed
    function: str  # the outermost one, with its class; empty outside of functions
    key: str
    change: str
    index: int

    @property
    def where(self) -> str:
        """For people: where it is, and what is changed."""
        return f"{self.path}:{self.line} {self.function}: {self.change}"


@dataclass
class Edit:
    """A change that can be made in the tree which it was found in."""

    old: ast.AST
    operator: str
    new: ast.AST
    put: Callable[[Any], None]
    function: ast.AST | None
    name: str

    def make(self) -> None:
        """Change the tree."""
        ast.copy_location(self.new, self.old)
        ast.fix_missing_locations(self.new)
        self.put(self.new)


def mutants_of(path: str, source: str) -> list[Mutant]:
    """All of a file, in the order of its lines."""
    tree = ast.parse(source)
    hashes: dict[ast.AST, str] = {}
    counts: Counter[str] = Counter()
    mutants = []
    for index, edit in enumerate(_edits(tree)):
        if edit.function is not None and edit.function not in hashes:
            hashes[edit.function] = _hash(edit.function)
        stem = f"{edit.name}#{hashes.get(edit.function, '')}:{edit.operator}"  # type: ignore[arg-type]
        key = f"{stem}.{counts[stem]}"
        counts[stem] += 1
        first, last = edit.old.lineno, edit.old.end_lineno  # type: ignore[attr-defined]
        change = f"{_short(edit.old)} -> {_short(edit.new)}"
        mutants.append(Mutant(path, first, last, edit.name, key, change, index))
    return mutants


def mutated(source: str, index: int) -> ast.Module:
    """The file with one change."""
    tree = ast.parse(source)
    next(edit for position, edit in enumerate(_edits(tree)) if position == index).make()
    return tree


def files(sources: Iterable[str], root: Path) -> list[str]:
    """The Python files of files and folders, by their paths from the root."""
    paths = []
    for source in sources:
        path = root / source
        if not path.exists():
            raise FileNotFoundError(f"{source}: expected a file or a folder in {root}")
        paths += [path] if path.is_file() else sorted(path.rglob("*.py"))
    return [path.relative_to(root).as_posix() for path in paths]


def sample(mutants: Iterable[Mutant], per_function: int | None, seed: int) -> list[Mutant]:
    """Some of each function, the same ones wherever it stands; of `None` all."""
    by_function: dict[tuple[str, str], list[Mutant]] = {}
    for mutant in mutants:
        if mutant.function:
            by_function.setdefault((mutant.path, mutant.function), []).append(mutant)
    chosen = []
    for group in by_function.values():
        drawn = sorted(group, key=lambda member: _digest(f"{seed}:{member.key}"))[:per_function]
        chosen += sorted(drawn, key=lambda member: member.index)
    return chosen


def _edits(tree: ast.Module) -> Iterator[Edit]:
    def put_into(parent: ast.AST, field: str, position: int | None) -> Callable[[Any], None]:
        if position is None:
            return lambda new: setattr(parent, field, new)
        return lambda new: getattr(parent, field).__setitem__(position, new)

    def walk(
        node: ast.AST,
        setter: Callable[[Any], None],
        function: ast.AST | None,
        names: tuple[str, ...],
        field: str = "",
    ) -> Iterator[Edit]:
        for operator, new in _changes(node, field):
            yield Edit(node, operator, new, setter, function, ".".join(names) if function else "")
        for field, value in ast.iter_fields(node):
            inner, inner_names = function, names
            if field in ("annotation", "returns"):
                continue
            if isinstance(node, (*FUNCTIONS, ast.ClassDef)) and field == "body" and not function:
                inner_names = (*names, node.name)
                inner = node if isinstance(node, FUNCTIONS) else None
            for position, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
                if isinstance(child, ast.AST) and not _is_left_out(child):
                    yield from walk(
                        child, put_into(node, field, position), inner, inner_names, field
                    )

    yield from walk(tree, lambda _: None, None, ())


def _changes(node: ast.AST, field: str) -> Iterator[tuple[str, ast.AST]]:
    match node:
        case ast.Compare(ops=ops):
            for position, op in enumerate(ops):
                new = [*ops[:position], COMPARISONS[type(op)](), *ops[position + 1 :]]
                yield "compare", _with(node, ops=new)
        case ast.BinOp(op=op) | ast.AugAssign(op=op) if type(op) in ARITHMETIC:
            yield "arithmetic", _with(node, op=ARITHMETIC[type(op)]())
        case ast.BoolOp(op=op):
            yield "boolean", _with(node, op=ast.Or() if isinstance(op, ast.And) else ast.And())
        case ast.UnaryOp(operand=operand):
            yield "sign", copy.deepcopy(operand)
        case ast.Constant(value=bool(value)):
            yield "constant", _with(node, value=not value)
        case ast.Constant(value=int(value)):
            yield "constant", _with(node, value=value + 1)
            yield "constant", _with(node, value=value - 1)
        case ast.Constant(value=float(value)):
            yield "constant", _with(node, value=value + 1)
        case ast.Call(func=called, args=[first, second, *rest]):
            starred = isinstance(first, ast.Starred) or isinstance(second, ast.Starred)
            if not starred and getattr(called, "id", None) not in ANY_ORDER:
                yield "arguments", _with(node, args=[second, first, *rest])
        case ast.Slice(lower=lower, upper=upper):
            if lower is not None:
                yield "slice", _with(node, lower=None)
            if upper is not None:
                yield "slice", _with(node, upper=None)
        case ast.Return(value=value) if value is not None and not _is_none(value):
            yield "return", _with(node, value=ast.Constant(None))
    if field in ("test", "ifs") and isinstance(node, ast.expr) and _has_no_negation(node):
        yield "condition", ast.UnaryOp(ast.Not(), node)
    if _is_droppable(node):
        yield "drop", ast.Pass()


def _has_no_negation(test: ast.expr) -> bool:
    """Whether no other change of the test is its negation."""
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        return not isinstance(test.ops[0], NEGATED_BY_COMPARISON)
    return not isinstance(test, ast.UnaryOp)


def _is_droppable(node: ast.AST) -> bool:
    match node:
        case ast.Expr(value=value):
            return not isinstance(value, ast.Yield | ast.YieldFrom | ast.Constant)
        case ast.Assign(targets=[target, *_]) | ast.AnnAssign(target=target, value=ast.expr()):
            return isinstance(target, ast.Attribute | ast.Subscript)
    return isinstance(node, ast.AugAssign | ast.Raise | ast.Break | ast.Continue | ast.Delete)


def _is_left_out(node: ast.AST) -> bool:
    """What no run of a test depends on, or what mypy judges better."""
    if isinstance(node, ast.If):
        return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    return isinstance(node, ast.Assert | ast.Import | ast.ImportFrom | ast.JoinedStr)


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _with(node: ast.AST, **fields: Any) -> ast.AST:
    new = copy.copy(node)
    for name, value in fields.items():
        setattr(new, name, value)
    return new


def _hash(function: ast.AST) -> str:
    bare = copy.deepcopy(function)
    for node in ast.walk(bare):
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return _digest(ast.unparse(bare))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def _short(node: ast.AST) -> str:
    text = ast.unparse(node).replace("\n", " ")
    return text if len(text) <= 60 else f"{text[:57]}..."
