"""One exact sum is written and read by another way than many, with the same bytes."""

from __future__ import annotations

import math

import hypothesis.strategies as st
import numpy as np
from hypothesis import given

from streammetrics import Ratio
from streammetrics.core.bytes.codec import Reader, Writer
from streammetrics.core.parts.exact_sum import ExactSum, ExactSumColumn

VALUES = st.lists(
    st.floats(allow_nan=False, allow_infinity=True) | st.integers(-(1 << 60), 1 << 60).map(float),
    max_size=6,
)


def written(column: ExactSumColumn) -> bytes:
    out = Writer()
    column.encode(out)
    return out.bytes_()


def read(data: bytes, width: int) -> ExactSumColumn:
    reader = Reader(data)
    column = ExactSum().decode(Ratio(), width, reader)
    reader.finish()
    return column


@given(VALUES)
def test_a_sum_alone_is_what_it_is_beside_others(values: list[float]) -> None:
    one = ExactSumColumn(1)
    one.add(np.array(values, np.float64))
    alone = written(one)
    beside = read(written(one.take(np.array([0, 0]))), 2).take(np.array([1]))
    back = read(alone, 1)
    assert written(beside) == alone == written(back)
    assert written(back.take(np.array([0, 0]))) == written(one.take(np.array([0, 0])))
    assert back.value() == one.value() or math.isnan(one.value())
