"""Tables as Markdown, LaTeX and CSV: what `print` shows, whole, and safe where it is pasted."""

from __future__ import annotations

import csv
import math
import pickle
import re
from io import StringIO
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from streammetrics import (
    NDCG,
    ExactAUC,
    HistogramAUC,
    InputError,
    Interleaving,
    Paired,
    Panel,
    PerKey,
    Ratio,
    SettingsError,
    Windows,
    compare,
    compare_runs,
    evaluate,
)
from streammetrics.experiments import adjust_fwer
from streammetrics.present.documents import stars_of
from streammetrics.present.notebook import Shown
from tests.experiments.arms import two
from tests.present.test_every_result import examples

RNG = np.random.default_rng(36)
LABELS = RNG.integers(0, 2, 400)
SCORES = RNG.random(400) / 2 + LABELS / 5
LATEX = {
    **{rf"\{mark}": mark for mark in "&%$#_{}"},
    r"\textbackslash{}": "\\",
    r"\textasciitilde{}": "~",
    r"\textasciicircum{}": "^",
    r"\textless{}": "<",
    r"\textgreater{}": ">",
    r"\textbar{}": "|",
    "{[}": "[",
    "{*}": "*",
}


def area() -> HistogramAUC:
    metric = HistogramAUC(resolution=4)
    metric.update(LABELS, SCORES)
    return metric


def keyed(*keys: object) -> PerKey:
    metric = PerKey(Ratio())
    metric.update(list(keys), numerators=[1] * len(keys))
    return metric


def of_csv(text: str) -> list[list[str]]:
    return list(csv.reader(StringIO(text)))


def of_markdown(text: str) -> list[list[str]]:
    """The cells as a parser of CommonMark with tables reads them, without mark-up."""
    tokens = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text)
    rows: list[list[str]] = []
    for token, following in pairwise(tokens):
        if token.type == "tr_open":
            rows.append([])
        elif token.type in ("th_open", "td_open"):
            kinds = {child.type for child in following.children or ()}
            assert kinds <= {"text"}, (following.content, kinds)
            rows[-1].append("".join(child.content for child in following.children or ()))
    return rows


def of_latex(text: str) -> list[list[str]]:
    """The cells of a tabular, without escapes and without math."""
    body = text.partition("\\toprule\n")[2].partition("\\bottomrule")[0]
    lines = [line.removesuffix(r" \\") for line in body.splitlines() if line != r"\midrule"]
    escapes = re.compile("|".join(map(re.escape, sorted(LATEX, key=len, reverse=True))))
    cells = [re.split(r" (?<!\\)& ", line) for line in lines]
    bare = [[re.sub(r"(?<!\\)\$", "", cell) for cell in line] for line in cells]
    return [[escapes.sub(lambda mark: LATEX[mark[0]], cell) for cell in line] for line in bare]


def test_each_document_has_the_lines_that_print_shows() -> None:
    metric = Panel(
        {"auc": HistogramAUC(resolution=4), "ctr": Ratio()}, {"ctr": {"numerators": "labels"}}
    )
    metric.update(labels=LABELS, scores=SCORES)
    result = PerKey(metric.empty())
    result.update(["a b"] * 400, labels=LABELS, scores=SCORES)
    for shown in (metric.compute(), result.compute(), area().compute()):
        head, *lines = repr(shown).splitlines()[1:]
        rows = of_csv(shown.to_csv())
        assert rows[0] == ["name", *re.split(r" {2,}", head.strip())]
        for row, line in zip(rows[1:], lines, strict=False):
            assert [cell for cell in row if cell] == re.split(r" {2,}", line)
        assert of_markdown(shown.to_markdown()) == of_latex(shown.to_latex()) == rows


def test_a_document_is_never_cut_and_neither_are_its_names() -> None:
    names = [f"{'a campaign with a long name ' * 4}{i:03}" for i in range(300)]
    result = keyed(*names).compute()
    rows = of_csv(result.to_csv())[1:]
    assert [row[0] for row in rows] == [f"{name}: ratio" for name in names]
    assert [row[0] for row in of_markdown(result.to_markdown())[1:]] == [row[0] for row in rows]
    qrels, ranked = {"q": {"x": 1}, "r": {"y": 1}}, {"q": ["y", "x"], "r": ["y"]}
    runs = compare_runs(qrels, dict.fromkeys(names[:30], ranked), "map")
    assert [row[1] for row in of_csv(runs.to_csv())[1:]] == names[:30]


def test_every_result_has_documents_with_equal_lines() -> None:
    for result in examples():
        rows = of_csv(result.to_csv(stars=True, units=True))
        n = len(rows)
        assert {*map(len, rows)} == {len(rows[0])}, type(result)
        markdown, latex = (
            write(stars=True, units=True) for write in (result.to_markdown, result.to_latex)
        )
        assert len(of_markdown(markdown)) == len(of_latex(latex)) == n, type(result)
        undefined = any("nan" in row[1:] for row in rows)
        assert not undefined or "reason" in rows[0] or "name" not in rows[0], type(result)


@given(st.text(max_size=12))
@example("a|b\\|c")
@example("[x](javascript:alert)")
@example("__init__ *b* ~~c~~ `d` <e> &amp; $f$")
@example('a_b_c NDCG(gain="linear")@10 100% #1 {x} ~ ^ <y> [z]')
@example("\\")
def test_a_name_is_read_as_it_was_typed(name: str) -> None:
    result = keyed(name).compute()
    label = of_csv(result.to_csv())[1][0].removeprefix(
        "'" if name[:1] in tuple("=+-@＝＋－＠") else ""
    )
    [_, [in_markdown, *_]] = of_markdown(result.to_markdown())
    assert " ".join(in_markdown.split(" ")).strip() == label.strip()
    assert of_latex(result.to_latex().replace("  ", " "))[1][0] == label.replace("  ", " ")
    assert name.isprintable() is (label == f"{name or repr('')}: ratio")


@pytest.mark.parametrize(
    "name", ["=1+1", "+cmd|' /C calc'!A0", "-1+1", "@SUM(A1)", "＝1", "--", "-a"]
)
def test_a_spreadsheet_runs_no_name_as_a_formula(name: str) -> None:
    qrels, ranked = {"q": {"x": 1}, "r": {"y": 1}}, {"q": ["y", "x"], "r": ["y"]}
    result = compare_runs(qrels, {"a": ranked, name: ranked}, "map")
    assert of_csv(result.to_csv())[2][1] == f"'{name}"


def test_numbers_of_a_csv_are_read_as_numbers() -> None:
    metric = Ratio()
    metric.update(np.arange(200_000) % 7 - 5.0)
    frame = pd.read_csv(StringIO(metric.compute().to_csv()))
    assert frame["value"].dtype == np.float64
    assert frame["value"].round(-3).tolist() == [-0.0, -400_000.0, 200_000.0]
    assert math.isnan(pd.read_csv(StringIO(Ratio().compute().to_csv()))["value"][0])


def test_what_is_undefined_has_its_reason_in_a_column() -> None:
    assert of_csv(Ratio().compute().to_csv())[:2] == [
        ["name", "value", "reason"],
        ["ratio", "nan", "no rows"],
    ]
    one_class = ExactAUC()
    one_class.update([1, 1], [0.25, 0.5])
    row = dict(zip(*of_csv(one_class.compute().to_csv())[:2], strict=True))
    assert row["value"] == "nan" and row["reason"]
    assert "reason" not in of_csv(area().compute().to_csv())[0]


def test_percent_has_the_same_digits_and_is_for_shares_alone() -> None:
    result = area().compute()
    plain, percent = of_csv(result.to_csv()), of_csv(result.to_csv(units=True))
    number = re.compile(r"[0-9.]+")
    for line, shares in zip(plain[1:], percent[1:], strict=True):
        assert line[0] == shares[0]
        if line[0] == "gini":  # from -1 to 1
            assert line == shares
            continue
        for cell, share in zip(line[1:], shares[1:], strict=True):
            assert share == (f"{number.sub(_times_100, cell)} %" if cell else "")
    pair = Paired(Ratio())
    pair.update(numerators_a=[1, 0, 1], numerators_b=[0, 0, 1])
    rows = dict(line[:2] for line in of_csv(pair.compute().to_csv(units=True)))
    assert "%" not in rows["pvalue"]


def _times_100(digits: re.Match[str]) -> str:
    whole, _, rest = digits[0].partition(".")
    return f"{int(whole + rest[:2])}.{rest[2:]}"


def test_stars_are_below_their_limits() -> None:
    below = [np.nextafter(limit, 0) for limit in (0.05, 0.01, 0.001)]
    assert [stars_of(p) for p in (0.05, 0.01, 0.001)] == ["", "*", "**"]
    assert [stars_of(p) for p in below] == ["*", "**", "***"]
    assert stars_of(math.nan) == ""


def compare_latex() -> str:
    a, b = Ratio(), Ratio()
    a.update([1] * 500 + [0] * 3000)
    b.update([1] * 300 + [0] * 3000)
    return compare(a, b).to_latex(stars=True)


def starred(result: Shown) -> set[str]:
    """The names of the values that have stars."""
    rows = of_csv(result.to_csv(stars=True))
    assert rows[0] == of_csv(result.to_csv())[0]
    return {
        " ".join(row[:2]) if rows[0][0] == "measure" else row[0]
        for row in rows
        if "*" in "".join(row[1:])
    }


def test_stars_mark_effects_that_are_tested_against_0_and_nothing_else() -> None:
    a, b = Ratio(), Ratio()
    a.update([1] * 300 + [0] * 3000)
    b.update([1] * 500 + [0] * 3000)
    comparison = compare(a, b)
    assert starred(comparison) == {"effect_size", "rel_effect_size"}
    assert "*" not in comparison.to_csv()
    drafts = Interleaving()  # the test is against clicks that ignore teams, not against 0
    drafts.update([1] * 90 + [0] * 10, [0] * 90 + [1] * 10)
    assert drafts.compute().pvalue < 0.001 and starred(drafts.compute()) == set()
    assert starred(two((1200, 10_000), (1500, 10_000)).report()) == {"ctr.ratio/bts"}
    assert "p < 0.05" not in area().compute().to_markdown(stars=True).replace("\\", "")
    text = comparison.to_markdown(stars=True).replace("\\", "")
    assert text.endswith("* p < 0.05, ** p < 0.01, *** p < 0.001")


def test_stars_of_several_comparisons_are_those_of_the_adjusted_p_values() -> None:
    rng = np.random.default_rng(4)
    qrels = {q: dict.fromkeys(range(3), 1) for q in range(60)}
    runs = {
        name: {q: {d: rng.random() + shift * (d < 3) for d in range(12)} for q in qrels}
        for name, shift in {"a": 0.0, "b": 0.09, "c": 0.12, "d": 0.02, "e": 0.3}.items()
    }
    result = compare_runs(qrels, runs, ["map", "p@5"])
    names = dict(zip(result.runs["a"].means, ["map", "p@5"], strict=True))
    pvalues = {f"{names[d.measure]} {d.run}": d.pvalue for d in result.differences}
    adjusted = adjust_fwer(pvalues)
    expected = {name for name, pvalue in adjusted.items() if pvalue < 0.05}
    assert starred(result) == expected
    assert expected < {name for name, pvalue in pvalues.items() if pvalue < 0.05}


def test_a_comparison_of_two_runs_has_six_columns_and_the_adjusted_p_value_where_it_differs() -> (
    None
):
    qrels, ranked = {"q": {"x": 1}, "r": {"y": 1}}, {"q": ["y", "x"], "r": ["y"]}
    second_run = {"q": ["x"], "r": ["x", "z", "y"]}
    names = ["measure", "run", "mean", "difference", "95 % CI", "p"]
    pair = compare_runs(qrels, {"a": ranked, "b": second_run}, "map")
    assert of_csv(pair.to_csv())[0] == names
    several = compare_runs(qrels, {"a": ranked, "b": second_run}, ["map", "mrr"])
    assert of_csv(several.to_csv())[0] == [*names, "p (Holm)"]


def test_measures_have_the_names_that_were_typed() -> None:
    qrels, ranked = {"q": {"x": 1}, "r": {"y": 1}}, {"q": ["y", "x"], "r": ["y"]}
    typed = ["ndcg@10", "map", "P_5", NDCG @ 3, "hit_rate @ 1"]
    names = ["ndcg@10", "map", "P_5", "NDCG@3", "hit_rate @ 1"]
    result = evaluate(qrels, ranked, typed)
    assert [row[0] for row in of_csv(result.to_csv())[1:]] == names
    assert of_markdown(result.to_markdown())[3][0] == "P_5"
    assert [*result.means][:2] == ["NDCG@10", "AP"] and "NDCG@10" in repr(result)
    runs = compare_runs(qrels, {"map": ranked, "NDCG@10": {"q": ["x"]}}, measures=typed)
    rows = of_csv(runs.to_csv())[1:]
    assert [row[0] for row in rows[::2]] == names
    assert {row[1] for row in rows} == {"map", "NDCG@10"}  # a run is no measure
    assert of_csv(evaluate(qrels, ranked, "map").to_csv())[1][0] == "map"
    assert of_csv(evaluate(qrels, ranked, iter(["map"])).to_csv())[1][0] == "AP"
    duplicate = pickle.loads(pickle.dumps(result))
    assert duplicate == result and of_csv(duplicate.to_csv())[2][0] == "AP"


def test_the_level_is_that_of_the_intervals() -> None:
    [head, first, *_] = of_csv(area().compute().to_csv(level=0.9))
    interval = area().compute().interval("auc", level=0.9)
    assert head[-1] == "90 % CI"
    assert first[-1] == f"{interval.lower:.5f} to {interval.upper:.5f}"


@pytest.mark.parametrize("option", ["stars", "units", "level"])
def test_options_of_another_type_are_refused(option: str) -> None:
    for write in (area().compute().to_markdown, area().compute().to_latex, area().compute().to_csv):
        with pytest.raises((InputError, SettingsError), match=option):
            write(**{option: "yes"})


def test_signs_and_exponents_are_in_the_math_of_latex() -> None:
    small = Ratio()
    small.update([-1e-12, 1e-12, -3e-12])
    lines = small.compute().to_latex().splitlines()
    assert lines[4].startswith(r"ratio & $-1.000000\times10^{-12}$ & ")
    rows = [line for line in compare_latex().splitlines() if "effect" in line]
    assert all(
        re.search(r" & \$-0\.[0-9]+\^\{\*{3}\}\$ & \$-0\.[0-9]+\$ to \$-0\.", row) for row in rows
    )


def test_a_wide_frame_has_a_row_for_each_key_and_a_column_for_each_value() -> None:
    metric = PerKey(Panel({"auc": ExactAUC(), "ctr": Ratio()}, {"ctr": {"numerators": "labels"}}))
    metric.update(["bts", "random"] * 200, labels=LABELS, scores=SCORES)
    result = metric.compute()
    long, wide = result.to_frame("pandas"), result.to_frame("pandas", wide=True)
    pivot = long.pivot(index="key", columns="name", values="value")
    assert [*wide] == ["key", *dict.fromkeys(long["name"])]
    assert wide["key"].tolist() == pivot.index.tolist()
    assert all(wide[name].tolist() == pivot[name].tolist() for name in [*wide][1:])
    polars = result.to_frame("polars", wide=True)
    assert polars.columns == [*wide] and polars["auc.auc"].to_list() == wide["auc.auc"].tolist()


def test_windows_and_their_total_are_rows_of_the_same_columns() -> None:
    metric = Windows(PerKey(Ratio(), max_keys=1), 3600)
    metric.update([0, 1, 3_600_000], keys=["a", "b", "a"], numerators=[1, 0, 1])
    wide = metric.compute().to_frame("pandas", wide=True)
    names = ["key", "window_start_ms", "window_end_ms", "ratio", "numerator", "denominator"]
    assert [*wide] == names
    assert wide["window_start_ms"].isna().tolist() == [False, False, False, True, True]
    assert wide.groupby(wide["window_start_ms"].isna())["denominator"].sum().tolist() == [3.0, 3.0]


def test_a_key_with_the_name_of_the_overflow_keeps_its_own_row() -> None:
    metric = PerKey(Ratio(), max_keys=3)
    metric.update(["(other)", *"abcdefgh"], numerators=[1] * 9)
    wide = metric.compute().to_frame("pandas", wide=True)
    assert len(wide) == 4 and wide["denominator"].sum() == 9.0


def test_a_panel_has_one_row_and_runs_have_one_each() -> None:
    panel = Panel({"auc": ExactAUC(), "ctr": Ratio()}, {"ctr": {"numerators": "labels"}})
    panel.update(labels=LABELS, scores=SCORES)
    wide = panel.compute().to_frame("pandas", wide=True)
    assert len(wide) == 1 and [*wide] == panel.compute().to_dict()["name"]
    qrels, ranked = {"q": {"x": 1}, "r": {"y": 1}}, {"q": ["y", "x"], "r": ["y"]}
    runs = compare_runs(qrels, {"a": ranked, "b": {"q": ["x"]}}, ["map", "mrr"])
    frame = runs.to_frame("pandas", wide=True)
    assert [*frame] == ["key", "AP", "MRR", "AP.difference", "MRR.difference"]
    assert frame["AP.difference"].tolist()[1] == runs.difference("b", "map").difference
    assert math.isnan(frame["AP.difference"][0])


def test_the_points_of_a_curve_are_not_made_wide() -> None:
    with pytest.raises(InputError, match="wide"):
        area().compute().roc().to_frame(wide=True)
