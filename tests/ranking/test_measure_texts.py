from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
from streammetrics.ranking.measures import measures_of, parse_measure

PRINTED = {
    NDCG: "NDCG",
    NDCG @ 10: "NDCG@10",
    NDCG(gain="linear"): 'NDCG(gain="linear")',
    NDCG(gain="linear") @ 5: 'NDCG(gain="linear")@5',
    NDCG(gain="exponential") @ 5: "NDCG@5",
    DCG @ 1: "DCG@1",
    CG @ 3: "CG@3",
    CG(gain="linear"): "CG",
    CG(gain="exponential") @ 3: 'CG(gain="exponential")@3',
    MRR(rel=2) @ 3: "MRR(rel=2)@3",
    HR @ 999_999_999: "HR@999999999",
    PooledHR @ 10: "PooledHR@10",
    P(rel=2) @ 1: "P(rel=2)@1",
    R: "R",
    AP(denominator="min") @ 3: 'AP(denominator="min")@3',
    AP(denominator="all", rel=1): "AP",
    AP(denominator="min", rel=2): 'AP(rel=2,denominator="min")',
    ERR @ 20: "ERR@20",
    ERR(max_grade=15): "ERR(max_grade=15)",
    RBP: "RBP",
    RBP(p=0.95, rel=3) @ 7: "RBP(rel=3,p=0.95)@7",
    RBP(p=0.1 + 0.2): "RBP(p=0.30000000000000004)",
    RPrec(rel=2): "RPrec(rel=2)",
    Bpref: "Bpref",
}

gain = st.sampled_from(["exponential", "linear"])
rel = st.integers(1, 15)
whole = st.one_of(
    st.builds(lambda m, g: m(gain=g), st.sampled_from([NDCG, DCG, CG]), gain),
    st.builds(lambda m, r: m(rel=r), st.sampled_from([MRR, HR, PooledHR, P, R]), rel),
    st.builds(lambda r, over: AP(rel=r, denominator=over), rel, st.sampled_from(["all", "min"])),
    st.builds(lambda g: ERR(max_grade=g), rel),
    st.builds(lambda r, p: RBP(rel=r, p=p), rel, st.floats(0.0001, 1, exclude_max=True, width=64)),
)
measures = st.one_of(
    st.builds(lambda m, k: m if k is None else m @ k, whole, st.none() | st.integers(1, 10**6)),
    st.builds(lambda m, r: m(rel=r), st.sampled_from([RPrec, Bpref]), rel),
)


@pytest.mark.parametrize(("measure", "text"), PRINTED.items())
def test_a_measure_prints_as_it_is_written(measure: Measure, text: str) -> None:
    assert str(measure) == repr(measure) == text
    assert parse_measure(text) == measure


@given(measures)
def test_what_a_measure_prints_parses_back(measure: Measure) -> None:
    assert parse_measure(str(measure)) == measure


@pytest.mark.parametrize(
    "text", [' NDCG ( gain = "linear" ) @ 5 ', "NDCG(gain='linear')@5", '\tNDCG(gain="linear" )@05']
)
def test_spaces_and_kinds_of_quotes_do_not_matter(text: str) -> None:
    assert parse_measure(text) == NDCG(gain="linear") @ 5


@pytest.mark.parametrize(
    "text", ['AP(denominator="min", rel=2)@3', " AP ( rel = 2 , denominator = 'min' ) @ 3"]
)
def test_parameters_come_in_any_order(text: str) -> None:
    assert parse_measure(text) == AP(rel=2, denominator="min") @ 3


def test_digits_that_make_the_same_number_are_the_same_parameter() -> None:
    assert parse_measure("RBP(p=0.800)") == RBP
    assert str(parse_measure("RBP(p=0.50)@3")) == "RBP(p=0.5)@3"


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
        ("map", "one of NDCG"),
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
        ('AP(denominator="hits")', '"all" or "min"'),
        ("AP(denominator=1)", '"all" or "min"'),
        ('AP(gain="linear")', "a parameter of AP (rel, denominator)"),
        ("ERR(rel=1)", "a parameter of ERR (max_grade)"),
        ("ERR(max_grade=0)", "grade from 1 to 15"),
        ("ERR(max_grade=16)", "grade from 1 to 15"),
        ("RBP(p=1)", "below 1"),
        ("RBP(p=0)", "below 1"),
        ("RBP(p=1.0)", "below 1"),
        ("RBP(p=0.0)", "below 1"),
        ("RBP(p=1.5)", "below 1"),
        ("RBP(p=-0.5)", "name=value"),
        ("RBP(p=8e-1)", "name=value"),
        ("RBP(p=.8)", "name=value"),
        ("RBP(p=nan)", "name=value"),
        ('RBP(p="a")', "below 1"),
        ("RPrec@10", "whole lists"),
        ("Bpref@10", "whole lists"),
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
    assert all((raised.value.expected, raised.value.got, raised.value.where, raised.value.hint))
    assert len(str(raised.value)) < 500


@given(st.text(max_size=300))
def test_no_text_does_more_than_parse_or_refuse(text: str) -> None:
    with contextlib.suppress(SettingsError):
        assert isinstance(parse_measure(text), Measure)


def test_several_measures_may_be_values_and_texts() -> None:
    assert measures_of([NDCG @ 10, "MRR@10"]) == (NDCG @ 10, MRR @ 10)
    assert measures_of("HR@3") == measures_of(HR @ 3) == (HR @ 3,)


@pytest.mark.parametrize("given", [[], ["NDCG@5", "NDCG @ 5"], 5, [5], [None], ["NDCG,MRR"]])
def test_none_twice_and_others_are_refused(given: object) -> None:
    with pytest.raises(SettingsError):
        measures_of(given)  # type: ignore[arg-type]


@pytest.mark.parametrize("given", [P, [NDCG @ 10, P], "P", [P(rel=2)]])
def test_precision_of_no_number_of_ranks_is_refused(given: object) -> None:
    with pytest.raises(SettingsError, match="such as P@10"):
        measures_of(given)  # type: ignore[arg-type]
    assert measures_of([P @ 10, P @ 5, R]) == (P @ 10, P @ 5, R)
