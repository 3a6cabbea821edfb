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
    "--ignore=tests/mutation",
    "--at-most=0.2",
)
MARKED: Final = "not kafka and not postgres and not docs"
# Tests that the report never calls needless; patterns of their ids.
KEPT: Final = (
    "*/test_worked_*",  # values that others computed
    "*real*",
    "tests/consumers/simulat*",  # any order, any crash
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
    }.items()
    for key in keys.split()
}
