"""Tables of every library give the states of their arrays."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from streammetrics import (
    Accumulator,
    GroupedAUC,
    HistogramAUC,
    InputError,
    MulticlassAUC,
    Panel,
    PerKey,
    RankingMetrics,
    Ratio,
    Regression,
    Units,
    UserGroups,
    Windows,
)
from streammetrics.core.tables import Table

pa = pytest.importorskip("pyarrow", reason="needs pyarrow: pip install '.[parquet]' in a clone")
pd = pytest.importorskip("pandas", reason="needs pandas")
pl = pytest.importorskip("polars", reason="needs polars")

START_MS = 1_763_000_000_000
DAY: dict[str, Any] = {
    "click": [0, 1, 1, 0, 1, 0],
    "p": [0.1, 0.8, 0.6, 0.2, 0.5, 0.4],
    "variant": ["a", "b", "a", "b", "a", "a"],
    "country": ["de", "fr", "de", None, "fr", "fr"],
    "user": [7, 8, 7, 9, 8, 9],
    "at": [START_MS + i * 700_000 for i in range(6)],
    "note": ["not", "a", "column", "of", "any", "metric"],
}


class Capsule:
    """A table of a library that nothing is known of but its PyCapsule."""

    def __init__(self, table: Any) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


class BatchCapsule:
    """The same for a batch."""

    def __init__(self, batch: Any) -> None:
        self._batch = batch

    def __arrow_c_array__(self, requested_schema: object = None) -> object:
        return self._batch.__arrow_c_array__(requested_schema)


def arrow_in_chunks(columns: Mapping[str, Any]) -> Any:
    """A table of Arrow whose columns lie in slices of longer chunks."""
    twice = pa.table({name: [*values, *values] for name, values in columns.items()})
    n = len(twice) // 2
    return pa.concat_tables([twice.slice(n, 2), twice.slice(2, 1), twice.slice(n + 3, n - 3)])


def type_of(values: list[Any]) -> type[object] | None:
    """The type of an array of these values; None for that of numpy."""
    return object if None in values else None


TABLES: dict[str, Callable[[Mapping[str, Any]], Table]] = {
    "dict of lists": dict,
    "dict of arrays": lambda d: {k: np.array([*v], type_of(v)) for k, v in d.items()},
    "dict of polars columns": lambda d: {k: pl.Series(v) for k, v in d.items()},
    "pandas": lambda d: pd.DataFrame(d),
    "pandas with an index": lambda d: pd.DataFrame(d, index=range(9, 9 + len(d["p"])))[::-1][::-1],
    "pandas of Arrow": lambda d: pa.table(d).to_pandas(types_mapper=pd.ArrowDtype),
    "pandas of objects": lambda d: pd.DataFrame(d, dtype=object),
    "polars": lambda d: pl.DataFrame(d),
    "Arrow": lambda d: pa.table(d),
    "Arrow in chunks": arrow_in_chunks,
    "Arrow batch": lambda d: pa.RecordBatch.from_pydict(dict(d)),
    "stream of capsules": lambda d: Capsule(pa.table(d)),
    "batch as capsules": lambda d: BatchCapsule(pa.RecordBatch.from_pydict(dict(d))),
}  # fmt: skip


def by_hour() -> Windows[Any]:
    """The AUC and the share of clicks, by hour, variant and country."""
    panel = Panel({"auc": HistogramAUC(), "ctr": Ratio()}, inputs={"ctr": {"numerators": "labels"}})
    return Windows(PerKey(panel), size_s=3600)


@pytest.mark.parametrize("make", TABLES.values(), ids=TABLES.keys())
def test_every_table_gives_the_state_of_its_columns(
    make: Callable[[Mapping[str, Any]], Table],
) -> None:
    table = make(DAY)
    hours, users, lists = by_hour(), UserGroups(HistogramAUC()), GroupedAUC()
    keyed_hours = by_hour()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hours.update_from(table, time="at", key=["variant", "country"], labels="click", scores="p")
        several = {"arm": "variant", "place": ["country", "variant"], "country": "country"}
        keyed_hours.update_from(table, time="at", key=several, labels="click", scores="p")
        users.update_from(table, groups="user", labels="click", scores="p")
        lists.update_from(table, groups="user", labels="click", scores="p")
    labels, scores = DAY["click"], DAY["p"]
    expected = by_hour()
    keys = list(zip(DAY["variant"], DAY["country"], strict=True))
    expected.update(DAY["at"], keys=keys, labels=labels, scores=scores)
    assert hours == expected
    expected = by_hour()
    places = list(zip(DAY["country"], DAY["variant"], strict=True))
    several_keys = {"arm": DAY["variant"], "place": places, "country": DAY["country"]}
    expected.update(DAY["at"], keys=several_keys, labels=labels, scores=scores)
    assert keyed_hours == expected
    of_users, of_lists = users.empty(), lists.empty()
    of_users.update(DAY["user"], labels=labels, scores=scores)
    of_lists.update(labels, scores, groups=DAY["user"])
    assert (users, lists) == (of_users, of_lists)


def test_arguments_without_a_name_have_the_columns_of_their_own_name() -> None:
    table = pd.DataFrame({"labels": [0, 1, 1], "p": [0.3, 0.2, 0.9], "weights": [1, 2, 3], 7: 0})
    weighed, expected = HistogramAUC(), HistogramAUC()
    weighed.update_from(table, scores="p")
    expected.update([0, 1, 1], [0.3, 0.2, 0.9], weights=[1, 2, 3])
    assert weighed == expected
    weighed.update_from(table[:0], scores="p")
    assert weighed == expected


UTC_TIMES = [datetime(2025, 11, 13, 2, 13, 20, 999, UTC), datetime(1969, 12, 31, 23, tzinfo=UTC)]
IN_MS = [START_MS, -3_600_000]
EACH: dict[str, tuple[Accumulator, str, list[Any], list[Any]]] = {
    "integers that may be null": (
        Ratio(),
        "numerators",
        [1, 0],
        [pd.Series([1, 0], dtype="Int64"), pd.Series([1, 0], dtype="UInt8"), pa.array([1, 0])],
    ),
    "integers of 128 bits": (
        Ratio(),
        "numerators",
        [1, 0],
        # Threads of polars make these, as below.
        [lambda: pl.Series([1, 0], dtype=pl.Int128), lambda: pl.Series([1, 0], dtype=pl.UInt128)],
    ),
    "labels as bools": (HistogramAUC(range="real"), "labels", [True, False],
        [pd.Series([True, False], dtype="boolean"), pl.Series([True, False])]),
    "categories of numbers": (Ratio(), "numerators", [4, 0],
        [pd.Series([4, 0]).astype("category"), pa.array([4, 0]).dictionary_encode()]),
    "categories of integers and nulls": (PerKey(Ratio()), "keys", [2**53 + 1, None],
        [pd.Series(pd.Categorical([2**53 + 1, None])),
         pd.Series([2**53 + 1, None], dtype="Int64").astype("category"),
         pa.array([2**53 + 1, None]).dictionary_encode()]),
    "categories without a value": (PerKey(Ratio()), "keys", [None, None],
        [pd.Series(pd.Categorical([None, None]))]),
    "categories of texts": (
        PerKey(Ratio()),
        "keys",
        ["b", "a"],
        [
            pd.Series(["x", "b", "a"]).astype("category")[1:],
            pl.Series(["x", "b", "a"], dtype=pl.Categorical)[1:],
            pl.Series(["b", "a"], dtype=pl.Enum(["a", "x", "b"])),
            pa.array(["x", "b", "a"]).dictionary_encode()[1:],
            pa.array(["b", "a"], pa.string_view()),
            pa.array(["b", "a"], pa.large_string()),
            pa.chunked_array([pa.array([x]).dictionary_encode() for x in "ba"]),
        ],
    ),
    "texts and nulls": (
        PerKey(Ratio()),
        "keys",
        ["b", None],
        [
            pd.Series(["b", None]),
            pd.Series(["b", np.nan], dtype=object),
            pd.Series(["b", None]).astype("category"),
            pl.Series(["b", None]),
            pl.Series(["b", None], dtype=pl.Categorical),
            pa.array(["b", None]),
            pa.array(["b", None]).dictionary_encode(),
            pa.DictionaryArray.from_arrays(pa.array([1, 0]), pa.array([None, "b"])),
        ],
    ),
    "decimals": (
        Regression(),
        "labels",
        [0.25, -3.5],
        [
            pa.array([Decimal("0.25"), Decimal("-3.50")]),
            pl.Series([Decimal("0.25"), Decimal("-3.50")]),
            pd.Series([Decimal("0.25"), Decimal("-3.50")]),
        ],
    ),
    "whole decimals, as sums of SQL": (
        PerKey(Ratio()),
        "keys",
        [12, 3],
        [
            pa.array([Decimal(12), Decimal(3)], pa.decimal128(38, 0)),
            pl.Series([Decimal(12), Decimal(3)], dtype=pl.Decimal(38, 0)),
        ],
    ),
    "times with a zone": (
        Windows(Ratio(), 60),
        "times_ms",
        IN_MS,
        [
            pd.Series(UTC_TIMES),
            pd.Series(UTC_TIMES).dt.tz_convert("Asia/Tokyo").dt.as_unit("ns"),
            pd.Series(UTC_TIMES).dt.tz_localize(None),
            # Threads of polars make these, which must not start on import (tests/workers.py).
            lambda: pl.Series(UTC_TIMES).dt.convert_time_zone("Europe/Berlin"),
            lambda: pl.Series(UTC_TIMES, dtype=pl.Datetime("ms", "UTC")),
            pa.array(UTC_TIMES, pa.timestamp("ns", "America/New_York")),
            pa.array(UTC_TIMES, pa.timestamp("s", "UTC")),
            UTC_TIMES,
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", EACH.values(), ids=EACH.keys())
def test_columns_of_every_kind_are_their_plain_values(
    case: tuple[Accumulator, str, list[Any], list[Any]],
) -> None:
    spec, argument, plain, columns = case
    filler = [0.5, 0.25]
    fillers = {name: filler for name, required in spec.arguments().items() if required}
    expected = spec.empty()
    expected.update(**fillers | {argument: plain})
    for given_column in columns:
        column = given_column() if callable(given_column) else given_column
        state = spec.empty()
        state.update_from(
            {"x": column, "y": filler}, **dict.fromkeys(fillers, "y") | {argument: "x"}
        )
        assert state == expected, (type(column), getattr(column, "dtype", None))


def test_a_null_is_named_by_its_row() -> None:
    for column in (
        pd.Series([1, None], dtype="Int64"),
        pd.Series([True, None], dtype="boolean"),
        pl.Series([1, None]),
        pl.Series([0.5, None]),
        pa.array([1, None]),
        pa.array([Decimal("0.5"), None]),
        pd.Series([1, None]).astype("category"),
        pd.Series([1.0, None]),
    ):
        ratio = Ratio()
        with pytest.raises(InputError, match=r"numerators\[1\]: .*drop or f") as error:
            ratio.update_from({"x": column}, numerators="x")
        assert (list(error.value.rows), ratio) == ([1], Ratio()), column


def test_lists_are_lists_of_items_or_the_rows_of_a_table() -> None:
    grades, ranks = [[1, 0], [0, 1, 2], []], [[0.1, 0.2], [0.3, 0.1, 0.2], []]
    ranked = RankingMetrics(["MRR"])
    ranked.update([1, 0, 0, 1, 2], [0.1, 0.2, 0.3, 0.1, 0.2], offsets=[0, 2, 5, 5])
    shares = [[0.1, 0.2, 0.7], [0.5, 0.25, 0.25], [1.0, 0.0, 0.0]]
    classes = MulticlassAUC(3)
    classes.update([0, 2, 1], shares)
    rows = {"grades": grades, "ranks": ranks, "class": [0, 2, 1], "shares": shares}
    fixed = pl.Series(shares, dtype=pl.Array(pl.Float64, 3))
    arrays = pd.DataFrame(rows).map(lambda v: np.array(v) if isinstance(v, list) else v)
    for table in (
        pd.DataFrame(rows), arrays, pl.DataFrame(rows), pl.DataFrame(rows | {"shares": fixed}),
        pa.table(rows), pa.table(rows).to_pandas(types_mapper=pd.ArrowDtype),
    ):  # fmt: skip
        lists, of_class, by_class = ranked.empty(), classes.empty(), PerKey(classes.empty())
        lists.update_from(table, labels="grades", scores="ranks")
        of_class.update_from(table, labels="class", scores="shares")
        assert (lists, of_class) == (ranked, classes)
    table = pl.DataFrame({f"p{i}": [row[i] for row in shares] for i in range(3)})
    by_class.update_from(table.with_columns(y=pl.Series([0, 2, 1]), k=pl.lit("k")),
                         key="k", labels="y", scores=["p0", "p1", "p2"])  # fmt: skip
    assert by_class.state("k") == classes
    for column in (pd.Series([[1], None]), pl.Series([[1], [None]]), pl.Series([[1], None])):
        with pytest.raises(InputError, match="column 'x': expected lists without nulls"):
            ranked.update_from({"x": column}, labels="x")


def test_an_integer_is_refused_beside_a_column_or_a_list_of_floats() -> None:
    table = {"y": [0, 1], "a": [2**53 + 1, 1], "b": [0.5, 1.0]}
    for frame in (table, pd.DataFrame(table), pl.DataFrame(table), pa.table(table)):
        with pytest.raises(InputError, match=r"scores\[0, 0\]: .* got 9007199254740993;"):
            MulticlassAUC(2, exact=True).update_from(frame, labels="y", scores=["a", "b"])  # type: ignore[arg-type]
    lists = pd.DataFrame({"labels": [[1, 0], [1]], "scores": [[2**53 + 1, 2.0**53], [0.5]]})
    with pytest.raises(InputError, match=r"scores\[0\] \(list 0\): .* got 9007199254740993;"):
        RankingMetrics(["DCG@1"]).update_from(lists)


def test_pandas_polars_and_capsules_need_no_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    frame, capsule = pd.DataFrame(DAY), Capsule(pl.DataFrame(DAY))
    objects = pd.DataFrame({"numerators": pd.Series([1, 0], dtype="Int64")})
    expected = PerKey(Ratio())
    expected.update(DAY["variant"], numerators=DAY["click"])
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for table in (frame, pl.DataFrame(DAY), capsule):
        state = expected.empty()
        state.update_from(table, key="variant", numerators="click")
        assert state == expected
    ratio = Ratio()
    ratio.update_from(objects)
    assert ratio.compute().ratio == 0.5
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(InputError, match=r"expected pyarrow or polars.*neither.*pip install"):
        ratio.update_from(capsule)


AUC = "HistogramAUC.update_from"
MISTAKES: list[tuple[Callable[[], object], dict[str, Any], str]] = [
    (
        lambda: pd.DataFrame(DAY),
        {"labels": "clik", "scores": "p"},
        f"{AUC}, labels: expected the column 'clik', got columns click, p, variant, country, user, "
        "at, note; did you mean 'click'?",
    ),
    (
        lambda: pl.DataFrame(DAY),
        {"scores": "p"},
        f"{AUC}, labels: expected the column 'labels', got columns click, p, variant, country, "
        'user, at, note; name the column, as in labels="click"',
    ),
    (
        lambda: pa.table(DAY),
        {"label": "click", "scores": "p"},
        f"{AUC}: expected arguments of update (labels, scores, weights), got 'label'; did you mean "
        "'labels'?",
    ),
    (
        lambda: DAY,
        {"labels": [0, 1], "scores": "p"},
        f"{AUC}, labels: expected the name of a column, or a list of names, got list [0, 1]; pass "
        'labels="name"; columns themselves go to update',
    ),
    (
        lambda: [{"label": 1}],
        {"labels": "label"},
        f"{AUC}: expected a table: pandas, polars, Arrow, or a dict of arrays, got list "
        """[{'label': 1}]; pass columns, not rows: {"label": [...], "score": [...]}""",
    ),
    (
        lambda: pa.table([pa.array([1]), pa.array([2])], ["labels", "labels"]),
        {},
        "column 'labels': expected one column of this name, got several; rename the others",
    ),
    (
        lambda: DAY,
        {"labels": ["click", "user"], "scores": "p"},
        "labels: expected a one-dimensional array [n], got shape [6, 2]; pass one value for each "
        "row: if they are one-hot, pass argmax(axis=1)",
    ),
    (
        lambda: DAY | {"click": [0, 1]},
        {"labels": "click", "scores": "p"},
        "scores: expected 2 values, one for each row of labels, got 6; pass arrays of equal length",
    ),
    (
        lambda: pd.DataFrame(DAY | {"p": [f"{p}" for p in DAY["p"]]}),
        {"labels": "click", "scores": "p"},
        "scores: expected numbers, got texts or categories, such as '0.1'; convert the column "
        "first",
    ),
    (
        lambda: pd.DataFrame(DAY | {"p": pd.period_range("2025", periods=6)}),
        {"labels": "click", "scores": "p"},
        "column 'p': expected numbers, texts or times, got "
        "extension<pandas.period<ArrowPeriodType>>; convert them, for example with "
        'dt.to_timestamp() or astype("str")',
    ),
    (
        lambda: pd.DataFrame(np.zeros((2, 2))),
        {"labels": "click", "scores": "p"},
        f"{AUC}, labels: expected the column 'click', got columns 0, 1; give the columns names "
        "that are texts",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("make", "columns", "text"), MISTAKES)
def test_mistakes_are_refused_with_what_to_pass(
    make: Callable[[], Table], columns: dict[str, Any], text: str
) -> None:
    metric = HistogramAUC()
    with pytest.raises(InputError) as error:
        metric.update_from(make(), **columns)
    assert (str(error.value), metric) == (text, HistogramAUC())


def test_other_things_than_tables_are_refused_with_their_table() -> None:
    rows = 'pass columns, not rows: {"label": [...], "score": [...]}'
    for value, hint in (
        (pl.LazyFrame(DAY), "pass table.collect()"),
        ("day.parquet", "read it first, for example with pandas.read_parquet"),
        (np.zeros((2, 2)), rows),
        (pd.Series([1, 0]), "pass the table that it is a column of"),
        (pl.Series([1, 0]), "pass the table that it is a column of"),
        (pa.array([1, 0]), "pass the table that it is a column of"),
        (
            pd.DataFrame(DAY).groupby("user"),
            'pass the table itself; PerKey(metric) counts each group, with key="column"',
        ),
        (
            object(),
            "pass a table of one of these libraries, such as its to_pandas() or to_arrow()",
        ),
    ):
        with pytest.raises(InputError, match="expected a table: pandas") as error:
            Ratio().update_from(value)  # type: ignore[arg-type]
        assert error.value.hint == hint


def test_an_unknown_or_missing_name_says_which_column_to_name() -> None:
    rows = {"click": [0, 1], "p": [0.1, 0.2], "who": ["a", "b"]}
    for columns, hint in (
        ({"variant": "who"}, "name the column of keys, as in keys='who'"),
        ({}, 'name the column, as in keys="who"'),
    ):
        with pytest.raises(InputError) as error:
            PerKey(HistogramAUC()).update_from(rows, labels="click", scores="p", **columns)
        assert error.value.hint == hint


def test_columns_of_keys_by_name_are_named_as_others_are() -> None:
    rows = {"click": [0, 1], "arm": ["a", "b"], "lists": pl.Series([["a"], ["b"]])}
    for key_columns, message in (
        ({"x": "arn"}, "keys['x']: expected the column 'arn', got columns click, arm, lists; did"),
        ({"x": ["arm", 1]}, "keys['x']: expected the name of a column, or a list of names"),
        ({"x": {"y": "arm"}}, 'pass keys={"variant": "name"}; columns themselves go to update'),
        ({"x": "lists"}, "column 'lists': expected a column of texts or integers, got lists"),
        ({1: "arm"}, "keys: expected names of columns of keys that are strings, got 1 (int)"),
        ({}, "keys: expected a column of keys, or at least one in a dict by name, got none"),
    ):
        state = PerKey(Ratio())
        with pytest.raises(InputError, match=re.escape(message)):
            state.update_from(rows, keys=key_columns, numerators="click")  # type: ignore[arg-type]
        assert state == state.empty()
    with pytest.raises(InputError, match="labels: expected the name of a column"):
        HistogramAUC().update_from(rows, labels={"x": "click"}, scores="click")


def test_a_structured_array_is_a_table() -> None:
    metric = HistogramAUC()
    rows = np.array([(0, 0.1), (1, 0.8)], [("click", int), ("p", float)])
    metric.update_from(rows, labels="click", scores="p")
    assert metric.compute().rows == 2


def test_dates_and_texts_that_are_times_are_refused_with_how_to_convert_them() -> None:
    windows = Windows(Ratio(), size_s=60)
    for column, hint in (
        (["2025-01-01"], "parse them first"),
        ([date(2025, 1, 1)], "midnight in UTC"),
    ):
        for table in (pd.DataFrame({"t": column}), pl.DataFrame({"t": column}), {"t": column}):
            with pytest.raises(InputError, match=hint) as error:
                windows.update_from({"x": [1]} | {"t": table["t"]}, time="t", numerators="x")
            assert 'numpy.array(times, "datetime64[ms]")' in error.value.hint


def test_a_user_without_an_id_is_named_by_its_row_however_the_column_is_encoded() -> None:
    users = UserGroups(Ratio())
    for column in (pd.Series(["a", "a", None]), pl.Series(["a", "a", None])):
        with pytest.raises(InputError, match="drop or fill the rows without an id") as error:
            users.update_from({"u": column, "x": [1, 0, 1]}, groups="u", numerators="x")
        assert error.value.where == "groups[2]"


def test_columns_of_different_lengths_are_no_tuples() -> None:
    rows = {"numerators": [1, 0], "a": ["x", "y"], "b": [1]}
    with pytest.raises(InputError, match="b: expected 2 values, one for each row of a, got 1"):
        PerKey(Ratio()).update_from(rows, key=["a", "b"])


def test_a_relation_of_duckdb_is_a_table() -> None:
    duckdb = pytest.importorskip("duckdb", reason="needs duckdb")
    units, ratio = Units(), Ratio()
    relation = duckdb.sql("select * from (values ('ann', 0.5), ('bo', 1)) as rows(who, amount)")
    units.update_from(relation, units="who")
    ratio.update_from(relation, numerators="amount")
    assert (units.compute().units, ratio.compute().ratio) == (2.0, 0.75)
