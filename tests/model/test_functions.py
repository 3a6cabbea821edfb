"""The model is one of this code: what its comments name exists here."""

from __future__ import annotations

import ast
import re
from functools import cache

from tests.model.scenarios import MODEL, SCENARIOS, SHOWN_BY, conditions
from tests.requirements import ROOT


@cache
def functions() -> frozenset[str]:
    """All functions of both packages by name, methods as `Class.method`."""
    names = set()
    for package in ("streammetrics", "consumers/streammetrics_consumers"):
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.FunctionDef):
                    names.add(node.name)
                elif isinstance(node, ast.ClassDef):
                    methods = (part for part in node.body if isinstance(part, ast.FunctionDef))
                    names |= {f"{node.name}.{method.name}" for method in methods}
    return frozenset(names)


def text() -> str:
    return MODEL.read_text(encoding="utf-8")


def test_every_function_that_the_model_names_exists() -> None:
    names = set(re.findall(r"`([\w.]+)`", text()))
    assert len(names) > 30
    assert not names - functions()


def test_every_step_that_changes_the_store_names_its_functions() -> None:
    pattern = r"(/\*[^/]*\*/\n)?inline (\w+)\([^)]*\) \{\n(.*?)\n\}"
    steps = {
        name: comment
        for comment, name, body in re.findall(pattern, text(), re.DOTALL)
        if re.search(r"now\.\w+(\[\w+\])? = ", body)
    }
    assert {"commit", "write_entries", "write_results", "count_closed"} <= steps.keys()
    assert not [name for name, comment in steps.items() if "`" not in comment]


def test_every_condition_has_a_scenario_that_shows_what_it_is_there_for() -> None:
    assert list(SHOWN_BY) == conditions()
    assert len(SHOWN_BY) >= 10
    assert set(SHOWN_BY.values()) == SCENARIOS.keys()


def test_the_model_is_short() -> None:
    assert len(text().splitlines()) <= 400
