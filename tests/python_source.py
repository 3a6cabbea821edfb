"""A Python file as the rules of architecture see it: its text, its tree, its imports, its names."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from streammetrics.exports import exported_names
from tests.requirements import ROOT


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
        if parts[:2] == ("consumers", "streammetrics_consumers"):  # a package in a folder
            parts = parts[1:]
        module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        return cls(module, str(path.relative_to(root)), path.read_text(encoding="utf-8"))

    @cached_property
    def tree(self) -> ast.Module:
        """The syntax tree."""
        return ast.parse(self.text)

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """Every node of the tree."""
        return tuple(ast.walk(self.tree))

    @cached_property
    def classes(self) -> tuple[ast.ClassDef, ...]:
        """Every class, also those within others and within functions."""
        return tuple(node for node in self.nodes if isinstance(node, ast.ClassDef))

    @cached_property
    def imports(self) -> tuple[Imported, ...]:
        """Every import of the file, those inside functions and TYPE_CHECKING blocks included."""
        return tuple(_imports(self))

    @property
    def package(self) -> str:
        """The package that relative imports start from."""
        is_package = self.path.endswith("__init__.py")
        return self.module if is_package else self.module.rpartition(".")[0]

    def finding(self, line: int, message: str) -> str:
        """A finding."""
        return f"{self.path}:{line}: {message}"


@dataclass(frozen=True)
class Imported:
    """One import: the module, the name taken from it (None for `import x`), and the line."""

    module: str
    name: str | None
    bound_to: str
    line: int
    for_types: bool = False  # under `if TYPE_CHECKING:`


@cache
def sources_of(folder: str) -> tuple[Source, ...]:
    """Every Python file below a folder of the repository, read and parsed once for all tests."""
    return tuple(Source.read(ROOT, path) for path in sorted((ROOT / folder).rglob("*.py")))


def _imports(source: Source) -> Iterator[Imported]:
    blocks = [node for node in source.nodes if isinstance(node, ast.If)]
    for_types = {
        inner.lineno
        for block in blocks
        if isinstance(block.test, ast.Name) and block.test.id == "TYPE_CHECKING"
        for inner in ast.walk(block)
        if isinstance(inner, ast.ImportFrom)
    }
    for node in source.nodes:
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
                bound = alias.asname or alias.name
                yield Imported(module, alias.name, bound, node.lineno, node.lineno in for_types)


def under(module: str, package: str) -> bool:
    """Whether a module is the package or lies in it."""
    return module == package or module.startswith(package + ".")


def exported(source: Source) -> set[str]:
    """The names in `__all__`, or in the stub of a package that has one."""
    stub = ROOT / source.path.replace("__init__.py", "__init__.pyi")
    if stub.suffix == ".pyi" and stub.exists():
        text = stub.read_text(encoding="utf-8")
        values = [node for node in ast.parse(text).body if isinstance(node, ast.AnnAssign)]
        return {*exported_names(text), *(ast.unparse(value.target) for value in values)}
    for node in source.tree.body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        if isinstance(target, ast.Name) and target.id == "__all__":
            value = node.value  # type: ignore[attr-defined]
            return set(ast.literal_eval(value))
    return set()


def is_private(name: str) -> bool:
    """Whether a name says by its underscore that it is nobody else's."""
    return name.startswith("_") and not (name.startswith("__") and name.endswith("__"))
