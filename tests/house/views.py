"""Gauges of HOUSE's first question: is a view a value, or a name in tables and comparisons?"""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache

from tests.house.figure import Figure
from tests.house.tree import Sources, both_halves, derived, last_name, library
from tests.python_source import Source, under

PARSER = "streammetrics.present.views"
# What views are annotated as: their type, or a type variable of the class.
FLOATS = re.compile(r"(float|Bounded|Value|V_co|Area)( \| (float|Bounded|None))*")
READS_A_VIEW = re.compile(r"\b(view|name|text|by)\b")


def result_classes(package: str = "streammetrics") -> list[type]:
    """The classes of results: every subclass of `Shown`, itself included, in a module of a package.

    All of its modules are imported, but for those whose engines are not installed. A dataclass with
    slots is made twice; it counts once.
    """
    from streammetrics.present.notebook import Shown

    path = importlib.import_module(package).__path__
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of former names of modules
        for module in pkgutil.walk_packages(path, f"{package}."):
            if not module.name.endswith("__main__"):
                with suppress(ImportError):
                    importlib.import_module(module.name)
    kinds: dict[str, type] = {}
    below: list[type] = [Shown]
    while below:
        kind = below.pop()
        if under(kind.__module__, package):
            kinds[f"{kind.__module__}.{kind.__qualname__}"] = kind
        below += kind.__subclasses__()
    return [kinds[name] for name in sorted(kinds)]


def _annotation(kind: type, name: str) -> str:
    """The annotation of an attribute in the first class that has one."""
    for base in kind.__mro__:
        if name in vars(base).get("__annotations__", {}):
            return str(vars(base)["__annotations__"][name])
    return ""


def tables_of_views(kinds: Iterable[type]) -> list[str]:
    """The tables of views on classes of results, as `class.table`.

    A table is a public attribute in the body of a class that is a `ClassVar` there or in a base,
    and is a non-empty tuple, set or mapping of texts, or a property that makes one for an instance.
    Empty ones of a base class say that there are such tables, and do not count.
    """
    tables = []
    for kind in kinds:
        for name, value in vars(kind).items():
            if name.startswith("_") or "ClassVar" not in _annotation(kind, name):
                continue
            is_collection = isinstance(value, tuple | frozenset | set | Mapping) and bool(value)
            texts = is_collection and all(isinstance(text, str) for text in value)
            if texts or isinstance(value, property):
                tables.append(f"{kind.__qualname__}.{name}")
    return tables


def view_hooks(kinds: Iterable[type]) -> list[str]:
    """The hook methods for views on classes of results, as `class.method`.

    A hook is a method with a name of one underscore and a parameter `view` or `asked`, or one that
    is annotated as `ViewText` or `Asked`, which a base class has too, or which other code looks up
    by its name, as a text: code that asks for a view is answered by the method of the class. The
    methods of the base class itself do not count.
    """
    hooks = []
    for kind in kinds:
        for name, value in vars(kind).items():
            if not inspect.isfunction(value) or not re.match(r"_[a-z]", name):
                continue
            dispatched = any(name in vars(base) for base in kind.__mro__[1:])
            parameters = list(inspect.signature(value).parameters.values())[1:]
            of_view = any(
                parameter.name in ("view", "asked")
                or re.search(r"\b(ViewText|Asked)\b", f"{parameter.annotation}")
                for parameter in parameters
            )
            if of_view and (dispatched or name in _looked_up()):
                hooks.append(f"{kind.__qualname__}.{name}")
    return hooks


@cache
def _looked_up() -> frozenset[str]:
    """The names of methods that code of the library looks up by a text, as `getattr` does."""
    return frozenset(
        name for source in library() for name in re.findall(r'"(_[a-z]\w*)"', source.text)
    )


def names_of_views(kinds: Iterable[type]) -> frozenset[str]:
    """The names of views: public attributes of classes of results that are a float or `Bounded`.

    These are properties, methods with arguments and fields that are annotated so, or by a type
    variable; and the texts in tables of views.
    """
    names: set[str] = set()
    for kind in kinds:
        for table in tables_of_views([kind]):
            value = vars(kind)[table.rpartition(".")[2]]
            names |= set() if isinstance(value, property) else set(value)
        types = dict(vars(kind).get("__annotations__", {}))
        for name, value in vars(kind).items():
            getter = value.fget if isinstance(value, property) else getattr(value, "func", value)
            types[name] = getattr(getter, "__annotations__", {}).get("return", types.get(name))
        names |= {name for name, annotation in types.items() if FLOATS.fullmatch(str(annotation))}
    return frozenset(name for name in names if name.isidentifier() and name[0] != "_")


def classes_asked_for(sources: Sources, classes: Mapping[str, Collection[str]]) -> list[str]:
    """The places that ask whether something is one of some classes, outside their own files.

    A place is a call of `isinstance` or `issubclass`, also by a tuple that the file names, or a
    class in a pattern of `match`. A place with several of the classes counts once.
    """
    places = []
    for source in sources:
        unions = _named_unions(source)
        for node in source.nodes:
            if isinstance(node, ast.Call) and last_name(node.func) in ("isinstance", "issubclass"):
                names = _names_in(node.args[1]) if len(node.args) == 2 else set()
            elif isinstance(node, ast.MatchClass):
                names = {last_name(node.cls)}
            else:
                continue
            names = names.union(*(unions.get(name, set()) for name in names))
            if any(name in classes and source.module not in classes[name] for name in names):
                places.append(source.finding(getattr(node, "lineno", 0), ast.unparse(node)))
    return places


def _named_unions(source: Source) -> dict[str, set[str]]:
    """The names within each value that the file binds at its top."""
    bound: dict[str, set[str]] = {}
    for node in source.tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        value = getattr(node, "value", None)
        for target in targets:
            if isinstance(target, ast.Name) and isinstance(value, ast.Tuple | ast.BinOp):
                bound[target.id] = _names_in(value)
    return bound


def _names_in(node: ast.expr) -> set[str]:
    return {
        last_name(child) for child in ast.walk(node) if isinstance(child, ast.Name | ast.Attribute)
    }


def metrics_of_rows(sources: Sources) -> dict[str, set[str]]:
    """The accumulators in the packages that docs/architecture.md calls the metrics."""
    packages = _row_of_layers("the metrics")
    return {
        name: modules
        for name, modules in derived(sources, "Accumulator").items()
        if any(under(module, package) for module in modules for package in packages)
    }


def _row_of_layers(content: str) -> list[str]:
    from tests.requirements import ROOT

    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    (row,) = re.findall(rf"^\| (.*) \| {re.escape(content)} \|$", page, re.MULTILINE)
    return re.findall(r"`([\w.]+)`", row)


def names_compared(sources: Sources, names: Collection[str], parser: str = PARSER) -> list[str]:
    """The comparisons with the name of a view, outside of the module that reads views.

    A comparison is `==`, `!=`, `in` or `not in` with a text, or a tuple or set of texts, of which
    one is the name of a view, while the rest of it is a `view`, `name`, `text` or `by`, as
    `view.name` is; so is a case of `match` on such a value. Texts of other kinds (`kind == "mean"`)
    do not count.
    """
    places = []
    for source in sources:
        if source.module == parser:
            continue
        for node in source.nodes:
            for texts, rest, line in _compared(node):
                if texts & set(names) and READS_A_VIEW.search(rest):
                    places.append(source.finding(line, ast.unparse(node).splitlines()[0]))
    return places


def _compared(node: ast.AST) -> Iterator[tuple[set[str], str, int]]:
    """Texts that something is compared with, that something, and the line."""
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        texts = set().union(*map(_texts, sides))
        yield texts, " ".join(ast.unparse(side) for side in sides if not _texts(side)), node.lineno
    elif isinstance(node, ast.Match):
        for case in node.cases:
            values = [
                pattern for pattern in ast.walk(case.pattern) if isinstance(pattern, ast.MatchValue)
            ]
            texts = set().union(*(_texts(pattern.value) for pattern in values))
            yield texts, ast.unparse(node.subject), case.pattern.lineno


def _texts(node: ast.expr) -> set[str]:
    among = node.elts if isinstance(node, ast.Tuple | ast.List | ast.Set) else [node]
    values = [
        getattr(constant, "value", None) for constant in among if isinstance(constant, ast.Constant)
    ]
    return {value for value in values if isinstance(value, str)}


def figures() -> Iterator[Figure]:
    """The lines of this file."""
    kinds, sources = result_classes(), both_halves()
    tables, hooks = tables_of_views(kinds), view_hooks(kinds)
    by_name = Counter(hook.rpartition(".")[2] for hook in hooks)
    yield Figure("string tables of views on result classes", len(tables), 0, details=tables)
    yield Figure("hook methods for views", len(hooks), 12, details=hooks)
    kinds_of_hooks = [f"{n} {name}" for name, n in by_name.most_common()]
    yield Figure("kinds of hook methods for views", len(by_name), 4, details=kinds_of_hooks)
    metrics = metrics_of_rows(library())
    places = classes_asked_for(sources, metrics)
    yield Figure("isinstance of a metric outside its file", len(places), 8, details=places)
    sets = {
        name: homes
        for name, homes in derived(library(), "Accumulator").items()
        if name not in metrics
    }
    places = classes_asked_for(sources, sets)
    name = "isinstance of a set of metrics (Panel ...) outside its file"
    yield Figure(name, len(places), details=places)
    compared = names_compared(sources, names_of_views(kinds))
    name = "comparisons with a view's name outside the parser"
    yield Figure(name, len(compared), 0, details=compared)
