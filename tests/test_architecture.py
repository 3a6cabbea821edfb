"""The rules of docs/architecture.md, walked over the source.

Every rule is shown a small bad source as well: a rule that finds nothing there is broken.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterable
from functools import cache
from itertools import chain

import pytest

from streammetrics.exports import Home, exported_names
from tests import architecture_rules as rules
from tests.architecture_rules import STANDARD_LIBRARY, Layers
from tests.python_source import Source, exported, sources_of, under
from tests.requirements import ROOT

PAGE = ROOT / "docs" / "architecture.md"
PACKAGES = ("streammetrics", "streammetrics_consumers", "benchmarks")
FOLDERS = {"streammetrics_consumers": "consumers/streammetrics_consumers"}
WITH_TESTS = (*PACKAGES, "tests")
LINES, META_LINES = 500, 250
Rule = Callable[[Source], list[str]]
pytestmark = pytest.mark.xdist_group("architecture")  # one worker reads the source, once


@cache
def table(heading: str) -> tuple[tuple[str, ...], ...]:
    """The cells of the table under a heading of the page, without its head."""
    section = PAGE.read_text(encoding="utf-8").partition(f"\n## {heading}\n")[2]
    section = section.partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("|")]
    assert len(rows) > 2, f"{PAGE.name} has no table under {heading!r}"
    return tuple(tuple(cell.strip() for cell in row.strip("|").split("|")) for row in rows[2:])


def quoted(cell: str) -> list[str]:
    """The names in backticks."""
    return re.findall(r"`([^`]+)`", cell)


@cache
def sources() -> tuple[Source, ...]:
    """Every Python file of the three packages, and of the tests."""
    folders = [FOLDERS.get(package, package) for package in WITH_TESTS]
    return tuple(chain.from_iterable(map(sources_of, folders)))


@cache
def layers() -> Layers:
    """The layers as the page gives them."""
    return Layers([quoted(row[0]) for row in table("Layers")])


@cache
def public_names() -> dict[str, set[str]]:
    """The names that each public module exports."""
    public = {name for row in table("Public modules") for name in quoted(row[0])}
    return {source.module: exported(source) for source in sources() if source.module in public}


@cache
def homes() -> dict[str, dict[str, Home]]:
    """Of each package with a stub the names that it exports."""
    stubs = {source.module: ROOT / f"{source.path}i" for source in sources()}
    return {
        package: exported_names(stub.read_text(encoding="utf-8"))
        for package, stub in stubs.items()
        if stub.exists()
    }


def spared(rule: str) -> set[str]:
    """The modules that the page exempts from a rule."""
    return {name for row in table("Exceptions") if row[0] == rule for name in quoted(row[1])}


def holds(rule: Rule, *, among: Iterable[str] = PACKAGES, sparing: str = "") -> None:
    """Fail with the findings of a rule, and with the exceptions that it does not need."""
    exempt = spared(sparing) if sparing else set()
    findings, unneeded = [], set(exempt)
    for source in sources():
        if any(under(source.module, package) for package in among):
            breaches = rule(source)
            if source.module in exempt and breaches:
                unneeded.discard(source.module)
            elif breaches:
                findings += breaches
    findings += [f"docs/architecture.md: {module} needs no exception" for module in unneeded]
    if findings:
        pytest.fail("\n".join(findings), pytrace=False)


def bad(text: str, module: str = "streammetrics.core.thing", path: str = "") -> Source:
    """A small source that breaks a rule."""
    return Source(module, path or module.replace(".", "/") + ".py", text)


# -- imports -----------------------------------------------------------------------------------


def test_imports_point_down_only() -> None:
    modules = {source.module for source in sources()}
    holds(lambda source: rules.upward_imports(source, layers(), modules, homes()))


def test_an_import_that_points_up_or_sideways_is_found() -> None:
    modules = {"streammetrics", "streammetrics.results"}
    for module, text in (
        ("streammetrics.core.thing", "from streammetrics.kernels.curves.area import twice_u"),
        ("streammetrics.core.thing", "def f():\n    import streammetrics.kernels.curves.area"),
        ("streammetrics.kernels.thing", "from streammetrics import results"),
        ("streammetrics.results.thing", "from streammetrics import load"),
        ("streammetrics.ranking.thing", "from streammetrics.classification import Ratio"),
        ("streammetrics.classification.thing", "from ..ranking import RankingMetrics"),
        ("streammetrics.combine.thing", "import streammetrics_consumers.config.config"),
        ("streammetrics.nowhere.thing", ""),
        ("streammetrics.combine.thing", "import streammetrics.nowhere"),
        ("streammetrics.core.parts.thing", "from streammetrics.core.declared import Declared"),
        ("streammetrics.core.nowhere", ""),
        ("streammetrics.kernels.thing", "from streammetrics.authoring import ratio"),
        ("streammetrics.policies.thing", "from streammetrics.authoring import Measure"),
        ("streammetrics.core.codec", "from streammetrics.core import Units"),
    ):
        assert rules.upward_imports(bad(text, module), layers(), modules, homes()), (module, text)
    source = bad(
        "from streammetrics.core.errors import StateError\nfrom streammetrics.kernels import area",
        "streammetrics.classification.thing",
    )
    assert not rules.upward_imports(
        source, layers(), {"streammetrics.kernels.curves.area"}, homes()
    )


@pytest.mark.parametrize(
    ("package", "refused"),
    [
        ("model", "streammetrics_consumers(?!\\.model)"),  # of no other part of the shell
        ("config", "streammetrics_consumers\\.events"),  # of those who read it
    ],
)
def test_a_package_that_all_share_knows_nothing_of_others(package: str, refused: str) -> None:
    inside = [
        source for source in sources() if under(source.module, f"streammetrics_consumers.{package}")
    ]
    imported = {entry.module for source in inside for entry in source.imports}
    assert inside
    assert not [name for name in imported if re.match(refused, name)]


def test_no_modules_of_the_shell_or_of_the_kernels_import_each_other_in_a_circle() -> None:
    for package in ("streammetrics_consumers", "streammetrics.kernels"):
        members = [source for source in sources() if under(source.module, package)]
        assert members and not rules.circle(members), package
    first = bad("from consumers.one import other", "consumers.other")
    second = bad("if TYPE_CHECKING:\n    from consumers import other", "consumers.one")
    assert sorted(set(rules.circle([first, second]))) == ["consumers.one", "consumers.other"]


def outside() -> dict[str, list[str]]:
    """Each third-party package with the modules that may import it."""
    rows = table("Packages from outside")
    return {package: quoted(row[1]) for row in rows for package in quoted(row[0])}


def engines() -> list[list[str]]:
    """The third-party engines; one may be several packages."""
    return [quoted(row[0]) for row in table("Packages from outside") if row[2] == "yes"]


def test_third_party_packages_are_imported_only_where_the_page_says() -> None:
    holds(lambda source: rules.outside_imports(source, outside(), PACKAGES))


def test_kafka_is_imported_in_its_package_only() -> None:
    package = "streammetrics_consumers.sources.kafka."
    assert all(module.startswith(package) for module in outside()["kafka"])
    elsewhere = bad(
        "def f():\n    from kafka.errors import KafkaError",
        "streammetrics_consumers.process.service",
    )
    assert rules.outside_imports(elsewhere, outside(), PACKAGES)


def test_a_file_uses_at_most_one_third_party_engine() -> None:
    holds(lambda source: rules.several_engines(source, engines()))
    assert rules.several_engines(bad("import kafka\nimport sqlalchemy.orm"), engines())
    assert not rules.several_engines(bad("import starlette\nimport uvicorn"), engines())


def test_the_library_loads_only_numpy_and_sortedcontainers() -> None:
    script = (
        "import sys\nsys.path.insert(0, sys.argv[1])\n"
        "before = set(sys.modules)\nimport streammetrics\n"
        "assert 'numpy' not in sys.modules\nfrom streammetrics import *\n"
        "print(*{name.partition('.')[0] for name in set(sys.modules) - before})"
    )
    command = [sys.executable, "-I", "-c", script, str(ROOT)]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    loaded = set(out.split()) - STANDARD_LIBRARY
    assert "numpy" in loaded
    assert loaded <= {"streammetrics", "numpy", "sortedcontainers"}


def test_consumers_use_public_names_of_the_library_only() -> None:
    assert public_names()["streammetrics"], "streammetrics exports nothing"
    among = ("streammetrics_consumers", "benchmarks")
    # A simulation of many looks at once calls the formulas that a comparison calls.
    formulas = {
        "streammetrics.kernels.inference.pooled_variance": {
            *("EXPECTED", "SKEWNESS", "difference_variance", "expected_counts"),
            *("CLASS_ROWS", "RowsAndUsers", "effective_number", "harmonic_number"),
            "skewness_number_of_sums",
        },
        "streammetrics.kernels.inference.dirichlet_multinomial": {
            "Successes",
            "log_e_of_successes",
        },
        "streammetrics.kernels.inference.t_interval": {"critical", "welch_df"},
    }
    public, coverage = public_names(), {**public_names(), **formulas}

    def used(source: Source) -> Iterable[str]:
        allowed = coverage if source.module.startswith("benchmarks.coverage.") else public
        return rules.not_public(source, "streammetrics", allowed)

    holds(used, among=among)


def test_a_use_of_a_private_name_is_found() -> None:
    public = {"streammetrics": {"Ratio", "load"}, "streammetrics.registry": {"metric"}}
    for text in (
        "from streammetrics.core.parts.part import Counts",
        "from streammetrics import _private",
        "from streammetrics import Unheard",
        "from streammetrics.registry import _PACKAGES",
        "import streammetrics.core.codec",
        "import streammetrics\nstreammetrics._private",
        "import streammetrics as sm\nsm.core.codec.Writer()",
        "from streammetrics import registry\nregistry._PACKAGES",
        "def f(state):\n    return state._mass",
        "def f(made):\n    return made()._mass",
        "def f(self):\n    return self()._mass",
    ):
        source = bad(text, "consumers.thing")
        assert rules.not_public(source, "streammetrics", public), text
    text = (
        "import streammetrics as sm\nfrom streammetrics import Ratio, registry\n"
        "sm.load(b'')\nregistry.metric('Ratio')\nsm.registry.metric('Ratio')\n"
        "self._mine\nsuper()._mine()"
    )
    assert not rules.not_public(bad(text, "consumers.thing"), "streammetrics", public)


# -- files -------------------------------------------------------------------------------------


def test_no_file_has_more_than_500_lines() -> None:
    holds(lambda source: rules.too_long(source, LINES), among=WITH_TESTS)
    assert rules.too_long(bad("\n" * (LINES + 1)), LINES)
    assert not rules.too_long(bad("\n" * LINES), LINES)


def test_no_file_is_called_utils_or_the_like() -> None:
    holds(rules.vague_name)
    assert rules.vague_name(bad("", "consumers.utils"))
    assert rules.vague_name(bad("", "consumers.kafka_helpers"))
    assert not rules.vague_name(bad("", "streammetrics.core.codec"))


# -- what code may do --------------------------------------------------------------------------


def test_metaprogramming_is_in_four_files_of_at_most_250_lines() -> None:
    holds(rules.metaprogramming, sparing="metaprogramming")
    exempt_sources = [source for source in sources() if source.module in spared("metaprogramming")]
    assert [source.module for source in exempt_sources] == [
        "streammetrics.combine.user_groups_result",
        "streammetrics.core.batch",
        "streammetrics.core.bounded",
        "streammetrics.core.declared",
    ]
    assert not any(rules.too_long(source, META_LINES) for source in exempt_sources)


def test_no_float_function_whose_last_bits_depend_on_the_processor_feeds_a_state() -> None:
    parts = ("core", "kernels", "classification", "distributions", "policies", "ranking")
    among = [f"streammetrics.{part}" for part in parts]
    holds(rules.float_functions, among=among, sparing="float functions")


def test_the_clock_is_an_argument_below_the_service() -> None:
    among = ("streammetrics", "streammetrics_consumers")
    holds(rules.clock_reads, among=among, sparing="clock")


def test_nothing_runs_what_came_as_data() -> None:
    holds(rules.unsafe_code, sparing="unsafe code")


def test_no_public_signature_says_any() -> None:
    holds(
        rules.any_in_signatures, among=("streammetrics", "streammetrics_consumers"), sparing="any"
    )


FORBIDDEN = {
    rules.metaprogramming: (
        "class A:\n    def __init_subclass__(cls): ...",
        "class A(metaclass=M): ...",
        "setattr(a, 'b', 1)",
        "@dataclass_transform()\nclass A: ...",
        "A = type('A', (), {})",
        "import dataclasses\nA = dataclasses.make_dataclass('A', [])",
        "def __getattr__(name): ...",
    ),
    rules.float_functions: (
        "import numpy as np\nnp.log(a)",
        "import numpy as np\nnp.add(a, np.exp2(b))",
        "import math\nmath.pow(a, b)",
        "from math import log2",
        "from numpy.linalg import norm",
        "import numpy as np\nnp.linalg.norm(a)",
        "a @ b",
        "a @= b",
        "a.dot(b)",
        "a ** 0.5",
        "2.0 ** a",
        "a **= -0.5",
    ),
    rules.clock_reads: (
        "import time\ntime.time()",
        "import time as t\nfrom time import monotonic",
        "from datetime import datetime\ndatetime.now(UTC)",
        "import datetime\ndatetime.datetime.now(UTC)",
        "import datetime\ndatetime.date.today()",
        "def f(clock=time.time): ...",
    ),
    rules.unsafe_code: (
        "import pickle",
        "from marshal import loads",
        "eval(text)",
        "exec(text)",
        "np.load(path, allow_pickle=True)",
    ),
    rules.any_in_signatures: (
        "def f(a: Any) -> None: ...",
        "def f() -> dict[str, Any]: ...",
        "def f(*args: typing.Any) -> None: ...",
        "def f(a: 'list[Any]') -> None: ...",
        "class A:\n    def f(self, *, a: Any) -> None: ...",
        "class A:\n    field: Any",
        "async def f(**more: Any) -> None: ...",
    ),
}
ALLOWED = {
    rules.float_functions: (
        "import math\nimport numpy as np\nnp.sqrt(a) / b\nmath.ldexp(a, b)\n2.0**-24\nk**2",
    ),
    rules.any_in_signatures: ("def _f(a: Any) -> None: ...\nclass _A:\n    b: Any",),
}


@pytest.mark.parametrize("rule", FORBIDDEN)
def test_a_rule_finds_all_that_it_forbids_and_nothing_else(rule: Rule) -> None:
    for text in FORBIDDEN[rule]:
        assert rule(bad(text)), text
    for text in ALLOWED.get(rule, ()):
        assert not rule(bad(text)), text
