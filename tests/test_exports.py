"""Public names are imported when they are first used, and are all there."""

from __future__ import annotations

import ast
import builtins
import pickle
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import streammetrics
from docs import metrics_page, usual_names
from streammetrics import HistogramAUC, PerKey, Ratio
from streammetrics.exports import Home, bare_name, exported_names
from tests.python_source import sources_of
from tests.requirements import ROOT

PACKAGES = sorted(
    ".".join(path.parent.relative_to(ROOT).parts)
    for path in ROOT.glob("streammetrics/**/__init__.pyi")
)


def stub(package: str) -> Path:
    return ROOT / package.replace(".", "/") / "__init__.pyi"


def homes_of(package: str) -> dict[str, Home]:
    return exported_names(stub(package).read_text(encoding="utf-8"))


def fresh(code: str) -> str:
    """The output of a new process."""
    command = [sys.executable, "-c", code]
    run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert run.returncode == 0, run.stderr
    return run.stdout


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_gives_the_names_of_its_stub_and_no_others(package: str) -> None:
    module, homes = import_module(package), homes_of(package)
    public = [name for name in module.__all__ if name != "__version__"]
    assert public == sorted(homes.keys() - {*dir(builtins)}) and homes.keys() <= set(dir(module))
    for name, home in homes.items():
        assert getattr(module, name) is getattr(import_module(home.module), home.name), name
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'Unheard'"):
        module.Unheard  # noqa: B018


def test_a_star_import_replaces_no_builtin() -> None:
    code = "import builtins\nfrom streammetrics import *\nimport streammetrics\n"
    code += "print(Ratio is streammetrics.Ratio, open is builtins.open is not streammetrics.open)"
    assert fresh(code) == "True True\n"


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("LogLoss", "log loss is Calibration().compute().log_loss"),
        ("ECE", "ECE is Calibration().compute().ece"),
        ("MAP", "MAP is the measure AP, as in RankingMetrics([AP])"),
        ("HitRate", "hit rate is the measure HR, as in RankingMetrics([HR])"),
        ("RMSE", "RMSE is Regression().compute().rmse"),
        ("AUC", "AUC is HistogramAUC().compute().auc or ExactAUC().compute().auc"),
        ("roc_auc_score", "for roc_auc_score see HistogramAUC().compute().auc"),
        ("HistogramAuc", "did you mean 'HistogramAUC'?"),
        ("LogLos", "log loss is Calibration().compute().log_loss"),
        ("Experiment", "it is in streammetrics.experiments: from streammetrics.experiments import"),
        ("Plan", "it is in streammetrics.experiments: from streammetrics.experiments import Plan"),
    ],
)
def test_a_name_of_another_library_is_answered_with_ours(name: str, answer: str) -> None:
    text = f"module 'streammetrics' has no attribute '{name}'; {answer}"
    with pytest.raises(AttributeError) as missing:
        getattr(streammetrics, name)
    assert str(missing.value).startswith(text)
    assert not hasattr(streammetrics, name) and getattr(streammetrics, name, 3) == 3
    assert __import__("streammetrics", fromlist=["x"]) is streammetrics  # an old idiom
    imported = fresh(
        f"try:\n    from streammetrics import Ratio, {name}\n"
        "except ImportError as error:\n    print(error)"
    )
    assert imported.startswith(text)


def test_each_of_those_answers_is_a_name_of_the_library() -> None:
    """What stands before the dots of an answer is exported, and its view is one of its result."""
    lines = usual_names.LIST.read_text(encoding="utf-8").splitlines()
    assert len(lines) > 400 and lines == sorted(lines)
    for line in lines:
        key, _, answer = line.partition("\t")
        assert key == bare_name(key) and key not in map(bare_name, streammetrics.__all__), key
        for name, view in re.findall(
            r"\b([A-Z]\w+)\((?:\.\.\.)?\)(?:\.compute\(\))?\.(\w+)", answer
        ):
            metric = getattr(streammetrics, name)
            kinds = (
                metric,
                *(metrics_page.results_of(metric) if hasattr(metric, "compute") else ()),
            )
            fields = [{*dir(kind), *getattr(kind, "__dataclass_fields__", ())} for kind in kinds]
            assert any(view in names for names in fields), line


def test_the_list_of_usual_names_is_that_of_the_page_and_is_read_when_a_name_fails() -> None:
    text = usual_names.PAGE.read_text(encoding="utf-8")
    assert "".join(usual_names.lines_of(text)) == usual_names.LIST.read_text(encoding="utf-8")
    opened = fresh(
        "import sys\nopened = []\n"
        "sys.addaudithook(lambda event, args: event == 'open' and opened.append(str(args[0])))\n"
        "import streammetrics\nfrom streammetrics import Ratio\n"
        "hasattr(streammetrics, '_private')\nhasattr(streammetrics, '__wrapped__')\n"
        "print(*(path for path in opened if 'usual_names' in path))\n"
        "hasattr(streammetrics, 'LogLoss')\n"
        "print(sum('usual_names' in path for path in opened))"
    )
    assert opened == "\n1\n"


@pytest.mark.parametrize("package", PACKAGES)
def test_each_line_of_a_stub_exports_a_name(package: str) -> None:
    """A type checker takes `from a import B` in a stub for private."""
    tree = ast.parse(stub(package).read_text(encoding="utf-8"))
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    homes = {
        name: Home(node.module or "", name if alias.name == "*" else alias.name)
        for node in imports
        for alias in node.names
        for name in (homes_of(node.module or "") if alias.name == "*" else [alias.asname or ""])
    }
    for line in tree.body:
        if isinstance(line, ast.Assign):
            homes[ast.unparse(line.targets[0])] = homes.pop(ast.unparse(line.value))
    assert homes == homes_of(package)


def test_a_name_of_another_name_is_that_of_the_stub() -> None:
    from streammetrics.authoring import Result
    from streammetrics.results.has_intervals import HasIntervals

    assert Result is HasIntervals


@pytest.mark.parametrize("package", PACKAGES)
def test_no_name_is_that_of_a_module_which_would_replace_it(package: str) -> None:
    modules = {path.stem for path in stub(package).parent.iterdir() if path.suffix in ("", ".py")}
    assert not modules & homes_of(package).keys()


WITHIN = ("streammetrics.core", "streammetrics.kernels.curves", "streammetrics.kernels.ranking")


@pytest.mark.parametrize("package", WITHIN)
def test_a_package_that_only_the_library_imports_exports_nothing_else(package: str) -> None:
    imported = {
        entry.name
        for source in sources_of("streammetrics")
        for entry in source.imports
        if entry.module == package
    }
    assert homes_of(package).keys() <= imported


def test_a_metric_loads_the_modules_of_no_other() -> None:
    loaded = fresh(
        f"import sys\nfrom streammetrics import load\nload({Ratio().to_bytes()!r})\n"
        "import streammetrics.registry\nstreammetrics.registry.metric_type('Ratio')\n"
        "print(*(m for m in sys.modules if m.startswith('streammetrics.')))"
    ).split()
    assert "streammetrics.classification.ratio" in loaded
    for module in (
        "classification.exact_auc",
        "experiments.plan",
        "ranking.measures",
        "evaluation",
    ):
        assert f"streammetrics.{module}" not in loaded


def test_the_first_metric_loads_nothing_for_columns_views_or_states_that_it_does_not_have() -> None:
    loaded = fresh(
        "import sys\nfrom streammetrics import HistogramAUC\nHistogramAUC()\nprint(*sys.modules)"
    ).split()
    assert "streammetrics.kernels.inference.tails" in loaded and "statistics" not in loaded
    for module in (
        *("core.expressions", "core.multiset.bag", "present.row_table", "present.value_columns"),
        *("kernels.inference.dirichlet_multinomial", "kernels.inference.quantile_ranks"),
    ):
        assert f"streammetrics.{module}" not in loaded


def test_a_state_of_a_metric_that_was_not_used_is_read_and_unpickled() -> None:
    state = PerKey(HistogramAUC())
    state.update(keys=[1, 2], labels=[0, 1], scores=[0.25, 0.5])
    data = state.to_bytes()
    for code in (
        f"from streammetrics import load; print(load({data!r}).digest())",
        f"from streammetrics import Accumulator; print(Accumulator.from_bytes({data!r}).digest())",
        f"import pickle; print(pickle.loads({pickle.dumps(state)!r}).digest())",
    ):
        assert fresh(code) == f"{state.digest()}\n", code


def test_a_schema_of_ours_is_taken_before_its_metric_is_used() -> None:
    output = fresh(
        "from streammetrics.authoring import Accumulator, Counts, SettingsError\ntry:\n"
        "    class Mine(Accumulator, schema='ratio/2'):\n        rows = Counts()\n"
        "except SettingsError as error:\n    print(error)\n"
    )
    assert "that of streammetrics.classification.ratio.Ratio" in output
