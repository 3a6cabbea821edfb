from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from streammetrics.core.errors import SettingsError
from streammetrics.ranking import (
    AP,
    CG,
    DCG,
    ERR,
    HR,
    MRR,
    NDCG,
    RBP,
    Bpref,
    Measure,
    P,
    PooledHR,
    R,
    RPrec,
)
from streammetrics.ranking.measures import MEASURES, parse_measure

EVERY = (NDCG, DCG, CG, MRR, HR, PooledHR, P, R, AP, ERR, RBP, RPrec, Bpref)
WITH_CUT = tuple(measure for measure in EVERY if measure not in (RPrec, Bpref))
WITH_REL = (MRR, HR, PooledHR, P, R, AP, RBP, RPrec, Bpref)


def test_every_measure_is_found_by_the_name_that_it_prints() -> None:
    assert {name: str(measure) for name, measure in MEASURES.items()} == {n: n for n in MEASURES}
    assert set(MEASURES.values()) == set(EVERY)
    assert len(MEASURES) == len(EVERY)


# -- cuts -------------------------------------------------------------------------------------


@pytest.mark.parametrize("measure", WITH_CUT)
def test_a_cut_makes_another_measure(measure: Measure) -> None:
    cut = measure @ 10
    assert (cut.cut, measure.cut) == (10, None)
    assert cut == measure @ 10 != measure @ 5
    assert cut != measure
    assert str(cut) == f"{measure}@10"


@pytest.mark.parametrize("cut", [0, -3, 2.5, "5", None, True, 10**9, np.float64(3)])
def test_a_cut_is_a_positive_whole_number(cut: object) -> None:
    with pytest.raises(SettingsError, match="a cut from 1"):
        NDCG @ cut  # type: ignore[operator]


def test_a_cut_of_numpy_is_a_cut() -> None:
    assert NDCG @ np.int64(10) == NDCG @ 10
    assert type((NDCG @ np.int64(10)).cut) is int


def test_a_second_cut_is_refused() -> None:
    with pytest.raises(SettingsError, match="without a second cut"):
        NDCG @ 10 @ 5


@pytest.mark.parametrize("measure", [RPrec, Bpref, RPrec(rel=2), Bpref(rel=2)])
def test_measures_that_cut_themselves_take_no_cut(measure: Measure) -> None:
    with pytest.raises(SettingsError, match="whole lists") as raised:
        measure @ 10
    assert raised.value.got == "@10"
    assert raised.value.where == str(measure)
    assert raised.value.hint


# -- parameters -------------------------------------------------------------------------------


@pytest.mark.parametrize("rel", [0, 16, 1.0, True, "1", None])
@pytest.mark.parametrize("measure", WITH_REL)
def test_a_grade_from_which_on_items_are_relevant_is_from_1_to_15(
    measure: Measure, rel: object
) -> None:
    with pytest.raises(SettingsError, match="a grade from 1 to 15") as raised:
        measure(rel=rel)  # type: ignore[arg-type]
    assert raised.value.where == f"{measure.name}.rel"
    assert measure(rel=15) != measure(rel=1) == measure


@pytest.mark.parametrize("gain", ["cubic", ["linear"], None, 1, np.array(["linear", "linear"])])
@pytest.mark.parametrize("measure", [NDCG, DCG, CG])
def test_a_gain_is_exponential_or_linear(measure: Measure, gain: object) -> None:
    with pytest.raises(SettingsError, match='"exponential" or "linear"') as raised:
        measure(gain=gain)  # type: ignore[arg-type]
    assert raised.value.where == f"{measure.name}.gain"


@pytest.mark.parametrize("denominator", ["hits", "R", None, 7, ["all"]])
def test_the_denominator_of_average_precision_is_all_or_min(denominator: object) -> None:
    with pytest.raises(SettingsError, match='"all" or "min"') as raised:
        AP(denominator=denominator)  # type: ignore[arg-type]
    assert raised.value.where == "AP.denominator"


@pytest.mark.parametrize("grade", [0, 16, 4.0, True, "4", None])
def test_the_highest_grade_is_from_1_to_15(grade: object) -> None:
    with pytest.raises(SettingsError, match="a grade from 1 to 15") as raised:
        ERR(max_grade=grade)  # type: ignore[arg-type]
    assert raised.value.where == "ERR.max_grade"


@pytest.mark.parametrize("p", [0.0, 1.0, -0.1, 1.5, float("nan"), float("inf"), 1, "0.8", None])
def test_how_likely_a_user_goes_on_is_a_number_between_0_and_1(p: object) -> None:
    with pytest.raises(SettingsError, match="below 1") as raised:
        RBP(p=p)  # type: ignore[arg-type]
    assert raised.value.where == "RBP.p"


def test_a_float_of_numpy_is_the_number_that_it_prints() -> None:
    assert RBP(p=np.float64(0.95)) == RBP(p=0.95)
    assert str(RBP(p=np.float64(0.95))) == "RBP(p=0.95)"


@pytest.mark.parametrize("measure", EVERY)
def test_a_parameter_that_a_measure_does_not_have_is_refused(measure: Measure) -> None:
    for name in ("cut", "name", "beta", "pooled", "rational"):
        with pytest.raises(SettingsError, match=f"a parameter of {measure.name} ") as raised:
            measure(**{name: 3})
        assert raised.value.got == name


def test_setting_a_parameter_leaves_the_measure_as_it_was() -> None:
    NDCG(gain="linear")
    assert str(NDCG) == "NDCG"


def test_parameters_may_be_set_after_the_cut() -> None:
    assert (NDCG @ 5)(gain="linear") == NDCG(gain="linear") @ 5
    assert (AP @ 5)(denominator="min")(rel=2) == AP(rel=2, denominator="min") @ 5


# -- values -----------------------------------------------------------------------------------


def test_measures_are_values() -> None:
    assert NDCG @ 10 == NDCG @ 10 != NDCG @ 5
    assert NDCG @ 10 != DCG @ 10
    assert {NDCG @ 10: 1}[parse_measure("NDCG@10")] == 1
    with pytest.raises(AttributeError):
        (NDCG @ 10).cut = 3  # type: ignore[misc]


@pytest.mark.parametrize("measure", EVERY)
def test_a_measure_survives_pickling_and_copying(measure: Measure) -> None:
    assert pickle.loads(pickle.dumps(measure)) == copy.copy(measure) == measure


def test_measures_of_equal_parameters_differ_by_their_kind() -> None:
    same = [measure(rel=3) @ 7 for measure in (MRR, HR, PooledHR, P, R, AP, RBP)]
    assert len(set(same)) == len(same)
