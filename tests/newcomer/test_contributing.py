"""A newcomer adds a metric, a measure, a config key and a view of the page as CONTRIBUTING says.

In a scratch copy of the repository, by the commands that stand there: the tests that would object
pass, and no other files change than those that the newcomer and the commands write.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import pytest

from tests.house.newcomer import Addition, Clone, Refused, added, commands_of, is_gate
from tests.newcomer.additions import ADDITIONS
from tests.requirements import ROOT

pytestmark = [pytest.mark.docs, pytest.mark.xdist_group("contributing")]  # the first, as it is long

# What the commands write, of each addition; with what is written by hand it is all that changes.
# The goals are 5 files for a metric and 4 for a config key.
WRITTEN = {
    "Add a metric": {
        *("streammetrics/classification/__init__.pyi", "docs/metrics.md"),
        "tests/golden/results.json",
    },
    "Add a measure of ranked lists": {"streammetrics/ranking/__init__.pyi", "docs/metrics.md"},
    "Add a config key": {"docs/config.md"},
    "Add a view to the page": set(),
}
MOST = {"Add a metric": 5, "Add a measure of ranked lists": 5, "Add a config key": 4}


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clone]:
    """A copy of the repository, which the tests share: each begins with what the others added."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout. To enable: clone the repository")
    yield Clone(tmp_path_factory.mktemp("clone"))


def python_files(names: set[str]) -> str:
    """The Python files, as words of a command."""
    return shlex.join(sorted(name for name in names if name.endswith(".py")))


@pytest.mark.parametrize(
    "addition", ADDITIONS, ids=lambda addition: addition.section.replace(" ", "_")
)
def test_the_commands_of_the_page_are_all_that_an_addition_needs(
    clone: Clone, addition: Addition
) -> None:
    assert any(map(is_gate, commands_of(addition.section)))
    changed = added(clone, addition, gates=True)
    assert changed == addition.by_hand | WRITTEN[addition.section]
    assert len(changed) <= MOST.get(addition.section, 4)
    if files := python_files(changed):
        clone.run(f".venv/bin/ruff check {files} && .venv/bin/ruff format --check {files}")


def test_what_was_added_is_exported_and_imports_nothing_until_it_is_used(clone: Clone) -> None:
    code = (
        "import sys, streammetrics as sm; print('numpy' in sys.modules, "
        "{'ScrollDepth', 'Top'} <= {*sm.__all__}, sm.ScrollDepth().compute().rows, sm.Top)"
    )
    assert clone.run(f".venv/bin/python -c {shlex.quote(code)}").split() == [
        *("False", "True", "0", "Top")
    ]


def test_a_gate_objects_where_the_generators_did_not_run(clone: Clone) -> None:
    clone.reset()
    page = clone.folder / "docs" / "config.md"
    text = page.read_text(encoding="utf-8")
    page.write_text(text.replace("| `server.silent_s` |", "| `server.silent` |"), encoding="utf-8")
    gate = next(command for command in commands_of("Add a config key") if is_gate(command))
    with pytest.raises(Refused, match="make docs"):
        clone.run(gate)
