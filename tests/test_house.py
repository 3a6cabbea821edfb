"""The gauges of `python -m tests.house`: each moves when the source does, and none grows.

Each gauge is given a small source that is worse by one, and counts one more.
"""

from __future__ import annotations

import gc
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from itertools import chain, count
from pathlib import Path
from typing import ClassVar

import pytest
from streammetrics_consumers.cli import progress

from streammetrics.present.notebook import Shown
from streammetrics.present.views import ViewText
from streammetrics.results.has_intervals import HasIntervals
from tests import house
from tests.house import calls, durations, newcomer, sizes, steps, structure, views, vocabulary
from tests.house.__main__ import main
from tests.house.figure import NOT_MEASURED, Figure
from tests.house.limits import BUDGETS, MOST, MOST_CALLED
from tests.python_source import Source
from tests.requirements import ROOT

pytestmark = pytest.mark.xdist_group("architecture")  # one worker reads the source, once


def source(text: str, module: str = "streammetrics.thing") -> Source:
    """A small file of the library."""
    return Source(module, module.replace(".", "/") + ".py", text)


@cache
def counted() -> tuple[Figure, ...]:
    """What is counted from the source."""
    return tuple(chain(*(gauge.figures() for gauge in (views, structure, vocabulary, sizes))))


def grown(figures: Iterator[Figure], most: Mapping[str, float]) -> list[str]:
    """The figures that are above their goal, and above what they were."""
    limits = [(figure, most.get(figure.name.partition(" (")[0], figure.most)) for figure in figures]
    return [
        f"{figure.name}: {figure.now}, at most {limit}"
        for figure, limit in limits
        if limit is not None and (isinstance(figure.now, str) or figure.now > limit)
    ]


def none_grew(figures: Iterable[Figure], most: Mapping[str, float]) -> None:
    """Fail with the figures that grew."""
    if names := grown(iter(figures), most):
        pytest.fail("\n".join(names), pytrace=False)


# -- what is counted does not grow -------------------------------------------------------------


def test_what_is_counted_reaches_its_goal_or_is_no_more_than_it_was() -> None:
    none_grew(counted(), MOST | BUDGETS)


def test_each_limit_is_of_a_figure() -> None:
    names = {figure.name.partition(" (")[0] for figure in counted()}
    assert {*MOST, *BUDGETS} - names == set()


def test_calls_cross_no_more_functions_than_they_did() -> None:
    figures = [*calls.figures(), *steps.figures()]
    assert {*MOST_CALLED} - {figure.name for figure in figures} == set()
    none_grew(figures, {name.partition(" (")[0]: n for name, n in MOST_CALLED.items()})


def test_a_figure_that_grew_is_found() -> None:
    figures = [Figure("a", 3, 2), Figure("b (Name)", 3, 2), Figure("c", 3, 3), Figure("d", 9)]
    assert grown(iter(figures), {"b": 3}) == ["a: 3, at most 2"]
    assert [figure.reached for figure in figures] == [False, False, True, False]
    assert Figure("e", 2.5, 2.0, "µs").text().split() == ["e", "2.5", "µs", "<=", "2", "µs"]


# -- views -------------------------------------------------------------------------------------


class _Few(HasIntervals):
    better: ClassVar[Mapping[str, str]] = {"share": "higher"}
    rows: int
    hours: float
    notes: tuple[str, ...] = ("no", "table")
    chosen: ClassVar[frozenset[str]] = frozenset()

    @property
    def share(self) -> float:
        """A view."""
        return 0.5

    def share_up_to(self, x: float) -> float:
        return x

    def _helper(self, view: ViewText) -> str:
        return view.text

    def _doubts_of_mine(self, view: ViewText) -> tuple[str, ...]:
        return ()


class _More(_Few):
    reasons: ClassVar[Mapping[str, str]] = {"odds": "no rows"}

    @property
    def better(self) -> Mapping[str, str]:  # type: ignore[override]
        """A table of an instance."""
        return {"share": "lower"}

    def _doubts_of_mine(self, view: ViewText) -> tuple[str, ...]:
        return (view.text,)


def test_tables_hooks_and_names_of_views_are_found_on_any_class_of_results() -> None:
    assert views.tables_of_views([_Few]) == ["_Few.better"]
    assert views.tables_of_views([_More]) == ["_More.reasons", "_More.better"]
    assert views.view_hooks([_Few]) == []
    assert views.view_hooks([_More]) == ["_More._doubts_of_mine"]
    assert views.names_of_views([_Few]) == {"hours", "share", "share_up_to"}
    assert views.names_of_views([_More]) == {"odds"}


def test_a_new_class_of_results_is_found_by_importing_its_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "results_of_mine"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "deep.py").write_text(
        "from dataclasses import dataclass\n"
        "from streammetrics.present.notebook import Shown\n"
        "@dataclass(frozen=True, repr=False, slots=True)\nclass Mine(Shown):\n    share: float\n"
    )
    (package / "broken.py").write_text("import an_engine_that_is_not_installed\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert [kind.__name__ for kind in views.result_classes("results_of_mine")] == ["Mine"]
    assert Shown in views.result_classes()


ASKED = """
from streammetrics import Ratio, Panel
import streammetrics as sm
PAIR = (Ratio, int)
def f(metric):
    isinstance(metric, Panel)
    isinstance(metric, sm.Ratio)
    isinstance(metric, Panel | Ratio)
    issubclass(metric, PAIR)
    match metric:
        case Ratio():
            pass
"""


def test_each_question_for_a_class_counts_outside_of_its_own_file() -> None:
    homes = {"Ratio": {"streammetrics.classification.ratio"}}
    lines = [place.split(":")[1] for place in views.classes_asked_for([source(ASKED)], homes)]
    assert sorted(map(int, lines)) == [7, 8, 9, 11]
    ratio_file = source(ASKED, "streammetrics.classification.ratio")
    assert views.classes_asked_for([ratio_file], homes) == []


def test_metrics_of_rows_are_those_that_derive_from_accumulator_in_the_packages_of_metrics() -> (
    None
):
    files = [
        source("class Mine(Accumulator): ...", "streammetrics.ranking.mine"),
        source("class Theirs(Mine): ...", "streammetrics.policies.theirs"),
        source("class Many(Accumulator): ...", "streammetrics.combine.many"),
        source("class Other: ...", "streammetrics.ranking.other"),
    ]
    metrics = views.metrics_of_rows(files)
    assert {*metrics} == {"Mine", "Theirs"}


COMPARED = """
def f(view, kind, name):
    view.name == "auc"
    name in ("auc", "mean")
    "auc" != str(view)
    kind == "auc"
    view.name == "rows"
    match name:
        case "auc" | "gini":
            pass
        case _:
            pass
"""


def test_each_comparison_with_the_name_of_a_view_counts_but_in_the_parser() -> None:
    lines = [place.split(":")[1] for place in views.names_compared([source(COMPARED)], {"auc"})]
    assert sorted(map(int, lines)) == [3, 4, 5, 9]
    assert views.names_compared([source(COMPARED, views.PARSER)], {"auc"}) == []


# -- structure ---------------------------------------------------------------------------------


def test_the_fields_of_a_record_are_its_own_and_those_of_its_bases() -> None:
    base = source(
        "class Wide(Struct):\n    a: int\n    b: int\n"
        "class Plain:\n    x: int\n"
        "@dataclass(frozen=True)\nclass Row(Plain):\n    c: int\n    kind: ClassVar[str]\n"
        "    key: str = state_key(Text(), '', 'counts apart, as a key of the config')\n",
        "streammetrics.one",
    )
    subclass = source(
        "from streammetrics.one import Row\n"
        "@dataclass\nclass Longer(Row):\n    c: int\n    d: int = 1\n"
        "class Pair(NamedTuple):\n    e: int\n",
        "streammetrics.two",
    )
    # A record of the same name elsewhere is none of the bases.
    decoy = source("@dataclass\nclass Row:\n    p: int\n    q: int\n", "streammetrics.z")
    assert structure.records([base, subclass, decoy]) == {
        "streammetrics.one.Wide": 2,
        "streammetrics.one.Row": 1,
        "streammetrics.two.Longer": 2,
        "streammetrics.two.Pair": 1,
        "streammetrics.z.Row": 2,
    }
    assert structure.config_keys([base, subclass, decoy]) == {"streammetrics.one.Row": 1}
    deeper = source("from streammetrics.one import Wide\nclass Deep(Wide):\n    z: int\n", "x.deep")
    assert structure.records([base, deeper])["x.deep.Deep"] == 3


def chain_of(*lines: str) -> list[str]:
    """The longest chain of files a, b, c ... of a package, with these lines."""
    names = "abcdef"[: len(lines)]
    files = [source(line, f"p.{name}") for name, line in zip(names, lines, strict=True)]
    return structure.longest_chain([*files, source("import p.a", "q.other")], "p")


def test_a_chain_of_imports_is_as_long_as_its_files() -> None:
    assert chain_of("from p.b import x", "from p import c", "", "from p.c import x") == [
        *("p.a", "p.b", "p.c")
    ]
    assert len(chain_of("from p.b import x", "from p.c import x", "import p.d", "")) == 4
    late = "def f():\n    from p.b import x"
    typed = "if TYPE_CHECKING:\n    from p.b import x"
    assert len(chain_of(late, "")) == len(chain_of(typed, "")) == 1
    with pytest.raises(ValueError, match=r"p\.a -> p\.b -> p\.a"):
        chain_of("import p.b", "import p.a")


def test_a_name_of_two_classes_counts_once_and_also_across_the_halves() -> None:
    first = source("class A: ...\nclass B: ...\ndef f():\n    class B: ...", "streammetrics.one")
    second = source("class A: ...\nclass C: ...", "streammetrics_consumers.two")
    assert [*structure.repeated_class_names([first, second])] == ["A", "B"]
    assert structure.in_both([first], [second]) == ["A"]


def test_each_module_that_a_metric_imports_counts_once() -> None:
    files = [
        source("", "streammetrics.core.part"),
        source("", "streammetrics.core"),
        source("", "streammetrics.kernels.area"),
        source(
            "import numpy\nfrom streammetrics.core.part import A\n"
            "from streammetrics.core import part\n"
            "if TYPE_CHECKING:\n    from streammetrics.core import Any\n"
            "def f():\n    from streammetrics.kernels import area\n",
            "streammetrics.ranking.mine",
        ),
    ]
    metrics = {"Mine": {"streammetrics.ranking.mine"}}
    assert structure.imports_of_metrics(files, metrics) == {"streammetrics.ranking.mine": 2}


# -- names -------------------------------------------------------------------------------------


def test_the_share_of_names_without_a_noun_is_of_the_assignments_within_functions() -> None:
    text = (
        "found = 1\n"
        "def f(one):\n    found = rows = 1\n    for _found, n in x: ...\n    self.found = 2\n"
        "    return [edge for edge in edges]\n"
    )
    share, names = vocabulary.share_without_nouns([source(text)])
    assert (share, names) == (40.0, ["2 found"])
    share, _ = vocabulary.share_without_nouns([source(text + "    at = 3\n")])
    assert share == 50.0
    nested = source("def f():\n    def g():\n        one = 1\n        rows = 2\n")
    assert vocabulary.share_without_nouns([nested])[0] == 50.0


def test_names_in_tests_and_scripts_have_nouns_too() -> None:
    none_grew(vocabulary.slow_figures(), {})


def test_a_function_that_begins_with_a_preposition_is_found() -> None:
    text = (
        "def of_rows(): ...\nclass A:\n    def _by_key(self): ...\n    def at(self): ...\n"
        "def to_bytes(): ...\ndef offset(): ...\ndef rows_of(): ...\ndef __in__(): ...\n"
    )
    places = vocabulary.prepositional_functions([source(text)])
    assert [place.rpartition(" ")[2] for place in places] == ["of_rows", "_by_key", "at"]
    below = (
        text + "class B(A): ...\nclass C(B):\n    def at(self): ...\n    def at_all(self): ...\n"
    )
    places = vocabulary.prepositional_functions([source(below)])
    assert [place.rpartition(" ")[2] for place in places[3:]] == ["at_all"]


# -- sizes -------------------------------------------------------------------------------------


def test_a_line_more_is_a_line_more() -> None:
    short, long = source("a\n" * 59, "p.a"), source("a\n" * 451, "streammetrics_consumers.config.a")
    assert sizes.lines([short, long]) == 510
    assert sizes.files_of([short, long], below=60) == ["59 p/a.py"]
    assert len(sizes.files_of([short, long], least=451)) == 1
    assert sizes.config_files([short, long]) == [long]
    assert sizes.base_names([short, long, source("", "q.a")])["a.py"] == 3
    assert len(sizes.asserted_types([source("assert isinstance(a, int)\nassert a")])) == 1


# -- calls -------------------------------------------------------------------------------------


def test_one_function_more_that_is_called_counts() -> None:
    folder = (f"{ROOT}/tests/",)

    def inner() -> None: ...

    def outer() -> list[None]:
        return [inner() for _ in range(3)]

    def crossing(call: Callable[[], object]) -> dict[str, int]:
        crossed = calls.crossed(call, folder)
        return {name.rpartition(":")[2]: n for name, n in crossed.items()}

    name = "test_one_function_more_that_is_called_counts"
    assert crossing(inner) == {name: 1}
    assert crossing(outer)[name] >= 4
    assert crossing(lambda: source("a").finding(1, "b")) == {
        name: 1,
        "source": 1,
        "Source.finding": 1,
    }
    assert calls.crossed(lambda: source("a"), calls.PACKAGES) == {}


def test_a_busy_machine_crosses_no_more_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "QUICK_S", 0)  # what is slow shows its progress
    monkeypatch.setattr(progress, "EVERY_S", 0)
    assert not any(name.endswith("progress.py:described") for name in calls.of_results())


def test_what_garbage_of_before_runs_at_its_end_does_not_count() -> None:
    def generator() -> Iterator[None]:
        try:
            yield
        finally:
            source("a")

    gc.disable()  # until `crossed` collects it
    try:
        cycle = [generator()]
        next(cycle[0])
        cycle.append(cycle)  # type: ignore[arg-type]
        del cycle
        assert set(calls.crossed(gc.collect, (f"{ROOT}/tests/",))) == set()
        assert not gc.isenabled()
    finally:
        gc.enable()
    calls.crossed(gc.collect)
    assert gc.isenabled()


def test_the_cost_of_a_value_is_the_time_of_a_table_over_its_values(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def cost(step_s: float, keys: int) -> float:
        seconds = count(0.0, step_s)
        monkeypatch.setattr(calls, "process_time", lambda: next(seconds))
        return calls.microseconds_a_value(keys=keys, rows=100)

    once = cost(1.0, keys=2)
    assert (cost(4.0, keys=2), cost(1.0, keys=4)) == (4 * once, once / 2)


def test_another_set_of_functions_of_the_buffer_is_another_way_of_a_row() -> None:
    write, append = "Buffer.put", "_appending.<locals>.append"
    ways = [{"by slot", write}, {write, append}, {"to one state"}, {write, "Other.append"}]
    assert [steps._way(frozenset(way)) for way in ways] == [
        *("keyed", "buffered", "direct", "Buffer.put, Other.append")
    ]


# -- durations ---------------------------------------------------------------------------------

STAGES = """\
stage\twall_s\tcpu_s
static\t20.0\t35.5
test\t312.5\t401.0
"""


def test_durations_are_those_that_ci_noted_and_are_else_not_known(tmp_path: Path) -> None:
    def figures() -> dict[str, float | str]:
        noted = durations.stages(tmp_path / "stages.tsv")
        return {figure.name.partition(",")[0]: figure.now for figure in durations.figures(noted)}

    assert {*figures().values()} == {NOT_MEASURED}
    (tmp_path / "stages.tsv").write_text(STAGES)
    assert {name for name, now in figures().items() if now != NOT_MEASURED} == {"make test"}
    (tmp_path / "stages.tsv").write_text(f"{STAGES}all of it\t1210\t2300\n")
    noted = figures()
    assert (noted["make test"], noted[".ci/run"]) == (312.5, 1210)
    assert noted["processor time of .ci/run"] == 2300


# -- what a newcomer changes -------------------------------------------------------------------

PAGE = """\
## Add a thing

Words, and `code`.

```
make generated
python -m pytest \\
  tests/a.py -k NAME
```

## Add another

```
other
```
"""


def test_commands_are_those_of_the_section_and_gates_only_check() -> None:
    commands = newcomer.commands_of("Add a thing", PAGE)
    assert commands == ["make generated", "python -m pytest tests/a.py -k NAME"]
    assert [*map(newcomer.is_gate, commands)] == [False, True]
    assert newcomer.commands_of("Add nothing", PAGE) == []


@pytest.fixture
def clone(tmp_path: Path) -> newcomer.Clone:
    """A clone of a repository of one file."""
    checkout = object.__new__(newcomer.Clone)
    checkout.folder = tmp_path
    (tmp_path / "a.py").write_text("a = 1\n")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    checkout.commit()
    return checkout


def test_each_file_that_an_addition_changes_counts(
    clone: newcomer.Clone, monkeypatch: pytest.MonkeyPatch
) -> None:
    def added(*commands: str, gates: bool = False) -> set[str]:
        monkeypatch.setattr(newcomer, "commands_of", lambda section: list(commands))
        edit = newcomer.Edit("a.py", "a = ", "a = 1")
        addition = newcomer.Addition("A section", "Mine", {"new/b.py": "b\n"}, [edit])
        return newcomer.added(clone, addition, gates=gates)

    assert added() == {"a.py", "new/b.py"}
    assert added("echo NAME > NAME.txt", "touch pytest") == {"a.py", "Mine.txt"}
    assert (clone.folder / "Mine.txt").read_text() == "Mine\n"
    with pytest.raises(newcomer.Refused, match="exit 3"):
        added("ls pytest; exit 3", gates=True)
    with pytest.raises(newcomer.Refused, match="0 times, not once"):
        clone.write(newcomer.Addition("", "", edits=[newcomer.Edit("a.py", "gone", "b")]))


# -- the command -------------------------------------------------------------------------------


def test_every_figure_is_measured_and_printed(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--quick"])
    lines = capsys.readouterr().out.splitlines()[1:]
    names = [line[:62].rstrip() for line in lines]
    assert len(set(names)) == len(names) > 35
    measured_lines = [line for line in lines if NOT_MEASURED not in line]
    assert len(measured_lines) >= len(counted()) + len(MOST_CALLED)


def test_the_page_of_gauges_names_each_file_of_them() -> None:
    files = {path.stem for path in (ROOT / "tests" / "house").glob("*.py")}
    assert {name for name in files if f"| `{name}` |" in (house.__doc__ or "")} == files - {
        *("__init__", "__main__", "figure", "limits", "tree")
    }
