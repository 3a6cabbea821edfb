"""Each broken metric is caught, by the law that it breaks and by no law that it keeps."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from fractions import Fraction
from random import Random
from typing import Any

import pytest
from hypothesis import strategies as st

from streammetrics.core.accumulator import Accumulator
from streammetrics.testing import LAWS, Case, broken_laws, check_laws, strategies
from tests.laws import mutants
from tests.laws.clicks import Clicks

# Where several laws are named, the fault breaks each of them whatever the metric.
BROKEN: dict[type[Accumulator], set[str]] = {
    mutants.FloatTotals: {"monoid", "sharding", "readable"},
    mutants.Float32Counter: {"monoid"},
    mutants.KeepsTheCallersArrays: {"operands_kept", "pending_rows"},
    mutants.SortsTheCallersArrays: {"operands_kept"},
    mutants.ChangesBeforeItChecks: {"atomic"},
    mutants.TakesNaN: {"atomic"},
    mutants.SaysNothingToDo: {"atomic"},
    mutants.KeepsTheLastRow: {"monoid", "sharding"},
    mutants.WritesADictInItsOrder: {"monoid", "sharding"},
    mutants.ForgetsLabelsInBytes: {"canonical"},
    mutants.ReadsAnything: {"canonical"},
    mutants.CountsItsReaders: {"pure", "sharding"},
    mutants.GivesItsOwnArrays: {"pure"},
    mutants.WarnsWhenEmpty: {"pure"},
    mutants.ZeroForUndefined: {"bound"},
    mutants.Confident: {"bound"},
    mutants.RoundsTwice: {"bound"},
    mutants.EmptiesItsArgument: {"monoid", "operands_kept", "canonical"},
    mutants.SharesItsArgument: {"monoid", "operands_kept"},
    mutants.IgnoresItself: {"monoid"},
    mutants.IgnoresSettings: {"settings_differ"},
    mutants.BeginsWithAPrior: {"monoid", "sharding", "canonical", "pending_rows", "pure"},
    mutants.NormalisesEachBatch: {"sharding"},
    mutants.ForgetsPendingRows: {"pending_rows"},
    mutants.RemembersItsResult: {"pure", "sharding"},
    mutants.KnowsItsLastBatch: {"intervals"},
    mutants.DividesByItsRows: {"intervals"},
    mutants.CallsItselfASet: {"idempotence"},
    mutants.RefusesWhatItMerged: {"readable"},
}
WITH_ORACLE = {"bound"}


def row(random: Random) -> tuple[int, float]:
    """A label, and a score that is a tie as often as not."""
    score = random.choice((0.0, 0.25, 0.5, 1.0)) if random.random() < 0.5 else random.random()
    return random.randrange(2), score


# Drawn here, not by hypothesis: its draws change with its version and with Python's, and few rows
# show some of these faults.
ROWS = [[row(random) for _ in range(n)] for n in range(0, 31, 2) for random in [Random(n)]]


def case_of(kind: type[Accumulator], *, oracle: bool) -> Case[Any]:
    settings: list[dict[str, Any]] = [{"step": 2}] if kind().settings() else []
    return Case(
        kind(),
        st.tuples(strategies.labels(), strategies.probabilities()),
        strategies.columns("labels", "scores"),
        refused=(
            {"labels": [0, 2], "scores": [0.5, 0.5]},
            {"labels": [0, 1], "scores": [0.5, float("nan")]},
        ),
        others=[kind(**options) for options in settings],
        oracle=share if oracle else None,
    )


def share(rows: Sequence[Any]) -> dict[str, Any]:
    n, positives = len(rows), sum(label for label, _ in rows)
    return {"rows": n, "positives": positives, "rate": Fraction(positives, n) if n else None}


def broken(kind: type[Accumulator], *, oracle: bool) -> set[str]:
    case = case_of(kind, oracle=oracle)
    names = set[str]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a law that wants silence asks for it itself
        for seed, rows in enumerate(ROWS):
            for law in LAWS:
                try:
                    law(case, rows, Random(seed))
                except Exception:
                    names.add(law.__name__)
    return names


def test_a_sound_metric_breaks_no_law() -> None:
    check_laws(case_of(mutants.Sound, oracle=True), examples=15)
    assert broken(mutants.Sound, oracle=True) == set()


def test_hypothesis_finds_what_any_rows_break_and_says_how() -> None:
    case = case_of(mutants.ForgetsPendingRows, oracle=False)
    assert broken_laws(case, examples=5) == {
        "pending_rows": "AssertionError: compute ignores pending rows"
    }


@pytest.mark.parametrize("mutant", list(BROKEN))
def test_a_mutant_breaks_its_laws_and_no_others(mutant: type[Accumulator]) -> None:
    assert broken(mutant, oracle=BROKEN[mutant] == WITH_ORACLE) == BROKEN[mutant]


def test_every_mutant_is_listed() -> None:
    kinds = {
        kind
        for kind in vars(mutants).values()
        if isinstance(kind, type) and issubclass(kind, Clicks) and kind.schema
    }
    assert kinds - {mutants.Sound} == set(BROKEN)
