"""The measures of a ranked list as values: `NDCG @ 10` prints as `NDCG@10`.

The printed text is the name in a config, the key in results and the label on the page.

>>> NDCG(gain="linear") @ 5
NDCG(gain="linear")@5
>>> AP(denominator="min") @ 3
AP(denominator="min")@3
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import inf
from types import MappingProxyType
from typing import Final, cast

import numpy as np

from streammetrics.core.entry_points import MEASURES as INSTALLED
from streammetrics.core.entry_points import load_all
from streammetrics.core.errors import SettingsError, shown
from streammetrics.kernels.ranking import gain as gains
from streammetrics.kernels.ranking import hits
from streammetrics.kernels.ranking.average_precision import average_precision, bpref
from streammetrics.kernels.ranking.graded_lists import Ranked
from streammetrics.kernels.ranking.hits import cumulative_gain, relevant_shown
from streammetrics.kernels.ranking.rank_tables import GAINS
from streammetrics.present.measure_names import (
    did_you_mean,
    our_parameters,
    printed_text,
    text_of_ir_measures,
)
from streammetrics.ranking.measure import (
    SHARE,
    WRITE,
    Measure,
    OverKnown,
    Parameter,
    Thresholded,
    Values,
    check_parameter,
    refused,
)
from streammetrics.ranking.set_measures import (
    InfAP,
    IPrec,
    Judged,
    NumRel,
    NumRelRet,
    NumRet,
    SetAP,
    SetF,
    SetP,
)
from streammetrics.ranking.subtopic_measures import ERRIA, AlphaNDCG, StRecall
from streammetrics.ranking.user_models import ERR, RBP


@dataclass(frozen=True, repr=False)
class _Gained(Measure):
    """`gain`: "exponential", 2**grade - 1 (the default but for CG), or "linear", the grade."""

    gain: str = "exponential"

    def __post_init__(self) -> None:
        check_parameter(self, "gain", self.gain, tuple(GAINS))


class _DCG(_Gained):
    """Sum of gain/log2(rank + 1) over the first k ranks (Jaervelin and Kekaelaeinen 2002)."""

    name = "DCG"
    limits = (0.0, inf)
    rational = False

    def of(self, lists: Ranked) -> Values:
        return Values(gains.dcg(lists, self.gain, self.cut))


class _NDCG(_Gained):
    """DCG over the DCG of all known relevant items in their best order, both cut at k."""

    name = "NDCG"
    limits = SHARE
    rational = False

    @property
    def graded_from(self) -> int:
        return 2

    def of(self, lists: Ranked) -> Values:
        return Values(gains.ndcg(lists, self.gain, self.cut))


@dataclass(frozen=True, repr=False)
class _CG(_Gained):
    """Sum of the gains, linear by default, of the first k (Jaervelin and Kekaelaeinen 2002)."""

    gain: str = "linear"
    name = "CG"
    limits = (0.0, inf)

    def of(self, lists: Ranked) -> Values:
        return Values(*cumulative_gain(lists, self.gain, self.cut))


class _MRR(Thresholded):
    """1/rank of the first relevant item, 0 if none is among the first k."""

    name = "MRR"
    limits = SHARE

    def of(self, lists: Ranked) -> Values:
        return Values(*hits.reciprocal_rank(lists, self.rel, self.cut))


class _HR(Thresholded):
    """1 if any of the first k items is relevant, else 0."""

    name = "HR"
    limits = SHARE

    def of(self, lists: Ranked) -> Values:
        return Values(*hits.hit(lists, self.rel, self.cut))


class _PooledHR(OverKnown):
    """Relevant items among the first k of all lists, over all known relevant items of all lists."""

    name = "PooledHR"
    limits = SHARE
    pooled = True
    has_recall = True

    def of(self, lists: Ranked) -> Values:
        n_relevant = lists.known(self.rel).astype(np.float64)
        return Values(*relevant_shown(lists, self.rel, self.cut), n_relevant)


class _P(Thresholded):
    """Relevant items among the first k, over k, even if the list is shorter."""

    name = "P"
    limits = SHARE
    cuts = "must"

    def of(self, lists: Ranked) -> Values:
        assert self.cut is not None
        divisors = np.full(lists.n, float(self.cut))
        return Values(*relevant_shown(lists, self.rel, self.cut, divisors))


class _R(OverKnown):
    """Relevant items among the first k, over all known relevant items.

    These are the ones in the list and those that `n_relevant`, ids or items of score -inf add: of
    lists that hold only what was retrieved, and without these, it is not the recall, and
    RankingMetrics refuses them.
    """

    name = "R"
    limits = SHARE
    has_recall = True

    def of(self, lists: Ranked) -> Values:
        divisors = np.maximum(lists.known(self.rel), 1).astype(np.float64)
        return Values(*relevant_shown(lists, self.rel, self.cut, divisors))


class _F1(OverKnown):
    """Twice the relevant items among the first k, over k plus all known relevant items.

    It is the harmonic mean of P@k and R@k (van Rijsbergen 1979, chapter 7).
    """

    name = "F1"
    limits = SHARE
    has_recall = True
    cuts = "must"

    def of(self, lists: Ranked) -> Values:
        assert self.cut is not None
        divisors = (lists.known(self.rel) + self.cut) / 2
        return Values(*relevant_shown(lists, self.rel, self.cut, divisors))


class _RPrec(OverKnown):
    """R-precision: relevant items among the first R, over R, the number of known relevant ones."""

    name = "RPrec"
    limits = SHARE
    has_recall = True  # at rank R
    cuts = "cannot"

    def of(self, lists: Ranked) -> Values:
        n_relevant = lists.known(self.rel)
        divisors = np.maximum(n_relevant, 1).astype(np.float64)
        return Values(*relevant_shown(lists, self.rel, n_relevant, divisors))


@dataclass(frozen=True, repr=False)
class _AP(OverKnown):
    """Average precision: the sum of P@i over the relevant ranks i of the first k, over R.

    `denominator`: "all" (default), R is the number of known relevant items, as in trec_eval; or
    "min", R is at most k.
    """

    denominator: str = "all"
    name = "AP"
    limits = SHARE

    def __post_init__(self) -> None:
        super().__post_init__()
        check_parameter(self, "denominator", self.denominator, ("all", "min"))

    def of(self, lists: Ranked) -> Values:
        cut_denominator = self.denominator == "min"
        return Values(*average_precision(lists, self.rel, self.cut, cut_denominator))


class _Bpref(OverKnown):
    """Binary preference: how few items judged not relevant rank above the relevant ones."""

    name = "Bpref"
    limits = SHARE
    cuts = "cannot"

    def of(self, lists: Ranked) -> Values:
        return Values(*bpref(lists, self.rel))


NDCG: Final = _NDCG()
DCG: Final = _DCG()
CG: Final = _CG()
MRR: Final = _MRR()
HR: Final = _HR()
PooledHR: Final = _PooledHR()
P: Final = _P()
R: Final = _R()
F1: Final = _F1()
RPrec: Final = _RPrec()
AP: Final = _AP()
Bpref: Final = _Bpref()

MEASURES: Final[Mapping[str, Measure]] = MappingProxyType(
    {
        measure.name: measure
        for measure in (
            *(NDCG, DCG, CG, MRR, HR, PooledHR, P, R, F1, RPrec, AP, ERR, RBP, Bpref),
            *(SetP, SetF, SetAP, NumRet, NumRel, NumRelRet, Judged, IPrec, InfAP),
            *(AlphaNDCG, ERRIA, StRecall),
        )
    }
)


# Measures from texts: `parse_measure` is the inverse of `str`.

_LONGEST: Final = 200  # characters; each measure is shorter, and hostile text may be longer
_NAME: Final = r"[A-Za-z][A-Za-z0-9_]{0,39}"
_TEXT: Final = re.compile(
    rf"\s*({_NAME})\s*(?:\(([^()]*)\)\s*)?(?:@\s*([0-9]{{1,9}})\s*)?", re.ASCII
)
_PARAMETER: Final = re.compile(
    r"""\s*([a-z_]{1,20})\s*=\s*(?:"([a-z]*)"|'([a-z]*)'|([0-9]{1,9})|"""
    r"([0-9]{1,9}(?:\.[0-9]{1,22}(?:e-[0-9]{2,3})?|e-[0-9]{2,3})))\s*",
    re.ASCII,
)
_registered: dict[str, Measure] = {}


def register_measure(measure: Measure) -> None:
    """Register a measure under its name, for `RankingMetrics`, configs and stored states.

    measure: a value without a cut, of a frozen dataclass derived from `Measure`, whose `of` is a
    function of the lists alone, to the last bit. Stored states refer to it by name, so another
    measure needs another name; a notebook cell that runs again may redefine its class. Every
    process that reads such a state must register it, or have a package installed that lists the
    value among its entry points (`streammetrics.measures`).

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
    candidate: object = measure
    name = candidate.name if isinstance(candidate, Measure) and candidate.cut is None else ""
    if not re.fullmatch(_NAME, name, re.ASCII) or name in MEASURES:
        raise SettingsError(
            expected="a measure without a cut, whose name has up to 40 letters, digits and `_`, and"
            f" is none of {', '.join(MEASURES)}",
            got=shown(measure),
            where="register_measure",
            hint="choose another name, and register the measure without `@`",
        )
    registered = _registered.get(name, measure)
    if _import_path(registered) != _import_path(measure):
        raise SettingsError(
            expected=f"the registered {name}, {_import_path(registered)}",
            got=_import_path(measure),
            where="register_measure",
            hint="choose another name: stored states rely on this one",
        )
    _registered[name] = measure
    _measures_of.cache_clear()


def _import_path(measure: Measure) -> str:
    return f"{type(measure).__module__}.{type(measure).__qualname__}"


def _measure(name: str) -> Measure | None:
    """The measure of this name, without a cut; those of installed packages are loaded once."""
    registered = MEASURES.get(name) or _registered.get(name)
    if registered is None:
        _load_installed()
    return registered or _registered.get(name)


def _load_installed() -> str:
    """Register the measures of installed packages; the text says which failed."""
    installed, failed = load_all(INSTALLED)
    for entry in installed.values():
        if isinstance(entry, Measure) and entry.name not in _registered:
            try:
                register_measure(entry)
            except SettingsError as error:  # one bad package must not hide the others
                failed += f"; {error}"
    return failed


def _unknown(name: str, text: str) -> SettingsError:
    """The error for a name that no measure has."""
    failed = _load_installed()
    names = [*MEASURES, *sorted(_registered)]
    hint = did_you_mean(text, names, WRITE)
    return refused(
        f"one of {', '.join(names)}", shown(name), f"measure {shown(text)}", hint + failed
    )


def parse_measure(text: str) -> Measure:
    """The measure that `text` names: the inverse of `str`; spaces around its parts are ignored.

    Names that people type are understood too: those of ranx, ir_measures and trec_eval, in small
    letters or capitals. `ndcg@10` has exponential gains, as NDCG @ 10 here; `ndcg_cut_10` is
    trec_eval's, with linear ones. Raises SettingsError for anything else; text of any kind and
    length is safe.

    >>> parse_measure("MRR @ 10"), parse_measure("map"), parse_measure("ndcg_cut_10")
    (MRR@10, AP, NDCG(gain="linear")@10)
    """
    source: object = text
    written = source if isinstance(source, str) else text_of_ir_measures(source)
    if written is None:
        raise refused("a measure or its name", shown(text), "measure")
    text = our_parameters(written)
    text_match = _TEXT.fullmatch(text) if len(text) <= _LONGEST else None
    measure = None if text_match is None else _measure(text_match[1])
    if measure is None:
        printed = printed_text(text)
        if printed is not None:
            text_match = _TEXT.fullmatch(printed)
            measure = None if text_match is None else _measure(text_match[1])
    if text_match is None:
        hint = did_you_mean(text, (), WRITE) if len(text) <= _LONGEST else WRITE
        if "," in text and "(" not in text and len(text) <= _LONGEST:
            first, *next_parts = (part.strip() for part in text.split(","))
            stem = first.rstrip("0123456789")
            several = [first, *(f"{stem}{part}" if part.isdigit() else part for part in next_parts)]
            hint = f"pass several in a list: {several}"
        expected = 'a measure such as NDCG@10 or NDCG(gain="linear")@5'
        raise refused(expected, shown(text), "measure", hint)
    if measure is None:
        raise _unknown(text_match[1], text)
    _, parameters, cut = text_match.groups()
    if parameters is not None and parameters.strip():
        measure = measure(**_parameters(parameters, text))
    return measure if cut is None else measure @ int(cut)


def measures_of(measures: Measure | str | Iterable[Measure | str]) -> tuple[Measure, ...]:
    """Measures from values or texts, one or several; SettingsError for none or a duplicate."""
    if isinstance(measures, (Measure, str)):
        measures = (measures,)
    elif (of_ir_measures := text_of_ir_measures(measures)) is not None:
        measures = (of_ir_measures,)
    try:
        entries: tuple[object, ...] = tuple(measures)
    except TypeError:  # also of an array without dimensions
        expected = "measures such as NDCG @ 10, or their names"
        raise refused(expected, shown(measures), "measures") from None
    parsed = (
        m if isinstance(m, (Measure, str)) else parse_measure(cast("str", m)) for m in entries
    )
    return _measures_of(tuple(parsed))


def _registered_as(measure: Measure) -> Measure:
    registered = _measure(measure.name)
    if registered is None:
        raise _unknown(measure.name, str(measure))
    return registered


@lru_cache(maxsize=256)
def _measures_of(measures: tuple[Measure | str, ...]) -> tuple[Measure, ...]:
    parsed = tuple(m if isinstance(m, Measure) else parse_measure(m) for m in measures)
    if not parsed or len(set(parsed)) != len(parsed):
        got = ", ".join(str(measure) for measure in parsed) or "none"
        hint = (
            "leave out the repeated ones: several names may mean one measure" if parsed else WRITE
        )
        raise refused("one measure or several, each once", got, "measures", hint)
    for measure in parsed:
        if type(_registered_as(measure)) is not type(measure):
            raise refused(
                f"the measure that is registered as {measure.name}",
                _import_path(measure),
                "measures",
                "register it under another name",
            )
        if measure.cuts == "must" and measure.cut is None:
            name = measure.name
            raise refused(f"{name} with a cut, such as {name}@10", str(measure), "measures")
    return parsed


def _parameters(text: str, whole: str) -> dict[str, Parameter]:
    parameters: dict[str, Parameter] = {}
    for part in text.split(","):
        part_match = _PARAMETER.fullmatch(part)
        if part_match is None or part_match[1] in parameters:
            raise refused("name=value, each name once", shown(part), f"measure {shown(whole)}")
        name, double, single, whole_number, fraction = part_match.groups()
        if whole_number is not None:
            parameters[name] = int(whole_number)
        elif fraction is not None:
            parameters[name] = float(fraction)
        else:
            parameters[name] = double if double is not None else single
    return parameters
