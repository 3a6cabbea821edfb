"""Every public name has a reference page, which says what it is."""

from __future__ import annotations

import ast
import inspect

import pytest

from docs import metrics_page, reference_pages
from docs.reference_pages import CONSTANTS, TITLES, UNIMPORTED, Page, homes_of, markdown, pages
from streammetrics.exports import exported_names
from streammetrics.ranking.measures import MEASURES
from tests.requirements import ROOT

METRICS = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
BY_MODULE = {page.module: page for page in pages()}
EXAMPLES = ("Plan", "Covariate", "SampleRatio", "Horizon", "Experiment", "plan_test", "compare")


def public_modules() -> set[str]:
    """Those of the table of docs/architecture.md."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    lines = text.partition("## Public modules")[2].partition("\n## ")[0].splitlines()
    return {line.split("`")[1] for line in lines if line.startswith("| `")}


def names_of_stubs() -> set[tuple[str, str]]:
    """The module and name of all that the stubs of public packages export, metrics among them."""
    stubs = (ROOT / module.replace(".", "/") / "__init__.pyi" for module in TITLES)
    texts = (stub.read_text(encoding="utf-8") for stub in stubs if stub.exists())
    return {(home.module, name) for text in texts for name, home in exported_names(text).items()}


def docstring(name: str, page: Page) -> str:
    """What the page says of a name of its own."""
    if name in CONSTANTS:
        return CONSTANTS[name]
    node = reference_pages.definition(page.own[name])
    return "" if node is None else ast.get_docstring(node) or ""


def test_every_public_module_has_a_page() -> None:
    assert public_modules() - set(TITLES) == set()


def test_every_public_name_has_a_page_and_only_one() -> None:
    """A name that a stub gains is on a page at once, or this fails where it is not described."""
    entries: dict[str, list[str]] = {}
    for page in pages():
        for home in page.own.values():
            entries.setdefault(f"{home.module}.{home.name}", []).append(page.path)
    assert {name: paths for name, paths in entries.items() if len(paths) > 1} == {}
    page_names = {name for page in pages() for name in page.own} | {
        *metrics_page.metrics(),
        *MEASURES,
    }
    results = {
        kind.__name__ for metric in metrics_page.metrics().values()
        for kind in metrics_page.results_of(metric) if inspect.isclass(kind)
    }  # fmt: skip
    assert {name for _, name in names_of_stubs()} - page_names - results == set()
    for module in TITLES:
        page = BY_MODULE[module]
        assert {*page.own, *page.elsewhere} == {*homes_of(module)}


def test_a_name_that_is_described_elsewhere_is_there() -> None:
    texts = {page.path.removeprefix("reference/"): markdown(page) for page in pages()}
    for page in pages():
        for name, path in page.elsewhere.items():
            if path.startswith("../metrics.md"):
                assert f"- `{name}`: " in METRICS, name
            elif path in texts:
                home = reference_pages.defined(homes_of(page.module)[name])
                assert (
                    f"{home.module}.{home.name}\n" in texts[path] or f"## `{name}`" in texts[path]
                )
            else:
                assert path.removesuffix(".md") in metrics_page.metrics(), name


@pytest.mark.parametrize("module", TITLES)
def test_a_page_says_what_each_name_is(module: str) -> None:
    page = BY_MODULE[module]
    silent = [name for name in page.own if not docstring(name, page)]
    assert silent == [], "without a docstring, or a sentence in docs/reference_pages.py"
    text = markdown(page)
    for name, home in page.own.items():
        if module in UNIMPORTED or name in CONSTANTS:
            assert f"## {name}\n" in text or f"## `{name}`\n" in text, name
        else:
            assert f"::: {home.module}.{home.name}\n" in text, name


def test_every_constant_that_has_a_sentence_is_public() -> None:
    public = {name for page in pages() for name in (*page.own, *page.elsewhere)}
    assert {*CONSTANTS} - public <= {"__version__"}


@pytest.mark.parametrize("name", EXAMPLES)
def test_what_people_call_for_an_experiment_has_an_example(name: str) -> None:
    page = next(page for page in pages() if name in page.own)
    assert ">>> " in docstring(name, page)
