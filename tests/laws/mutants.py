"""Metrics that are broken on purpose, each in one way; `test_mutants.py` says by which law."""

from __future__ import annotations

import struct
import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from streammetrics import Bounded
from streammetrics.core import checks
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.batch import Batch
from streammetrics.core.codec import Reader, Writer, damaged, unframe
from streammetrics.core.errors import InputError
from streammetrics.core.parts.counts import Counts
from streammetrics.core.parts.part import Column, Part, Slots
from tests.laws.clicks import Clicked, Clicks, WithInterval, clicked

# -- parts that keep what parts should not: floats, orders, too little --------------------------


class ArrayColumn(Column):
    """States [width, n] of any dtype, added as they are and written as they lie."""

    def __init__(self, values: NDArray[Any]) -> None:
        self.values, self.width = values, len(values)

    total_count = property(lambda self: 0)
    nbytes = property(lambda self: self.values.nbytes)

    def widen(self, width: int) -> None:
        padding = np.zeros((width - self.width, self.values.shape[1]), self.values.dtype)
        self.values, self.width = np.concatenate([self.values, padding]), width

    def merge(self, other: Self, to: Slots) -> None:
        np.add.at(self.values, to, other.values)

    def take(self, slots: Slots) -> Self:
        return type(self)(self.values[slots])

    def encode(self, out: Writer) -> None:
        out.raw(self.values.tobytes())

    def dense(self) -> NDArray[Any]:
        return self.values[0].copy()


class LastColumn(ArrayColumn):
    """The last row that came, and whether one came."""

    def merge(self, other: Self, to: Slots) -> None:
        mask = other.values[:, 1] > 0
        self.values[to[mask]] = other.values[mask]


class Array(Part[ArrayColumn]):
    """`n` numbers of a dtype."""

    def __init__(self, n: int, dtype: type, column: type[ArrayColumn] = ArrayColumn) -> None:
        self.n, self.dtype, self.column = n, dtype, column

    def empty(self, owner: Any, width: int) -> ArrayColumn:
        return self.column(np.zeros((width, self.n), self.dtype))

    def decode(self, owner: Any, width: int, data: Reader) -> ArrayColumn:
        raw = data.raw(width * self.n * np.dtype(self.dtype).itemsize)
        return self.column(np.frombuffer(raw, self.dtype).reshape(width, self.n).copy())


class DictColumn(Column):
    """Counts by label in a dictionary, written in the order in which labels came; one slot."""

    def __init__(self, counts: dict[int, int]) -> None:
        self.counts, self.width = counts, 1

    total_count = property(lambda self: 0)
    nbytes = property(lambda self: 100 * len(self.counts))

    def widen(self, width: int) -> None:
        raise NotImplementedError

    def add(self, label: int, n: int) -> None:
        self.counts[label] = self.counts.get(label, 0) + n

    def merge(self, other: Self, to: Slots) -> None:
        for label, n in other.counts.items():
            self.add(label, n)

    def take(self, slots: Slots) -> Self:
        return type(self)(dict(self.counts))

    def encode(self, out: Writer) -> None:
        out.uint(len(self.counts))
        for label, n in self.counts.items():
            out.uint(label)
            out.uint(n)


class Dict(Part[DictColumn]):
    """Counts by label."""

    def empty(self, owner: Any, width: int) -> DictColumn:
        return DictColumn({})

    def decode(self, owner: Any, width: int, data: Reader) -> DictColumn:
        return DictColumn({data.uint(): data.uint() for _ in range(data.uint(2))})


class ForgetfulColumn(ArrayColumn):
    """Writes how many rows there are, but not of which label."""

    def encode(self, out: Writer) -> None:
        for total in self.values.sum(axis=1).tolist():
            out.raw(struct.pack("<qq", total, 0))


# -- the mutants ----------------------------------------------------------------------------


class Sound(Clicks, schema="mutant-sound/1"):
    """Nothing is wrong with it."""

    step: int = 1
    counts = Counts(2)


class FloatTotals(Clicks, schema="mutant-float-totals/1"):
    """Adds scores up in float64."""

    counts = Counts(2)
    total = Array(1, np.float64)

    def _accumulate(self, batch: Batch, slots: Slots | None) -> None:
        super()._accumulate(batch, slots)
        self.total.values[0, 0] += batch.scores.sum()


class Float32Counter(Clicks, schema="mutant-float32-counter/1"):
    """Counts in float32, which stops at 16,777,216."""

    counts = Array(2, np.float32)

    def _accumulate(self, batch: Batch, slots: Slots | None) -> None:
        np.add.at(self.counts.values[0], batch.labels, np.float32(1))


class KeepsTheCallersArrays(Clicks, schema="mutant-keeps-arrays/1"):
    """Remembers a batch without copying it."""

    counts = Counts(2)

    def _update(self, batch: Batch) -> None:
        self.__dict__.setdefault("_held", []).append(batch)

    def _flush(self) -> None:
        for batch in self.__dict__.pop("_held", []):
            self._accumulate(batch, None)


class SortsTheCallersArrays(Clicks, schema="mutant-sorts-arrays/1"):
    """Works in the caller's memory."""

    counts = Counts(2)

    def update(self, labels: Any, scores: Any) -> None:
        self._update(self.check(labels, scores))
        if isinstance(scores, np.ndarray):
            scores.sort()


class ChangesBeforeItChecks(Clicks, schema="mutant-changes-first/1"):
    """Counts the labels, then looks at the scores."""

    counts = Counts(2)

    def update(self, labels: Any, scores: Any) -> None:
        y = checks.binary_labels(labels)
        self._update(Batch(len(y), {"labels": y, "scores": y}))
        self.check(labels, scores)


class TakesNaN(Clicks, schema="mutant-takes-nan/1"):
    """Drops rows without a score in silence."""

    counts = Counts(2)

    def check(self, labels: Any, scores: Any) -> Batch:
        good = ~np.isnan(np.asarray(scores, np.float64))
        return super().check(np.asarray(labels)[good], np.asarray(scores)[good])


class SaysNothingToDo(Clicks, schema="mutant-says-nothing/1"):
    """Refuses without a hint on what to do."""

    counts = Counts(2)

    def check(self, labels: Any, scores: Any) -> Batch:
        try:
            return super().check(labels, scores)
        except InputError as error:
            raise InputError(
                expected=error.expected, got=error.got, where=error.where, hint=""
            ) from None


class KeepsTheLastRow(Clicks, schema="mutant-last-row/1"):
    """Depends on the order of rows."""

    counts = Counts(2)
    last = Array(2, np.float64, LastColumn)

    def _accumulate(self, batch: Batch, slots: Slots | None) -> None:
        super()._accumulate(batch, slots)
        self.last.values[0] = batch.scores[-1], 1


class WritesADictInItsOrder(Clicks, schema="mutant-dict-order/1"):
    """Equal states, other bytes."""

    counts = Dict()

    def _accumulate(self, batch: Batch, slots: Slots | None) -> None:
        for label in batch.labels.tolist():
            self.counts.add(label, 1)

    def compute(self) -> Clicked:
        self._flush()
        return clicked(self.counts.counts.get(0, 0), self.counts.counts.get(1, 0))


class ForgetsLabelsInBytes(Clicks, schema="mutant-forgetful-bytes/1"):
    """Bytes from which the state cannot be made again."""

    counts = Array(2, np.int64, ForgetfulColumn)

    def _accumulate(self, batch: Batch, slots: Slots | None) -> None:
        np.add.at(self.counts.values[0], batch.labels, 1)


class ReadsAnything(Clicks, schema="mutant-reads-anything/1"):
    """Takes damaged bytes for an empty state."""

    counts = Counts(2)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        try:
            unframe(b"SMST", data)
        except ValueError:
            return cls()
        return super().from_bytes(data)


class CountsItsReaders(Clicks, schema="mutant-counts-readers/1"):
    """`compute` changes what `compute` gives."""

    counts = Counts(2)

    def compute(self) -> Clicked:
        self._flush()
        n = self.__dict__["_reads"] = self.__dict__.get("_reads", 0) + 1
        return clicked(int(self.counts.dense()[0]) + n, int(self.counts.dense()[1]))


class GivesItsOwnArrays(Clicks, schema="mutant-own-arrays/1"):
    """A result that changes with the state."""

    counts = Array(2, np.int64)

    def _accumulate(self, batch: Batch, slots: Slots | None) -> None:
        np.add.at(self.counts.values[0], batch.labels, 1)

    def compute(self) -> Clicked:
        self._flush()
        return Clicked(0, 0, self.counts.values[0])


class WarnsWhenEmpty(Clicks, schema="mutant-warns/1"):
    """Divides by zero with a warning."""

    counts = Counts(2)

    def compute(self) -> Clicked:
        result = super().compute()
        if not result.rows:
            warnings.warn("invalid value in divide", RuntimeWarning, stacklevel=1)
        return result


class ZeroForUndefined(Clicks, schema="mutant-zero/1"):
    """A rate of no rows is 0.0."""

    counts = Counts(2)

    def compute(self) -> Clicked:
        result = super().compute()
        return result if result.rows else Clicked(0, 0, 0.0)


class Confident(Clicks, schema="mutant-confident/1"):
    """Says that its error is smaller than it is."""

    counts = Counts(2)

    def compute(self) -> Clicked:
        result = super().compute()
        rate = round(float(str(result.rate)), 1)
        return Clicked(result.rows, result.positives, Bounded(rate, rate - 0.01, rate + 0.01))


class RoundsTwice(Clicks, schema="mutant-rounds-twice/1"):
    """Is off by one in the last place now and then."""

    counts = Counts(2)

    def compute(self) -> Clicked:
        result = super().compute()
        share = 1 / result.rows if result.rows else float("nan")
        return Clicked(result.rows, result.positives, result.positives * share)


class EmptiesItsArgument(Clicks, schema="mutant-empties-argument/1"):
    """`merge` moves rows instead of adding them."""

    counts = Counts(2)

    def _merge_slots(self, other: Accumulator, to: Slots) -> None:
        super()._merge_slots(other, to)
        other.__dict__["counts"] = other.empty().__dict__["counts"]


class SharesItsArgument(Clicks, schema="mutant-shares-argument/1"):
    """`merge` into an empty state takes the argument's memory."""

    counts = Array(2, np.int64)

    def _accumulate(self, batch: Batch, slots: Slots | None) -> None:
        np.add.at(self.counts.values[0], batch.labels, 1)

    def _merge_slots(self, other: Accumulator, to: Slots) -> None:
        self._flush()
        other._flush()
        if self.counts.values.any():
            super()._merge_slots(other, to)
        else:
            self.counts.values = other.__dict__["counts"].values


class IgnoresItself(Clicks, schema="mutant-ignores-itself/1"):
    """Believes that a state merged into itself is no news."""

    counts = Counts(2)

    def _merge(self, other: Accumulator) -> None:
        if other is not self:
            super()._merge(other)


class IgnoresSettings(Clicks, schema="mutant-ignores-settings/1"):
    """Adds what was counted under other settings."""

    step: int = 1
    counts = Counts(2)

    def _require_same_settings(self, other: object) -> None:
        pass


class BeginsWithAPrior(Clicks, schema="mutant-prior/1"):
    """Is not empty when it is."""

    counts = Counts(2)

    def _begin(self, width: int) -> None:
        super()._begin(width)
        self.counts.add(np.arange(2))


class NormalisesEachBatch(Clicks, schema="mutant-normalises/1"):
    """Divides by the largest score of the batch."""

    counts = Counts(2)

    def check(self, labels: Any, scores: Any) -> Batch:
        batch = super().check(labels, scores)
        scaled = batch.scores / batch.scores.max(initial=0.01)
        return Batch(batch.n, {"labels": (scaled > 0.5).astype(np.uint8), "scores": scaled})


class ForgetsPendingRows(Clicks, schema="mutant-forgets-waiting/1"):
    """`compute` looks at the state and not at the stage."""

    counts = Counts(2)

    def compute(self) -> Clicked:
        return clicked(*self.counts.dense().tolist())


class RemembersItsResult(Clicks, schema="mutant-remembers/1"):
    """Computes once, and again only after an update."""

    counts = Counts(2)

    def update(self, labels: Any, scores: Any) -> None:
        super().update(labels, scores)
        self.__dict__.pop("_known", None)

    def compute(self) -> Any:
        return self.__dict__.setdefault("_known", super().compute())


class KnowsItsLastBatch(Clicks, schema="mutant-last-batch/1"):
    """Its intervals depend on how rows came."""

    counts = Counts(2)

    def update(self, labels: Any, scores: Any) -> None:
        super().update(labels, scores)
        self.__dict__["_last"] = len(labels)

    def compute(self) -> Any:
        return WithInterval(super().compute(), self.__dict__.get("_last", 1))


class DividesByItsRows(Clicks, schema="mutant-divides/1"):
    """Its intervals are an error without rows."""

    counts = Counts(2)

    def compute(self) -> Any:
        result = super().compute()
        return WithInterval(result, int(result.rows))


class CallsItselfASet(Clicks, schema="mutant-no-set/1"):
    """Says that rows count once, and counts them as often as they come."""

    idempotent = True
    counts = Counts(2)


class RefusesWhatItMerged(Clicks, schema="mutant-refuses/1"):
    """Counts rows apart, but not in merges of a state that was read; then it refuses itself."""

    counts = Counts(2)
    total = Counts(1)

    def _accumulate(self, batch: Batch, slots: Slots | None) -> None:
        super()._accumulate(batch, slots)
        self.total.add(np.zeros(batch.n, np.intp), slots)

    def _decode(self, width: int, data: Reader) -> Self:
        new = super()._decode(width, data)
        if int(new.total.dense()[0]) != int(new.counts.dense().sum()):
            raise damaged("a total that is not that of the counts")
        new.__dict__["_was_read"] = True
        return new

    def _merge_slots(self, other: Accumulator, to: Slots) -> None:
        before = self.total.take(np.arange(1))
        super()._merge_slots(other, to)
        if "_was_read" in self.__dict__:
            self.__dict__["total"] = before
