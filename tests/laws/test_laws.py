"""Every law over every public accumulator, and every small multiset of rows against its oracle.

`--hypothesis-profile=long` runs fifty times as many examples, and larger multisets.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import pytest

from streammetrics import registry
from streammetrics.testing import Case, check_exhaustively, check_laws
from tests import depth
from tests.calibration_cases import SMALL_SCORED
from tests.cases import CASES
from tests.depth import DEEP, classes_first, first_of_each_class
from tests.plain_cases import PLAIN
from tests.weighted_cases import weighted_rows
from tests.weighted_classes_cases import SMALL_ROWS

# Of the profile's examples: there are two thousand pairs of a law and a case.
EXAMPLES = depth.EXAMPLES // 10
FIRST = first_of_each_class(CASES)


@pytest.mark.parametrize("case", classes_first(CASES), ids=str)
def test_every_public_accumulator_keeps_every_law(case: Case[Any]) -> None:
    examples = EXAMPLES if case in PLAIN else EXAMPLES * 3 // 4
    if not DEEP and case not in FIRST:
        examples = EXAMPLES // 2
    check_laws(case, examples=examples, max_rows=25)


def test_every_public_accumulator_has_a_case() -> None:
    missing = set(registry.metric_types().values()) - {type(case.empty) for case in CASES}
    assert not missing, f"add a Case to tests/cases.py for {sorted(m.__name__ for m in missing)}"


def test_every_case_has_refusals_an_oracle_or_others_and_a_name_of_its_own() -> None:
    assert len({str(case) for case in CASES}) == len(CASES)
    for kind in registry.metric_types().values():
        cases = [case for case in CASES if type(case.empty) is kind]
        assert any(case.refused for case in cases), f"{kind.__name__} refuses nothing"
        assert any(case.others for case in cases), f"{kind.__name__} merges with anything"
        assert any(case.oracle for case in cases), f"{kind.__name__} has no oracle"


LISTS = [[], [(0.5, 0)], [(0.5, 1), (0.5, 0)], [(0.0, 2), (1.0, 0)], [(1.0, 1), (0.0, 2), (0.0, 0)]]


def kinds_of_rows(case: Case[Any]) -> tuple[Sequence[Any], int]:
    """The different rows to make multisets of, and how many of them at most."""
    if case.small:
        return case.small, 6 if DEEP or len(case.small) < 3 else 4
    labels: Sequence[Any] = (0, 1)
    if str(case).startswith("weighted"):
        return weighted_rows(case), 5 if DEEP else 3
    match type(case.empty).__name__, case.empty.settings():
        case "BinaryConfusion", {"positive": "yes"}:
            return list(product(("no", "yes"), (0.25, 0.5, 0.75))), 4
        case "BinaryConfusion" | "HistogramAUC" | "ExactAUC", _:
            return list(product(labels, (0.25, 0.5, 0.5 + 2**-40))), 6 if DEEP else 4
        case "GroupedAUC", {"ids": "integer"}:
            return list(product((3, -3), labels, (0.25, 0.5))), 5 if DEEP else 3
        case "GroupedAUC", _:
            return list(product(("a", "b"), labels, (0.25, 0.5))), 5 if DEEP else 3
        case "GroupedScores", {"ids": "integer"}:
            grades = (-1, 0, 2)
            of_one = list(product((3,), (0.25, 0.5), grades))
            return of_one + list(product((-3,), (0.25, 0.5), grades if DEEP else (2,))), (
                4 if DEEP else 3
            )
        case "GroupedScores", {"item_ids": kind}:
            items = (7, 8) if kind == "integer" else ("x", "y")
            return list(product(("a", "b"), (0.25, 0.5), (0, 2), items)), 4 if DEEP else 2
        case "MulticlassConfusion" | "MultilabelConfusion" | "MulticlassAUC" as name, _:
            return SMALL_ROWS.get(str(case)) or SMALL_ROWS[name]
        case "Calibration" | "Regression" as name, _:
            return SMALL_SCORED[name], 3
        case "IntraListSimilarity" | "CatalogMetrics" | "ItemExposure", _:
            return [[], [0], [0, 1], [3, 1, 2], [1, 5, 0, 4]], 4
        case _:
            return LISTS, 4


@pytest.mark.parametrize("case", classes_first([case for case in PLAIN if case.oracle]), ids=str)
def test_the_oracle_agrees_on_every_small_multiset_of_rows(case: Case[Any]) -> None:
    rows, most = kinds_of_rows(case)
    if not DEEP and case not in FIRST and most in (3, 4):
        most -= 1  # other settings of a class show in fewer rows
    assert check_exhaustively(case, rows, most) >= 28
