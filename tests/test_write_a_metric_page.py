"""What docs/write_a_metric.md builds, outside of the repository, works as the page says."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.own_package import BLOCKS, FILES, run, written
from tests.requirements import ROOT

SCRIPTS = [text for kind, text in BLOCKS if kind == "python" and ">>>" in text]
COMMANDS = [text for kind, text in BLOCKS if kind == "bash"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the page, and the package that they make, as `pip install .` leaves it."""
    return written(tmp_path_factory.mktemp("own_package"))


def test_each_file_of_the_page_has_fewer_than_70_lines() -> None:
    modules = {name: text for name, text in FILES.items() if name.endswith(".py")}
    assert len(modules) == 2
    assert max(text.count("\n") for text in modules.values()) < 70


@pytest.mark.parametrize("text", SCRIPTS)
def test_a_program_of_the_page_prints_what_it_says(folder: Path, text: str) -> None:
    (folder / "program.txt").write_text(text, encoding="utf-8")
    run(folder, f"{sys.executable} -m doctest program.txt")


# What the package of the page can be asked, without a line more in it.
ASKED = """
import numpy as np
from my_package.scroll_depth import ScrollDepth
from streammetrics import Moments, Paired, UserGroups, compare
from streammetrics.experiments import ConfidenceSequence, Experiment, Horizon, Plan
from streammetrics.results import views_of


def near(interval, other):
    bounds = [(one.lower, one.upper) for one in (interval, other)]
    assert interval.method == other.method
    assert np.allclose(*bounds, rtol=1e-9, atol=0)


draws = np.random.default_rng(7)
a = draws.random((400, 5))
b = np.clip(a + draws.normal(0.02, 0.05, a.shape), 0, 1)
depths, differences = (a.ravel(), b.ravel()), (b - a).ravel()
reads = (b >= 0.9).astype(float).ravel() - (a >= 0.9).ravel()
arms = ScrollDepth(), ScrollDepth()
values = Moments(), Moments()
for arm, plain, given in zip(arms, values, depths, strict=True):
    arm.update(depths=given)
    plain.update(given)

# Each view has the interval of its kind.
result = arms[0].compute()
assert list(views_of(result)) == ["mean", "read"]
near(result.interval("mean"), values[0].compute().interval("mean"))
assert result.interval("read").method == "wilson"

# Two arms are compared as a mean and as a rate.
means, rates = (compare(*arms, view=view) for view in ("mean", "read"))
plain = compare(*values, view="mean")
assert (means.kind, means.method, rates.kind, rates.method) == ("mean", "welch", "rate", "newcombe")
assert abs(means.pvalue / plain.pvalue - 1) < 1e-9

# Two versions on the same rows are compared by the differences of rows.
paired = Paired(ScrollDepth(), columns="depths")
paired.update(depths_a=depths[1], depths_b=depths[0])
both = paired.compute()
for view, each in ("mean", differences), ("read", reads):
    error = each.std(ddof=1) / np.sqrt(each.size)
    assert abs(both.error_of(view).variance ** 0.5 / error - 1) < 1e-9, view
    assert both.interval(view).method == "t"
test = both.mcnemar("read")
assert (test.only_a, test.only_b) == ((reads > 0).sum(), (reads < 0).sum())
assert Paired.from_bytes(paired.to_bytes()) == paired

# Rows of users are not independent.
users = UserGroups(ScrollDepth()), UserGroups(Moments())
groups = np.repeat(np.arange(400), 5)
users[0].update(groups=groups, depths=np.repeat(a[:, 0], 5))
users[1].update(groups=groups, values=np.repeat(a[:, 0], 5))
clustered, plain = (state.compute().interval("mean") for state in users)
near(clustered, plain)
assert clustered.deff > 3
assert users[0].compute().interval("read").method == "jackknife, wilson"

# Both views are watched at all looks.
for view in ("mean", "read"):
    sequence, fixed = ConfidenceSequence(v_opt=500.0).of(arms[0], view), result.interval(view)
    assert sequence.lower < fixed.lower < fixed.upper < sequence.upper, view
    name, horizon = f"depth.{view}", Horizon(mde=0.02)
    plan = Plan(control="old", variants=("old", "new"), decision=(name,), horizon=horizon)
    states = {"old": {"depth": arms[0]}, "new": {"depth": arms[1]}}
    (contrast,) = Experiment(plan, states).contrasts()
    assert contrast.anytime.lower < contrast.comparison.effect_size < contrast.anytime.upper, view

# It is drawn, with its interval.
[drawn] = result.plot().to_dict()["data"]["values"]
assert (drawn["name"], drawn["lower"]) == ("mean", result.interval("mean").lower)
"""


def test_views_with_estimators_are_compared_paired_clustered_watched_and_drawn(
    folder: Path,
) -> None:
    (folder / "asked.py").write_text(ASKED, encoding="utf-8")
    run(folder, f"{sys.executable} asked.py")


# The page's own tests try as many examples as one does at home; here a few show that they run.
FEW = """
from streammetrics import testing
testing.check_laws.__kwdefaults__["examples"] = 3
"""


def test_the_laws_of_the_page_hold(folder: Path) -> None:
    commands = [text.split() for text in COMMANDS if "pytest" in text]
    assert [words[0] for words in commands] == ["pytest", "pytest"]
    (folder / "conftest.py").write_text(FEW, encoding="utf-8")
    files = " ".join(name for _, *names in commands for name in names)
    # hypothesis has read the constants of the library there; to do so again takes seconds.
    read = f"HYPOTHESIS_STORAGE_DIRECTORY='{ROOT / '.hypothesis'}'"
    output = run(folder, f"{read} {sys.executable} -m pytest {files} -q -p no:cacheprovider")
    assert "2 passed" in output


def test_the_log_of_the_page_has_the_results_that_it_says(folder: Path) -> None:
    (command,) = [text for text in COMMANDS if "streammetrics" in text]
    (results,) = [text for kind, text in BLOCKS if kind == "text"]
    lines = [line.rstrip() for line in run(folder, command).splitlines()]
    assert lines == results.splitlines()
    run(folder, "streammetrics verify visits.toml")
    # The name of the entry point is the same metric: nothing that was counted differs.
    config = FILES["visits.toml"].replace("my_package.scroll_depth:", "")
    assert config != FILES["visits.toml"]
    (folder / "named.toml").write_text(config, encoding="utf-8")
    run(folder, "streammetrics run named.toml --until-end --no-serve")

    # Without them a store says what is missing, and its bytes import nothing.
    with pytest.raises(AssertionError, match=r"got 'my-package\.scroll-depth/1'; import"):
        run(folder, "PYTHONPATH= streammetrics results visits.sqlite")
