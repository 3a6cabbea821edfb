from __future__ import annotations

import contextlib
import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streammetrics.core.errors import SettingsError
from streammetrics.ranking.measures import (
    DCG,
    HR,
    MEASURES,
    MRR,
    NDCG,
    Measure,
    measures_of,
    parse_measure,
)

PRINTED = {
    NDCG: "NDCG",
    NDCG @ 10: "NDCG@10",
    NDCG(gain="linear"): 'NDCG(gain="linear")',
    NDCG(gain="linear") @ 5: 'NDCG(gain="linear")@5',
    NDCG(gain="exponential") @ 5: "NDCG@5",
    DCG @ 1: "DCG@1",
    MRR(rel=2) @ 3: "MRR(rel=2)@3",
    HR @ 999_999_999: "HR@999999999",
}

measures = st.one_of(
    st.builds(lambda m, g: m(gain=g), st.sampled_from([NDCG, DCG]), st.sampled_from(
        ["exponential", "linear"])),
    st.builds(lambda m, rel: m(rel=rel), st.sampled_from([MRR, HR]), st.integers(1, 15)),
)  # fmt: skip
cut = st.builds(lambda m, k: m if k is None else m @ k, measures, st.none() | st.integers(1, 10**6))


@pytest.mark.parametrize(("measure", "text"), PRINTED.items())
def test_a_measure_prints_as_it_is_written(measure: Measure, text: str) -> None:
    assert str(measure) == repr(measure) == text


@given(cut)
def test_what_a_measure_prints_parses_back(measure: Measure) -> None:
    assert parse_measure(str(measure)) == measure


@pytest.mark.parametrize(
    "text", [' NDCG ( gain = "linear" ) @ 5 ', "NDCG(gain='linear')@5", '\tNDCG(gain="linear" )@05']
)
def test_spaces_and_kinds_of_quotes_do_not_matter(text: str) -> None:
    assert parse_measure(text) == NDCG(gain="linear") @ 5


def test_empty_parentheses_are_no_parameters() -> None:
    assert parse_measure("MRR()@3") == MRR @ 3


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "measure"),
        ("NDCG@0", "cut from 1"),
        ("NDCG@-1", "measure such as"),
        ("NDCG@1.5", "measure such as"),
        ("NDCG@1000000000", "measure such as"),
        ("NDCG@10@10", "measure such as"),
        ("NDCG@", "measure such as"),
        ("N DCG@10", "measure such as"),
        ("NDCG@1 0", "measure such as"),
        ("NDCG@١", "measure such as"),
        ("ndcg@10", "one of NDCG"),
        ("nonsense", "one of NDCG"),
        ("NDCG(gain=linear)", "name=value"),
        ('NDCG(gain="linear",gain="linear")', "each name once"),
        ('NDCG(gain="linear",)', "name=value"),
        ('NDCG(gain="cubic")', '"exponential" or "linear"'),
        ("NDCG(gain=1)", '"exponential" or "linear"'),
        ("NDCG(rel=1)", "a parameter of NDCG"),
        ("MRR(rel=0)", "grade from 1 to 15"),
        ("MRR(rel=16)", "grade from 1 to 15"),
        ("MRR(rel=1.0)", "grade from 1 to 15"),
        ("MRR(cut=3)", "a parameter of MRR"),
        ("MRR(name=3)", "a parameter of MRR"),
        ("NDCG(gain=__import__('os'))", "measure such as"),
        ("__import__('os')@1", "measure such as"),
        ("NDCG" + " " * 10**6 + "@10", "measure such as"),
        ("(" * 10**6, "measure such as"),
    ],
)
def test_other_text_is_refused_with_what_was_expected(text: str, part: str) -> None:
    with pytest.raises(SettingsError, match="expected") as raised:
        parse_measure(text)
    assert part in raised.value.expected or part in raised.value.where
    assert len(str(raised.value)) < 500


@given(st.text(max_size=300))
def test_no_text_does_more_than_parse_or_refuse(text: str) -> None:
    with contextlib.suppress(SettingsError):
        assert isinstance(parse_measure(text), Measure)


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


@pytest.mark.parametrize("rel", [0, 16, 1.0, True, "1", None])
def test_a_grade_from_which_on_items_are_relevant_is_from_1_to_15(rel: object) -> None:
    with pytest.raises(SettingsError, match="a grade from 1 to 15"):
        MRR(rel=rel)  # type: ignore[arg-type]


def test_a_gain_that_is_no_text_is_refused() -> None:
    with pytest.raises(SettingsError, match="linear"):
        NDCG(gain=["linear"])  # type: ignore[arg-type]


def test_measures_are_values() -> None:
    assert NDCG @ 10 == NDCG @ 10 != NDCG @ 5
    assert NDCG @ 10 != DCG @ 10
    assert {NDCG @ 10: 1}[parse_measure("NDCG@10")] == 1
    with pytest.raises(AttributeError):
        (NDCG @ 10).cut = 3  # type: ignore[misc]
    for measure in PRINTED:
        assert pickle.loads(pickle.dumps(measure)) == copy.copy(measure) == measure


def test_setting_a_parameter_leaves_the_measure_as_it_was() -> None:
    NDCG(gain="linear")
    assert str(NDCG) == "NDCG"


def test_parameters_may_be_set_after_the_cut() -> None:
    assert (NDCG @ 5)(gain="linear") == NDCG(gain="linear") @ 5


def test_every_name_is_that_of_its_measure() -> None:
    assert {name: str(measure) for name, measure in MEASURES.items()} == {n: n for n in MEASURES}


def test_several_measures_may_be_values_and_texts() -> None:
    assert measures_of([NDCG @ 10, "MRR@10"]) == (NDCG @ 10, MRR @ 10)
    assert measures_of("HR@3") == measures_of(HR @ 3) == (HR @ 3,)


@pytest.mark.parametrize("given", [[], ["NDCG@5", "NDCG @ 5"], 5, [5], [None], ["NDCG,MRR"]])
def test_none_twice_and_others_are_refused(given: object) -> None:
    with pytest.raises(SettingsError):
        measures_of(given)  # type: ignore[arg-type]
