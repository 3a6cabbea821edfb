"""Measures from texts: `parse_measure` is the inverse of `str`.

A text names one of our measures, one that `register_measure` made known, or one that an installed
package names among its entry points (`streammetrics.measures`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from streammetrics.core.errors import SettingsError, shown
from streammetrics.core.installed import MEASURES as INSTALLED
from streammetrics.core.installed import load_all
from streammetrics.ranking.measure import WRITE, Measure, Parameter, refused
from streammetrics.ranking.measures import MEASURES

_LONGEST: Final = 200  # characters; no measure needs so many, and hostile text may have more
_NAME: Final = r"[A-Za-z][A-Za-z0-9_]{0,39}"
_TEXT: Final = re.compile(
    rf"\s*({_NAME})\s*(?:\(([^()]*)\)\s*)?(?:@\s*([0-9]{{1,9}})\s*)?", re.ASCII
)
_PARAMETER: Final = re.compile(
    r"""\s*([a-z_]{1,20})\s*=\s*(?:"([a-z]*)"|'([a-z]*)'|([0-9]{1,9})|([0-9]{1,9}\.[0-9]{1,22}))\s*""",
    re.ASCII,
)
_registered: dict[str, Measure] = {}


def register_measure(measure: Measure) -> None:
    """Make a measure of your own known by its name, in `RankingMetrics`, configs and stored states.

    measure: a value without a cut, of a frozen dataclass under `Measure` whose `of` is a function
    of the lists alone, to the last bit. The name stands for it in stored states, so another
    measure needs another name; a cell of a notebook that is run again may define its class anew.
    Every process that reads such a state must have registered it, or have a package installed that
    names the value among its entry points (`streammetrics.measures`).

    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> from streammetrics.authoring import Measure, Ranked, Values, register_measure
    >>> @dataclass(frozen=True, repr=False)
    ... class _Known(Measure):
    ...     name = "Known"
    ...     def of(self, lists: Ranked) -> Values:
    ...         return Values(lists.relevant.astype(float), np.zeros(lists.n))
    >>> register_measure(_Known())
    >>> parse_measure("Known")
    Known
    """
    given: object = measure
    name = given.name if isinstance(given, Measure) and given.cut is None else ""
    if not re.fullmatch(_NAME, name, re.ASCII) or name in MEASURES:
        raise SettingsError(
            expected="a measure without a cut, whose name has up to 40 letters, digits and `_`, and"
            f" is none of {', '.join(MEASURES)}",
            came=shown(measure),
            where="register_measure",
            todo="choose another name, and register the measure without `@`",
        )
    known = _registered.get(name, measure)
    if _place(known) != _place(measure):
        raise SettingsError(
            expected=f"{name} as it was registered, {_place(known)}",
            came=_place(measure),
            where="register_measure",
            todo="choose another name: stored states rely on this one",
        )
    _registered[name] = measure
    _measures_of.cache_clear()


def _place(measure: Measure) -> str:
    return f"{type(measure).__module__}.{type(measure).__qualname__}"


def _measure(name: str, text: str) -> Measure:
    """The measure of this name, without a cut; those of installed packages are loaded once."""
    known = MEASURES.get(name) or _registered.get(name)
    if known is not None:
        return known
    installed, failed = load_all(INSTALLED)
    for one in installed.values():
        if isinstance(one, Measure) and one.name not in _registered:
            try:
                register_measure(one)
            except SettingsError as error:  # one bad package must not take the others away
                failed += f"; {error}"
    if name not in _registered:
        known_names = ", ".join([*MEASURES, *sorted(_registered)])
        where = f"measure {shown(text)}"
        raise refused(f"one of {known_names}", shown(name), where, WRITE + failed)
    return _registered[name]


def parse_measure(text: str) -> Measure:
    """The measure that `text` names: the inverse of `str`; spaces around its parts are ignored.

    Raises SettingsError for anything else; text of any kind and length is safe.

    >>> parse_measure("MRR @ 10")
    MRR@10
    """
    if not isinstance(text, str):
        raise refused("a measure or its name", shown(text), "measure")
    found = _TEXT.fullmatch(text) if len(text) <= _LONGEST else None
    if found is None:
        raise refused('a measure such as NDCG@10 or NDCG(gain="linear")@5', shown(text), "measure")
    name, parameters, cut = found.groups()
    measure = _measure(name, text)
    if parameters is not None and parameters.strip():
        measure = measure(**_parameters(parameters, text))
    return measure if cut is None else measure @ int(cut)


def measures_of(measures: Measure | str | Iterable[Measure | str]) -> tuple[Measure, ...]:
    """Measures from values or texts, one or several; SettingsError for none or one twice."""
    if isinstance(measures, (Measure, str)):
        measures = (measures,)
    elif not isinstance(measures, Iterable):
        raise refused("measures such as NDCG @ 10, or their texts", shown(measures), "measures")
    return _measures_of(tuple(measures))


@lru_cache(maxsize=256)
def _measures_of(measures: tuple[Measure | str, ...]) -> tuple[Measure, ...]:
    found = tuple(m if isinstance(m, Measure) else parse_measure(m) for m in measures)
    if not found or len(set(found)) != len(found):
        came = ", ".join(str(measure) for measure in found) or "none"
        raise refused("one measure or several, each once", came, "measures")
    for measure in found:
        if type(_measure(measure.name, str(measure))) is not type(measure):
            raise refused(
                f"the measure that is registered as {measure.name}",
                _place(measure),
                "measures",
                "register it, under a name of its own",
            )
        if measure.cuts == "must" and measure.cut is None:
            name = measure.name
            raise refused(f"{name} with a cut, such as {name}@10", str(measure), "measures")
    return found


def _parameters(text: str, whole: str) -> dict[str, Parameter]:
    given: dict[str, Parameter] = {}
    for part in text.split(","):
        found = _PARAMETER.fullmatch(part)
        if found is None or found[1] in given:
            raise refused("name=value, each name once", shown(part), f"measure {shown(whole)}")
        name, double, single, whole_number, fraction = found.groups()
        if whole_number is not None:
            given[name] = int(whole_number)
        elif fraction is not None:
            given[name] = float(fraction)
        else:
            given[name] = double if double is not None else single
    return given
