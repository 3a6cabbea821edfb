"""How measures were called: tables for people name a measure as it was typed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from inspect import signature
from typing import ParamSpec, TypeVar

from streammetrics.core.slips import explained
from streammetrics.present.notebook import Shown

P = ParamSpec("P")
R = TypeVar("R", bound=Shown)


def with_spellings(
    printed: Callable[[R], Iterable[str]],
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a function with an argument `measures`: its result knows how each was typed.

    printed: the measures of a result as they print, in the order of the argument.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        takes, explained_function = signature(function), explained(function)

        @wraps(function)
        def call(*values: P.args, **keywords: P.kwargs) -> R:
            result = explained_function(*values, **keywords)
            measures: object = takes.bind(*values, **keywords).arguments["measures"]
            several = [measures] if isinstance(measures, str) else measures
            if isinstance(several, list | tuple):
                pairs = zip(printed(result), several, strict=True)
                texts = {text: name for text, name in pairs if isinstance(name, str)}
                object.__setattr__(result, "_typed", texts)  # of a frozen result, not compared
            return result

        return call

    return decorate
