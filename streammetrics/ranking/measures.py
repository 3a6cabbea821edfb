"""Measures of a ranked list as values: `NDCG @ 10` prints as `NDCG@10`, which parses back.

What one prints is what a config accepts, the key in results and the label on the page.

>>> NDCG(gain="linear") @ 5
NDCG(gain="linear")@5
>>> parse_measure('NDCG( gain = "linear" ) @ 5') == NDCG(gain="linear") @ 5
True
"""

from __future__ import annotations

import json
import operator
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, fields, replace
from functools import lru_cache
from types import MappingProxyType
from typing import ClassVar, Final, NamedTuple, Self, SupportsIndex, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.checks import MAX_GRADE
from streammetrics.core.errors import SettingsError, shown
from streammetrics.kernels import list_measures as kernel
from streammetrics.kernels.discounts import GAINS
from streammetrics.kernels.lists import Ranked

Parameter: TypeAlias = str | int | float
Floats: TypeAlias = NDArray[np.float64]

MAX_CUT: Final = 999_999_999
_WRITE: Final = "write it as NDCG @ 10 in Python, or as the text that it prints"
_CHOOSE: Final = "choose one of these"
_LONGEST: Final = 200  # characters; no measure needs so many, and hostile text may have more
_TEXT: Final = re.compile(
    r"\s*([A-Za-z]{1,20})\s*(?:\(([^()]*)\)\s*)?(?:@\s*([0-9]{1,9})\s*)?", re.ASCII
)
_PARAMETER: Final = re.compile(
    r"""\s*([a-z_]{1,20})\s*=\s*(?:"([a-z]*)"|'([a-z]*)'|([0-9]{1,9})|([0-9]{1,9}\.[0-9]{1,17}))\s*""",
    re.ASCII,
)


class Values(NamedTuple):
    """A measure's value for each of n lists, and what these doubles leave out."""

    values: Floats
    rest: Floats | None = None


@dataclass(frozen=True)
class Measure(ABC):
    """A measure of a ranked list, with its parameters and its cut: frozen, hashable, comparable.

    `measure @ k` looks at the first k ranks alone; without it the whole list counts.
    `measure(name=value)` sets parameters. Both give a new value.
    """

    cut: int | None = None

    name: ClassVar[str]
    needs_grades: ClassVar[bool] = False  # of relevant items that a list lacks, not their number
    leaves_rest: ClassVar[bool] = False  # a double is not enough for the mean to be exact

    @abstractmethod
    def of(self, lists: Ranked) -> Values:
        """The value for each list."""

    def __matmul__(self, cut: SupportsIndex) -> Self:
        if self.cut is not None:
            raise _refused(f"{self} without a second cut", f"@{shown(cut)}", str(self))
        try:
            k = operator.index(cut)
        except TypeError:
            k = 0
        if isinstance(cut, (bool, np.bool_)) or not 1 <= k <= MAX_CUT:
            raise _refused("a cut from 1 to 999999999", shown(cut), f"{self.name} @")
        return replace(self, cut=k)

    def __call__(self, **parameters: Parameter) -> Self:
        known = self._defaults()
        for name in parameters:
            if name not in known:
                takes = ", ".join(known) or "none"
                raise _refused(f"a parameter of {self.name} ({takes})", name, self.name)
        return replace(self, **parameters)  # type: ignore[arg-type]

    def __str__(self) -> str:
        given = ",".join(
            f"{name}={json.dumps(getattr(self, name))}"
            for name, default in self._defaults().items()
            if getattr(self, name) != default
        )
        cut = "" if self.cut is None else f"@{self.cut}"
        return self.name + (f"({given})" if given else "") + cut

    __repr__ = __str__

    @classmethod
    def _defaults(cls) -> Mapping[str, Parameter]:
        return {
            f.name: f.default for f in fields(cls) if f.name != "cut" and f.default is not MISSING
        }


@dataclass(frozen=True, repr=False)
class _Gained(Measure):
    """`gain`: "exponential", 2**grade - 1 (the default), or "linear", the grade itself."""

    gain: str = "exponential"

    def __post_init__(self) -> None:
        if self.gain not in tuple(GAINS):  # which any value may be looked up in
            raise _refused(
                '"exponential" or "linear"', shown(self.gain), f"{self.name}.gain", _CHOOSE
            )


@dataclass(frozen=True, repr=False)
class _Thresholded(Measure):
    """`rel`: the grade from which on an item is relevant, 1 to 15 (1 by default)."""

    rel: int = 1

    def __post_init__(self) -> None:
        if type(self.rel) is not int or not 1 <= self.rel <= MAX_GRADE:
            raise _refused("a grade from 1 to 15", shown(self.rel), f"{self.name}.rel", _CHOOSE)


class _DCG(_Gained):
    """Sum of gain/log2(rank + 1) over the first k ranks (Jaervelin and Kekaelaeinen 2002)."""

    name = "DCG"

    def of(self, lists: Ranked) -> Values:
        return Values(kernel.dcg(lists, self.gain, self.cut))


class _NDCG(_Gained):
    """DCG over the DCG of all known relevant items in their best order, both cut at k."""

    name = "NDCG"
    needs_grades = True

    def of(self, lists: Ranked) -> Values:
        return Values(kernel.ndcg(lists, self.gain, self.cut))


class _MRR(_Thresholded):
    """1/rank of the first relevant item, 0 when none is among the first k."""

    name = "MRR"
    leaves_rest = True

    def of(self, lists: Ranked) -> Values:
        return Values(*kernel.reciprocal_rank(lists, self.rel, self.cut))


class _HR(_Thresholded):
    """1 if any of the first k items is relevant, else 0."""

    name = "HR"

    def of(self, lists: Ranked) -> Values:
        return Values(kernel.hit(lists, self.rel, self.cut))


NDCG: Final = _NDCG()
DCG: Final = _DCG()
MRR: Final = _MRR()
HR: Final = _HR()

MEASURES: Final[Mapping[str, Measure]] = MappingProxyType(
    {measure.name: measure for measure in (NDCG, DCG, MRR, HR)}
)


def parse_measure(text: str) -> Measure:
    """The measure that `text` names: the inverse of `str`; spaces around its parts are ignored.

    Raises SettingsError for anything else; text of any kind and length is safe.

    >>> parse_measure("MRR @ 10")
    MRR@10
    """
    if not isinstance(text, str):
        raise _refused("a measure or its name", shown(text), "measure")
    found = _TEXT.fullmatch(text) if len(text) <= _LONGEST else None
    if found is None:
        raise _refused('a measure such as NDCG@10 or NDCG(gain="linear")@5', shown(text), "measure")
    name, parameters, cut = found.groups()
    if name not in MEASURES:
        raise _refused(f"one of {', '.join(MEASURES)}", shown(name), f"measure {shown(text)}")
    measure = MEASURES[name]
    if parameters is not None and parameters.strip():
        measure = measure(**_parameters(parameters, text))
    return measure if cut is None else measure @ int(cut)


def measures_of(measures: Measure | str | Iterable[Measure | str]) -> tuple[Measure, ...]:
    """Measures from values or texts, one or several; SettingsError for none or one twice."""
    if isinstance(measures, (Measure, str)):
        measures = (measures,)
    elif not isinstance(measures, Iterable):
        raise _refused("measures such as NDCG @ 10, or their texts", shown(measures), "measures")
    return _measures_of(tuple(measures))


@lru_cache(maxsize=256)
def _measures_of(measures: tuple[Measure | str, ...]) -> tuple[Measure, ...]:
    found = tuple(m if isinstance(m, Measure) else parse_measure(m) for m in measures)
    if not found or len(set(found)) != len(found):
        came = ", ".join(str(measure) for measure in found) or "none"
        raise _refused("one measure or several, each once", came, "measures")
    return found


def _parameters(text: str, whole: str) -> dict[str, Parameter]:
    given: dict[str, Parameter] = {}
    for part in text.split(","):
        found = _PARAMETER.fullmatch(part)
        if found is None or found[1] in given:
            raise _refused("name=value, each name once", shown(part), f"measure {shown(whole)}")
        name, double, single, whole_number, fraction = found.groups()
        if whole_number is not None:
            given[name] = int(whole_number)
        elif fraction is not None:
            given[name] = float(fraction)
        else:
            given[name] = double if double is not None else single
    return given


def _refused(expected: str, came: str, where: str, todo: str = _WRITE) -> SettingsError:
    return SettingsError(expected=expected, came=came, where=where, todo=todo)
