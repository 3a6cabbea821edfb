"""Which test fails when the code is wrong: a small tool for mutation testing (docs/testing.md)."""

from __future__ import annotations

from typing import Final

# What is changed, unless the command names files or folders.
SOURCES: Final = (
    "streammetrics/core",
    "streammetrics/kernels",
    "consumers/streammetrics_consumers/ledger",
    "consumers/streammetrics_consumers/counting",
)
# What pytest collects, unless the command says otherwise; of that, the fast tests.
TESTS: Final = (
    "--doctest-modules",
    "streammetrics",
    "consumers",
    "tests",
    "--ignore=streammetrics/engines/spark",
    "--ignore=streammetrics/engines/beam.py",
    "--ignore=streammetrics/figures.py",
    "--ignore=tests/mutation",
)
MARKED: Final = "not kafka and not postgres and not slow"
# The core of confidence: the report never offers these tests for deletion. Patterns of test ids.
KEPT: Final = (
    "streammetrics/*",  # the examples in docstrings
    "consumers/*",
    "tests/test_*",
    "tests/laws/*",
    "tests/oracles/*",
    "tests/golden/*",
    "tests/fast_paths/*",
    "tests/interface/*",
    "tests/typing/*",
    "tests/peers/*",
    "tests/chaos/*",
    "tests/classification/test_worked_*",  # cases and worked examples that others computed
    "tests/ranking/test_worked_*",
    "tests/*real*",
    "tests/consumers/simulation/*",  # any order, any crash
    "tests/consumers/simulate/*",
    "tests/consumers/cli/*",  # end to end
)
# Mutants that no test can kill, with the reason why not: a run leaves them out. Their keys hold the
# hash of the function, so that whoever changes it is asked again.
EQUIVALENT: Final = {
    key: reason
    for reason, keys in {
        "neither part of a quotient that overflows is 0, and integers are far from it": """
            ratio#cf93d7a3:compare.1 ratio#cf93d7a3:compare.2 rounded_down#9580eb09:compare.0
            rounded_down#9580eb09:constant.0 rounded_down#9580eb09:constant.1
            """,
        "a root has ten digits more than its rounding needs": """
            over_root#e5dadbec:constant.0 over_root#e5dadbec:arithmetic.1
            over_root#e5dadbec:constant.2 over_root#e5dadbec:constant.3
            over_root#e5dadbec:arithmetic.4 over_root#e5dadbec:constant.6
            over_root#e5dadbec:constant.7
            """,
        "at the limit itself both ways are exact": """
            pairs#2e8754d6:compare.0 sum_of_counts#8004b5c2:compare.0
            """,
        "ranges further off do not overlap; to look at them takes time": """
            _unite#dcaf6614:slice.0 _unite#dcaf6614:slice.1 _unite#dcaf6614:constant.0
            _unite#dcaf6614:constant.4
            """,
    }.items()
    for key in keys.split()
}
