"""Measures from texts: `parse_measure` is the inverse of `str`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from streammetrics.core.errors import shown
from streammetrics.ranking.measure import Measure, Parameter, refused
from streammetrics.ranking.measures import MEASURES

_LONGEST: Final = 200  # characters; no measure needs so many, and hostile text may have more
_TEXT: Final = re.compile(
    r"\s*([A-Za-z]{1,20})\s*(?:\(([^()]*)\)\s*)?(?:@\s*([0-9]{1,9})\s*)?", re.ASCII
)
_PARAMETER: Final = re.compile(
    r"""\s*([a-z_]{1,20})\s*=\s*(?:"([a-z]*)"|'([a-z]*)'|([0-9]{1,9})|([0-9]{1,9}\.[0-9]{1,22}))\s*""",
    re.ASCII,
)


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
    if name not in MEASURES:
        raise refused(f"one of {', '.join(MEASURES)}", shown(name), f"measure {shown(text)}")
    measure = MEASURES[name]
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
