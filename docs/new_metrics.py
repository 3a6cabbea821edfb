"""Write what a new metric or measure adds to the lists of names; `make generated` runs it.

A metric of ours is a class in a file of one of `PACKAGES` that declares inputs or whose docstring
has the heading *Rows*. Where it is missing, this adds it to the exports of its package, a line in
`__init__.pyi`, and, view by view, to the usual names of docs/metrics.md. A measure of ranked lists
is an entry of `MEASURES` in `ranking/measures.py`; it is added to the exports, and to the tables of
measures of the page. `docs/metrics_page.py` writes the rest of the page.
What is there is left as it is: a name that changed is changed by hand.
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
from typing import TYPE_CHECKING, get_args, get_type_hints

if TYPE_CHECKING:
    from streammetrics.ranking import Measure

ROOT = Path(__file__).resolve().parents[1]
METRICS = ROOT / "docs" / "metrics.md"
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
    """Export each metric from its package."""
    for package in PACKAGES:
        for path in sorted((ROOT / "streammetrics" / package).glob("*.py")):
            for name in declared(path.read_text(encoding="utf-8")):
                export(package, path.stem, name)


def export(package: str, module: str, name: str) -> None:
    """Export a name of a module from its package, as ruff orders them; `streammetrics` has all
    names of the package."""
    place = ROOT / "streammetrics" / package / "__init__.pyi"
    before = place.read_text(encoding="utf-8")
    after = exported(before, f"streammetrics.{package}.{module}", name)
    if after != before:
        place.write_text(after, encoding="utf-8")
        ruff = [sys.executable, "-m", "ruff"]
        subprocess.run([*ruff, "check", "-q", "--fix", "--select=I", str(place)], check=True)
        subprocess.run([*ruff, "format", "-q", str(place)], check=True)


def result_of(metric: type) -> type:
    """The class of what `compute` gives, the usual one of several."""
    hint = get_type_hints(metric.compute)["return"]  # type: ignore[attr-defined]
    return (get_args(hint) or (hint,))[0]  # type: ignore[no-any-return]


def members(result: type) -> Mapping[str, object]:
    """The public names that a result itself brings: properties, then fields, then methods."""
    from streammetrics.authoring import Result

    computed = property, cached_property, FunctionType
    names = [name for name, value in vars(result).items() if isinstance(value, computed)]
    names += getattr(result, "__dataclass_fields__", ())
    public = [n for n in dict.fromkeys(names) if not n.startswith("_") and not hasattr(Result, n)]
    values = {name: getattr(result, name, None) for name in public}
    return dict(sorted(values.items(), key=lambda pair: inspect.isfunction(pair[1])))


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


def table_of(text: str, title: str) -> list[str]:
    """What stands before the table of a page with this first row, the table, and the rest."""
    row = re.escape(title)
    return re.split(rf"(\n\| {row} \|.*?\n\n)", text, maxsplit=1, flags=re.DOTALL)


def measure_lines(text: str, measures: Mapping[str, Measure]) -> str:
    """docs/metrics.md with each measure among the usual names of measures, by its own name, and in
    the table of their values, by the first sentence of its docstring."""
    for title, cells in (
        ("usual name of a measure", lambda name, _: f"{name} | `{name}`"),
        ("measure | value of one list", _value_of_one_list),
    ):
        head, table, rest = table_of(text, title)
        empty = " |" * (table.splitlines()[1].count("|") - 3)
        for name, measure in measures.items():
            if not re.search(rf"`{name}(@k)?`", table):
                table = f"{table[:-1]}| {cells(name, measure)} |{empty}\n\n"
        text = head + table + rest
    return text


def _value_of_one_list(name: str, measure: Measure) -> str:
    cut = "" if measure.cuts == "cannot" else "@k"
    sentence = (inspect.getdoc(type(measure)) or "").partition("\n\n")[0]
    return f"`{name}{cut}` | {' '.join(sentence.split()).removesuffix('.')}"


def main() -> None:
    """Write the exports, then the tables."""
    write_exports()
    from streammetrics.ranking.measures import MEASURES
    from streammetrics.registry import metric_types

    for name, measure in MEASURES.items():
        export("ranking", type(measure).__module__.rpartition(".")[2], name)
    packages = tuple(f"streammetrics.{package}." for package in PACKAGES)
    metrics = {
        name: kind for name, kind in metric_types().items() if kind.__module__.startswith(packages)
    }
    page = usual_names(METRICS.read_text(encoding="utf-8"), metrics)
    METRICS.write_text(measure_lines(page, MEASURES), encoding="utf-8")


if __name__ == "__main__":
    main()
