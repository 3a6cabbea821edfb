"""Texts fit into their width, hostile names do nothing there, and colours change no letter."""

from __future__ import annotations

import html
import re

import pytest
from msgspec import UNSET
from msgspec.structs import replace
from streammetrics_consumers.query.user_intervals import InGroups, with_user_interval
from streammetrics_consumers.render import text as module
from streammetrics_consumers.render.style import Style
from streammetrics_consumers.render.text import Truth, table

from streammetrics import Interval, Quantiles, UserGroups
from streammetrics.experiments import ACTIONS
from tests.consumers.answer_rows import altered
from tests.consumers.render.corpus import corpus, results, rows
from tests.consumers.render.snapshots import COLOURED, report, terminal, text

ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


def test_texts_fit_into_their_width_and_colours_change_no_letter() -> None:
    coloured = ("hostile names", "what asks for attention", "joined, with warnings", "broken",
                "units of several variants")  # fmt: skip
    wide = ("more variants than fit", "huge figures", "small figures", "joined over weeks",
            "names that look alike once they are cut")  # fmt: skip
    for name in (*coloured, *wide):
        answer = corpus()[name]
        for render in (text, terminal):
            plain = render(answer, Style(80))
            assert all(len(line) <= 80 for line in plain.splitlines()), name
            assert "\x1b" not in plain and "\u202e" not in plain, name
            if name in coloured:
                lines = ESCAPE.sub("", render(answer, COLOURED)).splitlines()
                without = render(answer, Style(COLOURED.width)).splitlines()
                assert [line.rstrip() for line in lines] == without, name


def test_no_surface_shows_a_number_of_an_experiment_that_nobody_can_read() -> None:
    advised = [candidate for candidate in corpus().values() if candidate.recommendation is not None]
    assert {
        candidate.recommendation.action for candidate in advised if candidate.recommendation
    } == set(ACTIONS)
    for answer in advised:
        for render in (text, terminal, report):
            shown = html.unescape(render(answer))
            assert not re.search(r"\bp 0\.0+\b|\de[+-]\d|\(unnamed\)", shown)


def test_certain_bounds_and_intervals_are_in_columns_of_their_own_or_below_the_value() -> None:
    answer = results(rows({"variant": "control"}, 0), rows({"variant": "new"}, 1))
    wide, narrow = text(answer, Style(80)).splitlines(), text(answer, Style(50)).splitlines()
    head = ["metric", "variant", "value", "exact within", "95 % CI"]
    assert re.split(r"  +", wide[4]) == head
    assert re.split(r"  +", wide[5]) == [
        *("auc", "control", "0.701", "[0.700, 0.702]", "0.680 to 0.721")
    ]
    assert re.split(r"  +", wide[6])[1:3] == ["new", "0.702"]
    assert max(map(len, narrow)) <= 50
    assert re.split(r"  +", narrow[4]) == head[:3]
    assert [re.split(r"  +", line)[:2] for line in narrow[6:8]] == [
        ["exact within", "[0.700, 0.702]"],
        ["95 % CI", "0.680 to 0.721"],
    ]


def test_a_name_is_broken_between_words_only_and_a_missing_interval_has_its_reason() -> None:
    answer, view = results(rows({"variant": "control"}, 0)), "precision_at_recall(0.8)"
    missing = Interval.undefined("few users", level=0.95, method="jackknife", estimate=0.7)
    first = answer.rows[0]
    shown = {"auc": altered(first, interval=missing), view: altered(first, view=view)}
    for views, intervals in ((("auc", view), True), (("auc",), False)):
        view_rows = tuple(shown[name] for name in views)
        tables = answer.tables._replace(headlines=tuple(("auc", name) for name in views))
        for width in (100, 70):
            output = text(replace(answer, rows=view_rows, tables=tables), Style(width))
            assert (f"auc {view}  " in output) is intervals
            assert ("\nauc: few users\n" in output) is intervals


def test_a_view_with_arguments_is_not_broken_in_the_head_of_its_column() -> None:
    answer, view = corpus()["win"], "precision_at_recall(0.8)"
    several = [altered(row, metric="auc", view=view) for row in answer.comparisons * 3]
    lines = table(replace(answer, comparisons=several), Style(80), title="t").splitlines()
    assert sum(line.count(f"({view})") for line in lines) == 3
    assert all(len(line) <= 80 for line in lines)


def test_the_true_effect_of_a_simulated_stream_stands_below_the_estimate() -> None:
    answer = corpus()["kept"]
    row = answer.comparisons[0]
    true = {(row.contrast.metric, row.contrast.view): 0.0015}
    for treatment, is_shown in ((row.contrast.treatment_variant, True), ("another", False)):
        truth = Truth(row.contrast.control_variant, treatment, true)
        lines = table(answer, Style(), title="t", truth=truth).splitlines()
        indexes = [i for i, line in enumerate(lines) if "true, as simulated" in line]
        assert len(indexes) == is_shown
        assert all(lines[i].endswith(" +0.002") and "effect" in lines[i - 1] for i in indexes)


def test_very_many_tables_are_cut_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_BLOCKS", 2)
    answer = results(*(rows({"variant": "a", "phase": f"{n}"}, 0) for n in range(3)))
    assert "1 more tables: narrow with --where, or use --json" in text(answer)


def test_a_band_is_beside_the_interval_or_below_the_value_only_where_a_row_has_one() -> None:
    answer = corpus()["quantiles with a band"]
    for render in (text, terminal):
        wide = render(answer, Style(120))
        assert re.search(r"95 % CI +band", wide) and re.search(
            r"616.8 to 621.5 +614.0 to inf", wide
        )
        narrow = render(answer, Style(50))
        assert re.search(r"\n *band +114.5 to 124.5\n", narrow)
        assert max(map(len, narrow.splitlines())) <= 50
        assert "band" not in render(corpus()["windows"], Style(120))
    assert "band: it holds for all quantiles together, and at all looks" in text(answer, Style(80))


def test_rows_of_users_have_no_band() -> None:
    state = UserGroups(Quantiles())
    state.update(["ann", "bob", "cyd"] * 3, values=range(9))
    users = {(None, None, "new", "wait"): InGroups(state)}
    for row in corpus()["quantiles with a band"].rows:
        altered_row = altered(row, counts={"rows": 9})
        is_control = row.slice["variant"] == "control"
        assert (with_user_interval(altered_row, users).band is UNSET) == (
            not is_control or row.metric == "ctr"
        )
        assert (
            with_user_interval(altered(altered_row, interval=None), users).band is row.band
        ) == (is_control or row.metric == "ctr")
