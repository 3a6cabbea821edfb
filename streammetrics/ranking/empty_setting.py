"""A setting that has the name of a method."""

from __future__ import annotations

from collections.abc import Callable
from types import MethodType
from typing import TypeVar, overload

from streammetrics.core.accumulator import Accumulator

M = TypeVar("M", bound=Accumulator)


class EmptySetting:
    """The setting `empty`, beside the method `empty()` of every accumulator.

    Both names are part of the interface. On an instance the name is the method; the setting is
    given to `__init__` and found in `settings()`. (A descriptor as the default of a field of a
    data class: on the class it gives the default, and `__init__` calls `__set__`.)
    """

    @overload
    def __get__(self, metric: None, kind: type) -> str: ...
    @overload
    def __get__(self, metric: M, kind: type) -> Callable[[], M]: ...
    def __get__(self, metric: M | None, kind: type) -> str | Callable[[], M]:
        return "skip" if metric is None else MethodType(Accumulator.empty, metric)

    def __set__(self, metric: Accumulator, value: str) -> None:
        metric.__dict__["empty"] = value
