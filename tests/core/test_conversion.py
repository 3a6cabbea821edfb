"""Columns of pandas, polars and pyarrow, and what tensors need, as every metric takes them.

Tensors are played by small classes that do what torch 2.15 does when numpy asks: refuse a gradient,
a type that numpy lacks, and memory that is not the CPU's. Real ones, which need torch, are in
tests/peers/test_real_tensors.py.
"""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from streammetrics import (
    CatalogMetrics,
    GroupedAUC,
    HistogramAUC,
    InputError,
    IntraListSimilarity,
    JoinRows,
    PerKey,
    RankingMetrics,
    Ratio,
    SettingsError,
    SlidingAUC,
    Units,
    Windows,
    hash_ids,
)
from streammetrics.core.conversion import FLOAT64, array_of, as_float, exact, plain, vector, whole
from streammetrics.core.ids.keys import dictionary_column
from streammetrics.results.rates import Rates
from streammetrics.results.score_curve import ScoreCurve

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

Make = Callable[[list[object]], object]


@pytest.fixture(scope="module", autouse=True)
def libraries() -> None:
    """Imported by the worker that runs these tests, and not by each that collects them."""
    global pa, pd, pl
    import pandas as pd
    import polars as pl
    import pyarrow as pa


# What makes a column of integers, of which one may be missing.
INTEGERS: dict[str, Make] = {
    "pandas Int64": lambda v: pd.Series(v, dtype="Int64"),
    "pandas int32[pyarrow]": lambda v: pd.Series(v, dtype="int32[pyarrow]"),
    "pandas object": lambda v: pd.Series(v, dtype=object),
    "a column of a pandas frame": lambda v: pd.DataFrame({"x": v}, index=range(5, 5 + len(v)))["x"],
    "polars": lambda v: pl.Series(v, dtype=pl.Int64),
    "polars UInt8": lambda v: pl.Series(v, dtype=pl.UInt8),
    "polars, in chunks": lambda v: pl.concat([pl.Series(v[:1]), pl.Series(v[1:])], rechunk=False),
    "pyarrow": lambda v: pa.array(v, pa.int64()),
    "pyarrow, in chunks": lambda v: pa.chunked_array([v[:1], v[1:]], pa.int64()),
    "pyarrow dictionary": lambda v: pa.array(v, pa.int64()).dictionary_encode(),
}
FLOATS: dict[str, Make] = {
    "pandas": lambda v: pd.Series(v),
    "pandas Float64": lambda v: pd.Series(v, dtype="Float64"),
    "pandas double[pyarrow]": lambda v: pd.Series(v, dtype="double[pyarrow]"),
    "polars": lambda v: pl.Series(v, dtype=pl.Float64),
    "polars Float32": lambda v: pl.Series(v, dtype=pl.Float32),
    "pyarrow": lambda v: pa.array(v, pa.float64()),
    "pyarrow half": lambda v: pa.array(
        [x if x is None else np.float16(x) for x in v], pa.float16()
    ),
}
STRINGS: dict[str, Make] = {
    "pandas str": lambda v: pd.Series(v, dtype="str"),
    "pandas string": lambda v: pd.Series(v, dtype="string"),
    "pandas object": lambda v: pd.Series(v, dtype=object),
    "pandas category": lambda v: pd.Series(v, dtype="category"),
    "polars": lambda v: pl.Series(v, dtype=pl.String),
    "polars Categorical": lambda v: pl.Series(v, dtype=pl.Categorical),
    "polars Enum": lambda v: pl.Series(v, dtype=pl.Enum(["a", "b", "c"])),
    "pyarrow": lambda v: pa.array(v, pa.string()),
    "pyarrow large": lambda v: pa.array(v, pa.large_string()),
    "pyarrow dictionary": lambda v: pa.array(v, pa.string()).dictionary_encode(),
    "numpy's of any length": lambda v: np.array(v, np.dtypes.StringDType(na_object=None)),
}


def refused(update: Callable[..., Any], *columns: object, **more: object) -> InputError:
    with pytest.raises(InputError) as error:
        update(*columns, **more)
    return error.value


def test_columns_of_integers_are_labels_numbers_ids_keys_and_times() -> None:
    scores, ones = [0.1, 0.2, 0.3, 0.4], [1, 1, 1, 1]
    for kind, make in INTEGERS.items():
        column = make([0, 1, 1])
        auc, gauc = HistogramAUC(), GroupedAUC()
        auc.update(column, [0.25, 0.5, 0.75])
        gauc.update([0, 1, 1], [0.25, 0.5, 0.75], groups=column)
        ratio, keyed, hourly = Ratio(), PerKey(Ratio()), Windows(Ratio(), 1)
        ratio.update(column)
        keyed.update(column, numerators=[1, 1, 1])
        hourly.update(make([0, 1, 101]), numerators=column)
        assert auc.compute().positives == ratio.compute().numerator == gauc.compute().groups == 2
        assert set(keyed.compute()) == {0, 1}
        assert hourly.compute().total.rows == 3
        # Without the question for a missing one numpy would see floats, and all rows were wrong.
        missing = make([1, None, 0, None])
        for name, error in {
            "labels": refused(HistogramAUC().update, missing, scores),
            "groups": refused(GroupedAUC().update, ones, scores, groups=missing),
            "numerators": refused(Ratio().update, missing),
            "keys": refused(PerKey(Ratio()).update, missing, numerators=ones),
            "times_ms": refused(Windows(Ratio(), 1).update, missing, numerators=ones),
        }.items():
            assert (error.where, error.rows.tolist()) == (f"{name}[1]", [1, 3]), kind
            assert (error.got, error.hint[:22]) == ("a missing value", "drop or fill the 2 row")


def test_columns_of_floats_are_scores() -> None:
    for make in FLOATS.values():
        auc, sliding = HistogramAUC(), SlidingAUC(5)
        for metric in (auc, sliding):
            error = refused(metric.update, [0, 1, 1], make([0.5, 0.5, None]))
            assert (error.where, error.rows.tolist()) == ("scores[2]", [2])
            metric.update([0, 1, 1], make([0.25, 0.5, 0.75]))
        assert float(auc.compute().auc) == sliding.compute().auc == 1.0


def test_columns_of_strings_are_ids_and_keys() -> None:
    for make in STRINGS.values():
        for ids in ("exact", "hashed"):
            gauc, keyed, column = GroupedAUC(ids=ids), PerKey(Ratio()), make(["b", "a", "b"])
            gauc.update([0, 1, 1], [0.25, 0.5, 0.75], groups=column)
            keyed.update(column, numerators=[1, 1, 1])
            assert (gauc.compute().gauc, gauc.compute().groups) == (1.0, 2)
            assert set(keyed.compute()) == {"a", "b"}
        column = make(["a", None, "b"])
        for error in (
            refused(GroupedAUC(ids="exact").update, [0, 1, 1], [0.1, 0.2, 0.3], groups=column),
            refused(PerKey(Ratio()).update, column, numerators=[1, 1, 1]),
        ):
            assert (error.got, error.rows.tolist()) == ("a missing value", [1])


def test_a_column_of_texts_keeps_the_zeros_at_their_ends() -> None:
    texts = ["a", "a\0", "\0"]
    for make in STRINGS.values():
        if make is not STRINGS["polars Enum"]:
            assert vector(make([*texts]), "users").tolist() == texts
            units = Units()
            units.update(make([*texts]))
            assert units.compute().units == 3
    state = JoinRows({"user": "hashed"}, {"click": "once"}, 10)
    state.update_impressions([1, 2, 3], [0, 0, 0], user=pl.Series(texts))
    assert sorted(state.close(100).columns["user"]) == sorted(hash_ids(texts))


def test_what_a_library_cannot_convert_is_refused() -> None:
    wide = pl.Series([0, 1], dtype=pl.Int128)  # numpy has no such type
    error = refused(Ratio().update, wide)
    assert (error.where, error.expected) == ("numerators", "what numpy can convert")
    for column in (wide, [wide, wide], Unreadable()):
        refused(vector, column, "scores")
        refused(HistogramAUC().update, [0, 1], column)
    state = JoinRows({"price": "int64"}, {"click": "once"}, 10)
    assert refused(state.update_impressions, [1, 2], [0, 0], price=wide).where == "price"
    assert refused(state.update_outcomes, "click", [1, 2], [0, 0], event_ids=wide).rows.size == 0


def test_none_is_a_key_in_a_list_and_missing_in_a_column() -> None:
    for keys in (["a", None], np.array(["a", None], object)):
        assert dictionary_column(keys).values == ("a", None)
    assert refused(dictionary_column, pl.Series(["a", None])).rows.tolist() == [1]


def test_missing_and_masked_values_are_refused_with_their_rows() -> None:
    for value in (None, pd.NA, float("nan")):
        for error in (
            refused(HistogramAUC().update, [1, value], [0.5, 0.5]),
            refused(HistogramAUC().update, [1, 0], [0.5, value]),
            refused(Windows(Ratio(), 1).update, [1, value], numerators=[1, 1]),
        ):
            assert error.rows.tolist() == [1] or isinstance(value, float)
            assert 1 in error.rows
    masked = np.ma.masked_equal([1, 5, 0], 5)
    assert refused(HistogramAUC().update, masked, [0.5] * 3).rows.tolist() == [1]
    error = refused(array_of, np.ma.masked_equal([[1, 5], [5, 0]], 5), "labels")
    assert (error.where, error.rows.tolist()) == ("labels[0, 1]", [0, 1])


TABLES: dict[str, Make] = {
    "pandas frame": lambda v: pd.DataFrame(v),
    "pandas frame, nullable": lambda v: pd.DataFrame(v).convert_dtypes(),
    "pandas lists": lambda v: pd.Series(v),
    "polars frame": lambda v: pl.DataFrame(v, orient="row"),
    "polars List": lambda v: pl.Series(v),
    "polars Array": lambda v: pl.Series(v, dtype=pl.Array(pl.Float64, 2)),
    "pyarrow table": lambda v: pa.table({"a": [v[0][0], v[1][0]], "b": [v[0][1], v[1][1]]}),
    "pyarrow lists": lambda v: pa.array(v),
    "pyarrow lists of two": lambda v: pa.array(v, pa.list_(pa.float64(), 2)),
}


def test_frames_and_columns_of_lists_are_tables() -> None:
    for make in TABLES.values():
        lists = RankingMetrics(["MRR"])
        lists.update(make([[1, 0], [0, 1]]), make([[0.5, 0.25], [0.5, 0.25]]))
        assert lists.compute()["MRR"] == 0.75
        vectors: Any = make([[0.5, 0.25], [0.5, 0.25]])
        similarity, catalog = IntraListSimilarity(vectors), CatalogMetrics(4, 2)
        for metric in (similarity, catalog):
            metric.update(np.array([[0, 1]]))
        assert (similarity.compute().ils, catalog.compute().coverage) == (1.0, 0.5)


def test_columns_of_lists_of_any_length_are_lists_of_items() -> None:
    makes: list[Make] = [pl.Series, pa.array, pd.Series, lambda v: pa.chunked_array([v])]
    for make in makes:
        catalog = CatalogMetrics(8, 3)
        catalog.update(make([[0, 1, 2], [3]]))
        assert catalog.compute().coverage == 0.5
        metric = RankingMetrics(["MRR"])
        metric.update(make([[1, 0], [1]]), make([[0.5, 0.5], [0.5]]))
        assert metric.compute()["MRR"] == 0.875


def test_a_missing_value_of_a_table_is_refused_with_its_place() -> None:
    for frame in (
        pd.DataFrame([[1, 1], [1, None]]).astype("Int64"),
        pl.DataFrame([[1, 1], [1, None]], orient="row"),
        pa.array([[1, 1], [1, None]]),
    ):
        error = refused(RankingMetrics(["MRR"]).update, frame, np.ones((2, 2)))
        assert (error.where, error.rows.tolist()) == ("labels[1, 1]", [1])


class Tensor:
    """A tensor of torch as numpy meets it."""

    def __init__(
        self, values: np.ndarray, *, grad: bool = False, dtype: str = "", device: str = "cpu"
    ) -> None:
        self.values, self.grad, self.dtype, self.device = values, grad, dtype, device

    def detach(self) -> Tensor:
        return Tensor(self.values, dtype=self.dtype, device=self.device)

    def is_floating_point(self) -> bool:
        return self.values.dtype.kind == "f"

    def float(self) -> Tensor:
        return Tensor(self.values.astype(np.float32), device=self.device)

    def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
        if self.grad:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad.")
        if self.device != "cpu":
            raise TypeError(f"can't convert {self.device} device type tensor to numpy.")
        if self.dtype:
            raise TypeError(f"Got unsupported ScalarType {self.dtype}")
        return self.values


class Shared:
    """What has `__dlpack__` and no `__array__`."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values

    def __dlpack__(self, **how: object) -> object:
        return self.values.__dlpack__(**how)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.values.__dlpack_device__()


class Unreadable:
    """A column of a library with errors of its own."""

    def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
        raise LookupError("no such type")


class Frame:
    """What has `to_numpy` alone."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values

    def to_numpy(self) -> np.ndarray:
        return self.values


def test_tensors_leave_their_gradient_and_types_that_numpy_lacks_become_float32() -> None:
    halves = np.array([0.25, 0.5, 0.75], np.float32)
    for tensor in (
        Tensor(halves),
        Tensor(halves, grad=True),
        Tensor(halves, grad=True, dtype="BFloat16"),
        Shared(halves),
        Frame(halves),
    ):
        array = vector(tensor, "scores")
        assert (array.dtype, array.tolist()) == (np.float32, halves.tolist())
        assert array_of(tensor, "scores").tolist() == halves.tolist()
    assert np.shares_memory(vector(Tensor(halves, grad=True), "scores"), halves)


def test_tensors_on_a_gpu_are_refused_with_what_to_do() -> None:
    for dtype in ("", "BFloat16"):
        tensor = Tensor(np.ones((2, 2), np.float32), dtype=dtype, device="cuda:0")
        error = refused(RankingMetrics(["MRR"]).update, [[0, 1], [0, 1]], tensor)
        assert (error.got, error.where) == ("Tensor on cuda:0", "scores")
        assert "tensor.cpu()" in error.hint


def test_what_is_no_array_is_refused() -> None:
    whole = Tensor(np.array([1, 2]), dtype="QInt8")
    for values in (whole, [[1, 2], [3]], object(), "abc", {1, 2}):
        assert refused(vector, values, "scores").where == "scores"
    with pytest.raises(SettingsError, match="rows of equal length"):
        IntraListSimilarity([[1.0, 2.0], [3.0]])


def test_no_library_is_imported_for_its_columns() -> None:
    code = (
        "import sys, streammetrics as s; s.HistogramAUC().update([0, 1], [0.1, 0.2]);"
        "print({'pandas', 'polars', 'pyarrow', 'torch'} & set(sys.modules))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "set()"


# -- single values, and the arguments of results ---------------------------------------------------


def test_scalars_of_numpy_become_those_of_python_exactly() -> None:
    for value, expected in (
        (np.float32(0.1), 0.10000000149011612),
        (np.float16(0.5), 0.5),
        (np.int8(-3), -3),
        (np.uint64(2**64 - 1), 2**64 - 1),
        (np.bool_(True), True),
        (np.str_("a"), "a"),
        ((np.int64(1), (np.float32(0.5), "x")), (1, (0.5, "x"))),
        ([np.int64(1)], [1]),
    ):
        result = plain(value)
        assert result == expected and type(result) is type(expected)
    for value in (np.longdouble(1), np.timedelta64(1, "s"), np.ones(2), None, object(), {"a": 1}):
        assert type(plain(value)) is type(value)


def test_whole_and_exact_numbers_and_floats_are_told_from_all_else() -> None:
    assert [whole(v) for v in (3, np.int64(3), np.uint8(3), np.array(3))] == [3] * 4
    for value in (True, np.bool_(True), 3.0, "3", None, np.timedelta64(3, "s"), np.ones(2)):
        assert whole(value) is None
    for value in (0.5, np.float32(0.5), Fraction(1, 2), Decimal("0.5")):
        assert exact(value) == Fraction(1, 2)
    nones: list[object] = [True, "0.5", None, math.nan, math.inf, Decimal("sNaN"), 1j]
    for none in nones:
        assert exact(none) is None
    assert exact(10**400) == 10**400
    assert as_float(np.float32(0.1)) == float(np.float32(0.1))
    assert as_float(Fraction(1, 3)) == 1 / 3
    assert (as_float(-math.inf), str(as_float(-0.0))) == (-math.inf, "0.0")
    for value in (10**400, Fraction(10**400), math.nan, Decimal("sNaN"), True, "1", None, 1j):
        assert as_float(value) is None


AIMS = (
    'ScoreCurve.best(by): expected "youden", "product", "distance", "accuracy", "precision", '
    '"recall" or "f_beta", got'
)
CURVE = ScoreCurve(np.arange(3.0), np.array([[1, 1, 0], [0, 1, 1]]), True, 4)
RATES = Rates(tp=3, fp=1, fn=2, tn=4)
REFUSED: list[tuple[Callable[..., object], tuple[Any, ...], str]] = [
    (
        RATES.f_beta,
        ("1",),
        "Rates.f_beta(b): expected a finite number of at least 0, got '1'; "
        "pass 1 for equal weights",
    ),
    (
        RATES.f_alpha,
        (None,),
        "Rates.f_alpha(a): expected a share from 0 to 1, got None; pass another value",
    ),
    (
        partial(RATES.f_beta, zero_division=0.5),
        (1,),
        "Rates.f_beta(zero_division): expected 0, 1 or nan, got 0.5; pass one of these",
    ),
    (
        CURVE.confusion,
        (10**400,),
        f"ScoreCurve.confusion(t): expected {FLOAT64}, got 1{'0' * 58}…; pass another value",
    ),
    (
        CURVE.confusion,
        (2**53 + 1,),
        f"ScoreCurve.confusion(t): expected {FLOAT64}, got 9007199254740993; pass another value",
    ),
    (
        CURVE.rela_impr,
        (0.7,),
        "ScoreCurve.rela_impr(base): expected a ScoreCurve, got 0.7; "
        "pass the result of the other model, not its area",
    ),
    (
        CURVE.lift,
        (0,),
        "ScoreCurve.lift(k): expected a number of parts, 1 to 10,000, got 0; "
        "pass 10 for tenths of the rows",
    ),
    (
        CURVE.gain,
        (10**9,),
        "ScoreCurve.gain(k): expected a number of parts, 1 to 10,000, got 1000000000; "
        "pass 10 for tenths of the rows",
    ),
    (
        CURVE.partial_auc,
        (2,),
        "ScoreCurve.partial_auc(max_fpr): expected a rate above 0 and at most 1, got 2; "
        "if it is a percentage, pass 2 / 100",
    ),
    (
        CURVE.best,
        ("f1",),
        f"{AIMS} 'f1'; pass by=\"f_beta\", which is F1 by default, and beta=2 for another F",
    ),
    (CURVE.best, ("KS",), f"{AIMS} 'KS'; pass \"youden\", which is TPR - FPR"),
    (
        partial(CURVE.best, positives_share=0.25),
        ("youden",),
        'ScoreCurve.best(positives_share): expected None, since by="youden", got 0.25; '
        'leave it out, or pass by="accuracy"',
    ),
    (
        partial(CURVE.best, beta=2),
        ("recall",),
        'ScoreCurve.best(beta): expected None, since by="recall", got 2; '
        'leave it out, or pass by="f_beta"',
    ),
    (
        partial(CURVE.best, recall_at_least=80),
        ("precision",),
        "ScoreCurve.best(recall_at_least): expected a share from 0 to 1, got 80; "
        "if it is a percentage, pass 80 / 100",
    ),
]


def test_arguments_of_results_are_refused_in_four_parts() -> None:
    for call, arguments, message in REFUSED:
        with pytest.raises(InputError) as error:
            call(*arguments)
        assert str(error.value) == message


def test_arguments_of_results_may_be_numbers_of_any_kind() -> None:
    for half in (*(kind(0.5) for kind in (np.float16, np.float64)), Fraction(1, 2), Decimal("0.5")):
        number: Any = half
        assert CURVE.partial_auc(number) == CURVE.partial_auc(0.5)
        assert CURVE.confusion(number) == CURVE.confusion(0.5)
        best = CURVE.best("accuracy", positives_share=0.5)
        assert CURVE.best("accuracy", positives_share=number) == best
        assert RATES.f_beta(number) == RATES.f_beta(0.5)
        assert RATES.f_alpha(number) == RATES.f_alpha(0.5)
    two: Any = np.uint8(2)
    assert (CURVE.gain(two), CURVE.lift(two)) == (CURVE.gain(2), CURVE.lift(2))


def test_an_average_precision_without_a_negative_above_a_positive_is_exactly_1() -> None:
    for labels in ([1, 1, 1], [0, 1, 1]):
        for metric in (HistogramAUC(), HistogramAUC(grid="equal", resolution=2)):
            metric.update(labels, [0.2, 0.75, 0.9])
            for area in (metric.compute().ap, metric.compute().pr_auc_trapezoid):
                assert (area.value, area.low, area.high) == (1.0, 1.0, 1.0)  # type: ignore[union-attr]
