"""Gauges of structure: records, imports on top of one another, names of classes."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping

from tests.house.figure import Figure
from tests.house.tree import Sources, both_halves, classes, last_name, library, shell
from tests.house.views import metrics_of_rows
from tests.python_source import Source, under

RECORDS = frozenset({"NamedTuple", "TypedDict", "Struct"})
KEYS = frozenset({"key", "state_key"})  # what declares a key of the config


def records(sources: Sources) -> dict[str, int]:
    """The number of fields of each record, by `module.class`.

    A record is a class with the decorator `dataclass`, or one that derives from `NamedTuple`,
    `TypedDict` or `Struct`, also through others. Its fields are the annotated names of its body,
    class variables apart, and those of its bases that are records of the sources: of a name that
    several classes have, the one of the same module, or of the one that the file imports it from.
    A table of the config mirrors its keys, which users write: `config_keys` counts these.
    """
    by_name: dict[str, list[tuple[Source, ast.ClassDef]]] = {}
    for source, node in classes(sources):
        by_name.setdefault(node.name, []).append((source, node))

    def bases(source: Source, node: ast.ClassDef) -> list[tuple[Source, ast.ClassDef]]:
        pairs = []
        for name in set(map(last_name, node.bases)):
            every = [pair for pair in by_name.get(name, ()) if pair[1] is not node]
            homes = {
                source.module,
                *(binding.module for binding in source.imports if binding.bound_to == name),
            }
            near = [pair for pair in every if pair[0].module in homes]
            pairs += near or (every if len(every) == 1 else [])
        return pairs

    def is_record(source: Source, node: ast.ClassDef) -> bool:
        decorated = any(last_name(decorator) == "dataclass" for decorator in node.decorator_list)
        plain = RECORDS & set(map(last_name, node.bases))
        return decorated or bool(plain) or any(is_record(*pair) for pair in bases(source, node))

    def fields(source: Source, node: ast.ClassDef) -> set[str]:
        field_names = {
            ast.unparse(line.target)
            for line in node.body
            if isinstance(line, ast.AnnAssign)
            and "ClassVar" not in ast.unparse(line.annotation)
            and not _is_key(line)
        }
        return field_names.union(
            *(fields(*pair) for pair in bases(source, node) if is_record(*pair))
        )

    return {
        f"{source.module}.{node.name}": len(fields(source, node))
        for source, node in classes(sources)
        if is_record(source, node)
    }


def config_keys(sources: Sources) -> dict[str, int]:
    """The number of keys of each table of the config, by `module.class`."""
    return {
        f"{source.module}.{node.name}": n
        for source, node in classes(sources)
        if (n := sum(isinstance(line, ast.AnnAssign) and _is_key(line) for line in node.body))
    }


def _is_key(line: ast.AnnAssign) -> bool:
    return isinstance(line.value, ast.Call) and last_name(line.value.func) in KEYS


def imported_modules(source: Source, modules: frozenset[str], *, at_top: bool = False) -> set[str]:
    """The modules out of some that a file imports, those only for types apart.

    `from a import b` is an import of `a.b` if that is a module. at_top: only imports that run when
    the file is imported, not those within functions.
    """
    inside = {
        line
        for node in source.nodes
        if at_top and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    imports = set()
    for binding in source.imports:
        if binding.for_types or binding.line in inside:
            continue
        whole = f"{binding.module}.{binding.name}"
        imports.add(whole if whole in modules else binding.module)
    return imports & modules - {source.module}


def longest_chain(sources: Sources, package: str) -> list[str]:
    """The longest chain of files of a package of which each imports the next when it is imported.

    A file that imports itself through others would have no length: ValueError names the circle.
    """
    inside = {source.module: source for source in sources if under(source.module, package)}
    modules = frozenset(inside)
    chains: dict[str, list[str]] = {}

    def chain(module: str, above: tuple[str, ...]) -> list[str]:
        if module in above:
            raise ValueError(f"a circle of imports: {' -> '.join([*above, module])}")
        if module not in chains:
            below = imported_modules(inside[module], modules, at_top=True)
            longest = [chain(dependency, (*above, module)) for dependency in sorted(below)]
            chains[module] = [module, *max(longest, key=len, default=[])]
        return chains[module]

    return max((chain(module, ()) for module in sorted(inside)), key=len, default=[])


def repeated_class_names(sources: Sources) -> dict[str, list[str]]:
    """The names that two or more classes have, nested and private ones too, with their modules."""
    homes: dict[str, list[str]] = {}
    for source, node in classes(sources):
        homes.setdefault(node.name, []).append(source.module)
    return {name: modules for name, modules in sorted(homes.items()) if len(modules) > 1}


def in_both(first: Sources, second: Sources) -> list[str]:
    """The names that classes of both halves have."""
    names = [{node.name for _, node in classes(half)} for half in (first, second)]
    return sorted(names[0] & names[1])


def imports_of_metrics(sources: Sources, metrics: Mapping[str, set[str]]) -> Counter[str]:
    """By file of a metric, how many modules of the sources it imports, within functions too."""
    modules = frozenset(source.module for source in sources)
    homes = {module for class_modules in metrics.values() for module in class_modules}
    return Counter(
        {
            source.module: len(imported_modules(source, modules))
            for source in sources
            if source.module in homes
        }
    )


def figures() -> Iterator[Figure]:
    """The lines of this file."""
    sources = both_halves()
    for half, files, goal in (("library", library(), 12), ("consumers", shell(), None)):
        fields = Counter(records(files)).most_common()
        (record, most), large = fields[0], [f"{n} {record}" for record, n in fields if n > 12]
        name = f"fields of the largest record of the {half} ({record.rpartition('.')[2]})"
        yield Figure(name, most, goal, details=large)
    tables = Counter(config_keys(shell())).most_common()
    (table, most), large = tables[0], [f"{n} {label}" for label, n in tables if n > 12]
    name = f"keys of the largest table of the config ({table.rpartition('.')[2]})"
    yield Figure(name, most, details=large)
    chain = longest_chain(sources, "streammetrics.experiments")
    yield Figure("files on top of one another in experiments", len(chain), 7, details=chain)
    twice = repeated_class_names(sources)
    homes = [f"{name}: {', '.join(modules)}" for name, modules in twice.items()]
    yield Figure("class names that occur twice or more", len(twice), 15, details=homes)
    shared = in_both(library(), shell())
    yield Figure("class names of both halves", len(shared), 0, details=shared)
    imports = imports_of_metrics(library(), metrics_of_rows(library()))
    for module, n in imports.items():
        if module.endswith(".calibration"):
            yield Figure("modules that the file of Calibration imports", n, 4)
    (module, most), *_ = imports.most_common(1)
    name, listed = module.rpartition(".")[2], [f"{n} {label}" for label, n in imports.most_common()]
    yield Figure(f"modules that a metric file imports, at most ({name})", most, 4, details=listed)
