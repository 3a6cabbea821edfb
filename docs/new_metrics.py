"""Write what a new metric adds to the lists of names; `make docs` runs it.

A metric of ours is a class in a file of one of `PACKAGES` that declares inputs or whose docstring
has the heading *Rows*. Where it is missing, this adds it to the exports of its package and of
`streammetrics`, a line in each `__init__.pyi`, to the tables of docs/interface.md, and, view by
view, to the usual names of docs/metrics.md. What is there is left as it is: a name that changed is
changed by hand.
"""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from types import FunctionType
from typing import get_args, get_type_hints

ROOT = Path(__file__).resolve().parents[1]
INTERFACE, METRICS = ROOT / "docs" / "interface.md", ROOT / "docs" / "metrics.md"
PACKAGES = ("classification", "distributions", "policies", "ranking")


def declared(source: str) -> Iterator[str]:
    """The metrics that a file declares."""
    for node in ast.parse(source).body:
        if not isinstance(node, ast.ClassDef) or "schema" not in [k.arg for k in node.keywords]:
            continue
        assigned = {
            ast.unparse(t) for n in node.body if isinstance(n, ast.Assign) for t in n.targets
        }
        if "inputs" in assigned or "\n    Rows\n" in (ast.get_docstring(node, clean=False) or ""):
            yield node.name


def exported(stub: str, module: str, name: str) -> str:
    """The text of an `__init__.pyi` that exports a name of a module as well."""
    if re.search(rf" as {name}$", stub, re.MULTILINE):
        return stub
    return f"from {module} import {name} as {name}\n{stub}"


def write_exports() -> None:
    """Export each metric from its package and from `streammetrics`, as ruff orders them."""
    written: set[Path] = set()
    for package in PACKAGES:
        folder = ROOT / "streammetrics" / package
        for path in sorted(folder.glob("*.py")):
            for name in declared(path.read_text(encoding="utf-8")):
                places = {
                    folder / "__init__.pyi": f"streammetrics.{package}.{path.stem}",
                    folder.parent / "__init__.pyi": f"streammetrics.{package}",
                }
                for place, module in places.items():
                    before = place.read_text(encoding="utf-8")
                    if (after := exported(before, module, name)) != before:
                        place.write_text(after, encoding="utf-8")
                        written.add(place)
    if written:
        ruff, files = [sys.executable, "-m", "ruff"], sorted(map(str, written))
        subprocess.run([*ruff, "check", "-q", "--fix", "--select=I", *files], check=True)
        subprocess.run([*ruff, "format", "-q", *files], check=True)


def arguments(of: object, *, method: bool = False) -> str:
    """The parameters of a class or method, without their types."""
    known = list(inspect.signature(of).parameters.values())[int(method) :]  # type: ignore[arg-type]
    plain = [one.replace(annotation=inspect.Parameter.empty) for one in known]
    return str(inspect.Signature(plain))[1:-1]


def result_of(metric: type) -> type:
    """The class of what `compute` gives, the usual one of several."""
    found = get_type_hints(metric.compute)["return"]  # type: ignore[attr-defined]
    return (get_args(found) or (found,))[0]  # type: ignore[no-any-return]


def members(result: type) -> Mapping[str, object]:
    """The public names that a result itself brings: properties, then fields, then methods."""
    from streammetrics.authoring import Result

    computed = property, cached_property, FunctionType
    names = [name for name, value in vars(result).items() if isinstance(value, computed)]
    names += getattr(result, "__dataclass_fields__", ())
    public = [n for n in dict.fromkeys(names) if not n.startswith("_") and not hasattr(Result, n)]
    found = {name: getattr(result, name, None) for name in public}
    return dict(sorted(found.items(), key=lambda one: inspect.isfunction(one[1])))


def interface(text: str, metrics: Mapping[str, type]) -> str:
    """docs/interface.md with a row for each metric."""
    for name, metric in metrics.items():
        if f"\n| `{name}(" in text:
            continue
        result = result_of(metric)
        found = members(result)
        plain = " ".join(n for n, value in found.items() if not inspect.isfunction(value))
        calls = [
            f"`{n}({arguments(value, method=True)})`"
            for n, value in found.items()
            if inspect.isfunction(value)
        ]
        said = f"`{name}({arguments(metric)})`", f"`{arguments(metric.update, method=True)}`"  # type: ignore[attr-defined]
        cells = *said, f"`{result.__name__}`", " ".join([f"`{plain}`", *calls])
        text = text.replace("\n| `Panel(", f"\n| {' | '.join(cells)} |\n| `Panel(", 1)
        text = text.replace("` | metrics |\n", f"` `{name}` | metrics |\n", 1)
    return text


def usual_names(text: str, metrics: Mapping[str, type]) -> str:
    """docs/metrics.md with each view of each metric among the usual names, by its own words."""
    head, rows, rest = re.split(r"(\n\| usual name \|.*?\n\n)", text, maxsplit=1, flags=re.DOTALL)
    titles = rows.splitlines()[1]
    for name, metric in metrics.items():
        if f"`{name}." in rows or f"`{name}`" in rows:
            continue
        kinds = get_type_hints(result_of(metric))
        for view, value in members(result_of(metric)).items():
            getter = getattr(value, "fget", None)
            kind = get_type_hints(getter)["return"] if getter else kinds.get(view)
            if kind is float:
                cells = [view.replace("_", " "), f"`{name}.{view}`"]
                empty = " |" * (titles.count("|") - 3)
                rows = rows[:-1] + f"| {' | '.join(cells)} |{empty}\n\n"
    return head + rows + rest


def main() -> None:
    """Write the exports, then the tables."""
    write_exports()
    from streammetrics.registry import metric_types

    packages = tuple(f"streammetrics.{package}." for package in PACKAGES)
    ours = {
        name: kind for name, kind in metric_types().items() if kind.__module__.startswith(packages)
    }
    for path, write in ((INTERFACE, interface), (METRICS, usual_names)):
        path.write_text(write(path.read_text(encoding="utf-8"), ours), encoding="utf-8")


if __name__ == "__main__":
    main()
