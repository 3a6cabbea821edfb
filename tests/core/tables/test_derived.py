"""Written columns and a condition give the states of tables that polars derived and filtered."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from streammetrics import (
    Accumulator,
    DictionaryColumn,
    ExactAUC,
    HistogramAUC,
    InputError,
    Moments,
    Panel,
    PerKey,
    RankingMetrics,
    Ratio,
    SlidingAUC,
    Units,
    Windows,
)
from tests.core.expressions.drawn import FLAGS, NAMED_TEXTS, NUMBERS, condition, number

pa = pytest.importorskip("pyarrow", reason="needs pyarrow: pip install '.[parquet]' in a clone")
pd = pytest.importorskip("pandas", reason="needs pandas")
pl = pytest.importorskip("polars", reason="needs polars")

N = 60
FORMS = ("dict", "polars", "pandas", "arrow", "batch")


def drawn(random: Random, n: int = N) -> Any:
    """Rows on which polars, which compares nan otherwise and lets sums of 64 bits overflow, agrees
    with IEEE 754."""
    return pl.DataFrame(
        {
            "clicks": [random.randrange(-3, 4) for _ in range(n)],
            "views": [random.randrange(1, 9) for _ in range(n)],
            "reward": [random.choice((0.5, -1.25, 0.1, 3.0, 1e-3)) for _ in range(n)],
            "user.age": [random.choice((18.0, 30.0, 31.5, 2.0**-40)) for _ in range(n)],
            "is_bot": [random.random() < 0.5 for _ in range(n)],
            "paid": [random.random() < 0.3 for _ in range(n)],
            "surface": [random.choice(("search", "home", "Ünï", "搜索")) for _ in range(n)],
            "country": [random.choice(("de", "home", "")) for _ in range(n)],
            "day": [random.randrange(3) for _ in range(n)],
        }
    )


def as_polars(text: str) -> Any:
    """An expression as one of polars: Python evaluates the text with columns in place of fields."""
    import ast

    def value(node: Any) -> Any:
        match node:
            case ast.Constant():
                return pl.lit(node.value)
            case ast.Name() | ast.Attribute():
                return pl.col(ast.unparse(node))
            case ast.UnaryOp(op=ast.USub()):
                return -value(node.operand)
            case ast.UnaryOp():
                return value(node.operand).not_()
            case ast.BinOp():
                a, b = value(node.left), value(node.right)
                match node.op:
                    case ast.Add():
                        return a + b
                    case ast.Sub():
                        return a - b
                    case ast.Mult():
                        return a * b
                return a.cast(pl.Float64) / b.cast(pl.Float64)
            case ast.BoolOp(op=ast.And()):
                return pl.all_horizontal(*map(value, node.values))
            case ast.BoolOp():
                return pl.any_horizontal(*map(value, node.values))
            case ast.Call(func=ast.Name(id="abs")):
                return value(node.args[0]).abs()
            case ast.Call(func=ast.Name(id=name)):
                function = pl.min_horizontal if name == "min" else pl.max_horizontal
                return function(*map(value, node.args))
            case ast.Compare():
                operands = [value(operand) for operand in (node.left, *node.comparators)]
                signs = {
                    ast.Lt: "lt",
                    ast.LtE: "le",
                    ast.Gt: "gt",
                    ast.GtE: "ge",
                    ast.Eq: "eq",
                    ast.NotEq: "ne",
                }
                pairs = zip(node.ops, operands, operands[1:], strict=False)
                return pl.all_horizontal(*(getattr(a, signs[type(s)])(b) for s, a, b in pairs))
        raise AssertionError(ast.dump(node))

    return value(ast.parse(text.strip(), mode="eval").body)


def formed(table: Any, form: str) -> Any:
    """A table of polars as one of another library."""
    match form:
        case "dict":
            return {name: table[name].to_list() for name in table.columns}
        case "pandas":
            return pd.DataFrame({name: table[name].to_list() for name in table.columns})
        case "arrow":
            return table.to_arrow()
        case "batch":
            return table.to_arrow().combine_chunks().to_batches()[0]
    return table


def small(text: str) -> bool:
    """Whether no whole number of the text is one on which polars rounds or overflows."""
    import ast

    if not text:
        return False
    tree = ast.parse(text.strip(), mode="eval")
    if not any(name in text for name in (*NUMBERS, *FLAGS, *NAMED_TEXTS)):
        return False
    values: list[Any] = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    is_short = text.count("*") < 4 and "/" not in text
    return is_short and all(isinstance(v, str) or abs(v) < 100 for v in values)


@pytest.mark.parametrize("seed", range(40))
def test_states_are_those_of_a_table_that_polars_derived_and_filtered(seed: int) -> None:
    random = Random(seed)
    table = drawn(random)
    gain, where, long = "", "", ""
    while not small(gain):
        gain = number(random, 2)
    while not small(where):
        where = condition(random, 2)
    while not small(long):
        long = condition(random, 3)
    derived = table.filter(as_polars(where)).select(
        "day", values=as_polars(gain), labels=as_polars(long), scores=pl.col("reward")
    )
    columns = {"gain": gain, "values": "gain", "labels": long, "scores": "reward"}
    for empty in (Moments(), ExactAUC()):
        expected, counted = PerKey(empty), PerKey(empty)
        if len(derived):
            expected.update_from(derived, keys="day")
        table_form = formed(table, FORMS[seed % len(FORMS)])
        metric_columns = {name: text for name, text in columns.items() if name in empty.arguments()}
        metric_columns |= {"gain": gain} if "values" in metric_columns else {}
        counted.update_from(table_form, columns=metric_columns, where=where, keys="day")
        assert counted.digest() == expected.digest(), (gain, where, long)


def test_a_written_column_may_be_named_as_any_column_is() -> None:
    table = {"reward": [1.0, 2.0], "weight": [0.5, 4.0], "item": ["a", "b"]}
    expected = Moments()
    expected.update([0.5, 8.0])
    for columns, names in (
        ({"gain": "reward * weight"}, {"values": "gain"}),
        ({"gain": "reward * weight", "values": "gain"}, {}),
        ({"values": "reward * weight"}, {}),
        ({"half": "weight / 2", "gain": "reward * half * 2", "values": "gain"}, {}),
    ):
        state = Moments()
        state.update_from(table, columns=columns, **names)
        assert state == expected


def test_an_argument_may_be_computed_of_the_column_of_its_own_name() -> None:
    state, expected = Moments(), Moments()
    state.update_from({"values": [1.0, 2.0]}, columns={"values": "values * 2"})
    expected.update([2.0, 4.0])
    assert state == expected


def test_names_that_no_expression_can_have_are_names_of_columns_still() -> None:
    state = HistogramAUC()
    table = {"click-rate (%)": [0.25, 0.5], "2nd": [0, 1]}
    state.update_from(table, columns={"scores": "click-rate (%)", "labels": "2nd"})
    expected = HistogramAUC()
    expected.update([0, 1], [0.25, 0.5])
    assert state == expected
    state.update_from(
        table, columns={"p": "click-rate (%)", "scores": "p * 1", "labels": "2nd"}, where="p > 0.3"
    )
    assert state.compute().rows == 3


@pytest.mark.parametrize("form", FORMS)
def test_lists_texts_and_several_columns_are_filtered_by_row(form: str) -> None:
    if form == "dict":
        table: Any = {"rel": [[1, 0], [0], [1, 1, 0]], "s": [[0.5, 0.25], [1.0], [0.1, 0.2, 0.3]]}
        table = {**table, "surface": ["search", "home", "search"]}
        pytest.skip("a dict of lists has flat columns and offsets")
    table = formed(
        pl.DataFrame(
            {
                "rel": [[1, 0], [0], [1, 1, 0]],
                "s": [[0.5, 0.25], [1.0], [0.1, 0.2, 0.3]],
                "surface": ["search", "home", "search"],
            }
        ),
        form,
    )
    lists, expected = RankingMetrics(["ndcg@2"]), RankingMetrics(["ndcg@2"])
    lists.update_from(table, where="surface == 'search'", labels="rel", scores="s")
    expected.update([1, 0, 1, 1, 0], scores=[0.5, 0.25, 0.1, 0.2, 0.3], offsets=[0, 2, 5])
    assert lists.digest() == expected.digest()
    keyed, expected_keyed = PerKey(Ratio()), PerKey(Ratio())
    rows = formed(
        pl.DataFrame(
            {"c": [1, 0, 1], "a": ["x", "y", "x"], "b": [1, 2, 3], "ok": [True, False, True]}
        ),
        form,
    )
    keyed.update_from(rows, where="ok", numerators="c", keys=["a", "b"])
    expected_keyed.update([("x", 1), ("x", 3)], numerators=[1, 1])
    assert keyed == expected_keyed


def test_nothing_is_computed_in_rows_that_do_not_meet_the_condition() -> None:
    table: dict[str, Any] = {
        "surface": ["search", "home", "search"],
        "dwell_s": [40, None, 20],
        "big": [1, 2**62, 1],
        "p": [0.5, 7.0, 0.25],
    }
    state, expected = HistogramAUC(), HistogramAUC()
    state.update_from(
        table,
        columns={"labels": "dwell_s >= 30", "scores": "p", "unread": "nothing / surface"},
        where="surface == 'search' and big * 4 < 9",
    )
    expected.update([1, 0], [0.5, 0.25])
    assert state == expected


@pytest.mark.parametrize("form", FORMS)
def test_errors_name_the_rows_of_the_table(form: str) -> None:
    rows = pl.DataFrame(
        {"v": [1.0, 2.0, float("nan"), 4.0], "n": [1, None, 3, 4], "k": [0, 1, 1, 1]}
    )
    table = formed(rows, form)
    for call, where, row in (
        ({"where": "k == 1", "values": "v"}, "values[2]", 2),
        ({"where": "k == 1", "columns": {"values": "n + 1"}}, "n[1], read by", 1),
        (
            {"columns": {"values": "n + 1"}},
            "n[1], read by Moments.update_from, columns['values']",
            1,
        ),
        (
            {"where": "n > 0", "values": "k"},
            "n[1], read by Moments.update_from, where, column 1",
            1,
        ),
    ):
        state = Moments()
        if form == "pandas" and where.startswith("n["):
            continue  # a column of pandas has nan there
        with pytest.raises(InputError) as refused:
            state.update_from(table, **call)
        assert refused.value.where.startswith(where), refused.value.where
        assert refused.value.rows.tolist() == [row]
        assert state == Moments()


def test_the_error_of_a_null_is_that_of_the_column_with_the_place_added() -> None:
    with pytest.raises(InputError) as plain:
        Moments().update_from({"values": [1.0, None]})
    with pytest.raises(InputError) as computed:
        Moments().update_from({"a": [1.0, None]}, columns={"values": "a * 2"})
    assert computed.value.got == plain.value.got == "None"
    assert computed.value.hint.startswith(plain.value.hint)
    assert computed.value.rows.tolist() == plain.value.rows.tolist() == [1]


@pytest.mark.parametrize(
    ("columns", "where", "message"),
    [
        ({"value": "reward"}, None, "expected arguments of update (values, weights), got 'value'"),
        ({"values": "reward", "weight_": "weight * 2"}, None, "did you mean 'weights'?"),
        ({"values": "rewrd"}, None, "expected the column 'rewrd', got columns reward, weight"),
        ({"values": "rewrd * 2"}, None, "expected a column (reward, weight, values), got 'rewrd'"),
        ({"values": "reward > "}, None, "columns['values'], column 10: expected an expression"),
        ({"values": 3}, None, "expected the name of a column, or a list of names, got int 3"),
        ({"values": "a * 2", "a": "b + 1", "b": "a"}, None, "'a' of 'b' of 'a'; name a column"),
        ({"a": "a + 1", "values": "a * 1"}, None, "got 'a' of 'a'"),
        ({"reward": "weight * 2", "values": "reward"}, None, "the name of a new column, got 'rew"),
        ({"a b": "weight * 2", "values": "reward"}, None, "a name that expressions can read"),
        ({"if": "weight * 2", "values": "reward"}, None, "a name that expressions can read"),
        ({"values": "reward"}, "reward", "expected True or False, got numbers"),
        ({"values": "reward"}, "reward * 2", "where, column 8: expected a condition"),
        ({"values": "reward"}, "reward > x", "expected a column (reward, weight, values), got 'x'"),
        ({"values": "reward"}, 3, "expected an expression as a text, got 3"),
        ({"values": "reward"}, ["reward"], "expected an expression as a text, got ['reward']"),
        ("values", None, "expected a dict of columns by name, got 'values'"),
        ({1: "values"}, None, "expected a dict of columns by name, got {1: 'values'}"),
    ],
)
def test_what_is_no_column_or_condition_is_refused_in_words(
    columns: Any, where: Any, message: str
) -> None:
    state = Moments()
    with pytest.raises(InputError) as refused:
        state.update_from({"reward": [1.0], "weight": [2.0]}, columns=columns, where=where)
    assert message in str(refused.value)
    assert state == Moments()


def test_an_argument_has_one_column() -> None:
    with pytest.raises(InputError, match="expected one column of values, got two"):
        Moments().update_from({"a": [1.0]}, columns={"values": "a"}, values="a")


def test_columns_of_another_length_than_the_condition_are_refused() -> None:
    with pytest.raises(InputError, match="expected 2 values, one for each row of where, got 3"):
        Moments().update_from({"a": [1.0, 2.0, 3.0], "b": [1, 2]}, where="b > 1", values="a")


def test_a_condition_that_no_row_meets_counts_nothing() -> None:
    for empty in (Moments(), PerKey(Ratio()), Units(), Windows(Ratio(), size_s=60)):
        state = empty.empty()
        table = {
            "values": [1.0],
            "keys": ["a"],
            "numerators": [1],
            "units": ["u"],
            "times_ms": [10],
        }
        state.update_from(table, where="values < 0")
        assert state == empty


def test_other_forms_of_columns_are_filtered_too() -> None:
    masks = {"ok": np.array([True, False]), "a": (1.0, 2.0)}
    expected = Moments()
    expected.update([1.0])
    for values in (
        (1.0, 2.0),
        np.array([1.0, 2.0]),
        np.ma.array([1.0, 2.0]),
        pd.Series([1.0, 2.0]),
    ):
        state = Moments()
        state.update_from({**masks, "a": values}, where="ok", values="a")
        assert state == expected
    keyed, expected_keyed = PerKey(Ratio()), PerKey(Ratio())
    column = DictionaryColumn(np.array([0, 1]), ("x", "y"))
    keyed.update_from({**masks, "k": column, "n": [1, 1]}, where="ok", numerators="n", keys="k")
    expected_keyed.update(["x"], numerators=[1])
    assert keyed == expected_keyed
    with pytest.raises(InputError, match="one-dimensional"):
        Moments().update_from({**masks, "a": 3.0}, where="ok", values="a")


def test_lists_are_no_operand_and_a_panel_takes_written_columns() -> None:
    table = pl.DataFrame({"s": [[1, 2], [3]], "v": [1, 2]})
    with pytest.raises(InputError, match="column 1: expected one value in each row, got lists"):
        Moments().update_from(table, columns={"values": "s * 2"})
    panel = Panel({"a": Moments(), "b": Ratio()})
    panel.update_from(table, columns={"values": "v * 2", "numerators": "v > 1"})
    assert panel.compute()["a"].mean == 3.0 and panel.compute()["b"].ratio == 0.5


def test_a_sliding_window_takes_them_too() -> None:
    metric: SlidingAUC = SlidingAUC(rows=10)
    table = {"dwell": [1, 40, 50], "p": [0.1, 0.9, 0.8], "ok": [True, True, False]}
    metric.update_from(table, columns={"labels": "dwell >= 30", "scores": "p"}, where="ok")
    assert metric.compute().auc == 1.0


def test_no_input_of_a_metric_has_the_name_of_these_arguments() -> None:
    from streammetrics.authoring import Inputs, Real

    for name in ("columns", "where"):
        with pytest.raises(TypeError, match="the name is reserved"):
            Inputs(**{name: Real()})


def test_batches_do_not_change_the_state() -> None:
    random = Random(5)
    table = drawn(random, 200).to_arrow()
    columns = {"values": "max(reward * views, clicks / 3)"}
    whole: Accumulator = Moments()
    whole.update_from(table, columns=columns, where="not is_bot or surface == '搜索'")
    parts: Accumulator = Moments()
    for batch in table.to_batches(max_chunksize=7):
        parts.update_from(batch, columns=columns, where="not is_bot or surface == '搜索'")
    assert parts.digest() == whole.digest()
