"""Measure: a measure of ranked lists, as a value with a name, parameters and a cut."""

from __future__ import annotations

import json
import operator
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, replace
from math import inf
from typing import ClassVar, Final, NamedTuple, Self, SupportsIndex, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.checks import MAX_GRADE
from streammetrics.core.errors import InputError, SettingsError, shown
from streammetrics.kernels.ranking.graded_lists import Ranked

Parameter: TypeAlias = str | int | float
Floats: TypeAlias = NDArray[np.float64]

MAX_CUT: Final = 999_999_999
SHARE: Final = (0.0, 1.0)
CHOOSE: Final = "choose one of these"
WRITE: Final = "write it as NDCG @ 10 in Python, or as its printed text"


class Values(NamedTuple):
    """A measure's value for each of n lists: a double, the remainder that it leaves out (None: not
    known), and the weight of the list (None: 1)."""

    values: Floats
    rest: Floats | None = None
    weights: Floats | None = None


@dataclass(frozen=True)
class Measure(ABC):
    """A measure of a ranked list, with its parameters and its cut: frozen, hashable, comparable.

    `measure @ k` uses only the first k ranks; without it the whole list counts.
    `measure(name=value)` sets parameters. Both return a new value.
    """

    cut: int | None = None

    name: ClassVar[str]
    cuts: ClassVar[str] = "may"  # "may", "must" or "cannot" have a cut
    rational: ClassVar[bool] = True  # values have a rest, so that their mean is correctly rounded
    subtopics: ClassVar[bool] = False  # reads the subtopics that items answer
    greedy: ClassVar[bool] = False  # takes the first of items with equal gains
    ordered: ClassVar[bool] = False  # has no mean over the orders of equal scores
    of_empty: ClassVar[bool] = False  # may have a value above 0 for a list with nothing relevant
    pooled: ClassVar[bool] = False  # a ratio of sums over all lists: values have weights
    has_recall: ClassVar[bool] = False  # reads how many relevant items were not retrieved
    limits: ClassVar[tuple[float, float]] = (-inf, inf)  # the least and the greatest value

    @abstractmethod
    def of(self, lists: Ranked) -> Values:
        """The value for each list."""

    def unsettled(self, lists: Ranked) -> NDArray[np.intp]:
        """The lists whose value depends on the order of equal scores, if it is `ordered`."""
        return np.empty(0, np.intp)

    @property
    def highest(self) -> int:
        """The highest grade that an item may have."""
        return MAX_GRADE

    @property
    def depth(self) -> int | None:
        """The number of ranks that it uses; None: all."""
        return self.cut

    @property
    def graded_from(self) -> int:
        """The grade from which the number of relevant items that a list lacks is not enough: if the
        list holds such an item, their grades are needed too. 0: always; above 15: never."""
        return MAX_GRADE + 1

    def __matmul__(self, cut: SupportsIndex) -> Self:
        if self.cut is not None:
            raise refused(f"{self} without a second cut", f"@{shown(cut)}", str(self))
        try:
            k = operator.index(cut)
        except TypeError:
            k = 0
        if self.cuts == "cannot":
            raise refused(
                f"{self} without a cut, because it reads whole lists", f"@{shown(cut)}", str(self)
            )
        if isinstance(cut, (bool, np.bool_)) or not 1 <= k <= MAX_CUT:
            raise refused("a cut from 1 to 999999999", shown(cut), f"{self.name} @")
        return replace(self, cut=k)

    def __call__(self, **parameters: Parameter) -> Self:
        defaults = self._defaults()
        for name in parameters:
            if name not in defaults:
                takes = ", ".join(defaults) or "none"
                raise refused(f"a parameter of {self.name} ({takes})", name, self.name)
        return replace(self, **parameters)  # type: ignore[arg-type]

    def __str__(self) -> str:
        parameters = ",".join(
            f"{name}={json.dumps(getattr(self, name))}"
            for name, default in self._defaults().items()
            if getattr(self, name) != default
        )
        cut = "" if self.cut is None else f"@{self.cut}"
        return self.name + (f"({parameters})" if parameters else "") + cut

    __repr__ = __str__

    @classmethod
    def _defaults(cls) -> Mapping[str, Parameter]:
        return {
            f.name: f.default for f in fields(cls) if f.name != "cut" and f.default is not MISSING
        }


def refused(expected: str, got: str, where: str, hint: str = WRITE) -> SettingsError:
    """The error for an invalid measure."""
    return SettingsError(expected=expected, got=got, where=where, hint=hint)


def too_high(measure: Measure, got: str, where: str, rows: NDArray[np.intp]) -> InputError:
    """The error for rows whose grade is above the highest grade of a measure."""
    return InputError(
        expected=f"grades up to {measure.highest}, the highest of {measure}",
        got=got,
        where=where,
        hint=f"pass {measure.name} the highest grade: {measure.name}(max_grade=...)",
        rows=rows,
    )


# Parameters.


def check_parameter(measure: Measure, name: str, value: object, choices: tuple[str, ...]) -> None:
    """Refuse a parameter that is not one of these texts."""
    if not isinstance(value, str) or value not in choices:
        expected = " or ".join(f'"{choice}"' for choice in choices)
        raise refused(expected, shown(value), f"{measure.name}.{name}", CHOOSE)


def check_share(measure: Measure, name: str, value: object, least: float) -> None:
    """Refuse a parameter that is not a float from `least` to 1; keep it as a plain float."""
    whole = type(value) is int and value in (0, 1)
    if not (isinstance(value, float) or whole) or not least <= value <= 1:  # type: ignore[operator]
        expected, where = f"a float from {least:g} to 1", f"{measure.name}.{name}"
        raise refused(expected, shown(value), where, "pass a share such as 0.5")
    plain = float(value) + 0.0  # type: ignore[arg-type]  # a numpy float and -0.0 print differently
    object.__setattr__(measure, name, plain)


@dataclass(frozen=True, repr=False)
class Thresholded(Measure):
    """`rel`: the grade from which on an item is relevant, 1 to 15 (1 by default)."""

    rel: int = 1

    def __post_init__(self) -> None:
        if type(self.rel) is not int or not 1 <= self.rel <= MAX_GRADE:
            raise refused("a grade from 1 to 15", shown(self.rel), f"{self.name}.rel", CHOOSE)


@dataclass(frozen=True, repr=False)
class OverKnown(Thresholded):
    """A measure whose value depends on the number of known items of grade `rel` or more."""

    @property
    def graded_from(self) -> int:
        return 0 if self.rel > 1 else super().graded_from


def graded_measure(measure: Measure, rel: int) -> Measure:
    """The measure with this grade as `rel`, if it has the parameter and no grade of its own."""
    defaults = measure._defaults()
    if "rel" not in defaults or getattr(measure, "rel", None) != defaults["rel"]:
        return measure
    return measure(rel=rel)
