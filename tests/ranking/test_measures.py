"""Measures: values with a cut and parameters, which print as they are written."""

from __future__ import annotations

import contextlib
import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streammetrics.core.errors import SettingsError
from streammetrics.ranking import (
    AP,
    CG,
    DCG,
    ERR,
    ERRIA,
    F1,
    HR,
    MRR,
    NDCG,
    RBP,
    AlphaNDCG,
    Bpref,
    IPrec,
    Measure,
    P,
    PooledHR,
    R,
    RPrec,
    SetF,
    StRecall,
)
from streammetrics.ranking.measures import MEASURES, measures_of, parse_measure
from tests.depth import EXAMPLES
from tests.oracles import measure_table

EVERY = tuple(MEASURES.values())
WITH_CUT = tuple(measure for measure in EVERY if measure.cuts != "cannot")
WITH_REL = tuple(measure for measure in EVERY if "rel" in measure._defaults())
NO_GRADES = (0, 16, 1.0, True, "1", None)


def test_measures_are_values_that_are_found_by_the_name_that_they_print() -> None:
    assert {name: str(measure) for name, measure in MEASURES.items()} == {n: n for n in MEASURES}
    assert {NDCG, RPrec, StRecall} <= set(EVERY) and len(set(EVERY)) == len(EVERY)
    assert {MRR, AP} <= set(WITH_REL) and RPrec not in WITH_CUT
    for measure in EVERY:
        assert pickle.loads(pickle.dumps(measure)) == copy.copy(measure) == measure
    same = [measure(rel=3) @ 7 for measure in (MRR, HR, PooledHR, P, R, AP, RBP)]
    assert len(set(same)) == len(same)
    assert {NDCG @ 10: 1}[parse_measure("NDCG@10")] == 1
    with pytest.raises(AttributeError):
        (NDCG @ 10).cut = 3  # type: ignore[misc]


def test_every_measure_has_a_formula_in_fractions() -> None:
    every = [*measure_table.truths((2, None)), *measure_table.ordered_truths()]
    names = {truth.measure.name for truth in every}
    # Those of subtopics are in test_subtopics.py.
    assert names == {measure.name for measure in EVERY if not measure.subtopics}


def test_a_cut_makes_another_measure() -> None:
    for measure in WITH_CUT:
        cut = measure @ 10
        assert (cut.cut, measure.cut) == (10, None)
        assert cut == measure @ 10 != measure @ 5
        assert cut != measure
        assert str(cut) == f"{measure}@10"
    assert type((NDCG @ np.int64(10)).cut) is int


def test_setting_a_parameter_makes_another_measure_whatever_the_order() -> None:
    assert str(NDCG(gain="linear")) != str(NDCG) == "NDCG"
    assert (NDCG @ 5)(gain="linear") == NDCG(gain="linear") @ 5
    assert (AP @ 5)(denominator="min")(rel=2) == AP(rel=2, denominator="min") @ 5
    assert str(RBP(p=np.float64(0.95))) == str(RBP(p=0.95)) == "RBP(p=0.95)"
    for measure in WITH_REL:
        assert measure(rel=15) != measure(rel=1) == measure


def refused(make: Callable[[], object], expected: str, where: str = "") -> SettingsError:
    with pytest.raises(SettingsError) as raised:
        make()
    assert expected in raised.value.expected, raised.value
    assert where in ("", raised.value.where)
    assert raised.value.got and raised.value.hint
    return raised.value


def test_cuts_and_parameters_out_of_range_are_refused() -> None:
    cut: Any
    for cut in (0, -3, 2.5, "5", None, True, 10**9, np.float64(3)):
        refused(lambda cut=cut: NDCG @ cut, "a cut from 1")  # type: ignore[misc]
    refused(lambda: NDCG @ 10 @ 5, "without a second cut")
    for whole in (RPrec, Bpref, RPrec(rel=2), Bpref(rel=2)):
        error = refused(lambda base=whole: base @ 10, "whole lists", str(whole))  # type: ignore[misc]
        assert error.got == "@10"
    wrong: list[tuple[Measure, str, tuple[Any, ...], str]] = [
        *((measure, "rel", NO_GRADES, "a grade from 1 to 15") for measure in WITH_REL),
        *(
            (measure, "gain", ("cubic", ["linear"], None, 1, np.array(["linear"] * 2)), '"linear"')
            for measure in (NDCG, DCG, CG)
        ),
        (AP, "denominator", ("hits", "R", None, 7, ["all"]), '"all" or "min"'),
        (ERR, "max_grade", NO_GRADES, "a grade from 1 to 15"),
        (SetF, "beta", (0, 0.0005, 1000.5, 0.1234, np.nan, np.inf, True, "1", None), "thousandths"),
        (IPrec, "recall", (-0.1, 1.5, np.nan, "0.1", None), "a float from 0 to 1"),
        (RBP, "p", (0.0, 1.0, -0.1, 1.5, np.nan, np.inf, 1, "0.8", None), "below 1"),
    ]
    for measure, name, values, expected in wrong:
        for value in values:
            make = lambda m=measure, v=value, n=name: m(**{n: v})  # noqa: E731
            refused(make, expected, f"{measure.name}.{name}")
    for measure in EVERY:
        for name in ("cut", "name", "gamma", "pooled", "rational"):
            make = lambda m=measure, n=name: m(**{n: 3})  # noqa: E731
            assert refused(make, f"a parameter of {measure.name} ").got == name


# -- as text ------------------------------------------------------------------------------------

PRINTED = {
    NDCG: "NDCG",
    NDCG(gain="linear") @ 5: 'NDCG(gain="linear")@5',
    NDCG(gain="exponential") @ 5: "NDCG@5",
    DCG @ 1: "DCG@1",
    CG(gain="linear"): "CG",
    CG(gain="exponential") @ 3: 'CG(gain="exponential")@3',
    HR @ 999_999_999: "HR@999999999",
    P(rel=2) @ 1: "P(rel=2)@1",
    AP(denominator="all", rel=1): "AP",
    AP(denominator="min", rel=2): 'AP(rel=2,denominator="min")',
    ERR(max_grade=15): "ERR(max_grade=15)",
    RBP(p=0.95, rel=3) @ 7: "RBP(rel=3,p=0.95)@7",
    RBP(p=0.1 + 0.2): "RBP(p=0.30000000000000004)",
    RPrec(rel=2): "RPrec(rel=2)",
    AlphaNDCG(alpha=1e-5) @ 3: "AlphaNDCG(alpha=1e-05)@3",
    AlphaNDCG(alpha=2.5e-300): "AlphaNDCG(alpha=2.5e-300)",
    AlphaNDCG(alpha=-0.0): "AlphaNDCG(alpha=0.0)",
    ERRIA(alpha=0.25, denominator="one") @ 5: 'ERRIA(alpha=0.25,denominator="one")@5',
}
OTHER_TEXTS = {
    ' NDCG ( gain = "linear" ) @ 5 ': NDCG(gain="linear") @ 5,
    "NDCG(gain='linear')@5": NDCG(gain="linear") @ 5,
    '\tNDCG(gain="linear" )@05': NDCG(gain="linear") @ 5,
    'AP(denominator="min", rel=2)@3': AP(rel=2, denominator="min") @ 3,
    " AP ( rel = 2 , denominator = 'min' ) @ 3": AP(rel=2, denominator="min") @ 3,
    "RBP(p=0.800)": RBP,
    "RBP(p=0.50)@3": RBP(p=0.5) @ 3,
    "MRR()@3": MRR @ 3,
}

gain = st.sampled_from(["exponential", "linear"])
rel = st.integers(1, 15)
whole = st.one_of(
    st.builds(lambda m, g: m(gain=g), st.sampled_from([NDCG, DCG, CG]), gain),
    st.builds(lambda m, r: m(rel=r), st.sampled_from([MRR, HR, PooledHR, P, R, F1, StRecall]), rel),
    st.builds(lambda r, a: AlphaNDCG(rel=r, alpha=a), rel, st.floats(0, 1)),
    st.builds(
        lambda a, over: ERRIA(alpha=a, denominator=over),
        st.floats(0.001, 1),
        st.sampled_from(["perfect", "one"]),
    ),
    st.builds(lambda r, over: AP(rel=r, denominator=over), rel, st.sampled_from(["all", "min"])),
    st.builds(lambda g: ERR(max_grade=g), rel),
    st.builds(lambda r, p: RBP(rel=r, p=p), rel, st.floats(0.0001, 1, exclude_max=True, width=64)),
)
measures = st.one_of(
    st.builds(lambda m, k: m if k is None else m @ k, whole, st.none() | st.integers(1, 10**6)),
    st.builds(lambda m, r: m(rel=r), st.sampled_from([RPrec, Bpref]), rel),
)


def test_a_measure_prints_as_it_is_written() -> None:
    for measure, text in PRINTED.items():
        assert str(measure) == repr(measure) == text
        assert parse_measure(text) == measure
    for text, measure in OTHER_TEXTS.items():
        assert parse_measure(text) == measure, text


@given(measures)
def test_what_a_measure_prints_parses_back(measure: Measure) -> None:
    assert parse_measure(str(measure)) == measure


@settings(max_examples=EXAMPLES // 4)
@given(st.text(max_size=300))
def test_no_text_does_more_than_parse_or_refuse(text: str) -> None:
    with contextlib.suppress(SettingsError):
        assert isinstance(parse_measure(text), Measure)


REFUSED_TEXTS = {
    "cut from 1": ["NDCG@0"],
    "measure": [""],
    "measure such as": [
        *("NDCG@-1", "NDCG@1.5", "NDCG@1000000000", "NDCG@10@10", "NDCG@", "N DCG@10", "NDCG@1 0"),
        *("NDCG@١", "NDCG(gain=__import__('os'))", "__import__('os')@1"),
        *("NDCG" + " " * 10**6 + "@10", "(" * 10**6),
    ],
    "one of NDCG": ["nonsense", "auc", "f2@10", "hits@10"],
    "name=value": [
        *("NDCG(gain=Linear)", 'NDCG(gain="linear",)', "RBP(p=-0.5)", "RBP(p=8e-1)", "RBP(p=.8)"),
    ],
    "each name once": ['NDCG(gain="linear",gain="linear")'],
    "a parameter of NDCG": ["NDCG(rel=1)"],
    "a parameter of MRR": ["MRR(cut=3)", "MRR(name=3)"],
    "grade from 1 to 15": ["MRR(rel=0)", "MRR(rel=1.0)"],
    "below 1": ["RBP(p=nan)", "RBP(p=1)", "RBP(p=0.0)", 'RBP(p="a")'],
    "whole lists": ["RPrec@10", "Bpref@10"],
}


def test_other_text_is_refused_with_what_was_expected() -> None:
    for part, texts in REFUSED_TEXTS.items():
        for text in texts:
            with pytest.raises(SettingsError, match="expected") as raised:
                parse_measure(text)
            error = raised.value
            assert part in error.expected or part in error.where, text[:50]
            assert all((error.expected, error.got, error.where, error.hint))
            assert len(str(error)) < 500


# Names that people bring from elsewhere, and what they mean here.
TYPED = {
    "ndcg@10 NDCG@10 nDCG@10 ndcg_burges@10": NDCG @ 10,
    "ndcg_cut_10 ndcg_cut.10": NDCG(gain="linear") @ 10,
    "map MAP ap average_precision": AP,
    "map@5 map_cut_5": AP @ 5,
    "mrr@10 RR@10": MRR @ 10,
    "mrr recip_rank mean_reciprocal_rank": MRR,
    "f1@10 F1@10 f1_score@10": F1 @ 10,
    "recall@100 recall_100 Recall@100 R@100": R @ 100,
    "success@1 success_1 hit_rate@1 hr@1 Success@1": HR @ 1,
    "P_5 precision@5 p@5 P.5": P @ 5,
    "Rprec r-precision": RPrec,
    "bpref": Bpref,
    "RR(rel=2)@10": MRR(rel=2) @ 10,
    "rbp(p=0.95)": RBP(p=0.95),
}


def test_names_that_people_type_are_those_measures() -> None:
    for names, measure in TYPED.items():
        for name in names.split():
            assert parse_measure(name) == measure, name
    assert parse_measure("NDCG(gain='linear')@10") == NDCG(gain="linear") @ 10


def test_a_name_that_is_nearly_right_gets_a_question() -> None:
    for text, meant in {
        "ndgc@10": "NDCG@10",
        "ndcg_at_10": "NDCG@10",
        "NDCG-10": "NDCG@10",
        "mrr10": "MRR@10",
        "recal@5": "R@5",
        "hits@3": "HR@3",
        "rbp.95": "RBP(p=0.95)",
    }.items():
        error = refused(lambda text=text: parse_measure(text), "")  # type: ignore[misc]
        assert error.hint == f"did you mean '{meant}'?", text
    for text, hint in {
        "map, ndcg@5": "pass several in a list: ['map', 'ndcg@5']",
        "ndcg@5,10": "pass several in a list: ['ndcg@5', 'ndcg@10']",
        "ndcg_cut": "name one cut: ndcg_cut_10",
    }.items():
        error = refused(lambda text=text: parse_measure(text), "")  # type: ignore[misc]
        assert error.hint == hint


def test_measures_of_ir_measures_keep_their_meaning() -> None:
    peer = pytest.importorskip("ir_measures")
    measures_by_peer = {
        peer.nDCG @ 10: NDCG(gain="linear") @ 10,
        peer.nDCG(dcg="exp-log2") @ 5: NDCG @ 5,
        peer.P(rel=2) @ 5: P(rel=2) @ 5,
        peer.RR: MRR,
        peer.RBP(p=0.95): RBP(p=0.95),
        peer.Success @ 1: HR @ 1,
    }
    assert measures_of(measures_by_peer) == tuple(measures_by_peer.values())
    assert measures_of(peer.AP @ 10) == (AP @ 10,)
    for text in ("nDCG(dcg='log2')@10", "NDCG(gain=linear)@10"):
        assert parse_measure(text) == NDCG(gain="linear") @ 10
    assert refused(lambda: measures_of([peer.Compat]), "one of NDCG").got == "'Compat'"
    refused(lambda: measures_of([peer.AP(judged_only=True)]), "name=value")


def test_several_measures_are_values_or_texts_of_which_none_comes_twice() -> None:
    assert measures_of([NDCG @ 10, "MRR@10"]) == (NDCG @ 10, MRR @ 10)
    assert measures_of("HR@3") == measures_of(HR @ 3) == (HR @ 3,)
    several: Any
    for several in ([], ["NDCG@5", "NDCG @ 5"], 5, [5], [None], ["NDCG,MRR"]):
        with pytest.raises(SettingsError):
            measures_of(several)
    for several in (P, [NDCG @ 10, P], "P", [P(rel=2)]):
        with pytest.raises(SettingsError, match="such as P@10"):
            measures_of(several)
    assert measures_of([P @ 10, P @ 5, R]) == (P @ 10, P @ 5, R)
